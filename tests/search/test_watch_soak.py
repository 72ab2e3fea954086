"""A watched workspace while others write: whenever they pause, it answers as one opened at that moment."""

import multiprocessing
import os
import random
import shutil
from contextlib import suppress
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path

import pytest

from agentfs import Limits, Workspace
from agentfs.watch import kept_texts
from tests.search.watched import answer, unhurried

WRITERS = 4
PATIENCE = 120  # seconds that one waits for the others
NAMES = ["x.txt", "y.py", "z.md", "build", ".gitignore", ".env", "é.txt", "w.txt"]
DIRECTORIES = ["", "a", "a/b", "a/b/c", "lib", "lib/deep", ".hidden", "new", "new/er"]
TEXTS = [
    "",
    "needle\n",
    "one\nNeedle two\n",
    "hay\n" * 400,
    "\0binary",
    "*.md\n",
    "build/\n!x.txt\n",
    "neeſdle\n",
    "hay\n" * 9000 + "needle two\n",
]
LIMITS = Limits(watch_bytes=64 * 1024, file_bytes=32 * 1024)
CALLS = [
    ("grep", {"pattern": "needle"}),
    ("grep", {"pattern": "needle", "ignore_case": True, "output_mode": "count", "include_ignored": True}),
    ("grep", {"pattern": r"^\w+ two", "hidden": True}),
    ("grep", {"pattern": "hay", "path": ".", "glob": "*.txt", "output_mode": "files_with_matches"}),
    ("glob", {"pattern": "**/*.txt"}),
    ("find", {"types": ["f", "d", "l"], "include_ignored": True}),
    ("ls", {"depth": 0}),
]  # fmt: skip


def change(root: Path, chosen: random.Random) -> None:
    """Make one random change; a file that another writer has removed is not an error."""

    def some(names: list[str] = NAMES) -> Path:
        return root / chosen.choice(DIRECTORIES) / chosen.choice(names)

    path, other, text = some(), some(), chosen.choice(TEXTS)
    match chosen.randrange(10):
        case 0 | 1 | 2:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        case 3:
            with path.open("a") as file:
                file.write(text)
        case 4:
            os.truncate(path, chosen.choice([0, 3, 100]))
        case 5:
            path.unlink()
        case 6:
            os.replace(path, other)
        case 7:
            directory = root / chosen.choice(DIRECTORIES[1:])
            os.replace(directory, root / chosen.choice(["lib", "new", "moved", "a/moved"]))
        case 8:
            shutil.rmtree(root / chosen.choice(DIRECTORIES[1:]))
        case _:
            chosen.choice([os.link, os.symlink])(path, other)


def write(root: Path, seed: int, paused: Barrier, resumed: Barrier, finished: Event) -> None:
    """Change the tree at random, and pause now and then until it has been compared."""
    chosen = random.Random(seed)
    while True:
        for _ in range(chosen.randrange(1, 60)):
            with suppress(OSError):
                change(root, chosen)
        paused.wait(PATIENCE)
        resumed.wait(PATIENCE)
        if finished.is_set():
            return


def soak(root: Path, rounds: int) -> None:
    """Let writers change a tree, and compare each time that they pause with a cold workspace."""
    processes = multiprocessing.get_context("fork")
    paused, resumed = processes.Barrier(WRITERS + 1), processes.Barrier(WRITERS + 1)
    finished = processes.Event()
    writers = [
        processes.Process(target=write, args=(root, seed, paused, resumed, finished), daemon=True)
        for seed in range(WRITERS)
    ]
    for writer in writers:
        writer.start()
    with Workspace(root, limits=LIMITS, watch=True) as watched:
        for compared in range(rounds):
            while paused.n_waiting < WRITERS and all(writer.is_alive() for writer in writers):
                answer(watched, *CALLS[compared % len(CALLS)])  # not to be judged while they write
            paused.wait(PATIENCE)
            with Workspace(root, limits=LIMITS) as cold, unhurried():
                for name, arguments in CALLS:
                    expected = answer(cold, name, arguments)
                    assert answer(watched, name, arguments) == expected, (compared, name, arguments)
            if compared % 50 == 49:
                watched.forget()  # so that the next calls keep a part each again
            if compared == rounds - 1:
                finished.set()
            resumed.wait(PATIENCE)
    for writer in writers:
        writer.join(PATIENCE)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:.* is multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("rounds", [3, *(pytest.param(n, marks=pytest.mark.long) for n in (1000, 3000))])
def test_it_is_never_stale_when_writers_pause(tmp_path, monkeypatch, rounds):
    monkeypatch.setattr(kept_texts, "_FIRST_KEPT", 5)
    soak(tmp_path, rounds)
