"""The text of the result of a change: the lines that are new to the model, and warnings."""

import re
import sysconfig
from pathlib import Path

import pytest

from agentfs import Edit, LineChange, Workspace
from agentfs.editing.rendering import placeholder_notes

PLACEHOLDERS = [
    "# ... existing code ...",
    "    # ... existing code ...",
    "// ... rest of the file",
    "(rest of methods ...)",
    "<!-- unchanged -->",
    "<!-- ... rest of the page ... -->",
    "{/* ... existing JSX ... */}",
    "/* ... existing imports ... */",
    "# rest of the code remains the same",
    "... rest of file unchanged ...",
    "// … other methods remain the same",
    "[... rest of the code ...]",
    "# (rest of the implementation unchanged)",
    "-- existing code here",
    "// rest of the class unchanged",
]
NO_PLACEHOLDERS = [
    "...",
    "# ...",
    "    ...",
    "[...rest]",
    "...rest,",
    "# the same as above",
    "# rest of the arguments are passed to the command",
    "print('... existing code ...')",
    "# Existing files are replaced.",
    "The rest of the file is ignored.",
    "['keep-existing', 'keep'],",
]


@pytest.fixture
def ws(tmp_path):
    (tmp_path / "a.py").write_text("".join(f"x{number} = {number}\n" for number in range(100)))
    with Workspace(tmp_path) as ws:
        ws.read("a.py", line_ids=True)
        yield ws


def ids(ws):
    return ws.read("a.py", line_ids=True).line_ids


CHANGES = {
    "write": lambda ws, line: ws.write("a.py", f"a\n{line}\nb\n"),
    "create": lambda ws, line: ws.write("new.py", f"a\n{line}\nb\n"),
    "edit": lambda ws, line: ws.edit("a.py", "x5 = 5\n", f"{line}\nx5 = 6\n"),
    "multi_edit": lambda ws, line: ws.multi_edit("a.py", [Edit("x5 = 5\n", "y\n"), Edit("y\n", f"{line}\n")]),
    "edit_lines": lambda ws, line: ws.edit_lines("a.py", [LineChange(line_id=ids(ws)[3], new_content=line)]),
    "replace": lambda ws, line: ws.replace("x5 = 5", line),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_placeholder_is_written_with_a_warning(ws, tmp_path, change):
    result = CHANGES[change](ws, PLACEHOLDERS[0])
    (warning,) = result.notes
    assert '"# ... existing code ..." looks like a placeholder' in warning
    assert warning in result.text
    assert PLACEHOLDERS[0] in (tmp_path / ("new.py" if change == "create" else "a.py")).read_text()


@pytest.mark.parametrize("line", PLACEHOLDERS)
def test_each_form_of_a_placeholder_is_recognised(ws, line):
    assert any(line.strip() in note for note in ws.write("new.py", f"a\n{line}\n").notes)


@pytest.mark.parametrize("line", NO_PLACEHOLDERS)
def test_similar_text_gives_no_placeholder_warning(ws, line):
    assert ws.write("new.py", f"a\n{line}\n").notes == ()


def test_a_placeholder_that_the_old_text_had_gives_no_warning(ws):
    ws.write("new.py", "a\n# ... existing code ...\nb\n")
    assert ws.edit("new.py", "# ... existing code ...\nb", "  # ... existing code ...\nc").notes == ()
    assert ws.write("new.py", "z\n# ... existing code ...\n").notes == ()


def test_the_standard_library_has_no_line_that_looks_like_a_placeholder():
    files = [path for path in Path(sysconfig.get_path("stdlib")).glob("*.py") if path.is_file()]
    lines = "".join(path.read_text(errors="replace") for path in files)
    assert lines.count("\n") > 50_000
    assert placeholder_notes(re.sub("(?m)^", "+", lines)) == []


def test_the_mark_of_a_cut_line_is_written_with_a_warning(ws):
    (warning,) = ws.edit("a.py", "x5 = 5", "x5 = '⟦+120 characters⟧'").notes
    assert "⟦+120 characters⟧" in warning
    assert ws.edit("a.py", "'⟦+120 characters⟧'", "('⟦+120 characters⟧')").notes == ()


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
    (tmp_path / "crlf").write_bytes(b"a\r\nb\r\nc")
    (tmp_path / "lf").write_bytes(b"a\nb\n")
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
