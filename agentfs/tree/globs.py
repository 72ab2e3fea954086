r"""Globs: their syntax and limits, compiled to fast tests of paths relative to the search directory.

`*`, `?` and `[…]` match within one part of the path; `**` matches any number of parts. `{a,b}` and `{1..9}`
are expanded. `\\` makes the next character literal. A pattern without `/` matches the name at any depth. A
leading `/` or `./` binds it to the search directory. A pattern that ends in `/` matches everything below the
directory. In a list, the last glob that matches decides, as with `rg -g`. A glob that begins with `!`
excludes its matches and everything below matching directories; if it also ends in `/`, it matches directories
only.

A malformed glob, or one with too many expansions, raises `InvalidPatternError`. A glob with a part `..`
raises `OutsideWorkspaceError`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from agentfs.base.advice import Advice, ParameterName
from agentfs.base.lazy import bracex
from agentfs.base.visible import literal
from agentfs.errors import InvalidPatternError, OutsideWorkspaceError
from agentfs.tree.wildcards import (
    ANY_PARTS,
    MalformedPatternError,
    PatternPart,
    compile_regex,
    parse,
    to_regex,
)

MAX_LENGTH = 4096
MAX_EXPANDED = 1000
_MAX_CHARACTERS = 32 * 1024  # of all globs of a list together, after braces are expanded
MAX_ANY_PARTS = 16  # number of `**` in one glob
_MAX_LEVELS = 100  # levels of a glob that are tested before a directory is entered; `re` limits nesting

# A class is one token, so that its braces and commas do not count.
_BRACE_TOKEN = re.compile(r"\\.|\[[!^]?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]|.", re.DOTALL)
_SEQUENCE = re.compile(r"(?:-?\d{1,9}\.\.-?\d{1,9}|[a-z]\.\.[a-z]|[A-Z]\.\.[A-Z])(?:\.\.-?\d{1,9})?")

Matcher = Callable[[str], bool]


class _Glob(NamedTuple):
    """One glob of a list, with expanded braces, and without a leading `!` and a trailing `/`."""

    text: str
    negated: bool
    directory_only: bool


def compile_globs(
    patterns: Sequence[str], *, anchored: bool = False, hidden: bool = True, directories: bool = False
) -> Matcher:
    """Compile globs to one test of a path; a path without a match passes if all globs begin with `!`.

    `anchored` binds every glob to the search directory. Without `hidden`, no wildcard matches a leading dot.
    With `directories`, all tested paths are directories.
    """
    globs = _read(patterns)
    if not globs:
        raise InvalidPatternError("No glob was given.", hint='Pass one, for example "**/*.py".')
    if not any(glob.negated for glob in globs):
        return _any_of([glob.text for glob in globs], anchored=anchored, hidden=hidden)
    last_match = _last_match(globs, anchored=anchored, hidden=hidden, directories=directories)
    default = all(glob.negated for glob in globs)
    pruned = _pruning(globs, anchored=anchored)

    @lru_cache(maxsize=1)  # successive paths share their directory
    def is_pruned(directory: str) -> bool:
        parts = directory.split("/")
        return any(pruned("/".join(parts[:count])) for count in range(1, len(parts) + 1))

    def matches(path: str) -> bool:
        slash = path.rfind("/")
        if slash > 0 and is_pruned(path[:slash]):
            return False
        verdict = last_match(path)
        return default if verdict is None else verdict

    return matches


def compile_descent(patterns: Sequence[str], *, anchored: bool = False) -> Matcher | None:
    """Return a test that is True if a match may lie below a directory; None if it is True for all."""
    globs = _read(patterns)
    leads = _leading([glob.text for glob in globs if not glob.negated], anchored=anchored)
    if not any(glob.negated for glob in globs):
        return leads
    pruned = _pruning(globs, anchored=anchored)
    return lambda path: not pruned(path) and (leads is None or leads(path))


def compile_exclude(patterns: Sequence[str]) -> Callable[[str, bool], bool]:
    """Return a test that is True for an excluded path; its second argument is True for a directory.

    A glob that ends in `/` matches directories only. A glob that begins with `!` includes its matches again.
    """
    globs = _read(patterns, excluding=True)
    of_file = _last_match(globs)
    of_directory = _last_match(globs, directories=True)
    return lambda path, is_dir: (of_directory if is_dir else of_file)(path) is True


def hidden_names(patterns: Sequence[str]) -> Matcher | None:
    """Return a test for hidden names that a glob names, such as `.github`; None if there are none."""
    globs = [glob for glob in _read(patterns) if not glob.negated]
    parts = [part for glob in globs for part in _parts(glob.text) if part[0].startswith(".")]
    return _fullmatch(to_regex([part]) for part in parts) if parts else None


def _read(patterns: Sequence[str], *, excluding: bool = False) -> list[_Glob]:
    """Check the globs of a list and expand their braces, within the limits of the full list."""
    globs: list[_Glob] = []
    size = 0
    for pattern in patterns:
        negated = pattern.startswith("!")
        for text in expand(pattern[negated:], MAX_EXPANDED - len(globs), _MAX_CHARACTERS - size):
            directory_only = (negated or excluding) and text.endswith("/")
            globs.append(_Glob(text.rstrip("/") if directory_only else text, negated, directory_only))
            size += len(text)
            if not globs[-1].text:
                raise _empty()
    return globs


def _empty() -> InvalidPatternError:
    return InvalidPatternError("The glob is empty.", hint='Pass a glob such as "**/*.py".')


def expand(pattern: str, most: int = MAX_EXPANDED, most_characters: int = _MAX_CHARACTERS) -> list[str]:
    """Check a glob without its leading `!`, and expand its braces within limits."""
    if not pattern:
        raise _empty()
    if "\0" in pattern:
        raise InvalidPatternError("The glob has a NUL, which no name can have.", hint="Leave it out.")
    expanded, problem = [pattern], ""
    if len(pattern) > MAX_LENGTH:
        problem = f"The glob is longer than {MAX_LENGTH} characters ({len(pattern)})."
    elif "{" in pattern:
        expanded = _expand_braces(pattern, most, most_characters)
    if len(expanded) > most or sum(map(len, expanded)) > most_characters:
        problem = f"The glob expands into over {MAX_EXPANDED} patterns or {_MAX_CHARACTERS} characters."
    if problem:
        hint = "Use `*` in place of long alternatives, or several globs."
        raise InvalidPatternError(problem, hint=hint, details={"pattern": pattern[:200]})
    hint = Advice("Put the directory in ", ParameterName("path", quoted=True), " and the rest in the glob.")
    for each in expanded:
        if ".." in each.split("/"):
            wrong = f"The glob {literal(each)} has a part '..', which leads out of the search directory."
            raise OutsideWorkspaceError(wrong, hint=hint)
    return expanded or [""]


def _expand_braces(pattern: str, most: int, most_characters: int) -> list[str]:
    """Expand braces with bracex, and stop just past a bound."""
    expanded: list[str] = []
    size = 0
    try:
        # For bracex, a limit of 0 means no limit.
        for text in bracex.iexpand(_drop_single_braces(pattern), keep_escapes=True, limit=max(most, 1)):
            expanded.append(text)
            size += len(text)
            if size > most_characters or len(expanded) > most:
                break
    except (bracex.ExpansionLimitException, RecursionError):
        return [""] * (most + 1)
    return expanded


def _drop_single_braces(pattern: str) -> str:
    """Remove braces around a single alternative, as ripgrep does; check that all are closed."""
    tokens: list[str] = []
    open_braces: list[tuple[int, int]] = []  # the indexes of each in the pattern and in `tokens`
    with_comma: set[int] = set()
    for found in _BRACE_TOKEN.finditer(pattern):
        text = found[0]
        if text == "{":
            open_braces.append((found.start(), len(tokens)))
        elif text == "," and open_braces:
            with_comma.add(open_braces[-1][1])
        elif text == "}" and open_braces:
            _, opening = open_braces.pop()
            if opening not in with_comma and not _SEQUENCE.fullmatch("".join(tokens[opening + 1 :])):
                tokens[opening] = text = ""
        elif text in ("$", "}"):  # bracex leaves `${` alone
            text = f"\\{text}"
        elif text[0] == "[":
            text = re.sub(r"\\.|[{},]", lambda each: each[0][-2:].rjust(2, "\\"), text)
        tokens.append(text)
    if open_braces:
        raise InvalidPatternError(
            f"The '{{' at character {open_braces[0][0] + 1} of the glob is never closed.",
            hint="Close it, or put a backslash before a literal brace: '\\{'.",
            details={"pattern": pattern},
        )
    return "".join(tokens)


def _last_match(
    globs: list[_Glob], *, anchored: bool = False, hidden: bool = True, directories: bool = False
) -> Callable[[str], bool | None]:
    """Return a function that returns True if the last matching glob is not negated; None without a match."""
    runs: list[tuple[bool, Matcher]] = []
    for negated, run in groupby(reversed(globs), key=lambda glob: glob.negated):
        texts = [glob.text for glob in run if directories or not glob.directory_only]
        if texts:
            runs.append((not negated, _any_of(texts, anchored=anchored, hidden=hidden or negated)))

    def last_match(path: str) -> bool | None:
        for verdict, matches in runs:
            if matches(path):
                return verdict
        return None

    return last_match


def _pruning(globs: list[_Glob], *, anchored: bool) -> Matcher:
    last_match = _last_match(globs, anchored=anchored, directories=True)
    return lambda path: last_match(path) is False


def _leading(patterns: list[str], *, anchored: bool) -> Matcher | None:
    """Return a test that is True if a match may lie below a directory; None if it is True for all."""
    regexes: list[str] = []
    for pattern in patterns:
        if not anchored and "/" not in pattern:
            return None
        parts = _parts(pattern)
        unbounded = ANY_PARTS in parts
        heads = parts[: parts.index(ANY_PARTS) if unbounded else -1]
        if unbounded and not heads:
            return None
        tail = "(?:/.*)?" if unbounded or len(heads) > _MAX_LEVELS else ""
        for head in reversed(heads[1:_MAX_LEVELS]):
            tail = f"(?:/{to_regex([head])}{tail})?"
        regexes.append(to_regex(heads[:1]) + tail if heads else "(?!)")
    return _fullmatch(regexes) if regexes else None


def _parts(pattern: str) -> list[PatternPart]:
    """Parse a glob whose braces are expanded."""
    while pattern.startswith("./"):
        pattern = pattern[2:].lstrip("/")
    pattern = pattern.lstrip("/")
    if pattern.endswith("/") or not pattern:
        pattern += "**"
    try:
        parts = [part for part in parse(pattern) if part != [""]]
    except MalformedPatternError as error:
        raise InvalidPatternError(
            f"The glob {literal(pattern)} is malformed: {error}.",
            hint="Put a backslash before a literal character, for example '\\['.",
            details={"pattern": pattern},
        ) from None
    if parts.count(ANY_PARTS) > MAX_ANY_PARTS:
        raise InvalidPatternError(f"The glob has over {MAX_ANY_PARTS} parts '**'.", hint="One or two do.")
    return parts or [ANY_PARTS]


def _fullmatch(regexes: Iterable[str]) -> Matcher:
    fullmatch = compile_regex("|".join(f"(?:{regex})" for regex in dict.fromkeys(regexes))).fullmatch
    return lambda text: fullmatch(text) is not None


def _any_of(patterns: list[str], *, anchored: bool, hidden: bool) -> Matcher:
    """Return a test that is True if one of the expanded patterns matches a path."""
    regexes: list[str] = []
    for pattern in patterns:
        parts = _parts(pattern)
        is_bound = anchored or "/" in pattern or parts == [ANY_PARTS]
        regexes.append(to_regex(parts if is_bound else [ANY_PARTS, *parts], hidden=hidden))
    return _fullmatch(regexes)
