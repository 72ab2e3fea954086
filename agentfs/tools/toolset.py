"""`Toolset`: the tools that a model may call, their schemas for each provider, and their calls."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import groupby
from string import Formatter
from typing import Any, Self

from agentfs.arguments.checks import checks_arguments
from agentfs.arguments.kinds import Schema, object_schema, short_repr
from agentfs.base import call_context
from agentfs.base.advice import METHODS, Names
from agentfs.base.lazy import find_dialect
from agentfs.concurrency.runner import Runner, complete, has_event_loop
from agentfs.errors import AgentFSError, InvalidArgumentError, UnknownToolError
from agentfs.events import EventEmitter, OnEvent, current_call_id, provider_call
from agentfs.habits.lenient import parse_arguments
from agentfs.limits import Limits
from agentfs.permissions import GROUPS, READING
from agentfs.policy import Policy
from agentfs.providers import STRICT_FORMATS, provider_of, read_calls, replies
from agentfs.providers.provider import ToolCall
from agentfs.results import Coercion, Result, ToolResult
from agentfs.tools.binding import BoundCall, bind_call, refusal, resolve_unknown_tool
from agentfs.tools.functions import Hints, plain_function
from agentfs.tools.gate import (
    GatedBy,
    await_in_time,
    check_tool_rule,
    permission_of,
    rule_names,
    run_in_time,
    within_output_limit,
)
from agentfs.tools.result import ToolNames, from_error, from_exception, from_value
from agentfs.tools.tool import (
    CallContext,
    RenderContext,
    Renderer,
    Tool,
    declarations,
    is_method,
    offered_tools,
    tool_of,
)

_INSTRUCTIONS_START = "Paths are relative to the workspace root and use `/`."
_INSTRUCTIONS_END = (
    "Square brackets name what an answer leaves out, with the call that gets it.",
    "An error says what is there instead: correct the call rather than repeat it.",
)


class Toolset:
    """Callables that a model may call by name.

    Each is a function or a bound method with type hints and a Google-style docstring. The model sees the
    parameters before the `*` of its signature; the others keep their defaults. An `async` function runs on
    the event loop of `acall` and `aanswer`. `call` and `answer` give it an event loop of its own.

    `tools + [function]` adds tools. `len(tools)` counts them, `"read" in tools` looks one up by name, and
    iteration yields each as an `agentfs.tools.tool.Tool`. A toolset never changes, and is as
    thread-safe as its callables.
    """

    _rules_checked = False
    _rule_names: tuple[str, ...] = ()  # also of tools that were left out later

    @checks_arguments
    def __init__(
        self,
        callables: Iterable[Callable[..., Any] | Tool],
        *,
        expose: Mapping[str, Sequence[str]] | None = None,
        prefix: str = "",
        on_event: OnEvent | None = None,
        concurrency: int = 8,
        render: Renderer | None = None,
        timeout: float | None = None,
        workspace: GatedBy | None = None,
    ) -> None:
        """Describe callables as tools.

        Args:
            callables: The callables, or tools of another toolset, in the order of `names`, `schemas` and
                `functions`.
            expose: Parameters after the `*` that a model sees, by the callable's own name.
            prefix: A prefix for the name of each tool.
            on_event: Called with the events of each call, in the thread that runs it.
            concurrency: The most calls of `acall`, `answer` and `aanswer` that run at once. Calls of `async`
                functions do not count.
            render: Returns the final result of each call of a tool that has no `render` of its own. It also
                sees refusals, failures and calls of unknown tools.
            timeout: Seconds that one call may take; by default `Limits.timeout` of the workspace.
            workspace: The workspace whose rules, limits and events hold for all tools; by default that of
                the first method of a workspace among them.

        Raises:
            InvalidArgumentError: A callable cannot be a tool, two have the same name, or `expose` names
                something unknown (`invalid_argument`). A rule of the workspace names neither a tool nor a
                group; this is raised when the program's own tools are added, or at the first use.
        """
        self._render = render
        self._runner = Runner(concurrency)
        exposed = dict(expose or {})
        made = (tool_of(each, prefix=prefix, expose=exposed.get(_own_name(each), ())) for each in callables)
        self._set_tools(replace(tool, render=tool.render or render) for tool in made)
        self._given = workspace, on_event, timeout
        self._settle()
        if unknown := exposed.keys() - {tool.own_name for tool in self}:
            raise InvalidArgumentError(f"`expose` names {', '.join(sorted(unknown))}, which is not offered.")

    def _set_tools(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if (other := self._tools.get(tool.name)) is not None:
                both = " and ".join(map(_origin, (other, tool)))
                raise InvalidArgumentError(
                    f"Two of the tools are named {tool.name}: {both}.",
                    hint="Give one of the functions another name, or pass a `prefix`.",
                )
            self._tools[tool.name] = tool

    def _check_rules(self, *, added: bool = False) -> None:
        """Raise `invalid_argument` for a rule that can match nothing.

        A toolset of methods alone may get tools later, so it is checked at its first use.
        """
        own = [tool for tool in self if not tool.checks_itself]
        if self._workspace is None or self._rules_checked or (added and not own):
            return
        policy: Policy = self._workspace.policy
        methods = [
            name for name, each in declarations(type(self._workspace)).items() if each.effect != "none"
        ]
        known = (*self._rule_names, *methods, *(name for tool in own for name in rule_names(tool)))
        self._rule_names = tuple(dict.fromkeys(known))
        for rule in (*policy.deny_rules, *policy.ask_rules, *policy.allow_rules):
            if rule.name not in GROUPS:
                check_tool_rule(rule, self._rule_names, own)
        self._rules_checked = True

    def _with(self, tools: Iterable[Tool]) -> Self:
        other = copy(self)
        other._set_tools(tools)  # noqa: SLF001 - its own
        other._settle()  # noqa: SLF001 - its own
        return other

    def _settle(self) -> None:
        """Find the workspace and its settings, and check its rules."""
        workspace, on_event, timeout = self._given
        owners = (getattr(each.function, "__self__", None) for each in self if is_method(each.function))
        self._workspace: Any = next(owners, None) if workspace is None else workspace
        self._limits = Limits() if self._workspace is None else self._workspace.limits
        self._timeout = self._limits.timeout if timeout is None and self._workspace is not None else timeout
        self._events = EventEmitter(on_event or getattr(self._workspace, "on_event", None))
        self._rules_checked = False
        self._check_rules(added=True)

    def __repr__(self) -> str:
        return f"Toolset({', '.join(self._tools)})"

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __add__(self, more: Iterable[Callable[..., Any] | Tool]) -> Self:
        """Return a toolset with more tools and the same settings; the added tools do not get its `render`."""
        return self._with((*self, *map(tool_of, more)))

    def only(self, names: str | Sequence[str]) -> Self:
        """Return a toolset with some of the tools.

        Args:
            names: Their names, in the order of the new toolset.

        Returns:
            The toolset, with the settings of this one.

        Raises:
            AgentFSError: `unknown_tool` for a name that is not the name of a tool. `invalid_argument` if a
                tool stays without the tools whose values it needs, such as edit_lines without read and grep.
        """
        tools = [self._tools[name] for name in self._known(names)]
        offered, chosen = ({tool.own_name for tool in some} for some in (self, tools))
        for tool in tools:
            if tool.needs.keys() & offered:
                tool.check_needs(chosen)
        return self._with(tools)

    def _known(self, names: str | Sequence[str]) -> Sequence[str]:
        """Return names of tools; raise `unknown_tool` for others."""
        names = [names] if isinstance(names, str) else names
        for name in names:
            if name not in self._tools:
                raise UnknownToolError(
                    f"There is no tool {short_repr(name)}.", hint=f"The tools are {', '.join(self._tools)}."
                )
        return names

    @property
    def workspace(self) -> Any:
        """The workspace whose rules, limits and events hold for the tools, or None."""
        return self._workspace

    def bind(self, name: str, arguments: str | Mapping[str, Any] | None) -> tuple[Tool, dict[str, Any]]:
        """Return the tool that a call means, and its arguments; raise the error for a wrong call."""
        tool = self._named(name)
        if tool is None:
            tool, arguments, _ = resolve_unknown_tool(self._tools, name, arguments)
        bound = bind_call(self._tools, tool, parse_arguments(arguments))
        _check_bound(bound)
        return bound.tool, bound.values

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, in order."""
        return tuple(self._tools)

    def schemas(self, format: str = "openai", *, strict: bool = False, native: bool = False) -> list[Any]:  # noqa: A002
        """Return the schemas of the tools for a provider's API.

        Args:
            format: "openai" (chat completions), "openai-responses", "anthropic", "mcp" (the tools of
                `tools/list`) or "gemini" (the function declarations of one tool).
            strict: Ask the provider to enforce the schema. Only OpenAI and Anthropic can.
            native: Send the provider's own type of a tool, which its models know, in place of a schema:
                for `run` and the dialects `text-editor`, `memory` and `apply-patch`.

        Returns:
            One new dict for each tool, ready for JSON. The same toolset always returns the same schemas.

        Raises:
            InvalidArgumentError: The format is unknown or has no strict mode, or a type has no strict schema
                (`invalid_argument`).
        """
        self._check_rules()
        provider = provider_of(format)
        form = provider.formats[format]
        rules = form.strict_rules if strict else form.rules
        if rules is None:
            raise InvalidArgumentError(
                f"The format {format!r} has no strict mode.",
                hint=f"Leave `strict` out, or use one of {', '.join(STRICT_FORMATS)}.",
            )
        own_types: Mapping[str, Schema] = provider.native.get(format, {}) if native else {}
        schemas: list[Schema] = []
        for tool in self:
            # A tool with another name is not the one that the models know.
            if tool.checks_itself and tool.name == tool.own_name and tool.name in own_types:
                schemas.append(dict(own_types[tool.name]))
                continue
            try:
                parameters = object_schema(tool.parameters, rules)
            except InvalidArgumentError as error:
                raise InvalidArgumentError(
                    f"{tool.name} has no strict schema: {error.message}.",
                    hint="Leave out `strict` or this tool.",
                ) from None
            described = {"name": tool.name, "description": tool.description, "parameters": parameters}
            schemas.append(provider.schema(described, tool.effect, format, strict=strict))
        return schemas

    def instructions(self) -> str:
        """Return one short paragraph for the system prompt on how to use the tools together."""
        names = {tool.own_name: f"`{tool.name}`" for tool in self}
        advice = [tool.advice_text() for tool in self]
        usable = [text.format(**names) for text in advice if text and names.keys() >= _fields(text)]
        return " ".join((_INSTRUCTIONS_START, *usable, *_INSTRUCTIONS_END))

    def call(
        self, name: str, arguments: str | Mapping[str, Any] | None = None, *, context: Any = None
    ) -> ToolResult:
        """Run a call that a model sent.

        Whatever a model sends, no exception is raised: the result says what is wrong with the call. A
        function of your own runs in a thread of its own if its time is limited.

        Args:
            name: The name of the tool.
            arguments: The arguments, as JSON text or parsed; None for none.
            context: A value for tools that have a parameter with the hint `CallContext`.

        Returns:
            The answer, or the refusal with its code. Any exception other than an `AgentFSError` is logged
            and becomes a failure with the code "internal".

        Raises:
            InvalidArgumentError: The tool is an `async` function and an event loop runs in this thread, which
                the call would block (`invalid_argument`).
        """
        self._check_rules()
        self._check_not_async([name])
        return complete(self._run(name, arguments, context, on_loop=False))

    async def _run(self, name: Any, arguments: Any, context: Any, *, on_loop: bool) -> ToolResult:
        if call_context.current.get() is not None:  # a tool calls a tool; keep the context of the outer call
            return await self._dispatch(name, arguments, context, on_loop=on_loop)
        token = call_context.current.set(call_context.Execution(name))
        try:
            return await self._dispatch(name, arguments, context, on_loop=on_loop)
        finally:
            call_context.current.reset(token)

    def _check_not_async(self, names: Iterable[Any]) -> None:
        """Raise `invalid_argument` if a tool is an `async` function and an event loop runs in this thread."""
        for tool in map(self._named, names):
            if tool is not None and tool.is_async and has_event_loop():
                raise InvalidArgumentError(
                    f"{tool.name} is an async function, and this thread runs an event loop.",
                    hint="Await `acall` or `aanswer` instead.",
                )

    async def acall(
        self,
        name: str,
        arguments: str | Mapping[str, Any] | None = None,
        *,
        on_progress: Callable[[int], None] | None = None,
        context: Any = None,
    ) -> ToolResult:
        """Run a call like `call`: an `async` function on the event loop, any other in a thread off it.

        When it is cancelled, a search stops soon. A change that has begun is completed before the
        cancellation is raised. An `async` function is cancelled where it waits.

        Args:
            name: The name of the tool.
            arguments: The arguments, as JSON text or parsed; None for none.
            on_progress: Called in that thread with the number of entries that a long search has seen.
            context: As for `call`.

        Returns:
            The answer or the refusal, as from `call`.
        """
        self._check_rules()
        tool = self._named(name)
        if tool is not None and tool.is_async:
            return await self._run(name, arguments, context, on_loop=True)
        call = partial(self.call, name, arguments, context=context)
        return await self._runner.run_off_loop(call, tool=name, on_progress=on_progress)

    def _result(self, sent: ToolCall, context: Any) -> ToolResult:
        with provider_call(sent.id):
            return self.call(sent.name, self._arguments(sent), context=context)

    async def _result_async(self, sent: ToolCall, context: Any) -> ToolResult:
        with provider_call(sent.id):
            return await self.acall(sent.name, self._arguments(sent), context=context)

    def answer(self, calls: Iterable[Any], *, context: Any = None) -> list[Any]:
        """Run the tool calls of one turn and return the messages to append.

        Calls that only read run in parallel. A call that may change something runs alone, in its place.

        Args:
            calls: The unchanged tool calls of OpenAI (chat completions or responses), Anthropic, Gemini or
                MCP, as objects of the provider's SDK or dicts.
            context: As for `call`.

        Returns:
            The messages in order, new dicts: one for each call, or one for all if the provider requires that.

        Raises:
            InvalidArgumentError: One of them is not a tool call, and none was run (`invalid_argument`).
        """
        self._check_rules()
        sent = [each for call in calls for each in read_calls(call)]
        self._check_not_async(call.name for call in sent)
        results: list[ToolResult] = []
        for group in self._groups(sent):
            if len(group) == 1:
                results.append(self._result(group[0], context))
                continue
            results += self._runner.run_side_by_side(self._result, [(each, context) for each in group])
        return replies(list(zip(sent, results, strict=True)))

    async def aanswer(self, calls: Iterable[Any], *, context: Any = None) -> list[Any]:
        """Run the tool calls of one turn like `answer`, off the event loop.

        Args:
            calls: The tool calls, as for `answer`.
            context: As for `call`.

        Returns:
            The messages in order, as from `answer`.

        Raises:
            InvalidArgumentError: One of them is not a tool call, and none was run (`invalid_argument`).
        """
        self._check_rules()
        sent = [each for call in calls for each in read_calls(call)]
        results: list[ToolResult] = []
        for group in self._groups(sent):
            results += await self._runner.run_tasks(self._result_async, [(each, context) for each in group])
        return replies(list(zip(sent, results, strict=True)))

    def functions(self, *, hints: Hints = "text", context: Any = None) -> list[Callable[..., Any]]:
        """Return the tools as functions that return text, also for errors.

        They have type hints, also with the descriptions as `Annotated`, and Google-style docstrings with the
        parameters that a model sees, so that frameworks accept them. Arguments are read as leniently as by
        `call`.

        Args:
            hints: "text" for `Annotated` with a text, "field" with a `Field` of Pydantic, which AG2 requires,
                or "plain" for neither `Annotated` nor `Literal`, which google-genai requires.
            context: As for `call`, the same for all calls.

        Returns:
            One function for each tool, in order; an `async` one for a tool that is.
        """

        def run(name: str, arguments: dict[str, Any]) -> str:
            return self.call(name, arguments, context=context).content_with_notes

        async def run_async(name: str, arguments: dict[str, Any]) -> str:
            return (await self.acall(name, arguments, context=context)).content_with_notes

        self._check_rules()
        return [plain_function(tool, run, run_async, hints) for tool in self]

    async def _dispatch(self, name: Any, arguments: Any, context: Any, *, on_loop: bool) -> ToolResult:
        """Execute a call and report its events; `on_loop` is True if an event loop runs it."""
        if not self._events.active:
            return (await self._execute(name, arguments, context, on_loop=on_loop))[0]
        given: Mapping[Any, Any] = {}
        with suppress(AgentFSError):  # reported by the call
            given = parse_arguments(arguments)
        sent_chars = len(arguments) if isinstance(arguments, str) else 0
        tool = self._named(name)
        own_name = name if tool is None else tool.event_name
        with self._events.reporting(own_name, given, sent_chars=sent_chars, called_as=name) as outcome:
            result, error = await self._execute(name, arguments, context, on_loop=on_loop)
            outcome.value = result
            outcome.exception = error.__cause__ if isinstance(error, AgentFSError) else error
        return result

    async def _execute(
        self, name: Any, arguments: Any, context: Any, *, on_loop: bool
    ) -> tuple[ToolResult, BaseException | None]:
        """Return the result of a call, and the exception that ended it, if any."""
        tool: Tool | None = None
        values: dict[str, Any] = {}
        coercions: tuple[Coercion, ...] = ()
        outcome: Any
        failure: BaseException | None = None
        try:
            tool = self._named(name)
            if tool is None:
                tool, arguments, coercions = resolve_unknown_tool(self._tools, name, arguments)
            bound = bind_call(self._tools, tool, parse_arguments(arguments))
            tool, values = bound.tool, bound.values
            coercions += tuple(bound.coercions)
            _check_bound(bound)
            if tool.checks_itself:
                with nullcontext() if self._timeout is None else call_context.limited(self._timeout):
                    outcome = tool.function(**tool.call_arguments(values))
                    if inspect.isawaitable(outcome):
                        outcome = await outcome if on_loop else call_context.run_awaitable(outcome)
            else:
                values, outcome = await self._execute_gated(tool, values, context, on_loop=on_loop)
            if isinstance(outcome, Result):
                outcome = outcome.in_names(self._names(tool, values))
            result = from_value(tool, values, outcome)
        except AgentFSError as error:
            if error.__cause__ is not None:
                self._events.log_exception(short_repr(name), error.__cause__)
            failure, outcome = error, error.in_names(self._names(tool, values))
            result = from_error(outcome, tool, values)
        except Exception as error:  # noqa: BLE001 - logged, and a failure for the model
            self._events.log_exception(short_repr(name), error)
            failure = outcome = error
            result = from_exception(error, tool, values)
        if tool is not None and not tool.checks_itself:
            result = within_output_limit(result, self._limits, self._workspace, self._names(tool, values))
        if (render := tool.render if tool else self._render) is not None:
            given = tool.call_arguments(values) if tool else {}
            try:
                result = render(RenderContext(result, outcome, given, self._names(tool, values)))
            except Exception as error:  # noqa: BLE001 - as above
                self._events.log_exception(short_repr(name), error)
                failure = outcome = error
                result = from_exception(error, tool, values)
        return replace(result, coercions=coercions) if coercions else result, failure

    async def _execute_gated(
        self, tool: Tool, values: dict[str, Any], context: Any, *, on_loop: bool
    ) -> tuple[dict[str, Any], Any]:
        """Run a tool of the program's own, if the rules allow it; return its arguments and its result."""
        if self._workspace is not None:
            ask = permission_of(self._workspace, tool, values)
            if ask is not None:
                changed = await self._runner.run_off_loop(ask, tool=tool.name) if on_loop else ask()
                if changed:
                    bound = bind_call(self._tools, tool, {**values, **changed})
                    _check_bound(bound)
                    values = bound.values
                    permission_of(self._workspace, tool, values)
        if tool.effect not in READING:
            call_context.begin_change()
        given = tool.call_arguments(values)

        def run() -> Any:
            if tool.context_name is not None:
                given[tool.context_name] = CallContext(self._workspace, context, current_call_id())
            return tool.function(**given)

        if on_loop:
            return values, await await_in_time(tool, self._timeout, run)
        return values, run_in_time(tool, self._timeout, run)

    def _names(self, tool: Tool | None, values: Mapping[str, Any]) -> Names:
        return METHODS if tool is None else ToolNames(tuple(self), tool, values)

    def _named(self, name: Any) -> Tool | None:
        return self._tools.get(name) if isinstance(name, str) else None

    def _arguments(self, call: ToolCall) -> Any:
        """Return a call's arguments; the bare text of a freeform call is the first parameter."""
        tool = self._named(call.name)
        if call.freeform and tool is not None and tool.parameters:
            return {tool.parameters[0].name: call.arguments}
        return call.arguments

    def _groups(self, calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
        """Divide calls into groups of consecutive reading calls and single other calls."""
        groups: list[list[ToolCall]] = []
        for reads, group in groupby(calls, self._only_reads):
            run = list(group)
            groups += [run] if reads else [[call] for call in run]
        return groups

    def _only_reads(self, call: ToolCall) -> bool:
        tool = self._named(call.name)
        return tool is not None and tool.effect in READING


def _check_bound(bound: BoundCall) -> None:
    """Raise the error for arguments that a tool does not take."""
    if bound.problems:
        raise refusal(bound.tool.name, bound.tool.parameters, bound.problems)


def _own_name(given: Callable[..., Any] | Tool) -> str:
    return given.own_name if isinstance(given, Tool) else getattr(given, "__name__", "")


def _origin(tool: Tool) -> str:
    """Return a function with its module, for an error."""
    function = tool.function
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', tool.own_name)}"


def _fields(text: str) -> set[str]:
    return {field for _, field, _, _ in Formatter().parse(text) if field}


def toolset_of(
    workspace: Any,
    names: str | Sequence[str] | None,
    dialect: str,
    expose: Mapping[str, Sequence[str]],
    prefix: str,
) -> Toolset:
    """Return methods of a workspace as tools: the default ones, "all", or the named ones."""
    if isinstance(names, str) and names != "all":
        names = [names]
    if dialect != "agentfs":
        own = None if isinstance(names, str) else names
        tools: Toolset = find_dialect(dialect).tools(workspace, own, expose=expose, prefix=prefix)
        return tools
    declared = offered_tools(workspace)
    defaults = [name for name, each in declared.items() if each.default]
    chosen = defaults if names is None else list(declared) if isinstance(names, str) else names
    for name in chosen:
        if name not in declared:
            raise UnknownToolError(
                f"A workspace has no tool {name!r}.", hint=f"Its tools are {', '.join(declared)}."
            )
    exposed = {name: tuple(parameters) for name, parameters in expose.items()}
    for name in chosen:
        needs = declared[name].needs
        declared[name].check_needs(chosen)
        for other in needs.keys() & {*chosen}:
            exposed[other] = (*exposed.get(other, ()), *needs[other])
    methods = [getattr(workspace, name) for name in chosen]
    if not workspace.policy.line_numbers:
        plain = "Read a file; a line above its text says which lines are shown."
        methods = [replace(tool_of(each), text=plain) if each == workspace.read else each for each in methods]
    return Toolset(methods, expose=exposed, prefix=prefix, workspace=workspace)
