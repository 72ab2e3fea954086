"""The remote side: `agentfs serve` answers the calls of one client, each in its own thread.

The client opens a workspace inside `--root`. The server's own policy narrows every policy of the client.
"""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# The types of a message's values are known only after it is decoded.

import functools
import inspect
import itertools
import os
import sys
import threading
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, BinaryIO

import agentfs
from agentfs import errors
from agentfs.base import call_context
from agentfs.policy import Mount, Policy
from agentfs.remote import wire
from agentfs.remote.narrow import SENT, check_server_policy, narrowed
from agentfs.workspace import Workspace

_THREADS = 64  # a call that waits for a reply of the client keeps its thread
_MAX_VIEWS = 64
_BLOCKS = {"transaction", "recording"}


def serve(root: str, **options: Any) -> int:
    """Serve one client over standard input and output until it leaves; return the exit status.

    Args:
        root: The directory that the client cannot leave.
        options: See `Server`.
    """
    output = os.dup(1)
    os.dup2(2, 1)  # keeps anything that is printed here out of the messages
    server = Server(output, root, **options)
    try:
        server.run(sys.stdin.buffer)
    finally:
        server.end()
    return 0


class Server:
    """Answers the calls of one client.

    Args:
        output: The descriptor to answer on.
        root: The directory that a client cannot leave.
        policy: The server's own policy.
        state: The directory in which a client may keep its state, or None.
        mounts: The mounts of every workspace.
    """

    def __init__(
        self,
        output: int,
        root: str,
        policy: Policy | None = None,
        state: str | None = None,
        mounts: Mapping[str, Mount] = {},
    ) -> None:
        self._output, self._root, self._state, self._mounts = output, root, state, mounts
        self._policy = policy or Policy()
        check_server_policy(self._policy)
        self._sending = threading.Lock()
        # Added by the reading thread, removed by workers; questions the other way round.
        self._calls: dict[int, call_context.Execution] = {}
        self._questions: dict[int, Future[Mapping[str, Any]]] = {}
        self._numbers = itertools.count(1)  # of questions
        self._blocks: dict[str, tuple[Any, Any]] = {}  # open `with` blocks: the manager and its value
        self._inside = functools.lru_cache(_MAX_VIEWS)(self._found_inside)
        self._workers = ThreadPoolExecutor(_THREADS, "agentfs-serve")
        self._workspace: Workspace | None = None

    def run(self, incoming: BinaryIO) -> None:
        """Handle messages until the client leaves."""
        while line := incoming.readline(wire.MAX_LINE):
            message = wire.from_line(line)
            number = message.get("of")
            if type(number) is not int:
                raise wire.ProtocolError("The client sent an invalid message.")
            if "method" in message:
                self._begin(number, message)
            elif "reply" not in message:
                if call := self._calls.get(number):
                    call.abandon()
            elif question := self._questions.pop(number, None):
                with suppress(InvalidStateError):  # cancelled
                    question.set_result(message)

    def end(self) -> None:
        """Cancel calls that only read, complete changes under way, and close the workspace."""
        for each in [*self._calls.values()]:
            each.abandon()
        for question in [*self._questions.values()]:
            question.cancel()
        self._workers.shutdown(cancel_futures=True)
        for block in reversed([*self._blocks]):
            with suppress(Exception):
                self._leave(block, raised=True)
        if self._workspace is not None:
            self._workspace.close()

    def _begin(self, number: int, message: Mapping[str, Any]) -> None:
        def report(entries: int) -> None:
            self._send(wire.to_line({"of": number, "progress": entries}))

        progress = report if message.get("progress") else None
        self._calls[number] = call_context.Execution(message.get("tool"), on_progress=progress)
        self._workers.submit(self._work, number, message)

    def _work(self, number: int, message: Mapping[str, Any]) -> None:
        call_context.current.set(self._calls[number])
        wire.call_function.set(functools.partial(self._ask, number))
        try:
            line = wire.to_line({"of": number, "value": self._run(**message)})
        except call_context.Cancelled:
            line = wire.to_line({"of": number, "cancelled": True})
        except Exception as error:  # noqa: BLE001 - the client raises it
            line = wire.to_line({"of": number, "error": error})
        self._calls.pop(number, None)
        self._send(line)

    def _run(self, *, method: str, arguments: Mapping[str, Any], within: Sequence[str] = (), **_: Any) -> Any:
        if method == "open" and self._workspace is None:
            return self._open(**arguments)
        if method == "leave":
            return self._leave(**arguments)
        if method not in SENT:
            raise wire.ProtocolError("There is no such method.")
        found = getattr(self._inside(*within), method)
        value = found(**arguments) if inspect.ismethod(found) else found
        if method not in _BLOCKS:
            return value
        name = uuid.uuid4().hex  # no block of an earlier connection has it
        self._blocks[name] = value, value.__enter__()
        return name

    def _open(self, *, version: str, root: str, state: str | None, settings: str) -> Any:
        """Open the workspace of the client, and return what the client must know."""
        if version != agentfs.__version__:
            raise errors.UnsupportedSystemError(
                f"The remote side has agentfs {agentfs.__version__}, not {version[:20]!a}.",
                hint="Install the same version on both sides.",
            )
        policy, limits = wire.from_text(settings)
        path = self._allowed_root(root)
        if state is not None:
            if self._state is None or state != os.path.basename(state) or state in {"", ".", ".."}:
                raise errors.RefusedError("The server keeps no such state: see `agentfs serve --state`.")
            state = os.path.join(self._state, state)
        policy = narrowed(policy, self._policy)
        workspace = Workspace(path, policy=policy, limits=limits, state=state, mounts=self._mounts)
        if workspace.root != path:
            workspace.close()
            raise errors.RefusedError("The root was moved while the workspace opened it.")
        self._workspace = workspace
        return [path, self._policy, workspace.recovery_notes]

    def _allowed_root(self, root: str) -> str:
        """Return the canonical path of a root: inside that of the command line, and not protected."""
        with Workspace(self._root, policy=replace(self._policy, run=None)) as outer:
            outer.stat(root or ".")
            path = os.path.realpath(os.path.join(outer.root, root))
            names = os.path.relpath(path, outer.root).split(os.sep)
            if any(outer.stat(each).protected for each in itertools.accumulate(names, os.path.join)):
                raise errors.RefusedError("The root is in a protected directory.")
        return path

    def _found_inside(self, *within: str) -> Any:
        """Return the workspace that a call is about: the main one, or one in a view or a block of it."""
        if not within:
            if self._workspace is None:
                raise wire.ProtocolError("There is no workspace yet.")
            return self._workspace
        *outer, last = within
        kind, given = wire.from_text(last)
        if kind == "block":
            return self._block(given)[1]
        workspace: Workspace = self._inside(*outer)  # the same object as for its own calls: it keeps texts
        if kind == "host":
            if self._policy.read_only or self._policy.deny:
                raise errors.RefusedError("There is no `host`: the server's policy holds for programs too.")
            return workspace.host
        given["policy"] = narrowed(given.get("policy", workspace.policy), self._policy)
        return workspace.view(**given)

    def _leave(self, block: str, *, raised: bool) -> Any:
        manager, value = self._block(block)
        del self._blocks[block]
        error = errors.ClosedError("The client has left the block.") if raised else None
        manager.__exit__(error and type(error), error, None)
        return [getattr(value, "result", None), getattr(error, "__notes__", ())]

    def _block(self, name: str) -> tuple[Any, Any]:
        if name not in self._blocks:
            raise errors.ClosedError("This block has ended.", hint="Begin another one.")
        return self._blocks[name]

    def _ask(self, call: int, function: int, arguments: Sequence[Any]) -> Any:
        """Call a function of the client as a part of a call, and return its result."""
        number = next(self._numbers)
        question = {"of": call, "ask": number, "function": function, "arguments": [*arguments]}

        def start() -> Future[Mapping[str, Any]]:
            future = self._questions[number] = Future[Mapping[str, Any]]()
            self._send(wire.to_line(question))
            return future

        reply = self._calls[call].wait_for(start)
        if reply.get("raised") is True:
            raise RuntimeError("A function of the client failed.")  # only the client knows how
        return reply.get("value")

    def _send(self, line: bytes) -> None:
        rest = memoryview(line)
        with self._sending, suppress(OSError):  # the client has gone: the input ends too
            while rest:
                rest = rest[os.write(self._output, rest) :]
