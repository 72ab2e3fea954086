"""Why an old text is not in a file, where that can be proven: each check names the text that is there.

Pure. A check returns where the text meant stands in the view, as offsets, or nothing. It claims a cause only
when the text that it has in mind is really there.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from agentfs.editing.closest import word_likeness
from agentfs.editing.match import BLANK, comparable, occurrences, tolerant_matches
from agentfs.text import bodies_of, changed_lines

Span = tuple[int, int]

_ID = r"(?: [0-9a-f]{6,})?"
_NUMBERS = tuple(
    re.compile(rf"[ ]*L?(\d+){_ID}{separator}")
    for separator in (r"\|", r"\t", "→", ": ", ":", "- ", "-", "  ", r"\. ", " ")
)
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\r": "", '\\"': '"', "\\'": "'", "\\\\": "\\"}
_ESCAPE = re.compile(r"\\[nrt\"'\\]")
# Shorter texts are at many places by chance.
_TELLING = 8
_LEAST_LETTERS = 3
_TOKEN = re.compile(r"\w+|[^\w\s]")
_LONGEST_ALIGNED = 2000
_MOST_SPANS = 20
_STEP = 4096
_BLANKS = dict.fromkeys(code for code in range(0x3001) if chr(code).isspace())


def unescaped(view: str, old: str) -> tuple[list[Span], str]:
    r"""Find an old text whose line ends, tabs or quotes are written as `\n`, `\t` or `\"`.

    Args:
        view: The text in its LF view.
        old: The old text.

    Returns:
        Where it stands, and the text meant.
    """
    if "\\" not in old:
        return [], old
    meant = _ESCAPE.sub(lambda found: _ESCAPES[found[0]], old)
    only_quotes = old.replace('\\"', '"').replace("\\'", "'")
    for text in (meant, only_quotes):
        if text != old and text.strip() and (found := _found(view, text)):
            return found, text
    return [], old


def without_numbers(view: str, old: str) -> tuple[list[Span], str]:
    """Find an old text that has line numbers before its lines.

    Args:
        view: The text in its LF view.
        old: The old text.

    Returns:
        Where it stands without them, and the text meant.
    """
    lines = old.split("\n")
    if not any(character.isdigit() for character in lines[0] or old):
        return [], old
    for pattern in _NUMBERS:
        numbered = [pattern.match(line) for line in lines]
        if any(match is None and line.strip() for match, line in zip(numbered, lines, strict=True)):
            continue
        numbers = [int(match[1]) for match in numbered if match is not None]
        if not numbers or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            continue
        meant = "\n".join(
            line[match.end() :] if match else line for match, line in zip(numbered, lines, strict=True)
        )
        if meant.strip() and (found := _found(view, meant)):
            return found, meant
    return [], old


def _found(view: str, text: str) -> list[Span]:
    if found := occurrences(view, text):
        return [(start, start + len(text)) for start in found]
    return [(place.start, place.end) for place in tolerant_matches(view, text, "")[1]]


def but_for_blanks(view: str, old: str, new: str) -> list[Span]:
    """Find an old text that differs from the file in nothing but white space.

    Args:
        view: The text in its LF view.
        old: The old text.
        new: The new text, which tells whether the first line begins with its indentation.

    Returns:
        Where it stands.
    """
    wanted = without_blanks(old)
    if not wanted:
        return []
    lines = view.split("\n")
    bare = [without_blanks(line) for line in lines]
    starts = array("Q", accumulate((len(line) + 1 for line in lines), initial=0))
    bare_starts = array("Q", accumulate(map(len, bare), initial=0))
    spans: list[Span] = []
    for found in occurrences("".join(bare), wanted)[:_MOST_SPANS]:
        first = bisect_right(bare_starts, found) - 1
        last = bisect_right(bare_starts, found + len(wanted) - 1) - 1
        start = starts[first] + _column(lines[first], found - bare_starts[first])
        end = starts[last] + _column(lines[last], found + len(wanted) - 1 - bare_starts[last]) + 1
        spans.append(widened(view, (start, end), old, new))
    return spans


def but_for_case(view: str, old: str) -> list[Span]:
    """Find an old text that differs from the file in nothing but upper and lower case.

    Args:
        view: The text in its LF view.
        old: The old text.

    Returns:
        Where it stands; nothing where it is too short to tell.
    """
    if len(without_blanks(old)) < _LEAST_LETTERS:
        return []
    return [(start, start + len(old)) for start in occurrences(_lower(view), _lower(old))]


def _lower(text: str) -> str:
    """Return a text in lower case, as long as it is: only of one letter the lower case has two characters."""
    return text.replace("\u0130", "i").lower()


def part_of(line: str, old: str) -> Span:
    """Find the part of a line that an old text within one line stands for.

    Args:
        line: The line that comes closest to the old text.
        old: The old text.

    Returns:
        The part from the first word or mark of the old text, where the line has it, to the last one, where
        the line has that; otherwise from where the line begins, or to where it ends, without blanks.
    """
    body = line.strip()
    first, last = (line.find(body), line.find(body) + len(body)) if body else (0, len(line))
    if not old.strip() or max(len(line), len(old)) > _LONGEST_ALIGNED:
        return first, last
    import difflib  # noqa: PLC0415 - loaded when first needed

    theirs = list(_TOKEN.finditer(line))
    tokens = [token[0].lower() for token in theirs]
    mine = [_nearest(token.lower(), tokens) for token in _TOKEN.findall(old)]
    matching = difflib.SequenceMatcher(None, mine, tokens, autojunk=False).get_matching_blocks()[:-1]
    if sum(block.size for block in matching) * 2 < len(mine):
        return first, last
    if matching[0].a == 0:
        first = theirs[matching[0].b].start()
    if matching[-1].a + matching[-1].size == len(mine):
        last = theirs[matching[-1].b + matching[-1].size - 1].end()
    return first, last


def _nearest(token: str, tokens: Sequence[str]) -> str:
    """Return the token that is most like another, or that other where none is alike."""
    nearest = max(tokens, key=lambda each: word_likeness(token, each), default=token)
    return nearest if word_likeness(token, nearest) else token


def _column(line: str, count: int) -> int:
    """Return where the character stands before which `count` others that are not white space stand."""
    for start in range(0, len(line), _STEP):
        part = line[start : start + _STEP]
        there = len(without_blanks(part))
        if there <= count:
            count -= there
            continue
        for column, character in enumerate(part, start):
            if not character.isspace():
                if count == 0:
                    return column
                count -= 1
    return len(line)


def widened(view: str, span: Span, old: str, new: str) -> Span:
    """Widen a span to the white space around it that an edit of it would name too.

    Args:
        view: The text in its LF view.
        span: Where the text stands without the white space around it.
        old: The old text.
        new: The new text.

    Returns:
        The span with the indentation of its first line, where old or new text bring one, the blanks that end
        its last line, and the line end, where the old text has it.
    """
    start, end = span
    line = view.rfind("\n", 0, start) + 1
    if not view[line:start].strip(BLANK) and (_indented(old) or _indented(new)):
        start = line
    rest = view.find("\n", end)
    rest = len(view) if rest < 0 else rest
    if not view[end:rest].strip(BLANK):
        end = rest
        # The line ends behind it, and those of blank lines around it, as far as both have them.
        for _ in range(_blank_lines(old[::-1])):
            rest = view.find("\n", end) if end < len(view) else -1
            if rest < 0 or view[end:rest].strip(BLANK):
                break
            end = rest + 1
    for _ in range(_blank_lines(old)):
        line = view.rfind("\n", 0, start - 1) + 1 if start else 0
        if not start or view[start - 1] != "\n" or view[line : start - 1].strip(BLANK):
            break
        start = line
    return start, end


def _blank_lines(text: str) -> int:
    """Count the line ends before the first character that is not white space."""
    return text[: len(text) - len(text.lstrip())].count("\n")


def _indented(text: str) -> bool:
    return text.lstrip("\n")[:1] in {" ", "\t"}


def since(view: str, old: str, before: str) -> tuple[Span, str, str] | None:
    """Find what became of an old text that an earlier version of the file had.

    Args:
        view: The text in its LF view.
        old: The old text.
        before: The earlier version, likewise.

    Returns:
        Where the lines stand now that it was part of, those lines as they were, and the part of them that
        stands for the old text; None where the earlier version did not have it.
    """
    found = before.find(old)
    if found < 0 or not comparable(before, old, ""):
        return None
    was, now = bodies_of(before), bodies_of(view)
    first = before.count("\n", 0, found)
    last = first + old.removesuffix("\n").count("\n")
    start, end = _mapped(changed_lines(was, now), first, last + 1)
    starts = array("Q", accumulate((len(line) + 1 for line in now), initial=0))
    span = starts[start], min(starts[end], len(view))
    lines = view[span[0] : span[1]]
    line = before.rfind("\n", 0, found) + 1
    head = before[line:found]
    tail_end = before.find("\n", found + len(old) - old.endswith("\n"))
    tail = before[found + len(old) : (tail_end if tail_end >= 0 else len(before)) + 1]
    part = ""
    if lines.startswith(head) and lines.endswith(tail) and len(lines) >= len(head) + len(tail):
        part = lines[len(head) : len(lines) - len(tail)]
    return span, "\n".join(was[first : last + 1]), part


def _mapped(changes: Sequence[tuple[int, int, int, int]], first: int, end: int) -> Span:
    """Return the lines that stand where those from `first` to `end` stood."""
    start_now, end_now, shift = first, end, 0
    start_known = end_known = False
    for old_start, old_end, new_start, new_end in changes:
        if not start_known and first < old_end:
            start_now = min(first, old_start) + shift if first < old_start else new_start
            start_known = True
        if not end_known and end <= old_start:
            end_now, end_known = end + shift, True
        elif not end_known and end <= old_end:
            end_now, end_known = new_end, True
        shift += (new_end - new_start) - (old_end - old_start)
    if not start_known:
        start_now = first + shift
    if not end_known:
        end_now = end + shift
    return start_now, max(start_now, end_now)


def there_already(view: str, old: str, new: str) -> list[Span]:
    """Find a new text that says more than the old one, and is in the file.

    Args:
        view: The text in its LF view.
        old: The old text.
        new: The new text.

    Returns:
        Where it stands; nothing where it is too short to tell, or a part of the old text.
    """
    bare, bare_old = without_blanks(new), without_blanks(old)
    if len(bare) < _TELLING or new.strip() in old or (bare in bare_old and bare != bare_old):
        return []
    return [(start, start + len(new)) for start in occurrences(view, new)]


def in_others(old: str, others: Sequence[tuple[str, str]]) -> list[str]:
    """Name the files shown that have an old text.

    Args:
        old: The old text.
        others: Paths and texts in their LF view.

    Returns:
        The paths; none where the old text is too short to tell.
    """
    if len(without_blanks(old)) < _TELLING:
        return []
    return [path for path, text in others if old in text]


def without_blanks(text: str) -> str:
    """Return a text without its white space."""
    return text.translate(_BLANKS)
