"""Facts about the system that a command runs on: its processes, sockets, mounts and settings."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

if sys.platform != "win32":  # agentfs can be imported there
    import resource


def present(paths: Iterable[str]) -> list[str]:
    """Return the paths at which something exists."""
    return [path for path in paths if os.path.lexists(path)]


def entries(directory: str) -> list[str]:
    """Return the paths of the entries of a directory, or none if it cannot be listed."""
    with suppress(OSError):
        return [os.path.join(directory, name) for name in os.listdir(directory)]
    return []


def listening_sockets() -> Iterator[str]:
    """Yield the paths of the sockets on which programs of this system listen."""
    for line in contents("/proc/net/unix").splitlines()[1:]:
        path = os.fsdecode(line[line.find(b" /") + 1 :]) if b" /" in line else ""
        if path and os.path.exists(path):
            yield path


def processes_with(variable: str, first: int) -> list[int]:
    """Return the processes with an entry `NAME=value` in their environment that are younger than `first`."""
    wanted, newest = os.fsencode(variable), int(contents("/proc/loadavg").split()[-1])
    started_again = newest < first  # at the lowest number
    found = [int(each) for each in os.listdir("/proc") if each.isdecimal()]
    young = [each for each in found if each > first or (started_again and each <= newest)]
    return [each for each in young if wanted in contents(f"/proc/{each}/environ").split(b"\0")]


def has_children(process: int) -> bool:
    """Return True if a process has children, or that is not known."""
    try:
        with open(f"/proc/{process}/task/{process}/children", "rb") as file:
            return bool(file.read())
    except OSError:
        return True


def limit_process(process: int, file_bytes: int, processes: int) -> None:
    """Limit the size of files that a process and its children write, and their number for its user."""
    for what, most in ((resource.RLIMIT_FSIZE, file_bytes), (resource.RLIMIT_NPROC, processes)):
        with suppress(OSError, ValueError):
            resource.prlimit(process, what, (most, most))


def setting(path: str) -> str:
    """Return a setting of the kernel, or "" if there is none."""
    return contents(path).decode("ascii", "replace").strip()


def contents(path: str) -> bytes:
    """Return the bytes of a file, or none if it cannot be read."""
    with suppress(OSError), open(path, "rb") as file:
        return file.read()
    return b""
