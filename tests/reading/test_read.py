import codecs

import pytest

from agentfs import Workspace
from agentfs.fs import revision_of
from agentfs.limits import Limits
from tests.kit import error_of, put
from tests.reading.conftest import LOADED, STREAMED, both

TEN = "".join(f"line {number}\n" for number in range(1, 11))


@both
@pytest.mark.parametrize(("asked", "code", "said"), [
    ((0, None), "invalid_argument", "not 0"), ((11, None), "past_end", "10 lines"),
    ((10**15, None), "past_end", "10 lines"), ((1, 0), "invalid_argument", "`limit`"),
    ((1, -1), "invalid_argument", "`limit`"),
])  # fmt: skip
def test_an_offset_without_a_line_is_an_error_that_names_valid_ones(tmp_path, limits, asked, code, said):
    put(tmp_path, {"f": TEN})
    with Workspace(tmp_path, limits=limits) as ws:
        error = error_of(ws.read, "f", *asked)
    assert (error.code, said in str(error)) == (code, True)


@pytest.mark.parametrize("limits", [LOADED, Limits(file_bytes=4)], ids=["loaded", "streamed"])
def test_a_binary_file_is_described_and_not_shown(reader, limits):
    reader.write(b"\x89PNG\0" * 100)
    for offset in (1, -1, 5000):
        result = reader.read(offset, limits=limits)
        assert (result.kind, result.content, result.total_lines, result.encoding) == ("binary", "", 0, None)
        assert result.text == '["f" is a binary file of 500 bytes; its content is not shown]'
    assert not reader.fully_read()


@both
def test_a_false_byte_order_mark_before_nuls_is_binary(reader, limits):
    reader.write(codecs.BOM_UTF16_LE + b"\0\xd8\0\xd8")
    assert reader.read(limits=limits).kind == "binary"


@both
@pytest.mark.parametrize(("content", "encoding", "note"), [
    ("né\r\n".encode("utf-16"), "utf-16-le", "[encoding utf-16-le]"),
    (codecs.BOM_UTF16_BE + "né\r\n".encode("utf-16-be"), "utf-16-be", "[encoding utf-16-be]"),
    (codecs.BOM_UTF8 + "né\r\n".encode(), "utf-8", ""),
    (
        b"n\xe9\r\n",
        "unknown-8bit",
        (
            "[not UTF-8, and the encoding is not known: bytes above 7F are shown as Latin-1; "
            "if you know it, pass encoding]"
        ),
    ),
])  # fmt: skip
def test_other_encodings_are_read_and_reported(reader, limits, content, encoding, note):
    reader.write(content)
    result = reader.read(limits=limits)
    assert (result.encoding, result.content, result.newline) == (encoding, "né\r\n", "\r\n")
    assert result.text == "\n".join(["1|né", note] if note else ["1|né"])
    assert result.bom == (encoding != "unknown-8bit")


@both
def test_a_requested_encoding_wins_and_a_wrong_one_is_an_error(reader, limits):
    reader.write("né\n".encode())
    assert reader.read(limits=limits, encoding="cp1252").content == "nÃ©\n"
    assert reader.read(limits=limits, encoding="cp1252").encoding == "cp1252"
    assert reader.error(limits=limits, encoding="ascii").code == "encoding"
    assert reader.error(limits=limits, encoding="shift_jis_2004x").code == "invalid_argument"
    reader.write("a\nb\n".encode("utf-16-le"))
    result = reader.read(1, 1, limits=limits, encoding="utf-16-le")
    assert (result.content, result.next["arguments"]["encoding"]) == ("a\n", "utf-16-le")


def test_a_directory_and_a_missing_file_are_errors_that_name_the_fix(ws, reader):
    reader.write("x", "sub/thing.py")
    error = reader.error(path="sub")
    assert (error.code, "ls" in error.hint) == ("not_a_file", True)
    error = error_of(ws.read, "sub/thimg.py")
    assert (error.code, "sub/thing.py" in error.hint) == ("not_found", True)
    assert reader.error(path="../x").code == "outside_workspace"


def test_revisions_hash_the_content_up_to_file_bytes_and_the_status_above(reader):
    reader.write(TEN)
    assert reader.read().revision == revision_of(TEN.encode())
    revision = reader.read(limits=STREAMED).revision
    assert revision.startswith("~")
    reader.write(TEN + "more\n")
    assert reader.read(limits=STREAMED).revision != revision


def test_a_file_is_fully_read_after_its_last_unread_lines(reader):
    reader.write(TEN)
    reader.read(1, 4)
    reader.read(-3)
    assert not reader.fully_read()
    reader.read(5, 3)
    assert reader.fully_read()
    assert reader.tracker.last("f").text == TEN
    reader.write("a\n" + "x" * 3000 + "\nb\n", "cut")
    reader.read(1, 1, path="cut")
    assert reader.tracker.last("cut").missing() == ((2, 3),)
    reader.read(2, path="cut")  # a line that was cut for display counts
    reader.write("", "empty")
    reader.read(path="empty")
    assert reader.fully_read("cut")
    assert reader.fully_read("empty")
