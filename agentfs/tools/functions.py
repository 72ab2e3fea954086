"""Tools as plain functions that return text: the one form that every framework takes as it is.

Frameworks read `__name__`, `__doc__`, the signature and the annotations, and each stumbles over some richer
type; so only plain types stand there, and the choices are in the docstring.
"""

import inspect
from collections.abc import Callable
from typing import Any

from agentfs.errors import InvalidArgumentError
from agentfs.tools.docstrings import write_docstring
from agentfs.tools.spec import Tool
from agentfs.tools.types import Parameter, plain_hint


def plain_function(tool: Tool, run: Callable[[str, dict[str, Any]], str]) -> Callable[..., str]:
    """Return a function with the tool's name, parameters and description.

    Args:
        tool: The tool.
        run: What it does with the tool's name and its arguments.
    """
    parameters = sorted(tool.parameters, key=lambda parameter: not parameter.required)
    names = [parameter.identifier for parameter in parameters]
    if len(set(names)) < len(names):
        raise InvalidArgumentError(
            f"{tool.name} cannot be a function: two of its parameters are one identifier."
        )

    def function(*args: Any, **kwargs: Any) -> str:
        if len(args) > len(names):
            raise TypeError(f"{tool.name}() takes {len(names)} arguments but {len(args)} were given")
        given = dict(zip(names, args, strict=False))
        if twice := given.keys() & kwargs.keys():
            raise TypeError(f"{tool.name}() got several values for {', '.join(sorted(twice))}")
        return run(tool.name, given | kwargs)

    hints = {parameter.identifier: _hint(parameter) for parameter in parameters}
    function.__name__ = function.__qualname__ = tool.name
    function.__annotations__ = {**hints, "return": str}
    function.__doc__ = write_docstring(
        tool.description,
        {parameter.identifier: parameter.full_description(choices=True) for parameter in parameters},
        "The result as text, or what was wrong with the call.",
    )
    signature = inspect.Signature(
        [
            inspect.Parameter(
                parameter.identifier,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=inspect.Parameter.empty if parameter.required else _default(parameter),
                annotation=hints[parameter.identifier],
            )
            for parameter in parameters
        ],
        return_annotation=str,
    )
    function.__signature__ = signature  # type: ignore[attr-defined] # inspect.signature reads it
    return function


def _default(parameter: Parameter) -> Any:
    plain = isinstance(parameter.default, (str, int, float, bool))
    return parameter.default if plain else None


def _hint(parameter: Parameter) -> Any:
    hint = plain_hint(parameter.kind)
    if not parameter.required and _default(parameter) is None and hint is not Any:
        return hint | None
    return hint
