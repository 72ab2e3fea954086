"""Several strings at once: the joint pattern stands exactly where one of them does."""

from hypothesis import example, given
from hypothesis import strategies as st

from agentfs.search.lines import lines_of, lines_with
from agentfs.search.needles import joint, shared_part

WORDS = st.text("abc.", min_size=1, max_size=6)
# Needles with something in common, which is what is of interest.
ALIKE = st.builds(
    lambda part, sides: tuple(dict.fromkeys(before + part + behind for before, behind in sides)),
    st.text("abc.", min_size=3, max_size=5),
    st.lists(st.tuples(st.text("abc.", max_size=3), st.text("abc.", max_size=3)), min_size=3, max_size=5),
)
TEXTS = st.lists(st.text("abc.", max_size=12), max_size=6).map("\n".join)


@given(ALIKE, TEXTS)
@example(("aaab", "baaa", "aaaa"), "baaaa\naaab")
def test_the_joint_pattern_nominates_the_lines_that_have_a_needle(needles, text):
    pattern = joint(needles)
    if pattern is None:
        assert len(needles) < 3
        return
    expected = [line for line in text.split("\n") if any(needle in line for needle in needles)]
    assert [text[start:end] for start, end in lines_of(text, pattern, "\n")] == expected
    assert [text[start:end] for start, end in lines_with(text, needles, "\n")] == expected
    of_bytes = joint(tuple(needle.encode() for needle in needles))
    found = lines_of(text.encode(), of_bytes, b"\n")
    assert [text[start:end] for start, end in found] == expected


@given(st.lists(WORDS, max_size=4).map(tuple))
def test_the_shared_part_is_the_longest_that_all_have(needles):
    part = shared_part(needles)
    parts = {
        needles[0][start:end]
        for start in range(len(needles[0]) if len(needles) > 1 else 0)
        for end in range(start + 3, len(needles[0]) + 1)
        if all(needles[0][start:end] in needle for needle in needles)
    }
    assert (part in parts and len(part) == max(map(len, parts))) if parts else part is None


def test_few_needles_are_looked_for_one_by_one():
    assert joint(("kmalloc", "kzalloc")) is None
    assert joint(("kmalloc", "kzalloc", "unlike")) is None
    assert joint(("kmalloc", "kzalloc", "vmalloc")) is not None
