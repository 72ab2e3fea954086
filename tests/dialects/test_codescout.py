"""`codescout`: each statement that `docs/reference/dialects/codescout.md` lists, with its own examples."""

# ruff: noqa: E501 - a row of a table is one line
import json
import re
import time

import pytest
from hypothesis import strategies as st

from agentfs import Limits, Policy, Workspace
from tests.conftest import law
from tests.dialects.answers import check, check_session, parameters
from tests.kit import put
from tests.tool_calls import accepts

MAIN = 'fn main() {\n    println!("Hello");\n}\n'
SECURITY = "\n" * 13 + "pub fn validate_read_path(\n" + "\n" * 23 + "pub fn validate_write_path(\n"


@pytest.fixture
def ws(tmp_path):
    root = put(tmp_path / "project", {
        "src/main.rs": MAIN, "src/lib.rs": "use crate::utils::old_helper;\n", "Cargo.toml": "[package]\n",
        "src/util/path_security.rs": SECURITY, ".codescout/project.toml": "name = 1\n",
    })  # fmt: skip
    with Workspace(root) as workspace:
        yield workspace


@pytest.fixture
def do(ws):
    return speaking(ws)


@pytest.fixture
def root(ws):
    return ws.root


def speaking(ws):
    tools = ws.tools(dialect="codescout")

    def do(name, **arguments):
        result = tools.call(name, arguments)
        output = json.loads(result.content)
        if output == "ok":
            return "ok", result.data, result.notes
        assert output == result.data, "data is the same as an object"
        assert ("error" in output) is not result.success
        return output

    return do


PARAMETERS = {
    "read_file": "path*, start_line integer, end_line integer",
    "list_dir": "path*, recursive boolean, detail_level, offset integer, limit integer",
    "search_pattern": "pattern*, path, max_results integer",
    "find_file": "pattern*, path, max_results integer",
    "create_file": "path*, content*",
    "edit_file": "path*, old_string, new_string*, replace_all boolean, insert",
}


def test_tools_and_parameters(ws):
    assert parameters(ws, "codescout") == PARAMETERS
    tools = ws.tools(dialect="codescout").schemas("anthropic")
    schemas = {each["name"]: each["input_schema"] for each in tools}
    assert schemas["list_dir"]["properties"]["detail_level"]["enum"] == ["compact", "full"]
    assert schemas["edit_file"]["properties"]["insert"]["enum"] == ["prepend", "append"]
    for name, parameter, default in (
        ("list_dir", "limit", "50"), ("list_dir", "offset", "0"), ("list_dir", "recursive", "false"),
        ("search_pattern", "max_results", "50"), ("find_file", "max_results", "100"),
        ("edit_file", "replace_all", "false"),
    ):  # fmt: skip
        told = schemas[name]["properties"][parameter]["description"].lower()
        assert f"default {default}" in told


TIPS = {
    "read_file": ["Prefer chunks with explicit start_line and end_line", "use search_pattern"],
    "list_dir": ["Start with a shallow listing, then drill into", "narrow it with path", "use find_file"],
    "search_pattern": ["Use path to narrow the search", "increase it to see them all", "use find_file"],
    "find_file": ["Use search_pattern to find files by their contents", "`**` matches across directories"],
    "create_file": ["parent directories are created", "without warning", "use edit_file instead"],
    "edit_file": ["Exact text to find, including indentation", "imports, constants, config values and small"],
}


def test_tips(ws):
    schemas = {each["name"]: each for each in ws.tools(dialect="codescout").schemas("anthropic")}
    for name, tips in TIPS.items():
        told = " ".join(re.sub(r"\\n\s*", " ", json.dumps(schemas[name])).split())
        assert [tip for tip in tips if tip not in told] == [], name
    told = json.dumps(list(schemas.values()))
    for absent in ("list_symbols", "find_symbol", "replace_symbol"):
        assert absent not in told


DENIED = [
    ".ssh/id_ed25519", ".aws/credentials", ".gnupg/x", ".netrc", ".npmrc", ".git-credentials", ".env",
    ".config/gh/hosts.yml", ".config/hub", ".pypirc", ".kube/config", ".docker/config.json",
    ".cargo/credentials.toml", ".pgpass", "a.pem",
]  # fmt: skip


@pytest.mark.parametrize("path", DENIED)
def test_deny_list(do, ws, root, tmp_path, path):
    put(tmp_path / "project", {path: "needle\n", ".gitignore": ""})
    (tmp_path / "project/link").symlink_to(path)
    for name in (path, f"{root}/{path}", "link"):
        for tool, given in (
            ("read_file", {}), ("search_pattern", {"pattern": "needle"}), ("create_file", {"content": ""}),
            ("edit_file", {"old_string": "needle", "new_string": ""}),
        ):  # fmt: skip
            assert do(tool, path=name, **given)["error"]["code"] == "protected"
    found = do("search_pattern", pattern="needle", path=path.rpartition("/")[0] or ".")
    assert found["total"] == 0, "nor what a walk meets"
    assert found["left_out"].get("protected") or found["left_out"].get("hidden")
    name = path.rpartition("/")[2]
    assert f"{root}/{path}" in do("find_file", pattern=f"**/{name}")["files"], "its name is no secret"
    assert (tmp_path / "project" / path).read_text() == "needle\n"


def lines(first, last):
    return "".join(f"line {n}\n" for n in range(first, last + 1))


LONG = {"path": "src/long.rs"}
UTIL, SAFE = "{root}/src/util/", "{root}/src/util/path_security.rs"
FILES = ["{root}/src/lib.rs", "{root}/src/long.rs", "{root}/src/main.rs"]
MATCHES = [
    {"file": SAFE, "line": 14, "content": "pub fn validate_read_path("},
    {"file": SAFE, "line": 38, "content": "pub fn validate_write_path("},
]
TOML = ["{root}/.codescout/project.toml", "{root}/Cargo.toml"]
LEFT = {"hidden": 3, "ignored": 1}
BOTH = {"old_string": "fn", "new_string": "x", "insert": "append"}
# A call, and the answer: all of it, or the values at some of its places.
ANSWERS = [
    ("read_file", {"path": "src/main.rs"}, {"": {"content": MAIN, "total_lines": 3}}),
    ("read_file", {"path": "src/mian.rs"}, {"": {"error": {
        "code": "not_found", "message": '"src/mian.rs" does not exist.',
        "hint": 'Did you mean "src/main.rs"? Call list_dir(path="src") to see what is there.'}}}),
    ("read_file", {}, {"error/code": "invalid_argument"}),
    ("list_dir", {"path": "."}, {"left_out": LEFT, "entries": ["{root}/much/", "{root}/src/", "{root}/tests/", "{root}/Cargo.toml"]}),
    ("list_dir", {"path": ".", "recursive": True}, {"left_out": LEFT, "entries!": "{root}/target/"}),
    *(("read_file", LONG | asked, {"": {"content": lines(*shown), "total_lines": 850}}) for asked, shown in (
        ({"start_line": 10, "end_line": 25}, (10, 25)), ({"start_line": 1, "end_line": 850}, (1, 850)),
        ({"start_line": 849, "end_line": 9999}, (849, 850)), ({"start_line": 700}, (700, 850)),
        ({"end_line": 3}, (1, 3)), ({"end_line": 300}, (1, 300)),
    )),
    ("read_file", {**LONG, "start_line": 300}, {"content": lines(300, 499), "overflow/shown": 200, "overflow/total": 850}),
    ("read_file", {"path": "src/main.rs", "start_line": 4}, {"error": {
        "code": "past_end", "message": '"src/main.rs" has 3 lines; start_line 4 is past its end.',
        "hint": "Pass a start_line from 1 to 3."}}),
    *(("read_file", {"path": "src/main.rs", **bad}, {"error/code": "invalid_argument"}) for bad in (
        {"start_line": 0}, {"end_line": 0}, {"start_line": -3}, {"start_line": 3, "end_line": 2})),
    ("list_dir", {"path": "src"}, {"": {"entries": [UTIL, *FILES]}}),
    ("list_dir", {"path": "src", "recursive": True}, {"": {"entries": [UTIL, SAFE, *FILES]}}),
    ("list_dir", {"path": "{root}/src/util/"}, {"entries": [SAFE]}),
    ("list_dir", {"path": "src/main.rs"}, {"error/code": "not_a_directory"}),
    ("search_pattern", {"pattern": r"fn\s+validate_\w+"}, {"matches": MATCHES, "total": 2}),
    ("search_pattern", {"pattern": "fn", "path": "src/main.rs"}, {"matches": [{"file": "{root}/src/main.rs", "line": 1, "content": "fn main() {"}]}),
    ("search_pattern", {"pattern": "line \\d", "path": "src"}, {"total": 850, "overflow/shown": 50}),
    ("search_pattern", {"pattern": "line \\d", "max_results": 850}, {"total": 850}),
    ("search_pattern", {"pattern": "x", "max_results": 0}, {"error/code": "invalid_argument"}),
    ("search_pattern", {"pattern": "needle"}, {"matches": [], "total": 0, "left_out": LEFT}),
    ("search_pattern", {"pattern": "needle", "path": "target"}, {"total": 1}),  # it is named
    ("search_pattern", {"pattern": "NEEDLE", "path": "target"}, {"total": 0}),
    *(("search_pattern", {"pattern": bad}, {"error/code": "invalid_pattern"}) for bad in ("(a{1000}){1000}", "(" * 5000, "x" * 100_000)),
    ("find_file", {"pattern": "**/*.toml"}, {"files": TOML, "total": 2, "left_out": {"ignored": 1}}),
    ("find_file", {"pattern": "**/test_*.py", "path": "tests"}, {"files": ["{root}/tests/test_b.py", "{root}/tests/unit/test_a.py"]}),
    ("find_file", {"pattern": "test_*.py", "path": "tests"}, {"files": ["{root}/tests/test_b.py"]}),
    ("find_file", {"pattern": "unit/*", "path": "tests"}, {"total": 1}),
    ("find_file", {"pattern": "src/**/lib.rs"}, {"total": 1}),
    ("find_file", {"pattern": "src/*.rs"}, {"total": 3}),  # `*` does not cross a directory
    ("find_file", {"pattern": "test_*.py"}, {"files": [], "total": 0}),
    ("find_file", {"pattern": "much/*"}, {"total": 120, "overflow/shown": 100}),
    ("edit_file", {"path": "nope", "old_string": "a", "new_string": "b"}, {"error/code": "not_found"}),
    ("edit_file", {"path": "nope", "new_string": "b", "insert": "append"}, {"error/code": "not_found"}),
    ("edit_file", {"path": "src/main.rs", **BOTH}, {"error/code": "invalid_argument"}),
    ("edit_file", {"path": "src/main.rs", "new_string": "x"}, {"error/code": "invalid_argument"}),
    ("edit_file", {"path": "src/main.rs", "new_string": "x", "insert": "before"}, {"error/code": "invalid_argument"}),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "given", "wanted"), ANSWERS, ids=lambda each: str(each)[:40])
def test_answers(do, root, tmp_path, tool, given, wanted):
    texts = {"src/long.rs": lines(1, 850), "target/a.toml": "needle\n", "target/b": "", ".hidden": "needle\n"}
    texts |= {"tests/unit/test_a.py": "", "tests/test_b.py": "", ".gitignore": "target/\n"}
    put(tmp_path / "project", {**texts, **{f"much/f{number:03}": "" for number in range(120)}})
    given, wanted = (json.loads(json.dumps(each).replace("{root}", root)) for each in (given, wanted))
    check(do(tool, **given), wanted)


OK, GONE = {"0": "ok"}, "the byte order mark of the file was removed"
LEFT_OUT = "the byte order mark of the file is left out of content"
CELLS = '{"cells": [{"cell_type": "code", "source": ["x = 1\\n", "y"]}]}'
CLAMP = "pub fn clamp(v: f64, min: f64, max: f64) -> f64 {\n v.max(min).min(max)\n}\n"
HELPERS = {"result": "ok", "path": "src/utils/helpers.rs", "notes": []}
HELLO = 'println!("Hello");'
# Files, calls with their answers, and the files after them.
SESSIONS = {
    "regression_a_directory_is_not_read_as_an_empty_file": ({}, [
        ("read_file", {"path": "src", **lines}, {"error/code": "not_a_file", "error/hint": 'Call list_dir(path="src").'})
        for lines in ({}, {"start_line": 90}, {"start_line": 1, "end_line": 5})], {}),
    "files that are not plain text": (
        {"empty": "", "binary": b"\0\1", "odd": b"\xef\xbb\xbfa\r\n\x0c\x1b\nb", "latin": b"caf\xe9\n"}, [
        ("read_file", {"path": "empty"}, {"": {"content": "", "total_lines": 0}}),
        ("read_file", {"path": "binary"}, {"content": "", "kind": "binary", "note~": "binary"}),
        ("read_file", {"path": "odd"}, {"content": "a\r\n\x0c\x1b\nb", "total_lines": 3, "note^": "the byte order mark"}),
        ("read_file", {"path": "latin"}, {"encoding": "unknown-8bit"})], {}),
    "a notebook is shown as what edit_file takes": ({"a.ipynb": CELLS}, [
        ("read_file", {"path": "a.ipynb"}, {"kind": "notebook", "content": "=== cell 1, code\nx = 1\ny\n"}),
        ("edit_file", {"path": "a.ipynb", "old_string": "x = 1\ny", "new_string": "z"}, OK)],
        {"a.ipynb": CELLS.replace('"x = 1\\n", "y"', '"z"')}),
    "long lines are cut unless a range is given": ({"long": b"a\r\n" + b"x" * 60_000 + b"\r\nb"}, [
        ("read_file", {"path": "long"}, {"content": "a\r\n"}),
        ("read_file", {"path": "long", "start_line": 2}, {"content": "x" * 51_200 + "\r\n", "cut/lines": [2]}),
        ("read_file", {"path": "long", "start_line": 2, "end_line": 2}, {"content": "x" * 60_000 + "\r\n"})], {}),
    "long lines are cut around the match": ({"long": "x" * 1000 + "needle" + "y" * 1000}, [
        ("search_pattern", {"pattern": "needle"}, {"matches/0/content~": "xneedley", "matches/0/content#": 400, "matches/0/cut": [900, 706]})], {}),
    "files that are not UTF-8 are skipped and counted": (
        {"latin": b"needle caf\xe9\n", "binary": b"needle\0\n", "utf8": "needle é\n", "wide": "wide needle é\n".encode("utf-16")}, [
        ("search_pattern", {"pattern": "needle"}, {
            "matches/0/content": "needle é", "matches/1/content": "wide needle é", "total": 2,
            "left_out/undecodable": 1, "left_out/binary": 1})], {}),
    "create_file": ({}, [("create_file", {"path": "src/utils/helpers.rs", "content": CLAMP}, {"": ("ok", HELPERS, ())})], {"src/utils/helpers.rs": CLAMP}),
    **{f"a read leaves out a byte order mark and says so, {codec}": ({"file": "one\ntwo\n".encode(codec)}, [
        ("read_file", {"path": "file"}, {"content": "one\ntwo\n", "note": LEFT_OUT}),
        ("read_file", {"path": "file", "start_line": 2, "end_line": 2}, {"note?": False}),
        ("read_file", {"path": "Cargo.toml"}, {"note?": False})], {}) for codec in ("utf-8-sig", "utf-16")},
    "create_file says that a byte order mark is gone": ({"file": b"\xef\xbb\xbfone\n"}, [
        ("create_file", {"path": "file", "content": "two\n"}, {"2~": GONE}),
        ("create_file", {"path": "file", "content": "\ufeffthree\n"}, {"2!": GONE}),
        ("create_file", {"path": "file", "content": "\ufefffour\n"}, {"2!": GONE})],  # the content has one
        {"file": b"\xef\xbb\xbffour\n"}),
    "create_file refuses characters that no text file holds": ({}, [
        ("create_file", {"path": "new", "content": "a\0b"}, {"error/code": "invalid_argument"}),
        ("create_file", {"path": "new", "content": "a\udc80b"}, {"error/code": "encoding"})], {"new": None}),
    "edit_file": ({}, [
        ("edit_file", {"path": "src/lib.rs", "old_string": "utils::old", "new_string": "utils::new"}, {
            "0": "ok", "2": ()})], {"src/lib.rs": "use crate::utils::new_helper;\n"}),
    "edit_file is exact": ({"crlf": b"a\r\nb\r\nc\r\n"}, [
        ("edit_file", {"path": "src/main.rs", "old_string": f"  {HELLO}  ", "new_string": ""}, {"error/code": "no_match", "error/message~": HELLO}),
        ("edit_file", {"path": "crlf", "old_string": "a\nb", "new_string": "1\n2"}, OK)],
        {"crlf": b"1\r\n2\r\nc\r\n"}),
    "edit_file must be unique": ({"a": "x = 1\ny\nx = 1\n"}, [
        ("edit_file", {"path": "a", "old_string": "x = 1", "new_string": "x = 2"}, {"error/code": "ambiguous", "error/message~": ["1|x = 1", "3|x = 1"]}),
        ("edit_file", {"path": "a", "old_string": "x = 1", "new_string": "x = 2", "replace_all": True}, OK)],
        {"a": "x = 2\ny\nx = 2\n"}),
    "an insert says if it joins two lines": ({"file": "a"}, [
        ("edit_file", {"path": "file", "new_string": "b", "insert": "append"}, {"2/0~": "no line end", "1/notes/0~": "no line end"}),
        ("edit_file", {"path": "file", "new_string": "0", "insert": "prepend"}, {"2/0~": "no line end"}),
        ("edit_file", {"path": "file", "new_string": "\n", "insert": "prepend"}, {"2": ()})],
        {"file": "\n0ab"}),
}  # fmt: skip


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions(do, tmp_path, name):
    check_session(do, tmp_path / "project", *SESSIONS[name])


def test_read_both_lines_has_no_cap(do, tmp_path):
    text = ("é" * 3000 + "\r\n") * 400 + "x" * 300_000
    (tmp_path / "project/wide").write_bytes(text.encode())
    assert do("read_file", path="wide", start_line=1, end_line=401) == {"content": text, "total_lines": 401}
    with Workspace(tmp_path / "project", limits=Limits(file_bytes=50_000)) as small:
        cut = speaking(small)("read_file", path="wide", start_line=1, end_line=401)
        assert 1 <= cut["overflow"]["shown"] < 10
        assert cut["overflow"]["total"] == 401


def test_read_without_lines_overflows(do, ws):
    hint = "File has 850 lines. Use start_line/end_line to read specific ranges"
    texts = {"long": lines(1, 850), "wide": ("x" * 999 + "\n") * 300, "exact": lines(1, 200)}
    for name, text in texts.items():
        ws.write(f"src/{name}.rs", text)
    overflow = {"shown": 200, "total": 850, "hint": hint}
    whole = {"content": lines(1, 200), "total_lines": 850, "overflow": overflow}
    assert do("read_file", path="src/long.rs") == whole
    wide = do("read_file", path="src/wide.rs")
    assert wide["content"] == ("x" * 999 + "\n") * 51, "as many as 51,200 bytes hold"
    assert (wide["overflow"]["shown"], wide["overflow"]["total"]) == (51, 300)
    assert "overflow" not in do("read_file", path="src/exact.rs")
    tools = ws.tools(dialect="codescout")
    call = tools.call("read_file", {"path": "src/long.rs"}).next
    assert call == {"name": "read_file", "arguments": {"path": "src/long.rs", "start_line": 201}}
    assert tools.call(**call).data["content"] == lines(201, 400)


def test_large_reads_have_a_file_id(do, ws, root, tmp_path):
    text = "".join(f"{'x' * 60} {n}\n" for n in range(500))
    ws.write("big.txt", text)
    read = do("read_file", path="big.txt")
    name = read["file_id"]
    assert name.startswith("@file_")
    assert read["content"] == "".join(text.splitlines(True)[:200]), "the lines are shown too"
    assert do("read_file", path=name, start_line=201)["content"] == "".join(text.splitlines(True)[200:400])
    assert do("read_file", path=name, start_line=1, end_line=500)["content"] == text
    found = do("search_pattern", pattern="x 47.$", path=name, max_results=3)
    assert (found["total"], found["matches"][0]["file"]) == (10, f"{root}/big.txt")
    assert do("read_file", path="big.txt")["file_id"] == name
    (tmp_path / "project/big.txt").write_text("now small\n")
    assert do("read_file", path=name) == {"content": "now small\n", "total_lines": 1}, "it follows the file"
    (tmp_path / "project/big.txt").unlink()
    assert do("read_file", path=name)["error"]["code"] == "not_found"
    assert do("read_file", path="@file_ffffffff")["error"]["code"] == "not_found"


@pytest.mark.parametrize(("text", "given", "has"), [
    ("x" * 9_999 + "\n", {}, False), ("x" * 10_000 + "\n", {}, True),
    ("x" * 10_000 + "\n", {"start_line": 1}, True), ("x" * 10_000 + "\n", {"end_line": 1}, True),
    ("x" * 10_000 + "\n", {"start_line": 1, "end_line": 1}, False),  # both lines were given
    (3000, {"start_line": 2900}, False), (3000, {}, True),
], ids=str)  # fmt: skip
def test_small_reads_have_none(do, ws, text, given, has):
    ws.write("text", text if isinstance(text, str) else lines(1, text))
    assert ("file_id" in do("read_file", path="text", **given)) is has


@pytest.fixture
def much(tmp_path, ws):
    put(tmp_path / "project/much", [f"f{number:03}" for number in range(250)])
    return ws


def test_exploring_cap(do, much, root):
    listed = do("list_dir", path="much")
    assert listed["entries"] == [f"{root}/much/f{number:03}" for number in range(200)]
    assert (listed["overflow"]["shown"], listed["overflow"]["total"]) == (200, 250)
    assert 'detail_level="full"' in listed["overflow"]["hint"]
    tools = much.tools(dialect="codescout")
    call = tools.call("list_dir", {"path": "much"}).next
    assert accepts(tools, **call)
    assert tools.call(**call).data["entries"][0] == f"{root}/much/f200"


def test_paging(do, much, root):
    def listed(**page):
        return do("list_dir", path="much", **page)

    names = [f"{root}/much/f{number:03}" for number in range(250)]
    assert listed(detail_level="full") == {"entries": names[:50], "total": 250, "next_offset": 50}
    third = listed(detail_level="full", offset=100, limit=120)
    assert (third["entries"], third["next_offset"]) == (names[100:220], 220)
    assert listed(detail_level="full", offset=220) == {"entries": names[220:], "total": 250}
    assert len(listed(detail_level="full", limit=250)["entries"]) == 250
    assert listed(limit=3)["next_offset"] == 3, "a limit alone asks for pages"
    assert listed(detail_level="full", offset=250)["error"]["code"] == "past_end"
    seen, offset = [], 0
    while offset is not None:
        page = do("list_dir", path=".", recursive=True, detail_level="full", offset=offset)
        seen += page["entries"]
        offset = page.get("next_offset")
    assert len(seen) == len(set(seen)) == page["total"] == 257


@pytest.mark.parametrize(("name", "needed", "defaults"), [
    ("list_dir", {"path": "much"}, {"recursive": False, "detail_level": "compact", "offset": 0, "limit": 50}),
    ("list_dir", {"path": "much", "detail_level": "full"}, {"offset": 0, "limit": 50}),
    ("search_pattern", {"pattern": "fn|name|use"}, {"path": ".", "max_results": 50}),
    ("find_file", {"pattern": "**/*"}, {"path": ".", "max_results": 100}),
])  # fmt: skip
def test_defaults_passed_explicitly_answer_as_defaults_left_out(much, name, needed, defaults):
    """list_dir paged when it was given the limit that its schema names as the default."""
    tools = much.tools(dialect="codescout")
    left_out = tools.call(name, needed)
    for some in (defaults, *({each: value} for each, value in defaults.items())):
        given = tools.call(name, {**needed, **some})
        assert (given.content, given.data) == (left_out.content, left_out.data), some


def test_a_search_that_does_not_end_is_stopped(tmp_path):
    put(tmp_path, {"found": "aaa\n", "slow": "a" * 60 + "!\n"})
    with Workspace(tmp_path, limits=Limits(timeout=0.2)) as ws:
        began = time.process_time()
        found = speaking(ws)("search_pattern", pattern="^(a|aa)+$(?!.)")
        assert time.process_time() - began < 5
    assert found["left_out"]["reached"] == "timeout"
    assert [match["content"] for match in found["matches"]] == ["aaa"]


@pytest.mark.parametrize("before", [
    b"a\r\nb\r\n", b"a\nb\n", b"\xef\xbb\xbfa\r\nb\r\n", "a\r\n".encode("utf-16"), b"caf\xe9\n", b"a\0b", b"",
])  # fmt: skip
@pytest.mark.parametrize("content", ["x\n\u00e9\n", "x\r\ny\r\n", "x\r\ny\n", "\ufeffx\n", "no end", ""])
def test_create_file_writes_exactly_the_content(do, tmp_path, before, content):
    """create_file kept the line ends, the encoding and the byte order mark of the old file."""
    file = tmp_path / "project/file"
    file.write_bytes(before)
    assert do("create_file", path="file", content=content)[0] == "ok"
    assert file.read_bytes() == content.encode()


def test_create_file_overwrites(do, ws, tmp_path):
    output, data, notes = do("create_file", path="src/main.rs", content="")
    assert (output, notes) == ("ok", ("an existing file was overwritten",))
    assert data["notes"] == list(notes)
    assert (tmp_path / "project/src/main.rs").read_text() == ""
    ws.undo()
    assert (tmp_path / "project/src/main.rs").read_text() == MAIN, "the journal keeps the old bytes"
    with Workspace(tmp_path / "project", policy=Policy(overwrite="never")) as strict:
        refused = speaking(strict)("create_file", path="src/main.rs", content="")
        assert refused["error"]["code"] == "already_exists"
    sent = {"name": "create_file", "arguments": {"path": "Cargo.toml", "content": "x = 1"}}
    (message,) = ws.tools(dialect="codescout").answer([{"id": "1", "function": sent}])
    assert message["content"] == '"ok"\n[an existing file was overwritten]'


def test_edit_file_is_exact_under_a_tolerant_policy(tmp_path):
    put(tmp_path, {"main.rs": MAIN})
    with Workspace(tmp_path, policy=Policy(match="tolerant")) as ws:
        failed = speaking(ws)("edit_file", path="main.rs", old_string="fn main() { ", new_string="x")
        assert failed["error"]["code"] == "no_match"


@pytest.mark.parametrize(("data", "old", "had"), [
    (b"a\r\nb\r\n", "a\nb", "CRLF"), (b"a\nb\n", "a\r\nb", "LF"), (b"a\r\nb\nc", "a\nb", "several"),
    (b"a\r\nb\r\n", "a\r\nb", None), (b"a\nb\n", "a\nb", None), (b"a\r\nb\r\n", "a", None),
])  # fmt: skip
def test_edit_file_says_when_line_ends_differ(do, tmp_path, data, old, had):
    (tmp_path / "project/file").write_bytes(data)
    done, _, notes = do("edit_file", path="file", old_string=old, new_string="z")
    assert done == "ok"
    told = [f"old_string matched with the line ends of the file ({had}), which were kept"]
    assert list(notes) == (told if had else [])


@pytest.mark.parametrize(("before", "insert", "after"), [
    (b"a\nb\n", "prepend", b"new\na\nb\n"),
    (b"a\nb\n", "append", b"a\nb\nnew\n"),
    (b"", "prepend", b"new\n"),
    (b"", "append", b"new\n"),
    (b"a\r\nb\r\n", "append", b"a\r\nb\r\nnew\r\n"),
    (b"\xef\xbb\xbfa\n", "prepend", b"\xef\xbb\xbfnew\na\n"),
])  # fmt: skip
@pytest.mark.parametrize("more", [{}, {"old_string": ""}])
def test_insert(do, ws, tmp_path, before, insert, after, more):
    file = tmp_path / "project/file"
    file.write_bytes(before)
    assert do("edit_file", path="file", new_string="new\n", insert=insert, **more)[0] == "ok"
    assert file.read_bytes() == after
    ws.undo()
    assert file.read_bytes() == before


@pytest.mark.full
def test_read_both_lines_of_a_large_file_goes_on(ws, tmp_path):
    """The row said that there is no cap; the call that goes on asked for lines past the range."""
    (tmp_path / "project/large.txt").write_text("a needle\n" + "hay\n" * (10 * 2**20 // 4))
    tools = ws.tools(dialect="codescout")
    call = {"name": "read_file", "arguments": {"path": "large.txt", "start_line": 1, "end_line": 600_000}}
    content = ""
    page = tools.call(**call)
    while "overflow" in page.data:
        content += page.data["content"]
        shown = content.count("\n")
        assert page.data["overflow"]["hint"] == (
            f"File has 2621441 lines. For the rest pass start_line={shown + 1} and end_line=600000"
        )
        asked = {"path": "large.txt", "start_line": shown + 1, "end_line": 600_000}
        assert page.next == {"name": "read_file", "arguments": asked}
        page = tools.call(**page.next)
    assert content, "it went on at least once"
    assert content + page.data["content"] == "a needle\n" + "hay\n" * 599_999


@law(30, 200, st.lists(st.text("ab \x0c\u2028é", max_size=4), min_size=1, max_size=8),
     st.sampled_from(["\n", "\r\n"]), st.data())  # fmt: skip
def test_any_range_is_just_these_lines(ws, tmp_path, bodies, end, data):
    whole = [body + end for body in bodies]
    (tmp_path / "project/any").write_bytes("".join(whole).encode())
    first = data.draw(st.integers(1, len(whole)))
    last = data.draw(st.integers(first, len(whole) + 2))
    read = speaking(ws)("read_file", path="any", start_line=first, end_line=last)
    assert read == {"content": "".join(whole[first - 1 : last]), "total_lines": len(whole)}
