"""One seam: which modules may know that a root has other trees, and which only take the option."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "agentfs"
# These decide something for another tree: where a path enters it, where ignore rules begin anew, and what a
# staged command sees: also git's directory, if the root lies below its repository.
KNOW = {
    "fs/context.py", "fs/resolve.py", "tree/walk.py", "commands/staged_process.py",
    "commands/hidden_files.py", "commands/repository.py",
}  # fmt: skip
SEAM = "fs/trees.py"
OPENS = {"fs/root.py"}  # takes the option; it and `Directory` pass on what the seam says
PASSES_ON = {*OPENS, "fs/directory.py"}
# The parts of `Trees` that tell one tree from another; the others are plain questions to the disk.
TELL = {"others", "names"}


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    paths = sorted(PACKAGE.rglob("*.py"))
    return {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text()) for path in paths}


def test_few_modules_besides_the_seam_tell_trees_apart(modules):
    found = {
        name
        for name, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in TELL
        and "trees" in ast.unparse(node.value).split(".")[-1]
    }
    assert found - {SEAM} - PASSES_ON == KNOW
