"""Tools as functions, from which frameworks make tools of their own."""

import inspect
from collections.abc import Awaitable, Callable
from functools import reduce
from importlib import import_module
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from agentfs.arguments.docstrings import write_docstring
from agentfs.arguments.parameters import Parameter
from agentfs.results import ToolResult
from agentfs.tools.tool import Tool

# How the hints of a function describe its parameters: as `Annotated` with a text or a `Field`, or not at all.
Hints = Literal["text", "field", "plain"]


def plain_function(
    tool: Tool,
    run: Callable[[str, dict[str, Any]], ToolResult],
    run_async: Callable[[str, dict[str, Any]], Awaitable[ToolResult]],
    hints: Hints,
) -> Callable[..., Any]:
    """Return a function with the tool's name, parameters and description that calls `run(name, arguments)`.

    The function is `async` and awaits `run_async(name, arguments)` if the tool is.

    Frameworks read `__name__`, `__doc__`, the signature and the annotations, and each fails on some richer
    type. So no hint is a union, except with None.
    """
    parameters = sorted(tool.parameters, key=lambda parameter: not parameter.required)
    declared = {each.identifier: _declared(each, hints) for each in parameters}
    signature = inspect.Signature([*declared.values()], return_annotation=str)

    def given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        known = {name: kwargs.pop(name) for name in declared if name in kwargs}
        # Raises TypeError like any function.
        return {**signature.bind_partial(*args, **known).arguments, **kwargs}

    def call(*args: Any, **kwargs: Any) -> str:
        return run(tool.name, given(args, kwargs)).content_with_notes

    async def acall(*args: Any, **kwargs: Any) -> str:
        return (await run_async(tool.name, given(args, kwargs))).content_with_notes

    function: Callable[..., Any] = acall if tool.is_async else call
    texts = {each.identifier: each.full_description(choices=hints == "plain") for each in parameters}
    function.__name__ = function.__qualname__ = tool.name
    function.__annotations__ = {name: each.annotation for name, each in declared.items()} | {"return": str}
    function.__doc__ = write_docstring(tool.description, texts, "The result as text, or the error.")
    function.__dict__["__signature__"] = signature  # `inspect.signature` reads it
    return function


class _Description(str):
    """The description of a parameter in `Annotated`: a text, which Pydantic puts into its schema."""

    __slots__ = ()

    def __get_pydantic_json_schema__(self, core: Any, handler: Callable[[Any], dict[str, Any]]) -> Any:
        return {**handler(core), "description": str(self)}


def _declared(parameter: Parameter, hints: Hints) -> inspect.Parameter:
    hint = _without_literals(parameter.kind.hint) if hints == "plain" else parameter.kind.hint
    default = parameter.default if isinstance(parameter.default, (str, int, float, bool)) else None
    if not parameter.required and default is None and hint is not Any:
        hint = hint | None
    text = _Description(parameter.full_description())
    if hints != "plain":
        field = import_module("pydantic").Field(description=text) if hints == "field" else text
        hint = Annotated[hint, field]
    shown: Any = inspect.Parameter.empty if parameter.required else default
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(parameter.identifier, kind, default=shown, annotation=hint)


def _without_literals(hint: Any) -> Any:
    """Return a hint in which the type of the choices replaces a Literal."""
    origin: Any = get_origin(hint)
    if origin is Literal:
        return get_args(hint)[0].__class__
    plain = tuple(map(_without_literals, get_args(hint)))
    if not plain:
        return hint
    return reduce(lambda one, other: one | other, plain) if origin in (Union, UnionType) else origin[plain]
