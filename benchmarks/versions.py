"""The same calls on this checkout and on another one, interleaved: the ratio of times and the peak of memory.

    PYTHONPATH=. python benchmarks/versions.py OTHER TREE [--rounds 15] [--only NAMES] [--repeat 1] [--cpu]

OTHER is a commit, or the directory of a checkout. TREE is copied. Each checkout answers from a process of its
own that is already running; answers are compared before any time counts. `import` and `open` are measured in
fresh interpreters. On a busy machine, `--cpu` counts processor time, and `--repeat` calls several times.
"""

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from scripts.other_version import unpack

HERE = Path(__file__).resolve().parent.parent
LITERAL, REGEX = "ImproperlyConfigured", r"def get_\w+\(self"
SMALL, LARGE = "benchmark_small.py", "benchmark_large.py"


def operations(top: Path) -> dict[str, Callable[[], object]]:
    """Return the calls by name; each returns what must be equal in both versions."""
    from agentfs import Workspace  # noqa: PLC0415 - of the checkout that PYTHONPATH names

    ws = Workspace(top)
    tools = ws.tools()
    (top / SMALL).write_text("".join(f"line {n} = {n}\n" for n in range(100)))
    (top / LARGE).write_text("".join(f"line {n} = {n}\n" for n in range(50_000)))
    flip = {SMALL: ["line 50 = 50\n", "changed\n"], LARGE: ["line 25000 = 25000\n", "changed\n"]}

    def edit(name: str) -> object:
        old, new = flip[name]
        flip[name] = [new, old]
        ws.edit(name, old, new)
        return (top / name).read_bytes().count(b"\n")

    def write() -> object:
        result = ws.write("benchmark_new.py", "x = 1\n" * 20, overwrite=True)
        return result.bytes_written

    def undo() -> object:
        ws.write("benchmark_undo.py", f"{time.monotonic()}\n", overwrite=True)
        ws.undo()
        return (top / "benchmark_undo.py").exists()

    def grep(pattern: str, **more: object) -> object:
        found = ws.grep(pattern, **more)
        return found.total_matches, found.total_files, [match.text for match in found.matches]

    return {
        "read, 100 lines": lambda: ws.read(SMALL).content,
        "read, a page of 50,000 lines": lambda: ws.read(LARGE, offset=30_000).content,
        "call of the tool read": lambda: tools.call("read", {"path": SMALL}).success,
        "edit, 100 lines": lambda: edit(SMALL),
        "edit, 50,000 lines": lambda: edit(LARGE),
        "write": write,
        "write and undo": undo,
        "ls": lambda: [entry.path for entry in ws.ls().entries],
        "glob **/*.py": lambda: ws.glob("**/*.py").total,
        "grep, literal": lambda: grep(LITERAL),
        "grep, literal, ignoring case": lambda: grep(LITERAL, ignore_case=True),
        "grep, literal prefix and classes": lambda: grep(REGEX),
        "grep, no literal": lambda: grep(r"[A-Z]{4,}_[A-Z]{4,}"),
        "grep, counts": lambda: grep("import", output_mode="count"),
        "grep, frequent literal": lambda: grep("self"),
        "grep, summary": lambda: grep("import", output_mode="summary", context=0),
        "grep, one file": lambda: grep("line 49999", path=LARGE),
    }


def serve(top: Path, clock: Callable[[], float], repeat: int) -> None:
    """Answer each name on a line of the input with the time and the answer of the call."""
    calls = operations(top)
    print(json.dumps(list(calls)), flush=True)
    for line in sys.stdin:
        call = calls[line.rstrip("\n")]
        began = clock()
        for _ in range(repeat):
            answer = call()
        seconds = (clock() - began) / repeat
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps([seconds, json.loads(json.dumps(answer, default=str)), peak]), flush=True)


class Version:
    """A process that answers with the package of one checkout, on a copy of the tree."""

    def __init__(self, checkout: Path, top: Path, clock: str, repeat: int) -> None:
        self.environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": ""}
        command = [sys.executable, __file__, "--serve", str(top), clock, str(repeat)]
        self.process = subprocess.Popen(
            command, env=self.environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.names = json.loads(self.process.stdout.readline())
        self.peak = 0

    def ask(self, name: str) -> tuple[float, object]:
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        seconds, answer, self.peak = json.loads(self.process.stdout.readline())
        return seconds, answer

    def run(self, code: str) -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], env=self.environment, check=True, cwd=os.sep)
        return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other")
    parser.add_argument("tree", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--cpu", action="store_const", const="process_time", default="perf_counter")
    options = parser.parse_args()
    wanted = [part for part in options.only.split(",") if part]
    with tempfile.TemporaryDirectory() as scratch:
        versions = []
        other = Path(options.other)
        if not other.is_dir():
            (other := Path(scratch) / "other").mkdir()
            unpack(options.other, other)
        for checkout in (other.resolve(), HERE):
            top = Path(scratch) / f"tree{len(versions)}"
            shutil.copytree(options.tree, top, symlinks=True)
            versions.append(Version(checkout, top, options.cpu, options.repeat))
        fresh = {
            "import": "import agentfs",
            "open": f"import agentfs; agentfs.Workspace({str(Path(scratch) / 'tree0')!r})",
        }
        print("| call | other, ms | this, ms | median of ratios | ratio of minima |\n" + "|---" * 5 + "|")
        for name in [*fresh, *versions[1].names]:
            if wanted and not any(re.search(part, name) for part in wanted):
                continue
            times: tuple[list[float], list[float]] = ([], [])
            for number in range(options.rounds + 1):
                if name in fresh:
                    pair = [version.run(fresh[name]) for version in versions]
                else:
                    answers = [version.ask(name) for version in versions]
                    assert answers[0][1] == answers[1][1], (name, answers)
                    pair = [seconds for seconds, _ in answers]
                for values, seconds in zip(times, pair, strict=True):
                    values.extend([seconds] * (number > 0))  # the first warms up
            ratio = statistics.median(new / old for old, new in zip(*times, strict=True))
            old, new = (statistics.median(values) * 1000 for values in times)
            least = min(times[1]) / min(times[0])
            print(f"| {name} | {old:.2f} | {new:.2f} | {ratio:.3f} | {least:.3f} |", flush=True)
        print(f"\nPeak of memory: {versions[0].peak >> 10} and {versions[1].peak >> 10} MiB.")
        for version in versions:
            version.process.stdin.close()
            version.process.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]), getattr(time, sys.argv[3]), int(sys.argv[4]))
    else:
        main()
