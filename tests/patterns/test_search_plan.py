"""The plan of a pattern: its literals, and the searches that use them lose no line."""

import random
import subprocess
import time
from collections import Counter

import pytest
import regex

from agentfs import Workspace
from agentfs.errors import InvalidPatternError
from agentfs.patterns.compile import compile_pattern
from agentfs.patterns.line_search import LineSearch
from agentfs.patterns.prefilter import Prefilter
from agentfs.patterns.search_plan import make_plan
from agentfs.patterns.syntax import read_syntax
from tests.conftest import needs, program
from tests.patterns.random_pairs import lines_of, naively, random_pair


def may_match(compiled, text):
    data = bytearray(text.encode())
    return Prefilter(compiled.plan).may_match(data, len(data))


def found(compiled, text):
    search = LineSearch(compiled, time.monotonic() + 20)
    return [
        (text.count("\n", 0, hit.start), text[hit.start : hit.end], hit.spans) for hit in search.hits(text)
    ]


def check(pattern, text, ignore_case):
    """Compare a search of a text with that of each line; return False if there is nothing to compare."""
    try:
        expression = regex.compile(pattern, regex.V0 | (regex.I if ignore_case else 0))
        compiled = compile_pattern(pattern, ignore_case=ignore_case)
    except (regex.error, ValueError, InvalidPatternError):  # the last: over the bounds
        return False
    try:
        expected, answer = naively(expression, lines_of(text)), found(compiled, text)
    except TimeoutError:  # such a pattern takes exponential time; a search ends it, and says so
        return False
    assert answer == expected, (pattern, text, ignore_case)
    counted = LineSearch(compiled, time.monotonic() + 20).count(text)
    assert counted == (len(expected), sum(len(spans) for *_, spans in expected), False), (pattern, text)
    assert may_match(compiled, text) or not expected, (pattern, text, ignore_case)
    return True


@pytest.mark.parametrize("pairs", [200, pytest.param(50_000, marks=pytest.mark.full)])
def test_a_search_finds_what_the_pattern_matches_in_each_line_alone(pairs):
    compared = sum(check(*random_pair(random.Random(seed))) for seed in range(pairs))
    assert compared > 0.9 * pairs


@pytest.mark.parametrize(("pattern", "text", "ignore_case"), [
    ("(?!$)a", "a\n\n", False), (r"(?<!\W)a", "-\na\n", False), (r"\s+$", "a \n\n b\n", False),
    ("kiss", "Kiſſ\nkiss\n", True), ("(?-i:a)b", "AB\naB\n", True),
    (r"([^-a]{1,}İ*?[^-a]+\B){1,}\Z", f"{'b' * 40}\nb-b\n", False),
    (r"(^\A^|[\s\S]{1,})+?^", f"{'b' * 30}\nab\nx", False),
    (r"(?<!\A)\s|(?=\Z)[^a]*", "b \n\n a\n", False), (r"a(?!\s)(?<=\D\D)", "aa\n a\na", False),
    ("(?:a|b{0})x", "x\n", False),
])  # fmt: skip
def test_a_search_of_lines_that_were_once_lost(pattern, text, ignore_case):
    assert check(pattern, text, ignore_case)


def test_regression_a_negated_set_in_a_pattern_of_both_cases_finds_every_line():
    """`regex` misreads [^\\na] beside a part that ignores case."""
    assert [line for line, *_ in found(compile_pattern("(?i:k)b|[^a]"), "é\nA\n")] == [0, 1]


def test_a_multiline_match_of_rare_alternatives_may_span_lines(tmp_path):
    (tmp_path / "f").write_text("kiss\n  ab\nabba\n")
    with Workspace(tmp_path) as ws:
        assert ws.grep(r"(?:kiss|abba)\n\s*ab", multiline=True).total_lines == 2


def test_regression_an_empty_match_behind_a_match_is_not_counted(tmp_path):
    """`b?(?=a)` counted 3 matches in `baa`, `rg -P` 2."""
    (tmp_path / "f").write_text("baa\n")
    with Workspace(tmp_path) as ws:
        for mode in ("content", "count", "total"):
            assert ws.grep("b?(?=a)", output_mode=mode).total_matches == 2


RG_ATOMS = [*"abkx_ 1.^$é", "ab", "[ab]", "[^a]", "[a-c1]", r"\d", r"\w", r"\W", r"\s", r"\S", r"\b"]
RG_REPEATS = ["", "", "", "*", "+", "?", "{2}", "{1,2}", "*?", "+?"]


def rg_pair(draw):
    """Return a pattern that means the same to rg, a text, and whether case is ignored."""
    parts = []
    for _ in range(draw.randrange(1, 6)):
        atom = draw.choice(RG_ATOMS)
        parts.append(atom if atom in {r"\b", "^", "$"} else atom + draw.choice(RG_REPEATS))
        if draw.random() < 0.2:
            parts.append("|")
    lines = ["".join(draw.choices("aabbkKxX_ 1.é", k=draw.randrange(9))) for _ in range(draw.randrange(1, 7))]
    return "".join(parts), "\n".join(lines) + "\n", draw.random() < 0.3


@needs("rg")
@pytest.mark.parametrize("pairs", [15, pytest.param(3_000, marks=pytest.mark.full)])
def test_a_search_finds_what_ripgrep_finds(tmp_path, pairs):
    compared, seed = 0, 0
    while compared < pairs:
        seed += 1
        pattern, text, ignore_case = rg_pair(random.Random(seed))
        # After an empty match, `regex` looks for a longer one at its place, and rg goes on behind it.
        expression = regex.compile(pattern, regex.V0 | (regex.I if ignore_case else 0))
        if any("" in map(str, expression.findall(line)) for line in text.split("\n")):
            continue
        (tmp_path / "f").write_text(text)
        command = [program("rg"), "--no-config", "-n", "-o", *["-i"] * ignore_case, "-e", pattern, "f"]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert not ran.stderr, (pattern, ran.stderr)
        rows = [row.partition(":") for row in ran.stdout.splitlines()]
        expected = Counter((int(number), match) for number, _, match in rows)
        search = LineSearch(compile_pattern(pattern, ignore_case=ignore_case), time.monotonic() + 20)
        answer = Counter(
            (text.count("\n", 0, hit.start) + 1, text[hit.start + start : hit.start + end])
            for hit in search.hits(text)
            for start, end in hit.spans
        )
        assert answer == expected, (pattern, text, ignore_case)
        compared += 1


@pytest.mark.parametrize(("pattern", "literals"), [
    ("foo", ("foo",)), (r"\.get\(", (".get(",)), (r"\w+\s+=\s+kmalloc\(", ("kmalloc(",)),
    ("foo|bar", ("foo", "bar")), ("foo|b?", ()), ("a+b", ("ab",)), ("ab?c", ("c",)), ("(foo)?x", ("x",)),
    ("(?=foo)b", ("foo",)), ("(?i)Foo", ("foo",)), ("(?i:foo)b", ("b",)), ("[[:alpha:]]x", ("x",)),
    (r"(?x) a b", ()), (r"(a)\1", ()), ("日本", ()), ("${e}", ("{e}",)), (r"[a-z]+_[a-z]+\(\)", ("()",)),
    (r"class \w+\(.*Mixin", ("Mixin",)), (r"^static int \w+_probe\(", ("_probe(",)),
    ("(?i)Self.*KEY", ("key",)), ("foo(?=.*bar)", ("bar",)),
])  # fmt: skip
def test_the_literals_of_a_pattern(pattern, literals):
    assert compile_pattern(pattern).plan.literals == literals


@pytest.mark.parametrize(("pattern", "tail"), [
    (r"\w+=\w+\(", r"=\w+\([^\n]*"), (r"(?i)[a-z]+\.py", r"(?i)\.py[^\n]*"), (r"^\s*\w+ba$", r"ba$[^\n]*"),
    (r"\w+x=", r"x=[^\n]*"), (r"\w+s\d=", r"=[^\n]*"), (r"\d=?\w", None), (r"\d(=)\w", None), ("", None),
    (r"\w+\.\w+\.\w+\(", r"\.\w+\.\w+\([^\n]*"), (r"\w+\.\w+\.", None), (r"foo\w+=", None), (r"^\bfoo", None),
    (r"\d=|b", None), (r"(?i)[ \t]+$", r"(?i)(?<=[ \t])$"), (r"\d\w*$", None), (r"\s$|\d+$", None),
    (r"\d{2}\Z", r"(?<=\d)$"),
])  # fmt: skip
def test_the_tail_of_a_pattern_begins_with_its_first_rare_text_behind_something_else(pattern, tail):
    assert make_plan(read_syntax(pattern), lambda *_: False, ignore_case=False).tail == tail


@pytest.mark.parametrize(("pattern", "is_literal"), [
    ("foo", True), (r"a\.b", True), (r"\bfoo", False), (r"\nfoo", False), ("foo|bar", False),
    ("foo+", False), ("fo(o)", False),
])  # fmt: skip
def test_a_literal_text_is_recognised(pattern, is_literal):
    assert compile_pattern(pattern).plan.is_literal is is_literal
