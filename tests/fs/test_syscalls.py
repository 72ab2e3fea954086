"""`openat2`: the same answers with and without it, and with a filter that refuses it later."""

import os
import platform
import subprocess
import sys

import pytest

from agentfs.fs import Root, syscalls
from agentfs.policy import Policy
from tests.fs.mechanisms import change

ON_LINUX = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="Linux on x86_64"
)


@pytest.fixture
def calls(monkeypatch):
    seen = []
    real = syscalls.open_beneath

    def counted(handle, path, *, directory=False):
        fd = real(handle, path, directory=directory)
        seen.append((path, fd >= 0))
        return fd

    monkeypatch.setattr(syscalls, "open_beneath", counted)
    return seen


@ON_LINUX
def test_openat2_opens_paths_without_links_and_the_walk_opens_the_others(tree, default_root, calls):
    (tree / "l").symlink_to("a")
    for path in ("a/b/t", "./a//b/t", f"{tree}/a/b/t", "l/t", "a/../f"):
        with default_root.open_file(path) as file:
            assert not os.get_inheritable(file.fd)
    with default_root.open_directory("a/b") as directory:
        assert not os.get_inheritable(directory.handle)
    assert calls == [("a/b/t", True)] * 3 + [("l/t", False), ("a/b", True)]


FILTERED = """
import ctypes, os, struct, sys, tempfile
from agentfs import Workspace
from agentfs.fs import syscalls
with tempfile.TemporaryDirectory() as top, Workspace(top) as ws:
    os.makedirs(top + "/a/b")
    open(top + "/a/b/t", "w").write("inside")
    os.symlink("/etc", top + "/a/out")
    handle = os.open(top, os.O_RDONLY)
    before = ws.read("a/b/t").content, syscalls.open_beneath(handle, "a", directory=True) >= 0
    # A filter that fails openat2 with an errno and allows all other system calls.
    refusal = 0x00050000 | int(sys.argv[1])
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 437), (0x06, 0, 0, refusal), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    program = Program(len(steps), ctypes.addressof(code))
    assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0, os.strerror(ctypes.get_errno())
    after = ws.read("a/b/t").content, syscalls.open_beneath(handle, "a", directory=True) >= 0
    print(before, after, ws.tools().call("read", {"path": "a/out/passwd"}).error["code"])
"""


@ON_LINUX
@pytest.mark.parametrize("number", [1, 38], ids=["EPERM", "ENOSYS"])
def test_a_system_call_filter_may_be_installed_later(number):
    done = subprocess.run(
        [sys.executable, "-c", FILTERED, str(number)], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "('inside', True) ('inside', False) outside_workspace", done.stderr


def test_a_running_call_keeps_the_root_open(tree):
    """After close() in another thread, the descriptor's number must not lead to another directory."""
    root = Root(tree, Policy())
    fd = root.trees.root.handle.fd

    def compute(_):
        root.close()
        os.fstat(fd)
        return b"changed"

    assert change(root, "f", compute, max_bytes=99).after == b"changed"
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(fd)
