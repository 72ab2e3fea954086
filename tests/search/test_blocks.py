"""Large files are searched in blocks, with the results of a search of the full text."""

import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentfs import Limits, Workspace
from agentfs.fs import file as pieces
from agentfs.fs import syscalls
from agentfs.search import grep, large, second_look
from tests import kit
from tests.conftest import part_or_all

MODES = ["content", "files_with_matches", "count", "summary", "total"]
FACTS = ("total_matches", "total_lines", "total_files", "exact", "searched_files", "truncated")


def small_blocks(patched, size):
    patched.setattr(pieces, "BLOCK", size)
    patched.setattr(large, "LONGEST_LINE", size)


def found(ws, pattern, file_bytes, **more):
    view = ws.view(limits=Limits(file_bytes=file_bytes, grep_line_chars=30, timeout=60))
    result = kit.grep(view, pattern, "f", **more)
    facts = {name: getattr(result, name) for name in FACTS}
    matches = [(m.path, m.line, m.text, m.spans, m.before, m.after, m.cut) for m in result.matches]
    return matches, facts, result


# Hypothesis draws a text at once, but each item of a list by itself. Long texts cross blocks.
LETTERS = "ab é\r\n"
LINES = st.one_of(st.text(LETTERS), st.text(LETTERS, min_size=400, max_size=1200)).map(
    lambda text: [line[:9] for line in text.split("\n")]
)
PATTERNS = ["a", "ab", "aa|b é", "^", "^a", "b$", "^a?$", "[ab]+", "é", r"\bab\b", "(?<=a)b", "a(?=b)", "A"]
PATTERNS += ["a{2}", ".*"]
OPTIONS = {
    "output_mode": st.sampled_from(MODES),
    "ignore_case": st.booleans(),
    "before": st.integers(0, 3),
    "after": st.integers(0, 3),
    "max_count": st.sampled_from([None, 1, 3]),
    "limit": st.sampled_from([None, 1, 2, 7]),
    "invert": st.booleans(),
}


def check_blocks(ws, pattern, size, **more):
    """Check that a search in small blocks gives what one of the full text gives."""
    with pytest.MonkeyPatch.context() as patched:
        small_blocks(patched, size)
        patched.setattr(second_look, "SECONDS", 60.0)
        expected = found(ws, pattern, 10**6, **more)
        in_blocks = found(ws, pattern, 1, **more)
    assert in_blocks[:2] == expected[:2]
    assert in_blocks[2].text == expected[2].text or not expected[2].total_lines


@part_or_all(10, full=3)
def test_a_file_in_blocks_gives_what_its_full_text_gives(ws, tmp_path, every):
    encodings = ["utf-8", "utf-8-sig", "utf-16", "latin-1"]

    @settings(max_examples=200 // every)
    @given(LINES, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.sampled_from(encodings), st.data())
    def law(lines, end, ended, encoding, data):
        text = end.join(lines) + end * ended
        text = text if "\n" in text else "\n" + text
        (tmp_path / "f").write_bytes((text + "é").encode(encoding))
        pattern = data.draw(st.sampled_from(PATTERNS))
        more = data.draw(st.fixed_dictionaries(OPTIONS))
        check_blocks(ws, pattern, data.draw(st.integers(200, 400)), **more)

    law()


LONG = st.text("abé NX", min_size=40, max_size=500).map(
    lambda text: text.replace("N", "needle").replace("X", "xx")
)


@part_or_all(10, full=3)
def test_a_line_longer_than_a_block_counts_once_and_is_shown_around_its_first_match(ws, tmp_path, every):
    patterns = ["needle", "NEEDLE", "a", "xx", r"\bb\b", "^a", "^first", "é|needle"]
    rest = st.lists(st.one_of(st.sampled_from(["a", "", "needle b"]), LONG), max_size=6)
    modes = st.sampled_from(["content", "count", "total"])

    @settings(max_examples=200 // every)
    @given(rest, st.sampled_from(patterns), st.booleans(), modes, st.integers(60, 200))
    def law(rest, pattern, ignore_case, mode, size):
        lines = ["first", *rest]
        (tmp_path / "f").write_text("\n".join(lines) + "\n")
        flags = (re.IGNORECASE if ignore_case else 0) | re.MULTILINE
        counts = [len(re.findall(pattern, line, flags)) for line in lines]
        least = [count if len(line) < 60 else bool(count) for line, count in zip(lines, counts, strict=True)]
        with pytest.MonkeyPatch.context() as patched:
            small_blocks(patched, size)
            matches, facts, _ = found(ws, pattern, 1, ignore_case=ignore_case, output_mode=mode)
        assert facts["total_lines"] == sum(map(bool, counts))
        assert sum(least) <= facts["total_matches"] <= sum(counts)
        if mode != "content":
            return
        assert [match[1] for match in matches] == [n for n, count in enumerate(counts, 1) if count]
        for _, number, text, spans, *_, cut in matches:
            line = lines[number - 1]
            start, end = spans[0]
            shift = cut[0] - text.index("⟧") - 1 if cut[0] else 0
            place = re.compile(pattern, flags).search(line)
            assert place is not None
            assert (place.start(), place.group()) == (start + shift, text[start:end])
            shown = len(re.sub(r"^⟦[^⟧]*⟧|⟦[^⟧]*⟧$", "", text))
            assert cut[0] + shown + cut[1] == len(line)
            assert text.endswith(f"⟦+{cut[1]} character{'s' * (cut[1] > 1)}⟧") or not cut[1]

    law()


@pytest.mark.parametrize("end", ["", "\n", "\nneedle needle", "\r\n\r\nneedle needle\r\n"])
def test_the_lines_around_a_long_line_are_searched_as_ever(ws, tmp_path, monkeypatch, end):
    small_blocks(monkeypatch, 100)
    line = "x" * 500 + " needle " + "y" * 300 + " needle " + "z" * 90
    (tmp_path / "f").write_bytes(b"needle a needle\n" + (line + end).encode())
    matches, facts, _ = found(ws, "needle", 1)
    lines = ["needle a needle", line, *end.splitlines()[1:]]
    assert (facts["exact"], facts["total_matches"]) == (False, 2 + 1 + end.count("needle"))
    assert [match[1] for match in matches] == [n for n, each in enumerate(lines, 1) if "needle" in each]
    assert sum(matches[1][-1]) == len(line) - 30  # `found` shows 30 characters of a line


def test_a_log_that_grows_faster_than_it_is_searched(tmp_path, monkeypatch):
    """Each read finds more of the file; the search ends at the size that the file had at its opening."""
    read_at = syscalls.read_at
    with open(tmp_path / "log", "w") as log, Workspace(tmp_path, limits=Limits(file_bytes=1000)) as ws:
        log.write("a line\n" * 1000 + "needle\n")
        log.flush()

        def read_and_grow(*arguments):
            log.write("another needle\n" * (pieces.BLOCK // 10))
            log.flush()
            return read_at(*arguments)

        monkeypatch.setattr(syscalls, "read_at", read_and_grow)
        result = ws.grep("^needle", "log")
        assert ([match.line for match in result.matches], result.exact) == ([1001], True)
        assert log.tell() > pieces.BLOCK


def test_a_search_of_a_large_file_keeps_its_deadline_and_says_so(tmp_path):
    with open(tmp_path / "sparse", "wb") as file:
        file.write(b"needle\n" * 2000)
        file.truncate(1 << 40)
    with Workspace(tmp_path) as ws:
        began = time.process_time()
        result = ws.grep("needle", "sparse", timeout=0.2, output_mode="total")
        assert time.process_time() - began < 4
        assert (result.total_matches, result.exact, result.skipped.reached) == (2000, False, "timeout")
        assert "it was searching sparse" in result.text


@pytest.mark.parametrize(("head", "rest", "pattern", "lines"), [
    (b"a\rb\r", b"needle\rc", "^needle$", 1),
    (b"text\n", b"caf\xe9 needle\n", "needle", 1),
    ("a\n".encode("utf-16"), "é needle\n".encode("utf-16-le"), "é needle", 1),
    (b"\0text\n", b"needle\n", "needle", 0),
    (b"\xe9 text\n", b"\xe9 needle\n", "é needle", 1),
], ids=["lone-cr", "stray-byte", "utf-16", "binary", "latin-1"])  # fmt: skip
def test_the_first_mib_decides_about_encoding_and_line_ends(ws, tmp_path, head, rest, pattern, lines):
    unit = head[-2:] if head.startswith(b"\xff\xfe") else head[-1:]
    fill = "x".encode("utf-16-le") * 99 if len(unit) == 2 else b"x" * 99
    (tmp_path / "f").write_bytes(head + (fill + unit) * (11 * 2**20 // (len(fill) + len(unit))) + rest)
    result = ws.grep(pattern)
    assert (result.total_lines, result.skipped.binary) == (lines, 1 - lines)


@part_or_all(10, full=3)
def test_line_18_parts_without_a_literal_are_left_out_and_nothing_else_changes(ws, tmp_path, every):
    words = ["x\n", "é\n", "ſK\n", "\r\n", "\n", "x" * 30, "needle", "NEEDLE\n", "a \u212aneedle b\n", "nee"]
    patterns = ["needle", r"^needle", "needle$", r"\bneedle", "kneedle|nees"]
    few = {name: OPTIONS[name] for name in ("output_mode", "ignore_case", "before", "after", "max_count")}

    @settings(max_examples=200 // every)
    @given(st.integers(0, 10**9), st.integers(50, 800), st.sampled_from(patterns), st.data())
    def law(seed, count, pattern, data):
        lines = "".join(random.Random(seed).choices(words, [40, 10, 2, 5, 5, 2, 1, 1, 1, 1], k=count)).split(
            "\n"
        )
        text = "\n".join(line[:60] for line in lines)
        encoding = data.draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
        stray = b"\xe9needle\n" if encoding == "utf-8" and data.draw(st.booleans()) else b""
        (tmp_path / "f").write_bytes(stray + ("\n" + text).encode(encoding, "replace"))
        more = data.draw(st.fixed_dictionaries(few))
        check_blocks(ws, pattern, data.draw(st.integers(300, 500)), **more)

    law()


def test_line_18_a_watched_workspace_keeps_a_large_file_and_leaves_it_out(tmp_path):
    line = b"a line of forty bytes that has nothing ..\n"
    for name in range(40):
        (tmp_path / f"{name}").write_bytes(line)
    (tmp_path / "large").write_bytes(line * (12 * 2**20 // len(line)) + b"needle\n")
    with Workspace(tmp_path, watch="calls") as ws, pytest.MonkeyPatch.context() as patched:
        for _ in range(3):
            assert ws.grep("needle").total_matches == 1
        assert ws.watch.text_bytes > 12 * 2**20
        patched.setattr(grep, "blocks_of", None)
        assert ws.grep("nowhere").searched_files == 41
        patched.undo()
        with open(tmp_path / "large", "ab") as file:
            file.write(b"nowhere\n")
        assert ws.grep("nowhere").total_matches == 1


@pytest.mark.parametrize(("content", "pattern", "more", "wanted"), [
    # The answer was "1 match", exact.
    (b"needle " * 1001 + b"x" * (12 * 2**20), "needle", {}, (1, False, 0, 0)),
    # It was "No matches", exact: a part of the line, or a window of the lines, shows no match.
    (b"x" * (12 * 2**20) + b" needle", r"\w+ needle", {}, (0, None, 1, 0)),
    (b"line\n" * (11 * 2**20 // 5), "line\nline", {"multiline": True}, (0, None, 0, 1)),
])  # fmt: skip
def test_regression_what_a_search_of_a_large_file_cannot_show_is_told(
    ws, tmp_path, content, pattern, more, wanted
):
    (tmp_path / "f").write_bytes(content + b"\n")
    result = ws.grep(pattern, **more)
    lines, exact, long_lines, too_large = wanted
    assert (result.total_lines, result.skipped.long_lines, result.skipped.too_large) == (
        lines, long_lines, too_large,
    )  # fmt: skip
    assert exact is None or result.exact is exact
    assert ("1 file with lines too long for the pattern" in result.text) is bool(long_lines)
    assert ("1 too large" in result.text) is bool(too_large)


def test_regression_a_large_file_is_searched_in_the_encoding_that_it_declares(ws, tmp_path):
    """`grep("€")` found a million lines of a file that `read` showed as unknown-8bit."""
    text = "# -*- coding: iso-8859-15 -*-\n" + "a line\n" * (12 * 2**20 // 7) + "5 €\n"
    (tmp_path / "f").write_bytes(text.encode("iso-8859-15"))
    assert ws.grep("€").total_lines == 1


@pytest.mark.parametrize("at", [50, 1_500_000, 2_900_000])
def test_the_characters_around_a_match_in_a_line_of_several_parts_are_counted(tmp_path, at):
    (tmp_path / "a").write_text(f"{'x' * at}needle{'y' * (3_000_000 - at - 6)}\n")
    with Workspace(tmp_path, limits=Limits(file_bytes=1_000_000)) as ws:
        [match] = ws.grep("needle").matches
    ahead = max(at - 100, 0)
    assert match.cut == (ahead, 3_000_000 - ahead - 400)
