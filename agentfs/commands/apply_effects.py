"""Apply the effects of a staged command as one batch: judged, merged, recorded as one step, or refused."""

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate

from agentfs.base import call_context
from agentfs.commands.effects import Effects, set_times
from agentfs.commands.git_index import masks_in_index
from agentfs.commands.git_settings import is_lost_object, permitted
from agentfs.commands.hidden_files import status_of
from agentfs.commands.masks import Mask
from agentfs.commands.request import Surroundings
from agentfs.commands.staged_process import Staged
from agentfs.errors import ConflictError, ProtectedError
from agentfs.fs import Change, DirectoryNode, FileNode, Root, quote
from agentfs.fs.apply import directories_above
from agentfs.fs.node import revision_of
from agentfs.fs.protect import fold
from agentfs.history.log import Step
from agentfs.history.recording import OpenRecording, recorded_result
from agentfs.history.report import changed_meanwhile, name_paths
from agentfs.history.scan import with_moves
from agentfs.history.step_merge import Lines, merge_nodes
from agentfs.limits import Limits
from agentfs.results import RecordedResult
from agentfs.text.display import first_names, line_ranges
from agentfs.tree.walk import VCS_NAMES

_OBEYED = "because a command may not change"  # what git runs or obeys
_EMPTIED = "because git would get protected files without content"


def apply_effects(
    around: Surroundings, effects: Effects, staged: Staged, label: str, *, preview: bool
) -> RecordedResult:
    """Apply all effects, or raise an error and apply none; return what changed.

    Raises:
        AgentFSError: `protected` for a protected name; `refused` for a rule or by the user; `conflict` if
            others have changed the same lines meanwhile.
    """
    merged = _merged(around, effects, staged)
    return apply_merged(around, merged, effects, staged.masks, label, preview=preview)


def apply_merged(
    around: Surroundings,
    merged: list[Change],
    effects: Effects,
    masks: Mapping[str, Mask],
    label: str,
    *,
    preview: bool,
) -> RecordedResult:
    """Apply changes from the present state, which were made of `effects`, as `apply_effects` does."""
    root, journal, limits = around.root, around.journal, around.limits
    for each in [each for each in merged if is_lost_object(each)]:
        effects.leave("removal of a git object", each.path)
        merged.remove(each)
    # An empty file has an empty mask, and an index may have it.
    contents = {path: mask.content for path, mask in masks.items() if mask.hides}
    exempt = permitted(merged, root.is_protected, root) | _made_with_directories(merged, root, contents)
    exempt |= effects.free
    guarded = (each.path for each in merged if root.is_protected(each.path))
    refused = {*effects.refused, *(path for path in guarded if path not in exempt)}
    merged = _without_refused(merged, effects, {path: path for path in refused}, _OBEYED)
    merged = _without_refused(merged, effects, masks_in_index(merged, contents), _EMPTIED)
    if others := [path for path in refused if not git_directory(path)]:
        hint = "Run it without these changes; only the user may make them."
        raise _protected(root, others, "changed protected names", hint)
    changes = with_moves(merged)
    of_git = {each.path: top for each in changes if (top := git_directory(each.path))}
    kept = tuple(each for each in changes if each.path not in of_git)
    touched = [each.path for each in kept if each.changes_nothing]
    unkept = {*_too_large(kept, limits), *touched, *of_git}
    lost = tuple(sorted(unkept.difference(touched, of_git) | {*of_git.values()}))
    kept = tuple(each for each in changes if each.path not in unkept)

    @contextmanager
    def log_step(made: tuple[Change, ...]) -> Generator[tuple[Change, ...]]:
        nonlocal kept
        recorded = tuple(each for each in made if each.path not in unkept)
        with journal.logging_step(recorded, label=label, lost=lost) as kept:
            yield made

    if changes and not preview:
        root.view(exempt=exempt).apply(
            changes,
            max_bytes=limits.snapshot_bytes,
            conflict=lambda change, found: changed_meanwhile(change, found, root),
            log_step=log_step,
        )
        set_times(root, _times(changes, effects))
    return result_of(around, label, kept, lost, effects, touched, can_undo=not preview)


def result_of(
    around: Surroundings,
    label: str,
    changes: tuple[Change, ...] = (),
    lost: tuple[str, ...] = (),
    effects: Effects | None = None,
    touched: Sequence[str] = (),
    *,
    can_undo: bool = False,
) -> RecordedResult:
    """Return the changes of a staged command as those of a recording."""
    root, limits = around.root, around.limits
    left = {} if effects is None else effects.not_applied
    counts = {what: len(paths) for what, paths in left.items()}
    notes = [
        f"not applied: {what}: {name_paths([*map(root.display_path, sorted(paths))])}"
        for what, paths in sorted(left.items())
    ]
    opened = OpenRecording(label, root, limits, not_covered=counts)
    opened.parts = [Step(changes, 0.0, label, lost)] if changes else []
    opened.lost = dict.fromkeys(lost)
    given = opened, root, around.may_show, limits
    shown = [*map(root.display_path, touched)]
    return recorded_result(*given, touched=shown, more_notes=notes, can_undo=can_undo)


def _times(changes: Sequence[Change], effects: Effects) -> dict[str, int]:
    """Return the times of files that were written; not of those that were merged with others' changes."""
    made = {path: change.after for path, change in effects.changes.items()}
    return {
        each.path: effects.times[each.path]
        for each in changes
        if each.after is made.get(each.path) and each.path in effects.times
    }


def _merged(around: Surroundings, effects: Effects, staged: Staged) -> list[Change]:
    """Return the changes from the present state, with what others have changed since the command began."""
    root = around.root
    ours: dict[str, Change] = {}
    for change in (each for step in around.journal.log.after(staged.position) for each in step.changes):
        ours.setdefault(change.path, change)
    merged: list[Change] = []
    clashes: dict[str, Lines] = {}
    for change in effects.changes.values():
        call_context.check()
        path, present = change.path, change.before
        if path in ours:
            first = ours[path].before
            outcome = merge_nodes(path, first, change.after, present, once=True)
            if outcome.clash is not None:
                clashes[path] = outcome.clash.lines
            merged.append(Change(path, present, outcome.node))
            continue
        if _is_changed(root, change, staged):
            clashes[path] = ()
        merged.append(change)
    if clashes:
        raise _conflict(root, clashes)
    return [each for each in merged if not each.changes_nothing or _is_touched(root, each, effects)]


def _without_refused(
    changes: list[Change], effects: Effects, refused: Mapping[str, str], why: str
) -> list[Change]:
    """Return the changes without any in the directories of git that have refused ones, and note these.

    Half of the changes of a repository could lose a commit. `refused` maps each path to the one to name.
    """
    tops = {top for path in refused if (top := git_directory(path))}
    for path, named in refused.items():
        if top := git_directory(path):
            effects.leave(f"everything in {quote(top)}, {why}", named)
    above = {each for top in tops for each in directories_above(top)}

    def stays(change: Change) -> bool:
        return not isinstance(change.after, DirectoryNode) and change.path in above

    return [each for each in changes if git_directory(each.path) not in tops and not stays(each)]


def _is_touched(root: Root, change: Change, effects: Effects) -> bool:
    """Return True if only the time of a file is different."""
    status, time = status_of(root, change.path), effects.times.get(change.path)
    return status is not None and time not in (None, status.st_mtime_ns)


def _is_changed(root: Root, change: Change, staged: Staged) -> bool:
    """Return True if another program has created, deleted or changed a path since the command began."""
    path, present = change.path, change.before
    directory, _, name = path.rpartition("/")
    names = staged.seen.names.get(directory)
    if names is not None and (name in names) is not (present is not None):
        return present != change.after  # unless both have done the same
    is_file = not isinstance(present, DirectoryNode | None)
    status = status_of(root, path)
    return is_file and (status is None or status.st_ctime_ns > staged.began)  # an mtime may be in the future


def _conflict(root: Root, clashes: Mapping[str, Lines]) -> ConflictError:
    shown = {root.display_path(path): lines for path, lines in sorted(clashes.items())}
    where = [quote(path) + (f" ({line_ranges(lines)})" if lines else "") for path, lines in shown.items()]
    return ConflictError(
        f"{first_names(where, 5)} changed while the command ran; nothing was applied.",
        hint="Run the command again.",
        details={
            "conflicts": [{"path": path, "lines": [*map(list, lines)]} for path, lines in shown.items()]
        },
    )


def _protected(root: Root, paths: Collection[str], what: str, hint: str) -> ProtectedError:
    shown = [*map(root.display_path, sorted(set(paths)))]
    return ProtectedError(
        f"The command has {what}: {name_paths(shown)}; nothing was applied.",
        hint=hint,
        details={"path": shown[0], "paths": shown},
    )


def _made_with_directories(changes: Sequence[Change], root: Root, contents: Mapping[str, bytes]) -> set[str]:
    """Return the created paths with a read-protected name in a directory that the command has made too.

    They hold nothing of the user, such as a key for the tests of a package. Copies of masks are not among
    them. Neither are repositories without a work tree, whose settings run code.
    """
    made = {each.path for each in changes if each.before is None and isinstance(each.after, DirectoryNode)}
    masks = {(fold(path.rpartition("/")[2]), revision_of(content)) for path, content in contents.items()}

    def is_free(change: Change) -> bool:
        path, after = change.path, change.after
        above, _, name = path.rpartition("/")
        is_copy = isinstance(after, FileNode) and (fold(name), after.digest) in masks
        in_repository = any(fold(each).endswith(".git") for each in path.split("/"))
        return above in made and not is_copy and not in_repository and not root.is_write_protected(path)

    return {each.path for each in changes if each.before is None and each.after and is_free(each)}


def git_directory(path: str) -> str:
    """Return the outermost directory of version control in which a path lies, or ""."""
    parts = path.split("/")
    at = next((number for number, name in enumerate(parts) if name.lower() in VCS_NAMES), None)
    return "" if at is None else "/".join(parts[: at + 1])


def _too_large(changes: Sequence[Change], limits: Limits) -> list[str]:
    """Return the paths whose contents do not fit what is kept for undo; the smallest are kept."""
    by_size = sorted((_size(each), each.path) for each in changes)
    totals = accumulate(size for size, _ in by_size)
    return [path for (_, path), total in zip(by_size, totals, strict=True) if total > limits.snapshot_bytes]


def _size(change: Change) -> int:
    return sum(node.size for node in (change.before, change.after) if isinstance(node, FileNode))
