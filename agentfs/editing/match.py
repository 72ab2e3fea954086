"""Find an old text in a view, exactly or by one of four tolerant steps, and adapt the new text to it.

Each step ignores one difference: white space at line ends, an indentation shift of the whole block,
typographic characters, or characters shown as `⟦U+202E⟧`. An edit is applied only if all steps together find
exactly one place. Text that the old and the new text share stays as it is in the file.
"""

import re
from collections.abc import Sequence
from itertools import accumulate

from agentfs.base import call_context
from agentfs.base.advice import Advice, ParameterName
from agentfs.base.visible import unvisible
from agentfs.errors import InvalidArgumentError
from agentfs.text.compare import changed_lines
from agentfs.text.lines import Replacement, View

OLD, NEW = ParameterName("old_string"), ParameterName("new_string")
# Counting stops here; the error then says "at least".
MOST_COUNTED = 1000
BLANK = " \t"
# Larger texts are only searched exactly, because the tolerant steps need memory for all lines and words.
_MOST_LINES = 400_000
_MOST_CHARACTERS = 400_000
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′", "'"),
        **dict.fromkeys("“”„‟″", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys(map(chr, (0x00A0, *range(0x2002, 0x200B), 0x202F, 0x205F, 0x3000)), " "),
    }
)
_ESCAPE = re.compile(r"⟦U\+[0-9A-F]{4,6}⟧")
# Blanks at a line end. Possessive, so that a long run takes linear time.
_LINE_BLANKS = re.compile(r"(?<![ \t])[ \t]++(?=\n|\Z)")
_INDENTATION = re.compile(r"^[ \t]++", re.MULTILINE)
_WORD = re.compile(r"\w")
_NUMBERS = tuple(
    re.compile(rf"[ ]*L?([0-9]{{1,18}})(?: [0-9a-f]{{6,}})?{separator}")
    for separator in (r"\|", r"\t", "→", ": ", ":", "- ", "-", "  ", r"\. ", " ")
)
_TOKEN = re.compile(r"\w+|\W")

LISTED = _NUMBERS[:1]  # as `read` and `grep` number lines


def occurrences(text: str, old: str, start: int = 0) -> list[int]:
    """Return the offsets of up to `MOST_COUNTED` occurrences from `start`, including overlapping ones."""
    found: list[int] = []
    start = text.find(old, start)
    while start >= 0 and len(found) < MOST_COUNTED:
        call_context.check()
        found.append(start)
        start = text.find(old, start + 1)
    return found


def lines_around(view: str, start: int, end: int) -> tuple[int, int]:
    """Extend a range to whole lines, without the line end of the last one."""
    line_end = view.find("\n", end)
    return view.rfind("\n", 0, start) + 1, len(view) if line_end < 0 else line_end


def comparable(view: str, old: str, new: str) -> bool:
    """Return True if the texts are small enough to be compared by lines and words."""
    return max(len(old), len(new)) <= _MOST_CHARACTERS and view.count("\n") <= _MOST_LINES


def without_line_numbers(text: str, patterns: Sequence[re.Pattern[str]] = _NUMBERS) -> str:
    """Return a text without the ascending line numbers before its lines, or "" if it has none."""
    lines = text.split("\n")
    for pattern in patterns:
        matches = [pattern.match(line) for line in lines]
        if any(match is None and line.strip() for match, line in zip(matches, lines, strict=True)):
            continue
        numbers = [int(match[1]) for match in matches if match is not None]
        if numbers and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
            pairs = zip(matches, lines, strict=True)
            return "\n".join(line[match.end() :] if match else line for match, line in pairs)
    return ""


def check_line_numbers(name: ParameterName, text: str, replaced: str, line: int = 0) -> None:
    """Refuse a new text with the line numbers of our own listing before its lines.

    Args:
        name: The parameter.
        text: The new text.
        replaced: The text that it replaces; if this has such numbers, they belong to the file.
        line: The number of the first replaced line, if it is known. Otherwise one line alone is accepted.
    """
    if "|" not in text or not (bare := without_line_numbers(text, LISTED)):
        return
    is_one_line = "\n" not in text.rstrip("\n")
    is_chance = is_one_line and int(text.partition("|")[0].split()[0].lstrip("L")) != line
    if is_chance or without_line_numbers(replaced, LISTED):
        return
    raise InvalidArgumentError(
        Advice(name, " has line numbers before its lines, as in a listing; nothing was changed."),
        hint=Advice("Leave them out. If they belong to the file, begin ", name, " with another line."),
        details={"parameter": str(Advice(name)), "cause": "line_numbers_included", "suggestion": bare},
    )


def tolerant_matches(view: str, old: str, new: str) -> tuple[str, list[Replacement]]:
    """Return the first step that finds an old text, and a replacement for each place found by any step.

    The new text of each replacement is adapted to its place.
    """
    if not _WORD.search(old) or not comparable(view, old, new):
        return "", []  # blanks and punctuation alone occur in too many places
    first, matches = "", list[Replacement]()
    for via, step in _STEPS.items():
        call_context.check()
        found = step(view, old, new)
        if not matches:
            first, matches = via, found
        else:  # a place that only a later step finds may be the one that is meant
            match = matches[0]
            matches += [each for each in found if each.start >= match.end or each.end <= match.start]
        if len(matches) > 1:
            break
    return first, sorted(matches)


def _trailing(view: str, old: str, new: str) -> list[Replacement]:
    wanted, text = ("\n".join(line.rstrip(BLANK) for line in each.split("\n")) for each in (old, view))
    stripped = View(view, _LINE_BLANKS, "", text)
    # old_string may end in a line end that the last line of the file lacks.
    added = "" if text.endswith("\n") or not text else "\n"
    matches: list[Replacement] = []
    for found in occurrences(text + added, wanted):
        call_context.check()
        found_end = found + len(wanted)
        at_line_end = found_end >= len(text) or text[found_end] == "\n"
        if len(wanted) < len(old) and old[-1] in BLANK and not at_line_end:
            continue  # blanks at the end of old_string match only at a line end
        start, end = stripped.span(found, len(wanted))
        end = min(end, len(view))
        if old[-1] in BLANK:
            end += len(view[end:]) - len(view[end:].lstrip(BLANK))
        # The line end that the file lacks, and the blanks after it, are left out.
        lacking = old[len(old.rstrip(BLANK)) - 1 :] if found_end > len(text) else ""
        given = old.removesuffix(lacking), new.removesuffix(lacking).removesuffix(lacking[:1])
        matches.append(Replacement(start, end, _keep_lines(given[0], view[start:end], given[1])))
    return matches


def _shifted(view: str, old: str, new: str) -> list[Replacement]:
    block = old.removesuffix("\n").split("\n")
    wanted = "\n".join(line.lstrip(BLANK) for line in block)
    bare = View(view, _INDENTATION, "")
    matches: list[Replacement] = []
    for found in occurrences(f"\n{bare.text}\n", f"\n{wanted}\n"):
        call_context.check()
        start, end = lines_around(view, *bare.span(found, len(wanted)))
        fitted = _shift_new(block, view[start:end].split("\n"), new)
        end += old.endswith("\n")
        if fitted is not None and end <= len(view):
            matches.append(Replacement(start, end, fitted))
    return matches


def _shift_new(block: Sequence[str], actual: Sequence[str], new: str) -> str | None:
    """Shift a new text as the old text is shifted in the file; None if there is not one clear shift."""
    shifts: set[tuple[str, str]] = set()  # the prefix that the file lacks, and the one that it adds
    for line, actual_line in zip(block, actual, strict=True):
        if not line.strip(BLANK):
            continue
        if not (actual_line.endswith(line) or line.endswith(actual_line)):
            return None
        lost, added = len(line) - len(actual_line), len(actual_line) - len(line)
        shifts.add((line[: max(lost, 0)], actual_line[: max(added, 0)]))
    if len(shifts) != 1 or ("", "") in shifts:
        return None
    removed, added_text = shifts.pop()
    new_lines = new.split("\n")
    text_lines = [line for line in new_lines if line.strip(BLANK)]
    if text_lines:
        old_lines = [line for line in block if line.strip(BLANK)]
        file_lines = {line for line in actual if line.strip(BLANK)} - set(old_lines)
        depths = {line[: len(line) - len(line.lstrip(BLANK))] for line in (text_lines[0], old_lines[0])}
        if len(depths) > 1 or file_lines.intersection(text_lines):
            return None
    if not all(line.startswith(removed) for line in text_lines):
        return None

    def shift(lines: Sequence[str]) -> str:
        return "\n".join(
            added_text + line.removeprefix(removed) if line.strip(BLANK) else line for line in lines
        )

    return _keep_lines(shift(block), "\n".join(actual), shift(new_lines))


def _typographic(view: str, old: str, new: str) -> list[Replacement]:
    plain, wanted = view.translate(_PLAIN), old.translate(_PLAIN)
    if plain == view and wanted == old:
        return []
    matches: list[Replacement] = []
    for start in occurrences(plain, wanted):
        call_context.check()
        fitted = _keep_tokens(old, view[start : start + len(old)], new)
        if fitted is None:
            return []
        matches.append(Replacement(start, start + len(old), fitted))
    return matches


def _escaped(view: str, old: str, new: str) -> list[Replacement]:
    shown = unvisible(old)
    if shown == old:
        return []
    # A diff may have shown the CR of a line end, which the view does not have.
    wanted, fitted = (text.replace("\r\n", "\n") for text in (shown, shown_characters(new, shown)))
    if wanted.endswith("\r") and wanted not in view and f"{wanted[:-1]}\n" in view:
        wanted, fitted = wanted[:-1], fitted.removesuffix("\r")
    return [Replacement(start, start + len(wanted), fitted) for start in occurrences(view, wanted)]


_STEPS = {
    "trailing_whitespace": _trailing,
    "indentation": _shifted,
    "typography": _typographic,
    "visible_escapes": _escaped,
}


def shown_characters(text: str, present: str) -> str:
    """Replace each `⟦U+202E⟧` by the character it stands for, if the present text has that character."""

    def character(found: re.Match[str]) -> str:
        shown = unvisible(found[0])
        return shown if shown in present else found[0]

    return _ESCAPE.sub(character, text)


def _keep_lines(old: str, actual: str, new: str) -> str:
    """Return the new text, but take the lines that it shares with the old text from the file."""
    old_lines, actual_lines, new_lines = old.split("\n"), actual.split("\n"), new.split("\n")
    made: list[str] = []
    position = 0
    for old_start, old_end, new_start, new_end in changed_lines(old_lines, new_lines):
        made += actual_lines[position:old_start]
        replaced = new_lines[new_start:new_end]
        if old_end - old_start == new_end - new_start:
            lines = zip(old_lines[old_start:old_end], actual_lines[old_start:old_end], replaced, strict=True)
            # If old and new text have the same blanks at a line end, keep those of the file.
            replaced = [
                line.rstrip(BLANK) + _line_blanks(file_line)
                if _line_blanks(old_line) == _line_blanks(line)
                else line
                for old_line, file_line, line in lines
            ]
        made += replaced
        position = old_end
    return "\n".join([*made, *actual_lines[position:]])


def _line_blanks(line: str) -> str:
    return line[len(line.rstrip(BLANK)) :]


def _keep_tokens(old: str, actual: str, new: str) -> str | None:
    """Return the new text, but take the words that it shares with the old text from the file.

    Returns None if another word of the new text has typographic characters: the model may mean plain ones.
    `old` and `actual` have the same length.
    """
    old_tokens, new_tokens = _TOKEN.findall(old), _TOKEN.findall(new)
    starts = [0, *accumulate(map(len, old_tokens))]
    made: list[str] = []
    position = 0
    for old_start, old_end, new_start, new_end in changed_lines(old_tokens, new_tokens):
        inserted = "".join(new_tokens[new_start:new_end])
        if inserted.translate(_PLAIN) != inserted:
            return None
        made += (actual[starts[position] : starts[old_start]], inserted)
        position = old_end
    return "".join([*made, actual[starts[position] :]])
