"""The patterns that are accepted, and the errors for the others."""

import random
import re
import time

import pytest
import regex

from agentfs.errors import InvalidPatternError
from agentfs.patterns.compile import compile_pattern
from agentfs.patterns.line_search import LineSearch
from agentfs.patterns.syntax import escape


def matched(pattern, text, **kwargs):
    return [m.span() for m in compile_pattern(pattern, **kwargs).expression.finditer(text)]


@pytest.mark.parametrize(("pattern", "text", "spans"), [
    ("foo{d}", "a foo{d} b foo", [(2, 8)]), ('f"{x}"', 'y = f"{x}"', [(4, 10)]),
    (r"\${e}", "cost ${e} cot", [(5, 9)]), ("a{e<=1}", "b a{e<=1}", [(2, 9)]),
    ("(?:ab){i<=2}", "ab ab{i<=2}", [(3, 11)]), ("x{}", "xx{}", [(1, 4)]), ("x{,}", "xx{,}", [(1, 5)]),
    ("{a}", "{a}", [(0, 3)]), (r"\{a}", "{a}", [(0, 3)]), ("a{2}", "aaa", [(0, 2)]),
    ("a{2,}", "aaaa", [(0, 4)]), ("a{,2}b", "aab", [(0, 3)]), ("a{1,2}{e}", "aa{e}", [(0, 5)]),
    ("[a{e}]+", "a{e}x", [(0, 4)]), (r"\p{Lu}", "aB", [(1, 2)]), (r"\p{L}{e}", "a{e}", [(0, 4)]),
    ("(?x) a{e} # {d}", "a{e}", [(0, 4)]),
    ("a (?x: b # {e}\n ) c", "a b c a b c", [(0, 5), (6, 11)]),
    (r"\N{DIGIT ONE}", "1", [(0, 1)]), ("(?#a comment)", "1", [(0, 0), (1, 1)]),
])  # fmt: skip
def test_a_brace_outside_a_numeric_quantifier_is_literal(pattern, text, spans):
    assert matched(pattern, text) == spans


FLAGS_AND_COMMENTS = [
    *("(?x)", "(?x:", "(?-x:", "(?i)", "(?-i)", "(?ix)", "(?-i:", "(?s)", "(?m)", "(?a)", "(?#d)", "# c"),
    *("(?:", "[#]", "\\#", "\\ ", "[ a]", "\\b", *"\n abcx|)(^$"),
]


def test_flags_and_comments_survive_an_added_prefix_and_suffix():
    rng = random.Random(3)
    texts = ["a", "b", "c", "ab", "a b", "a#c", "#", " ", "A B c x", "abx# c\n a", "x\nb"]
    compared = 0
    for _ in range(500):
        pattern = "".join(rng.choice(FLAGS_AND_COMMENTS) for _ in range(rng.randint(1, 7)))
        try:
            alone = compile_pattern(pattern)
        except InvalidPatternError:
            continue
        around = compile_pattern(pattern, around=("(?=)", "(?=)"))
        for text in texts:
            expected = [found.span() for found in alone.expression.finditer(text)]
            assert [found.span() for found in around.expression.finditer(text)] == expected, (pattern, text)
            compared += bool(expected)
    assert compared > 187


@pytest.mark.parametrize(("pattern", "text", "spans"), [
    ("(?x)foo # c", "foo food", [(0, 3)]), ("foo(?x) # c", "foo food", [(0, 3)]),
    ("(?i)(?x) foo # c", "FOO food", [(0, 3)]),
    ("(?#c)(?i)foo|bar", "FOO bars bar", [(0, 3), (9, 12)]),
    ("(?a)é", "é", [(0, 1)]), ("(o)\\1", "oo too", [(0, 2)]),
])  # fmt: skip
def test_a_whole_word_with_flags_comments_and_references(pattern, text, spans):
    assert matched(pattern, text, around=(r"(?<!\w)", r"(?!\w)")) == spans


@pytest.mark.parametrize(("pattern", "position", "suggestion"), [
    ("foo(", 3, r"foo\("), ("a.b(", 3, r"a\.b\("), ("foo(.*", 3, r"foo\(.*"),
    (r"foo\(bar|baz)", 12, r"foo\(bar|baz\)"), ("*.py", 0, r"\*\.py"), ("arr[0", 3, r"arr\[0"),
    ("x)", 1, r"x\)"), (r"\q+", 0, r"\\q\+"), ("a**", 2, r"a\*\*"), ("{2}", 0, r"\{2\}"),
    ("${e}(", 4, r"\$\{e\}\("), ("a{x}{y}(b", 7, r"a\{x\}\{y\}\(b"), ("\\", 0, "\\\\"),
])  # fmt: skip
def test_an_invalid_pattern_is_located_and_its_escaped_form_suggested(pattern, position, suggestion):
    with pytest.raises(InvalidPatternError) as caught:
        compile_pattern(pattern)
    error = caught.value
    assert error.code == "invalid_pattern"
    assert error.details["position"] == position
    shown, caret = error.details["places"]
    assert shown.strip() == pattern
    assert caret.index("^") == 2 + position
    assert error.details["suggestion"] is not None
    compile_pattern(error.details["suggestion"])
    if r"\q" not in pattern:
        assert error.details["suggestion"] == suggestion
    assert "pattern=" in error.hint


@pytest.mark.parametrize("pattern", [
    "", "a" * 1001, "(?:()" + "()" * 159 + "){500}", "(?:a{1000}){1000}", "(" * 60 + "a" + ")" * 60,
    "(?:" * 15 + "a" + "){3}" * 15, "(?:" * 20 + "a" + ")+" * 20, "a{99999999999999999999}", "a{20001}",
])  # fmt: skip
def test_a_pattern_that_compiles_slowly_is_refused_at_once(pattern):
    began = time.perf_counter()
    with pytest.raises(InvalidPatternError) as caught:
        compile_pattern(pattern)
    assert time.perf_counter() - began < 5
    assert caught.value.hint


@pytest.mark.parametrize("pattern", [
    "(?V1)a", r"\L<x>", r"\1", "(?P<1>a)", "(?(1)a)", "(?&x)", r"\p{Nonsense}", "[b-a]",
])  # fmt: skip
def test_every_error_of_the_compiler_becomes_invalid_pattern(pattern):
    with pytest.raises(InvalidPatternError):
        compile_pattern(pattern)


@pytest.mark.parametrize("text", ["a.b(c)*[d]{2}^$|\\ +?", "(?i)", "日本 {e}"])
def test_an_escaped_text_matches_itself_and_is_planned_as_a_literal(text):
    pattern = compile_pattern(escape(text))
    assert pattern.expression.search(text).span() == (0, len(text))
    assert regex.fullmatch(escape(text), text)
    assert pattern.plan.is_literal or not text.isascii()


@pytest.mark.parametrize(
    "pattern", [r"\bab\b", r"\bab", r"ab\b", r"\<ab\>", r"\b(?:ab)\b", r"\ba\b", r"(ab)\b"]
)
def test_a_word_is_counted_as_often_as_it_is_found(pattern):
    draw = random.Random(pattern)
    expected_of = re.compile(pattern.replace("\\<", r"\b").replace("\\>", r"\b"))
    for _ in range(300):
        text = "".join(draw.choices("ab_ \n-", k=draw.randrange(60))) + draw.choice(["", "é"])
        found = [len(expected_of.findall(line)) for line in text.split("\n")]
        hits = LineSearch(compile_pattern(pattern), time.monotonic() + 60).hits(text)
        assert [hit.matches for hit in hits] == [count for count in found if count]
