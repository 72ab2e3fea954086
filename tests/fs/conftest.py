import os
from pathlib import Path

import pytest

from agentfs.fs import Root, lock
from agentfs.policy import Policy
from tests.fs.mechanisms import force

SECRET = b"the secret outside"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A root beside an outside directory that holds a secret."""
    top = tmp_path / "root"
    (top / "a" / "b").mkdir(parents=True)
    (top / "f").write_bytes(b"f\n")
    (top / "a" / "t").write_bytes(b"a/t\n")
    (top / "a" / "b" / "t").write_bytes(b"a/b/t\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "s").write_bytes(SECRET)
    (tmp_path / "rootevil").mkdir()
    (tmp_path / "rootevil" / "f").write_bytes(SECRET)
    return top


@pytest.fixture(params=["openat2", "walk"])
def root(request, tree, monkeypatch):
    """A root on `tree`, by each mechanism."""
    force(monkeypatch, request.param)
    before = open_descriptors()
    with Root(tree, Policy()) as default_root:
        yield default_root
    assert open_descriptors() <= before, "a descriptor was left open"


@pytest.fixture
def default_root(tree):
    """A root on `tree` with the default mechanism."""
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
