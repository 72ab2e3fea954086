"""`Workspace.review` and its decisions: origins, bad input, what survives, and what a model is told."""

import json
import shutil
import time
from pathlib import Path

import pytest

from agentfs import Policy, Workspace
from agentfs.errors import ConflictError, InvalidArgumentError, ReadOnlyError
from agentfs.results import Hunk, Origin, Review
from tests import kit
from tests.kit import put, refused


@pytest.fixture
def top(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.py").write_text("".join(f"line {number}\n" for number in range(20)))
    return root


def ids_of(review: Review) -> list[str]:
    return [hunk.id for hunk in review.hunks]


def test_each_author_has_a_kind(top: Path):
    with Workspace(top) as ws:
        with ws.transaction() as staged:
            staged.edit("a.py", "line 13\n", "thirteen\n")
            staged.host.edit("a.py", "line 15\n", "fifteen\n")
        ws.move("a.py", "b.py")  # each line keeps its author
        ws.move("b.py", "a.py")
        ws.tools(["edit"]).call("edit", {"path": "a.py", "old_string": "line 1\n", "new_string": "one\n"})
        ws.edit("a.py", "line 3\n", "three\n")
        ws.host.edit("a.py", "line 5\n", "five\n")
        with ws.recording("sed"):
            (top / "a.py").write_text((top / "a.py").read_text().replace("line 7\n", ""))
        with (top / "a.py").open("a") as file:
            file.write("more\n")
        found = [hunk.origins for hunk in ws.review().hunks]
    kinds = [("tool", "edit"), ("tool", "edit"), ("program", "edit"), ("command", "sed")]
    kinds += [("tool", "edit"), ("program", "edit"), ("other", "")]
    assert found == [(Origin(kind, name),) for kind, name in kinds]


WHOLE = {
    "created": lambda top: put(top, {"new/c.txt": "c\n"}),
    "deleted": lambda top: (top / "a.py").unlink(),
    "renamed": lambda top: (top / "a.py").rename(top / "z.py"),
    "binary": lambda top: put(top, {"b.bin": b"\0new"}),
    "mode": lambda top: (top / "a.py").chmod(0o755),
    "link": lambda top: (top / "l").symlink_to("a.py"),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_a_whole_change_is_taken_back(top: Path, kind: str):
    (top / "b.bin").write_bytes(b"\0old")
    with Workspace(top) as ws:
        with ws.recording("make"):
            WHOLE[kind](top)
        review = ws.review()
        assert [file.kind for file in review.files] == ["created" if kind == "link" else kind]
        ws.apply_review(reject=ids_of(review))
        assert sorted(path.name for path in top.iterdir()) == ["a.py", "b.bin"]
        assert (top / "a.py").stat().st_mode & 0o777 == 0o644
        assert (top / "b.bin").read_bytes() == b"\0old"
        assert ws.review().files == ()


def test_a_review_since_a_checkpoint_has_the_hunks_of_later_steps(top: Path):
    with Workspace(top) as ws:
        ws.edit("a.py", "line 3\n", "three\n")
        ws.write("b.txt", "one\ntwo\n")
        ws.checkpoint("c")
        assert ws.review("c").files == ()
        ws.edit("a.py", "line 9\n", "nine\n")
        ws.edit("b.txt", "two", "2")
        changed, created = ws.review("c").files
        assert [hunk.new_lines for hunk in changed.hunks] == [("nine\n",)]
        assert [hunk.new_lines for hunk in created.hunks] == [("one\n", "2\n")], "a creation is whole"
        ws.apply_review(accept=ids_of(ws.review("c")))
        assert ws.review("c").hunks == ()
        assert [hunk.new_lines for hunk in ws.review().hunks] == [("three\n",)]


def test_accepting_a_file_leaves_its_directory(top: Path):
    (top / "d").mkdir(mode=0o755)
    (top / "d" / "a.txt").write_text("one\ntwo\n")
    with Workspace(top) as ws:
        with ws.recording("chmod"):
            (top / "d").chmod(0o700)
            (top / "d" / "a.txt").write_text("one\n2\n")
        ws.apply_review(accept=ids_of(ws.review()))
        assert ((top / "d").stat().st_mode & 0o777, (top / "d" / "a.txt").read_text()) == (0o700, "one\n2\n")


def test_undo_of_an_accepted_change_is_a_new_hunk(top: Path):
    with Workspace(top) as ws:
        ws.edit("a.py", "line 3\n", "three\n")
        ws.apply_review(accept=ids_of(ws.review()))
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
        ws.apply_review(accept=[first.id])
    with Workspace(top, state=tmp_path / "state") as ws:
        assert ws.review().hunks == (second,)
    read_only = Workspace(top, state=tmp_path / "state", policy=Policy(read_only=True))
    with read_only as ws, pytest.raises(ReadOnlyError):
        ws.apply_review(reject=[second.id])


def test_ids_of_an_older_review_work_while_their_hunks_are_unchanged(top: Path):
    (top / "a.py").write_text("a\n" * 20)
    with Workspace(top) as ws:
        kit.splice(ws, "a.py", [(4, 5, "b"), (20, 21, "b")])
        review = ws.review()
        first, second = review.hunks
        assert first.id != second.id
        (top / "a.py").write_text("new\n" + (top / "a.py").read_text())
        ws.apply_review(accept=[first.id])
        ws.apply_review(reject=[second.id])
        assert [hunk.new_lines for hunk in ws.review().hunks] == [("new\n",)]
        with pytest.raises(ConflictError, match="decided already"):
            ws.apply_review(reject=[first.id])


def test_a_hunk_that_another_program_has_changed_is_a_conflict(top: Path):
    with Workspace(top) as ws:
        ws.edit("a.py", "line 3\n", "three\n")
        review = ws.review()
        (top / "a.py").write_text((top / "a.py").read_text().replace("three\n", "3\n"))
        before = (top / "a.py").read_bytes()
        for decision in ("accept", "reject"):
            refused(lambda: ws.apply_review(**{decision: ids_of(review)}), "conflict")  # noqa: B023 - called at once
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
            put(top, {"b.bin": b"\x00new", "empty": ""})
        found = {file.path: (file.kind, *map(lined, file.hunks)) for file in ws.review().files}
        assert found == {
            "a.py": ("mode", ("mode 644 to 755", (), ())),
            "b.bin": ("binary", ("binary", (), ())),
            "empty": ("created", ("created", (), ())),
        }
        ws.apply_review(accept=ids_of(ws.review()))
        ws.delete("empty")
        (file,) = ws.review().files
        assert (file.kind, *map(lined, file.hunks)) == ("deleted", ("deleted", (), ()))


def test_regression_the_text_of_a_file_in_place_of_a_link_or_directory_is_shown(top: Path):
    """Such a file was accepted unseen."""
    put(top, {"d/in": "x\n", "file": "1\n"})
    (top / "link").symlink_to("file")
    with Workspace(top) as ws:
        with ws.recording("make"):
            shutil.rmtree(top / "d")
            for name in ("link", "file"):
                (top / name).unlink()
            put(top, {"d": "new\n", "link": "new\n"})
            (top / "file").symlink_to("d")
        review = ws.review()
        assert {file.path: lined(*file.hunks) for file in review.files} == {
            "d": ("a directory before", (), ("new\n",)),
            "d/in": ("", ("x\n",), ()),
            "file": ('link to "d"', ("1\n",), ()),
            "link": ("a link before", (), ("new\n",)),
        }
        ws.apply_review(reject=ids_of(review))
        assert (top / "d/in").read_text() == "x\n"
        assert (top / "link").read_text() == "1\n"


def test_regression_the_author_of_a_directory_in_place_of_a_file_is_known(top: Path):
    """Its deletion counted as another program's, so it could not be rejected."""
    with Workspace(top) as ws:
        with ws.recording("make"):
            (top / "a.py").unlink()
            (top / "a.py").mkdir()
        ws.delete("a.py")
        review = ws.review()
        assert [str(each) for each in review.hunks[0].origins] == ["command make"]
        ws.apply_review(reject=ids_of(review))
        assert (top / "a.py").is_file()


def lined(hunk: Hunk) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    return hunk.note, hunk.old_lines, hunk.new_lines


def test_files_that_only_others_have_written_are_not_shown(top: Path):
    (top / "b.py").write_text("b\n")
    with Workspace(top) as ws:
        ws.edit("a.py", "line 3\n", "three\n")
        put(top, {"b.py": "by another program\n", "c.py": "by another program\n"})
        assert [file.path for file in ws.review().files] == ["a.py"]
        ws.apply_review(reject=ids_of(ws.review()))
        assert (top / "b.py").read_text() == (top / "c.py").read_text() == "by another program\n"


def test_decisions_are_all_made_or_none(top: Path):
    with Workspace(top) as ws:
        for old in (1, 5, 9):
            ws.edit("a.py", f"line {old}\n", f"new {old}\n")
        one, two, three = ws.review().hunks
        edit = {three.id: "mine\nours"}
        for wrong in ([two.id, "none"], [two.id, two.id], [one.id], [three.id]):
            with pytest.raises((InvalidArgumentError, ConflictError)):
                ws.apply_review([one.id], wrong, edit)
        assert ws.review().hunks == (one, two, three)
        result = ws.apply_review([one.id], [two.id], edit)
        assert str(result) == (
            'The user reviewed your changes. Taken back: "a.py" (line 6). Edited: "a.py" (lines 10-11).'
            " Do not make these changes again unless asked."
        )
        assert "line 5\n" in (top / "a.py").read_text()
        (left,) = ws.review().hunks
        assert left.new_lines == ("mine\n", "ours\n")
        assert left.origins == (Origin("program", "review"),) * 2
        ws.undo()
        assert "new 5\n" in (top / "a.py").read_text()


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
        ws.apply_review(reject=ids_of(ws.review()))
        assert (top / ".env").read_text() == "secret\n"
        assert (top / "a.py").is_file()


def test_regression_a_directory_of_another_program_is_neither_shown_nor_taken_back(top: Path):
    with Workspace(top) as ws:
        ws.write("d/mine.py", "x\n")
        ws.undo()
        (top / "d").mkdir()
        assert not ws.review().files
        ws.write("d/mine.py", "x\n")
        ws.apply_review(reject=ids_of(ws.review()))
        assert [each.name for each in top.iterdir() if each.is_dir()] == ["d"]
        assert not list((top / "d").iterdir())


def test_json_has_no_text_of_a_page(top: Path):
    with Workspace(top) as ws:
        ws.edit("a.py", "line 3\n", "</script><script>alert(1)</script>\u202e\n")
        review = ws.review()
        assert json.loads(review.to_json())["files"][0]["hunks"][0]["id"] == review.hunks[0].id
        assert review.to_html().count("</script>") == 2
        assert "\u202e" not in review.to_html()
        assert "\u202e" not in str(review)


@pytest.mark.parametrize("encoding", ["cp1251", "koi8-r"])
def test_regression_an_encoding_that_was_named_is_that_of_the_review(
    top: Path, tmp_path: Path, encoding: str
):
    (top / "b.txt").write_bytes("раз\nдва\n".encode(encoding))
    with Workspace(top, state=tmp_path / "state") as ws:
        ws.edit("b.txt", "два", "три", encoding=encoding)
        (hunk,) = ws.review().hunks
        assert (hunk.old_lines, hunk.new_lines) == (("два\n",), ("три\n",))
    with Workspace(top, state=tmp_path / "state") as ws:
        (hunk,) = ws.review().hunks
        ws.apply_review(edit={hunk.id: "четыре"})
        assert (top / "b.txt").read_bytes() == "раз\nчетыре\n".encode(encoding)


def test_regression_an_encoding_that_was_named_goes_with_a_moved_file(top: Path):
    """Its lines were shown as escapes."""
    (top / "b.txt").write_bytes("раз\nдва\n".encode("cp1251"))
    with Workspace(top) as ws:
        ws.edit("b.txt", "два", "три", encoding="cp1251")
        ws.move("b.txt", "c.txt")
        (hunk,) = ws.review().hunks
        assert (hunk.old_lines, hunk.new_lines) == (("два\n",), ("три\n",))


def test_regression_a_7_bit_encoding_that_was_named_is_that_of_the_review(top: Path):
    """Its escapes were shown, and a decision wrote UTF-8 into the file."""
    (top / "b.txt").write_bytes("日本\nb\n".encode("iso2022_jp"))
    with Workspace(top) as ws:
        ws.edit("b.txt", "日本", "日本語", encoding="iso2022_jp")
        (hunk,) = ws.review().hunks
        assert (hunk.old_lines, hunk.new_lines) == (("日本\n",), ("日本語\n",))
        ws.apply_review(edit={hunk.id: "本"})
        assert (top / "b.txt").read_bytes() == "本\nb\n".encode("iso2022_jp")


def test_regression_bytes_in_no_known_encoding_are_shown_as_escapes(top: Path):
    (top / "b.txt").write_bytes(b"\xf0\xe0\xe7\nb\n")
    with Workspace(top) as ws:
        ws.host.write_bytes("b.txt", b"\xe4\xe2\xe0\nb\n")
        (hunk,) = ws.review().hunks
        assert (hunk.old_lines, hunk.new_lines) == ((r"\xf0\xe0\xe7" + "\n",), (r"\xe4\xe2\xe0" + "\n",))


def test_regression_a_clock_that_is_set_back_changes_no_author(top: Path, monkeypatch: pytest.MonkeyPatch):
    with Workspace(top) as ws:
        ws.edit("a.py", "line 3\n", "three\n")
        ws.apply_review(accept=ids_of(ws.review()))
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now - 86_400)
        ws.edit("a.py", "line 9\n", "nine\n")
        assert [str(hunk.origins[0]) for hunk in ws.review().hunks] == ["tool edit"]


def test_regression_a_reject_takes_back_only_lines_of_its_own_workspace(top: Path):
    with Workspace(top) as one, Workspace(top) as two:
        one.edit("a.py", "line 3\n", "three\n")
        two.edit("a.py", "line 4\n", "four\n")  # beside it
        one.edit("a.py", "line 9\n", "nine\n")
        two.edit("a.py", "line 15\n", "fifteen\n")
        before = (top / "a.py").read_text()
        mine, theirs, nine, fifteen = one.review().hunks
        assert [str(hunk.origins[0]) for hunk in (mine, theirs, nine, fifteen)] == [
            "tool edit",
            "another program",
        ] * 2
        for hunk in (mine, theirs, fifteen):
            refused(lambda: one.apply_review(reject=[hunk.id, nine.id]), "conflict")  # noqa: B023 - called at once
            assert (top / "a.py").read_text() == before
        result = one.apply_review(reject=[nine.id])
        assert [place.where for place in result.places] == ['"a.py" (line 10)']
        assert (top / "a.py").read_text() == before.replace("nine", "line 9")
        assert [hunk.new_lines for hunk in two.review().hunks] == [("four\n",), ("fifteen\n",)]


def test_regression_a_reject_of_lines_that_others_wrote_before_is_a_conflict(top: Path):
    with Workspace(top) as one, Workspace(top) as two:
        one.edit("a.py", "line 1\n", "first\n")
        two.edit("a.py", "line 5\n", "theirs\n")
        one.edit("a.py", "theirs\n", "mine\n")
        _, mine = one.review().hunks
        refused(lambda: one.apply_review(reject=[mine.id]), "conflict")
        one.undo()
        assert "theirs\n" in (top / "a.py").read_text(), "undo leaves the lines of the other"


def test_regression_a_mode_keeps_its_id_when_the_lines_beside_it_are_accepted(top: Path):
    with Workspace(top) as ws:
        (top / "a.txt").write_text("one\n")
        with ws.recording("change"):
            (top / "a.txt").write_text("two\n")
            (top / "a.txt").chmod(0o755)
        mode, lines = ws.review().hunks
        assert mode.note.startswith("mode")
        ws.apply_review(accept=[lines.id])
        assert [hunk.id for hunk in ws.review().hunks] == [mode.id]
