r"""Make invisible and reordering characters visible in every text for a model.

These characters count as hidden: C0 and C1 controls, DEL, bidirectional marks and overrides, line and
paragraph separators, annotation marks, lone surrogates, and Unicode's default ignorables (zero-width
characters, fillers, variation selectors, tag characters). A joiner or selector is not hidden in an emoji, or
between letters of scripts that are written with joiners.

Hidden characters are shown as `⟦U+202E⟧`, or between quotes as `\u202e`. Each purpose has one function:

* `visible`: content; tabs and line feeds stay. `unvisible` restores it.
* `one_line`: a name or a path, without tabs and line feeds.
* `escape_controls`: a text that may already contain `⟦U+202E⟧`, which stays.
* `quoted`: a name between quotes; `agentfs.fs.quote` is for a path.
* `literal`: a value as Python writes it.
* `to_json`: a value as JSON.

If content or a name contains a literal `⟦U+202E⟧`, its bracket is shown as `⟦U+27E6⟧`.
"""

import json
import re
from functools import cache
from typing import Any

_SUMMARY_CHARS = 120  # of one line about a call
_OPEN = "⟦"
_MOST_LITERAL = 200
_encode = json.JSONEncoder(ensure_ascii=False).encode
IGNORABLE = (  # Default_Ignorable_Code_Point of Unicode 16, except the joiners and selectors of emoji
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_HIDDEN_CLASS = f"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufff9-\ufffb\ud800-\udfff{IGNORABLE}"
_EMOJI = (  # Extended_Pictographic of Unicode 16, and all symbols from 2600 to 27BF
    "\xa9\xae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa"
    "\u24c2\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff\U0001fc00-\U0001fffd"
)
_JOINED = (  # blocks of scripts written with joiners: Arabic to Sinhala, Myanmar, Khmer, Mongolian …
    "\u0620-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff\u1820-\u18af\u1a20-\u1bff\ua840-\ua87f\ua8e0-\ua8ff"
    "\uaa60-\uaa7f\uabc0-\uabff\U00011000-\U00011fff"
)
JOINERS = "\u200c\u200d\ufe0e\ufe0f"
_KEPT_AFTER = (  # matches after a joiner or selector that is not hidden
    f"(?<=[{_EMOJI}][\ufe0e\ufe0f])"  # an emoji shown as text or as a picture
    "|(?<=[0-9#*]\ufe0f)(?=\u20e3)"  # a keycap
    f"|(?:(?<=[{_EMOJI}]\u200d)|(?<=[{_EMOJI}]\ufe0f\u200d))(?=[{_EMOJI}])"  # a sequence
    f"|(?<=[{_JOINED}][\u200c\u200d])(?=[{_JOINED}])"
)
_ESCAPED = re.compile(rf"{_OPEN}U\+([0-9A-F]{{4,6}})⟧")
_ASCII_CONTROLS = bytes((*range(9), *range(11, 32), 127))


@cache  # compiled on first use, because this takes as long as loading the rest of the package
def _hidden(*, name: bool, bracket: bool) -> re.Pattern[str]:
    """Return a pattern for hidden characters; optionally also for tab and line feed, and for a bracket."""
    # A pattern that begins with one class is searched many times faster than alternatives.
    return re.compile(
        f"[{_HIDDEN_CLASS}{JOINERS}{chr(9) + chr(10) if name else ''}{_OPEN if bracket else ''}]"
        f"(?:(?<![{JOINERS}{_OPEN}])|(?<=[{JOINERS}])(?!{_KEPT_AFTER})|(?<={_OPEN})(?=U\\+[0-9A-F]{{4,6}}⟧))"
    )


@cache
def _printable() -> re.Pattern[str]:
    """Return a pattern for the hidden characters that Python considers printable."""
    return re.compile(
        "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
    )


def visible(text: str) -> str:
    """Show hidden characters of content as `⟦U+202E⟧`; `unvisible` restores the content exactly."""
    if text.isascii():
        # Most text has no hidden characters. Deleting from bytes shows that ten times faster than a pattern.
        raw = text.encode("ascii")
        if len(raw.translate(None, _ASCII_CONTROLS)) == len(raw):
            return text
    elif (
        _OPEN not in text
        and text.replace("\n", "").replace("\t", "").isprintable()
        and not _printable().search(text)
    ):
        return text
    return _hidden(name=False, bracket=True).sub(_show, text)


def one_line(text: str) -> str:
    """Show hidden characters of a name or a path as `⟦U+202E⟧`, including tabs and line feeds."""
    return (
        text if _is_plain(text) and _OPEN not in text else _hidden(name=True, bracket=True).sub(_show, text)
    )


def quoted(text: str) -> str:
    r"""Show hidden characters of a name or a path as `\u202e`, for use between quotes."""
    return text if _is_plain(text) else _hidden(name=True, bracket=False).sub(_escape, text)


def literal(value: Any) -> str:
    """Return a value as Python writes it, shortened, on one line, with hidden characters visible."""
    many: Any = value
    start: Any = many[:_MOST_LITERAL] if isinstance(value, (str, bytes, list, tuple)) else value
    text = repr(start)
    is_cut = len(text) > _MOST_LITERAL + 2 or start != value
    return quoted(f"{text[:_MOST_LITERAL]}…" if is_cut else text)


def to_json(value: Any, **options: Any) -> str:
    """Return a value as JSON with hidden characters escaped; `options` are those of `json.dumps`."""
    # `json.dumps` makes an encoder for each call that passes an option.
    text = json.dumps(value, ensure_ascii=False, **options) if options else _encode(value)
    return text if _is_plain(text) else _hidden(name=False, bracket=False).sub(_escape, text)


def escape_controls(text: str) -> str:
    """Show hidden characters of a text as `⟦U+202E⟧`. A `⟦U+202E⟧` that it already contains stays."""
    return _hidden(name=False, bracket=False).sub(_show, text)


def unvisible(text: str) -> str:
    """Undo `visible` or `one_line`. A `⟦U+…⟧` that neither of them writes stays as it is."""
    return _ESCAPED.sub(_restore, text) if _OPEN in text else text


def _is_plain(text: str) -> bool:
    return text.isprintable() and (text.isascii() or not _printable().search(text))


def _show(found: re.Match[str]) -> str:
    return f"{_OPEN}U+{ord(found[0]):04X}⟧"


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _restore(found: re.Match[str]) -> str:
    code = int(found[1], 16)
    if code > 0x10FFFF or found[1] != f"{code:04X}":
        return found[0]
    character = chr(code)
    return character if character == _OPEN or _hidden(name=True, bracket=False).match(character) else found[0]


def first_line(text: str) -> str:
    """Return the first line of a text that is not blank, shortened for a person."""
    line = quoted(next((line.strip() for line in text[:10_000].split("\n") if line.strip()), ""))
    return line if len(line) <= _SUMMARY_CHARS else f"{line[: _SUMMARY_CHARS - 1]}…"
