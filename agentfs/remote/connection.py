"""The connection to the remote side: requests and their answers over a stream, reconnected when it is lost.

A `Connection` is one stream. A `ReconnectingConnection` opens one after another, and sends a
request again over the next one, so that each change is made once.
"""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# The types of a message's values are known only after it is decoded.

import contextlib
import itertools
import json
import os
import queue
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict, cast

from agentfs.base import call_context
from agentfs.errors import AgentFSError, DisconnectedError, InvalidArgumentError
from agentfs.remote import protocol
from agentfs.remote.transport import Stream, disconnected, line_reader

_NOISE_BYTES = 256 * 1024  # allowed before the first message, for example the greeting of a shell
_PIECE = 64 * 1024
_MAX_QUESTIONS = 10_000  # for one request
_MAX_WAITING = 3  # unread messages for one request: progress, a question, the answer
_CANCEL: Mapping[str, Any] = {"cancel": True}  # in the inbox of a request: cancel it at the remote side
_LATEST_PING = 3.0  # seconds
_CLOSE_SECONDS = 2.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0  # between two attempts to connect

Prepare = Callable[[Stream, Callable[[], bytes]], None]
_Inbox = queue.SimpleQueue[Mapping[str, Any] | None]


class _Server(TypedDict):
    version: str
    python: str
    engine: str
    pid: int


class _Opened(TypedDict):
    """The answer to the first message."""

    agentfs: str
    protocol: int
    root: str
    notes: list[str]
    kept: bool  # the session outlives the connection
    remote: _Server


class Lost(Exception):  # noqa: N818 - a signal within this package
    """The connection has ended; the argument is the reason."""


@dataclass(eq=False)
class PendingRequest:
    """One request and its answer, over one connection or, if that is lost, over several.

    Attributes:
        message: The message, without its number.
        changes: True if it may change something. A change is waited for even if it is cancelled.
        seconds: The time limit, apart from the time that answering questions takes.
        reply: Answers a question of the remote side.
        progress: Called with the number of entries that a search has seen.
        until: The `time.monotonic()` at which an answer is overdue.
        sent: True if a remote side may have received it.
        cancelled: True if the caller no longer wants the result.
        raised: An exception to raise here when the remote side has answered.
        inbox: The inbox at the latest connection.
    """

    message: Mapping[str, Any]
    changes: bool
    seconds: float
    reply: Callable[[Mapping[str, Any]], dict[str, Any]]
    progress: Callable[[int], None]
    until: float = 0.0
    sent: bool = False
    cancelled: bool = False
    raised: BaseException | None = None
    inbox: _Inbox = field(default_factory=_Inbox)

    def cancel(self) -> bool:
        """Cancel it at the remote side, from any thread; return True if no answer need be awaited."""
        self.cancelled = True
        self.inbox.put(_CANCEL)
        return not self.changes


class Connection:
    """One stream to a remote side. When it ends, all waiting requests raise `Lost`."""

    def __init__(self, stream: Stream, prepare: Prepare, patience: float) -> None:
        """Take a stream; `prepare` starts the server at its other end, if it must be started."""
        self._stream = stream
        self._prepare = prepare
        self._failure: AgentFSError | None = None
        self._patience = patience
        self._numbers = itertools.count(1)
        self._inboxes: dict[int, _Inbox] = {}
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._heard = 0.0
        self._opened, self._reason = False, ""
        self._closing = threading.Lock()
        self._closed = False
        self._writer = threading.Thread(target=self._write, name="agentfs-connect-out", daemon=True)
        self._writer.start()

    @property
    def usable(self) -> bool:
        """True if the remote side has answered and the connection has not ended."""
        return self._opened and not self._reason

    def open(self, hello: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
        """Send the first message and return the answer; raise `Lost` if none comes in time."""
        inbox = self._inboxes[0] = _Inbox()
        threading.Thread(target=self._read, args=(hello,), name="agentfs-connect-in", daemon=True).start()
        try:
            answer = inbox.get(timeout=max(seconds, 0))
        except queue.Empty:
            raise self._give_up(f"the remote side did not answer within {seconds:.3g} seconds") from None
        except BaseException:
            self._give_up("interrupted")
            raise
        if self._failure is not None:
            raise self._failure
        if answer is None:
            raise Lost(self._reason)
        del self._inboxes[0]
        self._opened = True
        return answer

    def request(self, request: PendingRequest) -> Mapping[str, Any]:
        """Send a request and return its answer."""
        number = next(self._numbers)
        inbox = self._inboxes[number] = request.inbox = _Inbox()
        try:
            if self._reason:  # checked only now, because `lose` wakes only the inboxes that exist
                raise Lost(self._reason)  # noqa: TRY301 - handled like the others below
            self.send({"request": number, **request.message, "again": request.sent})
            request.sent = True
            if request.cancelled:
                inbox.put(_CANCEL)
            return self._answer(number, inbox, request)
        except BaseException:
            self.send({"cancel": number})
            raise
        finally:
            del self._inboxes[number]

    def close(self) -> None:
        """Let the remote side end in order, and wait for it."""
        self.send({"bye": True})
        self._outgoing.put(None)
        self._writer.join(_CLOSE_SECONDS)
        self._begin_to_close().join(self._patience)  # the writer itself may hang in a write
        self.lose("the workspace is closed")

    def lose(self, reason: str) -> None:
        """End the connection and wake all waiting requests. It takes no lock: a finalizer calls it too."""
        self._reason = self._reason or reason
        self._outgoing.put(None)
        for inbox in list(self._inboxes.values()):
            inbox.put(None)

    def send(self, message: Mapping[str, Any]) -> None:
        """Queue a message for sending."""
        self._outgoing.put(protocol.to_lines(message))

    def _give_up(self, reason: str) -> Lost:
        """End a connection whose threads may hang; return the exception to raise."""
        self.lose(reason)
        self._begin_to_close()
        return Lost(self._reason)

    def _begin_to_close(self) -> threading.Thread:
        thread = threading.Thread(target=self._close_stream, name="agentfs-connect-end", daemon=True)
        thread.start()
        return thread

    def _answer(self, number: int, inbox: _Inbox, request: PendingRequest) -> Mapping[str, Any]:
        questions = 0
        while True:
            try:
                message = self._next(inbox, request.until)
            except (KeyboardInterrupt, SystemExit) as error:
                if not request.changes or request.raised is not None:
                    raise
                request.raised = error  # raised after the outcome of the change is known
                request.cancel()
                continue
            if message is _CANCEL:
                self.send({"cancel": number})
            elif "answer" in message:
                if request.raised is not None:
                    raise request.raised
                if message.get("cancelled") is True and not request.cancelled:
                    raise Lost("the remote side has ended")
                return message
            elif "ask" in message:
                asked = time.monotonic()
                questions += 1
                try:
                    protocol.check_fields(message, protocol.Question)
                    reply = request.reply(message)
                except (protocol.ProtocolError, InvalidArgumentError) as error:
                    raise self._give_up(str(error)) from None
                if questions > _MAX_QUESTIONS:
                    raise self._give_up("the remote side asked too many questions")
                self.send({"reply": number, "to": message["ask"], **reply})
                request.until += time.monotonic() - asked
            elif protocol.is_instance(message.get("entries"), int):
                request.progress(message["entries"])

    def _next(self, inbox: _Inbox, until: float) -> Mapping[str, Any]:
        """Return the next message for a request; give up a remote side that sends nothing at all."""
        began, pause = time.monotonic(), min(_LATEST_PING, self._patience / 10)
        while (now := time.monotonic()) <= until:
            if now - max(self._heard, began) > self._patience / 3:
                raise self._give_up("the remote side stopped responding")
            try:
                message = inbox.get(timeout=pause)
            except queue.Empty:
                self.send({"ping": 0})
                continue
            if message is None:
                raise Lost(self._reason)
            return message
        raise self._give_up("the remote side did not answer a request in time")

    def _write(self) -> None:
        try:
            while (lines := self._outgoing.get()) is not None:
                for start in range(0, len(lines), _PIECE):
                    self._stream.write(lines[start : start + _PIECE])
                    if len(lines) > _PIECE:
                        self._heard = time.monotonic()  # progress of a long message is a sign of life
        except Exception as error:  # noqa: BLE001 - a provider's SDK may raise anything
            self.lose(f"the stream cannot be written: {type(error).__name__}: {error}")
        self._close_stream()

    def _read(self, hello: Mapping[str, Any]) -> None:
        try:
            read_line = line_reader(self._stream.readline, protocol.MAX_LINE)
            self._prepare(self._stream, read_line)
            self.send(hello)
            self._dispatch(0, _first(read_line, hello["nonce"]))

            def heard_line() -> bytes:
                line = read_line()
                self._heard = time.monotonic()  # a part of a long message counts too
                return line

            for message in protocol.messages(heard_line):
                for kind in ("answer", "of", "progress"):
                    if type(number := message.get(kind)) is int:
                        self._dispatch(number, message)
            reason = "the remote side ended the stream"
        except protocol.ProtocolError as error:
            reason = str(error)
        except DisconnectedError as error:
            reason = f"{error.message} {error.hint}".strip()
        except AgentFSError as error:
            self._failure, reason = error, str(error)
        except Exception as error:  # noqa: BLE001 - as above
            reason = f"the stream failed: {type(error).__name__}: {error}"
        self._close_stream()  # before `explain`, which then knows how the command ended
        explain: Callable[[], str] = getattr(self._stream, "explain", str)
        self.lose(" — ".join(filter(None, (reason, explain()))))

    def _dispatch(self, number: int, message: Mapping[str, Any]) -> None:
        inbox = self._inboxes.get(number)
        if inbox is None or ("progress" in message and not inbox.empty()):
            return  # the request was given up, or is busy
        if inbox.qsize() > _MAX_WAITING:
            raise protocol.ProtocolError("The remote side sends messages faster than they are read.")
        inbox.put(message)

    def _close_stream(self) -> None:
        with self._closing:
            if not self._closed:
                self._closed = True
                with contextlib.suppress(Exception):
                    self._stream.close()


class ReconnectingConnection:
    """The connections of one workspace; at most one is open."""

    def __init__(
        self, open_stream: Callable[[], Stream], prepare: Prepare, hello: Mapping[str, Any], patience: float
    ) -> None:
        self._open_stream = open_stream
        self._prepare = prepare
        self._hello = {**hello, "client": uuid.uuid4().hex}
        self._patience = patience
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._connection: Connection | None = None  # may still be opening, while the lock is taken
        self.closed = False
        self._ended = ""  # why no further connection is opened
        self.connections = 0
        self.answer: Mapping[str, Any] = {}
        try:
            self._connect(time.monotonic() + patience)
        except Lost as lost:
            raise _unreachable(str(lost), made=False) from None

    def __del__(self) -> None:
        if self._connection is not None:
            self._connection.lose("the workspace was dropped")  # ends the threads, and the remote side

    def request(
        self, request: PendingRequest, bound: Connection | None
    ) -> tuple[Mapping[str, Any], Connection]:
        """Send a request until it is answered; return the answer and the connection that it came over.

        `bound` is the connection of the block that the request belongs to; it ends with that connection.
        """
        if os.getpid() != self._process:  # in a fork, stream and threads belong to the parent
            raise disconnected("This workspace belongs to another process; connect in this one.", made=False)
        request.until = time.monotonic() + request.seconds + self._patience
        until, pause = 0.0, _FIRST_PAUSE
        while True:
            try:
                connection = bound or self._connect(until or time.monotonic() + self._patience)
                return connection.request(request), connection
            except Lost as lost:
                reason = str(lost)
            if request.raised is not None:
                raise request.raised
            if bound is not None and not (request.sent and request.message["method"] == "end"):
                raise disconnected("The `with` block was lost with the connection.", made=False)
            bound = None
            undecided = request.sent and request.changes
            if request.cancelled and not undecided:
                raise call_context.Cancelled
            now = time.monotonic()
            until = until or min(now + self._patience, request.until)
            if self._ended or now + pause > until:
                if request.sent and not request.changes:
                    self._hello["forget"] = True  # the remote side may have noted a read that never arrived
                raise _unreachable(self._ended or reason, made=None if undecided else False)
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def close(self) -> None:
        """End the connection, even one that is being opened, and open no other."""
        self.closed = True
        self._ended = self._ended or "the workspace is closed"
        if self._connection is not None and os.getpid() == self._process:
            self._connection.close()

    def _connect(self, until: float) -> Connection:
        """Return the usable connection; open one if there is none."""
        if not self._lock.acquire(timeout=max(until - time.monotonic(), 0)):
            raise Lost("connecting takes too long")
        try:
            connection = self._connection
            if connection is None or not connection.usable:
                if self._ended:
                    raise Lost(self._ended)
                connection = self._open(until)
            return connection
        finally:
            self._lock.release()

    def _open(self, until: float) -> Connection:
        try:
            stream = self._open_stream()
        except DisconnectedError as failure:
            raise Lost(failure.message) from None
        except Exception as failure:  # a provider's SDK may raise anything
            raise Lost(f"the stream cannot be opened: {type(failure).__name__}: {failure}") from failure
        connection = self._connection = Connection(stream, self._prepare, self._patience)
        hello = {**self._hello, "nonce": uuid.uuid4().hex, "again": self.connections > 0}
        hello["kept"] = self.answer.get("kept")  # None in the first connection
        if self._ended:  # by `close`, which may not have seen this connection yet
            connection.close()
            raise Lost(self._ended)
        try:
            answer = _opened(connection.open(hello, until - time.monotonic()))
        except Lost:
            raise
        except Exception as error:
            connection.close()
            if self.connections == 0:
                raise
            if isinstance(error, DisconnectedError):  # another client has the session; other errors may pass
                self._ended = str(error)
            raise Lost(str(error)) from None
        self._hello.pop("forget", None)
        self.answer = answer
        self.connections += 1
        return connection


def _first(read_line: Callable[[], bytes], nonce: str) -> Mapping[str, Any]:
    """Return the first message, which has the nonce; skip what shells print before it."""
    left = _NOISE_BYTES
    while left > 0 and (line := read_line()):
        left -= len(line)
        if nonce.encode() in line:
            with contextlib.suppress(ValueError, RecursionError):
                message: Any = json.loads(line)
                if type(message) is dict and message.get("agentfs") == nonce:
                    return cast("dict[str, Any]", message)
    raise protocol.ProtocolError("the remote side does not run agentfs")


def _opened(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the answer to the first message; raise its error, if it is one."""
    if "error" in answer:
        raise error_of(answer)
    if not protocol.is_instance(answer, _Opened):
        raise disconnected("The first answer of the remote side is incomplete.", made=False)
    return cast("Mapping[str, Any]", protocol.shown(answer))


def error_of(answer: Mapping[str, Any]) -> Exception:
    """Return the error in an answer."""
    try:
        return protocol.decode_error(answer.get("error"))
    except protocol.ProtocolError as wrong:
        return disconnected(f"The remote side sent an invalid error: {wrong}", made=None)


def _unreachable(reason: str, *, made: bool | None) -> DisconnectedError:
    return disconnected(f"The remote side cannot be reached: {reason.removesuffix('.')}.", made=made)
