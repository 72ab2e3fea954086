"""The ways into the tree, and how a test makes one of them the one that is used."""

import pytest

from agentfs.fs import by_path, openat2
from agentfs.fs import root as root_module


def force(monkeypatch: pytest.MonkeyPatch, mechanism: str) -> None:
    """Open by one mechanism from here on."""
    if mechanism == "walk":
        monkeypatch.setattr(openat2, "open_beneath", lambda *_: -1)
    elif mechanism == "by_path":
        monkeypatch.setattr(root_module, "BACKEND", by_path)
