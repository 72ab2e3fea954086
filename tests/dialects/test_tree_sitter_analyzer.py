"""`tree-sitter-analyzer`: each statement of the document, as its page lists them."""

import asyncio
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from agentfs import Event, Limits, Policy, Workspace
from agentfs.dialects.tree_sitter_analyzer import DIALECT, in_language
from agentfs.dialects.tree_sitter_analyzer.contract import _CODES_JA, _OWN_MESSAGES, COSTS
from agentfs.text.display import estimate_tokens
from tests.conftest import needs, program
from tests.kit import put
from tests.tool_calls import accepts

TOOLS = ("list_files", "search_content", "find_and_grep")
MODES = list(COSTS)
TREE = {
    "README.md": "# A thing\n\nTODO: write\n",
    "src/main.py": "import os\n\n\ndef main():\n    # TODO: one\n    return os  # todo two, TODO three\n",
    "src/util/Text.JS": "// TODO: ünï TODO\nlet a = 1;\nlet b = 2;\n",
    "src/util/helper.py": "def help():\n    return a.b(1)\n",
    "src/empty.txt": "",
    "build/out.py": "TODO = 'built'\n",
    ".gitignore": "build/\n",
    ".hidden/note.txt": "TODO hidden\n",
}


@pytest.fixture(autouse=True)
def english(monkeypatch):
    for name in ("AGENTFS_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def ws(tmp_path):
    put(tmp_path, TREE)
    with Workspace(tmp_path) as workspace:
        yield workspace


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


@pytest.fixture
def names(call, ws):
    """List files, as their paths below the root."""

    def names(*roots, **filters):
        found = value(call("list_files", roots=list(roots or ["."]), **filters))
        return [os.path.relpath(entry["path"], ws.root).replace(os.sep, "/") for entry in found]

    return names


@pytest.fixture
def hits(call):
    """Search contents, and return file and line number of each match."""

    def hits(query, *roots, **options):
        where = {} if "files" in options else {"roots": list(roots or ["."])}
        found = value(call("search_content", query=query, **where, **options))
        return [(match["file"], match["line_number"]) for match in found]

    return hits


# The inputs of the document: type, required, default.
LISTING = {
    "roots": ("array", True), "pattern": ("string", None), "glob": ("boolean", False),
    "types": ("array", None), "extensions": ("array", None), "exclude": ("array", None),
    "depth": ("integer", None),
    "follow_symlinks": ("boolean", False), "hidden": ("boolean", False), "no_ignore": ("boolean", False),
    "size": ("array", None), "changed_within": ("string", None), "changed_before": ("string", None),
    "full_path_match": ("boolean", False), "absolute": ("boolean", True),
}  # fmt: skip
CORE = {
    "query": ("string", True), "regex": ("boolean", True), "fixed_strings": ("boolean", False),
    "word": ("boolean", False), "case": ("string", "smart"), "multiline": ("boolean", False),
    "include_globs": ("array", None), "exclude_globs": ("array", None), "max_filesize": ("string", None),
    "context_before": ("integer", None), "context_after": ("integer", None), "encoding": ("string", None),
    "max_count": ("integer", None), "timeout_ms": ("integer", 4000),
    **dict.fromkeys((*MODES, "optimize_paths"), ("boolean", False)),
}  # fmt: skip
INPUTS = {
    "list_files": {**LISTING, "limit": ("integer", 2000)},
    "search_content": {
        **CORE, "roots": ("array", None), "files": ("array", None), "follow_symlinks": ("boolean", False),
        "hidden": ("boolean", False), "no_ignore": ("boolean", False),
    },
    "find_and_grep": {**LISTING, **CORE, "file_limit": ("integer", 2000), "sort": ("string", "path")},
}  # fmt: skip


def test_the_schema_has_exactly_the_documented_inputs_and_defaults(ws):
    found = {}
    for tool in ws.tools(dialect="tree-sitter-analyzer").schemas("anthropic"):
        schema = tool["input_schema"]
        found[tool["name"]] = schema["properties"]
        asked = INPUTS[tool["name"]]
        assert set(schema["properties"]) == set(asked)
        assert set(schema["required"]) == {
            name for name, (kind, default) in asked.items() if default is True and kind in {"array", "string"}
        }
        for name, (kind, default) in asked.items():
            shown = schema["properties"][name]
            assert shown["type"] == kind, name
            if kind == "array":
                assert shown["items"]["type"] == "string"
            if name not in schema["required"] and default is not None:
                assert shown["description"].endswith(f"Default {json.dumps(default)}."), name
    assert found["search_content"]["max_filesize"]["description"].endswith("Default 10M.")
    assert set(found["search_content"]["case"]["enum"]) == {"smart", "insensitive", "sensitive"}
    assert set(found["find_and_grep"]["sort"]["enum"]) == {"path", "mtime", "size"}


# Security and common defaults


def many(tmp_path, count):
    (tmp_path / "many").mkdir()
    for number in range(count):
        (tmp_path / "many" / f"{number:05}.txt").write_bytes(b"needle\n")


@pytest.mark.full
def test_the_limit_is_2000_and_never_over_10000(call, ws, tmp_path):
    many(tmp_path, 10_100)
    usual = call("list_files", roots=["many"])
    assert len(value(usual)) == 2000
    assert usual.data["truncated"] is True
    assert usual.data["total"] == 10_100
    assert "the first 2,000 of 10,100 entries" in usual.notes[0]
    most = call("list_files", roots=["many"], limit=50_000)
    assert len(value(most)) == 10_000
    assert most.notes[0] == "limit was lowered from 50,000 to 10,000, the maximum"
    assert not any("raise limit" in note for note in most.notes), "it is at its most"
    assert len(value(call("list_files", roots=["many"], limit=3))) == 3
    assert call("list_files", roots=["src"]).data["truncated"] is False
    assert error(call("list_files", roots=["."], limit=0))["code"] == "invalid_argument"

    found = call("find_and_grep", roots=["many"], query="needle", total_only=True)
    assert value(found) == 2000
    assert "the first 2,000 of 10,100 files were searched" in found.data["notes"][0]
    assert found.notes == ("partial",)
    found = call("find_and_grep", roots=["many"], query="needle", total_only=True, file_limit=20_000)
    assert value(found) == 10_000
    assert found.data["notes"][0] == "file_limit was lowered from 20,000 to 10,000, the maximum"
    assert not any("raise file_limit" in note for note in found.data["notes"]), "it is at its most"
    shown = value(call("find_and_grep", roots=["many"], query="needle", file_limit=2))
    assert [match["file"] for match in shown["matches"]] == ["many/00000.txt", "many/00001.txt"]
    assert shown["meta"]["truncated"] is True
    assert shown["meta"]["searched_file_count"] == 2
    tools = ws.tools(dialect="tree-sitter-analyzer")
    other = tools.call("find_and_grep", {"roots": ["many"], "query": "needle", "limit": 2})
    assert other.data["meta"]["searched_file_count"] == 2, "another name for file_limit"


@pytest.mark.parametrize(("listing", "globs", "searched"), [
    ({"extensions": ["log"]}, {"exclude_globs": ["a*"]}, {"b.log", "c.log"}),
    ({"pattern": "^[a-c]"}, {"include_globs": ["c*", "b*"]}, {"b.log", "c.log"}),
    ({"pattern": "?.log", "glob": True}, {"include_globs": ["b*", "c*"]}, {"b.log"}),
])  # fmt: skip
def test_globs_of_the_search_narrow_the_files_before_file_limit(call, tmp_path, listing, globs, searched):
    for name in "abc":
        (tmp_path / f"{name}.log").write_text("needle\n")
    found = call("find_and_grep", roots=["."], query="needle", file_limit=2, **listing, **globs)
    assert {match["file"] for match in value(found)["matches"]} == searched


def test_no_more_than_2000_matches_are_shown(call, tmp_path):
    (tmp_path / "long.txt").write_text("needle\n" * 2500)
    found = call("search_content", roots=["."], query="needle")
    assert len(value(found)) == 2000
    assert found.data["truncated"] is True
    assert any("not all of the 2,500 matching lines are shown" in note for note in found.notes)
    found = value(call("find_and_grep", roots=["."], query="needle"))
    assert found["meta"]["truncated"] is True


def test_regression_no_hint_advises_to_leave_out_a_bound_that_stays(call):
    """`max_filesize="0"` advised to leave it out "to remove the bound", which is 10M then."""
    wrong = error(call("search_content", query="x", roots=["."], max_filesize="0"))
    assert wrong["code"] == "invalid_argument"
    assert "remove" not in wrong["hint"]


@pytest.mark.full
def test_max_filesize_is_10m_and_never_over_200m(hits, call, tmp_path, ws):
    (tmp_path / "large.txt").write_bytes(b"needle\n" + b"x" * (10 * 2**20))
    (tmp_path / "below.txt").write_bytes(b"needle\n" + b"x" * (10 * 2**20 - 7))
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
    assert (
        error(call("search_content", roots=["."], query="x", max_filesize="big"))["code"]
        == "invalid_argument"
    )
    with Workspace(tmp_path, limits=Limits(file_bytes=100)) as small:
        tools = small.tools(dialect="tree-sitter-analyzer")
        found = tools.call("search_content", {"roots": ["."], "query": "n"})
        assert ("below.txt" in found.content, found.data["skipped"]["too_large"]) == (True, 1)


@pytest.mark.full
def test_the_timeout_is_4000_ms_and_never_over_30000(call, tmp_path):
    (tmp_path / "slow.txt").write_text("a" * 60 + "b\n")
    began = time.process_time()
    found = call("search_content", files=["slow.txt"], query="(a|aa)+(?!.)", timeout_ms=200)
    assert time.process_time() - began < 3
    assert value(found) == []
    assert found.data["exact"] is False
    (tmp_path / "fast.txt").write_text("aaa\n")
    partial = call(
        "search_content", files=["fast.txt", "slow.txt"], query="^(a|aa)+$(?!.)|aaa", timeout_ms=200
    )
    assert [match["file"] for match in value(partial)][:1] == ["fast.txt"], "what was found by then"
    assert any("stopped early, out of time" in note and "timeout_ms" in note for note in found.notes)
    found = call("search_content", roots=["README.md"], query="TODO", timeout_ms=60_000)
    assert found.notes == ("timeout_ms was lowered from 60,000 to 30,000, the maximum",)
    shown = value(call("find_and_grep", roots=["."], pattern="slow", query="(a|aa)+(?!.)", timeout_ms=200))
    assert shown["meta"]["truncated"] is True
    assert any("out of time" in note for note in shown["notes"])
    assert error(call("search_content", roots=["."], query="x", timeout_ms=0))["code"] == "invalid_argument"


def test_hidden_and_ignored_are_left_out_unless_asked_for(names, hits, call, tmp_path):
    assert ".hidden/note.txt" not in names(types=["f"])
    assert "build/out.py" not in names(types=["f"])
    assert ".hidden/note.txt" in names(hidden=True)
    assert "build/out.py" not in names(hidden=True)
    assert "build/out.py" in names(no_ignore=True)
    assert ".hidden/note.txt" not in names(no_ignore=True)
    assert [file for file, _ in hits("built|hidden")] == []
    assert [file for file, _ in hits("built|hidden", hidden=True)] == [".hidden/note.txt"]
    assert [file for file, _ in hits("built|hidden", no_ignore=True)] == ["build/out.py"]
    left = call("list_files", roots=["."]).notes
    more = "(hidden=true and no_ignore=true search hidden and ignored names)"
    assert left == (f"left out: 2 hidden, 1 ignored by .gitignore:1 build/ {more}",)
    absent = call("search_content", roots=["."], query="built")
    assert absent.notes[0] == 'No matches for "built" in "." (5 files searched).'
    assert (
        "1 line in hidden or ignored files, as in build/ (ignored by .gitignore:1 build/)" in absent.notes[1]
    )
    assert absent.notes[1].endswith("pass hidden=true and no_ignore=true.")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/note").write_text("built\n")
    found = value(call("search_content", roots=["."], query="built", hidden=True, no_ignore=True))
    assert [match["file"] for match in found] == ["build/out.py"]
    assert not any(name.startswith(".git/") for name in names(hidden=True, no_ignore=True))
    found = value(call("find_and_grep", roots=["."], query="built", hidden=True, no_ignore=True))
    assert [match["file"] for match in found["matches"]] == ["build/out.py"]


# list_files


def test_the_output_of_list_files(call, ws, tmp_path):
    os.utime(tmp_path / "src/main.py", (1_700_000_000.75, 1_700_000_000.75))
    (tmp_path / "secret.pem").write_text("key\n")
    found = value(call("list_files", roots=["."]))
    assert isinstance(found, list)
    by_path = {entry["path"]: entry for entry in found}
    assert by_path[f"{ws.root}/src/main.py"] == {
        "path": f"{ws.root}/src/main.py",
        "is_dir": False,
        "size_bytes": len(TREE["src/main.py"]),
        "mtime": 1_700_000_000,
        "ext": "py",
    }
    directory = by_path[f"{ws.root}/src/util"]
    assert directory["is_dir"] is True
    assert set(directory) == {"path", "is_dir", "mtime"}
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
])  # fmt: skip
def test_what_list_files_finds(names, tmp_path, filters, found):
    (tmp_path / "run.sh").write_text("x")
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "src/none").mkdir()
    (tmp_path / "to-main").symlink_to("src/main.py")
    os.utime(tmp_path / "README.md", (OLD, OLD))
    (tmp_path / "sizes").mkdir()
    for name, size in (("mega", 10**6), ("mebi", 2**20), ("under", 10**6 - 1)):
        with (tmp_path / "sizes" / name).open("wb") as file:
            file.truncate(size)
    assert names(*filters.pop("roots", ()), **filters) == found


@needs("fd")
@pytest.mark.parametrize("pattern", ["*.py", "*.PY", "[a-b]*", "[A-B]*", "*.{py,md}", "?.p?", "\u00e9*"])
def test_the_case_of_a_glob_is_smart_as_in_fd(names, tmp_path, pattern):
    put(tmp_path / "names", dict.fromkeys(("A.PY", "a.py", "b.Py", "c.MD", "\u00e9.md"), ""))
    argv = [program("fd"), "--glob", pattern, "names"]
    fd = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert names("names", pattern=pattern, glob=True) == sorted(fd.stdout.split())


def test_links_are_followed_only_when_asked_and_only_inside(names, hits, tmp_path):
    (tmp_path / "links").mkdir()
    (tmp_path / "links/in").symlink_to("../src/util")
    (tmp_path / "links/out").symlink_to("/etc")
    assert "links/in/helper.py" not in names("links")
    assert "links/in/helper.py" in names("links", follow_symlinks=True)
    assert not [name for name in names("links", follow_symlinks=True) if name.startswith("links/out/")]
    (tmp_path / "links/loop").symlink_to(".")
    (tmp_path / "links/up").symlink_to("..")
    looped = names("links", follow_symlinks=True, types=["f"])
    assert len({os.path.realpath(tmp_path / name) for name in looped}) == len(looped), (
        "loops are not followed"
    )
    (tmp_path / "links/loop").unlink()
    (tmp_path / "links/up").unlink()
    assert hits("def help", "links") == []
    assert hits("def help", "links", follow_symlinks=True) == [("links/in/helper.py", 1)]


@pytest.mark.parametrize("sort", ["path", "mtime", "size"])
def test_links_that_are_followed_do_not_hide_the_real_files(names, hits, call, tmp_path, sort):
    """A file counted by the first of its paths, so that `a-dir` hid the files of `src`."""
    (tmp_path / "a-dir").symlink_to("src")
    (tmp_path / "a-file").symlink_to("README.md")
    (tmp_path / ".away").mkdir()
    (tmp_path / ".away/only.py").write_text("def help(): ...\n")
    (tmp_path / "b-link").symlink_to(".away/only.py")
    (tmp_path / "c-link").symlink_to(".away/only.py")
    real = {path for path in names(types=["f"]) if not path.startswith(".")}
    assert set(names(follow_symlinks=True, types=["f"])) == {*real, "b-link"}
    assert hits("def help", follow_symlinks=True) == [("b-link", 1), ("src/util/helper.py", 1)]
    found = value(call("find_and_grep", roots=["."], query="def help", follow_symlinks=True, sort=sort))
    assert {match["file"] for match in found["matches"]} == {"b-link", "src/util/helper.py"}


def test_a_file_that_several_links_lead_to_is_found_once(names, hits, call, tmp_path):
    for link, target in (
        ("a-dir", "src/util"),
        ("z-dir", "src"),
        ("a-file", "README.md"),
        ("b-file", "a-file"),
    ):
        (tmp_path / link).symlink_to(target)
    (tmp_path / "same.md").hardlink_to(tmp_path / "README.md")
    files = names(follow_symlinks=True, types=["f"])
    real = [os.path.relpath(os.path.realpath(tmp_path / name), tmp_path) for name in files]
    assert sorted(real) == ["README.md", "same.md", *sorted(path for path in TREE if path.startswith("src/"))]
    assert sorted(names(follow_symlinks=True, types=["f"], limit=3)) == sorted(files)[:3]
    found = hits("def help", follow_symlinks=True)
    assert found == [("src/util/helper.py", 1)]
    searched = value(call("find_and_grep", roots=["."], query="TODO", follow_symlinks=True))
    assert len(searched["matches"]) == len({(m["file"], m["line_number"]) for m in searched["matches"]})
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


def test_a_very_long_line_is_cut_and_a_field_says_so(call, tmp_path):
    (tmp_path / "long.txt").write_text("a" * 5000 + "needle" + "b" * 5000 + "\n")
    (match,) = value(call("search_content", files=["long.txt"], query="needle"))
    assert len(match["line"]) == 2000
    assert match["cut"]["before"] + match["cut"]["after"] + 2000 == 10_006
    (span,) = match["submatches"]
    assert match["line"][span["start"] : span["end"]] == span["match"] == "needle"


def test_roots_or_files_and_not_both(call, hits):
    assert hits("TODO", files=["README.md", "src/main.py"]) == hits("TODO", "README.md", "src/main.py")
    assert hits("TODO", files=["src/main.py", "README.md"], include_globs=["*.md"]) == [("README.md", 3)]
    neither = error(call("search_content", query="x"))
    assert neither["code"] == "invalid_argument"
    assert "Neither roots nor files" in neither["message"]
    both = error(call("search_content", query="x", roots=["."], files=["README.md"]))
    assert both["code"] == "invalid_argument"
    assert "Both roots and files" in both["message"]
    assert error(call("search_content", query="x", files=["no.py"]))["code"] == "not_found"
    assert sorted(hits("TODO", "src", ".", "src/util")) == hits("TODO", "."), "each file once"


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


def test_lines_around_a_match(call):
    (match,) = value(call("search_content", roots=["."], query="let a", context_before=2, context_after=1))
    assert match["before"] == ["// TODO: ünï TODO"]
    assert match["after"] == ["let b = 2;"]
    (match,) = value(call("search_content", roots=["."], query="let a"))
    assert not {"before", "after"} & set(match)
    found = call("search_content", roots=["."], query="let a", context_after=99)
    assert found.notes[0] == "context was lowered to 20 lines on either side"
    assert (
        error(call("search_content", roots=["."], query="x", context_after=-1))["code"] == "invalid_argument"
    )


# find_and_grep


def test_find_and_grep_is_both_in_one_call(call, ws):
    found = value(call("find_and_grep", roots=["."], extensions=["py"], query="TODO", case="sensitive"))
    assert list(found)[:2] == ["matches", "meta"]
    assert found["matches"] == value(
        call("search_content", roots=["."], include_globs=["*.py"], query="TODO", case="sensitive")
    )
    meta = found["meta"]
    assert list(meta) == ["searched_file_count", "truncated", "fd_elapsed_ms", "rg_elapsed_ms"]
    assert meta["searched_file_count"] == 2
    assert meta["truncated"] is False
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


@pytest.mark.full
def test_both_times_are_measured(call, tmp_path):
    many(tmp_path, 1000)
    meta = value(call("find_and_grep", roots=["many"], query="nothing"))["meta"]
    assert meta["searched_file_count"] == 1000
    assert meta["fd_elapsed_ms"] > 0
    assert meta["rg_elapsed_ms"] > 0


@pytest.mark.parametrize(("filters", "files"), [
    ({"pattern": "^h"}, ["src/util/helper.py"]),
    ({"pattern": "*.py", "glob": True}, ["src/main.py", "src/util/helper.py"]),
    ({"pattern": "*.py", "glob": True, "include_globs": ["h*", "*.md"]}, ["src/util/helper.py"]),
    ({"pattern": "src/m", "full_path_match": True}, ["src/main.py"]),
    ({"extensions": ["js", "md"]}, ["README.md", "src/util/Text.JS"]),
    ({"exclude": ["src"]}, ["README.md"]),
    ({"exclude": ["util"], "exclude_globs": ["*.md"]}, ["src/main.py"]),
    ({"depth": 1}, ["README.md"]),
    ({"hidden": True, "include_globs": [".hidden/*"]}, [".hidden/note.txt"]),
    ({"no_ignore": True, "pattern": "out"}, ["build/out.py"]),
    ({"size": ["+70b"], "types": ["f"]}, ["src/main.py"]),
    ({"changed_within": "1h", "depth": 1}, ["README.md"]),
    ({"changed_before": "2020-01-01"}, []),
    ({"types": ["d", "f"], "depth": 1}, ["README.md"]),
    ({"absolute": False, "depth": 1}, ["README.md"]),
])  # fmt: skip
def test_every_filter_of_list_files_works_in_find_and_grep(call, filters, files):
    found = value(call("find_and_grep", roots=["."], query=".", **filters))
    assert sorted({match["file"] for match in found["matches"]}) == files
    if not files:
        assert found["notes"][0].startswith("0 files match")


def test_types_without_contents_are_an_error(call):
    refused = error(call("find_and_grep", roots=["."], query="x", types=["d"]))
    assert (refused["code"], "has contents" in refused["message"]) == ("invalid_argument", True)
    assert (
        value(call("find_and_grep", roots=["."], query="x", types=["e"]))["meta"]["searched_file_count"] == 1
    )


def test_the_order_is_made_before_the_files_are_cut(call, tmp_path):
    for age, (name, size) in enumerate((("b", 1), ("a", 3), ("c", 2))):
        (tmp_path / "src" / f"{name}.log").write_text("needle\n" * size)
        os.utime(tmp_path / "src" / f"{name}.log", (2_000_000_000 - age, 2_000_000_000 - age))

    def first(**options):
        found = value(
            call("find_and_grep", roots=["src"], extensions=["log"], query="needle", max_count=1, **options)
        )
        return [Path(match["file"]).stem for match in found["matches"]]

    assert first() == first(sort="path") == ["a", "b", "c"]
    assert first(sort="mtime") == ["b", "a", "c"]
    assert first(sort="size", file_limit=2) == ["a", "c"]


# The ladder of formats


def test_total_only_is_a_bare_integer(call):
    found = call("search_content", roots=["."], query="TODO", total_only=True)
    assert (found.content, found.data["total"], found.data["format"]) == ("5", 5, "total_only")
    assert call("find_and_grep", roots=["."], query="TODO", extensions=["py"], total_only=True).content == "2"
    nothing = call("search_content", roots=["."], query="nothing here", total_only=True)
    assert (nothing.content, nothing.notes) == ("0", ("3 left out",))
    assert nothing.data["notes"][0].startswith('No matches for "nothing here"')


def test_the_formats_by_file(call, ws):
    """Each names a file once; find_and_grep adds `meta`."""
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
    found = value(call("search_content", roots=["src/util"], query="TODO|help", optimize_paths=True))
    assert [match["file"] for match in found] == ["Text.JS", "helper.py"]
    assert found[0]["abs_path"] == f"{ws.root}/src/util/Text.JS"
    assert "abs_path" not in found[1]
    grouped = value(
        call("search_content", roots=["src/util"], query="TODO|help", group_by_file=True, optimize_paths=True)
    )
    assert grouped["base"] == f"{ws.root}/src/util/"
    assert [file["file"] for file in grouped["files"]] == ["Text.JS", "helper.py"]


def test_regression_the_base_of_paths_without_a_common_directory_is_the_root(call, ws):
    asked = {"roots": ["."], "query": "TODO|help", "group_by_file": True, "optimize_paths": True}
    assert value(call("search_content", **asked))["base"] == f"{ws.root}/"


def _whole(found):
    """Restore the full paths of an answer from the answer itself."""
    if isinstance(found, int):
        return found
    if isinstance(found, dict) and "meta" in found:
        rest = {name: part for name, part in found.items() if name != "meta"}
        return _whole(rest.get("matches", rest))
    if isinstance(found, list):
        if found:
            base = found[0]["abs_path"].removesuffix(found[0]["file"])
            return [(base + each["file"], each["line_number"], each["line"]) for each in found]
        return found
    base = found.get("base", "")
    if "file_counts" in found:
        return {base + file: count for file, count in found["file_counts"].items()}
    return [(_path(file, base), file.get("matches"), file.get("samples")) for file in found["files"]]


def _path(file, base):
    return file.get("abs_path") or base + file["file"]


@pytest.mark.parametrize("tool", ["search_content", "find_and_grep"])
def test_the_formats_exclude_one_another(call, tool):
    for index, first in enumerate(MODES):
        for second in MODES[index + 1 :]:
            refused = error(call(tool, roots=["."], query="x", **{first: True, second: True}))
            assert refused["code"] == "invalid_argument"
            assert f"{first}, {second} exclude one another" in refused["message"]


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
    full = estimate_tokens(project.call("search_content", SCOPES[scope]).content_with_notes)
    short = estimate_tokens(
        project.call("search_content", {**SCOPES[scope], "optimize_paths": True}).content_with_notes
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
    for number in range(200):
        # A shorter name leaves room for the digits of a long time; one entry is shown even without room.
        directory = root / f"dir-{number % 7}/{'x' * (number % 40)}y"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{number}.py").write_text("# TODO: one and TODO: two\n" * (number % 50 + 1))
    for number in range(9):
        (root / f".hidden-{number}").write_text("TODO")
        (root / f"left-{number}.out").write_text("TODO")
        (root / f"{number}.bin").write_bytes(b"TODO\0")
    (root / ".gitignore").write_text("".join(f"left-{number}.out\n" for number in range(9)))
    (root / ".git").mkdir()
    return root


@pytest.mark.parametrize("tool", ["search_content", "find_and_grep"])
@pytest.mark.parametrize("mode", ROOM)
@pytest.mark.parametrize(
    "more",
    [
        {"query": "TODO"},
        {"query": "TODO", "timeout_ms": 60_000, "max_filesize": "1G", "context_before": 99},
        {"query": "nowhere", "timeout_ms": 60_000},
        {"query": "TODO", "optimize_paths": True},
    ],
    ids=["defaults", "bounds", "nothing found", "shorter paths"],
)
def test_the_ladder_bounds_everything_that_the_model_gets(many_matches, tool, mode, more):
    """The notes count too: names left out, numbers lowered, matches missing."""
    with Workspace(many_matches) as ws:
        (message,) = ws.tools(dialect="tree-sitter-analyzer").answer(
            [{"type": "tool_use", "id": "1", "name": tool, "input": {"roots": ["."], mode: True, **more}}]
        )[0]["content"]
        texts = [block["text"] for block in message["content"]]
        assert estimate_tokens("\n".join(texts)) <= ROOM[mode], texts


def test_a_partial_count_says_so_in_a_word(call, tmp_path):
    def told(**more):
        return call("find_and_grep", roots=["."], query="TODO", total_only=True, **more).content_with_notes

    assert told() == "5\n[3 left out]"
    assert told(file_limit=1) == "1\n[partial]"
    assert told(hidden=True, no_ignore=True) == "7"
    many(tmp_path, 300)
    with Workspace(tmp_path) as ws:
        ignored = {"roots": ["many"], "query": "needle", "exclude_globs": ["0000*"], "total_only": True}
        assert (
            ws.tools(dialect="tree-sitter-analyzer").call("search_content", ignored).content_with_notes
            == "290"
        )


def test_results_that_do_not_fit_are_counted(project):
    asked = {"roots": ["."], "query": "import", "fixed_strings": True}
    total = int(project.call("search_content", {**asked, "total_only": True}).content)
    counted = json.loads(project.call("search_content", {**asked, "count_only_matches": True}).content)
    summary = json.loads(project.call("search_content", {**asked, "summary_only": True}).content)
    grouped = json.loads(project.call("search_content", {**asked, "group_by_file": True}).content)
    assert counted["total_matches"] == summary["total_matches"] == grouped["total_matches"] == total
    counts = counted["file_counts"]
    assert list(counts.values()) == sorted(counts.values(), reverse=True), "most first"
    assert counted["others"] == {
        "files": counted["total_files"] - len(counts),
        "matches": total - sum(counts.values()),
    }
    assert summary["others"]["matches"] == total - sum(file["matches"] for file in summary["files"])
    spans = sum(len(match["spans"]) for file in grouped["files"] for match in file["matches"])
    assert grouped["others"]["matches"] == total - spans
    assert any("not all of the" in note for note in grouped["notes"])


def test_the_conversation_of_the_document(tmp_path):
    """The user asks: how many TODO comments are there, which files have the most, and show me some."""
    counts = {"src/views.py": 20, "src/models.py": 17, "tests/test_views.py": 10}
    for path, count in counts.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(
            "".join(f"def f{n}():\n    pass  # TODO: no. {n}\n" for n in range(count))
        )
    with Workspace(tmp_path) as ws:
        tools = ws.tools(dialect="tree-sitter-analyzer")
        asked = {"roots": ["."], "query": "# TODO"}
        assert tools.call("search_content", {**asked, "total_only": True}).content == "47"
        spread = json.loads(tools.call("search_content", {**asked, "count_only_matches": True}).content)
        assert list(spread["file_counts"].items()) == list(counts.items())
        top = {
            "files": list(spread["file_counts"])[:2],
            "query": "# TODO",
            "summary_only": True,
            "context_before": 1,
        }
        shown = json.loads(tools.call("search_content", top).content)
        assert shown["files"][0]["samples"][0] == {
            "line_number": 2, "line": "pass  # TODO: no. 0", "before": ["def f0():"],
        }  # fmt: skip


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
    found = project.call("search_content", {"roots": ["."], "query": "import"})
    (warning,) = [note for note in found.notes if note.startswith("⚠️")]
    tokens = int(re.search(r"about ([\d,]+) tokens", warning)[1].replace(",", ""))
    assert tokens == estimate_tokens(found.content)
    assert "summary_only=true" in warning
    found = project.call("find_and_grep", {"roots": ["."], "query": "import"})
    assert any(note.startswith("⚠️") for note in json.loads(found.content)["notes"])
    assert any(
        note.startswith("⚠️") for note in project.call("list_files", {"roots": ["."], "limit": 9000}).notes
    )
    assert not any(
        note.startswith("⚠️") for note in project.call("list_files", {"roots": ["."], "depth": 1}).notes
    )


def test_notes_reach_the_model_beside_the_array(ws):
    tools = ws.tools(dialect="tree-sitter-analyzer")
    message = tools.answer(
        [{"type": "tool_use", "id": "1", "name": "list_files", "input": {"roots": ["."], "limit": 1}}]
    )[0]
    content, *notes = [block["text"] for block in message["content"][0]["content"]]
    assert len(json.loads(content)) == 1
    assert notes[0].startswith("these are the first 1 of 7 entries")
    data = tools.call("list_files", {"roots": ["."]}).data
    assert isinstance(data, dict)
    assert data["truncated"] is False


# Errors

FAILURES = [
    ("search_content", {"query": "x"}),
    ("search_content", {"query": "x", "roots": ["."], "files": ["README.md"]}),
    ("search_content", {"query": "x", "roots": ["."], "total_only": True, "summary_only": True}),
    ("search_content", {"query": "(", "roots": ["."]}),
    ("search_content", {"query": "", "roots": ["."]}),
    ("search_content", {"roots": ["."]}),
    ("search_content", {"query": "x", "roots": ["none"]}),
    ("search_content", {"query": "x", "roots": ["/etc"]}),
    ("search_content", {"query": "x", "roots": ["."], "case": "loud"}),
    ("search_content", {"query": "x", "roots": ["."], "encoding": "klingon"}),
    ("search_content", {"query": "x", "roots": ["."], "include_globs": ["{a"]}),
    ("find_and_grep", {"query": "x", "roots": ["."], "types": ["d"]}),
    ("find_and_grep", {"query": "x", "roots": ["."], "sort": "age"}),
    ("find_and_grep", {"query": "x", "roots": ["."], "group_by_file": True, "total_only": True}),
    ("list_files", {}),
    ("list_files", {"roots": []}),
    ("list_files", {"roots": ["README.md"]}),
    ("list_files", {"roots": ["."], "types": ["z"]}),
    ("list_files", {"roots": ["."], "size": ["big"]}),
    ("list_files", {"roots": ["."], "changed_within": "soon"}),
    ("list_files", {"roots": ["."], "changed_before": "later"}),
    ("list_files", {"roots": ["."], "extensions": [""]}),
    ("list_files", {"roots": ["."], "pattern": "["}),
    ("list_files", {"roots": ["."], "depth": 0}),
    ("list_files", {"roots": ["."], "folder": "src"}),
    ("list_files", {"roots": ["src/utils"]}),
    ("list_files", {"roots": ["."], "pattern": "[", "glob": True}),
    ("list_files", {"roots": ["."], "exclude": ["{a"]}),
    ("list_files", {"roots": ["."], "exclude": ["../x"]}),
    ("list_files", {"roots": ["."], "limit": 0}),
    ("search_content", {"query": "x", "files": []}),
    ("search_content", {"query": "x", "files": ["src"]}),
    ("search_content", {"query": "x", "files": ["main.py"]}),
    ("search_content", {"query": "x", "roots": ["."], "exclude_globs": ["["]}),
    ("find_and_grep", {"query": "x", "roots": ["."], "pattern": "("}),
    ("find_and_grep", {"query": "(", "roots": ["."], "pattern": "x"}),
    ("find_and_grep", {"query": "", "roots": ["."]}),
    ("find_and_grep", {"query": "x", "roots": ["."], "include_globs": ["{a"]}),
    ("find_and_grep", {"query": "x", "roots": ["."], "exclude": ["["]}),
    ("find_and_grep", {"query": "x", "roots": ["README.md"]}),
    ("find_and_grep", {"query": "x", "roots": ["."], "depth": 0}),
    ("find_and_grep", {"query": "x", "roots": ["."], "file_limit": 0}),
    ("search_content", {"query": "x", "roots": ["."], "max_count": 0}),
    ("search_content", {"query": "x", "roots": ["."], "max_filesize": "big"}),
    ("search_content", {"query": "x", "roots": ["."], "timeout_ms": 0}),
    ("search_content", {"query": "x", "roots": ["."], "context_before": -1}),
    ("search_content", {"query": "x", "roots": ["."], "context_after": -1}),
]  # fmt: skip


@pytest.mark.parametrize(("language", "mark", "guide"), [
    ("en", "🎯 Example: ", "💡 Tokens: "), ("ja", "🎯 使用例: ", "💡 トークン数の目安: "),
])  # fmt: skip
@pytest.mark.parametrize(("tool", "arguments"), FAILURES, ids=lambda each: str(each)[:60])
def test_each_error_has_an_example_that_works_as_given(ws, tool, arguments, language, mark, guide):
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


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize(("tool", "arguments"), FAILURES, ids=lambda each: str(each)[:60])
def test_hints_and_examples_have_parameters_of_the_tool_and_calls_that_work(ws, tool, arguments, language):
    tools = in_language(language).tools(ws)
    refused = error(tools.call(tool, arguments))
    hint, _, example = refused["hint"].rpartition("{")
    names = set(re.findall(r'"(\w+)":', example.partition("}")[0]))
    for called, sent in re.findall(r"\b(list_files|search_content|find_and_grep)\((.*?)\)", hint):
        given = {name: json.loads(text) for name, text in re.findall(r'(\w+)=(\[.*?\]|".*?"|\d+)', sent)}
        assert set(given) <= set(INPUTS[called])
        assert tools.call(called, given).success
        hint = hint.replace(f"{called}({sent})", "")
    names |= set(re.findall(r"\b([a-z_]+)=", hint)) | set(re.findall(r"`([a-z_]+)`", hint))
    assert names <= set(INPUTS[tool])


def test_the_hint_for_a_file_in_place_of_a_directory_shows_the_file(ws):
    for language in ("en", "ja"):
        tools = in_language(language).tools(ws)
        hint = error(tools.call("list_files", {"roots": ["README.md"]}))["hint"]
        assert 'search_content(files=["README.md"], query="^")' in hint
    shown = value(tools.call("search_content", {"files": ["README.md"], "query": "^"}))
    assert [match["line"] for match in shown] == TREE["README.md"].splitlines()


def test_every_text_is_in_both_languages():
    for texts in _OWN_MESSAGES.values():
        filled = {
            name: {place for text in told for place in re.findall(r"{(\w+)}", text)}
            for name, told in texts.items()
        }
        assert filled["en"] == filled["ja"]
    raised = {"outside_workspace", "not_found", "invalid_argument", "invalid_pattern", "refused"}
    assert raised | {"not_a_directory", "encoding"} <= set(_CODES_JA)


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


def test_hints_speak_of_the_tools_there_are(call):
    missing = error(call("search_content", query="x", roots=["src/utils"]))
    assert "src/util" in missing["hint"]
    wrong = error(call("search_content", query="help(", roots=["."]))
    assert "pass query=" in wrong["hint"]
    wrong = error(call("find_and_grep", query="help(", roots=["."], pattern="helper"))
    assert "pass query=" in wrong["hint"]
    wrong = error(call("list_files", roots=["."], pattern="f("))
    assert "pass pattern=" in wrong["hint"]


# Events and caching


def test_events_carry_the_format_and_data_the_tokens_saved(project, ws):
    events: list[Event] = []
    ws.on_event = events.append
    tools = DIALECT.tools(ws)
    query = {"roots": ["."], "query": "TODO"}
    calls = [*({**query, mode: True} for mode in MODES), query, {**query, "optimize_paths": True}]
    results = [tools.call("search_content", arguments) for arguments in calls]
    tools.call("list_files", {"roots": ["."]})
    ended = [event for event in events if event.kind != "started"]
    assert [event.outcome.data.get("format", "") for event in ended] == [
        *MODES,
        "full",
        "full+optimize_paths",
        "",
    ]
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
    assert (
        error(ws.tools(dialect="tree-sitter-analyzer").call("list_files", {"roots": ["."]}))["code"]
        == "internal"
    )


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

    for where, name in (
        (subprocess, "Popen"),
        (os, "posix_spawn"),
        (os, "fork"),
        (os, "execv"),
        (os, "execve"),
    ):
        monkeypatch.setattr(where, name, started)
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
