"""`AsyncWorkspace` under asyncio, trio and anyio."""

import inspect
import threading

import anyio
import pytest
import trio

from agentfs import AsyncWorkspace, Limits, Policy, Toolset, Workspace
from agentfs.errors import ClosedError, InvalidArgumentError, NotFoundError, StaleError
from agentfs.tools.declaration import declarations, tool

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
            assert (await ws.run(len, "abc")) == 3
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
        async with AsyncWorkspace(Workspace(root, policy=Policy(permission=ask))) as ws:
            await Toolset([ws.read]).renamed({"read": "show"}).acall("show", {"path": "a.txt"})
            await ws.read("a.txt")

    run(main)
    assert requests == [("read", "show"), ("read", None)]


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
            with pytest.raises(StaleError):
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
        async with AsyncWorkspace(Workspace(root, policy=Policy(permission=ask))) as ws:
            with anyio.move_on_after(0.3) as scope:
                await ws.edit("a.txt", "one", "two")
            assert scope.cancelled_caught
            assert asked == ["edit"]
            assert (root / "a.txt").read_text() == "one\n"

    run(main)


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
                group.start_soon(ws.run, slow)
        assert most[1] == 2

    run(main)
