"""A miss whose cause is `near` names the most similar lines, and suggests a single one."""

from pathlib import Path

import pytest

from agentfs import Edit, Policy
from tests.kit import refused

THREE = "self.x = 0\nself.y = 0\nself.z = 0\n"
CLASS = "class A:\n    def render(self, x):\n        return value\n\n    def other(self):\n        pass\n"


def no_match(ws, old, new="something else"):
    return refused(lambda: ws.edit("f", old, new), "no_match")


def missed(ws, text, old, new="something else"):
    """Return the error of a miss. One line further down, only the numbers of its lines are others."""
    found = []
    for above in (1, 0):
        Path(ws.root, "f").write_text("\n" * above + text)
        error = no_match(ws, old, new)
        lines = [number - above for number in error.details.get("lines", ())]
        found.append((error.details["cause"], lines, error.details.get("suggestion")))
    assert found[0] == found[1]
    return error


@pytest.mark.parametrize(("text", "old", "line", "suggestion"), [
    (THREE, "self.z = None", 3, "self.z = 0"), (THREE, "self.y = None\n", 2, "self.y = 0\n"),
    ("i += 1\nj += 1\nk += 1\n", "j += 2", 2, "j += 1"), (CLASS, "def renderr(", 2, "def render("),
    (CLASS, "Def render(", 2, "def render("), (CLASS, "Def Render(self, X)", 2, "def render(self, x)"),
    (CLASS, "returns value", 3, "return value"), (CLASS, "def othr(self):", 5, "def other(self):"),
    ("x" * 900 + "\n" + CLASS, "def renderr(", 3, "def render("),
    ("\u0130\u0130\u0130 x\nName = 1\n", "name = 1", 2, "Name = 1"),  # whose lower case is longer
])  # fmt: skip
def test_the_most_similar_line_is_suggested_with_the_part_that_is_meant(ws, text, old, line, suggestion):
    details = missed(ws, text, old).details
    assert (details["cause"], details["lines"][0], details["suggestion"]) == ("near", line, suggestion)
    assert ws.edit("f", suggestion, "something else").applied_via == "exact"


@pytest.mark.parametrize(("text", "old", "lines"), [
    (THREE, "self.w = 0", [[1, 1], [2, 2], [3, 3]]),
    ("a = 1\nb = 2\na = 1\nb = 3\n", "a = 1\nb = 4\n", [[1, 2], [3, 4]]),
])  # fmt: skip
def test_equally_similar_lines_are_all_named_and_none_is_suggested(ws, text, old, lines):
    details = missed(ws, text, old).details
    assert (details["cause"], details["all_lines"]) == ("near", lines)
    assert "suggestion" not in details


def test_the_most_similar_block_is_suggested_if_equally_many_lines_are_equal(ws):
    text = "start\nvalue = first\nstop\n" + "other\n" * 5 + "start\nvalue = second\nstop\n"
    error = missed(ws, text, "start\nvalue = secnd\nstop")
    assert (error.details["lines"], error.details["suggestion"]) == ([9, 11], "start\nvalue = second\nstop")
    assert "offset=4" in error.hint


def test_an_already_inserted_line_is_found_among_repeated_lines(ws):
    lines = ["@skip_if_traced", "@needs_network", "def test_{}(self):", "    self.run({})", ""]
    block = "\n".join(lines)
    text = "".join(block.format(n, n) for n in range(3))
    inserted = block.replace("def", "@slow\ndef")
    old, new = block.format(1, 1), inserted.format(1, 1)
    assert missed(ws, text.replace(old, new), old, new).details["cause"] == "already_applied"


def test_the_named_lines_are_the_shown_lines(ws):
    """The blank line after the three was named too, because old_string ends with a line end."""
    error = missed(ws, CLASS, "class A:\n    def rendr(self, x):\n        return value\n")
    assert "; lines 1-3 come closest:" in error.message
    assert error.details["lines"] == [1, 3]


def shown_line(ws, number):
    return ws.read("f", number, 1).text.split("\n")[0].split("|", 1)[1]


def test_a_line_is_suggested_for_an_old_text_with_the_mark_of_a_cut_line(ws, tmp_path):
    (tmp_path / "f").write_text(f"x = 1\na = [{', '.join(map(str, range(1000)))}]\ny = 2\n")
    shown = shown_line(ws, 2)
    error = no_match(ws, f"x = 1\n{shown}", "x = 1\na = []")
    assert (error.details["cause"], error.details["lines"]) == ("near", [1, 2])
    ws.edit("f", error.details["suggestion"], "x = 1\na = []")
    assert (tmp_path / "f").read_text() == "x = 1\na = []\ny = 2\n"
    # A new text with the mark would lose the rest of the line.
    (tmp_path / "f").write_text("b" * 3000)
    assert "suggestion" not in no_match(ws, shown_line(ws, 1), f"c{shown_line(ws, 1)}").details


def test_a_mark_in_the_file_itself_is_text(ws, tmp_path):
    (tmp_path / "f").write_text("x = '⟦+12 characters⟧'\n")
    ws.edit("f", "⟦+12 characters⟧", "y")
    assert (tmp_path / "f").read_text() == "x = 'y'\n"


@pytest.mark.parametrize(("text", "old", "new", "after"), [
    (b"a\r\nb\r\nc\n", "b⟦U+000D⟧", "B⟦U+000D⟧", b"a\r\nB\r\nc\n"),
    (b"a\r\nb\r\nc\n", "a⟦U+000D⟧\nb⟦U+000D⟧\nc", "A⟦U+000D⟧\nb⟦U+000D⟧\nc", b"A\r\nb\r\nc\n"),
    (b"a\r\nb\r\nc\n", "b⟦U+000D⟧\n", "B\n", b"a\r\nB\r\nc\n"),
    (b"d\nc\nd\r", "d⟦U+000D⟧", "D⟦U+000D⟧", b"d\nc\nD\r"),  # it ends no line
])  # fmt: skip
def test_a_carriage_return_copied_from_a_diff_is_accepted(ws, tmp_path, text, old, new, after):
    (tmp_path / "f").write_bytes(text)
    assert ws.edit("f", old, new).applied_via == "visible_escapes"
    assert (tmp_path / "f").read_bytes() == after


def test_visible_escapes_in_an_old_text_are_read_as_characters_in_explanations(ws, tmp_path):
    """Nothing was close to an old text with `⟦U+0085⟧` at two places, or beside a mistake."""
    (tmp_path / "f").write_bytes(b"x \x85 = 1\ny \x85 = 2\n\xe9\n")
    assert refused(lambda: ws.edit("f", "⟦U+0085⟧", "-"), "ambiguous").details["count"] == 2
    error = no_match(ws, "y ⟦U+0085⟧  = 2", "-")
    assert (error.details["cause"], error.details["lines"]) == ("whitespace", [2, 2])
    ws.edit("f", error.details["suggestion"], "-")
    assert (tmp_path / "f").read_bytes() == b"x \x85 = 1\n-\n\xe9\n"
    (tmp_path / "f").write_bytes(b"x \x85 = 1\ny \x85 = 2\n\xe9\n")
    exact = ws.view(policy=Policy(match="exact"))
    refused(lambda: exact.edit("f", "⟦U+0085⟧", "⟦U+0085⟧!", replace_all=True))
    result = ws.edit("f", "⟦U+0085⟧", "⟦U+0085⟧!", replace_all=True)
    assert (result.replacements, result.applied_via) == (2, "visible_escapes")
    assert (tmp_path / "f").read_bytes() == b"x \x85! = 1\ny \x85! = 2\n\xe9\n"


@pytest.mark.parametrize(("text", "old"), [
    ("import time\nfrom django import timezone\nfrom x import timezone\n", "import  time\n"),
    ("import time\n'import time', 1\n", "import  time\n"),
])  # fmt: skip
def test_a_text_with_other_white_space_is_not_found_inside_a_word_or_line(ws, text, old):
    error = missed(ws, text, old)
    assert (error.details["cause"], error.details["lines"]) == ("whitespace", [1, 1])
    assert error.details["suggestion"] == old.replace("  ", " ")


@pytest.mark.parametrize(("text", "old", "new", "cause"), [
    ("def f():\n    pass\n", "foo()", "pass", "absent"),  # it is there by chance
    ("x  = 1\nx = 2\n", "x = 1", "x = 2", "whitespace"), ("X = 1\nx = 2\n", "x = 1", "x = 2", "near"),
    ("x = 21\n", "x = 1", "x = 2", "near"),  # a part of a word
])  # fmt: skip
def test_an_edit_with_a_better_explanation_is_not_reported_as_already_applied(ws, text, old, new, cause):
    assert missed(ws, text, old, new).details["cause"] == cause


def test_a_multi_edit_succeeds_without_the_edit_that_is_already_applied(ws, tmp_path):
    edits = [Edit(f"name{n} = 'old'", f"name{n} = 'new'") for n in range(3)]
    (tmp_path / "f").write_text("name0 = 'old'\nname1 = 'new'\nname2 = 'old'\n")
    error = refused(lambda: ws.multi_edit("f", edits), "no_match")
    assert "leave this one out and pass the others again" in str(error)
    assert ws.multi_edit("f", edits[::2]).replacements == 2


@pytest.mark.parametrize(("text", "old", "shown"), [
    ("cafe\u0301 = 1\n", "caf\u00e9 = 1", "⟦U+0301⟧"), ("x = cafe\u0301 + 1\n", "caf\u00e9", "⟦U+0301⟧"),
    ("a\u200bb = 1\n", "ab = 1", "⟦U+200B⟧"), ("x = '\u00adname'\n", "x = 'name'", "⟦U+00AD⟧"),
])  # fmt: skip
def test_regression_a_difference_that_cannot_be_seen_is_made_visible(ws, text, old, shown):
    """Two lines that look equal were shown, with the advice to copy exactly."""
    error = missed(ws, text, old, "new")
    assert error.details["cause"] == "near"
    assert any(shown in place for place in error.places())
    assert ws.edit("f", error.details["suggestion"], "new").replacements == 1


def test_regression_the_beginning_of_a_longer_line_is_not_other_white_space(ws):
    """The suggestion ended in the middle of a comment, and the edit would have cut it in two."""
    text = "def f():\n    x = 1  # the first value\n    return x\n"
    error = missed(ws, text, "def f():\n  x = 1  # the first", "new")
    assert error.details["cause"] == "near"
    assert error.details["suggestion"].endswith("value")
