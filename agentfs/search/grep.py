"""`grep`: the contents of files, searched in path order, with exact totals and nothing left out unsaid."""

import json
import os
import time
from dataclasses import dataclass, replace
from typing import Literal, get_args

from agentfs import calling
from agentfs.disk import Root, quote, show_name
from agentfs.errors import AgentFSError, InvalidArgumentError
from agentfs.limits import Limits
from agentfs.results import FileCount, GrepResult, Match, NextCall, Skipped
from agentfs.search.excerpts import excerpts
from agentfs.search.filetypes import compile_types
from agentfs.search.finding import bind_to_search
from agentfs.search.globs import compile_globs, hidden_names
from agentfs.search.grep_text import (
    content_lines,
    count_lines_shown,
    count_shown,
    numbered_matches,
    totals_shown,
)
from agentfs.search.hits import Hit, Search
from agentfs.search.leftout import one_line, say_reached, say_skipped
from agentfs.search.paging import check_offset, check_page, next_page
from agentfs.search.pattern import Pattern, S, compile_pattern
from agentfs.search.scan import Reader, Verdict
from agentfs.search.walk import Walk
from agentfs.text import continuation, footer

OutputMode = Literal["content", "files_with_matches", "count", "summary", "total"]

_SAMPLES = 3  # matches of each file in a summary
# Lines around each match when none were asked for: a search that finds so little is a look at that place.
_ADAPTIVE_CONTEXT = {1: 10, 2: 5, 3: 5}


@dataclass(frozen=True)
class Request:
    """The arguments of one search, as the model gave them, checked."""

    pattern: str
    path: str
    glob: str | list[str] | None
    type: str | list[str] | None
    output_mode: OutputMode
    ignore_case: bool
    context: int | None
    multiline: bool
    limit: int | None
    offset: int
    include_ignored: bool
    before: int | None = None
    after: int | None = None
    line_numbers: bool = True

    @property
    def around(self) -> tuple[int, int] | None:
        """The lines asked for before and after each match, or None when none were asked for."""
        if self.context is None and self.before is None and self.after is None:
            return None
        both = self.context or 0
        before, after = self.before, self.after
        return both if before is None else before, both if after is None else after

    def next_page(self, offset: int) -> NextCall:
        """Return the call that goes on at an offset."""
        return next_page(
            "grep",
            offset,
            pattern=(self.pattern, None),
            path=(self.path, "."),
            glob=(self.glob, None),
            type=(self.type, None),
            output_mode=(self.output_mode, "content"),
            ignore_case=(self.ignore_case, False),
            context=(self.context, None),
            multiline=(self.multiline, False),
            limit=(self.limit, None),
            include_ignored=(self.include_ignored, False),
            before=(self.before, None),
            after=(self.after, None),
            line_numbers=(self.line_numbers, True),
        )


def grep(
    root: Root,
    limits: Limits,
    pattern: str,
    path: str = ".",
    glob: str | list[str] | None = None,
    type: str | list[str] | None = None,  # noqa: A002 - the contract's name, and ripgrep's
    output_mode: OutputMode = "content",
    ignore_case: bool = False,
    context: int | None = None,
    multiline: bool = False,
    limit: int | None = None,
    offset: int = 0,
    include_ignored: bool = False,
    *,
    before: int | None = None,
    after: int | None = None,
    line_numbers: bool = True,
) -> GrepResult:
    """Search the contents of files with a regular expression.

    Args:
        root: The door to the disk.
        limits: The bounds of the search.
        pattern: The regular expression; each line is matched alone unless `multiline`.
        path: The file or directory to search; searched even if it is hidden or ignored.
        glob: Only files that match, by their path below `path`; of no meaning for a single file.
        type: Only files of these types; of no meaning for a single file.
        output_mode: What the entries are: matching lines, files, or none but the totals.
        ignore_case: Match letters in either case.
        context: Lines to show on either side; None shows some when very little is found.
        multiline: Let a match span lines, and `.` match line ends.
        limit: Most entries to return.
        offset: Entries to leave out before the first.
        include_ignored: Search hidden and ignored files too.
        before: Lines to show before each match, whatever `context` says.
        after: Lines to show after each match, whatever `context` says.
        line_numbers: Whether the text numbers the lines.

    Returns:
        One page of the entries in path order, the totals of all, and what was left out.

    Raises:
        InvalidPatternError: `invalid_pattern`: the pattern or the glob cannot be used.
        InvalidArgumentError: `invalid_argument`: an unknown type or output mode, or a number out of range.
        PastEndError: `past_end`: the offset lies behind the last entry.
        AgentFSError: `not_found`, `outside_workspace` and whatever else `path` may be.
    """
    began = time.monotonic()
    request = Request(
        pattern,
        path or ".",
        glob,
        type,
        output_mode,
        ignore_case,
        context,
        multiline,
        limit,
        offset,
        include_ignored,
        before,
        after,
        line_numbers,
    )
    _check(request)
    compiled = compile_pattern(pattern, ignore_case=ignore_case, multiline=multiline)
    search = _Grep(root, limits, request, compiled, began)
    search.run()
    return search.result()


def _check(request: Request) -> None:
    modes = get_args(OutputMode)
    if request.output_mode not in modes:
        raise InvalidArgumentError(
            f"`output_mode` must be one of {', '.join(modes)}, not {request.output_mode!r}.",
            hint="Leave `output_mode` out for the matching lines.",
            details={"argument": "output_mode", "choices": list(modes)},
        )
    for name in ("context", "before", "after"):
        lines = getattr(request, name)
        if lines is not None and lines < 0:
            raise InvalidArgumentError(
                f"`{name}` must be 0 or more, not {lines}.",
                hint=f"Leave `{name}` out for the usual number of lines.",
                details={"argument": name},
            )


class _Grep:
    """One search: what it has found, counted and kept so far."""

    def __init__(self, root: Root, limits: Limits, request: Request, pattern: Pattern, began: float) -> None:
        self.root = root
        self.limits = limits
        self.request = request
        self.pattern = pattern
        self.began = began
        self.deadline = began + limits.timeout
        self.reader = Reader(limits.file_bytes, pattern)
        self.in_text = Search(pattern, pattern.form, self.deadline)
        self.in_ascii = None if pattern.ascii is None else Search(pattern, pattern.ascii, self.deadline)
        self.by_line = request.output_mode == "content"
        self.first = 0 if request.output_mode == "total" else request.offset
        self.end = self.first + check_page(request.limit, request.offset, limits.grep_results)
        self.entries = 0
        self.matches: list[Match] = []
        self.pending: list[tuple[str, str, list[Hit]]] = []  # hits of files whose context is not yet known
        self.counts: dict[str, FileCount] = {}
        self.total_matches = self.total_lines = self.total_files = self.searched = 0
        self.left_out = dict.fromkeys(("binary", "too_large", "undecodable", "unreadable"), 0)
        self.skipped = Skipped()
        self.stopped_in: str = ""

    def run(self) -> None:
        """Search the file or the tree."""
        path = self.request.path
        try:
            if self.root.entry(path).is_dir:
                self._tree()
            else:
                with self.root.open_file(path) as opened:
                    try:
                        verdict = self.reader.read(opened.fd, opened.stat.st_size)
                    except OSError:
                        self.left_out["unreadable"] += 1
                    else:
                        self._judged(verdict, opened.path)
        except TimeoutError:
            self.skipped = replace(self.skipped, reached="timeout")
        self.skipped = replace(
            self.skipped, **{name: getattr(self.skipped, name) + n for name, n in self.left_out.items()}
        )

    def _tree(self) -> None:
        request = self.request
        globs = bind_to_search(self.root, _as_list(request.glob), request.path)
        types = _as_list(request.type)
        fits = compile_globs(globs, hidden=request.include_ignored) if globs else None
        is_of_type = compile_types(types) if types else None
        walk = Walk(
            self.root,
            request.path,
            max_entries=self.limits.walk_entries,
            deadline=self.deadline,
            hidden=request.include_ignored or hidden_names(globs) or False,
            ignored=request.include_ignored,
        )
        try:
            for visit in walk:
                prefix = f"{visit.path}/" if visit.path else ""
                open_fd = visit.directory.open_fd
                read, close = self.reader.read, os.close
                for listed in visit.files:
                    name = listed.name
                    if is_of_type is not None and not is_of_type(name):
                        continue
                    if fits is not None and not fits(visit.below + name):
                        continue
                    calling.step(0)  # the walk has counted it
                    if time.monotonic() > self.deadline:
                        self.stopped_in = prefix + name
                        raise TimeoutError
                    try:
                        fd, size = open_fd(name)
                        try:
                            verdict = read(fd, size)
                        finally:
                            close(fd)
                    except (OSError, AgentFSError):
                        self.left_out["unreadable"] += 1
                        continue
                    if verdict == "no_match":
                        self.searched += 1
                    else:
                        self._judged(verdict, prefix + name)
        finally:
            self.skipped = walk.skipped

    def _judged(self, verdict: Verdict, path: str) -> None:
        """Go on with the file that is in the reader's buffer."""
        if verdict == "no_match":
            self.searched += 1
        elif verdict == "may_match":
            self._content(path)
        else:
            self.left_out[verdict] += 1

    def _content(self, path: str) -> None:
        content = None if self.in_ascii is None else self.reader.ascii()
        if content is not None and self.in_ascii is not None:
            self.searched += 1
            self._search(show_name(path), content, self.in_ascii)
        elif (text := self.reader.text()) is None:
            self.left_out["undecodable"] += 1
        else:
            self.searched += 1
            self._search(show_name(path), text, self.in_text)

    def _search(self, path: str, text: S, search: Search[S]) -> None:
        lines = matches = 0
        kept: list[Hit] = []
        try:
            if not self.by_line and not self._wants_samples():
                lines, matches = search.count(text)
            elif self.by_line and self.entries >= self.end:
                lines, matches = search.count(text)
                self.entries += lines
            else:
                for hit in search.hits(text):
                    lines += 1 + (_lines_within(text, hit) if self.pattern.multiline else 0)
                    matches += len(hit.spans)
                    if not self.by_line:
                        if len(kept) < _SAMPLES:
                            kept.append(hit)
                        continue
                    if self.first <= self.entries < self.end:
                        kept.append(hit)
                    self.entries += 1
        except TimeoutError:
            self.stopped_in = path
            raise
        finally:
            if lines:
                whole = _as_text(text) if kept else ""
                self._found(path, whole, FileCount(lines, matches), kept)

    def _wants_samples(self) -> bool:
        return self.request.output_mode == "summary" and self.first <= self.entries < self.end

    def _found(self, path: str, text: str, count: FileCount, kept: list[Hit]) -> None:
        self.total_files += 1
        self.total_lines += count.lines
        self.total_matches += count.matches
        if not self.by_line:
            if self.first <= self.entries < self.end:
                self.counts[path] = count
            self.entries += 1
        elif kept:
            self.counts[path] = count
        if kept:
            self.pending.append((path, text, kept))
        if not self._may_be_few():
            self._settle()

    def _may_be_few(self) -> bool:
        """Tell whether so little was found until now that lines around it may be shown unasked."""
        request = self.request
        return (
            self.by_line
            and request.around is None
            and request.offset == 0
            and self.entries <= max(_ADAPTIVE_CONTEXT)
        )

    def _settle(self) -> None:
        """Turn the hits that wait for their context into matches."""
        around = (0, 0)
        if self.by_line:
            around = self.request.around or (0, 0)
            if self._may_be_few():
                around = (_ADAPTIVE_CONTEXT.get(self.entries, 0),) * 2
        before, after = (min(lines, self.limits.context_lines) for lines in around)
        for path, text, hits in self.pending:
            self.matches += excerpts(
                path, text, hits, before=before, after=after, line_chars=self.limits.grep_line_chars
            )
        self.pending.clear()

    def result(self) -> GrepResult:
        """Put the answer together."""
        self._settle()
        request = self.request
        total_only = request.output_mode == "total"
        exact = self.skipped.reached is None
        if exact and self.entries:
            noun = "matches" if self.by_line else "files"
            check_offset(self.first, self.entries, noun)
        truncated = not total_only and self.entries > self.end
        following = request.next_page(self.end) if truncated else None
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
            elapsed_ms=round((time.monotonic() - self.began) * 1000),
            next=following,
        )
        return replace(result, text=self._render(result))

    def _render(self, result: GrepResult) -> str:
        totals = totals_shown(
            result.total_matches, result.total_lines, result.total_files, exact=result.exact
        )
        if result.total_lines == 0:
            searched = f"{result.searched_files:,} file{'' if result.searched_files == 1 else 's'}"
            asked = one_line(json.dumps(self.request.pattern, ensure_ascii=False))
            body = [f"No matches for {asked} in {quote(self.request.path)} ({searched} searched)."]
            totals = ""
        elif self.request.output_mode == "content":
            body = content_lines(result.matches, numbers=self.request.line_numbers)
        elif self.request.output_mode == "files_with_matches":
            body = [one_line(path) for path in result.counts]
        elif self.request.output_mode == "count":
            body = count_lines_shown(result.counts)
        elif self.request.output_mode == "summary":
            body = self._summary(result)
        else:
            body = [f"{totals[0].upper()}{totals[1:]}."]
            totals = ""
        body.append(
            footer(
                totals,
                self._page_shown(result),
                self._stop_shown(),
                self._context_shown(),
                say_skipped(result.skipped, can_open=not self.request.include_ignored),
            )
        )
        return "\n".join(line for line in body if line or line is not body[-1])

    @staticmethod
    def _summary(result: GrepResult) -> list[str]:
        samples: dict[str, list[Match]] = {}
        for match in result.matches:
            samples.setdefault(match.path, []).append(match)
        shown: list[str] = []
        for path, count in result.counts.items():
            shown.append(f"{one_line(path)}: {count_shown(count)}")
            shown += [f"  {line}" for line in numbered_matches(samples.get(path, []))]
        return shown

    def _page_shown(self, result: GrepResult) -> str:
        if not result.truncated and self.first == 0:
            return ""
        last = min(self.end, self.entries)
        shown = f"shown: {self.first + 1}-{last}" if last > self.first else "nothing shown from this offset"
        return "; ".join(part for part in (shown, continuation(result.next)) if part)

    def _stop_shown(self) -> str:
        said = say_reached(self.skipped, self.limits.timeout)
        last = one_line(show_name(self.stopped_in))
        return f"{said} (it was searching {last})" if self.stopped_in else said

    def _context_shown(self) -> str:
        most = self.limits.context_lines
        asked = max(self.request.around or (0,))
        return f"context is at most {most}" if asked > most and self.by_line else ""


def _as_text(text: str | bytes) -> str:
    return text if isinstance(text, str) else str(text, "ascii")


def _lines_within(text: str | bytes, hit: Hit) -> int:
    if isinstance(text, str):
        return text.count("\n", hit.start, hit.end)
    return text.count(b"\n", hit.start, hit.end)


def _as_list(value: str | list[str] | None) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)
