"""Streams of commands: sending, reading, bounds and the end."""

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from agentfs import connect
from agentfs.errors import DisconnectedError, InvalidArgumentError
from agentfs.remote.transport import CommandStream, line_reader


def test_a_large_line_comes_back_complete():
    stream = CommandStream(["cat"])
    line = os.urandom(2_000_000).hex().encode() + b"\n"
    threading.Thread(target=stream.write, args=(line,), daemon=True).start()
    assert stream.readline() == line
    stream.close()


def test_an_endless_line_ends_at_the_limit():
    stream = CommandStream([sys.executable, "-c", "while True: print('x' * 9999, end='')"])
    with pytest.raises(DisconnectedError, match="a line over 5,000 bytes"):
        line_reader(stream.readline, 5000)()
    stream.close()


def test_a_stream_without_a_limit_can_be_read():
    def readline() -> bytes:
        return b"x" * 20 + b"\n"

    assert line_reader(readline, 21)() == b"x" * 20 + b"\n"
    with pytest.raises(DisconnectedError):
        line_reader(readline, 20)()


def test_a_stream_of_text_is_refused_at_once():
    class Texts:
        def write(self, data):
            pass

        def readline(self):
            return "text\n"

        def close(self):
            pass

    with pytest.raises(InvalidArgumentError, match="must return bytes, not str"):
        connect(lambda _: Texts(), "/far", push=False)


def test_a_command_that_fails_is_explained_and_reaped():
    stream = CommandStream(["sh", "-c", "echo no such host >&2; exit 7"])
    assert stream.readline() == b""
    stream.close()
    assert stream.explain() == "exit status 7: no such host"


def test_a_command_that_does_not_end_is_killed_with_what_it_started():
    stream = CommandStream(["sh", "-c", "trap '' TERM; sleep 1000 & echo ready; sleep 1000"])
    assert stream.readline() == b"ready\n"
    began = time.monotonic()
    stream.close()
    assert time.monotonic() - began < 30
    assert stream.readline() == b""  # no process has the output open


def test_a_missing_command_is_disconnected():
    with pytest.raises(DisconnectedError, match="cannot be run: No such file"):
        CommandStream(["/nonexistent/ssh"])


def test_the_group_of_a_command_is_killed_before_its_process_id_is_free(monkeypatch):
    states = []

    def killpg(group, number):
        states.append(Path(f"/proc/{group}/stat").read_text().rpartition(")")[2].split()[0])

    stream = CommandStream(["cat"])
    monkeypatch.setattr(os, "killpg", killpg)
    stream.close()
    assert states == ["Z"]
    assert stream.explain() == "exit status 0"


def test_the_group_of_a_command_is_not_killed_if_the_program_has_reaped_it(monkeypatch):
    killed = []
    stream = CommandStream(["true"])
    os.waitpid(stream._process.pid, 0)
    monkeypatch.setattr(os, "killpg", lambda *given: killed.append(given))
    stream.close()
    assert killed == []


def test_children_of_a_command_end_with_it(tmp_path):
    stream = CommandStream(["sh", "-c", "sleep 100 & echo $!; cat >/dev/null"])
    number = int(stream.readline())
    stream.close()
    deadline = time.monotonic() + 5
    while Path(f"/proc/{number}").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break  # no parent reaps it here
        time.sleep(0.01)
    else:
        assert not Path(f"/proc/{number}").exists()


def in_a_fork(action):
    """Return the result of an action in a forked process, as a short text."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.write(writer, str(action()).encode())
        except BaseException as error:  # noqa: BLE001 - the parent compares it
            os.write(writer, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as said:
        text = said.read()
    os.waitpid(child, 0)
    return text


def test_a_fork_neither_uses_nor_ends_the_connection_of_its_parent(tmp_path):
    with connect(["env"], tmp_path) as ws:
        ws.write("a.txt", "1\n")
        with ws.transaction() as changes:
            changes.write("b.txt", "2\n")
            assert in_a_fork(lambda: changes.write("b.txt", "3\n")) == "DisconnectedError"
        for action in (
            lambda: ws.read("a.txt"),
            lambda: ws.edit("a.txt", "1", "2"),
            lambda: ws.transaction().__enter__(),
            lambda: ws.view(workdir="."),
            lambda: ws.containment,
        ):
            assert in_a_fork(action) == "DisconnectedError"
        assert in_a_fork(ws.close) == "None"
        assert in_a_fork(ws._connection._connection._stream.close) == "None"
        assert in_a_fork(ws._connection.__del__) == "None"
        assert ws.read("a.txt").content == "1\n"
        assert ws.edit("a.txt", "1", "4").replacements == 1
        assert ws.remote.reconnects == 0
    assert (tmp_path / "b.txt").read_text() == "2\n"
