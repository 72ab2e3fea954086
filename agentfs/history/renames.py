"""Moved files: as the changes say, or guessed from deleted and created files, as in git."""

import os
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice

from agentfs.base import call_context
from agentfs.fs import Change, DirectoryNode, FileNode, Node, directories_above
from agentfs.fs.node import moves

_MOST_COMPARED = 1_000  # pairs of files whose lines are compared
_MOST_BYTES = 1024 * 1024  # size of the largest file whose lines are compared
_LEAST_SIMILARITY = 0.5


def renames(changes: Collection[Change]) -> dict[str, str]:
    """Return the old path of each moved file and link, by its new path."""
    return moves([each for each in changes if not each.of_directory])


def with_moves(changes: Sequence[Change]) -> list[Change]:
    """Return changes by another program with `moved_from`, which is guessed.

    Files with equal content are paired in the order of their paths; then the most similar others are.
    """
    ordered = sorted(changes, key=lambda change: change.path)
    created = {each.path: each for each in ordered if each.before is None}
    deleted = {each.path: each for each in ordered if each.after is None}
    new = [each for each in created.values() if _is_file(each.after)]
    old = [each for each in deleted.values() if _is_file(each.before)]
    sources: dict[Node | None, list[str]] = {}
    for each in reversed(old):
        sources.setdefault(each.before, []).append(each.path)
    found = {each.path: sources[each.after].pop() for each in new if sources.get(each.after)}
    paired = {*found, *found.values()}
    found |= _similar(
        [each for each in old if each.path not in paired], [each for each in new if each.path not in paired]
    )
    for to, origin in list(found.items()):
        for target, source in zip(directories_above(to), directories_above(origin), strict=False):
            if target not in created or source not in deleted:
                break
            found.setdefault(target, source)
    return [replace(each, moved_from=found[each.path]) if each.path in found else each for each in changes]


def _is_file(node: Node | None) -> bool:
    return node is not None and not isinstance(node, DirectoryNode)


def _similar(deleted: Sequence[Change], created: Sequence[Change]) -> dict[str, str]:
    """Return the old path of each created file that is similar to a deleted one."""
    by_name: dict[str, list[Change]] = {}
    for old in deleted:
        by_name.setdefault(os.path.basename(old.path), []).append(old)
    all_pairs = len(deleted) * len(created) <= _MOST_COMPARED  # else only pairs with the same file name
    pairs = (
        (old, new)
        for new in created
        for old in (deleted if all_pairs else by_name.get(os.path.basename(new.path), ()))
        if _may_be_similar(old.before, new.after)
    )
    lines: dict[str, Counter[bytes]] = {}
    scores: list[tuple[float, bool, str, str]] = []
    for old, new in islice(pairs, _MOST_COMPARED):
        if time.monotonic() > call_context.deadline():
            break
        for path, node in ((old.path, old.before), (new.path, new.after)):
            if path not in lines and isinstance(node, FileNode):
                lines[path] = Counter(node.load().splitlines(keepends=True))
        common = sum(len(line) * count for line, count in (lines[old.path] & lines[new.path]).items())
        size = max(_size(old.before), _size(new.after))
        if common >= size * _LEAST_SIMILARITY:
            other_name = os.path.basename(old.path) != os.path.basename(new.path)
            scores.append((-common / size, other_name, new.path, old.path))
    found: dict[str, str] = {}
    taken = set[str]()
    for _, _, new_path, old_path in sorted(scores):
        if new_path not in found and old_path not in taken:
            found[new_path] = old_path
            taken.add(old_path)
    return found


def _may_be_similar(old: Node | None, new: Node | None) -> bool:
    sizes = _size(old), _size(new)
    return 0 < min(sizes) >= max(sizes) * _LEAST_SIMILARITY and max(sizes) <= _MOST_BYTES


def _size(node: Node | None) -> int:
    return node.size if isinstance(node, FileNode) else 0
