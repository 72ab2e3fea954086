"""Bounded caches of a workspace: data derived from files, and full texts under names. Thread-safe."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

from agentfs.forks import watch_forks
from agentfs.messages import Joined, Message, call
from agentfs.policy import Policy
from agentfs.results import ReadResult, Result

MAX_FILES = 16
MAX_OUTPUTS = 64
MAX_CHARS = 16 * 1024 * 1024
NO_LINE_IDS = "no line ids: this is no file, and cannot be edited"  # the note for an output

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R", bound=Result)


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


class FileCache(Generic[V]):
    """A value for each of the files used last, made anew when the revision of the file changes."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: LRUCache[tuple[str, str | None], tuple[str, V]] = LRUCache(MAX_FILES)
        watch_forks(self)

    def after_fork(self) -> None:
        """Replace the lock, which a thread of the parent may hold."""
        self._lock = Lock()

    def get(self, key: tuple[str, str | None], revision: str, make: Callable[[], V]) -> V:
        """Return the value for a path and an encoding; `make` is not called under the lock."""
        with self._lock:
            found = self._values.get(key)
        if found is None or found[0] != revision:
            found = revision, make()
        with self._lock:
            self._values.add(key, found)
        return found[1]

    def drop(self, key: tuple[str, str | None]) -> None:
        """Forget a file, as when it changed while it was read."""
        with self._lock:
            self._values.drop(key)


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

    def keep(self, kept: Result | str, kind: str = "out") -> str:
        """Return a new name for a text or a result, or the one that it has.

        The name of a page of a file refers to the file. `kind` is what the name begins with.
        """
        if isinstance(kept, ReadResult) and self.get(kept.path) is None:
            output = Output("", kept.path)
        else:
            output = Output(kept if isinstance(kept, str) else kept.whole or kept.text)
        digest = blake2b(f"{output.path}\0{output.text}".encode("utf-8", "surrogatepass")).hexdigest()
        with self._lock:
            size = 4
            while self._outputs.get(name := f"@{kind}_{digest[:size]}") not in (None, output):
                size += 1
            self._outputs.add(name, output)
            return name

    def keep_full_text(self, result: R, policy: Policy) -> R:
        """Keep the full text of a result that was cut if the policy says so; its text then has the name."""
        if result.whole is None or policy.overflow != "keep":
            return result
        whole = Message("[whole: ", call("read", path=self.keep(result)), "]")
        return replace(result, text=Joined("\n", result.text, whole))

    def get(self, name: str) -> Output | None:
        """Return what a name is for; None where nothing is, or is no longer."""
        with self._lock:
            return self._outputs.get(name)
