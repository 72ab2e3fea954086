"""Short searches for hints, within one time budget."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from agentfs.base.advice import plural
from agentfs.errors import AgentFSError
from agentfs.fs import ReadBuffer
from agentfs.search.entries import PAGE_BYTES, FoundEntries, Page, find_entries
from agentfs.search.grep_files import FileSource
from agentfs.search.options import GlobOptions, GrepOptions, ListOptions, paths_of
from agentfs.search.searcher import Finding, search
from agentfs.shown.workspace_context import Context
from agentfs.text import HEAD
from agentfs.tree.visit import Excluded
from agentfs.tree.walk import path_order

PROBE_ENTRIES = 200_000
# The most names of a short search among hidden and ignored ones, which often are most names of a tree. It
# takes about 50 ms.
_SEARCHED_EXCLUDED = 4_000
_LISTED_EXCLUDED = 20_000
PROBE_SECONDS = 1.0  # time budget for all short searches of one call
_MAX_NAMED = 3


class Probe:
    """Short searches within one time budget; each returns None after an error or if no time is left."""

    def __init__(self, context: Context, seconds: float | None = None) -> None:
        self._context = context
        self._ends = time.monotonic() + (PROBE_SECONDS if seconds is None else seconds)

    def lines(self, options: GrepOptions, among: Sequence[Excluded] | None = None) -> Finding | None:
        """Return the findings of `grep`."""
        seconds = self._ends - time.monotonic()
        if seconds <= 0:
            return None
        options = replace(options, output_mode="content", limit=1, offset=0, timeout=None)
        # The order of the paths must not decide which match a hint shows.
        options = replace(options, path=sorted(paths_of(options.path), key=path_order))
        if options.files is not None and options.listed is not None:
            options = replace(options, files=sorted(options.listed, key=path_order))
        most = PROBE_ENTRIES if among is None else _SEARCHED_EXCLUDED
        context = _limited(self._context, most, timeout=seconds)
        try:
            return search(context, options, among=among)
        except AgentFSError:
            return None

    def files_with_returns(self, options: GrepOptions) -> list[str]:
        r"""Return the files of a search that end lines with `\r\n`."""
        root, _, limits, _ = _limited(self._context, PROBE_ENTRIES)
        buffer, found = ReadBuffer(limits.file_bytes), list[str]()

        def has_returns(source: Any) -> bool:
            data, length = buffer.data, buffer.fill(source)
            return length >= 0 and data.find(b"\r\n", 0, length) >= 0 > data.find(0, 0, min(length, HEAD))

        with suppress(AgentFSError, TimeoutError):
            for batch in FileSource(root, limits, options, self._ends, None, {}).batches():
                for reader, entry in batch:
                    if True in (outcome for _, outcome in reader.read_files([entry], has_returns)):
                        found.append(reader.path_of(entry))
                    if time.monotonic() > self._ends:
                        return found
        return found

    def entries(self, options: ListOptions | GlobOptions, *, any_case: bool = False) -> FoundEntries | None:
        """Return the entries that `ls` or `glob` finds; None if there are none."""
        found = self.all_entries(options, any_case=any_case)
        return found if found is not None and found.total else None

    def all_entries(
        self, options: ListOptions | GlobOptions, *, any_case: bool = False
    ) -> FoundEntries | None:
        """Return the entries that `ls` or `glob` finds, also if there are none."""
        seconds, page = self._ends - time.monotonic(), Page(0, _MAX_NAMED, PAGE_BYTES)
        if seconds <= 0:
            return None
        context = _limited(self._context, _LISTED_EXCLUDED if options.include_ignored else PROBE_ENTRIES)
        try:
            return find_entries(context, options, page=page, seconds=seconds, any_case=any_case)
        except AgentFSError:
            return None


def _limited(context: Context, walk_entries: int, **limits: Any) -> Context:
    """Return a context with other limits; its walks look at no more than so many entries."""
    walk_entries = min(walk_entries, context.limits.walk_entries)
    return context._replace(limits=replace(context.limits, walk_entries=walk_entries, **limits))


def count_of_glob(probe: Probe, options: GlobOptions) -> str:
    """Return the number of files that a glob finds, as `3 files`, or "" for none."""
    found = probe.entries(options)
    return f"{'' if found.exact else 'at least '}{plural(found.total, 'file')}" if found else ""
