"""Searches of a watched workspace beside cold ones and `rg`: the same answers first, then the time of each.

The first lines compare processor time with a cold search: of the first calls, which keep a part each, and of
searches with memory for all texts, for half of them, and for few.

    python benchmarks/watch.py TREE [--name linux] [--rounds 7] [--rg RG]
        [--watch-bytes 2147483648] [--json FILE]

Our figures are milliseconds of the call and, in brackets, of the processor; for rg, of the whole process. The
first use of a pattern is given before its best one. The last two columns are ratios of processor time.
"""

import argparse
import resource
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from ratios import save
from search import PATTERNS

from agentfs import Limits, Workspace
from agentfs.results import WatchReport

ABSENT = "zz_no_such_name_zz"
FIRST_CALLS = 9  # each at most doubles what is kept


def processor_seconds() -> float:
    """Return the processor time of this process, and of the programs that have ended."""
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def measure(run: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return the best of several runs, in ms: of the clock, and of the processor."""
    clock, processor = [], []
    for _ in range(rounds):
        began, used = time.perf_counter(), processor_seconds()
        run()
        clock.append((time.perf_counter() - began) * 1000)
        processor.append((processor_seconds() - used) * 1000)
    return min(clock), min(processor)


def keep_all(workspace: Workspace) -> None:
    """Search until nothing more is kept; each call keeps a part."""
    for _ in range(FIRST_CALLS):
        workspace.grep(ABSENT, context=0)


def compare_first_calls(tree: str, limits: Limits, rounds: int) -> None:
    """Print the processor time of the first calls, as ratios to a first cold search."""
    usual, calls = [], [[] for _ in range(FIRST_CALLS)]
    for _ in range(rounds):
        for watch, kept in ((False, [usual]), (True, calls)):
            with Workspace(tree, limits=limits, watch=watch) as ws:
                for taken in kept:
                    taken.append(measure(lambda: ws.grep(ABSENT, context=0), 1)[1])
    ratios = " ".join(f"{min(taken) / min(usual):.2f}" for taken in calls)
    print(f"first calls / cold ({min(usual):.0f} ms): {ratios}")


def compare_under_pressure(tree: str, cold: Workspace, full: WatchReport, rounds: int) -> None:
    """Print the processor time of searches with less memory than the texts take, as ratios to cold ones."""
    for part in (2, 10):
        limits = Limits(timeout=30, watch_bytes=full.names * 384 + full.text_bytes // part)
        with Workspace(tree, limits=limits, watch=True) as ws:
            keep_all(ws)
            ratios = []
            for pattern in (ABSENT, "self", r"\bmodel\b", r"\d{9,}"):
                taken = {each: [] for each in (cold, ws)}
                for _ in range(rounds):
                    for each, times in taken.items():
                        times.append(measure(lambda: each.grep(pattern, context=0), 1)[1])  # noqa: B023 - called at once
                ratios.append(min(taken[ws]) / min(taken[cold]))
            kept = ws.watch.texts / full.texts
            found = " ".join(f"{ratio:.2f}" for ratio in ratios)
            print(f"room for 1/{part} of the texts ({kept:.0%} of the files kept) / cold: {found}")


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
    cold.grep(ABSENT)
    compare_first_calls(given.tree, limits, given.rounds)
    watched = Workspace(given.tree, limits=limits, watch=True)
    keep_all(watched)
    compare_under_pressure(given.tree, cold, watched.watch, given.rounds)
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
