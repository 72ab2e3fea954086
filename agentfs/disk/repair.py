"""What brings a tree back after a process died between two renames: a log of each batch, outside the tree.

The log says what stood where and under which second name it is kept. It is there from before the first change
until after the last one, and locked by whoever writes it, so that one which is not locked is that of a dead
process. The next to open the root takes that batch back.
"""

import json
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from agentfs.disk.locks import lock_directory, try_lock
from agentfs.disk.revisions import revision_of
from agentfs.disk.states import Change, DirectoryState, FileState, LinkState, State
from agentfs.disk.trail import Base
from agentfs.errors import AgentFSError, InputOutputError

_VERSION = 1
_DONE = b"\ndone\n"
_MAX_BYTES = 64 * 1024 * 1024

# A change, the directory of its second names, and these: fresh and backup.
Row = tuple[Change, str, str, str]


class RepairLog:
    """The log of one batch.

    Args:
        fd: The file, locked.
        path: Its path.
    """

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self._path = path

    def done(self) -> None:
        """Say that the batch is whole, and only second names are left to be removed."""
        with suppress(OSError):
            os.write(self._fd, _DONE)
            os.fsync(self._fd)

    def close(self, *, keep: bool = False) -> None:
        """Let go of the log.

        Args:
            keep: Leave it for the next to open the root.
        """
        if not keep:
            with suppress(OSError):
                os.unlink(self._path)
        os.close(self._fd)


@contextmanager
def logged(base: Base, root_path: str, rows: Sequence[Row]) -> Generator[RepairLog | None]:
    """Keep a log while a batch is carried out.

    Args:
        base: Where walks start.
        root_path: The root.
        rows: What the batch does.

    Yields:
        The log; None where the system has no place for it, or one change needs none.

    Raises:
        InputOutputError: io: it cannot be written; nothing was changed.
    """
    directory = lock_directory(root_path) if len(rows) > 1 else None
    if directory is None:
        yield None
        return
    path = os.path.join(directory, f"{_prefix(base)}{os.urandom(8).hex()}")
    content = {"version": _VERSION, "root": root_path, "rows": [_row(row) for row in rows]}
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _failed(error) from None
    log = RepairLog(fd, path)
    try:
        try_lock(fd)
        view = memoryview(json.dumps(content).encode())
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
    except OSError as error:
        log.close()
        raise _failed(error) from None
    try:
        yield log
    finally:
        log.close()


def left_behind(base: Base, root_path: str) -> Generator[tuple[list[Row], bool]]:
    """Find the batches of dead processes; each log goes when the next one is asked for.

    Args:
        base: Where walks start.
        root_path: The root.

    Yields:
        What a batch was to do, and whether it is whole.
    """
    directory = lock_directory(root_path)
    if directory is None:
        return
    prefix = _prefix(base)
    with suppress(OSError):
        for name in sorted(name for name in os.listdir(directory) if name.startswith(prefix)):
            path = os.path.join(directory, name)
            fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            if not try_lock(fd):
                os.close(fd)
                continue
            data = os.read(fd, _MAX_BYTES)
            done = data.endswith(_DONE)
            try:
                content: dict[str, Any] = json.loads(data.removesuffix(_DONE))
                rows = [_row_of(row) for row in content["rows"]] if content["version"] == _VERSION else None
            except (ValueError, KeyError, TypeError):
                rows = []  # it was never written to its end, so nothing had begun
            if rows is not None:
                yield rows, done
            RepairLog(fd, path).close(keep=rows is None)


def _prefix(base: Base) -> str:
    here = base.backend.lstat(base.held.handle, ".")
    return f"repair-{revision_of(f'{here.st_dev}:{here.st_ino}'.encode())}-"


def _row(row: Row) -> list[Any]:
    change, stage, fresh, backup = row
    return [change.path, plain_of(change.before), plain_of(change.after), stage, fresh, backup]


def _row_of(row: list[Any]) -> Row:
    path, before, after, stage, fresh, backup = row
    return Change(path, state_of(before), state_of(after)), stage, fresh, backup


def plain_of(state: State | None) -> list[Any] | None:
    """Return a state as JSON has it, without the content of a file."""
    match state:
        case None:
            return None
        case FileState():
            return ["file", state.mode, state.digest, state.size]
        case LinkState():
            return ["link", state.target]
        case DirectoryState():
            return ["directory", state.mode]


def state_of(plain: list[Any] | None) -> State | None:
    """Return the state that `plain_of` made this of; the content of a file cannot be loaded."""
    match plain or []:
        case ["file", mode, digest, size]:
            return FileState(mode, digest, size, _not_kept)
        case ["link", target]:
            return LinkState(target)
        case ["directory", mode]:
            return DirectoryState(mode)
        case _:
            return None


def _not_kept() -> bytes:
    raise _failed(OSError("the content is not in the log"))


def _failed(error: OSError) -> AgentFSError:
    return InputOutputError(
        f"The repair log outside of the workspace failed: {error.strerror or error}.",
        hint="Nothing was changed. Make room for it, and try again.",
        details={"errno": error.errno},
    )
