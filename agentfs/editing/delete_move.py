"""`delete` and `move`: remove or rename files, links and directories, so that `undo` can restore them."""

from collections.abc import Iterator
from functools import partial

from agentfs import call_context
from agentfs.advice import Advice, Joined, ParameterName, Retry, ToolName, call, plural
from agentfs.errors import (
    AccessError,
    AgentFSError,
    AlreadyExistsError,
    ContentError,
    InvalidArgumentError,
    NotAFileError,
    RefusedError,
    SpecialFileError,
    TooLargeError,
)
from agentfs.fs import Change, Directory, DirectoryNode, FileNode, Node, Root, display_name, entry_type, quote
from agentfs.fs.oserrors import write_protected
from agentfs.history.report import changed_meanwhile
from agentfs.history.store import Store
from agentfs.limits import Limits
from agentfs.read_tracker import ReadTracker
from agentfs.results import DeleteResult, Entry, MoveResult
from agentfs.text import with_text

_MOST_COUNTED = 100  # the most directory entries that an error counts
_MOST_MOVED = (
    10_000  # files and directories; each takes two of the 20,000 changes that a journal step may have
)
_PART = 1000  # directory entries to list at once


def delete_path(root: Root, limits: Limits, path: str) -> DeleteResult:
    """Delete a file, an empty directory or a link; a link is not followed."""
    entry, real_path = root.entry(path), root.real_path(path)
    node = root.node(real_path, max_bytes=limits.file_bytes)
    if not real_path:
        raise RefusedError("The workspace root cannot be deleted.", details={"path": path})
    if isinstance(node, DirectoryNode):
        _check_empty(root, entry.path)
    elif isinstance(node, FileNode):
        if not node.mode & 0o222:
            raise write_protected(entry.path, node.mode)
        if root.policy.overwrite == "never":
            raise RefusedError(
                f"{quote(entry.path)} was not deleted: this workspace does not replace existing files.",
                details={"path": entry.path},
            )
    try:
        applied = root.apply(
            [Change(real_path, node, None)],
            max_bytes=limits.file_bytes,
            conflict=partial(_conflict, root=root),
        )
    except AgentFSError:
        if isinstance(node, DirectoryNode):
            _check_empty(root, entry.path)  # another program may have added an entry meanwhile
        raise
    kind = entry_type(node)
    what = f" ({kind})" if kind != "file" else ""
    return with_text(
        DeleteResult(entry.path, kind, notes=applied.notes), f"Deleted {quote(entry.path)}{what}."
    )


def move_path(root: Root, tracker: ReadTracker, limits: Limits, path: str, to: str) -> MoveResult:
    """Move a file, a link or a directory tree to a free path; a link is not followed."""
    entry, real_path = root.entry(path), root.real_path(path)
    if not real_path:
        raise RefusedError("The workspace root cannot be moved.", details={"path": path})
    target = root.real_path(to, creating=True)
    if target == real_path:
        raise AlreadyExistsError(
            f"{quote(entry.path)} is already at this path.",
            hint=Advice("Nothing needs to be moved, or pass another path as ", ParameterName("to"), "."),
            details={"path": entry.path, "same": True},
        )
    if target.startswith(f"{real_path}/"):
        raise InvalidArgumentError(
            f"The directory {quote(entry.path)} cannot be moved into itself.",
            hint=Advice("Pass as ", ParameterName("to"), " a path outside this directory."),
            details={"parameter": "to", "path": entry.path},
        )
    if root.exists(to):
        existing = root.entry(to)
        inside = f"{existing.path}/{entry.name}"
        into = existing.is_dir and not root.exists(inside)
        raise _taken(
            existing.path, Advice("To move into this directory, ", Retry({"to": inside}), ".") if into else ""
        )
    try:
        nodes = list(_subtree(root, limits, entry, real_path))
        removed = [Change(real_path + below, node, None) for below, node in nodes]
        created = [Change(target + below, None, node) for below, node in nodes]
        applied = root.apply(
            [*removed, *created], max_bytes=limits.file_bytes, conflict=partial(_conflict, root=root)
        )
    except (AccessError, ContentError, SpecialFileError) as error:
        if entry.type != "directory":
            raise
        message = f"The directory {quote(entry.path)} was not moved: "
        raise type(error)(Advice(message, error.message), hint=error.hint, details=error.details) from None
    for below, _ in nodes:
        tracker.record_move(real_path + below, target + below)
    tracker.note_move(real_path, target)
    try:
        shown = root.entry(to).path
    except AgentFSError:  # the move itself has succeeded
        shown = display_name(target)
    files = sum(not isinstance(node, DirectoryNode) for _, node in nodes)
    what = f" (directory, {plural(files, 'file')})" if entry.type == "directory" else ""
    result = MoveResult(entry.path, shown, entry_type(nodes[0][1]), files, notes=applied.notes)
    return with_text(result, f"Moved {quote(entry.path)} to {quote(shown)}{what}.")


def _subtree(root: Root, limits: Limits, entry: Entry, real_path: str) -> list[tuple[str, Node]]:
    """Return the nodes at and below a path, each with its relative path."""
    node = root.node(real_path, max_bytes=limits.file_bytes)
    if node is None or (entry.type == "directory") is not isinstance(node, DirectoryNode):
        raise _conflict(Change(real_path, node, None), node, root)
    found = [("", node)]
    if entry.type == "directory":
        store = Store()  # the contents need not fit in memory
        with root.open_directory(entry.path) as top:
            if top.real_path != real_path:
                raise _conflict(Change(real_path, node, None), None, root)
            for change in _below(root, limits, top):
                if len(found) == _MOST_MOVED:
                    raise TooLargeError(
                        f"It has more than {_MOST_MOVED} files and directories.",
                        hint="Move its subdirectories one by one.",
                        details={"path": entry.path, "limit": _MOST_MOVED},
                    )
                kept = store.keep(change).before
                if kept is not None:
                    found.append((change.path[len(real_path) :], kept))
    return found


def _below(root: Root, limits: Limits, directory: Directory) -> Iterator[Change]:
    """Yield the removal of each entry below an open directory, from the top down."""
    for part in directory.scan_parts(_PART):
        for listed in part:
            call_context.check()
            path = f"{directory.real_path}/{listed.name}"
            node = root.node(path, max_bytes=limits.file_bytes)
            yield Change(path, node, None)
            if isinstance(node, DirectoryNode):
                with directory.open_directory(listed.name) as opened:
                    yield from _below(root, limits, opened)


def _check_empty(root: Root, path: str) -> None:
    with root.open_directory(path) as directory:
        names = next(directory.scan_parts(_MOST_COUNTED), ())
    if names:
        count = plural(len(names), "entry", "entries")
        count = f"{_MOST_COUNTED} or more entries" if len(names) == _MOST_COUNTED else count
        raise NotAFileError(
            f"The directory {quote(path)} is not empty ({count}).",
            hint=Advice("Call ", call("ls", path=path), ", and delete its entries first."),
            details={"path": path, "entries": len(names)},
        )


def _conflict(change: Change, found: Node | None, root: Root) -> AgentFSError:
    if change.before is None and found is not None:
        return _taken(change.path)
    return changed_meanwhile(change, found, root)


def _taken(path: str, hint: str = "") -> AlreadyExistsError:
    delete = Advice("delete it first with ", ToolName("delete"))
    return AlreadyExistsError(
        f"{quote(path)} already exists.",
        hint=hint or Advice(Joined(", or ", "Move to another path", delete), "."),
        details={"path": display_name(path)},
    )
