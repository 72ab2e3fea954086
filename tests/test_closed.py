"""Every call after `close()` raises `closed`: local, in a view, remote, awaited, and by a tool."""

import asyncio
import inspect
from typing import Any

import pytest

from agentfs import Workspace, connect
from agentfs.errors import ClosedError
from tests.remote.over_pipe import open_pipe
from tests.test_argument_types import USUAL

OPEN = {"close"}  # methods that need no open workspace
METHODS = sorted(
    name for name, each in vars(Workspace).items() if inspect.isfunction(each) and not name.startswith("_")
)


def use(ws: Any, name: str) -> Any:
    found = getattr(ws, name)(**USUAL.get(name, {}))
    if name == "recorded":
        return found("x")
    return found.__enter__() if name in ("transaction", "recording") else found


@pytest.fixture(params=["local", "remote"])
def closed(request, tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    if request.param == "local":
        ws: Workspace = Workspace(tmp_path)
    else:
        ws = connect(open_pipe(), tmp_path)
    given = ws, ws.view(), ws.tools("all")
    ws.close()
    return given


def test_every_method_says_so(closed):
    assert {"read", "append", "move", "stat", "transaction", "recording", "view"} <= {*METHODS}
    for ws in closed[:2]:
        for name in METHODS:
            if name in OPEN:
                use(ws, name)
                continue
            with pytest.raises(ClosedError, match="This workspace is closed"):
                use(ws, name)
        for name in ("containment", "watch"):
            with pytest.raises(ClosedError):
                getattr(ws, name)
        with pytest.raises(ClosedError):
            ws.__enter__()
        ws.close()


def test_every_tool_says_so(closed):
    tools = closed[2]
    assert len(tools) > 15
    for tool in tools:
        for call in (tools.call, lambda *given: asyncio.run(tools.acall(*given))):
            result = call(tool.name, USUAL.get(tool.name, {}))
            assert (result.error or {}).get("code") == "closed", tool.name
