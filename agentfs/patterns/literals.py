"""What a match must contain, so that most of a tree is never shown to a regular expression.

A match that lies in one line cannot cross a line. So a literal that every match must contain is looked for
first, and the pattern runs only on the lines that have it. Where no literal is certain, the *sweep* is the
pattern rewritten so that it cannot consume a line end: one search over the whole text finds every line that
can match. Either only nominates lines; the pattern itself, on the line alone, decides. A construct that is
not understood with certainty gives no plan, and then every line is tried.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from agentfs.patterns.syntax import Syntax, Token

_MOST_NEEDLES = 24
_MOST_BESIDES = 2
# Words that stand in so many lines of code that their letters tell little; so do the letters of the second.
_FREQUENT_WORD = re.compile(
    r"\b(?:class|def|return|import|from|self|this|static|struct|const|void|int|char|if|else|for|while|public"
    r"|private|function|fn|func|let|var|new|the|test|None|null|true|false)\b",
    re.IGNORECASE,
)
_FREQUENT = frozenset(" etaoinsr")
_PLAIN_SET = re.compile(r"\[(?:[^\\\[]|\\[dDsSwWfnrtv]|\\[^A-Za-z0-9])*\]")
# Letters outside ASCII that equal an ASCII letter when case is ignored: İ ı-less i, Kelvin's k, the long s.
CASE_STRANGERS = {"i": "\u0130", "k": "\u212a", "s": "\u017f"}


@dataclass(frozen=True)
class Plan:
    """How to find the lines that can match.

    Attributes:
        needles: Every match contains at least one of these ASCII strings (in lower case when case is
            ignored); none when nothing is certain.
        also: Strings that every match contains besides, to tell the lines of a needle apart.
        whole: Whether the pattern is nothing but its needles.
        sweep: The pattern for a search over whole texts, or None when every line must be tried.
        exact: Whether the sweep's own matches are those of each line alone.
        ascii: Whether the pattern means the same on the bytes of ASCII text as on the text.
        repeats: Repetitions of varying length in the pattern; None when they are nested or uncountable.
        strangers: Characters outside ASCII that may stand in a text in place of a letter of a needle.
    """

    needles: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    whole: bool = False
    sweep: str | None = None
    exact: bool = False
    ascii: bool = False
    repeats: int | None = None
    strangers: str = ""


def make_plan(syntax: Syntax, *, ignore_case: bool, eats_newline: Callable[[str], bool]) -> Plan:
    """Plan the search for a pattern that compiles.

    Args:
        syntax: The pattern's tokens.
        ignore_case: Whether letters match in either case.
        eats_newline: Tells whether a set or property, given as it is written, matches a line feed.

    Returns:
        The plan; it may nominate lines that do not match, and never leaves one out that does.
    """
    if syntax.opaque or syntax.unclosed:
        return Plan()
    tokens = [token for token in syntax.tokens if token.kind != "comment"]
    folded = ignore_case or any(token.kind == "flags" and "i" in token.value for token in tokens)
    needles, also = _Needles(tokens, folded=folded).find()
    plain = _fold("".join("\n" if token.kind == "or" else token.value for token in tokens), folded)
    return Plan(
        needles=needles,
        also=also,
        whole=all(token.kind in {"character", "or"} for token in tokens)
        and needles == tuple(dict.fromkeys(plain.split("\n"))),
        sweep="".join(_within_lines(token, eats_newline) for token in tokens),
        exact=all(_is_plain(token) for token in tokens),
        ascii=all(_is_ascii(token) for token in tokens),
        repeats=_varying(tokens),
        strangers="".join({CASE_STRANGERS[c] for n in needles + also for c in n if c in CASE_STRANGERS})
        if folded
        else "",
    )


def _is_plain(token: Token) -> bool:
    r"""Tell whether a token sees no further than its line: no lookaround, no ends of the text."""
    return token.kind != "look" and token.text not in {"\\A", "\\Z", "\\z"}


def _is_ascii(token: Token) -> bool:
    """Tell whether a token treats ASCII bytes as it treats ASCII characters.

    A character outside ASCII may equal an ASCII letter when case is ignored; sets are taken only when they
    are made of plain characters and the classes that the tests compare for every character.
    """
    if token.kind == "character":
        return token.value.isascii()
    if token.kind == "set":
        return token.text.isascii() and _PLAIN_SET.fullmatch(token.text) is not None
    return token.kind != "property" and token.text.isascii()


def _fold(text: str, folded: bool) -> str:
    return text.lower() if folded else text


def _within_lines(token: Token, eats_newline: Callable[[str], bool]) -> str:
    """Rewrite a token so that it consumes no line feed."""
    match token.kind:
        case "any":
            return "[^\\n]"
        case "start":
            return "^"
        case "end":
            return "$"
        case "class":
            return {"\\s": "[^\\S\\n]", "\\D": "[^\\d\\n]", "\\W": "[^\\w\\n]"}.get(token.text, token.text)
        case "set" if token.text.startswith("[^") and token.text[2] not in "]-":
            return f"[^\\n{token.text[2:]}"
        case "set" | "property" if eats_newline(token.text):
            return f"(?:(?!\\n){token.text})"
        case "character" if token.value == "\n":
            return "(?!)"
        case _:
            return token.text


def _varying(tokens: list[Token]) -> int | None:
    """Count the repetitions of varying length; None when one lies in a group that is itself repeated."""
    count = 0
    inside: list[int] = []  # the count at the opening of each open group
    closed_from: int | None = None  # the count at the opening of the group that has just been closed
    for token in tokens:
        if token.kind in {"open", "look"}:
            inside.append(count)
        elif token.kind == "close":
            closed_from = inside.pop() if inside else 0
            continue
        elif token.kind == "repeat":
            if closed_from is not None and count > closed_from and token.high != 1:
                return None
            count += token.low != token.high
        elif token.kind == "or":
            count += 1
        closed_from = None
    return count


class _Needles:
    """Finds the strings of which every match contains one, by descent through the tokens."""

    def __init__(self, tokens: list[Token], *, folded: bool) -> None:
        self.tokens = tokens
        self.folded = folded
        self.at = 0
        self.single: list[str] = []  # strings of which each is in every match of the branch read last
        self.branches = 0  # of the alternatives read last

    def find(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        needles = self._alternatives()
        if self.at != len(self.tokens):
            return (), ()
        also = [each for each in dict.fromkeys(self.single) if each not in needles[:1]]
        also = [each for each in also if not any(each in needle for needle in needles)]
        if self.branches != 1:
            return needles, ()
        return needles, tuple(sorted(also, key=_rarity, reverse=True)[:_MOST_BESIDES])

    def _alternatives(self) -> tuple[str, ...]:
        """Read up to the closing parenthesis: a string of each branch, or none when a branch has none."""
        branches = [self._sequence()]
        while self.at < len(self.tokens) and self.tokens[self.at].kind == "or":
            self.at += 1
            branches.append(self._sequence())
        self.branches = len(branches)
        if not all(branches):
            return ()
        together = tuple(dict.fromkeys(needle for branch in branches for needle in branch))
        return together if len(together) <= _MOST_NEEDLES else ()

    def _sequence(self) -> tuple[str, ...]:
        """Read one branch: the best of its runs of characters and of its groups."""
        candidates: list[tuple[str, ...]] = []
        run = ""
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.kind in {"or", "close"}:
                break
            self.at += 1
            if token.kind in {"start", "end", "edge", "flags"}:
                self._repeat()
                continue
            if token.kind == "look":
                self._alternatives()
                self.at += 1
                self._repeat()
                continue
            found: tuple[str, ...] = ()
            character = ""
            if token.kind == "character":
                character = self._certain(token.value)
            elif token.kind == "open":
                found = self._alternatives()
                self.at += 1
                if self.folded is False and "i" in token.value:
                    found = ()
            low, exact = self._repeat()
            if character and low >= 1:
                run += character
            if found and low >= 1:
                candidates.append(found)
            if not character or not exact:
                candidates.append((run,))
                # What is repeated at least once also stands right before what follows it.
                run = character if character and low >= 1 else ""
        candidates.append((run,))
        self.single = [found[0] for found in candidates if len(found) == 1 and found[0]]
        return max((found for found in candidates if all(found)), key=_worth, default=())

    def _certain(self, character: str) -> str:
        """Give the character as it stands in every match, or "" when that is not certain."""
        if not character.isascii() or character in "\r\n":
            return ""
        return _fold(character, self.folded)

    def _repeat(self) -> tuple[int, bool]:
        """Take the quantifier that follows, if any: the fewest times, and whether that is exactly once."""
        low, exact = 1, True
        while self.at < len(self.tokens) and self.tokens[self.at].kind == "repeat":
            token = self.tokens[self.at]
            low, exact = min(low, token.low), exact and token.low == token.high == 1
            self.at += 1
        return low, exact


def _worth(needles: tuple[str, ...]) -> tuple[float, int]:
    """Prefer rare strings, and one to many: each string costs a search."""
    return min(8, *map(_rarity, needles)) / len(needles), min(map(len, needles))


def _rarity(needle: str) -> float:
    """Return about how many letters of middling frequency tell as much."""
    words = sum(len(word[0]) for word in _FREQUENT_WORD.finditer(needle))
    frequent = sum(letter in _FREQUENT for letter in needle)
    return len(needle) - 0.6 * words - 0.2 * frequent
