"""Run everything that a change must pass: lint, format, types and tests. Stops at the first that fails."""

import subprocess
import sys

STEPS = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
    ("pyright", "--pythonpath", sys.executable),  # else it knows the packages of another environment
    (
        "pytest",
        "-q",
        "--numprocesses=auto",
        "--dist=loadfile",
        "--no-loadscope-reorder",  # else the files with the fewest tests come last, and they are the slowest
        "--hypothesis-profile=repeatable",
    ),
)


def main() -> int:
    """Run each step with this interpreter's environment."""
    for module, *arguments in STEPS:
        print(f"== {module} {' '.join(arguments)}", flush=True)
        status = subprocess.run([sys.executable, "-m", module, *arguments], check=False).returncode  # noqa: S603 - our own steps
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
