"""`apply-patch`: each statement that `docs/reference/dialects/apply-patch.md` lists."""

import pytest

from agentfs import Policy, Workspace
from tests.kit import put

APP = 'import os\n\n\ndef greet():\n    print("Hi")\n\n\ndef leave():\n    print("Bye")\n'


@pytest.fixture
def ws(tmp_path, ws):
    put(tmp_path, {"src/app.py": APP, "obsolete.txt": "old\n", "dos.txt": b"a\r\nb \r\nc"})
    return ws


@pytest.fixture
def apply(ws):
    tools = ws.tools(dialect="apply-patch")

    def run(*lines: str):
        return tools.call("apply_patch", {"input": "\n".join(["*** Begin Patch", *lines, "*** End Patch"])})

    return run


def test_the_tool_in_both_shapes(ws):
    (tool,) = ws.tools(dialect="apply-patch").schemas("openai")
    assert tool["function"]["name"] == "apply_patch"
    assert list(tool["function"]["parameters"]["properties"]) == ["input"]
    assert tool["function"]["parameters"]["required"] == ["input"]
    sent = {"type": "custom_tool_call", "name": "apply_patch", "call_id": "c",
            "input": "*** Begin Patch\n*** Delete File: obsolete.txt\n*** End Patch"}  # fmt: skip
    reply = ws.tools(dialect="apply-patch").answer([sent])[0]
    assert reply["type"] == "custom_tool_call_output"
    assert "D obsolete.txt" in str(reply)


def test_the_parameter_of_other_products_is_taken(ws):
    patch = "*** Begin Patch\n*** Delete File: obsolete.txt\n*** End Patch"
    tools = ws.tools(dialect="apply-patch")
    assert [*tools.schemas("anthropic")[0]["input_schema"]["properties"]] == ["input"]
    assert tools.call("apply_patch", {"patch": patch}).success


@pytest.mark.parametrize("lines", [
    ["*** Delete File: missing"], ["*** Delete File: src"], ["*** Update File: missing", "@@", "-a", "+b"],
    ["*** Update File: src/app.py", "@@", "-a", "+b"], ["*** Update File: src/app.py", "*** Move to: src"],
    ["*** Update File: obsolete.txt", "*** Move to: src/app.py/x"], ["*** Add File: src/app.py/x", "+a"],
    ["*** Add File: ../x", "+a"], ["*** Add File: .git/config", "+a"], ["*** Frobnicate File: x"], ["+a"],
])  # fmt: skip
def test_a_failed_patch_says_that_nothing_was_changed(apply, tmp_path, lines):
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    failed = apply("*** Delete File: dos.txt", *lines)
    assert not failed.success
    assert failed.content.lower().count("nothing was changed") == 1
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("around", [
    "<<'EOF'\n {}\nEOF\n", "\n \n{}\n\n", "```\n{}\n```", "```patch\n{}\n```\n",
    "cat <<'EOF' | apply_patch\n{}\nEOF", "apply_patch <<'PATCH'\n{}\nPATCH",
])  # fmt: skip
def test_the_envelope(ws, around):
    tools = ws.tools(dialect="apply-patch")
    patch = "*** Begin Patch\n*** Add File: new\n+1\n*** End Patch"
    for wrong in (around.format(patch.replace("End Patch", "")), "+1"):
        assert tools.call("apply_patch", {"input": wrong}).error["code"] == "invalid_argument"
    assert tools.call("apply_patch", {"input": around.format(patch)}).success


def test_add_a_file(apply, tmp_path):
    assert apply("*** Add File: new/hello.txt", "+Hello world", "+", "*** Add File: empty").success
    assert (tmp_path / "new/hello.txt").read_text() == "Hello world\n\n"
    assert (tmp_path / "empty").read_text() == ""


def test_add_over_a_file(apply, ws, tmp_path):
    ws.read("obsolete.txt")
    assert apply("*** Add File: obsolete.txt", "+new").success
    assert (tmp_path / "obsolete.txt").read_text() == "new\n"
    ws.undo()
    assert (tmp_path / "obsolete.txt").read_text() == "old\n", "the journal keeps the old file"
    refused = apply("*** Delete File: src")
    assert refused.error["message"].startswith('The directory "src" is not empty')
    assert "transaction" not in refused.content, "the model knows of none"


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
        patch = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
        result = ws.tools(dialect="apply-patch").call("apply_patch", {"input": patch})
    may = overwrite == "always" or (overwrite == "seen" and read)
    assert result.success == may, result.content
    assert (tmp_path / name).read_text() == (after if may else "old\n")
    assert (tmp_path / "a.txt").exists() == (name == "kept.txt" or not may)


def test_delete_a_file(apply, ws, tmp_path):
    assert apply("*** Delete File: obsolete.txt").success
    assert not (tmp_path / "obsolete.txt").exists()
    ws.undo()
    assert (tmp_path / "obsolete.txt").read_text() == "old\n", "the journal keeps it"
    assert not apply("*** Delete File: obsolete.txt", "+a line").success, "nothing follows"


def test_update_a_file(apply, tmp_path):
    assert apply(
        "*** Update File: src/app.py", "-import os", "+import sys", "", " ",
        "@@", " def greet():", '-    print("Hi")', '+    print("Hello, world!")',
    ).success  # fmt: skip
    assert (tmp_path / "src/app.py").read_text() == APP.replace("os", "sys").replace("Hi", "Hello, world!")


@pytest.mark.parametrize("anchor", [(), ("@@ def leave():",)])
def test_a_hunk_is_not_found_above_the_previous_one(apply, tmp_path, anchor):
    second = ("@@", '-    print("Hi")', "+    pass")
    lines = ("@@", '-    print("Bye")', "+    wave()") if not anchor else (*anchor, "+    wave()")
    refused = apply("*** Update File: src/app.py", *lines, *second)
    assert refused.error["code"] == "no_match"
    assert apply("*** Update File: src/app.py", *second, *lines).success, "from the top down"


def test_move_a_file(apply, ws, tmp_path):
    assert apply(
        "*** Update File: src/app.py", "*** Move to: lib/main.py", "@@", "-import os", "+import sys"
    ).success
    assert not (tmp_path / "src/app.py").exists()
    assert (tmp_path / "lib/main.py").read_text() == APP.replace("os", "sys")
    ws.read("obsolete.txt")
    assert apply("*** Update File: lib/main.py", "*** Move to: obsolete.txt").success
    assert (tmp_path / "obsolete.txt").read_text() == APP.replace("os", "sys")


def test_anchors(apply, tmp_path):
    assert apply("*** Update File: src/app.py", "@@ def leave():", "+    wave()").success
    assert 'def leave():\n    wave()\n    print("Bye")' in (tmp_path / "src/app.py").read_text()
    assert apply("*** Update File: src/app.py", "@@ def stay():", "+    wave()").error["code"] == "no_match"
    refused = apply("*** Update File: src/app.py", "@@ def leave", "+    wave()")
    assert refused.error["code"] == "no_match", "a part of a line is not a line"


def test_several_anchors_narrow_down_the_place(apply, tmp_path):
    (tmp_path / "f").write_text(TARGET)
    anchors = ("@@ class Other:", "@@     def first():")
    assert apply("*** Update File: f", *anchors, "-        a", "+        A").success
    first, last = TARGET.split("class Other:")
    assert (tmp_path / "f").read_text() == f"{first}class Other:{last.replace('a', 'A', 1)}"
    changed = (tmp_path / "f").read_text()
    assert apply("*** Update File: f", "@@     def second():", "-        b", "+        B").success
    assert (tmp_path / "f").read_text() == changed.replace("b\n", "B\n", 1), "the first line that equals it"


SPACES = [*map(chr, range(0x2002, 0x200B)), "\u00a0", "\u202f", "\u205f", "\u3000"]
F = "class A:\n    def f(self):\n        return 1\n"


@pytest.mark.parametrize(("before", "lines", "after"), [
    (APP, ["@@", '-    print("Bye")', "+    pass", "*** End of File"], APP.replace('print("Bye")', "pass")),
    (APP, ["@@", "-import os", "+x", "*** End of File"], None),
    ("x\na\nx\n", ["@@ a", "-x", "+y"], "x\na\ny\n"),
    *((f"a{space}b\nc\n", ["@@", " a b", "-c", "+d"], f"a{space}b\nd\n") for space in SPACES),
    (F, ["@@", " def f(self):", "-    return 1", "+    return 2"], F.replace("1", "2")),
    ("say(\u201chi\u201d)\nx\n", ["@@", ' say("hi")', "-x", "+y"], "say(\u201chi\u201d)\ny\n"),
    ('say("hi") \t\nx\n', ["@@", ' say("hi")', "-x", "+y"], 'say("hi") \t\ny\n'),
    # One shift for the whole hunk.
    ("if a:\n    b\n        c\n", ["@@", " b", "-c", "+d"], None),
    ("a\r\nb \r\nc", ["@@", " a", " b", "-c", "+d"], "a\r\nb \r\nd"),
])  # fmt: skip
def test_where_a_hunk_is_found(apply, tmp_path, before, lines, after):
    (tmp_path / "f").write_bytes(before.encode())
    result = apply("*** Update File: f", *lines)
    assert result.success is (after is not None)
    assert (tmp_path / "f").read_bytes().decode() == (before if after is None else after)
    if after is not None:
        exact = {line[1:] for line in lines if line[0] in " -"} <= {*before.splitlines()}
        assert ("[f: hunk 1 was found by " in result.content) is not exact
    assert before != F or result.content.endswith("[f: hunk 1 was found by indentation]")


def test_several_places_are_named(apply, tmp_path):
    (tmp_path / "twice").write_text("x\na\nx\n")
    refused = apply("*** Update File: twice", "@@", "-x", "+y")
    assert refused.error["code"] == "ambiguous"
    assert "1|x" in refused.content
    assert "3|x" in refused.content


def test_lines_are_only_added(apply, tmp_path):
    assert apply(
        "*** Update File: src/app.py", "@@", "+# end", "*** Update File: dos.txt", "@@", "+d"
    ).success
    assert (tmp_path / "src/app.py").read_text() == f"{APP}# end\n"
    assert (tmp_path / "dos.txt").read_bytes() == b"a\r\nb \r\nc\r\nd"


@pytest.mark.parametrize(("before", "hunk", "after"), [
    (b"same\r\nsame\n", ["-same", " same"], b"same\n"),
    (b"same\r\nsame\n", [" same", "-same"], b"same\r\n"),
    (b"a\nx \nx\nb", [" a", "-x ", " x", " b"], b"a\nx\nb"),
    (b"a\nx \nx\nb", [" a", "-x", " x", " b"], b"a\nx\nb"),  # found by its trailing white space
    (b"a\nx\nx \nb", [" a", " x", "-x", " b"], b"a\nx\nb"),
    (b"  x\r\n  x\n", ["-x", " x"], b"  x\n"),
])  # fmt: skip
def test_a_hunk_removes_the_named_one_of_two_nearly_equal_lines(apply, tmp_path, before, hunk, after):
    (tmp_path / "f").write_bytes(before)
    assert apply("*** Update File: f", "@@", *hunk).success
    assert (tmp_path / "f").read_bytes() == after


@pytest.mark.parametrize(("before", "hunk", "after"), [
    ("a\nb  \n", [" a", "-b", "+c"], "a\nc  \n"),
    ("a\nb  \nc\n", [" a", "+x", " b"], "a\nx\nb  \nc\n"),
    ("a\nb\t", ["-a", " b"], "b\t"),
])  # fmt: skip
def test_the_last_old_line_may_lack_trailing_blanks(apply, tmp_path, before, hunk, after):
    (tmp_path / "f").write_text(before)
    assert apply("*** Update File: f", "@@", *hunk).success
    assert (tmp_path / "f").read_text() == after


@pytest.mark.parametrize(("hunks", "after"), [
    ([" a", "+x", "@@", "-b"], "a\nx"),
    (["-a", "+c", "@@", "-b"], "c"),
    (["-a", "@@", "-b"], ""),
    (["-b", "@@", "+c"], "a\nc"),
    (["+c", "@@", "-b"], "a\nc"),
    (["+c", "@@", "-a", "@@", "+d"], "b\nc\nd"),
])  # fmt: skip
def test_a_missing_final_newline_stays_missing_after_several_hunks(apply, tmp_path, hunks, after):
    (tmp_path / "f").write_text("a\nb")
    result = apply("*** Update File: f", "@@", *hunks)
    assert (result.success, (tmp_path / "f").read_text()) == (True, after)


TARGET = (
    "class Target:\n    def first():\n        a\n\n    def second():\n        b\n\n"
    "class Other:\n    def first():\n        a\n\n    def second():\n        b\n"
)


def test_a_later_hunk_may_repeat_the_anchors_of_the_previous_one(apply, tmp_path):
    (tmp_path / "f").write_text(TARGET)
    assert apply(
        "*** Update File: f", "@@ class Target:", "@@     def first():", "-        a", "+        A",
        "@@ class Target:", "@@     def second():", "-        b", "+        B",
    ).success  # fmt: skip
    assert (tmp_path / "f").read_text() == TARGET.replace("a\n", "A\n", 1).replace("b\n", "B\n", 1)
    assert apply(
        "*** Update File: f", "@@ class Target:", "-    def first():", "+    def one():",
        "@@ class Target:", "-    def second():", "+    def two():",
    ).success  # fmt: skip
    changed = (tmp_path / "f").read_text()
    assert changed.index("def one()") < changed.index("def two()") < changed.index("class Other")


def test_a_repeated_anchor_that_could_mean_two_places_is_refused(apply, tmp_path):
    text = "def f():\n    x = 1\n    y = 1\n\ndef f():\n    x = 1\n    y = 1\n"
    (tmp_path / "f").write_text(text)
    hunks = [line for name in "xy" for line in ("@@ def f():", f"-    {name} = 1", f"+    {name} = 2")]
    assert apply("*** Update File: f", *hunks).error["code"] == "ambiguous"
    assert (tmp_path / "f").read_text() == text


def test_lines_added_at_the_end_do_not_move_the_place_of_the_next_hunk(apply, tmp_path):
    assert apply("*** Update File: src/app.py", "@@", "+# end", "@@", "-import os", "+import sys").success
    assert (tmp_path / "src/app.py").read_text() == APP.replace("os", "sys") + "# end\n"


@pytest.mark.parametrize("to", ["src/app.py", "./src/../src/app.py"])
def test_a_move_to_the_same_path_only_changes_the_file(apply, tmp_path, to):
    result = apply("*** Update File: src/app.py", f"*** Move to: {to}", "@@", "-import os", "+import sys")
    assert result.success, result.content
    assert (tmp_path / "src/app.py").read_text() == APP.replace("os", "sys")


def test_whole_or_not_at_all(apply, tmp_path, tree_of):
    before = tree_of()
    for last in (
        ("*** Delete File: missing",),
        ("*** Update File: src/app.py", "@@", "-absent", "+x"),
        ("*** Add File: ../outside", "+x"),
        ("*** Add File: src", "+x"),
    ):
        result = apply(
            "*** Add File: new/a.txt", "+1", "*** Delete File: obsolete.txt", "*** Update File: dos.txt",
            "*** Move to: unix.txt", "@@", "-a", "+A", *last,
        )  # fmt: skip
        assert not result.success
        assert tree_of() == before


def test_later_operations_of_a_patch_see_earlier_ones(apply, tmp_path):
    assert apply(
        "*** Add File: a", "+1", "+2", "*** Update File: a", "@@", "-1", "+one", "*** Update File: a",
        "*** Move to: b", "*** Update File: b", "@@", " one", "-2", "*** Delete File: obsolete.txt",
        "*** Add File: obsolete.txt", "+new",
    ).success  # fmt: skip
    assert (tmp_path / "b").read_text() == "one\n"
    assert (tmp_path / "obsolete.txt").read_text() == "new\n"


@pytest.mark.parametrize("lines", [
    (), ("*** Update File: src/app.py",), ("*** Frobnicate File: foo",),
    ("*** Update File: src/app.py", "@@", "x"),
])  # fmt: skip
def test_a_malformed_patch_is_refused(apply, tree_of, lines):
    before = tree_of()
    refused = apply(*lines)
    assert refused.error["code"] == "invalid_argument"
    assert refused.error["message"].startswith("Invalid patch, line ")
    assert tree_of() == before


def test_missing_files(apply):
    missing = apply("*** Update File: src/ap.py", "@@", "-import os")
    assert missing.error["code"] == "not_found"
    assert "src/app.py" in missing.content, "the nearest name"
    assert apply("*** Delete File: missing").error["code"] == "not_found"


def test_the_answer(apply):
    result = apply(
        "*** Add File: a", "+1", "*** Update File: dos.txt", "*** Move to: b", "*** Delete File: obsolete.txt"
    )
    assert result.content == "Success. Updated the following files:\nA a\nM b\nD obsolete.txt"
    assert result.data["files"][1] == {"kind": "update", "path": "dos.txt", "to": "b"}
    assert result.short_result == "Patched 3 files"
