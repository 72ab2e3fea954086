"""`delete` and `move`: names that go, and contents that stay or can be brought back."""

from agentfs.editing.external_changes import stale
from agentfs.errors import (
    AgentFSError,
    AlreadyExistsError,
    NotAFileError,
    RefusedError,
    StaleError,
    UnreadError,
)
from agentfs.fs import Change, Current, DirectoryNode, FileNode, LinkNode, Node, Root, display_name, quote
from agentfs.fs.oserrors import write_protected
from agentfs.limits import Limits
from agentfs.messages import Joined, Message, ParameterName, Retry, ToolName, call
from agentfs.read_tracker import ReadTracker
from agentfs.results import DeleteResult, EntryType, MoveResult
from agentfs.text import decode, is_binary

_COUNTED = 100  # entries of a directory that an error counts


def delete_path(root: Root, shown: ReadTracker, limits: Limits, path: str) -> DeleteResult:
    """Delete a file whose present version has been seen, a link, or an empty directory.

    Args:
        root: The confined root; its policy says what may go.
        shown: What this workspace has shown.
        limits: For the size of the file.
        path: What is deleted; a link is not followed.

    Returns:
        What was deleted.

    Raises:
        UnreadError: `unread`: the file has not been seen whole.
        StaleError: `stale`: it has changed since it was seen, or just now.
        NotAFileError: `not_a_file`: a directory with something in it.
        RefusedError: `refused`: the root itself, or a file that is write-protected on disk.
    """
    entry, real_path = root.entry(path), root.real_path(path)
    state = root.node(real_path, max_bytes=limits.file_bytes)
    if not real_path:
        raise RefusedError("The root of the workspace is not deleted.", details={"path": path})
    if isinstance(state, DirectoryNode):
        _check_empty(root, entry.path)
    elif isinstance(state, FileNode):
        _check_may_go(root, shown, Current(entry.path, real_path, state.load()), state)
    try:
        root.apply([Change(real_path, state, None)], max_bytes=limits.file_bytes, conflict=_changed)
    except AgentFSError:
        if isinstance(state, DirectoryNode):
            _check_empty(root, entry.path)  # something has come into it meanwhile
        raise
    kind = _type_of(state)
    what = f" ({kind})" if kind != "file" else ""
    return DeleteResult(entry.path, kind, text=f"Deleted {quote(entry.path)}{what}.")


def move_path(root: Root, shown: ReadTracker, limits: Limits, path: str, to: str) -> MoveResult:
    """Move a file or link to where nothing is.

    Args:
        root: The confined root.
        shown: What this workspace has shown; it goes with the file.
        limits: For the size of the file.
        path: What is moved; a link is not followed.
        to: Its new path; missing directories are made.

    Returns:
        What was moved.

    Raises:
        AlreadyExistsError: `already_exists`: something is there.
        NotAFileError: `not_a_file`: a directory is to be moved.
    """
    entry, real_path = root.entry(path), root.real_path(path)
    state = root.node(real_path, max_bytes=limits.file_bytes)
    if isinstance(state, DirectoryNode):
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
        there = root.entry(to)
        inside = f"{there.path}/{entry.name}"
        raise AlreadyExistsError(
            f"There is something at {quote(there.path)} already.",
            hint=Message("To move into this directory, ", Retry({"to": inside}), ".")
            if there.is_dir and not root.exists(inside)
            else Message(
                Joined(
                    ", or ",
                    "Move to another path",
                    Message("delete what is there first with ", ToolName("delete")),
                ),
                ".",
            ),
            details={"path": there.path},
        )
    changes = [Change(real_path, state, None), Change(target, None, state)]
    root.apply(changes, max_bytes=limits.file_bytes, conflict=_changed)
    shown.record_move(real_path, target)
    try:
        arrived = root.entry(to).path
    except AgentFSError:  # it has arrived all the same
        arrived = display_name(target)
    return MoveResult(
        entry.path, arrived, _type_of(state), text=f"Moved {quote(entry.path)} to {quote(arrived)}."
    )


def _check_empty(root: Root, path: str) -> None:
    with root.open_directory(path) as directory:
        names = next(directory.scan_parts(_COUNTED), ())
    if names:
        count = f"{len(names)} or more" if len(names) == _COUNTED else len(names)
        raise NotAFileError(
            f"The directory {quote(path)} is not empty: {count} in it.",
            hint=Message("Call ", call("ls", path=path), ", and delete what is in it first."),
            details={"path": path, "entries": len(names)},
        )


def _check_may_go(root: Root, shown: ReadTracker, current: Current, state: FileNode) -> None:
    if not state.mode & 0o222:
        raise write_protected(current.path, state.mode)
    overwrite, data, revision = root.policy.overwrite, current.data, current.revision
    if overwrite == "never":
        raise RefusedError(
            f"{quote(current.path)} is not deleted: existing files are not replaced here.",
            details={"path": current.path},
        )
    # A binary file cannot be shown; undo brings it back as it does all others.
    if overwrite == "always" or data is None or revision is None or is_binary(data):
        return
    if shown.fully_read(current.real_path, revision):
        return
    last = shown.last(current.real_path)
    if last is not None and last.revision != revision:
        raise stale(current, decode(data).text, last.text, last.revision)
    part = "has not been read" if last is None else "has been read only in part"
    raise UnreadError(
        f"{quote(current.path)} {part}, and deleting takes away all of it.",
        hint=Message("Call ", call("read", path=current.path), " first."),
        details={"path": current.path, "revision": revision},
    )


def _changed(change: Change, _found: Node | None) -> AgentFSError:
    return StaleError(
        f"{quote(change.path)} has just been changed by somebody else; nothing was done.",
        hint="Look at it again, then repeat the call.",
        details={"path": change.path},
    )


def _type_of(state: Node | None) -> EntryType:
    if isinstance(state, LinkNode):
        return "symlink"
    return "directory" if isinstance(state, DirectoryNode) else "file"
