"""Every call ends within its deadline and its memory, whatever random or mutated input it is given.

`pytest -m long -s tests/faults/test_deadline_fuzz.py` runs for an hour, or `AGENTFS_FUZZ_SECONDS`, and prints
the worst call of each kind of input.
"""

import base64
import io
import json
import os
import random
import resource
import sys
import time

import pytest
from PIL import Image

from agentfs import Limits, Workspace
from tests.test_memory import pdf

TIMEOUT = 1.0
PAST = 1.0  # allowed seconds after the deadline, without waiting for the processor; the goal is 0.3
ADDRESS_SPACE = 6 << 30  # bytes, so that a huge allocation fails here and does not fill the machine
CASES = range(13)
MEMORY = 512 << 20  # bytes above the start; the goal is 256 MiB; a process keeps some freed memory

SPACED = (
    r"a ab . \w \b [a-z] [^a] (a|aa) (?:) (?=a) (?<!b) \1 (?P<n>a) (?&n) (?R) ^ $ İ ſ \p{L} é (?i:A) \X "
    r"x{2,5} { } [[:alpha:]]"
)
ATOMS = [*SPACED.split(), r"\N{LATIN SMALL LETTER A}"]
QUANTIFIERS = ["", "", "*", "+", "?", "*?", "+?", "{1,}", "{1,60}", "{0,1000}", "*+", "{2}"]
GLOB_ATOMS = [*"?a/.\\[{}!é", "*", "**", "[a-z]", "[!a]", "{a,b}", "{1..9}", "**/", "{,x}"]


def pattern(rng):
    def group(depth):
        parts = []
        for _ in range(rng.randint(1, 4)):
            atom = rng.choice(ATOMS) if depth == 0 or rng.random() < 0.6 else f"({group(depth - 1)})"
            parts.append(atom + rng.choice(QUANTIFIERS))
        return rng.choice(["", "|"]).join(parts)

    return mutated(rng, group(rng.randint(0, 4)))


def mutated(rng, text):
    for _ in range(rng.choice([0, 0, 1, 3])):
        at = rng.randint(0, len(text))
        made = text[:at] + rng.choice(ATOMS) + text[at:], text[:at] + text[at + 1 :], text * 2
        text = rng.choice(made)[:3000]
    return text


def glob(rng):
    pieces = [rng.choice(GLOB_ATOMS) for _ in range(rng.choice([1, 3, 8, 40, 400]))]
    return "".join(pieces) * rng.choice([1, 1, 1, 20])


def mutated_bytes(rng, data):
    changed = bytearray(data)
    for _ in range(rng.choice([0, 1, 4, 40])):
        if not changed:
            break
        at = rng.randrange(len(changed))
        match rng.randrange(4):
            case 0:
                changed[at] = rng.randrange(256)
            case 1:
                del changed[at : at + rng.randint(1, 50)]
            case 2:
                changed[at:at] = changed[max(0, at - 100) : at]
            case 3:
                changed[at : at + 4] = rng.choice([b"\xff" * 4, b"\0" * 4, b"9999"])
    return bytes(changed)


def image(rng):
    size = rng.choice([(10, 10), (500, 500), (9000, 9000), (60000, 2000), (1, 65000)])
    made = io.BytesIO()
    form = rng.choice(["PNG", "JPEG", "GIF", "WEBP"]) if max(size) < 16000 else "PNG"
    Image.new("L" if size[0] * size[1] > 10**6 else "RGB", size).save(made, form, method=0)  # of WEBP: fast
    return mutated_bytes(rng, made.getvalue())


def notebook(rng):
    picture = base64.b64encode(image(rng)).decode()
    data = {"image/png": picture, "text/plain": "x" * 100}
    outputs = [{"output_type": "display_data", "data": data, "metadata": {}}]
    source = rng.choice(["x = 1\n", ["x\n"] * 1000, "", 3, None, {"a": 1}])
    kind = rng.choice(["code", "markdown", "raw", "x"])
    cell = {"cell_type": kind, "source": source, "outputs": outputs * rng.choice([0, 1, 30])}
    cells = [cell] * min(rng.choice([1, 100, 3000]), 1 + (20 << 20) // len(json.dumps(cell)))
    text = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})[: 20 << 20]
    return mutated_bytes(rng, rng.choice([text, "[" * 100_000 + text]).encode())


def document(rng):
    operators = rng.choice([b"(text) Tj ", b"q ", b"1 0 0 1 0 0 cm ", b"/X0 Do ", b"[(a) -100 (b)] TJ "])
    page = b"BT /F1 12 Tf " + operators * rng.choice([10, 1000, 300_000]) + b"ET"
    return mutated_bytes(rng, pdf(page, pages=rng.choice([1, 30])))


def rules(rng):
    lines = [glob(rng) for _ in range(rng.choice([1, 50, 5000]))]
    return ("\n".join(lines)[: 6 << 20]).encode()


def patch(rng):
    lines = ["*** Begin Patch", f"*** {rng.choice(['Update', 'Add', 'Delete'])} File: text.txt"]
    for _ in range(rng.choice([1, 20, 2000])):
        mark = rng.choice([" ", "-", "+", "@@ ", "@@", "", "*** Move to: "])
        lines.append(mark + rng.choice(["ab", "line 7", "", "x" * 1000, "ab " * 3]))
    return "\n".join([*lines, "*** End Patch"])


def edits(rng):
    texts = ["ab", "a", "line 7\n", "\n", "ab\nab\n", "x" * 3000, "line  7", "“line”", "1|ab"]

    def edit():
        old, new = rng.choice(texts) * rng.choice([1, 1, 50]), rng.choice(texts)
        return {"old_string": old, "new_string": new, "replace_all": rng.random() < 0.3}

    return [edit() for _ in range(rng.choice([1, 10, 1000]))]


def distinct_words(rng, count):
    """Return mostly distinct words whose pairs have any degree of similarity."""
    head, tail = ("".join(rng.choices("abc", k=rng.choice([0, 1, 8]))) for _ in range(2))
    return [f"{head}{rng.randrange(10 ** rng.choice([1, 4, 9])):x}{tail}" for _ in range(count)]


def varied(rng, text):
    rate = rng.choice([0, 0.01, 0.1, 0.3, 0.6, 1])
    return "".join(rng.choice("ab \n1_") if rng.random() < rate else each for each in text)


def missed_edit(rng, top):
    """Write a file and return an old text with a random similarity to it."""
    words = distinct_words(rng, rng.choice([10, 500, 40_000]))
    between = rng.choice([" ", "\n", "\n    ", ", "])
    (top / "words.txt").write_text(between.join(words))
    at, count = rng.randrange(len(words)), rng.choice([1, 30, 1000])
    old = varied(rng, rng.choice([" ", "\n", between]).join(words[at : at + count]))[:60_000] or "none"
    return {"path": "words.txt", "old_string": old, "new_string": varied(rng, old)}


def similar_paths(rng, top):
    directory = top / f"names{rng.randrange(4)}"
    if not directory.exists():
        directory.mkdir()
        length = rng.choice([5, 60, 190])
        base = "".join(rng.choices("abcdef_", k=length))
        for number in range(rng.choice([10, 2000])):
            name = varied(rng, base).replace(" ", "-").replace("\n", "-")
            (directory / f"{name}{number}").touch()
        (directory / base).touch()
    name = varied(rng, rng.choice(os.listdir(directory)))
    return f"{directory.name}/{name}"


def one_call(rng, top, case):
    """Return the kind of a random input, the tool, and its arguments, for one of the `CASES`."""
    big = rng.choice([5, 10**9])
    modes = ["content", "files_with_matches", "count", "summary", "total"]
    match case:
        case 10:
            return "missed edit", "edit", missed_edit(rng, top)
        case 11:
            edit = missed_edit(rng, top)
            path = edit.pop("path")
            return "missed edits", "multi_edit", {"path": path, "edits": [edit] * rng.choice([1, 5])}
        case 12:
            return "similar path", "read", {"path": similar_paths(rng, top)}
        case 0 | 1:
            flags = {name: rng.random() < 0.3 for name in ("multiline", "ignore_case")}
            shown = {"limit": big, "output_mode": rng.choice(modes), "context": rng.choice([0, 20])}
            return "pattern", "grep", {"pattern": pattern(rng), **flags, **shown}
        case 2:
            return "glob", "grep", {"pattern": "a", "glob": glob(rng), "limit": big}
        case 3:
            return "glob", "glob", {"pattern": glob(rng), "limit": big}
        case 4:
            (top / ".gitignore").write_bytes(rules(rng))
            return rng.choice([("rule file", "ls", {"depth": 0}), ("rule file", "grep", {"pattern": "a"})])
        case 5:
            (top / "image.png").write_bytes(image(rng))
            return "image", "read", {"path": "image.png"}
        case 6:
            (top / "book.ipynb").write_bytes(notebook(rng))
            return "notebook", "read", {"path": "book.ipynb", "offset": rng.choice([1, -3, 50])}
        case 7:
            (top / "document.pdf").write_bytes(document(rng))
            return "PDF", "read", {"path": "document.pdf"}
        case 8:
            return "patch", "apply_patch", {"input": patch(rng)}
        case 9:
            return "edits", "multi_edit", {"path": "text.txt", "edits": edits(rng)}


def own_time():
    """Return the elapsed seconds, without those in which this thread waited for a processor."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            waited = int(file.read().split()[1])
    except OSError:  # only on Linux
        waited = 0
    return time.monotonic() - waited / 1e9


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@pytest.mark.full
@pytest.mark.parametrize("seconds", [
    pytest.param(0, id="short"),
    pytest.param(float(os.environ.get("AGENTFS_FUZZ_SECONDS", "3600")), id="long", marks=pytest.mark.long),
])  # fmt: skip
def test_no_input_holds_a_call_past_its_deadline(tmp_path, seconds):
    seed = int(os.environ.get("AGENTFS_FUZZ_SEED", "1" if seconds < 60 else str(time.time_ns())))
    rng = random.Random(seed)
    worst = {}
    start, calls, rounds = time.monotonic(), 0, 0
    with Workspace(tmp_path, limits=Limits(timeout=TIMEOUT)) as ws:
        while rounds < 2 or time.monotonic() < start + seconds:
            rounds += 1
            lines = ["ab\n", "line 7\n", f"{'x' * 200}\n", "\n", f"{'aaaa' * 500}\n"]
            (tmp_path / "text.txt").write_text("".join(rng.choices(lines, k=rng.choice([10, 200_000]))))
            for case in CASES:
                kind, name, arguments = one_call(rng, tmp_path, case)
                tools = ws.tools(dialect="apply-patch") if name == "apply_patch" else ws.tools("all")
                before, begun = peak(), own_time()
                result = tools.call(name, arguments)
                took, memory = own_time() - begun, peak() - before
                calls += 1
                said = f"seed {seed}, call {calls}: {name} {str(arguments)[:300]}"
                code = result.error and result.error["code"]
                assert code != "internal", f"{said}: {result.content[:300]}"
                assert took < TIMEOUT + PAST, f"{took:.1f} s: {said}"
                assert memory < MEMORY, f"{memory >> 20} MiB: {said}"
                slowest, most = worst.get(kind, (0.0, 0))
                worst[kind] = max(slowest, took), max(most, memory)
            if (tmp_path / ".gitignore").exists() and rng.random() < 0.5:
                (tmp_path / ".gitignore").unlink()
    lines = [f"\n{calls} calls in {time.monotonic() - start:.0f} s, seed {seed}"]
    for kind, (took, memory) in sorted(worst.items()):
        past = max(took - TIMEOUT, 0)
        lines.append(f"{kind}: at most {took:.2f} s, {past:.2f} past the deadline, {memory >> 20} MiB above")
    sys.stdout.write("\n".join(lines) + "\n")
