"""Check all cells of tests/test_matrix.py whose way is `connect`, and go on where an earlier run stopped.

    .venv/bin/python -m scripts.remote_column FILE [SECONDS]

FILE gets a line of JSON for each checked cell: its faults that only `connect` has. The order is random but
always the same, so that the cells of a part are a sample of all 240,000, which take hours.
"""

import json
import random
import sys
import time
from pathlib import Path

from tests.pairs import Cell, every_cell
from tests.test_matrix import DIMENSIONS, faults_of_a_way_alone, takes


def main(path: Path, seconds: float) -> int:
    """Check cells until the time is up; print the figures, and return 1 if any cell has a fault."""
    cells = column()
    done = path.read_text().count("\n") if path.exists() else 0
    end = time.monotonic() + seconds
    with path.open("a") as file:
        for cell in cells[done:]:
            if time.monotonic() > end:
                break
            file.write(json.dumps(faults_of_a_way_alone(cell)) + "\n")
            file.flush()
    found = [fault for line in path.read_text().splitlines() for fault in json.loads(line)]
    checked = path.read_text().count("\n")
    sys.stdout.write("\n".join([*found, f"{checked} of {len(cells)} cells, {len(found)} faults\n"]))
    return 1 if found else 0


def column() -> list[Cell]:
    """Return all cells whose way is `connect`, in an order that is random but always the same."""
    cells = [*every_cell(DIMENSIONS, lambda method: {**takes(method), "way": ("connect",)})]
    random.Random(7).shuffle(cells)  # noqa: S311 - a sample needs no secret
    return cells


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else float("inf")))
