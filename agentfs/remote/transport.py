"""Streams to the remote side: a command's input and output, or an object with `write` and `readline`."""

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

from agentfs.base.visible import escape_controls
from agentfs.errors import DisconnectedError, InvalidArgumentError
from agentfs.remote.protocol import shown

_ERROR_BYTES = 4096  # of standard error, kept for messages
_EXIT_SECONDS = 2.0  # for a command to end after its input has ended
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05  # between two checks of a command for its end
_HINTS = {
    True: "Read the files to see the change.",
    False: "This call changed nothing.",
    None: "This call may have changed files: read them to see.",
}


class Stream(Protocol):
    """A stream of bytes in both directions, for example from a provider's SDK.

    `readline` may take a limit, as that of Python's files does. Without it, one endless line fills memory.
    """

    def write(self, data: bytes, /) -> object:
        """Send all of the data at once."""

    def readline(self) -> bytes:
        """Return the next line with its line feed, or nothing at the end of the stream."""
        ...

    def close(self) -> object:
        """Close both directions, which ends a `readline` or `write` in another thread."""


def disconnected(message: str, *, made: bool | None) -> DisconnectedError:
    """Return the error of a request without an answer; `made` tells if its change was made, if known."""
    return DisconnectedError(shown(message), hint=_HINTS[made], details={"made": made})


class CommandStream:
    """Standard input and output of a command.

    It runs in its own process session, so Ctrl-C does not end it and it cannot ask for a password.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        """Run the command; raise `disconnected` if it cannot be run."""
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
        """Return the next line with its line feed, or its first `limit` bytes."""
        with self._reading:
            return b"" if self._output.closed else self._output.readline(limit)

    def close(self) -> None:
        """Close the command's input, kill it if it does not end, and wait for its end."""
        with contextlib.suppress(OSError):
            self._input.close()
        with contextlib.suppress(OSError):
            if self._wait_unreaped():
                os.killpg(self._process.pid, signal.SIGKILL)  # children may hold its output open
            else:
                self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # it hangs in a system call
            self._process.wait(_EXIT_SECONDS)
        if self._reading.acquire(
            timeout=_EXIT_SECONDS
        ):  # fails if a process outside the group has the output
            self._output.close()
            self._reading.release()

    def _wait_unreaped(self) -> bool:
        """Wait for the end of the command; return True if its process id cannot have been reused."""
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
        except ChildProcessError:  # another part of the program has reaped the process
            return False
        return True

    def explain(self) -> str:
        """Return the exit status of a command that has ended, and the last of its standard error."""
        status = self._process.poll()
        if status is not None:
            self._error_reader.join(_EXIT_SECONDS)
        text = escape_controls(bytes(self._errors).decode("utf-8", "backslashreplace").strip())
        text = text.removeprefix(">>> ")  # the interpreter's prompt, from the bootstrap
        return ": ".join(filter(None, ("" if status is None else f"exit status {status}", text)))

    def _keep_errors(self) -> None:
        stderr: Any = self._process.stderr
        with stderr:
            while chunk := stderr.read(_ERROR_BYTES):
                self._errors += chunk
                del self._errors[:-_ERROR_BYTES]


def line_reader(readline: Callable[..., object], limit: int) -> Callable[[], bytes]:
    """Return a function that reads the next line; it raises `disconnected` for a line over `limit` bytes."""
    arguments: tuple[int, ...] = (limit + 1,)
    try:
        inspect.signature(readline).bind(*arguments)
    except (TypeError, ValueError):  # it takes no limit, or has no signature
        arguments = ()

    def read() -> bytes:
        line = readline(*arguments)
        if not isinstance(line, bytes):
            raise InvalidArgumentError(
                f"`readline` of the stream must return bytes, not {type(line).__name__}."
            )
        if len(line) > limit:
            raise DisconnectedError(f"The remote side sent a line over {limit:,} bytes.")
        return line

    return read
