"""Whether a directory lies in another one by a second mount, which its path does not show. Linux only."""

import os
import re
from typing import NamedTuple

_TABLE = "/proc/self/mountinfo"


class _Mount(NamedTuple):
    """A part of a file system, and where it is mounted.

    Attributes:
        device: The number of the file system.
        part: The path of the part in it.
        point: The path where that is mounted.
    """

    device: str
    part: str
    point: str


def is_mounted_below(path: str, top: str) -> bool:
    """Tell whether a directory lies in a tree, or would, by what is mounted where.

    Args:
        path: Its absolute path, links resolved; it need not be there yet.
        top: The absolute path of the tree, links resolved.

    Returns:
        Whether some path in the tree leads to it; False where the system does not list its mounts.
    """
    mounts = _mounts()
    here = _place(path, mounts)
    trees = [_place(top, mounts), *((m.device, m.part) for m in mounts if _below(m.point, top))]
    return here is not None and any(
        tree is not None and here[0] == tree[0] and _below(here[1], tree[1]) for tree in trees
    )


def _mounts() -> list[_Mount]:
    try:
        with open(_TABLE, "rb") as table:
            lines = [os.fsdecode(line).split(" ") for line in table]
    except OSError:
        return []
    return [_Mount(fields[2], _unescaped(fields[3]), _unescaped(fields[4])) for fields in lines]


def _place(path: str, mounts: list[_Mount]) -> tuple[str, str] | None:
    """Return the file system of a path, and the path in it."""
    over = [mount for mount in mounts if _below(path, mount.point)]
    if not over:
        return None
    mount = max(reversed(over), key=lambda mount: len(mount.point))  # of two at one point the later one hides
    rest = path[len(mount.point.rstrip("/")) :]
    return mount.device, mount.part.rstrip("/") + rest or "/"


def _below(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
