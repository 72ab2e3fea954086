"""Servers and clients for the tests of MCP."""

import asyncio
import atexit
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from unittest import mock

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from agentfs.cli import main
from agentfs.mcp import offered, tool_server
from agentfs.tools.toolset import Toolset
from tests.conftest import ISOLATED

WARM = str(Path(__file__).parent / "warm.py")
ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join([ISOLATED, *sys.path]),
    "PYTHONWARNINGS": "error",
    "AGENTFS_TESTS_HOME": os.environ["AGENTFS_TESTS_HOME"],
}


def fresh():
    """The command that starts `agentfs` in a new interpreter."""
    return [sys.executable, "-m", "agentfs"]


@cache
def warm():
    """The command that starts `agentfs` in a fork of a process that has imported it."""
    address = f"{tempfile.mkdtemp()}/socket"
    parent = subprocess.Popen(
        [sys.executable, WARM, address], env={**os.environ, **ENVIRONMENT},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    atexit.register(shutil.rmtree, os.path.dirname(address))
    atexit.register(parent.communicate)
    assert parent.stdout.readline() == b"ready\n"
    return [sys.executable, "-IS", WARM, address]


@asynccontextmanager
async def process_client(tree, *options, command=warm, **settings):
    server = StdioServerParameters(
        command=command()[0], args=[*command()[1:], "mcp", "--root", str(tree), *options], env=ENVIRONMENT
    )
    async with asyncio.timeout(60), Client(server, **settings) as connected:
        yield connected


class HttpServer:
    """A server in its own process that listens on a free port of this machine."""

    def __init__(self, tree, *options, address="127.0.0.1:0", token=None, command=warm):
        command = [*command(), "mcp", "--root", str(tree), "--http", address, *options]
        environment = {**os.environ, **ENVIRONMENT}
        if token is not None:
            command += ["--token-env", "AGENTFS_TOKEN"]
            environment["AGENTFS_TOKEN"] = token
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        self.said = self.process.stderr.readline()
        self.url = self.said.split()[-1] if " serving " in self.said else ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        self.process.stderr.close()

    @asynccontextmanager
    async def client(self, token=None, **settings):
        """A client that sends a token."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        async with create_mcp_http_client(headers=headers) as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with asyncio.timeout(60), Client(transport, **settings) as connected:
                yield connected


@asynccontextmanager
async def served(workspace, *names, **settings):
    """A client of a server in this process, which offers the tools of a workspace."""
    made = tool_server(offered(workspace, names or None))
    async with asyncio.timeout(60), Client(made, **settings) as connected:
        yield connected


@asynccontextmanager
async def client(tree, *options, **settings):
    """A client of the server that a command line starts, in this process."""
    offers, ended = queue.Queue(), threading.Event()

    def serve(tools):
        offers.put(tools)
        ended.wait()

    def run():
        offers.put(main(["mcp", "--root", str(tree), *options]))

    with mock.patch("agentfs.mcp.serve_stdio", serve):
        thread = threading.Thread(target=run)
        thread.start()
        tools = await asyncio.to_thread(offers.get)
        assert isinstance(tools, Toolset), tools
    try:
        async with asyncio.timeout(60), Client(tool_server(tools), **settings) as connected:
            yield connected
    finally:
        ended.set()
        thread.join()


def told(result):
    return "\n".join(block.text for block in result.content if block.type == "text")
