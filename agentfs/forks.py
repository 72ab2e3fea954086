"""Renewal of locks, threads and open databases in a forked child, which must not share its parent's."""

import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """An object with state that a forked child must not share."""

    def after_fork(self) -> None:
        """Replace or drop the parent's state; called in the child, which has one thread."""


_objects = WeakSet[Forked]()


def watch_forks(held: Forked) -> None:
    """Call `after_fork` of an object in each child that is forked during its life."""
    _objects.add(held)


def _after_fork() -> None:
    for each in list(_objects):
        each.after_fork()


if hasattr(os, "register_at_fork"):  # agentfs can be imported on Windows too
    os.register_at_fork(after_in_child=_after_fork)
