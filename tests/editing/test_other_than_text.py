"""Edits of files that `read` does not show as text: notebooks, PDFs, images and other binaries."""

import json

import pytest

from agentfs import AgentFSError, Workspace
from agentfs.errors import BinaryError, InvalidContentError
from tests import kit
from tests.reading.conftest import make_image
from tests.reading.test_pdf import pdf

BREAKING = 'y = 2\nz = "q"'


def notebook(*sources):
    cells = [
        {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": source.splitlines(keepends=True),
        }
        for source in sources
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, indent=1) + "\n"


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.ipynb"
    path.write_text(notebook("x = 1\ny = 2", "print(x)"))
    return path


def write(ws, **more):
    ws.read("book.ipynb")
    return ws.write("book.ipynb", BREAKING, **more)


REPLACEMENTS = {
    "text": (lambda ws, **more: ws.replace("y = 2", BREAKING, **more), f"x = 1\n{BREAKING}"),
    "pattern": (
        lambda ws, **more: ws.replace(r"y = (\d)", r'y = "\1"', regex=True, **more),
        'x = 1\ny = "2"',
    ),
}
WAYS = {
    "preview": lambda ws: write(ws, preview=True),
    "splice": lambda ws: kit.splice(ws, "book.ipynb", [(0, 1, "[")]),
    "write": write,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_change_that_would_break_a_notebook_is_refused(ws, book, way):
    before = book.read_bytes()
    with pytest.raises(InvalidContentError) as caught:
        WAYS[way](ws)
    assert book.read_bytes() == before
    assert "book.ipynb" in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda ws: ws.edit("book.ipynb", "y = 2", BREAKING, raw=True),
        lambda ws: ws.edit("book.ipynb", "y = 2", BREAKING, True, raw=True),
        lambda ws: ws.multi_edit("book.ipynb", [{"old_string": "y = 2", "new_string": BREAKING}], raw=True),
    ],
)
def test_a_raw_edit_may_break_a_notebook(ws, book, change):
    change(ws)
    assert BREAKING in book.read_text()


def test_a_broken_notebook_may_be_edited(ws, book):
    good = book.read_text()
    book.write_text(good.replace('"cells"', "cells"))
    ws.edit("book.ipynb", "y = 2", BREAKING)
    ws.edit("book.ipynb", BREAKING, "y = 2")
    ws.edit("book.ipynb", "cells", '"cells"')
    assert book.read_text() == good


@pytest.mark.parametrize("name", REPLACEMENTS)
def test_a_replacement_changes_a_cell(ws, book, tmp_path, name):
    replace, expected = REPLACEMENTS[name]
    before = book.read_bytes()
    (tmp_path / "a.py").write_text("y = 2\n")
    replace(ws)
    cells = json.loads(book.read_text())["cells"]
    assert ["".join(cell["source"]) for cell in cells] == [expected, "print(x)"]
    assert (tmp_path / "a.py").read_text() == f"{expected.partition(chr(10))[2]}\n"
    ws.undo()
    assert book.read_bytes() == before


CALLS = {
    "agentfs": ("edit", {"path": "book.ipynb", "old_string": "y = 2", "new_string": BREAKING}),
    "wave": ("Edit", {"file_path": "book.ipynb", "old_string": "y = 2", "new_string": BREAKING}),
    "codescout": ("edit_file", {"path": "book.ipynb", "old_string": "y = 2", "new_string": BREAKING}),
    "text-editor": (
        "str_replace_based_edit_tool",
        {"command": "str_replace", "path": "book.ipynb", "old_str": "y = 2", "new_str": BREAKING},
    ),
}


@pytest.mark.parametrize("dialect", CALLS)
def test_every_dialect_edits_the_cells_of_a_notebook(book, dialect, ws):
    name, arguments = CALLS[dialect]
    tools = ws.tools(dialect=dialect)
    tools.call("Read" if dialect == "wave" else "read", {"file_path": "book.ipynb"})
    result = tools.call(name, arguments)
    assert result.success
    assert "".join(json.loads(book.read_text())["cells"][0]["source"]) == f"x = 1\n{BREAKING}"


def test_a_patch_changes_the_text_of_a_cell(book, ws):
    patch = "*** Begin Patch\n*** Update File: book.ipynb\n@@\n-y = 2\n+y = '2'\n*** End Patch"
    assert ws.tools(dialect="apply-patch").call("apply_patch", {"input": patch}).success
    assert "".join(json.loads(book.read_text())["cells"][0]["source"]) == "x = 1\ny = '2'"


@pytest.mark.parametrize(
    ("name", "content", "text", "options"),
    [
        ("a.pdf", pdf(["one", "two"]), "(one)", {}),
        ("a.gif", make_image("GIF"), "GIF87a", {"encoding": "latin-1"}),
        ("a.png", make_image("PNG"), "IHDR", {"encoding": "latin-1"}),
    ],
)
def test_an_edit_of_a_pdf_or_an_image_is_refused_unless_raw_insists(
    ws, tmp_path, name, content, text, options
):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BinaryError) as caught:
        ws.edit(name, text, "x", replace_all=True, **options)
    assert "raw=true" in str(caught.value)
    assert (tmp_path / name).read_bytes() == content
    ws.edit(name, text, "x", replace_all=True, raw=True, **options)
    assert (tmp_path / name).read_bytes() == content.replace(text.encode(), b"x")


def test_a_text_that_begins_like_a_pdf_or_an_image_may_be_edited(ws, tmp_path):
    for name, content in {
        "note.md": "%PDF-1.7 is how it begins\n",
        "gif.txt": "GIF89a is a format\n",
    }.items():
        (tmp_path / name).write_text(content)
        ws.edit(name, "is", "was")
        assert "was" in (tmp_path / name).read_text()


@pytest.mark.parametrize("content", [make_image("PNG"), b"a\x00b"])
def test_no_parameter_makes_a_binary_file_editable(ws, tmp_path, content):
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(AgentFSError) as caught:
        ws.edit("f", "a", "b", raw=True)
    assert caught.value.code == "binary"


def test_a_transaction_has_the_same_rule(tmp_path, book):
    with Workspace(tmp_path) as ws, ws.transaction() as inner:
        inner.read("book.ipynb")
        with pytest.raises(InvalidContentError):
            inner.write("book.ipynb", BREAKING)
        inner.edit("book.ipynb", "y = 2", "y = 3")
    assert "y = 3" in book.read_text()
