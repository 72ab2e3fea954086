"""Texts that name tools and parameters, which know these names from words.

A method does not know under which name it is called: a toolset may prefix it, a dialect may rename it and its
parameters, or offer nothing that can follow its advice. So a text that gives advice is a `Message`: a string
in the names of the workspace's methods, which keeps its parts. A toolset renders it in the names of its tools
and leaves out the sentences that none of its tools can follow. Pure.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self, TypeAlias, TypedDict, cast

from agentfs.visible import to_json


class NextCall(TypedDict):
    """A tool call that continues a result: its name and the arguments to pass."""

    name: str
    arguments: dict[str, Any]


class ToolName(NamedTuple):
    """The name of the tool that a method is offered as.

    Attributes:
        method: The name of the method.
    """

    method: str


class ParameterName(NamedTuple):
    """The name of a parameter of the call that is answered.

    Attributes:
        name: What the method calls it.
        quoted: Whether it stands in backquotes.
    """

    name: str
    quoted: bool = False


class Retry(NamedTuple):
    """The call that is answered, with other arguments.

    Attributes:
        arguments: What to pass.
        without: What to leave out.
    """

    arguments: Mapping[str, Any]
    without: tuple[str, ...] = ()


def call(method: str, **arguments: Any) -> NextCall:
    """Return a complete call of a method, for a message that advises it."""
    return {"name": method, "arguments": arguments}


Part: TypeAlias = str | NextCall | ToolName | ParameterName | Retry


class Names:
    """What the tools at hand are called; None, as everywhere here, stands for what they do not have."""

    def tool(self, method: str) -> str | None:
        """Return how to name the tool for a method."""
        del method
        return None

    def parameter(self, name: str) -> str | None:
        """Return the name of a parameter of the call that is answered."""
        del name
        return None

    def call(self, call: NextCall) -> NextCall | None:
        """Return the call of a tool that does what a call of a method does."""
        del call
        return None

    def retry(self, retry: Retry) -> Retry | None:
        """Return what to change in the call that is answered."""
        del retry
        return None

    def repeated(self, retry: Retry) -> NextCall | None:
        """Return the whole call that a retry in these names comes to, where the answered one is known."""
        del retry
        return None


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


class Message(str):
    """A text of several parts, all of which must be sayable; as a string it has the names of the methods.

    Formatting it or adding to it gives a plain string, so longer texts are made of it by another `Message`.

    Attributes:
        parts: What it consists of.
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

    def said(self, names: Names) -> str | None:
        """Return the text in other names, or None where it needs one that there is not."""
        return self._text(self.parts, names)

    def calls(self, names: Names) -> Iterator[NextCall]:
        """Yield the complete calls that the text advises, in other names."""
        for part in self._said_parts(names):
            if isinstance(part, Message):
                yield from part.calls(names)
            elif isinstance(part, Retry):
                changed = names.retry(part)
                call = names.repeated(changed) if changed is not None else None
                if call is not None:
                    yield call
            elif isinstance(part, dict) and (call := names.call(part)) is not None:
                yield call

    def _said_parts(self, names: Names) -> tuple[Part, ...]:
        return () if self.said(names) is None else self.parts

    @classmethod
    def _text(cls, parts: tuple[Part, ...], names: Names) -> str | None:
        said = [_said(part, names) for part in parts]
        return None if None in said else "".join(cast("list[str]", said))


class Joined(Message):
    """The parts that can be said, with a separator between them, which is the first argument."""

    __slots__ = ()

    def _said_parts(self, names: Names) -> tuple[Part, ...]:
        return tuple(part for part in self.parts[1:] if _said(part, names))

    @classmethod
    def _text(cls, parts: tuple[Part, ...], names: Names) -> str | None:
        said = [text for part in parts[1:] if (text := _said(part, names))]
        return cast("str", parts[0]).join(said) if said else None


class FirstOf(Message):
    """The first of several parts that can be said."""

    __slots__ = ()

    def _said_parts(self, names: Names) -> tuple[Part, ...]:
        return next(((part,) for part in self.parts if _said(part, names) is not None), ())

    @classmethod
    def _text(cls, parts: tuple[Part, ...], names: Names) -> str | None:
        return next((text for part in parts if (text := _said(part, names)) is not None), None)


def say(text: str, names: Names) -> str:
    """Return a text in the names of the tools at hand, "" where it can only be said in others."""
    return text.said(names) or "" if isinstance(text, Message) else text


def calls_in(text: str, names: Names = METHODS) -> list[NextCall]:
    """Return the complete calls that a text advises."""
    return list(text.calls(names)) if isinstance(text, Message) else []


def call_text(call: NextCall) -> str:
    """Return a call as a text advises it: a name, and arguments in JSON."""
    return f"{call['name']}({', '.join(_assigned(*each) for each in call['arguments'].items())})"


def _said(part: Part, names: Names) -> str | None:
    if isinstance(part, Message):
        return part.said(names)
    if isinstance(part, str):
        return part
    if isinstance(part, ToolName):
        return names.tool(part.method)
    if isinstance(part, ParameterName):
        name = names.parameter(part.name)
        return f"`{name}`" if name is not None and part.quoted else name
    if isinstance(part, Retry):
        changed = names.retry(part)
        return None if changed is None else _retry_text(changed)
    call = names.call(part)
    return None if call is None else call_text(call)


def _retry_text(retry: Retry) -> str:
    passed = " and ".join(_assigned(*each) for each in retry.arguments.items())
    left = " and ".join(retry.without)
    parts = [f"pass {passed}"] if passed else []
    return " and ".join([*parts, f"leave out {left}"] if left else parts)


def _assigned(name: str, value: Any) -> str:
    return f"{name}={to_json(value)}"
