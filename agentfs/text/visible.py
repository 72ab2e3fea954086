"""Characters that could forge a line, a footer or a reading order, shown as `⟦U+202E⟧`, and back.

Shown are the C0 and C1 controls (tab and line feed excepted), DEL, the marks and overrides of bidirectional
text, the line and paragraph separators, tag characters, and lone surrogates, which no wire can carry. Joiners
and variation selectors stay, because emoji and scripts need them. A text that holds `⟦U+202E⟧` literally
keeps its meaning: its bracket is shown as `⟦U+27E6⟧`.
"""

import json
import re

_OPEN = "⟦"
_HIDDEN_CLASS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
    "\u2028\u2029"
    "\U000e0000-\U000e007f"
    "\ud800-\udfff"
)
_hidden = re.compile(f"[{_HIDDEN_CLASS}]|{_OPEN}(?=U\\+[0-9A-F]{{4,6}}⟧)")
_control = re.compile(f"[{_HIDDEN_CLASS}]")
_shown = re.compile(f"{_OPEN}U\\+([0-9A-F]{{4,6}})⟧")
_ASCII_CONTROLS = bytes((*range(9), *range(11, 32), 127))


def visible(text: str) -> str:
    r"""Show the characters that a reader cannot see but could be fooled by.

    Args:
        text: Any text; `\t` and `\n` stay as they are.

    Returns:
        The text with each such character as `⟦U+202E⟧`; `unvisible` gives back the text exactly.
    """
    if text.isascii():
        # Deleting from bytes costs a tenth of a search by a character class, and most text is clean.
        raw = text.encode("ascii")
        if len(raw.translate(None, _ASCII_CONTROLS)) == len(raw):
            return text
    elif _OPEN not in text and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _hidden.sub(_show, text)


def shown_controls(text: str) -> str:
    """Show the same characters in a text that may have been made visible before: what shows one stays.

    Args:
        text: Any text.
    """
    return _control.sub(_show, text)


def escaped_controls(text: str) -> str:
    r"""Return JSON with the same characters as `\u` escapes.

    Args:
        text: JSON text, in which they stand in strings alone.
    """
    return _control.sub(lambda found: json.dumps(found[0])[1:-1], text)


def unvisible(text: str) -> str:
    """Turn what `visible` shows back into the characters themselves.

    Args:
        text: Text as `visible` gave it, or as a model copied it from there.

    Returns:
        The text with each `⟦U+…⟧` that `visible` can have made as its character; any other stays.
    """
    return _shown.sub(_restore, text) if _OPEN in text else text


def _show(found: re.Match[str]) -> str:
    return f"{_OPEN}U+{ord(found[0]):04X}⟧"


def _restore(found: re.Match[str]) -> str:
    code = int(found[1], 16)
    if code > 0x10FFFF or found[1] != f"{code:04X}":
        return found[0]
    character = chr(code)
    return character if character == _OPEN or _hidden.match(character) else found[0]
