"""The example loop, run as README runs it: offline; and the small programs of `examples`."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from agentfs import Workspace
from tests.conftest import needs

ROOT = Path(__file__).parents[1]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "OPENAI_API_KEY"}
    command = [sys.executable, str(ROOT / "examples" / "agent_loop.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)


def git(directory: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(directory), *arguments], check=True, capture_output=True)


@needs("git")
def test_the_loop_uses_every_tool_errs_once_and_recovers(tmp_path):
    (tmp_path / "README.md").write_bytes(b"# A thing\r\n\r\nIt does what such things do, well.\r\n")
    (tmp_path / "main.py").write_text("print(1)\n")
    (tmp_path / "ignored.md").write_text("not for you\n")
    (tmp_path / ".gitignore").write_text("ignored.md\n")
    git(tmp_path, "init", "-q")
    before = (tmp_path / "README.md").read_bytes()

    done = run("--repository", str(tmp_path))

    assert done.returncode == 0, done.stderr
    for name in ("ls", "glob", "grep", "read", "edit", "multi_edit", "write", "run"):
        assert f">>> {name} " in done.stdout
    assert "old_string is not in" in done.stdout  # the mistake
    assert "\n+An agent was here, and looked around first." in done.stdout  # the outcome, by git
    assert "\n+Written by an agent loop.\n+20" in done.stdout  # the year is from the shell
    assert "Exit status 0, recorded, with the rights of the user" in done.stdout
    assert (tmp_path / "README.md").read_bytes() == before, "the loop works on a copy"


@pytest.mark.full
@needs("git")
def test_regression_the_loop_runs_on_a_repository_of_one_line(tmp_path):
    (tmp_path / "a.py").write_text("x=1\n")
    git(tmp_path, "init", "-q")
    done = run("--repository", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "\n+An agent was here, and looked around first." in done.stdout


@pytest.mark.full
@needs("git")
def test_the_loop_runs_on_this_repository():
    done = run()
    assert done.returncode == 0, done.stderr
    assert "AGENT_NOTES.md" in done.stdout


def test_the_loop_appends_notes_and_images_too(tmp_path):
    Image.new("RGB", (3, 2)).save(tmp_path / "dot.png")
    calls = [("read", {"path": "dot.png"}), None]

    def model(messages, schemas):
        sent = calls.pop(0)
        if sent is None:
            return {"role": "assistant", "content": "Done."}
        function = {"name": sent[0], "arguments": sent[1]}
        return {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": function}]}

    run_loop = runpy.run_path(str(ROOT / "examples" / "agent_loop.py"))["run_loop"]
    with Workspace(tmp_path) as ws:
        messages = run_loop(model, ws.tools(), "Look.")
        calls += [("list_files", {"roots": ["."], "limit": 1}), None]
        (tmp_path / "other.txt").touch()
        noted = run_loop(model, ws.tools(dialect="tree-sitter-analyzer"), "List.")
    [image] = [part for part in messages[-2]["content"] if part["type"] == "image_url"]
    assert image["image_url"]["url"].startswith("data:image/png;base64,")
    assert "these are the first 1 of 2 entries" in noted[-2]["content"]


PRINTED = {
    "own_async_tool": [
        "The model sees read, edit, latest_release.",
        '2: {"package": "parser", "version": "2.1"}',
        "3 (failed): There is no stable release of unknown.",
        "+parser==2.1",
    ],
    "callback_rules": [
        "edit src/app.py: Edited src/app.py: 1 replacement",
        "write poetry.lock: The rule `change(*.lock)` denies this call.",
        "? edit tests/test_app.py: 1 removed, 0 added",
        "edit tests/test_app.py: Keep def test_old: fix the code instead.",
        "edit tests/test_app.py: Edited tests/test_app.py: 1 replacement",
        "grep : 2 matches in 1 file",
    ],
    "transaction_rollback": [
        "Taken back: main.py, line 2: '(' was never closed",
        "On disk: main.py",
        "+print(shapes.area(3, 4))",
        "On disk: main.py, shapes.py",
        "Undid 1 step.",
    ],
    "notebook": [
        "5|area = 3.14 * radius ** 2",
        "8|> 12.56",
        "+area = math.pi * radius ** 2",
        r"The file has 3 cells; the second is 'radius = 2\narea = math.pi * radius ** 2\n'.",
    ],
}


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_these_lines_in_order(name):
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    lines = iter(done.stdout.splitlines())
    missing = [wanted for wanted in PRINTED[name] if wanted not in lines]  # each after the one before
    assert missing == []
