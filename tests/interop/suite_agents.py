"""The agent of each framework, with a scripted model, does one task; `test_backends.py` runs this."""

import json

import pytest
from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai_harness.filesystem import FileSystem
from pydantic_ai_harness.shell import Shell

from agentfs.frameworks import deepagents, pydantic_ai
from tests.frameworks.scenario import CAT, FIRST_EDIT, RUN, SECOND_EDIT, check_answers, task
from tests.frameworks.scripted import Script, client

EDITOR = "str_replace_based_edit_tool"


def calls(edit, run, secret):
    """Return the calls of the task, in the words of a framework."""
    return [edit(*FIRST_EDIT), run(RUN), edit(*SECOND_EDIT), run(RUN), secret, run(CAT)]


# pydantic-ai, and the agent of its harness.


async def told_by_pydantic_ai(backend, capabilities, calls):
    told = []

    async def model(messages, _):
        number = sum(isinstance(each, ModelResponse) for each in messages)
        told.append(str([getattr(part, "content", "") for part in messages[-1].parts]))
        if number < len(calls):
            name, given = calls[number]
            yield {0: DeltaToolCall(name=name, json_args=json.dumps(given), tool_call_id=str(number))}
        else:
            yield "done"

    async def ignore(_, events):
        async for _ in events:
            pass

    agent = PydanticAgent(FunctionModel(stream_function=model), capabilities=capabilities)
    await agent.run("go", workspace=backend, event_stream_handler=ignore)
    return told[1:]


def pydantic_calls(run):
    return calls(
        lambda old, new: ("edit_file", {"path": "app.py", "old_text": old, "new_text": new}),
        lambda command: (run, {"command": command}),
        ("read_file", {"path": ".env"}),
    )


async def with_pydantic_ai(ws):
    backend = pydantic_ai.WorkspaceBackend(ws)
    return await told_by_pydantic_ai(backend, [FileSystem(), Shell()], pydantic_calls("run_command"))


# deepagents.


class DeepModel(GenericFakeChatModel):
    def bind_tools(self, tools, **_):
        return self


def told_by_deepagents(backend, calls):
    turns = [
        AIMessage("", tool_calls=[{"name": name, "args": given, "id": str(number)}])
        for number, (name, given) in enumerate(calls)
    ]
    agent = create_deep_agent(DeepModel(messages=iter([*turns, AIMessage("done")])), backend=backend)
    done = agent.invoke({"messages": [{"role": "user", "content": "go"}]})
    return [str(each.content) for each in done["messages"] if isinstance(each, ToolMessage)]


async def with_deepagents(ws):
    app = f"{ws.root}/app.py"
    return told_by_deepagents(deepagents.Backend(ws), calls(
        lambda old, new: ("edit_file", {"file_path": app, "old_string": old, "new_string": new}),
        lambda command: ("execute", {"command": command}),
        ("read_file", {"file_path": f"{ws.root}/.env"}),
    ))  # fmt: skip


# Anthropic: its own types of tools in a loop. `calls_in_frameworks.py` has the tool runner of its SDK.


async def with_anthropic_types(ws):
    def command(path, **given):
        return EDITOR, {"path": path, **given}

    script = Script(*calls(
        lambda old, new: command("app.py", command="str_replace", old_str=old, new_str=new),
        lambda line: ("bash", {"command": line}), command(".env", command="view"),
    ), ("bash", {"restart": True}))  # fmt: skip
    tools = ws.tools(dialect="text-editor") + ws.tools(["run"]) + ws.tools(dialect="memory")
    schemas = tools.schemas("anthropic", native=True)
    assert [each["type"] for each in schemas] == [
        "text_editor_20250728", "bash_20250124", "memory_20250818",
    ]  # fmt: skip
    messages = [{"role": "user", "content": "go"}]
    while True:
        answer = client(script).messages.create(model="m", max_tokens=9, messages=messages, tools=schemas)
        messages.append({"role": "assistant", "content": answer.content})
        if answer.stop_reason != "tool_use":
            break
        messages += await tools.aanswer(block for block in answer.content if block.type == "tool_use")
    assert [failed for _, failed in script.answers] == [False] * 4 + [True, False, False]
    return [text for text, _ in script.answers[:-1]]


@pytest.mark.parametrize("agent", [with_pydantic_ai, with_deepagents, with_anthropic_types])
async def test_an_agent_fixes_the_program_sees_no_secret_and_is_undone(tmp_path, agent):
    with task(tmp_path) as ws:
        _, first, _, second, refused, cat = await agent(ws)
        check_answers(first, second, refused, cat)
