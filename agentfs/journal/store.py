"""Contents by their hash: the latest in memory, the others in a file that has no name."""

import zlib
from collections import OrderedDict
from dataclasses import replace
from threading import Lock
from weakref import WeakValueDictionary, ref

from agentfs.fs import Change, FileNode, Node, Spool

MEMORY = 8 * 1024 * 1024
_SMALL = 512
_MOST_HELD = 2_000  # contents in memory, however small


class Content:
    """One content that is kept, for as long as anybody holds this; called, it returns the bytes.

    Args:
        store: Where it is kept.
        digest: Its hash.

    Attributes:
        digest: Its hash.
        data: The bytes, where they are in memory.
        place: Where they begin in a file, and how many there are, where they are in one.
    """

    __slots__ = ("__weakref__", "_store", "data", "digest", "place")

    def __init__(self, store: "Store", digest: str) -> None:
        self._store = store
        self.digest = digest
        self.data: bytes | None = None
        self.place: tuple[int, int] = (0, 0)

    def __call__(self) -> bytes:
        """Return the bytes."""
        return self._store.read(self)


class Store:
    """Keeps the contents that a journal needs. Thread-safe.

    Args:
        memory: Bytes to hold in memory; what is more goes to the disk.
    """

    def __init__(self, memory: int = MEMORY) -> None:
        self._adding, self._lock = Lock(), Lock()
        self._memory = memory
        self._contents: WeakValueDictionary[str, Content] = WeakValueDictionary()
        # Those in memory, the latest used last, with what each takes; one that nobody holds goes in its turn.
        self._held: OrderedDict[str, tuple[ref[Content], int]] = OrderedDict()
        self._held_bytes = 0
        self._spool = Spool()

    @property
    def bytes_in_memory(self) -> int:
        """Bytes of the contents held in memory."""
        with self._lock:
            held = [content() for content, _ in self._held.values()]
        return sum(len(content.data or b"") for content in held if content is not None)

    @property
    def bytes_on_disk(self) -> int:
        """Bytes of the file."""
        return self._spool.size

    def keep(self, change: Change) -> Change:
        """Keep the contents of a change.

        Args:
            change: A change whose contents may be in memory.

        Returns:
            The same change; its contents are loaded from here.

        Raises:
            FileIOError: io: the disk is full, or fails.
        """
        return Change(change.path, self._kept(change.before), self._kept(change.after))

    def content(self, digest: str) -> Content:
        """Return what loads a content, which is kept already or will be.

        Args:
            digest: Its hash.
        """
        with self._adding:
            content = self._contents.get(digest)
            if content is None:
                content = self._contents[digest] = Content(self, digest)
            return content

    def read(self, content: Content) -> bytes:
        """Return the bytes of a content."""
        with self._lock:
            data = content.data
            if data is not None:
                if content.digest in self._held:
                    self._held.move_to_end(content.digest)
                return data
        return zlib.decompress(self._spool.read(*content.place))

    def close(self) -> None:
        """Drop all."""
        with self._lock:
            for content in list(self._contents.values()):
                content.data = None
            self._contents.clear()
            self._held.clear()
            self._held_bytes = 0
        self._spool.close()

    def _kept(self, state: Node | None) -> Node | None:
        if not isinstance(state, FileNode):
            return state
        with self._adding:
            content = self._contents.get(state.digest)
            if content is None:
                content = Content(self, state.digest)
                self._put(content, state.load())
                self._contents[state.digest] = content
        return replace(state, load=content)

    def _put(self, content: Content, data: bytes) -> None:
        """Keep a content that is new."""
        with self._lock:
            content.data = data
            self._drop(content.digest)
            self._held[content.digest] = (ref(content), len(data))
            self._held_bytes += len(data)
            try:
                while self._held_bytes > self._memory or len(self._held) > _MOST_HELD:
                    self._spill(next(iter(self._held)))
            except BaseException:
                self._drop(content.digest)
                raise

    def _spill(self, digest: str) -> None:
        content = self._held[digest][0]()
        if content is not None and content.data is not None:
            packed = zlib.compress(content.data, 1 if len(content.data) > _SMALL else 0)
            content.place = (self._spool.append(packed), len(packed))
            content.data = None
        self._drop(digest)

    def _drop(self, digest: str) -> None:
        _, size = self._held.pop(digest, (None, 0))
        self._held_bytes -= size
