import gc
import os
import weakref

import pytest

from agentfs import AgentFSError, Edit, Limits, Workspace
from agentfs.fs import revision_of
from tests.kit import refused


@pytest.fixture
def file(tmp_path):
    return tmp_path / "f.txt"


def edit(ws, *pairs, path="f.txt"):
    return ws.multi_edit(path, [Edit(*pair) for pair in pairs])


def failure(ws, file, *pairs):
    before = file.read_bytes()
    error = refused(lambda: edit(ws, *pairs))
    assert (file.read_bytes(), os.listdir(file.parent)) == (before, ["f.txt"])
    return error


@pytest.mark.parametrize(("before", "old", "new", "after"), [
    # line ends: LF given, whatever the file has
    (b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"), (b"a\nb\r\nc\n", "b", "b1\nb2", b"a\nb1\r\nb2\r\nc\n"),
    (b"a\r\nb\nc\r\n", "b", "b1\nb2", b"a\r\nb1\nb2\nc\r\n"),
    (b"a\nb\r\nc\n", "a\n", "a\nx\n", b"a\nx\nb\r\nc\n"),
    (b"a\r\nb\nc\n", "a\nb", "a\nx\nb", b"a\r\nx\r\nb\nc\n"),
    (b"a\nb\r\n", "b\r\n", "x\r\ny\r\n", b"a\nx\r\ny\r\n"),
    (b"a\rb\rc", "b\n", "b\nx\n", b"a\rb\rx\rc"), (b"a\rb\rc", "a\rb", "a\rB", b"a\rB\rc"),
    (b"a\rb\nc\n", "a\rb", "a\rB", b"a\rB\nc\n"), (b"a", "a", "a\nb", b"a\nb"),
    (b"a\r\nb\r\n", "a\nb\n", "", b""), (b"a\r\n\r\nb\n", "\nb", "b", b"a\r\nb\n"),
    (b"a\nb", "b", "b\n", b"a\nb\n"), (b"a\nb\n", "b\n", "b", b"a\nb"),
    # encodings that the laws do not draw
    (b"\xe9t\xe9 = 1\r\n\xff\n", "= 1", "= 2\nb", b"\xe9t\xe9 = 2\r\nb\r\n\xff\n"),
    (b"\xef\xbb\xbfa\xff\n", "a", "b", b"\xef\xbb\xbfb\xff\n"),
    (b"\xe9 = 1\n", "= 1", "= é", b"\xe9 = \xe9\n"), (b"\xe9 = 1\n", "é", "e", b"e = 1\n"),
])  # fmt: skip
def test_one_edit_is_exact_to_the_byte(ws, file, before, old, new, after):
    file.write_bytes(before)
    result = edit(ws, (old, new))
    assert file.read_bytes() == after
    assert result.revision == revision_of(after)
    assert (result.path, result.replacements, result.applied_via) == ("f.txt", 1, "exact")


def test_the_ambiguous_error_names_each_match(ws, file):
    file.write_bytes(b"\ndef f():\n    return 1\n\ndef g():\n    return 1\n")
    error = failure(ws, file, ("return 1", "return 2"))
    assert (error.details["count"], error.details["lines"]) == (2, [3, 6])
    assert error.places() == ["3|    return 1", "6|    return 1"]
    assert "replace_all" in error.hint


def test_the_ambiguous_error_is_bounded_and_counts_the_other_matches(ws, file):
    file.write_bytes(b"same\n" * 25)
    error = failure(ws, file, ("same", "other"))
    assert (error.details["count"], len(error.places())) == (25, 11)
    assert error.places()[::10] == [" 1|same", "[and 15 more]"]
    file.write_bytes(b"a" * 5000)
    error = failure(ws, file, ("aa", "b"))
    assert error.details["exact"] is False
    assert "at least 1000 times" in error.message


def test_multi_edit_applies_each_edit_to_the_outcome_of_the_previous_one(ws, file):
    file.write_bytes(b"one\r\ntwo\r\nthree\r\n")
    result = edit(ws, ("one", "1\n1b"), ("1b\ntwo", "2"), ("three", "3"))
    assert file.read_bytes() == b"1\r\n2\r\n3\r\n"
    assert (result.replacements, result.changed) == (3, ((1, 3),))


def test_multi_edit_is_all_or_nothing_and_numbers_the_first_failure(ws, file):
    file.write_bytes(b"one\ntwo\n")
    error = failure(ws, file, ("one", "1\n1"), ("twoo", "2"), ("missing", "x"))
    assert (error.code, error.message[:13]) == ("no_match", "Edit 2 of 3: ")
    assert (error.details["edit"], error.details["edits"], error.details["lines"]) == (2, 3, [3, 3])
    assert "None of the edits was applied" in error.hint
    assert "Line numbers count the edits before it as applied." in error.hint
    assert failure(ws, file, ("one", "1"), ("", "x")).message.startswith("Edit 2 of 2: ")
    assert failure(ws, file, ("nothing", "one"), ("one", "1")).details["edit"] == 1
    assert failure(ws, file, ("one", "1"), ("1", "one")).code == "no_change"
    assert failure(ws, file).code == "invalid_argument"


@pytest.mark.parametrize(("size", "new", "limits"), [
    (100, "b" * 1000, Limits(file_bytes=5000)), (6000, "b", Limits(file_bytes=5000)),
    (100_000, "b" * 100_000, None),  # refused before the text is made
], ids=["grown", "too large before", "10 GB"])  # fmt: skip
def test_an_edit_may_not_grow_a_file_beyond_the_limit(ws, file, size, new, limits):
    file.write_bytes(b"a" * size)
    assert failure(ws.view(limits=limits) if limits else ws, file, ("a", new, True)).code == "too_large"


def test_a_failed_edit_shows_similar_text_and_what_differs(ws, file):
    file.write_bytes(b"a\nb\nx = compute(one, two)\nc\n")
    error = failure(ws, file, ("x = compute(one, three)", "y"))
    assert error.places() == [
        "3|x = compute(one, two)",
        "line 3 is `x·=·compute(one,·two)`, the old text has `x·=·compute(one,·three)`",
    ]


@pytest.mark.parametrize(("before", "old", "new", "changed"), [
    (b"a\nb\nc\n", "b", "B", ((2, 2),)), (b"a\nb\nc\n", "b\n", "x\ny\n", ((2, 3),)),
    (b"a\nb\nc\n", "b\n", "", ((2, 2),)), (b"a\nb\nc\n", "c\n", "", ((2, 2),)),
    (b"a\n", "a\n", "", ((0, 0),)), (b"a\r\nb\r\n", "b", "b\nc", ((3, 3),)),
    (b"a\n  b\n", "  b", "  c\n  b", ((2, 2),)), (b"a\nb\n", "b\n", "b\nc\nb\n", ((3, 4),)),
    (b"a\nb\nc\n", "b\nc", "c", ((2, 2),)), (b"ab\n", "ab", "a\nb", ((1, 2),)), (b"a\nb", "b", "", ((1, 1),)),
    (b"a\nb\n", "a\nb", "ab", ((1, 1),)), (b"a\rb\r", "b", "B", ((2, 2),)),
    (b"a\nb\na\nb\na\n", "a", "A\nA", ((1, 2), (4, 5), (7, 8))),
])  # fmt: skip
def test_changed_ranges_have_the_new_line_numbers(ws, file, before, old, new, changed):
    file.write_bytes(before)
    assert edit(ws, (old, new, before.count(old.encode()) > 1)).changed == changed


def test_the_text_is_short_and_the_diff_complete(ws, file):
    file.write_bytes(b"".join(b"line %d\n" % number for number in range(2000)))
    result = edit(ws, *((f"line {number}\n", f"{number}\n") for number in range(9, 2000, 20)))
    assert len(result.text) < 10_000
    assert "more lines of the diff" in result.text
    assert result.diff.count("\n") == 2 + 9 * 100


def test_an_edit_keeps_the_read_and_unread_lines_of_a_file(ws, file):
    file.write_bytes(b"one\ntwo\n")
    edit(ws, ("one", "1"))
    refused(lambda: ws.write("f.txt", "all new\n"), "unread")
    ws.write("g.txt", "one\n")
    edit(ws, ("one", "1"), path="g.txt")
    ws.write("g.txt", "all new\n")
    assert file.with_name("g.txt").read_bytes() == b"all new\n"


def test_a_block_that_two_steps_find_at_two_places_is_refused(ws, tmp_path):
    """Ignoring white space at line ends finds the first block, ignoring indentation the second."""
    blocks = "a {\n      fg: 1\n  \n      bg: 2\n}\nb {\n    fg: 1\n\n    bg: 2\n}\n"
    (tmp_path / "f.css").write_text(blocks)
    old, new = (f"      fg: 1\n\n      bg: {number}\n" for number in (2, 3))
    details = refused(lambda: ws.edit("f.css", old, new), "no_match").details
    assert (details["cause"], details["all_lines"]) == ("whitespace", [[2, 4], [7, 9]])
    assert (tmp_path / "f.css").read_text() == blocks


@pytest.mark.parametrize(("expect", "everywhere", "code"), [
    (3, True, "ambiguous"), (1, True, "ambiguous"), (2, False, "ambiguous"),
    (0, True, "invalid_argument"), (-1, True, "invalid_argument"),
])  # fmt: skip
def test_another_number_of_replacements_than_expected_changes_nothing(ws, file, expect, everywhere, code):
    file.write_bytes(b"one\r\ntwo one\r\n")
    refused(lambda: ws.edit("f.txt", "one", "1", everywhere, expect=expect), code)
    assert file.read_bytes() == b"one\r\ntwo one\r\n"
    assert ws.edit("f.txt", "one", "1", True, expect=2, preview=True).replacements == 2
    assert ws.edit("f.txt", "one", "1", True, expect=2).replacements == 2
    assert file.read_bytes() == b"1\r\ntwo 1\r\n"


@pytest.mark.parametrize("edits", [
    [("absent", "x")], [("two", "x")], [("", "x")], [("one", "one")], [("one", "1"), ("absent", "x")],
    [("one", "1"), ("one", "1")], [(f"absent {number}", "x") for number in range(30)],
    None,  # a bad pattern
])  # fmt: skip
def test_a_workspace_is_freed_at_once_after_a_failed_change(tmp_path, edits):
    """Without a garbage collection."""
    (tmp_path / "f.txt").write_text("one two two\n")
    only_reference = [Workspace(tmp_path)]
    dropped = weakref.ref(only_reference[0])
    gc.disable()
    try:
        with pytest.raises(AgentFSError):  # noqa: PT012 - one of two calls
            if edits is None:
                only_reference[0].replace("(", "x", regex=True)
            only_reference[0].multi_edit("f.txt", [Edit(*edit) for edit in edits])
        only_reference.clear()
        assert dropped() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(("text", "old", "new", "after"), [
    ("a\n    b", "b\n    ", "cb\n    ", "a\n    cb"), ("a\n    b", "b\n    ", "c", "a\n    c"),
    ("a\nb", "b\t\n", "c\n", "a\nc"), ("a\n  b", "  b \n \t", "  c\n", "a\n  c"),
])  # fmt: skip
def test_regression_an_old_text_that_ends_in_a_blank_line_is_found_at_the_end(
    ws, tmp_path, text, old, new, after
):
    """Without a line end at the end of the file, the edit ended in an internal error."""
    (tmp_path / "f").write_text(text)
    assert ws.edit("f", old, new).applied_via == "trailing_whitespace"
    assert (tmp_path / "f").read_text() == after


@pytest.mark.parametrize(("old", "new", "after"), [
    ("a\nb", "c", "c  \n"), ("a\nb ", "c", "c\n"), ("a \nb", "c ", "c   \n"), ("a \nb\t", "c ", "c \n"),
])  # fmt: skip
def test_blanks_at_the_end_of_the_last_line_are_replaced_only_if_the_old_text_has_some(
    ws, tmp_path, old, new, after
):
    (tmp_path / "f").write_text("a   \nb  \n")
    assert ws.edit("f", old, new).applied_via == "trailing_whitespace"
    assert (tmp_path / "f").read_text() == after
