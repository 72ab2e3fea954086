"""Compare searches after outside changes, watched and cold: the same answers, then the time of each.

    python benchmarks/watch_changes.py TREE [--changes 1000] [--rounds 6] [--pattern get_template_names]

The first table has ten kinds of change in a copy of TREE: the medians of the processor time of a search for
PATTERN before and after the change, their ratio, and the median of a cold search. All files of the copy are
new, as after a checkout.

The second table uses a copy that git tracks. `git checkout` switches between two commits that differ in
CHANGES files; one file in twenty is in only one of them. Then the same files are written 8,000 times
(16,000 events), then more often than the event queue holds. Figures are milliseconds of the next call and,
in brackets, of the processor.
"""

import argparse
import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from watch import keep_all

from agentfs import Limits, Workspace

WRITES = 8000, 20_000
LIMITS = Limits(timeout=30, watch_bytes=2**31)


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


@contextmanager
def copy_of(tree: str) -> Iterator[Path]:
    """Copy a tree without its repository and without the times of its files."""
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory, "tree")
        ignored = shutil.ignore_patterns(".git")
        shutil.copytree(tree, top, symlinks=True, ignore=ignored, copy_function=shutil.copy)
        yield top


class Changes:
    """Ten kinds of change in one directory of a tree; each can be made again and again."""

    def __init__(self, top: Path) -> None:
        directories = [each for each in top.rglob("*") if each.is_dir()]
        self.top = top
        self.directory = max(directories, key=lambda each: len([*each.glob("*.py")]))
        self.files = sorted(self.directory.glob("*.py"))
        self.number = 0

    def _new(self, suffix: str = "") -> Path:
        self.number += 1
        return self.directory / f"new {self.number}{suffix}"

    def temporary_file(self) -> None:
        path = self._new()
        path.write_text("x\n")
        path.unlink()

    def new_directory(self) -> None:
        self._new().mkdir()

    def atomic_save(self) -> None:
        path = self._new()
        path.write_bytes(self.files[0].read_bytes() + b"# saved\n")
        path.rename(self.files[0])

    def new_file(self) -> None:
        self._new(".py").write_text("x\n")

    def renamed_file(self) -> None:
        self.files[1] = self.files[1].rename(self._new(".py"))

    def hard_link(self) -> None:
        os.link(self.files[2], self._new(".py"))

    def object_files(self) -> None:
        for _ in range(200):
            self._new(".o").write_bytes(b"\x7fELF\0" * 1000)

    def deleted_file(self) -> None:
        self.files.pop().unlink()

    def write_in_place(self) -> None:
        with self.files[0].open("a") as file:
            file.write("# written\n")


def measure_kinds(top: Path, pattern: str, rounds: int) -> None:
    """Print a row for each kind of change."""
    changes = Changes(top)
    watched, cold = Workspace(top, limits=LIMITS, watch=True), Workspace(top, limits=LIMITS)

    def search(workspace: Workspace = watched) -> float:
        return timed(lambda: workspace.grep(pattern, context=0))[1]

    def row(name: str, change: Callable[[], object]) -> float:
        before: list[float] = []
        after: list[float] = []
        for _ in range(rounds):
            before += [search(), search()]
            change()
            after.append(search())
        usual = median(search(cold) for _ in range(3))
        one, other = (each.grep(pattern, context=0).to_dict() for each in (watched, cold))
        assert one | {"elapsed_ms": 0} == other | {"elapsed_ms": 0}, name
        ratio = median(after) / median(before)
        print(f"| {name} | {median(before):.1f} | {median(after):.1f} | {ratio:.1f} | {usual:.0f} |")
        return ratio

    print("| change | before | after | ratio | cold |\n|---|---|---|---|---|")
    keep_all(watched)
    names = "temporary_file", "new_directory", "atomic_save", "new_file", "renamed_file"
    names += "hard_link", "object_files", "deleted_file", "write_in_place"
    ratios = [row(name.replace("_", " "), getattr(changes, name)) for name in names]
    for path in top.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes())
    keep_all(watched)
    ratios.append(row("temporary file after all files were rewritten", changes.temporary_file))
    print(f"\nmedian ratio {median(ratios):.1f}, highest {max(ratios):.1f}; {watched.watch}")
    watched.close()


def measure_many(top: Path, changes: int, rounds: int) -> None:
    """Print the time of a search after changes of many files."""
    changed = two_commits(top, changes)
    watched, cold = Workspace(top, limits=LIMITS, watch=True), Workspace(top, limits=LIMITS)

    def compare(what: str) -> None:
        after = timed(lambda: watched.grep("changed", context=0))
        usual = timed(lambda: cold.grep("changed", context=0))
        one, other = (ws.grep("changed", context=0).to_dict() for ws in (watched, cold))
        assert one | {"elapsed_ms": 0} == other | {"elapsed_ms": 0}, what
        print(f"{what}: {after[0]:.0f} ({after[1]:.0f}), cold {usual[0]:.0f} ({usual[1]:.0f})")

    keep_all(watched)
    for number in range(rounds):
        git(top, "checkout", "-q", ("one", "two")[number % 2])
        compare(f"git checkout of {len(changed)} files")
    paths = [path for path in changed if path.exists()]
    for writes in WRITES:
        for number in range(writes):
            with paths[number % len(paths)].open("ab") as file:
                file.write(b"x")
        compare(f"{writes:,} writes to {len(paths)} files")
    print(watched.watch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree")
    parser.add_argument("--changes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--pattern", default="get_template_names")
    given = parser.parse_args()
    with copy_of(given.tree) as top:
        measure_kinds(top, given.pattern, given.rounds)
    with copy_of(given.tree) as top:
        measure_many(top, given.changes, given.rounds)


if __name__ == "__main__":
    main()
