"""`memory`: each statement of its page, beside the helper of the SDK, and many agents on one memory."""

# ruff: noqa: E501 - a row of a table is one line

import os
import random
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentfs import Limits, Policy, Workspace
from tests.dialects.answers import check_session, parameters
from tests.kit import put
from tests.tool_calls import accepts

NAME = "memory"
NOTES = "one\ntwo\nthree\none more\n"
TOP = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and node_modules:"


@pytest.fixture
def ws(tmp_path, ws):
    put(tmp_path, {"memories/notes.txt": NOTES, "outside.txt": "outside\n"})
    return ws


def speaker(ws):
    tools = ws.tools(dialect="memory")

    def do(command, path=None, **arguments):
        given = {"command": command, **({} if path is None else {"path": path}), **arguments}
        assert accepts(tools, NAME, given)
        return tools.call(NAME, given)

    return do


@pytest.fixture
def do(ws):
    return speaker(ws)


def failure(result):
    assert not result.success
    return result.content.split("\n")[0]


def test_the_tool_and_its_parameters(ws):
    (tool,) = ws.tools(dialect="memory").schemas("anthropic")
    properties = tool["input_schema"]["properties"]
    said = "command*, path, view_range array, file_text, old_str, new_str, insert_line integer, insert_text"
    assert parameters(ws, "memory") == {NAME: f"{said}, old_path, new_path"}
    assert properties["command"]["enum"] == ["view", "create", "str_replace", "insert", "delete", "rename"]


AT, PATH = "/memories/notes.txt", {"path": "/memories/notes.txt"}
HEAD = f"Here's the content of {AT} with line numbers:"
ROWS = [f"{number:>6}\t{line}" for number, line in enumerate(NOTES.splitlines(), 1)]
MISSING = "Error: The path /memories/nots.txt does not exist"
SNIPPET = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
TWICE = "No replacement was performed. Multiple occurrences of old_str `one` in lines: 1, 4. Please ensure it is unique"
ABSENT = f"No replacement was performed, old_str `two\ntree` did not appear verbatim in {AT}."
OUT_OF_RANGE = (
    "Error: Invalid `insert_line` parameter: {}. It should be within the range of lines of the file: [0, 4]"
)
SECRETS = [
    ("view", {"path": "/memories/id_rsa"}), ("str_replace", {"path": "/memories/id_rsa", "old_str": "secret", "new_str": "x"}),
    ("create", {"path": "/memories/.env", "file_text": "x"}), ("delete", {"path": "/memories/id_rsa"}),
    ("rename", {"old_path": AT, "new_path": "/memories/.env"}), ("rename", {"old_path": "/memories/id_rsa", "new_path": "/memories/key.txt"}),
]  # fmt: skip
# Files, calls with their answers, and the files after them.
SESSIONS = {
    "view a directory": ({
        "memories/deep/er/f.txt": "x" * 1500, "memories/deep/er/est/g.txt": "x" * 36, "memories/a-first": b"", "memories/.gitignore": "*.log\n",
        "memories/ignored.log": b"x" * 2048, "memories/node_modules/m.js": "x"}, [
        ("view", {"path": "/memories"}, {"content": "\n".join([
            TOP.format("/memories"), "3.5K\t/memories", "0B\t/memories/a-first", "1.5K\t/memories/deep/", "1.5K\t/memories/deep/er/",
            "2K\t/memories/ignored.log", f"{len(NOTES)}B\t{AT}"])}),
        ("view", {"path": "/memories/deep/"}, {"content": "\n".join([
            TOP.format("/memories/deep"), "1.5K\t/memories/deep", "1.5K\t/memories/deep/er/", "36B\t/memories/deep/er/est/",
            "1.5K\t/memories/deep/er/f.txt"])})], {}),
    "view a file": ({"memories/x": b"\x1b[2J\n", "memories/big": b"\n" * 1_000_000}, [
        *(("view", {**PATH, "view_range": asked}, {"content": "\n".join([HEAD, *shown])}) for asked, shown in (
            ([1, 4], ROWS), ([2, 3], ROWS[1:3]), ([3, -1], ROWS[2:]))),
        ("view", {"path": "memories/notes.txt/"}, {"content~": "\n" + "\n".join(ROWS)}),
        *(("view", {**PATH, "view_range": wrong}, {"error/code": "invalid_argument"}) for wrong in ([9, 12], [3, 2], [0, 1], [1])),
        ("view", {"path": "/memories/x"}, {"content~": "\n     1\t⟦U+001B⟧[2J"}),
        ("view", {"path": "/memories/big"}, {"content": "File /memories/big exceeds maximum line limit of 999,999 lines."})], {}),
    "a path that does not exist": ({}, [
        ("view", {"path": "/memories/nots.txt"}, {
            "content^": f"{MISSING.removeprefix('Error: ')}. Please provide a valid path.\n", "content~": "memories/notes.txt"}),
        ("str_replace", {"path": "/memories/nots.txt", "old_str": "a", "new_str": "b"}, {"content^": f"{MISSING}. Please provide a valid path."}),
        *((command, given, {"content^": MISSING, "content!": "Please", "error/code": "not_found"}) for command, given in (
            ("insert", {"path": "/memories/nots.txt", "insert_line": 0, "insert_text": "a"}), ("delete", {"path": "/memories/nots.txt"}),
            ("rename", {"old_path": "/memories/nots.txt", "new_path": "/memories/b"})))], {}),
    "create": ({}, [
        ("create", {"path": "/memories/new/a.txt", "file_text": "text\n"}, {"content": "File created successfully at: /memories/new/a.txt"}),
        *(("create", {"path": path, "file_text": "x"}, {"content^": f"Error: File {path} already exists"}) for path in (AT, "/memories/new"))],
        {"memories/new/a.txt": "text\n", "memories/notes.txt": NOTES}),
    "str_replace": ({}, [
        ("str_replace", {**PATH, "old_str": "two\ntree", "new_str": "2"}, {"content^": ABSENT, "content~": "\n2|two"}),
        ("str_replace", {**PATH, "old_str": "one", "new_str": "1"}, {"content^": f"{TWICE}\n"}),
        ("str_replace", {"path": "/memories", "old_str": "a", "new_str": "b"}, {
            "content^": "Error: The path /memories does not exist. Please provide a valid path."}),
        ("str_replace", {**PATH, "old_str": "", "new_str": "b"}, {"error/code": "invalid_argument"}),
        ("str_replace", {**PATH, "old_str": "two", "new_str": "two"}, {"error/code": "no_change"}),
        ("str_replace", {**PATH, "old_str": "three", "new_str": "3\n4"}, {
            "content": f"{SNIPPET}     1\tone\n     2\ttwo\n     3\t3\n     4\t4\n     5\tone more"}),
        ("str_replace", {**PATH, "old_str": "3\n"}, {"success": True})],  # new_str may be left out
        {"memories/notes.txt": "one\ntwo\n4\none more\n"}),
    "regression_a_failed_str_replace_says_what_to_do_next": ({}, [
        ("str_replace", {**PATH, "old_str": "nothing like it", "new_str": "x"}, {"content~": f'memory(command="view", path="{AT}")'}),
        ("str_replace", {**PATH, "old_str": "one", "new_str": "1"}, {"content~": "Add lines before or after it to old_str (and to new_str)."})], {}),
    "CRLF is kept": ({"memories/w": b"a\r\nb\r\n"}, [
        ("str_replace", {"path": "/memories/w", "old_str": "a\r\nb", "new_str": "c\nd"}, {"success": True}),
        ("insert", {"path": "/memories/w", "insert_line": 1, "insert_text": "e"}, {"success": True})], {"memories/w": b"c\r\ne\r\nd\r\n"}),
    "insert": ({}, [
        *(("insert", {**PATH, "insert_line": line, "insert_text": "x"}, {"content": OUT_OF_RANGE.format(line)}) for line in (-1, 5)),
        ("insert", {"path": "/memories", "insert_line": 0, "insert_text": "x"}, {"content^": "Error: The path /memories does not exist"}),
        *(("insert", {**PATH, "insert_line": line, "insert_text": text}, {"content": f"The file {AT} has been edited."}) for line, text in (
            (0, "zero\n\n"), (5, "last")))], {"memories/notes.txt": f"zero\n{NOTES}last\n"}),
    "delete": ({"memories/d/e/f": ""}, [
        ("delete", {"path": "/memories/d"}, {"content": "Successfully deleted /memories/d"}), ("delete", PATH, {"success": True}),
        ("delete", {"path": "/memories"}, {"content": "Cannot delete the /memories directory itself"}),
        ("view", {"path": "/memories"}, {"content": f"{TOP.format('/memories')}\n0B\t/memories"})], {}),
    "rename": ({"memories/d/f": ""}, [
        ("rename", {"old_path": "/memories/d", "new_path": "/memories/new/place"}, {"content": "Successfully renamed /memories/d to /memories/new/place"}),
        ("rename", {"old_path": "/memories/new", "new_path": AT}, {"content^": f"Error: The destination {AT} already exists"}),
        *(("rename", {"old_path": old, "new_path": new}, {"error/code": "invalid_argument"}) for old, new in (
            ("/memories", "/memories/x"), ("/memories/new", "/memories/new/er")))], {"memories/new/place/f": ""}),
    "a missing parameter": ({}, [
        *((command, {}, {"content": f"Parameter `{missing}` is required for command: {command}"}) for command, missing in (
            ("view", "path"), ("create", "path"), ("rename", "old_path"))),
        ("insert", {**PATH, "insert_text": "x"}, {"content~": "`insert_line`"})], {}),
    "secrets are refused": ({"memories/id_rsa": "secret\n"}, [
        (command, given, {"error/code": "protected", "content!": "secret\n"}) for command, given in SECRETS], {"memories/id_rsa": "secret\n"}),
}  # fmt: skip


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions(do, tmp_path, name):
    check_session(do, tmp_path, *SESSIONS[name])


def test_a_memory_that_does_not_exist_yet_is_empty(tmp_path):
    with Workspace(tmp_path) as ws:
        assert speaker(ws)("view", "/memories").content == f"{TOP.format('/memories')}\n0B\t/memories"
        assert os.listdir(tmp_path) == []


def test_a_long_file_is_viewed_by_pages(tmp_path):
    with Workspace(tmp_path, limits=Limits(read_lines=2)) as ws:
        ws.write("memories/notes.txt", NOTES)
        *_, last = speaker(ws)("view", "/memories/notes.txt").content.split("\n")
        assert last == (
            '[lines 1-2 of 4; more: memory(command="view", path="/memories/notes.txt", view_range=[3, -1])]'
        )


@pytest.mark.parametrize("spelling", ["", "/", "/.", "/sub/..", "/./"])
def test_regression_no_command_makes_removes_or_renames_the_directory_of_all_notes(tmp_path, spelling):
    """`create` of `/memories` made a file, and `delete` of `/memories/.` named an internal temporary."""
    with Workspace(tmp_path) as ws:
        do, top = speaker(ws), f"/memories{spelling}"
        made = do("create", top, file_text="a note")
        assert failure(made) == f"Error: File {top} already exists"
        assert os.listdir(tmp_path) == []
        assert do("create", "/memories/a.txt", file_text="a").success
        for refused in (
            do("create", top, file_text="a note"), do("delete", top),
            do("rename", old_path=top, new_path="/memories/b"),
        ):  # fmt: skip
            assert not refused.success
            assert ".agentfs" not in refused.content
        assert do("delete", top).content == "Cannot delete the /memories directory itself"
        assert os.listdir(tmp_path / "memories") == ["a.txt"]


def test_no_policy_makes_create_replace_a_file(tmp_path):
    with Workspace(tmp_path, policy=Policy(overwrite="always")) as ws:
        do = speaker(ws)
        assert do("create", "/memories/a", file_text="a").success
        assert do("create", "/memories/a", file_text="b").error["code"] == "already_exists"


ESCAPES = ["/memories/../outside.txt", "/memories/link/secret.txt", "/memories/to-root/outside.txt"]


@pytest.mark.parametrize(
    "path", [*ESCAPES, "/outside.txt", "/memories-2", "outside.txt", "/memories/..", "/etc/passwd"]
)
def test_nothing_outside_is_reached(do, tmp_path, path):
    put(tmp_path, {"elsewhere/secret.txt": "secret\n"})
    (tmp_path / "memories/link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "memories/to-root").symlink_to(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    said = f"Path must start with /memories, got: {path}"
    if path.startswith("/memories/"):
        said = f"Path {path} would escape /memories directory"
    for result in (
        do("view", path), do("create", path, file_text="x"),
        do("str_replace", path, old_str="secret", new_str="x"),
        do("insert", path, insert_line=0, insert_text="x"), do("delete", path),
        do("rename", old_path=path, new_path="/memories/y"),
        do("rename", old_path="/memories/notes.txt", new_path=path),
    ):  # fmt: skip
        assert failure(result) == said
        assert result.error["code"] == "outside_workspace"
    assert sorted(tmp_path.rglob("*")) == before


def test_rules_and_limits_hold(tmp_path):
    policy = Policy(deny=["change(memories/facts/**)"], on_ask=lambda request: request.method != "delete")
    with Workspace(tmp_path, policy=policy, limits=Limits(file_bytes=1000)) as ws:
        do = speaker(ws)
        assert do("create", "/memories/facts/a", file_text="x").error["code"] == "refused"
        assert do("create", "/memories/a", file_text="x").success
        assert do("delete", "/memories/a").error["code"] == "refused"
        assert do("create", "/memories/b", file_text="x" * 1001).error["code"] == "too_large"


def test_each_change_is_undone_and_the_history_says_who_made_it(tmp_path):
    said = []
    with (
        Workspace(tmp_path, on_event=lambda event: said.append(("first", event))) as first,
        Workspace(tmp_path, on_event=lambda event: said.append(("second", event))) as second,
    ):
        speaker(first)("create", "/memories/plan.txt", file_text="one\ntwo\n")
        speaker(second)("str_replace", "/memories/plan.txt", old_str="two", new_str="2")
        speaker(first)("insert", "/memories/plan.txt", insert_line=0, insert_text="zero")
        mine, theirs = (each.changes().patch.decode() for each in (first, second))
        assert "+zero" in mine
        assert "-two\n+2" in theirs
        first.undo()
        assert (tmp_path / "memories/plan.txt").read_text() == "one\n2\n"
        second.undo()
        assert (tmp_path / "memories/plan.txt").read_text() == "one\ntwo\n"
        first.undo()
        assert not (tmp_path / "memories").exists()
    done = [(who, event) for who, event in said if event.kind == "finished" and event.called_as]
    written = [(who, event.tool, event.outcome.file_path) for who, event in done]
    assert written == [(who, "memory", "memories/plan.txt") for who in ("first", "second", "first")]


# Ours beside the helper of the SDK.

NAMES = [
    "a.txt", "b.md", "deep", "deep/c.txt", "deep/er", "deep/er/d.txt", "e", ".hidden", "node_modules",
    "../out",
]  # fmt: skip
WORDS = ["one", "two", "three", "on", "e", "one two", "two\nthree", "x" * 150]


def commands(chance, count):
    """Yield random commands on few names, so that most of them meet a file."""

    def path():
        return "/memories" + chance.choice(["", "/x", *(f"/{name}" for name in NAMES * 3)])

    acts = ["view", "create", "str_replace", "insert"] * 4 + ["delete", "rename"]
    for _ in range(count):
        command, given = chance.choice(acts), {"path": path()}
        if command == "view" and chance.random() < 0.3:
            first = chance.randrange(1, 4)
            given["view_range"] = [first, chance.choice([-1, first, first + 1, 9])]
        elif command == "create":
            lines = [(chance.choice(WORDS[:6]), chance.randrange(4)) for _ in range(chance.randrange(9))]
            given["file_text"] = "".join(f"{word} {number}\n" for word, number in lines)
        elif command == "str_replace":
            given |= {"old_str": chance.choice(WORDS), "new_str": chance.choice([*WORDS[:6], ""])}
        elif command == "insert":
            given["insert_line"] = chance.randrange(-1, 6)
            given["insert_text"] = chance.choice([*WORDS, "a\nb\n\n", ""])
        elif command == "rename":
            given = {"old_path": path(), "new_path": path()}
        yield command, given


def shape(command, text):
    """Return a text without what is listed as another size, another entry or one more line."""
    if TOP.format("x").partition(" in ")[0] in text:
        head, top, *lines = text.split("\n")
        lines = [line for line in lines if "/node_modules" not in line]
        unsized = [re.sub(r"^\S+", "", line) if line.endswith("/") else line for line in lines]
        return [head, top.partition("\t")[2], *unsized]
    return re.sub(r"\n +\d+\t$", "", text) if command in {"view", "str_replace"} else text


# What the helper says, and what the contract says there; for the commands that are named.
WORDING = (
    ("excluding hidden items:", "excluding hidden items and node_modules:", "view"),
    (r"is not a file\.$", "does not exist. Please provide a valid path.", "str_replace insert"),
    (r"\. Please provide a valid path\.$", "", "insert"),
    (r"within the range \[(.*)\]\.$", r"within the range of lines of the file: [\1]", "insert"),
    (r"^(The path|File(?= /)|The destination|Invalid)", r"Error: \1", "create str_replace insert delete rename"),
)  # fmt: skip


def as_documented(command, text):
    for theirs, ours, where in WORDING:
        text = re.sub(theirs, ours, text) if command in where.split() else text
    return text


def listed(given, ours, theirs):
    """Return the listed difference of two answers, or None."""
    if isinstance(theirs, OSError):
        return "an error of Python" if not ours.success else None
    if given.get("old_str") == given.get("new_str", "-") and ours.error and ours.error["code"] == "no_change":
        return "nothing to change"
    if "view_range" in given and not ours.success and re.search(r"numbers:\n( +\d+\t)?$|^Here're", theirs):
        return "lines past the end, or of a directory"
    refused = ours.content.startswith(("Error: The path", "The directory"))
    if refused and re.search("destination|escape", theirs):
        return "the old path first"
    return None


def tree(top):
    paths = sorted(top.rglob("*"))
    return {each.relative_to(top): None if each.is_dir() else each.read_text() for each in paths}


def remove_new_directories(ours, theirs):
    for each in sorted(tree(theirs).keys() - tree(ours).keys(), reverse=True):
        (theirs / each).rmdir()


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
def test_300_random_commands_give_the_texts_of_the_sdks_helper_but_for_a_listed_set(tmp_path, seed):
    from anthropic.lib.tools import ToolError
    from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

    helper = BetaLocalFilesystemMemoryTool(str(tmp_path / "theirs"))
    mine, its = tmp_path / "ours/memories", tmp_path / "theirs/memories"
    mine.mkdir(parents=True)
    equal, found = 0, set()
    with Workspace(tmp_path / "ours") as ws:
        do = speaker(ws)
        for command, given in commands(random.Random(seed), 300):
            ours = do(command, **given)
            try:
                theirs = helper.call({"command": command, **given})
            except ToolError as error:
                theirs = str(error)
            except OSError as error:
                theirs = error
            if (difference := listed(given, ours, theirs)) is None:
                assert isinstance(theirs, str), (command, given, ours.content, theirs)
                wanted = shape(command, as_documented(command, theirs))
                text = ours.content if ours.success else ours.error["message"]
                assert shape(command, text) == wanted, (command, given)
                equal += 1
            found.add(difference)
            if command == "rename" and not ours.success:
                remove_new_directories(mine, its)
            assert tree(mine) == tree(its), (command, given)
    assert equal > 250, "most answers are equal"
    assert len(found) >= 4, "the listed differences occur"


# Many agents on one memory.


def test_many_agents_append_and_edit_one_memory_and_lose_no_line(tmp_path):
    """tests/fs/test_lock.py has the law for processes."""
    put(tmp_path, {"memories/shared.txt": "# Shared\n"})

    def work(name):
        with Workspace(tmp_path) as ws:
            do = speaker(ws)
            for number in range(4):
                new, done = (f"{name} {number} {state}" for state in ("new", "done"))
                for command, given in (
                    ("insert", {"insert_line": 1, "insert_text": new}),
                    ("str_replace", {"old_str": f"{new}\n", "new_str": f"{done}\n"}),
                ):
                    while not (result := do(command, "/memories/shared.txt", **given)).success:
                        assert result.error["code"] in {"conflict", "busy", "stale"}

    with ThreadPoolExecutor(6) as pool:
        assert [*pool.map(work, "abcdef")] == [None] * 6
    head, *lines = (tmp_path / "memories/shared.txt").read_text().splitlines()
    assert head == "# Shared"
    assert sorted(lines) == [f"{name} {number} done" for name in "abcdef" for number in range(4)]
