"""Protected files of the tree are masks for a command: they show no contents, and do not stand in its way."""

import os
import subprocess

import pytest

from agentfs import Mount, Policy, Workspace
from tests.commands.conftest import MEANWHILE, NAMES, SECRET, git, meanwhile
from tests.conftest import needs
from tests.history.judges import snapshot
from tests.kit import put

pytestmark = needs("git")
LONG_AGO = 1_600_000_000  # before git's index was written


@pytest.fixture
def repository(tree):
    """A repository with tracked and ignored protected files."""
    hidden = ("node_modules/e/test/key.pem", "node_modules/e/.npmrc", ".venv/lib/own.key", ".npmrc")
    put(tree, {**dict.fromkeys(hidden, SECRET), "node_modules/e/index.js": "1\n"})
    put(tree, {".docker/config.json": SECRET, ".gitignore": "node_modules/\n.venv/\n.env\n"})
    for path in (".npmrc", "conf/server.key"):
        os.utime(tree / path, (LONG_AGO, LONG_AGO))
    git(tree, "init", "-q", "-b", "main")
    git(tree, "add", "-f", ".")
    git(tree, "rm", "-rq", "--cached", ".env", "node_modules", ".venv")
    git(tree, "commit", "-qm", "one")
    return tree


@pytest.mark.parametrize(("command", "what", "path"), [
    ("rm .env", "removal of a protected file", ".env"),
    ("git clean -fdxq", "removal of a protected file", ".env"),
    ("echo x > .env", "change of a protected file", ".env"),
    ("chmod 600 .env; sed -i s/a/b/ .env", "change of a protected file", ".env"),
    ("mv .env plain", "copy of a protected file", "plain"),
    ("mv .docker docker", "copy of a protected file", "docker/config.json"),
    ("ln .env plain", "copy of a protected file", "plain"),
    ("git remote add origin https://example.com/x.git", "change of a protected file", ".git/config"),
    ("git config core.fsmonitor ./run", "change of a protected file", ".git/config"),
    ("mkfifo pipe", "special file", "pipe"), ("echo x > a; chmod 4755 a", "setuid or setgid bit", "a"),
    ('echo x > a; python3 -c \'import os; os.setxattr("a", "user.x", b"y")\'', "extended attribute", "a"),
])  # fmt: skip
def test_regression_what_happens_to_a_protected_name_is_not_applied_and_named(
    staged, repository, command, what, path
):
    before = snapshot(repository)
    result = staged.run(f"{command} && echo fine > fine")
    assert result.exit_status == 0, result.text
    assert result.changes.not_covered[what] == 1
    assert f'not applied: {what}: "{path}"' in result.text
    assert (repository / "fine").read_text() == "fine\n"
    for kept in (".env", ".git/config"):
        assert snapshot(repository)[kept] == before[kept]
    assert not (repository / "plain").exists()
    assert SECRET not in result.text


def test_a_protected_file_that_gets_another_protected_name_is_moved(staged, repository):
    result = staged.run("mv .env .env.bak; mv conf/server.key conf/other.key")
    assert sorted(change.path for change in result.changes.files) == [".env.bak", "conf/other.key"]
    assert (repository / ".env.bak").read_text() == SECRET
    assert not (repository / ".env").exists()
    assert staged.run("cat .env.bak conf/other.key").stdout == b""
    staged.undo()
    assert (repository / "conf/server.key").read_text() == SECRET


def test_regression_protected_files_of_one_name_and_time_keep_their_contents_in_a_moved_directory(
    staged, tree
):
    """All got the content of the last one: packages of npm, for example, have one time."""
    put(tree, {f"a/{each}/.npmrc": each for each in "xyz"})
    for each in "xyz":
        os.utime(tree / f"a/{each}/.npmrc", (LONG_AGO, LONG_AGO))
    staged.run("mv a b")
    assert [(tree / f"b/{each}/.npmrc").read_text() for each in "xyz"] == ["x", "y", "z"]
    assert not (tree / "a").exists()


@pytest.mark.parametrize("command", ["cat .env", "wc -c .env", "grep -r TOKEN . || true", "cp .env /tmp/x"])
def test_regression_a_command_that_reads_a_protected_file_is_told(staged, repository, command):
    text = staged.run(command).text
    if os.statvfs(repository).f_flag & os.ST_NOATIME:
        pytest.skip("this mount keeps no access times")
    assert "protected, so the command saw no content: " in text
    assert '".env"' in text
    for other in ("ls -la", "git status", "stat .env", "find . -name .env"):
        assert "protected" not in staged.run(other).text


def test_regression_git_sees_no_change_in_tracked_protected_files(staged, repository):
    assert staged.run("git status --short").stdout == b""
    assert staged.run("git diff").stdout == b""
    done = staged.run("echo more >> README; git add -A; git commit -qam all", env=NAMES)
    assert done.exit_status == 0, done.text
    assert git(repository, "show", "--stat", "--format=", "HEAD").split()[0] == "README"
    assert git(repository, "show", "HEAD:conf/server.key") == SECRET
    stashed = staged.run(
        "echo 3 > README; git stash -q && git stash pop -q && git checkout -q README", env=NAMES
    )
    assert stashed.exit_status == 0, stashed.text
    assert git(repository, "status", "--short") == ""


@pytest.mark.parametrize("below", ["sub", "dep"])
def test_regression_git_sees_no_change_in_a_repository_below_or_in_a_mount(tree, tmp_path, below):
    for place in (tree / "sub", tmp_path / "dep"):
        put(place, {"own.key": SECRET, "a": "1\n"})
        git(place, "init", "-q", "-b", "main")
        git(place, "add", ".")
        git(place, "commit", "-qm", "one")
    with Workspace(tree, policy=Policy(run="staged"), mounts={"dep": tmp_path / "dep"}) as ws:
        result = ws.run(f"cd {below}; git status --short; echo 2 > a; git commit -qam two", env=NAMES)
    assert (result.exit_status, result.stdout) == (0, b"")
    assert "not applied" not in result.text
    place = (tree if below == "sub" else tmp_path) / below
    assert git(place, "show", "--stat", "--format=").split()[0] == "a"
    assert git(place, "status", "--short") == ""


@pytest.mark.parametrize("command", [
    "git add --renormalize .", "git add -f conf/server.key .env", "git commit -qm key conf/server.key",
    "cd conf && git add . && cd .. && git update-index --index-version 4",
])  # fmt: skip
def test_the_content_of_a_mask_is_not_committed(staged, repository, command):
    before = snapshot(repository)
    os.utime(repository / "conf/server.key", (2_000_000_000, 2_000_000_000))  # then git compares contents
    result = staged.run(f"echo more >> README; {command}; git commit -qm all", env=NAMES)
    if (
        "nothing to commit" not in result.text and ".env" in command
    ):  # `--renormalize` takes the file as unchanged
        assert 'not applied: everything in ".git", because git would get protected files' in result.text
    after = snapshot(repository)
    assert after.pop("README") != before.pop("README")
    assert git(repository, "ls-tree", "HEAD", ".env") == ""
    assert git(repository, "show", "HEAD:conf/server.key") == SECRET


@pytest.mark.parametrize("command", [
    "git add -A; git commit -qm all", "git add .; git commit -qm all",
    "touch conf/server.key; git commit -qam all",
    "git stash -q -u; git stash pop -q; git add -A; git commit -qm all",
    "git rm -q --cached conf/server.key; git commit -qm all",
    "git checkout -qb other; git add -A; git commit -qm all; git checkout -q main",
])  # fmt: skip
def test_regression_git_has_the_same_outcome_as_outside_without_protected_files(staged, repository, command):
    """An index written in the second of its files, and an unignored `.env`, made `git add -A` fail."""
    (repository / ".gitignore").write_text("node_modules/\n.venv/\n")
    os.utime(repository / "conf/server.key")
    git(repository, "add", ".gitignore", "conf")
    plain = repository.parent / "plain"
    subprocess.run(["cp", "-a", repository, plain], check=True)
    with (plain / ".git/info/exclude").open("a") as file:
        file.write(".env\n")
    subprocess.run(
        ["bash", "-c", f"echo more >> README; {command}"], cwd=plain, env=os.environ | NAMES, check=True
    )
    result = staged.run(f"echo more >> README; {command}", env=NAMES)
    assert result.exit_status == 0, result.text
    for arguments in (["for-each-ref"], ["ls-files", "-v", "-s"], ["ls-tree", "-r", "HEAD"]):
        assert git(repository, *arguments) == git(plain, *arguments)
    assert git(repository, "status", "--short").replace("?? .env\n", "") == git(plain, "status", "--short")
    assert (repository / ".env").read_text() == SECRET


def test_directories_above_masks_are_no_effects(staged, tree):
    put(tree, {"deep/er/.env": SECRET})
    (tree / "deep").chmod(0o2750)
    os.utime(tree / "deep/er", (LONG_AGO, LONG_AGO))
    seen = staged.run("stat -c '%a %Y' deep deep/er")
    assert seen.text.endswith("Nothing was changed.")
    assert seen.stdout.decode().split()[0] == "2750"
    assert seen.stdout.decode().split()[3] == str(LONG_AGO)


def test_regression_a_save_of_a_hidden_file_in_a_mount_shows_nothing(opened, tree, tmp_path):
    """The kernel detached the bind mount when the file below was replaced."""
    dep = tmp_path / "dep"
    dep.mkdir()
    (dep / ".env").write_text("OLD")

    def save():
        for top in (dep, tree):
            (top / "new").write_text(SECRET)
            os.replace(top / "new", top / ".env")

    mounts = {"dep": Mount(dep, read_only=True)}
    with Workspace(tree, policy=Policy(run="staged"), mounts=mounts) as ws, meanwhile(save):
        assert SECRET.encode() not in ws.run(f"{MEANWHILE}; cat dep/.env .env").stdout


@pytest.mark.full
def test_regression_many_hidden_files_cost_no_arguments(opened, tree):
    """Each was a bind mount, with a time that grew with the square, and too many arguments."""
    (tree / "data").mkdir()
    for number in range(3_000):
        (tree / f"data/k{number}").touch()
    ws = opened("staged", deny=["read(data/**)"])
    assert ws.run("cat data/k7; ls data | wc -l", timeout=30).stdout == b"3000\n"


def test_certificates_of_packages_can_be_read(staged, tree):
    put(tree, {"lib/cacert.pem": "certificates\n"})
    assert staged.run("cat lib/cacert.pem").stdout == b"certificates\n"
