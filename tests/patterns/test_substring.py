"""`strstr` in place of `find`: the same answers, wherever the text ends and whatever stands behind it."""

import os
import tempfile

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentfs.fs import ReadBuffer
from agentfs.patterns import substring
from agentfs.patterns.compile import compile_pattern
from agentfs.patterns.line_matches import lines_with
from agentfs.patterns.prefilter import Prefilter

PIECES = st.lists(st.sampled_from([b"a", b"b", b"ab", b"\n", b"\0", b"\xe9", b"aab" * 7]), max_size=30)
TEXTS = PIECES.map(b"".join)
STRINGS = st.lists(st.sampled_from([b"a", b"b", b"\n", b"\0", b"ab" * 40]), min_size=1, max_size=5).map(
    b"".join
)
LIBRARY = pytest.param(
    substring._strstr, marks=pytest.mark.skipif(not substring._strstr(), reason="no glibc")
)
WAYS = pytest.mark.parametrize("strstr", [LIBRARY, lambda: None], ids=["strstr", "find"])


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
@given(content=TEXTS, behind=TEXTS, string=STRINGS)
@example(content=b"a", behind=b"abab", string=b"ab")
@example(content=b"", behind=b"ab", string=b"ab")
def test_a_file_has_a_string_when_its_bytes_have_it(strstr, content, behind, string):
    buffer = loaded(content, content + behind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(substring, "_strstr", strstr)
        tests = [substring.has_string(buffer, string)]
        if b"\0" not in content:
            tests.append(substring.has_string_before_nul(buffer, string))
    assert [test(len(content)) for test in tests] == [string in content] * len(tests)


@WAYS
@given(text=TEXTS, string=STRINGS, start=st.integers(0, 200), padding=st.sampled_from([0, 5000]))
def test_the_finder_finds_what_find_finds(strstr, text, string, start, padding):
    text = b"x" * padding + text
    start = min(start + padding, len(text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(substring, "_strstr", strstr)
        find = substring.finder(text, (string,))
    assert find(string, start) == text.find(string, start)
    assert find(string, 0) == text.find(string)


@given(st.text("ab\n", max_size=40), st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=3))
def test_the_lines_with_a_string_are_those_that_have_one(text, strings):
    for padding in ("", "x\n" * 3000):
        whole = padding + text
        expected = [line for line in whole.split("\n") if any(string in line for string in strings)]
        of_text = lines_with(whole, tuple(strings), "\n")
        assert [whole[start:end] for start, end in of_text] == expected
        of_bytes = lines_with(whole.encode(), tuple(each.encode() for each in strings), b"\n")
        assert [whole[start:end] for start, end in of_bytes] == expected


@pytest.mark.parametrize("ignore_case", [False, True])
def test_a_match_behind_a_nul_far_into_a_text_is_found(ignore_case):
    pattern = compile_pattern("needle", ignore_case=ignore_case)
    for content, verdict in (
        (b"x" * 9000 + b"\0 needle", "may_match"),
        (b"x" * 9000 + b"\0", None),
        (b"\0 needle", "binary"),
    ):
        buffer = loaded(content)
        assert Prefilter(buffer).judge_of(pattern)(buffer.length) == verdict


def test_the_buffer_is_found_where_it_lies_after_it_has_grown():
    buffer = ReadBuffer(10**7)
    has = substring.has_string_before_nul(buffer, b"needle")
    with tempfile.TemporaryFile() as file:
        for size in (10, 2**18 - 6, 2**18 - 5, 2**20, 3):
            file.seek(0)
            file.truncate()
            file.write(b"x" * size + b"needle")
            file.flush()
            assert has(buffer.fill(file.fileno()))
            os.ftruncate(file.fileno(), size + 5)
            assert not has(buffer.fill(file.fileno()))
