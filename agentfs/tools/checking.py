"""Check the arguments of Python calls against the type hints of the methods.

A value of a wrong type is `invalid_argument` with the name of the parameter, before anything is done. A path
may be any `os.PathLike` of text, and an object with known members a mapping of them; the method gets text,
and the object. Nothing else is converted. A parameter without a hint, or with one that names no type at run
time, takes any value.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar, cast, get_type_hints

from agentfs.advice import Advice, ParameterName
from agentfs.errors import InvalidArgumentError
from agentfs.tools.kinds import Anything, ArgumentReader, Kind, kind_of

_F = TypeVar("_F", bound=Callable[..., Any])


class _Parameter(NamedTuple):
    name: str
    kind: Kind
    hint: str

    def read(self, value: Any) -> Any:
        """Return a value as the function takes it; raise `invalid_argument` for a wrong type."""
        reader = ArgumentReader()
        read = self.kind.read(value, self.name, reader)
        for where, message in reader.problems:
            raise InvalidArgumentError(
                Advice("`", ParameterName(self.name), f"{message.removeprefix(f'`{self.name}')}."),
                hint=self.hint,
                details={"argument": self.name, "place": where},
            )
        return read


class ArgumentChecker:
    """Checks the arguments of calls of one function or method."""

    def __init__(self, function: Callable[..., Any]) -> None:
        names = getattr(inspect.unwrap(function), "__globals__", {})
        self._parameters: dict[str, _Parameter] = {}
        self._positional: list[_Parameter] = []
        for each in inspect.signature(function).parameters.values():
            if each.name == "self" or each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
                continue
            omit = "Leave it out." if each.default is None else f"Leave it out for {each.default!r}."
            hint = "" if each.default is each.empty else omit
            parameter = self._parameters[each.name] = _Parameter(each.name, _kind(each, names), hint)
            if each.kind is not each.KEYWORD_ONLY:
                self._positional.append(parameter)

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """Return the arguments to call with, self aside; raise `invalid_argument` for a wrong type."""
        parameters = self._parameters
        for name, value in kwargs.items():
            parameter = parameters.get(name)
            if parameter is not None and type(value) not in parameter.kind.exact:
                kwargs[name] = parameter.read(value)
        checked: list[Any] | None = None
        for index, (parameter, value) in enumerate(zip(self._positional, args, strict=False)):
            if type(value) not in parameter.kind.exact:
                checked = list(args) if checked is None else checked
                checked[index] = parameter.read(value)
        return (args if checked is None else checked), kwargs


def checker_of(method: Callable[..., Any]) -> Callable[[], ArgumentChecker]:
    """Return a function that makes the checker of a method, once: most methods are never called."""
    return cache(lambda: ArgumentChecker(method))


def checks_arguments(method: _F, first: Callable[[Any], object] | None = None) -> _F:
    """Make a method check the types of its arguments first, and before them its object by `first`."""
    checker = checker_of(method)

    @wraps(method)
    def checked(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if first is not None:
            first(self)
        positional, named = checker().check(args, kwargs)
        return method(self, *positional, **named)

    return cast("_F", checked)


def _kind(declared: inspect.Parameter, names: Mapping[str, Any]) -> Kind:
    """Return the kind of a parameter; its hint may be a string over the names of its module."""
    if declared.annotation is declared.empty:
        return Anything()
    hints: Any = SimpleNamespace(__annotations__={declared.name: declared.annotation})
    try:
        resolved = get_type_hints(hints, dict(names), include_extras=True)
        return kind_of(resolved[declared.name], for_program=True)
    except Exception:  # noqa: BLE001 - whatever a string evaluates to
        return Anything()
