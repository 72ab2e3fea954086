"""A provider's tool calls, and the messages that answer them, in each provider's shape. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from agentfs.errors import InvalidArgumentError
from agentfs.results import Image, ToolResult

Provider = Literal[
    "openai", "openai-custom", "responses", "responses-custom", "anthropic", "gemini", "mcp", "mcp-structured"
]  # fmt: skip
Message = dict[str, Any]


class ToolCall(NamedTuple):
    """A tool call as a provider sent it.

    Attributes:
        shape: Whose it is.
        id: What its answer refers to, or None.
        name: The name of the tool.
        arguments: As they were sent: text or an object.
    """

    shape: Provider
    id: str | None
    name: Any
    arguments: Any


def read_call(call: Any) -> ToolCall:
    """Read a tool call: an object of a provider's SDK, or the same as a dict.

    Args:
        call: An entry of `message.tool_calls` (OpenAI, chat completions), an output item of the types
            "function_call" or "custom_tool_call" (OpenAI, responses), a "tool_use" block (Anthropic), a
            function call or the part that holds it (Gemini), or the parameters of "tools/call" (MCP).

    Raises:
        InvalidArgumentError: It is none of these (`invalid_argument`).
    """
    kind = _of(call, "type")
    if (function := _of(call, "function")) is not None:
        return ToolCall("openai", _of(call, "id"), _of(function, "name"), _of(function, "arguments"))
    if kind == "custom" and (custom := _of(call, "custom")) is not None:
        return ToolCall("openai-custom", _of(call, "id"), _of(custom, "name"), _of(custom, "input"))
    if kind == "function_call":
        return ToolCall("responses", _of(call, "call_id"), _of(call, "name"), _of(call, "arguments"))
    if kind == "custom_tool_call":
        return ToolCall("responses-custom", _of(call, "call_id"), _of(call, "name"), _of(call, "input"))
    if kind == "tool_use":
        return ToolCall("anthropic", _of(call, "id"), _of(call, "name"), _of(call, "input"))
    inner = _of(call, "function_call", "functionCall")
    call = call if inner is None else inner
    if isinstance(name := _of(call, "name"), str):
        arguments = _of(call, "arguments")
        if inner is not None or _has(call, "args"):
            return ToolCall("gemini", _of(call, "id"), name, _of(call, "args"))
        if arguments is None or isinstance(arguments, Mapping):
            return ToolCall("mcp", None, name, arguments)
    raise InvalidArgumentError(
        f"A {type(call).__name__} that is no provider's tool call cannot be answered.",
        hint="Pass a tool call of OpenAI, Anthropic, Gemini or MCP as it came, or use `call`.",
    )


def messages_for(answers: Sequence[tuple[ToolCall, ToolResult]]) -> list[Message]:
    """Return the messages to append for the calls of one turn.

    Anthropic and Gemini take all answers of a turn in one message; elsewhere each has its own. OpenAI's chat
    completions take no images from a tool, so they follow in a message of the user.

    Args:
        answers: The calls, and what each came to.
    """
    messages: list[Message] = []
    shown: list[Message] = []
    for sent, result in answers:
        message = message_for(sent, result, images_follow=True)
        key = {"anthropic": "content", "gemini": "parts"}.get(sent.shape, "")
        if key and messages and key in messages[-1] and messages[-1].get("role") == "user":
            messages[-1][key] += message[key]
        else:
            messages.append(message)
        if sent.shape in ("openai", "openai-custom") and result.images:
            shown.append({"type": "text", "text": f"Images from {sent.name}:"})
            shown += [{"type": "image_url", "image_url": {"url": _url(image)}} for image in result.images]
    return [*messages, {"role": "user", "content": shown}] if shown else messages


def message_for(sent: ToolCall, result: ToolResult, *, images_follow: bool = False) -> Message:
    """Return the message that answers one call.

    Args:
        sent: The call.
        result: What it came to.
        images_follow: Whether images that the message cannot hold are sent in another one.
    """
    match sent.shape:
        case "openai" | "openai-custom":
            content = result.content_with_notes
            if result.images:
                where = "follow in the next message" if images_follow else "cannot be shown here"
                content += f"\n[images: {len(result.images)} {where}]"
            return {"role": "tool", "tool_call_id": sent.id, "content": content}
        case "responses" | "responses-custom":
            kind = "function_call_output" if sent.shape == "responses" else "custom_tool_call_output"
            return {"type": kind, "call_id": sent.id, "output": _responses_output(result)}
        case "anthropic":
            return {"role": "user", "content": [_anthropic_block(sent, result)]}
        case "gemini":
            return {"role": "user", "parts": _gemini_parts(sent, result)}
        case _:
            return _mcp_result(result, structured=sent.shape == "mcp-structured")


def _responses_output(result: ToolResult) -> Any:
    if not result.images:
        return result.content_with_notes
    images = [{"type": "input_image", "detail": "auto", "image_url": _url(image)} for image in result.images]
    return [{"type": "input_text", "text": result.content_with_notes}, *images]


def _anthropic_block(sent: ToolCall, result: ToolResult) -> Message:
    content = _texts(result) if result.content else []
    for image in result.images:
        source = {"type": "base64", "media_type": image.media_type, "data": image.data}
        content.append({"type": "image", "source": source})
    block: Message = {"type": "tool_result", "tool_use_id": sent.id, "content": content}
    return block if result.success else {**block, "is_error": True}


def _gemini_parts(sent: ToolCall, result: ToolResult) -> list[Message]:
    response: Message = {
        "name": sent.name,
        "response": {"output" if result.success else "error": result.content},
    }
    if result.notes:
        response["response"]["notes"] = list(result.notes)
    if sent.id:
        response["id"] = sent.id
    images = [{"inlineData": {"mimeType": image.media_type, "data": image.data}} for image in result.images]
    return [{"functionResponse": response}, *images]


def _mcp_result(result: ToolResult, *, structured: bool) -> Message:
    content = _texts(result)
    content += [
        {"type": "image", "data": image.data, "mimeType": image.media_type} for image in result.images
    ]
    answer: Message = {"content": content, "isError": not result.success}
    data: Any = result.data
    if structured and result.success and isinstance(data, dict):
        answer["structuredContent"] = data
    return answer


def _texts(result: ToolResult) -> list[Message]:
    """Return the content, and each note as a text of its own, so that the content stays what it is."""
    return [{"type": "text", "text": text} for text in (result.content, *result.notes)]


def _url(image: Image) -> str:
    return f"data:{image.media_type};base64,{image.data}"


def _has(value: Any, name: str) -> bool:
    return name in value if isinstance(value, Mapping) else hasattr(value, name)


def _of(value: Any, *names: str) -> Any:
    for name in names:
        if isinstance(value, Mapping):
            found = cast("Mapping[str, Any]", value).get(name)
        else:
            found = getattr(value, name, None)
        if found is not None:
            return found
    return None
