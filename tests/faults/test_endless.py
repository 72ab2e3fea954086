"""Endless and sparse files: every method stops in bounded memory, measured in its own process."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agentfs import Limits, Workspace
from tests.kit import code_of

MOST = 64  # MiB above the start
MEASURED = """
import contextlib, os, resource, sys, tempfile
from agentfs import AgentFSError, Edit, Limits, LineChange, Policy, Workspace
from tests import kit
ws = Workspace(sys.argv[1], policy=Policy(overwrite="always"), limits=Limits(timeout=0.5))
def calls_of(ws, path):
    return {
        "read": lambda: ws.read(path),
        "read the end": lambda: ws.read(path, -5),
        "read raw": lambda: ws.read(path, raw=True),
        "read as": lambda: ws.read(path, encoding="latin-1"),
        "read along": lambda: ws.read(path, column=10**12),
        "edit": lambda: ws.edit(path, "hole", "x"),
        "multi_edit": lambda: ws.multi_edit(path, [Edit("hole", "x")]),
        "edit_lines": lambda: ws.edit_lines(path, [LineChange(line_id="abcdef", new_content="x")]),
        "splice": lambda: kit.splice(ws, path, [(0, 1, "x")]),
        "write": lambda: ws.write(path, "x", preview=True),
        "grep": lambda: ws.grep("hole", path),
        "grep large": lambda: kit.grep(ws, "hole", path, max_filesize=32 << 20),
        "grep all": lambda: ws.grep("hole", "."),
        "ls": lambda: ws.ls(),
        "append": lambda: ws.append(path, "x"),
        "delete": lambda: ws.delete(path),
        "move": lambda: ws.move(path, path + "2"),
    }
with tempfile.TemporaryDirectory() as top, Workspace(top) as other:
    other.write("small", "hole\\n")
    for call in calls_of(other, "small").values():  # load the modules once, not in each child
        with contextlib.suppress(AgentFSError):
            call()
for name, call in calls_of(ws, sys.argv[2]).items():
    # A new child starts with the present memory, not with an earlier peak.
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        continue
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        said = call()
        said = getattr(said, "failed", None) or "ok"
    except AgentFSError as error:
        said = error.code
    used = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1 if sys.platform == "darwin" else 1024
    print(name, said, (used.ru_maxrss - before) * unit >> 20, sep="|", flush=True)
    os._exit(0)
"""


def measured(top: Path | str, path: str) -> dict[str, tuple[str, int]]:
    """Return the outcome of each method and the MiB that it took, from a new process."""
    command = [sys.executable, "-c", MEASURED, str(top), path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = [line.split("|") for line in done.stdout.splitlines()]
    return {name: (said, int(taken)) for name, said, taken in rows}


def too_much(took: dict[str, tuple[str, int]]) -> dict[str, int]:
    return {call: mib for call, (_, mib) in took.items() if mib >= MOST}


def sparse(path: Path, head: bytes, size: int) -> None:
    with open(path, "wb") as file:
        file.write(head)
        try:
            file.truncate(size)
        except OSError:
            pytest.skip("this file system has no such files")


@pytest.mark.full
@pytest.mark.parametrize("head", [
    b"", b"a line of text\n" * 5000, pytest.param(b"a" * (3 << 20), marks=pytest.mark.long),
], ids=["hole", "text", "line"])  # fmt: skip
def test_endless_and_sparse_files_take_little_memory(tmp_path, head):
    sparse(tmp_path / "big", head, 100 << 30)
    took = measured(tmp_path, "big")
    assert len(took) == 17
    assert too_much(took) == {}
    said = {name: what for name, (what, _) in took.items()}
    for name in ("edit", "multi_edit", "edit_lines", "splice", "write", "append"):
        assert said[name] == "too_large", took
    assert said["read"] == said["ls"] == said["grep"] == "ok", took


@pytest.mark.full
def test_a_page_of_an_endless_file_says_so(tmp_path):
    sparse(tmp_path / "big", b"a line of text\n" * 5000, 100 << 30)
    with Workspace(tmp_path, limits=Limits(timeout=0.5)) as ws:
        page = ws.read("big")
        assert (page.total_lines, page.total_exact, page.total_bytes) == (5000, False, 100 << 30)
        assert "of at least 5000" in page.text
        assert "counting lines stopped after" in page.text
        assert ws.read("big", 4990).end_line == 5000
        for offset in (-1, 5001):
            assert code_of(ws.read, "big", offset) == "timeout"


@pytest.mark.full
@pytest.mark.skipif(not os.path.exists("/proc/self/pagemap"), reason="needs procfs")
@pytest.mark.parametrize("name", ["pagemap", "maps", "kcore"])
def test_files_of_procfs_take_little_memory(name):
    if name == "kcore" and not os.access("/proc/kcore", os.R_OK):
        pytest.skip("only root may try")
    assert too_much(measured("/proc" if name == "kcore" else "/proc/self", name)) == {}


@pytest.mark.full
def test_a_file_that_grows_as_fast_as_it_is_read_ends(tmp_path):
    done = threading.Event()
    block = b"grown line\n" * 100_000
    file = open(tmp_path / "log", "ab", buffering=0)  # noqa: SIM115 - `grow` closes it
    file.writelines(block for _ in range(120))

    def grow() -> None:
        with file:
            while not done.wait(0.01) and file.tell() < 1 << 30:  # do not fill the disk
                file.write(block)

    grower = threading.Thread(target=grow)
    grower.start()
    try:
        took = measured(tmp_path, "log")
    finally:
        done.set()
        grower.join()
    assert too_much(took) == {}
    assert took["read"][0] == took["grep all"][0] == "ok"
