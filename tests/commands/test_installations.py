"""A staged command finds the programs of its PATH and the interpreter below directories of its own."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from agentfs import Policy, Workspace


@pytest.fixture
def place():
    """A directory below /tmp, wherever pytest's own lie."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        yield Path(directory).resolve()


def ran(root: Path, command: str) -> str:
    root.mkdir(exist_ok=True)
    with Workspace(root, policy=Policy(run="staged")) as ws:
        return ws.run(command).stdout.decode()


def test_regression_a_virtual_environment_below_tmp_is_found(place, monkeypatch):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
    monkeypatch.setenv("PATH", f"{place / 'venv' / 'bin'}:/usr/bin:/bin")
    assert ran(place / "tree", "python -c 'import sys; print(sys.prefix)'") == f"{place / 'venv'}\n"


@pytest.mark.parametrize("link", [False, True])
def test_a_directory_of_programs_is_shown_without_its_neighbours(place, monkeypatch, link):
    programs = place / "mine" / "programs"
    programs.mkdir(parents=True)
    (programs / "hello").write_text("#!/bin/sh\necho hello\n")
    (programs / "hello").chmod(0o755)
    (place / "mine" / "notes.txt").write_text("not shown\n")
    if link:
        (place / "link").symlink_to(programs)
    monkeypatch.setenv("PATH", f"{place / 'link' if link else programs}:/usr/bin:/bin")
    shown = ran(place / "tree", f"hello; ls {place / 'mine'}; echo x > {programs}/hello")
    assert shown == "hello\nprograms\n"
    assert (programs / "hello").read_text() == "#!/bin/sh\necho hello\n"


def test_programs_of_the_tree_itself_are_those_of_the_overlay(place, monkeypatch):
    programs = place / "tree" / "bin"
    programs.mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    assert (
        ran(place / "tree", "printf '#!/bin/sh\\necho made\\n' > bin/new; chmod +x bin/new; new") == "made\n"
    )
