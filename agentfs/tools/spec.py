"""From a callable's signature and docstring to a tool: its name, description and visible parameters."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_type_hints

from agentfs.advice import METHODS, Names, NextCall, Retry
from agentfs.errors import InvalidArgumentError
from agentfs.permissions import Effect
from agentfs.providers import FORMATS, STRICT_FORMATS
from agentfs.providers.provider import Schema, SchemaRules, ToolDescription
from agentfs.results import Result, ToolResult
from agentfs.tools.declaration import effect_of, read_docstring
from agentfs.tools.hints import kind_of
from agentfs.tools.kinds import Kind, Parameter, object_schema

# What all providers take as the name of a tool.
_TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
# What most providers take as the name of a parameter; a format that does not is given an identifier instead.
_PARAMETER_NAME = re.compile(r"-{0,2}[A-Za-z][A-Za-z0-9_.-]{0,61}")


class RenderContext(NamedTuple):
    """What a renderer is given.

    Attributes:
        result: The result as it is without the renderer; its `next` and its text name the tools at hand.
        outcome: What the callable returned, or the error that refused or ended the call.
        arguments: What the callable was called with, under its own names; incomplete when the arguments were
            refused.
        names: What the tools at hand are called, for texts that the renderer makes itself.
    """

    result: ToolResult
    outcome: Any
    arguments: Mapping[str, Any]
    names: Names = METHODS


@dataclass(frozen=True)
class ToolSpec:
    """How one callable is presented to a model: other names, texts, defaults and output than its own.

    Parameters are meant by the callable's own names throughout; the names a model sees are those of
    `parameters` alone, and the callable's own name and its well-known aliases are accepted as well.

    Attributes:
        target: The callable: a plain function or a bound method, typed and documented.
        name: The name of the tool.
        description: What the tool does.
        parameters: For a parameter, the name that a model sees; it may be no identifier, such as "-A".
        descriptions: For a parameter, the description that a model sees.
        expose: Parameters after the `*` that a model sees too.
        hide: Parameters before the `*` that a model does not see; each needs a default or a preset.
        preset: Values that hold where the model gives none; for a parameter that it does not see, always.
        order: The parameters to show first, in this order; the others follow.
        aliases: Other names under which the tool may be called.
        effect: What it does to the world: "none", "read" and "search" change nothing, "write" changes the
            same when repeated, "edit" and "change" perhaps more each time. By default what the callable
            declares (`agentfs.tools.declaration.tool`) or of one returning the same result, else unknown.
        methods: The methods of a workspace that a text means by this tool, each with the arguments, by the
            names that a model sees, that make it that method. By default the one of its own name.
        renames: For a parameter of these methods, the callable's own for it, where they differ.
        map_next_call: Turns a call of a method, which continues a result or is advised by an error, into
            arguments of this tool by the names that a model sees, or None to leave it to the general rule: a
            tool makes the calls of its `methods` that its parameters can express.
        map_retry: Turns other arguments of a method into other arguments of this tool, given those that it
            was called with, all by the names that a model sees, or None where it has none for them. By
            default the parameters of the same names, or of those that `renames` has.
        render: Makes the result that is returned from the one there would be, for successes, refusals and
            failures alike.
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
    methods: Mapping[str, Mapping[str, Any]] | None = None
    renames: Mapping[str, str] = field(default_factory=dict[str, str])
    map_next_call: Callable[[NextCall], Mapping[str, Any] | None] | None = None
    map_retry: Callable[[Retry, Mapping[str, Any]], Retry | None] | None = None
    render: Callable[[RenderContext], ToolResult] | None = None


class Tool(NamedTuple):
    """One callable as a model sees it, and the spec that it was made from.

    `returns` is the hint of what the callable returns, `effect` None where that is not known; `methods` are
    the methods that it calls, with the arguments that select each.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    returns: Any
    effect: Effect | None
    methods: Mapping[str, Mapping[str, Any]]
    spec: ToolSpec

    @property
    def own_name(self) -> str:
        """The callable's own name."""
        return getattr(self.spec.target, "__name__", "")

    @property
    def visible_names(self) -> dict[str, str]:
        """The name that a model sees for each of the callable's own names."""
        return {parameter.target: parameter.name for parameter in self.parameters}

    def call_arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments under the callable's own names, the presets among them."""
        visible = {each.target: values[each.name] for each in self.parameters if each.name in values}
        return {**self.spec.preset, **visible}


def make_tool(target: Callable[..., Any] | ToolSpec, *, prefix: str = "", expose: Sequence[str] = ()) -> Tool:
    """Describe a callable as a tool; raise `invalid_argument` with all that it lacks."""
    spec = target if isinstance(target, ToolSpec) else ToolSpec(target)
    own_name = getattr(spec.target, "__name__", None)
    name = f"{prefix}{spec.name or own_name}"
    if not isinstance(own_name, str) or not _TOOL_NAME.fullmatch(name):
        raise InvalidArgumentError(
            f"{repr(spec.name or spec.target)[:100]} cannot be a tool: "
            "it has no name of ASCII letters, digits and underscores.",
            hint="Pass a plain function or a bound method; wrap a lambda or a partial in a `def`.",
        )
    docstring = read_docstring(inspect.getdoc(spec.target))
    description = spec.description or docstring.description
    problems = [] if description else ["its docstring has no text before the sections"]
    if inspect.iscoroutinefunction(spec.target):
        problems.append(
            "it is a coroutine function; tools are plain functions, and `acall` runs them in a thread"
        )
    try:
        hints = get_type_hints(spec.target, include_extras=True)
    except Exception as error:  # noqa: BLE001 - whatever a string evaluates to
        problems.append(f"its hints cannot be resolved ({error}); import them at run time")
        hints = {}
    try:
        signature = inspect.signature(spec.target).parameters
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{name} cannot be a tool: it has no signature.") from None
    exposed = (*spec.expose, *expose)
    named = (*spec.parameters, *spec.descriptions, *exposed, *spec.hide, *spec.preset, *spec.order)
    problems += [f"it has no parameter `{each}`" for each in dict.fromkeys(named) if each not in signature]
    descriptions = {**docstring.parameters, **spec.descriptions}
    parameters: list[Parameter] = []
    for own in (each for each in dict.fromkeys((*spec.order, *signature)) if each in signature):
        declared = signature[own]
        visible = (
            own in exposed
            if declared.kind is declared.KEYWORD_ONLY
            else declared.kind is declared.POSITIONAL_OR_KEYWORD and own not in spec.hide
        )
        if not visible:
            problems += _problem_of_hidden(declared, spec)
            continue
        try:
            parameters.append(_parameter(declared, hints, descriptions, spec))
        except InvalidArgumentError as error:
            problems.append(f"`{own}`: {error.message}")
    names = [parameter.name for parameter in parameters]
    problems += [f"two parameters are named `{each}`" for each in sorted(set(names)) if names.count(each) > 1]
    if problems:
        raise InvalidArgumentError(f"{name} cannot be a tool: {'; '.join(problems)}.")
    returns = hints.get("return")
    effect = spec.effect or effect_of(spec.target, returns)
    methods = {own_name: dict[str, Any]()} if spec.methods is None else spec.methods
    return Tool(name, description, tuple(parameters), returns, effect, methods, spec)


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
            "no name of ASCII letters, digits and underscores that begins with a letter"
        )
    if own not in hints:
        raise InvalidArgumentError("it has no type hint")
    if not descriptions.get(own):
        raise InvalidArgumentError("the docstring does not describe it under `Args:`")
    default = spec.preset.get(own, declared.default)
    required = default is declared.empty
    kind = _kind_for_model(hints[own])
    return Parameter(name, kind, descriptions[own], required, None if required else default, own)


def _kind_for_model(hint: Any) -> Kind:
    """Return the kind of a hint; raise `invalid_argument` if it has no schema."""
    kind = kind_of(hint)
    kind.schema(SchemaRules())
    return kind


def exposable(target: Callable[..., Any]) -> list[str]:
    """Return the parameters after the `*` of a callable that a schema can be made for."""
    hints = get_type_hints(target, include_extras=True)
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


def tool_schemas(tools: Sequence[Tool], name: str, *, strict: bool = False) -> list[Schema]:
    """Return the schemas of tools in a format of `FORMATS`; raise `invalid_argument` if there is none."""
    provider = FORMATS.get(name)
    if provider is None:
        raise InvalidArgumentError(f"There is no schema format {name!r}; there are {', '.join(FORMATS)}.")
    form = provider.formats[name]
    rules = form.strict_rules if strict else form.rules
    if rules is None:
        raise InvalidArgumentError(
            f"The format {name!r} has no strict mode.",
            hint=f"Leave `strict` out, or use one of {', '.join(STRICT_FORMATS)}.",
        )
    described: list[ToolDescription] = []
    for tool in tools:
        try:
            parameters = object_schema(tool.parameters, rules)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"{tool.name} has no strict schema: {error.message}.",
                hint="Leave `strict` out, or this tool.",
            ) from None
        output = _output_schema(tool) if form.has_output else None
        described.append(ToolDescription(tool.name, tool.description, parameters, tool.effect, output))
    return provider.schemas(described, name, strict=strict)


def _output_schema(tool: Tool) -> Schema | None:
    """Return the schema of the data of a result, or None if there is no typed result."""
    if tool.spec.render or not (isinstance(tool.returns, type) and issubclass(tool.returns, Result)):
        return None
    return kind_of(tool.returns).schema(_OUTPUT)
