"""`Toolset`: the tools that a model may call, their schemas for each provider, and their calls."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, Self

from agentfs.arguments.json_text import parse_arguments, short_repr
from agentfs.arguments.parameters import Schema, object_schema
from agentfs.base import call_context
from agentfs.base.advice import METHODS, Names
from agentfs.base.runner import Runner
from agentfs.errors import AgentFSError, InvalidArgumentError, UnknownToolError
from agentfs.events import EventEmitter, OnEvent, current_call_id, provider_call
from agentfs.limits import Limits
from agentfs.permissions import READING
from agentfs.providers import STRICT_FORMATS, provider_of, read_calls, replies
from agentfs.providers.provider import ToolCall
from agentfs.results import Coercion, Result, ToolResult
from agentfs.tools import gate
from agentfs.tools.binding import bind, find_tool
from agentfs.tools.functions import Hints, plain_function
from agentfs.tools.result import ToolNames, from_error, from_value
from agentfs.tools.tool import CallContext, RenderContext, Renderer, Tool, declarations, is_method, tool_of

_INSTRUCTIONS_START = "Paths are relative to the workspace root and use `/`."
_INSTRUCTIONS_END = (
    "Square brackets name what an answer leaves out, with the call that gets it.",
    "An error says what is there instead: correct the call rather than repeat it.",
)


class Called:
    """One call of a toolset: the parts that are known so far."""

    tool: Tool | None = None
    values: Mapping[str, Any] = {}
    coercions: tuple[Coercion, ...] = ()
    failure: BaseException | None = None

    def __init__(self, tools: Mapping[str, Tool], name: Any, sent: Any) -> None:
        """Find the tool and parse the arguments; `failure` is the error of either."""
        self._tools, self.name = tools, name
        self.given: Mapping[Any, Any] = sent if isinstance(sent, Mapping) else {}
        try:
            self.tool, self.coercions = find_tool(tools, name)
            self.given = parse_arguments(sent, repair=self.tool.effect in READING)
        except AgentFSError as error:
            self.failure = error

    def bind(self) -> Tool:
        """Read the arguments, and return the tool; raise the error for a wrong call."""
        if self.failure is not None or self.tool is None:
            raise self.failure or UnknownToolError(f"There is no tool {short_repr(self.name)}.")
        self.values, coercions = bind(self.tool, self.given)
        self.coercions += coercions
        return self.tool

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments under the function's own names."""
        return {} if self.tool is None else self.tool.call_arguments(self.values)

    @property
    def names(self) -> Names:
        """The names for the texts of the answer."""
        return METHODS if self.tool is None else ToolNames([*self._tools.values()], self.tool, self.values)


class Toolset:
    """Callables that a model may call by name.

    Each is a function or a bound method with type hints and a Google-style docstring. The model sees the
    parameters before the `*` of its signature; the others keep their defaults. An `async` function runs on
    the event loop of `acall` and `aanswer`. `call` and `answer` give it an event loop of its own.

    `tools + [function]` adds tools. `len(tools)` counts them, `"read" in tools` looks one up by name, and
    iteration yields each as an `agentfs.tools.tool.Tool`. A toolset never changes, and is as
    thread-safe as its callables.
    """

    _rule_names: tuple[str, ...] = ()  # also of tools that were left out later

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
        workspace: Any = None,
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
        self._given = workspace, on_event, timeout
        made = [tool_of(each, prefix=prefix, expose=expose or {}) for each in callables]
        if unknown := (expose or {}).keys() - {tool.own_name for tool in made}:
            raise InvalidArgumentError(f"`expose` names {', '.join(sorted(unknown))}, which is not offered.")
        self._take(replace(tool, render=tool.render or render) for tool in made)

    def _take(self, tools: Iterable[Tool]) -> None:
        """Hold these tools; find the workspace with its settings, and check its rules."""
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if (other := self._tools.setdefault(tool.name, tool)) is not tool:
                raise InvalidArgumentError(
                    f"Two of the tools are named {tool.name}: {other.function!r} and {tool.function!r}.",
                    hint="Give one of the functions another name, or pass a `prefix`.",
                )
        workspace, on_event, timeout = self._given
        owners = (getattr(each.function, "__self__", None) for each in self if is_method(each.function))
        self._workspace: Any = next(owners, None) if workspace is None else workspace
        self._limits = Limits() if self._workspace is None else self._workspace.limits
        self._timeout = self._limits.timeout if timeout is None and self._workspace is not None else timeout
        self._events = EventEmitter(on_event or getattr(self._workspace, "on_event", None))
        self._own = [tool for tool in self if not tool.checks_itself]
        self._rules_checked = False
        if self._own:  # a toolset of methods alone may get tools later, so it is checked at its first use
            self._check_rules()

    def _check_rules(self) -> None:
        """Raise `invalid_argument` for a rule that can match nothing."""
        if self._workspace is None or self._rules_checked:
            return
        declared = declarations(self._workspace.__class__)
        methods = [name for name, each in declared.items() if each.effect != "none"]
        own = [name for tool in self._own for name in (tool.name, tool.own_name)]
        self._rule_names = tuple(dict.fromkeys((*self._rule_names, *methods, *own)))
        gate.check_tool_rules(self._workspace.policy, self._rule_names, self._own)
        self._rules_checked = True

    def _with(self, tools: Iterable[Tool]) -> Self:
        other = copy(self)
        other._take(tools)  # noqa: SLF001 - its own
        return other

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
            UnknownToolError: One of them is not the name of a tool (`unknown_tool`).
        """
        names = [names] if isinstance(names, str) else names
        return self._with(find_tool(self._tools, name)[0] for name in names)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, in order."""
        return tuple(self._tools)

    # The contract names the parameter `format`, as the builtin.
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
        usable: list[str] = []
        for tool in self:
            with suppress(KeyError):  # a method that is not offered
                usable.append(tool.advice_text().format(**names))
        return " ".join((_INSTRUCTIONS_START, *filter(None, usable), *_INSTRUCTIONS_END))

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
        return self._run(name, arguments, context)

    def _check_not_async(self, names: Iterable[Any]) -> None:
        """Raise `invalid_argument` if a tool is an `async` function and an event loop runs in this thread."""
        for tool in (self._tools.get(str(name)) for name in names):
            if tool is not None and tool.is_async and call_context.has_event_loop():
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
        """Run a call like `call` in a thread; an `async` function runs on the event loop.

        When it is cancelled, a search stops soon. A change that has begun is completed before the
        cancellation is raised; a staged command whose changes were applied returns its result. An `async`
        function is cancelled where it waits.

        Args:
            name: The name of the tool.
            arguments: The arguments, as JSON text or parsed; None for none.
            on_progress: Called in that thread with the number of entries that a long search has seen.
            context: As for `call`.

        Returns:
            The answer or the refusal, as from `call`.
        """
        self._check_rules()
        run = self._runner.run_off_loop
        return await run(self._run, name, arguments, context, tool=name, on_progress=on_progress)

    def _answer_one(self, sent: ToolCall, context: Any) -> ToolResult:
        with provider_call(sent.id):
            return self.call(sent.name, self._arguments(sent), context=context)

    async def _aanswer_one(self, sent: ToolCall, context: Any) -> ToolResult:
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
        groups = self._groups(calls)
        self._check_not_async(call.name for group in groups for call in group)
        answers: list[tuple[ToolCall, ToolResult]] = []
        for group in groups:
            results = self._runner.run_side_by_side(self._answer_one, [(each, context) for each in group])
            answers += zip(group, results, strict=True)
        return replies(answers)

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
        answers: list[tuple[ToolCall, ToolResult]] = []
        for group in self._groups(calls):
            results = await self._runner.run_tasks(self._aanswer_one, [(each, context) for each in group])
            answers += zip(group, results, strict=True)
        return replies(answers)

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
        self._check_rules()
        run, run_async = partial(self.call, context=context), partial(self.acall, context=context)
        return [plain_function(tool, run, run_async, hints) for tool in self]

    def _run(self, name: Any, sent: Any, context: Any) -> ToolResult:
        """Find the tool, read the arguments, and run the call within the events about it."""
        called = Called(self._tools, name, sent)
        # A tool that calls a tool keeps the context of the outer call.
        outer = call_context.current.get()
        token = call_context.current.set(call_context.Execution(name)) if outer is None else None
        try:
            if not self._events.active:
                return self._result(called, context)
            own_name = name if called.tool is None else called.tool.event_name
            with self._events.reporting(own_name, called.given, name) as end:
                end.outcome = result = self._result(called, context)
                end.exception = called.failure
            return result
        finally:
            if token is not None:
                call_context.current.reset(token)

    def _result(self, called: Called, context: Any) -> ToolResult:
        """Bind, decide, run and render a call; whatever fails is a result too."""
        outcome: Any
        try:
            tool = called.bind()
            if tool.checks_itself:
                with nullcontext() if self._timeout is None else call_context.limited(self._timeout):
                    outcome = call_context.awaited(tool.function(**called.arguments))
            else:
                outcome = self._act(called, tool, context)
            if isinstance(outcome, Result):
                outcome = outcome.in_names(called.names)
            result = from_value(tool, called.values, outcome)
        except call_context.BusyLoopError:
            raise
        except Exception as error:  # noqa: BLE001 - a failure for the model
            result, outcome = self._failed(called, error)
        if called.tool is not None and not called.tool.checks_itself:
            result = gate.within_output_limit(result, self._limits, self._workspace, called.names)
        if (render := called.tool.render if called.tool else self._render) is not None:
            try:
                result = render(RenderContext(result, outcome, called.arguments, called.tool))
            except Exception as error:  # noqa: BLE001 - as above
                result, _ = self._failed(called, error)
        return replace(result, coercions=called.coercions) if called.coercions else result

    def _act(self, called: Called, tool: Tool, context: Any) -> Any:
        """Call a function of the program's own, if the rules allow it."""
        if self._workspace is not None:
            called.values = gate.permit(self._workspace, tool, called.values)
        if tool.effect not in READING and not tool.is_async:
            call_context.begin_change()
        given = called.arguments

        def work() -> Any:
            if tool.context_name is not None:
                given[tool.context_name] = CallContext(self._workspace, context, current_call_id())
            return tool.function(**given)

        return gate.run_in_time(tool, self._timeout, work)

    def _failed(self, called: Called, error: Exception) -> tuple[ToolResult, Exception]:
        """Return the result of a call that raised, and the error in the names of the tools."""
        called.failure = error
        is_ours = isinstance(error, AgentFSError)
        if (unexpected := error.__cause__ if is_ours else error) is not None:
            self._events.log_exception(short_repr(called.name), unexpected)
        shown = error.in_names(called.names) if isinstance(error, AgentFSError) else error
        return from_error(shown, called.tool, called.values), shown

    def _arguments(self, call: ToolCall) -> Any:
        """Return a call's arguments; the bare text of a freeform call is the first parameter."""
        tool = self._tools.get(str(call.name))
        if call.freeform and tool is not None and tool.parameters:
            return {tool.parameters[0].name: call.arguments}
        return call.arguments

    def _groups(self, calls: Iterable[Any]) -> list[list[ToolCall]]:
        """Return the calls of one turn: those that only read in groups, each other call in its own."""
        self._check_rules()
        sent = [each for call in calls for each in read_calls(call)]
        groups: list[list[ToolCall]] = []
        for reads, group in groupby(sent, self._only_reads):
            run = [*group]
            groups += [run] if reads else [[call] for call in run]
        return groups

    def _only_reads(self, call: ToolCall) -> bool:
        tool = self._tools.get(str(call.name))
        return tool is not None and tool.effect in READING


def needs_approval(toolset: Toolset, name: str, arguments: Mapping[str, Any]) -> bool:
    """Return True if the user may be asked about a call. It runs nothing, so it does not know the changes."""
    workspace, tools = toolset._workspace, toolset._tools  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    try:
        tool, _ = find_tool(tools, name)
        return workspace is not None and gate.may_ask(workspace, tool, bind(tool, arguments)[0])
    except AgentFSError:
        return False  # the call is refused without a question
