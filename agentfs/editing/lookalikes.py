"""Find the text that a missing `old_string` was probably meant to match.

The functions return spans: ranges of offsets in the LF view. Each finds text that differs from the old text
in one way only, for example in case. Only `closest_blocks` guesses: lines that are equal, apart from
surrounding white space, vote for the start of the block. If no line is equal, words vote. A word that is not
in the file counts as the most similar word of the file. Among the starts with the most votes, the most
similar ones win.
"""

import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.editing.match import BLANK, comparable, lines_around, occurrences, tolerant_matches
from agentfs.text import View, bodies_of, changed_lines, common_prefix, common_suffix, pieces_of
from agentfs.text.nearest import closest

Span = tuple[int, int]

_ID = r"(?: [0-9a-f]{6,})?"
_NUMBERS = tuple(
    re.compile(rf"[ ]*L?([0-9]{{1,18}}){_ID}{separator}")
    for separator in (r"\|", r"\t", "→", ": ", ":", "- ", "-", "  ", r"\. ", " ")
)
_CELL_TITLE = re.compile(r"cell \d+, \w+(?:, run \d+)?")
_CELL_MARK = re.compile(r"(?:cell \d+, line \d+)?\|")
_ESCAPES = {"n": "\n", "t": "\t", "r": ""}
# A run of backslashes counts as one, because some of them may have been removed by unescaping.
_ESCAPE = re.compile(r"\\+([nrt\"'\n]?)")
# A shorter text may match by chance.
_LEAST_CHARACTERS = 8
_LEAST_LETTERS = 3
_ELLIPSIS = re.compile("…")
_SAME_QUOTES = str.maketrans("'`", '""')
_TOKEN = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(r"\w{2,}")
_IN_WORD = re.compile(r"\w\w")
_ANY_WORD = re.compile(r"\w+")
_WHITE_SPACES = re.compile(r"\s+")
_WHITE_SPACE = dict.fromkeys(code for code in range(0x3001) if chr(code).isspace())
_LONGEST_ALIGNED = 2000
_MOST_SPANS = 20
# A part that more pairs of lines share is too common to locate a block.
_COMMON = 2500
_MOST_STARTS = 50
# Only this many characters of a line are compared.
_LINE_CHARS = 100_000
# The least ratio at which one word counts as a misspelling of another.
_LEAST_SIMILARITY = 0.7
# The most pairs of words that one search compares, and the most distinct words that it keeps.
_MOST_COMPARISONS = 200_000
_MOST_REMEMBERED = 100_000


def without_escapes(view: str, old: str) -> list[Span]:
    r"""Find an old text that writes line ends, tabs or quotes as `\n`, `\t` or `\"`."""
    wanted = _ESCAPE.sub(_unescape, old)
    if wanted == old or not wanted.strip():
        return []
    unescaped = View(view, pieces_of(_ESCAPE, view, _unescape))
    found = occurrences(unescaped.text, wanted)
    return [unescaped.span(start, len(wanted)) for start in found] or _found(view, wanted)


def _unescape(escape: re.Match[str]) -> str:
    return _ESCAPES.get(escape[1], escape[1]) if escape[1] else "\\"


def without_line_numbers(view: str, old: str) -> list[Span]:
    """Find an old text with line numbers before its lines."""
    lines = old.split("\n")
    if not any(character.isdigit() for character in lines[0] or old):
        return []
    for pattern in _NUMBERS:
        call_context.check()
        matches = [pattern.match(line) for line in lines]
        if any(match is None and line.strip() for match, line in zip(matches, lines, strict=True)):
            continue
        numbers = [int(match[1]) for match in matches if match is not None]
        if not numbers or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            continue
        text = "\n".join(
            line[match.end() :] if match else line for match, line in zip(matches, lines, strict=True)
        )
        if text.strip() and (found := _found(view, text)):
            return found
    return []


def without_cell_marks(view: str, old: str) -> list[Span]:
    """Find an old text with the marks that a read or an error puts before the lines of a notebook's cells."""
    lines = old.split("\n")
    if _CELL_TITLE.fullmatch(lines[0]):
        del lines[0]
    marks = [_CELL_MARK.match(line) for line in lines]
    if not any(marks) or any(not mark and line for mark, line in zip(marks, lines, strict=True)):
        return []
    text = "\n".join(line[mark.end() :] if mark else line for mark, line in zip(marks, lines, strict=True))
    return _found(view, text) if text.strip() else []


def _found(view: str, text: str) -> list[Span]:
    if found := occurrences(view, text):
        return [(start, start + len(text)) for start in found]
    return [(match.start, match.end) for match in tolerant_matches(view, text, "")[1]]


def ignoring_white_space(view: str, old: str, new: str) -> list[Span]:
    """Find an old text that differs from the file only in white space."""
    wanted = _without_white_space(old)
    if not wanted:
        return []
    bare = View(view, pieces_of(_WHITE_SPACES, view, lambda _: ""), _without_white_space(view))
    spans = [bare.span(start, len(wanted)) for start in occurrences(bare.text, wanted)[:_MOST_SPANS]]
    # Prefer spans that cut neither a word nor a line.
    whole = [span for span in spans if _is_whole(view, span, old)]
    return [widened(view, span, old, new) for span in whole or spans]


def _is_whole(view: str, span: Span, old: str) -> bool:
    """Return True if a span does not cut a word, and ends its line if the old text does."""
    start, end = span
    if (start and _IN_WORD.match(view, start - 1)) or _IN_WORD.match(view, end - 1):
        return False
    return not (old.endswith("\n") and view[end : lines_around(view, start, end)[1]].strip())


def _without_white_space(text: str) -> str:
    return text.translate(_WHITE_SPACE)


def ignoring_characters(view: str, old: str) -> list[Span]:
    """Find an old text that differs from the file only in capitals, kinds of quotes, and `…` for `...`."""
    if len(_without_white_space(old)) < _LEAST_LETTERS:
        return []
    plain = View(view, pieces_of(_ELLIPSIS, view, lambda _: "..."))
    wanted = _folded(old.replace("…", "..."))
    return [plain.span(start, len(wanted)) for start in occurrences(_folded(plain.text), wanted)]


def _folded(text: str) -> str:
    # Only U+0130 becomes two characters in lower case, which would shift all later offsets.
    return text.translate(_SAME_QUOTES).replace("\u0130", "i").lower()


def already_applied(view: str, old: str, new: str) -> list[Span]:
    """Find the new text if it is long enough to be recognised, and is not part of the old text."""
    bare, bare_old = _without_white_space(new), _without_white_space(old)
    if len(bare) < _LEAST_CHARACTERS or new.strip() in old or (bare in bare_old and bare != bare_old):
        return []
    return [(start, start + len(new)) for start in occurrences(view, new)]


def applied_with_few_changes(view: str, old: str, new: str) -> list[Span]:
    """Find the new text if it resembles the old text. A short one must fill whole lines."""
    old, new = old.strip(), new.strip()
    head = common_prefix(old, new)
    shared = head + common_suffix(old, new, min(len(old), len(new)) - head)
    if new in old or shared * 2 < max(len(old), len(new)):
        return []
    is_long = len(_without_white_space(new)) >= _LEAST_CHARACTERS
    spans: list[Span] = []
    for start in occurrences(view, new):
        call_context.check()
        span = start, start + len(new)
        if _fills_lines(view, span) or (is_long and _is_whole(view, span, new)):
            spans.append(span)
    return spans


def _fills_lines(view: str, span: Span) -> bool:
    """Return True if a span has only blanks before it in its first line and after it in its last."""
    start, end = span
    first, last = lines_around(view, start, end)
    return not view[first:start].strip() and not view[end:last].strip()


def shared_lines(old: Sequence[str], lines: Sequence[str]) -> int:
    """Return the number of characters in the lines that two texts share, without surrounding blanks."""
    stripped, others = ([line.strip() for line in each] for each in (old, lines))
    changed = sum(sum(map(len, stripped[start:end])) for start, end, _, _ in changed_lines(stripped, others))
    return sum(map(len, stripped)) - changed


def files_with(old: str, files: Sequence[tuple[str, str]]) -> list[str]:
    """Return the paths of the files that contain an old text; none for a short text."""
    if len(_without_white_space(old)) < _LEAST_CHARACTERS:
        return []
    return [path for path, text in files if old in text]


class FormerText(NamedTuple):
    """The lines that an old text had, their present span, and its present text ("" if unknown)."""

    span: Span
    lines: str
    text: str


def former_text(view: str, old: str, before: str) -> FormerText | None:
    """Find the present form of an old text that was in an earlier version of the file."""
    found = before.find(old)
    if found < 0 or not comparable(before, old, ""):
        return None
    old_lines, new_lines = bodies_of(before), bodies_of(view)
    first = before.count("\n", 0, found)
    last = first + old.removesuffix("\n").count("\n")
    changes = changed_lines(old_lines, new_lines)
    start = _lines_now(changes, first)[0]
    end = max(start, _lines_now(changes, last)[1])
    starts = array("Q", accumulate((len(line) + 1 for line in new_lines), initial=0))
    span = starts[start], min(starts[end], len(view))
    now = view[span[0] : span[1]]
    head = before[before.rfind("\n", 0, found) + 1 : found]
    tail_end = before.find("\n", found + len(old) - old.endswith("\n"))
    tail = before[found + len(old) : (tail_end if tail_end >= 0 else len(before)) + 1]
    kept = now.startswith(head) and now.endswith(tail) and len(now) >= len(head) + len(tail)
    text = now[len(head) : len(now) - len(tail)] if kept else ""
    return FormerText(span, "\n".join(old_lines[first : last + 1]), text)


def _lines_now(changes: Sequence[tuple[int, int, int, int]], line: int) -> Span:
    """Return the range of lines that has replaced a line, or the line itself at its new number."""
    shift = 0
    for old_start, old_end, new_start, new_end in changes:
        if line < old_start:
            break
        if line < old_end:
            return new_start, new_end
        shift = new_end - old_end
    return line + shift, line + shift + 1


def widened(view: str, span: Span, old: str, new: str) -> Span:
    """Extend a span by the white space around it that an edit would include.

    This is the indentation of the first line, if the old or the new text is indented; the blanks at the end
    of the last line; and as many line ends as the old text has at either end.
    """
    start, end = span
    line, line_end = lines_around(view, start, end)
    indented = any(text.lstrip("\n")[:1] in {" ", "\t"} for text in (old, new))
    if indented and not view[line:start].strip(BLANK):
        start = line
    if not view[end:line_end].strip(BLANK):
        end = line_end
        for _ in range(_leading_newlines(old[::-1])):
            line_end = view.find("\n", end) if end < len(view) else -1
            if line_end < 0 or view[end:line_end].strip(BLANK):
                break
            end = line_end + 1
    for _ in range(_leading_newlines(old)):
        line = view.rfind("\n", 0, start - 1) + 1 if start else 0
        if not start or view[start - 1] != "\n" or view[line : start - 1].strip(BLANK):
            break
        start = line
    return start, end


def _leading_newlines(text: str) -> int:
    return text[: len(text) - len(text.lstrip())].count("\n")


def part_of_line(line: str, old: str) -> Span:
    """Find the part of a text that corresponds to an old text.

    In a single line, the part reaches from the first to the last word of the old text, if the line has them.
    Otherwise it is the whole text, without white space at either end.
    """
    body = line.strip()
    start, end = (line.find(body), line.find(body) + len(body)) if body else (0, len(line))
    if "\n" in line or "\n" in old or not old.strip() or max(len(line), len(old)) > _LONGEST_ALIGNED:
        return start, end
    tokens = list(_TOKEN.finditer(line))
    words = [token[0].lower() for token in tokens]
    old_words = [token.lower() for token in _TOKEN.findall(old)]
    meant = _meant(old_words, dict.fromkeys(words))
    old_words = [meant.get(word, word) for word in old_words]
    pairs = _same_lines(old_words, words)
    if len(pairs) * 2 < len(old_words):
        return start, end
    (first_old, first), (last_old, last) = pairs[0], pairs[-1]
    if first_old == 0:
        start = tokens[first].start()
    if last_old == len(old_words) - 1:
        end = tokens[last].end()
    return start, end


def _meant(words: Iterable[str], vocabulary: Mapping[str, None]) -> dict[str, str]:
    """Map each word that a vocabulary lacks to its most similar word."""
    unknown = sorted({word for word in words if word not in vocabulary}, key=lambda word: (-len(word), word))
    meant: dict[str, str] = {}
    for word in unknown[: _MOST_COMPARISONS // (len(vocabulary) or 1)]:
        call_context.check()
        alike = (other for other in vocabulary if other[0] == word[0] or other[-1] == word[-1])
        meant.update((word, other) for other in closest(word, alike, 1, _LEAST_SIMILARITY))
    return meant


def _words(line: str) -> list[str]:
    return _ANY_WORD.findall(line[:_LINE_CHARS].lower())


def closest_blocks(lines: Sequence[str], block: Sequence[str]) -> list[Span]:
    """Find the ranges of lines that are most similar to a block.

    If the block begins or ends with blank lines, so do the ranges, as far as the file has such lines.

    Returns:
        Ranges that are equally close; none if nothing is close.
    """
    stripped = [line.strip() for line in block]
    filled = [index for index, line in enumerate(stripped) if line]
    if not filled or not lines:
        return []
    blanks_before, blanks_after = filled[0], len(stripped) - filled[-1] - 1
    stripped = stripped[filled[0] : filled[-1] + 1]
    starts = _voted(lines, stripped, lambda line: {line.strip()} if _WORD.search(line) else ())
    if len(starts) != 1:
        starts = _most_similar(lines, stripped, starts)
    blocks = dict.fromkeys(_block_at(lines, stripped, max(0, start)) for start in starts)
    return [_with_blank_lines(lines, found, blanks_before, blanks_after) for found in blocks]


def _most_similar(lines: Sequence[str], block: Sequence[str], starts: Sequence[int]) -> list[int]:
    """Return the starts whose words are most similar to those of a block. If none are given, words vote."""
    vocabulary: dict[str, None] = {}
    for line in lines:
        call_context.check()
        if len(vocabulary) < _MOST_REMEMBERED:
            vocabulary.update(dict.fromkeys(_words(line)))
    meant = _meant(chain.from_iterable(map(_words, block)), vocabulary)

    def words_of(line: str) -> set[str]:
        return {meant.get(word, word) for word in _words(line)}

    wanted = [words_of(line) for line in block]

    def score(start: int) -> float:
        call_context.check()
        total = 0.0
        for number, words in enumerate(wanted, start):
            if 0 <= number < len(lines):
                others = words_of(lines[number])
                total += sum(map(len, words & others)) - 0.01 * len(others - words)
        return total

    least = -math.inf
    if not starts:
        starts = _voted(lines, block, words_of)
        least = max(sum(map(len, chain.from_iterable(wanted))) / 2 - 0.5, 0.5)
    scores = {start: round(score(start), 6) for start in starts}
    best = max(scores.values(), default=0.0)
    return [start for start, each in scores.items() if each == best >= least]


def _voted(lines: Sequence[str], block: Sequence[str], parts_of: Callable[[str], Iterable[str]]) -> list[int]:
    """Return the possible starts of a block that get the most votes from its parts, such as words."""
    indexes: dict[str, list[int]] = {}
    for index, line in enumerate(block):
        for part in parts_of(line):
            indexes.setdefault(part, []).append(index)
    found_at: dict[str, list[int]] = {part: [] for part in indexes}
    for number, line in enumerate(lines):
        call_context.check()
        for part in parts_of(line):
            numbers = found_at.get(part)
            if numbers is not None and len(numbers) * len(indexes[part]) <= _COMMON:
                numbers.append(number)
    votes: Counter[int] = Counter()
    for part, numbers in found_at.items():
        call_context.check()
        if len(numbers) * len(indexes[part]) <= _COMMON:
            for number in numbers:
                for index in indexes[part]:
                    votes[number - index] += len(part)
    most = max(votes.values(), default=0)
    return sorted(start for start, count in votes.items() if count == most)[:_MOST_STARTS]


def _block_at(lines: Sequence[str], stripped: Sequence[str], start: int) -> Span:
    """Return the range of lines that corresponds to a block; it may have more or fewer lines."""
    count = len(stripped)
    margin = max(3, count // 2)
    low = max(0, start - margin)
    window = [line.strip() for line in lines[low : start + count + margin]]
    pairs = [pair for pair in _same_lines(stripped, window) if _WORD.search(stripped[pair[0]])]
    if not pairs:
        return start, min(len(lines), start + count)
    (first_index, first), (last_index, last) = pairs[0], pairs[-1]
    begin = low + first - first_index
    return max(0, begin), min(len(lines), max(low + last + count - last_index, begin + 1))


def _same_lines(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the index pairs of the lines that a diff leaves unchanged."""
    call_context.check()
    end = (len(old), len(old), len(new), len(new))
    pairs: list[tuple[int, int]] = []
    old_at = new_at = 0
    for old_start, old_end, new_start, new_end in (*changed_lines(old, new), end):
        pairs += zip(range(old_at, old_start), range(new_at, new_start), strict=True)
        old_at, new_at = old_end, new_end
    return pairs


def _with_blank_lines(lines: Sequence[str], block: Span, before: int, after: int) -> Span:
    start, end = block
    while before and start and not lines[start - 1].strip():
        start, before = start - 1, before - 1
    while after and end < len(lines) and not lines[end].strip():
        end, after = end + 1, after - 1
    return start, end
