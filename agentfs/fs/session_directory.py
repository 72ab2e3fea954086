"""The directory of a session at the far side of `connect`: its state, and the process that serves it.

A file in it is locked by that process for as long as it lives, so that a later one can end it and wait for
its exit; another file names the client that the session belongs to.
"""

import hashlib
import os
import shutil
import signal
import time
from contextlib import suppress

from agentfs.errors import BusyError, DisconnectedError, FileIOError
from agentfs.fs.lock import lock_directory, open_locked

_SECONDS_TO_END = 2.0  # that a process has to complete what it does
_SECONDS_TO_DIE = 5.0
_PAUSE = 0.005
_DAY = 24 * 3600.0
_KEPT = {"named": 30 * _DAY, "unnamed": _DAY}  # after the last use
_LOCK, _CLIENT = "server", "client"


class SessionDirectory:
    """The directory of a session, which this process alone serves until it is closed."""

    def __init__(self, root_path: str, name: str | None, client: str, *, again: bool) -> None:
        """Take over a session from the process that serves it.

        Args:
            root_path: The tree.
            name: The name of the session; None for one that only this client knows.
            client: The client that it belongs to from now on.
            again: Whether that client had it before: then only if no other one has taken it over.
        """
        parent = lock_directory(root_path)
        if parent is None:
            raise FileIOError("There is no directory in which this user can keep the state of a session.")
        kind = "unnamed" if name is None else "named"
        self._named = name is not None
        _remove_old(os.path.join(parent, "sessions"))
        digest = hashlib.sha256(f"{root_path}\0{name or client}".encode("utf-8", "surrogateescape"))
        self._path = os.path.join(parent, "sessions", kind, digest.hexdigest()[:32])
        os.makedirs(self._path, mode=0o700, exist_ok=True)
        self.state = os.path.join(self._path, "state")
        if again:
            self._check_client(client)
        else:
            self._write_client(client)
        self._fd = self._take_over()
        try:
            self._check_client(client)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let others take over, as the end of the process does too."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def remove(self) -> None:
        """Remove the directory of a session that has ended, and that has no name to be continued by."""
        if not self._named:
            shutil.rmtree(self._path, ignore_errors=True)

    def _check_client(self, client: str) -> None:
        found = ""
        with suppress(OSError), open(os.path.join(self._path, _CLIENT), encoding="ascii") as file:
            found = file.read()
        if found not in ("", client):
            raise DisconnectedError(
                "Another client has taken over the session.", hint="It is not connected again."
            )

    def _write_client(self, client: str) -> None:
        temporary = os.path.join(self._path, f"{_CLIENT}-{os.getpid()}")
        with open(temporary, "w", encoding="ascii") as file:
            file.write(client)
        os.replace(temporary, os.path.join(self._path, _CLIENT))

    def _take_over(self) -> int:
        """Lock the session, after ending the process that has it."""
        file = os.path.join(self._path, _LOCK)
        began, sent, before = time.monotonic(), 0, 0
        while (fd := open_locked(file, os.O_CREAT)) is None:
            waited = time.monotonic() - began
            wanted = signal.SIGTERM if waited < _SECONDS_TO_END else signal.SIGKILL
            process = _process(file)
            if process == os.getpid() or waited > _SECONDS_TO_END + _SECONDS_TO_DIE:
                raise BusyError("The process that serves this session does not end.")
            # Read twice: one that has just locked the file has not yet replaced the number of the one before.
            if process == before != 0 and sent != wanted:
                with suppress(ProcessLookupError):
                    os.kill(process, wanted)
                sent = wanted
            before = process
            time.sleep(_PAUSE)
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)
        return fd


def _process(file: str) -> int:
    """Return the process that has locked a file; 0 where it has not said so yet."""
    with suppress(OSError, ValueError), open(file, encoding="ascii") as opened:
        return int(opened.read())
    return 0


def _remove_old(sessions: str) -> None:
    for kind, seconds in _KEPT.items():
        directory = os.path.join(sessions, kind)
        with suppress(OSError):
            for name in os.listdir(directory):
                path = os.path.join(directory, name)
                lock = os.path.join(path, _LOCK)
                with suppress(OSError):
                    if (
                        time.time() - os.lstat(lock).st_mtime > seconds
                        and (fd := open_locked(lock)) is not None
                    ):
                        shutil.rmtree(path, ignore_errors=True)
                        os.close(fd)
