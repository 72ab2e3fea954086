"""Keep the plan of a batch in a log on disk until the batch is done.

For every path of the batch, the log has the old and the new node, the temporary and the backup. It exists
from before the first change until after the last one. The writing process locks it, so a log without a lock
belongs to a dead process. The next process that opens the root undoes its batch.

The file name of a log has the device and inode of the root. Another directory may get the same numbers later,
so the log also has the path of the root and its creation time.
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
from agentfs.fs.path import is_temporary_name
from agentfs.fs.plan import PlannedChange

_VERSION = 3  # the format of the recovery log
_LEFT = b"left "


class RecoveryLog:
    """The log of one batch. With `keep`, closing leaves it for the next process that opens the root."""

    def __init__(self, fd: int, path: str, *, keep: bool = False) -> None:
        self._fd = hold(fd)
        self._path = path
        self.keep = keep

    def write(self, content: bytes) -> None:
        """Append to the log. Raises OSError."""
        write_all(self._fd, content)
        os.fsync(self._fd)

    def note_left(self, paths: Iterable[str]) -> None:
        """Record which paths must still be undone. The others have left at most temporaries and backups."""
        with suppress(OSError):
            self.write(b"\n" + _LEFT + json.dumps(sorted(paths)).encode() + b"\n")

    def close(self) -> None:
        """Unlock the log and, without `keep`, remove it."""
        if not self.keep and is_held(self._fd):
            with suppress(OSError):
                os.unlink(self._path)
        let_go(self._fd)


@contextmanager
def recovery_log(
    context: RootContext, root_path: str, plans: Sequence[PlannedChange]
) -> Generator[RecoveryLog | None]:
    """Keep a log on disk while a batch is applied; give None if there is no directory for it."""
    directory = lock_directory(root_path)
    if directory is None:
        yield None
        return
    rows = [_row(plan) for plan in plans]
    paths = [path for plan in plans for path in (plan.change.path, plan.source) if path]
    born = syscalls.birth_time(context.trees.root.handle.fd)
    facts = {
        "version": _VERSION,
        "root": root_path,
        "born": born,
        "trees": _identities(context, paths),
        "rows": rows,
    }
    content = json.dumps(facts).encode()
    with ExitStack() as stack:
        try:
            log = stack.enter_context(closing(_new_log(os.path.join(directory, _prefix(context)))))
            log.write(content)
        except OSError as error:
            raise FileIOError(
                f"The recovery log outside the workspace could not be written: {error.strerror or error}.",
                hint="Nothing was changed. Free disk space and try again.",
                details={"errno": error.errno},
            ) from None
        yield log


def _new_log(prefix: str) -> RecoveryLog:
    while True:
        path = f"{prefix}{os.urandom(8).hex()}"
        # A process that opens the root at this moment may take the empty log for a dead one and remove it.
        fd = open_locked(path, os.O_CREAT | os.O_EXCL)
        if fd is not None:
            return RecoveryLog(fd, path)


def unfinished_batches(
    context: RootContext, root_path: str
) -> Generator[tuple[list[PlannedChange], set[str], RecoveryLog]]:
    """Yield the unfinished batches of dead processes: the plans, the paths to undo, and the log.

    A log is kept unless the caller sets its `keep` to False.
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
                if found is None or found.trees != _identities(context, found.trees):
                    continue  # of another version, or for a root with these trees
                born = syscalls.birth_time(context.trees.root.handle.fd)
                same_birth = None if found.born is None or born is None else found.born == born
                if found.plans and (found.root == root_path if same_birth is None else same_birth):
                    yield found.plans, found.left, log
                elif not found.plans or same_birth is False:  # without a batch, or the root is gone
                    log.keep = False


class _Parsed(NamedTuple):
    root: str
    born: int | None
    plans: list[PlannedChange]
    left: set[str]  # the paths that must still be undone
    trees: dict[str, list[int]]  # the device and inode of each other tree with changes, by path


def _parse(log: bytes) -> _Parsed | None:
    """Return the content of a log, or None for a log of another version."""
    first, *notes = log.split(b"\n")
    try:
        content: dict[str, Any] = json.loads(first)
        if content["version"] != _VERSION:
            return None
        root, born, plans = content["root"], content["born"], [_plan(row) for row in content["rows"]]
        trees = content.get("trees", {})
    except (ValueError, KeyError, TypeError):
        return _Parsed("", None, [], set(), {})  # an incomplete log: the batch had not begun
    left = {plan.change.path for plan in plans}
    for note in notes:
        if note.startswith(_LEFT) and note.endswith(b"]"):  # ignore an incomplete note
            left = set(json.loads(note.removeprefix(_LEFT)))
    return _Parsed(root, born, plans, left, trees)


def _prefix(context: RootContext) -> str:
    here = syscalls.lstat(context.trees.root.handle.fd, ".")
    return f"repair-{here.st_dev:x}-{here.st_ino:x}-"


def _row(plan: PlannedChange) -> list[Any]:
    change = plan.change
    nodes = node_to_json(change.before), node_to_json(change.after)
    return [change.path, *nodes, plan.temporary, plan.backup, plan.source if plan.inode else "", plan.inode]


def _plan(row: list[Any]) -> PlannedChange:
    path, before, after, temporary, backup, source, inode = row
    if any(name and not is_temporary_name(name) for name in (temporary, backup)):
        msg = "not a temporary name"
        raise ValueError(msg)
    change = Change(path, node_from_json(before), node_from_json(after))
    return PlannedChange(change, temporary, backup, source, inode)


def _identities(context: RootContext, paths: Iterable[str]) -> dict[str, list[int]]:
    """Return the device and inode of each mount that one of the paths lies in, by its name."""
    trees = {context.trees.of(path).path for path in paths} - {""}
    found = {path: context.trees.status(path) for path in trees}
    return {path: [status.st_dev, status.st_ino] for path, status in found.items()}
