"""Reading and writing of Google-style docstrings."""

import inspect
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

_DESCRIBING = (
    "Args|Arguments|Parameters|Attributes|Keyword Args|Keyword Arguments|Other Parameters"  # parameters
)
_HEADING = re.compile(rf"({_DESCRIBING}|Returns|Yields|Raises|Warns|Examples?|Notes?|See Also):")
_ITEM = re.compile(r"\*{0,2}(?P<name>\w+)(?: *\((?:[^()]|\([^()]*\))*\))?: *(?P<text>.*)")


class Docstring(NamedTuple):
    """The text before the first section, one line a paragraph, and one line for each parameter."""

    description: str
    parameters: Mapping[str, str]


@lru_cache(maxsize=128)  # each `tools()` reads those of all methods
def read_docstring(text: str | None) -> Docstring:
    """Read a Google-style docstring."""
    description = ""
    parameters: dict[str, str] = {}
    section, body = "", list[str]()
    for line in [*inspect.cleandoc(text or "").split("\n"), "Returns:"]:  # ends the last section
        heading = _HEADING.fullmatch(line.rstrip())
        # Text that is not indented ends a section. Python removes the indent of one in the first line.
        closes = section and line[:1].strip() and body and body[0].startswith(" ")
        if not heading and not closes:
            if line or body:
                body.append(line)
            continue
        if not section:
            paragraphs = "\n".join(each.strip() for each in body).split("\n\n")
            description = "\n".join(" ".join(each.split()) for each in paragraphs if each.strip())
        elif section in _DESCRIBING.split("|"):
            parameters |= _items(body)
        section, body = heading[1] if heading else "Notes", []
    return Docstring(description, parameters)


def write_docstring(description: str, parameters: Mapping[str, str], returns: str) -> str:
    """Write a Google-style docstring with one line for each parameter."""
    parts = [description.replace("\n", "\n\n")]
    if parameters:
        parts.append("\n".join(["Args:", *(f"    {name}: {text}" for name, text in parameters.items())]))
    return "\n\n".join([*parts, f"Returns:\n    {returns}"]) + "\n"


def _items(lines: list[str]) -> dict[str, str]:
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    items: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        outer = len(line) - len(line.lstrip()) == indent
        if outer and (found := _ITEM.fullmatch(line.strip())):
            current = items.setdefault(found["name"], [])
            current.append(found["text"])
        else:
            current.append(line.strip())
    return {name: " ".join(" ".join(texts).split()) for name, texts in items.items()}
