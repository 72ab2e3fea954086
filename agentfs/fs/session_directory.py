"""The directory of a session at the far side of `connect`: its state, and the process that serves it.

Files in it are locked by that process for as long as it lives, so that a later one can end it and wait for
its exit; another file names the client that the session belongs to.
"""

import hashlib
import os
import shutil
import signal
import struct
import sys
import time
from contextlib import suppress
from itertools import chain

from agentfs.errors import AgentFSError, BusyError, DisconnectedError, FileIOError
from agentfs.fs.lock import hold, let_go, lock_directory, open_locked

_SECONDS_TO_END = 2.0  # that a process has to complete what it does
_SECONDS_TO_DIE = 5.0
_PAUSE = 0.005
_DAY = 24 * 3600.0
_KEPT = {"named": 30 * _DAY, "unnamed": _DAY}  # after the last use
_LOCK, _PROCESS, _CLIENT, _STATE = "server", "process", "client", "state"


class SessionDirectory:
    """The directory of a session, which this process alone serves until it is closed."""

    def __init__(self, root_path: str, name: str | None, client: str, *, again: bool) -> None:
        """Take over a session from the process that serves it.

        Args:
            root_path: The tree.
            name: The name of the session; None for one that only this client knows.
            client: The client that it belongs to from now on.
            again: Whether that client had it before: then only if no other one has taken it over.

        Raises:
            AgentFSError: `io` where there can be no such directory, `busy` where the process does not end,
                `disconnected` where the session belongs to another client.
        """
        parent = lock_directory(root_path)
        if parent is None:
            raise FileIOError("There is no directory in which this user can keep the state of a session.")
        self._fds: list[int] = []
        self._named = name is not None
        sessions = os.path.join(parent, "sessions")
        owner = name or client + _boot()  # what is not brought to the disk ends with the system
        digest = hashlib.sha256(f"{root_path}\0{owner}".encode("utf-8", "surrogatepass"))
        kind = "unnamed" if name is None else "named"
        self._path = os.path.join(sessions, kind, digest.hexdigest()[:32])
        self.state = os.path.join(self._path, _STATE)
        try:
            if not again:
                os.makedirs(self._path, mode=0o700, exist_ok=True)
                self._write_client(client)
            self._check_client(client)
            self._take_over(client)
            self._check_client(client)
            _remove_old(sessions)
        except BaseException as error:
            self.close()
            if isinstance(error, AgentFSError) or not isinstance(error, OSError):
                raise
            if isinstance(error, FileNotFoundError):  # its time was up just now
                raise BusyError("The session was removed while it was opened.") from None
            raise FileIOError(f"The directory of the session failed: {error.strerror}.") from None

    def close(self) -> None:
        """Let others take over, as the end of the process does too."""
        while self._fds:
            let_go(self._fds.pop())

    def remove(self) -> None:
        """Remove the directory of a session that has ended, and that has no name to be continued by."""
        if not self._named:
            _remove(self._path)

    def _check_client(self, client: str) -> None:
        found = ""
        with suppress(FileNotFoundError), open(os.path.join(self._path, _CLIENT), encoding="ascii") as file:
            found = file.read()
        if found != client:
            happened = "Another client has taken over the session." if found else "The session was removed."
            raise DisconnectedError(happened, hint="It is not connected again.")

    def _write_client(self, client: str) -> None:
        temporary = os.path.join(self._path, f"{_CLIENT}-{os.getpid()}")
        with open(temporary, "w", encoding="ascii") as file:
            file.write(client)
        os.replace(temporary, os.path.join(self._path, _CLIENT))

    def _take_over(self, client: str) -> None:
        """Lock the session, after ending the process that has it."""
        import fcntl  # noqa: PLC0415 - POSIX only

        process_fd = os.open(os.path.join(self._path, _PROCESS), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._fds.append(hold(process_fd))
        began, sent = time.monotonic(), None
        while (fd := open_locked(os.path.join(self._path, _LOCK), os.O_CREAT)) is None:
            waited = time.monotonic() - began
            if waited > _SECONDS_TO_END + _SECONDS_TO_DIE:
                raise BusyError("The process that serves this session does not end.")
            wanted = signal.SIGTERM if waited < _SECONDS_TO_END else signal.SIGKILL
            process = _locked_by(process_fd)
            self._check_client(client)  # else it is the process of a newer one
            if process and sent != wanted:
                with suppress(ProcessLookupError):
                    os.kill(process, wanted)
                sent = wanted
            time.sleep(_PAUSE)
        self._fds.append(hold(fd))
        fcntl.lockf(process_fd, fcntl.LOCK_EX)


def _boot() -> str:
    """Return what is another after each start of the system; "" where that has nothing such."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read()
    return ""


def _locked_by(fd: int) -> int:
    """Return the process that has locked a file by `lockf`; 0 for none, and for one in another container.

    The system says it: a number in a file may be that of a process that has come since.
    """
    import fcntl  # noqa: PLC0415 - POSIX only

    if sys.platform == "linux":
        layout, values, at = "hhqqi", (fcntl.F_WRLCK, 0, 0, 0, 0), 4
    else:  # macOS and BSD
        layout, values, at = "qqihh", (0, 0, 0, fcntl.F_WRLCK, 0), 2
    found = fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack(layout, *values))
    return max(int(struct.unpack(layout, found)[at]), 0)


def _remove_old(sessions: str) -> None:
    for kind, seconds in _KEPT.items():
        with suppress(OSError):
            for each in os.scandir(os.path.join(sessions, kind)):
                with suppress(OSError):
                    if (
                        _is_old(each.path, seconds)
                        and (fd := open_locked(os.path.join(each.path, _LOCK), os.O_CREAT)) is not None
                    ):
                        _remove(each.path)
                        os.close(fd)


def _is_old(path: str, seconds: float) -> bool:
    """Return whether none of the files of a session was written within some seconds."""
    files = (os.path.join(top, name) for top, _, names in os.walk(path) for name in names)
    return all(time.time() - os.lstat(each).st_mtime > seconds for each in chain([path], files))


def _remove(path: str) -> None:
    """Remove a directory whose lock this process has, also from the path by which another one may open it."""
    with suppress(OSError):
        old = f"{path}-{os.getpid()}"
        os.rename(path, old)
        shutil.rmtree(old, ignore_errors=True)
