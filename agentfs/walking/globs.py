"""Globs: what a pattern may be, and a fast test of relative paths."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from agentfs.errors import InvalidPatternError, OutsideWorkspaceError
from agentfs.walking import wildcards

MAX_LENGTH = 4096
MAX_EXPANDED = 1000
MAX_NESTING = 20
MAX_DEEP = 16

Matcher = Callable[[str], bool]


def compile_globs(patterns: Sequence[str], *, anchored: bool = False, hidden: bool = True) -> Matcher:
    r"""Compile globs to one test of a path relative to the search directory.

    `*`, `?` and `[…]` stay within one part of the path, `**` does not, `{a,b}` and `{1..9}` are expanded, `\`
    takes the next character as it is. A pattern without `/` is tested on the name at any depth; a leading `/`
    or `./` binds it to the search directory; one that ends in `/` means all that lies below. A pattern that
    begins with `!` takes away what it matches; if all begin so, everything else matches.

    Args:
        patterns: At least one glob.
        anchored: Bind every pattern to the search directory.
        hidden: Whether a wildcard may stand for the dot that a name begins with.

    Returns:
        The test; paths have `/` and no leading `./`.

    Raises:
        InvalidPatternError: A pattern is malformed, or would expand into too many (invalid_pattern).
        OutsideWorkspaceError: A pattern has a part `..` (outside_workspace).
    """
    wanted = expand([each for each in patterns if not each.startswith("!")])
    unwanted = expand([each[1:] for each in patterns if each.startswith("!")])
    if not wanted and not unwanted:
        raise InvalidPatternError("There is no glob in the list.", hint='Pass one, for example "**/*.py".')
    include = _any_of(wanted, anchored=anchored, hidden=hidden) if wanted else None
    if not unwanted:
        return include or (lambda _path: False)
    exclude = _any_of(unwanted, anchored=anchored, hidden=True)
    if include is None:
        return lambda path: not exclude(path)
    return lambda path: include(path) and not exclude(path)


def compile_descent(patterns: Iterable[str], *, anchored: bool = False) -> Matcher | None:
    """Return a test whether a match may lie below a directory, or None when it may lie below any.

    Args:
        patterns: Globs, as for `compile_globs`; those that begin with `!` open nothing.
        anchored: As for `compile_globs`.

    Raises:
        InvalidPatternError: As `compile_globs`.
        OutsideWorkspaceError: As `compile_globs`.
    """
    regexes: dict[str, None] = {}
    wanted = [each for each in patterns if not each.startswith("!")]
    for pattern in expand(wanted):
        if not anchored and "/" not in pattern:
            return None
        tokens = _tokens(pattern)
        ends = [at for at, token in enumerate(tokens) if token in (wildcards.DEEP_DIR, wildcards.DEEP)]
        heads = _split_parts(tokens[: ends[0]] if ends else tokens)[:-1]
        if ends and not heads:
            return None
        tail = "(?:/.*)?" if ends else ""
        for head in reversed(heads):
            tail = f"(?:/{wildcards.to_regex(head)}{tail})?"
        regexes[tail[len("(?:/") : -len(")?")] if heads else "(?!)"] = None
    return _fullmatch(_compile(regexes)) if regexes else None


def compile_exclude(patterns: Sequence[str]) -> Callable[[str, bool], bool]:
    """Return a test of what is excluded, given its path and whether it is a directory.

    What lies in an excluded directory is excluded with it, because it is not entered.

    Args:
        patterns: At least one glob; one that ends in `/` means a directory.

    Raises:
        InvalidPatternError: As `compile_globs`.
        OutsideWorkspaceError: As `compile_globs`.
    """
    plain = [each for each in patterns if not each.endswith("/")]
    ended = [each.rstrip("/") for each in patterns if each.endswith("/")]
    matches = compile_globs(plain) if plain or not ended else None
    matches_directory = compile_globs(ended) if ended else None

    def is_excluded(path: str, is_dir: bool) -> bool:
        if matches is not None and matches(path):
            return True
        return is_dir and matches_directory is not None and matches_directory(path)

    return is_excluded


def hidden_names(patterns: Iterable[str]) -> Matcher | None:
    """Return a test for the hidden names that the patterns spell out, or None when they spell none.

    Args:
        patterns: Globs; a part that begins with a dot, as in `.github/*.yml`, opens names that it matches.

    Raises:
        InvalidPatternError: As `compile_globs`.
        OutsideWorkspaceError: As `compile_globs`.
    """
    regexes = [
        wildcards.to_regex(part)
        for pattern in expand([each for each in patterns if not each.startswith("!")])
        for part in _split_parts(_tokens(pattern))
        if part and part[0] == r"\."
    ]
    if not regexes:
        return None
    return _fullmatch(_compile(dict.fromkeys(regexes)))


def expand(patterns: Iterable[str]) -> list[str]:
    """Check globs and expand their braces, within bounds.

    Raises:
        InvalidPatternError: One is empty, too long, has an unclosed brace or expands into too many.
        OutsideWorkspaceError: One has a part `..`.
    """
    expanded: list[str] = []
    for pattern in patterns:
        if not pattern:
            raise InvalidPatternError("The glob is empty.", hint='Pass a glob such as "**/*.py".')
        if "\0" in pattern:
            raise InvalidPatternError(
                "The glob has a NUL character in it, which no file name has.", hint="Leave it out."
            )
        if len(pattern) > MAX_LENGTH:
            raise InvalidPatternError(
                f"The glob has {len(pattern)} characters; at most {MAX_LENGTH} are taken.",
                hint="Pass several shorter globs in several calls.",
            )
        expanded += _braces(pattern, MAX_EXPANDED - len(expanded))
    for pattern in expanded:
        if ".." in pattern.split("/"):
            raise OutsideWorkspaceError(
                f"The glob {pattern!r} has a part '..', which leads out of the search directory.",
                hint="Put the directory to search in `path` and the rest in the glob.",
            )
    return expanded


def _tokens(pattern: str) -> list[str]:
    while pattern.startswith("./"):
        pattern = pattern[2:].lstrip("/")
    pattern = pattern.lstrip("/")
    if pattern.endswith("/") or not pattern:
        pattern += "**"
    try:
        tokens = wildcards.tokenize(pattern)
    except wildcards.MalformedPatternError as error:
        raise InvalidPatternError(
            f"The glob {pattern!r} is malformed: {error}.",
            hint="Put a backslash before a character that is meant as it is, for example '\\['.",
            details={"pattern": pattern},
        ) from None
    if tokens.count(wildcards.DEEP_DIR) > MAX_DEEP:
        raise InvalidPatternError(
            f"The glob has more than {MAX_DEEP} parts '**'.", hint="One or two '**' nearly always do."
        )
    return tokens


def _split_parts(tokens: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token in (wildcards.SLASH, wildcards.DEEP_DIR, wildcards.DEEP):
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _compile(regexes: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{regex})" for regex in regexes), re.DOTALL)


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
        if by_name and tokens != [wildcards.DEEP]:
            tokens = [wildcards.DEEP_DIR, *tokens]
        regex = wildcards.to_regex(tokens, hidden=hidden)
        everything[regex] = None
        if by_name and _PLAIN_NAME.fullmatch(pattern):
            names.add(pattern)
        elif by_name and (found := _PLAIN_EXTENSION.fullmatch(pattern)):
            extensions.add(found[1])
        else:
            rest[regex] = None
    slow = _compile(everything).fullmatch
    others = _compile(rest).fullmatch if rest else None

    def matches(path: str) -> bool:
        if not hidden and (path[:1] == "." or "/." in path):
            return slow(path) is not None
        name = path[path.rfind("/") + 1 :]
        if name in names:
            return True
        dot = name.rfind(".")
        if dot >= 0 and name[dot + 1 :] in extensions:
            return True
        return others is not None and others(path) is not None

    return matches


def _braces(pattern: str, room: int) -> list[str]:
    """Expand the braces as bash does: one without a comma or a range is meant as it is."""
    if "{" not in pattern:
        _check_room(1, room, pattern)
        return [pattern]
    done: list[str] = []
    pending = [(pattern, 0)]
    steps = 0
    while pending:
        current, start = pending.pop()
        steps += 1
        _check_room(steps // 4, room, pattern)
        opening = _find_unescaped(current, "{", start)
        if opening < 0:
            done.append(current)
            _check_room(len(done), room, pattern)
            continue
        closing, commas = _closing(current, opening)
        body = current[opening + 1 : closing]
        if commas:
            cuts = [opening, *commas, closing]
            choices = [current[a + 1 : b] for a, b in pairwise(cuts)]
        else:
            choices = _range(body, room)
        if not choices:
            pending.append((current, opening + 1))
            continue
        _check_room(len(done) + len(pending) + len(choices), room, pattern)
        head, tail = current[:opening], current[closing + 1 :]
        pending += [(head + choice + tail, opening) for choice in reversed(choices)]
    return [each for each in done if each] or done[:1]


def _check_room(count: int, room: int, pattern: str) -> None:
    if count > room:
        raise InvalidPatternError(
            f"The braces of the glob expand into more than {MAX_EXPANDED} patterns.",
            hint="Use `*` in place of long alternatives.",
            details={"pattern": pattern[:200]},
        )


def _find_unescaped(text: str, char: str, start: int) -> int:
    at = start
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == char:
            return at
        at += 1
    return -1


def _closing(pattern: str, opening: int) -> tuple[int, list[int]]:
    """Return where the brace at `opening` closes, and its own commas."""
    depth = 0
    commas: list[int] = []
    at = opening
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif char == "{":
            depth += 1
            if depth > MAX_NESTING:
                raise InvalidPatternError(
                    f"The braces of the glob are nested more than {MAX_NESTING} deep.",
                    hint="Write the alternatives side by side: {a,b,c}.",
                )
        elif char == "}":
            depth -= 1
            if depth == 0:
                return at, commas
        elif char == "," and depth == 1:
            commas.append(at)
        at += 1
    raise InvalidPatternError(
        f"The '{{' at character {opening + 1} of the glob is never closed.",
        hint="Close it, or put a backslash before a brace that is meant as it is: '\\{'.",
        details={"pattern": pattern},
    )


def _range(body: str, room: int) -> list[str]:
    """Return what `{1..9}` or `{a..e}` stands for, or nothing."""
    if found := re.fullmatch(r"(-?\d{1,9})\.\.(-?\d{1,9})", body):
        first, last = int(found[1]), int(found[2])
        if abs(last - first) >= room:
            _check_room(abs(last - first) + 1, room, body)
        step = 1 if last >= first else -1
        return [str(number) for number in range(first, last + step, step)]
    if found := re.fullmatch(r"([a-z])\.\.([a-z])|([A-Z])\.\.([A-Z])", body):
        first, last = (ord(each) for each in found.groups() if each)
        step = 1 if last >= first else -1
        return [chr(code) for code in range(first, last + step, step)]
    return []
