"""The decorator `tool`, which declares the effect and use of a function, and `CallContext`."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar, get_args

from agentfs.base import call_context
from agentfs.errors import InvalidArgumentError
from agentfs.permissions import Effect

_F = TypeVar("_F", bound=Callable[..., Any])
_numbers = itertools.count(1)


class CallContext:
    """Facts about the call of a tool. A parameter with this hint is filled in and not shown to the model.

    Attributes:
        workspace: The workspace of the toolset, or None.
        context: The value that the program passed as `context` to `Toolset.call` or `answer`. An adapter of
            `agentfs.frameworks` passes the framework's own context.
        id: The provider's id of the call, or a name for it that is unique in this process.
        deadline: The time by `time.monotonic()` when the call must end; infinite without a limit.
    """

    def __init__(self, workspace: Any, context: Any, call_id: str) -> None:
        self.workspace = workspace
        self.context = context
        self.id = call_id or f"call_{next(_numbers)}"
        self.deadline = call_context.deadline()
        self._execution = call_context.current.get()

    @property
    def cancelled(self) -> bool:
        """True if the program no longer waits for the call, so that it should end."""
        return self._execution is not None and self._execution.is_abandoned

    def progress(self, entries: int = 1) -> None:
        """Report work that is done to `on_progress`.

        Args:
            entries: The number of entries since the last report.
        """
        call_context.step(entries)


class Declaration(NamedTuple):
    """The arguments of `tool`."""

    effect: Effect
    rule: str | None
    default: bool
    for_models: bool
    advice: str | Callable[[Any], str]
    needs: Mapping[str, tuple[str, ...]]
    ways: tuple[str, ...]

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
    rule: str | None = None,
    default: bool = False,
    for_models: bool = True,
    advice: str | Callable[[Any], str] = "",
    needs: Mapping[str, tuple[str, ...]] = {},
    ways: tuple[str, ...] = (),
) -> Callable[[_F], _F]:
    """Declare a method or function as a tool.

    Args:
        effect: "none" needs no permission, "read" and "search" change nothing, "edit" and "write" change
            files, "manage" deletes, moves or restores them, and "execute" may do anything, as a command does.
            A function without a declaration counts as "execute".
        rule: The parameter that the text of a permission rule is about: a command line if the effect is
            "execute", as in `bash(git push*)`; otherwise any text, as in `fetch(https://example.org/*)`.
            By default rules are about the parameters with the hint `pathlib.Path`.
        default: True if `Workspace.tools()` includes it.
        for_models: False if it is never offered to a model.
        advice: A sentence for the system prompt, with methods as `{grep}`, or a function that returns it for
            the object of the method. It is left out unless all of the methods are offered.
        needs: Methods, each with the parameters that a model then sees; at least one of these methods must
            be offered too.
        ways: The values of `Policy.run` with which it is offered; by default all.

    Returns:
        A decorator that returns the function itself.

    Raises:
        InvalidArgumentError: The effect is unknown (`invalid_argument`).
    """
    if effect not in get_args(Effect):
        raise InvalidArgumentError(f"effect must be one of {', '.join(get_args(Effect))}, not {effect!r}.")
    declaration = Declaration(effect, rule, default, for_models, advice, needs, ways)

    def decorate(function: _F) -> _F:
        return declare(function, declaration)

    return decorate


def declare(function: _F, declaration: Declaration) -> _F:
    """Attach a declaration to a function and return the function."""
    function.__dict__["_agentfs_tool"] = declaration
    return function


def declaration_of(function: Any) -> Declaration | None:
    """Return the declaration of a function or method, or None."""
    return getattr(function, "_agentfs_tool", None)


def is_method(function: Any) -> bool:
    """Return True for a method of a workspace, which `enforcement.guard` has wrapped."""
    return hasattr(function, "_agentfs_guarded")


def declarations(cls: type[Any]) -> dict[str, Declaration]:
    """Return the declarations of a class by method, in order of definition."""
    names = dict.fromkeys(name for base in reversed(cls.__mro__) for name in vars(base))
    declared = {name: declaration_of(getattr(cls, name)) for name in names}
    return {name: each for name, each in declared.items() if each is not None}


def declared_tools(cls: type[Any]) -> dict[str, Declaration]:
    """Return the declarations of methods that may be offered to a model, default tools first."""
    offered = {name: each for name, each in declarations(cls).items() if each.for_models}
    return dict(sorted(offered.items(), key=lambda item: not item[1].default))


def offered_tools(workspace: Any) -> dict[str, Declaration]:
    """Return the declarations of methods that the policy of a workspace offers to a model."""
    declared, way = declared_tools(workspace.__class__), workspace.policy.run
    return {name: each for name, each in declared.items() if not each.ways or way in each.ways}
