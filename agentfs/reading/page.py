"""Choosing what one page shows: from some lines, as many as the budget holds."""

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from agentfs.limits import Limits
from agentfs.text import cut_line, end_of, line_start, number_shown, visible_bodies


# Named tuples in this room: a frozen dataclass takes eight times as long to import.
class LineSlice(NamedTuple):
    """Lines that follow one another in a file, as far as a page may need them.

    Attributes:
        first: The number of the first of them.
        parts: The lines without the character that ends them.
        end: That character.
        ended: Whether the last of them ends with it.
        unheld: What the only line has beyond what is held of it, such as "12 bytes", or "".
        ids: The ids of the lines, where they are to be shown.
        room: Bytes beside each line where the caller lays the lines out by itself, or None.
    """

    first: int
    parts: Sequence[str]
    end: str
    ended: bool = True
    unheld: str = ""
    ids: Sequence[str] = ()
    room: int | None = None

    def content(self, count: int) -> str:
        """Return the exact text of the first `count` lines."""
        last_ended = self.ended or count < len(self.parts)
        return self.end.join(self.parts[:count]) + (self.end if last_ended else "")

    def head(self, count: int) -> "LineSlice":
        """Return the first `count` of the lines."""
        if count >= len(self.parts):
            return self
        return self._replace(parts=self.parts[:count], ended=True, unheld="")


class Page(NamedTuple):
    """What is shown of a stretch.

    Attributes:
        first: The number of the first line.
        last: The number of the last line.
        shown: The lines for the model, numbered.
        content: Their exact text.
        cut: The numbers of the lines that are too long to be shown whole.
        unheld: What the only line has that `content` does not, or "".
    """

    first: int
    last: int
    shown: Sequence[str]
    content: str
    cut: Sequence[int]
    unheld: str = ""


def stretch_of(text: str, first: int, count: int) -> LineSlice:
    """Take lines out of a text.

    Args:
        text: The whole text.
        first: The number of the first line; the text has it.
        count: How many lines at most.

    Returns:
        The lines.
    """
    end = end_of(text)
    parts = text[line_start(text, first, end) :].split(end, count)
    rest = parts.pop()
    if len(parts) == count or not rest:
        return LineSlice(first, parts, end)
    return LineSlice(first, [*parts, rest], end, ended=False)


def from_column(parts: Sequence[str], column: int, end: str, *, ended: bool) -> list[str]:
    r"""Take the start off lines.

    Args:
        parts: Lines without the character that ends them.
        column: The first character that stays, from 1.
        end: That character.
        ended: Whether the last of them ends with it.

    Returns:
        As many lines; the `\r` of a `\r\n` always stays.
    """
    start = column - 1
    cut = [part[start:] for part in parts]
    if end == "\n":
        for index in range(len(parts) if ended else len(parts) - 1):
            if not cut[index] and parts[index].endswith("\r"):
                cut[index] = "\r"
    return cut


def page_of(stretch: LineSlice, limits: Limits) -> Page:
    """Show as many lines of a stretch as the byte budget of the text holds, and always the first.

    Args:
        stretch: The lines; there is at least one.
        limits: `read_bytes` for the whole, `line_chars` for each line.

    Returns:
        The page.
    """
    cut: list[int] = []
    bodies = _bodies(stretch)
    if stretch.room is not None:
        bodies = bodies[: _held(bodies, stretch.ids, stretch.room, limits)]
    if stretch.unheld or max(map(len, bodies)) > limits.line_chars:
        most = limits.line_chars
        cut = [n for n, body in enumerate(bodies, stretch.first) if len(body) > most or stretch.unheld]
        bodies = [cut_line(body, most, beyond=stretch.unheld) for body in bodies]
    if stretch.room is None:
        # Nothing is shown in fewer bytes than it has characters, so no more than this need be made visible.
        room = max(map(len, stretch.ids[: len(bodies)]), default=-1) + 1
        bodies = _fitting(bodies, len, stretch.first, limits.read_bytes, room)
        shown = _fitting(visible_bodies(bodies), _size, stretch.first, limits.read_bytes, room)
    else:
        shown = visible_bodies(bodies)
    last = stretch.first + len(shown) - 1
    numbered = number_shown(shown, stretch.first)
    if stretch.ids:
        numbered = [_with_id(line, name) for line, name in zip(numbered, stretch.ids, strict=False)]
    return Page(
        stretch.first,
        last,
        numbered,
        stretch.content(len(shown)),
        [number for number in cut if number <= last],
        stretch.unheld,
    )


def _with_id(line: str, name: str) -> str:
    number, mark, body = line.partition("|")
    return f"{number} {name}{mark}{body}"


def _bodies(stretch: LineSlice) -> Sequence[str]:
    if stretch.end == "\r":
        return stretch.parts
    lines = "\n".join(stretch.parts)
    if "\r" not in lines:
        return stretch.parts
    # In a last line that nothing ends, a `\r` is no line end but a character of it.
    lines = (lines + "\n").replace("\r\n", "\n")[:-1] if stretch.ended else lines.replace("\r\n", "\n")
    return lines.split("\n")


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _held(lines: Sequence[str], ids: Sequence[str], room: int, limits: Limits) -> int:
    """Return how many lines the budget holds as they are, cut where too long, each with its id and room."""
    used = -1  # the last line has no line feed
    for index, (line, name) in enumerate(zip_longest(lines, ids[: len(lines)], fillvalue="")):
        used += _size(line[: limits.line_chars]) + len(name) + room + 1
        if index and used > limits.read_bytes:
            return index
    return len(lines)


def _fitting(
    lines: Sequence[str], size: Callable[[str], int], first: int, budget: int, room: int
) -> Sequence[str]:
    """Take the lines that fit: each has its number, as wide as the widest, `room`, a mark and a line feed."""
    count = len(lines)
    # Whether all fit is told by one look at them together, which is what most pages need.
    if size("\n".join(lines)) + count * (len(str(first + count - 1)) + 1 + room) <= budget:
        return lines
    used = -1  # the last line has no line feed
    for index, line in enumerate(lines):
        used += size(line) + 2 + room
        if index and used + (index + 1) * len(str(first + index)) > budget:
            return lines[:index]
    return lines
