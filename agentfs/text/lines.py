r"""Where lines end: the one rule that reads, searches, line ids and diffs share.

Lines end at `\n` and `\r\n`; a lone `\r` ends a line only in a text that has no `\n`, so functions take
whole texts; nothing else ends one (not form feed, not U+2028). A final line end starts no further line, and
an empty text has no lines.
"""

from typing import AnyStr

from agentfs.results import Newline

_STEP = 8192  # counting ends in a part this long costs far less than finding each


def bodies_of(text: str) -> list[str]:
    """Return the lines of a text without their ends."""
    lines = lf_view(text).split("\n")
    return lines if lines[-1] else lines[:-1]


def count_lines(text: str) -> int:
    """Return how many lines a text has."""
    end = end_of(text)
    return text.count(end) + (text != "" and not text.endswith(end))


def newline_of(text: str) -> Newline | None:
    r"""Return the line end of a text, "mixed" for both `\n` and `\r\n`, or None where no line ends."""
    if "\r" not in text:
        return "\n" if "\n" in text else None
    feeds, pairs = text.count("\n"), text.count("\r\n")
    if feeds == 0:
        return "\r"
    if pairs == 0:
        return "\n"
    return "\r\n" if pairs == feeds else "mixed"


def lf_view(text: str) -> str:
    r"""Return a text with each line end as `\n`; a `\r` that ends no line stays."""
    if "\r" not in text:
        return text
    return text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")


def without_end(line: str, *, lone: bool) -> str:
    r"""Return a line without its end; `lone` is whether a lone `\r` ends a line in its text."""
    if line.endswith("\n"):
        return line[:-2] if line.endswith("\r\n") else line[:-1]
    return line[:-1] if lone and line.endswith("\r") else line


def end_of(text: str) -> str:
    r"""Return the character that ends the lines of a text: `\n` where there is one, else `\r`."""
    return "\n" if "\n" in text else "\r"


def line_start(text: AnyStr, number: int, end: AnyStr) -> int:
    """Return the position of a line, from 1; the end of a text that has fewer lines."""
    ahead, position = number - 1, 0
    while ahead and position < len(text):
        found = text.count(end, position, position + _STEP)
        if found < ahead:
            ahead -= found
            position += _STEP
            continue
        for _ in range(ahead):
            position = text.index(end, position) + 1
        return position
    return min(position, len(text))
