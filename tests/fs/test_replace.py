import os
import stat
import threading
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from pathlib import Path

import pytest

from agentfs.fs import Root, lock, revision_of, revision_of_stat, syscalls
from agentfs.fs import root as root_module
from agentfs.policy import Policy
from tests.fs.mechanisms import change, code_of, replace_calls
from tests.kit import in_threads

LIMIT = 1 << 20


def put(root: Root, path: str, content: bytes, **options):
    return change(root, path, lambda _: content, max_bytes=LIMIT, **options)


def names_in(path: str | Path) -> list[str]:
    return sorted(
        os.path.join(where, name)[len(str(path)) + 1 :] for where, _, names in os.walk(path) for name in names
    )


def test_a_new_file_is_created_with_its_directories(root):
    changed = put(root, "new/deep/x.py", b"x\n")
    assert (changed.path, changed.real_path) == ("new/deep/x.py", "new/deep/x.py")
    assert changed.before is None
    assert changed.revision == revision_of(b"x\n")
    assert Path(root.path, "new/deep/x.py").read_bytes() == b"x\n"
    assert os.listdir(f"{root.path}/new/deep") == ["x.py"]


def test_the_umask_restricts_the_mode_of_a_new_file(root):
    old = os.umask(0o027)
    try:
        put(root, "x", b"")
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(f"{root.path}/x").st_mode) == 0o640


def test_compute_gets_the_current_file(root):
    seen = []
    change(root, "f", lambda current: seen.append(current) or b"new", max_bytes=LIMIT)
    (current,) = seen
    assert (current.path, current.real_path, current.data) == ("f", "f", b"f\n")
    assert current.revision == revision_of(b"f\n") == blake2b(b"f\n", digest_size=16).hexdigest()
    assert Path(root.path, "f").read_bytes() == b"new"
    first = revision_of_stat(os.stat(f"{root.path}/f"))
    assert (first[0], len(first)) == ("~", 33)
    change(root, "none", lambda current: seen.append(current) or b"", max_bytes=LIMIT)
    assert (seen[1].data, seen[1].revision) == (None, None)
    change(root, "f", lambda _: b"longer", max_bytes=LIMIT)
    assert revision_of_stat(os.stat(f"{root.path}/f")) != first


CODES = {
    **dict.fromkeys((".", "a", "a/", "new/"), "not_a_file"),
    **dict.fromkeys(("f/", "f/x"), "not_a_directory"),
    **dict.fromkeys(("new/../x", "new/../../x"), "not_found"),
    f"new/{'x' * 256}": "name_too_long",
}


@pytest.mark.parametrize(("path", "code"), CODES.items())
def test_a_path_that_cannot_be_written_changes_nothing(root, tmp_path, path, code):
    before = names_in(tmp_path), sorted(os.listdir(root.path))
    assert code_of(lambda: put(root, path, b"x")) == code
    assert (names_in(tmp_path), sorted(os.listdir(root.path))) == before


real_create_file, real_place = syscalls.create_file, syscalls.rename_new


def test_a_change_by_another_program_is_not_lost(tree, monkeypatch):
    foreign = [b"foreign 1\n", b"foreign 2\n"]

    def create_file(handle, name, mode):
        if foreign:
            (tree / "f").write_bytes(foreign.pop(0))
        return real_create_file(handle, name, mode)

    replace_calls(monkeypatch, create_file=create_file)
    with Root(tree, Policy()) as root:
        changed = change(root, "f", lambda current: current.data + b"ours\n", max_bytes=LIMIT)
    assert changed.before == b"foreign 2\n"
    assert (tree / "f").read_bytes() == b"foreign 2\nours\n"
    assert names_in(tree) == ["a/b/t", "a/t", "f"]


def test_a_file_created_by_another_program_meanwhile_is_not_replaced(tree, monkeypatch):
    seen = []

    def place(handle, source, name, *, to=None):
        if not (tree / "x").exists():
            (tree / "x").write_bytes(b"foreign")
        real_place(handle, source, name, to=to)

    def compute(current):
        seen.append(current.data)
        return (current.data or b"") + b" ours"

    replace_calls(monkeypatch, rename_new=place)
    with Root(tree, Policy()) as root:
        change(root, "x", compute, max_bytes=LIMIT)
    assert seen == [None, b"foreign"]
    assert (tree / "x").read_bytes() == b"foreign ours"


def test_a_file_that_keeps_changing_is_busy(tree, monkeypatch):
    count = iter(range(1000))

    def create_file(handle, name, mode):
        (tree / "f").write_bytes(b"%d" % next(count))
        return real_create_file(handle, name, mode)

    replace_calls(monkeypatch, create_file=create_file)
    with Root(tree, Policy()) as root:
        assert code_of(lambda: put(root, "f", b"x")) == "busy"
    assert names_in(tree) == ["a/b/t", "a/t", "f"]


def test_threads_and_workspaces_on_one_file_lose_nothing(tree, patient):
    (tree / "link").symlink_to("new/n")

    def count(root: Root, path: str) -> None:
        for _ in range(25):
            change(root, path, lambda current: b"%d" % (int(current.data or 0) + 1), max_bytes=LIMIT)

    with Root(tree, Policy()) as one, Root(tree.parent, Policy()) as two:
        ways = [(one, "new/n"), (one, "link"), (two, "root/new/n"), (two, "root/link")] * 2
        with in_threads(*(partial(count, *way) for way in ways)):
            pass
    assert (tree / "new/n").read_bytes() == b"%d" % (25 * len(ways))
    assert not lock._locks.held, "a lock was left behind"


def test_readers_see_the_whole_old_or_the_whole_new_file(tree):
    contents = [bytes([65 + number]) * 50_000 for number in range(2)]
    (tree / "f").write_bytes(contents[0])
    stop = threading.Event()

    def write(root: Root) -> None:
        for number in range(60):
            put(root, "f", contents[number % 2])
        stop.set()

    with Root(tree, Policy()) as root:
        writer = threading.Thread(target=write, args=(root,))
        writer.start()
        while not stop.is_set():
            with root.open_file("f") as file:
                assert file.read(LIMIT) in contents
        writer.join()


@pytest.mark.parametrize("allowed", [True, False])
def test_a_file_is_written_if_the_system_lets_the_user_write_it(tree, monkeypatch, allowed):
    replace_calls(monkeypatch, may_write=lambda handle, name, mode: allowed)
    with Root(tree, Policy()) as root:
        assert code_of(lambda: put(root, "f", b"new")) == ("ok" if allowed else "refused")
    assert (tree / "f").read_bytes() == (b"new" if allowed else b"f\n")


def test_a_link_that_changes_while_the_call_waits_for_the_lock_is_followed_again(tree, monkeypatch):
    (tree / "l").symlink_to("f")

    @contextmanager
    def turning(*args):
        with lock.file_locks(*args) as lock_file:
            (tree / "l").unlink()
            (tree / "l").symlink_to("a/t")
            yield lock_file

    monkeypatch.setattr(root_module, "file_locks", turning)
    with Root(tree, Policy()) as root:
        assert put(root, "l", b"new").real_path == "a/t"
    assert (tree / "f").read_bytes() == b"f\n"
