"""The worst call of every tool on hostile trees: seconds past its deadline, and memory above the start.

Each call runs in a process of its own, as a model or a program would make it, with `Limits(timeout=2)`. On
Linux, seconds in which other processes had the processor are not counted.

    python benchmarks/bounds.py            # a table in Markdown
    python benchmarks/bounds.py grep edit  # only the calls whose name has one of these words
"""

import base64
import json
import os
import re
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from agentfs import Limits, Workspace
from agentfs.errors import AgentFSError

TIMEOUT = 2.0
MIB = 1 << 20
MANY = 200_000  # entries of the large directories
HUGE = 10**9

Case = tuple[Callable[[Path], object], Callable[[Workspace], object]]
CASES: dict[str, Case] = {}


def case(name: str, build: Callable[[Path], object]) -> Callable[[Callable[[Workspace], object]], None]:
    def add(call: Callable[[Workspace], object]) -> None:
        CASES[name] = build, call

    return add


def tool(name: str, **arguments: object) -> Callable[[Workspace], object]:
    """Return a call as a model makes it."""
    return lambda ws: ws.tools("all").call(name, arguments)


def nothing(top: Path) -> None:
    (top / "f.txt").write_text("one\n")


def one_byte_over_and_over(top: Path) -> None:
    (top / "a.txt").write_bytes(b"a" * (10 * MIB))


def short_lines(top: Path) -> None:
    (top / "lines.txt").write_bytes(b"ab\n" * (3 * MIB))


def twenty_million_lines(top: Path) -> None:
    for number in range(20):
        (top / f"lines{number}.txt").write_bytes(b"x\n" * 1_000_000)


def numbered_lines(top: Path) -> None:
    (top / "six.txt").write_text(
        "".join(f"line number {n} of the file, as long as lines are\n" for n in range(120_000))
    )


def wide(top: Path) -> None:
    for start in range(0, MANY, 1000):
        directory = top / f"d{start // 1000}"
        directory.mkdir()
        for number in range(start, start + 1000):
            (directory / f"f{number}.txt").touch()


def flat(top: Path) -> None:
    for number in range(MANY):
        (top / f"entry{number}.txt").touch()


def deep(top: Path) -> None:
    here = os.open(top, os.O_RDONLY)
    for _ in range(5000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def wildcard_rules(size: int) -> Callable[[Path], None]:
    def build(top: Path) -> None:
        rules = "".join(f"*a{n}*b?c[d-f]*{n}\n" for n in range(size // 20))
        (top / ".gitignore").write_text(rules[:size])
        for number in range(500):
            (top / f"a{number}bxcd{number}.txt").write_text("x\n")

    return build


def plain_rules(top: Path) -> None:
    (top / ".gitignore").write_text("".join(f"name{n}.txt\n" for n in range(300_000))[: 4 * MIB - 1])
    (top / "f.txt").write_text("x\n")


def nested_rules(top: Path) -> None:
    for number in range(200):
        (top / f"d{number}").mkdir()
        (top / f"d{number}" / ".gitignore").write_text("".join(f"*x{n}*y?{number}\n" for n in range(2000)))
        (top / f"d{number}" / "f.txt").write_text("x\n")


def png(width: int, height: int, rows: bytes) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def large_image(top: Path) -> None:
    width, height = 16_000, 12_000
    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(width * 3 + 1)) for _ in range(height)) + packer.flush()
    (top / "image.png").write_bytes(png(width, height, rows))


def large_pdf(top: Path) -> None:
    stream = zlib.compress(b"BT /F1 12 Tf " + b"(some text of a page) Tj " * 400_000 + b"ET", 9)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [" + b"3 0 R " * 50 + b"] /Count 50 >>",
        (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
            b" /Resources << /Font << /F1 5 0 R >> >> >>"
        ),
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n" % len(stream) + stream + b"\nendstream",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, each in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + each + b"\nendobj\n"
    start = len(out)
    out += b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % at for at in offsets)
    out += b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % start
    (top / "document.pdf").write_bytes(bytes(out))


def large_notebook(top: Path) -> None:
    picture = base64.b64encode(png(100, 100, zlib.compress(bytes(301 * 100)))).decode()
    output = {"output_type": "display_data", "data": {"image/png": picture}, "metadata": {}}
    cell = {
        "cell_type": "code",
        "metadata": {},
        "execution_count": 1,
        "source": ["x = 1\n"] * 50,
        "outputs": [output] * 20,
    }
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell] * 2000}
    (top / "book.ipynb").write_text(json.dumps(book)[: 60 * MIB])


def patch_of(count: int) -> str:
    hunks = "".join(
        f"@@\n-line number {n} of the file, as long as lines are\n+changed {n}\n" for n in range(count)
    )
    return f"*** Begin Patch\n*** Update File: six.txt\n{hunks}*** End Patch"


EDITS = [{"old_string": f"line number {n} of", "new_string": f"LINE {n} of"} for n in range(5000)]
MISSES = [{"old_string": f"there is no such line {n} in it", "new_string": "x"} for n in range(100)]

case("glob, `{1..999}` and 2,000 `?*`", nothing)(tool("glob", pattern="{1..999}" + "?*" * 2000))
case("glob, 491 slashes", nothing)(tool("glob", pattern="a/" * 491 + "b"))
case("glob, nested braces", nothing)(tool("glob", pattern="{a,b}" * 20))
case("glob, limit of 10⁹ over 200,000 files", wide)(lambda ws: ws.glob("**/*", limit=HUGE))
case("glob, newest first over 200,000 files", wide)(lambda ws: ws.glob("**/*", limit=HUGE, sort="modified"))
case("ls, limit of 10⁹ over 200,000 entries", flat)(lambda ws: ws.ls(limit=HUGE))
case("ls, depth 0, limit of 10⁹", wide)(tool("ls", depth=0, limit=HUGE))
case("ls, a tree 5,000 deep", deep)(tool("ls", depth=0))
case("grep, limit of 10⁹ on 20 million lines", twenty_million_lines)(lambda ws: ws.grep("x", limit=HUGE))
case("grep by a model, the same", twenty_million_lines)(tool("grep", pattern="x", limit=HUGE))
case("grep, context 20 on one file of 9 MB", short_lines)(lambda ws: ws.grep("b", context=20, limit=HUGE))
case("grep, counts over 200,000 files", wide)(tool("grep", pattern=".", output_mode="count", limit=HUGE))
case("grep, `(a|aa)+$` on 10 MB", one_byte_over_and_over)(tool("grep", pattern="(a|aa)+$b"))
case("grep, multiline `(?:.*\\n)*z`", short_lines)(tool("grep", pattern="(?:.*\n)*z", multiline=True))
case("ls, wildcard rules of 1 MiB", wildcard_rules(MIB))(tool("ls"))
case("grep, wildcard rules of 4 MiB", wildcard_rules(4 * MIB))(tool("grep", pattern="x"))
case("ls, plain rules of 4 MiB", plain_rules)(tool("ls"))
case("ls, 200 rule files of 2,000 wildcards", nested_rules)(tool("ls", depth=0))
case("edit, replace_all of `a` in 10 MB of `a`", one_byte_over_and_over)(
    tool("edit", path="a.txt", old_string="a", new_string="b", replace_all=True)
)
case("edit, a miss in 10 MB of one line", one_byte_over_and_over)(
    tool("edit", path="a.txt", old_string="a" * 5000 + "b", new_string="b")
)
case("edit, ambiguous in 9 MB", short_lines)(tool("edit", path="lines.txt", old_string="ab", new_string="b"))
case("multi_edit, 5,000 edits in 6 MB", numbered_lines)(tool("multi_edit", path="six.txt", edits=EDITS))
case("multi_edit, 100 misses in 6 MB", numbered_lines)(tool("multi_edit", path="six.txt", edits=MISSES))
case("write, 10 MB over 10 MB", one_byte_over_and_over)(
    lambda ws: ws.write("a.txt", "b\n" * (5 * MIB), overwrite=True)
)
case("read, a line of 10 MB", one_byte_over_and_over)(tool("read", path="a.txt"))
case("read, from the end of 20 MB", twenty_million_lines)(tool("read", path="lines0.txt", offset=-20))
case("read, an image of 192 million pixels", large_image)(tool("read", path="image.png"))
case("read, a PDF of 50 large pages", large_pdf)(tool("read", path="document.pdf"))
case("read, a notebook of 40,000 pictures", large_notebook)(tool("read", path="book.ipynb"))
case("apply_patch, 2,000 hunks in 6 MB", numbered_lines)(
    lambda ws: ws.tools(dialect="apply-patch").call("apply_patch", {"input": patch_of(2000)})
)
case("undo of a change of 10 MB", one_byte_over_and_over)(
    lambda ws: (ws.write("a.txt", "b\n" * (5 * MIB), overwrite=True), measured(ws.undo))
)


def own_time() -> float:
    """Return the seconds that have passed, less those in which this thread waited for a processor."""
    try:
        waited = int(Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split()[1])
    except OSError:  # only Linux says
        waited = 0
    return time.perf_counter() - waited / 1e9


def measured(call: Callable[[], object]) -> object:
    """Call with a clock of its own: what was prepared before does not count."""
    global STARTED  # noqa: PLW0603 - one process makes one call
    STARTED = own_time()
    return call()


STARTED = 0.0


def peak() -> int:
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage tells on Linux counts the parent's memory too
        found = re.search(r"VmHWM:\s*(\d+)", status.read_text())
        return int(found[1]) * 1024 if found else 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def run(name: str, top: str) -> None:
    """Make one call and print what it took, as JSON."""
    with Workspace(top, limits=Limits(timeout=TIMEOUT)) as ws:
        before = peak()
        outcome = ""
        try:
            result = measured(lambda: CASES[name][1](ws))
        except AgentFSError as error:
            outcome = error.code
        else:
            failed = getattr(result, "error", None)
            outcome = failed["code"] if failed else "cut" if getattr(result, "truncated", False) else "done"
        took = own_time() - STARTED
    print(json.dumps({"took": took, "memory": max(peak() - before, 0), "outcome": outcome}))


def rows(words: list[str]) -> Iterator[tuple[str, float, float, str]]:
    for name, (build, _) in CASES.items():
        if words and not any(word in name for word in words):
            continue
        with tempfile.TemporaryDirectory() as made:
            top = Path(made, "tree")
            top.mkdir()
            build(top)
            done = subprocess.run(
                [sys.executable, __file__, "--run", name, str(top)],
                capture_output=True,
                text=True,
                check=False,
                timeout=600,
            )
            subprocess.run(["rm", "-rf", "--", str(top)], check=False)  # rmtree is not for 5,000 levels
        if done.returncode:
            yield name, float("nan"), float("nan"), done.stderr.strip().splitlines()[-1][:60]
            continue
        said = json.loads(done.stdout)
        yield name, said["took"], said["memory"] / MIB, said["outcome"]


def main() -> None:
    if sys.argv[1:2] == ["--run"]:
        run(*sys.argv[2:4])
        return
    print("| call | seconds | past the deadline | MiB above the start | outcome |\n|---|---|---|---|---|")
    for name, took, memory, outcome in rows(sys.argv[1:]):
        print(
            f"| {name} | {took:.2f} | {max(took - TIMEOUT, 0):.2f} | {memory:.0f} | {outcome} |", flush=True
        )


if __name__ == "__main__":
    main()
