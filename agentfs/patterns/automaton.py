r"""Find the lines that may match with Hyperscan, which takes the same short time for every kind of pattern.

Hyperscan is installed with the extra `speed`. It reads bytes, so the pattern is translated to one over bytes
that matches wherever the pattern matches, and sometimes elsewhere. The engine then decides about the lines
that were found. What the translation does not understand is widened or left out, never narrowed:

- Each character that may lie outside ASCII matches one to four bytes of UTF-8. Other files are not left out.
- Zero-width tests are dropped, except `^` at the start and `$` at the end of the pattern.
- Each match is extended to the end of its line, so that a line is reported once.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Self

from agentfs.patterns.syntax import ONE_CHARACTER, OUTSIDE_ASCII, Members, Syntax, Token, characters_of

try:
    hyperscan: Any = import_module("hyperscan")
except ImportError:
    hyperscan = None

_MAX_SIZE = 1000  # characters of a pattern with its repeats written out; within it, compiling takes 0.1 s
_MAX_COUNT = 64  # larger counts of repeats are not told apart
_PART = 1024 * 1024  # bytes between two checks of the clock
_LINE_END = r"[\n\r\0]"  # a NUL follows each text
_LINE_START = r"(?:^|[\r\0\xbf])"  # a byte order mark ends in BF
_REST_OF_LINE = r"[^\n\0]*[\n\0]"
_OUTSIDE_ASCII = r"\x80-\xff"  # the bytes of a character
_DIGIT_OUTSIDE_ASCII = r"\x80-\xbf\xd9-\xe1\xea\xef\xf0"  # few other characters have only such bytes


class _Part(NamedTuple):
    source: str
    size: int  # with the repeats written out
    empty: bool  # it may match an empty text
    run: str = ""  # a class with every byte of the characters that one token matches, if one is outside ASCII


_EMPTY = _Part("", 0, empty=True)


class _Unsupported(Exception):  # noqa: N818 - not an error: the pattern has no automaton
    pass


def byte_pattern(syntax: Syntax, members: Members, *, ignore_case: bool, multiline: bool) -> str | None:
    """Translate a pattern to one over bytes that matches at least as much; None if that is in doubt."""
    if syntax.opaque or syntax.unclosed:
        return None
    tokens = [token for token in syntax.tokens if token.kind != "comment"]
    folded = ignore_case or any(token.kind == "flags" and "i" in token.value for token in tokens)
    tokens = [token for token in tokens if token.kind != "flags"]
    starts = ends = False
    if not _has_choice(tokens):
        while tokens and tokens[-1].kind == "end":
            tokens.pop()
            ends = True
        while tokens and tokens[0].kind == "start" and not (tokens[1:] and tokens[1].kind == "repeat"):
            del tokens[0]
            starts = True
    translator = _Translator(tokens, members, folded=folded, multiline=multiline)
    translator.before, translator.after = not starts, not ends
    try:
        part = translator.translate()
    except _Unsupported:
        return None
    if part.empty and not (starts and ends):
        return None  # it matches everywhere
    start = _LINE_START if starts else ""
    return f"{start}(?:{part.source}){_LINE_END if ends else _REST_OF_LINE}"


def _has_choice(tokens: Sequence[Token]) -> bool:
    """Return True if a pattern is a choice, outside all groups."""
    depth = 0
    for token in tokens:
        depth += (token.kind in {"open", "look"}) - (token.kind == "close")
        if token.kind == "or" and not depth:
            return True
    return False


class _Translator:
    """A recursive-descent parser that writes each token as a pattern over bytes."""

    def __init__(self, tokens: Sequence[Token], members: Members, *, folded: bool, multiline: bool) -> None:
        self.tokens = tokens
        self.members = members
        self.folded = folded
        self.multiline = multiline
        self.before = self.after = True  # a match may be extended by the text before it, and after it
        self.at = 0

    def translate(self) -> _Part:
        part = self._alternatives()
        if self.at != len(self.tokens):
            raise _Unsupported
        return part

    def _alternatives(self) -> _Part:
        branches = [self._sequence()]
        while self._next_kind() == "or":
            self.at += 1
            branches.append(self._sequence())
        return _Part(
            "|".join(branch.source for branch in branches),
            sum(branch.size for branch in branches),
            any(branch.empty for branch in branches),
        )

    def _sequence(self) -> _Part:
        parts: list[_Part] = []
        while self._next_kind() not in {"or", "close", ""}:
            token = self.tokens[self.at]
            self.at += 1
            parts.append(self._repeated(self._one(token)))
        size = sum(part.size for part in parts)
        if size > _MAX_SIZE:
            raise _Unsupported
        return _Part("".join(part.source for part in parts), size, all(part.empty for part in parts))

    def _one(self, token: Token) -> _Part:
        match token.kind:
            case "open" | "look":
                return self._group(token)
            case "start" | "end" | "edge":
                return _EMPTY
            case _ if token.kind in ONE_CHARACTER:
                return self._character(token)
            case _:
                raise _Unsupported

    def _group(self, token: Token) -> _Part:
        folded, is_first = self.folded, self.at == 1
        self.folded = folded or "i" in token.value
        part = self._alternatives()
        self.folded = folded
        if self._next_kind() != "close":
            raise _Unsupported
        self.at += 1
        is_last = self.at == len(self.tokens)
        if token.kind == "look":
            extends = (token.text == "(?=" and is_last and self.after) or (
                token.text == "(?<=" and is_first and self.before and self._next_kind() != "repeat"
            )
            if not extends:
                return _EMPTY
        return part._replace(source=f"(?:{part.source})", run="")

    def _repeated(self, part: _Part) -> _Part:
        while self._next_kind() == "repeat":
            token = self.tokens[self.at]
            self.at += 1
            low = min(token.low, _MAX_COUNT)
            high = None if token.high is None or token.high > _MAX_COUNT else token.high
            if part.run:
                repeat = f"{{{low},{'' if high is None else 4 * high}}}"
                part = _Part(part.run + repeat, 4, empty=not low)
            elif part.source:
                repeat = f"{{{low},{'' if high is None else high}}}"
                size = part.size * max(low if high is None else high, 1)
                part = _Part(f"(?:{part.source}){repeat}", size, part.empty or not low)
            if part.size > _MAX_SIZE:
                raise _Unsupported
        return part

    def _character(self, token: Token) -> _Part:
        """Return a pattern for the bytes of one character."""
        found = set(characters_of(token, self.members, folded=self.folded)) - {"\0"}
        if token.kind == "any" and self.multiline:
            found.add("\n")
        is_outside = OUTSIDE_ASCII in found
        found.discard(OUTSIDE_ASCII)
        may_end = "\n" in found and self.multiline
        if may_end:
            found.add("\r")
        elif token.kind != "character":
            found.discard("\n")
        members = "".join(f"\\x{ord(each):02x}" for each in sorted(found))
        choices = [r"\r\n"] if may_end else []
        if members:
            choices.append(f"[{members}]")
        if is_outside:
            outside = _DIGIT_OUTSIDE_ASCII if token.text == r"\d" else _OUTSIDE_ASCII
            choices.append(f"[{outside}]{{1,4}}")
            members += outside
        if not choices:
            raise _Unsupported
        run = f"[{members}]" if is_outside else ""
        return _Part(f"(?:{'|'.join(choices)})", 5 if is_outside else 1, empty=False, run=run)

    def _next_kind(self) -> str:
        """Return the kind of the next token, or "" at the end."""
        return self.tokens[self.at].kind if self.at < len(self.tokens) else ""


class Automaton:
    """A pattern over bytes, compiled. Only one thread may use it at a time."""

    def __init__(self, database: Any, source: str) -> None:
        self._scan = database.scan
        self.is_for_utf8 = r"\x80-" in source  # it may miss matches in other encodings

    @classmethod
    def of(cls, source: str | None) -> Self | None:
        """Compile a pattern of `byte_pattern`; None if Hyperscan is not installed or refuses it."""
        if source is None or hyperscan is None:
            return None
        try:
            database = hyperscan.Database()
            database.compile(expressions=[source.encode()], flags=hyperscan.HS_FLAG_MULTILINE)
        except hyperscan.HyperscanError:
            return None
        return cls(database, source)

    def find(self, data: bytearray, end: int) -> bool:
        """Return True if the text up to a position may match; a NUL must be there."""
        with memoryview(data)[: end + 1] as view:
            try:
                self._scan(view, _stop)
            except hyperscan.ScanTerminated:
                return True
        return False

    def texts(
        self, data: bytearray, starts: Sequence[int], end: int, check: Callable[[], object]
    ) -> list[int]:
        """Return the indices of the texts that may match; a NUL follows each text.

        Args:
            data: The texts, one after the other.
            starts: The start of each text.
            end: The end of the last text.
            check: Called from time to time; it may raise to stop.
        """
        found: list[int] = []
        base = limit = 0  # start of the scanned part, and end of the last text that was found

        def take(_id: int, _from: int, to: int, _flags: int, _context: object) -> None:
            nonlocal limit
            if base + to > limit:
                found.append(bisect_left(starts, base + to) - 1)
                limit = starts[found[-1] + 1] if found[-1] + 1 < len(starts) else end

        while base < end:
            check()
            following = bisect_left(starts, base + _PART)
            part_end = starts[following] if following < len(starts) else end
            with memoryview(data)[base:part_end] as view:
                self._scan(view, take)
            base = part_end
        return found

    def lines(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of each line that may match, in a text without a NUL."""
        data = text.encode("utf-8", "surrogatepass") + b"\0"
        ends = array("q")

        def take(_id: int, _from: int, to: int, _flags: int, _context: object) -> None:
            ends.append(to)

        self._scan(data, take)
        following = shift = 0  # start of the next line; bytes minus characters before it
        is_ascii = len(data) == len(text) + 1
        for to in ends:
            if to <= following:
                continue
            start = data.rfind(b"\n", following, to - 1) + 1 or following
            if start == len(data) - 1:
                return  # behind the last line
            end = data.find(b"\n", to - 1)
            end = len(data) - 1 if end < 0 else end
            if is_ascii:
                yield start, end
            else:
                shift += _extra_bytes(data[following:start])
                first = start - shift
                shift += _extra_bytes(data[start:end])
                yield first, end - shift
            following = end + 1


def _stop(_id: int, _from: int, _to: int, _flags: int, _context: object) -> bool:
    return True


def _extra_bytes(data: bytes) -> int:
    """Return how many more bytes than characters a text has."""
    return len(data) - len(str(data, "utf-8", "surrogatepass"))
