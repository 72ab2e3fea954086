"""The server over streamable HTTP, and the requests that it must refuse."""

import asyncio
import http.client
import json
import signal
import socket
from urllib.parse import urlsplit

import pytest

from agentfs import Workspace
from agentfs.cli import main
from agentfs.errors import InvalidArgumentError, RefusedError
from agentfs.mcp import serve_http
from tests.kit import put
from tests.mcp.servers import HttpServer, told
from tests.mcp.test_questions import EDIT, MODES, User

TOKEN = "a-token-of-24-characters"
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {},
               "clientInfo": {"name": "x", "version": "1"}},
}  # fmt: skip
READ = {
    "jsonrpc": "2.0", "id": 2, "method": "tools/call",
    "params": {"name": "read", "arguments": {"path": "a.txt"}},
}  # fmt: skip
MODERN = {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "read"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server for requests that change nothing."""
    tree = tmp_path_factory.mktemp("tree")
    (tree / "a.txt").write_text("one\n")
    with HttpServer(tree, token=TOKEN) as running:
        yield running


def status(url, body=INITIALIZE, *, method="POST", path="", **headers):
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
    sent = {
        "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {TOKEN}", **headers,
    }  # fmt: skip
    sent = {name: value for name, value in sent.items() if value is not None}
    connection.request(method, path or place.path, json.dumps(body) if method == "POST" else None, sent)
    answer = connection.getresponse()
    connection.close()
    return answer.status


@pytest.mark.full
@MODES
async def test_a_client_with_the_token_uses_tools_and_progress_and_asks_the_user(tree, mode):
    put(tree, [f"sub/{number}.txt" for number in range(1500)], "")
    seen, user = [], User("accept", "decline")

    async def progress(entries, total, message):
        seen.append(entries)

    with HttpServer(tree, "--ask", "change", token=TOKEN) as server:
        async with server.client(TOKEN, mode=mode, elicitation_callback=user) as connected:
            assert told(await connected.call_tool("read", {"path": "a.txt"})) == "1|one\n2|two\n3|three"
            assert not (await connected.call_tool("edit", EDIT)).is_error
            assert (await connected.call_tool("delete", {"path": "a.txt"})).is_error
            await connected.call_tool("grep", {"pattern": "nothing"}, progress_callback=progress)
    assert seen == sorted(seen)
    assert seen[0] >= 500
    assert (tree / "a.txt").read_text() == "one\n2\nthree\n"


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


@pytest.mark.parametrize(("header", "foreign", "own", "codes"), [
    ("Origin", ["http://evil.example", "null", "http://{}.evil.example", "http://localhost:1", "file://"],
     ["http://{}"], {403}),
    ("Host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "127.0.0.1:1", ""],
     ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}"], {400, 421}),
])  # fmt: skip
def test_another_origin_and_a_name_that_leads_to_this_machine_are_refused(
    server, header, foreign, own, codes
):
    """Attack: a page in the user's browser sends requests to the server.

    With DNS rebinding its own name leads to 127.0.0.1, so its requests have no other origin.
    """
    place = urlsplit(server.url)
    for value in foreign:
        sent = {header: value.format(place.netloc, port=place.port)}
        for body, headers in ((INITIALIZE, {}), (READ, MODERN)):
            assert status(server.url, body, **sent, **headers) in codes, sent
    for value in own:
        assert status(server.url, **{header: value.format(place.netloc, port=place.port)}) == 200


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


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "example.com:1"])
def test_an_address_that_other_machines_reach_needs_a_token_and_a_name(tree, address):
    with Workspace(tree) as ws:
        with pytest.raises(RefusedError, match="needs a token"):
            serve_http(ws.tools(), address)
        with pytest.raises(InvalidArgumentError, match="needs a name"):
            serve_http(ws.tools(), address, token=TOKEN)


def test_a_name_of_the_server_can_be_added(tree):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ("--http-name", "files.example.com")
    with HttpServer(tree, *options, address=f"0.0.0.0:{port}", token=TOKEN) as server:
        assert server.url == "http://files.example.com/mcp"
        url = f"http://127.0.0.1:{port}/mcp"
        assert status(url, Host="files.example.com", Origin="https://files.example.com") == 200
        assert status(url, Host="evil.example") == 421
        assert status(url, Host="files.example.com", Authorization=None) == 401


@pytest.mark.parametrize(("options", "said"), [
    (["--http", "8765"], "is not HOST:PORT"), (["--http", "127.0.0.1:x"], "is not HOST:PORT"),
    (["--http", "127.0.0.1:65536"], "is not HOST:PORT"),
    (["--http", "no.such.host.invalid:0"], "needs a token"),
    (["--http", "127.0.0.1:0", "--token-env", "AGENTFS_NO_TOKEN"], "AGENTFS_NO_TOKEN is not set"),
    *[(["--http", "127.0.0.1:0", "--token-env", name], "16 or more ASCII") for name in ("SHORT", "WORDS")],
    (["--http-name", "x"], "need --http"), (["--token-env", "SHORT"], "need --http"),
])  # fmt: skip
def test_a_wrong_option_is_an_error(tree, monkeypatch, capsys, options, said):
    monkeypatch.setenv("SHORT", "short")
    monkeypatch.setenv("WORDS", "two words of a token")
    assert main(["mcp", "--root", str(tree), *options]) == 2
    assert said in capsys.readouterr().err


def test_a_port_in_use_is_an_error(server, tree, capsys):
    assert main(["mcp", "--root", str(tree), "--http", urlsplit(server.url).netloc]) == 2
    assert "in use" in capsys.readouterr().err
