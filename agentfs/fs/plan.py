"""Plan a batch of changes: temporaries and backups, the directories to rename, the order of the steps."""

import os
import stat
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agentfs.fs import syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.node import Change, DirectoryNode, FileNode, Node, moves
from agentfs.fs.path import is_in
from agentfs.fs.resolve import resolve_real

StepKind = Literal[
    "open", "make", "rename", "put", "remove", "unmake", "close"
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


def new_temporary(suffix: str = "tmp") -> str:
    """Return a new name for a temporary. `remove_stale_temporaries` removes old ones that end in `.tmp`."""
    return f".agentfs-{os.urandom(8).hex()}.{suffix}"


def is_single(changes: Sequence[Change]) -> bool:
    """Return True for one change, or for a new file with the new directories above it.

    A single rename or removal makes the change, so no recovery log is needed. If the process is killed, only
    empty directories can remain. No single rename replaces a file by a directory, or the reverse.
    """
    if len(changes) == 1:
        return not _is_turning(changes[0])
    files = [each for each in changes if not _is_made_on_the_way(each)]
    return len(files) == 1 and all(each in files or is_in(files[0].path, each.path) for each in changes)


def plan_single(changes: Sequence[Change]) -> list[PlannedChange]:
    """Return the plan of changes for which `is_single` is true."""
    return [
        PlannedChange(change, os.path.join(os.path.dirname(change.path), new_temporary()))
        for change in changes
    ]


def _is_made_on_the_way(change: Change) -> bool:
    return change.before is None and isinstance(change.after, DirectoryNode) and change.after.mode is None


def directories_above(path: str) -> Iterator[str]:
    """Yield the directories above a path, innermost first."""
    while path := os.path.dirname(path):
        yield path


def plan_changes(
    context: RootContext, changes: Sequence[Change], *, rename_directories: bool
) -> list[PlannedChange]:
    """Return the plan of each change."""
    paths = {change.path for change in changes}
    plans = _plan_renames(context, changes) if rename_directories else []
    renamed = {path for plan in plans for path in (plan.change.path, plan.source)}
    changes = [each for each in changes if renamed.isdisjoint([each.path, *directories_above(each.path)])]
    sources, before = moves(changes), {change.path: change.before for change in changes}
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
        plan = PlannedChange(change)
        # A hard link keeps the mtime of its file, so it can look stale. The suffix stops
        # `remove_stale_temporaries` from removing it.
        plan.temporary = os.path.join(directory, new_temporary("part"))
        plan.backup = os.path.join(directory, new_temporary("part"))
        source = sources.get(change.path, "")
        if isinstance(change.after, FileNode) and before.get(source) == change.after:
            plan.source = source
        plans.append(plan)
    return plans


def _plan_renames(context: RootContext, changes: Sequence[Change]) -> list[PlannedChange]:
    """Return plans that rename a directory that moves with all its entries, outermost first."""
    turning = _turning(changes)
    steady = [each for each in changes if turning.isdisjoint([each.path, *directories_above(each.path)])]
    removed = {each.path: each.before for each in steady if each.after is None}
    created = {each.path: each.after for each in steady if each.before is None}
    old_paths, new_paths = sorted(removed), sorted(created)
    plans: list[PlannedChange] = []
    renamed, above_renamed = set[str](), set[str]()
    for path, source in sorted(moves(steady).items()):
        if not renamed.isdisjoint([*directories_above(path), *directories_above(source)]):
            continue
        node, entries = created[path], _contents_of(path, created, new_paths)
        if not isinstance(node, DirectoryNode) or source in above_renamed:
            continue
        if entries == _contents_of(source, removed, old_paths):
            renamed |= {path, source}
            above_renamed.update(directories_above(source))
            with resolve_real(context, source) as resolved:
                inode = syscalls.lstat(resolved.parent, resolved.name).st_ino
            change = Change(path, None, node, source)
            plans.append(PlannedChange(change, "", "", source, inode, frozenset(entries.keys() - {""})))
    return plans


def _contents_of(
    directory: str, nodes: Mapping[str, Node | None], paths: Sequence[str]
) -> dict[str, tuple[Node | None, int | None]]:
    """Return a directory and its entries by relative path, with the modes of directories.

    `paths` are those of `nodes`, in order.
    """
    below = paths[
        bisect_left(paths, f"{directory}/") : bisect_left(paths, f"{directory}0")
    ]  # "0" follows "/"
    found = ((path[len(directory) + 1 :], nodes[path]) for path in (directory, *below))
    return {path: (node, node.mode if isinstance(node, DirectoryNode) else None) for path, node in found}


def _turning(changes: Iterable[Change]) -> set[str]:
    return {change.path for change in changes if _is_turning(change)}


def _is_turning(change: Change) -> bool:
    """Return True if a file or link becomes a directory, or the reverse."""
    before, after = change.before, change.after
    return bool(before and after) and isinstance(before, DirectoryNode) is not isinstance(
        after, DirectoryNode
    )


def directories_with_changes(plans: Sequence[PlannedChange]) -> set[str]:
    """Return the paths of the directories above changed paths, if a directory itself is changed too."""
    if not any(plan.change.of_directory for plan in plans):
        return set()
    changed = (path for plan in plans for path in (plan.change.path, plan.source))
    return {directory for path in changed for directory in directories_above(path)}


def steps_of(
    plans: Sequence[PlannedChange], directories: Container[str]
) -> list[tuple[StepKind, PlannedChange]]:
    """Return the steps in order. If possible, all new nodes are created before old ones are removed.

    A directory that is closed to its owner is open while entries in it are changed. `directories` are those
    of `directories_with_changes`.
    """
    if not any(plan.change.of_directory for plan in plans):
        gone = [plan for plan in reversed(plans) if plan.change.after is None]
        return [*(("put", plan) for plan in plans if plan.change.after), *(("remove", plan) for plan in gone)]
    with_changes = [plan for plan in plans if plan.change.path in directories]
    opened = [plan for plan in with_changes if _is_closed(plan.change.before)]
    closed = [plan for plan in with_changes if _is_closed(plan.change.after)]
    steps: list[tuple[StepKind, PlannedChange]] = [("open", plan) for plan in opened]
    turning = _turning(plan.change for plan in plans)
    for replaces_kind in (False, True):  # a file replaces a directory, or the reverse, at the path or above
        made: list[tuple[StepKind, PlannedChange]] = []
        put: list[tuple[StepKind, PlannedChange]] = []
        removed: list[tuple[StepKind, PlannedChange]] = []
        unmade: list[tuple[StepKind, PlannedChange]] = []
        for plan in plans:
            before, after = plan.change.before, plan.change.after
            path = plan.change.path
            turns = turning and not turning.isdisjoint([path, *directories_above(path)])
            if bool(turns) is not replaces_kind:
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
        steps += [*removed, *unmade, *made, *put] if replaces_kind else [*made, *put, *removed, *unmade]
    return [*steps, *(("close", plan) for plan in reversed(closed))]


def _is_closed(node: Node | None) -> bool:
    return isinstance(node, DirectoryNode) and node.mode is not None and ~node.mode & stat.S_IRWXU != 0
