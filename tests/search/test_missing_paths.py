"""Suggestions for a missing path are the same in every method."""

import pytest

from agentfs import Policy, Workspace
from agentfs.results import Edit, LineChange
from tests import kit
from tests.kit import error_of, put

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
    put(tmp_path, ("src/app.py", "src/lib/util.py", "docs/Guide.md", ".hidden/secret.py", "old/util.py"))
    return tmp_path


@pytest.fixture
def ws(tree):
    with Workspace(tree) as workspace:
        yield workspace


def similar(method, ws, path):
    """Return the paths that the error for a missing path names; the hint asks about the first."""
    error = error_of(CALLS[method], ws, path)
    names = error.details.get("similar", [])
    assert not names or f'Did you mean "{names[0]}"' in error.hint
    assert error.hint.count("Did you mean") <= 1
    return names


LISTING = {"ls", "glob", "find"}  # a file elsewhere is no directory


@pytest.mark.parametrize("method", CALLS)
@pytest.mark.parametrize(("path", "meant"), [
    ("src\\app.py", ["src/app.py"]), ("src/ap.py", ["src/app.py"]), ("srcs/app.py", ["src/app.py"]),
    ("srcs/lib/util.py", ["src/lib/util.py", "old/util.py"]), ("app.py", ["src/app.py"]),
    ("other/APP.py", ["src/app.py"]), ("lib/util.py", ["src/lib/util.py", "old/util.py"]),
    ("guide.md", ["docs/Guide.md"]), ("lib", ["src/lib"]), ("srcc", ["src"]),
    ("src/app.py:12", ["src/app.py"]),
])  # fmt: skip
def test_suggestions_for_a_missing_path_are_the_same_in_every_method(ws, method, path, meant):
    if (method, path) == ("read", "src/app.py:12"):  # the range of a file that has fewer lines
        error = error_of(ws.read, path)
        assert (error.code, error.details["path"]) == ("past_end", "src/app.py")
        return
    if method in LISTING:
        meant = [] if path in FILES_ELSEWHERE else meant[:1]
    assert error_of(CALLS[method], ws, path).code == "not_found"
    assert similar(method, ws, path) == meant


@pytest.mark.parametrize("path", ["nothing.rs", "secret.py"])
def test_hidden_and_dissimilar_paths_are_not_suggested(ws, path):
    assert similar("read", ws, path) == []


def test_a_view_or_a_rule_suggests_only_what_may_be_used(ws, tree):
    for path in ("docs/app.py", "docs/util.py"):
        assert "src" not in str(error_of(ws.view(only=["docs"]).read, path))
    with Workspace(tree, policy=Policy(deny=["read(src/**)"])) as denied:
        listed = [entry.path for entry in kit.find(denied, glob="app.py").files]
        assert similar("read", denied, "docs/app.py") == listed


@pytest.mark.parametrize("method", ["ls", "glob"])
def test_regression_a_file_that_is_meant_for_a_directory_comes_with_the_call_that_reads_it(ws, method):
    """The same call with the suggested path was refused, because it is a file."""
    arguments = {"path": "src/ap.py"} | ({"pattern": "*"} if method == "glob" else {})
    for tools in (ws.tools("all"), ws.tools([method])):
        said = tools.call(method, arguments).content
        assert 'Did you mean "src/app.py"? It is a file' in said
        assert ('call read(path="src/app.py")' in said) is ("read" in tools.names)
        assert "Call ls" not in said


@pytest.mark.parametrize("method", ["read", "edit", "splice", "delete", "grep"])
def test_regression_a_directory_is_not_suggested_for_the_name_of_a_file(ws, tree, method):
    """A patch of `lib.py` was told to take the directory `lib`, although another directory has that file."""
    put(tree, ["lib/x", "src/lib.py"])
    assert similar(method, ws, "lib.py") == ["src/lib.py"]


@pytest.mark.parametrize("method", ["read", "edit", "grep"])
def test_regression_a_name_that_many_directories_have_comes_with_the_call_that_finds_all(ws, tree, method):
    """The first three were named as if there were no more, and none of them was meant."""
    put(tree, [f"p{number}/models.py" for number in range(5)])
    more = {"edit": {"old_string": "x", "new_string": "y"}, "grep": {"pattern": "x"}}.get(method, {})
    said = ws.tools().call(method, {"path": "models.py", **more}).content
    assert 'or "p2/models.py"? More may have this name: call glob(pattern="**/models.py").' in said
    assert len(ws.glob("**/models.py").files) == 5
    alone = ws.tools([method]).call(method, {"path": "models.py", **more}).content
    assert "More may have this name." in alone
    assert "More may" not in ws.tools().call(method, {"path": "util.py", **more}).content, "two files"


@pytest.mark.parametrize("method", CALLS)
@pytest.mark.parametrize("before", ["file://{root}/", "file://", "{name}/", "project/", "/home/me/project/"])
def test_regression_what_stands_before_a_path_is_left_out(ws, tree, method, before):
    """A URL was answered by its path from the root of the system, or for `edit` by other files."""
    path = "src/lib" if method in LISTING else "src/lib/util.py"
    assert similar(method, ws, before.format(root=tree, name=tree.name) + path)[0] == path


def test_a_path_in_other_letters_is_found_at_any_depth(ws, tree):
    """More than four names were not corrected, and a file beside a directory ended the search."""
    put(tree, ["one/two/three/four/five/six.txt", "one/two/three.txt"])
    wanted = ["one/two/three/four/five/six.txt"]
    assert similar("read", ws, "ONE/TWO/THREE/FOUR/FIVE/SIX.TXT") == wanted


@pytest.mark.parametrize(("path", "meant"), [
    ("src/config.yaml", ["src/sub/config.yaml", "src/confit.yaml"]),
    ("src/app", ["src/app.py"]),
    ("/c/Users/me/code/project/src/app.py", ["src/app.py"]),
    ("C:\\Users\\me\\project\\src\\app.py", ["src/app.py"]),
    ("/home/me/project/src/app.py", ["src/app.py"]),
])  # fmt: skip
def test_regression_the_same_name_elsewhere_comes_before_a_similar_one(ws, tree, path, meant):
    """Only a similar name was named, and nothing for a path of Windows or without its suffix."""
    put(tree, ["src/sub/config.yaml", "src/confit.yaml"])
    error = error_of(ws.read, path)
    assert error.details["similar"] == meant
    assert f'Did you mean "{meant[0]}"' in str(error)


def test_regression_a_space_that_looks_like_another_is_named(ws, tree):
    """The suggested name looked equal to the wrong one."""
    (tree / "src/two\u202fwords.txt").touch()
    assert "with the space U+202F" in str(error_of(ws.read, "src/two wordz.txt"))


@pytest.mark.parametrize(("same", "others"), [(1, 4), (4, 0)])
def test_more_is_said_only_of_names_that_are_as_good(tmp_path, same, others):
    put(
        tmp_path, [*(f"b{each}/k/a.py" for each in range(same)), *(f"c{each}/a.py" for each in range(others))]
    )
    with Workspace(tmp_path) as ws:
        said = str(error_of(ws.read, "k/a.py"))
    assert ("b0/k/a.py" in said, "More may" in said) == (True, same > 3)
