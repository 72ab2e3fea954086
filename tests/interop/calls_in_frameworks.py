"""Run the program of docs/how-to/frameworks.md for a framework, make calls through the framework's own
machinery to the tools that the program made, and print what came back.

    python calls_in_frameworks.py FRAMEWORK

Runs in an environment that has the frameworks; `test_frameworks.py` compares with `tools.call`.
"""

import asyncio
import contextlib
import io
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from scripts.pages import blocks_of
from tests.interop.calls_of_adapters import pydantic_model

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "frameworks.md"
# In the order of the calls; each framework makes every one of them.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read", {"path": "a.txt", "limit": 1}),
    ("grep", {"pattern": "t[wh]", "output_mode": "count"}),
    ("read", {"path": "missing.txt"}), ("ls", {}), ("glob", {"pattern": "*.txt", "limit": 1}),
    ("multi_edit", {"path": "a.txt", "edits": [{"old_string": "one", "new_string": "1"}]}),
    ("write", {"path": "b.txt", "content": "new\n"}),
    ("edit", {"path": "b.txt", "old_string": "new", "new_string": "old"}),
]  # fmt: skip


def openai_agents(program, calls):
    from agents.tool_context import ToolContext

    tools = {tool.name: tool for tool in program["agent"].tools}
    for name, arguments in calls:
        text = json.dumps(arguments)
        context = ToolContext(None, tool_name=name, tool_call_id="1", tool_arguments=text)
        yield asyncio.run(tools[name].on_invoke_tool(context, text))


def pydantic_ai(program, calls):
    from pydantic_ai.messages import ToolReturnPart

    model = pydantic_model(iter([[(name, name, arguments)] for name, arguments in calls]), {})
    messages = program["agent"].run_sync("go", model=model).all_messages()
    yield from [part.content for each in messages for part in each.parts if isinstance(part, ToolReturnPart)]


def anthropic(program, calls):
    """The tool runner, over a stand-in of the API."""
    from tests.frameworks.scripted import Script, client

    script = Script(*calls)
    runner = client(script).beta.messages.tool_runner(
        model="m", max_tokens=9, tools=program["tools"], messages=[{"role": "user", "content": "go"}]
    )
    runner.until_done()
    yield from [text for text, _ in script.answers]


def langchain(program, calls):
    tools = {tool.name: tool for tool in program["langchain"].tools(program["tools"])}
    for name, arguments in calls:
        call = {"type": "tool_call", "id": "1", "name": name, "args": arguments}
        yield tools[name].invoke(call).content


def smolagents(program, calls):
    tools = {tool.name: tool for tool in program["tools"]}
    for name, arguments in calls:
        yield tools[name](**arguments)


def llm(program, calls):
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
        response = model.prompt("go", tools=program["tools"])
        response.text()
        yield response.execute_tool_calls()[0].output


def mcp(code, calls):
    """The program is a server, and runs in a process of its own."""
    from mcp import Client, StdioServerParameters

    async def main():
        server = StdioServerParameters(command=sys.executable, args=["-c", code], env={**os.environ})
        async with Client(server) as client:
            return [(await client.call_tool(*call)).content[0].text for call in calls]

    yield from asyncio.run(main())


def google_genai(program, calls):
    from google.genai import _extra_utils, types

    for function in program["tools"]:
        assert types.FunctionDeclaration.from_callable_with_api_option(callable=function).parameters
    by_name = _extra_utils.get_function_map(types.GenerateContentConfig(tools=program["tools"]))
    for name, arguments in calls:
        if name == "multi_edit":  # it takes no list of records, as the page says
            yield None
        else:
            yield _extra_utils.invoke_function_from_dict_args(arguments, by_name[name])


def google_adk(program, calls):
    tools = {tool.name: tool for tool in program["tools"]}
    for tool in tools.values():
        assert tool._get_declaration() is not None
    context = SimpleNamespace(tool_confirmation=None, state={}, actions=None)
    for name, arguments in calls:
        yield asyncio.run(tools[name].run_async(args=arguments, tool_context=context))


def autogen(program, calls):
    from autogen_core import CancellationToken

    tools = {tool.name: tool for tool in program["tools"]}
    for name, arguments in calls:
        yield asyncio.run(tools[name].run_json(arguments, CancellationToken()))


def agent_framework(program, calls):
    tools = {tool.name: tool for tool in program["tools"]}
    for name, arguments in calls:
        content = asyncio.run(tools[name].invoke(arguments=arguments))
        yield content if isinstance(content, str) else content[0].text


def llama_index(program, calls):
    tools = {tool.metadata.name: tool for tool in program["tools"]}
    for name, arguments in calls:
        yield tools[name].call(**arguments).content


# In the order of the page.
FRAMEWORKS = {
    "pydantic-ai": pydantic_ai, "langchain": langchain, "openai-agents": openai_agents, "mcp": mcp,
    "anthropic": anthropic, "smolagents": smolagents, "llm": llm, "google-genai": google_genai,
    "google-adk": google_adk, "autogen": autogen, "agent-framework": agent_framework,
    "llama-index": llama_index,
}  # fmt: skip


def programs():
    """Return the program that the page has for each framework, without those that ask for approval."""
    blocks = [block.content for block in blocks_of(PAGE) if block.language == "py"]
    shown = [block for block in blocks if "on_ask=ask" not in block]
    return dict(zip(FRAMEWORKS, shown[-len(FRAMEWORKS) :], strict=True))


def main(name: str) -> None:
    printed = io.StringIO()
    program = programs()[name]
    if name != "mcp":
        code, program = program, {}
        with contextlib.redirect_stdout(printed):
            exec(code, program)
    print(json.dumps([printed.getvalue(), list(FRAMEWORKS[name](program, CALLS))]))


if __name__ == "__main__":
    main(*sys.argv[1:])
