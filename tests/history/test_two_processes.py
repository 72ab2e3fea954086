"""Two processes take turns on one state directory: the journal and the tree agree, whoever comes first."""

import os
import random

import pytest

from agentfs import AgentFSError, Workspace
from agentfs.errors import BusyError
from tests.history.judges import random_call, standing


def take_turns(top, state, seed):
    """Open the workspace several times, and make random calls; another process may hold the state."""
    chance = random.Random(seed)
    for _ in range(4):
        try:
            with Workspace(top, state=state) as ws:
                for _ in range(chance.randint(1, 3)):
                    try:
                        random_call(ws, chance, ["f0", "f1", "f2"])
                    except (AgentFSError, KeyError) as error:
                        assert getattr(error, "code", "") != "io"  # noqa: PT017 - another process may stop any call
        except BusyError:
            continue


def check_two(scratch, seed):
    top, state = scratch / "top", scratch / "state"
    top.mkdir(parents=True)
    children = []
    for which in (1, 2):
        child = os.fork()
        if child == 0:
            try:
                take_turns(top, state, 2 * seed + which)
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    with Workspace(top, state=state) as ws:
        assert ws.recovery_notes == ()
        if steps := len(standing(ws)):
            ws.undo(steps)
        assert os.listdir(top) == []


@pytest.mark.full
@pytest.mark.parametrize(
    "seeds", [range(10), pytest.param(range(1000, 1500), marks=pytest.mark.long)], ids=len
)
def test_two_processes_leave_a_journal_that_leads_back(tmp_path, seeds):
    for seed in seeds:
        check_two(tmp_path / str(seed), seed)
