"""The local side of one stream to `agentfs serve`: calls, and the threads that carry their messages."""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# The types of a message's values are known only after it is decoded.

import contextlib
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentfs.remote import wire

Opener = Callable[[], tuple[Any, Any]]
_NOISE_BYTES = 256 * 1024  # allowed before the first message, for example the greeting of a shell
_PIECE = 64 * 1024
_ERROR_BYTES = 4096  # of standard error, kept for messages
_MAX_QUESTIONS = 10_000  # of one call
_MAX_WAITING = 3  # unread messages of one call: progress, a question, the result
_END_SECONDS = 2.0  # for the command to end after its input has ended
_Inbox = queue.SimpleQueue[Mapping[str, Any] | None]


class Lost(Exception):  # noqa: N818 - a signal within this package
    """The connection has ended. Its arguments are the reason, and True if the call was sent before."""


class Connection:
    """One stream to the remote side. When it ends, all waiting calls raise `Lost`."""

    def __init__(self, command: Sequence[str] | Opener, hello: Mapping[str, Any], patience: float) -> None:
        """Start the command and wait for its answer to the first message; raise `Lost` without one."""
        self._lost = ""  # the reason, once the connection has ended
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = bytearray()
        self._inboxes: dict[Any, _Inbox] = {0: queue.SimpleQueue()}
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._input, self._output = self._streams(command)
        self._writer = _start(self._write)
        _start(self._read)
        try:
            self.send({"call": 0, **hello})
            self.opened = self._next(0, time.monotonic() + patience)
        except BaseException:
            self.close()
            raise

    def call(
        self,
        message: Mapping[str, Any],
        seconds: float,
        answer: Callable[[Mapping[str, Any]], Mapping[str, Any] | None],
    ) -> Mapping[str, Any]:
        """Send a call and return the message with its result.

        Args:
            message: The message; its `call` is the number of the call.
            seconds: The time limit, apart from the time that answering takes.
            answer: Takes each message before the result, and returns the reply to a question.
        """
        number, sent = message["call"], False
        self._inboxes[number] = queue.SimpleQueue()
        until = time.monotonic() + seconds + self._patience
        try:
            if self._lost:  # checked only now, because `lose` wakes only the inboxes that exist
                raise self.lose("")  # noqa: TRY301 - handled like the others below
            self.send(message)
            sent = True
            for _ in range(_MAX_QUESTIONS):
                found = self._next(number, until)
                if not found.keys() & {"ask", "progress"}:
                    return found
                began = time.monotonic()
                if (reply := answer(found)) is not None:
                    self.send(reply)
                until += time.monotonic() - began
            raise self.lose("the remote side asked too many questions")  # noqa: TRY301 - as above
        except wire.ProtocolError as error:
            raise Lost(str(self.lose(str(error))), sent) from None
        except Lost as lost:
            raise Lost(str(lost), sent) from None
        except BaseException:
            self.send({"cancel": number})
            raise
        finally:
            del self._inboxes[number]

    def send(self, message: Mapping[str, Any]) -> None:
        """Queue a message for sending."""
        self._outgoing.put(wire.to_line(message))

    def lose(self, reason: str) -> Lost:
        """End the connection and wake all waiting calls. It takes no lock, because a finalizer calls it."""
        self._lost = self._lost or reason
        self._outgoing.put(None)
        for inbox in list(self._inboxes.values()):
            inbox.put(None)
        return Lost(self._lost)

    def close(self) -> None:
        """End the connection, and the command if it does not end by itself."""
        self.lose("the workspace is closed")
        self._writer.join(_END_SECONDS)  # it may hang in a write
        if self._process is not None:
            for end in (self._process.poll, self._process.terminate, self._process.kill):
                end()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_END_SECONDS)
                    return

    def _streams(self, command: Sequence[str] | Opener) -> tuple[Any, Any]:
        """Return the streams of the remote side, to read from and to write to."""
        try:
            if callable(command):
                return command()
            pipe = subprocess.PIPE
            # In a session of its own, so Ctrl-C does not end it and it cannot ask for a password.
            self._process = subprocess.Popen(  # noqa: S603 - the caller's own command, and no shell
                [*command], stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        except Exception as error:  # a provider's SDK may raise anything
            raise Lost(f"it cannot be started: {error}") from error
        self._error_reader = _start(self._keep_errors)
        return self._process.stdout, self._process.stdin

    def _next(self, number: int, until: float) -> Mapping[str, Any]:
        """Return the next message for a call; give up a remote side that sends none in time."""
        left = max(until - time.monotonic(), 0.0)
        try:
            message = self._inboxes[number].get(timeout=min(left, threading.TIMEOUT_MAX))
        except queue.Empty:
            raise self.lose("it did not answer in time") from None
        if message is None:
            raise self.lose("")
        return message

    def _write(self) -> None:
        try:
            while (line := self._outgoing.get()) is not None:
                rest = memoryview(line)
                while rest:
                    rest = rest[self._output.write(rest[:_PIECE]) or len(rest[:_PIECE]) :]
                self._output.flush()
        except Exception as error:  # noqa: BLE001 - a provider's SDK may raise anything
            if self._process is None:  # else the reading thread finds its end, and says more
                self.lose(f"the stream cannot be written: {error}")
        with contextlib.suppress(Exception):
            self._output.close()

    def _read(self) -> None:
        reason = "it ended the stream"
        try:
            message: dict[str, Any] | None = self._first()
            while message is not None:
                self._deliver(message)
                message = wire.read_message(self._input)
        except Exception as error:  # noqa: BLE001 - as above
            reason = str(error)
        with contextlib.suppress(Exception):
            self._input.close()
        self.lose(": ".join(filter(None, [reason.removesuffix("."), *self._last_words()])))

    def _first(self) -> dict[str, Any]:
        """Return the first message; skip what shells print before it."""
        left = _NOISE_BYTES
        while left > 0 and (line := self._input.readline(left)):
            left -= len(line)
            if line.startswith(b'{"of":0,'):
                return wire.parse_line(line)
        raise wire.ProtocolError("It does not run `agentfs serve`.")

    def _deliver(self, message: Mapping[str, Any]) -> None:
        number = message.get("of")
        inbox = self._inboxes.get(number) if type(number) is int else None
        if inbox is None or ("progress" in message and not inbox.empty()):
            return  # the call was given up, or is busy
        if inbox.qsize() > _MAX_WAITING:
            raise wire.ProtocolError("It sends messages faster than they are read.")
        inbox.put(message)

    def _last_words(self) -> list[str]:
        """Return the exit status of a command that has ended, and the last of its standard error."""
        if self._process is None:
            return []
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self._process.wait(_END_SECONDS)
            self._error_reader.join(_END_SECONDS)
            return [f"exit status {status}", self._errors.decode("utf-8", "backslashreplace").strip()]
        return []

    def _keep_errors(self) -> None:
        stderr: Any = self._process and self._process.stderr
        with stderr:
            while chunk := stderr.read1(_ERROR_BYTES):
                self._errors += chunk
                del self._errors[:-_ERROR_BYTES]


def _start(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, name=f"agentfs-connect{work.__name__}", daemon=True)
    thread.start()
    return thread
