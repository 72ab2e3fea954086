"""`copy`, `exists` and `stat`."""

import os

import pytest

from agentfs import AgentFSError, Limits, Policy, Workspace
from agentfs.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    NotFoundError,
    OutsideWorkspaceError,
    ProtectedError,
    ReadOnlyError,
    RefusedError,
    SpecialFileError,
    StaleError,
    TooLargeError,
)
from agentfs.history.storage.contents import Contents
from tests.editing.test_move_directory import fresh, put_hook
from tests.history.judges import snapshot


def copied(tree, path, to):
    """Return a snapshot as it must be after the copy."""
    copies = {
        to + name[len(path) :]: each
        for name, each in tree.items()
        if name == path or name.startswith(f"{path}/")
    }
    return {**tree, **copies}


@pytest.fixture
def top(tmp_path):
    return fresh(tmp_path / "root")


@pytest.mark.parametrize(
    ("path", "to", "kind", "files"),
    [
        ("d", "new", "directory", 8),
        ("d/e/c", "c", "file", 1),
        ("d/away", "away", "symlink", 1),
        ("d/empty", "also/empty", "directory", 0),
    ],
)
def test_a_copy_is_one_undoable_step(top, path, to, kind, files):
    before = snapshot(top)
    with Workspace(top) as ws:
        done = ws.copy(path, to)
        after = snapshot(top)
        assert after == {**copied(before, path, to), **({"also": after["also"]} if "also" in after else {})}
        assert (done.path, done.to, done.type, done.files, done.replaced) == (path, to, kind, files, False)
        assert ws.undo().steps == 1
        assert snapshot(top) == before
        ws.redo()
        assert snapshot(top) == after
    if kind == "file":
        assert os.stat(top / to).st_ino != os.stat(top / path).st_ino


def test_an_existing_file_is_replaced_only_if_overwrite_is_true(top):
    (top / "f").chmod(0o600)
    before = snapshot(top)
    with Workspace(top) as ws:
        with pytest.raises(AlreadyExistsError):
            ws.copy("d/e/c", "f")
        assert snapshot(top) == before
        done = ws.copy("d/e/c", "f", overwrite=True)
        assert done.replaced
        assert str(done) == 'Copied "d/e/c" to "f" (replaced).'
        assert snapshot(top) == {**before, "f": ("file", 0o600, b"other\n")}
        ws.undo()
        assert snapshot(top) == before
        for path, to in [("f", "d"), ("d", "f"), ("d/e", "d/empty")]:
            with pytest.raises(AlreadyExistsError):
                ws.copy(path, to, overwrite=True)
        with pytest.raises(AlreadyExistsError, match="To copy into this directory"):
            ws.copy("f", "d")
    assert snapshot(top) == before


@pytest.mark.parametrize(("path", "to", "error"), [
    ("d", "d/e/new", InvalidArgumentError), ("d", "d", AlreadyExistsError), (".", "new", RefusedError),
    ("d", "../new", OutsideWorkspaceError), ("d/away/x", "new", AgentFSError), ("none", "new", NotFoundError),
    ("f", ".env", ProtectedError), ("f", ".git/hooks/x", ProtectedError), ("f", "f/x", AgentFSError),
])  # fmt: skip
def test_an_impossible_copy_changes_nothing(top, path, to, error):
    before = snapshot(top)
    with Workspace(top) as ws:
        for overwrite in (False, True):
            with pytest.raises(error):
                ws.copy(path, to, overwrite=overwrite)
    assert snapshot(top) == before


@pytest.mark.parametrize(("make", "error"), [
    (lambda top: (top / "d/e/.env").write_text("KEY=secret"), ProtectedError),
    (lambda top: put_hook(top / "d/.git/hooks"), ProtectedError),
    (lambda top: os.mkfifo(top / "d/e/pipe"), SpecialFileError),
    (lambda top: (top / "d/e/large").write_bytes(b"x" * 2000), TooLargeError),
])  # fmt: skip
def test_one_entry_that_may_not_be_copied_prevents_the_copy(top, make, error):
    make(top)
    before = snapshot(top)
    with Workspace(top, limits=Limits(file_bytes=1000)) as ws:
        with pytest.raises(error) as caught:
            ws.copy("d", "new")
        assert 'The directory "d" was not copied: ' in str(caught.value)
    assert snapshot(top) == before


def test_policies_and_rules_apply_to_each_copied_file(top):
    before = snapshot(top)
    for policy, error in [
        (Policy(read_only=True), ReadOnlyError),
        (Policy(deny=["read(d/e/c)"]), RefusedError),
        (Policy(deny=["write(new/.h/**)"]), RefusedError),
        (Policy(deny=["copy"]), RefusedError),
        (Policy(allow=["write(d/**)"]), RefusedError),
    ]:
        with Workspace(top, policy=policy) as ws, pytest.raises(error):
            ws.copy("d", "new")
    with Workspace(top, policy=Policy(overwrite="never")) as ws, pytest.raises(RefusedError):
        ws.copy("d/a", "f", overwrite=True)
    with Workspace(top, limits=Limits(snapshot_bytes=20)) as ws, pytest.raises(TooLargeError):
        ws.copy("d", "new")
    assert snapshot(top) == before


def test_links_are_copied_and_not_followed(top, tmp_path):
    out = fresh(tmp_path / "out")
    (top / "d/out").symlink_to(out)
    with Workspace(top) as ws:
        ws.copy("d", "new")
        ws.copy("d/out", "link")
    assert os.readlink(top / "new/out") == os.readlink(top / "link") == str(out)


def test_a_copy_counts_as_read_if_the_file_does(top):
    with Workspace(top) as ws:
        ws.read("d/e/c")
        ws.copy("d", "new")
        ws.write("new/e/c", "changed\n")
        with pytest.raises(AgentFSError):
            ws.write("new/a", "never read\n")


def test_a_file_changed_during_the_copy_of_the_directory_is_not_replaced(top, monkeypatch):
    before = snapshot(top)
    real = Contents.keep

    def keep(self, change):
        (top / "new").mkdir(exist_ok=True)
        return real(self, change)

    with Workspace(top) as ws:
        monkeypatch.setattr(Contents, "keep", keep)
        (top / "new").mkdir()
        (top / "new/a").write_text("theirs")
        with pytest.raises((AlreadyExistsError, StaleError)):
            ws.copy("d", "new")
    assert (top / "new/a").read_text() == "theirs"
    assert {name: each for name, each in snapshot(top).items() if not name.startswith("new")} == before


def test_a_transaction_copies_its_own_changes(top):
    before = snapshot(top)
    with Workspace(top) as ws:
        with ws.transaction() as tx:
            tx.edit("d/e/c", "other", "changed")
            tx.copy("d/e", "new")
            assert tx.stat("new/c").type == "file"
            assert snapshot(top) == before
        assert (top / "new/c").read_text() == "changed\n"
        assert (top / "new").stat().st_mode & 0o777 == 0o750
        ws.undo()
    assert snapshot(top) == before


def test_a_private_directory_stays_private_when_it_is_copied(top):
    (top / "d/e").chmod(0o700)
    with Workspace(top) as ws:
        ws.copy("d", "new")
    assert (top / "new/e").stat().st_mode & 0o777 == 0o700


def test_exists_and_stat_say_what_ls_says(top):
    (top / ".env").write_text("KEY=1\n")
    with Workspace(top) as ws:
        for entry in ws.ls(".", depth=0, include_ignored=True).entries:
            assert ws.exists(entry.path)
            assert ws.stat(entry.path) == entry
        assert ws.stat(".env").protected
        assert ws.stat(".").is_dir
        assert ws.exists("d/dangling")
        for path in ("none", "f/x", "none/x", "d/dangling/x"):
            assert not ws.exists(path)
        with pytest.raises(NotFoundError, match="does not exist"):
            ws.stat("d/e/cc")
        for path in ("../x", "/etc/hostname", "d/away/x"):
            with pytest.raises(OutsideWorkspaceError):
                ws.stat(path)
        for path in ("../x", "/etc/hostname"):
            with pytest.raises(OutsideWorkspaceError):
                ws.exists(path)


def test_rules_about_searches_apply_to_exists_and_stat(top):
    with Workspace(top, policy=Policy(deny=["search(d/**)"])) as ws:
        for call in (ws.exists, ws.stat):
            with pytest.raises(RefusedError):
                call("d/a")
        assert ws.exists("f")


def test_no_model_gets_exists_or_stat(top):
    with Workspace(top) as ws:
        assert not {"exists", "stat"} & set(ws.tool_names())
        assert {"append", "copy"} <= set(ws.tool_names())
        assert ws.tools(["copy"]).call("cp", {"source": "f", "destination": "g"}).success


@pytest.mark.parametrize(("method", "other"), [("copy", "move"), ("move", "copy")])
@pytest.mark.parametrize(("workdir", "target"), [(".", "b"), (".", "d"), ("d", "../b"), ("d", "e")])
def test_the_advice_of_a_refused_copy_or_move_is_about_the_same_method(
    tmp_path, method, other, workdir, target
):
    (tmp_path / "d" / "a").mkdir(parents=True)
    for name in ("a", "b", "d/e"):
        (tmp_path / name).write_text(name)
    with Workspace(tmp_path) as ws, pytest.raises(AlreadyExistsError) as caught:
        getattr(ws.view(workdir=workdir), method)("a", target)
    assert other not in str(caught.value).lower()
    assert caught.value.hint == "Choose another path, or delete it first with delete."
    assert caught.value.details["path"] == target
