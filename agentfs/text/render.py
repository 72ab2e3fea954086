"""Lines and footers as a model is shown them."""

from collections.abc import Sequence

from agentfs.messages import FirstOf, Joined, Message, NextCall
from agentfs.text.lines import without_end
from agentfs.visible import visible


def numbered(lines: Sequence[str], first: int, *, width: int | None = None, mark: str = "|") -> list[str]:
    """Number lines for a model: `{n}|{line}`, with the number right-aligned.

    Args:
        lines: Lines as `split_lines` gives them, with or without their ends.
        first: The number of the first of them.
        width: The width of the number; None for that of the widest.
        mark: What stands between the number and the line.

    Returns:
        One string a line, without line ends and made visible.
    """
    lone = not any(line.endswith("\n") for line in lines)
    shown = visible_bodies([without_end(line, lone=lone) for line in lines])
    return number_shown(shown, first, width=width, mark=mark)


def visible_bodies(bodies: Sequence[str]) -> list[str]:
    r"""Make lines that have no ends any more visible, all in one go.

    Args:
        bodies: Lines without their ends; a `\r` that is left is shown.

    Returns:
        As many lines, made visible.
    """
    # One look at all lines costs far less than a look at each.
    together = "\n".join(bodies)
    shown = visible(together)
    return list(bodies) if shown is together else shown.split("\n")


def number_shown(shown: Sequence[str], first: int, *, width: int | None = None, mark: str = "|") -> list[str]:
    """Put numbers before lines that are visible already.

    Args:
        shown: Lines without ends.
        first: The number of the first of them.
        width: The width of the number; None for that of the widest.
        mark: What stands between the number and the line.

    Returns:
        One string a line.
    """
    if width is None:
        width = len(str(first + len(shown) - 1))
    lines: list[str] = []
    number = first
    # Numbers of one length share their padding; padding each by a format would take three times as long.
    for digits in range(len(str(first)), len(str(first + len(shown) - 1)) + 1):
        pad = " " * (width - digits)
        stretch = shown[number - first : 10**digits - first]
        lines += [f"{pad}{n}{mark}{line}" for n, line in enumerate(stretch, number)]
        number += len(stretch)
    return lines


def cut_line(line: str, limit: int, *, beyond: str = "") -> str:
    """Cut a long line and say by how much; a line end is kept and not counted.

    Args:
        line: One line.
        limit: Characters to keep.
        beyond: What the line has beyond what is given of it, such as "12 bytes", or "".

    Returns:
        The line itself when it is no longer, else its start and `⟦+123 characters⟧`.
    """
    body = without_end(line, lone=True) if len(line) > limit else line
    over = max(len(body) - limit, 0)
    if not over and not beyond:
        return line
    counted = f"{over} character{'s' if over > 1 else ''}" if over else ""
    more = " and ".join(part for part in (counted, beyond) if part)
    return f"{body[:limit]}⟦+{more}⟧{line[len(body) :]}"


def footer(*parts: str) -> str:
    """Put what a result has left out into one line in square brackets.

    Args:
        *parts: What to say; empty parts are left out.

    Returns:
        The line, or "" when nothing is to be said.
    """
    return Message("[", Joined("; ", *parts), "]")


def continuation(call: NextCall | None) -> str:
    """Return the part of a footer that tells a model how to go on.

    Args:
        call: The call that continues a result, or None.

    Returns:
        For example `more: read(path="a.py", offset=2001)`, or "".
    """
    return "" if call is None else FirstOf(Message("more: ", call), "there is more")


def plural(count: int, noun: str) -> str:
    """Return "1 line", "2 lines"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def line_ranges(ranges: Sequence[tuple[int, int]], most: int = 10) -> str:
    """Name line ranges: "line 4", "lines 4-9, 12"."""
    names = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:most]]
    if len(ranges) > most:
        names.append(f"… ({len(ranges) - most} more)")
    one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    return f"{'line' if one else 'lines'} {', '.join(names)}"
