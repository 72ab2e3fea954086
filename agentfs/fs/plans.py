"""How each change of a batch is made: in which directory it waits, and when its turn is."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentfs.fs.node import Change, DirectoryNode, FileNode


def _staged_name() -> str:
    # Not a name that is swept as a stray: a second name has the times of its file, which may be old.
    return f".agentfs-{os.urandom(8).hex()}.part"


@dataclass
class Plan:
    """How one change is made.

    Attributes:
        change: The change.
        stage: The directory for `fresh` and `backup`, from the root on; it outlives all changes of the batch.
        fresh: The name under which the new content waits, or "".
        backup: The second name of what stands there now, or "".
        source: The path that the new content is moved from, or "".
        late: Whether a file makes room for a directory here or above, or the other way round.
    """

    change: Change
    stage: str
    fresh: str = field(default_factory=_staged_name)
    backup: str = field(default_factory=_staged_name)
    source: str = ""
    late: bool = False

    def staged(self, name: str) -> str:
        """Return the path of `fresh` or `backup`."""
        return f"{self.stage}/{name}" if self.stage else name


def plans_of(changes: Sequence[Change]) -> list[Plan]:
    """Return how to make the changes, each its plan.

    Args:
        changes: At most one for each path.
    """
    paths = {change.path for change in changes}
    turning = {c.path for c in changes if c.before and c.after and is_directory(c)}
    gone = {c.before: c.path for c in changes if isinstance(c.before, FileNode) and c.after is None}
    plans: list[Plan] = []
    for change in changes:
        above = [change.path[:at] for at, letter in enumerate(change.path) if letter == "/"]
        changed = [path for path in above if path in paths]
        top = changed[0] if changed else change.path
        plan = Plan(change, os.path.dirname(top))
        plan.late = change.path in turning or any(path in turning for path in above)
        if isinstance(change.after, FileNode) and change.before is None:
            plan.source = gone.get(change.after, "")
        plans.append(plan)
    return plans


def is_directory(change: Change) -> bool:
    """Tell whether a change makes or removes a directory."""
    return isinstance(change.before, DirectoryNode) or isinstance(change.after, DirectoryNode)
