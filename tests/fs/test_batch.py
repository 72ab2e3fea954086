"""Several changes as one: metadata is restored or noted, by whatever method the change is made or undone."""

import errno
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from agentfs import AgentFSError, Policy, Workspace
from agentfs.errors import FileIOError, StaleError
from agentfs.fs import Change, DirectoryNode, FileNode, LinkNode, MovedNode, Root, collapsed, expanded, file
from agentfs.history.database import Contents
from agentfs.history.rows import node_from_json, node_to_json
from tests.kit import put


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A root with a file and an empty directory that only its owner may enter."""
    top = tmp_path / "root"
    (top / "empty").mkdir(parents=True)
    (top / "empty").chmod(0o700)
    (top / "f").write_text("f\n")
    return top


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize(
    "refill",
    [lambda ws: ws.write("empty/in", "x"), lambda ws: ws.move("f", "empty/in")],
    ids=["write", "move"],
)
@pytest.mark.parametrize(
    "back", [lambda ws: ws.undo(2), lambda ws: (ws.undo(), ws.undo()), lambda ws: ws.rollback("start")]
)
def test_undo_restores_the_mode_of_a_directory_that_was_deleted_and_created_again(
    private, tmp_path, back, refill, persistent
):
    """Undone at once, the two steps only change the mode of the directory."""
    with Workspace(private, state=tmp_path / "state" if persistent else None) as ws:
        ws.checkpoint("start")
        ws.delete("empty")
        refill(ws)
        made = mode_of(private / "empty")
        assert made != 0o700
        back(ws)
        assert os.listdir(private / "empty") == []
        assert mode_of(private / "empty") == 0o700
        ws.redo(2)
        assert os.listdir(private / "empty") == ["in"]
        assert mode_of(private / "empty") == made


def test_the_mode_of_a_directory_is_part_of_its_change(private):
    with Workspace(private) as ws:
        ws.delete("empty")
        ws.write("empty/in", "x")
        ws.delete("empty/in")
        assert [(file.path, file.action) for file in ws.changes().files] == [("empty", "changed")]
        assert ws.changes().patch == b""


def conflict(change: Change, _: object) -> AgentFSError:
    return StaleError(change.path)


def test_a_failed_batch_restores_the_mode_of_a_removed_directory(private, monkeypatch):
    real = os.rmdir

    def rmdir(path, **options):
        real(path, **options)
        raise OSError(errno.EIO, "broken after it was done")

    monkeypatch.setattr(os, "rmdir", rmdir)
    changes = [Change("empty", DirectoryNode(0o700), None), Change("g", None, FileNode.of(0o644, b"g\n"))]
    with Root(private, Policy()) as root, pytest.raises(FileIOError):
        root.apply(changes, max_bytes=100, conflict=conflict)
    assert mode_of(private / "empty") == 0o700
    assert sorted(os.listdir(private)) == ["empty", "f"]


def test_a_directory_that_another_program_created_again_keeps_its_mode(private):
    with Workspace(private) as ws:
        ws.delete("empty")
        (private / "empty").mkdir(mode=0o750)
        (private / "empty").chmod(0o750)
        ws.undo()
    assert mode_of(private / "empty") == 0o750


def replaced(ws, path):
    return ws.replace("old", "new", path).notes


def edited(ws, path):
    return ws.edit(path, "old", "new").notes


def patched(ws, path):
    patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-old\n+new\n*** End Patch"
    done = ws.tools(dialect="apply-patch").call("apply_patch", {"input": patch})
    return done.data["notes"] if done.success else [str(done.content)]


def undone(ws, path):
    """Undo after another program restored owner, mode and hard link of the file."""
    status = os.stat(ws.root + "/" + path)
    ws.edit(path, "old", "new")
    os.chown(ws.root + "/" + path, status.st_uid, status.st_gid)
    os.chmod(ws.root + "/" + path, status.st_mode)
    if status.st_nlink > 1:
        os.unlink(ws.root + "/twin")
        os.link(ws.root + "/" + path, ws.root + "/twin")
    return ws.undo().notes


def redone(ws, path):
    undone(ws, path)
    Path(ws.root, path).chmod(Path(ws.root, path).stat().st_mode | 0o4000)
    return ws.redo().notes


def rolled_back(ws, path):
    ws.checkpoint("start")
    ws.write("other", "x")
    ws.edit(path, "old", "new")
    Path(ws.root, path).chmod(0o4755)
    return ws.rollback("start").notes


@pytest.fixture
def special(tmp_path: Path) -> Path:
    """A root with a file that has the setuid bit."""
    top = tmp_path / "root"
    top.mkdir()
    (top / "f").write_text("old\n")
    (top / "f").chmod(0o4755)
    return top


WAYS = [edited, replaced, patched, undone, redone, rolled_back]


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_replace_a_file_notes_lost_metadata(special, monkeypatch, way):
    def lost(_fd, owner, mode):
        return [f"the owner could not be kept: it was {owner[0]}"], mode

    def fstat(fd):
        is_temporary = ".agentfs-" in os.readlink(f"/proc/self/fd/{fd}")
        return other if is_temporary else real(fd)

    real = os.fstat
    another = os.getuid() + 1
    other = os.stat_result((*real(0)[:4], another, another, *real(0)[6:]))
    os.link(special / "f", special / "twin")
    with Workspace(special) as ws:
        notes = "\n".join(way(ws, "f"))
        assert "the setuid and setgid bits were dropped" in notes
        assert "the file had 2 hard links" in notes or way in {redone, rolled_back}
    put(special, {"f": "old\n"})
    (special / "f").chmod(0o4755)
    monkeypatch.setattr(file, "_change_owner", lost)
    with Workspace(special) as ws, monkeypatch.context() as patch:
        patch.setattr(file.os, "fstat", fstat)
        assert "the owner could not be kept: it was" in "\n".join(way(ws, "f"))


def test_the_note_about_several_files_names_them(tmp_path):
    for number in range(8):
        (tmp_path / f"{number}").write_text("old\n")
        (tmp_path / f"{number}").chmod(0o4755)
    with Workspace(tmp_path) as ws:
        assert ws.replace("old", "new").notes == (
            'the setuid and setgid bits were dropped: "0", "1", "2", "3", "4" and 3 more',
        )


def test_a_moved_tree_is_one_change_and_expands_to_one_for_each_entry():
    file, link, directory = MovedNode("file"), MovedNode("symlink"), DirectoryNode(0o750)
    nodes = [("", directory), ("/a", file), ("/d", DirectoryNode(0o700)), ("/d/b", link), ("/e", directory)]
    away = [Change(f"old{below}", node, None) for below, node in nodes]
    there = [Change(f"x/new{below}", None, node, f"old{below}") for below, node in nodes]
    other = Change("other", None, FileNode.of(0o644, b"1"))
    by_path = {each.path: each for each in (*away, *there, other)}
    found = collapsed([*away, other, *there])
    assert [each.path for each in found] == ["other", "old", "x/new"]
    assert {each.path: each for each in expanded(found)} == by_path
    assert node_from_json(node_to_json(found[1].before), Contents()) == found[1].before
    kept = replace(there[3], after=LinkNode("elsewhere"))  # then only the empty directory moves whole
    rows = collapsed([*away, *there[:3], kept, there[4], other])
    assert len(rows) == 11
    assert {each.path: each for each in expanded(rows)} == {**by_path, kept.path: kept}


def test_the_entries_of_a_moved_directory_are_known_after_a_restart(tmp_path):
    root, state = tmp_path / "root", tmp_path / "state"
    (root / "a" / "sub").mkdir(parents=True)
    for name in ("one", "sub/two", "sub/three"):
        (root / "a" / name).write_text(name)
    with Workspace(root, state=state) as ws:
        ws.move("a", "b")
        ws.edit("b/one", "one", "1")
    with Workspace(root, state=state) as ws:
        assert ws.changes().text.count("rename from") == 3
        ws.undo(paths=["b/sub/two"])
        assert sorted(path.name for path in root.rglob("*") if path.is_file()) == ["one", "three", "two"]
        assert (root / "a/sub/two").read_text() == "sub/two"
        ws.undo(2)
        assert (root / "a/one").read_text() == "one"
        assert not (root / "b").exists()
