"""Every call after `close()` raises `closed`: local, watched, in a view, remote, awaited, and by a tool."""

import asyncio
import inspect
from typing import Any

import pytest

from agentfs import Workspace, connect, dialects
from agentfs.errors import ClosedError
from tests import kit
from tests.remote.over_pipe import open_pipe
from tests.test_argument_types import USUAL
from tests.test_bad_input import GIVEN

METHODS = sorted(
    name for name, each in vars(Workspace).items() if inspect.isfunction(each) and not name.startswith("_")
)


def use(ws: Any, name: str) -> Any:
    found = getattr(ws, name)(**USUAL.get(name, {}))
    if name == "recorded":
        return found("x")
    return found.__enter__() if name in ("transaction", "recording") else found


@pytest.fixture(params=["local", "watched", "remote"])
def closed(request, tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    is_remote, watch = request.param == "remote", request.param == "watched"
    ws = connect(open_pipe(), tmp_path) if is_remote else Workspace(tmp_path, watch=watch)
    given = ws, ws.view(workdir="."), ws.tools("all"), kit.keep(ws, "kept text")
    ws.close()
    yield given
    assert (tmp_path / "a.txt").read_text() == "one\n"


def test_every_method_says_so(closed, tmp_path):
    assert {"read", "append", "move", "stat", "transaction", "recording", "view"} <= {*METHODS}
    for ws in closed[:2]:
        for name in {*METHODS} - {"close"}:
            with pytest.raises(ClosedError, match="This workspace is closed"):
                use(ws, name)
        for name in ("containment", "watch", "__enter__"):
            assert kit.code_of(lambda ws=ws, name=name: getattr(ws, name)()) == "closed"
        ws.close()
        ws.close()
    assert kit.code_of(closed[0].read, closed[3]) == "closed"
    assert (closed[0].root, closed[0].recovery_notes) == (str(tmp_path), ())


def test_every_tool_says_so(closed):
    tools = closed[2]
    assert len(tools) > 15
    for tool in tools:
        for call in (tools.call, lambda *given: asyncio.run(tools.acall(*given))):
            result = call(tool.name, USUAL.get(tool.name, {}))
            assert (result.error or {}).get("code") == "closed", tool.name


@pytest.mark.parametrize("dialect", dialects.BUILT_IN)
def test_every_tool_of_a_dialect_says_so(tmp_path, dialect):
    with Workspace(tmp_path) as ws:
        tools = ws.tools(dialect=dialect)
    sent = GIVEN | {
        "path": "/memories/f.txt" if dialect == "memory" else "f.txt", "file_path": "f.txt",
        "command": "view", "input": "*** Begin Patch\n*** Delete File: f.txt\n*** End Patch",
    }  # fmt: skip
    for schema in tools.schemas("anthropic"):
        needed = {*schema["input_schema"].get("required", ()), "old_string", "roots"}
        needed |= {"path"} if dialect == "memory" else set()
        given = {name: sent[name] for name in schema["input_schema"]["properties"].keys() & needed}
        result = tools.call(schema["name"], given)
        assert "closed" in result.content, (schema["name"], result)
        assert "descriptor" not in result.content
