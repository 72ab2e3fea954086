"""The recovery log of a batch of changes, outside the tree: it brings a tree back after a process died.

The log says what was where and under which second name it is kept. It is there from before the first change
until after the last one, and locked by whoever writes it, so that one which is not locked is that of a dead
process. The next to open the root takes that batch back.
"""

import json
import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from agentfs.errors import AgentFSError, FileIOError
from agentfs.fs import syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.file import revision_of
from agentfs.fs.lock import lock_directory, still_named, sweep_locks, try_lock
from agentfs.fs.node import Change, DirectoryNode, FileNode, LinkNode, Node
from agentfs.fs.temporary import FileMetadata, write_all

_VERSION = 1
_LEFT = b"left "
_PART = 1024 * 1024

# A change, the directory of its second names, and these: fresh and backup.
Row = tuple[Change, str, str, str]


class RepairLog:
    """The log of one batch.

    Args:
        fd: The file, locked.
        path: Its path.

    Attributes:
        keep: Whether it stays when it is closed, for the next to open the root.
    """

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self._path = path
        self.keep = False

    def write(self, content: bytes) -> None:
        """Put down what the batch does; OSError when that fails."""
        write_all(self._fd, content)
        os.fsync(self._fd)

    def note_left(self, paths: Iterable[str]) -> None:
        """Write which paths are still to be taken back; of all others only second names may be left."""
        with suppress(OSError):
            write_all(self._fd, b"\n" + _LEFT + json.dumps(sorted(paths)).encode() + b"\n")
            os.fsync(self._fd)

    def close(self) -> None:
        """Let go of the log."""
        if not self.keep:
            with suppress(OSError):
                os.unlink(self._path)
        with suppress(OSError):
            os.close(self._fd)


@contextmanager
def logged(context: RootContext, root_path: str, rows: Sequence[Row]) -> Generator[RepairLog | None]:
    """Keep a log while a batch is carried out."""
    directory = lock_directory(root_path) if len(rows) > 1 else None
    if directory is None:
        yield None
        return
    content = {"version": _VERSION, "root": root_path, "rows": [_row(row) for row in rows]}
    try:
        log = _new_log(os.path.join(directory, _prefix(context)))
    except OSError as error:
        raise _failed(error) from None
    try:
        log.write(json.dumps(content).encode())
    except OSError as error:
        log.close()
        raise _failed(error) from None
    try:
        yield log
    finally:
        log.close()


def _new_log(prefix: str) -> RepairLog:
    while True:
        path = f"{prefix}{os.urandom(8).hex()}"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            # Whoever opens the root at this moment may take an empty log for one of a dead process.
            if try_lock(fd) and still_named(fd, path):
                return RepairLog(fd, path)
        except BaseException:
            RepairLog(fd, path).close()
            raise
        os.close(fd)


def left_behind(context: RootContext, root_path: str) -> Generator[tuple[list[Row], set[str], RepairLog]]:
    """Find the batches of dead processes; each log is removed after its turn, unless it is kept."""
    directory = lock_directory(root_path)
    if directory is None:
        return
    sweep_locks(directory)
    try:
        prefix = _prefix(context)
        names = sorted(name for name in os.listdir(directory) if name.startswith(prefix))
    except OSError:
        return
    for path in (os.path.join(directory, name) for name in names):
        with suppress(OSError):
            fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            log = RepairLog(fd, path)
            log.keep = True
            try:
                if try_lock(fd) and still_named(fd, path):
                    rows, left = _content(_whole(fd))
                    log.keep = rows is None
                    if rows:
                        yield rows, left, log
            except BaseException:
                log.keep = True
                raise
            finally:
                log.close()


def _content(log: bytes) -> tuple[list[Row] | None, set[str]]:
    """Return what a log says; None for what another version wrote."""
    first, *notes = log.split(b"\n")
    try:
        content: dict[str, Any] = json.loads(first)
        rows = [_row_of(row) for row in content["rows"]] if content["version"] == _VERSION else None
    except (ValueError, KeyError, TypeError):
        rows = []  # it was never written to its end, so nothing had begun
    left = {change.path for change, *_ in rows or ()}
    for note in notes:
        if note.startswith(_LEFT) and note.endswith(b"]"):  # one that was not written to its end is none
            left = set(json.loads(note.removeprefix(_LEFT)))
    return rows, left


def _whole(fd: int) -> bytes:
    parts: list[bytes] = []
    while part := os.read(fd, _PART):
        parts.append(part)
    return b"".join(parts)


def _prefix(context: RootContext) -> str:
    here = syscalls.lstat(context.handle.fd, ".")
    return f"repair-{revision_of(f'{here.st_dev}:{here.st_ino}'.encode())}-"


def _row(row: Row) -> list[Any]:
    change, stage, fresh, backup = row
    return [change.path, plain_of(change.before), plain_of(change.after), stage, fresh, backup]


def _row_of(row: list[Any]) -> Row:
    path, before, after, stage, fresh, backup = row
    return Change(path, state_of(before), state_of(after)), stage, fresh, backup


def plain_of(state: Node | None) -> list[Any] | None:
    """Return a state as JSON has it, without the content of a file."""
    match state:
        case None:
            return None
        case FileNode():
            return ["file", state.mode, state.digest, state.size, *_plain_metadata(state.metadata)]
        case LinkNode():
            return ["link", state.target]
        case DirectoryNode():
            return ["directory", state.mode]


def state_of(plain: list[Any] | None) -> Node | None:
    """Return the state that `plain_of` made this of; the content of a file cannot be loaded."""
    match plain or []:
        case ["file", mode, digest, size, *metadata]:
            return FileNode(mode, digest, size, _not_kept, _metadata_of(mode, metadata))
        case ["link", target]:
            return LinkNode(target)
        case ["directory", mode]:
            return DirectoryNode(mode)
        case _:
            return None


def _plain_metadata(metadata: FileMetadata | None) -> list[Any]:
    if metadata is None:
        return []
    attributes = None
    if metadata.attributes is not None:
        attributes = {name: value.hex() for name, value in metadata.attributes.items()}
    return [metadata.owner, attributes]


def _metadata_of(mode: int, plain: list[Any]) -> FileMetadata | None:
    try:
        (user, group), attributes = plain
        kept = attributes and {str(name): bytes.fromhex(value) for name, value in attributes.items()}
        return FileMetadata(mode, (int(user), int(group)), kept)
    except (ValueError, TypeError, AttributeError):  # none were written, or not by this version
        return None


def _not_kept() -> bytes:
    raise _failed(OSError("the content is not in the log"))


def _failed(error: OSError) -> AgentFSError:
    return FileIOError(
        f"The repair log outside of the workspace failed: {error.strerror or error}.",
        hint="Nothing was changed. Make room for it, and try again.",
        details={"errno": error.errno},
    )
