"""`Policy.after_change`: functions that format or check a text before it is written."""

import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agentfs import AfterChange, AgentFSError, Policy, Workspace
from agentfs.results import Origin
from tests.kit import refused

RUFF = shlex.quote(shutil.which("ruff", path=str(Path(sys.executable).parent)) or "ruff")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.py").write_text("import sys\n\nx = 1\ny = 2\n")
    return root


FORMAT = AfterChange(
    "*.py", lambda path, text: text.replace("=", " = ").replace("  ", " ").replace("  ", " ")
)


def upper(path: str, text: str) -> str:
    return text.upper()


def by_ruff(ws: Callable[[], Workspace]) -> list[AfterChange]:
    """Return a formatter and a check that run a program by `ws.host.run`, as the page does."""

    def formatted(path: str, text: str) -> str:
        done = ws().host.run(f"{RUFF} format --no-cache --stdin-filename {shlex.quote(path)} -", stdin=text)
        assert done.exit_status == 0
        return done.stdout.decode()

    def checked(path: str, text: str) -> list[str]:
        command = f"{RUFF} check --no-cache --output-format concise --stdin-filename {shlex.quote(path)} -"
        return [
            line for line in ws().host.run(command, stdin=text).stdout.decode().splitlines() if path in line
        ]

    return [AfterChange("*.py", formatted), AfterChange("*.py", checked)]


def test_programs_run_by_the_host_format_and_check(top: Path):
    policy = Policy(after_change=by_ruff(lambda: ws), run="recorded")
    with Workspace(top, policy=policy) as ws:
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


def test_no_lock_is_held_while_a_function_runs(top: Path):
    """Another call changes the same file meanwhile, and the edit is computed again."""
    texts: list[str] = []

    def slow(path: str, text: str) -> str:
        texts.append(text)
        if len(texts) == 1:
            with Workspace(top) as other:
                other.edit("a.py", "y = 2", "y = 3")
        return text.upper()

    with Workspace(top, policy=Policy(after_change=[AfterChange("a.py", slow)])) as ws:
        ws.edit("a.py", "x = 1", "z = 1")
    assert (top / "a.py").read_text() == "IMPORT SYS\n\nZ = 1\nY = 3\n"
    assert "y = 3" in texts[-1]


def test_write_replace_append_and_transactions_are_formatted(top: Path):
    (top / "b.txt").write_text("x=1\n")
    with Workspace(top, policy=Policy(after_change=[FORMAT])) as ws:
        assert "+z = 1" in str(ws.write("c.py", "z=1\n"))
        ws.append("c.py", "w=2\n")
        ws.replace("1", "1+1")
        with ws.transaction() as staged:
            staged.edit("c.py", "w = 2", "w=2+2")
        assert (top / "c.py").read_text() == "z = 1+1\nw = 2+2\n"
        assert (top / "a.py").read_text() == "import sys\n\nx = 1+1\ny = 2\n"
        assert (top / "b.txt").read_text() == "x=1+1\n"
        ws.write("c.py", "z=3\n")  # every line of what was written counts as seen
        # The text before the formatter is not there.
        refused(lambda: ws.edit("c.py", "z=3", "z=4"), "no_match")


def test_functions_filter_and_check(top: Path, tmp_path: Path):
    lines = AfterChange("a.py", lambda path, text: [f"{path}:1: {len(text)}"] * 2)
    policy = Policy(after_change=(AfterChange("*.py", upper), lines))
    with Workspace(top, state=tmp_path / "state", policy=policy) as ws:
        result = ws.edit("a.py", "x = 1", "z = 1")
        assert result.changed == ((1, 1), (3, 4))
        assert (top / "a.py").read_text() == "IMPORT SYS\n\nZ = 1\nY = 2\n"
        assert result.notes == ()  # the same findings as before
        hunks = ws.review().hunks
        assert [hunk.origins[0] for hunk in hunks] == [Origin("formatter", "upper")] * 2
    with Workspace(top, state=tmp_path / "state") as ws:
        assert ws.review().hunks == hunks


def test_only_findings_that_are_new_are_noted(top: Path):
    def findings(path: str, text: str) -> list[str]:
        lines = text.split("\n")
        return [f"{path}:{number}: {line}" for number, line in enumerate(lines) if "bad" in line]

    (top / "a.py").write_text("bad\nx\n")
    with Workspace(top, policy=Policy(after_change=[AfterChange("*", findings)])) as ws:
        assert ws.write("a.py", "new\nbad\nx\n", overwrite=True).notes == ()
        (note,) = ws.write("a.py", "bad\n" * 30, overwrite=True).notes
        assert note.endswith("[9 more lines]")


@pytest.mark.parametrize("returned", ["", "a\0b", b"text", 3, None])
def test_a_function_that_returns_no_text_leaves_the_edit(top: Path, returned: object):
    with Workspace(top, policy=Policy(after_change=[AfterChange("*", lambda *_: returned)])) as ws:  # type: ignore[arg-type, return-value] # a wrong one
        said = "".join(ws.edit("a.py", "x = 1", "z=1").notes)
        assert ("no usable text" in said) is (returned is not None)
        assert (top / "a.py").read_text() == "import sys\n\nz=1\ny = 2\n"


def test_nothing_runs_for_a_preview_or_another_file(top: Path):
    def fail(path: str, text: str) -> str:
        raise AssertionError(path)

    with Workspace(top, policy=Policy(after_change=[AfterChange("*.py", fail)])) as ws:
        assert ws.edit("a.py", "x = 1", "z = 1", preview=True).notes == ()
        ws.write("b.txt", "b\n")
        assert "AssertionError" in ws.edit("a.py", "x = 1", "z = 1").notes[0]
        assert "after_change" not in str(ws.tools("all").schemas())


def test_what_the_encoding_cannot_hold_is_not_written(top: Path):
    (top / "a.py").write_bytes("# -*- coding: latin-1 -*-\né = 1\n".encode("latin-1"))
    euro = AfterChange("*.py", lambda path, text: text + "# €\n")
    with Workspace(top, policy=Policy(after_change=[euro])) as ws:
        assert "was not written" in ws.edit("a.py", "= 1", "= 2", encoding="latin-1").notes[-1]
    assert (top / "a.py").read_bytes().endswith("é = 2\n".encode("latin-1"))


@pytest.mark.parametrize(("glob", "function"), [("", upper), ("*", "ruff"), ("*", ["ruff"]), (3, upper)])
def test_wrong_settings_are_refused(glob: object, function: object):
    with pytest.raises(AgentFSError, match="AfterChange"):
        AfterChange(glob, function)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    with pytest.raises(AgentFSError, match="after_change"):
        Policy(after_change=[upper])  # type: ignore[list-item] # pyright: ignore[reportArgumentType]


def test_the_user_is_asked_about_the_formatted_text(top: Path):
    asked: list[str] = []
    policy = Policy(on_ask=lambda request: asked.append(request.diff) or True, after_change=[FORMAT])
    with Workspace(top, policy=policy) as ws:
        ws.edit("a.py", "x = 1", "z=1")
    assert (top / "a.py").read_text() == "import sys\n\nz = 1\ny = 2\n"
    assert ["+z = 1\n" in each for each in asked] == [True]
