"""Each method beside a plain way to the same, on one tree: the ratios of times, compared with recorded ones.

    python benchmarks/ratios.py            # fails if a ratio is 1.25 times worse than in results/ratios.json
    python benchmarks/ratios.py --record   # writes them, with the commit and the machine

The tree is the standard library of this Python, or one with `ast.py` at its top. Each round measures a pair
one right after the other, so that other work on the machine slows down both; the median of the rounds
counts. A ratio that is worse is measured once more.
"""

import argparse
import datetime as dt
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from agentfs import Policy, Workspace

WORSE = 1.25
ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "ratios.json"
RG = [os.path.join(os.path.dirname(sys.executable), "rg"), "-n", "--no-heading", "--sort=path"]
Call = Callable[[], object]


def pairs(top: Path, ws: Workspace, watched: Workspace) -> dict[str, tuple[Call, Call]]:
    """Return for each name our call and the plain one."""
    tools = ws.tools()
    small, turn = top / "small_benchmark.py", [0]
    small.write_text("line\n" * 100)

    def run(*command: str) -> bytes:
        return subprocess.run(command, cwd=top, capture_output=True, check=False).stdout

    def replace_plainly() -> None:
        turn[0] += 1
        new = small.with_suffix(".new")
        with open(new, "w") as file:
            file.write(f"{turn[0]}\n" + "line\n" * 100)
            file.flush()
            os.fsync(file.fileno())
        new.replace(small)

    def write() -> None:
        turn[0] += 1
        ws.write("small_benchmark.py", f"{turn[0]}\n" + "line\n" * 100)

    def walk() -> list[str]:
        return sorted(os.path.join(above, name) for above, _, names in os.walk(top) for name in names)

    def record() -> None:
        with ws.recording("nothing"):
            pass

    def imported(what: str) -> Call:
        return lambda: run(sys.executable, "-c", f"import {what}")

    some, word, none = "RaisesGroup|fromisocalendar", r"\bself\b", "get_template_names|lookup_loader"
    return {
        "grep, a rare name, beside rg -j1": (lambda: ws.grep(some), lambda: run(*RG, "-j1", some)),
        "grep, a frequent word, beside rg -j1": (lambda: ws.grep(word), lambda: run(*RG, "-j1", word)),
        "watched grep, a rare name, beside rg": (
            lambda: watched.grep("fromisocalendar"),
            lambda: run(*RG, "fromisocalendar"),
        ),
        "watched grep, no match, beside rg": (lambda: watched.grep(none), lambda: run(*RG, none)),
        "glob of all files beside os.walk": (lambda: ws.glob("**"), walk),
        "read by a tool beside the method": (
            lambda: tools.call("read", {"path": "ast.py"}),
            lambda: ws.read("ast.py"),
        ),
        "write beside a synced replacement": (write, replace_plainly),
        "an empty recording beside os.walk": (record, walk),
        "import agentfs beside re, json, dataclasses": (
            imported("agentfs"),
            imported("re, json, dataclasses"),
        ),
    }


def ratio(ours: Call, plain: Call, rounds: int) -> float:
    """Return the median ratio of the times of two calls."""
    found = []
    for _ in range(rounds + 1):
        begun = time.perf_counter()
        ours()
        between = time.perf_counter()
        plain()
        found.append((between - begun) / (time.perf_counter() - between))
    return round(statistics.median(found[1:]), 3)


def is_worse(name: str, found: float, recorded: Mapping[str, float]) -> bool:
    """Return True if a ratio is worse than the recorded one by the factor `WORSE`."""
    return found > WORSE * recorded.get(name, found)


def about() -> dict[str, str]:
    """Return the commit, the date and the machine of figures."""
    command = ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return {"commit": commit, "date": dt.datetime.now(dt.UTC).date().isoformat(), "machine": machine}


def save(file: str | Path, tree: str, rows: list[dict]) -> None:
    """Write rows, each a label and, by name of who was measured, `ms` or another quantity."""
    Path(file).write_text(json.dumps({**about(), "tree": tree, "rows": rows}, indent=1) + "\n")


def measured(top: Path, rounds: int, recorded: Mapping[str, float]) -> dict[str, float]:
    """Measure all pairs in a tree, those that are worse than recorded twice."""
    found = {}
    with Workspace(top, policy=Policy(overwrite="always")) as ws, Workspace(top, watch=True) as watched:
        for name, pair in pairs(top, ws, watched).items():
            found[name] = ratio(*pair, rounds)
            if is_worse(name, found[name], recorded):
                found[name] = min(found[name], ratio(*pair, rounds))
            mark = "  WORSE" if is_worse(name, found[name], recorded) else ""
            print(f"{found[name]:9.2f}  {name}{mark}", flush=True)
    return found


def main() -> int:
    """Measure, then record or compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE")
    parser.add_argument("--tree", type=Path, default=Path(sysconfig.get_path("stdlib")))
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()
    recorded = {} if asked.record else json.loads(asked.results.read_text())["ratios"]
    with tempfile.TemporaryDirectory(dir=ROOT.parent) as directory:
        top = Path(directory, "tree")
        left_out = shutil.ignore_patterns("site-packages", "__pycache__", "*.so", "*.pyc")
        shutil.copytree(asked.tree, top, symlinks=True, ignore=left_out)
        found = measured(top, asked.rounds, recorded)
    if asked.record:
        asked.results.write_text(json.dumps({**about(), "ratios": found}, indent=1) + "\n")
    return int(any(is_worse(name, value, recorded) for name, value in found.items()))


if __name__ == "__main__":
    sys.exit(main())
