"""`grep`: search, diagnose when nothing was found, render."""

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from agentfs.errors import AgentFSError, NotFoundError
from agentfs.fs import Root, revision_of, watched
from agentfs.limits import Limits
from agentfs.outputs import NO_LINE_IDS, OutputStore
from agentfs.read_tracker import ReadTracker
from agentfs.results import GrepResult, Match
from agentfs.search.diagnose import diagnose, explain_glob_path
from agentfs.search.options import GrepOptions
from agentfs.search.render import render
from agentfs.search.searcher import search
from agentfs.text import bodies_of, decode, with_note


@watched
def grep_files(
    root: Root,
    limits: Limits,
    options: GrepOptions,
    tracker: ReadTracker | None = None,
    outputs: OutputStore | None = None,
) -> GrepResult:
    """Search the contents of files, or of a kept output, with a regular expression.

    Line ids come from the `tracker`.
    """
    began = time.monotonic()
    kept = outputs.get(options.path) if outputs is not None and isinstance(options.path, str) else None
    text = None if kept is None or kept.path else kept.text
    if kept is not None and kept.path:
        options = replace(options, path=kept.path)
    if options.encoding is not None:  # kept texts are decoded without it
        root = root.unwatched
    try:
        found = search(root, limits, options, text=text)
    except NotFoundError as error:
        explain_glob_path(root, limits, options, error)
        raise
    if options.line_ids and tracker is not None and text is None:
        found.matches = _with_line_ids(root, limits, tracker, found.matches)
    hints: list[str] = []
    if not found.total_lines and found.skipped.reached is None and text is None:
        hints = diagnose(root, limits, options, found)
    result = render(limits, options, found, hints, tracker, round((time.monotonic() - began) * 1000))
    if options.line_ids and text is not None:
        return with_note(result, NO_LINE_IDS)
    return result


def _with_line_ids(root: Root, limits: Limits, tracker: ReadTracker, matches: Sequence[Match]) -> list[Match]:
    """Give matches the id of their first line, but those in files that have changed or are too large."""
    found: list[Match] = []
    for path, group in groupby(matches, key=lambda match: match.path):
        lines = _lines_with_ids(root, limits, tracker, path)
        for match in group:
            line, line_id = lines[match.line - 1] if match.line <= len(lines) else ("", None)
            has_id = line_id is not None and _is_of(match, line)
            found.append(replace(match, line_id=line_id) if has_id else match)
    return found


def _lines_with_ids(root: Root, limits: Limits, tracker: ReadTracker, path: str) -> list[tuple[str, str]]:
    """Return the lines of a file, each with its id; none where ids cannot be given."""
    try:
        with root.open_file(path) as file:
            data = file.read(limits.file_bytes + 1)
            real_path = file.real_path
        text = decode(data).text if len(data) <= limits.file_bytes else None
    except AgentFSError:
        return []
    revision = revision_of(data)
    if text is None or (root.policy.line_ids == "fresh" and tracker.latest_ids(real_path) != revision):
        return []
    return list(zip(bodies_of(text), tracker.line_ids(real_path, revision, text), strict=False))


def _is_of(match: Match, line: str) -> bool:
    """Return whether a match is of a line as it is now; of one that was cut, what is left must be in it."""
    first = match.text.partition("\n")[0]
    if first == line:
        return True
    kept = [part.partition("⟧")[2] or part for part in first.split("⟦+")]
    return "⟦+" in first and all(part in line for part in kept)
