import os

import pytest
from hypothesis import strategies as st

from agentfs import Workspace
from agentfs.errors import AgentFSError
from agentfs.limits import Limits
from agentfs.reading import large_file
from agentfs.shown.read_tracker import ReadTracker
from tests.conftest import law
from tests.reading.conftest import LOADED, STREAMED, named, texts

TEN = "".join(f"line {number}\n" for number in range(1, 11))


@law(110, 500,
     # The loaded file is decoded if the data is a PNG, JPEG or PDF; the streamed one is too large for that.
     st.binary(max_size=60).filter(lambda data: not data.startswith((b"\xff\xd8\xff", b"%PDF-", b"\x89PNG")))
     | texts.map(str.encode),
     st.integers(-9, 9).filter(bool), st.none() | st.integers(1, 5), st.integers(1, 9), named,
     st.just(1) | st.integers(1, 9))  # fmt: skip
def test_a_streamed_page_equals_that_of_the_loaded_file(
    reader, content, offset, limit, chunk, encoding, column
):
    reader.write(content)
    outcomes = []
    for file_bytes in (10_000, 1):
        reader.tracker = ReadTracker()  # which has no encoding of another example's file
        limits = Limits(read_bytes=60, line_chars=12, read_lines=4, file_bytes=file_bytes)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("agentfs.fs.file.BLOCK", chunk)
            try:
                page = reader.read(offset, limit, limits=limits, encoding=encoding, column=column)
                outcomes.append(page.to_dict() | {"text": page.text})
            except AgentFSError as error:
                outcomes.append({"code": error.code})
        outcomes[-1].pop("revision", None)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_only_the_start_of_a_line_that_is_too_long_to_load_is_shown(reader, monkeypatch, encoding):
    monkeypatch.setattr("agentfs.fs.file.BLOCK", 64)
    monkeypatch.setattr(large_file, "MAX_PAGE_CHARS", 1000)
    reader.write(("first\n" + "é" * 9000 + "\nlast\n").encode(encoding))
    limits = Limits(file_bytes=1, line_chars=100)
    assert reader.read(1, limits=limits).content == "first\n"
    result = reader.read(2, limits=limits)
    assert (result.start_line, result.end_line, result.total_lines, result.truncated_by) == (2, 2, 3, "bytes")
    held = len(result.content)
    assert set(result.content) == {"é"}
    assert 1000 <= held < 1100
    assert result.text.startswith(f"2|{'é' * 100}⟦+8900 characters⟧\n")
    assert "the rest of line 2 is longer than a page can hold" in result.text
    assert result.next["arguments"] == {"path": "f", "offset": 3}
    assert reader.read(3, limits=limits).content == "last\n"
    along = reader.read(2, limits=limits, column=8951)
    assert (along.content, along.end_line) == ("é" * 50 + "\nlast\n", 3)


@pytest.mark.parametrize("line", ["word " * 11 + "\n", "漢字" * 20 + "\n", "\r\n", "x" * 5000 + "\n"])
@pytest.mark.parametrize("part", [0, 0.1, -0.5])
def test_a_page_of_a_large_file_equals_that_of_the_loaded_file(reader, line, part):
    lines = 4_000_000 // len(line.encode())
    reader.write(line * lines)
    offset = int(part * lines) or 1
    result = reader.read(offset, 10**9, limits=Limits(file_bytes=1, output_tokens=10**6))
    assert result.truncated_by == "bytes"
    assert result.text == reader.read(offset, 10**9, limits=Limits(output_tokens=10**6)).text


@pytest.fixture
def meanwhile(monkeypatch):
    """Returns a function that lets a change happen while a file is streamed."""

    def patch(change):
        def changing(*arguments):
            change()
            return read_lines(*arguments)

        read_lines = large_file.read_lines
        monkeypatch.setattr("agentfs.reading.read.read_lines", changing)

    return patch


def test_a_file_that_changes_while_it_is_streamed_does_not_count_as_read(reader, meanwhile):
    reader.write(TEN)
    meanwhile(lambda: reader.write(TEN + "more\n"))
    result = reader.read(limits=STREAMED)
    assert result.content == TEN
    assert result.text.endswith("[the file changed while it was read]")
    assert reader.tracker.last("f") is None


def test_a_file_that_shrinks_or_is_no_text_while_it_is_streamed_is_stale(reader, meanwhile):
    reader.write(TEN)
    meanwhile(lambda: os.truncate(reader.directory / "f", 5))
    assert reader.error(5, limits=STREAMED).code == "stale"
    reader.write("é" * 50 + "\n")
    meanwhile(lambda: reader.write(b"\xff" * 100))
    error = reader.error(limits=STREAMED)
    assert (error.code, "was changed while it was read" in error.message) == ("stale", True)


@pytest.mark.parametrize("column", [3, 4, 5])
def test_a_column_past_the_end_of_a_line_keeps_its_line_end(reader, monkeypatch, column):
    for chunk in (1, 2, 3, 100):
        monkeypatch.setattr("agentfs.fs.file.BLOCK", chunk)
        reader.write("ab\r\ncdef\r\n")
        assert reader.read(limits=STREAMED, column=column).content == "\r\ncdef\r\n"


def test_regression_a_large_file_is_read_in_the_encoding_that_it_declares(reader):
    text = "# -*- coding: iso-8859-15 -*-\n" + "é€ abc\n" * 2000
    reader.write(text.encode("iso-8859-15"))
    page = reader.read(2, 1, limits=STREAMED)
    assert (page.content, page.encoding, page.total_lines) == ("é€ abc\n", "iso8859-15", 2001)
    assert reader.read(2, 1, limits=LOADED).content == page.content


@pytest.mark.parametrize("content", [
    b"# -*- coding: iso-8859-15 -*-\nplain\n",
    "# -*- coding: iso-8859-15 -*-\n€\n".encode("iso-8859-15"),
    "# coding: shift_jis\n日本\n".encode("shift_jis"),
    "# coding: latin-1\n日本\n".encode(),
    "日本\n".encode("utf-16"),
    b"caf\xe9\n",
    b"plain\n",
])  # fmt: skip
def test_a_large_file_has_the_encoding_that_it_would_have_as_a_small_one(tmp_path, content):
    (tmp_path / "a.txt").write_bytes(content)
    with Workspace(tmp_path) as small, Workspace(tmp_path, limits=Limits(file_bytes=1)) as large:
        assert large.read("a.txt").encoding == small.read("a.txt").encoding
        assert large.read("a.txt").content == small.read("a.txt").content
