"""Run the long campaigns of the tests (`-m long`), and write their results into docs/internals/long_runs.md.

    .venv/bin/python scripts/long_campaigns.py [TESTS…]

The page has a row for each test: its result and figures, its time, the date and the commit. The rows of other
tests stay. All campaigns take many hours, so the page is written after each file of tests.
"""

import datetime as dt
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "internals" / "long_runs.md"
HEAD = """\
# Long runs

The last run of each long campaign (`pytest -m long`), written by `scripts/long_campaigns.py`.
[Security campaigns](campaigns.md) describes the attacks among them.

| test | result | seconds | date | commit |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Row:
    """A line of the page."""

    test: str
    result: str
    seconds: float
    date: str
    commit: str

    def __str__(self) -> str:
        return f"| `{self.test}` | {self.result} | {self.seconds:.0f} | {self.date} | {self.commit} |"


def main(chosen: list[str]) -> int:
    """Run the campaigns, or those in the given files, and return 1 if one failed."""
    rows = read()
    commit = git("rev-parse", "--short=8", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    for file in files(chosen):
        for row in run(file, commit):
            print(row, flush=True)
            rows[row.test] = row
        write(rows)
    return any(row.result.startswith("failed") for row in rows.values())


def git(*arguments: str) -> str:
    """Return what git prints about this repository."""
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)  # noqa: S603, S607 - our own command
    return done.stdout.strip()


def pytest(*arguments: str) -> str:
    """Return what pytest prints about long campaigns."""
    command = [sys.executable, "-m", "pytest", "-m", "long", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False).stdout  # noqa: S603 - our own command


def files(chosen: list[str]) -> list[str]:
    """Return the files with long campaigns."""
    listed = pytest("--collect-only", "-q", *chosen)
    return sorted({line.partition("::")[0] for line in listed.splitlines() if "::" in line})


def run(file: str, commit: str) -> Iterator[Row]:
    """Run the campaigns of a file, and yield their rows."""
    today = dt.datetime.now(dt.UTC).date().isoformat()
    with tempfile.TemporaryDirectory() as directory:
        report = os.path.join(directory, "report.xml")
        pytest("-q", f"--junitxml={report}", file)
        for case in ET.parse(report).iter("testcase"):  # noqa: S314 - written by our own run
            name = f"{file}::{case.get('name')}".replace("|", "\\|")
            yield Row(name, result_of(case), float(case.get("time", 0)), today, commit)


def result_of(case: ET.Element) -> str:
    """Return the result of a test, with the figures that it recorded by `record_property`."""
    for kind in ("failure", "error"):
        if (problem := case.find(kind)) is not None:
            return f"failed: {first_line(problem)}"
    if (skipped := case.find("skipped")) is not None:
        return f"skipped: {first_line(skipped)}"
    figures = [f"{each.get('name')} {each.get('value')}" for each in case.iter("property")]
    return "; ".join(["passed", *figures])


def first_line(problem: ET.Element) -> str:
    """Return the first line of a message, fit for a cell of a table."""
    return problem.get("message", "").partition("\n")[0].replace("|", "\\|")[:200]


def read() -> dict[str, Row]:
    """Return the rows of the page by test."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    found = re.findall(r"^\| `(.*)` \| (.*) \| (\d+) \| ([\d-]+) \| (\w+\+?) \|$", text, re.MULTILINE)
    return {test: Row(test, result, float(seconds), *rest) for test, result, seconds, *rest in found}


def write(rows: dict[str, Row]) -> None:
    """Write the page."""
    PAGE.write_text(HEAD + "".join(f"{rows[test]}\n" for test in sorted(rows)), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
