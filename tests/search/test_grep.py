"""`grep` as its callers see it: pages, totals, modes, encodings, and what is left out."""

import json
import os
import threading
import time

import pytest

from agentfs import Limits, Workspace
from tests import kit
from tests.kit import error_of, put

MODES = ["content", "files_with_matches", "count", "summary", "total"]


@pytest.fixture
def search(tmp_path):
    """Returns a function that searches a tree: its files, once, and then as `rg` does."""

    def search(pattern, tree=(), limits=None, **options):
        put(tmp_path, tree)
        with Workspace(tmp_path, limits=limits) as ws:
            return kit.grep(ws, pattern, **options)

    return search


def places(result):
    return [(match.path, match.line, match.text) for match in result.matches]


def shown(result):
    return [line.strip() for line in result.text.split("\n")]


def test_a_match_has_its_place_text_and_spans(search):
    result = search("foo", {"a/b.py": "x = 1\nfoo = foo\n"})
    assert places(result) == [("a/b.py", 2, "foo = foo")]
    assert result.matches[0].spans == ((0, 3), (6, 9))
    assert (result.total_matches, result.total_lines, result.total_files) == (2, 1, 1)
    assert (result.exact, result.next) == (True, None)
    assert result.text == "a/b.py\n2|foo = foo\n[2 matches on 1 line in 1 file]"


def test_matches_come_in_the_order_of_path_parts(search):
    names = ["a.py", "a/z.py", "a-b/c.py", "b.py", "B.py", "a/b/c.py", "zz"]
    result = search("hit", dict.fromkeys(names, "hit\n"))
    assert [match.path for match in result.matches] == sorted(names, key=lambda name: name.split("/"))


@pytest.mark.parametrize(("mode", "text"), [
    ("files_with_matches", "a\nb\n[4 matches on 3 lines in 2 files]"),
    ("count", "a: 1 (2 matches)\nb: 2\n[4 matches on 3 lines in 2 files]"),
    ("summary", "a: 1 (2 matches)\n  1|hit hit\nb: 2\n  1|hit\n  2|hit\n[4 matches on 3 lines in 2 files]"),
    ("total", "4 matches on 3 lines in 2 files."),
])  # fmt: skip
def test_the_text_of_each_mode(search, mode, text):
    tree = {"a": "hit hit\n", "b": "hit\nhit\n", "c": "nothing\n"}
    assert search("hit", tree, output_mode=mode).text == text


def test_the_limit_counts_files_if_files_are_the_entries(search):
    tree = {f"{n}": "hit\n" * 50 for n in range(5)}
    result = search("hit", tree, output_mode="count", limit=2, offset=1)
    assert list(result.counts) == ["1", "2"]
    assert result.counts["1"].lines == 50
    assert result.next["arguments"]["offset"] == 3
    assert (result.total_files, result.total_lines) == (5, 250)
    assert "shown: 2-3" in result.text


def test_the_total_mode_counts_all_files_and_names_none(search):
    """`counts` had the first files up to `Limits.grep_results`, and `truncated` was false."""
    tree = {f"f{number}": "hit hit\n" for number in range(5)}
    result = search("hit", tree, Limits(grep_results=2), output_mode="total")
    every = search("hit", output_mode="count", limit=1000)
    assert (result.counts, result.truncated, result.next) == ({}, False, None)
    totals = [(each.total_matches, each.total_lines, each.total_files) for each in (result, every)]
    assert totals[0] == totals[1] == (10, 5, len(every.counts))


def test_context_is_merged_and_no_line_is_shown_twice(search):
    tree = {"f": "".join(f"{n}{' hit' if n in (3, 5, 12) else ''}\n" for n in range(1, 15))}
    text = search("hit", tree, context=2).text.split("\n")
    assert text[:9] == ["f", " 1-1", " 2-2", " 3|3 hit", " 4-4", " 5|5 hit", " 6-6", " 7-7", "--"]
    assert text[9:] == ["10-10", "11-11", "12|12 hit", "13-13", "14-14"]
    numberless = [line.partition("-" if "hit" not in line else "|")[2] for line in text[1:]]
    assert search("hit", context=2, line_numbers=False).text.split("\n")[1:8] == numberless[:7]


@pytest.mark.parametrize("hits", [1, 2, 3, 4])
def test_regression_a_search_shows_lines_around_its_hits_only_if_asked(search, hits):
    lines = [f"{n}\n" for n in range(1, 401)]
    for n in range(hits):
        lines[50 + 100 * n] = "hit\n"
    found = search("hit", {"f": "".join(lines)})
    assert shown(found) == ["f", *(f"{51 + 100 * n}|hit" for n in range(hits))]
    assert all(not m.before and not m.after for m in found.matches)
    assert [(len(m.before), len(m.after)) for m in search("hit", context=3).matches] == [(3, 3)] * hits


@pytest.mark.parametrize(("asked", "before", "after"), [
    ({"before": 1}, 1, 0), ({"after": 2}, 0, 2), ({"context": 2, "after": 0}, 2, 0),
    ({"before": 0, "after": 0}, 0, 0), ({"context": 999}, 20, 20),
])  # fmt: skip
def test_lines_before_and_after_are_asked_for_apart(search, asked, before, after):
    tree = {"f": "".join(f"{n}\n" for n in range(1, 60))}
    match = search("^30$", tree, **asked).matches[0]
    assert (len(match.before), len(match.after)) == (before, after)
    assert "context is at most 20" in search("5", after=99).text
    assert "`after` must be 0 or more" in str(error_of(search, "5", after=-1))
    call = search("[35]", limit=1, before=1, line_numbers=False).next["arguments"]
    assert call == {"pattern": "[35]", "limit": 1, "before": 1, "line_numbers": False, "offset": 1}


def test_a_long_line_is_cut_around_the_match_and_says_by_how_much(search, tmp_path):
    match = search("needle", {"min.js": "a" * 300_000 + "needle" + "b" * 300_000}).matches[0]
    ((start, end),) = match.spans
    assert match.text[start:end] == "needle"
    assert len(match.text) < 450
    assert match.text.startswith("⟦+299900 characters⟧")
    assert match.text.endswith("⟦+299706 characters⟧")
    lines = {"min.js": f"needle{'a' * 14}\nneedle{'b' * 15}\n"}
    whole, cut = search("needle", lines, Limits(grep_line_chars=20)).matches
    assert (whole.text, whole.cut) == (f"needle{'a' * 14}", (0, 0))
    assert cut.cut != (0, 0)


@pytest.mark.parametrize(("content", "reason"), [
    (b"hit\x00", "binary"), (b"\x00\x01hit", "binary"), (b"\xff\xfeh\x00i\x00t\x00x", "undecodable"),
])  # fmt: skip
def test_files_that_are_not_text_are_counted_and_not_searched(search, content, reason):
    result = search("hit", {"x": content, "y": "other\n"})
    assert (getattr(result.skipped, reason), result.searched_files) == (1, 1)
    assert "No matches" in result.text
    assert f"1 {reason}" in result.text


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_the_largest_file_is_searched_to_its_last_byte(search, extra):
    tree = {"x": b"a" * (1_000_000 + extra - 3) + b"hit"}
    assert search("hit", tree, Limits(file_bytes=1_000_000)).total_matches == 1
    result = search("hit", max_filesize=1_000_000)
    assert (result.total_matches, result.skipped.too_large) == ((0, 1) if extra > 0 else (1, 0))


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
def test_text_is_searched_in_its_own_encoding(search, content, pattern, line, text):
    assert places(search(pattern, {"f": content}, ignore_case=pattern == "k$")) == [("f", line, text)]


def test_regression_grep_matches_the_first_line_that_read_shows_of_a_mark_without_utf_8(search, ws):
    (found,) = search("^foo", {"e.txt": b"\xef\xbb\xbffoo \xe9\nfoo\n"}).matches
    assert ws.read("e.txt").content.startswith("ï»¿foo é\n")
    assert found.line == 2
    assert [(m.line, m.text, m.spans) for m in search("foo").matches] == [
        (1, "ï»¿foo é", ((3, 6),)), (2, "foo", ((0, 3),)),
    ]  # fmt: skip
    assert [match.line for match in search("^ï»¿foo").matches] == [1]
    found = search("^foo", {"e.txt": b"\xef\xbb\xbffoo \xc3\xa9\nfoo\n"})
    assert [match.line for match in found.matches] == [1, 2]


def test_controls_in_lines_and_names_cannot_forge_output(search):
    text = search("hit", {"a\n[no matches]": "hit \x1b[2J\u202e\r x\n"}).text.splitlines()
    assert text[:2] == ["a⟦U+000A⟧[no matches]", "1|hit ⟦U+001B⟧[2J⟦U+202E⟧⟦U+000D⟧ x"]


def test_a_named_path_is_searched_even_if_it_is_ignored_or_hidden(search):
    tree = {".gitignore": "build/\n*.log\n", "build/x.txt": "hit\n", "a.log": "hit\n", ".env.d/y": "hit\n"}
    everywhere = search("hit", tree)
    assert (everywhere.total_files, everywhere.skipped.ignored) == (0, 2)
    assert ".gitignore:1" in everywhere.text
    assert "include_ignored" in everywhere.text
    for path, found in (
        ("build", "build/x.txt"), ("build/x.txt", "build/x.txt"), ("a.log", "a.log"), (".env.d", ".env.d/y"),
    ):  # fmt: skip
        assert [m.path for m in search("hit", path=path).matches] == [found]
    assert search("hit", include_ignored=True).total_files == 3


NAMES = ["a.py", "src/b.py", "src/c.js", "src/deep/d.ts", "Makefile", ".github/w.yml"]
TYPED = ["a.js", "a.py", "a.pyi", "a.txt", "a.py.d/x"]


@pytest.mark.parametrize(("names", "more", "files"), [
    *((NAMES, more, files) for more, files in (
        ({"glob": "*.py"}, ["a.py", "src/b.py"]), ({"glob": "src/*"}, ["src/b.py", "src/c.js"]),
        ({"glob": ["*.js", "*.ts"]}, ["src/c.js", "src/deep/d.ts"]),
        ({"glob": ["*.py", "!a.py"]}, ["src/b.py"]), ({"type": "py"}, ["a.py", "src/b.py"]),
        ({"type": ["js", "make"]}, ["Makefile", "src/c.js"]),
        ({"type": "py", "glob": "src/**"}, ["src/b.py"]), ({"path": "src", "glob": "/b.py"}, ["src/b.py"]),
        ({"glob": ".github/**"}, [".github/w.yml"]))),
    # As ripgrep's `-T`: of several types that a file is of, the last decides.
    *((TYPED, {"glob": "a.*", "type": types}, files) for types, files in (
        ("!py", ["a.js", "a.txt"]), (["!py", "!js"], ["a.txt"]), (["py", "!py"], []),
        (["!py", "py"], ["a.py", "a.pyi"]), (["js", "!py"], ["a.js"]))),
])  # fmt: skip
def test_globs_and_types_choose_files(search, names, more, files):
    assert [m.path for m in search("hit", dict.fromkeys(names, "hit\n"), **more).matches] == files


def test_a_line_is_matched_alone_unless_multiline(search):
    assert search(r"foo\s+bar", {"f": "foo\r\nbar\r\nfoo bar\r\n"}, output_mode="total").total_lines == 1
    assert search("foo$").total_lines == 1
    result = search(r"foo.bar$", multiline=True)
    assert places(result) == [("f", 1, "foo\nbar"), ("f", 3, "foo bar")]
    assert (result.total_matches, result.total_lines) == (2, 3)
    assert result.text.splitlines()[:4] == ["f", "1|foo", "2|bar", "3|foo bar"]


def test_matches_over_lines_that_touch_are_one_block(search):
    result = search(r"a\d\nb\d", {"f": "a1\nb1 a2\nb2\nx\na3\nb3"}, multiline=True)
    assert places(result) == [("f", 1, "a1\nb1 a2\nb2"), ("f", 5, "a3\nb3")]
    assert result.matches[0].spans == ((0, 5), (6, 11))


def test_an_empty_match_after_the_last_line_does_not_count(search):
    assert places(search("^$", {"f": "a\n\n", "empty": ""})) == [("f", 2, "")]
    assert search("x*", output_mode="total").total_lines == 2
    assert search("^", output_mode="total", multiline=True).total_lines == 2


def test_a_hostile_pattern_ends_in_time_with_the_matches_so_far(search):
    search("warm", {"a": "aab\n", "b": "a" * 60 + "b\n", "c": "aab\n"})
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.wait(0.005):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.monotonic()
    result = search("^(a|aa)+(?!.)|aab$", limits=Limits(timeout=0.2))
    took = time.monotonic() - began
    stop.set()
    thread.join()
    assert 0.15 <= took < 10  # without a deadline it takes years; how close it comes is for a quiet machine
    assert places(result) == [("a", 1, "aab")]
    assert (result.exact, result.skipped.reached) == (False, "timeout")
    assert "at least 1 matching line in 1 file" in result.text
    assert "searching b" in result.text
    assert len(ticks) > 5  # other threads ran


def test_an_unknown_type_names_the_nearest(ws):
    assert "python" in error_of(ws.grep, "a", type="pyhton").details["nearest"]


def test_links_and_special_files_are_left_out_and_counted(search, tmp_path):
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "out").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    result = search("hit|root", {"a": "hit\n"})
    assert [m.path for m in result.matches] == ["a"]
    assert (result.skipped.symlink, result.skipped.special) == (2, 1)
    assert [m.path for m in search("hit", path="link").matches] == ["link"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="it counts the descriptors of Linux")
def test_no_descriptor_is_left_open(tmp_path, ws):
    put(tmp_path, {f"d{n}/f": "hit\n" for n in range(20)})
    ws.grep("warm")
    before = len(os.listdir("/proc/self/fd"))
    ws.grep("hit")
    ws.grep("^(a|aa)+(?!.)", timeout=0.001)
    assert before == len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("watch", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_a_file_over_the_limit_for_edits_is_searched(tmp_path, mode, watch):
    put(tmp_path, {"large": "needle\n" * 200, "small": "needle\n"})
    (tmp_path / "link").symlink_to("large")
    with Workspace(tmp_path, limits=Limits(file_bytes=1000), watch=watch) as ws:
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
        for pattern in ("needle", "needle", "nothing", "nothing"):
            for more in ({}, {"path": ["large", "small"]}):
                found = kit.grep(ws, pattern, output_mode=mode, max_filesize=500, **more)
                assert (found.skipped.too_large, "1 too large" in found.text) == (1, True)


CELLS = [
    {"cell_type": "markdown", "source": ["# Größe"]},
    {"cell_type": "code", "source": ['say("hé")\n', "x\ty"], "outputs": [{"text": ["an output\n"]}]},
]


@pytest.mark.parametrize("watch", [False, True])
@pytest.mark.parametrize(("pattern", "line"), [
    ('"hé"', 4), ("x\\ty", 5), ("=== cell 2", 3), ("Größe", 2), ("an output", 6), ("cells", None),
    ("source", None),
])  # fmt: skip
def test_a_match_in_a_notebook_names_a_line_that_read_shows(tmp_path, watch, pattern, line):
    put(tmp_path, [f"f{number:02}.txt" for number in range(40)], "nothing\n")
    (tmp_path / "g.ipynb").write_text(json.dumps({"cells": CELLS}))
    with Workspace(tmp_path, watch=watch) as ws:
        for _ in range(3):
            found = ws.grep(pattern).matches
        assert [(match.path, match.line) for match in found] == ([] if line is None else [("g.ipynb", line)])
        for match in found:
            assert ws.read("g.ipynb", match.line, 1).content == match.text + "\n"


# Footers


@pytest.fixture
def partial(tmp_path, ws):
    names = (".hidden", "a.py", "b.py", "x.log", ".git/config", "src/c.py", "src/.d")
    put(tmp_path, {**dict.fromkeys(names, "value\n"), ".gitignore": "*.log\n", "bin.dat": b"\0"})
    return ws


def test_regression_every_answer_says_what_makes_it_incomplete(partial, tmp_path):
    put(tmp_path, [".env", "key.pem"], "value\n")
    (tmp_path / "large.py").write_bytes(b"value\n" + (b"x" * 99 + b"\n") * 110_000)
    (tmp_path / "wide.py").write_bytes("value\n".encode("utf-16") + b"\x00")
    (tmp_path / "link.py").symlink_to("a.py")
    begin = "left out: 4 hidden, 1 ignored by .gitignore:1 *.log (pass include_ignored=true), 1 protected by "
    for _ in range(2):  # each answer says it
        found = kit.grep(partial, "value", max_filesize="10M")
        assert f"{begin}the policy, 1 too large, 1 undecodable, 1 link" in found.text
    for toolset in (partial.tools(), partial.tools(["grep"]), partial.tools()):
        content = toolset.call("grep", {"pattern": "value"}).content
        assert content.endswith("1 protected by the policy, 1 undecodable, 1 link]")
        assert "4 hidden" in content


def test_a_search_that_only_has_room_for_its_totals_still_says_what_it_left_out(search):
    tree = {"a.py": "value " * 1000, "key.pem": "value\n"}
    result = search("value", tree, Limits(output_tokens=30, grep_line_chars=10_000))
    assert result.text == "1000 matches on 1 line in 1 file.\n[left out: 1 protected by the policy]"


def test_answers_report_all_that_was_left_out_if_nothing_is_found(partial):
    for _ in range(2):
        text = partial.grep("no such text").text  # a short search looked there too
        rest = "left out: 3 hidden, 1 ignored by .gitignore:1 *.log, 1 version control directory, 1 binary"
        assert rest in text
        assert "1 version control directory" in partial.glob("*.rs").text
    found = partial.grep("value")
    assert (found.skipped.vcs, found.skipped.binary) == (1, 1)
    assert "version control" not in found.text
    assert "binary" not in found.text


def test_few_matches_that_are_all_shown_are_not_counted(partial):
    assert partial.grep("value", "a.py").text == "a.py\n1|value"
    assert "[2 matches on 1 line in 1 file]" in partial.grep("[ae]", "a.py").text
    assert "[3 matching lines in 3 files; shown: 1-1; more: " in partial.grep("value", limit=1).text
