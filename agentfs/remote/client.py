"""A workspace whose files are elsewhere: `connect`, and each method as a request to the remote side."""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# The types of a message's values are known only after it is decoded.
# ruff: noqa: SLF001 - a view and a block are copies of the workspace, which makes them

import contextlib
import functools
import inspect
import math
import time
import typing
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Any, Self, cast

from agentfs.arguments.checks import ArgumentChecker
from agentfs.base import call_context
from agentfs.commands.background import Command, not_ended
from agentfs.commands.request import DEFAULT_SECONDS
from agentfs.enforcement.guard import check_arguments, host_policy
from agentfs.errors import AgentFSError, InvalidArgumentError, UnsupportedSystemError, closed
from agentfs.events import OnEvent, reports_calls
from agentfs.history.timeline import Recording
from agentfs.limits import Limits
from agentfs.permissions import READING, PermissionRequest
from agentfs.policy import Mount, Policy
from agentfs.remote import bootstrap_near, protocol
from agentfs.remote.connection import Connection, PendingRequest, ReconnectingConnection, error_of
from agentfs.remote.transport import CommandStream, Stream, disconnected
from agentfs.results import CommandOutput, Containment, RecordedResult, Result, Review, RunResult, WatchReport
from agentfs.tools.rules import NOT_ASKED, not_permitted
from agentfs.tools.tool import declaration_of
from agentfs.workspace import Workspace

Opener = Callable[[list[str]], Stream]
_POLL_SECONDS = 0.05  # between two looks at a command in the background


@dataclass(frozen=True)
class RemoteReport:
    """Facts about the remote side of a workspace.

    Attributes:
        version: The version of agentfs there.
        python: The version of Python there.
        engine: The module that matches regular expressions there: "regex", or "re" if that is missing.
        pid: The process id of the server.
        reconnects: How many times a lost connection was replaced.
    """

    version: str
    python: str
    engine: str
    pid: int
    reconnects: int


class RemoteWorkspace(Workspace):
    """A workspace on another machine or in a container; see `agentfs.connect`."""

    def __init__(
        self,
        connection: ReconnectingConnection,
        functions: list[Callable[..., Any]],
        policy: Policy,
        limits: Limits,
        on_event: OnEvent | None,
    ) -> None:
        self.policy, self.limits, self.on_event = policy, limits, on_event
        self._connection = connection
        self._functions = functions  # of the policy, the limits and the views
        self._views: list[Any] = []  # encoded arguments of `view`; the remote side repeats those calls
        self._workdir = "."
        self._block: tuple[str, Connection] | None = (
            None  # the name of the enclosing block, and its connection
        )

    @property
    def root(self) -> str:
        """The absolute path of the root at the remote side, without links."""
        return str(self._connection.answer["root"])

    @property
    def workdir(self) -> str:
        """The directory, relative to the root, where relative paths start; "." is the root."""
        return self._workdir

    @property
    def containment(self) -> Containment:
        """Mechanisms that confine calls to the root at the remote side, and that keep writers apart there."""
        return cast("Containment", self._call("containment", {}, Containment))

    @property
    def watch(self) -> WatchReport | None:
        """Sizes of the watched tree in memory at the remote side; None without `watch=True`."""
        return cast("WatchReport | None", self._call("watch", {}, WatchReport | None))

    @property
    def recovery_notes(self) -> tuple[str, ...]:
        """Notes on changes that were recovered on opening, after a process had died during them."""
        return tuple(self._connection.answer["notes"])

    @property
    def remote(self) -> RemoteReport:
        """Facts about the remote side, and the number of reconnects."""
        return RemoteReport(**self._connection.answer["remote"], reconnects=self._connection.connections - 1)

    def _check_open(self) -> None:
        if self._connection.closed:
            raise closed()

    def close(self) -> None:
        """End the remote side and the connection; every later call fails."""
        self._connection.close()

    def __repr__(self) -> str:
        return f"<remote workspace {self.root!r}>"

    def view(
        self,
        *,
        limits: Limits | None = None,
        policy: Policy | None = None,
        workdir: str | PathLike[str] | None = None,
        only: Sequence[str | PathLike[str]] | None = None,
    ) -> Self:
        """Return this workspace under other limits and another policy, or with paths from another directory.

        See `Workspace.view`.
        """
        other = copy(self)
        other.limits, other.policy = limits or self.limits, policy or self.policy
        given = {"limits": limits, "policy": policy, "workdir": workdir, "only": only}
        given = {name: value for name, value in given.items() if value is not None}
        other._functions = [*self._functions]
        other._views = [*self._views, protocol.to_wire(given, other._functions)]
        other._workdir = other._call("view", {}, str)
        return other

    @property
    def host(self) -> Self:
        """This workspace for the program itself; see `Workspace.host`."""
        other = copy(self)
        other.policy = host_policy(self.policy)
        other._views = [*self._views, protocol.to_wire({"host": True})]
        return other

    @contextmanager
    def transaction(self) -> Generator[Self]:
        """Make several changes as one; see `Workspace.transaction`."""
        inner = self._begin_block("transaction", {})
        try:
            yield inner
            notes = inner._end_block(tuple[str, ...])
        except BaseException:
            inner._abort_block()
            raise
        inner.commit_notes = tuple(map(protocol.shown, notes))

    @contextmanager
    def recording(self, label: str, include_ignored: bool = False) -> Generator[Recording]:
        """Record what changes in the tree of the remote side; see `Workspace.recording`."""
        arguments = {"label": label, "include_ignored": include_ignored}
        block = self._begin_block("recording", arguments)
        recorded = Recording(label)
        try:
            yield recorded
        finally:
            recorded.result = cast("RecordedResult", block._end_block(RecordedResult))

    def _begin_block(self, method: str, arguments: Mapping[str, Any]) -> Self:
        """Enter a block of `protocol.BLOCKS` at the remote side; return the workspace inside it."""
        inner = copy(self)
        inner._views = []
        name = uuid.uuid4().hex
        _, connection = self._request("begin", {"name": name, "method": method, "arguments": arguments})
        inner._block = (name, connection)
        return inner

    def _end_block(self, returns: Any) -> Any:
        """Leave the block that this workspace is inside, and return its outcome."""
        return self._call("end", {}, returns, changes=True)

    def _abort_block(self) -> None:
        """Leave the block that this workspace is inside as if by an exception."""
        if self._block is not None:
            name, connection = self._block
            connection.send({"abort": name})

    def _call(self, method: str, arguments: Mapping[str, Any], returns: Any, *, changes: bool = False) -> Any:
        answer, _ = self._request(method, arguments, changes=changes)
        try:
            value = protocol.from_wire(answer.get("value"))
            if protocol.is_instance(value, returns):
                return value.bound_to(self) if isinstance(value, Review) else value
            reason = f"The remote side did not return {returns}."
        except protocol.ProtocolError as error:
            reason = f"The remote side returned an invalid result: {error}"
        raise disconnected(reason, made=None if changes else False)

    def _request(
        self, method: str, arguments: Mapping[str, Any], *, changes: bool = False
    ) -> tuple[Mapping[str, Any], Connection]:
        self._check_open()
        functions = [*self._functions]
        message: dict[str, Any] = {"method": method, "arguments": protocol.to_wire(arguments, functions)}
        if self._views:
            message["views"] = self._views
        if self._block is not None:
            message["block"] = self._block[0]
        if changes:
            message["key"] = uuid.uuid4().hex
        call = call_context.current.get()
        if call is not None:
            message |= {"tool": call.tool, "progress": call.reports_progress}
        asked = arguments.get("timeout")
        requested = max(0.0, float(asked)) if isinstance(asked, (int, float)) else None
        seconds = call_context.granted(requested, self.limits.timeout)
        if method == "run":  # then its changes are applied
            asked = DEFAULT_SECONDS if requested is None else requested
            seconds += call_context.granted(asked, self.limits.run_timeout)
        left = call_context.deadline() - time.monotonic()
        if left < float("inf") and method != "run":
            message["seconds"] = max(left, 0.0)
        seen = 0

        def reply(question: Mapping[str, Any]) -> dict[str, Any]:
            function, arguments = _question(question, functions, self.policy)
            try:
                return {"value": protocol.to_wire(call_context.call_back(function, *arguments))}
            except BaseException as error:  # noqa: BLE001 - raised when the remote side has answered
                if isinstance(error, Exception) and function in self.policy.askers:
                    asked: PermissionRequest = arguments[0]
                    refused = not_permitted(NOT_ASKED, asked.method, asked.paths)
                    refused.__cause__ = error  # its text stays here
                    request.raised = error = refused
                if isinstance(error, AgentFSError):  # the remote side may act on it before it is raised
                    return {"error": protocol.encode_error(error)}
                request.raised = error
                return {"raised": True}

        def progress(entries: int) -> None:
            nonlocal seen
            if call is not None and entries > seen:
                with contextlib.suppress(call_context.Cancelled) if changes else contextlib.nullcontext():
                    call.step(entries - seen)
                seen = entries

        request = PendingRequest(message, changes, seconds, reply, progress)
        with contextlib.nullcontext() if call is None else call.forwarding(request.cancel, changes=changes):
            answer, connection = self._connection.request(request, self._block and self._block[1])
        if answer.get("raised") is True:
            raise disconnected("The call was abandoned.", made=None if changes else False)
        if answer.get("cancelled") is True:
            raise call_context.Cancelled
        if "value" in answer:
            return answer, connection
        raise error_of(answer)


class _RemoteCommand(Command):
    """A command in the background of the remote side."""

    def __init__(self, workspace: Workspace, name: str) -> None:
        self._workspace, self.id = workspace, name

    @property
    def running(self) -> bool:
        """True until the command has ended."""
        return self._workspace.output(self.id).running

    def wait(self, timeout: float | None = None) -> RunResult:
        """Wait until the command has ended, and return its result; see `Command.wait`."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        while self.running:
            if time.monotonic() > until:
                raise not_ended(self.id, timeout)
            time.sleep(_POLL_SECONDS)
        return self.stop()

    def stop(self) -> RunResult:
        """End the command and all its processes, and return its result."""
        return self._workspace.stop(self.id)

    def output(self, offset: int = 0) -> CommandOutput:
        """Return what the command has written from an offset on."""
        return self._workspace.output(self.id, offset)


def _question(
    question: Mapping[str, Any], functions: Sequence[Callable[..., Any]], policy: Policy
) -> tuple[Callable[..., Any], list[Any]]:
    """Return the function that a question is for, and its arguments; raise ProtocolError if it is invalid."""
    try:
        function = functions[question["function"]]
        arguments: Any = protocol.from_wire(question.get("arguments"), lambda number: functions[number])
    except (TypeError, LookupError):
        raise protocol.ProtocolError("The remote side asked for an unknown function.") from None
    wanted = PermissionRequest if function in policy.askers else object
    if not arguments or not all(isinstance(each, wanted) for each in arguments):
        raise protocol.ProtocolError("The remote side asked an invalid question.")
    return function, arguments


def _remote_method(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that sends its arguments to the remote side, with the signature of the local one."""
    declared = declaration_of(method)
    effect = declared.effect if declared else "none"
    changes = effect not in READING or name == "checkpoint"
    signature = functools.cache(lambda: inspect.signature(method))
    returns = functools.cache(lambda: typing.get_type_hints(inspect.unwrap(method))["return"])

    @functools.wraps(method)
    def remote(self: RemoteWorkspace, /, *args: Any, **kwargs: Any) -> Any:
        _, *arguments = signature().bind(self, *args, **kwargs).arguments.items()
        # `next` of a result may have the names of a dialect. The remote side does not need it.
        given = {
            key: replace(each, next=None) if isinstance(each, Result) else each for key, each in arguments
        }
        makes_change = changes and given.get("preview") is not True
        if makes_change and call_context.is_rehearsed(changes=True):
            # The remote side asks and acts in one request. So a rehearsal always asks, without a diff.
            request = PermissionRequest(name, effect, given, ())
            for permission in self.policy.askers:
                call_context.call_back(permission, request)
            raise call_context.Cancelled
        return self._call(name, given, returns(), changes=makes_change)  # pyright: ignore[reportPrivateUsage] - a method of the class

    checked = check_arguments(remote)
    return checked if declared is None else reports_calls(checked)


def _start(
    self: RemoteWorkspace,
    command: str,
    cwd: str | PathLike[str] = ".",
    *,
    env: Mapping[str, str] | None = None,
    stdin: bytes | str | None = None,
    detach: bool = False,
) -> Command:
    """Start a recorded command in the background of the remote side; see `Workspace.start`."""
    if detach:
        raise UnsupportedSystemError(
            "A command at a remote side ends with its workspace.", hint="Start it there with `nohup`."
        )
    started = self.run(command, cwd=cwd, env=env, stdin=stdin, background=True)
    return _RemoteCommand(self, str(started.id))


_start.__name__ = "start"
setattr(RemoteWorkspace, "start", check_arguments(_start))  # noqa: B010 - as the others
for _name in protocol.REMOTE_METHODS:
    setattr(RemoteWorkspace, _name, _remote_method(_name, vars(Workspace)[_name]))


def connect(
    command_or_opener: Sequence[str] | Opener,
    root: str | PathLike[str],
    *,
    mounts: Mapping[str, Mount] | None = None,
    policy: Policy | None = None,
    limits: Limits | None = None,
    state: str | PathLike[str] | None = None,
    watch: bool = False,
    on_event: OnEvent | None = None,
    session: str | None = None,
    python: str = "python3",
    push: bool = True,
    patience: float = 30.0,
) -> RemoteWorkspace:
    """Open a workspace on another machine or in a container.

    Args:
        command_or_opener: A command prefix that runs a command at the remote side, such as `["ssh", "host"]`
            or `["docker", "exec", "-i", "box"]`. Or a function that takes the command to run there and
            returns its standard input and output: an object with `write`, `readline` and `close`.
        root: The directory at the remote side.
        mounts: As for `Workspace`: directories and files at the remote side.
        policy: As for `Workspace`; its `on_ask` is called here.
        limits: As for `Workspace`.
        state: As for `Workspace`: a directory at the remote side.
        watch: Keep the tree in memory at the remote side; see `Workspace`.
        on_event: As for `Workspace`: called here.
        session: A name under which a later process can continue. The newest client of a session ends the
            previous one. By default a new session, which ends with this workspace.
        python: Python at the remote side, 3.11 or newer.
        push: Send the package to the remote side. If False, the command itself runs `agentfs serve`.
        patience: Seconds to reconnect after a lost connection, before `disconnected` is raised.

    Returns:
        A workspace; its `remote` has facts about the remote side.

    Raises:
        AgentFSError: `disconnected`, or any error that opening a `Workspace` there raises.
    """
    ArgumentChecker(connect).check((), locals())
    if not (callable(command_or_opener) or command_or_opener):
        raise InvalidArgumentError("The command is empty.")
    if not patience > 0:
        raise InvalidArgumentError(f"`patience` must be a positive number of seconds, not {patience!r}.")
    functions: list[Callable[..., Any]] = []
    policy, limits = policy or Policy(), limits or Limits()
    hello = {
        "protocol": protocol.PROTOCOL_VERSION,
        "root": "" if push else fspath(root),
        "state": None if state is None else fspath(state),
        "session": session,
        "policy": protocol.to_wire(policy, functions),
        "limits": protocol.to_wire(limits, functions),
        "watch": watch,
    }
    if mounts:
        named = {path: replace(mount, source=fspath(mount.source)) for path, mount in mounts.items()}
        hello["mounts"] = protocol.to_wire(named)
    command = bootstrap_near.command(python) if push else []
    options = {"root": fspath(root), "any_policy": True}

    def open_stream() -> Stream:
        if callable(command_or_opener):
            return command_or_opener(command)
        return CommandStream([*command_or_opener, *command])

    def prepare(stream: Stream, read_line: Callable[[], bytes]) -> None:
        if push:
            bootstrap_near.start_server(stream, read_line, options)

    connection = ReconnectingConnection(open_stream, prepare, hello, patience)
    return RemoteWorkspace(connection, functions, policy, limits, on_event)
