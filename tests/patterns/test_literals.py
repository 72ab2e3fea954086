"""The law of the plan: it may find a candidate line in vain, and never loses one."""

import tempfile
import time

import pytest
import regex
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agentfs.errors import InvalidPatternError
from agentfs.fs import ReadBuffer
from agentfs.patterns.compile import compile_pattern
from agentfs.patterns.line_search import Counts, LineSearch
from agentfs.patterns.literals import Prefilter
from tests.conftest import part_or_all

ATOMS = [
    *"abkisKSxy_ .,-1",
    *["é", "ß", "K", "ſ", "İ", "日"],
    *[r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", ".", r"\.", r"\(", r"\t", r"\x61", r"\x0a", r"\n", r"\r"],
    *["[ab]", "[^a]", "[^]a]", "[^-a]", r"[^\w]", r"[\s\S]", r"[\x00-\x7f]", "[[:alpha:]]", "[[:^alpha:]]"],
    *[r"[\n]", "[]a]", r"\p{L}", r"\P{L}", r"\pN", "[a-c1]", "(?#no)"],
]
ANCHORS = ["^", "$", r"\b", r"\B", r"\A", r"\Z", r"\m", r"\M"]
QUANTIFIERS = [
    "",
    "",
    "",
    "*",
    "+",
    "?",
    "*?",
    "+?",
    "++",
    "?+",
    "{0}",
    "{2}",
    "{1,2}",
    "{,2}",
    "{1,}",
    "{0,1}?",
]
OPENINGS = ["(", "(?:", "(?>", "(?i:", "(?s:", "(?=", "(?!", "(?<=", "(?<!", "(?P<n>", "(?-i:", "(?|", "(?m:"]

# Hypothesis draws a text at once, but each item of a list by itself: here each letter of a text is a token.
TOKENS = [*ATOMS, *ANCHORS, *filter(None, 4 * QUANTIFIERS), *OPENINGS, *"))))||||"]
LETTERS = "".join(chr(0x4E00 + number) for number in range(len(TOKENS)))


def pattern_of(letters):
    """Return a pattern whose groups are all closed, with quantifiers only after atoms and groups."""
    tokens, opened = [""], 0
    for token in (TOKENS[LETTERS.index(letter)] for letter in letters):
        if token in QUANTIFIERS and tokens[-1] not in [*ATOMS, ")"]:
            continue
        if token == ")" and not opened:
            continue
        opened += (token in OPENINGS) - (token == ")")
        tokens.append(token)
    return "".join(tokens) + ")" * opened


patterns = st.tuples(
    st.sampled_from(["", "", "", "(?i)", "(?s)", "(?m)", "(?is)"]),
    st.text(LETTERS, min_size=1, max_size=14).map(pattern_of),
    st.sampled_from(["", "", "|ab", "|^$", "(?i)", r"(a)\1"]),
).map("".join)
WORDS = {"A": "ab", "B": "abba", "C": "kiss", "D": "KISS", "E": "x" * 300 + "ab"}
texts = st.tuples(
    st.text("aabbkKsSiIxy_ .,-1(\t\x0b\x0c\x1c\x85éßKſİ日\u2028" + "\n" + "".join(WORDS), max_size=30).map(
        lambda text: "".join(WORDS.get(each, each) for each in text).split("\n")
    ),
    st.sampled_from(["\n", "\n", "\r\n", "\r"]),
)


def lines_of(text):
    """Split as DESIGN says, without asking the code under test."""
    if "\n" not in text:
        lines = text.split("\r")
    else:
        lines = [line.removesuffix("\r") for line in text.split("\n")]
        if not text.endswith("\n"):  # the last line has no end to strip
            lines[-1] = text.rsplit("\n", 1)[1]
    return lines[:-1] if lines[-1] == "" else lines


def as_seen(text):
    return "\n".join(lines_of(text)) + ("\n" if text.endswith(("\n", "\r")) else "")


def found(compiled, view):
    """Return the hits; by literal, by line regex and counted, they must be the same."""
    answers = []
    for by_literal in (True, False):
        search = LineSearch(compiled, time.monotonic() + 20)
        search._has_literals &= by_literal
        hits = [(view.count("\n", 0, h.start), view[h.start : h.end], h.spans) for h in search.hits(view)]
        answers.append(hits)
        counts = Counts()
        search.count(view, counts)
        assert counts == Counts(len(hits), len(hits), sum(len(spans) for _, _, spans in hits))
    assert answers[0] == answers[1]
    return answers[0]


def may_match(compiled, content):
    contents = ReadBuffer(10**6)
    with tempfile.TemporaryFile() as file:
        file.write(content.encode())
        file.flush()
        return Prefilter(compiled.plan).classify(contents, contents.fill(file.fileno())) == content.encode()


def naively(expression, lines):
    """Match each line; as in rg, an empty match does not follow another match at once."""
    judged: list[tuple[int, str, list[tuple[int, int]]]] = []
    for number, line in enumerate(lines):
        spans = [m.span() for m in expression.finditer(line, timeout=1)]
        ends = [-1, *(end for _, end in spans)]
        kept = [span for span, before in zip(spans, ends, strict=False) if span != (before, before)]
        judged.append((number, line, kept))
    return [each for each in judged if each[2]]


@part_or_all(8, full=2)
def test_the_plan_finds_the_same_matches_as_the_pattern_on_each_line(every):
    @settings(max_examples=500 // every, suppress_health_check=list(HealthCheck))
    @given(pattern=patterns, text=texts, final=st.booleans(), ignore_case=st.booleans())
    @example(pattern="(?!$)a", text=(["a", ""], "\n"), final=True, ignore_case=False)
    @example(pattern=r"(?<!\W)a", text=(["-", "a"], "\n"), final=True, ignore_case=False)
    @example(pattern=r"\s+$", text=(["a ", "", " b"], "\r\n"), final=True, ignore_case=False)
    @example(pattern="kiss", text=(["Kiſſ", "kiss"], "\n"), final=True, ignore_case=True)
    @example(pattern="(?-i:a)b", text=(["AB", "aB"], "\n"), final=True, ignore_case=True)
    @example(
        pattern=r"([^-a]{1,}İ*?[^-a]+\B){1,}\Z", text=(["b" * 40, "b-b"], "\n"), final=True, ignore_case=False
    )
    @example(
        pattern=r"(^\A^|[\s\S]{1,})+?^", text=(["b" * 30, "ab", "x"], "\n"), final=False, ignore_case=False
    )
    @example(pattern=r"(?<!\A)\s|(?=\Z)[^a]*", text=(["b ", "", " a"], "\n"), final=True, ignore_case=False)
    @example(pattern=r"a(?!\s)(?<=\D\D)", text=(["aa", " a", "a"], "\n"), final=False, ignore_case=False)
    @example(pattern="(?:a|b{0})x", text=(["x"], "\n"), final=True, ignore_case=False)
    def law(pattern, text, final, ignore_case):
        lines, end = text
        whole = end.join(lines) + (end if final else "")
        try:
            expression = regex.compile(pattern, regex.V0 | (regex.I if ignore_case else 0))
            compiled = compile_pattern(pattern, ignore_case=ignore_case)
        except (regex.error, ValueError, InvalidPatternError):  # the last: over the bounds
            return
        try:
            expected = naively(expression, lines_of(whole))
            answer = found(compiled, as_seen(whole))
        except TimeoutError:  # such a pattern takes exponential time; a search ends it, and says so
            return
        assert answer == expected
        assert may_match(compiled, whole) or not expected

    law()


two_letters = st.recursive(
    st.tuples(st.sampled_from(["a", "b", "ab", "ba", "[ab]", "a|b"]), st.sampled_from(QUANTIFIERS)).map(
        "".join
    ),
    lambda inner: st.tuples(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, max_size=2).map("".join),
        st.sampled_from(
            ["({}{})", "(?:{}|{})", "(?i:{}){}", "{}(?={})", "{}(?!{})", "(?>{}){}", "{}|{}", "^{}{}$"]
        ),
        st.sampled_from(["", "", "?", "*", "+", "{2}", "{0}"]),
    ).map(lambda parts: f"(?:{parts[2].format(parts[0], parts[1])}){parts[3]}"),
    max_leaves=6,
)


@part_or_all(12, full=5)
def test_frequent_literals_lose_no_match(every):
    @settings(max_examples=400 // every, suppress_health_check=list(HealthCheck))
    @given(
        pattern=two_letters,
        lines=st.lists(st.text("aabbAB ", max_size=6), max_size=5),
        ignore_case=st.booleans(),
    )
    def law(pattern, lines, ignore_case):
        expression = regex.compile(pattern, regex.V0 | (regex.I if ignore_case else 0))
        compiled = compile_pattern(pattern, ignore_case=ignore_case)
        whole = "\n".join([*lines, ""])
        expected = naively(expression, lines)
        assert found(compiled, whole) == expected
        assert may_match(compiled, whole) or not expected

    law()


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        ("foo", ("foo",)),
        (r"\.get\(", (".get(",)),
        (r"\w+\s+=\s+kmalloc\(", ("kmalloc(",)),
        ("foo|bar", ("foo", "bar")),
        ("foo|b?", ()),
        ("a+b", ("ab",)),
        ("ab?c", ("c",)),
        ("(foo)?x", ("x",)),
        ("(?=foo)b", ("foo",)),
        ("(?i)Foo", ("foo",)),
        ("(?i:foo)b", ("b",)),
        ("[[:alpha:]]x", ("x",)),
        (r"(?x) a b", ()),
        (r"(a)\1", ()),
        ("日本", ()),
        ("${e}", ("{e}",)),
    ],
)
def test_the_literals_of_a_pattern(pattern, literals):
    assert compile_pattern(pattern).plan.literals == literals


@pytest.mark.parametrize(
    ("pattern", "literal", "extra"),
    [
        (r"class \w+\(.*Mixin", "Mixin", ("class ", "(")),
        (r"^static int \w+_probe\(", "_probe(", ("static int ",)),
        (r"[a-z]+_[a-z]+\(\)", "()", ("_",)),
        ("(?i)Self.*KEY", "key", ("self",)),
        ("foo.*(?:oo)", "foo", ()),
        ("foo.*(?:a|bar)", "foo", ()),
        ("a.*b|foo", "b", ()),
        ("foo(?=.*bar)", "bar", ("foo",)),
        ("foo(?:bar)?", "foo", ()),
    ],
)
def test_the_rarest_literal_is_searched_and_others_are_required(pattern, literal, extra):
    plan = compile_pattern(pattern).plan
    assert (plan.literals[0], plan.extra_literals) == (literal, extra)


@pytest.mark.parametrize(
    ("pattern", "is_literal"),
    [
        ("foo|bar", True),
        ("foo|fo|foo", True),
        (r"a\.b|c", True),
        ("foo|", False),
        ("foo|b+", False),
        ("fo(o)", False),
    ],
)
def test_alternatives_of_literal_text_are_recognised(pattern, is_literal):
    assert compile_pattern(pattern).plan.is_literal is is_literal


def test_every_character_that_folds_to_an_ascii_letter_is_found():
    # The engine is the judge: asked for every character there is.
    everything = "".join(chr(code) for code in range(128, 0x110000) if not 0xD800 <= code < 0xE000)
    for char in "abcdefghijklmnopqrstuvwxyz":
        compiled = compile_pattern(f"x{char}y", ignore_case=True)
        for extra in regex.findall(char, everything, regex.I | regex.V0):
            assert may_match(compiled, f"x{extra}y")


@pytest.mark.parametrize(
    ("pattern", "growth"),
    [
        ("abc", (1, 1)),
        ("a+", (2, 1)),
        (r"\w+\s*\(", (2, 1)),
        (r"\s*\w+\s*=", (2, 1)),
        (r"\w+\d*x", (3, 1)),
        (r"[\w.]+@[\w.]+\.\w+", (3, 1)),
        (r"[a-z]+_[a-z]+_[a-z]+\(", (2, 1)),
        (r"[a-z]+_?[a-z]*_*\(", (3, 2)),
        (r"\w+_\d{1,3}\.", (2, 3)),
        ("a|b|c", (1, 3)),
        ("(a|b)(c|d)", (1, 4)),
        ("(a+)+", None),
        ("(a|b)*", None),
        ("(a+)?", (2, 2)),
        (r"(a)\1", None),
    ],
)
def test_growth_of_the_steps_with_the_length_of_a_line(pattern, growth):
    assert compile_pattern(pattern).plan.growth == growth
