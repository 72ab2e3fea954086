"""Which lines two texts have in common: `difflib`'s answer, in bounded time."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

# `difflib` looks at the pairs of equal lines again for each block that it finds. A stretch that could cost
# more looks than this is first divided at the lines that stand just once on either side.
_MOST_LOOKS = 2_000_000

_Block = tuple[int, int, int]
Change = tuple[int, int, int, int]


def changes_between(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """Find what was replaced.

    Args:
        old: The lines before.
        new: The lines after.

    Returns:
        For each change its start and end in old, and its start and end in new; in order and apart.
    """
    changes: list[Change] = []
    old_at = new_at = 0
    for old_start, new_start, length in (*_between(old, new), (len(old), len(new), 0)):
        if old_start > old_at or new_start > new_at:
            changes.append((old_at, old_start, new_at, new_start))
        old_at, new_at = old_start + length, new_start + length
    return changes


def grouped(changes: Sequence[Change], context: int) -> list[list[Change]]:
    """Put changes together whose lines of context touch.

    Args:
        changes: What `changes_between` found.
        context: Equal lines to be shown around each change.

    Returns:
        The changes of each hunk.
    """
    groups: list[list[Change]] = []
    for change in changes:
        if groups and change[0] - groups[-1][-1][1] <= 2 * context:
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def _between(old: Sequence[str], new: Sequence[str]) -> Iterator[_Block]:
    """Find the equal lines: start in old, start in new, length."""
    if _looks(old, new) <= _MOST_LOOKS:
        yield from _compared(old, new, 0, 0)
        return
    anchors = _anchors(old, new)
    old_from = new_from = 0
    for old_to, new_to in (*anchors, (len(old), len(new))):
        stretch = old[old_from:old_to], new[new_from:new_to]
        if anchors and _looks(*stretch) <= _MOST_LOOKS:
            yield from _compared(*stretch, old_from, new_from)
        if old_to < len(old):
            yield old_to, new_to, 1
        old_from, new_from = old_to + 1, new_to + 1


def _compared(old: Sequence[str], new: Sequence[str], old_at: int, new_at: int) -> Iterator[_Block]:
    if not old or not new:
        return
    import difflib  # noqa: PLC0415 - loaded when first needed

    for block in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        if block.size:
            yield old_at + block.a, new_at + block.b, block.size


def _looks(old: Sequence[str], new: Sequence[str]) -> int:
    """Estimate from above how often `difflib` would look at a line: once a block, at every pair."""
    if not old or not new:
        return 0
    counts = Counter(new)
    pairs = sum(counts[line] for line in old if line in counts)
    return (len(old) + pairs) * min(len(old), len(new), max(pairs, 1))


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Pair the lines that stand once in each, in an order that both have: a longest rising sequence."""
    old_counts, new_counts = Counter(old), Counter(new)
    places = {line: place for place, line in enumerate(new) if new_counts[line] == 1}
    pairs = [(at, places[line]) for at, line in enumerate(old) if old_counts[line] == 1 and line in places]
    tops: list[int] = []  # the least last place of a rising sequence of each length
    ends: list[int] = []  # and which pair it is
    before: list[int] = []
    for index, (_, place) in enumerate(pairs):
        length = bisect_left(tops, place)
        before.append(ends[length - 1] if length else -1)
        tops[length : length + 1] = [place]
        ends[length : length + 1] = [index]
    rising: list[tuple[int, int]] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        rising.append(pairs[index])
        index = before[index]
    return rising[::-1]
