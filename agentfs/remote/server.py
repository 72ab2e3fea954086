"""The remote side: `agentfs serve` answers the calls of one client, each in its own thread.

The client opens a workspace inside `--root`. The server's own policy narrows every policy of the client.
"""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# The types of a message's values are known only after it is decoded.

import functools
import inspect
import itertools
import os
import queue
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NamedTuple

import agentfs
from agentfs import errors
from agentfs.base import call_context
from agentfs.policy import Mount, Policy
from agentfs.remote import wire
from agentfs.remote.narrow import check_server_policy, narrowed
from agentfs.workspace import Workspace

_THREADS = 64  # a call that waits for a reply of the client keeps its thread
_MAX_VIEWS = 64
_BLOCKS = {"transaction", "recording"}
# The methods and properties of a workspace that a client can name.
_CALLED = {
    name
    for name, each in vars(Workspace).items()
    if not name.startswith("_") and (inspect.isfunction(each) or isinstance(each, property))
} - {"close", "tools", "view", "host", "recorded", "branch", "branches", *_BLOCKS} | {
    "_carry_out",
    "_keep",
    "_first_versions",
}


@dataclass(frozen=True)
class Options:
    """The options of `agentfs serve`.

    Attributes:
        root: The directory that a client cannot leave.
        policy: The server's own policy.
        state: The directory in which a client may keep its state, or None.
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

    def abandon(self) -> None:
        """Cancel the call, and its question, unless a change has begun."""
        if self.execution.abandon():
            self.replies.put(None)


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
        self._blocks: dict[str, tuple[Any, Any]] = {}  # open `with` blocks: the manager and its value
        self._inside = functools.lru_cache(_MAX_VIEWS)(self._found_inside)
        self._workers = ThreadPoolExecutor(_THREADS, "agentfs-serve")
        self._questions = itertools.count(1)
        self._workspace: Workspace | None = None

    def run(self, incoming: BinaryIO) -> None:
        """Handle messages until the client leaves."""
        while line := incoming.readline(wire.MAX_LINE):
            message = wire.from_line(line)
            number = message.get("of")
            if type(number) is not int:
                raise wire.ProtocolError("The client sent an invalid message.")
            call = self._calls.get(number)
            if "method" in message:
                self._begin(number, message)
            elif call is not None and "cancel" in message:
                call.abandon()
            elif call is not None:
                call.replies.put(message)

    def end(self) -> None:
        """Cancel calls that only read, complete changes under way, and close the workspace."""
        for call in list(self._calls.values()):
            call.execution.abandon()
            call.replies.put(None)
        self._workers.shutdown(cancel_futures=True)
        for block in reversed([*self._blocks]):
            with suppress(Exception):
                self._leave(block, raised=True)
        if self._workspace is not None:
            self._workspace.close()

    def _begin(self, number: int, message: Mapping[str, Any]) -> None:
        tool = message.get("tool")

        def report(entries: int) -> None:
            self._send(wire.to_line({"of": number, "progress": entries}))

        execution = call_context.Execution(
            tool if isinstance(tool, str) else None, on_progress=report if message.get("progress") else None
        )
        call = self._calls[number] = _Call(number, execution, queue.SimpleQueue())
        self._workers.submit(self._work, call, message)

    def _work(self, call: _Call, message: Mapping[str, Any]) -> None:
        call_context.current.set(call.execution)
        wire.call_function.set(functools.partial(self._ask, call))
        try:
            line = wire.to_line({"of": call.number, "value": self._run(**message)})
        except call_context.Cancelled:
            line = wire.to_line({"of": call.number, "cancelled": True})
        except Exception as error:  # noqa: BLE001 - the client raises it
            line = wire.to_line({"of": call.number, "error": error})
        self._calls.pop(call.number, None)
        self._send(line)

    def _run(self, *, method: str, arguments: Mapping[str, Any], within: Sequence[str] = (), **_: Any) -> Any:
        if method == "open" and self._workspace is None:
            return self._open(**arguments)
        if method == "leave":
            return self._leave(**arguments)
        workspace = self._inside(*within)
        if method == "enter":
            return self._enter(workspace, **arguments)
        if method not in _CALLED:
            raise wire.ProtocolError("There is no such method.")
        found = getattr(workspace, method)
        return found(**arguments) if inspect.ismethod(found) else found

    def _open(self, *, version: str, root: str, state: str | None, settings: str) -> Any:
        """Open the workspace of the client, and return what the client must know."""
        if version != agentfs.__version__:
            raise errors.UnsupportedSystemError(
                f"The remote side has agentfs {agentfs.__version__}, not {version[:20]!a}.",
                hint="Install the same version on both sides.",
            )
        policy, limits = wire.from_text(settings)
        options, path = self._options, self._allowed_root(root)
        if state is not None:
            if options.state is None or state != os.path.basename(state) or state in {"", ".", ".."}:
                hint = "Start the server with `--state DIRECTORY`; pass the name of one inside."
                raise errors.RefusedError("The server keeps no such state.", hint=hint)
            state = os.path.join(options.state, state)
        policy = narrowed(policy, options.policy)
        workspace = Workspace(path, policy=policy, limits=limits, state=state, mounts=options.mounts)
        if workspace.root != path:
            workspace.close()
            raise errors.RefusedError("The root was moved while the workspace opened it.")
        self._workspace = workspace
        return [path, options.policy, workspace.recovery_notes]

    def _allowed_root(self, root: str) -> str:
        """Return the canonical path of a root: inside that of the command line, and not protected."""
        with Workspace(self._options.root, policy=self._options.policy) as outer:
            outer.stat(root or ".")
            path = os.path.realpath(os.path.join(outer.root, root))
            names = os.path.relpath(path, outer.root).split(os.sep)
            for each in itertools.accumulate(names, os.path.join):
                if outer.stat(each).protected:
                    raise errors.RefusedError("The root is in a protected directory.")
        return path

    def _found_inside(self, *within: str) -> Workspace:
        """Return the workspace that a call is about: the main one, or one in a view or a block of it."""
        if not within:
            if self._workspace is None:
                raise wire.ProtocolError("There is no workspace yet.")
            return self._workspace
        *outer, last = within
        kind, given = wire.from_text(last)
        if kind == "block":
            inside: Workspace = self._block(given)[1]
            return inside
        workspace: Workspace = self._inside(*outer)  # the same object as for its own calls: it keeps texts
        own = self._options.policy
        if kind == "host":
            if own.read_only or own.deny:
                raise errors.RefusedError("There is no `host`: the server's policy holds for programs too.")
            return workspace.host
        given["policy"] = narrowed(given.get("policy", workspace.policy), own)
        return workspace.view(**given)

    def _enter(self, workspace: Workspace, *, block: str, method: str, arguments: Mapping[str, Any]) -> None:
        if method not in _BLOCKS or block in self._blocks:
            raise wire.ProtocolError("There is no such block.")
        manager = getattr(workspace, method)(**arguments)
        self._blocks[block] = manager, manager.__enter__()

    def _leave(self, block: str, *, raised: bool) -> Any:
        manager, value = self._block(block)
        del self._blocks[block]
        error = errors.ClosedError("The client has left the block.") if raised else None
        manager.__exit__(error and type(error), error, None)
        return getattr(value, "result", None)  # of a recording

    def _block(self, name: str) -> tuple[Any, Any]:
        if name not in self._blocks:
            raise errors.ClosedError("This block has ended.", hint="Begin another one.")
        return self._blocks[name]

    def _ask(self, call: _Call, function: int, arguments: Sequence[Any]) -> Any:
        """Call a function of the client and return its result."""
        number = next(self._questions)
        question = {"of": call.number, "ask": number, "function": function, "arguments": [*arguments]}
        self._send(wire.to_line(question))
        while (reply := call.replies.get()) is not None:
            if reply.get("reply") == number:
                if reply.get("raised") is True:
                    raise _CallbackError
                return reply.get("value")
        raise call_context.Cancelled

    def _send(self, line: bytes) -> None:
        rest = memoryview(line)
        with self._sending, suppress(OSError):  # the client has gone: the input ends too
            while rest:
                rest = rest[os.write(self._output, rest) :]
