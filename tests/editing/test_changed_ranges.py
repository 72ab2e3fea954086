import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfs.editing.draft import changed_ranges
from agentfs.text.diff import ReplacedLines, line_changes
from agentfs.text.lines import Replacement, count_lines
from tests.conftest import lines_of


def apply(text, splices):
    for splice in reversed(splices):
        text = text[: splice.start] + splice.new + text[splice.end :]
    return text


@st.composite
def rounds(draw):
    """A text and rounds of splices, each with offsets in the outcome of the previous round."""
    before = draw(st.text("ab\n", max_size=20))
    present, made = before, []
    for _ in range(draw(st.integers(1, 3))):
        offsets = sorted(draw(st.lists(st.integers(0, len(present)), max_size=6)))
        pairs = list(zip(offsets[::2], offsets[1::2], strict=False))
        apart = [pair for number, pair in enumerate(pairs) if number == 0 or pairs[number - 1][1] <= pair[0]]
        splices = [Replacement(start, end, draw(st.text("xy\n", max_size=4))) for start, end in apart]
        made.append(splices)
        present = apply(present, splices)
    return before, present, made


@given(rounds())
def test_lines_outside_the_hunks_are_the_same_lines(case):
    before, after, _ = case
    old, new = lines_of(before), lines_of(after)
    found = line_changes(before, after)
    rebuilt, position = [], 0
    for hunk in found:
        assert position <= hunk.old_start <= hunk.old_end <= len(old)
        rebuilt += old[position : hunk.old_start]
        assert len(rebuilt) == hunk.new_start
        rebuilt += new[hunk.new_start : hunk.new_end]
        position = hunk.old_end
    assert rebuilt + old[position:] == new


@given(rounds())
def test_changed_ranges_lie_in_the_file_and_cover_what_a_diff_finds_changed(case):
    before, after, made = case
    total = count_lines(after)
    ranges = changed_ranges(line_changes(before, after), total)
    assert all((1 <= first <= last <= total) or (first, last) == (0, 0) for first, last in ranges)
    lines = {line for first, last in ranges for line in range(first, last + 1)}
    differing = {
        number
        for number, (old, new) in enumerate(zip(lines_of(before), lines_of(after), strict=False), 1)
        if old != new
    }
    if total == count_lines(before) and len(made) == 1 and all("\n" not in s.new for s in made[0]):
        matcher = difflib.SequenceMatcher(None, lines_of(before), lines_of(after), autojunk=False)
        if all(code[2] - code[1] == code[4] - code[3] for code in matcher.get_opcodes()):
            assert differing <= lines or not lines


@pytest.mark.parametrize(
    ("before", "splice", "expected", "ranges"),
    [
        ("a\nb\nc\n", Replacement(2, 3, "B"), ReplacedLines(1, 2, 1, 2), ((2, 2),)),
        ("a\nb\nc\n", Replacement(2, 2, "x\ny\n"), ReplacedLines(1, 1, 1, 3), ((2, 3),)),
        ("a\nb\nc\n", Replacement(2, 4, ""), ReplacedLines(1, 2, 1, 1), ((2, 2),)),
        ("a\nb\nc\n", Replacement(4, 6, ""), ReplacedLines(2, 3, 2, 2), ((2, 2),)),
        ("a\nb\nc\n", Replacement(0, 6, ""), ReplacedLines(0, 3, 0, 0), ((0, 0),)),
        ("ab\n", Replacement(1, 1, "\n"), ReplacedLines(0, 1, 0, 2), ((1, 2),)),
        ("a\nb", Replacement(2, 3, ""), ReplacedLines(1, 2, 1, 1), ((1, 1),)),
        ("a\nb", Replacement(3, 3, "\nc"), ReplacedLines(1, 2, 1, 3), ((2, 3),)),
        ("a\nb\n", Replacement(1, 2, ""), ReplacedLines(0, 2, 0, 1), ((1, 1),)),
        ("a\r\nb\r\n", Replacement(3, 4, "B"), ReplacedLines(1, 2, 1, 2), ((2, 2),)),
        ("a\rb\r", Replacement(2, 3, "B"), ReplacedLines(1, 2, 1, 2), ((2, 2),)),
    ],
)
def test_a_splice_is_described_by_its_lines(before, splice, expected, ranges):
    after = apply(before, [splice])
    found = line_changes(before, after)
    assert found == (expected,)
    assert changed_ranges(found, count_lines(after)) == ranges
