"""File texts in a few large blocks of memory, so that one pass finds all texts that contain a literal."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Protocol

_BLOCK_SIZE = 16 * 1024 * 1024
_LEAST_BLOCKS = 16  # blocks that a store has room for, at least
_DEAD_SHARE = 8  # a block is copied when more than an eighth of it is dropped texts

_previous_use = attrgetter("previous_use")

# Returns indices of texts, given the memory of a block, the starts of its texts, the end of the last one, and
# their kinds ("" for dropped texts).
Search = Callable[[bytearray, Sequence[int], int, Sequence[str]], Iterable[int]]


class TextOwner(Protocol):
    """A file whose text may be in a block."""

    block: "Block | None"
    index: int  # position in the block
    content: str  # the kind of content, set by the reader; "" when the text is dropped
    last_use: int  # the number of the last search that needed the text
    previous_use: int  # the number of the search before that one that needed it

    @property
    def text(self) -> memoryview:
        """The kept text."""
        ...


class Block:
    """Texts one after the other, each followed by a NUL."""

    __slots__ = ("data", "dead", "end", "owners", "previous_use", "starts")

    def __init__(self, size: int) -> None:
        self.data = bytearray(size)
        self.end = 0
        self.dead = 0  # bytes of texts that were dropped
        self.starts = array("q")
        self.owners: list[TextOwner | None] = []
        self.previous_use = 0  # the highest `previous_use` of its texts

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
        self.full_for = -1  # no room for a text whose use before the last one was in this search or earlier

    def begin_search(self) -> None:
        """Begin a search."""
        self.search += 1
        self.full_for = -1

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
            self._remove(min(self._blocks, key=_previous_use))

    def reserve(self, size: int, previous_use: int) -> Block | None:
        """Return a block with room for a text and one more byte, or None.

        Blocks make room if all their texts have an earlier last use but one than this text. The last use does
        not count, so that a search of more texts than fit does not drop texts that it needs later.
        """
        needed = size + 1
        blocks = self._blocks
        for block in reversed(blocks):
            if len(block.data) - block.end >= needed:
                return block
        length = needed if needed > self._block_size // 4 else self._block_size
        while self._allocated + length > self.max_bytes:
            least_used = min(blocks, key=_previous_use, default=None)
            if least_used is None or least_used.previous_use >= previous_use or length > self.max_bytes:
                if length == self._block_size:
                    self.full_for = previous_use
                return None
            self._remove(least_used)
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
        block.previous_use = max(block.previous_use, owner.previous_use)

    def compact(self) -> None:
        """Give back the memory of dropped texts."""
        for block in self._blocks[:]:
            if block in self._blocks and (not block.end or block.dead * _DEAD_SHARE > block.end):
                kept = [(owner, owner.content, owner.text) for owner in block.owners if owner]
                self._remove(block)
                for owner, content, text in kept:
                    target = self.reserve(len(text), owner.previous_use)
                    if target is not None:
                        target.data[target.end : target.end + len(text)] = text
                        self.add(owner, target, len(text))
                        owner.content = content

    @property
    def is_scarce(self) -> bool:
        """True if few more texts can be kept."""
        return self._allocated > self.max_bytes - 2 * self._block_size

    def mark_used(self, owner: TextOwner) -> None:
        """Note that this search needed a text."""
        if owner.last_use != self.search:
            owner.previous_use, owner.last_use = owner.last_use, self.search
            if owner.block is not None:
                owner.block.previous_use = max(owner.block.previous_use, owner.previous_use)

    def containing(self, search: Search) -> set[Any]:
        """Return the owners of texts in which `search` finds something."""
        owners: set[Any] = set()
        for block in self._blocks:
            kinds = [owner.content if owner else "" for owner in block.owners]
            owners.update(block.owners[at] for at in search(block.data, block.starts, block.end, kinds))
        owners.discard(None)
        return owners

    def _remove(self, block: Block) -> None:
        """Drop a block with its texts."""
        for owner in block.owners:
            if owner is not None:
                owner.block, owner.content = None, ""
        self._blocks.remove(block)
        self.full_for = -1
        self._allocated -= len(block.data)
