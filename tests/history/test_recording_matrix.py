"""Changes by a tool and by a command, in each order, within one recording, in each kind of workspace."""

import itertools
import shutil
import subprocess
from contextlib import nullcontext

import pytest

import agentfs
from agentfs import Policy, Workspace
from tests.history.judges import snapshot
from tests.remote.over_pipe import open_pipe

POLICY = Policy(overwrite="always")
TOOLS = {
    "edit": lambda ws: ws.edit("a", "2\n", "tool\n"),
    "create": lambda ws: ws.write("d/new", "tool\n"),
    "delete": lambda ws: ws.delete("a"),
    "move": lambda ws: ws.move("a", "d/moved"),
    "move directory": lambda ws: ws.move("d", "e"),
    "delete directory": lambda ws: ws.delete("d", recursive=True),
}
COMMANDS = {
    "edit": "echo 9 >> a",
    "create": "mkdir -p d; echo command > d/new",
    "delete": "rm -f a d/moved",
    "move": "mv a b || mv d/moved b || true",
    "move directory": "mv d f || mv e f || true",
    "directory for file": "rm -f a; mkdir a; echo x > a/in",
    "mode": "chmod 700 a d || true",
}
KINDS = ["plain", "watch", "state", "connect"]
CASES = [
    (kind, tool, command, order, staged)
    for kind, (tool, command, order, staged) in itertools.product(
        KINDS, itertools.product(TOOLS, COMMANDS, ["tool first", "command first", "between"], [False, True])
    )
]


def opened(kind, root, top):
    match kind:
        case "connect":
            return agentfs.connect(open_pipe(policy=POLICY), root, policy=POLICY)
        case "state":
            return Workspace(root, policy=POLICY, state=top / "state")
        case _:
            return Workspace(root, policy=POLICY, watch=kind == "watch")


def check(case, top):
    kind, tool, command, order, staged = case
    root = top / "root"
    (root / "d").mkdir(parents=True)
    (root / "a").write_text("1\n2\n3\n4\n")
    (root / "d" / "kept").write_text("kept\n")
    before = snapshot(root)

    def run():
        subprocess.run(COMMANDS[command], shell=True, cwd=root, check=True, capture_output=True)

    with opened(kind, root, top) as ws:
        done = 0
        with ws.recording("both") as recorded:
            if order != "tool first":
                run()
            try:
                with ws.transaction() if staged else nullcontext(ws) as inner:
                    TOOLS[tool](inner)
            except agentfs.AgentFSError:
                pass  # the command has removed the file
            if order != "command first":
                run()
        after = snapshot(root)
        while snapshot(root) != before:
            ws.undo()
            done += 1
            assert done < 5
        ws.redo(done) if done else None
        assert snapshot(root) == after
        assert recorded.result.lost == ()


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(700, id="part"),
        pytest.param(23, id="more", marks=pytest.mark.full),
        pytest.param(1, id="all", marks=pytest.mark.long),
    ],
)
def test_undo_and_redo_lead_back_and_forth(tmp_path, part):
    for number, case in enumerate(CASES[::part]):
        top = tmp_path / str(number)
        try:
            check(case, top)
        except Exception as error:
            error.add_note(f"case {case}")
            raise
        shutil.rmtree(top)
