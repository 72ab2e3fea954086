"""Edits of a large file against a plain replace through the same root, interleaved; and misses explained."""

import statistics
import tempfile
import time
import tracemalloc
from pathlib import Path

from agentfs import AgentFSError, Limits, Policy, Workspace
from agentfs.fs import Root
from agentfs.shown.read_tracker import ReadTracker

ROUNDS = 7
LINE = "    value_{0} = compute({0}, 'some words', other={0})\n"


def plain_replace(root: Root, old: bytes, new: bytes) -> None:
    """Replace one string in the file `theirs`, without anything that an edit does besides."""
    root.update("theirs", lambda now: ((now.data or b"").replace(old, new, 1), None), max_bytes=1 << 25)


def milliseconds(call):
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def text_of(size):
    lines, number, length = [], 0, 0
    while length < size:
        lines.append(LINE.format(number))
        length += len(lines[-1])
        number += 1
    return "".join(lines)


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        limits = Limits(file_bytes=20 * 1024 * 1024)
        text = text_of(10_000_000)
        middle = LINE.format(text.count("\n") // 2)
        cases = {
            "ASCII, LF": text,
            "CRLF": text.replace("\n", "\r\n"),
            "UTF-8": text.replace("words", "wörds"),
        }
        with Workspace(root, limits=limits) as ws, Root(root, Policy()) as plain_root:
            for name, content in cases.items():
                data = content.encode()
                middle_now = middle.replace("words", "wörds") if name == "UTF-8" else middle
                (root / "ours").write_bytes(data)
                (root / "theirs").write_bytes(data)
                old, new = middle_now.strip(), middle_now.strip() + "  # changed"
                pairs = []
                for _ in range(ROUNDS):
                    raw = milliseconds(lambda o=old, n=new: plain_replace(plain_root, o.encode(), n.encode()))
                    ours = milliseconds(lambda o=old, n=new: ws.edit("ours", o, n))
                    assert (root / "ours").read_bytes() == (root / "theirs").read_bytes()
                    pairs.append((raw, ours))
                    old, new = new, old
                raw = statistics.median(pair[0] for pair in pairs)
                ours = statistics.median(pair[1] for pair in pairs)
                ratio = statistics.median(pair[1] / pair[0] for pair in pairs)
                print(
                    f"edit of 10 MB, {name}: {ours:.0f} ms, a plain replace {raw:.0f} ms:"
                    f" {ratio:.1f} times (aim: 3)"
                )
            (root / "many").write_bytes(text.encode())
            took = milliseconds(lambda: ws.edit("many", "00, 'some", "00, 'any", replace_all=True))
            count = text.count("00, 'some")
            print(f"replace_all of {count} places in 10 MB: {took:.0f} ms")
            (root / "miss").write_text(text_of(1_000_000))
            ws.read("miss")
            block = "".join(LINE.format(n) for n in range(9000, 9020))
            misses = {
                "absent": "zebra crossing\nquietly",
                "near": block.replace("value_9010", "valve_9010").replace("9010", "901"),
                "whitespace": block.replace("    ", "\t"),
                "line numbers": "".join(
                    f"{n}|{line}\n" for n, line in enumerate(block.split("\n")[:-1], 9001)
                ),
                "hostile: one letter a line": "e\n" * 2000,
                "hostile: many common lines": "compute\n" * 2000 + "x",
                "all lines, shifted by one": text_of(1_000_000).replace("value", "v")[:200_000],
            }
            for name, old in misses.items():
                took = []
                for _ in range(ROUNDS):
                    took.append(milliseconds(lambda o=old: missed(ws, o)))
                print(f"miss in 1 MB, {name}: {statistics.median(took):.0f} ms (aim: 150)")
    memory()


def missed(ws, old):
    try:
        ws.edit("miss", old, "something else entirely")
    except AgentFSError:
        return
    raise AssertionError("it should have missed")


def memory():
    tracemalloc.start()
    shown = ReadTracker()
    text = text_of(1_000_000)
    for number in range(100):
        content = f"{number}\n{text}"
        shown.record_read(f"/{number}", "r", content, 1, 10, 20_000)
        shown.line_ids(f"/{number}", "r", content)
    print(f"memory of 100 files of 1 MB shown with ids: {tracemalloc.get_traced_memory()[0] / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
