"""One table of how commands run: staged and recorded, sync and async, here and over `connect`."""

import asyncio
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentfs import AgentFSError, Limits, Policy, Workspace, connect
from tests.commands.conftest import PID, running, snapshot
from tests.remote.over_pipe import open_pipe


@contextmanager
def opened_at(place: str, way: str, tree: Path, limits: Limits | None = None):
    policy = Policy(run=way)
    if place == "local":
        with Workspace(tree, policy=policy, limits=limits) as ws:
            yield ws
    else:
        with connect(open_pipe(policy=policy), tree, policy=policy, limits=limits) as ws:
            yield ws


@pytest.fixture(params=["local", "connect"])
def place(request):
    return request.param


@pytest.fixture(params=["staged", "recorded"])
def way(request):
    return request.param


@pytest.fixture(params=["sync", "async"])
def table(request, place, way, tree):
    """Return a function that calls a method, however it is called."""
    with opened_at(place, way, tree) as ws:

        def call(method, *args, **kwargs):
            if request.param == "sync":
                return getattr(ws, method)(*args, **kwargs)
            return asyncio.run(asyncio.to_thread(getattr(ws, method), *args, **kwargs))

        yield call


def test_plain(table, way, tree):
    before = snapshot(tree)
    result = table("run", "echo out; echo err >&2; echo x > made; exit 3", cwd="src")
    assert (result.exit_status, result.stdout, result.stderr) == (3, b"out\n", b"err\n")
    assert result.confinement == way
    assert [change.path for change in result.changes.files] == ["src/made"]
    table("undo")
    assert snapshot(tree) == before


def test_timeout(table, way, tree):
    result = table("run", f"echo begun; sleep 46.{PID}", timeout=0.7)
    assert (result.timed_out, result.exit_status, result.stdout) == (True, None, b"begun\n")
    assert not running(f"sleep 46.{PID}")


def test_background(table, way):
    if way == "staged":
        with pytest.raises(AgentFSError) as raised:
            table("run", f"sleep 47.{PID}", background=True)
        assert raised.value.code == "unsupported"
        return
    result = table("run", f"echo ready; sleep 47.{PID}", background=True)
    assert table("output", result.id).running
    stopped = table("stop", result.id)
    assert stopped.exit_status is not None
    assert not running(f"sleep 47.{PID}")


def test_preview(table, way, tree):
    before = snapshot(tree)
    if way == "recorded":
        with pytest.raises(AgentFSError) as raised:
            table("run", "touch made", preview=True)
        assert raised.value.code == "unsupported"
    else:
        assert [change.path for change in table("run", "touch made", preview=True).changes.files] == ["made"]
    assert snapshot(tree) == before


def test_a_run_longer_than_other_calls_may_take(place, way, tree):
    with opened_at(place, way, tree, Limits(timeout=3.0)) as ws:
        assert ws.run("sleep 4; echo end").stdout == b"end\n"


async def test_cancel(place, way, tree):
    with opened_at(place, way, tree) as ws:
        task = asyncio.create_task(ws.tools(["run"]).acall("run", {"command": f"touch made; sleep 48.{PID}"}))
        await until(lambda: running(f"sleep 48.{PID}"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not running(f"sleep 48.{PID}"), "it has ended when the cancellation is raised"
        if way == "staged":
            assert not (tree / "made").exists()


async def until(found):
    for _ in range(200):
        if await asyncio.to_thread(found):
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not happen")


def test_commands_end_with_the_connection(tree):
    policy = Policy(run="recorded")
    with connect(open_pipe(policy=policy), tree, policy=policy) as ws:
        ws.run(f"sleep 49.{PID}", background=True)
        asyncio.run(until(lambda: running(f"sleep 49.{PID}")))
    asyncio.run(until(lambda: not running(f"sleep 49.{PID}")))
