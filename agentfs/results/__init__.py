"""What the methods return: frozen, typed, and ready for a program, a wire and a model.

Every result has three faces: its fields for the program, `.text` (also `str(result)`) for the model, and
`.next`, the exact call that continues it. The classes have no `slots`, because the MCP SDK then loses the
output schema.
"""

from agentfs.messages import NextCall
from agentfs.results.answers import (
    ChangesResult,
    CheckpointResult,
    DeleteResult,
    EditResult,
    GlobResult,
    GrepResult,
    ListResult,
    MoveResult,
    ReadManyResult,
    ReadResult,
    ToolResult,
    UndoResult,
    WriteResult,
)
from agentfs.results.base import TEXTS, Result
from agentfs.results.parts import (
    Containment,
    Edit,
    Entry,
    EntryType,
    FileChange,
    FileCount,
    Image,
    LineChange,
    Match,
    Newline,
    Skipped,
)

__all__ = [
    "TEXTS",
    "ChangesResult",
    "CheckpointResult",
    "Containment",
    "DeleteResult",
    "Edit",
    "EditResult",
    "Entry",
    "EntryType",
    "FileChange",
    "FileCount",
    "GlobResult",
    "GrepResult",
    "Image",
    "LineChange",
    "ListResult",
    "Match",
    "MoveResult",
    "Newline",
    "NextCall",
    "ReadManyResult",
    "ReadResult",
    "Result",
    "Skipped",
    "ToolResult",
    "UndoResult",
    "WriteResult",
]
