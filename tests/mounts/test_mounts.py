"""Several trees in one workspace: every method sees one tree, and each mount keeps its own rules."""

import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentfs import Limits, Mount, Policy, Workspace
from tests import kit
from tests.conftest import public_directory
from tests.kit import code_of as code
from tests.kit import put


@pytest.fixture
def places(tmp_path: Path) -> Path:
    return put(tmp_path, {
        "root/src/a.py": "needle root\n", "root/deps/shadowed.py": "needle beside\n",
        "lib/b.py": "needle lib\n", "lib/sub/c.py": "needle sub\n", "notes/n.md": "needle note\n",
        "one.txt": "needle one\n", "outside.txt": "needle outside\n",
    })  # fmt: skip


def paths(found):
    return [each.path for each in found]


def opened(places: Path, **options) -> Workspace:
    mounts = {"lib": Mount(places / "lib", read_only=True), "notes": Mount(places / "notes")}
    options.setdefault("policy", Policy(overwrite="always"))
    return Workspace(places / "root", mounts=mounts, **options)


def test_a_mount_is_marked_and_its_paths_are_those_shown(places):
    with opened(places) as workspace:
        found = {each.path: each.mount for each in workspace.ls(depth=0).entries if each.mount}
        assert found == {"lib": "read-only", "notes": "read-write"}
        assert "lib/  (read-only mount)" in workspace.ls().text
        assert workspace.read(places / "lib" / "b.py").path == "lib/b.py"
        assert paths(workspace.ls(places / "notes").entries) == ["notes/n.md"]
        assert code(workspace.read, places / "outside.txt") == "outside_workspace"
        assert 'Did you mean "notes/n.md"?' in str(kit.error_of(workspace.read, "ntoes/n.md"))
        tools = workspace.tools(dialect="codescout")
        assert "needle lib" in str(tools.call("read_file", {"path": str(places / "lib" / "b.py")}).content)
        view = workspace.view(only=["notes"])
        assert paths(view.glob("**", path="notes").files) == ["notes/n.md"]
        for path in ("lib/b.py", places / "lib" / "b.py"):
            assert code(view.read, path) == "outside_workspace"
        below = workspace.view(workdir="lib")
        assert below.read("b.py").path == "b.py"
        assert below.read("../src/a.py").path == "../src/a.py"


def test_dots_and_links_follow_the_shown_path(places):
    (places / "lib" / "up").symlink_to("../src/a.py")  # on disk, this leads out of the mount
    (places / "lib" / "far").symlink_to(places / "notes" / "n.md")
    (places / "lib" / "out").symlink_to(places / "outside.txt")
    (places / "lib" / "up-out").symlink_to("../outside.txt")  # the neighbour of the mount on disk
    with opened(places) as workspace:
        assert workspace.read("lib/../deps/shadowed.py").path == "deps/shadowed.py"
        assert "root" in workspace.read("lib/up").text
        assert "note" in workspace.read("lib/far").text
        assert code(workspace.read, "lib/out") == "outside_workspace"
        assert code(workspace.read, "lib/up-out") == "not_found"
        assert code(workspace.read, "lib/../../outside.txt") == "outside_workspace"
    with opened(places, policy=Policy(symlinks="never")) as workspace:
        assert code(workspace.read, "lib/far") == "refused"


def test_a_read_only_mount_refuses_changes_and_each_mount_stays(places):
    with opened(places) as workspace:
        for method, *given in (
            (workspace.write, "lib/x", "y"), (workspace.edit, "lib/b.py", "needle", "pin"),
            (workspace.move, "lib/b.py", "b.py"), (workspace.move, "src/a.py", "lib/a.py"),
            (workspace.delete, "lib", True),
        ):  # fmt: skip
            assert code(method, *given) == "read_only"
        with workspace.transaction() as transaction:
            assert code(transaction.write, "lib/x", "y") == "read_only"
        assert code(workspace.delete, "notes", recursive=True) == "refused"
        assert code(workspace.move, "notes", "moved") == "refused"
    assert sorted(os.listdir(places / "lib")) == ["b.py", "sub"]
    assert os.listdir(places / "notes") == ["n.md"]


def test_moves_transactions_and_recordings_go_across_and_are_undone(places):
    def notes():
        return {each.name: each.read_text() for each in (places / "notes").rglob("*") if each.is_file()}

    before = notes()
    with opened(places, state=places / "state") as workspace:
        workspace.move("src", "notes/src")
        workspace.move("notes/n.md", "n.md")
        assert notes() == {"a.py": "needle root\n"}
        assert "rename from notes/n.md" in workspace.changes().patch.decode()
        workspace.undo(2)
        with workspace.transaction() as transaction:
            transaction.write("src/new.py", "x\n")
            transaction.edit("notes/n.md", "needle", "pin")
            assert transaction.grep("pin").total_matches == 1
            assert "mount" in transaction.ls().text
        assert notes() == {"n.md": "pin note\n"}
        workspace.undo()
        with workspace.recording("by others"):
            put(places / "notes", {"n.md": "changed\n", "added.md": "added\n"})
        assert "notes/added.md" in workspace.changes().text
    with opened(places, state=places / "state") as workspace:  # the journal outlives the process
        workspace.undo()
    assert notes() == before
    assert (places / "root" / "src" / "a.py").exists()


def test_each_mount_has_its_own_ignore_rules(places):
    put(places, {"root/.gitignore": "*.md\nlib/\n", "lib/.gitignore": "sub/\n"})
    with opened(places) as workspace:
        found = workspace.glob("**")
        assert paths(found.files) == ["deps/shadowed.py", "lib/b.py", "notes/n.md", "src/a.py"]
        assert found.skipped.ignored == 1  # `sub` by the mount; the rules of the root are not about mounts


@pytest.mark.parametrize("watch", [False, "calls"])
def test_ignore_rules_above_a_mount_are_those_of_its_repository(places, watch):
    """They are outside the tree, so no event tells of them."""
    repository = put(places / "repository", {"docs/build": "", "docs/page": ""})
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    mounts = {"docs": Mount(repository / "docs")}
    with Workspace(places / "root", mounts=mounts, watch=watch) as workspace:
        both = ["docs/build", "docs/page"]
        for rule, found in (("/docs/build", both[1:]), ("build\n/docs/page", []), ("", both)):
            (repository / ".gitignore").write_text(f"{rule}\n")
            for _ in range(3):
                assert paths(workspace.glob("docs/**").files) == found
                assert paths(workspace.glob("**", "docs").files) == found


def test_a_state_directory_in_a_mount_or_around_one_is_refused(places):
    """A model could read and change its own history there."""
    for state in (places / "notes" / "state", places / "link" / "state", places):
        (places / "link").unlink(missing_ok=True)
        (places / "link").symlink_to(places / "notes")
        assert "must lie outside" in str(kit.error_of(opened, places, state=state))
    assert os.listdir(places / "notes") == ["n.md"]


def test_global_excludes_that_lie_in_a_mount_are_not_read(places, monkeypatch):
    """Otherwise a program that writes in the mount could hide files of all trees."""
    config = places / "config"
    config.write_text(f"[core]\nexcludesFile = {places / 'notes' / 'excludes'}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    (places / "notes" / "excludes").write_text("*.py\n")
    with opened(places) as workspace:
        assert workspace.glob("**/*.py").total == 4
    with Workspace(places / "root") as workspace:  # there, the file is outside
        assert workspace.glob("**/*.py").total == 0


def test_the_same_directory_at_two_paths(places):
    """An edit by one path is a change by another program for the other, which undo does not take back."""
    mounts = {"one": Mount(places / "notes"), "two": Mount(places / "notes")}
    file = places / "notes" / "n.md"
    with Workspace(places / "root", mounts={**mounts, "ro": Mount(places / "notes", read_only=True)}) as ws:
        ws.edit("one/n.md", "needle", "pin")
        assert ws.read("ro/n.md").text == ws.read("one/n.md").text
        assert code(ws.edit, "ro/n.md", "pin", "x") == "read_only"
        assert ws.grep("pin").total_matches == 3
        ws.undo()
        ws.append("one/n.md", "by one\n")
        ws.append("two/n.md", "by two\n")
        assert code(ws.undo, paths=["one/n.md"]) == "conflict"
        for call, texts in ((ws.undo, ("by one\n", "")), (ws.redo, ("by one\n", "by one\nby two\n"))):
            for text in texts:
                call()
                assert file.read_text() == f"needle note\n{text}"
        names = ("two/n.md", "one/n.md")
        with ThreadPoolExecutor(4) as threads:  # no update is lost
            list(threads.map(lambda n: ws.append(names[n % 2], f"{n}\n"), range(40)))
    assert sorted(file.read_text().split()[6:]) == sorted(map(str, range(40)))


@pytest.mark.parametrize("watch", [False, "calls"])
def test_changes_of_other_programs_in_a_mount_are_seen(places, watch):
    with opened(places, watch=watch) as workspace:
        assert workspace.grep("needle", "notes").total_matches == 1
        for number in range(3):
            (places / "notes" / f"{number}.md").write_text("needle\n")
            (places / "notes" / "n.md").write_text("needle\n" * (number + 2))
            assert workspace.grep("needle", "notes").total_matches == 2 * number + 3


@pytest.mark.parametrize(("path", "source", "expected"), [
    *((path, source, "invalid_argument") for path, source in (
        ("a/b", "lib"), ("deps/lib", "lib"), ("src", "lib"), ("link", "lib"), ("x", "root/src"),
        ("x", "root"), ("x", "."), (".", "lib"), ("..", "lib"))),
    ("/x", "lib", "outside_workspace"), ("", "lib", "invalid_path"), ("x", "missing", "not_found"),
    ("x", "one.txt", "not_a_directory"),
])  # fmt: skip
def test_bad_mounts(places, path, source, expected):
    (places / "root" / "link").symlink_to("src")
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert code(Workspace, places / "root", mounts={path: Mount(places / source)}) == expected
    if before:
        assert len(os.listdir("/proc/self/fd")) == before
    assert code(Mount, 3) == "invalid_argument"


@pytest.mark.parametrize("swap", ["link", "file", "directory"])
@pytest.mark.parametrize("watch", [False, "calls"])
def test_a_name_that_appears_later_is_shadowed_by_its_mount(places, swap, watch):
    (places / "secret").mkdir()
    (places / "secret" / "b.py").write_text("needle secret")
    with opened(places, watch=watch) as workspace:
        if swap == "link":
            (places / "root" / "lib").symlink_to(places / "secret")
        elif swap == "file":
            (places / "root" / "lib").write_text("x")
        else:
            (places / "secret").rename(places / "root" / "lib")
        for _ in range(2):
            assert "needle lib" in workspace.read("lib/b.py").text
            assert "secret" not in workspace.grep("needle").text
            assert paths(workspace.glob("b.py").files) == ["lib/b.py"]


def test_regression_no_method_leaves_a_mount(places):
    """A copy and a move to a path beside a mount were written at the root, past a rule."""
    policy = Policy(overwrite="always", deny=["*(CLAUDE.md)", "*(lib/CLAUDE.md)"])
    with opened(places, policy=policy) as workspace:
        for path in ("CLAUDE.md", "lib/CLAUDE.md", "notes/../CLAUDE.md", "lib/../CLAUDE.md"):
            for call in (
                lambda path: workspace.write(path, "x"),
                lambda path: workspace.move("notes/n.md", path),
                lambda path: workspace.append(path, "x"),
                workspace.mkdir,
            ):
                assert code(call, path) in ("refused", "read_only")
        workspace.move("notes/n.md", "notes/CLAUDE.txt")
        assert not (places / "root" / "CLAUDE.md").exists()
    assert sorted(os.listdir(places / "notes")) == ["CLAUDE.txt"]
    assert sorted(os.listdir(places / "lib")) == ["b.py", "sub"]


def test_an_unreadable_source():
    with public_directory() as place:
        (place / "root").mkdir()
        (place / "closed").mkdir(mode=0o000)
        user = os.geteuid()
        os.seteuid(user or 65534)  # not as root
        try:
            mounts = {"x": Mount(place / "closed")}
            assert code(Workspace, place / "root", mounts=mounts, policy=Policy(read_only=True)) == "io"
        finally:
            os.seteuid(user)


def test_a_mount_that_vanishes_loses_nothing(places):
    with opened(places) as workspace:
        workspace.edit("notes/n.md", "needle", "pin")
        os.rename(places / "notes", places / "elsewhere")  # it is followed, as a root is
        assert "pin" in workspace.read("notes/n.md").text
        (places / "elsewhere" / "n.md").unlink()
        (places / "elsewhere").rmdir()
        assert code(workspace.read, "notes/n.md") == "not_found"
        assert code(workspace.write, "notes/x", "y") == "not_found"
        assert workspace.grep("needle").total_matches == 4
        assert "root" in workspace.read("src/a.py").text


@pytest.fixture
def far(tmp_path):
    for place in ("/dev/shm", "/run", "/var/tmp"):
        if os.access(place, os.W_OK) and os.stat(place).st_dev != os.stat(tmp_path).st_dev:
            with tempfile.TemporaryDirectory(dir=place) as made:
                yield Path(made)
            return
    pytest.skip("there is one file system")


def test_a_rename_across_file_systems_is_undone(places, far):
    (places / "root" / "src" / "a.py").chmod(0o640)
    put(places / "root", {"src/big": "more than an edit may read\n" * 10})
    limits = Limits(file_bytes=100)
    with Workspace(places / "root", mounts={"far": Mount(far)}, limits=limits) as workspace:
        workspace.move("src", "far/src")
        workspace.move("far/src/a.py", "b.py")
        assert (places / "root" / "b.py").stat().st_mode & 0o777 == 0o640
        assert sorted(far.rglob("*")) == [far / "src", far / "src" / "big"]
        assert not (places / "root" / "src").exists()
        workspace.undo(2)
        assert (places / "root" / "src" / "a.py").read_text() == "needle root\n"
        assert not any(far.iterdir())
        workspace.redo()
        assert (far / "src" / "a.py").read_text() == "needle root\n"


def test_regression_a_deletion_in_a_mount_is_part_of_its_transaction(places):
    """The deletion of a mounted file was reported; then the commit failed and dropped every other edit."""
    with Workspace(places / "root", mounts={"notes": places / "notes"}) as ws:
        with ws.transaction() as tx:
            tx.delete("notes/n.md")
            tx.write("new.md", "new\n")
        assert not (places / "notes" / "n.md").exists()
        assert (places / "root" / "new.md").read_text() == "new\n"
        ws.undo()
        assert (places / "notes" / "n.md").exists()
        assert not (places / "root" / "new.md").exists()
