"""Anthropic: its own tool types in its tool runner and in a loop, with a scripted model behind its client."""

import json

import httpx2 as httpx
import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.tools import ToolError
from anthropic.types.beta import BetaMemoryTool20250818ViewCommand

from agentfs import Workspace
from agentfs.frameworks.anthropic import AgentfsAsyncMemoryTool, AgentfsMemoryTool
from tests.commands.conftest import SECRET
from tests.frameworks.scenario import CAT, FIRST_EDIT, RUN, SECOND_EDIT, check_answers, task

EDITOR = "str_replace_based_edit_tool"


class Script:
    """A server of the messages API that answers with one tool call a turn, and keeps the requests."""

    def __init__(self, *calls):
        self.calls, self.requests = list(calls), []

    def __call__(self, request):
        self.requests.append(json.loads(request.content))
        number = len(self.requests) - 1
        content = [{"type": "text", "text": "done"}]
        if number < len(self.calls):
            name, given = self.calls[number]
            content = [{"type": "tool_use", "id": str(number), "name": name, "input": given}]
        answer = {
            "id": "m", "type": "message", "role": "assistant", "model": "m", "content": content,
            "stop_reason": "tool_use" if number < len(self.calls) else "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
        return httpx.Response(200, json=answer)

    async def asynchronous(self, request):
        return self(request)

    @property
    def answers(self):
        """The text and the failure of each result that the model got."""
        sent = [message for request in self.requests for message in request["messages"]]
        blocks = [block for each in sent if isinstance(each["content"], list) for block in each["content"]]
        results = {each["tool_use_id"]: each for each in blocks if each["type"] == "tool_result"}.values()
        texts = [each["content"] for each in results]
        texts = [text if isinstance(text, str) else text[0]["text"] for text in texts]
        return [(text, each.get("is_error", False)) for text, each in zip(texts, results, strict=True)]


def client(script):
    return Anthropic(api_key="none", http_client=httpx.Client(transport=httpx.MockTransport(script)))


def edit(path, texts):
    old, new = texts
    return EDITOR, {"command": "str_replace", "path": path, "old_str": old, "new_str": new}


async def test_a_loop_with_anthropics_own_types_does_the_task(tmp_path):
    with task(tmp_path) as ws:
        tools = ws.tools(dialect="text-editor") + ws.tools(["run"]) + ws.tools(dialect="memory")
        script = Script(
            edit("app.py", FIRST_EDIT), ("bash", {"command": RUN}), ("bash", {"restart": True}),
            edit("app.py", SECOND_EDIT), ("bash", {"command": RUN}),
            (EDITOR, {"command": "view", "path": ".env"}), ("bash", {"command": CAT}),
        )  # fmt: skip
        messages = [{"role": "user", "content": "go"}]
        while True:
            answer = client(script).messages.create(
                model="m", max_tokens=9, messages=messages, tools=tools.schemas("anthropic", native=True)
            )
            messages.append({"role": "assistant", "content": answer.content})
            if answer.stop_reason != "tool_use":
                break
            messages += await tools.aanswer(block for block in answer.content if block.type == "tool_use")
        assert script.requests[0]["tools"] == [
            {"type": "text_editor_20250728", "name": EDITOR}, {"type": "bash_20250124", "name": "bash"},
            {"type": "memory_20250818", "name": "memory"},
        ]  # fmt: skip
        (_, first, restarted, _, second, refused, cat) = script.answers
        check_answers(first[0], second[0], refused[0], cat[0])
        assert refused[1]
        assert not restarted[1]


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
