"""The tables of docs/how-to/migrate.md: both calls of a row do the same, or do not, as it says."""

import ast
import re
from pathlib import Path

import pytest

from agentfs import Policy, Workspace

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "migrate.md"
ROW = re.compile(r"^\| `(\w+\(.*?\))` \| `(\w+\(.*?\))` \| (.+) \|$", re.MULTILINE)
FILES = {
    "src/app.py": "def one():\n    return 1\n\n\ndef two():\n    pass\n",
    "notes.txt": "alpha\nbeta\ngamma\n",
}


def outcome(call, root):
    """Return whether the call succeeded, its answer, and the files after it."""
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    parsed = ast.parse(
        re.sub(r"([(,] ?)-(\w)=", r"\1short_\2=", call), mode="eval"
    ).body  # `-A=1` is not Python
    arguments = {re.sub("^short_", "-", each.arg): ast.literal_eval(each.value) for each in parsed.keywords}
    with Workspace(root, policy=Policy(durability="fast")) as ws:
        ws.write("other.txt", "x\n")  # for `undo`
        result = ws.tools("all").call(parsed.func.id, arguments)
    files = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}
    return result.success, result.content, files


@pytest.mark.parametrize(("there", "here", "verdict"), ROW.findall(PAGE.read_text(encoding="utf-8")))
def test_both_calls_of_a_row(there, here, verdict, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    sent = outcome(there, tmp_path / "there")
    meant = outcome(here, tmp_path / "here")
    assert meant[0], meant[1]
    assert (sent == meant) is (verdict == "yes"), sent[1]


def test_each_row_of_calls_is_read():
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert len(ROW.findall("\n".join(rows))) == len(rows) > 50
