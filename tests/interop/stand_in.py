"""Stand-ins of the providers' APIs: each asks for one tool call, checks what comes back, and then is done."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise

from jsonschema import Draft202012Validator

from tests.provider_rules import CHECKERS, SCHEMA_OF

ARGUMENTS = {"path": "."}
_SPELLINGS = {"parameters_json_schema": "parametersJsonSchema"}


def checked(provider, tools):
    """Return the names of the tools, each held to the rules of its provider."""
    wrong = [told for tool in tools for told in CHECKERS[provider](tool, strict=False)]
    assert not wrong, wrong
    names = {(tool.get("function") or tool)["name"]: SCHEMA_OF[provider](tool) for tool in tools}
    Draft202012Validator(names["ls"]).validate(ARGUMENTS)
    return names


def openai(body):
    assert "ls" in {tool["function"]["name"] for tool in body["tools"]}
    if body["model"] == "gpt-4.1":  # a framework makes schemas of its own
        checked("openai", body["tools"])
    *_, last = body["messages"]
    if last["role"] == "tool":
        asked = body["messages"][-2]["tool_calls"][0]
        assert last["tool_call_id"] == asked["id"] == "call_1"
        message = {"role": "assistant", "content": f"It holds: {last['content']}"}
    else:
        function = {"name": "ls", "arguments": json.dumps(ARGUMENTS)}
        call = {"id": "call_1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "finish_reason": reason, "message": message}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}  # fmt: skip


def anthropic(body):
    checked("anthropic", body["tools"])
    roles = [message["role"] for message in body["messages"]]
    assert all(one != other for one, other in pairwise(roles)), "roles alternate"
    last = body["messages"][-1]["content"]
    if isinstance(last, list):
        assert [(block["type"], block["tool_use_id"]) for block in last] == [("tool_result", "toolu_1")]
        content, reason = {"type": "text", "text": f"It holds: {last[0]['content'][0]['text']}"}, "end_turn"
    else:
        content, reason = {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": ARGUMENTS}, "tool_use"
    return {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [content],
            "stop_reason": reason, "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip


def gemini(body):
    declared = body["tools"][0].get("functionDeclarations") or body["tools"][0]["function_declarations"]
    # The API takes either spelling of a field, as all that is made from protocol buffers does.
    checked("gemini", [{_SPELLINGS.get(key, key): value for key, value in each.items()} for each in declared])
    part = body["contents"][-1]["parts"][0]
    if "functionResponse" in part:
        assert part["functionResponse"]["name"] == "ls"
        said = {"text": f"It holds: {part['functionResponse']['response']['output']}"}
    else:
        said = {"functionCall": {"name": "ls", "args": ARGUMENTS}}
    return {"candidates": [{"content": {"role": "model", "parts": [said]}, "finishReason": "STOP"}]}


class _Api(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        api = openai if "completions" in self.path else anthropic if "/messages" in self.path else gemini
        try:
            status, answer = 200, api(body)
        except Exception as error:  # noqa: BLE001 - what the real one would refuse
            told = f"{type(error).__name__}: {error}"
            status, answer = 400, {"error": {"message": told, "type": "invalid"}}
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def serve():
    """Start the stand-ins; returns the server, whose address is `server_address`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
