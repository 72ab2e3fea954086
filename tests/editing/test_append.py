"""`append`: lines are added, nothing else changes, and no line of a concurrent writer is lost."""

import codecs

import pytest
from hypothesis import strategies as st

from agentfs import Limits, Policy, Workspace
from agentfs.editing import write
from tests.conftest import law
from tests.kit import refused

NOTEBOOK = b'{"cells": [], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}'


def test_a_missing_file_is_created(ws, tmp_path):
    done = ws.append("new/deep/log.txt", "one\n")
    assert (done.path, done.created, done.bytes_written) == ("new/deep/log.txt", True, 4)
    assert (tmp_path / "new/deep/log.txt").read_bytes() == b"one\n"
    ws.undo()
    assert not (tmp_path / "new").exists()


def test_lines_are_added_without_an_earlier_read(ws, tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("one\n")
    path.chmod(0o640)
    done = ws.append("log.txt", "two\nthree\n")
    assert str(done) == "Appended lines 2-3."
    assert done.diff.endswith("@@ -1 +1,3 @@\n one\n+two\n+three\n")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("one\ntwo\nthree\n", 0o640)
    assert done.revision == ws.read("log.txt").revision


@pytest.mark.parametrize(("before", "content", "after", "lines"), [
    (b"a\r\nb\r\n", "c\nd\n", b"a\r\nb\r\nc\r\nd\r\n", "lines 3-4"),
    (b"a\r\nb", "c\n", b"a\r\nb\r\nc\r\n", "line 3"),
    (b"a\rb\r", "c\n", b"a\rb\rc\r", "line 3"), (b"a\nb\r\n", "c\n", b"a\nb\r\nc\r\n", "line 3"),
    (b"a", "b", b"a\nb", "line 2"), (b"a", "b\nc\n", b"a\nb\nc\n", "lines 2-3"),
    (b"", "b\r\n", b"b\r\n", "line 1"),
    (codecs.BOM_UTF8 + b"a\n", "\u00e9\n", codecs.BOM_UTF8 + "a\n\u00e9\n".encode(), "line 2"),
    (codecs.BOM_UTF8, "b\n", codecs.BOM_UTF8 + b"b\n", "line 1"),
    ("\ufeffa\r\n".encode("utf-16-le"), "\u00e9\n", "\ufeffa\r\n\u00e9\r\n".encode("utf-16-le"), "line 2"),
    (b"# coding: latin-1\n\xe9\n", "\u00fc\n", b"# coding: latin-1\n\xe9\n\xfc\n", "line 3"),
    (b"caf\xe9\n", "plain\n", b"caf\xe9\nplain\n", "line 2"),
])  # fmt: skip
def test_the_lines_follow_the_file(ws, tmp_path, before, content, after, lines):
    """The last line, which only got a line end, was counted too: "Appended lines 1-2"."""
    (tmp_path / "f").write_bytes(before)
    assert ws.append("f", content).text.startswith(f"Appended {lines}.")
    assert (tmp_path / "f").read_bytes() == after
    ws.undo()
    assert (tmp_path / "f").read_bytes() == before


@law(40, 100, before=st.text(st.sampled_from("ab\r\n\u00e9"), max_size=12),
     content=st.text(st.sampled_from("xy\n"), min_size=1, max_size=8))  # fmt: skip
def test_every_old_byte_stays_at_its_place(before, content, tmp_path_factory):
    top = tmp_path_factory.mktemp("append")
    (top / "f").write_bytes(before.encode())
    with Workspace(top) as ws:
        ws.append("f", content)
        after = (top / "f").read_bytes()
        shown = ws.read("f").content
    assert after.startswith(before.encode())
    assert shown.replace("\r\n", "\n").replace("\r", "\n").endswith(content)


def test_a_line_end_that_was_added_is_noted(ws, tmp_path):
    (tmp_path / "f").write_text("one")
    done = ws.append("f", "two\n")
    assert (tmp_path / "f").read_text() == "one\ntwo\n"
    assert "had no line end; one was added" in str(done)
    assert not ws.append("f", "three\n").notes
    refused(lambda: ws.write("f", "all\n"), "unread")
    ws.read("f")
    ws.append("f", "four\n")
    ws.write("f", "all\n")  # it stays read


@pytest.mark.parametrize(("name", "content", "appended", "code"), [
    ("t", b"one\n", "", "no_change"), ("t", b"one\n", "a\x00b", "invalid_argument"),
    ("t", b"# coding: latin-1\n\xe9\n", "\u20ac\n", "encoding"),
    ("n.ipynb", NOTEBOOK, "x\n", "invalid_content"), ("t", b"x" * 999 + b"\n", "x\n", "too_large"),
])  # fmt: skip
def test_what_cannot_be_appended_changes_nothing(tmp_path, name, content, appended, code):
    """The reasons of every method are in test_preview_verdicts.py."""
    (tmp_path / name).write_bytes(content)
    with Workspace(tmp_path, limits=Limits(file_bytes=1000), policy=Policy(deny=["append(no)"])) as ws:
        refused(lambda: ws.append(name, appended), code)
        refused(lambda: ws.append("no", "x\n"), "refused")
    assert (tmp_path / name).read_bytes() == content


def test_a_file_created_meanwhile_with_the_same_text_is_appended_to(ws, tmp_path, monkeypatch):
    """The other process's equal line counted as ours."""
    real, written = write.encoded, []

    def encoded(*args):
        if not written:
            written.append((tmp_path / "f").write_text("same\n"))
        return real(*args)

    monkeypatch.setattr(write, "encoded", encoded)
    ws.append("f", "same\n")
    assert (tmp_path / "f").read_text() == "same\nsame\n"
