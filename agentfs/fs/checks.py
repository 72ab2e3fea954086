"""Whether a file may be changed: protected names, permission rules, hard links, and what the disk says."""

import errno
import os
import stat

from agentfs.errors import RefusedError
from agentfs.fs import oserrors, syscalls
from agentfs.fs.context import RootContext
from agentfs.fs.path import display_name, quote
from agentfs.fs.resolve import ResolvedPath, resolve_real


def check_may_change_at(context: RootContext, real_path: str) -> None:
    """Refuse a real path as `check_may_change`."""
    with resolve_real(context, real_path, create_parents=True) as resolved:
        check_may_change(context, resolved, real_path)


def check_may_change(context: RootContext, resolved: ResolvedPath, path: str) -> None:
    """Refuse a path that is protected, or that the permission rules do not let the call change.

    A hard link to a protected file is protected too.
    """
    real_path = resolved.real_path
    if context.unreadable.covers(real_path):
        raise oserrors.protected(path, context.display_path(real_path))
    status = resolved.stat()
    if context.unwritable.covers(real_path) or resolved.is_write_protected(status):
        raise oserrors.protected(path, context.display_path(real_path), readable=True)
    if context.access is not None:
        context.access.check_change(real_path)
    if status is None or status.st_nlink < 2 or not stat.S_ISREG(status.st_mode):
        return
    if context.is_hard_link_to(status, context.unwritable):
        raise oserrors.protected(path, context.display_path(real_path), readable=True)


def check_hard_links(context: RootContext, path: str, status: os.stat_result | None) -> None:
    """Refuse to change a file of several names where the policy changes none."""
    if status is not None and status.st_nlink > 1 and context.hardlinks == "refuse":
        raise RefusedError(
            f"{quote(path)} has {status.st_nlink} hard links; this workspace changes no such file.",
            hint="Ask the user whether the other names shall change too.",
            details={"path": display_name(path), "links": status.st_nlink},
        )


def check_replaceable(context: RootContext, resolved: ResolvedPath, path: str) -> None:
    """Refuse to give a file, which need not exist yet, a new content where that would fail."""
    status = resolved.stat()
    if status is not None:
        _check_writable(resolved, path, status)
        check_hard_links(context, path, status)
    number = syscalls.access_errno(resolved.parent, ".", os.W_OK | os.X_OK)
    if not number and status is not None and os.geteuid() not in {0, status.st_uid}:
        here = syscalls.lstat(resolved.parent, ".")
        if here.st_mode & stat.S_ISVTX and os.geteuid() != here.st_uid:
            number = errno.EPERM
    if number:
        raise resolved.error(OSError(number, os.strerror(number)))


def _check_writable(resolved: ResolvedPath, path: str, status: os.stat_result) -> None:
    # A rename needs no permission on the file itself, but whoever made it read-only meant it, and the
    # superuser is no exception.
    if not status.st_mode & 0o222:
        raise oserrors.write_protected(path, status.st_mode)
    number = syscalls.access_errno(resolved.parent, resolved.name, os.W_OK)
    if number == errno.EACCES:
        raise oserrors.write_protected(path, status.st_mode)
    if number:
        raise resolved.error(OSError(number, os.strerror(number)))
