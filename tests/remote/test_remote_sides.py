"""A workspace works at real remote sides: sshd, bubblewrap, containers, a bare Python of each version."""

import shlex
import shutil
import subprocess
import sys
import time

import pytest

from agentfs import Deny, Policy, connect
from agentfs.errors import (
    DisconnectedError,
    InvalidPatternError,
    OutsideWorkspaceError,
    UnsupportedSystemError,
)
from tests.conftest import needs
from tests.remote.harness import Proxy, Sshd, in_bubblewrap, in_container
from tests.remote.test_bootstrap import pythons

SLOW = r"(a|aa)+(?!.)"


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "far tree's"
    root.mkdir()
    (root / "a.py").write_text("name = 1\n")
    (root / "slow.txt").write_text("a" * 60 + "b\n")
    return root


@pytest.fixture
def cache(tmp_path):
    """The prefix that gives a command its own cache directory."""
    return ["env", f"XDG_CACHE_HOME={tmp_path / 'cache'}"]


@pytest.fixture
def sshd(tmp_path):
    directory = tmp_path / "sshd"
    directory.mkdir(mode=0o700)
    with Sshd(directory) as server:
        yield server


def works(*command):
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def use(ws, tree):
    """Read, search and change a remote tree."""
    assert ws.read("a.py").text.startswith("1|name = 1")
    ws.edit("a.py", "name = 1", "name = 2")
    assert [match.line for match in ws.grep(r"na\w+ = \d").matches] == [1]
    assert (tree / "a.py").read_text() == "name = 2\n"
    ws.undo()
    assert (tree / "a.py").read_text() == "name = 1\n"
    with pytest.raises(OutsideWorkspaceError):
        ws.read("../sshd/client_key")


@pytest.mark.parametrize("python", pythons())
def test_a_bare_python_serves_with_re(tree, cache, python):
    with connect(cache, tree, python=python) as ws:
        assert ws.remote.engine == "re"
        use(ws, tree)
        with pytest.raises(InvalidPatternError, match="Python's `re` is used here"):
            ws.grep(r"\p{Lu}")
        with pytest.raises(InvalidPatternError, match="no known bound"):
            ws.grep(SLOW, "slow.txt")
        assert ws.read("a.py").total_lines == 1


@needs("ssh")
@needs("sshd")
def test_over_ssh(tree, sshd):
    asked = []

    def permission(request):
        asked.append(request.method)
        return Deny("not this") if request.method == "delete" else True

    started = time.monotonic()
    policy = Policy(on_ask=permission)
    with connect(sshd.command(), tree, python=sys.executable, policy=policy) as ws:
        assert time.monotonic() - started < 15  # 1.5 s on a quiet machine
        use(ws, tree)
        asked.clear()
        with pytest.raises(PermissionError, match="not this"):
            ws.delete("a.py")
    assert asked == ["delete"]
    assert (tree / "a.py").exists()


@needs("ssh")
@needs("sshd")
def test_a_fixed_remote_command_is_refused_or_is_the_server(tree, tmp_path):
    directory = tmp_path / "fixed"
    directory.mkdir(mode=0o700)
    serve = shlex.join([sys.executable, "-m", "agentfs", "serve", "--root", str(tree), "--read-only"])
    quoted = serve.replace('"', '\\"')
    with Sshd(directory, f'restrict,command="{quoted}"') as sshd:
        with pytest.raises((DisconnectedError, UnsupportedSystemError), match="push=False"):
            connect(sshd.command(), tree, patience=10)
        with connect(sshd.command(), "", push=False) as ws:
            assert ws.remote.engine == "regex"
            assert ws.read("a.py").total_lines == 1
            with pytest.raises(PermissionError):
                ws.write("new.txt", "x")


@needs("ssh")
@needs("sshd")
def test_a_slow_connection_costs_one_round_trip_a_call(tree, sshd):
    delay = 0.1
    with (
        Proxy(sshd.port, delay=delay) as proxy,
        connect(sshd.command(proxy.port), tree, python=sys.executable) as ws,
    ):
        ws.read("a.py")
        taken = []
        for _ in range(3):
            started = time.monotonic()
            ws.read("a.py")
            taken.append(time.monotonic() - started)
        assert 2 * delay <= min(taken) < 4 * delay


@needs("bwrap")
def test_in_bubblewrap(tree):
    words = in_bubblewrap(tree)
    if not works(*words, "true"):
        pytest.skip("bubblewrap may not make a container here")
    if not works(*words, "python3", "-c", "import sys; assert sys.version_info >= (3, 11)"):
        pytest.skip("the system's Python is older than 3.11")
    with connect(words, "/work") as ws:
        assert ws.root == "/work"
        use(ws, tree)
    assert sorted(each.name for each in tree.iterdir()) == ["a.py", "slow.txt"]


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_in_a_container(tree, engine):
    if shutil.which(engine) is None or not works(engine, "info"):
        pytest.skip(f"{engine} does not run here")
    words = in_container(engine, tree)
    if not works(*words, "python3", "-c", "import sys; assert sys.version_info >= (3, 11)"):
        pytest.skip(f"{engine} runs no container here, or the system's Python is older than 3.11")
    with connect(words, "/work") as ws:
        assert ws.root == "/work"
        use(ws, tree)
