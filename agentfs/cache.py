"""What is worth keeping of files for as long as they stay as they are."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")
Key = tuple[str, str | None]


class FileCache(Generic[T]):
    """One thing for each of the files used last, bound to a version. Thread-safe and bounded."""

    def __init__(self, most: int = 16) -> None:
        """Remember nothing yet.

        Args:
            most: How many files are remembered.
        """
        self._most = most
        self._lock = Lock()
        self._kept: OrderedDict[Key, tuple[str, T]] = OrderedDict()

    def get(self, key: Key, revision: str, make: Callable[[], T]) -> T:
        """Return what is kept of a version of a file, and make it if it is not at hand.

        Args:
            key: The file, and in what way it was looked at.
            revision: The version.
            make: Makes it; not called under a lock, so that one large file does not hold up the others.

        Returns:
            What was made, now or earlier.
        """
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and kept[0] == revision:
                self._kept.move_to_end(key)
                return kept[1]
        made = make()
        with self._lock:
            self._kept[key] = revision, made
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made

    def drop(self, key: Key) -> None:
        """Forget a file, as when it changed while it was read."""
        with self._lock:
            self._kept.pop(key, None)
