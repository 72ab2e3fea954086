"""The plan of a search: literals that every match contains, and a regex for full texts.

Most files contain no literal and are never matched by the regular expression. In the others, a pattern is
matched in full texts by its *line regex*: the pattern, rewritten to match no line end. If that begins with a
class, which is slow, its *tail*, which begins with text, finds the lines to match. A pattern that is not
fully understood has no plan.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from agentfs.patterns.syntax import Syntax, Token

_MAX_LITERALS = 24
# Words that are in so many lines of code that they exclude few lines.
_FREQUENT_WORD = re.compile(
    r"\b(?:class|def|return|import|from|self|this|static|struct|const|void|int|char|if|else|for|while|public"
    r"|private|function|fn|func|let|var|new|the|test|None|null|true|false)\b",
    re.IGNORECASE,
)
_FREQUENT_LETTERS = frozenset(" etaoinsr._,")
_RARE = 2  # letters of average frequency
_NO_WORD = re.compile(r"(?=[\x00-\x7f])\W")  # in Unicode some marks belong to words
_ONE_CHARACTER = {"character", "class", "set", "property", "any"}  # kinds of tokens that match one
_WITHOUT_NEWLINE = {"any": "[^\\n]", "start": "^", "end": "$"}
_CLASS_AT_END = (["class", "repeat", "end"], ["set", "repeat", "end"])  # such as blanks at the end of a line
_CLASS_WITHOUT_NEWLINE = {"\\s": "[^\\S\\n]", "\\D": "[^\\d\\n]", "\\W": "[^\\w\\n]"}


@dataclass(frozen=True)
class Plan:
    """The plan for finding the lines that can match."""

    literals: tuple[str, ...] = ()  # ASCII, in lower case if case is ignored; each match contains one
    is_literal: bool = False  # the pattern is only its one literal
    line_regex: str | None = None  # matches in a full text what the pattern matches in each line
    tail: str | None = None  # a regex that matches in each line in which `line_regex` does, and to its end
    ignore_case: bool = False  # for the complete pattern
    is_quick: bool = False  # no match is empty; in a line, the engine takes at most the square of its length

    @cached_property
    def has_rare_literals(self) -> bool:
        """True for several literals that are found faster than the pattern."""
        return len(self.literals) > 1 and min(map(_rarity, self.literals)) >= _RARE


def plan_of_literals(syntax: Syntax, *, ignore_case: bool) -> Plan:
    """Return the part of the plan that needs no engine: the literals, and whether case is ignored."""
    if syntax.opaque or syntax.unclosed:
        return Plan()
    tokens = [token for token in syntax.tokens if token.kind != "comment"]
    folded = ignore_case or any(token.kind == "flags" and "i" in token.value for token in tokens)
    literals = _LiteralReader(tokens, folded=folded).find()
    plain = "".join(token.value if token.kind == "character" else "\n" for token in tokens)
    is_literal = literals == (plain.lower() if folded else plain,)  # a literal has no line feed
    return Plan(literals, is_literal, ignore_case=folded)


def make_plan(syntax: Syntax, common: Callable[[str, str], bool], *, ignore_case: bool) -> Plan:
    """Plan the search; `common` tells whether two parts of a pattern match the same character."""
    if syntax.opaque or syntax.unclosed:
        return Plan()
    plan = plan_of_literals(syntax, ignore_case=ignore_case)
    tokens = [token for token in syntax.tokens if token.kind != "comment"]
    # With both cases in one pattern, `regex` misreads sets such as [^\na], so they are not written.
    mixed = any("i" in token.value for token in tokens if token.kind == "open")
    parts = [_within_line(token, common, mixed=mixed) for token in tokens]
    begin = r"\b" if _begins_with_word(tokens) else ""  # saves an attempt at each letter of a word
    line_regex, tail = begin + "".join(parts), _tail(tokens, parts)
    is_quick = _is_quick(tokens, plan.literals)
    return replace(plan, line_regex=line_regex, tail=tail, is_quick=is_quick)


def _tail(tokens: Sequence[Token], parts: Sequence[str]) -> str | None:
    """Return a pattern from its first rare text outside groups on, or a test of the last character of a line.

    Returns None if a search for it is not faster.
    """
    depth, start = 0, -1
    for at, (token, after) in enumerate(pairwise([*tokens, Token("end", "", 0)])):
        depth += (token.kind in {"open", "look"}) - (token.kind == "close")
        if depth == 0 and token.kind == "or":
            return None
        is_rare = after.kind == "character" or not token.value.isalnum()
        if start < 0 and depth == 0 and token.kind == "character" and after.low and is_rare:
            start = at
    kinds = [token.kind for token in tokens]
    flags: Sequence[str] = parts[:1] if kinds[:1] == ["flags"] else ()
    if start < 0 and kinds[-3:] in _CLASS_AT_END and tokens[-2].low:
        return "".join([*flags, f"(?<={parts[-3]})$"])
    # The engine finds a pattern that begins with text fast.
    if start < 0 or all(token.kind in {"start", "edge", "flags"} for token in tokens[:start]):
        return None
    # A frequent character with little text behind it is in most lines.
    if kinds[start:].count("character") < 3 and tokens[start].value in _FREQUENT_LETTERS:
        return None
    return "".join([*flags, *parts[start:], r"[^\n]*"])


def _is_quick(tokens: Sequence[Token], literals: Sequence[str]) -> bool:
    """Return True if no match is empty, and at most one choice is tried at many places with many lengths."""
    kinds = [token.kind for token in tokens]
    least = sum(kind in _ONE_CHARACTER for kind in kinds) - sum(token.low == 0 for token in tokens)
    if not literals and ({"open", "or"} & {*kinds} or least <= 0):
        return False
    # A repeat after `^` begins at one place of a line; one at the end has one length.
    known = {len(tokens) - 1, 2 if kinds[0] == "start" else -1}
    choices = [
        at
        for at, token in enumerate(tokens)
        if token.kind == "open" or (token.low != token.high and at not in known)
    ]
    is_flat = ("close", "repeat") not in pairwise(kinds)
    return is_flat and len(choices) <= 1 and "look" not in kinds


def _begins_with_word(tokens: Sequence[Token]) -> bool:
    r"""Return True if every match begins where a word begins, for example of `\w+ = \w+`."""
    if len(tokens) < 3 or tokens[0].text != r"\w" or tokens[1].high is not None or not tokens[1].low:
        return False
    # No match may end within a word either, because the next one could begin there.
    *_, before, last = tokens
    ends_word = last.kind == "end" or (before.text == r"\w" and last.text in {"+", "*"})
    return bool(ends_word or _NO_WORD.fullmatch(last.value)) and all(each.kind != "or" for each in tokens)


def _within_line(token: Token, common: Callable[[str, str], bool], *, mixed: bool) -> str:
    """Rewrite a token to match no line feed."""
    text = token.text
    if token.kind in _WITHOUT_NEWLINE:
        return _WITHOUT_NEWLINE[token.kind]
    if token.kind == "character":
        return "(?!)" if token.value == "\n" else text
    if token.kind not in {"class", "set", "property"} or not common(text, "\n"):
        return text
    if not mixed and text in _CLASS_WITHOUT_NEWLINE:
        return _CLASS_WITHOUT_NEWLINE[text]
    if not mixed and text.startswith("[^") and text[2] not in "]-":
        return f"[^\\n{text[2:]}"
    return f"(?:(?!\\n){text})"


class _LiteralReader:
    """A recursive-descent parser that finds literals; every match contains at least one of them."""

    def __init__(self, tokens: list[Token], *, folded: bool) -> None:
        self.tokens = tokens
        self.folded = folded
        self.at = 0

    def find(self) -> tuple[str, ...]:
        literals = self._alternatives()
        return literals if self.at == len(self.tokens) else ()

    def _alternatives(self) -> tuple[str, ...]:
        """Read up to the closing parenthesis; return literals of each branch, or () if one has none."""
        branches = [self._sequence()]
        while self.at < len(self.tokens) and self.tokens[self.at].kind == "or":
            self.at += 1
            branches.append(self._sequence())
        literals = tuple(dict.fromkeys(literal for branch in branches for literal in branch))
        return literals if all(branches) and len(literals) <= _MAX_LITERALS else ()

    def _sequence(self) -> tuple[str, ...]:
        """Read one branch; return its best run of characters, or the literals of its best group."""
        candidates: list[tuple[str, ...]] = []
        run = ""
        while self.at < len(self.tokens) and self.tokens[self.at].kind not in {"or", "close"}:
            token = self.tokens[self.at]
            self.at += 1
            group: tuple[str, ...] = ()
            character = ""
            if token.kind in {"open", "look"}:
                group = self._alternatives()
                self.at += 1
                # A lookaround may be repeated and optional, and its text is not beside the other text.
                is_text = token.kind == "open" or token.text in {"(?=", "(?<="}
                if not is_text or ("i" in token.value and not self.folded):
                    group = ()
            elif token.kind == "character" and token.value.isascii() and token.value not in "\r\n":
                character = token.value.lower() if self.folded else token.value
            low, once = self._repeat()
            if low:
                candidates.append(group)
            if token.kind in {"start", "end", "edge", "flags", "look"}:
                continue
            run += character if low else ""
            if not (character and once):
                candidates.append((run,))
                run = character if low else ""  # the last repetition touches the characters that follow
        candidates.append((run,))
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
    if not literals:
        return 0, 0
    return min(8, *map(_rarity, literals)) / len(literals), min(map(len, literals))


def _rarity(literal: str) -> float:
    """Return the selectivity of a literal, in letters of average frequency."""
    words = sum(len(word[0]) for word in _FREQUENT_WORD.finditer(literal))
    frequent = sum(letter in _FREQUENT_LETTERS for letter in literal)
    return len(literal) - 0.6 * words - 0.2 * frequent
