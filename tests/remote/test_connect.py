"""A remote workspace over a pipe: the behaviour of a local workspace, and the parts that only connect has."""

import asyncio
import gc
import inspect
import json
import subprocess
import sys
import threading
from dataclasses import fields, replace
from enum import IntEnum
from pathlib import Path

import pytest

from agentfs import Deny, Limits, LineChange, Mount, Policy, Protect, Workspace, connect
from agentfs.errors import DisconnectedError, InvalidArgumentError, RefusedError
from agentfs.remote.narrow import narrowed
from tests import kit
from tests.kit import refused
from tests.remote.over_pipe import open_pipe

ROOT = Path(__file__).parents[2]


@pytest.fixture
def remote(tmp_path):
    with connect(open_pipe(), tmp_path) as workspace:
        yield workspace


def test_signatures_docstrings_and_schemas_equal_those_of_a_local_workspace(remote, tmp_path):
    with Workspace(tmp_path) as local:
        for format_ in ("openai", "anthropic", "mcp"):
            assert remote.tools("all").schemas(format_) == local.tools("all").schemas(format_)
        assert remote.tools().instructions() == local.tools().instructions()
        for name in [*local.tools("all").names, "stat", "forget"]:
            there, here = getattr(remote, name), getattr(local, name)
            assert inspect.signature(there) == inspect.signature(here)
            assert there.__doc__ == here.__doc__


PROPERTIES = [name for name, each in vars(Workspace).items() if isinstance(each, property) and name[0] != "_"]


@pytest.mark.parametrize("name", PROPERTIES)
def test_regression_each_public_property_is_that_of_a_local_workspace(tmp_path, name):
    """`mounts` raised AttributeError."""
    root = tmp_path / "root"
    for directory in (tmp_path / "lib", root / "src"):
        directory.mkdir(parents=True)
    mounts = {"deps": Mount(str(tmp_path / "lib"), read_only=True)}
    server = open_pipe(mounts=mounts, policy=Policy(deny=["delete"]))
    with Workspace(root, mounts=mounts) as local, connect(server, root) as remote:
        if name == "host":
            with pytest.raises(RefusedError, match="no `host`"):
                remote.host.ls()
            return
        assert getattr(remote, name) == getattr(local, name)
        views = [ws.view(workdir="src") for ws in (remote, local)]
        assert getattr(views[0], name) == getattr(views[1], name)


def test_regression_what_a_local_workspace_does(remote, tmp_path):
    """`branches` raised AttributeError, bytes-like data was a list, and a note on the exception was lost."""
    assert remote.branches() == []
    for data in (bytearray(b"a\n"), memoryview(b"b\n")):
        remote.write_bytes("a.txt", data)
        assert (tmp_path / "a.txt").read_bytes() == data
    with pytest.raises(KeyError) as caught, remote.transaction() as changes:  # noqa: PT012 - of the block
        changes.write_bytes("a.txt", b"c\n")
        (tmp_path / "a.txt").write_text("theirs\n")
        raise KeyError
    assert caught.value.__notes__ == ['Changed by others meanwhile, so not taken back: "a.txt"']


def test_regression_an_abandoned_block_says_nothing_about_a_lost_connection(remote, monkeypatch):
    """Its error reached nobody but the interpreter."""
    said: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    block = remote.transaction()
    block.__enter__()
    remote.close()
    del block
    gc.collect()
    assert said == []


def test_regression_a_command_in_one_text_is_named(tmp_path):
    """It said "No such file or directory: 'a'"."""
    with pytest.raises(DisconnectedError, match="'agentfs serve'"):
        connect("agentfs serve", tmp_path)


def test_its_policy_and_limits_are_the_effective_ones(tmp_path):
    own = Policy(read_only=True, deny=["delete"], protect=Protect(read=[*Protect.READ, "*.secret"]))
    limits = Limits(read_lines=5)
    with connect(open_pipe(policy=own), tmp_path, limits=limits, policy=Policy(deny=["move"])) as ws:
        assert ws.limits == limits
        assert ws.policy.read_only
        assert ws.policy.deny == ("delete", "move")
        assert "*.secret" in ws.policy.protect.read
        view = ws.view(policy=replace(ws.policy, mode="plan"), limits=Limits())
        assert (view.policy.mode, view.policy.read_only, view.limits) == ("plan", True, Limits())


@pytest.mark.full
def test_a_search_with_as_many_matches_as_a_call_may_keep_has_the_local_answer(tmp_path):
    """80,000 matches were answered locally and refused remotely."""
    for number in range(4):
        line = ("needle {} in a line of a file", "needle {} — в строке файла", "needle 🪡 {}")[number % 3]
        text = "".join(f"{line.format(each)}\n" for each in range(number * 35_000, (number + 1) * 35_000))
        (tmp_path / f"{number}.txt").write_text(text)
    limits = Limits(timeout=300)
    with connect(open_pipe(), tmp_path, limits=limits) as remote, Workspace(tmp_path) as local:
        far, near = (ws.grep("needle", limit=10_000_000, timeout=300) for ws in (remote, local))
    assert len(near.matches) > 80_000
    assert near.truncated, "not more than a call may keep"
    assert far.matches == near.matches
    assert (far.truncated, far.total_matches, far.counts) == (True, near.total_matches, near.counts)


def test_a_transaction_is_made_completely_or_not_at_all(remote, tmp_path):
    with remote.transaction() as changes:
        changes.write("a.txt", "1\n")
        assert changes.read("a.txt").content == "1\n"
        with changes.transaction() as inner:
            inner.write("b.txt", "2\n")
    assert (tmp_path / "b.txt").read_text() == "2\n"
    with pytest.raises(ZeroDivisionError), remote.transaction() as changes:  # noqa: PT012 - of the block
        changes.edit("a.txt", "1", "3")
        raise ZeroDivisionError
    assert (tmp_path / "a.txt").read_text() == "1\n"
    assert len(remote.undo().files) == 2  # both in one step


def test_a_call_after_a_failed_transaction_knows_nothing_that_was_staged(remote, tmp_path):
    names = [f"{number}.txt" for number in range(8)]
    kit.put(
        tmp_path, dict.fromkeys(names, "1\n2\n" + "3" * 1_000_000)
    )  # large: the staging takes time to forget
    for name in names:
        remote.read(name, 1, 1)
    with pytest.raises(ZeroDivisionError), remote.transaction() as changes:  # noqa: PT012 - of the block
        for name in names:
            changes.edit(name, "2\n", "two\n")
        raise ZeroDivisionError
    error = kit.refused(lambda: remote.write(names[-1], "x\n"), "unread")
    assert error.details["unread_lines"] == [[2, 3]]


def test_an_error_keeps_the_rows_of_its_lines(remote, tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    ids = remote.read("a.txt", line_ids=True).line_ids
    change = {"line_id": "zzzzzz", "new_content": "x"}
    error = kit.refused(lambda: remote.edit_lines("a.txt", [LineChange(**change)]), "unknown_line")
    assert [[*row] for row in error.details["rows"]] == [[1, ids[0], "one"], [2, ids[1], "two"]]
    rye = remote.tools(dialect="rye")
    rye.call("read", {"file_path": "a.txt"})
    answer = rye.call("edit_lines", {"file_path": "a.txt", "changes": [change]})
    assert f"\n[LID:{ids[0]}] one\n" in answer.data["error"]


def test_recovery_notes_outlast_the_workspace_and_a_view_of_some_directories_has_none(tmp_path, monkeypatch):
    monkeypatch.setattr(Workspace, "recovery_notes", ("a note",))  # of the server, in this process
    (tmp_path / "in").mkdir()
    with connect(open_pipe(), tmp_path) as remote:
        seen, blind = (remote, remote.host, remote.view(workdir="in")), remote.view(only=["in"]).view()
    assert [each.recovery_notes for each in (*seen, blind)] == [("a note",)] * 3 + [()]


def test_views_narrow_and_are_sent_again_with_each_call(remote, tmp_path):
    kit.put(tmp_path, {"in/a.txt": "x\n" * 9, "out.txt": "x\n"})
    view = remote.view(only=["in"], workdir="in").view(limits=Limits(read_lines=2))
    assert view.read("a.txt").end_line == 2
    assert kit.code_of(view.read, "../out.txt") == "outside_workspace"
    assert kit.code_of(remote.view, policy=Policy(read_only=True)) == "invalid_argument"


def test_functions_of_the_program_are_called_locally_without_a_lock(remote, tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    asked = []

    def permission(request):
        asked.append((threading.current_thread(), request.tool, request.diff.endswith("+1\n")))
        remote.edit("a.txt", "one", "two")  # another call works while this one waits
        return Deny("not now")

    guarded = remote.view(policy=Policy(on_ask=permission))
    with pytest.raises(RefusedError, match="not now"):
        guarded.edit("a.txt", "one", "1")
    assert asked == [(threading.current_thread(), None, True)]
    kit.splice(remote, "a.txt", lambda text: ([(0, len(text) - 1, text.upper().strip())], ["a note"]))
    counted = remote.view(limits=Limits(count_tokens=len, output_tokens=60))
    assert counted.read("a.txt").text == "1|TWO"
    with pytest.raises(ZeroDivisionError):
        kit.splice(remote, "a.txt", lambda _: 1 // 0)


def test_regression_a_change_by_a_function_is_asked_about(remote, tmp_path):
    """The question lost the connection, as for a patch, whose arguments have a function."""
    (tmp_path / "a.txt").write_text("one\n")
    asked = []
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch"
    for answer, text in ((False, "one\n"), (True, "two\n")):
        policy = Policy(on_ask=lambda request, answer=answer: asked.append(request.diff) or answer)
        tools = remote.view(policy=policy).tools(dialect="apply-patch")
        assert tools.call("apply_patch", {"input": patch}).success is answer
        assert (tmp_path / "a.txt").read_text() == text
    assert ["+two" in each for each in asked] == [True, True]


async def test_calls_are_cancelled_and_report_progress(remote, tmp_path):
    kit.put(tmp_path, [f"d{number}/{name}.txt" for number in range(30) for name in range(60)], "text\n")
    entries = []
    assert (await remote.tools().acall("grep", {"pattern": "text"}, on_progress=entries.append)).success
    assert entries
    assert max(entries) <= 1900
    asked, answered = asyncio.Event(), asyncio.Event()

    async def permission(request):
        asked.set()
        await answered.wait()

    tools = remote.view(policy=Policy(on_ask=permission)).tools()
    call = asyncio.create_task(tools.acall("write", {"path": "a.txt", "content": "x"}))
    await asked.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    answered.set()
    assert not (tmp_path / "a.txt").exists()
    assert remote.write("a.txt", "y\n").created


# Fields that `narrowed` leaves to the client: they widen nothing that a server confines.
OF_THE_CLIENT = {"match", "mode", "on_ask", "allow", "ask"}
NARROWED = {"read_only", "overwrite", "symlinks", "run", "after_change", "protect", "deny", "run_paths"}


def test_each_field_of_a_policy_is_narrowed_or_is_the_clients():
    """Let `agentfs.remote.narrow` decide about a new field before a client can set it."""
    assert {each.name for each in fields(Policy)} == OF_THE_CLIENT | NARROWED


def test_the_paths_of_the_far_side_hold():
    """`Policy.run_paths` names paths of the machine that runs commands, so it is not sent."""
    server = Policy(run="staged", run_paths=["/data"])
    assert narrowed(Policy(run="staged", run_paths=["/home/me/private"]), server).run_paths == ("/data",)
    assert narrowed(Policy(run="staged", run_paths=["/x"]), Policy(run="staged")).run_paths == ()


def test_the_time_limit_reaches_the_remote_side(tmp_path):
    """The call itself ends there; the connection is not given up."""
    (tmp_path / "many.txt").write_text("".join(f"line {number}\n" for number in range(50_000)))
    edits = [{"old_string": f"line {number}\n", "new_string": "x\n"} for number in range(49_000, 46_000, -1)]
    with connect(open_pipe(), tmp_path, limits=Limits(timeout=0.2), patience=60) as ws:
        refused(lambda: ws.multi_edit("many.txt", edits), "timeout")
        assert ws.ls().total == 1
        assert not ws.changes().files


def test_a_result_in_the_names_of_a_dialect_is_kept_at_the_remote_side(remote, tmp_path):
    (tmp_path / "long.txt").write_text("a line of a file\n" * 3000)
    tools = remote.tools(dialect="codescout")
    page = json.loads(tools.call("read_file", {"path": "long.txt"}).content)
    rest = tools.call("read_file", {"path": page["file_id"], "start_line": 201, "end_line": 202})
    assert json.loads(rest.content)["content"] == "a line of a file\n" * 2


def test_subclasses_of_text_and_number_and_an_infinite_timeout_are_arguments(remote, tmp_path):
    class Text(str):
        __slots__ = ()
        __str__ = str.__repr__  # like `class Text(str, Enum)`, whose `str` is the name

    remote.write("a.txt", Text("one\ntwo\n"))
    assert remote.read("a.txt", IntEnum("Numbers", [("TWO", 2)]).TWO).content == "two\n"
    assert remote.grep("two", timeout=float("inf")).total_matches == 1
    for wrong, said in ((float("nan"), "not nan"), (-100, "timeout")):
        with pytest.raises(InvalidArgumentError, match=said):
            remote.grep("two", timeout=wrong)


def test_a_closed_workspace_and_a_missing_root_are_errors(remote, tmp_path):
    remote.close()
    assert kit.code_of(remote.ls) == "closed"
    assert kit.code_of(connect, open_pipe(), tmp_path / "missing") == "not_found"
    with pytest.raises(DisconnectedError, match=r"was lost: .*exit status 3: no way"):
        connect(["sh", "-c", "echo no way >&2; exit 3"], tmp_path)
    with pytest.raises(DisconnectedError, match=r"cannot be started: \[Errno 2\] No such file or dir"):
        connect([str(tmp_path / "missing")], ".")


def test_connecting_needs_no_posix_modules():
    script = "import shutil, subprocess, sys; sys.platform = 'win32'"
    script += "; sys.modules.update(dict.fromkeys(['fcntl', 'pwd', 'resource', 'termios']))"
    script += "; import agentfs.remote.client as c; print(c.RemoteWorkspace.read.__doc__[:11])"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stdout == "Read a file\n", done.stderr


@pytest.mark.full
def test_the_public_tests_pass_over_a_pipe(tmp_path):
    """A sample of the tests; `pytest --connect` runs all of them."""
    files = ["test_workspace.py", "editing/test_edit_lines.py", "history/test_transactions.py"]
    command = [sys.executable, "-m", "pytest", "--connect", "-q", "-n0", "-p", "no:cacheprovider"]
    command.append(f"--basetemp={tmp_path / 'inner'}")  # else it removes the directories of earlier runs
    done = subprocess.run([*command, *files], cwd=ROOT / "tests", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize("nested", [{}, {"limits": Limits(read_lines=5)}, {"workdir": "d"}])
def test_a_name_kept_in_a_view_is_known_in_views_of_it(tmp_path, nested):
    """A view over `connect` made the views above it anew, so an `only` view of the same call had no texts."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d/f").write_text("needle\n")
    with Workspace(tmp_path) as local, connect(open_pipe(), str(tmp_path)) as remote:
        for workspace in (local, remote):
            view = workspace.view(only=["d"])
            names = kit.keep(view, "text\n"), kit.keep(view, view.read("d/f"))
            inner = view.view(**nested)
            assert [inner.read(name).content for name in names] == ["text\n", "needle\n"]
            assert inner.tools(dialect="rye").call("read", {"file_path": names[1]}).success
            assert (view.workdir, inner.workdir) == (".", nested.get("workdir", "."))


def test_the_host_of_a_remote_workspace_is_not_asked(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    asked = []
    policy = Policy(mode="plan", on_ask=asked.append)
    with connect(open_pipe(), tmp_path, policy=policy) as ws:
        with pytest.raises(PermissionError):
            ws.write("b.txt", "x\n")
        assert ws.host.write("a.txt", "two\n").bytes_written == 4
        assert ws.host.undo().steps == 1
    assert asked == []
    assert (tmp_path / "a.txt").read_text() == "one\n"
