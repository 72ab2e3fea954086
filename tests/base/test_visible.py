import json
import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from agentfs.base.visible import one_line, quoted, to_json, unvisible, visible
from tests.conftest import law

PIECES = (
    *("⟦U+202E⟧", "⟦", "U+", "202E", "⟧", "⟦U+27E6⟧", "⟦U+1F600⟧", "⟦U+0041⟧", "⟦U+00202E⟧", "\x1b", "\r"),
    *("\u202e", "\U000e0041", "\x85", "\u2028", "\udc80", "👨\u200d👩", "\ufe0f", "\t", "\n", "é", "x"),
)
tricky = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)

REORDERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@pytest.mark.parametrize(("text", "shown"), [
    ("plain\ttext\n", "plain\ttext\n"),
    ("\x00\x08\x0b\x1f\x7f", "⟦U+0000⟧⟦U+0008⟧⟦U+000B⟧⟦U+001F⟧⟦U+007F⟧"),
    ("a\rb", "a⟦U+000D⟧b"), ("\x80\x85\x9f\xa0", "⟦U+0080⟧⟦U+0085⟧⟦U+009F⟧\xa0"),
    ("user\u202e\u2066 //", "user⟦U+202E⟧⟦U+2066⟧ //"), ("a\u200eb\u061c", "a⟦U+200E⟧b⟦U+061C⟧"),
    ("tag\U000e0041\U000e007f", "tag⟦U+E0041⟧⟦U+E007F⟧"), ("a\u2028b", "a⟦U+2028⟧b"),
    ("👨\u200d👩\u200d👧 ❤\ufe0f", "👨\u200d👩\u200d👧 ❤\ufe0f"), ("\ufeffmid", "⟦U+FEFF⟧mid"),
    ("zero\u200bwidth\u2060\xad", "zero⟦U+200B⟧width⟦U+2060⟧⟦U+00AD⟧"),
    ("a\u200db\u200c", "a⟦U+200D⟧b⟦U+200C⟧"), ("x\ufe0f \ufe0e", "x⟦U+FE0F⟧ ⟦U+FE0E⟧"),
    ("❤\ufe0f\ufe0f\U000e0101", "❤\ufe0f⟦U+FE0F⟧⟦U+E0101⟧"),
    ("葛\U000e0100 \u3164\u115f\uffa0", "葛⟦U+E0100⟧ ⟦U+3164⟧⟦U+115F⟧⟦U+FFA0⟧"),
    ("1\ufe0f\u20e3 1\ufe0f", "1\ufe0f\u20e3 1⟦U+FE0F⟧"),
    ("👩🏽\u200d💻 🏳\ufe0f\u200d🌈 👩\u200d", "👩🏽\u200d💻 🏳\ufe0f\u200d🌈 👩⟦U+200D⟧"),
    ("می\u200cخواهم क्\u200dष", "می\u200cخواهم क्\u200dष"), ("⟦x⟧ ⟦U+⟧", "⟦x⟧ ⟦U+⟧"),
    ("⟦U+202E⟧", "⟦U+27E6⟧U+202E⟧"),
])  # fmt: skip
def test_characters_that_can_forge_text_are_shown(text, shown):
    assert visible(text) == shown
    assert unvisible(shown) == text


@law(25, 100, st.text() | tricky)
def test_unvisible_restores_the_text(text):
    assert unvisible(visible(text)) == text


@given(st.text(st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp"])) | st.text() | tricky)
def test_no_control_or_reordering_character_is_left(text):
    for character in visible(text):
        if character in "\t\n":
            continue
        assert unicodedata.category(character) not in {"Cc", "Cs", "Zl", "Zp"}
        assert unicodedata.bidirectional(character) not in REORDERING
        assert not 0xE0000 <= ord(character) <= 0xE007F


@given(st.text() | tricky)
def test_a_text_keeps_its_lines_and_a_name_its_line(text):
    assert visible(text) == "\n".join(visible(line) for line in text.split("\n"))
    for shown in (one_line(text), quoted(text), to_json(text)):
        assert not {*"\n\t"} & {*shown}
        assert visible(shown.replace("⟦", "")) == shown.replace("⟦", ""), "nothing hidden is left"
    assert unvisible(one_line(text)) == text
    assert json.loads(to_json({"text": [text]})) == {"text": [text]}


def test_every_default_ignorable_is_shown():
    ignorable = regex.compile(r"\p{Default_Ignorable_Code_Point}")
    every = ignorable.findall("".join(map(chr, range(0x110000))))
    assert [ascii(each) for each in every if visible(each) == each] == []


def test_every_emoji_keeps_its_selector_and_its_joiner():
    assigned = regex.compile(r"(?=\P{Cn})\p{Extended_Pictographic}")  # versions of Unicode differ in others
    for picture in assigned.findall("".join(map(chr, range(0x80, 0x110000)))):
        text = f"{picture}\ufe0f\u200d{picture}"
        assert visible(text) == text, f"U+{ord(picture):04X}"


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.full)])
def test_every_single_character_is_restored(every):
    for code in range(0, 0x110000, every):
        character = chr(code)
        shown = visible(character)
        if shown != character:
            assert shown == f"⟦U+{code:04X}⟧"
            assert unvisible(shown) == character


@pytest.mark.parametrize("text", [
    "⟦U+0041⟧", "⟦U+110000⟧", "⟦U+FFFFFF⟧", "⟦U+00202E⟧", "⟦U+202e⟧", "⟦U+00E9⟧",
])  # fmt: skip
def test_an_escape_that_visible_never_writes_stays(text):
    assert unvisible(text) == text
