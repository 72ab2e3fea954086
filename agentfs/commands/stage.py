"""`Stage`: the private directory that holds the overlays and the private places of one staged command.

It is locked while its process lives. The next stage removes those of dead processes, whose commands died with
them.
"""

import os
import stat
import subprocess
from contextlib import suppress
from typing import NamedTuple, Self

from agentfs.base.lazy import shutil
from agentfs.commands.system import entries
from agentfs.errors import BusyError
from agentfs.fs import Root, quote
from agentfs.fs.lock import hold, let_go, open_locked, usable_directories

SHARED = ("/tmp", "/var/tmp")  # noqa: S108 - a staged command has new ones
_CACHES = (".cache", ".npm", "__pycache__")
_MOST_COUNTED = 10_000
OPAQUE = "user.overlay.opaque"  # an attribute of a directory that hides the one below it
LOCK = "lock"  # a file
_PREFIX = "stage-"
_ATTEMPTS = 20


def stage_places(root_path: str) -> tuple[str, ...]:
    """Return the directories for stages, those on the file system of the root first.

    There, a file keeps its inode when it is changed, which some programs expect.
    """
    device = os.stat(root_path).st_dev
    return tuple(sorted(usable_directories(root_path), key=lambda place: os.stat(place).st_dev != device))


class Overlay(NamedTuple):
    """The directories of an overlay; of a read-only one, `upper` holds only masks."""

    root: str
    upper: str
    work: str
    is_read_only: bool = False

    def arguments(self, shown: str) -> list[str]:
        """Return the arguments of bubblewrap that show it at a path."""
        if self.is_read_only:
            return ["--overlay-src", self.root, "--overlay-src", self.upper, "--ro-overlay", shown]
        return ["--overlay-src", self.root, "--overlay", self.upper, self.work, shown]


class Stage:
    """The directories of overlays, and of the private places of a command."""

    def __init__(self, place: str, root: str, kept: str = "") -> None:
        """Create the directories in `place`, for an overlay on `root`; one with a name is kept at the end."""
        _remove_stale(place)
        self.is_kept = bool(kept)
        for _ in range(_ATTEMPTS):  # another process may just have taken a new one for a stale one
            self.path = os.path.join(place, kept or f"{_PREFIX}{os.urandom(8).hex()}")
            with suppress(FileNotFoundError):
                os.makedirs(self.path, mode=0o700, exist_ok=True)
                if (fd := _lock(self.path)) is not None:
                    self._lock = fd
                    break
        else:
            hint = "End the program that uses it, or wait."
            raise BusyError(f"{quote(self.path)} is in use.", hint=hint, details={"path": self.path})
        self.overlays: dict[str, Overlay] = {}  # by their root
        self.places: dict[str, str] = {}  # by the path that the command sees
        self.overlay = self.add_overlay(root)

    def add_overlay(self, root: str, *, is_read_only: bool = False) -> Overlay:
        """Create the directories of an overlay on `root`, unless there are some, or they were kept."""
        if root in self.overlays:
            return self.overlays[root]
        upper, work = (os.path.join(self.path, f"{name}{len(self.overlays)}") for name in ("upper", "work"))
        overlay = self.overlays[root] = Overlay(root, upper, work, is_read_only)
        if not os.path.isdir(upper):
            os.mkdir(work, 0o700)
            os.mkdir(upper)
            below = os.stat(root)
            make_alike(upper, below)
            os.utime(upper, ns=(below.st_atime_ns, below.st_mtime_ns))
        return overlay

    def upper_path(self, root: Root, real_path: str) -> str:
        """Return where a change of a path in the root is kept."""
        tree = root.trees.of(real_path)
        return os.path.join(self.overlays[tree.source].upper, tree.below(real_path))

    def add_place(self, path: str) -> str:
        """Create a directory that the command has in place of a private one, and return its path."""
        place = self.places.setdefault(path, os.path.join(self.path, f"place{len(self.places)}"))
        os.makedirs(place, exist_ok=True)  # a branch is opened again
        os.chmod(place, 0o1777 if path in SHARED else 0o700)
        return place

    def gone_files(self) -> dict[str, int]:
        """Return the numbers of files that the command leaves in its private places, except caches."""
        return {path: count for path, place in self.places.items() if (count := _count_files(place))}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self, *, keep: bool = False) -> None:
        """Remove the directories, unless they are kept, and the lock."""
        if keep:
            let_go(self._lock)
            return
        for overlay in self.overlays.values():
            with suppress(OSError):  # the system leaves it without permissions
                os.chmod(os.path.join(overlay.work, "work"), 0o700)
        remove_tree(self.path)
        let_go(self._lock)


def make_alike(path: str, status: os.stat_result) -> None:
    """Give a new file or directory the owner and mode of another one."""
    with suppress(PermissionError):
        os.chown(path, status.st_uid, status.st_gid)
    os.chmod(path, stat.S_IMODE(status.st_mode))


def _count_files(place: str) -> int:
    count, stack = 0, [place]
    while stack and count < _MOST_COUNTED:
        with suppress(OSError), os.scandir(stack.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    stack += [] if entry.name in _CACHES else [entry.path]
                elif entry.is_file(follow_symlinks=False):
                    count += entry.stat(follow_symlinks=False).st_size > 0  # others are places of mounts
    return count


def _lock(path: str) -> int | None:
    """Lock a directory, and return the descriptor of the lock; None if it is locked."""
    fd = open_locked(os.path.join(path, LOCK), os.O_CREAT)
    return None if fd is None else hold(fd)


def _remove_stale(place: str) -> None:
    """Remove the stages of dead processes."""
    for path in entries(place, _PREFIX):
        with suppress(OSError):
            if (fd := _lock(path)) is not None:
                remove_tree(path)
                let_go(fd)


def remove_tree(path: str) -> None:
    """Remove a directory that a command may have filled with deep ones, or ones without permissions."""
    with suppress(RecursionError):  # Python 3.12 and older recurse
        shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        for command in (["/bin/chmod", "-R", "u+rwx", "--", path], ["/bin/rm", "-rf", "--", path]):
            subprocess.run(command, check=False, capture_output=True)  # noqa: S603 - no shell
