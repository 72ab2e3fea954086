"""The lines of a file that come closest to a block that is not in it.

Pure. Lines that are the same but for the white space around them vote for the place where the block would
then begin; where no line is the same, the words of its longest line tell, alike words counting in part. Both
look at every line once. Of places with equal votes the most similar is taken; where several are, all are
given. Where the place is known, the lines that both have tell how far the file's block reaches.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agentfs.text import changed_lines

# A line that stands at more places than this says nothing about where a block is.
COMMON = 50
# Of longer lines only the beginning is compared.
_LINE_CHARS = 100_000
_WORD = re.compile(r"\w{2,}")
_ANY_WORD = re.compile(r"\w+")
# Words that share less of their beginning and end are different words.
_ALIKE = 0.6


@dataclass(frozen=True)
class Block:
    """Lines of a file: the index of the first, from 0, and of the one after the last."""

    start: int
    end: int


def closest(lines: Sequence[str], wanted: Sequence[str]) -> list[Block]:
    """Find the lines that come closest to a block.

    Args:
        lines: The lines of the file, without their ends.
        wanted: The lines of the block, without their ends.

    Returns:
        The lines that stand for those of the block, its blank lines at either end where the file has them
        too; several such blocks where they are equally close, and none where nothing is close.
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
        return []
    starts = _by_lines(lines, stripped) or _by_words(lines, stripped)
    blocks = [_reaching(lines, stripped, max(0, start)) for start in _most_similar(lines, stripped, starts)]
    return [_with_blanks(lines, block, ahead, behind) for block in dict.fromkeys(blocks)]


def word_likeness(one: str, other: str) -> float:
    """Tell how alike two words are, by what they share at their beginning and end; 0 for different words."""
    if one == other:
        return 1.0
    most = max(len(one), len(other))
    least = min(len(one), len(other))
    if least < _ALIKE * most or (one[0] != other[0] and one[-1] != other[-1]):
        return 0.0
    head = 0
    while head < least and one[head] == other[head]:
        head += 1
    tail = 0
    while tail < least - head and one[-1 - tail] == other[-1 - tail]:
        tail += 1
    return (head + tail) / most if head + tail >= _ALIKE * most else 0.0


class _Words:
    """The words of one line, and how many of them other lines have."""

    def __init__(self, line: str) -> None:
        self._words = tuple(set(_words(line)))
        self.weight = sum(map(len, self._words))
        self._known: dict[str, tuple[tuple[int, float], ...]] = {}

    def shared(self, line: str) -> float:
        """Return how many characters of the words a line has, less a little for words of its own."""
        best: dict[int, float] = {}
        extra = 0
        for word in set(_words(line)):
            alike = self._known.get(word)
            if alike is None:
                pairs = ((index, word_likeness(mine, word)) for index, mine in enumerate(self._words))
                alike = self._known[word] = tuple(pair for pair in pairs if pair[1])
            extra += not alike
            for index, likeness in alike:
                best[index] = max(best.get(index, 0.0), likeness)
        score = sum(len(self._words[index]) * likeness for index, likeness in best.items())
        return score - 0.01 * extra


def _words(line: str) -> list[str]:
    return _ANY_WORD.findall(line[:_LINE_CHARS].lower())


def _most_similar(lines: Sequence[str], stripped: Sequence[str], starts: Sequence[int]) -> list[int]:
    """Return those of several starts whose lines have most of the words wanted."""
    if len(starts) < 2:
        return list(starts)
    words = [_Words(line) for line in stripped]
    scores = [
        sum(
            each.shared(lines[start + index])
            for index, each in enumerate(words)
            if 0 <= start + index < len(lines)
        )
        for start in starts
    ]
    return [start for start, score in zip(starts, scores, strict=True) if score == max(scores)]


def _by_lines(lines: Sequence[str], stripped: Sequence[str]) -> list[int]:
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
    most = max(votes.values(), default=0)
    return sorted(start for start, count in votes.items() if count == most)[:COMMON]


def _by_words(lines: Sequence[str], stripped: Sequence[str]) -> list[int]:
    longest = max(stripped, key=len)
    wanted = _Words(longest)
    best: list[int] = []
    least = max(wanted.weight / 2 - 0.5, 0.5)
    best_score = 0.0
    for number, line in enumerate(lines):
        score = wanted.shared(line)
        if score < least:
            continue
        if score > best_score:
            best, best_score = [number], score
        elif score == best_score and len(best) < COMMON:
            best.append(number)
    return [number - stripped.index(longest) for number in best]


def _reaching(lines: Sequence[str], stripped: Sequence[str], start: int) -> Block:
    """Find how far the file's block reaches: it may have lines more or less than the one wanted."""
    count = len(stripped)
    spare = max(3, count // 2)
    low = max(0, start - spare)
    window = [line.strip() for line in lines[low : start + count + spare]]
    pairs: list[tuple[int, int]] = []
    old_at = new_at = 0
    for old_start, old_end, new_start, new_end in (
        *changed_lines(stripped, window),
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
