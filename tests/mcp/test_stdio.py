"""The MCP server's standard input and output: invalid frames, signals, and the end of input."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import pytest

from agentfs.mcp.stdio import MAX_FRAME_BYTES
from tests.mcp.servers import warm

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
    """A server that has handled all frames."""
    tree = tmp_path_factory.mktemp("tree")
    (tree / "a.txt").write_text("one\n")
    (tree / "a\ufffd.txt").write_text("another\n")
    with running(tree) as started:
        yield started


@pytest.mark.parametrize(("frame", "number"), [
    (read(rb'{"path":"\ud800"}'), 7),
    (read(rb'{"\udc00":"a.txt","path":"a.txt"}'), 7),
    (read(rb'{"id":8,"path":"\ud800","x":"}\"}"}'), 7),
    (read(rb'{"path":"\ud800"}', b'"seven"'), "seven"),
    (b'{"jsonrpc":"2.0","id":7}', 7),
    (b'{"id":7,"method":"ping"}', 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[1]}', 7),
    (read(b'{"path":"a.txt","limit":%b}' % (b"9" * 10_000)), None),
    (read(b'{"path":"a\xff.txt"}'), None),
    (read(b'{"path":%b%b}' % (b"[" * 100_000, b"]" * 100_000)), None),
    (read(b'{"path":%b}' % (b'{"id":8,"x":' * 100_000)), None),
    (read(b'{"path":"a.txt"}') + b" x", None),
    (b"hello", None),
    (b"[" + read(b'{"path":"a.txt"}') + b"]", None),
], ids=range(14))  # fmt: skip
def test_a_frame_that_is_not_a_message_is_answered(server, frame, number):
    """The SDK's own transport does not answer, or replaces bytes that are not UTF-8."""
    server.send(frame)
    answer = server.answer()
    assert (answer["id"], answer["error"]["code"]) == (number, -32700)
    server.send(read(b'{"path":"a.txt"}', b"99"))
    answer = server.answer()
    assert (answer["id"], answer["result"]["content"][0]["text"]) == (99, "1|one")


@pytest.mark.parametrize("frame", [b"", b"  "])
def test_an_empty_line_is_not_answered(server, frame):
    server.send(frame)
    server.send(read(b'{"path":"a.txt"}', b"99"))
    assert server.answer()["id"] == 99


def test_an_endless_frame_is_not_kept(server):
    server.send(read(b'{"path":"%b"}' % (b"x" * MAX_FRAME_BYTES)))
    assert "of at most 67,108,864 bytes" in server.answer()["error"]["message"]
    server.send(read(b'{"path":"a.txt"}', b"99"))
    assert server.answer()["id"] == 99


@pytest.mark.parametrize("listed", [
    {"roots": [{"uri": "file:///%00"}]}, {"roots": []}, {},
    *(pytest.param(each, marks=pytest.mark.long) for each in (
        *({"roots": [{"uri": uri}]} for uri in ("file:a.txt", "file://elsewhere/", "file://[", "http://x/")),
        {"roots": [{"uri": ""}]}, {"roots": None},
    )),
], ids=range(9))  # fmt: skip
def test_roots_that_are_not_paths_open_nothing(tree, listed):
    with running(tree, capabilities={"roots": {}}) as server:
        server.send(read(b'{"path":"a.txt"}'))
        asked = server.answer()
        assert asked["method"] == "roots/list"
        server.send(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": listed}).encode())
        answer = server.answer()
        assert (answer["id"], answer["result"]["isError"]) == (7, True)
        assert "1|one" not in str(answer)


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
        assert server.process.wait(8) == 0
        assert server.process.stderr.read() == b""


def test_an_interrupt_between_frames_prints_no_traceback(tree):
    """The SDK's relay failed if it was cancelled while it held a frame."""
    for _ in range(3):
        with running(tree) as server:  # it has just sent its `initialized` notification
            server.process.send_signal(signal.SIGINT)
            assert server.process.wait(20) == 0
            assert server.process.stderr.read() == b""


def test_a_change_under_way_is_completed(tree):
    (tree / "big.txt").write_text("a\n" * 200_000)
    arguments = {"path": "big.txt", "old_string": "a\n", "new_string": "bb\n", "replace_all": True}
    with running(tree) as server:
        server.send(request(7, "tools/call", {"name": "edit", "arguments": arguments}))
        time.sleep(0.2)
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == 0
    assert (tree / "big.txt").read_text() in ("a\n" * 200_000, "bb\n" * 200_000)
    assert sorted(path.name for path in tree.iterdir()) == ["a.txt", "big.txt"]


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


@pytest.mark.full
def test_output_of_a_callback_stays_out_of_the_frames(tree):
    program = (
        "import asyncio, sys\n"
        "from agentfs import Policy\nfrom agentfs.mcp import WorkspaceServer\n"
        "ask = lambda request: print('asked') or True\n"
        "asyncio.run(WorkspaceServer(sys.argv[-1], policy=Policy(on_ask=ask, ask=['read'])).serve())\n"
    )
    frames = [request(0, "initialize", HELLO), read(b'{"path":"a.txt"}')]
    done = subprocess.Popen(
        [sys.executable, "-c", program, str(tree)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    with done:
        for frame in frames:
            done.stdin.write(frame + b"\n")
            done.stdin.flush()
            assert json.loads(done.stdout.readline())["id"] in (0, 7)
        done.stdin.close()
        assert b"asked" in done.stderr.read()
        assert done.stdout.read() == b""


def test_a_person_who_starts_the_server_is_told_that_it_waits_for_a_client(tree):
    ours, theirs = pty.openpty()
    command = [*warm(), "mcp", "--root", str(tree)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=theirs, stdout=pipe, stderr=pipe, text=True) as process:
        os.close(theirs)
        assert "waiting for an MCP client" in process.stderr.readline()
        os.write(ours, b"\x04")  # Ctrl-D, the end of the input
        assert process.communicate(timeout=60) == ("", "")
    os.close(ours)
    assert process.returncode == 0
