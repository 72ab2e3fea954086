"""Servers and clients for the tests of MCP."""

import asyncio
import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import asynccontextmanager
from functools import cache
from os.path import normpath
from pathlib import Path
from unittest import mock

from mcp import Client, StdioServerParameters, types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from agentfs.cli import main
from agentfs.mcp import WorkspaceServer

WARM = str(Path(__file__).parent / "warm.py")
ENVIRONMENT = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "error"}


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
    """A client of a server in its own process."""
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
async def served(server, **settings):
    """A client of a server in this process."""
    try:
        async with asyncio.timeout(60), Client(server.server, **settings) as connected:
            yield connected
    finally:
        server._workspace.close()


def made(tree, *options):
    """The server that a command line starts."""
    servers = []
    with mock.patch.object(WorkspaceServer, "run", lambda server, _: servers.append(server)):
        assert main(["mcp", "--root", str(tree), *options]) == 0
    return servers[0]


def client(tree, *options, **settings):
    """A client of the server that a command line starts, in this process."""
    return served(made(tree, *options), **settings)


def roots_of(tree, *names):
    listed = [types.Root(uri=Path(normpath(tree / name)).as_uri()) for name in names]

    async def roots(context):
        return types.ListRootsResult(roots=listed)

    return roots


def told(result):
    return "\n".join(block.text for block in result.content if block.type == "text")
