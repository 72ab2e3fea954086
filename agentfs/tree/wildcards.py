"""The wildcards of ignore rules and globs: a parser, and a translation to regexes.

`*`, `?` and `[…]` match within one part of a path; a part `**` matches any number of parts. wcmatch
translates the classes. An atomic group around each `*` and `**`, except the last, bounds the work of a match.
"""

import re
from collections.abc import Callable, Sequence
from importlib import import_module

from agentfs.base.lazy import glob

# Literal texts and wildcards in turn, such as ["a", "*", ".py"]: odd items are `*`, `?`, `**` or a class.
PatternPart = list[str]

ANY_PARTS: PatternPart = ["", "**", ""]
_LARGEST_CACHED = 2000
_POSIX = {
    *("alnum", "alpha", "blank", "cntrl", "digit", "graph"),
    *("lower", "print", "punct", "space", "upper", "xdigit"),
}
_TOKEN = re.compile(r"(?P<literal>[^*?\[\\/]+)|(?P<stars>\*+)|\\(?P<escaped>.)|.", re.DOTALL)
_CLASS_ITEM = re.compile(
    r"(?:\\(?P<escaped>.)|(?P<low>[^\\]))(?:-(?:\\(?P<escaped_high>.)|(?P<high>[^\]\\])))?", re.DOTALL
)


class MalformedPatternError(ValueError):
    """The pattern can match nothing: an unclosed or unknown class, or a backslash at the end."""


def parse(pattern: str) -> list[PatternPart]:
    """Split a pattern at its slashes; raises `MalformedPatternError`."""
    parts: list[PatternPart] = [[""]]
    at = 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None or token[0] == "\\":
            raise MalformedPatternError("it ends in a backslash")
        start, at = at, token.end()
        part = parts[-1]
        if token["stars"]:
            escaped_slash = pattern.startswith("\\/", at)
            if at - start == 1 or part != [""] or not (escaped_slash or pattern[at : at + 1] in ("", "/")):
                part += ["*", ""]
            elif escaped_slash:  # in git, `**\/` matches at least one part
                parts[-1:] = [["", "*", ""], ANY_PARTS]
            else:
                parts[-1] = ANY_PARTS
        elif token[0] in ("/", "\\/"):
            parts.append([""])
        elif token[0] == "[":
            wildcard, at = _parse_class(pattern, start)
            part += [wildcard, ""]
        elif token[0] == "?":
            part += ["?", ""]
        else:
            part[-1] += token["literal"] or token["escaped"]
    return parts


def _parse_class(pattern: str, opening: int) -> tuple[str, int]:
    """Return a class for wcmatch, without slashes and empty ranges, and the index after the class."""
    negated = pattern[opening + 1 : opening + 2] in ("!", "^")
    begin = at = opening + 1 + negated
    items: list[str] = []
    while at == begin or pattern[at : at + 1] != "]":
        close = pattern.find("]", at + 2) if pattern.startswith("[:", at) else -1
        if close > at + 2 and pattern[close - 1] == ":":
            name = pattern[at + 2 : close - 1]
            if name not in _POSIX:
                raise MalformedPatternError(f"there is no class [:{name}:]")
            items.append(" \t\n\r" if name == "space" else f"[:{name}:]")  # in git, no other is a space
            at = close + 1
            continue
        item = _CLASS_ITEM.match(pattern, at)
        if item is None:
            raise MalformedPatternError(f"the '[' at character {opening + 1} is never closed")
        at = item.end()
        low = item["escaped"] or item["low"]
        high = item["escaped_high"] or item["high"] or low
        high = max(low, high)  # in git, a reversed range matches its first character
        low, high = "0" if low == "/" else low, "." if high == "/" else high
        if low <= high:
            items.append(f"\\{low}-\\{high}")
    if not items and not negated:
        raise MalformedPatternError(f"the class at character {opening + 1} can match only '/'")
    return (f"[{'!' * negated}{''.join(items)}]" if items else "?"), at + 1


def is_literal(part: PatternPart) -> bool:
    """Return True if a part has no wildcard."""
    return len(part) == 1


def extension_of(part: PatternPart) -> str:
    """Return `ext` for `*.ext`, else "", also for `*.mod.c`: a file is looked up by its last extension."""
    suffix = part[2] if len(part) == 3 and part[:2] == ["", "*"] else ""
    return suffix[1:] if suffix.rfind(".") == 0 else ""


def required_text(part: PatternPart) -> str:
    r"""Return the longest text that every matching name contains; `\n` stands for its start and end."""
    texts = part[::2]
    texts[0] = f"\n{texts[0]}"
    texts[-1] += "\n"
    longest = max(texts, key=len)
    return longest if longest != "\n" else ""


def to_regex(parts: list[PatternPart], *, hidden: bool = True) -> str:
    """Return a regex for the full path; without `hidden`, no wildcard matches a leading dot."""
    dot = "" if hidden else r"(?!\.)"
    sections: list[str] = [""]  # the regexes between two `**`
    after_any = False
    for part in parts[:-1]:
        if part != ANY_PARTS:
            sections[-1] += f"{'' if part[0] else dot}{_translate(part)}/"
        elif not after_any:
            sections.append("")
        after_any = part == ANY_PARTS
    last = parts[-1]
    if last == ANY_PARTS:
        sections[-1] += f"{dot}[^/]*(?:/{dot}[^/]*)*" if dot else ".*"
    else:
        sections[-1] += ("" if last[0] else dot) + _translate(last)
    gap = f"(?:{dot}[^/]*/)*?"
    return _joined(sections, gap, gap)


def _translate(part: PatternPart) -> str:
    """Translate one part. A path that is matched has no trailing slash, and no part is empty, `.` or `..`."""
    sections: list[str] = [""]  # the regexes between two `*`
    for index, item in enumerate(part):
        if index % 2 == 0:
            sections[-1] += re.escape(item)
        elif item == "*":
            sections.append("")
        else:
            sections[-1] += "[^/]" if item == "?" else _class_regex(item)
    return _joined(sections, "[^/]*?", "[^/]*")  # a greedy last star finds the end of a name sooner


def _joined(sections: Sequence[str], gap: str, last_gap: str) -> str:
    """Join regexes with a regex for each gap. Atomic groups around all but the last bound the work."""
    first, *others = sections
    atomic = "".join(f"(?>{gap}{section})" for section in others[:-1])
    return first + atomic + "".join(f"{last_gap}{section}" for section in others[-1:])


def _class_regex(item: str) -> str:
    """Translate a class with wcmatch."""
    regex: str = glob.translate(f"x{item}", flags=glob.FORCEUNIX | glob.CASE)[0][0]
    return regex.removeprefix("^(?s:x").removesuffix("[/]*?)$")


def compile_regex(regex: str) -> re.Pattern[str]:
    """Compile a regex of `to_regex`, or several joined; large ones bypass the cache of `re`."""
    if len(regex) <= _LARGEST_CACHED:
        return re.compile(regex, re.DOTALL)
    uncached: Callable[[str, int], re.Pattern[str]] = import_module("re._compiler").compile
    return uncached(regex, re.DOTALL)
