"""`StagedProcess`: a command in a sandbox, from its start until all its processes are gone."""

import json
import os
import select
from collections.abc import Sequence
from contextlib import suppress

from agentfs.commands.captured_output import CapturedOutput
from agentfs.commands.process import Process
from agentfs.commands.request import CommandRequest
from agentfs.fs.stage import Stage
from agentfs.fs.system import has_children, limit_process, pipe_that_stays_open

# Runs the sandbox. When the process that holds the lock of the stage dies, `flock` gets the lock, and all are
# killed. Bubblewrap alone is not, if this happens while it starts.
_WATCHED = """
PATH=/usr/bin:/bin flock "$0/." /bin/sh -c "kill -9 0" 2>&- &
"$@"
status=$?
exec 2>&-
kill $!
wait
exit $status
"""
_MOST_PROCESSES = 8192
_END_SECONDS = 5.0  # until the processes of a killed sandbox are gone


class StagedProcess(Process):
    """A sandbox under way."""

    def __init__(
        self, stage: Stage, sandbox: Sequence[str], request: CommandRequest, captured: CapturedOutput
    ) -> None:
        """Make a sandbox, given as bubblewrap and its arguments; the command waits for `begin`."""
        self._status, status = pipe_that_stays_open()
        block, self._block = os.pipe()
        self._report, self._first, self._first_fd = b"", 0, -1  # the first process inside
        watched = ["/bin/sh", "-c", _WATCHED, stage.path, *sandbox]
        watched += ["--json-status-fd", str(status), "--block-fd", str(block), "--", *request.arguments]
        try:
            super().__init__(watched, request, captured, pass_fds=(status, block))
        except BaseException:
            os.close(self._status)
            os.close(self._block)
            raise
        finally:
            os.close(status)
            os.close(block)

    def limit(self, most_bytes: int) -> None:
        """Wait for the sandbox, and limit what the command may use: files have at most `most_bytes`."""
        while b"\n" not in self._report and self._read_report():
            pass
        with suppress(OSError, ValueError, KeyError):  # if the sandbox cannot be made
            self._first = json.loads(self._report.split(b"\n")[0])["child-pid"]
            self._first_fd = os.pidfd_open(self._first)
            limit_process(self._first, most_bytes, _MOST_PROCESSES)

    def begin(self) -> None:
        """Start the command."""
        with suppress(OSError):  # if the sandbox could not be made
            os.write(self._block, b"x")

    def _read_report(self) -> bytes:
        more = os.read(self._status, 4096)
        self._report += more
        return more

    @property
    def was_started(self) -> bool:
        """True if the command itself has ended, and not its sandbox."""
        return b"exit-code" in self._report

    def _kill_escaped(self) -> None:
        """Do nothing: no process can leave the namespace of the sandbox, which ends with it."""

    def end(self) -> None:
        """Kill what is left, and wait until all processes are gone."""
        if self.is_closed:
            return
        super().end()
        while self._read_report():
            pass
        if self._first_fd >= 0 and has_children(self._first):
            select.select([self._first_fd], [], [], _END_SECONDS)
        for fd in (self._status, self._first_fd, self._block):
            if fd >= 0:
                os.close(fd)
