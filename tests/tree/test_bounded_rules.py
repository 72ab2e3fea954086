"""Rule files are bounded in size, number and time; within the bounds they mean what they mean to git."""

import random
import re
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from agentfs import Limits, Workspace
from agentfs.tree import ignore_sources
from tests import kit
from tests.conftest import needs
from tests.kit import put
from tests.tree.judges import git, git_files

MIB = 1 << 20


def wildcards(size: int, tail: str = "") -> str:
    lines = "".join(f"*a{number}*b?c[d-f]*{number}{tail}\n" for number in range(size // 15))
    return lines[: lines.rfind("\n", 0, size) + 1]


HOSTILE = {
    "wildcards of 1 MiB": lambda: wildcards(MIB), "wildcards of 4 MiB": lambda: wildcards(4 * MIB),
    "plain lines of 4 MiB": lambda: "".join(f"name{number}.txt\n" for number in range(300_000)),
    "half a million short lines": lambda: "a\n" * (MIB // 2 - 1),
    "one line of wildcards": lambda: "*a" * (MIB // 2),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.full] * ("million" in name)) for name in HOSTILE]
)
def test_regression_a_hostile_rule_file_is_not_read_and_named(tmp_path: Path, name: str) -> None:
    put(tmp_path, {"sub/.gitignore": HOSTILE[name](), ".gitignore": "*.log\n"})
    for number in range(50):
        (tmp_path / "sub" / f"a{number}bxcd{number}").write_text("x\n")
        (tmp_path / "sub" / f"{number}.log").write_text("x\n")
    with Workspace(tmp_path) as ws:
        found = ws.ls(depth=0), ws.glob("**"), kit.find(ws, types="f"), ws.grep("x", output_mode="count")
        for result in found:
            assert result.skipped.unread_rules == ("sub/.gitignore",)
            assert (result.skipped.unreadable, result.skipped.ignored) == (1, 50)
            assert "rule files not read, as they are too large or unreadable: sub/.gitignore" in result.text
        assert ws.glob("a*").total == 50
    used = kit.memory_of(tmp_path, "ws.ls(depth=0)")
    assert used < 100, used


def random_lines(rng: random.Random, size: int) -> str:
    lines: list[str] = []
    while size > 0:
        atoms = ["a", "b", "x", f"{rng.randrange(300):03}", "*", "?", "[0-9]", "[!a]", ".txt", ".o"]
        parts = ["".join(rng.choices(atoms, k=rng.randint(2, 4))) for _ in range(rng.choice([1, 1, 1, 2]))]
        begin, end = rng.choice(["", "", "", "!", "/", "**/"]), rng.choice(["", "", "", "/", "/**"])
        lines.append(begin + "/".join(parts) + end)
        size -= len(lines[-1]) + 1
    return "\n".join(lines) + "\n"


@needs("git")
@pytest.mark.parametrize("seed", [
    pytest.param(0, marks=pytest.mark.full),
    *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 4)),
])  # fmt: skip
def test_rule_files_within_the_bounds_mean_what_they_mean_to_git(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    for directory in ("", "a/", "a/b/", "x001/"):
        (tmp_path / directory).mkdir(exist_ok=True)
        for number in range(0, 300, 3):
            (tmp_path / f"{directory}{rng.choice('abx')}{number:03}{rng.choice(['', '.txt', '.o'])}").touch()
        wild = random_lines(rng, 30_000 if directory in ("", "x001/") else 1000)
        names = (f"{rng.choice('abx')}{n % 300:03}{rng.choice(['.txt', '.q'])}\n" for n in range(3_000))
        (tmp_path / f"{directory}.gitignore").write_text(wild + "".join(names) * (directory == ""))
    with Workspace(tmp_path, limits=Limits(timeout=30)) as ws:
        result = kit.find(ws, types="f", hidden=True, limit=1000)
    assert result.skipped.unread_rules == ()
    git(tmp_path, "init", "-q")
    assert sorted(entry.path for entry in result.files) == git_files(tmp_path)


def test_rule_files_are_bounded_together_where_they_hold_together(tmp_path, monkeypatch):
    monkeypatch.setattr(ignore_sources, "_MAX_TOGETHER", 12_000)
    for directory in ("", "a/", "a/b/", "a/b/c/", "d/"):
        (tmp_path / directory).mkdir(exist_ok=True)
        small = directory == "a/b/c/"
        (tmp_path / f"{directory}.gitignore").write_text("skip.txt\n" + ("" if small else wildcards(5000)))
        (tmp_path / f"{directory}skip.txt").touch()
    with Workspace(tmp_path) as ws:
        result = ws.glob("**")
        assert result.skipped.unread_rules == ("a/b/.gitignore",)
        assert result.files == [], "the rule of a directory above holds there too"
        put(tmp_path, {".gitignore": wildcards(5000), "a/.gitignore": wildcards(5000)})
        found = [entry.path for entry in ws.glob("**").files]
        assert found == ["a/b/skip.txt", "a/skip.txt", "skip.txt"]


def test_a_rule_file_that_is_not_read_outside_the_root_is_not_named(tmp_path: Path) -> None:
    top = tmp_path / "secret-name/root"
    (top / "sub").mkdir(parents=True)
    for name in ("HEAD", "objects", "refs"):
        (tmp_path / "secret-name/.git" / name).mkdir(parents=True)
    (tmp_path / "secret-name/.gitignore").write_text(wildcards(MIB))
    with Workspace(top) as ws:
        result = ws.ls()
        assert result.skipped.unread_rules == ("a rule outside the workspace",)
        assert "secret-name" not in result.text


@pytest.mark.full
def test_regression_compiling_rules_keeps_the_deadline(tmp_path: Path) -> None:
    rules = wildcards(40_000)
    for number in range(300):
        directory = tmp_path / f"d{number:03}"
        directory.mkdir()
        put(directory, {".gitignore": rules.replace("\n", f"{number}\n"), "f.txt": "x\n"})
    with Workspace(tmp_path, limits=Limits(timeout=0.3)) as ws:
        for call in (partial(ws.ls, depth=0), partial(ws.glob, "*.txt"), partial(ws.grep, "x")):
            began = time.monotonic()
            result = call()
            assert time.monotonic() - began < 8, "without a look at the clock it takes a minute"
            assert result.skipped.reached == "timeout"
            assert "stopped early after 0.3 s" in result.text


@pytest.mark.full
def test_regression_deciding_about_names_keeps_the_deadline(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("".join(f"d{number}/**\n" for number in range(7000)))
    for number in range(3000):
        (tmp_path / f"f{number}").touch()
    with Workspace(tmp_path, limits=Limits(timeout=0.5)) as ws:
        began = time.monotonic()
        result = ws.ls(limit=10)
        assert time.monotonic() - began < 8
        assert result.skipped.reached == "timeout"
        assert result.total < 3000


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_regression_large_globs_are_not_kept_for_the_life_of_the_process(tmp_path: Path) -> None:
    def resident() -> int:
        found = re.search(r"VmRSS:\s*(\d+)", Path("/proc/self/status").read_text())
        return int(found[1]) >> 10 if found else 0

    (tmp_path / "f").touch()  # a glob without a match is compiled again for the advice
    with Workspace(tmp_path) as ws:
        ws.glob("{f,{1..7}" + "?*" * 1500 + "}")
        before = resident()
        for number in range(2):
            assert ws.glob("{f,{1..7}" + "?*" * 1500 + f"{number}" + "}").total == 1
        assert resident() - before < 3  # MiB; 4 if `re` keeps them


@pytest.mark.parametrize("deep", [3, 12])
def test_why_a_path_is_left_out_is_said_from_rules_that_are_read_once(tmp_path: Path, deep: int) -> None:
    directory = tmp_path
    (tmp_path / ".gitignore").write_text("".join(f"name{number}.txt\n" for number in range(10_000)))
    for number in range(deep):
        directory = directory / f"d{number}"
        directory.mkdir()
        (directory / ".gitignore").write_text(f"plain{number}\n")
    put(directory, {".gitignore": "out/\n", "out/f.txt": "needle\n"})
    with Workspace(tmp_path) as ws:
        place = "/".join(f"d{number}" for number in range(deep))
        # The second look has half a second, which a machine that is busy with other work may use up.
        texts = (ws.grep("needle").text for _ in range(5))
        assert any(f"as in {place}/out/ (ignored by {place}/.gitignore" in text for text in texts)
