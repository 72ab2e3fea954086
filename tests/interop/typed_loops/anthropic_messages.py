"""A typed agent loop on the messages API."""

from anthropic import Anthropic
from anthropic.types import MessageParam

from agentfs import Workspace


def main() -> None:
    """Ask a model what the current directory holds."""
    client, tools = Anthropic(), Workspace(".").tools()
    messages: list[MessageParam] = [{"role": "user", "content": "What does this project hold?"}]
    while True:
        answer = client.messages.create(
            model="claude-opus-4-8",
            max_tokens=4096,
            system=tools.instructions(),
            messages=messages,
            tools=tools.schemas("anthropic"),
        )
        messages.append({"role": "assistant", "content": answer.content})
        if answer.stop_reason != "tool_use":
            print("".join(block.text for block in answer.content if block.type == "text"))
            return
        messages += tools.answer(block for block in answer.content if block.type == "tool_use")


main()
