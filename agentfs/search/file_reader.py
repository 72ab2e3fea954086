"""The contents of the files that a search has found; most are left out by their bytes.

In a watched tree, one pass over all kept texts leaves out most of them.
"""

import time
from collections.abc import Callable, Iterator, Sequence
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
        self._kept = _KeptFiles(root, prefilter)
        self._seen = 0

    def of(self, reader: Reader, entries: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield files that may match: the bytes, `BINARY`, `LARGE`, or the exception."""
        self._seen += len(entries)
        candidates = self._kept.that_may_match(entries, self._seen, self.check)
        if ".ipynb" not in "/".join([each.name for each in entries]).lower():
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
            return LARGE if source.size > buffer.limit else BINARY
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


class _KeptFiles:
    """The kept texts of a watched tree in one search.

    Args:
        root: The root; only a watched one keeps texts.
        prefilter: The test of the search.
    """

    def __init__(self, root: Root, prefilter: Prefilter) -> None:
        kept = root.texts
        self._texts: Any = kept if prefilter.is_useful else None
        self._scarce_texts: Any = kept if kept is not None and kept.blocks.is_scarce else None
        self._prefilter = prefilter
        self._candidates: set[Any] | None = None  # the kept texts that contain a required literal

    def that_may_match(
        self, entries: Sequence[Any], searched: int, check: Callable[[], None]
    ) -> Sequence[Any]:
        """Leave out kept texts without a required literal, if `searched` files are worth it.

        `check` is called from time to time; it may raise to stop.
        """
        if self._texts is None:
            return entries
        if self._candidates is None:
            if searched < _FEW_FILES:
                return entries
            self._candidates = self._texts.containing(partial(self._prefilter.texts, check=check))
        candidates = self._candidates
        if not all(hasattr(kind, "content") for kind in set(map(type, entries))):
            return entries  # some are not in a kept tree
        return [file for file in entries if file.content != _PLAIN or file in candidates]

    def note_kind(self, source: KeptText, *, is_binary: bool) -> None:
        """Remember what kind of text a file has."""
        if is_binary:
            source.keep_as_binary()
        elif not source.content:
            source.content = _PLAIN if is_plain_utf8(source.text) else "other"

    def mark_used(self, entries: Sequence[Any]) -> None:
        """Note that this search needed the texts of some files."""
        if self._scarce_texts is not None:
            self._scarce_texts.mark_used(entries)
