"""Tools and backends with stand-ins for the frameworks; the second tier uses the packages themselves."""

import asyncio
import importlib
import json
import logging
import sys
import types
from base64 import b64decode
from io import BytesIO

import pytest
from PIL import Image

from agentfs import AgentFSError, Limits, Policy, Workspace, frameworks
from tests.kit import put

FILE = BytesIO()
Image.new("1", (1, 1)).save(FILE, "png")
PNG = FILE.getvalue()


class Record:
    """A value of a protocol, or one of its errors."""

    def __init__(self, *values, **named):
        self.values = values
        vars(self).update(named)

    def __class_getitem__(cls, _):
        return cls


def module(monkeypatch, name, **names):
    """Add a module whose other names are records."""
    made = types.ModuleType(name)
    ends = ("Error", "Failed", "Required")
    made.__getattr__ = lambda each: type(each, (Record, *[Exception] * each.endswith(ends)), {})
    vars(made).update(names, __path__=[])
    monkeypatch.setitem(sys.modules, name, made)
    return made


def importing(monkeypatch, name):
    monkeypatch.delitem(sys.modules, f"agentfs.frameworks.{name}", raising=False)
    monkeypatch.delitem(vars(frameworks), name, raising=False)
    return importlib.import_module(f"agentfs.frameworks.{name}")


@pytest.fixture
def deep(monkeypatch):
    def page(file, offset, limit):
        kept = file["content"].splitlines(keepends=True)[offset : offset + limit]
        more = offset + len(kept) if offset + limit < file["content"].count("\n") else None
        return Record(file_data={"content": "".join(kept)}, next_offset=more, error=None)

    for name in ("deepagents", "deepagents.backends"):
        module(monkeypatch, name)
    module(monkeypatch, "deepagents.backends.protocol", FileInfo=dict, GrepMatch=dict)
    module(monkeypatch, "deepagents.backends.utils", slice_read_response=page)
    monkeypatch.setattr(frameworks, "version", lambda _: "0.7.0")
    return importing(monkeypatch, "deepagents")


def test_files_of_deepagents(deep, tmp_path, caplog):
    put(tmp_path, {"a.txt": "1\n2\n3\n", ".h": "x", "img": b"\0x", "big": b"\0" * 512_001, "d/b.txt": "1\n"})
    put(tmp_path, {".gitignore": "gone\n", "gone": "1\n", "fit": b"\0" * 512_000})
    backend = deep.Backend(tmp_path)
    assert backend.id == str(tmp_path)
    top = f"{tmp_path}/"
    listed = {each["path"].removeprefix(top): each for each in backend.ls("/").entries}
    assert {*listed} == {".gitignore", ".h", "a.txt", "big", "d", "fit", "gone", "img"}
    assert (listed["a.txt"]["size"], listed["a.txt"]["is_dir"], listed["d"]["is_dir"]) == (6, False, True)
    assert "size" not in listed["d"]
    assert listed["a.txt"]["modified_at"].endswith("+00:00")
    assert backend.ls(f"{top}none").error.startswith("File not found: ")
    assert backend.read(f"{top}a.txt", 1, 1).file_data == {"content": "2"}
    assert backend.read(f"{top}a.txt").file_data == {"content": "1\n2\n3\n"}
    put(tmp_path, {"long.txt": "x\n" * 2001})
    assert backend.read(f"{top}long.txt").next_offset == 2000
    assert b64decode(backend.read(f"{top}img").file_data["content"]) == b"\0x"
    assert b64decode(backend.read(f"{top}fit").file_data["content"]) == b"\0" * 512_000
    assert backend.read(f"{top}big").error.endswith("maximum preview size of 512000 bytes")
    put(tmp_path, {"n.ipynb": '{"cells": [], "nbformat": 4}'})
    assert backend.read(f"{top}n.ipynb").file_data["content"].startswith('{"cells"')
    put(tmp_path, {"x.md": "[z"})
    assert len(backend.grep("[z").values[1]) == 1
    with caplog.at_level(logging.INFO):
        found = backend.grep("1")
    error, matches, cut = found.values
    assert ([(each["path"], each["line"], each["text"]) for each in matches], error, cut) == (
        [(f"{top}a.txt", 1, "1"), (f"{top}d/b.txt", 1, "1")], None, False
    )  # fmt: skip
    assert "grep in" in caplog.text
    assert backend.grep("1", max_count=1).values[2] is True
    globbed = backend.glob("*.txt")
    assert [each["path"].removeprefix(top) for each in globbed.matches] == ["a.txt", "d/b.txt", "long.txt"]
    assert (globbed.truncated, globbed.truncation_reason) == (False, None)
    assert [each["path"].removeprefix(top) for each in backend.glob(".h").matches] == [".h"]
    assert backend.write(f"{top}a.txt", "a\r\na\n").path == f"{top}a.txt"
    assert (tmp_path / "a.txt").read_bytes() == b"a\r\na\n"
    assert backend.edit(f"{top}a.txt", "a", "b").error.startswith("String appears multiple times: ")
    assert backend.edit(f"{top}a.txt", "a", "b", True).occurrences == 2
    assert backend.delete(f"{top}d").path == f"{top}d"
    sent = backend.upload_files([(f"{top}up", b"1"), ("up", b""), ("/etc/up", b"")])
    assert [each.values[1] for each in sent] == [None, "invalid_path", "permission_denied"]
    got = backend.download_files([f"{top}up", f"{top}none", str(tmp_path)])
    assert [each.values[1:] for each in got] == [
        (b"1", None), (None, "file_not_found"), (None, "is_directory")
    ]  # fmt: skip
    backend.close()
    assert "closed" in backend.ls("/").error
    put(tmp_path, ["d/" * 101 + "x"])
    with Workspace(tmp_path, limits=Limits(walk_entries=2)) as ws:
        cut = deep.Backend(ws)
        assert (cut.glob("*").truncation_reason, cut.grep("1").values[2]) == ("budget", True)
        cut.close()
        assert ws.stat(".")
        whole = deep.Backend(ws.root)
        assert (whole.glob("*").truncation_reason, "1 too deep" in whole.grep("1").values[0]) == (
            "unreadable",
            True,
        )


def test_commands_of_deepagents(deep, tmp_path):
    backend = deep.Backend(tmp_path)
    assert backend.execute("echo a; echo b >&2; exit 3").values == ("a\nb\n", 3, False)
    text, status = backend.execute("echo a; sleep 9", timeout=0.2).values
    assert (text, status) == ("a\n\nThe command was stopped after 0.2 s.", 124)
    assert backend.execute("true", timeout=0).values[1] == 0
    assert asyncio.run(backend.aexecute("echo c")).values[0] == "c\n"
    refused = deep.Backend(tmp_path, policy=Policy(deny=["run(rm *)"])).execute("rm x").values
    assert (refused[1], "run(rm *)" in refused[0]) == (126, True)
    assert deep.Backend(tmp_path, run=None).execute("true").values[1] == 126


ASKED = Policy(on_ask=frameworks.ask, ask=["write(asked)"])
CALLS = {"a.txt": "read", "a.png": "read", "none": "read", "asked": "write"}


def results_of(call, tmp_path):
    """Return what calls return, or the arguments of what they raise."""
    put(tmp_path, {"a.txt": "1\n", "a.png": PNG})
    found = {}
    for path, tool in CALLS.items():
        try:
            found[path] = asyncio.run(
                call(tool, {"path": path, **({"content": "x"} if tool == "write" else {})})
            )
        except Exception as error:  # noqa: BLE001 - of each framework
            found[path] = error
    return found


def test_tools_of_openai_agents(monkeypatch, tmp_path):
    spans = []
    span = Record(set_error=spans.append)
    module(monkeypatch, "agents", get_current_span=lambda: span)
    module(monkeypatch, "agents.tool", ToolOutputImageDict=dict, ToolOutputTextDict=dict)
    module(monkeypatch, "agents.tool_context")
    monkeypatch.setattr(frameworks, "version", lambda _: "0.24.0")
    adapter = importing(monkeypatch, "openai_agents")
    with Workspace(tmp_path, policy=ASKED) as ws:
        tools = {each.name: each for each in adapter.tools(ws.tools("all"), approval=True)}
        assert adapter.tools(ws.tools())[0].needs_approval is False
        assert (adapter.tools(ws.tools())[0].strict_json_schema, tools["read"].strict_json_schema) == (
            False,
            False,
        )
        context = Record(
            tool_call_id="1", is_tool_approved=lambda name, call_id: (name, call_id) == ("write", "2")
        )
        found = results_of(
            lambda name, given: tools[name].on_invoke_tool(context, json.dumps(given)), tmp_path
        )
        assert found["a.txt"] == "1|1"
        assert [each["type"] for each in found["a.png"]] == ["text", "image"]
        assert (spans[0].data, "does not exist" in found["none"]) == ({"code": "not_found"}, True)
        assert "was not" in found["asked"]
        data = tools["write"].custom_data_extractor(Record(tool_context=context))
        assert data == {"success": False, "code": "refused"}
        context.tool_call_id = "2"
        assert "Created" in asyncio.run(
            tools["write"].on_invoke_tool(context, '{"path": "asked", "content": ""}')
        )
        assert tools["write"].custom_data_extractor(Record(tool_context=context))["success"] is True
        assert tools["write"].custom_data_extractor(Record(tool_context=Record())) is None
        for name, asks in (("write", True), ("read", False)):
            given = {"path": "asked", "content": "x"}
            assert asyncio.run(tools[name].needs_approval(None, given, "1")) is asks


def test_tools_of_langchain(monkeypatch, tmp_path):
    answers, asked = [], []
    for name in ("langchain_core", "langchain_core.runnables", "langgraph"):
        module(monkeypatch, name)
    module(monkeypatch, "langchain_core.runnables.config", ensure_config=dict)
    failed, paused = type("ToolException", (Exception,), {}), type("GraphBubbleUp", (Exception,), {})
    module(monkeypatch, "langchain_core.tools", ToolException=failed)
    module(monkeypatch, "langgraph.errors", GraphBubbleUp=paused)

    def interrupt(value):
        asked.append(value)
        if not answers:
            raise paused
        return answers.pop()

    module(monkeypatch, "langgraph.types", interrupt=interrupt)
    monkeypatch.setattr(frameworks, "version", lambda _: "1.0")
    with Workspace(tmp_path, policy=ASKED) as ws:
        tools = {each.name: each for each in importing(monkeypatch, "langchain").tools(ws.tools("all"))}
        assert tools["read"].handle_tool_error is True
        found = results_of(lambda name, given: tools[name]._arun(**given), tmp_path)
        assert (found["a.txt"][0], found["a.txt"][1]["success"]) == ("1|1", True)
        assert [each["type"] for each in found["a.png"][0]] == ["text", "image"]
        assert isinstance(found["none"], failed)
        assert isinstance(found["asked"], paused)
        assert asked[0]["action_requests"][0]["args"] == {"path": "asked", "content": "x"}
        for answer in (
            {"decisions": [{"type": "reject", "message": "why"}]},
            {"type": "reject"},
            "approve",
            {},
        ):
            answers.append(answer)
            with pytest.raises(failed, match="why" if "decisions" in answer else "."):
                tools["write"]._run(path="asked", content="x")
        for answer in ({"decisions": [{"type": "approve"}]}, {"type": "approve"}):
            answers.append(answer)
            assert tools["write"]._run(path="asked", content=f"{answer}")[1]["success"]


def test_tools_of_pydantic_ai(pydantic, monkeypatch, tmp_path):
    adapter = importing(monkeypatch, "pydantic_ai")
    with Workspace(tmp_path, policy=ASKED) as ws:
        toolset = adapter.toolset(ws.tools("all"), id="files")
        assert toolset.id == "files"
        tools = asyncio.run(toolset.get_tools(None))
        assert (tools["read"].tool_def.sequential, tools["write"].tool_def.sequential) == (False, True)
        context = Record(tool_call_approved=False)
        found = results_of(lambda name, given: toolset.call_tool(name, given, context, None), tmp_path)
        assert found["a.txt"].values == ("1|1",)
        assert [type(each) for each in found["a.png"].values[0]] == [str, adapter.BinaryContent]
        assert isinstance(found["none"], adapter.ToolFailed)
        assert found["asked"].values[0]["paths"] == ["asked"]
        context.tool_call_approved = True
        given = {"path": "asked", "content": "x"}
        assert asyncio.run(toolset.call_tool("write", given, context, None)).metadata["success"]


@pytest.fixture
def pydantic(monkeypatch):
    failed, required = (
        type("ToolFailed", (Record, Exception), {}),
        type("ApprovalRequired", (Record, Exception), {}),
    )
    module(monkeypatch, "pydantic_ai", ToolFailed=failed, ApprovalRequired=required)
    module(monkeypatch, "pydantic_ai.messages")
    workspaces = module(monkeypatch, "pydantic_ai.workspaces")
    for name in ("WorkspaceUnavailableError", "WorkspaceTimeoutError", "WorkspaceOutputLimitError"):
        setattr(workspaces, name, getattr(workspaces, name))
    monkeypatch.setattr(sys.modules["pydantic_ai"], "workspaces", workspaces, raising=False)
    return importing(monkeypatch, "pydantic_ai_workspace")


def test_files_of_pydantic_ai(pydantic, tmp_path):
    put(tmp_path, {"a": "1\n", "d/b": ""})
    (tmp_path / "l").symlink_to("d/b")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "top").symlink_to(tmp_path / "d")
    backend, run = pydantic.WorkspaceBackend(tmp_path), asyncio.run
    assert backend.ref is None
    assert run(backend.working_dir()) == str(tmp_path) == backend.ref.id
    assert run(backend.read_bytes("a")) == b"1\n"
    run(backend.write_bytes("new/c", b"2"))
    entry, directory, link = (run(backend.stat(each)) for each in ("a", "d", "l"))
    assert [vars(each) for each in (entry, directory, link)] == [
        {"values": (), "name": name, "path": name, "is_dir": is_dir, "size": size}
        for name, is_dir, size in (("a", False, 2), ("d", True, None), ("l", False, 0))
    ]
    assert [each.path for each in run(backend.list_dir("."))] == [
        "./a", "./d", "./l", "./loop", "./new", "./top"
    ]  # fmt: skip
    run(backend.make_dir("x/y"))
    assert [run(backend.exists(each)) for each in ("x/y", "none", "a/b", "loop", "l")] == [
        True, False, False, False, True
    ]  # fmt: skip
    for path, real in {"l": "d/b", "top/b": "d/b", "none/../a": "a", "d/none": "d/none"}.items():
        assert run(backend.realpath(path)) == f"{tmp_path}/{real}"
    with pytest.raises(AgentFSError, match="links"):
        run(backend.realpath("loop"))
    for path in (".", str(tmp_path), "..", "/"):
        with pytest.raises(ValueError, match="cannot be removed"):
            run(backend.remove(path))
    run(backend.remove("d"))
    assert not (tmp_path / "d").exists()
    again = pydantic.WorkspaceBackend(ref=backend.ref)
    assert run(again.read_bytes("a")) == b"1\n"
    with pytest.raises(ValueError, match="either a root or a ref"):
        pydantic.WorkspaceBackend(tmp_path, ref=backend.ref)
    with pytest.raises(ValueError, match="either a root or a ref"):
        pydantic.WorkspaceBackend(ref=Record(provider="other", id="x"))
    backend.close()
    with pytest.raises(pydantic.api.WorkspaceUnavailableError):
        run(backend.working_dir())
    made = pydantic.WorkspaceBackend()
    assert run(made.working_dir()) == made.ref.id


def test_commands_of_pydantic_ai(pydantic, tmp_path):
    backend, run = pydantic.WorkspaceBackend(tmp_path), asyncio.run
    done = run(backend.run("echo $A; echo b >&2; exit 3", shell=True, env={"A": "a"}))
    assert (done.exit_code, done.stdout, done.stderr) == (3, "a\n", "b\n")
    assert run(backend.run(["echo", "a b"])).stdout == "a b\n"
    for command, options, error in (
        ("ls", {}, TypeError), (["ls"], {"shell": True}, TypeError), ([], {}, ValueError),
        ("ls", {"shell": True, "timeout": 0}, ValueError), (["ls"], {"timeout": float("inf")}, ValueError),
    ):  # fmt: skip
        with pytest.raises(error):
            run(backend.run(command, **options))
    with pytest.raises(pydantic.api.WorkspaceTimeoutError) as caught:
        run(backend.run("echo a; sleep 9", shell=True, timeout=0.2))
    assert caught.value.stdout == "a\n"
    (tmp_path / "fifo").touch()
    run(backend.run(["rm", "fifo"]))
    run(backend.run(["mkfifo", "fifo"]))
    run(backend.remove("fifo"))
    assert not (tmp_path / "fifo").exists()
    with Workspace(tmp_path, policy=Policy(run="recorded"), limits=Limits(file_bytes=9)) as ws:
        bounded = pydantic.WorkspaceBackend(ws)
        with pytest.raises(pydantic.api.WorkspaceOutputLimitError):
            run(bounded.run(["seq", "9"]))
        bounded.close()
        assert ws.ls() is not None
