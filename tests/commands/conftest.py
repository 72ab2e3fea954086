"""A tree with secrets, and workspaces that run commands in it."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from agentfs import Limits, Policy, Workspace
from agentfs.fs.lock import lock_directories
from tests.kit import in_threads, put, refused, wait_for

SECRET = "TOKEN=hunter2-0123456789"
PID = os.getpid()  # in the arguments of commands that are looked for, because other suites may run meanwhile


# The names and dates of commits, as variables of git.
NAMES = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
NAMES |= {f"GIT_{who}_DATE": "2026-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")}


def git(tree: Path, *arguments: str) -> str:
    """Return the output of git in a tree, outside a sandbox."""
    command = ["git", "-c", "protocol.file.allow=always", *arguments]
    given = {"cwd": tree, "env": os.environ | NAMES, "stdin": subprocess.DEVNULL}
    return subprocess.run(command, capture_output=True, check=True, **given).stdout.decode()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {"src/a.py": "one\ntwo\nthree\n", "src/b.py": b"\xff\r\nCRLF\r\n", "README": "read me\n"}
    return put(tmp_path / "tree", {**files, ".env": SECRET, "conf/server.key": SECRET})


@pytest.fixture
def opened(tree: Path) -> Iterator[Callable[..., Workspace]]:
    made: list[Workspace] = []

    def open_workspace(run: str = "staged", *, root: Path = tree, limits: Limits | None = None, **options):
        state = options.pop("state", None)
        ws = Workspace(root, policy=Policy(run=run, **options), limits=limits, state=state)
        made.append(ws)
        return ws

    yield open_workspace
    for ws in made:
        ws.close()


@pytest.fixture(params=["staged", "recorded"])
def ws(request, opened) -> Workspace:
    return opened(request.param)


@pytest.fixture
def staged(opened) -> Workspace:
    return opened("staged")


@pytest.fixture
def recorded(opened) -> Workspace:
    return opened("recorded")


def code_of(call: Callable[[], object]) -> str:
    return refused(call).code


def processes(command: str) -> list[int]:
    wanted, found = command.replace(" ", "\0").encode() + b"\0", []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if wanted in process.read_bytes():
                found.append(int(process.parent.name))
    return found


def running(command: str) -> bool:
    return bool(processes(command))


MEANWHILE = f"sleep 61.{PID}"


@contextmanager
def meanwhile(act: Callable[..., object], *arguments: object) -> Iterator[None]:
    """Call a function while a command of the block is in `MEANWHILE`, and end that then."""

    def work() -> None:
        found = wait_for(lambda: processes(MEANWHILE))
        act(*arguments)
        for process in found:
            os.kill(process, signal.SIGPIPE)  # bash reports each other signal on stderr

    with in_threads(work):
        yield


def stages() -> set[Path]:
    places = [*map(Path, lock_directories(os.geteuid()))]
    return {path for place in places for path in place.glob("stage-*")}


def wait_for_stages() -> None:
    """Wait until each stage of this moment is gone; other tests of this user may have some meanwhile."""
    left = stages()
    wait_for(lambda: not left & stages())
