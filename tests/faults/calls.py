"""Helpers that kill or fail a change of many files at its system calls: all is old or all is new."""

import fcntl
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agentfs import AgentFSError, Workspace
from agentfs.fs import syscalls
from tests.history.judges import Snapshot, snapshot

CALLS = [
    *("open", "close", "read", "write", "fsync", "link", "unlink", "replace", "rename", "mkdir", "rmdir"),
    *("stat", "lstat", "fstat", "readlink", "symlink", "fchmod", "fchown", "lseek", "listdir", "scandir"),
]
ALL = [*CALLS, "flock"]
CHANGING = {
    "open",
    "write",
    "fsync",
    "link",
    "unlink",
    "replace",
    "rename",
    "mkdir",
    "rmdir",
    "fchmod",
    "symlink",
}


def some_of(names: Sequence[str], every: int) -> list[int]:
    """Return the numbers, from 1, of the first call of each name and of each `every`-th one after it."""
    numbers: dict[str, list[int]] = {}
    for number, name in enumerate(names, 1):
        numbers.setdefault(name, []).append(number)
    return sorted(number for each in numbers.values() for number in each[::every])


class CountedCalls:
    """Counts system calls and calls `act` before one of them, or after it if `after` has its name.

    Attributes:
        names: The names of the calls.
        hit: The name of the call at which `act` was called.
    """

    def __init__(
        self, monkeypatch, act: Callable[[], object], only: Iterable[str] = ALL, *, after: Container[str] = ()
    ):
        self.names, self.at, self.act, self.after, self.hit = list[str](), -1, act, after, ""
        for name in only:
            module = fcntl if name == "flock" else syscalls if name == "read_at" else os
            monkeypatch.setattr(module, name, self.wrap(getattr(module, name)))

    def wrap(self, call):
        def wrapped(*args, **kwargs):
            name = call.__name__
            self.names.append(name)
            if not 0 < self.at <= self.count:  # a finalizer may have made the call itself
                return call(*args, **kwargs)
            self.at, self.hit = -1, name
            if name not in self.after:
                self.act()
            try:
                return call(*args, **kwargs)
            finally:
                if name in self.after:
                    self.act()

        return wrapped

    @property
    def count(self) -> int:
        return len(self.names)


@dataclass
class RepeatedChange:
    """A change that is repeated on a fresh tree each time."""

    top: Path
    fresh: Callable[[Path], object]  # creates the tree before the change
    change: Callable[[Workspace], object]
    before: Callable[[Workspace], object] = lambda ws: None  # runs before the calls are counted
    left_out: Callable[[Any], object] = lambda done: False  # True if the result counts a file as left out
    back: Callable[[Workspace], object] = lambda ws: ws.undo()  # takes the change back
    is_named: bool = True  # False for a transaction: its finished steps are not named at the opening

    def names(self, calls: CountedCalls) -> list[str]:
        """Return the names of the calls that the whole change makes, in a workspace with a state."""
        with self.opened() as ws:
            start = calls.count
            self.change(ws)
            return calls.names[start:]

    def opened(self) -> Workspace:
        """Return a workspace with a new state on a fresh tree."""
        shutil.rmtree(self.state, ignore_errors=True)
        self.make()
        ws = Workspace(self.top, state=self.state)
        self.before(ws)
        return ws

    def make(self) -> None:
        """Create the tree anew."""
        shutil.rmtree(self.top, ignore_errors=True)
        self.fresh(self.top)

    @property
    def state(self) -> Path:
        return self.top.parent / f"{self.top.name}-state"

    def kill_at(
        self, calls: CountedCalls, number: int, both: tuple[Snapshot, Snapshot]
    ) -> tuple[Literal["old", "new", "begun"], bool]:
        """Return the state after a kill at a call, and True if the process was killed.

        The next workspace sees all old, all new, or a begun step that it names and `undo` takes back.
        """
        shutil.rmtree(self.state, ignore_errors=True)
        self.make()
        child = os.fork()
        if child == 0:
            with Workspace(self.top, state=self.state) as ws:
                self.before(ws)
                calls.at = calls.count + number
                self.change(ws)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert status in {signal.SIGKILL, 0}
        with Workspace(self.top, state=self.state) as ws:
            state = without_temporaries(snapshot(self.top))
            if state in both:
                return ("old", "new")[both.index(state)], status != 0
            assert ws.recovery_notes or not self.is_named, f"killed at call {number}: {sorted(state)}"
            ws.undo()
            state = without_temporaries(snapshot(self.top))
            assert state == both[0], f"killed at call {number}: {sorted(state)} {ws.recovery_notes}"
            return "begun", True

    def fail_at(self, calls: CountedCalls, number: int, both: tuple[Snapshot, Snapshot]) -> bool:
        """Return True if the change failed because a call did. A change that succeeds must be complete."""
        self.make()
        with Workspace(self.top) as ws:
            self.before(ws)
            had = ws.changes().files
            calls.at = calls.count + number
            try:
                done = self.change(ws)
            except AgentFSError:
                assert snapshot(self.top) == both[0], f"call {number}"
                assert ws.changes().files == had
                return True
            finally:
                calls.at = -1  # the change may make fewer calls than counted
            if self.left_out(done):
                return False
            assert without_temporaries(snapshot(self.top)) == both[1], f"call {number}"
            return False


def kills(
    calls: CountedCalls,
    every: int,
    fresh: Callable[[], tuple[Path, Path]],
    act: Callable[[Workspace], object],
) -> Iterator[tuple[str, Path, Path]]:
    """Act in a workspace on a fresh tree, in a child that is killed before `some_of` its calls.

    `fresh` returns the tree and its state, which are yielded after each kill with the place of the kill.
    """
    names, numbers = [""], [0]
    while numbers:
        number = numbers.pop(0)
        root, state = fresh()
        if number == 0:  # count the calls
            with Workspace(root, state=state) as ws:
                start = calls.count
                act(ws)
                names = calls.names[start:]
            numbers = some_of(names, every)
            continue
        child = os.fork()
        if child == 0:
            failed = 1
            try:
                ws = Workspace(root, state=state)
                calls.at = calls.count + number
                act(ws)
                failed = 0
            finally:
                os._exit(failed)
        status = os.waitpid(child, 0)[1]
        if status == 0:  # it made fewer calls, as fewer files were young
            assert number > len(names) * 0.8
            return
        assert status == signal.SIGKILL
        yield f"call {number} of {len(names)}", root, state


def check_kills(change: RepeatedChange, both: tuple[Snapshot, Snapshot], monkeypatch, every: int) -> None:
    """Kill a change before `some_of` its calls. The old and the new state must be seen."""
    calls = CountedCalls(monkeypatch, kill_itself, CHANGING)  # before another call, the tree is the same
    names = change.names(calls)
    outcomes = Counter(change.kill_at(calls, number, both) for number in some_of(names, every))
    print(len(names), "calls:", dict(outcomes))  # noqa: T201 - the figures, with -s
    seen = {*outcomes}
    seen |= {change.kill_at(calls, number, both) for number in (len(names), len(names) - 6)}
    assert {("old", True), ("new", True)} <= seen | {("new", True)}


def without_temporaries(state: Snapshot) -> Snapshot:
    """Leave out what a kill leaves until a later change of its directory."""
    return {name: each for name, each in state.items() if ".agentfs-" not in name}


def count_failures(
    change: RepeatedChange, both: tuple[Snapshot, Snapshot], monkeypatch, number: int, every: int
) -> float:
    """Return the share of `some_of` the changing calls whose failure with an errno makes the change fail."""
    calls = CountedCalls(monkeypatch, fail_with(number), CHANGING)
    at = some_of(change.names(calls), every)
    failed = sum(change.fail_at(calls, each, both) for each in at)
    print(len(at), "failures with", number, "of which the change failed:", failed)  # noqa: T201 - as above
    return failed / len(at)


def kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail_with(number: int) -> Callable[[], object]:
    def fail():
        raise OSError(number, os.strerror(number))

    return fail
