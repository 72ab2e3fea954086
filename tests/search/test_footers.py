"""Footers of searches: totals, names that were left out, and tree listings."""

import pytest

from agentfs import Limits, Workspace
from tests import kit

FOOTER = "left out: 2 hidden, 1 ignored by .gitignore:1 *.log"


@pytest.fixture
def ws(tmp_path):
    for name in (".gitignore", ".hidden", "a.py", "b.py", "x.log", ".git/config", "src/c.py", "src/.d"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("value\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "bin.dat").write_bytes(b"\0")
    with Workspace(tmp_path) as workspace:
        yield workspace


@pytest.mark.parametrize(
    ("method", "arguments"),
    [("ls", {}), ("glob", {"pattern": "*"}), ("find", {}), ("grep", {"pattern": "value"})],
)
def test_hidden_and_ignored_names_are_reported_once_for_a_run_of_calls(ws, tmp_path, method, arguments):
    call = kit.method(ws, method)
    first = call(**arguments)
    again = call(**arguments)
    assert "left out" in first.text
    assert "left out" not in again.text
    assert again.text == first.text.rpartition("\n")[0]
    assert again.to_dict()["skipped"] == first.to_dict()["skipped"]
    assert again.skipped.hidden
    (tmp_path / ".another").touch()
    assert f"left out: {first.skipped.hidden + 1} hidden" in call(**arguments).text
    assert "left out" not in call(**arguments).text
    ws.forget()
    assert "left out" in call(**arguments).text


def test_regression_every_answer_says_what_makes_it_incomplete(ws, tmp_path):
    (tmp_path / ".env").write_text("value\n")
    (tmp_path / "key.pem").write_text("value\n")
    (tmp_path / "large.py").write_bytes(b"value\n" + (b"x" * 99 + b"\n") * 110_000)
    (tmp_path / "wide.py").write_bytes("value\n".encode("utf-16") + b"\x00")
    (tmp_path / "link.py").symlink_to("a.py")
    incomplete = "left out: 1 protected by the policy, 1 too large, 1 undecodable, 1 link"
    found = kit.grep(ws, "value", max_filesize="10M")
    advice = " (pass include_ignored=true), "
    assert f"{FOOTER.replace('2 hidden', '4 hidden')}{advice}{incomplete[10:]}" in found.text
    incomplete = incomplete.replace("1 too large, ", "")
    ws.grep("value")
    for toolset in (ws.tools(), ws.tools(["grep"]), ws.tools()):
        content = toolset.call("grep", {"pattern": "value"}).content
        assert content.endswith(f"{incomplete}]")
        assert "hidden" not in content


@pytest.mark.parametrize("mode", ["content", "files_with_matches", "count", "summary", "total"])
def test_every_output_mode_says_what_makes_the_answer_incomplete_each_time(ws, tmp_path, mode):
    (tmp_path / "key.pem").write_text("value\n")
    (tmp_path / "large.py").write_bytes(b"value\n" * 200)
    for pattern in ("value", "value", "valu[e]", "absent", "absent"):
        text = kit.grep(ws, pattern, output_mode=mode, max_filesize=1000).text
        assert "1 protected by the policy, " in text
        assert "1 too large" in text


def test_a_search_that_only_has_room_for_its_totals_still_says_what_it_left_out(tmp_path):
    (tmp_path / "a.py").write_text("value " * 1000)
    (tmp_path / "key.pem").write_text("value\n")
    with Workspace(tmp_path, limits=Limits(output_tokens=30, grep_line_chars=10_000)) as ws:
        result = ws.grep("value")
        assert result.text == "1000 matches on 1 line in 1 file.\n[left out: 1 protected by the policy]"


def test_another_directory_has_its_own_footer(ws):
    assert FOOTER in ws.ls().text
    assert "left out: 1 hidden" in ws.ls("src").text
    assert "left out" not in ws.ls().text


@pytest.mark.parametrize("repeats", range(2))
def test_every_answer_without_matches_reports_all_that_was_left_out(ws, repeats):
    for _ in range(1 + repeats):
        text = ws.grep("no such text").text
        assert (
            "left out: 3 hidden, 1 ignored by .gitignore:1 *.log, "  # a short search looked there too
            "1 version control directory, 1 binary" in text
        )
        assert "1 version control directory" in ws.glob("*.rs").text


def test_binary_and_git_are_not_reported_if_something_is_found(ws):
    found = ws.grep("value")
    assert (found.skipped.vcs, found.skipped.binary) == (1, 1)
    assert "version control" not in found.text
    assert "binary" not in found.text


def test_few_matches_that_are_all_shown_are_not_counted(ws):
    assert ws.grep("value", "a.py").text == "a.py\n1|value"
    assert "[2 matches on 1 line in 1 file]" in ws.grep("[ae]", "a.py").text
    assert "[3 matching lines in 3 files; shown: 1-1; more: " in ws.grep("value", limit=1).text


def test_many_names_are_listed_below_their_directories(tmp_path):
    (tmp_path / "many/deep/er").mkdir(parents=True)
    for number in range(15):
        (tmp_path / "many" / f"f{number:02}.py").touch()
        (tmp_path / "many/deep/er" / f"g{number:02}.py").write_text("value\n" * 20000)
    (tmp_path / "many/deep/one.py").touch()
    (tmp_path / "many/deep/ blank.py").touch()
    (tmp_path / "last.py").touch()
    with Workspace(tmp_path) as ws:
        files = [f" f{n:02}.py" for n in range(15)]
        found = ws.glob("*.py").text.split("\n")
        assert found[:4] == ["last.py", "many/deep/ blank.py", "many/", " deep/"]
        assert found[4:7] == ["  er/", "   g00.py", "   g01.py"]
        assert found[20:] == ["  one.py", *files]
        tree = ws.ls(depth=0).text.split("\n")
        sized = [f"   g{n:02}.py  117 KB" for n in range(15)]
        assert tree[:3] == ["many/", " deep/", "  er/"]
        assert tree[3:18] == sized
        assert tree[18:] == ["many/deep/ blank.py", "many/", " deep/one.py", *files, "last.py"]
        page = ws.ls(depth=0, offset=21, limit=21).text.split("\n")
        assert page[:2] == ["many/f01.py", "many/f02.py"], "a page goes on in the order of the whole list"
        assert ws.ls("many/deep").text.split("\n")[-1] == "many/deep/one.py"
        counted = ws.grep("value", output_mode="count")
        assert counted.text.split("\n")[0] == "many/deep/er/g00.py: 20000"
