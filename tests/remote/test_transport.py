"""Streams of commands: what is sent and read, bounds, the end."""

import os
import sys
import threading
import time

import pytest

from agentfs import connect
from agentfs.errors import DisconnectedError, InvalidArgumentError
from agentfs.remote.transport import CommandStream, line_reader


def test_a_large_line_comes_back_whole():
    stream = CommandStream(["cat"])
    line = os.urandom(2_000_000).hex().encode() + b"\n"
    threading.Thread(target=stream.write, args=(line,), daemon=True).start()
    assert stream.readline() == line
    stream.close()


def test_an_endless_line_ends_at_the_limit():
    stream = CommandStream([sys.executable, "-c", "while True: print('x' * 9999, end='')"])
    with pytest.raises(DisconnectedError, match="over 5,000 bytes"):
        line_reader(stream.readline, 5000)()
    stream.close()


def test_a_stream_without_a_limit_is_read_too():
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
    assert stream.readline() == b""  # nothing has the output any more


def test_a_command_that_is_not_there():
    with pytest.raises(DisconnectedError, match="cannot be run: No such file"):
        CommandStream(["/nonexistent/ssh"])
