"""Whether the system and the policy let a file be changed, asked before anything is written.

A preview asks the same as the change itself, so that both have one verdict.
"""

import errno
import os
import stat

from agentfs.errors import RefusedError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.path import display_name, quote
from agentfs.fs.resolve import PathResolver


def check_replaceable(base: RootContext, trail: PathResolver, name: str, path: str) -> None:
    """Refuse to give a file a new content by a rename where that would fail.

    Args:
        base: Where walks start.
        trail: The walk, in the directory of the file, or in the last one above it that is there.
        name: The file; it need not be there yet.
        path: The path to speak of.

    Raises:
        AgentFSError: refused: the file is write-protected, or the policy changes none with hard links; io:
            the system lets no name be made in the directory.
    """
    found = trail.look(name)
    if found is not None:
        check_writable(trail, name, path, found)
        check_hard_links(base, path, found)
    number = syscalls.names_refused(trail.handle)
    if not number and found is not None:
        here = syscalls.lstat(trail.handle, ".")
        if here.st_mode & stat.S_ISVTX and os.geteuid() not in {0, found.st_uid, here.st_uid}:
            number = errno.EPERM
    if number:
        raise trail.failure(OSError(number, os.strerror(number)), name)


def check_hard_links(base: RootContext, path: str, found: os.stat_result | None) -> None:
    """Refuse to change a file of several names where the policy changes none."""
    if found is not None and found.st_nlink > 1 and base.hardlinks == "refuse":
        raise RefusedError(
            f"{quote(path)} has {found.st_nlink} hard links; this workspace changes no such file.",
            hint="Ask the user whether the other names shall change too.",
            details={"path": display_name(path), "links": found.st_nlink},
        )


def check_writable(trail: PathResolver, name: str, path: str, found: os.stat_result) -> None:
    """Refuse to change a file that is write-protected; arguments and errors as of `check_replaceable`."""
    # A rename asks for no permission on the file itself, but whoever made it read-only meant it, and the
    # superuser is no exception.
    if not found.st_mode & 0o222:
        raise oserrors.write_protected(path, found.st_mode)
    try:
        syscalls.check_writable(trail.handle, name)
    except PermissionError:
        raise oserrors.write_protected(path, found.st_mode) from None
    except OSError as error:
        if error.errno != errno.ETXTBSY:
            raise trail.failure(error, name) from None
