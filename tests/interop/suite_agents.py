"""The agent of each framework, with a scripted model, does one task; `test_backends.py` runs this."""

import asyncio
import json

import pytest
from acp import RequestError
from agents import Agent, ApplyPatchTool, RunConfig, Runner, ShellTool
from agents.sandbox import SandboxAgent, SandboxRunConfig
from agents.testing import ScriptedModel
from anthropic import beta_tool
from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from openai.types.responses import (
    ResponseApplyPatchToolCall,
    ResponseCustomToolCall,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from openai.types.responses.response_function_shell_tool_call import ResponseFunctionShellToolCall
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai_harness.coder import Coder
from pydantic_ai_harness.filesystem import FileSystem
from pydantic_ai_harness.shell import Shell

from agentfs.frameworks import deepagents, openai_agents, pydantic_ai
from agentfs.frameworks.acp import WorkspaceClient
from tests.commands.conftest import SECRET, running
from tests.frameworks.scenario import CAT, FIRST_EDIT, RUN, SECOND_EDIT, check_answers, task
from tests.frameworks.scripted import Script, User, client, turn

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


# OpenAI Agents: the tools that run here, and the agent in a sandbox.


def patch(old, new):
    return f"@@\n-{old}\n+{new}\n"


async def told_by_openai(agent, calls, **config):
    text = ResponseOutputText(type="output_text", text="done", annotations=[])
    last = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
    calls = [call.model_copy(update={"call_id": str(number)}) for number, call in enumerate(calls)]
    agent.model = ScriptedModel([[call] for call in calls] + [[last]])
    config = RunConfig(tracing_disabled=True, **config)
    done = await Runner.run(agent, "go", run_config=config, max_turns=20)
    outputs = [item.output for item in done.new_items if item.type == "tool_call_output_item"]
    return [output if isinstance(output, str) else json.dumps(output) for output in outputs]


async def with_openai_tools(ws):
    def patch_call(path, diff):
        operation = {"type": "update_file", "path": path, "diff": diff}
        return ResponseApplyPatchToolCall.model_validate(
            {"id": "p", "call_id": "1", "type": "apply_patch_call", "status": "completed",
             "operation": operation}
        )  # fmt: skip

    def shell_call(command):
        return ResponseFunctionShellToolCall.model_validate(
            {"id": "s", "call_id": "1", "type": "shell_call", "status": "completed",
             "action": {"commands": [command]}}
        )  # fmt: skip

    tools = [ApplyPatchTool(editor=openai_agents.editor(ws)), ShellTool(executor=openai_agents.shell(ws))]
    return await told_by_openai(Agent("files", tools=tools), calls(
        lambda old, new: patch_call("app.py", patch(old, new)), shell_call,
        patch_call(".env", patch(SECRET, "x")),
    ))  # fmt: skip


async def with_openai_sandbox(ws):
    def change(path, old, new):
        text = f"*** Begin Patch\n*** Update File: {path}\n{patch(old, new)}*** End Patch"
        return ResponseCustomToolCall(type="custom_tool_call", call_id="1", name="apply_patch", input=text)

    def execute(command):
        given = json.dumps({"cmd": command})
        return ResponseFunctionToolCall(
            type="function_call", call_id="1", name="exec_command", arguments=given
        )

    config = SandboxRunConfig(session=openai_agents.sandbox(ws))
    return await told_by_openai(SandboxAgent("files"), calls(
        lambda old, new: change("app.py", old, new), execute, change(".env", SECRET, "x"),
    ), sandbox=config)  # fmt: skip


# The Agent Client Protocol: an agent that works through its client.


class Host(WorkspaceClient, User):
    def __init__(self, workspace):
        WorkspaceClient.__init__(self, workspace)
        User.__init__(self)


async def with_acp(ws):
    async def do(connection):
        async def edit(old, new, name="app.py"):
            path = f"{ws.root}/{name}"
            try:
                read = await connection.read_text_file(session_id="s1", path=path)
                await connection.write_text_file(
                    session_id="s1", path=path, content=read.content.replace(old, new)
                )
            except RequestError as error:
                return str(error)

        async def run(command):
            terminal = (await connection.create_terminal(session_id="s1", command=command)).terminal_id
            await connection.wait_for_terminal_exit(session_id="s1", terminal_id=terminal)
            shown = await connection.terminal_output(session_id="s1", terminal_id=terminal)
            await connection.release_terminal(session_id="s1", terminal_id=terminal)
            return shown.output

        return [await each for each in calls(edit, run, edit(SECRET, "x", ".env"))]

    return await turn(Host(ws), do)


# Anthropic: its own types of tools in a loop, and the tool runner of its SDK.


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


async def with_anthropic_runner(ws):
    script = Script(*calls(
        lambda old, new: ("edit", {"path": "app.py", "old_string": old, "new_string": new}),
        lambda line: ("run", {"command": line}), ("read", {"path": ".env"}),
    ))  # fmt: skip
    tools = [beta_tool(each) for each in ws.tools(["edit", "run", "read"]).functions()]
    client(script).beta.messages.tool_runner(
        model="m", max_tokens=9, tools=tools, messages=[{"role": "user", "content": "go"}]
    ).until_done()
    return [text for text, _ in script.answers]


@pytest.mark.parametrize("agent", [
    with_pydantic_ai, with_deepagents, with_openai_tools, with_openai_sandbox, with_acp,
    with_anthropic_types, with_anthropic_runner,
])  # fmt: skip
async def test_an_agent_fixes_the_program_sees_no_secret_and_is_undone(tmp_path, agent):
    with task(tmp_path) as ws:
        _, first, _, second, refused, cat = await agent(ws)
        check_answers(first, second, refused, cat)


async def until(condition):
    """Wait until a condition holds, for 30 s at most."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - a condition of other processes
            await asyncio.sleep(0.02)


async def test_the_coder_does_it_with_jobs_that_outlive_their_command(tmp_path):
    """Jobs need a recorded workspace, where a command sees what its user may see."""
    with task(tmp_path, "recorded") as ws:
        *own, _ = pydantic_calls("shell")
        job = ("shell", {"command": "echo $$; sleep 4321 & echo started; wait", "mode": "background"})
        backend = pydantic_ai.WorkspaceBackend(ws)
        _, first, _, second, refused, started = await told_by_pydantic_ai(backend, [Coder()], [*own, job])
        check_answers(first, second, refused)
        assert '"exit_code": 1' in first.replace("\\", "")
        assert '"exit_code": 0' in second.replace("\\", "")
        assert '"exit_code": null' in started.replace("\\", "")
        await until(lambda: running("sleep 4321"))
    await until(lambda: not running("sleep 4321"))  # it ends with the workspace
