"""Render the result of a change: a shortened diff, and warnings about placeholders."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import TypeVar

from agentfs.base.advice import Advice, ToolName
from agentfs.limits import Limits
from agentfs.results import Result
from agentfs.text import (
    CUT_MARK,
    Shrink,
    bounded_lines,
    carriage_return_note,
    fitted,
    footer,
    plural,
    quoted,
    styled_diff,
    with_text,
)

R = TypeVar("R", bound=Result)

_DIFF_LINES = 120
_DIFF_CHARS = 8000
# The lines to show at either end of a long run of added or removed lines.
_RUN_ENDS = 4
# Possessive, so that a run of millions of lines takes little memory.
_SENT_LINES = re.compile(r"^(?:\+.*+\n){13,}+|^(?:-.*+\n){13,}+", re.MULTILINE)
_MOST_WARNINGS = 3
_MOST_CANDIDATES = 1000
_WARNING_CHARS = 80
# Repeats are bounded or possessive, because a line may have millions of blanks.
_COMMENT = re.compile(
    r"^\+[ \t]{0,200}+"
    r"(?:(?:#{1,9}+|/{2,9}+|/\*{1,9}+|<!--|\{/\*|--|;{1,9}+|%{1,9}+|[(\[<])[ \t]{0,9}+|(?=\.\.\.|…))"
    r"(?=[^\n]{0,80}(?:exist|rest|remain|unchanged|omitted|previous|original|same))"
    r"([^\r\n]{4,80}?)[ \t]{0,9}(?:\*/\}?|-->|[)\]>])?[ \t]{0,9}\r?$",
    re.MULTILINE | re.IGNORECASE,
)
# An added line with `\n` as two characters, after a text, and before a blank, an escape or its end.
_ESCAPED_LINE_END = re.compile(
    r"^\+(?!\+\+ )(.{0,1000}?)(?<![/\[(^\\ \t])(?<!\\r)(?<!\(\?:)\\n(?=$|[ \t]|\\[nt])", re.MULTILINE
)
_CUT_LINE = re.compile(rf"^\+.*?({CUT_MARK})", re.MULTILINE)
_ELLIPSIS = re.compile(r"^\W{0,2}(?:\.\.\.|…)|(?:\.\.\.|…)\W{0,2}$")
_LEFT_OUT = re.compile(
    r"\b(?:existing|rest|remaining|remainder|unchanged|omitted|previous|original|same)\b", re.IGNORECASE
)
_OMISSION_WORD = re.compile(
    rf"{_LEFT_OUT.pattern}|the|of|your|this|all|my|other|and|in|for|keep|as|before|is|are|remains?|stays?|here|goes|no"
    "|changes?|code|file|contents?|class(?:es)?|methods?|functions?|implementation|module|body|imports?|tests?"
    "|logic|component|configuration|script|document|section|lines|text|page"
)


def with_diff(result: R, limits: Limits, head: str, diff: str, after: Sequence[str] = ()) -> R:
    """Render a result: a head line, its notes, a diff as long as the limits allow, and lines after it.

    Long runs of added or removed lines are shortened, because the model has just sent them.
    """
    shortened = _SENT_LINES.sub(_ends_of_run, diff)

    def render(max_lines: int) -> R:
        return with_text(result, head, below=[*diff_lines(shortened, max_lines), *after])

    def render_without(_: int) -> R:
        omitted = [footer("the diff is not shown")] if diff else []
        return with_text(result, head, below=[*omitted, *after])

    return fitted(limits, Shrink(_DIFF_LINES, render), Shrink(1, render_without))


def _ends_of_run(run: re.Match[str]) -> str:
    first = run[0].split("\n", _RUN_ENDS)[:-1]
    last = run[0].rsplit("\n", _RUN_ENDS + 1)[1:]
    how = "added, as sent" if run[0].startswith("+") else "removed"
    omitted = footer(f"{run[0].count(chr(10)) - 2 * _RUN_ENDS} more lines {how}")
    return "\n".join([*first, omitted, *last])


def is_shown(diff: str, text: str) -> bool:
    """Return True if a rendered text has all of a diff, except lines that the model has sent or removed."""
    shortened = _SENT_LINES.sub(_ends_of_run, diff)
    lines = shortened[shortened.find("\n@@ ") + 1 :].split("\n")[:-1]
    shown = bounded_lines(lines, _DIFF_CHARS)
    return 0 < len(lines) == len(shown) and "\n".join(shown) in text


def diff_lines(diff: str, max_lines: int = _DIFF_LINES) -> list[str]:
    """Return the first lines of the diff of one file as one text, without its header, and notes on them."""
    start = diff.find("\n@@ ") + 1
    if not start:
        return []
    count = diff.count("\n", start)
    end = start
    for _ in range(min(max_lines, count)):
        end = diff.index("\n", end) + 1
    lines = bounded_lines(diff[start:end].split("\n")[:-1], _DIFF_CHARS)
    text = "\n".join(lines)
    shown: list[str] = [styled_diff(text)] if lines else []
    if more := count - len(lines):
        way = Advice("call ", ToolName("read"), " to see the file")
        shown.append(footer(f"{plural(more, 'more line')} of the diff", way))
    note = carriage_return_note(text)
    return [*shown, footer(note)] if note else shown


def placeholder_notes(diff: str) -> list[str]:
    """Return a warning for each added line of a diff that looks like a placeholder, or wrongly escaped."""
    comments, marks = dict[str, None](), dict[str, None]()
    for found in islice(_COMMENT.finditer(diff), _MOST_CANDIDATES):
        if _omits(found[1]):
            comments[found[0][1:].strip()] = None
    for found in islice(_CUT_LINE.finditer(diff), _MOST_CANDIDATES):
        marks[found[1]] = None
    escaped = "" if "\\n" not in diff else _escaped_line_end(diff)
    if not comments and not marks and not escaped:
        return []
    removed = "\n".join(re.findall("^-.*", diff, re.MULTILINE))
    how = "looks like a placeholder for left-out text; it was written as it is"
    suspected = [*islice(comments, _MOST_WARNINGS), *islice(marks, _MOST_WARNINGS)]
    notes = [f'warning: "{quoted(line)}" {how}' for line in suspected if line not in removed]
    if escaped and "\\n" not in removed:
        notes.append(f"warning: \\n was written as two characters, in line: {quoted(escaped)}")
    return notes


def _escaped_line_end(diff: str) -> str:
    r"""Return the first added line that has `\n` outside quotes, probably in place of a line end, or ""."""
    for found in islice(_ESCAPED_LINE_END.finditer(diff), _MOST_CANDIDATES):
        if not any(found[1].count(quote) % 2 for quote in "'\"`"):
            return diff[found.start() + 1 : diff.find("\n", found.start())].strip()[:_WARNING_CHARS]
    return ""


def _omits(body: str) -> bool:
    """Return True if a comment only says that text is left out."""
    words = re.findall(r"[a-z]+", body.lower())
    others = sum(_OMISSION_WORD.fullmatch(word) is None for word in words)
    if "'" in body or '"' in body or not _LEFT_OUT.search(body):
        return False
    if _ELLIPSIS.search(body):
        return others <= 2 and len(words) <= 9 and (len(words) > 1 or words[0] in {"unchanged", "omitted"})
    return not others and (len(words) > 2 or words[0] in {"existing", "unchanged"})
