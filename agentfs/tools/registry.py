"""Where a workspace finds dialects: `agentfs` sets it, as dialects are in a layer above workspaces."""

from collections.abc import Callable
from typing import Any

_finders: list[Callable[[str], Any]] = []


def set_finder(find: Callable[[str], Any]) -> None:
    """Look dialects up with a function that takes their name."""
    _finders[:] = [find]


def find_dialect(name: str) -> Any:
    """Return the dialect of a name; raise `invalid_argument` if there is none."""
    return _finders[0](name)
