"""Output on a terminal: no control characters."""

import json
import os
import pty
import re
import sys
import tempfile
from contextlib import suppress

import pytest

from agentfs import Workspace, __version__
from agentfs.cli import main
from agentfs.cli.output import print_error
from agentfs.dialects import names as dialect_names
from agentfs.permissions import READING
from tests.forked import forked, run_command, text_of
from tests.test_cli import tree

__all__ = ["tree"]  # a fixture


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
def test_regression_a_terminal_gets_no_control_characters_from_diff_and_log(tree):
    """Attack: a file that an agent was led to write acts on the terminal of whoever looks at the diff."""
    (tree / "work").mkdir()
    with Workspace(tree / "work", state=tree / "state") as ws:
        ws.write("a.txt", f"{HOSTILE}\n")
        ws.write("latin.txt", "caf\xe9 \x9b2J\n", encoding="latin-1")
        ws.write(f"name{HOSTILE}.txt", "x\n")
        ws.checkpoint(HOSTILE)
        patch = ws.changes().patch
    state = ["--state", str(tree / "state")]
    for command in ("diff", "log", "diff --json", "log --json", "review", "call undo", "call redo"):
        text = on_a_terminal(tree, *command.split(), *state).replace("\r\n", "\n")
        assert [char for char in text if not char.isprintable() and char != "\n"] == [], command
    shown = on_a_terminal(tree, "diff", *state)
    assert "+a⟦U+001B⟧[31m⟦U+009B⟧2J⟦U+202E⟧b⟦U+0007⟧⟦U+000D⟧" in shown
    reviewed = on_a_terminal(tree, "review", *state)
    assert "⟦U+001B⟧[3" in reviewed
    assert "⟦U+001B⟧[0m" not in reviewed, "no code of a colour is shown as text"
    piped = os.fsencode(run_command("diff", *state, cwd=tree).stdout)
    assert (piped, b"\x1b[31m" in piped) == (patch, True), "a pipe gets it byte for byte"


def test_a_terminal_gets_no_control_characters_from_a_dialect(tree):
    (tree / "a.txt").write_text(f"{HOSTILE}\n")
    arguments = json.dumps({"path": "a.txt"})
    for options in ([], ["--json"]):
        text = on_a_terminal(tree, "call", "--dialect", "rye", "read", arguments, *options)
        assert [char for char in text if not char.isprintable() and char not in "\r\n"] == []


async def test_the_first_search_of_a_watched_workspace_reports_progress(tmp_path):
    for number in range(700):
        (tmp_path / f"{number}.txt").write_text("x\n")
    seen: list[int] = []
    with Workspace(tmp_path, watch=True) as ws:
        await ws.tools().acall("grep", {"pattern": "x"}, on_progress=seen.append)
    assert 500 <= seen[0] <= 700


def test_the_version_is_printed(tree):
    assert run_command("--version", cwd=tree).stdout == f"agentfs {__version__}\n"


@pytest.mark.parametrize("terminals", [("stderr",), ()], ids=["terminal", "file"])
def test_an_error_has_control_characters_only_in_a_file(tree, terminals):
    _, error = run(tree, lambda: print_error(HOSTILE), terminals=terminals)
    assert ("\x1b" in error) is (not terminals)
    assert error.startswith("a")


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
            main(["call", tool.name, json.dumps(given), "--root", str(tree), "--dialect", dialect])
            shown = "".join(capsys.readouterr())
            assert times_left_out(shown) == times_left_out(f"{expected}\n"), (tool.name, given)


def times_left_out(text):
    return re.sub(r'_ms": \d+', '_ms": ', text)
