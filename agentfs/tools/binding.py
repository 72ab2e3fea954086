"""From a call's arguments, as a model sent them, to values to call with, or to one error that names all."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentfs.errors import InvalidArgumentError
from agentfs.tools.coerce import BoundArguments, Problem, take_members
from agentfs.tools.json_text import NotJSONError, read_json
from agentfs.tools.types import Parameter, describe_names, short_repr

_MOST_PROBLEMS = 12


def arguments_of(sent: Any) -> Mapping[Any, Any]:
    """Return the object of arguments that a model sent, as JSON text or parsed.

    Args:
        sent: A mapping, JSON text of an object (also twice encoded), or None or blank text for no arguments.

    Raises:
        InvalidArgumentError: It is nothing of the kind (`invalid_argument`).
    """
    value = sent
    for _ in range(2):
        if isinstance(value, str):
            if not value.strip():
                return {}
            try:
                value = read_json(value)
            except NotJSONError as error:
                raise InvalidArgumentError(
                    f"The arguments are {error}.",
                    hint="Send one JSON object; inside strings, escape quotes, backslashes and line ends.",
                ) from None
    if value is None:
        return {}
    arguments: Any = value
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(
            f"The arguments must be one JSON object, not {short_repr(value)}.",
            hint='Send the arguments by name, as in {"name": "value"}.',
        )
    return arguments  # type: ignore[no-any-return] # a mapping, as was just seen


def bind(parameters: Sequence[Parameter], given: Mapping[Any, Any]) -> BoundArguments:
    """Read arguments against parameters.

    Args:
        parameters: What there is to give.
        given: What was given.
    """
    bound = BoundArguments()
    bound.values = take_members(bound, parameters, given)
    return bound


def refusal(tool: str, parameters: Sequence[Parameter], problems: Sequence[Problem]) -> InvalidArgumentError:
    """Return the error that tells a model everything that is wrong with its arguments.

    Args:
        tool: The name of the tool.
        parameters: What there is to give.
        problems: What is wrong.
    """
    told = [problem.message for problem in problems[:_MOST_PROBLEMS]]
    if len(problems) > len(told):
        told.append(f"and {len(problems) - len(told)} more problems")
    return InvalidArgumentError(
        f"{tool} was not run: {'; '.join(told)}.",
        hint=f"{tool} takes {describe_names(parameters) or 'no arguments'}.",
        details={"problems": [problem._asdict() for problem in problems[:_MOST_PROBLEMS]]},
    )
