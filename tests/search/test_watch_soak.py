"""A watched workspace while others write: whenever they pause, it answers as one opened at that moment."""

import os
import random

import pytest

from agentfs import Limits, Workspace
from agentfs.watch import kept_texts
from tests.other_programs import start
from tests.search.watched import CALLS, answer, check_same

NAMES = ["x.txt", "y.py", "z.md", "build", ".gitignore", ".env", "é.txt", "w.txt"]
DIRECTORIES = ["", "a", "a/b", "a/b/c", "lib", "lib/deep", ".hidden", "new", "new/er"]
PATHS = [os.path.join(directory, name) for directory in DIRECTORIES for name in NAMES]
CONTENTS = [
    b"", b"needle\n", b"one\nNeedle two\n", b"hay\n" * 400, b"\0binary", b"*.md\n", b"build/\n!x.txt\n",
    "neeſdle\n".encode(), b"hay\n" * 9000 + b"needle two\n",
]  # fmt: skip
LIMITS = Limits(watch_bytes=64 * 1024, file_bytes=32 * 1024)


def is_running(child: int) -> bool:
    ended, status = os.waitpid(child, os.WNOHANG)
    assert not status
    return not ended


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:.* is multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("rounds", [3, *(pytest.param(n, marks=pytest.mark.long) for n in (1000, 3000))])
def test_it_is_never_stale_when_writers_pause(tmp_path, monkeypatch, rounds):
    monkeypatch.setattr(kept_texts, "_FIRST_KEPT", 5)
    draw = random.Random(rounds)
    with Workspace(tmp_path, limits=LIMITS, watch=True) as watched:
        for number in range(rounds):
            writers = start(tmp_path, draw, PATHS, CONTENTS)
            while writers := [*filter(is_running, writers)]:
                answer(watched, *draw.choice(CALLS))  # not to be judged while they write
            check_same(watched, tmp_path)
            if number % 50 == 49:
                watched.forget()  # so that the next calls keep a part each again
