"""Find the names that are most similar to a misspelt one, in bounded time."""

from collections.abc import Iterable
from heapq import nlargest
from operator import itemgetter

from agentfs.base import call_context
from agentfs.base.lazy import difflib
from agentfs.errors import DeadlineExceededError

_MOST_CHARACTERS = 100  # of each name; the rest is not compared
_MOST_COMPARED = 20  # so many names, those with the most characters in common, are compared in order


def closest(name: str, names: Iterable[str], most: int, cutoff: float) -> list[str]:
    """Return the names most similar to a given one, the most similar first. Ties keep their order.

    When the deadline passes, names that were not compared yet are left out.

    Args:
        name: The misspelt name.
        names: The names to choose from.
        most: How many names to return at most.
        cutoff: The smallest ratio of `difflib.SequenceMatcher`.
    """
    matcher = difflib.SequenceMatcher(None, "", name[:_MOST_CHARACTERS], autojunk=False)
    likely: list[tuple[float, str]] = []  # each name with an upper bound of its ratio
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
    """Return the name most similar to the given one, or None if none is similar enough."""
    return next(iter(closest(name, names, 1, 0.55)), None)
