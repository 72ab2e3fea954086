"""Each call uses the encoding that it or the file names, and no other."""

import codecs
import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agentfs import Edit
from tests.conftest import part_or_all
from tests.kit import refused


@pytest.mark.parametrize(("data", "encoding", "old", "new", "after"), [
    ("ï café\r\n".encode("cp1252"), "cp1252", "café", "thé\nï", "ï thé\r\nï\r\n".encode("cp1252")),
    ("Привет\nмир\n".encode("koi8-r"), "koi8_r", "мир", "мир!", "Привет\nмир!\n".encode("koi8-r")),
    ("日本語 x\n".encode("shift_jis"), "shift-jis", "x", "語", "日本語 語\n".encode("shift_jis")),
    ("日本語 x\n".encode("gb18030"), "gb18030", "語", "😀", "日本😀 x\n".encode("gb18030")),
    ("a é\n".encode("utf-16-le"), "utf-16-le", "é", "è", "a è\n".encode("utf-16-le")),
    # text that is valid UTF-8 by chance is still read as the caller says
    ("Ã©\n".encode("latin-1"), "latin-1", "Ã©", "x", b"x\n"),
    (b"\xef\xbb\xbfa\n", "utf-8", "a", "b", b"\xef\xbb\xbfb\n"),
    (b"\xef\xbb\xbfa\n", "latin-1", "\xef\xbb\xbfa", "b", b"b\n"),
])  # fmt: skip
def test_a_named_codec_is_exact_to_the_byte(ws, tmp_path, data, encoding, old, new, after):
    (tmp_path / "f").write_bytes(data)
    ws.edit("f", old, new, encoding=encoding)
    assert (tmp_path / "f").read_bytes() == after


@pytest.mark.parametrize(("data", "encoding", "new", "code"), [
    (b"a \xff\n", "utf-8", "日", "encoding"),
    (b"a \x81\n", "cp1252", "日", "encoding"),
    (b"a b\n", "klingon", "日", "invalid_argument"),
    (b"a b\n", "rot13", "日", "invalid_argument"),
    (b"a b\n", "cp1252", "日", "encoding"),
    (b"a +AGE-\n", "utf-7", "日", "encoding"),
    (b"a\n", "shift_jis", "¥", "encoding"),  # the codec encodes it as a backslash
])  # fmt: skip
def test_characters_that_the_codec_lacks_are_refused(ws, tmp_path, data, encoding, new, code):
    (tmp_path / "f").write_bytes(data)
    refused(lambda: ws.edit("f", "a", new, encoding=encoding), code)
    assert (tmp_path / "f").read_bytes() == data


def test_text_in_a_stateful_codec_reads_back(ws, tmp_path):
    (tmp_path / "f").write_bytes("a 日本 b\n".encode("iso-2022-jp"))
    for old, new, after in (("本", "x", "a 日x b\n"), ("a", "語", "語 日x b\n")):
        ws.edit("f", old, new, encoding="iso-2022-jp")
        assert (tmp_path / "f").read_bytes().decode("iso-2022-jp") == after


CODING_LINES = {
    "# -*- coding: latin-1 -*-\nname = 'é'\n": "iso8859-1",
    "#!/usr/bin/python\n# vim: set fileencoding=cp1251 :\nимя = 1\n": "cp1251",
    "# coding=koi8-r\nx = 'и'\n": "koi8-r",
    '/* -*- mode: c; coding: iso-8859-15-unix -*- */\nchar *euro = "€";\n': "iso8859-15",
    "<?xml version='1.0' encoding='ISO-8859-1'?>\n<a>é</a>\n": "iso8859-1",
    "<!DOCTYPE html>\n<html><head>\n<meta charset=windows-1252>\n</head>“é”</html>\n": "cp1252",
    '<html><META http-equiv="Content-Type" content="text/html; charset=Shift_JIS">日本</html>\n': "shift_jis",
    "body { content: 'é' }\n/* vim: fenc=latin1 */\n": "iso8859-1",
    '@charset "iso-8859-2";\na { content: "ł" }\n': "iso8859-2",
}


@pytest.mark.parametrize("text", CODING_LINES)
def test_a_file_is_edited_and_written_in_the_encoding_that_it_names(ws, tmp_path, text):
    codec = CODING_LINES[text]
    (tmp_path / "f").write_bytes(text.encode(codec))
    read = ws.read("f")
    assert (read.encoding, read.content) == (codec, text)
    letter = next(character for character in text if not character.isascii())
    ws.edit("f", letter, letter * 2)
    doubled = text.replace(letter, letter * 2, 1)
    assert (tmp_path / "f").read_bytes() == doubled.encode(codec)
    ws.write("f", text)
    assert (tmp_path / "f").read_bytes() == text.encode(codec)
    ws.write("new", text)
    assert (tmp_path / "new").read_bytes() == text.encode(codec)


@pytest.mark.parametrize(("before", "old", "new", "after"), [
    (b"# coding: latin-1\nx = 1\n", "= 1", "= 'é'", b"# coding: latin-1\nx = '\xe9'\n"),
    (b"# coding: latin-1\nx = '\xe9'\n", "latin-1", "utf-8", b"# coding: utf-8\nx = '\xe9'\n"),
], ids=["a new character", "the coding line"])  # fmt: skip
def test_a_new_character_is_encoded_as_the_file_declares_and_the_rest_is_not_converted(
    ws, tmp_path, before, old, new, after
):
    (tmp_path / "f").write_bytes(before)
    ws.edit("f", old, new)
    assert (tmp_path / "f").read_bytes() == after
    ws.read("f")
    notes = ws.write("f", "# coding: utf-8\nx = 'é'\n").notes
    assert (tmp_path / "f").read_bytes() == "# coding: utf-8\nx = 'é'\n".encode()
    assert any("utf-8" in note for note in notes)


@pytest.mark.parametrize("text", [
    "# coding: latin-1\nx = 'é'\n",  # non-ASCII text that is valid UTF-8 is UTF-8
    "encoding: latin-1\ncafé: 1\n",  # no comment
    "# coding: utf-16\ncafé\n",
    "# coding: rot13\ncafé\n",
    "# coding: klingon\ncafé\n",
    "# coding: utf-7\ncafé\n",
    "# coding: idna\ncafé\n",
    "x = 1\ny = 2\n# coding: latin-1\ncafé\n",
])  # fmt: skip
def test_text_that_resembles_a_coding_line_is_ignored(ws, tmp_path, text):
    (tmp_path / "f").write_bytes(text.encode())
    assert ws.read("f").encoding == "utf-8"
    ws.edit("f", "é", "ü", replace_all=True)
    assert (tmp_path / "f").read_bytes() == text.replace("é", "ü").encode()


TEXTS = {
    "gb18030": ("配置文件\n主机 = 本地\n", "本地", "服务器"),
    "big5": ("設定檔案\n主機 = 本地\n", "本地", "伺服器"),
    "shift_jis": ("設定ファイル\nホスト = 本体\n", "本体", "サーバー"),
    "euc-kr": ("설정 파일\n호스트 = 로컬\n", "로컬", "서버"),
    "koi8-r": ("Файл настроек\nузел = местный\n", "местный", "сервер"),
    "latin-1": ("Données é\nhôte = là\n", "là", "où"),
}


@pytest.mark.parametrize("encoding", TEXTS)
def test_each_call_names_an_encoding_that_cannot_be_told(ws, tmp_path, encoding):
    text, old, new = TEXTS[encoding]
    path, tools = tmp_path / "f", ws.tools()
    path.write_bytes(text.encode(encoding))
    if encoding != "latin-1":  # whose bytes are shown as they are
        assert "pass encoding=" in refused(lambda: ws.edit("f", old, new), "no_match").hint
    first = tools.call("read", {"path": "f"}).content
    assert "not UTF-8, and the encoding is not known" in first
    assert "pass encoding" in first
    named = {"path": "f", "encoding": encoding}
    assert text.split("\n")[0] in tools.call("read", named).content
    assert tools.call("edit", {**named, "old_string": old, "new_string": new}).success
    assert path.read_bytes() == text.replace(old, new).encode(encoding)
    ws.multi_edit("f", [Edit(new, old), Edit("=", "==")], encoding=encoding)
    assert path.read_bytes() == text.replace("=", "==").encode(encoding)
    assert [match.line for match in ws.grep(old, encoding=encoding).matches] == [2]
    ws.read("f", encoding=encoding)
    ws.write("f", f"{new}\n", encoding=encoding)
    assert path.read_bytes() == f"{new}\n".encode(encoding)


@part_or_all(5, full=2)
def test_text_shown_by_read_is_accepted_for_any_bytes(ws, tmp_path, every):
    @settings(max_examples=100 // every)
    @given(data=st.binary(min_size=1, max_size=60), line=st.integers(0, 60))
    def law(data, line):
        data = data.replace(b"\x00", b"\xe9")
        (tmp_path / "f").write_bytes(data)
        shown = ws.read("f")
        lines = [each.split("|", 1)[1] for each in shown.text.split("\n")[: shown.end_line]]
        assume(any(lines))
        # The whole shown text, with one more line before it.
        given = "\n".join(lines)
        final = shown.content.endswith(("\n", "\r"))
        content = f"first\n{given}" + ("\n" if final else "")
        assert ws.tools().call("write", {"path": "f", "content": content}).success
        bom = data[: len(data) - len(data.removeprefix(codecs.BOM_UTF8))] if shown.bom else b""
        written = (tmp_path / "f").read_bytes().removeprefix(bom)
        assert written.split(b"first", 1)[1].lstrip(b"\r\n") == data.removeprefix(bom).lstrip(b"\r\n") or (
            shown.newline in {"\r", "mixed"}
        )
        # One shown line, with ASCII after it.
        (tmp_path / "f").write_bytes(data)
        at = line % len(lines)
        old = lines[at]
        assume(old.strip() and sum(old in each for each in lines) == 1)
        done = ws.tools().call("edit", {"path": "f", "old_string": old, "new_string": f"{old}<new>"})
        if done.error:  # marks alone are not searched by their visible form
            assert done.error["code"] == "ambiguous" or not re.search(r"\w", old)
            return
        assert (tmp_path / "f").read_bytes().replace(b"<new>", b"", 1) == data

    law()
