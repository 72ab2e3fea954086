"""`dominds`: each statement of the document, as `docs/reference/dialects/dominds.md` lists them.

Every answer is read back by PyYAML, which judges it; `.data` has to be the same.
"""

import json
import os
import re
import sys
from contextlib import suppress
from datetime import UTC, datetime

import pytest
import yaml
from hypothesis import example
from hypothesis import strategies as st

from agentfs import Limits, Policy, Protect, Workspace
from agentfs.dialects.dominds import timestamp
from agentfs.dialects.dominds.rg_args import ALLOWED
from tests.conftest import law
from tests.dialects.trees import lay_out
from tests.tool_calls import accepts

# A slow machine makes the first texts slowly. Each file that is tried replaces the previous one.
TREE = {
    "README.md": "# A thing\n\nTODO: write\n",
    "src/main.py": "import os\n\n\ndef main():\n    # TODO: one, TODO: two\n    return os  # todo three\n",
    "src/util/text.js": "// TODO: four\nlet a = 1;\nlet b = 2;\n// TODO: five\n",
    "src/empty.txt": "",
    "notes/a.b": "a.b(c)\naxb\nfirst line\nsecond line\n",
    "long.txt": "".join(f"line {number}\n" for number in range(1, 1201)),
}


@pytest.fixture
def ws(tmp_path):
    lay_out(tmp_path, TREE)
    with Workspace(tmp_path) as workspace:
        yield workspace


@pytest.fixture
def call(ws):
    return caller(ws)


def caller(ws):
    tools = ws.tools(dialect="dominds")

    def call(name, **arguments):
        """Return what a YAML parser reads from the answer."""
        assert accepts(tools, name, arguments), "the test sends what the schema has"
        result = tools.call(name, arguments)
        document = yaml.safe_load(result.content)
        assert document == result.data, "data is the same as an object"
        assert json.loads(json.dumps(result.data)) == result.data
        assert result.success is (document["status"] == "ok")
        return document

    return call


# The parameters of the document: type, required. Unlike there, `case` is in four tools instead of one.
ARGUMENTS = {
    "list_dir": {"path": ("string", False)},
    "read_file": {
        "path": ("string", True), "max_lines": ("integer", False), "range": ("string", False),
        "show_linenos": ("boolean", False),
    },
    "ripgrep_files": {
        "pattern": ("string", True), "path": ("string", False), "globs": (["array", "string"], False),
        "case": ("string", False),
    },
    "ripgrep_snippets": {
        "pattern": ("string", True), "path": ("string", False), "context_before": ("integer", False),
        "context_after": ("integer", False), "case": ("string", False),
    },
    "ripgrep_count": {"pattern": ("string", True), "path": ("string", False), "case": ("string", False)},
    "ripgrep_fixed": {"literal": ("string", True), "path": ("string", False), "case": ("string", False)},
    "ripgrep_search": {
        "pattern": ("string", True), "path": ("string", False), "rg_args": (["array", "string"], False),
    },
}  # fmt: skip
# The fields of the document, in its order, and the sum of the counts. A complete answer has only these.
FIELDS = {
    "list_dir": ({}, ["status", "path", "entries"]),
    "read_file": ({"path": "README.md"}, ["status", "path", "total_lines", "size_bytes", "content"]),
    "ripgrep_files": ({"pattern": "TODO"}, ["status", "pattern", "files_matched", "matches"]),
    "ripgrep_snippets": ({"pattern": "TODO"}, ["status", "pattern", "matches"]),
    "ripgrep_count": ({"pattern": "TODO"}, ["status", "pattern", "counts", "total_count"]),
    "ripgrep_fixed": ({"literal": "TODO"}, ["status", "literal", "matches"]),
    "ripgrep_search": ({"pattern": "TODO"}, ["status", "pattern", "results"]),
}


def test_the_schema_has_exactly_the_documented_parameters(ws):
    found = {}
    for tool in ws.tools(dialect="dominds").schemas("anthropic"):
        schema = tool["input_schema"]
        found[tool["name"]] = {
            name: (
                shown.get("type") or [each["type"] for each in shown["anyOf"]],
                name in schema.get("required", []),
            )
            for name, shown in schema["properties"].items()
        }
    assert found == ARGUMENTS


WRONG = [
    ("read_file", {"path": "src"}),
    ("read_file", {"path": "main.py"}),
    ("read_file", {"path": "long.txt", "range": "9999~"}),
    ("read_file", {"path": "README.md", "range": "9~1"}),
    ("read_file", {"path": "README.md", "max_lines": -1}),
    ("list_dir", {"path": "README.md"}),
    ("list_dir", {"path": "util"}),
    ("ripgrep_files", {"pattern": "a", "globs": "["}),
    ("ripgrep_snippets", {"pattern": "a", "context_before": -1}),
    ("ripgrep_count", {"pattern": "("}),
    ("ripgrep_fixed", {"literal": ""}),
    ("ripgrep_search", {"pattern": "a", "rg_args": "-t nope"}),
    ("ripgrep_search", {"pattern": "a", "rg_args": "-t zzzzz"}),
    ("ripgrep_search", {"pattern": "a", "rg_args": "-E nope"}),
    ("ripgrep_search", {"pattern": "a", "rg_args": "--max-filesize x"}),
]


def test_no_words_of_the_workspaces_own_tools_are_left(ws, call):
    tools = ws.tools(dialect="dominds")
    said = json.dumps(tools.schemas("anthropic")) + tools.instructions()
    for name, arguments in WRONG:
        failed = call(name, **arguments)
        assert failed["status"] == "error"
        said += json.dumps(failed)
    words = re.findall(r"([a-z_]+)=|`([a-z_]+)`|(?<=[Cc]all )([a-z_]+)|(?<=[Pp]ass )([a-z_]+)", said)
    own = {
        "offset",
        "limit",
        "include_ignored",
        "before",
        "after",
        "max_filesize",
        "ls",
        "read",
        "grep",
        "glob",
    }
    assert {word for found in words for word in found} & own == set()


@pytest.mark.parametrize("name", FIELDS)
def test_an_answer_has_the_fields_of_the_document(call, name):
    arguments, fields = FIELDS[name]
    assert list(call(name, **arguments)) == fields


def test_every_output_is_yaml(ws, call):
    """`status` is ok or error, even for wrong arguments and unexpected exceptions."""
    tools = ws.tools(dialect="dominds")
    for name, (arguments, _) in FIELDS.items():
        assert call(name, **arguments)["status"] == "ok"
        result = tools.call(name, {"nothing": 1})
        assert yaml.safe_load(result.content) == result.data
        assert list(result.data) == ["status", "code", "message", "hint"]
        assert result.data["status"] == "error"
        assert result.error == {"code": "invalid_argument", "message": result.data["message"]}
    assert call("read_file", path="nothing.txt")["code"] == "not_found"
    unknown = tools.call("write_file", {})
    assert yaml.safe_load(unknown.content) == unknown.data
    assert unknown.data["code"] == "unknown_tool"
    assert "ripgrep_search" in unknown.data["hint"]


def test_the_text_is_as_the_document_writes_it(ws):
    result = ws.tools(dialect="dominds").call("read_file", {"path": "README.md", "show_linenos": False})
    assert result.content == (
        "status: ok\npath: README.md\ntotal_lines: 3\nsize_bytes: 23\n"
        "content: |\n  # A thing\n\n  TODO: write\n"
    )
    result = ws.tools(dialect="dominds").call("ripgrep_snippets", {"pattern": "TODO", "path": "README.md"})
    assert result.content == (
        'status: ok\npattern: TODO\nmatches:\n  - path: README.md\n    line: 3\n    content: "TODO: write"\n'
    )


# list_dir


def test_list_dir_path(ws, call):
    assert call("list_dir") == call("list_dir", path=".") == call("list_dir", path=ws.root)
    assert call("list_dir")["path"] == "."
    assert call("list_dir", path="src/")["path"] == "src"
    assert call("list_dir", path=f"{ws.root}/src")["path"] == "src"
    assert call("list_dir", path="none")["code"] == "not_found"
    assert call("list_dir", path="README.md")["code"] == "not_a_directory"


@pytest.mark.parametrize("name", ["src", "empty", "deep/er"])
def test_regression_every_directory_is_named_by_its_path(ws, call, tmp_path, name):
    """An empty directory was named as in the call."""
    (tmp_path / "empty").mkdir(exist_ok=True)
    (tmp_path / "deep/er").mkdir(parents=True, exist_ok=True)
    for spelling in (name, f"./{name}/", f"{name}/.", f"{ws.root}/{name}/", f"src/../{name}"):
        assert call("list_dir", path=spelling)["path"] == name


def test_list_dir_entries(call, tmp_path):
    (tmp_path / "empty").mkdir()
    assert call("list_dir", path="empty") == {"status": "ok", "path": "empty", "entries": []}
    names = [entry["name"] for entry in call("list_dir")["entries"]]
    assert names == ["empty", "notes", "src", "README.md", "long.txt"], (
        "directories first, then files, by name"
    )
    (entry,) = [entry for entry in call("list_dir")["entries"] if entry["name"] == "README.md"]
    assert list(entry) == ["name", "type", "size", "modified"]


def test_a_link_to_a_file_is_a_file_with_its_size(call, tmp_path):
    (tmp_path / "to-file").symlink_to("src/main.py")
    (tmp_path / "to-link").symlink_to("to-file")
    found = {entry["name"]: entry for entry in call("list_dir")["entries"]}
    for name, target in (("to-file", "src/main.py"), ("to-link", "to-file")):
        shown = (found[name]["type"], found[name]["size"], found[name]["target"])
        assert shown == ("file", len(TREE["src/main.py"]), target)


def test_list_dir_types(call, tmp_path):
    (tmp_path / "to-dir").symlink_to("src")
    (tmp_path / "to-file").symlink_to("README.md")
    (tmp_path / "to-nothing").symlink_to("none")
    (tmp_path / "out").symlink_to("/")
    os.mkfifo(tmp_path / "fifo")
    found = {entry["name"]: (entry["type"], entry.get("target")) for entry in call("list_dir")["entries"]}
    assert found == {
        "src": ("dir", None), "notes": ("dir", None), "README.md": ("file", None), "long.txt": ("file", None),
        "to-dir": ("dir", "src"), "to-file": ("file", "README.md"), "to-nothing": ("symlink", "none"),
        "out": ("symlink", None), "fifo": ("other", None),
    }  # fmt: skip
    assert call("read_file", path="to-file")["content"] == call("read_file", path="README.md")["content"]
    for name, code in (("to-nothing", "not_found"), ("out", "outside_workspace"), ("fifo", "not_regular")):
        assert call("read_file", path=name)["code"] == code


def test_list_dir_sizes(call):
    found = {entry["name"]: entry["size"] for entry in call("list_dir")["entries"]}
    assert found == {"notes": None, "src": None, "README.md": 23, "long.txt": len(TREE["long.txt"])}


def test_list_dir_times_are_iso_8601(call, tmp_path):
    os.utime(tmp_path / "README.md", (0, datetime(2026, 11, 21, 4, 5, 6, 789, UTC).timestamp()))
    (entry,) = [entry for entry in call("list_dir")["entries"] if entry["name"] == "README.md"]
    assert entry["modified"] == "2026-11-21T04:05:06Z", "a string, though YAML has a type for times"
    assert timestamp(10.0**12) is None, "no calendar has that year"
    assert timestamp(-1.0) == "1969-12-31T23:59:59Z"


def test_list_dir_shows_hidden_and_ignored_entries(call, tmp_path):
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "build").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "id_rsa").write_text("secret")
    listed = call("list_dir")
    names = [entry["name"] for entry in listed["entries"]]
    assert names == ["build", "notes", "src", ".gitignore", "README.md", "id_rsa", "long.txt"]
    assert listed["skipped"] == {"vcs": 1}
    assert [entry["name"] for entry in listed["entries"] if entry.get("protected")] == ["id_rsa"]


def test_a_long_list_is_cut_and_says_so(tmp_path):
    for number in range(9):
        (tmp_path / f"{number}.txt").touch()
    with Workspace(tmp_path, limits=Limits(list_entries=4)) as ws:
        listed = caller(ws)("list_dir")
        assert (len(listed["entries"]), listed["truncated"], listed["total"]) == (4, True, 9)
    with Workspace(tmp_path, limits=Limits(output_tokens=100)) as ws:
        listed = caller(ws)("list_dir")
        assert (0 < len(listed["entries"]) < 9, listed["truncated"], listed["total"]) == (True, True, 9)


# read_file


def numbered(text, first=1):
    return "".join(f"{number:4}| {line}\n" for number, line in enumerate(text.splitlines(), first))


def test_read_file_path(ws, call):
    read = call("read_file", path="src/main.py")
    assert read == {
        "status": "ok", "path": "src/main.py", "total_lines": 6, "size_bytes": len(TREE["src/main.py"]),
        "content": numbered(TREE["src/main.py"]),
    }  # fmt: skip
    assert call("read_file", path=f"{ws.root}/src/main.py") == read
    assert call("read_file", path="src")["code"] == "not_a_file"
    assert call("read_file", path="src", range="99~")["code"] == "not_a_file"
    assert "list_dir" in call("read_file", path="src")["hint"]


def test_read_file_max_lines(ws, call):
    read = call("read_file", path="long.txt")
    assert read["content"] == numbered("".join(TREE["long.txt"].splitlines(keepends=True)[:500]))
    assert (read["total_lines"], read["truncated"], read["shown"]) == (1200, True, "1~500")
    following = {"name": "read_file", "arguments": {"path": "long.txt", "range": "501~"}}
    assert read["next"] == following
    assert ws.tools(dialect="dominds").call("read_file", {"path": "long.txt"}).next == following
    two = call("read_file", path="long.txt", max_lines=2)
    assert (two["shown"], two["next"]["arguments"]) == (
        "1~2", {"path": "long.txt", "range": "3~", "max_lines": 2},
    )  # fmt: skip
    assert call("read_file", path="long.txt", max_lines=0)["shown"] == "1~500", (
        "0 is what callers send for unset"
    )
    whole = call("read_file", path="long.txt", max_lines=5000)
    assert whole["content"] == numbered(TREE["long.txt"])
    assert "truncated" not in whole
    assert call("read_file", path="long.txt", max_lines=-1)["code"] == "invalid_argument"


@pytest.mark.parametrize(("lines", "first", "last"), [
    ("10~50", 10, 50), ("300~", 300, 1200), ("~20", 1, 20), ("~", 1, 1200), ("7~7", 7, 7),
    ("1190~9999", 1190, 1200), (" 10 ~ 50 ", 10, 50), ("1~1000", 1, 1000),
    ("10-50", 10, 50), ("10 - 50", 10, 50), ("10:50", 10, 50), ("10,50", 10, 50), ("10..50", 10, 50),
])  # fmt: skip
def test_read_file_range(call, lines, first, last):
    read = call("read_file", path="long.txt", range=lines, max_lines=1200)
    expected = "".join(TREE["long.txt"].splitlines(keepends=True)[first - 1 : last])
    assert read["content"] == numbered(expected, first)
    assert "truncated" not in read


@pytest.mark.parametrize(("lines", "more", "shown", "following"), [
    ("10~50", {"max_lines": 3}, "10~12", {"range": "13~50", "max_lines": 3}),
    ("~20", {"max_lines": 3}, "1~3", {"range": "4~20", "max_lines": 3}),
    ("300~", {"max_lines": 3}, "300~302", {"range": "303~", "max_lines": 3}),
    ("1~1000", {}, "1~500", {"range": "501~1000"}),
    ("~", {}, "1~500", {"range": "501~"}),
    ("300~", {}, "300~799", {"range": "800~"}),
    ("1190~9999", {"max_lines": 3}, "1190~1192", {"range": "1193~9999", "max_lines": 3}),
])  # fmt: skip
def test_max_lines_bounds_a_range(call, lines, more, shown, following):
    read = call("read_file", path="long.txt", range=lines, **more)
    first, last = map(int, shown.split("~"))
    assert read["content"] == numbered("".join(TREE["long.txt"].splitlines(True)[first - 1 : last]), first)
    assert (read["truncated"], read["shown"]) == (True, shown)
    assert read["next"] == {"name": "read_file", "arguments": {"path": "long.txt", **following}}


@pytest.mark.parametrize(
    "lines", ["-5", "10-", "10 50", "5-1", "a~b", "50~10", "0~5", "~0", "10", "-5~", "1~2~3", "1.5~2"]
)
def test_an_invalid_range_is_an_error(call, lines):
    failed = call("read_file", path="long.txt", range=lines)
    assert failed["code"] == "invalid_argument"
    assert "10~50" in failed["hint"]


def test_a_range_past_the_end_is_an_error_with_the_total(call):
    failed = call("read_file", path="long.txt", range="1201~1300")
    assert failed["code"] == "past_end"
    assert "1200 lines" in failed["message"]
    assert "range" in failed["hint"]


def test_a_range_too_long_for_an_answer_is_cut_and_continued(ws):
    with Workspace(ws.root, limits=Limits(read_bytes=200)) as small:
        call, content, lines = caller(small), "", "3~60"
        while lines:
            read = call("read_file", path="long.txt", range=lines)
            content += read["content"]
            lines = read["next"]["arguments"]["range"] if read.get("truncated") else None
            assert lines is None or lines.endswith("~60"), "it goes on to the end that was asked for"
    assert content == numbered("".join(TREE["long.txt"].splitlines(keepends=True)[2:60]), 3)


def test_read_file_show_linenos(call):
    assert call("read_file", path="README.md", show_linenos=True) == call("read_file", path="README.md")
    assert call("read_file", path="README.md", show_linenos=False)["content"] == TREE["README.md"]
    assert (
        call("read_file", path="long.txt", range="10~11", show_linenos=False)["content"]
        == "line 10\nline 11\n"
    )


def test_read_file_counts(call, tmp_path):
    """A last line without a line end counts. A form feed does not end a line."""
    for content, lines in (
        (b"", 0),
        (b"a", 1),
        (b"a\n", 1),
        (b"a\nb", 2),
        (b"a\x0cb\xe2\x80\xa8c\n", 1),
        (b"a\rb", 2),
    ):
        (tmp_path / "counted.txt").write_bytes(content)
        read = call("read_file", path="counted.txt")
        assert (read["total_lines"], read["size_bytes"]) == (lines, len(content))


@pytest.mark.parametrize(("content", "shown", "more"), [
    ("a\r\nb\r\n", "   1| a\n   2| b\n", {"newline": "crlf"}),
    ("a\rb", "   1| a\n   2| b", {"newline": "cr"}),
    ("a\r\nb\nc\rd", "   1| a\n   2| b\n   3| c\rd", {"newline": "mixed"}),
    ("a\nb\r", "   1| a\n   2| b\r", {}),
    ("a", "   1| a", {}),
    ("", "", {}),
])  # fmt: skip
def test_line_ends_that_are_not_shown_are_named(call, tmp_path, content, shown, more):
    (tmp_path / "ends.txt").write_bytes(content.encode())
    read = call("read_file", path="ends.txt")
    assert read["content"] == shown
    assert {name: read[name] for name in read if name not in FIELDS["read_file"][1]} == more
    read = call("read_file", path="ends.txt", show_linenos=False)
    assert read["content"] == content
    assert "newline" not in read


def test_an_encoding_other_than_utf_8_is_reported(call, tmp_path):
    (tmp_path / "wide.txt").write_bytes("wide\n".encode("utf-16"))
    read = call("read_file", path="wide.txt", show_linenos=False)
    assert read["content"] == "wide\n"
    assert read["encoding"].startswith("utf-16")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_very_long_line_is_cut_and_named(tmp_path, end):
    content = f"short{end}{'x' * 5000}{end}{'y' * 2000}{end}{'z' * 2001}"
    (tmp_path / "wide.txt").write_bytes(content.encode())
    with Workspace(tmp_path) as ws:
        call = caller(ws)
        exact = call("read_file", path="wide.txt", show_linenos=False)
        assert exact["content"] == f"short{end}{'x' * 2000}{end}{'y' * 2000}{end}{'z' * 2000}"
        assert (exact["cut_lines"], exact["cut_after"]) == ([2, 4], 2000)
        lines = call("read_file", path="wide.txt")["content"].split("\n")
        assert lines == ["   1| short", f"   2| {'x' * 2000}", f"   3| {'y' * 2000}", f"   4| {'z' * 2000}"]


def test_a_file_that_is_not_text_is_named_by_its_kind(ws, tmp_path):
    (tmp_path / "a.bin").write_bytes(b"\x7fELF\0\0\0")
    (tmp_path / "a.ipynb").write_text('{"cells": []}\n')
    call = caller(ws)
    assert call("read_file", path="a.bin")["kind"] == "binary"
    assert call("read_file", path="a.ipynb", show_linenos=False)["content"] == '{"cells": []}\n'


PIECES = [
    b"a", b" ", b"\n", b"\r", b"\t", b":", b"#", b"'", b'"', b"\\", b"-", b"\x85", b"\xc2\x85",
    b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\x1b", b"\x7f", b"\xf0\x9f\x98\x80", b"---\n", b"...\n",
]  # fmt: skip
FILES = st.one_of(
    st.binary(),
    st.text(st.characters(exclude_categories=["Cs"])).map(str.encode),
    st.lists(st.sampled_from(PIECES)).map(b"".join),
)


@law(40, 300, FILES)
@example(b"   1| a\n  b")
@example(b"a: b\n- c\n")
@example(b"%PDF-")
def test_any_file_is_read_back_from_the_yaml_as_the_workspace_reads_it(ws, tmp_path, content):
    (tmp_path / "any.txt").write_bytes(content)
    expected = ws.read("any.txt")
    document = caller(ws)("read_file", path="any.txt", show_linenos=False)
    assert document["total_lines"] == expected.total_lines
    if expected.kind == "text":
        assert document["content"] == expected.content


# ripgrep_files


def test_ripgrep_files_pattern_and_path(call):
    assert call("ripgrep_files", pattern=r"TODO: \w+") == {
        "status": "ok", "pattern": r"TODO: \w+", "files_matched": 3,
        "matches": [{"path": "README.md"}, {"path": "src/main.py"}, {"path": "src/util/text.js"}],
    }  # fmt: skip
    assert call("ripgrep_files", pattern="TODO", path="src/util")["matches"] == [{"path": "src/util/text.js"}]
    assert call("ripgrep_files", pattern="TODO", path="src/main.py")["files_matched"] == 1
    assert call("ripgrep_files", pattern="TODO", path="none")["code"] == "not_found"
    assert call("ripgrep_files", pattern="no such text")["matches"] == []


@pytest.mark.parametrize(("globs", "files"), [
    ("*.py", ["src/main.py"]),
    (["*.py", "*.md"], ["README.md", "src/main.py"]),
    ("*.{py,js}", ["src/main.py", "src/util/text.js"]),
    ("src/*", ["src/main.py"]),
    ("src/**", ["src/main.py", "src/util/text.js"]),
    ("!*.md", ["src/main.py", "src/util/text.js"]),
    ("!util", ["README.md", "src/main.py"]),
    (["*.*", "!src/"], ["README.md"]),
    ([], ["README.md", "src/main.py", "src/util/text.js"]),
])  # fmt: skip
def test_ripgrep_files_globs(call, globs, files):
    found = call("ripgrep_files", pattern="TODO", globs=globs)
    assert [match["path"] for match in found["matches"]] == files


@pytest.mark.parametrize(("tool", "text"), [
    ("ripgrep_files", "pattern"), ("ripgrep_snippets", "pattern"), ("ripgrep_count", "pattern"),
    ("ripgrep_fixed", "literal"),
])  # fmt: skip
@pytest.mark.parametrize(("given", "case", "found"), [
    ("todo", {}, True), ("Todo", {}, False), ("TODO", {}, True), ("todo", {"case": "smart"}, True),
    ("todo", {"case": "sensitive"}, False), ("ToDo", {"case": "insensitive"}, True),
])  # fmt: skip
def test_case_is_the_same_in_four_tools(call, tool, text, given, case, found):
    answer = call(tool, **{text: given}, path="README.md", **case)
    assert bool(answer.get("matches") or answer.get("counts")) is found


def test_ripgrep_files_counts_all_that_it_does_not_show(ws):
    with Workspace(ws.root, limits=Limits(grep_results=2)) as small:
        found = caller(small)("ripgrep_files", pattern="TODO")
        assert (found["files_matched"], len(found["matches"]), found["truncated"]) == (3, 2, True)


# ripgrep_snippets


def test_ripgrep_snippets(call):
    assert call("ripgrep_snippets", pattern="TODO", path="src")["matches"] == [
        {"path": "src/main.py", "line": 5, "content": "    # TODO: one, TODO: two"},
        {"path": "src/util/text.js", "line": 1, "content": "// TODO: four"},
        {"path": "src/util/text.js", "line": 4, "content": "// TODO: five"},
    ]


def test_ripgrep_snippets_context(call):
    text = TREE["src/util/text.js"].splitlines()
    found = call("ripgrep_snippets", pattern="let", context_before=1, context_after=2)
    assert found["matches"] == [
        {"path": "src/util/text.js", "line": 2, "content": "\n".join(text[0:4]), "start_line": 1},
        {"path": "src/util/text.js", "line": 3, "content": "\n".join(text[1:4]), "start_line": 2},
    ]
    found = call("ripgrep_snippets", pattern="four", context_after=1)
    assert found["matches"] == [{"path": "src/util/text.js", "line": 1, "content": "\n".join(text[:2])}]
    assert call("ripgrep_snippets", pattern="four", context_before=-1)["code"] == "invalid_argument"


def test_no_lines_around_a_match_unless_they_are_asked_for(call):
    assert call("ripgrep_snippets", pattern="write")["matches"][0]["content"] == "TODO: write"
    assert call("ripgrep_fixed", literal="write")["matches"][0]["content"] == "TODO: write"
    assert call("ripgrep_search", pattern="write")["results"][0]["content"] == "TODO: write"


def test_a_field_says_if_more_context_lines_were_requested(call):
    for name, arguments in (
        ("ripgrep_snippets", {"context_before": 200}),
        ("ripgrep_search", {"rg_args": "-C200"}),
    ):
        found = call(name, pattern="^line 600$", path="long.txt", **arguments)
        (match,) = found.get("matches") or found["results"]
        assert match["start_line"] == 500
        assert found["context_at_most"] == 100
    assert "context_at_most" not in call("ripgrep_snippets", pattern="line 600", context_before=100)


def test_a_long_line_is_cut_around_its_match_and_says_so(call, tmp_path):
    (tmp_path / "wide.txt").write_text(f"{'x' * 3000}needle{'y' * 3000}\n{'z' * 3000}\n")
    (match,) = call("ripgrep_snippets", pattern="needle")["matches"]
    assert (match["cut"], len(match["content"])) == (True, 400)
    (match,) = call("ripgrep_snippets", pattern="needle", context_after=1)["matches"]
    assert match["cut"] is True
    line, after = match["content"].split("\n")
    assert re.fullmatch("x+needley+", line), "nothing but what the file has"
    assert len(line) == 400
    assert after == "z" * 400


def test_a_search_reports_what_it_left_out(call, tmp_path):
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "a.log").write_text("hidden treasure\n")
    (tmp_path / "a.bin").write_bytes(b"TODO\0")
    found = call("ripgrep_snippets", pattern="treasure")
    assert found["matches"] == []
    assert found["skipped"] == {"hidden": 1, "ignored": 1, "binary": 1}
    assert found["ignored_by"] == [".gitignore:1 *.log"]
    assert any("a.log" in note for note in found["notes"]), "where it would have been"
    assert not any("include_ignored" in note for note in found["notes"])
    opened = call("ripgrep_search", pattern="treasure", rg_args="--no-ignore")
    assert [match["path"] for match in opened["results"]] == ["a.log"]


def test_many_matches_are_cut_and_say_so(ws):
    with Workspace(ws.root, limits=Limits(grep_results=7)) as small:
        found = caller(small)("ripgrep_search", pattern="line")
        assert (len(found["results"]), found["truncated"], found["total"]) == (7, True, 1202)
    with Workspace(ws.root, limits=Limits(output_tokens=300)) as small:
        found = caller(small)("ripgrep_snippets", pattern="line", context_before=2)
        assert 0 < len(found["matches"]) < 100
        assert found["truncated"] is True


def test_a_search_that_is_out_of_time_says_so(tmp_path):
    (tmp_path / "a.txt").write_text("a" * 60 + "!\n")
    with Workspace(tmp_path, limits=Limits(timeout=0.1)) as ws:
        found = caller(ws)("ripgrep_count", pattern="(a|aa)+(?!.)")
        assert found["complete"] is False
        assert found["skipped"]["reached"] == "timeout"


# ripgrep_count, ripgrep_fixed, ripgrep_search


def test_ripgrep_count(call):
    assert call("ripgrep_count", pattern="TODO") == {
        "status": "ok", "pattern": "TODO",
        "counts": [
            {"path": "README.md", "count": 1},
            {"path": "src/main.py", "count": 2},  # on one line
            {"path": "src/util/text.js", "count": 2},
        ],
        "total_count": 5,
    }  # fmt: skip
    assert call("ripgrep_count", pattern="TODO", path="src/main.py")["counts"] == [
        {"path": "src/main.py", "count": 2}
    ]
    nothing = call("ripgrep_count", pattern="no such text")
    assert (nothing["counts"], nothing["total_count"]) == ([], 0)


def test_the_sum_of_the_counts_covers_all_files_even_if_few_are_shown(ws):
    with Workspace(ws.root, limits=Limits(grep_results=1)) as small:
        found = caller(small)("ripgrep_count", pattern="TODO")
    assert (len(found["counts"]), found["truncated"], found["total"], found["total_count"]) == (1, True, 3, 5)


def test_ripgrep_fixed(call):
    assert call("ripgrep_fixed", literal="a.b(") == {
        "status": "ok", "literal": "a.b(", "matches": [{"path": "notes/a.b", "line": 1, "content": "a.b(c)"}],
    }  # fmt: skip
    assert call("ripgrep_fixed", literal="TODO", path="README.md")["matches"] == [
        {"path": "README.md", "line": 3, "content": "TODO: write"}
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_fixed_string_may_span_lines(call, end):
    (match,) = call("ripgrep_fixed", literal=f"first line{end}second")["matches"]
    assert match == {"path": "notes/a.b", "line": 3, "content": "first line\nsecond line"}


def test_ripgrep_search(call):
    assert call("ripgrep_search", pattern=r"TODO: \w+$", path="src") == {
        "status": "ok", "pattern": r"TODO: \w+$",
        "results": [
            {"path": "src/main.py", "line": 5, "content": "    # TODO: one, TODO: two"},
            {"path": "src/util/text.js", "line": 1, "content": "// TODO: four"},
            {"path": "src/util/text.js", "line": 4, "content": "// TODO: five"},
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    "rg_args", ["-i -C1 -g '*.py'", ["-i", "-C1", "-g", "*.py"], ["-i", "-C", "1", "--glob=*.py"]]
)
def test_ripgrep_search_rg_args(call, rg_args):
    found = call("ripgrep_search", pattern="todo", rg_args=rg_args)
    text = TREE["src/main.py"].splitlines()
    assert found["results"] == [
        {"path": "src/main.py", "line": 5, "content": "\n".join(text[3:6]), "start_line": 4},
        {"path": "src/main.py", "line": 6, "content": "\n".join(text[4:6]), "start_line": 5},
    ]


@pytest.mark.parametrize(("rg_args", "results", "total"), [
    ("-l", [{"path": "README.md"}, {"path": "src/main.py"}, {"path": "src/util/text.js"}], None),
    ("-l -T js", [{"path": "README.md"}, {"path": "src/main.py"}], None),
    ("-l --max-depth 1", [{"path": "README.md"}], None),
    ("-l --iglob '*.PY'", [{"path": "src/main.py"}], None),
    ("-c -tpy", [{"path": "src/main.py", "count": 1}], 1),
    ("-c -o -tpy", [{"path": "src/main.py", "count": 2}], 2),
    ("-o -tpy -n -H -N --no-heading --color never", [
        {"path": "src/main.py", "line": 5, "content": "TODO"},
        {"path": "src/main.py", "line": 5, "content": "TODO"},
    ], None),
    ("-v -tmd", [
        {"path": "README.md", "line": 1, "content": "# A thing"},
        {"path": "README.md", "line": 2, "content": ""},
    ], None),
    ("-x -P", [], None),
])  # fmt: skip
def test_rg_args_select_what_is_shown(call, rg_args, results, total):
    found = call("ripgrep_search", pattern="TODO", rg_args=rg_args)
    assert found["results"] == results
    assert found.get("total_count") == total


def test_descriptions_state_the_bounds(tmp_path):
    """The descriptions state the limits of the workspace, not the defaults."""
    limits = Limits(list_entries=7, read_bytes=8000, line_chars=90, grep_results=11, grep_line_chars=120)
    for bounds, said in (
        (None, {"list_dir": "500 ", "read_file": "100,000 bytes", "ripgrep_files": "100 files",
                "ripgrep_snippets": "100 lines on either side", "ripgrep_count": "`total_count`",
                "ripgrep_fixed": "400 characters", "ripgrep_search": ALLOWED}),
        (limits, {"list_dir": "7 ", "read_file": "8,000 bytes, and 90 ", "ripgrep_files": "11 files",
                  "ripgrep_snippets": "11 snippets, 120 ", "ripgrep_count": "11 ", "ripgrep_fixed": "11 ",
                  "ripgrep_search": "11 results, 120 "}),
    ):  # fmt: skip
        with Workspace(tmp_path, limits=bounds) as ws:
            tools = {tool["name"]: tool for tool in ws.tools(dialect="dominds").schemas("anthropic")}
        for name, text in said.items():
            assert text in tools[name]["description"]


@pytest.mark.parametrize(
    "rg_args", [["-i -w -x"], ["-i -w", "-x"], ["-i", "-w", "-x"], "-iwx", ["-iw -x -g '*.md'"]]
)
def test_regression_an_item_of_rg_args_may_hold_several_arguments(call, tmp_path, rg_args):
    """`["-i -w"]` worked, but `["-i -w -x"]` did not."""
    (tmp_path / "three.md").write_text("Needle\nneedle too\n")
    found = call("ripgrep_search", pattern="needle", path="three.md", rg_args=rg_args)
    assert [match["content"] for match in found["results"]] == ["Needle"]


def test_other_rg_args_are_refused_by_name(call):
    failed = call("ripgrep_search", pattern="TODO", rg_args=["--pre=touch owned"])
    assert failed["code"] == "invalid_argument"
    assert "--pre " in failed["message"]
    assert "--max-filesize" in failed["hint"]


def test_advice_names_parameters_of_the_tool(call):
    (note,) = call("ripgrep_fixed", literal="TODO.*one")["notes"]
    assert note.endswith("matches 1 line of src/main.py.")
    (note,) = call("ripgrep_search", pattern="TODO.*one", rg_args="-F")["notes"]
    assert note.endswith("leave out rg_args.")
    (note,) = call("ripgrep_search", pattern="a.b(c)")["notes"]
    assert note.endswith(r'pass pattern="a\\.b\\(c\\)".')


ODD = ": #'\"-?!&*%@`|>{}[],~\n\t\r\x85\u2028\ufeff\u202e\udce9\udc80"
# A path that begins with two backslashes, or with a drive, is refused as a Windows path.
NAMES = st.text(st.one_of(st.sampled_from(ODD), st.characters()), min_size=1, max_size=20).filter(
    lambda name: name not in {".", ".."} and not set(name) & {"/", "\0"} and not re.match(r"\\\\|\w:\\", name)
)


@pytest.mark.skipif(sys.platform == "win32", reason="names of POSIX")
@law(15, 60, st.sets(NAMES, min_size=1, max_size=4))
def test_any_name_of_a_file_is_read_back_from_the_yaml(tmp_path_factory, names):
    """The name is the one that the workspace shows, and read_file accepts it."""
    root = tmp_path_factory.mktemp("names")
    for name in names:
        with suppress(OSError, UnicodeEncodeError):  # too long, or invalid on this system
            (root / name).write_text("needle\n")
    with Workspace(root, policy=Policy(protect=Protect(read=[]))) as ws:  # any name may be protected
        call = caller(ws)
        expected = [entry.name for entry in ws.ls(include_ignored=True).entries]
        assert [entry["name"] for entry in call("list_dir")["entries"]] == expected
        found = [
            match["path"] for match in call("ripgrep_search", pattern="needle", rg_args="-uu")["results"]
        ]
        assert sorted(found) == sorted(expected)
        for path in found:
            assert call("read_file", path=path, show_linenos=False)["content"] == "needle\n"
