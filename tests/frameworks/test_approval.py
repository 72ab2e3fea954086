"""Approval by the framework that runs a call, and rehearsals, which find out what a call would ask."""

import importlib
import sys

import pytest

from agentfs import Allow, Policy, Toolset, Workspace, connect
from agentfs.frameworks import ask
from agentfs.results import WriteResult
from agentfs.tools.approval import Paused, answering, question_of
from agentfs.tools.tool import tool
from tests.remote.over_pipe import open_pipe

POLICY = Policy(allow=["read", "search", "change(free/**)"], on_ask=ask)
FILE = {"path": "a.txt", "content": "new\n"}


@pytest.fixture
def ws(tmp_path):
    with Workspace(tmp_path, policy=POLICY) as ws:
        yield ws


async def question(tools, name, /, **arguments):
    return await question_of(tools, next(each for each in tools if each.name == name), arguments)


def test_without_a_framework_nobody_is_asked(ws):
    result = ws.tools().call("write", FILE)
    assert result.error["code"] == "refused"
    assert result.content.startswith("No framework runs this call, so the user cannot be asked.")


def test_a_pause_leaves_a_call_before_it_has_changed_anything(ws, tmp_path):
    class TheirError(Exception):
        pass

    def pause(request):
        raise Paused(request, TheirError(request.diff))

    with pytest.raises(TheirError, match="new"), answering(pause):
        ws.tools().call("write", FILE)
    assert list(tmp_path.iterdir()) == []
    assert not ws.changes().files
    with answering(lambda _: Allow()):
        assert ws.tools().call("write", FILE).success


async def test_a_rehearsal_returns_the_question_and_changes_nothing(ws, tmp_path):
    events = []
    tools = Toolset(ws.tools("all"), on_event=events.append)
    (tmp_path / "old.txt").write_text("old\n")
    assert (await question(tools, "write", **FILE)).diff.endswith("+new\n")
    assert (await question(tools, "replace", old_string="old", new_string="new")).paths == ("old.txt",)
    assert await question(tools, "write", path="free/a.txt", content="new\n") is None
    assert await question(tools, "write", path="../a.txt", content="new\n") is None
    assert await question(tools, "checkpoint", name="here") is None
    assert await question(tools, "grep", pattern="new") is None
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("old.txt", "old\n")]
    assert events == []
    assert not ws.changes().files
    with pytest.raises(Exception, match="here"):
        ws.changes(since="here")


async def test_a_rehearsal_ends_without_rules_too(tmp_path):
    with Workspace(tmp_path) as ws:
        assert await question(ws.tools(), "write", **FILE) is None
    assert list(tmp_path.iterdir()) == []


async def test_a_rehearsed_read_is_not_a_read(ws, tmp_path):
    (tmp_path / "free").mkdir()
    (tmp_path / "free" / "a.txt").write_text("old\n")
    tools = ws.tools()
    assert await question(tools, "read", path="free/a.txt") is None
    assert tools.call("write", {"path": "free/a.txt", "content": "new\n"}).error["code"] == "unread"


async def test_functions_that_change_something_by_themselves_are_not_rehearsed(ws):
    ran = []

    @tool(effect="write")
    def send(text: str) -> str:
        """Send.

        Args:
            text: A text.
        """
        ran.append(text)
        return "sent"

    def run(text: str) -> str:
        """Run.

        Args:
            text: A text.
        """
        ran.append(text)
        return "done"

    @tool(effect="write")
    def put(text: str) -> WriteResult:
        """Put.

        Args:
            text: A text.
        """
        ws.read("free/a.txt")
        return ws.write("a.txt", text)

    ws.write("free/a.txt", "x\n")
    tools = Toolset([send, run, put])
    assert await question(tools, "send", text="x") is await question(tools, "run", text="x") is None
    assert ran == []
    assert (await question(tools, "put", text="x")).paths == ("a.txt",)


@pytest.mark.parametrize("dialect", ["text-editor", "wave"])
async def test_a_dialects_tool_is_rehearsed_up_to_its_question(ws, tmp_path, dialect):
    name, arguments = {
        "text-editor": (
            "str_replace_based_edit_tool",
            {"command": "create", "path": "a.txt", "file_text": "new\n"},
        ),
        "wave": ("Write", {"file_path": str(tmp_path / "a.txt"), "content": "new\n"}),
    }[dialect]
    asked = await question(ws.tools(dialect=dialect), name, **arguments)
    assert asked.paths == ("a.txt",)
    assert list(tmp_path.iterdir()) == []


async def test_a_rehearsal_of_a_remote_change_always_asks(tmp_path):
    with connect(open_pipe(), tmp_path, policy=POLICY) as ws:
        tools = ws.tools()
        assert (await question(tools, "write", **FILE)).arguments == FILE
        assert await question(tools, "ls") is None
        assert list(tmp_path.iterdir()) == []
        with answering(lambda _: Allow()):
            assert tools.call("write", FILE).success


def test_a_pause_of_a_remote_call_changes_nothing(tmp_path):
    def pause(request):
        raise Paused(request)

    with connect(open_pipe(), tmp_path, policy=POLICY) as ws:
        with pytest.raises(Paused), answering(pause):
            ws.tools().call("write", FILE)
        assert list(tmp_path.iterdir()) == []
        with answering(lambda _: Allow()):
            assert ws.tools().call("write", FILE).success


@pytest.mark.parametrize(
    ("name", "missing", "package"),
    [
        ("acp", "acp", "agent-client-protocol"),
        ("anthropic", "anthropic.lib.tools", "anthropic"),
        ("langchain", "langchain_core.tools", "langchain"),
        ("openai_agents", "agents", "openai-agents"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai-slim"),
    ],
)
def test_a_missing_package_is_named(monkeypatch, name, missing, package):
    frameworks = importlib.import_module("agentfs.frameworks")
    monkeypatch.delitem(sys.modules, f"agentfs.frameworks.{name}", raising=False)
    monkeypatch.delitem(vars(frameworks), name, raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=f"needs the package {package}: pip install {package}"):
        getattr(frameworks, name)
