"""The text of the result of a change: the lines that are new to the model, and warnings."""

import pytest

from agentfs import Workspace
from tests.kit import put


@pytest.fixture
def ws(tmp_path):
    (tmp_path / "a.py").write_text("".join(f"x{number} = {number}\n" for number in range(100)))
    with Workspace(tmp_path) as ws:
        ws.read("a.py", line_ids=True)
        yield ws


def ids(ws):
    return ws.read("a.py", line_ids=True).line_ids


def test_replacing_all_names_the_lines_and_repeats_nothing(ws):
    ws.write("b.py", "".join("old = 1\n" if n in {15, 436, 437} else f"x{n}\n" for n in range(500)))
    result = ws.edit("b.py", "old", "new", replace_all=True)
    assert result.text == "Edited lines 16, 437-438: 3 replacements."
    assert result.diff.count("+new = 1") == 3
    assert "+new = 1" in ws.edit("b.py", "x499", "new = 1\nx499", replace_all=True).text


def test_a_long_run_of_sent_lines_is_shown_by_its_ends(ws):
    new = "".join(f"new {number}\n" for number in range(40))
    old = "".join(f"x{number} = {number}\n" for number in range(10, 40))
    result = ws.edit("a.py", old, new)
    lines = result.text.split("\n")
    assert "[22 more lines removed]" in lines
    assert "[32 more lines added, as sent]" in lines
    assert [line for line in lines if line[0] == "+"] == [f"+new {n}" for n in (0, 1, 2, 3, 36, 37, 38, 39)]
    assert len([line for line in lines if line[0] == "-"]) == 8
    assert result.diff.count("\n+") == 40 + 1
    twelve = ws.edit("a.py", "x1 = 1\n", "".join(f"y{number}\n" for number in range(12)))
    assert "as sent" not in twelve.text


def test_a_long_line_is_shown_around_its_change(ws):
    ws.write("min.js", f"{'word ' * 300}x = 1; {'word ' * 300}\n")
    result = ws.edit("min.js", "x = 1", "x = 2")
    removed, added = result.text.split("\n")[2:4]
    assert removed.startswith("-⟦+1404 characters⟧ word ")
    assert (removed.count("x = 1"), added.count("x = 2")) == (1, 1)
    assert len(removed) < 500
    assert result.diff.count("word ") == 1200


def test_a_carriage_return_that_is_shown_is_explained(ws, tmp_path):
    (tmp_path / "mixed").write_bytes(b"a\r\nb\r\nc\n")
    assert "⟦U+000D⟧ is a carriage return" in ws.edit("mixed", "b", "B").text
    (tmp_path / "crlf").write_bytes(b"a\r\nb\r\nc\r\n")
    assert "U+000D" not in ws.edit("crlf", "b", "B").text


def test_regression_a_diff_shows_carriage_returns_only_if_line_ends_change(ws, tmp_path):
    put(tmp_path, {"crlf": b"a\r\nb\r\nc", "lf": b"a\nb\n"})
    no_end = "\n\\ No newline at end of file"
    assert ws.edit("crlf", "c", "C\nd").text.endswith(f" @@\n a\n b\n-c{no_end}\n+C\n+d{no_end}")
    ws.edit("lf", "a", "A")
    assert "U+000D" not in ws.replace("b", "B", "crlf", preview=True).text
    assert "U+000D" not in ws.changes().text
    assert ws.changes().patch.count(b"\r\n") == 3
    ws.read("crlf")
    converted = ws.write("crlf", "a\nb\nC\n", newline="given").text
    assert "-a⟦U+000D⟧\n-b⟦U+000D⟧\n" in converted
    assert "-a⟦U+000D⟧\n-b⟦U+000D⟧\n" in ws.changes().text
