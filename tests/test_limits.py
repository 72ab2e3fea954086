"""Limits, each with the largest input that it allows, and one more."""

import json
import os
import re
import time
from base64 import b64encode
from importlib import import_module
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from agentfs import AfterChange, AgentFSError, Limits, Policy, Workspace
from agentfs.dialects import BUILT_IN, toolkit
from tests.kit import error_of, find, put


def code_of(act, *given):
    """Return the code of the error that a call raises, or ""."""
    try:
        act(*given)
    except AgentFSError as error:
        return error.code
    return ""


def label(ws, length):
    with ws.recording("a" * length):
        pass


def chain(ws, count):
    """Read a file through links, each to the next one."""
    top = put(Path(ws.root, f"{count}"), ["0"])
    for number in range(count):
        (top / f"{number + 1}").symlink_to(f"{number}")
    ws.read(f"{count}/{count}")


def behind(ws, wrappers):
    """Run a command behind others, with a rule for another command."""
    with Workspace(ws.root, policy=Policy(run="recorded", deny=["run(other)"])) as view:
        view.run(" ".join(["env"] * wrappers) + " true")


REFUSED = [
    ("commands behind one another", 20, "refused", behind),
    ("characters of a pattern", 1000, "invalid_pattern", lambda ws, n: ws.grep("a" * n)),
    ("nested groups", 49, "invalid_pattern", lambda ws, n: ws.grep("(" * n + "a" + ")" * n)),
    ("repeats", 20_000, "invalid_pattern", lambda ws, n: ws.grep(f"a{{{n}}}")),
    ("globs after expansion", 1000, "invalid_pattern", lambda ws, n: ws.glob(f"{{1..{n}}}")),
    ("** of a glob", 15, "invalid_pattern", lambda ws, n: ws.glob("**/a/" * n)),
    ("characters of a glob", 4096, "invalid_pattern", lambda ws, n: ws.glob("a" * n)),
    ("characters of all globs", 32_768, "invalid_pattern",
     lambda ws, n: ws.glob([*["a" * 4096] * 7, "b" * (n - 7 * 4096)])),
    ("searched paths", 5000, "invalid_argument", lambda ws, n: ws.grep("a", [f"d{i}" for i in range(n)])),
    ("bytes of a name", 255, "name_too_long", lambda ws, n: ws.read("a" * n)),
    ("bytes of a path", 4096, "name_too_long",
     lambda ws, n: ws.read("/".join(["a" * (n % 200), *["b" * 199] * (n // 200)]))),
    ("names of a path", 256, "name_too_long", lambda ws, n: ws.read("/".join("a" * n))),
    ("links of a path", 40, "link_loop", chain),
    ("characters of a checkpoint", 200, "invalid_argument", lambda ws, n: ws.checkpoint("a" * n)),
    ("characters of a label", 200, "invalid_argument", label),
    ("bytes of a command", 100_000, "invalid_argument", lambda ws, n: ws.run(f"{':':{n}}")),
    ("bytes of a changed file", 200 * 2**20, "invalid_argument", lambda ws, n: Limits(file_bytes=n)),
    ("an integer", 2**63 - 1, "invalid_argument", lambda ws, n: Limits(read_lines=n)),
]  # fmt: skip


@pytest.mark.parametrize(("limit", "most", "code", "act"), REFUSED)
def test_one_more_is_refused(tmp_path, limit, most, code, act):
    with Workspace(tmp_path, policy=Policy(run="recorded")) as ws:
        assert code_of(act, ws, most) != code, limit
        assert code_of(act, ws, most + 1) == code


def edits(ws, *texts):
    """Write texts to a file one after another, and return the last result."""
    return [ws.write("a.txt", text, overwrite=True) for text in texts][-1]


def notebook(*outputs):
    """Return a notebook with one cell."""
    cell = {"cell_type": "code", "source": "", "outputs": outputs}
    return json.dumps({"cells": [cell], "nbformat": 4, "nbformat_minor": 4, "metadata": {}})


def read(ws, path, content):
    put(Path(ws.root), {path: content})
    return ws.read(path)


def edit(ws, old, new="new"):
    """Return the result or the error of an edit."""
    try:
        return ws.edit("a.txt", old, new)
    except AgentFSError as error:
        return error


def checked(ws, line):
    """Return the result of a write whose check finds these lines."""
    check = AfterChange("*", lambda path, text: line.split("\n"))
    with Workspace(ws.root, policy=Policy(after_change=[check])) as view:
        return view.write("a.txt", "x")


def numbered(count):
    return "".join(f"this is line {number}\n" for number in range(count))


def png(width):
    file = BytesIO()
    Image.new("1", (width, 1)).save(file, "png")
    return file.getvalue()


def images(ws, count):
    """Read a notebook with several images."""
    output = {"output_type": "display_data", "data": {"image/png": b64encode(png(1)).decode()}}
    return read(ws, "a.ipynb", notebook(*[output] * count))


CUT = [
    ("images", 10, "only 10 of 11 images are shown", images),
    ("rules in a report", 2, "and 1 more rule",
     lambda ws, n: (put(Path(ws.root), {".gitignore": "\n".join("abc"[:n]), **dict.fromkeys("abc", "")}),
                    ws.grep("zz"))[1]),
    ("bytes of a rule file", 2**16, "rule files not read",
     lambda ws, n: (put(Path(ws.root), {".gitignore": "#" * n}), ws.grep("zz"))[1]),
    ("levels", 99, "1 too deep", lambda ws, n: (put(Path(ws.root), ["d/" * n + "a"]), ws.glob("**/a"))[1]),
    ("pixels of a side", 2000, "shown scaled down to 2000x1",
     lambda ws, n: read(ws, "a.png", png(n))),
    ("characters of a place", 200, "⟦+1 character⟧",
     lambda ws, n: (edits(ws, ("a" * n + "\n") * 2), edit(ws, "a" * n))[1]),
    ("characters of a text known from elsewhere", 7, "which was also shown",
     lambda ws, n: (ws.write("b.txt", "12345678"[:n]), edits(ws, "-"), edit(ws, "12345678"[:n]))[2]),
    ("lines of a similar text", 20, "[1 more line]",
     lambda ws, n: (edits(ws, numbered(n)), edit(ws, numbered(n - 1) + "-"))[1]),
    ("shown differences", 3, "[1 more difference]",
     lambda ws, n: (edits(ws, numbered(n)), edit(ws, numbered(n).replace("line", "lines")))[1]),
    ("findings of a check", 20, "[1 more line]",
     lambda ws, n: checked(ws, "\n".join("abcdefghijklmnopqrstu"[:n]))),
    ("characters of a finding", 400, "⟦+1 character⟧", lambda ws, n: checked(ws, "x" * n)),
    ("lines of files in an error", 20, "[1 more file]",
     lambda ws, n: ([ws.write(f"{i}", "x") for i in range(n)], error_of(ws.replace, "x", "y", expect=1))[1]),
    ("names of a notebook's JSON", 1_500_000, "more than 1500000 parts",
     lambda ws, n: read(ws, "a.ipynb", "[" * n)),
    ("wrong arguments", 12, "[1 more problem]",
     lambda ws, n: ws.tools().call("multi_edit", {"path": "a", "edits": [{"old_string": ""}] * n}).content),
    ("files that fail", 20, "[1 more file]",
     lambda ws, n: (put(Path(ws.root), map(str, range(n)), b"a \xe9"), error_of(ws.replace, "a", "ж"))[1]),
    ("places of an ambiguous text", 10, "[and 1 more]",
     lambda ws, n: (edits(ws, "same\n" * n), error_of(ws.edit, "a.txt", "same", "new"))[1]),
    ("changed files", 50, "[1 more]",
     lambda ws, n: ([ws.write(f"{i}", "") for i in range(n)], ws.changes())[1]),
    ("lines of a patch", 195, "[1 more line of the patch",
     lambda ws, n: (edits(ws, "x\n" * n), ws.changes())[1]),
    ("lines of a diff", 119, "[1 more line of the diff",
     lambda ws, n: edits(ws, *("b\n" * (n % 2) + f"{text}\n" * (n // 2) for text in ("x\ny", "x")))),
    ("cut lines", 5, "and 1 more", lambda ws, n: read(ws, "a", f"{'x' * 2001}\n" * n)),
    ("characters of a line", 2000, "⟦+1 character⟧", lambda ws, n: read(ws, "a", "x" * n)),
    ("characters of a line in a diff", 399, "⟦+", lambda ws, n: edits(ws, "a" * (n - 1), "a" * n)),
    ("characters of a summary", 120, "…",
     lambda ws, n: ws.tools().call("read", {"path": "p" * (n - len('"" does not exist.'))}).short_result),
    ("characters of a wrong value", 60, "...",
     lambda ws, n: ws.tools().call("read", {"path": "", "offset": "p" * n}).content.partition("\n")[0]),
    ("output of a command", 16_000, "left out", lambda ws, n: ws.run(
        f"printf '%1998s%d\n' {'0 1 0 2 0 3 0 4 0 5 0 6 0 7'}; printf '%{n - 14_000}s' 0")),
    ("equal lines", 3, "⟦+3 equal lines⟧", lambda ws, n: ws.run(f"yes | head -n {n}")),
    ("odd bytes among three", 1, "output that is not text",
     lambda ws, n: ws.run(f"printf '{chr(92)}001%.0s' $(seq {n}); printf '{'a' * (3 - n)}'")),
    ("lines of one output in a notebook", 100, "⟦+1 line of output⟧",
     lambda ws, n: read(ws, "a.ipynb", notebook({"output_type": "stream", "text": "x\n" * n}))),
    ("searched paths in an answer", 20, "and 1 more",
     lambda ws, n: ws.grep("a", [ws.write(f"{i}", "x").path for i in range(n)])),
    ("whole paths in an answer", 20, "d/\n 0\n",
     lambda ws, n: ([ws.write(f"d/{i}", "") for i in range(n)], ws.glob("d/*"))[1]),
    ("context", 20, "context is at most 20", lambda ws, n: (edits(ws, "a"), ws.grep("a", context=n))[1]),
    ("bytes before a NUL in a binary file", 8191, "1|x",
     lambda ws, n: read(ws, "a", f"x\n{'x' * (n - 2)}\0")),
    ("bytes of a file without a size", 102_399, "100 KB", lambda ws, n: (edits(ws, "x" * n), ws.ls())[1]),
    ("suggested paths", 3, "More may have this name",
     lambda ws, n: ([ws.write(f"{i}/a.py", "") for i in range(n)], error_of(ws.read, "a.py"))[1]),
]  # fmt: skip


@pytest.mark.parametrize(("limit", "most", "said", "act"), CUT)
def test_one_more_is_left_out_and_said(tmp_path, limit, most, said, act):
    for count in (most, most + 1):
        (top := tmp_path / f"{count}").mkdir()
        with Workspace(top, policy=Policy(run="recorded")) as ws:
            text = str(act(ws, count))
            assert (said in text) is (count > most), limit
            assert not re.search(r"\b0 (more|character|line|equal)", text)


def test_two_ids_with_nineteen_new_lines_each_fill_the_answer(tmp_path, ws):
    put(tmp_path, {"a.txt": "a\nb\nc\n"})
    ids = ws.read("a.txt", line_ids=True).line_ids
    put(tmp_path, {"a.txt": numbered(19)})
    error = error_of(ws.edit_lines, "a.txt", [{"line_id": each, "new_content": ""} for each in ids])
    assert len(error.details["rows"]) == 40


def test_how_much_is_shown_of_more(tmp_path):
    events = []
    put(tmp_path, {"a.txt": numbered(501), ".gitignore": "x" * 99, "x" * 99: "", "b.txt": "x\n" * 300})
    with Workspace(tmp_path, on_event=events.append) as ws:
        ws.tools().call("x" * 101, {})
        assert events[-1].tool == "x" * 100
        assert str(ws.grep("zz")).endswith(f" .gitignore:1 {'x' * 67}]")
        error = ws.tools().call("read", f'{{"path": "{"a" * 30}", {"b" * 50}}}').content
        assert f'near "{"a" * 17}\\", {"b" * 20}"' in error
        ws.write("b.txt", "y\n" * 300, overwrite="always")
        for number in range(52):
            ws.write(f"n{number}", "x\n")
        assert len(ws.changes().next["arguments"]["paths"]) == 50
        rye = ws.tools(dialect="rye")
        rye.call("read", {"file_path": "a.txt"})
        change = {"line_id": "zzzzzz", "new_content": ""}
        failed = json.loads(rye.call("edit_lines", {"file_path": "a.txt", "changes": [change]}).content)
        assert len(failed["available_ids"]) == 500


def test_sizes_of_a_listing(tmp_path, ws):
    sizes = {
        1023: "1023 B",
        1024: "1.0 KB",
        10_188: "9.9 KB",
        10_239: "10 KB",
        1023 * 2**10: "1023 KB",
        2**20 - 1: "1.0 MB",
        2**30: "1.0 GB",
    }
    for size, text in sizes.items():
        with open(tmp_path / "a", "wb") as file:
            file.truncate(size)
        assert str(ws.ls(sort="size")) == f"a  {text}"


def test_an_age_is_not_half_a_second_more(tmp_path, ws):
    days = {"d": 1, "weeks": 7, "M": 30.44, "year": 365.25}
    for unit, seconds in {
        "s": 1,
        "mins": 60,
        "h": 3600,
        **{unit: days[unit] * 86_400 for unit in days},
    }.items():
        for age in (9 * seconds + 0.5, 4 * seconds):
            os.utime(put(tmp_path, ["a"]) / "a", (time.time() - age,) * 2)
            assert find(ws, changed_within=f"9 {unit}").total == (age < 9 * seconds), unit


def test_estimated_tokens_of_a_hundred_characters():
    texts = {"a": 21, "1": 79, " ": 9, "\n": 21, ".": 63, "é": 74, "日": 90, "😀": 106}
    assert {each: toolkit.estimate_tokens(each * 100) for each in texts} == texts


def lines(top, count, text="x\n"):
    put(top, {"memories/a.txt": text * count})


def files(top, count):
    put(top, [f"d/{number}.txt" for number in range(count)])


EDITOR = "str_replace_based_edit_tool"
QUERY = {"roots": ["d"], "query": "x"}
IN_DIALECTS = [
    ("memory", "memory", 999_999, "exceeds maximum line limit", lambda top, n: lines(top, n, "\n"),
     lambda n: {"command": "view", "path": "/memories/a.txt"}),
    ("text-editor", EDITOR, 200, "…`", lambda top, n: lines(top, 1),
     lambda n: {"command": "str_replace", "path": "memories/a.txt", "old_str": "q" * n, "new_str": ""}),
    ("text-editor", EDITOR, 119, "more lines]", lambda top, n: lines(top, 1),
     lambda n: {"command": "insert", "path": "memories/a.txt", "insert_line": 1, "insert_text": "z\n" * n}),
    ("apply-patch", "apply_patch", 500_000, "too long", lines, lambda n: {"input": "\n" * n}),
    ("codescout", "read_file", 200, "overflow", lines, lambda n: {"path": "memories/a.txt"}),
    ("codescout", "read_file", 10_000, "file_id", lambda top, n: lines(top, n, "x"),
     lambda n: {"path": "memories/a.txt"}),
    ("codescout", "list_dir", 200, "overflow", files, lambda n: {"path": "d"}),
    ("codescout", "list_dir", 50, "next_offset", files, lambda n: {"path": "d", "detail_level": "full"}),
    ("codescout", "find_file", 100, "overflow", files, lambda n: {"pattern": "d/*"}),
    ("codescout", "search_pattern", 50, "overflow", lines, lambda n: {"pattern": "x"}),
    ("dominds", "read_file", 500, "truncated: true", lines, lambda n: {"path": "memories/a.txt"}),
    ("dominds", "ripgrep_snippets", 100, "context_at_most: 100", lines,
     lambda n: {"pattern": "x", "context_before": n}),
    ("dominds", "ripgrep_search", 50_000, "more than 50,000 characters", lines,
     lambda n: {"pattern": "x", "rg_args": ["-g", "a" * (n - 2)]}),
    ("rye", "read", 2000, "cut after 2000 characters", lambda top, n: lines(top, n, "x"),
     lambda n: {"file_path": "memories/a.txt"}),
    ("rye", "glob", 100, '"truncated": true', files, lambda n: {"pattern": "d/*"}),
    ("rye", "grep", 100, '"truncated": true', lines, lambda n: {"pattern": "x"}),
    ("tree-sitter-analyzer", "list_files", 10_000, "lowered", lambda top, n: files(top, 1),
     lambda n: {"roots": ["d"], "limit": n}),
    ("tree-sitter-analyzer", "search_content", 30_000, "lowered", lambda top, n: files(top, 1),
     lambda n: QUERY | {"timeout_ms": n}),
    ("tree-sitter-analyzer", "search_content", 20, "lowered", lambda top, n: files(top, 1),
     lambda n: QUERY | {"context_after": n}),
    ("tree-sitter-analyzer", "search_content", 160, "…", lambda top, n: put(top, {"d/a": "x" * n}),
     lambda n: QUERY | {"summary_only": True}),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "tool", "most", "said", "make", "arguments"), IN_DIALECTS)
def test_one_more_is_said_in_a_dialect(tmp_path, dialect, tool, most, said, make, arguments):
    for count in (most, most + 1):
        make(top := tmp_path / f"{count}", count)
        with Workspace(top) as ws:
            result = ws.tools(dialect=dialect).call(tool, arguments(count))
            text = "\n".join([result.content, *map(str, result.notes)])
            assert (said in text) is (count > most), text


PRESETS = {
    "codescout": {
        "read_lines": 200, "line_chars": 51_200, "list_entries": 200, "glob_results": 100, "grep_results": 50,
        "output_tokens": 200_000,
    },
    "rye": {"glob_results": 100, "grep_line_chars": 2000, "timeout": 30.0, "output_tokens": 200_000},
    "dominds": {"read_lines": 1_000_000, "read_bytes": 100_000, "output_tokens": 40_000},
    "tree_sitter_analyzer": {"grep_line_chars": 2000, "timeout": 30.0, "output_tokens": 10**9},
    "wave": {}, "apply_patch": {},
}  # fmt: skip


@pytest.mark.parametrize("dialect", PRESETS)
def test_the_limits_of_a_dialect(ws, dialect):
    preset = import_module(f"agentfs.dialects.{dialect}").DIALECT.view(ws).limits
    assert dict(vars(preset).items() - vars(Limits()).items()) == PRESETS[dialect]


DEFAULTS = {
    ("codescout", "limit", 50), ("dominds", "max_lines", 500), ("dominds", "show_linenos", True),
    ("rye", "offset", 1), ("tree-sitter-analyzer", "absolute", True),
    ("tree-sitter-analyzer", "file_limit", 2000), ("tree-sitter-analyzer", "limit", 2000),
    ("tree-sitter-analyzer", "regex", True),
    ("tree-sitter-analyzer", "timeout_ms", 4000), ("wave", "-n", True), ("wave", "offset", 1),
}  # fmt: skip


def test_the_other_numbers_and_flags_of_dialects_are_zero_or_false_if_left_out(ws):
    found = {
        (dialect, each.name, each.default)
        for dialect in BUILT_IN
        for tool in ws.tools(dialect=dialect)
        for each in tool.parameters
        if isinstance(each.default, int) and each.default
    }
    assert found == DEFAULTS
