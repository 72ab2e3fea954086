"""`grep` as its callers see it: pages, totals, modes, and what is left out."""

import json
import os
import threading
import time

import pytest

from agentfs import Workspace
from agentfs.errors import AgentFSError
from agentfs.fs import Root
from agentfs.limits import Limits
from agentfs.policy import Policy
from agentfs.search.grep_text import grep_files
from agentfs.search.options import GrepOptions
from tests import kit
from tests.search.contexts import context_of


@pytest.fixture
def tree(tmp_path):
    def make(files):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path

    return make


@pytest.fixture
def search(tmp_path):
    root = Root(tmp_path, Policy())

    def run(pattern, limits=None, **kwargs):
        return grep_files(context_of(root, limits or Limits()), GrepOptions(pattern, **kwargs))

    yield run
    root.close()


def places(result):
    return [(match.path, match.line, match.text) for match in result.matches]


def test_a_match_has_its_place_text_and_spans(tree, search):
    tree({"a/b.py": "x = 1\nfoo = foo\n"})
    result = search("foo", context=0)
    assert places(result) == [("a/b.py", 2, "foo = foo")]
    assert result.matches[0].spans == ((0, 3), (6, 9))
    assert (result.total_matches, result.total_lines, result.total_files) == (2, 1, 1)
    assert result.exact
    assert result.next is None
    assert result.text == "a/b.py\n2|foo = foo\n[2 matches on 1 line in 1 file]"


def test_matches_come_in_the_order_of_path_parts(tree, search):
    names = ["a.py", "a/z.py", "a-b/c.py", "b.py", "B.py", "a/b/c.py", "zz"]
    tree(dict.fromkeys(names, "hit\n"))
    assert [match.path for match in search("hit").matches] == sorted(names, key=lambda name: name.split("/"))


def test_pages_put_together_are_the_whole_and_next_is_the_call_for_each(tree, search):
    tree({f"d{n}/f.txt": "hit\n" * n for n in range(1, 8)})
    whole = places(search("hit", limit=1000))
    assert len(whole) == 28
    pages, arguments = [], {"pattern": "hit", "limit": 5, "offset": 0}
    while True:
        page = search(**arguments)
        assert (page.total_lines, page.total_files) == (28, 7)
        assert page.truncated == (page.next is not None)
        pages += places(page)
        if page.next is None:
            break
        assert page.next["name"] == "grep"
        assert f'grep(pattern="hit", limit=5, offset={page.next["arguments"]["offset"]})' in page.text
        arguments = page.next["arguments"]
    assert pages == whole


def test_next_repeats_every_argument_that_is_not_the_default(tree, search):
    tree({"a.py": "Hit\n" * 9})
    arguments = {"path": ".", "glob": ["*.py"], "type": "py", "ignore_case": True, "context": 0, "limit": 2}
    following = search("hit", include_ignored=True, offset=2, **arguments).next
    assert following == {
        "name": "grep",
        "arguments": {
            "pattern": "hit",
            "glob": ["*.py"],
            "type": "py",
            "ignore_case": True,
            "context": 0,
            "limit": 2,
            "include_ignored": True,
            "offset": 4,
        },
    }


@pytest.mark.parametrize(("mode", "text"), [
    ("files_with_matches", "a\nb\n[4 matches on 3 lines in 2 files]"),
    ("count", "a: 1 (2 matches)\nb: 2\n[4 matches on 3 lines in 2 files]"),
    ("summary", "a: 1 (2 matches)\n  1|hit hit\nb: 2\n  1|hit\n  2|hit\n[4 matches on 3 lines in 2 files]"),
    ("total", "4 matches on 3 lines in 2 files."),
])  # fmt: skip
def test_the_text_of_each_mode(tree, search, mode, text):
    tree({"a": "hit hit\n", "b": "hit\nhit\n", "c": "nothing\n"})
    assert search("hit", output_mode=mode).text == text


def test_the_limit_counts_files_if_files_are_the_entries(tree, search):
    tree({f"{n}": "hit\n" * 50 for n in range(5)})
    result = search("hit", output_mode="count", limit=2, offset=1)
    assert list(result.counts) == ["1", "2"]
    assert result.counts["1"].lines == 50
    assert result.next["arguments"]["offset"] == 3
    assert (result.total_files, result.total_lines) == (5, 250)
    assert "shown: 2-3" in result.text


def test_context_is_merged_and_no_line_is_shown_twice(tree, search):
    tree({"f": "".join(f"{n}{' hit' if n in (3, 5, 12) else ''}\n" for n in range(1, 15))})
    result = search("hit", context=2)
    assert result.text.splitlines() == [
        "f",
        " 1-1",
        " 2-2",
        " 3|3 hit",
        " 4-4",
        " 5|5 hit",
        " 6-6",
        " 7-7",
        "--",
        "10-10",
        "11-11",
        "12|12 hit",
        "13-13",
        "14-14",
    ]


@pytest.mark.parametrize("hits", [1, 2, 3, 4])
def test_regression_a_search_shows_lines_around_its_hits_only_if_asked(tree, search, hits):
    lines = [f"{n}\n" for n in range(1, 401)]
    for n in range(hits):
        lines[50 + 100 * n] = "hit\n"
    tree({"f": "".join(lines)})
    assert [line.strip() for line in search("hit").text.split("\n")] == [
        "f",
        *(f"{51 + 100 * n}|hit" for n in range(hits)),
    ]
    assert all(not m.before and not m.after for m in search("hit").matches)
    assert [(len(m.before), len(m.after)) for m in search("hit", context=3).matches] == [(3, 3)] * hits


def test_lines_before_and_after_are_asked_for_apart(tree, search):
    tree({"f": "".join(f"{n}\n" for n in range(1, 60))})

    def around(**asked):
        match = search("^30$", **asked).matches[0]
        return len(match.before), len(match.after)

    assert around(before=1) == (1, 0)
    assert around(after=2) == (0, 2)
    assert around(context=2, after=0) == (2, 0)
    assert around(before=0, after=0) == (0, 0), "none unasked"
    assert around(context=999) == (20, 20)
    assert "context is at most 20" in search("5", after=99).text
    with pytest.raises(AgentFSError, match="`after` must be 0 or more"):
        search("5", after=-1)
    call = search("[35]", limit=1, before=1, line_numbers=False).next["arguments"]
    assert call == {"pattern": "[35]", "limit": 1, "before": 1, "line_numbers": False, "offset": 1}


def test_numbers_can_be_left_out_of_the_text(tree, search):
    tree({"f": "a\nhit\nb\nc\nhit\n"})
    assert search("hit", context=1, line_numbers=False).text.splitlines() == [
        "f", "a", "hit", "b", "c", "hit",
    ]  # fmt: skip


def test_a_long_line_is_cut_around_the_match_and_says_by_how_much(tree, search):
    tree({"min.js": "a" * 300_000 + "needle" + "b" * 300_000})
    match = search("needle").matches[0]
    ((start, end),) = match.spans
    assert match.text[start:end] == "needle"
    assert len(match.text) < 450
    assert match.text.startswith("⟦+299900 characters⟧")
    assert match.text.endswith("⟦+299706 characters⟧")


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"hit\x00", "binary"), (b"\x00\x01hit", "binary"), (b"\xff\xfeh\x00i\x00t\x00x", "undecodable")],
)
def test_files_that_are_not_text_are_counted_and_not_searched(tree, search, content, reason):
    tree({"x": content, "y": "other\n"})
    result = search("hit", Limits(file_bytes=1_000_000))
    assert getattr(result.skipped, reason) == 1
    assert result.searched_files == 1
    assert "No matches" in result.text
    assert f"1 {reason.replace('_', ' ')}" in result.text


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_the_largest_file_is_searched_to_its_last_byte(tree, search, extra):
    tree({"x": b"a" * (1_000_000 + extra - 3) + b"hit"})
    assert search("hit", Limits(file_bytes=1_000_000)).total_matches == 1
    result = search("hit", max_filesize=1_000_000)
    assert result.total_matches == (0 if extra > 0 else 1)
    assert result.skipped.too_large == (1 if extra > 0 else 0)


@pytest.mark.parametrize(("content", "pattern", "line", "text"), [
    ("größe\n".encode("utf-16"), "größe", 1, "größe"),
    (b"\xfe\xff" + "a\r\nhit é\r\n".encode("utf-16-be"), "hit .$", 2, "hit é"),
    ("a\nhit\n".encode("utf-32"), "^hit$", 2, "hit"),
    (b"\xef\xbb\xbfhit\n", "^hit$", 1, "hit"),
    ("Stra\xdfe caf\xe9\n".encode("latin-1"), r"caf\w$", 1, "Straße café"),
    ("Stra\xdfe caf\xe9\n".encode("latin-1"), "é", 1, "Straße café"),
    (b"a\rhit\rb\r", "^hit$", 2, "hit"),
    (b"a\rb\nhit\r\n", "^hit$", 2, "hit"),
    (b"a\x0chit\x1c\nb", "^a.hit.$", 1, "a\x0chit\x1c"),
    ("a\u2028hit\n".encode(), "^a.hit$", 1, "a\u2028hit"),
    ("日本\n".encode(), "本$", 1, "日本"),
    ("KELVIN \u212a\n".encode(), "k$", 1, "KELVIN \u212a"),
])  # fmt: skip
def test_text_is_searched_in_its_own_encoding(tree, search, content, pattern, line, text):
    tree({"f": content})
    result = search(pattern, ignore_case=pattern == "k$", context=0)
    assert places(result) == [("f", line, text)]


def test_controls_in_lines_and_names_cannot_forge_output(tree, search):
    tree({"a\n[no matches]": "hit \x1b[2J\u202e\r x\n"})
    shown = search("hit", context=0).text.splitlines()
    assert shown[:2] == ["a⟦U+000A⟧[no matches]", "1|hit ⟦U+001B⟧[2J⟦U+202E⟧⟦U+000D⟧ x"]


def test_a_named_path_is_searched_even_if_it_is_ignored_or_hidden(tree, search):
    tree({".gitignore": "build/\n*.log\n", "build/x.txt": "hit\n", "a.log": "hit\n", ".env.d/y": "hit\n"})
    everywhere = search("hit")
    assert everywhere.total_files == 0
    assert everywhere.skipped.ignored == 2
    assert ".gitignore:1" in everywhere.text
    assert "include_ignored" in everywhere.text
    assert [m.path for m in search("hit", path="build").matches] == ["build/x.txt"]
    assert [m.path for m in search("hit", path="build/x.txt").matches] == ["build/x.txt"]
    assert [m.path for m in search("hit", path="a.log").matches] == ["a.log"]
    assert [m.path for m in search("hit", path=".env.d").matches] == [".env.d/y"]
    assert search("hit", include_ignored=True).total_files == 3


def test_globs_and_types_choose_files(tree, search):
    names = ["a.py", "src/b.py", "src/c.js", "src/deep/d.ts", "Makefile", ".github/w.yml"]
    tree(dict.fromkeys(names, "hit\n"))

    def files(**kwargs):
        return [m.path for m in search("hit", **kwargs).matches]

    assert files(glob="*.py") == ["a.py", "src/b.py"]
    assert files(glob="src/*") == ["src/b.py", "src/c.js"]
    assert files(glob=["*.js", "*.ts"]) == ["src/c.js", "src/deep/d.ts"]
    assert files(glob=["*.py", "!a.py"]) == ["src/b.py"]
    assert files(type="py") == ["a.py", "src/b.py"]
    assert files(type=["js", "make"]) == ["Makefile", "src/c.js"]
    assert files(type="py", glob="src/**") == ["src/b.py"]
    assert files(path="src", glob="/b.py") == ["src/b.py"]
    assert files(glob=".github/**") == [".github/w.yml"]


@pytest.mark.parametrize(("types", "files"), [
    ("!py", ["a.js", "a.txt"]),
    (["!py", "!js"], ["a.txt"]),
    (["py", "!py"], []),
    (["!py", "py"], ["a.py", "a.pyi"]),
    (["js", "!py"], ["a.js"]),
])  # fmt: skip
def test_a_type_with_an_exclamation_mark_excludes(tree, search, types, files):
    """As ripgrep's `-T`: of several types that a file is of, the last decides."""
    tree(dict.fromkeys(["a.js", "a.py", "a.pyi", "a.txt", "a.py.d/x"], "hit\n"))
    assert [m.path for m in search("hit", type=types, glob="a.*").matches] == files


def test_a_line_is_matched_alone_unless_multiline(tree, search):
    tree({"f": "foo\r\nbar\r\nfoo bar\r\n"})
    assert search(r"foo\s+bar", output_mode="total").total_lines == 1
    assert search("foo$", context=0).total_lines == 1
    result = search(r"foo.bar$", multiline=True, context=0)
    assert places(result) == [("f", 1, "foo\nbar"), ("f", 3, "foo bar")]
    assert (result.total_matches, result.total_lines) == (2, 3)
    assert result.text.splitlines()[:4] == ["f", "1|foo", "2|bar", "3|foo bar"]


def test_matches_over_lines_that_touch_are_one_block(tree, search):
    tree({"f": "a1\nb1 a2\nb2\nx\na3\nb3"})
    result = search(r"a\d\nb\d", multiline=True, context=0)
    assert places(result) == [("f", 1, "a1\nb1 a2\nb2"), ("f", 5, "a3\nb3")]
    assert result.matches[0].spans == ((0, 5), (6, 11))


def test_an_empty_match_after_the_last_line_does_not_count(tree, search):
    tree({"f": "a\n\n", "empty": ""})
    assert places(search("^$", context=0)) == [("f", 2, "")]
    assert search("x*", output_mode="total").total_lines == 2
    assert search("^", output_mode="total", multiline=True).total_lines == 2


def test_a_hostile_pattern_ends_in_time_with_the_matches_so_far(tree, search):
    tree({"a": "aab\n", "b": "a" * 60 + "b\n", "c": "aab\n"})
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.005):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.monotonic()
    result = search("^(a|aa)+(?!.)|aab$", Limits(timeout=0.2), context=0)
    took = time.monotonic() - began
    stop.set()
    thread.join()
    assert 0.15 <= took < 10  # without a deadline it takes years; how close it comes is for a quiet machine
    assert places(result) == [("a", 1, "aab")]
    assert not result.exact
    assert result.skipped.reached == "timeout"
    assert "at least 1 matching line in 1 file" in result.text
    assert "searching b" in result.text
    assert len(ticks) > 5  # other threads ran


@pytest.mark.parametrize(("kwargs", "code"), [
    ({"pattern": ""}, "invalid_pattern"),
    ({"pattern": "("}, "invalid_pattern"),
    ({"pattern": "a", "glob": "[a"}, "invalid_pattern"),
    ({"pattern": "a", "type": "pyhton"}, "invalid_argument"),
    ({"pattern": "a", "output_mode": "lines"}, "invalid_argument"),
    ({"pattern": "a", "limit": 0}, "invalid_argument"),
    ({"pattern": "a", "offset": -1}, "invalid_argument"),
    ({"pattern": "a", "context": -1}, "invalid_argument"),
    ({"pattern": "a", "offset": 5}, "past_end"),
    ({"pattern": "a", "path": "nope"}, "not_found"),
    ({"pattern": "a", "path": "../x"}, "outside_workspace"),
    ({"pattern": "a", "path": "/etc"}, "outside_workspace"),
    ({"pattern": "a", "path": "a\0"}, "invalid_path"),
    ({"pattern": "a", "path": "f/x"}, "not_a_directory"),
    ({"pattern": "a", "path": "pipe"}, "not_regular"),
])  # fmt: skip
def test_each_mistake_in_a_call_has_its_code(tree, tmp_path, kwargs, code):
    tree({"f": "a\n"})
    os.mkfifo(tmp_path / "pipe")
    with Workspace(tmp_path) as ws, pytest.raises(AgentFSError) as caught:
        ws.grep(**kwargs)
    assert caught.value.code == code


def test_an_unknown_type_names_the_nearest():
    from agentfs.tree.file_types import compile_types

    with pytest.raises(AgentFSError, match="pyhton") as caught:
        compile_types(["pyhton"])
    assert "python" in caught.value.details["nearest"]


def test_links_and_special_files_are_left_out_and_counted(tree, search, tmp_path):
    tree({"a": "hit\n"})
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "out").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    result = search("hit|root")
    assert [m.path for m in result.matches] == ["a"]
    assert (result.skipped.symlink, result.skipped.special) == (2, 1)
    assert [m.path for m in search("hit", path="link").matches] == ["link"]


def test_no_descriptor_is_left_open(tree, search):
    tree({f"d{n}/f": "hit\n" for n in range(20)})
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    search("hit")
    search("^(a|aa)+(?!.)", Limits(timeout=0.001))
    assert before == (len(os.listdir("/proc/self/fd")) if before else 0)


MODES = ["content", "files_with_matches", "count", "summary", "total"]


@pytest.mark.parametrize("watch", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_a_file_over_the_limit_for_edits_is_searched(tree, mode, watch):
    top = tree({"large": "needle\n" * 200, "small": "needle\n"})
    (top / "link").symlink_to("large")
    with Workspace(top, limits=Limits(file_bytes=1000), watch=watch) as ws:
        for path, more in [
            *((path, {}) for path in ("large", "./large", ["large"], "link")),
            *(("large", {"sort": sort}) for sort in ("modified", "size")),
            *(("large", more) for more in ({"encoding": "latin-1"}, {"glob": "*"}, {"limit": 1})),
            (".", {"files": ["large"]}),
        ]:
            found = kit.grep(ws, "needle", path, output_mode=mode, **more)
            assert (found.total_matches, found.total_files, found.searched_files) == (200, 1, 1)
        assert ws.grep("needle", output_mode=mode).total_matches == 201
        left_out = kit.grep(ws, "needle", "large", output_mode=mode, max_filesize=5)
        assert left_out.skipped.too_large == 1, "the caller asked for that"
        assert kit.grep(ws, "needle", "large", output_mode=mode, max_filesize="1M").total_matches == 200


@pytest.mark.parametrize("watch", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_a_search_that_leaves_out_a_large_file_says_so_on_every_result(tree, mode, watch):
    top = tree({"large": "needle\n" * 200, "small": "needle\n", ".hidden": ""})
    with Workspace(top, limits=Limits(file_bytes=1000), watch=watch) as ws:
        for pattern in ("needle", "needle", "nothing", "nothing", "needle"):
            for more in ({}, {"path": ["large", "small"]}):
                for size in (500, 1200):
                    found = kit.grep(ws, pattern, output_mode=mode, max_filesize=size, **more)
                    assert found.skipped.too_large == 1
                    assert "1 too large" in found.text


def test_the_total_mode_counts_all_files_and_names_none(search, tree):
    """`counts` had the first files up to `Limits.grep_results`, and `truncated` was false."""
    tree({f"f{number}": "hit hit\n" for number in range(5)})
    result = search("hit", Limits(grep_results=2), output_mode="total")
    every = search("hit", output_mode="count", limit=1000)
    assert (result.counts, result.truncated, result.next) == ({}, False, None)
    totals = [(each.total_matches, each.total_lines, each.total_files) for each in (result, every)]
    assert totals[0] == totals[1]
    assert totals[0][2] == len(every.counts) > 2


def test_a_notebook_is_searched_as_it_is_read(tree):
    source = ["x = \"a 'quoted' word\"\n", 'say("hello")']
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": source}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    with Workspace(tree({"n.ipynb": json.dumps(notebook)})) as ws:
        (match,) = ws.grep('say("hello")', fixed_strings=True).matches
        assert ws.read("n.ipynb").content.splitlines()[match.line - 1] == match.text == 'say("hello")'


def test_only_a_line_of_more_than_the_most_characters_is_cut(tmp_path):
    (tmp_path / "a.txt").write_text(f"needle{'a' * 14}\nneedle{'b' * 15}\n")
    with Workspace(tmp_path, limits=Limits(grep_line_chars=20)) as ws:
        whole, cut = ws.grep("needle").matches
    assert whole.text == f"needle{'a' * 14}"
    assert whole.cut == (0, 0)
    assert cut.cut != (0, 0)
