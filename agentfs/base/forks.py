"""Forks: threads end before them; a forked child drops the locks and open databases of its parent."""

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


class Stopped(Protocol):
    """An object with a thread that must not run during a fork."""

    def stop(self) -> None:
        """End the thread, and wait for its end."""


_stopped = WeakSet[Stopped]()


def stop_before_forks(held: Stopped) -> None:
    """Call `stop` of an object before this process is forked."""
    _stopped.add(held)


def _before_fork() -> None:
    for each in list(_stopped):
        each.stop()


def _after_fork() -> None:
    for each in list(_objects):
        each.after_fork()


if hasattr(os, "register_at_fork"):  # agentfs can be imported on Windows too
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
