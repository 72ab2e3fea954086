"""A workspace whose files are elsewhere: `connect`, and each method as a call to the remote side."""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# The types of a message's values are known only after it is decoded.
# ruff: noqa: SLF001 - a view and a block are copies of the workspace, which makes them

import functools
import inspect
import itertools
import os
import threading
import typing
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from copy import copy
from os import PathLike, fspath
from typing import Any, Self, TypedDict

import agentfs
from agentfs.arguments.kinds import as_text
from agentfs.base import call_context
from agentfs.errors import AgentFSError, DisconnectedError, closed
from agentfs.events import OnEvent, reports_calls
from agentfs.history.log import Recording
from agentfs.limits import Limits
from agentfs.permissions import READING, PermissionRequest
from agentfs.policy import Policy
from agentfs.remote import wire
from agentfs.remote.connection import Connection, Opener, disconnected
from agentfs.remote.narrow import narrowed
from agentfs.results import RecordedResult
from agentfs.tools.guard import by_field, check_open, given_fields, host_policy
from agentfs.tools.tool import declaration_of
from agentfs.workspace import Workspace


class _Opened(TypedDict):
    """The facts that a server states when it has opened a workspace."""

    version: str
    root: str
    policy: Policy
    notes: list[str]


class _Session:
    """The connections of one workspace, one after another; at most one is open."""

    def __init__(self, command: Sequence[str] | Opener, opening: Mapping[str, Any], patience: float) -> None:
        self._command, self._patience = command, patience
        self._opening = {"call": 0, "method": "open", "arguments": opening}
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self.numbers = itertools.count(1)
        self.closed = False
        self.root, self.policy, self.notes = "", Policy(), list[str]()  # of the server
        self._connected()

    def __del__(self) -> None:
        if self._connection is not None:
            self._connection.lose("the workspace was dropped")  # ends the threads, and the remote side

    def call(self, message: Mapping[str, Any], *how: Any, changes: bool) -> Mapping[str, Any]:
        """Send a call, as `Connection.call`. After a lost connection, the next call opens another one."""
        if os.getpid() != self._process:  # in a fork, stream and threads belong to the parent
            raise disconnected("this workspace belongs to another process", applied=False)
        connection = self._connected()
        try:
            return connection.call(message, *how, changes=changes)
        except DisconnectedError:
            with self._lock:  # another call may have opened the next one
                self._connection = None if self._connection is connection else self._connection
            connection.close()
            raise

    def cancel(self, number: int) -> None:
        """Cancel a call at the remote side."""
        if self._connection is not None:
            self._connection.send({"cancel": number})

    def close(self) -> None:
        """End the connection, and open no other."""
        self.closed = True
        if self._connection is not None and os.getpid() == self._process:
            self._connection.close(self._patience)

    def _connected(self) -> Connection:
        with self._lock:
            if self.closed:
                raise closed()
            if self._connection is None:
                connection = Connection(self._command, self._patience)
                try:
                    answer = connection.call(self._opening, 0.0, lambda _: None, changes=False)
                    opened = _value_of(answer, _Opened, applied=False)
                except BaseException:
                    connection.close()
                    raise
                self._connection = connection
                self.root, self.notes = wire.shown([opened["root"], opened["notes"]])
                self.policy = opened["policy"]
            return self._connection


class RemoteWorkspace(Workspace):
    """A workspace on another machine or in a container; see `agentfs.connect`."""

    def __init__(
        self,
        session: _Session,
        functions: list[Callable[..., Any]],
        policy: Policy,
        limits: Limits,
        on_event: OnEvent | None,
    ) -> None:
        self.policy, self.limits, self.on_event = policy, limits, on_event
        self._session = session
        self._functions = functions  # of the policy, the limits and the views
        self._within: list[list[Any]] = []  # how the remote side gets from its workspace to this one
        self._workdir = "."

    @property
    def root(self) -> str:
        """The absolute path of the root at the remote side, without links."""
        return self._session.root

    @property
    def workdir(self) -> str:
        """The directory, relative to the root, where relative paths start; "." is the root."""
        return self._workdir

    @property
    def recovery_notes(self) -> tuple[str, ...]:
        """Notes on changes that were recovered on opening, after a process had died during them."""
        return tuple(self._session.notes)

    @property
    def host(self) -> Self:
        """This workspace for the program itself; see `Workspace.host`."""
        other = copy(self)
        other.policy = narrowed(host_policy(self.policy), self._session.policy)
        other._within = [*self._within, ["host", {}]]
        return other

    def _check_open(self) -> None:
        if self._session.closed:
            raise closed()

    def close(self) -> None:
        """End the remote side and the connection; every later call fails."""
        self._session.close()

    def view(self, **given: Any) -> Self:
        """Return a view of this workspace; see `Workspace.view`."""
        given = {name: value for name, value in given.items() if value is not None}
        other = copy(self)
        other.limits = given.get("limits", self.limits)
        other.policy = narrowed(given.get("policy", self.policy), self._session.policy)
        other._functions = [*self._functions]
        other._within = [*self._within, ["view", wire.to_wire(given, other._functions)]]
        other._workdir = other._call("workdir", {}, str)
        return other

    def _carry_out(self, options: Any) -> Any:
        return _remote_options(options.__class__)(self, **given_fields(options))

    @contextmanager
    def transaction(self) -> Generator[Self]:
        """Make several changes as one; see `Workspace.transaction`."""
        inner = self._enter("transaction", {})
        try:
            yield inner
            inner._leave(None)
        except BaseException:
            with suppress(AgentFSError):
                inner._leave(None, raised=True)
            raise

    @contextmanager
    def recording(self, *args: Any, **kwargs: Any) -> Generator[Recording]:
        """Record what changes in the tree of the remote side; see `Workspace.recording`."""
        bound = inspect.signature(Workspace.recording).bind(self, *args, **kwargs)
        _, *arguments = bound.arguments.items()
        block = self._enter("recording", dict(arguments))
        recorded = Recording(bound.arguments["label"])
        try:
            yield recorded
        finally:
            recorded.result = block._leave(RecordedResult)

    def _enter(self, method: str, arguments: Mapping[str, Any]) -> Self:
        """Enter a `with` block at the remote side, and return the workspace inside it."""
        inner, block = copy(self), uuid.uuid4().hex
        self._call("enter", {"block": block, "method": method, "arguments": arguments}, None)
        inner._within = [["block", block]]
        return inner

    def _leave(self, returns: Any, *, raised: bool = False) -> Any:
        """Leave the block that this workspace is inside, and return its outcome."""
        return self._call("leave", {"block": self._within[0][1], "raised": raised}, returns, effect="write")

    def _call(
        self,
        method: str,
        arguments: Mapping[str, Any],
        returns: Any,
        *,
        effect: str = "none",
        given: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a method at the remote side, or get a property.

        Args:
            method: The name.
            arguments: The arguments to send.
            returns: The type hint of the result.
            effect: The effect of the method.
            given: The arguments by name, if `arguments` lacks defaults or fields of options.
        """
        given = arguments if given is None else given
        changes = effect not in READING and given.get("preview") is not True
        timeout, seconds = given.get("timeout"), self.limits.timeout
        if isinstance(timeout, (int, float)) and timeout > 0:
            seconds += timeout
        if effect == "execute":  # its effects are applied afterwards
            seconds += self.limits.timeout
        self._check_open()
        functions = [*self._functions]
        number, call, seen = next(self._session.numbers), call_context.current.get(), 0
        raised: Exception | None = None
        message = {
            "call": number,
            "method": method,
            "arguments": wire.to_wire(arguments, functions),
            "within": self._within,
            "tool": call and call.tool,
            "progress": call is not None and call.reports_progress and not changes,
        }

        def answer(message: Mapping[str, Any]) -> Mapping[str, Any] | None:
            nonlocal seen, raised
            if "ask" in message:
                question, function, *arguments = _question(message["ask"], functions, self.policy)
                try:
                    answered = {"value": wire.to_wire(call_context.call_back(function, *arguments))}
                except Exception as error:  # noqa: BLE001 - raised when the remote side has answered
                    raised, answered = error, {"raised": True}
                return {"of": number, "reply": question, **answered}
            entries = message["progress"]
            if call is not None and type(entries) is int and entries > seen:
                call.step(entries - seen)
                seen = entries
            return None

        def cancel() -> bool:
            self._session.cancel(number)
            return not changes

        with nullcontext() if call is None else call.forwarding(cancel, changes=changes):
            found = self._session.call(message, seconds, answer, changes=changes)
        if raised is not None and found.get("raised") is True:
            raise raised
        if call is not None and call.is_abandoned and found.get("cancelled") is True:
            raise call_context.Cancelled
        return _value_of(found, returns, applied=None if changes else False, cause=raised)


def _question(asked: Any, functions: Sequence[Callable[..., Any]], policy: Policy) -> list[Any]:
    """Return the number of a question, the function of the program that it is for, and the arguments."""
    found = wire.from_wire(asked, lambda number: functions[number if number >= 0 else len(functions)])
    if isinstance(found, list) and len(found) > 2 and callable(found[1]):
        wanted = list[PermissionRequest] if found[1] is policy.on_ask else list[Any]
        if wire.is_instance(found[2:], wanted):
            return found
    raise wire.ProtocolError("it asked an invalid question")


def _value_of(
    message: Mapping[str, Any], returns: Any, *, applied: bool | None, cause: Exception | None = None
) -> Any:
    """Return the value in a message, which must fit a type hint; raise the error in it."""
    try:
        if "error" in message:
            raise wire.error_from_wire(message["error"]) from cause
        value = wire.from_wire(message.get("value"))
    except wire.ProtocolError as error:
        raise disconnected(f"it returned an invalid result: {error}", applied=applied) from None
    if not wire.is_instance(value, returns):
        raise disconnected(f"it did not return {returns}", applied=applied)
    return value


@functools.cache
def _remote_options(kind: Any) -> Callable[..., Any]:
    """Return a function that sends options to the remote side, which carries them out."""
    returns = typing.get_type_hints(inspect.unwrap(getattr(Workspace, kind.method)))["return"]

    def send(self: Any, options: Any) -> Any:
        asked = {"options": options}
        return self._call("_carry_out", asked, returns, effect=kind.effect, given=vars(options))

    return reports_calls(by_field(kind, send))


def _remote_method(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that sends its arguments to the remote side, with the signature of the local one."""
    declared = declaration_of(method)
    effect = declared.effect if declared else "none"
    signature = functools.cache(lambda: inspect.signature(method))
    returns = functools.cache(lambda: typing.get_type_hints(inspect.unwrap(method))["return"])

    @functools.wraps(method)
    def remote(self: RemoteWorkspace, /, *args: Any, **kwargs: Any) -> Any:
        named = {name: as_text(value) for name, value in kwargs.items()}
        bound = signature().bind(self, *map(as_text, args), **named)
        _, *given = bound.arguments.items()
        bound.apply_defaults()
        call = self._call  # pyright: ignore[reportPrivateUsage] # a method of the class
        return call(name, dict(given), returns(), effect=effect, given=bound.arguments)

    checked = check_open(remote)
    return checked if declared is None else reports_calls(checked)


def _remote_property(name: str, local: property) -> property:
    """Return a property whose value is that of the remote side."""

    def remote(self: RemoteWorkspace) -> Any:
        call = self._call  # pyright: ignore[reportPrivateUsage] # a property of the class
        return call(name, {}, typing.get_type_hints(local.fget)["return"])

    return property(remote, doc=local.__doc__)


for _name, _local in vars(Workspace).items():
    _own = vars(RemoteWorkspace).get(_name)
    if (_name.startswith("_") and _name != "_keep") or _name in {"tools", "recorded"}:
        continue  # inherited
    if inspect.isfunction(_own):
        functools.update_wrapper(_own, _local)  # it has the local signature
    elif isinstance(_local, property) and _own is None:
        setattr(RemoteWorkspace, _name, _remote_property(_name, _local))
    elif inspect.isfunction(_local):
        setattr(RemoteWorkspace, _name, _remote_method(_name, _local))


def connect(
    command: Sequence[str] | Opener,
    root: str | PathLike[str],
    *,
    policy: Policy | None = None,
    limits: Limits | None = None,
    state: str | PathLike[str] | None = None,
    on_event: OnEvent | None = None,
    patience: float = 30.0,
) -> RemoteWorkspace:
    """Open a workspace on another machine or in a container, where the same version of agentfs is installed.

    Args:
        command: A command that runs `agentfs serve` at the remote side, such as `["ssh", "host", "agentfs",
            "serve", "--root", "/srv"]` or `["podman", "exec", "-i", "box", "agentfs", "serve"]`. Or a
            function that starts it and returns two streams: a binary file to read from, whose `readline`
            takes a limit, and one to write to.
        root: The directory there: absolute, or relative to the `--root` of the server, and inside it.
        policy: As for `Workspace`; its functions are called here. The policy of the server narrows it.
        limits: As for `Workspace`.
        state: As for `Workspace`: a directory inside the `--state` of the server.
        on_event: As for `Workspace`: called here.
        patience: Seconds to wait for a remote side that does not answer, beyond the time limit of a call.

    Returns:
        A workspace with the methods and results of a local one. If the connection is lost, each waiting call
        raises `disconnected`, and the next call opens a new connection.

    Raises:
        AgentFSError: `disconnected`; `unsupported` if the remote side has another version; `refused` for what
            the server does not allow; any error that opening a `Workspace` there raises.
    """
    functions: list[Callable[..., Any]] = []
    policy, limits = policy or Policy(), limits or Limits()
    opening = {
        "version": agentfs.__version__,
        "root": fspath(root),
        "state": None if state is None else fspath(state),
        "policy": wire.to_wire(policy, functions),
        "limits": wire.to_wire(limits, functions),
    }
    session = _Session(command, opening, patience)
    return RemoteWorkspace(session, functions, narrowed(policy, session.policy), limits, on_event)
