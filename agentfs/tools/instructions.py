"""A short paragraph for the system prompt: how the offered tools work together."""

from collections.abc import Sequence
from string import Formatter

from agentfs.tools.declaration import declaration_of
from agentfs.tools.spec import Tool

_FIRST = "Paths are relative to the workspace root and use `/`."
_LAST = (
    "What an answer leaves out it names in square brackets, with the call that gets it.",
    "An error says what is there instead: correct the call rather than repeat it.",
)


def instructions_for(tools: Sequence[Tool]) -> str:
    """Return the paragraph: the advice of each tool, where the tools that it names are offered."""
    names = {getattr(tool.spec.target, "__name__", ""): f"`{tool.name}`" for tool in tools}
    declared = (declaration_of(tool.spec.target) for tool in tools)
    advice = [each.advice for each in declared if each is not None and each.advice]
    usable = [text.format(**names) for text in advice if names.keys() >= _fields(text)]
    return " ".join((_FIRST, *usable, *_LAST))


def _fields(text: str) -> set[str]:
    return {field for _, field, _, _ in Formatter().parse(text) if field}
