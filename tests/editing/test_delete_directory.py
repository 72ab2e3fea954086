"""`delete` of a directory with its contents: one step, all or nothing, and never through a link."""

import os
import stat

import pytest

from agentfs import AgentFSError, Limits, PermissionRequest, Policy, Workspace
from agentfs.editing import delete_move
from agentfs.errors import (
    NotAFileError,
    ProtectedError,
    ReadOnlyError,
    RefusedError,
    SpecialFileError,
    StaleError,
    TooLargeError,
)
from tests.editing.test_move_directory import fresh, put_hook
from tests.history.judges import snapshot


def without(tree, path):
    """Return a snapshot as it must be after the deletion."""
    return {name: each for name, each in tree.items() if name != path and not name.startswith(f"{path}/")}


@pytest.fixture
def top(tmp_path):
    return fresh(tmp_path / "root")


def test_a_directory_with_its_contents_is_one_undoable_step(top):
    before = snapshot(top)
    with Workspace(top) as ws:
        done = ws.delete("d", recursive=True)
        assert snapshot(top) == without(before, "d")
        assert (done.path, done.type, done.files) == ("d", "directory", 8)
        assert str(done) == 'Deleted "d" (directory, 8 files, 2 hidden or ignored).'
        assert ws.undo().steps == 1
        assert snapshot(top) == before
        ws.redo()
        assert snapshot(top) == without(before, "d")
        assert {file.action for file in ws.changes().files} == {"deleted"}


def test_a_directory_with_contents_is_deleted_only_if_recursive_is_true(top):
    before = snapshot(top)
    with Workspace(top) as ws:
        with pytest.raises(NotAFileError) as caught:
            ws.delete("d")
        tools = ws.tools(["delete"])
        refused = tools.call("delete", {"path": "d"})
        assert "(8 entries)" in str(caught.value)
        assert refused.content.endswith("To delete it with its contents, pass recursive=true.")
        assert snapshot(top) == before
        assert tools.call("delete", {"path": "d", "recursive": True}).success
    assert snapshot(top) == without(before, "d")


def test_a_file_added_to_an_empty_directory_is_not_deleted_without_recursive(top, monkeypatch):
    """The contents that came between the check and the deletion were deleted too."""
    real = delete_move._check_empty

    def check(root, path):
        real(root, path)
        (top / "d/empty/late").write_text("late\n")

    monkeypatch.setattr(delete_move, "_check_empty", check)
    with Workspace(top) as ws, pytest.raises(NotAFileError, match="1 entry"):
        ws.delete("d/empty")
    assert (top / "d/empty/late").read_text() == "late\n"


@pytest.mark.parametrize("name", ["f", "d/empty", "d/dangling", "d/away"])
def test_recursive_changes_nothing_for_other_entries(top, name):
    before = snapshot(top)
    with Workspace(top) as ws:
        ws.delete(name, recursive=True)
        assert snapshot(top) == without(before, name)
        ws.undo()
    assert snapshot(top) == before


def test_links_are_deleted_and_not_followed(top, tmp_path):
    out = fresh(tmp_path / "out")
    (top / "d/out").symlink_to(out)
    (top / "d/inside").symlink_to("../f")
    (top / "link").symlink_to("d")
    before = snapshot(out)
    with Workspace(top) as ws:
        assert ws.delete("link", recursive=True).type == "symlink"
        assert (top / "d").is_dir()
        ws.delete("d", recursive=True)
        assert (top / "f").exists()
        ws.undo()
    assert snapshot(out) == before
    assert os.readlink(top / "d/out") == str(out)


def test_the_root_is_not_deleted(top):
    before = snapshot(top)
    for path in (".", "d/..", str(top)):
        with Workspace(top) as ws, pytest.raises(RefusedError):
            ws.delete(path, recursive=True)
    assert snapshot(top) == before


def make_device(path):
    if os.geteuid() != 0:
        pytest.skip("only root makes devices")
    os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))


@pytest.mark.parametrize(("make", "error"), [
    (lambda top: (top / "d/e/.env").write_text("x"), ProtectedError),
    (lambda top: (top / "d/e/.mcp.json").write_text("x"), ProtectedError),
    (lambda top: put_hook(top / "d/.git/hooks"), ProtectedError),
    (lambda top: make_device(top / "d/e/pipe"), SpecialFileError),
    (lambda top: (top / "d/e/large").write_bytes(b"x" * 2000), TooLargeError),
    (lambda top: (top / "d/e/b").chmod(0o444), RefusedError),
])  # fmt: skip
def test_one_entry_that_may_not_be_deleted_keeps_the_whole_directory(top, make, error):
    make(top)
    before = snapshot(top)
    with Workspace(top, limits=Limits(file_bytes=1000)) as ws:
        for recursive in (False, True):
            with pytest.raises(error if recursive else NotAFileError):
                ws.delete("d", recursive)
        with pytest.raises(error) as caught, ws.transaction() as tx:
            tx.delete("d", recursive=True)
        assert 'The directory "d" was not deleted: ' in str(caught.value)
        assert not ws.changes().files
    assert snapshot(top) == before


def test_every_protected_file_inside_is_named(top):
    for name in ("d/.env", "d/e/id_rsa", "d/.mcp.json"):
        (top / name).write_text("x")
    with Workspace(top) as ws, pytest.raises(ProtectedError) as caught:
        ws.delete("d", recursive=True)
    assert "3 entries in it cannot be changed" in str(caught.value)
    assert sorted(caught.value.details["paths"]) == ["d/.env", "d/.mcp.json", "d/e/id_rsa"]
    for name in caught.value.details["paths"]:
        assert f'"{name}" is protected' in str(caught.value)


def test_contents_that_undo_could_not_keep_are_not_deleted(top, monkeypatch):
    before = snapshot(top)
    with (
        Workspace(top, limits=Limits(snapshot_bytes=20)) as ws,
        pytest.raises(TooLargeError, match="31 bytes"),
    ):
        ws.delete("d", recursive=True)
    monkeypatch.setattr(delete_move, "_MOST_DELETED", 5)
    with Workspace(top) as ws, pytest.raises(TooLargeError, match="more than 5 entries"):
        ws.delete("d", recursive=True)
    assert snapshot(top) == before


def test_policies_and_rules_apply_to_each_file_inside(top):
    before = snapshot(top)
    rules = ["read(d/e/c)", "change(d/e/**)", "delete(d/.h/**)"]
    for policy, error in [
        (Policy(read_only=True), ReadOnlyError),
        (Policy(overwrite="never"), RefusedError),
        (Policy(mode="plan"), RefusedError),
        *((Policy(deny=[rule]), RefusedError) for rule in rules),
    ]:
        with Workspace(top, policy=policy) as ws, pytest.raises(error):
            ws.delete("d", recursive=True)
        assert snapshot(top) == before, policy


def test_permission_is_asked_once_with_the_number_of_files(top):
    asked: list[PermissionRequest] = []
    below = [name for name in snapshot(top) if name.startswith("d/")]
    policy = Policy(on_ask=lambda request: asked.append(request) or True)
    with Workspace(top, policy=policy) as ws:
        ws.delete("d", recursive=True)
    (request,) = asked
    assert (request.method, request.effect, request.files) == ("delete", "write", 8)
    assert request.paths[0] == "d"
    assert set(request.paths) == {change.path for change in request.changes} == {"d", *below}
    assert request.diff.count("+++ /dev/null") == 8


def test_a_file_added_while_the_user_is_asked_makes_the_deletion_stale(top):
    def ask(request):
        (top / "d/e/late").write_text("x")
        return True

    before = snapshot(top)
    with Workspace(top, policy=Policy(on_ask=ask)) as ws:
        with pytest.raises(StaleError, match="since the call was allowed; nothing was changed"):
            ws.delete("d", recursive=True)
        assert not ws.changes().files
    assert without(snapshot(top), "d/e/late") == before


@pytest.mark.parametrize("recorded", ["before", "during"])
def test_a_file_created_meanwhile_stays_and_nothing_is_deleted(top, monkeypatch, recorded):
    def create(*_args, **_named):
        (top / "d/e/late").write_text("late\n")

    if recorded == "before":
        real = delete_move._nodes_to_delete
        monkeypatch.setattr(
            delete_move, "_nodes_to_delete", lambda *args, **named: (real(*args, **named), create())[0]
        )
    else:
        remove = os.rmdir
        monkeypatch.setattr(os, "rmdir", lambda *args, **named: (create(), remove(*args, **named))[1])
    before = {**snapshot(top), "d/e/late": ("file", 0o644, b"late\n")}
    with Workspace(top) as ws:
        with pytest.raises(StaleError):
            ws.delete("d", recursive=True)
        assert not ws.changes().files
    assert snapshot(top) == before


def test_a_directory_swapped_for_a_link_leads_nothing_outside(top, tmp_path, monkeypatch):
    out = fresh(tmp_path / "out")
    before = snapshot(out)
    real = delete_move._nodes_to_delete
    for late in (False, True):
        for name in ("d", "d/e"):

            def subtree(*args, name=name, late=late, **named):
                found = real(*args, **named) if late else []
                (top / name).rename(top / f"{name}.old")
                (top / name).symlink_to(out / name)
                return found or real(*args, **named)

            with monkeypatch.context() as patch, Workspace(top) as ws:
                patch.setattr(delete_move, "_nodes_to_delete", subtree)
                try:
                    ws.delete("d", recursive=True)
                except AgentFSError:
                    assert os.path.lexists(top / "d")
            assert snapshot(out) == before
            fresh(top)
