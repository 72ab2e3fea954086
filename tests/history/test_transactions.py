"""Transactions: several changes as one, that see one another and nobody else sees."""

import contextlib
import os
import threading
import time

import pytest

from agentfs import AgentFSError, LineChange, Policy, Workspace
from agentfs.errors import ConflictError, NotFoundError, ReadOnlyError, UnreadError
from tests import kit
from tests.history.judges import snapshot


def test_calls_see_one_another_and_the_disk_sees_them_at_the_end(ws, tmp_path):
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "link").symlink_to("a")
    before = snapshot(tmp_path)
    with ws.transaction() as tx:
        tx.edit("a", "one", "two")
        tx.edit("link", "two", "three")
        assert tx.read("a").content == "three\n"
        assert ws.read("a").content == "one\n"
        tx.write("new/b", "x\n")
        tx.move("new/b", "c")
        with pytest.raises(AgentFSError):
            tx.read("new/b")
        assert snapshot(tmp_path) == before
    assert (tmp_path / "a").read_text() == "three\n"
    assert (tmp_path / "c").read_text() == "x\n"
    assert not (tmp_path / "new").exists()
    assert ws.undo().steps == 1, "all together is one step"
    assert snapshot(tmp_path) == before


def _linked(top):
    (top / "d").mkdir()
    (top / "d" / "f").write_text("one\n")
    (top / "a").write_text("one\n")
    (top / "link").symlink_to("a")
    (top / "dirlink").symlink_to("d")
    (top / "away").symlink_to("/etc/hostname")


def test_a_transaction_follows_a_link_that_it_moved(tmp_path):
    top = tmp_path / "root"
    top.mkdir()
    _linked(top)
    with Workspace(top) as ws:
        with ws.transaction() as tx:
            tx.move("link", "link2")
            tx.move("dirlink", "deep/dirlink")
            tx.move("away", "away2")
            assert (tx.read("link2").path, tx.read("link2").content) == ("link2", "one\n")
            assert tx.read("./deep/../link2").content == "one\n"
            tx.edit("link2", "one", "two")
            assert tx.read("link2").content == tx.read("a").content == "two\n"
            for path, code in [
                ("link", "not_found"),
                ("deep/dirlink/f", "not_found"),  # the moved link points to deep/d, as it does on disk
                ("dirlink/f", "not_found"),
                ("away2", "outside_workspace"),
            ]:
                with pytest.raises(AgentFSError) as caught:
                    tx.read(path)
                assert caught.value.code == code
        assert (top / "a").read_text() == "two\n"
        assert os.readlink(top / "link2") == "a"
        assert os.readlink(top / "deep" / "dirlink") == "d"


def test_a_directory_link_that_was_moved_in_a_transaction_leads_to_its_files(tmp_path):
    _linked(tmp_path)
    with Workspace(tmp_path) as ws:
        with ws.transaction() as tx:
            tx.move("dirlink", "other")
            assert tx.read("other/f").content == "one\n"
            tx.write("other/new", "x\n")
            tx.edit("other/f", "one", "two")
        assert (tmp_path / "d" / "f").read_text() == "two\n"
        assert (tmp_path / "d" / "new").read_text() == "x\n"
        ws.undo()
        assert (tmp_path / "d" / "f").read_text() == "one\n"
        assert (tmp_path / "dirlink").is_symlink()


@pytest.mark.parametrize("path", ["link2", "other/f"])
def test_a_link_moved_in_a_transaction_leads_past_no_rule(tmp_path, path):
    _linked(tmp_path)
    policy = Policy(deny=["read({a,d/**})", "edit({a,d/**})"])
    with Workspace(tmp_path, policy=policy) as ws, ws.transaction() as tx:
        tx.move("link", "link2") if path == "link2" else tx.move("dirlink", "other")
        for act in (lambda: tx.read(path), lambda: tx.edit(path, "one", "two")):
            with pytest.raises(AgentFSError) as caught:
                act()
            assert caught.value.code == "refused"
    assert (tmp_path / "a").read_text() == (tmp_path / "d" / "f").read_text() == "one\n"


def test_a_transaction_follows_no_links_if_the_policy_forbids_them(tmp_path):
    _linked(tmp_path)
    policy = Policy(symlinks="never", overwrite="always")
    with Workspace(tmp_path, policy=policy) as ws, ws.transaction() as tx:
        for act in (lambda: tx.edit("link", "one", "two"), lambda: tx.write("dirlink/f", "x\n")):
            with pytest.raises(AgentFSError) as caught:
                act()
            assert caught.value.code == "refused"
    assert (tmp_path / "a").read_text() == (tmp_path / "d" / "f").read_text() == "one\n"


def test_a_file_and_a_directory_that_are_staged_are_not_each_other(ws, tmp_path):
    (tmp_path / "old").write_text("x\n")
    with ws.transaction() as tx:
        tx.write("file", "x\n")
        tx.write("new/deep/x", "x\n")
        tx.read("old")
        tx.delete("old")
        assert tx.read("new/deep/../deep/x").content == "x\n"
        for act, code in [
            (lambda: tx.write("file/x", "y\n"), "not_a_directory"),
            (lambda: tx.write("new/deep", "y\n"), "not_a_file"),
            (lambda: tx.read("old/x"), "not_found"),
        ]:
            with pytest.raises(AgentFSError) as caught:
                act()
            assert caught.value.code == code
        assert str(tx.read("new")) == str(tx.ls("new"))
        tx.write("old/x", "a directory now\n")
    assert sorted(snapshot(tmp_path)) == ["file", "new", "new/deep", "new/deep/x", "old", "old/x"]
    ws.undo()
    assert sorted(snapshot(tmp_path)) == ["old"]


def test_whoever_raises_changes_nothing(ws, tmp_path):
    def fail():
        with ws.transaction() as tx:
            tx.write("a", "1\n")
            tx.edit("a", "nowhere", "x")

    with pytest.raises(AgentFSError):
        fail()
    assert snapshot(tmp_path) == {}
    assert not ws.changes().files


def _fails_in_a_transaction(ws, act):
    with pytest.raises(RuntimeError), ws.transaction() as tx:  # noqa: PT012 - the block is what is tested
        act(tx)
        raise RuntimeError


@pytest.mark.parametrize("kept", [False, True])
def test_a_transaction_that_is_rolled_back_changes_nothing_of_what_was_read(tmp_path, kept):
    lines = "".join(f"{number}\n" for number in range(1, 11))
    top = tmp_path / "root"
    top.mkdir()
    (top / "a").write_text(lines)
    (top / "b").write_text(lines)
    state = tmp_path / "state" if kept else None
    with Workspace(top, state=state) as ws:
        ws.read("a", 1, 3)
        ids = ws.read("b", line_ids=True).line_ids

        def act(tx):
            tx.edit("a", "5\n", "five\n")
            tx.edit("b", "5\n", "five\n")
            tx.write("new", "1\n2\n")
            assert tx.read("b", line_ids=True).line_ids[:4] == ids[:4]
            tx.move("b", "c")

        _fails_in_a_transaction(ws, act)
        (top / "new").write_text("1\n2\n")
        _check_tracked(ws)
    if kept:
        with Workspace(top, state=state) as ws:
            _check_tracked(ws, unread_lines=None)  # only what was read in full outlives the process


def _check_tracked(ws, unread_lines=((4, 10),)):
    with pytest.raises(AgentFSError) as caught:
        ws.write("a", "x\n")
    found = caught.value.details.get("unread_lines")
    assert (caught.value.code, found) == ("unread", unread_lines and [*map(list, unread_lines)])
    with pytest.raises(AgentFSError) as caught:
        ws.write("new", "x\n")
    assert caught.value.code == "unread", "what was only staged was never on disk"


def test_reads_from_the_disk_by_a_failed_transaction_count(ws, tmp_path):
    (tmp_path / "a").write_text("one\ntwo\n")
    found = []
    _fails_in_a_transaction(ws, lambda tx: found.append(tx.read("a", line_ids=True).line_ids))
    ws.edit_lines("a", [LineChange(line_id=found[0][1], new_content="zwei")])
    ws.write("a", "x\n")
    assert (tmp_path / "a").read_text() == "x\n"


def test_reads_in_a_transaction_count_after_its_commit(ws, tmp_path):
    (tmp_path / "a").write_text("one\ntwo\n")
    with ws.transaction() as tx:
        tx.edit("a", "two", "zwei")
        tx.write("b", "1\n")
        ids = tx.read("a", line_ids=True).line_ids
    ws.edit_lines("a", [LineChange(line_id=ids[0], new_content="eins")])
    ws.write("a", "x\n")
    ws.write("b", "2\n")
    assert (tmp_path / "a").read_text() == "x\n"


def test_reads_beside_a_failing_transaction_count(ws, tmp_path):
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "b").write_text("one\n")

    def act(tx):
        tx.edit("a", "one", "two")
        ws.read("a")
        ws.read("b")

    _fails_in_a_transaction(ws, act)
    ws.write("a", "x\n")
    ws.write("b", "x\n")
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text() == "x\n"


def test_forget_in_a_failing_transaction_forgets(ws, tmp_path):
    (tmp_path / "a").write_text("one\n")
    ws.read("a")
    _fails_in_a_transaction(ws, lambda tx: tx.forget())
    with pytest.raises(AgentFSError) as caught:
        ws.write("a", "x\n")
    assert caught.value.code == "unread"


def test_a_file_that_somebody_else_changes_meanwhile_stops_all_of_it(ws, tmp_path):
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "b").write_text("one\n")

    def change():
        with ws.transaction() as tx:
            tx.edit("a", "one", "two")
            tx.edit("b", "one", "two")
            (tmp_path / "b").write_text("theirs\n")

    with pytest.raises(ConflictError) as caught:
        change()
    assert "+theirs" in str(caught.value)
    assert (tmp_path / "a").read_text() == "one\n"


LINES = "".join(f"line {number}\n" for number in range(9))


def test_two_open_transactions_that_change_other_lines_of_a_file_both_end(ws, tmp_path):
    """The second merges at its end, as undo does; one undo takes each of them back alone."""
    (tmp_path / "a").write_text(LINES)
    with ws.transaction() as outer, Workspace(tmp_path) as other:
        outer.edit("a", "line 1\n", "first\n")
        outer.write("new", "x\n")
        with other.transaction() as later:
            later.edit("a", "line 7\n", "seventh\n")
        assert (tmp_path / "a").read_text() == LINES.replace("line 7", "seventh")
    merged = LINES.replace("line 1", "first").replace("line 7", "seventh")
    assert (tmp_path / "a").read_text() == merged
    assert outer.commit_notes == ('merged with later changes: "a"',)
    with pytest.raises(UnreadError):
        ws.write("a", "unseen lines would be lost\n")
    ws.undo()
    assert (tmp_path / "a").read_text() == LINES.replace("line 7", "seventh")
    assert not (tmp_path / "new").exists()


def test_a_transaction_merges_with_a_changed_mode(ws, tmp_path):
    (tmp_path / "b").write_text(LINES)
    with ws.transaction() as tx:
        tx.edit("b", "line 1\n", "first\n")
        (tmp_path / "b").chmod(0o755)
    assert (tmp_path / "b").read_text() == LINES.replace("line 1", "first")
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("theirs", [
    lambda top: (top / "a").write_text(LINES.replace("line 1", "other")), lambda top: (top / "a").unlink(),
    # As two programs do that both count up a number: one of the two would be lost.
    lambda top: (top / "a").write_text(LINES.replace("line 1", "first")),
    lambda top: (top / "a").write_text(LINES.replace("line 1", "first").replace("line 7", "seventh")),
    lambda top: (top / "new").write_text("x\n"),
    lambda top: (top / "new").write_text("theirs\n"), lambda top: ((top / "a").unlink(), (top / "a").mkdir()),
    lambda top: (top / "a").write_bytes(b"\0" + LINES.encode()),
])  # fmt: skip
def test_a_transaction_that_cannot_be_merged_changes_nothing(ws, tmp_path, theirs):
    (tmp_path / "a").write_text(LINES)

    def change():
        with ws.transaction() as tx:
            tx.edit("a", "line 1\n", "first\n")
            tx.write("new", "x\n")
            tx.write("d/other", "x\n")
            theirs(tmp_path)
            seen.append(snapshot(tmp_path))

    seen = []
    with pytest.raises(ConflictError):
        change()
    assert snapshot(tmp_path) == seen[0]


def test_calls_on_the_workspace_take_no_part(ws, tmp_path):
    with pytest.raises(RuntimeError), ws.transaction() as tx:  # noqa: PT012 - the block is what is tested
        tx.write("mine", "x\n")
        ws.write("apart", "y\n")
        raise RuntimeError
    assert sorted(snapshot(tmp_path)) == ["apart"]


def test_undo_and_changes_are_those_of_the_transaction(ws, tmp_path):
    ws.write("before", "x\n")
    with ws.transaction() as tx:
        tx.write("a", "1\n")
        tx.write("b", "2\n")
        tx.undo()
        assert [f.path for f in tx.changes().files] == ["a"]
        with pytest.raises(AgentFSError, match="Only 1 step"):
            tx.undo(5)
    assert sorted(snapshot(tmp_path)) == ["a", "before"]


def test_a_transaction_without_a_net_change_is_not_a_step(ws):
    with ws.transaction() as tx:
        tx.write("a", "1\n")
        tx.read("a")
        tx.delete("a")
    with pytest.raises(AgentFSError, match="nothing to undo"):
        ws.undo()


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda tx: tx.write("../out", "x"), "outside_workspace"),
        (lambda tx: tx.write("d", "x"), "not_a_file"),
        (lambda tx: tx.write(".", "x"), "not_a_file"),
        (lambda tx: tx.write("f/below", "x"), "not_a_directory"),
        (lambda tx: tx.write("away/x", "x"), "outside_workspace"),
        (lambda tx: tx.write(".git/hooks/x", "x"), "protected"),
        (lambda tx: tx.move("f", ".env"), "protected"),
        (lambda tx: tx.write("f", "x"), "unread"),
        (lambda tx: tx.delete("full"), "not_a_file"),
        (lambda tx: tx.edit("shut", "x", "y"), "refused"),
        (lambda tx: tx.write("loop", "x"), "link_loop"),
    ],
)
def test_a_transaction_refuses_the_same_changes_as_the_disk(tmp_path, act, code):
    top = tmp_path / "root"
    (top / "d").mkdir(parents=True)
    (top / "full").mkdir()
    (top / "full" / "f").write_text("x\n")
    (top / "f").write_text("x\n")
    (top / "shut").write_text("x\n")
    (top / "shut").chmod(0o444)
    (top / "away").symlink_to(tmp_path)
    (top / "loop").symlink_to("loop")
    before = snapshot(tmp_path)
    with Workspace(top) as ws:
        with ws.transaction() as tx, pytest.raises(AgentFSError) as caught:
            act(tx)
        assert caught.value.code == code
        assert snapshot(tmp_path) == before


def test_it_cannot_be_used_after_its_end(ws):
    with ws.transaction() as tx:
        tx.write("a", "1\n")
    for act in (lambda: tx.write("b", "2\n"), lambda: tx.read("a"), lambda: tx.delete("a")):
        with pytest.raises(AgentFSError, match="has ended"):
            act()


def test_a_root_that_is_only_read_has_none(tmp_path):
    only_read = Workspace(tmp_path, policy=Policy(read_only=True))
    with only_read as ws, ws.transaction() as tx, pytest.raises(ReadOnlyError):
        tx.write("a", "1\n")


def test_a_link_swapped_in_before_the_end_leads_nowhere(tmp_path):
    top, out = tmp_path / "root", tmp_path / "out"
    (top / "d").mkdir(parents=True)
    out.mkdir()

    def change(ws):
        with ws.transaction() as tx:
            tx.write("d/a", "x\n")
            tx.write("b", "x\n")
            os.rename(top / "d", top / "e")
            (top / "d").symlink_to(out)

    with Workspace(top) as ws, pytest.raises(AgentFSError):
        change(ws)
    assert snapshot(out) == {}
    assert not (top / "b").exists()


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_a_transaction_learns_the_umask_without_changing_it(ws, tmp_path, monkeypatch, mask):
    """While it was changed, other threads made files with the wrong mode, and two at once left it changed."""

    def change(mask):
        raise AssertionError("the umask of the process was changed")

    before = os.umask(mask)
    try:
        with monkeypatch.context() as patch, ws.transaction() as tx:
            patch.setattr(os, "umask", change)
            tx.write("new", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_view_of_a_transaction_ends_with_it_and_sees_its_links(tmp_path):
    _linked(tmp_path)
    with Workspace(tmp_path) as ws:
        with ws.transaction() as tx:
            view = tx.view(workdir="d")
            tx.move("link", "d/link2")
            tx.delete("d/link2")
            tx.move("dirlink", "other")
            assert view.read("../other/f").content == view.read("f").content == "one\n"
            view.edit("f", "one", "two")
            assert tx.read("other/f").content == "two\n"
        with pytest.raises(AgentFSError, match="has ended"):
            view.write("late", "x\n")
    assert (tmp_path / "d" / "f").read_text() == "two\n"


def test_a_transaction_within_a_transaction_sees_the_outer_one(ws, tmp_path):
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "gone").write_text("x\n")
    before = snapshot(tmp_path)
    with ws.transaction() as tx:
        tx.edit("a", "one", "two")
        tx.move("gone", "d/moved")
        with tx.view().transaction() as inner:
            assert inner.read("a").content == "two\n"
            assert [entry.path for entry in inner.glob("**").files] == ["a", "d/moved"]
            inner.edit("a", "two", "three")
            with inner.transaction() as innermost:
                innermost.write("d/new", innermost.read("a").content)
            assert tx.read("a").content == "two\n"
        with contextlib.suppress(ZeroDivisionError), tx.transaction() as inner:
            inner.edit("a", "three", "four")
            raise ZeroDivisionError
        assert tx.read("d/new").content == tx.read("a").content == "three\n"
        assert snapshot(tmp_path) == before
        with contextlib.ExitStack() as stack:
            stack.enter_context(tx.transaction()).edit("a", "three", "four")
            tx.edit("a", "three", "five")
            with pytest.raises(ConflictError, match="by another call of this workspace"):
                stack.close()
    assert (tmp_path / "a").read_text() == "five\n"
    assert (tmp_path / "d" / "new").read_text() == "three\n"
    assert ws.undo().undoable == 0
    assert snapshot(tmp_path) == before


def test_a_conflict_with_another_call_of_the_workspace_says_so(ws, tmp_path):
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "b").write_text("one\n")

    def change(path, act):
        with contextlib.ExitStack() as stack:
            stack.enter_context(ws.transaction()).edit(path, "one", "two")
            act()
            with pytest.raises(ConflictError) as caught:
                stack.close()
        return caught.value.message

    def inner():
        with ws.transaction() as other:
            other.edit("a", "one", "three")

    said = 'was changed (line 1) by another call of this workspace (changed "a"); nothing was changed.'
    assert change("a", inner) == f'"a" {said} This is what changed:'
    ws.undo()
    thread = threading.Thread(target=inner)
    assert change("a", lambda: (thread.start(), thread.join())) == f'"a" {said} This is what changed:'
    assert "by another program" in change("b", lambda: (tmp_path / "b").write_text("theirs\n"))


def test_threads_lose_no_change_in_a_transaction(ws, tmp_path):
    (tmp_path / "a").write_text("\n")

    def at_the_start(_):
        time.sleep(0.001)
        return [(0, 0, "one more\n")]

    def add():
        for _ in range(10):
            kit.splice(tx, "a", at_the_start)

    with ws.transaction() as tx:
        threads = [threading.Thread(target=add) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert tx.undo(80).undoable == 0
        tx.redo(80)
    lines = (tmp_path / "a").read_text().split()
    assert len(lines) == 2 * 80


def test_undo_and_views_within_a_transaction_see_what_is_staged(ws, tmp_path):
    (tmp_path / "a").write_text("one\n")
    ws.edit("a", "one", "two")
    with ws.transaction() as tx:
        view = tx.view()
        view.edit("a", "two", "three")
        assert tx.read("a").content == "three\n"
        tx.undo()
        assert view.read("a").content == "two\n"
        with pytest.raises(AgentFSError, match="nothing to undo"):
            tx.undo()
        view.write("b", "new\n")
    assert (tmp_path / "a").read_text() == "two\n"
    assert (tmp_path / "b").read_text() == "new\n"
    assert ws.undo(2).undoable == 0


@pytest.mark.parametrize("spelling", ["n.txt", "./n.txt", "d/../n.txt", "d//./f"])
def test_a_read_of_a_staged_file_shows_the_path_as_on_disk(ws, tmp_path, spelling):
    (tmp_path / "d").mkdir()
    for path in ("n.txt", "d/f"):
        (tmp_path / path).write_text("old\n")
    shown = ws.read(spelling).path
    with ws.transaction() as tx:
        for path in ("n.txt", "d/f"):
            tx.write(path, "new\n", overwrite=True)
        assert tx.read(spelling).path == shown
        assert tx.view(workdir="d").read("f").path == "f"


@pytest.mark.parametrize("name", ["a", "d"])
def test_a_failed_transaction_leaves_no_move_in_what_was_read(ws, tmp_path, name):
    (tmp_path / "d").mkdir()
    inner, target = ("a", "b") if name == "a" else ("d/a", "b/a")
    (tmp_path / inner).write_text("one\n")
    ws.read(inner)
    (tmp_path / inner).write_text("two\n")
    ws.read(inner)
    with contextlib.suppress(ZeroDivisionError), ws.transaction() as tx:
        tx.move(name, "b")
        raise ZeroDivisionError
    (tmp_path / target).parent.mkdir(exist_ok=True)
    (tmp_path / target).write_text("one\n")  # by another program
    with pytest.raises(UnreadError):
        ws.write(target, "new\n")
    (tmp_path / inner).unlink()
    with pytest.raises(NotFoundError) as caught:
        ws.read(inner)
    assert "moved_to" not in caught.value.details
    (tmp_path / inner).write_text("two\n")
    ws.write(inner, "new\n")
