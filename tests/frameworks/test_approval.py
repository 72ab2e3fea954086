"""Approval by the framework that runs a call."""

from functools import partial

import pytest

from agentfs import Allow, Policy, Toolset, Workspace, connect
from agentfs.frameworks import ask
from agentfs.permission.ask import Paused, answering
from agentfs.tools.tool import tool
from agentfs.tools.toolset import needs_approval
from tests.kit import described
from tests.remote.over_pipe import open_pipe

POLICY = Policy(allow=["read", "change(free/**)"], on_ask=ask)
FILE = {"path": "a.txt", "content": "new\n"}


@pytest.fixture(params=["local", "remote"])
def ws(request, tmp_path):
    given = (Workspace,) if request.param == "local" else (connect, open_pipe())
    with partial(*given)(tmp_path, policy=POLICY) as ws:
        yield ws


def test_without_a_framework_nobody_is_asked(ws):
    result = ws.tools().call("write", FILE)
    assert result.error["code"] == "refused"
    assert result.content.startswith("No framework runs this call, so the user cannot be asked.")


class TheirError(Exception):
    pass


@pytest.mark.parametrize("raised", [TheirError, Paused])
def test_a_pause_leaves_a_call_before_it_has_changed_anything(ws, tmp_path, raised):
    def pause(request):
        raise Paused(request, TheirError(request.diff)) if raised is TheirError else Paused(request)

    tools = ws.tools()
    assert (needs_approval(tools, "write", FILE), needs_approval(tools, "ls", {})) == (True, False)
    with pytest.raises(raised) as caught, answering(pause):
        tools.call("write", FILE)
    assert raised is Paused or "new" in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    assert not ws.changes().files
    with answering(lambda _: Allow()):
        assert tools.call("write", FILE).success


def test_a_call_that_may_be_asked_about_needs_approval(ws, tmp_path):
    ran = []

    @tool(effect="write")
    @described
    def send(text: str) -> str:
        ran.append(text)
        return "sent"

    tools = ws.tools("all") + [send]  # noqa: RUF005 - a toolset
    (tmp_path / "old.txt").write_text("old\n")
    for name, arguments, needed in (
        ("write", FILE, True), ("replace", {"old_string": "old", "new_string": "new"}, True),
        ("write", {"path": "free/a.txt", "content": "new\n"}, False), ("grep", {"pattern": "new"}, False),
        ("write", {"path": 1}, False), ("send", {"text": "x"}, True), ("read", {"path": "old.txt"}, False),
        ("Create_file", FILE, True), ("nothing", {}, False),
    ):  # fmt: skip
        assert needs_approval(tools, name, arguments) is needed, (name, arguments)
    for dialect, name, arguments in (
        ("text-editor", "str_replace_based_edit_tool",
         {"command": "create", "path": "a.txt", "file_text": "new\n"}),
        ("wave", "Write", {"file_path": str(tmp_path / "a.txt"), "content": "new\n"}),
    ):  # fmt: skip
        assert needs_approval(ws.tools(dialect=dialect), name, arguments)
    with Workspace(tmp_path) as without_rules:
        assert not needs_approval(without_rules.tools(), "write", FILE)
    assert not needs_approval(Toolset([]), "write", FILE)
    assert ran == []
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("old.txt", "old\n")]
