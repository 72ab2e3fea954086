"""CONTRIBUTING's map is short and complete, and names the right homes of ten behaviours."""

import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from agentfs import AgentFSError, Workspace

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "agentfs"
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAP, BEHAVIOURS = re.findall(r"((?:^\|.*\n)+)", PAGE.partition("## The map")[2], re.MULTILINE)[:2]


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def paths(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def smart_quote(ws: Workspace) -> object:
    ws.write("a.txt", "say 'hello'\n")
    return ws.edit("a.txt", "say \u2018hello\u2019", "bye").applied_via != "exact"


def env(ws: Workspace) -> object:
    (Path(ws.root) / ".env").write_text("KEY=1\n")
    return error_of(lambda: ws.read(".env")) == "protected"


def skipped(ws: Workspace) -> object:
    (Path(ws.root) / ".hidden").write_text("needle\n")
    return ws.grep("needle").skipped.hidden == 1


def link_out(ws: Workspace) -> object:
    (Path(ws.root) / "out").symlink_to("/etc")
    return error_of(lambda: ws.read("out/passwd")) == "outside_workspace"


def just_changed(ws: Workspace) -> object:
    with Workspace(ws.root, watch=True) as watched:
        before = watched.grep("needle").total_lines
        (Path(ws.root) / "a.txt").write_text("needle\n")
        return (before, watched.grep("needle").total_lines) == (0, 1)


def lone_return(ws: Workspace) -> object:
    (Path(ws.root) / "a.txt").write_bytes(b"a\rb\nc\n")
    return ws.read("a.txt").total_lines == 2


def text_for_integer(ws: Workspace) -> object:
    ws.write("a.txt", "x\n" * 20)
    return ws.tools().call("read", {"path": "a.txt", "limit": "10"}).data["end_line"] == 10


def ignored(ws: Workspace) -> object:
    ws.write(".gitignore", "*.log\n")
    ws.write("a.log", "x\n")
    return ws.ls().skipped.ignored == 1


def conflict(ws: Workspace) -> object:
    ws.write("a.txt", "x\n")
    (Path(ws.root) / "a.txt").write_text("y\n")
    return error_of(ws.undo) == "conflict"


def nearest_block(ws: Workspace) -> object:
    ws.write("a.txt", "def first(a, b):\n    return a + b\n\n\ndef second():\n    pass\n")
    return error_of(lambda: ws.edit("a.txt", "def first(a, c):\n    return a + b\n", "")) == "no_match"


def cell_edited(ws: Workspace) -> object:
    ws.write("a.ipynb", '{"cells": [{"source": ["x\\n", "y"]}]}')
    ws.edit("a.ipynb", "x\ny", "z")
    return (Path(ws.root) / "a.ipynb").read_text() == '{"cells": [{"source": ["z"]}]}'


def next_page(ws: Workspace) -> object:
    ws.write("a.txt", "x\n" * 3000)
    return ws.read("a.txt").next == {"name": "read", "arguments": {"path": "a.txt", "offset": 2001}}


EXAMPLES = [
    *(smart_quote, env, skipped, link_out, just_changed, lone_return),
    *(text_for_integer, ignored, conflict, nearest_block, cell_edited, next_page),
]


def error_of(run: Callable[[], object]) -> str:
    with pytest.raises(AgentFSError) as caught:
        run()
    return caught.value.code


def test_the_map_is_short_and_names_each_module_and_package():
    assert len(rows(MAP)) <= 25
    named = [name.rstrip("/") for where, _ in rows(MAP) for name in paths(where)]
    there = {
        path.name for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert sorted(named) == sorted(there - {"__init__.py", "__main__.py"})


@pytest.mark.parametrize(("row", "example"), list(zip(rows(BEHAVIOURS), EXAMPLES, strict=True)))
def test_each_behaviour_is_in_the_module_of_the_map(tmp_path, row, example):
    file = str(PACKAGE / paths(row[1])[0])
    ran: set[str] = set()

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        del event, arg
        ran.add(frame.f_code.co_filename)

    # Not in the main thread, which runs a change differently because of Ctrl-C.
    with Workspace(tmp_path) as ws, ThreadPoolExecutor(1, "", sys.setprofile, (profile,)) as pool:
        happened = pool.submit(example, ws).result()
    assert happened
    assert file in ran, f"{row[0]}: {file} was not needed for it"
