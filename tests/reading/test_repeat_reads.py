import re

import pytest

from agentfs import Policy, Workspace

LINES = "".join(f"line {number} of a text that is long enough\n" for number in range(1, 41))


@pytest.fixture
def ws(tmp_path):
    with Workspace(tmp_path, policy=Policy(reread="diff")) as made:
        (tmp_path / "f").write_text(LINES)
        yield made


def test_by_default_each_read_shows_the_whole_text(tmp_path):
    (tmp_path / "f").write_text(LINES)
    with Workspace(tmp_path) as ws:
        assert ws.read("f").text == ws.read("f").text


def test_an_unchanged_page_is_one_line_and_the_next_read_shows_it(ws):
    first = ws.read("f")
    again = ws.read("f")
    assert again.text == "[lines 1-40 of 40 are unchanged since shown; read again to see the text anyway]"
    assert again.content == LINES
    assert ws.read("f").text == first.text
    assert ws.read("f").text == again.text


def test_a_part_of_the_shown_lines_is_unchanged_and_a_larger_range_is_not(ws):
    ws.read("f", 1, 20)
    assert "unchanged" in ws.read("f", 5, 10).text
    assert "more: read(" in ws.read("f", 5, 10).text or "5|line" in ws.read("f", 5, 10).text
    assert "unchanged" not in ws.read("f", 15, 10).text
    assert "unchanged" in ws.read("f", 1, 20).text


def test_a_changed_page_is_the_difference_since_it_was_shown(ws, tmp_path):
    ws.read("f")
    (tmp_path / "f").write_text(LINES.replace("line 20 of", "line twenty of"))
    result = ws.read("f")
    assert result.text.startswith(
        "[lines 1-40 of 40 are changed since shown; the difference]\n@@ -17,7 +17,7 @@\n"
    )
    assert "\n-line 20 of" in result.text
    assert "\n+line twenty of" in result.text
    assert len(result.text) < len(LINES) / 2
    assert "line twenty" in result.content
    assert "unchanged" in ws.read("f").text


def test_lines_of_a_page_in_the_middle_have_their_own_numbers(ws, tmp_path):
    ws.read("f", 11, 20)
    (tmp_path / "f").write_text(LINES.replace("line 20 of", "line twenty of"))
    result = ws.read("f", 11, 20)
    assert re.search(r"^@@ -17,7 \+17,7 @@$", result.text, re.MULTILINE)


def test_a_page_is_unchanged_if_the_file_changed_elsewhere(ws, tmp_path):
    ws.read("f", 1, 10)
    (tmp_path / "f").write_text(LINES + "more\n")
    assert "unchanged" in ws.read("f", 1, 10).text


def test_a_page_whose_every_line_changed_is_shown_in_full(ws, tmp_path):
    ws.read("f")
    (tmp_path / "f").write_text("other\n" * 40)
    assert ws.read("f").text.startswith(" 1|other\n")


def test_a_short_page_is_not_replaced_by_a_longer_line(ws, tmp_path):
    (tmp_path / "g").write_text("x\n")
    assert ws.read("g").text == ws.read("g").text == "1|x"


def test_forgotten_lines_are_shown_again(ws):
    first = ws.read("f").text
    ws._read_tracker.forget()
    assert ws.read("f").text == first


def test_write_may_replace_a_file_whose_difference_was_shown(ws, tmp_path):
    ws.read("f")
    (tmp_path / "f").write_text(LINES + "more\n")
    assert "difference" in ws.read("f").text
    assert ws.write("f", "new\n").created is False
