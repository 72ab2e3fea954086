"""Imports go down only: this reads them from the source and holds the line."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "agentfs"

# From the bottom up; rooms on one line are siblings and may not import one another.
LAYERS = [
    {"errors"},
    {"calling", "events", "permission"},
    {"limits", "policy", "results"},
    {"disk", "text"},
    {"shown", "remembered", "outputs"},
    {"reading", "editing", "search"},
    {"gate", "signatures"},
    {"schema", "arguments", "functions", "outcome", "replies", "running", "telling", "instructions"},
    {"toolset"},
    {"workspace"},
    {"dialects"},
    {"mcp"},
    {"cli"},
]
UPWARDS = {("workspace.py", "dialects")}  # found by name, once a program asks for one
OUTER = {"__init__", "__main__"}  # the public names, and the way in


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides its layer"
            parts = (node.module or "").split(".")
            if parts[0] == "agentfs":
                found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {name.name.split(".")[1] for name in node.names if name.name.startswith("agentfs.")}
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
