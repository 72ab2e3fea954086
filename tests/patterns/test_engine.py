"""Without the `regex` module, `re` finds the same matches, ends in time and names its limits."""

import re
import subprocess
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentfs import Workspace
from agentfs.errors import InvalidPatternError
from agentfs.patterns import engine
from agentfs.patterns.compile import compile_pattern
from agentfs.patterns.line_search import LineSearch
from tests import kit

SLOW = r"(a|aa)+(?!.)"
SLOW_TEXT = "a" * 60 + "b"


@pytest.fixture
def by_re(monkeypatch):
    monkeypatch.setattr(engine, "engine_name", lambda: "re")


def spans(pattern, text, **options):
    found = LineSearch(compile_pattern(pattern, **options), time.monotonic() + 20)
    return [(hit.start, hit.end, hit.spans) for hit in found.hits(text)]


PATTERNS = [
    "ab",
    "a+b?",
    r"\bdef (\w+)\(",
    r"(?<name>a)b",
    r"\<a|b\>",
    r"^\s*#",
    r"[^ab\n]",
    r"[[({]",
    r"(?i)AB|ba",
    r"(?<=a)b(?!c)",
    r"a{2,3}",
    r"x{b}",
    r"\x41|\t",
    r"a++b",
]


def test_the_matches_are_those_of_regex():
    @settings(max_examples=8)
    @given(st.booleans(), st.booleans(), st.text(alphabet="abcAB(# \n\t{}[é", max_size=60))
    def law(multiline, ignore_case, text):
        options = {"multiline": multiline, "ignore_case": ignore_case}
        for pattern in PATTERNS:
            expected = spans(pattern, text, **options)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(engine, "engine_name", lambda: "re")
                assert spans(pattern, text, **options) == expected, pattern

    law()


UNBOUNDED = [SLOW, "(a+)+$", r"(a*b*)*c", r"(?P<x>a)(?P=x)", r"(a)\1", "(?x) a b", "(?>a+)+b"]


@pytest.mark.parametrize("pattern", UNBOUNDED)
@pytest.mark.parametrize("multiline", [False, True])
def test_re_refuses_a_pattern_whose_growth_is_unbounded(by_re, tmp_path, pattern, multiline):
    (tmp_path / "f").write_text(SLOW_TEXT)
    with Workspace(tmp_path) as ws, pytest.raises(InvalidPatternError, match="no timeout") as caught:
        ws.grep(pattern, multiline=multiline)
    assert "Install the `regex` module" in caught.value.hint
    with Workspace(tmp_path) as ws, pytest.raises(InvalidPatternError, match="no timeout"):
        kit.find(ws, pattern=pattern)
    with Workspace(tmp_path) as ws, pytest.raises(InvalidPatternError, match="no timeout"):
        ws.replace(pattern, "x", regex=True)


@pytest.mark.parametrize("pattern", ["a.*b.*c", "a*a*b", ".*.*x", "a+$", r"\w+\s+\w+x"])
def test_re_skips_lines_on_which_a_pattern_would_take_too_long_and_says_so(by_re, tmp_path, pattern):
    (tmp_path / "f").write_text("aaabxc\n" + "a" * 100_000 + " b c x\n")
    with Workspace(tmp_path) as ws:
        started = time.monotonic()
        result = ws.grep(pattern)
        assert time.monotonic() - started < 8
        expected = [
            n for n, line in enumerate(["aaabxc", "a" * 300 + " b c x"], 1) if re.search(pattern, line)
        ]
        if result.skipped.long_lines:
            assert "1 file with lines too long for the pattern" in result.text
            expected = [n for n in expected if n == 1]
        assert [match.line for match in result.matches] == expected


def test_no_process_is_started(by_re, tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", None)
    (tmp_path / "a").write_text("a" * 6000 + "b\n")
    with Workspace(tmp_path) as ws:
        assert ws.grep("a+b", multiline=True).total_matches == 1


@pytest.mark.parametrize("pattern", [r"\p{Lu}", r"[[:alpha:]]+", r"(?<=a+)b", r"\X", r"(?|a|b)", r"\m\w"])
def test_features_that_re_lacks_are_refused_with_the_reason(by_re, pattern):
    with pytest.raises(InvalidPatternError, match="Python's `re` is used here") as caught:
        compile_pattern(pattern)
    assert caught.value.code == "invalid_pattern"


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a(b", r"this \( is never closed at character 2"),
        ("a)", r"this \) closes nothing"),
        ("[a", "never closed"),
    ],
)
def test_re_explains_mistakes_like_regex(by_re, pattern, reason):
    with pytest.raises(InvalidPatternError, match=reason) as caught:
        compile_pattern(pattern)
    assert "`re`" not in str(caught.value)


def test_replace_expands_groups(by_re, tmp_path):
    (tmp_path / "a.py").write_text("name(1)\n" + "x" * 5000 + " (ab)(ab)ab\nname(2)\n")
    with Workspace(tmp_path) as ws:
        ws.replace(r"((?<word>a)b)+$|name\((\d)\)", r"<\g<word>\3>", regex=True)
    assert (tmp_path / "a.py").read_text() == "<1>\n" + "x" * 5000 + " (ab)(ab)<a>\n<2>\n"
