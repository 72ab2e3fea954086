"""Files that are too large for memory: their digest, and their exchange for other files."""

import os

from agentfs.base import call_context
from agentfs.base.lazy import hashlib
from agentfs.fs.context import RootContext
from agentfs.fs.file import OpenFile
from agentfs.fs.lock import file_locks
from agentfs.fs.node import ConcurrentChange
from agentfs.fs.resolve import resolve_real

_PIECE = 1024 * 1024


def digest_of(file: OpenFile) -> str:
    """Return the digest of an open file, as `revision_of` does."""
    digest, position = hashlib.blake2b(digest_size=16), 0
    while piece := file.read_at(position, _PIECE):
        digest.update(piece)
        position += len(piece)
    return digest.hexdigest()


def status_key(status: os.stat_result) -> str:
    """Return a text that changes with a file."""
    return " ".join(
        map(str, (status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    )


def exchange(
    context: RootContext, root_path: str, real_path: str, source: str, mode: int, expected: str
) -> None:
    """Implement `Root.exchange`."""
    with (
        resolve_real(context, real_path, create_parents=True) as target,
        file_locks({target.lock_key: real_path}, root_path),
    ):
        status = target.check_may_change()
        if ("" if status is None else status_key(status)) != expected:
            raise ConcurrentChange
        call_context.begin_commit()
        while target.missing:
            os.mkdir(target.missing[0], dir_fd=target.parent)
            target.enter_made()
        if source:
            os.chmod(source, mode)
            os.replace(source, target.name, dst_dir_fd=target.parent)
        elif status is not None:
            os.unlink(target.name, dir_fd=target.parent)
