"""Apply the effects of a staged command as one batch: judged, merged, recorded as one step, or refused."""

import os
import sys
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.commands.effects import Effects, set_times
from agentfs.commands.git_index import masks_in_index
from agentfs.commands.git_settings import git_directory, is_lost_object, refused_paths
from agentfs.commands.hidden_files import status_of
from agentfs.commands.masks import Mask
from agentfs.commands.request import Surroundings
from agentfs.errors import ProtectedError
from agentfs.fs import Change, DirectoryNode, FileNode, Node, Root, quote
from agentfs.fs.apply import Applied, directories_above
from agentfs.fs.context import TIME_RESOLUTION
from agentfs.fs.protect import fold
from agentfs.history.log import Step
from agentfs.history.recording import OpenRecording, recorded_result
from agentfs.history.report import changed_meanwhile, clash_error, name_paths, path_notes
from agentfs.history.scan import with_moves
from agentfs.history.step_merge import Clash, merge_nodes
from agentfs.limits import Limits
from agentfs.results import RecordedResult

_OBEYED = "because a command may not change"  # what git runs or obeys
_EMPTIED = "because git would get protected files without content"


class Since(NamedTuple):
    """When the changes of an overlay began.

    Attributes:
        began: A time of the file clock: every change of a file since then has a later time.
        position: The position of the journal.
        names: The names in each directory that was looked into, by its real path.
    """

    began: int
    position: int
    names: Mapping[str, Collection[str]] = {}


class Merged(NamedTuple):
    """Effects as changes from the present state.

    Attributes:
        changes: The changes.
        merged: The paths with the changes of both sides.
        equal: The paths that both sides have changed in the same way.
    """

    changes: list[Change]
    merged: list[str]
    equal: list[str]


def merge_effects(
    around: Surroundings,
    effects: Effects,
    since: Since,
    bases: Mapping[str, Node | None],
    *,
    once: bool = False,
) -> Merged:
    """Return effects as changes from the present state, with what others have changed meanwhile.

    Args:
        around: The workspace.
        effects: The effects.
        since: When they began.
        bases: What both sides began with, by path; the journal of the workspace knows more.
        once: True if the same change by both sides is a conflict too.

    Raises:
        AgentFSError: `conflict`, if others have changed the same lines, or a path whose base is not known.
    """
    root, bases = around.root.top, dict(bases)
    effects.touched = {path for path in effects.touched if not _is_changed(root, path, since)}
    for change in (each for step in around.journal.log.after(since.position) for each in step.changes):
        bases.setdefault(change.path, change.before)
    found, clashes = Merged([], [], []), list[Clash]()
    for change in effects.changes.values():
        call_context.check()
        path, present, after = change.path, change.before, change.after
        if path not in bases:
            is_new, is_file = _is_new(change, since), not isinstance(present, DirectoryNode | None)
            if present != after and (is_new or (is_file and _is_changed(root, path, since))):
                clashes.append(Clash(path, None if is_new else present, present))
            found.changes.append(change)
            continue
        node, clash = merge_nodes(path, bases[path], after, present, once=once)
        if clash is not None:
            clashes.append(clash)
        elif bases[path] not in (present, after):
            (found.equal if present == after else found.merged).append(path)
        found.changes.append(Change(path, present, node))
    directories = [each for each in found.changes if isinstance(each.before, DirectoryNode)]
    gone = {each.path for each in directories if not isinstance(each.after, DirectoryNode)}
    for change in found.changes:  # what others have created in a directory that is gone
        if change.after is not None and not gone.isdisjoint(directories_above(change.path)):
            clashes.append(Clash(change.path, None, change.before))
    if clashes:
        clashes.sort(key=lambda each: each.path)
        raise clash_error(clashes, root, done="applied")
    return found


def apply_merged(
    around: Surroundings,
    merged: list[Change],
    effects: Effects,
    masks: Mapping[str, Mask],
    label: str,
    *,
    preview: bool,
) -> RecordedResult:
    """Apply all changes from the present state that were made of effects, or none; return what changed.

    Raises:
        AgentFSError: `protected` for a protected name; `refused` for a rule or by the user; `stale` if
            another program changes a path just now.
    """
    root, journal, limits = around.root, around.journal, around.limits
    for path in [each.path for each in merged if is_lost_object(each)]:
        effects.leave("removal of a git object", path)
    merged = [each for each in merged if not each.changes_nothing or each.path in effects.touched]
    merged = [each for each in merged if not is_lost_object(each)]
    hidden = [path for path, mask in masks.items() if mask.hides]  # others have the content of their masks
    refused = refused_paths(merged, root, _free_paths(merged, root, hidden, effects.free))
    merged = _without_refused(merged, effects, {path: path for path in refused}, _OBEYED)
    merged = _without_refused(merged, effects, masks_in_index(merged, hidden), _EMPTIED)
    if others := sorted(path for path in refused if not git_directory(path)):
        shown = [*map(root.display_path, others)]
        raise ProtectedError(
            f"Protected names would change: {name_paths(shown)}; nothing was applied.",
            hint="Leave these changes out; only the user may make them.",
            details={"path": shown[0], "paths": shown},
        )
    changes = with_moves(merged)
    of_git = {each.path: top for each in changes if (top := git_directory(each.path))}
    kept = tuple(each for each in changes if each.path not in of_git)
    touched = effects.touched = _touched(root, changes, effects)
    unkept = {*_too_large(kept, limits), *touched, *of_git}
    lost = tuple(sorted(unkept.difference(touched, of_git) | {*of_git.values()}))
    kept = tuple(each for each in changes if each.path not in unkept)

    @contextmanager
    def log_step(made: tuple[Change, ...]) -> Generator[tuple[Change, ...]]:
        nonlocal kept
        recorded = tuple(each for each in made if each.path not in unkept)
        with journal.logging_step(recorded, label=label, lost=lost) as kept:
            stored = {each.path: each for each in kept}  # with contents that stay when the files are gone
            yield tuple([stored.get(each.path, each) for each in made])

    applied = Applied()
    if changes and not preview:
        applied = root.view(exempt=[each.path for each in changes]).apply(
            changes,
            max_bytes=limits.snapshot_bytes,
            conflict=lambda change, found: changed_meanwhile(change, found, root),
            log_step=log_step,
        )
    if not preview:
        own = {each.path for each in changes if each.after is effects.changes[each.path].after}
        set_times(root, own | touched, effects)
    step = Step(kept, label=label, lost=lost)
    return result_of(around, step, effects, applied.notes, can_undo=not preview)


def result_of(
    around: Surroundings, step: Step, effects: Effects, notes: Sequence[str] = (), *, can_undo: bool = True
) -> RecordedResult:
    """Return the changes of a staged command as those of a recording."""
    root, left = around.root, sorted(effects.not_applied.items())
    not_covered = {what: len(paths) for what, paths in left}
    opened = OpenRecording(step.label, root, around.limits, around.journal, not_covered=not_covered)
    opened.parts = [step] if step.changes else []
    opened.lost, opened.touched = dict.fromkeys(step.lost), dict.fromkeys(effects.touched)
    named = path_notes(root.display_path, {f"not applied: {what}": sorted(paths) for what, paths in left})
    return recorded_result(opened, around.may_show, more_notes=[*named, *notes], can_undo=can_undo)


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


def _is_new(change: Change, since: Since) -> bool:
    """Return True if another program has created or deleted a path since the effects began."""
    directory, _, name = change.path.rpartition("/")
    names = since.names.get(directory)
    return names is not None and (name in names) is not (change.before is not None)


def _is_changed(root: Root, path: str, since: Since) -> bool:
    """Return True if another program has changed or deleted a path since the effects began."""
    status = status_of(root, path)
    changed = sys.maxsize if status is None else status.st_ctime_ns  # an mtime may be in the future
    # A file system that stores whole seconds gives a change of now a time before it.
    return changed + (0 if changed % 1_000_000 else TIME_RESOLUTION) > since.began


def _touched(root: Root, changes: Sequence[Change], effects: Effects) -> set[str]:
    """Return the paths at which only the time differs.

    Rules judge those of files. They keep the times of directories and links as they are.
    """
    known = {os.path.dirname(each.path) for each in changes}  # whose times follow from these changes
    known |= {each.path for each in changes if not each.changes_nothing}
    found = {path for path in effects.touched if not (path in known or git_directory(path))}
    if root.access is None and not any(map(root.is_protected, found)):
        return found
    judged = {each.path for each in changes}
    for path in found - judged:
        effects.leave("time", path)
    return found & judged


def _free_paths(
    changes: Sequence[Change], root: Root, hidden: Collection[str], freed: Collection[str]
) -> set[str]:
    """Return `freed`, and the created paths with a read-protected name in a directory that is created too.

    They hold nothing of the user, such as a key for the tests of a package. Copies of masks are not among
    them. Neither is new content that programs obey: write-protected, or in a repository.
    """
    made = {each.path for each in changes if each.before is None and isinstance(each.after, DirectoryNode)}
    names = {fold(path.rpartition("/")[2]) for path in hidden}

    def is_free(change: Change) -> bool:
        path, after = change.path, change.after
        above, _, name = path.rpartition("/")
        is_copy = isinstance(after, FileNode) and not after.size and fold(name) in names
        is_made = change.before is None and above in made and not is_copy
        in_repository = any(fold(each).endswith(".git") for each in path.split("/"))
        is_old = after is None or change.changes_nothing
        is_obeyed = not is_old and (in_repository or root.unwritable.covers(path))
        return (is_made or path in freed) and not is_obeyed

    return {each.path for each in changes if is_free(each)}


def _too_large(changes: Sequence[Change], limits: Limits) -> list[str]:
    """Return the paths whose contents do not fit what is kept for undo; the smallest are kept."""
    by_size = sorted((_size(each), each.path) for each in changes)
    totals = accumulate(size for size, _ in by_size)
    return [path for (_, path), total in zip(by_size, totals, strict=True) if total > limits.snapshot_bytes]


def _size(change: Change) -> int:
    return sum(node.size for node in (change.before, change.after) if isinstance(node, FileNode))
