"""Every call ends soon after `Limits.timeout`: refused with nothing changed, or completed once begun."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentfs import AgentFSError, Edit, Limits, Policy, Workspace
from tests.kit import error_of, put
from tests.test_memory import pdf

# A busy machine may be late. Without a deadline these calls take many times as long.
LATE = 5.0


def refused(call, *arguments):
    began = time.process_time()
    error = error_of(call, *arguments)
    assert error.code == "timeout"
    assert time.process_time() - began < LATE
    return error


@pytest.fixture
def many_edits(tmp_path):
    lines = [f"line number {number:07} of this file\n" for number in range(180_000)]
    (tmp_path / "big.txt").write_text("".join(lines))
    return [Edit(line, f"changed {line}") for line in lines[:: len(lines) // 2000]]


def test_multi_edit_of_many_edits_is_refused_at_the_deadline(tmp_path, many_edits):
    before = (tmp_path / "big.txt").read_bytes()
    with Workspace(tmp_path, limits=Limits(timeout=0.15)) as ws:
        error = refused(ws.multi_edit, "big.txt", many_edits)
    assert "nothing was changed" in error.message
    assert (tmp_path / "big.txt").read_bytes() == before


def test_one_call_of_a_tool_has_one_deadline_for_all_that_it_does(tmp_path):
    (tmp_path / "f").write_text("".join(f"line {number:07}\n" for number in range(60_000)))
    hunks = [f"@@\n-line {number:07}\n+changed {number}\n" for number in range(0, 60_000, 100)]
    patch = "*** Begin Patch\n*** Add File: new\n+x\n*** Update File: f\n" + "".join(hunks) + "*** End Patch"
    with Workspace(tmp_path, limits=Limits(timeout=0.05)) as ws:
        began = time.process_time()
        result = ws.tools(dialect="apply-patch").call("apply_patch", {"input": patch})
    assert time.process_time() - began < LATE
    assert result.error["code"] == "timeout"
    assert not (tmp_path / "new").exists()
    assert (tmp_path / "f").read_text().startswith("line 0000000\n")


def slowed(function, seconds):
    def call(*arguments, **more):
        time.sleep(seconds)
        return function(*arguments, **more)

    return call


@pytest.fixture
def ten_files(tmp_path):
    return put(tmp_path, [f"{number}.txt" for number in range(10)], "old\n")


def replace_all(ws):
    return ws.tools("all").call("replace", {"old_string": "old", "new_string": "new"})


def patch_all(ws):
    updates = "".join(f"*** Update File: {number}.txt\n@@\n-old\n+new\n" for number in range(10))
    patch = {"input": f"*** Begin Patch\n{updates}*** End Patch"}
    return ws.tools(dialect="apply-patch").call("apply_patch", patch)


def contents(top):
    return {path.read_text() for path in top.glob("*.txt")}


def test_a_change_of_many_files_that_has_begun_is_completed_past_the_deadline(ten_files, monkeypatch):
    with Workspace(ten_files, limits=Limits(timeout=0.8)) as ws:
        with monkeypatch.context() as slow:
            for name in ("rename", "replace"):
                slow.setattr(os, name, slowed(getattr(os, name), 0.3))
            began = time.monotonic()
            result = replace_all(ws)
        assert time.monotonic() - began > 0.8, "the deadline passed between the first file and the last"
        assert result.success
        assert contents(ten_files) == {"new\n"}
        ws.undo()
        assert contents(ten_files) == {"old\n"}


def slow_sync(monkeypatch):
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, slowed(getattr(os, name), 0.1), raising=False)


@pytest.mark.parametrize("change_all", [replace_all, patch_all])
def test_a_change_of_many_files_is_refused_if_the_deadline_passes_before_its_end(
    ten_files, monkeypatch, change_all
):
    """A change in one go is not begun; a patch, which is one step of several, is taken back."""
    slow_sync(monkeypatch)
    with Workspace(ten_files, limits=Limits(timeout=0.5)) as ws:
        assert change_all(ws).error["code"] == "timeout"
        assert contents(ten_files) == {"old\n"}
        assert sorted(os.listdir(ten_files)) == [f"{number}.txt" for number in range(10)]
        with pytest.raises(AgentFSError):
            ws.undo()


def test_a_call_after_a_transaction_that_took_long_has_its_own_time(ten_files, monkeypatch):
    with Workspace(ten_files, limits=Limits(timeout=0.3)) as ws:
        with monkeypatch.context() as slow, ws.transaction() as changes:
            slow_sync(slow)
            for number in range(5):
                changes.host.write(f"{number}.txt", "new\n")
        ws.undo()
        assert contents(ten_files) == {"old\n"}


def test_waiting_for_a_permission_is_not_counted(tmp_path):
    (tmp_path / "f").write_text("a\n")

    def ask(request):
        time.sleep(2.5)
        return True

    with Workspace(tmp_path, limits=Limits(timeout=2), policy=Policy(on_ask=ask)) as ws:
        assert ws.edit("f", "a", "b").replacements == 1
    assert (tmp_path / "f").read_text() == "b\n"


SLOW = """
import os, sys, time
real_pread, real_preadv = os.pread, os.preadv
def pread(fd, size, offset):
    time.sleep(0.05)
    return real_pread(fd, min(size, 4096), offset)
def preadv(fd, buffers, offset):
    time.sleep(0.05)
    return real_preadv(fd, [memoryview(buffers[0])[:4096]], offset)
from agentfs import AgentFSError, Edit, Limits, Workspace
ws = Workspace(sys.argv[1], limits=Limits(timeout=0.5))
ws.view(limits=Limits(timeout=60)).write("small", "x")  # the first change imports much
calls = {
    "read": lambda: ws.read("big"),
    "read from the end": lambda: ws.read("big", -5),
    "read ids": lambda: ws.read("big", line_ids=True),
    "edit": lambda: ws.edit("big", "a", "b"),
    "multi_edit": lambda: ws.multi_edit("big", [Edit("a", "b")]),
    "write": lambda: ws.write("big", "x", overwrite=True),
    "replace": lambda: ws.replace("a", "b"),
    "append": lambda: ws.append("big", "x"),
    "delete": lambda: ws.delete("big"),
    "apply_patch": lambda: ws.tools(dialect="apply-patch").call("apply_patch", {"input":
        "*** Begin Patch\\n*** Add File: new\\n+x\\n*** Update File: big\\n@@\\n-a\\n+b\\n*** End Patch"}),
}
os.pread, os.preadv = pread, preadv
for name, call in calls.items():
    began = time.monotonic()
    try:
        result = call()
        said = (getattr(result, "error", None) or {}).get("code", "ok")
    except AgentFSError as error:
        said = error.code
    print(name, said, round(time.monotonic() - began, 2), sep="\\t")
"""


@pytest.mark.full
def test_a_slow_file_is_left_after_the_pending_system_call(tmp_path):
    """Like a slow network file system, with 128 seconds for the whole file."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "big").write_bytes(b"abc\n" * (10 * 1024 * 1024 // 4))
    (tmp_path / "slow.py").write_text(SLOW)
    command = [sys.executable, str(tmp_path / "slow.py"), str(tree)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1], check=False)
    assert ran.returncode == 0, ran.stderr
    outcomes = [line.split("\t") for line in ran.stdout.splitlines()]
    assert len(outcomes) == 10, ran.stdout + ran.stderr
    assert [name for name, said, _ in outcomes if said != "timeout"] == []
    assert [(name, seconds) for name, _, seconds in outcomes if float(seconds) > LATE] == []
    assert sorted(path.name for path in tree.iterdir()) == ["big", "small"]
    assert (tree / "big").stat().st_size == 10 * 1024 * 1024


class SlowEntry:
    """An entry of a directory whose status is slow to get."""

    def __init__(self, listed, seconds):
        self.listed, self.seconds = listed, seconds

    def __getattr__(self, name):
        return getattr(self.listed, name)

    def stat(self, **options):
        time.sleep(self.seconds)
        return self.listed.stat(**options)


def slow_scandir(seconds, of_status=0.0):
    scan = os.scandir

    @contextmanager
    def scandir(path):
        with scan(path) as entries:
            yield (SlowEntry(each, of_status) for each in entries if time.sleep(seconds) is None)

    return scandir


@pytest.mark.parametrize(
    ("seconds", "of_status"), [pytest.param(0.001, 0.0, marks=pytest.mark.full), (0.0, 0.02)]
)
def test_a_listing_of_a_slow_directory_ends_at_the_deadline(tmp_path, monkeypatch, seconds, of_status):
    """Like a network file system: 5 seconds for all names, or for the status of half a page."""
    for number in range(5000 if seconds else 250):
        (tmp_path / f"{number:04}").touch()
    with Workspace(tmp_path, limits=Limits(timeout=0.3)) as ws:
        monkeypatch.setattr(os, "scandir", slow_scandir(seconds, of_status))
        began = time.monotonic()
        result = ws.ls()
        took = time.monotonic() - began
        monkeypatch.undo()
    assert took < 3
    assert result.skipped.reached == "timeout" or result.next is not None


def import_reader(root):
    """Read a short PDF, because the import of the reader alone can take a second."""
    (root / "short.pdf").write_bytes(pdf(b"BT /F1 12 Tf (some text) Tj ET"))
    with Workspace(root, limits=Limits(timeout=30)) as ws:
        ws.read("short.pdf")


@pytest.mark.full
def test_the_pages_of_a_pdf_that_were_read_before_the_deadline_are_shown(tmp_path):
    page = b"BT /F1 12 Tf " + b"() Tj " * 5000 + b"(some text) Tj ET"
    (tmp_path / "f.pdf").write_bytes(pdf(page, pages=900))
    import_reader(tmp_path)
    with Workspace(tmp_path, limits=Limits(timeout=2)) as ws:
        began = time.monotonic()
        result = ws.read("f.pdf")
        assert time.monotonic() - began < LATE
        assert 0 < result.end_line < 900
        assert (result.truncated_by, result.next["arguments"]["offset"]) == ("time", result.end_line + 1)
        assert "there was no time for more" in result.text


FORMS = [*(b"/X%d Do " % number * 10 for number in range(1, 6)), b"BT /F1 12 Tf " + b"(x) Tj " * 2000 + b"ET"]


@pytest.mark.full
@pytest.mark.parametrize(("contents", "said"), [
    ([b"BT " + b"(text) Tj " * 300_000 + b"ET"], "There is no time to read page"), (FORMS, ""),
])  # fmt: skip
def test_the_parsing_of_one_page_ends_at_the_deadline(tmp_path, contents, said):
    """The page of the second document consists of forms within forms."""
    (tmp_path / "f.pdf").write_bytes(pdf(*contents))
    import_reader(tmp_path)
    with Workspace(tmp_path, limits=Limits(timeout=1)) as ws:
        assert said in refused(ws.read, "f.pdf").message


def test_a_search_of_many_slow_files_ends_at_the_deadline(tmp_path, monkeypatch):
    put(tmp_path, [f"{number:02}.txt" for number in range(30)])
    with Workspace(tmp_path, limits=Limits(timeout=0.5)) as ws:
        monkeypatch.setattr(os, "open", slowed(os.open, 0.1))
        result = ws.grep("x")
    assert (result.skipped.reached, result.exact) == ("timeout", False)
    assert result.searched_files == result.total_files < 30


@pytest.mark.parametrize("seconds", [31, 86_400, 1e300, float("inf")])
def test_a_program_can_raise_the_timeout_without_a_ceiling(tmp_path, seconds):
    put(tmp_path, {"f.txt": "old\n"})
    with Workspace(tmp_path, limits=Limits(timeout=seconds)) as ws:
        assert ws.grep("old", timeout=seconds).total_matches == ws.grep("old").total_matches == 1
        assert ws.glob("*.txt", timeout=seconds).total == 1
        assert ws.replace("old", "new", preview=True).replacements == 1
        assert ws.edit("f.txt", "old", "new", preview=True).replacements == 1
        assert ws.read("f.txt").total_lines == 1
    error_of(Limits, timeout=float("nan"))


def test_a_program_can_raise_the_time_of_a_search_and_a_model_cannot(tmp_path):
    put(tmp_path, {"f.txt": "a" * 60 + "b\n"})
    with Workspace(tmp_path, limits=Limits(timeout=0.15)) as ws:
        began = time.monotonic()
        assert ws.grep("(a|aa)+(?!.)", timeout=0.3).skipped.reached == "timeout"
        assert time.monotonic() - began > 0.25
        tools = ws.tools(["grep", "glob"], expose={"grep": ["timeout"]})
        began = time.process_time()
        result = tools.call("grep", {"pattern": "(a|aa)+(?!.)", "timeout": 60})
        assert time.process_time() - began < 3
        assert "0.15 s" in result.content
        assert tools.call("grep", {"pattern": "(a|aa)+(?!.)", "timeout": 0.1}).content.count("0.1 s") == 1
