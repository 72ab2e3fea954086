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
    function = {"name": "ls", "arguments": json.dumps(ARGUMENTS)}
    if last["role"] == "tool":
        asked = body["messages"][-2]["tool_calls"][0]
        assert last["tool_call_id"] == asked["id"] == "call_1"
        function = None
    elif "Observation" in str(last["content"]):  # smolagents ends with a call
        final = json.dumps({"answer": f"It holds: {last['content']}"})
        function = {"name": "final_answer", "arguments": final}
    if function:
        call = {"id": "call_1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    else:
        message = {"role": "assistant", "content": f"It holds: {last['content']}"}
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "finish_reason": reason, "message": message}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}  # fmt: skip


def responses(body):
    assert "ls" in {tool["name"] for tool in body["tools"]}
    *_, last = body["input"]
    if last.get("type") == "function_call_output":
        content = {"type": "output_text", "text": f"It holds: {last['output']}", "annotations": []}
        item = {
            "type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [content],
        }  # fmt: skip
    else:
        item = {"type": "function_call", "id": "f", "call_id": "call_1", "status": "completed", "name": "ls",
                "arguments": json.dumps(ARGUMENTS)}  # fmt: skip
    return {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed",
            "output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}  # fmt: skip


def anthropic(body):
    if "opus" in body["model"]:  # as above; the tool runner continues a thread
        checked("anthropic", body["tools"])
    roles = [message["role"] for message in body["messages"]]
    assert all(one != other for one, other in pairwise(roles)), "roles alternate"
    last = body["messages"][-1]["content"]
    if isinstance(last, list):
        assert [(block["type"], block["tool_use_id"]) for block in last] == [("tool_result", "toolu_1")]
        given = last[0]["content"]
        text = given if isinstance(given, str) else given[0]["text"]
        content, reason = {"type": "text", "text": f"It holds: {text}"}, "end_turn"
    else:
        content, reason = {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": ARGUMENTS}, "tool_use"
    return {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [content],
            "stop_reason": reason, "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip


def gemini(body):
    declared = body["tools"][0].get("functionDeclarations") or body["tools"][0]["function_declarations"]
    if "2.5-pro" in body["model"]:  # as above
        # The API takes either spelling of a field, as all that is made from protocol buffers does.
        checked(
            "gemini", [{_SPELLINGS.get(key, key): value for key, value in each.items()} for each in declared]
        )
    part = body["contents"][-1]["parts"][0]
    if "functionResponse" in part:
        assert part["functionResponse"]["name"] == "ls"
        answered = part["functionResponse"]["response"]
        said = {"text": f"It holds: {answered.get('output') or answered['result']}"}
    else:
        said = {"functionCall": {"name": "ls", "args": ARGUMENTS}}
    return {"candidates": [{"content": {"role": "model", "parts": [said]}, "finishReason": "STOP"}]}


class _Api(BaseHTTPRequestHandler):
    def do_POST(self):
        body = {"model": self.path, **json.loads(self.rfile.read(int(self.headers["Content-Length"])))}
        apis = {"/completions": openai, "/responses": responses, "/messages": anthropic, ":generate": gemini}
        api = next(api for part, api in apis.items() if part in self.path)
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
