"""The decorator `tool`, which declares a method's effect and use."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar, get_args

from agentfs.errors import InvalidArgumentError
from agentfs.permissions import Effect
from agentfs.results import Result

_F = TypeVar("_F", bound=Callable[..., Any])

# The effect of functions that declare none, by the class of their result.
_effects_by_result: dict[Any, Effect] = {}


class Declaration(NamedTuple):
    """The arguments of `tool`."""

    effect: Effect
    default: bool
    for_models: bool
    advice: str | Callable[[Any], str]
    needs: Mapping[str, tuple[str, ...]]

    def advice_of(self, function: Any) -> str:
        """Return the sentence for the system prompt, or ""."""
        return self.advice if isinstance(self.advice, str) else self.advice(function.__self__)

    def check_needs(self, name: str, methods: Iterable[str]) -> None:
        """Raise `invalid_argument` if none of the methods shows the values that the tool needs."""
        if self.needs and self.needs.keys().isdisjoint(methods):
            raise InvalidArgumentError(
                f"The tool {name} needs values that only {' and '.join(self.needs)} show.",
                hint="Offer one of them too.",
            )


def tool(
    *,
    effect: Effect,
    default: bool = False,
    for_models: bool = True,
    advice: str | Callable[[Any], str] = "",
    needs: Mapping[str, tuple[str, ...]] = {},
) -> Callable[[_F], _F]:
    """Declare a method or function as a tool.

    Args:
        effect: "read", "search", "edit", "write", or "manage" for deleting, moving and restoring files;
            "none" needs no permission.
        default: True if `Workspace.tools()` includes it.
        for_models: False if it is never offered to a model.
        advice: A sentence for the system prompt, with methods as `{grep}`, or a function that returns it for
            the object of the method. It is left out unless all of the methods are offered.
        needs: Methods, each with the parameters that a model then sees; at least one of these methods must
            be offered too.

    Returns:
        A decorator that returns the function itself.

    Raises:
        InvalidArgumentError: The effect is unknown (`invalid_argument`).
    """
    if effect not in get_args(Effect):
        raise InvalidArgumentError(f"effect must be one of {', '.join(get_args(Effect))}, not {effect!r}.")
    declaration = Declaration(effect, default, for_models, advice, needs)

    def decorate(function: _F) -> _F:
        return declare(function, declaration)

    return decorate


def declare(function: _F, declaration: Declaration) -> _F:
    """Attach a declaration to a function and return the function."""
    function.__dict__["_agentfs_tool"] = declaration
    returns = function.__annotations__.get("return")
    if isinstance(returns, type) and issubclass(returns, Result):
        _effects_by_result.setdefault(returns, declaration.effect)
    return function


def declaration_of(function: Any) -> Declaration | None:
    """Return the declaration of a function or method, or None."""
    return getattr(function, "_agentfs_tool", None)


def is_method(function: Any) -> bool:
    """Return True for a method of a workspace, which `enforcement.guard` has wrapped."""
    return hasattr(function, "_agentfs_guarded")


def effect_of(function: Any, returns: Any) -> Effect | None:
    """Return the declared effect, or that of a declared method with the same result class, or None."""
    declared = declaration_of(function)
    return declared.effect if declared else _effects_by_result.get(returns)


def declarations(cls: type[Any]) -> dict[str, Declaration]:
    """Return the declarations of a class by method, in order of definition."""
    names = dict.fromkeys(name for base in reversed(cls.__mro__) for name in vars(base))
    declared = {name: declaration_of(getattr(cls, name)) for name in names}
    return {name: each for name, each in declared.items() if each is not None}


def declared_tools(cls: type[Any]) -> dict[str, Declaration]:
    """Return the declarations of methods that may be offered to a model, default tools first."""
    offered = {name: each for name, each in declarations(cls).items() if each.for_models}
    return dict(sorted(offered.items(), key=lambda item: not item[1].default))
