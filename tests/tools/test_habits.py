"""Habits of models: lists of paths, lines from 0, `-c`, insertions, questions in place of patterns."""

import pytest

from agentfs import Workspace
from agentfs.errors import InvalidArgumentError


@pytest.fixture
def tools(tmp_path):
    for name in ("src/a.py", "lib/b.py", "c.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("value\n")
    with Workspace(tmp_path) as ws:
        yield ws.tools("all")


@pytest.mark.parametrize("name", ["path", "paths"])
@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("grep", {"pattern": "value", "output_mode": "files_with_matches"}),
        ("glob", {"pattern": "*"}),
        ("find", {"types": "f"}),
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


def test_a_read_of_several_paths_names_the_call_that_reads_them(tools):
    for name in ("path", "paths", "files"):
        result = tools.call("read", {name: ["c.md", "src/a.py"]})
        assert result.content.endswith('Call read_many(paths=["c.md", "src/a.py"]).')
        assert tools.call("read", {name: ["c.md"]}).content == "1|value"


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


@pytest.mark.parametrize("name", ["insert", "edit", "str_replace_editor"])
@pytest.mark.parametrize("text", ["new_str", "insert_text"])
def test_a_model_may_insert_as_in_the_editor_of_anthropic(tools, tmp_path, name, text):
    for line, content in enumerate(("x\nvalue\n", "x\nvalue\n\nlast\n")):
        sent = {"path": "c.md", "insert_line": line * 2, text: "x\n" if line == 0 else "\nlast\n"}
        result = tools.call(name, {**sent, "command": "insert"} if name == "str_replace_editor" else sent)
        assert result.success, result.content
        assert (tmp_path / "c.md").read_text() == content
    assert "within the range of lines of the file: [0, 4]" in (
        tools.call("insert", {"path": "c.md", "insert_line": 5, "insert_text": "x"}).content
    )


def test_prose_for_a_search_by_meaning_becomes_a_pattern_of_its_words(tools):
    result = tools.call("codebase_search", {"query": "Where is the value of a setting computed?"})
    suggested = 'grep(pattern="value|setting|computed", output_mode="summary", ignore_case=true)'
    assert suggested in result.content
    assert tools.call("grep", {"pattern": "value|setting|computed", "output_mode": "summary"}).success
