"""The example loop, run as README runs it: offline, on this repository and on a small one."""

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import needs

pytestmark = needs("git")

ROOT = Path(__file__).parents[1]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "OPENAI_API_KEY"}
    command = [sys.executable, str(ROOT / "examples" / "agent_loop.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)


def git(directory: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(directory), *arguments], check=True, capture_output=True)


def test_the_loop_uses_every_tool_errs_once_and_recovers(tmp_path):
    (tmp_path / "README.md").write_bytes(b"# A thing\r\n\r\nIt does what such things do, well.\r\n")
    (tmp_path / "main.py").write_text("print(1)\n")
    (tmp_path / "ignored.md").write_text("not for you\n")
    (tmp_path / ".gitignore").write_text("ignored.md\n")
    git(tmp_path, "init", "-q")
    before = (tmp_path / "README.md").read_bytes()

    done = run("--repository", str(tmp_path))

    assert done.returncode == 0, done.stderr
    for name in ("ls", "glob", "grep", "read", "edit", "multi_edit", "write"):
        assert f">>> {name} " in done.stdout
    assert "and more than is there" in done.stdout  # the mistake
    assert "\n+An agent was here, and looked around first." in done.stdout  # the outcome, by git
    assert "\n+Written by an agent loop." in done.stdout
    assert (tmp_path / "README.md").read_bytes() == before, "the loop works on a copy"


def test_the_loop_runs_on_this_repository():
    done = run()
    assert done.returncode == 0, done.stderr
    assert "AGENT_NOTES.md" in done.stdout
