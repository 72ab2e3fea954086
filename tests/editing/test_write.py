import os

import pytest

from agentfs import Limits, Policy, Workspace
from agentfs.fs import revision_of
from tests.kit import refused


@pytest.fixture
def file(tmp_path):
    return tmp_path / "f.txt"


def failure(ws, file, content, **options):
    before = file.read_bytes()
    error = refused(lambda: ws.write("f.txt", content, **options))
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == ["f.txt"]
    return error


def test_a_new_file_is_created_with_its_directories(ws, file):
    result = ws.write("new/deep/f.txt", "a\nb\n")
    assert (file.parent / "new/deep/f.txt").read_bytes() == b"a\nb\n"
    assert (result.path, result.created, result.bytes_written) == ("new/deep/f.txt", True, 4)
    assert result.revision == revision_of(b"a\nb\n")
    assert result.diff.startswith("--- /dev/null\n+++ b/new/deep/f.txt\n")
    assert result.text == "Created: 2 lines."


def test_an_unread_file_is_not_replaced(ws, file):
    """Neither is one that was read in part: the missing lines are named."""
    file.write_bytes(b"a\nb\nc\nd\n")
    assert "read" in failure(ws, file, "c\n").hint
    ws.read("f.txt", limit=2)
    error = failure(ws, file, "c\n")
    assert (error.code, error.details["unread_lines"]) == ("unread", [[3, 4]])
    assert 'read(path="f.txt", offset=3, limit=2)' in error.hint
    ws.read("f.txt", 3)
    ws.write("f.txt", "c\n")
    assert file.read_bytes() == b"c\n"
    os.symlink("f.txt", file.with_name("link"))
    ws.write("link", "two\n")
    assert file.read_bytes() == b"two\n"
    assert file.with_name("link").is_symlink()


@pytest.mark.parametrize("limits", [Limits(), Limits(line_chars=100), Limits(output_tokens=40)])
@pytest.mark.parametrize("text", ["word " * 1000, f"a\n{'word ' * 1000}\nb\n"])
def test_a_line_cut_for_display_counts_as_read(tmp_path, file, limits, text):
    """A file with a line over 2,000 characters could never be replaced: the error always said "Call read"."""
    (tmp_path / "f.txt").write_text(text)
    with Workspace(tmp_path, limits=limits) as ws:
        assert "has not been read" in str(refused(lambda: ws.write("f.txt", "c\n"), "unread"))
        for offset in range(1, len(text.splitlines()) + 1):
            ws.read("f.txt", offset, 1)
        ws.write("f.txt", "c\n")
    assert (tmp_path / "f.txt").read_text() == "c\n"


@pytest.mark.parametrize(("line", "count", "limits"), [
    ("x\n", 500, Limits()), ("word " * 100 + "\n", 500, Limits()),
    ("é" * 3000 + "\n", 50, Limits(output_tokens=5000, file_bytes=40_000_000)),
    ("x = 1\n", 500, Limits(output_tokens=100)),
])  # fmt: skip
def test_the_reads_suggested_by_refused_writes_cover_the_whole_file(tmp_path, line, count, limits):
    (tmp_path / "f.txt").write_text(line * count)
    with Workspace(tmp_path, limits=limits) as ws:
        ws.read("f.txt", 10, 1)
        error = refused(lambda: ws.write("f.txt", "c\n"))
        assert "overwrite" not in str(error)
        (suggested,) = error.details["suggested_calls"]
        result = ws.read(**suggested["arguments"])
        assert result.start_line == 1
        while result.end_line < count:
            result = ws.read(**result.next["arguments"])
        assert result.end_line == count
        assert not ws.write("f.txt", "c\n").created


def test_a_changed_file_is_stale_and_the_change_shown(ws, file):
    file.write_bytes(b"a\nb\n")
    ws.read("f.txt")
    file.write_bytes(b"a\nB\n")
    error = failure(ws, file, "c\n")
    assert error.code == "stale"
    assert {"-b", "+B"} <= {*error.places()}
    assert "+B\n" in error.details["diff"]
    shown, now = (error.details[name] for name in ("shown_revision", "revision"))
    assert (shown, now) == (revision_of(b"a\nb\n"), revision_of(b"a\nB\n"))
    for now in (b"a\x00b", b"\xff\n"):  # without a diff
        file.write_bytes(now)
        assert failure(ws, file, "c\n").code == "stale"


def test_the_same_content_is_allowed_and_reported(ws, file):
    file.write_bytes(b"a\n")
    before = os.stat(file)
    result = ws.write("f.txt", "a\n")
    assert (result.created, result.diff) == (False, "")
    assert os.stat(file).st_ino == before.st_ino
    assert result.text.startswith("Unchanged")


@pytest.mark.parametrize(("before", "content", "after", "note"), [
    (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n", "CRLF"), (b"a\r\nb\r\n", "x\r\ny\n", b"x\r\ny\r\n", "CRLF"),
    (b"a\r\nb\r\n", "x\r\ny\r\n", b"x\r\ny\r\n", None), (b"a\r\nb\n", "x\ny\n", b"x\ny\n", None),
    (b"a\nb\n", "x\r\ny\r\n", b"x\r\ny\r\n", None), (b"", "x\ny\n", b"x\ny\n", None),
    ("\ufeffa\n".encode(), "ä\n", "\ufeffä\n".encode(), "byte order mark"),
    ("\ufeffa\n".encode(), "\ufeffä\n", "\ufeffä\n".encode(), "byte order mark"),
    ("\ufeffa\r\n".encode("utf-16-le"), "ä\nb\n", "\ufeffä\r\nb\r\n".encode("utf-16-le"), "utf-16-le"),
    (b"\xe9\n", "abc\n", b"abc\n", "unknown-8bit"),
])  # fmt: skip
def test_a_replacement_keeps_encoding_and_line_ends(ws, file, before, content, after, note):
    file.write_bytes(before)
    ws.read("f.txt")
    result = ws.write("f.txt", content)
    assert file.read_bytes() == after
    assert result.bytes_written == len(after)
    assert any(note in said for said in result.notes) if note else not result.notes
    ws.write("f.txt", "again\n")


@pytest.mark.parametrize(("content", "code", "limits"), [
    ("a\x00b", "invalid_argument", None), ("\ud800", "encoding", None),
    ("x" * 101, "too_large", Limits(file_bytes=100)), ("ä" * 51, "too_large", Limits(file_bytes=100)),
])  # fmt: skip
def test_a_refused_write_changes_nothing(ws, file, content, code, limits):
    ws.write("f.txt", "old\n")
    assert failure(ws.view(limits=limits), file, content).code == code


def test_an_unknown_encoding_takes_the_characters_that_the_file_has(ws, file):
    file.write_bytes(b"\xe9\n")
    ws.read("f.txt")
    error = failure(ws, file, "é ü\n")
    assert (error.code, error.details["character"]) == ("encoding", "U+00FC")
    ws.write("f.txt", "é é\n")
    assert file.read_bytes() == b"\xe9 \xe9\n"


def test_the_policy_always_or_never_replaces(tmp_path, file):
    file.write_bytes(b"a\n")
    with Workspace(tmp_path, policy=Policy(overwrite="always")) as ws:
        ws.write("f.txt", "b\n")
        assert file.read_bytes() == b"b\n"
        file.write_bytes(b"\x00\x01")
        assert any("binary" in note for note in ws.write("f.txt", "text\n").notes)
        assert file.read_bytes() == b"text\n"
        assert failure(ws, file, "b\n", overwrite=False).code == "already_exists"  # the call wins
    with Workspace(tmp_path, policy=Policy(overwrite="never")) as never:
        assert failure(never, file, "b\n").code == "already_exists"
        never.edit("f.txt", "text", "b")
    assert file.read_bytes() == b"b\n"


@pytest.mark.parametrize(("before", "content", "options", "after"), [
    (None, "é\n", {"encoding": "cp1252"}, b"\xe9\n"),
    (None, "é\n", {"encoding": "utf-8-sig"}, b"\xef\xbb\xbf\xc3\xa9\n"),
    (None, "é", {"encoding": "utf-16"}, b"\xff\xfe\xe9\x00"),
    (None, "é", {"encoding": "unknown-8bit"}, b"\xe9"),
    (b"\xef\xbb\xbfa\xff", "b", {"encoding": "utf-8"}, b"\xef\xbb\xbfb"),
    (b"\xff\xfea\x00", "b", {"encoding": "utf-16-le"}, b"\xff\xfeb\x00"),
    (b"\xff\xfea\x00", "b", {"encoding": "utf-8"}, b"b"),
    (b"\xe9\n", "\xe8\n", {"encoding": "latin-1"}, b"\xe8\n"),
    (b"a\r\n", "b\n", {"newline": "given"}, b"b\n"), (b"a\r\n", "b\r\n", {"newline": "given"}, b"b\r\n"),
    (b"a\r\n", "b\n", {"newline": "keep"}, b"b\r\n"),
    (b"a\n", "b\nc\r\n", {"newline": "\r\n"}, b"b\r\nc\r\n"),
    (b"a\n", "b\nc\r\n", {"newline": "\r"}, b"b\rc\r"), (b"a\r\n", "b\r\nc\n", {"newline": "\n"}, b"b\nc\n"),
    (b"a\x00\xff", "b\n", {"encoding": "utf-8"}, b"b\n"),
])  # fmt: skip
def test_explicit_options_are_followed_to_the_byte(ws, file, before, content, options, after):
    if before is not None:
        file.write_bytes(before)
    notes = ws.write("f.txt", content, overwrite=True, **options).notes
    assert file.read_bytes() == after
    kept_as_given = options == {"newline": "given"} and b"\r" not in after
    assert any("as given" in note for note in notes) == kept_as_given


@pytest.mark.parametrize("outside", ["a\nc\n", "c\n", "a\n", ""])
@pytest.mark.parametrize("way", ["append", "edit", "multi_edit"])
def test_write_after_another_program_removed_lines_and_an_undo(ws, tmp_path, outside, way):
    """All lines that are left were read before, so none would be replaced unseen."""
    file = tmp_path / "f"
    file.write_text("a\nb\nc\n")
    ws.read("f")
    file.write_text(outside)
    if way == "append" or not outside:
        ws.append("f", "d\n")
    elif way == "edit":
        ws.edit("f", outside[0], "x")
    else:
        ws.multi_edit("f", [{"old_string": outside[0], "new_string": "x\nx"}])
    ws.undo()
    assert file.read_text() == outside
    ws.write("f", "new\n")
    assert file.read_text() == "new\n"


def test_regression_a_byte_order_mark_that_another_program_adds_is_a_change(ws, tmp_path):
    """The texts are equal, so the diff is empty, and the error was an internal one."""
    (tmp_path / "a").write_text("one\n")
    ws.read("a")
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\n")
    assert "changed since it was shown" in str(refused(lambda: ws.write("a", "two\n"), "stale"))
    assert (tmp_path / "a").read_bytes() == b"\xef\xbb\xbfone\n"
