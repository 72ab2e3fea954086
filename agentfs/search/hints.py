"""Nothing found is never the same as nothing looked at: where a search without a match would have had one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from agentfs.errors import AgentFSError
from agentfs.fs import Root
from agentfs.limits import Limits
from agentfs.messages import FirstOf, Message, Retry
from agentfs.patterns.compile import MAX_CHARACTERS, escape
from agentfs.search.request import Request
from agentfs.search.skip_report import OPENED, why_left_out
from agentfs.tree.walk import MOST_LEFT_OUT, Excluded
from agentfs.visible import one_line

_SECONDS = 0.5  # for each of the two looks
_ENTRIES = 200_000
_EMPTY_GROUP = re.compile(r"(\w)\(\)")  # no backslash can stand between


@dataclass(frozen=True)
class Probe:
    """What a short look has found.

    Attributes:
        lines: Matching lines.
        first: The first file with one, or "".
        whole: Whether it came to its end.
    """

    lines: int
    first: str
    whole: bool


class Look(Protocol):
    """A short search for something else, or elsewhere."""

    def __call__(
        self, root: Root, limits: Limits, request: Request, left_out: Sequence[Excluded] | None
    ) -> Probe:
        """Return what it has found."""
        ...


def absence_notes(
    root: Root, limits: Limits, request: Request, left_out: Sequence[Excluded], look: Look
) -> list[str]:
    """Say where a search that found nothing would have found something.

    Args:
        root: The confined root.
        limits: The bounds of the search.
        request: What found nothing.
        left_out: The hidden and ignored names that it left out, where the first note looks.
        look: Makes another, shorter search.

    Returns:
        Lines to show: matches among hidden and ignored files, and matches of the pattern taken the other way,
        literally or as a regular expression.
    """
    brief = replace(limits, timeout=_SECONDS, walk_entries=min(_ENTRIES, limits.walk_entries))

    def glance(asked: Request, among: Sequence[Excluded] | None = None) -> Probe:
        try:
            return look(root, brief, asked, among)
        except AgentFSError:
            return Probe(0, "", whole=False)

    notes: list[str] = []
    if not request.include_ignored and left_out:
        found = glance(request, left_out)
        if len(left_out) >= MOST_LEFT_OUT:  # there may be more
            found = replace(found, whole=False)
        if found.lines:
            where = why_left_out(root, found.first) or one_line(found.first)
            notes.append(_advised(f"{_lines(found)} in hidden or ignored files, as in {where}", OPENED))
    if request.fixed_strings:
        found = glance(replace(request, fixed_strings=False))
        if found.lines:
            as_regex = Retry({}, ("fixed_strings",))
            notes.append(_advised(f"As a regular expression it matches {_lines(found)}", as_regex))
    elif _may_be_literal(request.pattern):
        found = glance(replace(request, fixed_strings=True))
        if found.lines:
            where = f"As plain text it stands on {_lines(found)}, as in {one_line(found.first)}"
            notes.append(_advised(where, Retry({"pattern": escape(request.pattern)})))
    return notes


def empty_group_note(request: Request) -> str:
    """Say that `()` stands for nothing, where it was probably meant as it is written.

    Args:
        request: What was searched for.

    Returns:
        A part of a footer; "" where there is none after a name.
    """
    if request.fixed_strings or not _EMPTY_GROUP.search(request.pattern):
        return ""
    meant = _EMPTY_GROUP.sub(r"\1\\(\\)", request.pattern)
    return Message("() in a pattern matches nothing: to match it, ", Retry({"pattern": meant}))


def _advised(fact: str, retry: Retry) -> str:
    return FirstOf(Message(f"{fact}: ", retry, "."), f"{fact}.")


def _may_be_literal(pattern: str) -> bool:
    return "\\" not in pattern and escape(pattern) != pattern and len(escape(pattern)) <= MAX_CHARACTERS


def _lines(found: Probe) -> str:
    count = f"{found.lines:,}{'' if found.whole else ' or more'}"
    return f"{count} line{'' if found.lines == 1 else 's'}"
