"""From a callable to a tool: its name, what it does, and the parameters that a model sees."""

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, get_type_hints

from agentfs.errors import InvalidArgumentError
from agentfs.messages import NextCall, Retry
from agentfs.results import (
    ChangesResult,
    CheckpointResult,
    DeleteResult,
    EditResult,
    GlobResult,
    GrepResult,
    ListResult,
    MoveResult,
    ReadManyResult,
    ReadResult,
    ToolResult,
    UndoResult,
    WriteResult,
)
from agentfs.tools.docstrings import read_docstring
from agentfs.tools.offer import Effect, RenderContext, ToolOffer
from agentfs.tools.types import EnumOf, Kind, ListOf, OptionalOf, Parameter, kind_of

# What all providers take as the name of a tool, and of a callable's own parameter.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
# What most providers take as the name of a parameter; a format that does not is given an identifier instead.
_SHOWN_NAME = re.compile(r"-{0,2}[A-Za-z][A-Za-z0-9_.-]{0,61}")

_EFFECTS: dict[Any, Effect] = {
    ReadResult: "read",
    ReadManyResult: "read",
    ListResult: "read",
    GlobResult: "read",
    GrepResult: "read",
    ChangesResult: "read",
    CheckpointResult: "read",
    WriteResult: "write",
    DeleteResult: "edit",
    MoveResult: "edit",
    UndoResult: "edit",
    EditResult: "edit",
}


class Tool(NamedTuple):
    """One callable as a model sees it.

    Attributes:
        name: The name a model calls it by.
        description: What it does.
        parameters: What a model may give, in order.
        returns: The hint of what it returns, or None.
        target: The callable.
        preset: What it is called with where the model gives nothing, by the callable's own names.
        aliases: Other names that are accepted.
        effect: What it does to the world, or None when that is not known.
        methods: The methods that it stands for, with the arguments that make it each.
        renames: For a parameter of these, the callable's own.
        follow: What turns a call of a method into its arguments, or None.
        vary: What turns other arguments of a method into its own, or None.
        render: What makes the final result, or None.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    returns: Any
    target: Callable[..., Any]
    preset: Mapping[str, Any]
    aliases: tuple[str, ...]
    effect: Effect | None
    methods: Mapping[str, Mapping[str, Any]]
    renames: Mapping[str, str]
    follow: Callable[[NextCall], Mapping[str, Any] | None] | None
    vary: Callable[[Retry, Mapping[str, Any]], Retry | None] | None
    render: Callable[[RenderContext], ToolResult] | None

    def own(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments under the callable's own names, the presets among them."""
        return {**self.preset, **{p.target: values[p.name] for p in self.parameters if p.name in values}}


def tool_of(target: Callable[..., Any] | ToolOffer, *, prefix: str = "", expose: Sequence[str] = ()) -> Tool:
    """Describe a callable as a tool.

    Args:
        target: A plain function or bound method with type hints and a Google-style docstring, or an offer of
            one.
        prefix: What stands before the name of the tool.
        expose: Parameters after the `*` that a model sees too.

    Raises:
        InvalidArgumentError: It lacks something that a model must be told, or the offer does not fit the
            callable; all that is wrong is named (`invalid_argument`).
    """
    offer = target if isinstance(target, ToolOffer) else ToolOffer(target)
    own_name = getattr(offer.target, "__name__", None)
    name = f"{prefix}{offer.name or own_name}"
    if not isinstance(own_name, str) or not _NAME.fullmatch(name):
        shown = repr(offer.name or offer.target)[:100]
        raise InvalidArgumentError(
            f"{shown} cannot be a tool: it has no name of ASCII letters, digits and underscores.",
            hint="Pass a plain function or a bound method; wrap a lambda or a partial in a `def`.",
        )
    docstring = read_docstring(inspect.getdoc(offer.target))
    description = offer.description or docstring.description
    lacks = [] if description else ["its docstring says nothing before the sections"]
    if inspect.iscoroutinefunction(offer.target):
        lacks.append(
            "it is a coroutine function; tools are plain functions, and `acall` runs them in a thread"
        )
    try:
        hints = get_type_hints(offer.target, include_extras=True)
    except NameError as error:
        lacks.append(f"its hints cannot be resolved ({error}); import them at run time")
        hints = {}
    signature = inspect.signature(offer.target).parameters
    exposed = (*offer.expose, *expose)
    lacks += _unknown_names(offer, exposed, signature)
    told = {**docstring.parameters, **offer.descriptions}
    parameters: list[Parameter] = []
    for seen in _in_order(signature, offer.order):
        if reason := _unusable(seen, exposed, offer):
            lacks.append(reason)
        if not _visible(seen, exposed, offer):
            continue
        try:
            parameters.append(_parameter(seen, hints, told, offer))
        except InvalidArgumentError as error:
            lacks.append(f"`{seen.name}`: {error.message}")
    names = [parameter.name for parameter in parameters]
    lacks += [f"two parameters are named `{name}`" for name in sorted(set(names)) if names.count(name) > 1]
    if lacks:
        raise InvalidArgumentError(f"{name} cannot be a tool: {'; '.join(lacks)}.")
    returns = hints.get("return")
    effect = offer.effect or _EFFECTS.get(returns)
    return Tool(
        name, description, tuple(parameters), returns, offer.target,
        dict(offer.preset), tuple(offer.aliases), effect,
        {own_name: {}} if offer.methods is None else offer.methods,
        offer.renames, offer.follow, offer.vary, offer.render,
    )  # fmt: skip


def _in_order(signature: Mapping[str, inspect.Parameter], first: Sequence[str]) -> list[inspect.Parameter]:
    names = [name for name in dict.fromkeys((*first, *signature)) if name in signature]
    return [signature[name] for name in names]


def _visible(seen: inspect.Parameter, exposed: Sequence[str], offer: ToolOffer) -> bool:
    if seen.kind is seen.KEYWORD_ONLY:
        return seen.name in exposed
    return seen.kind is seen.POSITIONAL_OR_KEYWORD and seen.name not in offer.hide


def _unusable(seen: inspect.Parameter, exposed: Sequence[str], offer: ToolOffer) -> str:
    if seen.kind is seen.POSITIONAL_ONLY:
        return f"`{seen.name}` is positional-only; a model names its arguments"
    if seen.default is not seen.empty or seen.name in offer.preset or _visible(seen, exposed, offer):
        return ""
    if seen.kind is seen.KEYWORD_ONLY:
        return f"`{seen.name}` stands after the `*`, hidden from the model, and has no default"
    if seen.kind is seen.POSITIONAL_OR_KEYWORD:
        return f"`{seen.name}` is hidden from the model and has no default"
    return ""


def _unknown_names(
    offer: ToolOffer, exposed: Sequence[str], signature: Mapping[str, inspect.Parameter]
) -> list[str]:
    named = (*offer.parameters, *offer.descriptions, *exposed, *offer.hide, *offer.preset, *offer.order)
    return [f"it has no parameter `{name}`" for name in dict.fromkeys(named) if name not in signature]


def _parameter(
    seen: inspect.Parameter, hints: Mapping[str, Any], told: Mapping[str, str], offer: ToolOffer
) -> Parameter:
    name = offer.parameters.get(seen.name, seen.name)
    if not _SHOWN_NAME.fullmatch(name):
        raise InvalidArgumentError(
            "no name of ASCII letters, digits and underscores that begins with a letter"
        )
    if seen.name not in hints:
        raise InvalidArgumentError("it has no type hint")
    if not told.get(seen.name):
        raise InvalidArgumentError("the docstring does not describe it under `Args:`")
    default = offer.preset.get(seen.name, seen.default)
    required = default is seen.empty
    return Parameter(
        name, kind_of(hints[seen.name]), told[seen.name], required, None if required else default, seen.name
    )


def exposable(target: Callable[..., Any]) -> list[str]:
    """Return the parameters after the `*` of a callable that a schema can be made for.

    Args:
        target: A callable as `tool_of` takes it.
    """
    hints = get_type_hints(target, include_extras=True)
    told = read_docstring(inspect.getdoc(target)).parameters
    found: list[str] = []
    for seen in inspect.signature(target).parameters.values():
        if seen.kind is seen.KEYWORD_ONLY and seen.name in told:
            try:
                kind_of(hints[seen.name])
            except InvalidArgumentError:
                continue
            found.append(seen.name)
    return found


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
    if isinstance(kind, OptionalOf):
        return _choices(kind.kind)
    if isinstance(kind, ListOf):
        return _choices(kind.item)
    return kind.values if isinstance(kind, EnumOf) else ()


def _default_text(parameter: Parameter) -> str:
    if parameter.required or parameter.default is None:
        return ""
    try:
        return json.dumps(parameter.default, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        return ""
