"""Texts that name tools and parameters, as data until the names are known.

A method does not know under which name it is called: a toolset may prefix it, a dialect may rename it and its
parameters, or offer nothing that can follow its advice. So a text that gives advice is an `Advice`: a string
in the names of the workspace's methods, which keeps its parts. A toolset renders it in the names of its
tools, without the sentences that none of its tools can follow.
"""

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any, NamedTuple, Self, TypeAlias, TypedDict

from agentfs.visible import to_json


class NextCall(TypedDict):
    """A tool call that continues a result: its name and the arguments to pass."""

    name: str
    arguments: dict[str, Any]


class ToolName(NamedTuple):
    """The name of the tool that a method is offered as."""

    method: str


class ParameterName(NamedTuple):
    """The name of a parameter of the call that is answered; on request in backquotes."""

    name: str
    quoted: bool = False


class Retry(NamedTuple):
    """The call that is answered, with other arguments, and without some."""

    arguments: Mapping[str, Any]
    without: tuple[str, ...] = ()


def call(method: str, **arguments: Any) -> NextCall:
    """Return a complete call of a method, for a message that advises it."""
    return {"name": method, "arguments": arguments}


_text_of = itemgetter(1)
Part: TypeAlias = str | NextCall | ToolName | ParameterName | Retry


class Names:
    """What the tools at hand are called; None for a tool that is not offered."""

    def tool(self, method: str) -> str | None:
        """Return how to name the tool for a method."""

    def parameter(self, name: str) -> str | None:
        """Return the name of a parameter of the call that is answered."""

    def call(self, call: NextCall) -> NextCall | None:
        """Return the call of a tool that does what a call of a method does."""

    def retry(self, retry: Retry) -> Retry | None:
        """Return what to change in the call that is answered."""

    def repeated(self, retry: Retry) -> NextCall | None:
        """Return the whole call that a retry in these names comes to, where the answered one is known."""


class _MethodNames(Names):
    """The names of the workspace's own methods, as a Python program calls them."""

    def tool(self, method: str) -> str | None:
        return method

    def parameter(self, name: str) -> str | None:
        return name

    def call(self, call: NextCall) -> NextCall | None:
        return call

    def retry(self, retry: Retry) -> Retry | None:
        return retry


METHODS: Names = _MethodNames()


class Advice(str):
    """A text of several parts, all of which must have a name; as a string it has the names of the methods.

    Formatting it or adding to it gives a plain string, so longer texts are made of it by another `Advice`.
    """

    __slots__ = ("parts",)
    parts: tuple[Part, ...]

    def __new__(cls, *parts: Part) -> Self:
        """Make a text of parts."""
        made = super().__new__(cls, cls._text(parts, METHODS) or "")
        made.parts = parts
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.parts

    def render(self, names: Names) -> str | None:
        """Return the text in other names, or None where it needs one that there is not."""
        if names is METHODS and self:
            return self
        return self._text(self.parts, names)

    def calls(self, names: Names) -> Iterator[NextCall]:
        """Yield the complete calls that the text advises, in other names."""
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
        return None if rendered is None else "".join(map(_text_of, rendered))

    @classmethod
    def _rendered(cls, parts: tuple[Part, ...], names: Names) -> list[tuple[Part, str]] | None:
        """Return the parts that the text consists of, each with its text."""
        texts = [
            (part, text)
            for part in parts
            if (text := part if type(part) is str else _part_text(part, names)) is not None
        ]
        return texts if len(texts) == len(parts) else None


class Joined(Advice):
    """The parts that have a name, with a separator between them, which is the first argument."""

    __slots__ = ()

    @classmethod
    def _text(cls, parts: tuple[Part, ...], names: Names) -> str | None:
        rendered = cls._rendered(parts, names)
        return None if rendered is None else str(parts[0]).join(map(_text_of, rendered))

    @classmethod
    def _rendered(cls, parts: tuple[Part, ...], names: Names) -> list[tuple[Part, str]] | None:
        return [
            (part, text)
            for part in parts[1:]
            if (text := part if type(part) is str else _part_text(part, names))
        ] or None


class FirstOf(Advice):
    """The first of several parts that has a name."""

    __slots__ = ()

    @classmethod
    def _rendered(cls, parts: tuple[Part, ...], names: Names) -> list[tuple[Part, str]] | None:
        texts = ([(part, text)] for part in parts if (text := _part_text(part, names)) is not None)
        return next(texts, None)


def say(text: str, names: Names) -> str:
    """Return a text in the names of the tools at hand, "" where it needs one that they do not have."""
    return text.render(names) or "" if isinstance(text, Advice) else text


def calls_in(text: str, names: Names = METHODS) -> list[NextCall]:
    """Return the complete calls that a text advises."""
    return list(text.calls(names)) if isinstance(text, Advice) else []


def call_text(call: NextCall) -> str:
    """Return a call as a text advises it: a name, and arguments in JSON."""
    return f"{call['name']}({', '.join(_assignments(call['arguments']))})"


def plural(count: int, noun: str, several: str = "") -> str:
    """Return "1 line", "2 lines"; `several` is a plural that does not end in a mere "s"."""
    return f"{count} {noun}" if count == 1 else f"{count} {several or noun + 's'}"


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
        passed = " and ".join(_assignments(changed.arguments))
        omitted = " and ".join(changed.without)
        return Joined(" and ", passed and f"pass {passed}", omitted and f"leave out {omitted}")
    call = names.call(part)
    return None if call is None else call_text(call)


def _assignments(arguments: Mapping[str, Any]) -> list[str]:
    return [f"{name}={to_json(value)}" for name, value in arguments.items()]
