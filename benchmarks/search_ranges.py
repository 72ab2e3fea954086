"""Ratios of several runs of `search.py`, from the lowest to the highest, as one run alone says little.

    python benchmarks/search_ranges.py TREE RUN.json RUN.json ...

Each RUN.json is an OUT.json of its own. The first table has for each pattern how long a cold search takes
beside rg, and how many times as fast a watched one is; the second the median over the patterns of each run.
"""

import json
import statistics
import sys
from pathlib import Path

COLD, WATCHED = "agentfs", "agentfs, watched"
PAIRS = [(COLD, "rg -j1"), (COLD, "rg"), ("rg", WATCHED), (COLD, WATCHED)]
HEAD = ["cold / rg -j1", "cold / rg", "rg / watched", "cold / watched"]


def ratio(row: dict, one: str, other: str) -> float:
    """Return the ratio of the medians of two, whose totals must be those of rg."""
    assert row["same"][one], (row["name"], one)
    assert row["same"][other], (row["name"], other)
    times = [statistics.median(row["who"][who]["ms"]) for who in (one, other)]
    return times[0] / times[1]


def span(values: list[float]) -> str:
    low, high = (f"{value:.2f}" if value < 10 else f"{value:.0f}" for value in (min(values), max(values)))
    return low if low == high else f"{low}–{high}"


def main() -> None:
    tree, *files = sys.argv[1:]
    runs = [json.loads(Path(file).read_text())[tree] for file in files]
    for run in runs:
        print(f"- {run['machine']}; {run['rounds']} rounds")
    print("\n| pattern | lines | " + " | ".join(HEAD) + " |\n|---|---|" + "---|" * len(HEAD))
    for each in runs[0]["rows"]:
        rows = [row for run in runs for row in run["rows"] if row["name"] == each["name"]]
        cells = [span([ratio(row, *pair) for row in rows]) for pair in PAIRS]
        print(f"| {each['name']} | {each['who']['rg']['lines']:,} | " + " | ".join(cells) + " |")
    for name, chosen in (
        ("median, with a literal", lambda row: row["literal"] and "i" not in row["options"]),
        ("median, ignoring case", lambda row: "i" in row["options"]),
    ):
        parts = [[row for row in run["rows"] if chosen(row)] for run in runs]
        medians = [[statistics.median(ratio(row, *pair) for row in part) for part in parts] for pair in PAIRS]
        cells = [span(each) for each in medians]
        print(f"| **{name}** | | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
