"""One connection to the far side: a thread that sends, one that receives, and a queue for each request."""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# Of what a message has, the types are known only once it is decoded.

import contextlib
import itertools
import json
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from agentfs.errors import AgentFSError, DisconnectedError, InvalidArgumentError
from agentfs.remote import protocol
from agentfs.remote.transport import Stream, line_reader

_NOISE_BYTES = 256 * 1024  # that may come before the first message, such as the greeting of a shell
_PIECE = 64 * 1024
_MAX_QUESTIONS = 10_000  # of one request
_MAX_WAITING = 3  # messages for one request that it has not taken: progress, a question, the answer
_CANCEL: Mapping[str, Any] = {"cancel": True}  # in the queue of a request: tell the far side
_LATEST_PING = 3.0  # seconds
_CLOSE_SECONDS = 2.0

Prepare = Callable[[Stream, Callable[[], bytes]], None]
_Inbox = queue.SimpleQueue[Mapping[str, Any] | None]


class Lost(Exception):  # noqa: N818 - a signal within this package
    """The connection has ended, for the reason that is the argument."""


@dataclass(eq=False)
class Exchange:
    """One request and its answer, sent over one connection or, if that is lost, over several.

    Attributes:
        request: The message without its number.
        changes: Whether it may change something: then it is waited for, even if it is cancelled.
        seconds: That it may take, apart from those in which it waits for this side.
        reply: Answers a question.
        progress: Given the number of entries that a search has seen.
        until: When the far side must have answered, by `time.monotonic()`.
        sent: Whether a far side may have got it.
        cancelled: Whether its result is not wanted any more.
        raised: What is raised here once the far side has answered.
        inbox: Of the connection that it was sent over last.
    """

    request: Mapping[str, Any]
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
        """Let the far side give it up, from any thread; return whether nobody need wait for that."""
        self.cancelled = True
        self.inbox.put(_CANCEL)
        return not self.changes


class Connection:
    """A stream to a far side. When it is lost, all requests that wait raise `Lost`."""

    def __init__(self, stream: Stream, prepare: Prepare, patience: float) -> None:
        """Take a stream, on which `prepare` starts the server, where that is not there already."""
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
        """Whether the far side has answered, and the connection has not ended."""
        return self._opened and not self._reason

    def open(self, hello: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
        """Send the first message, and return the answer; `Lost` where none comes within some seconds."""
        inbox = self._inboxes[0] = _Inbox()
        threading.Thread(target=self._read, args=(hello,), name="agentfs-connect-in", daemon=True).start()
        try:
            answer = inbox.get(timeout=max(seconds, 0))
        except queue.Empty:
            raise self._give_up(f"the far side did not answer within {seconds:.3g} seconds") from None
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

    def call(self, exchange: Exchange) -> Mapping[str, Any]:
        """Send a request, and return the answer to it."""
        number = next(self._numbers)
        inbox = self._inboxes[number] = exchange.inbox = _Inbox()
        try:
            if self._reason:  # looked at only now, as `lose` wakes the exchanges that there are
                raise Lost(self._reason)  # noqa: TRY301 - as what is raised below
            self.send({"call": number, **exchange.request, "again": exchange.sent})
            exchange.sent = True
            if exchange.cancelled:
                inbox.put(_CANCEL)
            return self._answer(number, inbox, exchange)
        except BaseException:
            self.send({"cancel": number})
            raise
        finally:
            del self._inboxes[number]

    def close(self) -> None:
        """Let the far side end in order, and wait for it."""
        self.send({"bye": True})
        self._outgoing.put(None)
        self._writer.join(_CLOSE_SECONDS)
        self._begin_to_close().join(self._patience)  # the writer cannot while it waits in a write
        self.lose("the workspace is closed")

    def lose(self, reason: str) -> None:
        """End the connection, and wake all that wait; without a lock, as a finalizer calls it too."""
        self._reason = self._reason or reason
        self._outgoing.put(None)
        for inbox in list(self._inboxes.values()):
            inbox.put(None)

    def _give_up(self, reason: str) -> Lost:
        """End a connection on which the other threads may wait for ever; return what a call raises."""
        self.lose(reason)
        self._begin_to_close()
        return Lost(self._reason)

    def _begin_to_close(self) -> threading.Thread:
        thread = threading.Thread(target=self._close_stream, name="agentfs-connect-end", daemon=True)
        thread.start()
        return thread

    def _answer(self, number: int, inbox: _Inbox, exchange: Exchange) -> Mapping[str, Any]:
        questions = 0
        while True:
            try:
                message = self._next(inbox, exchange.until)
            except (KeyboardInterrupt, SystemExit) as error:
                if not exchange.changes or exchange.raised is not None:
                    raise
                exchange.raised = error  # and wait for what becomes of it
                exchange.cancel()
                continue
            if message is _CANCEL:
                self.send({"cancel": number})
            elif "answer" in message:
                if exchange.raised is not None:
                    raise exchange.raised
                if message.get("cancelled") is True and not exchange.cancelled:
                    raise Lost("the far side has ended")
                return message
            elif "ask" in message:
                asked = time.monotonic()
                questions += 1
                try:
                    protocol.check_fields(message, protocol.Question)
                    reply = exchange.reply(message)
                except (protocol.ProtocolError, InvalidArgumentError) as error:
                    raise self._give_up(str(error)) from None
                if questions > _MAX_QUESTIONS:
                    raise self._give_up("the far side asked too many questions")
                self.send({"reply": number, "to": message["ask"], **reply})
                exchange.until += time.monotonic() - asked
            elif protocol.is_instance(message.get("entries"), int):
                exchange.progress(message["entries"])

    def _next(self, inbox: _Inbox, until: float) -> Mapping[str, Any]:
        """Return the next message of a call; meanwhile see whether the far side is there at all."""
        began, pause = time.monotonic(), min(_LATEST_PING, self._patience / 10)
        while (now := time.monotonic()) <= until:
            if now - max(self._heard, began) > self._patience / 3:
                raise self._give_up("the far side has stopped to answer")
            try:
                message = inbox.get(timeout=pause)
            except queue.Empty:
                self.send({"ping": 0})
                continue
            if message is None:
                raise Lost(self._reason)
            return message
        raise self._give_up("the far side did not answer a call in time")

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message when those before it have been sent."""
        self._outgoing.put(protocol.to_lines(message))

    def _write(self) -> None:
        try:
            while (lines := self._outgoing.get()) is not None:
                for start in range(0, len(lines), _PIECE):
                    self._stream.write(lines[start : start + _PIECE])
                    if len(lines) > _PIECE:
                        self._heard = time.monotonic()  # a long message that goes out is a sign of life
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
                self._heard = time.monotonic()  # also of a part of a long message
                return line

            for message in protocol.messages(heard_line):
                for kind in ("answer", "of", "progress"):
                    if type(number := message.get(kind)) is int:
                        self._dispatch(number, message)
            reason = "the far side has ended the stream"
        except protocol.ProtocolError as error:
            reason = str(error)
        except DisconnectedError as error:
            reason = f"{error.message} {error.hint}".strip()
        except AgentFSError as error:
            self._failure, reason = error, str(error)
        except Exception as error:  # noqa: BLE001 - as above
            reason = f"the stream failed: {type(error).__name__}: {error}"
        self._close_stream()  # after which it can say how its command ended
        explain: Callable[[], str] = getattr(self._stream, "explain", str)
        self.lose(" — ".join(filter(None, (reason, explain()))))

    def _dispatch(self, number: int, message: Mapping[str, Any]) -> None:
        inbox = self._inboxes.get(number)
        if inbox is None or ("progress" in message and not inbox.empty()):
            return  # the call was given up, or is busy
        if inbox.qsize() > _MAX_WAITING:
            raise protocol.ProtocolError("The far side sends more than is taken.")
        inbox.put(message)

    def _close_stream(self) -> None:
        with self._closing:
            if not self._closed:
                self._closed = True
                with contextlib.suppress(Exception):
                    self._stream.close()


def _first(read_line: Callable[[], bytes], nonce: str) -> Mapping[str, Any]:
    """Return the first message, which names the nonce; what shells say before it is left out."""
    left = _NOISE_BYTES
    while left > 0 and (line := read_line()):
        left -= len(line)
        if nonce.encode() in line:
            with contextlib.suppress(ValueError, RecursionError):
                message: Any = json.loads(line)
                if type(message) is dict and message.get("agentfs") == nonce:
                    return cast("dict[str, Any]", message)
    raise protocol.ProtocolError("the far side does not run agentfs")
