"""Searches of a watched workspace beside cold ones and `rg`: the same answers first, then the time of each.

    python benchmarks/watch.py TREE [--name linux] [--rounds 7] [--rg RG]
        [--watch-bytes 2147483648] [--json FILE]

Our figures are milliseconds of the call and, in brackets, of the processor; for rg, of the whole process. The
first use of a pattern is given before its best one. The last two columns are ratios of processor time: first
use watched / rg, and cold / rg -j1. They hold on a busy machine too.
"""

import argparse
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from save import save
from search import PATTERNS, children_seconds

from agentfs import Limits, Workspace


def measure(run: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return the best of several runs, in ms: of the clock, and of the processor."""
    clock, processor = [], []
    for _ in range(rounds):
        began, used = time.perf_counter(), time.process_time() + children_seconds()
        run()
        clock.append((time.perf_counter() - began) * 1000)
        processor.append((time.process_time() + children_seconds() - used) * 1000)
    return min(clock), min(processor)


def totals(found) -> tuple:
    return found.total_lines, found.total_matches, found.total_files, found.skipped, found.matches


def row(label: str, pattern: str, lines: int, ms: dict[str, float]) -> dict:
    """Return what `charts.py` takes."""
    times = {who: round(value, 1) for who, value in ms.items()}
    return {"pattern": pattern, "label": label, "lines": lines, "ms": times}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree")
    parser.add_argument("--name", default="django", choices=sorted(PATTERNS), help="whose patterns")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rg", default="rg")
    parser.add_argument("--watch-bytes", type=int, default=2**31)
    parser.add_argument("--json", help="the file for the times by the clock")
    given = parser.parse_args()
    rows = []
    limits = Limits(timeout=30, watch_bytes=given.watch_bytes)
    cold = Workspace(given.tree, limits=limits)
    first = {}
    for watch in (False, True):
        taken = []
        for _ in range(3):
            with Workspace(given.tree, limits=limits, watch=watch) as ws:
                taken.append(measure(lambda: ws.grep("zz_no_such_name_zz", context=0), 1)[1])
        first[watch] = min(taken)
    watched = Workspace(given.tree, limits=limits, watch=True)
    print(f"| first search | {first[False]:.0f} | {first[True]:.0f} | {first[True] / first[False]:.2f} | | |")
    watched.grep("zz_no_such_name_zz")
    ratios = []
    for name, pattern, options, _ in PATTERNS[given.name]:
        arguments = {
            "pattern": pattern,
            "context": 0,
            "ignore_case": "i" in options,
            "multiline": "m" in options,
        }
        first_use = measure(lambda: watched.grep(**arguments), 1)  # noqa: B023 - called at once
        found = watched.grep(**arguments)
        assert totals(found) == totals(cold.grep(**arguments)), name
        ours = measure(lambda: watched.grep(**arguments), given.rounds)  # noqa: B023 - called at once
        usual = measure(lambda: cold.grep(**arguments), max(given.rounds // 2, 2))  # noqa: B023 - as above
        flags = [{"i": "-i", "m": "-U"}[option] for option in options]
        command = [given.rg, "-n", "--no-heading", "--color=never", *flags, "-e", pattern]
        (rg, rg_used), (_, single_used) = (
            measure(
                lambda: subprocess.run([*command, *more], cwd=given.tree, capture_output=True, check=False),  # noqa: B023 - called at once
                given.rounds,
            )
            for more in ([], ["-j1"])
        )
        ratios.append(rg / ours[0])
        times = {"agentfs": usual[0], "watched": ours[0], "rg": rg}
        rows.append(row(name, pattern, found.total_lines, times))
        print(
            f"| {name}: `{pattern}` ({found.total_lines:,} lines) | {usual[0]:.0f} ({usual[1]:.0f}) | "
            f"{first_use[0]:.1f} ({first_use[1]:.1f}) | {ours[0]:.1f} ({ours[1]:.1f}) | "
            f"{usual[1] / ours[1]:.1f} | {rg:.0f} ({rg_used:.0f}) | {rg / ours[0]:.1f} | "
            f"{first_use[1] / rg_used:.2f} | {usual[1] / single_used:.2f} |",
            flush=True,
        )
    for name, method, arguments in (
        ("a page of `glob *.py`", "glob", {"pattern": "*.py"}),
        ("a page of `ls`, all levels", "ls", {"depth": 0}),
    ):
        one, other = (getattr(each, method)(**arguments) for each in (watched, cold))
        assert one.to_dict() | {"elapsed_ms": 0} == other.to_dict() | {"elapsed_ms": 0}, name
        ours = measure(lambda: getattr(watched, method)(**arguments), given.rounds)  # noqa: B023 - as above
        usual = measure(lambda: getattr(cold, method)(**arguments), given.rounds)  # noqa: B023 - as above
        print(
            f"| {name} | {usual[0]:.0f} ({usual[1]:.0f}) | {ours[0]:.1f} ({ours[1]:.1f}) | "
            f"{usual[1] / ours[1]:.1f} | | |"
        )
        rows.append(row(name, "", one.total, {"agentfs": usual[0], "watched": ours[0]}))
    if given.json:
        save(given.json, Path(given.tree).name, rows)
    print("rg / watched, median:", round(statistics.median(ratios), 1))
    print(watched.watch)


if __name__ == "__main__":
    main()
