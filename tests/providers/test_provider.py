"""Replies in each provider's format; tests/interop checks them with the providers' own packages."""

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import ClassVar

import pytest

from agentfs import Toolset, providers
from agentfs.arguments.parameters import SchemaRules
from agentfs.providers.provider import Format, Provider, ToolCall, field
from agentfs.results import Image, ReadResult, ToolResult
from agentfs.tools.tool import Tool
from tests.kit import described, refused


@described
def look(path: str) -> ReadResult:
    if path == "bug":
        raise ZeroDivisionError
    images = (Image("QQ==", "image/png"),) if path == "picture" else ()
    return ReadResult(path, "text", "", 0, 0, 0, 0, "x", images=images, text=f"<{path}>")


TOOLS = Toolset([look, Tool(function=look, name="freeform")])
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}}


def calls(path):
    text = json.dumps({"path": path})
    return {
        "openai": {"id": "c1", "type": "function", "function": {"name": "look", "arguments": text}},
        "openai-responses": {"type": "function_call", "call_id": "c1", "name": "look", "arguments": text},
        "anthropic": {"type": "tool_use", "id": "t1", "name": "look", "input": {"path": path}},
        "gemini": {"id": "g1", "name": "look", "args": {"path": path}},
        "mcp": {"name": "look", "arguments": {"path": path}},
    }


def replies(*paths, tools=TOOLS):
    return {name: tools.answer([calls(path)[name] for path in paths]) for name in calls("")}


def part(text):
    return {"type": "text", "text": text}


def test_the_reply_to_a_call():
    found = replies("a")
    answered = {"type": "tool_result", "tool_use_id": "t1", "content": [part("<a>")]}
    response = {"name": "look", "id": "g1", "response": {"output": "<a>"}}
    assert found == {
        "openai": [{"role": "tool", "tool_call_id": "c1", "content": "<a>"}],
        "openai-responses": [{"type": "function_call_output", "call_id": "c1", "output": "<a>"}],
        "anthropic": [{"role": "user", "content": [answered]}],
        "gemini": [{"role": "user", "parts": [{"functionResponse": response}]}],
        "mcp": [{"content": [part("<a>")], "isError": False}],  # structured content would hide the text
    }
    assert TOOLS.answer([{"functionCall": calls("a")["gemini"]}]) == found["gemini"]
    for name in ("openai", "anthropic", "openai-responses"):
        assert TOOLS.answer([objects(calls("a")[name])]) == found[name], "objects are read like dicts"


def objects(value):
    if not isinstance(value, dict):
        return value
    return SimpleNamespace(**{key: item if key == "input" else objects(item) for key, item in value.items()})


def test_the_replies_to_several_calls_with_an_image():
    found = replies("picture", "a")
    first, second, third = found["openai"]
    assert first["content"] == "<picture>\n[images: 1 follow in the next message]"
    assert second["content"] == "<a>"
    assert third["role"] == "user"
    assert third["content"][1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}}
    first, second = found["openai-responses"]
    assert [each["type"] for each in first["output"]] == ["input_text", "input_image"]
    [message] = found["anthropic"]
    assert [each["content"] for each in message["content"]] == [[part("<picture>"), IMAGE], [part("<a>")]]
    [message] = found["gemini"]
    parts = [[*each] for each in message["parts"]]
    assert parts == [["functionResponse"], ["inlineData"], ["functionResponse"]]
    image = {"type": "image", "data": "QQ==", "mimeType": "image/png"}
    assert found["mcp"][0]["content"] == [part("<picture>"), image]


def test_the_reply_to_a_failing_call():
    found = replies("bug")
    assert found["anthropic"][0]["content"][0]["is_error"] is True
    assert "error" in found["gemini"][0]["parts"][0]["functionResponse"]["response"]
    assert found["mcp"][0]["isError"] is TOOLS.answer([{"name": "look"}])[0]["isError"] is True
    wrong = {"id": "c1", "function": {"name": "look", "arguments": '{"no": 1}'}}
    assert "there is no parameter" in TOOLS.answer([wrong])[0]["content"]


def test_a_tool_without_a_schema_gets_bare_text():
    custom = {"id": "c2", "type": "custom", "custom": {"name": "freeform", "input": "bare text"}}
    assert TOOLS.answer([custom])[0]["content"] == "<bare text>"
    custom = {"type": "custom_tool_call", "call_id": "c1", "name": "freeform", "input": "x"}
    assert TOOLS.answer([custom])[0] == {"type": "custom_tool_call_output", "call_id": "c1", "output": "<x>"}


def test_notes_are_separate_from_the_content_in_each_format():
    @described
    def count(path: str) -> ToolResult:
        return ToolResult(True, "47", notes=(f"at least, in {path}", "out of time"))

    tools = Toolset([Tool(function=count, name="look")])
    found = {name: messages[0] for name, messages in replies("a", tools=tools).items()}
    joined = [found["openai"]["content"], found["openai-responses"]["output"], tools.functions()[0]("a")]
    assert {*joined} == {"47\n[at least, in a]\n[out of time]"}
    texts = [part(text) for text in ("47", "at least, in a", "out of time")]
    assert found["anthropic"]["content"][0]["content"] == found["mcp"]["content"] == texts
    response = found["gemini"]["parts"][0]["functionResponse"]["response"]
    assert response == {"output": "47", "notes": ["at least, in a", "out of time"]}
    assert tools.call("look", {"path": "a"}).content == "47"


@pytest.mark.parametrize("wrong", [
    None, 1, "look", {}, [], {"name": 1}, {"name": "look", "arguments": "{}"}, {"type": "text", "text": "x"},
])  # fmt: skip
def test_anything_but_a_tool_call_is_an_error(wrong):
    refused(lambda: TOOLS.answer([wrong]), "invalid_argument")


def test_if_one_call_is_wrong_none_is_run_and_a_wrong_name_is_answered():
    ran = []

    @described
    def note() -> str:
        ran.append(1)
        return ""

    refused(lambda: Toolset([note]).answer([{"name": "note"}, {}]), "invalid_argument")
    assert ran == []
    for name in (None, 5, ["a"], "nothing"):
        call = {"type": "tool_use", "id": "t", "name": name, "input": {}}
        assert TOOLS.answer([call])[0]["content"][0]["is_error"] is True


class Acme(Provider):
    """A new provider: this class in its own module, and a row in `agentfs.providers`."""

    formats: ClassVar = {"acme": Format(SchemaRules(plain=True))}

    def schema(self, tool, effect, name, *, strict):
        return {"fn": tool["name"], "schema": tool["parameters"]}

    def read_call(self, call):
        return ToolCall(self, None, field(call, "fn"), field(call, "with")) if field(call, "fn") else None

    def reply(self, call, result):
        return {"fn": call.name, "says": result.content}


def test_a_new_provider_is_one_class_and_a_row(monkeypatch):
    """Schemas, calls and replies follow from the class; no other module names a provider."""
    acme = Acme()
    rows: Sequence[Provider] = (acme, *providers.PROVIDERS)
    monkeypatch.setattr(providers, "PROVIDERS", rows)
    monkeypatch.setitem(providers.FORMATS, "acme", acme)
    assert TOOLS.schemas("acme")[0]["fn"] == "look"
    assert TOOLS.schemas("acme")[0]["schema"]["required"] == ["path"]
    assert TOOLS.answer([{"fn": "look", "with": {"path": "a"}}])[0] == {"fn": "look", "says": "<a>"}
    theirs = [calls(path)["anthropic"] for path in "bc"]
    mixed = TOOLS.answer([{"fn": "look", "with": {"path": "a"}}, *theirs])
    assert [message.get("says", message.get("role")) for message in mixed] == ["<a>", "user"]
    assert "no strict mode" in str(refused(lambda: TOOLS.schemas("acme", strict=True)))
