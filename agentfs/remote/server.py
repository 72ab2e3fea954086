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
from agentfs.base import call_context
from agentfs.errors import (
    ClosedError,
    InvalidArgumentError,
    InvalidPathError,
    RefusedError,
    TooLargeError,
    UnsupportedSystemError,
)
from agentfs.limits import Limits
from agentfs.policy import Mount, Policy
from agentfs.remote import wire
from agentfs.remote.narrow import check_server_policy, narrowed
from agentfs.tools.guard import OPTION_METHODS
from agentfs.workspace import Workspace

_THREADS = 64  # a call that waits for a reply of the client keeps its thread
_MAX_CALLS = 1024
_MAX_VIEWS = 64
_BLOCKS = {"transaction": "commit_notes", "recording": "result"}  # with the attribute that has the outcome
# The methods and properties of a workspace that a client can name.
_CALLED = {
    name
    for name, each in vars(Workspace).items()
    if not name.startswith("_") and (inspect.isfunction(each) or isinstance(each, property))
} - {"close", "tools", "view", "host", "recorded", *OPTION_METHODS, *_BLOCKS} | {"_carry_out", "_keep"}


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
    """An open block of the client: its context manager, the outcome's name, its value and workspace."""

    manager: AbstractContextManager[Any]
    outcome: str
    value: Any
    workspace: Workspace


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
        line = incoming.readline(wire.MAX_LINE)
        if not line:
            return
        try:
            self._open(wire.parse_line(line))
        except wire.ProtocolError:
            raise
        except Exception as error:  # noqa: BLE001 - the client raises it
            self._send({"of": 0, "agentfs": agentfs.__version__, "error": wire.error_to_wire(error)})
            return
        while line := incoming.readline(wire.MAX_LINE):
            message = wire.parse_line(line)
            number = message.get("call", message.get("cancel", message.get("of")))
            if type(number) is not int:
                raise wire.ProtocolError("The client sent an invalid message.")
            call = self._calls.get(number)
            if "call" in message:
                self._begin(number, message)
            elif call is not None and "cancel" in message:
                if call.execution.abandon():
                    call.replies.put(None)
            elif call is not None:
                call.replies.put(message)

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

    def _open(self, hello: Mapping[str, Any]) -> None:
        """Open the workspace of the client, and say so."""
        if hello.get("agentfs") != agentfs.__version__:
            raise UnsupportedSystemError("The versions of agentfs differ.")
        names = ("root", "state", "policy", "limits")
        root, state, policy, limits = (_decode(hello.get(name)) for name in names)
        if not (
            isinstance(root, str)
            and isinstance(state, str | None)
            and isinstance(policy, Policy)
            and isinstance(limits, Limits)
        ):
            raise InvalidArgumentError("The first message has a field of a wrong type.")
        options, path = self._options, self._inside(root)
        if state is not None:
            if options.state is None:
                hint = "Start it with `agentfs serve --state DIRECTORY`."
                raise RefusedError("The server keeps no state.", hint=hint)
            state = _below(options.state, state)
        policy = narrowed(policy, options.policy)
        workspace = self._workspace = Workspace(
            path, policy=policy, limits=limits, state=state, mounts=options.mounts
        )
        if workspace.root != path:
            raise RefusedError("The root was moved while the workspace opened it.")
        opened = {"root": workspace.root, "policy": replace(options.policy, after_change=())}
        self._send({"of": 0, "agentfs": agentfs.__version__, "value": wire.to_wire(opened)})

    def _inside(self, root: str) -> str:
        """Return the canonical path of a root: inside that of the command line, and not protected."""
        path = _below(self._options.root, root)
        with Workspace(self._options.root, policy=self._options.policy) as outer:
            names = os.path.relpath(path, outer.root).split(os.sep)
            for each in itertools.accumulate(names, os.path.join):
                if outer.stat(each).protected:
                    raise RefusedError("The root is in a protected directory.")
        return path

    def _begin(self, number: int, message: Mapping[str, Any]) -> None:
        if number in self._calls:
            raise wire.ProtocolError("Two calls have the same number.")
        if len(self._calls) >= _MAX_CALLS:
            raise wire.ProtocolError("The client has too many calls under way.")

        def progress(entries: int) -> None:
            self._send({"of": number, "progress": entries})

        tool = message.get("tool")
        execution = call_context.Execution(
            tool if isinstance(tool, str) else None,
            on_progress=progress if message.get("progress") is True else None,
        )
        call = self._calls[number] = _Call(number, execution, queue.SimpleQueue())
        self._workers.submit(self._work, call, message)

    def _work(self, call: _Call, message: Mapping[str, Any]) -> None:
        call_context.current.set(call.execution)
        _current.set((self, call))
        try:
            answer = {"value": wire.to_wire(self._run(message))}
        except call_context.Cancelled:
            answer = {"cancelled": True}
        except _CallbackError:
            answer = {"raised": True}
        except Exception as error:  # noqa: BLE001 - the client raises it
            answer = {"error": wire.error_to_wire(error)}
        del self._calls[call.number]
        try:
            self._send({"of": call.number, **answer})
        except TooLargeError as error:
            self._send({"of": call.number, "error": wire.error_to_wire(error)})

    def _run(self, message: Mapping[str, Any]) -> Any:
        workspace, arguments = self._resolve(message.get("within")), _decode(message.get("arguments"))
        method = message.get("method")
        if not isinstance(arguments, dict):
            raise wire.ProtocolError("A call has no arguments.")
        if method == "enter":
            return self._enter(workspace, **arguments)
        if method == "leave":
            return self._leave(**arguments)
        if method not in _CALLED:
            raise wire.ProtocolError("There is no such method.")
        if method == "_carry_out":
            arguments = {"options": wire.options_from(**arguments)}
        found = getattr(workspace, method)
        return found(**arguments) if inspect.ismethod(found) else found

    def _resolve(self, within: Any) -> Workspace:
        """Return the workspace that a call is about: the main one, one in a block, or a view of these."""
        match within:
            case [] if self._workspace is not None:
                return self._workspace
            case [["block", str() as name]]:
                return self._block(name).workspace
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
                raise RefusedError("The server's policy holds for programs too, so there is no `host`.")
            return outer.host
        if kind != "view":
            raise wire.ProtocolError("There is no such view.")
        given = _decode(encoded)
        return outer.view(**{**given, "policy": narrowed(given.get("policy", outer.policy), own)})

    def _enter(self, workspace: Workspace, block: str, method: str, arguments: dict[str, Any]) -> None:
        if method not in _BLOCKS or block in self._blocks:
            raise wire.ProtocolError("There is no such block.")
        manager = getattr(workspace, method)(**arguments)
        value = manager.__enter__()
        inside = value if isinstance(value, Workspace) else workspace
        self._blocks[block] = _Block(manager, _BLOCKS[method], value, inside)

    def _leave(self, block: str, *, raised: bool) -> Any:
        manager, outcome, value, _ = self._block(block)
        del self._blocks[block]
        if not raised:
            manager.__exit__(None, None, None)
            return getattr(value, outcome)
        error = ClosedError("The client has left the block.")
        with suppress(Exception):
            manager.__exit__(type(error), error, None)
        return None

    def _block(self, name: str) -> _Block:
        if name not in self._blocks:
            raise ClosedError("This block has ended.", hint="Begin another one.")
        return self._blocks[name]

    def ask(self, call: _Call, function: int, arguments: tuple[Any, ...]) -> Any:
        """Call a function of the client and return its result."""
        number = next(self._questions)
        asked = [{"$": "function", "number": function}, *map(wire.to_wire, arguments)]
        self._send({"of": call.number, "question": number, "ask": asked})
        while (reply := call.replies.get()) is not None:
            if reply.get("reply") == number:
                if reply.get("raised") is True:
                    raise _CallbackError
                return _decode(reply.get("value"))
        raise call_context.Cancelled

    def _send(self, message: Mapping[str, Any]) -> None:
        rest = memoryview(wire.to_line(message))
        with self._sending, suppress(OSError):  # the client has gone: the input ends too
            while rest:
                rest = rest[os.write(self._output, rest) :]


def _below(top: str, path: str) -> str:
    """Return the canonical path of a directory inside another one; raise `refused` for any other."""
    if "\0" in path:
        raise InvalidPathError("The path contains a NUL character.")
    top = os.path.realpath(top)
    real = os.path.realpath(os.path.join(top, path))
    if os.path.commonpath([top, real]) != top:
        raise RefusedError("The command line of the remote side allows no path outside its own.")
    return real


def _decode(value: Any) -> Any:
    return wire.from_wire(value, _function_of_client)


def _function_of_client(number: int) -> Any:
    """Return a function that calls one of the client, as a part of the current call."""

    def function(*arguments: Any) -> Any:
        server, call = _current.get()
        return server.ask(call, number, arguments)

    return function
