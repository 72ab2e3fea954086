import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfs.text.lines import (
    View,
    bodies_of,
    count_lines,
    end_of,
    lf_view,
    line_start,
    newline_of,
    without_end,
)
from tests.conftest import lines_of

PIECES = ("a", "b", "\r", "\n", "\r\n", "\x0b", "\x0c", "\x85", "\u2028", "é", "😀")
texts = st.lists(st.sampled_from(PIECES), max_size=20).map("".join)


def without_ends(text):
    return [without_end(line, lone="\n" not in text) for line in lines_of(text)]


@pytest.mark.parametrize(("text", "lines", "newline"), [
    ("", [], None),
    ("\n", ["\n"], "\n"),
    ("a", ["a"], None),
    ("a\n", ["a\n"], "\n"),
    ("a\n\n", ["a\n", "\n"], "\n"),
    ("a\r\nb", ["a\r\n", "b"], "\r\n"),
    ("a\r\nb\n", ["a\r\n", "b\n"], "mixed"),
    ("a\rb", ["a\r", "b"], "\r"),
    ("a\r", ["a\r"], "\r"),
    ("a\rb\n", ["a\rb\n"], "\n"),
    ("a\nb\r", ["a\n", "b\r"], "\n"),
    ("a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g", ["a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g"], None),
])  # fmt: skip
def test_lines_end_as_the_design_says(text, lines, newline):
    assert lines_of(text) == lines
    assert bodies_of(text) == without_ends(text)
    assert count_lines(text) == len(lines)
    assert newline_of(text) == newline


@given(texts)
def test_splitting_agrees_with_a_slow_reference(text):
    assert bodies_of(text) == without_ends(text)
    assert count_lines(text) == len(lines_of(text))


@given(texts)
def test_the_lf_view_has_the_same_lines(text):
    bodies = without_ends(text)
    unended = bool(bodies) and bodies[-1] == lines_of(text)[-1]
    assert lf_view(text) == "\n".join(bodies) + ("\n" if bodies and not unended else "")


@given(texts)
def test_one_newline_means_that_every_line_ends_with_it(text):
    ends = {re.search(r"(\r\n|\n|\r)?\Z", line)[0] for line in lines_of(text)} - {""}
    if "\n" in text:
        ends -= {"\r"}  # in a last line without a line end
    assert newline_of(text) == (None if not ends else ends.pop() if len(ends) == 1 else "mixed")


@given(texts)
def test_a_line_start_is_the_length_of_the_lines_before(text):
    lines = lines_of(text)
    for number in range(1, len(lines) + 1):
        assert line_start(text, number, end_of(text)) == len("".join(lines[: number - 1]))


def test_a_line_start_far_away_is_found():
    text = "".join(f"line {number}\n" for number in range(1, 50_001))
    for number in (1, 2, 6_000, 8_191, 25_000, 49_999, 50_000):
        assert text[line_start(text, number, "\n") :].startswith(f"line {number}\n")


@pytest.mark.parametrize("seed", range(200))
def test_positions_in_a_view_are_those_of_its_pieces(seed):
    """Pieces that grow and pieces that shrink may leave the length of a text as it was."""
    draw = random.Random(seed)
    new = "y" * draw.randrange(3)
    source = "".join(draw.choices(["a", "bb", "x", "x"], k=12))
    view = View(source, re.compile("a|bb"), new)
    starts = []  # for each character of the view, the offset of its piece
    for piece in re.finditer("a|bb|x", source):
        starts += [piece.start()] * (1 if piece[0] == "x" else len(new))
    assert len(view.text) == len(starts)
    for position, start in enumerate(starts):
        if view.text[position] == "x":
            assert view.span(position, 1) == (start, start + 1)
