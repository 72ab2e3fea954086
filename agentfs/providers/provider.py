"""The base class of providers: schema rules, tool calls and replies."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, cast

from agentfs.arguments.parameters import Schema, SchemaRules
from agentfs.permissions import Effect
from agentfs.results import Image, ToolResult

Message = dict[str, Any]


class Format(NamedTuple):
    """A format of schemas: its rules, and the rules of its strict mode if it has one."""

    rules: SchemaRules
    strict_rules: SchemaRules | None = None


class ToolCall(NamedTuple):
    """A tool call as a provider sent it; `type` is set if the provider has several types of calls."""

    provider: "Provider"
    id: str | None
    name: Any
    arguments: Any  # text or an object
    type: str = ""
    freeform: bool = False  # True if `arguments` is the text of the first parameter
    most: int | None = None  # characters of output that the caller wants


class Provider(ABC):
    """One provider's API.

    Attributes:
        formats: The formats of schemas, by the name that `Toolset.schemas` takes.
        merged: The key of a message's list of results if all results of a turn belong in one message.
        native: The provider's own types of our tools: by format, and by the name of the tool.
    """

    formats: ClassVar[Mapping[str, Format]]
    merged: ClassVar[str] = ""
    native: ClassVar[Mapping[str, Mapping[str, Schema]]] = {}

    @abstractmethod
    def schema(self, tool: Schema, effect: Effect, name: str, *, strict: bool) -> Schema:
        """Return the schema of one tool.

        Args:
            tool: Its `name`, `description` and `parameters`, a JSON Schema by the rules of the format.
            effect: Its effect.
            name: The name of the format.
            strict: True if the provider enforces the schema.
        """

    @abstractmethod
    def read_call(self, call: Any) -> ToolCall | None:
        """Return a call of this provider, or None for anything else."""

    def read_calls(self, call: Any) -> Sequence[ToolCall]:
        """Return the tool calls in one call of this provider, or () if it is not a call."""
        found = self.read_call(call)
        return () if found is None else (found,)

    @abstractmethod
    def reply(self, call: ToolCall, result: ToolResult) -> Message:
        """Return the message that answers one call."""

    def replies(self, answers: Sequence[tuple[ToolCall, ToolResult]]) -> list[Message]:
        """Return the messages that answer the calls of one turn."""
        messages = [self.reply(call, result) for call, result in answers]
        if not self.merged:
            return messages
        return [{"role": "user", self.merged: [part for each in messages for part in each[self.merged]]}]


def field(value: Any, *names: str) -> Any:
    """Return the first of some fields of an SDK's object or a dict that is not None."""
    for name in names:
        if isinstance(value, Mapping):
            found = cast("Mapping[str, Any]", value).get(name)
        else:
            found = getattr(value, name, None)
        if found is not None:
            return found
    return None


def text_blocks(result: ToolResult) -> list[Message]:
    """Return the content and each note as separate texts, so that the content stays exact."""
    return [{"type": "text", "text": text} for text in (result.content, *result.notes)]


def data_url(image: Image) -> str:
    """Return an image as a data URL."""
    return f"data:{image.media_type};base64,{image.data}"
