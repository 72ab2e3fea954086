"""The ways into the tree, and how a test makes one of them the one that is used."""

from collections.abc import Callable
from typing import Any

import pytest

from agentfs.fs import openat2, syscalls


def force(monkeypatch: pytest.MonkeyPatch, mechanism: str) -> None:
    """Open by one mechanism from here on."""
    if mechanism == "walk":
        monkeypatch.setattr(openat2, "open_beneath", lambda *_: -1)


def replace_calls(monkeypatch: pytest.MonkeyPatch, **functions: Callable[..., Any]) -> None:
    """Put other functions in the place of some of `syscalls`."""
    for name, function in functions.items():
        monkeypatch.setattr(syscalls, name, function)
