"""Searches of very large files give what `rg -a` gives, in bounded memory and time."""

import json
import os
import subprocess
import sys
from itertools import count

import pytest

from tests.conftest import needs, program

pytestmark = [
    pytest.mark.long,
    needs("rg"),
    pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/clear_refs is Linux's"),
]
RG = os.environ.get("AGENTFS_RG") or program("rg") or ""
MIB, GB = 1 << 20, 10**9
MOST = 96  # MiB above the start
LIMIT = 10_000
PATTERNS = ["needle", "took 33\\d ms", "é$", "^last", "nowhere"]
ROW = b"2026-11-23 host%d service[%d]: took %d ms for /items\n"
MEASURED = """
import json, sys, time
from pathlib import Path
from agentfs import Limits, Workspace
def most():
    return next(int(row.split()[1]) for row in open("/proc/self/status") if row.startswith("VmHWM"))
for pattern in sys.argv[2:]:
    with Workspace(sys.argv[1], limits=Limits(timeout=3600)) as ws:
        ws.grep(pattern, "small")
        Path("/proc/self/clear_refs").write_text("5")
        before, began, used = most(), time.monotonic(), time.process_time()
        result = ws.grep(pattern, "f", limit=LIMIT)
        seconds, used = time.monotonic() - began, time.process_time() - used
        lines = [match.line for match in result.matches]
        figures = {"pattern": pattern, "MiB": most() - before >> 10}
        figures |= {"seconds": round(seconds, 1), "processor": round(used, 1)}
        print(json.dumps([lines, result.total_matches, result.exact, figures]), flush=True)
""".replace("LIMIT", str(LIMIT))


def searched(top, patterns):
    """Return lines, total, exactness and figures of each search, made by a new process."""
    (top / "small").write_text("small\n")
    command = [sys.executable, "-c", MEASURED, str(top), *patterns]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [json.loads(row) for row in done.stdout.splitlines()]
    for *_, figures in found:
        print(top.name, (top / "f").stat().st_size, figures)  # noqa: T201 - the figures, with -s
        assert figures["MiB"] <= MOST
    return found


def matched_lines(path, pattern):
    """Return the line number of each match that `rg -a` finds."""
    command = [RG, "-a", "--no-config", "--no-filename", "-n", "-o", pattern, path]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    return [int(row.partition(":")[0]) for row in ran.stdout.splitlines()]


def write_log(file, size):
    """Write a log; one line in 300,000 has a needle."""
    file.write(b"first line\n" * 2000)
    numbers = count()
    while file.tell() < size:
        first = next(numbers) * 10_000
        file.write(b"".join(ROW % (n % 97, n, n % 331) for n in range(first, first + 10_000)))
        if first % 300_000 == 0:
            file.write("a needle é\n".encode())
    file.write(b"\nlast needle\n")


def write_line(file):
    """Write a line of 300 MB with three needles."""
    file.write(b"first line\n" * 2000)
    for number in range(300):
        file.write(b"needle" * (number % 100 == 99) + b"x" * MIB)
    file.write(b"\nlast needle\n")


def write_sparse(file, size):
    """Write lines with needles between holes of 1 GB."""
    file.write(b"first line\n" * 2000)
    for start in range(GB, size, GB):
        file.seek(start)
        file.write("\na needle é\ntook 330 ms\n".encode())
    file.seek(size)
    file.write(b"\nlast needle\n")


KINDS = {
    "0.2-GB": lambda file: write_log(file, GB // 5),
    "2-GB": lambda file: write_log(file, 2 * GB),
    "2-GB-sparse": lambda file: write_sparse(file, 2 * GB),
    "20-GB-sparse": lambda file: write_sparse(file, 20 * GB),
    "300-MB-line": write_line,
}


@pytest.mark.parametrize("kind", KINDS)
def test_large_files_give_what_ripgrep_gives(tmp_path, kind):
    top = tmp_path / kind
    top.mkdir()
    with open(top / "f", "wb") as file:
        KINDS[kind](file)
    try:
        for pattern, (lines, total, exact, _) in zip(PATTERNS, searched(top, PATTERNS), strict=True):
            expected = matched_lines(top / "f", pattern)
            # A line longer than a block counts once, and then the total is not exact.
            is_long = kind == "300-MB-line"
            assert total == len(set(expected) if is_long else expected)
            assert exact is not (is_long and pattern == "needle")
            assert lines == list(dict.fromkeys(expected))[:LIMIT]
    finally:
        (top / "f").unlink()
