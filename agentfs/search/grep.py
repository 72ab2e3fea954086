"""`grep`: the contents of files, searched in path order, with exact totals and nothing left out unsaid."""

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

from agentfs import call_context
from agentfs.errors import AccessError, AgentFSError
from agentfs.fs import Directory, ReadBuffer, Root, display_name, quote, size_of, typed
from agentfs.limits import Limits
from agentfs.messages import Joined, NextCall
from agentfs.patterns.line_search import Counts, LineMatch, LineSearch
from agentfs.patterns.prefilter import Prefilter
from agentfs.results import FileCount, GrepResult, Match, Skipped
from agentfs.search.excerpts import Excerpts, bytes_of, spans_window
from agentfs.search.files import FileBatch, Outcome, SearchFiles
from agentfs.search.fit_output import fit_output
from agentfs.search.hints import Probe, absence_notes, empty_group_note
from agentfs.search.line_ids import NameLines
from agentfs.search.paging import ENTRY_BYTES, check_offset, page_of
from agentfs.search.render import content_lines, count_lines_shown, summary_lines, totals_shown
from agentfs.search.request import Engine, Request
from agentfs.search.ripgrep import find_rg, nominated
from agentfs.search.skip_report import describe_skipped, describe_stop
from agentfs.search.suggestions import suggesting
from agentfs.text import continuation, footer
from agentfs.tree.ignore_sources import slashed
from agentfs.tree.walk import Excluded
from agentfs.visible import one_line

_Reason = Literal["protected", "binary", "too_large", "undecodable", "unreadable", "long_lines"]

# Lines around each match when none were asked for: a search that finds so little is a look at that place.
_MOST_KEPT = 500  # hits of a file that wait to become matches
_BETWEEN_LOOKS = 32  # files between two looks at the clock
_ADAPTIVE_CONTEXT = {1: 10, 2: 5, 3: 5}


def grep(
    root: Root,
    limits: Limits,
    request: Request,
    *,
    name_lines: NameLines | None = None,
    kept: str | None = None,
    engine: Engine = "python",
) -> GrepResult:
    """Search the contents of files with a regular expression.

    Args:
        root: The confined root.
        limits: The bounds of the search.
        request: What is searched for, where, and what of it is returned.
        name_lines: Gives matches the ids of their lines; None for no ids.
        kept: A text to search in place of the file; the path of the request is only its name.
        engine: What is asked which files may have a match.

    Returns:
        One page of the entries in order, the totals of all, and what was left out.

    Raises:
        InvalidPatternError: `invalid_pattern`: the pattern or the glob cannot be used.
        InvalidArgumentError: `invalid_argument`: an unknown type, or a number out of range.
        PastEndError: `past_end`: the offset lies behind the last entry.
        AgentFSError: `not_found`, `outside_workspace` and whatever else the path may be.
    """
    search = _Grep(root, limits, request, time.monotonic())
    search.name_lines = name_lines
    if engine == "ripgrep":
        search.rg = find_rg()
    with suggesting(root):
        search.run(kept)
    return search.result()


class _Grep:
    """One search: what it has found, counted and kept so far."""

    def __init__(
        self,
        root: Root,
        limits: Limits,
        request: Request,
        began: float,
        left_out: Sequence[Excluded] | None = None,
    ) -> None:
        self.root = root
        self.limits = limits
        self.request = request
        pattern = request.compiled()
        self.began = began
        self.deadline = call_context.deadline(request.seconds(limits))
        self.sources = SearchFiles(root, limits, request, self.deadline, left_out=left_out)
        self.most_bytes = request.file_bytes(limits)
        self.contents = ReadBuffer(self.most_bytes)
        self.prefilter = Prefilter(self.contents, request.encoding)
        self.classify = self.prefilter.classifier(pattern)
        self.line_search = LineSearch(pattern, self.deadline, window=spans_window(limits.grep_line_chars))
        self.by_line = request.output_mode == "content"
        offset = 0 if request.output_mode == "total" else request.offset
        self.page = page_of(request.limit, offset, limits.grep_results, limits)
        self.entries = 0
        self.matches: list[Match] = []
        # Hits of files whose context is not yet known.
        self.pending: list[tuple[str, str, list[LineMatch]]] = []
        self.excerpts: Excerpts | None = None  # those of the file that is searched, where it has many hits
        self.counts: dict[str, FileCount] = {}
        self.total_matches = self.total_lines = self.total_files = self.searched = 0
        self.left_out: dict[_Reason, int] = dict.fromkeys(get_args(_Reason), 0)
        self.skipped = Skipped()
        self.stops_early = request.output_mode == "files_with_matches" and request.limit is not None
        self.rg: str | None = None
        self.nominated: set[str] | None = None
        self.engine: Engine = "python"
        self.enough = False  # whether the page was full, and more was not asked for
        self.stopped_in: str = ""
        self.name_lines: NameLines | None = None
        self.of_text = False  # whether a text was searched in place of files

    def run(self, kept: str | None = None) -> None:
        """Search the files, or a text in place of them."""
        reached: str | None = None
        try:
            if kept is not None:
                self.of_text = True
                self.searched += 1
                self._search(self.request.paths[0], kept)
            elif self.rg is not None:
                self._nominate(self.rg)
            for run in self.sources.runs() if kept is None else ():
                self._run(run)
                if self.enough:
                    break
        except TimeoutError:
            reached = "timeout"
        skipped = self.sources.skipped
        self.skipped = replace(
            skipped,
            reached=reached or skipped.reached,
            **{name: getattr(skipped, name) + count for name, count in self.left_out.items()},
        )

    def _nominate(self, rg: str) -> None:
        directories = self.sources.directories()
        if directories:
            seconds = self.deadline - time.monotonic()
            self.nominated = nominated(rg, self.root.path, directories, self.request, seconds)
        self.engine = "python" if self.nominated is None else "ripgrep"

    def _run(self, run: FileBatch) -> None:
        names = run.names
        for first in range(0, len(names), _BETWEEN_LOOKS):
            some = names[first : first + _BETWEEN_LOOKS]
            call_context.step(0)  # the walk has counted them
            if time.monotonic() > self.deadline:
                self.stopped_in = run.prefix + some[0]
                raise TimeoutError
            if run.directory is not None and self.nominated is not None:
                some = self._among_nominated(run.directory, some, self.nominated)
            self.searched += len(some)  # what turns out not to be is taken off again
            for name, outcome in run.sift(some, self.contents.fill, self.classify):
                try:
                    self._judged(run, name, outcome)
                finally:
                    if self.enough or self.stopped_in:
                        self.searched -= len(some) - some.index(name) - 1
                if self.enough:
                    return

    def _among_nominated(self, directory: Directory, names: list[str], nominated: set[str]) -> list[str]:
        """Return those that rg named; the others are opened all the same, to count what cannot be."""
        before = slashed(directory.real_path)
        others = [name for name in names if f"{before}{name}" not in nominated]
        self.searched += len(others)
        for _, outcome in directory.read_files(others, size_of, self._judge_size):
            if isinstance(outcome, str):
                self._leave_out(outcome)
            else:
                self._failed(outcome)
        return [name for name in names if f"{before}{name}" in nominated]

    def _judge_size(self, size: int) -> Literal["too_large"] | None:
        return "too_large" if size > self.most_bytes else None

    def _judged(self, run: FileBatch, name: str, outcome: Outcome) -> None:
        """Go on with a file that is not passed over."""
        if outcome == "may_match":
            self._content(run.prefix + name)
        elif isinstance(outcome, str):
            self._leave_out(outcome)
        elif run.named:
            raise typed(outcome, run.prefix + name) from None
        else:
            self._failed(outcome)

    def _failed(self, error: OSError | AgentFSError) -> None:
        self._leave_out("protected" if isinstance(error, AccessError) else "unreadable")

    def _leave_out(self, reason: _Reason) -> None:
        self.left_out[reason] += 1
        self.searched -= 1

    def _content(self, path: str) -> None:
        text = self.prefilter.text()
        if text is None:
            self._leave_out("undecodable")
        else:
            self._search(display_name(path), text)

    def _search(self, path: str, text: str) -> None:
        search, tally = self.line_search, Counts()
        kept: list[LineMatch] = []
        entries, page, too_long = self.entries, self.page, search.too_long
        try:
            most = self.request.max_count
            samples = self.request.dialect.summary_samples if self._wants_samples() else 0
            if most is None and not samples and (not self.by_line or self.entries >= self.page.end):
                search.count(text, tally)
            else:
                for hit in search.hits(text):
                    number = entries + tally.hits
                    if page.first <= number < page.end if self.by_line else tally.hits < samples:
                        kept.append(hit)
                        if len(kept) > _MOST_KEPT:
                            self.entries = number if self.by_line else entries
                            self._settle()
                            self._excerpt(path, text, kept[:-1], kept[-1].start)
                            del kept[:-1]
                    tally.add(hit, text.count("\n", hit.start, hit.end))
                    if most is not None and tally.lines >= most:
                        break
        except TimeoutError:
            self.stopped_in = path
            raise
        except MemoryError:  # the engine's stack, on a line within the bound
            search.too_long += 1
        finally:
            if self.by_line:
                self.entries = entries + tally.hits
            self.left_out["long_lines"] += search.too_long > too_long
            if tally.lines:
                self._found(path, text, FileCount(tally.lines, tally.matches), kept)

    def _wants_samples(self) -> bool:
        return self.request.output_mode == "summary" and self._is_of_page()

    def _is_of_page(self) -> bool:
        """Tell whether the next file is an entry of the page, where files are the entries."""
        return self.page.first <= self.entries < self.page.end

    def _found(self, path: str, text: str, count: FileCount, kept: list[LineMatch]) -> None:
        self.total_files += 1
        self.total_lines += count.lines
        self.total_matches += count.matches
        if not self.by_line:
            if self._is_of_page():
                self.counts[path] = count
        elif kept:
            self.counts[path] = count
        if self.excerpts is not None:
            self._excerpt(path, text, kept)
            self.excerpts = None
        elif kept:
            self.pending.append((path, text, kept))
        if not self._may_be_few():
            self._settle()
        if not self.by_line:
            if self._is_of_page():
                self.page.take(self.entries, ENTRY_BYTES + 2 * len(path))
            self.entries += 1
            self.enough = self.stops_early and self.entries > self.page.end

    def _may_be_few(self) -> bool:
        """Tell whether so little was found until now that lines around it may be shown unasked."""
        request = self.request
        return (
            self.by_line
            and not request.asks_context
            and request.offset == 0
            and self.entries <= max(_ADAPTIVE_CONTEXT)
        )

    def _settle(self) -> None:
        """Turn the hits that wait for their context into matches."""
        for path, text, hits in self.pending:
            self._excerpt(path, text, hits)
            self.excerpts = None
        self.pending.clear()

    def _context(self) -> tuple[int, int]:
        """Return the lines to show before and after each match."""
        if self._may_be_few():
            most = min(_ADAPTIVE_CONTEXT.get(self.entries, 0), self.limits.context_lines)
            return most, most
        return self.request.around(self.limits)

    def _excerpt(self, path: str, text: str, hits: list[LineMatch], following: int | None = None) -> None:
        """Turn hits of a file into matches, for as long as there is memory for them."""
        if self.excerpts is None:
            before, after = self._context()
            self.excerpts = Excerpts(
                path,
                text,
                before=before,
                after=after,
                line_chars=self.limits.grep_line_chars,
                whole_context=self.request.dialect.whole_context,
            )
        for match in self.excerpts.take(hits, following):
            number = self.page.first + len(self.matches) if self.by_line else self.entries
            if number >= self.page.end or (self.page.is_full and not self.by_line):
                break
            self.matches.append(match)
            self.page.take(number, bytes_of(match))

    def result(self) -> GrepResult:
        """Put the answer together."""
        self._settle()
        request = self.request
        if self.name_lines is not None:
            self.matches = self.name_lines(self.matches)
        total_only = request.output_mode == "total"
        exact = self.skipped.reached is None and not self.enough
        if exact and self.entries:
            noun = "matches" if self.by_line else "files"
            check_offset(self.page.first, self.entries, noun)
        truncated = not total_only and self.entries > self.page.end
        following = request.next_page(self.page.end) if truncated else None
        result = GrepResult(
            matches=self.matches,
            counts=self.counts,
            total_matches=self.total_matches,
            total_lines=self.total_lines,
            total_files=self.total_files,
            skipped=self.skipped,
            exact=exact,
            truncated=truncated,
            searched_files=self.searched,
            engine=self.engine,
            elapsed_ms=round((time.monotonic() - self.began) * 1000),
            next=following,
        )
        return fit_output(
            result, self.limits, self.page.first, self._render, self._following, by_line=self.by_line
        )

    def _following(self, end: int) -> NextCall | None:
        return self.request.next_page(end) if end < self.entries else None

    def _render(self, result: GrepResult, note: str = "", end: int | None = None) -> str:
        totals = totals_shown(
            result.total_matches, result.total_lines, result.total_files, exact=result.exact
        )
        if result.total_lines == 0:
            searched = f"{result.searched_files:,} file{'' if result.searched_files == 1 else 's'}"
            asked = one_line(json.dumps(self.request.pattern, ensure_ascii=False))
            where = ", ".join(map(quote, self.request.places))
            body = [f"No matches for {asked} in {where} ({searched} searched)."]
            if self.skipped.reached is None and not self.of_text:
                body += absence_notes(self.root, self.limits, self.request, self.sources.left_out, glance)
            totals = ""
        elif self.request.output_mode == "content":
            body = ["\n".join(content_lines(result.matches, numbers=self.request.line_numbers))]
        elif self.request.output_mode == "files_with_matches":
            body = [one_line(path) for path in result.counts]
        elif self.request.output_mode == "count":
            body = count_lines_shown(result.counts)
        elif self.request.output_mode == "summary":
            body = summary_lines(result)
        else:
            body = [f"{totals[0].upper()}{totals[1:]}."]
            totals = ""
        body.append(
            footer(
                totals,
                self._page_shown(result, self.page.end if end is None else end),
                note,
                self._stop_shown(),
                self._context_shown(),
                empty_group_note(self.request),
                describe_skipped(result.skipped, can_open=not self.request.include_ignored),
            )
        )
        return Joined("\n", *body)

    def _page_shown(self, result: GrepResult, end: int) -> str:
        if not result.truncated and self.page.first == 0:
            return ""
        last = min(end, self.entries)
        shown = (
            f"shown: {self.page.first + 1}-{last}"
            if last > self.page.first
            else "nothing shown from this offset"
        )
        return Joined("; ", shown, continuation(result.next))

    def _stop_shown(self) -> str:
        said = describe_stop(self.skipped, self.request.seconds(self.limits))
        last = one_line(display_name(self.stopped_in))
        return Joined(" ", said, f"(it was searching {last})") if self.stopped_in else said

    def _context_shown(self) -> str:
        most = self.limits.context_lines
        asked = max(self.request.context or 0, self.request.before or 0, self.request.after or 0)
        return f"context is at most {most}" if asked > most and self.by_line else ""


def glance(root: Root, limits: Limits, request: Request, left_out: Sequence[Excluded] | None) -> Probe:
    """Count the matching lines of another search, and name the first file that has one.

    Args:
        root: The confined root.
        limits: The bounds of this look.
        request: What is searched for.
        left_out: What an earlier search left out, to search just that; None for what a search takes.
    """
    look = replace(request, output_mode="files_with_matches", limit=None, offset=0, timeout=None)
    search = _Grep(root, limits, look, time.monotonic(), left_out)
    search.run()
    return Probe(search.total_lines, next(iter(search.counts), ""), search.skipped.reached is None)
