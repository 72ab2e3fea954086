"""What the tree shows of changes that were begun, and that may have been made or not."""

from collections.abc import Callable
from copy import copy

from agentfs.errors import AgentFSError
from agentfs.fs import Change, DirectoryNode, Node, Root

MOST_BYTES = 200 * 1024 * 1024  # the largest file that any workspace changes
Look = Callable[[str], Node | None]


def looking(root: Root) -> Look:
    """Return what tells what stands at a path of a tree."""
    # Not the root itself: it holds its recorder, so that neither would go before the collector comes.
    door = copy(root)
    door.recorder = None
    return lambda path: door.node(path, max_bytes=MOST_BYTES)


class Found:
    """What the tree shows of changes that were begun.

    Args:
        changes: The changes.
        look: Returns what stands at a path.

    Attributes:
        made: Those that were made.
        unmade: Those that were not.
        odd: Those whose path is neither as before nor as after.
    """

    def __init__(self, changes: tuple[Change, ...], look: Look) -> None:
        self.made: tuple[Change, ...] = ()
        self.unmade: tuple[Change, ...] = ()
        self.odd: tuple[Change, ...] = ()
        for change in changes:
            try:
                present = look(change.path)
            except AgentFSError:
                self.odd += (change,)
                continue
            if present == change.after:
                self.made += (change,)
            elif present == change.before:
                self.unmade += (change,)
            else:
                self.odd += (change,)
        if all(_makes_directory(change) for change in self.made) and (self.unmade or self.odd):
            # Directories are made on the way to a file; without the file nothing was made.
            self.unmade += self.made
            self.made = ()
        if self.made:
            # A directory stays where something else is in it.
            self.made += tuple(change for change in self.unmade if _removes_directory(change))
            self.unmade = tuple(change for change in self.unmade if not _removes_directory(change))

    @property
    def whole(self) -> bool:
        """Whether all was made."""
        return not self.unmade and not self.odd


def _makes_directory(change: Change) -> bool:
    return change.before is None and isinstance(change.after, DirectoryNode)


def _removes_directory(change: Change) -> bool:
    return isinstance(change.before, DirectoryNode) and change.after is None
