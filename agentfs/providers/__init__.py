"""The providers, one module each, and the choice of one for a schema format or a tool call."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from agentfs.errors import InvalidArgumentError
from agentfs.providers.anthropic_format import Anthropic
from agentfs.providers.gemini import Gemini
from agentfs.providers.mcp_format import MCP
from agentfs.providers.openai import OpenAI
from agentfs.providers.provider import Message, Provider, ToolCall
from agentfs.results import ToolResult

# In the order in which they try to read a call. MCP is last, because its calls have no distinguishing field.
PROVIDERS: tuple[Provider, ...] = (OpenAI(), Anthropic(), Gemini(), MCP())
FORMATS = {name: provider for provider in PROVIDERS for name in provider.formats}
STRICT_FORMATS = tuple(name for name, provider in FORMATS.items() if provider.formats[name].strict_rules)


def provider_of(name: str) -> Provider:
    """Return the provider of a format, or raise `invalid_argument`."""
    if name not in FORMATS:
        raise InvalidArgumentError(f"There is no schema format {name!r}; there are {', '.join(FORMATS)}.")
    return FORMATS[name]


def read_calls(call: Any) -> Sequence[ToolCall]:
    """Read a tool call, an object of a provider's SDK or a dict; raise `invalid_argument` for others."""
    for provider in PROVIDERS:
        if found := provider.read_calls(call):
            return found
    raise InvalidArgumentError(
        f"This {type(call).__name__} is not a tool call of any provider.",
        hint="Pass the unchanged tool call of OpenAI, Anthropic, Gemini or MCP, or use `call`.",
    )


def replies(answers: Sequence[tuple[ToolCall, ToolResult]]) -> list[Message]:
    """Return the messages that answer the calls of one turn."""
    groups = groupby(answers, key=lambda answer: answer[0].provider)
    return [message for provider, group in groups for message in provider.replies(list(group))]
