"""What is said of changes: the lists for a program, the words for a model, the error for a conflict."""

from collections.abc import Callable, Iterable, Sequence

from agentfs.errors import StaleError
from agentfs.fs import Change, DirectoryNode, FileNode, LinkNode, Node, display_name, quote
from agentfs.journal.patch import git_patch, line_counts
from agentfs.journal.steps import Step, Sum, is_move
from agentfs.messages import Message, call
from agentfs.results import ChangesResult, EntryType, FileChange
from agentfs.text import cut_line, footer, visible

_PATCH_LINES = 200
_PATCH_CHARS = 10_000
_LINE_CHARS = 400
_FILES_SHOWN = 50
_NAMES_SHOWN = 5

Shows = Callable[[str], bool]


def file_changes(
    changes: Iterable[Change], *, counted: bool, shows: Shows = lambda _: True
) -> tuple[FileChange, ...]:
    """Return changes as a program is given them, in order of path.

    Args:
        changes: At most one for each path.
        counted: Count the lines, for which contents are read and compared.
        shows: Tells whether the content of a path may be shown, for what is said of it.
    """
    changes = sorted(changes, key=lambda change: change.path)
    gone: dict[Node | None, str] = {
        c.before: c.path for c in changes if c.after is None and not isinstance(c.before, DirectoryNode)
    }
    listed: list[FileChange] = []
    for change in changes:
        shown = shows(change.path)
        lines = line_counts(change) if counted and shown else None
        listed.append(
            FileChange(
                path=display_name(change.path),
                action="created"
                if change.before is None
                else "deleted"
                if change.after is None
                else "changed",
                type=_type_of(change.after or change.before),
                moved_from=_shown(gone.get(change.after)) if change.before is None else None,
                added=lines[0] if lines else None,
                removed=lines[1] if lines else None,
                protected=not shown,
            )
        )
    return tuple(listed)


def changes_result(total: Sum, since: str | None, shows: Shows) -> ChangesResult:
    """Return what steps come to as `changes` tells it.

    Args:
        total: What they come to.
        since: The checkpoint that they begin at, or None.
        shows: Tells whether the content of a path may be shown now, whatever could be shown when it changed.
    """
    files = file_changes(total.changes, counted=True, shows=shows)
    patch = b"".join(git_patch(change for change in total.changes if shows(change.path)))
    notes = tuple(f"{quote(path)} was also changed by somebody else meanwhile" for path in total.foreign)
    hidden = [file.path for file in files if file.protected]
    if hidden:
        more = f" and {len(hidden) - _NAMES_SHOWN} more" if len(hidden) > _NAMES_SHOWN else ""
        names = ", ".join(map(quote, hidden[:_NAMES_SHOWN]))
        notes += (f"not in the patch, as reading it is not allowed: {names}{more}",)
    if total.lost:
        count = "1 path" if total.lost == 1 else f"{total.lost} paths"
        notes += (f"left out: {count} changed long ago, whose first state is not kept any more",)
    paths = "1 path" if len(files) == 1 else f"{len(files)} paths"
    head = f"{paths} changed." if files else "Nothing is changed."
    lines = [head, *notes, *file_lines(files), *patch_lines(patch)]
    return ChangesResult(files, patch, since, notes, text="\n".join(lines))


def file_lines(files: Sequence[FileChange]) -> list[str]:
    """Return the lines that list changes for a model."""
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


def step_words(step: Step) -> str:
    """Return what a step did, in one line."""
    moved = is_move(step)
    if moved is not None:
        return f"moved {quote(moved[0])} to {quote(moved[1])}"
    files = file_changes(step.changes, counted=False)
    # Directories are made on the way to files; they are told of where nothing else is.
    files = tuple(file for file in files if file.type != "directory") or files
    parts: list[str] = []
    for action in ("created", "changed", "deleted"):
        paths = [quote(file.path) for file in files if file.action == action]
        more = f" and {len(paths) - _NAMES_SHOWN} more" if len(paths) > _NAMES_SHOWN else ""
        if paths:
            parts.append(f"{action} {', '.join(paths[:_NAMES_SHOWN])}{more}")
    return "; ".join(parts)


def patch_lines(patch: bytes) -> list[str]:
    """Return the lines of a patch as a model is shown them: bounded and visible."""
    count = patch.count(b"\n")
    end = 0
    for _ in range(min(count, _PATCH_LINES)):
        end = patch.index(b"\n", end) + 1
    lines = patch[:end].decode("utf-8", "backslashreplace").split("\n")[:-1]
    shown: list[str] = []
    left = _PATCH_CHARS
    for line in lines:
        part = visible(cut_line(line, _LINE_CHARS))
        left -= len(part) + 1
        if left < 0:
            break
        shown.append(part)
    if len(shown) < count:
        shown.append(footer(f"{count - len(shown)} more lines of the patch"))
    return shown


def conflict_error(change: Change, found: Node | None, *, back: bool | None = None) -> StaleError:
    """Return the error for a path that somebody else has changed.

    Args:
        change: What was to be made.
        found: What stands there instead of `change.before`.
        back: Whether a step was to be taken back, or made again; None for neither.
    """
    path = quote(change.path)
    doing = {True: "undone", False: "redone", None: "made"}[back]
    if found is None:
        what = f"{path} is not there any more"
    elif change.before is None:
        what = f"There is something at {path} by now"
    elif isinstance(found, FileNode) and isinstance(change.before, FileNode):
        same = found.digest == change.before.digest
        what = f"The mode of {path} has changed" if same else f"{path} has changed since"
    else:
        what = f"At {path} stands something else by now"
    diff = b"".join(git_patch([Change(change.path, change.before, found)]))
    lines = patch_lines(diff)
    read, then = call("read", path=display_name(change.path)), "change what is to be different."
    return StaleError(
        f"{what}, by somebody else; nothing was {doing}." + (" This is what changed:" if lines else ""),
        hint=Message("Call ", read, f" to see it, and {then}")
        if isinstance(found, FileNode)
        else f"Look at what is there now, and {then}",
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


def _shown(path: str | None) -> str | None:
    return None if path is None else display_name(path)
