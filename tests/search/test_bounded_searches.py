"""Searches are bounded in memory whatever is asked for, and say where they stopped."""

import pytest

from agentfs import Limits, Workspace
from agentfs.search import entries as entry_pages
from agentfs.search import grep_text
from agentfs.tree import walk
from tests import kit
from tests.kit import error_of, memory_of, put

MIB = 1 << 20
SLASHES = "a/" * 491 + "b"


@pytest.fixture
def root(tmp_path):
    return tmp_path


@pytest.mark.parametrize("prefix", ["", "/", "!", "**/", "{x,y}/"])
def test_regression_a_glob_of_491_slashes_does_not_raise_recursion_error(ws, root, prefix):
    put(root, ["f.txt"])
    tools = ws.tools(["glob", "grep", "ls"], expose={"ls": ["ignore"]})
    calls = {"glob": {"pattern": prefix + SLASHES}}
    calls |= {"grep": {"pattern": "x", "glob": prefix + SLASHES}, "ls": {"ignore": prefix + SLASHES}}
    for name, arguments in calls.items():
        result = tools.call(name, arguments)
        assert result.success or result.error["code"] == "outside_workspace"


def test_a_glob_of_many_parts_still_matches(ws, root):
    deep = "d/" * 99
    put(root, [f"{deep}f.txt"])
    assert [entry.path for entry in ws.glob(f"{deep}f.txt").files] == [f"{deep}f.txt"]
    assert ws.glob("d/" * 98 + "f.txt").total == 0


@pytest.mark.parametrize(
    "glob", ["{1..999}" + "?*" * 2000, ["?*" * 2000] * 9, "{a,b}" * 20, "{1..2000}"], ids=[1, 2, 3, 4]
)
def test_regression_a_glob_is_bounded_before_it_is_compiled(ws, glob):
    searches = [lambda: kit.find(ws, glob=glob), lambda: ws.grep("x", glob=glob), lambda: ws.ls(ignore=glob)]
    if isinstance(glob, str):
        searches += [lambda: ws.glob(glob), lambda: ws.glob(f"!{glob}")]
    for search in searches:
        error = error_of(search)
        assert error.code == "invalid_pattern"
        assert "patterns" in str(error) or "characters" in str(error)


@pytest.mark.full
@pytest.mark.parametrize("pattern", ["((?>a)|(b))+[cd]", r"(a)\1*[^a]"])
def test_regression_a_pattern_does_not_take_memory_for_each_character_of_a_long_line(ws, root, pattern):
    (root / "f.txt").write_bytes(b"aac\nabc\n" + b"a" * (10 * MIB - 100) + b"c\nac\n")
    result = ws.tools().call("grep", {"pattern": pattern})
    assert "1 file with lines too long for the pattern" in result.content
    assert result.data["skipped"]["long_lines"] == 1
    assert [match["line"] for match in result.data["matches"]][-1] == 4
    assert memory_of(root, f"ws.grep({pattern!r})") < 256


@pytest.mark.full
def test_a_long_line_is_searched_if_its_memory_is_bounded(ws, root):
    (root / "f.txt").write_bytes(b"a" * (9 * MIB) + b"bc\n")
    for pattern in ("a+bc", "(a+)(b)c", "(?P<name>b)c$", "[ab]*c", "(?:b|x)c", "(?:ab){1,3}c"):
        result = ws.grep(pattern)
        assert (result.total_lines, result.skipped.long_lines) == (1, 0), pattern
    (root / "f.txt").write_bytes(b"ab" * 300_000 + b"c\n")
    assert ws.grep("(ab)+c").total_matches == 1


@pytest.mark.parametrize(("content", "pattern", "multiline", "matches"), [
    (b"ab" * 330_000 + b"\n", "(?:ab)*", False, 0),  # not an empty one
    (b"ab" * 330_000 + b"\n", "(?:ab)*", True, 0),
    (b"ab\n" * (3 * MIB), "(?:.*\n)*ab", True, 1),  # in the other file
])  # fmt: skip
def test_a_text_that_is_too_long_for_a_pattern_is_counted(ws, root, content, pattern, multiline, matches):
    put(root, {"f.txt": content, "g.txt": b"ab\n" * 10 * matches})
    result = ws.grep(pattern, multiline=multiline)
    assert (result.total_matches, result.skipped.long_lines) == (matches, 1)


@pytest.mark.full
@pytest.mark.parametrize(
    "pattern",
    ["a", "a|b", *(pytest.param(each, marks=pytest.mark.long) for each in ("[ab]", "(?i)A", "(?<=a)a"))],
)
def test_regression_a_line_of_very_many_matches_does_not_keep_all_their_spans(ws, root, pattern):
    (root / "f.txt").write_bytes(b"a" * 300_000 + b"\na a\n")
    result = ws.grep(pattern, limit=10)
    assert result.total_matches == (299_999 if "<" in pattern else 300_002)
    first = result.matches[0]
    assert 300 < len(first.spans) <= 401
    assert {first.text[start:end] for start, end in first.spans[:-1]} == {"a"}
    assert [len(match.spans) for match in result.matches[1:]] == ([] if "<" in pattern else [2])
    assert memory_of(root, f"ws.grep({pattern!r})") < 25


@pytest.mark.full
@pytest.mark.parametrize("given", [
    *(pytest.param(each, marks=pytest.mark.long) for each in ("context=20", "")), "output_mode='summary'",
])  # fmt: skip
def test_regression_a_search_without_a_limit_stops_keeping_matches_at_its_memory(root, given):
    put(root, {"f.txt": b"ab\n" * 300_000})
    quarter = "from agentfs.search import entries; entries.PAGE_BYTES //= 4"
    assert memory_of(root, f"{quarter}; ws.grep('b', limit=10**9, timeout=30, {given})") < 64


@pytest.mark.parametrize(("search", "page_bytes"), [
    ("matches", MIB // 5), ("files_with_matches", 10_000), ("count", 10_000), ("summary", 10_000),
    ("ls", 20_000), ("glob", 20_000), ("find", 20_000), ("newest", 20_000), ("several", 20_000),
])  # fmt: skip
def test_regression_a_page_is_bounded_by_memory_and_can_be_continued(
    ws, root, monkeypatch, search, page_bytes
):
    put(root, [f"{directory}/f{number:02}" for directory in "de" for number in range(40)], "x\n" * 10)
    unlimited = {"limit": 10**9}
    calls = {
        "matches": lambda **page: ws.grep("x", context=1, **page),
        "ls": lambda **page: ws.ls(depth=0, **page),
        "glob": lambda **page: ws.glob("**", **page),
        "find": lambda **page: kit.find(ws, **page),
        "newest": lambda **page: kit.find(ws, sort="modified", **page),
        "several": lambda **page: ws.ls(["d", "e"], **page),
    }
    call = calls.get(search, lambda **page: ws.grep("x", output_mode=search, **page))

    def entries(result):
        if search == "matches":
            return [(match.path, match.line) for match in result.matches]
        listed = getattr(result, "entries", None) or getattr(result, "files", None)
        return [each.path for each in listed] if listed else list(result.counts)

    everything = entries(call(**unlimited))
    assert len(everything) >= 80
    monkeypatch.setattr(entry_pages, "PAGE_BYTES", page_bytes)
    found = []
    while True:
        result = call(**unlimited, offset=len(found))
        if search not in {"files_with_matches", "count", "summary"}:
            assert getattr(result, "total", getattr(result, "total_lines", None)) == len(everything)
        assert 0 < len(entries(result)) < len(everything) * 0.6
        found += entries(result)
        assert result.truncated == (len(found) < len(everything))
        if not result.truncated:
            break
        assert result.next["arguments"]["offset"] == len(found)
    if search == "ls":  # on several pages, small directories come first
        found.sort(key=everything.index)
    assert found == everything


@pytest.mark.parametrize(("name", "arguments", "kept"), [
    ("ls", {}, "entries"), ("glob", {"pattern": "*"}, "files"), ("grep", {"pattern": "x"}, "matches"),
    ("grep", {"pattern": "x", "output_mode": "count"}, "counts"),
])  # fmt: skip
def test_the_limit_of_a_model_is_clamped_to_the_token_budget(tmp_path, name, arguments, kept):
    put(tmp_path, [f"f{number:03}" for number in range(500)], "x\nx\n")
    with Workspace(tmp_path, limits=Limits(output_tokens=300)) as ws:
        result = ws.tools([name]).call(name, {**arguments, "limit": 10**9})
        assert len(result.data[kept]) == 300
        assert 0 < result.next["arguments"]["offset"] < 300
        whole = getattr(ws, name)(**arguments, limit=10**9)
        assert len(getattr(whole, kept)) == (1000 if kept == "matches" else 500)


def test_a_walk_that_would_hold_too_many_names_ends_and_says_so(ws, root, monkeypatch):
    put(root, [f"d{number // 30}/f{number:03}" for number in range(300)])
    assert ws.grep("x", output_mode="total").exact
    monkeypatch.setattr(walk, "_MAX_HELD", 20)
    result = ws.grep("x", output_mode="total")
    assert (result.skipped.reached, result.exact) == ("memory", False)
    assert 0 < result.total_lines < 300
    assert "stopped early after the most memory that one call may take" in result.text


def test_a_crowded_directory_is_listed_in_part_and_said_so(ws, root, monkeypatch):
    put(root, [*(f"f{number:03}" for number in range(300)), "d/f"])
    put(root, {".gitignore": "f0*\n"})
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


def test_a_sorted_search_that_would_hold_too_many_paths_ends_and_says_so(ws, root, monkeypatch):
    put(root, [f"d{number}/f" for number in range(150)])
    monkeypatch.setattr(entry_pages, "_MAX_SORTED", 100)
    for result in (ws.glob("*", sort="size", limit=5), ws.grep("x", sort="size")):
        assert (result.skipped.reached, result.exact) == ("memory", False)
        assert getattr(result, "total", getattr(result, "searched_files", None)) == 100
        assert "the most memory" in result.text


CALLS = ["(?R)?a", "a(?0)?b", "((?1)?a)", "(?P<x>(?&x)?a)b", "(?P<x>a)(?P>x)", r"(?P<n>\d+)-(?&n)"]
CALLS += ["((?-1)?a)", "(?+1)(a)"]


@pytest.mark.parametrize("pattern", CALLS)
def test_a_call_of_a_group_is_refused_with_its_position(ws, root, pattern):
    put(root, {"f.txt": "aab\n"})
    result = ws.tools(["grep"]).call("grep", {"pattern": pattern})
    assert result.error["code"] == "invalid_pattern"
    assert "such calls are not supported" in result.content
    assert "such calls are not supported" in str(error_of(kit.find, ws, pattern=pattern))
    position = error_of(ws.grep, pattern, word=True).details["position"]
    assert pattern[position:].startswith("(?")
    for accepted in ("(?P<x>a)(?P=x)", r"(a)\1", r"\(\?R\)|aa", "[(?R)a]a", "(?:a)(?>a)"):
        assert ws.grep(accepted).total_lines == 1


def test_regression_a_page_of_long_lines_holds_hardly_more_matches_than_are_shown(ws, root):
    put(root, {"f": ("a" * 300 + "\n") * 20_000})
    result = ws.tools(["grep"]).call("grep", {"pattern": "a+", "limit": 10**9})
    shown = result.content.count("|aaa")
    assert shown == result.next["arguments"]["offset"] > 100
    assert shown <= len(result.data["matches"]) < 5 * shown
    assert result.data["total_lines"] == 20_000


@pytest.mark.full
@pytest.mark.parametrize("context", [0, 20])
@pytest.mark.parametrize("line_numbers", [True, False])
def test_regression_a_page_of_many_short_lines_is_rendered_only_a_few_times(
    ws, root, monkeypatch, context, line_numbers
):
    put(root, {"f": "ab cd ef gh\n" * 10_000})
    numbered, rendered = grep_text._numbered_matches, []

    def counted(matches, *more, numbers):
        rendered.extend(matches)
        return numbered(matches, *more, numbers=numbers)

    monkeypatch.setattr(grep_text, "_numbered_matches", counted)
    shown = kit.grep(ws, "a", limit=10**9, context=context, line_numbers=line_numbers).next["arguments"][
        "offset"
    ]
    assert len(rendered) < 10_000 + 16 * shown
    few = kit.grep(ws, "a", limit=shown + 1, line_numbers=line_numbers).next
    assert few["arguments"]["offset"] >= shown  # as many lines as fit are shown
