"""The path to show of an entry that a search finds by several paths."""

from typing import Any, Generic, TypeVar

_F = TypeVar("_F", bound="tuple[Any, ...]")


class FirstPaths(Generic[_F]):
    """Picks the own path of each entry, or else the first path by which links lead to it.

    What is found is given as a tuple that begins with the order of its path.
    """

    def __init__(self) -> None:
        self._own: set[str] = set()
        self._linked: dict[str, _F] = {}  # by real path

    def __len__(self) -> int:
        return len(self._own) + len(self._linked)

    def add(self, real_path: str, path: str, found: _F) -> bool:
        """Return True if this is the own path of an entry, for the first time."""
        if real_path != path:
            self._linked[real_path] = min(self._linked.get(real_path, found), found)
            return False
        is_new = path not in self._own
        self._own.add(path)
        return is_new

    def only_linked(self) -> list[_F]:
        """Return the entries that only links have led to."""
        return [found for real_path, found in self._linked.items() if real_path not in self._own]
