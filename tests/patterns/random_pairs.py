"""Random patterns and texts, and a search of each line alone, which judges every other search."""

import random

import regex

ATOMS = [
    *"abkisKSxy_ .,-1",
    *["é", "ß", "K", "ſ", "İ", "日", "ab", "ba", "kiss", "Ab"],
    *[r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", ".", r"\.", r"\(", r"\t", r"\x61", r"\x0a", r"\n", r"\r"],
    *["[ab]", "[^a]", "[^]a]", "[^-a]", r"[^\w]", r"[\s\S]", r"[\x00-\x7f]", "[[:alpha:]]", "[[:^alpha:]]"],
    *[r"[\n]", "[]a]", r"\p{L}", r"\P{L}", r"\pN", "[a-c1]", "(?#no)"],
]
ANCHORS = ["^", "$", r"\b", r"\B", r"\A", r"\Z", r"\m", r"\M"]
QUANTIFIERS = ["*", "+", "?", "*?", "+?", "++", "?+", "{0}", "{2}", "{1,2}", "{,2}", "{1,}", "{0,1}?"]
OPENINGS = ["(", "(?:", "(?>", "(?i:", "(?s:", "(?=", "(?!", "(?<=", "(?<!", "(?P<n>", "(?-i:", "(?|", "(?m:"]
WORDS = ["kiss", "abba", "KISS", "aKb"]
Judged = tuple[int, str, list[tuple[int, int]]]  # a line by its number, with its matches
LETTERS = "aaabbbkKsSiIxy_ .,-1(\t\x0b\x0c\x1c\x85éßKſİ日\u2028"


def random_pair(draw: random.Random) -> tuple[str, str, bool]:
    r"""Return a pattern, a text with `\n` for each line end, and whether case is ignored."""
    tokens = [draw.choice(["", "", "", "", "(?i)", "(?s)", "(?m)", "(?is)"])]
    if draw.random() < 0.1:  # such patterns are searched from the starts of words
        tokens = [r"\w", draw.choice(QUANTIFIERS), draw.choice(["=", " ", r"\s", ""])]
    opened = 0
    for _ in range(draw.randrange(1, 12)):
        kind = draw.random()
        if kind < 0.55:
            tokens.append(draw.choice(ATOMS))
            if draw.random() < 0.4:
                tokens.append(draw.choice(QUANTIFIERS))
        elif kind < 0.67:
            tokens.append(draw.choice(ANCHORS))
        elif kind < 0.8:
            tokens.append(draw.choice(OPENINGS))
            opened += 1
        elif kind < 0.9 and opened:
            tokens.append(")" + draw.choice(["", "", *QUANTIFIERS]))
            opened -= 1
        else:
            tokens.append("|")
    if draw.random() < 0.2:  # the lines with one of several rare texts are searched
        tokens.insert(1, f"(?:{'|'.join(draw.sample(WORDS, 2))}{draw.choice(['', '|.'])})")
    tail = draw.choice(["", "", "", "", "|ab", "|^$", r"(a)\1"])
    pattern = "".join(tokens) + ")" * opened + tail
    lines = []
    for _ in range(draw.randrange(7)):
        line = "".join(draw.choices(LETTERS, k=draw.randrange(9)))
        lines.append(line + draw.choice(["", "", "ab", "kiss", "KISS", "abba", "x" * 300 + "ab"]))
    return pattern, "\n".join(lines) + draw.choice(["", "\n"]), draw.random() < 0.3


def lines_of(text: str) -> list[str]:
    r"""Split a text at `\n`, without asking the code under test."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def naively(expression: "regex.Pattern[str]", lines: list[str]) -> list[Judged]:
    """Match each line; as in rg, an empty match does not follow another match at once."""
    judged: list[Judged] = []
    for number, line in enumerate(lines):
        spans = [m.span() for m in expression.finditer(line, timeout=1)]
        ends = [-1, *(end for _, end in spans)]
        kept = [span for span, before in zip(spans, ends, strict=False) if span != (before, before)]
        judged.append((number, line, kept))
    return [each for each in judged if each[2]]
