"""Where an old text stands in a view, as it is given; overlapping occurrences count."""

from dataclasses import dataclass

# Enough to say "at least"; beyond it only the answer to a hostile or hopeless text would get longer.
MOST_COUNTED = 1000


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


def occurrences(view: str, old: str) -> list[int]:
    """Return the offset of each occurrence, overlapping ones included, up to `MOST_COUNTED`."""
    found: list[int] = []
    start = view.find(old)
    while start >= 0 and len(found) < MOST_COUNTED:
        found.append(start)
        start = view.find(old, start + 1)
    return found


def all_places(view: str, old: str, new: str) -> list[Place]:
    """Return every occurrence from left to right, none overlapping the one before."""
    places: list[Place] = []
    start = view.find(old)
    while start >= 0:
        end = start + len(old)
        places.append(Place(start, end, new))
        start = view.find(old, end)
    return places
