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
    assert lines[7].startswith("> [PNG image, 40x30 pixels, ")
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


def read_all(ws, path, **arguments):
    """Return the lines of all pages, following `next`, and the pages."""
    pages = [ws.read(path, **arguments)]
    while pages[-1].next is not None:
        pages.append(ws.read(**pages[-1].next["arguments"]))
    return "".join(page.content for page in pages).splitlines(), pages


@pytest.mark.parametrize(
    "limits", [Limits(), Limits(read_bytes=3000), Limits(output_tokens=700), Limits(read_bytes=60)]
)
@pytest.mark.parametrize("before", [0, 2])
def test_a_cut_cell_goes_on_line_by_line_and_counts_as_read_at_its_end(tmp_path, limits, before):
    source = "".join(f"line_{number} = {number}\n" for number in range(700))
    sources = [*["first"] * before, source, "last"]
    cells = [{"cell_type": "code", "source": each} for each in sources]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    expected = [f"|{line}" for each in sources for line in each.splitlines()]
    with Workspace(tmp_path, limits=limits) as ws:
        lines, pages = read_all(ws, "a.ipynb")
        assert lines == expected
        if len(pages) > 1:
            assert all(page.truncated_by in {"bytes", "tokens"} for page in pages[:-1])
            by_tokens = limits.output_tokens == 700
            assert (
                pages[before > 0].truncated_by == ("tokens" if by_tokens else "bytes") or limits == Limits()
            )
        assert pages[-1].truncated_by is None
        ws.write("a.ipynb", json.dumps({"cells": []}))


def test_a_notebook_is_not_replaced_before_all_lines_of_a_cut_cell_were_shown(tmp_path):
    cell = {"cell_type": "code", "source": "".join(f"line_{number}\n" for number in range(5000))}
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": [cell]}))
    with Workspace(tmp_path) as ws:
        page = ws.read("a.ipynb")
        shown = page.content.count("\n")
        assert (page.truncated_by, page.next["arguments"]["column"]) == ("tokens", shown + 1)
        assert f"its lines 1-{shown} of 5000" in page.text
        with pytest.raises(AgentFSError) as caught:
            ws.write("a.ipynb", '{"cells": []}')
        assert caught.value.code == "unread"
        assert "cell 1 (1 of 1 cell)" in str(caught.value)
        ws.read("a.ipynb", column=4000)  # not the lines between
        with pytest.raises(AgentFSError):
            ws.write("a.ipynb", '{"cells": []}')
        read_all(ws, "a.ipynb", column=shown + 1)
        assert ws.write("a.ipynb", '{"cells": []}').bytes_written == 13


def test_a_long_line_of_a_cell_is_cut_and_the_json_has_the_rest(tmp_path):
    (tmp_path / "a.ipynb").write_text(
        json.dumps({"cells": [{"cell_type": "code", "source": "a\n" + "x" * 3000}]})
    )
    with Workspace(tmp_path) as ws:
        page = ws.read("a.ipynb")
        assert page.truncated_by == "line"
        assert (
            'cut after 2000 characters: cell 1, line 2; the JSON has the rest: read(path="a.ipynb", raw=true)'
            in page.text
        )


def test_a_column_past_the_lines_of_a_cell_is_an_error(tmp_path):
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": [{"cell_type": "code", "source": "a\nb"}]}))
    with Workspace(tmp_path) as ws:
        assert ws.read("a.ipynb", column=2).content == "|b\n"
        with pytest.raises(AgentFSError, match="which has 2"):
            ws.read("a.ipynb", column=3)


def test_a_notebook_counts_as_read_once_all_its_cells_were_shown(ws, tmp_path):
    cells = [{"cell_type": "markdown", "metadata": {}, "source": f"cell {n}"} for n in range(3)]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))
    ws.read("a.ipynb", 1, 2)
    with pytest.raises(AgentFSError) as caught:
        ws.write("a.ipynb", '{"cells": []}\n')
    assert (caught.value.code, caught.value.details["unread_lines"]) == ("unread", [[3, 3]])
    ws.read("a.ipynb", 3)
    assert ws.write("a.ipynb", '{"cells": []}\n').bytes_written == 14
