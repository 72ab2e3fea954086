"""Every difference that a command makes is applied, undone and named, or named as what it is."""

# ruff: noqa: E501 - a row of a table is one line
import errno
import os
import shutil
import subprocess
import time
from types import SimpleNamespace

import pytest

from agentfs import AgentFSError, Workspace
from agentfs.commands import apply_effects
from agentfs.commands.hidden_files import status_of
from tests.commands.conftest import MEANWHILE, code_of, meanwhile
from tests.conftest import needs
from tests.history.judges import snapshot
from tests.kit import put, refused

NOTHING = "Nothing was changed."
OWNER = ["chown 1234", "chgrp 1234"] if os.geteuid() == 0 else []


@pytest.fixture
def ignoring(tree):
    put(tree, {".gitignore": "build/\n*.db\n", "app.db": "rows\n", "build/deep/out": "old\n"})
    return tree


@pytest.mark.parametrize(("command", "lost"), [
    ("echo 2 > build/deep/new", "build/deep/new"),
    ("echo lost > app.db", "app.db"), ("rm app.db", "app.db"),
    ("chmod 600 build/deep/out", "build/deep/out"),
    ("rm build/deep/out", "build/deep/out"), ("touch $(seq -f build/%g 30)", "build"),
])  # fmt: skip
def test_regression_a_recording_names_what_changed_in_ignored_files(recorded, ignoring, command, lost):
    result = recorded.run(command)
    assert result.changes.lost == (lost,)
    assert f'changed, but not kept for undo: "{lost}"' in result.text
    assert NOTHING not in result.text
    assert recorded.run("true").text.endswith(NOTHING)


def test_own_changes_of_ignored_files_do_not_belong_to_a_recording(recorded, ignoring):
    with recorded.recording("block") as block:
        recorded.write("build/deep/own", "mine\n")
        recorded.write("app.db", "mine\n", overwrite="always")
        recorded.move("build/deep/out", "build/deep/moved")
    assert (block.result.files, block.result.lost) == ((), ())


@needs("git")
def test_regression_changes_of_git_are_named(ws, tree):
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=b"]
    for arguments in (["init", "-q"], ["add", "src"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *arguments], check=True)
    author = {f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    result = ws.run("git commit -q --allow-empty -m two", env=author)
    assert result.exit_status == 0
    assert NOTHING not in result.text
    assert 'changed, but not kept for undo: ".git"' in result.text
    assert ws.run("git log --oneline | wc -l").stdout.strip() == b"2"
    moved = ws.run("git mv src/a.py src/c.py")
    assert moved.changes.lost == (".git",)
    assert any(".git" in note for note in ws.undo().notes)


MAKEFILE = "all: app\napp: one.o two.o\n\tcat one.o two.o > app\n%.o: %.c\n\tcp $< $@\n"


def test_regression_times_are_applied_so_make_has_nothing_to_do(staged, tree):
    (tree / "Makefile").write_text(MAKEFILE)
    for name in ("one.c", "two.c"):
        (tree / name).write_text(name)
    staged.run("make")
    assert b"Nothing to be done" in staged.run("make").stdout
    touched = staged.run("touch -d 2030-01-01 one.c")
    assert (tree / "one.c").stat().st_mtime > time.time() + 10_000
    assert 'only the time was changed: "one.c"' in touched.text
    assert NOTHING not in touched.text
    assert b"cp one.c one.o" in staged.run("make").stdout
    assert staged.run("cat one.c").text.endswith(NOTHING)


def test_a_touched_file_is_judged_as_edited(opened, tree):
    ws = opened("staged", deny=["edit(src/**)"])
    before = (tree / "src/a.py").stat().st_mtime_ns
    assert code_of(lambda: ws.run("touch src/a.py")) == "refused"
    assert (tree / "src/a.py").stat().st_mtime_ns == before


SET = 'python3 -c \'import os; os.setxattr("{}", "user.x", b"y")\''


@pytest.mark.parametrize(("way", "command", "said"), [
    ("staged", "touch -d 2020-01-01 src", 'only the time was changed: "src"'),
    ("staged", "touch -d 2020-01-01 .", 'only the time was changed: "."'),
    ("staged", "chmod 700 .", 'not applied: mode: "."'),
    ("staged", SET.format("."), 'not applied: extended attribute: "."'),
    ("staged", SET.format("src/a.py"), 'not applied: extended attribute: "src/a.py"'),
    ("staged", "chmod u+s README", 'not applied: setuid or setgid bit: "README"'),
    ("staged", "mkfifo src/fifo", 'not applied: special file: "src/fifo"'),
    *(("staged", f"{each} README src", 'not applied: owner: "README", "src"') for each in OWNER),
    ("recorded", "touch -d 2020-01-01 README", 'only the time was changed: "README"'),
    ("recorded", "chmod 700 .", 'not kept for undo: "."'),
    ("recorded", "chmod u+s README", 'not kept for undo: "README"'),
    *(("recorded", f"{each} README src", 'not kept for undo: "README", "src"') for each in OWNER),
])  # fmt: skip
def test_regression_every_difference_of_metadata_is_applied_or_named(opened, tree, way, command, said):
    result = opened(way).run(command)
    assert said in result.text
    assert "not applied" in result.text or NOTHING not in result.text
    if "touch" in command:
        assert (tree / command.split()[-1]).stat().st_mtime < 1_600_000_000


def test_the_time_of_a_directory_is_not_changed_under_rules_or_after_another_program(opened, tree):
    before = (tree / "src").stat().st_mtime_ns
    assert 'not applied: time: "src"' in opened("staged", deny=["change(README)"]).run("touch src").text
    assert (tree / "src").stat().st_mtime_ns == before
    with meanwhile((tree / "src/theirs").touch):
        opened("staged").run(f"touch -d 2020-01-01 src; {MEANWHILE}")
    assert (tree / "src").stat().st_mtime_ns > before


@pytest.mark.parametrize("command", ["echo x > b", "chmod 600 b"])
def test_regression_the_loss_of_a_hard_link_is_told(staged, tree, command):
    """The notes of applying were dropped: also on owners that could not be kept."""
    (tree / "b").write_text("b\n")
    os.link(tree / "b", tree / "c")
    assert "2 hard links; the other names keep the old content" in staged.run(command).text
    assert (tree / "c").read_text() == "b\n"


def test_regression_a_touched_file_is_not_replaced(staged, tree):
    (tree / "b").write_text("b\n")
    os.link(tree / "b", tree / "c")
    assert "hard link" not in staged.run("touch -d 2020-01-01 b").text
    assert (tree / "c").stat().st_mtime == (tree / "b").stat().st_mtime < 1_600_000_000


def test_regression_a_change_meanwhile_is_seen_where_times_are_whole_seconds(staged, tree, monkeypatch):
    """Its time was before the start of the command, so it was overwritten."""

    def whole(root, path):
        found = status_of(root, path)
        return SimpleNamespace(
            **{each: getattr(found, each) // 10**9 * 10**9 for each in ("st_ctime_ns", "st_mtime_ns")}
        )

    monkeypatch.setattr(apply_effects, "status_of", whole)
    with meanwhile((tree / "README").write_text, "theirs"):
        refused(lambda: staged.run(f"echo ours > README; {MEANWHILE}"), "conflict")
    assert (tree / "README").read_text() == "theirs"


def test_hard_links_are_applied_as_copies_and_named(staged, tree):
    result = staged.run("echo x > a; ln a b")
    assert result.changes.not_covered == {"hard link": 1}
    assert "not applied: hard link: " in result.text
    assert (tree / "b").read_text() == (tree / "a").read_text() == "x\n"


# What another program does meanwhile


@pytest.mark.parametrize(("act", "command"), [
    (lambda ws: ws.delete("src/a.py"), "echo more >> src/a.py"),
    (lambda ws: ws.move("src/a.py", "moved"), "echo more >> src/a.py"),
    (lambda ws: ws.delete("src/a.py"), "chmod +x src/a.py"),
    (lambda ws: ws.delete("src", recursive=True), "echo new > src/new"),
    (lambda ws: ws.write("made", "theirs\n"), "echo mine > made"),
    (lambda ws: ws.move("README", "made"), "mkdir made"),
    (lambda ws: ws.write_bytes("src/a.py", b"theirs\n"), "touch made; echo mine >> src/a.py; rm README"),
    *(
        (lambda ws, top=top: ws.move("precious", f"{top}/precious"), command.replace("TOP", top))
        for top in ("d", "ignored")
        for command in ("rm -rf TOP", "rm -rf TOP; mkdir TOP; echo new > TOP/new", "rm -rf TOP; echo file > TOP")
    ),
])  # fmt: skip
def test_regression_what_another_does_meanwhile_is_a_conflict_and_stays(staged, tree, tmp_path, act, command):
    put(
        tree, {".gitignore": "ignored/\n", "d/x": "x", "ignored/x": "x", "precious/thesis": "years of work\n"}
    )
    staged.run("true")
    alone = shutil.copytree(tree, tmp_path / "alone", symlinks=True)
    with Workspace(alone) as other:
        act(other)
    with Workspace(tree) as other, meanwhile(act, other):
        refused(lambda: staged.run(f"{command}; {MEANWHILE}"), "conflict")
    assert snapshot(tree) == snapshot(alone)


@pytest.mark.parametrize("command", ["rm -r src", "rm -r src; echo x > src"])
def test_regression_a_file_of_this_workspace_in_a_deleted_directory_is_a_conflict(staged, tree, command):
    """The removal failed half way, and the files that it had removed did not come back."""
    before = snapshot(tree)
    with meanwhile(staged.write, "src/mine", "m\n"):
        refused(lambda: staged.run(f"{command}; {MEANWHILE}"), "conflict")
    (tree / "src/mine").unlink()
    assert snapshot(tree) == before


def test_regression_what_fails_half_way_is_restored(staged, tree, monkeypatch):
    """Contents of removed files were read from where they no longer were."""
    before = snapshot(tree)
    staged.run("true")

    def fail(*_, **__):
        raise OSError(errno.EIO, "fails")

    monkeypatch.setattr("os.rmdir", fail)
    refused(lambda: staged.run("rm -r src; echo more >> README"), "io")
    monkeypatch.undo()
    assert snapshot(tree) == before


def test_what_both_have_done_is_no_conflict(staged, tree):
    (tree / "gone").write_text("x")
    staged.run("true")

    def act():
        (tree / "gone").unlink()
        (tree / "dir").mkdir()

    with meanwhile(act):
        result = staged.run(f"rm gone; mkdir dir; echo x > dir/x; {MEANWHILE}")
    assert [each.path for each in result.changes.files] == ["dir/x"]
    assert not (tree / "gone").exists()


def test_regression_undo_of_a_directory_with_a_foreign_file_is_a_conflict_at_once(staged, tree):
    staged.run("rm README; mkdir README; echo 1 > README/x")
    (tree / "README/new").write_text("n\n")
    before, began = snapshot(tree), time.monotonic()
    error = refused(staged.undo)
    assert (error.code, time.monotonic() - began < 3) == ("conflict", True)
    assert "README" in str(error)
    assert snapshot(tree) == before


@pytest.mark.parametrize("how", ["staged", "recorded"])
def test_regression_a_moved_file_without_final_newline_has_no_changed_lines(opened, tree, how):
    (tree / "a").write_text("z")
    text = opened(how).run("mv a b").text
    assert 'moved "b" from "a"\n' in text


@pytest.mark.full
def test_regression_no_patch_of_a_large_content_is_made(staged, tree):
    """A binary patch of 100 MB took 0.8 GiB."""
    result = staged.run("truncate -s 17M big; echo x > small")
    assert "not in the patch, because it would be too large or take too long: 1 path" in result.text
    assert [change.path for change in result.changes.files] == ["big", "small"]
    assert b"small" in result.changes.patch
    assert b"big" not in result.changes.patch
    staged.undo()
    assert not (tree / "big").exists()


def test_regression_a_cache_that_ignores_itself_is_one_line(staged):
    """Each file of a cache of ruff, mypy or pytest had a line, and its patch."""
    command = (
        "mkdir c; printf '# made by a tool\\n*\\n' > c/.gitignore; for i in 1 2 3; do echo $i > c/$i; done"
    )
    result = staged.run(f"{command}; echo x > a")
    for text in (result.text, staged.changes().text):
        assert 'created "c" with 4 paths, which it ignores itself\ncreated "a" +1 -0' in text
        assert "c/2" not in text
    assert "c/2" in {each.path for each in result.changes.files}


def test_regression_a_recording_says_that_it_cannot_tell_others_apart(opened, tree):
    """`undo` took back what a person had saved meanwhile, although only changes of the command were named."""
    with meanwhile((tree / "README").write_text, "theirs\n"):
        result = opened("recorded").run(f"{MEANWHILE}; sleep 1; echo mine > mine")
    assert {each.path for each in result.changes.files} == {"README", "mine"}
    assert "What other programs changed meanwhile is among its changes, also for undo." in result.text


def test_regression_a_cache_that_two_commands_write_was_changed_by_our_own_call(staged):
    """The other command was called another program."""
    cache = "mkdir -p .cache; echo '*' > .cache/.gitignore; echo {} > .cache/x"
    with meanwhile(staged.run, cache.format(1)), pytest.raises(AgentFSError) as raised:
        staged.run(f"{cache.format(2)}; {MEANWHILE}")
    assert raised.value.code == "conflict"
    assert "by another call of this workspace" in str(raised.value)
