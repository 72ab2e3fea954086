"""The page of a review in Chromium, and the terminal review in a pseudo-terminal."""

import json
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentfs import Workspace
from agentfs.results import Review
from tests.conftest import needs

KEYS = """<script>
const press = key => (document.activeElement || document.body).dispatchEvent(
  new KeyboardEvent("keydown", { key, bubbles: true }));
let saved;
URL.createObjectURL = blob => { saved = blob; return "#"; };
KEYS.split("").forEach(press);
saved.text().then(text => { const made = document.createElement("pre"); made.id = "saved";
  made.textContent = text; document.body.append(made); });
</script>"""


def shown(page: str, tmp_path: Path, *options: str) -> str:
    """Return the document of a page after its scripts, from Chromium."""
    file = tmp_path / "page.html"
    file.write_text(page, encoding="utf-8")
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu"]
    command += [f"--user-data-dir={tmp_path}/user"]
    command += [*options, "--virtual-time-budget=3000", "--dump-dom", file.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def many(top: Path) -> Review:
    (top / "a.txt").write_text("".join(f"line {number}\n" for number in range(200)))
    with Workspace(top) as ws:
        ws.write("a.txt", (top / "a.txt").read_text().replace("0\n", "0!\n"), overwrite=True)
        return ws.review()


@needs("chromium")
@pytest.mark.parametrize("width", [600, 1400])
def test_the_keyboard_decides(tmp_path: Path, width: int):
    top = tmp_path / "tree"
    top.mkdir()
    review = many(top)
    script = KEYS.replace("KEYS", json.dumps("jajrjjkus"))
    document = shown(
        review.to_html().replace("</body>", f"{script}</body>"), tmp_path, f"--window-size={width},900"
    )
    found = re.search(r'<pre id="saved">(.*?)</pre>', document, re.DOTALL)
    assert found is not None
    marks = json.loads(found[1].replace("&lt;", "<"))
    first, second, *_ = review.hunks
    assert (marks["accept"], marks["reject"], marks["edit"]) == ([first.id], [second.id], {})
    assert marks["review"] == review.name
    with Workspace(top) as ws:
        ws.edit("a.txt", "line 1\n", "one\n")
        assert ws.review().name != review.name


@needs("chromium")
def test_a_hostile_file_runs_nothing(tmp_path: Path):
    top = tmp_path / "tree"
    top.mkdir()
    text = "</script><script>document.title = 'run'</script>\n<img src=x onerror=\"document.title='run'\">\n"
    with Workspace(top) as ws:
        ws.write("a'\"<b>.txt", f"{text}\u202ebidi\n{'x' * 1_000_000}\n")
        document = shown(ws.review().to_html(), tmp_path)
    assert "<title>Review</title>" in document
    assert "<img" not in document
    assert "⟦U+202E⟧bidi" in document
    assert "998000 more characters" in document
    assert "a'\"&lt;b&gt;.txt" in document or '\\"&lt;b&gt;.txt' in document


def answered(state: Path, answers: str, **variables: str) -> str:
    """Return the output of `agentfs review` in a pseudo-terminal, to which answers are typed."""
    near, far = pty.openpty()
    command = [sys.executable, "-m", "agentfs", "review", "--state", str(state)]
    environment = {**os.environ, "TERM": "dumb", **variables}
    process = subprocess.Popen(command, stdin=far, stdout=far, stderr=far, env=environment)
    os.close(far)
    output = b""
    asked = 0
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            output += os.read(near, 4096)
        except OSError:
            break
        if output.count(b"]? ") > asked and answers:
            asked += 1
            os.write(near, f"{answers[0]}\n".encode())
            answers = answers[1:]
    assert process.wait(10) == 0
    os.close(near)
    return output.decode()


@pytest.fixture
def kept(tmp_path: Path) -> tuple[Path, Path]:
    top, state = tmp_path / "tree", tmp_path / "state"
    top.mkdir()
    (top / "a.txt").write_text("1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    with Workspace(top, state=state) as ws:
        ws.edit("a.txt", "1\n", "one\n")
        ws.edit("a.txt", "4\n5\n", "four\nfive\n")
        ws.edit("a.txt", "9\n", "nine\n")
    return top, state


def test_the_terminal_keeps_takes_back_and_splits(kept: tuple[Path, Path]):
    top, state = kept
    output = answered(state, "?ysynn")
    assert "-1\r\n+one\r\n" in output
    assert "tool edit" in output
    assert "take the change back" in output
    assert "\x1b[" not in answered(state, "q", NO_COLOR="1")
    assert (top / "a.txt").read_text() == "one\n2\n3\nfour\n5\n6\n7\n8\n9\n"
    with Workspace(top, state=state) as ws:
        assert ws.review().hunks == ()
        ws.undo()
        assert "nine\n" in (top / "a.txt").read_text()


def test_the_terminal_edits_with_an_editor(kept: tuple[Path, Path]):
    top, state = kept
    answered(state, "eq", EDITOR="sed -i s/one/uno/")
    assert (top / "a.txt").read_text().startswith("uno\n2\n")


def test_without_a_terminal_nothing_changes(kept: tuple[Path, Path]):
    top, state = kept
    before = (top / "a.txt").read_bytes()
    command = [sys.executable, "-m", "agentfs", "review", "--state", str(state)]
    for option in ([], ["--json"], ["--html"]):
        done = subprocess.run([*command, *option], capture_output=True, text=True, check=True)
        assert "four" in done.stdout
    assert (top / "a.txt").read_bytes() == before


def test_saved_marks_are_applied_unless_something_changed(kept: tuple[Path, Path], tmp_path: Path):
    top, state = kept
    with Workspace(top, state=state) as ws:
        review = ws.review()
    marks = tmp_path / "marks.json"
    marks.write_text(json.dumps({"review": review.name, "reject": [review.hunks[0].id]}))
    command = [sys.executable, "-m", "agentfs", "review", "--state", str(state), "--apply", str(marks)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "Taken back" in done.stdout) == (0, True)
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (again.returncode, "have changed since" in again.stderr) == (2, True)
    marks.write_text("[]")
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2
