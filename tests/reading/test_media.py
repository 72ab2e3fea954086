import os

import pytest

from agentfs import AgentFSError, Limits, Workspace
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


def test_a_directory_is_listed(ws, tmp_path):
    (tmp_path / "sub").mkdir()
    for name in "abc":
        (tmp_path / "sub" / name).write_text("x")
    result = ws.read("sub")
    assert (result.kind, result.total_lines) == ("directory", 3)
    assert result.text == ws.ls("sub").text
    assert "sub/b" in ws.read("sub", offset=2, limit=1).text


def test_the_error_for_a_missing_file_lists_files_of_the_same_name(ws, tmp_path):
    for name in ("lib/deep/thing.py", "other/Thing.py", ".hidden/thing.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    with pytest.raises(AgentFSError) as caught:
        ws.read("src/thing.py")
    assert (caught.value.code, caught.value.details["similar"]) == (
        "not_found",
        ["lib/deep/thing.py", "other/Thing.py"],
    )
    assert '"lib/deep/thing.py"' in str(caught.value)


def test_a_fifo_is_refused_at_once(ws, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert ws.tools().call("read", {"path": "pipe"}).error["code"] == "not_regular"


def test_an_image_that_was_shown_counts_as_read(ws, tmp_path):
    """A model went in circles: `write` asked for a read, and no read was enough."""
    file, data = tmp_path / "a", make_image("PNG")
    file.write_bytes(data)
    with pytest.raises(AgentFSError) as caught:
        ws.write("a", "text\n")
    assert caught.value.code == "unread"
    ws.read("a")
    assert "the file was binary and is text now" in ws.write("a", "text\n").notes
    ws.undo()
    assert file.read_bytes() == data


def test_the_error_for_an_unshown_binary_suggests_a_way_that_works(ws, tmp_path):
    (tmp_path / "a").write_bytes(b"\x00\x01\x02")
    with pytest.raises(AgentFSError) as caught:
        ws.write("a", "text\n")
    assert "delete it first" in caught.value.hint
    ws.delete("a")
    ws.write("a", "text\n")
    ws.undo(2)
    assert (tmp_path / "a").read_bytes() == b"\x00\x01\x02"


def test_an_image_or_pdf_over_the_limit_of_a_file_says_so(tmp_path):
    (tmp_path / "a.png").write_bytes(make_image("PNG"))
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.4\n" + b"x" * 200)
    with Workspace(tmp_path, limits=Limits(file_bytes=100)) as ws:
        image = ws.read("a.png")
        assert (image.kind, image.images) == ("image", ())
        assert image.text.endswith("not shown: over 100 bytes]")
        with pytest.raises(AgentFSError) as caught:
            ws.read("a.pdf")
        assert (caught.value.code, caught.value.details["limit"]) == ("too_large", 100)
