"""Make the same calls through the adapter of each framework, with a stand-in model, and print what arrived.

    python calls_of_adapters.py FRAMEWORK

A run reads a missing file and an image. Then it writes two files: the user allows the first and refuses the
other.
"""

import asyncio
import base64
import json
import os
import sys

from agentfs import Policy, Workspace
from agentfs.frameworks import ask

CALLS = [
    ("failing", "read", {"path": "missing.txt"}),
    ("image", "read", {"path": "dot.png"}),
    ("allowed", "write", {"path": "allowed.txt", "content": "new\n"}),
    ("refused", "write", {"path": "refused.txt", "content": "new\n"}),
]
TURNS = [CALLS[:2], CALLS[2:]]


def text_of(arguments):
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def pydantic_model(turns, seen):
    """Return a model of pydantic-ai that makes the calls of each turn, and keeps what it was sent."""
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def model(messages, info):
        seen["instructions"] = info.instructions
        seen["schemas"] = {tool.name: tool.parameters_json_schema for tool in info.function_tools}
        calls = [ToolCallPart(name, given, tool_call_id=key) for key, name, given in next(turns, ())]
        return ModelResponse(calls or [TextPart("done")])

    return FunctionModel(model)


def openai_model(turns, seen):
    """Return such a model of OpenAI's agents."""
    from agents import Model, ModelResponse, Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    class StandIn(Model):
        async def get_response(self, system_instructions, tools, **_):
            seen["instructions"] = system_instructions
            seen["schemas"] = {tool.name: tool.params_json_schema for tool in tools}
            calls = [
                {"type": "function_call", "call_id": key, "name": name, "arguments": text_of(given)}
                for key, name, given in next(turns, ())
            ]
            text = ResponseOutputText(type="output_text", text="done", annotations=[])
            message = {"id": "m", "type": "message", "role": "assistant", "status": "completed"}
            output = [ResponseFunctionToolCall(**each) for each in calls]
            output = output or [ResponseOutputMessage(**message, content=[text])]
            return ModelResponse(output=output, usage=Usage(), response_id=None)

        def stream_response(self, *_, **__):
            raise NotImplementedError

    return StandIn()


def pydantic_ai(tools):
    from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolDenied
    from pydantic_ai.messages import BinaryContent, ToolReturnPart

    from agentfs.frameworks import pydantic_ai as adapter

    seen = {}
    agent = Agent(
        pydantic_model(iter(TURNS), seen), toolsets=[adapter.toolset(tools)],
        output_type=[str, DeferredToolRequests],
    )  # fmt: skip
    first = agent.run_sync("go")
    seen["asked"] = {key: shown["diff"] for key, shown in first.output.metadata.items()}
    decided = DeferredToolResults(approvals={"allowed": True, "refused": ToolDenied("Keep it.")})
    last = agent.run_sync(message_history=first.all_messages(), deferred_tool_results=decided)
    parts = [part for message in last.all_messages() for part in message.parts]
    results = {part.tool_call_id: part for part in parts if isinstance(part, ToolReturnPart)}
    seen["answers"] = {
        key: [part.outcome, part.content[0] if isinstance(part.content, list) else part.content]
        for key, part in results.items()
    }
    image = results["image"].content[1]
    assert isinstance(image, BinaryContent)
    assert results["image"].metadata["data"]["kind"] == "image"
    return seen | {"image": base64.b64encode(image.data).decode()}


def langchain(tools):
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, SystemMessage, ToolMessage
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    from agentfs.frameworks import langchain as adapter

    turns, seen = iter(TURNS), {}

    class Model(GenericFakeChatModel):
        def bind_tools(self, tools, **_):
            functions = [convert_to_openai_tool(tool)["function"] for tool in tools]
            seen["schemas"] = {each["name"]: each["parameters"] for each in functions}
            return self

        def _generate(self, messages, *args, **kwargs):
            seen["instructions"] = next(each.text for each in messages if isinstance(each, SystemMessage))
            return super()._generate(messages, *args, **kwargs)

    def answer(calls):
        given = [{"type": "tool_call", "id": key, "name": name, "args": args} for key, name, args in calls]
        return AIMessage("" if given else "done", tool_calls=given)

    model = Model(messages=(answer(next(turns, ())) for _ in range(3)))
    agent = create_agent(
        model, adapter.tools(tools), system_prompt=tools.instructions(), checkpointer=InMemorySaver()
    )
    config = {"configurable": {"thread_id": "1"}}
    paused = agent.invoke({"messages": [("user", "go")]}, config)
    seen["asked"], resume = {}, {}
    for interrupt in paused["__interrupt__"]:
        (request,) = interrupt.value["action_requests"]
        key = request["args"]["path"].removesuffix(".txt")
        seen["asked"][key] = request["description"]
        refusal = {"decisions": [{"type": "reject", "message": "Keep it."}]}
        resume[interrupt.id] = refusal if key == "refused" else {"type": "approve"}
    done = asyncio.run(agent.ainvoke(Command(resume=resume), config))
    messages = {each.tool_call_id: each for each in done["messages"] if isinstance(each, ToolMessage)}
    seen["answers"] = {key: [message.status, message.text] for key, message in messages.items()}
    for tool in adapter.tools(tools):
        for odd in ("self", "config", "run_manager", "args"):
            call = {"type": "tool_call", "id": "1", "name": tool.name, "args": {odd: 1}}
            assert tool.invoke(call).status == asyncio.run(tool.ainvoke(call)).status == "error"
    assert messages["image"].artifact["data"]["kind"] == "image"
    return seen | {"image": messages["image"].content[1]["base64"]}


def openai_agents(tools):
    from agents import Agent, Runner

    from agentfs.frameworks import openai_agents as adapter

    seen = {}
    model = openai_model(iter([*TURNS, [], [("malformed", "read", "{"), CALLS[3]]]), seen)
    offered = adapter.tools(tools, approval=True)
    agent = Agent("files", instructions=tools.instructions(), model=model, tools=offered)
    paused = Runner.run_sync(agent, "go")
    state = paused.to_state()
    seen["asked"] = {}
    for item in paused.interruptions:
        seen["asked"][item.raw_item.call_id] = item.raw_item.arguments
        decide = state.reject if item.raw_item.call_id == "refused" else state.approve
        decide(item)
    done = Runner.run_sync(agent, state)
    items = {
        item.raw_item["call_id"]: item for item in done.new_items if item.type == "tool_call_output_item"
    }
    outputs = {key: item.raw_item["output"] for key, item in items.items()}
    seen["answers"] = {
        key: [items[key].custom_data, output if isinstance(output, str) else output[0]["text"]]
        for key, output in outputs.items()
    }
    run = Runner.run_sync(agent.clone(tools=adapter.tools(tools)), "go")
    assert not run.interruptions
    items = [item for item in run.new_items if item.type == "tool_call_output_item"]
    assert [item.custom_data["code"] for item in items] == ["invalid_argument", "refused"]
    return seen | {"image": outputs["image"][1]["image_url"].partition(";base64,")[2]}


FRAMEWORKS = {"pydantic-ai": pydantic_ai, "langchain": langchain, "openai-agents": openai_agents}


def main(name: str) -> None:
    policy = Policy(allow=["read"], on_ask=ask)
    with Workspace(".", policy=policy) as ws:
        print(json.dumps(FRAMEWORKS[name](ws.tools()) | {"files": sorted(os.listdir())}))


if __name__ == "__main__":
    main(*sys.argv[1:])
