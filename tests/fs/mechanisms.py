"""Helpers that select the mechanism by which a root opens files."""

from collections.abc import Callable
from typing import Any

import pytest

from agentfs.fs import Changed, Current, Root, syscalls


def force(monkeypatch: pytest.MonkeyPatch, mechanism: str) -> None:
    """Use one mechanism from now on."""
    if mechanism == "walk":
        monkeypatch.setattr(syscalls, "open_beneath", lambda *_, **__: -1)


def replace_calls(monkeypatch: pytest.MonkeyPatch, **functions: Callable[..., Any]) -> None:
    """Replace functions of `syscalls`."""
    for name, function in functions.items():
        monkeypatch.setattr(syscalls, name, function)


def change(
    root: Root, path: str, compute: Callable[[Current], bytes], *, max_bytes: int, preview: bool = False
) -> Changed:
    """Replace a file by the bytes that `compute` returns for it."""
    made = root.update(path, lambda current: (compute(current), None), max_bytes=max_bytes, preview=preview)
    return made[0]
