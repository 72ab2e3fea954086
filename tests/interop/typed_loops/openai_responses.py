"""A typed agent loop on the responses API."""

from openai import OpenAI
from openai.types.responses import ResponseInputItemParam

from agentfs import Workspace


def main() -> None:
    """Ask a model what the current directory holds."""
    client, tools = OpenAI(), Workspace(".").tools()
    items: list[ResponseInputItemParam] = [{"role": "user", "content": "What does this project hold?"}]
    previous: str | None = None
    while True:
        answer = client.responses.create(
            model="gpt-4.1",
            input=items,
            previous_response_id=previous,
            instructions=tools.instructions(),
            tools=tools.schemas("openai-responses"),
        )
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            print(answer.output_text)
            return
        items = [*tools.answer(calls)]
        previous = answer.id


main()
