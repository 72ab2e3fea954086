"""`rye`: each statement that `docs/reference/dialects/rye.md` lists, with the document's own examples."""

# ruff: noqa: E501 - a row of a table is one line

import json
import os
import re

import pytest
from hypothesis import strategies as st

from agentfs import Limits, Policy, Workspace
from agentfs.dialects import find
from agentfs.dialects.rye import NOISE
from tests.conftest import law
from tests.dialects.answers import check, parameters
from tests.kit import put
from tests.reading.conftest import make_image
from tests.tool_calls import accepts

MAIN = """\
import os


def execute(params, project_path):
    # TODO: fix this
    project = Path(project_path)
"""


@pytest.fixture
def ws(tmp_path, ws):
    put(tmp_path, {"src/main.py": MAIN, "src/utils.py": "x = 1\n", "README.md": "# TODO: all\n"})
    put(tmp_path, {"setup.py": "import src\n"})
    (tmp_path / "tests").mkdir()
    return ws


@pytest.fixture
def do(ws):
    return speaking(ws)


def speaking(ws):
    tools = ws.tools(dialect="rye")

    def do(name, **arguments):
        result = tools.call(name, arguments)
        assert json.loads(result.content) == result.data, "data is the same as an object"
        assert result.data["success"] is result.success
        return result.data

    return do


def lids(read):
    return [re.match(r"\[LID:([0-9a-f]{6,})\] ", line)[1] for line in read["output"].split("\n")]


def plain(read):
    """Return the lines that a read shows, without ids."""
    return [
        line.split("] ", 1)[-1] if line.startswith("[LID:") else line
        for line in read.get("output", "").split("\n")
    ]


PARAMETERS = {
    "read": "file_path*, offset integer, limit integer", "write": "file_path*, content*",
    "edit_lines": "file_path*, changes* array", "glob": "pattern*, path", "grep": "pattern*, path, include",
    "ls": "path",
}  # fmt: skip


def test_tools_and_parameters(ws):
    assert parameters(ws, "rye") == PARAMETERS
    schemas = {each["name"]: each["input_schema"] for each in ws.tools(dialect="rye").schemas("anthropic")}
    change = schemas["edit_lines"]["properties"]["changes"]["items"]
    assert set(change["properties"]) == {"line_id", "start_line_id", "end_line_id", "new_content"}
    assert "2000" in schemas["read"]["properties"]["limit"]["description"]
    assert "Default 1." in schemas["read"]["properties"]["offset"]["description"]


def test_item_ids(do, ws):
    main = do("rye/file-system/read", file_path="src/main.py")
    assert main["line_count"] == 6
    changes = [{"line_id": lids(main)[0], "new_content": "import sys"}]
    assert do("rye/file-system/edit_lines", file_path="src/main.py", changes=changes)["success"]
    assert do("rye/file-system/write", file_path="a.txt", content="a\n")["created"] is True
    assert do("rye/file-system/glob", pattern="*.txt")["files"] == ["a.txt"]
    assert do("rye/file-system/grep", pattern="sys")["count"] == 1
    assert do("rye/file-system/ls", path="src")["output"] == "main.py\nutils.py"
    prefixed = ws.tools(dialect="rye", prefix="fs_")
    assert prefixed.names == ("fs_read", "fs_write", "fs_edit_lines", "fs_glob", "fs_grep", "fs_ls")
    assert prefixed.call("rye/file-system/ls").success


def test_line_ids_are_shown(do, tmp_path):
    read = do("read", file_path="src/main.py")
    ids = lids(read)
    rows = [f"[LID:{name}] {line}" for name, line in zip(ids, MAIN.splitlines(), strict=True)]
    assert read["output"] == "\n".join(rows)
    assert all(re.fullmatch(r"[0-9a-f]{6}", name) for name in ids)
    assert len(set(ids)) == len(ids), "equal lines have ids of their own"
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["README.md", "setup.py", "src", "tests"], "nothing is kept in the tree"


def test_no_two_lines_of_a_file_have_the_same_id(do, ws):
    """About twelve pairs of 20,000 hashes of six hexadecimal digits are equal."""
    ws.write("many", "".join(f"{n}\n" for n in range(20_000)))
    ids, first = [], 1
    while first <= 20_000:
        page = do("read", file_path="many", offset=first, limit=20_000)
        ids += lids(page)
        first += page["line_count"]
    assert len(set(ids)) == len(ids) == 20_000


def test_unchanged_lines_keep_their_ids(do, tmp_path):
    before = lids(do("read", file_path="src/main.py"))
    (tmp_path / "src/main.py").write_text("# new\n" + MAIN)
    assert lids(do("read", file_path="src/main.py"))[1:] == before
    do("write", file_path="src/main.py", content=MAIN)
    assert lids(do("read", file_path="src/main.py")) == before


def test_a_notebook_is_read_and_edited_by_the_lines_of_its_text(do, tmp_path):
    """read showed cells without ids, so that no tool of the dialect could edit a notebook."""
    text = json.dumps({"cells": [{"cell_type": "code", "source": ["x"]}]}, indent=1)
    (tmp_path / "a.ipynb").write_text(text)
    read = do("read", file_path="a.ipynb")
    assert plain(read) == ["=== cell 1, code", "x"]
    change = {"line_id": lids(read)[1], "new_content": "y"}
    assert do("edit_lines", file_path="a.ipynb", changes=[change])["success"]
    assert (tmp_path / "a.ipynb").read_text() == text.replace('"x"', '"y"')
    change = {"line_id": lids(do("read", file_path="a.ipynb"))[0], "new_content": "=== cell 2"}
    refused = do("edit_lines", file_path="a.ipynb", changes=[change])
    assert refused["code"] == "invalid_content"


def test_read_limit(do, ws):
    ws.write("many", "x\n" * 2100)
    first = do("read", file_path="many")
    assert (first["line_count"], first["truncated"], first["total_lines"]) == (2000, True, 2100)
    assert first["notes"] == ['lines 1-2000 of 2100; more: read(file_path="many", offset=2001)']
    for limit in (5, 2000, 2050):
        asked = do("read", file_path="many", limit=limit)
        assert (asked["line_count"], asked["truncated"]) == (limit, False), "what was asked for is not cut"
    tools = ws.tools(dialect="rye")
    call = tools.call("read", {"file_path": "many"}).next
    assert accepts(tools, **call)
    assert tools.call(**call).data["line_count"] == 100


@pytest.mark.parametrize("line", ["0123456789", "é" * 50, "ab\u202e", "7" * 200, ""])
def test_max_total_output(do, ws, line):
    ws.write("large", f"{line}\n" * 30_000)
    read = do("read", file_path="large", limit=30_000)
    assert read["truncated"] is True
    size = len(read["output"].encode())
    row = len(read["output"].split("\n")[-1].encode()) + 1
    assert 51_200 - row - 4 < size <= 51_200, "as many whole lines as fit"
    assert f"offset={read['line_count'] + 1}" in read["notes"][0]


def test_a_file_too_large_for_ids(tmp_path):
    (tmp_path / "big").write_text("x\n" * 1000)
    with Workspace(tmp_path, limits=Limits(file_bytes=500)) as ws:
        do = speaking(ws)
        read = do("read", file_path="big", limit=2)
        assert (read["output"], read["total_lines"]) == ("x\nx", 1000)
        assert "no line ids" in read["notes"][0]
        changes = [{"line_id": "a3f2c1", "new_content": ""}]
        assert do("edit_lines", file_path="big", changes=changes)["code"] == "too_large"


def test_write_over_a_file(do, ws, tmp_path):
    replaced = do("write", file_path="src/main.py", content="é\n")
    assert replaced["output"].startswith("--- a/src/main.py\n+++ b/src/main.py\n@@ ")
    assert (replaced["created"], replaced["bytes_written"]) == (False, 3)
    ws.undo()
    assert (tmp_path / "src/main.py").read_text() == MAIN, "the journal has the old bytes"
    with Workspace(tmp_path, policy=Policy(overwrite="never")) as strict:
        refused = speaking(strict)("write", file_path="setup.py", content="")
    assert refused["code"] == "already_exists"
    assert re.search(r"\bedit_lines\b", refused["hint"])
    assert not re.search(r"\bedit\b", refused["hint"]), "the dialect has no such tool"


@pytest.mark.parametrize("before", [b"a\r\nb\r\n", b"\xef\xbb\xbfa\n", "a\n".encode("utf-16")])
@pytest.mark.parametrize("content", ["c\n", "c\r\nd\n", "c\r\n", "é"])
def test_write_writes_exactly_the_content(do, tmp_path, before, content):
    (tmp_path / "file").write_bytes(before)
    written = do("write", file_path="file", content=content)
    assert (tmp_path / "file").read_bytes() == content.encode()
    assert written["bytes_written"] == len(content.encode())
    notes = written.get("notes", [])
    gone = before.startswith(b"\xef\xbb\xbf")
    assert ("the byte order mark of the file was removed" in notes) is gone
    lf = content == "c\n" and b"\r" in before
    assert ("the line ends are LF, as given; the file had CRLF" in notes) is lf


def test_write_over_an_8_bit_file(do, ws, tmp_path):
    """Permission was asked twice, because the first of two writes failed."""
    old = b"caf\xe9\n"
    (tmp_path / "latin").write_bytes(old)
    written = do("write", file_path="latin", content="na\u00efve \u20ac\n")
    assert (written["success"], written["bytes_written"]) == (True, 11)
    assert written["notes"] == ["the file was in another encoding and is utf-8 now"]
    assert (tmp_path / "latin").read_bytes() == "na\u00efve \u20ac\n".encode()
    ws.undo()
    assert (tmp_path / "latin").read_bytes() == old
    asked = []
    with Workspace(tmp_path, policy=Policy(on_ask=lambda request: asked.append(request) or True)) as asking:
        assert speaking(asking)("write", file_path="latin", content="\u20ac\n")["success"]
    assert len(asked) == 1


def edit(do, path, *changes, ids=None):
    """Replace lines, each named by its index or by those of the first and the last one."""
    ids = ids or lids(do("read", file_path=path))

    def change(place, new):
        if isinstance(place, tuple):
            return {"start_line_id": ids[place[0]], "end_line_id": ids[place[1]], "new_content": new}
        return {"line_id": ids[place] if isinstance(place, int) else place, "new_content": new}

    return do("edit_lines", file_path=path, changes=[change(*each) for each in changes])


NUMBERS = "1\n2\n3\n4\n5\n"


TODO = {"file": "src/main.py", "line": 5, "content": "    # TODO: fix this"}
EDITED = (
    "--- a/src/main.py\n+++ b/src/main.py\n@@ -2,5 +2,5 @@\n \n \n def execute(params, project_path):\n"
    "-    # TODO: fix this\n+    return True\n     project = Path(project_path)\n"
)
ENTRIES = [
    *({"name": name, "type": "directory"} for name in ("src", "tests")),
    *({"name": name, "type": "file"} for name in ("README.md", "bin", "dot.png", "empty", "latin", "long", "mac", "odd", "setup.py")),
]  # fmt: skip
HINT = 'Did you mean "src/main.py"? Call ls(path="src") to see what is there.'
MADE = '--- /dev/null\n+++ b/config/settings.json\n@@ -0,0 +1 @@\n+{"debug": true}\n\\ No newline at end of file\n'
MORE = {
    "empty": "", "bin": b"\0nowhere", "dot.png": make_image("PNG"), "latin": b"caf\xe9\n", "mac": b"a\rb",
    "odd": "[more: x]\r\n\x0c\u2028a\n\u202eb\r\x1bc\n  d".encode(), "long": "a\n" + "é" * 2001 + "\n" + "b" * 2000 + "\n",
}  # fmt: skip
# A call, and the answer: all of it, or the values at some of its places. `lines` has no ids.
ANSWERS = [
    ("read", {"file_path": "empty"}, {"output": "", "line_count": 0, "total_lines": 0, "truncated": False, "offset": 1}),
    ("read", {"file_path": "src/mian.py"}, {"": {"success": False, "error": '"src/mian.py" does not exist.', "code": "not_found", "hint": HINT}}),
    ("read", {"file_path": "src/main.py", "limit": 0}, {"success": False, "code": "invalid_argument"}),
    ("read", {"path_of_file": "x"}, {"error~": "file_path"}),
    ("read", {"file_path": "src/main.py", "offset": 4, "limit": 2}, {
        "lines": MAIN.split("\n")[3:5], "line_count": 2, "total_lines": 6, "truncated": False, "offset": 4}),
    *(("read", {"file_path": "src/main.py", "offset": offset}, {"offset": shown}) for offset, shown in ((0, 1), (-1, 6))),
    ("read", {"file_path": "src/main.py", "offset": 7}, {"code": "past_end", "error~": "6 lines"}), ("read", {"file_path": "src"}, {"code": "not_a_file"}),
    ("read", {"file_path": "bin"}, {"kind": "binary", "line_count": 0, "output~": "binary"}), ("read", {"file_path": "dot.png"}, {"kind": "image"}),
    ("read", {"file_path": "latin"}, {"notes/0~": "UTF-8"}),
    ("read", {"file_path": "odd"}, {"lines": ["[more: x]", "\x0c\u2028a", "\u202eb\r\x1bc", "  d"]}),
    ("read", {"file_path": "mac"}, {"lines": ["a", "b"]}), ("read", {"file_path": "mac", "offset": 2}, {"lines": ["b"]}),
    ("read", {"file_path": "long"}, {"lines": ["a", "é" * 2000, "b" * 2000], "truncated": True, "notes": ["cut after 2000 characters: line 2"]}),
    ("glob", {"pattern": "**/*.py", "path": "src/"}, {"": {
        "success": True, "output": "src/main.py\nsrc/utils.py", "files": ["src/main.py", "src/utils.py"], "count": 2, "truncated": False}}),
    ("glob", {"pattern": "*.py"}, {"files": ["setup.py", "src/main.py", "src/utils.py"]}),  # at any depth
    ("glob", {"pattern": "*.md"}, {"files": ["README.md"]}), ("glob", {"pattern": "*.rs"}, {"note": "0 files match *.rs."}),
    ("glob", {"pattern": "[[:nope:]]"}, {"code": "invalid_pattern"}),
    ("grep", {"pattern": "TODO:", "path": "src/", "include": "*.py"}, {"": {
        "success": True, "output": "src/main.py:5:    # TODO: fix this", "matches": [TODO], "count": 1, "truncated": False}}),
    ("grep", {"pattern": "TODO:", "include": "*.md"}, {"output": "README.md:1:# TODO: all"}),
    ("grep", {"pattern": "todo:"}, {"count": 0}), ("grep", {"pattern": r"def \w+\("}, {"count": 1}), ("grep", {"pattern": "--version"}, {"count": 0}),
    ("grep", {"pattern": "import", "path": "setup.py"}, {"output": "setup.py:1:import src"}), ("grep", {"pattern": "("}, {"code": "invalid_pattern"}),
    *(("grep", {"pattern": "TODO:", "path": "src", "include": each}, {"count": 1}) for each in ("src/*.py", "main.py", "./src/main.py", "*.{py,md}")),
    ("grep", {"pattern": "TODO:", "include": "src/*.py"}, {"count": 1}), ("grep", {"pattern": "TODO:", "path": "src", "include": "src/*.md"}, {"count": 0}),
    ("grep", {"pattern": "nowhere"}, {"matches": [], "left_out/binary": 2}),
    ("ls", {}, {"entries": ENTRIES, "output^": "src/\ntests/\nREADME.md\nbin\n"}), ("ls", {"path": "setup.py"}, {"code": "not_a_directory"}),
    ("ls", {"path": "tests/"}, {"": {"success": True, "output": "", "entries": []}}),
    ("write", {"file_path": "config/settings.json", "content": '{"debug": true}'}, {"": {
        "success": True, "file_path": "config/settings.json", "bytes_written": 15, "created": True, "output": MADE}}),
    ("write", {"file_path": "much", "content": "0123456789\n" * 10_000}, {
        "truncated": True, "output<": 51_201, "output~": "+0123456789\n", "bytes_written": 110_000}),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "given", "wanted"), ANSWERS, ids=lambda each: str(each)[:40])
def test_answers(do, tmp_path, tool, given, wanted):
    put(tmp_path, MORE)
    answer = do(tool, **given)
    check(answer if "" in wanted else {**answer, "lines": plain(answer)}, wanted)


def test_an_image_is_shown(ws, tmp_path):
    put(tmp_path, MORE)
    image = ws.tools(dialect="rye").call("read", {"file_path": "dot.png"})
    assert image.images[0].media_type == "image/png"


def test_grep_is_capped(do, ws):
    for count, cut in ((100, {"truncated": False}), (101, {"count": 100, "truncated": True, "total": 101})):
        ws.write("many", "needle\n" * count, overwrite="always")
        check(do("grep", pattern="needle"), cut)
    ws.write("more", "x" * 3000 + "needle" + "y" * 3000)
    found = {"matches/0/content": "x" * 500 + "needle" + "y" * 1494, "matches/0/cut": [2500, 1506]}
    check(do("grep", pattern="needle", path="more"), found)


def test_edit_one_line(do, tmp_path):
    applied = {"success": True, "output": EDITED, "changes_applied": 1, "lines_changed": 1}
    assert edit(do, "src/main.py", (4, "    return True")) == applied
    assert (tmp_path / "src/main.py").read_text() == MAIN.replace("    # TODO: fix this", "    return True")
    for shown in ("[LID:{}]", "LID:{}"):
        (name,) = lids(do("read", file_path="setup.py"))
        assert edit(do, "setup.py", (shown.format(name), f"x = {shown!r}"))["success"]
    assert (tmp_path / "setup.py").read_text() == "x = 'LID:{}'\n"


@pytest.mark.parametrize(("before", "changes", "after", "changed"), [
    ("1\n2\n3\n", [(0, "")], "2\n3\n", 1), ("1\n2\n3\n", [(0, "x\n")], "x\n2\n3\n", 1),
    ("1\n2\n3\n", [(1, "y\n\n")], "1\ny\n\n3\n", 2),
    (NUMBERS, [((1, 3), "2\nx")], "1\n2\nx\n5\n", 3), (NUMBERS, [((1, 3), "")], "1\n5\n", 3),
    (NUMBERS, [((1, 3), "1\n2\n3\n4")], "1\n1\n2\n3\n4\n5\n", 4),
    (NUMBERS, [((1, 3), "1\n2\n3\n4\n\n")], "1\n1\n2\n3\n4\n\n5\n", 5),
    (NUMBERS, [(0, "a\nb"), (-1, "")], "a\nb\n2\n3\n4\n", 3),
    (NUMBERS, [((3, 4), "x\ny"), ((0, 2), "")], "x\ny\n", 5),
    (NUMBERS, [(n, f"{n}\n{n}") for n in range(5)], "".join(f"{n}\n{n}\n" for n in range(5)), 10),
    ("a\r\nb\nc", [(0, "x\ny"), (2, "z\n")], "x\r\ny\r\nb\nz", 3),
])  # fmt: skip
def test_lines_are_replaced_as_of_one_version(do, tmp_path, before, changes, after, changed):
    """`lines_changed` counts the larger of old and new, of each change."""
    (tmp_path / "a").write_bytes(before.encode())
    edited = edit(do, "a", *changes)
    assert (edited["changes_applied"], edited["lines_changed"]) == (len(changes), changed)
    assert (tmp_path / "a").read_bytes() == after.encode()


def test_unread(do):
    for _ in range(2):
        refused = edit(do, "setup.py", ("a3f2c1", ""), ids=["a3f2c1"])
        assert (refused["success"], refused["code"]) == (False, "unread")
        assert refused["hint"].startswith('Call read(file_path="setup.py")')
        do("grep", pattern="import")  # it shows no whole file


def test_a_change_from_outside(do, tmp_path):
    ids = lids(do("read", file_path="src/main.py"))
    (tmp_path / "src/main.py").write_text(MAIN + "more\n")
    refused = edit(do, "src/main.py", (0, "import sys"), ids=ids)
    assert refused["code"] == "stale"
    assert refused["hint"].startswith('Call read(file_path="src/main.py")')
    assert (tmp_path / "src/main.py").read_text() == MAIN + "more\n"
    do("read", file_path="src/main.py", limit=1)
    assert edit(do, "src/main.py", (0, "import sys"), ids=ids)["success"], "an id that was kept"


def test_a_write_or_an_edit_ends_the_ids(do, ws):
    ids = lids(do("read", file_path="src/main.py"))
    do("write", file_path="src/main.py", content=MAIN)
    assert edit(do, "src/main.py", (5, "x"), ids=ids)["code"] == "unread"
    do("read", file_path="src/main.py")
    assert edit(do, "src/main.py", (5, "x"), ids=ids)["success"]
    again = lids(do("read", file_path="src/main.py"))
    assert [*map(str.__eq__, again, ids)] == [True] * 5 + [False], "a new line has a new id"
    edit(do, "src/main.py", (0, "y"), ids=ids)
    assert edit(do, "src/main.py", (1, "z"), ids=ids)["code"] == "unread"
    do("read", file_path="src/main.py")
    ws.edit("src/main.py", "y", "w")
    assert edit(do, "src/main.py", (1, "z"), ids=ids)["code"] == "unread", "whatever tool has changed it"


def test_an_unknown_id(do, ws, tmp_path):
    ids = lids(do("read", file_path="src/main.py"))
    refused = edit(do, "src/main.py", (0, ""), ("ffffff", ""), ids=ids)
    assert (refused["success"], refused["code"], refused["available_ids"]) == (False, "unknown_line", ids)
    assert f"[LID:{ids[4]}]     # TODO: fix this" in refused["error"]
    refused = edit(do, "src/main.py", (ids[3][:-1] + "x", ""), ids=ids)
    assert f"[LID:{ids[3]}] def execute" in refused["error"], "the nearest is shown with its line"
    (tmp_path / "a").write_text("1 abcdef|one\ntwo\nlast\n")  # it looks numbered
    ids = lids(do("read", file_path="a"))
    shown = [f"[LID:{ids[0]}] 1 abcdef|one", f"[LID:{ids[1]}] two", f"[LID:{ids[2]}] last"]
    assert edit(do, "a", ("zzzzzz", ""), ids=ids)["error"].split("\n")[1:] == shown
    ws.write("many", "x\n" * 3000)
    assert len(edit(do, "many", ("ffffff", ""))["available_ids"]) == 500


def test_bad_changes_are_refused_whole(do, tmp_path):
    ids = lids(do("read", file_path="src/main.py"))
    for changes, code in (
        ([], "invalid_argument"),
        ([{"new_content": "x"}], "invalid_argument"),
        ([{"start_line_id": ids[0], "new_content": "x"}], "invalid_argument"),
        ([{"start_line_id": ids[3], "end_line_id": ids[1], "new_content": "x"}], "invalid_argument"),
        ([{"line_id": ids[1], "new_content": "x"}] * 2, "overlap"),
    ):
        assert do("edit_lines", file_path="src/main.py", changes=changes)["code"] == code
    assert (tmp_path / "src/main.py").read_text() == MAIN


def test_glob_is_sorted_as_strings_before_the_cut(do, tmp_path):
    """Sorted name by name, `a/x.rs` would come before `a.rs`, and other paths would be cut off."""
    put(tmp_path, ("a/x.rs", "a b/x.rs", "a-b/x.rs", "a.rs", "a/b-c/x.rs", "a/b/x.rs", "B.rs", "\u00e9.rs"))

    def found():
        answer = do("glob", pattern="*.rs")
        paths = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.rs"))
        assert answer["files"] == paths[:100]
        return answer["count"], answer["truncated"], answer.get("total")

    assert found() == (8, False, None)
    put(tmp_path, [f"a-{number}.rs" for number in range(92)])
    assert found() == (100, False, None)
    put(tmp_path, ["z.rs", "zz.rs"])
    assert found() == (100, True, 102)


def test_ignored_directories(do, tmp_path):
    assert set(NOISE) == {
        "node_modules", "__pycache__", ".git", ".venv", "venv", ".tox", ".pytest_cache", ".mypy_cache",
        ".ruff_cache", "dist", "build", "*.egg-info", ".eggs", ".nox", ".hg", ".svn",
    }  # fmt: skip
    for name in (*NOISE, ".jj", ".bzr"):
        for place in (tmp_path, tmp_path / "src"):
            directory = place / name.replace("*", "rye")
            directory.mkdir()
            (directory / "in.js").write_text("needle\n")
    (tmp_path / "tests/build").write_text("needle: a file, no directory\n")
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github/ci.js").write_text("needle\n")
    (tmp_path / ".gitignore").write_text("src/\n*.js\n")
    (tmp_path / "src/x.js").write_text("needle\n")
    assert do("glob", pattern="**/*.js")["files"] == [".github/ci.js", "src/x.js"]
    assert [match["file"] for match in do("grep", pattern="needle")["matches"]] == [
        ".github/ci.js", "src/x.js", "tests/build",
    ]  # fmt: skip
    assert do("ls")["output"].split("\n") == [
        ".github/", "src/", "tests/", ".gitignore", "README.md", "setup.py",
    ]  # fmt: skip
    assert do("ls", path="src")["output"].split("\n") == ["main.py", "utils.py", "x.js"]
    for name, arguments in (("glob", {"pattern": "*.js"}), ("grep", {"pattern": "needle"}), ("ls", {})):
        assert "left_out" not in do(name, **arguments), "what always is, is said in the description alone"
    assert do("ls", path="src/build")["output"] == "in.js", "what is named is listed"
    assert do("glob", pattern="*.js", path="node_modules")["files"] == ["node_modules/in.js"]


def test_grep_has_the_line_ids_of_files_that_were_read(do, ws, tmp_path):
    def found():
        return do("grep", pattern="TODO:", path="src")

    assert "line_id" not in found()["matches"][0]
    name = lids(do("read", file_path="src/main.py", limit=1))[0]
    name = lids(do("read", file_path="src/main.py"))[4]
    assert found()["output"] == f"src/main.py:5:[LID:{name}]:    # TODO: fix this"
    assert found()["matches"] == [
        {"file": "src/main.py", "line": 5, "content": "    # TODO: fix this", "line_id": name}
    ]
    (tmp_path / "src/main.py").write_text("\n" + MAIN)
    assert "line_id" not in found()["matches"][0], "the version shown is not the present one"
    do("read", file_path="src/main.py")
    do("write", file_path="src/main.py", content=MAIN)
    assert "line_id" not in found()["matches"][0], "a write ends the ids"
    do("read", file_path="src/main.py")
    (match,) = found()["matches"]
    changes = [{"line_id": match["line_id"], "new_content": "    # done"}]
    assert do("edit_lines", file_path=match["file"], changes=changes)["success"]


def test_grep_timeout(ws, tmp_path):
    assert find("rye").view(ws).limits.timeout == 30.0
    (tmp_path / "a").write_text("aaa\n")
    (tmp_path / "slow").write_text("a" * 60 + "!\n")
    with Workspace(tmp_path, limits=Limits(timeout=0.2)) as small:
        found = speaking(small)("grep", pattern="^(a|aa)+$(?!.)")
    assert (found["output"], found["left_out"]["reached"]) == ("a:1:aaa", "timeout")


def test_a_search_that_stopped_early_is_truncated(tmp_path):
    """`truncated` was false, and the answer looked complete."""
    for number in range(200):
        (tmp_path / f"{number}.txt").write_text("x\n" * 1000)
    with Workspace(tmp_path, limits=Limits(timeout=1e-6)) as ws:
        do = speaking(ws)
        for name, arguments in (("grep", {"pattern": "x"}), ("glob", {"pattern": "*.txt"}), ("ls", {})):
            stopped = do(name, **arguments)
            assert (stopped["truncated"], stopped["left_out"]["reached"]) == (True, "timeout"), name


def test_ls_of_links_and_of_much(do, tmp_path):
    (tmp_path / "tests/link").symlink_to("../src")
    (tmp_path / "tests/other").symlink_to("../setup.py")
    os.mkfifo(tmp_path / "tests/pipe")
    assert do("ls", path="tests")["entries"] == [
        {"name": "link", "type": "directory", "target": "../src"},
        {"name": "other", "type": "file", "target": "../setup.py"}, {"name": "pipe", "type": "other"},
    ]  # fmt: skip
    put(tmp_path, [f"much/{number}" for number in range(501)])
    much = do("ls", path="much")
    assert (len(much["entries"]), much["truncated"], much["total"]) == (500, True, 501)


def test_ids_of_an_earlier_process_ask_for_a_read(tmp_path):
    root, state = put(tmp_path / "root", {"a": "1\n2\n3\n"}), tmp_path / "state"
    with Workspace(root, state=state) as ws:
        ids = lids(speaking(ws)("read", file_path="a"))
    with Workspace(root, state=state) as ws:
        do = speaking(ws)
        assert not edit(do, "a", (1, "two"), ids=ids)["success"]
        new = lids(do("read", file_path="a"))
        assert not set(new) & set(ids)
        assert not edit(do, "a", (1, "two"), ids=ids)["success"]
        assert (root / "a").read_text() == "1\n2\n3\n"
        assert edit(do, "a", (1, "two"), ids=new)["success"]
        assert (root / "a").read_text() == "1\ntwo\n3\n"


@law(30, 200, st.lists(st.text("ab \t\x0c\u2028é]", max_size=4), min_size=1, max_size=8),
     st.sampled_from(["\n", "\r\n"]), st.booleans(), st.data())  # fmt: skip
def test_any_lines_are_shown_as_they_are_and_replaced_by_their_ids(ws, tmp_path, lines, end, ended, data):
    if not ended and not lines[-1]:
        lines = [*lines[:-1], "x"]
    if not ended and len(lines) == 1:
        end = "\n"  # a file without line ends does not tell which to use
    (tmp_path / "any").write_bytes((end.join(lines) + end * ended).encode())
    do = speaking(ws)
    read = do("read", file_path="any")
    ids = lids(read)
    assert plain(read) == lines
    # Separate ranges, from the last to the first, compared with the same changes of a list of lines.
    changes, changed, expected, last = [], 0, list(lines), len(lines) - 1
    while last >= 0:
        first = data.draw(st.integers(0, last))
        new = data.draw(st.lists(st.text("xyz", min_size=1, max_size=2), max_size=3))
        changes.append(((first, last), "\n".join(new)))
        expected[first : last + 1] = new
        changed += max(last + 1 - first, len(new))
        last = first - 1 - data.draw(st.integers(1, 3))
    edited = edit(do, "any", *data.draw(st.permutations(changes)), ids=ids)
    if expected == lines:
        assert edited["code"] == "no_change"
        return
    assert (edited["changes_applied"], edited["lines_changed"]) == (len(changes), changed)
    after = (tmp_path / "any").read_bytes().decode()
    assert after.removesuffix(end).split(end) == (expected or [""])
