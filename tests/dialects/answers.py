"""Checks of answers: `wanted` maps places in an answer to the values that are wanted there.

A place is a path of keys and attributes, such as "data/total". If it ends with `~`, the value is a part of
what is found there, or each of several; with `^`, its beginning; with `!`, not a part of it; with `#`, its
length, or with `<`, a greater number; with `?`, whether the place is there.
"""

from pathlib import Path
from typing import Any

from tests.kit import put
from tests.tool_calls import kinds_of

CHECKS = {
    "~": lambda found, value: all(
        each in found for each in ([value] if isinstance(value, (str, bytes)) else value)
    ),
    "^": lambda found, value: found.startswith(value),
    "!": lambda found, value: value not in found,
    "#": lambda found, value: len(found) == value,
    "<": lambda found, value: len(found) < value,
}


def found_at(answer: Any, place: str) -> Any:
    for name in filter(None, place.split("/")):
        if isinstance(answer, (list, tuple)):
            answer = answer[int(name)]
        else:
            answer = answer[name] if isinstance(answer, dict) else getattr(answer, name)
    return answer


def check(answer: Any, wanted: dict[str, Any]) -> None:
    for place, value in wanted.items():
        if place[-1:] == "?":
            above, _, name = place[:-1].rpartition("/")
            assert (name in found_at(answer, above)) is value, (place, answer)
        elif place[-1:] in CHECKS:
            found = found_at(answer, place[:-1])
            assert CHECKS[place[-1]](found, value), (place, value, found)
        else:
            assert found_at(answer, place) == value, place


def check_session(do: Any, top: Path, before: dict, calls: list, after: dict) -> None:
    """Write files, make calls and check their answers, then check files; None is a missing file."""
    put(top, before)
    for name, given, wanted in calls:
        check(do(name, **given), wanted)
    for path, content in after.items():
        found = (top / path).read_bytes() if (top / path).exists() else None
        assert found == (content.encode() if isinstance(content, str) else content), path


def parameters(ws: Any, dialect: str) -> dict[str, str]:
    """Return the parameters of each tool: `path*, limit integer`; a star if required, a type if no string."""
    shown = {}
    for tool in ws.tools(dialect=dialect).schemas("anthropic"):
        schema = tool["input_schema"]
        parts = []
        for name, each in schema["properties"].items():
            kinds = "|".join(sorted(filter(None, kinds_of(each)[0])))
            star = "*" * (name in schema.get("required", ()))
            parts.append(f"{name}{star} {kinds}".removesuffix(" string"))
        shown[tool["name"]] = ", ".join(parts)
    return shown
