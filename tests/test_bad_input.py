"""Bad input to every method: a typed error that names the fix, and nothing on disk changed."""

import json
import os
import time

import pytest

from agentfs import Edit, Workspace, dialects
from tests.kit import error_of, put
from tests.tree_difference import snapshot

EDIT = {"old_string": "one", "new_string": "two"}
CHANGES = [Edit("one", "two")]

BAD_PATHS = [
    ("missing.txt", "not_found"), ("no/such/directory/x.txt", "not_found"),
    ("../outside.txt", "outside_workspace"), ("/etc/passwd", "outside_workspace"),
    ("sub/../../outside.txt", "outside_workspace"), ("link-out", "outside_workspace"),
    ("link-out/x", "outside_workspace"), ("link-file-out", "outside_workspace"),
    ("dangling-out", "outside_workspace"), ("loop", "link_loop"), ("nul\0.txt", "invalid_path"),
    ("\ud800", "invalid_path"), ("C:\\Users\\x", "invalid_path"), ("a" * 256, "name_too_long"),
    ("a/" * 2500, "name_too_long"), ("a.txt/", "not_a_directory"), ("a.txt/x", "not_a_directory"),
    ("fifo", "not_regular"),
]  # fmt: skip

CALLS = [
    (name, {"path": path, **more}, code)
    for path, code in BAD_PATHS
    for name, more in (
        *(("read", {}), ("edit", EDIT), ("multi_edit", {"edits": CHANGES})),
        *[("write", {"content": "x"})] * (code != "not_found"),
        *(("ls", {}), ("glob", {"pattern": "*"}), ("grep", {"pattern": "x"})) * (code != "not_regular"),
    )
]
CALLS += [
    *((name, {"pattern": pattern}, "invalid_pattern") for name, pattern in (
        ("glob", ""), ("glob", []), ("glob", "[a"), ("glob", "{a,b}" * 20), ("glob", "**/*a*/" * 30),
        ("grep", ""), ("grep", "foo("), ("grep", "("), ("grep", "[a"), ("grep", "(?:a{1000}){1000}"),
        ("grep", "(" * 300 + ")" * 300), ("grep", "x" * 100_000))),
    *(("glob", {"pattern": pattern}, "outside_workspace") for pattern in ("../*", "/../*", "**/../../*")),
    *((name, {**given, page: number}, "invalid_argument")
      for name, given in (("ls", {}), ("glob", {"pattern": "*"}), ("grep", {"pattern": "o"}))
      for page, number in (("limit", 0), ("offset", -1))),
    *((name, {**given, "offset": 1000}, "past_end")
      for name, given in (("ls", {}), ("glob", {"pattern": "*"}), ("grep", {"pattern": "o"}))),
    *(("grep", {"pattern": "x", "glob": glob}, "invalid_pattern") for glob in ("{a,b}" * 20, "[a")),
    *(("grep", {"pattern": "x", **wrong}, "invalid_argument") for wrong in (
        {"type": "no-such-type"}, {"output_mode": "no-such-mode"}, {"context": -1})),
    ("ls", {"depth": -1}, "invalid_argument"),
]  # fmt: skip
CALLS += [
    ("read", {"path": ""}, "invalid_path"),
    ("write", {"path": "", "content": "x"}, "invalid_path"),
    ("edit", {"path": "", **EDIT}, "invalid_path"),
    ("write", {"path": "sub", "content": "x"}, "not_a_file"),
    ("write", {"path": ".", "content": "x"}, "not_a_file"),
    ("edit", {"path": "sub", **EDIT}, "not_a_file"),
    ("ls", {"path": "a.txt"}, "not_a_directory"),
    ("glob", {"pattern": "*", "path": "a.txt"}, "not_a_directory"),
    ("read", {"path": "a.txt", "offset": 0}, "invalid_argument"),
    ("read", {"path": "a.txt", "offset": 99}, "past_end"),
    ("read", {"path": "a.txt", "limit": 0}, "invalid_argument"),
    ("read", {"path": "a.txt", "limit": -1}, "invalid_argument"),
    ("edit", {"path": "a.txt", "old_string": "", "new_string": "x"}, "invalid_argument"),
    ("edit", {"path": "a.txt", "old_string": "one", "new_string": "one"}, "no_change"),
    ("edit", {"path": "a.txt", "old_string": "absent", "new_string": "x"}, "no_match"),
    ("edit", {"path": "twice.txt", "old_string": "same", "new_string": "x"}, "ambiguous"),
    ("edit", {"path": "binary.bin", "old_string": "a", "new_string": "b"}, "binary"),
    ("edit", {"path": "latin.txt", "old_string": "caf", "new_string": "€"}, "encoding"),
    ("edit", {"path": "a.txt", "old_string": "one", "new_string": "\ud800"}, "encoding"),
    ("write", {"path": "new.txt", "content": "\ud800"}, "encoding"),
    ("multi_edit", {"path": "a.txt", "edits": []}, "invalid_argument"),
    ("multi_edit", {"path": "a.txt", "edits": [Edit("one", "1"), Edit("absent", "x")]}, "no_match"),
    ("multi_edit", {"path": "a.txt", "edits": [Edit("one", "1"), Edit("", "x")]}, "invalid_argument"),
    ("write", {"path": "a.txt", "content": "x"}, "unread"),
    ("write", {"path": "binary.bin", "content": "x"}, "unread"),
]


def name_of(call):
    name, arguments, code = call
    shown = ",".join(f"{key}={str(value)[:20]!r}" for key, value in arguments.items())
    return f"{name}({shown})-{code}".encode("unicode_escape").decode()


@pytest.fixture
def hostile(tmp_path, tmp_path_factory):
    outside = put(tmp_path_factory.mktemp("outside"), {"x": "secret\n"})
    put(tmp_path, {"a.txt": "one\ntwo\nthree\n", "twice.txt": "same\nsame\n", "binary.bin": b"a\0b"})
    put(tmp_path, {"latin.txt": b"caf\xe9\n"})
    (tmp_path / "sub").mkdir()
    os.mkfifo(tmp_path / "fifo")
    links = {"link-out": outside, "link-file-out": outside / "x", "dangling-out": outside / "never-made"}
    for name, target in {**links, "loop": "loop"}.items():
        os.symlink(target, tmp_path / name)
    return tmp_path, outside


@pytest.mark.parametrize("call", CALLS, ids=name_of)
def test_bad_input_is_a_typed_error_and_changes_nothing(hostile, call):
    tmp_path, outside = hostile
    name, arguments, code = call
    before = snapshot(tmp_path), snapshot(outside)
    with Workspace(tmp_path) as ws:
        error = error_of(getattr(ws, name), **arguments)
    assert error.code == code, str(error)
    assert error.message
    assert error.hint, f"no way out: {error}"
    assert "secret" not in str(error)
    assert str(outside) not in str(error)
    assert (snapshot(tmp_path), snapshot(outside)) == before


OUTSIDE = [path for path, code in BAD_PATHS if code == "outside_workspace"]
LINKS = {"link-out", "link-file-out", "dangling-out"}
GIVEN = {
    "content": "x", "file_text": "x", "old_str": "one", "new_str": "x", "insert_line": 0, "insert_text": "x",
    "old_string": "one", "new_string": "x", "pattern": "one", "query": "one", "literal": "one",
    "rg_args": "one", "edits": [EDIT], "changes": [{"line_id": "abcdef", "new_content": "x"}],
    "path": "a.txt", "to": "new.txt", "roots": ["."],
}  # fmt: skip
PLACES = {"path": str, "file_path": str, "to": str, **dict.fromkeys(("roots", "files"), lambda path: [path])}
PATCHES = [
    *("*** Add File: {}\n+x", "*** Delete File: {}", "*** Update File: {}\n@@\n-one\n+x"),
    "*** Update File: a.txt\n*** Move to: {}\n@@\n-one\n+x",
]


def calls_outside(schema, path):
    properties, required = schema["properties"], schema.get("required", [])
    if "input" in properties:
        yield from ({"input": f"*** Begin Patch\n{each.format(path)}\n*** End Patch"} for each in PATCHES)
    for place in properties.keys() & PLACES.keys():
        for command in properties.get("command", {}).get("enum", [None]):
            needed = properties.keys() & (GIVEN.keys() if command else {*required, "old_string"})
            given = {name: GIVEN[name] for name in needed - {place, "command"} & GIVEN.keys()}
            yield given | {place: PLACES[place](path)} | ({"command": command} if command else {})


# `memory` knows only paths below `/memories`; tests/dialects/test_memory.py has others.
@pytest.mark.parametrize("dialect", ["agentfs", *(each for each in dialects.BUILT_IN if each != "memory")])
def test_no_tool_of_any_dialect_reaches_outside(hostile, dialect):
    tmp_path, outside = hostile
    with Workspace(tmp_path) as ws:
        names = [*ws.tools().names, "append", "delete", "move", "replace"]
        tools = ws.tools(names if dialect == "agentfs" else None, dialect=dialect)
        schemas = tools.schemas("mcp")
        made = [
            (each["name"], given, tools.call(each["name"], given))
            for each in schemas
            for path in OUTSIDE
            if path not in LINKS or each["annotations"]["readOnlyHint"]  # a link may be deleted or moved
            for given in calls_outside(each["inputSchema"], path)
        ]
    assert {name for name, _, _ in made} == {each["name"] for each in schemas}
    for name, given, result in made:
        assert result.error, (name, given)
        assert result.error["code"] == "outside_workspace", (name, given, result.content)
        assert "secret" not in result.content
    assert [each.name for each in outside.iterdir()] == ["x"]


WRONG_TYPES = [
    ("read", {"path": ["a.txt", "b.txt"]}), ("read", {"path": None}),
    ("read", {"path": "a.txt", "offset": "x"}), ("read", {"path": "a.txt", "offset": 1.5}),
    ("read", {"path": "a.txt", "offset": True}), ("write", {"path": "a.txt", "content": {"text": 1}}),
    ("write", {"path": "a.txt"}),
    ("edit", {"path": "a.txt", "old_string": [], "new_string": {}}),
    ("multi_edit", {"path": "a.txt", "edits": "one"}), ("multi_edit", {"path": "a.txt", "edits": [1]}),
    ("multi_edit", {"path": "a.txt", "edits": [{"old_string": "one"}]}),
    ("ls", {"depth": "deep"}), ("glob", {"pattern": ["x", {}]}), ("grep", {"pattern": {}}),
    ("grep", {"pattern": "x", "ignore_case": "perhaps"}), ("grep", {"pattern": "x", "no_such": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments"), WRONG_TYPES)
def test_wrong_types_from_a_model_are_a_failed_result(hostile, name, arguments):
    tmp_path, _ = hostile
    with Workspace(tmp_path) as ws:
        assert ws.tools().call(name, arguments).error["code"] == "invalid_argument"


@pytest.mark.parametrize(("name", "arguments"), [
    ("grep", lambda: {"pattern": "one", "type": "x" * 1_000_000}),
    ("grep", lambda: {"pattern": "one", "type": ["x"] * 100_000}),
    ("glob", lambda: {"pattern": "A" * 1_000_000}),
    ("glob", lambda: {"pattern": "*", "types": "x" * 1_000_000}),
    ("read", lambda: {"path": "a.txt", "encoding": "x" * 1_000_000}),
    ("read", lambda: {"path": "a.txt", **{f"unknown_{number}": 1 for number in range(100_000)}}),
    ("ls", lambda: {"path": ["a.txt"] * 100_000}),
    ("glob", lambda: {"pattern": "*", "path": ["./"] * 100_000}),
    ("replace", lambda: {"old_string": "a", "new_string": "b", "path": [f"d{n}" for n in range(6000)]}),
])  # fmt: skip
def test_an_argument_of_any_size_gets_a_short_answer_soon(tmp_path, name, arguments):
    """Memory and time are proportional to the input, and the message quotes only a part."""
    (tmp_path / "a.txt").write_text("one\n")
    with Workspace(tmp_path) as ws:
        tools, given = ws.tools("all", expose={"glob": ["types"]}), arguments()
        began = time.process_time()
        result = tools.call(name, given)
        took = time.process_time() - began
    assert len(result.content) < 3000
    assert len(json.dumps(result.to_dict())) < 20_000
    assert took < 2


@pytest.mark.full
def test_several_searched_paths_are_searched_once_each_and_bounded(tmp_path):
    """100,000 times the same directory took 7 s; more than 5,000 directories are refused."""
    (tmp_path / "a.txt").write_text("one\n")
    with Workspace(tmp_path) as ws:
        began = time.process_time()
        assert ws.ls(["."] * 100_000).total == 1
        assert [entry.path for entry in ws.glob("*", ["."] * 100_000).files] == ["a.txt"]
        assert ws.grep("one", ["."] * 100_000).total_lines == 1
        assert time.process_time() - began < 3
        assert "at most 5000" in str(error_of(ws.ls, [f"d{number}" for number in range(5001)]))
