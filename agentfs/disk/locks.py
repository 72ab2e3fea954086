"""One writer at a time for each file, within this process."""

import threading
from types import TracebackType
from typing import Self

from agentfs.disk.paths import quote, show_name
from agentfs.errors import BusyError

WAIT = 5.0


class _Held:
    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0


_guard = threading.Lock()
_held: dict[str, _Held] = {}


class FileLock:
    """The lock of one file, shared by all workspaces of this process. A context manager.

    Args:
        key: The absolute real path of the file.
        path: The path to speak of.
        wait: Seconds to wait for another writer; `WAIT` when not given.
    """

    __slots__ = ("_key", "_path", "_wait")

    def __init__(self, key: str, path: str, wait: float | None = None) -> None:
        self._key = key
        self._path = path
        self._wait = WAIT if wait is None else wait

    def __enter__(self) -> Self:
        with _guard:
            held = _held.setdefault(self._key, _Held())
            held.users += 1
        if not held.lock.acquire(timeout=self._wait):
            self._leave(held)
            raise BusyError(
                f"Another call has been changing {quote(self._path)} for {self._wait:g} seconds.",
                hint="Try the same call again.",
                details={"path": show_name(self._path)},
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        held = _held[self._key]
        held.lock.release()
        self._leave(held)

    def _leave(self, held: _Held) -> None:
        with _guard:
            held.users -= 1
            if not held.users:
                del _held[self._key]
