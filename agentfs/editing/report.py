"""What a model is shown of a change: what was done, and a bounded part of the diff."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from agentfs.limits import Limits
from agentfs.messages import Joined, Message, ToolName
from agentfs.results import EditResult, WriteResult
from agentfs.text import Step, cut_line, fitted, footer, visible

R = TypeVar("R", EditResult, WriteResult)

DIFF_LINES = 120
DIFF_CHARS = 8000
LINE_CHARS = 400


def shown_diff(diff: str, *, most: int = DIFF_LINES) -> list[str]:
    """Return the lines of a diff as a model is shown them: bounded, visible, without the names of the files.

    Args:
        diff: A unified diff of one file.
        most: How many lines.

    Returns:
        The lines, and where some were left out, one that says how many.
    """
    start = diff.find("\n@@ ") + 1
    if not start:
        return []
    count = diff.count("\n", start)
    end = start
    for _ in range(min(most, count)):
        end = diff.index("\n", end) + 1
    lines = diff[start:end].split("\n")[:-1]
    if diff.count("\r\n", start) == count - diff.count("\n@@ ") - diff.count("\n\\ "):
        # The whole file has them: shown on every line, they would only be in the way.
        lines = [line.removesuffix("\r") for line in lines]
    shown: list[str] = []
    left = DIFF_CHARS
    for line in lines:
        part = visible(cut_line(line, LINE_CHARS))
        left -= len(part) + 1
        if left < 0:
            break
        shown.append(part)
    more = count - len(shown)
    if more:
        way = Message("call ", ToolName("read"), " to see the file")
        shown.append(footer(f"{plural(more, 'more line')} of the diff", way))
    return shown


def with_diff(result: R, limits: Limits, diff: str, lines: Callable[[list[str]], list[str]]) -> R:
    """Give a result its text: as much of the diff as the budgets hold.

    Args:
        result: The result, without a text.
        limits: `output_tokens`.
        diff: The change.
        lines: The lines of the text, given those of the diff.

    Returns:
        The result with its text.
    """

    def answer(most: int) -> R:
        return replace(result, text=Joined("\n", *lines(shown_diff(diff, most=most))))

    def none(_: int) -> R:
        return replace(result, text=Joined("\n", *lines([footer("the diff is not shown")] if diff else [])))

    return fitted(limits, Step(DIFF_LINES, answer), Step(1, none))


def line_ranges(ranges: Sequence[tuple[int, int]], most: int = 10) -> str:
    """Name line ranges: "line 4", "lines 4-9, 12".

    Args:
        ranges: First and last line of each.
        most: How many to name.

    Returns:
        The words.
    """
    names = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:most]]
    if len(ranges) > most:
        names.append(f"… ({len(ranges) - most} more)")
    one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    return f"{'line' if one else 'lines'} {', '.join(names)}"


def plural(count: int, noun: str) -> str:
    """Return "1 line", "2 lines"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
