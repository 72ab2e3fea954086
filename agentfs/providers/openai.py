"""OpenAI: tools and tool calls of chat completions and responses."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from agentfs.arguments.parameters import Schema, SchemaRules
from agentfs.base.advice import plural
from agentfs.permissions import Effect
from agentfs.providers.provider import Format, Message, Provider, ToolCall, data_url, field
from agentfs.results import ToolResult
from agentfs.text.display import both_ends

_STRICT = SchemaRules(every_required=True, closed_only=True)
_FORMAT = Format(SchemaRules(), strict_rules=_STRICT)
_RESPONSES = {"function_call": "arguments", "custom_tool_call": "input"}
_NATIVE: Mapping[str, Schema] = {
    "apply_patch": {"type": "apply_patch"},
    "run": {"type": "shell", "environment": {"type": "local"}},
}
_OPERATIONS = {"create_file": "Add", "update_file": "Update", "delete_file": "Delete"}
REFUSED = 126  # the exit status of a shell for a command that it may not execute
_MOST_CHARS = 30_000  # of each stream of a command


class OpenAI(Provider):
    """Chat completions ("openai") and responses ("openai-responses")."""

    formats: ClassVar[Mapping[str, Format]] = {"openai": _FORMAT, "openai-responses": _FORMAT}
    native: ClassVar[Mapping[str, Mapping[str, Schema]]] = {"openai-responses": _NATIVE}

    def schema(self, tool: Schema, effect: Effect, name: str, *, strict: bool) -> Schema:
        """Return the schema of one tool in the format with this name."""
        del effect
        if name == "openai":
            return {"type": "function", "function": {**tool, "strict": True} if strict else tool}
        return {"type": "function", "strict": strict, **tool}  # strict by default

    def read_call(self, call: Any) -> ToolCall | None:
        """Return a call of either API, or None for anything else."""
        kind = field(call, "type")
        if (function := field(call, "function")) is not None:
            return ToolCall(self, field(call, "id"), field(function, "name"), field(function, "arguments"))
        if kind == "custom" and (custom := field(call, "custom")) is not None:
            name, text = field(custom, "name"), field(custom, "input")
            return ToolCall(self, field(call, "id"), name, text, freeform=True)
        if kind == "apply_patch_call":
            patch = patch_of(field(call, "operation"))
            return ToolCall(self, field(call, "call_id"), "apply_patch", patch, kind, freeform=True)
        if kind in _RESPONSES:
            name, arguments = field(call, "name"), field(call, _RESPONSES[kind])
            return ToolCall(
                self, field(call, "call_id"), name, arguments, kind, freeform=kind == "custom_tool_call"
            )
        return None

    def read_calls(self, call: Any) -> Sequence[ToolCall]:
        """Return one call, or for a `shell_call` one for each of its commands."""
        if field(call, "type") != "shell_call":
            return super().read_calls(call)
        action, name = field(call, "action"), field(call, "call_id")
        milliseconds, most = field(action, "timeout_ms"), field(action, "max_output_length")
        timeout = {} if milliseconds is None else {"timeout": milliseconds / 1000}
        commands = field(action, "commands") or [""]
        given = [{"command": command, **timeout} for command in commands]
        return [ToolCall(self, name, "run", each, "shell_call", most=most) for each in given]

    def reply(self, call: ToolCall, result: ToolResult) -> Message:
        """Return the message that answers one call."""
        text = result.content_with_notes
        if call.type == "apply_patch_call":
            status = "completed" if result.success else "failed"
            return {"type": f"{call.type}_output", "call_id": call.id, "status": status, "output": text}
        if call.type == "shell_call":
            most = {} if call.most is None else {"max_output_length": call.most}
            shown = [command_output(result, call.most)]
            return {"type": f"{call.type}_output", "call_id": call.id, "output": shown, **most}
        if not call.type:
            text += f"\n[images: {len(result.images)} follow in the next message]" if result.images else ""
            return {"role": "tool", "tool_call_id": call.id, "content": text}
        images = [
            {"type": "input_image", "detail": "auto", "image_url": data_url(image)} for image in result.images
        ]
        output = [{"type": "input_text", "text": text}, *images] if images else text
        return {"type": f"{call.type}_output", "call_id": call.id, "output": output}

    def replies(self, answers: Sequence[tuple[ToolCall, ToolResult]]) -> list[Message]:
        """Return the messages of one turn.

        The answers to the commands of one call are one message. Chat completions accept images from users
        only, so they follow in a message of the user.
        """
        messages: list[Message] = []
        for message in super().replies(answers):
            last: Message = messages[-1] if messages else {}
            of_call = [(each.get("type"), each.get("call_id")) for each in (last, message)]
            if of_call[0] == of_call[1] and of_call[0][0] == "shell_call_output":
                last["output"] += message["output"]
            else:
                messages.append(message)
        content: list[Message] = []
        for call, result in answers:
            if not call.type and result.images:
                content.append({"type": "text", "text": f"Images from {call.name}:"})
                content += [{"type": "image_url", "image_url": {"url": data_url(i)}} for i in result.images]
        return [*messages, {"role": "user", "content": content}] if content else messages


def patch_of(operation: Any) -> str:
    """Return an operation of the type `apply_patch`, the change of one file, as a patch."""
    kind, to = field(operation, "type"), field(operation, "move_to")
    parts = [
        "*** Begin Patch",
        f"*** {_OPERATIONS.get(kind, kind)} File: {field(operation, 'path')}",
        *([f"*** Move to: {to}"] if to else []),
        *([diff.removesuffix("\n")] if (diff := field(operation, "diff")) else []),
        "*** End Patch",
    ]
    return "\n".join(parts)


def command_output(result: ToolResult, most: int | None = None) -> Message:
    """Return what a command has written and how it ended; a refused command writes the reason.

    Args:
        result: The result of `run`.
        most: The characters of each stream; more are cut out in the middle.
    """
    refused = {"stdout": "", "stderr": result.content, "exit_status": REFUSED, "timed_out": False}
    data: Any = result.data if result.success else refused
    streams = {name: _cut(data[name], min(most or _MOST_CHARS, _MOST_CHARS)) for name in ("stdout", "stderr")}
    exit_code = {"type": "exit", "exit_code": data["exit_status"]}
    return {**streams, "outcome": {"type": "timeout"} if data["timed_out"] else exit_code}


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    head, tail = both_ends(text, most)
    return f"{head}[{plural(len(text) - len(head) - len(tail), 'character')} left out]\n{tail}"
