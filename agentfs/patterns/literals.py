"""What a match must contain, so that most lines are never shown to a regular expression.

A match lies in one line, so a literal that every match contains is searched for first. It finds candidate
lines, and the pattern decides about each of them alone. If no literal is certain, the *line regex* searches
the whole text: the pattern rewritten so that it cannot consume a line end. A construct that is not certainly
understood gives no plan.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from agentfs.patterns.syntax import Syntax, Token

_MAX_LITERALS = 24
_MAX_EXTRA = 2
# Words in so many lines of code that their letters say little; so do the letters of the second.
_FREQUENT_WORD = re.compile(
    r"\b(?:class|def|return|import|from|self|this|static|struct|const|void|int|char|if|else|for|while|public"
    r"|private|function|fn|func|let|var|new|the|test|None|null|true|false)\b",
    re.IGNORECASE,
)
_FREQUENT_LETTERS = frozenset(" etaoinsr")
_WITHOUT_NEWLINE = {"\\s": "[^\\S\\n]", "\\D": "[^\\d\\n]", "\\W": "[^\\w\\n]"}


@dataclass(frozen=True)
class Plan:
    """How to find the lines that can match."""

    literals: tuple[str, ...] = ()  # in ASCII, in lower case if case is ignored; each match contains one
    extra_literals: tuple[str, ...] = ()  # all of them are in each match too
    is_literal: bool = False  # whether the pattern is nothing but its literals
    line_regex: str | None = None  # matches in a whole text as the pattern does in each line
    # How many repeats of varying length may have to be tried again; None when nested or uncountable.
    repeats: int | None = None


def make_plan(syntax: Syntax, *, ignore_case: bool, matches: Callable[[str, str], bool]) -> Plan:
    """Plan the search; `matches` returns whether a part of the pattern matches a character."""
    if syntax.opaque or syntax.unclosed:
        return Plan()
    tokens = [token for token in syntax.tokens if token.kind != "comment"]
    folded = ignore_case or any(token.kind == "flags" and "i" in token.value for token in tokens)
    literals, extra = _LiteralReader(tokens, folded=folded).find()
    plain = "".join("\n" if token.kind == "or" else token.value for token in tokens)
    branches = tuple(dict.fromkeys((plain.lower() if folded else plain).split("\n")))
    return Plan(
        literals=literals,
        extra_literals=extra,
        is_literal=literals == branches and all(token.kind in {"character", "or"} for token in tokens),
        line_regex="".join(_within_line(token, matches) for token in tokens),
        repeats=_varying_repeats(tokens),
    )


def _within_line(token: Token, matches: Callable[[str, str], bool]) -> str:
    """Rewrite a token so that it consumes no line feed."""
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
        case "set" | "property" if matches(token.text, "\n"):
            return f"(?:(?!\\n){token.text})"
        case "character" if token.value == "\n":
            return "(?!)"
        case _:
            return token.text


def _varying_repeats(tokens: list[Token]) -> int | None:
    """Count the repetitions of varying length; None if one is in a group that is itself repeated."""
    count = 0
    opened: list[int] = []  # the count at the opening of each open group
    closed: int | None = None  # the count at the opening of the group that has just been closed
    for token in tokens:
        if token.kind in {"open", "look"}:
            opened.append(count)
        elif token.kind == "close":
            closed = opened.pop() if opened else 0
            continue
        elif token.kind == "repeat":
            if closed is not None and count > closed and token.high != 1:
                return None
            count += token.low != token.high
        elif token.kind == "or":
            count += 1
        closed = None
    return count


class _LiteralReader:
    """Finds the strings of which every match contains one, by descent through the tokens."""

    def __init__(self, tokens: list[Token], *, folded: bool) -> None:
        self.tokens = tokens
        self.folded = folded
        self.at = 0
        self.required: list[str] = []  # strings that are all in every match of the branch read last
        self.branches = 0  # of the alternatives read last

    def find(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        literals = self._alternatives()
        if self.at != len(self.tokens):
            return (), ()
        if self.branches != 1:
            return literals, ()
        extra = [each for each in dict.fromkeys(self.required) if not any(each in one for one in literals)]
        return literals, tuple(sorted(extra, key=_rarity, reverse=True)[:_MAX_EXTRA])

    def _alternatives(self) -> tuple[str, ...]:
        """Read up to the closing parenthesis: a string of each branch, or none when a branch has none."""
        branches = [self._sequence()]
        while self.at < len(self.tokens) and self.tokens[self.at].kind == "or":
            self.at += 1
            branches.append(self._sequence())
        self.branches = len(branches)
        literals = tuple(dict.fromkeys(literal for branch in branches for literal in branch))
        return literals if all(branches) and len(literals) <= _MAX_LITERALS else ()

    def _sequence(self) -> tuple[str, ...]:
        """Read one branch: the best of its runs of characters and of its groups."""
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
                    self._repeat()
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
                run = character  # what is repeated at least once is also right before what follows it
        candidates.append((run,))
        self.required = [each[0] for each in candidates if len(each) == 1 and each[0]]
        return max((each for each in candidates if all(each)), key=_worth, default=())

    def _repeat(self) -> tuple[int, bool]:
        """Read the quantifiers that follow: the fewest times, and whether that is exactly once."""
        low, once = 1, True
        while self.at < len(self.tokens) and self.tokens[self.at].kind == "repeat":
            token = self.tokens[self.at]
            low, once = min(low, token.low), once and token.low == token.high == 1
            self.at += 1
        return low, once


def _worth(literals: tuple[str, ...]) -> tuple[float, int]:
    """Prefer rare strings, and one to many: each string costs a search."""
    return min(8, *map(_rarity, literals)) / len(literals), min(map(len, literals))


def _rarity(literal: str) -> float:
    """Return about how many letters of middling frequency tell as much."""
    words = sum(len(word[0]) for word in _FREQUENT_WORD.finditer(literal))
    frequent = sum(letter in _FREQUENT_LETTERS for letter in literal)
    return len(literal) - 0.6 * words - 0.2 * frequent
