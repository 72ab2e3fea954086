"""The merge of a branch: what its overlay holds, three ways with what the parent has."""
# pyright: reportPrivateUsage=false
# A merge works with the parts of both workspaces.

import os
from collections.abc import Mapping, Sequence
from threading import Lock

from agentfs.base import call_context
from agentfs.branches.branch_sandbox import BranchSandbox
from agentfs.commands.apply_effects import apply_merged, merge_effects
from agentfs.commands.effects import effects_of
from agentfs.commands.git_settings import git_directory
from agentfs.commands.request import Surroundings
from agentfs.commands.system import contents
from agentfs.errors import ConflictError
from agentfs.fs import DirectoryNode, FileNode, LinkNode, Node
from agentfs.fs.own_directories import put_own_file
from agentfs.fs.path import is_in
from agentfs.history.operations import version_of
from agentfs.remote import wire
from agentfs.results import MergeResult

_MERGED = "merged.json"  # for each merge its step, and what the branch had at each path
_merging = Lock()  # one merge at a time: each begins with what the last has applied
_MOST_SHOWN = 100_000  # characters of each text of a conflict

Versions = Mapping[str, list[bytes]]  # as `_first_versions` returns them


def merge_branch(
    around: Surroundings,
    sandbox: BranchSandbox,
    first: Versions,
    label: str,
    paths: Sequence[str] | None,
    *,
    preview: bool,
) -> MergeResult:
    """Merge a branch whose processes have ended.

    Args:
        around: The parent.
        sandbox: The directory of the branch.
        first: The first versions that the journal of the branch has.
        label: The label of the step.
        paths: What to merge, or None for everything.
        preview: Apply nothing.
    """
    root, log, size = around.root.top, around.journal.log, around.limits.snapshot_bytes
    since, masks = sandbox.facts
    chosen = None if paths is None else [root.real_path(each, creating=True) for each in paths]

    def is_wanted(path: str) -> bool:
        is_chosen = chosen is None or any(is_in(path, each) or is_in(each, path) for each in chosen)
        return is_chosen and not git_directory(path)

    limit = call_context.limited(around.limits.apply_timeout, apart=True)
    with _merging, call_context.uncounted(), limit:
        stored = contents(sandbox.path_of(_MERGED)).decode()
        merges: list[tuple[int, Versions]] = wire.from_text(stored or "[]")
        back = log.standing.paths(made=False)
        bases = {path: _node(each) for path, each in {**first, **_made(back, merges)}.items()}
        effects = effects_of(sandbox.stage, masks, root, size, is_wanted)
        try:
            found = merge_effects(around, effects, since, bases)
        except ConflictError as error:
            shown = {root.display_path(path): change for path, change in effects.changes.items()}
            for each in error.details["conflicts"]:
                change = shown[each["path"]]
                each |= {"branch": _text(change.after), "parent": _text(change.before)}
            error.hint = "Change the branch so that it fits, or merge other `paths`."
            raise
        before = log.position
        result = apply_merged(around, found.changes, effects, masks, label, preview=preview)
        if not preview:
            steps = enumerate(log.after(before), start=before + 1)
            number = next((number for number, step in steps if step.label == label), 0)
            made = {path: each.after for path, each in effects.changes.items()}
            kept = {path: node for path, node in made.items() if not isinstance(node, DirectoryNode)}
            merges.append((number, {path: version_of(node) for path, node in kept.items()}))
            put_own_file(sandbox.path_of(_MERGED), wire.to_text(merges).encode())
    merged, equal = (tuple(map(root.display_path, each)) for each in (found.merged, found.equal))
    return MergeResult(**vars(result), merged=merged, equal=equal)


def _made(back: set[tuple[int, str]], merges: Sequence[tuple[int, Versions]]) -> Versions:
    """Return what was merged last at each path, except what was taken back since."""
    return {
        path: version
        for number, versions in merges
        for path, version in versions.items()
        if (number, path) not in back
    }


def _node(version: Sequence[bytes]) -> Node | None:
    if not version:
        return None
    content, *mode = version
    return FileNode.of(int(mode[0], 8), content) if mode else LinkNode(os.fsdecode(content))


def _text(node: Node | None) -> str | None:
    """Return the content of a file as text, the target of a link, or None."""
    if isinstance(node, FileNode):
        return node.load().decode("utf-8", "replace")[:_MOST_SHOWN]
    return node.target if isinstance(node, LinkNode) else None
