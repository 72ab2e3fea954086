import os
from types import SimpleNamespace

import pytest

from agentfs import Workspace
from agentfs.editing import WriteOptions, edit_file, write_file
from agentfs.errors import AgentFSError
from agentfs.fs import Root, revision_of
from agentfs.limits import Limits
from agentfs.policy import Policy
from agentfs.read_tracker import ReadTracker
from agentfs.results import Edit


@pytest.fixture
def room_of(tmp_path):
    """Returns a function that makes the room under a policy."""
    roots = []

    def make(**policy):
        root, shown = Root(tmp_path, Policy(**policy)), ReadTracker()
        roots.append(root)

        def write(content, path="f.txt", limits=None):
            return write_file(root, shown, limits or Limits(), path, content)

        def put(data):
            (tmp_path / "f.txt").write_bytes(data)

        def read(data, first=1, last=None):
            total = len(data.splitlines())
            shown.record_read("f.txt", revision_of(data), data.decode("latin-1"), first, last or total, total)

        def get():
            return (tmp_path / "f.txt").read_bytes()

        return SimpleNamespace(
            root=root, shown=shown, write=write, put=put, get=get, read=read, path=tmp_path
        )

    yield make
    for root in roots:
        root.close()


@pytest.fixture
def room(room_of):
    return room_of()


def failure(room, content, **keywords):
    before = room.get()
    with pytest.raises(AgentFSError) as caught:
        room.write(content, **keywords)
    assert room.get() == before
    assert os.listdir(room.path) == ["f.txt"]
    return caught.value


def test_a_new_file_with_its_directories(room):
    result = room.write("a\nb\n", path="new/deep/f.txt")
    assert (room.path / "new/deep/f.txt").read_bytes() == b"a\nb\n"
    assert (result.path, result.created, result.bytes_written) == ("new/deep/f.txt", True, 4)
    assert result.revision == revision_of(b"a\nb\n")
    assert result.diff.startswith("--- /dev/null\n+++ b/new/deep/f.txt\n")
    assert "2 lines, 4 bytes" in result.text
    assert "+a" not in result.text


def test_an_empty_file(room):
    assert room.write("").created
    assert room.get() == b""
    room.write("x")
    assert room.get() == b"x"


def test_unread_is_refused(room):
    room.put(b"a\nb\n")
    error = failure(room, "c\n")
    assert error.code == "unread"
    assert "read" in error.hint


def test_a_part_read_is_refused_and_the_rest_named(room):
    room.put(b"a\nb\nc\nd\n")
    room.read(b"a\nb\nc\nd\n", 1, 2)
    error = failure(room, "c\n")
    assert error.code == "unread"
    assert error.details["unread_lines"] == [[3, 4]]
    assert 'read(path="f.txt", offset=3, limit=2)' in error.hint
    room.read(b"a\nb\nc\nd\n", 3, 4)
    room.write("c\n")
    assert room.get() == b"c\n"


@pytest.mark.parametrize("limits", [Limits(), Limits(line_chars=100), Limits(output_tokens=40)])
def test_a_line_that_no_read_shows_whole_is_not_asked_for_again(tmp_path, limits):
    (tmp_path / "f.txt").write_text(f"a\n{'word ' * 1000}\nb\n")
    with Workspace(tmp_path, limits=limits) as ws:
        for offset in (1, 2, 3):
            ws.read("f.txt", offset, 1)
        with pytest.raises(AgentFSError) as caught:
            ws.write("f.txt", "c\n")
        assert (caught.value.code, caught.value.details["unread_lines"]) == ("unread", [[2, 2]])
        assert "Reading again does not help: line 2 cannot be shown whole." in caught.value.hint
        assert "read(" not in caught.value.hint
        # What the hint names does help.
        ws.edit("f.txt", "b\n", "B\n")
        ws.write("f.txt", "c\n", overwrite=True)
    assert (tmp_path / "f.txt").read_text() == "c\n"


def test_a_changed_file_is_stale_and_the_change_shown(room):
    room.read(b"a\nb\n")
    room.put(b"a\nB\n")
    error = failure(room, "c\n")
    assert error.code == "stale"
    assert "-b" in error.places()
    assert "+B" in error.places()
    assert "+B\n" in error.details["diff"]
    assert error.details["revision"] == revision_of(b"a\nB\n")
    assert error.details["shown_revision"] == revision_of(b"a\nb\n")


@pytest.mark.parametrize("now", [b"a\x00b", b"\xff\n"])
def test_stale_over_content_that_is_hard_to_show(room, now):
    room.read(b"a\nb\n")
    room.put(now)
    assert failure(room, "c\n").code == "stale"


def test_what_was_written_may_be_written_again(room):
    room.write("one\n")
    room.write("two\n")
    assert room.get() == b"two\n"
    room.put(b"three\n")
    assert failure(room, "four\n").code == "stale"


def test_the_same_content_is_no_offence_and_said(room):
    room.put(b"a\n")
    before = os.stat(room.path / "f.txt")
    result = room.write("a\n")
    assert any("nothing was written" in note for note in result.notes)
    assert (result.created, result.diff) == (False, "")
    assert os.stat(room.path / "f.txt").st_ino == before.st_ino
    assert result.text.startswith("Unchanged")


@pytest.mark.parametrize(
    ("before", "content", "after", "note"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n", "CRLF"),
        (b"a\r\nb\r\n", "x\r\ny\n", b"x\r\ny\r\n", "CRLF"),
        (b"a\r\nb\r\n", "x\r\ny\r\n", b"x\r\ny\r\n", None),
        (b"a\r\nb\n", "x\ny\n", b"x\ny\n", None),
        (b"a\nb\n", "x\r\ny\r\n", b"x\r\ny\r\n", None),
        (b"a", "x\ny\n", b"x\ny\n", None),
        ("\ufeffa\n".encode(), "ä\n", "\ufeffä\n".encode(), "byte order mark"),
        ("\ufeffa\n".encode(), "\ufeffä\n", "\ufeffä\n".encode(), "byte order mark"),
        ("\ufeffa\r\n".encode("utf-16-le"), "ä\nb\n", "\ufeffä\r\nb\r\n".encode("utf-16-le"), "utf-16-le"),
        (b"\xe9\n", "abc\n", b"abc\n", "unknown-8bit"),
    ],
)
def test_replacing_keeps_what_the_file_was(room, before, content, after, note):
    room.put(before)
    room.read(before)
    result = room.write(content)
    assert room.get() == after
    assert result.bytes_written == len(after)
    assert any(note in said for said in result.notes) if note else not result.notes
    room.write("again\n")


@pytest.mark.parametrize(
    ("content", "code", "limits"),
    [
        ("a\x00b", "invalid_argument", None),
        ("\ud800", "encoding", None),
        ("x" * 101, "too_large", Limits(file_bytes=100)),
        ("ä" * 51, "too_large", Limits(file_bytes=100)),
    ],
)
def test_what_is_refused_writes_nothing(room, content, code, limits):
    room.write("old\n")
    assert failure(room, content, limits=limits).code == code


def test_an_unknown_encoding_takes_no_other_than_ascii(room):
    room.put(b"\xe9\n")
    room.read(b"\xe9\n")
    assert failure(room, "é\n").code == "encoding"


def test_the_policy_always_replaces(room_of):
    room = room_of(overwrite="always")
    room.put(b"a\n")
    room.write("b\n")
    assert room.get() == b"b\n"
    room.put(b"\x00\x01")
    assert any("binary" in note for note in room.write("text\n").notes)
    assert room.get() == b"text\n"


def test_the_policy_never_replaces(room_of):
    room = room_of(overwrite="never")
    room.write("a\n")
    assert failure(room, "b\n").code == "already_exists"
    edit_file(room.root, room.shown, Limits(), "f.txt", [Edit("a", "b")])
    assert room.get() == b"b\n"


def test_a_read_only_workspace(room_of):
    room = room_of(read_only=True)
    room.put(b"a\n")
    assert failure(room, "b\n").code == "read_only"


def test_a_file_seen_under_one_name_may_be_written_under_another(room):
    room.write("one\n")
    os.symlink("f.txt", room.path / "link")
    room.write("two\n", path="link")
    assert room.get() == b"two\n"
    assert (room.path / "link").is_symlink()


@pytest.mark.parametrize(
    ("before", "content", "terms", "after"),
    [
        (None, "é\n", {"encoding": "cp1252"}, b"\xe9\n"),
        (None, "é\n", {"encoding": "utf-8-sig"}, b"\xef\xbb\xbf\xc3\xa9\n"),
        (None, "é", {"encoding": "utf-16"}, b"\xff\xfe\xe9\x00"),
        (b"\xff\xfea\x00", "b", {"encoding": "utf-16-le"}, b"\xff\xfeb\x00"),
        (b"\xff\xfea\x00", "b", {"encoding": "utf-8"}, b"b"),
        (b"\xe9\n", "\xe8\n", {"encoding": "latin-1"}, b"\xe8\n"),
        (b"a\r\n", "b\n", {"newline": "given"}, b"b\n"),
        (b"a\r\n", "b\n", {"newline": "keep"}, b"b\r\n"),
        (b"a\n", "b\nc\r\n", {"newline": "\r\n"}, b"b\r\nc\r\n"),
        (b"a\n", "b\nc\r\n", {"newline": "\r"}, b"b\rc\r"),
        (b"a\r\n", "b\r\nc\n", {"newline": "\n"}, b"b\nc\n"),
        (b"a\x00\xff", "b\n", {"encoding": "utf-8"}, b"b\n"),
    ],
)
def test_explicit_terms_to_the_byte(room, before, content, terms, after):
    if before is not None:
        room.put(before)
    write_file(room.root, room.shown, Limits(), "f.txt", content, WriteOptions(overwrite=True, **terms))
    assert room.get() == after


def test_overwrite_stands_above_the_policy(room_of):
    room = room_of(overwrite="always")
    room.put(b"a\n")
    with pytest.raises(AgentFSError) as caught:
        write_file(room.root, room.shown, Limits(), "f.txt", "b\n", WriteOptions(overwrite=False))
    assert caught.value.code == "already_exists"
    assert room.get() == b"a\n"


@pytest.mark.parametrize("terms", [{"newline": "\n\n"}, {"encoding": "klingon"}])
def test_unknown_terms_are_refused(room, terms):
    with pytest.raises(AgentFSError) as caught:
        write_file(room.root, room.shown, Limits(), "f.txt", "b\n", WriteOptions(**terms))
    assert caught.value.code == "invalid_argument"
    assert os.listdir(room.path) == []
