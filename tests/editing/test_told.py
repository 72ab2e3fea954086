"""Texts that a model gets from edits, writes and reads. Each test is named after the act of the model."""

import os

import pytest

from agentfs import Edit, Limits, Policy, Workspace
from tests.kit import refused


@pytest.mark.parametrize(("until", "since", "code"), [(5, 13, ""), (4, 13, "unread"), (5, 14, "unread")])
def test_just_the_lines_around_an_edit_were_seen_in_its_diff(ws, tmp_path, until, since, code):
    (tmp_path / "a.py").write_text("".join(f"x{number} = {number}\n" for number in range(20)))
    ws.read("a.py", limit=until)
    ws.read("a.py", offset=since)
    ws.edit("a.py", "x8 = 8", "x8 = 80")  # shows lines 6 to 12
    refused(lambda: ws.write("a.py", "new\n"), code) if code else ws.write("a.py", "new\n")


@pytest.mark.parametrize("unseen", [range(6, 13), [8], [10]])
def test_lines_of_a_diff_that_is_not_shown_were_not_seen(tmp_path, unseen):
    with Workspace(tmp_path, limits=Limits(output_tokens=60)) as ws:
        (tmp_path / "a.py").write_text("".join(f"x{n} = {n} + {'y' * 30}\n" for n in range(20)))
        for offset in {*range(1, 21)} - {*unseen}:
            ws.read("a.py", offset=offset, limit=1)
        assert "x8" not in ws.edit("a.py", "x8 = 8", "x8 = 80").text
        refused(lambda: ws.write("a.py", "new\n"), "unread")


def test_a_broken_link_does_not_suggest_itself(ws, tmp_path):
    os.symlink("nowhere.toml", tmp_path / "config.toml")
    for act in (lambda: ws.read("config.toml"), lambda: ws.edit("config.toml", "a", "b")):
        assert "Did you mean" not in str(refused(act))


@pytest.mark.parametrize(("pattern", "literal"), [
    (r"foo\(bar(", "foo(bar("), (r"a\.b[", "a.b["), (r"c:\\d(", r"c:\d("), ("f(x", "f(x"),
])  # fmt: skip
def test_a_literal_suggestion_escapes_each_character_once(ws, tmp_path, pattern, literal):
    (tmp_path / "a").write_text(f"{literal}\n")
    error = refused(lambda: ws.replace(pattern, "z", regex=True))
    assert ws.replace(error.details["suggestion"], "z", regex=True).replacements == 1
    assert (tmp_path / "a").read_text() == "z\n"


def test_a_first_edit_with_an_empty_old_string_creates_a_file(ws, tmp_path):
    assert ws.edit("new/a.py", "", "one\n").created
    assert (tmp_path / "new/a.py").read_bytes() == b"one\n"
    made = ws.multi_edit("b.py", [Edit("", "one\r\ntwo\n"), Edit("two", "2")])
    assert (made.text, (tmp_path / "b.py").read_bytes()) == ('Created "b.py": 2 lines.', b"one\r\n2\n")
    assert ws.write("b.py", "x\n").bytes_written == 2  # it has written all of it
    assert ws.undo(3).steps == 3
    assert not (tmp_path / "b.py").exists()


def test_an_edit_creates_nothing_in_place_of_a_file_or_in_a_preview(ws, tmp_path):
    (tmp_path / "a").write_text("")
    refused(lambda: ws.edit("a", "", "text"), "invalid_argument")
    assert "would create" in ws.edit("b", "", "text", preview=True).text
    refused(lambda: ws.edit("b", "old", "text"), "not_found")
    assert not (tmp_path / "b").exists()


def test_a_failed_edit_of_a_new_file_does_not_advise_to_read_it(ws, tmp_path):
    error = refused(lambda: ws.multi_edit("new.py", [Edit("", "one\n"), Edit("absent", "x")]))
    assert "read(" not in str(error)
    assert "does not exist yet" in str(error)
    assert not (tmp_path / "new.py").exists()


def test_creating_by_an_edit_asks_for_permission_once(tmp_path):
    asked = []
    with Workspace(tmp_path, policy=Policy(on_ask=lambda request: asked.append(request) or True)) as ws:
        ws.edit("sub/a", "", "text\n")
    (request,) = asked
    assert request.paths == ("sub/a",)
    assert "+text" in request.diff


@pytest.mark.parametrize(("text", "old", "places"), [
    ("if a:\n\tb = 1\n\tc = 2\n", "if a:\n  b =  1\n    c = 2\n", [
        "1|if a:", "2|\tb = 1", "3|\tc = 2",
        "line 2 is `→b·=·1`, the old text has `··b·=··1`",
        "line 3 is `→c·=·2`, the old text has `····c·=·2`",
    ]),
    ("a\u00a0 =  1\nb\n", "a = 1 \nb\n", [
        "1|a\u00a0 =  1", "2|b", "line 1 is `a⍽·=··1`, the old text has `a·=·1·`",
    ]),
], ids=["each line once", "blanks that no reader sees"])  # fmt: skip
def test_a_white_space_miss_shows_the_blanks(ws, tmp_path, text, old, places):
    (tmp_path / "a.py").write_text(text)
    assert refused(lambda: ws.edit("a.py", old, "q")).details["places"] == places


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("first", [[], [Edit("first\n", "")]])
def test_the_diff_of_a_long_line_shows_the_change(ws, tmp_path, first, end):
    (tmp_path / "big.js").write_text("first\n" + "var a=1;" * 75_000 + "OLD;" + "var a=1;" * 50_000 + end)
    text = ws.multi_edit("big.js", [*first, Edit("OLD;", "NEW;")]).text
    assert (text.count("OLD;"), text.count("NEW;")) == (1, 1)
    assert len(text) < 2000


@pytest.mark.parametrize(("suffix", "first", "last"), [
    (":10-14", 10, 14), ("#L10-L14", 10, 14), ("#L10", 10, 30), (":10", 10, 30), (":14-10", 14, 14),
])  # fmt: skip
def test_a_range_after_a_path_is_read(ws, tmp_path, suffix, first, last):
    (tmp_path / "a.py").write_text("".join(f"x{number}\n" for number in range(30)))
    page = ws.read(f"a.py{suffix}")
    assert (page.path, page.start_line, page.end_line) == ("a.py", first, last)
    (tmp_path / f"a.py{suffix}").write_text("other\n")
    assert ws.read(f"a.py{suffix}").content == "other\n"


def test_changes_that_are_cut_name_the_call_for_the_rest(ws, tmp_path):
    for number in range(6):
        ws.write(f"f{number}.txt", "".join(f"{number} line {line}\n" for line in range(90)))
    seen, result = set(), ws.changes()
    while True:
        seen |= {line for line in result.text.splitlines() if line.startswith("+") and " line " in line}
        if result.next is None:
            break
        assert "more: changes(" in result.text
        result = ws.changes(**result.next["arguments"])
    assert len(seen) == 6 * 90


def test_a_patch_too_long_for_an_answer_names_its_file(ws):
    ws.write("a.txt", "".join(f"line {line}\n" for line in range(900)))
    ws.write("b.txt", "b\n")
    result = ws.changes()
    assert 'the file: read(path="a.txt")' in result.text
    assert result.next == {"name": "changes", "arguments": {"paths": ["b.txt"]}}
