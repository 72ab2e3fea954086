"""`Advice`: texts that suggest calls, kept as parts until the names of the tools are known.

A method does not know its tool's name: a toolset may prefix it, and a dialect may rename it or not offer it.
`Advice` is a string with the names of the workspace's methods. A toolset renders its parts with the names of
its tools, and leaves out sentences that none of them can follow.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, TypedDict

from agentfs.base.visible import to_json


class NextCall(TypedDict):
    """A suggested tool call: its name and the arguments to pass."""

    name: str
    arguments: dict[str, Any]


class ToolName(NamedTuple):
    """The name of the tool for a method, as a part of a text."""

    method: str


class ParameterName(NamedTuple):
    """The name of a parameter of the answered call, as a part of a text; `quoted` adds backquotes."""

    name: str
    quoted: bool = False


class Retry(NamedTuple):
    """The answered call again: with changed `arguments`, and `without` some of the others."""

    arguments: Mapping[str, Any]
    without: tuple[str, ...] = ()


def call(method: str, **arguments: Any) -> NextCall:
    """Return a complete call of a method to suggest."""
    return {"name": method, "arguments": arguments}


Part: TypeAlias = str | NextCall | ToolName | ParameterName | Retry


class Names:
    """The names of the offered tools, here those of the methods; None if no tool is suitable."""

    def tool(self, method: str) -> str | None:
        """Return the name of the tool for a method."""
        return method

    def parameter(self, name: str) -> str | None:
        """Return the visible name of a parameter of the answered call."""
        return name

    def call(self, call: NextCall) -> NextCall | None:
        """Return the call of a tool that does the same as a call of a method."""
        return call

    def retry(self, retry: Retry) -> Retry | None:
        """Return the changes of the answered call under visible names."""
        return retry

    def repeated(self, retry: Retry) -> NextCall | None:
        """Return the answered call with changes under visible names."""


METHODS = Names()  # for Python programs


class Advice(str):
    """A text of parts; if one of them cannot be rendered, neither can the text.

    As a string it contains the names of the methods. Formatting and `+` return a plain string, so compose
    longer texts with another `Advice`.
    """

    __slots__ = ("parts",)
    parts: tuple[Part, ...]
    _has_separator: ClassVar[bool] = False

    def __new__(cls, *parts: Part) -> Self:
        """Join parts to a text."""
        made = super().__new__(cls, cls._text(parts, METHODS) or "")
        made.parts = parts
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.parts

    def render(self, names: Names) -> str | None:
        """Return the text with other names, or None if a name is missing."""
        if names is METHODS and self:
            return self
        return self._text(self.parts, names)

    def calls(self, names: Names) -> Iterator[NextCall]:
        """Yield the complete calls that the text suggests, with other names."""
        for part, _ in self._rendered(self.parts, names) or ():
            found: NextCall | None = None
            if isinstance(part, Advice):
                yield from part.calls(names)
            elif isinstance(part, Retry):
                changed = names.retry(part)
                found = names.repeated(changed) if changed is not None else None
            elif isinstance(part, dict):
                found = names.call(part)
            if found is not None:
                yield found

    @classmethod
    def _text(cls, parts: tuple[Part, ...], names: Names) -> str | None:
        rendered = cls._rendered(parts, names)
        separator = str(parts[0]) if cls._has_separator else ""
        return None if rendered is None else separator.join([text for _, text in rendered])

    @classmethod
    def _rendered(cls, parts: tuple[Part, ...], names: Names) -> list[tuple[Part, str]] | None:
        """Return the parts that are shown, each with its text; None if the text cannot be rendered."""
        texts = [(part, text) for part in parts if (text := _part_text(part, names)) is not None]
        return texts if len(texts) == len(parts) else None


class Joined(Advice):
    """Join the parts that can be rendered. The first argument is the separator."""

    __slots__ = ()
    _has_separator = True

    @classmethod
    def _rendered(cls, parts: tuple[Part, ...], names: Names) -> list[tuple[Part, str]] | None:
        return [(part, text) for part in parts[1:] if (text := _part_text(part, names))] or None


class FirstOf(Advice):
    """The first of several parts that can be rendered."""

    __slots__ = ()

    @classmethod
    def _rendered(cls, parts: tuple[Part, ...], names: Names) -> list[tuple[Part, str]] | None:
        texts = ([(part, text)] for part in parts if (text := _part_text(part, names)) is not None)
        return next(texts, None)


def say(text: str, names: Names) -> str:
    """Return a text with the names of the offered tools, or "" if a name is missing."""
    return _part_text(text, names) or "" if isinstance(text, Advice) else text


def calls_in(text: str, names: Names = METHODS) -> list[NextCall]:
    """Return the complete calls that a text suggests."""
    return list(text.calls(names)) if isinstance(text, Advice) else []


def _arguments_text(arguments: Mapping[str, Any]) -> list[str]:
    return [f"{name}={to_json(value)}" for name, value in arguments.items()]


def plural(count: int, noun: str, several: str = "") -> str:
    """Return for example "1 line" or "2 lines"; `several` is an irregular plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {several or noun + 's'}"


def shortened(lines: Sequence[str], most: int, noun: str) -> list[str]:
    """Return the first lines and, if there are others, their number, such as "[3 more files]"."""
    left_out = len(lines) - most
    return [*lines[:most], *([f"[{plural(left_out, f'more {noun}')}]"] if left_out > 0 else [])]


def _part_text(part: Part, names: Names) -> str | None:
    if isinstance(part, Advice):
        return part.render(names)
    if isinstance(part, str):
        return part
    if isinstance(part, ToolName):
        return names.tool(part.method)
    if isinstance(part, ParameterName):
        name = names.parameter(part.name)
        return f"`{name}`" if name is not None and part.quoted else name
    if isinstance(part, Retry):
        changed = names.retry(part)
        if changed is None:
            return None
        passed = " and ".join(_arguments_text(changed.arguments))
        omitted = " and ".join(changed.without)
        return Joined(" and ", passed and f"pass {passed}", omitted and f"leave out {omitted}")
    call = names.call(part)
    return None if call is None else f"{call['name']}({', '.join(_arguments_text(call['arguments']))})"
