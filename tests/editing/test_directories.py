"""`move` and `delete` of a directory: one step, all or nothing, and never through a link."""

import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

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


def move(ws):
    return ws.move("d", "new")


def delete(ws):
    return ws.delete("d", recursive=True)


ACTS = [move, delete]


@pytest.mark.parametrize(("act", "make", "code"), [
    *((act, lambda top, name=name: put(top, {name: "x"}), "protected")
      for act in ACTS for name in ("d/e/.env", "d/e/.mcp.json", "d/.git/hooks/pre-commit")),
    (lambda ws: ws.move("d", ".git"), lambda top: put(top, {"d/hooks/pre-commit": "x"}), "protected"),
    (delete, lambda top: os.mkfifo(top / "d/e/pipe"), "not_regular"),
    (delete, lambda top: put(top, {"d/e/large": "x" * 2000}), "too_large"),
    (delete, lambda top: (top / "d/e/b").chmod(0o444), "refused"),
])  # fmt: skip
def test_one_entry_that_may_not_be_changed_keeps_the_whole_directory(top, act, make, code):
    make(top)
    before = snapshot(top)
    with Workspace(top, limits=Limits(file_bytes=1000)) as ws:
        assert '"d/' in str(refused(lambda: act(ws), code))
        with ws.transaction() as tx:
            refused(lambda: act(tx), code)
        assert not ws.changes().files
    assert snapshot(top) == before


@pytest.mark.parametrize(("act", "policy"), [
    *((delete, each) for each in ({"read_only": True}, {"overwrite": "never"}, {"mode": "plan"})),
    *((act, {"deny": [rule]}) for act in ACTS for rule in ("read(d/e/c)", "change(d/e/**)")),
    (delete, {"deny": ["delete(d/.h/**)"]}), (move, {"deny": ["move(new/.h/**)"]}),
    (move, {"deny": ["move"]}),
], ids=lambda each: getattr(each, "__name__", str(each)))  # fmt: skip
def test_policies_and_rules_apply_to_each_file_inside(top, act, policy):
    before = snapshot(top)
    with Workspace(top, policy=Policy(**policy)) as ws:
        refused(lambda: act(ws), "read_only" if "read_only" in policy else "refused")
    assert snapshot(top) == before


@pytest.mark.parametrize("act", ACTS)
def test_permission_is_asked_once_with_each_path(top, act):
    asked = []
    below = [name for name in snapshot(top) if name.startswith("d/")]
    with Workspace(top, policy=Policy(on_ask=lambda request: asked.append(request) or True)) as ws:
        act(ws)
    (request,) = asked
    if act is move:
        assert request.paths[:2] == ("d", "new")
        assert {*request.paths[2:]} == {*below, *(f"new{name[1:]}" for name in below)}
        return
    assert (request.method, request.effect, request.files, request.paths[0]) == ("delete", "write", 8, "d")
    assert {*request.paths} == {change.path for change in request.changes} == {"d", *below}
    assert request.diff.count("+++ /dev/null") == 8


@pytest.mark.parametrize(("act", "bound"), [(move, "_MOST_MOVED"), (delete, "_MOST_DELETED")])
def test_a_directory_too_large_for_one_step_is_not_changed(top, monkeypatch, act, bound):
    before = snapshot(top)
    with Workspace(top, limits=Limits(snapshot_bytes=20)) as ws:  # a move keeps no contents
        assert act is move or "31 bytes" in str(refused(lambda: act(ws), "too_large"))
    monkeypatch.setattr(delete_move, bound, 5)
    with Workspace(top) as ws:
        assert "more than 5 entries" in str(refused(lambda: act(ws), "too_large"))
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


def test_a_moved_file_keeps_its_read_history(top):
    with Workspace(top) as ws:
        ws.read("d/e/c")
        move(ws)
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
@pytest.mark.parametrize("method", ACTS)
def test_a_directory_swapped_for_a_link_leads_nothing_outside(top, tmp_path, monkeypatch, method, name, when):
    out = fresh(tmp_path / "out")
    before = snapshot(out)

    def swap():
        (top / name).rename(top / f"{name}.old")
        (top / name).symlink_to(out / name)

    function = "_tree_at" if method is move else "_nodes_to_delete"
    before_and_after(monkeypatch, function, **{when: swap})
    with Workspace(top) as ws:
        try:
            method(ws)
        except AgentFSError:
            assert os.path.lexists(top / "d")
            assert not os.path.lexists(top / "new")
        else:  # the link itself
            assert method is delete or os.path.islink(top / "new/e")
    assert snapshot(out) == before


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


def without(tree, path):
    return {name: each for name, each in tree.items() if not f"{name}/".startswith(f"{path}/")}


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


@pytest.mark.parametrize("path", ["link/", "link//", "link/.", "link/./"])
def test_regression_a_final_slash_does_not_lead_through_a_link(top, path):
    """The directory behind the link was deleted or moved, and the answer said "Deleted "link"."."""
    (top / "link").symlink_to("d")
    before = snapshot(top)
    with Workspace(top) as ws:
        assert ws.move(path, "moved").path == "link"
        assert os.readlink(top / "moved") == "d"
        ws.undo()
        assert ws.delete(path, recursive=True).type == "symlink"
        assert not os.path.lexists(top / "link")
        ws.undo()
        refused(lambda: ws.delete("f/"), "not_a_directory")
    assert snapshot(top) == before


@pytest.mark.parametrize("path", [".", "d/..", "ROOT"])
def test_the_root_is_not_deleted(top, path):
    before = snapshot(top)
    with Workspace(top) as ws:
        refused(lambda: ws.delete(path.replace("ROOT", str(top)), recursive=True), "refused")
    assert snapshot(top) == before


def test_every_protected_file_inside_is_named(top):
    names = ["d/.env", "d/.mcp.json", "d/e/id_rsa"]
    put(top, dict.fromkeys(names, "x"))
    with Workspace(top) as ws:
        error = refused(lambda: ws.delete("d", recursive=True), "protected")
    assert "3 entries in it cannot be changed" in str(error)
    assert sorted(error.details["paths"]) == names
    assert all(f'"{name}" is protected' in str(error) for name in names)


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


@pytest.fixture(scope="module")
def many_names(tmp_path_factory):
    return put(tmp_path_factory.mktemp("many"), [f"d/{number}" for number in range(3000)], "")


@pytest.fixture
def many(many_names, monkeypatch):
    """A workspace, and what listing its names has cost: how many were `seen`, with a `pause` for each."""
    scan, listing = os.scandir, SimpleNamespace(seen=0, pause=0.0)

    def each_of(entries):
        for entry in entries:
            listing.seen += 1
            time.sleep(listing.pause)
            yield entry

    @contextmanager
    def scandir(*path):
        with scan(*path) as entries:
            yield each_of(entries)

    monkeypatch.setattr(os, "scandir", scandir)
    with Workspace(many_names) as ws:
        yield ws, listing


def test_delete_does_not_list_all_of_a_large_directory(many):
    ws, listing = many
    error = refused(lambda: ws.delete("d"), "not_a_file")
    assert "(at least 100 entries)" in str(error)
    assert error.details["entries"] == 100
    assert 100 <= listing.seen <= 200


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
def test_a_slow_directory_does_not_delay_a_call(many, call, code):
    """Listing all names would take 15 seconds."""
    ws, listing = many
    listing.pause = 0.005
    start = time.monotonic()
    refused(lambda: call(ws), code) if code else call(ws)
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
