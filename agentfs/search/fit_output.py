"""The answer of a search made smaller: less context, fewer entries, counts, totals."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Protocol

from agentfs.limits import Limits
from agentfs.messages import Joined, NextCall
from agentfs.results import GrepResult, Match
from agentfs.search.render import count_lines_shown, totals_shown
from agentfs.text import Step, continuation, fitted, footer

_MOST_CHARACTERS = 256  # for a token, of what is tried to be shown


class Render(Protocol):
    """Returns the text of a result, with a note, as if the page ended at `end`."""

    def __call__(self, result: GrepResult, note: str = "", end: int | None = None) -> str:
        """Return the text."""
        ...


def fit_output(
    result: GrepResult,
    limits: Limits,
    first: int,
    render: Render,
    following: Callable[[int], NextCall | None],
    *,
    by_line: bool,
) -> GrepResult:
    """Give a search its text, as much as fits the budget of tokens.

    Args:
        result: The search, without a text; what it holds for a program stays whole.
        limits: The budget.
        first: Entries before this page.
        render: Makes the text.
        following: Returns the call that goes on after so many entries.
        by_line: Whether the entries are matches, not files.

    Returns:
        The search with its text, and the call that goes on after what that shows.
    """
    typed, end = result, None
    most = _most_shown(result.matches, limits) if by_line else limits.output_tokens
    if most < len(result.matches if by_line else result.counts):
        end, after = first + most, following(first + most)
        result = replace(result, next=after, truncated=after is not None)
        if by_line:
            result = replace(result, matches=result.matches[:most])
        else:
            result = replace(result, counts=dict(islice(result.counts.items(), most)))
    paths = list(result.counts)

    def whole(_: int) -> GrepResult:
        return replace(result, text=render(result, end=end))

    def context(count: int) -> GrepResult:
        near = count - 1
        shown = [
            replace(match, before=match.before[max(len(match.before) - near, 0) :], after=match.after[:near])
            for match in result.matches
        ]
        note = f"at most {near} lines of context, as {limits.output_tokens} tokens hold no more"
        return replace(result, text=render(replace(result, matches=shown), note, end))

    def matches(count: int) -> GrepResult:
        return cut(replace(result, matches=list(map(_alone, result.matches[:count]))), count)

    def files(count: int) -> GrepResult:
        return cut(replace(result, counts={path: result.counts[path] for path in paths[:count]}), count)

    def cut(shown: GrepResult, count: int) -> GrepResult:
        after = following(first + count)
        text = render(replace(shown, next=after, truncated=after is not None), end=first + count)
        return replace(result, text=text, next=after, truncated=after is not None)

    def counts(count: int) -> GrepResult:
        lines = count_lines_shown({path: result.counts[path] for path in paths[:count]})
        more = f"{len(paths) - count} more files" if count < len(paths) else ""
        note = f"only counts, as {limits.output_tokens} tokens hold no match"
        return replace(result, text=Joined("\n", *lines, footer(note, more, continuation(result.next))))

    def totals(_: int) -> GrepResult:
        said = totals_shown(result.total_matches, result.total_lines, result.total_files, exact=result.exact)
        return replace(result, text=f"{said[0].upper()}{said[1:]}.")

    steps = [Step(1, whole)]
    if by_line and result.matches:
        deepest = max(max(len(match.before), len(match.after)) for match in result.matches)
        steps += [Step(deepest, context)] if deepest else []
        steps += [Step(len(result.matches), matches), Step(len(paths), counts)]
    elif paths:
        steps.append(Step(len(paths), files))
    found = fitted(limits, *steps, *([Step(1, totals)] if result.total_lines else []))
    return found if end is None else replace(found, matches=typed.matches, counts=typed.counts)


def _alone(match: Match) -> Match:
    return replace(match, before=(), after=()) if match.before or match.after else match


def _most_shown(matches: Sequence[Match], limits: Limits) -> int:
    """Return how many matches are worth a try: each takes a token at least, and some characters a token."""
    room = _MOST_CHARACTERS * limits.output_tokens
    for number, match in enumerate(matches):
        room -= len(match.text) + sum(map(len, match.before)) + sum(map(len, match.after))
        if room < 0 or number == limits.output_tokens:
            return max(number, 1)
    return len(matches)
