"""The system calls that a staged command may not make, as a seccomp filter for bubblewrap."""

import errno
import os
import struct
from collections.abc import Sequence
from typing import Literal

# The number of each machine in the audit system, and the numbers of its system calls.
_MACHINES = {
    "x86_64": (0xC000003E, {"socket": 41, "clone": 56, "unshare": 272, "setns": 308, "keys": 248}),
    "aarch64": (0xC00000B7, {"socket": 198, "clone": 220, "unshare": 97, "setns": 268, "keys": 217}),
}
_OTHER_CALLS = 0x40000000  # the first number of a second table of x86-64
_IO_URING_SETUP, _CLONE3 = 425, 435  # on each machine; a filter cannot see what these two are asked for
_CALLS_ON_KEYS = 3  # `add_key`, `request_key` and `keyctl`
_NEW_USER_NAMESPACE = 0x10000000
_FAMILIES = (1, 2, 10, 16)  # UNIX, INET, INET6 and NETLINK
_LOAD, _EQUAL, _AT_LEAST, _HAS_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # instructions
_NUMBER, _MACHINE, _ARGUMENT = 0, 4, 16  # offsets of what can be loaded
_ALLOWED, _REFUSED = 0x7FFF0000, 0x00050000

Way = Literal["staged", "staged, unfiltered", "recorded"] | None
_Instruction = tuple[int, int, int, int]  # with how many to skip if a test is true, and if it is false


def named_way(run: Way) -> Way:
    """Return `Policy.run` as `Containment` names it: a staged command may have no filter."""
    return "staged, unfiltered" if run == "staged" and not filter_of_calls(os.uname().machine) else run


def filter_of_calls(machine: str) -> bytes:
    """Return a filter that allows no new namespaces of users, no keyrings, and no rare families of sockets.

    It is empty on machines whose system calls are not known here.
    """
    if machine not in _MACHINES:
        return b""
    number, calls = _MACHINES[machine]
    found: list[_Instruction] = [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, number),  # programs of another machine have other numbers
        _refuse(errno.ENOSYS),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _OTHER_CALLS),
        _refuse(errno.ENOSYS),
    ]
    # Programs then use `clone`, and other ways to read and write.
    for call in (_CLONE3, _IO_URING_SETUP):
        found += [(_EQUAL, 0, 1, call), _refuse(errno.ENOSYS)]
    # Keys of the user's session open other accounts.
    for call in (calls["setns"], *range(calls["keys"], calls["keys"] + _CALLS_ON_KEYS)):
        found += [(_EQUAL, 0, 1, call), _refuse(errno.EPERM)]
    for name in ("clone", "unshare"):
        test = [(_HAS_BIT, 0, 1, _NEW_USER_NAMESPACE)]
        found += _judged(calls[name], test, errno.EPERM)
    test = [(_EQUAL, len(_FAMILIES) - at, 0, family) for at, family in enumerate(_FAMILIES)]
    found += [*_judged(calls["socket"], test, errno.EAFNOSUPPORT), (_RETURN, 0, 0, _ALLOWED)]
    return b"".join(struct.pack("HBBI", *each) for each in found)


def _refuse(error: int) -> _Instruction:
    return _RETURN, 0, 0, _REFUSED | error


def _judged(call: int, test: Sequence[_Instruction], error: int) -> list[_Instruction]:
    """Refuse a call after a test of its first argument, which skips the refusal."""
    judged = [(_LOAD, 0, 0, _ARGUMENT), *test, _refuse(error), (_RETURN, 0, 0, _ALLOWED)]
    return [(_EQUAL, 0, len(judged), call), *judged]
