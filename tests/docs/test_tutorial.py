"""The tutorial, typed literally: its files and commands go into one shell on a terminal, page by page."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from contextlib import closing

import pytest

from scripts.pages import NOT_RUN, TUTORIAL, blocks_of, commands_of, sessions, shown_or_printed

READY = "<ready>"
PATIENCE = 60  # seconds for one command


class Shell:
    """bash on a terminal without colours; it keeps its directory and variables from line to line."""

    def __init__(self, directory):
        self._screen, end = pty.openpty()
        environment = {
            "HOME": str(directory),
            "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]),
            "TERM": "dumb",
            "COLUMNS": "80",
            "LANG": "C.UTF-8",
            "PS1": READY,
            "PS2": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # a reader has no other plugins
        }
        (directory / "rc").write_text(f"stty -echo -onlcr; PS1='{READY}'\n")
        self._bash = subprocess.Popen(
            [shutil.which("bash"), "--noprofile", "--noediting", "--rcfile", directory / "rc", "-i"],
            cwd=directory, env=environment, stdin=end, stdout=end, stderr=end, start_new_session=True,
        )  # fmt: skip
        os.close(end)
        self._printed()

    def type(self, text):
        """Type lines, and return what they print."""
        typed = text.encode() if text.endswith("\n") else f"{text}\n".encode()
        for start in range(0, len(typed), 1000):  # the kernel's buffer of a terminal is small
            os.write(self._screen, typed[start : start + 1000])
            time.sleep(0.01)
        return self._printed()

    def _printed(self):
        got, end = "", time.monotonic() + PATIENCE
        while not got.endswith(READY):
            assert select.select([self._screen], [], [], end - time.monotonic())[0], (
                f"no prompt after {got!r}"
            )
            got += os.read(self._screen, 65536).decode()
        return got.removesuffix(READY)

    def close(self):
        self._bash.kill()
        self._bash.wait()
        os.close(self._screen)


@pytest.mark.full
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_tutorial_typed_into_one_shell_prints_what_its_pages_show(tmp_path):
    """A page said `cd shop && …`, after which all later files and commands were in the wrong directory."""
    [pages] = [pages for pages in sessions() if pages[0].parent == TUTORIAL]
    wrong, typed = [], 0
    with closing(Shell(tmp_path)) as shell:
        for block in (block for page in pages for block in blocks_of(page)):
            if block.title:
                name = os.path.dirname(block.title)
                made = shell.type(f"mkdir -p {name or '.'} && cat >{block.title} <<'END'\n{block.content}END")
                assert made == "", block
                continue
            assert block.language == "console", f"{block}: a reader does not know where to type it"
            for command, shown in commands_of(block):
                if command.startswith(tuple(NOT_RUN)):
                    continue
                printed, typed = shell.type(command), typed + 1
                if shown and shown_or_printed(shown, printed) != shown:
                    wrong.append((str(block), command, printed))
                assert shell.type("pwd -P").strip() == os.path.realpath(tmp_path), command
    assert wrong == []
    assert typed > 12
    assert sorted(path.name for path in (tmp_path / "shop").glob("*.py")) == ["cart.py", "test_cart.py"]
