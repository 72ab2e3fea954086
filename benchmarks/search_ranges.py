"""Ratios of several runs of `search.py`, from the lowest to the highest, as one run alone says little.

    python benchmarks/search_ranges.py TREE RUN.json RUN.json ...

Each RUN.json is an OUT.json of its own. The table has for each pattern how long a cold search takes beside
rg, by the clock and by processor time, and how many times as fast a watched one is, if the runs have that.
Its last rows have the median over the patterns of each run.
"""

import json
import statistics
import sys
from pathlib import Path

COLD, WATCHED = "agentfs", "agentfs, watched"
COLUMNS = {
    "cold / rg -j1": (COLD, "rg -j1", "ms"),
    "the same, processor time": (COLD, "rg -j1", "cpu"),
    "cold / rg": (COLD, "rg", "ms"),
    "rg / watched": ("rg", WATCHED, "ms"),
    "cold / watched": (COLD, WATCHED, "ms"),
}


def ratio(row: dict, one: str, other: str, what: str) -> float:
    """Return the ratio of the medians of two, whose totals must be those of rg."""
    assert row["same"][one], (row["name"], one)
    assert row["same"][other], (row["name"], other)
    times = [statistics.median(row["who"][who][what]) for who in (one, other)]
    return times[0] / times[1]


def span(values: list[float]) -> str:
    low, high = (f"{value:.2f}" if value < 10 else f"{value:.0f}" for value in (min(values), max(values)))
    return low if low == high else f"{low}–{high}"


def main() -> None:
    tree, *files = sys.argv[1:]
    runs = [json.loads(Path(file).read_text())[tree] for file in files]
    for run in runs:
        print(f"- {run['machine']}; {run['rounds']} rounds")
    everyone = runs[0]["rows"][0]["who"]
    columns = {head: each for head, each in COLUMNS.items() if {*each[:2]} <= everyone.keys()}
    print("\n| pattern | lines | " + " | ".join(columns) + " |\n|---|---|" + "---|" * len(columns))
    for each in runs[0]["rows"]:
        rows = [row for run in runs for row in run["rows"] if row["name"] == each["name"]]
        cells = [span([ratio(row, *column) for row in rows]) for column in columns.values()]
        print(f"| {each['name']} | {each['who']['rg']['lines']:,} | " + " | ".join(cells) + " |")
    for name, chosen in (
        ("median, with a literal", lambda row: row["literal"] and "i" not in row["options"]),
        ("median, ignoring case", lambda row: "i" in row["options"]),
    ):
        parts = [[row for row in run["rows"] if chosen(row)] for run in runs]
        medians = [
            [statistics.median(ratio(row, *column) for row in part) for part in parts]
            for column in columns.values()
        ]
        cells = [span(each) for each in medians]
        print(f"| **{name}** | | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
