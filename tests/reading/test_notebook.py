import base64
import json

import pytest

from agentfs import AgentFSError, Limits, Workspace
from tests.reading.conftest import make_image


def notebook():
    png = base64.b64encode(make_image("PNG")).decode()
    return {
        "nbformat": 4,
        "cells": [
            {"cell_type": "markdown", "source": ["# Title\n", "text"]},
            {
                "cell_type": "code",
                "execution_count": 7,
                "source": "print(1)\nx\n",
                "outputs": [
                    {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
                    {"output_type": "display_data", "data": {"image/png": png, "text/plain": "<Figure>"}},
                    {"output_type": "execute_result", "data": {"text/html": "<b>x</b>"}},
                    {
                        "output_type": "error",
                        "ename": "E",
                        "evalue": "v",
                        "traceback": ["\x1b[31mE\x1b[0m: v"],
                    },
                ],
            },
            {"cell_type": "code", "execution_count": None, "source": "", "outputs": []},
        ],
    }


def test_a_notebook_is_shown_by_cells_with_their_outputs(ws, tmp_path):
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook()))
    result = ws.read("a.ipynb")
    lines = result.text.split("\n")
    assert lines[:6] == ["cell 1, markdown", "|# Title", "|text", "cell 2, code, run 7", "|print(1)", "|x"]
    assert lines[6] == ">1"
    assert lines[7].startswith("> [PNG image, 40x30, ")
    assert lines[8:] == [">[text/html, not shown]", ">E: v", "cell 3, code", lines[-1]]
    assert lines[-1].startswith("[cells of a notebook; ")
    assert (result.kind, result.total_lines, len(result.images)) == ("notebook", 3, 1)
    assert ws.read("a.ipynb", offset=2, limit=1).next["arguments"]["offset"] == 3


def test_the_json_of_a_notebook_is_read_and_edited_raw(ws, tmp_path):
    text = json.dumps(notebook(), indent=1)
    (tmp_path / "a.ipynb").write_text(text)
    assert ws.read("a.ipynb", raw=True).content == text
    ws.edit("a.ipynb", '"print(1)\\nx\\n"', '"print(2)\\n"', raw=True)
    assert "|print(2)" in ws.read("a.ipynb").text


@pytest.mark.parametrize(
    "content",
    [
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
    ],
)
def test_an_invalid_notebook_is_shown_as_text_and_says_so(ws, tmp_path, content):
    (tmp_path / "a.ipynb").write_bytes(content if isinstance(content, bytes) else content.encode())
    result = ws.read("a.ipynb")
    assert result.kind == "text"
    assert "not a notebook: " in result.text or not content


@pytest.mark.parametrize(
    "cell",
    [
        {},
        {"source": 3, "outputs": 4},
        {"source": [1, None], "outputs": [5, {}, {"data": 1}, {"data": {"image/png": "?"}}]},
        {"outputs": [{"output_type": "error", "traceback": 3}, {"data": {"image/png": "AAAA"}}]},
        {"cell_type": "x]\nforged", "source": "\u202ea\rb\x1b"},
    ],
)
def test_malformed_cells_do_not_raise_and_forge_nothing(ws, tmp_path, cell):
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": [cell]}))
    result = ws.read("a.ipynb")
    assert result.kind == "notebook"
    assert all(line.startswith(("cell 1, ", "|", ">", "[cells of")) for line in result.text.split("\n"))
    assert "\u202e" not in result.text


def test_a_notebook_larger_than_a_page_continues_at_the_next_cell(tmp_path):
    cells = [{"cell_type": "code", "source": f"cell = {number}\n" * 20} for number in range(50)]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    with Workspace(tmp_path, limits=Limits(output_tokens=500)) as ws:
        result, numbers = ws.read("a.ipynb"), []
        while True:
            numbers += range(result.start_line, result.end_line + 1)
            if result.next is None:
                break
            result = ws.read(**result.next["arguments"])
    assert numbers == [*range(1, 51)]


def test_a_notebook_counts_as_read_once_all_its_cells_were_shown(ws, tmp_path):
    cells = [{"cell_type": "markdown", "metadata": {}, "source": f"cell {n}"} for n in range(3)]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))
    ws.read("a.ipynb", 1, 2)
    with pytest.raises(AgentFSError) as caught:
        ws.write("a.ipynb", '{"cells": []}\n')
    assert (caught.value.code, caught.value.details["unread_lines"]) == ("unread", [[3, 3]])
    ws.read("a.ipynb", 3)
    assert ws.write("a.ipynb", '{"cells": []}\n').bytes_written == 14
