"""What the rest of the room asks of an operating system: calls on one name in one open directory."""

import os
from typing import Any, Literal, Protocol

# A descriptor where the system can open names relative to one, else an absolute path.
Handle = int | str


class Backend(Protocol):
    """The calls, each on a single name (never a path) in the directory that a handle stands for.

    None of them follows a link at that name. They raise OSError; a link in the way is ELOOP or ENOTDIR.
    """

    def mechanism(self, handle: Any) -> Literal["openat2", "fd-walk", "verify-after-open"]:
        """Return how paths are opened, by trying it on the root."""
        ...

    def open_root(self, path: str) -> Any:
        """Return a handle on the directory at an absolute path, links followed."""
        ...

    def enter(self, handle: Any, name: str) -> Any:
        """Return a handle on a directory, good for going on from."""
        ...

    def open_directory(self, handle: Any, name: str) -> Any:
        """Return a handle on a directory (`.`: this one), good for scanning too."""
        ...

    def close(self, handle: Any) -> None:
        """Give a handle back; whatever the system says, this raises nothing."""
        ...

    def open_beneath(self, handle: Any, path: str, *, directory: bool = False) -> int:
        """Return a descriptor for reading what stands at a path of several names; -1 when refused.

        No link is followed anywhere on it, so that the path is the real one when this succeeds.
        """
        ...

    def open_file(self, handle: Any, name: str) -> int:
        """Return a descriptor for reading whatever stands there, without waiting for a FIFO's writer."""
        ...

    def names_refused(self, handle: Any) -> int:
        """Return the errno with which a new name in the directory would be refused; 0 where it would not."""
        ...

    def create_file(self, handle: Any, name: str, mode: int) -> int:
        """Return a descriptor for writing a file that was not there."""
        ...

    def check_writable(self, handle: Any, name: str) -> None:
        """Raise OSError when the file there may not be written."""
        ...

    def open_writing(self, handle: Any, name: str) -> int:
        """Return a descriptor for writing into a file that is there."""
        ...

    def lstat(self, handle: Any, name: str) -> os.stat_result:
        """Return what stands there."""
        ...

    def readlink(self, handle: Any, name: str) -> str:
        """Return the target of a link; EINVAL when it is none."""
        ...

    def make_directory(self, handle: Any, name: str) -> None:
        """Make a directory."""
        ...

    def remove_directory(self, handle: Any, name: str) -> None:
        """Remove an empty directory."""
        ...

    def replace(self, handle: Any, source: str, name: str) -> None:
        """Rename, over what stands there."""
        ...

    def place(self, handle: Any, source: str, name: str) -> None:
        """Rename to a name that is not there yet; EEXIST when it is."""
        ...

    def remove(self, handle: Any, name: str) -> None:
        """Remove a file's name."""
        ...

    def rename(self, handle: Any, source: str, to: Any, name: str) -> None:
        """Rename into another directory, over what stands there."""
        ...

    def link_into(self, handle: Any, source: str, to: Any, name: str) -> None:
        """Give a file or link a second name in another directory; EEXIST when that is taken."""
        ...

    def symlink(self, handle: Any, target: str, name: str) -> None:
        """Make a link."""
        ...

    def set_mode(self, handle: Any, name: str, mode: int) -> None:
        """Set the permissions of a file or directory."""
        ...
