"""The merge of a branch: what its overlay holds, three ways with what the parent has."""
# pyright: reportPrivateUsage=false
# ruff: noqa: SLF001 - a merge works with the parts of the branch and of its parent

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from threading import Lock
from typing import Any

from agentfs.base import call_context
from agentfs.branches.branch_sandbox import BranchSandbox
from agentfs.commands.apply_effects import apply_merged, git_directory
from agentfs.commands.effects import Effects, effects_of
from agentfs.commands.hidden_files import status_of
from agentfs.errors import ConflictError
from agentfs.fs import Change, DirectoryNode, FileNode, LinkNode, MovedNode, Node, Root, quote
from agentfs.fs.path import is_in
from agentfs.history.operations import version_of
from agentfs.history.step_merge import Clash, merge_nodes
from agentfs.remote import wire
from agentfs.results import MergeResult
from agentfs.text.display import first_names, line_ranges

_MERGED = "merged.json"  # what the branch had at each path when it was merged last
_merging = Lock()  # one merge at a time: each begins with what the last has applied
_MOST_SHOWN = 100_000  # characters of each text of a conflict


class BranchMerge:
    """One merge of a branch.

    Args:
        branch: The branch, whose server ends.
        parent: The workspace.
        sandbox: The directory of the branch.
    """

    def __init__(self, branch: Any, parent: Any, sandbox: BranchSandbox) -> None:
        self._sandbox = sandbox
        self._first = {**self._asked(branch), **wire.from_text((sandbox.read(_MERGED) or b"{}").decode())}
        self._ours: dict[str, Change] = {}
        for change in (each for step in parent._journal.log.after(sandbox.position) for each in step.changes):
            self._ours.setdefault(change.path, change)
        self._branch = branch

    def _asked(self, branch: Any) -> dict[str, list[bytes]]:
        """Return the first versions that the journal of the branch has."""
        found: dict[str, list[bytes]] = {}
        while more := branch._first_versions(len(found)):
            found |= more
        return found

    @property
    def merge(self) -> Callable[..., MergeResult]:
        """The function that merges, in the form of a method of the parent."""

        def merge(workspace: Any, branch: str, paths: Sequence[str] | None, preview: bool) -> MergeResult:
            around = workspace._surroundings
            with (
                self._ended(),
                _merging,
                call_context.uncounted(),
                call_context.limited(around.limits.apply_timeout, apart=True),
            ):
                return self._carried_out(around, f"merge: {branch}", paths, preview=preview)

        return merge

    @contextmanager
    def _ended(self) -> Generator[None]:
        """End the sandbox for the block, so that nothing changes the overlay while it is read."""
        with self._sandbox.unmounted():
            self._branch._session.drop()
            self._sandbox.check()
            yield

    def _carried_out(
        self, around: Any, label: str, paths: Sequence[str] | None, *, preview: bool
    ) -> MergeResult:
        root: Root = around.root.top
        overlays = {"": self._sandbox.stage.overlay}
        masks = {path: each for path, each in self._sandbox.masks.items() if not git_directory(path)}
        chosen = None if paths is None else [root.real_path(each, creating=True) for each in paths]

        def is_wanted(path: str) -> bool:
            if git_directory(path):
                return False
            return chosen is None or any(is_in(path, each) or is_in(each, path) for each in chosen)

        effects = effects_of(overlays, masks, root, around.limits.snapshot_bytes, is_wanted)
        changes, merged, equal = self._merged(root, effects)
        given = around, changes, effects, masks, label
        result = apply_merged(*given, preview=preview)
        if not preview:
            self._note(effects)
        found: dict[str, Any] = {each.name: getattr(result, each.name) for each in fields(result)}
        found["merged"] = tuple(map(root.display_path, merged))
        return MergeResult(**found, equal=tuple(map(root.display_path, equal)))

    def _merged(self, root: Root, effects: Effects) -> tuple[list[Change], list[str], list[str]]:
        """Return the changes from the present state, and the paths that the parent has changed too."""
        changes, merged, equal = list[Change](), list[str](), list[str]()
        clashes: dict[str, Clash] = {}
        for change in effects.changes.values():
            call_context.check()
            path, present = change.path, change.before
            known, base = self._base(root, change)
            if not known:
                if present != change.after:
                    clashes[path] = Clash(path, None, present)
                continue
            outcome = merge_nodes(path, base, change.after, present)
            if outcome.clash is not None:
                clashes[path] = outcome.clash
                continue
            if base not in (present, change.after):
                (equal if present == change.after else merged).append(path)
            changes.append(Change(path, present, outcome.node))
        if clashes:
            raise _conflict(root, clashes, effects)
        return [each for each in changes if not each.changes_nothing], merged, equal

    def _base(self, root: Root, change: Change) -> tuple[bool, Node | None]:
        """Return True with the state that both sides began with, or False if it is not known."""
        path, present = change.path, change.before
        if path in self._first:
            return True, _node(self._first[path])
        if path in self._ours:
            return True, self._ours[path].before
        status = status_of(root, path)
        is_file = not isinstance(present, DirectoryNode | None)
        is_changed = is_file and (status is None or status.st_ctime_ns > self._sandbox.began)
        return not is_changed, present

    def _note(self, effects: Effects) -> None:
        """Keep what was merged, as the base of the next merge."""
        merged = wire.from_text((self._sandbox.read(_MERGED) or b"{}").decode())
        for path, change in effects.changes.items():
            if not isinstance(change.after, DirectoryNode | MovedNode):
                merged[path] = version_of(change.after)
        self._sandbox.files.put(_MERGED, wire.to_text(merged).encode())


def _node(version: Sequence[bytes]) -> Node | None:
    if not version:
        return None
    content, *mode = version
    return FileNode.of(int(mode[0], 8), content) if mode else LinkNode(os.fsdecode(content))


def _conflict(root: Root, clashes: Mapping[str, Clash], effects: Effects) -> ConflictError:
    shown = {root.display_path(path): clash for path, clash in sorted(clashes.items())}
    where = [
        quote(path) + (f" ({line_ranges(clash.lines)})" if clash.lines else "")
        for path, clash in shown.items()
    ]
    return ConflictError(
        f"The branch and its parent have both changed {first_names(where, 5)}; nothing was applied.",
        hint="Change the branch so that it fits, or merge other `paths`.",
        details={
            "conflicts": [
                {
                    "path": path,
                    "lines": [*map(list, clash.lines)],
                    "branch": _text(effects.changes[clash.path].after),
                    "parent": _text(clash.found),
                }
                for path, clash in shown.items()
            ]
        },
    )


def _text(node: Node | None) -> str | None:
    """Return the content of a file as text, the target of a link, or None."""
    if isinstance(node, FileNode):
        return node.load().decode("utf-8", "replace")[:_MOST_SHOWN]
    return node.target if isinstance(node, LinkNode) else None
