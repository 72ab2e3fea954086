"""Each change with few descriptors left: it is made or not made, and no second name stays."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agentfs import AgentFSError, Policy, Workspace
from tests.conftest import part_or_all
from tests.faults.calls import CHANGES, LeftOut, changed, fresh
from tests.history.judges import snapshot

resource = pytest.importorskip("resource")


@contextmanager
def only(count: int) -> Iterator[None]:
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
    before, call = CHANGES[name]
    made = set()
    for count in sorted({*range(0, 20, every), 19}):
        top = fresh(tmp_path / f"root{count}")
        with Workspace(top, policy=Policy(overwrite="always")) as ws:
            call(ws) if name not in {"undo", "redo"} else changed(ws)  # loads all modules
            ws.undo(2 if name in {"undo", "redo"} else 1)
            before(ws)
            old = snapshot(top)
            gc.collect()
            try:
                with only(count):
                    call(ws)
            except (AgentFSError, LeftOut):
                assert snapshot(top) == old or name == "replace", count
            else:
                made.add(count)
                assert not [path for path in snapshot(top) if ".agentfs-" in path], count
        with Workspace(top) as ws:
            assert not ws.recovery_notes, f"{count} descriptors left it to the next that opens the tree"
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
