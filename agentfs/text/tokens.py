"""About how many tokens a text costs a model."""

_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGITS = b"0123456789"
_FIRST_BYTES = bytes(range(0xC0, 0x100))  # that a character outside of ASCII begins with, in UTF-8
# Hundredths of a token for each character of a kind, fitted to two tokenizers: `benchmarks/calibrate.py`.
_LETTER, _DIGIT, _SPACE, _LINE, _OTHER, _WIDE, _WIDER = 21, 79, 9, 21, 63, 58, 16


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text by the kinds of its characters.

    Letters come four or five to a token, digits and punctuation hardly more than one, and blanks mostly go
    with the word behind them; outside of ASCII the bytes of a character in UTF-8 tell how rare it is.

    Args:
        text: Any text.

    Returns:
        The estimate, at least 1 for a text that is not empty.
    """
    raw = text.encode("utf-8", "surrogatepass")
    size = len(raw)
    # Deleting counts many kinds of bytes in one pass.
    letters = size - len(raw.translate(None, _LETTERS))
    digits = size - len(raw.translate(None, _DIGITS))
    spaces, lines = raw.count(b" "), raw.count(b"\n")
    more = size - len(text)
    wide = size - len(raw.translate(None, _FIRST_BYTES)) if more else 0
    others = len(text) - wide - letters - digits - spaces - lines
    hundredths = (
        _LETTER * letters
        + _DIGIT * digits
        + _SPACE * spaces
        + _LINE * lines
        + _OTHER * others
        + _WIDE * wide
        + _WIDER * more
    )
    return -(-hundredths // 100)
