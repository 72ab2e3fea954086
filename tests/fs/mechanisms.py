"""The ways into the tree, and how a test makes one of them the one that is used."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from agentfs.fs import ATTEMPTS, Changed, ConcurrentChange, Current, Root, kept_changing, syscalls


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
    for _ in range(ATTEMPTS):
        with suppress(ConcurrentChange), root.open_for_update(path, max_bytes=max_bytes) as update:
            return update.replace(compute(update.current), preview=preview)
    raise kept_changing(path)
