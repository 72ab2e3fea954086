"""A session at the remote side of `connect`: its directory, its one process, and the outcome of each change.

The process locks files of the directory while it lives, so that a later process can end it and wait for its
exit. Another file names the client that owns the session.

A table in the database of the state directory makes sure that each change is made once. The key of a request
is stored in the SQL transaction that begins its step, before any file changes. Whether the change was made is
stored with the end of the step. The table keeps 100,000 outcomes, and the answers of the latest 100.
"""

import hashlib
import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from agentfs.errors import AgentFSError, BusyError, DisconnectedError, FileIOError
from agentfs.fs.lock import hold, let_go, lock_directory, open_locked
from agentfs.fs.own_directories import OwnDirectory, boot_id
from agentfs.fs.syscalls import lock_as_process, locking_process
from agentfs.history.storage.database import Database, Statement
from agentfs.remote.transport import disconnected

_SECONDS_TO_END = 2.0  # for a process to complete its changes before it is killed
_SECONDS_TO_DIE = 5.0
_PAUSE = 0.005
_DAY = 24 * 3600.0
_KEPT = {"named": 30 * _DAY, "unnamed": _DAY}  # seconds after the last use
_LOCK, _PROCESS, _CLIENT, _STATE = "server", "process", "client", "state"
_MAX_ANSWER = 1024 * 1024  # bytes; a longer answer is not kept
# `made` is NULL while the change is under way.
_TABLE = "CREATE TABLE IF NOT EXISTS outcomes (key TEXT PRIMARY KEY, made INTEGER, answer BLOB)"
_MADE, _UNCERTAIN = 1, 2
_BEGIN = "INSERT OR REPLACE INTO outcomes (key) VALUES (?)"
_FORGET: tuple[
    Statement, ...
] = (  # a key is kept much longer than an answer: it must outlive any pause of its client
    ("UPDATE outcomes SET answer = NULL WHERE rowid = (SELECT max(rowid) FROM outcomes) - 100", ()),
    ("DELETE FROM outcomes WHERE rowid <= (SELECT max(rowid) FROM outcomes) - 100000", ()),
)
_SETTLE: dict[bool | None, Statement] = {  # by outcome: all of the change was made, a part (None), or nothing
    True: ("UPDATE outcomes SET made = ? WHERE made IS NULL", (_MADE,)),
    None: ("UPDATE outcomes SET made = ? WHERE made IS NULL", (_UNCERTAIN,)),
    False: ("DELETE FROM outcomes WHERE made IS NULL", ()),
}
current_key: ContextVar[str | None] = ContextVar("agentfs_request_key", default=None)


class SessionDirectory:
    """The directory of a session, which only this process serves until `close`."""

    def __init__(self, root_path: str, name: str | None, client: str, *, again: bool) -> None:
        """Take over a session from the process that serves it.

        Args:
            root_path: The root of the workspace.
            name: The name of the session; None for a session that only this client knows.
            client: The client that owns the session from now on.
            again: True if this client owned it before. Fails if another process has taken over the session.

        Raises:
            AgentFSError: `io` if the directory cannot be made, `busy` if the other process does not end,
                `disconnected` if the session belongs to another client.
        """
        parent = lock_directory(root_path)
        if parent is None:
            raise FileIOError("There is no directory where this user can keep the state of a session.")
        self._fds: list[int] = []
        self._named = name is not None
        sessions = os.path.join(parent, "sessions")
        owner = name or client + boot_id()  # without a name its state is not synced: it ends at a reboot
        digest = hashlib.sha256(f"{root_path}\0{owner}".encode("utf-8", "surrogatepass"))
        kind = "unnamed" if name is None else "named"
        self._directory = OwnDirectory(os.path.join(sessions, kind, digest.hexdigest()[:32]))
        self.state = self._directory.path_of(_STATE)
        try:
            if not again:
                self._directory.make(exist_ok=True)
                self._directory.write(_CLIENT, client)
            self._check_client(client)
            self._take_over(client)
            self._check_client(client)
            _remove_old(sessions)
        except BaseException as error:
            self.close()
            if isinstance(error, AgentFSError) or not isinstance(error, OSError):
                raise
            if isinstance(error, FileNotFoundError):  # another process has just removed it as too old
                raise BusyError("The session was removed while it was opened.") from None
            raise FileIOError(f"The directory of the session cannot be used: {error.strerror}.") from None

    def close(self) -> None:
        """Release the session to others, as the end of the process would."""
        while self._fds:
            let_go(self._fds.pop())

    def remove(self) -> None:
        """Remove the directory of a session that has ended; one with a name is kept for a later client."""
        if not self._named:
            with suppress(OSError):
                self._directory.remove()

    def _check_client(self, client: str) -> None:
        found = self._directory.read(_CLIENT)
        if found != client:
            happened = "Another client has taken over the session." if found else "The session was removed."
            raise DisconnectedError(happened, hint="This workspace cannot reconnect; open a new one.")

    def _take_over(self, client: str) -> None:
        """Lock the session, after ending the process that serves it."""
        process_fd = self._directory.open(_PROCESS)
        self._fds.append(hold(process_fd))
        began, sent = time.monotonic(), None
        while (fd := open_locked(self._directory.path_of(_LOCK), os.O_CREAT)) is None:
            waited = time.monotonic() - began
            if waited > _SECONDS_TO_END + _SECONDS_TO_DIE:
                raise BusyError("The process that serves this session does not end.")
            wanted = signal.SIGTERM if waited < _SECONDS_TO_END else signal.SIGKILL
            process = locking_process(process_fd)
            self._check_client(client)  # else the process serves a newer client
            if process and sent != wanted:
                with suppress(ProcessLookupError):
                    os.kill(process, wanted)
                sent = wanted
            time.sleep(_PAUSE)
        self._fds.append(hold(fd))
        lock_as_process(process_fd)


def _remove_old(sessions: str) -> None:
    for kind, seconds in _KEPT.items():
        top = OwnDirectory(os.path.join(sessions, kind))
        with suppress(OSError):
            for each in map(OwnDirectory, map(top.path_of, top.names())):
                with suppress(OSError):
                    if (
                        each.is_unused_for(seconds)
                        and (fd := open_locked(each.path_of(_LOCK), os.O_CREAT)) is not None
                    ):
                        each.remove()
                        os.close(fd)


class Outcomes:
    """The outcomes of the changes of a session, in the database of a state directory."""

    def __init__(self, database: Database, *, unfinished: bool) -> None:
        """Open the table; `unfinished` is True if the journal has a change under way."""
        self._database = database
        self._noted = unfinished  # True while the table has the key of the change under way
        database.write([(_TABLE, ()), *([] if unfinished else [_SETTLE[None]])])

    def begun(self) -> Sequence[Statement]:
        """Return the statements that store the key of the current request, if it has one."""
        key = current_key.get()
        self._noted = key is not None
        return [(_BEGIN, (key,)), *_FORGET] if key is not None else ()

    def settled(self, whole: bool | None) -> Sequence[Statement]:
        """Return the statements that store the outcome: True for all of the change, None for a part."""
        noted, self._noted = self._noted, False
        return [_SETTLE[whole]] if noted else ()

    def begin_command(self, key: str) -> None:
        """Store the key of a command before it runs; its step, if it makes one, begins when it has ended."""
        self._database.write(
            [("INSERT INTO outcomes (key, made) VALUES (?, ?)", (key, _UNCERTAIN)), *_FORGET]
        )

    def find(self, key: str) -> Mapping[str, Any] | None:
        """Return the answer to a change that began before; None if it may be made now."""
        (rows,) = self._database.read(("SELECT made, answer FROM outcomes WHERE key = ?", (key,)))
        if not rows:
            return None
        made, answer = rows[0]
        if answer is not None:
            found: Mapping[str, Any] = json.loads(answer)
            return found
        if made == _MADE:
            raise disconnected("The change was made, but its result was lost with the connection.", made=True)
        raise lost_during_change()

    def add_answer(self, key: str, answer: Mapping[str, Any]) -> None:
        """Store the answer to a request that has made a change."""
        data = json.dumps(answer, separators=(",", ":")).encode()
        if len(data) <= _MAX_ANSWER:
            with suppress(AgentFSError):  # the outcome is stored already
                self._database.write([("UPDATE outcomes SET answer = ? WHERE key = ?", (data, key))])


def lost_during_change() -> DisconnectedError:
    """Return the error for a change that may or may not have been made."""
    return disconnected("The connection was lost during the change.", made=None)
