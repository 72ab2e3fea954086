"""Names and values that models send because of other products."""

from typing import Annotated, Any

import pytest

from agentfs import Policy, Toolset, Workspace, tool
from agentfs.arguments.hints import Name
from agentfs.habits.foreign_names import ALIASES, ALIASES_OF, EXPLAINING, TOOLS
from agentfs.tools.tool import Tool
from tests import kit
from tests.kit import described


@pytest.fixture
def ws(tmp_path):
    with Workspace(kit.put(tmp_path, ["src/a.py", "lib/b.py", "c.md"], "value\n")) as workspace:
        yield workspace


@pytest.mark.parametrize(("name", "sent", "meant", "arguments"), [
    ("view", {"path": "c.md"}, "read", {"path": "c.md"}),
    ("read_file", {"filePath": "c.md", "head": 1}, "read", {"path": "c.md", "limit": 1}),
    ("Read", {"file_path": "c.md"}, "read", {"path": "c.md"}),
    ("grep", {"pattern": "val", "filetypes": "py"}, "grep", {"pattern": "val", "type": "py"}),
    ("functions.read", {"path": "c.md"}, "read", {"path": "c.md"}),
    ("mcp__files__read", {"path": "c.md"}, "read", {"path": "c.md"}),
    ("rye/file-system/read", {"path": "c.md"}, "read", {"path": "c.md"}),
    ("search", {"query": "val", "path": "src"}, "grep", {"pattern": "val", "path": "src"}),
    ("grep_search", {"query": "val", "includePattern": "*.py"}, "grep", {"pattern": "val", "glob": "*.py"}),
    ("list_dir", {"relative_workspace_path": "src"}, "ls", {"path": "src"}),
    ("find_by_name", {"SearchDirectory": "src", "Pattern": "*.py"}, "glob",
     {"pattern": "*.py", "path": "src"}),
])  # fmt: skip
def test_names_of_other_products_are_called(ws, name, sent, meant, arguments):
    result = ws.tools().call(name, sent)
    assert result.success, result.content
    assert result.content == ws.tools().call(meant, arguments).content
    assert result.coercions


def test_changes_under_names_of_other_products_are_made(ws, tmp_path):
    tools = ws.tools("all")
    for name, arguments in (
        ("create_file", {"filePath": "new.txt", "content": "one\n"}),
        ("str_replace", {"path": "new.txt", "old_str": "one", "new_str": "two"}),
        ("rename", {"source": "new.txt", "destination": "moved.txt"}),
        ("create", {"path": "gone.txt", "file_text": ""}),
        ("delete_file", {"target_file": "gone.txt", "explanation": "not needed"}),
        ("undo", {"count": 1}),
    ):
        result = tools.call(name, arguments)
        assert result.success, (name, result.content)
    assert (tmp_path / "moved.txt").read_text() == "two\n"
    assert (tmp_path / "gone.txt").exists()


@pytest.mark.parametrize(("name", "parameter"), [("read", "end_line"), ("ls", "ignore")])
def test_regression_an_unlike_parameter_is_not_guessed(ws, name, parameter):
    """`end_line` was "did you mean `encoding`?", `ignore` was `include_ignored`."""
    answer = ws.tools().call(name, {"path": "c.md", parameter: 1})
    assert f'there is no parameter "{parameter}".' in answer.content, answer.content


@pytest.mark.parametrize("sent", [["lib", "src"], '["lib", "src"]'])
def test_a_search_takes_a_list_of_paths(ws, sent):
    for name, arguments in (
        ("grep", {"pattern": "value", "output_mode": "files_with_matches"}), ("glob", {"pattern": "*"}),
        ("ls", {}), ("replace", {"old_string": "value", "new_string": "other"}),
    ):  # fmt: skip
        result = ws.tools("all").call(name, {**arguments, "path": sent})
        assert result.success, result.content
        assert [each in result.content for each in ("src/a.py", "lib/b.py", "c.md")] == [True, True, False]


def test_regression_a_list_in_a_text_is_a_list_of_paths(ws):
    """`ls('["."]')` was the path of that name, which does not exist."""
    assert ws.tools().call("ls", {"path": '["."]'}).content == ws.tools().call("ls").content
    assert not ws.tools().call("glob", {"pattern": "[a]"}).data["files"], "a glob may begin with a bracket"


def test_a_read_from_line_0_begins_at_the_start(ws):
    assert ws.tools().call("read", {"path": "c.md", "offset": 0}).content == "1|value"


@pytest.mark.parametrize("name", ["search_files", "find_file", "tree", "codebase_search", "raed", 7, None])
def test_regression_an_unknown_name_runs_nothing_and_asks_nobody(tmp_path, name):
    """`search_files` ran a `grep` and a `glob`, and asked the user about both."""
    asked, events = [], []
    policy = Policy(ask=["*"], on_ask=lambda request: bool(asked.append(request)))
    with Workspace(tmp_path, policy=policy, on_event=events.append) as ws:
        result = ws.tools("all").call(name, {"pattern": "foo", "path": "."})
    assert result.error["code"] == "unknown_tool"
    assert "The tools are read, write" in result.content
    assert asked == []
    assert {kit.code(event) for event in events} <= {"", "unknown_tool"}


def test_foreign_options_are_unknown_parameters(ws, tmp_path):
    tools = ws.tools("all")
    for name, arguments in (
        ("write", {"path": "c.md", "content": "x", "overwrite": True}),
        ("read", {"path": "c.md", "start_line": 2}),
        ("grep", {"pattern": "x", "invert_match": True}), ("delete", {"path": "src", "force": True}),
        ("edit", {"path": "c.md", "old_string": "value", "new_string": "x", "dry_run": True}),
    ):  # fmt: skip
        result = tools.call(name, arguments)
        assert result.error["code"] == "invalid_argument", name
        assert "there is no parameter" in result.content
    assert (tmp_path / "c.md").read_text() == "value\n"


@pytest.mark.parametrize("name", "run bash shell exec_command execute Bash run_shell_command".split())  # noqa: SIM905 - one line
@pytest.mark.parametrize("sent", [
    {"command": "echo 'a b' >&2; exit 3"}, {"cmd": "echo 'a b' >&2; exit 3"},
    {"command": ["bash", "-lc", "echo 'a b' >&2; exit 3"]},
    {"command": "echo 'a b' >&2; exit 3", "workdir": "src"},
    {"command": "echo 'a b' >&2; exit 3", "timeout_ms": 9000, "description": "Print"},
])  # fmt: skip
def test_regression_a_shell_is_called_as_other_products_do(tmp_path, name, sent):
    """`bash` was "did you mean `delete`?", and `cmd`, a list, `workdir`, `timeout_ms` were unknown."""
    (tmp_path / "src").mkdir()
    with Workspace(tmp_path, policy=Policy(run="recorded")) as ws:
        result = ws.tools("all").call(name, sent)
    assert result.success, result.content
    assert (result.data["exit_status"], result.data["stderr"]) == (3, "a b\n")


def test_words_of_a_command_are_quoted(tmp_path):
    with Workspace(tmp_path, policy=Policy(run="recorded")) as ws:
        result = ws.tools(["run"]).call("run", {"command": ["echo", "a  b", "; ls"]})
    assert result.data["stdout"] == "a  b ; ls\n"


def own_functions():
    """Functions with the names and parameters of methods, declared as a user declares tools."""
    for method, parameter in (("read", "offset"), ("grep", "output_mode"), ("write", "content")):

        @tool(effect="read")
        @described
        def function(value: Annotated[Any, Name(parameter)] = "default") -> str:
            return repr(value)

        function.__name__ = method
        yield method, Tool(function=function, effect="read")


@pytest.mark.parametrize(("method", "given"), [*own_functions()], ids=["read", "grep", "write"])
def test_habits_do_not_change_the_arguments_of_a_users_own_tool(method, given):
    tools = Toolset([given])
    ((name, _),) = tools.schemas("mcp")[0]["inputSchema"]["properties"].items()
    for value in (0, "files", "x", '["x"]'):
        called = tools.call(method, {name: value})
        assert (called.content, called.coercions) == (repr(value), ())
    for other in TOOLS[method].split():
        assert tools.call(other, {"command": "view"}).error["code"] == "unknown_tool"
    assert not tools.call(method, {"explanation": "x"}).success


def test_the_tables_name_existing_parameters(ws):
    tools = {each.own_name: each for each in ws.tools("all")}
    known = {name for each in tools.values() for name in each.visible_names}
    assert ALIASES.keys() <= known | {"edits"}
    for method in ALIASES_OF.keys() & tools.keys():
        assert ALIASES_OF[method].keys() <= tools[method].visible_names.keys(), method
    names = [name for names in TOOLS.values() for name in names.split()]
    assert len(names) == len({*names})
    assert not {*EXPLAINING.split()} & known


def test_regression_a_line_id_may_be_sent_as_it_is_shown(ws):
    tools = ws.tools("all", expose={"read": ["line_ids"]})
    shown = tools.call("read", {"path": "c.md", "line_ids": True}).content.partition("|")[0]
    changes = [{"line_id": shown, "new_content": "other"}]
    assert tools.call("edit_lines", {"path": "c.md", "changes": changes}).success
    assert tools.call("read", {"path": "c.md"}).content == "1|other"


def test_regression_an_unknown_file_type_is_told_how_to_choose_files_by_name(ws):
    answer = ws.tools().call("grep", {"pattern": "a", "type": "xyz"}).content
    assert 'pass glob="*.xyz" and leave out type' in answer
    assert "xz" not in answer.replace("xyz", "")


@pytest.mark.parametrize(("name", "hint"), [
    ("TodoWrite", None), ("WebSearch", None), ("reads", "read"), ("gerp", "grep"),
])  # fmt: skip
def test_regression_only_a_misspelt_tool_is_guessed(ws, name, hint):
    answer = ws.tools("all").call(name, {})
    assert answer.error["code"] == "unknown_tool"
    assert ("did you mean" in answer.content) is bool(hint)
    assert not hint or f"did you mean `{hint}`?" in answer.content


def test_regression_undo_of_a_path_without_steps_says_so(ws):
    tools = ws.tools("all")
    tools.call("append", {"path": "b.py", "content": "x"})
    answer = tools.call("undo", {"paths": ["c.md"]}).content
    assert answer.startswith("There is nothing to undo. No step that can be undone has changed these paths.")
