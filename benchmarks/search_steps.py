"""Measure the steps of a search that finds nothing: each step with those before it, the best of rounds.

python benchmarks/search_steps.py TREE [ROUNDS]
"""

import os
import sys
import time
from collections.abc import Callable

from agentfs import Limits, Policy, Workspace
from agentfs.fs import ReadBuffer, Root
from agentfs.patterns.compile import compile_pattern
from agentfs.patterns.prefilter import Prefilter
from agentfs.tree.walk import Walk

LITERAL = "zz_no_such_name_zz"
FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


def scan(tree: str) -> None:
    """List every directory, as plainly as can be."""
    left = [tree]
    while left:
        with os.scandir(left.pop()) as entries:
            left += [each.path for each in entries if each.is_dir(follow_symlinks=False)]


def open_all(root: Root, *, read: bool, look: bool) -> None:
    """Walk, and open what the walk finds."""
    contents = ReadBuffer(2**26)
    prefilter = Prefilter(compile_pattern(LITERAL).plan)
    for visit in Walk(root, "", max_entries=10**7):
        handle = visit.directory.handle
        for entry in visit.files:
            fd = os.open(entry.name, FLAGS, dir_fd=handle)
            if read:
                length = contents.fill(fd)
                if look:
                    contents.data.find(0, 0, length)
                    prefilter.may_match(contents.data, length)
            os.close(fd)


def main() -> None:
    """Measure and print."""
    tree, rounds = os.path.realpath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 7
    root = Root(tree, Policy())
    ws = Workspace(tree, limits=Limits(timeout=30, file_bytes=2**26))

    def best(step: Callable[[], object]) -> float:
        times = []
        for _ in range(rounds):
            began = time.process_time()
            step()
            times.append(time.process_time() - began)
        return min(times) * 1000

    steps: dict[str, Callable[[], object]] = {
        "scandir of every directory": lambda: scan(tree),
        "the walk: that, ignore rules, order, counts": lambda: [
            None for _ in Walk(root, "", max_entries=10**7)
        ],
        "and open and close each file": lambda: open_all(root, read=False, look=False),
        "and read it to its end": lambda: open_all(root, read=True, look=False),
        "and look for a NUL and a literal": lambda: open_all(root, read=True, look=True),
        "grep": lambda: ws.grep(LITERAL, output_mode="total"),
    }
    for name, step in steps.items():
        print(f"{best(step):8.1f} ms  {name}")


if __name__ == "__main__":
    main()
