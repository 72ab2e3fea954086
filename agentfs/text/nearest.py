"""The names most like a misspelt one, found in bounded time."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from heapq import nlargest
from operator import itemgetter

from agentfs import call_context
from agentfs.errors import DeadlineExceededError

_MOST_CHARACTERS = 100  # only the beginning of longer names is compared
_MOST_COMPARED = 20  # names with the most characters in common, which are compared in order


def closest(name: str, names: Iterable[str], most: int, cutoff: float) -> list[str]:
    """Return the names most like a given one, the closest first; equally close ones keep their order.

    At the deadline, names that were not compared yet are left out.

    Args:
        name: The misspelt name.
        names: The names to choose from.
        most: The number of names to return.
        cutoff: The smallest ratio of `difflib.SequenceMatcher`.
    """
    matcher = SequenceMatcher(None, "", name[:_MOST_CHARACTERS], autojunk=False)
    likely: list[tuple[float, str]] = []  # with an upper bound of each ratio
    try:
        for number, other in enumerate(names):
            if number % 64 == 0:
                call_context.check()
            matcher.set_seq1(other[:_MOST_CHARACTERS])
            if matcher.real_quick_ratio() >= cutoff and (bound := matcher.quick_ratio()) >= cutoff:
                likely.append((bound, other))
    except DeadlineExceededError:
        pass
    found: list[tuple[float, str]] = []
    for _, other in nlargest(_MOST_COMPARED, likely, key=itemgetter(0)):
        matcher.set_seq1(other[:_MOST_CHARACTERS])
        if (ratio := matcher.ratio()) >= cutoff:
            found.append((ratio, other))
    return [other for _, other in nlargest(most, found, key=itemgetter(0))]


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name most like the given one, or None if none is similar."""
    return next(iter(closest(name, names, 1, 0.55)), None)
