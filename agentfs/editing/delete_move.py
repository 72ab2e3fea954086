"""`delete` and `move` of files, links and directories, so that `undo` can take them back."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined, ParameterName, Retry, ToolName, plural
from agentfs.editing.new_names import check_new_name
from agentfs.editing.rendering import error_of_many
from agentfs.errors import (
    AccessError,
    AgentFSError,
    AlreadyExistsError,
    ContentError,
    DeniedError,
    InvalidArgumentError,
    NotAFileError,
    RefusedError,
    SpecialFileError,
    TooLargeError,
)
from agentfs.fs import (
    Change,
    DirectoryNode,
    FileNode,
    MovedNode,
    MovedTree,
    Node,
    Root,
    display_name,
    entry_type,
    quote,
)
from agentfs.fs.oserrors import write_protected
from agentfs.history.database import Contents
from agentfs.history.report import changed_meanwhile
from agentfs.limits import Limits
from agentfs.results import DeleteResult, Entry, EntryType, MoveResult
from agentfs.shown.workspace_context import Context
from agentfs.text.display import with_text

_MOST_COUNTED = 100  # the most directory entries that an error counts
_MOST_MOVED = 20_000  # files and directories; each takes two changes of a journal step
_MOST_DELETED = 5_000  # undo writes each file anew, which must fit into one call
# Errors of one entry that concern the whole directory.
_FAULTS = (AccessError, ContentError, SpecialFileError, DeniedError)


_FINAL_SLASH = re.compile(r"(?<=[^/])(?:/\.?)+\Z")
_TYPES: dict[str, EntryType] = {"f": "file", "d": "directory", "l": "symlink", "o": "other"}


def delete_path(context: Context, path: str, *, recursive: bool) -> DeleteResult:
    """Delete a file, a link or a directory; a link is not followed."""
    root, _, limits, _ = context
    entry, real_path = _entry(root, path, "deleted")
    if entry.type == "directory" and not recursive:
        _check_empty(root, entry.path)
    nodes = _nodes_to_delete(root, entry, real_path, limits, recursive=recursive)
    _check_deletable(root, limits, entry, nodes)
    files = sum(not isinstance(node, DirectoryNode) for _, node in nodes)
    inside = f", {plural(files, 'file')}" if len(nodes) > 1 else ""
    what = "" if entry.type == "file" else f" ({entry.type}{inside})"
    changes = [Change(real_path + below, node, None) for below, node in nodes]
    notes = root.apply(changes, max_bytes=limits.file_bytes, conflict=partial(_conflict, root)).notes
    result = DeleteResult(entry.path, entry.type, files, notes=notes)
    return with_text(result, f"Deleted {quote(entry.path)}{what}.")


def _entry(root: Root, path: str, done: str) -> tuple[Entry, str]:
    """Return the entry at a path, and its real path; refuse the root. A final `/` does not follow a link."""
    bare = _FINAL_SLASH.sub("", path)
    path = bare if root.entry(bare).type == "symlink" else path
    entry, real_path = root.entry(path), root.real_path(path)
    if not real_path:
        raise RefusedError(f"The workspace root cannot be {done}.", details={"path": path})
    return entry, real_path


def _nodes_to_delete(
    root: Root, entry: Entry, real_path: str, limits: Limits, *, recursive: bool
) -> list[tuple[str, Node]]:
    """Return the nodes at and below a path, each with its path from there, from the top down."""
    read, keep = partial(root.node, max_bytes=limits.file_bytes), Contents().keep_node  # out of memory
    node = read(real_path)
    if node is None or isinstance(node, DirectoryNode) is not (entry.type == "directory"):
        raise _conflict(root, Change(real_path, node, None), node)
    if not isinstance(node, DirectoryNode) or not recursive:
        return [("", keep(node))]
    tree, faults = _tree_at(root, entry, real_path, _MOST_DELETED, {real_path: root.check_may_change})
    found: list[tuple[str, Node]] = []
    for below, each in tree.nodes():
        try:
            node = each if isinstance(each, DirectoryNode) else read(real_path + below)
            found += [(below, keep(node))] if node is not None else []
        except _FAULTS as error:
            faults[entry.path + below] = error
    _raise_all(faults)
    return found


def _check_deletable(root: Root, limits: Limits, entry: Entry, nodes: Sequence[tuple[str, Node]]) -> None:
    """Refuse to delete files that are write-protected, or a directory with more bytes than undo keeps."""
    size = 0
    for below, node in nodes:
        if isinstance(node, FileNode):
            size += node.size
            path = entry.path + below
            if not node.mode & 0o222 and node.mode & 0o444:  # a mode without rights protects nothing
                raise write_protected(path, node.mode)
            if root.policy.overwrite == "never":
                kept = f"{quote(path)} was kept: this workspace does not replace existing files."
                raise RefusedError(kept, details={"path": path})
    if len(nodes) > 1 and size > limits.snapshot_bytes:
        raise _too_large(entry, f"Its files have {plural(size, 'byte')}, more than undo keeps of one call.")


def move_path(context: Context, path: str, to: str) -> MoveResult:
    """Move a file, a link or a directory tree to a free path; a link is not followed."""
    root, tracker, limits, _ = context
    entry, real_path, target = _source_and_target(root, path, to)

    moved: Node = MovedNode(entry.type)
    files, what = 1, ""
    if entry.type == "directory":
        checks = {real_path: root.check_may_move, target: root.check_may_change}
        moved, faults = _tree_at(root, entry, real_path, _MOST_MOVED, checks)
        _raise_all(faults)
        files = sum(not isinstance(node, DirectoryNode) for _, node in moved.nodes())
        what = f" (directory, {plural(files, 'file')})"
    else:
        root.check_may_move(real_path)
    changes = [Change(real_path, moved, None), Change(target, None, moved, real_path)]
    applied = root.apply(changes, max_bytes=limits.file_bytes, conflict=partial(_conflict, root))
    tracker.record_copy(real_path, target)
    shown = root.display_path(target)
    result = MoveResult(entry.path, shown, entry.type, files, notes=applied.notes)
    return with_text(result, f"Moved {quote(entry.path)} to {quote(shown)}{what}.")


def _source_and_target(root: Root, path: str, to: str) -> tuple[Entry, str, str]:
    """Return the entry and the real path of the source, and the real path of the target, which is free."""
    entry, real_path = _entry(root, path, "moved")
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
        if existing.is_dir and not root.exists(inside):
            raise _taken(existing.path, Advice("To move into this directory, ", Retry({"to": inside}), "."))
        raise _taken(inside if existing.is_dir else existing.path)
    check_new_name(root, to, "to")
    return entry, real_path, target


def _tree_at(
    root: Root, entry: Entry, real_path: str, most: int, checks: Mapping[str, Callable[[str], None]]
) -> tuple[MovedTree, dict[str, AgentFSError]]:
    """List a directory and all that is in it, at most `most` nodes.

    `checks` has the check of entries by the directory that they are, or will be, below. The second value has
    their errors by the displayed path of the entry.
    """
    listing: list[tuple[str, DirectoryNode, dict[EntryType, list[str]]]] = []
    count, pending, faults = 1, [""], dict[str, AgentFSError]()
    while pending:
        call_context.check()
        below = pending.pop()
        path = real_path + below
        node = root.node(path, max_bytes=0, unread=True)
        with root.open_directory(entry.path + display_name(below)) as directory:
            if not isinstance(node, DirectoryNode) or directory.real_path != path:
                raise _conflict(root, Change(path, node, None), node)
            listed = dict(directory.typed_names())
        for top, check in checks.items():
            for name in [*root.unchangeable_names(top + below, [*listed])]:
                try:
                    check(f"{top}{below}/{name}")
                except _FAULTS as error:
                    faults[entry.path + f"{below}/{name}"] = error
                    listed.pop(name, None)
        count += len(listed)
        if count > most:
            raise _too_large(entry, f"It has more than {plural(most, 'entry', 'entries')}.")
        names: dict[EntryType, list[str]] = {}
        for name, type_ in listed.items():
            kind = _TYPES.get(type_) or entry_type(root.node(f"{path}/{name}", max_bytes=0, unread=True))
            names.setdefault(kind, []).append(name)
        listing.append((below, node, names))
        pending += [f"{below}/{name}" for name in names.get("directory", ())]
    return MovedTree(tuple(listing)), faults


def _raise_all(faults: Mapping[str, AgentFSError]) -> None:
    if len(faults) > 1:
        raise error_of_many(f"{plural(len(faults), 'entry', 'entries')} in it cannot be changed:", faults)
    for error in faults.values():
        raise error


def _too_large(entry: Entry, why: str) -> TooLargeError:
    return TooLargeError(why, hint="Take its entries one by one.", details={"path": entry.path})


def _check_empty(root: Root, path: str) -> None:
    with root.open_directory(path) as directory:
        names = next(directory.scan_parts(_MOST_COUNTED), ())
    if names:
        more = "at least " if len(names) == _MOST_COUNTED else ""
        raise NotAFileError(
            f"The directory {quote(path)} is not empty ({more}{plural(len(names), 'entry', 'entries')}).",
            hint=Advice("To delete it with its contents, ", Retry({"recursive": True}), "."),
            details={"path": path, "entries": len(names)},
        )


def _conflict(root: Root, change: Change, found: Node | None) -> AgentFSError:
    if change.before is None and found is not None:
        return _taken(root.display_path(change.path))
    return changed_meanwhile(change, found, root)


def _taken(path: str, hint: str = "") -> AlreadyExistsError:
    delete = Advice("delete it first with ", ToolName("delete"))
    return AlreadyExistsError(
        f"{quote(path)} already exists.",
        hint=hint or Advice(Joined(", or ", "Choose another path", delete), "."),
        details={"path": display_name(path)},
    )
