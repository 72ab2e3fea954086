"""Checks of the calls that tools suggest."""

from typing import Any

from jsonschema import Draft202012Validator

from agentfs import Toolset


def accepts(tools: Toolset, name: str, arguments: Any) -> bool:
    """Return True if a call matches the schema of a tool exactly."""
    schemas = {tool["name"]: tool["input_schema"] for tool in tools.schemas("anthropic")}
    return name in schemas and Draft202012Validator(schemas[name]).is_valid(arguments)
