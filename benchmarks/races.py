"""Reads during swaps of a directory for a link out of the root: how many show a file from outside.

    python benchmarks/races.py [--calls 20000] [--json FILE]

"check, then open" is what file tools usually do: resolve the path, compare it with the root, open it.
"""

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from ratios import save

from agentfs import AgentFSError, Workspace

ATTACK = """
import ctypes, sys
exchange = ctypes.CDLL(None).renameat2
one, two = sys.argv[1].encode(), sys.argv[2].encode()
print("begun", flush=True)
while True:
    exchange(-100, one, -100, two, 2)
"""


def escapes(calls: int, read: Callable[[], str]) -> int:
    found = 0
    for _ in range(calls):
        try:
            found += "outside" in read()
        except (OSError, AgentFSError):
            continue
    return found


def checked_read(root: str, path: str) -> str:
    real = os.path.realpath(os.path.join(root, path))
    if os.path.commonpath([root, real]) != root:
        raise PermissionError(path)
    with open(real) as file:
        return file.read()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--json", help="the file for the figures")
    given = parser.parse_args()
    if not hasattr(ctypes.CDLL(None), "renameat2"):
        sys.exit("the attacker needs renameat2, and so Linux")
    with tempfile.TemporaryDirectory() as directory:
        top, outside = Path(os.path.realpath(directory)) / "root", Path(directory) / "outside"
        for made, said in ((top / "a", "inside"), (outside, "outside")):
            made.mkdir(parents=True)
            (made / "t").write_text(said)
        (top / "link").symlink_to(outside)
        command = [sys.executable, "-c", ATTACK, str(top / "a"), str(top / "link")]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as attacker, Workspace(top) as ws:
            attacker.stdout.readline()
            found = {"check, then open": escapes(given.calls, lambda: checked_read(str(top), "a/t"))}
            found["agentfs"] = escapes(given.calls, lambda: ws.read("a/t").content)
            attacker.kill()
    for name, value in found.items():
        print(f"{name}: {value:,} of {given.calls:,}")
    if given.json:
        save(given.json, "made up", [{"label": "reads", "calls": given.calls, "escapes": found}])


if __name__ == "__main__":
    main()
