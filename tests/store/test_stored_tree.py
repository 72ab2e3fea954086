"""Trees in an S3 server, in memory and in a directory: what one worker pushes, another one pulls."""

import os
import stat
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

import obstore
import pytest
from hypothesis import strategies as st
from obstore.store import MemoryStore

from agentfs import AgentFSError, Policy, Protect, Workspace
from agentfs.results import StoreStatus
from agentfs.store import StoredTree, sync
from agentfs.store.objects import Objects
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
    result = one.push()
    assert set(result.pushed) == set(files(one))
    assert "pushed 5: " in result.text
    result = other.pull()
    assert files(one) == files(other)
    assert result.left_out == {}
    assert result.conflicts == ()
    assert set(result.pulled) == set(files(other))
    assert other.pull().pulled == ()
    assert other.push().pushed == ()
    assert other.status().to_pull == other.status().to_push == ()


def test_changes_and_deletions_arrive(trees):
    one, other = trees("one"), trees("other")
    for name in ("change", "delete", "d/delete"):
        put(one, name, f"{name}\n")
    one.push()
    other.pull()
    put(one, "change", "changed\n")
    put(one, "new/file", "y")
    os.remove(Path(one, "delete"))
    os.remove(Path(one, "d/delete"))
    os.rmdir(Path(one, "d"))
    pushed = one.push()
    assert pushed.pushed == ("change", "new/file")
    assert pushed.deleted == ("d/delete", "delete")
    pulled = other.pull()
    assert without_state(one) == without_state(other)  # the emptied directory is gone too
    assert pulled.deleted == ("d/delete", "delete")
    assert pulled.merged == ()
    assert one.pull().deleted == ()


def test_an_update_keeps_the_mode_of_a_file(trees):
    one, other = trees("one"), trees("other")
    put(one, "run.sh", "1\n", 0o755)
    one.push()
    other.pull()
    put(other, "run.sh", "2\n")
    other.push()
    assert one.pull().pulled == ("run.sh",)
    assert stat.S_IMODE(Path(one, "run.sh").stat().st_mode) == 0o755


def test_links_special_files_and_empty_directories_stay_here(trees):
    one, other = trees("one"), trees("other")
    put(one, "a", "a")
    os.makedirs(Path(one, "empty/directory"))
    os.symlink("a", Path(one, "link"))
    os.mkfifo(Path(one, "fifo"))
    result = one.push()
    assert result.pushed == ("a",)
    assert result.left_out == {"link": ("link",), "not regular": ("fifo",)}
    other.pull()
    assert without_state(other).keys() == {"a"}


def test_a_link_in_place_of_a_known_file_is_no_deletion(trees):
    one, other = trees("one"), trees("other")
    put(one, "f", "f")
    put(one, "d/f", "f")
    one.push()
    other.pull()
    os.remove(Path(one, "f"))
    os.symlink("elsewhere", Path(one, "f"))
    Path(one, "d").rename(Path(one, "e"))
    os.symlink("e", Path(one, "d"))
    result = one.push()
    assert result.deleted == ()
    assert result.left_out == {"link": ("d", "f")}
    put(other, "f", "changed")
    other.push()
    assert one.pull().left_out == {"link": ("f",)}
    assert os.readlink(Path(one, "f")) == "elsewhere"


def test_a_file_becomes_a_directory_and_back(trees):
    one, other = trees("one"), trees("other")
    put(one, "x", "file\n")
    put(one, "y/z", "in a directory\n")
    one.push()
    other.pull()
    os.remove(Path(one, "x"))
    put(one, "x/below", "now below\n")
    os.remove(Path(one, "y/z"))
    os.rmdir(Path(one, "y"))
    put(one, "y", "a file\n")
    one.push()
    other.pull()
    assert without_state(one) == without_state(other)
    os.remove(Path(other, "x/below"))
    os.rmdir(Path(other, "x"))
    put(other, "x", "a file again\n")
    other.push()
    one.pull()
    assert without_state(one) == without_state(other)


def test_a_directory_here_and_a_file_in_the_store_stay_apart(tmp_path):
    store = MemoryStore()
    one, other = (StoredTree(store, tmp_path / name) for name in ("one", "other"))
    one.push()
    other.pull()
    put(one, "x", "file\n")
    put(other, "x/below", "below\n")
    one.push()
    result = other.push()
    assert result.pushed == ("x/below",)
    assert [*other.pull().left_out.values()] == [("x",)]
    assert [*one.pull().left_out.values()] == [("x/below",)]
    assert (files(one), files(other)) == ({"x": b"file\n"}, {"x/below": b"below\n"})
    assert one.push().deleted == other.push().deleted == ()


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


def test_regression_others_are_faster_several_times(trees, monkeypatch):
    """Each attempt is merged with the text of the attempt before it, which the store no longer has."""
    one, other = trees("one"), trees("other")
    lines = [f"{number}\n" for number in range(9)]
    put(one, "f", "".join(lines))
    one.push()
    other.pull()
    real, attempts = Objects.put, []

    def late(self, path, *given):
        if path == "f" and len(attempts) < 4:
            attempts.append(path)
            with monkeypatch.context() as patch:
                patch.setattr(Objects, "put", real)
                lines[2 * len(attempts)] = "one\n"
                put(one, "f", "".join(lines))
                assert one.push().conflicts == ()
        return real(self, path, *given)

    monkeypatch.setattr(Objects, "put", late)
    put(other, "f", "".join(["other\n", *lines[1:]]))
    result = other.push()
    assert result.conflicts == ()
    assert result.pushed == result.merged == ("f",)
    assert len(attempts) == 4
    assert files(other)["f"] == "".join(["other\n", *lines[1:]]).encode()


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
    for again in (other.pull(), other.push()):
        assert again.conflicts == ("f",)
        assert 'conflicts 1: "f"' in again.text
    status = other.status()
    assert status.to_pull == status.to_push == ("f",)
    assert files(other)["f"] == b"other\n"
    assert Path(other, ".agentfs/conflicts/f").read_bytes() == b"one\n"
    with Workspace(other) as workspace:
        assert "one" in workspace.read(".agentfs/conflicts/f").text
    put(other, "f", "one\n")  # both texts are equal
    assert other.pull().conflicts == other.push().conflicts == other.status().to_pull == ()
    assert not Path(other, ".agentfs/conflicts/f").exists()
    put(other, "f", "one\nother\n")
    assert other.push().pushed == ("f",)
    one.pull()
    assert files(one)["f"] == b"one\nother\n"


def test_a_recorded_pull_is_one_step_of_a_workspace(trees):
    one, other = trees("one"), trees("other")
    put(one, "a", "a\n")
    put(one, "b", "b\n")
    one.push()
    other.pull()
    with Workspace(other, watch=True) as workspace:
        put(one, "a", "changed\n")
        os.remove(Path(one, "b"))
        one.push()
        workspace.grep("a")
        with workspace.recording("pull"):
            other.pull()
        assert workspace.grep("changed").total_matches == 1
        assert {each.path for each in workspace.undo().files} == {"a", "b"}
        assert files(other) == {"a": b"a\n", "b": b"b\n"}
        assert set(other.status().to_push) == {"a", "b"}


def test_a_workspace_of_the_cache_runs_commands_and_shows_a_review(tmp_path):
    store, policy = MemoryStore(), Policy(run="recorded")
    one, other = (StoredTree(store, tmp_path / name) for name in ("one", "other"))
    put(one, "a", "1\n2\n")
    one.push()
    with Workspace(one, policy=policy) as workspace:
        workspace.run("echo made > b; sed -i s/2/two/ a")
        assert one.push().pushed == ("a", "b")
        workspace.undo()
        assert one.push().deleted == ("b",)
    other.pull()
    assert files(one) == files(other) == {"a": b"1\n2\n"}


def test_requests_are_parallel_up_to_a_number(tmp_path, monkeypatch):
    monkeypatch.setattr(sync, "_AT_ONCE", 4)
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
    StoredTree(store, tmp_path / "other").pull()
    assert 1 < max(peak) <= 4


def test_a_pull_whose_time_is_up_says_so_and_continues(tmp_path, monkeypatch):
    monkeypatch.setattr(sync, "_AT_ONCE", 2)
    store = MemoryStore()
    one, other = (StoredTree(store, tmp_path / name, timeout=0.5) for name in ("one", "other"))
    for number in range(9):
        put(one, f"f{number}", "x")
    one.push()
    real = obstore.get

    def slow(*given, **more):
        time.sleep(0.3)
        return real(*given, **more)

    monkeypatch.setattr(obstore, "get", slow)
    first = other.pull()
    assert first.truncated
    assert "Pull or push again" in first.text
    assert 0 < len(first.pulled) < 9
    monkeypatch.setattr(obstore, "get", real)
    second = other.pull()
    assert not second.truncated
    assert len(first.pulled) + len(second.pulled) == 9


def test_a_comparison_that_takes_too_long_changes_nothing(tmp_path):
    store = MemoryStore()
    one = StoredTree(store, tmp_path / "one")
    put(one, "a", "a")
    one.push()
    with pytest.raises(TimeoutError):
        StoredTree(store, tmp_path / "other", timeout=0).pull()
    assert files(tmp_path / "other") == {}


def test_a_workspace_sees_nothing_of_the_state(trees):
    one = trees("one")
    put(one, "a", "word\n")
    one.push()
    with Workspace(one) as workspace:
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
    assert keys == {"of/others.txt", "ours.txt", ".agentfs/tree"}


def test_regression_threads_of_one_sync_keep_and_find_their_own(tmp_path):
    """Without a lock they share the cached statements of SQLite: wrong rows, or "API misuse"."""
    found = []

    def work(opened):
        def keep_and_find(number):
            data = b"%d\n" % number * 50
            opened.note(sync.Known(f"f{number}", f"tag {number}", len(data), "digest"), data)
            return opened.text(f"f{number}") == data

        with ThreadPoolExecutor(16) as pool:
            found.extend(pool.map(keep_and_find, range(200)))

    StoredTree("memory:///", tmp_path)._result_of(work, StoreStatus, "to_pull", "to_push")
    assert found == [True] * 200


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
