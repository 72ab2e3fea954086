"""State directories in odd places: on an overlay, and on a full disk."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentfs import AgentFSError, Policy, Workspace
from tests.branches.test_branches import read_tree
from tests.kit import refused

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system")


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


@pytest.mark.full
def test_a_state_directory_on_an_overlay_is_unsupported(opened, tree, tmp_path):
    (tmp_path / "empty").mkdir()
    with on_overlay(tmp_path, tmp_path / "empty") as place:
        ws = opened(state=place / "state")
        with pytest.raises(AgentFSError, match="give a state directory on a volume or a tmpfs") as raised:
            ws.branch("one")
        ws.close()
    assert raised.value.code == "unsupported"


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
