"""Plan a batch of changes, and keep the plan in a recovery log on disk until the batch is done.

For every path of the batch, the log has the old and the new node, the temporary and the backup. It exists
from before the first change until after the last one. The writing process locks it, so a log without a lock
belongs to a dead process. The next process that opens the root undoes its batch.

The file name of a log has the device and inode of the root. Another directory may get the same numbers later,
so the log also has the path of the root and its creation time.
"""

import json
import os
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from agentfs.errors import FileIOError
from agentfs.fs import syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.file import write_all
from agentfs.fs.lock import hold, is_held, let_go, lock_directory, open_locked, remove_stale_locks
from agentfs.fs.node import Change, DirectoryNode, FileNode, Node, node_from_json, node_to_json
from agentfs.fs.resolve import resolve_real

_VERSION = 3  # the format of the recovery log
_LEFT = b"left "
_SECOND_NAME = re.compile(r"(?:.*/)?\.agentfs-[0-9a-f]{16}\.(?:tmp|part)", re.DOTALL)

StepKind = Literal[
    "make", "rename", "put", "remove", "unmake"
]  # put and remove are for files and links, the others for directories


@dataclass(eq=False, repr=False)
class PlannedChange:
    """The plan of one change. An empty path means that the change needs none."""

    change: Change
    temporary: str = ""  # the file with the new content, before it is renamed
    backup: str = ""  # a hard link to the old file
    source: str = ""  # the removed file or directory that moves here
    inode: int = 0  # the inode of `source`, if a directory is renamed with all its entries
    entries: frozenset[str] = frozenset()  # the paths of all entries in that directory, relative to it
    late: bool = False  # True if a file replaces a directory, or the reverse, at this path or above


def new_temporary(suffix: str = "tmp") -> str:
    """Return a new name for a temporary. `remove_stale_temporaries` removes old ones that end in `.tmp`."""
    return f".agentfs-{os.urandom(8).hex()}.{suffix}"


def is_second_name(path: str) -> bool:
    """Return True for the path of a temporary, a backup, or a private directory for them."""
    return _SECOND_NAME.fullmatch(path) is not None


def is_single(changes: Sequence[Change]) -> bool:
    """Return True for one change, or for a new file with the new directories above it.

    A single rename or removal makes the change, so no recovery log is needed. If the process is killed, only
    empty directories can remain. No single rename replaces a file by a directory, or the reverse.
    """
    if len(changes) == 1:
        return not _is_turning(changes[0])
    files = [each for each in changes if not _is_made_on_the_way(each)]
    return len(files) == 1 and all(each in files or _is_above(each.path, files[0].path) for each in changes)


def plan_single(changes: Sequence[Change]) -> list[PlannedChange]:
    """Return the plan of changes for which `is_single` is true."""
    return [
        PlannedChange(change, os.path.join(os.path.dirname(change.path), new_temporary()))
        for change in changes
    ]


def _is_made_on_the_way(change: Change) -> bool:
    return change.before is None and isinstance(change.after, DirectoryNode) and change.after.mode is None


def _is_above(directory: str, path: str) -> bool:
    return path.startswith(f"{directory}/")


def directories_above(path: str) -> Iterator[str]:
    """Yield the directories above a path, innermost first."""
    while path := os.path.dirname(path):
        yield path


def plan_changes(
    context: RootContext, changes: Sequence[Change], *, rename_directories: bool
) -> list[PlannedChange]:
    """Return the plan of each change."""
    paths = {change.path for change in changes}
    turning = {change.path for change in changes if _is_turning(change)}
    plans = _plan_renames(context, changes, turning) if rename_directories else []
    moved = {path for plan in plans for path in (plan.change.path, plan.source)}
    changes = [each for each in changes if moved.isdisjoint([each.path, *directories_above(each.path)])]
    # Pair each created file with a removed file of equal content, both in path order.
    removed: dict[FileNode, list[str]] = {}
    for change in sorted(changes, key=lambda change: change.path, reverse=True):
        if isinstance(change.before, FileNode) and change.after is None:
            removed.setdefault(change.before, []).append(change.path)
    places: dict[str, str] = {}
    for change in sorted(changes, key=lambda change: change.path):
        above = list(directories_above(change.path))
        # Temporary and backup lie in a directory that exists before and after the batch. Outside the file's
        # directory, a private directory protects them from other users.
        outermost = next((path for path in reversed(above) if path in paths), change.path)
        directory = os.path.dirname(outermost)
        if outermost != change.path:
            place = os.path.join(directory, new_temporary("part"))
            directory = places.setdefault(directory, place)
        plan = PlannedChange(change, late=not turning.isdisjoint([change.path, *above]))
        # A hard link keeps the mtime of its file, so it can look stale. The suffix stops
        # `remove_stale_temporaries` from removing it.
        plan.temporary = os.path.join(directory, new_temporary("part"))
        plan.backup = os.path.join(directory, new_temporary("part"))
        if isinstance(change.after, FileNode) and change.before is None:
            plan.source = removed[change.after].pop() if removed.get(change.after) else ""
        plans.append(plan)
    return plans


def _plan_renames(context: RootContext, changes: Sequence[Change], turning: set[str]) -> list[PlannedChange]:
    """Return plans that rename a removed directory to a created one with equal entries, outermost first."""
    steady = [each for each in changes if turning.isdisjoint([each.path, *directories_above(each.path)])]
    removed = _contents_of({each.path: each.before for each in steady if each.after is None})
    created = _contents_of({each.path: each.after for each in steady if each.before is None})
    sources: dict[tuple[object, ...], list[str]] = {}
    for path in sorted(removed, reverse=True):
        sources.setdefault(tuple(removed[path]), []).append(path)
    plans: list[PlannedChange] = []
    renamed, above_renamed = set[str](), set[str]()
    for path in sorted(created):
        candidates = sources.get(tuple(created[path]), [])
        while candidates and renamed.isdisjoint(directories_above(path)):
            source = candidates.pop()
            if source in above_renamed or not renamed.isdisjoint(directories_above(source)):
                continue
            renamed |= {path, source}
            above_renamed.update(directories_above(source))
            entries = frozenset(below for below, *_ in created[path] if below)
            with resolve_real(context, source) as resolved:
                inode = syscalls.lstat(resolved.parent, resolved.name).st_ino
            change = Change(path, None, created[path][0][1])
            plans.append(PlannedChange(change, source=source, inode=inode, entries=entries))
            break
    return plans


def _contents_of(nodes: Mapping[str, Node | None]) -> dict[str, list[tuple[str, Node | None, int | None]]]:
    """Map each directory to itself and all its entries: relative path, node, and mode of a directory."""
    contents: dict[str, list[tuple[str, Node | None, int | None]]] = {}
    for path, node in sorted(nodes.items()):
        mode = node.mode if isinstance(node, DirectoryNode) else None
        if isinstance(node, DirectoryNode):
            contents[path] = [("", node, mode)]
        for above in directories_above(path):
            if above in contents:
                contents[above].append((path[len(above) + 1 :], node, mode))
    return contents


def _is_turning(change: Change) -> bool:
    """Return True if a file or link becomes a directory, or the reverse."""
    before, after = change.before, change.after
    return bool(before and after) and isinstance(before, DirectoryNode) is not isinstance(
        after, DirectoryNode
    )


def steps_of(plans: Sequence[PlannedChange]) -> list[tuple[StepKind, PlannedChange]]:
    """Return the steps in order. If possible, all new nodes are created before old ones are removed."""
    steps: list[tuple[StepKind, PlannedChange]] = []
    for late in (False, True):
        made: list[tuple[StepKind, PlannedChange]] = []
        put: list[tuple[StepKind, PlannedChange]] = []
        removed: list[tuple[StepKind, PlannedChange]] = []
        unmade: list[tuple[StepKind, PlannedChange]] = []
        for plan in plans:
            before, after = plan.change.before, plan.change.after
            if plan.late is not late:
                continue
            if isinstance(after, DirectoryNode):
                made.append(("rename" if plan.inode else "make", plan))
            elif after is not None:
                put.append(("put", plan))
            if isinstance(before, DirectoryNode):
                if not isinstance(after, DirectoryNode):
                    unmade.insert(0, ("unmake", plan))
            elif before is not None and (after is None or isinstance(after, DirectoryNode)):
                removed.insert(0, ("remove", plan))
        steps += [*removed, *unmade, *made, *put] if late else [*made, *put, *removed, *unmade]
    return steps


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
    born = syscalls.birth_time(context.shared_handle.handle.fd)
    content = json.dumps({"version": _VERSION, "root": root_path, "born": born, "rows": rows}).encode()
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
                if found is None:
                    continue
                born = syscalls.birth_time(context.shared_handle.handle.fd)
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


def _parse(log: bytes) -> _Parsed | None:
    """Return the content of a log, or None for a log of another version."""
    first, *notes = log.split(b"\n")
    try:
        content: dict[str, Any] = json.loads(first)
        if content["version"] != _VERSION:
            return None
        root, born, plans = content["root"], content["born"], [_plan(row) for row in content["rows"]]
    except (ValueError, KeyError, TypeError):
        return _Parsed("", None, [], set())  # an incomplete log: the batch had not begun
    left = {plan.change.path for plan in plans}
    for note in notes:
        if note.startswith(_LEFT) and note.endswith(b"]"):  # ignore an incomplete note
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
