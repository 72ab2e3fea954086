"""Mounts on the command line, in policy files, over `connect` and MCP, and in commands."""

import os
import sys
from pathlib import Path

import pytest

import agentfs
from agentfs import AfterChange, Limits, Mount, Policy, Workspace
from agentfs.cli import main
from agentfs.cli.command_options import CommandOptions
from agentfs.cli.policy_file import read_policy_file, settings_of
from tests import kit
from tests.conftest import needs
from tests.remote.over_pipe import open_pipe


@pytest.fixture
def places(tmp_path: Path) -> Path:
    return kit.put(tmp_path, ("root/a.py", "lib/b.py", "notes/n.md"), "needle\n")


def agent(capsys, *words: str) -> tuple[int, str]:
    try:
        status = main([*words])
    except SystemExit as end:
        status = int(end.code)
    captured = capsys.readouterr()
    return status, captured.out + captured.err


def test_the_option_mount(places, capsys):
    root, lib = ("--root", str(places / "root")), f"lib={places / 'lib'}:ro"
    found = agent(capsys, "call", "grep", "pattern=needle", *root, "--mount", lib)[1]
    assert found.count("needle") == 2
    status, said = agent(capsys, "call", "write", "path=lib/x", "content=y", *root, "--mount", lib)
    assert (status, "read-only" in said) == (2, True)
    assert "invalid mount value: 'x'" in agent(capsys, "call", "ls", *root, "--mount", "x")[1]


@pytest.mark.parametrize("process", [False, pytest.param(True, marks=pytest.mark.full)])
def test_connect_mounts_directories_of_the_remote_side(places, process):
    mounts = {"lib": Mount(places / "lib", read_only=True), "notes": Mount(places / "notes")}
    serve = [sys.executable, "-m", "agentfs", "serve", "--root", str(places / "root")]
    serve += ["--mount", f"lib={places / 'lib'}:ro", "--mount", f"notes={places / 'notes'}"]
    command = serve if process else open_pipe(mounts=mounts)
    with agentfs.connect(command, "." if process else places / "root") as workspace:
        assert [*workspace.mounts] == ["lib", "notes"]
        assert "lib/  (read-only mount)" in workspace.ls().text
        assert [each.path for each in workspace.grep("needle").matches] == ["a.py", "lib/b.py", "notes/n.md"]
        workspace.edit("notes/n.md", "needle", "pin")
        kit.refused(lambda: workspace.edit("lib/b.py", "needle", "pin"), "read_only")
    assert (places / "notes" / "n.md").read_text() == "pin\n"


def test_the_mounts_of_a_policy_file(places):
    file = places / "policy.toml"
    file.write_text('[mounts]\nnotes = "notes"\nlib = "lib:ro"\n')
    mounts = read_policy_file(str(file), Limits()).mounts
    assert {path: (each.source, each.read_only) for path, each in mounts.items()} == {
        "notes": (str(places / "notes"), False),
        "lib": (str(places / "lib"), True),
    }
    file.write_text(f'[mounts]\nabove = "{places}"\n')
    options = CommandOptions(root=str(places / "root"), policy=str(file))
    assert "a model could use it" in str(kit.error_of(settings_of, options, Limits()))


async def test_an_mcp_server_has_the_mounts_of_its_policy_file(places):
    from tests.mcp.servers import client, told

    file = places / "policy.toml"
    file.write_text('deny = ["read(*.key)"]\n[mounts]\nlib = "lib:ro"\n')
    (places / "lib" / "x.key").write_text("needle\n")
    async with client(places / "root", "--policy", str(file)) as connected:
        found = told(await connected.call_tool("grep", {"pattern": "needle"}))
        assert "lib/b.py" in found
        assert "x.key" not in found
        refused = await connected.call_tool("write", {"path": "lib/x", "content": "y"})
        assert "read-only" in told(refused)


def test_a_stored_tree_as_a_mount(places):
    """Files of an object store beside the project: read, searched, changed and pushed."""
    obstore = pytest.importorskip("obstore")
    from agentfs.store import StoredTree

    store = obstore.store.MemoryStore()
    obstore.put(store, "guide/start.md", b"needle stored\n")
    stored = StoredTree(store, places / "cache")
    stored.pull()
    with Workspace(places / "root", mounts={"shared": Mount(stored)}) as workspace:
        assert [each.path for each in workspace.grep("needle").matches] == ["a.py", "shared/guide/start.md"]
        workspace.edit("shared/guide/start.md", "needle", "pin")
        workspace.write("shared/new.md", "x\n")
        assert {*stored.push().pushed} == {"guide/start.md", "new.md"}
        assert bytes(obstore.get(store, "guide/start.md").bytes()) == b"pin stored\n"
        workspace.undo(2)
        assert stored.push().deleted == ("new.md",)
        assert bytes(obstore.get(store, "guide/start.md").bytes()) == b"needle stored\n"
    with Workspace(places / "root", mounts={"shared": Mount(stored, read_only=True)}) as workspace:
        kit.refused(lambda: workspace.write("shared/x", "y"), "read_only")


@needs("bwrap")
def test_a_staged_command_sees_the_mounts(places):
    mounts = {"lib": Mount(places / "lib", read_only=True), "notes": Mount(places / "notes")}
    policy = Policy(run="staged", deny=["change(notes/kept.md)"])
    (places / "notes" / ".env").write_text("KEY=1\n")
    notes = sorted(os.listdir(places / "notes"))
    with Workspace(places / "root", mounts=mounts, policy=policy) as workspace:
        ran = workspace.run("cat lib/b.py notes/n.md; touch lib/x; rm a.py; echo new > notes/x.md")
        assert ran.stdout == b"needle\nneedle\n"
        assert b"Read-only" in ran.stderr
        assert os.listdir(places / "lib") == ["b.py"]
        assert sorted(os.listdir(places / "notes")) == [*notes, "x.md"]
        workspace.undo()
        assert (places / "root" / "a.py").exists()
        kit.refused(lambda: workspace.run("touch notes/other.md notes/kept.md"))
        assert sorted(os.listdir(places / "notes")) == notes
        assert workspace.run("cat notes/.env").stdout == b"", "it is protected"
        assert workspace.run("cat notes/n.md", cwd="notes").exit_status == 1
        assert workspace.run("cat n.md", cwd="notes").stdout == b"needle\n"


@pytest.mark.parametrize("path", ["notes/n.md", "notes/new.md"])
def test_formatters_and_checks_run_on_files_of_a_mount(places, path):
    rules = [
        AfterChange("*", lambda path, text: text.replace("=", "==")),
        AfterChange("*", lambda path, text: [f"{path}:1:{text}"] if "bad" in text else []),
    ]
    mounts = {"notes": Mount(places / "notes")}
    policy = Policy(overwrite="always", after_change=rules)
    with Workspace(places / "root", mounts=mounts, policy=policy) as workspace:
        assert f"{path}:1:bad == 2" in workspace.write(path, "bad = 2\n").text
    assert (places / path).read_text() == "bad == 2\n"


def test_a_recorded_command_is_recorded_in_mounts(places):
    mounts = {"notes": Mount(places / "notes")}
    with Workspace(places / "root", mounts=mounts, policy=Policy(run="recorded")) as workspace:
        workspace.run(f"echo x > {places / 'notes' / 'x.md'}")
        assert "notes/x.md" in workspace.changes().text
        workspace.run("echo y > y.md", cwd="notes")
        workspace.undo(2)
    assert os.listdir(places / "notes") == ["n.md"]
