"""This side: a workspace whose methods are calls of the far side."""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# Of what a message has, the types are known only once it is decoded.
# ruff: noqa: SLF001 - a view and a transaction are copies of the workspace, which makes them

import contextlib
import functools
import inspect
import time
import typing
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Any, Self, cast

from agentfs import call_context
from agentfs.enforcement import check_arguments
from agentfs.errors import AgentFSError, InvalidArgumentError, closed
from agentfs.events import OnEvent
from agentfs.limits import Limits
from agentfs.permissions import READING, PermissionRequest
from agentfs.policy import Policy
from agentfs.remote import bootstrap_near, protocol
from agentfs.remote.connection import Connection, Exchange
from agentfs.remote.link import Link, error_of
from agentfs.remote.transport import CommandStream, Stream, disconnected
from agentfs.results import Containment, RecordedResult, Result, WatchReport
from agentfs.tools.checking import ArgumentChecker
from agentfs.tools.declaration import declaration_of
from agentfs.workspace import Workspace

Opener = Callable[[list[str]], Stream]


@dataclass(frozen=True)
class RemoteReport:
    """What `remote` of a remote workspace reports of the far side.

    Attributes:
        version: The version of agentfs there.
        python: The version of Python there.
        engine: What matches regular expressions there: "regex", or "re" where that module is missing.
        pid: The number of the process.
        reconnects: How often a lost connection was made anew.
    """

    version: str
    python: str
    engine: str
    pid: int
    reconnects: int


class RemoteWorkspace(Workspace):
    """A workspace on another machine, or in a container; see `agentfs.connect`."""

    def __init__(
        self,
        link: Link,
        functions: list[Callable[..., Any]],
        policy: Policy,
        limits: Limits,
        on_event: OnEvent | None,
    ) -> None:
        self.policy, self.limits, self.on_event = policy, limits, on_event
        self._link = link
        self._functions = functions  # those in the policy, the limits and the views
        self._views: list[
            Any
        ] = []  # the arguments of `view`, encoded, from which the far side makes this one
        self._transaction: tuple[str, Connection] | None = None  # its name, and that to which it is bound

    @property
    def root(self) -> str:
        """The absolute path of the root at the far side, without links."""
        return str(self._link.answer["root"])

    @property
    def containment(self) -> Containment:
        """What confines calls to the root at the far side, and what keeps writers apart there."""
        return cast("Containment", self._call("containment", {}, Containment))

    @property
    def watch(self) -> WatchReport | None:
        """What is kept of a watched tree at the far side; None without `watch=True`."""
        return cast("WatchReport | None", self._call("watch", {}, WatchReport | None))

    @property
    def recovery_notes(self) -> tuple[str, ...]:
        """What was recovered on opening, because a process had died in the middle of a change."""
        return tuple(self._link.answer["notes"])

    @property
    def remote(self) -> RemoteReport:
        """What serves at the far side, and how often the connection was made anew."""
        return RemoteReport(**self._link.answer["remote"], reconnects=self._link.connections - 1)

    def _check_open(self) -> None:
        if self._link.closed:
            raise closed()

    def close(self) -> None:
        """End the far side and the connection; every later call fails."""
        self._link.close()

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

        As `Workspace.view`.
        """
        other = copy(self)
        other.limits, other.policy = limits or self.limits, policy or self.policy
        given: dict[str, Any] = {"limits": limits, "policy": policy, "workdir": workdir}
        given["only"] = None if only is None else [fspath(each) for each in only]
        other._functions = [*self._functions]
        other._views = [
            *self._views,
            protocol.encode({k: v for k, v in given.items() if v is not None}, other._functions),
        ]
        other._call("view", {}, None)
        return other

    @contextmanager
    def transaction(self) -> Generator[Self]:
        """Make several changes as one; as `Workspace.transaction`."""
        inner = copy(self)
        inner._views = []
        name = uuid.uuid4().hex
        _, connection = self._request("begin", {"name": name})
        inner._transaction = (name, connection)
        try:
            yield inner
            notes = inner._call("commit", {}, tuple[str, ...], changes=True)
            inner.commit_notes = tuple(map(protocol.shown, notes))
        except BaseException:
            connection.send({"abort": name})
            raise

    def _begin_recording(self, label: str, include_ignored: bool) -> int:
        given = {"label": label, "include_ignored": include_ignored}
        return cast("int", self._call("begin_recording", given, int))

    def _end_recording(self, number: int) -> RecordedResult:
        return cast("RecordedResult", self._call("end_recording", {"number": number}, RecordedResult))

    def _call(self, method: str, arguments: Mapping[str, Any], returns: Any, *, changes: bool = False) -> Any:
        """Call a method of the far side, and return what it returns."""
        answer, _ = self._request(method, arguments, changes=changes)
        try:
            value = protocol.decode(answer.get("value"))
            if protocol.is_instance(value, returns):
                return value
            reason = f"The far side returned no {returns}."
        except protocol.ProtocolError as error:
            reason = f"The far side returned what is no result: {error}"
        raise disconnected(reason, made=None if changes else False)

    def _request(
        self, method: str, arguments: Mapping[str, Any], *, changes: bool = False
    ) -> tuple[Mapping[str, Any], Connection]:
        self._check_open()
        functions = [*self._functions]
        request: dict[str, Any] = {"method": method, "arguments": protocol.encode(arguments, functions)}
        if self._views:
            request["views"] = self._views
        if self._transaction is not None:
            request["transaction"] = self._transaction[0]
        if changes:
            request["key"] = uuid.uuid4().hex
        call = call_context.current.get()
        if call is not None:
            request |= {"tool": call.tool, "progress": call.reports_progress}
        asked = arguments.get("timeout")
        requested = max(0.0, float(asked)) if isinstance(asked, (int, float)) else None
        seconds = call_context.granted(requested, self.limits.timeout)
        left = call_context.deadline() - time.monotonic()
        if left < float("inf"):
            request["seconds"] = max(left, 0.0)
        seen = 0

        def reply(question: Mapping[str, Any]) -> dict[str, Any]:
            function, arguments = _question(question, functions, self.policy)
            try:
                return {"value": protocol.encode(call_context.ask(function, *arguments))}
            except AgentFSError as error:  # the far side may ask for permission before it is raised
                return {"error": protocol.encode_error(error)}
            except BaseException as error:  # noqa: BLE001 - raised when the far side has answered
                exchange.raised = error
                return {"raised": True}

        def progress(entries: int) -> None:
            nonlocal seen
            if call is not None and entries > seen:
                with contextlib.suppress(call_context.Cancelled) if changes else contextlib.nullcontext():
                    call.step(entries - seen)
                seen = entries

        exchange = Exchange(request, changes, seconds, reply, progress)
        with contextlib.nullcontext() if call is None else call.forwarding(exchange.cancel, changes=changes):
            answer, connection = self._link.call(exchange, self._transaction and self._transaction[1])
        if answer.get("raised") is True:
            raise disconnected("The call was given up.", made=None if changes else False)
        if answer.get("cancelled") is True:
            raise call_context.Cancelled
        if "value" in answer:
            return answer, connection
        raise error_of(answer)


def _question(
    question: Mapping[str, Any], functions: Sequence[Callable[..., Any]], policy: Policy
) -> tuple[Callable[..., Any], list[Any]]:
    """Return the function that the far side asks for, and its arguments; ProtocolError for any other."""
    try:
        function = functions[question["function"]]
        arguments: Any = protocol.decode(question.get("arguments"), lambda number: functions[number])
    except (TypeError, LookupError):
        raise protocol.ProtocolError("The far side asks for a function that there is not.") from None
    wanted = PermissionRequest if function == policy.permission else object
    if (
        not isinstance(arguments, list)
        or not arguments
        or not all(isinstance(each, wanted) for each in arguments)
    ):
        raise protocol.ProtocolError("The far side asks what is no question.")
    return function, arguments


def _remote_methods(cls: type[RemoteWorkspace]) -> None:
    """Give the class each method of `Workspace` as a call of the far side, as it is declared there."""
    for name in protocol.REMOTE_METHODS:
        setattr(cls, name, check_arguments(_remote_method(name, vars(Workspace)[name])))


def _remote_method(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    declared = declaration_of(method)
    effect = declared.effect if declared else "none"
    changes = effect not in READING or name == "checkpoint"
    signature = functools.cache(lambda: inspect.signature(method))
    returns = functools.cache(lambda: typing.get_type_hints(inspect.unwrap(method))["return"])

    @functools.wraps(method)
    def remote(self: RemoteWorkspace, /, *args: Any, **kwargs: Any) -> Any:
        _, *arguments = signature().bind(self, *args, **kwargs).arguments.items()
        # The next call of a result may have the names of a dialect, and is not needed there.
        given = {
            key: replace(each, next=None) if isinstance(each, Result) else each for key, each in arguments
        }
        return self._call(name, given, returns(), changes=changes and given.get("preview") is not True)  # pyright: ignore[reportPrivateUsage] - a method of it

    return remote


_remote_methods(RemoteWorkspace)


def connect(
    command_or_opener: Sequence[str] | Opener,
    root: str | PathLike[str],
    *,
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
    """Open a workspace where the files are: on another machine, in a container.

    Args:
        command_or_opener: A command to which the one for the far side is appended, such as `["ssh", "host"]`
            or `["docker", "exec", "-i", "box"]`. Or a function that is given that command and returns its
            standard input and output: an object with `write`, `readline` and `close`.
        root: The directory at the far side.
        policy: As of `Workspace`; its `permission` is called here.
        limits: As of `Workspace`.
        state: As of `Workspace`: a directory at the far side.
        watch: As of `Workspace`: at the far side.
        on_event: As of `Workspace`: called here.
        session: A name under which a later process continues: the newest client of a session ends the one
            before. By default a new one, which ends with this workspace.
        python: Python at the far side, 3.11 or newer.
        push: Whether the package is sent to the far side. If not, the command itself runs `agentfs serve`.
        patience: Seconds for which a lost connection is made anew, before `disconnected` is raised.

    Returns:
        A workspace, whose `remote` reports what serves at the far side.

    Raises:
        AgentFSError: `disconnected`, and what opening a `Workspace` there raises.
    """
    ArgumentChecker(connect).check((), locals())
    if not (callable(command_or_opener) or command_or_opener):
        raise InvalidArgumentError("The command is empty.")
    if not patience > 0:
        raise InvalidArgumentError(f"`patience` must be a positive number of seconds, not {patience!r}.")
    functions: list[Callable[..., Any]] = []
    policy, limits = policy or Policy(), limits or Limits()
    hello = {
        "protocol": protocol.VERSION,
        "root": "" if push else fspath(root),
        "state": None if state is None else fspath(state),
        "session": session,
        "policy": protocol.encode(policy, functions),
        "limits": protocol.encode(limits, functions),
        "watch": watch,
    }
    far_command = bootstrap_near.command(python) if push else []
    options = {"root": fspath(root), "any_policy": True}

    def open_stream() -> Stream:
        if callable(command_or_opener):
            return command_or_opener(far_command)
        return CommandStream([*command_or_opener, *far_command])

    def prepare(stream: Stream, read_line: Callable[[], bytes]) -> None:
        if push:
            bootstrap_near.start(stream, read_line, options)

    link = Link(open_stream, prepare, hello, patience)
    return RemoteWorkspace(link, functions, policy, limits, on_event)
