"""Lines and footers as a model is shown them."""

from collections.abc import Sequence

from agentfs.advice import Advice, FirstOf, Joined, NextCall, plural
from agentfs.text.lines import without_end
from agentfs.visible import visible

CUT_MARK = r"⟦\+\d{1,9} characters?⟧"  # as a pattern


def numbered(lines: Sequence[str], first: int, *, width: int | None = None) -> list[str]:
    """Return lines, with or without their ends, visible and numbered: `{n}|{line}`."""
    lone = not any(line.endswith("\n") for line in lines)
    return number_lines(visible_lines([without_end(line, lone=lone) for line in lines]), first, width=width)


def visible_lines(bodies: Sequence[str]) -> list[str]:
    r"""Make lines without their ends visible; a `\r` that is left is shown."""
    # One look at all lines costs far less than a look at each.
    text = "\n".join(bodies)
    shown = visible(text)
    return list(bodies) if shown is text else shown.split("\n")


def number_lines(bodies: Sequence[str], first: int, *, width: int | None = None) -> list[str]:
    """Put numbers before visible lines, right-aligned to a width or to the widest."""
    last = first + len(bodies) - 1
    width = len(str(last)) if width is None else width
    lines: list[str] = []
    number = first
    # Numbers of one length share their padding; padding each by a format would take three times as long.
    for digits in range(len(str(first)), len(str(last)) + 1):
        pad = " " * (width - digits)
        part = bodies[number - first : 10**digits - first]
        lines += [f"{pad}{n}|{body}" for n, body in enumerate(part, number)]
        number += len(part)
    return lines


def cut_line(line: str, limit: int, *, beyond: int = 0) -> str:
    """Cut a long line and say by how much: `⟦+123 characters⟧`; a line end is kept and not counted.

    `beyond` is how many characters the line has beyond those that were loaded.
    """
    body = without_end(line, lone=True) if len(line) > limit else line
    over = max(len(body) - limit, 0) + beyond
    return f"{body[:limit]}{cut_mark(over)}{line[len(body) :]}" if over else line


def cut_mark(count: int) -> str:
    """Return the mark for so many characters that are left out of a line, "" for none."""
    return f"⟦+{plural(count, 'character')}⟧" if count else ""


def carriage_return_note(shown: str) -> str:
    """Return the part of a footer that explains `⟦U+000D⟧`, "" for a text that does not have it."""
    return "⟦U+000D⟧ is a carriage return" if "⟦U+000D⟧" in shown else ""


def notes_of(*parts: str) -> tuple[str, ...]:
    """Return the parts of a footer that say something."""
    return tuple(part for part in parts if part)


def footer(*parts: str) -> str:
    """Return what a result has left out as one line in square brackets, "" for empty parts alone."""
    present = [part for part in parts if part]
    return Advice("[", Joined("; ", *present), "]") if present else ""


def continuation(call: NextCall | None) -> str:
    """Return the part of a footer that continues a result: `more: read(path="a.py", offset=2001)`."""
    return "" if call is None else FirstOf(Advice("more: ", call), "there is more")


def first_names(names: Sequence[str], most: int) -> str:
    """Return some names and how many more there are: "a, b and 3 more"."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def line_ranges(ranges: Sequence[tuple[int, int]], most: int = 10) -> str:
    """Name line ranges: "line 4", "lines 4-9, 12"."""
    names = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:most]]
    if len(ranges) > most:
        names.append(f"… ({len(ranges) - most} more)")
    one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    return f"{'line' if one else 'lines'} {', '.join(names)}"
