"""The page of a review in Chromium, and the terminal review in a pseudo-terminal."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentfs import Workspace
from agentfs.results import Review
from scripts.browser import Browser, running
from tests.conftest import needs, program
from tests.kit import refused

# The page keeps the file that it would download; `saved()` returns its text.
KEEP = "window.kept = null; URL.createObjectURL = blob => { window.kept = blob; return '#'; };"
SAVED = "kept.text()"
# Colors of a selected element against the background that is seen behind it, as a ratio of luminances.
CONTRAST = """(() => {
  const numbers = color => color.match(/[\\d.]+/g).map(Number);
  const light = color => numbers(color).slice(0, 3).map(each => each / 255)
    .map(each => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
    .reduce((sum, each, at) => sum + each * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = node => {
    const found = getComputedStyle(node).backgroundColor;
    return numbers(found)[3] === 0 && node.parentElement ? behind(node.parentElement) : found;
  };
  const all = [...document.querySelectorAll("h1, h2, .bar span, .keys, pre, button, select")];
  return Math.min(...all.map(node => {
    const pair = [light(getComputedStyle(node).color), light(behind(node))];
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
  }));
})()"""
WINDOWS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running(program("chromium"), tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def show(browser: Browser, review: Review, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(review.to_html(), encoding="utf-8")
    browser.open(file.as_uri())
    browser.run(KEEP)


def press(browser: Browser, keys: str) -> None:
    """Press keys; a control character stands for one that types nothing."""
    names = {"\x1b": "Escape", "\t": "Tab", "\r": "Enter"}
    for key in keys:
        given = {"key": names.get(key, key), "text": key if key != "\x1b" else ""}
        browser.send(
            "Input.dispatchKeyEvent", type="keyDown", **given, windowsVirtualKeyCode=ord(key.upper())
        )
        browser.send("Input.dispatchKeyEvent", type="keyUp", key=given["key"])


@pytest.fixture
def top(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.txt").write_text("".join(f"line {number}\n" for number in range(200)))
    return root


@needs("chromium")
@pytest.mark.parametrize(("width", "scheme"), WINDOWS)
def test_the_keyboard_decides(top: Path, tmp_path: Path, browser: Browser, width: int, scheme: str):
    with Workspace(top) as ws:
        ws.write("a.txt", (top / "a.txt").read_text().replace("0\n", "0!\n"), overwrite=True)
        ws.host.edit("a.txt", "line 195", "LINE 195")
        (top / "a.txt").chmod(0o755)
        review = ws.review()
        browser.resize(width, 800, scheme)
        show(browser, review, tmp_path)
        assert browser.run(CONTRAST) >= 4.5
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run("document.querySelectorAll('article').length") == len(review.hunks) == 22
        head = browser.run("document.getElementById('head').textContent")
        assert head == review.summary == "1 file, 22 hunks"
        press(browser, "jajrjejx\x1bjaus")  # in the text, letters are typed
        marks = json.loads(browser.run(SAVED))
        mode, first, second, *_ = review.hunks
        assert (marks["accept"], marks["reject"]) == ([mode.id], [first.id])
        assert marks["edit"] == {second.id: "".join(second.new_lines) + "jx"}
        press(browser, "f")
        assert browser.run("document.activeElement.id") == "by"
        press(browser, "p")  # selects "program edit"
        assert (
            browser.run("[...document.querySelectorAll('article')].filter(each => !each.hidden).length") == 1
        )
        press(browser, "\x1brs")
        marks = json.loads(browser.run(SAVED))
        ours = next(each for each in review.hunks if each.by == "program edit")
        assert marks["reject"] == [first.id, ours.id]
        assert browser.complaints == []
        result = ws.apply_review(**marks)
        assert (result.accepted, len(result.places)) == (1, 3)
        text = (top / "a.txt").read_text()
        assert ("line 0\n" in text, "line 10!\njx\n" in text, "line 195" in text) == (True, True, True)
        refused(lambda: ws.apply_review(**marks))


@needs("chromium")
@pytest.mark.long  # because it asserts a time
def test_a_page_of_2000_hunks_opens_in_2_seconds(top: Path, tmp_path: Path, browser: Browser):
    for name in range(10):
        (top / f"{name}.txt").write_text("".join(f"line {number}\n" for number in range(400)))
    with Workspace(top) as ws:
        for name in range(10):
            text = (top / f"{name}.txt").read_text()
            ws.write(f"{name}.txt", re.sub(r"([02468])\n", r"\1!\n", text), overwrite=True)
        review = ws.review()
    assert len(review.hunks) == 2000
    browser.resize(1280, 900, "light")
    times: list[float] = []
    for _ in range(3):
        show(browser, review, tmp_path)
        browser.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        entry = "performance.getEntriesByType('navigation')[0].loadEventEnd"
        times.append(browser.run(entry))
    print([round(each) for each in times], "ms")  # noqa: T201 - the figure for `docs/internals`
    assert min(times) < 2000, times
    press(browser, "kas")
    assert json.loads(browser.run(SAVED))["accept"] == [review.hunks[-1].id]


@needs("chromium")
def test_a_hostile_file_runs_nothing(tmp_path: Path, browser: Browser):
    root = tmp_path / "tree"
    root.mkdir()
    run = "<img src=x onerror=\"document.title='run'\">"
    text = f"</script><script>document.title = 'run'</script>\n{run}\n<!--<script>\n"
    with Workspace(root) as ws:
        ws.write("a'\"<b>.txt", f"{text}\u202ebidi\n{'x' * 1_000_000}\n")
        ws.write("</script><script>alert(1)<\u2066.txt", "text\n")
        with ws.recording(run):
            (root / f"a{'b' * 200}").write_text("c")
        show(browser, ws.review(), tmp_path)
    assert browser.run("document.title") == "Review"
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.run("document.scripts.length") == 2
    shown = browser.run("document.body.innerText")
    assert "</script><script>document.title = 'run'</script>" in shown
    assert "⟦U+202E⟧bidi" in shown
    assert "998000 more characters" in shown
    assert "a'\"<b>.txt" in shown
    assert f"by command {run}" in shown
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", shown)
    assert browser.complaints == []


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


@pytest.mark.full
def test_without_a_terminal_nothing_changes(kept: tuple[Path, Path]):
    top, state = kept
    before = (top / "a.txt").read_bytes()
    command = [sys.executable, "-m", "agentfs", "review", "--state", str(state)]
    for option in ([], ["--json"], ["--html"]):
        done = subprocess.run([*command, *option], capture_output=True, text=True, check=True)
        assert "four" in done.stdout
    assert (top / "a.txt").read_bytes() == before


@pytest.mark.full
def test_saved_marks_are_applied_unless_something_changed(kept: tuple[Path, Path], tmp_path: Path):
    top, state = kept
    with Workspace(top, state=state) as ws:
        review = ws.review()
    marks = tmp_path / "marks.json"
    marks.write_text(json.dumps({"reject": [review.hunks[0].id]}))
    command = [sys.executable, "-m", "agentfs", "review", "--state", str(state), "--apply", str(marks)]
    # Another root was ignored.
    elsewhere = subprocess.run(
        [*command, "--root", str(Path(__file__).parent)], capture_output=True, check=False
    )
    assert (elsewhere.returncode, b"belongs to another workspace" in elsewhere.stderr) == (2, True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "Taken back" in done.stdout) == (0, True)
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (again.returncode, "decided already" in again.stderr) == (2, True)
    for wrong in (b"[]", b"", b"\xff\xfe", b"[" * 100_000, b'{"reject": ["0"]}', b'{"name": "package"}'):
        marks.write_bytes(wrong)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False), wrong
    with Workspace(top, state=state) as ws:
        assert len(ws.review().hunks) == 2
