"""Make real calls through each framework's own machinery, without a network, and print what came back.

    python calls_in_frameworks.py DIRECTORY [FRAMEWORK …]

Runs in an environment that has the frameworks; `test_frameworks.py` makes it, and compares with `tools.call`.
"""

import asyncio
import json
import sys
from types import SimpleNamespace
from typing import Any

from agentfs import Workspace

# In the order of the calls; each framework makes every one of them.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read", {"path": "a.txt", "limit": 1}),
    ("grep", {"pattern": "t[wh]", "output_mode": "count"}),
    ("read", {"path": "missing.txt"}),
    ("ls", {}),
    ("glob", {"pattern": "*.txt", "limit": 1}),
    ("multi_edit", {"path": "a.txt", "edits": [{"old_string": "one", "new_string": "1"}]}),
    ("write", {"path": "b.txt", "content": "new\n"}),
    ("edit", {"path": "b.txt", "old_string": "new", "new_string": "old"}),
]


def openai_agents(functions, calls):
    from agents import function_tool
    from agents.tool_context import ToolContext

    tools = {function.__name__: function_tool(function) for function in functions}
    for name, arguments in calls:
        text = json.dumps(arguments)
        context = ToolContext(None, tool_name=name, tool_call_id="1", tool_arguments=text)
        yield asyncio.run(tools[name].on_invoke_tool(context, text))


def pydantic_ai(functions, calls):
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    planned = iter(calls)

    def model(messages, info):
        call = next(planned, None)
        return ModelResponse([ToolCallPart(*call) if call else TextPart("done")])

    messages = Agent(FunctionModel(model), tools=functions).run_sync("go").all_messages()
    yield from [part.content for each in messages for part in each.parts if isinstance(part, ToolReturnPart)]


def anthropic(functions, calls):
    """The tool runner, over a stand-in of the API."""
    import httpx2
    from anthropic import Anthropic, beta_tool

    planned = iter(calls)
    sent = []

    def api(request):
        body = json.loads(request.content)
        sent.append(body["messages"])
        call = next(planned, None)
        use = {"type": "tool_use", "id": "t", "name": call[0], "input": call[1]} if call else None
        message = {
            "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None,
            "content": [use or {"type": "text", "text": "done"}],
            "stop_reason": "tool_use" if use else "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
        return httpx2.Response(200, json=message)

    client = Anthropic(api_key="none", http_client=httpx2.Client(transport=httpx2.MockTransport(api)))
    runner = client.beta.messages.tool_runner(
        model="m", max_tokens=9, tools=[beta_tool(function) for function in functions],
        messages=[{"role": "user", "content": "go"}],
    )  # fmt: skip
    runner.until_done()
    for messages in sent[1:]:
        content = messages[-1]["content"][0]["content"]
        yield content if isinstance(content, str) else content[0]["text"]


def langchain(functions, calls):
    from langchain_core.tools import tool

    tools = {function.__name__: tool(function) for function in functions}
    for name, arguments in calls:
        call = {"type": "tool_call", "id": "1", "name": name, "args": arguments}
        yield tools[name].invoke(call).content


def smolagents(functions, calls):
    from smolagents import tool

    tools = {function.__name__: tool(function) for function in functions}
    for name, arguments in calls:
        yield tools[name](**arguments)


def llm(functions, calls):
    import llm as package

    class Scripted(package.Model):
        model_id = "scripted"
        supports_tools = True

        def execute(self, prompt, stream, response, conversation):
            name, arguments = next(self.planned)
            response.add_tool_call(package.ToolCall(name=name, arguments=arguments))
            yield ""

    model = Scripted()
    model.planned = iter(calls)
    for _ in calls:
        response = model.prompt("go", tools=functions)
        response.text()
        yield response.execute_tool_calls()[0].output


def mcp(functions, calls):
    from mcp import Client
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("agentfs")
    for function in functions:
        server.add_tool(function)

    async def main():
        async with Client(server) as client:
            return [(await client.call_tool(*call)).content[0].text for call in calls]

    yield from asyncio.run(main())


def google_genai(functions, calls):
    from google.genai import _extra_utils, types

    declared = [types.FunctionDeclaration.from_callable_with_api_option(callable=f) for f in functions
                if f.__name__ != "multi_edit"]  # fmt: skip
    assert declared[0].parameters
    by_name = _extra_utils.get_function_map(types.GenerateContentConfig(tools=functions))
    for name, arguments in calls:
        if name == "multi_edit":  # it takes no list of records; docs/frameworks.md says what to do instead
            yield None
        else:
            yield _extra_utils.invoke_function_from_dict_args(arguments, by_name[name])


def autogen(functions, calls):
    from autogen_core import CancellationToken
    from autogen_core.tools import FunctionTool

    tools = {function.__name__: FunctionTool(function, description="x") for function in functions}
    for name, arguments in calls:
        yield asyncio.run(tools[name].run_json(arguments, CancellationToken()))


def agent_framework(functions, calls):
    from agent_framework import tool

    tools = {function.__name__: tool(function) for function in functions}
    for name, arguments in calls:
        content = asyncio.run(tools[name].invoke(arguments=arguments))
        yield content if isinstance(content, str) else content[0].text


def llama_index(functions, calls):
    from llama_index.core.tools import FunctionTool

    tools = {function.__name__: FunctionTool.from_defaults(function) for function in functions}
    for name, arguments in calls:
        yield tools[name].call(**arguments).content


def google_adk(functions, calls):
    from google.adk.tools import FunctionTool

    tools = {function.__name__: FunctionTool(function) for function in functions}
    for tool in tools.values():
        assert tool._get_declaration() is not None
    context = SimpleNamespace(tool_confirmation=None, state={}, actions=None)
    for name, arguments in calls:
        yield asyncio.run(tools[name].run_async(args=arguments, tool_context=context))


FRAMEWORKS = {
    "openai-agents": openai_agents, "pydantic-ai": pydantic_ai, "anthropic": anthropic,
    "langchain": langchain,
    "smolagents": smolagents, "llm": llm, "mcp": mcp, "google-genai": google_genai, "autogen": autogen,
    "agent-framework": agent_framework, "llama-index": llama_index, "google-adk": google_adk,
}  # fmt: skip


def main(directory: str, *chosen: str) -> None:
    answers = {}
    for name in chosen:
        with Workspace(f"{directory}/{name}") as ws:
            try:
                answers[name] = list(FRAMEWORKS[name](ws.tools().functions(), CALLS))
            except Exception as error:  # one that fails must not hide how the others fare
                answers[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
