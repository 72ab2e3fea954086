"""The table of the gate: each kind of tool under each setting, and the outcome that every way to call it has.

    python -m tests.tools.gate_table DIRECTORY (stdio | http)

serves all cells of the table over MCP, each as a tool, and their records as the tool `records`. This module
needs no pytest, because the environments of the frameworks import it too.
"""

import asyncio
import json
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from mcp import Client
from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel, Field

from agentfs import Limits, Policy, Workspace
from agentfs.text.display import estimate_tokens
from agentfs.tools.tool import Tool, tool_of
from tests import kit
from tests.kit import described

TOKENS = 200
LONG = "".join(f"line {number}\n" for number in range(5000))
SECONDS = 0.05
# A workspace's own method ends before it does anything; a function waits for longer than this.
NO_TIME = 1e-9


def _raised(event):
    return type(getattr(event.exception, "__cause__", None)).__name__


class Verdict(NamedTuple):
    """The outcome of a call: how often the tool ran and the user was asked, and how the call ended."""

    ran: int
    asked: int
    end: str  # the kind of the last event
    code: str
    raised: str | None = None  # the exception that only the program sees
    said: bool = True  # whether the model was told what the column says


class Column(NamedTuple):
    """A setting, the text that the tool gets, what the model is told, and the verdict."""

    told: str
    verdict: Verdict
    settings: Mapping[str, Any] = MappingProxyType({})
    text: str = "work"


class QuestionError(Exception):
    """Raised by a permission callback."""


REFUSED = Verdict(0, 0, "refused", "refused")
DONE = Verdict(1, 0, "finished", "")
COLUMNS = {
    "plan": Column("Nothing is changed in plan mode", REFUSED, {"mode": "plan"}),
    "read_only": Column("read-only", Verdict(0, 0, "refused", "read_only"), {"read_only": True}),
    "deny": Column("The rule `RULE` denies this call.", REFUSED, {"deny": ["RULE"]}),
    "refuses": Column("The user did not allow this call.", REFUSED._replace(asked=1), {"on_ask": False}),
    "allows": Column("", DONE._replace(asked=1), {"on_ask": True}),
    "raises": Column(
        "The user could not be asked", REFUSED._replace(asked=1, raised="QuestionError"), {"on_ask": None}
    ),
    "allow": Column("", DONE, {"on_ask": False, "allow": ["RULE"]}),
    "ask": Column("nobody to ask", REFUSED, {"ask": ["RULE"]}),
    "timeout": Column("did not end within", Verdict(0, 0, "failed", "timeout"), text="wait"),
    "output": Column("", DONE, text="long"), "event": Column("", DONE),
}  # fmt: skip


class Note(BaseModel):
    """Parameters of a tool as a Pydantic model."""

    text: str = Field(description="What to do.", min_length=1)


class Cell:
    """A tool of one kind under one setting, and the record of its calls."""

    def __init__(self, kind: str, column: str, top: Path) -> None:
        self.kind, self.column, self.setting = kind, column, COLUMNS[column]
        self.top = top
        self.top.mkdir(parents=True)
        self.ran: list[str] = []
        self.asked: list[Any] = []
        self.events: list[Any] = []
        self.released = threading.Event()
        self.reads = kind == "ours" and column == "output"
        self.own_name = self.name = "tell"
        if kind == "ours":
            self.own_name, self.name = ("read", "show") if self.reads else ("write", "put")
            (top / "long.txt").write_text(LONG)
        self.rule = self.own_name

    def options(self) -> dict[str, Any]:
        """The options of the workspace."""
        settings = dict(self.setting.settings)
        if "on_ask" in settings:
            settings["on_ask"] = self._answer
        for name in {"allow", "deny", "ask"} & settings.keys():
            settings[name] = [self.rule]
        limits: dict[str, Any] = {"output_tokens": TOKENS} if self.column == "output" else {}
        if self.column == "timeout":
            limits["timeout"] = NO_TIME if self.kind == "ours" else SECONDS
        return {"policy": Policy(**settings), "limits": Limits(**limits), "on_event": self.events.append}

    def _answer(self, request: Any) -> bool:
        self.asked.append(request.method)
        answer = self.setting.settings["on_ask"]
        if answer is None:
            raise QuestionError
        return bool(answer)

    def tool(self, ws: Workspace) -> Any:
        """The tool of this kind."""
        return getattr(self, f"_{self.kind}")(ws)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the call."""
        text = self.setting.text
        if self.kind == "ours":
            return {"path": "long.txt"} if self.reads else {"path": "new.txt", "content": text}
        return {"note": {"text": text}} if self.kind == "pydantic" else {"text": text}

    def _work(self, text: str) -> str:
        self.ran.append(text)
        if text == "wait":
            self.released.wait(20)
        return LONG if text == "long" else f"did {text}"

    async def _later(self, text: str) -> str:
        if text == "wait":
            self.ran.append(text)
            await asyncio.sleep(20)
        return self._work(text)

    def _ours(self, ws: Workspace) -> Tool:
        return replace(tool_of(ws.read if self.reads else ws.write), name=self.name)

    def _function(self, _: Workspace) -> Any:
        @described
        def tell(text: str) -> str:
            return self._work(text)

        return tell

    def _coroutine(self, _: Workspace) -> Any:
        @described
        async def tell(text: str) -> str:
            return await self._later(text)

        return tell

    def _method(self, _: Workspace) -> Any:
        return self.tell

    @described
    def tell(self, text: str) -> str:
        return self._work(text)

    def _pydantic(self, _: Workspace) -> Any:
        @described
        def tell(note: Note) -> str:
            return self._work(note.text)

        return tell

    def _mcp(self, _: Workspace) -> Any:
        server = MCPServer("other")

        @server.tool()
        async def work(text: str) -> str:
            """Work."""
            return await self._later(text)

        @described
        async def tell(text: str) -> str:
            async with Client(server) as client:
                answer = await client.call_tool("work", {"text": text})
                return answer.content[0].text

        return tell

    def record(self) -> dict[str, Any]:
        """The record of the calls, ready for JSON."""
        self.released.set()
        # Whether a function begins within so short a time depends on the machine.
        ran = 0 if self.column == "timeout" else len(self.ran)
        if self.kind == "ours":
            ran = int(self.reads or (self.top / "new.txt").exists())
        events = [
            (each.kind, each.tool, each.called_as, kit.code(each), _raised(each)) for each in self.events
        ]
        return {"ran": ran, "asked": self.asked, "events": events}

    def verdict(self, record: dict[str, Any], said: str, called_as: str = "") -> Verdict:
        """Return what a call showed; the events must name the tool as it is and as it was called."""
        names = {(self.own_name, called_as or self.name)}
        assert {tuple(event[1:3]) for event in record["events"]} == names, record
        assert [event[0] for event in record["events"]][:-1] == ["started"], record
        assert set(record["asked"]) <= {self.own_name, called_as or self.name}, record
        kind, _, _, code, raised = record["events"][-1]
        told = self.setting.told.replace("RULE", self.rule) in said and estimate_tokens(said) <= TOKENS
        if self.column == "output":
            told = told and ("left out" in said or "lines 1-" in said)
        raised = raised if raised == "QuestionError" else None
        return Verdict(record["ran"], len(record["asked"]), kind, code, raised, told)


KINDS = ("ours", "function", "coroutine", "method", "pydantic", "mcp")


def serve(top: Path, transport: str) -> None:
    """Serve all cells over MCP."""
    from agentfs import Toolset
    from agentfs.mcp import sdk_tools

    cells = {
        f"{kind}_{column}": Cell(kind, column, top / kind / column) for kind in KINDS for column in COLUMNS
    }
    tools: list[Any] = []
    for name, cell in cells.items():
        ws = Workspace(cell.top, **cell.options())
        own = Toolset([replace(tool_of(cell.tool(ws)), name=name)], workspace=ws)
        tools += sdk_tools(own)
    server = MCPServer("table", tools=tools)

    @server.tool()
    def records() -> str:
        """Return the records."""
        return json.dumps({name: cell.record() for name, cell in cells.items()})

    if transport == "stdio":
        server.run("stdio")
    else:
        import socket

        import uvicorn

        listening = socket.create_server(("127.0.0.1", 0))
        sys.stdout.write(f"{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        config = uvicorn.Config(server.streamable_http_app(), log_level="error")
        asyncio.run(uvicorn.Server(config).serve([listening]))


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2])
