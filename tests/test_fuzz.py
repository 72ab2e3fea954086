"""Any arguments get a result, and a failed call changes nothing on disk.

python -m pytest tests/test_fuzz.py -m long        # 100,000 argument sets; figures: docs/internals
"""

import json
import random
import time

import pytest

from agentfs import ToolResult, Workspace
from tests.kit import put
from tests.tree_difference import snapshot

GOOD = {
    "read": {"path": "a.txt", "offset": 1, "limit": 2},
    "write": {"path": "new.txt", "content": "x\n"},
    "edit": {"path": "a.txt", "old_string": "one", "new_string": "two", "replace_all": False},
    "multi_edit": {"path": "a.txt", "edits": [{"old_string": "one", "new_string": "two"}]},
    "ls": {"path": ".", "depth": 1, "limit": 5, "offset": 0, "include_ignored": False},
    "glob": {"pattern": "*.txt", "path": ".", "limit": 5},
    "grep": {"pattern": "one", "path": ".", "glob": "*.txt", "output_mode": "content", "context": 1},
}
SCALARS = [
    None, True, False, 0, -1, 1, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, float("nan"), float("inf"), "", " ",
    "0", "1", "true", "null", "[]", "{}", "[", '{"a": 1', "../x", "/etc/passwd", "\0", "\ud800", "a" * 300,
    "x" * 200_000, "(" * 500,
    "**/" * 40, "{a,b}" * 30, "\u202e", "~", "%2e%2e", "a.txt", "one", b"bytes", object(), (),
    set(),
]  # fmt: skip
TEXTS = ['{"path": ' * 5000, "[" * 100_000, '{"path": "a", "path": "b"}', "NaN", '{"x": 1e999}']
TREE = {"a.txt": b"one\ntwo\r\nthree", "b.bin": b"\0\1", "sub/c.txt": "größe\n".encode()}


def hostile(source: random.Random, depth: int = 0):
    kind = source.random()
    if kind < 0.7 or depth > 3:
        return source.choice(SCALARS)
    if kind < 0.85:
        return [hostile(source, depth + 1) for _ in range(source.randrange(4))]
    return {str(source.choice(SCALARS))[:40]: hostile(source, depth + 1) for _ in range(source.randrange(4))}


def arguments_for(source: random.Random, name: str):
    kind = source.random()
    if kind < 0.05:
        return hostile(source)
    if kind < 0.08:
        return source.choice(TEXTS)
    given = dict(GOOD[name])
    if source.random() < 0.3:  # almost valid: read leniently
        given = {key: str(value) if source.random() < 0.3 and not isinstance(value, list) else value
                 for key, value in given.items()}  # fmt: skip
    for _ in range(source.choice([0, 1, 1, 2, 3])):
        key = source.choice([*GOOD[name], "unknown", "file_path", "-A", "", 7, "edits", "pattern"])
        if source.random() < 0.2:
            given.pop(key, None)
        else:
            given[key] = hostile(source)
    if source.random() < 0.3:
        try:
            text = json.dumps(given)
        except (TypeError, ValueError):
            return given
        return text[: source.randrange(len(text) + 1)] if source.random() < 0.3 else text
    return given


def campaign(root, seed: int, calls: int) -> tuple[int, float]:
    """Make calls; return the number of failed ones and the longest time."""
    put(root, TREE)
    source = random.Random(seed)
    failed, longest = 0, 0.0
    with Workspace(root) as ws:
        tools = ws.tools()
        before = snapshot(root)
        for number in range(calls):
            name = source.choice([*GOOD, *GOOD, "grepp", None])
            arguments = arguments_for(source, name if name in GOOD else "grep")
            started = time.perf_counter()
            result = tools.call(name, arguments)
            longest = max(longest, time.perf_counter() - started)
            assert isinstance(result, ToolResult), (seed, number)
            assert result.success is (result.error is None)
            if not result.success:
                failed += 1
                assert result.error["code"] != "internal", (seed, number, name, result.content)
                assert snapshot(root) == before, (seed, number, name)
            else:
                before = snapshot(root)
            json.dumps(result.to_dict())
            if len(before) > 40 or number % 200 == 0:
                for path in sorted(root.rglob("*"), reverse=True):
                    path.rmdir() if path.is_dir() else path.unlink()
                before = snapshot(put(root, TREE))
    return failed, longest


@pytest.mark.parametrize(("seed", "calls", "least"), [
    pytest.param(7, 1500, 300, marks=pytest.mark.full),
    pytest.param(1, 100_000, 10_000, marks=pytest.mark.long),
])  # fmt: skip
def test_hostile_arguments_end_in_results(tmp_path, seed, calls, least):
    failed, longest = campaign(tmp_path, seed, calls)
    assert least < failed < calls - 100
    assert longest < 10
