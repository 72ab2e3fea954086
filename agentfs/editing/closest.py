"""The lines of a file that come closest to a block that is not in it.

Pure. Lines that are the same but for the white space around them vote for the place where the block would
then begin; where no line is the same, the words of its longest line tell. Both look at every line once. Where
the place is known, the lines that both have tell how far the file's block reaches.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agentfs.text import moved_lines

# A line that stands at more places than this says nothing about where a block is.
COMMON = 50
_WORD = re.compile(r"\w{2,}")


@dataclass(frozen=True)
class Block:
    """Lines of a file: the index of the first, from 0, and of the one after the last."""

    start: int
    end: int


def closest(lines: Sequence[str], wanted: Sequence[str]) -> Block | None:
    """Find the lines that come closest to a block.

    Args:
        lines: The lines of the file, without their ends.
        wanted: The lines of the block, without their ends.

    Returns:
        The lines that stand for those of the block, its blank lines at either end where the file has them
        too; or None.
    """
    stripped = [line.strip() for line in wanted]
    ahead = behind = 0
    while stripped and not stripped[-1]:
        stripped.pop()
        behind += 1
    while stripped and not stripped[0]:
        stripped.pop(0)
        ahead += 1
    if not stripped or not lines:
        return None
    start = _by_lines(lines, stripped)
    if start is None:
        start = _by_words(lines, stripped)
    if start is None:
        return None
    block = _reaching(lines, stripped, max(0, start))
    return _with_blanks(lines, block, ahead, behind)


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


def _reaching(lines: Sequence[str], stripped: Sequence[str], start: int) -> Block:
    """Find how far the file's block reaches: it may have lines more or less than the one wanted."""
    count = len(stripped)
    spare = max(3, count // 2)
    low = max(0, start - spare)
    window = [line.strip() for line in lines[low : start + count + spare]]
    pairs: list[tuple[int, int]] = []
    old_at = new_at = 0
    for old_start, old_end, new_start, new_end in (
        *moved_lines(stripped, window),
        (count, count, len(window), len(window)),
    ):
        pairs += zip(range(old_at, old_start), range(new_at, new_start), strict=True)
        old_at, new_at = old_end, new_end
    pairs = [(mine, theirs) for mine, theirs in pairs if _WORD.search(stripped[mine])]
    if not pairs:
        return Block(start, min(len(lines), start + count))
    first, last = pairs[0], pairs[-1]
    begin = low + first[1] - first[0]
    end = low + last[1] + count - last[0]
    return Block(max(0, begin), min(len(lines), max(end, begin + 1)))


def _with_blanks(lines: Sequence[str], block: Block, ahead: int, behind: int) -> Block:
    start, end = block.start, block.end
    while ahead and start and not lines[start - 1].strip():
        start, ahead = start - 1, ahead - 1
    while behind and end < len(lines) and not lines[end].strip():
        end, behind = end + 1, behind - 1
    return Block(start, end)
