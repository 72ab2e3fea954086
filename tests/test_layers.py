"""Imports go down only: this reads them from the source and holds the line."""

import ast
from collections.abc import Sequence
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "agentfs"

# Rooms with plain data far down and machinery further up: each of their modules has a layer of its own.
SPLIT = {"calls", "permissions"}

# From the bottom up; rooms on one line are siblings and may not import one another.
LAYERS = [
    {"visible"},
    {"messages"},
    {"errors", "values"},
    {"calls.calling", "calls.events", "calls.interrupts", "permissions.asking"},
    {"limits", "policy", "results", "versions"},
    {"disk", "text"},
    {"walking", "matching"},
    {"permissions.access"},
    {"shown", "remembered", "outputs", "journal"},
    {"reading", "editing", "search", "state"},
    {"permissions.gate", "signatures"},
    {
        "forms",
        "arguments",
        "calls.outcome",
        "calls.replies",
        "calls.running",
        "calls.telling",
        "calls.naming",
    },
    {"methods", "toolset"},
    {"workspace"},
    {"dialects"},
    {"mcp_stdio", "cli_output"},
    {"mcp_server", "cli_history"},
    {"cli"},
]
UPWARDS = {("workspace.py", "dialects")}  # found by name, once a program asks for one
OUTER = {"__init__", "__main__"}  # the public names, and the way in
OUTER |= {f"{name}.__init__" for name in SPLIT}  # nothing but a docstring


def room(path: Path) -> str:
    return room_of(path.relative_to(PACKAGE).with_suffix("").parts)


def room_of(parts: Sequence[str]) -> str:
    return ".".join(parts[: 2 if parts[0] in SPLIT else 1])


def imported_rooms(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides its layer"
            parts = (node.module or "").split(".")
            if parts[0] == "agentfs":
                found |= {room_of([*parts[1:], alias.name]) for alias in node.names}
        elif isinstance(node, ast.Import):
            names = [name.name.split(".") for name in node.names]
            found |= {room_of(parts[1:]) for parts in names if parts[0] == "agentfs" and parts[1:]}
    return found


def test_each_module_has_a_layer():
    rooms = {room(path) for path in PACKAGE.rglob("*.py")}
    assert rooms - OUTER == set().union(*LAYERS)


def test_imports_go_down_only():
    height = {name: number for number, names in enumerate(LAYERS) for name in names}
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        here = room(path)
        if here in OUTER:
            continue
        for there in imported_rooms(path) - {here}:
            name = path.relative_to(PACKAGE)
            if (str(name), there) in UPWARDS:
                continue
            if there not in height or height[there] >= height[here]:
                wrong.append(f"{name} imports {there}")
    assert wrong == []


def test_the_split_rooms_have_nothing_in_their_own_name():
    for name in SPLIT:
        (docstring,) = ast.parse((PACKAGE / name / "__init__.py").read_text(encoding="utf-8")).body
        assert isinstance(docstring, ast.Expr)


def test_only_the_disk_touches_the_disk():
    calls = {"open", "scandir", "listdir", "stat", "lstat", "walk", "readlink", "unlink", "rename", "replace"}
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if room(path) == "disk":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = node.func
                if isinstance(called, ast.Name) and called.id == "open":
                    wrong.append(f"{path.relative_to(PACKAGE)}:{node.lineno} open")
                if isinstance(called, ast.Attribute) and called.attr in calls:
                    of = called.value
                    if isinstance(of, ast.Name) and of.id == "os":
                        wrong.append(f"{path.relative_to(PACKAGE)}:{node.lineno} os.{called.attr}")
    assert wrong == []
