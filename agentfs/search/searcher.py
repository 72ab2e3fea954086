"""One search of file contents: exact totals, and the matches of one page."""

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from sys import getsizeof
from typing import Any

from agentfs.base import call_context
from agentfs.errors import AccessError, AgentFSError
from agentfs.fs import BINARY, KeptText, ReadBuffer, Root, revision_of, typed
from agentfs.limits import Limits
from agentfs.patterns.line_search import Counts, LineMatch, LineSearch
from agentfs.patterns.literals import Prefilter, decode_content, is_plain_utf8
from agentfs.results import FileCount, Match, Skipped
from agentfs.search.entries import ENTRY_BYTES, Page, page_of
from agentfs.search.grep_files import Attempt, FileBytes, FileSource, ReadBatch, Reader
from agentfs.search.options import GrepOptions
from agentfs.search.windows import WINDOW, Window, one_window, text_of_large, windows
from agentfs.shown.outputs import Output
from agentfs.shown.read_tracker import NamedEncoding
from agentfs.text import cut_line, cut_mark, decode_in, is_binary, lf_view
from agentfs.tree.visit import Excluded

_MAX_WAITING = 500  # line matches of a file that are collected before they become matches
_PLAIN = "plain"  # the kind of kept texts that can be searched as bytes
_FEW_FILES = 30  # fewer files are searched one by one, not by one pass over all kept texts
_FILES_PER_CHECK = 32  # files between two checks for cancellation
_MATCH_BYTES, _SPAN_BYTES = 320, 120  # measured sizes
_BLOCK_LINES = 10  # a match over several lines may be as long as this many lines


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
    root: Root,
    limits: Limits,
    options: GrepOptions,
    *,
    among: Sequence[Excluded] | None = None,
    texts: Mapping[str, str] | None = None,
    encodings: Mapping[str, NamedEncoding] | None = None,
) -> Finding:
    """Search the files of the options; or only `among` excluded names.

    `texts` are kept texts by the names under which the options have them. `encodings` are those that reads
    have named, by real path.
    """
    searcher = _Searcher(root, limits, options, among, texts or {}, encodings or {})
    reached: str | None = None
    try:
        searcher.search_files()
    except TimeoutError:
        reached = "timeout"
    return searcher.finish(reached)


class _Searcher:
    def __init__(
        self,
        root: Root,
        limits: Limits,
        options: GrepOptions,
        among: Sequence[Excluded] | None,
        kept_texts: Mapping[str, str],
        encodings: Mapping[str, NamedEncoding],
    ) -> None:
        self.root = root
        self.limits = limits
        self.options = options
        self.pattern = options.compile()
        self.encodings = {}
        if options.encoding is None:
            self.encodings = {root.display_path(path): named for path, named in encodings.items()}
        self.names = {path.rpartition("/")[2] for path in self.encodings}
        self.deadline = call_context.deadline(call_context.granted(options.timeout, limits.timeout))
        self.source = FileSource(root, limits, options, self.deadline, among, kept_texts)
        self.max_filesize = options.max_bytes
        self.buffer = ReadBuffer(min(limits.file_bytes, self.max_filesize))
        self.candidates: set[Any] | None = None  # the kept texts that contain a required literal
        # The distance from the first match of a line up to which other matches can be shown.
        window = limits.grep_line_chars * _BLOCK_LINES
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
        self.around = options.around(limits)
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
        skipped = self.source.skipped
        more = {name: getattr(skipped, name) + count for name, count in self.skipped.items()}
        self.found.skipped = replace(skipped, reached=reached or skipped.reached, **more)
        self.found.excluded = self.source.excluded
        prefilters = self.prefilter, self.large_prefilter
        self.found.in_other_case = any(each.found_in_any_case for each in prefilters)
        return self.found

    def _search_batch(self, batch: ReadBatch) -> None:
        every, reader = batch
        found = self.found
        entries = every if self.texts is None else self._may_match(every, self.texts)
        found.searched += len(every)  # files that are not searched are subtracted later
        for first in range(0, len(entries), _FILES_PER_CHECK):
            call_context.step(0)  # 0, because the walk has counted the files
            some = entries[first : first + _FILES_PER_CHECK]
            for entry, outcome in self._outcomes(some, reader):
                try:
                    self._search_file(entry, reader, outcome)
                finally:
                    if found.full or found.ended_in:
                        found.searched -= len(every) - every.index(entry) - 1
                if found.full:
                    return
        if self.scarce_texts is not None:
            self.scarce_texts.mark_used(every)

    def _outcomes(self, entries: Sequence[Any], reader: Reader) -> Iterator[tuple[Any, Attempt]]:
        # The name of a file that was passed by its path is that path.
        if not self.names or self.names.isdisjoint(os.path.basename(entry.name) for entry in entries):
            return reader.read_files(entries, self._read, linked=self.source.linked)
        return self._outcomes_with_names(entries, reader)

    def _outcomes_with_names(self, entries: Sequence[Any], reader: Reader) -> Iterator[tuple[Any, Attempt]]:
        """Read files one by one. Files with a named encoding count as too large: their path is needed."""
        for entry in entries:
            if reader.path_of(entry) in self.encodings:
                self.prefilter.found_in_any_case = True  # it does not see this file
                yield entry, "timeout" if time.monotonic() > self.deadline else "too_large"
            else:
                yield from reader.read_files([entry], self._read, linked=self.source.linked)

    def _may_match(self, entries: Sequence[Any], texts: Any) -> Sequence[Any]:
        """Leave out kept texts without a required literal, by one pass over all kept texts."""
        if (candidates := self.candidates) is None:
            if self.found.searched + len(entries) < _FEW_FILES:
                return entries
            self.candidates = candidates = texts.containing(self._search_block)
        if not all(hasattr(kind, "content") for kind in set(map(type, entries))):
            return entries  # some entries are not in a kept tree
        if self.names:
            candidates.update(entry for entry in entries if entry.name in self.names)
        read = [entry for entry in entries if entry.content != _PLAIN or entry in candidates]
        if not read or self.source.stops_when_full:  # files after the last one must not count
            return read
        known = [entry for entry in read if entry.content != BINARY]
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

    def _search_file(self, entry: Any, reader: Reader, outcome: Attempt) -> None:
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
        """Search a file that is larger than the buffer or has a named encoding.

        Returns:
            The content of a small file, or the reason why the file is skipped; None if it was searched.
        """
        limit, multiline = self.buffer.limit, self.options.multiline
        named = self.encodings.get(path)
        try:
            with self.root.open_file(path) as file:
                if named is not None and file.stat.st_size <= limit:
                    content = file.read(limit)
                    if not named.applies_to(content, revision_of(content)):
                        return BINARY if is_binary(content) else content
                    self._search_windows(path, one_window(lf_view(decode_in(content, named.name).text)))
                    return None
                if self.max_filesize == limit or file.stat.st_size > self.max_filesize:
                    return "too_large"
                self.prefilter.found_in_any_case |= multiline
                parts = text_of_large(
                    file,
                    self.options.encoding if named is None else named.name,
                    None if multiline else self.large_prefilter,
                    self.around,
                    self._check_time,
                )
                if isinstance(parts, str):
                    return parts
                size, first_match = min(WINDOW, self.line_search.max_length), self.line_search.first_in_part
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
        line_search, max_count = self.line_search, self.options.max_count
        found, page = self.found, self.found.page
        counts, first = Counts(), found.entries
        samples = self.samples if page.first <= first < page.end else 0
        can_count = max_count is None and not self.options.multiline
        kept: list[LineMatch] = []
        following: int | None = None  # where the next match begins
        shown = enough = False
        excerpts = _Excerpts(path, self.around, self.limits.grep_line_chars, self.options.overlap)
        too_long = line_search.too_long
        try:
            for window in every:
                if enough:
                    break
                text, start, stop = window.text, window.start, window.stop
                excerpts.enter(window)
                shows_more = first + counts.hits < page.end if self.by_line else counts.hits < samples
                if can_count and not shows_more and window.hit is None:
                    line_search.count(text[start:stop], counts)
                    continue
                following = None
                for hit in line_search.hits(text, start) if window.hit is None else (window.hit,):
                    number = first + counts.hits
                    is_shown = page.first <= number < page.end if self.by_line else counts.hits < samples
                    if hit.start >= stop:
                        following = hit.start if is_shown else None
                        break
                    if is_shown:
                        kept.append(hit)
                        if len(kept) > _MAX_WAITING:
                            self._keep(excerpts, kept[:-1], following=kept[-1].start)
                            del kept[:-1]
                    counts.add(hit, text.count("\n", hit.start, hit.end))
                    window.resume = max(window.resume, hit.end + 1)
                    if enough := max_count is not None and counts.lines >= max_count:
                        break
                if kept:
                    shown = True
                    self._keep(excerpts, kept, following)
                    kept.clear()
        except TimeoutError:
            found.ended_in = path
            raise
        except MemoryError:  # the stack of the engine can overflow even on a line within the bound
            line_search.too_long += 1
        finally:
            self.skipped["long_lines"] += line_search.too_long > too_long
            if counts.lines:
                self._add_file(path, excerpts, counts, kept, shown=shown or bool(kept))

    def _add_file(
        self, path: str, excerpts: "_Excerpts", counts: Counts, kept: list[LineMatch], *, shown: bool
    ) -> None:
        """Add the findings of one file."""
        found, page = self.found, self.found.page
        found.total_files += 1
        found.total_lines += counts.lines
        found.total_matches += counts.matches
        on_page = shown if self.by_line else page.first <= found.entries < page.end
        if on_page:
            found.counts[path] = FileCount(counts.lines, counts.matches)
        if self.by_line:
            found.entries += counts.hits
        if kept:
            self._keep(excerpts, kept)
        if not self.by_line:
            if page.first <= found.entries < page.end:
                page.take(found.entries, ENTRY_BYTES + 2 * len(path))
            found.entries += 1
            found.full = self.source.stops_when_full and found.entries > page.end

    def _keep(
        self, excerpts: "_Excerpts", line_matches: list[LineMatch], following: int | None = None
    ) -> None:
        """Turn line matches of a file into matches, as long as memory is left."""
        found, page = self.found, self.found.page
        for match in excerpts.take(line_matches, following):
            number = page.first + len(found.matches) if self.by_line else found.entries
            if number >= page.end or (not self.by_line and page.is_full):
                break
            found.matches.append(match)
            lines = (match.text, *match.before, *match.after)
            size = _MATCH_BYTES + _SPAN_BYTES * len(match.spans) + sum(map(getsizeof, lines))
            page.take(number, size, len(match.text) + 1)


class _Excerpts:
    """Converts line matches of a file to matches in order; without `overlap`, no line is in two matches."""

    def __init__(self, path: str, around: tuple[int, int], line_chars: int, overlap: bool) -> None:
        self._path = path
        self._before, self._after = around
        self._line_chars = line_chars
        self._overlap = overlap
        self._free = 0  # start of the first line that is in no match yet

    def enter(self, window: Window) -> None:
        """Go on with the next window."""
        self._text = window.text
        self._context, self._beyond = window.context, window.beyond
        self._number, self._counted = window.number, 0  # of the line that begins there
        self._free = max(self._context, self._free - window.dropped)

    def take(self, line_matches: Sequence[LineMatch], following: int | None) -> Iterator[Match]:
        """Yield a match for each line match; `following` is the start of the next line match, if any."""
        text, line_chars = self._text, self._line_chars
        ends = [*(each.start for each in line_matches[1:]), following]
        for found, end in zip(line_matches, ends, strict=True):
            self._number += text.count("\n", self._counted, found.start)
            self._counted = found.start
            lines_before = _lines_before(text, self._free, found.start, self._before)
            end = len(text) if end is None or self._overlap else end  # noqa: PLW2901 - the default for None
            lines_after, taken = _lines_after(text, found.end + 1, end, self._after)
            self._free = self._context if self._overlap else taken
            lines = text[found.start : found.end]
            shown, spans, cut = _cut_around(lines, found.spans, line_chars, self._beyond)
            yield Match(
                path=self._path,
                line=self._number,
                text=shown,
                spans=tuple(spans),
                before=tuple(cut_line(line, line_chars) for line in lines_before),
                after=tuple(cut_line(line, line_chars) for line in lines_after),
                cut=cut,
            )


def _lines_before(text: str, start: int, end: int, count: int) -> list[str]:
    lines: list[str] = []
    while len(lines) < count and end > start:
        begin = text.rfind("\n", 0, end - 1) + 1
        lines.append(text[begin : end - 1])
        end = begin
    return lines[::-1]


def _lines_after(text: str, start: int, stop: int, count: int) -> tuple[list[str], int]:
    lines: list[str] = []
    while len(lines) < count and start < stop:
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        lines.append(text[start:end])
        start = end + 1
    return lines, start


def without_marks(match: Match) -> tuple[str, list[tuple[int, int]]]:
    """Return the text of a match without its cut marks, and the spans relative to that text."""
    ahead, behind = map(cut_mark, match.cut)
    text = match.text[len(ahead) : len(match.text) - len(behind)]
    return text, [(start - len(ahead), end - len(ahead)) for start, end in match.spans]


def _cut_around(
    text: str, spans: Sequence[tuple[int, int]], line_chars: int, beyond: tuple[int, int]
) -> tuple[str, list[tuple[int, int]], tuple[int, int]]:
    """Cut a long text around its first match; return it with moved spans and the cut lengths.

    `beyond` are the numbers of characters that the text lacks already.
    """
    limit = line_chars * _BLOCK_LINES if "\n" in text else line_chars
    if len(text) <= limit and beyond == (0, 0):
        return text, list(spans), (0, 0)
    first = spans[0][0] if spans else 0
    start = max(0, min(first - limit // 4, len(text) - limit))
    end = min(start + limit, len(text))
    ahead, rest = beyond[0] + start, beyond[1] + len(text) - end
    mark = cut_mark(ahead)
    shift = len(mark) - start
    kept = [(max(a, start) + shift, min(b, end) + shift) for a, b in spans if a <= end and b >= start]
    return f"{mark}{text[start:end]}{cut_mark(rest)}", kept, (ahead, rest)
