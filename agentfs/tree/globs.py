"""Globs: what a pattern may be, and a fast test of relative paths."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from agentfs.errors import InvalidPatternError, OutsideWorkspaceError
from agentfs.messages import Message, ParameterName
from agentfs.tree import wildcard
from agentfs.visible import literal

MAX_LENGTH = 4096
MAX_EXPANDED = 1000
MAX_CHARACTERS = 32 * 1024  # of all globs of a list together, braces expanded
MAX_NESTING = 20
MAX_DEEP = 16
_MOST_LEVELS = 100  # of a glob that decide whether a directory is entered; `re` takes no deeper nesting

Matcher = Callable[[str], bool]


class _Glob(NamedTuple):
    """One glob of a list, its braces expanded.

    Attributes:
        text: The pattern, without the leading `!`, and without the `/` that makes it `directory_only`.
        negated: Whether it began with `!`.
        directory_only: Whether it matches directories only.
    """

    text: str
    negated: bool
    directory_only: bool


def compile_globs(
    patterns: Sequence[str], *, anchored: bool = False, hidden: bool = True, directories: bool = False
) -> Matcher:
    r"""Compile a list of globs to one test of a path relative to the search directory.

    `*`, `?` and `[…]` stay within one part of the path, `**` does not, `{a,b}` and `{1..9}` are expanded, `\`
    takes the next character as it is. A pattern without `/` is tested on the name at any depth; a leading `/`
    or `./` binds it to the search directory; one that ends in `/` means all that lies below.

    The last glob that matches decides, as with `rg -g`: a glob that begins with `!` leaves out what it
    matches, and all below a directory that it matches (with a `/` at its end, directories only). A path that
    no glob matches is taken if all globs begin with `!`.

    Args:
        patterns: At least one glob.
        anchored: Bind every pattern to the search directory.
        hidden: Whether a wildcard may stand for the dot that a name begins with.
        directories: Whether the paths to test are those of directories.

    Returns:
        The test; paths have `/` and no leading `./`.

    Raises:
        InvalidPatternError: A pattern is malformed, or would expand into too many (invalid_pattern).
        OutsideWorkspaceError: A pattern has a part `..` (outside_workspace).
    """
    globs = _read(patterns)
    if not globs:
        raise InvalidPatternError("No glob was given.", hint='Pass one, for example "**/*.py".')
    decide = _decider(globs, anchored=anchored, hidden=hidden, directories=directories)
    if not any(glob.negated for glob in globs):
        return lambda path: decide(path) is True
    unmatched = all(glob.negated for glob in globs)
    lies_in_pruned = _lies_in(_pruning(globs, anchored=anchored))

    def matches(path: str) -> bool:
        if lies_in_pruned(path):
            return False
        verdict = decide(path)
        return unmatched if verdict is None else verdict

    return matches


def compile_pruning(patterns: Sequence[str], *, anchored: bool = False) -> Matcher | None:
    """Return a test whether a directory is left out with all below it, or None when no glob leaves one out.

    Args:
        patterns: Globs, as for `compile_globs`.
        anchored: As for `compile_globs`.

    Raises:
        InvalidPatternError: As `compile_globs`.
        OutsideWorkspaceError: As `compile_globs`.
    """
    globs = _read(patterns)
    return _pruning(globs, anchored=anchored) if any(glob.negated for glob in globs) else None


def compile_descent(patterns: Sequence[str], *, anchored: bool = False) -> Matcher | None:
    """Return a test whether a match may lie below a directory, or None when it may lie below any.

    Args:
        patterns: Globs, as for `compile_globs`.
        anchored: As for `compile_globs`.

    Raises:
        InvalidPatternError: As `compile_globs`.
        OutsideWorkspaceError: As `compile_globs`.
    """
    globs = _read(patterns)
    leads = _leading([glob.text for glob in globs if not glob.negated], anchored=anchored)
    if not any(glob.negated for glob in globs):
        return leads
    pruned = _pruning(globs, anchored=anchored)
    return lambda path: not pruned(path) and (leads is None or leads(path))


def compile_exclude(patterns: Sequence[str]) -> Callable[[str, bool], bool]:
    """Return a test of what is excluded, given its path and whether it is a directory.

    What lies in an excluded directory is excluded with it, because it is not entered. The last glob that
    matches decides, and one that begins with `!` takes back what those before it exclude.

    Args:
        patterns: At least one glob; one that ends in `/` means a directory.

    Raises:
        InvalidPatternError: As `compile_globs`.
        OutsideWorkspaceError: As `compile_globs`.
    """
    globs = _read(patterns, excluding=True)
    of_file = _decider(globs)
    of_directory = _decider(globs, directories=True)
    return lambda path, is_dir: (of_directory if is_dir else of_file)(path) is True


def hidden_names(patterns: Sequence[str]) -> Matcher | None:
    """Return a test for the hidden names that the patterns spell out, or None when they spell none.

    Args:
        patterns: Globs; a part that begins with a dot, as in `.github/*.yml`, opens names that it matches.

    Raises:
        InvalidPatternError: As `compile_globs`.
        OutsideWorkspaceError: As `compile_globs`.
    """
    regexes = [
        wildcard.to_regex(part)
        for glob in _read(patterns)
        if not glob.negated
        for part in _split_parts(_tokens(glob.text))
        if part and part[0] == r"\."
    ]
    if not regexes:
        return None
    return _fullmatch(_compile(dict.fromkeys(regexes)))


def _read(patterns: Sequence[str], *, excluding: bool = False) -> list[_Glob]:
    """Check the globs of a list and expand their braces, within the bounds of the whole list."""
    globs: list[_Glob] = []
    size = 0
    for pattern in patterns:
        negated = pattern.startswith("!")
        for text in expand(pattern[negated:], MAX_EXPANDED - len(globs), MAX_CHARACTERS - size):
            directory_only = (negated or excluding) and text.endswith("/")
            globs.append(_Glob(text.rstrip("/") if directory_only else text, negated, directory_only))
            size += len(text)
            if not globs[-1].text:
                raise _empty()
    return globs


def _empty() -> InvalidPatternError:
    return InvalidPatternError("The glob is empty.", hint='Pass a glob such as "**/*.py".')


def expand(pattern: str, most: int = MAX_EXPANDED, most_characters: int = MAX_CHARACTERS) -> list[str]:
    """Check a glob and expand its braces, within bounds.

    Args:
        pattern: The glob, without a leading `!`.
        most: How many patterns it may expand into.
        most_characters: How many characters these may have together.

    Raises:
        InvalidPatternError: It is empty, too long, has an unclosed brace or expands into too many.
        OutsideWorkspaceError: It has a part `..`.
    """
    if not pattern:
        raise _empty()
    if "\0" in pattern:
        raise InvalidPatternError(
            "The glob has a NUL character in it, which no file name has.", hint="Leave it out."
        )
    if len(pattern) > MAX_LENGTH:
        raise InvalidPatternError(
            f"The glob has {len(pattern)} characters; at most {MAX_LENGTH} are taken.",
            hint="Pass several shorter globs in several calls.",
        )
    parsed = _parse_braces(pattern)
    count, size = _measure(parsed)
    if count > most:
        raise InvalidPatternError(
            f"The braces of the glob expand into more than {MAX_EXPANDED} patterns.",
            hint="Use `*` in place of long alternatives.",
            details={"pattern": pattern[:200]},
        )
    if size > most_characters:
        raise InvalidPatternError(
            f"With its braces expanded the glob has more than {MAX_CHARACTERS} characters.",
            hint="Use `*` in place of long alternatives.",
            details={"pattern": pattern[:200]},
        )
    expanded = _generate(parsed)
    for each in expanded:
        if ".." in each.split("/"):
            raise OutsideWorkspaceError(
                f"The glob {literal(each)} has a part '..', which leads out of the search directory.",
                hint=Message(
                    "Put the directory to search in ",
                    ParameterName("path", quoted=True),
                    " and the rest in the glob.",
                ),
            )
    return [each for each in expanded if each] or expanded[:1]


def _decider(
    globs: list[_Glob], *, anchored: bool = False, hidden: bool = True, directories: bool = False
) -> Callable[[str], bool | None]:
    """Return what the last glob that matches a path says: False if it is negated, None where none matches."""
    runs: list[tuple[bool, Matcher]] = []
    for negated, run in groupby(reversed(globs), key=lambda glob: glob.negated):
        texts = [glob.text for glob in run if directories or not glob.directory_only]
        if texts:
            runs.append((not negated, _any_of(texts, anchored=anchored, hidden=hidden or negated)))

    def decide(path: str) -> bool | None:
        for verdict, matches in runs:
            if matches(path):
                return verdict
        return None

    return decide


def _pruning(globs: list[_Glob], *, anchored: bool) -> Matcher:
    decide = _decider(globs, anchored=anchored, directories=True)
    return lambda path: decide(path) is False


def _lies_in(pruned: Matcher) -> Matcher:
    """Return a test whether a directory above a path is pruned."""
    known = ("", False)  # the directory asked about last; paths come directory by directory

    def lies_in(path: str) -> bool:
        nonlocal known
        directory = path[: max(path.rfind("/"), 0)]
        if directory != known[0]:
            parts = directory.split("/")
            known = directory, any(pruned("/".join(parts[:count])) for count in range(1, len(parts) + 1))
            return known[1]
        return known[1]

    return lies_in


def _leading(patterns: list[str], *, anchored: bool) -> Matcher | None:
    """Return a test whether a match of some globs may lie below a directory; None: below any."""
    regexes: dict[str, None] = {}
    for pattern in patterns:
        if not anchored and "/" not in pattern:
            return None
        tokens = _tokens(pattern)
        ends = [at for at, token in enumerate(tokens) if token in (wildcard.DEEP_DIR, wildcard.DEEP)]
        heads = _split_parts(tokens[: ends[0]] if ends else tokens)[:-1]
        if ends and not heads:
            return None
        tail = "(?:/.*)?" if ends or len(heads) > _MOST_LEVELS else ""
        for head in reversed(heads[:_MOST_LEVELS]):
            tail = f"(?:/{wildcard.to_regex(head)}{tail})?"
        regexes[tail[len("(?:/") : -len(")?")] if heads else "(?!)"] = None
    return _fullmatch(_compile(regexes)) if regexes else None


def _tokens(pattern: str) -> list[str]:
    while pattern.startswith("./"):
        pattern = pattern[2:].lstrip("/")
    pattern = pattern.lstrip("/")
    if pattern.endswith("/") or not pattern:
        pattern += "**"
    try:
        tokens = wildcard.tokenize(pattern)
    except wildcard.MalformedPatternError as error:
        raise InvalidPatternError(
            f"The glob {literal(pattern)} is malformed: {error}.",
            hint="Put a backslash before a character that is meant as it is, for example '\\['.",
            details={"pattern": pattern},
        ) from None
    if tokens.count(wildcard.DEEP_DIR) > MAX_DEEP:
        raise InvalidPatternError(
            f"The glob has more than {MAX_DEEP} parts '**'.", hint="One or two '**' nearly always do."
        )
    return tokens


def _split_parts(tokens: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token in (wildcard.SLASH, wildcard.DEEP_DIR, wildcard.DEEP):
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _compile(regexes: Iterable[str]) -> re.Pattern[str]:
    return wildcard.compile_regex("|".join(f"(?:{regex})" for regex in regexes))


def _fullmatch(expression: re.Pattern[str]) -> Matcher:
    fullmatch = expression.fullmatch
    return lambda text: fullmatch(text) is not None


_PLAIN_NAME = re.compile(r"[^*?\[\]\\/]+")
_PLAIN_EXTENSION = re.compile(r"\*\.([^*?\[\]\\/.]+)")


def _any_of(patterns: list[str], *, anchored: bool, hidden: bool) -> Matcher:
    """Return the test whether any of the expanded patterns matches a path."""
    names: set[str] = set()
    extensions: set[str] = set()
    rest: dict[str, None] = {}
    everything: dict[str, None] = {}
    for pattern in patterns:
        tokens = _tokens(pattern)
        by_name = not anchored and "/" not in pattern
        if by_name and tokens != [wildcard.DEEP]:
            tokens = [wildcard.DEEP_DIR, *tokens]
        regex = wildcard.to_regex(tokens, hidden=hidden)
        everything[regex] = None
        if by_name and _PLAIN_NAME.fullmatch(pattern):
            names.add(pattern)
        elif by_name and (found := _PLAIN_EXTENSION.fullmatch(pattern)):
            extensions.add(found[1])
        else:
            rest[regex] = None
    slow = None if hidden else _compile(everything).fullmatch
    others = _compile(rest).fullmatch if rest else None

    def matches(path: str) -> bool:
        if slow is not None and (path[:1] == "." or "/." in path):
            return slow(path) is not None
        name = path[path.rfind("/") + 1 :]
        if name in names:
            return True
        dot = name.rfind(".")
        if dot >= 0 and name[dot + 1 :] in extensions:
            return True
        return others is not None and others(path) is not None

    return matches


# A glob in pieces: texts, and for braces the list of their alternatives.
_Parsed = list["str | list[_Parsed]"]


def _parse_braces(pattern: str) -> _Parsed:
    """Read braces as ripgrep does (one alternative is one too), and `{1..9}` and `{a..e}` as bash does."""
    open_braces: list[tuple[int, list[_Parsed]]] = []  # where each begins, and its alternatives so far
    parsed: _Parsed = [""]
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "{":
            if len(open_braces) == MAX_NESTING:
                raise InvalidPatternError(
                    f"The braces of the glob are nested more than {MAX_NESTING} deep.",
                    hint="Write the alternatives side by side: {a,b,c}.",
                )
            open_braces.append((at, [parsed]))
            parsed = [""]
        elif char == "," and open_braces:
            open_braces[-1][1].append(parsed)
            parsed = [""]
        elif char == "}" and open_braces:
            begin, (outer, *alternatives) = open_braces.pop()
            alternatives.append(parsed)
            if len(alternatives) == 1:
                alternatives = _range(pattern[begin + 1 : at]) or alternatives
            parsed = outer
            if len(alternatives) == 1:
                parsed += alternatives[0]
            else:
                parsed.append(alternatives)
            parsed.append("")
        else:
            step = 2 if char == "\\" else 1
            parsed[-1] = f"{parsed[-1]}{pattern[at : at + step]}"
            at += step - 1
        at += 1
    if open_braces:
        raise InvalidPatternError(
            f"The '{{' at character {open_braces[0][0] + 1} of the glob is never closed.",
            hint="Close it, or put a backslash before a brace that is meant as it is: '\\{'.",
            details={"pattern": pattern},
        )
    return parsed


def _measure(parsed: _Parsed) -> tuple[int, int]:
    """Return into how many patterns a glob expands, and how many characters these have together."""
    count, size = 1, 0
    for piece in parsed:
        measured = [(1, len(piece))] if isinstance(piece, str) else [_measure(each) for each in piece]
        choices, characters = (sum(each[index] for each in measured) for index in (0, 1))
        count, size = count * choices, size * choices + characters * count
    return count, size


def _generate(parsed: _Parsed) -> list[str]:
    texts = [""]
    for piece in parsed:
        ends = [piece] if isinstance(piece, str) else [end for each in piece for end in _generate(each)]
        texts = [text + end for text in texts for end in ends]
    return texts


def _range(body: str) -> list[_Parsed]:
    """Return what `{1..9}` or `{a..e}` stands for, or nothing; of a long range more than is taken."""
    if found := re.fullmatch(r"(-?\d{1,9})\.\.(-?\d{1,9})", body):
        first, last = int(found[1]), int(found[2])
        step = 1 if last >= first else -1
        return [[str(number)] for number in range(first, last + step, step)[: MAX_EXPANDED + 1]]
    if found := re.fullmatch(r"([a-z])\.\.([a-z])|([A-Z])\.\.([A-Z])", body):
        first, last = (ord(each) for each in found.groups() if each)
        step = 1 if last >= first else -1
        return [[chr(code)] for code in range(first, last + step, step)]
    return []
