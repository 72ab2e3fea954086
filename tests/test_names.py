"""One name, one meaning: no two modules of the package share a name, and no two public names at their top."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "agentfs"
OUTER = {"__init__", "__main__"}
# What each module of a package defines: functions of a dialect and of a framework, constants of a dialect.
INTERFACES = {"specs", "tools", "DIALECT", "NAME"}


def modules() -> Iterator[tuple[str, str]]:
    """Yield the name and the place of each module and package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if path.stem not in OUTER:
            yield path.stem, str(place)
        elif place.parent.name:
            yield place.parent.name, f"{place.parent}/"


def public_names() -> Iterator[tuple[str, str]]:
    """Yield the name and the place of each public class, type, function and constant at the top of a module.

    Code in a string counts too. Type variables have one letter, and are not counted.
    """
    pattern = re.compile(
        r"^(?:class|(?:async )?def) ([A-Za-z]\w*)|^([A-Z]\w+(?:, [A-Z]\w+)*)(?:: [^=\n]+)? = ", re.MULTILINE
    )
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lists = [found[1] or found[2] for found in pattern.finditer(text)]
        for name in {name for names in lists for name in names.split(", ")} - INTERFACES:
            yield name, str(path.relative_to(PACKAGE))


def clashes(named: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, place in named:
        places[name].append(place)
    return {name: found for name, found in places.items() if len(found) > 1}


def test_no_two_modules_share_a_name():
    assert clashes(modules()) == {}


def test_no_two_public_names_are_the_same():
    assert clashes(public_names()) == {}
