"""A workspace whose files are elsewhere: `connect`, and each method as a call to the remote side."""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# The types of a message's values are known only after it is decoded.
# ruff: noqa: SLF001 - a view and a block are copies of the workspace, which makes them

import functools
import inspect
import itertools
import os
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, Self, get_type_hints

import agentfs
from agentfs.base import call_context
from agentfs.errors import AgentFSError, DisconnectedError, closed
from agentfs.events import OnEvent, reports_calls
from agentfs.history.log import Recording
from agentfs.limits import Limits
from agentfs.permissions import READING, PermissionRequest
from agentfs.policy import Policy, host_policy
from agentfs.remote import wire
from agentfs.remote.connection import Connection, Opener, Received, disconnected
from agentfs.remote.narrow import SENT, narrowed
from agentfs.results import RecordedResult
from agentfs.tools.gate import guard_methods
from agentfs.tools.tool import declaration_of
from agentfs.workspace import Workspace

_OPENED = tuple[str, Policy, tuple[str, ...]]  # the root, the policy and the recovery notes of a server
_LEFT = tuple[RecordedResult | None, list[str]]  # what a block recorded, and notes on its error
# The effect of a method, the type hint of its result, and the default of its timeout.
Declared = tuple[str, Any, Any]


class _Session:
    """The connections of one workspace, one after another; at most one is open."""

    def __init__(self, connect: Callable[[], Connection], opening: bytes) -> None:
        self._connect, self._opening = connect, opening
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._process = 0  # the one whose threads carry the messages
        self.numbers, self.closed = itertools.count(1), False
        self.root, self.policy, self.notes = "", Policy(), tuple[str, ...]()  # of the server
        self.connection()

    def __del__(self) -> None:
        if self._connection is not None:
            self._connection.lose("the workspace was dropped")  # ends the threads, and the remote side

    def connection(self) -> Connection:
        """Return the open connection; open one if there is none."""
        with self._lock:
            if self.closed:
                raise closed()
            if self._connection is None or self._process != os.getpid():
                connection = self._connect()
                try:
                    answer = connection.call(0, self._opening, 0.0, lambda _: None, changes=False)
                    self.root, self.policy, self.notes = _value_of(answer, _OPENED, applied=False)
                except BaseException:
                    connection.close()
                    raise
                self._connection, self._process = connection, os.getpid()
            return self._connection

    def drop(self, connection: Connection | None = None) -> None:
        """Close a lost connection, so that the next call opens another one; by default the last one."""
        with self._lock:
            connection = connection or self._connection
            if self._connection is connection:  # unless another call has opened a new one
                self._connection = None
        if connection is not None:
            connection.close()


@guard_methods
class connect(Workspace):  # noqa: N801 - used as a function, like contextlib.suppress
    """Open a workspace on another machine or in a container, where the same version of agentfs is installed.

    Args:
        command: A command that runs `agentfs serve` at the remote side, such as `["ssh", "host", "agentfs",
            "serve", "--root", "/srv"]` or `["podman", "exec", "-i", "box", "agentfs", "serve"]`. Or a
            function that starts it and returns two streams: a binary file to read from, whose `readline`
            takes a limit, and one to write to.
        root: The directory there: absolute, or relative to the `--root` of the server, and inside it.
        policy: As for `Workspace`; its functions are called here. The policy of the server narrows it.
        limits: As for `Workspace`.
        state: As for `Workspace`: the name of a directory in the `--state` of the server.
        on_event: As for `Workspace`: called here.
        patience: Seconds to wait for a remote side that does not answer, beyond the time limit of a call.

    Returns:
        A workspace with the methods and results of a local one. If the connection is lost, each waiting call
        raises `disconnected`, and the next call opens a new connection.

    Raises:
        AgentFSError: `disconnected`; `unsupported` if the remote side has another version; `refused` for what
            the server does not allow; any error that opening a `Workspace` there raises.
    """

    root: str = ""  # pyright: ignore[reportIncompatibleMethodOverride] - it stays
    workdir: str = "."  # pyright: ignore[reportIncompatibleMethodOverride] - it stays

    _has_notes = True  # on the recovery; those of a view of some paths would name others

    def __init__(
        self,
        command: Sequence[str] | Opener,
        root: str | PathLike[str],
        *,
        policy: Policy | None = None,
        limits: Limits | None = None,
        state: str | PathLike[str] | None = None,
        on_event: OnEvent | None = None,
        patience: float = 30.0,
    ) -> None:
        policy, self.limits, self.on_event = policy or Policy(), limits or Limits(), on_event
        self._functions: wire.Functions = []  # of the policy, the limits and the views
        opening = {
            "version": agentfs.__version__,
            "root": fspath(root),
            "state": None if state is None else fspath(state),
            # Read after the version. `run_paths` are paths of the machine that runs commands.
            "settings": wire.to_text([replace(policy, run_paths=()), self.limits], self._functions),
        }
        line = wire.to_line({"of": 0, "method": "open", "arguments": opening})
        self._session = _Session(functools.partial(Connection, command, patience), line)
        self.root = self._session.root  # pyright: ignore[reportIncompatibleMethodOverride] - as above
        self.policy = narrowed(policy, self._session.policy)
        self._within: list[str] = []  # the views and the block in which the remote side makes the calls

    @property
    def host(self) -> Self:
        """This workspace for the program itself; see `Workspace.host`."""
        return self._inside("host", {}, host_policy(self.policy))

    @property
    def recovery_notes(self) -> tuple[str, ...]:
        """Notes on the recovery at the last connection; see `Workspace.recovery_notes`."""
        return self._session.notes if self._has_notes else ()

    def view(self, **given: Any) -> Self:
        """Return a view of this workspace; see `Workspace.view`."""
        given = {name: value for name, value in given.items() if value is not None}
        other = self._inside("view", given, given.get("policy", self.policy))
        other.limits = given.get("limits", self.limits)
        other._has_notes = self._has_notes and "only" not in given
        other.workdir = other._call("workdir", {}, ("none", str, None))
        return other

    @contextmanager
    def transaction(self) -> Generator[Self]:
        """Make several changes as one; see `Workspace.transaction`."""
        with self._block("transaction", {}) as (inner, _):
            yield inner

    @contextmanager
    def recording(self, label: str, include_ignored: bool = False) -> Generator[Recording]:
        """Record what changes in the tree of the remote side; see `Workspace.recording`."""
        with self._block("recording", {"label": label, "include_ignored": include_ignored}) as (_, recorded):
            yield recorded

    def close(self) -> None:
        """End the remote side and the connection; every later call fails."""
        self._session.closed = True
        self._session.drop()

    def _check_open(self) -> None:
        if self._session.closed:
            raise closed()

    def _carry_out(self, options: Any) -> Any:
        declared = _declared(vars(Workspace)[options.method])
        return self._call("_carry_out", {"options": options}, declared, vars(options))

    def _inside(self, kind: str, arguments: Any, policy: Policy) -> Self:
        """Return a copy whose calls are made in a view or a block at the remote side."""
        other = copy(self)
        other.policy = narrowed(policy, self._session.policy)
        other._functions = [*self._functions]
        other._within = [*self._within, wire.to_text([kind, arguments], other._functions)]
        return other

    @contextmanager
    def _block(self, method: str, arguments: Mapping[str, Any]) -> Generator[tuple[Self, Recording]]:
        """Enter a `with` block at the remote side; yield the workspace inside it, and the recording."""
        block = self._call(method, arguments, ("none", str, None))
        recorded = Recording(arguments.get("label", ""))
        leave = functools.partial(self._call, "leave", declared=("write", _LEFT, None))
        try:
            yield self._inside("block", block, self.policy), recorded
        except BaseException as error:
            try:
                recorded.result, notes = leave({"block": block, "raised": True})
            except AgentFSError:
                lost = disconnected("it may keep changes of the block", applied=None)
                # Nobody catches the error of an abandoned block. Without `from`, so that it is not an
                # unexpected error of a tool.
                raise (error if isinstance(error, GeneratorExit) else lost)  # noqa: B904
            for note in notes:
                error.add_note(note)
            raise
        recorded.result, _ = leave({"block": block, "raised": False})

    def _call(self, method: str, arguments: Mapping[str, Any], declared: Declared, given: Any = None) -> Any:
        """Call a method at the remote side, or get a property.

        Args:
            method: The name.
            arguments: The arguments to send.
            declared: What is known of the method.
            given: The arguments by name, if `arguments` has them in options.
        """
        effect, returns, timeout = declared
        given = given or arguments
        changes = effect not in READING and given.get("preview") is not True
        seconds = self.limits.timeout + (self.limits.apply_timeout if effect == "execute" else 0.0)
        timeout = given.get("timeout", timeout)
        if isinstance(timeout, (int, float)) and timeout > 0:
            seconds += timeout
        connection, number = self._session.connection(), next(self._session.numbers)
        functions, call, seen = [*self._functions], call_context.current.get(), 0
        raised: Exception | None = None
        message = {
            "of": number,
            "method": method,
            "arguments": arguments,
            "within": self._within,
            "tool": call and call.tool,
            "progress": call is not None and call.on_progress is not None and not changes,
        }

        def answer(message: Received) -> bytes | None:
            nonlocal seen, raised
            if "ask" in message:
                reply = {"of": message["ask"], "reply": True}
                function, arguments = _question(message, functions, self.policy)
                try:
                    return wire.to_line({**reply, "value": call_context.call_back(function, *arguments)})
                except Exception as error:  # noqa: BLE001 - raised when the remote side has answered
                    raised = error
                    return wire.to_line({**reply, "raised": True})
            entries = message["progress"]
            if call is not None and type(entries) is int and entries > seen:
                call.step(entries - seen)
                seen = entries
            return None

        def cancel() -> bool:
            connection.cancel(number)
            return not changes

        line = wire.to_line(message, functions)
        with nullcontext() if call is None else call.forwarding(cancel, changes=changes):
            try:
                found = connection.call(number, line, seconds, answer, changes=changes)
            except DisconnectedError:
                self._session.drop(connection)
                raise
        if call is not None and call.is_abandoned and found.get("cancelled") is True:
            raise call_context.Cancelled
        if call is not None:
            call.is_done = effect == "execute"
        return _value_of(found, returns, applied=None if changes else False, raised=raised)


def _question(message: Received, functions: wire.Functions, policy: Policy) -> tuple[Any, Any]:
    """Return the function of the program that a question is for, and the arguments."""
    number = message.get("function")
    if type(number) is not int or type(message["ask"]) is not int or not 0 <= number < len(functions):
        raise wire.ProtocolError("it asked an invalid question")
    wanted: Any = tuple[PermissionRequest] if functions[number] is policy.on_ask else list[str]
    return functions[number], wire.typed_value(message.get("arguments"), wanted)


def _value_of(message: Received, returns: Any, *, applied: bool | None, raised: Any = None) -> Any:
    """Return the value in a message, which must fit a type hint; raise the error in it.

    If a function of the program has `raised` an error, that is the one to raise, unless it was handled.
    """
    # Popped, because a frame of its traceback would keep it alive.
    if isinstance(error := message.pop("error", None), Exception):
        if raised is not None and not isinstance(error, AgentFSError):
            raise raised
        raise error from raised
    try:
        return wire.typed_value(message.get("value"), returns)
    except wire.ProtocolError as error:
        raise disconnected(str(error), applied=applied) from None


@functools.cache
def _declared(function: Any) -> Declared:
    declared, function = declaration_of(function), inspect.unwrap(function)
    timeout = inspect.signature(function).parameters.get("timeout")
    returns = get_type_hints(function)["return"]
    return declared.effect if declared else "none", returns, timeout and timeout.default


def _sent(name: str, local: Any) -> Any:
    """Return a property that is got there, or a method that sends its arguments."""
    if isinstance(local, property):
        return property(lambda self: self._call(name, {}, _declared(local.fget)), doc=local.__doc__)

    @functools.wraps(local)
    def remote(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        _, *given = inspect.signature(local).bind(None, *args, **kwargs).arguments.items()
        return self._call(name, dict(given), _declared(local))

    return remote if declaration_of(local) is None else reports_calls(remote)


for _name in SENT.keys() - vars(connect).keys():
    setattr(connect, _name, _sent(_name, SENT[_name]))
RemoteWorkspace = connect  # its name as a type
