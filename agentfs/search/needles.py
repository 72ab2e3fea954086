"""Several strings of which one must be there: looked for by what they share, where they share something.

Looking for each takes as many passes over a text. `kmalloc`, `kzalloc` and `vmalloc` share `alloc`, and one
pass by a regular expression that begins with it finds where one of them stands.
"""

import re

from agentfs.search.pattern import S

_SHORTEST_SHARED = 3  # what is shorter stands in most files
_FEWEST = 3  # of two, each is found as fast by itself


def shared_part(needles: tuple[S, ...]) -> S | None:
    """Return the longest string that all of some needles have.

    Args:
        needles: Strings of which one must be there.

    Returns:
        A part of each of them; None when what they share tells little, or when there is one needle only.
    """
    if len(needles) <= 1:
        return None
    shortest = min(needles, key=len)
    for size in range(len(shortest), _SHORTEST_SHARED - 1, -1):
        for start in range(len(shortest) - size + 1):
            part = shortest[start : start + size]
            if all(_has(needle, part) for needle in needles):
                return part
    return None


def joint(needles: tuple[S, ...]) -> re.Pattern[S] | None:
    """Return a pattern whose matches are what the needles share, wherever one of them stands around it.

    Args:
        needles: Strings of which one must be there.

    Returns:
        The pattern; None when they share too little to be worth it.
    """
    part = shared_part(needles) if len(needles) >= _FEWEST else None
    if part is None:
        return None
    if isinstance(part, str):
        around = "|".join([f"(?<={before}){behind}" for before, behind in _splits(needles, part)])
        return re.compile(f"{re.escape(part)}(?:{around})")
    around_bytes = b"|".join([b"(?<=%b)%b" % split for split in _splits(needles, part)])
    return re.compile(b"%b(?:%b)" % (re.escape(part), around_bytes))


def _splits(needles: tuple[S, ...], part: S) -> list[tuple[S, S]]:
    """Split each needle behind each place where it has the part."""
    splits: list[tuple[S, S]] = []
    for needle in needles:
        at = needle.find(part)
        while at >= 0:
            behind = at + len(part)
            splits.append((re.escape(needle[:behind]), re.escape(needle[behind:])))
            at = needle.find(part, at + 1)
    return splits


def _has(needle: S, part: S) -> bool:
    return needle.find(part) >= 0
