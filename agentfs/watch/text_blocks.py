"""File texts in a few large blocks of memory, so that one pass finds all texts that contain a literal."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

_BLOCK_SIZE = 16 * 1024 * 1024
_LEAST_BLOCKS = 16  # blocks that a store has room for, at least
_DEAD_SHARE = 8  # a block is copied when more than an eighth of it is dropped texts

# Returns indices of texts, given the memory of a block, the starts of its texts and the end of the last one.
Search = Callable[[bytearray, Sequence[int], int], Iterable[int]]


class TextOwner(Protocol):
    """A file whose text may be in a block."""

    block: "Block | None"
    index: int  # position in the block
    content: str  # the kind of content, set by the reader; "" when the text is dropped

    @property
    def text(self) -> memoryview:
        """The kept text."""
        ...


class Block:
    """Texts one after the other, each followed by a NUL."""

    __slots__ = ("data", "dead", "end", "owners", "starts", "used")

    def __init__(self, size: int) -> None:
        self.data = bytearray(size)
        self.end = 0
        self.dead = 0  # bytes of texts that were dropped
        self.starts = array("q")
        self.owners: list[TextOwner | None] = []
        self.used = 0  # the number of the last search that used one of its texts

    def text(self, index: int) -> memoryview:
        """Return a text."""
        return memoryview(self.data)[self.starts[index] : self._end(index) - 1]

    def drop(self, index: int) -> None:
        """Drop a text."""
        self.owners[index] = None
        self.dead += self._end(index) - self.starts[index]
        while self.owners and self.owners[-1] is None:
            self.owners.pop()
            start = self.starts.pop()
            self.dead -= self.end - start
            self.end = start

    def _end(self, index: int) -> int:
        return self.starts[index + 1] if index + 1 < len(self.starts) else self.end


class TextBlocks:
    """Texts of files, up to a number of bytes in total."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.search = 0  # the number of the search under way
        self._block_size = min(_BLOCK_SIZE, max_bytes // _LEAST_BLOCKS)
        self._blocks: list[Block] = []
        self._allocated = 0

    @property
    def count(self) -> int:
        """The number of kept texts."""
        return sum(len(block.owners) - block.owners.count(None) for block in self._blocks)

    @property
    def text_bytes(self) -> int:
        """The size of the kept texts."""
        return sum(block.end - block.dead for block in self._blocks) - self.count

    @property
    def kept_bytes(self) -> int:
        """The memory that the kept texts take."""
        return sum(block.end for block in self._blocks)

    def resize(self, max_bytes: int) -> None:
        """Change the limit, and drop the texts that were used longest ago if they exceed it."""
        self.max_bytes = max_bytes
        while self._allocated > max_bytes and self._blocks:
            self._remove(min(self._blocks, key=lambda block: block.used))

    def reserve(self, size: int) -> Block | None:
        """Return a block with room for a text and one more byte, or None.

        A block from which neither this search nor the last one took a text makes room.
        """
        needed = size + 1
        blocks = self._blocks
        if blocks and len(blocks[-1].data) - blocks[-1].end >= needed:
            return blocks[-1]
        for block in blocks:
            if len(block.data) - block.end >= needed:
                return block
        length = needed if needed > self._block_size // 4 else self._block_size
        while self._allocated + length > self.max_bytes:
            unused = min(blocks, key=lambda block: block.used, default=None)
            if unused is None or unused.used >= self.search - 1 or length > self.max_bytes:
                return None
            self._remove(unused)
        try:
            block = Block(length)
        except MemoryError:
            return None
        self._allocated += length
        # The last block is tried first: a block that one text fills goes to the front.
        blocks.insert(0 if needed == length else len(blocks), block)
        return block

    def add(self, owner: TextOwner, block: Block, size: int) -> None:
        """Keep a text that was written at the end of a block."""
        owner.block, owner.index = block, len(block.owners)
        block.starts.append(block.end)
        block.owners.append(owner)
        block.end += size + 1
        block.data[block.end - 1] = 0
        block.used = self.search

    def compact(self) -> None:
        """Give back the memory of dropped texts."""
        for block in self._blocks[:]:
            if block in self._blocks and (not block.end or block.dead * _DEAD_SHARE > block.end):
                kept = [(owner, owner.content, owner.text) for owner in block.owners if owner]
                self._remove(block)
                for owner, content, text in kept:
                    target = self.reserve(len(text))
                    if target is not None:
                        target.data[target.end : target.end + len(text)] = text
                        self.add(owner, target, len(text))
                        owner.content = content

    def mark_used(self, owners: Iterable[object]) -> None:
        """Mark the texts of some owners as used by this search, unless memory is plentiful."""
        if self._allocated < self.max_bytes - 2 * self._block_size:
            return
        for block in {getattr(owner, "block", None) for owner in owners}:
            if block is not None:
                block.used = self.search

    def containing(self, search: Search) -> set[Any]:
        """Return the owners of texts in which `search` finds something."""
        owners: set[Any] = set()
        for block in self._blocks:
            owners.update(block.owners[index] for index in search(block.data, block.starts, block.end))
        owners.discard(None)
        return owners

    def _remove(self, block: Block) -> None:
        """Drop a block with its texts."""
        for owner in block.owners:
            if owner is not None:
                owner.block, owner.content = None, ""
        self._blocks.remove(block)
        self._allocated -= len(block.data)
