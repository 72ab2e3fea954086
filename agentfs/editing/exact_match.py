"""Where an old text stands in a view, as it is given; overlapping occurrences count."""

from collections.abc import Iterator
from dataclasses import dataclass

# Enough to say "at least"; beyond it only the answer to a hostile or hopeless text would get longer.
MOST_COUNTED = 1000
# Larger texts are only searched for what is there exactly: looking closer takes lists of lines and words.
MOST_LINES = 400_000
MOST_CHARACTERS = 400_000
_BLANKS = dict.fromkeys(code for code in range(0x3001) if chr(code).isspace())


@dataclass(frozen=True)
class Place:
    """A stretch of the view that is to be replaced, and by what.

    Attributes:
        start: Offset in the view.
        end: Offset behind it.
        new: The text to put there, line ends as LF.
    """

    start: int
    end: int
    new: str


def to_lf(text: str, *, lone: bool) -> str:
    """Return what a caller wrote with its line ends as the view has them.

    Args:
        text: An old or new text.
        lone: Whether the lines of the file end at a lone CR.

    Returns:
        The text with CRLF, and with `lone` every CR, as LF.
    """
    if "\r" not in text:
        return text
    text = text.replace("\r\n", "\n")
    return text.replace("\r", "\n") if lone else text


def occurrences(view: str, old: str, start: int = 0) -> list[int]:
    """Return the offset of each occurrence from `start` on, overlapping ones too, up to `MOST_COUNTED`."""
    found: list[int] = []
    start = view.find(old, start)
    while start >= 0 and len(found) < MOST_COUNTED:
        found.append(start)
        start = view.find(old, start + 1)
    return found


def all_places(view: str, old: str, new: str) -> Iterator[Place]:
    """Yield every occurrence from left to right, none overlapping the one before."""
    start = view.find(old)
    while start >= 0:
        end = start + len(old)
        yield Place(start, end, new)
        start = view.find(old, end)


def comparable(view: str, old: str, new: str) -> bool:
    """Tell whether a text is small enough to be looked at line by line, and old and new text word by word."""
    return max(len(old), len(new)) <= MOST_CHARACTERS and view.count("\n") <= MOST_LINES


def without_blanks(text: str) -> str:
    """Return a text without its white space."""
    return text.translate(_BLANKS)
