"""The far side: `agentfs serve` answers the calls that come over standard input, each in a thread.

The command line says what the client may do: without `--any-policy` it may narrow the default policy and the
default limits, and never widen them.
"""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# Of what a message has, the types are known only once it is decoded.

import contextlib
import functools
import itertools
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import agentfs
from agentfs import call_context
from agentfs.errors import (
    AgentFSError,
    BusyError,
    ClosedError,
    FileIOError,
    InvalidArgumentError,
    InvalidPathError,
    RefusedError,
    TooLargeError,
)
from agentfs.limits import Limits
from agentfs.patterns.engine import engine_name
from agentfs.policy import Policy, Protect
from agentfs.remote import protocol
from agentfs.remote.session import Outcomes, SessionDirectory, current_key, lost_during_change
from agentfs.remote.transport import disconnected, line_reader
from agentfs.workspace import Workspace

_THREADS = 64  # calls that wait for an answer keep theirs
_MAX_CALLS = 1024
_MAX_VIEWS = 64
_MAX_WAITING = 16  # replies for one call that it has not taken


@dataclass(frozen=True)
class Options:
    """What the command line allows."""

    root: str
    state: str | None = None
    session: str | None = None
    read_only: bool = False
    any_policy: bool = False


class _EndedError(Exception):
    """Another process is to serve the session."""


class _CallbackError(Exception):
    """A function of the client has raised; the client knows what."""


class _Aborted(Exception):  # noqa: N818 - raised within a transaction that the client gives up
    """The transaction is not to be made."""


class _Request(NamedTuple):
    """One call that is under way."""

    number: int
    message: Mapping[str, Any]
    call: call_context.Execution
    replies: "queue.SimpleQueue[Mapping[str, Any] | None]"


class _Transaction(NamedTuple):
    """A transaction of the client: what ends it, and the workspace within."""

    context: contextlib.AbstractContextManager[Workspace]
    workspace: Workspace


_current: ContextVar[tuple["Server", _Request]] = ContextVar("agentfs_request")


def serve(options: Options) -> int:
    """Serve one client over standard input and output until it goes; return the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the client, from whose terminal it came
    output = os.dup(1)
    os.dup2(2, 1)  # what is printed here must not get among the messages
    ending = [signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        ending.append(signal.SIGHUP)
    reading = ended = False

    def end(*_: object) -> None:
        nonlocal ended
        ended = True
        if reading:  # elsewhere an exception could come between any two steps
            raise _EndedError

    def read() -> bytes:
        nonlocal reading
        reading = True
        try:
            return b"" if ended else read_line()
        finally:
            reading = False

    for each in ending:
        signal.signal(each, end)
    server = Server(options, output)
    read_line = line_reader(sys.stdin.buffer.readline, protocol.MAX_LINE)
    try:
        server.run(read)
    except _EndedError:
        pass
    except (protocol.ProtocolError, AgentFSError) as error:
        sys.stderr.write(f"agentfs: {error}\n")
        return 2
    finally:
        for each in ending:
            signal.signal(each, signal.SIG_IGN)
        server.end()
    return 0


class _ServedWorkspace(Workspace):
    """A workspace that notes the outcome of each change of its client."""

    _make_ledger = Outcomes


class _SessionWorkspace(_ServedWorkspace):
    """A workspace whose state only its client continues: it outlives this process, and not the machine."""

    _state_durability = "fast"


class Server:
    """Answers the calls of one client."""

    def __init__(self, options: Options, output: int) -> None:
        self._options = options
        self._output = output
        self._sending = threading.Lock()
        self._requests: dict[int, _Request] = {}  # to which this thread adds, and from which workers remove
        self._made_view = functools.lru_cache(_MAX_VIEWS)(self._make_view)
        self._transactions: dict[str, _Transaction] = {}
        self._workers = ThreadPoolExecutor(_THREADS, "agentfs-serve")
        self._questions = itertools.count(1)
        self._workspace: Workspace | None = None
        self.session: SessionDirectory | None = None
        self._outcomes: Outcomes | None = None
        self._notes: list[str] = []
        self._said_bye = False

    def run(self, read_line: Callable[[], bytes]) -> None:
        """Take messages until there are no more."""
        incoming = protocol.messages(read_line)
        hello = next(incoming, None)
        if hello is None or not self._open(hello):
            return
        for message in incoming:
            match message:
                case {"call": number} if protocol.is_instance(number, int):
                    self._begin(number, message)
                case {"reply": number}:
                    protocol.check_fields(message, protocol.Reply)
                    if request := self._requests.get(number):
                        if request.replies.qsize() > _MAX_WAITING:
                            raise protocol.ProtocolError("The client sends more than is taken.")
                        request.replies.put(message)
                case {"cancel": number} if protocol.is_instance(number, int):
                    if (request := self._requests.get(number)) and request.call.abandon():
                        request.replies.put(None)
                case {"abort": str() as name}:
                    self._workers.submit(self._abort, name)
                case {"ping": number} if protocol.is_instance(number, int):
                    self._send({"pong": number})
                case {"bye": True}:
                    self._said_bye = True
                    return
                case _:
                    raise protocol.ProtocolError("The client sent what is no message.")

    def end(self) -> None:
        """Give up what only reads, complete the changes that have begun, and close the workspace."""
        for request in list(self._requests.values()):
            request.call.abandon()
            request.replies.put(None)
        self._workers.shutdown(cancel_futures=True)
        for name in reversed([*self._transactions]):
            self._abort(name)
        if self._workspace is not None:
            self._workspace.close()
        # It stays locked until the process ends, for which the next one waits.
        if self.session is not None and self._said_bye:
            self.session.remove()

    def _open(self, hello: Mapping[str, Any]) -> bool:
        """Open the workspace and answer; return whether that went well."""
        answer: dict[str, Any] = {"agentfs": hello.get("nonce"), "protocol": protocol.VERSION}
        try:
            _check_version(hello)
            protocol.check_fields(hello, protocol.Hello)
            workspace = self._workspace = self._make_workspace(hello)
        except Exception as error:  # noqa: BLE001 - the client raises it
            self._send({**answer, "error": protocol.encode_error(error)})
            return False
        report = {
            "version": agentfs.__version__,
            "python": ".".join(map(str, sys.version_info[:3])),
            "engine": engine_name(),
            "pid": os.getpid(),
        }
        notes = [*workspace.recovery_notes, *self._notes]
        kept = self._outcomes is not None
        self._send({**answer, "root": workspace.root, "remote": report, "notes": notes, "kept": kept})
        return True

    def _make_workspace(self, hello: Mapping[str, Any]) -> Workspace:
        policy, limits = _decode(hello.get("policy")), _decode(hello.get("limits"))
        watch, root, state = hello["watch"], hello["root"], hello.get("state")
        if not isinstance(policy, Policy) or not isinstance(limits, Limits):
            raise InvalidArgumentError("The first message lacks a policy or limits.")
        self._check(policy, limits)
        if state is not None and not self._options.any_policy:
            raise _not_allowed("let the client choose a state directory")
        policy = self._narrowed(policy)
        if "\0" in self._options.root + root:
            raise InvalidPathError("The root has a NUL in it.")
        top = os.path.realpath(self._options.root)
        path = top if root in ("", ".") else os.path.join(top, root)
        real = os.path.realpath(path)
        if not self._options.any_policy and os.path.commonpath([top, real]) != top:
            raise _not_allowed("allow a root that lies outside of its own")
        state = state or self._options.state

        def opened(kind: type[Workspace], state: str | None) -> Workspace:
            return kind(path, policy=policy, limits=limits, state=state, watch=watch)

        if policy.read_only or not os.path.isdir(real) or hello.get("kept") is False:
            workspace = opened(_ServedWorkspace, state)
        else:
            workspace = self._open_in_session(real, hello, opened, state)
        kept = workspace._state  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - it has the ledger
        ledger = None if kept is None else kept.journal.store.ledger
        self._outcomes = ledger if isinstance(ledger, Outcomes) else None
        if hello.get("forget") is True:
            workspace.forget()
        if workspace.root != real and not self._options.any_policy:
            workspace.close()
            raise RefusedError("The root was moved while it was opened.")
        return workspace

    def _open_in_session(
        self,
        root: str,
        hello: Mapping[str, Any],
        opened: Callable[[type[Workspace], str | None], Workspace],
        state: str | None,
    ) -> Workspace:
        client, name, only = hello["client"], hello.get("session"), self._options.session
        if only is not None and name not in (None, only):
            raise _not_allowed("allow this session")
        name, again = name or only, hello.get("again") is True
        kind = _SessionWorkspace if name is None and state is None else _ServedWorkspace
        try:
            self.session = SessionDirectory(root, name, client, again=again)
            return opened(kind, state or self.session.state)
        except FileIOError as error:
            if name is not None or again:
                raise
            self._notes.append(f"the session is lost with its connection: {error.message}")
        return opened(_ServedWorkspace, state)

    def _narrowed(self, policy: Policy) -> Policy:
        return replace(policy, read_only=policy.read_only or self._options.read_only)

    def _check(self, policy: Policy, limits: Limits) -> None:
        if self._options.any_policy:
            return
        for each in fields(Limits):
            if each.type in (int, float) and getattr(limits, each.name) > each.default:
                hint = "With --any-policy it does; the presets of some dialects need that."
                raise _not_allowed(f"allow a larger {each.name}", hint)
        for each in fields(Protect):
            own, given = getattr(Protect, each.name.upper()), getattr(policy.protect, each.name)
            if given[: len(own)] != own or any(name.startswith("!") for name in given[len(own) :]):
                raise _not_allowed("allow to protect fewer names")
        if limits.count_tokens is not None:  # it could count none
            raise _not_allowed("let the client count tokens")

    def _begin(self, number: int, message: Mapping[str, Any]) -> None:
        if number in self._requests:
            raise protocol.ProtocolError("Two calls have one number.")
        try:
            protocol.check_fields(message, protocol.Request)
            if len(self._requests) >= _MAX_CALLS:
                raise BusyError(f"Over {_MAX_CALLS} calls are under way.")
        except AgentFSError as error:
            self._send({"answer": number, "error": protocol.encode_error(error)})
            return

        def progress(entries: int) -> None:
            self._send({"progress": number, "entries": entries})

        call = call_context.Execution(
            message.get("tool"), on_progress=progress if message.get("progress") is True else None
        )
        request = self._requests[number] = _Request(number, message, call, queue.SimpleQueue())
        self._workers.submit(self._answer, request)

    def _answer(self, request: _Request) -> None:
        call_context.current.set(request.call)
        _current.set((self, request))
        key, outcomes = request.message.get("key"), self._outcomes
        current_key.set(key)
        try:
            answer = self._earlier_answer(request)
            if answer is None:
                answer = {"value": protocol.encode(self._run(request.message))}
                if key is not None and outcomes is not None:
                    outcomes.add_answer(key, answer)
        except call_context.Cancelled:
            answer = {"cancelled": True}
        except _CallbackError:
            answer = {"raised": True}
        except Exception as error:  # noqa: BLE001 - the client raises it
            answer = {"error": protocol.encode_error(error)}
        del self._requests[request.number]
        try:
            self._send({**answer, "answer": request.number})
        except TooLargeError as error:
            self._send({"error": protocol.encode_error(error), "answer": request.number})

    def _earlier_answer(self, request: _Request) -> Mapping[str, Any] | None:
        """Return the answer to a change that was begun before; None where it may be made now."""
        key = request.message.get("key")
        if key is None:
            return None
        if self._outcomes is not None:
            return self._outcomes.find(key)
        may_change = self._workspace is not None and not self._workspace.policy.read_only
        if may_change and request.message.get("again") is True:
            raise lost_during_change()
        return None

    def _run(self, message: Mapping[str, Any]) -> Any:
        base = self._base(message)
        with self._limited(message, base):
            workspace = self._view(message, base)
        with self._limited(message, workspace):
            if message.get("again") is True and workspace.policy.reread == "diff":
                # What the first sending has noted as read has not come to the client.
                workspace = workspace.view(policy=replace(workspace.policy, reread="full"))
            arguments = self._arguments(message, workspace)
            method, name = message["method"], message.get("transaction")
            match method:
                case "view":
                    return None
                case "containment" | "watch":
                    return getattr(workspace, method)
                case "begin":
                    context = workspace.transaction()
                    self._transactions[str(arguments["name"])] = _Transaction(context, context.__enter__())
                    return None
                case "commit" if name in self._transactions:
                    transaction = self._transactions.pop(name)
                    transaction.context.__exit__(None, None, None)
                    return transaction.workspace.commit_notes
                case "begin_recording":
                    return workspace._begin_recording(**arguments)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
                case "end_recording":
                    return workspace._end_recording(**arguments)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
                case str() if method in protocol.REMOTE_METHODS:
                    return getattr(workspace, method)(**arguments)
                case _:
                    raise protocol.ProtocolError("There is no such method.")

    def _limited(
        self, message: Mapping[str, Any], workspace: Workspace
    ) -> contextlib.AbstractContextManager[None]:
        """Set the deadline of the client, at most that of the workspace; else the method sets its own."""
        seconds = message.get("seconds")
        if seconds is None:
            return contextlib.nullcontext()
        return call_context.limited(max(min(seconds, workspace.limits.timeout), 0.0))

    def _arguments(self, message: Mapping[str, Any], workspace: Workspace) -> dict[str, Any]:
        arguments = _decode(message["arguments"])
        if not isinstance(arguments, dict):
            raise protocol.ProtocolError("A call has no arguments.")
        seconds, most = arguments.get("timeout"), workspace.limits.timeout
        if isinstance(seconds, (int, float)) and not seconds <= most and not self._options.any_policy:
            raise _not_allowed(f"allow a timeout over {most:g} s")
        return arguments

    def _abort(self, name: str) -> None:
        if transaction := self._transactions.pop(name, None):
            with contextlib.suppress(_Aborted):
                transaction.context.__exit__(_Aborted, _Aborted(), None)

    def _base(self, message: Mapping[str, Any]) -> Workspace:
        """Return the workspace, or that of the transaction, of which a call may name views."""
        name = message.get("transaction")
        transaction = self._transactions.get(name) if name is not None else None
        workspace = self._workspace if name is None else transaction and transaction.workspace
        if workspace is not None:
            return workspace
        if message.get("again") is True:
            raise disconnected("The transaction was lost with the connection.", made=False)
        raise ClosedError("This transaction has ended.", hint="Begin another one.")

    def _view(self, message: Mapping[str, Any], workspace: Workspace) -> Workspace:
        """Return a workspace with the views that a call names."""
        views = message.get("views")
        return self._made_view(workspace, json.dumps(views)) if views else workspace

    def _make_view(self, workspace: Workspace, views: str) -> Workspace:
        for each in json.loads(views):
            given = _decode(each)
            if "policy" in given:
                given["policy"] = self._narrowed(given["policy"])
            workspace = workspace.view(**given)
            self._check(workspace.policy, workspace.limits)
        return workspace

    def ask(self, request: _Request, function: int, arguments: tuple[Any, ...]) -> Any:
        """Call a function of the client and return what it returns."""
        number = next(self._questions)
        self._send(
            {
                "ask": number,
                "of": request.number,
                "function": function,
                "arguments": protocol.encode([*arguments]),
            }
        )
        while (reply := request.replies.get()) is not None:
            if reply.get("to") == number:
                if reply.get("raised") is True:
                    raise _CallbackError
                if (error := reply.get("error")) is not None:
                    raise protocol.decode_error(error)
                return _decode(reply.get("value"))
        raise call_context.Cancelled

    def _send(self, message: Mapping[str, Any]) -> None:
        rest = memoryview(protocol.to_lines(message))
        with self._sending, contextlib.suppress(OSError):  # then the client has gone, and the input ends too
            while rest:
                rest = rest[os.write(self._output, rest) :]


def _not_allowed(what: str, hint: str = "") -> RefusedError:
    return RefusedError(f"The command line of the far side does not {what}.", hint=hint)


def _check_version(hello: Mapping[str, Any]) -> None:
    if hello.get("protocol") != protocol.VERSION:
        raise InvalidArgumentError(
            f"The far side has agentfs {agentfs.__version__}, whose messages are of another version.",
            hint="Install the same version on both sides, or let it be pushed.",
        )


class _RemoteFunction(protocol.RemoteFunction):
    """A function of the client, called within the call that is under way."""

    def __call__(self, *arguments: Any) -> Any:
        server, request = _current.get()
        return server.ask(request, self.number, arguments)


def _decode(value: Any) -> Any:
    return protocol.decode(value, _RemoteFunction, settings=True)
