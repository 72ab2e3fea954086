"""`Process`: one command in a process group of its own, from its start to the end of the last process.

The direct child counts. When it has ended, its output is read until the pipes are empty, or for a fifth of a
second if another process holds them open. Then `end` kills the rest of its group. Processes that have left
the group are found by a variable in their environment.
"""

import math
import os
import selectors
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from typing import Any

from agentfs.base.lazy import signal
from agentfs.commands.request import CommandRequest
from agentfs.commands.system import processes_with
from agentfs.errors import InvalidArgumentError
from agentfs.limits import Limits

_GRACE_SECONDS = 0.2  # after the direct child has ended
_TERM_SECONDS = 1.0  # between TERM and KILL
_END_SECONDS = 5.0  # until processes that have left the group are gone
_PAUSE_SECONDS = 0.001  # between two looks at them
POLL_SECONDS = 0.05  # between two looks at the call's cancellation
_READ_BYTES = 64 * 1024
_TAIL_BYTES = 256 * 1024
_MARK = "AGENTFS_COMMAND"


class CapturedOutput:
    """The standard output and standard error of one command. Thread-safe.

    Of each stream, and of both joined, the first `limit` bytes are kept, and of the joined output also its
    end. The position of a byte in the joined output is its offset.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = Lock()
        self._streams = {"stdout": bytearray(), "stderr": bytearray()}
        self._head, self._tail = bytearray(), bytearray()
        self.total = 0  # bytes of both streams
        self.truncated = False  # True if a stream was longer than the limit

    def add(self, stream: str, data: bytes) -> None:
        """Add bytes that have just arrived on a stream."""
        with self._lock:
            kept = self._streams[stream]
            room = self._limit - len(kept)
            kept += data[:room]
            self.truncated |= len(data) > room
            self.total += len(data)
            room = self._limit - len(self._head)
            self._head += data[:room]
            self._tail += data[room:]
            if len(self._tail) > 2 * _TAIL_BYTES:
                del self._tail[:-_TAIL_BYTES]

    def stream(self, name: str) -> bytes:
        """Return the kept bytes of "stdout" or "stderr"."""
        with self._lock:
            return bytes(self._streams[name])

    def read(self, offset: int = 0) -> tuple[int, bytes]:
        """Return the first kept offset of the joined output from an offset on, and the output from there."""
        with self._lock:
            if offset < len(self._head):
                return offset, bytes(self._head[offset:])
            kept_from = self.total - len(self._tail)
            return max(offset, kept_from), bytes(self._tail[max(offset - kept_from, 0) :])


class Process:
    """A running command. Only one thread at a time calls `wait` or `kill`."""

    def __init__(
        self,
        arguments: Sequence[str],
        request: CommandRequest,
        limits: Limits,
        *,
        cwd: int | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        """Start the command in the open directory `cwd`. Raises OSError."""
        self._mark = os.urandom(8).hex()
        self.captured = CapturedOutput(limits.file_bytes)
        # None until the direct child has ended; 128 and more for a signal.
        self.exit_status: int | None = None
        self.left_over = 0  # processes that were running when the direct child had ended
        self.began = time.monotonic()
        with os.fdopen(os.memfd_create("stdin"), "rb") as given:  # a pipe would have to be fed
            os.pwrite(given.fileno(), request.stdin or b"", 0)
            try:
                self._child = subprocess.Popen(  # noqa: S603 - the command, as it was asked for
                    arguments,
                    env={**request.environment, _MARK: self._mark},
                    cwd=None if cwd is None else f"/proc/self/fd/{cwd}",
                    stdin=subprocess.DEVNULL if request.stdin is None else given,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                    pass_fds=pass_fds,
                )
            except ValueError as error:  # such as a NUL, or a `=` in the name of a variable
                message = f"The command and its environment cannot be passed to a shell: {error}."
                raise InvalidArgumentError(message, hint="Leave these characters out.") from None
        self._selector = selectors.DefaultSelector()
        self.is_closed = False
        self._ended = 0.0  # when the direct child ended; 0 if it runs
        self._pidfd = os.pidfd_open(self._child.pid)
        self._selector.register(self._pidfd, selectors.EVENT_READ)
        for stream in ("stdout", "stderr"):
            pipe = getattr(self._child, stream).fileno()
            os.set_blocking(pipe, False)
            self._selector.register(pipe, selectors.EVENT_READ, stream)

    @property
    def duration(self) -> float:
        """The seconds that the direct child has run."""
        return (self._ended or time.monotonic()) - self.began

    def others(self) -> list[int]:
        """Return the processes of the command that are running, except the direct child."""
        return processes_with(f"{_MARK}={self._mark}", self._child.pid)

    def wait(self, seconds: float) -> bool:
        """Read the output until the command has ended; return False if the time is over before."""
        until = time.monotonic() + seconds
        while self._selector.get_map():  # the process or a pipe is left
            now, last = time.monotonic(), self._ended + _GRACE_SECONDS if self._ended else math.inf
            if now >= min(until, last):
                return now >= last
            for key, _ in self._selector.select(min(until, last) - now):
                if key.data:
                    self._read(key.data, key.fd)
                else:
                    self._note_end()
        return True

    def end(self) -> None:
        """Kill what is left of the command, and release everything; afterwards `exit_status` is known."""
        if self.is_closed:
            return
        self.is_closed = True
        with os.fdopen(self._pidfd), self._child, self._selector:
            self.left_over = len(self.others()) if self._ended else 0
            if not self._ended:
                self._signal(signal.SIGTERM)
                self.wait(_TERM_SECONDS)
            self._signal(signal.SIGKILL)
            self._kill_escaped()
            self.wait(_GRACE_SECONDS)
            if not self._ended:
                self._note_end()

    def _note_end(self) -> None:
        """Note how the direct child ended, which stays a zombie, so that its number is not reused."""
        end: Any = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOWAIT)
        self.exit_status = end.si_status + (0 if end.si_code == os.CLD_EXITED else 128)
        self._ended = time.monotonic()
        self._selector.unregister(self._pidfd)

    def _read(self, stream: str, pipe: int) -> None:
        with suppress(BlockingIOError):
            if data := os.read(pipe, _READ_BYTES):
                self.captured.add(stream, data)
            else:
                self._selector.unregister(pipe)

    def _signal(self, number: int) -> None:
        """Signal the process group."""
        with suppress(OSError):
            os.killpg(self._child.pid, number)

    def _kill_escaped(self) -> None:
        """Kill the processes that have left the group, and wait until they are gone."""
        until = time.monotonic() + _END_SECONDS
        looks = 2  # while a process executes a program, its environment is empty
        while looks and time.monotonic() < until:
            found = self.others()
            for process in found:
                with suppress(OSError):
                    os.kill(process, signal.SIGKILL)
            looks = 2 if found else looks - 1
            if looks:
                time.sleep(_PAUSE_SECONDS)  # on a busy machine, killed processes end only then
