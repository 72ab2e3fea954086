"""Branches on an overlay, on a full disk, killed in a merge, and merged beside `git merge-file`."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from agentfs import AgentFSError, Policy, Workspace
from tests.branches.test_branches import read_tree
from tests.kit import refused

MOUNTS = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system")


@contextmanager
def mounted(place: Path, *words: str) -> Iterator[Path]:
    place.mkdir()
    if subprocess.run(["mount", *words, place], capture_output=True, check=False).returncode:
        pytest.skip("this system mounts nothing")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@contextmanager
def on_overlay(tmp_path: Path, lower: Path) -> Iterator[Path]:
    # The temporary directory may lie on an overlay itself.
    with mounted(tmp_path / "layers", "-t", "tmpfs", "tmpfs") as layers:
        for name in ("upper", "work"):
            (layers / name).mkdir()
        options = f"lowerdir={lower},upperdir={layers}/upper,workdir={layers}/work"
        with mounted(tmp_path / "overlay", "-t", "overlay", "overlay", "-o", options) as place:
            yield place


@MOUNTS
@pytest.mark.full
def test_a_state_directory_on_an_overlay_is_unsupported(opened, tree, tmp_path):
    (tmp_path / "empty").mkdir()
    with on_overlay(tmp_path, tmp_path / "empty") as place:
        ws = opened(state=place / "state")
        with pytest.raises(AgentFSError, match="give a state directory on a volume or a tmpfs") as raised:
            ws.branch("one")
        ws.close()
    assert raised.value.code == "unsupported"


@MOUNTS
@pytest.mark.full
def test_a_branch_of_a_tree_on_an_overlay(tree, tmp_path):
    with (
        on_overlay(tmp_path, tree) as place,
        Workspace(place, policy=Policy(run="staged"), state=tmp_path / "state") as ws,
        ws.branch("one") as branch,
    ):
        branch.run("echo x > n; rm src/b.py; sed -i s/^3$/three/ src/a.py")
        assert sorted(each.path for each in branch.merge().files) == ["n", "src/a.py", "src/b.py"]
        assert "three" in (place / "src/a.py").read_text()
        ws.undo()
        assert read_tree(place) == read_tree(tree)


@MOUNTS
@pytest.mark.full
def test_a_full_disk_under_a_branch_loses_nothing(opened, tree, tmp_path):
    before = read_tree(tree)
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=3m", "tmpfs") as place:
        ws = opened(state=place / "state")
        branch = ws.branch("one")
        refused(lambda: branch.write("big", "0123456789" * 500_000), "io")
        assert read_tree(tree) == before
        branch.discard()
        with ws.branch("two") as other:
            other.write("n", "x\n")
            assert [each.path for each in other.merge().files] == ["n"]
        ws.close()


PROGRAM = """
import sys, time
from agentfs import Policy, Workspace
branch = Workspace(sys.argv[1], policy=Policy(run="staged"), state=sys.argv[2]).branch("one")
branch.run("for n in f*; do echo changed >> $n; done; echo x > new; rm f0")
print("ready", flush=True)
began = time.monotonic()
branch.merge()
print(time.monotonic() - began, flush=True)
time.sleep(60)
"""


def killed_in_a_merge(tree, state, draw, seconds: float) -> float:
    """Kill a program at some moment of its merge; return how long a merge takes."""
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, tree, state], stdout=subprocess.PIPE, text=True
    )
    assert program.stdout.readline() == "ready\n"
    time.sleep(draw.random() * seconds)
    program.kill()
    told, _ = program.communicate()
    return min(seconds, float(told) * 1.2) if told else seconds


@pytest.mark.parametrize(
    "kills", [pytest.param(2, marks=pytest.mark.full), pytest.param(200, marks=pytest.mark.long)]
)
@pytest.mark.timeout(1800)
def test_a_kill_in_a_merge_leaves_the_old_tree_or_a_step_that_undo_takes_back(opened, tree, tmp_path, kills):
    draw, seconds = random.Random(65), 0.4
    for number in range(20):
        (tree / f"f{number}").write_text(f"{number}\n" * 50)
    before = read_tree(tree)
    merged = {name: text + "changed\n" if name[0] == "f" else text for name, text in before.items()}
    merged = {name: text for name, text in merged.items() if name != "f0"} | {"new": "x\n"}
    for number in range(kills):
        state = tmp_path / f"state{number}"
        seconds = killed_in_a_merge(tree, state, draw, seconds)
        with ExitStack() as stack:
            ws = stack.enter_context(opened(state=state))
            if read_tree(tree) != before:
                ws.undo()
            assert read_tree(tree) == before
            branch = stack.enter_context(ws.branch("one"))
            branch.merge()
            assert read_tree(tree) == merged
            ws.undo()
        assert read_tree(tree) == before


def edited(draw: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    for _ in range(draw.randint(1, 2)):
        at = draw.randrange(len(lines) + 1)
        new = [f"new {draw.randrange(10**6)}\n"] if draw.random() < 0.7 else []
        lines[at : at + draw.randint(0, 1)] = new
    return "".join(lines)


def merged_by_git(place: Path, ours: str, base: str, theirs: str) -> str | None:
    """Return the merged text, or None for a conflict."""
    for name, text in (("ours", ours), ("base", base), ("theirs", theirs)):
        (place / name).write_text(text)
    command = ["git", "merge-file", "-p", "ours", "base", "theirs"]
    ran = subprocess.run(command, cwd=place, check=False, capture_output=True, text=True)
    return None if ran.returncode else ran.stdout


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_random_histories_are_merged_as_git_merges_files(ws, tree, tmp_path):
    draw = random.Random(65)
    branches = [ws.branch(f"b{number}") for number in range(3)]
    for number in range(500):
        name = f"f{number}"
        parent = "".join(f"{draw.randrange(1000)}\n" for _ in range(draw.randint(0, 25)))
        ws.host.write(name, parent)
        bases, texts = dict[int, str](), dict[int, str]()
        for who in (draw.randrange(4) for _ in range(draw.randint(3, 7))):
            if who == 3:
                parent = edited(draw, parent)
                ws.host.write_bytes(name, parent.encode())
                continue
            bases.setdefault(who, parent)  # what has not been looked up is the present text
            texts[who] = edited(draw, texts.get(who, parent))
            branches[who].host.write_bytes(name, texts[who].encode())
        for who, text in sorted(texts.items()):
            wanted = merged_by_git(tmp_path, parent, bases[who], text)
            if wanted is None:
                with pytest.raises(AgentFSError) as raised:
                    branches[who].merge(paths=[name])
                conflict = {"path": name, "branch": text, "parent": parent}
                assert conflict.items() <= raised.value.details["conflicts"][0].items()
            else:
                branches[who].merge(paths=[name])
                parent = wanted
            assert (tree / name).read_text() == parent
