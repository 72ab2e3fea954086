"""A staged command and a change by another program during it: nothing is lost, nothing is brought back."""

import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from agentfs import Policy, Workspace
from agentfs.errors import ConflictError
from tests.commands.conftest import MEANWHILE, meanwhile
from tests.tree_difference import difference, snapshot

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


def append(file: Path) -> None:
    with file.open("a") as opened:
        opened.write("theirs\n")


def save(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.with_name("saving").write_text("theirs\n")
    file.with_name("saving").rename(file)


def edit(file: Path) -> None:
    file.write_text(file.read_text().replace("7", "seven"))


def attempt(act: Callable[..., object], *arguments: object) -> None:
    with suppress(OSError):
        act(*arguments)


ACTS: list[Callable[[Path, str], object]] = [
    lambda top, path: attempt(append, top / path),
    lambda top, path: attempt(save, top / path),
    lambda top, path: attempt(edit, top / path),
    lambda top, path: attempt((top / path).unlink),
    lambda top, path: attempt((top / path).rename, top / "theirs"),
    lambda top, path: attempt((top / path).chmod, 0o640),
    lambda top, path: attempt((top / path).mkdir),
    lambda top, _: attempt(shutil.rmtree, top / "d"),
    lambda top, _: attempt((top / "d").rename, top / "d9"),
]


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(20))
def test_a_foreign_change_during_a_command_stays(tmp_path, seed):
    chance = random.Random(seed)
    for number in range(50):
        one, two, foreign = (chance.choice(PATHS) for _ in range(3))
        command = f"({chance.choice(COMMANDS).format(p=one, q=two)}) 2>/dev/null"
        both = [command, MEANWHILE]
        chance.shuffle(both)
        check(tmp_path / str(number), "; ".join(both), ACTS[chance.randrange(len(ACTS))], foreign)


def check(top: Path, command: str, act: Callable[[Path, str], object], path: str) -> None:
    root, alone = top / "root", top / "alone"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    before = snapshot(root)
    shutil.copytree(root, alone)
    act(alone, path)
    expected = snapshot(alone)
    is_applied = False
    said = f"{command} beside {ACTS.index(act)}({path})"
    with Workspace(root, policy=Policy(run="staged")) as ws:
        with suppress(ConflictError), meanwhile(act, root, path):
            ws.run(command)
            is_applied = True
        if not is_applied:
            assert difference(expected, snapshot(root)) == [], said
            return
        gone = before.keys() - expected.keys()
        back = [each for each in gone if os.path.lexists(root / each)]
        assert back == [], f"{said}: brought back {back}"
        with suppress(ConflictError):  # lines of both are merged
            if ws.changes().files:
                ws.undo()
            assert difference(expected, snapshot(root)) == [], said
