"""A typed agent loop on chat completions."""

from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

from agentfs import Workspace


def main() -> None:
    """Ask a model what the current directory holds."""
    client, tools = OpenAI(), Workspace(".").tools()
    messages: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": tools.instructions()},
        {"role": "user", "content": "What does this project hold?"},
    ]
    while True:
        answer = client.chat.completions.create(model="gpt-4.1", messages=messages, tools=tools.schemas())
        message = answer.choices[0].message
        calls = [call for call in message.tool_calls or () if call.type == "function"]
        if not calls:
            print(message.content)
            return
        messages.append({"role": "assistant", "content": message.content, "tool_calls": [
            {"id": call.id, "type": "function",
             "function": {"name": call.function.name, "arguments": call.function.arguments}} for call in calls
        ]})  # fmt: skip
        messages += tools.answer(calls)


main()
