"""Habits of models: lists of paths, lines from 0, `-c`, insertions."""

import pytest

from agentfs import Toolset, Workspace
from agentfs.errors import InvalidArgumentError
from agentfs.habits.meanings import HABITS, REASONS
from agentfs.habits.parameter_names import ALIASES


def plant(root):
    for name in ("src/a.py", "lib/b.py", "c.md"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("value\n")
    return root


@pytest.fixture
def tools(tmp_path):
    with Workspace(plant(tmp_path)) as ws:
        yield ws.tools("all")


@pytest.fixture(scope="module")
def shared_tools(tmp_path_factory):
    """The tools for tests that change nothing."""
    with Workspace(plant(tmp_path_factory.mktemp("habits"))) as ws:
        yield ws.tools("all")


@pytest.mark.parametrize("name", ["path", "paths"])
@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("grep", {"pattern": "value", "output_mode": "files_with_matches"}),
        ("glob", {"pattern": "*"}),
        ("ls", {}),
        ("replace", {"old_string": "value", "new_string": "other"}),
    ],
)
def test_a_search_takes_a_list_of_paths(tools, method, arguments, name):
    result = tools.call(method, {**arguments, name: ["lib", "src"]})
    assert result.success, result.content
    assert "src/a.py" in result.content
    assert "lib/b.py" in result.content
    assert "c.md" not in result.content


def test_the_path_of_cursor_is_taken(tools):
    assert tools.call("list_dir", {"relative_workspace_path": "src"}).content == "src/a.py"


def test_a_glob_takes_a_list_of_patterns(tools):
    assert tools.call("glob", {"pattern": ["*.md", "src/*"]}).content == "c.md\nsrc/a.py"


def test_the_schemas_show_one_path(tools):
    schemas = {each["name"]: each["inputSchema"]["properties"] for each in tools.schemas("mcp")}
    assert schemas["grep"]["path"]["type"] == schemas["glob"]["pattern"]["type"] == "string"


def test_c_counts_if_it_is_true_and_is_context_if_it_is_a_number(tools):
    assert tools.call("grep", {"pattern": "value", "path": "src", "-c": True}).content.startswith(
        "src/a.py: 1"
    )
    for name in ("-c", "-C", "C"):
        assert tools.call("grep", {"pattern": "value", "path": "src", name: 3}).content == "src/a.py\n1|value"


def test_a_change_of_several_paths_names_the_calls_and_changes_nothing(tools):
    result = tools.call("edit", {"paths": ["c.md", "src/a.py"], "old_string": "value", "new_string": "x"})
    assert 'edit(old_string="value", new_string="x", path="c.md") and edit(' in result.content
    assert "nothing was done" in tools.call("delete", {"path": ["c.md", "src/a.py"]}).content
    assert tools.call("grep", {"pattern": "value", "output_mode": "total"}).content.startswith("3 matching")


def test_a_read_from_line_0_begins_at_the_start_for_a_model_only(tools, tmp_path):
    for arguments in (
        {"offset": 0},
        {"offset": "0"},
        {"start_line": 0, "end_line": 1},
        {"view_range": [0, 1]},
    ):
        assert tools.call("read", {"path": "c.md", **arguments}).content == "1|value"
    with Workspace(tmp_path) as ws, pytest.raises(InvalidArgumentError):
        ws.read("c.md", offset=0)


@pytest.mark.parametrize("editor", ["str_replace_editor", "str_replace_based_edit_tool", "text_editor"])
def test_every_command_of_the_text_editors_is_run(tools, tmp_path, editor):
    def run(command, **arguments):
        return tools.call(editor, {"command": command, "path": "e.txt", **arguments})

    assert run("create", file_text="one\ntwo\n").success
    assert run("view").content == "1|one\n2|two"
    assert run("view", view_range=[2, 2]).content.startswith("2|two")
    assert tools.call(editor, {"command": "view", "path": "src"}).success
    assert run("str_replace", old_str="two", new_str="three").success
    assert (tmp_path / "e.txt").read_text() == "one\nthree\n"
    assert tools.call("write", {"path": "other.txt", "content": "x"}).success
    assert run("undo_edit").success
    assert (tmp_path / "e.txt").read_text() == "one\ntwo\n"
    assert (tmp_path / "other.txt").exists()


PROSE = [
    "Where is the config loaded?",
    "qqq",
    "qqq.py",
    "src/qqq",
    "*.qqq",
    "find all the files with tests",
    "(",
]


@pytest.mark.parametrize(
    "name",
    ["find_file", "file_search", "search_file", "search_files", "tree", "directory_tree", "codebase_search"],
)
@pytest.mark.parametrize("text", [*PROSE, "value", "a.py", "src", "*.md"])
@pytest.mark.parametrize("parameter", ["query", "pattern", "path"])
def test_no_suggested_call_finds_nothing(shared_tools, name, text, parameter):
    result = shared_tools.call(name, {parameter: text})
    assert result.error["code"] == "unknown_tool"
    for call in result.data["details"].get("suggested_calls", []):
        found = shared_tools.call(call["name"], call["arguments"])
        assert found.success
        assert found.data.get("total_matches", found.data.get("total")) > 0
    assert "`" in result.content or "Call " in result.content


def test_a_call_that_finds_something_is_suggested_alone(tools):
    assert 'Call glob(pattern="*a.py*").' in tools.call("search_files", {"pattern": "a.py"}).content
    assert 'Call grep(pattern="value").' in tools.call("search_files", {"pattern": "value"}).content
    assert "Call `grep` or `glob`." in tools.call("search_files", {"pattern": "qqq"}).content


def test_delete_takes_r_for_recursive_and_no_other_option_of_rm(tools, tmp_path):
    for name in ("delete", "rm", "remove"):
        for option in ("force", "f", "rf"):
            refused = tools.call(name, {"path": "src", option: True})
            assert refused.error["code"] == "invalid_argument"
    assert (tmp_path / "src/a.py").exists()
    assert tools.call("rm", {"path": "src", "-r": True}).success
    assert not (tmp_path / "src").exists()


def test_a_write_that_appends_names_the_call_that_does(tools, tmp_path):
    sent = {"path": "c.md", "content": "more\n", "append": True}
    refused = tools.call("write", sent)
    (suggested,) = refused.data["details"]["suggested_calls"]
    assert suggested == {"name": "append", "arguments": {"path": "c.md", "content": "more\n"}}
    assert tools.call(suggested["name"], suggested["arguments"]).success
    assert (tmp_path / "c.md").read_text() == "value\nmore\n"
    with Workspace(tmp_path) as ws:
        assert "edit its last lines" in ws.tools().call("write", sent).content


@pytest.mark.parametrize(("mode", "meant"), [
    ("files", "files_with_matches"), ("filenames", "files_with_matches"), ("list", "files_with_matches"),
    ("matches", "content"), ("lines", "content"), ("counts", "count"), ("count_matches", "count"),
])  # fmt: skip
def test_other_names_of_an_output_mode_are_taken(tools, mode, meant):
    given = {"pattern": "value"}
    found = tools.call("grep", {**given, "output_mode": mode})
    assert found.content == tools.call("grep", {**given, "output_mode": meant}).content
    assert found.coercions
    assert tools.call("grep", {**given, "mode": mode}).content == found.content
    assert not tools.call("grep", {**given, "output_mode": meant}).coercions
    unknown = tools.call("grep", {**given, "output_mode": "html"})
    assert "`output_mode` must be one of" in unknown.content


@pytest.mark.parametrize(
    "name",
    [
        "insert_edit_into_file",
        "apply_patch",
        "apply_diff",
        "insert_content",
        "replace_lines",
        "notebook_edit",
    ],
)
def test_other_ways_to_change_a_file_name_the_tool_that_does(tools, name):
    refused = tools.call(name, {"path": "c.md", "diff": "x"})
    assert refused.error["code"] == "unknown_tool"
    assert "Call `edit`." in refused.content


@pytest.mark.parametrize(("name", "sent"), [
    ("replace_in_file", {"diff": "<<<<<<< SEARCH\nvalue\n=======\nother\n>>>>>>> REPLACE"}),
    ("edit", {"line": 1, "content": "x\n"}),
])  # fmt: skip
def test_a_way_to_change_a_file_that_is_not_translated_is_refused(tools, tmp_path, name, sent):
    refused = tools.call(name, {"path": "c.md", **sent})
    assert refused.error["code"] == "invalid_argument"
    assert "edit takes path (required), old_string (required)" in refused.content
    assert (tmp_path / "c.md").read_text() == "value\n"


def test_an_edit_that_is_said_not_to_be_a_regex_is_made(tools):
    sent = {"path": "c.md", "search": "value", "replace": "other"}
    assert not tools.call("search_and_replace", {**sent, "use_regex": True}).success
    assert tools.call("search_and_replace", {**sent, "use_regex": False}).success


def test_a_list_of_definitions_is_a_search_for_them(tools, tmp_path):
    (tmp_path / "src/a.py").write_text("class A:\n    def f(self): ...\n")
    told = tools.call("list_code_definition_names", {"path": "src"})
    (proposed,) = told.data["details"]["suggested_calls"]
    assert proposed["name"] == "grep"
    assert tools.call(**proposed).content == "src/a.py\n1|class A:\n2|    def f(self): ..."


def test_the_root_of_a_machine_names_the_root_of_the_workspace(tools):
    """Without a word of comment, as for `/` in a glob."""
    assert tools.call("list_dir", {"path": "/"}).content == tools.call("list_dir", {"path": "."}).content


def test_file_path_means_path_for_a_method_and_not_for_a_users_own_read(tools):
    def read(path: str) -> str:
        """Read.

        Args:
            path: File.
        """
        return path

    assert tools.call("read", {"file_path": "c.md"}).success
    refused = Toolset([read]).call("read", {"file_path": "c.md"})
    assert "did you mean `path`?" in refused.content
    assert Toolset([read]).call("read", {"Path": "c.md"}).content == "c.md"


def test_no_habit_of_any_parameter_applies_to_a_users_own_tool():
    aliases = {
        (name, alias)
        for table in (ALIASES, *(each.aliases for each in HABITS.values()))
        for name, others in table.items()
        for alias in others.split()
    }
    for name, alias in aliases:
        own: dict[str, object] = {}
        exec(f"def own({name}: str = ''):\n    'Do.\\n\\nArgs:\\n    {name}: It.'\n    return {name}", own)
        sent = [alias, *(habit.name for habit in REASONS)]
        for each in set(sent) - {name}:
            called = Toolset([own["own"]]).call("own", {each: "x"})
            assert f'there is no parameter "{each}"' in called.content, (name, each)
