"""Measure the first push and pull of a tree beside obstore's plain loop and `aws s3 sync`.

The server is moto's, in a process of its own. The three ways take turns, each with its own bucket and
directory, and 32 requests at once. The plain loop and `aws s3 sync` have no
conditions and merges.

Usage: python benchmarks/store.py TREE [--rounds N] [--aws COMMAND]
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import obstore
from obstore.store import S3Store

from agentfs import Policy, Protect
from agentfs.store import StoredTree

WIDTH = 32  # requests at once
ALL_FILES = Policy(protect=Protect(read=(), write=()))  # as the others, which know no protected names
KEYS = {"access_key_id": "a", "secret_access_key": "b", "region": "us-east-1"}


@contextmanager
def server() -> Iterator[str]:
    """Start moto's server; yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-c",
        "from moto.server import main; main()",
        "-H",
        "127.0.0.1",
        "-p",
        str(port),
    ]
    endpoint = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            while True:
                try:
                    urllib.request.urlopen(endpoint).close()
                    break
                except urllib.error.URLError:
                    time.sleep(0.1)
            yield endpoint
        finally:
            process.terminate()


class Agentfs:
    """`StoredTree.push` and `pull`."""

    def __init__(self, endpoint: str, bucket: str) -> None:
        self.url = f"s3://{bucket}"
        self.options = {"endpoint": endpoint, "client_options": {"allow_http": True}, **KEYS}

    def _tree(self, directory: Path) -> StoredTree:
        return StoredTree(self.url, directory, options=self.options, policy=ALL_FILES)

    def push(self, directory: Path) -> None:
        """Push a directory."""
        self._tree(directory).push()

    def pull(self, directory: Path) -> None:
        """Pull to a directory."""
        self._tree(directory).pull()


class PlainLoop:
    """A loop over files or objects, in threads."""

    def __init__(self, endpoint: str, bucket: str) -> None:
        settings: Any = {"endpoint": endpoint, "client_options": {"allow_http": True}, **KEYS}
        self.store = S3Store(bucket, **settings)

    def push(self, directory: Path) -> None:
        """Push a directory."""
        files = [each for each in directory.rglob("*") if each.is_file()]

        def put(file: Path) -> None:
            obstore.put(self.store, file.relative_to(directory).as_posix(), file.read_bytes())

        with ThreadPoolExecutor(WIDTH) as pool:
            list(pool.map(put, files))

    def pull(self, directory: Path) -> None:
        """Pull to a directory."""
        keys = [each["path"] for page in obstore.list(self.store) for each in page]

        def get(key: str) -> None:
            target = directory / key
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(obstore.get(self.store, key).bytes())

        with ThreadPoolExecutor(WIDTH) as pool:
            list(pool.map(get, keys))


class AwsSync:
    """`aws s3 sync`."""

    command = "aws"

    def __init__(self, endpoint: str, bucket: str) -> None:
        self.url, self.endpoint = f"s3://{bucket}", endpoint
        config = Path(tempfile.gettempdir(), f"aws-config-{os.getpid()}")
        config.write_text(f"[default]\ns3 =\n  max_concurrent_requests = {WIDTH}\n")
        self.environment = os.environ | {
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": str(config),
        }

    def _sync(self, source: object, target: object) -> None:
        command = [self.command, "s3", "sync", "--only-show-errors", "--endpoint-url", self.endpoint]
        subprocess.run([*command, str(source), str(target)], env=self.environment, check=True)

    def push(self, directory: Path) -> None:
        """Push a directory."""
        self._sync(directory, self.url)

    def pull(self, directory: Path) -> None:
        """Pull to a directory."""
        self._sync(self.url, directory)


def measured(act: Callable[[Path], None], directory: Path) -> tuple[float, float]:
    """Return the seconds of the clock, and those of the client's processor time."""
    began, used = time.perf_counter(), sum(os.times()[:4])
    act(directory)
    return time.perf_counter() - began, sum(os.times()[:4]) - used


def files_of(directory: Path) -> dict[str, bytes]:
    """Return the files of a directory, except our state."""
    files = (each for each in directory.rglob("*") if each.is_file())
    contents = {each.relative_to(directory).as_posix(): each.read_bytes() for each in files}
    return {path: content for path, content in contents.items() if not path.startswith(".agentfs/")}


def main() -> None:
    """Measure, and print the medians and the ratios to the plain loop."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--aws", default="aws")
    options = parser.parse_args()
    AwsSync.command = options.aws
    expected = files_of(options.tree)
    print(f"{len(expected)} files, {sum(map(len, expected.values())) / 1e6:.0f} MB")
    taken: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for round_ in range(options.rounds):
        with server() as endpoint, tempfile.TemporaryDirectory() as top:
            for way in (Agentfs, PlainLoop, AwsSync):
                name = way.__name__
                bucket = f"{name.lower()}-{round_}"
                request = urllib.request.Request(f"{endpoint}/{bucket}", method="PUT")
                urllib.request.urlopen(request).close()
                source, target = Path(top, name, "source"), Path(top, name, "target")
                for path, content in expected.items():
                    (source / path).parent.mkdir(parents=True, exist_ok=True)
                    (source / path).write_bytes(content)
                target.mkdir()
                taken[name, "push"].append(measured(way(endpoint, bucket).push, source))
                taken[name, "pull"].append(measured(way(endpoint, bucket).pull, target))
                assert files_of(target) == expected, name
    for what in ("push", "pull"):
        for other in (PlainLoop, AwsSync):
            pairs = zip(taken["Agentfs", what], taken[other.__name__, what], strict=True)
            ratio = median(ours[0] / theirs[0] for ours, theirs in pairs)
            print(f"{what}: {ratio:.2f} × {other.__name__}")
        for way in (Agentfs, PlainLoop, AwsSync):
            clock, used = (median(each) for each in zip(*taken[way.__name__, what], strict=True))
            print(f"  {way.__name__}: {clock:.1f} s, {used:.1f} s of processor time")


if __name__ == "__main__":
    main()
