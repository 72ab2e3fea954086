"""A staged command and a change by another program during it: nothing is lost, nothing is brought back."""

import os
import random
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from agentfs import AgentFSError, Policy, Workspace
from agentfs.errors import ConflictError
from agentfs.fs.lock import lock_directories
from tests.tree_difference import Node, difference, snapshot

FILES = {
    "a": "1\n2\n3\n4\n5\n6\n7\n8\n",
    "b": "one\n",
    "d/x": "x\n",
    "d/e/y": "y\n",
    ".gitignore": "ig/\n",
    "ig/o": "o\n",
}
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


def appended(top: Path, path: str) -> None:
    with (top / path).open("a") as file:
        file.write("theirs\n")


def written(top: Path, path: str) -> None:
    (top / path).parent.mkdir(parents=True, exist_ok=True)
    (top / "saving").write_text("theirs\n")
    (top / "saving").rename(top / path)


def edited(top: Path, path: str) -> None:
    text = (top / path).read_text()
    (top / path).write_text(text.replace("7", "seven"))


ACTS: list[Callable[[Path, str], object]] = [
    appended,
    written,
    edited,
    lambda top, path: (top / path).unlink(),
    lambda top, path: (top / path).rename(top / "theirs"),
    lambda top, path: (top / path).chmod(0o640),
    lambda top, path: (top / path).mkdir(),
    lambda top, _: shutil.rmtree(top / "d"),
    lambda top, _: (top / "d").rename(top / "d9"),
]


def tree_of(top: Path) -> dict[str, Node]:
    return snapshot(top)


def has_begun(mark: str) -> bool:
    return any(
        (stage / "upper0" / mark).exists()
        for place in map(Path, lock_directories(os.geteuid()))
        for stage in place.glob("stage-*")
    )


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(20))
def test_a_foreign_change_during_a_command_stays(tmp_path, seed):
    chance = random.Random(seed)
    for number in range(50):
        one, two, foreign = (chance.choice(PATHS) for _ in range(3))
        command = chance.choice(COMMANDS).format(p=one, q=two)
        check(tmp_path / str(number), command, chance.choice(ACTS), foreign)


def check(top: Path, command: str, act: Callable[[Path, str], object], path: str) -> None:
    root, alone, mark = top / "root", top / "alone", f"begun{os.urandom(4).hex()}"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    before = tree_of(root)
    shutil.copytree(root, alone)
    with suppress(OSError):
        act(alone, path)
    expected = tree_of(alone)
    was_in_time = threading.Event()
    ended = threading.Event()

    def interfere() -> None:
        while not has_begun(mark) and not ended.is_set():
            time.sleep(0.002)
        with suppress(OSError):
            act(root, path)
        if not ended.is_set():
            was_in_time.set()

    said = f"{command} beside {getattr(act, '__name__', act)}({path})"
    with Workspace(root, policy=Policy(run="staged")) as ws:
        thread = threading.Thread(target=interfere)
        thread.start()
        try:
            ws.run(
                f"touch {mark}; rm {mark}; ({command}) 2>/dev/null; touch {mark}; sleep 0.12; rm -f {mark}"
            )
            conflict = None
        except AgentFSError as error:
            conflict = error
        ended.set()
        thread.join()
        if not was_in_time.is_set():
            return
        if conflict is not None:
            assert conflict.code == "conflict", f"{said}: {conflict}"
            assert difference(expected, tree_of(root)) == [], f"{said}: {conflict}"
            return
        gone = before.keys() - expected.keys()
        back = [each for each in gone if os.path.lexists(root / each)]
        assert back == [], f"{said}: brought back {back}"
        try:
            if ws.changes().files:
                ws.undo()
        except ConflictError:
            return
        assert difference(expected, tree_of(root)) == [], said
