"""YAML of a mapping that every parser, of YAML 1.1 or 1.2, reads back exactly. Pure.

A string is plain only if no parser can take it for another type. One of several lines is a literal block if
that gives back each character. Invisible characters, and those that look like a line end, are escaped in
double quotes; the text still has one line of YAML for each of its lines.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from agentfs.dialects import toolkit as kit

_ONE_LINE_FIELDS = ("path", "name", "target", "pattern", "literal")
# A plain string begins with a letter, so it is not a number, date or tag. It contains neither `:` nor `#`.
_PLAIN = re.compile(r"\.?[^\W\d_]([\w ./\-+=()*<>@%,;!?$^&|~'\"\\\[\]{}`]*[\w./\-+()*>%!?$\]}'\"])?")
_WORDS = re.compile(r"y|yes|n|no|true|false|on|off|null|\.inf|\.nan", re.IGNORECASE)
_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
# A line end is followed by an escaped one, which no parser reads.
_ESCAPES = {"\t": "\\t", "\n": "\\n\\\n", "\r": "\\r", "\x1b": "\\e", '"': '\\"', "\\": "\\\\"}


def to_yaml(value: Mapping[str, Any]) -> str:
    """Return a mapping as a YAML document."""
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Any) -> Iterator[str]:
    """Yield the lines of a value; those of a mapping or list begin with its keys or dashes."""
    if isinstance(value, str):
        yield from _string(value)
    elif isinstance(value, (Mapping, list, tuple)) and value:
        is_mapping = isinstance(value, Mapping)
        items = (
            cast("Mapping[str, Any]", value).items()
            if is_mapping
            else enumerate(cast("Sequence[Any]", value))
        )
        for name, item in items:
            first, *others = _lines(item)
            if name in _ONE_LINE_FIELDS and isinstance(item, str) and others:
                first, others = f'"{_escaped_text(item)}"'.replace("\\\n", ""), []
            if is_mapping and item and isinstance(item, (Mapping, list, tuple)):
                first, others = "", [first, *others]
            yield f"{name}: {first}".rstrip() if is_mapping else f"- {first}"
            yield from (f"  {line}" if line else "" for line in others)
    else:
        yield json.dumps(value)


def _string(text: str) -> Sequence[str]:
    printable = _is_printable(text)
    if printable and "\n" in text and text.strip(" \n\t"):
        # A text that begins with a blank needs an explicit indentation.
        indentation = "2" if text[0] in " \t\n" else ""
        chomping = "-" if not text.endswith("\n") else "+" if text.endswith("\n\n") else ""
        return [f"|{indentation}{chomping}", *text.removesuffix("\n").split("\n")]
    if printable and _PLAIN.fullmatch(text) and not _WORDS.fullmatch(text):
        return [text]
    if printable and not {"\n", "\t"} & {*text} and ('"' in text or "\\" in text):
        return ["'" + text.replace("'", "''") + "'"]
    # An unescaped blank at the start of a line would be indentation.
    return f'"{_escaped_text(text)}"'.replace("\n ", "\n\\ ").split("\n")


def _escaped_text(text: str) -> str:
    return "".join(map(_escaped, text))


def _escaped(char: str) -> str:
    if char in _ESCAPES or _is_printable(char):
        return _ESCAPES.get(char, char)
    code = ord(char)
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def _is_printable(text: str) -> bool:
    return kit.visible(text) == text and not _UNPRINTABLE.search(text)
