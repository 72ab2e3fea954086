"""Measure commands of `run`, staged and recorded, beside `subprocess.run`.

Each figure is the median time by the clock in milliseconds. `TREE` is copied; nothing in it is changed.

Usage: python benchmarks/run.py TREE [--rounds N]
"""

import argparse
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from agentfs import Limits, Policy, Workspace

CHANGED = 21  # files
SECONDS = 600.0


def timed(act: Callable[[], object]) -> float:
    """Return the milliseconds of a call."""
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000


def plain(root: Path, command: str) -> object:
    """Run a command without the library."""
    return subprocess.run(["bash", "-c", command], cwd=root, capture_output=True, check=False)


def measure(root: Path, rounds: int, run: str, *, watch: bool) -> None:
    """Print the figures of one way to run."""
    files = [each for each in sorted(root.rglob("*")) if each.is_file() and ".git" not in each.parts]
    chosen = " ".join(
        f"'{each.relative_to(root)}'" for each in files[:: max(len(files) // CHANGED, 1)][:CHANGED]
    )
    change = f"for each in {chosen}; do echo '# changed' >> \"$each\"; done"
    limits = Limits(timeout=SECONDS, run_timeout=SECONDS)
    with Workspace(root, policy=Policy(run=run), limits=limits, watch=watch) as ws:
        first = timed(lambda: ws.run("true"))
        outside = median(timed(lambda: plain(root, "true")) for _ in range(rounds))
        inside = median(timed(lambda: ws.run("true")) for _ in range(rounds))
        applied, undone = [], []
        for _ in range(max(rounds // 4, 3)):
            applied.append(timed(lambda: ws.run(change)) - inside)
            undone.append(timed(ws.undo))
        grep = "grep -r no-such-word . | wc -l"
        plain(root, grep)
        search = min(timed(lambda: plain(root, grep)) for _ in range(3))
        search_inside = min(timed(lambda: ws.run(grep, SECONDS)) for _ in range(3))
    name = f"{run}{', watch=True' if watch else ''}"
    print(
        f"{name}: `true` {inside - outside:.1f} over {outside:.1f} (first {first:.0f});"
        f" {CHANGED} changes applied in {median(applied):.0f}, undone in {median(undone):.0f};"
        f" `grep -r` {search_inside:.0f} inside, {search:.0f} outside"
    )


def main() -> None:
    """Measure both ways on a copy of a tree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as top:
        root = Path(top, "tree")
        shutil.copytree(options.tree, root, symlinks=True)
        for run, watch in (("staged", False), ("recorded", False), ("recorded", True)):
            measure(root, options.rounds, run, watch=watch)


if __name__ == "__main__":
    main()
