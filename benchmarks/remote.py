"""A tree at the end of a slow connection: the engine there, beside SFTP with many requests at once.

    python benchmarks/remote.py TREE [--rtt 20] [--rounds 15] [--installed] [--watch] [--json FILE]

TREE has Python files, such as Django's. It is copied to memory, where there is `/dev/shm`, because an edit is
otherwise as slow as the disk. An sshd is started on loopback, with a proxy before it that delays each
way by half of `--rtt` milliseconds. All are measured in one run: `local`, a workspace on the tree; `connect`,
one over ssh with the package pushed to a bare Python, or with `--installed` served by this environment, which
has `regex`; `sftp`, asyncssh (`pip install asyncssh`) with 64 requests at once, which is asked once or twice
for what takes it seconds. With `--watch` both workspaces keep names and texts.
"""

import argparse
import asyncio
import os
import posixpath
import re
import runpy
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from save import save

from agentfs import Workspace, connect

ROOT = Path(__file__).parents[1]
HARNESS = ROOT / "tests" / "remote" / "harness.py"
AT_ONCE = 64
PATTERN = r"class \w+\(.*Mixin"
FILE = "django/db/models/query.py"
OLD, NEW = "class QuerySet(AltersData):", "class QuerySet(AltersData):  # edited"


class Sftp:
    """A client that can only read and write files."""

    def __init__(self, client, root: str) -> None:
        self.client, self.root = client, root
        self.free = asyncio.Semaphore(AT_ONCE)

    async def content(self, path: str) -> bytes:
        async with self.free, self.client.open(path, "rb") as file:
            return await file.read()

    async def read(self) -> str:
        text = (await self.content(f"{self.root}/{FILE}")).decode()
        return "".join(text.splitlines(keepends=True)[:2000])

    async def edit(self, old: str, new: str) -> None:
        path = f"{self.root}/{FILE}"
        content = (await self.content(path)).replace(old.encode(), new.encode(), 1)
        async with self.client.open(path, "wb") as file:
            await file.write(content)

    async def glob(self) -> list[str]:
        async def below(directory: str) -> list[str]:
            async with self.free:
                entries = await self.client.readdir(directory)
            names = [entry for entry in entries if entry.filename not in (".", "..")]
            found = [
                posixpath.join(directory, each.filename)
                for each in names
                if each.attrs.type == 1 and each.filename.endswith(".py")
            ]
            directories = [each.filename for each in names if each.attrs.type == 2]
            lists = await asyncio.gather(*(below(posixpath.join(directory, each)) for each in directories))
            return found + [path for each in lists for path in each]

        return await below(self.root)

    async def grep(self) -> int:
        expression = re.compile(PATTERN.encode())
        contents = await asyncio.gather(*map(self.content, await self.glob()))
        return sum(len(expression.findall(each)) for each in contents)


def timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


async def timed_async(call: Awaitable[object]) -> float:
    started = time.perf_counter()
    await call
    return (time.perf_counter() - started) * 1000


def calls_of(workspace: Workspace, side: str) -> dict[str, Callable[[], object]]:
    texts = [OLD, NEW]

    def edit() -> None:
        workspace.edit(FILE + side, *texts)
        texts.reverse()

    return {
        "read": lambda: workspace.read(FILE),
        "edit": edit,
        "grep": lambda: workspace.grep(PATTERN, glob="*.py"),
        "glob": lambda: workspace.glob("**/*.py"),
    }


async def measure_sftp(sshd: Any, port: int, root: str, rounds: int) -> dict[str, float]:
    import asyncssh  # noqa: PLC0415 - the one peer that must be installed

    options = {"known_hosts": None, "client_keys": [str(sshd.directory / "client_key")], "config": None}
    async with (
        asyncssh.connect("127.0.0.1", port, **options) as connection,
        connection.start_sftp_client() as client,
    ):
        sftp = Sftp(client, root)
        texts = [OLD, NEW]
        reads, edits = [], []
        for _ in range(rounds):
            reads.append(await timed_async(sftp.read()))
            edits.append(await timed_async(sftp.edit(*texts)))
            texts.reverse()
        globs = [await timed_async(sftp.glob()) for _ in range(2)]
        return {
            "read": statistics.median(reads),
            "edit": statistics.median(edits),
            "grep": await timed_async(sftp.grep()),
            "glob": min(globs),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tree")
    parser.add_argument("--rtt", type=float, default=20.0, help="milliseconds")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--installed", action="store_true")
    parser.add_argument("--watch", action="store_true")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
        directory = Path(name)
        (directory / "ssh").mkdir(mode=0o700)
        tree = directory / "tree"
        shutil.copytree(arguments.tree, tree, symlinks=True)
        proxy_command = [sys.executable, str(HARNESS)]
        with runpy.run_path(str(HARNESS))["Sshd"](directory / "ssh") as sshd:
            proxy = subprocess.Popen(
                [*proxy_command, str(sshd.port), str(arguments.rtt / 2000)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            try:
                rows = measure(sshd, int(proxy.stdout.readline()), tree, arguments)
            finally:
                proxy.kill()
                proxy.communicate()
    if arguments.json:
        save(arguments.json, f"{Path(arguments.tree).name}, {arguments.rtt:g} ms", rows)


def measure(sshd: Any, port: int, tree: Path, arguments: argparse.Namespace) -> list[dict]:
    rounds, rtt = arguments.rounds - arguments.rounds % 2, arguments.rtt
    for side in ("local", "connect"):  # each edits a file of its own
        shutil.copy(tree / FILE, tree / (FILE + side))
    found: dict[str, dict[str, list[float]]] = {}
    started = time.perf_counter()
    command, options = sshd.command(port), {"python": sys.executable}
    if arguments.installed:
        serve = [sys.executable, "-m", "agentfs", "serve", "--root", str(tree)]
        command, options = [*command, "env", f"PYTHONPATH={ROOT}", *serve], {"push": False}
    root = "" if arguments.installed else str(tree)
    watch = arguments.watch
    with connect(command, root, watch=watch, **options) as far, Workspace(tree, watch=watch) as near:
        print(f"opened over ssh in {time.perf_counter() - started:.2f} s; {far.remote}")
        sides = {"local": calls_of(near, "local"), "connect": calls_of(far, "connect")}
        assert far.read(FILE).text == near.read(FILE).text
        assert far.grep(PATTERN, glob="*.py").text == near.grep(PATTERN, glob="*.py").text
        assert far.glob("**/*.py").text == near.glob("**/*.py").text
        for _ in range(9 if watch else 0):  # each keeps a part of the tree
            far.grep(PATTERN)
            near.grep(PATTERN)
        for label in sides["local"]:
            for number in range(rounds + 2):
                for side, calls in sides.items():
                    taken = timed(calls[label])
                    if number >= 2:  # the first are not counted
                        found.setdefault(label, {}).setdefault(side, []).append(taken)
        assert (tree / f"{FILE}connect").read_bytes() == (tree / f"{FILE}local").read_bytes()
    sftp = asyncio.run(measure_sftp(sshd, port, str(tree), rounds))
    rows = []
    for label, sides_of_label in found.items():
        ms = {side: round(statistics.median(times), 2) for side, times in sides_of_label.items()}
        ms["sftp"] = round(sftp[label], 1)
        aim = 5 if label in ("read", "edit") else 15
        over = ms["connect"] - ms["local"] - rtt
        print(
            f"{label:5}  local {ms['local']:8.2f}  connect {ms['connect']:8.2f}  sftp {ms['sftp']:10.1f}  ms;"
            f"  {over:+.2f} over local and a round trip (aim {aim});  {ms['sftp'] / ms['connect']:.0f} x sftp"
        )
        rows.append({"label": label, "ms": ms})
    return rows


if __name__ == "__main__":
    main()
