"""The search after changes by others, watched beside cold: the same answers, then the time of each.

    python benchmarks/watch_changes.py TREE [--changes 1000] [--rounds 6]

In a copy of TREE that git tracks, `git checkout` goes to and fro between two commits that differ in CHANGES
files, of which one part in twenty is in the one commit only; then the same files are written to 8,000 times
(16,000 events), then more often than the queue of events holds, and one file is made. Figures are
milliseconds of the next call and, in brackets, of the processor.
"""

import argparse
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from agentfs import Limits, Workspace

WRITES = 8000, 20_000


def git(top: Path, *arguments: str) -> str:
    command = ["git", "-C", top, "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "gc.auto=0"]
    return subprocess.run([*command, *arguments], check=True, capture_output=True, text=True).stdout


def two_commits(top: Path, changes: int) -> list[Path]:
    """Commit a tree, then with some files changed, made or deleted, which are returned."""
    git(top, "init", "-q", "-b", "one")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "one")
    names = [top / name for name in git(top, "ls-files", "-z").split("\0") if name]
    files = [path for path in names if path.is_file() and not path.is_symlink()]
    chosen = random.Random(1).sample(files, changes)
    for number, path in enumerate(chosen):
        content = path.read_bytes()
        if number % 20 == 0:
            path.unlink()
        elif number % 20 == 1:
            path.with_name(f"{path.name}.new").write_bytes(content)
        else:
            path.write_bytes(content + b"\nchanged\n")
    git(top, "checkout", "-qb", "two")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "two")
    return chosen


def timed(call: Callable[[], object]) -> tuple[float, float]:
    began, used = time.perf_counter(), time.process_time()
    call()
    return (time.perf_counter() - began) * 1000, (time.process_time() - used) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree")
    parser.add_argument("--changes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=6)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory, "tree")
        shutil.copytree(given.tree, top, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        changed = two_commits(top, given.changes)
        limits = Limits(timeout=30, watch_bytes=2**31)
        watched = Workspace(top, limits=limits, watch=True)
        cold = Workspace(top, limits=limits)

        def compare(what: str) -> None:
            after = timed(lambda: watched.grep("changed", context=0))
            usual = timed(lambda: cold.grep("changed", context=0))
            one, other = (ws.grep("changed", context=0).to_dict() for ws in (watched, cold))
            assert one | {"elapsed_ms": 0} == other | {"elapsed_ms": 0}, what
            print(f"{what}: {after[0]:.0f} ({after[1]:.0f}), cold {usual[0]:.0f} ({usual[1]:.0f})")

        watched.grep("changed", context=0)
        for number in range(given.rounds):
            git(top, "checkout", "-q", ("one", "two")[number % 2])
            compare(f"git checkout of {len(changed)} files")
        paths = [path for path in changed if path.exists()]
        for writes in WRITES:
            for number in range(writes):
                with paths[number % len(paths)].open("ab") as file:
                    file.write(b"x")
            compare(f"{writes:,} writes to {len(paths)} files")
        (top / "made.txt").write_text("changed\n")
        compare("one new file")
        print(watched.watch)


if __name__ == "__main__":
    main()
