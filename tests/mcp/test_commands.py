"""Shell commands over MCP, where the policy offers them."""

import asyncio
import os

import pytest

from tests.history.judges import snapshot
from tests.mcp.servers import client, fresh, process_client, told

PID = os.getpid()  # in the arguments of commands that are looked for


@pytest.fixture(params=["staged", "recorded"])
def way(request):
    return request.param


def policy_file(directory, way, more=""):
    file = directory.parent / f"{directory.name}.toml"
    file.write_text(f'run = "{way}"\n{more}')
    return ["--policy", str(file)]


def processes(mark):
    ids = [each for each in os.listdir("/proc") if each.isdecimal()]
    found = []
    for each in ids:
        try:
            with open(f"/proc/{each}/cmdline", "rb") as file:
                found += [each] * (mark.encode() in file.read())
        except OSError:
            continue
    return found


async def until(found):
    for _ in range(400):
        if found():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not happen")


async def test_no_command_is_offered_without_a_policy(tree):
    async with client(tree) as connected:
        names = {tool.name for tool in (await connected.list_tools()).tools}
        assert not names & {"run", "output", "stop"}
        assert (await connected.call_tool("run", {"command": "touch made"})).is_error
    assert not (tree / "made").exists()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_command_runs_and_is_undone(tree, way, mode):
    before = snapshot(tree)
    async with process_client(tree, *policy_file(tree, way), mode=mode) as connected:
        tools = {tool.name: tool for tool in (await connected.list_tools()).tools}
        assert ("output" in tools, "stop" in tools) == ((way == "recorded"),) * 2
        assert tools["run"].annotations.read_only_hint is False
        result = await connected.call_tool("run", {"command": "echo said; echo 1 >> a.txt; mkdir n; exit 3"})
        assert result.is_error is False  # an exit status is a result
        assert "said" in told(result)
        assert "Exit status 3" in told(result)
        assert "a.txt" in told(result)
        assert snapshot(tree) != before
        assert not (await connected.call_tool("undo")).is_error
    assert snapshot(tree) == before


@pytest.mark.full
async def test_a_cancelled_call_ends_its_command(tree, way):
    sleep = f"sleep 51.{PID}"
    async with process_client(tree, *policy_file(tree, way), command=fresh) as connected:
        call = asyncio.create_task(connected.call_tool("run", {"command": f"touch made; {sleep}"}))
        await until(lambda: processes(sleep.replace(" ", "\0")))
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await until(lambda: not processes(sleep.replace(" ", "\0")))
        assert not (await connected.call_tool("ls")).is_error
    assert (tree / "made").exists() == (way == "recorded")


async def test_a_command_in_the_background_ends_with_the_server(tree):
    sleep = f"sleep 52.{PID}"
    mark = sleep.replace(" ", "\0")
    async with process_client(tree, *policy_file(tree, "recorded")) as connected:
        started = await connected.call_tool("run", {"command": f"echo ready; {sleep}", "background": True})
        assert "c1" in told(started)
        await until(lambda: processes(mark))
        shown = await connected.call_tool("output", {"id": "c1"})
        assert "ready" in told(shown)
        stopped = await connected.call_tool("stop", {"id": "c1"})
        assert not stopped.is_error
        assert not processes(mark)
        await connected.call_tool("run", {"command": sleep, "background": True})
        await until(lambda: processes(mark))
    await until(lambda: not processes(mark))
