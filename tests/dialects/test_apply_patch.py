"""`apply-patch`: each statement that `docs/reference/dialects/apply-patch.md` lists."""

# ruff: noqa: E501 - a row of a table is one line

import difflib
import re
import time

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from agentfs import Policy, Workspace
from agentfs.dialects.apply_patch import read_patch
from tests.conftest import law
from tests.kit import put
from tests.tree_difference import snapshot

APP = 'import os\n\n\ndef greet():\n    print("Hi")\n\n\ndef leave():\n    print("Bye")\n'
SYS = APP.replace("os", "sys")
UPDATE = "*** Update File: src/app.py"


@pytest.fixture
def ws(tmp_path, ws):
    put(tmp_path, {"src/app.py": APP, "obsolete.txt": "old\n", "dos.txt": b"a\r\nb \r\nc"})
    return ws


@pytest.fixture
def send(ws):
    tools = ws.tools(dialect="apply-patch")
    return lambda text: tools.call("apply_patch", {"input": text})


@pytest.fixture
def apply(send):
    return lambda *lines: send(patch(*lines))


def patch(*lines):
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def test_the_tool_in_both_shapes(ws):
    tools = ws.tools(dialect="apply-patch")
    (tool,) = tools.schemas("openai")
    assert tool["function"]["name"] == "apply_patch"
    assert list(tool["function"]["parameters"]["properties"]) == ["input"]
    assert tool["function"]["parameters"]["required"] == ["input"]
    sent = {"type": "custom_tool_call", "name": "apply_patch", "call_id": "c"}
    (reply,) = tools.answer([{**sent, "input": patch("*** Delete File: obsolete.txt")}])
    assert reply["type"] == "custom_tool_call_output"
    assert "D obsolete.txt" in str(reply)
    assert tools.call("apply_patch", {"patch": patch("*** Delete File: dos.txt")}).success, (
        "as in other products"
    )


@pytest.mark.parametrize("around", [
    "{}", "<<'EOF'\n {}\nEOF\n", '<<"EOF"\n{}\nEOF', "<<EOF\n{}\nEOF", "<<-PATCH\n{}\n\tPATCH", "\n \n{}\n\n", "```\n{}\n```", "```patch\n{}\n```\n",
    "cat <<'EOF'\n{}\nEOF\n", "cat <<'EOF' | apply_patch\n{}\nEOF", "apply_patch <<'PATCH'\n{}\nPATCH", 'applypatch << "END-1"\n{}\nEND-1',
])  # fmt: skip
def test_the_envelope(send, tmp_path, around):
    text = patch("", "  *** Add File: new  ", "+1", "")
    for wrong in (around.format(text.replace("End Patch", "")), "+1", "cd src && " + around.format(text)):
        assert send(wrong).error["code"] == "invalid_argument"
    assert send(around.format(text.replace("\n", "\r\n")).replace("*** Begin", " *** Begin")).success
    assert (tmp_path / "new").read_text() == "1\n"


@pytest.mark.parametrize("heredoc", ["<<A\n%s\nB", "<<'EOF\n%s\nEOF"])
def test_heredocs_without_an_end_are_refused(send, heredoc):
    assert send(heredoc % patch("*** Add File: new", "+1")).error["code"] == "invalid_argument"


# The lines of a patch, and what they change.
PATCHES = {
    "add": (["*** Add File: new/hello.txt", "+Hello world", "+", "*** Add File: empty"], {"new/hello.txt": "Hello world\n\n", "empty": ""}),
    "add over a file": (["*** Add File: obsolete.txt", "+new"], {"obsolete.txt": "new\n"}),
    "delete": (["*** Delete File: obsolete.txt"], {"obsolete.txt": None}),
    "update": (
        [UPDATE, "-import os", "+import sys", "", " ", "@@", " def greet():", '-    print("Hi")', '+    print("Hello, world!")'],
        {"src/app.py": SYS.replace("Hi", "Hello, world!")}),
    "move": ([UPDATE, "*** Move to: lib/main.py", "@@", "-import os", "+import sys"], {"src/app.py": None, "lib/main.py": SYS}),
    "move over a file": ([UPDATE, "*** Move to: obsolete.txt"], {"src/app.py": None, "obsolete.txt": APP}),
    "move to its own path": ([UPDATE, "*** Move to: src/app.py", "@@", "-import os", "+import sys"], {"src/app.py": SYS}),
    "move to a spelling of its path": ([UPDATE, "*** Move to: ./src/../src/app.py", "-import os", "+import sys"], {"src/app.py": SYS}),
    "lines are only added": ([UPDATE, "@@", "+# end", "*** Update File: dos.txt", "@@", "+d"], {"src/app.py": f"{APP}# end\n", "dos.txt": "a\r\nb \r\nc\r\nd"}),
    "later operations see earlier ones": (
        ["*** Add File: a", "+1", "+2", "*** Update File: a", "@@", "-1", "+one", "*** Update File: a", "*** Move to: b", "*** Update File: b", "@@",
         " one", "-2", "*** Delete File: obsolete.txt", "*** Add File: obsolete.txt", "+new"], {"b": "one\n", "obsolete.txt": "new\n"}),
    "an indented header ends an update": ([UPDATE, "*** Move to: b", " *** Delete File: obsolete.txt"], {"src/app.py": None, "b": APP, "obsolete.txt": None}),
}  # fmt: skip


@pytest.mark.parametrize("name", PATCHES)
def test_a_patch_changes_files_and_is_undone(apply, ws, tmp_path, name):
    lines, after = PATCHES[name]
    for path in ("src/app.py", "obsolete.txt", "dos.txt"):
        ws.read(path)
    before = snapshot(tmp_path)
    assert apply(*lines).success
    for path, text in after.items():
        assert ((tmp_path / path).read_bytes().decode() if (tmp_path / path).exists() else None) == text
    ws.undo()
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(("lines", "code", "said"), [
    (["*** Delete File: missing"], "not_found", "missing"), (["*** Update File: src/ap.py", "@@", "-import os"], "not_found", "src/app.py"),
    (["*** Delete File: src"], "not_a_file", 'The directory "src" is not empty'), (["*** Add File: src", "+x"], "not_a_file", ""),
    ([UPDATE, "@@", "-absent", "+b"], "no_match", ""), ([UPDATE, "*** Move to: src"], "not_a_file", ""),
    (["*** Update File: obsolete.txt", "*** Move to: src/app.py/x"], "not_a_directory", ""),
    (["*** Add File: src/app.py/x", "+a"], "not_a_directory", ""), (["*** Add File: ../x", "+a"], "outside_workspace", ""),
    (["*** Add File: .git/config", "+a"], "protected", ""), (["*** Frobnicate File: x"], "invalid_argument", ""),
    (["*** Delete File: obsolete.txt", "+a line"], "invalid_argument", ""), (["+a"], "invalid_argument", ""),
])  # fmt: skip
def test_a_failed_patch_says_that_nothing_was_changed(apply, tmp_path, lines, code, said):
    before = snapshot(tmp_path)
    first = (
        "*** Add File: new/a.txt", "+1", "*** Update File: dos.txt", "*** Move to: unix.txt", "@@", "-a",
        "+A",
    )  # fmt: skip
    failed = apply(*first, "*** Delete File: unix.txt", *lines)
    assert failed.error["code"] == code, failed.content
    assert said in failed.content
    assert failed.content.lower().count("nothing was changed") == 1
    assert "transaction" not in failed.content, "the model knows of none"
    assert snapshot(tmp_path) == before


def test_regression_a_failed_patch_names_what_it_could_not_take_back(ws, tmp_path):
    """It said that nothing was changed."""

    def permission(request):
        if request.paths == ("src/app.py",):
            return True
        (tmp_path / "src/app.py").write_text("theirs\n")
        return False

    tools = ws.view(policy=Policy(on_ask=permission)).tools(dialect="apply-patch")
    update = [UPDATE, "@@", "-import os", "+import sys", "*** Delete File: obsolete.txt"]
    failed = tools.call("apply_patch", {"input": patch(*update)})
    assert failed.error["code"] == "refused"
    assert 'Changed by others meanwhile, so not taken back: "src/app.py"' in failed.content
    assert "Nothing was changed" not in failed.content


@pytest.mark.parametrize(("text", "line", "told"), [
    ("bad", 1, "the first line of the patch must be '*** Begin Patch'"), ("", 1, "the first line"),
    ("*** Begin Patch\nbad", 2, "the last line of the patch must be '*** End Patch'"), ("*** Begin Patch", 1, "the last line"),
    (patch(), 2, "the patch changes no file"), (patch("*** Frobnicate File: foo"), 2, "'*** Frobnicate File: foo' is not the header of a file"),
    (patch(UPDATE), 3, "the update of 'src/app.py' is empty"), (patch(UPDATE, "@@", "nothing"), 4, "a line of a hunk begins with"),
    (patch(UPDATE, "-a", "b"), 4, "a hunk begins with '@@'"), (patch("*** Delete File: foo", "-a"), 3, "'-a' is not the header of a file"),
    (patch("*** Add File: foo", "+a", "b"), 4, "'b' is not the header of a file"), ("\n" * 500_001, 500_000, "the patch is too long here; send several"),
])  # fmt: skip
def test_a_malformed_patch_is_refused_with_its_line(send, tmp_path, text, line, told):
    before = snapshot(tmp_path)
    error = send(text).error
    assert error["code"] == "invalid_argument"
    assert error["message"].startswith(f"Invalid patch, line {line}: {told}")
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("overwrite", ["seen", "always", "never"])
@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize(("name", "lines", "after"), [
    ("kept.txt", ["*** Add File: kept.txt", "+new"], "new\n"),
    ("moved.txt", ["*** Update File: a.txt", "*** Move to: moved.txt"], "a\n"),
])  # fmt: skip
def test_regression_the_policy_decides_what_a_patch_may_replace(
    tmp_path, overwrite, read, name, lines, after
):
    """A patch replaced files that were never read."""
    put(tmp_path, {"a.txt": "a\n", name: "old\n"})
    with Workspace(tmp_path, policy=Policy(overwrite=overwrite)) as ws:
        if read:
            ws.read(name)
        result = ws.tools(dialect="apply-patch").call("apply_patch", {"input": patch(*lines)})
    may = overwrite == "always" or (overwrite == "seen" and read)
    assert result.success == may, result.content
    assert (tmp_path / name).read_text() == (after if may else "old\n")
    assert (tmp_path / "a.txt").exists() == (name == "kept.txt" or not may)


SPACES = [*map(chr, range(0x2002, 0x200B)), "\u00a0", "\u202f", "\u205f", "\u3000"]
F = "class A:\n    def f(self):\n        return 1\n"
FILE = f"{F}\n{F.replace('A', 'B')}"
ONE, TWO = "        return 1", "        return 2"
TARGET = (
    "class Target:\n    def first():\n        a\n\n    def second():\n        b\n\n"
    "class Other:\n    def first():\n        a\n\n    def second():\n        b\n"
)
IN_OTHER = TARGET.replace(
    "class Other:\n    def first():\n        a", "class Other:\n    def first():\n        A"
)
IN_TARGET, PASS = "@@ class Target:", ["@@", '-    print("Hi")', "+    pass"]
ASTERISKS = [" *** x", " ***", " *** Addendum: x", "  *** Begin Patch"]
# A file, the lines of its update, the file after it, and the tolerant step by which its only hunk was found.
HUNKS = {
    "below anchors": [
        (FILE, ["@@ class B:", f"-{ONE}", f"+{TWO}"], FILE[:-2] + "2\n"),
        (FILE, ["@@ class B:", "@@     def f(self):", f"-{ONE}"], FILE.removesuffix(f"{ONE}\n")),
        (FILE, ["@@class B:", "     def f(self):", f"-{ONE}", f"+{TWO}"], FILE[:-2] + "2\n"),
        (FILE, ["@@ class A:", "+    x = 1"], FILE.replace("A:\n", "A:\n    x = 1\n", 1)),
        (FILE, ["@@", "-class A:", "+class C:", "@@", " class B:", "+    x = 1"], FILE.replace("A:", "C:").replace("B:\n", "B:\n    x = 1\n")),
        (APP, ["@@ def leave():", "+    wave()"], APP.replace("leave():\n", "leave():\n    wave()\n")), ("x\na\nx\n", ["@@ a", "-x", "+y"], "x\na\ny\n"),
        (TARGET, ["@@ class Other:", "@@     def first():", "-        a", "+        A"], IN_OTHER),
        (TARGET, ["@@     def second():", "-        b", "+        B"], TARGET.replace("b\n", "B\n", 1)),  # the first line that equals it
    ],
    "anchors of the previous hunk again": [
        (TARGET, [IN_TARGET, "@@     def first():", "-        a", "+        A", IN_TARGET, "@@     def second():", "-        b", "+        B"],
         TARGET.replace("a\n", "A\n", 1).replace("b\n", "B\n", 1)),
        (TARGET, [IN_TARGET, "-    def first():", "+    def one():", IN_TARGET, "-    def second():", "+    def two():"],
         TARGET.replace("first", "one", 1).replace("second", "two", 1)),
    ],
    "at the end": [
        (FILE, ["@@", f"-{ONE}", f"+{TWO}", "*** End of File"], FILE[:-2] + "2\n"), (FILE, ["@@", "+# the end"], FILE + "# the end\n"),
        (APP, ["@@", '-    print("Bye")', "+    pass", "*** End of File"], APP.replace('print("Bye")', "pass")),
        ("a\n", ["@@", "-a", "*** End of File", "@@", "+b"], "b\n"), (APP, ["@@", "+# end", "@@", "-import os", "+import sys"], SYS + "# end\n"),
    ],
    "exact": [
        ("import foo\n", [" import foo", "+bar"], "import foo\nbar\n"), ("a\n", ["@@ -1,2 +1,2 @@", "-a"], ""), ("a\n\nb\n", ["@@", " a", "", "-b"], "a\n\n"),
        ("a\n\nb\n", ["@@", "-a", "", "@@ b", "+c"], "\nb\nc\n"), ("", ["@@", "+c"], "c\n"), ("a\n", ["@@", "-a", ""], ""),
        ("  def f():\n  x\n", ["@@ def f():", "-  x"], "  def f():\n"), ("a\r\nb \r\nc", ["@@", " a", " b", "-c", "+d"], "a\r\nb \r\nd", "trailing whitespace"),
        *((f"{line[1:]}\nb\n", [*begin, line, "-b", "+c"], f"{line[1:]}\nc\n") for line in ASTERISKS for begin in ([], ["@@"])),
        ("x\nb\n *** Delete File: g\n", [" x", "-b", "  *** Delete File: g"], "x\n *** Delete File: g\n"),
        (APP, [*PASS, "@@", '-    print("Bye")', "+    wave()"], APP.replace('print("Hi")', "pass").replace('print("Bye")', "wave()")),
        (APP, [*PASS, "@@ def leave():", "+    wave()"], APP.replace('print("Hi")', "pass").replace("leave():\n", "leave():\n    wave()\n")),
    ],
    "nearly equal": [
        *((f"a{space}b\nc\n", ["@@", " a b", "-c", "+d"], f"a{space}b\nd\n", "typography") for space in SPACES),
        (F, ["@@", " def f(self):", "-    return 1", "+    return 2"], F.replace("1", "2"), "indentation"),
        ("say(\u201chi\u201d)\nx\n", ["@@", ' say("hi")', "-x", "+y"], "say(\u201chi\u201d)\ny\n", "typography"),
        ('say("hi") \t\nx\n', ["@@", ' say("hi")', "-x", "+y"], 'say("hi") \t\ny\n', "trailing whitespace"),
        ("a  \nb\n", ["@@", " a", "-b", "+c"], "a  \nc\n", "trailing whitespace"),
        ("  if x:\n    y()\n", ["@@", " if x:", "-  y()", "+  z()"], "  if x:\n    z()\n", "indentation"),
        ("a \u2013 b\u2011c\n", ["@@", "-a - b-c", "+a"], "a\n", "typography"),
    ],
    "- names one of two nearly equal lines": [
        ("same\r\nsame\n", ["@@", "-same", " same"], "same\n"), ("same\r\nsame\n", ["@@", " same", "-same"], "same\r\n"),
        ("a\nx \nx\nb", ["@@", " a", "-x ", " x", " b"], "a\nx\nb"), ("a\nx \nx\nb", ["@@", " a", "-x", " x", " b"], "a\nx\nb", "trailing whitespace"),
        ("a\nx\nx \nb", ["@@", " a", " x", "-x", " b"], "a\nx\nb", "trailing whitespace"), ("  x\r\n  x\n", ["@@", "-x", " x"], "  x\n", "indentation"),
    ],
    "the last old line lacks trailing blanks": [
        ("a\nb  \n", ["@@", " a", "-b", "+c"], "a\nc  \n", "trailing whitespace"), ("a\nb\t", ["@@", "-a", " b"], "b\t", "trailing whitespace"),
        ("a\nb  \nc\n", ["@@", " a", "+x", " b"], "a\nx\nb  \nc\n", "trailing whitespace"),
    ],
    "a missing final newline stays missing": [
        *(("a\nb", ["@@", *hunks], after) for hunks, after in (
            ([" a", "-b", "+c"], "a\nc"), ([" a", "-b"], "a"), ([" b", "+c"], "a\nb\nc"), (["+c"], "a\nb\nc"), ([" a", "+x", "@@", "-b"], "a\nx"),
            (["-a", "+c", "@@", "-b"], "c"), (["-a", "@@", "-b"], ""), (["-b", "@@", "+c"], "a\nc"), (["+c", "@@", "-b"], "a\nc"),
            (["+c", "@@", "-a", "@@", "+d"], "b\nc\nd"))),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("before", "lines", "after", "via"),
    [(*row[:3], row[3:]) for rows in HUNKS.values() for row in rows],
    ids=[f"{name} {number}" for name, rows in HUNKS.items() for number in range(len(rows))],
)
def test_hunks_are_placed_and_other_lines_stay(apply, tmp_path, before, lines, after, via):
    (tmp_path / "f").write_bytes(before.encode())
    result = apply("*** Update File: f", *lines)
    assert result.success, result.content
    assert (tmp_path / "f").read_bytes().decode() == after
    assert re.findall(r"\[f: hunk 1 was found by (.*)\]", result.content) == [*via]


TOLERANT = "    if x:\n        y\n\n    if x:\n        y\n"
TWICE = "def f():\n    x = 1\n    y = 1\n\ndef f():\n    x = 1\n    y = 1\n"


@pytest.mark.parametrize(("before", "lines", "code", "told"), [
    *((APP, [*first, "+    wave()", *PASS], "no_match", "Hunk 2") for first in (["@@", '-    print("Bye")'], ["@@ def leave():"])),  # above the first
    (APP, ["@@ def stay():", "+    wave()"], "no_match", "the line \"def stay():\" after '@@' is not in the file"),
    (APP, ["@@ def leave", "+    wave()"], "no_match", "after '@@'"),  # a part of a line is not a line
    (APP, ["@@", "-import os", "+x", "*** End of File"], "no_match", "at the end"), (FILE, ["@@", "-lass A:"], "no_match", "are not in the file"),
    (FILE, ["@@", "-class B:", "@@", "-class A:"], "no_match", "Hunk 2"), ("if a:\n    b\n        c\n", ["@@", " b", "-c", "+d"], "no_match", ""),  # two shifts
    ("x\na\nx\n", ["@@", "-x", "+y"], "ambiguous", "1|x"), ("x\na\nx\n", ["@@", "-x", "+y"], "ambiguous", "3|x"),
    (FILE, ["@@", f"-{ONE}", f"+{TWO}"], "ambiguous", "with '@@'"),
    (TOLERANT, ["@@", "-if x:", "-    y", "+z"], "ambiguous", "its lines occur at several places"),
    (TWICE, [line for name in "xy" for line in ("@@ def f():", f"-    {name} = 1", f"+    {name} = 2")], "ambiguous", ""),
])  # fmt: skip
def test_lines_that_do_not_name_one_place_are_refused(apply, tmp_path, before, lines, code, told):
    (tmp_path / "f").write_text(before)
    refused = apply("*** Update File: f", *lines)
    assert refused.error["code"] == code
    assert told in refused.content
    assert (tmp_path / "f").read_text() == before


@pytest.mark.parametrize(("first", "where"), [("+added", ""), ("-a", " below the previous hunk")])
def test_regression_a_miss_is_below_the_previous_hunk_only_if_the_search_began_there(
    apply, tmp_path, first, where
):
    (tmp_path / "f").write_text("a\nb\n")
    error = apply("*** Update File: f", "@@", first, "@@", "-no").error
    assert error["message"] == f'Hunk 2 of "f": its lines are not in the file{where}.'


def test_the_answer(apply):
    result = apply(
        "*** Add File: a", "+1", "*** Update File: dos.txt", "*** Move to: b", "*** Delete File: obsolete.txt"
    )
    assert result.content == "Success. Updated the following files:\nA a\nM b\nD obsolete.txt"
    assert result.data["files"][1] == {"kind": "update", "path": "dos.txt", "to": "b"}
    assert result.short_result == "Patched 3 files"


LINES = st.lists(st.sampled_from(["a", "b", "  a", "", "c", "é"]), min_size=1, max_size=12)


@law(50, 1000, before=LINES, after=LINES, context=st.integers(0, 4), ended=st.booleans())
def test_a_patch_that_difflib_makes_gives_its_text_or_is_refused(
    apply, tmp_path, before, after, context, ended
):
    hunks = []
    for group in difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(context):
        hunks.append(["@@"])
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                hunks[-1] += [f" {line}" for line in before[i1:i2]]
            else:
                hunks[-1] += [f"-{line}" for line in before[i1:i2]] + [f"+{line}" for line in after[j1:j2]]
    # A hunk with only added lines does not tell its place.
    assume(hunks and all(any(line[0] != "+" for line in hunk[1:]) for hunk in hunks))
    # Without a final line end, there is no blank last line.
    assume(ended or (before[-1] and after[-1]))
    (tmp_path / "f").write_text("\n".join(before) + "\n" * ended)
    result = apply("*** Update File: f", *(line for hunk in hunks for line in hunk))
    if result.success or result.error["code"] != "ambiguous":
        assert result.success, result.content
        assert (tmp_path / "f").read_text() == "\n".join(after) + "\n" * ended


@pytest.mark.full
def test_a_patch_of_many_hunks_is_read_in_linear_time():
    count = 60_000
    started = time.process_time()
    (operation,) = read_patch(patch(UPDATE, *(f"@@\n-a{number}\n+b{number}" for number in range(count))))
    assert len(operation.hunks) == count
    assert time.process_time() - started < 10, "copying the rest of the patch for each hunk takes minutes"
