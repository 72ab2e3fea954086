"""One search of file contents: exact totals, and the matches of one page."""

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from agentfs.base import call_context
from agentfs.errors import AccessError, AgentFSError
from agentfs.fs import BINARY, KeptText, ReadBuffer, typed
from agentfs.patterns.line_search import Counts, LineMatch, LineSearch
from agentfs.patterns.literals import Prefilter, decode_content, is_plain_utf8
from agentfs.results import FileCount, Match, Skipped
from agentfs.search.entries import ENTRY_BYTES, Page, page_of, with_counts
from agentfs.search.excerpts import BLOCK_LINES, Excerpts
from agentfs.search.grep_files import Attempt, FileBytes, FileSource, Found, Reader
from agentfs.search.options import GrepOptions
from agentfs.search.windows import WINDOW, Window, one_window, text_of_large, windows
from agentfs.shown.outputs import Output
from agentfs.shown.workspace_context import Context
from agentfs.tree.visit import Excluded

_MAX_WAITING = 500  # line matches of a file that are collected before they become matches
_READER, _ENTRY = itemgetter(0), itemgetter(1)  # of a file that was found
_PLAIN = "plain"  # the kind of kept texts that can be searched as bytes
_FEW_FILES = 30  # fewer files are searched one by one, not by one pass over all kept texts
_FILES_PER_CHECK = 32  # files between two checks for cancellation
_MATCH_BYTES, _SPAN_BYTES = 320, 120  # measured sizes


@dataclass
class Finding:
    """The result of a search; its entries are matches or files, depending on the output mode."""

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
    full: bool = False  # the search ended because the page was full
    ended_in: str = ""  # the file in which the time ran out
    in_other_case: bool = True  # False if a search without case would find nothing either

    @property
    def exact(self) -> bool:
        """True if the totals are exact."""
        return self.skipped.reached is None and not self.full


def search(
    context: Context,
    options: GrepOptions,
    *,
    among: Sequence[Excluded] | None = None,
    texts: Mapping[str, str] | None = None,
) -> Finding:
    """Search the files of the options; or only `among` excluded names.

    `texts` are kept texts by the names under which the options have them.
    """
    searcher = _Searcher(context, options, among, texts or {})
    reached: str | None = None
    try:
        searcher.search_files()
    except TimeoutError:
        reached = "timeout"
    return searcher.finish(reached)


class _Searcher:
    def __init__(
        self,
        context: Context,
        options: GrepOptions,
        among: Sequence[Excluded] | None,
        kept_texts: Mapping[str, str],
    ) -> None:
        root, _, limits, _ = context
        self.root = root
        self.limits = limits
        self.options = options
        self.pattern = options.compile()
        self.deadline = call_context.deadline(call_context.granted(options.timeout, limits.timeout))
        self.source = FileSource(root, limits, options, self.deadline, among, kept_texts)
        self.max_filesize = options.max_bytes
        self.buffer = ReadBuffer(min(limits.file_bytes, self.max_filesize))
        self.candidates: set[Any] | None = None  # the kept texts that contain a required literal
        # The distance from the first match of a line up to which other matches can be shown.
        window = limits.grep_line_chars * BLOCK_LINES
        self.line_search = LineSearch(self.pattern, self.deadline, window=window)
        self.prefilter = Prefilter(self.pattern.plan, options.encoding, self.line_search.automaton)
        # The automaton looks at full lines, and blocks of large files are not full lines.
        self.large_prefilter = Prefilter(self.pattern.plan, options.encoding)
        kept = root.texts
        self.texts = kept if self.prefilter.is_useful else None
        if self.texts is not None and self.max_filesize < self.texts.max_file:
            self.texts = None
        self.scarce_texts = kept if kept is not None and kept.blocks.is_scarce else None
        self.by_line = options.by_line
        self.around = options.around
        first, size = (0, 0) if options.output_mode == "total" else (options.offset, options.limit)
        self.found = Finding(page_of(size, first, limits.grep_results, limits))
        self.skipped: Counter[str] = Counter()
        self.samples = options.samples if options.output_mode == "summary" else 0

    def search_files(self) -> None:
        for batch in self.source.batches():
            self._search_batch(batch)
            if self.found.full:
                break

    def finish(self, reached: str | None) -> Finding:
        """Return the finding with its skipped counts."""
        self.found.skipped = with_counts(self.source.skipped, self.skipped, reached)
        self.found.excluded = self.source.excluded
        prefilters = self.prefilter, self.large_prefilter
        self.found.in_other_case = any(each.found_in_any_case for each in prefilters)
        return self.found

    def _search_batch(self, batch: Sequence[Found]) -> None:
        found = self.found
        files = batch if self.texts is None else self._may_match(batch, self.texts)
        found.searched += len(batch)  # files that are not searched are subtracted later
        for first in range(0, len(files), _FILES_PER_CHECK):
            call_context.step(0)  # 0, because the walk has counted the files
            for file, outcome in self._outcomes(files[first : first + _FILES_PER_CHECK]):
                try:
                    self._search_file(*file, outcome)
                finally:
                    if found.full or found.ended_in:
                        found.searched -= len(batch) - batch.index(file) - 1
                if found.full:
                    return
        if self.scarce_texts is not None:
            self.scarce_texts.mark_used(entry for _, entry in batch)

    def _outcomes(self, files: Sequence[Found]) -> Iterator[tuple[Found, Attempt]]:
        """Read files."""
        for reader, group in groupby(files, _READER):
            entries = list(map(_ENTRY, group))
            for entry, outcome in reader.read_files(entries, self._read):
                yield (reader, entry), outcome

    def _may_match(self, files: Sequence[Found], texts: Any) -> Sequence[Found]:
        """Leave out kept texts without a required literal, by one pass over all kept texts."""
        if (candidates := self.candidates) is None:
            if self.found.searched + len(files) < _FEW_FILES:
                return files
            self.candidates = candidates = texts.containing(self._search_block)
        if not all(hasattr(kind, "content") for kind in set(map(type, map(_ENTRY, files)))):
            return files  # some are not in a kept tree
        read = [file for file in files if file[1].content != _PLAIN or file[1] in candidates]
        if not read or self.source.stops_when_full:  # files after the last one must not count
            return read
        known = [file for file in read if file[1].content != BINARY]
        self.skipped[BINARY] += len(read) - len(known)
        self.found.searched -= len(read) - len(known)
        return known

    def _search_block(self, data: bytearray, starts: Sequence[int], end: int) -> Iterable[int]:
        return self.prefilter.texts(data, starts, end, self._check_time)

    def _read(self, source: int | KeptText) -> FileBytes | None:
        if time.monotonic() > self.deadline:
            return "timeout"
        if isinstance(source, int):
            return self.prefilter.classify(self.buffer, self.buffer.fill(source))
        if source.content == BINARY:
            return "too_large" if source.stat().st_size > self.max_filesize else BINARY
        is_large = len(source.text) > self.buffer.limit
        if self.candidates is not None and source in self.candidates and source.content == _PLAIN:
            return "too_large" if is_large else bytes(source.text)
        found = self.prefilter.classify(self.buffer, self.buffer.fill(source))
        if found == BINARY:
            source.keep_as_binary()
        elif not source.content:
            source.content = _PLAIN if is_plain_utf8(source.text) else "other"
        if found is not None and self.candidates is not None:
            self.candidates.add(source)  # the same text may be read again through a link
        return found

    def _check_time(self) -> None:
        call_context.step(0)
        if time.monotonic() > self.deadline:
            raise TimeoutError

    def _search_file(self, reader: Reader, entry: Any, outcome: Attempt) -> None:
        """Search a file that was read, or count it as skipped."""
        if outcome == "timeout":
            self.found.searched -= 1
            self.found.ended_in = reader.path_of(entry)
            raise TimeoutError
        if outcome == BINARY:
            self._skip(BINARY)
            return
        path = reader.path_of(entry)
        if outcome == "too_large":
            by_path = self._search_by_path(path)
            if by_path is None:
                return
            outcome = by_path
        if isinstance(outcome, Output):
            self.prefilter.found_in_any_case = True  # it does not see this text
            self._search_windows(path, one_window(outcome.text))
        elif not isinstance(outcome, bytes):
            if self.source.is_one_file and isinstance(outcome, Exception):
                raise typed(outcome, path) from None
            self._skip(outcome)
        elif (text := decode_content(outcome, self.options.encoding)) is None:
            self._skip("undecodable")
        else:
            self._search_windows(path, one_window(text))

    def _search_by_path(self, path: str) -> Attempt | None:
        """Search a file that is larger than the buffer.

        Returns:
            The content of a small file, or the reason why the file is skipped; None if it was searched.
        """
        limit, multiline = self.buffer.limit, self.options.multiline
        try:
            with self.root.open_file(path) as file:
                self.prefilter.found_in_any_case |= multiline  # it does not see these
                if self.max_filesize == limit or file.stat.st_size > self.max_filesize:
                    return "too_large"
                parts = text_of_large(
                    file,
                    self.options.encoding,
                    None if multiline else self.large_prefilter,
                    self.around,
                    self._check_time,
                )
                if isinstance(parts, str):
                    return parts
                size, first_match = min(WINDOW, self.pattern.max_length), self.line_search.first_in_part
                every = (
                    windows(pieces, number, size, self.around, first_match, multiline=multiline)
                    for number, pieces in parts
                )
                self._search_windows(path, chain.from_iterable(every))
        except TimeoutError:
            raise
        except (OSError, AgentFSError) as error:
            return error
        return None

    def _skip(self, outcome: str | OSError | AgentFSError) -> None:
        if not isinstance(outcome, str):
            outcome = "protected" if isinstance(outcome, AccessError) else "unreadable"
        self.skipped[outcome] += 1
        self.found.searched -= 1

    def _search_windows(self, path: str, every: Iterator[Window]) -> None:
        """Search a text, count its matches, and keep the matches of the page."""
        file, too_long = _FileSearch(self, path), self.line_search.too_long
        try:
            for window in every:
                if file.take(window):
                    break
        except TimeoutError:
            self.found.ended_in = path
            raise
        except MemoryError:  # the stack of the engine can overflow even on a line within the bound
            self.line_search.too_long += 1
        finally:
            self.skipped["long_lines"] += self.line_search.too_long > too_long
            file.finish()


class _FileSearch:
    """The search of one file: all matches are counted, and those of the page are kept."""

    def __init__(self, searcher: _Searcher, path: str) -> None:
        options, page = searcher.options, searcher.found.page
        self._searcher = searcher
        self._path = path
        self._found = searcher.found
        self._page = page
        self._counts = Counts()
        self._first = first = searcher.found.entries
        self._samples = searcher.samples if page.first <= first < page.end else 0
        self._most_lines = options.max_count or sys.maxsize
        self._can_count = options.max_count is None and not options.multiline
        self._waiting: list[LineMatch] = []  # to be shown
        self._is_shown = False
        self._excerpts = Excerpts(
            path, searcher.around, searcher.limits.grep_line_chars, overlap=options.overlap
        )

    def take(self, window: Window) -> bool:
        """Search a window. Return True if as many lines were found as were asked for."""
        counts, waiting, line_search = self._counts, self._waiting, self._searcher.line_search
        text, start, stop = window.text, window.start, window.stop
        self._excerpts.enter(window)
        if self._can_count and window.hit is None and not self._shows(from_now=True):
            line_search.count(text[start:stop], counts)
            return False
        following: int | None = None  # where the next match begins
        enough = False
        for hit in line_search.hits(text, start) if window.hit is None else (window.hit,):
            is_shown = self._shows()
            if hit.start >= stop:
                following = hit.start if is_shown else None
                break
            if is_shown:
                waiting.append(hit)
                if len(waiting) > _MAX_WAITING:
                    self._keep(waiting[:-1], following=waiting[-1].start)
                    del waiting[:-1]
            counts.add(hit, text.count("\n", hit.start, hit.end))
            window.resume = max(window.resume, hit.end + 1)
            if enough := counts.lines >= self._most_lines:
                break
        if waiting:
            self._keep(waiting, following)
            waiting.clear()
        return enough

    def finish(self) -> None:
        """Add the findings of the file."""
        counts, found, page, by_line = self._counts, self._found, self._page, self._searcher.by_line
        if not counts.lines:
            return
        on_page = page.first <= found.entries < page.end
        if self._is_shown or self._waiting if by_line else on_page:
            found.counts[self._path] = FileCount(counts.lines, counts.matches)
        found.total_files += 1
        found.total_lines += counts.lines
        found.total_matches += counts.matches
        if self._waiting:
            self._keep(self._waiting)
        if by_line:
            found.entries += counts.hits
            return
        if page.first <= found.entries < page.end:
            page.take(found.entries, ENTRY_BYTES + 2 * len(self._path))
        found.entries += 1
        found.full = self._searcher.source.stops_when_full and found.entries > page.end

    def _shows(self, *, from_now: bool = False) -> bool:
        """Return True if the next line match is shown; with `from_now`, if it or a later one is."""
        if not self._searcher.by_line:
            return self._counts.hits < self._samples
        number = self._first + self._counts.hits
        return number < self._page.end and (from_now or number >= self._page.first)

    def _keep(self, line_matches: Sequence[LineMatch], following: int | None = None) -> None:
        """Turn line matches into matches, as long as memory is left."""
        found, page, by_line = self._found, self._page, self._searcher.by_line
        self._is_shown = True
        for match in self._excerpts.take(line_matches, following):
            number = page.first + len(found.matches) if by_line else found.entries
            if number >= page.end or (not by_line and page.is_full):
                break
            found.matches.append(match)
            lines = (match.text, *match.before, *match.after)
            size = _MATCH_BYTES + _SPAN_BYTES * len(match.spans) + sum(map(sys.getsizeof, lines))
            page.take(number, size, len(match.text) + 1)
