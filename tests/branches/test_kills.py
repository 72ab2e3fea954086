"""Programs that are killed while they merge a branch."""

import random
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest

from tests.branches.test_branches import read_tree

PROGRAM = """
import sys, time
from agentfs import Policy, Workspace
branch = Workspace(sys.argv[1], policy=Policy(run="staged"), state=sys.argv[2]).branch("one")
branch.run("for n in f*; do echo changed >> $n; done; echo x > new; rm f0")
print("ready", flush=True)
began = time.monotonic()
branch.merge()
print(time.monotonic() - began, flush=True)
time.sleep(60)
"""


def killed_in_a_merge(tree, state, draw, seconds: float) -> float:
    """Kill a program at some moment of its merge; return how long a merge takes."""
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, tree, state], stdout=subprocess.PIPE, text=True
    )
    assert program.stdout.readline() == "ready\n"
    time.sleep(draw.random() * seconds)
    program.kill()
    told, _ = program.communicate()
    return min(seconds, float(told) * 1.2) if told else seconds


@pytest.mark.parametrize(
    "kills", [pytest.param(2, marks=pytest.mark.full), pytest.param(200, marks=pytest.mark.long)]
)
@pytest.mark.timeout(1800)
def test_a_kill_in_a_merge_leaves_the_old_tree_or_a_step_that_undo_takes_back(opened, tree, tmp_path, kills):
    draw, seconds = random.Random(65), 0.4
    for number in range(20):
        (tree / f"f{number}").write_text(f"{number}\n" * 50)
    before = read_tree(tree)
    merged = {name: text + "changed\n" if name[0] == "f" else text for name, text in before.items()}
    merged = {name: text for name, text in merged.items() if name != "f0"} | {"new": "x\n"}
    for number in range(kills):
        state = tmp_path / f"state{number}"
        seconds = killed_in_a_merge(tree, state, draw, seconds)
        with ExitStack() as stack:
            ws = stack.enter_context(opened(state=state))
            if read_tree(tree) != before:
                ws.undo()
            assert read_tree(tree) == before
            branch = stack.enter_context(ws.branch("one"))
            branch.merge()
            assert read_tree(tree) == merged
            ws.undo()
        assert read_tree(tree) == before
