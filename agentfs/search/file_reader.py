"""The contents of the files that a search has found; most are left out by their bytes.

In a watched tree, one pass over all kept texts leaves out most of them.
"""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final

from agentfs.base import call_context
from agentfs.fs import BINARY, KeptText, ReadBuffer, Root
from agentfs.patterns.prefilter import Prefilter, is_plain_utf8
from agentfs.search.files import Reader
from agentfs.text import HEAD, codec_name, is_binary
from agentfs.text.notebook import is_named_notebook

_PLAIN = "plain"  # the kind of kept texts that can be searched as bytes
_FEW_FILES = 30  # fewer files are searched one by one, not by one pass over all kept texts
LARGE: Final = "large"  # the outcome for a file that does not fit into the buffer


class FileReader:
    """Reads files, one after the other.

    Args:
        root: The root; only a watched one keeps texts.
        prefilter: The test of the search.
        limit: The size of the largest file to read, in bytes.
        encoding: As for `decode_content`.
        deadline: The `time.monotonic()` after which reading a file gives TimeoutError.
    """

    def __init__(
        self, root: Root, prefilter: Prefilter, limit: int, encoding: str | None, deadline: float
    ) -> None:
        kept = root.texts
        self._prefilter = prefilter
        self._buffer = ReadBuffer(limit)
        self._may_have_nul = encoding is not None and codec_name(encoding) != "utf-8"
        self._deadline = deadline
        self._texts: Any = kept if prefilter.is_useful else None
        self._scarce_texts: Any = kept if kept is not None and kept.blocks.is_scarce else None
        self._with_literal: set[Any] | None = None  # the kept texts that contain a required literal
        self._seen = 0

    def of(self, reader: Reader, entries: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield files that may match: the bytes, `BINARY`, `LARGE`, or the exception."""
        self._seen += len(entries)
        # The text of a notebook has other characters than its bytes.
        for any_text, group in groupby(entries, lambda each: is_named_notebook(each.name)):
            files: Sequence[Any] = list(group)
            chosen = files if any_text else self._that_may_match(files)
            yield from reader.read_files(chosen, partial(self._read, any_text=any_text))
        if self._scarce_texts is not None:
            self._scarce_texts.mark_used(entries)

    def check(self) -> None:
        """Raise TimeoutError if the time is over, and `Cancelled` if the call was abandoned."""
        call_context.step(0)
        if time.monotonic() > self._deadline:
            raise TimeoutError

    def _that_may_match(self, entries: Sequence[Any]) -> Sequence[Any]:
        """Leave out kept texts without a required literal, if the search has many files."""
        if self._texts is None or (self._with_literal is None and self._seen < _FEW_FILES):
            return entries
        if self._with_literal is None:
            self._with_literal = self._texts.containing(partial(self._prefilter.texts, check=self.check))
        if not all(hasattr(kind, "content") for kind in set(map(type, entries))):
            return entries  # some are not in a kept tree
        return [file for file in entries if file.content != _PLAIN or file in self._with_literal]

    def _read(self, source: int | KeptText, *, any_text: bool) -> bytes | str | None:
        self.check()
        buffer = self._buffer
        if not isinstance(source, int) and _kind_of(source) == BINARY:
            return LARGE if source.size > buffer.limit else BINARY
        length = buffer.fill(source)
        if length < 0:
            return LARGE
        head = min(HEAD, length)
        has_nul = not self._may_have_nul and buffer.data.find(0, 0, head) >= 0
        if has_nul and is_binary(bytes(buffer.data[:head])):
            return BINARY
        return buffer.copy() if any_text or self._prefilter.may_match(buffer.data, length) else None


def _kind_of(kept: KeptText) -> str:
    """Return the kind of a kept text, which its first search finds out."""
    if not kept.content and is_binary(bytes(kept.text[:HEAD])):
        kept.keep_as_binary()
    elif not kept.content:
        kept.content = _PLAIN if is_plain_utf8(kept.text) else "other"
    return kept.content
