"""Find the names that are most similar to a misspelt one."""

from collections.abc import Iterable, Iterator
from itertools import islice

from agentfs.base import call_context
from agentfs.base.lazy import difflib
from agentfs.errors import DeadlineExceededError

_MOST_COMPARED = 20_000  # names; a directory may have ten times as many


def closest(name: str, names: Iterable[str], most: int, cutoff: float) -> list[str]:
    """Return up to `most` names whose `difflib` ratio is at least `cutoff`, the most similar first."""
    likely = (each for each in islice(names, _MOST_COMPARED) if len(each) < 2 * len(name) / cutoff)
    return difflib.get_close_matches(name, _within_deadline(likely), most, cutoff)


def _within_deadline(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        try:
            call_context.check()  # the comparison with one long name takes milliseconds
        except DeadlineExceededError:
            return
        yield name


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name most similar to the given one, or None if none is similar enough."""
    return next(iter(closest(name, names, 1, 0.55)), None)
