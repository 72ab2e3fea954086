"""What `edit` and `write` share: replacing a file under its lock, and a result with a bounded diff."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from agentfs.errors import InvalidArgumentError
from agentfs.fs import ATTEMPTS, Changed, ConcurrentChange, Current, Root, kept_changing
from agentfs.limits import Limits
from agentfs.messages import Joined, Message, ParameterName, ToolName
from agentfs.results import EditResult, WriteResult
from agentfs.text import Step, bounded_lines, fitted, footer, plural

_DIFF_LINES = 120
_DIFF_CHARS = 8000


T = TypeVar("T")
R = TypeVar("R", EditResult, WriteResult)


def update_file(
    root: Root, path: str, limits: Limits, compute: Callable[[Current], tuple[bytes, T]], *, preview: bool
) -> tuple[Changed, T]:
    """Replace a file by the bytes that `compute` returns beside what it found; again if changed meanwhile."""
    for _ in range(ATTEMPTS):
        with suppress(ConcurrentChange), root.open_for_update(path, max_bytes=limits.file_bytes) as update:
            data, found = compute(update.current)
            return update.replace(data, preview=preview), found
    raise kept_changing(path)


def check_choice(value: object, choices: Sequence[str], parameter: str) -> None:
    """Refuse a value that is none of those that a parameter takes."""
    if value not in choices:
        message = f" must be one of {', '.join(map(repr, choices))}, not {value!r}."
        raise InvalidArgumentError(
            Message(ParameterName(parameter), message), details={"parameter": parameter}
        )


def diff_lines(diff: str, max_lines: int = _DIFF_LINES) -> list[str]:
    """Return the lines of a diff of one file for a model: bounded, without the names of the files."""
    start = diff.find("\n@@ ") + 1
    if not start:
        return []
    count = diff.count("\n", start)
    end = start
    for _ in range(min(max_lines, count)):
        end = diff.index("\n", end) + 1
    lines = diff[start:end].split("\n")[:-1]
    if diff.count("\r\n", start) == count - diff.count("\n@@ ") - diff.count("\n\\ "):
        # The whole file has them: on every line they would only be in the way.
        lines = [line.removesuffix("\r") for line in lines]
    shown = bounded_lines(lines, _DIFF_CHARS)
    more = count - len(shown)
    if more:
        way = Message("call ", ToolName("read"), " to see the file")
        shown.append(footer(f"{plural(more, 'more line')} of the diff", way))
    return shown


def with_diff(result: R, limits: Limits, diff: str, before: Sequence[str], after: Sequence[str] = ()) -> R:
    """Give a result its text: as much of the diff as the limits allow, between other lines."""

    def render(max_lines: int) -> R:
        return replace(result, text=Joined("\n", *before, *diff_lines(diff, max_lines), *after))

    def render_without(_: int) -> R:
        omitted = [footer("the diff is not shown")] if diff else []
        return replace(result, text=Joined("\n", *before, *omitted, *after))

    return fitted(limits, Step(_DIFF_LINES, render), Step(1, render_without))
