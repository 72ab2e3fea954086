"""Measure checkpoints and the journal over a small and a large tree, in time, memory and disk."""

import os
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from agentfs import Policy, Workspace

CHECKPOINTS, STEPS = 1000, 200


def bytes_of(state: Path) -> int:
    return sum(path.stat().st_size for path in state.iterdir())


def tree(top: Path, files: int) -> Path:
    top.mkdir(exist_ok=True)
    for number in range(files):
        directory = top / f"d{number // 100}"
        directory.mkdir(exist_ok=True)
        (directory / f"f{number}").write_bytes(b"line of a file\n" * 40)
    return top


def checkpoints(files: int, *, kept: bool = False) -> None:
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as outside:
        top = tree(Path(made), files)
        state = Path(outside) / "state" if kept else None
        with Workspace(top, state=state) as ws:
            took = []
            for number in range(CHECKPOINTS):
                start = time.perf_counter()
                ws.checkpoint(f"turn-{number}")
                took.append(time.perf_counter() - start)
        size = 0 if state is None else bytes_of(state)
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
            + (f", {size / CHECKPOINTS:.0f} bytes of disk each (state=)" if kept else "")
        )


def changes() -> None:
    with tempfile.TemporaryDirectory() as made:
        top = tree(Path(made), 100)
        (top / "large").write_bytes(os.urandom(300_000).hex().encode())
        with Workspace(top, policy=Policy(overwrite="always")) as ws:
            for _ in range(STEPS):
                ws.write("large", os.urandom(300_000).hex())
            database = ws._journal.contents.database  # noqa: SLF001 - what it takes is not a user's to know
            ((pages,),), ((page,),) = database.read("PRAGMA page_count", "PRAGMA page_size")
            size = pages * page
            print(
                f"{STEPS} steps of 600,000 bytes each: {size / 2**20:.1f} MiB in the temporary database "
                f"for {0.6 * STEPS / 1.048576:.0f} MiB of contents"
            )
            start = time.perf_counter()
            ws.undo(STEPS)
            print(f"undo of all {STEPS} at once: {(time.perf_counter() - start) * 1e3:.1f} ms")


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e6


def with_and_without_state() -> None:
    """The same calls on two trees, in turn: with a state directory, and without."""
    text = "".join(f"line {number} of a file of some length\n" for number in range(100))
    took: dict[str, tuple[list[float], list[float]]] = {}
    with tempfile.TemporaryDirectory() as made:
        policy = Policy(overwrite="always")
        tops = [Path(made) / name for name in ("plain", "kept")]
        for top in tops:
            top.mkdir()
            (top / "f").write_text(text)
        state = Path(made) / "state"
        plain, kept = Workspace(tops[0], policy=policy), Workspace(tops[1], policy=policy, state=state)
        for number in range(CHECKPOINTS):
            old, new = f"line {number % 100} ", f"line {number % 100}  "
            calls = {
                "read": lambda ws: ws.read("f"),
                "edit": lambda ws, old=old, new=new: ws.edit("f", old, new, True),
                "write": lambda ws, number=number: ws.write("g", f"{number}\n"),
                "undo": lambda ws: ws.undo(),
            }
            for name, call in calls.items():
                turns = list(zip((plain, kept), took.setdefault(name, ([], [])), strict=True))
                for ws, into in turns if number % 2 else reversed(turns):
                    into.append(timed(lambda ws=ws, call=call: call(ws)))
        assert plain.changes().patch == kept.changes().patch
        plain.close()
        kept.close()
        size = bytes_of(state) / 2**20
        opening = timed(lambda: Workspace(tops[1], policy=policy, state=state).close())
        bare = timed(lambda: Workspace(tops[1], policy=policy).close())
    for name, (without, with_state) in took.items():
        print(
            f"{name}: {statistics.median(without):.0f} us without state=, "
            f"{statistics.median(with_state):.0f} us with it (medians of {CHECKPOINTS})"
        )
    print(
        f"after these {CHECKPOINTS * 3} changes: {size:.1f} MiB on disk; "
        f"opening it {opening / 1e3:.1f} ms, without state= {bare / 1e3:.1f} ms"
    )


def resumed() -> None:
    """Opening a state directory with many steps of small edits."""
    with tempfile.TemporaryDirectory() as made:
        top, state = tree(Path(made) / "root", 100), Path(made) / "state"
        policy = Policy(overwrite="always")
        with Workspace(top, policy=policy, state=state) as ws:
            for number in range(2000):
                ws.write(f"d0/f{number % 100}", f"{number}\n" * 100)
        tracemalloc.start()
        ws = Workspace(top, policy=policy, state=state)
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        ws.close()
        opening = min(timed(lambda: Workspace(top, policy=policy, state=state).close()) for _ in range(5))
        size = bytes_of(state) / 2**20
        print(
            f"2000 steps: {size:.1f} MiB on disk, opened in {opening / 1e3:.0f} ms, "
            f"{held / 2**20:.1f} MiB of memory"
        )


if __name__ == "__main__":
    for count in (10, 10_000):
        checkpoints(count)
    checkpoints(10_000, kept=True)
    changes()
    with_and_without_state()
    resumed()
