"""The size of each part of the package: its code lines may become fewer, and not more.

A code line holds at least one token that is not part of a comment or a docstring.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "agentfs"

# The packages that form a part, and the most code lines of the part. If a part shrinks, lower its figure. If
# it must grow, remove something else, or say in the commit what the lines are for.
MOST = {
    ("cli",): 517,
    ("mcp",): 260,
    ("frameworks",): 594,
    ("dialects",): 2_376,
    ("remote",): 727,
    ("branches",): 398,
    ("store",): 425,
    ("commands",): 2_118,
    ("tools", "arguments", "habits"): 1_844,
    ("permission",): 677,
    ("providers",): 282,
    ("editing",): 2_123,
    ("history",): 2_755,
    ("reading", "shown"): 1_204,
    ("search", "patterns"): 2_796,
    ("watch",): 1_116,
    ("tree",): 1_041,
    ("text",): 951,
    ("fs",): 2_745,
    ("base",): 658,
    ("",): 1_507,  # the modules at the top
}


def code_lines(source: str) -> int:
    """Return the number of lines that hold code."""
    tree = ast.parse(source)
    docstrings = {line for node in docstrings_of(tree) for line in lines_of(node)}
    # Within a string, a line that looks empty or like a comment is code.
    strings = {line for node in ast.walk(tree) if is_string(node) for line in lines_of(node)} - docstrings
    lines = enumerate(source.split("\n"), 1)
    written = {number for number, line in lines if line.strip() and not line.lstrip().startswith("#")}
    return len((written | strings) - docstrings)


def docstrings_of(tree: ast.Module) -> Iterator[ast.Expr]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and is_string(first.value):
                yield first


def is_string(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def lines_of(node: ast.AST) -> range:
    return range(node.lineno, node.end_lineno + 1)


def part_of(path: Path) -> tuple[str, ...]:
    parts = path.relative_to(PACKAGE).parts
    name = parts[0] if len(parts) > 1 else ""
    return next((part for part in MOST if name in part), (name,))


@pytest.fixture(scope="module")
def sizes() -> Counter[tuple[str, ...]]:
    found = Counter[tuple[str, ...]]()
    for path in PACKAGE.rglob("*.py"):
        found[part_of(path)] += code_lines(path.read_text(encoding="utf-8"))
    return found


def test_no_part_has_grown(sizes):
    grown = {
        " ".join(part) or "top": f"{size} code lines, at most {MOST.get(part, 0)}"
        for part, size in sizes.items()
        if size > MOST.get(part, 0)
    }
    assert grown == {}, "remove something, or raise the figure and say why"
