"""A session at the far side of `connect`: its directory, the process that serves it, and its changes by key.

The process locks files of the directory for as long as it lives, so that a later one can end it and wait for
its exit. Another file names the client that the session belongs to.

The outcomes of changes are in the database of the state directory, so that each is made once. The key of a
request is noted in the transaction that notes the step, before anything is changed, and whether the change
was made with the outcome of the step. The answers of the latest 100 changes are kept, and what became of the
latest 100,000.
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
from agentfs.history.database import Database, Statement
from agentfs.remote.transport import disconnected

_SECONDS_TO_END = 2.0  # for a process to complete its changes
_SECONDS_TO_DIE = 5.0
_PAUSE = 0.005
_DAY = 24 * 3600.0
_KEPT = {"named": 30 * _DAY, "unnamed": _DAY}  # after the last use
_LOCK, _PROCESS, _CLIENT, _STATE = "server", "process", "client", "state"
_MAX_ANSWER = 1024 * 1024  # bytes; of a longer one only the outcome is kept
# By the key of a request: whether its change was made, NULL while it is under way, and the answer.
_TABLE = "CREATE TABLE IF NOT EXISTS outcomes (key TEXT PRIMARY KEY, made INTEGER, answer BLOB)"
_MADE, _UNCERTAIN = 1, 2
_BEGIN = "INSERT OR REPLACE INTO outcomes (key) VALUES (?)"
_FORGET: tuple[Statement, ...] = (  # a key far later than an answer: it must outlive any pause of its client
    ("UPDATE outcomes SET answer = NULL WHERE rowid = (SELECT max(rowid) FROM outcomes) - 100", ()),
    ("DELETE FROM outcomes WHERE rowid <= (SELECT max(rowid) FROM outcomes) - 100000", ()),
)
_SETTLE: dict[bool | None, Statement] = {  # by whether all of the change was made; None for a part
    True: ("UPDATE outcomes SET made = ? WHERE made IS NULL", (_MADE,)),
    None: ("UPDATE outcomes SET made = ? WHERE made IS NULL", (_UNCERTAIN,)),
    False: ("DELETE FROM outcomes WHERE made IS NULL", ()),
}
current_key: ContextVar[str | None] = ContextVar("agentfs_request_key", default=None)


class SessionDirectory:
    """The directory of a session, which this process alone serves until it is closed."""

    def __init__(self, root_path: str, name: str | None, client: str, *, again: bool) -> None:
        """Take over a session from the process that serves it.

        Args:
            root_path: The tree.
            name: The name of the session; None for one that only this client knows.
            client: The client that it belongs to from now on.
            again: Whether that client had it before; if another one has taken it over, this fails.

        Raises:
            AgentFSError: `io` if there can be no such directory, `busy` if the process does not end,
                `disconnected` if the session belongs to another client.
        """
        parent = lock_directory(root_path)
        if parent is None:
            raise FileIOError("There is no directory in which this user can keep the state of a session.")
        self._fds: list[int] = []
        self._named = name is not None
        sessions = os.path.join(parent, "sessions")
        owner = name or client + boot_id()  # its state is not synced, so it ends with the system
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
            if isinstance(error, FileNotFoundError):  # its time was up just now
                raise BusyError("The session was removed while it was opened.") from None
            raise FileIOError(f"The directory of the session failed: {error.strerror}.") from None

    def close(self) -> None:
        """Let others take over, as the end of the process does too."""
        while self._fds:
            let_go(self._fds.pop())

    def remove(self) -> None:
        """Remove the directory of a session that has ended, unless it has a name to be continued by."""
        if not self._named:
            with suppress(OSError):
                self._directory.remove()

    def _check_client(self, client: str) -> None:
        found = self._directory.read(_CLIENT)
        if found != client:
            happened = "Another client has taken over the session." if found else "The session was removed."
            raise DisconnectedError(happened, hint="It is not connected again.")

    def _take_over(self, client: str) -> None:
        """Lock the session, after ending the process that has it."""
        process_fd = self._directory.open(_PROCESS)
        self._fds.append(hold(process_fd))
        began, sent = time.monotonic(), None
        while (fd := open_locked(self._directory.path_of(_LOCK), os.O_CREAT)) is None:
            waited = time.monotonic() - began
            if waited > _SECONDS_TO_END + _SECONDS_TO_DIE:
                raise BusyError("The process that serves this session does not end.")
            wanted = signal.SIGTERM if waited < _SECONDS_TO_END else signal.SIGKILL
            process = locking_process(process_fd)
            self._check_client(client)  # else it is the process of a newer one
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
    """What became of the changes of a session, in the database of a state directory."""

    def __init__(self, database: Database, *, unfinished: bool) -> None:
        """Take the outcomes of a database whose journal may have an unfinished change."""
        self._database = database
        self._noted = unfinished  # the key of the change under way
        database.write([(_TABLE, ()), *([] if unfinished else [_SETTLE[None]])])

    def begun(self) -> Sequence[Statement]:
        """Return the statements that note the key of the request under way, if it has one."""
        key = current_key.get()
        self._noted = key is not None
        return [(_BEGIN, (key,)), *_FORGET] if key is not None else ()

    def settled(self, whole: bool | None) -> Sequence[Statement]:
        """Return the statements that note if the change was made: all of it, nothing, or a part (None)."""
        noted, self._noted = self._noted, False
        return [_SETTLE[whole]] if noted else ()

    def find(self, key: str) -> Mapping[str, Any] | None:
        """Return the answer to a change that was begun before; None if it may be made now."""
        (rows,) = self._database.read(("SELECT made, answer FROM outcomes WHERE key = ?", (key,)))
        if not rows:
            return None
        made, answer = rows[0]
        if answer is not None:
            found: Mapping[str, Any] = json.loads(answer)
            return found
        if made == _MADE:
            raise disconnected("The change was made, and its result was lost with the connection.", made=True)
        raise lost_during_change()

    def add_answer(self, key: str, answer: Mapping[str, Any]) -> None:
        """Note the answer to a request, if that has made a change."""
        data = json.dumps(answer, separators=(",", ":")).encode()
        if len(data) <= _MAX_ANSWER:
            with suppress(AgentFSError):  # then the outcome alone is known
                self._database.write([("UPDATE outcomes SET answer = ? WHERE key = ?", (data, key))])


def lost_during_change() -> DisconnectedError:
    """Return the error for a change of which it is not known whether it was made."""
    return disconnected("The connection was lost during the change.", made=None)
