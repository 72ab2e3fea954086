"""Edits of files that `read` does not show as text: notebooks, PDFs, images and other binaries."""

import json

import pytest

from agentfs.errors import BinaryError, InvalidContentError
from tests import kit
from tests.kit import refused
from tests.reading.conftest import make_image
from tests.reading.test_pdf import pdf

BREAKING = 'y = 2\nz = "q"'


def notebook(*sources):
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    cells = [{**cell, "source": source.splitlines(keepends=True)} for source in sources]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, indent=1) + "\n"


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.ipynb"
    path.write_text(notebook("x = 1\ny = 2", "print(x)"))
    return path


def write(ws, **more):
    ws.read("book.ipynb")
    return ws.write("book.ipynb", BREAKING, **more)


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
CALLS = {
    "agentfs": ("edit", {"path": "book.ipynb", "old_string": "y = 2", "new_string": BREAKING}),
    "wave": ("Edit", {"file_path": "book.ipynb", "old_string": "y = 2", "new_string": BREAKING}),
    "codescout": ("edit_file", {"path": "book.ipynb", "old_string": "y = 2", "new_string": BREAKING}),
    "text-editor": (
        "str_replace_based_edit_tool",
        {"command": "str_replace", "path": "book.ipynb", "old_str": "y = 2", "new_str": BREAKING},
    ),
    "apply-patch": ("apply_patch", {"input": PATCH}),
}


@pytest.mark.parametrize("dialect", CALLS)
def test_every_dialect_edits_the_cells_of_a_notebook(book, dialect, ws):
    name, arguments = CALLS[dialect]
    tools = ws.tools(dialect=dialect)
    tools.call("Read" if dialect == "wave" else "read", {"file_path": "book.ipynb"})
    result = tools.call(name, arguments)
    assert result.success
    assert "".join(json.loads(book.read_text())["cells"][0]["source"]) == f"x = 1\n{BREAKING}"


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
    if name == "a.png":
        refused(lambda: ws.edit(name, "I", "x", raw=True), "binary")
    ws.edit(name, text, "x", replace_all=True, raw=True, **options)
    assert (tmp_path / name).read_bytes() == content.replace(text.encode(), b"x")


def test_a_text_that_begins_like_a_pdf_or_an_image_may_be_edited(ws, tmp_path):
    for name, content in {"note.md": "%PDF-1.7 is a start\n", "gif.txt": "GIF89a is a format\n"}.items():
        (tmp_path / name).write_text(content)
        ws.edit(name, "is", "was")
        assert "was" in (tmp_path / name).read_text()
