"""Callables with every kind of hint, for the tests of schemas, arguments and toolsets."""

from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from agentfs.results import Edit


class Range(TypedDict, total=False):
    """A range.

    Attributes:
        first: First line.
        last: Last line.
    """

    first: int
    last: int


@dataclass(frozen=True)
class Point:
    """A point.

    Attributes:
        x: To the right.
        y: Upwards.
    """

    x: float
    y: float = 0.5

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x must not be negative")


def search(
    pattern: str,
    path: str = ".",
    glob: str | list[str] | None = None,
    output_mode: Literal["content", "files_with_matches"] = "content",
    ignore_case: bool = False,
    limit: int | None = 100,
    *,
    secret: int = 7,
) -> dict[str, Any]:
    """Search the contents
    of files.

    A second paragraph.

    Args:
        pattern: Regular
            expression: `a|b`.
        path (str): Where.
        glob: Only files that match
        output_mode: What to show.
        ignore_case: Ignore case.
        limit: Most matches; null: all.
        secret: For programmers.

    Returns:
        What it was called with.
    """
    return {
        "pattern": pattern,
        "path": path,
        "glob": glob,
        "output_mode": output_mode,
        "ignore_case": ignore_case,
        "limit": limit,
    }


def change(path: str, edits: list[Edit]) -> list[Edit]:
    """Change a file.

    Args:
        path: File.
        edits: The replacements.
    """
    return edits


def measure(
    points: list[Point],
    ranges: list[Range] | None = None,
    scale: float = 1.0,
    level: Literal[1, 2, 3] = 1,
    tags: list[str] | None = None,
) -> str:
    """Measure.

    Args:
        points: Where.
        ranges: Which lines.
        scale: Factor.
        level: How deep.
        tags: Labels.
    """
    return repr((points, ranges, scale, level, tags))


def nothing() -> None:
    """Do nothing."""


def settings(values: dict[str, int], extra: Any = None) -> str:
    """Set values.

    Args:
        values: By name.
        extra: Whatever.
    """
    return repr((values, extra))


CLOSED = [search, change, measure, nothing]
