"""The pictures of the documentation are made of the figures and texts of now."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

from agentfs.errors import AgentFSError
from scripts import charts, diagrams

ROOT = Path(__file__).parents[2]
IMAGES = sorted((ROOT / "docs" / "images").glob("*.svg"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SVG = "{http://www.w3.org/2000/svg}"
MADE = "docs/images is not what `scripts/charts.py` and `PYTHONPATH=. python scripts/diagrams.py` make now"


def elements(path: Path, name: str) -> list[ET.Element]:
    return list(ET.parse(path).iter(SVG + name))


def words(element: ET.Element) -> str:
    return "".join(element.itertext()).replace("\u00a0", " ")


def test_the_charts_and_diagrams_are_those_of_the_figures_and_texts_of_now():
    made = {f"{name}.svg": picture for name, picture in [*charts.draw().items(), *diagrams.draw().items()]}
    assert sorted(made) == [path.name for path in IMAGES], MADE
    assert [path.name for path in IMAGES if path.read_text(encoding="utf-8") != made[path.name]] == [], MADE


def test_the_recorded_session_is_that_of_readme():
    """test_docs.py runs README."""
    [path] = [path for path in IMAGES if path.stem == "session"]
    shown = "".join(words(element) for element in elements(path, "text"))
    assert re.sub(r"\s+", "", shown) == re.sub(r"\s+", "", diagrams.transcript())


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
