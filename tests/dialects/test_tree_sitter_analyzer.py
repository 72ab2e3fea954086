"""`tree-sitter-analyzer`: each statement of the document, as its page lists them."""

# ruff: noqa: E501 - a row of a table is one line

import asyncio
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from itertools import combinations
from pathlib import Path

import pytest

from agentfs import Event, Limits, Policy, Workspace
from agentfs.dialects.tree_sitter_analyzer import DIALECT, in_language
from agentfs.dialects.tree_sitter_analyzer.contract import COSTS
from agentfs.text.display import estimate_tokens
from tests.conftest import needs, program
from tests.dialects.answers import check, check_session, parameters
from tests.kit import put
from tests.tool_calls import accepts

TOOLS = ("list_files", "search_content", "find_and_grep")
MODES = list(COSTS)
TREE = {
    "README.md": "# A thing\n\nTODO: write\n",
    "src/main.py": "import os\n\n\ndef main():\n    # TODO: one\n    return os  # todo two, TODO three\n",
    "src/util/Text.JS": "// TODO: ünï TODO\nlet a = 1;\nlet b = 2;\n",
    "src/util/helper.py": "def help():\n    return a.b(1)\n",
    "src/empty.txt": "", "build/out.py": "TODO = 'built'\n", ".gitignore": "build/\n",
    ".hidden/note.txt": "TODO hidden\n",
}  # fmt: skip


@pytest.fixture(autouse=True)
def english(monkeypatch):
    for name in ("AGENTFS_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def ws(tmp_path, ws):
    put(tmp_path, TREE)
    return ws


@pytest.fixture
def call(ws):
    tools = ws.tools(dialect="tree-sitter-analyzer")

    def call(name, **arguments):
        assert accepts(tools, name, arguments), "the test sends what the schema has"
        return tools.call(name, arguments)

    return call


def value(result):
    assert result.success, result.content
    return json.loads(result.content)


def error(result):
    assert not result.success
    found = json.loads(result.content)
    assert list(found) == ["error"]
    assert list(found["error"]) == ["code", "message", "hint"]
    assert result.data == found
    return found["error"]


def parts_of(result):
    content = json.loads(result.content)
    named = content if isinstance(content, dict) else {"matches": content}
    found = named["matches"] if isinstance(named.get("matches"), list) else []
    hits = [(each["file"], each["line_number"]) for each in found if "line_number" in each]
    said = "\n".join([*result.notes, *named.get("notes", ())])
    return {
        "value": content, "error": named.get("error"), "hits": hits, "data": result.data,
        "notes": result.notes, "said": said,
    }  # fmt: skip


@pytest.fixture
def names(call, ws):
    def names(*roots, **filters):
        found = value(call("list_files", roots=list(roots or ["."]), **filters))
        return [os.path.relpath(entry["path"], ws.root).replace(os.sep, "/") for entry in found]

    return names


@pytest.fixture
def hits(call):
    def hits(query, *roots, **options):
        where = {} if "files" in options else {"roots": list(roots or ["."])}
        found = value(call("search_content", query=query, **where, **options))
        return [(match["file"], match["line_number"]) for match in found]

    return hits


LISTING = (
    "pattern, glob boolean, types array, extensions array, exclude array, depth integer, follow_symlinks boolean, hidden boolean, no_ignore boolean, "
    "size array, changed_within, changed_before, full_path_match boolean, absolute boolean"
)
CORE = (
    "regex boolean, fixed_strings boolean, word boolean, case, multiline boolean, include_globs array, exclude_globs array, max_filesize, "
    "context_before integer, context_after integer, encoding, max_count integer, timeout_ms integer, total_only boolean, count_only_matches boolean, "
    "summary_only boolean, group_by_file boolean, optimize_paths boolean"
)
# The inputs of the document.
PARAMETERS = {
    "list_files": f"roots* array, {LISTING}, limit integer",
    "search_content": f"query*, {CORE}, roots array, files array, follow_symlinks boolean, hidden boolean, no_ignore boolean",
    "find_and_grep": f"roots* array, query*, {LISTING}, file_limit integer, {CORE}, sort",
}  # fmt: skip
DEFAULTS = {
    **dict.fromkeys(("glob", "follow_symlinks", "hidden", "no_ignore", "full_path_match", "fixed_strings", "word", "multiline"), False),
    **dict.fromkeys((*MODES, "optimize_paths"), False),
    "absolute": True, "regex": True, "limit": 2000, "file_limit": 2000, "case": "smart", "timeout_ms": 4000, "sort": "path",
}  # fmt: skip


def test_the_schema_has_exactly_the_documented_inputs_and_defaults(ws):
    assert parameters(ws, "tree-sitter-analyzer") == PARAMETERS
    for tool in ws.tools(dialect="tree-sitter-analyzer").schemas("anthropic"):
        shown = tool["input_schema"]["properties"]
        for name in shown.keys() & DEFAULTS.keys():
            assert shown[name]["description"].endswith(f"Default {json.dumps(DEFAULTS[name])}."), name
        assert {each["items"]["type"] for each in shown.values() if each["type"] == "array"} == {"string"}
        if tool["name"] != "list_files":
            assert shown["max_filesize"]["description"].endswith("Default 10M.")
            assert set(shown["case"]["enum"]) == {"smart", "insensitive", "sensitive"}
    assert set(shown["sort"]["enum"]) == {"path", "mtime", "size"}


# Security and common defaults


NEEDLES = {"roots": ["many"], "query": "needle"}
LOWERED = "{}limit was lowered from {} to 10,000, the maximum"
CAPS = [
    ("list_files", {}, {"value#": 2000, "data/truncated": True, "data/total": 10_100, "notes/0~": "the first 2,000 of 10,100 entries"}),
    # At its most, no note advises to raise the limit.
    ("list_files", {"limit": 50_000}, {"value#": 10_000, "notes/0": LOWERED.format("", "50,000"), "said!": "raise limit"}),
    ("list_files", {"limit": 3}, {"value#": 3}), ("list_files", {"limit": 0}, {"error/code": "invalid_argument"}),
    ("list_files", {"roots": ["src"]}, {"data/truncated": False}),
    ("find_and_grep", {"total_only": True}, {"value": 2000, "data/notes/0~": "the first 2,000 of 10,100 files were searched", "notes": ("partial",)}),
    ("find_and_grep", {"total_only": True, "file_limit": 20_000}, {
        "value": 10_000, "data/notes/0": LOWERED.format("file_", "20,000"), "data/notes/1!": "raise file_limit"}),
    ("find_and_grep", {"file_limit": 2}, {
        "hits": [("many/00000.txt", 1), ("many/00001.txt", 1)], "value/meta/truncated": True, "value/meta/searched_file_count": 2}),
    ("find_and_grep", {"limit": 2}, {"value/meta/searched_file_count": 2}),  # another name for file_limit
]  # fmt: skip


@pytest.mark.full
def test_the_limit_is_2000_and_never_over_10000(ws, tmp_path):
    put(tmp_path / "many", [f"{number:05}.txt" for number in range(10_100)], "needle\n")
    tools = ws.tools(dialect="tree-sitter-analyzer")
    for name, given, wanted in CAPS:
        asked = {"roots": ["many"]} if name == "list_files" else NEEDLES
        check(parts_of(tools.call(name, {**asked, **given})), wanted)


@pytest.mark.parametrize(("listing", "globs", "searched"), [
    ({"extensions": ["log"]}, {"exclude_globs": ["a*"]}, {"b.log", "c.log"}),
    ({"pattern": "^[a-c]"}, {"include_globs": ["c*", "b*"]}, {"b.log", "c.log"}),
    ({"pattern": "?.log", "glob": True}, {"include_globs": ["b*", "c*"]}, {"b.log"}),

    ({"exclude": ["a.*"]}, {"exclude_globs": ["*.md", "*.txt", "*.py", "*.JS", "b*"]}, {"c.log"}),
])  # fmt: skip
def test_globs_of_the_search_narrow_the_files_before_file_limit(call, tmp_path, listing, globs, searched):
    for name in "abc":
        (tmp_path / f"{name}.log").write_text("needle\n")
    found = call("find_and_grep", roots=["."], query="needle", file_limit=2, **listing, **globs)
    assert {match["file"] for match in value(found)["matches"]} == searched


@pytest.mark.full
def test_max_filesize_is_10m_and_never_over_200m(hits, call, tmp_path, ws):
    size = 10 * 2**20
    for name, more in (("large.txt", size), ("below.txt", size - 7)):
        (tmp_path / name).write_bytes(b"needle\n" + b"x" * more)
    assert hits("needle") == [("below.txt", 1)]
    assert call("search_content", roots=["."], query="needle").data["skipped"]["too_large"] == 1
    assert len(hits("needle", max_filesize="11M")) == 2
    (tmp_path / "mega.txt").write_bytes(b"needle\n" + b"x" * (1_000_000))  # over 10^6, under 2^20
    assert ("mega.txt", 1) in hits("needle", max_filesize="1M")
    assert hits("needle", max_filesize="900K") == []
    assert hits("TODO", "README.md", max_filesize="23") == [("README.md", 3)]
    assert hits("TODO", "README.md", max_filesize="22") == []
    capped = call("search_content", roots=["README.md"], query="TODO", max_filesize="1G")
    assert capped.notes == ("max_filesize was lowered from 1G to 200M, the maximum",)
    with Workspace(tmp_path, limits=Limits(file_bytes=100)) as small:
        tools = small.tools(dialect="tree-sitter-analyzer")
        found = tools.call("search_content", {"roots": ["."], "query": "n"})
        assert ("below.txt" in found.content, found.data["skipped"]["too_large"]) == (True, 1)


SLOW = {"files": ["slow.txt"], "query": "(a|aa)+(?!.)", "timeout_ms": 200}
TIMEOUTS = [
    ("search_content", SLOW, {"value": [], "data/exact": False, "said~": ["stopped early, out of time", "timeout_ms"]}),
    ("search_content", {**SLOW, "files": ["fast.txt", "slow.txt"], "query": "^(a|aa)+$(?!.)|aaa"}, {"hits/0": ("fast.txt", 1)}),  # what was found by then
    ("search_content", {"roots": ["README.md"], "query": "TODO", "timeout_ms": 60_000}, {
        "notes": ("timeout_ms was lowered from 60,000 to 30,000, the maximum",)}),
    ("find_and_grep", {"roots": ["."], "pattern": "slow", "query": "(a|aa)+(?!.)", "timeout_ms": 200}, {"value/meta/truncated": True, "said~": "out of time"}),
]  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize(("tool", "given", "wanted"), TIMEOUTS)
def test_the_timeout_is_4000_ms_and_never_over_30000(call, tmp_path, tool, given, wanted):
    put(tmp_path, {"slow.txt": "a" * 60 + "b\n", "fast.txt": "aaa\n"})
    began = time.process_time()
    check(parts_of(call(tool, **given)), wanted)
    assert time.process_time() - began < 3


@pytest.mark.parametrize(("asked", "wanted"), [
    ({}, []), ({"hidden": True}, [".hidden/note.txt"]), ({"no_ignore": True}, ["build/out.py"]),
    ({"hidden": True, "no_ignore": True}, [".hidden/note.txt", "build/out.py"]),
])  # fmt: skip
def test_hidden_and_ignored_are_left_out_unless_asked_for(names, hits, call, tmp_path, asked, wanted):
    put(tmp_path, {".git/note": "built\n"})
    listed = names(types=["f"], **asked)
    assert [name for name in (".hidden/note.txt", "build/out.py") if name in listed] == wanted
    assert not any(name.startswith(".git/") for name in listed)
    assert sorted(file for file, _ in hits("built|hidden", **asked)) == wanted
    found = parts_of(call("find_and_grep", roots=["."], query="built|hidden", **asked))
    assert sorted(file for file, _ in found["hits"]) == wanted


# list_files


def test_the_output_of_list_files(call, ws, tmp_path):
    os.utime(tmp_path / "src/main.py", (1_700_000_000.75, 1_700_000_000.75))
    (tmp_path / "secret.pem").write_text("key\n")
    found = value(call("list_files", roots=["."]))
    assert isinstance(found, list)
    by_path = {entry["path"]: entry for entry in found}
    path = f"{ws.root}/src/main.py"
    size = len(TREE["src/main.py"])
    file = {"path": path, "is_dir": False, "size_bytes": size, "mtime": 1_700_000_000, "ext": "py"}
    assert by_path[path] == file
    directory = by_path[f"{ws.root}/src/util"]
    assert (directory["is_dir"], set(directory)) == (True, {"path", "is_dir", "mtime"})
    assert by_path[f"{ws.root}/src/util/Text.JS"]["ext"] == "js"
    assert by_path[f"{ws.root}/secret.pem"]["protected"] is True
    assert all(os.path.isabs(path) for path in by_path)
    assert call("list_files", roots=["."]).data["files"] == found
    assert call("list_files", roots=["."], absolute=False).content == json.dumps(found)


OLD = time.time() - 10 * 86_400
FILES = ["README.md", "run.sh", "sizes/mebi", "sizes/mega", "sizes/under"]
FILES += ["src/empty.txt", "src/main.py", "src/util/Text.JS", "src/util/helper.py"]
PY = ["src/main.py", "src/util/helper.py"]


@pytest.mark.parametrize(("filters", "found"), [
    ({"types": ["f"]}, FILES), ({"roots": ["src/util", "src/..", "src"], "types": ["f"]}, FILES),
    ({"pattern": "^h.*py$"}, ["src/util/helper.py"]), ({"pattern": "TEXT"}, []),
    ({"pattern": "text"}, ["src/util/Text.JS"]), ({"pattern": "*.py", "glob": True}, PY),
    ({"pattern": "src/*.py", "glob": True}, ["src/main.py"]), ({"pattern": "src/util/.*py"}, []),
    ({"pattern": "src/util/helper*", "glob": True}, ["src/util/helper.py"]),
    ({"pattern": "src/util/.*py", "full_path_match": True}, ["src/util/helper.py"]),
    ({"types": ["d"]}, ["sizes", "src", "src/none", "src/util"]), ({"types": ["l"]}, ["to-main"]),
    ({"types": ["x"]}, ["run.sh"]), ({"types": ["f", "e"]}, ["src/empty.txt"]),
    ({"types": ["e"]}, ["src/empty.txt", "src/none"]),
    ({"depth": 1}, ["README.md", "run.sh", "sizes", "src", "to-main"]),
    ({"roots": ["src"], "depth": 1, "types": ["f"]}, ["src/empty.txt", "src/main.py"]),
    ({"extensions": ["py", "js"]}, ["src/main.py", "src/util/Text.JS", "src/util/helper.py"]),
    ({"exclude": ["util", "*.md", "sizes"], "types": ["f"]}, ["run.sh", "src/empty.txt", "src/main.py"]),
    ({"size": ["+1M"]}, ["sizes/mebi", "sizes/mega"]), ({"size": ["+1Mi"]}, ["sizes/mebi"]),
    ({"size": ["+900k", "-1M"]}, ["sizes/mega", "sizes/under"]), ({"size": ["0b"]}, ["src/empty.txt"]),
    ({"changed_within": "2d", "depth": 1, "types": ["f"]}, ["run.sh"]),
    ({"changed_before": "2d"}, ["README.md"]), ({"changed_before": "2020-01-01"}, []),
    ({"no_ignore": True, "pattern": "out"}, ["build/out.py"]), ({"absolute": False, "depth": 1, "extensions": ["md"]}, ["README.md"]),
    ({"hidden": True, "pattern": "note"}, [".hidden/note.txt"]), ({"types": ["d", "f"], "depth": 1, "extensions": ["sh"]}, ["run.sh"]),
])  # fmt: skip
def test_what_list_files_finds(names, call, tmp_path, filters, found):
    """With the same filters, `find_and_grep` searches the found files that have contents."""
    (tmp_path / "run.sh").write_text("x")
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "src/none").mkdir()
    (tmp_path / "to-main").symlink_to("src/main.py")
    os.utime(tmp_path / "README.md", (OLD, OLD))
    (tmp_path / "sizes").mkdir()
    for name, size in (("mega", 10**6), ("mebi", 2**20), ("under", 10**6 - 1)):
        with (tmp_path / "sizes" / name).open("wb") as file:
            file.truncate(size)
    roots = filters.pop("roots", ["."])
    assert names(*roots, **filters) == found
    if filters.get("types") not in (["d"], ["l"]):
        searched = value(call("find_and_grep", roots=roots, query=".", **filters))
        files = {match["file"] for match in searched["matches"]}
        assert files == {*found} & {*TREE, "run.sh"} - {"src/empty.txt"}
        assert found or searched["notes"][0].startswith("0 files match")


@needs("fd")
@pytest.mark.parametrize("pattern", ["*.py", "*.PY", "[a-b]*", "[A-B]*", "*.{py,md}", "?.p?", "\u00e9*"])
def test_the_case_of_a_glob_is_smart_as_in_fd(names, tmp_path, pattern):
    put(tmp_path / "names", dict.fromkeys(("A.PY", "a.py", "b.Py", "c.MD", "\u00e9.md"), ""))
    argv = [program("fd"), "--glob", pattern, "names"]
    fd = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert names("names", pattern=pattern, glob=True) == sorted(fd.stdout.split())


def test_links_are_followed_only_when_asked_and_only_inside(names, hits, tmp_path):
    (tmp_path / "links").mkdir()
    for link, target in {"in": "../src/util", "out": "/etc", "loop": ".", "up": ".."}.items():
        (tmp_path / "links" / link).symlink_to(target)
    assert "links/in/helper.py" not in names("links")
    looped = names("links", follow_symlinks=True, types=["f"])
    assert not [name for name in looped if name.startswith("links/out/")]
    places = {os.path.realpath(tmp_path / name) for name in looped}
    assert len(places) == len(looped), "loops are not followed"
    for link in ("loop", "up"):
        (tmp_path / "links" / link).unlink()
    assert "links/in/helper.py" in names("links", follow_symlinks=True)
    assert hits("def help", "links") == []
    assert hits("def help", "links", follow_symlinks=True) == [("links/in/helper.py", 1)]


def test_a_file_that_several_links_lead_to_is_found_once(names, hits, call, tmp_path):
    links = {"a-dir": "src/util", "z-dir": "src", "a-file": "README.md", "b-file": "a-file"}
    for link, target in links.items():
        (tmp_path / link).symlink_to(target)
    (tmp_path / "same.md").hardlink_to(tmp_path / "README.md")
    files = names(follow_symlinks=True, types=["f"])
    real = [os.path.relpath(os.path.realpath(tmp_path / name), tmp_path) for name in files]
    assert sorted(real) == ["README.md", "same.md", *sorted(path for path in TREE if path.startswith("src/"))]
    assert sorted(names(follow_symlinks=True, types=["f"], limit=3)) == sorted(files)[:3]
    assert hits("def help", follow_symlinks=True) == [("src/util/helper.py", 1)]
    searched = value(call("find_and_grep", roots=["."], query="TODO", follow_symlinks=True))
    places = {(os.path.realpath(m["abs_path"]), m["line_number"]) for m in searched["matches"]}
    assert len(places) == len(searched["matches"])
    assert searched["meta"]["searched_file_count"] == len(files)
    both = value(call("find_and_grep", roots=["."], query="write", types=["f", "l"]))
    assert [m["file"] for m in both["matches"]] == ["README.md", "same.md"]
    assert both["meta"]["searched_file_count"] == 6
    given = ["README.md", "a-file", "./README.md", f"{tmp_path}/b-file", "same.md"]
    assert hits("write", files=given) == [("README.md", 3), ("same.md", 3)]


# search_content


# The matches of TODO in src: file, line number, line, and the places in it.
TODOS = [
    ("src/main.py", 5, "    # TODO: one", [[6, 10]]),
    ("src/main.py", 6, "    return os  # todo two, TODO three", [[27, 31]]),
    ("src/util/Text.JS", 1, "// TODO: ünï TODO", [[3, 7], [13, 17]]),
]


def test_the_output_of_search_content(call, ws):
    result = call("search_content", roots=["src"], query="TODO")
    assert value(result) == result.data["matches"] == [
        {
            "file": file, "abs_path": f"{ws.root}/{file}", "line_number": number, "line": line,
            "submatches": [{"start": start, "end": end, "match": "TODO"} for start, end in spans],
        } for file, number, line, spans in TODOS
    ]  # fmt: skip
    assert (result.notes, result.short_result) == ((), "4 matches in 2 files")


HELPER, README = ("src/util/helper.py", 2), ("README.md", 3)
MAIN, MAIN_TOO, SCRIPT = ("src/main.py", 5), ("src/main.py", 6), ("src/util/Text.JS", 1)


@pytest.mark.parametrize(("query", "options", "found"), [
    (r"a\.b\(", {}, [HELPER]), ("a.b(", {"regex": False}, [HELPER]),
    ("a.b(", {"fixed_strings": True}, [HELPER]),
    ("hel", {"word": True}, []), ("help", {"word": True}, [("src/util/helper.py", 1)]),
    ("todo", {"extensions": ["py"]}, [MAIN, MAIN_TOO]), ("Todo", {"extensions": ["py"]}, []),
    ("todo", {"case": "sensitive"}, [MAIN_TOO]), ("tODO two", {"case": "insensitive"}, [MAIN_TOO]),
    (r"import os\s+def", {"multiline": True}, [("src/main.py", 1)]), (r"import os\s+def", {}, []),
    ("import os.+def", {"multiline": True}, []),  # a dot matches no line end, as with -U
    ("(?s)import os.+def", {"multiline": True}, [("src/main.py", 1)]),
    ("TODO", {"include_globs": ["*.py", "*.JS"]}, [MAIN, MAIN_TOO, SCRIPT]),
    ("TODO", {"exclude_globs": ["*.py", "!util"]}, [README]),
    ("TODO", {"include_globs": ["src/**"], "exclude_globs": ["*.py"]}, [SCRIPT]),
    ("def", {"roots": ["src"], "include_globs": ["src/util/*.py"]}, [("src/util/helper.py", 1)]),
    ("def", {"roots": ["src"], "exclude_globs": ["src/util/**"]}, [("src/main.py", 4)]),
    ("def", {"roots": ["src", "build"], "include_globs": ["util/*.py"]}, [("src/util/helper.py", 1)]),
    ("日本", {"encoding": "shift_jis"}, [("sjis.txt", 1)]), ("日本", {}, []),
    ("TODO|todo", {"extensions": ["py"], "max_count": 1}, [MAIN]),
    ("TODO", {"max_filesize": "30"}, [README]), ("--pre=touch", {}, [("options", 1)]),
    ("-e", {"fixed_strings": True, "include_globs": ["options"]}, [("options", 2)]),
])  # fmt: skip
def test_what_a_search_finds(call, tmp_path, query, options, found):
    (tmp_path / "sjis.txt").write_bytes("日本\n".encode("shift_jis"))
    (tmp_path / "options").write_text("--pre=touch\n-e\n")
    asked = {"roots": ["."], "query": query, **options}
    both = value(call("find_and_grep", **asked))["matches"]
    if endings := asked.pop("extensions", ()):
        asked["include_globs"] = [f"*.{each}" for each in endings]
    for matches in (both, value(call("search_content", **asked))):
        assert [(match["file"], match["line_number"]) for match in matches] == found


# find_and_grep


def test_find_and_grep_is_both_in_one_call(call):
    asked = {"roots": ["."], "query": "TODO", "case": "sensitive"}
    found = value(call("find_and_grep", **asked, extensions=["py"]))
    assert list(found)[:2] == ["matches", "meta"]
    assert found["matches"] == value(call("search_content", **asked, include_globs=["*.py"]))
    meta = found["meta"]
    assert list(meta) == ["searched_file_count", "truncated", "fd_elapsed_ms", "rg_elapsed_ms"]
    assert (meta["searched_file_count"], meta["truncated"]) == (2, False)
    assert all(type(meta[name]) is int and 0 <= meta[name] < 10_000 for name in list(meta)[2:])


def test_notes_count_the_files_that_were_not_searched(call, tmp_path):
    (tmp_path / "a.bin").write_bytes(b"\0TODO")
    (tmp_path / "large.txt").write_bytes(b"x" * (10 * 2**20 + 1))
    (tmp_path / "secret.pem").write_text("TODO\n")
    found = value(call("find_and_grep", roots=["."], query="TODO"))
    assert found["meta"]["searched_file_count"] == 5
    told = "; ".join(found["notes"])
    for reason in ("1 binary", "1 too large", "1 protected"):
        assert reason in told


# Files, and calls with their answers.
SESSIONS = {
    "no more than 2,000 matches are shown": ({"long.txt": "needle\n" * 2500}, [
        ("search_content", {"roots": ["."], "query": "needle"}, {
            "value#": 2000, "data/truncated": True, "said~": "not all of the 2,500 matching lines are shown"}),
        ("find_and_grep", {"roots": ["."], "query": "needle"}, {"value/meta/truncated": True})]),
    "what is left out is said": ({".hidden/more.txt": "", "src/.note": ""}, [
        ("list_files", {"roots": ["."]}, {
            "notes#": 1, "said^": "left out: 3 hidden, 1 ignored by .gitignore:1 build/",
            "said~": "(hidden=true and no_ignore=true search hidden and ignored names)"}),
        ("search_content", {"roots": ["."], "query": "built"}, {
            "notes/0": 'No matches for "built" in "." (5 files searched).',
            "notes/1~": ["1 line in hidden or ignored files, as in build/ (ignored by .gitignore:1 build/)", "pass hidden=true and no_ignore=true."]})]),
    # `max_filesize="0"` advised to leave it out "to remove the bound", which is 10M then.
    "regression_no_hint_advises_to_leave_out_a_bound_that_stays": ({}, [
        ("search_content", {"roots": ["."], "query": "x", "max_filesize": "0"}, {"error/code": "invalid_argument", "error/hint!": "remove"})]),
    "a very long line is cut and a field says so": ({"long.txt": "a" * 5000 + "needle" + "b" * 5000 + "\n"}, [
        ("search_content", {"files": ["long.txt"], "query": "needle"}, {
            "value/0/line#": 2000, "value/0/line~": "aneedleb", "value/0/cut": {"before": 4500, "after": 3506},
            "value/0/submatches": [{"start": 500, "end": 506, "match": "needle"}]})]),
    "roots or files and not both": ({}, [
        *(("search_content", {place: ["README.md", "src/main.py"], "query": "TODO"}, {"hits": [README, MAIN, MAIN_TOO]}) for place in ("files", "roots")),
        ("search_content", {"files": ["src/main.py", "README.md"], "query": "TODO", "include_globs": ["*.md"]}, {"hits": [README]}),
        ("search_content", {"roots": ["src", ".", "src/util"], "query": "TODO"}, {"hits": [MAIN, MAIN_TOO, SCRIPT, README]}),  # each file once
        ("search_content", {"query": "x"}, {"error/code": "invalid_argument", "error/message~": "Neither roots nor files"}),
        ("search_content", {"query": "x", "roots": ["."], "files": ["README.md"]}, {
            "error/code": "invalid_argument", "error/message~": "Both roots and files"}),
        ("search_content", {"query": "x", "files": ["no.py"]}, {"error/code": "not_found"})]),
    "lines around a match": ({}, [
        ("search_content", {"roots": ["."], "query": "let a", "context_before": 2, "context_after": 1}, {
            "value/0/before": ["// TODO: ünï TODO"], "value/0/after": ["let b = 2;"]}),
        ("search_content", {"roots": ["."], "query": "let a"}, {"value/0/before?": False, "value/0/after?": False}),
        ("search_content", {"roots": ["."], "query": "let a", "context_after": 99}, {"notes/0": "context was lowered to 20 lines on either side"})]),
    "types without contents are an error": ({}, [
        ("find_and_grep", {"roots": ["."], "query": "x", "types": ["d"]}, {"error/code": "invalid_argument", "error/message~": "has contents"}),
        ("find_and_grep", {"roots": ["."], "query": "x", "types": ["e"]}, {"value/meta/searched_file_count": 1})]),
    "the formats exclude one another": ({}, [
        (tool, {"roots": ["."], "query": "x", first: True, second: True}, {
            "error/code": "invalid_argument", "error/message~": f"{first}, {second} exclude one another"})
        for tool in TOOLS[1:] for first, second in combinations(MODES, 2)]),
}  # fmt: skip


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions(call, tmp_path, name):
    check_session(lambda tool, **given: parts_of(call(tool, **given)), tmp_path, *SESSIONS[name], {})


def test_the_order_is_made_before_the_files_are_cut(call, tmp_path):
    for age, (name, size) in enumerate((("b", 1), ("a", 3), ("c", 2))):
        (tmp_path / "src" / f"{name}.log").write_text("needle\n" * size)
        os.utime(tmp_path / "src" / f"{name}.log", (2_000_000_000 - age, 2_000_000_000 - age))

    def first(**options):
        asked = {"roots": ["src"], "extensions": ["log"], "query": "needle", "max_count": 1}
        found = value(call("find_and_grep", **asked, **options))
        return [Path(match["file"]).stem for match in found["matches"]]

    assert first() == first(sort="path") == ["a", "b", "c"]
    assert first(sort="mtime") == ["b", "a", "c"]
    assert first(sort="size", file_limit=2) == ["a", "c"]


# The ladder of formats


def test_the_formats_by_file(call, ws):
    totals = {"total_matches": 4, "total_files": 2}
    counts = {"src/main.py": 2, "src/util/Text.JS": 2}
    of_file = {file: [each for each in TODOS if each[0] == file] for file in counts}
    for mode, wanted in {
        "count_only_matches": {"file_counts": counts},
        "summary_only": {"files": [
            {"file": file, "matches": 2, "samples": [
                {"line_number": number, "line": line.strip()} for _, number, line, _ in found]}
            for file, found in of_file.items()]},
        "group_by_file": {"files": [
            {"file": file, "abs_path": f"{ws.root}/{file}", "matches": [
                {"line_number": number, "line": line, "spans": spans} for _, number, line, spans in found]}
            for file, found in of_file.items()]},
    }.items():  # fmt: skip
        asked = {"roots": ["src"], "query": "TODO", mode: True}
        assert value(call("search_content", **asked)) == totals | wanted
        assert value(call("find_and_grep", **asked))["meta"]["searched_file_count"] == 4
    found = call("search_content", roots=["."], query="TODO", count_only_matches=True)
    assert value(found)["notes"] == [*call("search_content", roots=["."], query="TODO").notes]
    around = value(call("search_content", roots=["."], query="let a", summary_only=True, context_after=1))
    assert around["files"][0]["samples"] == [
        {"line_number": 2, "line": "let a = 1;", "after": ["let b = 2;"]}
    ]


def test_optimize_paths_goes_with_every_format_and_loses_nothing(call, ws):
    for tool in ("search_content", "find_and_grep"):
        for mode in ({}, *({mode: True} for mode in MODES)):
            asked = {"roots": ["src/util"], "query": "TODO|help|let", **mode}
            plain, short = call(tool, **asked), call(tool, **asked, optimize_paths=True)
            assert len(short.content) <= len(plain.content) + 4, "the times may have a digit more"
            assert _whole(value(short)) == _whole(value(plain)), (tool, mode)
    asked = {"roots": ["src/util"], "query": "TODO|help", "optimize_paths": True}
    first, second, *_ = value(call("search_content", **asked))
    assert (first["file"], first["abs_path"]) == ("Text.JS", f"{ws.root}/src/util/Text.JS")
    assert (second["file"], "abs_path" in second) == ("helper.py", False)
    grouped = value(call("search_content", **asked, group_by_file=True))
    assert grouped["base"] == f"{ws.root}/src/util/"
    assert [file["file"] for file in grouped["files"]] == ["Text.JS", "helper.py"]


def test_regression_the_base_of_paths_without_a_common_directory_is_the_root(call, ws):
    asked = {"roots": ["."], "query": "TODO|help", "group_by_file": True, "optimize_paths": True}
    assert value(call("search_content", **asked))["base"] == f"{ws.root}/"


def _whole(found):
    if isinstance(found, int):
        return found
    if isinstance(found, dict) and "meta" in found:
        rest = {name: part for name, part in found.items() if name != "meta"}
        return _whole(rest.get("matches", rest))
    if isinstance(found, list):
        base = found[0]["abs_path"].removesuffix(found[0]["file"]) if found else ""
        return [(base + each["file"], each["line_number"], each["line"]) for each in found]
    base = found.get("base", "")
    if "file_counts" in found:
        return {base + file: count for file, count in found["file_counts"].items()}
    paths = [file.get("abs_path") or base + file["file"] for file in found["files"]]
    rest = [(file.get("matches"), file.get("samples")) for file in found["files"]]
    return list(zip(paths, rest, strict=True))


ORDINARY_LENGTH = 24  # of a root


@pytest.fixture(scope="module")
def project(django_source):
    """A real project under a root of ordinary length."""
    directory = f"{tempfile.gettempdir()}/{''.join(random.choices('abcdefgh', k=8))}"
    if len(directory) > ORDINARY_LENGTH:
        pytest.skip("under this TMPDIR the root is longer than that of the table")
    shutil.copytree(
        django_source / "django",
        f"{directory}/django",
        ignore=shutil.ignore_patterns("locale", "static", "jsi18n"),
    )
    with Workspace(directory) as ws:
        yield ws.tools(dialect="tree-sitter-analyzer")
    shutil.rmtree(directory)


# The document's table, in its order. It does not bound the full results of a large project.
TABLE = {
    "single file": ((0, 10), (20, 50), (200, 500), (500, 2000), (1000, 10_000)),
    "small project": ((0, 10), (50, 100), (500, 1000), (2000, 5000), (5000, 25_000)),
    "large project": ((0, 10), (100, 200), (1000, 2000), (5000, 10_000), (10_000, 10**9)),
}
SCOPES = {
    "single file": {"files": ["django/utils/text.py"], "query": "def "},
    "small project": {"roots": ["django/forms"], "query": r"raise \w+"},
    "large project": {"roots": ["."], "query": r"raise \w+Error"},
}


@pytest.mark.parametrize("mode", [*MODES, None])
@pytest.mark.parametrize("scope", TABLE)
def test_the_table_of_token_costs(project, scope, mode):
    least, most = dict(zip((*MODES, None), TABLE[scope], strict=True))[mode]
    found = project.call("search_content", {**SCOPES[scope], **({mode: True} if mode else {})})
    assert least <= estimate_tokens(found.content_with_notes) <= most
    assert found.data["format"] == (mode or "full")


@pytest.mark.parametrize("scope", TABLE)
def test_short_paths_save_10_to_30_percent(project, scope):
    full, short = (
        estimate_tokens(project.call("search_content", {**SCOPES[scope], **more}).content_with_notes)
        for more in ({}, {"optimize_paths": True})
    )
    assert 0.7 <= short / full <= 0.9


@pytest.mark.parametrize("tool", ["search_content", "find_and_grep"])
def test_tokens_saved_by_short_paths_are_those_of_the_answer(call, tool):
    """`tokens_saved` was an estimate although both answers were at hand."""
    asked = {"roots": ["src"], "query": "TODO|help|let"}
    plain, short = call(tool, **asked), call(tool, **asked, optimize_paths=True)
    matches = [found.data["matches"] for found in (plain, short)]
    costs = [estimate_tokens(json.dumps(each, ensure_ascii=False)) for each in matches]
    assert short.data["tokens_saved"] == costs[0] - costs[1] > 0
    assert plain.data["tokens_saved"] == 0


# The most tokens of each format in any search.
ROOM = {"total_only": 10, "count_only_matches": 200, "summary_only": 2000, "group_by_file": 10_000}


@pytest.fixture(scope="module")
def many_matches(tmp_path_factory):
    """A tree with many matches, and files of each kind that a search leaves out."""
    root = tmp_path_factory.mktemp("many")
    # A shorter name leaves room for the digits of a long time; one entry is shown even without room.
    line = "# TODO: one and TODO: two\n"
    put(root, {f"dir-{n % 7}/{'x' * (n % 40)}y/{n}.py": line * (n % 50 + 1) for n in range(200)})
    for name in (".hidden-{}", "left-{}.out"):
        put(root, [name.format(number) for number in range(9)], "TODO")
    put(root, {f"{number}.bin": b"TODO\0" for number in range(9)})
    put(root, {".gitignore": "".join(f"left-{number}.out\n" for number in range(9)), ".git/x": ""})
    return root


@pytest.mark.parametrize("tool", ["search_content", "find_and_grep"])
@pytest.mark.parametrize("mode", ROOM)
@pytest.mark.parametrize("more", [
    {"query": "TODO"}, {"query": "TODO", "timeout_ms": 60_000, "max_filesize": "1G", "context_before": 99},
    {"query": "nowhere", "timeout_ms": 60_000}, {"query": "TODO", "optimize_paths": True},
], ids=["defaults", "bounds", "nothing found", "shorter paths"])  # fmt: skip
def test_the_ladder_bounds_everything_that_the_model_gets(many_matches, tool, mode, more):
    """The notes count too: names left out, numbers lowered, matches missing."""
    sent = {"type": "tool_use", "id": "1", "name": tool, "input": {"roots": ["."], mode: True, **more}}
    with Workspace(many_matches) as ws:
        (message,) = ws.tools(dialect="tree-sitter-analyzer").answer([sent])[0]["content"]
        texts = [block["text"] for block in message["content"]]
        assert estimate_tokens("\n".join(texts)) <= ROOM[mode], texts
        sent = {**sent, "name": "list_files", "input": {"roots": ["."], "limit": 1}}
        (message,) = ws.tools(dialect="tree-sitter-analyzer").answer([sent])[0]["content"]
        content, *notes = [block["text"] for block in message["content"]]
        assert len(json.loads(content)) == 1
        assert notes[0].startswith("these are the first 1 of "), "they reach the model beside the array"


@pytest.mark.parametrize(("tool", "more", "said"), [
    ("find_and_grep", {}, "5\n[3 left out]"), ("find_and_grep", {"file_limit": 1}, "1\n[partial]"),
    ("find_and_grep", {"hidden": True, "no_ignore": True}, "7"),
    ("find_and_grep", {"extensions": ["py"]}, "2\n[2 left out]"), ("search_content", {}, "5\n[3 left out]"),
    ("search_content", {"query": "nothing here"}, "0\n[3 left out]"),
    ("search_content", {"roots": ["many"], "query": "needle", "exclude_globs": ["0000*"]}, "290"),
])  # fmt: skip
def test_total_only_is_a_bare_integer_that_says_in_a_word_if_it_is_partial(call, tmp_path, tool, more, said):
    if "many" in str(more):
        put(tmp_path / "many", [f"{number:05}.txt" for number in range(300)], "needle\n")
    found = call(tool, **{"roots": ["."], "query": "TODO", "total_only": True, **more})
    assert found.content_with_notes == said
    assert found.content == str(found.data["total"])
    assert found.data["format"] == "total_only"
    if said.startswith("0"):
        assert found.data["notes"][0].startswith('No matches for "nothing here"')


def test_results_that_do_not_fit_are_counted(project):
    def asked(mode):
        asked = {"roots": ["."], "query": "import", "fixed_strings": True, mode: True}
        return json.loads(project.call("search_content", asked).content)

    total, counted, summary, grouped = map(asked, MODES)
    assert counted["total_matches"] == summary["total_matches"] == grouped["total_matches"] == total
    counts = counted["file_counts"]
    assert list(counts.values()) == sorted(counts.values(), reverse=True), "most first"
    others = {"files": counted["total_files"] - len(counts), "matches": total - sum(counts.values())}
    assert counted["others"] == others
    assert summary["others"]["matches"] == total - sum(file["matches"] for file in summary["files"])
    spans = sum(len(match["spans"]) for file in grouped["files"] for match in file["matches"])
    assert grouped["others"]["matches"] == total - spans
    assert any("not all of the" in note for note in grouped["notes"])


def test_the_conversation_of_the_document(tmp_path):
    """The user asks: how many TODO comments are there, which files have the most, and show me some."""
    counts = {"src/views.py": 20, "src/models.py": 17, "tests/test_views.py": 10}
    todo = "def f{0}():\n    pass  # TODO: no. {0}\n"
    put(tmp_path, {path: "".join(map(todo.format, range(count))) for path, count in counts.items()})
    with Workspace(tmp_path) as ws:
        tools = ws.tools(dialect="tree-sitter-analyzer")
        asked = {"roots": ["."], "query": "# TODO"}
        assert tools.call("search_content", {**asked, "total_only": True}).content == "47"
        spread = json.loads(tools.call("search_content", {**asked, "count_only_matches": True}).content)
        assert list(spread["file_counts"].items()) == list(counts.items())
        top = {"files": list(spread["file_counts"])[:2], "query": "# TODO", "summary_only": True}
        shown = json.loads(tools.call("search_content", {**top, "context_before": 1}).content)
        sample = {"line_number": 2, "line": "pass  # TODO: no. 0", "before": ["def f0():"]}
        assert shown["files"][0]["samples"][0] == sample


# What guides a model


def test_descriptions_have_markers_estimates_and_the_workflow(ws):
    for tool in ws.tools(dialect="tree-sitter-analyzer").schemas("anthropic"):
        told = tool["description"]
        assert all(marker in told for marker in "⚠🎯💡")
        if tool["name"] == "list_files":
            assert "~40 tokens" in told
            continue
        assert (
            "RECOMMENDED WORKFLOW (Most Efficient Approach):\n"
            "1. START with total_only=true for initial count validation (~10 tokens)\n"
            "2. IF more detail needed, use count_only_matches=true for file distribution (~50-200 tokens)\n"
            "3. IF context needed, use summary_only=true for overview (~500-2000 tokens)\n"
            "4. ONLY use full results when specific content review is required (~2000-50000+ tokens)"
        ) in told
        assert "exclude one another" in told
        shown = tool["input_schema"]["properties"]
        for mode, cost in COSTS.items():
            assert cost in shown[mode]["description"]
        assert "10-30% fewer tokens of full results" in shown["optimize_paths"]["description"]


def test_large_results_are_warned_of_with_an_estimate(project):
    def warnings(tool, **given):
        found = project.call(tool, {"roots": ["."], **given})
        notes = json.loads(found.content)["notes"] if tool == "find_and_grep" else found.notes
        return found, [note for note in notes if note.startswith("⚠️")]

    found, [warning] = warnings("search_content", query="import")
    tokens = int(re.search(r"about ([\d,]+) tokens", warning)[1].replace(",", ""))
    assert tokens == estimate_tokens(found.content)
    assert "summary_only=true" in warning
    assert warnings("find_and_grep", query="import")[1]
    assert warnings("list_files", limit=9000)[1]
    assert not warnings("list_files", depth=1)[1]


# Errors

FAILURES = [
    *(("search_content", {"query": "x", **wrong}) for wrong in (
        {}, {"roots": ["."], "files": ["README.md"]}, {"roots": ["none"]}, {"roots": ["/etc"]}, {"files": []},
        {"files": ["src"]}, {"files": ["main.py"]})),
    *(("search_content", {"query": "x", "roots": ["."], **wrong}) for wrong in (
        {"total_only": True, "summary_only": True}, {"query": "("}, {"query": ""}, {"case": "loud"},
        {"encoding": "klingon"}, {"include_globs": ["{a"]}, {"exclude_globs": ["["]}, {"max_count": 0},
        {"max_filesize": "big"}, {"timeout_ms": 0}, {"context_before": -1}, {"context_after": -1})),
    ("search_content", {"roots": ["."]}),
    *(("find_and_grep", {"query": "x", "roots": ["."], **wrong}) for wrong in (
        {"types": ["d"]}, {"sort": "age"}, {"group_by_file": True, "total_only": True}, {"pattern": "("},
        {"query": "(", "pattern": "x"}, {"query": ""}, {"include_globs": ["{a"]}, {"exclude": ["["]},
        {"roots": ["README.md"]}, {"depth": 0}, {"file_limit": 0})),
    ("list_files", {}), ("list_files", {"roots": []}), ("list_files", {"roots": ["README.md"]}),
    ("list_files", {"roots": ["src/utils"]}),
    *(("list_files", {"roots": ["."], **wrong}) for wrong in (
        {"types": ["z"]}, {"size": ["big"]}, {"changed_within": "soon"}, {"changed_before": "later"},
        {"extensions": [""]}, {"pattern": "["}, {"depth": 0}, {"folder": "src"},
        {"pattern": "[", "glob": True}, {"exclude": ["{a"]}, {"exclude": ["../x"]}, {"limit": 0})),
]  # fmt: skip


@pytest.mark.parametrize(("language", "mark", "guide"), [
    ("en", "🎯 Example: ", "💡 Tokens: "), ("ja", "🎯 使用例: ", "💡 トークン数の目安: "),
])  # fmt: skip
@pytest.mark.parametrize(("tool", "arguments"), FAILURES, ids=lambda each: str(each)[:60])
def test_each_error_has_an_example_that_works_as_given(ws, tool, arguments, language, mark, guide):
    """Its hint has parameters of the tool, and calls that work."""
    tools = in_language(language).tools(ws)
    refused = error(tools.call(tool, arguments))
    assert refused["message"].startswith("⚠️ ")
    (example,) = [line for line in refused["hint"].split("\n") if line.startswith(mark)]
    sent = json.loads(example.removeprefix(mark))
    assert accepts(tools, tool, sent)
    assert tools.call(tool, sent).success
    if tool != "list_files" and refused["code"] in {"invalid_argument", "invalid_pattern"}:
        assert guide in refused["hint"]
    if refused["code"] in {"not_found", "outside_workspace"}:
        assert guide not in refused["hint"]
    japanese = re.search("[ぁ-ん]", refused["message"]) and re.search("[ぁ-ん]", refused["hint"])
    assert bool(japanese) is (language == "ja")
    assert "include_ignored" not in refused["hint"]
    hint = refused["hint"].rpartition("{")[0]
    for called, written in re.findall(r"\b(list_files|search_content|find_and_grep)\((.*?)\)", hint):
        given = {name: json.loads(text) for name, text in re.findall(r'(\w+)=(\[.*?\]|".*?"|\d+)', written)}
        assert set(given) <= set(re.findall(r"\w+", PARAMETERS[called]))
        assert tools.call(called, given).success
        hint = hint.replace(f"{called}({written})", "")
    assert {*re.findall(r"\b([a-z_]+)=", hint), *re.findall(r"`([a-z_]+)`", hint)} <= {
        *re.findall(r"\w+", PARAMETERS[tool])
    }


@pytest.mark.parametrize(("environment", "language"), [
    ({}, "en"), ({"LANG": "ja_JP.UTF-8"}, "ja"), ({"LANG": "de_DE.UTF-8"}, "en"),
    ({"LANG": "ja_JP.UTF-8", "LC_ALL": "C"}, "en"), ({"LC_MESSAGES": "ja_JP", "LANG": "C"}, "ja"),
    ({"LC_ALL": "C", "AGENTFS_LANGUAGE": "ja"}, "ja"), ({"LANG": "ja_JP", "AGENTFS_LANGUAGE": "en"}, "en"),
])  # fmt: skip
def test_the_language_is_that_of_the_environment_unless_it_is_given(
    call, ws, monkeypatch, environment, language
):
    for name, setting in environment.items():
        monkeypatch.setenv(name, setting)
    assert ("指定" in error(call("search_content", query="x"))["message"]) is (language == "ja")
    for given in ("en", "ja"):
        refused = error(in_language(given).tools(ws).call("search_content", {"query": "x"}))
        assert ("指定" in refused["message"]) is (given == "ja")


@pytest.mark.parametrize(("tool", "given", "said"), [
    ("search_content", {"query": "x", "roots": ["src/utils"]}, "src/util"),
    ("search_content", {"query": "help(", "roots": ["."]}, "pass query="),
    ("find_and_grep", {"query": "help(", "roots": ["."], "pattern": "helper"}, "pass query="),
    ("list_files", {"roots": ["."], "pattern": "f("}, "pass pattern="),
    ("list_files", {"roots": ["README.md"]}, 'search_content(files=["README.md"], query="^")'),
])  # fmt: skip
def test_hints_speak_of_the_tools_there_are(call, tool, given, said):
    assert said in error(call(tool, **given))["hint"]


# Events and caching


def test_events_carry_the_format_and_data_the_tokens_saved(project, ws):
    events: list[Event] = []
    ws.on_event = events.append
    tools = DIALECT.tools(ws)
    query = {"roots": ["."], "query": "TODO"}
    calls = [*({**query, mode: True} for mode in MODES), query, {**query, "optimize_paths": True}]
    results = [tools.call("search_content", arguments) for arguments in calls]
    tools.call("list_files", {"roots": ["."]})
    formats = [event.outcome.data.get("format", "") for event in events if event.kind != "started"]
    assert formats == [*MODES, "full", "full+optimize_paths", ""]
    saved = [result.data["tokens_saved"] for result in results]
    assert saved[0] > saved[1] > 0 < saved[2]
    assert saved[4] == 0 < saved[5]


@pytest.mark.parametrize("scope", SCOPES)
def test_tokens_saved_are_near_the_cost_of_the_full_results(project, scope):
    full = estimate_tokens(project.call("search_content", SCOPES[scope]).content)
    for mode in MODES:
        found = project.call("search_content", {**SCOPES[scope], mode: True})
        would = found.data["tokens_saved"] + estimate_tokens(found.content)
        assert 0.6 < would / full < 1.6, mode


def test_nothing_is_answered_from_memory(call, tmp_path):
    """The document's cache returned old answers; here each call searches again."""
    asked = {"roots": ["."], "query": "TODO", "total_only": True}
    assert call("search_content", **asked).content == "5"
    stat = (tmp_path / "README.md").stat()
    (tmp_path / "README.md").write_text("# A thing\n\nDONE: write\n")
    os.utime(tmp_path / "README.md", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert call("search_content", **asked).content == "4"
    assert call("search_content", **{**asked, "query": "todo"}).content == "5"
    assert call("search_content", **{**asked, "query": "todo", "case": "sensitive"}).content == "1"


# Faults of the program that the document describes


def test_the_preset_keeps_settings_of_the_programmer(tmp_path):
    (tmp_path / "a.txt").write_text("needle " * 300 + "\n" + "needle\n" * 300)
    with Workspace(tmp_path, limits=Limits(grep_line_chars=50, output_tokens=2000)) as ws:
        tools = ws.tools(dialect="tree-sitter-analyzer")
        found = tools.call("search_content", {"roots": ["."], "query": "needle"})
    assert len(json.loads(found.content)[0]["line"]) == 50
    assert estimate_tokens(found.content) <= 2000
    assert found.data["truncated"] is True
    assert any("not all of the 301 matching lines" in note for note in found.notes)


def test_rules_are_asked_about_the_roots(tmp_path, ws):
    asked = []
    policy = Policy(on_ask=lambda request: asked.append(request) or True, ask=["read"])
    with Workspace(tmp_path, policy=policy) as guarded:
        tools = guarded.tools(dialect="tree-sitter-analyzer")
        assert tools.call("find_and_grep", {"roots": ["src"], "query": "TODO"}).success
    assert [(request.method, request.paths, request.tool) for request in asked] == [
        ("glob", ("src",), "find_and_grep"), ("grep", ("src",), "find_and_grep"),
    ]  # fmt: skip


def test_unforeseen_failures_have_the_same_form(ws, monkeypatch):
    monkeypatch.setattr(type(ws), "_carry_out", lambda *_: 1 / 0)
    failed = ws.tools(dialect="tree-sitter-analyzer").call("list_files", {"roots": ["."]})
    assert error(failed)["code"] == "internal"


# What the document leaves to fd and rg


ASKED = (
    ("list_files", {"roots": ["."]}),
    ("search_content", {"roots": ["."], "query": "TODO"}),
    ("find_and_grep", {"roots": ["."], "query": "TODO", "pattern": "."}),
)


def test_no_program_is_started_and_nothing_is_written(call, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    name, arguments = ASKED[0]
    call(name, **arguments)  # asks git for the user's excludes, once

    def started(*_, **__):
        raise AssertionError("a program was started")

    for name in ("posix_spawn", "fork", "execv", "execve"):
        monkeypatch.setattr(os, name, started)
    monkeypatch.setattr(subprocess, "Popen", started)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = sorted(tmp_path.rglob("*"))
    for name, arguments in ASKED:
        assert value(call(name, **arguments))
    assert sorted(tmp_path.rglob("*")) == before


def test_replies_are_utf_8_without_color_codes(call, tmp_path, monkeypatch):
    for name, setting in (("FORCE_COLOR", "1"), ("CLICOLOR_FORCE", "1"), ("TERM", "xterm-256color")):
        monkeypatch.setenv(name, setting)
    (tmp_path / "caf\u00e9.md").write_text("TODO \u65e5\u672c\n")
    for name, arguments in ASKED:
        content = call(name, **arguments).content
        assert "caf\u00e9.md" in content.encode().decode()
        assert "\x1b" not in content
        assert "\\u001b" not in content


def test_a_cancelled_call_ends_its_search(ws, tmp_path):
    (tmp_path / "slow.txt").write_text("a" * 60 + "b\n")
    tools = ws.tools(dialect="tree-sitter-analyzer")
    slow = {"files": ["slow.txt"], "query": "(a|aa)+(?!.)", "timeout_ms": 30_000}

    async def cancelled():
        task = asyncio.ensure_future(tools.acall("search_content", slow))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    began = time.process_time()
    asyncio.run(cancelled())
    assert time.process_time() - began < 5
