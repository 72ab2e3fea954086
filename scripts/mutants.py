"""Change one expression of the package at a time, and see whether the tests notice.

    nice .venv/bin/python scripts/mutants.py 40    # random ones; `--seed 3` takes others; or FILE:LINE

The first-tier tests that run its line judge a mutant, in a copy of the working tree. A run with coverage, of
a quarter of an hour, tells which they are; `--lines DIRECTORY` keeps that. If no test runs the line itself,
those of the package judge, then `SURFACE`. A reader judges survivors.
"""

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from coverage import CoverageData

ROOT = Path(__file__).parents[1]
OTHER_NAMES = {"permission": "permissions", "watch": "search"}  # directories of tests, if not the package's
ALL = "public limits workspace bad_input deadline same_answers secrets suggestions cli matrix"
ALL += " visible_everywhere"
SURFACE = [*(f"tests/test_{each}.py" for each in ALL.split()), "tests/tools/test_schema.py"]
OPTIONS = ["-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-profile=repeatable"]
OPTIONS += ["-m", "not full and not long"]
PAIRS = ((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn))
SAFEGUARDS = {"frozen", "maxsize", "strict"}  # checks that hold if the code is right, and the size of a cache
# Numbers that no answer shows: how much is read at once, how often the clock is read, a race tried again.
UNSEEN = re.compile(
    "(ATTEMPTS|BLOCKS?|BLOCK_SIZE|BUFFER_SIZE|CACHED|CHECK_EVERY|CHUNK|PER_CHECK|PIECE|RETRIES|SECONDS|STEP)$"
)
COMPARISONS = dict([*PAIRS, *(pair[::-1] for pair in PAIRS)])


class Mutant(NamedTuple):
    """A place in a file, and the text that replaces what is there."""

    path: Path
    line: int
    begin: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {' '.join(self.old.split())}  ->  {' '.join(self.new.split())}"


def variants(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what may replace an expression."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield ast.Compare(node.left, [COMPARISONS[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif is_product(node):
        yield ast.BinOp(node, ast.Add(), ast.Constant(1))
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant(not node.value if isinstance(node.value, bool) else node.value + 1)


def is_product(node: ast.AST) -> bool:
    """Return True for a number that is written as a product or power, such as `64 * 1024`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Pow)):
        return all(isinstance(each, ast.Constant) or is_product(each) for each in (node.left, node.right))
    return False


def expressions(node: ast.AST) -> Iterator[Any]:
    """Yield the expressions that run, without those of f-strings, whose places Python 3.11 does not know."""
    if isinstance(node, ast.keyword) and node.arg in SAFEGUARDS:
        return
    if isinstance(node, ast.Assign) and UNSEEN.search(ast.unparse(node.targets[0])):
        return
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "bases", "type_comment"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield child
                if not is_product(child):  # it is one number
                    yield from expressions(child)


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield the mutants of a module."""
    data = (ROOT / path).read_bytes()
    starts = [0, *accumulate(map(len, data.splitlines(keepends=True)))]
    for node in expressions(ast.parse(data)):
        for new in variants(node):
            begin = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            old = data[begin:end].decode()
            if not old.startswith("0x"):  # a flag or number of the system, which is not wrong by one
                yield Mutant(path, node.lineno, begin, end, old, f"({ast.unparse(new)})")


def run_tests(copy: Path, tests: Sequence[str], *options: str) -> str:
    """Return the first test that fails, or "" if all pass."""
    command = ["timeout", "3600", sys.executable, "-m", "pytest", *OPTIONS, *options, *tests]
    env = os.environ | {"PYTHONPATH": str(copy), "AGENTFS_TEST_PROCESSOR_SECONDS": "60"}
    done = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True, check=False)  # noqa: S603 - our own tests
    named = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - |$)", done.stdout, re.MULTILINE)
    return "" if done.returncode in {0, 5} else named[1] if named else "the start of the tests"


def lines_run(copy: Path, data: Path) -> tuple[CoverageData, list[str]]:
    """Return which tests run which lines, and the files of tests of which that is not known.

    If the directory `data` is missing, run the tests to find out.
    """
    files = {f"{path.relative_to(copy)}".replace("/", "+"): path for path in copy.glob("tests/**/test_*.py")}
    if not data.exists():
        data.mkdir()
        for name, path in files.items():
            os.environ["COVERAGE_FILE"] = str(data / name)
            run_tests(copy, [str(path)], "-n0", "--cov", "--cov-context=test", "--cov-report=")
    # A test that acts as another user loses the data of its process.
    lost = [name.replace("+", "/") for name in sorted(files) if not (data / name).exists()]
    lines = CoverageData(no_disk=True)
    for path in filter(os.path.getsize, data.iterdir()):
        part = CoverageData(str(path))
        part.read()
        lines.update(part)
    return lines, lost


def tests_of(mutant: Mutant, lines: CoverageData, lost: Sequence[str]) -> list[str]:
    """Return the tests that judge a mutant, those of its package first and `lost` last."""
    package = f"tests/{OTHER_NAMES.get(mutant.path.parts[1], mutant.path.parts[1])}"
    contexts = lines.contexts_by_lineno(str(mutant.path)).get(mutant.line, [])
    running = {re.split(r"[|[]", each)[0] for each in contexts} - {""}
    if running:
        return [*sorted(running, key=lambda test: (not test.startswith(f"{package}/"), test)), *lost]
    return [*([package] if (ROOT / package).is_dir() else []), *SURFACE, *lost]


def killer(copy: Path, mutant: Mutant, tests: Sequence[str]) -> str:
    """Return the test that kills a mutant, or ""."""
    original = (copy / mutant.path).read_bytes()
    left_out: list[str] = []  # tests that fail without the mutant too say nothing
    while True:
        changed = original[: mutant.begin] + mutant.new.encode() + original[mutant.end :]
        (copy / mutant.path).write_bytes(changed)
        failed = run_tests(copy, tests, "-x", "-n0", *left_out)
        (copy / mutant.path).write_bytes(original)
        if not failed or not run_tests(copy, [failed] if "::" in failed else ["--co", *tests], "-n0"):
            return failed
        if "::" not in failed:
            raise SystemExit(f"These tests do not start without a mutant: {tests}")
        left_out.append(f"--deselect={failed}")


def main() -> None:
    """Judge the mutants that the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", metavar="NUMBER|FILE:LINE")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lines", type=Path, metavar="DIRECTORY", help="made if missing")
    asked = parser.parse_args()
    name, _, line = asked.what.partition(":")
    modules = [path.relative_to(ROOT) for path in sorted((ROOT / "agentfs").rglob("*.py"))]
    found = [each for path in ([Path(name)] if line else modules) for each in mutants_of(path)]
    if line:
        chosen = [each for each in found if each.line == int(line)]
    else:
        chosen = random.Random(asked.seed).sample(found, int(name))  # noqa: S311 - no secret
    killed: list[bool] = []
    with tempfile.TemporaryDirectory(dir=ROOT.parent) as top:
        left_out = shutil.ignore_patterns(".venv", ".git", "*_cache")
        copy = shutil.copytree(ROOT, Path(top, "copy"), symlinks=True, ignore=left_out)
        lines, lost = lines_run(copy, (asked.lines or Path(top, "lines")).resolve())
        for mutant in chosen:
            test = killer(copy, mutant, tests_of(mutant, lines, lost))
            killed.append(bool(test))
            print(f"{mutant}\n    {f'killed by {test}' if test else 'SURVIVED'}", flush=True)
    print(f"{len(chosen)} of {len(found)} mutants: {sum(killed)} killed")


if __name__ == "__main__":
    main()
