"""What a forked child must not share with its parent: locks that a thread held, threads, open databases."""

import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """An object that makes itself usable, or unusable, in a forked child."""

    def after_fork(self) -> None:
        """Let go of what belongs to the parent; called in the child, which has one thread."""


_objects = WeakSet[Forked]()


def watch_forks(held: Forked) -> None:
    """Call `after_fork` of an object in each child that is forked while the object lives."""
    _objects.add(held)


def _after_fork() -> None:
    for each in list(_objects):
        each.after_fork()


if hasattr(os, "register_at_fork"):  # agentfs can be imported on Windows too
    os.register_at_fork(after_in_child=_after_fork)
