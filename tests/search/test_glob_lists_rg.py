"""Lists of globs with `!`, beside `rg -g` on random trees."""

import random
import re
import subprocess
from pathlib import Path

import pytest

from agentfs import Workspace
from agentfs.errors import OutsideWorkspaceError
from tests import kit
from tests.conftest import needs, program
from tests.kit import put

pytestmark = needs("rg")

NAMES = ["a", "b", "ab", "src", "tests", "x.py", "a.py", "b.js", "c.d", ".h", "out.log", "build"]
RULES = ["*.log\n", "build/\n", "a.py\n", "/src/b.js\n", "!a.py\n", "tests/ab\n"]
ATOMS = [
    "a", "b", "ab", "src", "tests", "build", "*.py", "*.js", "*", "?", "a*", "[ab]", "*.{py,js}", "{src,ab}",
]  # fmt: skip
ATOMS += ["{a}", "*.{py}", "x.py", "*b", "[!a]*", "out.log", "{a,{b,src}}"]


def random_tree(rng: random.Random, root: Path) -> None:
    directories = [root]
    for _ in range(rng.randint(3, 14)):
        path = rng.choice(directories) / rng.choice(NAMES)
        if rng.random() < 0.45:
            path.mkdir(exist_ok=True) if not path.is_file() else None
            if path.is_dir() and path not in directories:
                directories.append(path)
        elif not path.exists():
            path.write_text("x\n")
    for directory in rng.sample(directories, min(len(directories), 2)):
        if rng.random() < 0.5:
            (directory / ".gitignore").write_text("".join(rng.choices(RULES, k=2)))


# A `/` at the end of a glob that is not negated is not compared: to rg it matches no file, to us all below.
def random_glob(rng: random.Random) -> str:
    parts = [rng.choice(["**", *ATOMS]) for _ in range(rng.choice([1, 1, 1, 2, 2, 3]))]
    glob = ("/" if rng.random() < 0.15 else "") + "/".join(parts)
    if rng.random() < 0.55:
        return f"!{glob}{'/' if rng.random() < 0.25 else ''}"
    return glob


def rg_files(root: Path, *options: str) -> set[str]:
    command = [program("rg") or "", "--no-config", "--files", "--no-require-git", "--no-ignore-global"]
    run = subprocess.run([*command, *options], cwd=root, capture_output=True, text=True, check=False)
    assert run.returncode in (0, 1), run.stderr
    return set(run.stdout.split("\n")[:-1])


def judged(root: Path, globs: list[str], shown: set[str] | None = None) -> list[str]:
    """Return what rg lists by the globs alone, of what it shows without them: neither hidden nor ignored."""
    wanted = rg_files(root, "--no-ignore", "--hidden", *(f"-g{glob}" for glob in globs))
    return sorted(wanted & (rg_files(root) if shown is None else shown))


def differences(seed: int, count: int, root: Path) -> list[object]:
    rng = random.Random(seed)
    found: list[object] = []
    for number in range(count):
        tree = root / str(number)
        tree.mkdir()
        random_tree(rng, tree)
        shown = rg_files(tree)
        with Workspace(tree) as ws:
            for _ in range(4):
                globs = [random_glob(rng) for _ in range(rng.choice([1, 1, 2, 2, 3, 4]))]
                try:
                    ours = ws.grep("x", glob=globs, output_mode="files_with_matches", context=0)
                    listed = kit.find(ws, glob=globs, types="f")
                except OutsideWorkspaceError:  # `/name/…` may be meant as an absolute path
                    assert any(re.match(r"/\w+(\.\w+)?/", glob) for glob in globs), globs
                    continue
                theirs = judged(tree, globs, shown)
                names = sorted(path for path in ours.counts if not path.endswith(".gitignore"))
                if names != theirs or sorted(entry.path for entry in listed.files) != theirs:
                    found.append((globs, names, theirs))
    return found


@pytest.mark.full
@pytest.mark.parametrize("count", [30, pytest.param(2500, marks=pytest.mark.long)])
def test_a_list_of_globs_selects_the_same_files_as_rg(tmp_path, count):
    assert differences(count, count, tmp_path) == []


NEGATED = ["!node_modules", "!node_modules/", "!/node_modules", "!node_*", "!{node_modules}/", "!**/node_*"]


@pytest.mark.parametrize("glob", [*NEGATED, ["!node_modules", "*.js"], ["*.js", "!node_modules"]], ids=str)
def test_regression_a_negated_glob_excludes_everything_below_a_directory(tmp_path, ws, glob):
    put(tmp_path, ("a.js", "src/b.js", "node_modules/c.js", "node_modules/d/e.js"))
    wanted = ["a.js", "src/b.js"]
    assert judged(tmp_path, [glob] if isinstance(glob, str) else glob) == wanted
    grep = ws.grep("x", glob=glob)
    assert ([match.path for match in grep.matches], grep.searched_files) == (wanted, 2)
    assert [entry.path for entry in kit.find(ws, glob=glob, types="f").files] == wanted
    assert "node_modules" not in [entry.path for entry in kit.find(ws, glob=glob).files]
    assert list(kit.grep(ws, "x", files=["node_modules/c.js", "a.js"], glob=glob).counts) == ["a.js"]
    put(tmp_path, {".gitignore": "node_modules/\n", "node_modules/needle.js": "needle\n"})
    assert "1 line in hidden or ignored" not in ws.grep("needle", glob=glob).text
    assert "pass include_ignored" in ws.grep("needle").text


@pytest.mark.parametrize(("globs", "wanted"), [
    (["!*.py", "b.py"], ["tests/b.py"]), (["b.py", "!*.py"], []), (["!tests", "tests"], []),
    (["!tests", "tests", "*.py"], ["a.py", "tests/b.py", "tests/deep/d.py"]),
    (["!tests", "*", "!*.js"], ["a.py", "tests/b.py", "tests/deep/d.py"]),
])  # fmt: skip
def test_regression_a_later_glob_wins_over_an_earlier_one(tmp_path, ws, globs, wanted):
    put(tmp_path, ("a.py", "tests/b.py", "tests/c.js", "tests/deep/d.py"))
    assert judged(tmp_path, globs) == wanted
    assert list(ws.grep("x", glob=globs).counts) == wanted
    assert [entry.path for entry in kit.find(ws, glob=globs, types="f").files] == wanted


def test_a_glob_never_includes_hidden_or_ignored_files(tmp_path, ws):
    put(
        tmp_path,
        {".gitignore": "*.log\nout/\n", **dict.fromkeys(("a.log", "out/b.py", ".h/c.py", "d.py"), "x")},
    )
    for glob in ("*.log", "out/**", "**/c.py", ["!d.py", "*"], ["!out", "out", "*.py"]):
        assert {*ws.grep("x", glob=glob).counts} <= {"d.py"}


def test_exclude_with_an_exclamation_mark_includes_again(tmp_path, ws):
    put(tmp_path, ("a.py", "b.py", "c.js", "d/e.py"))
    assert list(ws.grep("x", exclude=["*.py", "!b.py"]).counts) == ["b.py", "c.js"]
    assert list(ws.grep("x", exclude=["!b.py", "*.py"]).counts) == ["c.js"]
    listed = ws.ls(depth=0, ignore=["d", "*.js", "!c.js"]).entries
    assert [entry.path for entry in listed] == ["a.py", "b.py", "c.js"]
    assert [entry.path for entry in kit.find(ws, exclude=["*", "!a.py"]).files] == ["a.py"]
