"""Bounded caches of a workspace: data derived from files, and full texts under names. Thread-safe."""

from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

from agentfs.forks import watch_forks

MAX_FILES = 16
MAX_OUTPUTS = 64
MAX_CHARS = 16 * 1024 * 1024
NO_LINE_IDS = "no line ids: this is no file, and cannot be edited"  # the note for an output

V = TypeVar("V")


class FileCache(Generic[V]):
    """A value for each of the files used last, made anew when the revision of the file changes."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values = OrderedDict[tuple[str, str | None], tuple[str, V]]()
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
            self._values[key] = found
            self._values.move_to_end(key)
            while len(self._values) > MAX_FILES:
                self._values.popitem(last=False)
        return found[1]

    def drop(self, key: tuple[str, str | None]) -> None:
        """Forget a file, as when it changed while it was read."""
        with self._lock:
            self._values.pop(key, None)


class Output(NamedTuple):
    """What a name is for: a text, or the file at a path."""

    text: str
    path: str = ""


class OutputStore:
    """Texts and files under names such as `@out_1f3a`, which `read` and `grep` take for paths."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._outputs = OrderedDict[str, Output]()
        watch_forks(self)

    def after_fork(self) -> None:
        """Replace the lock, which a thread of the parent may hold."""
        self._lock = Lock()

    def keep(self, output: Output, kind: str = "out") -> str:
        """Return a new name for an output, or the one that it has; `kind` is what the name begins with."""
        digest = blake2b(f"{output.path}\0{output.text}".encode("utf-8", "surrogatepass")).hexdigest()
        with self._lock:
            size = 4
            while self._outputs.get(name := f"@{kind}_{digest[:size]}") not in (None, output):
                size += 1
            self._outputs[name] = output
            self._outputs.move_to_end(name)
            while len(self._outputs) > 1 and (
                len(self._outputs) > MAX_OUTPUTS
                or sum(len(each.text) for each in self._outputs.values()) > MAX_CHARS
            ):
                self._outputs.popitem(last=False)
            return name

    def get(self, name: str) -> Output | None:
        """Return what a name is for; None if it is for nothing, or no longer."""
        with self._lock:
            return self._outputs.get(name)
