import os
from pathlib import Path

import pytest

from agentfs.fs import Root, lock
from agentfs.policy import Policy
from tests.kit import put

SECRET = b"the secret outside"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A root beside an outside directory that holds a secret."""
    top = tmp_path / "root"
    put(top, {"f": b"f\n", "a/t": b"a/t\n", "a/b/t": b"a/b/t\n"})
    put(tmp_path, {"out/s": SECRET, "rootevil/f": SECRET})
    return top


@pytest.fixture
def root(tree):
    """A root on `tree`."""
    before = open_descriptors()
    with Root(tree, Policy()) as opened:
        yield opened
    assert open_descriptors() <= before, "a descriptor was left open"


@pytest.fixture
def patient(monkeypatch):
    """Wait for locks without limit, because many writers on a slow machine take long."""
    monkeypatch.setattr(lock, "WAIT", 600.0)


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
