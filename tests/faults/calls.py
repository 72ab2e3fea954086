"""One injector of faults for system calls, and the changes of a small tree that all tests of faults make."""

import errno
import fcntl
import os
import shutil
import signal
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from agentfs import Workspace
from agentfs.errors import ConflictError
from agentfs.fs import syscalls
from tests.history.judges import Snapshot

CHANGING = {
    *("open", "write", "fsync", "link", "unlink", "replace", "rename", "mkdir", "rmdir", "fchmod", "symlink")
}
CALLS = [
    *("open", "close", "read", "readv", "pread", "preadv", "write", "fsync", "ftruncate", "lseek", "link"),
    *("replace", "rename", "mkdir", "rmdir", "stat", "lstat", "fstat", "readlink", "symlink", "fchmod"),
    *("unlink", "fchown", "chmod", "listdir", "scandir", "flock", "read_at"),
]


class CountedCalls:
    """Counts system calls and calls `act` before one of them, or after it if `after` has its name.

    Attributes:
        names: The names of the calls.
        at: The number of the call at which `act` is called, from 1.
        hit: The name of that call.
    """

    def __init__(self, monkeypatch, act, only: Iterable[str] = CALLS, *, after: Container[str] = ()):
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


def kills(calls: CountedCalls, every: int, fresh, act) -> Iterator[tuple[str, Path, Path]]:
    """Act in a workspace on a fresh tree, in a child that is killed before `some_of` its calls.

    `fresh` returns the tree and its state, which are yielded after each kill with the place of the kill.
    """
    root, state = fresh()
    with Workspace(root, state=state) as ws:
        start = calls.count
        act(ws)
        names = calls.names[start:]
    for number in some_of(names, every):
        root, state = fresh()
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


def some_of(names: Sequence[str], every: int) -> list[int]:
    """Return the numbers, from 1, of the first call of each name and of each `every`-th one after it."""
    numbers: dict[str, list[int]] = {}
    for number, name in enumerate(names, 1):
        numbers.setdefault(name, []).append(number)
    return sorted(number for each in numbers.values() for number in each[::every])


def kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail_with(number: int) -> Callable[..., object]:
    def fail(*_, **__):
        raise OSError(number, os.strerror(number))

    return fail


def refuse_renames(monkeypatch) -> None:
    """Refuse renames of files and directories that are not temporaries, as between two file systems."""
    rename = syscalls.rename_new

    def refused(handle, source, name, *, to=None):
        if ".agentfs-" not in source:
            fail_with(errno.EXDEV)()
        rename(handle, source, name, to=to)

    monkeypatch.setattr(syscalls, "rename_new", refused)


def without_temporaries(state: Snapshot) -> Snapshot:
    """Leave out what a kill leaves until a later change of its directory."""
    return {name: each for name, each in state.items() if ".agentfs-" not in name}


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


# The changes, on the tree of `fresh`.


def fresh(top: Path) -> Path:
    shutil.rmtree(top, ignore_errors=True)
    for name in ("empty", "d/e"):
        (top / name).mkdir(parents=True)
    for name, text in {"f": "old\n", "g": "old g\n", "d/c": "x\nold\n", "d/e/h": "old\nold\n"}.items():
        (top / name).write_text(text)
        os.utime(top / name, (1, 1))  # long ago, so that a second name looks stale
    (top / "link").symlink_to("f")
    (top / ".gitignore").write_text("*.log\n")
    return top


def transaction(ws: Workspace, *, reads: bool = True) -> None:
    with ws.transaction() as tx:
        tx.edit("f", "old", "new")
        tx.write("made/x", "x\n")
        tx.move("link", "made/link")
        if reads:
            tx.read("g")
        tx.delete("g")


def changed(ws: Workspace) -> None:
    ws.read("g")
    ws.edit("f", "old", "new")
    ws.delete("g")


def undone(ws: Workspace) -> None:
    changed(ws)
    ws.undo(2)


PATCH = """*** Begin Patch
*** Update File: f
@@
-old
+new
*** Update File: d/c
@@
-old
+new
*** Delete File: g
*** Add File: new/x
+new
*** End Patch"""


def patch(ws: Workspace) -> None:
    result = ws.tools(dialect="apply-patch").call("apply_patch", {"input": PATCH})
    if result.error:
        raise ConflictError(result.content)


class LeftOut(Exception):  # noqa: N818 - an outcome
    """A file could not be read, so a replacement has left it as it is."""


def replace(ws: Workspace) -> None:
    if ws.replace("old", "new").skipped.unreadable:
        raise LeftOut


# The preparation, and the call during which a system call fails, is interrupted or is the last.
Change = tuple[Callable[[Workspace], Any], Callable[[Workspace], Any]]
CHANGES: dict[str, Change] = {
    "edit": (lambda ws: None, lambda ws: ws.edit("f", "old", "new")),
    "write": (lambda ws: ws.read("f"), lambda ws: ws.write("f", "new\n")),
    "write deep": (lambda ws: None, lambda ws: ws.write("new/deep/x", "new\n")),
    "write through": (lambda ws: ws.read("link"), lambda ws: ws.write("link", "new\n")),
    "append": (lambda ws: None, lambda ws: ws.append("f", "new\n")),
    "delete": (lambda ws: ws.read("g"), lambda ws: ws.delete("g")),
    "delete link": (lambda ws: None, lambda ws: ws.delete("link")),
    "delete empty": (lambda ws: None, lambda ws: ws.delete("empty")),
    "delete all": (lambda ws: None, lambda ws: ws.delete("d", recursive=True)),
    "move": (lambda ws: None, lambda ws: ws.move("g", "new/deep/h")),
    "move link": (lambda ws: None, lambda ws: ws.move("link", "other")),
    "move all": (lambda ws: None, lambda ws: ws.move("d", "x/new")),
    "undo": (changed, lambda ws: ws.undo(2)),
    "redo": (undone, lambda ws: ws.redo(2)),
    "transaction": (lambda ws: None, transaction),
    "patch": (lambda ws: None, patch),
    "replace": (lambda ws: None, replace),
}
