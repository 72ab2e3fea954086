"""Trees in an S3 server, in memory and in a directory: what one worker pushes, another one pulls."""

# ruff: noqa: E501 - a step of a table is one line

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

import obstore
import pytest
from hypothesis import strategies as st
from obstore.store import MemoryStore

from agentfs import Policy, Protect, Workspace
from agentfs.results import StoreStatus
from agentfs.store import StoredTree, sync
from agentfs.store.objects import Objects
from tests.conftest import law, needs
from tests.kit import code_of
from tests.store.conftest import before, files, opener, play, put, shared

FIVE = "1\n2\n3\n4\n5\n"


def test_what_one_pushes_another_pulls(trees, tmp_path):
    one, other = trees("one"), trees("other")
    put(one, {"a/b/deep.txt": "text\n", "image.bin": bytes(range(256)), "empty.txt": ""})
    put(one, {"run.sh": "#!/bin/sh\n", "ä name, with #?%&+ and ~ [x].txt": "x"})
    result = one.push()
    assert set(result.pushed) == set(files(one))
    assert "pushed 5: " in result.text
    result = other.pull()
    assert files(one) == files(other)
    assert (result.left_out, result.conflicts, set(result.pulled)) == ({}, (), set(files(other)))
    assert other.pull().pulled == other.push().pushed == ()
    assert other.status().to_pull == other.status().to_push == ()
    assert os.fspath(one) == str(tmp_path / "one")


def begin(files):
    """Return the steps after which both trees have some files."""
    return [("one", files), ("one", "push"), ("other", "pull")]


ONE, FIVE_AND = {"f": FIVE.replace("1", "one")}, {"f": FIVE.replace("5", "five")}
BOTH = {"f": b"one\n2\n3\n4\nfive\n"}
CONFLICT = {"conflicts": ("f",), "text~": 'conflicts 1: "f"'}
SCENARIOS = {
    "changes and deletions arrive, and an update keeps the mode": [
        *begin({name: f"{name}\n" for name in ("change", "delete", "d/delete")}), ("other", lambda top: (top / "change").chmod(0o755)),
        ("one", {"change": "changed\n", "new/file": "y", "delete": None, "d/delete": None}),
        ("one", "push", {"pushed": ("change", "new/file"), "deleted": ("d/delete", "delete")}),
        ("other", "pull", {"deleted": ("d/delete", "delete"), "merged": ()}), ("one", lambda top: (top / "change").chmod(0o755)),
        ("one", "as", "other"),  # the emptied directory is gone too
        ("one", "pull", {"deleted": ()})],
    "links, special files and empty directories stay here": [
        ("one", {"a": "a"}), ("one", lambda top: (top / "empty/directory").mkdir(parents=True)), ("one", lambda top: (top / "link").symlink_to("a")),
        ("one", lambda top: os.mkfifo(top / "fifo")),
        ("one", "push", {"pushed": ("a",), "left_out": {"link": ("link",), "not regular": ("fifo",)}}),
        ("other", "pull"), ("other", "paths", ["a"])],
    "a link in place of a known file is no deletion": [
        *begin({"f": "f", "d/f": "f"}), ("one", {"f": None}), ("one", lambda top: (top / "f").symlink_to("elsewhere")),
        ("one", lambda top: (top / "d").rename(top / "e")), ("one", lambda top: (top / "d").symlink_to("e")),
        ("one", "push", {"deleted": (), "left_out": {"link": ("d", "f")}}), ("other", {"f": "changed"}), ("other", "push"),
        ("one", "pull", {"left_out": {"link": ("f",)}}), ("one", "files", {"e/f": b"f"})],  # the link stays
    "a file becomes a directory and back": [
        *begin({"x": "file\n", "y/z": "in a directory\n"}), ("one", {"x": None, "x/below": "now below\n", "y/z": None, "y": "a file\n"}),
        ("one", "push"), ("other", "pull"), ("one", "as", "other"),
        ("other", {"x/below": None, "x": "a file again\n"}), ("other", "push"), ("one", "pull"), ("one", "as", "other")],

    "a push merges other lines": [
        *begin({"f": FIVE}), ("one", ONE), ("other", FIVE_AND), ("one", "push"), ("other", "push", {"merged": ("f",), "pushed": ("f",)}),
        ("other", "status", {"to_push": ()}), ("one", "pull", {"pulled": ("f",)}), ("one", "files", BOTH), ("other", "files", BOTH)],
    "a pull merges other lines": [
        *begin({"f": FIVE}), ("one", ONE), ("other", FIVE_AND), ("one", "push"), ("other", "pull", {"merged": ("f",)}),
        ("other", "status", {"to_push": ("f",)}), ("other", "push", {"pushed": ("f",)}), ("one", "pull", {"pulled": ("f",)}),
        ("one", "files", BOTH), ("other", "files", BOTH)],
    "a conflict keeps both texts, and the others are pushed": [
        *begin({"f": "text\n"}), ("one", {"f": "one\n"}), ("one", "push"), ("other", {"f": "other\n", "g": "new\n"}),
        ("other", "push", {"conflicts": ("f",), "pushed": ("g",)}), ("other", "pull", CONFLICT), ("other", "push", CONFLICT),
        ("other", "status", {"to_pull": ("f",), "to_push": ("f",)}), ("other", "files", {"f": b"other\n", "g": b"new\n"}),
        ("other", "kept", b"one\n"), ("other", {"f": "one\n"}),  # both are equal
        ("other", "pull", {"conflicts": ()}), ("other", "push", {"conflicts": ()}), ("other", "status", {"to_pull": ()}),
        ("other", "kept", None), ("other", {"f": "one\nother\n"}), ("other", "push", {"pushed": ("f",)}),
        ("one", "pull"), ("one", "files", {"f": b"one\nother\n", "g": b"new\n"})],
}  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenarios(trees, name):
    play(trees, SCENARIOS[name])


def test_a_directory_here_and_a_file_in_the_store_stay_apart(memory):
    play(memory, [
        ("one", {"x": "file\n"}), ("other", {"x/below": "below\n"}), ("one", "push"), ("other", "push", {"pushed": ("x/below",)}),
        ("other", "pull", {"left_out": {"busy": ("x",)}}), ("one", "pull", {"left_out": {"not a directory": ("x/below",)}}),
        ("one", "files", {"x": b"file\n"}), ("other", "files", {"x/below": b"below\n"}), ("one", "push", {"deleted": ()}), ("other", "push", {"deleted": ()}),
    ])  # fmt: skip


def test_regression_others_are_faster_several_times(trees, monkeypatch):
    """Each attempt is merged with the text of the attempt before it, which the store no longer has."""
    lines = [f"{number}\n" for number in range(9)]
    one, other = shared(trees, {"f": "".join(lines)})
    real, attempts = Objects.put, []

    def overtaken(_, path, *given):
        if path == "f" and len(attempts) < 4:
            attempts.append(path)
            with monkeypatch.context() as patch:
                patch.setattr(Objects, "put", real)
                lines[2 * len(attempts)] = "one\n"
                put(one, {"f": "".join(lines)})
                assert one.push().conflicts == ()

    before(monkeypatch, Objects, "put", overtaken)
    put(other, {"f": "".join(["other\n", *lines[1:]])})
    result = other.push()
    assert (result.conflicts, result.pushed, result.merged, len(attempts)) == ((), ("f",), ("f",), 4)
    assert files(other)["f"] == "".join(["other\n", *lines[1:]]).encode()


def test_a_recorded_pull_is_one_step_of_a_workspace(trees):
    one, other = shared(trees, {"a": "a\n", "b": "b\n"})
    with Workspace(other, watch=True) as workspace:
        put(one, {"a": "changed\n", "b": None})
        one.push()
        workspace.grep("a")
        with workspace.recording("pull"):
            other.pull()
        assert workspace.grep("changed").total_matches == 1
        assert {each.path for each in workspace.undo().files} == {"a", "b"}
        assert files(other) == {"a": b"a\n", "b": b"b\n"}
        assert set(other.status().to_push) == {"a", "b"}


def test_a_workspace_of_the_cache_runs_commands_and_shows_a_review(memory):
    one, other = shared(memory, {"a": "1\n2\n"})
    with Workspace(one, policy=Policy(run="recorded")) as workspace:
        workspace.run("echo made > b; sed -i s/2/two/ a")
        assert one.push().pushed == ("a", "b")
        workspace.undo()
        assert one.push().deleted == ("b",)
    other.pull()
    assert files(one) == files(other) == {"a": b"1\n2\n"}


def test_requests_are_parallel_up_to_a_number(memory, monkeypatch):
    monkeypatch.setattr(sync, "_AT_ONCE", 4)
    present, peak, lock = [], [], Lock()
    one = memory("one")
    put(one, {f"f{number}": "x" for number in range(12)})
    one.push()

    def slow(*_):
        with lock:
            present.append(1)
            peak.append(len(present))
        time.sleep(0.02)
        with lock:
            present.pop()

    before(monkeypatch, obstore, "get", slow)
    memory("other").pull()
    assert 1 < max(peak) <= 4


def test_a_pull_whose_time_is_up_says_so_and_continues(memory, monkeypatch):
    monkeypatch.setattr(sync, "_AT_ONCE", 2)
    one, other = (memory(name, timeout=0.5) for name in ("one", "other"))
    put(one, {f"f{number}": "x" for number in range(9)})
    one.push()
    with monkeypatch.context() as patch:
        before(patch, obstore, "get", lambda *_: time.sleep(0.3))
        first = other.pull()
    assert first.truncated
    assert "Pull or push again" in first.text
    second = other.pull()
    assert not second.truncated
    assert 0 < len(first.pulled) < len(first.pulled) + len(second.pulled) == 9


def test_a_comparison_that_takes_too_long_changes_nothing(memory, tmp_path):
    one = memory("one")
    put(one, {"a": "a"})
    one.push()
    with pytest.raises(TimeoutError):
        memory("other", timeout=0).pull()
    assert files(tmp_path / "other") == {}


def test_a_workspace_sees_nothing_of_the_state(trees):
    one = trees("one")
    put(one, {"a": "word\n"})
    one.push()
    with Workspace(one) as workspace:
        assert [each.path for each in workspace.ls(depth=0).entries] == ["a"]
        assert workspace.grep("word").total_files == 1
        with workspace.recording("pull") as recorded:
            put(one, {"a": "changed\n"})
            one.push()
        assert [each.path for each in recorded.result.files] == ["a"]
        assert code_of(workspace.write, ".agentfs/x", "x") == "protected"


def test_protected_names_stay_where_they_are(trees):
    one, other = trees("one"), trees("other")
    put(one, {".env": "SECRET=1\n", ".git/hooks/pre-commit": "#!/bin/sh\n", "a": "a"})
    result = one.push()
    assert result.pushed == ("a",)
    assert result.left_out == {"protected": (".env", ".git")}
    names = (".env", ".git/hooks/pre-commit")
    open_policy = Policy(protect=Protect(read=(), write=()))
    assert {*trees("one", policy=open_policy).push().pushed} == {*names}
    result = other.pull()
    assert result.pulled == ("a",)
    assert result.left_out == {"protected": names}
    assert trees("other", policy=open_policy).pull().pulled == names
    assert other.status().to_push == ()


def test_objects_are_plain_and_plain_objects_are_files(memory):
    obstore.put(memory.where, "of/others.txt", b"text")
    tree = memory("cache")
    assert tree.pull().pulled == ("of/others.txt",)
    put(tree, {"ours.txt": "ours"})
    tree.push()
    assert bytes(obstore.get(memory.where, "ours.txt").bytes()) == b"ours"
    keys = {each["path"] for page in obstore.list(memory.where) for each in page}
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


def git_merge(versions: tuple[bytes, bytes, bytes], where: Path) -> bytes | None:
    for name, data in zip(("base", "ours", "theirs"), versions, strict=True):
        (where / name).write_bytes(data)
    command = ["git", "merge-file", "-p", "ours", "base", "theirs"]
    done = subprocess.run(command, cwd=where, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


_lines = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n"]), max_size=8).map(b"".join)


@needs("git")
@law(2, 4, cases=st.lists(st.tuples(_lines, _lines, _lines), min_size=1, max_size=60))
def test_merges_are_those_of_git(tmp_path_factory, cases):
    top = tmp_path_factory.mktemp("merge")
    one, other = shared(opener(MemoryStore(), top), {str(n): base for n, (base, _, _) in enumerate(cases)})
    put(other, {str(number): ours for number, (_, ours, _) in enumerate(cases)})
    put(one, {str(number): theirs for number, (_, _, theirs) in enumerate(cases)})
    one.push()
    conflicts = other.pull().conflicts
    merged = {str(number): git_merge(case, top) for number, case in enumerate(cases)}
    assert {*conflicts} == {name for name, text in merged.items() if text is None}
    ours = {name: cases[int(name)][1] if text is None else text for name, text in merged.items()}
    assert files(other) == ours
    other.push()
    one.pull()
    assert files(one) == {name: cases[int(name)][2] if name in conflicts else ours[name] for name in ours}
