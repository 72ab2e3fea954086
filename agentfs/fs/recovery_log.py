"""The recovery log of a batch of changes, outside the tree: it brings a tree back after a process died.

The log says what was where and under which second name it is kept. It is there from before the first change
until after the last one, and locked by whoever writes it, so that one which is not locked is that of a dead
process. The next to open the root takes that batch back.

A log is found by the device and inode of the root. Both may be those of another directory by then, so the log
also has the time when the root was made, and its path.
"""

import json
import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any, NamedTuple

from agentfs.errors import FileIOError
from agentfs.fs import syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.file import write_all
from agentfs.fs.lock import hold, is_held, let_go, lock_directory, open_locked, remove_stale_locks
from agentfs.fs.node import Change, node_from_json, node_to_json
from agentfs.fs.plan import PlannedChange, is_second_name

_VERSION = 3
_LEFT = b"left "


class RecoveryLog:
    """The log of one batch; `keep` is whether it stays when it is closed, for the next to open the root."""

    def __init__(self, fd: int, path: str, *, keep: bool = False) -> None:
        self._fd = hold(fd)
        self._path = path
        self.keep = keep

    def write(self, content: bytes) -> None:
        """Append to the log; OSError when that fails."""
        write_all(self._fd, content)
        os.fsync(self._fd)

    def note_left(self, paths: Iterable[str]) -> None:
        """Write which paths are still to be taken back; of all others only second names may be left."""
        with suppress(OSError):
            self.write(b"\n" + _LEFT + json.dumps(sorted(paths)).encode() + b"\n")

    def close(self) -> None:
        """Unlock the log, and remove it unless it is to be kept."""
        if not self.keep and is_held(self._fd):
            with suppress(OSError):
                os.unlink(self._path)
        let_go(self._fd)


@contextmanager
def recovery_log(
    context: RootContext, root_path: str, plans: Sequence[PlannedChange]
) -> Generator[RecoveryLog | None]:
    """Keep a log while a batch is carried out; none if there is no directory for it."""
    directory = lock_directory(root_path)
    if directory is None:
        yield None
        return
    rows = [_row(plan) for plan in plans]
    born = syscalls.birth_time(context.shared_handle.handle.fd)
    content = json.dumps({"version": _VERSION, "root": root_path, "born": born, "rows": rows}).encode()
    with ExitStack() as stack:
        try:
            log = stack.enter_context(closing(_new_log(os.path.join(directory, _prefix(context)))))
            log.write(content)
        except OSError as error:
            raise FileIOError(
                f"The recovery log outside of the workspace failed: {error.strerror or error}.",
                hint="Nothing was changed. Free disk space, and try again.",
                details={"errno": error.errno},
            ) from None
        yield log


def _new_log(prefix: str) -> RecoveryLog:
    while True:
        path = f"{prefix}{os.urandom(8).hex()}"
        # Whoever opens the root at this moment may take an empty log for one of a dead process.
        fd = open_locked(path, os.O_CREAT | os.O_EXCL)
        if fd is not None:
            return RecoveryLog(fd, path)


def unfinished_batches(
    context: RootContext, root_path: str
) -> Generator[tuple[list[PlannedChange], set[str], RecoveryLog]]:
    """Yield the batches of dead processes, with the paths that are to be taken back.

    Each log is kept unless its `keep` is set to False.
    """
    directory = lock_directory(root_path)
    if directory is None:
        return
    remove_stale_locks(directory)
    try:
        prefix = _prefix(context)
        names = sorted(name for name in os.listdir(directory) if name.startswith(prefix))
    except OSError:
        return
    for path in (os.path.join(directory, name) for name in names):
        with suppress(OSError):
            fd = open_locked(path)
            if fd is None:
                continue
            with closing(RecoveryLog(fd, path, keep=True)) as log, open(fd, "rb", closefd=False) as file:
                found = _parse(file.read())
                if found is None:
                    continue
                born = syscalls.birth_time(context.shared_handle.handle.fd)
                same_birth = None if found.born is None or born is None else found.born == born
                if found.plans and (found.root == root_path if same_birth is None else same_birth):
                    yield found.plans, found.left, log
                elif not found.plans or same_birth is False:  # the directory of the log is gone
                    log.keep = False


class _Parsed(NamedTuple):
    root: str
    born: int | None
    plans: list[PlannedChange]
    left: set[str]  # the paths left to take back


def _parse(log: bytes) -> _Parsed | None:
    """Return what a log says; None for one of another version."""
    first, *notes = log.split(b"\n")
    try:
        content: dict[str, Any] = json.loads(first)
        if content["version"] != _VERSION:
            return None
        root, born, plans = content["root"], content["born"], [_plan(row) for row in content["rows"]]
    except (ValueError, KeyError, TypeError):
        return _Parsed("", None, [], set())  # it was never written to its end, so nothing had begun
    left = {plan.change.path for plan in plans}
    for note in notes:
        if note.startswith(_LEFT) and note.endswith(b"]"):  # one that was not written to its end is none
            left = set(json.loads(note.removeprefix(_LEFT)))
    return _Parsed(root, born, plans, left)


def _prefix(context: RootContext) -> str:
    here = syscalls.lstat(context.shared_handle.handle.fd, ".")
    return f"repair-{here.st_dev:x}-{here.st_ino:x}-"


def _row(plan: PlannedChange) -> list[Any]:
    change = plan.change
    nodes = node_to_json(change.before), node_to_json(change.after)
    return [change.path, *nodes, plan.temporary, plan.backup, plan.source if plan.inode else "", plan.inode]


def _plan(row: list[Any]) -> PlannedChange:
    path, before, after, temporary, backup, source, inode = row
    if any(name and not is_second_name(name) for name in (temporary, backup)):
        msg = "not a second name"
        raise ValueError(msg)
    change = Change(path, node_from_json(before), node_from_json(after))
    return PlannedChange(change, temporary, backup, source, inode)
