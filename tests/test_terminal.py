"""Output on a terminal: colours as `rg` and `ls` have them, no control characters, progress of long calls."""

import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from contextlib import suppress

import pytest

from agentfs import Workspace, __version__
from agentfs.cli import main
from agentfs.cli import output as progress
from agentfs.dialects import names as dialect_names
from agentfs.permissions import READING
from agentfs.tools.toolset import Toolset
from tests.conftest import needs, program
from tests.forked import forked, run_command, text_of
from tests.test_cli import tree

__all__ = ["tree"]  # a fixture

SGR = re.compile(r"\x1b\[([\d;]*)m")


def run(tree, call, *, terminals=("stdout",), **environment):
    """Call a function in a forked process, with streams on a terminal; return what each stream got."""
    shown, end = pty.openpty()
    with (
        open(os.devnull) as nothing,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as error,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.delenv("NO_COLOR", raising=False)
        for name, value in {"TERM": "xterm", "XDG_CACHE_HOME": str(tree / "cache"), **environment}.items():
            patch.setenv(name, value)
        files = {"stdout": out, "stderr": error}
        streams = [end if name in terminals else file.fileno() for name, file in files.items()]
        child = forked(call, (nothing.fileno(), *streams), tree)
        os.close(end)
        got = b""
        with suppress(OSError):  # Linux reports the end of a terminal like this
            while piece := os.read(shown, 65536):
                got += piece
        os.close(shown)
        os.waitpid(child, 0)
        return tuple(got.decode() if name in terminals else text_of(file) for name, file in files.items())


def on_a_terminal(tree, *arguments, **environment):
    return run(tree, lambda: main(arguments), **environment)[0]


HOSTILE = "a\x1b[31m\x9b2J\u202eb\x07\r"


@pytest.mark.full
def test_a_terminal_gets_no_control_characters_from_diff_and_log(tree):
    """Attack: a file that an agent was led to write acts on the terminal of whoever looks at the diff."""
    (tree / "work").mkdir()
    with Workspace(tree / "work", state=tree / "state") as ws:
        ws.write("a.txt", f"{HOSTILE}\n")
        ws.write("latin.txt", "caf\xe9 \x9b2J\n", encoding="latin-1")
        ws.write(f"name{HOSTILE}.txt", "x\n")
        ws.checkpoint(HOSTILE)
        patch = ws.changes().patch
    state = ["--state", str(tree / "state")]
    for command in (["diff"], ["log"], ["diff", "--json"], ["log", "--json"], ["undo"], ["redo"]):
        text = on_a_terminal(tree, *command, *state, NO_COLOR="1").replace("\r\n", "\n")
        assert [char for char in text if not char.isprintable() and char != "\n"] == [], command
    shown = on_a_terminal(tree, "diff", *state, NO_COLOR="1")
    assert "+a⟦U+001B⟧[31m⟦U+009B⟧2J⟦U+202E⟧b⟦U+0007⟧⟦U+000D⟧" in shown
    assert "\x1b[32m+a⟦U+001B⟧[31m" in on_a_terminal(tree, "diff", *state)
    piped = os.fsencode(run_command("diff", *state, cwd=tree).stdout)
    assert (piped, b"\x1b[31m" in piped) == (patch, True), "a pipe gets it byte for byte"


def test_a_terminal_gets_no_control_characters_from_a_dialect(tree):
    (tree / "a.txt").write_text(f"{HOSTILE}\n")
    arguments = json.dumps({"path": "a.txt"})
    for options in ([], ["--json"]):
        text = on_a_terminal(tree, "call", "--dialect", "rye", "read", arguments, *options, NO_COLOR="1")
        assert [char for char in text if not char.isprintable() and char not in "\r\n"] == []


def test_a_pipe_with_colours_gets_no_other_control_characters(tmp_path, capsys):
    """Attack: with `--color always | less -R` the names and contents of a tree act on the terminal."""
    (tmp_path / f"{HOSTILE}.txt").write_text(f"{HOSTILE}\n")
    (tmp_path / f"d{HOSTILE}").mkdir()
    with Workspace(tmp_path / f"d{HOSTILE}", state=tmp_path.parent / "state") as ws:
        ws.write(f"name{HOSTILE}.txt", f"x{HOSTILE}\n")
    state = ["--state", str(tmp_path.parent / "state")]
    for command in (
        ["ls"],
        ["find"],
        ["grep", "a"],
        ["grep", "a", "--output-mode", "count"],
        ["diff", *state],
    ):
        root = [] if "diff" in command else ["--root", str(tmp_path)]
        assert main([*command, *root, "--color", "always"]) == 0
        text = capsys.readouterr().out
        assert "\x1b[" in text, command
        plain = SGR.sub("", text)
        assert [char for char in plain if not char.isprintable() and char != "\n"] == [], command
        assert "31" not in {
            code for found in SGR.findall(text.split("\u27e6")[0]) for code in found.split(";")
        }


def painted(*arguments: str, capsys) -> str:
    main([*arguments, "--color", "always"])
    return capsys.readouterr().out


def cells(text: str) -> list[list[tuple[str, str]]]:
    """Return each character with the colour codes in force at it, by lines."""
    lines: list[list[tuple[str, str]]] = [[]]
    codes: set[str] = set()
    for piece in re.split(r"(\x1b\[[\d;]*m)", text):
        if found := SGR.fullmatch(piece):
            for code in found[1].split(";"):
                codes = codes | {code.lstrip("0")} if code.lstrip("0") else set()
            continue
        for char in piece:
            if char == "\n":
                lines.append([])
            else:
                lines[-1].append((char, " ".join(sorted(codes))))
    return lines


@needs("rg")
@pytest.mark.parametrize(("ours", "theirs"), [
    (["import"], ["import"]),
    (["o", "--ignore-case", "--context", "1"], ["o", "-i", "-C1"]),
    (["t.p|\u00e9"], ["t.p|\u00e9"]),
    (["[a-z]+", "--glob", "*.py"], ["[a-z]+", "-g*.py"]),
])  # fmt: skip
def test_a_search_is_coloured_as_ripgrep_does(tmp_path, capsys, ours, theirs):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/b.py").write_text("import os\nimport re, import\n\nfour\nfive\nsix or so\n")
    (tmp_path / "a b.txt").write_text("caf\u00e9 at the import\n1|import\n")
    command = [program("rg"), "--color=always", "--heading", "-n", "--field-match-separator=|", "--sort=path"]
    judge = subprocess.run([*command, *theirs], cwd=tmp_path, capture_output=True, text=True, check=True)
    context = [] if "--context" in ours else ["--context", "0"]
    shown = cells(painted("grep", *ours, *context, "--root", str(tmp_path), capsys=capsys))
    assert [line for line in shown if line and line[0] != ("[", "2")] == list(
        filter(None, cells(judge.stdout))
    )


def test_directories_and_links_are_coloured_as_ls_does(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("LS_COLORS", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    (tmp_path / "folder").mkdir()
    (tmp_path / "to folder").symlink_to("folder")
    (tmp_path / "to file").symlink_to("plain.txt")
    (tmp_path / "plain.txt").write_text("")
    (tmp_path / "  odd").write_text("")
    judge = subprocess.run(
        ["ls", "-1", "--color=always"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    if judge.returncode:
        pytest.skip("the system's ls has no --color")
    names = {SGR.sub("", line): {codes for _, codes in cells(line)[0]} for line in judge.stdout.splitlines()}
    listed = cells(painted("ls", "--root", str(tmp_path), capsys=capsys))
    for name, codes in names.items():
        [line] = [line for line in listed if "".join(char for char, _ in line).startswith(name)]
        assert {code for _, code in line[: len(name)]} == codes, name
        assert {code for _, code in line[len(name) :]} <= {""}, name


def test_ls_colors_is_obeyed_and_cannot_write_to_the_terminal(tmp_path, capsys, monkeypatch):
    (tmp_path / "folder").mkdir()
    monkeypatch.setenv("LS_COLORS", "rs=0:di=38;5;33:ln=target")
    assert "\x1b[38;5;33mfolder\x1b[0m/" in painted("ls", "--root", str(tmp_path), capsys=capsys)
    monkeypatch.setenv("LS_COLORS", "di=1m\x1b[2J:ex=")
    assert "\x1b[01;34mfolder\x1b[0m/" in painted("ls", "--root", str(tmp_path), capsys=capsys)


def test_a_patch_is_coloured_as_git_does(tmp_path, capsys):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.txt").write_text("-- one\ntwo\n")
    with Workspace(tmp_path / "work", state=tmp_path / "state") as ws:
        ws.edit("a.txt", "-- one", "++ one")
        ws.write("b.txt", "new\n")
    text = painted("diff", "--state", str(tmp_path / "state"), capsys=capsys)
    codes = {"".join(char for char, _ in line): {code for _, code in line} for line in cells(text) if line}
    assert codes["--- a/a.txt"] == codes["+++ b/b.txt"] == codes["diff --git a/a.txt b/a.txt"] == {"1"}
    assert codes["@@ -1,2 +1,2 @@"] == {"36"}
    assert (codes["--- one"], codes["+++ one"], codes[" two"], codes["+new"]) == (
        {"31"},
        {"32"},
        {""},
        {"32"},
    )
    main(["diff", "--state", str(tmp_path / "state")])
    assert SGR.sub("", text) == capsys.readouterr().out


EACH = (
    ["ls"], ["ls", "--depth", "0"], ["find"], ["glob", "**/*"], ["grep", "x|1"], ["read", "1-x.txt"],
    ["grep", "1", "--output-mode", "count"], ["grep", "1", "--output-mode", "files_with_matches"],
    ["grep", "1", "--output-mode", "summary"], ["grep", "1", "--line-ids"],
    ["grep", "1", "--no-line-numbers"],
    ["grep", "x\\n1", "--multiline"], ["call", "grep", '{"pattern": "1"}'], ["grep", "none"],
    ["call", "Grep", '{"pattern": "1"}', "--dialect", "wave"], ["edit", "1-x.txt", "x", "y", "--preview"],
)  # fmt: skip


@pytest.mark.parametrize("command", EACH, ids=" ".join)
def test_colours_add_nothing_but_colours(tmp_path, capsys, monkeypatch, command):
    for name in (
        "1-x.txt",
        "  1|x",
        "sub/1: 3",
        "sub/x/12",
        "\u27e6U+202E\u27e7",
        "e\u0301\u200d1",
        *map(str, range(25)),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("x\n1|x1\n\n[x]\ne\u200d\u2764\ufe0f1\n")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)  # another gets data in place of the text
    status = main([*command, "--root", str(tmp_path), "--color", "never"])
    plain = capsys.readouterr().out
    again = main([*command, "--root", str(tmp_path), "--color", "always"])
    assert (SGR.sub("", capsys.readouterr().out), again) == (plain, status)
    assert "\x1b" not in plain


@pytest.mark.full
def test_colour_is_for_a_terminal_only(tree):
    assert "\033[32m1\033[0m|import os" in on_a_terminal(tree, "read", "a.py")
    assert "\033[31m-import nothing" in on_a_terminal(tree, "edit", "b.txt", "nothing", "x", "--preview")
    assert "\033" not in on_a_terminal(tree, "read", "a.py", NO_COLOR="1")
    assert "\033" in on_a_terminal(tree, "read", "a.py", NO_COLOR=""), "as no-color.org has it"
    assert "\033" not in on_a_terminal(tree, "read", "a.py", TERM="dumb")
    assert "\033" not in on_a_terminal(tree, "ls", "--color", "never")
    assert "\033" in on_a_terminal(tree, "ls", "--color", "always", NO_COLOR="1")
    assert "\033" not in on_a_terminal(tree, "ls", "--json", "--color", "always")
    assert "\033" not in run(tree, lambda: main(["ls"]), terminals=("stderr",))[0]


def searched(tree, after: float, seconds: float, *arguments: str, terminal: bool = True) -> tuple[str, str]:
    """Run a command that shows progress after some seconds and whose calls take some seconds longer."""

    def slow() -> int:
        progress.PROGRESS_AFTER = after
        call = Toolset.call

        def slow_call(*given: object) -> object:
            try:
                return call(*given)
            finally:
                time.sleep(seconds)

        Toolset.call = slow_call
        return main(arguments)

    return run(tree, slow, terminals=("stderr",) if terminal else ())


def test_progress_is_on_standard_error_of_a_terminal_and_cleared(tree):
    """Progress is shown after half a second; here sooner, so that the tree need not be large."""
    for number in range(700):
        (tree / "sub" / f"{number}.txt").write_text("x\n")
    found, shown = searched(tree, 0.05, 0.25, "grep", "import")
    assert re.search(r"\rlooked at [\d,]+ entries, \d+ s\x1b\[K", shown)
    assert shown.endswith("\r\x1b[K"), "the line is cleared"
    assert "\r" not in found
    assert "entries" not in found
    assert searched(tree, 0.05, 0.25, "grep", "import", terminal=False) == (found, "")
    assert searched(tree, 0.05, 0.25, "grep", "import", "--json")[0].startswith("{")
    shown = searched(tree, 0.05, 0.25, "call", "grep", json.dumps({"pattern": "import"}))[1]
    assert re.search(r"looked at [\d,]+ entries, ", shown)


def test_a_call_that_ends_soon_shows_no_progress(tree):
    assert progress.PROGRESS_AFTER == 0.5
    assert searched(tree, 30, 0, "grep", "import")[1] == ""


def test_a_failure_follows_a_cleared_line(tree):
    shown = searched(tree, 0.05, 0.3, "read", "missing.txt")[1]
    assert re.search(r"working, 0 s\x1b\[K.*\r\x1b\[K\S", shown, re.DOTALL)
    assert "missing.txt" in shown


@pytest.mark.full
def test_connecting_to_a_host_shows_progress(tree):
    slow = f"sh -c 'sleep 0.2; exec {sys.executable} -m agentfs serve --root {tree}'"
    arguments = ("call", "read", json.dumps({"path": "b.txt"}), "--connect", slow, "--root", str(tree))
    found, shown = searched(tree, 0.05, 0, *arguments)
    assert "1|import nothing" in found
    assert re.search(r"\rconnecting: sh ", shown)
    assert shown.endswith("\r\x1b[K")


async def test_the_first_search_of_a_watched_workspace_reports_progress(tmp_path):
    for number in range(700):
        (tmp_path / f"{number}.txt").write_text("x\n")
    seen: list[int] = []
    with Workspace(tmp_path, watch=True) as ws:
        await ws.tools().acall("grep", {"pattern": "x"}, on_progress=seen.append)
    assert 500 <= seen[0] <= 700


def test_the_version_is_printed(tree):
    assert run_command("--version", cwd=tree).stdout == f"agentfs {__version__}\n"


# --- line 16 of issue 41: a traceback on a terminal ---

ARGUMENTS = {
    "path": ".", "file_path": "a.py", "files": ["a.py"], "roots": ["."], "dir": ".", "pattern": "import",
    "query": "import", "command": "view", "start_line": 1, "end_line": 1, "limit": 2,
}  # fmt: skip


@pytest.mark.parametrize("dialect", ["agentfs", *dialect_names()])
def test_a_terminal_gets_the_text_of_every_reading_tool_of_every_dialect(tree, capsys, monkeypatch, dialect):
    """Line 16: codescout's and dominds' `list_dir`, `find_file` and rye's `ls` were a traceback."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    (tree / "sub/deep").mkdir()
    (tree / "sub/deep/c.txt").write_text("import c\n")
    with Workspace(tree) as ws:
        tools = list(ws.tools(dialect=dialect))
    for tool in tools:
        known = [each for each in tool.parameters if each.name in ARGUMENTS]
        if tool.effect not in READING and "command" not in {each.name for each in known}:
            continue
        for some in (known, [each for each in known if each.required]):
            given = {each.name: ARGUMENTS[each.name] for each in some}
            with Workspace(tree) as ws:
                expected = ws.tools(dialect=dialect).call(tool.name, given).content
            for color in ("never", "always"):
                main(
                    [
                        "call",
                        tool.name,
                        json.dumps(given),
                        "--root",
                        str(tree),
                        "--color",
                        color,
                        "--dialect",
                        dialect,
                    ]
                )
                shown = SGR.sub("", "".join(capsys.readouterr()))
                assert times_left_out(shown) == times_left_out(f"{expected}\n"), (tool.name, given, color)


def times_left_out(text):
    return re.sub(r'_ms": \d+', '_ms": ', text)


@pytest.mark.parametrize(
    ("dialect", "name", "arguments"),
    [
        ("codescout", "list_dir", {"path": ".", "detail_level": "full"}),
        ("codescout", "find_file", {"pattern": "**/*.py"}),
        ("dominds", "list_dir", {"path": "."}),
        ("rye", "ls", {"path": "."}),
        ("rye", "glob", {"pattern": "*.py"}),
    ],
)
def test_the_listings_of_dialects_are_shown_on_a_terminal(tree, dialect, name, arguments):
    for number in range(1200):  # more than a page
        (tree / f"b{number}.py").touch()
    shown = on_a_terminal(tree, "call", name, json.dumps(arguments), "--dialect", dialect)
    assert "a.py" in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize("command", [["ls", "-l"], ["grep", "-o", ".*a.*"], ["grep", "-oc", "a"]])
def test_a_long_listing_and_matched_parts_have_no_control_characters(tmp_path, command):
    """Attack: names and texts of a tree act on the terminal, which lists for programs would let them do."""
    (tmp_path / f"{HOSTILE}.txt").write_text(f"{HOSTILE}\n")
    text = on_a_terminal(tmp_path, *command)
    assert [char for char in text if not char.isprintable() and char not in "\r\n"] == []
    assert "\u27e6U+001B\u27e7[31m" in text
