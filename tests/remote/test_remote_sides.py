"""A workspace works at real remote sides: sshd, bubblewrap and containers."""

import shlex
import shutil
import site
import subprocess
import sys
import time
from pathlib import Path

import pytest

import agentfs
from agentfs import Deny, Policy, connect
from agentfs.errors import DisconnectedError
from tests.conftest import needs
from tests.kit import refused
from tests.remote.harness import Proxy, Sshd, in_bubblewrap, in_container

SERVE = [sys.executable, "-m", "agentfs", "serve", "--root"]
PACKAGES = [str(Path(agentfs.__file__).parents[1]), *site.getsitepackages()]


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "far tree's"
    root.mkdir()
    (root / "a.py").write_text("name = 1\n")
    return root


@pytest.fixture
def sshd(tmp_path):
    directory = tmp_path / "sshd"
    directory.mkdir(mode=0o700)
    with Sshd(directory) as server:
        yield server


def works(*command):
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def use(ws, tree):
    assert ws.read("a.py").text.startswith("1|name = 1")
    ws.edit("a.py", "name = 1", "name = 2")
    assert [match.line for match in ws.grep(r"na\w+ = \d").matches] == [1]
    assert (tree / "a.py").read_text() == "name = 2\n"
    ws.undo()
    assert (tree / "a.py").read_text() == "name = 1\n"
    refused(lambda: ws.read("../sshd/client_key"), "outside_workspace")


def over_ssh(sshd, tree, port=None):
    serve = shlex.join(["env", f"PYTHONPATH={PACKAGES[0]}", *SERVE, str(tree)])
    return [*sshd.command(port), serve]


def test_in_a_process(tree):
    with connect([*SERVE, str(tree)], tree) as ws:
        use(ws, tree)
    with pytest.raises(DisconnectedError, match="not a message of agentfs: 'Welcome!"):
        connect(["sh", "-c", 'echo "Welcome!"; exec cat'], tree)


@pytest.mark.full
@needs("ssh")
@needs("sshd")
def test_over_ssh(tree, sshd):
    asked = []

    def permission(request):
        asked.append(request.method)
        return Deny("not this") if request.method == "delete" else True

    with connect(over_ssh(sshd, tree), ".", policy=Policy(on_ask=permission)) as ws:
        use(ws, tree)
        asked.clear()
        with pytest.raises(PermissionError, match="not this"):
            ws.delete("a.py")
    assert asked == ["delete"]
    assert (tree / "a.py").exists()


@pytest.mark.full
@needs("ssh")
@needs("sshd")
def test_a_fixed_remote_command_is_the_server(tree, tmp_path):
    directory = tmp_path / "fixed"
    directory.mkdir(mode=0o700)
    command = shlex.join(["env", f"PYTHONPATH={PACKAGES[0]}", *SERVE, str(tree), "--read-only"])
    quoted = command.replace('"', '\\"')
    with Sshd(directory, f'restrict,command="{quoted}"') as sshd, connect(sshd.command(), "") as ws:
        assert ws.read("a.py").total_lines == 1
        assert ws.policy.read_only
        with pytest.raises(PermissionError):
            ws.write("new.txt", "x")


@pytest.mark.full
@needs("ssh")
@needs("sshd")
def test_a_slow_connection_costs_one_round_trip_a_call(tree, sshd):
    delay = 0.1
    with Proxy(sshd.port, delay=delay) as proxy, connect(over_ssh(sshd, tree, proxy.port), ".") as ws:
        ws.read("a.py")
        taken = []
        for _ in range(3):
            started = time.monotonic()
            ws.read("a.py")
            taken.append(time.monotonic() - started)
        assert 2 * delay <= min(taken) < 4 * delay


def inside(words):
    """Return the command of a server in a container that has this Python and its packages."""
    paths = ":".join(PACKAGES)
    return [*words, "env", f"PYTHONPATH={paths}", sys.executable, "-m", "agentfs", "serve", "--root", "/tree"]


@pytest.mark.full
@needs("bwrap")
def test_in_bubblewrap(tree):
    words = in_bubblewrap(tree, Path(sys.base_prefix), Path(sys.prefix), *map(Path, PACKAGES))
    if not works(*words, "true"):
        pytest.skip("bubblewrap may not make a container here")
    with connect(inside(words), "/tree") as ws:
        assert ws.root == "/tree"
        use(ws, tree)


@pytest.mark.full
def test_in_a_container(tree, monkeypatch):
    """`podman exec` in a container that runs; docker has the same command line."""
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)  # podman does not start without a directory
    engine = next((each for each in ("podman", "docker") if shutil.which(each) and works(each, "info")), None)
    if engine is None:
        pytest.skip("neither podman nor docker runs here")
    mounted = dict.fromkeys([sys.base_prefix, sys.prefix, *PACKAGES])
    run = in_container(engine, tree, *mounted)
    at = run.index("--rm")
    name = f"agentfs-test-{time.monotonic_ns()}"
    run = [*run[:at], "--rm", "-d", "--name", name, *run[at + 2 :], "sleep", "300"]
    if not works(*run):
        pytest.skip(f"{engine} runs no container here")
    try:
        with connect(inside([engine, "exec", "-i", name]), "/tree") as ws:
            assert ws.root == "/tree"
            use(ws, tree)
    finally:
        works(engine, "rm", "-f", name)
