"""`FirstProcess`: the first process of a sandbox, with which all others end."""

import json
import os
import select
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from agentfs.base.lazy import signal
from agentfs.commands.stage import LOCK, Stage
from agentfs.commands.system import limit_process, pipe_that_stays_open
from agentfs.commands.system_calls import filter_of_calls
from agentfs.fs.context import file_clock

# Runs the sandbox. When the process that holds the lock of the stage dies, `flock` gets the lock, and all are
# killed. Bubblewrap alone is not, if this happens while it starts.
_WATCHED = """
PATH=/usr/bin:/bin flock "$0" /bin/sh -c "kill -9 0" >&- 2>&- &
"$@"
status=$?
exec 2>&-
kill $!
wait
exit $status
"""
MOST_PROCESSES = 8192
_END_SECONDS = 5.0  # until all processes are gone after the first one was killed


class FirstProcess:
    """The first process of a sandbox, whose program waits for `begin`.

    Enter it, and start `command` with the descriptors `passed` in the block.

    Attributes:
        number: Its id; 0 if the sandbox could not be made.
        report: What bubblewrap has reported, and what the program has written to the last of `passed`.
    """

    def __init__(self, stage: Stage, sandbox: Sequence[str]) -> None:
        """Make the pipes of a sandbox, given as bubblewrap and its arguments."""
        self._made = time.time_ns()
        self._reported, both = pipe_that_stays_open()
        blocked, self._block = os.pipe()
        calls, rules = filter_of_calls(os.uname().machine), os.memfd_create("rules")
        os.pwrite(rules, calls, 0)
        self.passed = (both, blocked, rules, os.dup(both))  # bubblewrap closes the first three inside
        own = ["--json-status-fd", str(both), "--block-fd", str(blocked)]
        own += ["--seccomp", str(rules)] if calls else []
        self.command = ["/bin/sh", "-c", _WATCHED, os.path.join(stage.path, LOCK), *sandbox, *own, "--"]
        self.number, self._fd, self.report = 0, -1, b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        for fd in self.passed:
            os.close(fd)
        if kind is not None:
            self.end()

    def begin(self, most_bytes: int, child: int) -> None:
        """Limit what all processes may use, files to `most_bytes`, and start the program.

        Each file that it changes has a later time than the files that were changed before. `child` is the
        process that runs `command`. If it is killed, one of its own may wait, with the pipe open, for ever.
        """
        with os.fdopen(os.pidfd_open(child)) as end:
            both = self._reported, end.fileno()
            while b"\n" not in self.report and self._reported in _readable(*both) and self._read():
                pass
        with suppress(OSError, ValueError, KeyError):  # if the sandbox cannot be made
            self.number = json.loads(self.report.split(b"\n")[0])["child-pid"]
            self._fd = os.pidfd_open(self.number)
            limit_process(self.number, most_bytes, MOST_PROCESSES)
        while file_clock() <= self._made:
            time.sleep(0.0005)  # less than one step of the file clock
        with suppress(OSError):
            os.write(self._block, b"x")

    def _read(self) -> bytes:
        more = os.read(self._reported, 4096)
        self.report += more
        return more

    def end(self) -> None:
        """Kill all processes, wait until they are gone, and read the rest of the report."""
        if self._fd >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._fd, signal.SIGKILL)
            _readable(self._fd, seconds=_END_SECONDS)  # all others have ended before
            os.close(self._fd)
            while self._read():
                pass
        for fd in (self._reported, self._block):
            os.close(fd)


def _readable(*descriptors: int, seconds: float | None = None) -> list[int]:
    """Wait for one of the descriptors, and return those that can be read or have ended.

    `select` takes no descriptor above 1023, which a program with many open files has.
    """
    poll = select.poll()
    for each in descriptors:
        poll.register(each, select.POLLIN)
    return [each for each, _ in poll.poll(seconds and seconds * 1000)]
