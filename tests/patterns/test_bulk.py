"""The count in many texts at once: the same as of each line alone, and in a bounded time."""

import itertools
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentfs.patterns.bulk import BulkCount
from agentfs.patterns.compile import compile_pattern
from agentfs.patterns.line_search import LineSearch
from agentfs.patterns.prefilter import Literals, plain_kind

PATTERNS = [
    "ab",
    "aaa",
    "ab|aab|_b",
    r"\bab\b",
    r"[a-z]+_[a-z]+\(\)",
    r"\w+ab",
    r"^\s*ab\S*$",
    r"[^a]+ab.?(?:é|b)*",
    r"\s+ab",
    r"[\w.]{1,3}?ab",
    r"ab(?!b)",
    "ab" * 20,
    r"(?:a|b)+_b",
    r"\D+ab|\W_b",
]
PIECES = st.sampled_from(
    ["a", "b", "A", "_", "()", " ", "\n", "\x1c", "\t", "é", "ab", "\u0130", "ab" * 20, "x" * 300]
)
TEXTS = st.lists(st.lists(PIECES, max_size=15).map("".join), min_size=1, max_size=6)


def in_bulk(pattern, texts, deadline):
    data = bytearray(b"\0".join(text.encode() for text in texts) + b"\0")
    counter = BulkCount(pattern, Literals(pattern), LineSearch(pattern, deadline))
    start = 0
    for text in texts:
        end = start + len(text.encode())
        if counter.is_possible and (text.isascii() or not counter.needs_ascii):
            counter.add(data, start, end)
        start = end + 1
    counter.flush()
    return counter


@settings(max_examples=400)
@given(pattern=st.sampled_from(PATTERNS), ignore_case=st.booleans(), texts=TEXTS)
@example(
    pattern=r"\s+ab", ignore_case=False, texts=["ab ab\nab", "\x1cab\n\tab\x1c", "é ab" + "x" * 300 + "ab"]
)
def test_the_count_of_many_texts_is_that_of_each(pattern, ignore_case, texts):
    compiled = compile_pattern(pattern, ignore_case=ignore_case)
    counter = in_bulk(compiled, texts, time.monotonic() + 20)
    matches = [  # in each line of each text, with the engine as the judge
        [sum(1 for _ in compiled.expression.finditer(line)) for line in text.removesuffix("\n").split("\n")]
        for text in texts
        if counter.is_possible and (text.isascii() or not ignore_case)
    ]
    assert counter.counts.matches == sum(map(sum, matches))
    assert counter.counts.lines == counter.counts.hits == sum(map(bool, itertools.chain(*matches)))
    assert counter.files == sum(map(any, matches))


def test_most_patterns_with_a_literal_are_counted_so():
    possible = [
        pattern
        for pattern in PATTERNS
        if BulkCount(
            compiled := compile_pattern(pattern), Literals(compiled), LineSearch(compiled, 0.0)
        ).is_possible
    ]
    assert set(PATTERNS) - set(possible) == {r"ab(?!b)", r"[^a]+ab.?(?:é|b)*", r"(?:a|b)+_b"}


def test_a_text_that_takes_too_long_ends_with_the_time():
    compiled = compile_pattern(r"(?:a?){20}\w*\w*\w*\w*b0")
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        in_bulk(compiled, ["a" * 3000 + "b0" + "a" * 3000 + "b\n"] * 200, began + 0.3)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"a\n", "ascii"),
        ("é\n".encode(), "utf-8"),
        (b"a\r\n", "mixed"),
        (b"\xe9", "mixed"),
        (b"\xef\xbb\xbfa", "mixed"),
    ],
)
def test_only_texts_whose_lines_are_certain_are_counted_so(content, kind):
    assert plain_kind(content) == kind
