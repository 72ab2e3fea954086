"""Apply the effects of a staged command as one batch: judged, merged, recorded as one step, or refused."""

from collections import Counter
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.commands.git_settings import kept_as_empty, permitted
from agentfs.errors import ConflictError, ProtectedError
from agentfs.fs import Change, DirectoryNode, FileNode, Root, quote
from agentfs.fs.effects import Effects, is_changed_since, size_of
from agentfs.fs.protect import fold
from agentfs.history import Journal
from agentfs.history.recordings.recording import OpenRecording, recorded_result
from agentfs.history.renames import with_moves
from agentfs.history.report import MayShow, changed_meanwhile, name_paths
from agentfs.history.take_back import Lines, alike_clash, merge_nodes
from agentfs.history.timeline import Step
from agentfs.limits import Limits
from agentfs.results import RecordedResult
from agentfs.text import first_names, line_ranges
from agentfs.tree.ignore_sources import RuleReader, with_slash
from agentfs.tree.walk import VCS_NAMES


class Base(NamedTuple):
    """The state of the tree that a command began with."""

    time: int  # by the file clock: every later change of a file has a later time
    position: int  # of the journal


class Target(NamedTuple):
    """The workspace whose tree the effects change."""

    root: Root
    journal: Journal
    limits: Limits
    may_show: MayShow


def apply_effects(
    effects: Effects, base: Base, target: Target, label: str, hidden: Collection[str], *, preview: bool
) -> RecordedResult:
    """Apply all effects, or raise an error and apply none; return what changed.

    Raises:
        AgentFSError: `protected` for a protected name; `refused` for a rule or by the user; `conflict` if
            others have changed the same lines meanwhile.
    """
    root, journal, limits, _ = target
    changes = _merged(effects, base, target)
    hidden = [path for path in hidden if size_of(root, path)]
    if emptied := kept_as_empty(changes, hidden):
        raise _emptied(root, emptied)
    exempt = permitted(changes, root.is_protected) | _made_with_directories(changes, root, hidden)
    refused = [*effects.refused, *(each.path for each in changes if root.is_protected(each.path))]
    if refused := [path for path in refused if path not in exempt]:
        raise _protected(root, refused)
    unrecorded, reasons = _unrecorded(root, changes)
    lost = _too_large(changes, unrecorded, limits)
    left = unrecorded | set(lost)
    kept = tuple(each for each in changes if each.path not in left)

    @contextmanager
    def log_step(made: tuple[Change, ...]) -> Generator[tuple[Change, ...]]:
        nonlocal kept
        recorded = tuple(each for each in made if each.path not in left)
        journal.prepare(recorded)
        with journal.logging_step(recorded, label=label, lost=lost) as kept:
            yield made

    if changes and not preview:
        root.exempting(exempt).apply(
            changes,
            max_bytes=limits.snapshot_bytes,
            conflict=lambda change, found: changed_meanwhile(change, found, root),
            log_step=log_step,
        )
    return result_of(target, label, kept, lost, reasons + effects.dropped, can_undo=not preview)


def result_of(
    target: Target,
    label: str,
    changes: tuple[Change, ...] = (),
    lost: tuple[str, ...] = (),
    not_covered: Mapping[str, int] = {},
    *,
    can_undo: bool = False,
) -> RecordedResult:
    """Return the changes of a staged command as those of a recording."""
    opened = OpenRecording(0, label, target.root, target.limits, ignored=False, not_covered=not_covered)
    opened.parts = [Step(changes, 0.0, label, lost)] if changes else []
    opened.lost = dict.fromkeys(lost)
    return recorded_result(opened, target.root, target.may_show, target.limits, can_undo=can_undo)


def _merged(effects: Effects, base: Base, target: Target) -> list[Change]:
    """Return the changes from the present state, with what others have changed since the command began."""
    root = target.root
    ours: dict[str, Change] = {}
    for change in (each for step in target.journal.steps_after(base.position) for each in step.changes):
        ours.setdefault(change.path, change)
    merged: list[Change] = []
    clashes: dict[str, Lines] = {}
    for change in effects.changes.values():
        call_context.check()
        path, present = change.path, change.before
        if path in ours:
            first = ours[path].before
            outcome = merge_nodes(path, first, change.after, present)
            if clash := outcome.clash or alike_clash(Change(path, first, change.after), present):
                clashes[path] = clash.lines
            merged.append(Change(path, present, outcome.node))
        else:
            if not isinstance(present, DirectoryNode | None) and is_changed_since(root, path, base.time):
                clashes[path] = ()
            merged.append(change)
    if clashes:
        raise _conflict(root, clashes)
    return with_moves([each for each in merged if not each.changes_nothing])


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


def _protected(root: Root, paths: Sequence[str]) -> ProtectedError:
    shown = [*map(root.display_path, sorted(set(paths)))]
    return ProtectedError(
        f"The command has changed protected names: {name_paths(shown)}; nothing was applied.",
        hint="Run it without these changes; only the user may make them.",
        details={"path": shown[0], "paths": shown},
    )


def _emptied(root: Root, paths: Collection[str]) -> ProtectedError:
    shown = [*map(root.display_path, sorted(paths))]
    return ProtectedError(
        f"The command has added protected files to git, which it sees as empty: {name_paths(shown)}; nothing"
        " was applied.",
        hint="Add and commit other files by name.",
        details={"path": shown[0], "paths": shown},
    )


def _made_with_directories(changes: Sequence[Change], root: Root, hidden: Sequence[str]) -> set[str]:
    """Return the created paths with a read-protected name in a directory that the command has made too.

    They hold nothing of the user, such as the `cacert.pem` of a package. Copies of hidden files are empty, so
    they are not among them. Neither are repositories without a work tree, whose settings run code.
    """
    made = {each.path for each in changes if each.before is None and isinstance(each.after, DirectoryNode)}
    names = {fold(path.rpartition("/")[2]) for path in hidden}

    def is_free(change: Change) -> bool:
        path, after = change.path, change.after
        above, _, name = path.rpartition("/")
        is_copy = isinstance(after, FileNode) and not after.size and fold(name) in names
        in_repository = any(fold(each).endswith(".git") for each in path.split("/"))
        return above in made and not is_copy and not in_repository and not root.is_write_protected(path)

    return {each.path for each in changes if each.before is None and each.after and is_free(each)}


def _unrecorded(root: Root, changes: Sequence[Change]) -> tuple[set[str], Counter[str]]:
    """Return the paths that undo leaves, as in recordings, and their numbers by reason."""
    rules = RuleReader(root)
    reasons = Counter[str]()
    found: set[str] = set()
    decided: dict[str, str] = {"": ""}  # the reason of each directory

    def reason(path: str, *, is_dir: bool) -> str:
        if path not in decided:
            above, _, name = path.rpartition("/")
            why = reason(above, is_dir=True)
            if not why and name.lower() in VCS_NAMES:
                why = "version control"
            if not why and root.is_protected(path):
                why = "protected"
            if not why:
                rule = rules.above(above, through=True).match(with_slash(above), name, is_dir=is_dir)
                why = "ignored" if rule is not None and not rule.negated else ""
            decided[path] = why
        return decided[path]

    for change in changes:
        why = reason(change.path, is_dir=isinstance(change.after or change.before, DirectoryNode))
        if why:
            found.add(change.path)
            reasons[why] += 1
    return found, reasons


def _too_large(changes: Sequence[Change], unrecorded: Collection[str], limits: Limits) -> tuple[str, ...]:
    """Return the paths whose contents do not fit what is kept for undo; the smallest are kept."""
    sizes: dict[str, int] = {}
    for change in changes:
        if change.path not in unrecorded:
            nodes = (change.before, change.after)
            sizes[change.path] = sum(node.size for node in nodes if isinstance(node, FileNode))
    kept = 0
    lost: list[str] = []
    for path in sorted(sizes, key=lambda path: sizes[path]):
        kept += sizes[path]
        if kept > limits.snapshot_bytes:
            lost.append(path)
    return tuple(lost)
