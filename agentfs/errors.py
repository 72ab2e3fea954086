"""Every error that agentfs raises, each with a stable `code`; `docs/errors.md` has the table.

Catch a branch (PathError, AccessError, EditError, ContentError, ArgumentError, OperationalError) to handle a
kind of failure, a leaf for one, or the Python error that a leaf also is; `code` is what crosses a wire.
"""

from typing import Any, ClassVar, Self

from agentfs.messages import Joined, Message, Names, calls_in, say


class AgentFSError(Exception):
    """The root of all errors of agentfs; only its leaves are raised.

    Attributes:
        code: A stable, machine-readable name of the failure.
        message: One sentence: what was wrong, and what is there instead.
        hint: What to do or call next, or "". Like `message` it is a `Message` where it names tools or
            parameters.
        details: Typed facts about the failure, ready for JSON; `suggested_calls` has the complete calls that
            the hint advises, each a `name` and `arguments`.
    """

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str = "", details: dict[str, Any] | None = None) -> None:
        if "code" not in type(self).__dict__:
            msg = f"{type(self).__name__} groups errors; raise one of its subclasses"
            raise TypeError(msg)
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: dict[str, Any] = details or {}
        if calls := calls_in(hint):
            self.details["suggested_calls"] = calls

    def __str__(self) -> str:
        """Return what the model is shown: the message, the places it names, and the hint."""
        return str(self.text)

    @property
    def text(self) -> Message:
        """What `str` returns, with what it names kept apart."""
        return Joined("\n", self.message, *self.places(), self.hint)

    def places(self) -> list[str]:
        """Return the lines of `details["places"]`, the places that the message names."""
        return list(self.details.get("places", ()))

    def to_dict(self) -> dict[str, Any]:
        """Return `code`, `message`, `hint` and `details`, ready for JSON."""
        return {"code": self.code, "message": self.message, "hint": self.hint, "details": self.details}

    def in_names(self, names: Names) -> Self:
        """Return the error as the tools at hand are to report it.

        Args:
            names: What they are called; advice that none of them can follow is left out.
        """
        details = {name: value for name, value in self.details.items() if name != "suggested_calls"}
        if "places" in details:
            details["places"] = [say(place, names) for place in self.places()]
        error = type(self)(
            say(self.message, names) or str(self.message), hint=say(self.hint, names), details=details
        )
        if calls := calls_in(self.hint, names):
            error.details["suggested_calls"] = calls
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions pickle by their positional arguments only, which would drop the hint and the details.
        return _rebuild, (type(self), self.message, self.hint, self.details)


def _rebuild(
    error_class: type[AgentFSError], message: str, hint: str, details: dict[str, Any]
) -> AgentFSError:
    return error_class(message, hint=hint, details=details)


class PathError(AgentFSError):
    """The path does not name what the call needs."""


class OutsideWorkspaceError(PathError, PermissionError):
    """The path leads out of the root; whether anything exists there is not said."""

    code = "outside_workspace"


class NotFoundError(PathError, FileNotFoundError):
    """Nothing exists at the path."""

    code = "not_found"


class AlreadyExistsError(PathError, FileExistsError):
    """Something exists where a new file was to be made."""

    code = "already_exists"


class NotAFileError(PathError, IsADirectoryError):
    """A directory is where a file is needed."""

    code = "not_a_file"


class NotDirectoryError(PathError, NotADirectoryError):
    """A file is where a directory is needed."""

    code = "not_a_directory"


class SpecialFileError(PathError, OSError):
    """A FIFO, socket or device is where a regular file is needed."""

    code = "not_regular"


class LinkLoopError(PathError, OSError):
    """The path goes through more symbolic links than are followed."""

    code = "link_loop"


class InvalidPathError(PathError, ValueError):
    """The path is empty, has a NUL in it, or is one of another system."""

    code = "invalid_path"


class NameTooLongError(PathError, OSError):
    """The path or one of its names is longer than file systems allow."""

    code = "name_too_long"


class AccessError(AgentFSError, PermissionError):
    """The policy does not allow the call."""


class ProtectedError(AccessError):
    """The file is on a protected list, under its own name or another."""

    code = "protected"


class ReadOnlyError(AccessError):
    """The workspace may only be read."""

    code = "read_only"


class RefusedError(AccessError):
    """The permission callback or a rule refused the call."""

    code = "refused"


class EditError(AgentFSError):
    """The change does not fit the present file; nothing was written."""


class NoMatchError(EditError):
    """The old text is not in the file; `details["cause"]` says why."""

    code = "no_match"


class AmbiguousError(EditError):
    """The old text is in the file more than once."""

    code = "ambiguous"


class NoChangeError(EditError):
    """The edit would change nothing."""

    code = "no_change"


class UnreadError(EditError):
    """The file exists and this workspace has not read it to the end."""

    code = "unread"


class StaleError(EditError):
    """The file has changed since this workspace read it."""

    code = "stale"


class UnknownLineError(EditError):
    """A line id is not in the file."""

    code = "unknown_line"


class OverlapError(EditError):
    """Two changes of one call touch the same text."""

    code = "overlap"


class ContentError(AgentFSError):
    """The content of the file is not what the call can work on."""


class BinaryError(ContentError):
    """The file is binary."""

    code = "binary"


class EncodingError(ContentError, ValueError):
    """The text cannot be decoded or encoded."""

    code = "encoding"


class TooLargeError(ContentError):
    """The file or the request is over a limit."""

    code = "too_large"


class PastEndError(ContentError):
    """The offset is past the last line or entry."""

    code = "past_end"


class ArgumentError(AgentFSError, ValueError):
    """The call itself is wrong."""


class InvalidArgumentError(ArgumentError):
    """An argument is missing, unknown, of a wrong type or out of range."""

    code = "invalid_argument"


class InvalidPatternError(ArgumentError):
    """A regular expression or glob cannot be used."""

    code = "invalid_pattern"


class UnknownToolError(ArgumentError):
    """No tool has that name."""

    code = "unknown_tool"


class OperationalError(AgentFSError):
    """The call is right, and could not be completed."""


class DeadlineExceededError(OperationalError, TimeoutError):
    """The deadline passed."""

    code = "timeout"


class BusyError(OperationalError, OSError):
    """Another writer has locked the file."""

    code = "busy"


class FileIOError(OperationalError, OSError):
    """The operating system reported an error; `details` has its errno and text."""

    code = "io"

    def __init__(self, message: str, *, hint: str = "", details: dict[str, Any] | None = None) -> None:
        super().__init__(message, hint=hint, details=details)
        self.errno = self.details.get("errno")
        self.strerror = self.details.get("error")


class UnsupportedSystemError(OperationalError, NotImplementedError):
    """This operating system cannot confine a workspace to its root."""

    code = "unsupported"
