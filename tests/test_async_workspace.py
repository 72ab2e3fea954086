"""`AsyncWorkspace` under asyncio, trio and anyio."""

import asyncio
import gc
import inspect
import threading
import time

import anyio
import pytest
import trio

from agentfs import AsyncWorkspace, Limits, Policy, Toolset, Workspace
from agentfs.errors import ClosedError, ConflictError, InvalidArgumentError, NotFoundError, ReadOnlyError
from agentfs.tools.tool import declarations, tool

LOOPS = {
    "asyncio": lambda main: anyio.run(main, backend="asyncio"),
    "trio": trio.run,
    "anyio on trio": lambda main: anyio.run(main, backend="trio"),
}


@pytest.fixture(params=LOOPS)
def run(request):
    return LOOPS[request.param]


@pytest.fixture
def root(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    return tmp_path


def test_every_tool_method_is_awaitable_with_its_signature_and_docstring():
    for name in declarations(Workspace):
        method = vars(AsyncWorkspace)[name]
        assert inspect.iscoroutinefunction(method)
        assert inspect.signature(method) == inspect.signature(getattr(Workspace, name))
        assert method.__doc__ == getattr(Workspace, name).__doc__


def test_methods_are_awaited_off_the_event_loop(run, root):
    threads = set()

    class Watched(Workspace):
        def read(self, path: str):
            threads.add(threading.current_thread())
            return super().read(path)

    async def main():
        async with AsyncWorkspace(Watched(root)) as ws:
            assert (await ws.read("a.txt")).content == "one\n"
            assert (await ws.grep(pattern="one")).total_matches == 1
            assert (await ws.edit("a.txt", "one", "two")).replacements == 1
            assert (await ws.undo()).text
            with pytest.raises(NotFoundError):
                await ws.read("b.txt")
            with pytest.raises(InvalidArgumentError):
                await ws.read(3)
        assert threading.main_thread() not in threads
        with pytest.raises(ClosedError):
            await ws.read("a.txt")

    run(main)


def test_the_rest_is_as_on_the_workspace(run, root):
    async def main():
        async with Workspace(root, limits=Limits(read_lines=5)) as plain:
            assert plain.read("a.txt").content == "one\n"
            ws = AsyncWorkspace(plain)
            assert ws.root == str(root)
            assert ws.limits.read_lines == 5
            assert ws.workspace is plain
            assert len(ws.tools()) == 7
            assert (await ws.read(ws.keep("kept\n"))).content == "kept\n"
            assert (await ws.view(limits=Limits(read_lines=1)).read("a.txt")).content == "one\n"
            assert (await ws.call(len, "abc")) == 3
            with pytest.raises(AttributeError):
                ws.missing  # noqa: B018 - the attribute is the test
        with pytest.raises(ClosedError):
            plain.read("a.txt")

    run(main)


def test_tools_of_a_subclass_are_awaited(run, root):
    class Counting(Workspace):
        @tool(effect="read")
        def size(self, path: str) -> int:
            """Count characters.

            Args:
                path: File.
            """
            return len(self.read(path).content)

    async def main():
        async with AsyncWorkspace(Counting(root)) as ws:
            assert await ws.size("a.txt") == 4

    run(main)


def test_an_awaitable_method_is_a_tool(run, root):
    async def main():
        async with AsyncWorkspace(Workspace(root)) as ws:
            tools = Toolset([ws.read])
            assert tools.schemas("mcp") == ws.tools(["read"]).schemas("mcp")
            assert (await tools.acall("read", {"file_path": "a.txt"})).content == "1|one"

    run(main)


def test_a_method_that_a_tool_awaits_counts_as_the_models(run, root):
    requests = []

    def ask(request):
        requests.append((request.method, request.tool))
        return True

    async def main():
        async with AsyncWorkspace(Workspace(root, policy=Policy(on_ask=ask, ask=["read"]))) as ws:
            await Toolset([ws.read]).acall("read", {"path": "a.txt"})
            await ws.read("a.txt")

    run(main)
    assert requests == [("read", "read"), ("read", None)]


def test_a_transaction_makes_all_changes_or_none(run, root):
    async def delete_and_fail(ws):
        async with ws.transaction() as tx:
            await tx.delete("b.txt")
            raise ZeroDivisionError

    async def edit_beside_another_program(ws):
        async with ws.transaction() as tx:
            await tx.edit("a.txt", "two", "four")
            (root / "a.txt").write_text("other\n")

    async def main():
        async with AsyncWorkspace(Workspace(root)) as ws:
            async with ws.transaction() as tx:
                await tx.edit("a.txt", "one", "two")
                await tx.write("b.txt", "three\n")
                assert not (root / "b.txt").exists()
            assert (root / "b.txt").read_text() == "three\n"
            with pytest.raises(ZeroDivisionError):
                await delete_and_fail(ws)
            assert (root / "b.txt").exists()
            with anyio.move_on_after(0.3) as scope:
                async with ws.transaction() as tx:
                    await tx.delete("b.txt")
                    await anyio.sleep(60)
            assert scope.cancelled_caught
            assert (root / "b.txt").exists()
            with pytest.raises(ConflictError):
                await edit_beside_another_program(ws)
            assert (root / "a.txt").read_text() == "other\n"

    run(main)


def test_a_recording_is_one_step(run, root):
    async def main():
        async with AsyncWorkspace(Workspace(root)) as ws:
            async with ws.recording("build") as recorded:
                (root / "made.txt").write_text("made\n")
            assert "made.txt" in recorded.result.text
            await ws.undo()
            assert not (root / "made.txt").exists()

    run(main)


def test_a_cancelled_search_stops_and_a_cancelled_question_is_cancelled(run, root):
    asked = []

    async def ask(request):
        asked.append(request.method)
        await anyio.sleep(60)

    async def main():
        async with AsyncWorkspace(Workspace(root, policy=Policy(on_ask=ask))) as ws:
            with anyio.move_on_after(0.3) as scope:
                await ws.edit("a.txt", "one", "two")
            assert scope.cancelled_caught
            assert asked == ["edit"]
            assert (root / "a.txt").read_text() == "one\n"

    run(main)


def test_a_directory_is_opened_and_closed(run, root, tmp_path_factory):
    state = tmp_path_factory.mktemp("state")

    async def main():
        for given in (root, str(root)):
            policy, events = Policy(read_only=True), []
            async with AsyncWorkspace(given, policy=policy, state=state, on_event=events.append) as ws:
                assert (await ws.read("a.txt")).content == "one\n"
                assert ws.root == str(root)
                with pytest.raises(ReadOnlyError):
                    await ws.write("b.txt", "")
            assert [event.kind for event in events] == ["started", "finished", "started", "refused"]
            with pytest.raises(ClosedError):
                await ws.read("a.txt")

    run(main)


def test_options_are_for_a_directory_only(root):
    with Workspace(root) as ws, pytest.raises(InvalidArgumentError, match="limits"):
        AsyncWorkspace(ws, limits=Limits())
    with pytest.raises(TypeError, match="limit"):
        AsyncWorkspace(root, limit=3)
    with pytest.raises(NotFoundError):
        AsyncWorkspace(root / "missing")
    with pytest.raises(InvalidArgumentError, match="concurrency"):
        AsyncWorkspace(root, concurrency=0)
    with pytest.raises(InvalidArgumentError, match="a string or a path, not 3"):
        AsyncWorkspace(3)


@pytest.mark.parametrize("fails", [False, True], ids=["ends", "fails"])
def test_a_cancelled_task_is_cancelled_after_its_change_has_ended(run, root, fails):
    began, cancelled, ended = threading.Event(), threading.Event(), []

    def change(ws):
        ws.edit("a.txt", "one", "two")
        began.set()
        assert cancelled.wait(10)
        time.sleep(0.1)
        ws.edit("a.txt", "two", "three")
        ended.append(True)
        if fails:
            raise ZeroDivisionError

    async def main():
        async with AsyncWorkspace(root) as ws, anyio.create_task_group() as group:
            scope = anyio.CancelScope()

            async def task():
                with scope:
                    await ws.call(change, ws.workspace)
                    ended.append("not cancelled")
                ended.append(scope.cancelled_caught)

            group.start_soon(task)
            await anyio.to_thread.run_sync(began.wait)
            scope.cancel()
            await anyio.sleep(0.05)
            assert ended == []
            cancelled.set()

    run(main)
    assert ended == [True, True]
    assert (root / "a.txt").read_text() == "three\n"


def test_a_task_that_is_cancelled_twice_is_cancelled_after_its_change_has_ended(root, caplog):
    """Under asyncio, the error of a change that failed replaced the cancellation."""
    began, cancelled = threading.Event(), threading.Event()

    def change(ws):
        ws.edit("a.txt", "one", "two")
        began.set()
        assert cancelled.wait(10)
        raise ZeroDivisionError

    async def main():
        async with AsyncWorkspace(root) as ws:
            task = asyncio.create_task(ws.call(change, ws.workspace))
            await asyncio.to_thread(began.wait)
            for _ in range(2):
                task.cancel()
                await asyncio.sleep(0.01)
            assert not task.done()
            cancelled.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert task.cancelled()
        del task
        gc.collect()

    asyncio.run(main())
    assert caplog.records == []
    assert (root / "a.txt").read_text() == "two\n"


def test_concurrency_bounds_the_methods_that_run_at_once(run, root):
    most = [0, 0]
    lock = threading.Lock()

    def slow():
        with lock:
            most[0] += 1
            most[1] = max(most)
        threading.Event().wait(0.01)
        with lock:
            most[0] -= 1

    async def main():
        async with AsyncWorkspace(Workspace(root), concurrency=2) as ws, anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(ws.call, slow)
        assert most[1] == 2

    run(main)
