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
        "endpoint": endpoint,
        "client_options": {"allow_http": True},
        "access_key_id": "a",
        "secret_access_key": "b",
        "region": "us-east-1",
        **more,
    }


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


@pytest.fixture(params=["s3", "memory", "file"])
def trees(request, tmp_path):
    """A function that opens the same tree with another cache each time."""
    if request.param == "s3":
        server = request.getfixturevalue("server")
        where, settings = f"s3://{server.bucket()}/some/prefix", server.options
    elif request.param == "memory":
        where, settings = MemoryStore(), None
    else:
        (tmp_path / "store").mkdir()
        where, settings = f"file://{tmp_path}/store", {"automatic_cleanup": True}

    def tree(name: str, **more) -> StoredTree:
        return StoredTree(where, tmp_path / name, options=settings, **more)

    return tree


@pytest.fixture
def s3(server, tmp_path):
    """A function that opens the same tree in S3 with another cache; it has the URL and the options."""
    url = f"s3://{server.bucket()}"

    def tree(name: str, **more) -> StoredTree:
        return StoredTree(url, tmp_path / name, options=server.options, **more)

    tree.url, tree.options = url, server.options
    return tree


def files(tree) -> dict[str, bytes]:
    """Return the files of a cache."""
    top = Path(tree)
    found = (each for each in top.rglob("*") if each.is_file() and not each.is_symlink())
    names = {each.relative_to(top).as_posix(): each for each in found}
    return {name: each.read_bytes() for name, each in names.items() if not name.startswith(".agentfs/")}


def put(tree, path: str, data: str | bytes, mode: int | None = None) -> None:
    """Write a file to a cache."""
    file = Path(tree, path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    if mode is not None:
        file.chmod(mode)


def impatient(endpoint: str) -> dict:
    """Options with few and fast retries."""
    backoff = {
        "init_backoff": timedelta(milliseconds=5),
        "max_backoff": timedelta(milliseconds=50),
        "base": 2,
    }
    retry = {"max_retries": 2, "retry_timeout": timedelta(seconds=10), "backoff": backoff}
    return options(endpoint, retry_config=retry)
