"""Hold schemas and replies to the types of the providers' own packages; prints what does not fit.

python check_provider_types.py FILE      {"schemas": {format: [tools]}, "replies": {shape: [messages]}}
"""

import json
import sys
from pathlib import Path

from anthropic.types import MessageParam, ToolParam
from google.genai import types as gemini
from mcp import types as mcp
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from openai.types.responses import FunctionToolParam, ResponseInputItemParam
from pydantic import TypeAdapter

SCHEMAS = {
    "openai": ChatCompletionToolParam, "openai-responses": FunctionToolParam, "anthropic": ToolParam,
    "mcp": mcp.Tool, "gemini": gemini.FunctionDeclaration,
}  # fmt: skip
REPLIES = {
    "openai": ChatCompletionMessageParam, "openai-responses": ResponseInputItemParam,
    "anthropic": MessageParam, "mcp": mcp.CallToolResult, "gemini": gemini.Content,
}  # fmt: skip


def main() -> None:
    given = json.loads(Path(sys.argv[1]).read_text())
    wrong = []
    for kind, types in (("schemas", SCHEMAS), ("replies", REPLIES)):
        for name, values in given[kind].items():
            adapter = TypeAdapter(types[name])
            for value in values:
                try:
                    adapter.validate_python(value)
                except ValueError as error:
                    wrong.append(f"{kind} {name}: {error}")
    json.dump(wrong, sys.stdout)


if __name__ == "__main__":
    main()
