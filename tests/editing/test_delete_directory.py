"""`delete` of a directory with its contents: one step, all or nothing, and never through a link."""

import os
import time
from collections.abc import Iterator
from typing import Self

import pytest

from agentfs import Limits, PermissionRequest, Policy, Workspace
from agentfs.editing import delete_move
from tests.editing.test_move_directory import before_and_after, fresh
from tests.history.judges import snapshot
from tests.kit import put, refused


def without(tree, path):
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
        assert str(done) == 'Deleted "d" (directory, 8 files).'
        assert ws.undo().steps == 1
        assert snapshot(top) == before
        ws.redo()
        assert snapshot(top) == without(before, "d")
        assert {file.action for file in ws.changes().files} == {"deleted"}


def test_a_directory_with_contents_is_deleted_only_if_recursive_is_true(top):
    before = snapshot(top)
    with Workspace(top) as ws:
        tools = ws.tools(["delete"])
        kept = tools.call("delete", {"path": "d"})
        assert kept.error["code"] == "not_a_file"
        assert "(8 entries)" in kept.content
        assert kept.content.endswith("To delete it with its contents, pass recursive=true.")
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
    with Workspace(top) as ws:
        refused(lambda: ws.delete("d/empty"), "stale")
    assert (top / "d/empty/late").read_text() == "late\n"


def test_links_are_deleted_and_not_followed(top, tmp_path):
    out = fresh(tmp_path / "out")
    (top / "d/out").symlink_to(out)
    (top / "d/inside").symlink_to("../f")
    (top / "link").symlink_to("d")
    before = snapshot(out)
    with Workspace(top) as ws:
        assert ws.delete("link", recursive=True).type == "symlink"
        assert (top / "d").is_dir()
        ws.delete("d/dangling", recursive=True)
        ws.delete("d/empty", recursive=True)
        ws.delete("d", recursive=True)
        assert (top / "f").exists()
        ws.undo(3)
    assert snapshot(out) == before
    assert (top / "d/empty").is_dir()
    assert os.readlink(top / "d/out") == str(out)


@pytest.mark.parametrize("path", [".", "d/..", "ROOT"])
def test_the_root_is_not_deleted(top, path):
    before = snapshot(top)
    with Workspace(top) as ws:
        refused(lambda: ws.delete(path.replace("ROOT", str(top)), recursive=True), "refused")
    assert snapshot(top) == before


@pytest.mark.parametrize(("make", "code"), [
    (lambda top: put(top, {"d/e/.env": "x"}), "protected"),
    (lambda top: put(top, {"d/e/.mcp.json": "x"}), "protected"),
    (lambda top: put(top, {"d/.git/hooks/pre-commit": ""}), "protected"),
    (lambda top: os.mkfifo(top / "d/e/pipe"), "not_regular"),
    (lambda top: put(top, {"d/e/large": "x" * 2000}), "too_large"),
    (lambda top: (top / "d/e/b").chmod(0o444), "refused"),
])  # fmt: skip
def test_one_entry_that_may_not_be_deleted_keeps_the_whole_directory(top, make, code):
    make(top)
    before = snapshot(top)
    with Workspace(top, limits=Limits(file_bytes=1000)) as ws:
        refused(lambda: ws.delete("d"), "not_a_file")
        refused(lambda: ws.delete("d", recursive=True), code)
        with ws.transaction() as tx:
            assert '"d/' in str(refused(lambda: tx.delete("d", recursive=True), code))
        assert not ws.changes().files
    assert snapshot(top) == before


def test_every_protected_file_inside_is_named(top):
    names = ["d/.env", "d/.mcp.json", "d/e/id_rsa"]
    put(top, dict.fromkeys(names, "x"))
    with Workspace(top) as ws:
        error = refused(lambda: ws.delete("d", recursive=True), "protected")
    assert "3 entries in it cannot be changed" in str(error)
    assert sorted(error.details["paths"]) == names
    assert all(f'"{name}" is protected' in str(error) for name in names)


def test_contents_that_undo_could_not_keep_are_not_deleted(top, monkeypatch):
    before = snapshot(top)
    with Workspace(top, limits=Limits(snapshot_bytes=20)) as ws:
        assert "31 bytes" in str(refused(lambda: ws.delete("d", recursive=True), "too_large"))
    monkeypatch.setattr(delete_move, "_MOST_DELETED", 5)
    with Workspace(top) as ws:
        assert "more than 5 entries" in str(refused(lambda: ws.delete("d", recursive=True), "too_large"))
    assert snapshot(top) == before


@pytest.mark.parametrize("policy", [
    {"read_only": True}, {"overwrite": "never"}, {"mode": "plan"}, {"deny": ["read(d/e/c)"]},
    {"deny": ["change(d/e/**)"]}, {"deny": ["delete(d/.h/**)"]},
], ids=str)  # fmt: skip
def test_policies_and_rules_apply_to_each_file_inside(top, policy):
    before = snapshot(top)
    with Workspace(top, policy=Policy(**policy)) as ws:
        code = "read_only" if "read_only" in policy else "refused"
        refused(lambda: ws.delete("d", recursive=True), code)
    assert snapshot(top) == before


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


@pytest.mark.parametrize("when", ["before the deletion", "during it", "while the user is asked"])
def test_a_file_created_meanwhile_stays_and_nothing_is_deleted(top, monkeypatch, when):
    def create():
        put(top, {"d/e/late": "late\n"})

    policy = None
    if when == "before the deletion":
        before_and_after(monkeypatch, "_nodes_to_delete", after=create)
    elif when == "during it":
        remove = os.rmdir
        monkeypatch.setattr(os, "rmdir", lambda *args, **named: (create(), remove(*args, **named))[1])
    else:
        policy = Policy(on_ask=lambda _: create() or True)
    before = {**snapshot(top), "d/e/late": ("file", 0o644, b"late\n")}
    with Workspace(top, policy=policy) as ws:
        refused(lambda: ws.delete("d", recursive=True), "stale")
        assert not ws.changes().files
    assert snapshot(top) == before


class Counted:
    """An `os.scandir` that counts its entries and is slow for each."""

    seen = 0
    pause = 0.0

    def __init__(self, real) -> None:
        self.real = real
        self.close = real.close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[os.DirEntry]:
        for entry in self.real:
            Counted.seen += 1
            time.sleep(Counted.pause)
            yield entry


@pytest.fixture(scope="module")
def many_names(tmp_path_factory):
    top = tmp_path_factory.mktemp("many")
    (top / "d").mkdir()
    for number in range(3000):
        (top / "d" / f"{number}").touch()
    return top


@pytest.fixture
def many(many_names, monkeypatch):
    real = os.scandir
    monkeypatch.setattr(os, "scandir", lambda *path: Counted(real(*path)))
    monkeypatch.setattr(Counted, "seen", 0)
    with Workspace(many_names) as ws:
        yield ws


def test_delete_does_not_list_all_of_a_large_directory(many):
    error = refused(lambda: many.delete("d"), "not_a_file")
    assert "(at least 100 entries)" in str(error)
    assert error.details["entries"] == 100
    assert Counted.seen <= 200


@pytest.mark.parametrize("content", [b"never read\n", b"\x00binary", "\u00e9\n".encode("latin-1"), b""])
def test_delete_needs_no_earlier_read(ws, tmp_path, content):
    file = tmp_path / "f"
    file.write_bytes(content)
    file.chmod(0o640)
    ws.delete("f")
    assert not file.exists()
    ws.undo()
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (content, 0o640)
    ws.read("f")
    file.write_bytes(content + b"changed after it was read\n")
    with ws.transaction() as tx:
        tx.delete("f")
    assert not file.exists()
    ws.undo()
    assert file.read_bytes() == content + b"changed after it was read\n"


@pytest.mark.full  # it measures time
@pytest.mark.parametrize(("call", "code"), [
    (lambda ws: ws.delete("d"), "not_a_file"), (lambda ws: ws.edit("d/none", "x", "y"), "not_found"),
    (lambda ws: ws.write("d/new", "x"), None), (lambda ws: ws.write("d/n\u00fc", "x"), None),
], ids=["delete", "edit", "write", "write twin"])  # fmt: skip
def test_a_slow_directory_does_not_delay_a_call(many, monkeypatch, call, code):
    """Listing all names would take 15 seconds."""
    monkeypatch.setattr(Counted, "pause", 0.005)
    start = time.monotonic()
    refused(lambda: call(many), code) if code else call(many)
    assert time.monotonic() - start < 5


def test_a_file_that_comes_and_goes_during_the_delete_makes_it_stale(ws, tmp_path, monkeypatch):
    """It was `io` with "Directory not empty", although the directory is empty again."""
    (tmp_path / "d").mkdir()
    real = os.rmdir

    def rmdir(path, **options):
        (tmp_path / "d" / "new").touch()
        try:
            real(path, **options)
        finally:
            (tmp_path / "d" / "new").unlink()

    monkeypatch.setattr(os, "rmdir", rmdir)
    refused(lambda: ws.delete("d"), "stale")
    assert (tmp_path / "d").is_dir()
    monkeypatch.undo()
    ws.delete("d")
