"""The options of changes that a dialect may make beyond the parameters of the methods."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from agentfs.permissions import Effect
from agentfs.results import LineChange

Spans: TypeAlias = Sequence[tuple[int, int, str]]


@dataclass(frozen=True)
class EditLinesOptions:
    """The options of `Workspace.edit_lines`: its parameters, then one that only dialects need.

    Attributes:
        fresh_ids: Line ids are valid only until the file changes, so that it must be read again after each
            edit. Otherwise they are valid while their line stays the same.
    """

    method: ClassVar[str] = "edit_lines"
    effect: ClassVar[Effect] = "write"
    path: str
    changes: Sequence[LineChange]
    preview: bool = False
    fresh_ids: bool = False


@dataclass(frozen=True)
class InsertOptions:
    """Insert a text as lines of its own.

    Attributes:
        path: The file.
        line: The line after which to insert; 0 is the beginning of the file.
        text: The text.
    """

    method: ClassVar[str] = "edit"
    effect: ClassVar[Effect] = "write"
    path: str
    line: int
    text: str


@dataclass(frozen=True)
class SpliceOptions:
    r"""Replace ranges of characters, given by their offsets.

    Attributes:
        path: The file.
        spans: Start, end and new text of each range, in any order. Offsets count from 0 in the old text, in
            which every line end is one `\n`. Or a function that computes the ranges from that text, and
            returns them and notes for the result. The text that the function gets does not count as read.
    """

    method: ClassVar[str] = "edit"
    effect: ClassVar[Effect] = "write"
    path: str
    spans: Spans | Callable[[str], tuple[Spans, Sequence[str]]]
