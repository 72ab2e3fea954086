"""Every way to call × every kind of tool × every setting: one expectation for each setting.

`tests/interop/test_frameworks.py` has the ways of the frameworks that the tests of the package do not need.
"""

import asyncio
import itertools
import json
import subprocess
import sys
from contextlib import ExitStack, asynccontextmanager

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import MCPServer

from agentfs import Policy, Toolset, Workspace, connect, dialects
from agentfs.mcp import sdk_tools
from tests.mcp.servers import ENVIRONMENT, served, told
from tests.remote.over_pipe import open_pipe
from tests.tools.gate_table import COLUMNS, KINDS, Cell


def own_tools(ws, cell):
    return Toolset([cell.tool(ws)], workspace=ws)


def of_dialect(name):
    def tools(ws, cell):
        return ws.tools(dialect=name) + [cell.tool(ws)]  # noqa: RUF005 - a toolset

    return tools


def call(tools, cell):
    return tools.call(cell.name, cell.arguments).content


def acall(tools, cell):
    return asyncio.run(tools.acall(cell.name, cell.arguments)).content


def calls(cell):
    return [{"type": "tool_use", "id": "1", "name": cell.name, "input": cell.arguments}]


def answer(tools, cell):
    return tools.answer(calls(cell))[0]["content"][0]["content"][0]["text"]


def aanswer(tools, cell):
    return asyncio.run(tools.aanswer(calls(cell)))[0]["content"][0]["content"][0]["text"]


def function(tools, cell):
    (made,) = tools.functions()
    answered = made(**cell.arguments)
    return answered if isinstance(answered, str) else asyncio.run(answered)


def over_mcp(tools, cell):
    async def main():
        async with Client(MCPServer("table", tools=sdk_tools(tools))) as client:
            return told(await client.call_tool(cell.name, cell.arguments))

    return asyncio.run(main())


WAYS = {
    "call": (own_tools, call),
    "acall": (own_tools, acall),
    "answer": (own_tools, answer),
    "aanswer": (own_tools, aanswer),
    "functions": (own_tools, function),
    "the MCP SDK": (own_tools, over_mcp),
    **{f"dialect {name}": (of_dialect(name), call) for name in ("agentfs", *dialects.BUILT_IN)},
}


def opened(cell):
    return Workspace(cell.top, **cell.options())


def connected(cell):
    options = cell.options()
    server = open_pipe(policy=Policy(run=options["policy"].run))
    return connect(server, cell.top, **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", [*WAYS, "connect"])
def test_each_setting_holds_for_every_way_to_call_every_kind_of_tool(way, kind, tmp_path):
    toolset, say = WAYS.get(way, (own_tools, call))
    shown, expected = {}, {}
    for column in COLUMNS:
        cell = Cell(kind, column, tmp_path / column)
        with (connected if way == "connect" else opened)(cell) as ws:
            said = say(toolset(ws, cell), cell)
            shown[column] = cell.verdict(cell.record(), said)
        expected[column] = cell.setting.verdict
    assert shown == expected


@asynccontextmanager
async def over_stdio(directory):
    command = ["-m", "tests.tools.gate_table", str(directory), "stdio"]
    async with Client(StdioServerParameters(command=sys.executable, args=command, env=ENVIRONMENT)) as client:
        yield client


@asynccontextmanager
async def over_http(directory):
    command = [sys.executable, "-m", "tests.tools.gate_table", str(directory), "http"]
    with ExitStack() as stack:
        started = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE)  # noqa: ASYNC220 - it starts once
        process = stack.enter_context(started)
        stack.callback(process.terminate)
        port = int(process.stdout.readline())
        async with Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp")) as client:
            yield client


@pytest.mark.full
@pytest.mark.parametrize("transport", [over_stdio, over_http])
async def test_each_setting_holds_over_mcp(transport, tmp_path):
    cells = {
        pair: Cell(*pair, tmp_path / "own" / "-".join(pair)) for pair in itertools.product(KINDS, COLUMNS)
    }
    async with asyncio.timeout(60), transport(tmp_path / "its") as client:
        # One after the other: writes at once wait for one lock, and without time to wait one is `busy`.
        said = {
            pair: told(await client.call_tool("_".join(pair), cell.arguments)) for pair, cell in cells.items()
        }
        records = json.loads(told(await client.call_tool("records", {})))
    shown = {
        pair: cell.verdict(records["_".join(pair)], said[pair], "_".join(pair))
        for pair, cell in cells.items()
    }
    assert shown == {pair: cell.setting.verdict for pair, cell in cells.items()}


@pytest.mark.parametrize("column", [column for column in COLUMNS if column != "ask"])
async def test_each_setting_holds_for_the_server_of_a_workspace(column, tmp_path):
    """It serves methods of ours alone and has no events; with an ask rule it asks its client."""
    cell = Cell("ours", column, tmp_path / "tree")
    options = {name: each for name, each in cell.options().items() if name != "on_event"}
    with Workspace(cell.top, **options) as ws:
        async with served(ws, "read", "write") as client:
            said = told(await client.call_tool(cell.own_name, cell.arguments))
    if column in ("plan", "read_only"):  # it offers no tool that changes something
        assert said.startswith('There is no tool "write"')
        assert cell.record()["ran"] == 0
        return
    wanted = cell.setting.verdict
    facts = (cell.own_name, cell.own_name, wanted.code, wanted.raised)
    record = {**cell.record(), "events": [("started", *facts), (wanted.end, *facts)]}
    assert cell.verdict(record, said, cell.own_name) == wanted
