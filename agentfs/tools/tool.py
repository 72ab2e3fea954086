"""`Tool`: a function that a model may call, the decorator `tool` that declares one, and `CallContext`."""

import inspect
import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, get_args

from agentfs.arguments.docstrings import read_docstring
from agentfs.arguments.hints import field_description, kind_of, resolve_hints, visible_name
from agentfs.arguments.kinds import Choice, Scalar
from agentfs.arguments.parameters import Parameter
from agentfs.base import call_context
from agentfs.base.advice import NextCall, Retry
from agentfs.errors import InvalidArgumentError
from agentfs.permissions import Effect
from agentfs.results import ToolResult

_F = TypeVar("_F", bound=Callable[..., Any])
# Tool names that all providers accept.
_TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
# Parameter names that most providers accept; the others are given an identifier.
_PARAMETER_NAME = re.compile(r"-{0,2}[A-Za-z][A-Za-z0-9_.-]{0,61}")
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
        """True if the program no longer waits for the call; the tool should end soon."""
        return self._execution is not None and self._execution.is_abandoned

    def progress(self, entries: int = 1) -> None:
        """Report work that is done to `on_progress`.

        Args:
            entries: The number of entries since the last report.
        """
        call_context.step(entries)


class RenderContext(NamedTuple):
    """The input of a renderer.

    Attributes:
        result: The result without the renderer; its text and its `next` name the offered tools.
        outcome: The value that the function returned, or the error that refused or ended the call.
        arguments: The arguments of the function, under its own names; incomplete if they were refused.
        tool: The tool that was called, or None if its name is unknown.
    """

    result: ToolResult
    outcome: Any
    arguments: Mapping[str, Any]
    tool: "Tool | None" = None


Renderer = Callable[[RenderContext], ToolResult]


class _Described(NamedTuple):
    """The parts of a tool that are read from the signature, the hints and the docstring of its function."""

    text: str
    parameters: tuple[Parameter, ...]
    context_name: str | None
    problems: list[str]


@dataclass(frozen=True, kw_only=True, eq=False)
class Tool:
    """A function that a model may call.

    A model sees the parameters before the `*` of the signature. A parameter with a name that is not an
    identifier has it in its hint: `Annotated[int, Name("-A")]`.

    Attributes:
        function: A function, which may be `async`, or a bound method, with type hints and a docstring.
        name: The name; by default that of the function.
        text: A description in place of that of the docstring.
        effect: The effect, as for `agentfs.tool`. A tool that declares none counts as "execute".
        rule: The parameter that the text of a permission rule is about.
        render: Returns the final result, for successes, refusals and failures.
        expose: Parameters after the `*` that a model sees.
        default: True if `Workspace.tools()` includes it.
        for_models: False if it is never offered to a model.
        advice: A sentence for the system prompt, with methods as `{grep}`, or a function that returns it for
            the object of the method. It is left out unless all of the methods are offered.
        needs: Methods, each with the parameters that a model then sees; at least one of these methods must
            be offered too.
        ways: The values of `Policy.run` with which it is offered; by default all.
        permission_inside: True if the function does everything by methods of a workspace, which check their
            own calls. It is then not asked about, and not refused, as a whole.
        methods: Workspace methods that calls of this tool replace, with the arguments that select each. By
            default the method of the same name.
        renames: The function's own name for a parameter of these methods, if it differs.
        follow: Returns the arguments of this tool for a suggested call of a method. If it is or returns None,
            `methods` and `renames` decide.
        retry: Returns changes of this tool's arguments for changes of a method's arguments, given the
            arguments of the call; None if there are none. By default only names change.
    """

    function: Callable[..., Any]
    name: str = ""
    text: str = ""
    effect: Effect = "execute"
    rule: str | None = None
    render: Renderer | None = None
    expose: tuple[str, ...] = ()
    default: bool = False
    for_models: bool = True
    advice: str | Callable[[Any], str] = ""
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    ways: tuple[str, ...] = ()
    permission_inside: bool = False
    methods: Mapping[str, Mapping[str, Any]] | None = None
    renames: Mapping[str, str] = field(default_factory=dict[str, str])
    follow: Callable[[NextCall], Mapping[str, Any] | None] | None = None
    retry: Callable[[Retry, Mapping[str, Any]], Retry | None] | None = None
    # Shared by the copies of a tool for other objects: each call of a plugin of `wave` makes new ones.
    _descriptions: dict[Any, _Described] = field(default_factory=dict[Any, _Described], repr=False)

    def __post_init__(self) -> None:
        if self.effect not in get_args(Effect):
            known = ", ".join(get_args(Effect))
            raise InvalidArgumentError(f"effect must be one of {known}, not {self.effect!r}.")
        object.__setattr__(self, "name", self.name or self.own_name)

    @property
    def own_name(self) -> str:
        """The function's own name."""
        return str(getattr(self.function, "__name__", ""))

    @property
    def event_name(self) -> str:
        """Our own name of the tool: the method that its calls replace, or the name of the function."""
        methods = [*self.stands_for]
        return methods[0] if len(methods) == 1 else self.own_name

    @property
    def stands_for(self) -> Mapping[str, Mapping[str, Any]]:
        """The workspace methods that its calls replace, with the arguments that select each."""
        return {self.own_name: {}} if self.methods is None else self.methods

    @cached_property
    def checks_itself(self) -> bool:
        """True for methods of a workspace, and for tools that only call such methods."""
        return self.permission_inside or is_method(self.function)

    @cached_property
    def is_async(self) -> bool:
        """True if the function is a coroutine function."""
        return inspect.iscoroutinefunction(self.function)

    @property
    def description(self) -> str:
        """The description for the model."""
        return self.text or self._described.text

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that a model sees."""
        return self._described.parameters

    @property
    def context_name(self) -> str | None:
        """The parameter that gets the `CallContext`, or None."""
        return self._described.context_name

    @property
    def rule_parameter(self) -> Parameter | None:
        """The parameter that the text of a permission rule is about, or None."""
        return next((each for each in self.parameters if each.target == self.rule), None)

    @cached_property
    def visible_names(self) -> dict[str, str]:
        """The visible name of each parameter, by the function's own name."""
        return {parameter.target: parameter.name for parameter in self.parameters}

    def call_arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments under the function's own names."""
        return {each.target: values[each.name] for each in self.parameters if each.name in values}

    def advice_text(self) -> str:
        """Return the sentence for the system prompt, or ""."""
        return self.advice if isinstance(self.advice, str) else self.advice(self.function.__self__)  # type: ignore[attr-defined] # a method

    def check(self) -> "Tool":
        """Return this tool; raise `invalid_argument` with every reason why no model can call it."""
        own = self.own_name
        if not (own and _TOOL_NAME.fullmatch(self.name)):
            raise InvalidArgumentError(
                f"{repr(self.name if own else self.function)[:100]} cannot be a tool: "
                "it has no name of at most 64 ASCII letters, digits and underscores.",
                hint="Pass a plain function or a bound method; wrap a lambda or a partial in a `def`.",
            )
        problems = [*self._described.problems]
        if not self.description:
            problems.append("its docstring has no text before the sections")
        if self.rule is not None and self.rule_parameter is None:
            problems.append(f"its rules are about `{self.rule}`, which is not one of its parameters")
        elif self.rule_parameter and not isinstance(self.rule_parameter.value_kind, (Choice, Scalar)):
            problems.append(f"its rules are about `{self.rule}`, which is not one text")
        if problems:
            raise InvalidArgumentError(f"{self.name} cannot be a tool: {'; '.join(problems)}.")
        return self

    @cached_property
    def _described(self) -> _Described:
        key = getattr(self.function, "__func__", self.function), self.expose
        if key not in self._descriptions:
            self._descriptions[key] = _describe(self.function, self.expose)
        return self._descriptions[key]


def _describe(function: Callable[..., Any], exposed: Sequence[str]) -> _Described:
    docstring = read_docstring(inspect.getdoc(function))
    hints = resolve_hints(function)
    try:
        signature = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return _Described(docstring.description, (), None, ["it has no signature"])
    problems = [f"it has no parameter `{each}`" for each in exposed if each not in signature]
    contexts = [name for name in signature if CallContext in (hints.get(name), *get_args(hints.get(name)))]
    if len(contexts) > 1:
        problems.append(f"{' and '.join(f'`{each}`' for each in contexts)} both take the CallContext")
    parameters: list[Parameter] = []
    for own in (each for each in signature.values() if each.name not in contexts):
        try:
            if own.kind is own.POSITIONAL_OR_KEYWORD or own.name in exposed:
                text = docstring.parameters.get(own.name, "")
                parameters.append(_parameter(own, hints.get(own.name, own.empty), text))
            else:
                _check_hidden(own)
        except InvalidArgumentError as error:
            problems.append(f"`{own.name}`: {error.message}")
    shown = Counter(parameter.identifier for parameter in parameters)
    problems += [f"two parameters are named `{name}`" for name, count in shown.items() if count > 1]
    return _Described(docstring.description, tuple(parameters), (*contexts, None)[0], problems)


def _check_hidden(declared: inspect.Parameter) -> None:
    if declared.kind is declared.POSITIONAL_ONLY:
        raise InvalidArgumentError("it is positional-only, and a model names its arguments")
    if declared.kind is declared.KEYWORD_ONLY and declared.default is declared.empty:
        raise InvalidArgumentError("it is after the `*`, hidden from the model, and has no default")


def _parameter(declared: inspect.Parameter, hint: Any, text: str) -> Parameter:
    if hint is declared.empty:
        raise InvalidArgumentError("it has no type hint")
    if isinstance(hint, Exception):
        raise InvalidArgumentError(f"its hint cannot be resolved ({hint}); import it at run time")
    name = visible_name(hint) or declared.name
    if not _PARAMETER_NAME.fullmatch(name):
        raise InvalidArgumentError(
            "its name must consist of ASCII letters, digits and underscores, and begin with a letter"
        )
    required = declared.default is declared.empty
    default = None if required else declared.default
    return Parameter(name, kind_of(hint), text or field_description(hint), required, default, declared.name)


def tool(*, effect: Effect, rule: str | None = None, **fields: Any) -> Callable[[_F], _F]:
    """Declare a method or function as a tool.

    Args:
        effect: "none" needs no permission, "read" changes nothing, "write" changes files, and "execute" may
            do anything, as a command does. A function without a declaration counts as "execute".
        rule: The parameter that the text of a permission rule is about: a command line if the effect is
            "execute", as in `bash(git push*)`; otherwise any text, as in `fetch(https://example.org/*)`.
            By default rules are about the parameters with the hint `pathlib.Path`.
        **fields: More fields of `agentfs.tools.tool.Tool`, for a method of a workspace: `default=True` if
            `Workspace.tools()` includes it, and `advice`.

    Returns:
        A decorator that returns the function itself.

    Raises:
        InvalidArgumentError: The effect is unknown (`invalid_argument`).
    """

    def decorate(function: _F) -> _F:
        function.__dict__["_agentfs_tool"] = Tool(function=function, effect=effect, rule=rule, **fields)
        return function

    return decorate


def declaration_of(function: Any) -> Tool | None:
    """Return the tool that a function or method was declared as, or None."""
    return getattr(function, "_agentfs_tool", None)


def tool_of(
    given: Callable[..., Any] | Tool, *, prefix: str = "", expose: Mapping[str, Sequence[str]] = {}
) -> Tool:
    """Return the tool of a function, or a tool with a prefix; raise `invalid_argument` if there is none.

    Args:
        given: The function, or a tool.
        prefix: A prefix for its name.
        expose: Parameters after the `*` that a model sees, by the function's own name.
    """
    made = given if isinstance(given, Tool) else declaration_of(given) or Tool(function=given)
    if not isinstance(given, Tool):
        made = replace(made, function=given)
    shown = tuple(expose.get(made.own_name, ()))
    if prefix or shown:
        made = replace(made, name=f"{prefix}{made.name}", expose=(*made.expose, *shown))
    return made.check()


def is_method(function: Any) -> bool:
    """Return True for a method of a workspace, which `tools.gate` has wrapped."""
    return hasattr(function, "_agentfs_guarded")


def declarations(cls: type[Any]) -> dict[str, Tool]:
    """Return the declared methods of a class by name, in order of definition."""
    functions = {name: each for base in reversed(cls.__mro__) for name, each in vars(base).items()}
    return {name: made for name, each in functions.items() if (made := declaration_of(each)) is not None}
