"""Pages of a 2 GB file: the pass that counts its lines against `os.readv`, then pages, then memory.

python benchmarks/reading.py [DIRECTORY FOR THE FILE]
"""

import os
import subprocess
import sys
import tempfile
import time

from agentfs import Workspace

SIZE = 2_000_000_000
ROUNDS = 3


def make(path: str) -> None:
    if os.path.exists(path) and os.path.getsize(path) >= SIZE:
        return
    block = b"".join(
        b"2026-11-21 12:00:%02d line %d of a log, with words\n" % (n % 60, n) for n in range(200_000)
    )
    with open(path, "wb") as file:
        while file.tell() < SIZE:
            file.write(block)


def by_readv(path: str) -> float:
    buffer = bytearray(256 * 1024)
    fd = os.open(path, os.O_RDONLY)
    began = time.perf_counter()
    while os.readv(fd, [buffer]):
        pass
    took = time.perf_counter() - began
    os.close(fd)
    return took


def peak() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def main() -> None:
    directory = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()
    path = os.path.join(directory, "large.txt")
    make(path)
    size = os.path.getsize(path)
    lines = int(subprocess.run(["wc", "-l", path], capture_output=True, check=True).stdout.split()[0])
    with Workspace(directory) as ws:
        ws.write("small.txt", "x\n")
        ws.read("small.txt")
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")  # the peak from here on
    before = peak()
    reads, passes = [], []
    for _ in range(ROUNDS):
        reads.append(by_readv(path))
        with Workspace(directory) as ws:
            began = time.perf_counter()
            first = ws.read("large.txt", limit=10)
            passes.append(time.perf_counter() - began)
            assert first.total_lines == lines
            asked = [(1, None), (-1, None), (-2000, None), (lines // 2, None), (lines // 3, 10), (1, 10**9)]
            pages = []
            for offset, limit in asked:
                began = time.perf_counter()
                ws.read("large.txt", offset, limit)
                pages.append((offset, limit, (time.perf_counter() - began) * 1000))
    print(f"os.readv           {size / min(reads) / 1e9:6.2f} GB/s")
    print(f"first read (count) {size / min(passes) / 1e9:6.2f} GB/s  {min(reads) / min(passes):.2f} of readv")
    for offset, limit, took in pages:
        print(f"then read(offset={offset}, limit={limit}): {took:.2f} ms")
    print(f"peak memory above start: {(peak() - before) / 1024:.1f} MiB")


if __name__ == "__main__":
    main()
