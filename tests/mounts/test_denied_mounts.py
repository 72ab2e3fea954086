"""Attacks: nothing of a mount that is denied leaks into answers, errors, suggestions, history and patches."""

import json
from pathlib import Path

import pytest

from agentfs import AgentFSError, Mount, Policy, Workspace
from tests.conftest import needs

NAMES = ("merger", "acquire", "zebra", "codename")  # a directory, a file, a word in it, an ignored name


@pytest.fixture
def places(tmp_path: Path) -> Path:
    for name, text in {
        "root/src/a.py": "needle\n",
        "vault/merger/acquire.md": "needle zebra\n",
        "vault/.gitignore": "codename*\n",
        "vault/codename.txt": "needle zebra\n",
        "open/n.md": "needle\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def opened(places: Path, **options) -> Workspace:
    mounts = {"deps/vault": Mount(places / "vault", deny=["*"]), "open": Mount(places / "open")}
    return Workspace(places / "root", mounts=mounts, **options)


def said(call, *given, **named) -> str:
    """Return all that a caller learns: the text and data of a result, or those of an error."""
    try:
        result = call(*given, **named)
    except AgentFSError as error:
        return f"{error} {error.hint} {json.dumps(error.details, default=str)}"
    return f"{result} {json.dumps(result.to_dict(), default=str)}"


CALLS = {
    "read": ("deps/vault/merger/acquire.md",),
    "read_a_misspelt_name": ("deps/vault/merger/acquir.md",),
    "read_a_misspelt_directory": ("deps/vault/mergr/acquire.md",),
    "read_many": (["deps/vault/merger/acquire.md", "src/a.py"],),
    "edit": ("deps/vault/merger/acquire.md", "needle", "pin"),
    "edit_of_missing_text": ("deps/vault/merger/acquire.md", "needle zebr", "pin"),
    "write": ("deps/vault/merger/acquire.md", "x"),
    "delete": ("deps/vault", True),
    "copy": ("deps/vault/merger/acquire.md", "src/b.py"),
    "move": ("deps/vault/merger", "src/merger2"),
    "replace": ("needle", "pin"),
    "grep": ("zebra",),
    "grep_there": ("zebra", "deps/vault"),
    "grep_a_misspelt_word": ("zebr a",),
    "glob": ("**/*acq*",),
    "glob_there": ("*", "deps/vault"),
    "find": (".", "codenam"),
    "ls": ("deps/vault",),
    "ls_all": (".", 0),
    "stat": ("deps/vault/merger/acquire.md",),
    "changes": (),
}


@pytest.mark.parametrize("watch", [False, "calls"])
@pytest.mark.parametrize("name", CALLS)
def test_a_denied_mount_names_nothing_of_it(places, name, watch):
    given = CALLS[name]
    with opened(places, watch=watch) as workspace:
        for _ in range(2):
            method = next(each for each in (name, name.split("_")[0]) if hasattr(workspace, each))
            shown = said(getattr(workspace, method), *given)
            for asked in map(str, given):  # the caller knows what it has asked for
                shown = shown.replace(asked, "").replace(Path(asked).name, "")
            for part in str(given).replace("'", "/").split("/"):
                shown = shown.replace(part, "") if len(part) > 3 else shown
            assert not [each for each in NAMES if each in shown], shown


def test_the_history_of_a_mount_that_is_denied_now_is_not_shown(places):
    state = places / "state"
    mounts = {"deps/vault": Mount(places / "vault")}
    with Workspace(places / "root", mounts=mounts, state=state) as workspace:
        workspace.edit("deps/vault/merger/acquire.md", "zebra", "quagga")
        workspace.edit("src/a.py", "needle", "pin")
    with opened(places, state=state) as workspace:
        for call in (workspace.changes, workspace.review, lambda: workspace.changes(["deps/vault"])):
            shown = said(call)
            assert "zebra" not in shown
            assert "quagga" not in shown
        assert "quagga" not in said(workspace.undo, 2)
    assert (places / "vault" / "merger" / "acquire.md").read_text() == "needle quagga\n"


def test_a_recording_shows_nothing_of_a_denied_mount(places):
    with opened(places) as workspace:
        with workspace.recording("by others") as recorded:
            (places / "vault" / "merger" / "acquire.md").write_text("zebra changed\n")
        assert "zebra" not in str(recorded.result)
        assert "zebra" not in said(workspace.changes)


@needs("bwrap")
def test_a_staged_command_cannot_change_a_denied_mount(places):
    with opened(places, policy=Policy(run="staged")) as workspace:
        shown = said(
            workspace.run, "cat deps/vault/merger/acquire.md; echo x >> deps/vault/merger/acquire.md"
        )
        assert "zebra" not in shown
    assert (places / "vault" / "merger" / "acquire.md").read_text() == "needle zebra\n"


@needs("bwrap")
def test_a_mounted_hard_link_of_a_hidden_file_is_hidden_from_commands(places):
    (places / "root" / ".env").write_text("KEY=1\n")
    (places / "same.txt").hardlink_to(places / "root" / ".env")
    mounts = {"same.txt": Mount(places / "same.txt")}
    with Workspace(places / "root", mounts=mounts, policy=Policy(run="staged")) as workspace:
        assert workspace.run("cat same.txt .env").stdout == b""


def test_a_watched_walk_of_the_program_opens_no_denied_mount_to_a_model(places):
    """The kept walk of a call that may enter a mount is not repeated for one that may not, or the reverse."""
    with opened(places, watch="calls") as workspace:
        for _ in range(2):
            assert "deps/vault/merger/acquire.md" in [each.path for each in workspace.host.glob("**").files]
            assert "vault/" not in workspace.glob("**").text
