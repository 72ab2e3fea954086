"""The server over streamable HTTP, and the requests that it must refuse."""

import asyncio
import http.client
import json
import os
import signal
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from agentfs.cli import main
from agentfs.errors import AgentFSError, InvalidArgumentError, RefusedError
from agentfs.mcp import HttpAddress
from tests.mcp.servers import HttpServer, roots_of, told, warm
from tests.mcp.test_questions import EDIT, MODES, User

TOKEN = "a-token-of-24-characters"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}
READ = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "read", "arguments": {"path": "a.txt"}},
}
MODERN = {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "read"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server for requests that change nothing."""
    tree = tmp_path_factory.mktemp("tree")
    (tree / "a.txt").write_text("one\n")
    with HttpServer(tree, token=TOKEN) as running:
        yield running


def status(url, body=INITIALIZE, *, method="POST", path="", **headers):
    """The status of the answer to one request."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
    sent = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {TOKEN}",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    sent = {name: value for name, value in sent.items() if value is not None}
    connection.request(method, path or place.path, json.dumps(body) if method == "POST" else None, sent)
    answer = connection.getresponse()
    connection.close()
    return answer.status


@MODES
async def test_a_client_with_the_token_uses_tools_resources_and_progress(tree, mode):
    for number in range(1500):
        (tree / "sub" / f"{number}.txt").touch()
    seen = []

    async def progress(entries, total, message):
        seen.append(entries)

    with HttpServer(tree, token=TOKEN) as server:
        async with server.client(TOKEN, mode=mode) as connected:
            assert told(await connected.call_tool("read", {"path": "a.txt"})) == "1|one\n2|two\n3|three"
            assert not (await connected.call_tool("edit", EDIT)).is_error
            assert (await connected.read_resource((tree / "a.txt").as_uri())).contents[
                0
            ].text == "one\n2\nthree\n"
            await connected.call_tool("grep", {"pattern": "nothing"}, progress_callback=progress)
    assert seen == sorted(seen)
    assert seen[0] >= 500


@MODES
async def test_the_user_is_asked_and_roots_narrow_over_http(tree, mode):
    user = User("accept", "decline")
    settings = {"mode": mode, "elicitation_callback": user, "list_roots_callback": roots_of(tree, "sub")}
    with HttpServer(tree, "--ask", "change") as server:
        async with server.client(**settings) as connected:
            edit = {"path": "c.txt", "old_string": "three", "new_string": "3"}
            assert not (await connected.call_tool("edit", edit)).is_error
            assert (
                await connected.call_tool("edit", {**edit, "old_string": "3", "new_string": "4"})
            ).is_error
            assert (await connected.call_tool("read", {"path": "../a.txt"})).is_error
    assert (tree / "sub" / "c.txt").read_text() == "3\n"


async def test_each_client_has_its_own_roots(tree):
    """Attack: the roots of one client widened those of another."""
    with HttpServer(tree) as server:
        first = server.client(mode="legacy", list_roots_callback=roots_of(tree, "sub"))
        second = server.client(mode="legacy", list_roots_callback=roots_of(tree, "."))
        async with first as narrow, second as wide:
            for _ in range(3):
                assert not (await wide.call_tool("read", {"path": "a.txt"})).is_error
                assert (await narrow.call_tool("read", {"path": "../a.txt"})).is_error
                assert told(await narrow.call_tool("read", {"path": "c.txt"})) == "1|three"


@pytest.mark.parametrize("authorization", [
    None, "Bearer", "Bearer ", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", f"Bearer {TOKEN.upper()}", TOKEN,
    f"Basic {TOKEN}", "Bearer \xe9", f"Bearer {'x' * 10_000}",
])  # fmt: skip
def test_a_request_without_the_token_is_refused(server, authorization):
    """Attack: no token, another one, and nearly the right one, for every method of the protocol."""
    for body, headers in ((INITIALIZE, {}), (READ, MODERN), (READ, {"Mcp-Session-Id": "x"})):
        assert status(server.url, body, Authorization=authorization, **headers) == 401
    for method in ("GET", "DELETE"):
        assert status(server.url, method=method, Authorization=authorization) == 401


def test_a_page_of_another_origin_is_refused(server):
    """Attack: a page in the user's browser sends requests to the server."""
    host = urlsplit(server.url).netloc
    for origin in (
        "http://evil.example",
        "null",
        f"http://{host}.evil.example",
        "http://localhost:1",
        "file://",
    ):
        for body, headers in ((INITIALIZE, {}), (READ, MODERN)):
            assert status(server.url, body, Origin=origin, **headers) == 403, origin
    assert status(server.url, Origin=f"http://{host}") == 200


def test_a_name_that_leads_to_this_machine_is_refused(server):
    """Attack: DNS rebinding. A page's own name leads to 127.0.0.1, so its requests have no other origin."""
    port = urlsplit(server.url).port
    for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", "127.0.0.1:1", ""):
        for body, headers in ((INITIALIZE, {}), (READ, MODERN)):
            assert status(server.url, body, Host=host, **headers) in (400, 421), host
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"):
        assert status(server.url, Host=host) == 200


def test_a_server_without_a_token_refuses_names_and_origins_too(tree):
    with HttpServer(tree) as server:
        assert status(server.url, Authorization=None) == 200
        assert status(server.url, Authorization=None, Host="evil.example") == 421
        assert status(server.url, Authorization=None, Origin="http://evil.example") == 403


def test_nothing_else_is_served(server):
    for path in ("/", "/a.txt", "/mcp/../a.txt", "/.well-known/oauth-protected-resource"):
        assert status(server.url, path=path) in (404, 401)
        assert status(server.url, method="GET", path=path) in (404, 401)


def test_the_token_is_in_no_output(tree):
    with HttpServer(tree, token=TOKEN) as server:
        status(server.url, Authorization="Bearer wrong")
        status(server.url, Host="evil.example")
        server.process.send_signal(signal.SIGTERM)
        said = server.said + server.process.stderr.read()
    assert " serving http://127.0.0.1:" in said
    assert TOKEN not in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_server_ends_in_order(tree, number):
    with HttpServer(tree) as server:
        async with server.client(mode="legacy") as connected:
            await connected.call_tool("ls", {})
            server.process.send_signal(number)
            await asyncio.to_thread(server.process.wait, 20)
    assert "Traceback" not in (server.said or "")


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0"])
def test_an_address_that_other_machines_reach_needs_a_token(tree, address):
    with pytest.raises(RefusedError, match="needs a token"):
        HttpAddress(address)
    with pytest.raises(InvalidArgumentError, match="cannot use"):
        HttpAddress(address, token=TOKEN)


def test_a_name_of_the_server_can_be_added(tree):
    with HttpServer(tree, "--http-name", "files.example.com", address="0.0.0.0:0", token=TOKEN) as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert status(url, Host="files.example.com", Origin="https://files.example.com") == 200
        assert status(url, Host="evil.example") == 421
        assert status(url, Host="files.example.com", Authorization=None) == 401


@pytest.mark.parametrize(("options", "said"), [
    (["--http", "8765"], "is not HOST:PORT"),
    (["--http", "127.0.0.1:x"], "is not HOST:PORT"),
    (["--http", "127.0.0.1:65536"], "is not HOST:PORT"),
    (["--http", "no.such.host.invalid:0"], "cannot listen"),
    (["--http", "127.0.0.1:0", "--token-env", "AGENTFS_NO_TOKEN"], "AGENTFS_NO_TOKEN is not set"),
    (["--http", "127.0.0.1:0", "--token-file", "{outside}/missing"], "cannot be read"),
    (["--http", "127.0.0.1:0", "--token-file", "{outside}/circle"], "symbolic links"),  # it hung once
    (["--http", "127.0.0.1:0", "--token-file", "{outside}/short"], "at least 16 characters"),
    (["--http", "127.0.0.1:0", "--token-file", "{outside}/two words"], "without spaces"),
    (["--http", "127.0.0.1:0", "--token-file", "{outside}/empty"], "at least 16 characters"),
    (["--http", "127.0.0.1:0", "--token-file", "{tree}/a.txt"], "a model could read it"),
    (["--http-name", "x"], "need --http"),
    (["--token-file", "{outside}/token"], "need --http"),
])  # fmt: skip
def test_a_wrong_option_is_an_error(tree, tmp_path_factory, capsys, options, said):
    outside = tmp_path_factory.mktemp("outside")
    files = {"short": "short", "two words": "two words of a token", "empty": "\n", "token": TOKEN}
    for name, text in files.items():
        (outside / name).write_text(text)
    (outside / "circle").symlink_to("circle")
    options = [option.format(outside=outside, tree=tree) for option in options]
    assert main(["mcp", "--root", str(tree), *options]) == 2
    assert said in capsys.readouterr().err


def test_a_port_in_use_is_an_error(server):
    with pytest.raises(AgentFSError, match="cannot listen"):
        HttpAddress(urlsplit(server.url).netloc, token=TOKEN)


def test_the_token_of_a_file_is_used(tree, tmp_path_factory):
    file = tmp_path_factory.mktemp("outside") / "token"
    file.write_text(f"{TOKEN}\n")
    with HttpServer(tree, "--token-file", str(file)) as server:
        assert status(server.url) == 200
        assert status(server.url, Authorization=None) == 401


def with_settings(**settings):
    """A command that starts `agentfs` with other values of the module's names."""
    program = (
        "import sys, agentfs.mcp.streamable_http as module\n"
        "from agentfs.cli import main\n"
        f"vars(module).update({', '.join(f'{name}={value}' for name, value in settings.items())})\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    return lambda: [sys.executable, "-c", program]


NAIVE = with_settings(_Connection="'auto'", _BoundedBodies="lambda app: app")


def half_open(url, count, sent=b"POST /mcp HTTP/1.1\r\nHost: x\r\n", source="127.0.0.1"):
    place = urlsplit(url)
    opened = []
    for _ in range(count):
        opened.append(socket.create_connection((place.hostname, place.port), 30, (source, 0)))
        with suppress(OSError):  # it was closed to make room
            opened[-1].sendall(sent)
    return opened


def is_closed(connection, seconds):
    connection.settimeout(seconds)
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionResetError:
        pass
    return True


@pytest.mark.full
@pytest.mark.parametrize(("command", "expected"), [(NAIVE, 503), (warm, 200)], ids=["naive", "ours"])
def test_half_open_connections_do_not_lock_out_those_who_have_the_token(tree, command, expected):
    """Attack: 520 connections that never send a complete request."""
    with HttpServer(tree, token=TOKEN, command=command) as server:
        flood = half_open(server.url, 520)
        flood += [*half_open(server.url, 20, b"")]
        assert status(server.url) == expected
        for connection in flood:
            connection.close()


def test_a_flood_from_one_address_does_not_close_connections_from_others(tree):
    with HttpServer(tree, token=TOKEN) as server:
        [other] = half_open(server.url, 1, b"", source="127.0.0.2")
        flood = half_open(server.url, 300)
        assert status(server.url) == 200
        assert sum(is_closed(each, 0.01) for each in flood) >= 190
        assert not is_closed(other, 0.1)
        for connection in (other, *flood):
            connection.close()


SLOW = {
    "nothing": b"",
    "a part of the head": b"POST /mcp HTTP/1.1\r\nHost: x\r\n",
    "a refused request, then a part of its body": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n",
    "a refused request, then a part of the next": b"GET /x HTTP/1.1\r\nHost: x\r\n\r\nPOST /mcp HT",
}


@pytest.mark.full
@pytest.mark.parametrize("sent", SLOW)
def test_a_client_that_sends_its_request_slowly_is_disconnected(tree, sent):
    """Attack: one byte a second keeps a connection, because each byte shows that the client is there."""
    with HttpServer(tree, token=TOKEN, command=with_settings(_HEAD_SECONDS=1.5)) as server:
        [connection] = half_open(server.url, 1, SLOW[sent])
        closed = False
        for _ in range(40):
            with suppress(OSError):
                connection.sendall(b"x" if sent != "nothing" else b"")
            if closed := is_closed(connection, 0.2):
                break
        assert closed
        connection.close()


@pytest.mark.full
@MODES
async def test_a_long_request_and_a_stream_outlive_the_time_for_a_head(tree, mode):
    (tree / "long.txt").write_text("\n".join("x" * 100 for _ in range(1500)))
    for number in range(4):
        os.link(tree / "long.txt", tree / "sub" / f"{number}.txt")
    slow = {"pattern": r"x+(?!x|$)", "path": "sub"}
    with HttpServer(tree, token=TOKEN, command=with_settings(_HEAD_SECONDS=0.2)) as server:
        async with server.client(TOKEN, mode=mode) as connected:
            began = time.monotonic()
            assert "No matches" in told(await connected.call_tool("grep", slow))
            assert time.monotonic() - began > 0.4
            await asyncio.sleep(0.5)
            assert told(await connected.call_tool("read", {"path": "a.txt"})) == "1|one\n2|two\n3|three"


def post_body(url, body, *, sent=None):
    """The status of the answer to a body, or to its first `sent` bytes; 0 without an answer."""
    place = urlsplit(url)
    head = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
    try:
        connection.putrequest("POST", place.path)
        for name, value in (*head.items(), *MODERN.items()):
            connection.putheader(name, value)
        connection.putheader("Authorization", f"Bearer {TOKEN}")
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders()
        connection.send(body if sent is None else body[:sent])
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


@pytest.mark.full
@pytest.mark.parametrize("command", ["naive", "ours"])
def test_large_bodies_at_once_take_the_memory_of_one(tree, command):
    """Attack: ten bodies of 60 MB took 1 GB. The sizes here are a quarter."""
    frame = {"MAX_FRAME_BYTES": 16 * 1024 * 1024}
    naive = {"_Connection": "'auto'", "_BoundedBodies": "lambda app: app"} if command == "naive" else {}
    body = json.dumps({**READ, "params": {"x": "x" * 15_000_000}}).encode()
    with HttpServer(tree, token=TOKEN, command=with_settings(**frame, **naive)) as server:
        assert post_body(server.url, body[:1000]) == 400
        before = peak(server)
        with ThreadPoolExecutor(10) as pool:
            answers = [*pool.map(lambda _: post_body(server.url, body), range(10))]
        taken = (peak(server) - before) / len(body)
        assert answers == [400] * 10  # the protocol's version wants more fields
    assert taken > 9 if command == "naive" else taken < 7


def peak(server):
    with open(f"/proc/{server.process.pid}/status") as file:
        [line] = [line for line in file if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


@pytest.mark.full
def test_a_body_that_never_ends_gives_its_turn_to_the_next(tree):
    """Attack: a client begins the largest body, and sends no more of it."""
    body = json.dumps({**READ, "params": {"x": "x" * 40_000_000}}).encode()
    with (
        HttpServer(tree, token=TOKEN, command=with_settings(_BODY_SECONDS=6)) as server,
        ThreadPoolExecutor(2) as pool,
    ):
        stalled = pool.submit(post_body, server.url, body, sent=1_000_000)
        time.sleep(3)  # so that the late body has three seconds left when its turn comes
        assert post_body(server.url, json.dumps(INITIALIZE).encode()) == 400, "a small body does not wait"
        late = pool.submit(post_body, server.url, body)
        assert stalled.result(30) == 408
        assert late.result(30) in (400, 503)
        assert post_body(server.url, body) == 400


def test_a_body_without_the_token_takes_no_turn(tree):
    with HttpServer(tree, token=TOKEN) as server:
        head = b"POST /mcp HTTP/1.1\r\nHost: %b\r\nContent-Length: 60000000\r\n\r\n{"
        flood = half_open(server.url, 20, head % urlsplit(server.url).netloc.encode())
        body = json.dumps({**READ, "params": {"x": "x" * 40_000_000}}).encode()
        assert post_body(server.url, body) == 400
        for connection in flood:
            connection.close()
