"""Compile a regular expression, or refuse it with the position of the mistake and a valid pattern.

`regex` has a timeout for matching, but not for compiling, and some short patterns compile for minutes or take
gigabytes. So length, depth and the product of the repeats are checked first.
"""

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from agentfs.base.advice import Advice, Retry, plural
from agentfs.errors import InvalidPatternError
from agentfs.patterns.automaton import byte_pattern
from agentfs.patterns.engine import MOST_STEPS_OF_RE, RE, engine_note
from agentfs.patterns.engine import engine as regex_engine
from agentfs.patterns.literals import Plan, make_plan
from agentfs.patterns.syntax import MAX_CHARACTERS, Syntax, as_plain_text, literal_syntax, read_syntax
from agentfs.text import visible

_MAX_DEPTH = 50
_MAX_COST = 20_000  # within this bound, the slowest tested pattern compiles in 0.2 s
_MAX_STACK = 128 * 1024 * 1024  # bytes that the engine may use to match one line

# Measured bytes of the engine's stack for each character that a repeated group has matched: for the group
# itself, and for each choice and each capture inside the group.
_STACK_GROUP, _STACK_CHOICE, _STACK_CAPTURE = 96, 24, 64
_ASCII = "".join(map(chr, range(128)))
_GROUP_COST = 8  # the engine's work for groups grows with their square
_EXCERPT = 60  # characters of the pattern shown on either side of a mistake
_MAX_REPAIRS = 12
# The texts of tokens that mean the same to `regex` and, with `re.ASCII`, to `re`.
_SAME_IN_RE = {
    "set": re.compile(r"\[\^?\]?(?:(?!--)[^\[\]\\&|~]|\\(?:[dDsSwWnrtfv]|[^\w\s]))*\]"),
    "repeat": re.compile(r"(?:[*+?]|\{[0-9,]+\})\??"),
    "open": re.compile(r"\((?:\?(?:P<\w+>|[ims]*:))?"),
    "edge": re.compile(r"\\b(?:\(\?<?=\\w\))?"),
    "property": re.compile(r"(?!)"),
}
_EDGES = rf"(?:{_SAME_IN_RE['edge'].pattern})*"
_WORD = re.compile(rf"(?P<before>{_EDGES})(?:\(\?:)?(?P<word>\w+)\)?(?P<after>{_EDGES})", re.ASCII)
_LOOKS_LIKE_REGEX = re.compile(r"\\[A-Za-z]|[.\])][*+?]|\||^\^|\$$|\[[^\]]+\]|\(\?")


class Expression:
    """A compiled pattern. In ASCII text and without a timeout, `re` matches it if it can, as it is faster."""

    def __init__(self, compiled: Any, in_ascii: re.Pattern[str] | None = None) -> None:
        self.search: Callable[..., re.Match[str] | None] = compiled.search
        self._compiled = compiled
        self._in_ascii = in_ascii

    def finditer(
        self, text: str, position: int = 0, end: int = sys.maxsize, /, *, timeout: float | None = None
    ) -> Iterator[re.Match[str]]:
        """Find all matches between two positions; TimeoutError if they take more than `timeout` seconds."""
        if timeout is None and self._in_ascii is not None and text.isascii():
            return self._in_ascii.finditer(text, position, end)
        found: Iterator[re.Match[str]] = self._compiled.finditer(
            text, position, end, timeout=timeout, concurrent=timeout is not None
        )
        return found

    def findall(self, text: str, /) -> list[Any]:
        """Return all matches."""
        compiled = self._in_ascii if self._in_ascii is not None and text.isascii() else self._compiled
        found: list[Any] = compiled.findall(text)
        return found


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern."""

    expression: Expression  # matches one line or, with `multiline`, a full text
    line_regex: Expression | None  # the line regex of the plan
    plan: Plan
    byte_pattern: str | None  # for `Automaton.of`; None for a literal, or if there is no translation
    multiline: bool
    max_length: int  # longest line (with `multiline`: text) that can be searched in bounded memory
    counters: tuple[re.Pattern[str], re.Pattern[str]] | None = None  # see `_counters_of_word`


def compile_pattern(
    pattern: str,
    *,
    literal: bool = False,
    around: tuple[str, str] = ("", ""),
    ignore_case: bool = False,
    multiline: bool = False,
    dot_all: bool = True,
    captures: bool = False,
) -> Pattern:
    """Compile a regular expression or a literal text.

    Args:
        pattern: The pattern.
        literal: Take the pattern as literal text.
        around: Trusted patterns to put before and after it; bounds and messages ignore them.
        ignore_case: Match upper and lower case alike.
        multiline: Search full texts: `^` and `$` match at every line.
        dot_all: With `multiline`, let `.` match a line feed.
        captures: Keep the groups of the matches, which takes memory for each repetition.

    Returns:
        The compiled pattern, with the plan of its search.

    Raises:
        InvalidPatternError: If the pattern is wrong or exceeds a bound.
    """
    if not pattern:
        raise InvalidPatternError(
            "The pattern is empty.", hint="Pass the text or regular expression to search for."
        )
    if len(pattern) > MAX_CHARACTERS:
        raise InvalidPatternError(
            f"The pattern has {plural(len(pattern), 'character')}; at most {MAX_CHARACTERS} are allowed.",
            hint="Search for a shorter part of it, or make several searches.",
            details={"characters": len(pattern), "limit": MAX_CHARACTERS},
        )
    syntax = literal_syntax(pattern) if literal else read_syntax(pattern)
    _check_bounds(syntax)
    engine = regex_engine()
    flags = engine.V0 | (engine.I if ignore_case else 0)
    mode = (engine.M | engine.S if dot_all else engine.M) if multiline else 0
    # Errors must show the pattern as the caller wrote it.
    compiled = _compile_valid(engine, syntax, flags | mode)
    searched = syntax
    if any(around):
        if isinstance(_compile(engine, f"(?:{syntax.source})", flags), Exception):
            searched = syntax.with_comment_ended()  # the comment swallows the parenthesis
        searched = searched.between(*around)
    if not captures:
        searched = searched.without_captures()
    if searched is not syntax:
        compiled = _compile_valid(engine, searched, flags | mode)

    def members(part: str) -> str:
        return "".join(found[0] for found in engine.compile(part, flags).finditer(_ASCII))

    plan = make_plan(searched, members, ignore_case=ignore_case)
    stack = _stack_per_character(searched)
    max_length = _MAX_STACK // stack if stack else sys.maxsize
    if engine is RE:
        if plan.growth is None:
            raise InvalidPatternError(
                "The work of this pattern has no known bound, and Python's `re` is used here: no timeout.",
                hint="Install the `regex` module where the files are. "
                "Or avoid references to groups, and repeats or choices inside repeated groups.",
            )
        max_length = min(max_length, plan.longest_line(MOST_STEPS_OF_RE))
    is_same = plan.growth is not None and not captures and engine is not RE and _is_same_in_re(searched)
    line_regex: Expression | None = None
    if plan.line_regex is not None and not multiline:
        by_line = _compile(engine, plan.line_regex, flags | engine.M)
        if not isinstance(by_line, Exception):
            line_regex = Expression(by_line, _in_re(plan.line_regex, flags | engine.M) if is_same else None)
    in_bytes = None
    if not plan.is_literal:
        in_bytes = byte_pattern(searched, members, ignore_case=ignore_case, multiline=multiline)
    return Pattern(
        expression=Expression(compiled, _in_re(searched.source, flags | mode) if is_same else None),
        line_regex=line_regex,
        plan=plan,
        byte_pattern=in_bytes,
        multiline=multiline,
        max_length=max_length,
        counters=_counters_of_word(searched, plan) if is_same else None,
    )


def _compile(engine: Any, source: str, flags: int) -> Any:
    """Compile a pattern, or return the exception."""
    try:
        # The engine's cache would keep every pattern that a model sends.
        return engine.compile(source, flags, cache_pattern=False)
    except Exception as error:  # noqa: BLE001 - the compiler raises ValueError and others besides its own error
        engine_trace = error.__traceback__ and error.__traceback__.tb_next
        while engine_trace is not None:
            engine_trace.tb_frame.clear()  # it holds the error: a cycle would keep the workspace alive
            engine_trace = engine_trace.tb_next
        return error


def _is_same_in_re(syntax: Syntax) -> bool:
    """Return True if `re`, if it can compile a pattern, finds the same matches in ASCII text as `regex`."""
    return syntax.source.isascii() and all(
        token.value.isascii()
        and (token.kind not in _SAME_IN_RE or _SAME_IN_RE[token.kind].fullmatch(token.text))
        for token in syntax.tokens
    )


def _in_re(source: str, flags: int) -> re.Pattern[str] | None:
    """Compile a pattern for ASCII text with `re`; None if it cannot."""
    same = re.IGNORECASE | re.MULTILINE | re.DOTALL  # they have the same values in both modules
    try:
        return re.compile(source, re.ASCII | flags & same)
    except (re.error, OverflowError, RecursionError):
        return None


def _counters_of_word(syntax: Syntax, plan: Plan) -> tuple[re.Pattern[str], re.Pattern[str]] | None:
    """Return expressions that match as often as a word between word edges in ASCII text, and once a line.

    They begin with the literal, so `re` finds it 30 times as fast.
    """
    found = _WORD.fullmatch(syntax.source)
    if found is None or plan.ignore_case:
        return None
    word = found["word"]
    source = f"{word}(?<={found['before']}{word}){found['after']}"
    return re.compile(source, re.ASCII), re.compile(f"{source}.*", re.ASCII)


def _compile_valid(engine: Any, syntax: Syntax, flags: int) -> Any:
    compiled = _compile(engine, syntax.source, flags)
    if isinstance(compiled, Exception):
        try:
            raise _invalid(engine, syntax, compiled)
        finally:
            del compiled  # it refers to this frame: a cycle would keep the workspace alive
    return compiled


def _check_bounds(syntax: Syntax) -> None:
    """Refuse a pattern that calls a group, or takes too much time or memory to compile."""
    totals = [0]
    last = 0
    for token in syntax.tokens:
        if token.kind == "call":
            raise InvalidPatternError(
                f"The pattern calls a group with {token.text}; such calls are not supported.",
                hint="Repeat the group itself in place of each call, once for each level of nesting.",
                details={"position": token.start},
            )
        if token.kind in {"open", "look"}:
            totals.append(_GROUP_COST)
            last = 0
            if len(totals) > _MAX_DEPTH:
                raise InvalidPatternError(
                    f"The pattern nests groups more than {_MAX_DEPTH} deep.",
                    hint="Flatten it, or make several searches.",
                    details={"position": token.start, "limit": _MAX_DEPTH},
                )
        elif token.kind == "close" and len(totals) > 1:
            last = totals.pop()
            totals[-1] += last
        elif token.kind == "repeat":
            factor = max(2, token.high if token.high is not None else token.low + 1)
            totals[-1] += last * (factor - 1)
            last *= factor
        else:
            last = 1
            totals[-1] += 1
        if totals[-1] > _MAX_COST:
            raise InvalidPatternError(
                "The repeats in the pattern multiply to too large a number.",
                hint="Use + or * in place of large or nested counts such as {1000}.",
                details={"position": token.start, "limit": _MAX_COST},
            )


def _stack_per_character(syntax: Syntax) -> int:
    """Return the maximum bytes of stack for each character of a line, or 0 if the stack does not grow."""
    most = 0
    opened: list[int] = []  # bytes for the choices and captures of each enclosing group
    inside, closed = 0, -1
    for token in syntax.tokens:
        if token.kind in {"open", "look"}:
            opened.append(inside)
            inside = _STACK_CAPTURE if token.kind == "open" and not token.text.startswith("(?:") else 0
        elif token.kind == "close":
            closed = inside
            inside += opened.pop() if opened else 0
            continue
        elif token.kind == "or":
            inside += _STACK_CHOICE
        elif token.kind == "repeat":
            inside += _STACK_CHOICE
            if closed >= 0 and token.high is None:
                most = max(most, _STACK_GROUP + closed)
        closed = 0 if token.kind == "other" else -1  # a repeated group reference needs stack like a group
    return most


# The engine's words for a mistake, and ours.
_REASONS = {
    "unknown verb": "this (* has no meaning",
    "unknown extension": "this (? has no meaning",
    "multiple repeat": "a repeat follows a repeat",
    "min repeat greater than max repeat": "the first count is larger than the second",
    **dict.fromkeys(
        ("unknown property", "unknown property value"), "there is no character class of this name"
    ),
    **dict.fromkeys(("unknown group", "invalid group reference"), "there is no group of this name or number"),
    "cannot refer to an open group": "a group refers to itself",
    "undefined named list": "named lists are not supported",
}


def _invalid(engine: Any, syntax: Syntax, error: Exception) -> InvalidPatternError:
    """Return the error for a pattern: reason, position, and how to write what was probably meant."""
    written = syntax.pattern
    position, reason = _mistake(syntax, error)
    suggestion = _suggestion(engine, written) if isinstance(error, engine.error) else None
    hint = ""
    if suggestion is not None:
        hint = Advice("To match it literally, ", Retry({"pattern": suggestion}), ".")
    first = max(0, position - _EXCERPT)
    ahead = visible(written[first:position].replace("\n", " ").replace("\t", " "))
    behind = visible(written[position : position + _EXCERPT].replace("\n", " "))
    places = ["  " + ahead + behind, "  " + " " * len(ahead) + "^"]
    return InvalidPatternError(
        f"The pattern is not a valid regular expression: {reason} at character {position + 1}."
        f"{engine_note(written)}",
        hint=hint,
        details={"position": position, "reason": reason, "suggestion": suggestion, "places": places},
    )


def _mistake(syntax: Syntax, error: Exception) -> tuple[int, str]:
    """Return the position of the mistake in the original pattern, and the reason."""
    reason = str(getattr(error, "msg", "") or error) or type(error).__name__
    reported = getattr(error, "pos", None)
    end = len(syntax.pattern)
    position = syntax.written_position(reported) if isinstance(reported, int) else 0
    if reason.startswith("missing )") and syntax.unclosed:
        return syntax.unclosed[-1], "this ( is never closed"
    if reason == "unbalanced parenthesis":
        return position, "this ) closes nothing"
    if reason == "unterminated character set":
        return next((t.start for t in reversed(syntax.tokens) if t.text.startswith("[")), 0), (
            "this [ is never closed"
        )
    if reason.startswith(("bad escape", "incomplete escape", "undefined character", "unknown property")):
        escapes = [t.start for t in syntax.tokens if t.text.startswith("\\") and t.start < max(position, 1)]
        return (escapes[-1] if escapes else position), _REASONS.get(reason, reason)
    return min(position, max(end - 1, 0)), _REASONS.get(reason, reason)


def _suggestion(engine: Any, written: str) -> str | None:
    """Escape the full pattern if it does not look like a regex, else only the wrong characters."""
    literal = as_plain_text(written)
    if not _LOOKS_LIKE_REGEX.search(written):
        return literal
    repaired = written
    for _ in range(_MAX_REPAIRS):
        if len(repaired) > MAX_CHARACTERS:
            break
        syntax = read_syntax(repaired)
        outcome = _compile(engine, syntax.source, engine.V0)
        if not isinstance(outcome, Exception):
            return repaired
        position, _ = _mistake(syntax, outcome)
        repaired = f"{repaired[:position]}\\{repaired[position:]}"
    return literal if len(literal) <= MAX_CHARACTERS else None
