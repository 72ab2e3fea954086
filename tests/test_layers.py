"""Imports go down only, checked in the source."""

import ast
import functools
import re
from collections.abc import Iterator, Sequence
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import agentfs

PACKAGE = Path(__file__).parents[1] / "agentfs"

# From the bottom up. Packages on one line may not import one another. Each module of `base` is a layer of its
# own, because errors stand between them.
LAYERS = [
    {"base", "base.visible", "base.forks", "base.lazy", "base.frozen_data"},
    {"base.advice"},
    {"errors"},
    {"base.call_context", "permissions"},
    {"limits", "policy", "results"},
    {"text"},
    {"patterns"},
    {"fs"},
    {"tree"},
    {"watch", "shown"},
    {"search", "history"},
    {"reading"},
    {"editing"},
    {"commands"},
    {"events"},
    {"arguments"},
    {"habits", "concurrency", "providers", "permission"},
    {"tools"},
    {"workspace"},
    {"remote", "store"},
    {"dialects"},
    {"mcp"},
    {"frameworks"},
    {"cli"},
    {"__init__", "__main__"},  # the public names and `python -m`
]
# The modules that a dialect may import besides its own.
PUBLIC = {"agentfs", "agentfs.results", "agentfs.errors", "agentfs.dialects.toolkit"}


def package(path: Path) -> str:
    return package_of(path.relative_to(PACKAGE).with_suffix("").parts)


def package_of(parts: Sequence[str]) -> str:
    return ".".join(parts[:2]) if parts[0] == "base" and parts[-1] != "__init__" else parts[0]


@pytest.fixture(scope="module", autouse=True)
def parsed() -> None:
    """Parse each module once, for all tests here."""
    for path in PACKAGE.rglob("*.py"):
        nodes_of(path)


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Return the nodes of a module that a test here looks at."""
    kinds = (ast.ImportFrom, ast.Import, ast.Constant, ast.Call)
    return [node for node in ast.walk(tree_of(path)) if isinstance(node, kinds)]


def imported_modules(path: Path) -> Iterator[str]:
    """Yield the modules of the package that a file imports, also by their name in a string."""
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides its layer"
            if node.module == "agentfs":
                yield from (home_of(alias.name) for alias in node.names)
            elif node.module == "agentfs.base":
                yield from (f"agentfs.base.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"\A(agentfs(?:\.\w+)+)\.?\Z", node.value)


def home_of(name: str) -> str:
    """Return the module of a public name of `agentfs`, or the submodule of that name."""
    if name not in agentfs.__all__:
        return f"agentfs.{name}"
    return str(getattr(agentfs, name).__module__)


def imported_packages(path: Path) -> set[str]:
    known = set().union(*LAYERS)
    parts = [module.split(".") for module in imported_modules(path)]
    found = {package_of(each[1:]) for each in parts if each[0] == "agentfs" and each[1:]}
    return found & known


def test_each_module_has_a_layer():
    packages = {package(path) for path in PACKAGE.rglob("*.py")}
    assert packages == set().union(*LAYERS)


def test_imports_go_down_only():
    height = {name: number for number, names in enumerate(LAYERS) for name in names}
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        here = package(path)
        for there in imported_packages(path) - {here}:
            name = path.relative_to(PACKAGE)
            if height[there] >= height[here]:
                wrong.append(f"{name} imports {there}")
    assert wrong == []


def test_a_module_name_in_a_string_counts_as_an_import(tmp_path):
    (tmp_path / "a.py").write_text(
        'import_module("agentfs.dialects")\nTABLE = {"a": "agentfs.cli"}\n'
        'load(f"agentfs.mcp.{name}")\n'
        "from agentfs import Workspace, events\nfrom agentfs.base import call_context\n"
    )
    found = {"dialects", "cli", "mcp", "workspace", "events", "base.call_context"}
    assert imported_packages(tmp_path / "a.py") == found


def test_dialects_import_public_names_and_their_toolkit_only():
    wrong = []
    for path in sorted((PACKAGE / "dialects").rglob("*.py")):
        if path.stem == "toolkit":
            continue
        own = PACKAGE / "dialects" / path.relative_to(PACKAGE / "dialects").parts[0]
        own_names = f"agentfs.dialects.{own.stem}" if own.is_dir() else "agentfs.dialects.toolkit"
        for node in nodes_of(path):
            module = str(node.module) if isinstance(node, ast.ImportFrom) else ""
            if module == "agentfs.dialects" and [alias.name for alias in node.names] == ["toolkit"]:
                continue
            if module.startswith("agentfs") and module not in PUBLIC and not module.startswith(own_names):
                wrong.append(f"{path.relative_to(PACKAGE)} imports {module}")
            if module == "agentfs":
                wrong += [
                    f"{path.relative_to(PACKAGE)} imports {alias.name}"
                    for alias in node.names
                    if alias.name not in agentfs.__all__ and f"agentfs.{alias.name}" not in PUBLIC
                ]
    assert wrong == []


def test_imports_have_no_cycle():
    files = {
        ".".join(("agentfs", *path.relative_to(PACKAGE).with_suffix("").parts)): path
        for path in PACKAGE.rglob("*.py")
    }
    modules = {name.removesuffix(".__init__"): path for name, path in files.items()}
    imports: dict[str, set[str]] = {}
    for name, path in modules.items():
        nodes = nodes_of(path)
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
    TopologicalSorter(order).prepare()  # raises CycleError with the cycle


# They read the overlay of a command, or facts about the system; the tree itself only through `fs`.
BESIDE_THE_TREE = {
    PACKAGE / name
    for name in (
        *("commands/effects.py", "commands/hidden_files.py", "commands/masks.py", "commands/outside.py"),
        *("commands/stage.py", "commands/system.py", "watch/inotify.py"),
    )
}


def test_only_fs_touches_the_disk():
    calls = {"open", "scandir", "listdir", "stat", "lstat", "walk", "readlink", "unlink", "rename", "replace"}
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if package(path) == "fs" or path in BESIDE_THE_TREE:
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.Call):
                called = node.func
                if isinstance(called, ast.Name) and called.id == "open":
                    wrong.append(f"{path.relative_to(PACKAGE)}:{node.lineno} open")
                if isinstance(called, ast.Attribute) and called.attr in calls:
                    of = called.value
                    if isinstance(of, ast.Name) and of.id == "os":
                        wrong.append(f"{path.relative_to(PACKAGE)}:{node.lineno} os.{called.attr}")
    assert wrong == []


# Methods and functions that look for something in a text.
SEARCHES = {
    *(
        "count",
        "endswith",
        "find",
        "index",
        "partition",
        "removeprefix",
        "removesuffix",
        "replace",
        "rfind",
        "rindex",
    ),
    *("rpartition", "rsplit", "split", "splitlines", "startswith", "strip", "translate"),
    *("findall", "finditer", "fullmatch", "match", "search", "sub"),
}
# The attributes of results and errors that are texts.
TEXTS = {"text", "content", "notes", "whole", "message", "hint"}
# The modules that make the texts of results.
RENDERERS = {"base.advice", "text", "results", "shown", "search", "reading", "editing", "history"}


def searches_in_results(tree: ast.Module) -> Iterator[str]:
    """Yield the searches in a text of a result or an error, or in a variable that was set to it."""
    names = {"result", "returned", "outcome", "answer", "error", "problem"}

    def is_text(node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in copies
        if not (isinstance(node, ast.Attribute) and node.attr in TEXTS):
            return False
        of = node.value
        return (of.attr if isinstance(of, ast.Attribute) else getattr(of, "id", "")) in names

    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        nodes, copies = list(ast.walk(function)), set[str]()
        copies |= {
            target.id
            for node in nodes
            if isinstance(node, ast.Assign) and is_text(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in nodes:
            looks = False
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                looks = node.func.attr in SEARCHES and any(map(is_text, [node.func.value, *node.args]))
            elif isinstance(node, ast.Compare) and any(
                isinstance(each, (ast.In, ast.NotIn)) for each in node.ops
            ):
                looks = any(map(is_text, node.comparators))
            elif isinstance(node, ast.Subscript):
                looks = is_text(node.value)
            if looks:
                yield ast.unparse(node)


def test_only_renderers_search_in_the_texts_of_results():
    """Results have typed fields, notes and spans; whoever needs a part of a text takes these."""
    found = [
        f"{path.relative_to(PACKAGE)}: {search}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if package(path) not in RENDERERS
        for search in searches_in_results(tree_of(path))
    ]
    assert found == []


def test_a_search_in_the_text_of_a_result_is_found():
    source = """
def paint(result, context):
    lines = result.content
    yield lines.split("x")
    yield "x" in context.result.text
    yield re.sub("a", "b", result.text)
    yield result.content[1:]
    yield result.path.split("/")
    yield NUMBERED.sub("x", problem.message)
    yield "x" in error.hint
"""
    assert len(list(searches_in_results(ast.parse(source)))) == 6


def test_regression_no_group_of_a_regex_is_repeated_possessively():
    """Before Python 3.11.5, `re` finds no match for `(?:a*b)*+c`, so rules were misread."""
    possessive = re.compile(r"[^\\]\)(?:[*+?]|\{[0-9,]+\})\+")
    inner = re.compile(r"\(\?:[^()]*[*+?]\+[^()]*\)(?:[*+?]|\{[0-9,]+\})\+")  # nothing in it can be retried
    found = [
        f"{path.relative_to(PACKAGE)}: {text.value}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for text in nodes_of(path)
        if isinstance(text, ast.Constant) and isinstance(text.value, str)
        if possessive.search(inner.sub("", text.value))
    ]
    assert found == []
