"""The pictures of the documentation are made of the figures and texts of now."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

from scripts import charts, diagrams

ROOT = Path(__file__).parents[2]
IMAGES = sorted((ROOT / "docs" / "images").glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"
MADE = "docs/images is not what `scripts/charts.py` and `PYTHONPATH=. python scripts/diagrams.py` make now"


def test_the_charts_and_diagrams_are_those_of_the_figures_and_texts_of_now():
    made = {f"{name}.svg": picture for name, picture in [*charts.draw().items(), *diagrams.draw().items()]}
    assert sorted(made) == [path.name for path in IMAGES], MADE
    assert [path.name for path in IMAGES if path.read_text(encoding="utf-8") != made[path.name]] == [], MADE


def test_the_recorded_session_is_that_of_readme():
    """test_docs.py runs README."""
    [path] = [path for path in IMAGES if path.stem == "session"]
    shown = "".join("".join(each.itertext()) for each in ET.parse(path).iter(f"{SVG}text"))
    assert re.sub(r"\s+", "", shown) == re.sub(r"\s+", "", diagrams.transcript())
