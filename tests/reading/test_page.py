import codecs

import pytest
from hypothesis import strategies as st

from agentfs import Workspace
from agentfs.dialects import toolkit
from agentfs.dialects.toolkit import ReadOptions
from agentfs.limits import Limits
from agentfs.reading import large_file
from agentfs.text.display import fits
from tests.conftest import law
from tests.reading.conftest import both, encodings, texts

TEN = "".join(f"line {number}\n" for number in range(1, 11))


@both
def test_a_complete_file_is_shown_with_numbers_and_without_a_footer(reader, limits):
    reader.write(TEN)
    result = reader.read(limits=limits)
    numbers = [" 1", " 2", " 3", " 4", " 5", " 6", " 7", " 8", " 9", "10"]
    assert result.text == "\n".join(f"{number}|line {number.strip()}" for number in numbers)
    assert result.content == TEN
    assert (result.start_line, result.end_line, result.total_lines, result.total_exact) == (1, 10, 10, True)
    assert (result.kind, result.encoding, result.newline, result.bom) == ("text", "utf-8", "\n", False)
    assert (result.total_bytes, result.truncated_by, result.next) == (71, None, None)


@both
@pytest.mark.parametrize(("asked", "lines"), [
    *(((1, 3), (1, 3)), ((4, 2), (4, 5)), ((10, None), (10, 10)), ((8, 10**30), (8, 10))),
    *(((-1, None), (10, 10)), ((-3, None), (8, 10)), ((-10, None), (1, 10))),
    ((-5, 2), (6, 7)),
])  # fmt: skip
def test_offset_and_limit_choose_the_lines(reader, limits, asked, lines):
    reader.write(TEN)
    result = reader.read(*asked, limits=limits)
    limit, (first, last) = asked[1], lines
    assert (result.start_line, result.end_line) == (first, last)
    assert result.content == "".join(f"line {number}\n" for number in range(first, last + 1))
    assert result.truncated_by is None
    whole = (first, last) == (1, 10)
    assert result.text.endswith("]") != whole
    if last < 10:
        assert result.next == {"name": "read", "arguments": {"path": "f", "offset": last + 1, "limit": limit}}
        assert result.text.endswith(
            f'[lines {first}-{last} of 10; more: read(path="f", offset={last + 1}, limit={limit})]'
        )
    else:
        assert result.next is None


@both
def test_read_lines_cuts_the_answer_and_says_how_to_continue(reader, limits):
    reader.write("x\n" * 2500)
    result = reader.read(limits=limits)
    assert (result.end_line, result.total_lines, result.truncated_by) == (2000, 2500, "lines")
    assert result.text.endswith('\n[lines 1-2000 of 2500; more: read(path="f", offset=2001)]')
    assert result.next == {"name": "read", "arguments": {"path": "f", "offset": 2001}}
    assert reader.read(1, 2400, limits=limits).end_line == 2400


@both
@pytest.mark.parametrize("content", ["é" * 70 + "\n", "\x1b" * 10 + "\n", "a" * 90 + "\r\n"])
def test_the_byte_budget_counts_the_shown_text_and_cuts_between_lines(tmp_path, reader, limits, content):
    reader.write(content * 50)
    budget = Limits(read_bytes=1000, file_bytes=limits.file_bytes)
    result = reader.read(limits=budget)
    *lines, footer = result.text.split("\n")
    assert footer.startswith(f"[lines 1-{len(lines)} of 50, as many as one answer holds; ")
    assert len("\n".join(lines).encode()) <= 1000
    following = reader.read(len(lines) + 1, 1, limits=budget).text.split("\n")[0]
    assert len("\n".join([*lines, following]).encode()) > 1000
    assert (result.truncated_by, result.end_line) == ("bytes", len(lines))
    assert result.content == content * len(lines)


@both
def test_one_line_is_shown_with_any_budget(reader, limits):
    reader.write("abc\ndef\n")
    result = reader.read(limits=Limits(read_bytes=1, file_bytes=limits.file_bytes))
    assert (result.content, result.truncated_by, result.end_line) == ("abc\n", "bytes", 1)


@both
def test_a_long_line_is_cut_only_in_the_text(reader, limits):
    content = "short\n" + "x" * 5000 + "\r\n" + "y" * 2000 + "\n"
    reader.write(content)
    result = reader.read(limits=limits)
    rest = 'the rest of line 2: read(path="f", offset=2, limit=1, column=2001)'
    assert result.text == (
        f"1|short\n2|{'x' * 2000}⟦+3000 characters⟧\n3|{'y' * 2000}\n"
        f"[cut after 2000 characters: line 2; {rest}]"
    )
    assert (result.content, result.truncated_by, result.next) == (content, "line", None)


@both
@pytest.mark.parametrize("content", [b"", codecs.BOM_UTF8])
def test_an_empty_file_has_no_lines_and_is_not_an_error(reader, limits, content):
    reader.write(content)
    for offset in (1, -5):
        result = reader.read(offset, limits=limits)
        assert (result.start_line, result.end_line, result.total_lines, result.content) == (0, 0, 0, "")
        assert (result.text, result.newline, result.bom) == ("[empty file]", None, bool(content))
    error = reader.error(2, limits=limits)
    assert (error.code, error.details["total_lines"]) == ("past_end", 0)
    assert "It is empty" in str(error)
    reader.write(content + b"x\n")
    assert "offset from 1 to 1" in str(reader.error(2, limits=limits))


@both
def test_content_forges_neither_a_line_nor_a_footer(reader, limits):
    reader.write("a\x1b[2K\u202e\x0b2|x\u2028[lines 1-1 of 9]\n")
    result = reader.read(limits=limits)
    assert result.text == "1|a⟦U+001B⟧[2K⟦U+202E⟧⟦U+000B⟧2|x⟦U+2028⟧[lines 1-1 of 9]"
    assert result.text.splitlines() == [result.text]


@law(50, 150, texts, encodings, st.none() | st.integers(1, 5), st.sampled_from([1, 40, 51_200]),
     st.integers(1, 9))  # fmt: skip
def test_the_joined_pages_are_the_file(reader, text, encoding, limit, read_bytes, chunk):
    reader.write(text.encode(encoding))
    for file_bytes in (10_000, 1):
        limits = Limits(read_bytes=read_bytes, line_chars=20, read_lines=7, file_bytes=file_bytes)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("agentfs.fs.file.BLOCK", chunk)
            assert reader.pages(limit, limits) == text


@both
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_a_long_line_is_read_along_by_column(reader, limits, monkeypatch, end):
    monkeypatch.setattr("agentfs.fs.file.BLOCK", 64)
    monkeypatch.setattr(large_file, "MAX_PAGE_CHARS", 1000)
    line = "".join(chr(97 + number % 26) for number in range(4321)) + end
    reader.write("first\n" + line)
    narrow = Limits(line_chars=500, file_bytes=limits.file_bytes)
    result = reader.read(2, 1, limits=narrow, column=2)
    pieces = [result.content]
    while result.next:
        assert "from character" in result.text
        result = reader.read(**{**result.next["arguments"], "limits": narrow})
        pieces.append(result.content)
    assert "".join(pieces) == line[1:]
    assert len(pieces) == 9
    assert not reader.fully_read()


@both
def test_a_column_past_the_end_of_a_line_shows_only_its_line_end(reader, limits):
    reader.write("ab\r\ncdef\r\n\r\n")
    result = reader.read(column=3, limits=limits)
    assert result.content == "\r\ncdef\r\n\r\n"
    assert result.text == "1|\n2|cdef\n3|\n[line 1 from character 3 on]"


@both
@pytest.mark.parametrize("content", ["word " * 9 + "\n", "漢字かな\n", "x" * 700 + "\n"])
def test_a_token_budget_shows_fewer_lines_and_continues_after_them(reader, limits, content):
    reader.write(content * 300)
    budget = Limits(output_tokens=900, file_bytes=limits.file_bytes)
    result = reader.read(limits=budget)
    assert fits(result.text, budget)
    assert result.truncated_by == "tokens"
    assert f"[lines 1-{result.end_line} of 300, as many as one answer holds; " in result.text
    assert result.next["arguments"]["offset"] == result.end_line + 1
    assert result.content == content * result.end_line
    assert not fits(reader.read(1, result.end_line + 3, limits=limits).text, budget)
    assert reader.pages(None, budget) == content * 300


@both
def test_a_line_over_the_token_budget_is_cut_shorter_and_counts_as_read(reader, limits):
    reader.write("x" * 2000)
    budget = Limits(output_tokens=100, file_bytes=limits.file_bytes)
    result = reader.read(limits=budget)
    assert fits(result.text, budget)
    assert (result.truncated_by, result.content) == ("line", "x" * 2000)
    assert result.text.startswith("1|xxxx")
    assert "characters⟧" in result.text
    assert reader.tracker.last("f").whole


def test_a_dialect_that_formats_lines_passes_its_overhead(tmp_path):
    (tmp_path / "a").write_text("é23456789\n" * 100 + "x" * 50 + "\x1b\u202e\n" * 3)
    with Workspace(tmp_path, limits=Limits(read_bytes=200, line_chars=20)) as ws:

        def read(overhead, **more):
            return toolkit.read(ws, ReadOptions("a", line_overhead=overhead, **more))

        # 10 bytes, 9 of overhead, and a line feed, which the last line does not need.
        assert len(read(9).content.splitlines()) == 10
        assert read(9, limit=3).truncated_by is None
        assert read(9, limit=50).truncated_by == "bytes"
        assert len(read(9, line_ids=True).line_ids) == 7
        assert read(0, offset=102).end_line == 103, "counted as it is, not as it would be shown"
        assert read(500, offset=101, limit=1).content.startswith("x" * 50), "always one line, whole"
    (tmp_path / "b").write_text("0123456789\n" * 100)
    with Workspace(tmp_path, limits=Limits(read_bytes=200, file_bytes=500)) as ws:
        streamed = toolkit.read(ws, ReadOptions("b", line_overhead=9))
        assert streamed.revision.startswith("~")
        assert streamed.end_line == 10
        assert streamed.next == {"name": "read", "arguments": {"path": "b", "offset": 11}}


@both
def test_a_page_of_a_requested_range_continues_to_its_end_and_no_further(reader, limits):
    reader.write("0123456789\n" * 200)
    small = Limits(read_bytes=500, file_bytes=limits.file_bytes)
    page = reader.read(11, 100, limits=small)
    shown = page.end_line - 10
    assert 0 < shown < 100
    assert page.next["arguments"] == {"path": "f", "offset": page.end_line + 1, "limit": 100 - shown}
    while page.end_line < 110:
        page = reader.read(**page.next["arguments"], limits=small)
    assert page.end_line == 110


def test_a_wrong_limit_is_left_out_and_the_offset_kept(tmp_path):
    (tmp_path / "f").write_text("a\nb\nc\n")
    with Workspace(tmp_path) as ws:
        tools = ws.tools()
        refused = tools.call("read", {"path": "f", "offset": 2, "limit": -1})
        assert refused.content.endswith("To read as far as fits, leave out limit.")
        (suggested,) = refused.data["details"]["suggested_calls"]
        assert tools.call(**suggested).content == "2|b\n3|c\n[lines 2-3 of 3]"


@both
def test_one_call_reads_the_rest_of_a_cut_line(tmp_path, limits):
    line = "".join(f"{number} " for number in range(1500))
    (tmp_path / "f").write_text(f"a\n{line}\nb\n")
    with Workspace(tmp_path, limits=limits) as ws:
        tools = ws.tools(expose={"read": ["column"]})
        text = tools.call("read", {"path": "f"}).content
        rest = {"path": "f", "offset": 2, "limit": 1, "column": 2001}
        call = 'the rest of line 2: read(path="f", offset=2, limit=1, column=2001)'
        assert text.endswith(f"[cut after 2000 characters: line 2; {call}]")
        shown = ""
        while rest.get("column"):
            result = tools.call("read", rest)
            shown += result.content.partition("|")[2].partition("\n")[0].partition("⟦")[0]
            rest = result.next["arguments"] if result.next else {}
        assert shown == line[2000:]


def test_a_visible_carriage_return_is_explained(tmp_path):
    (tmp_path / "a").write_bytes(b"a\rb\nc\n")
    (tmp_path / "crlf").write_bytes(b"a\r\nb\r\n")
    with Workspace(tmp_path) as ws:
        assert ws.read("a").text == "1|a⟦U+000D⟧b\n2|c\n[⟦U+000D⟧ is a carriage return]"
        assert "U+000D" not in ws.read("crlf").text


@both
@pytest.mark.parametrize("offset", [-11, -99, -(10**9)])
def test_regression_a_negative_offset_before_the_first_line_is_past_the_end(reader, limits, offset):
    """It showed the first lines, as if they were those that were asked for."""
    reader.write(TEN)
    error = reader.error(offset, limits=limits)
    assert (error.code, error.details["total_lines"]) == ("past_end", 10)
    assert f"offset {offset} is before its start." in str(error)
