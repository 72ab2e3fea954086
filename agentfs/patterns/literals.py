"""Required literals: find them in a pattern, and search files for them before the pattern is matched.

Most files, and most lines of the others, contain no literal and are never matched by the regular expression.
A pattern without a certain literal has only a *line regex*, which searches full texts: the pattern, rewritten
to match no line end. A pattern that is not fully understood has no plan.
"""

import re
from bisect import bisect_right
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any, Literal, Protocol, TypeAlias

from agentfs.errors import BinaryError, EncodingError
from agentfs.patterns.automaton import Automaton
from agentfs.patterns.syntax import ONE_CHARACTER, Members, Syntax, Token, characters_of
from agentfs.text import HEAD, codec_name, decode, is_binary, lf_view

try:
    stringzilla: Any = import_module("stringzilla")  # stringzilla has no type hints
except ImportError:  # missing on some platforms, and on the remote side of `connect`
    stringzilla = None

SkipReason = Literal["binary", "too_large", "undecodable"]
Finder: TypeAlias = Callable[[bytearray, int, int], int]  # returns the place between two positions, or -1

_UTF8_BOM = b"\xef\xbb\xbf"
_WIDE_BOM_STARTS = (0xFF, 0xFE, 0x00)  # first bytes of the UTF-16 and UTF-32 marks
# For longer literals `bytearray.find` is used, which skips most bytes and always takes linear time.
_MAX_LITERAL = 64
_MAX_FOLDED_LITERAL = 24  # the worst case of a search without case is the product of both lengths
_FOLDED_PART = 6  # each search prepares its literal: 6 characters take 0.7 µs, and 24 take 5 µs
_MAX_LITERALS = 24
_CHUNK = 1024 * 1024  # bytes that are decoded at once
_MAX_EXTRA = 2
_DISJOINT = ({r"\s", r"\w"}, {r"\s", r"\d"})
_FEW_LENGTHS = 8  # a repeat with fewer possible lengths multiplies the steps by them
# Words that are in so many lines of code that they exclude few lines.
_FREQUENT_WORD = re.compile(
    r"\b(?:class|def|return|import|from|self|this|static|struct|const|void|int|char|if|else|for|while|public"
    r"|private|function|fn|func|let|var|new|the|test|None|null|true|false)\b",
    re.IGNORECASE,
)
_FREQUENT_LETTERS = frozenset(" etaoinsr")
_WITHOUT_NEWLINE = {"\\s": "[^\\S\\n]", "\\D": "[^\\d\\n]", "\\W": "[^\\w\\n]"}


@dataclass(frozen=True)
class Plan:
    """The plan for finding the lines that can match."""

    literals: tuple[str, ...] = ()  # ASCII, in lower case if case is ignored; each match contains one
    extra_literals: tuple[str, ...] = ()  # each match contains all of them
    is_literal: bool = False  # the pattern is only a choice of its literals
    line_regex: str | None = None  # matches in a full text what the pattern matches in each line
    # A power and a factor: the steps that the engine takes for a line are at most about the factor times the
    # length to this power. None if nobody knows.
    growth: tuple[int, int] | None = None
    ignore_case: bool = False  # for the complete pattern
    may_be_empty: bool = True  # False only if no match is empty

    def longest_line(self, steps: int) -> int:
        """Return the length of the longest line whose search takes at most so many steps of the engine."""
        if self.growth is None:
            return 0
        power, factor = self.growth
        return int((steps / factor) ** (1 / power))


def make_plan(syntax: Syntax, members: Members, *, ignore_case: bool) -> Plan:
    """Plan the search; `members` returns the ASCII characters that a part of a pattern matches."""
    if syntax.opaque or syntax.unclosed:
        return Plan()
    tokens = [token for token in syntax.tokens if token.kind != "comment"]
    folded = ignore_case or any(token.kind == "flags" and "i" in token.value for token in tokens)
    may_fold = folded or any("i" in token.value for token in tokens if token.kind == "open")
    literals, extra = _LiteralReader(tokens, folded=folded).find()
    plain = "".join("\n" if token.kind == "or" else token.value for token in tokens)
    branches = tuple(dict.fromkeys((plain.lower() if folded else plain).split("\n")))
    return Plan(
        literals=literals,
        extra_literals=extra,
        is_literal=literals == branches and all(token.kind in {"character", "or"} for token in tokens),
        line_regex="".join(_within_line(token, members) for token in tokens),
        growth=_growth(tokens, lambda token: characters_of(token, members, folded=may_fold)),
        ignore_case=folded,
        may_be_empty=not literals and _may_be_empty(tokens),
    )


def _may_be_empty(tokens: list[Token]) -> bool:
    """Return False if every match has a character that the pattern requires outside its groups."""
    depth, requires = 0, False
    for token, following in pairwise([*tokens, Token("comment", "", 0)]):
        depth += (token.kind in {"open", "look"}) - (token.kind == "close")
        if not depth and token.kind == "or":
            return True
        is_optional = following.kind == "repeat" and not following.low
        requires = requires or (not depth and token.kind in ONE_CHARACTER and not is_optional)
    return not requires


def _within_line(token: Token, members: Members) -> str:
    """Rewrite a token to match no line feed."""
    match token.kind:
        case "any":
            return "[^\\n]"
        case "start":
            return "^"
        case "end":
            return "$"
        case "class":
            return _WITHOUT_NEWLINE.get(token.text, token.text)
        case "set" if token.text.startswith("[^") and token.text[2] not in "]-":
            return f"[^\\n{token.text[2:]}"
        case "set" | "property" if "\n" in members(token.text):
            return f"(?:(?!\\n){token.text})"
        case "character" if token.value == "\n":
            return "(?!)"
        case _:
            return token.text


def _growth(tokens: list[Token], characters: Callable[[Token], frozenset[str]]) -> tuple[int, int] | None:
    """Return the bound `Plan.growth`; None if a repeat of varying length is in a group that is repeated."""
    factor = power = 1  # the power is one for the places where a match may begin
    additive = 0
    varying = 0  # number of repeats and choices so far
    opened: list[int] = []  # `varying` at the start of each open group
    choices = [1]  # branches of each open group
    closed: int | None = None  # `varying` at the start of the group that the last token closed
    for index, token in enumerate(tokens):
        if token.kind in {"open", "look"}:
            opened.append(varying)
            choices.append(1)
        elif token.kind == "close":
            closed = opened.pop() if opened else 0
            factor *= choices.pop()
            continue
        elif token.kind == "repeat":
            if closed is not None and varying > closed and token.high != 1:
                return None
            if token.low != token.high:
                varying += 1
                if token.high is not None and token.high - token.low < _FEW_LENGTHS:
                    factor *= token.high - token.low + 1
                elif closed is None and _has_one_end(tokens, index, characters):
                    additive = 1
                else:
                    power += 1
        elif token.kind == "or":
            varying += 1
            choices[-1] += 1
        closed = None
    return power + additive, factor * choices[0]


def _has_one_end(tokens: list[Token], repeat: int, characters: Callable[[Token], frozenset[str]]) -> bool:
    """Return True if a repeat can be followed by the rest of the pattern at one place only.

    For example, `[a-z]+` can be followed by `=` only at the end of the letters.
    """
    repeated = tokens[repeat - 1]
    if repeated.kind not in ONE_CHARACTER:
        return False
    at = repeat + 1
    while at < len(tokens) and tokens[at].kind != "end":
        token = tokens[at]
        at += 1
        if token.kind == "edge":
            continue
        if token.kind not in ONE_CHARACTER:
            return False
        if {repeated.text, token.text} not in _DISJOINT and characters(repeated) & characters(token):
            return False
        if at == len(tokens) or tokens[at].kind != "repeat" or tokens[at].low:
            return True
        at += 1
    return True


class _LiteralReader:
    """A recursive-descent parser that finds literals; every match contains at least one of them."""

    def __init__(self, tokens: list[Token], *, folded: bool) -> None:
        self.tokens = tokens
        self.folded = folded
        self.at = 0
        self.required: list[str] = []  # literals that every match of the last branch contains
        self.branches = 0  # number of branches of the last group

    def find(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        literals = self._alternatives()
        if self.at != len(self.tokens):
            return (), ()
        if self.branches != 1:
            return literals, ()
        extra = [each for each in dict.fromkeys(self.required) if not any(each in one for one in literals)]
        return literals, tuple(sorted(extra, key=_rarity, reverse=True)[:_MAX_EXTRA])

    def _alternatives(self) -> tuple[str, ...]:
        """Read up to the closing parenthesis; return literals of each branch, or () if one has none."""
        branches = [self._sequence()]
        while self.at < len(self.tokens) and self.tokens[self.at].kind == "or":
            self.at += 1
            branches.append(self._sequence())
        self.branches = len(branches)
        literals = tuple(dict.fromkeys(literal for branch in branches for literal in branch))
        return literals if all(branches) and len(literals) <= _MAX_LITERALS else ()

    def _sequence(self) -> tuple[str, ...]:
        """Read one branch; return its best run of characters, or the literals of its best group."""
        candidates: list[tuple[str, ...]] = []
        run = ""
        while self.at < len(self.tokens) and self.tokens[self.at].kind not in {"or", "close"}:
            token = self.tokens[self.at]
            self.at += 1
            if token.kind in {"start", "end", "edge", "flags"}:
                self._repeat()
                continue
            group: tuple[str, ...] = ()
            character = ""
            if token.kind in {"open", "look"}:
                group = self._alternatives()
                self.at += 1
                if token.kind == "look":
                    low, _ = self._repeat()
                    if group and low and token.text in {"(?=", "(?<="}:  # the same line has its text
                        candidates.append(group)
                    continue
                if "i" in token.value and not self.folded:
                    group = ()
            elif token.kind == "character" and token.value.isascii() and token.value not in "\r\n":
                character = token.value.lower() if self.folded else token.value
            low, once = self._repeat()
            if low == 0:
                group, character = (), ""
            run += character
            if group:
                candidates.append(group)
            if not (character and once):
                candidates.append((run,))
                run = character  # the last repetition touches the characters that follow
        candidates.append((run,))
        self.required = [each[0] for each in candidates if len(each) == 1 and each[0]]
        return max((each for each in candidates if all(each)), key=_worth, default=())

    def _repeat(self) -> tuple[int, bool]:
        """Read the quantifiers that follow; return the minimum, and True if it is exactly one time."""
        low, once = 1, True
        while self.at < len(self.tokens) and self.tokens[self.at].kind == "repeat":
            token = self.tokens[self.at]
            low, once = min(low, token.low), once and token.low == token.high == 1
            self.at += 1
        return low, once


def _worth(literals: tuple[str, ...]) -> tuple[float, int]:
    """Return a score of literals: rare ones are better, and so are few, because each costs a search."""
    return min(8, *map(_rarity, literals)) / len(literals), min(map(len, literals))


def _rarity(literal: str) -> float:
    """Return the selectivity of a literal, in letters of average frequency."""
    words = sum(len(word[0]) for word in _FREQUENT_WORD.finditer(literal))
    frequent = sum(letter in _FREQUENT_LETTERS for letter in literal)
    return len(literal) - 0.6 * words - 0.2 * frequent


class SearchedFile(Protocol):
    """The bytes of one file, at the start of a buffer: `length` bytes, and a NUL."""

    data: bytearray
    length: int

    def copy(self) -> bytes:
        """Return the bytes of the file."""
        ...


class Prefilter:
    """The test of a file's bytes that most files of a search fail.

    Args:
        plan: The plan of the pattern.
        encoding: As for `decode_content`.
        automaton: An automaton to use instead of the literals, if there is one.
    """

    def __init__(self, plan: Plan, encoding: str | None = None, automaton: Automaton | None = None) -> None:
        literals = [literal.encode() for literal in plan.literals] if encoding is None else []
        # Three bytes for a character: without case, `k` also matches the Kelvin sign.
        self.longest = 3 * max(map(len, literals), default=0)
        # In other encodings, texts may have NUL bytes, and literals have other bytes.
        self._is_utf8 = encoding is None or _is_strict(encoding)
        self._automaton: Automaton | None = None
        # False only if no searched file contains a literal in upper or lower case.
        self.found_in_any_case = plan.ignore_case or not literals or stringzilla is None
        self._finders: list[Finder] = []  # at least one succeeds in every file with a match
        if automaton is not None and encoding is None:
            self.found_in_any_case = True
            self._automaton = automaton
            self._finders = [_by_automaton(automaton)]
        elif not plan.ignore_case:
            self._finders = [self._exact(literal) for literal in literals]
        elif stringzilla is not None:
            # stringzilla does not fold an I with a dot to an i, so search for a part without an i.
            parts = [max(literal.split(b"i"), key=len) for literal in literals]
            self._finders = [_folded(part) for part in parts] if all(parts) else []

    def classify(self, contents: SearchedFile, length: int) -> bytes | SkipReason | None:
        """Return the content if it may match, the reason if the file is skipped, or None if it has no match.

        Args:
            contents: The buffer that the file was read into.
            length: The length of the content; -1 if it is too large for the buffer.
        """
        if length < 0:
            return "too_large"
        data = contents.data
        if self._is_utf8:
            nul = data.find(0, 0, min(HEAD, length))
            if nul >= 0 and is_binary(_start(contents) + b"\0"):
                return "binary"
        for find in self._finders:
            if find(data, 0, length) >= 0:
                return contents.copy()
        if self._finders and (data[0] not in _WIDE_BOM_STARTS or not _is_wide(_start(contents))):
            return None
        self.found_in_any_case = True
        return contents.copy()

    def may_match(self, data: bytearray, end: int) -> bool:
        """Return True if a piece of a file up to a position may match; it may begin within a character."""
        start = next((at for at in range(3) if data[at] & 0xC0 != 0x80), 3)
        return any(find(data, start, end) >= 0 for find in self._finders)

    @property
    def is_useful(self) -> bool:
        """True if it can leave out a file."""
        return bool(self._finders)

    def texts(
        self, data: bytearray, starts: Sequence[int], end: int, check: Callable[[], object]
    ) -> Iterable[int]:
        """Return the indices of the texts that may match, as `Automaton.texts`; there may be a few more."""
        if self._automaton is not None:
            return self._automaton.texts(data, starts, end, check)
        found: set[int] = set()
        for find in self._finders:
            check()
            at = find(data, 0, end)
            while at >= 0:
                index = bisect_right(starts, at)
                found.add(index - 1)
                at = find(data, starts[index], end) if index < len(starts) else -1
        return found

    def _exact(self, literal: bytes) -> Finder:
        is_short = len(literal) <= _MAX_LITERAL
        find: Any = stringzilla.find if stringzilla is not None and is_short else bytearray.find
        find_folded = _folded(literal)

        def found(data: bytearray, start: int, end: int) -> int:
            if not self.found_in_any_case:
                start = find_folded(data, start, end)
                if start < 0:
                    return -1
                self.found_in_any_case = True
            at: int = find(data, literal, start, end)
            return at

        return found


def _folded(literal: bytes) -> Finder:
    """Return a search without case. It looks for a rare part first, which takes less preparation."""
    search: Any = stringzilla and stringzilla.utf8_uncased_search
    full = literal[:_MAX_FOLDED_LITERAL]
    parts = [full[start : start + _FOLDED_PART] for start in range(max(1, len(full) - _FOLDED_PART + 1))]
    part = max(parts, key=lambda each: _rarity(each.decode()))

    def found(data: bytearray, start: int, end: int) -> int:
        at: int = search(data, part, start, end)
        if at >= 0 and part != full:
            at = search(data, full, start, end)
        return at

    return found


def _by_automaton(automaton: Automaton) -> Finder:
    """Return a search of a full text. The automaton stops at a NUL, so a text with a NUL may match."""

    def found(data: bytearray, start: int, end: int) -> int:
        may_match = data.find(0, start, end) >= 0 or automaton.find(data, end)
        may_match = may_match or (automaton.is_for_utf8 and not _is_valid_utf8(data, end))
        return start if may_match else -1

    return found


def is_plain_utf8(content: memoryview) -> bool:
    """Return True if a file is in UTF-8 and has no NUL, so its bytes can be searched."""
    decoder = getincrementaldecoder("utf-8")()
    try:
        return not any(
            "\0" in decoder.decode(content[start : start + _CHUNK], start + _CHUNK >= len(content))
            for start in range(0, len(content), _CHUNK)
        )
    except UnicodeDecodeError:
        return False


def _is_valid_utf8(data: bytearray, length: int) -> bool:
    with memoryview(data)[:length] as view:
        try:
            str(view, "utf-8")
        except UnicodeDecodeError:
            return False
    return True


def decode_content(content: bytes, encoding: str | None = None) -> str | None:
    r"""Return the text of a file with `\n` for every line end, or None if it cannot be decoded.

    Args:
        content: The bytes of the file.
        encoding: The codec of files without a byte order mark that are not UTF-8; None to detect it. With
            "utf-8", such files are not decoded.
    """
    strict = encoding is not None and _is_strict(encoding)
    if (encoding is not None and not strict) or _is_wide(content):
        try:
            return lf_view(decode(content, None if strict else encoding).text)
        except (BinaryError, EncodingError):
            return None
    try:
        return lf_view(str(content.removeprefix(_UTF8_BOM), "utf-8"))
    except UnicodeDecodeError:
        # A UTF-8 mark in a file that is not UTF-8 is part of the text, as in `read`.
        return None if strict else lf_view(decode(content).text)


def _is_strict(encoding: str) -> bool:
    return codec_name(encoding) == "utf-8"


def _is_wide(content: bytes) -> bool:
    """Return True if a file begins with a mark of UTF-16 or UTF-32; `decode` checks the rest."""
    return len(content) >= 2 and content[0] in _WIDE_BOM_STARTS and not is_binary(content[:4] + b"\x00")


def count_bytes(data: bytearray, byte: bytes, start: int, end: int) -> int:
    """Return how often a byte occurs between two positions."""
    return (
        data.count(byte, start, end)
        if stringzilla is None
        else int(stringzilla.count(data, byte, start, end))
    )


def substring_finder(text: str, literals: tuple[str, ...]) -> Callable[[str, str, int], int]:
    """Return the fastest `find(text, literal, start)`; stringzilla counts bytes, so it needs ASCII."""
    if stringzilla is not None and text.isascii() and max(map(len, literals)) <= _MAX_LITERAL:
        find: Callable[[str, str, int], int] = stringzilla.find
        return find
    return str.find


def count_literal(text: str, literal: str, *, ignore_case: bool = False) -> tuple[int, int]:
    """Return the number of lines with a literal, and the number of its occurrences without overlaps.

    With `ignore_case`, the literal must be in lower case.
    """
    data, searched, lines = text.encode("utf-8", "surrogatepass"), literal.encode(), 0
    if ignore_case:
        data = data.lower()
    find = stringzilla.find if stringzilla is not None and len(searched) <= _MAX_LITERAL else bytes.find
    at = find(data, searched)
    while at >= 0:
        lines += 1
        end = find(data, b"\n", at)
        at = find(data, searched, end) if end >= 0 else -1
    return lines, data.count(searched) if stringzilla is None else stringzilla.count(data, searched)


def _start(contents: SearchedFile) -> bytes:
    """Return the first bytes of a file, which may be a byte order mark."""
    return bytes(contents.data[: min(contents.length, 4)])
