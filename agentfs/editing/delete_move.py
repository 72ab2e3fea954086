"""`delete` and `move`: files, links and empty directories, all of which `undo` brings back."""

from agentfs.errors import AgentFSError, AlreadyExistsError, NotAFileError, RefusedError, StaleError
from agentfs.fs import Change, DirectoryNode, FileNode, Node, Root, display_name, entry_type, quote
from agentfs.fs.oserrors import write_protected
from agentfs.limits import Limits
from agentfs.messages import Joined, Message, ParameterName, Retry, ToolName, call
from agentfs.read_tracker import ReadTracker
from agentfs.results import DeleteResult, MoveResult

_MOST_COUNTED = 100  # entries of a directory that an error counts


def delete_path(root: Root, limits: Limits, path: str) -> DeleteResult:
    """Delete a file, an empty directory, or a link (not followed); what it has can be brought back."""
    entry, real_path = root.entry(path), root.real_path(path)
    node = root.node(real_path, max_bytes=limits.file_bytes)
    if not real_path:
        raise RefusedError("The root of the workspace is not deleted.", details={"path": path})
    if isinstance(node, DirectoryNode):
        _check_empty(root, entry.path)
    elif isinstance(node, FileNode):
        if not node.mode & 0o222:
            raise write_protected(entry.path, node.mode)
        if root.policy.overwrite == "never":
            raise RefusedError(
                f"{quote(entry.path)} is not deleted: existing files are not replaced here.",
                details={"path": entry.path},
            )
    try:
        root.apply([Change(real_path, node, None)], max_bytes=limits.file_bytes, conflict=_conflict)
    except AgentFSError:
        if isinstance(node, DirectoryNode):
            _check_empty(root, entry.path)  # something has come into it meanwhile
        raise
    kind = entry_type(node)
    what = f" ({kind})" if kind != "file" else ""
    return DeleteResult(entry.path, kind, text=f"Deleted {quote(entry.path)}{what}.")


def move_path(root: Root, tracker: ReadTracker, limits: Limits, path: str, to: str) -> MoveResult:
    """Move a file, or a link, which is not followed, to a path where nothing is."""
    entry, real_path = root.entry(path), root.real_path(path)
    node = root.node(real_path, max_bytes=limits.file_bytes)
    if isinstance(node, DirectoryNode):
        raise NotAFileError(
            f"{quote(entry.path)} is a directory, and only files and links are moved.",
            hint="Move the files in it one by one.",
            details={"path": entry.path},
        )
    target = root.real_path(to, creating=True)
    if target == real_path:
        raise AlreadyExistsError(
            f"{quote(entry.path)} is at this path already.",
            hint=Message("Nothing needs to be moved, or pass another path as ", ParameterName("to"), "."),
            details={"path": entry.path, "same": True},
        )
    if root.exists(to):
        existing = root.entry(to)
        inside = f"{existing.path}/{entry.name}"
        delete = Message("delete what is there first with ", ToolName("delete"))
        raise AlreadyExistsError(
            f"There is something at {quote(existing.path)} already.",
            hint=Message("To move into this directory, ", Retry({"to": inside}), ".")
            if existing.is_dir and not root.exists(inside)
            else Message(Joined(", or ", "Move to another path", delete), "."),
            details={"path": existing.path},
        )
    changes = [Change(real_path, node, None), Change(target, None, node)]
    root.apply(changes, max_bytes=limits.file_bytes, conflict=_conflict)
    tracker.record_move(real_path, target)
    try:
        shown = root.entry(to).path
    except AgentFSError:  # it has been moved all the same
        shown = display_name(target)
    text = f"Moved {quote(entry.path)} to {quote(shown)}."
    return MoveResult(entry.path, shown, entry_type(node), text=text)


def _check_empty(root: Root, path: str) -> None:
    with root.open_directory(path) as directory:
        names = next(directory.scan_parts(_MOST_COUNTED), ())
    if names:
        count = f"{len(names)} or more" if len(names) == _MOST_COUNTED else len(names)
        raise NotAFileError(
            f"The directory {quote(path)} is not empty: {count} in it.",
            hint=Message("Call ", call("ls", path=path), ", and delete what is in it first."),
            details={"path": path, "entries": len(names)},
        )


def _conflict(change: Change, _found: Node | None) -> AgentFSError:
    return StaleError(
        f"{quote(change.path)} has just been changed by somebody else; nothing was done.",
        hint="Look at it again, then repeat the call.",
        details={"path": change.path},
    )
