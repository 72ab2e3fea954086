"""Results, patches in git's format, and conflict errors, made from changes."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined, NextCall, call, plural
from agentfs.errors import AgentFSError, BinaryError, ConflictError, StaleError
from agentfs.fs import Change, FileNode, LinkNode, Node, Root, display_name, entry_type, quote
from agentfs.history.log import Step, file_moves, filled_changes
from agentfs.history.step_merge import Clash
from agentfs.permissions import ProposedChange
from agentfs.results import ChangesResult, FileChange
from agentfs.text.decoding import decode
from agentfs.text.diff import bounded_lines, git_header, unified_diff
from agentfs.text.display import continuation, first_names, footer, line_ranges
from agentfs.text.git_patch import Blob, git_patch

_PATCH_BYTES = 32 * 1024 * 1024
_LARGE = 16 * 1024 * 1024  # of one content in a patch; a binary one takes several times as much memory
_BINARY = b"\nGIT binary patch\n"  # a line of a patch
_PATCH_LINES = 200
_PATCH_CHARS = 10_000
_FILES_SHOWN = 50
_NAMES_SHOWN = 5
MOST_OFFERED = 50  # paths in a suggested call

MayShow = Callable[[str], bool]
Display = Callable[[str], str]  # converts a real path to one that the caller can pass back


def file_changes(
    changes: Iterable[Change],
    *,
    patches: Mapping[str, bytes] = {},
    may_show: MayShow = lambda _: True,
    labels: Mapping[str, str] = {},
    display: Display = display_name,
) -> tuple[FileChange, ...]:
    """Return changes, at most one for each path, as results in order of path; a moved file is one result.

    Lines are counted in `patches`. `labels` has the label of the last recording that changed a path.
    """
    listed: list[FileChange] = []
    for change in paired(changes):
        visible = all(map(may_show, paths_of(change)))
        counts = _line_counts(patches[change.path]) if change.path in patches else (None, None)
        listed.append(
            FileChange(
                path=display(change.path),
                action=_action(change),
                type=entry_type(change.after or change.before),
                moved_from=display(change.moved_from) if change.moved_from else None,
                added=counts[0],
                removed=counts[1],
                protected=not visible,
                label=labels.get(change.path, ""),
            )
        )
    return tuple(listed)


def paired(changes: Iterable[Change]) -> list[Change]:
    """Return changes in order of path; that of a moved file begins with the node at its old path.

    Its removal there is left out, and `moved_from` is set for no other change.
    """
    by_path = {change.path: change for change in changes}
    origins = file_moves(by_path.values())
    paired: list[Change] = []
    for path in sorted(by_path.keys() - {*origins.values()}):
        origin = origins.get(path, "")
        paired.append(Change(path, by_path[origin or path].before, by_path[path].after, origin))
    return paired


def paths_of(change: Change) -> list[str]:
    """Return the path of a change, and the old path of a moved file."""
    return [change.path, change.moved_from] if change.moved_from else [change.path]


def _action(change: Change) -> Literal["created", "changed", "deleted", "moved"]:
    if change.moved_from:
        return "moved"
    if change.before is None:
        return "created"
    return "deleted" if change.after is None else "changed"


def changes_result(
    changes: Sequence[Change], since: str | None, root: Root, labels: Mapping[str, str], notes: Sequence[str]
) -> ChangesResult:
    """Return the result of `changes`; `labels` has the label of the last recording of a path."""
    may_show, display = root.may_show, root.display_path
    patches, missing = bounded_patches(changes, may_show)
    files = file_changes(changes, patches=patches, may_show=may_show, labels=labels, display=display)
    notes = (*notes, *patch_notes(files, missing))
    head = f"{plural(len(files), 'path')} changed." if files else "Nothing is changed."
    caches = new_caches(changes)
    inside = tuple(f"{each}/" for each in caches)
    read = {path: patch for path, patch in patches.items() if not path.startswith(inside)}
    shown, following, way = _shown_patches(read, since, display)
    lines = [head, *notes, *file_lines(files, [*map(display, caches)]), *shown, *filter(None, [way])]
    patch = b"".join(patches.values())
    return ChangesResult(files, patch, since, notes=tuple(notes), text=Joined("\n", *lines), next=following)


def _shown_patches(
    patches: Mapping[str, bytes], since: str | None, display: Display
) -> tuple[list[str], NextCall | None, str]:
    """Return the lines of patches by path for a model, the call for the paths left out, and a footer.

    A patch of a binary file says nothing to a model; the list above names the file.
    """
    binary = [path for path, patch in patches.items() if _BINARY in patch]
    patches = {path: patch for path, patch in patches.items() if path not in binary}
    unshown = f"{plural(len(binary), 'binary file')} without a patch here" if binary else ""
    shown: list[str] = []
    room = _PATCH_CHARS
    for number, (path, patch) in enumerate(patches.items()):
        part, complete = _first_lines(patch, _PATCH_LINES - len(shown), room)
        shown += part
        room -= sum(map(len, part)) + len(part)
        if not complete:
            rest = [*patches][number or 1 :]  # one that is too long alone is not tried again
            scope = {} if since is None else {"since": since}
            paths = [*map(display, rest[:MOST_OFFERED])]
            following = call("changes", **scope, paths=paths) if rest else None
            left = sum(each.count(b"\n") for each in patches.values()) - len(shown)
            more = f"{plural(left, 'more line')} of the patch"
            is_there = number == 0 and b"\n+++ /dev/null\n" not in patch
            file = Advice("the file: ", call("read", path=display(path))) if is_there else ""
            return shown, following, footer(unshown, more, file, continuation(following))
    return shown, None, footer(unshown)


def _first_lines(patch: bytes, most: int, max_chars: int) -> tuple[list[str], bool]:
    """Return the first lines of a patch for a model, and True if they are all. Every character is visible."""
    count = patch.count(b"\n")
    end = 0
    for _ in range(min(count, most)):
        end = patch.index(b"\n", end) + 1
    head, mark, body = patch[:end].partition(b"\n@@ ")
    try:
        text = body.decode()
    except UnicodeDecodeError:  # as `read` shows a file of an unknown encoding
        text = body.decode("latin-1")
    text = (head + mark).decode("utf-8", "backslashreplace") + text
    shown = bounded_lines(text.split("\n")[:-1], max_chars)
    return shown, len(shown) == count


def patch_notes(files: Sequence[FileChange], missing: int) -> list[str]:
    """Return notes on files that the patch leaves out."""
    notes: list[str] = []
    hidden = [path for file in files if file.protected for path in (file.moved_from, file.path) if path]
    if hidden:
        notes.append(f"not in the patch, because reading is not allowed: {name_paths(hidden)}")
    if missing:
        notes.append(
            f"not in the patch, because it would be too large or take too long: {plural(missing, 'path')}"
        )
    return notes


def bounded_patches(changes: Iterable[Change], may_show: MayShow) -> tuple[dict[str, bytes], int]:
    """Return the patches that may be shown, by path, and the number that size and time leave out."""
    shown = [each for each in paired(changes) if all(map(may_show, paths_of(each)))]
    small = [each for each in shown if not _is_large(each)]
    patches, size = dict[str, bytes](), 0
    for number, change in enumerate(sorted(small, key=lambda each: os.fsencode(each.path))):
        if size > _PATCH_BYTES or _is_late():
            return patches, len(shown) - number
        patches[change.path] = patch = _patch_of(change)
        size += len(patch)
    return patches, len(shown) - len(small)


def _is_large(change: Change) -> bool:
    return any(isinstance(each, FileNode) and each.size > _LARGE for each in (change.before, change.after))


def proposed_changes(changes: Sequence[Change], root: Root) -> tuple[str, tuple[ProposedChange, ...]]:
    """Return the diff and the texts of planned changes, except those that may not be shown."""
    may_show, display = root.may_show, root.display_path
    changes = filled_changes(changes, lambda each: root.node(each.moved_from, max_bytes=_PATCH_BYTES))
    proposed: list[ProposedChange] = []
    diffs: list[str] = []
    left = _PATCH_BYTES
    for change in paired(changes):
        path, origin, before, after = change.path, change.moved_from, change.before, change.after
        if not all(map(may_show, paths_of(change))):
            diffs.append(f"{display(path)}: not shown, because reading is not allowed\n")
            continue
        left -= sum(node.size for node in (before, after) if isinstance(node, FileNode))
        if left < 0 or _is_late():
            diffs.append(f"{display(path)}: not shown, because the diff would be too large\n")
            continue
        old, new = _text_of(before), _text_of(after)
        if origin:
            proposed.append(ProposedChange(display(origin), old, None))
        proposed.append(ProposedChange(display(path), None if origin else old, new))
        was, will_be = _blob(before), _blob(after)
        if not (was.mode or will_be.mode):  # a diff shows no directories
            continue
        turned = was.mode and will_be.mode and was.mode != will_be.mode
        if origin or turned or (old is None and new is None):
            diffs.append(git_header(path, was.mode, will_be.mode, origin))
        if old is None and new is None and was.content != will_be.content:
            diffs.append("Binary files differ\n")
        diffs.append(unified_diff(old, new, path))
    return "".join(diffs), tuple(proposed)


def _text_of(node: Node | None) -> str | None:
    """Return the text of a file or link, or None if there is none."""
    try:
        return decode(_blob(node).content).text if isinstance(node, FileNode | LinkNode) else None
    except BinaryError:
        return None


def _is_late() -> bool:
    return time.monotonic() > call_context.deadline()


def new_caches(changes: Iterable[Change]) -> list[str]:
    """Return the directories that some changes have created with a `.gitignore` that ignores all in them."""
    return [
        path.removesuffix("/.gitignore")
        for path, after in ((each.path, each.after) for each in changes if each.before is None)
        if path.endswith("/.gitignore") and isinstance(after, FileNode) and b"*" in after.load().split()
    ]


def file_lines(files: Sequence[FileChange], caches: Sequence[str] = ()) -> list[str]:
    """Return a line for each of some files, one for each cache, and a footer if there are more."""
    lines: list[str] = []
    for cache in caches:
        inside = [each for each in files if each.path.startswith(f"{cache}/")]
        files = [each for each in files if each not in inside and each.path != cache]
        lines.append(f"created {quote(cache)} with {plural(len(inside), 'path')}, which it ignores itself")
    for file in files[:_FILES_SHOWN]:
        kind = "" if file.type == "file" else f" {file.type}"
        same = file.added == file.removed == 0
        kind = f" the mode of{kind}" if same and file.action == "changed" else kind
        counts = "" if file.added is None or same else f" +{file.added} -{file.removed}"
        hidden = " (protected)" if file.protected else ""
        origin = f" from {quote(file.moved_from)}" if file.moved_from else ""
        lines.append(f"{file.action}{kind} {quote(file.path)}{origin}{counts}{hidden}")
    if len(files) > _FILES_SHOWN:
        lines.append(footer(f"{len(files) - _FILES_SHOWN} more"))
    return lines


def describe_step(step: Step) -> str:
    """Return what a step did, in one line."""
    files = file_changes(step.changes)
    # Directories are created on the way to files; they are named only if there is nothing else.
    files = tuple(file for file in files if file.type != "directory") or files
    parts = [f"moved {quote(file.moved_from)} to {quote(file.path)}" for file in files if file.moved_from]
    del parts[_NAMES_SHOWN:]
    for action in ("created", "changed", "deleted"):
        paths = [file.path for file in files if file.action == action]
        if paths:
            parts.append(f"{action} {name_paths(paths)}")
    heads = [quote(step.label)] if step.label else []
    for what, is_meant in (("takes back", True), ("makes again", False)):
        numbers = [str(number) for number, takes_back, _ in step.toggles or () if takes_back is is_meant]
        if numbers:
            heads.append(f"{what} step{'s' if len(numbers) > 1 else ''} {first_names(numbers, _NAMES_SHOWN)}")
    return ": ".join(filter(None, [", ".join(heads), "; ".join(parts)]))


def name_paths(paths: Sequence[str]) -> str:
    """Return the first paths, quoted, and the number of others."""
    return first_names([*map(quote, paths)], _NAMES_SHOWN)


def path_notes(display: Display, reasons: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a note for each reason that some paths have."""
    return [f"{why}: {name_paths([*map(display, paths)])}" for why, paths in reasons.items() if paths]


def patch_lines(patch: bytes) -> list[str]:
    """Return the lines of a patch for a model: bounded, and with every character visible."""
    shown, complete = _first_lines(patch, _PATCH_LINES, _PATCH_CHARS)
    if not complete:
        left = patch.count(b"\n") - len(shown)
        shown.append(footer(f"{plural(left, 'more line')} of the patch"))
    return shown


def changed_meanwhile(change: Change, found: Node | None, root: Root) -> AgentFSError:
    """Return the error for a path that was changed just before a call could change it."""
    return clash_error([Clash(change.path, change.before, found)], root, done="changed", kind=StaleError)


def clash_error(
    clashes: Sequence[Clash],
    root: Root,
    *,
    done: str,
    rest: NextCall | None = None,
    kind: type[AgentFSError] = ConflictError,
) -> AgentFSError:
    """Return the error for clashes; `rest` is the call for the other paths, `done` a participle."""
    display, recorder = root.display_path, root.recorder
    happened: list[str] = []
    for each in clashes[:_FILES_SHOWN]:
        by = recorder.origin(each.path, each.found) if recorder else "another program"
        happened.append(f"{_what_happened(quote(display(each.path)), each)} by {by}")
    path, expected, found, _ = clashes[0]
    is_shown = root.may_show(path)
    diff = _patch_of(Change(path, expected, found)) if is_shown else b""
    places = patch_lines(diff)
    message = f"{happened[0]}; nothing was {done}." + (" This is what changed:" if places else "")
    if len(clashes) > 1:
        message = f"{len(clashes)} paths were changed since, in the same places; nothing was {done}:"
        places = [*happened, *places]
    hint = "Look at what is there now, and change what should be different."
    if isinstance(found, FileNode) and is_shown:
        read = call("read", path=display(path))
        hint = Advice("Call ", read, " to see it, and change what should be different.")
    details = {
        "path": display(path),
        "diff": diff.decode("utf-8", "backslashreplace"),
        "places": places,
        "conflicts": [{"path": display(each.path), "lines": [*map(list, each.lines)]} for each in clashes],
    }
    if rest is not None:
        hint = Advice("Call ", rest, " for the other paths. ", hint)
    return kind(message, hint=hint, details=details)


def _what_happened(name: str, clash: Clash) -> str:
    _, expected, found, lines = clash
    if found is None:
        return f"{name} was deleted"
    if expected is None:
        return f"{name} was created"
    if isinstance(found, FileNode) and isinstance(expected, FileNode):
        if found.digest == expected.digest and found.mode != expected.mode:
            return f"The mode of {name} was changed"
        return f"{name} was changed" + (f" ({line_ranges(lines)})" if lines else "")
    return f"{name} was replaced"


def _patch_of(change: Change) -> bytes:
    return git_patch(change.path, _blob(change.before), _blob(change.after), change.moved_from)


def _line_counts(patch: bytes) -> tuple[int, int] | tuple[None, None]:
    """Return how many lines the patch of one path adds and removes; None for both of binary contents."""
    if _BINARY in patch:
        return None, None
    # A link that replaces a file has two patches.
    lines = [part.partition(b"\n@@ ")[2] for part in patch.split(b"\ndiff --git ")]
    return sum(each.count(b"\n+") for each in lines), sum(each.count(b"\n-") for each in lines)


def _blob(node: Node | None) -> Blob:
    """Return a node as git stores it: without directories, and with only the x bit of the mode."""
    if isinstance(node, FileNode):
        return Blob("100755" if node.mode & 0o100 else "100644", node.load())
    return Blob("120000", os.fsencode(node.target)) if isinstance(node, LinkNode) else Blob("", b"")
