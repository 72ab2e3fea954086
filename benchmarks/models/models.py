"""The models: any that speaks OpenAI's chat completions, by its key, and a scripted one without a key."""

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from tasks import Task
from tool_sets import Tools

from agentfs.text.display import estimate_tokens

Message = dict[str, Any]
# A model answers the messages, with the tokens of the turn.
Model = Callable[[list[Message], list[dict[str, Any]]], tuple[Message, int]]
# The variable of a provider's key, and the address of its API.
PROVIDERS = {
    "OPENAI_API_KEY": "https://api.openai.com/v1/",
    "ANTHROPIC_API_KEY": "https://api.anthropic.com/v1/",
    "GEMINI_API_KEY": "https://generativelanguage.googleapis.com/v1beta/openai/",
    "OPENROUTER_API_KEY": "https://openrouter.ai/api/v1/",
    "MISTRAL_API_KEY": "https://api.mistral.ai/v1/",
}
_ATTEMPTS = 6
_SECONDS = 300
_AGAIN = {408, 409, 429, 500, 502, 503, 504, 529}


def chat(model: str, base_url: str | None = None) -> Model:
    """Return a model behind the first provider whose key is set, or behind `base_url`."""
    variable = next((each for each in PROVIDERS if os.environ.get(each)), None)
    if variable is None:
        raise SystemExit(f"No key is set. Set one of {', '.join(PROVIDERS)}.")
    url = (base_url or os.environ.get("OPENAI_BASE_URL") or PROVIDERS[variable]).rstrip(
        "/"
    ) + "/chat/completions"
    headers = {"Authorization": f"Bearer {os.environ[variable]}", "Content-Type": "application/json"}

    def answer(messages: list[Message], schemas: list[dict[str, Any]]) -> tuple[Message, int]:
        body = json.dumps({"model": model, "messages": messages, "tools": schemas}).encode()
        for attempt in range(_ATTEMPTS):
            request = urllib.request.Request(url, body, headers)
            try:
                with urllib.request.urlopen(request, timeout=_SECONDS) as response:
                    found = json.load(response)
                return found["choices"][0]["message"], found["usage"]["total_tokens"]
            except urllib.error.HTTPError as error:
                if error.code not in _AGAIN or attempt == _ATTEMPTS - 1:
                    raise SystemExit(f"{url} answered {error.code}: {error.read(500)!r}") from None
            time.sleep(2**attempt)
        raise AssertionError("unreachable")

    return answer


def scripted(task: Task, tools: Tools) -> Model:
    """Return a model that takes the steps of a task, whatever the answers are.

    In each task but those of finding it first tries an edit with a text that is not in the file, so that each
    figure has something to count.
    """
    calls: list[tuple[str, dict[str, Any]]] = []
    missed = False
    for kind, *values in task.steps[:-1]:
        if kind == "edit" and not missed:
            missed, (path, old, new) = True, values
            calls.append(tools.script["edit"](path, f"{old} (no such text)", new))
        calls.append(("run_tests", {}) if kind == "test" else tools.script[kind](*values))
    last = task.steps[-1][1]

    def answer(messages: list[Message], schemas: list[dict[str, Any]]) -> tuple[Message, int]:
        turn = sum(message["role"] == "assistant" for message in messages)
        tokens = estimate_tokens(json.dumps([messages, schemas]))
        if turn == len(calls):
            return {"role": "assistant", "content": last}, tokens
        name, arguments = calls[turn]
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"call_{turn}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}, tokens

    return answer
