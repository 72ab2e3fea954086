"""Backends meet bad input: paths, use after close, two agents, cancellation. `test_backends.py` runs this."""

# Other programs change the tree, so there is nothing to wait for.
# ruff: noqa: ASYNC110, ASYNC240

import asyncio
from pathlib import Path

import pytest
from pydantic_ai.workspaces import Workspace as Facade
from pydantic_ai.workspaces import WorkspaceUnavailableError

from agentfs import Policy, Workspace
from agentfs.frameworks import deepagents, pydantic_ai
from tests.commands.conftest import PID, SECRET, running
from tests.history.judges import snapshot

SLEEP = f"echo begun > begun; sleep 4711.{PID}"


class RefusedError(Exception):
    """An operation failed as the framework's own ones fail."""


def refusing(*kinds):
    """Return a function that awaits an operation, and raises RefusedError for its failure."""

    async def attempt(operation):
        try:
            return await operation
        except kinds as error:
            raise RefusedError(str(error)) from error

    return attempt


class PydanticAi:
    """Each of these classes has the operations of a backend, and reads, writes and runs by them."""

    def __init__(self, ws):
        self.backend = pydantic_ai.WorkspaceBackend(ws)
        self.attempt = refusing(OSError, ValueError, WorkspaceUnavailableError)
        self.close = self.backend.close

    @property
    def operations(self):
        on = self.backend
        return {
            "working_dir": on.working_dir, "run": lambda: on.run(SLEEP, shell=True),
            "read": lambda: on.read_bytes("a.txt"), "write": lambda: on.write_bytes("a.txt", b"new\n"),
            "stat": lambda: on.stat("a.txt"), "list": lambda: on.list_dir("."),
            "mkdir": lambda: on.make_dir("d/e"), "remove": lambda: on.remove("a.txt"),
            "exists": lambda: on.exists("a.txt"), "realpath": lambda: on.realpath("a.txt"),
        }  # fmt: skip

    async def read(self, path):
        return (await self.attempt(self.backend.read_bytes(path))).decode()

    async def write(self, path, text):
        await self.attempt(self.backend.write_bytes(path, text.encode()))

    async def run(self, command):
        return (await self.attempt(self.backend.run(command, shell=True))).stdout


class DeepAgents:
    def __init__(self, ws):
        self.backend = deepagents.Backend(ws)
        self.close = self.backend.close

    async def attempt(self, operation):
        done = await operation
        for each in done if isinstance(done, list) else [done]:
            if error := getattr(each, "error", None):
                raise RefusedError(error)
            if getattr(each, "exit_code", 0) == 126:
                raise RefusedError(each.output)
        return done

    @property
    def operations(self):
        on, a = self.backend, f"{self.backend.id}/a.txt"
        return {
            "ls": lambda: on.als("/"), "read": lambda: on.aread(a), "grep": lambda: on.agrep("old"),
            "glob": lambda: on.aglob("*"), "write": lambda: on.awrite(a, "new\n"),
            "edit": lambda: on.aedit(a, "old", "new"), "delete": lambda: on.adelete(a),
            "run": lambda: on.aexecute(SLEEP), "upload": lambda: on.aupload_files([(a, b"new\n")]),
            "download": lambda: on.adownload_files([a]),
        }  # fmt: skip

    async def read(self, path):
        return (await self.attempt(self.backend.aread(path))).file_data["content"]

    async def write(self, path, text):
        await self.attempt(self.backend.awrite(path, text))

    async def run(self, command):
        return (await self.attempt(self.backend.aexecute(command))).output


BACKENDS = [PydanticAi, DeepAgents]


def contents(top):
    """Return the bytes of each file, except of temporaries."""
    paths = [each for each in top.rglob("*") if each.is_file() and not each.name.startswith(".agentfs-")]
    return {path: path.read_bytes() for path in paths}


@pytest.fixture
def ws(tmp_path):
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.txt").write_text("old\n")
    (root / ".env").write_text(SECRET)
    (tmp_path / "outside.txt").write_text("outside\n")
    with Workspace(root, policy=Policy(run="recorded")) as ws:
        yield ws


@pytest.mark.parametrize("kind", BACKENDS)
async def test_relative_absolute_and_foreign_paths(ws, kind):
    backend = kind(ws)
    for path in ("a.txt", f"{ws.root}/a.txt", f"{ws.root}/./a.txt"):
        assert await backend.read(path) == "old\n"
    await backend.write(f"{ws.root}/new/b.txt", "b\n")
    assert await backend.read("new/b.txt") == "b\n"
    for path in ("../outside.txt", f"{ws.root}/../outside.txt", "/etc/passwd", "/outside.txt", ".env"):
        for attempt in (backend.read(path), backend.write(path, "x")):
            with pytest.raises(RefusedError) as raised:
                await attempt
            assert SECRET not in str(raised.value)
    assert Path(ws.root, "../outside.txt").read_text() == "outside\n"
    assert Path(ws.root, ".env").read_text() == SECRET


@pytest.mark.parametrize("kind", BACKENDS)
async def test_after_close_each_operation_fails_as_those_of_the_framework(ws, kind):
    backend = kind(ws)
    before = snapshot(Path(ws.root))
    backend.close()
    ws.close()
    for operation in backend.operations.values():
        with pytest.raises(RefusedError, match="closed"):
            await backend.attempt(operation())
    assert snapshot(Path(ws.root)) == before


@pytest.mark.parametrize("kind", BACKENDS)
async def test_two_agents_on_one_backend_lose_nothing(ws, kind):
    backend, top = kind(ws), Path(ws.root)
    before, start = snapshot(top), ws.checkpoint().name

    async def work(agent):
        for number in range(6):
            await backend.write(f"{ws.root}/{agent}-{number}.txt", f"{agent}\n")
            await backend.write(f"{ws.root}/shared.txt", f"{agent} {number}\n" * 1000)
            assert "done" in await backend.run(f"echo {number} >> {agent}.log; echo done")

    await asyncio.gather(work("one"), work("two"))
    for agent in ("one", "two"):
        assert (top / f"{agent}.log").read_text() == "".join(f"{number}\n" for number in range(6))
        assert len([*top.glob(f"{agent}-*.txt")]) == 6
    assert len(set((top / "shared.txt").read_text().splitlines())) == 1, "one whole text, never a mixture"
    ws.host.rollback(start)
    assert snapshot(top) == before


@pytest.mark.parametrize("kind", BACKENDS)
async def test_a_cancellation_at_any_moment_leaves_old_or_new_and_no_process(ws, kind):
    top = Path(ws.root)
    for name, operation in kind(ws).operations.items():
        for moment in range(6):
            start, before = ws.checkpoint().name, snapshot(top)
            task = asyncio.ensure_future(operation())
            for _ in range(moment):
                await asyncio.sleep(0)
            if name == "run" and moment > 3:
                while not (top / "begun").exists():
                    await asyncio.sleep(0.01)
            elif moment > 3:
                await asyncio.sleep(0.002 * moment)
            task.cancel()
            ended = (await asyncio.gather(task, return_exceptions=True))[0]
            assert isinstance(ended, asyncio.CancelledError) or name != "run"
            after = contents(top)
            while running(f"sleep 4711.{PID}") or any(top.rglob(".agentfs-*.tmp")):  # they go in a moment
                await asyncio.sleep(0.01)
            assert contents(top) == after, "nothing changes after the cancellation"
            ws.host.rollback(start)
            assert snapshot(top) == before
    assert await Facade(pydantic_ai.WorkspaceBackend(ws)).read_bytes(f"{top}/a.txt") == b"old\n"
