import base64
import json
import re

import pytest

from agentfs import Limits, Workspace
from tests.kit import error_of, refused
from tests.reading.conftest import make_image


def notebook():
    png = base64.b64encode(make_image("PNG")).decode()
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
        {"output_type": "display_data", "data": {"image/png": png, "text/plain": "<Figure>"}},
        {"output_type": "execute_result", "data": {"text/html": "<b>x</b>"}},
        {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\x1b[31mE\x1b[0m: v"]},
    ]
    code = {"cell_type": "code", "execution_count": 7, "source": "print(1)\nx\n", "outputs": outputs}
    empty = {"cell_type": "code", "execution_count": None, "source": "", "outputs": []}
    return {"nbformat": 4, "cells": [{"cell_type": "markdown", "source": ["# Title\n", "text"]}, code, empty]}


def test_a_notebook_is_one_text_with_the_outputs_of_each_cell(ws, tmp_path):
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook()))
    result = ws.read("a.ipynb")
    assert result.content == (
        "=== cell 1, markdown\n# Title\ntext\n=== cell 2, code, run 7\nprint(1)\nx\n> 1\n> [image/png]\n"
        "> [text/html, not shown]\n> E: v\n=== cell 3, code\n"
    )
    assert (result.kind, result.total_lines, len(result.images)) == ("notebook", 11, 1)
    assert ws.read("a.ipynb", offset=2, limit=1).content == "# Title\n"
    assert ws.read("a.ipynb", offset=9).images == ()
    assert " 5|print(1)\n" in result.text


def test_the_json_of_a_notebook_is_read_and_edited_raw(ws, tmp_path):
    text = json.dumps(notebook(), indent=1)
    (tmp_path / "a.ipynb").write_text(text)
    assert ws.read("a.ipynb", raw=True).content == text
    ws.edit("a.ipynb", '"print(1)\\nx\\n"', '"print(2)\\n"', raw=True)
    assert "|print(2)" in ws.read("a.ipynb").text


@pytest.mark.parametrize("content", [
    "{",
    "[]",
    "{}",
    '{"cells": 3}',
    '{"cells": [1]}',
    "[" * 100_000,
    "",
    "\ufeff{",
    b"\xff{}",
    '{"cells": null}',
])  # fmt: skip
def test_an_invalid_notebook_is_shown_as_text_and_says_so(ws, tmp_path, content):
    (tmp_path / "a.ipynb").write_bytes(content if isinstance(content, bytes) else content.encode())
    result = ws.read("a.ipynb")
    assert result.kind == "text"
    assert "not a notebook: " in result.text or not content


@pytest.mark.parametrize("cell", [
    {},
    {"source": 3, "outputs": 4},
    {"source": [1, None], "outputs": [5, {}, {"data": 1}, {"data": {"image/png": "?"}}]},
    {"outputs": [{"output_type": "error", "traceback": 3}, {"data": {"image/png": "AAAA"}}]},
    {"cell_type": "x]\nforged", "source": "\u202ea\rb\x1b"},
])  # fmt: skip
def test_malformed_cells_do_not_raise_and_forge_nothing(ws, tmp_path, cell):
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": [cell]}))
    result = ws.read("a.ipynb")
    assert result.kind == "notebook"
    assert all(re.match(r"\d\||\[", line) for line in result.text.split("\n"))
    assert "\u202e" not in result.text


@pytest.mark.parametrize(
    "limits", [Limits(), Limits(read_bytes=3000), Limits(output_tokens=700), Limits(read_bytes=60)]
)
def test_the_pages_of_a_notebook_add_up_to_its_text_and_count_as_read(tmp_path, limits):
    sources = ["first", "".join(f"line_{number} = {number}\n" for number in range(300)), "last"]
    cells = [{"cell_type": "code", "source": each} for each in sources]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    text = "".join(
        f"=== cell {number}, code\n{each.removesuffix(chr(10))}\n" for number, each in enumerate(sources, 1)
    )
    with Workspace(tmp_path, limits=limits) as ws:
        page, content = ws.read("a.ipynb"), ""
        while True:
            content += page.content
            if page.next is None:
                break
            caught = refused(lambda: ws.write("a.ipynb", '{"cells": []}'))
            assert caught.code == "unread"
            page = ws.read(**page.next["arguments"])
        assert content == text
        assert ws.write("a.ipynb", '{"cells": []}').bytes_written == 13


def test_a_long_line_of_a_cell_goes_on_by_column(ws, tmp_path):
    (tmp_path / "a.ipynb").write_text(
        json.dumps({"cells": [{"cell_type": "code", "source": "a\n" + "x" * 3000}]})
    )
    page = ws.read("a.ipynb")
    assert page.truncated_by == "line"
    assert 'the rest of line 3: read(path="a.ipynb", offset=3, limit=1, column=2001)' in page.text
    assert ws.read("a.ipynb", offset=3, limit=1, column=2001).content == "x" * 1000 + "\n"


def test_parts_of_the_json_and_of_the_text_do_not_add_up_to_a_full_read(ws, tmp_path):
    cells = [{"cell_type": "code", "source": f"a = {number}"} for number in range(2)]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}, indent=1))
    ws.read("a.ipynb", 1, 2, raw=True)
    ws.read("a.ipynb", 3)
    error = error_of(ws.write, "a.ipynb", '{"cells": []}')
    assert (error.code, error.details["unread_lines"]) == ("unread", [[1, 2]])


def test_line_ids_name_lines_of_the_text(ws, tmp_path):
    cells = [{"cell_type": "code", "source": ["a = 1\n", "b = 1"]}]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}, indent=1))
    ids = ws.read("a.ipynb", line_ids=True).line_ids
    ws.edit_lines("a.ipynb", [{"line_id": ids[2], "new_content": "b = 2"}])
    assert json.loads((tmp_path / "a.ipynb").read_text())["cells"][0]["source"] == ["a = 1\n", "b = 2"]
    refused(lambda: ws.edit_lines("a.ipynb", [{"line_id": ids[0], "new_content": "=== cell 9"}]))
    assert ws.read("a.ipynb", line_ids=True, raw=True).line_ids == ()
