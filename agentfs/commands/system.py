"""Facts about the system that a command runs on: its processes and settings."""

import os
import re
import sys
from contextlib import suppress

from agentfs.base.lazy import subprocess
from agentfs.fs.settings_file import system_program

if sys.platform != "win32":  # agentfs can be imported there
    import resource

_FIRST_KILLED = "1000"  # the highest score, when the system has no memory left
_SECONDS = 10  # that git may take to answer a question
_OWN_PID_MAX = (6, 14)  # the first Linux where `pid_max` is a setting of each namespace, not of the system


def entries(directory: str, prefix: str = "") -> list[str]:
    """Return the paths of a directory's entries with a prefix, or none if it cannot be listed."""
    with suppress(OSError):
        return [os.path.join(directory, name) for name in os.listdir(directory) if name.startswith(prefix)]
    return []


def processes_with(variable: str, first: int) -> list[int]:
    """Return the processes with an entry `NAME=value` in their environment that are younger than `first`."""
    wanted, newest = os.fsencode(variable), int(contents("/proc/loadavg").split()[-1])
    started_again = newest < first  # at the lowest number
    found = [int(each) for each in os.listdir("/proc") if each.isdecimal()]
    young = [each for each in found if each > first or (started_again and each <= newest)]
    return [each for each in young if wanted in contents(f"/proc/{each}/environ").split(b"\0")]


def pipe_that_stays_open() -> tuple[int, int]:
    """Return both ends of a pipe; the second can also be read.

    A program that reports to a dead process is then not killed by the signal for a broken pipe.
    """
    read, write = os.pipe()
    both = os.open(f"/proc/self/fd/{write}", os.O_RDWR)
    os.close(write)
    return read, both


def limit_process(process: int, file_bytes: int, processes: int) -> None:
    """Limit the files that a process and its children write, and their number.

    If no memory is left, the system ends them before other processes. A limit of their memory would also
    count what they only reserve, as programs with AddressSanitizer do.
    `RLIMIT_NPROC` does not bind root, whose processes are limited by the numbers of their namespace.
    """
    limits = {resource.RLIMIT_FSIZE: file_bytes, resource.RLIMIT_NPROC: processes, resource.RLIMIT_CORE: 0}
    for what, most in limits.items():
        with suppress(OSError, ValueError):
            resource.prlimit(process, what, (most, most))
    with suppress(OSError), open(f"/proc/{process}/oom_score_adj", "w", encoding="ascii") as file:
        file.write(_FIRST_KILLED)
    nsenter = system_program("nsenter")
    kernel = tuple(int(each) for each in re.findall(r"\d+", os.uname().release)[:2])
    if os.geteuid() == 0 and kernel >= _OWN_PID_MAX and nsenter is not None:
        script = f"echo {processes} > /proc/sys/kernel/pid_max"
        with suppress(OSError):
            command = [nsenter, "--target", str(process), "--pid", "/bin/sh", "-c", script]
            subprocess.run(command, check=False, capture_output=True)


def contents(path: str) -> bytes:
    """Return the bytes of a file, or none if it cannot be read."""
    with suppress(OSError), open(path, "rb") as file:
        return file.read()
    return b""


def from_git(home: str, *arguments: str) -> bytes:
    """Return what git prints with the settings of a home, or nothing if it is missing or does not end."""
    command, env = [system_program("git") or "", *arguments], {"HOME": home}
    with suppress(OSError, subprocess.TimeoutExpired):
        ran = subprocess.run(command, env=env, cwd="/", capture_output=True, check=False, timeout=_SECONDS)
        return ran.stdout
    return b""
