"""Where a journal keeps the contents of files: in memory, and in a temporary file."""

import zlib
from collections import OrderedDict
from dataclasses import replace
from threading import Lock
from weakref import WeakValueDictionary, ref

from agentfs.fs import Change, FileNode, Node, Spool
from agentfs.history.timeline import Step, Timeline

_MEMORY = 8 * 1024 * 1024
UNCOMPRESSED = 512  # bytes; compressing less is not worth it
_MAX_IN_MEMORY = 2_000  # contents, however small


class Content:
    """One content that is kept for as long as this object is referenced; calling it returns the bytes."""

    __slots__ = ("__weakref__", "_store", "data", "digest", "location")

    def __init__(self, store: "MemoryStore", digest: str) -> None:
        self._store = store
        self.digest = digest
        self.data: bytes | None = None  # in memory; for a persistent store packed, until it is written
        self.location: tuple[int, int] = (0, 0)  # offset and size in the spool

    def __call__(self) -> bytes:
        """Return the bytes."""
        return self._store.read(self)


class MemoryStore:
    """Keeps the contents of a journal: the latest in memory, the others in a temporary file. Thread-safe.

    The other methods are for a store that persists; here they do nothing. What is begun is finished before
    anything else is begun, under the lock of the journal.
    """

    def __init__(self, memory: int = _MEMORY) -> None:
        self._adding, self._lock = Lock(), Lock()
        self._memory = memory
        self._contents: WeakValueDictionary[str, Content] = WeakValueDictionary()
        # Those in memory with their sizes, the latest used last; one that is not referenced goes in its turn.
        self._loaded: OrderedDict[str, tuple[ref[Content], int]] = OrderedDict()
        self._loaded_bytes = 0
        self._spool = Spool()

    @property
    def bytes_in_memory(self) -> int:
        """Bytes of the contents in memory."""
        with self._lock:
            loaded = [content() for content, _ in self._loaded.values()]
        return sum(len(content.data or b"") for content in loaded if content is not None)

    @property
    def bytes_on_disk(self) -> int:
        """Bytes of the temporary file."""
        return self._spool.size

    def keep(self, change: Change) -> Change:
        """Keep the contents of a change, and return the change with its contents loaded from here."""
        return Change(change.path, self._keep_node(change.before), self._keep_node(change.after))

    def read(self, content: Content) -> bytes:
        """Return the bytes of a content."""
        with self._lock:
            data = content.data
            if data is not None:
                if content.digest in self._loaded:
                    self._loaded.move_to_end(content.digest)
                return data
        return zlib.decompress(self._spool.read(*content.location))

    def begin_step(self, step: Step) -> None:
        """Write down a step that is about to be made; raises FileIOError where that fails."""

    def begin_move(self, start: int, end: int) -> None:
        """Write down that steps are about to be undone or redone; raises as `begin_step`."""

    def finish_step(self, made: Step | None, position: int, *, whole: bool | None) -> None:
        """Write down what was made of a step, and the position before it; never fails."""

    def finish_move(self, position: int, *, whole: bool | None) -> None:
        """Write down the position after steps were undone or redone, or were not; never fails."""

    def set_checkpoint(self, name: str, position: int) -> None:
        """Write down a checkpoint; raises as `begin_step`."""

    def merge(self, timeline: Timeline) -> None:
        """Write down that steps were merged into the base; never fails."""

    def flush(self) -> None:
        """Write down what is left of a change that was finished; never fails."""

    def close(self) -> None:
        """Drop everything."""
        with self._lock:
            for content in list(self._contents.values()):
                content.data = None
            self._contents.clear()
            self._loaded.clear()
            self._loaded_bytes = 0
        self._spool.close()

    def _keep_node(self, node: Node | None) -> Node | None:
        if not isinstance(node, FileNode):
            return node
        with self._adding:
            content = self._contents.get(node.digest)
            if content is None:
                content = Content(self, node.digest)
                self._add(content, node.load())
                self._contents[node.digest] = content
        return replace(node, load=content)

    def _add(self, content: Content, data: bytes) -> None:
        with self._lock:
            content.data = data
            self._unload(content.digest)
            self._loaded[content.digest] = (ref(content), len(data))
            self._loaded_bytes += len(data)
            try:
                while self._loaded_bytes > self._memory or len(self._loaded) > _MAX_IN_MEMORY:
                    self._spill(next(iter(self._loaded)))
            except BaseException:
                self._unload(content.digest)
                raise

    def _spill(self, digest: str) -> None:
        content = self._loaded[digest][0]()
        if content is not None and content.data is not None:
            compressed = zlib.compress(content.data, 1 if len(content.data) > UNCOMPRESSED else 0)
            content.location = (self._spool.append(compressed), len(compressed))
            content.data = None
        self._unload(digest)

    def _unload(self, digest: str) -> None:
        _, size = self._loaded.pop(digest, (None, 0))
        self._loaded_bytes -= size
