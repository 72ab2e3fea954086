"""`find`, judged filter by filter by fd."""

import os
import random
import subprocess
import time

import pytest

from agentfs import Workspace
from tests import kit
from tests.conftest import needs, program
from tests.kit import error_of

FD = program("fd")
pytestmark = [needs("fd"), needs("git")]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    top = tmp_path_factory.mktemp("tree")
    rng = random.Random(3)
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    names = [
        "Makefile", "main.c", "Main.C", "util.py", "x.tar.gz", ".env", "README.md", "a b.txt", "é.py", "py",
        "run",
    ]  # fmt: skip
    directories = ["", "src/", "docs/"]
    for directory in directories[1:]:
        (top / directory).mkdir()
    for number in range(25):
        parent = rng.choice(directories)
        name = rng.choice(["src", "Lib", "docs", ".cfg", "out", "test", "build.py", f"d{number}"])
        if not (top / parent / name).exists():
            (top / parent / name).mkdir()
            directories.append(f"{parent}{name}/")
    for directory in directories:
        for name in rng.sample(names, rng.randint(0, 6)):
            path = top / directory / name
            path.write_bytes(b"x" * rng.choice([0, 0, 1, 999, 1000, 1001, 1024, 2048, 10_000]))
            days = rng.choice([0, 0.5, 1.5, 3, 40, 400])
            os.utime(path, (time.time() - days * 86_400,) * 2)
            if rng.random() < 0.2:
                path.chmod(0o755)
    (top / "empty").mkdir()
    (top / ".gitignore").write_text("out/\n*.tar.gz\n!keep\n")
    os.symlink("README.md", top / "link.md")
    os.symlink("src", top / "link.d")
    os.symlink("nowhere", top / "broken.py")
    os.mkfifo(top / "fifo.py")
    with Workspace(top) as workspace:
        yield workspace


def judged(workspace, *arguments, cwd="."):
    command = [FD, "--color=never", "-j1", *arguments]
    shown = subprocess.run(
        command, cwd=f"{workspace.root}/{cwd}", capture_output=True, check=False, text=True
    )
    prefix = "" if cwd == "." else f"{cwd}/"
    return sorted(prefix + line.removeprefix("./").rstrip("/") for line in shown.stdout.splitlines())


def found(workspace, path=".", **arguments):
    result = kit.find(workspace, path, limit=100_000, **arguments)
    assert result.exact
    assert len(result.files) == result.total
    return sorted(entry.path for entry in result.files)


CASES = {
    "nothing asked": ({}, []),
    "files": ({"types": "f"}, ["-tf"]),
    "directories": ({"types": "d"}, ["-td"]),
    "links": ({"types": "l"}, ["-tl"]),
    "executables": ({"types": "x"}, ["-tx"]),
    "empty files and directories": ({"types": "e"}, ["-te"]),
    "empty files": ({"types": "ef"}, ["-te", "-tf"]),
    "empty directories": ({"types": ["e", "d"]}, ["-te", "-td"]),
    "files and directories": ({"types": "fd"}, ["-tf", "-td"]),
    "executable or directory": ({"types": "xd"}, ["-tx", "-td"]),
    "a regex": ({"pattern": r"^m.*\.c$"}, [r"^m.*\.c$"]),
    "a capital makes it sensitive": ({"pattern": "Main"}, ["Main"]),
    "no capital, no case": ({"pattern": "makefile"}, ["makefile"]),
    "an escape is no capital": ({"pattern": r"\Smain|\Wc"}, [r"\Smain|\Wc"]),
    "case-sensitive": ({"pattern": "main", "case": "sensitive"}, ["-s", "main"]),
    "case-insensitive": ({"pattern": "MAIN", "case": "insensitive"}, ["-i", "MAIN"]),
    "a regex on the path": ({"pattern": r"src/.*\.py$", "full_path": True}, ["-p", r"src/.*\.py$"]),
    "a glob": ({"glob": "*.py"}, ["-s", "-g", "*.py"]),
    "a glob with braces": ({"glob": "*.{c,md}"}, ["-s", "-g", "*.{c,md}"]),
    "a glob with a class": ({"glob": "[mM]ain.?"}, ["-s", "-g", "[mM]ain.?"]),
    "an extension": ({"extensions": "py"}, ["-epy"]),
    "extensions": ({"extensions": ["c", ".md"]}, ["-ec", "-e.md"]),
    "a long extension": ({"extensions": "tar.gz", "include_ignored": True}, ["-HI", "-E.git", "-etar.gz"]),
    "an extension of files": ({"extensions": "py", "types": "f"}, ["-epy", "-tf"]),
    "excluding a name": ({"exclude": "src"}, ["-Esrc"]),
    "excluding a suffix": ({"exclude": ["*.py", "*.c"]}, ["-E*.py", "-E*.c"]),
    "excluding directories only": ({"exclude": "build.py/"}, ["-Ebuild.py/"]),
    "the first levels": ({"max_depth": 2}, ["-d2"]),
    "following links": ({"follow_symlinks": True}, ["-L"]),
    "following links to files": ({"follow_symlinks": True, "types": "f"}, ["-L", "-tf"]),
    "following links to directories": ({"follow_symlinks": True, "types": "d"}, ["-L", "-td"]),
    "links that lead nowhere": ({"follow_symlinks": True, "types": "l"}, ["-L", "-tl"]),
    "hidden": ({"hidden": True}, ["-H", "-E.git"]),
    "hidden and ignored": ({"include_ignored": True}, ["-HI", "-E.git"]),
    "ignored but not hidden": ({"include_ignored": True, "hidden": False}, ["-I"]),
    "at least": ({"size": "+1k"}, ["-S+1k"]),
    "at most": ({"size": "-1000b"}, ["-S-1000b"]),
    "exactly": ({"size": "1ki"}, ["-S1ki"]),
    "between": ({"size": ["+1k", "-1Ki"]}, ["-S+1k", "-S-1Ki"]),
    "kilo and kibi": ({"size": "+2KiB"}, ["-S+2KiB"]),
    "changed within": ({"changed_within": "1d", "types": "f"}, ["-tf", "--changed-within=1d"]),
    "changed within weeks": ({"changed_within": "1week", "types": "f"}, ["-tf", "--changed-within=1week"]),
    "changed before": ({"changed_before": "2days"}, ["--changed-before=2days"]),
    "changed between": (
        {"changed_before": "1h", "changed_within": "1month 1day 6h"},
        ["--changed-before=1h", "--changed-within=1month 1day 6h"],
    ),
    "changed before a date": ({"changed_before": "2025-01-01"}, ["--changed-before=2025-01-01"]),
    "changed since a time": (
        {"changed_within": "2026-01-01 10:00:00"},
        ["--changed-within=2026-01-01 10:00:00"],
    ),
    "several filters": (
        {"pattern": "m", "types": "f", "extensions": "c", "size": "+1b", "max_depth": 3},
        ["-tf", "-ec", "-S+1b", "-d3", "m"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_fd_agrees_on(tree, case):
    ours, theirs = CASES[case]
    assert found(tree, **ours) == judged(tree, *theirs)


def test_fd_agrees_below_a_directory(tree):
    assert found(tree, "src") == judged(tree, cwd="src")
    assert found(tree, ["src", "docs"]) == sorted(judged(tree, cwd="src") + judged(tree, cwd="docs"))


def test_following_links_leads_nowhere_outside_and_not_in_circles(ws, tmp_path, tmp_path_factory):
    """fd reports an error for a circle; a model is told the name, and that it was left out."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.py").write_text("secret")
    for name, target in {
        "a/b/up": "..", "a/side": "b", "out": outside, "out.py": outside / "secret.py",
    }.items():  # fmt: skip
        os.symlink(target, tmp_path / name)
    assert (tmp_path / "out" / "secret.py").exists()  # the naive way sees it
    result = kit.find(ws, follow_symlinks=True, include_ignored=True)
    circles = ["a", "a/b", "a/b/up", "a/side", "a/side/up"]
    assert [entry.path for entry in result.files] == [*circles, "out", "out.py"]
    assert [(entry.is_dir, entry.target) for entry in result.files[5:]] == [(False, None)] * 2
    assert result.skipped.symlink == 2
    assert kit.find(ws, follow_symlinks=True, types="f").total == 0
    assert kit.find(ws, follow_symlinks=True, size="+1b").total == 0


def test_fd_agrees_on_random_filters(tree):
    rng = random.Random(8)
    options = [pair for name, pair in CASES.items() if name != "ignored but not hidden"]
    tried = 0
    while tried < 20:
        chosen = rng.sample(options, rng.randint(2, 3))
        keys = [key for ours, _ in chosen for key in ours]
        theirs = [argument for _, judge in chosen for argument in judge]
        clash = len(set(keys)) < len(keys) or {"pattern", "glob"} <= set(keys) or "types" in keys
        clash |= "case" in keys and "pattern" not in keys
        if clash or sum(not argument.startswith("-") for argument in theirs) > 1 or "-s" in theirs:
            continue
        tried += 1
        ours = {key: value for each, _ in chosen for key, value in each.items()}
        git = ["-E.git"] if {"include_ignored", "hidden"} & set(keys) else []
        assert found(tree, **ours) == judged(tree, *theirs, *git), (ours, theirs)


@pytest.mark.parametrize(("wrong", "code"), [
    *((wrong, "invalid_argument") for wrong in (
        {"types": "q"}, {"extensions": ""}, {"size": "10x"}, {"size": "big"}, {"changed_within": "soon"},
        {"changed_before": "5parsecs"}, {"max_depth": 0}, {"case": "loud", "pattern": "a"},
        {"sort": "colour"}, {"timeout": 0}, {"timeout": float("nan")}, {"path": []})),
    *((wrong, "not_found") for wrong in ({"path": "srcc"}, {"path": "Makefile.no/src"})),
    *((wrong, "invalid_pattern") for wrong in ({"pattern": "("}, {"glob": "[a"}, {"exclude": "{a"})),
    *((wrong, "outside_workspace") for wrong in ({"exclude": "../x"}, {"path": ".."})),
])  # fmt: skip
def test_bad_arguments_are_typed_errors_with_a_way_out(tree, wrong, code):
    error = error_of(kit.find, tree, **wrong)
    assert (error.code, bool(error.hint)) == (code, True)
    for valid in ({"types": []}, {"changed_before": "99999999999y"}):
        kit.find(tree, **valid)
