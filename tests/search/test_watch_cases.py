"""Changes that a watched workspace must notice; the limits of watching; attacks on the kept tree."""

import errno
import gc
import mmap
import os
import resource
import shutil
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
from collections import Counter
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentfs import Limits, Policy, Workspace
from agentfs.fs import Directory, ReadBuffer, context, syscalls
from agentfs.tree.walk import Walk
from agentfs.watch import inotify, kept_texts, text_blocks
from agentfs.watch.kept_tree import WatchedTree
from agentfs.watch.watched_directory import WatchedDirectory
from tests import kit
from tests.search.watched import CALLS, answer, check_same

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="it needs root")
linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
MIB = 1024 * 1024


@pytest.fixture
def root(tmp_path):
    top = tmp_path / "root"
    for directory in ("", "a", "a/b", "c"):
        (top / directory).mkdir()
        (top / directory / "one.txt").write_text(f"first in {directory or 'top'}\n")
        (top / directory / "two.py").write_text("second\n")
    return top


@pytest.fixture
def ws(root):
    with Workspace(root, watch=True) as workspace:
        lines(workspace, "first")
        assert (workspace.watch.directories > 0) == (sys.platform == "linux")
        yield workspace


def lines(workspace, pattern, **arguments):
    return workspace.grep(pattern, context=0, **arguments).total_lines


# Shell commands, in steps that `|` divides; after each, a watched workspace answers as a cold one does.
LINK = "ln a/one.txt c/link; echo needle > c/link"
NOTICED = {
    "at one size and time": "touch -r a/one.txt ../t; echo other in a > a/one.txt; touch -r ../t a/one.txt",
    "through a new name": LINK,
    "through a new name that is removed": f"{LINK}; rm c/link",
    "through a name that replaces another and is removed": f"{LINK}; mv -f c/link c/one.txt; rm c/one.txt",
    "through a new name that is moved out": f"{LINK}; mv c/link ../away | echo again > ../away",
    "through a name that was moved away before": "ln a/one.txt c/link; mv c/link ../o | echo needle > ../o",
    "to the rules through another name": "ln .ignore a/name; echo c > a/name; rm a/name",
    "in a directory that is moved": "ln a/one.txt c/link; mv c moved | echo needle > moved/link",
    "in a directory that is moved out": "ln a/one.txt c/link; mv c ../moved | echo needle > ../moved/link",
    "in a directory that is made": "mkdir -p n/m; ln a/one.txt n/m/link | echo needle > n/m/link",
    "in a directory that was away": "mv a ../a | echo so > ../a/b/one.txt; mv ../a d | echo o > d/b/one.txt",
    "in directories that change places": "mv a x; mv c a; mv x c | echo needle > a/one.txt",
    "in a new directory of an old name": "mv a/b b; rm -r c; mkdir c; echo needle > c/new.txt",
}  # fmt: skip
OUTSIDE = "ln a/one.txt ../o; echo needle > ../o; rm ../o | ln a/one.txt ../o | echo other > ../o"
SEARCHES = [
    ("grep", {"pattern": "first|needle|other"}),
    ("glob", {"pattern": "one.txt"}),
    ("ls", {"depth": 0}),
]


@pytest.mark.parametrize("events", ["of files", "of directories", "lost"])
@pytest.mark.parametrize("change", NOTICED)
def test_a_change_is_noticed(root, monkeypatch, change, events):
    if events == "of directories":
        monkeypatch.setattr(inotify, "watch_limit", lambda: 0)
    elif events == "lost":
        lose_events(monkeypatch)
    check_noticed(root, NOTICED[change])


@linux
def test_a_change_through_a_new_name_outside_of_the_tree_is_noticed(root):
    check_noticed(root, OUTSIDE)


def check_noticed(root, commands):
    (root / ".ignore").write_text("nothing\n")
    with Workspace(root, watch=True) as ws:
        check_same(ws, root, SEARCHES)
        for step in commands.split(" | "):
            subprocess.run(["sh", "-ec", step], cwd=root, check=True)
            check_same(ws, root, SEARCHES)


@pytest.fixture(params=["a watch for each file", "watches for directories only"])
def file_watches(request, monkeypatch):
    """Let what holds for files with a watch of their own hold for others too."""
    if request.param != "a watch for each file":
        monkeypatch.setattr(inotify, "watch_limit", lambda: 0)


@pytest.fixture
def few_watches(monkeypatch):
    """Returns a function that sets how many more watches the system has, and the number of refusals."""
    left, refused = [0], []
    add, add_file, remove = inotify.Inotify.add, inotify.Inotify.add_file, inotify.Inotify.remove

    def limited(add, queue, fd):
        if not left[0]:
            refused.append(fd)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left[0] -= 1
        return add(queue, fd)

    def give_back(queue, number):
        left[0] += 1
        remove(queue, number)

    monkeypatch.setattr(inotify.Inotify, "add", lambda *given: limited(add, *given))
    monkeypatch.setattr(inotify.Inotify, "add_file", lambda *given: limited(add_file, *given))
    monkeypatch.setattr(inotify.Inotify, "remove", give_back)
    return left, refused


@linux
def test_watches_of_files_give_way_to_those_of_directories(root, few_watches):
    few_watches[0][0] = 6
    with Workspace(root, watch=True) as ws:
        assert lines(ws, "first", path="a") == 2
        assert lines(ws, "first") == 4
        assert few_watches[1]
        assert (ws.watch.directories, ws.watch.not_watched) == (4, {})
    few_watches[0][0] = 6
    check_noticed(root, f"{LINK}; rm c/link")


@linux
def test_directories_without_a_free_watch_are_compared_and_reported(root, monkeypatch, few_watches):
    monkeypatch.setattr(context, "TIME_RESOLUTION", 10_000_000)
    monkeypatch.setattr(inotify, "watch_limit", lambda: 0)
    few_watches[0][0] = 10
    for number in range(20):
        (root / f"d{number}/e").mkdir(parents=True)
        (root / f"d{number}/e/one.txt").write_text("first\n")
    with Workspace(root, watch=True) as ws:
        for number in range(3):
            check_same(ws, root, CALLS[number::3])
            (root / f"d{number}/e/one.txt").write_text("needle\n")
            (root / f"d19/e/new{number}").write_text("needle\n")
            assert lines(ws, "needle") == 2 * number + 2
        assert ws.watch.directories == 10
        assert ws.watch.not_watched.keys() == {"no watches left"}


@pytest.mark.usefixtures("file_watches")
def test_a_change_through_a_name_that_was_removed_while_open_is_noticed(root):
    os.link(root / "a/one.txt", root / "c/link.txt")
    with Workspace(root, watch=True) as ws, (root / "c/link.txt").open("r+") as file:
        (root / "c/link.txt").unlink()
        assert lines(ws, "needle") == 0
        file.write("needle")
        file.flush()
        assert lines(ws, "needle") == 1


@linux
def test_a_file_that_is_replaced_by_its_name_in_another_case_is_read_again(root, monkeypatch):
    """As where a directory ignores case: the event has the name of the call, the listing that of the file."""
    drain, lstat = inotify.Inotify.drain, syscalls.lstat

    def drain_in_upper_case(queue):
        changes, lost = drain(queue)
        return {
            watch: {name.upper(): events for name, events in names.items()}
            for watch, names in changes.items()
        }, lost

    monkeypatch.setattr(inotify.Inotify, "drain", drain_in_upper_case)
    monkeypatch.setattr(
        syscalls, "lstat", lambda handle, name: lstat(handle, name.replace("ONE.TXT", "one.txt"))
    )
    with Workspace(root, watch=True) as ws:
        lines(ws, "first")
        (root / "a/new").write_text("needle\n")
        (root / "a/new").rename(root / "a/one.txt")
        assert lines(ws, "needle") == 1


def test_files_with_several_names_are_compared_at_each_search(root, tmp_path, monkeypatch):
    monkeypatch.setattr(context, "TIME_RESOLUTION", 0)
    os.link(root / "a/one.txt", tmp_path / "outside")
    with Workspace(root, watch=True) as ws:
        assert lines(ws, "needle") == 0
        (tmp_path / "outside").write_text("needle\n")
        assert lines(ws, "needle") == 1


@pytest.mark.parametrize("file", [".gitignore", ".ignore", ".git/info/exclude", "global", "above"])
def test_a_rule_that_changes_decides_again(root, tmp_path, monkeypatch, file):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    repository = tmp_path if file == "above" else root
    for name in ("info", "objects", "refs"):
        (repository / ".git" / name).mkdir(parents=True)
    (repository / ".git/HEAD").write_text("ref: refs/heads/main\n")
    places = {"global": tmp_path / "config/git/ignore", "above": tmp_path / ".gitignore"}
    path = places.get(file, root / file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("nothing\n")
    with Workspace(root, watch=True) as ws:
        assert lines(ws, "first") == ws.glob("one.txt").total == 4
        with path.open("r+") as rules:
            rules.write("a/     \n")
        assert lines(ws, "first") == ws.glob("one.txt").total == 2
        path.unlink()
        assert lines(ws, "first") == ws.glob("one.txt").total == 4


@linux
def test_a_second_change_in_one_clock_tick_is_found_after_lost_events(root, monkeypatch):
    packed = kept_texts._STATUS
    without_times = SimpleNamespace(pack=lambda *status: packed.pack(*status[:-2], 0, 0))
    lose_events(monkeypatch)
    monkeypatch.setattr(kept_texts, "_STATUS", without_times)
    monkeypatch.setattr(context, "_TICK", context.TIME_RESOLUTION)
    with Workspace(root, watch=True) as ws:
        assert lines(ws, "first") == 4
        (root / "a/one.txt").write_text("other in a\n")
        assert lines(ws, "other") == 1


@linux
def test_a_directory_remade_with_its_inode_during_lost_events_is_watched_again(root, monkeypatch):
    inode = (root / "c").stat().st_ino
    with Workspace(root, watch=True) as ws:
        lines(ws, "first")
        for _ in range(50):
            shutil.rmtree(root / "c")
            (root / "c").mkdir()
            if (root / "c").stat().st_ino == inode:
                break
        else:
            pytest.skip("the file system does not use an inode again")
        lose_events(monkeypatch)
        lines(ws, "first")
        monkeypatch.undo()
        (root / "c/new.txt").write_text("needle\n")
        assert lines(ws, "needle") == 1


def lose_events(monkeypatch):
    drain = inotify.Inotify.drain
    monkeypatch.setattr(inotify.Inotify, "drain", lambda queue: ({}, bool(drain(queue)[0])))


@pytest.mark.long  # it changes a setting of the machine, which other tests meet
@linux
@needs_root
def test_a_short_queue_that_overflows_loses_nothing(root):
    setting = Path("/proc/sys/fs/inotify/max_queued_events")
    usual = setting.read_text()
    try:
        setting.write_text("16")
    except OSError:
        pytest.skip("the setting cannot be changed here")
    try:
        ws = Workspace(root, watch=True)
        lines(ws, "first")
    finally:
        setting.write_text(usual)
    with ws:
        for round_ in range(3):
            for number in range(40):
                (root / f"a/{number}.txt").write_text(f"needle {round_}\n")
            assert lines(ws, f"needle {round_}") == 40
            check_same(ws, root)


@linux
def test_a_file_system_without_events_is_compared_and_reported(root, monkeypatch):
    monkeypatch.setattr(syscalls, "file_system", lambda _: 0x6969)
    with Workspace(root, watch=True) as ws:
        assert lines(ws, "needle") == 0
        (root / "a/one.txt").write_text("needle\n")
        assert lines(ws, "needle") == 1
        assert (ws.watch.directories, ws.watch.texts) == (0, 0)
        assert "a file system without events (type 0x6969)" in ws.watch.not_watched


@linux
def test_a_status_from_the_cache_of_a_network_file_system_hides_no_change(root, monkeypatch):
    monkeypatch.setattr(syscalls, "file_system", lambda _: 0x6969)
    monkeypatch.setattr(context, "TIME_RESOLUTION", 0)
    monkeypatch.setattr(syscalls, "lstat", cache(syscalls.lstat))
    with Workspace(root, watch=True) as ws:
        assert lines(ws, "needle") == lines(ws, "needle") == 0
        (root / "a/one.txt").write_text("needle\n")
        assert lines(ws, "needle") == 1


MOUNTS = {
    "mounts in the tree are noticed": """
        assert found("first|needle") == 4
        mount("-t", "tmpfs", "none", root / "a")
        assert found("first|needle") == 2
        (root / "a/new.txt").write_text("needle")
        assert found("first|needle") == 3
        subprocess.run(["umount", root / "a"], check=True)
        assert found("first|needle") == 4
        mount("--bind", root / "a", root / "c")
        assert found("first|needle") == 5
        (root / "a/b/one.txt").write_text("nothing")
        assert found("first|needle") == 3
    """,
    "a file that is a mount point is never stale": """
        (root.parent / "outside").write_text("needle\\n")
        for path in (root / ".gitignore", root.parent / "rules"):
            path.write_text("nothing\\n")
        for name, over in (("outside", "a/one.txt"), ("rules", ".gitignore")):
            mount("--bind", root.parent / name, root / over)
        ws = Workspace(root, watch=True)
        assert found("needle") == 1
        (root / "a/one.txt").write_text("other")
        assert (found("needle"), found("other")) == (0, 1)
        (root.parent / "outside").write_text("needle")
        assert (found("needle"), found("other")) == (1, 0)
        (root / ".gitignore").write_text("a")
        assert found("needle") == 0
    """,
    "a forked process does not take the news of a mount": """
        assert found("first") == 4
        mount("-t", "tmpfs", "none", root / "a")
        child = os.fork()
        if child == 0:
            os._exit(0 if found("first") == 2 else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert found("first") == 2
    """,
    "a layer that is changed below an overlay is not noticed": """
        mount("-t", "tmpfs", "none", "/mnt")
        for name in ("upper", "work", "top"):
            Path("/mnt", name).mkdir()
        options = f"lowerdir={root},upperdir=/mnt/upper,workdir=/mnt/work"
        mount("-t", "overlay", "none", "-o", options, "/mnt/top")
        ws = Workspace("/mnt/top", watch=True)
        assert found("needle") == 0
        (root / "a/one.txt").write_text("needle")
        assert found("needle") == 0
        Path("/mnt/top/a/b/one.txt").write_text("needle")
        assert found("needle") == 1
        ws.forget()
        assert found("needle") == 2
    """,
}


@linux
@needs_root
@pytest.mark.parametrize(
    "name", [pytest.param(next(iter(MOUNTS)), marks=pytest.mark.full), *list(MOUNTS)[1:]]
)
def test_mounts(root, name):
    run_with_own_mounts(MOUNTS[name], root)


@linux
@needs_root
@pytest.mark.parametrize("name", ["a\r\rb", "new\nline", "sp ace", "b\\040"])
def test_any_name_of_a_mount_point_and_of_the_root_is_understood(root, tmp_path, name):
    (tmp_path / name).mkdir()
    root = root.rename(tmp_path / f"root {name}")
    code = """
        name = root.name.removeprefix("root ")
        found = lambda: ws.glob("*").total
        assert found() == 8
        mount("-t", "tmpfs", "none", root.parent / name)
        Workspace(root, watch=True).close()
        assert (found(), ws.watch.resets) == (8, 0)
        root = root.rename(root.parent / f"renamed {name}")
        mount("-t", "tmpfs", "none", root / "a")
        assert (found(), ws.watch.resets) == (4, 1)
        mount("-t", "tmpfs", "none", root / "c")
        assert (found(), ws.watch.resets) == (2, 2)
    """
    run_with_own_mounts(code, root)


# Changes without events, as docs/how-to/watch.md lists them: these tests show the limit, and where it ends.


@linux
def test_a_write_through_a_mapping_is_noticed_when_the_file_is_closed(ws, root):
    with (root / "a/one.txt").open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:6] = b"needle"
        assert lines(ws, "needle") == 0
    assert lines(ws, "needle") == 1


@linux
def test_a_write_through_a_removed_name_outside_is_noticed_with_the_next_event(root, tmp_path):
    os.link(root / "a/one.txt", tmp_path / "outside")
    with (tmp_path / "outside").open("r+") as file:
        (tmp_path / "outside").unlink()
        with Workspace(root, watch=True) as ws:
            assert lines(ws, "needle") == 0
            file.write("needle")
            file.flush()
            assert lines(ws, "needle") == 0
            (root / "a/one.txt").touch()
            assert lines(ws, "needle") == 1


PRELUDE = """
import os, subprocess, sys
from pathlib import Path
from agentfs import AgentFSError, Workspace
root = Path(sys.argv[1])
ws = Workspace(root, watch=True)
mount = lambda *arguments: subprocess.run(["mount", *arguments], check=True)
found = lambda pattern: ws.grep(pattern, context=0).total_lines
"""


def run(command, code, root):
    command = [*command, sys.executable, "-c", PRELUDE + textwrap.dedent(code), str(root)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def run_with_own_mounts(code, root):
    done = run(["unshare", "-m"], code, root)
    if "unshare failed" in done.stderr or "mount(8)" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stderr == ""


@pytest.mark.full
@needs_root
def test_files_that_may_no_longer_be_read_are_not_shown(root, public):
    root = Path(shutil.move(root, public / "root"))  # maybe on another file system
    code = """
        os.chdir(root)
        for watched in (True, False):  # what is imported must be, before that may not be read
            Workspace(".", watch=watched).grep("first|x", context=0).text + Workspace(".").ls().text
        os.setgid(65534), os.setuid(65534)
        ws, cold = Workspace(".", watch=True), Workspace(".")
        def answer(workspace):
            try:
                found = workspace.grep("first", context=0)
                return found.matches, found.skipped, workspace.ls(depth=0).text
            except AgentFSError as error:
                return str(error)
        for path in ("a/one.txt", "a/b", "a", ""):
            for mode in (0o000, 0o400, 0o100, 0o700):
                os.chmod(root / path, mode)
                for _ in range(2):
                    assert answer(ws) == answer(cold), (path, mode, answer(ws), answer(cold))
    """
    for path in (root, *root.rglob("*")):
        os.chown(path, 65534, 65534)
    assert run([], code, root).stderr == ""


@pytest.mark.full
def test_memory_is_bounded_and_given_back(root):
    for number in range(200):
        (root / f"c/{number}.txt").write_text(f"needle {number}\n" + "hay\n" * 2500)
    with Workspace(root, limits=Limits(watch_bytes=MIB), watch=True) as ws:
        for _ in range(3):
            assert lines(ws, "needle") == 200
            report = ws.watch
            assert report.kept_bytes <= MIB
            assert report.text_bytes > MIB // 2
            assert report.kept_bytes <= 1.15 * report.text_bytes
        for number in range(0, 200, 2):
            (root / f"c/{number}.txt").write_text("gone\n")
        assert lines(ws, "needle") == 100
        assert ws.watch.kept_bytes <= 1.15 * ws.watch.text_bytes
        ws.forget()
        assert (ws.watch.texts, ws.watch.names) == (0, 0)
        check_same(ws, root)
        kept = ws._root.watch
    assert kept.report.kept_bytes == 0


def test_memory_is_bounded_while_the_listing_grows(root):
    for number in range(100):
        (root / f"a/{number}.txt").write_text("needle\n" * 1500)
    for number in range(1200):
        (root / f"c/{number}.txt").touch()
    with Workspace(root, limits=Limits(watch_bytes=MIB), watch=True) as ws:
        lines(ws, "needle")
        allocated = sum(len(block.data) for block in ws._root.watch.texts.blocks._blocks)
        assert ws.watch.names > 1300
        assert 384 * ws.watch.names + allocated <= MIB


def test_no_text_is_kept_without_memory(root, monkeypatch):
    def no_memory(size):
        raise MemoryError

    monkeypatch.setattr(text_blocks, "bytearray", no_memory, raising=False)
    with Workspace(root, watch=True) as ws:
        check_same(ws, root)
        assert ws.watch.texts == 0


FILTERS = [
    *(("grep", {"pattern": "first", **filters}) for filters in (
        {"exclude": "a"}, {"exclude": "c"}, {"exclude": "a", "hidden": True}, {"glob": "*.txt"},
        {"glob": "*.py"}, {"glob": ".hidden/**"}, {"glob": "!a"}, {"max_depth": 1},
        *({"max_filesize": size} for size in (100, 5000, 4999)),
        *({"output_mode": "files_with_matches", **most} for most in ({}, {"limit": 1})))),
    *(("glob", {"pattern": pattern}) for pattern in ("a/**", "c/*.txt", "**/b/*", "*.txt", ".hidden/*")),
    *(("ls", {"depth": 0, "ignore": ignored}) for ignored in ([], ["a"], ["c"])),
]  # fmt: skip


def test_searches_with_other_filters_do_not_share_what_is_kept(root):
    kit.put(root, {".hidden/one.txt": "first\n", "a/binary": b"\0" * 5000})
    (root / "c/.gitignore").symlink_to("one.txt")  # an unreadable rule file
    with Workspace(root, watch=True) as ws:
        for _ in range(2):
            check_same(ws, root, FILTERS)


def test_data_derived_from_listings_is_bounded(root):
    with Workspace(root, watch=True) as ws:
        for name in ("include_ignored", "hidden"):
            for number in range(20):
                kit.find(ws, pattern=f"no-{number}", types=["f", "d"][number % 2], **{name: bool(number % 3)})
                ws.grep(f"no-{number}", **{name: bool(number % 3)})
        assert len(ws._root.watch._top.derived) <= 8
        assert ws.glob("one.txt").total == 4


@pytest.mark.full
def test_the_listing_takes_at_most_300_bytes_a_name(tmp_path):
    for number in range(100):
        (tmp_path / f"directory {number}").mkdir()
        for file in range(50):
            (tmp_path / f"directory {number}/some_file_{file}.py").touch()
    with Workspace(tmp_path, watch=True) as ws:
        assert (
            ws.ls().total == 100
        )  # what is loaded, and kept once for the process, is before the measurement
        gc.collect()
        tracemalloc.start()
        try:
            assert (ws.glob("*.py").total, ws.ls(depth=2).total) == (5000, 5100)
            gc.collect()
            taken, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert 5100 * 100 < taken <= 5100 * 300


@pytest.mark.full
def test_the_listing_is_bounded_and_the_rest_is_searched_cold(root):
    for number in range(200):
        (root / f"c/{number}.txt").write_text("needle\n")
    for number in range(30):
        (root / f"d{number}/e").mkdir(parents=True)
        (root / f"d{number}/e/one.txt").write_text("needle\n")
    with Workspace(root, limits=Limits(watch_bytes=64 * 1024), watch=True) as ws:
        for number in range(3):
            check_same(ws, root, CALLS[number::3])
            assert 50 < ws.watch.names < 150
            assert "too many names" in ws.watch.not_watched
            (root / f"c/new{number}").write_text("needle\n")
            (root / f"d{number}/new").write_text("needle\n")
        shutil.rmtree(root / "c")
        check_same(ws, root)


def test_directories_with_a_long_path_are_searched_cold(root):
    directory = root.joinpath(*["d" * 200] * 8)
    directory.mkdir(parents=True)
    with Workspace(root, watch=True) as ws:
        for number in range(2):
            check_same(ws, root)
            (directory / "one.txt").write_text(f"needle {number}\n")
        assert "a long path" in ws.watch.not_watched


def test_texts_that_searches_use_most_stay_when_memory_is_short(root):
    for directory in ("a", "b", "c"):
        for number in range(60):
            (root / directory).mkdir(exist_ok=True)
            (root / f"{directory}/{number}.txt").write_text(f"needle {number}\n" + "hay\n" * 2500)

    def kept(ws):
        files = [file for file in ws._root.watch._files() if file.block is not None]
        return Counter(file.directory.real_path for file in files)

    with Workspace(root, limits=Limits(watch_bytes=MIB), watch=True) as ws:
        for _ in range(3):
            lines(ws, "needle")
        assert kept(ws)["c"] < 30
        for _ in range(6):  # the searches of everything need all texts, and "c" is needed twice as often
            assert lines(ws, "needle", path="c") == 60
            assert lines(ws, "needle") == 180
            assert ws.watch.kept_bytes <= MIB
        assert kept(ws)["c"] == 62
        texts = set(ws._root.watch._files())
        before = {file for file in texts if file.block is not None}
        for _ in range(4):
            lines(ws, "needle")
            lines(ws, "n[a-e]+dle")
            lines(ws, ".{5}dle")
        assert {file for file in texts if file.block is not None} == before  # nothing is read in vain


def test_protected_files_are_never_kept(root):
    (root / ".env").write_text("SECRET one\n")
    with Workspace(root, watch=True) as ws:
        for hidden in (False, True):
            assert lines(ws, "SECRET", hidden=hidden) == 0
        assert b"SECRET" not in b"".join(bytes(block.data) for block in ws._root.watch.texts.blocks._blocks)
        (root / ".env").rename(root / "a/visible.txt")
        assert lines(ws, "SECRET") == 1
        (root / "a/visible.txt").rename(root / ".env")
        assert lines(ws, "SECRET") == 0


@pytest.mark.parametrize("told", [True, False])
def test_a_directory_swapped_for_a_link_leads_nowhere(ws, root, tmp_path, monkeypatch, told):
    """Even where no event would tell of it: what is kept is compared, and what is read is opened confined."""
    outside = tmp_path / "outside"
    shutil.copytree(root / "a", outside)
    for name in ("one.txt", "two.py", "b/one.txt"):
        (outside / name).write_text("first SECRET\n")
    if not told:
        monkeypatch.setattr(inotify.Inotify, "drain", lambda _: ({}, False))
    (root / "a").rename(tmp_path / "was")
    (root / "a").symlink_to(outside)
    (outside / "one.txt").chmod(0o600)
    for pattern in ("first", "SECRET", "."):
        assert [match.path for match in ws.grep(pattern).matches if match.path.startswith("a/")] == []
    sizes = {path.stat().st_size for path in outside.rglob("*.*")}
    listed = [*ws.ls(depth=0, sort="size").entries, *ws.glob("*", sort="modified").files, *kit.find(ws).files]
    assert [entry for entry in listed if entry.path.startswith("a/") and (told or entry.size in sizes)] == []


def test_a_rule_that_denies_reading_holds_for_what_is_kept(root):
    with Workspace(root, policy=Policy(deny=["read(a/**)"]), watch=True) as ws:
        for _ in range(2):
            found = ws.grep("first", context=0)
            assert (found.total_lines, found.skipped.protected) == (2, 4)


@pytest.mark.parametrize("arguments", [{}, {"follow_symlinks": True}])
def test_kept_texts_are_not_read_again(ws, root, monkeypatch, arguments):
    (root / "c/link").symlink_to("../a")
    found = kit.grep(ws, "first", context=0, **arguments)
    read, fill = [], ReadBuffer.fill
    monkeypatch.setattr(
        ReadBuffer, "fill", lambda buffer, source: read.append(source) or fill(buffer, source)
    )
    assert kit.grep(ws, "first", context=0, **arguments).matches == found.matches
    assert len(found.matches) == (6 if "follow_symlinks" in arguments else 4)
    assert not [source for source in read if isinstance(source, int)]


def test_a_first_watched_glob_near_the_deadline_finds_what_a_cold_one_finds(tmp_path, monkeypatch):
    for number in range(100):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}/one.txt").touch()
    monotonic, passed = time.monotonic, 0.0
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + passed)

    def slow(scan_parts):
        def scan_slowly(directory, size):
            nonlocal passed
            passed += 0.1
            yield from scan_parts(directory, size)

        return scan_slowly

    for kind in (Directory, WatchedDirectory):
        monkeypatch.setattr(kind, "scan_parts", slow(kind.scan_parts))
    found = []
    for watched in (False, True):
        with Workspace(tmp_path, watch=watched) as ws:
            found.append(ws.glob("*.txt", timeout=5))
    assert [each.skipped.reached for each in found] == ["timeout", "timeout"]
    assert 0.8 * found[0].total <= found[1].total < 50


CHANGES = {
    "a temporary file that comes and goes": lambda top: ((top / "t").write_text("x"), (top / "t").unlink()),
    "a new directory": lambda top: (top / "new").mkdir(),
    "a new directory with a file": lambda top: ((top / "new").mkdir(), (top / "new/f").write_text("first")),
    "a directory that goes": lambda top: shutil.rmtree(top.with_name("20")),
    "a directory that is renamed": lambda top: top.with_name("20").rename(top / "moved"),
    "an atomic save": lambda top: ((top / "t").write_text("first"), (top / "t").rename(top / "one.txt")),
    "a new file": lambda top: (top / "new.txt").write_text("first"),
    "a new file at the top": lambda top: (top.parent / "new.txt").write_text("first"),
    "a file that is renamed": lambda top: (top / "one.txt").rename(top / "other.txt"),
    "a link": lambda top: os.link(top / "one.txt", top / "link.txt"),
    "object files": lambda top: [(top / f"{number}.o").write_bytes(b"\0") for number in range(20)],
    "a file that goes": lambda top: (top / "one.txt").unlink(),
    "a write in place": lambda top: (top / "one.txt").write_text("first of all"),
}


@linux
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_cost_of_the_next_search_is_in_proportion_to_the_change(tmp_path, monkeypatch, change):
    (tmp_path / ".gitignore").write_text("nothing\n")
    for number in range(200):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}/one.txt").write_text("first\n" if number < 10 else "second\n")
    with Workspace(tmp_path, watch=True) as ws:
        lines(ws, "first")
        ws.glob("*.txt")
        ws.ls(depth=0)
        lines(ws, "first")
        change(tmp_path / "10")
        steps = []

        def count(owner, name):
            function = getattr(owner, name)
            monkeypatch.setattr(
                owner, name, lambda *given, **named: steps.append(name) or function(*given, **named)
            )

        for owner, names in (
            (syscalls, ["lstat", "open_file", "open_directory"]),
            (kept_texts.KeptTexts, ["load"]),
            (WatchedTree, ["_list"]),
            (Walk, ["_scan"]),
        ):
            for name in names:
                count(owner, name)
        found = lines(ws, "first"), ws.glob("*.txt", limit=1).total
        assert len(steps) < 150, steps  # 20 new files are opened, found to be binary, and kept
        monkeypatch.undo()
        with Workspace(tmp_path) as cold:
            assert found == (lines(cold, "first"), cold.glob("*.txt").total)
            assert answer(ws, "ls", {"depth": 0}) == answer(cold, "ls", {"depth": 0})


@linux
def test_each_call_keeps_a_part_of_a_new_tree_and_answers_like_a_cold_one(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_texts, "_FIRST_KEPT", 10)
    for number in range(70):
        (tmp_path / f"{number}/in").mkdir(parents=True)
        (tmp_path / f"{number}/one.txt").write_text("needle\n" * (number % 3))
        (tmp_path / f"{number}/in/two.txt").write_text("needle\n")
    calls = [
        ("grep", {"pattern": "needle"}),
        ("grep", {"pattern": "needle", "path": ["50", "69/in"]}),
        ("grep", {"pattern": "n.*e", "sort": "size", "output_mode": "files_with_matches"}),
        ("glob", {"pattern": "**/two.txt"}),
        ("ls", {"depth": 0}),
    ]
    left = []
    with Workspace(tmp_path, watch="calls") as ws:
        for _ in range(8):
            ws.ls()
        before = ws.watch.directories
        for number in range(12):
            check_same(ws, tmp_path, [calls[number % len(calls)]])
            report = ws.watch
            kept = report.directories + report.texts
            assert kept - before <= max(10, before + number)  # each call has read a changed file again
            before = kept
            left.append(report.not_watched.get("kept by a later call", 0))
            (tmp_path / f"{number}/one.txt").write_text("needle needle\n")
        assert left[0] > 0
        assert left[-1] == 0
        check_same(ws, tmp_path, calls)
        assert (ws.watch.directories, ws.watch.texts) == (141, 140)


@linux
def test_an_unwatched_file_that_was_written_just_before_it_was_read_is_not_read_again(root, monkeypatch):
    monkeypatch.setattr(inotify, "watch_limit", lambda: 0)
    time.sleep(0.05)
    loaded, load = [], kept_texts.KeptTexts.load
    with Workspace(root, watch=True) as ws:
        lines(ws, "first")
        monkeypatch.setattr(kept_texts.KeptTexts, "load", lambda *given: loaded.append(given) or load(*given))
        (root / "new").write_text("x")
        (root / "new").unlink()
        assert lines(ws, "first") == 4
    assert loaded == []


@pytest.mark.full
def test_threads_see_whole_states(root):
    """A writer replaces two lines at once; no search may find one of the old and one of the new."""
    path = root / "a/both.txt"
    path.write_text("needle 0\nneedle 0\n")
    with Workspace(root, watch=True) as ws:
        done, wrong = threading.Event(), []

        def write():
            for number in range(1, 80):
                path.with_name("new").write_text(f"needle {number}\n" * 2)
                path.with_name("new").rename(path)
                found = ws.grep(f"needle {number}$", context=0)
                if found.total_lines != 2 and found.skipped.reached is None:  # else the machine stood still
                    wrong.append((number, found.total_lines))
            done.set()

        def search():
            while not done.is_set():
                found = {match.text for match in ws.grep("needle", context=0, glob="both.txt").matches}
                if len(found) > 1:
                    wrong.append(found)

        with kit.in_threads(write, search, search, search):
            pass
        assert wrong == []
        check_same(ws, root)


@linux
def test_a_forked_process_has_events_of_its_own(ws, root):
    def child():
        (root / "c/child.txt").write_text("needle\n")
        return lines(ws, "needle")

    assert kit.in_a_fork(child) == "1"
    assert lines(ws, "needle") == 1


@linux
def test_a_process_forked_within_a_search_does_not_end_the_watches_of_its_parent(ws, root):
    with ws._root.watching() as current:

        def child():
            for file in current.tree._files():
                current.tree.texts.discard(file)
            ws.close()

        assert kit.in_a_fork(child) == "None"
    (root / "a/one.txt").write_text("needle\n")
    os.link(root / "a/b/one.txt", root.parent / "outside")
    (root.parent / "outside").write_text("needle\n")
    assert lines(ws, "needle") == 2


@pytest.mark.filterwarnings("ignore:.* is multi-threaded, use of fork:DeprecationWarning")
@linux
def test_a_process_forked_during_a_search_does_not_wait_for_its_end(ws, root):
    def child():
        (root / "c/child.txt").write_text("needle\n")
        with ws._root.watching() as current:
            return current.tree is not None and lines(ws, "needle") == 1

    with another_thread_searches(ws):
        assert kit.in_a_fork(child) == "True"


@contextmanager
def another_thread_searches(ws):
    began, ends = threading.Event(), threading.Event()

    def search():
        with ws._root.watching():
            began.set()
            ends.wait()

    with kit.in_threads(search):
        began.wait()
        try:
            yield
        finally:
            ends.set()


def test_a_workspace_that_is_closed_when_a_search_ends_gives_everything_back(root):
    class Lock:
        def __init__(self, lock):
            self.acquire, self._release = lock.acquire, lock.release

        def release(self):
            with kit.in_threads(ws.close):
                pass
            self._release()

    ws = Workspace(root, watch=True)
    kept = ws._root.watch
    kept._lock = Lock(kept._lock)
    assert lines(ws, "first") == 4
    assert (kept._inotify, kept.texts.blocks.count, kept._names) == (None, 0, 0)


@linux
def test_a_workspace_that_nobody_closed_leaves_no_descriptor_open(root):
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        lines(Workspace(root, watch=True), "first")
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == len(before)


@linux
def test_a_mount_is_noticed_where_no_descriptor_is_left(tmp_path, monkeypatch):
    root = tmp_path.resolve()
    table = tmp_path / "mountinfo"
    monkeypatch.setattr(syscalls, "MOUNTS", str(table))
    table.write_text("1 1 0:1 / / rw - ext4 none rw\n")
    directory = os.open(root, os.O_RDONLY)
    watched = inotify.MountTable(directory)
    table.write_text(f"1 1 0:1 / / rw - ext4 none rw\n2 1 0:2 / {root}/a rw - tmpfs none rw\n")
    monkeypatch.setattr(watched, "_poll", SimpleNamespace(poll=lambda _: True))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        assert watched.changed()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        watched.close()
        os.close(directory)


def test_the_report_does_not_wait_for_a_searching_thread(ws):
    reports = []
    asking = threading.Thread(target=lambda: reports.append(ws.watch))
    with another_thread_searches(ws):
        asking.start()
        asking.join(10)
        reported = list(reports)
    asking.join()
    assert [report.names for report in reported] == [11]
