"""A typed agent loop on the Gemini API."""

from google import genai
from google.genai import types

from agentfs import Workspace


def main() -> None:
    """Ask a model what the current directory holds."""
    client, tools = genai.Client(), Workspace(".").tools()
    config: types.GenerateContentConfigDict = {
        "system_instruction": tools.instructions(),
        "tools": [{"function_declarations": [*tools.schemas("gemini")]}],
    }
    contents: list[types.ContentUnionDict] = [
        {"role": "user", "parts": [{"text": "What does this project hold?"}]}
    ]
    while True:
        answer = client.models.generate_content(model="gemini-2.5-pro", contents=contents, config=config)
        if answer.candidates and answer.candidates[0].content:
            contents.append(answer.candidates[0].content)
        if not answer.function_calls:
            print(answer.text)
            return
        contents += tools.answer(answer.function_calls)


main()
