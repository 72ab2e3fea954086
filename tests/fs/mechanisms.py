"""The ways into the tree, and how a test makes one of them the one that is used."""

from collections.abc import Callable
from typing import Any

import pytest

from agentfs.fs import Changed, Current, Root, syscalls


def force(monkeypatch: pytest.MonkeyPatch, mechanism: str) -> None:
    """Open by one mechanism from here on."""
    if mechanism == "walk":
        monkeypatch.setattr(syscalls, "open_beneath", lambda *_, **__: -1)


def replace_calls(monkeypatch: pytest.MonkeyPatch, **functions: Callable[..., Any]) -> None:
    """Put other functions in the place of some of `syscalls`."""
    for name, function in functions.items():
        monkeypatch.setattr(syscalls, name, function)


def change(
    root: Root, path: str, compute: Callable[[Current], bytes], *, max_bytes: int, preview: bool = False
) -> Changed:
    """Replace a file by what `compute` returns for it, again after a concurrent change, as an edit does."""
    made = root.update(path, lambda current: (compute(current), None), max_bytes=max_bytes, preview=preview)
    return made[0]
