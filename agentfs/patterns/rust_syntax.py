r"""A pattern in the words that RE2 and Rust's regex know too, for ASCII lines: to nominate, never to decide.

Both are linear in time and have no lookaround. A pattern is rewritten only when every piece means the same on
one line of ASCII in all three; classes are spelled out, because RE2's `\s` lacks the vertical tab.
"""

import re

from agentfs.patterns.syntax import Token, read_syntax

_CLASSES = {
    "\\d": "[0-9]",
    "\\D": "[^0-9\\n]",
    "\\w": "[0-9A-Za-z_]",
    "\\W": "[^0-9A-Za-z_\\n]",
    "\\s": "[\\t\\x0b-\\r ]",
    "\\S": "[^\\t-\\r ]",
}
_IN_SET = {"\\d": "0-9", "\\w": "0-9A-Za-z_", "\\s": "\\t\\x0b-\\r\\x20"}
_SET_PIECE = re.compile(r"\\.|.", re.DOTALL)
_SIMPLE_SET = re.compile(r"\[\^?(?:[^\\\[\]\n&~]|\\[dws\[\]\\^.\-tr])+\]")
_RANGE_OF_CLASS = re.compile(r"\\[dws]-(?!\])|[^\\\[^]-\\[dws]|--")


def rust_syntax(pattern: str, *, ignore_case: bool) -> str | None:
    """Rewrite a pattern.

    Args:
        pattern: The pattern as it was written.
        ignore_case: Whether letters match in either case.

    Returns:
        A pattern that matches in an ASCII line exactly when the given one does, or None.
    """
    syntax = read_syntax(pattern)
    if syntax.opaque or syntax.unclosed:
        return None
    written: list[str] = ["(?im)" if ignore_case else "(?m)"]
    for token in syntax.tokens:
        piece = _piece(token)
        if piece is None:
            return None
        written.append(piece)
    return "".join(written)


def escaped(text: str) -> str:
    """Write a text as a pattern that matches it.

    Args:
        text: ASCII text.
    """
    return "".join(each if each.isalnum() or each in " _" else f"\\x{ord(each):02x}" for each in text)


def _piece(token: Token) -> str | None:
    match token.kind:
        case "character" if token.value.isascii() and token.value not in "\r\n":
            return escaped(token.value)
        case "class":
            return _CLASSES.get(token.text)
        case "set":
            return _set(token.text)
        case "any":
            return "[^\\n]"
        case "start" if token.text == "^":
            return "^"
        case "end" if token.text == "$":
            return "$"
        case "edge" if token.text in {"\\b", "\\B"}:
            return token.text
        case "open" if token.text in {"(", "(?:"}:
            return "(?:"
        case "close" | "or":
            return token.text
        case "repeat":
            return _repeat(token)
        case "flags" if token.value == "i":
            return "(?i)"
        case "comment":
            return ""
        case _:
            return None


def _set(text: str) -> str | None:
    if not text.isascii() or not _SIMPLE_SET.fullmatch(text) or _RANGE_OF_CLASS.search(text):
        return None
    pieces: list[str] = _SET_PIECE.findall(text[1:-1])
    body = "".join([_IN_SET.get(piece, piece) for piece in pieces])
    return f"[{body}\\n]" if body.startswith("^") else f"[{body}]"


def _repeat(token: Token) -> str | None:
    if token.text.endswith("+") and len(token.text) > 1:
        return None  # possessive
    if token.high is not None and token.high > 100:
        return None
    lazy = "?" if token.text.endswith("?") and len(token.text) > 1 else ""
    most = "" if token.high is None else str(token.high)
    return f"{{{token.low},{most}}}{lazy}"
