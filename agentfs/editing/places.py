"""What is said when an old text stands at several places."""

from collections.abc import Sequence

from agentfs.disk import quote
from agentfs.editing.matching import MOST_COUNTED
from agentfs.errors import AmbiguousError
from agentfs.text import cut_line, numbered

MOST_SHOWN = 10
LINE_CHARS = 160


def ambiguous(view: str, old: str, starts: Sequence[int], path: str) -> AmbiguousError:
    """Name each place where an old text stands, with its line.

    Args:
        view: The text in its LF view.
        old: The old text.
        starts: The offsets where it stands, in order.
        path: The path as shown.

    Returns:
        The error, to be raised.
    """
    lines: list[int] = []
    line, position = 1, 0
    for start in starts:
        line += view.count("\n", position, start)
        position = start
        lines.append(line)
    shown = [
        _place(view, start, number, len(str(lines[-1])))
        for start, number in zip(starts[:MOST_SHOWN], lines, strict=False)
    ]
    more = len(starts) - len(shown)
    at_least = "at least " if len(starts) >= MOST_COUNTED else ""
    if more:
        shown.append(f"[and {at_least}{more} more]")
    return AmbiguousError(
        f"old_string is in {quote(path)} {at_least}{len(starts)} times; it must be there exactly once.",
        hint="Add lines before or after it to old_string (and to new_string) until it stands at one place "
        "only, or pass replace_all to replace each.",
        details={
            "path": path,
            "count": len(starts),
            "exact": not at_least,
            "lines": lines[:MOST_SHOWN],
            "line_count": old.rstrip("\n").count("\n") + 1,
            "places": shown,
        },
    )


def _place(view: str, start: int, number: int, width: int) -> str:
    first = view.rfind("\n", 0, start) + 1
    end = view.find("\n", start)
    line = view[first : end if end >= 0 else len(view)]
    return numbered([cut_line(line, LINE_CHARS)], number, width=width)[0]
