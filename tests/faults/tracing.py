"""Run a program under strace, which makes its system calls fail or kills it at one."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import program


def can_trace() -> bool:
    if program("strace") is None:
        return False
    return (
        subprocess.run(
            ["strace", "-qq", "-o", os.devnull, "true"], check=False, capture_output=True
        ).returncode
        == 0
    )


needs_tracing = pytest.mark.skipif(
    not can_trace(),
    reason="strace is not installed" if program("strace") is None else "strace may not trace here",
)


def run_traced(program: str, arguments: Sequence[object], log: Path, *inject: str) -> str:
    """Run a program that says "ready", waits for a line, says what came of it, and waits to be ended.

    Args:
        program: Its text.
        arguments: What it is given.
        log: Where its calls after "ready" are written.
        *inject: What strace is to inject, such as `write:error=ENOSPC:when=2`.

    Returns:
        What it said, or "killed".
    """
    command = [sys.executable, "-c", program, *map(str, arguments)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    options = [part for each in inject for part in ("-e", f"inject={each}")]
    tracer = subprocess.Popen(
        ["strace", "-f", "-o", str(log), *options, "-p", str(child.pid)], stderr=subprocess.PIPE, text=True
    )
    assert tracer.stderr is not None
    assert "attached" in tracer.stderr.readline()
    child.stdin.write("go\n")
    child.stdin.flush()
    said = child.stdout.readline().strip() or "killed"
    child.kill()
    child.communicate()
    tracer.communicate()
    return said


def numbered(names: list[str]) -> list[tuple[str, int]]:
    seen: Counter[str] = Counter({"read": 1})
    found = []
    for name in names:
        seen[name] += 1
        found.append((name, seen[name]))
    return found
