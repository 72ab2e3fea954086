"""Branches: what their tools see and change, their merges, and every bad input."""

import os
import re
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from agentfs import AgentFSError, Limits, Mount, Policy, Workspace, connect
from agentfs.cli import main
from tests.branches.conftest import LINES, SECRET, lose_server
from tests.commands.conftest import git
from tests.kit import in_threads, refused


def changed(number: int, text: str, lines: str = LINES) -> str:
    return lines.replace(f"\n{number}\n", f"\n{text}\n")


def test_tools_and_commands_of_a_branch_see_one_tree_and_leave_the_parent_alone(branch, tree):
    branch.read("src/a.py")
    branch.edit("src/a.py", "\n7\n", "\nseven\n")
    ran = branch.run("sed -i s/^9$/nine/ src/a.py; echo new > n; cat src/a.py")
    assert b"seven\n8\nnine" in ran.stdout
    assert [file.path for file in ran.changes.files] == ["n", "src/a.py"]
    assert branch.read_bytes("n") == b"new\n"
    assert [file.path for file in branch.changes().files] == ["n", "src/a.py"]
    assert (tree / "src/a.py").read_text() == LINES
    assert not (tree / "n").exists()


def read_tree(tree: Path) -> dict[str, str]:
    return {f"{each.relative_to(tree)}": each.read_text() for each in tree.rglob("*") if each.is_file()}


SEVENTEEN = changed(17, "seventeen")


def test_a_merge_is_one_step_with_the_lines_of_both(branch, ws, tree):
    branch.run("sed -i s/^3$/three/ src/a.py; mkdir new; echo x > new/x; rm src/b.py")
    ws.host.edit("src/a.py", "\n17\n", "\nseventeen\n")
    before = read_tree(tree)
    previewed = branch.merge(preview=True)
    assert read_tree(tree) == before
    merged = branch.merge()
    assert (merged.merged, merged.label) == (previewed.merged, "merge: one") == (("src/a.py",), "merge: one")
    assert read_tree(tree) == {
        "src/a.py": changed(17, "seventeen", changed(3, "three")), "new/x": "x\n", ".env": SECRET
    }  # fmt: skip
    ws.undo()
    assert read_tree(tree) == before == {"src/a.py": SEVENTEEN, "src/b.py": "b\n", ".env": SECRET}


@pytest.mark.parametrize(("text", "merged", "equal"), [
    (SEVENTEEN, ("src/a.py",), ()),  # merged by the journal of the branch
    (changed(3, "three"), (), ("src/a.py",)),
], ids=["other lines", "equal lines"])  # fmt: skip
def test_a_path_that_another_program_has_changed_too_is_merged(branch, tree, text, merged, equal):
    branch.run("sed -i s/^3$/three/ src/a.py")
    (tree / "src/a.py").write_text(text)
    result = branch.merge()
    assert (result.merged, result.equal, bool(result.files)) == (merged, equal, bool(merged))
    assert (tree / "src/a.py").read_text() == text.replace("\n3\n", "\nthree\n")


def test_a_conflict_names_paths_and_both_texts_and_applies_nothing(branch, ws, tree):
    branch.run("sed -i s/^3$/three/ src/a.py; echo other > n; echo b2 > src/b.py")
    ws.host.edit("src/a.py", "\n3\n", "\ndrei\n")
    ws.host.write("n", "mine\n")
    before = read_tree(tree)
    error = refused(branch.merge, "conflict")
    assert re.search(r'"n" was created by(?s:.*)"src/a.py" was changed \(line 3\)', str(error))
    first, second = error.details["conflicts"]
    assert (first["path"], first["branch"], first["parent"]) == ("n", "other\n", "mine\n")
    assert (second["path"], second["lines"]) == ("src/a.py", [[3, 3]])
    assert read_tree(tree) == before
    branch.merge(paths="src/b.py")
    assert read_tree(tree) == before | {"src/b.py": "b2\n"}


@pytest.mark.parametrize("link", [False, True])
def test_regression_a_conflict_in_a_directory_that_is_gone_names_both_texts(branch, ws, tree, link):
    """It was `not_found`, or a KeyError if a link led to where the directory was moved."""
    branch.run("echo b2 > src/b.py")
    ws.host.move("src", "moved")
    if link:
        (tree / "src").symlink_to("moved")
    (conflict,) = refused(branch.merge, "conflict").details["conflicts"]
    assert conflict == {"path": "src/b.py", "lines": [], "branch": "b2\n", "parent": None}


def test_without_a_base_a_path_that_both_have_changed_is_a_conflict(branch, tree):
    with branch._sandbox.stopped():
        branch._session.drop()
        upper = Path(branch._sandbox.stage.overlay.upper, "src")
        upper.mkdir(exist_ok=True)
        (upper / "a.py").write_text(changed(3, "three"))
    (tree / "src/a.py").write_text(changed(17, "seventeen"))
    with pytest.raises(AgentFSError, match="was changed"):
        branch.merge()


def test_the_next_merge_begins_with_what_was_merged(branch, tree):
    branch.run("sed -i s/^3$/three/ src/a.py")
    branch.merge()
    assert not branch.merge().files
    (tree / "src/a.py").write_text(changed(17, "seventeen", changed(3, "three")))
    branch.run("sed -i s/^three$/3/ src/a.py")  # takes back what was merged
    branch.merge()
    assert (tree / "src/a.py").read_text() == SEVENTEEN


def test_regression_a_merge_that_was_undone_is_no_base(branch, ws, tree):
    """The second merge brought nothing."""
    branch.run("sed -i s/^3$/three/ src/a.py; echo x > n; rm src/b.py")
    wanted = {"n": "x\n", "src/a.py": changed(3, "three"), ".env": SECRET}
    branch.merge()
    ws.undo()
    assert read_tree(tree) == {"src/a.py": LINES, "src/b.py": "b\n", ".env": SECRET}
    assert sorted(each.path for each in branch.merge().files) == ["n", "src/a.py", "src/b.py"]
    assert read_tree(tree) == wanted
    ws.undo(paths=["n"])
    ws.host.edit("src/a.py", "\n17\n", "\nseventeen\n")
    branch.run("sed -i s/^three$/drei/ src/a.py")
    assert sorted(each.path for each in branch.merge().files) == ["n", "src/a.py"]
    assert read_tree(tree) == wanted | {"src/a.py": changed(17, "seventeen", changed(3, "drei"))}
    ws.undo(steps=2)
    ws.redo(steps=2)
    assert not branch.merge().files


def test_rules_and_the_callback_judge_a_merge(opened, tree):
    asked = []
    ws = opened(deny=["edit(src/**)"], on_ask=lambda request: asked.append(request) or True)
    with ws.branch("one") as branch:
        branch.host.write("n", "new\n")
        branch.merge()
        assert [each.paths for each in asked] == [("n",)]
        branch._session.drop()
        Path(branch._sandbox.stage.overlay.upper, "src").mkdir(exist_ok=True)
        Path(branch._sandbox.stage.overlay.upper, "src/b.py").write_text("other\n")
        assert "denies" in refused(branch.merge, "refused").message
    assert (tree / "src/b.py").read_text() == "b\n"


def test_git_of_a_branch_is_its_own(tree, ws):
    git(tree, "init", "-q")
    git(tree, "add", "src")
    git(tree, "commit", "-qm", "first")
    with ws.branch("one") as branch:
        (tree / "src/b.py").write_text("of the parent\n")
        git(tree, "commit", "-qam", "second")
        branch.run("git config user.email a@b; git config user.name a; sed -i s/^3$/three/ src/a.py")
        made = branch.run("git commit -qam inside && git log --format=%s && git show")
        assert b"inside\nfirst" in made.stdout
        assert b"-of the parent" not in made.stdout  # the commit of the parent is not reverted
        branch.merge()
    assert git(tree, "log", "--format=%s").split() == ["second", "first"]
    assert git(tree, "status", "--short").split() == ["M", "src/a.py", "??", ".env"]
    assert (tree / "src/b.py").read_text() == "of the parent\n"


def test_a_branch_with_a_state_is_kept_until_it_is_discarded(opened, tmp_path, tree):
    state = tmp_path / "state"
    first = opened(state=state)
    with first.branch("one") as branch:
        branch.write("n", "new\n")
    assert first.branches() == ["one"]
    first.close()
    second = opened(state=state)
    with second.branch("one") as branch:
        assert branch.read_bytes("n") == b"new\n"
        assert SECRET.encode() not in branch.run("cat .env").stdout
        branch.undo()
        branch.write("m", "more\n")
        assert [each.path for each in branch.merge().files] == ["m"]
        branch.discard()
    assert second.branches() == []
    assert not os.listdir(state / "branches")


def test_without_a_state_nothing_is_left(ws, tmp_path):
    branch = ws.branch("one")
    place = branch._sandbox.stage.path
    assert ws.branches() == ["one"]
    branch.write("n", "new\n")
    branch.close()
    assert ws.branches() == []
    assert not os.path.exists(place)
    refused(lambda: branch.read("n"), "closed")


def test_a_branch_that_cannot_be_made_is_a_typed_error(ws, branch, tree, tmp_path):
    for name in ("", "a/b", "..", "x" * 200, "a\nb", "stage-1", "-x", "ä"):
        error = refused(lambda: ws.branch(name), "invalid_argument")  # noqa: B023 - called at once
        assert error.details["parameter"] == "name"
    refused(lambda: ws.branch("one"), "busy")
    (tmp_path / "lib").mkdir()
    command = [sys.executable, "-m", "agentfs", "serve", "--root", str(tree)]
    mounts = {"lib": Mount(tmp_path / "lib")}
    mounted = Workspace(tree, policy=Policy(run="staged"), mounts=mounts)
    with mounted, connect(command, tree) as remote, ws.transaction() as inner:
        for parent, said in (
            (branch, "A branch has no branches"),
            (mounted, "mounts"),
            (remote, "A remote workspace"),
            (ws.view(only=["src"]), "A view"),
            (inner, "A transaction"),
        ):
            error = refused(lambda: parent.branch("two"), "unsupported")  # noqa: B023 - called at once
            assert said in error.message


def test_a_merge_during_a_command_is_busy(branch, tree):
    errors = []

    def merge():
        while not branch._sandbox.running:
            pass
        try:
            branch.merge()
        except AgentFSError as error:
            errors.append(error.code)

    with in_threads(merge):
        branch.run("sleep 0.2; echo x > n")
    assert errors == ["busy"]
    assert [each.path for each in branch.merge().files] == ["n"]


def test_a_root_that_was_moved(ws, tree, branch):
    tree.rename(tree.with_name("moved"))
    for call in (lambda: ws.branch("two"), branch.merge):
        assert "moved away" in refused(call, "not_found").message
    tree.with_name("moved").rename(tree)


def test_a_merge_over_the_limit_applies_nothing(opened, tree):
    ws = opened(limits=Limits(snapshot_bytes=100_000))
    with ws.branch("one") as branch:
        branch.run("for n in 1 2 3; do head -c 60000 /dev/zero > big$n; done")
        refused(branch.merge, "too_large")
        assert [each.path for each in branch.merge(paths=["big1"]).files] == ["big1"]
    assert sorted(os.listdir(tree)) == [".env", "big1", "src"]


def test_regression_a_branch_keeps_its_journal_within_a_small_limit(opened):
    """The limit on files was that of what is kept, without the rest of the database: no branch could open."""
    with opened(limits=Limits(snapshot_bytes=6_000)).branch("one") as branch:
        branch.write("n", "x\n")
        assert branch.undo().files


@pytest.mark.full
def test_ten_thousand_changed_files(branch, ws, tree):
    branch.run("mkdir many; for ((n = 0; n < 10000; n++)); do echo $n > many/$n; done")
    assert len(branch.merge().files) == 10_001
    assert len(os.listdir(tree / "many")) == 10_000


def test_a_lost_server_is_started_again(branch):
    branch.write("n", "new\n")
    lose_server(branch)
    with suppress(AgentFSError):  # unless the end was noticed before
        branch.read("n")
    assert branch.read_bytes("n") == b"new\n"


@pytest.fixture
def command_line(tree, tmp_path, capfd):
    def call(*words: str) -> tuple[int, str]:
        status = main(["branch", "one", "--root", str(tree), "--state", str(tmp_path / "state"), *words])
        captured = capfd.readouterr()
        return status, captured.out + captured.err

    return call


def test_a_branch_is_kept_between_commands_until_it_is_discarded(command_line, tree, tmp_path):
    status, shown = command_line("--", "echo new > n; echo said")
    assert (status, shown.splitlines()[0]) == (0, "said")
    assert "agentfs: " in shown
    assert command_line("--", "cat", "n")[1].startswith("new\n")
    assert "+new" in command_line("--merge", "--preview")[1]
    assert not (tree / "n").exists()
    assert command_line("--merge", "--discard", "--", "true")[0] == 0
    assert (tree / "n").read_text() == "new\n"
    assert os.listdir(tmp_path / "state/branches") == []


def test_a_failed_command_merges_nothing(command_line, tree):
    assert command_line("--merge", "--", "echo new > n; exit 3")[0] == 3
    assert not (tree / "n").exists()
    assert command_line()[0] == 125
