"""A review has the same answers in each kind of workspace, and of each kind of text."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from agentfs import AfterChange, AgentFSError, Policy, Workspace
from agentfs.results import Review
from tests.kit import put, refused

TEXT = "".join(f"line {number}\n" for number in range(20))


def ids_of(review: Review) -> list[str]:
    return [hunk.id for hunk in review.hunks]


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return put(tmp_path / "tree", dict.fromkeys(["a.txt", "b.txt", "m/a.txt", "m/old.txt"], TEXT))


def test_a_transaction_is_reviewed_before_and_after_its_end(top: Path):
    with Workspace(top) as ws:
        with ws.transaction() as staged:
            staged.edit("a.txt", "line 3\n", "three\n")
            staged.move("b.txt", "c.txt")
            inside = staged.review()
            assert [file.kind for file in inside.files] == ["changed", "renamed"]
        after = ws.review()
        assert [(each.old_lines, each.new_lines) for each in after.hunks] == [
            (each.old_lines, each.new_lines) for each in inside.hunks
        ]
        ws.apply_review(reject=ids_of(after))
        assert ((top / "a.txt").read_text(), (top / "b.txt").read_text()) == (TEXT, TEXT)


def test_a_notebook_is_reviewed_by_the_lines_of_its_file(top: Path):
    cell: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**cell, "id": str(number), "source": [f"x = {number}\n", "y = 1"]} for number in range(3)]
    book: dict[str, Any] = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (top / "n.ipynb").write_text(json.dumps(book, indent=1) + "\n")
    before = (top / "n.ipynb").read_bytes()
    with Workspace(top) as ws:
        ws.edit("n.ipynb", "x = 0", "x = 10")
        ws.edit("n.ipynb", "x = 2", "x = 12")
        review = ws.review(paths="n.ipynb")
        first, second = review.hunks
        assert '    "x = 10\\n",\n' in first.new_lines
        ws.apply_review(reject=[first.id])
        result = ws.read("n.ipynb")
        assert "x = 0" in result.content
        assert "x = 12" in result.content
        ws.apply_review(reject=[second.id])
    assert (top / "n.ipynb").read_bytes() == before


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "mixed"])
def test_line_ends_of_both_sides_are_kept(top: Path, newline: str, ended: bool):
    old = "".join(f"line {number}\n" for number in range(9))[: None if ended else -1]
    old = old.replace("\n", newline) if newline != "mixed" else old.replace("3\n", "3\r\n")
    (top / "a.txt").write_bytes(old.encode())
    with Workspace(top) as ws:
        ws.edit("a.txt", "line 3", "three")
        last = "line 8\n" if ended else "line 8"
        ws.edit("a.txt", last, "last\nof all" if ended else "last\n")
        made = (top / "a.txt").read_bytes()
        review = ws.review(paths="a.txt")
        first, second = review.hunks
        assert "".join(second.new_lines).encode() == made[-len("".join(second.new_lines)) :]
        ws.apply_review(reject=[second.id])
        assert (top / "a.txt").read_bytes() == old.encode().replace(b"line 3", b"three")
        ws.undo()
        assert (top / "a.txt").read_bytes() == made
        ws.apply_review(reject=[first.id, second.id])
        assert (top / "a.txt").read_bytes() == old.encode()
        ws.undo()
        review = ws.review(paths="a.txt")
        ws.apply_review(accept=ids_of(review))
        assert ws.review(paths="a.txt").files == ()


def test_a_rename_with_edits_is_one_hunk(top: Path):
    with Workspace(top) as ws:
        ws.edit("a.txt", "line 3\n", "three\n")
        ws.move("a.txt", "z.txt")
        ws.edit("z.txt", "line 5\n", "five\n")
        (file,) = ws.review(paths="z.txt").files
        assert (file.kind, file.old_path) == ("renamed", "a.txt")
        (hunk,) = file.hunks
        assert (hunk.old_start, hunk.new_lines) == (4, ("three\n", "line 4\n", "five\n"))
        with pytest.raises(AgentFSError, match="has no lines there"):
            ws.apply_review(edit={hunk.id: "NINE\n"})
        ws.apply_review(reject=[hunk.id])
        assert ((top / "a.txt").read_text(), (top / "z.txt").exists()) == (TEXT, False)


def test_a_decision_of_a_review_does_not_wait_for_a_function(top: Path):
    runs, may_end = threading.Event(), threading.Event()

    def slow(path: str, text: str) -> str:
        if "three" in text:
            runs.set()
            assert may_end.wait(30)
        return text

    with Workspace(top, policy=Policy(after_change=[AfterChange("a.txt", slow)])) as ws:
        ws.edit("a.txt", "line 9\n", "nine\n")
        ws.edit("b.txt", "line 9\n", "nine\n")
        call = threading.Thread(target=lambda: ws.edit("a.txt", "line 3\n", "three\n"))
        call.start()
        assert runs.wait(30)
        review = ws.review()  # has what is on disk, and does not wait
        first, second = review.hunks
        assert (first.new_lines, second.new_lines) == (("nine\n",), ("nine\n",))
        ws.apply_review(reject=[first.id])
        assert (top / "a.txt").read_text() == TEXT
        may_end.set()
        call.join()  # the edit is computed again, on the text after the decision
        assert (top / "a.txt").read_text() == TEXT.replace("line 3\n", "three\n")
        ws.apply_review(reject=[second.id])
        assert (top / "b.txt").read_text() == TEXT
        ws.undo(3)  # both decisions, and the edit between them
        assert [hunk.new_lines for hunk in ws.review().hunks] == [("nine\n",), ("nine\n",)]


def test_what_a_command_has_written_is_taken_back_when_its_recording_has_ended(top: Path):
    with Workspace(top) as ws:
        ws.edit("a.txt", "line 3\n", "three\n")
        with ws.recording("a command"):
            (top / "a.txt").write_text(TEXT.replace("line 3\n", "three\n").replace("line 9\n", "nine\n"))
            own, others = ws.review().hunks
            assert [str(hunk.origins[0]) for hunk in (own, others)] == ["tool edit", "another program"]
            refused(lambda: ws.apply_review(reject=[others.id]))
        own, others = ws.review().hunks
        assert [str(hunk.origins[0]) for hunk in (own, others)] == ["tool edit", "command a command"]
        ws.apply_review(reject=[others.id])
        assert ws.review().hunks == (own,)
        ws.apply_review(reject=[own.id])
        assert (top / "a.txt").read_text() == TEXT


BECAME = {
    "directory": lambda path: (path.unlink(), path.mkdir()),
    "protected": lambda path: (path.rename(path.with_name(".env")), path.symlink_to(".env")),
    "large": lambda path: path.write_bytes(b"x" * (10 * 2**20 + 1)),
    "encoding": lambda path: path.write_bytes(path.read_text().encode("utf-16")),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("became", BECAME)
def test_what_became_of_a_file_is_never_lost(top: Path, became: str):
    with Workspace(top) as ws:
        ws.edit("a.txt", "line 3\n", "three\n")
        review = ws.review()
        BECAME[became](top / "a.txt")
        before = {each.name: each.stat().st_size for each in top.iterdir()}
        for decision in ("accept", "reject"):
            refused(lambda: ws.apply_review(**{decision: ids_of(review)}))  # noqa: B023 - called at once
        assert str(ws.review())
        assert {each.name: each.stat().st_size for each in top.iterdir()} == before


def test_regression_a_moved_file_that_others_deleted_is_named_and_not_taken_back(tmp_path: Path):
    """Nobody had read its content, and the rejection failed on the way."""
    (tmp_path / "a.txt").write_text("one\n")
    with Workspace(tmp_path) as ws:
        ws.write("b.txt", "x\n")
        ws.move("a.txt", "c.txt")
        (tmp_path / "c.txt").unlink()
        review = ws.review()
        assert any('"a.txt"' in note for note in review.notes)
        ws.apply_review(reject=[hunk.id for hunk in review.hunks])
        assert list(tmp_path.iterdir()) == []
