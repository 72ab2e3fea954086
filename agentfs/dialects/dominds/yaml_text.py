"""YAML of a mapping that every parser, of YAML 1.1 or 1.2, reads back exactly. Pure.

A string is plain only if no parser can take it for another type. One of several lines is a literal block if
that gives back each character. Invisible characters, and those that look like a line end, are escaped in
double quotes; the text still has one line of YAML for each of its lines.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from agentfs.dialects.toolkit import visible

_ONE_LINE_FIELDS = ("path", "name", "target", "pattern", "literal")
# A plain string begins with a letter, so it is not a number, date or tag. It contains neither `:` nor `#`.
_PLAIN = re.compile(
    r"(?:\.?[A-Za-z]|_[A-Za-z]|[^\W\d_a-zA-Z])"
    r"(?:[\w ./\-+=()*<>@%,;!?$^&|~'\"\\\[\]{}`]*[\w./\-+()*>%!?$\]}'\"])?"
)
_WORDS = re.compile(r"y|yes|n|no|true|false|on|off|null|\.inf|\.nan", re.IGNORECASE)
_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = {"\0": "\\0", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\x1b": "\\e", '"': '\\"', "\\": "\\\\"}
_STEP = "  "


def to_yaml(value: Mapping[str, Any]) -> str:
    """Return a mapping as a YAML document."""
    return "".join(f"{line}\n" for line in _mapping(value, ""))


def _mapping(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    for name, item in value.items():
        head = f"{indent}{name}:"
        if name in _ONE_LINE_FIELDS and isinstance(item, str) and "\n" in item:
            yield f'{head} "{_escaped(item)}"'
        else:
            yield from _item(head, item, indent)


def _item(head: str, value: Any, indent: str) -> Iterator[str]:
    """Yield the lines of a value after its key or `-`. `indent` is that of the line with the key."""
    inner = indent + _STEP
    if isinstance(value, Mapping) and value:
        lines = _mapping(cast("Mapping[str, Any]", value), inner)
        if head.endswith("-"):
            yield f"{head} {next(lines).removeprefix(inner)}"
        else:
            yield head
        yield from lines
    elif isinstance(value, (list, tuple)) and value:
        yield head
        for each in cast("Sequence[Any]", value):
            yield from _item(f"{inner}-", each, inner)
    elif isinstance(value, str):
        yield from _string(head, value, inner)
    else:
        yield f"{head} {json.dumps(value)}"


def _string(head: str, text: str, inner: str) -> Iterator[str]:
    printable = _is_printable(text)
    if printable and "\n" in text and text.strip(" \n\t"):
        yield from _block(head, text, inner)
    elif "\n" in text:
        yield _quoted_lines(head, text, inner)
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
    # A text that begins with a blank needs an explicit indentation.
    indentation = str(len(_STEP)) if text[0] in " \t\n" else ""
    chomping = "-" if not text.endswith("\n") else "+" if text.endswith("\n\n") else ""
    yield f"{head} |{indentation}{chomping}"
    for line in text.removesuffix("\n").split("\n"):
        yield f"{inner}{line}" if line else ""


def _quoted_lines(head: str, text: str, inner: str) -> str:
    """Quote a text of several lines, with one line of YAML for each."""
    first, *others = map(_escaped, re.findall(r"[^\n]*\n|[^\n]+", text))
    # An unescaped blank at the start of a line would be indentation.
    others = [f"\\{line}" if line.startswith(" ") else line for line in others]
    return f'{head} "' + f"\\\n{inner}".join([first, *others]) + '"'


def _is_printable(text: str) -> bool:
    return visible(text) == text and not _UNPRINTABLE.search(text)


def _escaped(text: str) -> str:
    if _is_printable(text):
        plain = text.replace("\\", "\\\\").replace('"', '\\"')
        return plain.replace("\t", "\\t").replace("\n", "\\n")
    return "".join(map(_escaped_character, text))


def _escaped_character(char: str) -> str:
    if char in _ESCAPES or _is_printable(char):
        return _ESCAPES.get(char, char)
    code = ord(char)
    return f"\\x{code:02X}" if code < 256 else f"\\u{code:04X}" if code < 65536 else f"\\U{code:08X}"
