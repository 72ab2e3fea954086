"""A state directory in the wrong place, of another, or damaged: an error with a hint, and no wrong undo."""

import json
import os
import shutil
import stat
import subprocess
import sys

import pytest

from agentfs import AgentFSError, Policy, Workspace
from agentfs.errors import BusyError, FileIOError, InvalidArgumentError, RefusedError
from tests.journal.judges import can_mount, snapshot


@pytest.fixture
def root(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.txt").write_text("one\n")
    return tmp_path / "root"


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


def refused(root, state, error=InvalidArgumentError):
    before = snapshot(root)
    with pytest.raises(error) as caught:
        Workspace(root, state=state)
    assert snapshot(root) == before, "nothing is made where it does not belong"
    assert caught.value.hint
    return str(caught.value)


@pytest.mark.parametrize("where", ["", "state", "deep/er/state"])
def test_it_must_not_lie_in_the_tree(root, where):
    assert "lies inside" in refused(root, root / where)


def test_it_must_not_lie_in_the_tree_through_a_link(root, tmp_path):
    (tmp_path / "link").symlink_to(root)
    (tmp_path / "missing").symlink_to(root / "there" / "in")
    assert "lies inside" in refused(root, tmp_path / "link" / "state")
    assert "lies inside" in refused(root, tmp_path / "missing")
    (root / "out").symlink_to(tmp_path / "elsewhere")
    with Workspace(root, state=root / "out") as ws:
        ws.write("b", "x\n")
    assert (tmp_path / "elsewhere" / "journal").exists(), "a link in the tree may lead to one outside"


@pytest.mark.skipif(not can_mount(), reason="only a user who may mount has a second name for a directory")
@pytest.mark.parametrize(
    ("source", "point", "state", "said"),
    [
        ("root", "twin", "twin/state", "lies inside"),
        ("root/sub dir", "twin", "twin/state", "lies inside"),
        ("root/sub dir", "twin", "twin", "lies inside"),
        ("elsewhere", "root/sub dir", "elsewhere/state", "lies inside"),
        ("elsewhere/deep", "root/sub dir", "elsewhere/deep/state", "lies inside"),
        (".", "twin", "twin", "lies around"),
        ("elsewhere", "twin", "twin/state", "apart"),
        ("elsewhere/deep", "root/sub dir", "elsewhere/state", "apart"),
    ],
)
def test_it_must_not_lie_in_the_tree_through_a_mount(root, tmp_path, source, point, state, said):
    for name in ("twin", "elsewhere/deep", "root/sub dir"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    assert root == tmp_path / "root"
    code = (
        "import sys; from agentfs import AgentFSError, Workspace\n"
        "try: Workspace(sys.argv[1], state=sys.argv[2])\n"
        "except AgentFSError as error: print(error.message)\n"
        "else: print('apart')"
    )
    script = f'mount --bind "{tmp_path}/{source}" "{tmp_path}/{point}" && exec {sys.executable} -c "$0" "$@"'
    command = ["unshare", "-m", "sh", "-c", script, code, str(root), str(tmp_path / state)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said in done.stdout
    assert sorted(os.listdir(root)) == ["a.txt", "sub dir"]
    assert os.listdir(root / "sub dir") == []


def test_the_tree_must_not_lie_in_it(root, tmp_path):
    assert "lies around" in refused(root, tmp_path)
    (tmp_path / "up").symlink_to(tmp_path)
    assert "lies around" in refused(root, tmp_path / "up")


def test_it_is_no_file_nor_below_one(root, tmp_path):
    (tmp_path / "file").write_text("x")
    assert "no possible path" in refused(root, "a\0b")
    assert "is a file" in refused(root, tmp_path / "file")
    assert "a file stands on the way" in refused(root, tmp_path / "file" / "state")


def test_what_has_something_else_in_it_is_left_alone(root, state):
    state.mkdir()
    (state / "mine").write_text("precious")
    before = snapshot(state)
    assert '"mine" is in it' in refused(root, state)
    assert snapshot(state) == before


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b'"x"', b"\xff\xfe", b'{"format": "git"}', b"[" * 100_000]
)
def test_a_format_that_is_another_programs(root, state, content):
    Workspace(root, state=state).close()
    (state / "format").write_bytes(content)
    assert "no state directory of agentfs" in refused(root, state)


def test_a_newer_version(root, state):
    Workspace(root, state=state).close()
    told = json.loads((state / "format").read_text())
    (state / "format").write_text(json.dumps({**told, "version": 2}))
    assert "has version 2" in refused(root, state)


def test_that_of_another_tree(root, state, tmp_path):
    Workspace(root, state=state).close()
    (tmp_path / "other").mkdir()
    said = refused(tmp_path / "other", state)
    assert "belongs to another workspace" in said
    assert str(root) in said
    (tmp_path / "link").symlink_to(root)
    Workspace(tmp_path / "link", state=state).close()


def test_one_workspace_at_a_time(root, state):
    with Workspace(root, state=state):
        said = refused(root, state, BusyError)
        assert f"by process {os.getpid()}" in said
        code = "import sys; from agentfs import Workspace; Workspace(sys.argv[1], state=sys.argv[2])"
        done = subprocess.run(
            [sys.executable, "-c", code, root, state], capture_output=True, text=True, check=False
        )
        assert "BusyError" in done.stderr
    Workspace(root, state=state).close()


def test_only_its_owner_may_look(root, state):
    state.mkdir(mode=0o755)
    with Workspace(root, state=state) as ws:
        ws.read("a.txt")
        ws.write("b", "x\n")
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in state.iterdir()} == {0o600}


def test_one_in_which_others_may_write(root, state):
    Workspace(root, state=state).close()
    state.chmod(0o770)
    assert "chmod 700" in refused(root, state, RefusedError)


def test_an_error_leaves_the_lock_and_no_descriptor(root, state):
    Workspace(root, state=state).close()
    shutil.copytree(state, state.with_name("whole"))
    (state / "journal").write_bytes(b"x" * 100)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(3):
        refused(root, state, FileIOError)
    if before:
        assert len(os.listdir("/proc/self/fd")) == before
    (state / "journal").write_bytes((state.with_name("whole") / "journal").read_bytes())
    Workspace(root, state=state).close()


def test_beginning_one_that_was_never_finished(root, state):
    state.mkdir()
    for name in ("lock", "journal", "journal.new", "format.new"):
        (state / name).write_bytes(b"")
    with Workspace(root, state=state) as ws:
        ws.write("b", "x\n")
    assert sorted(os.listdir(state)) == ["format", "journal", "lock", "shown"]


@pytest.mark.parametrize("name", ["journal", "format"])
def test_a_file_that_is_missing(root, state, name):
    with Workspace(root, state=state) as ws:
        ws.write("b", "x\n")
    (state / name).unlink()
    assert "damaged" in refused(root, state, FileIOError)


def test_what_was_shown_may_be_removed(root, state):
    with Workspace(root, state=state) as ws:
        ws.read("a.txt")
        ws.write("b", "x\n")
    (state / "shown").write_bytes(b"rubbish" * 5)
    said = refused(root, state, FileIOError)
    assert "Remove " in said
    (state / "shown").unlink()
    with Workspace(root, state=state) as ws:
        ws.undo()


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """A tree, its state directory, and every state that the tree had: steps, a journey back, a checkpoint."""
    top = tmp_path_factory.mktemp("history")
    root, state = top / "root", top / "state"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    had = [files(root)]
    with Workspace(root, state=state, policy=Policy(durability="fast")) as ws:
        for act in (
            lambda: ws.edit("a.txt", "one", "two"),
            lambda: ws.write("d/b.bin", "x\n" * 50),
            lambda: ws.checkpoint("here"),
            lambda: ws.move("a.txt", "c.txt"),
            ws.undo,
            lambda: ws.delete("d/b.bin"),
        ):
            act()
            had.append(files(root))
    return root, state, had


def files(top):
    """What a step that the journal has lost may leave behind is a directory that it made."""
    return snapshot(top, directories=False)


def used(history, tmp_path, damage):
    """Open a damaged copy, undo all that can be, and judge."""
    root, state, had = history
    top = tmp_path / "copy"
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    (top / "state").mkdir()
    for name in ("format", "journal", "shown", "lock"):
        shutil.copyfile(state / name, top / "state" / name)
    (top / "state").chmod(0o700)
    damage(top / "state")
    told = json.loads((top / "state" / "format").read_text())
    shutil.copytree(root, top / "root", symlinks=True)
    (top / "state" / "format").write_text(json.dumps({**told, "root": str(top / "root")}))
    refusal = None
    try:
        ws = Workspace(top / "root", state=top / "state", policy=Policy(durability="fast"))
    except AgentFSError as error:
        refusal = error
    if refusal is not None:
        assert (refusal.code, bool(refusal.hint)) == ("io", True)
        assert files(top / "root") == had[-1]
        return "refused"
    outcome = "opened"
    with ws:
        try:
            while ws._journal.steps:
                before = files(top / "root")
                ws.undo()
                assert files(top / "root") in had
        except AgentFSError:
            outcome = "stopped"
            assert files(top / "root") == before
        else:
            outcome = "undone" if files(top / "root") == had[0] else "opened"
            assert files(top / "root") in had
        ws.read(".")
    return outcome


def test_a_journal_that_ends_anywhere_is_cut_to_its_last_whole_record(history, tmp_path):
    size = (history[1] / "journal").stat().st_size
    outcomes = set()
    for length in range(size, 0, -5):
        outcome = used(history, tmp_path, lambda state: os.truncate(state / "journal", length))  # noqa: B023 - used at once
        assert outcome != "refused" or length < 40
        outcomes.add(outcome)
    assert outcomes >= {"undone", "stopped", "refused"}


@pytest.mark.parametrize("name", ["journal", "shown"])
def test_a_byte_that_is_another_is_told_or_does_no_harm(history, tmp_path, name):
    size = (history[1] / name).stat().st_size
    outcomes = []
    for place in range(0, size, 3):

        def flip(state, place=place):
            data = bytearray((state / name).read_bytes())
            data[place] ^= 0x21
            (state / name).write_bytes(data)

        outcomes.append(used(history, tmp_path, flip))
    assert "opened" not in outcomes, "nothing is passed over in silence"
    if name == "journal":
        # A content that only redo would need is found out when it is asked for.
        assert outcomes.count("refused") > len(outcomes) / 2


def test_what_the_error_says_to_do_keeps_the_steps_before_the_damage(history, tmp_path):
    root, state = tmp_path / "root", tmp_path / "state"
    shutil.copytree(history[0], root)
    with Workspace(root, state=state) as ws:
        for number in range(4):
            ws.write(f"{number}.txt", f"{number}\n")
    data = bytearray((state / "journal").read_bytes())
    data[data.index(b'"2.txt"')] ^= 1
    (state / "journal").write_bytes(data)
    with pytest.raises(FileIOError) as caught:
        Workspace(root, state=state)
    command = caught.value.hint.rpartition(": ")[2]
    assert command.startswith("truncate -s ")
    subprocess.run(command, shell=True, check=True)
    with Workspace(root, state=state) as ws:
        assert ws.undo(2).undoable == 0
    assert {"2.txt", "3.txt"} == set(snapshot(root)) - set(snapshot(history[0]))


def test_what_a_power_cut_did_not_write_is_dropped(history, tmp_path):
    def lengthen(state):
        with (state / "journal").open("ab") as file:
            file.write(bytes(5000))

    assert used(history, tmp_path, lengthen) == "undone"


def test_a_forged_journal_leads_nowhere(root, state, tmp_path):
    from agentfs.state import entries
    from agentfs.state.records import record

    with Workspace(root, state=state) as ws:
        ws.write("b", "x\n")
    whole = (state / "journal").read_bytes()
    link = ["link", "target"]
    for path in ("../out", "/out", "", "a/../../out", ".", "a\0b"):
        plain = {"time": 1.0, "changes": [[path, None, link]]}
        forged = record(entries.STEP, json.dumps(plain).encode()) + record(entries.DONE)
        (state / "journal").write_bytes(whole + forged)
        refused(root, state, FileIOError)
    for payload in (
        b"[]",
        b"{}",
        b"1",
        b'{"time": 1, "changes": [["x", ["file", "x", 1, 2], null]]}',
        b"\xff",
    ):
        (state / "journal").write_bytes(whole + record(entries.STEP, payload))
        refused(root, state, FileIOError)
    for kind in (entries.HEADER, entries.TRAVEL, entries.CHECKPOINT, 77):
        (state / "journal").write_bytes(whole + record(kind, b"[9, 9]"))
        refused(root, state, FileIOError)
    assert sorted(os.listdir(tmp_path)) == ["root", "state"]
