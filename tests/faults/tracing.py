"""Run a program under strace, which makes its system calls fail or kills it at one."""

import gc
import os
import re
import signal
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from tests.conftest import program


def can_trace() -> bool:
    command = ["strace", "-qq", "-o", os.devnull, "true"]
    return program("strace") is not None and not subprocess.run(command, capture_output=True).returncode  # noqa: PLW1510 - the status is the answer


needs_tracing = pytest.mark.skipif(not can_trace(), reason="strace is not installed, or may not trace here")


def run_traced(
    program: str, arguments: Sequence[object], log: Path, *inject: str, follow: bool = True
) -> str:
    """Run the text of a program that says "ready", waits for a line, says what came of it, and waits.

    Its calls after "ready" are written to `log`. strace injects faults such as `write:error=ENOSPC:when=2`.
    With `follow`, it counts the calls of each thread and process apart. Return what it said, or "killed".
    """
    stdin, tell = os.pipe()
    answers, stdout = os.pipe()
    child = os.fork()
    if child == 0:
        _run(program, arguments, stdin, stdout)
    os.close(stdin)
    os.close(stdout)
    with open(answers, encoding="utf-8") as answer, open(tell, "w", encoding="utf-8") as told:
        assert answer.readline() == "ready\n"
        options = [part for each in inject for part in ("-e", f"inject={each}")]
        followed = ["-f"] if follow else []
        command = ["strace", *followed, "-o", str(log), *options, "-p", str(child)]
        tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert tracer.stderr is not None
        assert "attached" in tracer.stderr.readline()
        told.write("go\n")
        told.flush()
        said = answer.readline().strip() or "killed"
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        tracer.communicate()
    return said


def _run(program: str, arguments: Sequence[object], stdin: int, stdout: int) -> None:
    """Run the text of a program as `python -c` does."""
    gc.freeze()  # no finalizer of the tests makes a call
    try:
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        sys.stdin, sys.stdout = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8")  # noqa: SIM115 - the process is killed
        sys.argv = ["-c", *map(str, arguments)]
        exec(program, {"__name__": "__main__"})
    except BaseException:  # noqa: BLE001 - it is shown, as Python shows it
        traceback.print_exc()
    finally:
        os._exit(1)


MEMORY = {"brk", "mmap", "munmap", "mremap", "madvise", "futex"}


def calls_in(log: Path) -> list[str]:
    """Return the calls of a traced program, in order, after the reply to `go`, which is not always traced."""
    *_, calls = log.read_text().split('read(0, "go')
    return re.findall(r"^(?:\d+ +)?(\w+)\(", calls, re.MULTILINE)


def numbered(names: Iterable[str]) -> list[tuple[str, int]]:
    """Return each call with its number among those of its name, except calls for memory."""
    seen: Counter[str] = Counter({"read": 1})
    found = []
    for name in names:
        seen[name] += 1
        found.append((name, seen[name]))
    return [each for each in found if each[0] not in MEMORY]
