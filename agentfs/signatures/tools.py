"""From a callable to a tool: its name, what it does, and the parameters that a model sees."""

import inspect
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, get_type_hints

from agentfs.errors import InvalidArgumentError
from agentfs.signatures.docstrings import read_docstring
from agentfs.signatures.hints import Choice, Kind, ListOf, Maybe, Parameter, kind_of

# What all providers take as the name of a tool and of a parameter.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class Tool(NamedTuple):
    """One callable as a model sees it.

    Attributes:
        name: The callable's own name.
        description: The text of its docstring before the sections.
        parameters: Those before the `*` of its signature, in order.
        returns: The hint of what it returns, or None.
        target: The callable.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    returns: Any
    target: Callable[..., Any]

    def invoke(self, values: Mapping[str, Any]) -> Any:
        """Call it with arguments that fit its hints."""
        return self.target(**values)


def tool_of(target: Callable[..., Any]) -> Tool:
    """Describe a callable as a tool.

    Args:
        target: A plain function or bound method with type hints and a Google-style docstring.

    Raises:
        InvalidArgumentError: It lacks something that a model must be told; all lacks are named
            (`invalid_argument`).
    """
    name = getattr(target, "__name__", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        shown = repr(target)[:100]
        raise InvalidArgumentError(
            f"{shown} cannot be a tool: it has no name of ASCII letters, digits and underscores.",
            hint="Pass a plain function or a bound method; wrap a lambda or a partial in a `def`.",
        )
    docstring = read_docstring(inspect.getdoc(target))
    lacks = [] if docstring.description else ["its docstring says nothing before the sections"]
    if inspect.iscoroutinefunction(target):
        lacks.append(
            "it is a coroutine function; tools are plain functions, and `acall` runs them in a thread"
        )
    try:
        hints = get_type_hints(target)
    except NameError as error:
        lacks.append(f"its hints cannot be resolved ({error}); import them at run time")
        hints = {}
    parameters: list[Parameter] = []
    for seen in inspect.signature(target).parameters.values():
        if seen.kind is seen.KEYWORD_ONLY and seen.default is seen.empty:
            lacks.append(f"`{seen.name}` stands after the `*`, hidden from the model, and has no default")
        if seen.kind is seen.POSITIONAL_ONLY:
            lacks.append(f"`{seen.name}` is positional-only; a model names its arguments")
        if seen.kind is not seen.POSITIONAL_OR_KEYWORD:
            continue
        try:
            parameters.append(_parameter(seen, hints, docstring.parameters))
        except InvalidArgumentError as error:
            lacks.append(f"`{seen.name}`: {error.message}")
    if lacks:
        raise InvalidArgumentError(f"{name} cannot be a tool: {'; '.join(lacks)}.")
    return Tool(name, docstring.description, tuple(parameters), hints.get("return"), target)


def _parameter(
    seen: inspect.Parameter, hints: Mapping[str, Any], descriptions: Mapping[str, str]
) -> Parameter:
    if not _NAME.fullmatch(seen.name) or seen.name.startswith("_"):
        raise InvalidArgumentError(
            "no name of ASCII letters, digits and underscores that begins with a letter"
        )
    if seen.name not in hints:
        raise InvalidArgumentError("it has no type hint")
    if not descriptions.get(seen.name):
        raise InvalidArgumentError("the docstring does not describe it under `Args:`")
    required = seen.default is seen.empty
    default = None if required else seen.default
    return Parameter(seen.name, kind_of(hints[seen.name]), descriptions[seen.name], required, default)


def full_description(parameter: Parameter, *, choices: bool = False) -> str:
    """Return the description with the default, and the choices, that it does not state by itself.

    Args:
        parameter: What is described.
        choices: Whether to name the choices too, where no `enum` does.
    """
    parts = [parameter.description]
    if choices and (values := _choices(parameter.kind)):
        named = [json.dumps(value, ensure_ascii=False) for value in values]
        if not all(str(value) in parameter.description for value in values):
            parts.append(f"One of {', '.join(named)}.")
    default = _default_text(parameter)
    if default and not re.search(r"\bdefault", parameter.description, re.IGNORECASE):
        parts.append(f"Default {default}.")
    if len(parts) > 1 and parts[0][-1] not in ".!?":
        parts[0] += "."
    return " ".join(parts)


def _choices(kind: Kind) -> tuple[Any, ...]:
    if isinstance(kind, Maybe):
        return _choices(kind.kind)
    if isinstance(kind, ListOf):
        return _choices(kind.item)
    return kind.values if isinstance(kind, Choice) else ()


def _default_text(parameter: Parameter) -> str:
    if parameter.required or parameter.default is None:
        return ""
    try:
        return json.dumps(parameter.default, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        return ""
