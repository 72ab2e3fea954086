"""A search of a notebook: its lines are those that `read` shows."""

import json

import pytest

from agentfs import Workspace

CELLS = [
    {"cell_type": "markdown", "source": ["# Größe"]},
    {"cell_type": "code", "source": ['say("hé")\n', "x\ty"], "outputs": [{"text": ["an output\n"]}]},
]


@pytest.mark.parametrize("watch", [False, True])
@pytest.mark.parametrize(("pattern", "line"), [
    ('"hé"', 4),
    ("x\\ty", 5),
    ("=== cell 2", 3),
    ("Größe", 2),
    ("an output", 6),
    ("cells", None),
    ("source", None),
])  # fmt: skip
def test_a_match_names_a_line_that_read_shows(tmp_path, watch, pattern, line):
    for number in range(40):
        (tmp_path / f"f{number:02}.txt").write_text("nothing\n")
    (tmp_path / "g.ipynb").write_text(json.dumps({"cells": CELLS}))
    with Workspace(tmp_path, watch=watch) as ws:
        for _ in range(3):
            found = ws.grep(pattern).matches
        assert [(match.path, match.line) for match in found] == ([] if line is None else [("g.ipynb", line)])
        for match in found:
            assert ws.read("g.ipynb", match.line, 1).content == match.text + "\n"
