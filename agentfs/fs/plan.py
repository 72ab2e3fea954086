"""How a batch of changes is made: where new contents wait, what is kept meanwhile, and what is renamed."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agentfs.fs import syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.node import Change, DirectoryNode, FileNode, Node
from agentfs.fs.resolve import resolve_real

_SECOND_NAME = re.compile(r"(?:.*/)?\.agentfs-[0-9a-f]{16}\.(?:tmp|part)", re.DOTALL)

StepKind = Literal["make", "rename", "put", "remove", "unmake"]  # directories are made, renamed and unmade


@dataclass
class PlannedChange:
    """How one change of a batch is made; each path may be ""."""

    change: Change
    temporary: str = ""  # where the new content waits
    backup: str = ""  # a second name of what is there now
    source: str = ""  # the removed file that the new content is moved from, or the directory that is renamed
    inode: int = 0  # of the directory `source`, which is renamed with all in it
    entries: frozenset[str] = frozenset()  # the paths of everything in that directory, from there
    late: bool = False  # whether a file is replaced by a directory, here or above, or the other way round


def new_temporary(suffix: str = "tmp") -> str:
    """Return a name for a temporary; `remove_stale_temporaries` recognises those that end in `.tmp`."""
    return f".agentfs-{os.urandom(8).hex()}.{suffix}"


def is_second_name(path: str) -> bool:
    """Return True for the path of a temporary, a backup, or the private directory of some."""
    return _SECOND_NAME.fullmatch(path) is not None


def plan_single(changes: Sequence[Change]) -> list[PlannedChange] | None:
    """Return how to make one change, or a new file with the new directories above it; None for others.

    One rename or removal makes it, so it needs no recovery log: a kill leaves at most empty directories.
    """
    if len(changes) > 1:
        files = [each for each in changes if not _is_made_on_the_way(each)]
        if len(files) != 1:
            return None
        if not all(each in files or _is_above(each.path, files[0].path) for each in changes):
            return None
    return [
        PlannedChange(change, os.path.join(os.path.dirname(change.path), new_temporary()))
        for change in changes
    ]


def _is_made_on_the_way(change: Change) -> bool:
    return change.before is None and isinstance(change.after, DirectoryNode) and change.after.mode is None


def _is_above(directory: str, path: str) -> bool:
    return path.startswith(f"{directory}/")


def directories_above(path: str) -> Iterator[str]:
    """Yield the directories above a path, from the inside out."""
    while path := os.path.dirname(path):
        yield path


def plan_changes(
    context: RootContext, changes: Sequence[Change], *, rename_directories: bool
) -> list[PlannedChange]:
    """Return how to make each of the changes."""
    paths = {change.path for change in changes}
    turning = {
        change.path
        for change in changes
        if change.before and change.after and _is_directory(change.before) is not _is_directory(change.after)
    }
    plans = _plan_renames(context, changes, turning) if rename_directories else []
    moved = {path for plan in plans for path in (plan.change.path, plan.source)}
    changes = [each for each in changes if moved.isdisjoint([each.path, *directories_above(each.path)])]
    # Each removed file is moved to one path only; of equal ones, those whose paths come in the same order.
    removed: dict[FileNode, list[str]] = {}
    for change in sorted(changes, key=lambda change: change.path, reverse=True):
        if isinstance(change.before, FileNode) and change.after is None:
            removed.setdefault(change.before, []).append(change.path)
    places: dict[str, str] = {}
    for change in sorted(changes, key=lambda change: change.path):
        above = list(directories_above(change.path))
        # Second names are in a directory that outlives all changes of the batch. If that is not the file's
        # own, which others may be unable to enter, they are in a private one.
        outermost = next((path for path in reversed(above) if path in paths), change.path)
        directory = os.path.dirname(outermost)
        if outermost != change.path:
            place = os.path.join(directory, new_temporary("part"))
            directory = places.setdefault(directory, place)
        plan = PlannedChange(change, late=not turning.isdisjoint([change.path, *above]))
        # Unlike the temporary of a single change they are never swept when they look old: a hard link keeps
        # the mtime of its file.
        plan.temporary = os.path.join(directory, new_temporary("part"))
        plan.backup = os.path.join(directory, new_temporary("part"))
        if isinstance(change.after, FileNode) and change.before is None:
            plan.source = removed[change.after].pop() if removed.get(change.after) else ""
        plans.append(plan)
    return plans


def _plan_renames(context: RootContext, changes: Sequence[Change], turning: set[str]) -> list[PlannedChange]:
    """Return plans that rename removed directories to created ones with equal content, outermost first."""
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
    """Return for each directory everything in it, itself first: relative path, node, mode of a directory."""
    contents: dict[str, list[tuple[str, Node | None, int | None]]] = {}
    for path, node in sorted(nodes.items()):
        mode = node.mode if isinstance(node, DirectoryNode) else None
        if isinstance(node, DirectoryNode):
            contents[path] = [("", node, mode)]
        for above in directories_above(path):
            if above in contents:
                contents[above].append((path[len(above) + 1 :], node, mode))
    return contents


def _is_directory(node: Node | None) -> bool:
    return isinstance(node, DirectoryNode)


def steps_of(plans: Sequence[PlannedChange]) -> list[tuple[StepKind, PlannedChange]]:
    """Return what is to be done, in order: where possible, the new comes before the old goes."""
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
