r"""Where lines end: the one rule that reads, searches, line ids and diffs share.

Lines end at `\n` and `\r\n`; a lone `\r` ends a line only in a text that has no `\n`; nothing else does
(not form feed, not U+2028). A final line end starts no further line, and an empty text has no lines.
"""

from agentfs.results import Newline

_STEP = 65_536  # counting ends over a stretch this long costs far less than finding each


def split_lines(text: str) -> list[str]:
    r"""Split a text into its lines, line ends kept; put together they are the text.

    Args:
        text: A whole text: whether a lone `\r` ends a line depends on all of it.

    Returns:
        The lines; none for an empty text.
    """
    end = end_of(text)
    parts = text.split(end)
    last = parts.pop()
    lines = [part + end for part in parts]
    if last:
        lines.append(last)
    return lines


def count_lines(text: str) -> int:
    """Count the lines of a text without splitting it.

    Args:
        text: A whole text.

    Returns:
        The length of `split_lines(text)`.
    """
    end = end_of(text)
    return text.count(end) + (text != "" and not text.endswith(end))


def newline_of(text: str) -> Newline | None:
    r"""Tell how the lines of a text end.

    Args:
        text: A whole text.

    Returns:
        The one line end it uses, "mixed" for both `\n` and `\r\n`, or None where no line ends.
    """
    feeds = text.count("\n")
    if not feeds:
        return "\r" if "\r" in text else None
    pairs = text.count("\r\n")
    if pairs == 0:
        return "\n"
    return "\r\n" if pairs == feeds else "mixed"


def lf_view(text: str) -> str:
    r"""Show every line end of a text as `\n`.

    Args:
        text: A whole text.

    Returns:
        The text with the same lines, each end a `\n`; a `\r` that ends no line stays.
    """
    if "\r" not in text:
        return text
    return text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")


def without_end(line: str, *, lone: bool) -> str:
    r"""Take the line end off one line of `split_lines`.

    Args:
        line: A line as `split_lines` gives it.
        lone: Whether a lone `\r` ends a line, that is, whether the text has no `\n`.

    Returns:
        The line without its end.
    """
    if line.endswith("\n"):
        return line[:-2] if line.endswith("\r\n") else line[:-1]
    return line[:-1] if lone and line.endswith("\r") else line


def end_of(text: str) -> str:
    r"""Tell which character ends the lines of a text.

    Args:
        text: A whole text.

    Returns:
        `\n` where there is one (it ends `\r\n` too), else `\r`.
    """
    return "\n" if "\n" in text else "\r"


def line_start(text: str, number: int, end: str) -> int:
    """Find where a line begins, without splitting the text.

    Args:
        text: A text that has the line, or ends where it would begin.
        number: The line, from 1.
        end: The character that ends lines, as `end_of` tells.

    Returns:
        The position of its first character.
    """
    ahead, position = number - 1, 0
    while ahead:
        found = text.count(end, position, position + _STEP)
        if found < ahead:
            ahead -= found
            position += _STEP
            continue
        for _ in range(ahead):
            position = text.index(end, position) + 1
        break
    return position
