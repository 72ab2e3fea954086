import errno
import os
import signal
import stat
from pathlib import Path

import pytest

from agentfs import Policy, Workspace
from agentfs.fs import Root, file, lock, syscalls
from agentfs.fs.node import Metadata
from tests.faults.calls import fail_with
from tests.fs.mechanisms import change
from tests.kit import refused


def put(root: Root, path: str, content: bytes):
    return change(root, path, lambda _: content, max_bytes=1 << 20)


def test_an_owner_that_cannot_be_kept_is_noted_and_grants_no_group_rights(tree, monkeypatch):
    os.chmod(tree / "f", 0o664)
    monkeypatch.setattr(os, "fchown", lambda *_: (_ for _ in ()).throw(PermissionError(errno.EPERM, "no")))
    fd = os.open(tree / "f", os.O_RDWR)
    notes = file.apply_metadata(fd, Metadata(0o664, (4242, 4243)))
    os.close(fd)
    assert [note.split(" could")[0] for note in notes] == ["the owner", "the group"]
    assert stat.S_IMODE(os.stat(tree / "f").st_mode) == 0o604


def test_the_data_of_a_file_is_synced_and_names_are_not(tree, monkeypatch):
    real, seen = os.fsync, []
    monkeypatch.setattr(os, "fsync", lambda fd: seen.append(stat.S_ISDIR(os.fstat(fd).st_mode)) or real(fd))
    with Root(tree, Policy()) as root:
        put(root, "new/x", b"x")
    assert seen == [False]


def temporaries(tree: Path) -> list[Path]:
    return sorted(tree.rglob(".agentfs-*.tmp"))


def killed_in(tree: Path, name: str, call) -> list[Path]:
    """Kill a process at a call of `os` in a change; return the temporaries that it leaves."""
    child = os.fork()
    if not child:
        with Workspace(tree) as ws:
            setattr(os, name, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
            call(ws)
        os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    return temporaries(tree)


def write_tree(ws: Workspace) -> None:
    ws.write("new/deep/x", "x")


def replace_all(ws: Workspace) -> None:
    ws.replace("f", "g")


KILLS = [("fsync", write_tree), ("replace", replace_all), ("replace", lambda ws: ws.edit("f", "f", "g"))]


@pytest.mark.parametrize(("name", "call"), KILLS)
def test_regression_the_next_opening_removes_what_a_killed_change_left(tree, name, call):
    (tree / "f2").write_text("f\n")
    before = sorted(tree.rglob("*"))
    assert killed_in(tree, name, call)
    Workspace(tree, policy=Policy(read_only=True)).close()
    assert temporaries(tree), "a read-only workspace changes nothing"
    Workspace(tree).close()
    assert sorted(tree.rglob("*")) == before


def test_the_next_change_removes_what_a_killed_change_left(tree):
    with Workspace(tree) as ws:
        assert killed_in(tree, "fsync", write_tree)
        ws.edit("f", "f", "g")
        assert temporaries(tree) == []


def test_a_temporary_of_a_change_under_way_stays(tree, monkeypatch):
    real, seen = os.fsync, []

    def fsync(fd):
        before = temporaries(tree)
        Workspace(tree).close()
        seen.append(temporaries(tree) == before != [])
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    with Workspace(tree) as ws:
        ws.edit("f", "f", "g")
    assert seen == [True]
    assert temporaries(tree) == []


def test_leftovers_are_removed_by_name_and_through_no_link(tree, tmp_path):
    """One has vanished, one lies behind a link by now, and one was never recorded."""
    (tree / "d").mkdir()
    outside = tmp_path / "outside"
    (tree / "d/f").write_text("f\n")
    left = next(path for path in killed_in(tree, "replace", replace_all) if path.parent == tree)
    (moved,) = (tree / "d").glob(".agentfs-*")
    (tree / "d").rename(outside)
    (tree / "d").symlink_to(outside)
    left.unlink()
    named = tree / ".agentfs-0123456789abcdef.tmp"
    named.write_text("not recorded")
    Workspace(tree).close()
    assert temporaries(tree) == [named]
    assert [path.name for path in outside.glob(".agentfs-*")] == [moved.name]


@pytest.mark.parametrize("has_links", [True, False])
@pytest.mark.parametrize("has_rename", [True, False])
def test_a_name_that_is_taken_is_never_replaced(tree, monkeypatch, has_rename, has_links):
    def refuse(*_, **__):
        raise OSError(errno.EPERM, "no links here")

    if not has_rename:
        monkeypatch.setattr(syscalls, "rename_no_replace", lambda *_, **__: errno.ENOSYS)
    if not has_links:
        monkeypatch.setattr(os, "link", refuse)
    handle = os.open(tree, os.O_RDONLY)
    (tree / "source").write_bytes(b"source")
    with pytest.raises(FileExistsError):
        syscalls.rename_new(handle, "source", "f", to=handle)
    syscalls.rename_new(handle, "source", "fresh", to=handle)
    os.close(handle)
    assert ((tree / "f").read_bytes(), (tree / "fresh").read_bytes()) == (b"f\n", b"source")
    assert not (tree / "source").exists()


def test_a_file_is_created_although_its_second_name_cannot_be_removed(tree, monkeypatch):
    """The file has its name already, so an error would be wrong. The temporary is removed later."""

    def fail(*_, **__):
        raise OSError(errno.EIO, "broken")

    with Workspace(tree) as ws, monkeypatch.context() as patch:
        patch.setattr(syscalls, "rename_no_replace", lambda *_, **__: errno.ENOSYS)
        patch.setattr(os, "unlink", fail)
        assert ws.write("fresh", "x").created
    assert (tree / "fresh").read_bytes() == b"x"


def test_regression_a_move_without_renameat2_leaves_no_second_name(tree, monkeypatch):
    """The old name stayed if it could not be removed, as in a read-only directory."""
    unlink = os.unlink

    def refuse(name, **at):
        if name == "f":
            raise OSError(errno.EACCES, "denied")
        unlink(name, **at)

    before = sorted(os.listdir(tree))
    with Workspace(tree) as ws, monkeypatch.context() as patch:
        patch.setattr(syscalls, "rename_no_replace", lambda *_, **__: errno.ENOSYS)
        patch.setattr(os, "unlink", refuse)
        refused(lambda: ws.move("f", "new/moved"), "io")
    assert sorted(os.listdir(tree)) == before


@pytest.mark.parametrize("path", ["f", "new/deep/f"])
def test_regression_an_error_names_no_temporary(tree, monkeypatch, path):
    """The disk was full at ".agentfs-0123456789abcdef.tmp/deep/f"."""
    with Workspace(tree, policy=Policy(overwrite="always")) as ws:
        monkeypatch.setattr(os, "fsync", fail_with(errno.ENOSPC))
        error = refused(lambda: ws.write(path, "x"), "io")
    assert f'"{path}"' in error.message


def test_containment_names_the_mechanisms_in_use(tree, monkeypatch):
    with Workspace(tree) as ws:
        assert ws.containment["open"] == "fd-walk"
        assert ws.containment["locks"] == "processes"
        monkeypatch.setattr(lock, "_is_ours", lambda *_: False)
        assert ws.containment["locks"] == "threads"


def looks_of(path: Path) -> tuple[object, ...]:
    found = os.stat(path)
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


@pytest.mark.parametrize("act", ["edit", "move", "delete", "edit and delete"])
@pytest.mark.parametrize("has_links", [True, False])
def test_a_change_and_its_undo_keep_owner_and_mode(tree, monkeypatch, act, has_links):
    def refuse(*_, **__):
        raise OSError(errno.EPERM, "no links here")

    if os.geteuid() == 0:
        os.chown(tree / "f", 4242, 4243)
    os.chmod(tree / "f", 0o6750)
    owner = looks_of(tree / "f")[:2]
    if not has_links:
        monkeypatch.setattr(os, "link", refuse)
    with Workspace(tree) as ws:
        if "edit" in act:
            assert "setuid" in ws.edit("f", "f", "changed").notes[0]
            assert looks_of(tree / "f") == (*owner, 0o750)
        if act == "move":
            ws.move("f", "new/g")
            assert looks_of(tree / "new/g") == (*owner, 0o6750)
        if "delete" in act:
            ws.delete("f")
            assert not (tree / "f").exists()
        for _ in range(2):
            ws.undo(1 + (act == "edit and delete"))
            assert ((tree / "f").read_bytes(), looks_of(tree / "f")[:2]) == (b"f\n", owner)
            ws.redo(1 + (act == "edit and delete"))
