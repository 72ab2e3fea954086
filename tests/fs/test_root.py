import ctypes
import errno
import inspect
import itertools
import os
import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import strategies as st

from agentfs.errors import AgentFSError
from agentfs.fs import ReadBuffer, Root, syscalls
from agentfs.policy import Policy
from tests.conftest import law
from tests.fs.mechanisms import change, code_of, replace_calls
from tests.kit import put, refused

SECRET = b"the secret outside"


def read(root: Root, path: str) -> bytes:
    with root.open_file(path) as file:
        return file.read(1 << 20)


def test_a_root_must_exist_and_stays_open(tree, tmp_path):
    assert code_of(Root, tmp_path / "none", Policy()) == "not_found"
    assert code_of(Root, tree / "f", Policy()) == "not_a_directory"
    root = Root(tree, Policy())
    tree.rename(tmp_path / "moved")
    assert read(root, "f") == b"f\n"
    root.close()
    root.close()
    assert code_of(root.open_file, "f") == "closed"


def test_a_root_may_be_named_by_a_link_and_by_either_spelling(tree, tmp_path):
    (tmp_path / "alias").symlink_to(tree)
    with Root(tmp_path / "alias", Policy()) as root:
        assert root.path == str(tree)
        assert read(root, f"{tmp_path}/alias/f") == b"f\n"
        assert read(root, f"{tree}/f") == b"f\n"


def test_a_link_out_never_tells_whether_its_target_exists(root, tmp_path):
    answers = set()
    for target in ("out/s", "out/none", "out", "none/none"):
        os.symlink(tmp_path / target, os.path.join(root.path, "l"))
        caught = refused(lambda: root.open_file("l"))
        entry = root.entry("l")
        answers.add((str(caught), str(caught.details), entry.target, entry.is_dir, entry.size))
        os.unlink(os.path.join(root.path, "l"))
    assert len(answers) == 1


def test_a_policy_can_refuse_all_links(tree):
    os.symlink("f", tree / "l")
    os.symlink("a", tree / "d")
    with Root(tree, Policy(symlinks="never")) as root:
        assert code_of(root.open_file, "l") == "refused"
        assert code_of(root.open_file, "d/t") == "refused"
        assert code_of(lambda: change(root, "l", lambda _: b"x", max_bytes=9)) == "refused"
        assert root.entry("d").target == "a"
        assert not root.entry("d").is_dir
        assert read(root, "a/t") == b"a/t\n"


def read_files(directory, names, read, **options):
    """Read files by name, as a search does with the entries of a listing."""
    entries = [SimpleNamespace(name=name) for name in names]
    return ((entry.name, outcome) for entry, outcome in directory.read_files(entries, read, **options))


def sifted(root, path, name):
    """Return what `read_files` yields for a name, with a function that passes over no file."""
    with root.open_directory(path) as directory:
        [(_, outcome)] = read_files(directory, [name], ReadBuffer(10**6).fill)
    return outcome


def test_names_that_are_not_utf8_are_shown_and_accepted_with_escapes(root):
    os.mkdir(os.path.join(os.fsencode(root.path), b"caf\xe9"))
    with open(os.path.join(os.fsencode(root.path), b"caf\xe9", b"\xff"), "wb") as file:
        file.write(b"bytes")
    with root.open_directory("caf\\xe9") as directory:
        (found,) = directory.scan()
        entry = directory.entry(found)
        assert (entry.path, entry.name) == ("caf\\xe9/\\xff", "\\xff")
        assert directory.real_path == "caf\udce9"
    with root.open_file("caf\\xe9/\\xff") as file:
        assert (file.path, file.real_path) == ("caf\\xe9/\\xff", "caf\udce9/\udcff")
        assert read(root, file.real_path) == b"bytes"
    change(root, "caf\\xe9/\\xff", lambda _: b"new", max_bytes=9)
    Path(root.path, "\\xe9").write_bytes(b"literal")  # the literal name wins
    Path(root.path, "\udce9").write_bytes(b"escaped")
    assert read(root, "\\xe9") == b"literal"
    assert os.listdir(os.path.join(os.fsencode(root.path), b"caf\xe9")) == [b"\xff"]


def test_the_error_for_a_missing_path_names_its_first_missing_part(root):
    caught = refused(lambda: root.open_file("aa/none/x.py"), "not_found")
    assert 'there is no "aa"' in str(caught)
    error = refused(lambda: root.open_file("/a/t"), "outside_workspace")
    assert 'Did you mean "a/t"?' in error.hint
    caught = refused(lambda: root.open_file("/etc/passwd"))
    assert "Did you mean" not in caught.hint


def test_entry_and_exists_describe_a_path(root):
    os.symlink("a", f"{root.path}/l")
    os.symlink("none", f"{root.path}/dangling")
    entry = root.entry("a/t")
    found = os.stat(f"{root.path}/a/t")
    assert (entry.path, entry.name, entry.type, entry.is_dir) == ("a/t", "t", "file", False)
    assert (entry.size, entry.mtime, entry.ext) == (4, found.st_mtime, "")
    assert (root.entry("l").type, root.entry("l").is_dir, root.entry("l").target) == ("symlink", True, "a")
    assert (root.entry("l/").type, root.entry("l/t").path) == ("directory", "l/t")
    assert (root.entry("dangling").is_dir, root.entry("dangling").target) == (False, "none")
    for path in ("", ".", "a/.."):
        assert (root.entry(path).path, root.entry(path).is_dir) == (".", True)
    there = {path: root.exists(path) for path in ("f", "a", ".", "dangling", "none", "f/x", "none/x")}
    assert [path for path, is_there in there.items() if is_there] == ["f", "a", ".", "dangling"]


def test_a_directory_lists_and_opens_its_entries(root):
    os.symlink("t", f"{root.path}/a/l")
    with root.open_directory("a") as directory:
        assert (directory.path, directory.real_path) == ("a", "a")
        assert sorted(found.name for found in directory.scan()) == ["b", "l", "t"]
        assert sorted(found.name for found in directory.scan()) == ["b", "l", "t"]
        with directory.open_directory("b") as below:
            assert below.path == "a/b"
            with below.open_file("t") as file:
                assert (file.path, file.read(9)) == ("a/b/t", b"a/b/t\n")
        assert list(read_files(directory, ["t"], lambda fd: os.fstat(fd).st_size)) == [("t", 4)]
        contents = ReadBuffer(9)
        sifting = read_files(directory, ["t", "t"], lambda fd: contents.fill(fd) and contents.copy())
        assert list(sifting) == [("t", b"a/t\n")] * 2
        assert list(read_files(directory, ["t"], lambda _: None)) == []
        assert list(read_files(directory, ["t"], ReadBuffer(3).fill)) == [("t", -1)]
        assert code_of(directory.open_file, "l") == "link_loop"
        assert code_of(directory.open_file, "b") == "not_a_file"
        assert code_of(directory.open_file, "none") == "not_found"
        assert code_of(directory.open_directory, "t") == "not_a_directory"
        for name in ("l", "b", "none"):
            assert isinstance(sifted(root, "a", name), OSError)


@pytest.mark.parametrize("name", ["../f", "b/t", "..", ".", "", "l/t"])
def test_opening_in_a_directory_takes_a_single_name(root, name):
    os.symlink("b", f"{root.path}/a/l")
    with root.open_directory("a") as directory:
        for step in (directory.open_file, directory.open_directory):
            with pytest.raises(ValueError, match="single name"):
                step(name)
    assert isinstance(sifted(root, "a", name), OSError)


def test_a_fifo_that_replaces_a_file_loses_no_byte(root):
    os.mkfifo(f"{root.path}/fifo")
    held = os.open(f"{root.path}/fifo", os.O_RDWR)
    os.write(held, b"for somebody else")
    assert isinstance(sifted(root, "", "fifo"), OSError)
    assert os.read(held, 99) == b"for somebody else"
    os.close(held)


class Swapping:
    """The system calls, with a directory swapped for a link before call number `at`."""

    def __init__(self, path: str, aside: str, decoy: str, at: int) -> None:
        self._swap = (path, aside, decoy)
        self.left = at  # below 0 after the swap

    def install(self, monkeypatch) -> None:
        for name, call in vars(syscalls).items():
            if inspect.isfunction(call) and name[0] != "_" and name not in {"suppress", "open_root", "close"}:
                monkeypatch.setattr(syscalls, name, self.wrapped(call))

    def wrapped(self, call):
        def swapping(*arguments, **options):
            if self.left == 0:
                path, aside, decoy = self._swap
                os.rename(path, aside)
                os.symlink(decoy, path)
            self.left -= 1
            return call(*arguments, **options)

        return swapping


def calls_of(root: Root):
    def scan() -> list[object]:
        with root.open_directory("a/b") as directory:
            entries = [directory.entry(found) for found in directory.scan()]
            return [(entry.name, entry.size) for entry in entries]

    return {
        "read": lambda: read(root, "a/b/t"),
        "scan": scan,
        "entry": lambda: root.entry("a/b/t").size,
        "change": lambda: change(root, "a/b/t", lambda _: b"changed", max_bytes=99).before,
        "create": lambda: change(root, "a/b/new/x", lambda _: b"made", max_bytes=99).before,
    }


INSIDE = {"read": b"a/b/t\n", "scan": [("t", 6)], "entry": 6, "change": b"a/b/t\n", "create": None}


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize("decoy", ["out", "root/decoy"])
@pytest.mark.parametrize("call", sorted(INSIDE))
def test_a_directory_swapped_for_a_link_at_any_step_leads_nowhere_outside(
    tree, tmp_path, monkeypatch, call, decoy, every
):
    outcomes = set()
    (tmp_path / "out" / "t").write_bytes(SECRET)
    for at in itertools.count(0, every):
        top = tmp_path / f"try{at}" / "root"
        put(top, {"a/b/t": b"a/b/t\n", "decoy/t": b"inside decoy"})
        target = tmp_path / "out" if decoy == "out" else top / "decoy"
        swapping = Swapping(f"{top}/a/b", f"{top}/a/aside", str(target), at)
        with Root(top, Policy()) as root, monkeypatch.context() as patch:
            swapping.install(patch)
            try:
                got = calls_of(root)[call]()
            except AgentFSError as error:
                outcomes.add(error.code)
            else:
                assert got != SECRET
                outcomes.add("inside" if got == INSIDE[call] else "decoy")
        if swapping.left >= 0:  # the call has no more steps
            break
    # `aside` holds the original directory, which may have been opened before the swap.
    assert "inside" in outcomes
    allowed = (
        {"inside", "outside_workspace", "link_loop"} if decoy == "out" else {"inside", "decoy", "link_loop"}
    )
    assert outcomes <= allowed
    assert sorted(os.listdir(tmp_path / "out")) == ["s", "t"]
    assert (tmp_path / "out" / "t").read_bytes() == SECRET


RESOLVE_BENEATH_AND_NO_MAGICLINKS = 0x08 | 0x02


def kernel_opens(root_fd: int, path: str) -> os.stat_result | int:
    """Return the content at a path by openat2, or the errno."""

    class How(ctypes.Structure):
        _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))

    how = How(os.O_PATH | os.O_CLOEXEC, 0, RESOLVE_BENEATH_AND_NO_MAGICLINKS)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(437, root_fd, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
    while fd < 0 and ctypes.get_errno() == errno.EAGAIN:  # a rename anywhere on the machine disturbs a `..`
        fd = libc.syscall(437, root_fd, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
    if fd < 0:
        return ctypes.get_errno()
    try:
        return os.stat(fd)
    finally:
        os.close(fd)


CODES = {"outside_workspace": 18, "not_found": 2, "not_a_directory": 20, "link_loop": 40}
PIECES = ["d", "e", "f", "l", "m", "n", "..", ".", ""]
routes = st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map("/".join)


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="judged by openat2 of Linux"
)
@law(
    45,
    400,
    links=st.dictionaries(
        st.sampled_from(["l", "m", "d/l", "d/n", "d/e/m"]), routes.filter(lambda r: not r.startswith("/"))
    ),
    asked=routes.filter(lambda route: route and not route.startswith("/")),
)
def test_every_path_resolves_as_in_the_kernel(tmp_path_factory, links, asked):
    top = tmp_path_factory.mktemp("kernel")
    (top / "d" / "e").mkdir(parents=True)
    for name in ("f", "d/f", "d/e/f"):
        (top / name).write_text(name)
    for name, target in links.items():
        if target:
            os.symlink(target, top / name)
    with Root(top, Policy()) as root:
        expected = kernel_opens(root.trees.root.handle.fd, asked)
        try:
            with root.open_file(asked) as file:
                got: object = (file.stat.st_dev, file.stat.st_ino)
                assert os.path.realpath(top / asked) == os.path.join(root.path, file.real_path)
        except AgentFSError as error:
            got = error.code
            if got == "not_a_file":
                with root.open_directory(asked) as directory:
                    found = os.stat(directory.handle)
                    got = (found.st_dev, found.st_ino)
                    assert os.path.realpath(top / asked) == os.path.join(
                        root.path, directory.real_path
                    ).rstrip("/")
    if isinstance(expected, int):
        assert CODES.get(str(got)) == expected
    else:
        assert got == (expected.st_dev, expected.st_ino)


def test_a_link_that_is_a_directory_again_when_it_is_read_is_entered(tree, monkeypatch):
    refusals = [40] * 5
    real_enter = syscalls.enter

    def enter(handle: int, name: str) -> int:
        if refusals:
            raise OSError(refusals.pop(), "a link was here")
        return real_enter(handle, name)

    replace_calls(monkeypatch, enter=enter)
    with Root(tree, Policy()) as root:
        assert read(root, "a/t") == b"a/t\n"
        refusals.extend([40] * 1000)
        assert code_of(root.open_file, "a/t") == "link_loop"


ON_WINDOWS = """
import asyncio, json, os, subprocess, sys, tempfile, threading
sys.platform = "win32"
for name in ("O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "O_NOCTTY", "O_PATH", "O_CLOEXEC", "pread", "preadv",
             "fchmod", "fchown", "geteuid", "fstatvfs", "ST_RDONLY", "listxattr"):
    delattr(os, name)
for name in ("fcntl", "pwd", "resource", "termios"):
    sys.modules[name] = None
import agentfs, agentfs.errors, agentfs.fs.apply, agentfs.history.state_directory

def look(path: str, lines: int = 3) -> str:
    \"""Look into a file.

    Args:
        path: The file.
        lines: How many lines.
    \"""
    return path

print([schema["function"]["name"] for schema in agentfs.Toolset([look]).schemas("openai")])
try:
    agentfs.Workspace(sys.argv[1])
except agentfs.errors.UnsupportedSystemError as error:
    print(error.code, isinstance(error, agentfs.OperationalError), error)
"""


def test_windows_is_refused_and_schemas_are_made(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", ON_WINDOWS, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tools, refused, *hint = done.stdout.splitlines()
    assert tools == "['look']"
    assert refused.startswith("unsupported True A workspace cannot be opened on Windows")
    assert hint


def test_a_running_call_keeps_the_root_open(tree):
    """After close() in another thread, the descriptor's number must not lead to another directory."""
    root = Root(tree, Policy())
    fd = root.trees.root.handle.fd

    def compute(_):
        root.close()
        os.fstat(fd)
        return b"changed"

    change(root, "f", compute, max_bytes=99)
    assert (tree / "f").read_bytes() == b"changed"
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(fd)
