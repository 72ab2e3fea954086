"""Google-style docstrings: read for what a model should be told, and written for the functions we make."""

import inspect
import re
from collections.abc import Mapping
from typing import NamedTuple

_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Attributes|Returns|Yields|Raises|Warns|Examples?|Notes?|See Also):"
)
_ITEM = re.compile(r"\*{0,2}(?P<name>\w+)(?: *\([^)]*\))?: *(?P<text>.*)")
_DESCRIBING = ("Args", "Arguments", "Parameters", "Attributes")


class Docstring(NamedTuple):
    """What a docstring says.

    Attributes:
        description: The text before the first section, one line a paragraph.
        parameters: For each name under `Args:` or `Attributes:`, its description on one line.
    """

    description: str
    parameters: Mapping[str, str]


def read_docstring(text: str | None) -> Docstring:
    """Read a Google-style docstring.

    Args:
        text: The docstring as it stands in the source, or None.
    """
    lines = inspect.cleandoc(text or "").split("\n")
    description: list[str] = []
    parameters: dict[str, str] = {}
    section = ""
    body: list[str] = []
    for line in [*lines, "Returns:"]:  # a last heading, so that every section is closed by the next
        heading = _SECTION.fullmatch(line.rstrip())
        if not heading:
            body.append(line)
            continue
        if not section:
            description = body
        elif section in _DESCRIBING:
            parameters |= _items(body)
        section, body = heading[1], []
    return Docstring(_paragraphs(description), parameters)


def write_docstring(description: str, parameters: Mapping[str, str], returns: str) -> str:
    """Write a Google-style docstring with one line for each parameter.

    Args:
        description: The text before the sections, one line a paragraph.
        parameters: The description of each parameter.
        returns: What is returned.
    """
    parts = [description.replace("\n", "\n\n")]
    if parameters:
        parts.append("\n".join(["Args:", *(f"    {name}: {text}" for name, text in parameters.items())]))
    parts.append(f"Returns:\n    {returns}")
    return "\n\n".join(parts) + "\n"


def _paragraphs(lines: list[str]) -> str:
    paragraphs = "\n".join(line.strip() for line in lines).split("\n\n")
    return "\n".join(" ".join(paragraph.split()) for paragraph in paragraphs if paragraph.strip())


def _items(lines: list[str]) -> dict[str, str]:
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    outer = min(indents, default=0)
    items: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        at_item = line.strip() and len(line) - len(line.lstrip()) == outer
        found = _ITEM.fullmatch(line.strip()) if at_item else None
        if found:
            current = items.setdefault(found["name"], [])
            current.append(found["text"])
        else:
            current.append(line.strip())
    return {name: " ".join(" ".join(texts).split()) for name, texts in items.items()}
