"""`move` of a directory tree: one step, all or nothing, and never outside the root."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentfs import AgentFSError, Limits, Policy, Workspace
from agentfs.editing import delete_move
from agentfs.fs import node, syscalls
from tests.faults.calls import refuse_renames
from tests.history.judges import can_mount, snapshot
from tests.kit import put, refused

FILES = {"d/a": "same\n", "d/e/b": "same\n", "d/e/c": "other\n", "d/.h/x": "hidden\n"}
FILES |= {"d/build/y": "ignored\n", "f": "f\n", ".gitignore": "build/\n"}


def fresh(top: Path) -> Path:
    shutil.rmtree(top, ignore_errors=True)
    put(top, FILES)
    for name in FILES:
        os.utime(top / name, (1, 1))
    (top / "d/e/c").chmod(0o755)
    (top / "d/e").chmod(0o750)
    (top / "d/empty").mkdir()
    (top / "d/relative").symlink_to("e/b")
    (top / "d/away").symlink_to("/etc/hostname")
    (top / "d/dangling").symlink_to("nowhere")
    return top


def moved(tree, path, to):
    return {
        to + name[len(path) :] if name == path or name.startswith(f"{path}/") else name: each
        for name, each in tree.items()
    }


@pytest.fixture
def top(tmp_path):
    return fresh(tmp_path / "root")


def test_a_directory_tree_is_moved_and_undone_as_one_step(top):
    before, status = snapshot(top), os.stat(top / "d/e/c")
    with Workspace(top) as ws:
        done = ws.move("d", "new")
        after = snapshot(top)
        assert after == moved(before, "d", "new")
        assert (done.path, done.to, done.type, done.files) == ("d", "new", "directory", 8)
        assert str(done) == 'Moved "d" to "new" (directory, 8 files).'
        kept = os.stat(top / "new/e/c")
        assert (kept.st_ino, kept.st_mtime, kept.st_nlink) == (status.st_ino, 1, 1)
        assert os.stat(top / "new/a").st_ino != os.stat(top / "new/e/b").st_ino  # with equal contents
        assert ws.undo().steps == 1
        assert snapshot(top) == before
        ws.redo()
        assert snapshot(top) == after
        origins = {file.path: file.moved_from for file in ws.changes().files}
        assert (origins["new/a"], origins["new/e/b"], origins["new/e/c"]) == ("d/a", "d/e/b", "d/e/c")
        with ws.transaction() as tx:
            tx.move("new", "other")
            tx.move("other", "d")
        assert not ws.changes().files
    assert snapshot(top) == before


def test_a_move_makes_missing_directories(top):
    (top / "there").mkdir()
    before = snapshot(top)
    with Workspace(top) as ws:
        ws.move("d", "x/y/z")
        ws.undo()
        assert snapshot(top) == before
        assert 'pass to="there/d"' in str(refused(lambda: ws.move("d", "there"), "already_exists"))
        ws.move("d", "there/d")
        assert snapshot(top) == moved(before, "d", "there/d")


@pytest.mark.parametrize(("path", "to", "code"), [
    ("d", "d/e/new", "invalid_argument"), ("d", "d", "already_exists"), ("d/e", "d", "already_exists"),
    ("d", "f", "already_exists"), ("d", "f/x", "not_a_directory"), (".", "new", "refused"),
    ("d", "../new", "outside_workspace"), ("d/away/x", "new", "outside_workspace"),
    ("none", "new", "not_found"), ("f", "d/a", "already_exists"), ("f", "f", "already_exists"),
    ("f", "d/away/x", "outside_workspace"),
])  # fmt: skip
def test_an_impossible_move_changes_nothing(top, path, to, code):
    before = snapshot(top)
    with Workspace(top) as ws:
        refused(lambda: ws.move(path, to), code)
    assert snapshot(top) == before


@pytest.mark.parametrize(("name", "to"), [
    ("d/e/.env", "new"), ("d/e/.mcp.json", "new"), ("d/.git/hooks/pre-commit", "new"),
    ("d/hooks/pre-commit", ".git"),
])  # fmt: skip
def test_one_entry_that_may_not_be_moved_keeps_the_whole_directory(top, name, to):
    put(top, {name: "x"})
    before = snapshot(top)
    with Workspace(top) as ws:
        assert '"d/' in str(refused(lambda: ws.move("d", to), "protected"))
        with ws.transaction() as tx:
            refused(lambda: tx.move("d", to), "protected")
        assert not ws.changes().files
    assert snapshot(top) == before


@pytest.mark.parametrize("persistent", [False, True])
def test_regression_what_cannot_be_read_moves_too(top, tmp_path, persistent):
    """A FIFO, a large file, and a directory with one could not be moved."""
    os.mkfifo(top / "d/e/pipe")
    (top / "large").write_bytes(b"x" * 2000)
    os.link(top / "large", top / "d/e/large")
    inode = (top / "large").stat().st_ino
    limits, state = Limits(file_bytes=1000), tmp_path / "state" if persistent else None
    ws = Workspace(top, limits=limits, state=state)
    assert ws.move("d", "new").files == 10
    assert ws.move("large", "larger").files == 1
    assert ws.move("new/e/pipe", "pipe").type == "other"
    assert (top / "new/e/large").stat().st_ino == (top / "larger").stat().st_ino == inode
    assert (top / "pipe").is_fifo()
    assert not (top / "d").exists()
    if persistent:
        ws.close()
        ws = Workspace(top, limits=limits, state=state)
    ws.undo(3)
    assert (top / "d/e/pipe").is_fifo()
    assert (top / "d/e/large").stat().st_ino == (top / "large").stat().st_ino == inode
    ws.close()


def test_rules_apply_to_each_file_of_a_moved_directory(top):
    before = snapshot(top)
    for rule in ("read(d/e/c)", "change(d/e/**)", "move(new/.h/**)", "move"):
        with Workspace(top, policy=Policy(deny=[rule])) as ws:
            refused(lambda: ws.move("d", "new"), "refused")
        assert snapshot(top) == before, rule
    asked = []
    with Workspace(top, policy=Policy(on_ask=lambda request: asked.append(request.paths) or True)) as ws:
        ws.move("d", "new")
    (paths,) = asked
    moved = [name for name in before if name.startswith("d/")]
    assert paths[:2] == ("d", "new")
    assert set(paths[2:]) == {*moved, *(f"new{name[1:]}" for name in moved)}


def test_a_moved_file_keeps_its_read_history(top):
    with Workspace(top) as ws:
        ws.read("d/e/c")
        ws.move("d", "new")
        ws.write("new/e/c", "changed\n")
        refused(lambda: ws.write("new/a", "never read\n"), "unread")


def before_and_after(monkeypatch, name, *, before=lambda: None, after=lambda: None):
    real = getattr(delete_move, name)

    def called(*args, **named):
        before()
        found = real(*args, **named)
        after()
        return found

    monkeypatch.setattr(delete_move, name, called)


def test_a_file_created_during_the_move_moves_too(top, monkeypatch):
    before_and_after(monkeypatch, "_tree_at", after=lambda: put(top, {"d/e/late": "late\n"}))
    before = {**snapshot(top), "d/e/late": ("file", 0o644, b"late\n")}
    with Workspace(top) as ws:
        ws.move("d", "new")
        assert snapshot(top) == moved(before, "d", "new")
        assert 'not removed, because it is not empty: "new", "new/e"' in ws.undo().notes
        assert (top / "new/e/late").read_text() == "late\n"
        assert not (top / "d/e/late").exists()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", ["d", "d/e"])
@pytest.mark.parametrize("method", ["move", "delete"])
def test_a_directory_swapped_for_a_link_leads_nothing_outside(top, tmp_path, monkeypatch, method, name, when):
    out = fresh(tmp_path / "out")
    before = snapshot(out)

    def swap():
        (top / name).rename(top / f"{name}.old")
        (top / name).symlink_to(out / name)

    function = {"move": "_tree_at", "delete": "_nodes_to_delete"}[method]
    before_and_after(monkeypatch, function, **{when: swap})
    with Workspace(top) as ws:
        try:
            ws.move("d", "new") if method == "move" else ws.delete("d", recursive=True)
        except AgentFSError:
            assert os.path.lexists(top / "d")
            assert not os.path.lexists(top / "new")
        else:  # the link itself
            assert method == "delete" or os.path.islink(top / "new/e")
    assert snapshot(out) == before


def test_a_directory_too_large_for_one_step_is_not_moved(top, monkeypatch):
    monkeypatch.setattr(delete_move, "_MOST_MOVED", 5)
    before = snapshot(top)
    with Workspace(top) as ws:
        assert "more than 5 entries" in str(refused(lambda: ws.move("d", "new"), "too_large"))
    assert snapshot(top) == before


MOUNTS = """
import os, subprocess, sys
from contextlib import nullcontext
from pathlib import Path
from agentfs import Workspace
from tests.history.judges import snapshot
top = Path(sys.argv[1])
for name in ("other", "d/inner"):
    (top / name).mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(top / name)], check=True)
(top / "d/inner/x").write_text("x\\n")
with Workspace(top) as ws:
    before = snapshot(top)
    ws.move("d", "new")  # what is mounted there moves too
    assert (top / "new/inner/x").read_text() == "x\\n"
    ws.undo()
    assert snapshot(top) == before
    print(ws.move("d/e", "other/e"))
    assert (top / "other/e/b").read_text() == "same\\n"
    assert (top / "other/e/c").stat().st_mode & 0o777 == 0o755
    assert not (top / "d/e").exists()
    ws.undo()
    assert snapshot(top) == before
"""


@pytest.mark.skipif(not can_mount(), reason="mounting is not allowed here")
def test_a_mount_point_moves_and_another_file_system_is_copied_to(top):
    command = ["unshare", "-m", sys.executable, "-c", MOUNTS, str(top)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert ran.returncode == 0, ran.stderr
    assert 'Moved "d/e" to "other/e" (directory, 2 files).' in ran.stdout


@pytest.fixture(params=["renamed", "made anew"])
def way(request, monkeypatch):
    """Run with renames of directories, and with a system that cannot rename them, as on an overlay."""
    if request.param == "made anew":
        refuse_renames(monkeypatch)


READER = """
import os, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
top = sys.argv[1]
print("ready", flush=True)
while not os.path.exists(f"{top}/stop"):
    for here, directories, files in os.walk(top):
        for name in files:
            try:
                if "secret" in open(f"{here}/{name}").read():
                    print("leaked", f"{here}/{name}", flush=True)
                    sys.exit(1)
            except OSError:
                pass
"""


@pytest.mark.full
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_another_user_reads_nothing_while_a_private_directory_is_moved(way, public):
    top = public / "root"
    (top / "d/e").mkdir(parents=True)
    (top / "d").chmod(0o700)
    for number in range(30):
        (top / f"d/e/{number}").write_text("secret\n")
    command = [sys.executable, "-S", "-c", READER, str(top)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        try:
            assert reader.stdout
            assert reader.stdout.readline() == "ready\n"
            with Workspace(top) as ws:
                for number in range(6):
                    ws.move("d" if number == 0 else f"m{number - 1}", f"m{number}")
                ws.undo(3)
                ws.undo()
            (top / "stop").touch()
            told, _ = reader.communicate()
        finally:
            reader.kill()
    assert (reader.returncode, told) == (0, "")
    assert not [name for name in snapshot(top) if ".agentfs-" in name]


def test_a_file_added_to_a_moved_directory_is_not_lost_when_the_move_is_undone(top, way):
    before = snapshot(top)
    with Workspace(top) as ws:
        ws.move("d", "new")
        (top / "new/e/theirs").write_text("x")
        assert 'not removed, because it is not empty: "new", "new/e"' in ws.undo().notes
        assert (top / "new/e/theirs").read_text() == "x"
        assert {path: node for path, node in snapshot(top).items() if not path.startswith("new")} == before


def test_regression_a_move_and_its_undo_read_and_hash_nothing(top, monkeypatch):
    """Each file was read and hashed, so that files over the limit for changes could not be moved."""

    def fail(*_):
        raise AssertionError("a file was opened, or its content hashed")

    before = snapshot(top)
    with Workspace(top) as ws, monkeypatch.context() as patch:
        patch.setattr(syscalls, "open_file", fail)
        patch.setattr(node, "revision_of", fail)
        ws.move("d", "new")
        ws.move("f", "new/f")
        ws.undo()
        ws.undo()
    assert snapshot(top) == before


def test_steps_with_a_move_between_edits_are_undone_and_redone_together(top):
    before = snapshot(top)
    with Workspace(top) as ws:
        ws.edit("d/e/b", "same", "edited")
        ws.move("d", "new")
        ws.edit("new/e/c", "other", "changed")
        ws.move("new/a", "a")
        after = snapshot(top)
        files = {file.path: (file.moved_from, file.added, file.removed) for file in ws.changes().files}
        assert files["new/e/b"] == ("d/e/b", 1, 1)
        assert files["new/e/c"] == ("d/e/c", 1, 1)
        assert files["a"] == ("d/a", 0, 0)
        ws.undo(4)
        assert snapshot(top) == before
        ws.redo(4)
        assert snapshot(top) == after


def test_an_edit_by_another_program_is_not_lost_if_a_move_and_an_edit_are_redone(top):
    """The moved file is not read, but the edit after it must see what was there."""
    with Workspace(top) as ws:
        ws.move("f", "g")
        ws.edit("g", "f", "edited")
        ws.undo(2)
        (top / "f").write_text("theirs\n")
        refused(lambda: ws.redo(2))
        assert (top / "f").read_text() == "theirs\n"
        assert not (top / "g").exists()
