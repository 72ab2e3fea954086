import os

import pytest

from agentfs import AgentFSError, Limits, LineChange, Workspace
from agentfs.dialects import toolkit
from agentfs.dialects.toolkit import EditLinesOptions
from tests import kit
from tests.kit import refused

FILE = b"one\ntwo\r\n}\nthree\n}\nlast"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "f.txt"
    path.write_bytes(FILE)
    return path


def ids_of(ws):
    return ws.read("f.txt", line_ids=True).line_ids


def failure(ws, file, *changes):
    before = file.read_bytes()
    error = refused(lambda: ws.edit_lines("f.txt", list(changes)))
    assert file.read_bytes() == before
    return error


def one(name, new):
    return LineChange(line_id=name, new_content=new)


def several(first, last, new):
    return LineChange(start_line_id=first, end_line_id=last, new_content=new)


def test_read_shows_the_ids_and_returns_them(ws, file):
    result = ws.read("f.txt", line_ids=True)
    assert result.text.split("\n")[1] == f"2 {result.line_ids[1]}|two"
    assert len(result.line_ids) == 6
    assert result.to_dict()["line_ids"] == list(result.line_ids)
    assert ws.read("f.txt", offset=3, limit=2, line_ids=True).line_ids == result.line_ids[2:4]
    plain = ws.read("f.txt")
    assert (plain.line_ids, result.line_ids[0] in plain.text) == ((), False)


def test_the_byte_budget_counts_the_ids(tmp_path):
    (tmp_path / "f.txt").write_text("x" * 10 + "\n" + "y" * 10 + "\n")
    with Workspace(tmp_path, limits=Limits(read_bytes=36)) as ws:
        assert ws.read("f.txt").end_line == 2
        page = ws.read("f.txt", line_ids=True)
        assert (page.end_line, page.truncated_by, len(page.line_ids)) == (1, "bytes", 1)


@pytest.mark.parametrize(("line", "new", "after"), [
    (1, "1", b"1\ntwo\r\n}\nthree\n}\nlast"),
    (1, "1\n", b"1\ntwo\r\n}\nthree\n}\nlast"),
    (1, "1\n1b\n", b"1\n1b\ntwo\r\n}\nthree\n}\nlast"),
    (2, "2", b"one\n2\r\n}\nthree\n}\nlast"),
    (2, "2\n2b", b"one\n2\r\n2b\r\n}\nthree\n}\nlast"),
    (2, "2\r\n2b\r\n", b"one\n2\r\n2b\r\n}\nthree\n}\nlast"),
    (2, "", b"one\n}\nthree\n}\nlast"),
    (2, "\n", b"one\n\r\n}\nthree\n}\nlast"),
    (2, "\n\n", b"one\n\r\n\r\n}\nthree\n}\nlast"),
    (6, "end", b"one\ntwo\r\n}\nthree\n}\nend"),
    (6, "end\n", b"one\ntwo\r\n}\nthree\n}\nend"),
    (6, "", b"one\ntwo\r\n}\nthree\n}\n"),
    (5, "$& \\1 {0}", b"one\ntwo\r\n}\nthree\n$& \\1 {0}\nlast"),
])  # fmt: skip
def test_replacing_one_line_is_exact_to_the_byte(ws, file, line, new, after):
    result = ws.edit_lines("f.txt", [one(ids_of(ws)[line - 1], new)])
    assert file.read_bytes() == after
    assert (result.applied_via, result.replacements) == ("line_id", 1)


def test_several_changes_of_one_version_are_made_in_one_write(ws, file):
    ids = ids_of(ws)
    changes = [several(ids[3], ids[4], "3\n4\n5"), one(ids[0], "1\n1b"), one(ids[5], "")]
    assert ws.edit_lines("f.txt", changes).replacements == 3
    assert file.read_bytes() == b"1\n1b\ntwo\r\n}\n3\n4\n5\n"
    assert ids_of(ws)[2:4] == ids[1:3]


def test_ids_survive_every_kind_of_change(ws, file):
    ids = ids_of(ws)
    ws.edit("f.txt", "three", "}\nthree b")
    ws.edit_lines("f.txt", [one(ids[4], "} # second")])
    assert file.read_bytes() == b"one\ntwo\r\n}\n}\nthree b\n} # second\nlast"
    file.write_bytes(b"}\n" + file.read_bytes())
    ws.edit_lines("f.txt", [one(ids[5], "LAST"), one(ids[2], "} # first")])
    assert file.read_bytes() == b"}\none\ntwo\r\n} # first\n}\nthree b\n} # second\nLAST"


def test_an_unknown_id_lists_the_current_ones(ws, file):
    ids = ids_of(ws)
    error = failure(ws, file, one(ids[0], "x"), one("ffffff", "y"), one("zzz", "y"))
    assert (error.code, error.details["unknown"]) == ("unknown_line", ["ffffff", "zzz"])
    assert 'read(path="f.txt", line_ids=true)' in error.hint
    assert error.details["line_ids"] == list(ids)
    assert f"1 {ids[0]}|one" in str(error)
    assert error.details["rows"][0] == (1, ids[0], "one")
    assert len(error.details["rows"]) == len(error.places())
    typo = ids[0][:-1] + ("0" if ids[0][-1] != "0" else "1")
    assert f"1 {ids[0]}|one" in failure(ws, file, one(typo, "y")).places()


def test_an_id_may_be_given_as_it_is_shown(ws, file):
    first, second, *_ = ids_of(ws)
    ws.edit_lines("f.txt", [one(f"1 {first}|one", "ONE"), one(f"2 {second}", "TWO")])
    assert file.read_bytes().startswith(b"ONE\nTWO\r\n")


def test_regression_an_empty_file_has_no_line_ids_to_read(ws, file):
    """The error told to call `read`, which shows no ids, so a model went round."""
    file.write_bytes(b"")
    ws.read(file.name, line_ids=True)
    error = failure(ws, file, one("aaaaaa", "x"))
    assert (error.code, error.hint) == ("unread", "Write its text as a whole.")


def test_edit_lines_before_any_ids_were_shown_is_unread(ws, file):
    assert failure(ws, file, one("aaaaaa", "x")).code == "unread"
    ws.read("f.txt")
    assert failure(ws, file, one("aaaaaa", "x")).code == "unread"


def test_a_line_changed_by_another_program_is_stale_and_the_others_are_not(ws, file):
    ids = ids_of(ws)
    file.write_bytes(FILE.replace(b"three", b"3"))
    error = failure(ws, file, one(ids[3], "x"))
    assert (error.code, error.details["stale"]) == ("stale", [ids[3]])
    assert f"{ids[3]} was: three" in str(error)
    assert error.details["rows"][0] is None
    assert error.details["rows"][1][::2] == (4, "3")
    assert "|3" in str(error)
    result = ws.edit_lines("f.txt", [one(ids[4], "end")])
    assert file.read_bytes() == b"one\ntwo\r\n}\n3\nend\nlast"
    assert any("changed since it was shown" in note for note in result.notes)


def test_a_range_with_a_new_line_inside_is_stale(ws, file):
    ids = ids_of(ws)
    file.write_bytes(FILE.replace(b"three", b"unseen\nthree"))
    error = failure(ws, file, several(ids[2], ids[4], "x"))
    assert error.code == "stale"
    assert "unseen" in str(error)
    now = ids_of(ws)
    ws.edit_lines("f.txt", [several(now[2], now[5], "x")])
    assert file.read_bytes() == b"one\ntwo\r\nx\nlast"


@pytest.mark.parametrize(("code", "changes"), [
    ("invalid_argument", lambda ids: []), ("invalid_argument", lambda ids: [several(ids[3], ids[1], "x")]),
    ("overlap", lambda ids: [several(ids[0], ids[2], "x"), one(ids[2], "y")]),
    ("invalid_argument", lambda ids: [LineChange(new_content="x")]),
    ("invalid_argument", lambda ids: [LineChange(new_content="x", line_id=ids[0], end_line_id=ids[1])]),
    ("invalid_argument", lambda ids: [one(ids[0], "a\x00")]), ("no_change", lambda ids: [one(ids[0], "one")]),
])  # fmt: skip
def test_one_bad_change_refuses_all(ws, file, code, changes):
    error = failure(ws, file, *changes(ids_of(ws)))
    assert error.code == code
    assert code != "overlap" or error.details["lines"] == [3]


def test_a_forgotten_id_never_names_another_line(ws, file):
    ids = ids_of(ws)
    ws._read_tracker.forget()
    assert failure(ws, file, one(ids[0], "x")).code == "unread"
    assert not set(ids) & set(ids_of(ws))
    assert failure(ws, file, one(ids[0], "x")).code == "unknown_line"


def test_a_restored_version_has_the_same_ids(ws, file):
    ids = ids_of(ws)
    file.write_bytes(b"other\n")
    ids_of(ws)
    file.write_bytes(FILE)
    assert ids_of(ws) == ids


@pytest.mark.parametrize("call", [
    lambda ws, ids, **k: ws.edit("f.txt", "one", "1", **k),
    lambda ws, ids, **k: ws.edit_lines("f.txt", [one(ids[1], "x")], **k),
    lambda ws, ids, **k: ws.write("f.txt", "all new\n", **k),
    lambda ws, ids, **k: ws.write("new/g.txt", "new\n", **k),
])  # fmt: skip
def test_a_preview_is_the_same_result_and_nothing_is_written_or_remembered(ws, file, tmp_path, call):
    ids = ids_of(ws)
    seen = call(ws, ids, preview=True)
    assert (file.read_bytes(), os.listdir(tmp_path)) == (FILE, ["f.txt"])
    assert "nothing was written" in seen.text
    done = call(ws, ids)
    assert (seen.diff, seen.revision, seen.path) == (done.diff, done.revision, done.path)


@pytest.mark.parametrize(("spans", "after"), [
    ([(0, 3, "1")], b"1\ntwo\r\n}\nthree\n}\nlast"),
    ([(8, 9, "x"), (0, 0, "0\n")], b"0\none\ntwo\r\nx\nthree\n}\nlast"),
    ([(4, 4, "a"), (4, 4, "b")], b"one\nabtwo\r\n}\nthree\n}\nlast"),
    ([(7, 8, "")], b"one\ntwo}\nthree\n}\nlast"),
    ([(22, 22, "\n")], b"one\ntwo\r\n}\nthree\n}\nlast\n"),
    ([(4, 7, "2\n2")], b"one\n2\r\n2\r\n}\nthree\n}\nlast"),
])  # fmt: skip
def test_splice_counts_every_line_end_as_one_character(ws, file, spans, after):
    assert kit.splice(ws, "f.txt", spans).applied_via == "offset"
    assert file.read_bytes() == after


@pytest.mark.parametrize(("spans", "code"), [
    ([], "no_change"),
    ([(0, 23, "")], "invalid_argument"),
    ([(-1, 0, "")], "invalid_argument"),
    ([(3, 2, "")], "invalid_argument"),
    ([(0, 3, "a"), (2, 4, "b")], "overlap"),
    ([(0, 3, "a"), (0, 4, "b")], "overlap"),
    ([(0, 1, "o")], "no_change"),
])  # fmt: skip
def test_splice_refuses_ranges_outside_the_text(ws, file, spans, code):
    refused(lambda: kit.splice(ws, "f.txt", spans), code)
    assert file.read_bytes() == FILE


def test_grep_gives_the_ids_that_read_gives(ws, file, tmp_path):
    (tmp_path / "g.txt").write_text("nothing\nthree more\n")
    found = ws.grep("three|}", line_ids=True, context=1)
    ids = ids_of(ws)
    assert [match.line_id for match in found.matches if match.path == "f.txt"] == [ids[2], ids[3], ids[4]]
    assert f"4 {ids[3]}|three" in found.text
    assert all(match.line_id is None for match in ws.grep("three").matches)
    assert ids[3] not in ws.grep("three").text
    other = next(match.line_id for match in found.matches if match.path == "g.txt")
    ws.edit_lines("g.txt", [one(other, "found by grep")])
    assert (tmp_path / "g.txt").read_text() == "nothing\nfound by grep\n"


def test_ids_from_grep_do_not_count_as_reading_the_range(ws, file):
    ids = ids_of(ws)
    file.write_bytes(FILE.replace(b"three", b"unseen\nthree"))
    ws.grep("one|last", line_ids=True)
    assert failure(ws, file, several(ids[0], ids[5], "x")).code == "stale"


def test_a_function_gets_the_text_without_marking_it_as_read(ws, tmp_path):
    (tmp_path / "dos.txt").write_bytes(b"a\r\nb\r\n")
    seen = []

    def spans(text):
        seen.append(text)
        at = text.index("b")
        return [(at, at + 1, "B\nC")], ["made of the text"]

    assert "made of the text" in kit.splice(ws, "dos.txt", spans).notes
    assert seen == ["a\nb\n"]
    assert (tmp_path / "dos.txt").read_bytes() == b"a\r\nB\r\nC\r\n"
    with pytest.raises(AgentFSError, match="has not been read"):
        ws.write("dos.txt", "x")


def test_ids_are_fresh_only_if_the_file_was_not_changed_since_the_read(ws, file):
    first, second, *_ = ids_of(ws)

    def fresh(change):
        return toolkit.edit(ws, EditLinesOptions("f.txt", [change], fresh_ids=True))

    assert fresh(one(first, "1")).lines_changed == 1
    assert "read(" in refused(lambda: fresh(one(second, "2")), "unread").hint
    assert ws.edit_lines("f.txt", [one(second, "2")], preview=True).lines_changed == 1, "the usual rule"
    _, second, *_, last = ids_of(ws)
    file.write_bytes(FILE)
    refused(lambda: fresh(one(second, "2")), "stale")
    assert ws.edit_lines("f.txt", [several(second, last, "")], preview=True).lines_changed == 5
    ids_of(ws)
    ws.write("f.txt", FILE.decode(), newline="given")
    refused(lambda: fresh(one(second, "2")), "unread")  # the same bytes, but written
    ids_of(ws)
    ws.forget()
    refused(lambda: fresh(one(second, "2")), "unread")
    assert file.read_bytes() == FILE


def test_grep_gives_fresh_ids_only(ws, file, tmp_path):
    def found():
        return kit.grep(ws, "three", line_ids=True, fresh_ids=True).matches[0].line_id

    assert found() is None
    ids = ids_of(ws)
    assert found() == ids[3]
    file.write_bytes(FILE + b"\n")
    assert found() is None
    ids_of(ws)
    ws.edit("f.txt", "one", "1")
    assert found() is None
    assert ws.grep("three", line_ids=True).matches[0].line_id == ids[3], "the usual rule"
