"""Every error that agentfs raises, each with a stable `code`; `docs/reference/errors.md` has the table.

Catch a branch (PathError, AccessError, EditError, ContentError, ArgumentError, OperationalError) to handle a
kind of failure, a leaf for one, or the Python error that a leaf also is; `code` is what crosses a wire.
"""

import errno
import os
from typing import Any, ClassVar, Self

from agentfs.advice import Advice, Joined, Names, ParameterName, calls_in, say

_ERRNO_END = 4096  # of any system; a far side may send another


class AgentFSError(Exception):
    """The root of all errors of agentfs; only its leaves are raised.

    A leaf that is an OSError has `errno`, `strerror` (the system's text) and `filename` (the displayed path).

    Attributes:
        code: A stable, machine-readable name of the failure.
        message: One sentence: what was wrong, and what is there instead.
        hint: What to do or call next, or "". Like `message` it is an `Advice` where it names tools or
            parameters.
        details: Typed facts about the failure, ready for JSON; `suggested_calls` has the complete calls that
            the hint advises, each a `name` and `arguments`.
    """

    code: ClassVar[str] = ""
    _number: ClassVar[int] = 0

    def __init_subclass__(cls, *, code: str = "", number: int = 0) -> None:
        """Set the code of a leaf, and the `errno` of an OSError; a branch has no code."""
        super().__init_subclass__()
        if code:
            cls.code = code
        if number:
            cls._number = number

    def __init__(self, message: str, *, hint: str = "", details: dict[str, Any] | None = None) -> None:
        if not self.code:
            raise TypeError(f"{type(self).__name__} groups errors; raise one of its subclasses")
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = details or {}
        self._set_hint(hint)
        if isinstance(self, OSError):
            _fill_in(self, self._number, self.details)

    def __str__(self) -> str:
        """Return what the model is shown: the message, the places it names, and the hint."""
        return str(self.text)

    @property
    def hint(self) -> str:
        """What to do or call next, or ""."""
        return self._hint

    @hint.setter
    def hint(self, hint: str) -> None:
        self.details.pop("suggested_calls", None)
        self._set_hint(hint)

    def _set_hint(self, hint: str) -> None:
        self._hint = hint
        if calls := calls_in(hint):
            self.details["suggested_calls"] = calls

    @property
    def text(self) -> Advice:
        """What `str` returns, with what it names kept apart."""
        return Joined("\n", self.message, *self.places(), self.hint)

    def places(self) -> list[str]:
        """Return the lines of `details["places"]`, the places that the message names."""
        return list(self.details.get("places", ()))

    def to_dict(self) -> dict[str, Any]:
        """Return `code`, `message`, `hint` and `details`, ready for JSON."""
        return {"code": self.code, "message": self.message, "hint": self.hint, "details": self.details}

    def in_names(self, names: Names) -> Self:
        """Return the error in the names of the tools at hand, without advice that none of them can follow."""
        details = {name: value for name, value in self.details.items() if name != "suggested_calls"}
        if "places" in details:
            details["places"] = [say(place, names) for place in self.places()]
        message = say(self.message, names) or str(self.message)
        error = type(self)(message, hint=say(self.hint, names), details=details)
        if calls := calls_in(self.hint, names):
            error.details["suggested_calls"] = calls
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions pickle by their positional arguments only, which would drop the hint and the details.
        return _rebuild, (type(self), self.message, self.hint, self.details)


def _fill_in(error: Any, usual: int, details: dict[str, Any]) -> None:
    """Set what Python's own OSError has."""
    number = details.get("errno")
    error.errno = number if type(number) is int and 0 < number < _ERRNO_END else usual
    error.strerror = os.strerror(error.errno)
    error.filename = details.get("path")


def _rebuild(leaf: type[AgentFSError], message: str, hint: str, details: dict[str, Any]) -> AgentFSError:
    return leaf(message, hint=hint, details=details)


class PathError(AgentFSError):
    """The path does not name what the call needs."""


class OutsideWorkspaceError(PathError, PermissionError, code="outside_workspace", number=errno.EACCES):
    """The path leads out of the root; whether anything exists there is not said."""


class NotFoundError(PathError, FileNotFoundError, code="not_found", number=errno.ENOENT):
    """Nothing exists at the path."""


class AlreadyExistsError(PathError, FileExistsError, code="already_exists", number=errno.EEXIST):
    """Something exists where a new file was to be made."""


class NotAFileError(PathError, IsADirectoryError, code="not_a_file", number=errno.EISDIR):
    """A directory is where a file is needed."""


class NotDirectoryError(PathError, NotADirectoryError, code="not_a_directory", number=errno.ENOTDIR):
    """A file is where a directory is needed."""


class SpecialFileError(PathError, OSError, code="not_regular", number=errno.ENXIO):
    """A FIFO, socket or device is where a regular file is needed."""


class LinkLoopError(PathError, OSError, code="link_loop", number=errno.ELOOP):
    """The path goes through more symbolic links than are followed."""


class InvalidPathError(PathError, ValueError, code="invalid_path"):
    """The path is empty, has a NUL in it, or is one of another system."""


class NameTooLongError(PathError, OSError, code="name_too_long", number=errno.ENAMETOOLONG):
    """The path or one of its names is longer than file systems allow."""


class AccessError(AgentFSError, PermissionError):
    """The policy does not allow the call."""


class ProtectedError(AccessError, code="protected", number=errno.EACCES):
    """The file is on a protected list, under its own name or another."""


class ReadOnlyError(AccessError, code="read_only", number=errno.EROFS):
    """The workspace may only be read."""


class RefusedError(AccessError, code="refused", number=errno.EPERM):
    """The permission callback or a rule refused the call."""


class EditError(AgentFSError):
    """The change does not fit the present file; nothing was written."""


class NoMatchError(EditError, code="no_match"):
    """The old text is not in the file; `details["cause"]` says why."""


class AmbiguousError(EditError, code="ambiguous"):
    """The old text is there more than once, or not as often as expected."""


class NoChangeError(EditError, code="no_change"):
    """The edit would change nothing."""


class UnreadError(EditError, code="unread"):
    """The file exists and this workspace has not read it to the end."""


class StaleError(EditError, code="stale"):
    """The file has changed since this workspace read it."""


class ConflictError(EditError, code="conflict"):
    """Another program has changed the same lines, so that a step cannot be undone or redone."""


class UnknownLineError(EditError, code="unknown_line"):
    """A line id is not in the file."""


class OverlapError(EditError, code="overlap"):
    """Two changes of one call touch the same text."""


class ContentError(AgentFSError):
    """The content of the file is not what the call can work on."""


class BinaryError(ContentError, code="binary"):
    """The file is binary."""


class EncodingError(ContentError, ValueError, code="encoding"):
    """The text cannot be decoded or encoded."""


class TooLargeError(ContentError, code="too_large"):
    """The file or the request is over a limit."""


class PastEndError(ContentError, code="past_end"):
    """The offset is past the last line or entry."""


class InvalidContentError(ContentError, ValueError, code="invalid_content"):
    """The change would leave a file that can no longer be read as what it is, such as a notebook."""


class ArgumentError(AgentFSError, ValueError):
    """The call itself is wrong."""


class InvalidArgumentError(ArgumentError, code="invalid_argument"):
    """An argument is missing, unknown, of a wrong type or out of range."""


def must_be(name: str, requirement: str, value: object, hint: str) -> InvalidArgumentError:
    """Return the error for a value of a parameter that is not what it must be."""
    message = Advice(ParameterName(name, quoted=True), f" must be {requirement}, not {value}.")
    return InvalidArgumentError(message, hint=hint, details={"argument": name, "value": f"{value}"})


def past_end(
    what: str, offset: int, first: int, last: int, *, also: str = "", **details: Any
) -> PastEndError:
    """Return the error for an offset behind the end of something, of which `first` to `last` are valid."""
    hint = Advice("Pass an ", ParameterName("offset"), f" from {first} to {last}{also}.")
    return PastEndError(
        f"{what}; offset {offset} is past its end.",
        hint=hint if last >= first else "It is empty: there is nothing to read.",
        details={"offset": offset, **details},
    )


class InvalidPatternError(ArgumentError, code="invalid_pattern"):
    """A regular expression or glob cannot be used."""


class UnknownToolError(ArgumentError, code="unknown_tool"):
    """No tool has that name."""


class OperationalError(AgentFSError):
    """The call is right, and could not be completed."""


class DeadlineExceededError(OperationalError, TimeoutError, code="timeout", number=errno.ETIMEDOUT):
    """The deadline passed."""


class BusyError(OperationalError, OSError, code="busy", number=errno.EBUSY):
    """Another writer has locked the file."""


class FileIOError(OperationalError, OSError, code="io", number=errno.EIO):
    """The operating system reported an error; `details` has its errno and text."""


class ClosedError(OperationalError, ValueError, code="closed"):
    """The workspace is closed, or the transaction has ended."""


def closed() -> ClosedError:
    """Return the error of a call of a workspace that is closed."""
    return ClosedError("This workspace is closed.", hint="No call of it works any more: tell the user.")


class UnsupportedSystemError(OperationalError, NotImplementedError, code="unsupported"):
    """This operating system cannot confine a workspace to its root."""


class DisconnectedError(OperationalError, ConnectionError, code="disconnected", number=errno.ENOTCONN):
    """The far side of a remote workspace cannot be reached.

    `details["made"]` is True or False where it is known whether the call has changed anything, else None.
    """
