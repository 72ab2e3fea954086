r"""Tokens of a pattern, in the syntax of the `regex` module without its fuzzy matching.

`regex` reads `${e}` and `foo{d}` as fuzzy constraints and finds almost anything. Here, a `{` that does not
open a numeric quantifier is a literal brace. Bounds, plans and error messages are derived from the tokens.
"""

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple, get_args

_One = Literal["character", "class", "set", "property", "any"]
_Zero = Literal["start", "end", "edge", "flags", "comment"]
_Kind = Literal[_One, _Zero, "open", "look", "close", "or", "repeat", "call", "other"]

ONE_CHARACTER = frozenset(get_args(_One))  # kinds of tokens that match one character
MAX_CHARACTERS = 1000

_QUANTIFIER = re.compile(r"\{(?:([0-9]+)(,?)([0-9]*)|(,)([0-9]+))\}")
_PROPERTY = re.compile(r"\{\^?[A-Za-z0-9 &_\-./]*(?:[:=][A-Za-z0-9 &_\-./]*)?\}|[CLMNPSZ]")
_NAME = re.compile(r"\{[A-Za-z0-9 \-]*\}")
_POSIX = re.compile(r"\[:\^?[A-Za-z0-9 &_\-./:=]*?:\]")
_ANGLED = re.compile(r"<[^>]*>")
_FLAGS = re.compile(r"\(\?([abefiLmprsuVwx01]*)(-[abefiLmprsuVwx01]+)?([:)])")
_LOOK = re.compile(r"\(\?<?[=!]")
_PLAIN_GROUP = re.compile(r"\(\?(?::|>|P?<[^>=!)]*>)")
_OPAQUE_GROUP = re.compile(r"\(\?(?:\||\([^?)]*\))")
_CALL = re.compile(r"\(\?(?:P[>&][^)]*|&[^)]*|R|[+-]?[0-9]+)\)")
_REFERENCE_OR_VERB = re.compile(r"\(\?P=[^)]*\)|\(\*[A-Za-z]+\)")
_CAPTURE = re.compile(r"\(|\(\?P?<[^>]*>")
_COMMENT = re.compile(r"\(\?#(?:[^)\\]|\\.)*\)", re.DOTALL)
_SET_ESCAPE = re.compile(
    r"\\x([0-9A-Fa-f]{2})|\\[uU]([0-9A-Fa-f]{4,8})|\\[pPN]\{[^}]*\}|\\[pP].|\[:[^\]]*:\]|\\[A-Za-z]"
)
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SPECIAL_CHARACTERS: dict[str, _Kind] = {".": "any", "^": "start", "$": "end", "|": "or"}
_ESCAPES: dict[str, _Kind] = {
    **dict.fromkeys("dDsSwW", "class"),
    **dict.fromkeys("bBmM", "edge"),
    "A": "start",
    **dict.fromkeys("Zz", "end"),
}
_WORD_EDGES = {"<": r"\b(?=\w)", ">": r"\b(?<=\w)"}  # the start and the end of a word, as in rg and grep
_DIGITS = "0123456789"
_HEX = "0123456789abcdefABCDEF"
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_BASIC = {f"\\{each}": each for each in "|(){}+?"} | {each: f"\\{each}" for each in "|(){}+?"}
_EMPTY_BRANCH = re.compile(r"(?:^|(?<!\\)[(|])\||(?<!\\)\|(?:$|[|)])")
_SPECIAL = re.compile(r"[\\.*+?^$|()\[\]{}]")
_ESCAPED_OR_ONE = re.compile(r"\\[^\w\s]|.", re.DOTALL)
_REPEATS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class Token(NamedTuple):
    r"""One token of a pattern.

    Attributes:
        kind: "character" matches the character in `value`, "class" is `\d` and its like, "set" `[…]`,
            "property" `\p{…}` and `\N{…}`, "any" `.`, "start" `^` and `\A`, "end" `$`, `\Z` and `\z`, "edge"
            `\b` and its like, "look" opens a lookahead or lookbehind, "flags" is `(?i)` at the very start,
            "call" runs a group again, and "other" is what only the engine understands.
        text: The form for the engine.
        start: The position in the original pattern.
        value: The matched character of "character"; the letters of "flags" and of a group's flags.
        low: The minimum of a "repeat".
        high: The maximum of a "repeat"; None for any number.
    """

    kind: _Kind
    text: str
    start: int
    value: str = ""
    low: int = 1
    high: int | None = 1

    @property
    def is_flags(self) -> bool:
        """True for flags such as `(?ix)` that hold for the complete pattern."""
        return self.kind == "flags" or (self.kind == "other" and self.value != "")


@dataclass
class Syntax:
    """A pattern in tokens."""

    pattern: str  # the original text
    tokens: list[Token] = field(default_factory=list[Token])
    opaque: bool = False  # only the engine understands the pattern, so it has no plan
    unclosed: list[int] = field(default_factory=list[int])  # positions of parentheses that are never closed

    @cached_property
    def source(self) -> str:
        """The pattern for the engine."""
        return "".join([token.text for token in self.tokens])

    @cached_property
    def plain(self) -> str:
        """The text to find, if all tokens are literal characters; else ""."""
        is_plain = {token.kind for token in self.tokens} == {"character"}
        return "".join([token.value for token in self.tokens]) if is_plain else ""

    def without_captures(self) -> "Syntax":
        """Return the pattern without capturing groups, or unchanged if it may refer to a group."""
        if self.opaque or self.plain:
            return self
        tokens = [
            token._replace(text="(?:") if token.kind == "open" and _CAPTURE.fullmatch(token.text) else token
            for token in self.tokens
        ]
        return self if tokens == self.tokens else replace(self, tokens=tokens)

    def between(self, before: str, after: str) -> "Syntax":
        """Return the pattern as a group between two other patterns; flags at its start stay in front."""
        rest = next((at for at, token in enumerate(self.tokens) if not token.is_flags), len(self.tokens))
        end = "\n" * self.tokens[-1].text.startswith("#")  # ends a comment
        ahead, behind = read_syntax(f"{before}(?:").tokens, read_syntax(f"{end}){after}").tokens
        return replace(self, tokens=[*self.tokens[:rest], *ahead, *self.tokens[rest:], *behind])

    def written_position(self, position: int) -> int:
        """Return the position in `pattern` of a position in `source`."""
        at = 0
        for token in self.tokens:
            if position < at + len(token.text):
                return token.start + min(position - at, max(len(token.text) - 1, 0))
            at += len(token.text)
        return len(self.pattern)


def read_syntax(pattern: str) -> Syntax:
    """Return the tokens of a pattern, even of an invalid one; the engine reports mistakes."""
    if not _SPECIAL.search(pattern):
        return literal_syntax(pattern)
    syntax = _Reader(pattern, verbose=False).read()
    # A flag in the middle applies to the complete pattern, even to the part before it.
    if any(token.is_flags and "x" in token.value for token in syntax.tokens):
        syntax = _Reader(pattern, verbose=True).read()
    return syntax


def literal_syntax(text: str) -> Syntax:
    """Return the tokens of a pattern that matches exactly this text."""
    escapes = {each: f"\\{each}" for each in _SPECIAL.findall(text)}
    return Syntax(text, [Token("character", escapes.get(each, each), n, each) for n, each in enumerate(text)])


def escape(text: str) -> str:
    """Return a pattern that matches exactly this text."""
    return _SPECIAL.sub(lambda found: "\\" + found[0], text)


def as_plain_text(pattern: str) -> str:
    """Escape the characters of a pattern, except those that are escaped already."""
    return "".join(part if len(part) > 1 else escape(part) for part in _ESCAPED_OR_ONE.findall(pattern))


def has_capital(pattern: str) -> bool:
    """Return True if a pattern has a literal capital letter, for smart case."""
    letters = ""
    for token in _first_tokens(pattern):
        if token.kind == "set":
            letters += _SET_ESCAPE.sub(lambda each: _character(each[1] or each[2] or "0"), token.text)
        letters += token.value * (token.kind == "character")
    return any(map(str.isupper, letters))


def _first_tokens(pattern: str) -> list[Token]:
    return read_syntax(pattern[:MAX_CHARACTERS]).tokens  # the compiler refuses a longer pattern


def _character(digits: str) -> str:
    """Return the character of a hexadecimal number, or "" if there is none."""
    code = int(digits or "110000", 16)
    return chr(code) if code <= 0x10FFFF else ""


def has_character(pattern: str, character: str) -> bool:
    """Return True if a pattern has this literal character."""
    return any(token.value == character for token in _first_tokens(pattern) if token.kind == "character")


def from_basic_syntax(pattern: str) -> list[str]:
    r"""Return the readings of a pattern with `\|` or `\(`: all in basic syntax, and only `\|` in it."""
    tokens = read_syntax(pattern).tokens
    ends = [*(token.start for token in tokens[1:]), len(pattern)]
    texts = [pattern[token.start : end] for token, end in zip(tokens, ends, strict=True)]
    if not {"\\|", "\\("} & {*texts}:
        return []
    basic = "".join(_BASIC.get(text, text) for text in texts)
    meant = dict.fromkeys([basic, "".join("|" if text == "\\|" else text for text in texts)])
    return [each for each in meant if each != pattern and not _EMPTY_BRANCH.search(each)]


class _Reader:
    def __init__(self, pattern: str, *, verbose: bool) -> None:
        self.pattern = pattern
        self.at = 0
        self.syntax = Syntax(pattern, opaque=verbose)
        self.verbose = [verbose]  # one item for each open group
        self.open: list[int] = []

    def read(self) -> Syntax:
        while self.at < len(self.pattern):
            self._one()
        self.syntax.unclosed = self.open
        return self.syntax

    def _add(
        self, kind: _Kind, length: int, value: str = "", low: int = 1, high: int | None = 1, *, text: str = ""
    ) -> None:
        start = self.at
        self.at += length
        text = text or self.pattern[start : self.at]
        self.syntax.tokens.append(Token(kind, text, start, value, low, high))
        if kind == "other":
            self.syntax.opaque = True

    def _one(self) -> None:
        char = self.pattern[self.at]
        if self.verbose[-1] and (char.isspace() or char == "#"):
            end = self.pattern.find("\n", self.at) + 1 if char == "#" else self.at + 1
            self._add("comment", (end or len(self.pattern)) - self.at)
        elif char == "\\":
            self._escape()
        elif char == "[":
            self._set()
        elif char == "(":
            self._group()
        elif char == ")":
            self._add("close", 1)
            if self.open:
                self.open.pop()
                self.verbose.pop()
        elif char == "{":
            self._brace()
        elif char in _REPEATS:
            self._repeat(1, *_REPEATS[char])
        elif char in _SPECIAL_CHARACTERS:
            self._add(_SPECIAL_CHARACTERS[char], 1)
        else:
            self._add("character", 1, value=char)

    def _brace(self) -> None:
        found = _QUANTIFIER.match(self.pattern, self.at)
        if found is None:
            self._add("character", 1, text="\\{", value="{")
            return
        # Nine digits exceed every bound, and thousands of digits would be slow to convert.
        first, comma, second, _, only = (part and part[:9] for part in found.groups())
        low = int(first or 0)
        high = int(only or second or 0) if only or second else None if comma else low
        self._repeat(len(found[0]), low, high)

    def _repeat(self, length: int, low: int, high: int | None) -> None:
        if self.pattern[self.at + length : self.at + length + 1] in ("?", "+"):
            length += 1
        self._add("repeat", length, low=low, high=high)

    def _escape(self) -> None:
        pattern, at = self.pattern, self.at
        char = pattern[at + 1 : at + 2]
        if char == "" or char in "gLXRGKh":
            angled = _ANGLED.match(pattern, at + 2) if char and char in "gL" else None
            self._add("other", len(char) + 1 + (len(angled[0]) if angled else 0))
        elif char in "pPN":
            found = (_NAME if char == "N" else _PROPERTY).match(pattern, at + 2)
            self._add("property" if found else "other", 2 + (len(found[0]) if found else 0))
        elif char in _HEX_DIGITS:
            end = self._end_of(_HEX, at + 2, _HEX_DIGITS[char])
            value = _character(pattern[at + 2 : end])
            self._add("character" if value else "other", end - at, value=value)
        elif char in _DIGITS:
            self._add("other", self._end_of(_DIGITS, at + 2, 2) - at)
        elif char in _ESCAPES:
            self._add(_ESCAPES[char], 2)
        elif char in _WORD_EDGES:
            self._add("edge", 2, text=_WORD_EDGES[char])
        elif char in _CONTROLS:
            self._add("character", 2, value=_CONTROLS[char])
        elif char.isascii() and char.isalpha():
            self._add("other", 2)
        else:
            self._add("character", 2, value=char)

    def _end_of(self, characters: str, start: int, most: int) -> int:
        rest = self.pattern[start : start + most]
        return start + len(rest) - len(rest.lstrip(characters))

    def _set(self) -> None:
        pattern = self.pattern
        end = self.at + (2 if pattern.startswith("[^", self.at) else 1)
        first = True  # here, a `]` is a member
        while end < len(pattern) and (first or pattern[end] != "]"):
            posix = _POSIX.match(pattern, end)
            end = posix.end() if posix else end + (2 if pattern[end] == "\\" else 1)
            first = False
        self._add("set" if end < len(pattern) else "other", min(end + 1, len(pattern)) - self.at)

    def _group(self) -> None:
        pattern, at = self.pattern, self.at
        if found := _COMMENT.match(pattern, at):
            self._add("comment", len(found[0]))
        elif found := _CALL.match(pattern, at):
            self._add("call", len(found[0]))
        elif found := _REFERENCE_OR_VERB.match(pattern, at):
            self._add("other", len(found[0]))
        elif found := _LOOK.match(pattern, at):
            self._opened("look", len(found[0]))
        elif found := _PLAIN_GROUP.match(pattern, at):
            self._opened("open", len(found[0]))
        elif found := _OPAQUE_GROUP.match(pattern, at):
            self._opened("open", len(found[0]), opaque=True)
        elif found := _FLAGS.match(pattern, at):
            self._flags(found)
        else:
            unknown = pattern.startswith("(?", at)
            self._opened("open", 2 if unknown else 1, opaque=unknown)

    def _opened(
        self, kind: _Kind, length: int, *, value: str = "", opaque: bool = False, text: str = ""
    ) -> None:
        self.open.append(self.at)
        self.verbose.append(self.verbose[-1])
        self._add(kind, length, value=value, text=text)
        self.syntax.opaque = self.syntax.opaque or opaque

    def _flags(self, found: re.Match[str]) -> None:
        on, off, end = found[1], found[2] or "", found[3]
        # Turning off `m` makes the pattern opaque, because a line regex needs it.
        simple = set(on) <= set("ims") and set(off) <= set("-is")
        if end == ":":
            self._opened("open", len(found[0]), value=on, opaque=not simple)
            self.verbose[-1] = (self.verbose[-1] or "x" in on) and "x" not in off
        else:
            leading = simple and not off and not self.syntax.tokens
            self._add("flags" if leading else "other", len(found[0]), value=on)
