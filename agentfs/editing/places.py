"""What is said when an old text stands at several places: each, and what would tell it from the rest."""

from collections.abc import Sequence

from agentfs.editing.exact_match import MOST_COUNTED
from agentfs.errors import AmbiguousError
from agentfs.fs import quote
from agentfs.messages import Joined, Message, ParameterName
from agentfs.text import cut_line, numbered, visible

MOST_SHOWN = 10
MOST_ADDED = 8
LINE_CHARS = 160
_OLD, _NEW = ParameterName("old_string"), ParameterName("new_string")


def explain_ambiguous(view: str, old: str, starts: Sequence[int], path: str) -> AmbiguousError:
    """Name each place where an old text stands, with its line.

    Args:
        view: The text in its LF view.
        old: The old text.
        starts: The offsets where it stands, in order.
        path: The path as shown.

    Returns:
        The error, to be raised; `details["unique"]` has for each place a longer old text that only it has,
        where a few lines more make one.
    """
    lines: list[int] = []
    line, position = 1, 0
    for start in starts:
        line += view.count("\n", position, start)
        position = start
        lines.append(line)
    exact = len(starts) < MOST_COUNTED
    shown: list[str] = []
    unique: list[dict[str, object]] = []
    for start, number in zip(starts[:MOST_SHOWN], lines, strict=False):
        place = _place(view, start, number, len(str(lines[-1])))
        longer = _unique(view, old, start, starts) if exact else None
        if longer is not None:
            before, end = longer
            unique.append({"line": number, "old_string": view[before:end]})
            place += _added(view, (start, start + len(old)), longer)
        shown.append(place)
    more = len(starts) - len(shown)
    at_least = "" if exact else "at least "
    if more:
        shown.append(f"[and {at_least}{more} more]")
    return AmbiguousError(
        Message(_OLD, f" is in {quote(path)} {at_least}{len(starts)} times; it must be there exactly once."),
        hint=Message(
            Joined(
                ", or ",
                Message(
                    "Add lines before or after it to ", _OLD, " (and to ", _NEW, ") until it is there once"
                ),
                Message("pass ", ParameterName("replace_all"), " to replace each"),
            ),
            ".",
        ),
        details={
            "path": path,
            "count": len(starts),
            "exact": exact,
            "lines": lines[:MOST_SHOWN],
            "line_count": old.rstrip("\n").count("\n") + 1,
            "places": shown,
            "unique": unique,
        },
    )


def _place(view: str, start: int, number: int, width: int) -> str:
    first = view.rfind("\n", 0, start) + 1
    end = view.find("\n", start)
    line = view[first : end if end >= 0 else len(view)]
    return numbered([cut_line(line, LINE_CHARS)], number, width=width)[0]


def _unique(view: str, old: str, start: int, starts: Sequence[int]) -> tuple[int, int] | None:
    """Return the least widening to whole lines before or after a place that no other place has."""
    before = view.rfind("\n", 0, start) + 1
    after = _line_end(view, start + len(old))
    for added in range(MOST_ADDED + 1):
        for low, high in ((before, start + len(old)), (start, after)):
            wide = view[low:high]
            others = (other - (start - low) for other in starts if other != start)
            if not any(other >= 0 and view.startswith(wide, other) for other in others):
                return low, high
        if added < MOST_ADDED:
            before = view.rfind("\n", 0, max(before - 1, 0)) + 1 if before > 1 else 0
            after = _line_end(view, min(after + 1, len(view)))
    return None


def _line_end(view: str, position: int) -> int:
    end = view.find("\n", position)
    return end if end >= 0 else len(view)


def _added(view: str, span: tuple[int, int], wide: tuple[int, int]) -> str:
    """Say which line makes a place the only one: the first or the last that was added."""
    if wide[0] < span[0]:
        line = view[wide[0] : span[0]].partition("\n")[0]
        return f"  [only here after: {visible(cut_line(line, LINE_CHARS))}]" if line.strip() else ""
    line = view[span[1] : wide[1]].rpartition("\n")[2]
    return f"  [only here before: {visible(cut_line(line, LINE_CHARS))}]" if line.strip() else ""
