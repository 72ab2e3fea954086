"""One name, one meaning: no two public classes and no two modules of the package share a name."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "agentfs"
OUTER = {"__init__", "__main__"}


def modules() -> Iterator[tuple[str, str]]:
    """Yield the name and the place of each module and package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if path.stem not in OUTER:
            yield path.stem, str(place)
        elif place.parent.name:
            yield place.parent.name, f"{place.parent}/"


def classes() -> Iterator[tuple[str, str]]:
    """Yield the name and the place of each public class at the top of a module, or of code in a string."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE):
            yield name, str(path.relative_to(PACKAGE))


def clashes(named: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, place in named:
        places[name].append(place)
    return {name: found for name, found in places.items() if len(found) > 1}


def test_no_two_modules_share_a_name():
    assert clashes(modules()) == {}


def test_no_two_public_classes_share_a_name():
    assert clashes(classes()) == {}
