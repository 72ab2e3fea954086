"""At the default limits no call takes more than 256 MiB, with any arguments and any file.

Each call runs in a process of its own, whose peak is compared with what it took before the call.
"""
# ruff: noqa: E501 - a row of a table is one line

import os
import re
import struct
import zlib
from contextlib import closing

import pytest

from scripts.forked_python import ForkedPython

MOST = 256  # MiB above start
SECONDS = 40  # without bounds some of these took minutes
MIB = 1024 * 1024

SCRIPT = """
import pathlib, re, resource, sys, time
from agentfs import AgentFSError, Edit, Limits, LineChange, Workspace
def peak():
    status = pathlib.Path("/proc/self/status")
    if status.exists():  # what getrusage tells on Linux counts the parent's memory too
        return int(re.search("VmHWM:[^0-9]*([0-9]+)", status.read_text())[1]) / 1024
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (1024 * 1024 if sys.platform == "darwin" else 1024)
with Workspace("tree") as ws:
    ws.write("small.txt", "text\\n")
    ws.edit("small.txt", "text", "other")
    ws.read("small.txt", line_ids=True)
    try:
        ws.edit("small.txt", "absent thing", "x")
    except AgentFSError:
        pass
    before, began, outcome = peak(), time.monotonic(), "ok"
    try:
        {call}
    except AgentFSError as error:
        outcome = error.code
    print(round(peak() - before), round(time.monotonic() - began, 1), outcome)
"""


def lines() -> bytes:
    return b"a\nb\n" * (10 * MIB // 4)


def many(count: int) -> bytes:
    return b"".join(b"line %07d of a file\n" % number for number in range(count))


def png(side: int) -> bytes:
    """An image of one colour, which takes four bytes a pixel when decoded."""
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = zlib.compressobj(9)
    packed = b"".join(rows.compress(b"\0" * (3 * side + 1)) for _ in range(side)) + rows.flush()
    chunks = [(b"IHDR", header), (b"IDAT", packed), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )


def pdf(*contents: bytes, pages: int = 1) -> bytes:
    """A PDF whose pages all have the first content, and may use each content as a form, `X0` the first."""
    fonts = b"/Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
    forms = b"".join(b"/X%d %d 0 R " % (number, number + 4) for number in range(len(contents)))
    names = b"/Resources << %s /XObject << %s >> >>" % (fonts, forms)
    form = b"<< /Type /XObject /Subtype /Form %s /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [" + b"3 0 R " * pages + b"] /Count %d >>" % pages,
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R %s >>" % names,
        *(form % (names, len(packed), packed) for packed in map(zlib.compress, contents)),
    ]
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % each for each in enumerate(objects, 1))
    return b"%PDF-1.4\n" + body + b"trailer << /Root 1 0 R >>\nstartxref\n0\n%%EOF"


def notebook(cells: bytes) -> bytes:
    return b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [%s]}' % cells


TEXT = b"BT /F1 12 Tf %s ET"
CALLS = {
    "each character": (lambda: b"a" * 10 * MIB, 'ws.edit("f", "a", "b", replace_all=True)', "ok"),
    "each character goes": (lambda: b"a" * 10 * MIB, 'ws.edit("f", "a", "", replace_all=True)', "ok"),
    "each character too large": (lambda: b"a" * 10 * MIB, 'ws.edit("f", "a", "ab", replace_all=True)', "too_large"),
    "mixed line ends": (lambda: b"a\r\nb\n" * (10 * MIB // 5), 'ws.edit("f", "a", "c", replace_all=True)', "ok"),
    "every second line, and its undo": (lines, 'ws.edit("f", "a", "c", replace_all=True); ws.undo()', "ok"),
    "a miss among empty lines": (lambda: b"\n" * 10 * MIB, 'ws.edit("f", "some text", "b")', "no_match"),
    "a miss in one long line": (lambda: b"ab " * (10 * MIB // 3), 'ws.edit("f", "some ab", "b")', "no_match"),
    "a large old text": (lines, 'ws.edit("f", "a\\nb\\n" * 1_000_000 + "x", "b")', "no_match"),
    "a miss among many lines": (lambda: many(399_000), 'ws.edit("f", "line 0200000 of the fil\\nx", "b")', "no_match"),
    "one wide character": (lambda: b"ab\n" * (3 * MIB) + "😀".encode(), 'ws.edit("f", "b", "c", replace_all=True)', "ok"),
    "many lines compared": (lambda: many(199_000), 'ws.write("f", "other line\\n" * 190_000, overwrite=True)', "ok"),
    "many line ids": (
        lambda: many(240_000),
        """one = LineChange(new_content="x", line_id=ws.read("f", line_ids=True).line_ids[5])
        ws.edit_lines("f", [one])""",
        "ok",
    ),
    "write over lines": (lambda: b"\n" * 10 * MIB, 'ws.write("f", "a\\n" * (5 << 20), overwrite=True)', "ok"),
    "line ids": (lambda: b"\n" * 7 * MIB, 'ws.read("f", line_ids=True)', "ok"),
    "a limit of any size": (lambda: b"\n" * 10 * MIB, 'ws.read("f", limit=10**9)', "ok"),
    "lines of many characters": (lambda: "é😀\n".encode() * (10 * MIB // 7), 'ws.edit("f", "é", "e", replace_all=True)', "ok"),
    "a transaction of many files": (
        lambda: b"",
        """with ws.transaction() as tx:
            for number in range(40):
                tx.write(f"new{number}", f"{number:07}\\n" * (1 << 20))
        ws.undo(); ws.redo(); ws.read("f")""",
        "ok",
    ),
    "the changes of many files": (
        lambda: b"",
        """for number in range(40):
            ws.write(f"new{number}", f"{number:07}\\n" * (1 << 20))
        assert "not in the patch" in ws.changes().text
        ws.read("f")""",
        "ok",
    ),
    "an image of 100 million pixels": (lambda: png(10_000), 'ws.read("f")', "ok"),
    "the largest image that is scaled": (lambda: png(5000), 'ws.read("f")', "ok"),
    "a page of 10 million texts": (lambda: pdf(TEXT % (b"(t) Tj " * 10_000_000)), 'ws.read("f")', "ok"),
    "a page of one long text": (lambda: pdf(TEXT % (b"(%s) Tj" % (b"a" * 60_000_000))), 'ws.read("f")', "ok"),
    "many pages": (lambda: pdf(TEXT % (b"(text) Tj " * 40_000), pages=50_000), 'ws.read("f")', "ok"),
    "a cell of many lines": (lambda: notebook(b'{"cell_type": "code", "source": "%s"}' % (rb"a\n" * 3_000_000)), 'ws.read("f.ipynb")', "ok"),
    "an output of many lines": (lambda: notebook(b'{"outputs": [{"text": "%s"}]}' % (rb"\n" * 5_000_000)), 'ws.read("f.ipynb")', "ok"),
    "many cells": (lambda: notebook(b"{}" + b",{}" * 3_400_000), 'ws.read("f.ipynb")', "ok"),
    "a search of many lines": (lambda: many(3_000_000), 'ws.grep(r"line .*7", "f", context=20, timeout=30)', "ok"),
    "a search over lines": (lambda: many(1_000_000), 'ws.grep(r"e\\nl", "f", multiline=True)', "ok"),
    "a search of one long line": (lambda: "é😀 ".encode() * (8 * MIB), 'ws.grep("😀 é", "f")', "ok"),
    "as many cells as are read": (lambda: notebook(b"{}" + b",{}" * 700_000), 'ws.read("f.ipynb")', "ok"),
}  # fmt: skip


# The slowest cases are for the long runs.
LONG = {
    *("a search of one long line", "a transaction of many files", "many pages", "the changes of many files"),
    *("a search of many lines", "write over lines", "mixed line ends", "an image of 100 million pixels"),
    *("each character goes", "lines of many characters"),
}


@pytest.fixture(scope="module")
def python():
    with closing(ForkedPython()) as opened:
        yield opened


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in CALLS]
)
def test_the_memory_of_a_call_is_bounded(tmp_path, python, name):
    data, call, code = CALLS[name]
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / re.search(r'"(f|f\.ipynb)"', call)[1]).write_bytes(data())
    ran = python.run(SCRIPT.replace("{call}", call), tmp_path, dict(os.environ))
    assert ran.returncode == 0, ran.stdout[-2000:]
    used, seconds, outcome = ran.stdout.split()
    assert outcome == code
    assert int(used) <= MOST
    assert float(seconds) <= SECONDS
