"""Callables as the tools of a language model: their schemas, and their calls."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agentfs.arguments.aliases import nearest
from agentfs.arguments.binding import arguments_of, bind, refusal
from agentfs.arguments.wording import shown
from agentfs.errors import AgentFSError, InvalidArgumentError, UnknownToolError
from agentfs.functions import plain_function
from agentfs.outcome import answered, broken, refused
from agentfs.results import ToolResult
from agentfs.schema import tool_schemas
from agentfs.signatures.offers import Answer, Offer
from agentfs.signatures.tools import Tool, tool_of


class Toolset:
    """Callables that a model may call by name.

    Any plain function or bound method joins that has type hints and a Google-style docstring. The model sees
    the parameters that stand before the `*` of its signature; the others keep their defaults.

    A toolset holds no state of its own and may be used from many threads, as far as its callables may.
    """

    def __init__(
        self,
        callables: Iterable[Callable[..., Any] | Offer],
        *,
        expose: Mapping[str, Sequence[str]] | None = None,
        prefix: str = "",
    ) -> None:
        """Describe callables as tools.

        Args:
            callables: The callables, or offers that say how one is presented; the order is that of `names`,
                `schemas` and `functions`.
            expose: For a callable, by its own name, parameters after the `*` that a model sees too.
            prefix: What stands before the name of each tool.

        Raises:
            InvalidArgumentError: One cannot be a tool, two have the same name, or what is to be exposed is
                not there (`invalid_argument`).
        """
        self._tools: dict[str, Tool] = {}
        self._aliases: dict[str, Tool] = {}
        exposed = dict(expose or {})
        for target in callables:
            own = getattr(target.target if isinstance(target, Offer) else target, "__name__", "")
            tool = tool_of(target, prefix=prefix, expose=exposed.get(own, ()))
            for name in (tool.name, *tool.aliases):
                if name in self._tools or name in self._aliases:
                    raise InvalidArgumentError(
                        f"Two of the callables are named {name}; a tool is called by its name."
                    )
            self._tools[tool.name] = tool
            self._aliases |= dict.fromkeys(tool.aliases, tool)
        offered = {getattr(tool.target, "__name__", "") for tool in self._tools.values()}
        if unknown := exposed.keys() - offered:
            raise InvalidArgumentError(f"There is no {', '.join(sorted(unknown))} to expose parameters of.")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, in order."""
        return tuple(self._tools)

    def schemas(self, format: str = "openai", *, strict: bool = False) -> list[dict[str, Any]]:  # noqa: A002 - the published name
        """Return the tools as a provider's API takes them.

        Args:
            format: "openai" (chat completions), "openai-responses", "anthropic", "mcp" (the tools of
                `tools/list`) or "gemini" (the function declarations of one tool).
            strict: Ask the provider to hold the model to the schema; OpenAI and Anthropic have it.

        Returns:
            One new dict for each tool, ready for JSON; the same toolset always gives the same.

        Raises:
            InvalidArgumentError: The format is unknown or has no strict mode, a type cannot be said in strict
                mode, or the tools exceed what the provider takes in strict mode (`invalid_argument`).
        """
        return tool_schemas(tuple(self._tools.values()), format, strict=strict)

    def call(self, name: str, arguments: str | Mapping[str, Any] | None = None) -> ToolResult:
        """Call a tool as a model asked for it.

        Nothing that a model can send raises: what is wrong with the call is told in the result.

        Args:
            name: The name of the tool.
            arguments: Its arguments, as JSON text or parsed; None for none.

        Returns:
            The answer, or the refusal with its code. An exception that is no `AgentFSError` is logged and
            becomes a failure with the code "internal".
        """
        tool: Tool | None = None
        values: dict[str, Any] = {}
        outcome: Any
        try:
            tool = self._tool(name)
            bound = bind(tool.parameters, arguments_of(arguments))
            values = bound.values
            if bound.problems:
                raise refusal(tool.name, tool.parameters, bound.problems)  # noqa: TRY301 - told like any other
            outcome = tool.target(**tool.own(values))
            result = answered(tool, values, outcome, self._tools.values())
        except AgentFSError as error:
            outcome, result = error, refused(error, tool, values)
        except Exception as error:  # noqa: BLE001 - logged, and told as a failure
            _log_unexpected(name, error)
            outcome, result = error, broken(error, tool, values)
        if tool is None or tool.render is None:
            return result
        try:
            return tool.render(Answer(result, outcome, tool.own(values)))
        except Exception as error:  # noqa: BLE001 - as above
            _log_unexpected(name, error)
            return broken(error, tool, values)

    async def acall(self, name: str, arguments: str | Mapping[str, Any] | None = None) -> ToolResult:
        """Do what `call` does in a thread, off the event loop.

        Args:
            name: The name of the tool.
            arguments: Its arguments, as JSON text or parsed; None for none.

        Returns:
            What `call` returns.
        """
        import asyncio  # noqa: PLC0415 - most programs that import agentfs never await it

        return await asyncio.to_thread(self.call, name, arguments)

    def functions(self) -> list[Callable[..., str]]:
        """Return the tools as plain functions that return text, errors included.

        They carry plain type hints and docstrings in Google style with the parameters that a model sees, and
        cast what they are given, so that any framework takes them as they are.

        Returns:
            One function for each tool, in order.
        """
        return [plain_function(tool, self._text) for tool in self._tools.values()]

    def accepts(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Tell whether a call is exactly as the schema has it, with nothing to be taken leniently.

        Args:
            name: The name of the tool.
            arguments: Its arguments.

        Returns:
            Whether the tool exists and each argument is visible, present and of the right type.
        """
        tool = self._tools.get(name)
        if tool is None:
            return False
        bound = bind(tool.parameters, arguments)
        return not bound.problems and not bound.coercions

    def _tool(self, name: Any) -> Tool:
        tool = (self._tools.get(name) or self._aliases.get(name)) if isinstance(name, str) else None
        if tool is not None:
            return tool
        near = nearest(name.lower(), self._tools) if isinstance(name, str) else None
        meant = f" (did you mean `{near}`?)" if near else ""
        raise UnknownToolError(
            f"There is no tool {shown(name)}{meant}.",
            hint=f"The tools are {', '.join(self._tools)}.",
            details={"names": list(self._tools), "nearest": near},
        )

    def _text(self, name: str, arguments: dict[str, Any]) -> str:
        return self.call(name, arguments).content


def _log_unexpected(name: Any, error: Exception) -> None:
    import logging  # noqa: PLC0415 - costs a quarter of the import of agentfs, and is rarely needed

    logging.getLogger("agentfs").error("tool %s failed unexpectedly", shown(name), exc_info=error)
