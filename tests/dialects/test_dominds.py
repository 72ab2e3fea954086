"""`dominds`: each statement of the document, as `docs/reference/dialects/dominds.md` lists them.

Every answer is read back by PyYAML, which judges it; `.data` has to be the same.
"""

# ruff: noqa: E501 - a row of a table is one line

import json
import os
import re
from datetime import UTC, datetime

import pytest
import yaml
from hypothesis import example
from hypothesis import strategies as st

from agentfs import Limits, Workspace
from agentfs.dialects.dominds import timestamp
from agentfs.dialects.dominds.rg_args import ALLOWED
from tests.conftest import law
from tests.dialects.answers import parameters
from tests.kit import put
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
    put(tmp_path, TREE)
    with Workspace(tmp_path) as workspace:
        yield workspace


@pytest.fixture
def call(ws):
    return caller(ws)


def caller(ws):
    tools = ws.tools(dialect="dominds")

    def call(name, **arguments):
        assert accepts(tools, name, arguments), "the test sends what the schema has"
        result = tools.call(name, arguments)
        document = yaml.safe_load(result.content)
        assert document == result.data, "data is the same as an object"
        assert json.loads(json.dumps(result.data)) == result.data
        assert result.success is (document["status"] == "ok")
        return document

    return call


def numbered(text, first=1):
    return "".join(f"{number:4}| {line}\n" for number, line in enumerate(text.splitlines(), first))


# Unlike in the document, `case` is in four tools instead of one.


PARAMETERS = {
    "list_dir": "path",
    "read_file": "path*, max_lines integer, range, show_linenos boolean",
    "ripgrep_files": "pattern*, path, globs array|string, case",
    "ripgrep_snippets": "pattern*, path, context_before integer, context_after integer, case",
    "ripgrep_count": "pattern*, path, case",
    "ripgrep_fixed": "literal*, path, case",
    "ripgrep_search": "pattern*, path, rg_args array|string",
}
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
    assert parameters(ws, "dominds") == PARAMETERS


WRONG = [
    *(("read_file", given) for given in (
        {"path": "src"}, {"path": "main.py"}, {"path": "long.txt", "range": "9999~"},
        {"path": "README.md", "range": "9~1"}, {"path": "README.md", "max_lines": -1})),
    ("list_dir", {"path": "README.md"}), ("list_dir", {"path": "util"}),
    ("ripgrep_files", {"pattern": "a", "globs": "["}),
    ("ripgrep_snippets", {"pattern": "a", "context_before": -1}),
    ("ripgrep_count", {"pattern": "("}), ("ripgrep_fixed", {"literal": ""}),
    *(("ripgrep_search", {"pattern": "a", "rg_args": given}) for given in ("-t nope", "-t zzzzz", "-E nope", "--max-filesize x")),
]  # fmt: skip


def test_no_words_of_the_workspaces_own_tools_are_left(ws, call):
    tools = ws.tools(dialect="dominds")
    said = json.dumps(tools.schemas("anthropic")) + tools.instructions()
    for name, arguments in WRONG:
        failed = call(name, **arguments)
        assert failed["status"] == "error"
        said += json.dumps(failed)
    words = re.findall(r"([a-z_]+)=|`([a-z_]+)`|(?<=[Cc]all )([a-z_]+)|(?<=[Pp]ass )([a-z_]+)", said)
    own = {"offset", "limit", "include_ignored", "before", "after", "max_filesize", "ls", "read", "grep"}
    assert {word for found in words for word in found} & (own | {"glob"}) == set()


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


@pytest.mark.parametrize("name", ["src", "empty", "deep/er"])
def test_regression_every_directory_is_named_by_its_path(ws, call, tmp_path, name):
    """An empty directory was named as in the call."""
    (tmp_path / "empty").mkdir(exist_ok=True)
    (tmp_path / "deep/er").mkdir(parents=True, exist_ok=True)
    for spelling in (name, f"./{name}/", f"{name}/.", f"{ws.root}/{name}/", f"src/../{name}"):
        assert call("list_dir", path=spelling)["path"] == name


MAIN, JS = (TREE[path].splitlines() for path in ("src/main.py", "src/util/text.js"))
LONG = {"path": "long.txt"}
TEXT_JS = {"path": "src/util/text.js"}
IN_SRC = [
    {"path": "src/main.py", "line": 5, "content": MAIN[4]},
    *({**TEXT_JS, "line": line, "content": JS[line - 1]} for line in (1, 4)),
]
TODOS = [{"path": "README.md"}, {"path": "src/main.py"}, TEXT_JS]
AROUND = [
    {"path": "src/main.py", "line": 5, "content": "\n".join(MAIN[3:6]), "start_line": 4},
    {"path": "src/main.py", "line": 6, "content": "\n".join(MAIN[4:6]), "start_line": 5},
]
WRITE = [{"path": "README.md", "line": 3, "content": "TODO: write"}]
SPANNING = [{"path": "notes/a.b", "line": 3, "content": "first line\nsecond line"}]


def lines(first, last, *, numbers=True):
    text = "".join(TREE["long.txt"].splitlines(True)[first - 1 : last])
    return numbered(text, first) if numbers else text


def paths(*names):
    return [{"path": name} for name in names]


# A call, and the answer: all of it without its status, or some of its fields. A field of hints is a part.
ANSWERS = {
    "list_dir": [
        *(({"path": path}, {"path": "src"}) for path in ("src", "src/", "{root}/src", "./src/.")),
        ({}, {"path": "."}), ({"path": "."}, {"path": "."}), ({"path": "{root}"}, {"path": "."}),
        ({"path": "none"}, {"code": "not_found"}), ({"path": "README.md"}, {"code": "not_a_directory"}),
        ({"path": "empty"}, {"": {"path": "empty", "entries": []}}),
    ],
    "read_file": [
        *(({"path": path}, {"": {
            "path": "src/main.py", "total_lines": 6, "size_bytes": len(TREE["src/main.py"]),
            "content": numbered(TREE["src/main.py"])}}) for path in ("src/main.py", "{root}/src/main.py")),
        ({"path": "src"}, {"code": "not_a_file", "hint": "list_dir"}),
        ({"path": "src", "range": "99~"}, {"code": "not_a_file"}),
        ({"path": "README.md", "show_linenos": True}, {"content": numbered(TREE["README.md"])}),
        ({"path": "README.md", "show_linenos": False}, {"content": TREE["README.md"]}),
        ({**LONG, "range": "10~11", "show_linenos": False}, {"content": lines(10, 11, numbers=False)}),
        ({**LONG, "max_lines": 5000}, {"": {"path": "long.txt", "total_lines": 1200, "size_bytes": len(TREE["long.txt"]), "content": lines(1, 1200)}}),
        ({**LONG, "max_lines": -1}, {"code": "invalid_argument"}),
        ({**LONG, "range": "1201~1300"}, {"code": "past_end", "message": "1200 lines", "hint": "range"}),
        *(({**LONG, "range": wrong}, {"code": "invalid_argument", "hint": "10~50"}) for wrong in (
            "-5", "10-", "10 50", "5-1", "a~b", "50~10", "0~5", "~0", "10", "-5~", "1~2~3", "1.5~2")),
        *(({**LONG, "range": spelled, "max_lines": 1200}, {"content": lines(*shown)})
          for spelled, *shown in (
            ("10~50", 10, 50), ("300~", 300, 1200), ("~20", 1, 20), ("~", 1, 1200), ("7~7", 7, 7),
            ("1190~9999", 1190, 1200), (" 10 ~ 50 ", 10, 50), ("1~1000", 1, 1000),
            *((f"10{to}50", 10, 50) for to in ("-", " - ", ":", ",", "..")))),
        ({"path": "wide.txt", "show_linenos": False}, {"content": "wide\n", "encoding": "utf-16"}),
        ({"path": "a.bin"}, {"kind": "binary"}),
        ({"path": "a.ipynb", "show_linenos": False}, {"content": '{"cells": []}\n'}),
        # A last line without a line end counts. A form feed does not end a line.
        *(({"path": f"counted-{lines}-{size}"}, {"total_lines": lines, "size_bytes": size})
          for lines, size in ((0, 0), (1, 1), (1, 2), (2, 3), (1, 7), (2, 4))),
    ],
    "ripgrep_files": [
        ({"pattern": r"TODO: \w+"}, {"": {"pattern": r"TODO: \w+", "files_matched": 3, "matches": TODOS}}),
        ({"pattern": "TODO", "path": "src/util"}, {"matches": [TEXT_JS]}),
        ({"pattern": "TODO", "path": "src/main.py"}, {"files_matched": 1}),
        ({"pattern": "TODO", "path": "none"}, {"code": "not_found"}),
        ({"pattern": "no such text"}, {"matches": []}),
        *(({"pattern": "TODO", "globs": globs}, {"matches": paths(*found)}) for globs, *found in (
            ("*.py", "src/main.py"), (["*.py", "*.md"], "README.md", "src/main.py"),
            ("*.{py,js}", "src/main.py", "src/util/text.js"), ("src/*", "src/main.py"),
            ("src/**", "src/main.py", "src/util/text.js"), ("!*.md", "src/main.py", "src/util/text.js"),
            ("!util", "README.md", "src/main.py"), (["*.*", "!src/"], "README.md"),
            ([], "README.md", "src/main.py", "src/util/text.js"))),
    ],
    "ripgrep_snippets": [
        ({"pattern": "TODO", "path": "src"}, {"matches": IN_SRC}),
        ({"pattern": "let", "context_before": 1, "context_after": 2}, {"matches": [
            {**TEXT_JS, "line": 2, "content": "\n".join(JS), "start_line": 1},
            {**TEXT_JS, "line": 3, "content": "\n".join(JS[1:4]), "start_line": 2}]}),
        ({"pattern": "four", "context_after": 1}, {"matches": [{**TEXT_JS, "line": 1, "content": "\n".join(JS[:2])}]}),
        ({"pattern": "four", "context_before": -1}, {"code": "invalid_argument"}),
        ({"pattern": "write"}, {"matches": WRITE}),
    ],
    "ripgrep_count": [
        ({"pattern": "TODO"}, {"": {"pattern": "TODO", "total_count": 5, "counts": [
            {**each, "count": count} for each, count in zip(TODOS, (1, 2, 2), strict=True)]}}),
        ({"pattern": "TODO", "path": "src/main.py"}, {"counts": [{"path": "src/main.py", "count": 2}]}),
        ({"pattern": "no such text"}, {"counts": [], "total_count": 0}),
    ],
    "ripgrep_fixed": [
        ({"literal": "a.b("}, {"": {"literal": "a.b(", "matches": [{"path": "notes/a.b", "line": 1, "content": "a.b(c)"}]}}),
        ({"literal": "write"}, {"matches": WRITE}),
        ({"literal": "TODO", "path": "README.md"}, {"matches": WRITE}),
        *(({"literal": f"first line{end}second"}, {"matches": SPANNING}) for end in ("\n", "\r\n")),
        ({"literal": "TODO.*one"}, {"notes": "matches 1 line of src/main.py."}),
    ],
    "ripgrep_search": [
        ({"pattern": r"TODO: \w+$", "path": "src"}, {"": {"pattern": r"TODO: \w+$", "results": IN_SRC}}),
        ({"pattern": "write"}, {"results": WRITE}),
        *(({"pattern": "todo", "rg_args": given}, {"results": AROUND}) for given in (
            "-i -C1 -g '*.py'", ["-i", "-C1", "-g", "*.py"], ["-i", "-C", "1", "--glob=*.py"])),
        # An item of rg_args may hold several arguments.
        *(({"pattern": "needle", "path": "three.md", "rg_args": given}, {"results": [{"path": "three.md", "line": 1, "content": "Needle"}]}) for given in (
            ["-i -w -x"], ["-i -w", "-x"], ["-i", "-w", "-x"], "-iwx", ["-iw -x -g '*.md'"])),
        *(({"pattern": "TODO", "rg_args": given}, {"results": found}) for given, found in (
            ("-l", TODOS), ("-l -T js", TODOS[:2]), ("-l --max-depth 1", TODOS[:1]),
            ("-l --iglob '*.PY'", TODOS[1:2]),
            ("-o -tpy -n -H -N --no-heading --color never", [{**IN_SRC[0], "content": "TODO"}] * 2),
            ("-v -tmd -g '!three.md'", [{**WRITE[0], "line": 1, "content": "# A thing"}, {**WRITE[0], "line": 2, "content": ""}]),
            ("-x -P", []))),
        *(({"pattern": "TODO", "rg_args": given}, {"results": [{"path": "src/main.py", "count": count}], "total_count": count})
          for given, count in (("-c -tpy", 1), ("-c -o -tpy", 2))),
        ({"pattern": "TODO", "rg_args": ["--pre=touch owned"]}, {"code": "invalid_argument", "message": "--pre ", "hint": "--max-filesize"}),
        ({"pattern": "TODO.*one", "rg_args": "-F"}, {"notes": "leave out rg_args."}),
        ({"pattern": "a.b(c)"}, {"notes": r'pass pattern="a\\.b\\(c\\)".'}),
    ],
}  # fmt: skip


# Files of some calls. A last line without a line end counts; a form feed does not end a line.
MORE = {
    "read_file": {
        "a.bin": b"\x7fELF\0", "a.ipynb": b'{"cells": []}\n', "wide.txt": "wide\n".encode("utf-16"),
        "counted-0-0": b"", "counted-1-1": b"a", "counted-1-2": b"a\n", "counted-2-3": b"a\nb",
        "counted-1-7": b"a\x0cb\xe2\x80\xa8\n", "counted-2-4": b"aa\rb",
    },
    "ripgrep_search": {"three.md": b"Needle\nneedle too\n"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "arguments", "wanted"), [(name, *row) for name, rows in ANSWERS.items() for row in rows]
)
def test_answers(ws, call, tmp_path, name, arguments, wanted):
    """The wanted text of errors, notes and names of encodings is a part of the answer."""
    (tmp_path / "empty").mkdir()
    for path, content in MORE.get(name, {}).items():
        (tmp_path / path).write_bytes(content)
    given = {key: each.format(root=ws.root) if key == "path" else each for key, each in arguments.items()}
    answer = call(name, **given)
    for field, value in wanted.items():
        if field == "":
            assert answer == {"status": "ok", **value}
            assert list(answer) == FIELDS[name][1], "in the order of the document"
        elif field in {"message", "hint", "encoding", "notes"}:
            assert value in "".join(answer[field])
        else:
            assert answer[field] == value


def test_list_dir_entries(call):
    listed = call("list_dir")["entries"]
    assert [entry["name"] for entry in listed] == ["notes", "src", "README.md", "long.txt"]
    assert [entry["size"] for entry in listed] == [None, None, 23, len(TREE["long.txt"])]
    assert all(list(entry) == ["name", "type", "size", "modified"] for entry in listed)


@pytest.mark.parametrize(("limits", "name", "arguments", "wanted"), [
    ({"list_entries": 4}, "list_dir", {}, {"entries": 4, "total": 5}),
    ({"output_tokens": 100}, "list_dir", {}, {"entries": 3, "total": 5}),
    ({"grep_results": 2}, "ripgrep_files", {"pattern": "TODO"}, {"matches": 2, "files_matched": 3}),
    ({"grep_results": 7}, "ripgrep_search", {"pattern": "line"}, {"results": 7, "total": 1202}),
    ({"grep_results": 1}, "ripgrep_count", {"pattern": "TODO"}, {"counts": 1, "total": 3, "total_count": 5}),
    ({"output_tokens": 300}, "ripgrep_snippets", {"pattern": "line", "context_before": 2}, {"matches": 10}),
])  # fmt: skip
def test_a_long_answer_is_cut_and_says_so(ws, tmp_path, limits, name, arguments, wanted):
    (tmp_path / "more").touch()
    with Workspace(ws.root, limits=Limits(**limits)) as small:
        answer = caller(small)(name, **arguments)
    assert answer["truncated"] is True
    for field, value in wanted.items():
        if isinstance(answer[field], int) or "output_tokens" not in limits:
            assert (answer[field] if isinstance(answer[field], int) else len(answer[field])) == value
        else:
            assert 0 < len(answer[field]) < answer.get("total", 100)


def test_list_dir_types(call, tmp_path):
    for name, target in (("dir", "src"), ("file", "README.md"), ("link", "to-file"), ("nothing", "none")):
        (tmp_path / f"to-{name}").symlink_to(target)
    (tmp_path / "out").symlink_to("/")
    os.mkfifo(tmp_path / "fifo")
    listed = call("list_dir")["entries"]
    assert {entry["name"]: (entry["type"], entry.get("target")) for entry in listed} == {
        "src": ("dir", None), "notes": ("dir", None), "README.md": ("file", None), "long.txt": ("file", None),
        "to-dir": ("dir", "src"), "to-file": ("file", "README.md"), "to-nothing": ("symlink", "none"),
        "to-link": ("file", "to-file"), "out": ("symlink", None), "fifo": ("other", None),
    }  # fmt: skip
    assert [entry["size"] for entry in listed if entry["name"] in {"to-file", "to-link"}] == [23, 23]
    assert call("read_file", path="to-file")["content"] == call("read_file", path="README.md")["content"]
    for name, code in (("to-nothing", "not_found"), ("out", "outside_workspace"), ("fifo", "not_regular")):
        assert call("read_file", path=name)["code"] == code


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


# read_file


@pytest.mark.parametrize(("lines", "more", "shown", "following"), [
    (None, {}, "1~500", {"range": "501~"}),
    (None, {"max_lines": 2}, "1~2", {"range": "3~", "max_lines": 2}),
    (None, {"max_lines": 0}, "1~500", {"range": "501~", "max_lines": 0}),  # 0 is what callers send for unset
    ("10~50", {"max_lines": 3}, "10~12", {"range": "13~50", "max_lines": 3}),
    ("~20", {"max_lines": 3}, "1~3", {"range": "4~20", "max_lines": 3}),
    ("300~", {"max_lines": 3}, "300~302", {"range": "303~", "max_lines": 3}),
    ("1~1000", {}, "1~500", {"range": "501~1000"}),
    ("~", {}, "1~500", {"range": "501~"}),
    ("300~", {}, "300~799", {"range": "800~"}),
    ("1190~9999", {"max_lines": 3}, "1190~1192", {"range": "1193~9999", "max_lines": 3}),
])  # fmt: skip
def test_max_lines_bounds_a_range(ws, call, lines, more, shown, following):
    given = {**LONG, **({} if lines is None else {"range": lines}), **more}
    read = call("read_file", **given)
    first, last = map(int, shown.split("~"))
    assert read["content"] == numbered("".join(TREE["long.txt"].splitlines(True)[first - 1 : last]), first)
    assert (read["total_lines"], read["truncated"], read["shown"]) == (1200, True, shown)
    assert read["next"] == {"name": "read_file", "arguments": {**LONG, **following}}
    assert ws.tools(dialect="dominds").call("read_file", given).next == read["next"]


def test_a_range_too_long_for_an_answer_is_cut_and_continued(ws):
    with Workspace(ws.root, limits=Limits(read_bytes=200)) as small:
        call, content, lines = caller(small), "", "3~60"
        while lines:
            read = call("read_file", path="long.txt", range=lines)
            content += read["content"]
            lines = read["next"]["arguments"]["range"] if read.get("truncated") else None
            assert lines is None or lines.endswith("~60"), "it goes on to the end that was asked for"
    assert content == numbered("".join(TREE["long.txt"].splitlines(keepends=True)[2:60]), 3)


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


# ripgrep_snippets


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


def test_a_search_that_is_out_of_time_says_so(tmp_path):
    (tmp_path / "a.txt").write_text("a" * 60 + "!\n")
    with Workspace(tmp_path, limits=Limits(timeout=0.1)) as ws:
        found = caller(ws)("ripgrep_count", pattern="(a|aa)+(?!.)")
        assert found["complete"] is False
        assert found["skipped"]["reached"] == "timeout"


# ripgrep_count, ripgrep_fixed, ripgrep_search


def test_descriptions_state_the_bounds(tmp_path):
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
