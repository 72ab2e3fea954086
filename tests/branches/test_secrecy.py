"""Attacks by the commands of a branch, which must not show secrets."""

import os
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from agentfs import AgentFSError
from tests.branches.conftest import SECRET, lose_server
from tests.kit import refused

# Copies the file when it is listed, which a change of the directory renews. A name that was looked up before
# would stay missing.
COPY = "until : > new; rm new; set -- .env.l*; [ -s $1 ]; do sleep 0.01; done; cp $1 copy"
# The end of `run` would kill it before it has a session and an environment of its own.
IN_BACKGROUND = f"""
env -i setsid sh -c 'touch /tmp/ready; {COPY}; sleep 60' < /dev/null > /dev/null 2>&1 &
until [ -e /tmp/ready ]; do sleep 0.01; done
"""


def test_a_branch_sees_no_secret_and_nothing_outside(branch, tree):
    ran = branch.run(
        f"cat .env; env; cat /proc/*/environ; ls {tree.parent}; echo x > {tree.parent}/out; id -u"
    )
    assert SECRET.encode() not in ran.stdout
    assert os.listdir(tree.parent) == ["tree"]
    with pytest.raises(AgentFSError, match="protected"):
        branch.read(".env")
    branch.run("echo mine > .env")
    branch.merge()
    assert (tree / ".env").read_text() == SECRET


def test_a_secret_of_the_program_is_not_in_the_environment_of_a_branch(ws, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", SECRET)
    with ws.branch("one") as branch:
        assert SECRET.encode() not in branch.run("env; cat /proc/*/environ; cat /proc/*/cmdline").stdout


def test_a_command_cannot_trace_the_server(branch):
    assert b"Permission denied" in branch.run("cat /proc/$PPID/mem 2>&1; cat /proc/$PPID/environ 2>&1").stdout


def test_a_protected_file_that_appears_between_commands_is_not_shown(branch, tree):
    for path in (".env.local", "src/.env"):
        (tree / path).write_text(SECRET)
        assert branch.run(f"cat {path}").stdout == b""
    assert branch.read("src/b.py").content == "b\n"


def assert_lost(branch) -> None:
    calls: list[Callable[[], object]] = [
        lambda: branch.read("copy"),
        lambda: branch.host.read("copy"),
        lambda: branch.view(workdir="src").ls(),
        lambda: branch.run("cat copy"), branch.changes, branch.merge,
        lambda: branch.merge(paths=["src"], preview=True),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(AgentFSError, match=r'Protected files appeared.*"\.env\.local"') as raised:
            call()
        assert raised.value.code == "protected"
        assert SECRET not in str(raised.value)


def test_a_branch_is_lost_if_a_protected_file_appears_while_a_command_runs(opened, tree, tmp_path):
    ws = opened(state=tmp_path / "state")
    branch = ws.branch("one")
    threading.Timer(0.1, lambda: (tree / ".env.local").write_text(SECRET)).start()
    error = refused(lambda: branch.run(f"{COPY}; cat copy"))
    assert SECRET not in str(error)
    assert_lost(branch)
    branch.close()
    branch = ws.branch("one")
    assert_lost(branch)
    assert sorted(os.listdir(tree)) == [".env", ".env.local", "src"]
    branch.discard()
    assert SECRET.encode() not in ws.branch("one").run("cat copy .env.local").stdout


@pytest.mark.parametrize("call", ["read", "merge", "run", "a lost server", "reopened"])
def test_a_branch_is_lost_if_a_protected_file_appears_while_a_process_is_left(opened, tree, tmp_path, call):
    ws = opened(state=tmp_path / "state")
    branch = ws.branch("one")
    branch.run(IN_BACKGROUND)
    copy = Path(branch._sandbox.stage.overlay.upper, "copy")
    (tree / ".env.local").write_text(SECRET)
    while not copy.exists() or copy.read_text() != SECRET:
        time.sleep(0.01)
    if call == "a lost server":
        lose_server(branch)
        with suppress(AgentFSError):
            branch.read("src/b.py")
    if call == "reopened":
        branch._session._connection.lose("the test kills the program")
        branch._sandbox.end()
        branch = ws.branch("one")
    with pytest.raises(AgentFSError, match="Protected files appeared"):
        {"run": lambda: branch.run("cat copy"), "merge": branch.merge}.get(
            call, lambda: branch.read("copy")
        )()
    assert_lost(branch)


def test_a_branch_whose_processes_have_ended_is_not_lost(branch, tree):
    branch.run(IN_BACKGROUND.replace(COPY, "sleep 0.1").replace("sleep 60", ""))
    assert branch._sandbox.is_busy
    while branch._sandbox.is_busy:
        branch.read("src/b.py")
    (tree / ".env.local").write_text(SECRET)
    assert branch.run("cat .env.local; echo x > n").stdout == b""
    assert [each.path for each in branch.merge().files] == ["n"]


def test_regression_a_branch_of_a_repository_is_opened_again(opened, tree, tmp_path):
    """The settings of git had a mask from the first time."""
    subprocess.run(["git", "init", "-q", tree], check=True)
    ws = opened(state=tmp_path / "state")
    for _ in range(2):
        with ws.branch("one") as branch:
            assert branch.run("cat .env; echo more >> src/b.py; git status --short").exit_status == 0
    assert ws.branch("one").read("src/b.py").content == "b\nmore\nmore\n"
