"""Reads that repeat: one line for what is unchanged since it was shown, the difference for what is not."""

from dataclasses import replace

from agentfs.line_ranges import ReadRecord
from agentfs.messages import Joined
from agentfs.read_tracker import ReadTracker
from agentfs.reading.request import ReadRequest
from agentfs.results import ReadResult
from agentfs.text import continuation, end_of, footer, line_start, unified_diff, visible


def shorten_repeat(shown: ReadTracker, real_path: str, result: ReadResult, asked: ReadRequest) -> ReadResult:
    """Say less of a page that has been shown before; the second insistence gives it whole.

    Args:
        shown: What has been shown; this page not yet.
        real_path: The file.
        result: The page, as it is shown to who has not seen it.
        asked: What was asked for.

    Returns:
        The page with a shorter text, or as it was; `content` is whole either way.
    """
    known = shown.last(real_path)
    plain = asked.column == 1 and not asked.line_ids and result.truncated_by != "line"
    if known is None or not plain or not _covers(known, result):
        return result
    if known.revision == result.revision:
        return _unchanged(shown, real_path, result)
    if known.text is None:
        return result
    old = _taken(known.text, result.start_line, None if result.next is None else result.end_line)
    if old == result.content:
        return _unchanged(shown, real_path, result)
    # Blank lines on both sides stand for the lines before the page, so that the hunks have their numbers.
    before = "\n" * (result.start_line - 1)
    diff = unified_diff(before + old, before + result.content, result.path)
    lines = visible(diff[diff.find("\n@@ ") + 1 :].removesuffix("\n")).split("\n")
    head = footer(f"{_lines(result)} changed since shown; the difference", continuation(result.next))
    text = Joined("\n", head, *lines)
    return replace(result, text=text) if len(text) < len(result.text) else result


def _taken(text: str, first: int, last: int | None) -> str:
    """Return the lines of a text from one on, up to another or to its end; fewer where it has fewer."""
    end = end_of(text)
    ends = text.count(end)
    start = line_start(text, first, end) if first - 1 <= ends else len(text)
    stop = line_start(text, last + 1, end) if last is not None and last <= ends else len(text)
    return text[start:stop]


def _unchanged(shown: ReadTracker, real_path: str, result: ReadResult) -> ReadResult:
    if shown.is_immediate_repeat(real_path, f"{result.revision}:{result.start_line}-{result.end_line}"):
        return result
    told = f"{_lines(result)} unchanged since shown; read again to see the text anyway"
    said = footer(told, continuation(result.next))
    return replace(result, text=said) if len(said) < len(result.text) else result


def _covers(known: ReadRecord, result: ReadResult) -> bool:
    if known.whole:
        return True
    # Of a version that had fewer lines, those that it had are enough.
    last = min(result.end_line, known.total)
    return any(first <= result.start_line and last <= end for first, end in known.ranges)


def _lines(result: ReadResult) -> str:
    if result.start_line == result.end_line:
        return f"line {result.start_line} of {result.total_lines} is"
    return f"lines {result.start_line}-{result.end_line} of {result.total_lines} are"
