"""A pattern made ready: bounded before it is compiled, compiled, planned, or refused with a way out.

`regex` bounds the time of a match and not that of compiling, and some short patterns compile for minutes or
into gigabytes. So length, depth and the product of the repeats are weighed on the tokens first.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar, cast

from agentfs.errors import InvalidPatternError
from agentfs.messages import Message, Retry
from agentfs.patterns.literals import Plan, make_plan
from agentfs.patterns.recursion import left_recursion
from agentfs.patterns.syntax import Syntax, is_call, read_syntax
from agentfs.text import visible

MOST_CHARACTERS = 1000
MOST_STACK = 128 * 1024 * 1024  # bytes that the engine may take to match one line
MOST_DEPTH = 50
MOST_FOLDED = 24
LARGEST_FOLDED = 2 * 1024 * 1024  # what is longer is searched in lower case instead, which takes linear time
MOST_COST = 20_000  # the dearest pattern below it that was tried compiles in 0.2 s

# Bytes of the engine's stack for each character that a repeated group has matched, as measured: for the
# group, and for each choice and capture in it; for a pattern that calls groups, and each repeat and group.
_STACK_GROUP, _STACK_CHOICE, _STACK_CAPTURE = 96, 24, 64
_STACK_CALL, _STACK_OF_CALL = 384, 128
_CAPTURE = 8  # what a group weighs: the engine's work for them grows with their square
_SHOWN_AROUND = 60  # characters of the pattern shown on either side of a mistake
_MOST_REPAIRS = 12
_MEANT_AS_REGEX = re.compile(r"\\[A-Za-z]|[.\])][*+?]|\||^\^|\$$|\[[^\]]+\]|\(\?")
_SPECIAL = re.compile(r"[\\.*+?^$|()\[\]{}]")


class Found(Protocol):
    """One match of a compiled pattern."""

    def span(self) -> tuple[int, int]:
        """Return where it begins and ends."""
        ...


S = TypeVar("S", str, bytes)
_Text_contra = TypeVar("_Text_contra", str, bytes, contravariant=True)


class Compiled(Protocol[_Text_contra]):
    """What is used of a compiled pattern of the `regex` module."""

    def search(
        self, text: _Text_contra, /, *, timeout: float | None = None, concurrent: bool = False
    ) -> Found | None:
        """Find the first match; raise TimeoutError after `timeout` seconds."""
        ...

    def finditer(
        self, text: _Text_contra, /, *, timeout: float | None = None, concurrent: bool = False
    ) -> Iterator[Found]:
        """Find all matches; raise TimeoutError when together they take more than `timeout` seconds."""
        ...


@dataclass(frozen=True)
class CompiledPattern(Generic[S]):
    """A pattern compiled for one sort of text.

    Attributes:
        expression: The compiled pattern, for one line (or, with `multiline`, for a whole text).
        sweep: The compiled sweep of the plan, or None.
        needles: The needles of the plan.
        also: What the plan has besides.
        newline: A line feed.
    """

    expression: Compiled[S]
    sweep: Compiled[S] | None
    needles: tuple[S, ...]
    also: tuple[S, ...]
    newline: S


@dataclass(frozen=True)
class Pattern:
    """A pattern, ready to search with.

    Attributes:
        written: The pattern as it was given.
        form: The pattern for texts.
        ascii: The pattern for the bytes of ASCII texts, several times faster; None where it could mean
            something else.
        plan: How to find the lines that can match.
        ignore_case: Whether letters match in either case, everywhere in the pattern.
        multiline: Whether matches may span lines.
        longest: Characters of the longest line (or, with `multiline`, text) that can be searched in bounded
            memory; None for any.
    """

    written: str
    form: CompiledPattern[str]
    ascii: CompiledPattern[bytes] | None
    plan: Plan
    ignore_case: bool
    multiline: bool
    longest: int | None


def compile_pattern(
    written: str, *, ignore_case: bool = False, multiline: bool = False, dot_all: bool = True
) -> Pattern:
    """Make a pattern ready.

    Args:
        written: The regular expression.
        ignore_case: Match letters in either case.
        multiline: Let matches span lines: `^` and `$` stand at every line.
        dot_all: Whether with `multiline` `.` matches a line feed.

    Returns:
        The compiled pattern with its plan.

    Raises:
        InvalidPatternError: `invalid_pattern`: it is empty, too long, too deep, too dear to compile or wrong;
            `details` have the position, what is wrong, and where one can be given a suggestion.
    """
    if not written:
        raise InvalidPatternError(
            "The pattern is empty.", hint="Pass the text or regular expression to search for."
        )
    if len(written) > MOST_CHARACTERS:
        raise InvalidPatternError(
            f"The pattern has {len(written)} characters; at most {MOST_CHARACTERS} are taken.",
            hint="Search for a shorter part of it, or make several searches.",
            details={"characters": len(written), "limit": MOST_CHARACTERS},
        )
    syntax = read_syntax(written)
    _check_cost(syntax)
    engine: Any = import_module("regex")
    flags = engine.V0 | (engine.I if ignore_case else 0)
    mode = (engine.M | engine.S if dot_all else engine.M) if multiline else 0
    expression = _compile(engine, syntax.source, flags | mode)
    if isinstance(expression, Exception):
        raise _invalid(engine, syntax, expression)

    # A search needs no captures, and keeping them takes memory for each repetition.
    syntax = syntax.without_captures()
    expression = _compile(engine, syntax.source, flags | mode)
    if isinstance(expression, Exception):
        raise _invalid(engine, syntax, expression)

    def eats_newline(piece: str) -> bool:
        return bool(engine.compile(piece, flags).match("\n"))

    plan = make_plan(syntax, ignore_case=ignore_case, eats_newline=eats_newline)
    sweep_source = None if multiline else plan.sweep
    folded = ignore_case or (bool(syntax.tokens) and "i" in _leading_flags(syntax))
    form = CompiledPattern(expression, _sweep(engine, sweep_source, flags), plan.needles, plan.also, "\n")
    ascii_form: CompiledPattern[bytes] | None = None
    if plan.ascii:
        of_bytes = _compile(engine, syntax.source.encode(), flags | mode)
        if not isinstance(of_bytes, Exception):
            sweep = _sweep(engine, None if sweep_source is None else sweep_source.encode(), flags)
            needles, also = (tuple(each.encode() for each in some) for some in (plan.needles, plan.also))
            ascii_form = CompiledPattern(of_bytes, sweep, needles, also, b"\n")
    if (endless := left_recursion(syntax)) is not None:
        raise InvalidPatternError(
            "A group of the pattern calls itself before it has matched a character, and so without end.",
            hint="Put what it must match before the call.",
            details={"position": endless.start},
        )
    per_character = _stack_of_character(syntax)
    longest = MOST_STACK // per_character if per_character else None
    return Pattern(written, form, ascii_form, plan, folded, multiline, longest)


def in_either_case(text: S) -> Compiled[S]:
    """Compile a plain text, for a search that takes its ASCII letters in either case.

    Such a search takes at worst the product of both lengths, and cannot be stopped.

    Args:
        text: What is looked for, at most `MOST_FOLDED` characters.
    """
    engine: Any = import_module("regex")
    return cast("Compiled[S]", engine.compile(engine.escape(text), engine.V0 | engine.I, cache_pattern=False))


def _sweep(engine: Any, source: S | None, flags: int) -> Compiled[S] | None:
    if source is None:
        return None
    compiled = _compile(engine, source, flags | engine.M)
    return None if isinstance(compiled, Exception) else compiled


def escape(text: str) -> str:
    """Write a text as the pattern that matches exactly it.

    Args:
        text: Any text.

    Returns:
        The pattern, with a backslash before each character that means something else.
    """
    return _SPECIAL.sub(lambda found: "\\" + found[0], text)


def _leading_flags(syntax: Syntax) -> str:
    return syntax.tokens[0].value if syntax.tokens[0].kind == "flags" else ""


def _compile(engine: Any, source: S, flags: int) -> Compiled[S] | Exception:
    try:
        # The engine's cache would keep every pattern that a model has ever sent.
        return cast("Compiled[S]", engine.compile(source, flags, cache_pattern=False))
    except Exception as error:  # noqa: BLE001 - besides its own error, the compiler raises ValueError and others
        return error


def _check_cost(syntax: Syntax) -> None:
    """Refuse a pattern that would take too long, or too much memory, to compile."""
    totals = [0]
    last = 0
    for token in syntax.tokens:
        if token.kind in {"open", "look"}:
            totals.append(_CAPTURE)
            last = 0
            if len(totals) > MOST_DEPTH:
                raise InvalidPatternError(
                    f"The pattern nests groups more than {MOST_DEPTH} deep.",
                    hint="Flatten it, or make several searches.",
                    details={"position": token.start, "limit": MOST_DEPTH},
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
        if totals[-1] > MOST_COST:
            raise InvalidPatternError(
                "The repeats in the pattern multiply to more than is taken.",
                hint="Use + or * in place of large or nested counts such as {1000}.",
                details={"position": token.start, "limit": MOST_COST},
            )


def _stack_of_character(syntax: Syntax) -> int:
    """Return the bytes of stack that each character of a line may take to match, or 0 for a fixed number."""
    most = 0
    opened: list[int] = []  # what the choices and captures in each open group take
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
        elif token.kind == "other" and is_call(token):
            saved = sum(each.kind in {"open", "repeat"} for each in syntax.tokens)
            most = max(most, _STACK_CALL + _STACK_OF_CALL * saved)
        closed = 0 if token.kind == "other" else -1  # a reference to a group is repeated as a group is
    return most


def _invalid(engine: Any, syntax: Syntax, error: Exception) -> InvalidPatternError:
    """Say what is wrong with a pattern, where, and how to write what was probably meant."""
    written = syntax.pattern
    position, reason = _mistake(syntax, error)
    suggestion = _suggestion(engine, written) if isinstance(error, engine.error) else None
    hint = ""
    if suggestion is not None:
        hint = Message("To match it literally, ", Retry({"pattern": suggestion}), ".")
    first = max(0, position - _SHOWN_AROUND)
    ahead = visible(written[first:position].replace("\n", " ").replace("\t", " "))
    behind = visible(written[position : position + _SHOWN_AROUND].replace("\n", " "))
    places = ["  " + ahead + behind, "  " + " " * len(ahead) + "^"]
    return InvalidPatternError(
        f"The pattern is not a valid regular expression: {reason} at character {position + 1}.",
        hint=hint,
        details={"position": position, "reason": reason, "suggestion": suggestion, "places": places},
    )


def _mistake(syntax: Syntax, error: Exception) -> tuple[int, str]:
    """Give the position of the mistake in the pattern as it was written, and the reason."""
    reason = str(getattr(error, "msg", "") or error) or type(error).__name__
    reported = getattr(error, "pos", None)
    end = len(syntax.pattern)
    position = syntax.written_position(reported) if isinstance(reported, int) else 0
    if reason == "missing )" and syntax.unclosed:
        return syntax.unclosed[-1], "this ( is never closed"
    if reason == "unbalanced parenthesis":
        return position, "this ) closes nothing"
    if reason == "unterminated character set":
        return next((t.start for t in reversed(syntax.tokens) if t.text.startswith("[")), 0), (
            "this [ is never closed"
        )
    if reason.startswith(("bad escape", "incomplete escape", "undefined character", "unknown property")):
        held = [t.start for t in syntax.tokens if t.text.startswith("\\") and t.start < max(position, 1)]
        return (held[-1] if held else position), reason
    return min(position, max(end - 1, 0)), reason


def _suggestion(engine: Any, written: str) -> str | None:
    """Escape what is wrong: all of the pattern where nothing in it looks like a regex, else the place."""
    literal = escape(written)
    if not _MEANT_AS_REGEX.search(written):
        return literal
    repaired = written
    for _ in range(_MOST_REPAIRS):
        if len(repaired) > MOST_CHARACTERS:
            break
        syntax = read_syntax(repaired)
        outcome = _compile(engine, syntax.source, engine.V0)
        if not isinstance(outcome, Exception):
            return repaired
        position, _ = _mistake(syntax, outcome)
        repaired = f"{repaired[:position]}\\{repaired[position:]}"
    return literal if len(literal) <= MOST_CHARACTERS else None
