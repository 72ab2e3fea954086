"""The law of the journal: a rollback to a checkpoint restores the tree of that moment.

Except what the result names, paths that it merged with changes of others or left as they are, and what others
have changed in a file that was moved then: a move takes along what is there.
"""

import os
import random
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from agentfs import AgentFSError, Policy, Workspace
from agentfs.errors import ConflictError
from agentfs.history.log import file_moves
from tests.history.judges import snapshot

NAMES = ["a", "b", "c", "d/a", "d/b", "d/e/a"]
STEPS = 30


class Sequence:
    """One random sequence of calls, changes by others, recordings and reopenings."""

    def __init__(self, seed: int, *, kept: bool) -> None:
        self.random = random.Random(seed)
        self.scratch = Path(tempfile.mkdtemp())
        self.top = self.scratch / "root"
        self.top.mkdir()
        for name in NAMES[:4]:
            self.put(name)
        self.state = self.scratch / "state" if kept else None
        self.ws = self.opened()
        self.checkpoints: dict[str, dict[str, object]] = {}
        self.foreign: dict[
            str, set[str]
        ] = {}  # for each checkpoint, the paths that others have changed since

    def opened(self) -> Workspace:
        return Workspace(self.top, policy=Policy(overwrite="always"), state=self.state)

    def close(self) -> None:
        self.ws.close()
        shutil.rmtree(self.scratch)

    def text(self) -> str:
        return "".join(
            f"{self.random.choice('xyz')}{number}\n" for number in range(self.random.randint(1, 9))
        )

    def put(self, name: str) -> None:
        path = self.top / name
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.text())

    def act(self) -> None:
        choose, ws = self.random.choice, self.ws
        name, other = choose(NAMES), choose(NAMES)
        kind = self.random.randrange(14)
        with suppress(AgentFSError):
            if kind < 3:
                ws.write(name, self.text())
            elif kind == 3:
                lines = ws.read(name).content.splitlines(keepends=True)
                ws.edit(name, choose([*lines, "x0\n"]), self.text(), replace_all=True)
            elif kind == 4:
                ws.delete(choose([*NAMES, "d", "d/e"]), recursive=True)
            elif kind == 5:
                ws.move(choose([name, "d", "d/e"]), choose([other, "f", "d/f"]))
            elif kind == 6:
                ws.undo(self.random.randint(1, 3))
            elif kind == 7:
                ws.undo(paths=name)
            elif kind == 8:
                ws.redo(self.random.randint(1, 3))
            elif kind == 9:
                self.checkpoint()
            elif kind == 10:
                self.rollback()
            elif kind == 11:
                self.change_as_another(name)
            elif kind == 12:
                self.record()
            else:
                self.transaction_or_reopen()

    def checkpoint(self) -> None:
        name = self.random.choice("PQR")
        self.ws.checkpoint(name)
        self.checkpoints[name] = snapshot(self.top)
        self.foreign[name] = set()

    def change_as_another(self, name: str) -> None:
        before = snapshot(self.top)
        if self.random.random() < 0.3:
            with suppress(OSError):
                os.unlink(self.top / name)
        else:
            self.put(name)
        after = snapshot(self.top)
        for changed in self.foreign.values():
            changed |= {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}

    def record(self) -> None:
        with self.ws.recording("shell"):
            for _ in range(self.random.randint(1, 3)):
                name = self.random.choice(NAMES)
                if self.random.random() < 0.3:
                    with suppress(OSError):
                        os.unlink(self.top / name)
                else:
                    self.put(name)
            if self.random.random() < 0.3:
                self.ws.write(self.random.choice(NAMES), self.text())

    def transaction_or_reopen(self) -> None:
        if self.state is not None and self.random.random() < 0.5:
            self.ws.close()
            self.ws = self.opened()
            assert self.ws.recovery_notes == ()
            return
        before, foreign = snapshot(self.top), {name: set(paths) for name, paths in self.foreign.items()}
        with suppress(ZeroDivisionError), self.ws.transaction() as tx:
            for _ in range(3):
                with suppress(AgentFSError):
                    tx.write(self.random.choice(NAMES), self.text())
            if self.random.random() < 0.5:
                raise ZeroDivisionError
            return
        assert snapshot(self.top) == before, "a transaction that raises leaves nothing"
        assert self.foreign == foreign

    def rollback(self) -> None:
        if not self.checkpoints:
            return
        name = self.random.choice(sorted(self.checkpoints))
        before = snapshot(self.top)
        try:
            result = self.ws.rollback(name)
        except ConflictError:
            assert self.foreign[name], "only others can be in the way"
            assert snapshot(self.top) == before
            return
        now, wanted, foreign = snapshot(self.top), self.checkpoints[name], self.moved_along(name)
        different = {path for path in now.keys() | wanted.keys() if now.get(path) != wanted.get(path)}
        above = {parent for path in foreign for parent in map(str, Path(path).parents)}
        named = {path for path in different if any(f'"{path}"' in note for note in result.notes)}
        assert different <= foreign | above | named, (name, different, foreign, result.text)

    def moved_along(self, name: str) -> set[str]:
        """Return the paths that others have changed since a checkpoint, also those where moves took them."""
        found = set(self.foreign[name])
        for step in self.ws._journal.log.after(0):
            for pair in file_moves(step.changes).items():
                if not found.isdisjoint(pair):
                    found.update(pair)
        return found


def run(seed: int, *, kept: bool) -> None:
    sequence = Sequence(seed, kept=kept)
    try:
        for _ in range(STEPS):
            sequence.act()
    finally:
        sequence.close()


@pytest.mark.parametrize("kept", [False, True], ids=["memory", "state"])
def test_a_rollback_restores_the_tree_of_its_checkpoint(kept: bool) -> None:
    for seed in range(3):
        run(seed, kept=kept)


BROKEN = [
    *(10, 275, 393, 627, 1903, 2266, 3145, 4075, 4441, 5175, 5206, 5234, 5353, 5472, 5960, 8567, 8802, 9015),
    *(14098, 18130, 18356, 19141, 19989, 21186, 21902, 30685),
]


@pytest.mark.parametrize("seed", BROKEN)
def test_regression_a_sequence_that_broke_the_law(seed: int) -> None:
    """For example, a redo that found its file as it should be, and its undo, which made the file."""
    run(seed, kept=False)


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_a_rollback_restores_the_tree_of_its_checkpoint_in_20000_sequences(part: int) -> None:
    for seed in range(1000 * part, 1000 * (part + 1)):
        run(seed, kept=seed % 4 == 0)
