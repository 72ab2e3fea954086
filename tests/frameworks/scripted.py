"""The other side of a conversation: a client and an agent of ACP, and a server of Anthropic's messages."""

import asyncio
import json
import socket

import acp
import httpx2 as httpx
from acp import schema
from anthropic import Anthropic


class User(acp.Client):
    """A client whose user answers with the next choice."""

    def __init__(self, *choices):
        self.choices, self.asked = list(choices), []

    def on_connect(self, conn):
        pass

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append((session_id, tool_call, options))
        chosen = self.choices.pop(0)
        if chosen is None:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id, update, **_):
        pass


class Agent(acp.Agent):
    """An agent whose turn is a function of its connection."""

    def __init__(self, turn):
        self._turn, self.result = turn, None

    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, **_):
        return schema.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd, **_):
        return schema.NewSessionResponse(session_id="s1")

    async def prompt(self, session_id, prompt, **_):
        self.result = await self._turn(self.client)
        return schema.PromptResponse(stop_reason="end_turn")


async def turn(client, function):
    """Connect a client to an agent, and return what the agent's turn returns."""
    ends = socket.socketpair()
    (reader, writer), (other_reader, other_writer) = [await asyncio.open_connection(sock=end) for end in ends]
    agent = Agent(function)
    serving = asyncio.ensure_future(acp.run_agent(agent, writer, reader))
    connection = acp.connect_to_agent(client, other_writer, other_reader)
    try:
        await connection.initialize(acp.PROTOCOL_VERSION)
        session = await connection.new_session(cwd="/", mcp_servers=[])
        await connection.prompt(session_id=session.session_id, prompt=[acp.text_block("go")])
        return agent.result
    finally:
        await connection.close()
        other_writer.close()
        writer.close()
        serving.cancel()
        await asyncio.wait([serving])


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

    async def asynchronous(self, request):
        return self(request)

    @property
    def answers(self):
        """The text and the failure of each result that the model got."""
        sent = [message for request in self.requests for message in request["messages"]]
        blocks = [block for each in sent if isinstance(each["content"], list) for block in each["content"]]
        results = {each["tool_use_id"]: each for each in blocks if each["type"] == "tool_result"}.values()
        texts = [each["content"] for each in results]
        texts = [text if isinstance(text, str) else text[0]["text"] for text in texts]
        return [(text, each.get("is_error", False)) for text, each in zip(texts, results, strict=True)]


def client(script):
    return Anthropic(api_key="none", http_client=httpx.Client(transport=httpx.MockTransport(script)))
