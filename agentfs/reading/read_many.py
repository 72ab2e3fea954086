"""`read_many`: several files in one answer, under one budget."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from agentfs.errors import AgentFSError, DeadlineExceededError, InvalidArgumentError
from agentfs.fs import quote
from agentfs.limits import Limits
from agentfs.messages import Joined, Message, NextCall, ParameterName
from agentfs.results import ReadManyResult, ReadResult
from agentfs.text import estimate_tokens, footer, one_line

_LEAST = 40  # tokens; a file for which no more are left is left to the next call

_NAMED = 5  # of the files that are left; all are in the next call


def read_several(
    read: Callable[[str, Limits], ReadResult],
    paths: Sequence[str],
    limits: Limits,
    budget: int | None,
    patterns: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> ReadManyResult:
    """Read files one after the other until the budget or the time is used up.

    Args:
        read: Reads one file within limits.
        paths: The files, in order.
        limits: The limits of one read; `output_tokens` where there is no `budget`.
        budget: Tokens of the whole answer.
        patterns: Paths and globs for which there was no time, left to the next call.
        notes: What is to be said of the globs besides.

    Returns:
        The pages under the paths, what failed, and the call for the files that are left.

    Raises:
        InvalidArgumentError: `invalid_argument`: a budget below 1.
        DeadlineExceededError: `timeout`: the time is over before one file was read.
    """
    if budget is not None and budget < 1:
        raise InvalidArgumentError(
            Message(
                ParameterName("budget", quoted=True), f" must be a number of tokens from 1, not {budget!r}."
            )
        )
    count = limits.count_tokens or estimate_tokens
    whole = budget or limits.output_tokens
    left = whole
    results: list[ReadResult] = []
    failed: dict[str, str] = {}
    parts: list[str] = []
    why = f"{whole} tokens are used up"
    for path in paths:
        if parts and left < _LEAST:
            break
        head = f"== {one_line(path)} =="
        try:
            page = read(path, replace(limits, output_tokens=max(left - count(head) - 1, 1)))
        except DeadlineExceededError:
            if not parts:
                raise
            why = f"{limits.timeout:g} seconds are used up"
            break
        except AgentFSError as error:
            failed[path] = error.code
            part = Joined("\n", head, error.text)
        else:
            part = Joined("\n", head, page.text)
            # A page of which the last budget leaves a sliver is better shown by the next call.
            if parts and page.truncated_by in {"tokens", "line"} and count(part) > left:
                break
            results.append(page)
        parts.append(part)
        left -= count(part) + 1
    rest = [*paths[len(parts) :], *patterns]
    if patterns and len(parts) == len(paths):
        why = f"{limits.timeout:g} seconds are used up"
    following: NextCall | None = None
    if rest:
        arguments = {"paths": rest} if budget is None else {"paths": rest, "budget": budget}
        following = {"name": "read_many", "arguments": arguments}
    more = f" and {len(rest) - _NAMED} more" if len(rest) > _NAMED else ""
    named = ", ".join(map(quote, rest[:_NAMED])) + more
    if rest or notes:
        parts.append(footer(f"not read, as {why}: {named}" if rest else "", *notes))
    text = Joined("\n", *parts) if parts else footer("no files")
    return ReadManyResult(tuple(results), failed, tuple(rest), text=text, next=following)
