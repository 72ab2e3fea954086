"""One directory with a million files, and a chain of 5,000 directories: time and memory of each answer.

    python benchmarks/giant.py [--files 1000000] [--in /dev/shm]

Each call runs in a process of its own; the memory is what it adds to that of the imports.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

CALLS = {
    "ls": "ws.ls()",
    "ls, the last page": "ws.ls(offset=FILES - 10)",
    "ls sort=size": 'ws.ls(sort="size")',
    "ls depth=0": "ws.ls(depth=0)",
    "glob *.py": 'ws.glob("*.py")',
    "glob **, 200 shown": 'ws.glob("**")',
    "glob sort=modified": 'ws.glob("**", sort="modified")',
}
RUN = """
import resource, sys, time
from agentfs import Workspace
ws = Workspace(sys.argv[1])
ws.ls("small"); ws.glob("*", "small")
FILES = int(sys.argv[2])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.perf_counter()
result = eval(sys.argv[3])
took = time.perf_counter() - began
added = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
total = getattr(result, "total")
last = result.text.split("\\n")[-1][:100]
print(f"{took:6.2f} s  {added:6.0f} MB  {total:>9,} found  {result.skipped.reached or 'to the end'}")
"""


def run(top: str, files: int) -> None:
    for name, call in CALLS.items():
        command = [sys.executable, "-c", RUN, top, str(files), call]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(f"  {name:20} {done.stdout.strip() or done.stderr.strip().splitlines()[-1]}", flush=True)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--files", type=int, default=1_000_000)
    options.add_argument("--in", dest="place", default="/dev/shm" if os.path.isdir("/dev/shm") else None)
    given = options.parse_args()
    top = tempfile.mkdtemp(dir=given.place)
    try:
        os.mkdir(f"{top}/small")
        fd = os.open(top, os.O_RDONLY)
        for number in range(given.files):
            os.close(
                os.open(
                    f"file-number-{number:07}{'.py' if number % 100 == 0 else ''}",
                    os.O_CREAT | os.O_WRONLY,
                    dir_fd=fd,
                )
            )
        os.close(fd)
        print(f"{given.files:,} files in one directory")
        run(top, given.files)
    finally:
        shutil.rmtree(top)
    top = tempfile.mkdtemp(dir=given.place)
    try:
        os.mkdir(f"{top}/small")
        fd = os.open(top, os.O_RDONLY)
        for _ in range(5000):
            os.close(os.open("f.py", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
            os.mkdir("d", dir_fd=fd)
            below = os.open("d", os.O_RDONLY, dir_fd=fd)
            os.close(fd)
            fd = below
        os.close(fd)
        print("5,000 levels of directories, a file in each")
        run(top, 300)
    finally:
        subprocess.run(["rm", "-rf", top], check=True)


if __name__ == "__main__":
    main()
