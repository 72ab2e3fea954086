"""Typed errors for those of the system, with what is there instead and what to call next."""

import errno
import os
import stat
import unicodedata
from typing import Any

from agentfs.errors import (
    AgentFSError,
    BusyError,
    FileIOError,
    InvalidPathError,
    LinkLoopError,
    NameTooLongError,
    NotAFileError,
    NotDirectoryError,
    NotFoundError,
    OutsideWorkspaceError,
    ProtectedError,
    RefusedError,
    SpecialFileError,
)
from agentfs.fs.path import display_name, quote
from agentfs.messages import Joined, Message, call

_ONLY_REGULAR = "Only regular files can be read or changed; choose another path."
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


def from_oserror(error: OSError, path: str, failed_at: str | None = None) -> AgentFSError:
    """Return the typed form of an OSError."""
    if isinstance(error, AgentFSError):  # several of them are also an OSError
        return error
    quoted = quote(path)
    where = quoted if failed_at is None else quote(failed_at)
    details = {"path": display_name(path)}
    match error.errno:
        case errno.ENOENT:
            return missing(path, failed_at)
        case errno.ENOTDIR:
            return not_a_directory(path, failed_at)
        case errno.EISDIR:
            return not_a_file(path)
        case errno.ELOOP:
            return LinkLoopError(f"{where} is a symbolic link that cannot be followed here.", details=details)
        case errno.ENXIO | errno.EOPNOTSUPP:
            return SpecialFileError(
                f"{quoted} is a socket or device, not a regular file.", hint=_ONLY_REGULAR, details=details
            )
        case errno.ENAMETOOLONG:
            return NameTooLongError(
                f"The name {where} is longer than this file system takes.", details=details
            )
        case errno.EILSEQ:
            return InvalidPathError(
                f"The name {where} is not one that this file system takes.", details=details
            )
        case number:
            text = os.strerror(number) if number else str(error)
            return FileIOError(
                f"The system failed on {where}: {text}.", details={**details, "errno": number, "error": text}
            )


def typed(error: Exception, path: str) -> Exception:
    """Return the typed form of an error of the system, and any other error as it is."""
    return from_oserror(error, path) if isinstance(error, OSError) else error


def missing(path: str, failed_at: str | None = None, similar: tuple[str, ...] = ()) -> NotFoundError:
    """Return not_found for a path."""
    details: dict[str, Any] = {"path": display_name(path)}
    if similar:
        details["similar"] = [display_name(other) for other in similar]
    directory = os.path.dirname(failed_at or path)
    what = f"{quote(path)} does not exist"
    if failed_at is not None and failed_at != path.strip("/"):
        what += f": there is no {quote(failed_at)}"
    hints: list[str] = []
    if similar and unicodedata.normalize("NFC", similar[0]) == unicodedata.normalize(
        "NFC", failed_at or path
    ):
        hints.append(f"{quote(similar[0])} is there: the same letters in another Unicode form.")
    elif similar:
        hints.append(f"Did you mean {' or '.join(quote(other) for other in similar)}?")
    elif path.startswith("~"):
        hints.append("`~` is not expanded.")
    elif "://" in path or path.startswith("file:"):
        hints.append("Give a path, not a URL.")
    elif "\\" in path:
        hints.append("Put `/` between names.")
    hints.append(Message("Call ", call("ls", path=display_name(directory) or "."), " to see what is there."))
    return NotFoundError(f"{what}.", hint=Joined(" ", *hints), details=details)


def not_usable(path: str, only: list[str]) -> OutsideWorkspaceError:
    """Return outside_workspace for a path inside the root where nothing may be used."""
    usable = (
        f"Give a path in {' or '.join(map(quote, only))}." if only else "Tell the user that nothing may be."
    )
    return OutsideWorkspaceError(
        f"{quote(path)} is outside of what may be used.", hint=usable, details={"path": display_name(path)}
    )


def not_a_directory(path: str, failed_at: str | None = None, *, readable: bool = True) -> NotDirectoryError:
    """Return not_a_directory for a path, `failed_at` being the part of it that is a file."""
    where = path if failed_at is None else failed_at
    return NotDirectoryError(
        f"{quote(where)} is a file, not a directory.",
        hint=Message("Call ", call("read", path=display_name(where)), " to see its content.")
        if readable
        else "Choose a directory.",
        details={"path": display_name(path)},
    )


def not_a_file(path: str) -> NotAFileError:
    """Return not_a_file for a path."""
    return NotAFileError(
        f"{quote(path)} is a directory, not a file.",
        hint=Message("Call ", call("ls", path=display_name(path)), " to see what is in it."),
        details={"path": display_name(path)},
    )


def not_regular(path: str, mode: int) -> AgentFSError:
    """Return the error for what is no regular file."""
    if stat.S_ISDIR(mode):
        return not_a_file(path)
    kind = _KINDS.get(stat.S_IFMT(mode), "something else")
    return SpecialFileError(
        f"{quote(path)} is {kind}, not a regular file.",
        hint=_ONLY_REGULAR,
        details={"path": display_name(path), "kind": kind},
    )


def outside(path: str, link: str | None = None) -> OutsideWorkspaceError:
    """Return outside_workspace for a path, naming the link that leads out but not where it leads."""
    details = {"path": display_name(path)}
    if link is None:
        return OutsideWorkspaceError(
            f"{quote(path)} leads out of the workspace.",
            hint="Only what lies under the workspace root can be reached.",
            details=details,
        )
    return OutsideWorkspaceError(
        f"{quote(path)} leads out of the workspace through the symbolic link {quote(link)}.",
        hint="Only what lies under the workspace root can be reached.",
        details={**details, "link": display_name(link)},
    )


def protected(path: str, real_path: str, *, readable: bool = False) -> ProtectedError:
    """Return protected for a path."""
    what = f"{quote(path)} is protected"
    if display_name(real_path) != display_name(path):
        what += f", being {quote(real_path)}"
    details = {"path": display_name(path), "real_path": display_name(real_path)}
    if readable:
        return ProtectedError(
            f"{what}: it can be read and not changed.",
            hint="Ask the user to make this change.",
            details=details,
        )
    return ProtectedError(
        f"{what}: its contents are neither shown nor changed.",
        hint="Ask the user for what you need of it.",
        details=details,
    )


def write_protected(path: str, mode: int) -> RefusedError:
    """Return refused for a file that its mode protects."""
    return RefusedError(
        f"{quote(path)} is write-protected on disk (mode {stat.S_IMODE(mode):04o}).",
        hint="Ask the user to make it writable.",
        details={"path": display_name(path)},
    )


def kept_changing(path: str) -> BusyError:
    """Return busy for a path that led to something else each time."""
    return BusyError(
        f"{quote(path)} kept changing while it was being changed.",
        hint="Try the same call again.",
        details={"path": display_name(path)},
    )


def link_loop(path: str, limit: int) -> LinkLoopError:
    """Return link_loop for a path."""
    return LinkLoopError(
        f"{quote(path)} goes through more than {limit} symbolic links.",
        hint="Links that lead to each other lead nowhere; name the file itself.",
        details={"path": display_name(path)},
    )


def link_note(path: str, real_path: str) -> list[str]:
    """Return a note for a file that was reached through a link: which one it is."""
    return [] if path == display_name(real_path) else [f"through a link: this is {quote(real_path)}"]


def link_refused(path: str, link: str) -> RefusedError:
    """Return refused for a path through a link, where the policy follows none."""
    return RefusedError(
        f"{quote(link)} is a symbolic link, and this workspace follows none.",
        hint="Name the file itself.",
        details={"path": display_name(path), "link": display_name(link)},
    )
