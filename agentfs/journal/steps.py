"""Steps, and what several of them come to. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

from agentfs.fs import Change, DirectoryNode


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
        lost: How many paths are not in it, because the journal does not know any more how they were.
    """

    changes: tuple[Change, ...]
    foreign: tuple[str, ...]
    lost: int = 0


class Total:
    """What steps come to, added one after the other: several changes of one path are put into one.

    Args:
        start: What it begins with.
    """

    def __init__(self, start: Sum | None = None) -> None:
        self._changes = {change.path: change for change in start.changes} if start else {}
        self._foreign = dict.fromkeys(start.foreign) if start else {}
        self._lost = start.lost if start else 0

    def add(self, changes: Iterable[Change]) -> None:
        """Add the changes of one more step."""
        for change in changes:
            known = self._changes.get(change.path)
            if known is None:
                self._changes[change.path] = change
                continue
            if known.after != change.before:
                self._foreign[change.path] = None
            self._changes[change.path] = Change(change.path, known.before, change.after)

    def cut(self, most: int) -> None:
        """Drop what is as it was, and the paths known longest that are more than so many."""
        self._changes = {
            path: change for path, change in self._changes.items() if change.before != change.after
        }
        for known in (self._changes, self._foreign):
            while len(known) > most:
                del known[next(iter(known))]
                self._lost += 1

    def sum(self) -> Sum:
        """Return what they come to."""
        changed = (change for change in self._changes.values() if change.before != change.after)
        return Sum(tuple(changed), tuple(self._foreign), self._lost)


def summed(steps: Iterable[Step]) -> Sum:
    """Put steps together, several changes of one path into one.

    Args:
        steps: From the first to the last.

    Returns:
        What they come to.
    """
    total = Total()
    for step in steps:
        total.add(step.changes)
    return total.sum()


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
        if not isinstance(c.before, DirectoryNode) and not isinstance(c.after, DirectoryNode)
    ]
    gone = [c for c in files if c.after is None]
    come = [c for c in files if c.before is None]
    if len(files) == 2 and len(gone) == len(come) == 1 and gone[0].before == come[0].after:
        return gone[0].path, come[0].path
    return None
