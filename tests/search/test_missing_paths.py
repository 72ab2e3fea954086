"""Suggestions for a missing path are the same in every method."""

import pytest

from agentfs import Policy, Workspace
from agentfs.errors import AgentFSError, NotFoundError
from agentfs.results import Edit, LineChange
from tests import kit

CALLS = {
    "read": lambda ws, path: ws.read(path),
    "edit": lambda ws, path: ws.edit(path, "x", "y"),
    "multi_edit": lambda ws, path: ws.multi_edit(path, [Edit("x", "y")]),
    "edit_lines": lambda ws, path: ws.edit_lines(path, [LineChange(new_content="y", line_id="abcdef")]),
    "splice": lambda ws, path: kit.splice(ws, path, [(0, 1, "y")]),
    "delete": lambda ws, path: ws.delete(path),
    "move": lambda ws, path: ws.move(path, "new.py"),
    "ls": lambda ws, path: ws.ls(path),
    "glob": lambda ws, path: ws.glob("*", path),
    "find": kit.find,
    "grep": lambda ws, path: ws.grep("x", path),
}


FILES_ELSEWHERE = {"app.py", "other/APP.py", "lib/util.py", "guide.md"}


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.setattr("agentfs.search.missing_paths._SECONDS", 10)  # on a busy machine a walk takes longer
    for name in ("src/app.py", "src/lib/util.py", "docs/Guide.md", ".hidden/secret.py", "old/util.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    return tmp_path


@pytest.mark.parametrize("method", CALLS)
@pytest.mark.parametrize(("path", "meant"), [
    ("src\\app.py", ["src/app.py"]),
    ("src/ap.py", ["src/app.py"]),
    ("srcs/app.py", ["src/app.py"]),
    ("srcs/lib/util.py", ["src/lib/util.py", "old/util.py"]),
    ("app.py", ["src/app.py"]),
    ("other/APP.py", ["src/app.py"]),
    ("lib/util.py", ["src/lib/util.py", "old/util.py"]),
    ("guide.md", ["docs/Guide.md"]),
    ("lib", ["src/lib"]),
    ("srcc", ["src"]),
    ("src/app.py:12", ["src/app.py"]),
])  # fmt: skip
def test_suggestions_for_a_missing_path_are_the_same_in_every_method(tree, method, path, meant):
    with Workspace(tree) as ws, pytest.raises(AgentFSError) as caught:
        CALLS[method](ws, path)
    if (method, path) == ("read", "src/app.py:12"):  # the range of a file that has fewer lines
        assert (caught.value.code, caught.value.details["path"]) == ("past_end", "src/app.py")
        return
    assert caught.value.code == "not_found"
    if method in {"ls", "glob", "find"} and path in FILES_ELSEWHERE:
        assert "similar" not in caught.value.details, "a file elsewhere is no directory"
        return
    if method in {"ls", "glob", "find"} and path == "srcs/lib/util.py":
        meant = meant[:1]  # a file elsewhere is no directory
    assert caught.value.details["similar"] == meant
    assert f'Did you mean "{meant[0]}"' in caught.value.hint
    assert caught.value.hint.count("Did you mean") == 1


@pytest.mark.parametrize("path", ["nothing.rs", "secret.py", ".hiden/secret.py"])
def test_hidden_and_dissimilar_paths_are_not_suggested(tree, path):
    with Workspace(tree) as ws, pytest.raises(AgentFSError) as caught:
        ws.read(path)
    assert "similar" not in caught.value.details or path.startswith(".hid")


def test_a_view_suggests_only_what_it_may_use(tree):
    with Workspace(tree) as ws:
        view = ws.view(only=["docs"])
        for path in ("docs/app.py", "docs/util.py"):
            with pytest.raises(AgentFSError) as caught:
                view.read(path)
            assert "src" not in str(caught.value)


def test_a_denied_path_is_neither_suggested_nor_listed(tree):
    with Workspace(tree, policy=Policy(deny=["read(src/**)"])) as ws:
        listed = [entry.path for entry in kit.find(ws, glob="app.py").files]
        with pytest.raises(AgentFSError) as caught:
            ws.read("docs/app.py")
    assert caught.value.details.get("similar", []) == listed


@pytest.mark.parametrize("method", ["ls", "glob"])
def test_regression_a_file_that_is_meant_for_a_directory_comes_with_the_call_that_reads_it(tree, method):
    """The same call with the suggested path was refused, because it is a file."""
    with Workspace(tree) as ws:
        arguments = {"path": "src/ap.py"} | ({"pattern": "*"} if method == "glob" else {})
        for tools in (ws.tools("all"), ws.tools([method])):
            said = tools.call(method, arguments).content
            assert 'Did you mean "src/app.py"? It is a file' in said
            assert ('call read(path="src/app.py")' in said) is ("read" in tools.names)
            assert "Call ls" not in said


@pytest.mark.parametrize("method", ["read", "edit", "splice", "delete", "grep"])
def test_regression_a_directory_is_not_suggested_for_the_name_of_a_file(tree, method):
    """A patch of `lib.py` was told to take the directory `lib`, although another directory has that file."""
    (tree / "lib").mkdir()
    (tree / "src/lib.py").write_text("x = 1\n")
    with Workspace(tree) as ws, pytest.raises(AgentFSError) as caught:
        CALLS[method](ws, "lib.py")
    assert caught.value.details["similar"] == ["src/lib.py"]


@pytest.mark.parametrize("method", ["read", "edit", "grep"])
def test_regression_a_name_that_many_directories_have_comes_with_the_call_that_finds_all(tree, method):
    """The first three were named as if there were no more, and none of them was meant."""
    for number in range(5):
        (tree / f"p{number}").mkdir()
        (tree / f"p{number}/models.py").write_text("x = 1\n")
    with Workspace(tree) as ws:
        arguments = {"path": "models.py"}
        arguments |= {"edit": {"old_string": "x", "new_string": "y"}, "grep": {"pattern": "x"}}.get(
            method, {}
        )
        said = ws.tools().call(method, arguments).content
        assert 'or "p2/models.py"? More may have this name: call glob(pattern="**/models.py").' in said
        assert len(ws.glob("**/models.py").files) == 5
        assert "More may have this name." in ws.tools([method]).call(method, arguments).content
        arguments["path"] = "util.py"  # two files
        assert "More may" not in ws.tools().call(method, arguments).content


@pytest.mark.parametrize("method", CALLS)
@pytest.mark.parametrize("before", ["file://{root}/", "file://", "{name}/", "project/", "/home/me/project/"])
def test_regression_what_stands_before_a_path_is_left_out(tree, method, before):
    """A URL was answered by its path from the root of the system, or for `edit` by other files."""
    path = "src/lib" if method in {"ls", "glob", "find"} else "src/lib/util.py"
    with Workspace(tree) as ws, pytest.raises(AgentFSError) as caught:
        CALLS[method](ws, before.format(root=tree, name=tree.name) + path)
    assert caught.value.details["similar"][0] == path
    assert f'Did you mean "{path}"?' in caught.value.hint


def test_a_path_in_other_letters_is_found_at_any_depth(tmp_path):
    """More than four names were not corrected, and a file beside a directory ended the search."""
    (tmp_path / "one/two/three/four/five").mkdir(parents=True)
    (tmp_path / "one/two/three/four/five/six.txt").touch()
    (tmp_path / "one/two/three.txt").touch()
    with Workspace(tmp_path) as ws, pytest.raises(NotFoundError) as caught:
        ws.read("ONE/TWO/THREE/FOUR/FIVE/SIX.TXT")
    assert caught.value.details["similar"] == ["one/two/three/four/five/six.txt"]


@pytest.mark.parametrize(("path", "meant"), [
    ("src/config.yaml", ["src/sub/config.yaml", "src/confit.yaml"]),
    ("src/app", ["src/app.py"]),
    ("/c/Users/me/code/project/src/app.py", ["src/app.py"]),
    ("C:\\Users\\me\\project\\src\\app.py", ["src/app.py"]),
    ("/home/me/project/src/app.py", ["src/app.py"]),
])  # fmt: skip
def test_regression_the_same_name_elsewhere_comes_before_a_similar_one(tree, path, meant):
    """Only a similar name was named, and nothing for a path of Windows or without its suffix."""
    (tree / "src/sub").mkdir()
    (tree / "src/sub/config.yaml").touch()
    (tree / "src/confit.yaml").touch()
    with Workspace(tree) as ws, pytest.raises(AgentFSError) as caught:
        ws.read(path)
    assert caught.value.details["similar"] == meant
    assert f'Did you mean "{meant[0]}"' in str(caught.value)


def test_regression_a_space_that_looks_like_another_is_named(tree):
    """The suggested name looked equal to the wrong one."""
    (tree / "src/two\u202fwords.txt").touch()
    with Workspace(tree) as ws, pytest.raises(AgentFSError) as caught:
        ws.read("src/two wordz.txt")
    assert "with the space U+202F" in str(caught.value)
