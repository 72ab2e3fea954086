"""The text of a command's result for a model, and of an error after a command."""

from dataclasses import replace
from itertools import groupby
from typing import Any

from agentfs.base.advice import Advice, Joined, call, plural
from agentfs.base.visible import visible
from agentfs.commands.process import CapturedOutput
from agentfs.errors import AgentFSError
from agentfs.fs import Root
from agentfs.limits import Limits
from agentfs.results import RunResult
from agentfs.shown.outputs import OutputStore
from agentfs.text.display import both_ends, continuation, cut_line, estimate_tokens, fitted, footer

_MOST_CHARS, _MOST_TOKENS = 16_000, 1_900  # of output in one text
_FOLDED = 4  # equal lines, and more, are shown as one
_IN_ERROR_CHARS = 4_000
_ODD = bytes({*range(32)} - {*b"\b\t\n\f\r\x1b"})
_MOST_ODD = 3  # output with more than one odd byte in so many is not text


def output_text(data: bytes) -> str:
    r"""Return output as text; bytes that are not UTF-8 as `\xe9`, and every control character visible.

    Of output that is mostly such bytes, only their number is shown.
    """
    invalid = data.decode("utf-8", "replace").count("\ufffd")
    if len(data) < _MOST_ODD * (invalid + len(data) - len(data.translate(None, _ODD))):
        return f"[{plural(len(data), 'byte')} of output that is not text]\n"
    return visible(data.decode("utf-8", "backslashreplace").replace("\r\n", "\n"))


def full_text(output: CapturedOutput) -> str:
    """Return the text of the whole output, as far as it is kept."""
    _, head = output.read(0)
    start, tail = output.read(len(head))
    if start == len(head):
        return output_text(head + tail)
    return f"{output_text(head)}\n[{plural(start - len(head), 'byte')} left out]\n{output_text(tail)}"


def with_output(
    result: RunResult, output: CapturedOutput, sentence: str, outputs: OutputStore, root: Root, limits: Limits
) -> RunResult:
    """Return a result with its text: a sentence on how it ended, head and tail of the output, the changes."""
    whole = full_text(output)
    text = _condensed(whole, limits.line_chars)
    lines = whole.count("\n") + (not whole.endswith("\n") and bool(whole))

    def render(shown: int) -> RunResult:
        head = f"{sentence}; {plural(lines, 'line')} of output:" if text else f"{sentence}; no output."
        start, end = (text, "") if shown >= len(text) else both_ends(text, shown)
        gap = len(text) - len(start) - len(end)
        note = ""
        if gap or text != whole:
            full = call("read", path=outputs.keep(whole, root, "run"))
            note = footer(
                f"{plural(gap, 'character')} left out" if gap else "", Advice("full output: ", full)
            )
        body = [*filter(None, (start.removesuffix("\n"), note, end.removesuffix("\n")))]
        more = footer(continuation(result.next))
        parts = [head, *body, *result.notes, result.changes.text, *([more] if more else [])]
        return replace(result, text=Joined("\n", *parts))

    most = min(len(text), _MOST_CHARS)
    tokens = estimate_tokens("".join(both_ends(text, most)))
    return fitted(limits, (most if tokens <= _MOST_TOKENS else most * _MOST_TOKENS // tokens, render))


def _condensed(text: str, line_chars: int) -> str:
    """Return a text with long lines cut, and with one line in place of many equal ones."""
    shown: list[str] = []
    for line, group in groupby(text.split("\n")):
        count = sum(1 for _ in group)
        cut = cut_line(line, line_chars)
        shown += [cut, f"⟦+{count - 1} equal lines⟧"] if count >= _FOLDED else [cut] * count
    return "\n".join(shown)


def after_command(error: AgentFSError, output: CapturedOutput, exit_status: int | None) -> None:
    """Add to an error what the command has written, for the program and for the model."""
    text = full_text(output)
    shown: list[Any] = text[-_IN_ERROR_CHARS:].splitlines()
    if len(text) > _IN_ERROR_CHARS:
        shown.insert(0, footer(f"{plural(len(text) - _IN_ERROR_CHARS, 'character')} left out"))
    error.details |= {
        "exit_status": exit_status,
        "stdout": output.stream("stdout").decode("utf-8", "backslashreplace"),
        "stderr": output.stream("stderr").decode("utf-8", "backslashreplace"),
        "places": [*error.places(), f"The command ended with exit status {exit_status}.", *shown],
    }
