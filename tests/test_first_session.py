"""README's first page as a new user types it: its install line and session, in a new environment."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.pages import blocks_of

ROOT = Path(__file__).parents[1]
PROGRAMS = ("bash", "cat", "sed", "sh")  # the only ones on the PATH: bubblewrap is not among them


@pytest.mark.full
@pytest.mark.network
def test_the_session_works_after_the_install_line_alone(tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in PROGRAMS:
        (programs / name).symlink_to(str(shutil.which(name, path="/usr/bin:/bin")))
    environment = {"HOME": str(tmp_path), "PATH": str(programs), "LANG": "C.UTF-8"}

    def run(*command: str, cwd: Path) -> str:
        given = {"cwd": cwd, "env": environment, "timeout": 300, "text": True}
        return subprocess.run(command, check=True, capture_output=True, **given).stdout

    blocks = blocks_of(ROOT / "README.md")
    install = next(block.content for block in blocks if block.content.startswith("pip install ."))
    [file] = [block for block in blocks if block.title == "shop/cart.py"]
    [session] = [block.content for block in blocks if "Workspace(" in block.content]
    [printed] = [block.content for block in blocks if block.content.startswith(">>> ")]
    virtual = tmp_path / "new"
    run(sys.executable, "-m", "venv", str(virtual), cwd=tmp_path)
    words = re.sub(r"#.*", "", install).split()
    run(str(virtual / "bin" / words[0]), *words[1:], cwd=ROOT)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "cart.py").write_text(file.content, encoding="utf-8")

    assert run(str(virtual / "bin" / "python"), "-c", session, cwd=tmp_path) == printed
    assert shutil.which("bwrap", path=environment["PATH"]) is None
