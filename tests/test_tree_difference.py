"""The helper of the tests that says how two trees differ sees every kind of change."""

import os
import socket
import subprocess

import pytest

from tests.conftest import needs
from tests.tree_difference import difference, snapshot


@pytest.fixture
def tree(tmp_path):
    top = tmp_path / "tree"
    for directory in ("src", ".hidden", "build"):
        (top / directory).mkdir(parents=True)
    (top / ".gitignore").write_text("build/\n*.log\n")
    for name in ("src/a.py", ".hidden/b", "build/c.o", "x.log", ".env", "caf\udce9"):
        (top / name).write_bytes(os.fsencode(name))
        (top / name).chmod(0o644)
    (top / "link").symlink_to("src/a.py")
    (top / "dangling").symlink_to("nothing")
    return top


def fifo(tree):
    os.mkfifo(tree / "pipe")


def bound_socket(tree):
    here = os.getcwd()
    os.chdir(tree)  # the path of a socket may be 107 bytes long
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("socket")
    finally:
        os.chdir(here)


def other_target(tree):
    (tree / "link").unlink()
    (tree / "link").symlink_to("src/b.py")


def file_for_link(tree):
    (tree / "link").unlink()
    (tree / "link").write_text("src/a.py")


CHANGES = {
    "ignored": (lambda tree: (tree / "build/c.o").write_bytes(b"BUILD/C.O"), ["'build/c.o': content"]),
    "ignored directory": (lambda tree: (tree / "build/d").mkdir(), ["'build/d': added, a directory"]),
    "hidden": (lambda tree: (tree / ".hidden/b").unlink(), ["'.hidden/b': removed, a file"]),
    "protected": (lambda tree: (tree / ".env").write_text("A=1"), ["'.env': content"]),
    "name that is not UTF-8": (
        lambda tree: os.truncate(os.fsencode(tree / "caf\udce9"), 0),
        ["'caf\\udce9': content '4 bytes"],
    ),
    "mode": (lambda tree: (tree / "src/a.py").chmod(0o755), ["'src/a.py': mode '0644' -> '0755'"]),
    "mode of a directory": (lambda tree: (tree / "src").chmod(0o700), ["'src': mode"]),
    "mode of the tree": (lambda tree: tree.chmod(0o700), ["'.': mode"]),
    "link": (other_target, ["'link': content 'src/a.py' -> 'src/b.py'"]),
    "link to nothing": (lambda tree: (tree / "dangling").unlink(), ["'dangling': removed, a link"]),
    "file in place of a link": (file_for_link, ["'link': kind 'link' -> 'file'"]),
    "hard link": (
        lambda tree: os.link(tree / "src/a.py", tree / "src/b.py"),
        ["'src/a.py': same_file", "'src/b.py': added, a file"],
    ),
    "fifo": (fifo, ["'pipe': added, a fifo"]),
    "socket": (bound_socket, ["'socket': added, a socket"]),
    "device": (
        lambda tree: os.mknod(tree / "null", 0o20644, os.makedev(1, 3)),
        ["'null': added, a character device"],
    ),
    "owner": (lambda tree: os.chown(tree / "src/a.py", 1, 2), ["'src/a.py': owner"]),
    "bytes of the same size": (
        lambda tree: (tree / "x.log").write_bytes(b"X.LOG"),
        ["'x.log': content '5 bytes"],
    ),
}


@pytest.mark.parametrize(("change", "lines"), CHANGES.values(), ids=CHANGES)
def test_a_change_is_seen(tree, change, lines):
    before = snapshot(tree)
    try:
        change(tree)
    except PermissionError:
        pytest.skip("only root makes devices and changes owners")
    found = difference(before, snapshot(tree))
    assert len(found) == len(lines)
    assert all(line.startswith(start) for line, start in zip(found, lines, strict=True)), found


def test_an_extended_attribute_is_seen(tree):
    before = snapshot(tree)
    try:
        os.setxattr(tree / "src/a.py", "user.note", b"x")
    except (AttributeError, OSError):
        pytest.skip("this file system has no extended attributes")
    assert difference(before, snapshot(tree)) == ["'src/a.py': attributes () -> (('user.note', b'x'),)"]


def test_times_count_only_if_they_are_asked_for(tree):
    before, with_times = snapshot(tree), snapshot(tree, times=True)
    os.utime(tree / "src/a.py", (1, 1))
    assert difference(before, snapshot(tree)) == []
    assert [line.split(" ")[:2] for line in difference(with_times, snapshot(tree, times=True))] == [
        ["'src/a.py':", "modified"]
    ]


@needs("git")
def test_the_directory_of_git_is_seen(tree):
    subprocess.run(["git", "-C", tree, "init", "-q"], check=True)
    before = snapshot(tree)
    subprocess.run(["git", "-C", tree, "config", "core.pager", "sh"], check=True)
    (line,) = difference(before, snapshot(tree))
    assert line.startswith("'.git/config': content")


def test_equal_trees_have_no_difference(tree, tmp_path):
    subprocess.run(["cp", "-a", tree, tmp_path / "copy"], check=True)
    assert difference(snapshot(tree), snapshot(tmp_path / "copy")) == []
    assert len(snapshot(tree)) == 13
