"""The ids of the lines that a search found, from what the workspace remembers of their files."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from agentfs.errors import AgentFSError
from agentfs.fs import Root, revision_of
from agentfs.limits import Limits
from agentfs.read_tracker import ReadTracker
from agentfs.results import Match
from agentfs.text import bodies_of, decode

NameLines = Callable[[Sequence[Match]], list[Match]]


def line_id_source(root: Root, shown: ReadTracker, limits: Limits, *, fresh: bool = False) -> NameLines:
    """Return what gives matches the ids of their lines.

    Args:
        root: The confined root.
        shown: Where ids are remembered.
        limits: For the size of a file.
        fresh: Whether only ids are given that a read has given of the present version, since it was made.

    Returns:
        A function that returns the matches with the id of the first line of each; without one where the file
        has changed meanwhile, or is too large to be remembered.
    """

    def named(matches: Sequence[Match]) -> list[Match]:
        found: list[Match] = []
        for path, group in groupby(matches, key=lambda match: match.path):
            found += _named(root, shown, limits, path, list(group), fresh=fresh)
        return found

    return named


def _named(
    root: Root, shown: ReadTracker, limits: Limits, path: str, matches: Sequence[Match], *, fresh: bool
) -> list[Match]:
    try:
        with root.open_file(path) as file:
            data = file.read(limits.file_bytes + 1)
            real_path = file.real_path
        if len(data) > limits.file_bytes:
            return list(matches)
        text = decode(data).text
    except AgentFSError:
        return list(matches)
    revision = revision_of(data)
    if fresh and shown.latest_ids(real_path) != revision:
        return list(matches)
    lines = bodies_of(text)
    ids = shown.line_ids(real_path, revision, text)
    return [
        replace(match, line_id=ids[match.line - 1])
        if match.line <= len(ids) and _is_of(match, lines[match.line - 1])
        else match
        for match in matches
    ]


def _is_of(match: Match, line: str) -> bool:
    """Tell whether a match is of a line as it stands now; of one that was cut, what is left must be in it."""
    first = match.text.partition("\n")[0]
    if first == line:
        return True
    kept = [part.partition("⟧")[2] or part for part in first.split("⟦+")]
    return "⟦+" in first and all(part in line for part in kept)
