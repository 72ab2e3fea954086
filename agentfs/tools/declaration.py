"""What a method declares of itself as a tool: its effect, whether it is a default, advice on its use.

The offered tools, permission checks, MCP annotations and the instructions for a model follow from it.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from agentfs.permissions import Effect
from agentfs.results import Result

_F = TypeVar("_F", bound=Callable[..., Any])

# What a function does that declares nothing and returns the same result as one that does.
_effects_by_result: dict[Any, Effect] = {}


class ModelType(NamedTuple):
    """In an `Annotated` hint: the type that a model sees, where a program may pass more."""

    hint: Any


class Declaration(NamedTuple):
    """What `tool` declares."""

    effect: Effect
    default: bool
    for_models: bool
    advice: str
    needs: Mapping[str, tuple[str, ...]]


def tool(
    *,
    effect: Effect,
    default: bool = False,
    for_models: bool = True,
    advice: str = "",
    needs: Mapping[str, tuple[str, ...]] = {},
) -> Callable[[_F], _F]:
    """Declare a method or function as a tool.

    Args:
        effect: What it does to the files; "none" needs no permission.
        default: Whether `Workspace.tools()` includes it where no names are given.
        for_models: Whether a model may be offered it at all.
        advice: A sentence for the system prompt, with methods as `{grep}`; it is left out where one of them
            is not offered.
        needs: Methods, one of which must be offered too, each with parameters that a model then sees of it.
    """
    declaration = Declaration(effect, default, for_models, advice, needs)

    def decorate(function: _F) -> _F:
        return declare(function, declaration)

    return decorate


def declare(function: _F, declaration: Declaration) -> _F:
    """Give a function a declaration."""
    function.__dict__["_agentfs_tool"] = declaration
    returns = function.__annotations__.get("return")
    if isinstance(returns, type) and issubclass(returns, Result):
        _effects_by_result.setdefault(returns, declaration.effect)
    return function


def declaration_of(function: Any) -> Declaration | None:
    """Return what a function or method declares, or None."""
    return getattr(function, "_agentfs_tool", None)


def effect_of(function: Any, returns: Any) -> Effect | None:
    """Return the effect that is declared, else that of declared methods with the same result, or None."""
    declared = declaration_of(function)
    return declared.effect if declared else _effects_by_result.get(returns)


def declarations(cls: type[Any]) -> dict[str, Declaration]:
    """Return what the methods of a class declare, in order of definition."""
    names = dict.fromkeys(name for base in reversed(cls.__mro__) for name in vars(base))
    declared = {name: declaration_of(getattr(cls, name)) for name in names}
    return {name: each for name, each in declared.items() if each is not None}


def declared_tools(cls: type[Any]) -> dict[str, Declaration]:
    """Return the methods of a class that are offered to models, in order of definition, defaults first."""
    offered = {name: each for name, each in declarations(cls).items() if each.for_models}
    return dict(sorted(offered.items(), key=lambda item: not item[1].default))


_HEADING = re.compile(
    r"(Args|Arguments|Parameters|Attributes|Returns|Yields|Raises|Warns|Examples?|Notes?|See Also):"
)
_ITEM = re.compile(r"\*{0,2}(?P<name>\w+)(?: *\([^)]*\))?: *(?P<text>.*)")
_DESCRIBING = ("Args", "Arguments", "Parameters", "Attributes")


class Docstring(NamedTuple):
    """The text before the first section, one line a paragraph, and a line for each documented parameter."""

    description: str
    parameters: Mapping[str, str]


@lru_cache(maxsize=128)  # each `tools()` reads those of all methods
def read_docstring(text: str | None) -> Docstring:
    """Read a Google-style docstring."""
    description = ""
    parameters: dict[str, str] = {}
    section, body = "", list[str]()
    for line in [*inspect.cleandoc(text or "").split("\n"), "Returns:"]:  # the last heading ends each section
        heading = _HEADING.fullmatch(line.rstrip())
        if not heading:
            body.append(line)
            continue
        if not section:
            paragraphs = "\n".join(each.strip() for each in body).split("\n\n")
            description = "\n".join(" ".join(each.split()) for each in paragraphs if each.strip())
        elif section in _DESCRIBING:
            parameters |= _items(body)
        section, body = heading[1], []
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
