"""The interface of a provider: schema rules, the reading of tool calls, replies to them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, cast

from agentfs.permissions import Effect
from agentfs.results import Image, ToolResult

Schema = dict[str, Any]
Message = dict[str, Any]


class SchemaRules(NamedTuple):
    """What the schemas of a format may contain."""

    every_required: bool = False  # parameters that are not required become nullable
    unions: bool = True  # `anyOf` may be beside a description; else the plainest option replaces all
    closed_only: bool = False  # objects with free names and values of any type have no schema
    string_enums: bool = False  # only strings may be enumerated
    identifiers: bool = False  # a parameter is named by letters, digits and underscores alone
    output: bool = False  # the data of a result: open objects with every member, without descriptions


class Format(NamedTuple):
    """A format of schemas: its rules, those of its strict mode if any, and whether it has output schemas."""

    rules: SchemaRules
    strict_rules: SchemaRules | None = None
    has_output: bool = False


class ToolDescription(NamedTuple):
    """What a provider's schema is made of: `parameters` and `output` are JSON Schemas under its rules."""

    name: str
    description: str
    parameters: Schema
    effect: Effect | None
    output: Schema | None


class ToolCall(NamedTuple):
    """A tool call as a provider sent it; `type` is the provider's name for it, where it has several."""

    provider: "Provider"
    id: str | None
    name: Any
    arguments: Any  # text or an object
    type: str = ""
    freeform: bool = False  # whether `arguments` is the text of the first parameter


class Provider(ABC):
    """One provider's API; where all results of a turn are one message, `merged` is its list of them."""

    formats: ClassVar[Mapping[str, Format]]
    merged: ClassVar[str] = ""

    @abstractmethod
    def schemas(self, tools: Sequence[ToolDescription], name: str, *, strict: bool) -> list[Schema]:
        """Return tools in the format of a name."""

    @abstractmethod
    def read_call(self, call: Any) -> ToolCall | None:
        """Return a call of this provider, or None where it is none."""

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
    """Return the first of some fields of an SDK's object or a dict that is there and not None."""
    for name in names:
        if isinstance(value, Mapping):
            found = cast("Mapping[str, Any]", value).get(name)
        else:
            found = getattr(value, name, None)
        if found is not None:
            return found
    return None


def text_blocks(result: ToolResult) -> list[Message]:
    """Return the content, and each note as a text of its own, so that the content stays what it is."""
    return [{"type": "text", "text": text} for text in (result.content, *result.notes)]


def data_url(image: Image) -> str:
    """Return an image as a data URL."""
    return f"data:{image.media_type};base64,{image.data}"
