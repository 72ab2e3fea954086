"""Tools as functions, from which frameworks make tools of their own."""

import inspect
from collections.abc import Awaitable, Callable
from functools import reduce
from importlib import import_module
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from agentfs.arguments.docstrings import write_docstring
from agentfs.arguments.parameters import Parameter
from agentfs.errors import InvalidArgumentError
from agentfs.tools.tool import Tool

# How the hints of a function describe its parameters: as `Annotated` with a text or a `Field`, or not at all.
Hints = Literal["text", "field", "plain"]


def plain_function(
    tool: Tool,
    run: Callable[[str, dict[str, Any]], str],
    run_async: Callable[[str, dict[str, Any]], Awaitable[str]],
    hints: Hints,
) -> Callable[..., Any]:
    """Return a function with the tool's name, parameters and description that calls `run(name, arguments)`.

    The function is `async` and awaits `run_async(name, arguments)` if the tool is.

    Frameworks read `__name__`, `__doc__`, the signature and the annotations, and each fails on some richer
    type. So no hint is a union, except with None.
    """
    parameters = sorted(tool.parameters, key=lambda parameter: not parameter.required)
    names = [parameter.identifier for parameter in parameters]
    if len(set(names)) < len(names):
        raise InvalidArgumentError(
            f"{tool.name} cannot be a function: two of its parameters become the same identifier."
        )

    declared = [_declared(parameter, hints) for parameter in parameters]
    signature = inspect.Signature(declared, return_annotation=str)

    def given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        known = {name: kwargs.pop(name) for name in names if name in kwargs}
        # Raises TypeError like any function.
        return {**signature.bind_partial(*args, **known).arguments, **kwargs}

    def call(*args: Any, **kwargs: Any) -> str:
        return run(tool.name, given(args, kwargs))

    async def acall(*args: Any, **kwargs: Any) -> str:
        return await run_async(tool.name, given(args, kwargs))

    function: Callable[..., Any] = acall if tool.is_async else call
    descriptions = {
        each.identifier: each.full_description(choices=hints == "plain", formats=True) for each in parameters
    }
    returns = "The result as text, or the error."
    function.__name__ = function.__qualname__ = tool.name
    function.__annotations__ = {**{each.name: each.annotation for each in declared}, "return": str}
    function.__doc__ = write_docstring(tool.description, descriptions, returns)
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
    text = _Description(parameter.full_description(formats=True))
    described = import_module("pydantic").Field(description=text) if hints == "field" else text
    return inspect.Parameter(
        parameter.identifier,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=inspect.Parameter.empty if parameter.required else default,
        annotation=hint if hints == "plain" else Annotated[hint, described],
    )


def _without_literals(hint: Any) -> Any:
    """Return a hint in which the type of the choices replaces a Literal."""
    origin: Any = get_origin(hint)
    args: tuple[Any, ...] = get_args(hint)
    if origin is Literal:
        return args[0].__class__
    plain = tuple(map(_without_literals, args))
    if not plain:
        return hint
    return reduce(lambda one, other: one | other, plain) if origin in (Union, UnionType) else origin[plain]
