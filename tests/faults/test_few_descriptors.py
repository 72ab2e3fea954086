"""Each change with few descriptors left: it is made or not made, and no second name stays."""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agentfs import AgentFSError, Policy, Workspace
from tests.conftest import part_or_all
from tests.history.judges import snapshot

resource = pytest.importorskip("resource")


def transaction(ws: Workspace) -> None:
    with ws.transaction() as tx:
        tx.edit("a", "old", "new")
        tx.append("a", "more\n")
        tx.write("made/x/y", "new\n")
        tx.move("d/c", "moved/c")
        tx.edit("d/e/f", "old", "new")
        tx.delete("b")


CHANGES: dict[str, Callable[[Workspace], Any]] = {
    "write": lambda ws: ws.write("new/deep/x", "new\n"),
    "edit": lambda ws: ws.edit("d/e/f", "old", "new"),
    "append": lambda ws: ws.append("d/e/f", "new\n"),
    "delete": lambda ws: ws.delete("d/e/f"),
    "delete all": lambda ws: ws.delete("d", recursive=True),
    "move": lambda ws: ws.move("d/c", "new/deep/c"),
    "transaction": transaction,
    "undo": lambda ws: ws.undo(),
}


@contextmanager
def only(count: int) -> Iterator[None]:
    """Limit the number of descriptors that this process may still open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd")))
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + count + 2, hard))
    try:
        while True:
            try:
                taken.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                break
        assert len(taken) >= count, f"{taken} are free up to {highest + count + 2}"
        for _ in range(count):
            os.close(taken.pop())
        yield
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@part_or_all(13)
@pytest.mark.parametrize("name", list(CHANGES))
def test_a_change_with_few_descriptors_is_made_or_not_made_and_leaves_no_second_name(tmp_path, name, every):
    made = set()
    for count in sorted({*range(0, 20, every), 19}):
        top = tmp_path / f"root{count}"
        (top / "d/e").mkdir(parents=True)
        for file in ("a", "b", "d/c", "d/e/f"):
            (top / file).write_text("old\n")
        with Workspace(top, policy=Policy(overwrite="always")) as ws:
            transaction(ws)  # loads all modules and leaves a step to undo
            if name != "undo":
                ws.undo()
            before = snapshot(top)
            gc.collect()
            try:
                with only(count):
                    CHANGES[name](ws)
            except AgentFSError:
                assert snapshot(top) == before, count
            else:
                made.add(count)
                assert not [path for path in snapshot(top) if ".agentfs-" in path], count
        with Workspace(top) as ws:
            assert not ws.recovery_notes, (
                f"with {count} descriptors it was left to the next that opens the tree"
            )
    assert 0 not in made
    assert 19 in made


def test_a_transaction_may_change_more_files_than_there_are_descriptors(tmp_path):
    """The default limit of macOS is 256."""
    with Workspace(tmp_path) as ws, only(64):
        with ws.transaction() as tx:
            for number in range(200):
                tx.write(f"f{number}", "x\n")
        assert len(os.listdir(tmp_path)) == 200
        ws.undo()
    assert os.listdir(tmp_path) == []
