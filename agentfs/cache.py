"""A bounded cache, and the full texts that a workspace keeps under names. Thread-safe."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

from agentfs.forks import watch_forks

MAX_OUTPUTS = 64
MAX_CHARS = 16 * 1024 * 1024
NO_LINE_IDS = "no line ids: this is no file, and cannot be edited"  # the note for an output

K = TypeVar("K")
V = TypeVar("V")


class LRUCache(Generic[K, V]):
    """A dictionary that drops what was added or used longest ago beyond a number, or a total size."""

    def __init__(
        self, max_entries: int, size_of: Callable[[V], int] = lambda _: 0, max_size: int = 0
    ) -> None:
        self._max_entries, self._max_size, self._size_of = max_entries, max_size, size_of
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._size = 0

    def get(self, key: K) -> V | None:
        """Return a value."""
        return self._entries.get(key)

    def add(self, key: K, value: V) -> None:
        """Add or replace a value, which counts as used; the last one added stays whatever its size."""
        self.drop(key)
        self._entries[key] = value
        self._size += self._size_of(value)
        while len(self._entries) > 1 and (
            len(self._entries) > self._max_entries or self._size > self._max_size
        ):
            self.drop(next(iter(self._entries)))

    def drop(self, key: K) -> None:
        """Remove a value, if there is one."""
        value = self._entries.pop(key, None)
        if value is not None:
            self._size -= self._size_of(value)


class Output(NamedTuple):
    """What a name is for: a text, or the file at a path."""

    text: str
    path: str = ""


class OutputStore:
    """Texts and files under names such as `@out_1f3a`, which `read` and `grep` take for paths."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._outputs: LRUCache[str, Output] = LRUCache(
            MAX_OUTPUTS, lambda output: len(output.text), MAX_CHARS
        )
        watch_forks(self)

    def after_fork(self) -> None:
        """Replace the lock, which a thread of the parent may hold."""
        self._lock = Lock()

    def keep(self, output: Output, kind: str = "out") -> str:
        """Return a new name for an output, or the one that it has; `kind` is what the name begins with."""
        from hashlib import blake2b  # noqa: PLC0415 - it loads OpenSSL, which an import of agentfs should not

        digest = blake2b(f"{output.path}\0{output.text}".encode("utf-8", "surrogatepass")).hexdigest()
        with self._lock:
            size = 4
            while self._outputs.get(name := f"@{kind}_{digest[:size]}") not in (None, output):
                size += 1
            self._outputs.add(name, output)
            return name

    def get(self, name: str) -> Output | None:
        """Return what a name is for; None where nothing is, or is no longer."""
        with self._lock:
            return self._outputs.get(name)
