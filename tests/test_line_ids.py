import re

from hypothesis import given
from hypothesis import strategies as st

from agentfs.shown.read_tracker import carry_line_ids, new_line_ids

LINES = st.lists(st.sampled_from(["", "a", "b", "}", "    return x"]), max_size=12)


@given(LINES)
def test_ids_are_short_unique_and_made_from_the_content(lines):
    ids = new_line_ids(lines, set())
    assert len(set(ids)) == len(ids) == len(lines)
    assert all(re.fullmatch(r"[0-9a-f]{6,}", name) for name in ids)
    assert ids == new_line_ids(lines, set())


def test_a_hundred_thousand_lines_have_a_hundred_thousand_ids():
    lines = [str(number % 80_000) for number in range(100_000)]
    ids = new_line_ids(lines, set())
    assert len(set(ids)) == 100_000
    assert min(map(len, ids)) == 6
    assert max(map(len, ids)) <= 7  # collisions of six digits are certain here


@given(LINES, st.integers(0, 12), st.integers(0, 4), LINES)
def test_a_line_outside_a_change_keeps_its_id_and_no_id_changes_hands(lines, start, count, inserted):
    start = min(start, len(lines))
    end = min(start + count, len(lines))
    after = lines[:start] + inserted + lines[end:]
    taken: set[str] = set()
    ids = new_line_ids(lines, taken)
    now = carry_line_ids(lines, ids, after, set(taken))
    assert len(set(now)) == len(now) == len(after)
    for name, line in zip(now, after, strict=True):
        if name in ids:
            assert lines[ids.index(name)] == line
    kept = [name for name in now if name in ids]
    assert kept == sorted(kept, key=ids.index)
    assert now[:start] == ids[:start]
    if not inserted:
        assert len(kept) == len(after)
