"""A staged command sees what is listed outside the root, and nothing else."""

# ruff: noqa: E501 - a row of a table is one line

import os
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentfs import Mount, Policy, Workspace
from agentfs.commands import outside
from tests.commands.conftest import SECRET, code_of, git
from tests.conftest import needs
from tests.dialects.answers import check
from tests.history.judges import snapshot


@pytest.fixture(params=["/tmp", "/var/tmp"])
def place(request):
    """A directory with a root, where a command has a private one, or in a place that it does not see."""
    with tempfile.TemporaryDirectory(dir=request.param) as directory:
        found = Path(directory).resolve()
        (found / "root").mkdir()
        yield found


@pytest.fixture
def home(place, monkeypatch):
    monkeypatch.setenv("HOME", str(place / "home"))
    (place / "home").mkdir()
    return place / "home"


def put(path: Path, text: str = SECRET, mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def ran(root: Path, command: str, **options) -> str:
    with Workspace(root, policy=Policy(run="staged", **options)) as ws:
        result = ws.run(command)
        return (result.stdout + result.stderr).decode()


HIDDEN = """
.ssh/id_rsa .aws/credentials .netrc .git-credentials .bash_history .docker/config.json .config/gcloud/x
.kube/config
.mozilla/cookies .claude/x .cargo/credentials.toml .npm/_logs/x .local/share/uv/credentials/x notes.txt
.config/git/credentials .cache/huggingface/token .config/unheard-of/secret
.local/share/keyrings/x
"""


def test_regression_nothing_of_the_home_is_seen_except_toolchains_and_caches(place, home):
    """At 2577aaf1 everything was seen but what a list of names hid."""
    for name in HIDDEN.split():
        put(home / name)
    for name in (".cargo/bin/tool", ".rustup/x", ".cache/pip/http/x", ".npm/_cacache/x", ".local/bin/x"):
        put(home / name, "listed\n")
    secrets = f"grep -rlF {SECRET} ~ {place} /tmp /var /run 2>/dev/null"  # /tmp may have the interpreter
    found = ran(place / "root", f"{secrets}; grep -rl listed ~")
    assert sorted(found.splitlines()) == sorted(
        str(home / each)
        for each in (".cargo/bin/tool", ".rustup/x", ".cache/pip/http/x", ".npm/_cacache/x", ".local/bin/x")
    )


HELLO = "#!/bin/sh\necho hello\n"
# Files, links, the directory of programs, a command, and its output. A file says `{place}` and `{home}`.
SEEN = {
    "regression_caches_are_used_and_not_changed": (
        {"home/.cache/pip/entry": "cached\n", "home/.npm/_cacache/entry": "cached\n"}, {}, "",
        "cat ~/.cache/pip/entry ~/.npm/_cacache/entry && echo x > ~/.cache/pip/entry && touch ~/.npm/_cacache/new && echo fine",
        {"": "cached\ncached\nfine\n"}),
    "regression_other_files_are_not_seen_and_nothing_is_written_beside_the_root": (
        {"other/secret": SECRET, "home/project/.env": SECRET}, {}, "",
        "cat {place}/other/secret; ls {place}; echo x > {place}/beside; ls -A /run ~", {"!": SECRET, "~": "Read-only file system"}),
    "a directory of programs is shown without its neighbours": (
        {"mine/programs/hello": HELLO, "mine/notes.txt": "not shown\n"}, {}, "mine/programs",
        "hello; ls {place}/mine; echo x > {place}/mine/programs/hello", {"^": "hello\nprograms\n"}),
    "a link to a directory of programs": (
        {"mine/programs/hello": HELLO, "mine/notes.txt": "not shown\n"}, {"link": "{place}/mine/programs"}, "link",
        "hello; ls {place}/mine; echo x > {place}/mine/programs/hello", {"^": "hello\nprograms\n"}),
    # A model can write these files: links of programs, alternates, hooks.
    "what a tree says shows nothing": (
        {"home/private/bin/x": SECRET, "root/.git/objects/info/alternates": "{home}/private\n",
         "root/.git/config": "[core]\n hooksPath = {home}/private/bin\n"}, {"root/.venv/bin/python3": "{home}/private/bin/x"}, "root/.venv/bin",
        "cat .venv/bin/python3; cat {home}/private/bin/x; ls -A ~", {"!": SECRET}),
    "regression_only_a_directory_bin_belongs_to_an_installation": (
        {"mine/scripts/hello": HELLO, "mine/lib/x": "", "mine/.env": SECRET, "other/bin/bye": HELLO, "other/lib/x": "shown\n"}, {},
        "mine/scripts:{place}/other/bin", "hello; ls {place}/mine; bye; cat {place}/other/lib/x", {"": "hello\nscripts\nhello\nshown\n"}),
    "programs of the tree itself are those of the overlay": (
        {"root/bin/old": HELLO}, {}, "root/bin", "printf '#!/bin/sh\\necho made\\n' > bin/new; chmod +x bin/new; new", {"": "made\n"}),
    "regression_links_and_interpreters_of_programs_are_shown": (
        {"home/src/tool/run.sh": "#!{home}/opt/bin/my-sh\necho ran\n", "home/src/tool/private": SECRET, "home/opt/bin/my-sh": "/bin/sh"},
        {"home/.local/bin/tool": "../../src/tool/run.sh"}, "home/.local/bin",
        "tool; cat ~/src/tool/private 2>/dev/null; ls ~/src/tool", {"": "ran\nrun.sh\n"}),
}  # fmt: skip


@pytest.mark.parametrize("name", SEEN)
def test_what_a_command_sees(place, home, monkeypatch, name):
    files, links, programs, command, wanted = SEEN[name]

    def filled(text):
        return text.replace("{place}", str(place)).replace("{home}", str(home))

    for path, text in files.items():
        put(place / path, filled(text), 0o755)
        if text == "/bin/sh":
            shutil.copy(text, place / path)
    for path, target in links.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).symlink_to(filled(target))
    if programs:
        monkeypatch.setenv("PATH", f"{place / filled(programs)}:/usr/bin:/bin")

    def beside():
        return {path: node for path, node in snapshot(place).items() if path.split("/")[0] != "root"}

    before = beside()
    check(ran(place / "root", filled(command)), wanted)
    assert beside() == before


def test_regression_an_installation_without_network_finds_its_wheel(place, home, monkeypatch):
    wheel = runpy.run_path(str(Path(__file__).parent / "test_undone.py"))["make_wheel"](
        place / "wheels" / "tiny"
    )
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    install = f"{shlex.quote(sys.executable)} -m pip install -q --no-index --no-deps --target vendor tiny"
    assert "tiny.py" in ran(place / "root", f"{install} && ls vendor")


NAMED = {
    "PATH": "bin", "VIRTUAL_ENV": ".venv", "PYTHONPATH": "lib", "XDG_CACHE_HOME": "cache", "SSL_CERT_FILE": "own/pip/x",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("top", ["root", "dep"])
def test_regression_a_link_in_a_tree_shows_nothing_whatever_variable_names_it(
    place, home, monkeypatch, name, top
):
    """A model could replace a directory that a variable names by a link to any other one."""
    put(home / "private/pip/x")
    path = place / top / NAMED[name]
    (place / "dep").mkdir()
    monkeypatch.setenv(name, f"{path}:/usr/bin:/bin" if name == "PATH" else str(path))
    link = f"mkdir -p {top}; ln -s ~/private {top}/{NAMED[name].split('/')[0]}".replace("root", ".")
    with Workspace(place / "root", policy=Policy(run="staged"), mounts={"dep": place / "dep"}) as ws:
        assert ws.run(link).exit_status == 0
        outside._kept.cache_clear()  # as in a new process
        assert SECRET.encode() not in ws.run("cat ~/private/pip/x").stdout


def test_files_outside_that_are_gone_are_counted(place, home):
    with Workspace(place / "root", policy=Policy(run="staged")) as ws:
        result = ws.run("echo 1 > ~/a; mkdir -p ~/d ~/.cache; echo 2 | tee ~/d/b ~/.cache/x; echo 3 > /tmp/c")
    assert f"2 files in {home}: gone with the command" in result.text
    assert "1 file in /tmp: gone with the command" in result.text


def test_a_home_that_is_the_root_is_seen_without_its_protected_files(home):
    put(home / "notes.txt", "plain\n")
    put(home / ".ssh/id_rsa")
    assert SECRET not in ran(home, "cat notes.txt .ssh/id_rsa ~/notes.txt; echo new > made")
    assert (home / "made").read_text() == "new\n"


# Programs


def test_regression_a_virtual_environment_is_found(place, monkeypatch):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
    monkeypatch.setenv("PATH", f"{place / 'venv' / 'bin'}:/usr/bin:/bin")
    assert ran(place / "root", "python -c 'import sys; print(sys.prefix)'") == f"{place / 'venv'}\n"


def test_the_program_adds_paths(place):
    shown = put(place / "data/set", "rows\n")
    put(place / "other/x")
    command = f"cat {shown} {place}/other/x; echo x > {shown}; echo x > {place}/data/new"
    assert ran(place / "root", command, run_paths=[place / "data"]).startswith("rows\n")
    assert "rows" not in ran(place / "root", command)
    assert sorted(os.listdir(place / "data")) == ["set"]
    for wrong in (["data"], "data", [3], None):
        assert code_of(lambda wrong=wrong: Policy(run_paths=wrong)) == "invalid_argument"


def test_a_view_is_kept_until_a_directory_of_it_changes(place, home, monkeypatch):
    programs = place / "programs"
    put(programs / "one", "#!/bin/sh\necho one\n", 0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    assert ran(place / "root", "one; ls -A ~") == "one\n"
    made = []
    monkeypatch.setattr(outside.Outside, "_show_programs", made.append)
    assert ran(place / "root", "one") == "one\n"
    assert not made
    monkeypatch.undo()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    put(home / ".cargo/bin/new", "#!/bin/sh\necho new\n", 0o755)
    (programs / "two").symlink_to(home / ".cargo/bin/new")
    assert ran(place / "root", "two") == "new\n"


# Settings of git


@needs("git")
def test_regression_the_settings_of_the_user_are_those_of_git(place, home):
    root = place / "root"
    put(home / "hooks/pre-commit", "#!/bin/sh\necho refused; exit 1\n", 0o755)
    put(home / "more", f"[alias]\n hello = !echo hello\n[core]\n hooksPath = {home}/hooks\n")
    user = f'[user]\n name = a\n email = b\n[includeIf "gitdir:{root}/"]\n path = more\n'
    put(home / ".gitconfig", user)
    subprocess.run(["git", "init", "-q", root], check=True)
    found = ran(root, "git hello; echo x > x; git add x; git commit -qm x; git log --oneline")
    assert "hello\n" in found
    assert "refused\n" in found
    assert "does not have any commits" in found


@needs("git")
def test_regression_the_settings_of_a_repository_that_change_commits_count(place, home):
    root = place / "root"
    git(root, "init", "-q")
    git(root, "config", "core.hooksPath", ".hk")
    git(root, "config", "core.autocrlf", "input")
    put(root / ".hk/pre-commit", "#!/bin/sh\nexit 1\n", 0o755)
    (root / "a").write_bytes(b"1\r\n")
    with Workspace(root, policy=Policy(run="staged")) as ws:
        assert ws.run("git add a; git -c user.name=x -c user.email=y commit -qm a").exit_status == 1
    assert git(root, "cat-file", "blob", ":a") == "1\n"


# Attacks

LISTEN = """
import socket, sys
server = socket.socket(socket.AF_UNIX); server.bind(sys.argv[1]); server.listen(); print(1, flush=True)
while True: server.accept()[0].sendall(b"reached")
"""
CONNECT = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(9))"


@contextmanager
def listening(*paths: Path, before: tuple[str, ...] = ()) -> Iterator[Callable[[Path], None]]:
    """Give servers that listen at some paths, and end them."""
    servers = []

    def serve(path: Path) -> None:
        command = [*before, sys.executable, "-c", LISTEN, str(path)]
        servers.append(subprocess.Popen(command, stdout=subprocess.PIPE))
        assert servers[-1].stdout.readline() == b"1\n"

    try:
        for path in paths:
            serve(path)
        yield serve
    finally:
        for each in servers:
            each.kill()
            each.wait()
            each.stdout.close()


REACH = f"{shlex.quote(sys.executable)} -c {shlex.quote(CONNECT)}"


def test_regression_sockets_and_pipes_outside_are_not_reached(place):
    """A list of the sockets of this network namespace, made at the start, missed these."""
    own_network = ("unshare", "-n") if os.geteuid() == 0 else ()
    os.mkfifo(place / "pipe")
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append((place / "pipe").read_text()), daemon=True)
    reader.start()
    with listening(place / "one", before=own_network), listening() as serve:
        timer = threading.Timer(0.2, lambda: serve(place / "two"))
        timer.start()
        reach = f"{REACH} {place}/one; {REACH} {place}/two; timeout 1 sh -c 'echo x > {place}/pipe'"
        assert "reached" not in ran(place / "root", f"sleep 0.8; {reach}")
        timer.join()
        for name in ("one", "two"):
            assert b"reached" in subprocess.check_output(["bash", "-c", f"{REACH} {place}/{name}"])
        assert not received
    with open(place / "pipe", "w"):
        pass
    reader.join()


def test_regression_sockets_in_the_trees_are_not_reached(place):
    dep = place / "dep"
    dep.mkdir()
    with listening(dep / "socket", place / "root/socket"):
        for read_only in (True, False):
            mounts = {"dep": Mount(dep, read_only=read_only)}
            with Workspace(place / "root", policy=Policy(run="staged"), mounts=mounts) as ws:
                assert b"reached" not in ws.run(f"{REACH} dep/socket; {REACH} socket").stdout
        assert "reached" not in ran(place / "root", f"{REACH} {dep}/socket", run_paths=[dep])
        assert b"reached" in subprocess.check_output(["bash", "-c", f"{REACH} {dep}/socket"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_regression_what_is_mounted_in_the_tree_is_hidden_too(place):
    """A bind mount of the system, such as a volume of a container, was shown without masks."""
    root = place / "root"
    pairs = [(put(place / "secret"), put(root / ".env", "")), (place / "volume", root / "volume")]
    put(place / "volume/deep/.env")
    put(place / "volume/plain", "plain\n")
    (root / "volume").mkdir()
    for source, target in pairs:
        if subprocess.run(["mount", "--bind", source, target], capture_output=True, check=False).returncode:
            pytest.skip("this system mounts nothing")
    try:
        found = ran(root, "cat .env volume/deep/.env volume/plain; ls -A volume; echo x > volume/new")
        assert SECRET not in found
        assert found.startswith("plain\ndeep\nplain\n")
        assert "Read-only file system" in found
    finally:
        for _, target in pairs:
            subprocess.run(["umount", target], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can read them")
def test_regression_what_only_root_may_read_in_etc_is_empty(place):
    assert "root:" in Path("/etc/shadow").read_text()
    assert "root:" not in ran(place / "root", "cat /etc/shadow /etc/shadow-")


def test_regression_the_keys_of_the_session_are_not_reached(place):
    """Root's session keyring was shared with the command."""
    add = "import ctypes; print(ctypes.CDLL(None).syscall(250, 0, -3, 0))"  # the id of the keyring
    own = subprocess.check_output([sys.executable, "-c", add])
    inside = ran(place / "root", f"{shlex.quote(sys.executable)} -c {shlex.quote(add)}")
    assert inside.encode() != own
