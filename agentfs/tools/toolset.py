"""`Toolset`: the tools that a model may call, their schemas for each provider, and their calls."""

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from copy import copy
from dataclasses import replace
from itertools import groupby
from string import Formatter
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from agentfs.arguments.checks import checks_arguments
from agentfs.arguments.kinds import short_repr
from agentfs.base import call_context
from agentfs.base.advice import METHODS, Names, plural
from agentfs.base.html_output import html_table
from agentfs.base.lazy import find_dialect
from agentfs.concurrency.runner import Runner, complete, has_event_loop
from agentfs.errors import AgentFSError, InvalidArgumentError, UnknownToolError
from agentfs.events import EventEmitter, OnEvent, provider_call
from agentfs.habits.lenient import parse_arguments
from agentfs.permissions import READING
from agentfs.providers import read_call, replies
from agentfs.providers.provider import Message, ToolCall
from agentfs.results import Coercion, Result, ToolResult
from agentfs.tools.binding import bind_call, refusal, resolve_unknown_tool
from agentfs.tools.declaration import declaration_of, declared_tools
from agentfs.tools.functions import Hints, plain_function
from agentfs.tools.result import ToolNames, first_line, from_error, from_exception, from_value
from agentfs.tools.spec import (
    RenderContext,
    Tool,
    ToolSpec,
    check_tool_name,
    make_tool,
    tool_schemas,
    undescribed,
)

if TYPE_CHECKING:
    from agentfs.providers import sdk_types as sdk

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
    iteration yields each as an `agentfs.tools.spec.Tool`. A toolset never changes, and is as
    thread-safe as its callables.
    """

    @checks_arguments
    def __init__(
        self,
        callables: Iterable[Callable[..., Any] | ToolSpec | Tool],
        *,
        expose: Mapping[str, Sequence[str]] | None = None,
        prefix: str = "",
        on_event: OnEvent | None = None,
        concurrency: int = 8,
        render: Callable[[RenderContext], ToolResult] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Describe callables as tools.

        Args:
            callables: The callables, their specs, or tools of another toolset, in the order of `names`,
                `schemas` and `functions`.
            expose: Parameters after the `*` that a model sees, by the callable's own name.
            prefix: A prefix for the name of each tool.
            on_event: Called with the events of each call, in the thread that runs it.
            concurrency: The most calls of `acall`, `answer` and `aanswer` that run at once. Calls of `async`
                functions do not count.
            render: Returns the final result of each call, after the `render` of its spec. It also sees
                refusals, failures and calls of unknown tools.
            timeout: Seconds that one call may take; by default each method sets its own.

        Raises:
            InvalidArgumentError: A callable cannot be a tool, two have the same name, or `expose` names
                something unknown (`invalid_argument`).
        """
        self._render = render
        self._timeout = timeout
        self._events = EventEmitter(on_event)
        self._runner = Runner(concurrency)
        exposed = dict(expose or {})
        self._set_tools(_tool_of(each, prefix, exposed, render) for each in callables)
        for tool in self:
            if missing := undescribed(tool):
                warnings.warn(f"The tool {tool.name} does not describe {', '.join(missing)}.", stacklevel=3)
        if unknown := exposed.keys() - {tool.own_name for tool in self}:
            raise InvalidArgumentError(f"`expose` names {', '.join(sorted(unknown))}, which is not offered.")

    def _set_tools(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        self._aliases: dict[str, Tool] = {}
        for tool in tools:
            for name in (tool.name, *tool.spec.aliases):
                if name in self._tools or name in self._aliases:
                    raise InvalidArgumentError(
                        f"Two of the tools are named {name}; tool names must be unique."
                    )
            self._tools[tool.name] = tool
            self._aliases |= dict.fromkeys(tool.spec.aliases, tool)

    def _with(self, tools: Iterable[Tool]) -> Self:
        other = copy(self)
        other._set_tools(tools)  # noqa: SLF001 - its own
        return other

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def _repr_html_(self) -> str:
        """Return a table of the tools, as a notebook displays it."""
        rows = ((tool.name, tool.effect or "unknown", first_line(tool.description)) for tool in self)
        return html_table(f"Toolset: {plural(len(self), 'tool')}", ("name", "effect", "description"), rows)

    def __add__(self, more: Iterable[Callable[..., Any] | ToolSpec | Tool]) -> Self:
        """Return a toolset with more tools and the same settings; the added tools do not get its `render`."""
        return self._with((*self, *Toolset(more)))

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
        return self._selected([self._tools[name] for name in self._known(names)])

    def without(self, names: str | Sequence[str]) -> Self:
        """Return a toolset with all tools but some.

        Args:
            names: The names of the tools to leave out.

        Returns:
            The toolset, with the settings of this one.

        Raises:
            AgentFSError: As for `only`.
        """
        left_out = self._known(names)
        return self._selected([tool for tool in self if tool.name not in left_out])

    def _selected(self, tools: Sequence[Tool]) -> Self:
        """Return a toolset with some of the tools, unless one of them needs a tool that is left out."""
        offered = {tool.own_name for tool in self}
        chosen = {tool.own_name for tool in tools}
        for tool in tools:
            declared = declaration_of(tool.spec.target)
            if declared is not None and declared.needs.keys() & offered:
                declared.check_needs(tool.name, chosen)
        return self._with(tools)

    def renamed(self, names: Mapping[str, str]) -> Self:
        """Return a toolset with other names for some of the tools; advice in answers uses them too.

        Args:
            names: The new name of each tool, by its name.

        Returns:
            The toolset, with the settings of this one.

        Raises:
            AgentFSError: `unknown_tool` if there is no tool of a name, `invalid_argument` if no tool can have
                a new name or two have the same.
        """
        self._known(list(names))
        for new in names.values():
            check_tool_name(new, new)
        return self._with(tool._replace(name=names.get(tool.name, tool.name)) for tool in self)

    def _known(self, names: str | Sequence[str]) -> Sequence[str]:
        """Return names of tools; raise `unknown_tool` for others."""
        names = [names] if isinstance(names, str) else names
        for name in names:
            if name not in self._tools:
                raise UnknownToolError(
                    f"There is no tool {short_repr(name)}.", hint=f"The tools are {', '.join(self._tools)}."
                )
        return names

    def rebound(self, specs: Iterable[ToolSpec]) -> Self:
        """Return these tools with other callables of the same signatures, without describing them again.

        Args:
            specs: The specs of all tools, in order, each with another `target`.

        Returns:
            A toolset that shares its threads with this one.
        """
        return self._with(tool._replace(spec=spec) for tool, spec in zip(self, specs, strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, in order."""
        return tuple(self._tools)

    @overload
    def schemas(
        self, format: Literal["openai"] = "openai", *, strict: bool = False
    ) -> "list[sdk.OpenAITool]": ...
    @overload
    def schemas(
        self, format: Literal["openai-responses"], *, strict: bool = False
    ) -> "list[sdk.ResponsesTool]": ...
    @overload
    def schemas(self, format: Literal["anthropic"], *, strict: bool = False) -> "list[sdk.AnthropicTool]": ...
    @overload
    def schemas(self, format: Literal["gemini"], *, strict: bool = False) -> "list[sdk.GeminiTool]": ...
    @overload
    def schemas(
        self, format: Literal["mcp", "mcp-structured"], *, strict: bool = False
    ) -> list[dict[str, Any]]: ...
    @overload
    def schemas(self, format: str, *, strict: bool = False) -> list[Any]: ...

    def schemas(self, format: str = "openai", *, strict: bool = False) -> Any:  # noqa: A002
        """Return the schemas of the tools for a provider's API.

        Args:
            format: "openai" (chat completions), "openai-responses", "anthropic", "mcp" (the tools of
                `tools/list`), "mcp-structured" (with output schemas) or "gemini" (the function declarations
                of one tool).
            strict: Ask the provider to enforce the schema. Only OpenAI and Anthropic can.

        Returns:
            One new dict for each tool, ready for JSON. The same toolset always returns the same schemas.

        Raises:
            InvalidArgumentError: The format is unknown or has no strict mode, a type has no strict schema,
                or the tools exceed the provider's limits for strict mode (`invalid_argument`).
        """
        return tool_schemas(tuple(self._tools.values()), format, strict=strict)

    def instructions(self) -> str:
        """Return one short paragraph for the system prompt on how to use the tools together."""
        names = {tool.own_name: f"`{tool.name}`" for tool in self}
        targets = [tool.spec.target for tool in self]
        advice = [each.advice_of(target) for target in targets if (each := declaration_of(target))]
        usable = [text.format(**names) for text in advice if text and names.keys() >= _fields(text)]
        return " ".join((_INSTRUCTIONS_START, *usable, *_INSTRUCTIONS_END))

    def call(self, name: str, arguments: str | Mapping[str, Any] | None = None) -> ToolResult:
        """Run a call that a model sent.

        Whatever a model sends, no exception is raised: the result says what is wrong with the call.

        Args:
            name: The name of the tool.
            arguments: The arguments, as JSON text or parsed; None for none.

        Returns:
            The answer, or the refusal with its code. Any exception other than an `AgentFSError` is logged
            and becomes a failure with the code "internal".

        Raises:
            InvalidArgumentError: The tool is an `async` function and an event loop runs in this thread, which
                the call would block (`invalid_argument`).
        """
        self._check_not_async([name])
        return complete(self._run(name, arguments, on_loop=False))

    async def _run(self, name: Any, arguments: Any, *, on_loop: bool) -> ToolResult:
        if call_context.current.get() is not None:  # a tool calls a tool; keep the context of the outer call
            return await self._dispatch(name, arguments, on_loop=on_loop)
        token = call_context.current.set(call_context.Execution(name))
        try:
            return await self._dispatch(name, arguments, on_loop=on_loop)
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
    ) -> ToolResult:
        """Run a call like `call`: an `async` function on the event loop, any other in a thread off it.

        When it is cancelled, a search stops soon. A change that has begun is completed before the
        cancellation is raised. An `async` function is cancelled where it waits.

        Args:
            name: The name of the tool.
            arguments: The arguments, as JSON text or parsed; None for none.
            on_progress: Called in that thread with the number of entries that a long search has seen.

        Returns:
            The answer or the refusal, as from `call`.
        """
        tool = self._named(name)
        if tool is not None and tool.is_async:
            return await self._run(name, arguments, on_loop=True)
        return await self._runner.run_off_loop(self.call, name, arguments, tool=name, on_progress=on_progress)

    def _result(self, sent: ToolCall) -> ToolResult:
        with provider_call(sent.id):
            return self.call(sent.name, self._arguments(sent))

    async def _result_async(self, sent: ToolCall) -> ToolResult:
        with provider_call(sent.id):
            return await self.acall(sent.name, self._arguments(sent))

    @overload
    def answer(self, calls: "Iterable[sdk.OpenAICall]") -> "list[sdk.OpenAIMessage]": ...
    @overload
    def answer(self, calls: "Iterable[sdk.ResponsesCall]") -> "list[sdk.ResponsesMessage]": ...
    @overload
    def answer(self, calls: "Iterable[sdk.AnthropicCall]") -> "list[sdk.AnthropicMessage]": ...
    @overload
    def answer(self, calls: "Iterable[sdk.GeminiCall]") -> "list[sdk.GeminiMessage]": ...
    @overload
    def answer(self, calls: Iterable[Mapping[str, Any]]) -> list[Message]: ...
    @overload
    def answer(self, calls: Iterable[Any]) -> list[Any]: ...

    def answer(self, calls: Iterable[Any]) -> Any:
        """Run the tool calls of one turn and return the messages to append.

        Calls that only read run in parallel. A call that may change something runs alone, in its place.

        Args:
            calls: The unchanged tool calls of OpenAI (chat completions or responses), Anthropic, Gemini or
                MCP, as objects of the provider's SDK or dicts.

        Returns:
            The messages in order, new dicts: one for each call, or one for all if the provider requires that.

        Raises:
            InvalidArgumentError: One of them is not a tool call, and none was run (`invalid_argument`).
        """
        sent = [read_call(call) for call in calls]
        self._check_not_async(call.name for call in sent)
        results: list[ToolResult] = []
        for group in self._groups(sent):
            if len(group) == 1:
                results.append(self._result(group[0]))
                continue
            results += self._runner.run_side_by_side(self._result, [(each,) for each in group])
        return replies(list(zip(sent, results, strict=True)))

    @overload
    async def aanswer(self, calls: "Iterable[sdk.OpenAICall]") -> "list[sdk.OpenAIMessage]": ...
    @overload
    async def aanswer(self, calls: "Iterable[sdk.ResponsesCall]") -> "list[sdk.ResponsesMessage]": ...
    @overload
    async def aanswer(self, calls: "Iterable[sdk.AnthropicCall]") -> "list[sdk.AnthropicMessage]": ...
    @overload
    async def aanswer(self, calls: "Iterable[sdk.GeminiCall]") -> "list[sdk.GeminiMessage]": ...
    @overload
    async def aanswer(self, calls: Iterable[Mapping[str, Any]]) -> list[Message]: ...
    @overload
    async def aanswer(self, calls: Iterable[Any]) -> list[Any]: ...

    async def aanswer(self, calls: Iterable[Any]) -> Any:
        """Run the tool calls of one turn like `answer`, off the event loop.

        Args:
            calls: The tool calls, as for `answer`.

        Returns:
            The messages in order, as from `answer`.

        Raises:
            InvalidArgumentError: One of them is not a tool call, and none was run (`invalid_argument`).
        """
        sent = [read_call(call) for call in calls]
        results: list[ToolResult] = []
        for group in self._groups(sent):
            results += await self._runner.run_tasks(self._result_async, [(each,) for each in group])
        return replies(list(zip(sent, results, strict=True)))

    def functions(self, *, hints: Hints = "text") -> list[Callable[..., Any]]:
        """Return the tools as functions that return text, also for errors.

        They have type hints, also with the descriptions as `Annotated`, and Google-style docstrings with the
        parameters that a model sees, so that frameworks accept them. Arguments are read as leniently as by
        `call`.

        Args:
            hints: "text" for `Annotated` with a text, "field" with a `Field` of Pydantic, which AG2 requires,
                or "plain" for neither `Annotated` nor `Literal`, which google-genai requires.

        Returns:
            One function for each tool, in order; an `async` one for a tool that is.
        """

        def run(name: str, arguments: dict[str, Any]) -> str:
            return self.call(name, arguments).content_with_notes

        async def run_async(name: str, arguments: dict[str, Any]) -> str:
            return (await self.acall(name, arguments)).content_with_notes

        return [plain_function(tool, run, run_async, hints) for tool in self]

    async def _dispatch(self, name: Any, arguments: Any, *, on_loop: bool) -> ToolResult:
        """Execute a call and report its events; `on_loop` is True if an event loop runs it."""
        if not self._events.active or call_context.is_rehearsed(changes=True):
            return await self._execute(name, arguments, on_loop=on_loop)
        given: Mapping[Any, Any] = {}
        with suppress(AgentFSError):  # reported by the call
            given = parse_arguments(arguments)
        sent_chars = len(arguments) if isinstance(arguments, str) else 0
        with self._events.reporting(name, given, sent_chars=sent_chars) as outcome:
            outcome.value = result = await self._execute(name, arguments, on_loop=on_loop)
        return result

    async def _execute(self, name: Any, arguments: Any, *, on_loop: bool) -> ToolResult:
        tool: Tool | None = None
        values: dict[str, Any] = {}
        coercions: tuple[Coercion, ...] = ()
        outcome: Any
        try:
            tool = self._named(name)
            if tool is None:
                tool, arguments, coercions = resolve_unknown_tool(self._tools, name, arguments)
            tool, values, coerced, problems = bind_call(self._tools, tool, parse_arguments(arguments))
            coercions += tuple(coerced)
            if problems:
                raise refusal(tool.name, tool.parameters, problems)  # noqa: TRY301 - handled as any error
            if tool.effect is None:  # it may change files without a workspace
                call_context.begin_change()
            with nullcontext() if self._timeout is None else call_context.limited(self._timeout):
                outcome = tool.spec.target(**tool.call_arguments(values))
                if inspect.isawaitable(outcome):
                    outcome = await outcome if on_loop else call_context.run_awaitable(outcome)
            if isinstance(outcome, Result):
                outcome = outcome.in_names(self._names(tool, values))
            result = from_value(tool, values, outcome)
        except AgentFSError as error:
            outcome = error.in_names(self._names(tool, values))
            result = from_error(outcome, tool, values)
        except Exception as error:  # noqa: BLE001 - logged, and a failure for the model
            self._events.log_exception(short_repr(name), error)
            outcome, result = error, from_exception(error, tool, values)
        for render in (tool.spec.render, tool.render) if tool else (self._render,):
            if render is not None:
                given = tool.call_arguments(values) if tool else {}
                try:
                    result = render(RenderContext(result, outcome, given, self._names(tool, values)))
                except Exception as error:  # noqa: BLE001 - as above
                    self._events.log_exception(short_repr(name), error)
                    outcome, result = error, from_exception(error, tool, values)
        return replace(result, coercions=coercions) if coercions else result

    def _names(self, tool: Tool | None, values: Mapping[str, Any]) -> Names:
        return METHODS if tool is None else ToolNames(tuple(self), tool, values)

    def _named(self, name: Any) -> Tool | None:
        return (self._tools.get(name) or self._aliases.get(name)) if isinstance(name, str) else None

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


def _tool_of(
    given: Callable[..., Any] | ToolSpec | Tool,
    prefix: str,
    exposed: Mapping[str, Sequence[str]],
    render: Callable[[RenderContext], ToolResult] | None,
) -> Tool:
    if isinstance(given, Tool):
        check_tool_name(name := f"{prefix}{given.name}", name)
        return given._replace(name=name, render=given.render or render)
    spec = given if isinstance(given, ToolSpec) else ToolSpec(given)
    own_name = getattr(spec.target, "__name__", "")
    return make_tool(spec, prefix=prefix, expose=exposed.get(own_name, ()))._replace(render=render)


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
    declared = declared_tools(workspace.__class__)
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
        declared[name].check_needs(name, chosen)
        for other in needs.keys() & {*chosen}:
            exposed[other] = (*exposed.get(other, ()), *needs[other])
    methods = [getattr(workspace, name) for name in chosen]
    if not workspace.policy.line_numbers:
        plain = "Read a file; a line above its text says which lines are shown."
        methods = [ToolSpec(each, description=plain) if each == workspace.read else each for each in methods]
    timeout = workspace.limits.timeout
    return Toolset(methods, expose=exposed, prefix=prefix, on_event=workspace.on_event, timeout=timeout)
