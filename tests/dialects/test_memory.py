"""`memory`: each statement of its page, beside the helper of the SDK, and many agents on one memory."""

import os
import random
import re
import subprocess
import sys

import pytest

from agentfs import Limits, Policy, Workspace
from tests.dialects.answers import parameters
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


def test_view_a_directory(do, tmp_path):
    put(tmp_path / "memories", {
        "deep/er/f.txt": "x" * 1500, "deep/er/est/g.txt": "x" * 36, "a-first": b"", ".gitignore": "*.log\n",
        "ignored.log": b"x" * 2048, "node_modules/m.js": "x",
    })  # fmt: skip
    assert do("view", "/memories").content.split("\n") == [
        TOP.format("/memories"),
        "3.5K\t/memories", "0B\t/memories/a-first", "1.5K\t/memories/deep/", "1.5K\t/memories/deep/er/",
        "2K\t/memories/ignored.log", f"{len(NOTES)}B\t/memories/notes.txt",
    ]  # fmt: skip
    assert do("view", "/memories/deep/").content.split("\n") == [
        TOP.format("/memories/deep"),
        "1.5K\t/memories/deep", "1.5K\t/memories/deep/er/",
        "36B\t/memories/deep/er/est/", "1.5K\t/memories/deep/er/f.txt",
    ]  # fmt: skip


def test_a_memory_that_does_not_exist_yet_is_empty(tmp_path):
    with Workspace(tmp_path) as ws:
        assert speaker(ws)("view", "/memories").content == f"{TOP.format('/memories')}\n0B\t/memories"
        assert os.listdir(tmp_path) == []


def test_view_a_file(do, tmp_path):
    head = "Here's the content of /memories/notes.txt with line numbers:"
    lines = [f"{number:>6}\t{line}" for number, line in enumerate(NOTES.splitlines(), 1)]
    for view_range, shown in (([1, 4], lines), ([2, 3], lines[1:3]), ([3, -1], lines[2:])):
        viewed = do("view", "/memories/notes.txt", view_range=view_range)
        assert viewed.content.split("\n") == [head, *shown]
    assert do("view", "memories/notes.txt/").content.split("\n")[1:] == lines
    for wrong in ([9, 12], [3, 2], [0, 1], [1]):
        assert do("view", "/memories/notes.txt", view_range=wrong).error["code"] == "invalid_argument"
    put(tmp_path / "memories", {"x": b"\x1b[2J\n", "big": b"\n" * 1_000_000})
    assert do("view", "/memories/x").content.split("\n")[1] == "     1\t⟦U+001B⟧[2J"
    wanted = "File /memories/big exceeds maximum line limit of 999,999 lines."
    assert do("view", "/memories/big").content == wanted


def test_a_long_file_is_viewed_by_pages(tmp_path):
    with Workspace(tmp_path, limits=Limits(read_lines=2)) as ws:
        ws.write("memories/notes.txt", NOTES)
        *_, last = speaker(ws)("view", "/memories/notes.txt").content.split("\n")
        assert last == (
            '[lines 1-2 of 4; more: memory(command="view", path="/memories/notes.txt", view_range=[3, -1])]'
        )


def test_a_path_that_does_not_exist(do):
    path, missing = "/memories/nots.txt", "The path /memories/nots.txt does not exist"
    first, second = do("view", path).content.split("\n")
    assert first == f"{missing}. Please provide a valid path."
    assert "memories/notes.txt" in second
    replaced = do("str_replace", path, old_str="a", new_str="b")
    assert failure(replaced) == f"Error: {missing}. Please provide a valid path."
    renamed = do("rename", old_path=path, new_path="/memories/b")
    for result in (do("insert", path, insert_line=0, insert_text="a"), do("delete", path), renamed):
        assert failure(result) == f"Error: {missing}"
        assert result.error["code"] == "not_found"


def test_create(do, tmp_path):
    made = do("create", "/memories/new/a.txt", file_text="text\n")
    assert made.content == "File created successfully at: /memories/new/a.txt"
    assert (tmp_path / "memories/new/a.txt").read_text() == "text\n"
    for path in ("/memories/notes.txt", "/memories/new"):
        assert failure(do("create", path, file_text=NOTES)) == f"Error: File {path} already exists"
    assert (tmp_path / "memories/notes.txt").read_text() == NOTES


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


def test_str_replace(do, tmp_path):
    def replace(old, new, path="/memories/notes.txt", **more):
        return do("str_replace", path, old_str=old, **({} if new is None else {"new_str": new}))

    head = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
    edited = replace("three", "3\n4")
    assert edited.content == f"{head}\n     1\tone\n     2\ttwo\n     3\t3\n     4\t4\n     5\tone more"
    assert (tmp_path / "memories/notes.txt").read_text() == "one\ntwo\n3\n4\none more\n"
    assert replace("3\n4\n", None).success, "new_str may be left out"
    absent = replace("two\ntree", "2").content
    said = "No replacement was performed, old_str `two\ntree` did not appear verbatim in /memories/notes.txt."
    assert absent.startswith(said)
    assert "\n2|two" in absent
    assert failure(replace("one", "1")) == (
        "No replacement was performed. Multiple occurrences of old_str `one` in lines: 1, 3. "
        "Please ensure it is unique"
    )
    missing = "Error: The path /memories does not exist. Please provide a valid path."
    assert failure(replace("a", "b", "/memories")) == missing
    assert replace("", "b").error["code"] == "invalid_argument"
    assert replace("two", "two").error["code"] == "no_change"


def test_regression_a_failed_str_replace_says_what_to_do_next(do):
    absent = do("str_replace", "/memories/notes.txt", old_str="nothing like it", new_str="x")
    assert 'memory(command="view", path="/memories/notes.txt")' in absent.content
    twice = do("str_replace", "/memories/notes.txt", old_str="one", new_str="1")
    assert twice.content.endswith("Add lines before or after it to old_str (and to new_str).")


def test_crlf_is_kept(do, tmp_path):
    (tmp_path / "memories/w").write_bytes(b"a\r\nb\r\n")
    assert do("str_replace", "/memories/w", old_str="a\r\nb", new_str="c\nd").success
    assert do("insert", "/memories/w", insert_line=1, insert_text="e").success
    assert (tmp_path / "memories/w").read_bytes() == b"c\r\ne\r\nd\r\n"


def test_insert(do, tmp_path):
    for line, text in ((0, "zero\n\n"), (5, "last")):
        done = do("insert", "/memories/notes.txt", insert_line=line, insert_text=text)
        assert done.content == "The file /memories/notes.txt has been edited."
    assert (tmp_path / "memories/notes.txt").read_text() == f"zero\n{NOTES}last\n"
    for line in (-1, 7):
        assert do("insert", "/memories/notes.txt", insert_line=line, insert_text="x").content == (
            f"Error: Invalid `insert_line` parameter: {line}. "
            "It should be within the range of lines of the file: [0, 6]"
        )
    wanted = "Error: The path /memories does not exist"
    assert failure(do("insert", "/memories", insert_line=0, insert_text="x")) == wanted


def test_delete(do, tmp_path):
    do("create", "/memories/d/e/f", file_text="")
    assert do("delete", "/memories/d").content == "Successfully deleted /memories/d"
    assert do("delete", "/memories/notes.txt").success
    assert do("delete", "/memories").content == "Cannot delete the /memories directory itself"
    assert os.listdir(tmp_path / "memories") == []


def test_rename(do, tmp_path):
    do("create", "/memories/d/f", file_text="")
    renamed = do("rename", old_path="/memories/d", new_path="/memories/new/place")
    assert renamed.content == "Successfully renamed /memories/d to /memories/new/place"
    assert (tmp_path / "memories/new/place/f").exists()
    taken = do("rename", old_path="/memories/new", new_path="/memories/notes.txt")
    assert failure(taken) == "Error: The destination /memories/notes.txt already exists"
    for old, new in (("/memories", "/memories/x"), ("/memories/new", "/memories/new/er")):
        assert do("rename", old_path=old, new_path=new).error["code"] == "invalid_argument"


def test_a_missing_parameter(do):
    for command, missing in (("view", "path"), ("create", "path"), ("rename", "old_path")):
        assert do(command).content == f"Parameter `{missing}` is required for command: {command}"
    assert "`insert_line`" in do("insert", "/memories/notes.txt", insert_text="x").content


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


def test_secrets_are_refused(do, tmp_path):
    (tmp_path / "memories/id_rsa").write_text("secret\n")
    for result in (
        do("view", "/memories/id_rsa"), do("str_replace", "/memories/id_rsa", old_str="secret", new_str="x"),
        do("create", "/memories/.env", file_text="x"), do("delete", "/memories/id_rsa"),
        do("rename", old_path="/memories/notes.txt", new_path="/memories/.env"),
        do("rename", old_path="/memories/id_rsa", new_path="/memories/key.txt"),
    ):  # fmt: skip
        assert result.error["code"] == "protected"
        assert "secret\n" not in result.content


@pytest.mark.full
def test_the_sdks_helper_shows_a_protected_file(tmp_path):
    from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

    theirs = BetaLocalFilesystemMemoryTool(str(tmp_path))
    (tmp_path / "memories/id_rsa").write_text("secret\n")
    assert "secret" in theirs.call({"command": "view", "path": "/memories/id_rsa"})


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
    (r"^(The path|File(?= /)|The destination|Invalid)", r"Error: \1",
     "create str_replace insert delete rename"),
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

AGENT = """
import sys, time
from agentfs import Workspace

root, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
with Workspace(root) as ws:
    tools = ws.tools(dialect="memory")
    def do(**given):
        while True:
            result = tools.call("memory", {"path": "/memories/shared.txt", **given})
            if result.success or result.error["code"] not in ("conflict", "busy", "stale"):
                return result
    made = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert do(command="insert", insert_line=1, insert_text=f"{name} {made} new").success
        old = f"{name} {made} new\\n"
        done = do(command="str_replace", old_str=old, new_str=f"{name} {made} done\\n")
        assert done.success, done.content
        made += 1
    print(made)
"""


@pytest.mark.full
@pytest.mark.parametrize("seconds", [2, pytest.param(20, marks=pytest.mark.long)])
def test_8_processes_append_and_edit_one_memory_and_lose_no_line(tmp_path, seconds):
    put(tmp_path, {"memories/shared.txt": "# Shared\n"})
    names = [f"agent{number}" for number in range(8)]
    command = [sys.executable, "-c", AGENT, tmp_path]
    agents = [
        subprocess.Popen([*command, name, str(seconds)], stdout=subprocess.PIPE, text=True) for name in names
    ]
    made = [int(agent.communicate(timeout=seconds + 60)[0]) for agent in agents]
    assert [agent.returncode for agent in agents] == [0] * 8
    assert sum(made) > 8
    head, *lines = (tmp_path / "memories/shared.txt").read_text().splitlines()
    assert head == "# Shared"
    counts = zip(names, made, strict=True)
    assert sorted(lines) == sorted(f"{name} {at} done" for name, count in counts for at in range(count))
