"""An S3 server in this process, from the package moto, and trees in it."""

import logging
import threading
import urllib.request
from collections import Counter
from contextlib import nullcontext
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest
from obstore.store import MemoryStore, S3Store

from agentfs.store import StoredTree
from tests import kit
from tests.dialects.answers import check
from tests.history.judges import snapshot
from tests.store.proxy import FaultyProxy

_numbers = count()


class Server:
    """The server; its `requests` are counted by method."""

    def __init__(self, endpoint: str, requests: Counter) -> None:
        self.endpoint, self.requests = endpoint, requests

    def bucket(self) -> str:
        """Return a new bucket."""
        name = f"bucket-{next(_numbers)}"
        request = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")
        urllib.request.urlopen(request).close()
        return name

    @property
    def options(self) -> dict:
        """Options for obstore."""
        return options(self.endpoint)


def options(endpoint: str, **more) -> dict:
    return {
        "endpoint": endpoint, "client_options": {"allow_http": True}, "access_key_id": "a",
        "secret_access_key": "b", "region": "us-east-1", **more,
    }  # fmt: skip


@pytest.fixture(scope="session")
def server():
    """An S3 server whose conditions are atomic, as those of S3 are: moto's own are a check, then a change."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    requests = Counter()
    application, changing = moto._server.app, threading.Lock()

    def one_change_at_a_time(environ, start_response):
        method = environ["REQUEST_METHOD"]
        requests[method] += 1
        with changing if method in {"PUT", "DELETE"} else nullcontext():
            return application(environ, start_response)

    moto._server.app = one_change_at_a_time
    server = Server(f"http://{host}:{port}", requests)
    S3Store(
        server.bucket(), **server.options
    ).list().collect()  # so that no test's time has both sides' imports
    yield server
    moto.stop()


def opener(where, tmp_path, settings=None):
    """Return a function that opens the same tree with another cache each time."""

    def tree(name: str, **more) -> StoredTree:
        return StoredTree(where, tmp_path / name, options=settings, **more)

    tree.where, tree.options = where, settings
    return tree


@pytest.fixture
def memory(tmp_path):
    return opener(MemoryStore(), tmp_path)


@pytest.fixture
def s3(server, tmp_path):
    return opener(f"s3://{server.bucket()}", tmp_path, server.options)


@pytest.fixture
def proxied(server, tmp_path):
    """Trees behind a proxy, which is `proxied.proxy`."""
    with FaultyProxy(server.endpoint, seed=1) as proxy:
        tree = opener(f"s3://{server.bucket()}", tmp_path, impatient(proxy.endpoint))
        tree.proxy = proxy
        yield tree


@pytest.fixture(params=["s3", "memory", "file"])
def trees(request, tmp_path):
    if request.param == "memory":
        return request.getfixturevalue("memory")
    if request.param == "s3":
        server = request.getfixturevalue("server")
        return opener(f"s3://{server.bucket()}/some/prefix", tmp_path, server.options)
    (tmp_path / "store").mkdir()
    return opener(f"file://{tmp_path}/store", tmp_path, {})


def files(tree) -> dict[str, bytes]:
    """Return the files of a cache."""
    top = Path(tree)
    found = (each for each in top.rglob("*") if each.is_file() and not each.is_symlink())
    names = {each.relative_to(top).as_posix(): each for each in found}
    return {name: each.read_bytes() for name, each in names.items() if not name.startswith(".agentfs/")}


def put(tree, files: dict[str, str | bytes | None]) -> None:
    """Write files to a cache; None deletes a file, and directories that it leaves empty."""
    for path, data in files.items():
        if data is not None:
            kit.put(Path(tree), {path: data})
            continue
        file = Path(tree, path)
        file.unlink()
        while (file := file.parent) != Path(tree) and not any(file.iterdir()):
            file.rmdir()


def shared(opened, files: dict[str, str | bytes | None]) -> tuple[StoredTree, StoredTree]:
    """Open two trees of one store; the first has pushed the files, and the second has pulled them."""
    one, other = opened("one"), opened("other")
    put(one, files)
    one.push()
    other.pull()
    return one, other


def play(opened, steps) -> None:
    """Carry out steps of some trees: files to write, an act on a cache, or a call with parts of its result.

    `("one", "files", …)` and `("one", "paths", …)` compare the contents of a cache, `("one", "as", "other")`
    two caches, and `("one", "kept", …)` the other text of a conflict about `f`.
    """
    trees: dict[str, StoredTree] = {}
    for who, act, *wanted in steps:
        tree = trees[who] = trees.get(who) or opened(who)
        if isinstance(act, dict):
            put(tree, act)
        elif callable(act):
            act(Path(tree))
        elif act == "files":
            assert files(tree) == wanted[0]
        elif act == "paths":
            assert [*without_state(tree)] == wanted[0]
        elif act == "as":
            assert without_state(tree) == without_state(trees[wanted[0]])
        elif act == "kept":
            kept = Path(tree, ".agentfs/conflicts/f")
            assert (kept.read_bytes() if kept.exists() else None) == wanted[0]
        else:
            check(getattr(tree, act)(), wanted[0] if wanted else {})


def without_state(top) -> dict:
    return {name: each for name, each in snapshot(Path(top)).items() if not name.startswith(".agentfs")}


def before(patch: pytest.MonkeyPatch, owner, name: str, act) -> None:
    """Call `act` with the arguments before each call of a function."""
    real = getattr(owner, name)

    def acting(*given, **more):
        act(*given)
        return real(*given, **more)

    patch.setattr(owner, name, acting)


def impatient(endpoint: str) -> dict:
    """Options with few and fast retries."""
    backoff = {
        "init_backoff": timedelta(milliseconds=5), "max_backoff": timedelta(milliseconds=50), "base": 2,
    }  # fmt: skip
    retry = {"max_retries": 2, "retry_timeout": timedelta(seconds=10), "backoff": backoff}
    return options(endpoint, retry_config=retry)
