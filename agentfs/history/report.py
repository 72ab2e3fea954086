"""Changes as results: lists for a program, text for a model, and the error for a conflict."""

import os
import time
from collections.abc import Callable, Iterable, Sequence

from agentfs import call_context
from agentfs.errors import StaleError
from agentfs.fs import Change, DirectoryNode, FileNode, LinkNode, Node, display_name, quote
from agentfs.history.journal import Move, step_count
from agentfs.history.patch import git_patch, line_counts
from agentfs.history.timeline import NetChanges, Step, moved_file
from agentfs.messages import Message, call
from agentfs.results import ChangesResult, EntryType, FileChange, UndoResult
from agentfs.text import bounded_lines, first_names, footer, plural

_PATCH_BYTES = 32 * 1024 * 1024
_PATCH_LINES = 200
_PATCH_CHARS = 10_000
_FILES_SHOWN = 50
_NAMES_SHOWN = 5

MayShow = Callable[[str], bool]


def file_changes(
    changes: Iterable[Change], *, count_lines: bool, may_show: MayShow = lambda _: True
) -> tuple[FileChange, ...]:
    """Return changes, at most one for each path, as typed data in order of path.

    Args:
        changes: The changes.
        count_lines: Count the lines added and removed, for which contents are loaded and compared.
        may_show: Returns whether the content of a path may be shown.
    """
    changes = sorted(changes, key=lambda change: change.path)
    deleted: dict[Node | None, str] = {
        c.before: c.path for c in changes if c.after is None and not isinstance(c.before, DirectoryNode)
    }
    listed: list[FileChange] = []
    for change in changes:
        visible_now = may_show(change.path)
        lines = line_counts(change) if count_lines and visible_now and not _is_late() else None
        listed.append(
            FileChange(
                path=display_name(change.path),
                action="created"
                if change.before is None
                else "deleted"
                if change.after is None
                else "changed",
                type=_type_of(change.after or change.before),
                moved_from=_displayed(deleted.get(change.after)) if change.before is None else None,
                added=lines[0] if lines else None,
                removed=lines[1] if lines else None,
                protected=not visible_now,
            )
        )
    return tuple(listed)


def changes_result(net: NetChanges, since: str | None, may_show: MayShow) -> ChangesResult:
    """Return the result of `changes`.

    Args:
        net: The net changes.
        since: The checkpoint that they begin at, or None.
        may_show: Returns whether the content of a path may be shown now, whatever was allowed earlier.
    """
    patch, missing = _bounded_patch([change for change in net.changes if may_show(change.path)])
    files = file_changes(net.changes, count_lines=True, may_show=may_show)
    notes = tuple(f"{quote(path)} was also changed by somebody else meanwhile" for path in net.external)
    hidden = [file.path for file in files if file.protected]
    if hidden:
        names = first_names([quote(path) for path in hidden], _NAMES_SHOWN)
        notes += (f"not in the patch, as reading it is not allowed: {names}",)
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
    return ChangesResult(files, patch, since, notes, text="\n".join(lines))


def _bounded_patch(changes: Iterable[Change]) -> tuple[bytes, Sequence[Change]]:
    """Return the patch of changes in order of path, as far as size and time allow, and what is not in it."""
    ordered = sorted(changes, key=lambda change: os.fsencode(change.path))
    parts: list[bytes] = []
    size = 0
    for number, change in enumerate(ordered):
        if size > _PATCH_BYTES or _is_late():
            return b"".join(parts), ordered[number:]
        for part in git_patch([change]):
            parts.append(part)
            size += len(part)
    return b"".join(parts), ()


def _is_late() -> bool:
    return time.monotonic() > call_context.deadline()


def undo_result(done: str, move: Move, undoable: int, redoable: int) -> UndoResult:
    """Return the result of `undo`, `redo` and `rollback`; `done` is how its text begins."""
    files = file_changes(move.changes, count_lines=False)
    notes = tuple(f"the directory {quote(path)} stays: something else is in it" for path in move.remaining)
    count = abs(move.steps)
    back = " back" if move.steps < 0 and done.startswith("Went") else ""
    head = f"{done} {step_count(count)}{back}." if count else f"{done} nothing to do."
    text = "\n".join([head, *notes, *_file_lines(files)])
    return UndoResult(count, files, undoable, redoable, notes, text=text)


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
        paths = [quote(file.path) for file in files if file.action == action]
        if paths:
            parts.append(f"{action} {first_names(paths, _NAMES_SHOWN)}")
    return "; ".join(parts)


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


def conflict_error(change: Change, found: Node | None, *, undoing: bool | None = None) -> StaleError:
    """Return the error for a path that something else has changed.

    Args:
        change: The change that was to be made.
        found: What is there instead of `change.before`.
        undoing: Whether a step was to be undone, or redone; None for neither.
    """
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
    diff = b"".join(git_patch([Change(change.path, change.before, found)]))
    lines = patch_lines(diff)
    read, action = call("read", path=display_name(change.path)), "change what is to be different."
    return StaleError(
        f"{what}, by somebody else; nothing was {doing}." + (" This is what changed:" if lines else ""),
        hint=Message("Call ", read, f" to see it, and {action}")
        if isinstance(found, FileNode)
        else f"Look at what is there now, and {action}",
        details={
            "path": display_name(change.path),
            "diff": diff.decode("utf-8", "backslashreplace"),
            "places": lines,
        },
    )


def _type_of(state: Node | None) -> EntryType:
    if isinstance(state, LinkNode):
        return "symlink"
    return "directory" if isinstance(state, DirectoryNode) else "file"


def _displayed(path: str | None) -> str | None:
    return None if path is None else display_name(path)
