"""`glob` and `ls`."""

import encodings
import os
import random

import pytest

from agentfs import Limits, Policy, Workspace
from agentfs.search.listing import path_lines
from agentfs.text.display import estimate_tokens
from tests import kit
from tests.kit import error_of, put

NAMES = ["src/a.py", "src/b/c.py", "src/b.c", "a.py", "docs/x.md", "out/a.pyc", "out/b.pyc", ".env", "s.py/k"]
MORE = [".github/w/ci.yml", ".d/e.py"]
TREES = {
    "glob": {**dict.fromkeys([*NAMES, *MORE, ".git/config"], ""), ".gitignore": "# made\n*.pyc\n"},
    "ls": dict.fromkeys(
        ("b/z.py", "b/c/deep.txt", "a/x", "Z.txt", "a.txt", ".hid", "x.log", ".git/config"), "12345"
    ) | {".gitignore": "*.log\n"},
}  # fmt: skip
PY = ["a.py", "src/a.py", "src/b/c.py"]
SRC = ["src/a.py", "src/b/c.py", "src/b.c"]
WHOLE = ["a", "a/x", "b", "b/c", "b/c/deep.txt", "b/z.py", "Z.txt", "a.txt"]


def paths(result):
    return [entry.path for entry in getattr(result, "files", None) or getattr(result, "entries", [])]


@pytest.fixture
def opened(tmp_path):
    """Returns a function that opens a workspace on one of the trees."""
    workspaces = []

    def opened(tree, **options):
        put(tmp_path, TREES[tree])
        workspaces.append(Workspace(tmp_path, **options))
        return workspaces[-1]

    yield opened
    for each in workspaces:
        each.close()


@pytest.fixture
def glob(opened):
    return opened("glob").glob


@pytest.fixture
def ls(opened):
    return opened("ls").ls


@pytest.mark.parametrize(("method", "arguments", "found"), [
    *(("glob", {"pattern": pattern, "path": path}, found) for pattern, path, found in (
        ("*.py", ".", PY), ("*.py", "", PY), ("/*.py", ".", ["a.py"]), ("./*.py", "src", ["src/a.py"]),
        ("src/*", ".", ["src/a.py", "src/b.c"]), ("src/**", ".", SRC), ("src/", ".", SRC),
        ("b/*", "src", ["src/b/c.py"]), ("**/*.{c,md}", ".", ["docs/x.md", "src/b.c"]),
        (".github/**/*.yml", ".", [".github/w/ci.yml"]), ("**/.env", ".", [".env"]), (".env", ".", [".env"]),
        (["*.c", "*.md"], ".", ["docs/x.md", "src/b.c"]), (["*.py", "!src/**"], ".", ["a.py"]),
        ("*", ".github", [".github/w/ci.yml"]), ("{root}/src/*.py", ".", ["src/a.py"]),
        ("{root}/src/*.py", "src", ["src/a.py"]),
        # Several paths find each file once, in order of path.
        ("*.py", ["src/b", "src", "src/../src"], PY[1:]), ("/*.py", [".", "src"], PY[:2]),
        ("*.pyc", [".", "out"], []))),
    *(("glob", {"pattern": pattern, **more}, found) for pattern, more, found in (
        ("*.pyc", {"include_ignored": True}, ["out/a.pyc", "out/b.pyc"]),
        (".git/*", {"include_ignored": True}, []), ("*.nope", {"include_ignored": True}, []),
        ("**/*", {"include_ignored": True},
         sorted([*NAMES, *MORE, ".gitignore"], key=lambda path: path.split("/"))),
        ("*.py", {"exclude": "src"}, ["a.py"]), ("*.py", {"exclude": ["b", "/a.py"]}, ["src/a.py"]),
        ("*", {"types": "d"}, ["docs", "out", "s.py", "src", "src/b"]),
        ("*.py", {"types": "fd"}, ["a.py", "s.py", "src/a.py", "src/b/c.py"]),
        ("*", {"types": "d", "exclude": "b/"}, ["docs", "out", "s.py", "src"]),
        (".env", {"hidden": False}, [".env"]), ("*.py", {"types": "l"}, []),
        ("/*", {"hidden": True, "types": "f"}, [".env", ".gitignore", "a.py"]))),
    *(("ls", arguments, found) for arguments, found in (
        ({}, ["a", "b", "Z.txt", "a.txt"]), ({"path": ""}, ["a", "b", "Z.txt", "a.txt"]),
        ({"depth": 2}, ["a", "a/x", "b", "b/c", "b/z.py", "Z.txt", "a.txt"]), ({"depth": 0}, WHOLE),
        ({"path": "b"}, ["b/c", "b/z.py"]),
        ({"path": "./b/c/..", "depth": 0}, ["b/c", "b/c/deep.txt", "b/z.py"]),
        ({"include_ignored": True}, ["a", "b", ".gitignore", ".hid", "Z.txt", "a.txt", "x.log"]),
        ({"hidden": True}, ["a", "b", ".gitignore", ".hid", "Z.txt", "a.txt"]),
        ({"hidden": False, "include_ignored": True}, ["a", "b", "Z.txt", "a.txt", "x.log"]),
        ({"depth": 0, "ignore": "*.txt"}, ["a", "a/x", "b", "b/c", "b/z.py"]),
        ({"depth": 0, "ignore": ["b/", "/a.txt"]}, ["a", "a/x", "Z.txt"]),
        ({"path": ["b", "b/c", "b"], "depth": 0}, ["b/c", "b/c/deep.txt", "b/z.py"]),
        ({"path": ["b/c", "."]}, ["b/c/deep.txt", "a", "b", "Z.txt", "a.txt"]))),
])  # fmt: skip
def test_what_is_found_and_in_which_order(opened, method, arguments, found):
    ws = opened(method)
    given = {key: each.replace("{root}", ws.root) if key == "pattern" and isinstance(each, str) else each
             for key, each in arguments.items()}  # fmt: skip
    result = getattr(ws, method)(**given)
    assert paths(result) == found
    assert (result.total, result.truncated, result.next) == (len(found), False, None)
    assert method == "ls" or result.exact
    if method == "glob":
        assert [line.rstrip("/") for line in result.text.split("\n")[: len(found)]] == found


def test_an_answer_without_files_says_what_was_left_out_and_by_which_rule(glob):
    assert glob("*.pyc").text.split("\n")[0] == (
        "0 files match *.pyc; 2 among hidden and ignored, as in out/a.pyc (ignored by .gitignore:2 *.pyc): "
        "pass include_ignored=true"
    )
    assert "as in .d/ (hidden)" in glob("e.py").text
    assert glob("*.nope").text.startswith("0 files match *.nope.\n")
    assert glob("*", [".", "src"]).skipped == glob("*").skipped


def test_an_absolute_glob_of_another_directory_is_outside(opened):
    ws = opened("glob")
    assert error_of(ws.glob, f"{ws.root}/src/*.py", "docs").code == "outside_workspace"


def test_regression_an_absolute_glob_below_the_place_of_a_mount_is_made_relative(tmp_path):
    """It found nothing, while `read` takes such a path."""
    put(tmp_path, ("root/a.txt", "disk/in/a.txt", "disk/b.txt"), "value\n")
    with Workspace(tmp_path / "root", mounts={"lib": tmp_path / "disk"}) as ws:
        for glob, found in (
            (f"{tmp_path}/disk/in/a.txt", ["lib/in/a.txt"]),
            (f"{tmp_path}/root/*", ["a.txt"]),
        ):
            assert paths(ws.glob(glob)) == list(ws.grep("value", glob=glob).counts) == found
        assert list(ws.grep("value", glob=f"!{tmp_path}/disk/in/").counts) == ["a.txt", "lib/b.txt"]


def test_links_to_files_are_found_and_links_to_directories_counted(glob, tmp_path):
    for name, target in (("l1.py", "a.py"), ("l2.py", "src"), ("l3.py", "nowhere")):
        os.symlink(target, tmp_path / name)
    os.mkfifo(tmp_path / "l4.py")
    result = glob("l?.py")
    assert paths(result) == ["l1.py", "l3.py"]
    assert (result.skipped.symlink, result.skipped.special) == (1, 1)


def test_links_out_of_the_root_are_not_followed(glob, tmp_path, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.py").touch()
    os.symlink(outside, tmp_path / "way")
    assert "secret" not in glob("**/*", include_ignored=True).text
    assert error_of(glob, "*", "way").code == "outside_workspace"


def test_a_walk_enters_only_directories_that_a_glob_needs_and_says_where_it_stopped(opened):
    ws = opened("glob", limits=Limits(walk_entries=12))  # the whole tree has more names than that
    assert ws.glob("docs/**").exact
    result = ws.glob("**/docs/**")
    assert (result.exact, result.skipped.reached) == (False, "walk_entries")
    assert "there may be more" in ws.glob("**/*").text
    result = ws.glob("*", timeout=1e-9)
    assert (result.exact, result.skipped.reached) == (False, "timeout")
    assert "stopped early after 1e-09 s" in result.text


def test_a_pattern_and_one_of_the_globs_must_match(tmp_path, ws):
    put(tmp_path, ("a.py", "a.txt", "in/a.py", "in/b.py", ".new/a.py"))
    for pattern, glob, found in (
        ("^a", ["*.py", "*.js"], ["a.py", "in/a.py"]), ("^a", "in/*", ["in/a.py"]),
        ("a", "!*.py", ["a.txt"]), ("a", ".new/*", [".new/a.py"]),
    ):  # fmt: skip
        assert paths(kit.find(ws, pattern=pattern, glob=glob)) == found


def test_files_are_sorted_before_the_page_is_cut(glob, tmp_path):
    for age, name in enumerate(("src/b.c", "a.py", "docs/x.md", "src/a.py")):
        (tmp_path / name).write_text("x" * (10 + age))
        os.utime(tmp_path / name, (2_000_000_000 - age, 2_000_000_000 - age))
    newest = glob("*", limit=4, sort="modified")
    assert paths(newest) == ["src/b.c", "a.py", "docs/x.md", "src/a.py"]
    assert newest.next["arguments"]["sort"] == "modified"
    assert paths(glob("*", limit=2, offset=1, sort="modified")) == ["a.py", "docs/x.md"]
    assert paths(glob("*", limit=2, sort="size")) == ["src/a.py", "docs/x.md"]


@pytest.fixture
def two(tmp_path, ws):
    """Two directories with the same names, except `src/lib`."""
    names = ("src/lib/a.py", "src/b.py", "docs/b.py", "docs/.b.py", "docs/b.log", "a/x.go", ".h/y.go")
    put(tmp_path, names, "value\n")
    (tmp_path / ".gitignore").write_text("*.log\nout/\n")
    (tmp_path / "out").mkdir()
    return ws


@pytest.mark.parametrize("method", ["glob", "find", "grep", "ls"])
def test_regression_an_exclusion_may_name_a_directory_that_is_not_there(two, method):
    given = {"glob": {"pattern": "*.py"}, "find": {}, "grep": {"pattern": "value"}, "ls": {}}[method]
    name = "ignore" if method == "ls" else "exclude"
    plain = kit.method(two, method)(**given).to_dict()
    excluded = kit.method(two, method)(**given, **{name: "/nowhere/x/*"}).to_dict()
    varying = {"elapsed_ms", "text", "notes"}
    assert excluded.keys() == plain.keys()
    assert [excluded[key] for key in plain if key not in varying] == [
        each for key, each in plain.items() if key not in varying
    ]


@pytest.mark.parametrize("path", [["src", "docs"], ["docs", "src"]])
def test_regression_the_order_of_paths_decides_about_no_glob(two, path):
    assert paths(two.glob("/lib/*.py", path)) == ["src/lib/a.py"]
    assert paths(kit.find(two, path, glob="/lib/*.py")) == ["src/lib/a.py"]
    assert list(two.grep("value", path, "/lib/*.py").counts) == ["src/lib/a.py"]
    absolute = f"{two.root}/src/b*"
    for call in (
        lambda: two.ls(path, ignore=absolute),
        lambda: two.glob("*", path, exclude=absolute),
        lambda: two.glob(absolute, path),
        lambda: kit.find(two, path, glob=absolute),
        lambda: two.grep("value", path, exclude=absolute),
    ):
        error = error_of(call)
        assert (error.code, "does not lie in one directory" in str(error)) == ("outside_workspace", True)


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
    assert "The result has 1 file;" in str(error_of(two.glob, "*.go", offset=9))
    assert "The result has 2 entries;" in str(error_of(two.ls, "src", offset=9))
    assert "The result has 1 match;" in str(error_of(two.grep, "value", "src/b.py", offset=9))


@pytest.mark.parametrize("path", ["/", "", "//"])
def test_regression_a_slash_is_the_root_as_in_globs(two, path):
    assert paths(two.ls(path)) == paths(two.ls())
    assert paths(two.glob("*.py", path)) == paths(two.glob("*.py"))
    assert two.grep("value", path).counts == two.grep("value").counts


@pytest.mark.parametrize("pattern", ["dl/*.txt", "**/*.txt", "d?/*.txt"])
@pytest.mark.parametrize("watch", [False, True])
def test_regression_a_link_to_a_directory_that_a_glob_would_go_through_is_counted(tmp_path, watch, pattern):
    """The answer was 0, and nothing said why."""
    put(tmp_path, ["real/a.md"])
    (tmp_path / "dl").symlink_to("real")
    with Workspace(tmp_path, watch=watch) as ws:
        for _ in range(2):
            result = ws.glob(pattern)
            assert (result.total, result.skipped.symlink) == (0, 1)
            assert "1 link" in result.text
        assert ws.glob("other/*.txt").skipped.symlink == 0


# ls


def test_the_text_shows_kinds_and_the_report_of_skipped_names(ls):
    left_out = "[left out: 2 hidden, 1 ignored by .gitignore:1 *.log (pass include_ignored=true)]"
    assert ls().text.split("\n") == ["a/", "b/", "Z.txt", "a.txt", left_out]
    assert [entry.is_dir for entry in ls().entries] == [True, True, False, False]
    last = ls().entries[3]
    assert (last.size, last.ext, last.type) == (5, "txt", "file")
    every = ls(include_ignored=True)
    assert ("include_ignored" in every.text, every.skipped.vcs) == (False, 1)
    assert ls([".", "."]).skipped == ls().skipped


def test_links_and_special_files_are_shown_and_marked(ls, tmp_path):
    (tmp_path / "text").write_text("12345")
    targets = {"one": "text", "two": "one", "dir": "a", "nowhere": "none", "out": "/etc/passwd"}
    for name, target in targets.items():
        os.symlink(target, tmp_path / name)
    os.mkfifo(tmp_path / "pipe")
    result = ls()
    by_name = {entry.name: entry for entry in result.entries}
    assert [by_name[name].size for name in targets] == [5, 5, None, None, None]
    assert (by_name["dir"].type, by_name["dir"].is_dir, by_name["dir"].target) == ("symlink", True, "a")
    assert (by_name["out"].is_dir, by_name["out"].target, by_name["pipe"].type) == (False, None, "other")
    assert "dir -> a" in result.text
    assert "pipe  (special file)" in result.text
    assert "/etc" not in result.text
    with Workspace(tmp_path, policy=Policy(symlinks="never")) as ws:
        assert {entry.name: entry.size for entry in ws.ls().entries}["one"] is None


@pytest.mark.parametrize("watch", [False, True])
def test_a_directory_whose_entries_are_all_left_out_is_not_called_empty(tmp_path, watch):
    put(tmp_path, ("d/a.py", "d/b.py", "d/sub/c.py", "hidden/.x"))
    (tmp_path / "empty").mkdir()
    with Workspace(tmp_path, watch=watch) as ws:
        assert ws.ls("d", ignore="*").text == "d: nothing to show with this ignore."
        assert ws.ls("d", depth=0, ignore=["*.py", "sub/"]).text.endswith("nothing to show with this ignore.")
        empty = ws.ls("empty")
        assert (empty.entries, empty.total, empty.text) == ([], 0, "empty: empty.")
        assert ws.ls("hidden").text.startswith("hidden: nothing to show.\n[left out: 1 hidden")
        assert ws.ls(["d", "empty"], ignore="*").text == "d, empty: nothing to show with this ignore."


def test_a_name_cannot_forge_a_line(ls, tmp_path):
    (tmp_path / "a" / "one\n[0 entries]\x1b").touch()
    (tmp_path / "a" / os.fsdecode(b"caf\xe9")).touch()
    assert ls("a").text.split("\n") == ["a/caf\\xe9", "a/one⟦U+000A⟧[0 entries]⟦U+001B⟧", "a/x"]


def test_sizes_are_shown_from_100_kb_on_or_if_sorted_by_size(ls, tmp_path):
    (tmp_path / "a" / "large").write_bytes(b"x" * 100 * 1024)
    (tmp_path / "a" / "small").write_bytes(b"x" * (100 * 1024 - 1))
    assert ls("a").text.split("\n")[:3] == ["a/large  100 KB", "a/small", "a/x"]
    assert ls("a", sort="size").text.split("\n")[:3] == ["a/large  100 KB", "a/small  100 KB", "a/x  5 B"]


def test_regression_a_listing_of_110_files_costs_at_most_686_tokens(tmp_path, ws):
    names = sorted(name for name in os.listdir(os.path.dirname(encodings.__file__)) if name[-3:] == ".py")
    for number, name in enumerate(names[:110]):
        (tmp_path / name).write_text("x" * 97 * number)
    assert estimate_tokens(ws.ls().text) <= 686
    assert len(ws.ls().entries) == 110


def test_sort_orders_each_directory(ls, tmp_path):
    for age, name in enumerate(("a.txt", "b/c", "Z.txt", "b/z.py", "a", "b")):
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    (tmp_path / "Z.txt").write_text("x" * 10)
    os.utime(tmp_path / "Z.txt", (2, 2))
    assert paths(ls(sort="modified")) == ["a", "b", "a.txt", "Z.txt"]
    assert paths(ls(sort="size")) == ["a", "b", "Z.txt", "a.txt"]
    assert ls(sort="size", limit=1).next["arguments"] == {"limit": 1, "sort": "size", "offset": 1}
    assert paths(ls(sort="size", limit=1, offset=2)) == ["Z.txt"]


@pytest.mark.parametrize("limit", [1, 3, 7, 20, 100])
@pytest.mark.parametrize("seed", range(4))
def test_following_all_pages_of_all_levels_gives_each_entry_once(tmp_path, ws, limit, seed):
    rng = random.Random(seed)
    directories = [tmp_path]
    for number in range(80):
        path = rng.choice(directories) / f"n{number}"
        if rng.random() < 0.3:
            path.mkdir()
            directories.append(path)
        else:
            path.touch()
    first = result = ws.ls(depth=0, limit=limit)
    found = paths(first)
    while result.next is not None:
        result = ws.ls(**result.next["arguments"])
        found += paths(result)
    assert sorted(found) == sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert first.total == len(found)


def shown_paths(text):
    """Read a listing back: the full path of each line; a directory with `:` stands only ahead of others."""
    opened: list[str] = []
    for line in text.split("\n"):
        name = line.lstrip(" ")
        del opened[len(line) - len(name) :]
        opened.append(name.removesuffix(":"))
        if not name.endswith("/:"):
            yield "".join(opened)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("directories", [False, True])
def test_a_listing_that_names_shared_directories_once_tells_each_path(seed, directories):
    rng = random.Random(seed)
    names = ["a", "bb", "component", "src", "index"]
    files = {"/".join([*rng.choices(names, k=rng.randint(0, 5)), f"f{n}.ts"]) for n in range(60)}
    above = {path[: path.rindex("/") + 1] for path in files if "/" in path and rng.random() < 0.5}
    paths = sorted(files | above if directories else files, key=lambda path: path.split("/"))
    for most in (60, 40):
        text = path_lines([(path, "") for path in paths[:most]], of=len(paths))
        found = [path for path in shown_paths(text) if directories or not path.endswith("/")]
        assert found == paths[:most]
        assert estimate_tokens(text) < estimate_tokens("\n".join(paths[:most]))


def test_few_paths_and_names_that_begin_with_a_space_are_shown_whole():
    few = [(f"src/f{n}", "") for n in range(20)]
    assert path_lines(few, of=20).split("\n") == [path for path, _ in few]
    assert path_lines([*few, ("src/ a", "")], of=21).split("\n") == [*(path for path, _ in few), "src/ a"]
    assert path_lines([*few[:2], ("b/c/d", ": 1"), ("b/c/e", ": 2")], of=21).split("\n") == [
        *("src/", " f0", " f1", "b/c/", " d: 1", " e: 2")
    ]


def test_regression_every_listing_of_many_paths_names_a_shared_directory_once(tmp_path, ws):
    put(tmp_path, [f"frontend/packages/package-{n:03}/index.ts" for n in range(200)], "value\n")
    for result in (
        ws.glob("*.ts"),
        ws.grep("value", output_mode="files_with_matches"),
        ws.grep("value", output_mode="count"),
    ):
        assert result.text.startswith("frontend/packages/\n package-000/index.ts")
        assert result.text.count("frontend/packages/") == 1
    assert ws.ls("frontend/packages").text.startswith("frontend/packages/:\n package-000/\n")
    assert ws.ls(depth=3).text.startswith("frontend/\n packages/\n  package-000/\n")
