"""What checkpoints and the journal cost: over a small tree and a large one, in time, memory and disk."""

import os
import statistics
import tempfile
import time
import tracemalloc
from pathlib import Path

from agentfs import Policy, Workspace

CHECKPOINTS, STEPS = 1000, 200


def tree(top: Path, files: int) -> Path:
    for number in range(files):
        directory = top / f"d{number // 100}"
        directory.mkdir(exist_ok=True)
        (directory / f"f{number}").write_bytes(b"line of a file\n" * 40)
    return top


def checkpoints(files: int) -> None:
    with tempfile.TemporaryDirectory() as made:
        top = tree(Path(made), files)
        with Workspace(top) as ws:
            took = []
            for number in range(CHECKPOINTS):
                start = time.perf_counter()
                ws.checkpoint(f"turn-{number}")
                took.append(time.perf_counter() - start)
        with Workspace(top) as ws:
            tracemalloc.start()
            for number in range(CHECKPOINTS):
                ws.checkpoint(f"turn-{number}")
            held = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
        micro = sorted(t * 1e6 for t in took)
        print(
            f"{files:6} files: {CHECKPOINTS} checkpoints, median {statistics.median(micro):.1f} us, "
            f"worst {micro[-1]:.0f} us, {held / CHECKPOINTS:.0f} bytes of memory each"
        )


def changes() -> None:
    with tempfile.TemporaryDirectory() as made:
        top = tree(Path(made), 100)
        (top / "large").write_bytes(os.urandom(300_000).hex().encode())
        with Workspace(top, policy=Policy(overwrite="always")) as ws:
            for _ in range(STEPS):
                ws.write("large", os.urandom(300_000).hex())
            store = ws._journal.store  # noqa: SLF001 - what it takes is not a user's to know
            print(
                f"{STEPS} steps of 600,000 bytes each: {store.bytes_in_memory / 2**20:.1f} MiB in memory, "
                f"{store.bytes_on_disk / 2**20:.1f} MiB on disk "
                f"for {0.6 * STEPS / 1.048576:.0f} MiB of contents"
            )
            start = time.perf_counter()
            ws.undo(STEPS)
            print(f"undo of all {STEPS} at once: {(time.perf_counter() - start) * 1e3:.1f} ms")


if __name__ == "__main__":
    for count in (10, 10_000):
        checkpoints(count)
    changes()
