"""A tree with a repository, and workspaces with branches."""

import os
import select
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentfs import Limits, Policy, Workspace
from tests.kit import put

SECRET = "TOKEN=hunter2-0123456789"
LINES = "".join(f"{number}\n" for number in range(1, 21))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    put(root, {"src/a.py": LINES, "src/b.py": "b\n", ".env": SECRET})
    return root


@pytest.fixture
def opened(tree: Path) -> Iterator[Callable[..., Workspace]]:
    made: list[Workspace] = []

    def open_workspace(*, state: Path | None = None, limits: Limits | None = None, **options) -> Workspace:
        ws = Workspace(tree, policy=Policy(**{"run": "staged", **options}), state=state, limits=limits)
        made.append(ws)
        return ws

    yield open_workspace
    for ws in made:
        ws.close()


@pytest.fixture
def ws(opened) -> Workspace:
    return opened()


@pytest.fixture
def branch(ws) -> Iterator:
    with ws.branch("one") as made:
        yield made


def lose_server(branch) -> None:
    """Kill the sandbox of a branch, and wait for its end."""
    first = os.pidfd_open(branch._sandbox._server[1].number)
    signal.pidfd_send_signal(first, signal.SIGKILL)
    select.select([first], [], [])
    os.close(first)
