"""The walk: order, counts, limits, and trees that do not behave."""

import os
import subprocess
import sys
import time

import pytest

from agentfs.fs import Root
from agentfs.policy import Policy
from agentfs.tree.walk import MAX_LEVELS, Walk, path_order
from tests.kit import put, refused
from tests.tree.judges import plant


@pytest.fixture
def root(tmp_path):
    with Root(tmp_path, Policy()) as opened:
        yield opened


def make(top, *names):
    return put(top, dict.fromkeys(names, ""))


def walk_of(root, path=".", **options):
    return Walk(root, path, **{"max_entries": 10**6, **options})


def files_of(walk):
    return [f"{visit.directory.path}/{each.name}".lstrip("/") for visit in walk for each in visit.files]


# The files of a tree, where a walk starts, its options, and the files that it finds.
LOGS = {"a/b/x.log": "", "a/b/y.tmp": "", "a/b/z": "", ".gitignore": "*.log\n", "a/.gitignore": "/b/y.tmp\n"}
HIDDEN = {".git/config": "", ".hid": "", "a.log": "", ".gitignore": "*.log\n"}
IGNORED = {"out/a": "", "out/b.log": "", ".gitignore": "/out/\n*.log\n"}
LINKED = {"a/b/x.log": "", "a/b/z": "", ".gitignore": "/a/b/x.log\n", "link": "-> a"}
DEEP = {"x": "", "a/x": "", "a/b/x": ""}
NAMED = {"a/x": "", "b/a/x": "", "b/c": "", "a.c": ""}
LEAVE_OUT = {"exclude": lambda path, is_dir: is_dir and path.endswith("a")}
WALKS = {
    "hidden and ignored": (HIDDEN, ".", {"hidden": True, "ignored": True}, [".gitignore", ".hid", "a.log"]),
    "the git file of a worktree": ({".git": "", "a": ""}, ".", {"hidden": True}, ["a"]),
    "a named directory that is ignored": (IGNORED, "out", {}, ["out/a"]),
    "a named directory that is hidden": ({".h/c": ""}, ".h", {}, [".h/c"]),
    "rules above the start": (LOGS, "a/b", {}, ["a/b/z"]),
    "rules through a link": (LINKED, "link/b", {}, ["link/b/z"]),
    "links to directories": ({"a/x": "", "a/up": "-> .."}, ".", {"others": True}, ["a/up", "a/x"]),
    "depth 1": (DEEP, ".", {"depth": 1}, ["x"]), "depth 2": (DEEP, ".", {"depth": 2}, ["a/x", "x"]),
    "any depth": (DEEP, ".", {"depth": 0}, ["a/b/x", "a/x", "x"]),
    "an exclusion": (NAMED, ".", LEAVE_OUT, ["a.c", "b/c"]),
}  # fmt: skip


@pytest.mark.parametrize("case", WALKS)
def test_a_walk_finds_these_files(root, tmp_path, case):
    files, start, options, found = WALKS[case]
    plant(tmp_path, files)
    walk = walk_of(root, start, **options)
    assert files_of(walk) == found
    assert walk.skipped.vcs == any(name.startswith(".git") and "ignore" not in name for name in files)


def test_a_walk_ends_at_its_most_entries_and_at_its_deadline(root, tmp_path):
    make(tmp_path, *[f"d{i}/f{j}" for i in range(5) for j in range(5)])
    for options, most, reached in (
        ({"max_entries": 12}, 12, "walk_entries"),
        ({"max_entries": 30}, 25, None),
        ({"deadline": time.monotonic() - 1}, 0, "timeout"),
    ):
        walk = walk_of(root, **options)
        assert len(files_of(walk)) <= most
        assert walk.skipped.reached == reached


def test_files_come_in_the_order_of_their_paths(root, tmp_path):
    names = ["b/c", "a.txt", "a/z", "a/b/c", "a-b", "B", "a/b.c", "z", "a/b/a", "ab/x"]
    make(tmp_path, *names)
    assert files_of(walk_of(root)) == sorted(names, key=path_order)


def test_skipped_names_are_counted_by_reason(root, tmp_path):
    make(tmp_path, ".git/config", ".hid", ".d/x", "a.log", "b.log", "out/x", "ok", "s/.HG/x")
    (tmp_path / ".gitignore").write_text("*.log\nout/\n")
    os.symlink("ok", tmp_path / "link")
    os.mkfifo(tmp_path / "fifo")
    walk = walk_of(root)
    assert files_of(walk) == ["ok"]
    skipped = walk.skipped
    assert (skipped.hidden, skipped.ignored, skipped.vcs, skipped.symlink, skipped.special) == (3, 3, 2, 1, 1)
    assert skipped.rules == {".gitignore:1 *.log": 2, ".gitignore:2 out/": 1}
    assert skipped.reached is None


@pytest.mark.parametrize("decoy", [False, True])
def test_a_directory_that_vanishes_or_becomes_a_link_is_counted(root, tmp_path, tmp_path_factory, decoy):
    outside = make(tmp_path_factory.mktemp("outside"), "secret")
    make(tmp_path, "a/x", "b/x")
    walk = walk_of(root)
    seen = []
    for visit in walk:
        seen += [f"{visit.directory.path}/{each.name}" for each in visit.files]
        if visit.directory.path == "a":
            (tmp_path / "b").rename(tmp_path / "c" if decoy else outside / "b")
            if decoy:
                os.symlink(outside, tmp_path / "b")
    assert seen == ["a/x"]
    assert walk.skipped.unreadable == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_directory_is_counted(root, tmp_path):
    make(tmp_path, "a/x", "b")
    (tmp_path / "a").chmod(0)
    walk = walk_of(root)
    try:
        assert files_of(walk) == ["b"]
    finally:
        (tmp_path / "a").chmod(0o755)
    assert walk.skipped.unreadable == 1


@pytest.fixture
def deep(tmp_path):
    """Makes a chain of directories with a file in each level, and takes it away again."""

    def make_deep(levels, name="d"):
        fd = os.open(tmp_path, os.O_RDONLY)
        for _ in range(levels):
            os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
            os.mkdir(name, dir_fd=fd)
            below = os.open(name, os.O_RDONLY, dir_fd=fd)
            os.close(fd)
            fd = below
        os.close(fd)

    yield make_deep
    subprocess.run(["rm", "-rf", str(tmp_path)], check=True)


def test_a_deep_tree_is_walked_for_100_levels_and_said_so(root, deep):
    deep(300)
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    walk, most, files = walk_of(root), 0, 0
    for visit in walk:
        files += len(visit.files)
        if sys.platform == "linux":
            most = max(most, len(os.listdir("/proc/self/fd")) - before)
    assert (files, walk.skipped.too_deep) == (MAX_LEVELS, 1)
    assert most <= MAX_LEVELS + 1
    below = walk_of(root, "d/" * 99 + "d")
    assert (len(files_of(below)), below.skipped.too_deep) == (MAX_LEVELS, 1)
    assert most <= MAX_LEVELS + 1


@pytest.mark.parametrize(("start", "name"), [("d/" * 199 + "d", "d"), (".", "n" * 255)])
def test_a_tree_is_walked_as_far_as_paths_can_name_and_said_so(root, deep, start, name):
    deep(300, name)
    walk = walk_of(root, start)
    files = files_of(walk)
    assert walk.skipped.too_deep == 1
    # The deepest file can still be opened by its path, and what lies below it could not.
    deepest = max(files, key=len)
    root.open_file(deepest).close()
    refused(lambda: root.open_file(f"{deepest[:-1]}{name}/{name}/f"), "name_too_long")


def test_a_walk_left_early_closes_its_directories(root, tmp_path):
    make(tmp_path, "a/b/c/x", "a/b/y")
    visits = iter(walk_of(root, directories=True))
    directories = [next(visits).directory for _ in range(3)]
    assert [each.path for each in directories] == ["", "a", "a/b"]
    visits.close()
    assert [each.handle for each in directories] == [-1, -1, -1]


@pytest.mark.parametrize(("path", "code"), [
    ("no", "not_found"), ("f", "not_a_directory"), ("..", "outside_workspace"),
])  # fmt: skip
def test_a_start_that_is_not_a_directory_is_a_typed_error(root, tmp_path, path, code):
    make(tmp_path, "f")
    refused(lambda: list(walk_of(root, path)), code)


def test_starts_that_overlap_count_once_what_is_left_out(root, tmp_path):
    make(tmp_path, "a/b/x.log", "a/b/y", "a/.hid", "c")
    (tmp_path / ".gitignore").write_text("*.log\n")
    once = walk_of(root, ".")
    files = files_of(once)
    several = walk_of(root, ["a/b", ".", "a"])
    assert files_of(several) == ["a/b/y", *files, "a/b/y"]
    assert several.skipped == once.skipped


def test_links_are_followed_inside_and_not_in_a_circle(root, tmp_path, tmp_path_factory):
    outside = make(tmp_path_factory.mktemp("outside"), "secret")
    plant(tmp_path, {"a/x": "", "b/ignored": "", "b/y": "", "b/.gitignore": "ignored\n", "a/l": "-> ../b"})
    plant(tmp_path, {"b/back": "-> ../a", "f": "-> a/x", "out": f"-> {outside}", "broken": "-> nowhere"})
    walk = walk_of(root, follow=True)
    assert files_of(walk) == ["a/l/y", "a/x", "b/back/x", "b/y", "f"]
    # Twice around the circle, one way out, one that leads nowhere.
    assert (walk.skipped.symlink, walk.skipped.ignored) == (4, 2)
    with Root(tmp_path, Policy(symlinks="never")) as strict:
        assert files_of(walk_of(strict, follow=True)) == ["a/x", "b/y"]


def test_a_listing_has_directories_first_and_links_to_directories_among_them(root, tmp_path):
    plant(tmp_path, {"a": "", "b/x": "", "z/y/x": "", "n": "-> b", "m": "-> a"})
    seen = []
    for visit in walk_of(root, others=True, directories=True, listing=True):
        names = visit.files if visit.child is None else [visit.child]
        seen += [visit.below + each.name for each in names]
    assert seen == ["b", "b/x", "n", "z", "z/y", "z/y/x", "a", "m"]


def test_entries_that_vanish_while_they_are_walked_harm_nothing(root, tmp_path):
    make(tmp_path, "a/x", "b/c/x", "d")
    for order in ({"listing": True}, {}):
        walk = walk_of(root, others=True, directories=True, **order)
        for visit in walk:
            if visit.directory.path == "a":
                subprocess.run(["rm", "-rf", str(tmp_path / "b"), str(tmp_path / "d")], check=True)
        assert walk.skipped.unreadable == 1
        make(tmp_path, "b/c/x", "d")
