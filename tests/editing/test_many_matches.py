"""Edits of very many places or lines: bytes, hunks and line numbers stay exact."""

import random
import re
import tracemalloc

import pytest

from agentfs import Edit, Workspace
from agentfs.shown import read_tracker
from tests import kit
from tests.history.judges import git_applied, snapshot
from tests.kit import put, refused

COUNT = 6_000


def edited(tmp_path, data, *arguments, **options):
    (tmp_path / "f").write_bytes(data)
    with Workspace(tmp_path) as ws:
        result = ws.edit("f", *arguments, replace_all=True, **options)
        assert ws.undo().steps == 1
        assert (tmp_path / "f").read_bytes() == data
        ws.redo()
    return result, (tmp_path / "f").read_bytes()


def line_ends(kind):
    rng = random.Random(3)
    ends = {"lf": ["\n"], "crlf": ["\r\n"], "cr": ["\r"], "mixed": ["\r\n", "\n"]}[kind]
    return [rng.choice(ends) for _ in range(COUNT)]


@pytest.mark.parametrize("kind", ["lf", "crlf", "cr", "mixed"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_each_of_many_places_keeps_the_line_end_of_its_line(tmp_path, kind, encoding):
    ends = line_ends(kind)
    data = "".join(f"xé{end}" for end in ends).encode(encoding)
    options = {"encoding": "cp1252"} if encoding == "cp1252" else {}
    result, after = edited(tmp_path, data, "x", "p\nq", **options)
    assert after == "".join(f"p{end}qé{end}" for end in ends).encode(encoding)
    assert result.replacements == COUNT
    assert result.changed == ((1, 2 * COUNT),)
    data, left = ("".join(f"{each}b{end}" for end in ends).encode(encoding) for each in ("a\n", ""))
    assert edited(tmp_path, data, "a\n", "", **options)[1] == left


@pytest.mark.parametrize(
    ("data", "old", "new"), [(b"a" * 6_000_000, "a", "ab"), (b"x\r\n" * 2000, "x", "long\n" * 20_000)]
)
def test_a_file_that_would_become_too_large_is_refused_before_it_is_made(ws, tmp_path, data, old, new):
    (tmp_path / "f").write_bytes(data)
    tracemalloc.start()
    try:
        refused(lambda: ws.edit("f", old, new, replace_all=True), "too_large")
        assert tracemalloc.get_traced_memory()[1] < 200 * 2**20
    finally:
        tracemalloc.stop()
    assert (tmp_path / "f").read_bytes() == data


def test_many_replacements_between_other_edits_are_one_change(tmp_path):
    (tmp_path / "f").write_text("first\n" + "x\n" * COUNT + "last\n")
    edits = [Edit("first", "1st"), Edit("x", "yy", replace_all=True), Edit("last", "end"), Edit("1st", "one")]
    with Workspace(tmp_path) as ws:
        assert ws.multi_edit("f", edits).replacements == COUNT + 3
    assert (tmp_path / "f").read_text() == "one\n" + "yy\n" * COUNT + "end\n"


def test_many_spans_are_spliced(tmp_path):
    (tmp_path / "f").write_bytes(b"ab\r\n" * COUNT)
    spans = [(3 * number, 3 * number + 1, "cd") for number in range(COUNT)]
    with Workspace(tmp_path) as ws:
        assert kit.splice(ws, "f", [*spans[::2], *spans[1::2]]).replacements == COUNT
        assert (tmp_path / "f").read_bytes() == b"cdb\r\n" * COUNT
        refused(lambda: kit.splice(ws, "f", [*spans, (4, 5, "x"), (4, 6, "y")]), "overlap")


def test_the_diff_of_a_file_of_many_lines_has_only_the_changes(tmp_path):
    text = "".join(f"line {number}\n" for number in range(300_000))
    original, top = (put(tmp_path / each, {"f": text}) for each in "or")
    edits = [Edit("line 5\n", "five\nand more\n"), Edit("line 299990\n", ""), Edit("line 7\n", "seven\n")]
    with Workspace(top) as ws:
        result = ws.multi_edit("f", edits)
        assert git_applied(original, result.diff.encode(), tmp_path / "scratch") == snapshot(top)
        lines = re.findall(r"^[-+](?![-+]).*", result.diff, re.MULTILINE)
        assert lines == ["-line 5", "+five", "+and more", "-line 7", "+seven", "-line 299990"]
        assert result.changed == ((6, 7), (9, 9), (299_992, 299_992))
        put(top, {"f": text})
        content = text.replace("line 5\n", "5\n").replace("line 290000\n", "290000\n")
        diff = ws.write("f", content, overwrite=True).diff
    assert git_applied(original, diff.encode(), tmp_path / "scratch") == snapshot(top)


def test_nothing_counts_as_read_after_an_external_change_of_a_text_too_large_to_cache(
    ws, tmp_path, monkeypatch
):
    monkeypatch.setattr(read_tracker, "MAX_ONE_TEXT_BYTES", 10)
    ws.write("f", "mine\n" + "x\n" * 9 + "last line\n")
    put(tmp_path, {"f": "theirs\n" + "x\n" * 9 + "last line\n"})
    assert "the file had changed" in ws.edit("f", "last", "the last").text
    ws.read("f", offset=2)
    refused(lambda: ws.write("f", "all new\n"), "unread")
