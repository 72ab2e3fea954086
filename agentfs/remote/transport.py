"""Streams to the far side: those of a command, or any object with `write`, `readline` and `close`."""

import contextlib
import inspect
import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from agentfs.errors import DisconnectedError, InvalidArgumentError
from agentfs.remote.protocol import shown
from agentfs.visible import escape_controls

_ERROR_BYTES = 4096  # of standard error that are kept for messages
_EXIT_SECONDS = 2.0  # that a command may take to end after its input has ended
_HINTS = {
    True: "Read the files to see the change.",
    False: "Nothing was changed by this call.",
    None: "Whether this call changed anything is not known: read the files to see it.",
}
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05  # between two looks whether it has


class Stream(Protocol):
    """A stream of bytes in both directions, as a provider's SDK gives it.

    `readline` may take a limit, as that of Python's files; then no endless line is read into memory.
    """

    def write(self, data: bytes, /) -> object:
        """Send all of the data at once."""

    def readline(self) -> bytes:
        """Return what comes, up to and with the next line feed; nothing at the end of the stream."""
        ...

    def close(self) -> object:
        """Close both directions; a `readline` or `write` in another thread returns or raises."""


def disconnected(message: str, *, made: bool | None) -> DisconnectedError:
    """Return the error of a request without an answer: its change was made, was not, or that is not known."""
    return DisconnectedError(shown(message), hint=_HINTS[made], details={"made": made})


class CommandStream:
    """Standard input and output of a command.

    It runs in a session of its own: Ctrl-C does not end it, and it has no terminal to ask for passwords.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        """Run the command; raise `disconnected` where that is not possible."""
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(  # noqa: S603 - the caller's own command, and no shell
                argv, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True
            )
        except OSError as error:
            raise disconnected(
                f"The command {argv[0]!r} cannot be run: {error.strerror}.", made=False
            ) from None
        self._process = process
        self._input: Any = process.stdin
        raw: Any = process.stdout
        self._output = io.BufferedReader(raw)
        self._reading = threading.Lock()
        self._errors = bytearray()
        self._error_reader = threading.Thread(target=self._keep_errors, name="agentfs-stderr", daemon=True)
        self._error_reader.start()

    def write(self, data: bytes) -> None:
        """Send all of the data at once."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._input.write(rest) :]

    def readline(self, limit: int = -1) -> bytes:
        """Return what comes, up to and with the next line feed, at most `limit` bytes."""
        with self._reading:
            return b"" if self._output.closed else self._output.readline(limit)

    def close(self) -> None:
        """End the command, by the end of its input or else by a signal, and wait until it has ended."""
        with contextlib.suppress(OSError):
            self._input.close()
        with contextlib.suppress(OSError):
            if self._wait_unreaped():
                os.killpg(self._process.pid, signal.SIGKILL)  # what it started too, which may have its output
            else:
                self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # one that hangs in a call of the system
            self._process.wait(_EXIT_SECONDS)
        if self._reading.acquire(timeout=_EXIT_SECONDS):  # else a process outside of the session has it
            self._output.close()
            self._reading.release()

    def _wait_unreaped(self) -> bool:
        """Wait for the end of the command; return True if its number is kept for it until it is reaped."""
        if sys.platform != "linux":
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_EXIT_SECONDS)
            return False
        until, pause = time.monotonic() + _EXIT_SECONDS, _FIRST_PAUSE
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            while os.waitid(os.P_PID, self._process.pid, flags) is None and time.monotonic() < until:
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
        except ChildProcessError:  # another part of the program has reaped it
            return False
        return True

    def explain(self) -> str:
        """Return the exit status of a command that has ended, and the end of its standard error."""
        status = self._process.poll()
        if status is not None:
            self._error_reader.join(_EXIT_SECONDS)
        text = escape_controls(bytes(self._errors).decode("utf-8", "backslashreplace").strip())
        text = text.removeprefix(">>> ")  # the prompt of the interpreter of the bootstrap
        return ": ".join(filter(None, ("" if status is None else f"exit status {status}", text)))

    def _keep_errors(self) -> None:
        stderr: Any = self._process.stderr
        with stderr:
            while chunk := stderr.read(_ERROR_BYTES):
                self._errors += chunk
                del self._errors[:-_ERROR_BYTES]


def line_reader(readline: Callable[..., object], limit: int) -> Callable[[], bytes]:
    """Return a function that reads the next line; `disconnected` where it has over `limit` bytes."""
    arguments: tuple[int, ...] = (limit + 1,)
    try:
        inspect.signature(readline).bind(*arguments)
    except (TypeError, ValueError):  # it takes none, or cannot say
        arguments = ()

    def read() -> bytes:
        line = readline(*arguments)
        if not isinstance(line, bytes):
            raise InvalidArgumentError(
                f"`readline` of the stream must return bytes, not {type(line).__name__}."
            )
        if len(line) > limit:
            raise DisconnectedError(f"The far side sent a line of over {limit:,} bytes.")
        return line

    return read
