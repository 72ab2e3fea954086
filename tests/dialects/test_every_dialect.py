"""Tests for every dialect: the same scenario, the same journal, the same hostile paths and permissions.

An entry in `SPOKEN` adds a dialect: the call for each act of an agent. A call is a name and arguments, or a
function of the speaker that makes them if it must look something up first. Acts for which a dialect has no
tool are left out. In the scenario, the dialect `agentfs` does them in the same workspace.
"""

# ruff: noqa: E501 - a row of a table is one line
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache

import pytest

from agentfs import Limits, Policy, Protect, ToolResult, Workspace, connect, dialects
from tests.conftest import needs, program
from tests.kit import put
from tests.remote.over_pipe import open_pipe
from tests.tool_calls import accepts

EDITOR = "str_replace_based_edit_tool"


def by_line_id(path, old, new):
    """Name the line with the old text by its id; if there is none, mistype the id of the closest line."""

    def spoken(say):
        read = say("read", path)
        lines = dict(re.findall(r"\[LID:(\w+)\] (.*)", read.data["output"])) if read.success else {}
        name = next((name for name, line in lines.items() if old in line), None)
        new_content = new if name is None else lines[name].replace(old, new)
        if name is None:
            near = difflib.get_close_matches(old, lines.values(), 1)
            name = next((name[:-1] + "x" for name in lines if lines[name] in near), "ffffff")
        return "edit_lines", {"file_path": path, "changes": [{"line_id": name, "new_content": new_content}]}

    return spoken


def in_memory(path):
    """Return a path of the tree as one of a memory; `Speaker` makes `memories` a link to the root."""
    return path if path.startswith("/") else f"/memories/{path}".removesuffix("/.")


def call(words, first=str):
    """Return an act: a tool, and the parameters that get its arguments, if `=` does not say their values."""
    tool, *parameters = words.split()

    def spoken(path, *more):
        values = iter([first(path), *more])
        sent = (each.split("=") if "=" in each else (each, next(values)) for each in parameters)
        return tool, dict(sent)

    return spoken


def patch(text):
    return lambda *given: ("apply_patch", {"input": f"*** Begin Patch\n{text.format(*given)}\n*** End Patch"})


SPOKEN = {
    "agentfs": {
        "look": call("ls path"), "find": call("glob pattern"), "search": call("grep pattern path"),
        "read": call("read path"), "write": call("write path content"),
        "edit": call("edit path old_string new_string"),
    },
    "wave": {
        "look": call("LS path"), "find": call("Glob pattern"), "search": call("Grep pattern path"),
        "read": call("Read file_path"), "write": call("Write file_path content"),
        "edit": call("Edit file_path old_string new_string"),
    },
    "text-editor": {
        **dict.fromkeys(("look", "read"), call(f"{EDITOR} command=view path")),
        "write": call(f"{EDITOR} command=create path file_text"),
        "edit": call(f"{EDITOR} command=str_replace path old_str new_str"),
    },
    "apply-patch": {"write": lambda path, text: patch("*** Add File: {}\n+{}")(path, text.rstrip()), "edit": patch("*** Update File: {}\n@@\n-{}\n+{}")},
    "memory": {
        **dict.fromkeys(("look", "read"), call("memory command=view path", in_memory)),
        "write": call("memory command=create path file_text", in_memory),
        "edit": call("memory command=str_replace path old_str new_str", in_memory),
    },
    "rye": {
        "look": call("ls path"), "find": call("glob pattern"), "search": call("grep pattern path"),
        "read": call("read file_path"), "write": call("write file_path content"), "edit": by_line_id,
    },
    "dominds": {"look": call("list_dir path"), "search": call("ripgrep_snippets pattern path"), "read": call("read_file path")},
    "tree-sitter-analyzer": {
        "look": lambda path: ("list_files", {"roots": [path], "depth": 1}),
        "find": lambda pattern: ("list_files", {"roots": ["."], "pattern": pattern, "glob": True}),
        "search": lambda pattern, path: ("search_content", {"query": pattern, "roots": [path]}),
    },
    "codescout": {
        "look": call("list_dir path"), "find": call("find_file pattern"),
        "search": call("search_pattern pattern path"), "read": call("read_file path"),
        "write": call("create_file path content"), "edit": call("edit_file path old_string new_string"),
    },
}  # fmt: skip
# The other arguments of an act besides its path.
AROUND = {
    "write": lambda path: (path, "text\n"),
    "edit": lambda path: (path, "secret", "changed"),
    "search": lambda path: ("secret", path),
}
# Dialects whose edits name lines that a read has shown: without reading, they cannot edit.
EDITS_WHAT_WAS_SHOWN = {"rye"}


class Speaker:
    def __init__(self, workspace: Workspace, dialect: str) -> None:
        self.workspace = workspace
        if dialect == "memory" and not os.path.lexists(f"{workspace.root}/memories"):
            os.symlink(".", f"{workspace.root}/memories")
        self.tools = workspace.tools(dialect=dialect)
        self.words = SPOKEN[dialect]
        self.called = ""
        preset = {} if dialect == "agentfs" else dialects.find(dialect).policy
        self.overwrites = preset.get("overwrite") == "always"

    def __contains__(self, act: str) -> bool:
        return act in self.words

    def __call__(self, act: str, *arguments: str) -> ToolResult:
        if act not in self:
            return Speaker(self.workspace, "agentfs")(act, *arguments)
        said = self.words[act](*arguments)
        name, sent = said(self) if callable(said) else said
        assert accepts(self.tools, name, sent), "the test sends what the schema has"
        self.called = name
        return self.tools.call(name, sent)

    def at(self, act: str, path: str) -> ToolResult:
        """Do something at a path, with sample values for the other arguments."""
        return self(act, *AROUND.get(act, lambda path: (path,))(path))


@pytest.fixture(params=list(SPOKEN))
def dialect(request):
    return request.param


def spoken(*acts: str) -> list[tuple[str, str]]:
    """Return the pairs of a dialect and an act for which it has a tool."""
    return [(dialect, act) for dialect, words in SPOKEN.items() for act in acts if act in words]


@pytest.fixture
def utils(django_source, tmp_path):
    return shutil.copytree(django_source / "django" / "utils", tmp_path / "utils")


def test_every_dialect_of_the_package_is_held_to_this():
    from agentfs.dialects import BUILT_IN

    assert set(SPOKEN) == {"agentfs", *BUILT_IN}


OLD, NEW = "class Truncator(SimpleLazyObject):", "class Cutter(SimpleLazyObject):"


def play(ws: Workspace, dialect: str) -> None:
    """Explore, find, search, read, edit, recover from a miss, write, and take a mistake back."""
    say = Speaker(ws, dialect)
    assert "text.py" in say("look", ".").content
    assert "translation/trans_real.py" in say("find", "**/trans_*.py").content
    assert "text.py" in say("search", r"class Truncator", ".").content
    missed = say.at("read" if "read" in say or "search" not in say else "search", "texts.py")
    assert missed.error["code"] == "not_found"
    assert "text.py" in missed.content, "the nearest name is shown"
    assert "class Truncator" in say("read", "text.py").content
    missed = say("edit", "text.py", OLD.replace("tor", "ter"), NEW)
    assert missed.error["code"] in {"no_match", "unknown_line"}
    assert "class Truncator(SimpleLazyObject)" in missed.content, "the miss shows what is there"
    assert say("edit", "text.py", OLD, NEW).success
    assert say("write", "notes/new.txt", "one\n").success
    assert say("edit", "tree.py", "class Node:", "class Mistake:").success
    if not say.overwrites:
        refused = say("write", "html.py", "gone\n")
        assert refused.error["code"] in {"unread", "already_exists"}
    (undone,) = ws.undo().files
    assert undone.path == "tree.py"


def test_one_scenario_leaves_the_same_bytes_and_one_journal(django_source, utils, dialect):
    before = {path: path.read_bytes() for path in utils.rglob("*") if path.is_file()}
    with Workspace(utils) as ws:
        play(ws, dialect)
        after = {path: path.read_bytes() for path in utils.rglob("*") if path.is_file()}
        changes = ws.changes()
        steps = ws.undo(2)
        assert (steps.undoable, steps.redoable) == (0, 3), "each call was one step"
        assert {path: path.read_bytes() for path in utils.rglob("*") if path.is_file()} == before
        ws.redo(2)
        assert ws.changes() == changes
    text = utils / "text.py"
    expected = before | {
        text: before[text].replace(OLD.encode(), NEW.encode()),
        utils / "notes/new.txt": b"one\n",
    }
    assert after == expected
    assert [(each.path, each.action) for each in changes.files] == [
        ("notes", "created"), ("notes/new.txt", "created"), ("text.py", "changed"),
    ]  # fmt: skip
    assert changes.patch == patch_of(django_source)


@cache
def patch_of(django_source) -> bytes:
    """Return the changes of the same scenario without a dialect."""
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        copy = shutil.copytree(django_source / "django" / "utils", f"{directory}/utils")
        with Workspace(copy) as ws:
            play(ws, "agentfs")
            return ws.changes().patch


def test_all_dialects_at_once_write_one_journal(tmp_path):
    speakers = [name for name, words in SPOKEN.items() if "edit" in words]
    (tmp_path / "a.txt").write_text("0 of all\n")
    with Workspace(tmp_path) as ws:
        for number, name in enumerate(speakers):
            assert Speaker(ws, name)("edit", "a.txt", f"{number} of all", f"{number + 1} of all").success
        assert (tmp_path / "a.txt").read_text() == f"{len(speakers)} of all\n"
        assert ws.changes().patch.endswith(b"-0 of all\n+%d of all\n" % len(speakers))
        for number in reversed(range(len(speakers))):
            assert ws.undo().undoable == number
            assert (tmp_path / "a.txt").read_text() == f"{number} of all\n"


OUTSIDE = ("../outside/", "{outside}/", "dir/../../outside/", "link-out/")
HOSTILE = {
    **dict.fromkeys((*(f"{place}secret.txt" for place in OUTSIDE), "link-to-secret"), "outside_workspace"),
    "loop": "link_loop", "fifo": "not_regular", "a\0b": "invalid_path", "x" * 300: "name_too_long",
    "file.txt/below": "not_a_directory",
}  # fmt: skip
# The error for a path that must be a directory.
LOOKED_AT = {"fifo": ["not_a_directory"]}


@pytest.fixture
def hostile(tmp_path):
    """A tree with links out of it, and the directory outside."""
    outside, root = put(tmp_path / "outside", {"secret.txt": "secret\n"}), tmp_path / "root"
    put(root, ["dir/x", "file.txt"])
    links = {"link-out": outside, "link-to-secret": outside / "secret.txt", "loop": "loop"}
    for name, target in links.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "fifo")
    with Workspace(root) as ws:
        yield ws, outside


@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: repr(path[:30]))
@pytest.mark.parametrize(("dialect", "act"), spoken("look", "search", "read", "write", "edit"))
def test_hostile_paths_are_refused(hostile, dialect, act, path):
    ws, outside = hostile
    result = Speaker(ws, dialect).at(act, path.format(outside=outside))
    assert not result.success
    assert result.error["code"] in {HOSTILE[path], *LOOKED_AT.get(path, ())}
    assert "secret\n" not in result.content
    assert (outside / "secret.txt").read_text() == "secret\n"
    assert sorted(os.listdir(outside)) == ["secret.txt"]


@pytest.mark.skipif(sys.platform == "win32", reason="FIFOs of POSIX")
def test_unreadable_files_are_not_suggested_for_reading(tmp_path, dialect):
    put(tmp_path, {".env": "A=1\n", "a.txt": "x\n"})
    os.mkfifo(tmp_path / "fifo")
    with Workspace(tmp_path) as ws:
        say = Speaker(ws, dialect)
        if "look" not in say or dialect in {"text-editor", "memory"}:  # these look at a file by reading it
            return
        told = {path: say("look", path).content for path in ("a.txt", ".env", "fifo")}
    assert "to see its content" in told["a.txt"]
    assert "to see its content" not in told[".env"] + told["fifo"]


HOSTILE_PATTERNS = [
    *("../**", "../outside/*", "{outside}/*", "**/../../outside/*", "link-out/*", "/**/secret*"),
    "{{a,../outside}}/*",
]


@pytest.mark.parametrize("pattern", HOSTILE_PATTERNS)
def test_hostile_patterns_find_nothing_outside(hostile, dialect, pattern):
    ws, outside = hostile
    say = Speaker(ws, dialect)
    if "find" in say:
        found = say("find", pattern.format(outside=outside)).content
        assert "secret.txt" not in found.replace(pattern, "")


@pytest.mark.parametrize(("policy", "reads", "changes"), [
    (Policy(), True, True),
    (Policy(read_only=True), True, False),
    (Policy(mode="plan"), True, False),
    (Policy(on_ask=lambda _: False), True, False),
    (Policy(on_ask=lambda _: False, ask=("*",)), False, False),
    (Policy(on_ask=lambda request: not request.changes, ask=("*",)), True, False),
    (Policy(mode="accept_edits", on_ask=lambda _: False), True, True),
    (Policy(mode="accept_edits", on_ask=lambda _: False, ask=("read",)), False, True),
    (Policy(mode="bypass", on_ask=lambda _: False), True, True),
    (Policy(deny=("*(src/**)",)), False, False),
    (Policy(deny=("change",)), True, False),
    (Policy(mode="bypass", deny=("*(src/**)",)), False, False),
    (Policy(overwrite="never"), True, True),
])  # fmt: skip
def test_permissions_hold(tmp_path, dialect, policy, reads, changes):
    (tmp_path / "src/in").mkdir(parents=True)
    (tmp_path / "src/a.txt").write_text("secret\n")
    with Workspace(tmp_path, policy=policy) as ws:
        say = Speaker(ws, dialect)
        for act, path in (("look", "src/in"), ("search", "src/a.txt"), ("read", "src/a.txt")):
            assert act not in say or say.at(act, path).success is reads
        edits = changes and (reads or dialect not in EDITS_WHAT_WAS_SHOWN)
        assert "edit" not in say or say.at("edit", "src/a.txt").success is edits
        assert "write" not in say or say.at("write", "src/new.txt").success is changes
    changed = edits and "edit" in say
    assert (tmp_path / "src/a.txt").read_text() == ("changed\n" if changed else "secret\n")
    assert (tmp_path / "src/new.txt").exists() is (changes and "write" in say)


def test_every_provider_takes_the_schemas(ws, dialect):
    tools = ws.tools(dialect=dialect)
    for provider in ("openai", "openai-responses", "anthropic", "mcp", "gemini"):
        assert len(tools.schemas(provider)) == len(tools)
    hints = [schema["annotations"]["readOnlyHint"] for schema in tools.schemas("mcp")]
    assert hints == [tool.effect == "read" for tool in tools]


@pytest.mark.parametrize("policy", [
    Policy(),
    Policy(on_ask=lambda _: True),
    Policy(mode="bypass"),
    Policy(mode="bypass", allow=("*(**)",), overwrite="always"),
])  # fmt: skip
@pytest.mark.parametrize("path", ["key.pem", "link"])
def test_no_permission_answer_opens_a_protected_file(tmp_path, dialect, policy, path):
    put(tmp_path, {"key.pem": "KEY=secret\n", ".git/config": "[core]\n"})
    (tmp_path / "link").symlink_to("key.pem")
    with Workspace(tmp_path, policy=policy) as ws:
        say = Speaker(ws, dialect)
        for act in {"read", "search", "write", "edit"} & {*say.words}:
            answer = say.at(act, path)
            assert (answer.success, answer.error and answer.error["code"]) in {
                "edit": {(False, "protected"), (False, "unread")},
                "search": {(False, "protected"), (True, None)},
            }.get(act, {(False, "protected")})
            assert "KEY=" not in answer.content
        assert "write" not in say or say.at("write", ".git/config").error["code"] == "protected"
        assert "look" not in say or "key.pem" in say("look", ".").content
        assert "search" not in say or "KEY=" not in say("search", "secret", ".").content
    assert (tmp_path / "key.pem").read_text() == "KEY=secret\n"
    with Workspace(tmp_path, policy=Policy(protect=Protect(read=()))) as ws:
        say = Speaker(ws, dialect)
        assert "read" not in say or "secret" in say.at("read", path).content, "the policy decides"


def test_a_permission_request_has_the_tool_and_the_diff(tmp_path, dialect):
    asked = []
    (tmp_path / "a.txt").write_text("secret\n")
    policy = Policy(on_ask=lambda request: asked.append(request) or True, ask=("*",))
    with Workspace(tmp_path, policy=policy) as ws:
        say = Speaker(ws, dialect)
        act = next(act for act in ("edit", "read", "search") if act in say)
        assert say.at(act, "a.txt").success
    request = asked[-1]
    assert [each for each in asked if each.changes] == ([request] if act == "edit" else [])
    given = ("memories/a.txt",) if dialect == "memory" else ()
    assert request.paths == (*given, "a.txt")
    assert request.tool == say.called
    assert ("-secret\n+changed\n" in request.diff) is (act == "edit")


def test_an_unknown_tool_is_refused_in_the_form_of_the_dialect(ws, dialect):
    tools = ws.tools(dialect=dialect)
    wrong, unknown = tools.call(tools.names[0], {"no_such": 1}), tools.call("no_such_tool", {})
    assert type(unknown) is type(wrong)
    assert unknown.error["code"] == "unknown_tool"
    assert all(name in unknown.content for name in tools.names)
    assert shape_of(unknown) == shape_of(wrong)


def shape_of(result):
    """Return the fields of a result's data, and those of its text if it is JSON."""
    text = result.content
    fields = (
        set(json.loads(text)) if text.startswith("{") else text.partition(":")[0] if ": " in text[:9] else ""
    )
    return set(result.data), fields


def _globs(option, pattern):
    globs = {"exclude_globs": [pattern]} if pattern.startswith("!") else {"include_globs": [pattern]}
    return {"query": "needle", "count_only_matches": True, **globs, **option}


# Searches with a glob as ripgrep takes it: the call, and the paths in its answer.
SEARCHES = {
    "wave": (call("Grep pattern=needle path glob"), "counts"),
    "rye": (call("grep pattern=needle path include"), "matches/file"),
    "dominds": (call("ripgrep_files pattern=needle path globs"), "matches/path"),
    "tree-sitter-analyzer": (lambda path, glob: ("find_and_grep", _globs({"roots": [path]}, glob)), "file_counts"),
}  # fmt: skip
RG_GLOBS = ["*.c", "src/*.c", "src/**", "!src/core/**", "**/core/*.c", "!src/*.c", "{src,lib}/*.c", "s*/a.c"]


@needs("rg")
@pytest.mark.parametrize("path", [".", "src", "./src/", "src/core", "{root}/src"])
def test_globs_start_where_ripgrep_starts_them(tmp_path, path):
    """A glob with `/` started at `path`; ripgrep's start at the root. If it finds nothing, so may others."""
    files = ("src/a.c", "src/core/b.c", "src/src/x.c", "src/src/core/y.c", "lib/a.c", "lib/src/a.c")
    put(tmp_path, files, "needle\n")
    path = path.format(root=tmp_path)
    for glob in RG_GLOBS:
        argv = [program("rg"), "-l", "--no-config", "-g", glob, "needle", path]
        rg = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
        expected = {os.path.relpath(tmp_path / each, tmp_path) for each in rg.split()}
        for name, (search, place) in SEARCHES.items():
            with Workspace(tmp_path) as ws:
                field, _, key = place.partition("/")
                found = ws.tools(dialect=name).call(*search(path, glob)).data[field]
            paths = {each[key] for each in found} if key else set(found)
            assert paths == expected or not expected, (name, glob)


READ_AS_A_LIST = [
    ("wave", "Glob", {"pattern": "*.c,*.h"}), ("rye", "grep", {"pattern": "needle", "include": "*.c,*.h"}),
    ("dominds", "ripgrep_files", {"pattern": "needle", "globs": "*.c,*.h"}),
    ("tree-sitter-analyzer", "list_files", {"roots": ["."], "pattern": "*.c,*.h", "glob": True}),
    ("codescout", "find_file", {"pattern": "*.c,*.h"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "tool", "arguments"), READ_AS_A_LIST)
def test_an_answer_says_that_a_glob_was_read_in_another_way(tmp_path, name, tool, arguments):
    """The dialects whose answers are JSON or YAML were silent."""
    put(tmp_path, ("a.c", "a.h"), "needle\n")
    with Workspace(tmp_path) as ws:
        answer = ws.tools(dialect=name).call(tool, arguments)
    assert "a.c" in answer.content
    assert "taken" not in answer.content_with_notes


READERS = [name for name, words in SPOKEN.items() if "read" in words]
WRITERS = [name for name, words in SPOKEN.items() if "write" in words and name != "memory"]  # replaces none


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("writer", WRITERS)
def test_one_dialect_may_write_files_that_another_has_read(tmp_path, reader, writer):
    (tmp_path / "a.txt").write_text("secret\n")
    with Workspace(tmp_path) as ws:
        say = Speaker(ws, writer)
        if not say.overwrites:
            assert say("write", "a.txt", "text\n").error["code"] == "unread"
        assert Speaker(ws, reader)("read", "a.txt").success
        assert say("write", "a.txt", "text\n").success


@pytest.mark.parametrize(("dialect", "act"), spoken("search", "read", "edit"))
def test_files_over_10_mib(tmp_path, dialect, act):
    """They are searched and read by pages, and not edited. tree-sitter-analyzer leaves them out."""
    data = b"secret\n" + (b"hay " * 25 + b"\n") * 110_000
    (tmp_path / "large").write_bytes(data)
    with Workspace(tmp_path) as ws:
        results = [Speaker(ws, dialect).at(act, path) for path in ("large", *["."] * (act == "search"))]
    for result in results:
        if act == "edit":
            assert result.error["code"] == "too_large"
        elif dialect == "tree-sitter-analyzer":
            assert result.data["skipped"]["too_large"] == 1
        else:
            assert result.success
            assert ("secret" if act == "read" else "large") in result.content
            assert "No matches" not in result.content
    assert (tmp_path / "large").read_bytes() == data


@pytest.mark.parametrize("dialect", ["agentfs", *dialects.names()])
@pytest.mark.parametrize("overwrite", ["seen", "always", "never"])
def test_the_instructions_say_which_files_a_write_replaces(tmp_path, dialect, overwrite):
    (tmp_path / "a.txt").write_text("old\n")
    with Workspace(tmp_path, policy=Policy(overwrite=overwrite)) as ws:
        tools = ws.tools(dialect=dialect)
        writing = next((tool for tool in tools if tool.own_name == "write"), None)
        if writing is None:
            return
        said = tools.instructions()
        path = "file_path" if "file_path" in str(writing.parameters) else "path"
        written = tools.call(writing.name, {path: "a.txt", "content": "new\n"})
        assert written.success is (f"`{writing.name}` " not in said)
        assert (f"`{writing.name}` only creates files" in said) is (
            not written.success and written.error["code"] == "already_exists"
        )


@pytest.mark.parametrize(("name", "tool", "arguments"), [
    *(("codescout", *call) for call in (("search_pattern", {"pattern": "needle"}), ("find_file", {"pattern": "**/*.txt"}), ("list_dir", {"recursive": True}))),
    *(("tree-sitter-analyzer", *call) for call in (("search_content", {"query": "needle"}), ("list_files", {}), ("find_and_grep", {"query": "needle"}))),
])  # fmt: skip
@pytest.mark.parametrize("start", [".", "src", "src/in"])
def test_absolute_paths_in_a_working_directory_are_those_of_the_files(tmp_path, name, tool, arguments, start):
    """They were the root with the path relative to the working directory."""
    paths = ("src/in/a.txt", "src/b.txt", "src/in/er/c.txt")
    put(tmp_path, paths, "needle\n")
    everywhere = {"path": str(tmp_path)} if name == "codescout" else {"roots": [str(tmp_path)]}
    with Workspace(tmp_path) as local, connect(open_pipe(), str(tmp_path)) as remote:
        for workspace in (local, remote):
            tools = workspace.view(workdir=start).tools(dialect=name)
            content = tools.call(tool, {**everywhere, **arguments}).content
            shown = {each for each in re.findall(r'"(/[^"]+)"', content) if each.endswith(".txt")}
            assert shown == {f"{tmp_path}/{path}" for path in paths}, content


@pytest.mark.parametrize("name", dialects.names())
def test_a_search_that_cannot_go_on_says_to_narrow_it(tmp_path, name):
    """Glob of wave ended with "there is more", and named neither a call nor another way."""
    put(tmp_path, [f"f{number}.txt" for number in range(9)], "needle\n")
    limits = Limits(glob_results=2, grep_results=2, list_entries=2)
    searches = {"glob": {"pattern": "*"}, "grep": {"pattern": "needle"}, "ls": {"path": "."}}
    with Workspace(tmp_path, limits=limits) as ws:
        tools = ws.tools(dialect=name)
        for tool in [each for each in tools.names if each.lower() in searches]:
            result = tools.call(tool, searches[tool.lower()])
            assert result.success
            if "there is more" in result.content:
                assert re.search(r"there is more: (narrow|list)", result.content), (tool, result.content)
