"""The names that are most like a misspelt one, found in bounded time."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from heapq import nlargest
from operator import itemgetter

from agentfs import call_context
from agentfs.errors import DeadlineExceededError

# Of longer names only the beginning is compared.
_MOST_CHARACTERS = 100
# Only these many names, which have the most characters in common, are compared character by character.
_MOST_COMPARED = 20


def closest(name: str, names: Iterable[str], most: int, cutoff: float) -> list[str]:
    """Return up to `most` names like one, the closest first, in their order if they are as close.

    At the deadline the names that are not compared yet are left out.
    """
    matcher = SequenceMatcher(None, "", name[:_MOST_CHARACTERS], autojunk=False)
    likely: list[tuple[float, str]] = []  # with the greatest ratio that each may have
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
    """Return the name that is most like the one given, or None if none is."""
    return next(iter(closest(name, names, 1, 0.55)), None)
