"""Checks of answers: `wanted` maps places in an answer to the values that are wanted there.

A place is a path of keys and attributes, such as "data/total". If it ends with `~`, the value is a part of
what is found there; with `^`, its beginning; with `!`, not a part of it.
"""

from typing import Any

__all__ = ["check", "found_at"]

CHECKS = {
    "~": lambda found, value: value in found,
    "^": lambda found, value: found.startswith(value),
    "!": lambda found, value: value not in found,
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
        if place[-1:] in CHECKS:
            found = found_at(answer, place[:-1])
            assert CHECKS[place[-1]](found, value), (place, value, found)
        else:
            assert found_at(answer, place) == value, place
