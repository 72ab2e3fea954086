"""Measure recordings over a tree, beside `git add -A; git write-tree` into an index of its own.

Each figure is the time by the clock and, in brackets, that of the processor, in milliseconds.

Usage: python benchmarks/recording.py TREE [--rounds N]
"""

import argparse
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from agentfs import Limits, Workspace

CHANGED = 100


class Cost(NamedTuple):
    """Milliseconds by the clock, and of the processor, with those of child processes that have ended."""

    clock: float
    processor: float

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(self.clock - other.clock, self.processor - other.processor)

    def __str__(self) -> str:
        return f"{self.clock:.0f} ({self.processor:.0f}) ms"


def now() -> Cost:
    """Return the time since some moment."""
    return Cost(time.perf_counter() * 1000, sum(os.times()[:4]) * 1000)


def timed(act: Callable[[], object]) -> Cost:
    """Return the cost of a call."""
    began = now()
    act()
    return now() - began


def change(root: Path) -> None:
    """Append a line to files of the tree."""
    files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    for path in files[:: max(len(files) // CHANGED, 1)][:CHANGED]:
        with path.open("ab") as file:
            file.write(b"# changed\n")


def record(root: Path, state: Path | None, rounds: int, *, watch: bool) -> None:
    """Print the costs of recordings in one kind of workspace."""
    limits = Limits(snapshot_bytes=4 * 1024**3)
    kind = "state=" if state else "watch=True" if watch else "plain"
    with Workspace(root, state=state, watch=watch, limits=limits) as ws:

        def block(act: Callable[[], object] = lambda: None) -> None:
            with ws.recording("block"):
                act()

        first = timed(block)
        block()
        empty = min(timed(block) for _ in range(rounds))
        inside = Cost(0, 0)

        def changed() -> None:
            nonlocal inside
            inside = timed(lambda: change(root))

        took = min(timed(lambda: block(changed)) - inside for _ in range(rounds))
        undone = timed(ws.undo)
        ws.undo(rounds - 1) if rounds > 1 else None
        text = sum(
            path.stat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink()
        )
        ((stored,),) = ws._journal.contents.database.read("SELECT sum(length(data)) FROM contents")[0]  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    contents = f", contents {stored / text:.0%} of {text / 1e6:.0f} MB" if state else ""
    print(
        f"{kind:10}  first {first}{contents}; empty block {empty};"
        f" {CHANGED} files changed {took}; undo {undone}",
        flush=True,
    )


def git(root: Path, scratch: Path, rounds: int) -> None:
    """Print the costs of the same with git."""
    environment = {
        "GIT_DIR": str(scratch / "git"),
        "GIT_WORK_TREE": str(root),
        "GIT_INDEX_FILE": str(scratch / "index"),
        "PATH": os.environ["PATH"],
    }

    def run(*command: str) -> None:
        subprocess.run(["git", *command], check=True, env=environment, cwd=root, capture_output=True)

    def snapshot() -> None:
        run("add", "-A")
        run("write-tree")

    run("init", "-q")
    first = timed(snapshot)
    empty = min(timed(snapshot) for _ in range(rounds))
    change(root)
    took = timed(snapshot)
    print(f"{'git':10}  first {first}; unchanged, once {empty}; changed {took}")


def main() -> None:
    """Measure in a copy of a tree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        scratch = Path(made)
        root = scratch / "root"
        shutil.copytree(arguments.tree, root, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        count = sum(1 for path in root.rglob("*") if path.is_file())
        print(f"{arguments.tree.name}: {count:,} files", flush=True)
        for state, watch in ((None, False), (scratch / "state", False), (None, True)):
            record(root, state, arguments.rounds, watch=watch)
        git(root, scratch, arguments.rounds)
    print(f"most memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
