"""Draw the diagrams of the documentation from text, and the session of README as a picture.

    PYTHONPATH=. python scripts/diagrams.py

reads scripts/diagrams/*.txt and writes docs/images/*.svg. A diagram is a title, a description, then boxes
(`[id] column row text | second line`; `(id)` for a refusal, `<id>` for the result) and
arrows (`id -> id : label`).
"""

import re
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from scripts.charts import IMAGES, LINE, MARGIN, ROOT, rect, svg, text
from scripts.pages import blocks_of

SOURCES = ROOT / "scripts" / "diagrams"
GAP = (58, 24)  # between columns, and between rows
BOX = re.compile(r"([\[(<])(\w+)[\])>] (\d+) (\d+) (.+)")
ARROW = re.compile(r"(\w+) -> (\w+)(?: : (.+))?")
KINDS = {"[": "peer", "(": "bad", "<": "ours"}
COLUMNS = 64
MONOSPACE = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SGR = {"1": "bold", "2": "muted", "31": "bad", "32": "good", "36": "second"}


class Box(NamedTuple):
    """A box: where it is, and its lines of text."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    lines: list[str]

    @property
    def middle(self) -> tuple[float, float]:
        """The place between its sides."""
        return self.x + self.width / 2, self.y + self.height / 2


def diagram(source: str) -> str:
    """Return the picture of a diagram."""
    title, description, *rest = source.strip().split("\n")
    found = [match for line in rest if (match := BOX.fullmatch(line))]
    cells = {match[2]: (match[1], int(match[3]), int(match[4]), match[5].split(" | ")) for match in found}
    widths = [max(width_of(cell[3]) for cell in cells.values() if cell[1] == column) for column in (0, 1)]
    rows = max(cell[2] for cell in cells.values()) + 1
    height = 2 * LINE + 14
    top = MARGIN + 2 * LINE
    boxes = {
        name: Box(
            KINDS[kind],
            MARGIN + column * (widths[0] + GAP[0]),
            top + row * (height + GAP[1]),
            widths[column],
            height,
            lines,
        )
        for name, (kind, column, row, lines) in cells.items()
    }
    body = [text(MARGIN, 36, title.removeprefix("# "), font_size=17, font_weight=600)]
    body.append(
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path class="muted" d="M0 0L8 4L0 8z"/></marker></defs>'
    )
    for line in rest:
        if match := ARROW.fullmatch(line):
            body += arrow(boxes[match[1]], boxes[match[2]], match[3] or "")
    for box in boxes.values():
        body.append(rect("box", box.x, box.y, box.width, box.height, 5))
        body.append(rect(box.kind, box.x, box.y, 5, box.height, 2))
        first = box.middle[1] + 5 - LINE / 2 * (len(box.lines) - 1)
        for number, said in enumerate(box.lines):
            kind = "muted" if number else "text"
            body.append(
                text(box.x + 16, first + number * LINE, said, kind, font_weight=400 if number else 600)
            )
    width = round(2 * MARGIN + sum(widths) + GAP[0])
    return svg(title.removeprefix("# "), description, top + rows * (height + GAP[1]), body, width)


def width_of(lines: list[str]) -> float:
    """Return the width of a box whose first line is bold, in the widest of the usual fonts."""
    first, *others = lines
    return 30 + max(len(first) * 8.8, *(len(line) * 7.8 for line in others), 0)


def arrow(start: Box, end: Box, label: str) -> list[str]:
    """Return an arrow: down within a column, across within a row, else across and then down or up."""
    if start.x == end.x:
        (x, down) = (start.x + 60, start.y < end.y)
        points = [
            (x, start.y + start.height if down else start.y),
            (x, end.y if down else end.y + end.height),
        ]
    elif start.y == end.y:
        right = start.x < end.x
        y = start.middle[1]
        points = [
            (start.x + start.width if right else start.x, y),
            (end.x if right else end.x + end.width, y),
        ]
    else:
        right = start.x < end.x
        y = start.middle[1] + 12
        turn = start.x - GAP[0] / 2 if not right else start.x + start.width + GAP[0] / 2
        goal = end.middle[1]
        side = end.x if right else end.x + end.width
        points = [(start.x + start.width if right else start.x, y), (turn, y), (turn, goal), (side, goal)]
    path = "M" + "L".join(f"{x:.0f} {y:.0f}" for x, y in points)
    drawn = [f'<path class="line" d="{path}" stroke-width="1.5" marker-end="url(#head)"/>']
    if label:
        (x, y), (other, _) = points[:2]
        drawn.append(text((x + other) / 2, y - 7, label, "muted", font_size=12, text_anchor="middle"))
    return drawn


def transcript() -> str:
    """Return what the session of README prints; tests/test_docs.py runs it."""
    [printed] = [block.content for block in blocks_of(ROOT / "README.md") if block.content.startswith(">>> ")]
    return printed.strip()


def painted(lines: list[str]) -> Iterator[str]:
    """Yield lines with the colours of a diff."""
    codes = {"@": "36", "+": "32", "-": "31"}
    in_header = False
    for line in lines:
        in_header = line.startswith("diff --git ") or (in_header and not line.startswith("@@ "))
        code = "1" if in_header else codes.get(line[:1])
        yield f"\033[{code}m{line}\033[0m" if code and line else line


def recording(printed: str) -> str:
    """Return a picture of a terminal in which the session has run."""
    lines = []
    for block in re.split(r"\n(?=>>> )", printed):
        for line in painted(block.split("\n")):
            is_call = line.startswith(">>> ")
            parts = textwrap.wrap(line, COLUMNS, drop_whitespace=False, subsequent_indent="    ") or [""]
            lines += [f"\033[36m{part}\033[0m" for part in parts] if is_call else fold(line)
        lines.append("")
    body = [f'<g font-family="{MONOSPACE}" font-size="13">']
    y = MARGIN + 4
    for line in lines[:-1]:
        y += 17
        body.append(f'<text class="text" x="{MARGIN}" y="{y}">{spans(line)}</text>')
    body.append("</g>")
    description = (
        "A terminal: a mistaken edit, the error with the right line, the corrected edit with its diff, a "
        "command that changes the file, and undo."
    )
    return svg("A mistake, its correction, a command and undo", description, y + MARGIN, body, 560)


def fold(line: str) -> list[str]:
    """Return the parts of a line that is too long for the picture; its colour is that of each part."""
    code = match[1] if (match := re.match(r"\x1b\[([\d;]+)m", line)) and line.endswith("\033[0m") else ""
    plain = re.sub(r"\x1b\[[\d;]*m", "", line)
    if len(plain) <= COLUMNS:
        return [line]
    parts = textwrap.wrap(plain, COLUMNS, drop_whitespace=False, subsequent_indent="    ")
    return [f"\033[{code}m{part}\033[0m" if code else part for part in parts]


def spans(line: str) -> str:
    """Return a line with the colour codes of a terminal as elements of SVG."""
    made, code = "", ""
    for piece in re.split(r"(\x1b\[[\d;]*m)", line):
        if match := re.fullmatch(r"\x1b\[([\d;]*)m", piece):
            code = match[1]
        elif piece:
            shown = piece.replace("&", "&amp;").replace("<", "&lt;").replace(" ", "\u00a0")
            name = SGR.get(code, "")
            style = 'font-weight="700"' if name == "bold" else f'class="{name}"'
            made += f"<tspan {style}>{shown}</tspan>" if name else shown
    return made


def draw() -> dict[str, str]:
    """Return all pictures by name."""
    made = {path.stem: diagram(path.read_text()) for path in sorted(SOURCES.glob("*.txt"))}
    return {f"how-{name}": picture for name, picture in made.items()} | {"session": recording(transcript())}


if __name__ == "__main__":
    for name, picture in draw().items():
        (IMAGES / f"{name}.svg").write_text(picture)
        print(IMAGES / f"{name}.svg")
