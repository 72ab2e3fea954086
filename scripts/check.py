"""Run everything that a change must pass: lint, format and types at the same time, then the tests."""

import os
import subprocess
import sys

FIRST = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
    ("pyright", "--pythonpath", sys.executable),  # else it knows the packages of another environment
)
TESTS = (
    "pytest",
    "-q",
    f"--numprocesses={(os.cpu_count() or 2) * 2}",  # they also wait for disks and other processes
    "--dist=loadfile",
    "--no-loadscope-reorder",  # else the files with the fewest tests come last, and they are the slowest
    "--hypothesis-profile=repeatable",
)


def main() -> int:
    """Run each step with this interpreter's environment."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process would compile all that it imports
    running = [
        subprocess.Popen([sys.executable, "-m", *step], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # noqa: S603 - our own steps
        for step in FIRST
    ]
    failed = 0
    for step, process in zip(FIRST, running, strict=True):
        output, _ = process.communicate()
        print(f"== {' '.join(step)}\n{output.decode()}", end="", flush=True)
        failed = failed or process.returncode
    if failed:
        return failed
    print(f"== {' '.join(TESTS)}", flush=True)
    return subprocess.run([sys.executable, "-m", *TESTS], check=False).returncode  # noqa: S603 - our own steps


if __name__ == "__main__":
    sys.exit(main())
