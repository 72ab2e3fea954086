"""Imports go down only: this reads them from the source and holds the line."""

import ast
from collections.abc import Sequence
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "agentfs"

# From the bottom up; packages on one line are siblings and may not import one another.
LAYERS = [
    {"visible", "forks", "lazy"},
    {"messages"},
    {"errors", "values"},
    {"call_context", "permissions"},
    {"limits", "policy", "results", "line_ranges", "nearest"},
    {"fs", "text"},
    {"tree", "patterns"},
    {"read_tracker", "cache"},
    {"search", "history"},
    {"reading"},
    {"editing"},
    {"events", "providers"},
    {"tools"},
    {"enforcement"},
    {"workspace"},
    {"remote"},
    {"dialects"},
    {"mcp", "terminal"},
    {"cli"},
]
OUTER = {"__init__", "__main__"}  # the public names, and the way in


def package(path: Path) -> str:
    return package_of(path.relative_to(PACKAGE).with_suffix("").parts)


def package_of(parts: Sequence[str]) -> str:
    return parts[0]


def imported_packages(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides its layer"
            parts = (node.module or "").split(".")
            if parts[0] == "agentfs":
                found |= {package_of([*parts[1:], alias.name]) for alias in node.names}
        elif isinstance(node, ast.Import):
            names = [name.name.split(".") for name in node.names]
            found |= {package_of(parts[1:]) for parts in names if parts[0] == "agentfs" and parts[1:]}
    return found


def test_each_module_has_a_layer():
    packages = {package(path) for path in PACKAGE.rglob("*.py")}
    assert packages - OUTER == set().union(*LAYERS)


def test_imports_go_down_only():
    height = {name: number for number, names in enumerate(LAYERS) for name in names}
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        here = package(path)
        if here in OUTER:
            continue
        for there in imported_packages(path) - {here}:
            name = path.relative_to(PACKAGE)
            if there not in height or height[there] >= height[here]:
                wrong.append(f"{name} imports {there}")
    assert wrong == []


def test_no_modules_import_one_another_in_a_circle():
    files = {
        ".".join(("agentfs", *path.relative_to(PACKAGE).with_suffix("").parts)): path
        for path in PACKAGE.rglob("*.py")
    }
    modules = {name.removesuffix(".__init__"): path for name, path in files.items()}
    imports: dict[str, set[str]] = {}
    for name, path in modules.items():
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        found = {
            f"{node.module}.{alias.name}"
            for node in nodes
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        found |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
        found |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        imports[name] = found & modules.keys() - {name}
    # `from agentfs.fs import root` loads the package first, whose names modules of the package do not take.
    order = {
        name: {each for each in found if not name.startswith(f"{each}.")} for name, found in imports.items()
    }
    TopologicalSorter(order).prepare()  # raises CycleError, with the circle


def test_only_fs_touches_the_disk():
    calls = {"open", "scandir", "listdir", "stat", "lstat", "walk", "readlink", "unlink", "rename", "replace"}
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        # `install` runs by itself at a far side that has no package yet.
        if package(path) == "fs" or path == PACKAGE / "remote" / "install.py":
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
