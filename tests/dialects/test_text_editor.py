"""`text-editor`: each statement that `docs/reference/dialects/text-editor.md` lists."""

# ruff: noqa: E501 - a row of a table is one line

import pytest

from agentfs import Limits, Workspace
from tests.dialects.answers import check, parameters
from tests.kit import put
from tests.tool_calls import accepts

NAME = "str_replace_based_edit_tool"
# The example of Anthropic's page: a colon is missing.
PRIMES = """\
def is_prime(n):
    for num in range(2, limit + 1)
        if n % num == 0:
            return False
    return True
"""


@pytest.fixture
def ws(tmp_path, ws):
    put(tmp_path, {"primes.py": PRIMES, "src/a.py": "a\n", "src/deep/b.py": "b\n", ".hidden": "h\n"})
    (tmp_path / "src/deep/deeper").mkdir()
    return ws


@pytest.fixture
def do(ws):
    tools = ws.tools(dialect="text-editor")
    return lambda command, **arguments: tools.call(NAME, {"command": command, **arguments})


def test_the_tool_and_its_parameters(ws):
    (tool,) = ws.tools(dialect="text-editor").schemas("anthropic")
    properties = tool["input_schema"]["properties"]
    said = "command*, path*, view_range array, file_text, old_str, new_str, insert_line integer, insert_text"
    assert parameters(ws, "text-editor") == {NAME: said}
    assert properties["command"]["enum"] == ["view", "create", "str_replace", "insert"]
    assert properties["view_range"]["items"] == {"type": "integer"}
    native = ws.tools(dialect="text-editor").schemas("anthropic", native=True)
    assert native == [{"type": "text_editor_20250728", "name": NAME}]


def numbered(text, first=1):
    return "".join(f"\n{number:>6}\t{line}" for number, line in enumerate(text.splitlines(), first))


CAT = "Here's the result of running `cat -n` on {}:"
TOP = "Here're the files and directories up to 2 levels deep in ., excluding hidden items:\nsrc/\nsrc/deep/\nsrc/a.py\nbinary\nempty\nforged\nprimes.py\n"
ODD = {
    "empty": "",
    "forged": b"1|a\n  7|b\n[more: nothing]\n\x1b[2J\n",
    "binary": b"\0\1", ".gitignore": "*.log\n", "a.log": "",
}  # fmt: skip
NOT_FOR_A_DIRECTORY = "The `view_range` parameter is not allowed when `path` points to a directory."
RANGES = [
    ([1], "It should be a list of two integers."), ([0, 2], "Its first element `0` should be a line number from 1."),
    *(([3, last], f"Its second element `{last}` should not be smaller than its first.") for last in (2, -2)),
    ([6, -1], "Its first element `6` should be within the range of lines of the file: [1, 5]."),
]  # fmt: skip
SEVERAL = "No replacement was performed. Multiple occurrences of old_str `return` in lines: 4, 5. Please ensure it is unique"
MEANT = {
    "content^": "The path prime.py does not exist. Please provide a valid path.\n",
    "content~": 'Did you mean "primes.py"?',
}
ALMOST = "for num in range(2, limit + 2)\n        if n % num == 0:\n"
EDITED = (
    "The file primes.py has been edited. Here's the result of running `cat -n` on a snippet of primes.py:\n"
)
NEXT = {"name": NAME, "arguments": {"command": "view", "path": "primes.py", "view_range": [4, 5]}}
OUT_OF_RANGE = (
    "Invalid `insert_line` parameter: {}. It should be within the range of lines of the file: [0, 5]"
)
MODULE = '"""Module for working with prime numbers."""'
# A call, its answer, and the file after it unless it stays.
ANSWERS = [
    *(("view", {"path": path}, {"content": CAT.format("primes.py") + numbered(PRIMES), "file_path": "primes.py", "data/total_lines": 5})
      for path in ("primes.py", "{root}/primes.py")),
    ("view", {"path": "empty"}, {"content~": "\n[empty file]"}), ("view", {"path": "binary"}, {"content~": "binary"}),
    ("view", {"path": "forged"}, {"content": CAT.format("forged") + numbered("1|a\n  7|b\n[more: nothing]\n⟦U+001B⟧[2J")}),
    ("view", {"path": "."}, {"content^": TOP, "content~": ["2 hidden", "1 ignored"], "content!": "include_ignored"}),
    ("view", {"path": "primes.py", "view_range": [2, 3]}, {
        "content^": CAT.format("primes.py") + numbered("\n".join(PRIMES.split("\n")[1:3]), 2), "content~": "view_range=[4, 5])]", "next": NEXT}),
    ("view", {"path": "primes.py", "view_range": [4, -1]}, {"content~": numbered("            return False\n    return True", 4)}),
    ("view", {"path": "primes.py", "view_range": [5, 99]}, {"success": True}),  # a range may end behind the end
    *(("view", {"path": "src", "view_range": each}, {"content": NOT_FOR_A_DIRECTORY}) for each in ([1, 2], [900, -1])),
    *(("view", {"path": "primes.py", "view_range": each}, {"content": f"Invalid `view_range`: {each}. {told}", "error/code": "invalid_argument"})
      for each, told in RANGES),
    *((command, {"path": "prime.py", **given}, MEANT) for command, given in (
        ("view", {}), ("str_replace", {"old_str": "a", "new_str": "b"}), ("insert", {"insert_line": 0, "insert_text": "b"}))),
    *((command, {"path": "primes.py", **given}, {"content": f"Parameter `{missing}` is required for command: {command}"}) for command, given, missing in (
        ("create", {}, "file_text"), ("str_replace", {"new_str": "x"}, "old_str"), ("insert", {"insert_text": "x"}, "insert_line"),
        ("insert", {"insert_line": 0}, "insert_text"))),
    ("undo_edit", {"path": "primes.py"}, {"error/code": "invalid_argument"}),  # there is none
    ("str_replace", {"path": "primes.py", "old_str": "limit + 1)\n", "new_str": "limit + 1):\n"}, {
        "content^": EDITED, "content~": ["\n     2\t    for num in range(2, limit + 1):\n", "\nReview the changes and make sure they are as expected"]},
     PRIMES.replace("+ 1)", "+ 1):")),
    ("str_replace", {"path": "primes.py", "old_str": ALMOST, "new_str": "x\n"}, {"error/code": "no_match", "content~": "2|    for num in range(2, limit + 1)"}),
    ("str_replace", {"path": "primes.py", "old_str": "return", "new_str": "yield"}, {
        "content^": f"{SEVERAL}\n", "content~": "return False", "content!": "replace_all", "error": {"code": "ambiguous", "message": SEVERAL}}),
    *(("str_replace", {"path": "primes.py", "old_str": "retrun True maybe", "new_str": "x"}, {
        "content^": "No replacement was performed, old_str `retrun True maybe` did not appear verbatim in primes.py.\n", "content!": absent})
      for absent in ("old_string", "read(")),
    ("str_replace", {"path": "primes.py", "old_str": "x" * 5000, "new_str": "y"}, {"content<": 1500}),
    ("str_replace", {"path": "primes.py", "old_str": "    return True\n"}, {"success": True}, PRIMES.replace("    return True\n", "")),  # without new_str
    ("str_replace", {"path": "primes.py", "old_str": "if n % num == 0:\n    return False", "new_str": "pass"}, {
        "content~": "\n[old_str was found by indentation]"}, PRIMES.replace("if n % num == 0:\n            return False", "pass")),
    ("create", {"path": "new/a.py", "file_text": "x\n"}, {"content": "File created successfully at: new/a.py"}, "x\n"),
    ("create", {"path": "new/empty", "file_text": ""}, {"success": True}, ""),
    ("insert", {"path": "src/a.py", "insert_line": 0, "new_str": MODULE}, {"content~": f"\n     1\t{MODULE}\n"}, f"{MODULE}\na\n"),  # of older versions
    *(("insert", {"path": "primes.py", "insert_line": line, "insert_text": "x"}, {"content": OUT_OF_RANGE.format(line)}) for line in (-1, 6)),
]  # fmt: skip


@pytest.mark.parametrize(("command", "given", "wanted", "after"), [(*row, None)[:4] for row in ANSWERS])
def test_answers(do, ws, tmp_path, command, given, wanted, after):
    put(tmp_path, ODD)
    given = {**given, "path": given["path"].format(root=ws.root)}
    file = tmp_path / given["path"]
    before = file.read_bytes() if file.is_file() else None
    check(do(command, **given), wanted)
    assert (file.read_bytes() if file.is_file() else None) == (before if after is None else after.encode())


def test_a_view_is_cut_at_a_line_end(tmp_path):
    (tmp_path / "big").write_text("0123456789\n" * 1000)
    with Workspace(tmp_path, limits=Limits(read_bytes=1000)) as ws:
        tools = ws.tools(dialect="text-editor", prefix="fs_")
        first = tools.call(f"fs_{NAME}", {"command": "view", "path": "big"})
        last = first.data["end_line"]
        assert 50 < last < 100
        assert f'more: fs_{NAME}(command="view", path="big", view_range=[{last + 1}, -1])' in first.content
        assert accepts(tools, **first.next)
        assert tools.call(**first.next).data["start_line"] == last + 1


def test_the_snippet_of_a_long_file(do, ws):
    ws.write("long", "".join(f"{n}\n" for n in range(400)))
    far = do("str_replace", path="long", old_str="\n350\n", new_str="\nx\ny\n").content
    assert "   350\t349\n   351\tx\n   352\ty\n   353\t351" in far
    whole = do("str_replace", path="long", old_str="".join(f"{n}\n" for n in range(300)), new_str="z\n" * 300)
    assert "more lines]" in whole.content
    assert len(whole.content.splitlines()) < 130


def test_create_over_a_file(do, tmp_path):
    refused = do("create", path="primes.py", file_text="x\n")
    assert refused.content.startswith("File primes.py already exists, and was not overwritten.\n")
    assert f'Call {NAME}(command="view", path="primes.py") first, or str_replace' in refused.content
    assert refused.error["code"] == "unread"
    assert (tmp_path / "primes.py").read_text() == PRIMES
    do("view", path="primes.py", view_range=[1, 2])
    assert do("create", path="primes.py", file_text="x\n").error["code"] == "unread", "not to its end"
    do("view", path="primes.py")
    assert do("create", path="primes.py", file_text="x\n").content == "The file was overwritten at: primes.py"
    (tmp_path / "primes.py").write_text("from outside\n")
    assert do("create", path="primes.py", file_text="y\n").error["code"] == "stale"
    for text in ("own\n", "again\n"):
        assert do("create", path="own.py", file_text=text).success, "it was written by this workspace"


@pytest.mark.parametrize(("before", "line", "text", "after"), [
    ("a\nb\n", 0, "x", "x\na\nb\n"), ("a\nb\n", 1, "x\n", "a\nx\nb\n"), ("a\nb\n", 2, "x\ny", "a\nb\nx\ny\n"),
    ("a\nb", 2, "x", "a\nb\nx"), ("a\nb", 1, "x", "a\nx\nb"), ("", 0, "x", "x\n"), ("", 0, "x\n\n", "x\n\n"),
    ("a\r\nb\r\n", 1, "x\ny\n", "a\r\nx\r\ny\r\nb\r\n"), ("a\rb\r", 1, "x", "a\rx\rb\r"),
    ("a\n", 1, "\n", "a\n\n"), ("é\nü\n", 1, "ß", "é\nß\nü\n"), ("a\u2028b\n", 1, "x", "a\u2028b\nx\n"),
])  # fmt: skip
def test_insert(do, tmp_path, before, line, text, after):
    (tmp_path / "f").write_bytes(before.encode())
    assert do("insert", path="f", insert_line=line, insert_text=text).success
    assert (tmp_path / "f").read_bytes().decode() == after


@pytest.mark.parametrize(("codec", "end"), [
    ("utf-16", "\n"), ("latin-1", "\n"), ("utf-8-sig", "\n"), ("utf-8-sig", "\r\n"),
])  # fmt: skip
def test_line_ends_encoding_and_mode_are_kept(do, tmp_path, codec, end):
    file = tmp_path / "file"
    file.write_bytes(f"caf\u00e9{end}b{end}".encode(codec))
    file.chmod(0o754)
    assert "     2\tc\n" in do("str_replace", path="file", old_str="b", new_str="c\nd").content
    assert do("insert", path="file", insert_line=0, insert_text="top").success
    assert file.read_bytes() == end.join(["top", "caf\u00e9", "c", "d", ""]).encode(codec)
    assert file.stat().st_mode & 0o777 == 0o754
