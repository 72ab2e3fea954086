"""The kept texts of a watched tree: most are left out by one pass over all of them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from agentfs.fs import KeptText, Root
from agentfs.patterns.prefilter import Prefilter, is_plain_utf8

_PLAIN = "plain"  # the kind of kept texts that can be searched as bytes
_FEW_FILES = 30  # fewer files are searched one by one, not by one pass over all kept texts


class KeptFiles:
    """The kept texts of one search.

    Args:
        root: The root, in which nothing may be kept.
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
