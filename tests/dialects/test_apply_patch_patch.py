"""V4A patches: parsed as leniently as by the reference; a hunk's lines must occur once in the file."""

import difflib
import time
from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentfs.dialects.apply_patch import Operation, PatchHunk, locate_hunks, read_patch
from agentfs.errors import AmbiguousError, InvalidArgumentError
from tests.kit import code_of, error_of


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def made(text: str, *lines: str) -> str:
    """Return a text with an update applied to it."""
    (operation,) = read_patch(patch("*** Update File: f", *lines))
    for start, end, new in sorted(locate_hunks(text, operation.hunks, "f")[0], reverse=True):
        text = text[:start] + new + text[end:]
    return text


ADD = patch("*** Add File: foo", "+hi")


def test_every_operation_of_the_format_is_read():
    assert read_patch(patch(
        "*** Add File: path/add.py", "+abc", "+", "+def",
        "*** Delete File: path/delete.py",
        "*** Update File: path/update.py", "*** Move to: path/update2.py",
        "@@ def f():", "-    pass", "+    return 1",
    )) == [
        Operation("add", "path/add.py", content="abc\n\ndef\n"),
        Operation("delete", "path/delete.py"),
        Operation(
            "update", "path/update.py", to="path/update2.py",
            hunks=(PatchHunk(("def f():",), ("-    pass", "+    return 1"), at_end=False),),
        ),
    ]  # fmt: skip


@pytest.mark.parametrize("text", [
    ADD,
    " *** Begin Patch \n*** Add File: foo\n+hi\n  *** End Patch\n\n",
    patch("  *** Add File: foo  ", "+hi"),
    ADD.replace("\n", "\r\n"),
    f"<<'EOF'\n{ADD}\nEOF\n",
    f'<<"EOF"\n{ADD}\nEOF',
    f"<<EOF\n{ADD}\nEOF",
    f"cat <<'EOF'\n{ADD}\nEOF\n",
    f"apply_patch <<'PATCH'\n{ADD}\nPATCH",
    f'applypatch << "END-1"\n{ADD}\nEND-1',
    f"<<-PATCH\n{ADD}\n\tPATCH",
    patch("", "*** Add File: foo", "+hi", ""),
])  # fmt: skip
def test_text_around_a_patch_is_parsed_leniently(text):
    assert read_patch(text) == [Operation("add", "foo", content="hi\n")]


@pytest.mark.parametrize(("lines", "hunks"), [
    ([" import foo", "+bar"], [((), ("import foo",), ("import foo", "bar"))]),
    (["@@", "+line"], [((), (), ("line",))]),
    (["@@ class A", "@@ \tdef f", "-x"], [(("class A", "\tdef f"), ("x",), ())]),
    (["@@", "-a", "", "@@ b", "+c"], [((), ("a", ""), ("",)), (("b",), (), ("c",))]),
    (["@@ -1,2 +1,2 @@", "-a"], [((), ("a",), ())]),
    (["@@", " a", "", "-b"], [((), ("a", "", "b"), ("a", ""))]),
])  # fmt: skip
def test_hunks_are_read(lines, hunks):
    (operation,) = read_patch(patch("*** Update File: f", *lines))
    assert [(hunk.anchors, hunk.old, hunk.new) for hunk in operation.hunks] == hunks


@pytest.mark.parametrize("context", [" *** x", " ***", " *** Addendum: x", "  *** Begin Patch"])
def test_a_first_hunk_may_begin_with_asterisks(context):
    before = f"{context[1:]}\nb\n"
    assert made(before, context, "-b", "+c") == f"{context[1:]}\nc\n"
    assert made(before, "@@", context, "-b", "+c") == f"{context[1:]}\nc\n"
    two = read_patch(patch("*** Update File: f", context, "-b", "  *** Delete File: g", "*** Add File: h"))
    assert [each.kind for each in two] == ["update", "add"]


def test_a_header_ends_an_update_even_if_it_is_indented():
    found = read_patch(patch("*** Update File: f", "*** Move to: g", " *** Delete File: h"))
    assert [(each.kind, each.path) for each in found] == [("update", "f"), ("delete", "h")]


def test_the_end_of_file_marker_ends_a_hunk():
    (operation,) = read_patch(patch("*** Update File: f", "@@", "-a", "*** End of File", "@@", "+b"))
    assert [hunk.at_end for hunk in operation.hunks] == [True, False]


@pytest.mark.parametrize(("text", "line", "told"), [
    ("bad", 1, "first line of the patch must be '*** Begin Patch'"),
    ("", 1, "first line"),
    ("*** Begin Patch\nbad", 2, "last line of the patch must be '*** End Patch'"),
    ("*** Begin Patch", 1, "last line"),
    (patch(), 2, "changes no file"),
    (patch("*** Frobnicate File: foo"), 2, "is not the header of a file"),
    (patch("*** Update File: foo"), 3, "the update of 'foo' is empty"),
    (patch("*** Update File: foo", "@@", "nothing"), 4, "a line of a hunk begins with"),
    (patch("*** Update File: foo", "-a", "b"), 4, "a hunk begins with '@@'"),
    (patch("*** Delete File: foo", "-a"), 3, "is not the header of a file"),
    (patch("*** Add File: foo", "+a", "b"), 4, "is not the header of a file"),
])  # fmt: skip
def test_a_malformed_patch_is_refused_with_its_line(text, line, told):
    error = error_of(read_patch, text)
    assert (error.code, error.details["line"]) == ("invalid_argument", line)
    assert told in error.message


def test_regression_a_miss_is_below_the_previous_hunk_only_if_the_search_began_there():
    for first, where in (("+added", ""), ("-a", " below the previous hunk")):
        error = error_of(made, "a\nb\n", "@@", first, "@@", "-no")
        assert error.message == f'Hunk 2 of "f": its lines are not in the file{where}.'


FILE = "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 1\n"


@pytest.mark.parametrize(("lines", "after"), [
    (["@@ class B:", "-        return 1", "+        return 2"], FILE[:-2] + "2\n"),
    (["@@ class B:", "@@     def f(self):", "-        return 1"], FILE.removesuffix("        return 1\n")),
    (["@@class B:", "     def f(self):", "-        return 1", "+        return 2"], FILE[:-2] + "2\n"),
    (["@@", "-        return 1", "+        return 2", "*** End of File"], FILE[:-2] + "2\n"),
    (["@@", "+# the end"], FILE + "# the end\n"),
    (["@@ class A:", "+    x = 1"], FILE.replace("A:\n", "A:\n    x = 1\n", 1)),
    (["@@", "-class A:", "+class C:", "@@", " class B:", "+    x = 1"],
     FILE.replace("A:", "C:").replace("B:\n", "B:\n    x = 1\n")),
])  # fmt: skip
def test_hunks_are_placed(lines, after):
    assert made(FILE, *lines) == after


@pytest.mark.parametrize(("text", "lines", "after"), [
    ("a  \nb\n", ["@@", " a", "-b", "+c"], "a  \nc\n"),
    ("  if x:\n    y()\n", ["@@", " if x:", "-  y()", "+  z()"], "  if x:\n    z()\n"),
    ("import asyncio  # local import \u2013 avoids top\u2011level dep\n",
     ["@@", "-import asyncio  # local import - avoids top-level dep", "+import asyncio  # HELLO"],
     "import asyncio  # HELLO\n"),
    ("a\nb", ["@@", " a", "-b", "+c"], "a\nc"),
    ("a\nb", ["@@", " a", "-b"], "a"),
    ("a\nb", ["@@", " b", "+c"], "a\nb\nc"),
    ("a\nb", ["@@", "+c"], "a\nb\nc"),
    ("", ["@@", "+c"], "c\n"),
    ("a\n", ["@@", "-a"], ""),
])  # fmt: skip
def test_nearly_equal_lines_are_found_and_other_lines_stay(text, lines, after):
    assert made(text, *lines) == after


@pytest.mark.parametrize(
    "heredoc", ["cd src && apply_patch <<'EOF'\n%s\nEOF", "<<A\n%s\nB", "<<'EOF\n%s\nEOF"]
)
def test_other_commands_and_unended_heredocs_are_refused(heredoc):
    assert code_of(read_patch, heredoc % ADD) == "invalid_argument"


def test_a_tolerant_match_is_noted():
    (operation,) = read_patch(patch("*** Update File: f", "@@", " a", "-b"))
    assert locate_hunks("a \nb\n", operation.hunks, "f")[1] == ["hunk 1 was found by trailing whitespace"]
    assert locate_hunks("a\nb\n", operation.hunks, "f")[1] == []


def test_lines_at_several_places_are_refused_with_the_places():
    error = error_of(made, FILE, "@@", "-        return 1", "+        return 2")
    assert (error.code, error.details["lines"]) == ("ambiguous", [3, 7])
    assert "'@@'" in error.hint
    tolerant = "    if x:\n        y\n\n    if x:\n        y\n"
    error = error_of(made, tolerant, "@@", "-if x:", "-    y", "+z")
    assert "its lines occur at several places" in error.message


@pytest.mark.parametrize(("lines", "told"), [
    (["@@", "-nothing of the kind"], "are not in the file"),
    (["@@ class C:", "+x"], "the line \"class C:\" after '@@' is not in the file"),
    (["@@", "-class B:", "@@", "-class A:"], "Hunk 2"),
    (["@@", "-class A:", "+class C:", "*** End of File"], "at the end"),
    (["@@", "-lass A:"], "are not in the file"),
])  # fmt: skip
def test_lines_that_are_not_there_are_refused(lines, told):
    error = error_of(made, FILE, *lines)
    assert error.code == "no_match"
    assert told in error.message


LINES = st.lists(st.sampled_from(["a", "b", "  a", "", "c", "é"]), min_size=1, max_size=12)


@given(before=LINES, after=LINES, context=st.integers(0, 4), ended=st.booleans())
def test_a_patch_that_difflib_makes_gives_its_text_or_is_refused(before, after, context, ended):
    lines = []
    for group in difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(context):
        lines.append("@@")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [f" {line}" for line in before[i1:i2]]
            else:
                lines += [f"-{line}" for line in before[i1:i2]] + [f"+{line}" for line in after[j1:j2]]
    hunks = "\n".join(lines).split("@@\n")[1:]
    assume(hunks)
    # A hunk with only added lines does not tell its place.
    assume(not any(all(line.startswith("+") for line in hunk.split("\n") if line) for hunk in hunks))
    # Without a final line end, there is no blank last line.
    assume(ended or (before[-1] and after[-1]))
    text = "\n".join(before) + ("\n" if ended else "")
    with suppress(AmbiguousError):
        assert made(text, *lines) == "\n".join(after) + ("\n" if ended else "")


@pytest.mark.full
def test_a_patch_of_many_hunks_is_read_in_linear_time():
    count = 60_000
    lines = [f"@@\n-a{number}\n+b{number}" for number in range(count)]
    started = time.process_time()
    (operation,) = read_patch(patch("*** Update File: f", *lines))
    assert len(operation.hunks) == count
    assert time.process_time() - started < 10, "copying the rest of the patch for each hunk takes minutes"


def test_a_patch_of_too_many_lines_is_refused():
    with pytest.raises(InvalidArgumentError, match="the patch is too long here; send several patches"):
        read_patch("\n" * 500_001)
