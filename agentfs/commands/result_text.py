"""The text of a command's result for a model, and of an error after a command."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agentfs.base.advice import Advice, Joined, NextCall, call, plural
from agentfs.base.visible import visible
from agentfs.commands.captured_output import CapturedOutput
from agentfs.errors import AgentFSError
from agentfs.fs import Root
from agentfs.limits import Limits
from agentfs.results import RunResult
from agentfs.shown.outputs import OutputStore
from agentfs.text.display import Shrink, both_ends, continuation, fitted, footer

_MOST_CHARS = 30_000  # of output in one text
_IN_ERROR_CHARS = 4_000


def output_text(data: bytes) -> str:
    r"""Return output as text; bytes that are not UTF-8 as `\xe9`, and every control character visible."""
    return visible(data.decode("utf-8", "backslashreplace").replace("\r\n", "\n"))


def full_text(output: CapturedOutput) -> str:
    """Return the text of the whole output, as far as it is kept."""
    head, left_out, tail = output.joined()
    if not left_out:
        return output_text(head + tail)
    return f"{output_text(head)}\n[{plural(left_out, 'byte')} left out]\n{output_text(tail)}"


def with_output(
    result: RunResult, output: CapturedOutput, sentence: str, outputs: OutputStore, root: Root, limits: Limits
) -> RunResult:
    """Return a result with its text: a sentence on how it ended, head and tail of the output, the changes."""
    text = full_text(output)
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    named: list[NextCall] = []

    def render(shown: int) -> RunResult:
        head = f"{sentence}; {plural(lines, 'line')} of output:" if text else f"{sentence}; no output."
        body: Sequence[str] = [text.removesuffix("\n")] if text else []
        if shown < len(text):
            if not named:
                named.append(call("read", path=outputs.keep(text, root, "run")))
            start, end = both_ends(text, shown)
            gap = len(text) - len(start) - len(end)
            note = footer(f"{plural(gap, 'character')} left out", Advice("full output: ", named[0]))
            body = [*filter(None, (start.removesuffix("\n"), note, end.removesuffix("\n")))]
        more = footer(continuation(result.next))
        parts = [head, *body, *result.notes, result.changes.text, *([more] if more else [])]
        return replace(result, text=Joined("\n", *parts))

    return fitted(limits, Shrink(min(len(text), _MOST_CHARS), render))


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
