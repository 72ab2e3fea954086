"""State that outlives the process: the journal, and which files were read whole."""

import gc
import os
import subprocess
import sys
import threading

import pytest

from agentfs import Policy, Workspace
from agentfs.history.log import net_changes
from agentfs.history.state import read_journal
from tests import kit
from tests.history.judges import reopening, snapshot
from tests.kit import put, refused


@pytest.fixture
def root(tmp_path):
    put(tmp_path, {"root/a.txt": "one\ntwo\nthree\n"})
    return tmp_path / "root"


@pytest.fixture
def reopened(root, tmp_path):
    yield from reopening("state", tmp_path)


def test_it_goes_on_in_another_process(root, tmp_path):
    state = tmp_path / "state"
    name = os.fsdecode(b"caf\xe9")
    (root / name).write_text("x\n")
    (root / name).chmod(0o751)
    (root / "link").symlink_to(name)
    if os.geteuid() == 0:
        os.chown(root / "a.txt", 1234, 2345)
    before, status = snapshot(root), (root / "a.txt").stat()
    code = "import sys; from agentfs import Workspace; ws = Workspace(sys.argv[1], state=sys.argv[2])\n"
    code += "ws.read('a.txt'); ws.write('a.txt', 'x\\n'); ws.delete('caf\\\\xe9'); ws.delete('link')"
    subprocess.run([sys.executable, "-c", code, root, state], check=True)  # it ends without closing anything
    with Workspace(root, state=state) as ws:
        refused(lambda: ws.write("a.txt", "y\n"), "unread")
        ws.read("a.txt")
        ws.forget()
        refused(lambda: ws.write("a.txt", "y\n"), "unread")
        ws.delete("a.txt")
        ws.undo(4)
    assert snapshot(root) == before
    found = (root / "a.txt").stat()
    assert (found.st_uid, found.st_gid) == (status.st_uid, status.st_gid)


def test_no_text_that_was_read_is_on_the_disk(root, reopened, tmp_path):
    ws = reopened()
    (root / "b.txt").write_text('id = "secret of the read history"')
    line_id = ws.read("b.txt", line_ids=True).line_ids[0]
    for _ in range(2):
        assert b"secret of the read history" not in on_disk(tmp_path / "state")
        assert line_id.encode() not in on_disk(tmp_path / "state")
        reopened()


def on_disk(state):
    return b"".join(path.read_bytes() for path in sorted(state.iterdir()))


def test_a_journal_may_be_looked_at_while_it_grows(root, reopened, tmp_path):
    ws = reopened(policy=Policy(overwrite="always"))
    writer = threading.Thread(target=lambda: [ws.write("b", f"{number}\n" * 100) for number in range(40)])
    writer.start()
    seen = []
    while writer.is_alive() or not seen:
        journal = read_journal(tmp_path / "state")
        seen.append(len(journal.log.after(0)))
        for change in net_changes(journal.log.after(0)):
            if change.path == "b":
                data = change.after.load()
                assert data == data[: data.index(b"\n") + 1] * 100
        journal.close()
    writer.join()
    assert seen == sorted(seen)
    assert len(read_journal(tmp_path / "state").log.after(0)) == 40


@pytest.mark.parametrize("kept", [False, True])
def test_one_that_is_dropped_without_being_closed_holds_nothing(root, tmp_path, kept):
    def use():
        ws = Workspace(root, state=tmp_path / "state" if kept else None)
        ws.edit("a.txt", "one", "1")
        ws.undo()
        ws.read("a.txt")
        ws.ls()
        ws.glob("*")
        kit.find(ws, types="f")
        ws.grep("one")
        ws.grep("nothing")

    use()
    gc.collect()
    gc.disable()
    try:
        before = len(os.listdir("/dev/fd"))
        for _ in range(3):
            use()
        assert len(os.listdir("/dev/fd")) == before
    finally:
        gc.enable()


def open_in(directory):
    """Return the files of a directory that this process has open."""
    links = (os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd"))
    return {link for link in links if link.startswith(f"{directory}/")}


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="descriptors are not listed here")
def test_a_closed_journal_leaves_no_file_of_the_state_directory_open(root, tmp_path):
    with Workspace(root, state=tmp_path / "state") as ws:
        ws.write("new", "new\n")
        assert open_in(tmp_path / "state")
    assert not open_in(tmp_path / "state")
    journal = read_journal(tmp_path / "state")
    assert open_in(tmp_path / "state")
    journal.close()
    assert not open_in(tmp_path / "state")
    journal.close()
