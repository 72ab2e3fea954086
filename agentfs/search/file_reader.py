"""The contents of the files that a search has found; most are left out by their bytes."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final

from agentfs.base import call_context
from agentfs.fs import BINARY, KeptText, ReadBuffer, Root
from agentfs.patterns.prefilter import Prefilter
from agentfs.search.files import Reader
from agentfs.search.kept_files import KeptFiles
from agentfs.text import HEAD, codec_name, is_binary
from agentfs.text.notebook import is_named_notebook

LARGE: Final = "large"  # the outcome for a file that does not fit into the buffer


class FileReader:
    """Reads files, one after the other.

    Args:
        root: The root.
        prefilter: The test of the search.
        limit: The size of the largest file to read, in bytes.
        encoding: As for `decode_content`.
        deadline: The `time.monotonic()` after which reading a file gives TimeoutError.
    """

    def __init__(
        self, root: Root, prefilter: Prefilter, limit: int, encoding: str | None, deadline: float
    ) -> None:
        self._prefilter = prefilter
        self._buffer = ReadBuffer(limit)
        self._may_have_nul = encoding is not None and codec_name(encoding) != "utf-8"
        self._deadline = deadline
        self._kept = KeptFiles(root, prefilter)
        self._seen = 0

    def of(self, reader: Reader, entries: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield files that may match: the bytes, `BINARY`, `LARGE`, or the exception."""
        self._seen += len(entries)
        candidates = self._kept.that_may_match(entries, self._seen, self.check)
        if not any(is_named_notebook(each.name) for each in entries):
            yield from reader.read_files(candidates, self._read)
        else:  # the text of a notebook has other characters than its bytes
            chosen = {*map(id, candidates)}
            wanted = [each for each in entries if id(each) in chosen or is_named_notebook(each.name)]
            for any_text, group in groupby(wanted, lambda each: is_named_notebook(each.name)):
                yield from reader.read_files(list(group), partial(self._read, any_text=any_text))
        self._kept.mark_used(entries)

    def check(self) -> None:
        """Raise TimeoutError if the time is over, and `Cancelled` if the call was abandoned."""
        call_context.step(0)
        if time.monotonic() > self._deadline:
            raise TimeoutError

    def _read(self, source: int | KeptText, *, any_text: bool = False) -> bytes | str | None:
        self.check()
        buffer = self._buffer
        if not isinstance(source, int) and source.content == BINARY:
            return LARGE if source.stat().st_size > buffer.limit else BINARY
        length = buffer.fill(source)
        if length < 0:
            return LARGE
        head = min(HEAD, length)
        has_nul = not self._may_have_nul and buffer.data.find(0, 0, head) >= 0
        if not isinstance(source, int):
            self._kept.note_kind(source, is_binary=has_nul and is_binary(bytes(buffer.data[:head])))
        if has_nul and is_binary(bytes(buffer.data[:head])):
            return BINARY
        may_match = any_text or self._prefilter.may_match(buffer.data, length)
        return buffer.copy() if may_match else None
