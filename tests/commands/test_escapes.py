"""Attacks on the way out of a staged command that need more than a line of shell. Each works outside."""

import os
import pty
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from agentfs import AgentFSError
from tests.commands.conftest import SECRET
from tests.conftest import part_or_all
from tests.faults.test_races import attacking, needs_exchange

PYTHON = f"{shlex.quote(sys.executable)} -SI"


def plain(command: str, cwd: Path, **options) -> bytes:
    ran = subprocess.run(
        ["bash", "-c", command], cwd=cwd, capture_output=True, check=False, timeout=60, **options
    )
    return ran.stdout


MEMORY = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
class Vector(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
data = ctypes.create_string_buffer(24)
here, there = Vector(ctypes.addressof(data), 24), Vector(int(sys.argv[2]), 24)
libc.process_vm_readv(int(sys.argv[1]), ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
print(data.raw.decode(errors="replace"), libc.ptrace(16, int(sys.argv[1]), None, None))
"""
VICTIM = f"""
import ctypes, time
data = ctypes.create_string_buffer(b"{SECRET}")
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)
print(ctypes.addressof(data), flush=True)
time.sleep(60)
"""


def test_other_processes_are_not_traced(staged, tree):
    (tree / "attack.py").write_text(MEMORY)
    victim = subprocess.Popen([sys.executable, "-SI", "-c", VICTIM], stdout=subprocess.PIPE)
    try:
        attack = f"{PYTHON} attack.py {victim.pid} {int(victim.stdout.readline())}"
        assert plain(attack, tree) == f"{SECRET} 0\n".encode()
        result = staged.run(attack)
        assert SECRET.encode() not in result.stdout
        assert result.stdout.endswith(b" -1\n")
    finally:
        victim.kill()
        victim.wait()
        victim.stdout.close()


TERMINAL = """
import fcntl, os, termios
for name in ("/dev/tty", "/proc/self/fd/0", "/proc/self/fd/2", "/dev/console"):
    try:
        fd = os.open(name, os.O_RDWR)
        for each in b"injected\\n":
            fcntl.ioctl(fd, termios.TIOCSTI, bytes([each]))
    except OSError:
        pass
"""
IN_TERMINAL = """
import subprocess, sys
from agentfs import Policy, Workspace
command = sys.argv[2] + " attack.py"
if sys.argv[3] == "plain":
    subprocess.run(command, shell=True, cwd=sys.argv[1])
else:
    print(Workspace(sys.argv[1], policy=Policy(run="staged")).run(command).exit_status)
print("line:", sys.stdin.readline(), end="", flush=True)
"""


def in_terminal(tree: Path, way: str) -> bytes:
    """Return what a program prints that reads a line of its terminal after the attack."""
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-c", IN_TERMINAL, str(tree), PYTHON, way])
    shown, sent, end = b"", False, time.monotonic() + 30
    try:
        while b"line: " not in shown or not shown.endswith(b"\n"):
            if not select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
                os.kill(child, signal.SIGKILL)
                break
            shown += os.read(terminal, 4096)
            if b"0\r\n" in shown and not sent:
                os.write(terminal, b"typed\n")
                sent = True
    except OSError:
        pass
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
    return shown


@pytest.mark.parametrize(("way", "line"), [("plain", b"line: injected"), ("staged", b"line: typed")])
def test_nothing_is_typed_into_the_terminal(tree, way, line):
    (tree / "attack.py").write_text(TERMINAL)
    try:
        allowed = Path("/proc/sys/dev/tty/legacy_tiocsti").read_text() == "1\n"
    except OSError:
        allowed = True
    if way == "plain" and not allowed and os.geteuid() != 0:
        pytest.skip("the kernel types nothing for a program")
    assert line in in_terminal(tree, way)


@pytest.mark.skipif(not shutil.which("dbus-daemon"), reason="there is no D-Bus here")
def test_the_bus_is_not_reached(staged, tree, tmp_path):
    address = f"unix:path={tmp_path}/bus"
    bus = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--print-address", f"--address={address}"],
        stdout=subprocess.PIPE,
    )
    try:
        if not (given := bus.stdout.readline().decode().strip()):
            pytest.skip("D-Bus does not start for this user")
        call = (
            f"dbus-send --bus={given} --print-reply --dest=org.freedesktop.DBus /"
            " org.freedesktop.DBus.ListNames"
        )
        assert b"org.freedesktop.DBus" in plain(call, tree)
        assert b"org.freedesktop.DBus" not in staged.run(call).stdout
        assert b"BUS" not in staged.run("env").stdout
    finally:
        bus.send_signal(signal.SIGTERM)
        bus.wait()
        bus.stdout.close()


def test_a_program_that_a_command_makes_has_no_rights_of_its_owner(staged, tree):
    plain("cp /bin/sh outside; chmod 4755 outside", tree)
    assert (tree / "outside").stat().st_mode & 0o7777 == 0o4755
    staged.run("cp /bin/sh inside; chmod 4755 inside; mkdir d; chmod 4777 d")
    assert (tree / "inside").stat().st_mode & 0o7777 == 0o755
    assert (tree / "d").stat().st_mode & 0o7777 == 0o777
    # Nor does a program of the system gain any.
    assert b"NoNewPrivs:\t1" in staged.run("grep NoNewPrivs /proc/self/status").stdout
    assert b"NoNewPrivs:\t0" in plain("grep NoNewPrivs /proc/self/status", tree)


def test_open_descriptors_are_not_inherited(staged, tree):
    fd = os.open(tree / ".env", os.O_RDONLY)
    os.set_inheritable(fd, True)
    try:
        command = f"cat <&{fd}; cat /proc/self/fd/{fd}"
        assert SECRET.encode() in plain(command, tree, close_fds=False)
        assert staged.run(command).stdout == b""
        assert staged.run("ls /proc/self/fd").stdout == b"0\n1\n2\n3\n"
    finally:
        os.close(fd)


FILES = 20


@pytest.mark.full
@needs_exchange
@part_or_all(25)
def test_directories_are_swapped_while_effects_are_applied(staged, tree, tmp_path, every):
    outside = tmp_path / "outside"
    for top in (tree / "a", outside):
        (top / "b").mkdir(parents=True)
    (tree / "a.link").symlink_to(outside)
    outcomes = Counter()
    with attacking((tree / "a", tree / "a.link")):
        for number in range(500 // every):
            command = f"mkdir -p a/b; for i in {{1..{FILES}}}; do echo x > a/b/f{number}-$i; done"
            try:
                staged.run(f"{command}; true")
                outcomes["applied"] += 1
            except AgentFSError as error:
                outcomes[error.code] += 1
        allowed = {"applied", "refused", "conflict", "not_found", "not_a_directory", "outside_workspace"}
        assert outcomes.keys() <= allowed | {"link_loop", "busy", "stale"}
        assert not [*outside.glob("b/*")]
        # The naive way: what the overlay holds is copied to its paths.
        for number in range(20_000):
            with suppress(OSError):
                (tree / f"a/b/naive-{number}").touch()
        assert [*outside.glob("b/naive-*")]
    print(dict(outcomes))  # noqa: T201 - `pytest -s` shows it
