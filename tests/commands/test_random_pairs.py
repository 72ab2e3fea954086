"""A staged command and a change by another program during it: nothing is lost, nothing is brought back."""

import os
import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from agentfs import Policy, Workspace
from agentfs.errors import ConflictError
from tests.commands.conftest import MEANWHILE, meanwhile
from tests.kit import put
from tests.other_programs import change
from tests.tree_difference import Node, difference, snapshot

FILES = {
    "a": "1\n2\n3\n4\n5\n6\n7\n8\n", "b": "one\n", "d/x": "x\n", "d/e/y": "y\n", ".gitignore": "ig/\n",
    "ig/o": "o\n",
}  # fmt: skip
PATHS = ["a", "b", "d/x", "d/e/y", "ig/o", "new", "d/new"]
COMMANDS = """
sed -i s/2/two/ {p}
echo mine >> {p}
echo mine > {p}
rm -f {p}
mv {p} moved
mv {p} {q}
chmod 700 {p}
rm -rf d
rm -rf d; echo mine > d
rm -rf d; mkdir d; echo mine > d/z
rm -rf ig
mv d d2
cp -r d d3
rm -f {p}; mkdir {p}
rm -f {p}; ln -s a {p}
mkdir -p d/n/m; echo mine > d/n/m/k
touch {p}
cat {p}
""".strip().splitlines()


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(20))
def test_a_foreign_change_during_a_command_stays(tmp_path, seed):
    chance = random.Random(seed)
    for number in range(50):
        one, two = (chance.choice(PATHS) for _ in range(2))
        both = [f"({chance.choice(COMMANDS).format(p=one, q=two)}) 2>/dev/null", MEANWHILE]
        chance.shuffle(both)
        check(tmp_path / str(number), "; ".join(both), chance.random())


def compared(tree: dict[str, Node], text: str) -> dict[str, Node]:
    """Return a tree, without its hard links if the answer of the command tells that one was lost."""
    return {path: replace(node, same_file=()) for path, node in tree.items()} if "hard link" in text else tree


def check(top: Path, command: str, seed: float) -> None:
    def act(at: Path) -> None:
        change(at, random.Random(seed), PATHS, [b"theirs\n"])

    root, alone = (put(top / name, FILES) for name in ("root", "alone"))
    before = snapshot(root)
    act(alone)
    expected, text = snapshot(alone), ""
    said = f"{command} beside the change {seed}"
    with Workspace(root, policy=Policy(run="staged")) as ws:
        with suppress(ConflictError), meanwhile(act, root):
            text = ws.run(command).text
        if not text:
            assert difference(expected, snapshot(root)) == [], said
            return
        gone = before.keys() - expected.keys()
        back = [each for each in gone if os.path.lexists(root / each)]
        assert back == [], f"{said}: brought back {back}"
        with suppress(ConflictError):  # lines of both are merged
            if ws.changes().files:
                ws.undo()
            assert difference(compared(expected, text), compared(snapshot(root), text)) == [], said
