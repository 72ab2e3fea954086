"""A workspace in a subinterpreter, where signal handlers can be neither set nor run."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

root, state = sys.argv[1:]
code = f'''
import sys
sys.path[:0] = {sys.path!r}
from agentfs import Workspace

for kept in (None, {state!r}):
    with Workspace({root!r}, state=kept) as ws:
        ws.write("a.txt", "one\\\\n")
        ws.edit("a.txt", "one", "two")
        ws.undo()
        assert ws.read("a.txt").content == "one\\\\n"
        with ws.transaction() as tx:
            tx.move("a.txt", "b.txt")
        assert ws.grep("one").total_matches == 1
        assert ws.tools().call("read", dict(path="b.txt")).success
        ws.undo(2)
'''
# The C extension of regex cannot be loaded into an interpreter with its own lock.
made = interpreters.create("legacy") if sys.version_info >= (3, 13) else interpreters.create(isolated=False)
failed = interpreters.run_string(made, code)
assert not failed, failed
interpreters.destroy(made)
"""


def test_files_are_changed_in_a_subinterpreter(tmp_path):
    pytest.importorskip("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    (tmp_path / "root").mkdir()
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "root"), str(tmp_path / "state")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
