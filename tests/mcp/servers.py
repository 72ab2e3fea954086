"""Servers and clients for the tests of MCP."""

import asyncio
import os
import sys
from contextlib import asynccontextmanager
from os.path import normpath
from pathlib import Path
from unittest import mock

from mcp import Client, StdioServerParameters, types

from agentfs.cli import main
from agentfs.mcp import WorkspaceServer


@asynccontextmanager
async def process_client(tree, *options, **settings):
    """A client of a server in its own process."""
    command = [sys.executable, "-m", "agentfs", "mcp", "--root", str(tree), *options]
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "error"}
    server = StdioServerParameters(command=command[0], args=command[1:], env=environment)
    async with asyncio.timeout(60), Client(server, **settings) as connected:
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
    with mock.patch.object(WorkspaceServer, "run", lambda server: servers.append(server)):  # noqa: PLW0108 - a method of a list would not be bound
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
