"""The way to the far side: a connection, made anew when it is lost, so that each change is made once."""

import os
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from agentfs import call_context
from agentfs.errors import AgentFSError, DisconnectedError
from agentfs.remote import protocol
from agentfs.remote.connection import Connection, Exchange, Lost, Prepare
from agentfs.remote.transport import Stream, disconnected

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0  # between two attempts to connect


class _Far(TypedDict):
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
    kept: bool  # whether the session outlives the connection
    remote: _Far


class Link:
    """The way to the far side: a connection, made anew when it is lost."""

    def __init__(
        self, open_stream: Callable[[], Stream], prepare: Prepare, hello: Mapping[str, Any], patience: float
    ) -> None:
        self._open_stream = open_stream
        self._prepare = prepare
        self._hello = {**hello, "client": uuid.uuid4().hex}
        self._patience = patience
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._connection: Connection | None = None  # also one that is being opened, while the lock is taken
        self.closed = False
        self._ended = ""  # why no connection is made any more
        self.connections = 0
        self.answer: Mapping[str, Any] = {}
        try:
            self._connect(time.monotonic() + patience)
        except Lost as lost:
            raise _unreachable(str(lost), made=False) from None

    def __del__(self) -> None:
        if self._connection is not None:
            self._connection.lose("the workspace was dropped")  # which ends the threads, and the far side

    def call(self, exchange: Exchange, bound: Connection | None) -> tuple[Mapping[str, Any], Connection]:
        """Send a request until it is answered; return the answer, and the connection that it came over.

        `bound` is the connection whose end is that of the transaction that the request is a part of.
        """
        if os.getpid() != self._process:  # after a fork, where the stream and its threads are the parent's
            raise disconnected("This workspace is another process's; connect in this one.", made=False)
        exchange.until = time.monotonic() + exchange.seconds + self._patience
        until, pause = 0.0, _FIRST_PAUSE
        while True:
            try:
                connection = bound or self._connect(until or time.monotonic() + self._patience)
                return connection.call(exchange), connection
            except Lost as lost:
                reason = str(lost)
            if exchange.raised is not None:
                raise exchange.raised
            if bound is not None and not (exchange.sent and exchange.request["method"] == "commit"):
                raise disconnected("The transaction was lost with the connection.", made=False)
            bound = None
            undecided = exchange.sent and exchange.changes
            if exchange.cancelled and not undecided:
                raise call_context.Cancelled
            now = time.monotonic()
            until = until or min(now + self._patience, exchange.until)
            if self._ended or now + pause > until:
                if exchange.sent and not exchange.changes:
                    self._hello["forget"] = True  # the far side may have noted a read that never came here
                raise _unreachable(self._ended or reason, made=None if undecided else False)
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def close(self) -> None:
        """End the connection, also one that is being opened; no other one is made."""
        self.closed = True
        self._ended = self._ended or "the workspace is closed"
        if self._connection is not None and os.getpid() == self._process:
            self._connection.close()

    def _connect(self, until: float) -> Connection:
        """Return the connection; open one where there is none."""
        if not self._lock.acquire(timeout=max(until - time.monotonic(), 0)):
            raise Lost("it takes too long")
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
        hello["kept"] = self.answer.get("kept")  # None for the first
        if self._ended:  # by `close`, which may not have seen this connection yet
            connection.close()
            raise Lost(self._ended)
        try:
            answer = connection.open(hello, until - time.monotonic())
            error = error_of(answer) if "error" in answer else None
            if error is None and not protocol.is_instance(answer, _Opened):
                error = disconnected("The far side does not say what it is.", made=False)
            answer = protocol.shown(answer)
        except AgentFSError as failure:
            answer, error = {}, failure
        if error is not None:
            connection.close()
            if self.connections == 0:
                raise error
            if isinstance(error, DisconnectedError):  # another client has the session; all else may pass
                self._ended = str(error)
            raise Lost(str(error))
        self._hello.pop("forget", None)
        self.answer = answer
        self.connections += 1
        return connection


def error_of(answer: Mapping[str, Any]) -> Exception:
    """Return the error that an answer has."""
    try:
        return protocol.decode_error(answer.get("error"))
    except protocol.ProtocolError as wrong:
        return disconnected(f"The far side answered with what is no error: {wrong}", made=None)


def _unreachable(reason: str, *, made: bool | None) -> DisconnectedError:
    return disconnected(f"The far side cannot be reached: {reason.removesuffix('.')}.", made=made)
