"""The test of a file's bytes: it leaves out only files without a match, wherever they end in their buffer."""

import os
import tempfile
import time

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from agentfs import Workspace
from agentfs.fs import ReadBuffer
from agentfs.patterns.compile import compile_pattern
from agentfs.patterns.line_search import LineSearch
from agentfs.patterns.prefilter import OTHER_FORMS, Prefilter, decode_content

TEXTS = st.lists(st.sampled_from([b"a", b"b", b"ab", b"\n", "é".encode(), b"aab" * 7]), max_size=30).map(
    b"".join
)
LITERALS = st.lists(st.sampled_from(["a", "b", "ab" * 40]), min_size=1, max_size=5).map("".join)


@given(content=TEXTS, behind=TEXTS, literal=LITERALS)
@example(content=b"a", behind=b"abab", literal="ab")
@example(content=b"", behind=b"ab", literal="ab")
def test_a_file_may_match_when_its_bytes_have_the_literal(content, behind, literal):
    prefilter = Prefilter(compile_pattern(literal).plan)
    assert prefilter.may_match(bytearray(content + behind), len(content)) == (literal.encode() in content)


@given(
    pieces=st.lists(
        st.sampled_from([*"iIkKsS_f", "\u0130", "\u212a", "\u017f", "\u0307", "\udce2", "\udcc4", "x" * 70]),
        max_size=20,
    ),
    literal=st.text("iks_f", min_size=1, max_size=12),
)
@example(pieces=["\u0130", "f"], literal="if")
@example(pieces=["\udce2", "K", "I", "S", "S"], literal="kiss")
def test_a_file_may_match_when_its_bytes_have_the_literal_in_another_case(pieces, literal):
    content = "".join(pieces).encode("utf-8", "surrogateescape")
    pattern = compile_pattern(literal, ignore_case=True)
    text = decode_content(content)
    if text is not None and pattern.expression.search(text):
        assert Prefilter(pattern.plan).may_match(bytearray(content), len(content))


def test_every_character_that_folds_to_an_ascii_letter_is_found():
    # The engine is the judge: asked for every character there is.
    everything = "".join(chr(code) for code in range(128, 0x110000) if not 0xD800 <= code < 0xE000)
    folded = set(regex.findall("[a-z]", everything, regex.I | regex.V0))
    for char in "abcdefghijklmnopqrstuvwxyz":
        prefilter = Prefilter(compile_pattern(f"x{char}y", ignore_case=True).plan)
        for extra in regex.findall(char, "".join(folded), regex.I | regex.V0):
            content = f"x{extra}y".encode()
            assert prefilter.may_match(content, len(content))
    assert folded <= set(OTHER_FORMS)
    lowered = {each: each.lower() for each in everything if each.lower() != each}
    assert {each for each, low in lowered.items() if any(map(str.isascii, low))} <= set(OTHER_FORMS)
    assert {each for each, low in lowered.items() if len(low) > 1} <= set(OTHER_FORMS)


@given(st.text("ab\n", max_size=40), st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=3))
def test_a_search_for_literals_yields_the_lines_that_contain_one(text, strings):
    expected = [line for line in text.split("\n") if any(string in line for string in strings)]
    search = LineSearch(compile_pattern("|".join(strings)), time.monotonic() + 20)
    assert [text[hit.start : hit.end] for hit in search.hits(text)] == expected


@pytest.mark.parametrize("ignore_case", [False, True])
def test_a_match_after_a_late_nul_is_found(tmp_path, ignore_case):
    far = b"x" * 9000 + b"\0"
    for name, content in {"late": far + b" needle", "none": far, "binary": b"\0 needle"}.items():
        (tmp_path / name).write_bytes(content)
    with Workspace(tmp_path) as ws:
        found = ws.grep("needle", ignore_case=ignore_case)
    assert (list(found.counts), found.skipped.binary) == (["late"], 1)


def test_a_literal_is_found_in_the_buffer_after_it_has_grown():
    buffer = ReadBuffer(10**7)
    prefilter = Prefilter(compile_pattern("needle").plan)
    with tempfile.TemporaryFile() as file:
        for size in (10, 2**18 - 6, 2**18 - 5, 2**20, 3):
            file.seek(0)
            file.truncate()
            file.write(b"x" * size + b"needle")
            file.flush()
            assert prefilter.may_match(buffer.data, buffer.fill(file.fileno()))
            os.ftruncate(file.fileno(), size + 5)
            assert not prefilter.may_match(buffer.data, buffer.fill(file.fileno()))
