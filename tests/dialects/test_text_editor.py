"""`text-editor`: each statement that `docs/reference/dialects/text-editor.md` lists."""

import pytest

from agentfs import Limits, Workspace
from tests.dialects.answers import parameters
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


def test_view_a_file(do, ws):
    expected = "".join(f"\n{n:>6}\t{line}" for n, line in enumerate(PRIMES.splitlines(), 1))
    for path in ("primes.py", f"{ws.root}/primes.py"):
        result = do("view", path=path)
        assert result.content == "Here's the result of running `cat -n` on primes.py:" + expected
    assert result.file_path == "primes.py"
    assert result.data["total_lines"] == 5
    ws.write("empty", "")
    assert do("view", path="empty").content.endswith("\n[empty file]")


def test_file_content_cannot_forge_a_line(do, tmp_path):
    (tmp_path / "x").write_bytes(b"1|a\n  7|b\n[more: nothing]\n\x1b[2J\n")
    assert do("view", path="x").content.splitlines()[1:] == [
        "     1\t1|a", "     2\t  7|b", "     3\t[more: nothing]", "     4\t⟦U+001B⟧[2J",
    ]  # fmt: skip
    (tmp_path / "y").write_bytes(b"\0\1")
    assert "binary" in do("view", path="y").content


def test_view_a_directory(do, tmp_path):
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "a.log").write_text("")
    lines = do("view", path=".").content.splitlines()
    assert lines[0] == "Here're the files and directories up to 2 levels deep in ., excluding hidden items:"
    assert lines[1:-1] == ["src/", "src/deep/", "src/a.py", "primes.py"]
    assert "2 hidden" in lines[-1]
    assert "1 ignored" in lines[-1]
    assert "include_ignored" not in lines[-1]


def test_view_a_range(do):
    shown = do("view", path="primes.py", view_range=[2, 3])
    assert [line[:7] for line in shown.content.splitlines()[1:3]] == ["     2\t", "     3\t"]
    following = {"command": "view", "path": "primes.py", "view_range": [4, 5]}
    assert shown.next == {"name": NAME, "arguments": following}
    assert "view_range=[4, 5])]" in shown.content
    assert do("view", path="primes.py", view_range=[4, -1]).content.splitlines()[1:3] == [
        "     4\t            return False", "     5\t    return True",
    ]  # fmt: skip
    assert do("view", path="primes.py", view_range=[5, 99]).success, "a range may end behind the end"
    refused = "The `view_range` parameter is not allowed when `path` points to a directory."
    for view_range in ([1, 2], [900, -1]):
        assert do("view", path="src", view_range=view_range).content == refused


@pytest.mark.parametrize(("view_range", "told"), [
    ([1], "It should be a list of two integers."),
    ([0, 2], "Its first element `0` should be a line number from 1."),
    ([3, 2], "Its second element `2` should not be smaller than its first."),
    ([3, -2], "Its second element `-2` should not be smaller than its first."),
    ([6, -1], "Its first element `6` should be within the range of lines of the file: [1, 5]."),
])  # fmt: skip
def test_an_invalid_range(do, view_range, told):
    result = do("view", path="primes.py", view_range=view_range)
    assert result.content == f"Invalid `view_range`: {view_range}. {told}"
    assert result.error["code"] == "invalid_argument"


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


def test_str_replace(do, ws, tmp_path):
    result = do("str_replace", path="primes.py", old_str="limit + 1)\n", new_str="limit + 1):\n")
    assert (tmp_path / "primes.py").read_text() == PRIMES.replace("+ 1)", "+ 1):")
    lines = result.content.splitlines()
    assert lines[0] == (
        "The file primes.py has been edited. Here's the result of running `cat -n` on a snippet of primes.py:"
    )
    assert lines[2] == "     2\t    for num in range(2, limit + 1):"
    assert lines[-1].startswith("Review the changes and make sure they are as expected")
    ws.write("long", "".join(f"{n}\n" for n in range(400)))
    far = do("str_replace", path="long", old_str="\n350\n", new_str="\nx\ny\n").content
    assert "   350\t349\n   351\tx\n   352\ty\n   353\t351" in far
    whole = do("str_replace", path="long", old_str="".join(f"{n}\n" for n in range(300)), new_str="z\n" * 300)
    assert "more lines]" in whole.content
    assert len(whole.content.splitlines()) < 130


def test_old_str_that_is_almost_right(do, tmp_path):
    almost = "for num in range(2, limit + 2)\n        if n % num == 0:\n"
    result = do("str_replace", path="primes.py", old_str=almost, new_str="x\n")
    assert result.error["code"] == "no_match"
    assert "2|    for num in range(2, limit + 1)" in result.content
    assert (tmp_path / "primes.py").read_text() == PRIMES


def test_old_str_at_several_places(do, tmp_path):
    result = do("str_replace", path="primes.py", old_str="return", new_str="yield")
    lines = result.content.splitlines()
    assert lines[0] == (
        "No replacement was performed. Multiple occurrences of old_str `return` in lines: 4, 5. "
        "Please ensure it is unique"
    )
    assert "return False" in lines[1]
    assert "replace_all" not in result.content
    assert result.error == {"code": "ambiguous", "message": lines[0]}
    assert (tmp_path / "primes.py").read_text() == PRIMES


def test_old_str_that_is_absent(do, tmp_path):
    result = do("str_replace", path="primes.py", old_str="retrun True maybe", new_str="x")
    assert result.content.startswith(
        "No replacement was performed, old_str `retrun True maybe` did not appear verbatim in primes.py.\n"
    )
    assert "old_string" not in result.content
    assert "read(" not in result.content
    assert len(do("str_replace", path="primes.py", old_str="x" * 5000, new_str="y").content) < 1500
    assert do("undo_edit", path="primes.py").error["code"] == "invalid_argument", "there is none"
    assert do("str_replace", path="primes.py", old_str="    return True\n").success, "new_str is left out"
    assert (tmp_path / "primes.py").read_text().endswith("return False\n")


def test_create(do, tmp_path):
    assert do("create", path="new/a.py", file_text="x\n").content == "File created successfully at: new/a.py"
    assert (tmp_path / "new/a.py").read_text() == "x\n"
    assert do("create", path="new/empty", file_text="").success


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


def test_insert_with_new_str_of_older_versions(do, tmp_path):
    text = '"""Module for working with prime numbers."""'
    result = do("insert", path="src/a.py", insert_line=0, new_str=text)
    assert result.content.splitlines()[1] == f"     1\t{text}"
    assert (tmp_path / "src/a.py").read_text() == f"{text}\na\n"


@pytest.mark.parametrize("line", [-1, 6])
def test_insert_out_of_range(do, tmp_path, line):
    result = do("insert", path="primes.py", insert_line=line, insert_text="x")
    assert result.content == (
        f"Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, 5]"
    )
    assert (tmp_path / "primes.py").read_text() == PRIMES


@pytest.mark.parametrize(("command", "given", "missing"), [
    ("create", {}, "file_text"), ("str_replace", {"new_str": "x"}, "old_str"),
    ("insert", {"insert_text": "x"}, "insert_line"), ("insert", {"insert_line": 0}, "insert_text"),
])  # fmt: skip
def test_a_missing_parameter(do, command, given, missing):
    result = do(command, path="primes.py", **given)
    assert result.content == f"Parameter `{missing}` is required for command: {command}"


def test_crlf_is_kept(do, tmp_path):
    (tmp_path / "dos.txt").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    result = do("str_replace", path="dos.txt", old_str="a\nb", new_str="a\nc\nb")
    assert (tmp_path / "dos.txt").read_bytes() == b"\xef\xbb\xbfa\r\nc\r\nb\r\n"
    assert "     2\tc\n" in result.content


@pytest.mark.parametrize("codec", ["utf-16", "latin-1", "utf-8-sig"])
def test_encoding_and_mode_are_kept(do, tmp_path, codec):
    file = tmp_path / "file"
    file.write_bytes("caf\u00e9\nb\n".encode(codec))
    file.chmod(0o754)
    assert do("str_replace", path="file", old_str="b", new_str="c").success
    assert do("insert", path="file", insert_line=0, insert_text="top").success
    assert file.read_bytes() == "top\ncaf\u00e9\nc\n".encode(codec)
    assert file.stat().st_mode & 0o777 == 0o754


def test_an_old_text_that_was_found_at_another_indentation_is_reported(do):
    result = do("str_replace", path="primes.py", old_str="if n % num == 0:\n    return False", new_str="pass")
    assert "[old_str was found by indentation]" in result.content.split("\n")


@pytest.mark.parametrize(("command", "arguments"), [
    ("view", {}),
    ("str_replace", {"old_str": "a", "new_str": "b"}),
    ("insert", {"insert_line": 0, "insert_text": "b"}),
])  # fmt: skip
def test_each_command_names_the_path_that_was_meant(do, command, arguments):
    refused = do(command, path="prime.py", **arguments)
    assert refused.content.startswith("The path prime.py does not exist. Please provide a valid path.\n")
    assert 'Did you mean "primes.py"?' in refused.content
