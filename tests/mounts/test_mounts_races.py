"""Swaps at mount points: another program exchanges what lies at a mount for a link out, during calls."""

import os
from pathlib import Path

import pytest

from agentfs import AgentFSError, Mount, Policy, Workspace
from tests.conftest import part_or_all
from tests.faults.test_races import attacking, needs_exchange

pytestmark = needs_exchange
CALLS = 100_000


@pytest.fixture
def arena(tmp_path: Path):
    root, library, outside = tmp_path / "root", tmp_path / "library", tmp_path / "outside"
    for directory in (root / "deps" / "sub", library / "sub", outside / "lib" / "sub", outside / "sub"):
        directory.mkdir(parents=True)
        said = "outside" if directory.is_relative_to(outside) else "inside"
        for each in (directory, directory.parent):
            (each / "f").write_text(said)
    (tmp_path / "to-outside").symlink_to(outside)
    (root / "to-outside").symlink_to(outside)
    (library / "to-outside").symlink_to(outside / "sub")
    pairs = (
        (root / "lib", root / "to-outside"),  # what the mount shadows
        (library / "sub", library / "to-outside"),  # a directory in the mount
        (library, tmp_path / "to-outside"),  # the source of the mount itself
    )
    with Workspace(root, mounts={"lib": Mount(library)}, policy=Policy(overwrite="always")) as workspace:
        (root / "deps").rename(root / "lib")  # it appears after the mount
        with attacking(*pairs):
            yield workspace, library, outside


@pytest.mark.full
@part_or_all(200)
def test_no_call_escapes_through_a_mount_point(arena, every):
    workspace, library, outside = arena
    calls = [
        lambda: workspace.read("lib/f").text,
        lambda: workspace.read("lib/sub/f").text,
        lambda: workspace.read(library / "sub" / "f").text,
        lambda: workspace.grep("outside", "lib").text.replace("outside the workspace", ""),
        lambda: workspace.write("lib/sub/g", "written").text,
        lambda: workspace.glob("**").text,
    ]
    shown = 0
    for number in range(CALLS // every):
        try:
            text = calls[number % len(calls)]()
        except AgentFSError:
            continue
        shown += 1
        assert "1|outside" not in text
    assert shown > CALLS // every // 10
    assert not list(outside.rglob("g"))


def test_the_naive_way_escapes(arena):
    _, library, _ = arena
    for _ in range(200_000):
        try:
            inside = os.path.realpath(library / "sub" / "f").startswith(str(library))
            if inside and (library / "sub" / "f").read_text() == "outside":
                return
        except OSError:
            continue
    pytest.fail("it did not escape")
