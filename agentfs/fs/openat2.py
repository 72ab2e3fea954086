"""What Linux has and Python does not offer: `openat2`, called through the C library.

Availability is not cached: a filter of system calls may be installed at any time. Each caller tries, and
walks name by name when the call is refused.
"""

import errno
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

_OPENAT2 = 437  # the same number on every architecture that CPython supports
_NOREPLACE = 1
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08


def open_beneath(handle: int, path: str, flags: int) -> int:
    """Open a path below a directory, letting the kernel see to it that no link is followed."""
    call = _call()
    if call is None:
        return -1
    number, how, size = _how(flags)
    return call(number, handle, os.fsencode(path), how, size)


def rename_new(handle: int, source: str, name: str) -> int:
    """Rename within a directory to a name that must be free."""
    call = _renameat2()
    if call is None:
        return errno.ENOSYS
    import ctypes  # noqa: PLC0415 - as below

    if call(handle, os.fsencode(source), handle, os.fsencode(name), _NOREPLACE) == 0:
        return 0
    return ctypes.get_errno()


@cache
def _renameat2() -> Callable[..., int] | None:
    if sys.platform != "linux":
        return None
    import ctypes  # noqa: PLC0415 - as below

    try:
        return ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None


@cache
def _call() -> Callable[..., int] | None:
    if sys.platform != "linux":
        return None
    import ctypes  # noqa: PLC0415 - it takes longer to load than all of agentfs

    try:
        call = ctypes.CDLL(None).syscall
    except (OSError, AttributeError):
        return None
    call.restype = ctypes.c_long
    return call


@cache
def _how(flags: int) -> tuple[Any, Any, Any]:
    import ctypes  # noqa: PLC0415 - as above

    # struct open_how: flags, mode, resolve. The kernel only reads it, so that all threads may share one.
    how = (ctypes.c_uint64 * 3)(flags | os.O_CLOEXEC, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)
    return ctypes.c_long(_OPENAT2), ctypes.byref(how), ctypes.c_long(ctypes.sizeof(how))
