"""Write the figures of a benchmark as JSON; those in benchmarks/results are drawn at once."""

import datetime as dt
import json
from pathlib import Path

import charts


def save(file: str, tree: str, rows: list[dict]) -> None:
    """Write rows; each has a label and, by name of who was measured, `ms` or another quantity."""
    date = dt.datetime.now(dt.UTC).date().isoformat()
    text = json.dumps({"tree": tree, "date": date, "rows": rows}, indent=1)
    Path(file).write_text(f"{text}\n")
    if Path(file).resolve().parent == charts.RESULTS:
        charts.main()
