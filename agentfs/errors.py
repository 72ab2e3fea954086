"""Every error that agentfs raises, each with a stable `code`.

Catch a branch (PathError, AccessError, EditError, ContentError, ArgumentError, OperationalError) for a kind
of failure, or a leaf for one failure. Each leaf also derives from Python's own error, if there is one.
"""

import errno
import os
from typing import Any, ClassVar, Self

from agentfs.base.advice import Advice, Joined, Names, ParameterName, calls_in, say

_ERRNO_END = 4096  # above every errno; a remote side can send any number


class AgentFSError(Exception):
    """The root of all errors of agentfs; only its leaves are raised.

    A leaf that is an OSError has `errno`, `strerror` (the system's text) and `filename` (the displayed path).

    Attributes:
        code: A stable, machine-readable name of the failure.
        message: One sentence on the failure and what was found instead.
        hint: The next step or call, or "". Like `message`, it is an `Advice` if it names tools or parameters.
        details: Typed facts about the failure, ready for JSON. `suggested_calls` has the complete calls in
            the hint, each a `name` and `arguments`.
    """

    code: ClassVar[str] = ""
    _number: ClassVar[int] = 0

    def __init_subclass__(cls, *, code: str = "", number: int = 0) -> None:
        """Set the code of a leaf, and the default `errno` of an OSError; a branch has no code."""
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
        """Return the text for the model: the message, the places and the hint."""
        return str(self.text)

    @property
    def hint(self) -> str:
        """The next step or call, or ""."""
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
        """The text of `str`, as an `Advice`."""
        return Joined("\n", self.message, *self.places(), self.hint)

    def places(self) -> list[str]:
        """Return `details["places"]`: one line for each place that the message refers to."""
        return list(self.details.get("places", ()))

    def to_dict(self) -> dict[str, Any]:
        """Return `code`, `message`, `hint` and `details`, ready for JSON."""
        return {"code": self.code, "message": self.message, "hint": self.hint, "details": self.details}

    def in_names(self, names: Names) -> Self:
        """Return the error with the names of the offered tools, without advice that none can follow."""
        details = {name: value for name, value in self.details.items() if name != "suggested_calls"}
        if "places" in details:
            details["places"] = [say(place, names) for place in self.places()]
        message = say(self.message, names) or str(self.message)
        error = type(self)(message, hint=say(self.hint, names), details=details)
        if calls := calls_in(self.hint, names):
            error.details["suggested_calls"] = calls
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        # By default an exception pickles only its positional arguments, without hint and details.
        return _rebuild, (type(self), self.message, self.hint, self.details)


def _fill_in(error: Any, usual: int, details: dict[str, Any]) -> None:
    """Set the attributes of Python's OSError."""
    number = details.get("errno")
    error.errno = number if type(number) is int and 0 < number < _ERRNO_END else usual
    error.strerror = os.strerror(error.errno)
    error.filename = details.get("path")


def _rebuild(leaf: type[AgentFSError], message: str, hint: str, details: dict[str, Any]) -> AgentFSError:
    return leaf(message, hint=hint, details=details)


class PathError(AgentFSError):
    """The path does not name what the call needs."""


class OutsideWorkspaceError(PathError, PermissionError, code="outside_workspace", number=errno.EACCES):
    """The path leads out of the root. The error does not say if anything exists there."""


class NotFoundError(PathError, FileNotFoundError, code="not_found", number=errno.ENOENT):
    """Nothing exists at the path."""


class AlreadyExistsError(PathError, FileExistsError, code="already_exists", number=errno.EEXIST):
    """Something exists at the path of a new file."""


class NotAFileError(PathError, IsADirectoryError, code="not_a_file", number=errno.EISDIR):
    """The path is a directory, and a file is needed."""


class NotDirectoryError(PathError, NotADirectoryError, code="not_a_directory", number=errno.ENOTDIR):
    """The path is a file, and a directory is needed."""


class SpecialFileError(PathError, OSError, code="not_regular", number=errno.ENXIO):
    """The path is a FIFO, socket or device, and a regular file is needed."""


class LinkLoopError(PathError, OSError, code="link_loop", number=errno.ELOOP):
    """The path goes through too many symbolic links."""


class InvalidPathError(PathError, ValueError, code="invalid_path"):
    """The path is empty, contains a NUL, or is a path of another system."""


class NameTooLongError(PathError, OSError, code="name_too_long", number=errno.ENAMETOOLONG):
    """The path or one of its names is longer than file systems allow."""


class AccessError(AgentFSError, PermissionError):
    """The policy does not allow the call."""


class ProtectedError(AccessError, code="protected", number=errno.EACCES):
    """The file is on a protected list, under this name or another."""


class ReadOnlyError(AccessError, code="read_only", number=errno.EROFS):
    """The workspace is read-only."""


class RefusedError(AccessError, code="refused", number=errno.EPERM):
    """The permission callback or a rule refused the call."""


class EditError(AgentFSError):
    """The change does not fit the current file; nothing was written."""


class NoMatchError(EditError, code="no_match"):
    """The old text is not in the file; `details["cause"]` has the reason."""


class AmbiguousError(EditError, code="ambiguous"):
    """The old text occurs more than once, or not as often as expected."""


class NoChangeError(EditError, code="no_change"):
    """The edit would change nothing."""


class UnreadError(EditError, code="unread"):
    """The file exists, and this workspace has not read it to the end."""


class StaleError(EditError, code="stale"):
    """The file has changed since this workspace read it."""


class ConflictError(EditError, code="conflict"):
    """Another program has changed the same lines, so that a step cannot be undone or redone."""


class UnknownLineError(EditError, code="unknown_line"):
    """A line id is not in the file."""


class OverlapError(EditError, code="overlap"):
    """Two changes of one call touch the same text."""


class ContentError(AgentFSError):
    """The call cannot process the content of the file."""


class BinaryError(ContentError, code="binary"):
    """The file is binary."""


class EncodingError(ContentError, ValueError, code="encoding"):
    """The text cannot be decoded or encoded."""


class TooLargeError(ContentError, code="too_large"):
    """The file or the request exceeds a limit."""


class PastEndError(ContentError, code="past_end"):
    """The offset is past the last line or entry."""


class InvalidContentError(ContentError, ValueError, code="invalid_content"):
    """The change would make the file invalid in its format, such as a notebook."""


class ArgumentError(AgentFSError, ValueError):
    """The arguments of the call are wrong."""


class InvalidArgumentError(ArgumentError, code="invalid_argument"):
    """An argument is missing, unknown, of a wrong type or out of range."""


def must_be(name: str, requirement: str, value: object, hint: str) -> InvalidArgumentError:
    """Return the error for a parameter with a wrong value.

    Args:
        name: The parameter.
        requirement: The completion of "must be …".
        value: The value as it is quoted in the message.
        hint: The next step.
    """
    message = Advice(ParameterName(name, quoted=True), f" must be {requirement}, not {value}.")
    return InvalidArgumentError(message, hint=hint, details={"parameter": name, "value": f"{value}"})


def past_end(
    what: str, offset: int, first: int, last: int, *, also: str = "", **details: Any
) -> PastEndError:
    """Return the error for an offset past the end, or before the start.

    Args:
        what: A clause with the size, such as "The file has 3 lines".
        offset: The offset that was passed.
        first: The smallest valid offset.
        last: The largest valid offset.
        also: A clause with other valid offsets.
        **details: More facts for `details`.
    """
    hint = Advice("Pass an ", ParameterName("offset"), f" from {first} to {last}{also}.")
    return PastEndError(
        f"{what}; offset {offset} is {'before its start' if offset < 0 else 'past its end'}.",
        hint=hint if last >= first else "It is empty: there is nothing to read.",
        details={"offset": offset, **details},
    )


class InvalidPatternError(ArgumentError, code="invalid_pattern"):
    """A regular expression or glob cannot be used."""


class UnknownToolError(ArgumentError, code="unknown_tool"):
    """No tool has that name."""


class OperationalError(AgentFSError):
    """The call is correct but could not be completed."""


class DeadlineExceededError(OperationalError, TimeoutError, code="timeout", number=errno.ETIMEDOUT):
    """The deadline passed."""


class ToolError(OperationalError, code="failed"):
    """A tool of the program's own has failed, and the model reads the text of this error.

    Of any other exception it reads the type only.
    """


class BusyError(OperationalError, OSError, code="busy", number=errno.EBUSY):
    """Another writer has locked the file."""


class FileIOError(OperationalError, OSError, code="io", number=errno.EIO):
    """The operating system reported an error; `details` has its errno and text.

    As with Python's OSError, one with the errno of a denied access is made as its subclass `DeniedError`.
    """

    def __new__(cls, message: str, *, hint: str = "", details: dict[str, Any] | None = None) -> "FileIOError":  # noqa: PYI034 - or its subclass
        """Make a `DeniedError` if the system denied the access."""
        del hint
        denied = cls is FileIOError and (details or {}).get("errno") in (errno.EACCES, errno.EPERM)
        made: type[Any] = DeniedError if denied else cls
        error: FileIOError = super().__new__(made, message)
        return error


class DeniedError(FileIOError, PermissionError, number=errno.EACCES):
    """The operating system denied the access."""


class RootGoneError(OperationalError, OSError, code="root_gone", number=errno.ESTALE):
    """The root of the workspace was removed after it was opened."""


class ClosedError(OperationalError, ValueError, code="closed"):
    """The workspace is closed, or the transaction has ended."""


def closed() -> ClosedError:
    """Return the error for a call of a closed workspace."""
    return ClosedError("This workspace is closed.", hint="All further calls will fail: tell the user.")


class UnsupportedSystemError(OperationalError, NotImplementedError, code="unsupported"):
    """This operating system cannot confine a workspace to its root."""


class DisconnectedError(OperationalError, ConnectionError, code="disconnected", number=errno.ENOTCONN):
    """The remote side of a workspace cannot be reached.

    `details["applied"]` is False if the call has changed nothing, and None if that is unknown.
    """
