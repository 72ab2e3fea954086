"""Measure the cost of a tool call beside its method, and of a round trip over MCP, interleaved."""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from mcp import Client, StdioServerParameters

from agentfs import Toolset, Workspace

ROUNDS = 3000


def microseconds(function, *arguments) -> float:
    start = time.perf_counter()
    function(*arguments)
    return (time.perf_counter() - start) * 1e6


def nothing(path: str, offset: int = 1, limit: int | None = None) -> str:
    """Return at once.

    Args:
        path: File.
        offset: Line.
        limit: Lines.
    """
    return f"{path}{offset}{limit}"


def overhead(name: str, tools: Toolset, method, arguments: dict) -> None:
    text = '{"path": "a.txt", "offset": 1, "limit": 5}'
    pairs = [
        (microseconds(lambda: method(**arguments)), microseconds(tools.call, name, arguments),
         microseconds(tools.call, name, text))
        for _ in range(ROUNDS)
    ]  # fmt: skip
    bare, parsed, sent = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"{name}: method {bare:.1f} us; call adds {parsed - bare:.1f} us, from JSON text {sent - bare:.1f} us"
    )


async def round_trips(root: str) -> None:
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "agentfs", "mcp", "--root", root], env=environment
    )
    started = time.perf_counter()
    async with Client(server) as client:
        await client.list_tools()
        print(f"MCP: connected and listed after {(time.perf_counter() - started) * 1000:.0f} ms")
        times = []
        for _ in range(200):
            start = time.perf_counter()
            await client.call_tool("read", {"path": "a.txt", "limit": 5})
            times.append((time.perf_counter() - start) * 1000)
        print(f"MCP: a round trip takes {statistics.median(times):.2f} ms (median of {len(times)})")


def main() -> None:
    root = tempfile.mkdtemp()
    (Path(root) / "a.txt").write_text("line\n" * 5)
    arguments = {"path": "a.txt", "offset": 1, "limit": 5}
    overhead("nothing", Toolset([nothing]), nothing, arguments)
    with Workspace(root) as ws:
        assert ws.tools().call("read", arguments).content == ws.read(**arguments).text
        overhead("read", ws.tools(), ws.read, arguments)
    asyncio.run(round_trips(root))


if __name__ == "__main__":
    main()
