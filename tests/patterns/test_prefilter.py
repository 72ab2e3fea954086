"""The test of a file's bytes: the same with stringzilla and without, wherever the file ends in its buffer."""

import contextlib
import os
import tempfile
import time
from unittest import mock

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agentfs.fs import ReadBuffer
from agentfs.patterns import literals
from agentfs.patterns.compile import compile_pattern
from agentfs.patterns.line_search import LineSearch
from agentfs.patterns.literals import Prefilter, decode_content, substring_finder

TEXTS = st.lists(
    st.sampled_from([b"a", b"b", b"ab", b"\n", b"\0", "é".encode(), b"aab" * 7]), max_size=30
).map(b"".join)
LITERALS = st.lists(st.sampled_from(["a", "b", "ab" * 40]), min_size=1, max_size=5).map("".join)
WAYS = pytest.mark.parametrize("installed", [True, False], ids=["stringzilla", "find"])


@contextlib.contextmanager
def library(installed):
    """Have stringzilla, or a platform without it."""
    with contextlib.nullcontext() if installed else mock.patch.object(literals, "stringzilla", None):
        yield


def loaded(content, before=b""):
    """Return a buffer that has the content where something longer stood before."""
    buffer = ReadBuffer(10**6)
    with tempfile.TemporaryFile() as file:
        for each in (before, content):
            file.seek(0)
            file.truncate()
            file.write(each)
            file.flush()
            assert buffer.fill(file.fileno()) == len(each)
    return buffer


@WAYS
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=TEXTS, behind=TEXTS, literal=LITERALS)
@example(content=b"a", behind=b"abab", literal="ab")
@example(content=b"", behind=b"ab", literal="ab")
def test_a_file_may_match_when_its_bytes_have_the_literal(installed, content, behind, literal):
    buffer = loaded(content, content + behind)
    with library(installed):
        verdict = Prefilter(compile_pattern(literal).plan).classify(buffer, len(content))
    expected = content if literal.encode() in content else None
    assert verdict == ("binary" if b"\0" in content else expected)


@WAYS
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pieces=st.lists(
        st.sampled_from([*"iIkKsS_f", "\u0130", "\u212a", "\u017f", "\u0307", "\udce2", "\udcc4", "x" * 70]),
        max_size=20,
    ),
    literal=st.text("iks_f", min_size=1, max_size=12),
)
@example(pieces=["\u0130", "f"], literal="if")
@example(pieces=["\udce2", "K", "I", "S", "S"], literal="kiss")
def test_a_file_may_match_when_its_bytes_have_the_literal_in_another_case(installed, pieces, literal):
    content = "".join(pieces).encode("utf-8", "surrogateescape")
    buffer, pattern = loaded(content), compile_pattern(literal, ignore_case=True)
    with library(installed):
        verdict = Prefilter(pattern.plan).classify(buffer, len(content))
    text = decode_content(content)
    if text is not None and pattern.expression.search(text):
        assert verdict == content


@pytest.mark.skipif(literals.stringzilla is None, reason="the hint needs stringzilla")
def test_a_part_of_a_literal_does_not_count_as_found_in_any_case():
    prefilter = Prefilter(compile_pattern("get_template_names").plan)
    for content in (b"template_names, get_template", b"GET_TEMPLATE_NAME", b""):
        assert prefilter.classify(loaded(content), len(content)) is None
    assert not prefilter.found_in_any_case
    content = b"template_names, GET_Template_Names"
    assert prefilter.classify(loaded(content), len(content)) is None
    assert prefilter.found_in_any_case


@WAYS
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS.map(bytes.decode), literal=LITERALS, start=st.integers(0, 200))
@example(text="é ab", literal="ab", start=0)
def test_the_finder_agrees_with_str_find(installed, text, literal, start):
    start = min(start, len(text))
    with library(installed):
        find = substring_finder(text, (literal,))
        assert find(text, literal, start) == text.find(literal, start)


@given(st.text("ab\n", max_size=40), st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=3))
def test_a_search_for_literals_yields_the_lines_that_contain_one(text, strings):
    expected = [line for line in text.split("\n") if any(string in line for string in strings)]
    search = LineSearch(compile_pattern("|".join(strings)), time.monotonic() + 20)
    assert [text[hit.start : hit.end] for hit in search.hits(text)] == expected


@pytest.mark.parametrize("ignore_case", [False, True])
def test_a_match_after_a_late_nul_is_found(ignore_case):
    pattern = compile_pattern("needle", ignore_case=ignore_case)
    far = b"x" * 9000 + b"\0"
    for content, verdict in ((far + b" needle", far + b" needle"), (far, None), (b"\0 needle", "binary")):
        buffer = loaded(content)
        assert Prefilter(pattern.plan).classify(buffer, buffer.length) == verdict


def test_a_literal_is_found_in_the_buffer_after_it_has_grown():
    buffer = ReadBuffer(10**7)
    test = Prefilter(compile_pattern("needle").plan)
    with tempfile.TemporaryFile() as file:
        for size in (10, 2**18 - 6, 2**18 - 5, 2**20, 3):
            file.seek(0)
            file.truncate()
            file.write(b"x" * size + b"needle")
            file.flush()
            assert test.classify(buffer, buffer.fill(file.fileno())) == b"x" * size + b"needle"
            os.ftruncate(file.fileno(), size + 5)
            assert test.classify(buffer, buffer.fill(file.fileno())) is None
