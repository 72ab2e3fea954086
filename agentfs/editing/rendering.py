"""Render the result of a change: a head line, its notes and a shortened diff."""

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from agentfs.base.advice import Advice, ToolName, plural, shortened
from agentfs.errors import AgentFSError
from agentfs.fs import quote
from agentfs.limits import Limits
from agentfs.results import Result
from agentfs.text.diff import bounded_lines
from agentfs.text.display import carriage_return_note, fitted, footer, with_text

R = TypeVar("R", bound=Result)

MOST_NAMED = 20  # files of an error
_DIFF_LINES = 120
_DIFF_CHARS = 8000
# The lines to show at either end of a long run of added or removed lines.
_RUN_ENDS = 4
# Possessive, so that a run of millions of lines takes little memory.
_SENT_LINES = re.compile(r"^(?:\+.*+\n){13,}+|^(?:-.*+\n){13,}+", re.MULTILINE)


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

    return fitted(limits, (_DIFF_LINES, render), (1, render_without))


def _ends_of_run(run: re.Match[str]) -> str:
    first = run[0].split("\n", _RUN_ENDS)[:-1]
    last = run[0].rsplit("\n", _RUN_ENDS + 1)[1:]
    how = "added, as sent" if run[0].startswith("+") else "removed"
    omitted = footer(f"{run[0].count(chr(10)) - 2 * _RUN_ENDS} more lines {how}")
    return "\n".join([*first, omitted, *last])


def is_shown_whole(diff: str, limits: Limits) -> bool:
    """Return True if a result has all of a diff, except lines that the model has sent or removed."""
    shortened = _SENT_LINES.sub(_ends_of_run, diff)
    # A text has at most as many tokens as characters.
    fits = len(shortened) <= min(_DIFF_CHARS, limits.output_tokens)
    return fits and shortened.count("\n") - 2 <= _DIFF_LINES


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
    shown = [text] if lines else []
    if more := count - len(lines):
        way = Advice("call ", ToolName("read"), " to see the file")
        shown.append(footer(f"{plural(more, 'more line')} of the diff", way))
    note = carriage_return_note(text)
    return [*shown, footer(note)] if note else shown


def error_of_many(message: str, faults: Mapping[str, AgentFSError], hint: str = "") -> AgentFSError:
    """Return one error for several files: that of the first, with a line for each path."""
    first = next(iter(faults.values()))
    places = [
        f"  {error.message}" if quote(path) in error.message else f"  {quote(path)}: {error.message}"
        for path, error in faults.items()
    ]
    details = {**first.details, "paths": list(faults), "places": shortened(places, MOST_NAMED, "file")}
    if hint:
        details.pop("suggested_calls", None)  # of the hint of the first file
    return type(first)(message, hint=hint or first.hint, details=details)
