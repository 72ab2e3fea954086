"""Cold, watched, persistent and remote workspaces give the same answers and change the same bytes.

Each has its own copy of one tree. Random calls, and random changes by other programs, are made in all four.
"""

import os
import random
import re
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from agentfs import AgentFSError, Limits, Workspace, connect
from tests.other_programs import change
from tests.remote.over_pipe import open_pipe
from tests.search.watched import unhurried
from tests.tree_difference import snapshot

KINDS = ("cold", "watched", "persistent", "remote")
LIMITS = Limits(watch_bytes=64 * 1024, file_bytes=32 * 1024, grep_results=20, glob_results=15, timeout=30)
# Times and numbers of calls, which differ in each copy of the tree.
VOLATILE = {"duration", "mtime", "elapsed_ms", "accessed", "created_at", "line_ids"}
STATUS_REVISION = re.compile("~[0-9a-f]{32}")  # of a file above `file_bytes`: a hash of inode and times
# In a directory of a state, they differ from others.
LINE_IDS = re.compile(r"\[LID:[0-9a-f]+\]|(?m:(?<=\d) [0-9a-f]{6}(?=\|))")
DIRECTORIES = ["", "src", "src/deep", "src/deep/er", "build", ".hidden", "docs"]
NAMES = ["a.py", "b.py", "c.txt", "é.md", ".env", ".gitignore", "data.bin", "link", "Makefile"]
WORDS = ["alpha", "beta", "gamma", "delta = 1", "def f():", "    return x", "ſtraße", "“quoted”", "TODO"]
# Rules change more often than other files.
PATHS = [os.path.join(directory, name) for directory in DIRECTORIES for name in [*NAMES, *[".gitignore"] * 3]]
RULES = [b"build/\n", b"*.txt\n!c.txt\n", b"/src/deep\n", b"x[!a]y\n", b""]
CONTENTS = [*("\n".join(WORDS[at:]).encode() for at in range(len(WORDS))), *RULES * 3]
CONTENTS += ["alpha\ndef f():\n".encode("utf-16"), b"\0binary\n", b"alpha\n" * 9000, b"caf\xe9\n"]


def random_call(draw: random.Random) -> tuple[str, dict[str, Any]]:
    pick, path = draw.choice, draw.choice(PATHS)
    word, other, end = pick(WORDS), pick(WORDS), pick(["\n", "\n", "\n", "\r\n"])
    text = "".join(pick(WORDS) + end for _ in range(draw.randrange(8)))
    directory = pick(DIRECTORIES) or "."
    calls = [
        ("read", {"path": path, "offset": pick([1, 1, 2, -2, 50])}), ("read", {"path": path}),
        ("read", {"path": path, "line_ids": True}), ("write", {"path": path, "content": text}),
        ("write", {"path": path, "content": text, "overwrite": True}),
        ("edit", {"path": path, "old_string": word, "new_string": other}),
        ("edit", {"path": path, "old_string": word, "new_string": other, "replace_all": True}),
        ("edit", {"path": path, "old_string": word.strip("“"), "new_string": other, "preview": True}),
        ("multi_edit", {"path": path, "edits": [{"old_string": word, "new_string": other}] * 2}),
        ("replace", {"old_string": word, "new_string": other, "path": directory}),
        ("replace", {"old_string": r"(\w+) = 1", "new_string": r"\1 = 2", "regex": True, "glob": "*.py"}),
        ("ls", {"path": directory, "depth": pick([0, 1, 2]), "include_ignored": pick([True, False])}),
        ("ls", {"path": directory, "ignore": ["*.py"], "sort": "size"}),
        ("glob", {"pattern": pick(["*", "**/*.py", "src/**", "{a,b}.*"]), "path": directory}),
        ("glob", {"path": directory, "pattern": pick(["a*", "*py", "*E*"]), "types": pick(["f", "d"])}),
        ("grep", {"pattern": word.split()[0], "path": directory, "output_mode": "count"}),
        ("grep", {"pattern": r"\w+ = \d", "ignore_case": True, "include_ignored": True, "context": 1}),
        ("grep", {"pattern": "strasse|TODO", "path": [directory, "src"], "output_mode": "summary"}),
        ("grep", {"pattern": "alpha", "path": path, "multiline": True}),
        ("delete", {"path": pick([path, path, directory])}),
        ("move", {"path": pick([path, path, directory]), "to": pick(PATHS)}),
        ("undo", {"steps": pick([1, 1, 2])}), ("undo", {}), ("redo", {}),
        ("checkpoint", {"name": pick("pqr")}), ("rollback", {"to": pick("pqr")}), ("changes", {}),
        ("changes", {"since": pick("pqr")}),
    ]  # fmt: skip
    return pick(calls)


def plain(value, root: str):
    if isinstance(value, dict):
        return {key: plain(each, root) for key, each in value.items() if key not in VOLATILE}
    if isinstance(value, (list, tuple)):
        return [plain(each, root) for each in value]
    if isinstance(value, str):
        value = LINE_IDS.sub("[LID]", STATUS_REVISION.sub("~", value.replace(root, "<root>")))
    return value


def answer(workspace, name, arguments):
    try:
        result = getattr(workspace, name)(**arguments)
    except AgentFSError as error:
        return [error.code, *(plain(each, workspace.root) for each in (str(error), error.details))]
    return [plain(result.to_dict(), workspace.root), plain(result.text, workspace.root)]


def open_all(base: Path, stack: ExitStack):
    for kind, directory in product(KINDS, DIRECTORIES):
        (base / kind / directory).mkdir(parents=True, exist_ok=True)
    for kind, (number, name) in product(KINDS, enumerate(NAMES[:4])):
        (base / kind / "src" / name).write_text("\n".join(WORDS[number:]) + "\n")
    opened = [
        Workspace(base / "cold", limits=LIMITS), Workspace(base / "watched", limits=LIMITS, watch=True),
        Workspace(base / "persistent", limits=LIMITS, state=base / "state"),
        connect(open_pipe(), str(base / "remote"), limits=LIMITS),
    ]  # fmt: skip
    return [stack.enter_context(each) for each in opened]


@pytest.mark.parametrize(("seed", "count"), [
    (1, 12), pytest.param(1, 120, marks=pytest.mark.full),
    *(pytest.param(seed, 1000, marks=pytest.mark.long) for seed in range(10, 20)),
])  # fmt: skip
def test_four_kinds_of_workspace_answer_alike(tmp_path, seed, count):
    draw = random.Random(seed)
    with ExitStack() as stack, unhurried():
        workspaces = open_all(tmp_path, stack)
        for number in range(count):
            if draw.random() < 0.3:
                for kind in KINDS:
                    change(tmp_path / kind, random.Random(f"{seed} {number}"), PATHS, CONTENTS)
                continue
            name, arguments = random_call(draw)
            answers = [answer(each, name, arguments) for each in workspaces]
            for found in (answers, [snapshot(tmp_path / kind) for kind in KINDS]):
                for kind, other in zip(KINDS, found, strict=True):
                    assert other == found[0], (number, kind, name, arguments)
