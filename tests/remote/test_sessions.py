"""Sessions of the remote side: the state that outlives a connection, and its directory."""

import os
import signal
import subprocess
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from agentfs import Workspace, connect
from agentfs.errors import (
    BusyError,
    DisconnectedError,
    FileIOError,
    InvalidArgumentError,
    NotFoundError,
    UnknownLineError,
    UnreadError,
)
from agentfs.fs import lock
from agentfs.remote import session
from agentfs.remote.session import SessionDirectory
from tests.remote.over_pipe import open_pipe
from tests.remote.test_reconnect import SERVE, Fault, has_ended, opener

DAY = 24 * 3600


@pytest.fixture
def root(tmp_path):
    path = tmp_path / "root"
    path.mkdir()
    (path / "a.txt").write_text("one\ntwo\n" * 50)
    return path


@pytest.fixture
def parent(tmp_path, monkeypatch):
    """A directory of sessions for this test alone."""
    path = tmp_path / "locks"
    path.mkdir()
    monkeypatch.setattr(session, "lock_directory", lambda _: str(path))
    return path


def use(directory: Path, days: float) -> None:
    """Set the last use of a session to some days ago."""
    for path in (directory, *directory.rglob("*")):
        os.utime(path, (time.time() - days * DAY,) * 2)


def test_a_state_directory_is_at_the_remote_side_and_can_be_continued(root, tmp_path):
    state, command = tmp_path / "state", [*SERVE, str(root)]
    with connect(command, ".", push=False, state=state) as first:
        first.read("a.txt")
        first.write("a.txt", "1\n")
        with pytest.raises(BusyError, match="in use by another workspace"):
            connect(command, ".", push=False, state=state)
    assert state.stat().st_mode & 0o777 == 0o700
    (root / "b.txt").write_text("b\n")
    with connect(command, ".", push=False, state=state, session="other") as second:
        assert second.write("a.txt", "2\n").text  # the first workspace has read it
        assert second.undo(2).steps == 2
        with pytest.raises(UnreadError):
            second.write("b.txt", "x")
    with Workspace(root, state=state) as local:
        assert local.redo(2).steps == 2


def test_an_answer_lost_with_a_state_directory_is_repeated(root, tmp_path):
    fault = Fault("from_far", 0)
    with connect(opener(fault), root, push=False, state=tmp_path / "state") as ws:
        fault.armed = True
        assert ws.splice("a.txt", [(0, 0, "x")]).replacements == 1
        assert (ws.remote.reconnects, ws.undo().steps) == (1, 1)
        with pytest.raises(InvalidArgumentError, match="nothing to undo"):
            ws.undo()


def test_a_file_counts_as_unread_if_its_read_was_given_up(root):
    fault = Fault("from_far", 0)
    reachable = threading.Event()
    reachable.set()
    streams = opener(fault)

    def open_stream(argv):
        if not reachable.is_set():
            raise OSError("no route to host")
        return streams(argv)

    with connect(open_stream, root, push=False, patience=0.3) as ws:
        fault.armed = True
        reachable.clear()
        with pytest.raises(DisconnectedError):
            ws.read("a.txt")
        reachable.set()
        with pytest.raises(UnreadError):
            ws.write("a.txt", "unseen\n")
        assert "100|two" in ws.read("a.txt").text


def test_earlier_results_of_a_client_stay_valid_after_a_reconnect(root):
    with connect([*SERVE, str(root)], ".", push=False) as ws:
        page = ws.read("a.txt", limit=3, line_ids=True)
        found, kept, view = ws.glob("*.txt"), ws.keep("text"), ws.view(workdir=".")
        os.kill(ws.remote.pid, signal.SIGKILL)
        assert view.read("a.txt", limit=1).content == "one\n"
        assert ws.grep("one", files=found).total_files == 1
        assert getattr(ws, page.next["name"])(**page.next["arguments"]).start_line == 4
        with pytest.raises(UnknownLineError, match="line_ids"):
            ws.edit_lines("a.txt", [{"line_id": page.line_ids[0], "new_content": "1"}])
        with pytest.raises(NotFoundError, match="repeat its call"):
            ws.read(kept)
        assert ws.read(ws.keep("text")).content == "text"
        assert ws.remote.reconnects == 1


def test_without_a_directory_a_session_is_lost_with_its_connection(root, monkeypatch):
    monkeypatch.setattr(lock, "lock_directory", lambda _: None)
    monkeypatch.setattr(session, "lock_directory", lambda _: None)
    fault = Fault("from_far", 0)
    with connect(opener(fault), root, push=False) as ws:
        (note,) = ws.recovery_notes
        assert note.startswith("the session ends with its connection: There is no directory")
        assert ws.edit("a.txt", "one\n", "1\n", True).replacements == 50
        fault.armed = True
        with pytest.raises(DisconnectedError) as caught:
            ws.splice("a.txt", [(0, 0, "x")])
        assert caught.value.details["made"] is None
        assert (root / "a.txt").read_text().startswith("x1\n")
        assert ws.splice("a.txt", [(0, 0, "y")]).replacements == 1
        assert ws.remote.reconnects == 1
    with pytest.raises(FileIOError, match="There is no directory"):
        connect(open_pipe(), root, push=False, session="agent")


def test_a_lost_change_is_not_made_again_once_there_is_a_directory(root, parent):
    (parent / "sessions").write_text("a file")
    fault = Fault("from_far", 0)
    with connect(opener(fault), root, push=False) as ws:
        (parent / "sessions").unlink()
        fault.armed = True
        with pytest.raises(DisconnectedError) as caught:
            ws.splice("a.txt", [(0, 0, "x")])
        assert caught.value.details["made"] is None
    assert (root / "a.txt").read_text().startswith("xone\n")


def test_a_failing_directory_is_a_typed_error(root, parent):
    (parent / "sessions").write_text("a file")
    with pytest.raises(
        FileIOError, match=r"directory of the session cannot be used: (Not a directory|File exists)"
    ):
        SessionDirectory(str(root), "agent", "c", again=False)


@pytest.mark.parametrize("name", ["", "../..", "a/b", "\0", "\ud800", "x" * 10_000, "ä\n"])
def test_a_session_may_have_any_name(root, parent, name):
    with connect(open_pipe(), root, push=False, session=name) as ws:
        ws.write("b.txt", "x")
    kind = "named" if name else "unnamed"
    assert [path.name for path in parent.iterdir()] == ["sessions"]
    assert len(list((parent / "sessions" / kind).iterdir())) == bool(name)


@pytest.mark.parametrize(("name", "days"), [("agent", 30), (None, 1)])
def test_a_session_is_kept_for_some_days_after_its_last_use(root, parent, name, days):
    def opened(name, client, *, again=False):
        return closing(SessionDirectory(str(root), name, client, again=again))

    with opened(name, "c") as kept:
        path = Path(kept.state).parent
        (path / "state").mkdir()
        (path / "state" / "log").write_text("x")
        use(path, days + 1)
        with opened("other", "d"):
            assert path.exists()  # it is in use
    with opened(name, "c", again=True):  # a client that has just lost its connection
        assert (path / "state" / "log").exists()
    use(path, days + 1)
    os.utime(path / "state" / "log", (time.time() - (days - 0.1) * DAY,) * 2)
    with opened("other", "d"):
        assert (path / "state" / "log").exists()
    use(path, days + 0.1)
    with opened("other", "d"):
        assert not path.exists()
        assert len(os.listdir(parent / "sessions" / "named")) == 1
    with pytest.raises(DisconnectedError, match="The session was removed"):
        SessionDirectory(str(root), name, "c", again=True)


def test_a_number_in_a_locked_file_ends_no_process(root, parent):
    """It may be the number of another process by now, or of one in another container."""
    with subprocess.Popen(["sleep", "60"]) as bystander:
        first = SessionDirectory(str(root), "agent", "c", again=False)
        for path in Path(first.state).parent.iterdir():
            if path.name != "client":
                path.write_text(str(bystander.pid))
        threading.Timer(0.3, first.close).start()
        SessionDirectory(str(root), "agent", "d", again=False).close()
        assert bystander.poll() is None
        bystander.kill()


@pytest.mark.full
def test_one_of_many_processes_that_open_a_session_gets_it(root):
    command = [*SERVE, str(root)]
    clients, errors = [], []

    def open_it() -> None:
        try:
            clients.append(connect(command, ".", push=False, session="many", patience=20))
        except (BusyError, DisconnectedError) as error:
            errors.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(not has_ended(each.remote.pid) for each in clients) == 1
    for each in clients:
        each.close()
