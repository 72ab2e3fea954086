"""What is said when an old text is not in the file: the block that comes closest.

Pure: texts in, an error out. The block is found by lines that are the same but for the white space around
them, each voting for the place where the old text would then begin; where no line is the same, by the words
of the longest line. Both look at every line once.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agentfs.disk import quote
from agentfs.editing.report import plural
from agentfs.errors import NoMatchError
from agentfs.text import cut_line, numbered

MOST_SHOWN = 20
LINE_CHARS = 200
# A line that stands at more places than this says nothing about where a block is.
COMMON = 50
_WORD = re.compile(r"\w{2,}")


@dataclass(frozen=True)
class Block:
    """Lines of a file: the index of the first, from 0, and of the one after the last."""

    start: int
    end: int


def miss(view: str, old: str, path: str) -> NoMatchError:
    """Explain why an old text was not found.

    Args:
        view: The text in its LF view.
        old: The old text, likewise.
        path: The path as shown.

    Returns:
        The error, to be raised; `details["cause"]` is "near" or "absent".
    """
    lines = view.split("\n")
    if lines[-1] == "":
        lines.pop()
    block = closest(lines, old.split("\n"))
    if block is None:
        return NoMatchError(
            f"old_string is not in {quote(path)}, and nothing there is close to it.",
            hint=f"The file has {plural(len(lines), 'line')}. Call read(path={quote(path)}), or grep "
            "for a word of it, and copy the text from there.",
            details={"path": path, "cause": "absent", "total_lines": len(lines)},
        )
    first, last = block.start + 1, block.end
    shown = lines[block.start : min(block.end, block.start + MOST_SHOWN)]
    places = numbered([cut_line(line, LINE_CHARS) for line in shown], first)
    if len(shown) < last - block.start:
        places.append(f"[and {last - block.start - len(shown)} more]")
    where = f"line {first} comes" if first == last else f"lines {first}-{last} come"
    details: dict[str, object] = {"path": path, "cause": "near", "lines": [first, last], "places": places}
    suggestion = "\n".join(lines[block.start : block.end])
    if suggestion.strip() and view.count(suggestion) == 1:
        details["suggestion"] = suggestion
    return NoMatchError(
        f"old_string is not in {quote(path)}; {where} closest:",
        hint="Copy old_string from the file exactly, white space included and without line numbers; "
        f"to see more, call read(path={quote(path)}, offset={max(1, first - 5)}).",
        details=details,
    )


def closest(lines: Sequence[str], wanted: Sequence[str]) -> Block | None:
    """Find the lines that come closest to a block.

    Args:
        lines: The lines of the file, without their ends.
        wanted: The lines of the block, without their ends.

    Returns:
        As many lines as the block has, blank lines around it not counted; or None.
    """
    stripped = [line.strip() for line in wanted]
    while stripped and not stripped[-1]:
        stripped.pop()
    while stripped and not stripped[0]:
        stripped.pop(0)
    if not stripped or not lines:
        return None
    start = _by_lines(lines, stripped)
    if start is None:
        start = _by_words(lines, stripped)
    if start is None:
        return None
    start = max(0, start)
    return Block(start, min(len(lines), start + len(stripped)))


def _by_lines(lines: Sequence[str], stripped: Sequence[str]) -> int | None:
    indexes: dict[str, list[int]] = {}
    for index, line in enumerate(stripped):
        if _WORD.search(line):
            indexes.setdefault(line, []).append(index)
    spots: dict[str, list[int]] = {line: [] for line in indexes}
    for number, line in enumerate(lines):
        found = spots.get(line.strip())
        if found is not None and len(found) <= COMMON:
            found.append(number)
    votes: Counter[int] = Counter()
    for line, numbers in spots.items():
        if len(numbers) <= COMMON:
            for number in numbers:
                for index in indexes[line][:COMMON]:
                    votes[number - index] += len(line)
    if not votes:
        return None
    return max(votes, key=lambda start: (votes[start], -start))


def _by_words(lines: Sequence[str], stripped: Sequence[str]) -> int | None:
    longest = max(stripped, key=len)
    words = set(_WORD.findall(longest))
    if not words:
        return None
    enough = sum(map(len, words)) / 2
    best, best_score = None, 0.0
    any_word = re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))))
    for number, line in enumerate(lines):
        if any_word.search(line) is None:
            continue
        theirs = set(_WORD.findall(line))
        score = sum(map(len, words & theirs)) - 0.01 * len(theirs - words)
        if score >= enough - 0.5 and score > best_score:
            best, best_score = number, score
    return None if best is None else best - stripped.index(longest)
