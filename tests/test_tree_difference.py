"""The helper of the tests that says how two trees differ sees every kind of change."""

import os
import socket

import pytest

from tests.tree_difference import difference, snapshot


@pytest.fixture
def tree(tmp_path, monkeypatch):
    top = tmp_path / "tree"
    for directory in ("src", ".hidden", "build", ".git"):
        (top / directory).mkdir(parents=True)
    (top / ".gitignore").write_text("build/\n*.log\n")
    for name in ("src/a.py", "src/b.py", ".hidden/b", "build/c.o", "x.log", ".git/config", "caf\udce9"):
        (top / name).write_bytes(os.fsencode(name))
        (top / name).chmod(0o644)
    (top / "link").symlink_to("src/a.py")
    (top / "other").symlink_to("src/a.py")
    monkeypatch.chdir(top)  # the path of a socket may be 107 bytes long
    return top


def test_every_kind_of_change_is_seen_and_nothing_else(tree):
    before, with_times = snapshot(tree), snapshot(tree, times=True)
    os.utime("src/b.py", (1, 1))
    assert difference(before, snapshot(tree)) == []
    assert [line.split(" ")[:2] for line in difference(with_times, snapshot(tree, times=True))] == [
        ["'src/b.py':", "modified"]
    ]
    (tree / "build/c.o").write_bytes(b"BUILD/C.O")  # ignored, and of the same size
    (tree / "build/d").mkdir()
    (tree / ".hidden/b").unlink()
    os.truncate(b"caf\xe9", 0)
    (tree / "src").chmod(0o700)
    (tree / ".git/config").write_text("pager")
    (tree / "link").unlink()
    (tree / "link").symlink_to("src/b.py")
    (tree / "other").unlink()
    (tree / "other").write_text("src/a.py")
    os.link("src/a.py", "src/c.py")
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")
    starts = [
        "'.git/config': content",
        "'.hidden/b': removed, a file",
        "'build/c.o': content '9 bytes",
        "'build/d': added, a directory",
        "'caf\\udce9': content '4 bytes",
        "'link': content 'src/a.py' -> 'src/b.py'",
        "'other': kind 'link' -> 'file'",
        "'pipe': added, a fifo",
        "'socket': added, a socket",
        "'src': mode",
        "'src/a.py': same_file",
        "'src/c.py': added, a file",
    ]
    found = difference(before, snapshot(tree))
    assert len(found) == len(starts), found
    assert all(line.startswith(start) for line, start in zip(sorted(found), starts, strict=True)), found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices and changes owners")
def test_devices_and_owners_are_seen(tree):
    before = snapshot(tree)
    try:
        os.mknod("null", 0o20644, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("a container forbids devices")
    os.chown("src/a.py", 1, 2)
    added, owner = difference(before, snapshot(tree))
    assert added == "'null': added, a character device"
    assert owner.startswith("'src/a.py': owner")
