"""Draw the charts of the documentation from the figures of the benchmarks.

    python scripts/charts.py

It reads benchmarks/results/*.json and writes docs/images/*.svg. The frame of a picture, with its colours, is
here; scripts/diagrams.py draws with it as well.
"""

import json
import textwrap
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
IMAGES = ROOT / "docs" / "images"

# For each class of element its colour in light and in dark; `page` is the background.
COLORS = {
    "page": ("#ffffff", "#161b22"),
    "box": ("#f3f5f7", "#232a33"),
    "text": ("#1f2328", "#e6edf3"),
    "muted": ("#57606a", "#a3adb8"),
    "ours": ("#0b7a75", "#3fc4b9"),
    "second": ("#0969da", "#58a6ff"),
    "peer": ("#7d8690", "#768390"),
    "bad": ("#b42318", "#ff8278"),
    "good": ("#116329", "#56d364"),
}
FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
WIDTH, MARGIN, LINE = 500, 18, 19
OURS = {"agentfs", "agentfs, openat2", "agentfs, walk", "connect"}
SECOND = {"watched", "without numbers", "local"}  # agentfs too, set up differently
SHOWN = {name: f"agentfs, {name}" for name in (*SECOND, "connect")}


def svg(title: str, description: str, height: float, body: Iterable[str], width: int = WIDTH) -> str:
    """Return a picture; its title and description are for those who cannot see it."""
    light, dark = (
        "".join(f".{name}{{fill:{pair[mode]}}}" for name, pair in COLORS.items()) for mode in (0, 1)
    )
    size = f'viewBox="0 0 {width} {height:.0f}" width="{width}" height="{height:.0f}"'
    role = f'role="img" aria-labelledby="title description" font-family="{FONT}" font-size="14"'
    dark += f".line{{stroke:{COLORS['muted'][1]}}}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {role}>',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="description">{escape(description)}</desc>',
        f"<style>{light}.line{{fill:none;stroke:{COLORS['muted'][0]}}}",
        f"@media(prefers-color-scheme:dark){{{dark}}}</style>",
        '<rect class="page" width="100%" height="100%" rx="8"/>',
        *body,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def text(x: float, y: float, said: str, kind: str = "text", **attributes: object) -> str:
    """Return a line of text."""
    given = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}"{given}>{escape(said, quote=False)}</text>'


def rect(kind: str, x: float, y: float, width: float, height: float, radius: int) -> str:
    """Return a rectangle."""
    place = f'x="{x:.0f}" y="{y:.0f}" width="{width:.1f}" height="{height:.0f}"'
    return f'<rect class="{kind}" {place} rx="{radius}"/>'


def number(value: float) -> str:
    """Return a figure with as many digits as can be told from one run to the next."""
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def bars(title: str, note: str, unit: str, groups: dict[str, dict[str, float]]) -> str:
    """Return a chart with a bar for each name of each group, its name and figure behind it."""
    largest = max(value for group in groups.values() for value in group.values()) or 1
    widest = max(
        len(SHOWN.get(name, name)) + len(number(value))
        for group in groups.values()
        for name, value in group.items()
    )
    room = WIDTH - 2 * MARGIN - 7.2 * (widest + len(unit) + 3)
    y = 34.0
    body = [text(MARGIN, y, title, font_size=17, font_weight=600)]
    for line in textwrap.wrap(note, 58):
        y += LINE
        body.append(text(MARGIN, y, line, "muted", font_size=13))
    for label, group in groups.items():
        y += 14
        if len(groups) > 1:
            y += LINE
            body.append(text(MARGIN, y, label, font_weight=600))
        for name, value in group.items():
            kind = "ours" if name in OURS else "second" if name in SECOND else "peer"
            length = max(value / largest * room, 1.5)
            y += LINE
            body.append(rect(kind, MARGIN, y - 12, length, 14, 2))
            figure = f'<tspan class="muted" font-weight="400">{number(value)} {unit}</tspan>'
            weight = 400 if kind == "peer" else 600
            line = text(MARGIN + length + 7, y, f"{SHOWN.get(name, name)} ", font_size=13, font_weight=weight)
            body.append(line.replace("</text>", f"{figure}</text>"))
    figures = "; ".join(
        f"{label}: " + ", ".join(f"{name} {number(value)}" for name, value in group.items())
        for label, group in groups.items()
    )
    return svg(title, f"{note} {unit}: {figures}", y + 24, body)


def rows_of(name: str, quantity: str = "ms") -> tuple[dict[str, dict[str, float]], str]:
    """Return the rows of a result by label, and when they were measured."""
    result = json.loads((RESULTS / f"{name}.json").read_text())
    rows = {
        row["label"]: {who: value for who, value in row[quantity].items() if value is not None}
        for row in result["rows"]
    }
    return rows, result["date"]


def tokens() -> str:
    """Return the chart of what tasks cost."""
    rows, date = rows_of("tokens", "tokens")
    total = {name: sum(row[name] for row in rows.values()) for name in next(iter(rows.values()))}
    groups = {"all tasks together": total}
    counted = json.loads((RESULTS / "tokens.json").read_text())["tree"]
    note = (
        f"tokens for the same content in formats rebuilt from the peers' sources, by {counted}; "
        f"reading included; {date}"
    )
    return bars("What the same tasks cost", note, "tokens", groups)


def races() -> str:
    """Return the chart of reads during swaps."""
    rows, date = rows_of("races", "escapes")
    [calls] = (row["calls"] for row in json.loads((RESULTS / "races.json").read_text())["rows"])
    note = f"of {calls:,} reads each, while a directory is swapped for a link that leads out; {date}"
    return bars("Reads that showed a file from outside", note, "escapes", rows)


CHARTS: dict[str, tuple[str, Callable[[], str]]] = {"tokens": ("tokens", tokens), "races": ("races", races)}


def draw() -> dict[str, str]:
    """Return each chart whose figures there are, by its name."""
    return {name: make() for name, (result, make) in CHARTS.items() if (RESULTS / f"{result}.json").exists()}


def main() -> None:
    """Write all charts."""
    for name, picture in draw().items():
        (IMAGES / f"{name}.svg").write_text(picture)
        print(IMAGES / f"{name}.svg")


if __name__ == "__main__":
    main()
