"""Whether a group of a pattern calls itself before it has matched a character, and so without end."""

import re
from dataclasses import dataclass, field

from agentfs.patterns.syntax import Syntax, Token, is_call

_CONSUMING = frozenset({"character", "class", "set", "property", "any"})
_CALLED = re.compile(r"\(\?(?:P?[>&]([^)]*)|(R)|([+-]?)([0-9]+))\)")
_NAMED = re.compile(r"\(\?P?<([^>]*)>")
_WHOLE = "0"  # what `(?R)` calls


@dataclass(slots=True)
class _Open:
    """A group that is open.

    Attributes:
        name: What it is called by; "" where nothing can call it.
        consumed: Whether its present alternative has matched a character by now.
        others: Whether all alternatives before have.
        last: Whether what was read last matches a character.
        looks: Whether it is a lookahead or lookbehind, after which the place is the one before.
    """

    name: str
    consumed: bool = False
    others: bool = True
    last: bool = False
    looks: bool = False


@dataclass(slots=True)
class _Reader:
    opened: list[_Open] = field(default_factory=lambda: [_Open(_WHOLE)])
    calls: list[tuple[str, str, Token]] = field(default_factory=list[tuple[str, str, Token]])
    numbers: dict[str, str] = field(default_factory=lambda: {_WHOLE: _WHOLE})

    def starts_in(self) -> str | None:
        """Return the group that can be called and come here before a character, or None."""
        for each in reversed(self.opened):
            if each.consumed or each.last:
                return None
            if each.name:
                return each.name
        return None

    def take(self, token: Token) -> None:
        top = self.opened[-1]
        if token.kind == "repeat":
            top.last = top.last and token.low > 0
            return
        if token.kind == "comment":
            return
        top.consumed = top.consumed or top.last
        top.last = token.kind in _CONSUMING
        if token.kind in {"open", "look"}:
            name = ""
            named = _NAMED.fullmatch(token.text)
            if named is not None or token.text == "(":
                name = str(len(self.numbers))
                self.numbers[name] = name
                if named is not None:
                    self.numbers.setdefault(named[1], name)
                if (outer := self.starts_in()) is not None:
                    self.calls.append((outer, name, token))
            self.opened.append(_Open(name, looks=token.kind == "look"))
        elif token.kind == "close" and len(self.opened) > 1:
            closed = self.opened.pop()
            self.opened[-1].last = closed.consumed and closed.others and not closed.looks
        elif token.kind == "or":
            top.others, top.consumed = top.others and top.consumed, False
        elif token.kind == "other" and is_call(token) and (outer := self.starts_in()) is not None:
            called = _CALLED.fullmatch(token.text)
            if called is not None:
                name = called[1] or (_WHOLE if called[2] else called[4])
                if called[3]:
                    before = sum(each.isdecimal() for each in self.numbers) - 1
                    name = str(before + int(name) if called[3] == "+" else before + 1 - int(name))
                self.calls.append((outer, name, token))


def left_recursion(syntax: Syntax) -> Token | None:
    """Return the call by which a group comes back to itself before it has matched a character, or None.

    Args:
        syntax: A pattern that the engine accepts.
    """
    if not any(token.kind == "other" and is_call(token) for token in syntax.tokens):
        return None
    reader = _Reader()
    for token in syntax.tokens:
        reader.take(token)
    calls = [(outer, reader.numbers.get(name, name), token) for outer, name, token in reader.calls]
    reaches: dict[str, list[str]] = {}
    for outer, called, _ in calls:
        reaches.setdefault(outer, []).append(called)
    return next((token for outer, called, token in calls if _leads(called, outer, reaches)), None)


def _leads(start: str, end: str, reaches: dict[str, list[str]]) -> bool:
    pending, seen = [start], set[str]()
    while pending:
        name = pending.pop()
        if name == end:
            return True
        if name not in seen:
            seen.add(name)
            pending += reaches.get(name, ())
    return False
