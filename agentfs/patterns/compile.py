"""Compile a regular expression, or refuse it with the position of the mistake and a valid pattern.

`regex` has a timeout for matching, but not for compiling, and some short patterns compile for minutes or take
gigabytes. So length, depth and the product of the repeats are checked first.
"""

import re
import sys
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import import_module
from itertools import pairwise
from typing import Any

from agentfs.base.advice import Advice, Retry, plural
from agentfs.base.visible import visible
from agentfs.errors import InvalidPatternError
from agentfs.patterns.search_plan import Plan, make_plan
from agentfs.patterns.syntax import MAX_CHARACTERS, Syntax, as_plain_text, literal_syntax, read_syntax

_MAX_DEPTH = 50
_MAX_COST = 20_000  # within this bound, the slowest tested pattern compiles in 0.2 s
_MAX_REPEATED = 640 * 1024  # characters that a repeated group may match; each takes up to 200 bytes
_SAMPLES = "".join(map(chr, range(256))) + "\u0416\u0661\u3000\u65e5"  # characters of many classes
_GROUP = "(?s:.)"  # stands for a repeated group, which the engine may turn into a set of characters
_GROUP_COST = 8  # the engine's work for groups grows with their square
_EXCERPT = 60  # characters of the pattern shown on either side of a mistake
_LOOKS_LIKE_REGEX = re.compile(r"\\[A-Za-z]|[.\])][*+?]|\||^\^|\$$|\[[^\]]+\]|\(\?")


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern: `expression` is the line regex if the plan has one, else the pattern as written."""

    expression: Any
    by_line: bool  # `expression` is matched with each line alone
    multiline: bool
    plan: Plan
    tail: Any  # the compiled tail of the plan, or None
    longest: int  # the longest line (with `multiline`: text) that takes bounded memory
    repeated: tuple[str, ...]  # regexes of the characters that are repeated without a bound

    @cached_property
    def run(self) -> Any:
        """The compiled pattern of a run of characters that one step of the engine may pass."""
        runs = "|".join(f"(?i:{each})*+" for each in self.repeated)
        return import_module("regex").compile(runs, cache_pattern=False)


@lru_cache(maxsize=16)  # the next page and the next file are often searched with the same pattern
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
    if not 0 < len(pattern) <= MAX_CHARACTERS:
        raise InvalidPatternError(
            f"The pattern has {plural(len(pattern), 'character')}; from 1 to {MAX_CHARACTERS} are allowed.",
            hint="Pass a text or regular expression to search for; make several searches for a long one.",
            details={"characters": len(pattern), "limit": MAX_CHARACTERS},
        )
    syntax = literal_syntax(pattern) if literal else read_syntax(pattern)
    _check_bounds(syntax)
    engine: Any = import_module("regex")
    flags = engine.V0 | (engine.I if ignore_case else 0)
    if multiline:
        flags |= engine.M | (engine.S if dot_all else 0)
    _compile_valid(engine, syntax, flags)  # errors show the pattern as the caller wrote it
    searched = syntax.between(*around) if any(around) else syntax
    searched = searched if captures else searched.without_captures()

    def common(part: str, other: str) -> bool:
        return bool(engine.search(f"(?={part}){other}", _SAMPLES, flags))

    plan = make_plan(searched, common, ignore_case=ignore_case)

    def compiled(source: str | None) -> Any:
        found = None if source is None or multiline else _compile(engine, source, flags | engine.M)
        return None if isinstance(found, Exception) else found

    in_text = compiled(plan.line_regex)
    repeated = _repeated(searched)
    return Pattern(
        expression=in_text or _compile_valid(engine, searched, flags),
        by_line=in_text is None and not multiline,
        multiline=multiline,
        plan=plan,
        tail=compiled(plan.tail),
        longest=_MAX_REPEATED if _GROUP in repeated else sys.maxsize,
        repeated=repeated,
    )


def _compile(engine: Any, source: str, flags: int) -> Any:
    """Compile a pattern, or return the exception."""
    try:
        # The engine's cache would keep every pattern that a model sends.
        return engine.compile(source, flags, cache_pattern=False)
    except Exception as error:  # noqa: BLE001 - the compiler raises ValueError and others besides its own error
        engine_trace = error.__traceback__ and error.__traceback__.tb_next
        while engine_trace is not None:
            engine_trace.tb_frame.clear()
            engine_trace = engine_trace.tb_next
        return error.with_traceback(None)  # frames hold the error: a cycle would keep the workspace alive


def _compile_valid(engine: Any, syntax: Syntax, flags: int) -> Any:
    compiled = _compile(engine, syntax.source, flags)
    if isinstance(compiled, Exception):
        raise _invalid(engine, syntax, compiled)
    return compiled


def _check_bounds(syntax: Syntax) -> None:
    """Refuse a pattern that calls a group, or takes too much time or memory to compile."""
    totals = [0]
    last = 0
    for token in syntax.tokens:
        if token.kind == "call":
            message = f"The pattern calls a group with {token.text}; such calls are not supported."
            hint = "Repeat the group itself in place of each call, once for each level of nesting."
            raise InvalidPatternError(message, hint=hint, details={"position": token.start})
        if token.kind in {"open", "look"}:
            totals.append(_GROUP_COST)
            last = 0
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
        if len(totals) > _MAX_DEPTH or totals[-1] > _MAX_COST:
            message = "The pattern nests groups too deep, or its repeats multiply to too large a number."
            hint = "Use + or * in place of large or nested counts such as {1000}, or make several searches."
            raise InvalidPatternError(message, hint=hint, details={"position": token.start})


def _repeated(syntax: Syntax) -> tuple[str, ...]:
    """Return what is repeated without a bound: characters, or groups and references to them as `_GROUP`."""
    return tuple(
        _GROUP if before.kind in {"close", "other"} else before.text
        for before, token in pairwise(syntax.tokens)
        # The engine passes the characters of `.*` in hardly any time.
        if token.kind == "repeat" and token.high is None and before.kind != "any"
    )


_ABOUT_ESCAPES = ("bad escape", "incomplete escape", "undefined character", "unknown property")


def _invalid(engine: Any, syntax: Syntax, error: Exception) -> InvalidPatternError:
    """Return the error for a pattern: reason, position, and how to write what was probably meant."""
    written = syntax.pattern
    position, reason = _mistake(syntax, error)
    suggestion = _suggestion(engine, written, position) if isinstance(error, engine.error) else None
    advice = (
        "" if suggestion is None else Advice("To match it literally, ", Retry({"pattern": suggestion}), ".")
    )
    first = max(0, position - _EXCERPT)
    ahead = visible(written[first:position].replace("\n", " ").replace("\t", " "))
    behind = visible(written[position : position + _EXCERPT].replace("\n", " "))
    places = ["  " + ahead + behind, "  " + " " * len(ahead) + "^"]
    return InvalidPatternError(
        f"The pattern is not a valid regular expression: {reason} at character {position + 1}.",
        hint=advice,
        details={"position": position, "reason": reason, "suggestion": suggestion, "places": places},
    )


def _mistake(syntax: Syntax, error: Exception) -> tuple[int, str]:
    """Return the position of the mistake in the original pattern, and the reason."""
    words = str(getattr(error, "msg", "") or error) or type(error).__name__
    reported = getattr(error, "pos", None)
    position = syntax.written_position(reported) if isinstance(reported, int) else 0
    places = syntax.unclosed if words.startswith("missing )") else []
    for wrong, mark in ((("unterminated character set",), "["), (_ABOUT_ESCAPES, "\\")):
        if words.startswith(wrong):
            starts = (token.start for token in syntax.tokens if token.text.startswith(mark))
            places = [start for start in starts if start < max(position, 1)]
    return places[-1] if places else min(position, max(len(syntax.pattern) - 1, 0)), words


def _suggestion(engine: Any, written: str, position: int) -> str | None:
    """Escape the wrong character if that makes a valid regex, else the full pattern."""
    repaired = f"{written[:position]}\\{written[position:]}"
    looks_like_regex = _LOOKS_LIKE_REGEX.search(written) and len(repaired) <= MAX_CHARACTERS
    compiled = _compile(engine, read_syntax(repaired).source, engine.V0) if looks_like_regex else None
    if compiled is not None and not isinstance(compiled, Exception):
        return repaired
    literal = as_plain_text(written)
    return literal if len(literal) <= MAX_CHARACTERS else None
