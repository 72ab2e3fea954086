"""`glob`."""

import os

import pytest

from agentfs import Workspace
from agentfs.errors import AgentFSError
from agentfs.fs import Root
from agentfs.limits import Limits
from agentfs.policy import Policy
from agentfs.search.listing import find_files
from agentfs.search.options import GlobOptions
from tests import kit
from tests.search.contexts import context_of

NAMES = ["src/a.py", "src/b/c.py", "src/b.c", "a.py", "docs/x.md", "out/a.pyc", "out/b.pyc", ".env", "s.py/k"]


@pytest.fixture
def glob(tmp_path):
    for name in [*NAMES, ".github/w/ci.yml", ".git/config", ".d/e.py"]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / ".gitignore").write_text("# made\n*.pyc\n")

    def call(pattern, path=".", limit=None, offset=0, include_ignored=False, more=None, **limits):
        options = GlobOptions(pattern, path, limit, offset, include_ignored, **(more or {}))
        with Root(tmp_path, Policy()) as root:
            return find_files(context_of(root, Limits(**limits)), options)

    return call


def paths(result):
    return [entry.path for entry in result.files]


@pytest.mark.parametrize(("pattern", "path", "found"), [
    ("*.py", ".", ["a.py", "src/a.py", "src/b/c.py"]),
    ("*.py", "", ["a.py", "src/a.py", "src/b/c.py"]),
    ("/*.py", ".", ["a.py"]),
    ("./*.py", "src", ["src/a.py"]),
    ("src/*", ".", ["src/a.py", "src/b.c"]),
    ("src/**", ".", ["src/a.py", "src/b/c.py", "src/b.c"]),
    ("src/", ".", ["src/a.py", "src/b/c.py", "src/b.c"]),
    ("b/*", "src", ["src/b/c.py"]),
    ("**/*.{c,md}", ".", ["docs/x.md", "src/b.c"]),
    (".github/**/*.yml", ".", [".github/w/ci.yml"]),
    ("**/.env", ".", [".env"]),
    (".env", ".", [".env"]),
    (["*.c", "*.md"], ".", ["docs/x.md", "src/b.c"]),
    (["*.py", "!src/**"], ".", ["a.py"]),
    ("*", ".github", [".github/w/ci.yml"]),
])  # fmt: skip
def test_files_are_found_in_order_of_path(glob, pattern, path, found):
    result = glob(pattern, path)
    assert paths(result) == found
    assert (result.total, result.exact, result.truncated, result.next) == (len(found), True, False, None)
    assert result.text.split("\n")[: len(found)] == found


def test_include_ignored_opens_hidden_and_ignored_but_never_git(glob):
    assert paths(glob("**/*", include_ignored=True)) == sorted(
        [*NAMES, ".github/w/ci.yml", ".d/e.py", ".gitignore"], key=lambda path: path.split("/")
    )
    assert paths(glob("*.pyc", include_ignored=True)) == ["out/a.pyc", "out/b.pyc"]
    assert paths(glob(".git/*", include_ignored=True)) == []


def test_an_answer_without_files_says_what_was_left_out_and_by_which_rule(glob):
    assert glob("*.pyc").text.split("\n")[0] == (
        "0 files match *.pyc; 2 among hidden and ignored, as in out/a.pyc (ignored by .gitignore:2 *.pyc): "
        "pass include_ignored=true"
    )
    assert "as in .d/ (hidden)" in glob("e.py").text
    assert glob("*.nope").text.startswith("0 files match *.nope.\n")
    assert glob("*.nope", include_ignored=True).files == []


def test_an_absolute_glob_inside_the_root_is_made_relative(glob, tmp_path):
    assert paths(glob(f"{tmp_path}/src/*.py")) == ["src/a.py"]
    assert paths(glob(f"{tmp_path}/src/*.py", "src")) == ["src/a.py"]
    with pytest.raises(AgentFSError) as caught:
        glob(f"{tmp_path}/src/*.py", "docs")
    assert caught.value.code == "outside_workspace"


def test_regression_an_absolute_glob_below_the_place_of_a_mount_is_made_relative(tmp_path):
    """It found nothing, while `read` takes such a path."""
    for name in ("root/a.txt", "disk/in/a.txt", "disk/b.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("value\n")
    with Workspace(tmp_path / "root", mounts={"lib": tmp_path / "disk"}) as ws:
        for glob, found in (
            (f"{tmp_path}/disk/in/a.txt", ["lib/in/a.txt"]),
            (f"{tmp_path}/root/*", ["a.txt"]),
        ):
            assert paths(ws.glob(glob)) == list(ws.grep("value", glob=glob).counts) == found
        assert list(ws.grep("value", glob=f"!{tmp_path}/disk/in/").counts) == ["a.txt", "lib/b.txt"]


def test_links_to_files_are_found_and_links_to_directories_counted(glob, tmp_path):
    os.symlink("a.py", tmp_path / "l1.py")
    os.symlink("src", tmp_path / "l2.py")
    os.symlink("nowhere", tmp_path / "l3.py")
    os.mkfifo(tmp_path / "l4.py")
    result = glob("l?.py")
    assert paths(result) == ["l1.py", "l3.py"]
    assert (result.skipped.symlink, result.skipped.special) == (1, 1)


def test_an_incomplete_walk_says_so(glob):
    result = glob("**/*", walk_entries=5)
    assert not result.exact
    assert result.skipped.reached == "walk_entries"
    assert "there may be more" in result.text


def test_links_out_of_the_root_are_not_followed(glob, tmp_path, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.py").touch()
    os.symlink(outside, tmp_path / "way")
    assert "secret" not in glob("**/*", include_ignored=True).text
    with pytest.raises(AgentFSError) as caught:
        glob("*", "way")
    assert caught.value.code == "outside_workspace"


@pytest.mark.parametrize(("arguments", "code"), [
    ({"pattern": ""}, "invalid_pattern"),
    ({"pattern": []}, "invalid_pattern"),
    ({"pattern": "[a"}, "invalid_pattern"),
    ({"pattern": "{a,b}" * 20}, "invalid_pattern"),
    ({"pattern": "**/*a*/" * 30}, "invalid_pattern"),
    ({"pattern": "../*"}, "outside_workspace"),
    ({"pattern": "/../*"}, "outside_workspace"),
    ({"pattern": "**/../../*"}, "outside_workspace"),
    ({"pattern": "*", "path": "no"}, "not_found"),
    ({"pattern": "*", "path": "a.py"}, "not_a_directory"),
    ({"pattern": "*", "path": "/etc"}, "outside_workspace"),
    ({"pattern": "*", "limit": 0}, "invalid_argument"),
    ({"pattern": "*", "offset": -1}, "invalid_argument"),
    ({"pattern": "*.py", "offset": 3}, "past_end"),
])  # fmt: skip
def test_bad_arguments_are_typed_errors_with_a_way_out(glob, arguments, code):
    with pytest.raises(AgentFSError) as caught:
        glob(**arguments)
    assert caught.value.code == code
    assert caught.value.hint


@pytest.mark.parametrize(("pattern", "more", "expected"), [
    ("*.py", {"exclude": "src"}, ["a.py"]),
    ("*.py", {"exclude": ["b", "/a.py"]}, ["src/a.py"]),
    ("*.py", {"anchored": True}, ["a.py"]),
    ("*", {"types": "d"}, ["docs", "out", "s.py", "src", "src/b"]),
    ("*.py", {"types": "fd"}, ["a.py", "s.py", "src/a.py", "src/b/c.py"]),
    ("*", {"types": "d", "exclude": "b/"}, ["docs", "out", "s.py", "src"]),
    (".env", {"hidden": False}, [".env"]),
    ("*", {"hidden": True, "types": "f", "anchored": True}, [".env", ".gitignore", "a.py"]),
    ("*.py", {"types": "l"}, []),
])  # fmt: skip
def test_parameters_for_programs(glob, pattern, more, expected):
    assert paths(glob(pattern, more=more)) == expected


def test_a_pattern_and_one_of_the_globs_must_match(tmp_path):
    for name in ("a.py", "a.txt", "in/a.py", "in/b.py", ".new/a.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    with Workspace(tmp_path) as ws:
        assert paths(kit.find(ws, pattern="^a", glob=["*.py", "*.js"])) == ["a.py", "in/a.py"]
        assert paths(kit.find(ws, pattern="^a", glob="in/*")) == ["in/a.py"]
        assert paths(kit.find(ws, pattern="a", glob="!*.py")) == ["a.txt"]
        assert paths(kit.find(ws, pattern="a", glob=".new/*")) == [".new/a.py"]


def test_files_are_sorted_before_the_page_is_cut(glob, tmp_path):
    for age, name in enumerate(("src/b.c", "a.py", "docs/x.md", "src/a.py")):
        (tmp_path / name).write_text("x" * (10 + age))
        os.utime(tmp_path / name, (2_000_000_000 - age, 2_000_000_000 - age))
    newest = glob("*", limit=4, more={"sort": "modified"})
    assert paths(newest) == ["src/b.c", "a.py", "docs/x.md", "src/a.py"]
    assert newest.next is not None
    assert newest.next["arguments"]["sort"] == "modified"
    assert paths(glob("*", limit=2, offset=1, more={"sort": "modified"})) == ["a.py", "docs/x.md"]
    assert paths(glob("*", limit=2, more={"sort": "size"})) == ["src/a.py", "docs/x.md"]


def test_several_paths_find_each_file_once_in_order_of_path(glob):
    assert paths(glob("*.py", ["src/b", "src", "src/../src"])) == ["src/a.py", "src/b/c.py"]
    assert paths(glob("/*.py", [".", "src"])) == ["a.py", "src/a.py"]
    assert paths(glob("*.pyc", [".", "out"])) == []
    assert glob("*", [".", "src"]).skipped == glob("*").skipped


def test_a_walk_enters_only_directories_that_a_glob_needs(glob):
    # The whole tree has more names than that.
    assert glob("docs/**", walk_entries=12).exact
    assert not glob("**/docs/**", walk_entries=12).exact


def test_a_timeout_is_reported(glob):
    result = glob("*", more={"timeout": 1e-9})
    assert (result.exact, result.skipped.reached) == (False, "timeout")
    assert "stopped early after 1e-09 s" in result.text


@pytest.fixture
def two(tmp_path):
    """Two directories with the same names, except `src/lib`."""
    for name in ("src/lib/a.py", "src/b.py", "docs/b.py", "docs/.b.py", "docs/b.log", "a/x.go", ".h/y.go"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("value\n")
    (tmp_path / ".gitignore").write_text("*.log\nout/\n")
    (tmp_path / "out").mkdir()
    with Workspace(tmp_path) as workspace:
        yield workspace


@pytest.mark.parametrize("method", ["glob", "find", "grep", "ls"])
def test_regression_an_exclusion_may_name_a_directory_that_is_not_there(two, method):
    given = {"glob": {"pattern": "*.py"}, "find": {}, "grep": {"pattern": "value"}, "ls": {}}[method]
    name = "ignore" if method == "ls" else "exclude"
    plain = kit.method(two, method)(**given).to_dict()
    excluded = kit.method(two, method)(**given, **{name: "/nowhere/x/*"}).to_dict()
    for result in (plain, excluded):
        result.pop("elapsed_ms", None)
        result.pop("text", None)
        result.pop("notes", None)
    assert excluded == plain


@pytest.mark.parametrize("path", [["src", "docs"], ["docs", "src"]])
def test_regression_a_glob_from_the_search_directory_is_looked_for_in_each_path(two, path):
    assert paths(two.glob("/lib/*.py", path)) == ["src/lib/a.py"]
    assert paths(kit.find(two, path, glob="/lib/*.py")) == ["src/lib/a.py"]
    assert list(two.grep("value", path, "/lib/*.py").counts) == ["src/lib/a.py"]


@pytest.mark.parametrize("path", [["src", "docs"], ["docs", "src"]])
def test_regression_the_order_of_paths_decides_about_no_absolute_glob(two, path):
    absolute = f"{two.root}/src/b*"
    for call in (
        lambda: two.ls(path, ignore=absolute),
        lambda: two.glob("*", path, exclude=absolute),
        lambda: two.glob(absolute, path),
        lambda: kit.find(two, path, glob=absolute),
        lambda: two.grep("value", path, exclude=absolute),
    ):
        with pytest.raises(AgentFSError, match="does not lie in one directory") as caught:
            call()
        assert caught.value.code == "outside_workspace"


def test_regression_each_of_several_paths_is_ahead_of_its_own_names(two):
    found = kit.find(two, ["src", "docs", "./src/lib"], pattern="^(docs/b|src/lib/a)", full_path=True)
    assert paths(found) == ["docs/b.py", "src/lib/a.py"]


@pytest.mark.parametrize("glob", ["./a/**/*.go", "a/**/*.go", "/a/*.go", "a/*.go"])
def test_regression_only_names_that_a_search_could_have_reached_are_reported(tmp_path, two, glob):
    for call in (
        lambda ws: ws.glob(glob),
        lambda ws: kit.find(ws, glob=glob),
        lambda ws: ws.grep("value", glob=glob),
        lambda ws: ws.grep("value", "a", type="go"),
        lambda ws: kit.find(ws, pattern="x.go$", max_depth=2, exclude=["out", ".h"]),
    ):
        with Workspace(tmp_path) as ws:
            result = call(ws)
        assert (result.skipped.hidden, result.skipped.ignored, result.skipped.rules) == (0, 0, {})
        assert "left out" not in result.text


@pytest.mark.parametrize("watch", [False, True])
def test_what_is_left_out_and_could_be_found_is_counted_exactly(tmp_path, two, watch):
    with Workspace(tmp_path, watch=watch) as ws:
        for _ in range(2):
            for pattern, hidden, ignored in (("*.py", 2, 1), ("*.log", 1, 2), ("*", 3, 2), ("docs/*", 1, 1)):
                for result in (ws.glob(pattern), ws.grep("value", glob=pattern)):
                    assert (result.skipped.hidden, result.skipped.ignored) == (hidden, ignored), pattern
                    assert sum(result.skipped.rules.values()) == ignored


def test_regression_listed_hidden_files_are_searched(two):
    found = kit.grep(two, "value", files=["docs/.b.py", "src/b.py"], glob="*.py", hidden=True)
    assert list(found.counts) == ["docs/.b.py", "src/b.py"]
    assert list(kit.grep(two, "value", files=["docs/.b.py"], exclude="*.log").counts) == ["docs/.b.py"]


def test_regression_one_entry_is_one_entry(two):
    with pytest.raises(AgentFSError, match="The result has 1 file;"):
        two.glob("*.go", offset=9)
    with pytest.raises(AgentFSError, match="The result has 2 entries;"):
        two.ls("src", offset=9)
    with pytest.raises(AgentFSError, match="The result has 1 match;"):
        two.grep("value", "src/b.py", offset=9)


@pytest.mark.parametrize("path", ["/", "", "//"])
def test_regression_a_slash_is_the_root_as_in_globs(two, path):
    assert [each.path for each in two.ls(path).entries] == [each.path for each in two.ls().entries]
    assert paths(two.glob("*.py", path)) == paths(two.glob("*.py"))
    assert two.grep("value", path).counts == two.grep("value").counts


@pytest.mark.parametrize("pattern", ["dl/*.txt", "**/*.txt", "d?/*.txt"])
@pytest.mark.parametrize("watch", [False, True])
def test_regression_a_link_to_a_directory_that_a_glob_would_go_through_is_counted(tmp_path, watch, pattern):
    """The answer was 0, and nothing said why."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real/a.md").touch()
    (tmp_path / "dl").symlink_to("real")
    with Workspace(tmp_path, watch=watch) as ws:
        for _ in range(2):
            result = ws.glob(pattern)
            assert (result.total, result.skipped.symlink) == (0, 1)
            assert "1 link" in result.text
        assert ws.glob("other/*.txt").skipped.symlink == 0
