"""One seam: which modules may know that a root has other trees, and which only take the option."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "agentfs"
# These decide something for another tree: where a path enters it, where ignore rules begin anew, and what a
# staged command sees or changed: also git's directory, if the root lies below its repository.
KNOW = {
    "fs/context.py", "fs/resolve.py", "tree/walk.py", "commands/effects.py", "commands/staged_process.py",
    "commands/hidden_files.py", "commands/repository.py",
}  # fmt: skip
SEAM = {"fs/trees.py", "fs/root.py", "fs/directory.py"}  # the last two pass on what the first says
# The parts of `Trees` that tell one tree from another; the others are plain questions to the disk.
TELL = {"others", "names"}


@pytest.mark.full
def test_few_modules_besides_the_seam_tell_trees_apart():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in TELL
        and "trees" in ast.unparse(node.value).split(".")[-1]
    }
    assert found - SEAM == KNOW
