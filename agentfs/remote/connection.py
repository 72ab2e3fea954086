"""The local side of one stream to `agentfs serve`: calls, and the threads that carry their messages."""

import queue
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from agentfs.base.visible import escape_controls
from agentfs.errors import DisconnectedError
from agentfs.remote import wire

Received = dict[str, Any]
Answering = Callable[[Received], bytes | None]
Opener = Callable[[], tuple[Any, Any]]
_ERROR_BYTES = 4096  # of standard error, kept for messages
_MAX_WAITING = 3  # unread messages of one call: progress, a question, the result
_END_SECONDS = 2.0  # for a lost command to end
_HINTS = {False: "This call changed nothing.", None: "This call may have changed files: read them to see."}


def disconnected(reason: str, *, applied: bool | None) -> DisconnectedError:
    """Return the error of a call without a result; `applied` is False, or None if that is unknown."""
    hint = f"{_HINTS[applied]} The next call opens a new connection."
    message = escape_controls(f"The remote side was lost: {reason.removesuffix('.')}.")
    return DisconnectedError(message, hint=hint, details={"applied": applied})


class Connection:
    """One stream to the remote side. When it ends, all waiting calls raise `disconnected`."""

    def __init__(self, command: Sequence[str] | Opener, patience: float) -> None:
        self._reason = ""  # set once the connection has ended
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = b""
        self._inboxes: dict[int, queue.SimpleQueue[Received | None]] = {}
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        try:
            self._input, self._output = command() if callable(command) else self._started(command)
        except Exception as error:  # a provider's SDK may raise anything
            raise disconnected(f"it cannot be started: {error}", applied=False) from error
        _start(self._write)
        self._reader = _start(self._read)

    def call(self, number: int, line: bytes, seconds: float, answer: Answering, *, changes: bool) -> Received:
        """Send a call and return the message with its result.

        Args:
            number: The number of the call.
            line: The call.
            seconds: The time limit, apart from the time that answering takes.
            answer: Takes each message before the result, and returns the reply to a question.
            changes: True if the call may change something.
        """
        inbox = self._inboxes[number] = queue.SimpleQueue()
        until = time.monotonic() + min(seconds + self._patience, threading.TIMEOUT_MAX)
        if sent := not self._reason:  # looked at only now, because `lose` wakes only the inboxes that exist
            self._outgoing.put(line)
        else:
            inbox.put(None)
        try:
            while (found := inbox.get(timeout=max(until - time.monotonic(), 0.0))) is not None:
                if not found.keys() & {"ask", "progress"}:
                    return found
                began = time.monotonic()
                if (reply := answer(found)) is not None:
                    self._outgoing.put(reply)
                until += time.monotonic() - began
        except queue.Empty:
            self.lose("it did not answer in time")
        except wire.ProtocolError as error:
            self.lose(str(error))
        except BaseException:
            self.cancel(number)
            raise
        finally:
            del self._inboxes[number]
        raise disconnected(self._reason, applied=None if sent and changes else False)

    def cancel(self, number: int) -> None:
        """Cancel a call at the remote side."""
        self._outgoing.put(wire.to_line({"of": number, "cancel": True}))

    def lose(self, reason: str) -> None:
        """End the connection and wake all waiting calls. It takes no lock, because a finalizer calls it."""
        self._reason = self._reason or reason
        self._outgoing.put(None)
        for inbox in list(self._inboxes.values()):
            inbox.put(None)

    def close(self, seconds: float = _END_SECONDS) -> None:
        """End the connection, wait for the end of the remote side, and kill a command that does not end."""
        self.lose("the workspace is closed")
        self._reader.join(seconds)
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
            self._process.kill()
            self._process.wait()

    def _started(self, command: Sequence[str]) -> tuple[Any, Any]:
        """Run a command in a session of its own, so Ctrl-C does not end it and it asks for no password."""
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(  # noqa: S603 - the caller's own command, and no shell
            command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
        self._error_reader = _start(self._keep_errors)
        return self._process.stdout, self._process.stdin

    def _write(self) -> None:
        with suppress(Exception):  # the reading thread finds the end of the stream, and says more
            while (line := self._outgoing.get()) is not None:
                self._output.write(line)
                self._output.flush()
        with suppress(Exception):
            self._output.close()

    def _read(self) -> None:
        words = ["it ended the stream"]
        try:
            while line := self._input.readline(wire.MAX_LINE):
                self._deliver(wire.from_line(line, wire.TO_CLIENT))
        except Exception as error:  # noqa: BLE001 - as above
            words = [str(error).removesuffix(".")]
        with suppress(Exception):
            self._input.close()
        with suppress(subprocess.TimeoutExpired):
            if self._process is not None:
                words.append(f"exit status {self._process.wait(_END_SECONDS)}")
                self._error_reader.join(_END_SECONDS)
                words.append(self._errors.decode("utf-8", "backslashreplace").strip())
        self.lose(": ".join(filter(None, words)))

    def _deliver(self, message: Received) -> None:
        inbox = self._inboxes.get(message.get("of", -1))
        if inbox is None or ("progress" in message and not inbox.empty()):
            return  # the call was given up, or is busy
        if inbox.qsize() > _MAX_WAITING:
            raise wire.ProtocolError("it sends messages faster than they are read")
        inbox.put(message)

    def _keep_errors(self) -> None:
        stderr: Any = self._process and self._process.stderr
        with stderr:
            while chunk := stderr.read1(_ERROR_BYTES):
                self._errors = (self._errors + chunk)[-_ERROR_BYTES:]


def _start(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, name=f"agentfs-connect{work.__name__}", daemon=True)
    thread.start()
    return thread
