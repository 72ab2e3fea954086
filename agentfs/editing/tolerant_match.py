"""Where an old text stands that is not there as it was given: a few steps, each only to one single place.

Pure. The steps are tried in order, and each takes one thing for equal: white space at the ends of lines; one
shift of the whole block; typographic characters and plain ones; the shown form of a character and itself. A
step that finds several places ends the search, since a later one would only guess. What old and new text
have in common is taken from the file, so that a step changes nothing that the edit does not.
"""

import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from agentfs import call_context
from agentfs.editing.exact_match import Place, comparable, occurrences
from agentfs.text import moved_lines, unvisible

BLANK = " \t"
# So many lines may hold what the rarest line of a block holds; more are not looked at one by one.
_MOST_SPOTS = 2000
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′", "'"),
        **dict.fromkeys("“”„‟″", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys(map(chr, (0x00A0, *range(0x2002, 0x200B), 0x202F, 0x205F, 0x3000)), " "),
    }
)
_ESCAPE = re.compile(r"⟦U\+[0-9A-F]{4,6}⟧")
_WORD = re.compile(r"\w")
_TOKEN = re.compile(r"\w+|\W")


@dataclass(frozen=True)
class Tolerated:
    """What the steps found.

    Attributes:
        via: The step that found something, or "" for none.
        places: The places: one where the edit can be made.
    """

    via: str
    places: tuple[Place, ...]


def tolerated(view: str, old: str, new: str, *, characters: bool = True) -> Tolerated:
    """Find where an old text stands that is not there as it was given.

    Args:
        view: The text in its LF view.
        old: The old text, likewise.
        new: The new text, likewise.
        characters: Whether the characters of the text are known, so that some can be taken for others.

    Returns:
        The first step that found places, with the new text fitted to each.
    """
    if not _WORD.search(old) or not comparable(view, old, new):
        return Tolerated("", ())  # blanks and marks alone are too common to tell a place
    steps: list[tuple[str, Callable[[str, str, str], list[Place]]]] = [
        ("trailing_whitespace", _trailing),
        ("indentation", _shifted),
    ]
    if characters:
        steps += [("typography", _typographic), ("visible_escapes", _escaped)]
    for via, step in steps:
        call_context.check()
        if places := step(view, old, new):
            return Tolerated(via, tuple(places))
    return Tolerated("", ())


def _trailing(view: str, old: str, new: str) -> list[Place]:
    wanted = _stripped(old)
    if not wanted.strip():
        return []
    lines = view.split("\n")
    bare = [line.rstrip(BLANK) for line in lines]
    starts = array("Q", accumulate((len(line) + 1 for line in lines), initial=0))
    bare_starts = array("Q", accumulate((len(line) + 1 for line in bare), initial=0))
    text = "\n".join(bare)
    # The last line may lack the end that old_string gives it.
    added = "" if text.endswith("\n") or not text else "\n"
    places: list[Place] = []
    for found in occurrences(text + added, wanted):
        end = found + len(wanted)
        at_end = end >= len(text) or text[end] == "\n"
        if len(wanted) < len(old) and old[-1] in BLANK and not at_end:
            continue  # the blanks at the end of old_string would have to stand for something else
        first, last = bisect_right(bare_starts, found) - 1, bisect_right(bare_starts, end) - 1
        start = starts[first] + found - bare_starts[first]
        stop = min(starts[last] + end - bare_starts[last], len(view))
        if old[-1] in BLANK:
            stop = starts[last] + len(lines[last])
        beyond = end > len(text)  # the line end that the file does not have
        given = (old[:-1], new.removesuffix("\n")) if beyond else (old, new)
        places.append(Place(start, stop, _kept_lines(given[0], view[start:stop], given[1])))
    return places


def _stripped(text: str) -> str:
    return "\n".join(line.rstrip(BLANK) for line in text.split("\n"))


def _shifted(view: str, old: str, new: str) -> list[Place]:
    whole = old.endswith("\n")
    block = old.removesuffix("\n").split("\n")
    lines = view.split("\n")
    places: list[Place] = []
    for first in _spots(lines, block):
        real = lines[first : first + len(block)]
        shift = _shift(block, real)
        fitted = None if shift is None else _fitted(block, real, new, shift)
        if fitted is None:
            continue
        start = sum(map(len, lines[:first])) + first
        stop = start + len("\n".join(real)) + whole
        if stop > len(view):
            continue
        places.append(Place(start, stop, fitted))
    return places


def _spots(lines: Sequence[str], block: Sequence[str]) -> list[int]:
    """Return the lines where a block may begin: its rarest line stands there but for its indentation."""
    bodies = [line.lstrip(BLANK) for line in block]
    wanted = {body for body in bodies if body}
    bare = [line.lstrip(BLANK) for line in lines]
    counts = Counter(line for line in bare if line in wanted)
    if len(counts) < len(wanted) or not wanted:
        return []
    rarest = min(wanted, key=lambda body: counts[body])
    if counts[rarest] > _MOST_SPOTS:
        return []
    at = bodies.index(rarest)
    spots = (number - at for number, line in enumerate(bare) if line == rarest)
    return [
        spot
        for spot in spots
        if spot >= 0 and spot + len(block) <= len(lines) and bare[spot : spot + len(block)] == bodies
    ]


def _shift(block: Sequence[str], real: Sequence[str]) -> tuple[str, str] | None:
    """Return what is taken from the start of each line and what is put there instead, one of them nothing."""
    shifts: set[tuple[str, str]] = set()
    for given, line in zip(block, real, strict=True):
        if not given.strip(BLANK):
            continue
        if line.endswith(given):
            shifts.add(("", line[: len(line) - len(given)]))
        elif given.endswith(line):
            shifts.add((given[: len(given) - len(line)], ""))
        else:
            return None
    return shifts.pop() if len(shifts) == 1 and ("", "") not in shifts else None


def _fitted(block: Sequence[str], real: Sequence[str], new: str, shift: tuple[str, str]) -> str | None:
    """Shift a new text as the old one; None where it does not stand in the same frame."""
    taken, put = shift
    lines = new.split("\n")
    if not _same_frame(block, real, lines):
        return None
    shifted: list[str] = []
    for line in lines:
        if not line.strip(BLANK):
            shifted.append(line)
        elif line.startswith(taken):
            shifted.append(put + line.removeprefix(taken))
        else:
            return None
    return _kept_lines("\n".join(_moved(block, taken, put)), "\n".join(real), "\n".join(shifted))


def _moved(block: Sequence[str], taken: str, put: str) -> list[str]:
    return [put + line.removeprefix(taken) if line.strip(BLANK) else line for line in block]


def _same_frame(block: Sequence[str], real: Sequence[str], lines: Sequence[str]) -> bool:
    """Tell whether a new text is indented as the old text is, and not as the file is already."""
    new = [line for line in lines if line.strip(BLANK)]
    if not new:
        return True
    old = [line for line in block if line.strip(BLANK)]
    theirs = {line for line in real if line.strip(BLANK)} - set(old)
    return _indent(new[0]) == _indent(old[0]) and not theirs.intersection(new)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(BLANK))]


def _typographic(view: str, old: str, new: str) -> list[Place]:
    plain, wanted = view.translate(_PLAIN), old.translate(_PLAIN)
    if (plain == view and wanted == old) or not wanted.strip():
        return []
    places: list[Place] = []
    for start in occurrences(plain, wanted):
        fitted = _kept_tokens(old, view[start : start + len(old)], new)
        if fitted is None:
            return []
        places.append(Place(start, start + len(old), fitted))
    return places


def _escaped(view: str, old: str, new: str) -> list[Place]:
    wanted = unvisible(old)
    if wanted == old:
        return []
    meant = set(_ESCAPE.findall(old))
    fitted = _ESCAPE.sub(lambda found: unvisible(found[0]) if found[0] in meant else found[0], new)
    return [Place(start, start + len(wanted), fitted) for start in occurrences(view, wanted)]


def _kept_lines(old: str, real: str, new: str) -> str:
    """Put the file's own lines where the new text has lines of the old one."""
    given, theirs, wanted = old.split("\n"), real.split("\n"), new.split("\n")
    made: list[str] = []
    old_at = 0
    for old_start, old_end, new_start, new_end in moved_lines(given, wanted):
        made += theirs[old_at:old_start]
        replaced = wanted[new_start:new_end]
        if old_end - old_start == new_end - new_start:
            pairs = zip(given[old_start:old_end], theirs[old_start:old_end], replaced, strict=True)
            replaced = [_kept_blanks(*pair) for pair in pairs]
        made += replaced
        old_at = old_end
    return "\n".join([*made, *theirs[old_at:]])


def _kept_blanks(given: str, real: str, wanted: str) -> str:
    """End a line as the file's ends, where the new text ends it as the old text did."""
    if _tail(given) != _tail(wanted):
        return wanted
    return wanted[: len(wanted) - len(_tail(wanted))] + _tail(real)


def _tail(line: str) -> str:
    return line[len(line.rstrip(BLANK)) :]


def _kept_tokens(old: str, real: str, new: str) -> str | None:
    """Put the file's own characters where the new text has words of the old one; both are as long.

    None where the rest of the new text has typographic characters: the old text has shown that the model and
    the file differ in them, so that nobody knows whether they are meant.
    """
    given, wanted = _TOKEN.findall(old), _TOKEN.findall(new)
    starts = [0, *accumulate(map(len, given))]
    made: list[str] = []
    old_at = 0
    for old_start, old_end, new_start, new_end in moved_lines(given, wanted):
        fresh = "".join(wanted[new_start:new_end])
        if fresh.translate(_PLAIN) != fresh:
            return None
        made += (real[starts[old_at] : starts[old_start]], fresh)
        old_at = old_end
    return "".join([*made, real[starts[old_at] :]])
