"""Convert system errors to typed errors, with a message and a hint for the model."""

import errno
import os
import re
import stat

from agentfs.base.advice import Advice, Joined, Retry, call, plural
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
    ReadOnlyError,
    RefusedError,
    RootGoneError,
    SpecialFileError,
    TooLargeError,
    closed,
)
from agentfs.fs.path import display_name, error_of, quote

_ONLY_REGULAR = "Only regular files can be read or changed; choose another path."
_TRY_AGAIN = "Try the same call again."
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}
# The class, the message with `{}` for the path, and the hint.
_BY_ERRNO: dict[int, tuple[type[AgentFSError], str, str]] = {
    errno.ELOOP: (LinkLoopError, "{} is a symbolic link that cannot be followed here.", ""),
    errno.ENAMETOOLONG: (NameTooLongError, "The name {} is too long for this file system.", ""),
    errno.EBUSY: (RefusedError, "{} is a mount point or in use by the system.", ""),
    errno.EILSEQ: (InvalidPathError, "The name {} is not valid on this file system.", ""),
    **dict.fromkeys(
        (errno.ENXIO, errno.EOPNOTSUPP),
        (SpecialFileError, "{} is a socket or device, not a regular file.", _ONLY_REGULAR),
    ),
}


def from_oserror(error: OSError, path: str, failed_at: str | None = None) -> AgentFSError:
    """Return the typed form of an OSError."""
    if isinstance(error, AgentFSError):  # some typed errors are also OSErrors
        return error
    match error.errno:
        case errno.ENOENT:
            return missing(path, failed_at)
        case errno.ENOTDIR:
            return not_a_directory(path, failed_at)
        case errno.EISDIR:
            return not_a_file(path)
        case errno.EBADF:  # the root was closed during the call
            return closed()
        case number:
            where = quote(path if failed_at is None else failed_at)
            if number in _BY_ERRNO:
                kind, message, hint = _BY_ERRNO[number]
                return error_of(kind, path, message.format(where), hint)
            text = os.strerror(number) if number else str(error)
            message = f"The system failed on {where}: {text}."
            return error_of(FileIOError, path, message, errno=number, error=text)


def typed(error: Exception, path: str) -> Exception:
    """Return the typed form of an OSError; return other errors unchanged."""
    return from_oserror(error, path) if isinstance(error, OSError) else error


def missing(path: str, failed_at: str | None = None) -> NotFoundError:
    """Return `not_found` for a path. `failed_at` is the first part of it that does not exist."""
    what = f"{quote(path)} does not exist"
    if failed_at is not None and failed_at != path.strip("/"):
        what += f": there is no {quote(failed_at)}"
    directory = display_name(os.path.dirname(failed_at or path)) or "."
    hint = _hint_for_missing(path)
    see = Advice("Call ", call("ls", path=directory), " to see what is there.")
    return error_of(NotFoundError, path, f"{what}.", Joined(" ", hint, see))


def _hint_for_missing(path: str) -> str:
    if re.fullmatch(r"@\w+_[0-9a-f]{4,}", path):
        return "A stored result is lost when its process ends or newer ones replace it: repeat its call."
    if path.startswith("~"):
        return "`~` is not expanded."
    if "://" in path or path.startswith("file:"):
        return "Give a path, not a URL."
    return "Put `/` between names." if "\\" in path else ""


def not_usable(path: str, only: list[str]) -> OutsideWorkspaceError:
    """Return `outside_workspace` for a path inside the root but outside the allowed directories."""
    places = " or ".join(map(quote, only))
    hint = f"Give a path in {places}." if only else "Tell the user: no path is allowed."
    return error_of(OutsideWorkspaceError, path, f"{quote(path)} is outside the allowed directories.", hint)


def not_a_directory(path: str, failed_at: str | None = None, *, readable: bool = True) -> NotDirectoryError:
    """Return `not_a_directory` for a path. `failed_at` is the part of it that is a file."""
    where = path if failed_at is None else failed_at
    read = Advice("Call ", call("read", path=display_name(where)), " to see its content.")
    message = f"{quote(where)} is a file, not a directory."
    return error_of(NotDirectoryError, path, message, read if readable else "Choose a directory.")


def not_a_file(path: str) -> NotAFileError:
    """Return `not_a_file` for a path."""
    see = Advice("Call ", call("ls", path=display_name(path)), ".")
    return error_of(NotAFileError, path, f"{quote(path)} is a directory, not a file.", see)


def ends_with_slash(path: str) -> NotAFileError:
    """Return `not_a_file` for a path with a slash at its end, at which there is no directory."""
    message = f"{quote(path + '/')} names a directory, and there is none."
    retry = Retry({"path": display_name(path)})
    return error_of(NotAFileError, path, message, Advice("For a file, ", retry, "."))


def not_regular(path: str, mode: int) -> AgentFSError:
    """Return the error for a path that is not a regular file."""
    if stat.S_ISDIR(mode):
        return not_a_file(path)
    kind = _KINDS.get(stat.S_IFMT(mode), "something else")
    message = f"{quote(path)} is {kind}, not a regular file."
    return error_of(SpecialFileError, path, message, _ONLY_REGULAR, kind=kind)


def outside(path: str, link: str | None = None) -> OutsideWorkspaceError:
    """Return `outside_workspace` for a path. The error names the link that leads out, but not its target."""
    hint = "Only paths under the workspace root can be reached."
    if link is None:
        return error_of(OutsideWorkspaceError, path, f"{quote(path)} leads out of the workspace.", hint)
    message = f"{quote(path)} leads out of the workspace through the symbolic link {quote(link)}."
    return error_of(OutsideWorkspaceError, path, message, hint, link=display_name(link))


def protected(path: str, real_path: str, *, readable: bool = False) -> ProtectedError:
    """Return `protected` for a path."""
    real = display_name(real_path)
    being = "" if real == display_name(path) else f" (it leads to {quote(real_path)})"
    what, hint = "its contents are neither shown nor changed", "Ask the user for what you need."
    if readable:
        what, hint = "it can be read but not changed", "Ask the user to make this change."
    message = f"{quote(path)} is protected{being}: {what}."
    return error_of(ProtectedError, path, message, hint, real_path=real)


def root_gone(root: str) -> RootGoneError:
    """Return `root_gone` for the path of a root that was removed."""
    message = f"The workspace root {quote(root)} was removed by another program."
    return RootGoneError(message, hint="All further calls will fail: tell the user.", details={"path": root})


def read_only(path: str | None = None) -> ReadOnlyError:
    """Return `read_only` for a path, or for all changes."""
    if path is None:
        return ReadOnlyError("Nothing can be changed: this workspace is read-only.")
    return error_of(ReadOnlyError, path, f"{quote(path)} cannot be changed: this workspace is read-only.")


def write_protected(path: str, mode: int) -> RefusedError:
    """Return `refused` for a file without write permission."""
    message = f"{quote(path)} is write-protected on disk (mode {stat.S_IMODE(mode):04o})."
    return error_of(RefusedError, path, message, "Ask the user to make it writable.")


def too_large(path: str, size: int, limit: int) -> TooLargeError:
    """Return `too_large` for a file over the limit for changes."""
    message = f"{quote(path)} has {plural(size, 'byte')}; the limit for changes is {limit}."
    read = Advice("Read it by pages: call ", call("read", path=path, offset=1), ".")
    return error_of(TooLargeError, path, message, read, size=size, limit=limit)


def kept_changing(path: str) -> BusyError:
    """Return `busy` for a path that led to another file in each attempt."""
    return error_of(BusyError, path, f"{quote(path)} kept changing during the call.", _TRY_AGAIN)


def locked(path: str, seconds: float) -> BusyError:
    """Return `busy` for a file that another call has locked."""
    message = f"Another call has been changing {quote(path)} for {seconds:g} seconds."
    return error_of(BusyError, path, message, _TRY_AGAIN)
