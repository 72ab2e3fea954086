import os

import pytest

from agentfs import Limits, Workspace
from tests.kit import code_of, error_of, put
from tests.reading.conftest import make_image


@pytest.mark.parametrize(("encoding", "codec"), [("utf-16-le", "utf-16-le"), ("utf-16-be", "utf-16-be")])
def test_regression_utf_16_without_a_mark_names_the_encoding(ws, tmp_path, encoding, codec):
    (tmp_path / "a.txt").write_bytes("plain text, é\n".encode(encoding))
    result = ws.read("a.txt")
    assert result.kind == "binary"
    assert f'if it is text, pass encoding="{codec}"' in result.text
    assert ws.read("a.txt", encoding=codec).content == "plain text, é\n"


def test_other_binaries_are_not_taken_for_text(ws, tmp_path):
    (tmp_path / "a").write_bytes(b"\x7fELF\2\1\1\0" + bytes(range(256)))
    result = ws.read("a")
    assert (result.kind, result.content) == ("binary", "")
    assert result.text == '["a" is a binary file of 264 bytes; its content is not shown]'


def test_a_fifo_is_refused_at_once(ws, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert ws.tools().call("read", {"path": "pipe"}).error["code"] == "not_regular"


def test_an_image_that_was_shown_counts_as_read(ws, tmp_path):
    """A model went in circles: `write` asked for a read, and no read was enough."""
    put(tmp_path, {"a": make_image("PNG"), "b": b"\x00\x01\x02"})
    data = (tmp_path / "a").read_bytes()
    assert code_of(ws.write, "a", "text\n") == "unread"
    ws.read("a")
    assert "the file was binary and is text now" in ws.write("a", "text\n").notes
    ws.undo()
    assert (tmp_path / "a").read_bytes() == data
    assert "delete it first" in error_of(ws.write, "b", "text\n").hint, "a way that works"
    ws.delete("b")
    ws.write("b", "text\n")
    ws.undo(2)
    assert (tmp_path / "b").read_bytes() == b"\x00\x01\x02"


def test_an_image_or_pdf_over_the_limit_of_a_file_says_so(tmp_path):
    put(tmp_path, {"a.png": make_image("PNG"), "a.pdf": b"%PDF-1.4\n" + b"x" * 200})
    with Workspace(tmp_path, limits=Limits(file_bytes=100)) as ws:
        image = ws.read("a.png")
        assert (image.kind, image.images) == ("image", ())
        assert image.text.endswith("not shown: over 100 bytes]")
        error = error_of(ws.read, "a.pdf")
        assert (error.code, error.details["limit"]) == ("too_large", 100)
