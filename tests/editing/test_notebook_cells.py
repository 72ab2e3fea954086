"""Edits of notebooks by their text: what changes in the JSON, and what is refused."""

import json
import re

import pytest
from hypothesis import assume, example
from hypothesis import strategies as st

from agentfs.editing.draft import Draft
from agentfs.editing.edit import apply_edits
from agentfs.fs import Current
from agentfs.limits import Limits
from agentfs.results import Edit
from tests import kit
from tests.conftest import law
from tests.kit import refused

PLACEHOLDER = "the source of the edited cell"
LETTERS = 'ab \n\t"\\/é€😀\u2028\x00\x1b{}[],:n'


def code(source, *, outputs=()):
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}}
    return {**cell, "outputs": list(outputs), "source": source}


def notebook(*cells):
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 4}


def printed(text):
    return {"output_type": "stream", "name": "stdout", "text": [text]}


@pytest.fixture
def book(tmp_path):
    cells = (
        code(["x = 1\n", "y = 2"], outputs=[printed("2\n")]),
        {"cell_type": "markdown", "metadata": {}, "source": ["# Données\n", "x = 1"]},
        code(["print(x)"]),
    )
    path = tmp_path / "book.ipynb"
    path.write_text(json.dumps(notebook(*cells), indent=1, ensure_ascii=False) + "\n")
    return path


def sources(path):
    return ["".join(cell["source"]) for cell in json.loads(path.read_bytes())["cells"]]


STYLES = st.fixed_dictionaries(
    {"indent": st.sampled_from([None, 1, 2, 4, "\t"]), "ensure_ascii": st.booleans()}
)


@st.composite
def edits_of_cells(draw):
    """A notebook as bytes, the bytes around the source of one cell, an edit of the cell, and its new text."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    texts = draw(st.lists(st.text(LETTERS, max_size=20), min_size=1, max_size=4))
    number = draw(st.integers(0, len(texts) - 1))
    text = texts[number]
    assume(text)
    start = draw(st.integers(0, len(text) - 1))
    end = draw(st.integers(start + 1, len(text)))
    old, new = text[start:end], draw(st.text(LETTERS.replace("\x00", ""), max_size=12))
    everywhere = "\n\n".join(f"{each}\n" if each else "" for each in texts)
    assume(len(re.findall(f"(?={re.escape(old)})", everywhere)) == 1 and old != new)  # overlaps count
    in_lists = draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    cells = []
    for each, in_list in zip(texts, in_lists, strict=True):
        lines = re.findall(r"[^\n]*\n|[^\n]+", each)
        source = [line.replace("\n", newline) for line in lines] if in_list else each.replace("\n", newline)
        members = list(code(source, outputs=[printed("an output")]).items())
        cells.append(dict(draw(st.permutations(members))))
    style = draw(STYLES)
    final = draw(st.sampled_from(["", "\n", "\r\n "]))
    bom = draw(st.sampled_from(["", "\ufeff"]))
    data = f"{bom}{json.dumps(notebook(*cells), **style)}{final}".encode()
    cells[number] = {**cells[number], "source": PLACEHOLDER}
    around = f"{bom}{json.dumps(notebook(*cells), **style)}{final}".encode()
    edit = Edit(old, new)
    return data, around.split(json.dumps(PLACEHOLDER).encode()), number, edit, text[:start] + new + text[end:]


@law(30, 100, edits_of_cells())
def test_an_edit_changes_only_the_source_of_one_cell(case):
    data, (before, after), number, edit, expected = case
    draft = Draft(Current("a.ipynb", "a.ipynb", data, None), Limits())
    edited = apply_edits(draft, [edit], "exact").data
    assert edited.startswith(before)
    assert edited.endswith(after)
    old, new = (json.loads(content.decode("utf-8-sig")) for content in (data, edited))
    was, source = old["cells"][number].pop("source"), new["cells"][number].pop("source")
    assert new == old
    assert "".join(source).replace("\r\n", "\n") == expected
    assert type(source) is type(was)
    if isinstance(source, list):
        assert all("\n" not in line[:-1] for line in source)
    if "\r\n" in "".join(was):
        assert "".join(source).count("\n") == "".join(source).count("\r\n")


@law(30, 100, st.lists(st.text("abé\n", max_size=12), min_size=1, max_size=4),
     st.text("abé", min_size=1, max_size=2), st.text("abé\n", max_size=3), st.sampled_from([None, 1]),
     st.booleans())  # fmt: skip
@example(["a\n", "a"], "a", "", None, True)
def test_replacing_all_changes_each_occurrence_in_every_cell(texts, old, new, indent, in_lists):
    assume(old != new and any(old in text for text in texts))
    made = [code(text.splitlines(keepends=True) if in_lists else text) for text in texts]
    data = json.dumps(notebook(*made), indent=indent).encode()
    draft = Draft(Current("a.ipynb", "a.ipynb", data, None), Limits())
    edited = json.loads(apply_edits(draft, [Edit(old, new, True)], "exact").data)
    assert ["".join(cell.pop("source")) for cell in edited["cells"]] == [t.replace(old, new) for t in texts]


@pytest.mark.parametrize("json_text", [
    r'{"cells":[{"source":"one \u0022two\"\n"}]}', '{"cells" :[{"source":"one"}]}',
    '{"cells": [{"source": ["on", "e"]}]}', '{"cells": [{"source": "one\\r\\ntwo\\n"}]}',
    '{"cells": 3, "cells": [{"source": "one"}]}',
])  # fmt: skip
def test_json_that_cannot_be_written_back_is_edited_raw_only(ws, tmp_path, json_text):
    """A notebook is written anew, so its other bytes must come out as they were."""
    path = tmp_path / "a.ipynb"
    path.write_text(json_text)
    assert "raw=true" in refused(lambda: ws.edit("a.ipynb", "one", "1"), "invalid_content").hint
    assert path.read_text() == json_text


@pytest.mark.parametrize(("lines", "old", "new", "expected"), [
    (["a\n", "b\n", "c"], "b\n", "", ["a\n", "c"]), (["a\n", "b\n", "c"], "a\nb", "x", ["x\n", "c"]),
    (["a\n", "b\n", "c"], "b\nc\n", "b\nc\nd\n", ["a\n", "b\n", "c\n", "d"]),
    (["a\n", "b\n", "c"], "a\n", "a\nx\ny\n", ["a\n", "x\n", "y\n", "b\n", "c"]),
    (["a\n", "b\n", "c"], "c", "c\n", ["a\n", "b\n", "c\n"]),
    (["a\n", "b\n"], "b\n", "b\nc", ["a\n", "b\n", "c"]),
    (["a"], "a\n", "b\nc\n", ["b\n", "c"]),  # and nothing goes to the next cell
])  # fmt: skip
@pytest.mark.parametrize("indent", [None, 1])
def test_a_source_of_lines_stays_one(ws, tmp_path, lines, old, new, expected, indent):
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps(notebook(code(lines), code(["z\n", "z"])), indent=indent))
    # With the header, the text is in one cell only.
    ws.edit("a.ipynb", old, new)
    assert path.read_text() == json.dumps(notebook(code(expected), code(["z\n", "z"])), indent=indent)


def test_old_outputs_are_kept(ws, book):
    result = ws.edit("book.ipynb", "y = 2", 'y = "3"\nz = 4')
    assert result.text.startswith("Edited lines 3-4.\n@@ -1,6 +1,7 @@\n === cell 1, code\n x = 1\n-y = 2\n")
    assert json.loads(book.read_text())["cells"][0]["outputs"] == [printed("2\n")]
    assert '+    "y = \\"3\\"\\n",' in result.diff


def test_an_edit_does_not_touch_what_only_looks_like_its_text(ws, tmp_path):
    """Before, an edit replaced text of the JSON, such as an output, and could leave the source as it was."""
    path = tmp_path / "a.ipynb"
    outputs = [printed("total = 2\n"), printed("total = 1\n")]  # which do not make the source ambiguous
    cells = (code(["total = 1"], outputs=outputs), code(['s = "a\\nb"\n', "t = 1"]))
    path.write_text(json.dumps(notebook(*cells), indent=1))
    error = refused(lambda: ws.edit("a.ipynb", "total = 2", "total = 3"))
    assert "is in line 3" in error.message
    assert "not in the source of one cell" in error.message
    ws.edit("a.ipynb", 's = "a\\nb"\nt = 1', 's = "\\t"\nt = 2')
    ws.edit("a.ipynb", "total = 1", "total = 3")
    assert sources(path) == ["total = 3", 's = "\\t"\nt = 2']


@pytest.mark.parametrize("old", ["y = 2\n> 2", "=== cell 2, markdown", "x = 1\n=== cell 3, code\nprint(x)"])
def test_headers_outputs_and_several_cells_are_not_edited(ws, book, old):
    before = book.read_bytes()
    error = refused(lambda: ws.edit("book.ipynb", old, "new"))
    assert "not in the source of one cell" in error.message
    assert "raw=true" in error.hint
    assert book.read_bytes() == before


def test_an_ambiguous_text_is_named_by_its_lines(ws, book):
    error = refused(lambda: ws.edit("book.ipynb", "x = 1", "x = 2"), "ambiguous")
    assert error.details["lines"] == [2, 7]
    ws.edit("book.ipynb", "x = 1\ny", "x = 10\ny")
    assert sources(book)[:2] == ["x = 10\ny = 2", "# Données\nx = 1"]


@pytest.mark.parametrize(("old", "cause"), [
    ("2|x = 1\n3|y = 2", "line_numbers_included"), ("x = 1\ny = 3", "near"), ("x=1\ny=2", "whitespace"),
])  # fmt: skip
def test_a_miss_suggests_text_of_one_cell(ws, book, old, cause):
    error = refused(lambda: ws.edit("book.ipynb", old, "new"))
    assert error.details["cause"] == cause
    assert ws.edit("book.ipynb", error.details["suggestion"], "new").replacements == 1


def test_tolerant_matching_works_in_a_cell(ws, book):
    assert ws.edit("book.ipynb", "x = 1  \ny = 2", "x = 1\ny = 3").applied_via == "trailing_whitespace"
    assert sources(book)[0] == "x = 1\ny = 3"


def test_a_cell_that_another_program_changed_is_explained(ws, book):
    ws.read("book.ipynb")
    book.write_text(book.read_text().replace("y = 2", "y = 20"))
    error = refused(lambda: ws.edit("book.ipynb", "y = 2\n", "y = 3\n"))
    assert error.details["cause"] == "changed_since_shown"
    result = ws.edit("book.ipynb", "print(x)", "print(y)")
    assert "had changed since it was shown: before this edit, line 3" in result.text


def test_several_edits_are_made_in_order(ws, book):
    edits = [Edit("y = 2", "y = x\nz = x"), Edit("z = x", "z = y"), Edit("x = 1", "x = 5", True)]
    ws.multi_edit("book.ipynb", edits)
    assert sources(book)[:2] == ["x = 5\ny = x\nz = y", "# Données\nx = 5"]
    edits = [Edit("z = y", "z = 1"), Edit("z = y", "z = 2")]
    assert "Edit 2 of 2" in str(refused(lambda: ws.multi_edit("book.ipynb", edits)))


def test_a_preview_and_a_transaction_apply_to_cells(ws, book):
    before = book.read_bytes()
    assert "line 9" in ws.edit("book.ipynb", "print(x)", "x", preview=True).text
    assert book.read_bytes() == before
    with ws.transaction() as inner:
        inner.edit("book.ipynb", "print(x)", "x")
        inner.multi_edit("book.ipynb", [Edit("y = 2", "y = 3")])
    assert sources(book) == ["x = 1\ny = 3", "# Données\nx = 1", "x"]
    ws.undo()
    assert book.read_bytes() == before


def test_a_model_edits_the_rest_of_a_notebook_as_json(ws, book):
    tools = ws.tools()
    change = {"old_string": '"nbformat_minor": 4', "new_string": '"nbformat_minor": 5'}
    metadata = {"path": "book.ipynb", **change}
    assert not tools.call("edit", metadata).success
    assert "nbformat_minor" in tools.call("read", {"path": "book.ipynb", "raw": True}).content
    assert tools.call("edit", {**metadata, "raw": True}).success
    assert json.loads(book.read_text())["nbformat_minor"] == 5
    edits = [{"old_string": '"print(x)"', "new_string": ""}]
    assert tools.call("multi_edit", {"path": "book.ipynb", "edits": edits, "raw": True}).success
    assert sources(book)[2] == ""


@pytest.mark.parametrize("raw", [False, True])
def test_a_partly_read_notebook_stays_partly_read_after_an_edit(ws, tmp_path, raw):
    """Before, an edit of a notebook of one line made the cells that were not shown count as read."""
    path = tmp_path / "a.ipynb"
    # A raw edit of one line would show all of it in its diff.
    cells = notebook(code(["a = 1"]), code(["b = 1"]), code(["c = 1"]))
    path.write_text(json.dumps(cells, indent=1 if raw else None))
    ws.read("a.ipynb", limit=1)
    ws.edit("a.ipynb", "a = 1", "a = 2", raw=raw)
    error = refused(lambda: ws.write("a.ipynb", '{"cells": []}'), "unread")
    if not raw:
        assert error.details["unread_lines"] == [[6, 6]]
        ws.read("a.ipynb", 2)
        assert ws.write("a.ipynb", '{"cells": []}')


def test_replace_changes_the_text_of_cells(ws, book, tmp_path):
    """`replace` of `source` renamed a key of the JSON, which left a notebook without texts."""
    (tmp_path / "a.py").write_text("x = 1\n")
    before = json.loads(book.read_bytes())
    done = ws.replace("x", 'the "x"\n', word=True)
    assert done.files == {"a.py": 1, "book.ipynb": 3}
    assert sources(book) == ['the "x"\n = 1\ny = 2', '# Données\nthe "x"\n = 1', 'print(the "x"\n)']
    after = json.loads(book.read_bytes())
    ws.replace(r"y = (\d)", r'y = "\1"', "book.ipynb", regex=True)
    assert sources(book)[0] == 'the "x"\n = 1\ny = "2"'
    for old, new in zip(before["cells"], after["cells"], strict=True):
        assert {**new, "source": ""} == {**old, "source": ""}


@pytest.mark.parametrize(("content", "problem"), [
    ("print(1)\n", "its JSON is broken"), ("[]", "it has no list of cells"), ('{"a": 1}', "no list of cells"),
])  # fmt: skip
def test_a_write_of_no_notebook_warns_or_is_refused(ws, book, content, problem):
    written = ws.write("new.ipynb", content)
    assert any("not a notebook" in note and problem in note for note in written.notes)
    before = book.read_bytes()
    ws.read("book.ipynb", raw=True)
    error = refused(lambda: ws.write("book.ipynb", content), "invalid_content")
    refused(lambda: ws.write("book.ipynb", content, preview=True), "invalid_content")
    refused(lambda: kit.splice(ws, "book.ipynb", [(0, 1, "[")]), "invalid_content")
    assert "To change the text of a cell, call edit." in str(error)
    assert book.read_bytes() == before
    for name, good in {"empty.ipynb": "", "other.ipynb": json.dumps(notebook(code(["x"])))}.items():
        assert ws.write(name, good).notes == ()


BREAKING = 'y = 2\nz = "q"'


def test_a_raw_edit_may_break_a_notebook_and_a_broken_one_may_be_edited(ws, book):
    good = book.read_text()
    ws.edit("book.ipynb", "y = 2", BREAKING, raw=True)
    ws.edit("book.ipynb", BREAKING, "y = 2", True, raw=True)
    ws.multi_edit("book.ipynb", [{"old_string": "y = 2", "new_string": BREAKING}], raw=True)
    assert BREAKING in book.read_text()
    book.write_text(good.replace('"cells"', "cells"))
    ws.edit("book.ipynb", "y = 2", BREAKING)
    ws.edit("book.ipynb", BREAKING, "y = 2")
    ws.edit("book.ipynb", "cells", '"cells"')
    assert book.read_text() == good


PATCH = '*** Begin Patch\n*** Update File: book.ipynb\n@@\n-y = 2\n+y = 2\n+z = "q"\n*** End Patch'
CHANGE = {"old_string": "y = 2", "new_string": BREAKING}
CALLS = {
    "agentfs": ("edit", {"path": "book.ipynb", **CHANGE}),
    "wave": ("Edit", {"file_path": "book.ipynb", **CHANGE}),
    "codescout": ("edit_file", {"path": "book.ipynb", **CHANGE}),
    "text-editor": ("str_replace_based_edit_tool",
        {"command": "str_replace", "path": "book.ipynb", "old_str": "y = 2", "new_str": BREAKING}),
    "apply-patch": ("apply_patch", {"input": PATCH}),
}  # fmt: skip


@pytest.mark.parametrize("dialect", CALLS)
def test_every_dialect_edits_the_cells_of_a_notebook(book, dialect, ws):
    name, arguments = CALLS[dialect]
    tools = ws.tools(dialect=dialect)
    tools.call("Read" if dialect == "wave" else "read", {"file_path": "book.ipynb"})
    assert tools.call(name, arguments).success
    assert sources(book)[0] == f"x = 1\n{BREAKING}"
