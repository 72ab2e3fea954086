"""Limits of a staged command; another user stages too, and a system that cannot says why."""

# ruff: noqa: E501 - a row of a table is one line
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentfs import AgentFSError, Limits, Policy, Workspace
from agentfs.commands import sandbox
from tests.commands.conftest import PID, running, wait_for_stages
from tests.conftest import public_directory
from tests.kit import put, refused

PYTHON = shlex.quote(sys.executable)  # as a word of a command line

KERNEL = tuple(int("".join(filter(str.isdigit, each))) for each in os.uname().release.split(".")[:2])


@pytest.mark.skipif(
    os.geteuid() == 0 and KERNEL < (6, 14), reason="nothing limits the processes of root here"
)
def test_processes_are_limited_and_a_bomb_ends_with_the_call(staged, monkeypatch):
    monkeypatch.setattr("agentfs.commands.first_process.MOST_PROCESSES", 400)
    if os.geteuid():
        monkeypatch.setattr("agentfs.commands.first_process.MOST_PROCESSES", own_processes() + 200)
    before = Path("/proc/sys/kernel/pid_max").read_text()
    began = time.monotonic()
    bomb = f"b() {{ (exec -a bomb.{PID} sleep 50 &); b | b & }}; b; sleep 50"
    result = staged.run(bomb, timeout=1.5)
    assert result.timed_out
    assert b"fork" in result.stderr
    assert time.monotonic() - began < 30
    assert not running(f"bomb.{PID} 50")
    assert Path("/proc/sys/kernel/pid_max").read_text() == before
    assert staged.run("echo fine").stdout == b"fine\n"


def own_processes():
    found = 0
    for each in Path("/proc").glob("[0-9]*"):
        try:
            found += each.stat().st_uid == os.geteuid() and len([*(each / "task").iterdir()])
        except OSError:
            continue
    return found


@pytest.mark.parametrize("place", ["big", "/tmp/big", "/dev/shm/big", "/dev/big", "/run/big"])
def test_files_are_limited_also_those_in_memory(opened, tree, place):
    ws = opened("staged", limits=Limits(snapshot_bytes=1_000_000))
    result = ws.run(f"head -c 5000000 /dev/zero > {place}; stat -c %s {place}; exit 3", preview=True)
    assert result.exit_status == 3
    assert int(result.stdout or 0) <= 1_000_000


def test_a_file_over_the_limit_of_one_is_undone_while_the_snapshot_holds_it(opened, tree):
    (tree / "big").write_bytes(b"old\n" * 1000)
    for room, lost in ((100_000, ()), (6_000, ("big",))):
        ws = opened("staged", limits=Limits(file_bytes=1_000, snapshot_bytes=room))
        result = ws.run("sed -i s/old/new/ big; echo small > small")
        assert (tree / "big").read_bytes() == b"new\n" * 1000
        assert result.changes.lost == lost
        assert [each.path for each in ws.changes().files] == ["big", "small"][len(lost) :]
        ws.undo()
        assert (tree / "big").read_bytes() == (b"new\n" if lost else b"old\n") * 1000
        assert not (tree / "small").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small file system")
def test_a_command_that_fills_the_disk_loses_nothing(staged, tree, tmp_path, monkeypatch):
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this system mounts nothing")
    try:
        monkeypatch.setattr("agentfs.commands.staged_process.stage_places", lambda root: (str(place),))
        result = staged.run("head -c 9000000 /dev/zero > big || rm big; echo more >> README; cat README")
        assert b"No space left" in result.stderr
        assert result.stdout == b"read me\nmore\n"
        assert sorted(change.path for change in result.changes.files) == ["README"]
        assert not [*place.iterdir()]
    finally:
        subprocess.run(["umount", place], check=True)


def test_the_report_says_what_confines_commands(opened, monkeypatch):
    workspaces = [opened(run) for run in ("staged", "recorded", None)]
    for machine, staged in (("x86_64", "staged"), ("riscv64", "staged, unfiltered")):
        monkeypatch.setattr(os, "uname", lambda machine=machine: SimpleNamespace(machine=machine))
        assert [ws.containment["run"] for ws in workspaces] == [staged, "recorded", None]


def test_regression_a_deep_tree_does_not_stop_later_commands(staged):
    """`shutil.rmtree` recursed, and the stage that stayed stopped each later command of the user."""
    script = "import os, time\nfor _ in range(1200): os.mkdir('d'); os.chdir('d')\nprint(1); time.sleep(9)"
    stopped = staged.run(f'{PYTHON} -SIuc "{script}"', timeout=3)
    assert (stopped.timed_out, stopped.stdout) == (True, b"1\n")
    assert staged.run("echo fine").stdout == b"fine\n"
    wait_for_stages()


@pytest.mark.full
def test_a_deep_tree_is_applied_and_removed_up_to_a_length_of_its_paths(staged, tree):
    made = staged.run(f"mkdir -p {'d/' * 400}; echo x > {'d/' * 400}file")
    assert len(made.changes.files) == 401
    assert staged.run(f"cat {'d/' * 400}file").stdout == b"x\n"
    assert len(staged.run("rm -r d").changes.files) == 401
    longer = f"for each in $(seq 500); do mkdir {9 * 'long'}; cd {9 * 'long'}; done"
    refused(lambda: staged.run(longer), "name_too_long")
    assert not (tree / (9 * "long")).exists()


@pytest.mark.full
def test_regression_a_large_file_is_not_held_in_memory(tmp_path):
    """Effects, `apply` and the journal held it whole: 100 MB took 401 MiB."""
    script = """
import resource, sys
from agentfs import Policy, Workspace
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
with Workspace(sys.argv[1], policy=Policy(run="staged")) as ws:
    ws.run("true")
    before = peak()
    ws.run("head -c 100M /dev/urandom > big; tail -c 9 big > end")
    ws.run("cat end >> big")
    ws.undo(2)
    ws.redo(2)
    print(peak() - before)
"""
    more = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, check=True).stdout
    assert int(more) < 64
    assert (tmp_path / "big").read_bytes()[-18:] == (tmp_path / "end").read_bytes() * 2


def test_regression_many_new_files_are_synced_once(staged, tree, monkeypatch):
    """Each new file was synced by itself, which took most of the time of thousands."""
    synced = []
    monkeypatch.setattr("agentfs.fs.syscalls.sync_file_system", synced.append)
    monkeypatch.setattr("os.fsync", lambda _: pytest.fail("synced alone"))
    staged.run("mkdir made; for each in $(seq 40); do echo $each > made/$each; done")
    assert len(synced) == 1
    assert (tree / "made/40").read_text() == "40\n"


@pytest.fixture
def bubblewrap(tmp_path, monkeypatch):
    """Return a function that puts a program in the place of bubblewrap."""

    def replace(version: str, error: str) -> None:
        program = tmp_path / "bin/bwrap"
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            f'#!/bin/sh\n[ "$1" = --version ] && exec echo "{version}"\necho "{error}" >&2; exit 1\n'
        )
        program.chmod(0o755)
        monkeypatch.setattr(sandbox, "system_program", lambda name: str(program.with_name(name)))
        sandbox._probe.cache_clear()

    yield replace
    sandbox._probe.cache_clear()


@pytest.mark.parametrize(("version", "error", "reason", "hint"), [
    ("bubblewrap 0.12.1", "bwrap: No permissions to create a new namespace", "No permissions to create a new namespace", "namespace"),
    ("bubblewrap 0.11.0", "bwrap: Can't make overlay mount", "Can't make overlay mount", "overlays"),
])  # fmt: skip
def test_the_reason_of_the_system_is_given(opened, tree, bubblewrap, version, error, reason, hint):
    bubblewrap(version, error)
    raised = refused(lambda: opened("staged"), "unsupported")
    assert reason in raised.details["reason"]
    assert hint in raised.hint
    assert "recorded" in raised.hint
    assert opened("recorded").run("touch made").confinement == "recorded"


def test_an_old_bubblewrap_is_not_used(opened, tree, bubblewrap, monkeypatch):
    monkeypatch.setattr(sandbox, "_OLDEST", (99, 0))
    bubblewrap("bubblewrap 0.8.0", "")
    error = refused(lambda: opened("staged"), "unsupported")
    assert "which has no overlays" in error.details["reason"]
    assert "Install bubblewrap 99.0 or newer" in error.hint
    assert "recorded" in error.hint


SOMEBODY = 65534


def used(top) -> list:
    try:
        with Workspace(top, policy=Policy(run="staged")) as ws:
            result = ws.run("cat .env ro/.env; id -u; echo new > a; mkdir d; chmod 600 a; exit 3")
            changed = sorted(each.path for each in result.changes.files)
            ws.undo()
            nested = ws.run("unshare -U true").exit_status
            return [result.exit_status, result.stdout.decode(), changed, ws.read("a").content, nested != 0]
    except AgentFSError as error:
        return [error.code, str(error)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_another_user_stages_commands_too(monkeypatch):
    with public_directory() as top:
        monkeypatch.setenv("HOME", str(top))
        put(top, {"a": "old", ".env": "TOKEN=hunter2", "ro/.env": "TOKEN=hunter2"})
        (top / "ro").chmod(0o555)
        used(top)  # loads the modules, which perhaps only root can read
        for path in (top, *top.iterdir()):
            os.chown(path, SOMEBODY, SOMEBODY)
        answer, sent = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.setgroups([])
                os.setresgid(SOMEBODY, SOMEBODY, SOMEBODY)
                os.setresuid(SOMEBODY, SOMEBODY, SOMEBODY)
                os.write(sent, json.dumps(used(top)).encode())
            finally:
                os._exit(0)
        os.close(sent)
        with open(answer) as file:
            found = json.loads(file.read() or "[]")
        os.waitpid(child, 0)
        if found[0] == "unsupported":
            pytest.skip(found[1])
        assert found == [3, f"{SOMEBODY}\n", ["a", "d"], "old", True]
