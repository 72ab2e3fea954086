"""`agentfs store pull|push|status URL DIR`, with credentials in the environment."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentfs.store import StoredTree
from tests.store.conftest import put


def agentfs(*arguments, environment=()):
    command = [sys.executable, "-m", "agentfs", "store", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **dict(environment)}
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.full
def test_it_pushes_pulls_and_compares(server, tmp_path):
    url = f"s3://{server.bucket()}/tree"
    environment = {
        "AWS_ENDPOINT": server.endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_REGION": "us-east-1",
    }

    def run(*arguments):
        return agentfs(*arguments, environment=environment)

    put(tmp_path / "one", "a.txt", "text\n")
    assert run("push", url, tmp_path / "one") == (0, 'pushed 1 (5 bytes): "a.txt"\n', "")
    assert run("pull", url, tmp_path / "other") == (0, 'pulled 1 (5 bytes): "a.txt"\n', "")
    put(tmp_path / "one", "a.txt", "one\n")
    put(tmp_path / "other", "a.txt", "other\n")
    run("push", url, tmp_path / "one")
    status, text, _ = run("push", url, tmp_path / "other")
    assert status == 1
    assert 'conflicts 1: "a.txt"' in text
    status, text, _ = run("status", url, tmp_path / "other", "--json")
    facts = json.loads(text)
    assert (status, facts["conflicts"], facts["to_push"]) == (1, ["a.txt"], ["a.txt"])
    tree = StoredTree(url, tmp_path / "one", options=server.options)
    assert tree.status().to_push == ()


def test_errors_are_one_message(tmp_path):
    status, text, error = agentfs("pull", "file:///nowhere/at/all", tmp_path / "x")
    assert (status, text) == (2, "")
    assert error.startswith("agentfs: ")
    assert "Traceback" not in error
    assert agentfs("pull", "nothing://x", Path(tmp_path, "x"))[0] == 2
