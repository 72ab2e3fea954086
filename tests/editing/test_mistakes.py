"""Mistakes of models: names of new files, copied line numbers, a target that is a directory."""

import pytest

from agentfs import Policy, Workspace
from tests.kit import put, refused

MEANT = {
    "ruleset.md\n": "ruleset.md", "~/notes.md": "notes.md", "src\\new.py": "src/new.py", "file:///x": "x",
    "file://ROOT/d/x": "d/x", '["notes.md"]': "notes.md", '"q.md"': "q.md", "'d/q.md'\n": "d/q.md",
}  # fmt: skip


@pytest.mark.parametrize(("path", "meant"), MEANT.items())
def test_regression_a_name_that_looks_like_a_mistake_is_refused_with_the_path_meant(tmp_path, path, meant):
    (tmp_path / "old.md").write_text("old\n")
    path = path.replace("ROOT", str(tmp_path))
    with Workspace(tmp_path) as ws:
        tools = ws.tools("all")
        for name, arguments, parameter in (
            ("write", {"path": path, "content": "x\n"}, "path"),
            ("append", {"path": path, "content": "x\n"}, "path"),
            ("edit", {"path": path, "old_string": "", "new_string": "x\n"}, "path"),
            ("move", {"path": "old.md", "to": path}, "to"),
        ):
            answer = tools.call(name, arguments)
            assert answer.error["code"] == "invalid_path"
            assert [each.name for each in tmp_path.iterdir()] == ["old.md"]
            (suggested,) = answer.data["details"]["suggested_calls"]
            assert suggested["arguments"][parameter] == meant
        assert tools.call(suggested["name"], suggested["arguments"]).success
        assert (tmp_path / meant).exists()


@pytest.mark.parametrize(("path", "suggested"), [("src\\main.py", "read"), ("file:///src", "ls")])
def test_regression_an_existing_path_that_was_meant_is_to_be_looked_at(ws, tmp_path, path, suggested):
    """The call with that path was advised, which is refused for a file that was not read."""
    put(tmp_path, {"src/main.py": "x\n"})
    tools = ws.tools("all")
    (call,) = tools.call("write", {"path": path, "content": "y\n"}).data["details"]["suggested_calls"]
    assert call["name"] == suggested
    assert tools.call(**call).success


def test_a_program_and_an_existing_file_may_have_any_name(ws):
    ws.write("~/notes.md", "x\n")
    for path in ("~/notes.md", "caf\\xe9.txt", "[id].tsx"):
        assert ws.tools().call("write", {"path": path, "content": "y\n"}).success


@pytest.mark.parametrize(("old", "new"), [
    ("x = 2", "2|x = 3"), ("x = 1\nx = 2", " 9|x = 1\n10|x = 3"), ("x = 2 ", "2|x = 3"),
    ("x = 2\n", "2|x = 3\n"),
])  # fmt: skip
def test_regression_our_line_numbers_in_a_new_text_are_refused(ws, tmp_path, old, new):
    (tmp_path / "m.py").write_text("x = 1\nx = 2\n")
    for act in (
        lambda: ws.edit("m.py", old, new),
        lambda: ws.edit("new.py", "", "1|a\n2|b\n"),
        lambda: ws.edit("m.py", "x = ", "1|a\n2|b", replace_all=True),
    ):
        error = refused(act, "invalid_argument")
        assert "line numbers" in error.message
        assert "Leave them out" in error.hint
    assert (tmp_path / "m.py").read_text() == "x = 1\nx = 2\n"
    assert not (tmp_path / "new.py").exists()


def test_regression_our_line_numbers_in_a_content_are_refused(ws, tmp_path):
    (tmp_path / "m.py").write_text("x = 1\nx = 2\n")
    tools = ws.tools()
    tools.call("read", {"path": "m.py"})
    answer = tools.call("write", {"path": "m.py", "content": "1|x = 1\n2|x = 3\n"})
    assert answer.error is not None
    assert "line numbers" in answer.content
    for content in ("3|x = 3\n", "1|a\n2|b\n"):
        assert "line numbers" in ws.tools("all").call("append", {"path": "m.py", "content": content}).content
    assert (tmp_path / "m.py").read_text() == "x = 1\nx = 2\n"
    ws.write("m.py", "1|x = 1\n2|x = 3\n")  # a program's content is exact
    assert tools.call("write", {"path": "m.py", "content": "1|x = 1\n2|x = 4\n"}).success  # it has them
    assert tools.call("edit", {"path": "m.py", "old_string": "2|x", "new_string": "2|y"}).success
    assert ws.tools("all").call("append", {"path": "m.py", "content": "3|x = 5\n"}).success


def test_regression_a_programs_content_is_exact(tmp_path):
    """A `write` of `read().content` turned a literal ⟦U+202E⟧ into the character of the same file."""
    text = "a \u202e b\nthe text ⟦U+202E⟧\n"
    (tmp_path / "f").write_text(text)
    with Workspace(tmp_path, policy=Policy(overwrite="always")) as ws:
        ws.write("f", ws.read("f").content)
        assert (tmp_path / "f").read_text() == text
        assert ws.tools().call("write", {"path": "f", "content": "x ⟦U+202E⟧\n"}).success
        assert (tmp_path / "f").read_text() == "x \u202e\n"


def test_regression_a_move_onto_a_directory_that_has_the_name_names_that_file(ws, tmp_path):
    """The advice was to delete the directory."""
    put(tmp_path, {"m.py": "", "d/m.py": ""})
    error = refused(lambda: ws.move("m.py", "d"), "already_exists")
    assert '"d/m.py" already exists' in error.message
    assert error.details["path"] == "d/m.py"


def test_regression_a_replacement_names_every_file_that_cannot_be_changed(ws, tmp_path):
    put(tmp_path, {"a": "old\n", "b": "old é\n".encode("latin-1"), "c": "old\n"})
    (tmp_path / "a").chmod(0o444)
    answer = str(ws.tools("all").call("replace", {"old_string": "old", "new_string": "€"}).content)
    for said in ('"a" is write-protected', "unknown 8-bit encoding", '"b"', 'glob=["!/a", "!/b"]'):
        assert said in answer


@pytest.mark.parametrize("path", ["new/", "sub/new/"])
def test_regression_a_slash_behind_the_name_of_a_file_is_no_directory(tmp_path, path):
    """`write("new/")` said that "new" is a directory, and told to list it."""
    with Workspace(tmp_path) as ws:
        error = refused(lambda: ws.write(path, "y\n"), "not_a_file")
    assert f'"{path}" names a directory, and there is none' in str(error)
    assert f'path="{path[:-1]}"' in error.hint
    assert [*tmp_path.iterdir()] == []
