"""The automaton finds at least the lines that the engine finds, in every encoding, and leaves out others."""

import re
import time
from unittest import mock

import pytest
import regex
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from agentfs import Limits, Workspace
from agentfs.errors import InvalidPatternError
from agentfs.fs import ReadBuffer
from agentfs.patterns import automaton
from agentfs.patterns.automaton import Automaton
from agentfs.patterns.compile import compile_pattern
from agentfs.patterns.line_search import _OTHER_FORMS, Counts, LineSearch
from agentfs.patterns.literals import Prefilter, decode_content, is_plain_utf8
from tests import kit
from tests.conftest import part_or_all

CHARACTERS = [
    *"aAbkKsSiI1_ -.\t",
    "é",
    "ı",
    "\u0130",
    "\u212a",
    "\u017f",
    "\u3000",
    "٣",
    "\u2028",
    "\x85",
    "表",
]
ATOMS = [
    *"aAbkKsSiI1_ -é表ı",
    *(r"\.", ".", r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\x61", r"\n", r"\t", r"\p{L}", r"\p{Lu}"),
    *("[a-c]", "[^a]", "[^b\\n]", r"[\w.]", "[k-s_]", r"[^\w]", r"[\s-]", "[[:alpha:]]"),
]
ZERO_WIDTH = ["^", "$", r"\b", r"\B", r"\A", r"\Z", r"\m", r"\M"]
REPEATS = ["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{2,}", "{,2}"]


CONTENTS = [
    b"",
    b"\n",
    b"a\n\nb",
    b"\xef\xbb\xbfabc_d 12\n",
    b"x\r\nabc_d\r\n",
    b"one\rabc_d\rtwo",
    b"caf\xe9 abc_d\n",
    "é abc_d".encode("utf-16"),
    b"x" * 9000 + b"\0abc_d\n",
    "# coding: shift_jis\n表_d 表".encode("shift_jis"),
    "\u212a \u017f \u0130".encode(),
]


def _grown(inner):
    group = st.tuples(st.sampled_from(["(", "(?:", "(?i:", "(?>", "(?=", "(?!", "(?<=", "(?<!"]), inner)
    return st.one_of(
        st.lists(inner, min_size=2, max_size=4).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(group.map(lambda each: f"{each[0]}{each[1]})"), st.sampled_from(REPEATS)).map("".join),
    )


PATTERNS = st.recursive(
    st.one_of(
        st.tuples(st.sampled_from(ATOMS), st.sampled_from(REPEATS)).map("".join), st.sampled_from(ZERO_WIDTH)
    ),
    _grown,
    max_leaves=8,
)
TEXTS = st.lists(st.sampled_from([*CHARACTERS, "\n", "\n", "\r\n"]), max_size=25).map("".join)
OUTSIDE_ASCII = "".join(map(chr, [*range(0x80, 0xD800), *range(0xE000, 0x110000)]))
ENCODINGS = st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "latin-1", "shift_jis", "gb18030", "cp1252"])


def compiled(pattern, **options):
    try:
        found = compile_pattern(pattern, **options)
    except InvalidPatternError:
        assume(False)
    assume(found.byte_pattern is not None)
    made = Automaton.of(found.byte_pattern)
    assert made is not None
    return found, made


@part_or_all(40)
def test_the_lines_of_an_automaton_have_those_of_the_engine(every):
    @settings(max_examples=2000 // every, suppress_health_check=[HealthCheck.filter_too_much])
    @given(pattern=PATTERNS, text=TEXTS, ignore_case=st.booleans())
    @example(pattern=r"^\s*$", text="a\n\nb\n", ignore_case=False)
    @example(pattern=r"\w+\b", text="é1\n", ignore_case=False)
    @example(pattern="k", text="é\u212a", ignore_case=True)
    def law(pattern, text, ignore_case):
        found, made = compiled(pattern, ignore_case=ignore_case)
        text = text.replace("\r\n", "\n")
        lines = list(made.lines(text))
        assert lines == sorted(set(lines))
        start = 0
        for line in text.splitlines(keepends=True) if "\u2028" not in text and "\x85" not in text else []:
            end = start + len(line.removesuffix("\n"))
            if found.expression.search(text[start:end]):
                assert (start, end) in lines
            start += len(line)
        for start, end in lines:
            assert "\n" not in text[start:end]
            assert not start or text[start - 1] == "\n"
            assert end == len(text) or text[end] == "\n"

    law()


@part_or_all(40)
def test_the_texts_of_an_automaton_have_those_of_the_engine(every):
    @settings(max_examples=2000 // every, suppress_health_check=[HealthCheck.filter_too_much])
    @given(PATTERNS, st.lists(TEXTS, min_size=1, max_size=4), ENCODINGS, st.booleans(), st.booleans())
    def law(pattern, texts, encoding, multiline, ignore_case):
        found, made = compiled(pattern, multiline=multiline, ignore_case=ignore_case)
        contents = [text.encode(encoding, "ignore") for text in texts]
        data, starts = bytearray(), []
        for content in contents:
            starts.append(len(data))
            data += content + b"\0"
        indices = made.texts(data, starts, len(data), lambda: None)
        assert indices == sorted(set(indices))
        search = LineSearch(found, time.monotonic() + 20)
        prefilter, buffer = Prefilter(found.plan, automaton=made), ReadBuffer(10**6)
        for index, content in enumerate(contents):
            text = decode_content(content)
            with mock.patch.object(search, "automaton", None):
                if text is None or next(search.hits(text), None) is None:
                    continue
            buffer.data[: len(content) + 1] = content + b"\0"
            buffer.length = len(content)
            assert prefilter.classify(buffer, len(content)) == content
            if is_plain_utf8(memoryview(content)):  # the other kept files are read one by one
                assert index in indices

    law()


@pytest.mark.parametrize("pattern", [r"\d", r"[\d]", r"(?i)\d", r"\d{2}"])
def test_every_digit_outside_ascii_is_found(pattern):
    made = Automaton.of(compile_pattern(pattern).byte_pattern)
    for digit in regex.findall(r"\d", OUTSIDE_ASCII):
        assert list(made.lines(f"-{digit * 2}-")) == [(0, 4)]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [(r"^(?<=\n)a", b"x\na"), (r"a(?=\n)$", b"xa\ny"), (r"(?<=b){2}a", b"ba"), (r"a(?=b){2}", b"ab")],
)
def test_a_lookaround_beside_an_anchor_or_a_repeat_takes_no_text(pattern, text):
    found = compile_pattern(pattern, multiline=True)
    made = Automaton.of(found.byte_pattern)
    assert found.expression.search(text.decode())
    assert made is None or kit.find(made, bytearray(text + b"\0"), len(text))


@part_or_all(40)
def test_hits_and_counts_are_those_without_an_automaton(every):
    @settings(max_examples=2000 // every, suppress_health_check=[HealthCheck.filter_too_much])
    @given(pattern=PATTERNS, text=TEXTS.map(lambda text: text.replace("\r", "")))
    def law(pattern, text):
        found, _ = compiled(pattern)
        answers = []
        for made in (found.byte_pattern, None):
            with mock.patch.object(automaton, "hyperscan", automaton.hyperscan if made else None):
                search, counts = LineSearch(found, time.monotonic() + 20), Counts()
            search.count(text, counts)
            answers.append((list(search.hits(text)), counts))
        assert answers[0] == answers[1]
        hits, counts = answers[0]
        assert (counts.hits, counts.matches) == (len(hits), sum(hit.matches for hit in hits))

    law()


def test_only_i_k_and_s_have_another_form_outside_ascii():
    outside = OUTSIDE_ASCII
    letters = [each for each in map(chr, range(128)) if regex.search(regex.escape(each), outside, regex.I)]
    assert "".join(letters) == "IKSiks"
    for module in (regex, re):
        assert set(module.findall("[a-zA-Z]", outside, module.I)) <= set(_OTHER_FORMS)
    assert {each for each in outside if any(map(str.isascii, each.lower()))} <= set(_OTHER_FORMS)
    assert {each for each in outside if len(each.lower()) > 1} <= set(_OTHER_FORMS)


@pytest.mark.parametrize(
    "pattern", [".{1,999}x.{1,999}", "(a?){60}a{60}", r"(?:\w+\s+){50}x", "[^a]{900}" * 2]
)
def test_compiling_an_automaton_takes_little_time(pattern):
    made = compile_pattern(pattern).byte_pattern
    began = time.process_time()
    Automaton.of(made)
    assert time.process_time() - began < 2


@pytest.mark.parametrize("watch", [False, True])
def test_a_search_finds_the_same_with_and_without_hyperscan(tmp_path, watch):
    for number, content in enumerate(CONTENTS):
        (tmp_path / f"{number}.txt").write_bytes(content)
    with Workspace(tmp_path, watch=watch, limits=Limits(timeout=20)) as ws:
        for pattern in (
            r"^\s*$",
            r"^[a-z]+_\w$",
            r"\w_d\s*$",
            "[ksi]",
            r"\S+",
            "abc|two",
            r"\Aabc",
            "_d\n|$",
            "x.",
        ):
            for options in ({}, {"ignore_case": True}, {"multiline": True}, {"word": True}):
                first, again = (ws.grep(pattern, **options) for _ in range(2))
                with mock.patch.object(automaton, "hyperscan", None):
                    without = ws.grep(pattern, **options)
                for found in (first, again):
                    assert found.to_dict() | {"elapsed_ms": 0} == without.to_dict() | {"elapsed_ms": 0}
