"""The pictures of the documentation: the figures that were measured, readable by everyone."""

import json
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from agentfs.errors import AgentFSError
from benchmarks import charts
from scripts import diagrams
from scripts.review_picture import EDITS, SCHEMES, WIDTH
from scripts.review_picture import page as review_page

ROOT = Path(__file__).parents[2]
IMAGES = sorted((ROOT / "docs" / "images").glob("*.svg"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SVG = "{http://www.w3.org/2000/svg}"
MADE = "docs/images is not what `benchmarks/charts.py` and `PYTHONPATH=. python scripts/diagrams.py` make now"


def elements(path: Path, name: str) -> list[ET.Element]:
    return list(ET.parse(path).iter(SVG + name))


def words(element: ET.Element) -> str:
    return "".join(element.itertext()).replace("\u00a0", " ")


def test_the_charts_and_diagrams_are_those_of_the_figures_and_texts_of_now():
    made = {f"{name}.svg": picture for name, picture in [*charts.draw().items(), *diagrams.draw().items()]}
    assert sorted(made) == [path.name for path in IMAGES], MADE
    assert [path.name for path in IMAGES if path.read_text(encoding="utf-8") != made[path.name]] == [], MADE


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_picture_of_the_review_page_is_made_of_a_review_and_has_its_page(scheme):
    assert all(new in review_page() for _, _, new in EDITS)
    header = (ROOT / "docs" / "images" / f"review-{scheme}.png").read_bytes()[:24]
    assert (header[:8], int.from_bytes(header[16:20])) == (b"\x89PNG\r\n\x1a\n", WIDTH)
    page = (ROOT / "docs" / "how-to" / "review.md").read_text(encoding="utf-8")
    assert f"(../images/review-{scheme}.png#only-{scheme})" in page


def test_the_recorded_session_is_that_of_readme():
    """test_docs.py runs README."""
    [path] = [path for path in IMAGES if path.stem == "session"]
    shown = "".join(words(element) for element in elements(path, "text"))
    assert re.sub(r"\s+", "", shown) == re.sub(r"\s+", "", diagrams.transcript())


@pytest.mark.parametrize("name", sorted(charts.draw()))
def test_a_chart_shows_the_figures_of_its_benchmark(name):
    result = json.loads((charts.RESULTS / f"{charts.CHARTS[name][0]}.json").read_text())
    quantity = next(key for key in ("ms", "tokens", "escapes") if key in result["rows"][0])
    measured = {row["label"]: row[quantity] for row in result["rows"]}
    if quantity == "tokens":
        names = next(iter(measured.values()))
        total = {who: sum(row[who] for row in measured.values()) for who in names}
        measured = {"all tasks together": total}
    path = ROOT / "docs" / "images" / f"{name}.svg"
    title, *texts = elements(path, "text")
    _, *bars = elements(path, "rect")
    labels = {words(each): label for each in texts if (label := words(each)) in measured}
    group = next(iter(labels.values())) if labels else next(iter(measured))
    lengths: list[tuple[str, float, float]] = []
    for text in texts:
        if words(text) in labels:
            group = words(text)
        elif text.find(f"{SVG}tspan") is not None:
            who, figure = text.text.strip(), float(words(text[0]).split()[0].replace(",", ""))
            value = measured[group].get(who, measured[group].get(who.removeprefix("agentfs, ")))
            assert abs(value - figure) <= (0.5 if value >= 10 else 0.05), (group, who)
            lengths.append((group, value, float(bars[len(lengths)].get("width"))))
    assert len(lengths) == len(bars) > 1
    assert result["date"] in "".join(map(words, texts))
    for (one, less, short), (other, more, long) in pairwise(sorted(lengths)):
        if one == other and short > 2:
            assert long / short == pytest.approx(more / less, rel=0.02)
    assert words(title)


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.stem)
def test_a_picture_can_be_read_in_light_and_dark(path):
    """The contrasts of WCAG 2: 4.5 for text, 3 for what else must be told apart from the background."""
    light, dark = path.read_text(encoding="utf-8").partition("@media(prefers-color-scheme:dark)")[::2]
    for style in (light, dark.partition("</style>")[0]):
        colors = dict(re.findall(r"\.(\w+)\{fill:(#[0-9a-f]{6})\}", style))
        colors["line"] = re.findall(r"\.line\{[^}]*stroke:(#[0-9a-f]{6})", style)[0]
        for name in ("text", "tspan"):
            for kind in {each.get("class") or "text" for each in elements(path, name)}:
                assert min(contrast(colors[kind], colors[of]) for of in ("page", "box")) >= 4.5, kind
        for kind in {each.get("class") for each in elements(path, "rect")} - {"page", "box"} | {"line"}:
            assert contrast(colors[kind], colors["page"]) >= 3, kind


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.stem)
def test_a_picture_has_a_title_a_description_and_no_text_over_its_edge(path):
    root = ET.parse(path).getroot()
    assert root.get("role") == "img"
    assert all(len(words(root.find(SVG + name)).split()) >= 3 for name in ("title", "desc"))
    width = float(root.get("width"))
    for text in elements(path, "text"):
        size = float(text.get("font-size") or 13)
        end = float(text.get("x")) + len(words(text)) * size * 0.6
        assert text.get("text-anchor") == "middle" or end <= width, words(text)


def test_the_codes_in_the_diagrams_are_those_of_errors():
    codes, todo = set(), [AgentFSError]
    while todo:
        cls = todo.pop()
        todo += cls.__subclasses__()
        codes.add(cls.code)
    named: list[str] = []
    for source in diagrams.SOURCES.glob("*.txt"):
        for box in re.findall(r"^\(\w+\) \d+ \d+ (.+)$", source.read_text(), re.MULTILINE):
            named += re.findall(r"\b[a-z]+_[a-z_]+\b", box)
    assert len(named) > 3
    assert set(named) <= codes


def test_each_picture_is_on_a_page_and_has_words_in_its_place():
    shown: set[str] = set()
    for page in PAGES:
        for words_, target in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert len(words_.split()) >= 3, f"{page.name}: {target}"
            shown.add(target.rpartition("/")[2])
    assert {path.name for path in IMAGES} - shown == set()
