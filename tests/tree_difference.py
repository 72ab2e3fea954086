"""The difference of two trees, or of one tree at two times, by a walk that is independent of the package.

It leaves nothing out: ignored, hidden and protected files, `.git`, modes, owners, links, hard links, special
files and extended attributes. Use it in place of a hash of a tree: a failure says which path differs.

    before = snapshot(tree)
    ...
    assert difference(before, snapshot(tree)) == []
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace

KINDS = {
    stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link", stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket", stat.S_IFCHR: "character device", stat.S_IFBLK: "block device",
}  # fmt: skip
PIECE = 1 << 20


@dataclass(frozen=True)
class Node:
    """A path of a tree, with what the system says about it."""

    kind: str
    mode: str
    owner: tuple[int, int]
    content: str  # of a file its size and digest, of a link its target, of a device its number
    attributes: tuple[tuple[str, bytes], ...]
    same_file: tuple[str, ...] = ()  # all names of a file with several hard links
    modified: int | None = None


def snapshot(top: str | os.PathLike[str], *, times: bool = False) -> dict[str, Node]:
    """Return each path below a directory, and the directory itself as `.`."""
    found: dict[str, Node] = {}
    names: dict[tuple[int, int], list[str]] = {}
    for path, status in _walk(os.fspath(top)):
        name = os.path.relpath(path, top)
        found[name] = _node(path, status, times=times)
        if not stat.S_ISDIR(status.st_mode) and status.st_nlink > 1:
            names.setdefault((status.st_dev, status.st_ino), []).append(name)
    for linked in names.values():
        for name in linked:
            found[name] = replace(found[name], same_file=tuple(sorted(linked)))
    return found


def difference(before: Mapping[str, Node], after: Mapping[str, Node]) -> list[str]:
    """Return a line for each path that was added, was removed, or is another, in the order of the paths."""
    lines = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            lines.append(f"{name!r}: {'added' if old is None else 'removed'}, a {(old or new).kind}")
        elif old != new:
            parts = [
                field.name for field in fields(Node) if getattr(old, field.name) != getattr(new, field.name)
            ]
            changes = (f"{part} {getattr(old, part)!r} -> {getattr(new, part)!r}" for part in parts)
            lines.append(f"{name!r}: {', '.join(changes)}")
    return lines


def without(tree: Mapping[str, Node], *names: str) -> dict[str, Node]:
    """Return a tree without the entries of some names, and what is below them."""
    return {path: node for path, node in tree.items() if not {*names} & {*path.split("/")}}


def _walk(top: str) -> Iterator[tuple[str, os.stat_result]]:
    status = os.lstat(top)
    yield top, status
    if stat.S_ISDIR(status.st_mode):
        with os.scandir(top) as entries:
            paths = [entry.path for entry in entries]
        for path in paths:
            yield from _walk(path)


def _node(path: str, status: os.stat_result, *, times: bool) -> Node:
    return Node(
        kind=KINDS[stat.S_IFMT(status.st_mode)],
        mode=f"{stat.S_IMODE(status.st_mode):04o}",
        owner=(status.st_uid, status.st_gid),
        content=_content(path, status),
        attributes=_attributes(path),
        modified=status.st_mtime_ns if times else None,
    )


def _content(path: str, status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return os.readlink(path)
    if stat.S_ISREG(status.st_mode):
        digest = hashlib.sha256()
        with open(path, "rb", buffering=0) as file:
            while piece := file.read(PIECE):
                digest.update(piece)
        return f"{status.st_size} bytes, {digest.hexdigest()[:16]}"
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    return ""


def _attributes(path: str) -> tuple[tuple[str, bytes], ...]:
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except (AttributeError, OSError):  # another system, or a file system without them
        return ()
    return tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in sorted(names))
