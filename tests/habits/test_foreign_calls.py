"""Tool and parameter names of other products: translated if unambiguous, else refused with suggestions."""

import json
from typing import Annotated, Any

import pytest

from agentfs import Toolset, Workspace
from agentfs.arguments.hints import Name
from agentfs.habits.meanings import HABITS
from agentfs.habits.parameter_names import ALIASES, snake_case
from agentfs.habits.tool_names import AMBIGUOUS
from agentfs.tools.tool import Tool, exposable, tool
from tests.tool_calls import accepts

TEN = "".join(f"line {number}\n" for number in range(1, 11))


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "ten.txt").write_text(TEN)
    (tmp_path / "src" / "foo.py").write_text("Foo(x)\nfoo(x)\nother\nfoobar\n")
    (tmp_path / ".hidden.py").write_text("foo\n")
    (tmp_path / "top.py").write_text("foo = 1\n")
    return tmp_path


@pytest.fixture
def ws(tree):
    with Workspace(tree) as opened:
        yield opened


# Both calls of a row must return the same: the one of another product, and the one that it means.
READ = {"path": "src/ten.txt"}
FROM_3_TO_5 = {**READ, "offset": 3, "limit": 3}
SAME_PARAMETERS = [
    ("read", {**READ, "start_line": 3, "end_line": 5}, FROM_3_TO_5),
    ("read", {**READ, "startLine": "3", "endLine": "5"}, FROM_3_TO_5),
    ("read", {"target_file": "src/ten.txt", "should_read_entire_file": False, "explanation": "to see it",
              "start_line_one_indexed": 3, "end_line_one_indexed_inclusive": 5}, FROM_3_TO_5),
    ("read", {**READ, "view_range": [3, 5]}, FROM_3_TO_5),
    ("read", {**READ, "view_range": "[3, 5]"}, FROM_3_TO_5),
    ("read", {**READ, "line_range": "3-5"}, FROM_3_TO_5),
    ("read", {**READ, "view_range": [3, -1]}, {**READ, "offset": 3}),
    ("read", {**READ, "start_line": 3}, {**READ, "offset": 3}),
    ("read_text_file", {**READ, "head": 3}, {**READ, "limit": 3}),
    ("read_text_file", {**READ, "tail": 3}, {**READ, "offset": -3}),
    ("read", {**READ, "end_line": 5}, {**READ, "offset": 1, "limit": 5}),
    ("read", {**READ, "start_line": None, "end_line": None}, READ),
    ("read", {**READ, "should_read_entire_file": True, "start_line": 3, "end_line": 5}, READ),
    ("read", {**READ, "start_line": 3, "offset": 3}, {**READ, "offset": 3}),
    ("grep", {"pattern": "foo", "-n": True}, {"pattern": "foo"}),
    ("grep", {"pattern": "foo", "-i": True}, {"pattern": "foo", "ignore_case": True}),
    ("grep", {"pattern": "other", "-C": 1}, {"pattern": "other", "context": 1}),
    ("grep", {"pattern": "foo", "case_sensitive": False}, {"pattern": "foo", "ignore_case": True}),
    ("grep", {"pattern": "foo", "caseSensitive": True}, {"pattern": "foo"}),
    ("grep", {"pattern": "foo", "recursive": True}, {"pattern": "foo"}),
    ("grep", {"pattern": "foo", "-l": True}, {"pattern": "foo", "output_mode": "files_with_matches"}),
    ("grep", {"pattern": "foo", "includePattern": "*.txt"}, {"pattern": "foo", "glob": "*.txt"}),
    ("grep", {"pattern": "foo(", "literal": True}, {"pattern": r"foo\("}),
    ("grep", {"pattern": "foo(", "fixed_strings": True}, {"pattern": r"foo\("}),
    ("grep", {"pattern": "foo(", "-F": True}, {"pattern": r"foo\("}),
    ("grep", {"pattern": "foo(", "isRegexp": False}, {"pattern": r"foo\("}),
    ("grep", {"pattern": "foo", "-w": True}, {"pattern": r"\bfoo\b"}),
    ("grep", {"pattern": "foo", "respect_git_ignore": False}, {"pattern": "foo", "include_ignored": True}),
    ("grep", {"pattern": "foo", "case_sensitive": None, "-n": None}, {"pattern": "foo"}),
    ("ls", {"recursive": True}, {"depth": 0}),
    ("ls", {"path": "src", "recursive": "false"}, {"path": "src", "depth": 1}),
    ("ls", {"show_hidden": True}, {"include_ignored": True}),
    ("glob", {"pattern": "*.py", "case_sensitive": True, "recursive": True}, {"pattern": "*.py"}),
    ("glob", {"name": "*.py"}, {"pattern": "*.py"}),
    ("glob", {"pattern": "*.py", "recursive": False}, {"pattern": "/*.py"}),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "sent", "meant"), SAME_PARAMETERS, ids=str)
def test_parameters_of_other_products_are_translated(ws, tool, sent, meant):
    tools = ws.tools()
    result = tools.call(tool, sent)
    assert result.success, result.content
    expected = ws.tools().call(tool.removesuffix("_text_file"), meant)
    assert result.content.split("\n[")[0] == expected.content.split("\n[")[0]
    assert result.coercions


@pytest.mark.parametrize(("sent", "lines"), [
    ({"-A": 1}, ["3|other", "4-foobar"]), ({"-B": 1}, ["2-foo(x)", "3|other"]),
    ({"after_context": 1}, ["3|other", "4-foobar"]), ({"before_context": "1"}, ["2-foo(x)", "3|other"]),
    ({"-B": 1, "-A": 1, "-n": True}, ["2-foo(x)", "3|other", "4-foobar"]),
])  # fmt: skip
def test_context_options_of_ripgrep_are_accepted(ws, sent, lines):
    result = ws.tools().call("grep", {"pattern": "other", "path": "src", "context": 0, **sent})
    assert [line for line in result.content.split("\n")[1:] if line[:1] != "["] == lines


@pytest.mark.parametrize(("tool", "sent", "message"), [
    ("read", {**READ, "start_line": 5, "end_line": 3}, "there are no lines 5 to 3"),
    ("read", {**READ, "tail": 3, "start_line": 3}, "`offset` is given twice"),
    ("read", {**READ, "view_range": [5]}, "the first line and the last"),
    ("read", {**READ, "start_line": 2, "offset": 3}, "given twice"),
    ("read", {**READ, "start_line": "two"}, "`start_line` must be an integer"),
    ("glob", {"pattern": "*.py", "case_sensitive": False}, "[Rr]eadme"),
    ("write", {"path": "new", "content": "x", "append": True}, 'call append(path="new", content="x")'),
    ("edit", {**READ, "old_string": "line 3", "new_string": "x", "expected_replacements": "no"}, "integer"),
    ("edit", {**READ, "old_string": "line 3", "new_string": "x", "expected_replacements": 0}, "1 or more"),
    ("move", {"path": "src/foo.py", "new_name": "bar.py"}, 'move(path="src/foo.py", to="src/bar.py")'),
    ("multi_edit", {**READ, "edits": [{"old_string": "a", "new_string": "b"}], "old_string": "a"}, "`edits`"),
    ("multi_edit", {**READ, "edits": [{"old_string": "a", "new_string": "b"}], "replace_all": True}, "own"),
    ("glob", {"pattern": "**/*.py", "recursive": False}, "recursive"),
    ("grep", {"pattern": "x", "invert_match": True}, 'no parameter "invert_match"'),
    ("delete", {"path": "src", "force": True}, 'no parameter "force"'),
    ("move", {"path": "top.py", "to": "src/foo.py", "overwrite": True}, 'no parameter "overwrite"'),
    ("read", {**READ, "end_line": 5, "limit": 2}, "`limit` is given twice"),
])  # fmt: skip
def test_an_ambiguous_parameter_is_refused_and_nothing_is_changed(ws, tree, tool, sent, message):
    result = ws.tools("all").call(tool, sent)
    assert result.error is not None
    assert result.error["code"] == "invalid_argument"
    assert message in result.content
    assert (tree / "src" / "ten.txt").read_text() == TEN
    assert not (tree / "new").exists()


@pytest.mark.parametrize(
    ("expected", "found"), [(2, "occurs 3 times"), (4, "3 times, not 4"), (3, ""), (1, "3")]
)
def test_an_expected_number_of_replacements_is_checked_before_anything_is_written(ws, tree, expected, found):
    sent = {"file_path": "src/foo.py", "old_string": "o", "new_string": "0", "instruction": "zeros",
            "expected_replacements": expected}  # fmt: skip
    (tree / "src" / "foo.py").write_text("o o\no\n")
    result = ws.tools().call("replace", sent)
    if expected == 3:
        assert result.success, result.content
        assert (tree / "src" / "foo.py").read_text() == "0 0\n0\n"
        return
    assert result.error is not None
    assert result.error["code"] == "ambiguous"
    assert "3 times" in result.content
    assert (tree / "src" / "foo.py").read_text() == "o o\no\n"


def test_the_suggested_number_of_replacements_succeeds(ws, tree):
    (tree / "a.txt").write_text("o o\n")
    tools = ws.tools()
    sent = {"path": "a.txt", "old_string": "o", "new_string": "0", "expected_replacements": 5}
    (advised,) = tools.call("edit", sent).data["details"]["suggested_calls"]
    assert tools.call(advised["name"], advised["arguments"]).success
    assert (tree / "a.txt").read_text() == "0 0\n"


def test_overwrite_from_a_model_does_not_bypass_the_policy(ws, tree):
    tools = ws.tools()
    refused = tools.call("write", {"path": "top.py", "content": "x", "overwrite": True})
    assert refused.error is not None
    assert refused.error["code"] == "unread"
    assert tools.call("read", {"path": "top.py"}).success
    kept = tools.call("write", {"path": "top.py", "content": "x", "overwrite": False})
    assert kept.error is not None
    assert kept.error["code"] == "already_exists"
    assert tools.call("write", {"path": "top.py", "content": "x", "overwrite": True}).success
    assert (tree / "top.py").read_text() == "x"


def test_a_dry_run_writes_nothing(ws, tree):
    sent = {"path": "top.py", "edits": [{"oldText": "foo", "newText": "bar"}], "dryRun": True}
    result = ws.tools().call("edit_file", sent)
    assert result.success, result.content
    assert "Preview" in result.content
    assert (tree / "top.py").read_text() == "foo = 1\n"


EDITS = [{"old_string": "Foo(x)", "new_string": "Bar(x)"}, {"old_string": "other", "new_string": "this"}]
SAME_FILE = [{**EDITS[0], "path": "src/foo.py"}, {**EDITS[1], "filePath": "src/foo.py"}]


@pytest.mark.parametrize(("tool", "sent"), [
    ("multi_edit", {"edits": SAME_FILE}),
    ("multi_edit", {"edits": json.dumps(SAME_FILE)}),
    ("multi_edit", {"path": "src/foo.py", "edits": SAME_FILE}),
    ("multi_edit", {"path": "src/foo.py", "edits": [SAME_FILE[0], EDITS[1]]}),
    ("edit", {"path": "src/foo.py", "edits": EDITS}),
    ("edit", {"edits": SAME_FILE}),
    ("MultiEdit", {"file_path": "src/foo.py", "edits": EDITS}),
    ("multiedit", {"filePath": "src/foo.py", "edits": [
        {"oldString": each["old_string"], "newString": each["new_string"]} for each in EDITS]}),
    ("replace_file_content", {"TargetFile": "src/foo.py", "Instruction": "why", "ReplacementChunks": [
        {"TargetContent": each["old_string"], "ReplacementContent": each["new_string"]}
        for each in EDITS]}),
    ("multi_replace_string_in_file", {"explanation": "why", "replacements": [
        {"filePath": "src/foo.py", "oldString": each["old_string"], "newString": each["new_string"]}
        for each in EDITS]}),
])  # fmt: skip
def test_edits_of_one_file_are_one_multi_edit(ws, tree, tool, sent):
    result = ws.tools().call(tool, sent)
    assert result.success, result.content
    assert (tree / "src" / "foo.py").read_text() == "Bar(x)\nfoo(x)\nthis\nfoobar\n"
    assert result.coercions


def test_edits_of_several_files_are_refused_with_a_call_for_each(ws, tree):
    tools = ws.tools(prefix="fs_")
    sent = {"edits": [SAME_FILE[0], {"path": "top.py", "old_string": "foo", "new_string": "bar"}]}
    result = tools.call("fs_multi_edit", sent)
    assert not result.success
    assert (tree / "src" / "foo.py").read_text().startswith("Foo")
    calls = result.data["details"]["suggested_calls"]
    assert [call["arguments"]["path"] for call in calls] == ["src/foo.py", "top.py"]
    assert 'fs_multi_edit(path="top.py", edits=' in result.content
    assert all(tools.call(call["name"], call["arguments"]).success for call in calls)
    assert (tree / "top.py").read_text() == "bar = 1\n"


def test_replace_accepts_aliases_and_filters(ws, tree):
    tools = ws.tools("all")
    sent = {"old_str": "foo", "new_str": "bar", "include": "*.py", "whole_word": True}
    preview = tools.call("replace", {**sent, "dry_run": True})
    assert preview.success, preview.content
    assert (tree / "top.py").read_text() == "foo = 1\n"
    assert not tools.call("replace", {**sent, "expected_replacements": 7}).success
    assert tools.call("replace", {**sent, "expected_replacements": 2}).success
    assert (tree / "top.py").read_text() == "bar = 1\n"
    assert (tree / "src" / "foo.py").read_text() == "Foo(x)\nbar(x)\nother\nfoobar\n"
    assert tools.call("replace", {"old_string": "b.r", "new_string": "foo", "use_regex": True}).success
    assert (tree / "top.py").read_text() == "foo = 1\n"


def test_replace_takes_pattern_and_replacement(ws, tree):
    sent = {"pattern": "foo", "replacement": "bar", "path": "top.py"}
    assert ws.tools("all").call("replace", sent).success
    assert (tree / "top.py").read_text() == "bar = 1\n"


def test_one_replacement_sent_to_multi_edit_is_one_edit(ws, tree):
    sent = {"path": "top.py", "old_string": "foo", "new_string": "bar"}
    assert ws.tools().call("multi_edit", sent).success
    assert (tree / "top.py").read_text() == "bar = 1\n"


SAME_CALLS = [
    ("view", {"path": "top.py"}, "read", {"path": "top.py"}),
    ("read_file", {"filePath": "src/ten.txt", "startLine": 3, "endLine": 5}, "read", FROM_3_TO_5),
    ("Read", {"file_path": "top.py"}, "read", {"path": "top.py"}),
    ("functions.read", {"path": "top.py"}, "read", {"path": "top.py"}),
    ("mcp__files__read", {"path": "top.py"}, "read", {"path": "top.py"}),
    ("str_replace_editor", {"command": "view", "path": "src/ten.txt", "view_range": [3, 5]}, "read",
     FROM_3_TO_5),
    ("search", {"query": "foo", "path": "src"}, "grep", {"pattern": "foo", "path": "src"}),
    ("grep_search", {"query": "foo", "includePattern": "*.py"}, "grep", {"pattern": "foo", "glob": "*.py"}),
    ("list_dir", {"path": "src"}, "ls", {"path": "src"}),
    ("list_directory", {"dir_path": "src"}, "ls", {"path": "src"}),
    ("search_for_pattern", {"substring_pattern": "foo", "relative_path": "src"}, "grep",
     {"pattern": "foo", "path": "src"}),
    ("find_by_name", {"SearchDirectory": "src", "Pattern": "*.py"}, "glob",
     {"pattern": "*.py", "path": "src"}),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "sent", "meant", "arguments"), SAME_CALLS, ids=str)
def test_tool_names_of_other_products_are_called(ws, tool, sent, meant, arguments):
    result = ws.tools().call(tool, sent)
    assert result.success, result.content
    assert result.content.split("\n[")[0] == ws.tools().call(meant, arguments).content.split("\n[")[0]
    assert result.coercions[0].parameter == "tool name"
    assert result.coercions[0].rule.endswith(f'as "{meant}"')


def test_changes_under_tool_names_of_other_products_are_made(ws, tree):
    tools = ws.tools("all")
    calls = [
        ("create_file", {"filePath": "new.txt", "content": "one\n"}),
        ("str_replace", {"path": "new.txt", "old_str": "one", "new_str": "two"}),
        ("rename", {"source": "new.txt", "destination": "moved.txt"}),
        ("rename_file", {"path": "moved.txt", "new_name": "last.txt"}),
        ("create", {"path": "gone.txt", "file_text": ""}),
        ("delete_file", {"target_file": "gone.txt", "explanation": "not needed"}),
        ("checkpoint", {"label": "here"}),
        ("write_to_file", {"path": "more.txt", "content": "x\n", "line_count": 1}),
        ("create_file", {"path": "other.txt", "content": "", "create_directories": True}),
        ("undo", {"count": 1}),
    ]
    for name, arguments in calls:
        result = tools.call(name, arguments)
        assert result.success, (name, result.content)
    assert (tree / "last.txt").read_text() == "two\n"
    assert (tree / "more.txt").exists()
    assert not (tree / "other.txt").exists()
    assert tools.call("rollback", {"name": "here"}).success
    assert not (tree / "more.txt").exists()
    assert not (tree / "gone.txt").exists()


def test_an_unknown_name_gets_the_nearest_name_and_the_tools(ws):
    result = ws.tools().call("greb", {"pattern": "foo"})
    assert result.error is not None
    assert result.error["code"] == "unknown_tool"
    assert 'no tool "greb" (did you mean `grep`?)' in result.content
    assert "The tools are read, write" in result.content


@pytest.mark.parametrize(("tool", "sent", "calls"), [
    ("find_file", {"pattern": "*.py", "path": "src"}, ['glob(pattern="*.py", path="src")']),
    ("file_search", {"query": "foo"}, ['glob(pattern="*foo*")']),
    ("search_files", {"pattern": "foo", "path": "."},
     ['grep(pattern="foo", path=".")', 'glob(pattern="*foo*", path=".")']),
    ("tree", {"path": "src"}, ['ls(path="src", depth=0)']),
    ("revert", {}, ["undo()"]),
])  # fmt: skip
def test_an_ambiguous_name_gets_calls_to_make(ws, tool, sent, calls):
    ws.write("made.txt", "x")
    tools = ws.tools("all")
    result = tools.call(tool, sent)
    assert result.error is not None
    assert result.error["code"] == "unknown_tool"
    assert all(call in result.content for call in calls)
    suggested = result.data["details"]["suggested_calls"]
    assert len(suggested) == len(calls)
    for call in suggested:
        assert accepts(tools, call["name"], call["arguments"])
        assert tools.call(call["name"], call["arguments"]).success


def test_proposed_calls_have_the_names_of_the_offered_tools(ws):
    tools = Toolset([Tool(function=ws.grep, name="look")], prefix="my_")
    assert 'Call my_look(pattern="foo").' in tools.call("search_files", {"pattern": "foo"}).content
    assert tools.call("search", {"query": "foo"}).success


def test_a_name_that_is_not_offered_gets_the_list_of_tools(ws):
    for name in ("bash", "rename", "nothing", "", "str_replace_editor", 7, None, ["read"]):
        result = ws.tools().call(name, {"command": "cd /"})  # type: ignore[arg-type] # as a model may send it
        assert result.error is not None
        assert result.error["code"] == "unknown_tool"
        assert "The tools are read, write, edit" in result.content


def test_foreign_parameters_are_translated_for_workspace_methods_only():
    def read(path: str, offset: int = 1) -> str:
        """Read something else.

        Args:
            path: What.
            offset: Where.
        """
        return f"{path} {offset}"

    tools = Toolset([read])
    assert not tools.call("read", {"path": "a", "start_line": 3}).success
    assert not tools.call("view", {"path": "a"}).success
    assert tools.call("Read", {"path": "a"}).content == "a 1"


def own_functions():
    """Functions with the names and parameters of methods, declared as a user declares tools."""
    for method, parameter in (("read", "offset"), ("grep", "output_mode"), ("write", "content")):

        @tool(effect="read")
        def function(value: Annotated[Any, Name(parameter)] = "default") -> str:
            """Do something else.

            Args:
                value: A value.
            """
            return repr(value)

        function.__name__ = method
        yield method, Tool(function=function, effect="read")


@pytest.mark.parametrize(("method", "spec"), [*own_functions()], ids=["read", "grep", "write"])
def test_habits_do_not_change_the_arguments_of_a_users_own_tool(method, spec):
    tools = Toolset([spec])
    ((name, _),) = tools.schemas("mcp")[0]["inputSchema"]["properties"].items()
    for value in (0, "files", "x"):
        called = tools.call(method, {name: value})
        assert (called.content, called.coercions) == (repr(value), ())
    for other in (*HABITS[method].tools.split(), "str_replace_editor"):
        assert tools.call(other, {"command": "view"}).error["code"] == "unknown_tool"
    assert not tools.call(method, {"start_line": 3, "explanation": "x"}).success


def test_each_translation_is_recorded(ws):
    sent = {"filePath": "src/ten.txt", "startLine": 3, "end_line": "5", "explanation": "to see"}
    coercions = ws.tools().call("view_file", sent).coercions
    assert [(each.parameter, each.rule) for each in coercions] == [
        ("tool name", '"view_file" as "read"'),
        ("path", 'alias "filePath"'),
        ("start_line", 'alias "startLine"'),
        ("end_line", '"5" as integer'),
        ("start_line", "as offset=3"),
        ("end_line", "as offset=3, limit=3"),
        ("explanation", "left out"),
    ]
    coercions = ws.tools().call("grep", {"pattern": "foo", "after": 1}).coercions
    assert [(each.parameter, each.rule) for each in coercions] == [("after", "though not in the schema")]


def test_the_tables_name_existing_parameters(ws):
    names = ws.tools("all").names
    hidden = {name: {*exposable(getattr(ws, name))} for name in names}
    assert {
        name: {*habits.hidden.split()} - hidden[name] for name, habits in HABITS.items() if name in names
    } == {name: set() for name in HABITS if name in names}
    others = [name for each in HABITS.values() for name in each.tools.split()]
    assert len({*others, *AMBIGUOUS}) == len(others) + len(AMBIGUOUS)
    tables = (ALIASES, *(habits.aliases for habits in HABITS.values()))
    aliases = [alias for table in tables for each in table.values() for alias in each.split()]
    aliases += [
        alias for habits in HABITS.values() for row in habits.foreign for alias in row.aliases.split()
    ]
    assert all(name == snake_case(name) for name in (*others, *AMBIGUOUS, *aliases))


@pytest.mark.parametrize("name", ["read", "edit", "multi_edit", "grep", "move", "glob"])
def test_hostile_values_of_foreign_parameters_are_problems(ws, name):
    tools = ws.tools("all")
    foreign = ["view_range", "edits", "path", "old_string", "case_sensitive", "new_name", "recursive",
               "expected_replacements", "explanation", "start_line"]  # fmt: skip
    for value in (None, [], [1, 2, 3], {}, {"a": []}, "x", "1-", 10**30, -1, True, [{"path": ["a"]}], "[{}]"):
        result = tools.call(name, dict.fromkeys(foreign, value))
        assert result.error is None or result.error["code"] != "internal", (value, result.content)
