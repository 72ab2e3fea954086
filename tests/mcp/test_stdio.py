"""The MCP server's standard input and output: signals, and the end of input."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import pytest

from tests.mcp.servers import warm

INTERRUPTED = 256 - signal.SIGINT  # as `warm.py` gives it
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}


class Server:
    """A server in its own process; the test sends and receives bytes."""

    def __init__(self, tree, *options, capabilities=None):
        command = [*warm(), "mcp", "--root", str(tree), *options]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
        self.send(request(0, "initialize", {**HELLO, "capabilities": capabilities or {}}))
        assert self.answer()["id"] == 0
        self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def send(self, frame: bytes) -> None:
        self.process.stdin.write(frame + b"\n")
        self.process.stdin.flush()

    def answer(self):
        return json.loads(self.process.stdout.readline())


@contextmanager
def running(tree, *options, capabilities=None):
    server = Server(tree, *options, capabilities=capabilities)
    try:
        yield server
    finally:
        process = server.process
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            with suppress(BrokenPipeError):
                pipe.close()


def request(number, method, params) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


def read(arguments: bytes, number: bytes = b"7") -> bytes:
    params = b'{"name":"read","arguments":%b}' % arguments
    return b'{"jsonrpc":"2.0","params":%b,"method":"tools/call","id":%b}' % (params, number)


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    return tmp_path


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    tree = tmp_path_factory.mktemp("tree")
    (tree / "a.txt").write_text("one\n")
    (tree / "a\ufffd.txt").write_text("another\n")
    with running(tree) as started:
        yield started


@pytest.mark.parametrize("frame", [b"", b"  "])
def test_an_empty_line_is_not_answered(server, frame):
    server.send(frame)
    server.send(read(b'{"path":"a.txt"}', b"99"))
    assert server.answer()["id"] == 99


def long_search(tree) -> bytes:
    (tree / "sub").mkdir()
    (tree / "long.txt").write_text("\n".join("x" * 100 for _ in range(1500)))
    for number in range(600):
        os.link(tree / "long.txt", tree / "sub" / f"{number}.txt")
    arguments = {"pattern": r"x+(?!x|$)", "path": "sub"}
    return request(7, "tools/call", {"name": "grep", "arguments": arguments})


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("how", ["end of input", "the client is gone", "SIGINT"])
def test_the_server_ends_soon_with_or_without_calls_under_way(tree, how, busy):
    """SIGINT was ignored until input came, and calls went on for up to 20 seconds after the end of input."""
    with running(tree) as server:
        if busy:
            server.send(long_search(tree))
            time.sleep(1)
        if how == "SIGINT":
            server.process.send_signal(signal.SIGINT)
        else:
            server.process.stdin.close()
        if how == "the client is gone":
            server.process.stdout.close()
        assert server.process.wait(8) == (INTERRUPTED if how == "SIGINT" else 0)
        assert server.process.stderr.read() == b""


def test_a_change_under_way_is_whole_or_not_made(tree):
    (tree / "big.txt").write_text("a\n" * 200_000)
    arguments = {"path": "big.txt", "old_string": "a\n", "new_string": "bb\n", "replace_all": True}
    with running(tree) as server:
        server.send(request(7, "tools/call", {"name": "edit", "arguments": arguments}))
        time.sleep(0.2)
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == INTERRUPTED
    assert (tree / "big.txt").read_text() in ("a\n" * 200_000, "bb\n" * 200_000)
    assert {each.name for each in tree.iterdir()} == {"a.txt", "big.txt"}


@pytest.mark.full
@pytest.mark.parametrize(
    ("closed", "said"), [(0, "The server needs standard input"), (1, "Standard output is closed")]
)
def test_a_closed_standard_stream_is_reported(tree, closed, said):
    command = f'exec "$0" -m agentfs mcp --root . {closed}<&-'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable],
        cwd=tree, capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith(f"agentfs: {said}")
    assert "Traceback" not in done.stderr
