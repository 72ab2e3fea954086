import os
from types import SimpleNamespace

import pytest

from agentfs import Limits, Policy, Workspace
from agentfs.fs import revision_of
from tests.kit import refused


@pytest.fixture
def env_of(tmp_path):
    """Return a function that opens a workspace with one file, f.txt, under a policy."""
    opened = []

    def make(**policy):
        ws = Workspace(tmp_path, policy=Policy(**policy))
        opened.append(ws)

        def write(content, path="f.txt", limits=None, **options):
            if limits is None:
                return ws.write(path, content, **options)
            with Workspace(tmp_path, limits=limits) as limited:
                return limited.write(path, content, overwrite=True, **options)

        def put(data):
            (tmp_path / "f.txt").write_bytes(data)

        def read(data, first=1, last=None):
            put(data)
            ws.read("f.txt", first, None if last is None else last + 1 - first)

        def get():
            return (tmp_path / "f.txt").read_bytes()

        return SimpleNamespace(ws=ws, write=write, put=put, get=get, read=read, path=tmp_path)

    yield make
    for ws in opened:
        ws.close()


@pytest.fixture
def env(env_of):
    return env_of()


def failure(env, content, **keywords):
    before = env.get()
    error = refused(lambda: env.write(content, **keywords))
    assert env.get() == before
    assert os.listdir(env.path) == ["f.txt"]
    return error


def test_a_new_file_is_created_with_its_directories(env):
    result = env.write("a\nb\n", path="new/deep/f.txt")
    assert (env.path / "new/deep/f.txt").read_bytes() == b"a\nb\n"
    assert (result.path, result.created, result.bytes_written) == ("new/deep/f.txt", True, 4)
    assert result.revision == revision_of(b"a\nb\n")
    assert result.diff.startswith("--- /dev/null\n+++ b/new/deep/f.txt\n")
    assert result.text == "Created: 2 lines."


def test_an_unread_file_is_not_replaced(env):
    """Neither is one that was read in part: the missing lines are named."""
    env.put(b"a\nb\nc\nd\n")
    assert "read" in failure(env, "c\n").hint
    env.read(b"a\nb\nc\nd\n", 1, 2)
    error = failure(env, "c\n")
    assert (error.code, error.details["unread_lines"]) == ("unread", [[3, 4]])
    assert 'read(path="f.txt", offset=3, limit=2)' in error.hint
    env.read(b"a\nb\nc\nd\n", 3, 4)
    env.write("c\n")
    assert env.get() == b"c\n"
    os.symlink("f.txt", env.path / "link")
    env.write("two\n", path="link")
    assert env.get() == b"two\n"
    assert (env.path / "link").is_symlink()


@pytest.mark.parametrize("limits", [Limits(), Limits(line_chars=100), Limits(output_tokens=40)])
@pytest.mark.parametrize("text", ["word " * 1000, f"a\n{'word ' * 1000}\nb\n"])
def test_a_line_cut_for_display_counts_as_read(tmp_path, limits, text):
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


def test_a_changed_file_is_stale_and_the_change_shown(env):
    env.read(b"a\nb\n")
    env.put(b"a\nB\n")
    error = failure(env, "c\n")
    assert error.code == "stale"
    assert {"-b", "+B"} <= {*error.places()}
    assert "+B\n" in error.details["diff"]
    shown, now = (error.details[name] for name in ("shown_revision", "revision"))
    assert (shown, now) == (revision_of(b"a\nb\n"), revision_of(b"a\nB\n"))
    for now in (b"a\x00b", b"\xff\n"):  # without a diff
        env.put(now)
        assert failure(env, "c\n").code == "stale"


def test_the_same_content_is_allowed_and_reported(env):
    env.put(b"a\n")
    before = os.stat(env.path / "f.txt")
    result = env.write("a\n")
    assert (result.created, result.diff) == (False, "")
    assert os.stat(env.path / "f.txt").st_ino == before.st_ino
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
def test_a_replacement_keeps_encoding_and_line_ends(env, before, content, after, note):
    env.put(before)
    env.read(before)
    result = env.write(content)
    assert env.get() == after
    assert result.bytes_written == len(after)
    assert any(note in said for said in result.notes) if note else not result.notes
    env.write("again\n")


@pytest.mark.parametrize(("content", "code", "limits"), [
    ("a\x00b", "invalid_argument", None), ("\ud800", "encoding", None),
    ("x" * 101, "too_large", Limits(file_bytes=100)), ("ä" * 51, "too_large", Limits(file_bytes=100)),
])  # fmt: skip
def test_a_refused_write_changes_nothing(env, content, code, limits):
    env.write("old\n")
    assert failure(env, content, limits=limits).code == code


def test_an_unknown_encoding_takes_the_characters_that_the_file_has(env):
    env.put(b"\xe9\n")
    env.read(b"\xe9\n")
    error = failure(env, "é ü\n")
    assert (error.code, error.details["character"]) == ("encoding", "U+00FC")
    env.write("é é\n")
    assert env.get() == b"\xe9 \xe9\n"


def test_the_policy_always_or_never_replaces(env_of):
    env = env_of(overwrite="always")
    env.put(b"a\n")
    env.write("b\n")
    assert env.get() == b"b\n"
    env.put(b"\x00\x01")
    assert any("binary" in note for note in env.write("text\n").notes)
    assert env.get() == b"text\n"
    assert failure(env, "b\n", overwrite=False).code == "already_exists"  # the call wins
    never = env_of(overwrite="never")
    assert failure(never, "b\n").code == "already_exists"
    never.ws.edit("f.txt", "text", "b")
    assert env.get() == b"b\n"


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
def test_explicit_options_are_followed_to_the_byte(env, before, content, options, after):
    if before is not None:
        env.put(before)
    notes = env.write(content, overwrite=True, **options).notes
    assert env.get() == after
    assert any("as given" in note for note in notes) == (
        options == {"newline": "given"} and b"\r" not in after
    )


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
