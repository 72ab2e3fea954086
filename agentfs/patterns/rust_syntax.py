r"""A pattern in the syntax that RE2 and Rust's regex share, to find candidates in ASCII text.

Both are linear in time and have no lookaround. A pattern is rewritten only when every token means the same on
one line of ASCII in all three; classes are written out, because RE2's `\s` lacks the vertical tab.
"""

import re

from agentfs.patterns.syntax import Syntax, Token

_CLASSES = {
    "\\d": "[0-9]",
    "\\D": "[^0-9\\n]",
    "\\w": "[0-9A-Za-z_]",
    "\\W": "[^0-9A-Za-z_\\n]",
    "\\s": "[\\t\\x0b-\\r ]",
    "\\S": "[^\\t-\\r ]",
}
_IN_SET = {"\\d": "0-9", "\\w": "0-9A-Za-z_", "\\s": "\\t\\x0b-\\r\\x20"}
_SET_MEMBER = re.compile(r"\\.|.", re.DOTALL)
_SIMPLE_SET = re.compile(r"\[\^?(?:[^\\\[\]\n&~]|\\[dws\[\]\\^.\-tr])+\]")
_RANGE_OF_CLASS = re.compile(r"\\[dws]-(?!\])|[^\\\[^]-\\[dws]|--")


def rust_syntax(syntax: Syntax, *, ignore_case: bool) -> str | None:
    """Return a pattern that matches in an ASCII line exactly when the given one does, or None."""
    parts = [_rewrite(token) for token in syntax.tokens]
    known = [part for part in parts if part is not None]
    if syntax.opaque or syntax.unclosed or len(known) < len(parts):
        return None
    return ("(?im)" if ignore_case else "(?m)") + "".join(known)


def escaped(text: str) -> str:
    """Return a pattern that matches an ASCII text."""
    return "".join(each if each.isalnum() or each in " _" else f"\\x{ord(each):02x}" for each in text)


def _rewrite(token: Token) -> str | None:
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
    members: list[str] = _SET_MEMBER.findall(text[1:-1])
    body = "".join([_IN_SET.get(each, each) for each in members])
    return f"[{body}\\n]" if body.startswith("^") else f"[{body}]"


def _repeat(token: Token) -> str | None:
    if token.text.endswith("+") and len(token.text) > 1:
        return None  # possessive
    if token.high is not None and token.high > 100:
        return None
    lazy = "?" if token.text.endswith("?") and len(token.text) > 1 else ""
    most = "" if token.high is None else str(token.high)
    return f"{{{token.low},{most}}}{lazy}"
