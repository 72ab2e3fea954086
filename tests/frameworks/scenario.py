"""One task for the agents of all frameworks: fix a program whose test fails, try to read a secret twice."""

import re
from contextlib import contextmanager

from agentfs import Policy, Workspace
from tests.commands.conftest import SECRET
from tests.history.judges import snapshot

WRONG = "def add(a, b):\n    return a - b\n"
TEST = "from app import add\nassert add(2, 2) == 4, 'wrong'\nprint('passed')\n"
RUN = "python3 -B test_app.py"
# Old and new line of each edit.
FIRST_EDIT = ("    return a - b", "    return a / b")
SECOND_EDIT = ("    return a / b", "    return a + b")
CAT = 'echo "<$(cat .env)>"'


@contextmanager
def task(tmp_path, run="staged"):
    """Yield a workspace with the task; then check that it is done, and undo it."""
    root = tmp_path / "tree"
    root.mkdir()
    (root / "app.py").write_text(WRONG)
    (root / "test_app.py").write_text(TEST)
    (root / ".env").write_text(SECRET)
    before = snapshot(root)
    with Workspace(root, policy=Policy(run=run)) as ws:
        start = ws.checkpoint().name
        yield ws
        assert (root / "app.py").read_text() == WRONG.replace("-", "+")
        assert (root / ".env").read_text() == SECRET
        assert snapshot(root) != before
        ws.host.rollback(start)
    after = snapshot(root)
    assert {path: after[path] for path in after if not path.startswith(".pydantic-ai-harness")} == before


def check_answers(first_run, second_run, file_tool, cat=None):
    """Check the texts that the model got from the two runs, and from the two attempts at the secret."""
    assert "AssertionError: wrong" in first_run
    assert "passed" in second_run
    assert re.search("protected|[Pp]ermission denied", file_tool)
    assert cat is None or "<>" in cat, "the command ran, and the secret is empty"
    for text in (first_run, second_run, file_tool, cat or ""):
        assert SECRET not in text
