"""One task for the agents of all frameworks: fix a program whose test fails, try to read a secret twice."""

from contextlib import contextmanager

from agentfs import Policy, Workspace
from tests.commands.conftest import SECRET, snapshot

WRONG = "def add(a, b):\n    return a - b\n"
TEST = "from app import add\nassert add(2, 2) == 4, 'wrong'\nprint('passed')\n"
RUN = "python3 -B test_app.py"
# Old and new line of each edit.
FIRST_EDIT = ("    return a - b", "    return a / b")
SECOND_EDIT = ("    return a / b", "    return a + b")
CAT = "cat .env; echo; cat app.py"


def patch(edit):
    """Return an edit of app.py as the body of a V4A patch."""
    old, new = edit
    return f"@@\n-{old}\n+{new}\n"


@contextmanager
def task(tmp_path):
    """Yield a staged workspace with the task; then check that it is done, and undo it."""
    root = tmp_path / "tree"
    root.mkdir()
    (root / "app.py").write_text(WRONG)
    (root / "test_app.py").write_text(TEST)
    (root / ".env").write_text(SECRET)
    before = snapshot(root)
    with Workspace(root, policy=Policy(run="staged")) as ws:
        start = ws.checkpoint().name
        yield ws
        assert (root / "app.py").read_text() == WRONG.replace("-", "+")
        assert (root / ".env").read_text() == SECRET
        assert snapshot(root) != before
        ws.rollback(start)
        assert snapshot(root) == before


def check_answers(first_run, second_run, file_tool, cat):
    """Check the texts that the model got from the two runs, and from the two attempts at the secret."""
    assert "AssertionError: wrong" in first_run
    assert "passed" in second_run
    assert "return a + b" in cat, "the command ran"
    for text in (first_run, second_run, file_tool, cat):
        assert SECRET not in text
    assert file_tool
