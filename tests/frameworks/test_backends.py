"""The backends with stand-ins for the frameworks; the second tier runs them with the packages themselves."""

import asyncio
import importlib
import logging
import sys
import types
from base64 import b64decode

import pytest

from agentfs import AgentFSError, Limits, Policy, Workspace, frameworks
from tests.kit import put


class Record:
    """A value of a protocol, or one of its errors."""

    def __init__(self, *values, **named):
        self.values = values
        vars(self).update(named)


def module(monkeypatch, name, **names):
    """Add a module whose other names are records."""
    made = types.ModuleType(name)
    made.__getattr__ = lambda each: type(
        each, (Record, Exception) if each.endswith("Error") else (Record,), {}
    )
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
    with Workspace(tmp_path) as ws:
        deep.Backend(ws).close()
        assert ws.ls().total


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


@pytest.fixture
def pydantic(monkeypatch):
    module(monkeypatch, "pydantic_ai")
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
