"""Recordings: what other processes change in the tree is one step of the journal."""

import asyncio
import itertools
import os
import subprocess
import threading
import time
from contextlib import suppress

import pytest

from agentfs import Limits, Policy, Toolset, Workspace
from agentfs.errors import ClosedError, InvalidArgumentError, RefusedError
from agentfs.fs import syscalls
from agentfs.history.scan import Status
from agentfs.results import ToolResult
from tests.history.judges import git_applied, reopening, snapshot
from tests.kit import in_threads, put, refused

TEN = "".join(f"{number}\n" for number in range(1, 11))


@pytest.fixture(params=["memory", "state", "watched"])
def reopened(request, tmp_path):
    yield from reopening(request.param, tmp_path)


@pytest.fixture
def root(tmp_path, reopened):
    top = tmp_path / "root"
    (top / "src" / "deep").mkdir(parents=True)
    (top / "a.txt").write_text(TEN)
    (top / "run.sh").write_text("#!/bin/sh\n")
    (top / "run.sh").chmod(0o755)
    put(top, {"src/one.py": "one\n" * 30, "src/deep/two.py": b"caf\xe9\r\n", ".hidden": "hidden\n"})
    (top / "link").symlink_to("a.txt")
    (top / "empty").mkdir(mode=0o700)
    return top


def run(command, root):
    subprocess.run(command, shell=True, cwd=root, check=True, capture_output=True)


EVERYTHING = (
    "sed -i s/5/five/ a.txt; rm run.sh; mv src lib; echo more >> lib/one.py; ln -sfn lib/one.py link;"
    " chmod 600 .hidden; rmdir empty; mkdir -p new/deep; echo new > new/deep/file"
)


def test_the_changes_of_a_command_are_one_step(root, reopened, tmp_path):
    before = snapshot(root)
    with reopened().recording("make a mess") as recorded:
        assert recorded.result is None
        run(EVERYTHING, root)
    after = snapshot(root)
    result = recorded.result
    by_action = {}
    for file in result.files:
        if file.type != "directory":
            by_action.setdefault(file.action, []).append(file.path)
    assert by_action == {
        "changed": [".hidden", "a.txt", "link"],
        "moved": ["lib/deep/two.py"],
        "created": ["lib/one.py", "new/deep/file"],  # the first is not a move: its content differs
        "deleted": ["run.sh", "src/one.py"],
    }
    assert result.text.endswith("\n[undo takes it back: undo()]")
    assert (result.label, result.lost) == ("make a mess", ())
    undone = reopened().undo()
    assert undone.steps == 1
    assert snapshot(root) == before
    reopened().redo()
    assert snapshot(root) == after
    assert {file.label for file in reopened().changes().files} == {"make a mess"}
    reopened().undo()
    assert git_applied(root, result.patch, tmp_path / "scratch").keys() >= {"lib/one.py", "new/deep/file"}


def test_a_recording_has_what_changed_in_its_block_also_if_that_raises(root, reopened):
    with reopened().recording("nothing") as recorded:
        (root / "a.txt").write_text(TEN)
        os.utime(root / "run.sh", (1, 1))
    said = 'Nothing that undo takes back was changed.\nonly the time was changed: "a.txt", "run.sh"'
    assert (recorded.result.files, recorded.result.text[: len(said)]) == ((), said)
    with pytest.raises(InvalidArgumentError, match="nothing to undo"):
        reopened().undo()
    (root / "a.txt").write_text("outside\n")
    before = snapshot(root)
    with suppress(ZeroDivisionError), reopened().recording("fails") as recorded:
        (root / "new").write_text("x\n")
        _ = 1 // 0
    assert [(file.path, file.action) for file in recorded.result.files] == [("new", "created")]
    reopened().undo()
    assert snapshot(root) == before


def test_a_change_right_after_a_snapshot_that_leaves_size_and_times_is_seen(root, reopened):
    for number in range(20):
        (root / "a.txt").write_text(f"{number:02}\n")
        status = (root / "a.txt").stat()
        with reopened().recording("edit") as recorded:
            (root / "a.txt").write_text(f"{number + 50:02}\n")
            os.utime(root / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
        assert [file.path for file in recorded.result.files] == ["a.txt"]


def test_changes_of_the_workspace_within_the_block_are_its_own_steps(root, reopened):
    before = snapshot(root)
    ws = reopened()
    with ws.recording("shell") as recorded:
        ws.edit("a.txt", "2\n", "two\n")
        run("sed -i s/^9$/nine/ a.txt; echo x > shell", root)
        ws.write("mine", "x\n")
        ws.edit("a.txt", "5\n", "five\n")
        run("sed -i s/^7$/seven/ a.txt; echo y >> mine", root)
    assert [(file.path, file.action) for file in recorded.result.files] == [
        ("a.txt", "changed"),
        ("mine", "changed"),
        ("shell", "created"),
    ]
    assert b"-9\n" in recorded.result.patch
    assert b"+seven\n" in recorded.result.patch
    assert b"+two\n" not in recorded.result.patch
    assert b"+five\n" not in recorded.result.patch
    ws.undo()  # the last part of the recording
    assert (root / "a.txt").read_text() == (
        TEN.replace("2\n", "two\n").replace("5\n", "five\n").replace("9\n", "nine\n")
    )
    assert (root / "mine").read_text() == "x\n"
    ws.undo(4)  # the steps of the workspace, and the part of the command before them
    assert snapshot(root) == before


CHANGES = {
    **{
        command: (command,)
        for command in (
            "rm a.txt; mkdir a.txt",
            "rmdir empty; echo new > empty",
            "rm link; mkdir link",
            "rmdir empty; ln -s a.txt empty",
            "mv a.txt b; mkdir a.txt; mv b a.txt/a.txt",
            "mv src t; mv a.txt src; mv t a.txt",
        )
    },
    "the lines of a command": (
        "sed -i s/^2$/two/ a.txt",
        lambda ws: ws.edit("a.txt", "two\n", "zwei\n"),
        "sed -i s/zwei/deux/ a.txt",
    ),
    "a file of a command": ("echo x > new", lambda ws: ws.edit("new", "x", "y"), "echo z >> new"),
    "a file of a command, deleted": ("echo x > new", lambda ws: ws.delete("new"), "echo z > new"),
    "a file that a command moved": (
        "mv a.txt b.txt",
        lambda ws: ws.edit("b.txt", "3\n", "three\n"),
        "mv b.txt a.txt",
    ),
    "a directory that a command deleted": (
        "rm -r src",
        lambda ws: ws.write("src/deep/y", "y\n"),
        "rm -r src; mkdir src",
    ),
    "a directory with a file of a command": (
        "echo x > src/x",
        lambda ws: ws.move("src", "moved"),
        "rm moved/x; mv moved/deep deep",
    ),
    "a file that a command made a directory": (
        "rm a.txt; mkdir a.txt; echo x > a.txt/x",
        lambda ws: ws.edit("a.txt/x", "x", "y"),
        "rm -r a.txt; echo z > a.txt",
    ),
    "a directory that a command made a file": (
        "rm -r src; echo x > src",
        lambda ws: ws.edit("src", "x", "y"),
        "rm src; mkdir src; echo z > src/one.py",
    ),
    "an ignored file": (
        "echo .hidden > .gitignore; echo x > .hidden",
        lambda ws: ws.write(".hidden", "y\n"),
        "echo z >> a.txt",
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_a_command_changes_between_changes_of_the_workspace_is_a_step_of_its_own(root, reopened, case):
    states = [snapshot(root)]
    ws = reopened(policy=Policy(overwrite="always"))
    ws.checkpoint("start")
    with ws.recording("shell"):
        for change in CHANGES[case]:
            run(change, root) if isinstance(change, str) else change(ws)
            states.append(snapshot(root))
    for wanted in states[-2::-1]:
        ws.undo()
        assert snapshot(root) == wanted
    for wanted in states[1:]:
        ws.redo()
        assert snapshot(root) == wanted
    ws.rollback("start")
    assert snapshot(root) == states[0]


def test_a_recording_within_a_recording_has_its_own_step(root, reopened):
    ws = reopened()
    ws.edit("a.txt", "2\n", "two\n")
    with ws.recording("outer") as outer:
        ws.undo()  # not recorded
        ws.redo()
        run("echo x > before", root)
        with ws.recording("inner") as inner:
            run("echo x > within; echo y >> before", root)
        run("echo x > after; echo z >> before", root)
    assert [file.path for file in inner.result.files] == ["before", "within"]
    assert [file.path for file in outer.result.files] == ["after", "before"]
    for text in ("x\ny\nz\n", "x\ny\n", "x\n"):
        assert (root / "before").read_text() == text
        reopened().undo()
    assert not {"before", "within", "after"} & snapshot(root).keys()
    reopened().redo(3)
    assert (root / "before").read_text() == "x\ny\nz\n"


# What is not covered


def test_ignored_files_are_counted_and_recorded_on_request(root, reopened):
    put(root, {".gitignore": "build/\n", "build/objects/out": "old\n"})
    out = root / "build" / "objects" / "out"  # only in .git are the names of stores not looked into

    def recorded(text, **more):
        with reopened().recording("make", **more) as recording:
            out.write_text(text)
        return recording.result

    result = recorded("new\n")
    assert (result.files, result.lost, result.not_covered) == ((), ("build/objects/out",), {"ignored": 1})
    assert [file.path for file in recorded("newer\n", include_ignored=True).files] == ["build/objects/out"]
    reopened().undo()
    assert out.read_text() == "new\n"
    assert recorded("newest\n").files == ()


def test_a_change_of_the_ignore_rules_deletes_and_creates_nothing(root, reopened):
    put(root, {".gitignore": "build/\n", "build/out": "old\n"})
    ws = reopened()
    with ws.recording("first"):
        pass
    os.utime(root / "build" / "out")
    time.sleep(0.1)
    with ws.recording("shows build") as recorded:
        put(root, {".gitignore": "*.txt\n", "build/made": "new\n"})
    paths = {file.path: file.action for file in recorded.result.files}
    assert paths.get("build/out") is None
    assert paths.get("a.txt") is None
    assert recorded.result.lost == ("build/made",), "it may be older than the recording"
    ws.undo()
    assert (root / "build" / "out").read_text() == "old\n"
    assert (root / "a.txt").read_text() == TEN


@pytest.mark.parametrize(
    ("limits", "reason"),
    [(Limits(file_bytes=1000), "too large"), (Limits(snapshot_bytes=2000), "over Limits.snapshot_bytes")],
)
def test_a_file_that_is_too_large_is_reported_and_not_restored(root, reopened, limits, reason):
    ws = reopened(limits=limits)
    (root / "large").write_bytes(b"x" * 2001)
    with ws.recording("grow") as recorded:
        (root / "large").write_bytes(b"x" * 3000)
        (root / "a.txt").write_text("new\n")
    assert recorded.result.lost == ("large",)
    assert recorded.result.not_covered[reason] == 1
    assert '"large"' in recorded.result.text
    undone = ws.undo()
    assert (root / "large").stat().st_size == 3000
    assert undone.notes == ('left as it is, because its content was not kept: "large"',)


def test_contents_of_protected_files_are_never_kept(root, reopened, tmp_path):
    put(root, {".env": "TOKEN=secret-secret\n", "key.pem": "secret-secret\n"})
    ws = reopened()
    with ws.recording("leak") as recorded:
        (root / ".env").write_text("TOKEN=secret-secret-2\n")
        (root / "key.pem").unlink()
        (root / "a.txt").write_text("x\n")
    assert recorded.result.lost == (".env", "key.pem")
    assert "secret-secret" not in f"{recorded.result.text}{recorded.result.patch}"
    for (data,) in ws._journal.contents.database.read("SELECT data FROM contents")[0]:
        assert b"secret-secret" not in data
    ws.undo()
    assert (root / ".env").read_text() == "TOKEN=secret-secret-2\n"


def test_a_forked_child_does_not_end_the_recording_of_its_parent(root, reopened):
    block = reopened().recording("parent")
    recorded = block.__enter__()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            block.__exit__(None, None, None)
        except RefusedError:
            status = 0
        os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    (root / "a.txt").write_text("x\n")
    block.__exit__(None, None, None)
    assert [file.path for file in recorded.result.files] == ["a.txt"]


# Bad input


def test_a_recording_that_may_not_begin_is_a_typed_error(root, reopened):
    def begin(ws, label="x"):
        return refused(lambda: ws.recording(label).__enter__())

    ws = reopened()
    for label in ("", "x" * 201, "x" * 10_000):
        assert "1 to 200 characters" in begin(ws, label).message
    assert "whole tree" in begin(ws.view(only=["src"])).message
    with Workspace(root, policy=Policy(read_only=True)) as reading:
        assert begin(reading).code == "read_only"
    with Workspace(root, limits=Limits(walk_entries=5)) as small:
        assert begin(small).code == "too_large"
    ws.close()
    assert begin(ws).code == "closed"


def test_a_workspace_that_is_closed_in_the_block_keeps_the_recording_open(root, tmp_path):
    state = tmp_path / "kept"
    ws = Workspace(root, state=state)
    with suppress(ClosedError), ws.recording("closed") as recorded:
        (root / "a.txt").write_text("x\n")
        ws.close()
    assert recorded.result is None
    with Workspace(root, state=state) as again:
        assert "recording" in again.recovery_notes[0]
        again.undo()
    assert (root / "a.txt").read_text() == TEN


@pytest.mark.parametrize(("magic", "changing"), [(0x65735546, True), (0x6969, False)], ids=["FUSE", "NFS"])
def test_a_remote_file_system_and_inodes_that_change_by_themselves_cost_time_only(
    root, reopened, monkeypatch, magic, changing
):
    numbers, status = iter(range(10**6, 10**9)), Status.of
    monkeypatch.setattr(syscalls, "file_system", lambda _: magic)
    if changing:
        monkeypatch.setattr(Status, "of", lambda found: status(found)._replace(inode=next(numbers)))
    before = snapshot(root)
    with reopened().recording("edit") as recorded:
        put(root, {"a.txt": "x\n", "new": "x\n"})
    assert [file.path for file in recorded.result.files] == ["a.txt", "new"]
    reopened().undo()
    assert snapshot(root) == before


@pytest.mark.parametrize("rules", [".git/info/exclude", "src/.gitignore", "src/.git/info/exclude"])
def test_a_change_of_rules_that_no_scan_covers_is_noticed(root, reopened, rules):
    for repository in (root, root / "src"):
        subprocess.run(["git", "init", "-q", repository], check=True)
        (repository / ".git" / "info").mkdir(exist_ok=True)
    (root / "src" / ".gitignore").write_text(".gitignore\n")  # ignores itself
    ws = reopened()
    with ws.recording("nothing"):
        time.sleep(0.1)  # the rule files are no longer young
    with ws.recording("seen") as recorded:
        (root / "src" / "deep" / "x.log").write_text("1\n")
    assert [file.path for file in recorded.result.files] == ["src/deep/x.log"]
    with (root / rules).open("a") as file:
        file.write("*.log\n")
    with ws.recording("ignored") as recorded:
        (root / "src" / "deep" / "y.log").write_text("1\n")
    assert [file.path for file in recorded.result.files] == (["src/deep/y.log"] if rules[0] == "." else [])


def test_a_directory_that_has_become_a_link_is_not_followed_out(root, reopened, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "one.py").write_text("secret\n")
    with reopened().recording("nothing"):
        time.sleep(0.1)
    with reopened().recording("swap") as recorded:
        (root / "src").rename(root / "old")
        (root / "src").symlink_to(outside)
    assert "secret" not in str(recorded.result.to_dict())
    assert [file.path for file in recorded.result.files if file.type == "symlink"] == ["src"]
    assert snapshot(root / "old").keys() == {"one.py", "deep", "deep/two.py"}
    reopened().undo()
    assert (root / "src" / "one.py").read_text() == "one\n" * 30


# A process that dies


def test_a_recording_of_a_killed_process_is_completed_on_opening(root, tmp_path):
    state = tmp_path / "kept"
    before, child = snapshot(root), os.fork()
    if child == 0:
        ws = Workspace(root, state=state)
        with ws.recording("make fmt"):
            ws.edit("a.txt", "1\n2", "one\n2")
            run("echo new > new; rm run.sh; sed -i s/^7$/seven/ a.txt", root)
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    with Workspace(root, state=state) as ws:
        assert ws.recovery_notes[-1].startswith('recording "make fmt" was open when a process died')
        label = ws.changes().files[0].label
        assert label == "make fmt"
        ws.undo()
        assert (root / "a.txt").read_text() == TEN.replace("1\n2", "one\n2")
        ws.undo()
        assert snapshot(root) == before
    with Workspace(root, state=state) as ws:
        assert ws.recovery_notes == ()


# Tools, the command line, the remote side


def test_a_shell_tool_joins_with_one_line(root, reopened):
    ws = reopened()

    def bash(command: str) -> str:
        """Run a command.

        Args:
            command: A shell command.
        """
        done = subprocess.run(command, shell=True, cwd=root, check=True, capture_output=True, text=True)
        return done.stdout

    tools = Toolset([ws.read, ws.recorded(bash)])
    assert tools.call("bash", {"command": "echo said; echo x > new"}).content == (
        'said\n\n1 path changed.\ncreated "new" +1 -0\n[undo takes it back: undo()]'
    )
    assert tools.call("bash", {"command": "echo said"}).content == "said\n"
    assert ws.changes().files[0].label == "bash: echo said; echo x > new"

    @ws.recorded
    async def touch(path: str) -> ToolResult:
        (root / path).write_text("x\n")
        return ToolResult(True, "done")

    assert 'created "later"' in asyncio.run(touch("later")).notes[0]
    with pytest.raises(ZeroDivisionError):
        ws.recorded(lambda: (root / "last").write_text("x") / 0)()
    ws.undo(3)
    assert not (root / "new").exists()


def test_a_recording_that_begins_within_another_hides_no_change_of_other_programs(tmp_path):
    """Once, changes between the two scans at its begin were taken for known, and undo was a conflict."""
    (tmp_path / "a.txt").write_text("old\n")
    with Workspace(tmp_path) as ws:
        start, done = ws.checkpoint().name, threading.Event()

        def change():
            for number in itertools.count():
                with open(tmp_path / f"log{number % 3}", "a") as log:
                    log.write(f"{number}\n")
                (tmp_path / f"new{number}").touch()
                if done.wait(0.002):
                    break

        with ws.recording("outer"), in_threads(change):
            for _ in range(10):
                with ws.recording("inner"):
                    pass
            done.set()
        ws.host.rollback(start)
        assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


def test_regression_a_change_of_the_mode_alone_is_named_as_that(tmp_path):
    """It was "changed "run.sh" +0 -0"."""
    (tmp_path / "run.sh").touch()
    (tmp_path / "bin").mkdir()
    with Workspace(tmp_path) as ws:
        with ws.recording("chmod"):
            (tmp_path / "run.sh").chmod(0o755)
            (tmp_path / "bin").chmod(0o700)
            (tmp_path / "empty").touch()
        told = ws.changes().text
    assert 'changed the mode of "run.sh"\n' in told
    assert 'changed the mode of directory "bin"\n' in told
    assert "+0 -0" not in told
