"""The filter of system calls: run in the kernel, and interpreted for each machine."""

import errno
import struct

import pytest

from agentfs.commands.system_calls import filter_of_calls

CALLS = {"x86_64": (0xC000003E, 41, 56, 272, 308, 248), "aarch64": (0xC00000B7, 198, 220, 97, 268, 217)}
USER, FILES = 0x10000000, 0x400


def outcome(program: bytes, machine: int, number: int, argument: int = 0) -> int:
    """Return the error with which a filter answers a call; 0 if it is allowed."""
    data = struct.pack("<IIQ6Q", number, machine, 0, argument, *[0] * 5)
    value, at = 0, 0
    while True:
        code, if_true, if_false, constant = struct.unpack_from("HBBI", program, at * 8)
        at += 1
        if code == 0x06:
            return constant & 0xFFFF if constant >> 16 == 0x5 else 0
        if code == 0x20:
            (value,) = struct.unpack_from("<I", data, constant)
        else:
            is_true = {0x15: value == constant, 0x35: value >= constant, 0x45: value & constant}[code]
            at += if_true if is_true else if_false


@pytest.mark.parametrize("name", CALLS)
def test_the_filter_refuses_namespaces_of_users_and_rare_sockets(name):
    machine, socket, clone, unshare, setns, keys = CALLS[name]
    program = filter_of_calls(name)
    for number, argument, error in [
        *((socket, family, 0) for family in (1, 2, 10, 16)),
        *((socket, family, errno.EAFNOSUPPORT) for family in (0, 3, 17, 31, 38, 40)),
        *((keys + call, 0, errno.EPERM) for call in range(3)), (keys + 3, 0, 0),
        (clone, USER, errno.EPERM), (clone, FILES, 0), (unshare, USER, errno.EPERM), (unshare, FILES, 0),
        (setns, 0, errno.EPERM), (435, 0, errno.ENOSYS), (425, 0, errno.ENOSYS), (0, USER, 0), (500, 3, 0),
    ]:  # fmt: skip
        assert outcome(program, machine, number, argument) == error, (number, argument)
    assert outcome(program, 0x40000003, 1) == errno.ENOSYS  # a program of another machine
    assert filter_of_calls("riscv64") == b""
