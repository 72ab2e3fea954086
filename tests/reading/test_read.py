import codecs
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentfs import Workspace
from agentfs.cache import FileCache
from agentfs.errors import AgentFSError
from agentfs.fs import OpenFile, Root, revision_of
from agentfs.limits import Limits
from agentfs.policy import Policy
from agentfs.read_tracker import ReadTracker
from agentfs.reading import ReadRequest, large_file, read_file
from agentfs.text import fits
from agentfs.workspace import view_for_dialect

HELD = Limits()
STREAMED = Limits(file_bytes=1)


class Place:
    """A root on a directory of the test, and what was shown of it."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.root = Root(directory, Policy())
        self.shown = ReadTracker()

    def put(self, content, name="f"):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def read(self, offset=1, limit=None, *, path="f", limits=HELD, **more):
        indexes = more.pop("indexes", None)
        return read_file(self.root, self.shown, limits, path, ReadRequest(offset, limit, **more), indexes)

    def refuses(self, offset=1, limit=None, *, path="f", limits=HELD, **more):
        with pytest.raises(AgentFSError) as caught:
            self.read(offset, limit, path=path, limits=limits, **more)
        return caught.value

    def seen(self, path="f"):
        file = self.directory / path
        return self.shown.fully_read(path, revision_of(file.read_bytes()))


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    yield made
    made.root.close()


both = pytest.mark.parametrize("limits", [HELD, STREAMED], ids=["held", "streamed"])
TEN = "".join(f"line {number}\n" for number in range(1, 11))


@both
def test_a_whole_file_is_shown_with_numbers_and_no_footer(place, limits):
    place.put(TEN)
    result = place.read(limits=limits)
    numbers = [" 1", " 2", " 3", " 4", " 5", " 6", " 7", " 8", " 9", "10"]
    assert result.text == "\n".join(f"{number}|line {number.strip()}" for number in numbers)
    assert result.content == TEN
    assert (result.start_line, result.end_line, result.total_lines, result.total_exact) == (1, 10, 10, True)
    assert (result.kind, result.encoding, result.newline, result.bom) == ("text", "utf-8", "\n", False)
    assert (result.total_bytes, result.truncated_by, result.next) == (71, None, None)


@both
@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        *(((1, 3), (1, 3)), ((4, 2), (4, 5)), ((10, None), (10, 10)), ((8, 10**30), (8, 10))),
        *(((-1, None), (10, 10)), ((-3, None), (8, 10)), ((-10, None), (1, 10)), ((-99, None), (1, 10))),
        ((-5, 2), (6, 7)),
    ],
)
def test_offset_and_limit_choose_the_lines(place, limits, asked, lines):
    place.put(TEN)
    result = place.read(*asked, limits=limits)
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
def test_read_lines_cuts_the_answer_and_says_how_to_go_on(place, limits):
    place.put("x\n" * 2500)
    result = place.read(limits=limits)
    assert (result.end_line, result.total_lines, result.truncated_by) == (2000, 2500, "lines")
    assert result.text.endswith('\n[lines 1-2000 of 2500; more: read(path="f", offset=2001)]')
    assert result.next == {"name": "read", "arguments": {"path": "f", "offset": 2001}}
    assert place.read(1, 2400, limits=limits).end_line == 2400


@both
@pytest.mark.parametrize("content", ["é" * 70 + "\n", "\x1b" * 10 + "\n", "a" * 90 + "\r\n"])
def test_the_byte_budget_is_of_the_text_as_shown_and_cuts_between_lines(tmp_path, place, limits, content):
    place.put(content * 50)
    budget = Limits(read_bytes=1000, file_bytes=limits.file_bytes)
    result = place.read(limits=budget)
    *lines, footer = result.text.split("\n")
    assert footer.startswith(f"[lines 1-{len(lines)} of 50, as many as 1000 bytes hold; ")
    assert len("\n".join(lines).encode()) <= 1000
    following = place.read(len(lines) + 1, 1, limits=budget).text.split("\n")[0]
    assert len("\n".join([*lines, following]).encode()) > 1000
    assert (result.truncated_by, result.end_line) == ("bytes", len(lines))
    assert result.content == content * len(lines)


@both
def test_one_line_is_shown_however_small_the_budget(place, limits):
    place.put("abc\ndef\n")
    result = place.read(limits=Limits(read_bytes=1, file_bytes=limits.file_bytes))
    assert (result.content, result.truncated_by, result.end_line) == ("abc\n", "bytes", 1)


@both
def test_a_long_line_is_cut_in_the_text_alone(place, limits):
    content = "short\n" + "x" * 5000 + "\r\n" + "y" * 2000 + "\n"
    place.put(content)
    result = place.read(limits=limits)
    assert result.text == (
        f"1|short\n2|{'x' * 2000}⟦+3000 characters⟧\n3|{'y' * 2000}\n[cut after 2000 characters: line 2]"
    )
    assert (result.content, result.truncated_by, result.next) == (content, "line", None)


@both
@pytest.mark.parametrize("content", [b"", codecs.BOM_UTF8])
def test_an_empty_file_has_no_lines_and_is_no_error(place, limits, content):
    place.put(content)
    for offset in (1, -5):
        result = place.read(offset, limits=limits)
        assert (result.start_line, result.end_line, result.total_lines, result.content) == (0, 0, 0, "")
        assert (result.text, result.newline, result.bom) == ("[empty file]", None, bool(content))
    error = place.refuses(2, limits=limits)
    assert (error.code, error.details["total_lines"]) == ("past_end", 0)


@both
@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        ((0, None), "invalid_argument", "not 0"),
        ((11, None), "past_end", "10 lines"),
        ((10**15, None), "past_end", "10 lines"),
        ((1, 0), "invalid_argument", "`limit`"),
        ((1, -1), "invalid_argument", "`limit`"),
        ((True, None), "invalid_argument", "`offset`"),
        (("1", None), "invalid_argument", "`offset`"),
        ((1, "2"), "invalid_argument", "`limit`"),
        ((1, 2.0), "invalid_argument", "`limit`"),
    ],
)
def test_what_names_no_line_is_an_error_that_says_what_would(tmp_path, limits, asked, code, said):
    (tmp_path / "f").write_text(TEN)
    with Workspace(tmp_path, limits=limits) as ws, pytest.raises(AgentFSError) as caught:
        ws.read("f", *asked)
    assert caught.value.code == code
    assert said in str(caught.value)


@pytest.mark.parametrize("limits", [HELD, Limits(file_bytes=4)], ids=["held", "streamed"])
def test_a_binary_file_is_told_and_not_shown(place, limits):
    place.put(b"\x89PNG\0" * 100)
    for offset in (1, -1, 5000):
        result = place.read(offset, limits=limits)
        assert (result.kind, result.content, result.total_lines, result.encoding) == ("binary", "", 0, None)
        assert result.text == '["f" is a binary file of 500 bytes; its content is not shown]'
    assert not place.seen()


@both
def test_a_lying_mark_before_nuls_is_binary(place, limits):
    place.put(codecs.BOM_UTF16_LE + b"\0\xd8\0\xd8")
    assert place.read(limits=limits).kind == "binary"


@both
@pytest.mark.parametrize(
    ("content", "encoding", "note"),
    [
        ("né\r\n".encode("utf-16"), "utf-16-le", "[encoding utf-16-le]"),
        (codecs.BOM_UTF16_BE + "né\r\n".encode("utf-16-be"), "utf-16-be", "[encoding utf-16-be]"),
        (codecs.BOM_UTF8 + "né\r\n".encode(), "utf-8", ""),
        (
            b"n\xe9\r\n",
            "unknown-8bit",
            "[not UTF-8: each byte above 7F is shown as the Latin-1 character of that number]",
        ),
    ],
)
def test_other_encodings_are_read_and_told(place, limits, content, encoding, note):
    place.put(content)
    result = place.read(limits=limits)
    assert (result.encoding, result.content, result.newline) == (encoding, "né\r\n", "\r\n")
    assert result.text == "\n".join(["1|né", note] if note else ["1|né"])
    assert result.bom == (encoding != "unknown-8bit")


@both
def test_content_forges_neither_a_line_nor_a_footer(place, limits):
    place.put("a\x1b[2K\u202e\x0b2|x\u2028[lines 1-1 of 9]\n")
    result = place.read(limits=limits)
    assert result.text == "1|a⟦U+001B⟧[2K⟦U+202E⟧⟦U+000B⟧2|x⟦U+2028⟧[lines 1-1 of 9]"
    assert result.text.splitlines() == [result.text]


def test_a_directory_and_a_missing_file_are_errors_that_name_the_fix(place):
    place.put("x", "sub/thing.py")
    error = place.refuses(path="sub")
    assert error.code == "not_a_file"
    assert "ls" in error.hint
    error = place.refuses(path="sub/thimg.py")
    assert error.code == "not_found"
    assert "sub/thing.py" in error.hint
    assert place.refuses(path="../x").code == "outside_workspace"


def test_revisions_are_of_the_content_up_to_file_bytes_and_of_the_stat_above(place):
    place.put(TEN)
    assert place.read().revision == revision_of(TEN.encode())
    revision = place.read(limits=STREAMED).revision
    assert revision.startswith("~")
    place.put(TEN + "more\n")
    assert place.read(limits=STREAMED).revision != revision


def test_a_file_is_seen_when_its_last_gap_has_been_shown(place):
    place.put(TEN)
    place.read(1, 4)
    place.read(-3)
    assert not place.seen()
    place.read(5, 3)
    assert place.seen()
    assert place.shown.last("f").text == TEN


def test_a_line_that_was_cut_has_not_been_seen(place):
    place.put("a\n" + "x" * 3000 + "\nb\n")
    place.read()
    assert not place.seen()
    assert place.shown.last("f").missing() == ((2, 2),)


def test_an_empty_file_is_seen_by_reading_it(place):
    place.put("")
    place.read()
    assert place.seen()


def pages(place, limit, limits):
    """The content of all pages, going by `.next` alone."""
    result = place.read(1, limit, limits=limits)
    content = [result.content]
    while result.next:
        assert result.next["name"] == "read"
        result = place.read(
            result.next["arguments"]["offset"], result.next["arguments"].get("limit"), limits=limits
        )
        content.append(result.content)
    return "".join(content)


pieces = st.sampled_from(["a", "\n", "\n", "\r\n", "\r", "é", "漢", "😀", "\x0c", "\u2028", "\x1b", "x" * 30])
texts = st.lists(pieces, max_size=40).map("".join)
encodings = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"])
named = st.none() | st.sampled_from(
    ["utf-16", "utf-8", "cp1252", "shift_jis", "gb18030", "iso2022_jp", "utf-7"]
)
quietly = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@quietly
@given(
    texts,
    encodings,
    st.none() | st.integers(1, 5),
    st.tuples(st.sampled_from([1, 40, 51_200]), st.integers(1, 9)),
)
def test_the_pages_put_together_are_the_file(place, text, encoding, limit, sizes):
    read_bytes, chunk = sizes
    place.put(text.encode(encoding))
    for file_bytes in (10_000, 1):
        limits = Limits(read_bytes=read_bytes, line_chars=20, read_lines=7, file_bytes=file_bytes)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(large_file, "BLOCK", chunk)
            assert pages(place, limit, limits) == text


@quietly
@given(
    # What begins like a JPEG or a PDF is told by all of it, as far as it is held.
    st.binary(max_size=60).filter(lambda data: not data.startswith((b"\xff\xd8\xff", b"%PDF-")))
    | texts.map(str.encode),
    st.integers(-9, 9).filter(bool),
    st.none() | st.integers(1, 5),
    st.integers(1, 9),
    named,
    st.just(1) | st.integers(1, 9),
)
def test_a_streamed_page_is_the_page_of_the_file_held(place, content, offset, limit, chunk, encoding, column):
    place.put(content)
    outcomes = []
    for file_bytes in (10_000, 1):
        limits = Limits(read_bytes=60, line_chars=12, read_lines=4, file_bytes=file_bytes)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(large_file, "BLOCK", chunk)
            try:
                page = place.read(offset, limit, limits=limits, encoding=encoding, column=column)
                outcomes.append(page.to_dict() | {"text": page.text})
            except AgentFSError as error:
                outcomes.append({"code": error.code})
        outcomes[-1].pop("revision", None)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_line_too_long_to_be_held_is_shown_at_its_start_and_counted(place, monkeypatch, encoding):
    monkeypatch.setattr(large_file, "BLOCK", 64)
    monkeypatch.setattr(large_file, "MAX_PAGE_CHARS", 1000)
    place.put(("first\n" + "é" * 9000 + "\nlast\n").encode(encoding))
    limits = Limits(file_bytes=1, line_chars=100)
    assert place.read(1, limits=limits).content == "first\n"
    result = place.read(2, limits=limits)
    assert (result.start_line, result.end_line, result.total_lines, result.truncated_by) == (2, 2, 3, "bytes")
    held = len(result.content)
    assert set(result.content) == {"é"}
    assert 1000 <= held < 1100
    rest = f"{2 * (9000 - held)} bytes" if encoding == "utf-8" else f"{9000 - held} characters"
    assert result.text.startswith(f"2|{'é' * 100}⟦+{held - 100} characters and {rest}⟧\n")
    assert "the rest of line 2 is longer than a page can hold" in result.text
    assert result.next["arguments"] == {"path": "f", "offset": 3}
    assert place.read(3, limits=limits).content == "last\n"
    along = place.read(2, limits=limits, column=8951)
    assert (along.content, along.end_line) == ("é" * 50 + "\n\n", 3)


@both
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_a_long_line_is_read_along_by_column(place, limits, monkeypatch, end):
    monkeypatch.setattr(large_file, "BLOCK", 64)
    monkeypatch.setattr(large_file, "MAX_PAGE_CHARS", 1000)
    line = "".join(chr(97 + number % 26) for number in range(4321)) + end
    place.put("first\n" + line)
    narrow = Limits(line_chars=500, file_bytes=limits.file_bytes)
    result = place.read(2, 1, limits=narrow, column=2)
    pieces = [result.content]
    while result.next:
        assert "from character" in result.text
        result = place.read(**{**result.next["arguments"], "limits": narrow})
        pieces.append(result.content)
    assert "".join(pieces) == line[1:]
    assert len(pieces) == 9
    assert place.shown.last("f") is None


@both
def test_a_column_behind_the_end_of_a_line_shows_its_end_alone(place, limits):
    place.put("ab\r\ncdef\r\n\r\n")
    result = place.read(column=3, limits=limits)
    assert result.content == "\r\nef\r\n\r\n"
    assert result.text == "1|\n2|ef\n3|\n[from character 3 on]"


@both
def test_a_named_encoding_wins_and_one_that_does_not_fit_is_an_error(place, limits):
    place.put("né\n".encode())
    assert place.read(limits=limits, encoding="cp1252").content == "nÃ©\n"
    assert place.read(limits=limits, encoding="cp1252").encoding == "cp1252"
    assert place.refuses(limits=limits, encoding="ascii").code == "encoding"
    assert place.refuses(limits=limits, encoding="shift_jis_2004x").code == "invalid_argument"
    place.put("a\nb\n".encode("utf-16-le"))
    result = place.read(1, 1, limits=limits, encoding="utf-16-le")
    assert (result.content, result.next["arguments"]["encoding"]) == ("a\n", "utf-16-le")


def test_the_lines_of_a_file_are_counted_once_a_version(place, monkeypatch):
    place.put(TEN)
    counted = []
    build_index = large_file.build_index
    monkeypatch.setattr("agentfs.reading.read.build_index", lambda *a: counted.append(1) or build_index(*a))
    indexes = FileCache()
    for offset in (1, -1, 5):
        place.read(offset, limits=STREAMED, indexes=indexes)
    assert len(counted) == 1
    place.put(TEN + "more\n")
    assert place.read(-1, limits=STREAMED, indexes=indexes).content == "more\n"
    assert len(counted) == 2


@pytest.mark.parametrize("line", ["word " * 11 + "\n", "漢字" * 20 + "\n", "\r\n", "x" * 5000 + "\n"])
@pytest.mark.parametrize("part", [0, 0.1, -0.5])
def test_no_more_of_a_large_file_is_read_than_fills_the_page(place, monkeypatch, line, part):
    lines = 4_000_000 // len(line.encode())
    place.put(line * lines)
    offset = int(part * lines) or 1
    indexes = FileCache()
    limits = Limits(file_bytes=1, output_tokens=10**6)
    place.read(limits=limits, indexes=indexes)
    read_at, got = OpenFile.read_at, []

    def counted(*arguments):
        got.append(read_at(*arguments))
        return got[-1]

    monkeypatch.setattr(OpenFile, "read_at", counted)
    result = place.read(offset, 10**9, limits=limits, indexes=indexes)
    assert result.truncated_by == "bytes"
    # The head of the file; the block in which the page begins, for its place; and what the page needs: a
    # quarter of a block, and one more where most of each line is not shown.
    needed = 8192 + large_file.BLOCK // 4 + large_file.BLOCK * line.startswith("xx")
    assert sum(map(len, got)) <= large_file.BLOCK * (offset != 1) + needed
    monkeypatch.undo()
    assert result.text == place.read(offset, 10**9, limits=Limits(output_tokens=10**6)).text


def test_a_file_that_changes_while_it_is_streamed_is_not_taken_for_seen(place, monkeypatch):
    place.put(TEN)
    read_lines = large_file.read_lines

    def growing(*arguments):
        with (place.directory / "f").open("ab") as file:
            file.write(b"more\n")
        return read_lines(*arguments)

    monkeypatch.setattr("agentfs.reading.read.read_lines", growing)
    result = place.read(limits=STREAMED)
    assert result.content == TEN
    assert result.text.endswith("[the file changed while it was read]")
    assert place.shown.last("f") is None


def test_a_file_that_shrinks_while_it_is_streamed_is_stale(place, monkeypatch):
    place.put(TEN)
    read_lines = large_file.read_lines

    def shrinking(*arguments):
        os.truncate(place.directory / "f", 5)
        return read_lines(*arguments)

    monkeypatch.setattr("agentfs.reading.read.read_lines", shrinking)
    assert place.refuses(5, limits=STREAMED).code == "stale"


@both
@pytest.mark.parametrize("content", ["word " * 9 + "\n", "漢字かな\n", "x" * 700 + "\n"])
def test_a_budget_of_tokens_shows_fewer_lines_and_goes_on_after_them(place, limits, content):
    place.put(content * 300)
    budget = Limits(output_tokens=900, file_bytes=limits.file_bytes)
    result = place.read(limits=budget)
    assert fits(result.text, budget)
    assert (result.truncated_by, result.whole.count("\n") >= 10) == ("tokens", True)
    assert f"[lines 1-{result.end_line} of 300, as many as 900 tokens hold; " in result.text
    assert result.next["arguments"]["offset"] == result.end_line + 1
    assert result.content == content * result.end_line
    assert not fits(place.read(1, result.end_line + 3, limits=limits).text, budget)
    assert pages(place, None, budget) == content * 300


@both
def test_a_line_over_the_budget_of_tokens_is_cut_shorter_and_not_seen(place, limits):
    place.put("x" * 2000)
    budget = Limits(output_tokens=100, file_bytes=limits.file_bytes)
    result = place.read(limits=budget)
    assert fits(result.text, budget)
    assert (result.truncated_by, result.content) == ("line", "x" * 2000)
    assert result.text.startswith("1|xxxx")
    assert "characters⟧" in result.text
    assert place.shown.last("f") is None


def test_a_caller_that_lays_out_lines_says_what_room_it_needs(tmp_path):
    (tmp_path / "a").write_text("é23456789\n" * 100 + "x" * 50 + "\x1b\u202e\n" * 3)
    with Workspace(tmp_path, limits=Limits(read_bytes=200, line_chars=20)) as ws:
        reserving = view_for_dialect(ws, line_overhead=9)
        lines = reserving.read("a").content.splitlines()
        # 10 bytes, 9 beside them, and a line feed that the last does not need.
        assert len(lines) == 10
        assert reserving.read("a", limit=3).truncated_by is None
        assert reserving.read("a", limit=50).truncated_by == "bytes"
        assert len(reserving.read("a", line_ids=True).line_ids) == 7
        unnumbered = view_for_dialect(ws, line_overhead=0)
        assert unnumbered.read("a", 102).end_line == 103, "counted as it is, not as it would be shown"
        reserving = view_for_dialect(ws, line_overhead=500)
        assert reserving.read("a", 101, limit=1).content.startswith("x" * 50), "always one line, whole"
    (tmp_path / "b").write_text("0123456789\n" * 100)
    with Workspace(tmp_path, limits=Limits(read_bytes=200, file_bytes=500)) as ws:
        streamed = view_for_dialect(ws, line_overhead=9).read("b")
        assert streamed.revision.startswith("~")
        assert streamed.end_line == 10
        assert streamed.next == {"name": "read", "arguments": {"path": "b", "offset": 11}}
