"""Staged commands of a user without the rights of root."""

import json
import os

import pytest

from agentfs import AgentFSError, Policy, Workspace
from tests.conftest import public_directory
from tests.kit import put

SOMEBODY = 65534


def used(top) -> list:
    """Return what the workspace of this user does."""
    try:
        with Workspace(top, policy=Policy(run="staged")) as ws:
            result = ws.run("cat .env; id -u; echo new > a; mkdir d; chmod 600 a; exit 3")
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
        put(top, {"a": "old", ".env": "TOKEN=hunter2"})
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
