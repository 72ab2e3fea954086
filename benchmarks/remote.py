"""A tree at the end of a slow connection, beside the same tree locally: times, and bytes on the wire.

    python benchmarks/remote.py [--rtt 20] [--rounds 3]

`agentfs serve` runs behind a proxy that delays each way by half of `--rtt` milliseconds. Both sides are
measured in one run: a file of 30 MB as bytes and as text, a search with 20,000 matches, 200 calls at once,
and one read, edit and search.
"""

import argparse
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agentfs import Limits, Workspace, connect

HARNESS = Path(__file__).parents[1] / "tests" / "remote" / "harness.py"
SIZE = 30 * 1024 * 1024
MATCHES = 20_000
AT_ONCE = 200
LIMITS = Limits(
    file_bytes=64 * 1024 * 1024,
    read_bytes=128 * 1024 * 1024,
    read_lines=10**7,
    output_tokens=10**9,
    grep_results=10**6,
    timeout=120,
)


class Counted:
    """A socket as both streams for `connect`, with the bytes that it has carried."""

    def __init__(self, port: int) -> None:
        connected = socket.create_connection(("127.0.0.1", port))
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._input, self._output = connected.makefile("rb"), connected.makefile("wb")
        self.close = connected.close
        self.flush = self._output.flush
        self.sent = self.received = 0

    def write(self, data: memoryview) -> int:
        self.sent += len(data)
        return self._output.write(data)

    def readline(self, limit: int) -> bytes:
        line = self._input.readline(limit)
        self.received += len(line)
        return line


def lay_out(root: Path) -> None:
    """Write the large file, the files with matches, and a small one."""
    line = "a line of a file that is as long as a line of code is on average\n"
    (root / "large.txt").write_text(line * (SIZE // len(line)))
    for number in range(20):
        lines = (f"    needle({each}, value)  # a call\n" for each in range(MATCHES // 20))
        (root / f"found{number}.py").write_text("".join(lines))
    (root / "small.py").write_text("name = 1\n" * 100)


def calls_of(ws: Workspace, pool: ThreadPoolExecutor) -> dict[str, Callable[[], object]]:
    """Return the calls to measure, by label."""
    numbers = iter(range(10**6))

    def edit() -> None:
        number = next(numbers)
        ws.edit("edited.txt", f"{number}\n", f"{number + 1}\n")

    ws.write("edited.txt", "0\n")
    return {
        "read, 100 lines": lambda: ws.read("small.py"),
        "edit": edit,
        "grep, 1 match": lambda: ws.grep(r"needle\(7, ", "found0.py"),
        "read_bytes, 30 MB": lambda: ws.read_bytes("large.txt"),
        "read, 30 MB of text": lambda: ws.read("large.txt"),
        f"grep, {MATCHES:,} matches": lambda: ws.grep("needle", limit=MATCHES),
        f"{AT_ONCE} reads at once": lambda: list(pool.map(lambda _: ws.read("small.py"), range(AT_ONCE))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rtt", type=float, default=20.0, help="milliseconds")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(AT_ONCE) as pool:
        roots = {side: Path(name, side) for side in ("local", "connect")}
        for root in roots.values():
            root.mkdir()
            lay_out(root)
        serve = [sys.executable, "-m", "agentfs", "serve", "--root", str(roots["connect"])]
        proxy = subprocess.Popen(
            [sys.executable, str(HARNESS), str(arguments.rtt / 2000), *serve],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        stream = Counted(int(proxy.stdout.readline()))
        with (
            proxy,
            connect(lambda: (stream, stream), ".", limits=LIMITS) as far,
            Workspace(roots["local"], limits=LIMITS) as near,
        ):
            local, remote = calls_of(near, pool), calls_of(far, pool)
            for label, call in local.items():
                times: dict[str, list[float]] = {"local": [], "connect": []}
                sent = received = 0
                for _ in range(arguments.rounds + 1):
                    before = stream.sent, stream.received
                    for side, made in (("local", call), ("connect", remote[label])):
                        started = time.perf_counter()
                        made()
                        times[side].append((time.perf_counter() - started) * 1000)
                    sent, received = stream.sent - before[0], stream.received - before[1]
                ms = {side: statistics.median(each[1:]) for side, each in times.items()}  # the first warms up
                print(
                    f"{label:22} local {ms['local']:9.1f} ms  connect {ms['connect']:9.1f} ms  "
                    f"sent {sent:9,} B  received {received:11,} B"
                )
            proxy.stdin.close()


if __name__ == "__main__":
    main()
