"""Run everything that a change must pass, side by side: lint, format, types, and the first tier of the tests.

With options of pytest, run only the tests that they select:

    .venv/bin/python scripts/check.py -m full
    .venv/bin/python scripts/check.py tests/editing

Tests that fail are run once more, one after the other: the machine may have been too busy for one that waits
for other processes. What fails then has failed; the first output names the others.
"""

import os
import subprocess
import sys
from collections.abc import Sequence

CHECKS = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
    ("pyright", "--pythonpath", sys.executable),  # else it knows the packages of another environment
)
SOME_FAILED = 1  # the exit status of pytest if tests failed, and it ran to its end
TESTS = (
    "pytest",
    "-q",
    f"--numprocesses={(os.cpu_count() or 2) + 1}",  # they also wait for disks and other processes
    "--dist=loadfile",
    "--no-loadscope-reorder",  # else the files with the fewest tests come last, and they are the slowest
    "--hypothesis-profile=repeatable",
)


def main() -> int:
    """Run the steps with this interpreter's environment, and return 0 if all succeed."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process would compile all that it imports
    options = sys.argv[1:]
    if options:
        return run_tests(options)
    checks = [start(*step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for step in CHECKS]
    failed = run_tests([])
    for step, check in zip(CHECKS, checks, strict=True):
        output, _ = check.communicate()
        print(f"== {' '.join(step)}\n{output.decode()}", end="", flush=True)
        failed = failed or check.returncode
    return failed


def run_tests(options: Sequence[str]) -> int:
    """Run the tests, and those that fail once more alone; return 0 if all have passed then."""
    status = start(*TESTS, *options).wait()
    if status != SOME_FAILED:
        return status
    print("== the tests that failed, alone", flush=True)
    return start("pytest", "-q", "--last-failed", "--last-failed-no-failures=none", *options).wait()


def start(*step: str, **streams: int) -> subprocess.Popen[bytes]:
    """Start a module of this environment."""
    return subprocess.Popen([sys.executable, "-m", *step], **streams)  # noqa: S603 - our own steps


if __name__ == "__main__":
    sys.exit(main())
