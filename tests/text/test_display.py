import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfs.text.display import cut_line, footer, numbered
from tests.conftest import lines_of


@pytest.mark.parametrize(("lines", "first", "shown"), [
    ([], 1, []),
    (["a\n", "b"], 1, ["1|a", "2|b"]),
    (["a\r\n", "b\r\n"], 9, [" 9|a", "10|b"]),
    (["a\r", "b\r"], 99, [" 99|a", "100|b"]),
    (["a\r\n", "b\r"], 1, ["1|a", "2|b⟦U+000D⟧"]),
    (["\r\r\n"], 1, ["1|⟦U+000D⟧"]),
    (["\n", ""], 1, ["1|", "2|"]),
    (["9|forged\x1b[2K\n"], 5, ["5|9|forged⟦U+001B⟧[2K"]),
])  # fmt: skip
def test_lines_are_numbered_without_their_ends(lines, first, shown):
    assert numbered(lines, first) == shown


def test_a_width_can_be_given():
    assert numbered(["a\n"], 7, width=4) == ["   7|a"]


@given(st.integers(1, 2000), st.integers(0, 300))
def test_numbers_are_aligned_to_the_widest(first, count):
    shown = numbered(["x\n"] * count, first)
    width = len(str(first + count - 1))
    assert shown == [f"{number:>{width}}|x" for number in range(first, first + count)]


@given(st.text(), st.integers(1, 10**6))
def test_content_forges_no_line(text, first):
    lines = lines_of(text)
    shown = "\n".join(numbered(lines, first))
    assert len(shown.splitlines()) == len(lines)


@pytest.mark.parametrize(("line", "limit", "cut"), [
    ("abc\n", 3, "abc\n"),
    ("abc\r\n", 3, "abc\r\n"),
    ("abcd\n", 3, "abc⟦+1 character⟧\n"),
    ("abcdef", 2, "ab⟦+4 characters⟧"),
    ("abcdef\r\n", 2, "ab⟦+4 characters⟧\r\n"),
])  # fmt: skip
def test_a_cut_line_ends_in_the_number_of_missing_characters(line, limit, cut):
    assert cut_line(line, limit) == cut


def test_characters_that_were_not_loaded_are_counted():
    assert cut_line("abc", 3, beyond=10) == "abc⟦+10 characters⟧"
    assert cut_line("abcd", 3, beyond=2) == "abc⟦+3 characters⟧"


def test_a_footer_joins_its_parts_and_is_empty_without_any():
    assert footer("a", "", "b") == "[a; b]"
    assert footer("", "") == footer() == ""
