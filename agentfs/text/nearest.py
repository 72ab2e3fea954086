"""Find the names that are most similar to a misspelt one."""

from collections.abc import Iterable, Iterator
from itertools import islice

from agentfs.base import call_context
from agentfs.base.lazy import difflib

_MOST_COMPARED = 2000  # names; comparing two long ones takes a millisecond


def closest(name: str, names: Iterable[str], most: int, cutoff: float) -> list[str]:
    """Return up to `most` names whose `difflib` ratio is at least `cutoff`, the most similar first."""
    return difflib.get_close_matches(name, _within_the_deadline(names), most, cutoff)


def _within_the_deadline(names: Iterable[str]) -> Iterator[str]:
    for each in islice(names, _MOST_COMPARED):
        call_context.check()
        yield each


def nearest(name: str, names: Iterable[str], cutoff: float = 0.55) -> str | None:
    """Return the name most similar to the given one, or None if none is similar enough."""
    return next(iter(closest(name, names, 1, cutoff)), None)
