"""Write YAML that every parser reads back exactly: blocks for text where possible, quotes elsewhere. Pure.

A mapping has one key a line, a list of mappings is written as `  - key: value`. A string is plain where no
parser, of YAML 1.1 or of 1.2, can take it for another type. A string of several lines is a literal block
(`|`) where that gives back each of its characters. Invisible characters, and those that could be taken for a
line end, are escaped in double quotes; such a text still has one line of YAML for each of its lines.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

from agentfs.visible import visible

# A plain string begins with a letter, so it is no number, date or tag; it has neither `:` nor `#`.
_PLAIN = re.compile(
    r"(?:\.?[A-Za-z]|_[A-Za-z]|[^\W\d_a-zA-Z])"
    r"(?:[\w ./\-+=()*<>@%,;!?$^&|~'\"\\\[\]{}`]*[\w./\-+()*>%!?$\]}'\"])?"
)
_WORDS = re.compile(r"y|yes|n|no|true|false|on|off|null|\.inf|\.nan", re.IGNORECASE)
_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = {"\0": "\\0", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\x1b": "\\e", '"': '\\"', "\\": "\\\\"}
_STEP = "  "


def to_yaml(value: Mapping[str, Any], *, one_line: Collection[str] = ()) -> str:
    """Return a mapping of strings, numbers, booleans, None, mappings and lists as a YAML document.

    Args:
        value: The mapping; its keys consist of letters and underscores.
        one_line: The keys whose strings are always written on one line.
    """
    return "".join(f"{line}\n" for line in _mapping(value, "", one_line))


def _mapping(value: Mapping[str, Any], indent: str, one_line: Collection[str]) -> Iterator[str]:
    for name, item in value.items():
        head = f"{indent}{name}:"
        if name in one_line and isinstance(item, str) and "\n" in item:
            yield f'{head} "{_escaped(item)}"'
        else:
            yield from _item(head, item, indent, one_line)


def _item(head: str, value: Any, indent: str, one_line: Collection[str]) -> Iterator[str]:
    """Yield the lines of a value after its key or `-`; `indent` is that of what contains it."""
    inner = indent + _STEP
    if isinstance(value, Mapping) and value:
        lines = _mapping(cast("Mapping[str, Any]", value), inner, one_line)
        if head.endswith("-"):  # the first key is on the line of the dash
            yield f"{head} {next(lines).removeprefix(inner)}"
        else:
            yield head
        yield from lines
    elif isinstance(value, (list, tuple)) and value:
        yield head
        for each in cast("Sequence[Any]", value):
            yield from _item(f"{inner}-", each, inner, one_line)
    elif isinstance(value, str):
        yield from _string(head, value, inner)
    else:
        yield f"{head} {_other(value)}"


def _other(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return "{}" if isinstance(value, Mapping) else "[]"


def _string(head: str, text: str, inner: str) -> Iterator[str]:
    printable = visible(text) == text and not _UNPRINTABLE.search(text)
    if printable and "\n" in text and text.strip(" \n\t"):
        yield from _block(head, text, inner)
    elif "\n" in text:
        yield from _quoted_lines(head, text, inner)
    elif printable and "\t" not in text:
        yield f"{head} {_one_line(text)}"
    else:
        yield f'{head} "{_escaped(text)}"'


def _one_line(text: str) -> str:
    if _PLAIN.fullmatch(text) and not _WORDS.fullmatch(text):
        return text
    if '"' in text or "\\" in text:
        return "'" + text.replace("'", "''") + "'"
    return f'"{text}"'


def _block(head: str, text: str, inner: str) -> Iterator[str]:
    # The indentation must be explicit where the text begins with a blank.
    indentation = str(len(_STEP)) if text[0] in " \t\n" else ""
    chomping = "-" if not text.endswith("\n") else "+" if text.endswith("\n\n") else ""
    yield f"{head} |{indentation}{chomping}"
    for line in text.removesuffix("\n").split("\n"):
        yield f"{inner}{line}" if line else ""


def _quoted_lines(head: str, text: str, inner: str) -> Iterator[str]:
    """Yield a text in double quotes, one line of YAML for each of its lines, with escaped line ends."""
    lines = text.split("\n")
    ended = not lines[-1]
    start = f'{head} "'
    for line in lines[: -2 if ended else -1]:
        yield f"{start}{_escaped_start(line, start)}\\n\\"
        start = inner
    last = lines[-2] if ended else lines[-1]
    yield f"{start}{_escaped_start(last, start)}" + ('\\n"' if ended else '"')


def _escaped_start(line: str, start: str) -> str:
    """Return a line escaped, also a blank at its start, which would be taken for indentation."""
    escaped = _escaped(line)
    return f"\\{escaped}" if escaped.startswith(" ") and not start.strip(" ") else escaped


def _escaped(text: str) -> str:
    if visible(text) == text and not _UNPRINTABLE.search(text):
        plain = text.replace("\\", "\\\\").replace('"', '\\"')
        return plain.replace("\t", "\\t").replace("\n", "\\n")
    return "".join(map(_character, text))


def _character(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if not _UNPRINTABLE.match(char) and visible(char) == char:
        return char
    code = ord(char)
    return f"\\x{code:02X}" if code < 256 else f"\\u{code:04X}" if code < 65536 else f"\\U{code:08X}"
