"""Anthropic: its own tool types in its tool runner and in a loop, with a scripted model behind its client."""

import json

import httpx2 as httpx
import pytest
from anthropic import AsyncAnthropic
from anthropic.lib.tools import ToolError
from anthropic.types.beta import BetaMemoryTool20250818ViewCommand

from agentfs import Workspace
from agentfs.frameworks.anthropic import AgentfsAsyncMemoryTool, AgentfsMemoryTool
from tests.commands.conftest import SECRET
from tests.frameworks.scripted import Script, client

COMMANDS = [
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": "/memories/a.txt", "file_text": "one\n"},
    {"command": "str_replace", "path": "/memories/a.txt", "old_str": "one", "new_str": "two"},
    {"command": "insert", "path": "/memories/a.txt", "insert_line": 1, "insert_text": "three"},
    {"command": "rename", "old_path": "/memories/a.txt", "new_path": "/memories/b.txt"},
    {"command": "view", "path": "/memories/.env"},
    {"command": "delete", "path": "/memories/a.txt"},
    {"command": "view", "path": "/memories/b.txt", "view_range": [2, 2]},
]


def check_memory(script, tmp_path):
    told = [text for text, _ in script.answers]
    assert [failed for _, failed in script.answers] == [False] * 5 + [True, True, False]
    assert told[3] == "The file /memories/a.txt has been edited."
    assert "is protected" in told[5]
    assert told[6].startswith("Error: The path /memories/a.txt does not exist")
    assert told[7].endswith("     2\tthree")
    assert script.requests[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert (tmp_path / "memories/b.txt").read_text() == "two\nthree\n"
    assert SECRET not in json.dumps(script.requests)


@pytest.fixture
def ws(tmp_path):
    (tmp_path / "memories").mkdir()
    (tmp_path / "memories/.env").write_text(SECRET)
    with Workspace(tmp_path) as ws:
        yield ws


def test_the_tool_runner_uses_the_memory(ws, tmp_path):
    script = Script(*(("memory", command) for command in COMMANDS))
    runner = client(script).beta.messages.tool_runner(
        model="m", max_tokens=9, tools=[AgentfsMemoryTool(ws)], messages=[{"role": "user", "content": "go"}]
    )
    runner.until_done()
    check_memory(script, tmp_path)
    assert ws.undo(4).undoable == 0
    assert [each.name for each in (tmp_path / "memories").iterdir()] == [".env"]


async def test_the_asynchronous_tool_runner_uses_it(ws, tmp_path):
    script = Script(*(("memory", command) for command in COMMANDS))
    transport = httpx.MockTransport(script.asynchronous)
    asynchronous = AsyncAnthropic(api_key="none", http_client=httpx.AsyncClient(transport=transport))
    runner = asynchronous.beta.messages.tool_runner(
        model="m",
        max_tokens=9,
        tools=[AgentfsAsyncMemoryTool(ws)],
        messages=[{"role": "user", "content": "go"}],
    )
    await runner.until_done()
    check_memory(script, tmp_path)


async def test_a_program_may_execute_commands_of_the_sdks_types(ws):
    viewed = BetaMemoryTool20250818ViewCommand(command="view", path="/memories")
    own, asynchronous = AgentfsMemoryTool(ws, cache_control={"type": "ephemeral"}), AgentfsAsyncMemoryTool(ws)
    assert own.to_dict()["cache_control"] == {"type": "ephemeral"}
    assert own.execute(viewed) == own.view(viewed) == await asynchronous.execute(viewed)
    ws.close()
    for call in (lambda: own.view(viewed), lambda: own.call({"command": "wrong"}), lambda: own.call("{")):
        with pytest.raises(ToolError):
            call()
    with pytest.raises(ToolError):
        await asynchronous.view(viewed)
