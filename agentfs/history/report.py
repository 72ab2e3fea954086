"""Changes as results, as a patch in git's format, and as the error for a conflict."""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from agentfs import call_context
from agentfs.advice import Advice, call
from agentfs.errors import StaleError
from agentfs.fs import Change, DirectoryNode, FileNode, LinkNode, Node, display_name, entry_type, quote
from agentfs.history.timeline import Move, NetChanges, Step, moved_file
from agentfs.results import ChangesResult, FileChange, UndoResult
from agentfs.text import Blob, bounded_lines, first_names, footer, git_patch, hunks, plural

_PATCH_BYTES = 32 * 1024 * 1024
_PATCH_LINES = 200
_PATCH_CHARS = 10_000
_FILES_SHOWN = 50
_NAMES_SHOWN = 5

MayShow = Callable[[str], bool]


def file_changes(
    changes: Iterable[Change], *, count_lines: bool, may_show: MayShow = lambda _: True
) -> tuple[FileChange, ...]:
    """Return changes, at most one for each path, as typed data in order of path."""
    changes = sorted(changes, key=lambda change: change.path)
    deleted: dict[Node | None, list[str]] = {}  # equal files are moved in the order of their paths
    for change in reversed(changes):
        if change.after is None and not isinstance(change.before, DirectoryNode):
            deleted.setdefault(change.before, []).append(change.path)
    listed: list[FileChange] = []
    for change in changes:
        visible_now = may_show(change.path)
        origins = deleted.get(change.after) if change.before is None else None
        origin = origins.pop() if origins else None
        lines = _line_counts(change) if count_lines and visible_now and not _is_late() else None
        listed.append(
            FileChange(
                path=display_name(change.path),
                action=_action(change),
                type=entry_type(change.after or change.before),
                moved_from=display_name(origin) if origin is not None else None,
                added=lines[0] if lines else None,
                removed=lines[1] if lines else None,
                protected=not visible_now,
            )
        )
    return tuple(listed)


def _action(change: Change) -> Literal["created", "changed", "deleted"]:
    if change.before is None:
        return "created"
    return "deleted" if change.after is None else "changed"


def changes_result(net: NetChanges, since: str | None, may_show: MayShow) -> ChangesResult:
    """Return the result of `changes`."""
    patch, missing = _bounded_patch([change for change in net.changes if may_show(change.path)])
    files = file_changes(net.changes, count_lines=True, may_show=may_show)
    notes = tuple(f"{quote(path)} was also changed by somebody else meanwhile" for path in net.external)
    hidden = [file.path for file in files if file.protected]
    if hidden:
        notes += (f"not in the patch, as reading it is not allowed: {name_paths(hidden)}",)
    if net.omitted:
        notes += (
            f"left out: {plural(net.omitted, 'path')} changed long ago, whose first state is no longer kept",
        )
    if missing:
        notes += (
            f"not in the patch, as it would be too large or take too long: {plural(len(missing), 'path')}",
        )
    head = f"{plural(len(files), 'path')} changed." if files else "Nothing is changed."
    lines = [head, *notes, *_file_lines(files), *patch_lines(patch)]
    return ChangesResult(files, patch, since, notes=notes, text="\n".join(lines))


def _bounded_patch(changes: Iterable[Change]) -> tuple[bytes, Sequence[Change]]:
    """Return the patch of changes in order of path, as far as size and time allow, and what is not in it."""
    ordered = sorted(changes, key=lambda change: os.fsencode(change.path))
    patch = bytearray()
    for number, change in enumerate(ordered):
        if len(patch) > _PATCH_BYTES or _is_late():
            return bytes(patch), ordered[number:]
        patch += _patch_of(change)
    return bytes(patch), ()


def _is_late() -> bool:
    return time.monotonic() > call_context.deadline()


def undo_result(done: str, move: Move, undoable: int, redoable: int) -> UndoResult:
    """Return the result of `undo`, `redo` and `rollback`; `done` is how its text begins."""
    files = file_changes(move.changes, count_lines=False)
    stay = (f"the directory {quote(path)} stays: something else is in it" for path in move.remaining)
    notes = (*stay, *move.notes)
    count = abs(move.steps)
    back = " back" if move.steps < 0 and done.startswith("Went") else ""
    head = f"{done} {plural(count, 'step')}{back}." if count else f"{done} nothing to do."
    text = "\n".join([head, *notes, *_file_lines(files)])
    return UndoResult(count, files, undoable, redoable, notes=notes, text=text)


def _file_lines(files: Sequence[FileChange]) -> list[str]:
    lines: list[str] = []
    for file in files[:_FILES_SHOWN]:
        kind = "" if file.type == "file" else f" {file.type}"
        counts = "" if file.added is None else f" +{file.added} -{file.removed}"
        hidden = " (protected)" if file.protected else ""
        origin = f" (moved from {quote(file.moved_from)})" if file.moved_from else ""
        lines.append(f"{file.action}{kind} {quote(file.path)}{counts}{origin}{hidden}")
    if len(files) > _FILES_SHOWN:
        lines.append(footer(f"{len(files) - _FILES_SHOWN} more"))
    return lines


def describe_step(step: Step) -> str:
    """Return what a step did, in one line."""
    moved = moved_file(step)
    if moved is not None:
        return f"moved {quote(moved[0])} to {quote(moved[1])}"
    files = file_changes(step.changes, count_lines=False)
    # Directories are created on the way to files; they are named only where there is nothing else.
    files = tuple(file for file in files if file.type != "directory") or files
    parts: list[str] = []
    for action in ("created", "changed", "deleted"):
        paths = [file.path for file in files if file.action == action]
        if paths:
            parts.append(f"{action} {name_paths(paths)}")
    return "; ".join(parts)


def name_paths(paths: Sequence[str], most: int = _NAMES_SHOWN) -> str:
    """Return some paths, quoted, and how many more there are."""
    return first_names([quote(path) for path in paths], most)


def patch_lines(patch: bytes) -> list[str]:
    """Return the lines of a patch for a model: bounded, and with every character visible."""
    count = patch.count(b"\n")
    end = 0
    for _ in range(min(count, _PATCH_LINES)):
        end = patch.index(b"\n", end) + 1
    lines = patch[:end].decode("utf-8", "backslashreplace").split("\n")[:-1]
    shown = bounded_lines(lines, _PATCH_CHARS)
    if len(shown) < count:
        shown.append(footer(f"{count - len(shown)} more lines of the patch"))
    return shown


def conflict_error(
    change: Change,
    found: Node | None,
    *,
    undoing: bool | None = None,
    may_show: MayShow = lambda _: True,
    by: str = "somebody else",
) -> StaleError:
    """Return the error for a path that something else has changed; contents only if they may be shown."""
    path = quote(change.path)
    doing = {True: "undone", False: "redone", None: "made"}[undoing]
    if found is None:
        what = f"{path} is not there any more"
    elif change.before is None:
        what = f"There is something at {path} by now"
    elif isinstance(found, FileNode) and isinstance(change.before, FileNode):
        same = found.digest == change.before.digest
        what = f"The mode of {path} has changed" if same else f"{path} has changed since"
    else:
        what = f"There is something else at {path} by now"
    shown = may_show(change.path)
    diff = _patch_of(Change(change.path, change.before, found)) if shown else b""
    lines = patch_lines(diff)
    read, action = call("read", path=display_name(change.path)), "change what is to be different."
    return StaleError(
        f"{what}, by {by}; nothing was {doing}." + (" This is what changed:" if lines else ""),
        hint=Advice("Call ", read, f" to see it, and {action}")
        if shown and isinstance(found, FileNode)
        else f"Look at what is there now, and {action}",
        details={
            "path": display_name(change.path),
            "diff": diff.decode("utf-8", "backslashreplace"),
            "places": lines,
        },
    )


def _patch_of(change: Change) -> bytes:
    return git_patch(change.path, _blob(change.before), _blob(change.after))


def _line_counts(change: Change) -> tuple[int, int] | None:
    """Return how many lines a change adds and removes; None if either content is binary."""
    old, new = _blob(change.before), _blob(change.after)
    if old.is_binary or new.is_binary:
        return None
    counts = {"+": 0, "-": 0}
    for part in hunks(old.text, new.text):
        if part[:1] in counts:
            # Do not count "\ No newline at end of file" as a line.
            counts[part[0]] += part.count("\n") - part.count("\n\\ ")
    return counts["+"], counts["-"]


def _blob(node: Node | None) -> Blob:
    """Return a node as git has it, which knows no directories and of a mode only its x bit."""
    if isinstance(node, FileNode):
        return Blob("100755" if node.mode & 0o100 else "100644", node.load())
    return Blob("120000", os.fsencode(node.target)) if isinstance(node, LinkNode) else Blob("", b"")
