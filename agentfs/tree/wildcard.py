"""The wildcard language that ignore rules and globs share, compiled to regexes that cannot explode.

`*`, `?` and `[…]` match within one part of a path; `**` that fills a whole part matches any number of parts.
What lies between two wildcards has a fixed length, so its earliest place is always the best one; it is put in
an atomic group, and the work stays within (length of the path)^2 however many wildcards there are.
"""

import re
from collections.abc import Callable
from importlib import import_module

_LARGEST_CACHED = 2000

STAR = "*"
SLASH = "/"
DEEP_DIR = "**/"
DEEP = "**"

# What git's `[:name:]` classes hold, in ASCII as git has them.
_POSIX = {
    "alnum": (("0", "9"), ("A", "Z"), ("a", "z")),
    "alpha": (("A", "Z"), ("a", "z")),
    "blank": ((" ", " "), ("\t", "\t")),
    "cntrl": (("\x00", "\x1f"), ("\x7f", "\x7f")),
    "digit": (("0", "9"),),
    "graph": (("!", "~"),),
    "lower": (("a", "z"),),
    "print": ((" ", "~"),),
    "punct": (("!", "/"), (":", "@"), ("[", "`"), ("{", "~")),
    "space": (("\t", "\r"), (" ", " ")),
    "upper": (("A", "Z"),),
    "xdigit": (("0", "9"), ("A", "F"), ("a", "f")),
}


class MalformedPatternError(ValueError):
    """The pattern can match nothing: a class without end, an unknown class, a backslash at the end."""


def compile_regex(regex: str) -> re.Pattern[str]:
    """Compile a regex of `to_regex`, or several joined.

    The cache of `re` keeps the last 512 patterns for the life of the process, whatever their size, so a large
    one goes past it.

    Args:
        regex: What must match a whole path or name.
    """
    if len(regex) <= _LARGEST_CACHED:
        return re.compile(regex, re.DOTALL)
    uncached: Callable[[str, int], re.Pattern[str]] = import_module("re._compiler").compile
    return uncached(regex, re.DOTALL)


def tokenize(pattern: str, start: int = 0) -> list[str]:
    """Split a pattern into tokens.

    Args:
        pattern: The pattern; braces have no meaning here.
        start: An index that counts as the start of a part as well, for git's own idea of one.

    Returns:
        STAR, SLASH, DEEP_DIR, DEEP, and else the regex of exactly one character that is no slash.

    Raises:
        MalformedPatternError: The pattern is malformed.
    """
    tokens: list[str] = []
    at, end = 0, len(pattern)
    while at < end:
        char = pattern[at]
        if char == "*":
            begin = at
            while at < end and pattern[at] == "*":
                at += 1
            whole_part = begin in (0, start) or pattern[begin - 1] == "/"
            if at - begin == 1 or not whole_part:
                tokens.append(STAR)
            elif at == end:
                tokens.append(DEEP)
            elif pattern[at] == "/":
                tokens.append(DEEP_DIR)
                at += 1
            elif pattern.startswith("\\/", at):
                # git does not let this one stand for no part at all.
                tokens += [STAR, SLASH, DEEP_DIR]
                at += 2
            else:
                tokens.append(STAR)
        elif char == "[":
            token, at = _read_class(pattern, at)
            tokens.append(token)
        else:
            if char == "\\":
                at += 1
                if at == end:
                    raise MalformedPatternError("it ends in a backslash")
            tokens.append("[^/]" if char == "?" else SLASH if pattern[at] == "/" else re.escape(pattern[at]))
            at += 1
    return tokens


def _read_class(pattern: str, at: int) -> tuple[str, int]:
    """Return the regex of the class that opens at `at`, and the index behind it; read as git reads it."""
    opening, end = at, len(pattern)
    at += 1
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    ranges: list[tuple[str, str]] = []
    previous = ""
    first = True
    while first or pattern[at : at + 1] != "]":
        first = False
        if at >= end:
            raise MalformedPatternError(f"the '[' at character {opening + 1} is never closed")
        char = pattern[at]
        if char == "\\":
            at += 1
            char = pattern[at : at + 1]
            ranges.append((char, char))
        elif char == "-" and previous and pattern[at + 1 : at + 2] not in ("", "]"):
            at += 1
            at += pattern[at] == "\\"
            ranges.append((previous, pattern[at : at + 1]))
            char = ""
        elif char == "[" and pattern[at + 1 : at + 2] == ":":
            close = pattern.find("]", at + 2)
            if close < 0:
                raise MalformedPatternError(f"the '[' at character {opening + 1} is never closed")
            if close - 1 < at + 2 or pattern[close - 1] != ":":
                ranges.append((char, char))
            else:
                name = pattern[at + 2 : close - 1]
                if name not in _POSIX:
                    raise MalformedPatternError(f"there is no class [:{name}:]")
                ranges += _POSIX[name]
                at, char = close, ""
        else:
            ranges.append((char, char))
        previous = char
        at += 1
    spans = [(low, high) for low, high in ranges if low and high and low <= high]
    body = "".join(f"\\U{ord(low):08x}-\\U{ord(high):08x}" for low, high in spans)
    if negated:
        return f"[^/{body}]", at + 1
    if not body:
        return "(?!)", at + 1
    guard = "(?!/)" if any(low <= "/" <= high for low, high in spans) else ""
    return f"{guard}[{body}]", at + 1


def to_regex(tokens: list[str], *, hidden: bool = True) -> str:
    """Return the regex that must match a whole path; compile it with DOTALL.

    Args:
        tokens: What `tokenize` returned.
        hidden: Whether a wildcard may stand for the dot that a name begins with.
    """
    guard = "" if hidden else r"(?!\.)"
    groups: list[list[str]] = [[]]
    for token in tokens:
        if token == DEEP_DIR:
            # Two in a row say no more than one.
            if len(groups) == 1 or groups[-1]:
                groups.append([])
        else:
            groups[-1].append(token)
    parts = [_group(groups[0], guard)]
    for index, group in enumerate(groups[1:], 1):
        body = f"(?:{guard}[^/]*/)*?{_group(group, guard)}"
        parts.append(body if index == len(groups) - 1 else f"(?>{body})")
    return "".join(parts)


def _group(tokens: list[str], guard: str) -> str:
    """Return the regex of what stands between two `**/`."""
    out: list[str] = []
    part: list[str] = []
    for token in tokens:
        if token == SLASH:
            out += [_part(part, guard), "/"]
            part = []
        elif token == DEEP:
            # The last token, and alone in its part but after git's literal prefix.
            out.append(_part(part, guard) + (f"{guard}[^/]*(?:/{guard}[^/]*)*" if guard else ".*"))
            part = []
        else:
            part.append(token)
    out.append(_part(part, guard))
    return "".join(out)


def _part(tokens: list[str], guard: str) -> str:
    """Return the regex of one part of the path, which has only STAR and single characters."""
    if not tokens:
        return ""
    chunks: list[str] = [""]
    for token in tokens:
        if token == STAR:
            chunks.append("")
        else:
            chunks[-1] += token
    wild = not chunks[0] or tokens[0].startswith(("[", "(?"))
    middle = "".join(f"(?>[^/]*?{chunk})" for chunk in chunks[1:-1] if chunk)
    last = f"[^/]*{chunks[-1]}" if len(chunks) > 1 else ""
    return (guard if wild else "") + chunks[0] + middle + last
