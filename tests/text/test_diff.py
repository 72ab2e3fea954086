import subprocess
from pathlib import Path

import pytest
from hypothesis import strategies as st

from agentfs.text import compare
from agentfs.text import diff as differ
from agentfs.text.diff import unified_diff
from tests.conftest import law, needs

pytestmark = needs("git")

line = st.sampled_from(["a", "b", "c", "", "-x", "+++ y", " z", "é", "\x0c", "a\rb", "@@ -1 +1 @@"])
whole = st.builds(
    lambda lines, last: "".join(lines) + last,
    st.lists(st.tuples(line, st.sampled_from(["\n", "\n", "\r\n"])).map("".join), max_size=14),
    st.sampled_from(["", "", "tail"]),
).filter(lambda text: "\n" in text or "\r" not in text)


def applied(directory, before, diff, path="f"):
    """Return the bytes of the file after `git apply`, or None if it was deleted."""
    target = Path(directory, path)
    target.unlink(missing_ok=True)
    if before is not None:
        target.write_bytes(before.encode())
    command = ["git", "-c", "core.autocrlf=false", "apply", "--unidiff-zero", "--whitespace=nowarn", "-"]
    done = subprocess.run(command, input=diff.encode(), cwd=directory, capture_output=True, check=False)
    assert done.returncode == 0, (done.stderr.decode(), diff)
    return target.read_bytes().decode() if target.exists() else None


@law(20, 60, whole, whole, st.sampled_from([0, 1, 3]))
def test_git_makes_the_new_file_from_the_diff(tmp_path, before, after, context):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(differ, "DIFF_CONTEXT", context)
        diff = unified_diff(before, after, "f")
    if before == after:
        assert diff == ""
    else:
        assert applied(tmp_path, before, diff) == after


@law(40, 120, whole, whole, st.sampled_from([0, 2]), st.sampled_from([0, 10, 60]))
def test_a_diff_divided_at_unique_lines_can_be_applied(tmp_path, before, after, context, steps):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compare, "_MAX_STEPS", steps)
        patched.setattr(differ, "DIFF_CONTEXT", context)
        diff = unified_diff(before, after, "f")
    if before != after:
        assert applied(tmp_path, before, diff) == after


@law(15, 45, whole, whole)
@needs("patch")
def test_patch_makes_the_new_file_from_the_diff(tmp_path, before, after):
    if before == after or not before or not after:
        return
    target = Path(tmp_path, "f")
    target.write_bytes(before.encode())
    command = ["patch", "--binary", "-s", "-p1"]
    diff = unified_diff(before, after, "f")
    done = subprocess.run(command, input=diff.encode(), cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, (done.stdout, diff)
    assert target.read_bytes().decode() == after


@pytest.mark.parametrize("before", [None, "", "x\n"])
@pytest.mark.parametrize("after", [None, "", "a\r\nb", "a\n"])
def test_diffs_of_new_and_deleted_files_can_be_applied(tmp_path, before, after):
    diff = unified_diff(before, after, "f")
    if before == after:
        assert diff == ""
    else:
        assert applied(tmp_path, before, diff) == after


@pytest.mark.parametrize(
    "path", ["a b.txt", 'quo"te', "tab\there", "back\\slash", "é", "new\nline", "d/e f/g"]
)
def test_odd_names_are_written_so_that_git_reads_them(tmp_path, path):
    Path(tmp_path, path).parent.mkdir(parents=True, exist_ok=True)
    for before, after in (("a\n", "b\n"), (None, "b\n"), (None, ""), ("", None)):
        assert applied(tmp_path, before, unified_diff(before, after, path), path) == after


def test_a_diff_equals_that_of_git():
    before = "".join(f"{number}\n" for number in range(1, 21))
    after = before.replace("10\n", "ten\n").removesuffix("\n")
    assert unified_diff(before, after, "n") == (
        "--- a/n\n+++ b/n\n@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n"
        "@@ -17,4 +17,4 @@\n 17\n 18\n 19\n-20\n+20\n\\ No newline at end of file\n"
    )


def test_lines_that_end_at_a_lone_return_are_compared_one_by_one():
    assert unified_diff("a\rb\rc\r", "a\rB\rc\r", "f").endswith("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")


def test_a_change_of_only_the_line_ends_has_a_diff(tmp_path):
    for before, after in (("a\rb\r", "a\nb\n"), ("a\r\n", "a\n"), ("a\nb\n", "a\rb\r")):
        assert applied(tmp_path, before, unified_diff(before, after, "f")) == after


@pytest.mark.full
def test_a_large_file_changed_everywhere_is_diffed_in_time(tmp_path):
    before = "".join(f"line {number}\n" for number in range(100_000))
    everywhere = "".join(f"line {number}{'!' * (number % 2)}\n" for number in range(100_000))
    assert applied(tmp_path, before, unified_diff(before, everywhere, "f")) == everywhere
    repeated, other = "x\n" * 100_000 + "a\n", "x\n" * 50_000 + "y\n" + "x\n" * 50_001
    assert applied(tmp_path, repeated, unified_diff(repeated, other, "f")) == other
