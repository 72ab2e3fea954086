"""Apply a batch of changes, all of them or none: lock the files, check the changes, and make them."""

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace

from agentfs.fs import oserrors
from agentfs.fs.batch import Applied, Batch, NotRenamed, Terms
from agentfs.fs.context import RootContext
from agentfs.fs.file import node_at
from agentfs.fs.lock import ATTEMPTS, file_locks
from agentfs.fs.node import Change, DirectoryNode, EntryNode, FileNode, Node, Recorder, StagedNodes
from agentfs.fs.plan import directories_above, is_single, plan_changes, plan_single
from agentfs.fs.recovery_log import recovery_log
from agentfs.fs.resolve import ResolvedPath, resolve_real


def apply_changes(context: RootContext, root_path: str, changes: Sequence[Change], terms: Terms) -> Applied:
    """Implement `Root.apply`."""
    if terms.held is not None:
        return _apply_held(context, terms.held, changes, terms)
    # Resolve paths below a file as if the file were already removed.
    gone = StagedNodes()
    for change in changes:
        if isinstance(change.before, EntryNode) and isinstance(change.after, DirectoryNode):
            gone.add(Change(change.path, change.before, None))
    cleared = replace(context, staged=gone) if gone.nodes else context

    requested = {change.path for change in changes}

    def context_at(path: str) -> RootContext:
        at = context if path in gone.nodes else cleared
        # Who may create a node may create the directories above it.
        return at if path in requested else replace(at, access=None)

    files = [change.path for change in changes if not change.of_directory]
    with lock_files(cleared, root_path, files), _excluding_others(terms.recorder):
        changes = _with_parents(cleared, changes, terms.max_bytes)
        changes = _checked(context_at, changes, terms)
        if is_single(changes):
            path = max((change.path for change in changes), key=len)
            with resolve_real(context, path, create_parents=True) as held:
                return Batch(context, plan_single(changes), terms._replace(held=held)).apply(changes)
        for rename_directories in (True, False):
            plans = plan_changes(context, changes, rename_directories=rename_directories)
            with suppress(NotRenamed), recovery_log(context, root_path, plans) as log:
                return Batch(context, plans, terms, log).apply(changes)
    raise AssertionError  # a plan without renames does not raise NotRenamed


def _apply_held(context: RootContext, held: ResolvedPath, changes: Sequence[Change], terms: Terms) -> Applied:
    """Make the only change at a path that the caller has locked and checked."""
    creates = changes[0].before is None
    if held.missing:
        made = [Change(path, None, DirectoryNode()) for path in held.missing_directories]
        changes = [*made, *changes]
    with _excluding_others(terms.recorder if creates else None):
        return Batch(context, plan_single(changes), terms).apply(changes)


def _excluding_others(recorder: Recorder | None) -> AbstractContextManager[object]:
    # Directories have no locks, so keep other threads from adding or removing entries.
    return nullcontext() if recorder is None else recorder.exclusive()


@contextmanager
def lock_files(context: RootContext, root_path: str, paths: Sequence[str]) -> Generator[None]:
    """Lock the files at some real paths for the block."""
    for _ in range(ATTEMPTS):
        keys = {lock_key(context, path): path for path in paths}
        with file_locks(keys, root_path) as waited:
            # If a path now leads to another file, these are the wrong locks.
            if not waited or keys == {lock_key(context, path): path for path in paths}:
                yield
                return
    raise oserrors.kept_changing(paths[0])


def lock_key(context: RootContext, path: str) -> str:
    """Return the key of the lock of the file at a real path."""
    with resolve_real(context, path, create_parents=True) as resolved:
        return resolved.lock_key


def _with_parents(context: RootContext, changes: Sequence[Change], max_bytes: int) -> list[Change]:
    """Return the changes, plus one for each missing directory above a created node."""
    wanted = {change.path: change for change in changes}
    for change in changes:
        if change.before is not None or change.after is None:
            continue
        for above in directories_above(change.path):
            if above in wanted or node_at(context, above, max_bytes) is not None:
                break
            wanted[above] = Change(above, None, DirectoryNode())
    return list(wanted.values())


def _already_made(changes: Sequence[Change], node: Callable[[str], Node | None]) -> set[str]:
    """Return the paths that already have the wanted node. Of a moved file, return both paths or neither."""
    present = {change.path: node(change.path) for change in changes}
    missing = {each.after for each in changes if each.before is None and present[each.path] != each.after}
    return {
        each.path
        for each in changes
        if present[each.path] == each.after and not (each.after is None and each.before in missing)
    }


def _checked(
    context_at: Callable[[str], RootContext], changes: Sequence[Change], terms: Terms
) -> list[Change]:
    """Drop the changes that are made already. Raise an error if another is forbidden or in conflict."""

    def node(path: str) -> Node | None:
        return node_at(context_at(path), path, terms.max_bytes)

    wanted: list[Change] = []
    made: set[str] | None = None
    for change in changes:
        path, before, after = change.path, change.before, change.after
        present = node(path)
        if isinstance(after, DirectoryNode) and isinstance(present, DirectoryNode):
            if not isinstance(before, DirectoryNode) or after.mode == present.mode:
                continue  # created already
        elif present is None and after is None and change.of_directory:
            continue  # removed already
        elif present != before:
            if terms.undoing and made is None:
                made = _already_made(changes, node)
            if made is None or path not in made:
                raise terms.conflict(change, present)
            continue
        context = context_at(path)
        with resolve_real(context, path, create_parents=True) as resolved:
            resolved.check_may_change()
        if isinstance(before, FileNode) and isinstance(present, FileNode):
            before = replace(before, metadata=present.metadata)
        wanted.append(replace(change, before=present if isinstance(present, DirectoryNode) else before))
    return wanted
