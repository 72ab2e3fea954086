"""About how many tokens a text costs a model."""


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: a quarter of its characters, and more for each that UTF-8 writes longer.

    Args:
        text: Any text.

    Returns:
        The estimate, at least 1 for a text that is not empty.
    """
    length = len(text)
    extra = 0 if text.isascii() else len(text.encode("utf-8", "surrogatepass")) - length
    # Tokenizers merge about four letters of ASCII, and give a CJK character (three bytes) about one token.
    return (3 * length + 4 * extra + 11) // 12
