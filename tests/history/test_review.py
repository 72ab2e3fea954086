"""`Workspace.review` and its decisions: origins, bad input, what survives, and what a model is told."""

import json
from pathlib import Path

import pytest

from agentfs import AgentFSError, Policy, Workspace
from agentfs.errors import ConflictError, InvalidArgumentError, NoMatchError, ReadOnlyError, RefusedError
from agentfs.results import Hunk, Origin
from tests import kit


@pytest.fixture
def top(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.py").write_text("".join(f"line {number}\n" for number in range(20)))
    return root


def test_each_author_has_a_kind(top: Path):
    with Workspace(top) as ws:
        ws.tools(["edit"]).call("edit", {"path": "a.py", "old_string": "line 1\n", "new_string": "one\n"})
        ws.edit("a.py", "line 3\n", "three\n")
        ws.host.edit("a.py", "line 5\n", "five\n")
        with ws.recording("sed"):
            (top / "a.py").write_text((top / "a.py").read_text().replace("line 7\n", ""))
        with (top / "a.py").open("a") as file:
            file.write("more\n")
        found = [hunk.origins for hunk in ws.review().hunks]
    kinds = [("tool", "edit"), ("tool", "edit"), ("program", "edit"), ("command", "sed"), ("other", "")]
    assert found == [(Origin(kind, name),) for kind, name in kinds]


def test_lines_of_a_transaction_keep_their_authors(top: Path):
    with Workspace(top) as ws:
        with ws.transaction() as staged:
            staged.edit("a.py", "line 3\n", "three\n")
            staged.host.edit("a.py", "line 9\n", "nine\n")
        assert [str(hunk.origins[0]) for hunk in ws.review().hunks] == ["tool edit", "program edit"]


def test_a_line_edited_before_a_move_keeps_its_author(top: Path):
    with Workspace(top) as ws:
        ws.edit("a.py", "line 3\n", "three\n")
        ws.move("a.py", "b.py")
        (file,) = ws.review().files
        assert (file.kind, file.path, file.old_path) == ("renamed", "b.py", "a.py")
        assert [hunk.note or str(hunk.origins[0]) for hunk in file.hunks] == [
            'renamed from "a.py"',
            "tool edit",
        ]
        assert file.hunks[0].origins == (Origin("tool", "move"),)


@pytest.mark.parametrize("kind", ["created", "deleted", "renamed", "binary", "mode", "link"])
def test_a_whole_change_is_taken_back(top: Path, kind: str):
    (top / "b.bin").write_bytes(b"\0old")
    with Workspace(top) as ws:
        with ws.recording("make"):
            if kind == "created":
                (top / "new").mkdir()
                (top / "new" / "c.txt").write_text("c\n")
            elif kind == "deleted":
                (top / "a.py").unlink()
            elif kind == "renamed":
                (top / "a.py").rename(top / "z.py")
            elif kind == "binary":
                (top / "b.bin").write_bytes(b"\0new")
            elif kind == "mode":
                (top / "a.py").chmod(0o755)
            else:
                (top / "l").symlink_to("a.py")
        review = ws.review()
        assert [file.kind for file in review.files] == ["created" if kind == "link" else kind]
        review.reject()
        assert sorted(path.name for path in top.iterdir()) == ["a.py", "b.bin"]
        assert (top / "a.py").stat().st_mode & 0o777 == 0o644
        assert (top / "b.bin").read_bytes() == b"\0old"
        assert ws.review().files == ()


def test_accepted_text_is_the_base_for_every_checkpoint(top: Path):
    with Workspace(top) as ws:
        ws.edit("a.py", "line 3\n", "three\n")
        ws.checkpoint("c")
        ws.edit("a.py", "line 9\n", "nine\n")
        ws.review("c").accept()
        assert ws.review("c").hunks == ()
        assert [hunk.new_lines for hunk in ws.review().hunks] == [("three\n",)]


def test_a_new_file_is_accepted_with_all_its_lines_since_a_checkpoint(top: Path):
    with Workspace(top) as ws:
        ws.checkpoint("c")
        ws.write("b.txt", "one\ntwo\n")
        ws.checkpoint("d")
        ws.edit("b.txt", "two", "2")
        ws.review("d").accept()
        (file,) = ws.review().files
        assert (file.kind, file.hunks[0].new_lines) == ("created", ("one\n", "2\n"))
        ws.write("b.txt", "1\nII\n", overwrite=True)
        ws.review("d").accept()
        assert ws.review().files == ws.review("c").files == ()


def test_accepting_a_file_leaves_its_directory(top: Path):
    (top / "d").mkdir(mode=0o755)
    (top / "d" / "a.txt").write_text("one\ntwo\n")
    with Workspace(top) as ws:
        with ws.recording("chmod"):
            (top / "d").chmod(0o700)
            (top / "d" / "a.txt").write_text("one\n2\n")
        ws.review().accept()
        assert ((top / "d").stat().st_mode & 0o777, (top / "d" / "a.txt").read_text()) == (0o700, "one\n2\n")


def test_undo_of_an_accepted_change_is_a_new_hunk(top: Path):
    with Workspace(top) as ws:
        ws.edit("a.py", "line 3\n", "three\n")
        ws.review().accept()
        ws.undo()
        (hunk,) = ws.review().hunks
        assert (hunk.old_lines, hunk.new_lines) == (("three\n",), ("line 3\n",))
        assert hunk.origins == (Origin("tool", "undo"),)
        ws.redo()
        assert ws.review().hunks == ()


def test_accepted_changes_survive_the_process(top: Path, tmp_path: Path):
    with Workspace(top, state=tmp_path / "state") as ws:
        ws.edit("a.py", "line 3\n", "three\n")
        ws.edit("a.py", "line 9\n", "nine\n")
        first, second = ws.review().hunks
        ws.review().accept(first.id)
    with Workspace(top, state=tmp_path / "state") as ws:
        assert ws.review().hunks == (second,)


def test_ids_of_an_older_review_work_while_their_hunks_are_unchanged(top: Path):
    (top / "a.py").write_text("a\n" * 20)
    with Workspace(top) as ws:
        kit.splice(ws, "a.py", [(4, 5, "b"), (20, 21, "b")])
        review = ws.review()
        first, second = review.hunks
        assert first.id != second.id
        (top / "a.py").write_text("new\n" + (top / "a.py").read_text())
        review.accept(first.id)
        review.reject(second.id)
        assert [hunk.new_lines for hunk in ws.review().hunks] == [("new\n",)]
        with pytest.raises(ConflictError, match="decided already"):
            review.reject(first.id)


def test_a_hunk_that_another_program_has_changed_is_a_conflict(top: Path):
    with Workspace(top) as ws:
        ws.edit("a.py", "line 3\n", "three\n")
        review = ws.review()
        (top / "a.py").write_text((top / "a.py").read_text().replace("three\n", "3\n"))
        before = (top / "a.py").read_bytes()
        for decide in (review.accept, review.reject):
            with pytest.raises(ConflictError):
                decide()
        assert (top / "a.py").read_bytes() == before


def test_a_hunk_has_only_the_lines_that_changed(top: Path):
    with Workspace(top) as ws:
        ws.edit("a.py", "line 3\nline 4\nline 5\n", "line 3\nfour\nline 5\n")
        ws.edit("a.py", "line 9\n", "")
        (change, deletion) = ws.review().hunks
        assert (change.old_lines, change.new_lines) == (("line 4\n",), ("four\n",))
        assert (change.old_start, change.new_start, change.where) == (5, 5, "line 5")
        assert (deletion.old_lines, deletion.new_lines) == (("line 9\n",), ())
        assert (deletion.old_start, deletion.new_start, len(deletion.origins)) == (10, 9, 1)


def test_a_change_without_lines_is_one_hunk(top: Path):
    (top / "b.bin").write_bytes(b"\0old")
    with Workspace(top) as ws:
        with ws.recording("make"):
            (top / "a.py").chmod(0o755)
            (top / "b.bin").write_bytes(b"\0new")
            (top / "empty").touch()
        found = {file.path: (file.kind, *map(lined, file.hunks)) for file in ws.review().files}
        assert found == {
            "a.py": ("mode", ("mode 644 to 755", (), ())),
            "b.bin": ("binary", ("binary", (), ())),
            "empty": ("created", ("created", (), ())),
        }
        ws.review().accept()
        ws.delete("empty")
        (file,) = ws.review().files
        assert (file.kind, *map(lined, file.hunks)) == ("deleted", ("deleted", (), ()))


def lined(hunk: Hunk) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    return hunk.note, hunk.old_lines, hunk.new_lines


def test_files_that_only_others_have_written_are_not_shown(top: Path):
    (top / "b.py").write_text("b\n")
    with Workspace(top) as ws:
        ws.edit("a.py", "line 3\n", "three\n")
        (top / "b.py").write_text("by another program\n")
        (top / "c.py").write_text("by another program\n")
        assert [file.path for file in ws.review().files] == ["a.py"]
        ws.review().reject()
        assert (top / "b.py").read_text() == (top / "c.py").read_text() == "by another program\n"


def test_wrong_ids_do_nothing(top: Path):
    with Workspace(top) as ws:
        ws.edit("a.py", "line 3\n", "three\n")
        ws.move("a.py", "b.py")
        review = ws.review()
        first, second = review.hunks
        for ids in (["none"], [first.id, first.id], [second.id], [first.id]):
            for decide in (review.accept, review.reject):
                with pytest.raises(InvalidArgumentError):
                    decide(ids)
        assert ws.review().hunks == review.hunks


@pytest.mark.parametrize(
    "marks",
    [
        {"accept": "all"},
        {"accept": [1]},
        {"edit": {"a": None}},
        {"edit": [["a", "b"]]},
        {"reject": None, "run": "rm"},
        {"since": 1},
        {"review": "another", "reject": []},
    ],
)
def test_decisions_of_someone_else_are_refused(top: Path, marks: dict[str, object]):
    with Workspace(top) as ws:
        ws.edit("a.py", "line 3\n", "three\n")
        with pytest.raises(AgentFSError) as raised:
            ws.apply_review(marks)
        assert raised.value.code in ("invalid_argument", "conflict")
        assert len(ws.review().hunks) == 1


def test_decisions_are_all_made_or_none(top: Path):
    with Workspace(top) as ws:
        for old in (1, 5, 9):
            ws.edit("a.py", f"line {old}\n", f"new {old}\n")
        one, two, three = ws.review().hunks
        marks = {"accept": [one.id], "reject": [two.id], "edit": {three.id: "mine\nours"}}
        with pytest.raises(ConflictError):
            ws.apply_review({**marks, "review": "older"})
        assert len(ws.review().hunks) == 3
        ws.apply_review({**marks, "review": ws.review().name})
        assert "line 5\n" in (top / "a.py").read_text()
        (left,) = ws.review().hunks
        assert left.new_lines == ("mine\n", "ours\n")
        assert left.origins == (Origin("program", "review"),) * 2
        ws.undo()
        assert "new 5\n" in (top / "a.py").read_text()


def test_a_model_is_told_and_an_edit_of_the_place_names_it(top: Path):
    with Workspace(top) as ws:
        for old in (3, 9):
            ws.edit("a.py", f"line {old}\n", f"new {old}\nmore {old}\n")
        review = ws.review()
        first, second = review.hunks
        review.edit(second.id, "mine")
        review.reject(first.id)
        assert 'Edited: "a.py" (line 10)' in review.message()
        assert 'Taken back: "a.py" (line 4)' in review.message()
        with pytest.raises(NoMatchError, match="The user took back or edited") as raised:
            ws.edit("a.py", "new 3\n", "again\n")
        assert raised.value.details["reviewed"] is True


def test_line_ends_and_encoding_are_those_of_the_file(top: Path):
    (top / "a.py").write_bytes("é\r\nb\r\nc\r\n".encode("latin-1"))
    with Workspace(top) as ws:
        ws.edit("a.py", "b", "B")
        review = ws.review()
        assert review.hunks[0].new_lines == ("B\r\n",)
        review.edit(review.hunks[0].id, "x\ny")
        assert (top / "a.py").read_bytes() == "é\r\nx\r\ny\r\nc\r\n".encode("latin-1")


def test_hidden_and_special_files_are_not_shown(top: Path):
    with Workspace(top) as ws:
        ws.write("b.py", "secret\n")
        ws.move("b.py", "c.txt")
        with ws.recording("mv"):
            (top / "c.txt").rename(top / ".env")
            (top / "a.py").unlink()
            (top / "a.py").mkdir()
        text = str(ws.review())
        assert "secret" not in text
        with pytest.raises(AgentFSError):
            ws.review().reject()
        assert (top / ".env").read_text() == "secret\n"


def test_read_only_and_transactions(top: Path):
    with Workspace(top) as ws:
        with ws.transaction() as staged:
            staged.edit("a.py", "line 3\n", "three\n")
            staged.edit("a.py", "line 9\n", "nine\n")
            review = staged.review()
            review.reject(review.hunks[0].id)
            with pytest.raises(RefusedError):
                review.accept(review.hunks[1].id)
        assert [hunk.new_lines for hunk in ws.review().hunks] == [("nine\n",)]
        view = ws.view(policy=ws.policy)
        assert view.review().hunks == ws.review().hunks


def test_read_only_takes_nothing_back(top: Path, tmp_path: Path):
    with Workspace(top, state=tmp_path / "state") as ws:
        ws.edit("a.py", "line 3\n", "three\n")
    policy = Policy(read_only=True)
    with Workspace(top, state=tmp_path / "state", policy=policy) as ws, pytest.raises(ReadOnlyError):
        ws.review().reject()


def test_json_has_no_text_of_a_page(top: Path):
    with Workspace(top) as ws:
        ws.edit("a.py", "line 3\n", "</script><script>alert(1)</script>\u202e\n")
        review = ws.review()
        assert json.loads(review.to_json())["files"][0]["hunks"][0]["id"] == review.hunks[0].id
        assert review.to_html().count("</script>") == 2
        assert "\u202e" not in review.to_html()
        assert "\u202e" not in str(review)
