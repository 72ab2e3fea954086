"""`ToolSpec` and the tool that it describes, made from a callable's signature, hints and docstring."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

from agentfs.arguments.constraints import field_description
from agentfs.arguments.docstrings import read_docstring
from agentfs.arguments.hints import kind_of, resolve_hints
from agentfs.arguments.kinds import Kind, Parameter, Record, object_schema
from agentfs.base.advice import METHODS, Names, NextCall, Retry
from agentfs.errors import InvalidArgumentError
from agentfs.permissions import Effect
from agentfs.providers import STRICT_FORMATS, provider_of
from agentfs.providers.provider import Schema, SchemaRules, ToolDescription
from agentfs.results import Result, ToolResult
from agentfs.tools.declaration import CallContext, declaration_of, is_method

# Tool names that all providers accept.
_TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
# Parameter names that most providers accept; the others are given an identifier.
_PARAMETER_NAME = re.compile(r"-{0,2}[A-Za-z][A-Za-z0-9_.-]{0,61}")


class RenderContext(NamedTuple):
    """The input of a renderer.

    Attributes:
        result: The result without the renderer; its text and its `next` name the offered tools.
        outcome: The value that the callable returned, or the error that refused or ended the call.
        arguments: The arguments of the callable, under its own names; incomplete if they were refused.
        names: The names of the offered tools, for texts that the renderer makes.
    """

    result: ToolResult
    outcome: Any
    arguments: Mapping[str, Any]
    names: Names = METHODS


@dataclass(frozen=True)
class ToolSpec:
    """The presentation of one callable to a model: its names, texts, defaults and output.

    Every field uses the callable's own parameter names, except where it says "visible name". A model sees the
    visible names; the callable's own names are accepted too.

    Attributes:
        target: A function, which may be `async`, or a bound method, with type hints and a docstring.
        name: The name of the tool; by default that of the callable.
        description: The description of the tool; by default from the docstring.
        parameters: The visible name of a parameter; it need not be an identifier, for example "-A".
        descriptions: The description of a parameter; by default from the docstring.
        expose: Parameters after the `*` that a model sees.
        hide: Parameters before the `*` that a model does not see; each needs a default or a preset.
        preset: Values of parameters that the model does not pass or does not see.
        order: The parameters to show first, in this order; the others follow.
        aliases: More names under which the tool can be called.
        effect: The effect, as for `agentfs.tool`; by default the one that the callable declares. A tool
            without one counts as "execute".
        rule: The parameter that the text of a permission rule is about, as for `agentfs.tool`.
        calls_methods: True if the callable does everything by methods of a workspace, which check their own
            calls, as the tools of a dialect do. It is then not asked about, and not refused, as a whole.
        methods: Workspace methods that calls of this tool replace, with the arguments, by visible name, that
            select each. By default the method of the same name.
        renames: The callable's own name for a parameter of these methods, if it differs.
        map_next_call: Returns the arguments of this tool, by visible name, for a suggested call of a method.
            If it is or returns None, `methods`, `renames` and the visible parameters decide.
        map_retry: Returns changes of this tool's arguments for changes of a method's arguments, given the
            arguments of the call, all by visible name; None if there are none. By default only names change.
        render: Returns the final result, for successes, refusals and failures.
    """

    target: Callable[..., Any]
    name: str | None = None
    description: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    descriptions: Mapping[str, str] = field(default_factory=dict[str, str])
    expose: Sequence[str] = ()
    hide: Sequence[str] = ()
    preset: Mapping[str, Any] = field(default_factory=dict[str, Any])
    order: Sequence[str] = ()
    aliases: Sequence[str] = ()
    effect: Effect | None = None
    rule: str | None = None
    calls_methods: bool = False
    methods: Mapping[str, Mapping[str, Any]] | None = None
    renames: Mapping[str, str] = field(default_factory=dict[str, str])
    map_next_call: Callable[[NextCall], Mapping[str, Any] | None] | None = None
    map_retry: Callable[[Retry, Mapping[str, Any]], Retry | None] | None = None
    render: Callable[[RenderContext], ToolResult] | None = None


class Tool(NamedTuple):
    """One callable as a model sees it, and its spec.

    Attributes:
        name: The name, with the prefix of the toolset.
        description: The description.
        parameters: The visible parameters.
        returns: The hint of the returned value.
        effect: The effect, or None if it is unknown.
        methods: The workspace methods that its calls replace, with the arguments that select each.
        spec: The spec.
        is_async: True if the callable is a coroutine function, or an async generator function.
        rule_parameter: The parameter that the text of a permission rule is about, or None.
        context_name: The callable's parameter that gets the `CallContext`, or None.
        render: The `render` of the toolset for which it was made.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    returns: Any
    effect: Effect | None
    methods: Mapping[str, Mapping[str, Any]]
    spec: ToolSpec
    is_async: bool
    rule_parameter: Parameter | None = None
    context_name: str | None = None
    render: Callable[[RenderContext], ToolResult] | None = None

    @property
    def own_name(self) -> str:
        """The callable's own name."""
        return getattr(self.spec.target, "__name__", "")

    @property
    def event_name(self) -> str:
        """Our own name of the tool: the method that its calls replace, or its name without the prefix."""
        methods = [*self.methods]
        return methods[0] if len(methods) == 1 else self.spec.name or self.own_name

    @property
    def returns_result(self) -> bool:
        """True if it returns the result of a method, so that it changes files through the workspace."""
        returned = (self.returns, *get_args(self.returns))
        return any(isinstance(each, type) and issubclass(each, Result) for each in returned)

    @property
    def checks_itself(self) -> bool:
        """True for methods of a workspace, and for tools that only call such methods."""
        return is_method(self.spec.target) or self.spec.calls_methods

    @property
    def visible_names(self) -> dict[str, str]:
        """The visible name of each parameter, by the callable's own name."""
        return {parameter.target: parameter.name for parameter in self.parameters}

    def call_arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments and presets under the callable's own names."""
        visible = {each.target: values[each.name] for each in self.parameters if each.name in values}
        return {**self.spec.preset, **visible}


def make_tool(target: Callable[..., Any] | ToolSpec, *, prefix: str = "", expose: Sequence[str] = ()) -> Tool:
    """Make a tool of a callable; raise `invalid_argument` with every problem of its declaration."""
    spec = target if isinstance(target, ToolSpec) else ToolSpec(target)
    own_name: Any = getattr(spec.target, "__name__", None)
    name = f"{prefix}{spec.name or own_name}"
    check_tool_name(name if isinstance(own_name, str) else "", spec.name or spec.target)
    docstring = read_docstring(inspect.getdoc(spec.target))
    description = spec.description or docstring.description
    problems = [] if description else ["its docstring has no text before the sections"]
    hints, unresolved = resolve_hints(spec.target)
    try:
        signature = inspect.signature(spec.target).parameters
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{name} cannot be a tool: it has no signature.") from None
    exposed = (*spec.expose, *expose)
    named = (*spec.parameters, *spec.descriptions, *exposed, *spec.hide, *spec.preset, *spec.order)
    problems += [f"it has no parameter `{each}`" for each in dict.fromkeys(named) if each not in signature]
    descriptions = {**docstring.parameters, **spec.descriptions}
    contexts = [each for each, hint in hints.items() if each in signature and _is_context(hint)]
    if len(contexts) > 1:
        problems.append(f"{' and '.join(f'`{each}`' for each in contexts)} both take the CallContext")
    parameters: list[Parameter] = []
    for own in (each for each in dict.fromkeys((*spec.order, *signature)) if each in signature):
        declared = signature[own]
        if own in contexts:
            continue
        visible = (
            own in exposed
            if declared.kind is declared.KEYWORD_ONLY
            else declared.kind is declared.POSITIONAL_OR_KEYWORD and own not in spec.hide
        )
        if not visible:
            problems += _problem_of_hidden(declared, spec)
            continue
        if own in unresolved:
            reason = unresolved[own]
            problems.append(f"`{own}`: its hint cannot be resolved ({reason}); import it at run time")
            continue
        try:
            parameters.append(_parameter(declared, hints, descriptions, spec))
        except InvalidArgumentError as error:
            problems.append(f"`{own}`: {error.message}")
    names = [parameter.name for parameter in parameters]
    problems += [f"two parameters are named `{each}`" for each in sorted(set(names)) if names.count(each) > 1]
    declaration = declaration_of(spec.target)
    rule = spec.rule or (declaration.rule if declaration else None)
    subject = next((each for each in parameters if each.target == rule), None)
    if spec.effect not in (None, *get_args(Effect)):
        problems.append(f"its effect {spec.effect!r} is not one of {', '.join(get_args(Effect))}")
    if rule is not None and subject is None:
        problems.append(f"its rules are about `{rule}`, which is not one of its parameters")
    if problems:
        raise InvalidArgumentError(f"{name} cannot be a tool: {'; '.join(problems)}.")
    returns = hints.get("return")
    effect = spec.effect or (declaration.effect if declaration else None)
    methods = {own_name: dict[str, Any]()} if spec.methods is None else spec.methods
    is_async = inspect.iscoroutinefunction(spec.target) or inspect.isasyncgenfunction(spec.target)
    context_name = contexts[0] if contexts else None
    return Tool(
        name,
        description,
        tuple(parameters),
        returns,
        effect,
        methods,
        spec,
        is_async,
        rule_parameter=subject,
        context_name=context_name,
    )


def _is_context(hint: Any) -> bool:
    return CallContext in (hint, *get_args(hint))


def check_tool_name(name: str, named: Any) -> None:
    """Raise `invalid_argument` if a provider refuses the name of a tool."""
    if not _TOOL_NAME.fullmatch(name):
        raise InvalidArgumentError(
            f"{repr(named)[:100]} cannot be a tool: "
            "it has no name of at most 64 ASCII letters, digits and underscores.",
            hint="Pass a plain function or a bound method; wrap a lambda or a partial in a `def`.",
        )


def _problem_of_hidden(declared: inspect.Parameter, spec: ToolSpec) -> list[str]:
    if declared.kind is declared.POSITIONAL_ONLY:
        return [f"`{declared.name}` is positional-only; a model names its arguments"]
    if declared.default is not declared.empty or declared.name in spec.preset:
        return []
    if declared.kind is declared.KEYWORD_ONLY:
        return [f"`{declared.name}` is after the `*`, hidden from the model, and has no default"]
    if declared.kind is declared.POSITIONAL_OR_KEYWORD:
        return [f"`{declared.name}` is hidden from the model and has no default"]
    return []


def _parameter(
    declared: inspect.Parameter, hints: Mapping[str, Any], descriptions: Mapping[str, str], spec: ToolSpec
) -> Parameter:
    own = declared.name
    name = spec.parameters.get(own, own)
    if not _PARAMETER_NAME.fullmatch(name):
        raise InvalidArgumentError(
            "its name must consist of ASCII letters, digits and underscores, and begin with a letter"
        )
    if own not in hints:
        raise InvalidArgumentError("it has no type hint")
    default = spec.preset.get(own, declared.default)
    required = default is declared.empty
    kind = _kind_for_model(hints[own])
    text = descriptions.get(own) or field_description(hints[own])
    return Parameter(name, kind, text, required, None if required else default, own)


def undescribed(tool: Tool) -> list[str]:
    """Return the parameters, and the members of their records, that have no description."""
    found = [f"`{each.name}` under `Args:`" for each in tool.parameters if not each.description]
    records = (kind for each in tool.parameters for kind in each.kind.walk() if isinstance(kind, Record))
    for record in records:
        found += [
            f"`{each.name}` of {record.make.__name__}" for each in record.members if not each.description
        ]
    return found


def _kind_for_model(hint: Any) -> Kind:
    """Return the kind of a hint; raise `invalid_argument` if no schema can be made for it."""
    kind = kind_of(hint)
    kind.schema(SchemaRules())
    return kind


def exposable(target: Callable[..., Any]) -> list[str]:
    """Return the parameters after the `*` that a schema can be made for."""
    hints, _ = resolve_hints(target)
    described = read_docstring(inspect.getdoc(target)).parameters
    found: list[str] = []
    for declared in inspect.signature(target).parameters.values():
        if declared.kind is declared.KEYWORD_ONLY and declared.name in described and declared.name in hints:
            try:
                _kind_for_model(hints[declared.name])
            except InvalidArgumentError:
                continue
            found.append(declared.name)
    return found


_OUTPUT = SchemaRules(output=True)


def tool_schemas(
    tools: Sequence[Tool], name: str, *, strict: bool = False, native: bool = False
) -> list[Schema]:
    """Return the schemas of tools in a format; raise `invalid_argument` if it is unknown."""
    provider = provider_of(name)
    form = provider.formats[name]
    rules = form.strict_rules if strict else form.rules
    if rules is None:
        raise InvalidArgumentError(
            f"The format {name!r} has no strict mode.",
            hint=f"Leave `strict` out, or use one of {', '.join(STRICT_FORMATS)}.",
        )
    own_types: Mapping[str, Schema] = provider.native.get(name, {}) if native else {}
    schemas: list[Schema] = []
    for tool in tools:
        # A tool with another name is not the one that the models know.
        if tool.checks_itself and tool.name == tool.own_name and tool.name in own_types:
            schemas.append(dict(own_types[tool.name]))
            continue
        try:
            parameters = object_schema(tool.parameters, rules)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"{tool.name} has no strict schema: {error.message}.", hint="Leave out `strict` or this tool."
            ) from None
        output = _output_schema(tool) if form.has_output else None
        described = ToolDescription(tool.name, tool.description, parameters, tool.effect, output)
        schemas.append(provider.schema(described, name, strict=strict))
    return schemas


def _output_schema(tool: Tool) -> Schema | None:
    """Return the schema of a result's data, or None if the result is not typed."""
    if (
        tool.spec.render
        or tool.render
        or not (isinstance(tool.returns, type) and issubclass(tool.returns, Result))
    ):
        return None
    return kind_of(tool.returns).schema(_OUTPUT)
