"""Searches are bounded in memory whatever is asked for, and say where they stopped."""

import subprocess
import sys
from pathlib import Path

import pytest

from agentfs import Limits, Workspace
from agentfs.errors import InvalidPatternError
from agentfs.results import Match
from agentfs.search import entries as entry_pages
from agentfs.search import grep_text
from agentfs.tree import walk
from tests import kit

MIB = 1 << 20
SLASHES = "a/" * 491 + "b"


@pytest.fixture
def ws(tmp_path: Path):
    with Workspace(tmp_path) as opened:
        yield opened


def memory_of(root: Path, call: str) -> int:
    """Return by how many MiB a call raises the most memory of a process of its own."""
    code = f"""
import re, resource, sys
from agentfs import Workspace
def most():
    if sys.platform == "linux":  # where `ru_maxrss` begins with what the parent of the process has taken
        return int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 20
with Workspace({str(root)!r}) as ws:
    ws.grep("warm")
    before = most()
    try:
        {call}
    except MemoryError:
        print(10**6)
    print(most() - before)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(run.stdout.split("\n")[0])


@pytest.mark.parametrize("prefix", ["", "/", "!", "**/", "{x,y}/"])
def test_regression_a_glob_of_491_slashes_does_not_raise_recursion_error(ws: Workspace, prefix: str) -> None:
    (Path(ws.root) / "f.txt").write_text("x\n")
    tools = ws.tools(["glob", "grep", "ls"], expose={"ls": ["ignore"]})
    calls = {"glob": {"pattern": prefix + SLASHES}}
    calls |= {"grep": {"pattern": "x", "glob": prefix + SLASHES}, "ls": {"ignore": prefix + SLASHES}}
    for name, arguments in calls.items():
        result = tools.call(name, arguments)
        assert result.success or (result.error is not None and result.error["code"] == "outside_workspace")


def test_a_glob_of_many_parts_still_matches(ws: Workspace) -> None:
    deep = "/".join(["d"] * 99)
    (Path(ws.root) / deep).mkdir(parents=True)
    (Path(ws.root) / deep / "f.txt").touch()
    assert [entry.path for entry in ws.glob("d/" * 99 + "f.txt").files] == [f"{deep}/f.txt"]
    assert ws.glob("d/" * 98 + "f.txt").total == 0


@pytest.mark.parametrize(
    "glob", ["{1..999}" + "?*" * 2000, ["?*" * 2000] * 9, "{a,b}" * 20, "{1..2000}"], ids=[1, 2, 3, 4]
)
def test_regression_a_glob_is_bounded_before_it_is_compiled(ws: Workspace, glob: str | list[str]) -> None:
    searches = [lambda: kit.find(ws, glob=glob), lambda: ws.grep("x", glob=glob), lambda: ws.ls(ignore=glob)]
    if isinstance(glob, str):
        searches.append(lambda: ws.glob(glob))
        searches.append(lambda: ws.glob(f"!{glob}"))
    for search in searches:
        with pytest.raises(InvalidPatternError) as caught:
            search()
        assert caught.value.code == "invalid_pattern"
        assert "patterns" in str(caught.value) or "characters" in str(caught.value)


@pytest.mark.full
@pytest.mark.parametrize("pattern", ["((?>a)|(b))+[cd]", r"(a)\1*[^a]"])
def test_regression_a_pattern_does_not_take_memory_for_each_character_of_a_long_line(
    ws: Workspace, pattern: str
) -> None:
    (Path(ws.root) / "f.txt").write_bytes(b"aac\nabc\n" + b"a" * (10 * MIB - 100) + b"c\nac\n")
    result = ws.tools().call("grep", {"pattern": pattern})
    assert result.success, result.content
    assert "1 file with lines too long for the pattern" in result.content
    assert result.data["skipped"]["long_lines"] == 1
    assert [match["line"] for match in result.data["matches"]][-1] == 4
    assert memory_of(tmp := Path(ws.root), f"ws.grep({pattern!r})") < 256, tmp


@pytest.mark.full
def test_a_long_line_is_searched_if_its_memory_is_bounded(ws: Workspace) -> None:
    (Path(ws.root) / "f.txt").write_bytes(b"a" * (9 * MIB) + b"bc\n")
    for pattern in ("a+bc", "(a+)(b)c", "(?P<name>b)c$", "[ab]*c", "(?:b|x)c", "(?:ab){1,3}c"):
        result = ws.grep(pattern)
        assert (result.total_lines, result.skipped.long_lines) == (1, 0), pattern
    (Path(ws.root) / "f.txt").write_bytes(b"ab" * 300_000 + b"c\n")
    assert ws.grep("(ab)+c").total_matches == 1


def test_a_line_that_is_too_long_for_a_pattern_has_no_empty_match(ws: Workspace) -> None:
    (Path(ws.root) / "f.txt").write_bytes(b"ab" * 330_000 + b"\n")
    for options in ({}, {"multiline": True}):
        result = ws.grep("(?:ab)*", **options)
        assert (result.total_matches, result.skipped.long_lines) == (0, 1)


def test_a_multiline_search_says_which_text_was_too_long(ws: Workspace) -> None:
    (Path(ws.root) / "f.txt").write_bytes(b"ab\n" * (3 * MIB))
    (Path(ws.root) / "g.txt").write_bytes(b"ab\n" * 10)
    result = ws.grep("(?:.*\n)*ab", multiline=True)
    assert (result.total_files, result.skipped.long_lines) == (1, 1)


@pytest.mark.full
@pytest.mark.parametrize(
    "pattern",
    ["a", "a|b", *(pytest.param(each, marks=pytest.mark.long) for each in ("[ab]", "(?i)A", "(?<=a)a"))],
)
def test_regression_a_line_of_very_many_matches_does_not_keep_all_their_spans(
    ws: Workspace, pattern: str
) -> None:
    (Path(ws.root) / "f.txt").write_bytes(b"a" * 300_000 + b"\na a\n")
    result = ws.grep(pattern, limit=10)
    assert result.total_matches == (299_999 if "<" in pattern else 300_002)
    first = result.matches[0]
    assert 300 < len(first.spans) <= 401
    assert {first.text[start:end] for start, end in first.spans[:-1]} == {"a"}
    assert [len(match.spans) for match in result.matches[1:]] == ([] if "<" in pattern else [2])
    assert memory_of(Path(ws.root), f"ws.grep({pattern!r})") < 25


@pytest.mark.full
@pytest.mark.parametrize("given", [
    pytest.param("context=20", marks=pytest.mark.long),
    pytest.param("", marks=pytest.mark.long),
    "output_mode='summary'",
])  # fmt: skip
def test_regression_a_search_without_a_limit_stops_keeping_matches_at_its_memory(
    tmp_path: Path, given: str
) -> None:
    (tmp_path / "f.txt").write_bytes(b"ab\n" * 300_000)
    quarter = "from agentfs.search import entries; entries.PAGE_BYTES //= 4"
    assert memory_of(tmp_path, f"{quarter}; ws.grep('b', limit=10**9, timeout=30, {given})") < 64


def test_a_page_that_ends_for_lack_of_memory_can_be_continued(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        (Path(ws.root) / name).write_text("".join(f"{name} {n} x\n" for n in range(1500)))
    everything = [(match.path, match.line) for match in ws.grep("x", limit=9000, context=1).matches]
    assert len(everything) == 4500
    monkeypatch.setattr(entry_pages, "PAGE_BYTES", MIB)
    result = ws.grep("x", limit=9000, context=1)
    found: list[tuple[str, int]] = []
    assert result.truncated
    while True:
        assert (result.total_lines, result.exact) == (4500, True)
        assert 100 < len(result.matches) < 2500
        found += [(match.path, match.line) for match in result.matches]
        if len(found) == len(everything):
            break
        result = ws.grep("x", limit=9000, context=1, offset=len(found))
    assert found == everything


@pytest.mark.parametrize("mode", ["files_with_matches", "count", "summary"])
def test_files_of_a_search_are_bounded_by_memory(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    for number in range(60):
        (Path(ws.root) / f"f{number:02}").write_text("x\n")
    monkeypatch.setattr(entry_pages, "PAGE_BYTES", 10_000)
    found: list[str] = []
    for _ in range(60):
        result = ws.grep("x", output_mode=mode, limit=10**9, offset=len(found))  # type: ignore[arg-type] # a parameter of the test
        found += result.counts
        assert 0 < len(result.counts) < 20
        assert not result.matches or {match.path for match in result.matches} == set(result.counts)
        if not result.truncated:
            break
    assert found == [f"f{number:02}" for number in range(60)]


@pytest.mark.parametrize("search", ["ls", "glob", "find", "newest", "several"])
def test_regression_a_page_of_entries_is_bounded_by_memory(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, search: str
) -> None:
    for directory in ("d", "e"):
        (Path(ws.root) / directory).mkdir()
        for number in range(40):
            (Path(ws.root) / directory / f"f{number:02}").touch()
    calls = {
        "ls": lambda offset: ws.ls(depth=0, limit=10**9, offset=offset),
        "glob": lambda offset: ws.glob("**", limit=10**9, offset=offset),
        "find": lambda offset: kit.find(ws, limit=10**9, offset=offset),
        "newest": lambda offset: kit.find(ws, limit=10**9, offset=offset, sort="modified"),
        "several": lambda offset: ws.ls(["d", "e"], limit=10**9, offset=offset),
    }

    def entries(result: object) -> list[str]:
        return [each.path for each in getattr(result, "entries", None) or getattr(result, "files", ())]

    everything = entries(calls[search](0))
    assert len(everything) >= 80
    monkeypatch.setattr(entry_pages, "PAGE_BYTES", 20_000)
    found: list[str] = []
    for _ in range(100):
        result = calls[search](len(found))
        assert result.total == len(everything)
        assert 0 < len(entries(result)) < 40
        found += entries(result)
        assert result.truncated == (len(found) < len(everything))
        if not result.truncated:
            break
        assert result.next is not None
        assert result.next["arguments"]["offset"] == len(found)
    if search == "ls":  # on several pages, small directories come first
        found.sort(key=everything.index)
    assert found == everything


def test_the_limit_of_a_model_is_clamped_to_the_token_budget(tmp_path: Path) -> None:
    for number in range(500):
        (tmp_path / f"f{number:03}").write_text("x\nx\n")
    with Workspace(tmp_path, limits=Limits(output_tokens=300)) as ws:
        tools = ws.tools(["ls", "glob", "grep"])
        for name, arguments, kept in [
            ("ls", {}, "entries"),
            ("glob", {"pattern": "*"}, "files"),
            ("grep", {"pattern": "x"}, "matches"),
            ("grep", {"pattern": "x", "output_mode": "count"}, "counts"),
        ]:
            result = tools.call(name, {**arguments, "limit": 10**9})
            assert len(result.data[kept]) == 300
            assert result.next is not None
            assert 0 < result.next["arguments"]["offset"] < 300
        assert len(ws.ls(limit=10**9).entries) == 500
        assert len(ws.grep("x", limit=10**9).matches) == 1000


def test_a_walk_that_would_hold_too_many_names_ends_and_says_so(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(300):
        path = Path(ws.root) / f"d{number // 30}" / f"f{number:03}"
        path.parent.mkdir(exist_ok=True)
        path.write_text("x\n")
    assert ws.grep("x", output_mode="total").exact
    monkeypatch.setattr(walk, "_MAX_HELD", 20)
    result = ws.grep("x", output_mode="total")
    assert result.skipped.reached == "memory"
    assert 0 < result.total_lines < 300
    assert not result.exact
    assert "stopped early after the most memory that one call may take" in result.text


def test_a_crowded_directory_is_listed_in_part_and_said_so(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(300):
        (Path(ws.root) / f"f{number:03}").write_text("x\n")
    (Path(ws.root) / ".gitignore").write_text("f0*\n")
    (Path(ws.root) / "d").mkdir()
    (Path(ws.root) / "d/f").write_text("x\n")
    monkeypatch.setattr(walk, "MAX_LISTED", 250)
    for result in (ws.ls(), ws.glob("*"), ws.glob("*", sort="size"), ws.grep("x", output_mode="total")):
        assert result.skipped.reached == "directory_entries"
        assert "after the first 200000 entries of one directory" in result.text
    assert 50 < ws.glob("f*").total < 250
    assert ws.glob("f0*").total == 0, "the rules of a crowded directory are read, wherever they are in it"
    assert not ws.grep("x", output_mode="total").exact
    assert ws.ls("d").skipped.reached is None
    monkeypatch.setattr(walk, "MAX_LISTED", 20)
    assert ws.glob("f0*").total == 0, "also if the rule file is not among the listed names"


def test_a_sorted_search_that_would_hold_too_many_paths_ends_and_says_so(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(150):
        path = Path(ws.root) / f"d{number}"
        path.mkdir()
        (path / "f").write_text("x\n")
    monkeypatch.setattr(entry_pages, "_MAX_SORTED", 100)
    for result in (ws.glob("*", sort="size", limit=5), ws.grep("x", sort="size")):
        assert (result.skipped.reached, result.exact) == ("memory", False)
        assert getattr(result, "total", getattr(result, "searched_files", None)) == 100
        assert "the most memory" in result.text


CALLS = [
    "(?R)?a", "a(?0)?b", "((?1)?a)", "(?P<x>(?&x)?a)b", "(?P<x>a)(?P>x)", r"(?P<n>\d+)-(?&n)", "((?-1)?a)",
    "(?+1)(a)",
]  # fmt: skip


@pytest.mark.parametrize("pattern", CALLS)
def test_a_call_of_a_group_is_refused_with_its_position(ws: Workspace, pattern: str) -> None:
    (Path(ws.root) / "f.txt").write_text("aab\n")
    result = ws.tools(["grep"]).call("grep", {"pattern": pattern})
    assert result.error is not None
    assert result.error["code"] == "invalid_pattern"
    assert "such calls are not supported" in result.content
    with pytest.raises(InvalidPatternError, match="such calls are not supported"):
        kit.find(ws, pattern=pattern)
    with pytest.raises(InvalidPatternError) as caught:
        ws.grep(pattern, word=True)
    assert pattern[caught.value.details["position"] :].startswith("(?")


@pytest.mark.parametrize("pattern", ["(?P<x>a)(?P=x)", r"(a)\1", r"\(\?R\)|aa", "[(?R)a]a", "(?:a)(?>a)"])
def test_references_and_escaped_calls_are_accepted(ws: Workspace, pattern: str) -> None:
    (Path(ws.root) / "f.txt").write_text("aab\n")
    assert ws.grep(pattern).total_lines == 1


def test_regression_a_page_of_long_lines_holds_hardly_more_matches_than_are_shown(ws: Workspace) -> None:
    (Path(ws.root) / "f").write_text(("a" * 300 + "\n") * 20_000)
    result = ws.tools(["grep"]).call("grep", {"pattern": "a+", "limit": 10**9})
    assert result.data is not None
    assert result.next is not None
    shown = result.content.count("|aaa")
    assert shown == result.next["arguments"]["offset"] > 100
    assert shown <= len(result.data["matches"]) < 5 * shown
    assert result.data["total_lines"] == 20_000


@pytest.mark.full
@pytest.mark.parametrize("context", [0, 20])
@pytest.mark.parametrize("line_numbers", [True, False])
def test_regression_a_page_of_many_short_lines_is_rendered_only_a_few_times(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, context: int, line_numbers: bool
) -> None:
    (Path(ws.root) / "f").write_text("ab cd ef gh\n" * 10_000)
    numbered = grep_text._numbered_matches
    rendered = 0

    def counted(matches: list[Match], *more: object, numbers: bool) -> list[str]:
        nonlocal rendered
        rendered += len(matches)
        return numbered(matches, *more, numbers=numbers)

    monkeypatch.setattr(grep_text, "_numbered_matches", counted)
    result = kit.grep(ws, "a", limit=10**9, context=context, line_numbers=line_numbers)
    assert result.next is not None
    shown = result.next["arguments"]["offset"]
    assert rendered < 10_000 + 16 * shown
    few = kit.grep(ws, "a", limit=shown + 1, line_numbers=line_numbers)
    assert few.next is not None
    assert few.next["arguments"]["offset"] >= shown  # as many lines as fit are shown
