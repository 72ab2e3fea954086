import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfs.errors import BinaryError
from agentfs.text.decoding import decode, decode_in, is_binary
from tests.kit import code_of, error_of


@pytest.mark.parametrize(("data", "encoding", "bom", "text"), [
    (b"", "utf-8", b"", ""),
    (b"caf\xc3\xa9\r\n", "utf-8", b"", "café\r\n"),
    (codecs.BOM_UTF8 + b"x", "utf-8", codecs.BOM_UTF8, "x"),
    (codecs.BOM_UTF16_LE + "aé\r\n".encode("utf-16-le"), "utf-16-le", codecs.BOM_UTF16_LE, "aé\r\n"),
    (codecs.BOM_UTF16_BE + "a😀".encode("utf-16-be"), "utf-16-be", codecs.BOM_UTF16_BE, "a😀"),
    (codecs.BOM_UTF32_LE + "a😀".encode("utf-32-le"), "utf-32-le", codecs.BOM_UTF32_LE, "a😀"),
    (codecs.BOM_UTF32_BE + "a".encode("utf-32-be"), "utf-32-be", codecs.BOM_UTF32_BE, "a"),
    (b"caf\xe9\x93", "unknown-8bit", b"", "café\x93"),
    (codecs.BOM_UTF8 + b"\xe9", "unknown-8bit", b"", "ï»¿é"),
    (b"a" * 8192 + b"\0", "utf-8", b"", "a" * 8192 + "\0"),
    (codecs.BOM_UTF8 + b"a\0b", "utf-8", codecs.BOM_UTF8, "a\0b"),
])  # fmt: skip
def test_a_file_is_decoded_by_its_mark_or_as_utf8_or_byte_by_byte(data, encoding, bom, text):
    decoded = decode(data)
    assert (decoded.encoding, decoded.bom, decoded.text) == (encoding, bom, text)
    assert decoded.bom + decoded.encode(decoded.text) == data


@pytest.mark.parametrize("data", [b"\0", b"\x89PNG\r\n\x1a\n\0\0", b"a" * 8191 + b"\0"])
def test_a_nul_in_the_first_8_kib_means_binary(data):
    assert is_binary(data)
    with pytest.raises(BinaryError):
        decode(data)
    with pytest.raises(BinaryError):
        decode(codecs.BOM_UTF16_LE + b"\0\xd8\0\xd8")
    assert not any(map(is_binary, (b"a" * 8192 + b"\0", codecs.BOM_UTF16_LE + b"a\0", b"")))


@given(st.binary(max_size=60) | st.text(max_size=30).map(lambda text: text.encode("utf-16", "surrogatepass")))
def test_no_byte_is_lost(data):
    try:
        decoded = decode(data)
    except BinaryError:
        assert b"\0" in data
        return
    assert decoded.bom + decoded.encode(decoded.text) == data


def test_a_named_encoding_is_used_if_utf8_fails():
    assert decode("日本".encode("shift_jis"), "Shift-JIS").text == "日本"
    assert decode("é".encode(), "latin-1").text == "é"
    assert decode("a\0".encode("utf-16-le"), "utf-16").text == "a\0"
    assert decode("aé".encode("utf-16-le"), "utf-16").encoding == "utf-16-le"


def test_a_requested_encoding_wins_and_its_byte_order_mark_is_recognized():
    for encoding in ("latin-1", "unknown-8bit"):
        assert decode_in("é".encode(), encoding).text == "Ã©"
    assert decode_in(codecs.BOM_UTF8 + b"a", "cp1252").text == "ï»¿a"
    assert decode_in(codecs.BOM_UTF8 + b"a", "utf-8-sig").bom == codecs.BOM_UTF8
    big = decode_in(codecs.BOM_UTF16_BE + "a".encode("utf-16-be"), "utf-16")
    assert (big.text, big.encoding, big.bom) == ("a", "utf-16-be", codecs.BOM_UTF16_BE)


@pytest.mark.parametrize("name", ["no-such-codec", "rot13", "base64", "", "a\0b"])
def test_an_unknown_codec_is_an_invalid_argument(name):
    assert code_of(decode, b"\xe9", name) == "invalid_argument"


def test_what_an_encoding_lacks_is_named():
    assert error_of(decode, b"\xff\xe9", "ascii").details == {"encoding": "ascii"}
    error = error_of(decode(b"\xe9").encode, "one\ntwo €\n")
    assert error.details == {"encoding": "unknown-8bit", "character": "U+20AC", "line": 2}
    assert "U+20AC" in str(error)
    assert "line 2" in str(error)
