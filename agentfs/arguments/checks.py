"""The check of a Python call's arguments against the hints of the function."""

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from typing import Any, NamedTuple, TypeVar, cast

from agentfs.arguments.hints import kind_of, resolve_hints
from agentfs.arguments.kinds import Anything, ArgumentReader, Kind
from agentfs.base.advice import Advice, ParameterName
from agentfs.errors import InvalidArgumentError

_F = TypeVar("_F", bound=Callable[..., Any])


class _Parameter(NamedTuple):
    name: str
    kind: Kind
    hint: str

    def read(self, value: Any) -> Any:
        """Return a value in the type that the function takes; raise `invalid_argument` for a wrong one."""
        reader = ArgumentReader()
        read = self.kind.read(value, self.name, reader)
        for where, message in reader.problems:
            raise InvalidArgumentError(
                Advice("`", ParameterName(self.name), f"{message.removeprefix(f'`{self.name}')}."),
                hint=self.hint,
                details={"parameter": self.name, "place": where},
            )
        return read


class ArgumentChecker:
    """Checks the arguments of calls of one function; reads its signature on first use.

    A value of a wrong type is `invalid_argument` with the name of the parameter. An `os.PathLike` becomes
    text, and a mapping becomes the record that its hint names. Nothing else is converted. A parameter whose
    hint is missing or cannot be resolved takes any value.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @cached_property
    def signature(self) -> inspect.Signature:
        """The signature of the function."""
        return inspect.signature(self._function)

    @cached_property
    def _parameters(self) -> dict[str, _Parameter]:
        hints, _ = resolve_hints(self._function)
        found: dict[str, _Parameter] = {}
        for each in self.signature.parameters.values():
            if each.name != "self" and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
                omit = "Leave it out." if each.default is None else f"Leave it out for {each.default!r}."
                hint = "" if each.default is each.empty else omit
                found[each.name] = _Parameter(each.name, _kind(hints.get(each.name, Any)), hint)
        return found

    @cached_property
    def _positional(self) -> list[_Parameter]:
        declared = self.signature.parameters
        return [each for name, each in self._parameters.items() if declared[name].kind.name != "KEYWORD_ONLY"]

    def by_name(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by their names; those that the function refuses may be missing."""
        return {**{each.name: value for each, value in zip(self._positional, args, strict=False)}, **kwargs}

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """Return the arguments to pass, without `self`; raise `invalid_argument` for a wrong type."""
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


def checks_arguments(method: _F, first: Callable[[Any], object] | None = None) -> _F:
    """Make a method check the types of its arguments; `first` is called with its object before that."""
    checker = ArgumentChecker(method)

    @wraps(method)
    def checked(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if first is not None:
            first(self)
        positional, named = checker.check(args, kwargs)
        return method(self, *positional, **named)

    return cast("_F", checked)


def _kind(hint: Any) -> Kind:
    """Return the kind of a program's values; any value if the hint has none."""
    try:
        return kind_of(hint, for_program=True)
    except InvalidArgumentError:
        return Anything()
