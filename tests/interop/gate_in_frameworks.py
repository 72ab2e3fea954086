"""Make the calls of the gate's table through the adapter of a framework, and print the verdicts that differ.

python gate_in_frameworks.py FRAMEWORK
"""

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace

from agentfs import CallContext, Toolset, Workspace, tool
from tests.interop.calls_of_adapters import openai_model, pydantic_model
from tests.tools.gate_table import COLUMNS, KINDS, Cell


def pydantic_ai(tools, cell):
    from pydantic_ai import Agent
    from pydantic_ai.messages import ToolReturnPart

    from agentfs.frameworks import pydantic_ai as adapter

    model = pydantic_model(iter([[("1", cell.name, cell.arguments)]]), {})
    done = Agent(model, toolsets=[adapter.toolset(tools)]).run_sync("go")
    parts = [part for message in done.all_messages() for part in message.parts]
    [part] = [part for part in parts if isinstance(part, ToolReturnPart)]
    return part.content


def langchain(tools, cell):
    from agentfs.frameworks import langchain as adapter

    (tool,) = adapter.tools(tools)
    sent = {"type": "tool_call", "id": "1", "name": cell.name, "args": cell.arguments}
    if cell.kind in ("method", "mcp"):
        return asyncio.run(tool.ainvoke(sent)).text
    return tool.invoke(sent).text


def openai_agents(tools, cell):
    from agents import Agent, Runner

    from agentfs.frameworks import openai_agents as adapter

    model = openai_model(iter([[("1", cell.name, cell.arguments)]]), {})
    done = Runner.run_sync(Agent("table", model=model, tools=adapter.tools(tools)), "go")
    [item] = [item for item in done.new_items if item.type == "tool_call_output_item"]
    return item.raw_item["output"]


FRAMEWORKS = {"pydantic-ai": pydantic_ai, "langchain": langchain, "openai-agents": openai_agents}


CONTEXTS = {"pydantic-ai": "RunContext", "langchain": "dict", "openai-agents": "ToolContext"}


@tool(effect="none")
def whose(ctx: CallContext) -> str:
    """Return the class of the framework's own context."""
    return type(ctx.context).__name__


def main(name: str) -> None:
    found, cells = {}, 0
    said = FRAMEWORKS[name](Toolset([whose]), SimpleNamespace(name="whose", kind="function", arguments={}))
    if said != CONTEXTS[name]:
        found["context"] = said
    for kind in KINDS:
        for column, setting in COLUMNS.items():
            cell = Cell(kind, column, Path(name, kind, column))
            with Workspace(cell.top, **cell.options()) as ws:
                said = FRAMEWORKS[name](Toolset([cell.tool(ws)], workspace=ws), cell)
            verdict, cells = cell.verdict(cell.record(), said), cells + 1
            if verdict != setting.verdict:
                found[f"{kind} {column}"] = [str(verdict), str(setting.verdict), said[:200]]
    print(json.dumps([cells, found]))  # noqa: T201 - the test reads it


if __name__ == "__main__":
    main(*sys.argv[1:])
