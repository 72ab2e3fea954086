"""The remote side: `agentfs serve` answers requests from standard input, each in its own thread.

The command line limits the client: without `--any-policy` the client can narrow the default policy and the
default limits, and can never widen them.
"""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# The types of a message's values are known only after it is decoded.

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
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, cast

import agentfs
from agentfs.base import call_context
from agentfs.commands.after_change import missing_programs
from agentfs.enforcement.guard import host_policy
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
from agentfs.fs import quote
from agentfs.limits import Limits
from agentfs.patterns.engine import engine_name
from agentfs.policy import Mount, Policy, Protect
from agentfs.remote import protocol
from agentfs.remote.session import Outcomes, SessionDirectory, current_key, lost_during_change
from agentfs.remote.transport import disconnected, line_reader
from agentfs.workspace import Workspace

_THREADS = 64  # a request that waits for a reply of the client keeps its thread
_MAX_REQUESTS = 1024
_MAX_VIEWS = 64
_MAX_WAITING = 16  # unread replies for one request


@dataclass(frozen=True)
class Options:
    """The options of `agentfs serve`."""

    root: str
    state: str | None = None
    session: str | None = None
    read_only: bool = False
    any_policy: bool = False
    mounts: Mapping[str, Mount] = field(default_factory=dict[str, Mount])


class _EndedError(Exception):
    """A signal has ended this process."""


class _CallbackError(Exception):
    """A function of the client has raised an exception that only the client knows."""


class _Aborted(Exception):  # noqa: N818 - raised inside a block that the client gives up
    """The client has left a block by an exception."""


class _Request(NamedTuple):
    """A request under way."""

    number: int
    message: Mapping[str, Any]
    call: call_context.Execution
    replies: "queue.SimpleQueue[Mapping[str, Any] | None]"


class _Block(NamedTuple):
    """An open block of the client: its method, context manager, value and workspace."""

    method: str
    manager: contextlib.AbstractContextManager[Any]
    value: Any
    workspace: Workspace


_current: ContextVar[tuple["Server", _Request]] = ContextVar("agentfs_request")


def serve(options: Options) -> int:
    """Serve one client over standard input and output until it leaves; return the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a shared terminal is for the client
    output = os.dup(1)
    os.dup2(2, 1)  # keeps anything that is printed here out of the messages
    ending = [signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it
        ending.append(signal.SIGHUP)
    reading = ended = False

    def end(*_: object) -> None:
        nonlocal ended
        ended = True
        if reading:  # elsewhere the exception could interrupt any step
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
    """A workspace that keeps the outcome of each change of its client."""

    _make_ledger = Outcomes


class _SessionWorkspace(_ServedWorkspace):
    """A workspace whose state only its client can continue; it need not survive a crash of the system."""

    _state_durability = "fast"


class Server:
    """Answers the requests of one client."""

    def __init__(self, options: Options, output: int) -> None:
        self._options = options
        self._output = output
        self._sending = threading.Lock()
        self._requests: dict[int, _Request] = {}  # added by the reading thread, removed by workers
        self._cached_view = functools.lru_cache(_MAX_VIEWS)(self._make_view)
        self._blocks: dict[str, _Block] = {}
        self._workers = ThreadPoolExecutor(_THREADS, "agentfs-serve")
        self._questions = itertools.count(1)
        self._workspace: Workspace | None = None
        self.session: SessionDirectory | None = None
        self._outcomes: Outcomes | None = None
        self._notes: list[str] = []
        self._said_bye = False

    def run(self, read_line: Callable[[], bytes]) -> None:
        """Handle messages until the client leaves."""
        incoming = protocol.messages(read_line)
        hello = next(incoming, None)
        if hello is None or not self._open(hello):
            return
        for message in incoming:
            match message:
                case {"request": number} if protocol.is_instance(number, int):
                    self._begin(number, message)
                case {"reply": number}:
                    protocol.check_fields(message, protocol.Reply)
                    if request := self._requests.get(number):
                        if request.replies.qsize() > _MAX_WAITING:
                            raise protocol.ProtocolError(
                                "The client sends replies faster than they are read."
                            )
                        request.replies.put(message)
                case {"cancel": number} if protocol.is_instance(number, int):
                    if (request := self._requests.get(number)) and request.call.abandon():
                        request.replies.put(None)
                case {"abort": str() as name}:
                    self._abort(name)  # in this thread, so that no later call sees the block's traces
                case {"ping": number} if protocol.is_instance(number, int):
                    self._send({"pong": number})
                case {"bye": True}:
                    self._said_bye = True
                    return
                case _:
                    raise protocol.ProtocolError("The client sent an invalid message.")

    def end(self) -> None:
        """Cancel requests that only read, complete changes under way, and close the workspace."""
        for request in list(self._requests.values()):
            request.call.abandon()
            request.replies.put(None)
        self._workers.shutdown(cancel_futures=True)
        for name in reversed([*self._blocks]):
            self._abort(name)
        if self._workspace is not None:
            self._workspace.close()
        # The session stays locked until this process ends; the next one waits for that.
        if self.session is not None and self._said_bye:
            self.session.remove()

    def _open(self, hello: Mapping[str, Any]) -> bool:
        """Open the workspace and answer; return False if that failed."""
        answer: dict[str, Any] = {"agentfs": hello.get("nonce"), "protocol": protocol.PROTOCOL_VERSION}
        try:
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
        if hello.get("protocol") != protocol.PROTOCOL_VERSION:
            raise InvalidArgumentError(
                f"The remote side has agentfs {agentfs.__version__}, with another version of the protocol.",
                hint="Install the same version on both sides, or connect with push=True.",
            )
        protocol.check_fields(hello, protocol.Hello)
        policy, limits = _decode(hello["policy"]), _decode(hello["limits"])
        watch, root, state = hello["watch"], hello["root"], hello.get("state")
        if not isinstance(policy, Policy) or not isinstance(limits, Limits):
            raise InvalidArgumentError("The first message has no policy or no limits.")
        policy = self._allowed(policy, limits)
        mounts = self._mounts(_decode(hello.get("mounts") or {}))
        if state is not None and not self._options.any_policy:
            raise _not_allowed("let the client choose a state directory")
        if "\0" in self._options.root + root:
            raise InvalidPathError("The root contains a NUL character.")
        top = os.path.realpath(self._options.root)
        path = top if root in ("", ".") else os.path.join(top, root)
        real = os.path.realpath(path)
        if not self._options.any_policy and os.path.commonpath([top, real]) != top:
            raise _not_allowed("allow a root outside its own")
        state = state or self._options.state

        self._notes += missing_programs(policy)

        def opened(kind: type[Workspace], state: str | None) -> Workspace:
            return kind(path, mounts=mounts, policy=policy, limits=limits, state=state, watch=watch)

        if policy.read_only or not os.path.isdir(real) or hello.get("kept") is False:
            workspace = opened(_ServedWorkspace, state)
        else:
            workspace = self._open_in_session(real, hello, opened, state)
        kept = workspace._state  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - for the ledger
        log = None if kept is None else kept.journal.log
        ledger = None if log is None else log.ledger
        self._outcomes = ledger if isinstance(ledger, Outcomes) else None
        if hello.get("forget") is True:
            workspace.forget()
        if workspace.root != real and not self._options.any_policy:
            workspace.close()
            raise RefusedError("The root was moved while the workspace opened it.")
        return workspace

    def _mounts(self, wanted: Any) -> dict[str, Mount]:
        """Return the mounts of the command line, with those of the client if it may choose any."""
        if not isinstance(wanted, dict) or not all(isinstance(each, Mount) for each in wanted.values()):
            raise InvalidArgumentError("The first message has something else than mounts.")
        if wanted and not self._options.any_policy:
            raise _not_allowed("let the client mount directories")
        own = self._options.mounts
        if same := sorted(wanted.keys() & own.keys()):
            raise _not_allowed(f"let the client replace the mount {quote(same[0])}")
        return {**own, **cast("dict[str, Mount]", wanted)}

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
            self._notes.append(f"the session ends with its connection: {error.message}")
        return opened(_ServedWorkspace, state)

    def _allowed(self, policy: Policy, limits: Limits) -> Policy:
        """Return the policy as far as the command line allows it; raise `refused` for wider settings."""
        policy = replace(policy, read_only=policy.read_only or self._options.read_only)
        if self._options.any_policy:
            return policy
        if policy.run is not None or any(rule.arguments for rule in policy.after_change):
            raise _not_allowed("let the client run commands")
        for each in fields(Limits):
            if each.type in (int, float) and getattr(limits, each.name) > each.default:
                hint = "Start it with --any-policy; the presets of some dialects need that."
                raise _not_allowed(f"allow a larger {each.name}", hint)
        for each in fields(Protect):
            own, given = getattr(Protect, each.name.upper()), getattr(policy.protect, each.name)
            if given[: len(own)] != own or any(name.startswith("!") for name in given[len(own) :]):
                raise _not_allowed("let the client protect fewer names")
        if limits.count_tokens is not None:  # a client that counts 0 would lift the limit
            raise _not_allowed("let the client count tokens")
        return policy

    def _begin(self, number: int, message: Mapping[str, Any]) -> None:
        if number in self._requests:
            raise protocol.ProtocolError("Two requests have the same number.")
        try:
            protocol.check_fields(message, protocol.Request)
            if len(self._requests) >= _MAX_REQUESTS:
                raise BusyError(f"The client has {_MAX_REQUESTS} calls under way.")
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
                answer = {"value": protocol.to_wire(self._run(request.message))}
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
        """Return the answer to a change that began before; None if it may be made now."""
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
            views = message.get("views")
            workspace = self._cached_view(base, json.dumps(views)) if views else base
        with self._limited(message, workspace):
            arguments = self._arguments(message, workspace)
            match message["method"]:
                case "view":
                    return workspace.workdir
                case "containment" | "watch" as name:
                    return getattr(workspace, name)
                case "begin":
                    self._begin_block(workspace, **arguments)
                    return None
                case "end" if block := self._blocks.pop(message.get("block", ""), None):
                    block.manager.__exit__(None, None, None)
                    return protocol.BLOCKS[block.method](block.value)
                case str() as name if name in protocol.REMOTE_METHODS:
                    if name == "run" and (workspace.policy.run == "recorded" or arguments.get("network")):
                        self._begin_command(message)
                    return getattr(workspace, name)(**arguments)
                case _:
                    raise protocol.ProtocolError("There is no such method.")

    def _begin_command(self, message: Mapping[str, Any]) -> None:
        """Let a command whose acts others see run only once. What a staged one does is dropped with it."""
        key = message.get("key")
        if key is not None and self._outcomes is not None:
            self._outcomes.begin_command(key)

    def _limited(
        self, message: Mapping[str, Any], workspace: Workspace
    ) -> contextlib.AbstractContextManager[None]:
        """Set the client's deadline, at most that of the workspace; without one, the method sets its own."""
        seconds = message.get("seconds")
        if seconds is None:
            return contextlib.nullcontext()
        return call_context.limited(max(min(seconds, workspace.limits.timeout), 0.0))

    def _arguments(self, message: Mapping[str, Any], workspace: Workspace) -> dict[str, Any]:
        arguments = _decode(message["arguments"])
        if not isinstance(arguments, dict):
            raise protocol.ProtocolError("A call has no arguments.")
        seconds, limits = arguments.get("timeout"), workspace.limits
        most = limits.run_timeout if message["method"] == "run" else limits.timeout
        if isinstance(seconds, (int, float)) and not seconds <= most and not self._options.any_policy:
            raise _not_allowed(f"allow a timeout over {most:g} s")
        return arguments

    def _begin_block(self, workspace: Workspace, name: str, method: str, arguments: dict[str, Any]) -> None:
        if method not in protocol.BLOCKS:
            raise protocol.ProtocolError("There is no such method.")
        manager = getattr(workspace, method)(**arguments)
        value = manager.__enter__()
        inside = value if isinstance(value, Workspace) else workspace
        self._blocks[name] = _Block(method, manager, value, inside)

    def _abort(self, name: str) -> None:
        if block := self._blocks.pop(name, None):
            with contextlib.suppress(Exception):  # the client expects no answer
                block.manager.__exit__(_Aborted, _Aborted(), None)

    def _base(self, message: Mapping[str, Any]) -> Workspace:
        """Return the workspace of the block that a request belongs to, or the main one."""
        name = message.get("block")
        block = self._blocks.get(name) if name is not None else None
        workspace = self._workspace if name is None else block and block.workspace
        if workspace is not None:
            return workspace
        if message.get("again") is True:
            raise disconnected("The `with` block was lost with the connection.", made=False)
        raise ClosedError("This transaction has ended.", hint="Begin another one.")

    def _make_view(self, workspace: Workspace, views: str) -> Workspace:
        *above, last = json.loads(views)
        if above:  # the same object as for calls in that view: it keeps texts
            workspace = self._cached_view(workspace, json.dumps(above))
        given: dict[str, Any] = {"policy": workspace.policy, "limits": workspace.limits, **_decode(last)}
        if given.pop("host", False):
            self._allowed(host_policy(workspace.policy), workspace.limits)
            return workspace.host
        given["policy"] = self._allowed(given["policy"], given["limits"])
        return workspace.view(**given)

    def ask(self, request: _Request, function: int, arguments: tuple[Any, ...]) -> Any:
        """Call a function of the client and return its result."""
        number = next(self._questions)
        self._send(
            {
                "ask": number,
                "of": request.number,
                "function": function,
                "arguments": protocol.to_wire([*arguments]),
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
        with self._sending, contextlib.suppress(OSError):  # the client has gone: the input ends too
            while rest:
                rest = rest[os.write(self._output, rest) :]


def _not_allowed(what: str, hint: str = "") -> RefusedError:
    return RefusedError(f"The command line of the remote side does not {what}.", hint=hint)


class _RemoteFunction(protocol.RemoteFunction):
    """A function of the client, called as a part of the current request."""

    def __call__(self, *arguments: Any) -> Any:
        server, request = _current.get()
        return server.ask(request, self.number, arguments)


def _decode(value: Any) -> Any:
    return protocol.from_wire(value, _RemoteFunction, protocol.CLASSES)
