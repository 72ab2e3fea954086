"""Replies in each provider's format; tests/interop checks them with the providers' own packages."""

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import ClassVar

import pytest

from agentfs import Toolset, providers
from agentfs.arguments.parameters import SchemaRules
from agentfs.errors import InvalidArgumentError
from agentfs.providers.provider import Format, Provider, ToolCall, field
from agentfs.results import Image, ReadResult, ToolResult
from agentfs.tools.tool import Tool


def look(path: str) -> ReadResult:
    """Look.

    Args:
        path: File.
    """
    if path == "bug":
        raise ZeroDivisionError
    images = (Image("QQ==", "image/png"),) if path == "picture" else ()
    return ReadResult(path, "text", "", 0, 0, 0, 0, "x", images=images, text=f"<{path}>")


TOOLS = Toolset([look, Tool(function=look, name="freeform")])
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}}


def openai(path, name="look"):
    function = {"name": name, "arguments": json.dumps({"path": path})}
    return {"id": "c1", "type": "function", "function": function}


def responses(path):
    arguments = json.dumps({"path": path})
    return {"type": "function_call", "call_id": "c1", "id": "fc", "name": "look", "arguments": arguments}


def anthropic(path):
    return {"type": "tool_use", "id": "t1", "name": "look", "input": {"path": path}}


def gemini(path):
    return {"id": "g1", "name": "look", "args": {"path": path}}


def test_chat_completions():
    assert TOOLS.answer([openai("a")])[0] == {"role": "tool", "tool_call_id": "c1", "content": "<a>"}
    assert (
        "there is no parameter"
        in TOOLS.answer([{"id": "c1", "function": {"name": "look", "arguments": '{"no": 1}'}}])[0]["content"]
    )
    custom = {"id": "c2", "type": "custom", "custom": {"name": "freeform", "input": "bare text"}}
    assert TOOLS.answer([custom])[0]["content"] == "<bare text>"


def test_chat_completions_show_images_in_a_user_message():
    first, second, third = TOOLS.answer([openai("picture"), openai("a")])
    assert first["content"] == "<picture>\n[images: 1 follow in the next message]"
    assert second["content"] == "<a>"
    assert third["role"] == "user"
    assert third["content"][1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}}


def test_responses():
    assert TOOLS.answer([responses("a")])[0] == {
        "type": "function_call_output",
        "call_id": "c1",
        "output": "<a>",
    }
    output = TOOLS.answer([responses("picture")])[0]["output"]
    assert [part["type"] for part in output] == ["input_text", "input_image"]
    custom = {"type": "custom_tool_call", "call_id": "c1", "name": "freeform", "input": "x"}
    assert TOOLS.answer([custom])[0] == {"type": "custom_tool_call_output", "call_id": "c1", "output": "<x>"}


def test_anthropic():
    text = {"type": "text", "text": "<a>"}
    block = {"type": "tool_result", "tool_use_id": "t1", "content": [text]}
    assert TOOLS.answer([anthropic("a")])[0] == {"role": "user", "content": [block]}
    assert TOOLS.answer([anthropic("picture")])[0]["content"][0]["content"][1] == IMAGE
    assert TOOLS.answer([anthropic("bug")])[0]["content"][0]["is_error"] is True
    together = TOOLS.answer([anthropic("a"), anthropic("b")])
    assert [len(message["content"]) for message in together] == [2]


def test_gemini():
    response = {"name": "look", "id": "g1", "response": {"output": "<a>"}}
    assert TOOLS.answer([gemini("a")])[0] == {"role": "user", "parts": [{"functionResponse": response}]}
    assert TOOLS.answer([{"functionCall": gemini("a")}])[0] == TOOLS.answer([gemini("a")])[0]
    assert "error" in TOOLS.answer([gemini("bug")])[0]["parts"][0]["functionResponse"]["response"]
    together = TOOLS.answer([gemini("picture"), gemini("b")])
    assert [list(part) for part in together[0]["parts"]] == [
        ["functionResponse"], ["inlineData"], ["functionResponse"],
    ]  # fmt: skip


def test_mcp():
    answer = TOOLS.answer([{"name": "look", "arguments": {"path": "picture"}}])[0]
    assert answer["content"] == [
        {"type": "text", "text": "<picture>"}, {"type": "image", "data": "QQ==", "mimeType": "image/png"},
    ]  # fmt: skip
    assert answer["isError"] is False
    assert "structuredContent" not in answer, "clients that see it withhold the text from the model"
    assert TOOLS.answer([{"name": "look"}])[0]["isError"] is True


def test_objects_are_read_like_dicts():
    def objects(value):
        if isinstance(value, dict):
            return SimpleNamespace(
                **{key: objects(item) if key != "input" else item for key, item in value.items()}
            )
        return value

    assert TOOLS.answer([objects(openai("a"))])[0] == TOOLS.answer([openai("a")])[0]
    assert TOOLS.answer([objects(anthropic("a"))])[0] == TOOLS.answer([anthropic("a")])[0]
    assert TOOLS.answer([objects(responses("a"))])[0] == TOOLS.answer([responses("a")])[0]


@pytest.mark.parametrize("wrong", [
    None, 1, "look", {}, [], {"name": 1}, {"name": "look", "arguments": "{}"}, {"type": "text", "text": "x"},
])  # fmt: skip
def test_anything_but_a_tool_call_is_an_error(wrong):
    with pytest.raises(InvalidArgumentError):
        TOOLS.answer([wrong])[0]


def test_if_one_call_is_wrong_none_is_run():
    ran = []

    def note() -> str:
        """Note."""
        ran.append(1)
        return ""

    with pytest.raises(InvalidArgumentError):
        Toolset([note]).answer([{"name": "note"}, {}])
    assert ran == []


@pytest.mark.parametrize("name", [None, 5, ["a"], "nothing"])
def test_a_wrong_name_is_answered(name):
    call = {"type": "tool_use", "id": "t", "name": name, "input": {}}
    assert TOOLS.answer([call])[0]["content"][0]["is_error"] is True


def test_notes_are_separate_from_the_content_in_each_format():
    def count(path: str) -> ToolResult:
        """Count.

        Args:
            path: File.
        """
        return ToolResult(True, "47", notes=(f"at least, in {path}", "out of time"))

    tools = Toolset([Tool(function=count, name="look")])
    assert tools.answer([openai("a")])[0]["content"] == "47\n[at least, in a]\n[out of time]"
    assert tools.answer([responses("a")])[0]["output"] == "47\n[at least, in a]\n[out of time]"
    texts = [{"type": "text", "text": text} for text in ("47", "at least, in a", "out of time")]
    assert tools.answer([anthropic("a")])[0]["content"][0]["content"] == texts
    assert tools.answer([{"name": "look", "arguments": {"path": "a"}}])[0]["content"] == texts
    response = tools.answer([gemini("a")])[0]["parts"][0]["functionResponse"]["response"]
    assert response == {"output": "47", "notes": ["at least, in a", "out of time"]}
    (function,) = tools.functions()
    assert function("a") == "47\n[at least, in a]\n[out of time]"
    assert tools.call("look", {"path": "a"}).content == "47"


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
    mixed = TOOLS.answer([{"fn": "look", "with": {"path": "a"}}, anthropic("b"), anthropic("c")])
    assert [message.get("says", message.get("role")) for message in mixed] == ["<a>", "user"]
    with pytest.raises(InvalidArgumentError, match="no strict mode"):
        TOOLS.schemas("acme", strict=True)
