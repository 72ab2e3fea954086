r"""Tokens of a pattern, in the syntax of the `regex` module without its fuzzy matching.

`regex` reads `${e}` and `foo{d}` as fuzzy constraints and finds almost anything. Here, a `{` that does not
open a numeric quantifier is a literal brace. Bounds, plans and error messages are derived from the tokens.
"""

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

MAX_CHARACTERS = 1000

_CAPTURE = re.compile(r"\(|\(\?P?<[^>]*>")
_SET_ESCAPE = re.compile(
    r"\\x([0-9A-Fa-f]{2})|\\[uU]([0-9A-Fa-f]{4,8})|\\[pPN]\{[^}]*\}|\\[pP].|\[:[^\]]*:\]|\\[A-Za-z]"
)
_POSIX = r"\[:\^?[A-Za-z0-9 &_\-./:=]*?:\]"
_MEMBER = rf"{_POSIX}|\\.|(?!{_POSIX})"  # of a set, before the class of a single character
_FLAGS = "[abefiLmprsuVwx01]"
_BLANK = re.compile(r"(?P<comment>\s|#[^\n]*\n?)")  # in verbose mode
_TOKEN = re.compile(
    rf"""(?P<comment>\(\?\#(?:[^)\\]|\\.)*\))
    |(?P<call>\(\?(?:P[>&][^)]*|&[^)]*|R|[+-]?[0-9]+)\))
    |(?P<other>\(\?P=[^)]*\)|\(\*[A-Za-z]+\)|\\[gL]<[^>]*>|\\[0-9]{{1,3}})
    |(?P<look>\(\?<?[=!])
    |(?P<open>\((?!\?)|\(\?(?::|>|P?<[^>=!)]*>))
    |(?P<opaque>\(\?(?:\||\([^?)]*\)))
    |(?P<flags>\(\?(?P<on>{_FLAGS}*)(?P<off>-{_FLAGS}+)?[:)])
    |(?P<unknown>\(\?)
    |(?P<close>\))
    |(?P<repeat>(?:[*+?]|\{{(?:(?P<low>[0-9]+)(?P<comma>,?)(?P<high>[0-9]*)|,(?P<most>[0-9]+))\}})[?+]?)
    |(?P<set>\[\^?+(?:{_MEMBER}[^\\])(?:{_MEMBER}[^\]\\])*\])
    |(?P<unended>\[.*)
    |(?P<class>\\[dDsSwW])|(?P<edge>\\[bBmM<>])|(?P<start>\^|\\A)|(?P<end>\$|\\[Zz])|(?P<any>\.)|(?P<or>\|)
    |(?P<property>\\[pP](?:\{{\^?[\w\ &\-./]*(?:[:=][\w\ &\-./]*)?\}}|[CLMNPSZ])|\\N\{{[A-Za-z0-9\ \-]*\}})
    |(?P<hex>\\x[0-9A-Fa-f]{{1,2}}|\\u[0-9A-Fa-f]{{1,4}}|\\U[0-9A-Fa-f]{{1,8}})
    |(?P<character>\\[afnrtv]|\\[^A-Za-z0-9]|[^\\])
    |(?P<escape>\\.?)""",
    re.DOTALL | re.VERBOSE | re.ASCII,
)
_KINDS = {"opaque": "open", "unknown": "open", "unended": "other", "escape": "other"}
_CONTROLS = {"\\a": "\a", "\\f": "\f", "\\n": "\n", "\\r": "\r", "\\t": "\t", "\\v": "\v"}
# The start and the end of a word, as in rg and grep; and a brace that opens no quantifier.
_WRITTEN = {"\\<": r"\b(?=\w)", "\\>": r"\b(?<=\w)", "{": "\\{"}
_BASIC = {f"\\{each}": each for each in "|(){}+?"} | {each: f"\\{each}" for each in "|(){}+?"}
_EMPTY_BRANCH = re.compile(r"(?:^|(?<!\\)[(|])\||(?<!\\)\|(?:$|[|)])")
_SPECIAL = re.compile(r"[\\.*+?^$|()\[\]{}]")
_ESCAPED_OR_ONE = re.compile(r"\\[^\w\s]|.", re.DOTALL)
_REPEATS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


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

    kind: str
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

    def without_captures(self) -> "Syntax":
        """Return the pattern without capturing groups, or unchanged if it may refer to a group."""
        if self.opaque:
            return self
        tokens = [
            token._replace(text="(?:") if token.kind == "open" and _CAPTURE.fullmatch(token.text) else token
            for token in self.tokens
        ]
        return replace(self, tokens=tokens)

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
    syntax = _read(pattern, verbose=False)
    # A flag in the middle applies to the complete pattern, even to the part before it.
    if any(token.is_flags and "x" in token.value for token in syntax.tokens):
        syntax = _read(pattern, verbose=True)
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
    return any((token.kind, token.value) == ("character", character) for token in _first_tokens(pattern))


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


def _read(pattern: str, *, verbose: bool) -> Syntax:
    syntax = Syntax(pattern, opaque=verbose)
    modes = [verbose]  # True in verbose mode, for each open group
    at = 0
    while found := (_BLANK.match(pattern, at) if modes[-1] else None) or _TOKEN.match(pattern, at):
        name, text, start, at = found.lastgroup or "", found[0], at, found.end()
        token = Token(_KINDS.get(name, name), _WRITTEN.get(text, text), start)
        mode = modes[-1]
        if name == "character":
            token = token._replace(value=_CONTROLS.get(text, text[-1]))
        elif name == "hex":
            value = _character(text[2:])
            token = token._replace(kind="character" if value else "other", value=value)
        elif name == "repeat":
            low, high = _REPEATS.get(text[0]) or _counts(found)
            token = token._replace(low=low, high=high)
        elif name == "flags":
            on, off = found["on"], found["off"] or ""
            # Turning off `m` makes the pattern opaque, because a line regex needs it.
            simple = set(on) <= set("ims") and set(off) <= set("-is")
            syntax.opaque = syntax.opaque or not simple
            kind = "open"
            if text.endswith(":"):
                mode = (mode or "x" in on) and "x" not in off
            else:
                kind = "flags" if simple and not off and not syntax.tokens else "other"
            token = token._replace(kind=kind, value=on)
        syntax.tokens.append(token)
        syntax.opaque = syntax.opaque or token.kind == "other" or name in {"opaque", "unknown"}
        if token.kind in {"open", "look"}:
            syntax.unclosed.append(start)
            modes.append(mode)
        elif token.kind == "close" and syntax.unclosed:
            syntax.unclosed.pop()
            modes.pop()
    return syntax


def _counts(found: re.Match[str]) -> tuple[int, int | None]:
    """Return the least and the greatest number of a quantifier in braces; None for any number."""
    # Nine digits exceed every bound, and thousands of digits would be slow to convert.
    low, high = int((found["low"] or "0")[:9]), found["high"] or found["most"]
    return low, int(high[:9]) if high else None if found["comma"] else low
