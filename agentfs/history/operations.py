"""The methods of a workspace that look at its journal: checkpoint, changes; and its transactions."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

from agentfs.base import call_context
from agentfs.base.advice import plural
from agentfs.errors import AgentFSError, InvalidArgumentError
from agentfs.fs import Change, DirectoryNode, FileNode, LinkNode, MovedNode, Node, Root, quote
from agentfs.history.database import Contents
from agentfs.history.journal import Journal
from agentfs.history.log import is_in_scope, is_same_node, net_changes, with_contents
from agentfs.history.report import changes_result, name_paths, path_notes
from agentfs.history.step_merge import Disk
from agentfs.history.undo import RequestedPaths, real_paths, roll_back_transaction
from agentfs.results import ChangesResult, CheckpointResult
from agentfs.shown.workspace_context import Context

_MAX_NAME = 200
_MOST_ANSWERED = 2**24  # bytes of first versions in one answer
_BY_OTHERS, _UNKNOWN = "changed since by another program", "not compared with the disk"


def checkpoint(journal: Journal, name: str | None) -> CheckpointResult:
    """Name the present state of the files."""
    if name is not None and not 0 < len(name) <= _MAX_NAME:
        raise InvalidArgumentError(
            f"A checkpoint's name has 1 to {_MAX_NAME} characters.", details={"parameter": "name"}
        )
    journal.settle_recordings()
    made = journal.checkpoint(name)
    return CheckpointResult(made, journal.log.position, text=f"Checkpoint {quote(made)}.")


def changes(journal: Journal, context: Context, since: str | None, paths: RequestedPaths) -> ChangesResult:
    """Return how the tree differs from its state at a checkpoint."""
    root = context.root
    journal.settle_recordings()
    steps, dropped = journal.steps_since(since)
    scope = real_paths(root, paths)
    read = Disk(root, context.limits.file_bytes, Contents().keep_node).node
    marked: dict[str, list[str]] = {_BY_OTHERS: [], _UNKNOWN: []}
    found: list[Change] = []
    for net in net_changes(with_contents(steps, read)):
        if not (root.is_usable(net.path) and is_in_scope(net.path, scope)):
            continue
        now = net.after
        try:
            call_context.check()
            now = read(net.path)
        except AgentFSError:  # protected, too large, a special file, or too late
            marked[_UNKNOWN] += [net.path] if root.may_show(net.path) else []
        if not net.of_directory and not is_same_node(net.after, now):
            marked[_BY_OTHERS].append(net.path)
        found.append(Change(net.path, net.before, now, net.moved_from))
    notes = path_notes(root.display_path, marked)
    if dropped:
        notes.append(f"without the first {plural(dropped, 'step')}, which are no longer kept")
    labels = {each.path: step.label for step in steps if step.label for each in step.changes}
    shown = [each for each in found if not each.changes_nothing]
    return changes_result(shown, since, root, labels, notes)


@contextmanager
def transaction(journal: Journal, context: Context) -> Generator[tuple[Root, Journal]]:
    """Give a root and a journal whose steps are one for undo. If the block raises, take them back.

    Lines that others have changed meanwhile stay; a note on the exception names their files.
    """
    root, inner = context.root.view(recorder=None), journal.in_group()
    root.recorder = inner
    process = os.getpid()
    try:
        yield root, inner
    except BaseException as error:
        if os.getpid() == process:
            with call_context.uncounted(), call_context.limited(context.limits.timeout):
                take_back = partial(_take_back, inner, context._replace(root=root), error)
                call_context.run_to_end(take_back)
        raise
    finally:
        inner.ended = True
        journal.flush()


def _take_back(journal: Journal, context: Context, error: BaseException) -> None:
    try:
        clashes = roll_back_transaction(journal, context)
    except AgentFSError as failed:
        error.add_note(f"The changes of the transaction could not be taken back: {failed.message}")
        return
    if clashes:
        paths = name_paths([context.root.display_path(each.path) for each in clashes])
        error.add_note(f"Changed by others meanwhile, so not taken back: {paths}")


def first_versions(journal: Journal, skip: int) -> dict[str, list[bytes]]:
    """Return what was at each path before its first recorded change, without the first `skip` paths.

    A file is its content and its mode in octal, a link its target, and nothing is an empty list. Directories
    and files that were moved unread are left out. An answer ends with the path
    that makes it larger than `_MOST_ANSWERED`.
    """
    first: dict[str, Node | None] = {}
    for change in (each for step in journal.log.after(0) for each in step.changes):
        if not isinstance(change.before, DirectoryNode | MovedNode):
            first.setdefault(change.path, change.before)
    found: dict[str, list[bytes]] = {}
    size = 0
    for path, node in [*first.items()][skip:]:
        found[path] = version_of(node)
        size += sum(map(len, found[path])) + len(path)
        if size > _MOST_ANSWERED:
            break
    return found


def version_of(node: Node | None) -> list[bytes]:
    """Return a node as `first_versions` does."""
    if isinstance(node, FileNode):
        return [node.load(), b"%o" % node.mode]
    return [os.fsencode(node.target)] if isinstance(node, LinkNode) else []
