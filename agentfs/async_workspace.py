"""`AsyncWorkspace`: the methods of a workspace, to be awaited."""

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial, wraps
from os import PathLike
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from agentfs.base import call_context
from agentfs.concurrency.runner import Runner
from agentfs.errors import InvalidArgumentError
from agentfs.history.timeline import Recording
from agentfs.tools.tool import declarations
from agentfs.workspace import Workspace

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Method = Callable[Concatenate[Workspace, _P], _R]
_Awaitable = Callable[Concatenate["AsyncWorkspace", _P], Coroutine[Any, Any, _R]]


def _awaitable(method: _Method[_P, _R]) -> _Awaitable[_P, _R]:
    @wraps(method)
    async def awaitable(self: "AsyncWorkspace", /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        own: Callable[..., _R] = getattr(self.workspace, method.__name__)
        return await self.call(own, *args, **kwargs)

    return awaitable


def _viewing(method: _Method[_P, Workspace]) -> Callable[Concatenate["AsyncWorkspace", _P], "AsyncWorkspace"]:
    @wraps(method)
    def view(self: "AsyncWorkspace", /, *args: _P.args, **kwargs: _P.kwargs) -> "AsyncWorkspace":
        own: Callable[..., Workspace] = getattr(self.workspace, method.__name__)
        return self._of(own(*args, **kwargs))  # pyright: ignore[reportPrivateUsage] - a method of the class

    return view


def _outer_tool() -> str | None:
    """Return the name of the tool whose function uses the workspace, if any."""
    outer = call_context.current.get()
    return None if outer is None else outer.tool


class AsyncWorkspace:
    """A workspace whose methods are awaited; each runs in a thread, off the event loop of asyncio or trio.

    When an awaited method is cancelled, a search stops soon. A change that has begun is completed before the
    cancellation is raised. Everything else is as on the workspace: `root`, `policy`, `tools()`, `keep`,
    `close`, …. Methods that a subclass declares as tools are awaited too.
    """

    def __init__(
        self, workspace: Workspace | str | PathLike[str], *, concurrency: int = 8, **options: Any
    ) -> None:
        """Open a directory, or make the methods of an open workspace awaitable.

        Args:
            workspace: The directory, or a workspace, also one of a subclass or of `connect`. The workspace
                may be used at the same time.
            concurrency: The most methods that run at once.
            **options: The options of `Workspace` for a directory, such as `policy` and `watch`.

        Raises:
            AgentFSError: `invalid_argument` if `concurrency` is not a positive integer, or options are
                given for an open workspace; any error that opening a `Workspace` raises.
        """
        self._runner = Runner(concurrency)
        if not isinstance(workspace, Workspace):
            workspace = Workspace(workspace, **options)
        elif options:
            raise InvalidArgumentError(
                f"The workspace is open, so it takes no {', '.join(options)}.",
                hint="Pass options when you open it, or use `view`.",
            )
        self.workspace = workspace

    async def call(self, function: Callable[..., _R], *args: Any, **kwargs: Any) -> _R:
        """Run a function of your own, which may use the workspace, as the methods run.

        Args:
            function: The function.
            *args: Its arguments.
            **kwargs: Its arguments by name.

        Returns:
            Its result.
        """
        return await self._runner.run_off_loop(partial(function, *args, **kwargs), tool=_outer_tool())

    read = _awaitable(Workspace.read)
    read_many = _awaitable(Workspace.read_many)
    write = _awaitable(Workspace.write)
    append = _awaitable(Workspace.append)
    edit = _awaitable(Workspace.edit)
    multi_edit = _awaitable(Workspace.multi_edit)
    edit_lines = _awaitable(Workspace.edit_lines)
    splice = _awaitable(Workspace.splice)
    replace = _awaitable(Workspace.replace)
    delete = _awaitable(Workspace.delete)
    move = _awaitable(Workspace.move)
    copy = _awaitable(Workspace.copy)
    exists = _awaitable(Workspace.exists)
    stat = _awaitable(Workspace.stat)
    realpath = _awaitable(Workspace.realpath)
    read_bytes = _awaitable(Workspace.read_bytes)
    write_bytes = _awaitable(Workspace.write_bytes)
    mkdir = _awaitable(Workspace.mkdir)
    ls = _awaitable(Workspace.ls)
    glob = _awaitable(Workspace.glob)
    find = _awaitable(Workspace.find)
    grep = _awaitable(Workspace.grep)
    undo = _awaitable(Workspace.undo)
    redo = _awaitable(Workspace.redo)
    checkpoint = _awaitable(Workspace.checkpoint)
    rollback = _awaitable(Workspace.rollback)
    changes = _awaitable(Workspace.changes)
    review = _awaitable(Workspace.review)
    apply_review = _awaitable(Workspace.apply_review)
    run = _awaitable(Workspace.run)
    start = _awaitable(Workspace.start)
    output = _awaitable(Workspace.output)
    stop = _awaitable(Workspace.stop)
    view = _viewing(Workspace.view)

    @property
    def host(self) -> "AsyncWorkspace":
        """This workspace for the program itself; see `Workspace.host`."""
        return self._of(self.workspace.host)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator["AsyncWorkspace"]:
        """Make several changes as one, as `Workspace.transaction` does, in an `async with` block."""
        async with self._runner.entered(self.workspace.transaction(), tool=_outer_tool()) as inner:
            yield self._of(inner)

    @asynccontextmanager
    async def recording(self, label: str, include_ignored: bool = False) -> AsyncGenerator[Recording]:
        """Record what any process changes, as `Workspace.recording` does, in an `async with` block."""
        block = self.workspace.recording(label, include_ignored)
        async with self._runner.entered(block, tool=_outer_tool()) as recorded:
            yield recorded

    def _of(self, workspace: Workspace) -> "AsyncWorkspace":
        other = AsyncWorkspace(workspace)
        other._runner = self._runner
        return other

    def __getattr__(self, name: str) -> Any:
        if name == "workspace":  # not set yet, as in a copy
            raise AttributeError(name)
        value = getattr(self.workspace, name)
        return partial(self.call, value) if name in declarations(type(self.workspace)) else value

    async def __aenter__(self) -> Self:
        self.workspace.__enter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if exc is None or isinstance(exc, Exception):
            await self.call(self.workspace.close)
        else:  # cancelled: nothing can be awaited
            self.workspace.close()

    def __repr__(self) -> str:
        return f"AsyncWorkspace({self.workspace!r})"
