"""Helpers that replace system calls, and change a file."""

from collections.abc import Callable
from typing import Any

import pytest

from agentfs import AgentFSError
from agentfs.fs import Changed, Current, Root, syscalls


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


def code_of(call: Callable[..., Any], *arguments: Any) -> str:
    """Return the code of the error of a call, or "ok"; close what it opens."""
    try:
        opened = call(*arguments)
    except AgentFSError as error:
        str(error).encode()
        return error.code
    if hasattr(opened, "close"):
        opened.close()
    return "ok"
