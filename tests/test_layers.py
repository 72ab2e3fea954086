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
    {"habits", "base.runner", "providers", "permission"},
    {"tools"},
    {"workspace"},
    {"remote", "store"},
    {"branches"},
    {"dialects"},
    {"mcp"},
    {"frameworks"},
    {"cli"},
    {"__init__", "__main__"},  # the public names and `python -m`
]
# The modules that a dialect may import besides its own.
PUBLIC = {"agentfs", "agentfs.results", "agentfs.errors", "agentfs.dialects.toolkit"}


FILES = sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def package(path: Path) -> str:
    return package_of(path.relative_to(PACKAGE).with_suffix("").parts)


def package_of(parts: Sequence[str]) -> str:
    return ".".join(parts[:2]) if parts[0] == "base" and parts[-1] != "__init__" else parts[0]


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    kinds = (ast.ImportFrom, ast.Import, ast.Constant, ast.Call)
    return [node for node in ast.walk(tree_of(path)) if isinstance(node, kinds)]


@pytest.fixture(scope="module", autouse=True)
def parsed() -> None:
    for path in FILES:
        nodes_of(path)


def imported_modules(path: Path) -> Iterator[str]:
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides its layer"
            if node.module == "agentfs":  # the module of a public name, or the submodule
                yield from (
                    getattr(agentfs, each.name).__module__
                    if each.name in agentfs.__all__
                    else f"agentfs.{each.name}"
                    for each in node.names
                )
            elif node.module == "agentfs.base":
                yield from (f"agentfs.base.{each.name}" for each in node.names)
            else:
                yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"\A(agentfs(?:\.\w+)+)\.?\Z", node.value)


def imported_packages(path: Path) -> set[str]:
    parts = [module.split(".") for module in imported_modules(path)]
    found = {package_of(each[1:]) for each in parts if each[0] == "agentfs" and each[1:]}
    return found & set().union(*LAYERS)


def test_each_module_has_a_layer():
    assert {package(path) for path in FILES} == set().union(*LAYERS)


def test_imports_go_down_only():
    height = {name: number for number, names in enumerate(LAYERS) for name in names}
    wrong = [
        f"{name_of(path)} imports {there}"
        for path in FILES
        for there in imported_packages(path) - {package(path)}
        if height[there] >= height[package(path)]
    ]
    assert wrong == []


def test_dialects_import_public_names_and_their_toolkit_only():
    wrong = []
    for path in FILES:
        if package(path) != "dialects" or path.stem == "toolkit":
            continue
        own = PACKAGE / "dialects" / path.relative_to(PACKAGE / "dialects").parts[0]
        allowed = (f"agentfs.dialects.{own.stem}", "agentfs.dialects.toolkit")
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("agentfs"):
                names = {f"{node.module}.{each.name}" for each in node.names}
                if node.module == "agentfs":
                    names -= {f"agentfs.{each}" for each in agentfs.__all__}
                elif node.module in PUBLIC or node.module.startswith(allowed):
                    continue
                wrong += [f"{name_of(path)} imports {name}" for name in names - PUBLIC]
    assert wrong == []


def test_imports_have_no_cycle():
    dotted = ((path, name_of(path)[:-3].replace("/", ".")) for path in FILES)
    names = {path: f"agentfs.{name}".removesuffix(".__init__") for path, name in dotted}
    imports: dict[str, set[str]] = {}
    for path, name in names.items():
        found = set[str]()
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom):
                found |= {str(node.module), *(f"{node.module}.{each.name}" for each in node.names)}
            elif isinstance(node, ast.Import):
                found |= {each.name for each in node.names}
        # `from agentfs.fs import root` loads the package first; its own modules take no names of it.
        known = found & {*names.values()} - {name}
        imports[name] = {each for each in known if not name.startswith(f"{each}.")}
    TopologicalSorter(imports).prepare()  # raises CycleError with the cycle


# They read the overlay of a command, or facts about the system; the tree itself only through `fs`.
BESIDE_THE_TREE = {
    *("commands/effects.py", "commands/hidden_files.py", "commands/masks.py", "commands/outside.py"),
    *("commands/stage.py", "commands/system.py", "watch/inotify.py"),
    *("branches/branch_sandbox.py", "branches/inside.py"),
}
DISK = re.compile(r"open|os\.(?:open|scandir|listdir|stat|lstat|walk|readlink|unlink|rename|replace)(?!\w)")


def test_only_fs_touches_the_disk():
    wrong = [
        f"{name_of(path)}:{node.lineno} {ast.unparse(node.func)}"
        for path in FILES
        if package(path) != "fs" and name_of(path) not in BESIDE_THE_TREE
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and DISK.fullmatch(ast.unparse(node.func))
    ]
    assert wrong == []


# Methods and functions that look for something in a text.
SEARCHES = re.compile(
    "count|endswith|r?(?:find|index|partition|split)|remove(?:prefix|suffix)|replace|splitlines|startswith"
    "|strip|translate|findall|finditer|fullmatch|match|search|sub"
)
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
        copied = [node for node in nodes if isinstance(node, ast.Assign) and is_text(node.value)]
        copies |= {each.id for node in copied for each in node.targets if isinstance(each, ast.Name)}
        for node in nodes:
            looked_at: list[ast.AST] = []
            match node:
                case ast.Call(func=ast.Attribute() as called) if SEARCHES.fullmatch(called.attr):
                    looked_at = [called.value, *node.args]
                case ast.Compare() if any(isinstance(each, (ast.In, ast.NotIn)) for each in node.ops):
                    looked_at = [*node.comparators]
                case ast.Subscript():
                    looked_at = [node.value]
            if any(map(is_text, looked_at)):
                yield ast.unparse(node)


def test_only_renderers_search_in_the_texts_of_results():
    """Results have typed fields, notes and spans; whoever needs a part of a text takes these."""
    found = [
        f"{name_of(path)}: {search}"
        for path in FILES
        if package(path) not in RENDERERS
        for search in searches_in_results(tree_of(path))
    ]
    assert found == []


def test_regression_no_group_of_a_regex_is_repeated_possessively():
    """Before Python 3.11.5, `re` finds no match for `(?:a*b)*+c`, so rules were misread."""
    possessive = re.compile(r"[^\\]\)(?:[*+?]|\{[0-9,]+\})\+")
    inner = re.compile(r"\(\?:[^()]*[*+?]\+[^()]*\)(?:[*+?]|\{[0-9,]+\})\+")  # nothing in it can be retried
    found = [
        f"{name_of(path)}: {text.value}"
        for path in FILES
        for text in nodes_of(path)
        if isinstance(text, ast.Constant) and isinstance(text.value, str)
        if possessive.search(inner.sub("", text.value))
    ]
    assert found == []
