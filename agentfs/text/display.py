"""Make the text of results: number lines, cut them, add footers, and fit a token budget."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TypeVar

from agentfs.base.advice import Advice, FirstOf, Joined, NextCall, plural
from agentfs.base.frozen_data import with_values
from agentfs.base.visible import visible
from agentfs.limits import Limits
from agentfs.results import Result
from agentfs.text.lines import without_end

R = TypeVar("R", bound=Result)

_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGITS = b"0123456789"
_FIRST_BYTES = bytes(range(0xC0, 0x100))  # first bytes of non-ASCII characters in UTF-8
# Hundredths of a token for each kind of character, fitted to cl100k_base (errors: docs/internals/tokens.md).
_LETTER, _DIGIT, _SPACE, _LINE, _OTHER, _WIDE, _WIDER = 21, 79, 9, 21, 63, 58, 16
_MOST_CHARACTERS = 256  # of a token, if `Limits.count_tokens` counts
CUT_MARK = r"⟦\+\d{1,9} characters?⟧"  # a regex


def numbered(lines: Sequence[str], first: int, *, width: int | None = None) -> list[str]:
    """Number lines as `{n}|{line}` and make them visible; line ends are dropped."""
    lone = not any(line.endswith("\n") for line in lines)
    return number_lines(visible_lines([without_end(line, lone=lone) for line in lines]), first, width=width)


def visible_lines(bodies: Sequence[str]) -> list[str]:
    r"""Make lines without their ends visible; a remaining `\r` is shown as `⟦U+000D⟧`."""
    # Checking the joined lines is much faster than checking each line.
    text = "\n".join(bodies)
    shown = visible(text)
    return list(bodies) if shown is text else shown.split("\n")


def number_lines(bodies: Sequence[str], first: int, *, width: int | None = None) -> list[str]:
    """Number lines that are already visible. Numbers are right-aligned, by default to the widest."""
    width = width or len(str(first + len(bodies) - 1))
    lines: list[str] = []
    # Numbers with equally many digits share their padding: a format with a width takes three times as long.
    for digits in range(len(str(first)), width + 1):
        pad, start = " " * (width - digits), first + len(lines)
        part = bodies[len(lines) : 10**digits - first]
        lines += [f"{pad}{number}|{body}" for number, body in enumerate(part, start)]
    return lines


def cut_line(line: str, limit: int, *, beyond: int = 0) -> str:
    """Cut a long line and add `⟦+123 characters⟧`. A line end is kept and not counted.

    Args:
        line: The line, as far as it was loaded.
        limit: How many characters to keep at most.
        beyond: How many characters of the line were not loaded.
    """
    body = without_end(line, lone=True) if len(line) > limit else line
    over = max(len(body) - limit, 0) + beyond
    return f"{body[:limit]}{cut_mark(over)}{line[len(body) :]}" if over else line


def cut_mark(count: int) -> str:
    """Return the mark for characters left out of a line, or "" for none."""
    return f"⟦+{plural(count, 'character')}⟧" if count else ""


def carriage_return_note(shown: str) -> str:
    """Return a note that explains `⟦U+000D⟧`, or "" for a text without it."""
    return "⟦U+000D⟧ is a carriage return" if "⟦U+000D⟧" in shown else ""


def notes_of(*parts: str) -> tuple[str, ...]:
    """Drop the notes that are empty."""
    return tuple(part for part in parts if part)


def footer(*parts: str) -> str:
    """Join parts to one line in square brackets, or return "" if all are empty."""
    present = [part for part in parts if part]
    return Advice("[", Joined("; ", *present), "]") if present else ""


# Advice for a result that was cut, from a tool that has no call for the next part.
_NARROWER = {"ls": ": list a directory in it", **dict.fromkeys(("glob", "grep"), ": narrow the search")}


def continuation(call: NextCall | None) -> str:
    """Return the note that continues a result, such as `more: read(path="a.py", offset=2001)`."""
    if call is None:
        return ""
    return FirstOf(Advice("more: ", call), f"there is more{_NARROWER.get(call['name'], '')}")


def first_names(names: Sequence[str], most: int) -> str:
    """Return the first names and a count of the others: "a, b and 3 more"."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def line_ranges(ranges: Sequence[tuple[int, int]], most: int = 10) -> str:
    """Name ranges of lines: "line 4", "lines 4-9, 12"."""
    names = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:most]]
    if len(ranges) > most:
        names.append(f"… ({len(ranges) - most} more)")
    one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    return f"line{'' if one else 's'} {', '.join(names)}"


def with_text(result: R, head: str, above: Sequence[str] = (), below: Sequence[str] = ()) -> R:
    """Render a result: a head line, the lines `above`, the notes, and the lines `below`."""
    return with_values(result, text=Joined("\n", head, *above, *result.notes, *below))


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text by the kinds of its characters.

    A token holds four or five letters, but hardly more than one digit or punctuation character. A blank
    mostly belongs to the token of the next word. A rare character has many bytes in UTF-8.
    """
    raw = text.encode("utf-8", "surrogatepass")
    size = len(raw)
    # Deleting bytes is a fast way to count those of one kind.
    letters = size - len(raw.translate(None, _LETTERS))
    digits = size - len(raw.translate(None, _DIGITS))
    spaces, lines = raw.count(b" "), raw.count(b"\n")
    more = size - len(text)
    wide = size - len(raw.translate(None, _FIRST_BYTES)) if more else 0
    others = len(text) - wide - letters - digits - spaces - lines
    hundredths = _LETTER * letters + _DIGIT * digits + _SPACE * spaces + _LINE * lines
    return -(-(hundredths + _OTHER * others + _WIDE * wide + _WIDER * more) // 100)


def most_characters(limits: Limits) -> int:
    """Return a number of characters above which no text fits the token budget."""
    per_token = _MOST_CHARACTERS if limits.count_tokens else 100 / min(_LETTER, _DIGIT, _SPACE, _LINE, _OTHER)
    return int(limits.output_tokens * per_token)


def fits(text: str, limits: Limits) -> bool:
    """Return True if a text is within `Limits.output_tokens`."""
    # A text never has more tokens than bytes, so the tokens of a short text need not be counted.
    count = limits.count_tokens or estimate_tokens
    return len(text) * 4 <= limits.output_tokens or count(text) <= limits.output_tokens


def both_ends(text: str, characters: int) -> tuple[str, str]:
    """Return the start and the end of a text, of full lines if they are not very long."""
    start, end = text[: characters // 2], text[len(text) - characters // 2 :]
    return start[: start.rfind("\n") + 1] or start, end[end.find("\n") + 1 :] or end


def head_and_tail(text: str, limits: Limits, *more: str) -> str:
    """Return a text within the token budget: if it is longer, its beginning and its end.

    A line between them says how much is left out, and has `more` notes, such as the call that shows all.
    """
    if fits(text, limits):
        return text

    def cut(characters: int) -> str:
        head, tail = both_ends(text, characters)
        left = len(text) - len(head) - len(tail)
        return Joined(
            "\n", head.removesuffix("\n"), footer(f"{plural(left, 'character')} left out", *more), tail
        )

    return cut(most_that_fit(min(len(text) - 1, most_characters(limits)), cut, limits))


def fitted(limits: Limits, *steps: tuple[int, Callable[[int], R]]) -> R:
    """Return the largest result that fits the token budget.

    Args:
        limits: The budget.
        steps: The ways to shorten the result, tried in order. Each has a number of items, and a function that
            makes the result with so many or fewer of them. The first step with all its items makes the full
            result. If nothing fits, the last one makes its shortest.
    """
    for most, render in steps:
        last = dict[int, R]()  # mostly the full result, which fits and is made once

        def text(count: int, render: Callable[[int], R] = render, last: dict[int, R] = last) -> str:
            last.clear()
            last[count] = result = render(count)
            return result.text

        if (count := most_that_fit(most, text, limits)) or (most, render) == steps[-1]:
            return last.get(count) or render(count or 1)
    raise ValueError("fitted() needs a step")


def most_that_fit(most: int, render: Callable[[int], str], limits: Limits) -> int:
    """Return how many of `most` items fit the token budget; `render(n)` makes the text with n items.

    With fewer items the text must not get longer.
    """
    if fits(render(most), limits):
        return most
    return bisect_left(range(1, most), True, key=lambda count: not fits(render(count), limits))
