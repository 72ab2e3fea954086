"""The remote side: `agentfs serve` answers the calls of one client, each in its own thread.

The client opens a workspace inside `--root`. The server's own policy narrows every policy of the client.
"""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# The types of a message's values are known only after it is decoded.

import functools
import inspect
import itertools
import json
import os
import queue
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, NamedTuple

import agentfs
from agentfs import errors
from agentfs.base import call_context
from agentfs.limits import Limits
from agentfs.policy import Mount, Policy
from agentfs.remote import wire
from agentfs.remote.narrow import check_server_policy, narrowed
from agentfs.workspace import Workspace

_THREADS = 64  # a call that waits for a reply of the client keeps its thread
_MAX_CALLS = 1024
_MAX_VIEWS = 64
_BLOCKS = {"transaction", "recording"}
# The methods and properties of a workspace that a client can name.
_CALLED = {
    name
    for name, each in vars(Workspace).items()
    if not name.startswith("_") and (inspect.isfunction(each) or isinstance(each, property))
} - {"close", "tools", "view", "host", "recorded", *_BLOCKS} | {"_carry_out", "_keep"}


@dataclass(frozen=True)
class Options:
    """The options of `agentfs serve`.

    Attributes:
        root: The directory that a client cannot leave.
        policy: The server's own policy.
        state: The directory inside which a client may keep its state, or None.
        mounts: The mounts of every workspace.
    """

    root: str = "."
    policy: Policy = field(default_factory=Policy)
    state: str | None = None
    mounts: Mapping[str, Mount] = field(default_factory=dict[str, Mount])


class _CallbackError(Exception):
    """A function of the client has raised an exception that only the client knows."""


class _Call(NamedTuple):
    """A call under way."""

    number: int
    execution: call_context.Execution
    replies: "queue.SimpleQueue[Mapping[str, Any] | None]"


class _Block(NamedTuple):
    """An open `with` block of the client."""

    manager: AbstractContextManager[Any]
    value: Any  # the workspace of a transaction, or a recording


_current: ContextVar[tuple["Server", _Call]] = ContextVar("agentfs_call_of_client")


def serve(options: Options) -> int:
    """Serve one client over standard input and output until it leaves; return the exit status."""
    output = os.dup(1)
    os.dup2(2, 1)  # keeps anything that is printed here out of the messages
    server = Server(options, output)
    try:
        server.run(sys.stdin.buffer)
    except wire.ProtocolError as error:
        sys.stderr.write(f"agentfs: {error}\n")
        return 2
    finally:
        server.end()
    return 0


class Server:
    """Answers the calls of one client."""

    def __init__(self, options: Options, output: int) -> None:
        check_server_policy(options.policy)
        self._options = options
        self._output = output
        self._sending = threading.Lock()
        self._calls: dict[int, _Call] = {}  # added by the reading thread, removed by workers
        self._blocks: dict[str, _Block] = {}
        self._view = functools.lru_cache(_MAX_VIEWS)(self._made_view)
        self._workers = ThreadPoolExecutor(_THREADS, "agentfs-serve")
        self._questions = itertools.count(1)
        self._workspace: Workspace | None = None

    def run(self, incoming: BinaryIO) -> None:
        """Handle messages until the client leaves."""
        while line := incoming.readline(wire.MAX_LINE):
            message = wire.parse_line(line)
            number = message.get("call", message.get("cancel", message.get("of")))
            if type(number) is not int:
                raise wire.ProtocolError("The client sent an invalid message.")
            call = self._calls.get(number)
            if "call" in message:
                self._begin(number, message)
            elif call is not None and "cancel" not in message:
                call.replies.put(message)
            elif call is not None and call.execution.abandon():
                call.replies.put(None)

    def end(self) -> None:
        """Cancel calls that only read, complete changes under way, and close the workspace."""
        for call in list(self._calls.values()):
            call.execution.abandon()
            call.replies.put(None)
        self._workers.shutdown(cancel_futures=True)
        for name in reversed([*self._blocks]):
            self._leave(name, raised=True)
        if self._workspace is not None:
            self._workspace.close()

    def _open(self, version: str, root: str, state: str | None, policy: Any, limits: Any) -> Any:
        """Open the workspace of the client, and return what the client must know."""
        if version != agentfs.__version__:
            raise errors.UnsupportedSystemError(
                f"The remote side has agentfs {agentfs.__version__}, not {version[:20]!a}.",
                hint="Install the same version on both sides.",
            )
        if not isinstance(policy, Policy) or not isinstance(limits, Limits):
            raise wire.ProtocolError("The client sent no policy or no limits.")
        options, path = self._options, self._inside(root)
        if state is not None:
            if options.state is None:
                hint = "Start it with `agentfs serve --state DIRECTORY`."
                raise errors.RefusedError("The server keeps no state.", hint=hint)
            state = _below(options.state, state)
        policy = narrowed(policy, options.policy)
        workspace = Workspace(path, policy=policy, limits=limits, state=state, mounts=options.mounts)
        if workspace.root != path:
            workspace.close()
            raise errors.RefusedError("The root was moved while the workspace opened it.")
        self._workspace = workspace
        own = replace(options.policy, after_change=())
        notes = [*workspace.recovery_notes]
        return {"version": agentfs.__version__, "root": path, "policy": own, "notes": notes}

    def _inside(self, root: str) -> str:
        """Return the canonical path of a root: inside that of the command line, and not protected."""
        path = _below(self._options.root, root)
        with Workspace(self._options.root, policy=self._options.policy) as outer:
            names = os.path.relpath(path, outer.root).split(os.sep)
            for each in itertools.accumulate(names, os.path.join):
                if outer.stat(each).protected:
                    raise errors.RefusedError("The root is in a protected directory.")
        return path

    def _begin(self, number: int, message: Mapping[str, Any]) -> None:
        if number in self._calls or len(self._calls) >= _MAX_CALLS:
            raise wire.ProtocolError("Two calls have the same number, or too many are under way.")
        tool = message.get("tool")

        def report(entries: int) -> None:
            self._send(_line(number, "progress", entries))

        execution = call_context.Execution(
            tool if isinstance(tool, str) else None, on_progress=report if message.get("progress") else None
        )
        call = self._calls[number] = _Call(number, execution, queue.SimpleQueue())
        self._workers.submit(self._work, call, message)

    def _work(self, call: _Call, message: Mapping[str, Any]) -> None:
        call_context.current.set(call.execution)
        _current.set((self, call))
        line = functools.partial(_line, call.number)
        try:
            answer = line("value", wire.to_wire(self._run(message)))
        except call_context.Cancelled:
            answer = line("cancelled", True)
        except _CallbackError:
            answer = line("raised", True)
        except Exception as error:  # noqa: BLE001 - the client raises it
            answer = line("error", wire.error_to_wire(error))
        del self._calls[call.number]
        self._send(answer)

    def _run(self, message: Mapping[str, Any]) -> Any:
        method, arguments = message.get("method"), _decode(message.get("arguments"))
        if not isinstance(arguments, dict):
            raise wire.ProtocolError("A call has no arguments.")
        if method == "open" and self._workspace is None:
            return self._open(**arguments)
        if method == "leave":
            return self._leave(**arguments)
        workspace = self._resolve(message.get("within"))
        if method == "enter":
            return self._enter(workspace, **arguments)
        if method not in _CALLED:
            raise wire.ProtocolError("There is no such method.")
        found = getattr(workspace, method)
        return found(**arguments) if inspect.ismethod(found) else found

    def _resolve(self, within: Any) -> Workspace:
        """Return the workspace that a call is about: the main one, one in a block, or a view of these."""
        match within:
            case [] if self._workspace is not None:
                return self._workspace
            case [["block", str() as name]] if isinstance(inside := self._block(name).value, Workspace):
                return inside
            case list() if len(within) <= _MAX_VIEWS:
                return self._view(json.dumps(within))
            case _:
                raise wire.ProtocolError("There is no such view.")

    def _made_view(self, within: str) -> Workspace:
        *above, (kind, encoded) = json.loads(within)
        outer = self._resolve(above)  # the same object as for calls in that view: it keeps texts
        own = self._options.policy
        if kind == "host":
            if own.read_only or own.deny:
                raise errors.RefusedError("There is no `host`: the server's policy holds for programs too.")
            return outer.host
        if kind != "view":
            raise wire.ProtocolError("There is no such view.")
        given: dict[str, Any] = _decode(encoded)
        given["policy"] = narrowed(given.get("policy", outer.policy), own)
        return outer.view(**given)

    def _enter(self, workspace: Workspace, block: str, method: str, arguments: dict[str, Any]) -> None:
        if method not in _BLOCKS or block in self._blocks:
            raise wire.ProtocolError("There is no such block.")
        manager = getattr(workspace, method)(**arguments)
        self._blocks[block] = _Block(manager, manager.__enter__())

    def _leave(self, block: str, *, raised: bool) -> Any:
        manager, value = self._block(block)
        del self._blocks[block]
        if not raised:
            manager.__exit__(None, None, None)
            return None if isinstance(value, Workspace) else value.result
        error = errors.ClosedError("The client has left the block.")
        with suppress(Exception):
            manager.__exit__(type(error), error, None)
        return None

    def _block(self, name: str) -> _Block:
        if name not in self._blocks:
            raise errors.ClosedError("This block has ended.", hint="Begin another one.")
        return self._blocks[name]

    def ask(self, call: _Call, function: int, arguments: tuple[Any, ...]) -> Any:
        """Call a function of the client and return its result."""
        number = next(self._questions)
        asked = [number, {"$": "function", "number": function}, *map(wire.to_wire, arguments)]
        self._send(_line(call.number, "ask", asked))
        while (reply := call.replies.get()) is not None:
            if reply.get("reply") == number:
                if reply.get("raised") is True:
                    raise _CallbackError
                return _decode(reply.get("value"))
        raise call_context.Cancelled

    def _send(self, line: bytes) -> None:
        rest = memoryview(line)
        with self._sending, suppress(OSError):  # the client has gone: the input ends too
            while rest:
                rest = rest[os.write(self._output, rest) :]


def _line(number: int, kind: str, value: Any) -> bytes:
    """Return a message about a call."""
    return wire.to_line({"of": number, kind: value})


def _below(top: str, path: str) -> str:
    """Return the canonical path of a directory inside another one; raise `refused` for any other."""
    if "\0" in path:
        raise errors.InvalidPathError("The path contains a NUL character.")
    top = os.path.realpath(top)
    real = os.path.realpath(os.path.join(top, path))
    if os.path.commonpath([top, real]) != top:
        raise errors.RefusedError("The command line of the remote side allows no path outside its own.")
    return real


def _decode(value: Any) -> Any:
    return wire.from_wire(value, lambda number: functools.partial(_ask, number))


def _ask(function: int, *arguments: Any) -> Any:
    """Call a function of the client as a part of the current call."""
    server, call = _current.get()
    return server.ask(call, function, arguments)
