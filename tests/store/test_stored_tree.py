"""Trees in an S3 server, in memory and in a directory: what one worker pushes, another one pulls."""

import os
import stat
import subprocess
import time
from pathlib import Path
from threading import Lock

import obstore
import pytest
from hypothesis import strategies as st
from obstore.store import MemoryStore

from agentfs import AgentFSError, Policy, Protect
from agentfs.store import StoredTree
from tests.conftest import law, needs
from tests.history.judges import snapshot
from tests.store.conftest import files, put


def without_state(top) -> dict:
    return {name: each for name, each in snapshot(Path(top)).items() if not name.startswith(".agentfs")}


def test_what_one_pushes_another_pulls(trees):
    one, other = trees("one"), trees("other")
    put(one, "a/b/deep.txt", "text\n")
    put(one, "run.sh", "#!/bin/sh\n", 0o755)
    put(one, "image.bin", bytes(range(256)))
    put(one, "empty.txt", "")
    put(one, "ä name, with #?%&+ and ~ [x].txt", "x")
    os.makedirs(Path(one, "empty/directory"))
    os.symlink("a/b", Path(one, "link"))
    result = one.push()
    assert set(result.pushed) == set(files(one)) | {"empty/directory", "link"}
    assert "pushed 7 (" in result.text
    result = other.pull()
    assert without_state(one) == without_state(other)
    assert result.left_out == {}
    assert result.conflicts == ()
    assert set(result.pulled) == set(without_state(other)) - {"a", "a/b", "empty"}
    assert other.pull().pulled == ()
    assert other.push().pushed == ()
    assert other.status().to_pull == other.status().to_push == ()


def test_changes_deletions_and_modes_arrive(trees):
    one, other = trees("one"), trees("other")
    for name in ("change", "delete", "d/delete", "mode"):
        put(one, name, f"{name}\n")
    os.makedirs(Path(one, "was-empty"))
    one.push()
    other.pull()
    put(one, "change", "changed\n")
    put(one, "was-empty/file", "x")
    put(one, "new/file", "y")
    os.remove(Path(one, "delete"))
    os.remove(Path(one, "d/delete"))
    os.rmdir(Path(one, "d"))
    os.chmod(Path(one, "mode"), 0o755)
    pushed = one.push()
    assert pushed.pushed == ("change", "mode", "new/file", "was-empty/file")
    assert pushed.deleted == ("d/delete", "delete")
    pulled = other.pull()
    assert without_state(one) == without_state(other)
    assert pulled.deleted == ("d/delete", "delete")
    assert pulled.merged == ()
    os.chmod(Path(other, "mode"), 0o644)
    other.push()
    one.pull()
    assert without_state(one) == without_state(other)


def test_a_file_becomes_a_directory_and_a_link_and_back(trees):
    one, other = trees("one"), trees("other")
    put(one, "x", "file\n")
    put(one, "y/z", "in a directory\n")
    one.push()
    other.pull()
    os.remove(Path(one, "x"))
    put(one, "x/below", "now below\n")
    os.remove(Path(one, "y/z"))
    os.rmdir(Path(one, "y"))
    os.symlink("x", Path(one, "y"))
    one.push()
    other.pull()
    other.pull()
    assert without_state(one) == without_state(other)
    os.remove(Path(other, "y"))
    put(other, "y", "a file\n")
    os.remove(Path(other, "x/below"))
    os.rmdir(Path(other, "x"))
    put(other, "x", "a file again\n")
    other.push()
    one.pull()
    one.pull()
    assert without_state(one) == without_state(other)


def test_both_have_changed_other_lines(trees):
    one, other = trees("one"), trees("other")
    put(one, "f", "1\n2\n3\n4\n5\n")
    one.push()
    other.pull()
    put(one, "f", "one\n2\n3\n4\n5\n")
    put(other, "f", "1\n2\n3\n4\nfive\n")
    one.push()
    result = other.push()
    assert result.pushed == result.merged == ("f",)
    assert one.pull().pulled == ("f",)
    assert files(one) == files(other) == {"f": b"one\n2\n3\n4\nfive\n"}


def test_a_pull_merges_too(trees):
    one, other = trees("one"), trees("other")
    put(one, "f", "1\n2\n3\n4\n5\n")
    one.push()
    other.pull()
    put(one, "f", "one\n2\n3\n4\n5\n")
    put(other, "f", "1\n2\n3\n4\nfive\n")
    one.push()
    assert other.pull().merged == ("f",)
    assert other.status().to_push == ("f",)
    assert files(other)["f"] == b"one\n2\n3\n4\nfive\n"


def test_a_conflict_keeps_both_texts_and_the_others_are_pushed(trees):
    one, other = trees("one"), trees("other")
    put(one, "f", "text\n")
    one.push()
    other.pull()
    put(one, "f", "one\n")
    one.push()
    put(other, "f", "other\n")
    put(other, "g", "new\n")
    result = other.push()
    assert result.conflicts == ("f",)
    assert result.pushed == ("g",)
    for again in (other.pull(), other.push(), other.status()):
        assert again.conflicts == ("f",)
        assert 'conflicts 1: "f"' in again.text
    assert files(other)["f"] == b"other\n"
    assert Path(other, ".agentfs/conflicts/f").read_bytes() == b"one\n"
    with other.workspace() as workspace:
        assert "one" in workspace.read(".agentfs/conflicts/f").text
    put(other, "f", "one\n")  # both texts are equal
    assert other.pull().conflicts == other.push().conflicts == other.status().conflicts == ()
    assert not Path(other, ".agentfs/conflicts/f").exists()
    put(other, "f", "one\nother\n")
    assert other.push().pushed == ("f",)
    one.pull()
    assert files(one)["f"] == b"one\nother\n"


@pytest.mark.parametrize("change", ["content", "delete"])
def test_a_deletion_and_a_change_are_a_conflict(trees, change):
    one, other = trees("one"), trees("other")
    put(one, "f", "text\n")
    one.push()
    other.pull()
    first, second = (one, other) if change == "content" else (other, one)
    put(first, "f", "changed\n")
    os.remove(Path(second, "f"))
    one.push()
    assert other.push().conflicts == ("f",)
    assert other.pull().conflicts == ("f",)
    assert files(first) == {"f": b"changed\n"}
    assert files(second) == {}


def test_two_create_the_same_name(trees):
    one, other = trees("one"), trees("other")
    put(one, "same", "text\n")
    put(other, "same", "text\n")
    put(one, "differs", "one\n")
    put(other, "differs", "other\n")
    one.push()
    result = other.push()
    assert result.conflicts == ("differs",)
    assert files(one)["differs"] == b"one\n"
    assert files(other)["differs"] == b"other\n"
    assert "same" not in other.status().to_push


def test_modes_of_both_are_merged(trees):
    one, other = trees("one"), trees("other")
    put(one, "f", "1\n2\n3\n")
    one.push()
    other.pull()
    put(one, "f", "1\n2\nthree\n")
    os.chmod(Path(other, "f"), 0o755)
    one.push()
    assert other.push().conflicts == ()
    one.pull()
    other.pull()
    assert without_state(one) == without_state(other)
    assert stat.S_IMODE(Path(one, "f").stat().st_mode) == 0o755
    assert files(one)["f"] == b"1\n2\nthree\n"


def test_only_some_paths_are_pushed(trees):
    one, other = trees("one"), trees("other")
    for name in ("a/x", "a/y", "b"):
        put(one, name, name)
    assert one.push("a/x").pushed == ("a/x",)
    assert one.push(["a", "a/x"]).pushed == ("a/y",)
    other.pull()
    assert set(files(other)) == {"a/x", "a/y"}
    assert one.status().to_push == ("b",)


def test_a_pull_is_one_step_of_an_open_workspace(trees):
    one, other = trees("one"), trees("other")
    put(one, "a", "a\n")
    put(one, "b", "b\n")
    one.push()
    with other.workspace(watch=True) as workspace:
        other.pull()
        assert workspace.read("a").content == "a\n"
        put(one, "a", "changed\n")
        os.remove(Path(one, "b"))
        one.push()
        workspace.grep("a")
        other.pull()
        assert workspace.grep("changed").total_matches == 1
        assert {each.path for each in workspace.undo().files} == {"a", "b"}
        assert files(other) == {"a": b"a\n", "b": b"b\n"}
        workspace.redo()
        workspace.undo(2)
        assert files(other) == {}
        assert set(other.status().to_push) == {"a"}


def test_a_workspace_of_the_cache_runs_commands_and_shows_a_review(tmp_path):
    store, policy = MemoryStore(), Policy(run="recorded")
    one, other = (StoredTree(store, tmp_path / name, policy=policy) for name in ("one", "other"))
    put(one, "a", "1\n2\n")
    one.push()
    with one.workspace() as workspace:
        assert workspace.run("echo made > b; sed -i s/2/two/ a").changes.files[0].path == "a"
        assert [hunk.origins[0].kind for hunk in workspace.review().hunks] == ["command"] * 2
        assert one.push().pushed == ("a", "b")
        workspace.undo()
        assert one.push().deleted == ("b",)
    other.pull()
    assert files(one) == files(other) == {"a": b"1\n2\n"}


@pytest.mark.parametrize(
    ("url", "settings", "update", "delete"),
    [
        ("s3://bucket/prefix", {"region": "us-east-1"}, "conditional", "where the store knows"),
        ("gs://bucket/prefix", {}, "conditional", "checked: a change by others"),
        ("az://container/prefix", {"account_name": "a", "account_key": "eA=="}, "conditional", "where"),
        ("memory://", {}, "conditional", "checked: a change by others"),
        ("file:///tmp", {}, "under a lock", "under a lock"),
    ],
)
def test_each_kind_of_url_states_its_guarantees(tmp_path, url, settings, update, delete):
    guarantees = StoredTree(url, tmp_path / "cache", options=settings).guarantees
    assert guarantees["create"] == "conditional"
    assert update in guarantees["update"]
    assert delete in guarantees["delete"]


@pytest.mark.parametrize("width", [1, 4])
def test_requests_are_parallel_up_to_the_given_number(tmp_path, monkeypatch, width):
    store, present, peak, lock = MemoryStore(), [], [], Lock()
    one = StoredTree(store, tmp_path / "one")
    for number in range(12):
        put(one, f"f{number}", "x")
    one.push()
    real = obstore.get

    def slow(*given, **more):
        with lock:
            present.append(1)
            peak.append(len(present))
        time.sleep(0.02)
        with lock:
            present.pop()
        return real(*given, **more)

    monkeypatch.setattr(obstore, "get", slow)
    StoredTree(store, tmp_path / "other", max_concurrency=width).pull()
    assert (max(peak) > 1) == (width > 1)
    assert max(peak) <= width


def test_a_workspace_sees_nothing_of_the_state(trees):
    one = trees("one")
    put(one, "a", "word\n")
    one.push()
    with one.workspace() as workspace:
        assert [each.path for each in workspace.ls(depth=0).entries] == ["a"]
        assert workspace.grep("word").total_files == 1
        with workspace.recording("pull") as recorded:
            put(one, "a", "changed\n")
            one.push()
        assert [each.path for each in recorded.result.files] == ["a"]
        with pytest.raises(AgentFSError) as caught:
            workspace.write(".agentfs/x", "x")
        assert caught.value.code == "protected"


def test_protected_names_stay_where_they_are(trees):
    one, other = trees("one"), trees("other")
    put(one, ".env", "SECRET=1\n")
    put(one, ".git/hooks/pre-commit", "#!/bin/sh\n", 0o755)
    put(one, "a", "a")
    result = one.push()
    assert result.pushed == ("a",)
    assert result.left_out == {"protected": (".env", ".git")}
    open_policy = Policy(protect=Protect(read=(), write=()))
    assert set(trees("one", policy=open_policy).push().pushed) == {".env", ".git/hooks/pre-commit"}
    result = other.pull()
    assert result.pulled == ("a",)
    assert result.left_out == {"protected": (".env", ".git/hooks/pre-commit")}
    assert trees("other", policy=open_policy).pull().pulled == (".env", ".git/hooks/pre-commit")
    assert other.status().to_push == ()


def test_a_branch_is_a_tree_of_its_own(trees):
    one = trees("one")
    put(one, "a/b", "1\n", 0o755)
    put(one, "c", "1\n")
    one.push()
    branch = one.branch("try-1")
    assert set(branch.pull().pulled) == {"a/b", "c"}
    assert Path(branch) == Path(f"{Path(one)}@try-1")
    assert Path(branch, "a/b").stat().st_mode & 0o100
    put(branch, "c", "2\n")
    branch.push()
    assert one.pull().pulled == ()
    assert one.status().to_pull == ()
    again = trees("other").branch("try-1")
    again.pull()
    assert files(again) == {"a/b": b"1\n", "c": b"2\n"}
    assert files(one)["c"] == b"1\n"
    with pytest.raises(AgentFSError):
        one.branch("../x")


def test_a_branch_that_another_worker_copies_is_busy(trees):
    one = trees("one")
    put(one, "a", "a")
    one.push()
    one._objects.put(".agentfs/branches/b/.agentfs/branch", b"another", 7, None)
    with pytest.raises(AgentFSError) as caught:
        one.branch("b")
    assert caught.value.code == "busy"
    assert ".agentfs/branches/b/.agentfs/branch" in caught.value.hint


def test_the_cache_is_a_path(trees, tmp_path):
    assert os.fspath(trees("one")) == str(tmp_path / "one")


def test_objects_are_plain_and_plain_objects_are_files(tmp_path):
    store = MemoryStore()
    obstore.put(store, "of/others.txt", b"text")
    tree = StoredTree(store, tmp_path / "cache")
    assert tree.pull().pulled == ("of/others.txt",)
    put(tree, "ours.txt", "ours")
    tree.push()
    assert bytes(obstore.get(store, "ours.txt").bytes()) == b"ours"
    keys = {each["path"] for page in obstore.list(store) for each in page}
    assert keys == {"of/others.txt", "ours.txt", ".agentfs/tree.json"}


def git_merge(base: bytes, ours: bytes, theirs: bytes, where: Path) -> bytes | None:
    for name, data in (("base", base), ("ours", ours), ("theirs", theirs)):
        (where / name).write_bytes(data)
    command = ["git", "merge-file", "-p", "ours", "base", "theirs"]
    done = subprocess.run(command, cwd=where, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


_lines = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n"]), max_size=8).map(b"".join)


@needs("git")
@law(2, 4, cases=st.lists(st.tuples(_lines, _lines, _lines), min_size=1, max_size=60))
def test_merges_are_those_of_git(tmp_path_factory, cases):
    top = tmp_path_factory.mktemp("merge")
    store = MemoryStore()
    one, other = StoredTree(store, top / "one"), StoredTree(store, top / "other")
    for which, tree in enumerate((one, other, one)):
        for number, case in enumerate(cases):
            put(tree, str(number), case[which])
        if which == 0:
            one.push()
            other.pull()
    one.push()
    conflicts = other.pull().conflicts
    for number, (base, ours, theirs) in enumerate(cases):
        expected = git_merge(base, ours, theirs, top)
        assert (str(number) in conflicts) == (expected is None)
        assert files(other)[str(number)] == (ours if expected is None else expected)
    other.push()
    one.pull()
    for number, (_, _, theirs) in enumerate(cases):
        assert files(one)[str(number)] == (theirs if str(number) in conflicts else files(other)[str(number)])
