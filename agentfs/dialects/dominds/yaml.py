"""YAML that every parser reads back exactly: blocks for text where they can hold it, quotes elsewhere. Pure.

A mapping stands one key a line, a list of mappings as `  - key: value`. A string is plain where no parser, of
YAML 1.1 or of 1.2, can take it for anything else. One of several lines stands as a literal block (`|`) where
that gives back each of its characters. Whatever cannot be seen, or could be taken for a line end, is escaped
in double quotes; a text that needs them keeps its lines apart all the same.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

from agentfs.visible import visible

# A plain string begins with a letter, so that it is no number, date or tag; it has neither `:` nor `#`.
_PLAIN = re.compile(
    r"(?:\.?[A-Za-z]|_[A-Za-z]|[^\W\d_a-zA-Z])"
    r"(?:[\w ./\-+=()*<>@%,;!?$^&|~'\"\\\[\]{}`]*[\w./\-+()*>%!?$\]}'\"])?"
)
_WORDS = re.compile(r"y|yes|n|no|true|false|on|off|null|\.inf|\.nan", re.IGNORECASE)
_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_NAMED = {"\0": "\\0", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\x1b": "\\e", '"': '\\"', "\\": "\\\\"}
_STEP = "  "


def to_yaml(value: Mapping[str, Any], *, one_line: Collection[str] = ()) -> str:
    """Write a mapping as YAML.

    Args:
        value: Names of letters and underscores, to None, booleans, integers, strings, mappings of the same
            kind, and lists of these.
        one_line: The names whose strings stand on one line, whatever they hold.

    Returns:
        The document, with a line end at its end.
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
    """Write what stands behind `name:` or `-`; `indent` is that of the mapping or list that it is in."""
    inner = indent + _STEP
    if isinstance(value, Mapping) and value:
        lines = _mapping(cast("Mapping[str, Any]", value), inner, one_line)
        if head.endswith("-"):  # the first name stands behind the dash
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
    seen = visible(text) == text and not _UNPRINTABLE.search(text)
    if seen and "\n" in text and text.strip(" \n\t"):
        yield from _block(head, text, inner)
    elif "\n" in text:
        yield from _quoted_lines(head, text, inner)
    elif seen and "\t" not in text:
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
    # The indentation has to be named where the text begins with some of its own.
    named = str(len(_STEP)) if text[0] in " \t\n" else ""
    kept = "-" if not text.endswith("\n") else "+" if text.endswith("\n\n") else ""
    yield f"{head} |{named}{kept}"
    for line in text.removesuffix("\n").split("\n"):
        yield f"{inner}{line}" if line else ""


def _quoted_lines(head: str, text: str, inner: str) -> Iterator[str]:
    """Write a text in double quotes, each of its lines on one: a line end that is escaped is none."""
    lines = text.split("\n")
    ended = not lines[-1]
    start = f'{head} "'
    for line in lines[: -2 if ended else -1]:
        yield f"{start}{_opened(line, start)}\\n\\"
        start = inner
    last = lines[-2] if ended else lines[-1]
    yield f"{start}{_opened(last, start)}" + ('\\n"' if ended else '"')


def _opened(line: str, start: str) -> str:
    """Escape a line; a blank at its start would be taken for indentation."""
    escaped = _escaped(line)
    return f"\\{escaped}" if escaped.startswith(" ") and not start.strip(" ") else escaped


def _escaped(text: str) -> str:
    if visible(text) == text and not _UNPRINTABLE.search(text):
        plain = text.replace("\\", "\\\\").replace('"', '\\"')
        return plain.replace("\t", "\\t").replace("\n", "\\n")
    return "".join(map(_character, text))


def _character(char: str) -> str:
    if char in _NAMED:
        return _NAMED[char]
    if not _UNPRINTABLE.match(char) and visible(char) == char:
        return char
    code = ord(char)
    return f"\\x{code:02X}" if code < 256 else f"\\u{code:04X}" if code < 65536 else f"\\U{code:08X}"
