"""Count the instructions of each call in this checkout and in another one, by valgrind's callgrind.

    python benchmarks/instructions.py OTHER [--only NAME,NAME]

Unlike seconds, these counts hardly depend on what else the machine does.
"""

import argparse
import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
WARM = 5  # calls before those that count
# How many times each is called; the rest of the process is the same, and is subtracted.
TIMES = {
    "read": 60,
    "tool read": 60,
    "edit": 40,
    "write": 40,
    "write and undo": 30,
    "ls": 20,
    "glob": 6,
    "grep": 6,
    "grep of a file": 40,
}


def calls(top: Path) -> dict[str, Callable[[], object]]:
    """Return the calls by name, in a tree that is ready."""
    from agentfs import Workspace  # noqa: PLC0415 - of the checkout that PYTHONPATH names

    (top / "small.py").write_text("".join(f"line {n} = {n}\n" for n in range(100)))
    ws = Workspace(top)
    tools = ws.tools()
    sides = ["line 50 = 50", "changed"]
    written = iter(range(1_000_000))

    def edit() -> None:
        ws.edit("small.py", *sides)
        sides.reverse()

    def undo() -> None:
        ws.write("undone.py", f"{next(written)}\n", overwrite=True)
        ws.undo()

    return {
        "read": lambda: ws.read("small.py"),
        "tool read": lambda: tools.call("read", {"path": "small.py"}),
        "edit": edit,
        "write": lambda: ws.write("new.py", f"x = {next(written)}\n" * 20, overwrite=True),
        "write and undo": undo,
        "ls": ws.ls,
        "glob": lambda: ws.glob("**/*.py"),
        "grep": lambda: ws.grep("ImproperlyConfigured"),
        "grep of a file": lambda: ws.grep("line 77", path="small.py"),
    }


def run(name: str, times: int) -> None:
    """Make a call so many times, in a copy of this checkout's package."""
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch, "tree")
        shutil.copytree(HERE / "agentfs", top, ignore=shutil.ignore_patterns("__pycache__"))
        call = calls(top)[name]
        gc.disable()  # a collection takes as many as some calls
        for _ in range(times):
            call()


def instructions(checkout: Path, name: str) -> int:
    """Return the instructions of one call."""
    env = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONHASHSEED": "0"}
    counts: list[int] = []
    for times in (WARM, WARM + TIMES[name]):
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, __file__]
        command += ["--run", name, str(times)]
        done = subprocess.run(command, env=env, cwd="/", stderr=subprocess.PIPE, text=True, check=True)
        counts.append(int(re.findall(r"Collected : (\d+)", done.stderr)[-1]))
    return (counts[1] - counts[0]) // TIMES[name]


def main() -> None:
    """Count, and print the ratio of this checkout to the other one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", nargs="?", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run(options.run[0], int(options.run[1]))
        return
    names = [name for name in TIMES if not options.only or name in options.only.split(",")]
    print("| call | other, thousand instructions | this | ratio |\n|---|---|---|---|")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        checkouts = (options.other.resolve(), HERE)
        pairs = [[pool.submit(instructions, each, name) for each in checkouts] for name in names]
        for name, pair in zip(names, pairs, strict=True):
            theirs, ours = (each.result() for each in pair)
            print(f"| {name} | {theirs / 1e3:.0f} | {ours / 1e3:.0f} | {ours / theirs:.3f} |", flush=True)


if __name__ == "__main__":
    main()
