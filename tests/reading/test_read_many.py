import pytest

from agentfs import AgentFSError, Limits, Workspace
from agentfs.text import estimate_tokens


@pytest.fixture
def ws(tmp_path):
    with Workspace(tmp_path) as made:
        for name in ("a.py", "b.py", "sub/c.py"):
            made.write(name, f"# {name} has words\n" * 50)
        made.write("d.txt", "text\n")
        yield made


def test_each_file_is_shown_under_its_path(ws):
    result = ws.read_many(["d.txt", "a.py", "d.txt"])
    assert result.text == f"== d.txt ==\n1|text\n== a.py ==\n{ws.read('a.py').text}"
    assert [file.path for file in result.files] == ["d.txt", "a.py"]
    assert (result.next, result.failed, result.left) == (None, {}, ())


def test_globs_are_expanded_in_order(ws):
    assert [file.path for file in ws.read_many("**/*.py").files] == ["a.py", "b.py", "sub/c.py"]
    assert ws.read_many("*.none").text == "[no files]"


def test_the_error_of_a_file_is_shown_in_its_place(ws):
    result = ws.read_many(["d.txt", "missing", "../out"])
    assert result.failed == {"missing": "not_found", "../out": "outside_workspace"}
    assert '== missing ==\n"missing" does not exist' in result.text


@pytest.mark.parametrize("budget", [60, 200, 300, 500, 5000])
def test_the_budget_holds_and_the_next_calls_read_all(ws, budget):
    shown, calls = [], 0
    result = ws.read_many("**/*.py", budget=budget)
    while True:
        calls += 1
        assert estimate_tokens(result.text) <= budget + 40
        shown += [file.path for file in result.files]
        if result.next is None:
            break
        assert f"not read, because {budget} tokens are used up" in result.text
        result = ws.read_many(**result.next["arguments"])
    assert shown == ["a.py", "b.py", "sub/c.py"]
    assert (calls > 1) == (budget < 5000)


def test_the_limits_apply_without_a_budget(tmp_path, ws):
    with Workspace(tmp_path, limits=Limits(output_tokens=350)) as small:
        assert small.read_many("**/*.py").next["arguments"]["paths"][-1] == "sub/c.py"


def test_a_budget_below_one_is_an_error(ws):
    with pytest.raises(AgentFSError) as caught:
        ws.read_many("a.py", budget=0)
    assert caught.value.code == "invalid_argument"


def test_read_many_can_be_named_as_a_tool(ws):
    tools = ws.tools(["read_many"])
    assert tools.call("read_many", {"paths": ["d.txt"]}).content == "== d.txt ==\n1|text"
    assert "read_many" not in ws.tools().names


def test_regression_a_glob_of_read_many_does_not_shorten_the_skip_report_of_glob(tmp_path):
    (tmp_path / ".hidden.py").write_text("x\n")
    (tmp_path / "a.py").write_text("x\n")
    with Workspace(tmp_path) as ws:
        ws.read_many("*.py")
        assert "left out: 1 hidden" in ws.glob("*.py").text
