"""The law of the planner: it may nominate lines in vain, and never loses one."""

import tempfile
import time

import pytest
import regex
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agentfs.errors import InvalidPatternError
from agentfs.fs import ReadBuffer
from agentfs.patterns.compile import compile_pattern
from agentfs.patterns.line_matches import Counts
from agentfs.patterns.line_search import Search
from agentfs.patterns.prefilter import Prefilter

ATOMS = [
    *"abkisKSxy_ .,-1",
    *["é", "ß", "K", "ſ", "İ", "日"],
    *[r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", ".", r"\.", r"\(", r"\t", r"\x61", r"\x0a", r"\n", r"\r"],
    *["[ab]", "[^a]", "[^]a]", "[^-a]", r"[^\w]", r"[\s\S]", r"[\x00-\x7f]", "[[:alpha:]]", "[[:^alpha:]]"],
    *[r"[\n]", "[]a]", r"\p{L}", r"\P{L}", r"\pN", "[a-c1]", "(?#no)"],
]
ANCHORS = ["^", "$", r"\b", r"\B", r"\A", r"\Z", r"\m", r"\M", ""]
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

pieces = st.tuples(st.sampled_from(ATOMS), st.sampled_from(QUANTIFIERS)).map("".join) | st.sampled_from(
    ANCHORS
)


def grouped(inner):
    body = st.lists(st.lists(inner, max_size=4).map("".join), min_size=1, max_size=3).map("|".join)
    return st.tuples(st.sampled_from(OPENINGS), body, st.sampled_from(QUANTIFIERS)).map(
        lambda parts: f"{parts[0]}{parts[1]}){parts[2]}"
    )


patterns = st.tuples(
    st.sampled_from(["", "", "", "(?i)", "(?s)", "(?m)", "(?is)"]),
    st.lists(st.recursive(pieces, grouped, max_leaves=6), min_size=1, max_size=6).map("".join),
    st.sampled_from(["", "", "|ab", "|^$", "(?i)", r"(a)\1"]),
).map("".join)
texts = st.lists(
    st.text(st.sampled_from("aabbkKsSiIxy_ .,-1(\t\x0b\x0c\x1c\x85éßKſİ日\u2028"), max_size=8)
    | st.sampled_from(["ab", "abba", "kiss", "KISS", "x" * 300 + "ab", ""]),
    max_size=6,
).flatmap(lambda lines: st.sampled_from(["\n", "\n", "\r\n", "\r"]).map(lambda end: (lines, end)))


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
    """What is found, the same in whatever way it is looked for: as text or bytes, by needle or by sweep."""
    ways = [Search(compiled, compiled.form, time.monotonic() + 20)]
    if compiled.ascii is not None and view.isascii():
        ways.append(Search(compiled, compiled.ascii, time.monotonic() + 20))
    answers = []
    for way in ways:
        text = view if way is ways[0] else view.encode()
        for over, gain in ((False, 0), (True, 1), (True, -1)):
            way._trial.over, way._trial.gain = over or not way._nominates or way._sweep is None, gain
            hits = [(view.count("\n", 0, h.start), view[h.start : h.end], h.spans) for h in way.hits(text)]
            answers.append(hits)
            tally = Counts()
            way.count(text, tally)
            assert tally == Counts(len(hits), len(hits), sum(len(spans) for _, _, spans in hits))
    assert all(answer == answers[0] for answer in answers)
    return answers[0]


def may_match(compiled, content):
    contents = ReadBuffer(10**6)
    with tempfile.TemporaryFile() as file:
        file.write(content.encode())
        file.flush()
        return Prefilter(contents).judge_of(compiled)(contents.fill(file.fileno())) == "may_match"


def naively(expression, lines):
    judged = [
        (number, line, [m.span() for m in expression.finditer(line, timeout=1)])
        for number, line in enumerate(lines)
    ]
    return [each for each in judged if each[2]]


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(pattern=patterns, text=texts, final=st.booleans(), ignore_case=st.booleans())
@example(pattern="(?!$)a", text=(["a", ""], "\n"), final=True, ignore_case=False)
@example(pattern=r"(?<!\W)a", text=(["-", "a"], "\n"), final=True, ignore_case=False)
@example(pattern=r"\s+$", text=(["a ", "", " b"], "\r\n"), final=True, ignore_case=False)
@example(pattern="kiss", text=(["Kiſſ", "kiss"], "\n"), final=True, ignore_case=True)
@example(pattern="(?-i:a)b", text=(["AB", "aB"], "\n"), final=True, ignore_case=True)
@example(
    pattern=r"([^-a]{1,}İ*?[^-a]+\B){1,}\Z", text=(["b" * 40, "b-b"], "\n"), final=True, ignore_case=False
)
@example(pattern=r"(^\A^|[\s\S]{1,})+?^", text=(["b" * 30, "ab", "x"], "\n"), final=False, ignore_case=False)
@example(pattern="(?:a|b{0})x", text=(["x"], "\n"), final=True, ignore_case=False)
def test_the_plan_finds_exactly_what_the_pattern_finds_on_each_line_alone(pattern, text, final, ignore_case):
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


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    pattern=two_letters, lines=st.lists(st.text("aabbAB ", max_size=6), max_size=5), ignore_case=st.booleans()
)
def test_needles_that_are_often_there_lose_nothing(pattern, lines, ignore_case):
    expression = regex.compile(pattern, regex.V0 | (regex.I if ignore_case else 0))
    compiled = compile_pattern(pattern, ignore_case=ignore_case)
    whole = "\n".join([*lines, ""])
    expected = naively(expression, lines)
    assert found(compiled, whole) == expected
    assert may_match(compiled, whole) or not expected


@pytest.mark.parametrize(
    ("pattern", "needles"),
    [
        ("foo", ("foo",)),
        (r"\.get\(", (".get(",)),
        (r"\w+\s+=\s+kmalloc\(", ("kmalloc(",)),
        ("foo|bar", ("foo", "bar")),
        ("foo|b?", ()),
        ("a+b", ("ab",)),
        ("ab?c", ("c",)),
        ("(foo)?x", ("x",)),
        ("(?=foo)b", ("b",)),
        ("(?i)Foo", ("foo",)),
        ("(?i:foo)b", ("b",)),
        ("[[:alpha:]]x", ("x",)),
        (r"(?x) a b", ()),
        (r"(a)\1", ()),
        ("日本", ()),
        ("${e}", ("{e}",)),
    ],
)
def test_the_needles_of_a_pattern(pattern, needles):
    assert compile_pattern(pattern).plan.needles == needles


@pytest.mark.parametrize(
    ("pattern", "needle", "also"),
    [
        (r"class \w+\(.*Mixin", "Mixin", ("class ", "(")),
        (r"^static int \w+_probe\(", "_probe(", ("static int ",)),
        (r"[a-z]+_[a-z]+\(\)", "()", ("_",)),
        ("(?i)Self.*KEY", "key", ("self",)),
        ("foo.*(?:oo)", "foo", ()),
        ("foo.*(?:a|bar)", "foo", ()),
        ("a.*b|foo", "b", ()),
        ("foo(?=.*bar)", "foo", ()),
        ("foo(?:bar)?", "foo", ()),
    ],
)
def test_a_rare_needle_is_looked_for_and_the_others_are_asked_for(pattern, needle, also):
    plan = compile_pattern(pattern).plan
    assert (plan.needles[0], plan.also) == (needle, also)


@pytest.mark.parametrize(
    ("pattern", "whole"),
    [
        ("foo|bar", True),
        ("foo|fo|foo", True),
        (r"a\.b|c", True),
        ("foo|", False),
        ("foo|b+", False),
        ("fo(o)", False),
    ],
)
def test_alternatives_of_plain_text_are_known(pattern, whole):
    assert compile_pattern(pattern).plan.whole is whole


def test_every_stranger_that_equals_an_ascii_letter_is_known():
    # The engine is the judge: asked for every character there is.
    everything = "".join(chr(code) for code in range(128, 0x110000) if not 0xD800 <= code < 0xE000)
    for char in "abcdefghijklmnopqrstuvwxyz":
        strangers = set(regex.findall(char, everything, regex.I | regex.V0))
        assert set(compile_pattern(char, ignore_case=True).plan.strangers) == strangers


@pytest.mark.parametrize(
    ("pattern", "repeats"),
    [
        ("abc", 0),
        ("a+", 1),
        (r"\w+\s*\(", 2),
        ("(a+)+", None),
        ("(a|b)*", None),
        ("(a+)?", 2),
        (r"(a)\1", None),
    ],
)
def test_repeats_are_counted_and_nested_ones_are_not_trusted(pattern, repeats):
    assert compile_pattern(pattern).plan.repeats == repeats


CLASSES = [
    *[r"\d", r"\D", r"\s", r"\S", r"\w", r"\W", r".", r"\t", r"\n", r"\r", r"\f", r"\v", r"\a"],
    r"[\s\w]",
    r"[^\s]",
    r"[a-z]",
    r"[^A-Z]",
    r"[\W_]",
]


@pytest.mark.parametrize("ignore_case", [False, True])
@pytest.mark.parametrize("piece", [*CLASSES, *map(regex.escape, map(chr, range(1, 128)))])
def test_a_piece_means_the_same_on_ascii_bytes_as_on_text(piece, ignore_case):
    compiled = compile_pattern(piece, ignore_case=ignore_case, multiline=True)
    every = "".join(map(chr, range(128)))
    assert compiled.ascii is not None
    as_text = [each.span() for each in compiled.form.expression.finditer(every)]
    assert [each.span() for each in compiled.ascii.expression.finditer(every.encode())] == as_text


@pytest.mark.parametrize("piece", [r"\b", r"\B", r"\m", r"\M", "^", "$"])
def test_an_edge_means_the_same_on_ascii_bytes_as_on_text(piece):
    compiled = compile_pattern(piece, multiline=True)
    for first in range(128):
        text = "".join(f"{chr(first)}{chr(second)}" for second in range(128))
        as_text = [each.span() for each in compiled.form.expression.finditer(text)]
        assert [each.span() for each in compiled.ascii.expression.finditer(text.encode())] == as_text


@pytest.mark.parametrize(
    "pattern", ["é", r"\u212a", r"[é]", r"[\xe9]", "[[:alpha:]]", r"\p{L}", r"\N{KELVIN SIGN}", r"(a)\1"]
)
def test_what_could_mean_something_else_on_bytes_is_searched_for_as_text(pattern):
    assert compile_pattern(pattern).ascii is None
