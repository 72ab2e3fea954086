"""`grep`: the search of file contents, with exact totals and the matches of one page."""

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from agentfs.base import call_context
from agentfs.errors import AccessError, AgentFSError, BinaryError, EncodingError
from agentfs.fs import BINARY, typed
from agentfs.patterns.line_search import LineMatch, LineSearch
from agentfs.patterns.prefilter import Prefilter, decode_content
from agentfs.results import FileCount, Match, Skipped
from agentfs.search.entries import ENTRY_BYTES, Page, page_of, with_counts
from agentfs.search.excerpts import BLOCK_LINES, excerpt
from agentfs.search.files import LARGE, FileReader, FileSource
from agentfs.search.large import TextBlock, blocks_of, codec_of_large, hits_in
from agentfs.search.options import GrepOptions
from agentfs.shown.workspace_context import Context
from agentfs.text.notebook import shown_text
from agentfs.tree.walk import Excluded

_MATCH_BYTES, _SPAN_BYTES = 320, 120  # measured sizes


@dataclass
class FileResult:
    """The outcome of the search of one file.

    Attributes:
        path: The path of the file.
        skip_reason: Why the file was not searched, as a field of `Skipped`, or None.
        timed_out: The time ran out in this file.
        hits: The matches that are on the page.
        lines: Number of matching lines.
        matches: Number of matches.
        entries: Number of line matches; with `multiline`, one may have several lines.
        exact: The numbers are exact.
    """

    path: str
    skip_reason: str | None = None
    timed_out: bool = False
    hits: list[Match] = field(default_factory=list[Match])
    lines: int = 0
    matches: int = 0
    entries: int = 0
    exact: bool = True


@dataclass
class SearchResult:
    """The sum of the file results; its entries are matches or files, depending on the output mode."""

    page: Page
    matches: list[Match] = field(default_factory=list[Match])  # the page, or the samples of a summary
    counts: dict[str, FileCount] = field(default_factory=dict[str, FileCount])  # files of the page
    entries: int = 0
    total_matches: int = 0
    total_lines: int = 0
    total_files: int = 0
    searched: int = 0  # files whose content was searched
    skipped: Skipped = field(default_factory=Skipped)
    excluded: list[Excluded] = field(default_factory=list[Excluded])  # the first hidden and ignored names
    exact: bool = True  # the totals are exact
    is_full: bool = False  # the search ended because the page was full
    ended_in: str = ""  # the file in which the time ran out


def search(context: Context, options: GrepOptions) -> SearchResult:
    """Search the files that the options name."""
    return _Search(context, options).run()


class _Search:
    def __init__(self, context: Context, options: GrepOptions) -> None:
        limits = context.limits
        self._root, self._options, self._limits = context.root, options, limits
        self._deadline = call_context.deadline(call_context.granted(options.timeout, limits.timeout))
        pattern = options.compile()
        # The distance from the first match of a line up to which other matches can be shown.
        self._lines = LineSearch(pattern, self._deadline, window=limits.grep_line_chars * BLOCK_LINES)
        self._source = FileSource(context, options, self._deadline)
        prefilter = Prefilter(pattern.plan, encoding=options.encoding)
        most = min(limits.file_bytes, options.max_bytes)
        self._reader = FileReader(context.root, prefilter, most, options.encoding, self._deadline)
        self._can_count = not options.multiline and options.max_count is None
        self._by_line = options.by_line
        self._samples = options.samples if options.output_mode == "summary" else 0
        first, size = (0, 0) if options.output_mode == "total" else (options.offset, options.limit)
        self.found = SearchResult(page_of(size, first, limits.grep_results, limits))

    def run(self) -> SearchResult:
        """Search the files and sum up what was found."""
        found, source = self.found, self._source
        skipped: Counter[str] = Counter()
        reached: str | None = None
        try:
            for reader, entries in source.batches():
                found.searched += len(entries)
                for entry, outcome in self._reader.of(reader, entries):
                    if outcome == BINARY:  # often most files that are read
                        skipped[BINARY] += 1
                        found.searched -= 1
                        continue
                    too_long = self._lines.too_long
                    file = self._result(reader.path_of(entry), outcome)
                    self._add(file)
                    if file.skip_reason is not None:
                        skipped[file.skip_reason] += 1
                        found.searched -= 1
                    skipped["long_lines"] += self._lines.too_long > too_long  # some lines were too long
                    if found.is_full or file.timed_out:
                        is_searched = not isinstance(outcome, TimeoutError)
                        found.searched -= len(entries) - entries.index(entry) - is_searched
                        break
                if found.is_full or found.ended_in:
                    break
        except TimeoutError:
            reached = "timeout"
        reached = "timeout" if found.ended_in else reached or source.reached
        found.skipped = with_counts(source.walk.skipped, skipped, reached)
        found.excluded = source.walk.excluded
        found.exact = found.exact and found.skipped.reached is None and not found.is_full
        return found

    def _add(self, file: FileResult) -> None:
        """Add the outcome of one file to the totals."""
        found, page, by_line = self.found, self.found.page, self._by_line
        if file.timed_out:
            found.ended_in = file.path
        found.exact = found.exact and file.exact
        if not file.lines:
            return
        on_page = bool(file.hits) if by_line else page.first <= found.entries < page.end
        if on_page:
            found.counts[file.path] = FileCount(file.lines, file.matches)
        if on_page and not by_line:
            page.take(found.entries, ENTRY_BYTES + 2 * len(file.path))
        found.matches += file.hits
        found.total_files += 1
        found.total_lines += file.lines
        found.total_matches += file.matches
        found.entries += file.entries if by_line else 1
        found.is_full = self._source.stops_when_full and found.entries > page.end

    def _result(self, path: str, outcome: Any) -> FileResult:
        """Return the result for a file from its bytes, or from the reason why they were not read."""
        if isinstance(outcome, TimeoutError):
            return FileResult(path, timed_out=True)
        if isinstance(outcome, Exception):
            if self._source.is_one_file:
                raise typed(outcome, path) from None
            return FileResult(path, "protected" if isinstance(outcome, AccessError) else "unreadable")
        if outcome == LARGE:
            return self._large(path)
        text = decode_content(outcome, self._options.encoding)
        if text is None:
            return FileResult(path, "undecodable")
        text = shown_text(path, text)
        page_follows = self._by_line and self.found.entries < self.found.page.first  # maybe in this file
        if self._is_shown(0) or page_follows or not self._can_count:
            block = TextBlock(text, 0, len(text))
            return self._search(path, ((block, hit) for hit in self._lines.hits(text)))
        lines, matches, timed_out = self._lines.count(text)
        return FileResult(path, None, timed_out, lines=lines, matches=matches, entries=lines)

    def _large(self, path: str) -> FileResult:
        """Search a file that is larger than the buffer."""
        options = self._options
        try:
            with self._root.open_file(path) as file:
                if options.multiline or file.stat.st_size > options.max_bytes:
                    return FileResult(path, "too_large")
                bom, codec = codec_of_large(file, options.encoding)
                blocks = blocks_of(file, bom, codec, options.around, self._reader.check)
                return self._search(path, hits_in(blocks, self._lines))
        except BinaryError:
            return FileResult(path, BINARY)
        except EncodingError:
            return FileResult(path, "undecodable")
        except (OSError, AgentFSError) as error:
            return self._result(path, error)

    def _search(self, path: str, hits_of_blocks: Iterable[tuple[TextBlock, LineMatch]]) -> FileResult:
        """Count the matches of a file, and keep those of the page."""
        options, around, first = self._options, self._options.around, self.found.entries
        file = FileResult(path)
        counted: TextBlock | None = None  # the block in which the line at `place` has `number`
        place = number = 0
        try:
            for block, hit in hits_of_blocks:
                if self._is_shown(file.entries):
                    if block is not counted:
                        counted, place, number = block, 0, block.number
                    number += block.text.count("\n", place, hit.start)
                    place = hit.start
                    match = excerpt(path, block, hit, number, around, self._limits.grep_line_chars)
                    file.hits.append(match)
                    self.found.page.take(first + file.entries * self._by_line, _size(match), len(match.text))
                file.lines += 1 + (block.text.count("\n", hit.start, hit.end) if options.multiline else 0)
                file.matches += hit.matches
                file.entries += 1
                file.exact = file.exact and not block.is_part
                if options.max_count is not None and file.lines >= options.max_count:
                    break
        except TimeoutError:
            file.timed_out = True
        except MemoryError:  # the stack of the engine can overflow even on a line within the bound
            self._lines.too_long += 1
        return file

    def _is_shown(self, number: int) -> bool:
        """Return True if a line match, by its number in its file, is on the page or is a sample."""
        found, page = self.found, self.found.page
        if self._by_line:
            return page.first <= found.entries + number < page.end
        return number < self._samples and page.first <= found.entries < page.end and not page.is_full


def _size(match: Match) -> int:
    """Return how many bytes a match takes in memory."""
    lines = (match.text, *match.before, *match.after)
    return _MATCH_BYTES + _SPAN_BYTES * len(match.spans) + sum(map(sys.getsizeof, lines))
