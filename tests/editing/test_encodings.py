"""`encoding=` on an edit: the codec that the caller names, and no other."""

import pytest

from agentfs import AgentFSError


@pytest.mark.parametrize(
    ("data", "encoding", "old", "new", "after"),
    [
        ("ï café\r\n".encode("cp1252"), "cp1252", "café", "thé\nï", "ï thé\r\nï\r\n".encode("cp1252")),
        ("Привет\nмир\n".encode("koi8-r"), "koi8_r", "мир", "мир!", "Привет\nмир!\n".encode("koi8-r")),
        ("日本語 x\n".encode("shift_jis"), "shift-jis", "x", "語", "日本語 語\n".encode("shift_jis")),
        ("日本語 x\n".encode("gb18030"), "gb18030", "語", "😀", "日本😀 x\n".encode("gb18030")),
        ("a é\n".encode("utf-16-le"), "utf-16-le", "é", "è", "a è\n".encode("utf-16-le")),
        # what is valid UTF-8 by chance is still what the caller says it is
        ("Ã©\n".encode("latin-1"), "latin-1", "Ã©", "x", b"x\n"),
        (b"\xef\xbb\xbfa\n", "utf-8", "a", "b", b"\xef\xbb\xbfb\n"),
        (b"\xef\xbb\xbfa\n", "latin-1", "\xef\xbb\xbfa", "b", b"b\n"),
    ],
)  # fmt: skip
def test_a_named_codec_to_the_byte(ws, tmp_path, data, encoding, old, new, after):
    (tmp_path / "f").write_bytes(data)
    ws.edit("f", old, new, encoding=encoding)
    assert (tmp_path / "f").read_bytes() == after


@pytest.mark.parametrize(
    ("data", "encoding", "code"),
    [
        (b"a \xff\n", "utf-8", "encoding"),
        (b"a \x81\n", "cp1252", "encoding"),
        (b"a b\n", "klingon", "invalid_argument"),
        (b"a b\n", "rot13", "invalid_argument"),
        ("a b\n".encode("cp1252"), "cp1252", "encoding"),
        (b"a +AGE-\n", "utf-7", "encoding"),
    ],
)
def test_what_the_codec_cannot_say_writes_nothing(ws, tmp_path, data, encoding, code):
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(AgentFSError) as caught:
        ws.edit("f", "a", "日", encoding=encoding)
    assert caught.value.code == code
    assert (tmp_path / "f").read_bytes() == data


def test_where_a_byte_means_what_those_before_it_make_it_only_what_reads_back_is_written(ws, tmp_path):
    data = "a 日本 b\n".encode("iso-2022-jp")
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(AgentFSError) as caught:
        ws.edit("f", "本", "x", encoding="iso-2022-jp")
    assert caught.value.code == "encoding"
    assert (tmp_path / "f").read_bytes() == data
    ws.edit("f", "a", "語", encoding="iso-2022-jp")
    assert (tmp_path / "f").read_bytes().decode("iso-2022-jp") == "語 日本 b\n"
