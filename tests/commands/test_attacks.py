"""Attacks on staged commands. Each is shown to work on a plain shell, and fails in `run`."""

# ruff: noqa: E501 - a row of a table is one line

import os
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from agentfs import AgentFSError, Limits, Protect, Workspace
from agentfs.branches import Branch
from agentfs.errors import ProtectedError
from agentfs.fs.lock import usable_directories
from tests.commands.conftest import MEANWHILE, NAMES, SECRET, code_of, git, meanwhile, wait_for_stages
from tests.history.judges import snapshot
from tests.kit import put, refused

PYTHON = shlex.quote(sys.executable)  # as a word of a command line
READS = [
    "cat .env", "cat ./.e?v", "cat src/../.env",
    "python3 -c 'print(open(\".env\").read())'",
    "grep -r TOKEN . -h --include='.*' --include='*.key'",
    "cat $PWD/.env", "cat conf/server.key", "ln -s .env x; cat x", "ln .env x 2>/dev/null; cat x",
    "cp .env x; cat x", "mv .env x; cat x", "tar cf - . | strings", "cat /proc/self/cwd/.env",
    "cat /proc/self/root$PWD/.env",
    "for p in /proc/[0-9]*; do cat $p/root$PWD/.env $p/cwd/.env; done",
    "exec 3< .env; cat /proc/$$/fd/3", "exec 3< .env; cat <&3", "find . -name '.env' -exec cat {} +",
    "umount .env; cat .env",
    "unshare -Urm sh -c 'umount .env; cat .env'",
    "unshare -Um sh -c 'umount -l .env; cat .env'",
    "mkdir m; mount --bind . m; cat m/.env",
    "unshare -Urm sh -c 'mkdir /tmp/m; mount --bind . /tmp/m; cat /tmp/m/.env'",
    "dd if=.env of=/dev/stdout", "git diff --no-index /dev/null .env",
]  # fmt: skip


@pytest.fixture(params=["staged", pytest.param("branch", marks=pytest.mark.full)])
def confined(request, staged) -> Iterator[Workspace]:
    with ExitStack() as stack:
        yield staged if request.param == "staged" else stack.enter_context(staged.branch("one"))


@pytest.mark.parametrize("command", READS)
def test_a_protected_file_is_empty_by_every_spelling(confined, tree, command):
    os.link(tree / ".env", tree / "other-name")  # also under a name that is not protected
    assert SECRET.encode() not in everything(confined, command)
    assert SECRET.encode() not in everything(confined, f"cat other-name; {command}")


@pytest.mark.parametrize("command", [each for each in READS if "mount" not in each and "mv" not in each])
def test_these_commands_read_it_in_a_plain_shell(tree, command):
    ran = subprocess.run(["bash", "-c", command], cwd=tree, capture_output=True, check=False, timeout=60)
    assert SECRET.encode() in ran.stdout


def everything(ws: Workspace, command: str) -> bytes:
    """Return all that a model and a program get to see of a command."""
    try:
        result = ws.run(command, timeout=20)
        changes = ws.merge() if isinstance(ws, Branch) else result.changes
    except AgentFSError as error:
        return f"{error} {error.details}".encode()
    found = [result.stdout, result.stderr, result.changes.patch, result.text.encode(), changes.patch]
    for change in changes.files:
        if change.action != "deleted" and change.type == "file":
            found.append(Path(ws.root, change.path).read_bytes())
    return b"\n".join(found)


def test_a_protected_file_that_appears_meanwhile_ends_the_call_without_output(staged, tree):
    staged.run("true")
    save = (tree / "src/.env").write_text
    with meanwhile(save, SECRET), pytest.raises(AgentFSError) as raised:
        staged.run(f"touch made; {MEANWHILE}; cat src/.env")
    assert raised.value.code == "conflict"
    assert SECRET not in f"{raised.value} {raised.value.details}"
    assert not (tree / "made").exists()
    assert staged.run("cat src/.env").stdout == b""


DEEP = f"{'d/' * 257}.env"  # more parts than a path of a call may have


@pytest.mark.parametrize("place", [DEEP, ".git/objects/.env"])
def test_regression_a_protected_file_that_is_moved_is_still_hidden(confined, tree, place):
    """A second command showed the real file, in a place where nothing looked for protected names."""
    git(tree, "init", "-q")
    os.makedirs((tree / place).parent, exist_ok=True)
    everything(confined, f"mv .env {place}")
    assert SECRET.encode() not in everything(confined, f"cat {place} .env")


# Commands one after the other, and a path that other programs obey, which they do not change.
DETOURS = [
    (["mkdir env; echo evil > env/own.key", "mv env/own.key .envrc"], ".envrc"),
    (["mkdir env; echo evil > env/own.key", "git init -q new; rm new/.git/config; mv env/own.key new/.git/config"], "new/.git/config"),
    (["mkdir env; echo evil > env/own.key", "git init -q --bare x.git; rm x.git/config; mv env/own.key x.git/config"], "x.git/config"),
    (["rm -r sub; mkdir -p sub/.vscode; echo evil > sub/.vscode/tasks.json"], "sub/.vscode/tasks.json"),
]  # fmt: skip


@pytest.mark.parametrize(("commands", "path"), DETOURS)
def test_regression_what_other_programs_obey_is_not_written_by_a_detour(staged, tree, commands, path):
    """What moves behind a mask, or comes again in place of a removed directory, was not judged."""
    put(tree, {"sub/.vscode/tasks.json": "{}"})
    before = snapshot(tree).get(path)
    for command in commands:
        with suppress(ProtectedError):
            staged.run(command)
    assert snapshot(tree).get(path) == before
    assert (tree / "sub").exists()


# What another program does, a command, and whether it sees the secret.
CHANGES = {
    "directories": [
        ("mkdir -p new/deep; cp .env new/deep", "cat new/deep/.env", False), ("mv new moved", "cat moved/deep/.env", False),
        ("mv moved/deep/.env moved/plain", "cat moved/plain", True), ("mv moved/plain moved/id_rsa", "cat moved/id_rsa", False),
        ("rm -r moved; mkdir moved; cp .env moved", "cat moved/.env", False),
    ],
    "hard links": [
        ("mkdir src/deep; ln .env first", "cat first", False), ("ln .env src/second", "cat first src/second", False),
        ("ln .env src/deep/third", "cat first src/second src/deep/third", False), ("mv src/second moved", "cat moved", False),
        ("mv src/deep deep", "cat deep/third", False), ("ln conf/server.key src/fourth", "cat src/fourth deep/third", False),
        ("rm .env moved first", "cat deep/third", True),  # its only name
    ],
}  # fmt: skip


@pytest.mark.parametrize("changes", CHANGES)
def test_hidden_files_are_found_again_after_changes(staged, tree, changes):
    staged.run("true")
    for change, command, is_seen in CHANGES[changes]:
        subprocess.run(["bash", "-c", change], cwd=tree, check=True)
        assert staged.run(command).stdout == SECRET.encode() * is_seen, change


def test_nothing_outside_is_written(confined, tree, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("old")
    (tree / "way").symlink_to(outside)
    commands = [
        f"echo new > {outside}/file", f"rm -rf {outside}", "echo new > way/file",
        "echo new > ../outside/file", f"mkdir {outside}/d", f"chmod 777 {outside}",
        f"mount -o remount,rw / ; echo new > {outside}/file",
        f"unshare -Urm sh -c 'mount -o remount,bind,rw {outside}; echo new > {outside}/file'",
        f"rm way; ln -s / way; echo new > way{outside}/file",
        "touch ~/made /etc/made /usr/made /var/tmp/made",
    ]  # fmt: skip
    for command in commands:
        everything(confined, command)
        assert snapshot(outside) == {"file": ("file", 0o644, b"old")}
    assert not any(Path(each, "made").exists() for each in (Path.home(), "/etc", "/usr", "/var/tmp"))


def test_nobody_sees_the_private_directory_for_temporaries(confined, tmp_path):
    with tempfile.NamedTemporaryFile(dir="/tmp", prefix="agentfs-probe-") as probe:
        made = f"{probe.name}-made"
        seen = confined.run(f"ls -a /tmp; echo x > {made} && echo written").stdout
        assert b"written" in seen
        assert b"agentfs-probe-" not in seen
    assert not Path(made).exists()


@pytest.mark.parametrize("command", [
    "echo x > .git/hooks/post-checkout", "git config core.fsmonitor 'touch owned'",
    "git config core.hooksPath src",
    "mv .git .g; mkdir .git; cp -r .g/. .git; printf '[core]\\nfsmonitor = touch owned' > .git/config",
    "rm -rf .git", "rm -rf .git; ln -s src .git", "rm -rf .git; echo 'gitdir: src' > .git",
    "mkdir -p .git/modules/x/hooks; echo x > .git/modules/x/hooks/post-checkout",
    "echo ../src > .git/commondir", "echo '* filter=x' > .envrc",
    "mkdir .vscode; echo {} > .vscode/tasks.json",
    "echo x > .env.local", "echo 'alias ls=rm' > .bashrc", "echo x > src/.ENVRC",
    "mkdir new && git init -q new && echo x > new/.git/hooks/post-checkout",
    "git init -q new && git -C new config core.fsmonitor 'touch owned'",
    "git init -q new && git -C new config include.path /tmp/x",
    "git init -q new && git -C new remote add origin 'ext::sh -c touch% owned'",
])  # fmt: skip
def test_files_that_run_code_later_are_not_written(confined, tree, command):
    subprocess.run(["git", "init", "-q", tree], check=True)
    before = snapshot(tree)
    try:
        confined.run(f"set -e; {command}", cwd=".")
        if isinstance(confined, Branch):
            confined.merge()
    except AgentFSError as error:
        assert error.code == "protected"  # noqa: PT017 - some fail in the command itself
    after = snapshot(tree)
    for path in before.keys() | after.keys():
        if (
            "/hooks" in path
            or path.endswith(("config", "commondir"))
            or not path.startswith((".git/", "new"))
        ) and path.split("/")[0] != ".g":
            assert after.get(path) == before.get(path), path
    assert not (tree / "new/.git").exists()


def test_commits_work_and_settings_are_shown_without_credentials(staged, tree):
    git(tree, "init", "-q")
    for name, value in (
        ("user.name", "Somebody"), ("user.email", "somebody@example.com"),
        ("remote.origin.url", f"https://me:{SECRET}@example.com/x.git"), ("http.extraheader", f"Authorization: {SECRET}"),
    ):  # fmt: skip
        git(tree, "config", name, value)
    commit = "git add src && git commit -qm first && git log --format=%an && git remote -v; cat .git/config"
    result = staged.run(commit)
    assert result.exit_status == 0
    assert b"Somebody\norigin\thttps://example.com/x.git" in result.stdout
    assert SECRET.encode() not in result.stdout
    assert git(tree, "log", "--format=%s") == "first\n"
    assert result.changes.lost == (".git",)
    assert SECRET in (tree / ".git/config").read_text()


def test_a_directory_that_a_command_makes_may_have_read_protected_names(staged, tree):
    """A package may have certificates, which are not the user's; these are applied, and undone."""
    result = staged.run("mkdir -p env/lib; echo cert > env/lib/own.pem; echo x > env/lib/x; touch env/.npmrc")
    assert (tree / "env/lib/own.pem").read_text() == "cert\n"
    assert (result.changes.lost, result.changes.not_covered) == ((), {})
    assert b"cert" not in result.changes.patch
    staged.undo()
    assert not (tree / "env").exists()
    staged.redo()
    assert staged.run("echo new > env/lib/own.pem").changes.files == ()
    assert (tree / "env/lib/own.pem").read_text() == "cert\n"


@pytest.mark.parametrize("command", [
    "echo x > new.pem", "echo x > conf/.env", "mkdir new; echo x > new/.envrc",
    "mkdir -p new/.vscode; echo x > new/.vscode/tasks.json",
    "mkdir -p new/bare.git; printf '[core]\\nfsmonitor = touch owned' > new/bare.git/config",
    "cp -r conf copy", "mkdir new; cp .env new",
])  # fmt: skip
def test_other_protected_names_are_refused_and_so_are_empty_copies(staged, tree, command):
    before = snapshot(tree)
    assert code_of(lambda: staged.run(command)) == "protected"
    assert snapshot(tree) == before


def test_a_repository_that_the_command_makes_is_applied(staged, tree):
    made = staged.run("git init -q new && cd new && echo x > f && git add f && git commit -qm x", env=NAMES)
    assert made.exit_status == 0
    # The overlay of an ordinary user copies a file that gets a hard link, which git's check refuses.
    option = "" if os.geteuid() == 0 else "--no-hardlinks"
    cloned = staged.run(f"git clone -q {option} new copy && cat copy/f")
    assert cloned.stdout == b"x\n"
    assert git(tree / "new", "status", "--short") == git(tree / "copy", "status", "--short") == ""


def test_the_state_directory_and_our_own_are_not_seen(opened, tree, tmp_path):
    ws = opened("staged", state=tmp_path / "state")
    ws.write("note", "content of a note")
    result = ws.run(
        f"ls -A {tmp_path}/state; grep -r content {tmp_path}/state; echo x > {tmp_path}/state/x;"
        f" ls -A {next(usable_directories(str(tree)))}"
    )
    assert result.stdout == b""
    assert not (tmp_path / "state/x").exists()


CONNECT = """
import socket, sys
for family, address in ((socket.AF_INET, ("127.0.0.1", int(sys.argv[1]))), (socket.AF_UNIX, "\\0agentfs-tests")):
    try:
        socket.socket(family).connect(address)
        print("connected")
    except OSError as error:
        print("refused")
"""


def test_without_network_nothing_is_reached(staged):
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0agentfs-tests")
    abstract.listen()
    with socket.create_server(("127.0.0.1", 0)) as server, abstract:
        script = f"python3 -c {shlex.quote(CONNECT)} {server.getsockname()[1]}"
        assert staged.run(script).stdout == b"refused\nrefused\n"
        open_network = staged.run(script, network=True)
        assert open_network.stdout.startswith(b"connected\n")
        assert open_network.network
        assert "with network" in open_network.text


def test_no_other_process_is_seen_or_stopped(staged):
    with subprocess.Popen(["sleep", "60"]) as other:
        stop = f"kill -9 {other.pid}; ls -d /proc/{other.pid}; nsenter -t {other.pid} -a true"
        result = staged.run(f"{stop}; ls -d /proc/[0-9]* | wc -l")
        assert result.exit_status == 0
        assert int(result.stdout.split()[-1]) < 20
        assert other.poll() is None
        other.kill()


@pytest.mark.parametrize("command", [
    "mount -t tmpfs tmpfs /mnt", "mknod device b 8 0 && cat device", "chroot / true && unshare -m true",
    'read -r old < /proc/sys/kernel/core_pattern && echo "$old" > /proc/sys/kernel/core_pattern',
    "echo 1 > /sys/kernel/mm/ksm/run", "cat /dev/mem",
    "nsenter -t 1 -m true && nsenter -t 1 -n true",
])  # fmt: skip
def test_the_system_is_not_changed(staged, command):
    assert staged.run(command).exit_status != 0


@pytest.mark.full
@pytest.mark.parametrize(("files", "limits"), [
    pytest.param(400, Limits(snapshot_bytes=1_000_000), id="400"),
    pytest.param(100_000, Limits(), id="100,000", marks=pytest.mark.long),
])  # fmt: skip
def test_more_than_the_limit_is_refused_as_a_whole(opened, tree, files, limits):
    before = snapshot(tree)
    ws = opened("staged", limits=limits)
    script = "import os; os.mkdir('many'); [open(f'many/{n}', 'w').write(6000 * 'x') for n in range(%d)]"
    command = f'{PYTHON} -SIc "{script % files}"; rm README; echo more >> src/a.py'
    error = refused(lambda: ws.run(command, 600), "too_large")
    assert error.details["size"] > files * 6000 > limits.snapshot_bytes
    assert "raise Limits.snapshot_bytes" in error.hint
    assert snapshot(tree) == before
    if files < 1000:  # as the hint says
        opened("staged", limits=Limits(snapshot_bytes=2 * files * 6000)).run(command)
        assert len(os.listdir(tree / "many")) == files


def test_a_file_has_at_most_as_many_bytes_as_the_limit(opened, tree):
    ws = opened("staged", limits=Limits(snapshot_bytes=1_000_000))
    big = ws.run("head -c 3000000 /dev/zero > big; echo after")
    assert big.exit_status == 0
    assert (tree / "big").stat().st_size <= 1_000_000


def test_a_change_of_this_workspace_meanwhile_is_merged(staged, tree):
    (tree / "long").write_text("".join(f"line {n}\n" for n in range(20)))
    staged.read("long")
    command = f"cp long /tmp/x; sed -i 's/line 15/LINE 15/' /tmp/x; cat /tmp/x > long; {MEANWHILE}"
    with meanwhile(staged.edit, "long", "line 2\n", "LINE 2\n"):
        result = staged.run(command)
    text = (tree / "long").read_text()
    assert "LINE 2\n" in text
    assert "LINE 15\n" in text
    assert [change.path for change in result.changes.files] == ["long"]
    staged.undo()
    assert "LINE 2\n" in (tree / "long").read_text()
    assert "line 15\n" in (tree / "long").read_text()


def test_a_number_that_the_workspace_and_a_command_both_count_up_is_a_conflict(staged, tree):
    """Merged, one of the two would be lost."""
    (tree / "count").write_text("1\n")
    with meanwhile(staged.edit, "count", "1", "2"):
        count = f"echo $(($(cat count) + 1)) > new; {MEANWHILE}; mv new count"
        refused(lambda: staged.run(count), "conflict")
    assert (tree / "count").read_text() == "2\n"


def test_nothing_is_left_of_a_command(staged, tree):
    for command in (
        "true",
        "mkdir -p a/b; chmod 0 a; sleep 60",
        "d=x; for i in $(seq 1500); do mkdir d && cd d; done",
    ):
        with suppress(AgentFSError):
            staged.run(command, timeout=3)
    wait_for_stages()
    assert str(tree) not in Path("/proc/self/mountinfo").read_text()


def test_files_that_an_own_list_or_a_rule_names_are_hidden(opened, tree):
    protect = Protect(read=[*Protect.READ, "*.secret", "!server.key"], write=["locked"])
    ws = opened("staged", protect=protect, deny=["read(README)"])
    (tree / "a.secret").write_text("hidden")
    assert ws.run("cat a.secret conf/server.key README").stdout == SECRET.encode()
    refused(lambda: ws.run("echo x > locked"), "protected")
