"""File tools for LLM agent loops, confined to one directory tree."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agentfs.errors import (
    AccessError,
    AgentFSError,
    AlreadyExistsError,
    AmbiguousError,
    ArgumentError,
    BinaryError,
    BusyError,
    ContentError,
    EditError,
    EncodingError,
    InputOutputError,
    InvalidArgumentError,
    InvalidPathError,
    InvalidPatternError,
    LinkLoopError,
    NameTooLongError,
    NoChangeError,
    NoMatchError,
    NotAFileError,
    NotDirectoryError,
    NotFoundError,
    NotRegularError,
    OutsideWorkspaceError,
    OverlapError,
    PastEndError,
    PathError,
    ProtectedError,
    ReadOnlyError,
    RefusedError,
    StaleError,
    SystemFailure,
    TimedOutError,
    TooLargeError,
    UnknownLineError,
    UnknownToolError,
    UnreadError,
)
from agentfs.events import Coercion, Event
from agentfs.limits import Limits
from agentfs.permissions import Allow, Deny, PermissionRequest
from agentfs.policy import Policy, Protect
from agentfs.results import (
    ChangesResult,
    CheckpointResult,
    DeleteResult,
    Edit,
    EditResult,
    Entry,
    FileChange,
    FileCount,
    GlobResult,
    GrepResult,
    Image,
    LineChange,
    ListResult,
    Match,
    MoveResult,
    ReadManyResult,
    ReadResult,
    Result,
    Skipped,
    ToolResult,
    UndoResult,
    WriteResult,
)
from agentfs.workspace import Workspace

if TYPE_CHECKING:
    from agentfs.tools.offer import RenderContext, ToolOffer
    from agentfs.tools.toolset import Toolset

__version__ = "0.1.0"

__all__ = [
    "AccessError",
    "AgentFSError",
    "Allow",
    "AlreadyExistsError",
    "AmbiguousError",
    "ArgumentError",
    "BinaryError",
    "BusyError",
    "ChangesResult",
    "CheckpointResult",
    "Coercion",
    "ContentError",
    "DeleteResult",
    "Deny",
    "Edit",
    "EditError",
    "EditResult",
    "EncodingError",
    "Entry",
    "Event",
    "FileChange",
    "FileCount",
    "GlobResult",
    "GrepResult",
    "Image",
    "InputOutputError",
    "InvalidArgumentError",
    "InvalidPathError",
    "InvalidPatternError",
    "Limits",
    "LineChange",
    "LinkLoopError",
    "ListResult",
    "Match",
    "MoveResult",
    "NameTooLongError",
    "NoChangeError",
    "NoMatchError",
    "NotAFileError",
    "NotDirectoryError",
    "NotFoundError",
    "NotRegularError",
    "OutsideWorkspaceError",
    "OverlapError",
    "PastEndError",
    "PathError",
    "PermissionRequest",
    "Policy",
    "Protect",
    "ProtectedError",
    "ReadManyResult",
    "ReadOnlyError",
    "ReadResult",
    "RefusedError",
    "RenderContext",
    "Result",
    "Skipped",
    "StaleError",
    "SystemFailure",
    "TimedOutError",
    "TooLargeError",
    "ToolOffer",
    "ToolResult",
    "Toolset",
    "UndoResult",
    "UnknownLineError",
    "UnknownToolError",
    "UnreadError",
    "Workspace",
    "WriteResult",
]

# What makes tools loads when it is first asked for, so that an import takes no longer than a workspace needs.
_LATE = {
    "RenderContext": "agentfs.tools.offer",
    "ToolOffer": "agentfs.tools.offer",
    "Toolset": "agentfs.tools.toolset",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
