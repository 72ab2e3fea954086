"""Steps, and what several of them come to. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

from agentfs.disk import Change, DirectoryState


class Step(NamedTuple):
    """What one call changed.

    Attributes:
        changes: At most one for each path.
        time: When, in seconds since 1970.
    """

    changes: tuple[Change, ...]
    time: float


class Sum(NamedTuple):
    """What several steps come to.

    Attributes:
        changes: One for each path that is not as it was.
        foreign: The paths that somebody else changed between two of the steps.
    """

    changes: tuple[Change, ...]
    foreign: tuple[str, ...]


def summed(steps: Iterable[Step]) -> Sum:
    """Put steps together, several changes of one path into one.

    Args:
        steps: From the first to the last.

    Returns:
        What they come to.
    """
    firsts: dict[str, Change] = {}
    lasts: dict[str, Change] = {}
    foreign: dict[str, None] = {}
    for step in steps:
        for change in step.changes:
            known = lasts.get(change.path)
            if known is None:
                firsts[change.path] = change
            elif known.after != change.before:
                foreign[change.path] = None
            lasts[change.path] = change
    changes = [Change(path, firsts[path].before, last.after) for path, last in lasts.items()]
    return Sum(
        tuple(change for change in changes if change.before != change.after), tuple(path for path in foreign)
    )


def taken_back(steps: Iterable[Step]) -> Sum:
    """Return what it takes to take steps back.

    Args:
        steps: From the first to the last.
    """
    total = summed(steps)
    return Sum(tuple(change.reversed() for change in total.changes), total.foreign)


def is_move(step: Step) -> tuple[str, str] | None:
    """Return from where to where a step moved a file, when that is what it did."""
    files = [
        c
        for c in step.changes
        if not isinstance(c.before, DirectoryState) and not isinstance(c.after, DirectoryState)
    ]
    gone = [c for c in files if c.after is None]
    come = [c for c in files if c.before is None]
    if len(files) == 2 and len(gone) == len(come) == 1 and gone[0].before == come[0].after:
        return gone[0].path, come[0].path
    return None
