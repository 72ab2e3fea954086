"""The laws: undo of all gives the original tree, redo gives it back, and git makes the same of the patch."""

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from agentfs import AgentFSError, Policy, Workspace
from agentfs.errors import InvalidArgumentError, NotFoundError
from tests.conftest import needs, part_or_all
from tests.history.judges import FILES, as_git_sees, git_applied, original, snapshot, standing, undone

pytestmark = needs("git")

CONTENTS = [
    "",
    "one\n",
    "one\ntwo\nthree\n",
    "no end",
    "a\r\nb\r\n",
    "x\ry\r",
    "é ü\n",
    "\u2028\n",
    "-- a\n++ b\n",
]
TEXTS = st.sampled_from(CONTENTS)
NAMES = st.sampled_from(FILES)
DELETED = st.sampled_from([*FILES, "d", "d/e", "empty", "new", "new/y"])
TARGETS = st.sampled_from([*FILES, "d/one/below", "empty/in"])
WHICH = st.integers(0, 1)
CALLS = st.lists(st.tuples(NAMES, st.none() | TARGETS, st.none() | TEXTS), min_size=2, max_size=6)


class OneWorkspace(RuleBasedStateMachine):
    workspaces = 1
    kept = False  # whether they have state directories, and are closed and opened anew

    def __init__(self):
        super().__init__()
        self.scratch = Path(tempfile.mkdtemp())
        self.top, self.first = self.scratch / "root", self.scratch / "original"
        self.top.mkdir()
        original(self.top)
        shutil.copytree(self.top, self.first, symlinks=True)
        self.all = [self.opened(index) for index in range(self.workspaces)]
        self.order = []  # whose each step is that stands
        self.states = {}  # what the tree was at each checkpoint
        self.applied = b"", as_git_sees(snapshot(self.first))  # the last patch, and what git makes of it

    def opened(self, index):
        state = self.scratch / f"state-{index}" if self.kept else None
        return Workspace(self.top, policy=Policy(overwrite="always"), state=state)

    def teardown(self):
        # In the reverse order nothing stands in the way; another order may be refused, which loses nothing.
        before, order = snapshot(self.top), list(self.order)
        for index in reversed(order):
            self.all[index].undo()
        assert snapshot(self.top) == snapshot(self.first)
        for index in order:
            self.all[index].redo()
        assert snapshot(self.top) == before
        for ws in self.all:
            ws.close()
        shutil.rmtree(self.scratch)

    @rule(index=WHICH, name=NAMES, text=TEXTS)
    def write(self, index, name, text):
        self.attempt(index, lambda ws: ws.write(name, text))

    @rule(index=WHICH, name=NAMES, old=st.sampled_from(["one", "e", "\n"]), new=TEXTS)
    def edit(self, index, name, old, new):
        self.attempt(index, lambda ws: ws.edit(name, old, new, replace_all=True))

    @rule(index=WHICH, name=DELETED)
    def delete(self, index, name):
        self.attempt(index, lambda ws: ws.delete(name))

    @rule(index=WHICH, name=NAMES, to=TARGETS)
    def move(self, index, name, to):
        self.attempt(index, lambda ws: ws.move(name, to))

    @rule(index=WHICH, calls=CALLS, whole=st.booleans())
    def transaction(self, index, calls, whole):
        def act(ws):
            with ws.transaction() as tx:
                for name, to, text in calls:
                    with suppress(AgentFSError):
                        if text is not None:
                            tx.write(name, text)
                            assert tx.read(name, limit=1).path == name
                        elif to is None:
                            tx.delete(name)
                        else:
                            tx.move(name, to)
                if not whole:
                    raise InvalidArgumentError("the caller has second thoughts")

        self.attempt(index, act)

    @precondition(lambda self: self.order)
    @rule(steps=st.integers(1, 3))
    def undo(self, steps):
        steps = steps if self.workspaces == 1 else 1
        self.attempt(self.order[-1], lambda ws: ws.undo(steps))

    @precondition(lambda self: self.workspaces == 1)
    @rule(steps=st.integers(1, 3))
    def redo(self, steps):
        self.attempt(0, lambda ws: ws.redo(steps))

    @precondition(lambda self: self.workspaces == 1)
    @rule(name=st.sampled_from("PQR"))
    def checkpoint(self, name):
        self.all[0].checkpoint(name)
        self.states[name] = snapshot(self.top)

    @precondition(lambda self: self.workspaces == 1)
    @rule(name=st.sampled_from("PQR"))
    def rollback(self, name):
        before = snapshot(self.top)
        try:
            self.all[0].rollback(name)
        except NotFoundError:
            assert snapshot(self.top) == before
        else:
            assert snapshot(self.top) == self.states[name]
        self.count(self.all[0])

    @precondition(lambda self: self.kept)
    @rule(index=WHICH, killed=st.booleans())
    def reopen(self, index, killed):
        index %= self.workspaces
        ws = self.all[index]
        known = journal_of(ws)
        if killed:  # what a process that was killed leaves is what it has written so far
            copy = self.scratch / "copy"
            shutil.copytree(self.scratch / f"state-{index}", copy)
            ws.close()
            shutil.rmtree(self.scratch / f"state-{index}")
            copy.rename(self.scratch / f"state-{index}")
        else:
            ws.close()
        self.all[index] = ws = self.opened(index)
        assert ws.recovery_notes == ()
        assert journal_of(ws) == known

    @precondition(lambda self: self.kept)
    @rule(index=WHICH, name=NAMES, line_ids=st.booleans(), limit=st.none() | st.integers(1, 4))
    def read(self, index, name, line_ids, limit):
        self.attempt(index, lambda ws: ws.read(name, 1, limit, line_ids=line_ids))

    @precondition(lambda self: self.kept)
    @rule(index=WHICH)
    def forget(self, index):
        self.attempt(index, lambda ws: ws.forget())

    def attempt(self, index, act):
        before = snapshot(self.top)
        ws = self.all[index % self.workspaces]
        try:
            act(ws)
        except AgentFSError:
            assert snapshot(self.top) == before, "a call that fails changes nothing"
        self.count(ws)

    def count(self, ws):
        index, stand = self.all.index(ws), len(standing(ws))
        for _ in range(stand, self.order.count(index)):
            self.order.reverse()
            self.order.remove(index)
            self.order.reverse()
        self.order += [index] * (stand - self.order.count(index))

    @invariant()
    def the_patch_is_what_git_would_make(self):
        if self.workspaces == 1:
            patch = self.all[0].changes().patch
            if patch != self.applied[0]:
                there = git_applied(self.first, patch, self.scratch / "patched")
                # git needs the hashes of an index line, which cost tokens, for binary contents alone.
                assert patch.count(b"\nindex ") == patch.count(b"\nGIT binary patch")
                self.applied = patch, as_git_sees(there)
            assert self.applied[1] == as_git_sees(snapshot(self.top))

    @invariant()
    def nothing_is_left_beside_the_files(self):
        assert not list(self.top.rglob(".agentfs-*"))


class TwoWorkspaces(OneWorkspace):
    workspaces = 2


class OneReopened(OneWorkspace):
    kept = True


class TwoReopened(TwoWorkspaces):
    kept = True


def journal_of(ws):
    log = ws._journal.log
    return standing(ws), undone(ws), log.checkpoints


@part_or_all(16, full=4)
@pytest.mark.parametrize("machine", [OneWorkspace, TwoWorkspaces, OneReopened, TwoReopened])
def test_the_laws_of_the_journal(machine, every):
    steps = 15 if machine.kept else 12
    health = list(HealthCheck)
    run = settings(max_examples=32 // every, stateful_step_count=steps, suppress_health_check=health)
    run_state_machine_as_test(machine, settings=run)
