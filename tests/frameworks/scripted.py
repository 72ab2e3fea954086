"""The other side of a conversation: a server of Anthropic's messages."""

import json

import httpx2 as httpx
from anthropic import Anthropic


class Script:
    """A server of the messages API that answers with one tool call a turn, and keeps the requests."""

    def __init__(self, *calls):
        self.calls, self.requests = list(calls), []

    def __call__(self, request):
        self.requests.append(json.loads(request.content))
        number = len(self.requests) - 1
        content = [{"type": "text", "text": "done"}]
        if number < len(self.calls):
            name, given = self.calls[number]
            content = [{"type": "tool_use", "id": str(number), "name": name, "input": given}]
        answer = {
            "id": "m", "type": "message", "role": "assistant", "model": "m", "content": content,
            "stop_reason": "tool_use" if number < len(self.calls) else "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
        return httpx.Response(200, json=answer)

    @property
    def answers(self):
        sent = [message for request in self.requests for message in request["messages"]]
        blocks = [block for each in sent if isinstance(each["content"], list) for block in each["content"]]
        results = {each["tool_use_id"]: each for each in blocks if each["type"] == "tool_result"}.values()
        texts = [each["content"] for each in results]
        texts = [text if isinstance(text, str) else text[0]["text"] for text in texts]
        return [(text, each.get("is_error", False)) for text, each in zip(texts, results, strict=True)]


def client(script):
    return Anthropic(api_key="none", http_client=httpx.Client(transport=httpx.MockTransport(script)))
