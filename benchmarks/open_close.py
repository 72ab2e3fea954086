"""Measure opening through `Root` against `os.open` and `os.close` of the same paths, interleaved.

    python benchmarks/open_close.py

Each round opens 500 files of a directory once by each way, so that no memory of one path helps; the best of
the rounds counts. Then, what share of a `Workspace.read` of a 4 KiB file opening and closing is.
"""

import os
import sys
import tempfile
import time

from agentfs import Workspace
from agentfs.fs import syscalls
from agentfs.fs.root import Root
from agentfs.policy import Policy

FILES, ROUNDS = 500, 60


def paths_at(top: str, depth: int) -> list[str]:
    directory = "/".join(f"directory{number}" for number in range(depth - 1))
    os.makedirs(os.path.join(top, directory), exist_ok=True)
    paths = [os.path.join(directory, f"file{number}.py") for number in range(FILES)]
    for path in paths:
        with open(os.path.join(top, path), "w", encoding="utf-8") as file:
            file.write("x = 1\n" * 683)
    return paths


def microseconds(call, paths: list[str]) -> float:
    begun = time.perf_counter()
    for path in paths:
        call(path)
    return (time.perf_counter() - begun) / len(paths) * 1e6


def plain(path: str) -> None:
    os.close(os.open(path, os.O_RDONLY))


def main() -> None:
    with tempfile.TemporaryDirectory() as top, Root(top, Policy()) as root, Workspace(top) as ws:

        def open_and_close(path: str) -> None:
            root.open_file(path).close()

        print(f"Python {sys.version.split()[0]}, containment {root.containment['open']}")
        by_kernel = syscalls.open_beneath
        for depth in (2, 10):
            paths = paths_at(top, depth)
            full = [os.path.join(top, path) for path in paths]
            for path, name in zip(paths, full, strict=True):
                with root.open_file(path) as file:
                    assert os.path.samestat(file.stat, os.stat(name))
            took: dict[str, list[float]] = {"plain": [], "root": [], "walk": [], "read": []}
            for _ in range(ROUNDS):
                took["plain"].append(microseconds(plain, full))
                took["root"].append(microseconds(open_and_close, paths))
                syscalls.open_beneath = lambda *_, **__: -1
                took["walk"].append(microseconds(open_and_close, paths))
                syscalls.open_beneath = by_kernel
            for _ in range(3):
                took["read"].append(microseconds(ws.read, paths))
            best = {name: min(each) for name, each in took.items()}
            print(
                f"depth {depth}: os.open + os.close {best['plain']:.1f} us, Root {best['root']:.1f} us "
                f"({best['root'] / best['plain']:.2f}x), without openat2 {best['walk']:.1f} us "
                f"({best['walk'] / best['plain']:.2f}x); read of 4 KiB {best['read']:.0f} us, "
                f"opening and closing is {best['root'] / best['read']:.0%} of it"
            )


if __name__ == "__main__":
    main()
