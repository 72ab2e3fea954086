"""`ls`."""

import encodings
import os
import random

import pytest

from agentfs import Workspace
from agentfs.errors import AgentFSError
from agentfs.fs import Root
from agentfs.limits import Limits
from agentfs.policy import Policy
from agentfs.search.listing import list_directory, path_lines
from agentfs.search.options import ListOptions
from agentfs.text.display import estimate_tokens
from tests.search.contexts import context_of


@pytest.fixture
def ls(tmp_path):
    for name in ("b/z.py", "b/c/deep.txt", "a/x", "Z.txt", "a.txt", ".hid", "x.log", ".git/config"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("12345")
    (tmp_path / ".gitignore").write_text("*.log\n")

    def call(path=".", depth=1, limit=None, offset=0, include_ignored=False, **more):
        options = ListOptions(path, depth, limit, offset, include_ignored, **more)
        with Root(tmp_path, Policy()) as root:
            return list_directory(context_of(root, Limits()), options)

    return call


def paths(result):
    return [entry.path for entry in result.entries]


def test_directories_come_first_then_files_by_name(ls):
    result = ls()
    assert paths(result) == ["a", "b", "Z.txt", "a.txt"]
    assert [entry.is_dir for entry in result.entries] == [True, True, False, False]
    assert (result.total, result.truncated, result.next) == (4, False, None)
    assert (result.entries[3].size, result.entries[3].ext, result.entries[3].type) == (5, "txt", "file")


def test_with_depth_each_directory_is_followed_by_its_entries(ls):
    assert paths(ls(depth=2)) == ["a", "a/x", "b", "b/c", "b/z.py", "Z.txt", "a.txt"]
    assert paths(ls(depth=0)) == ["a", "a/x", "b", "b/c", "b/c/deep.txt", "b/z.py", "Z.txt", "a.txt"]


def test_paths_are_relative_to_the_root(ls):
    assert paths(ls("b")) == ["b/c", "b/z.py"]
    assert paths(ls("./b/c/..", depth=0)) == ["b/c", "b/c/deep.txt", "b/z.py"]


def test_an_empty_path_is_the_root(ls):
    assert paths(ls("")) == paths(ls("."))


def test_the_text_shows_kinds_sizes_and_the_report_of_skipped_names(ls):
    assert ls().text.split("\n") == [
        "a/",
        "b/",
        "Z.txt",
        "a.txt",
        ("[left out: 2 hidden, 1 ignored by .gitignore:1 *.log (pass include_ignored=true)]"),
    ]


def test_include_ignored_opens_all_but_git(ls):
    result = ls(include_ignored=True)
    assert paths(result) == ["a", "b", ".gitignore", ".hid", "Z.txt", "a.txt", "x.log"]
    assert "include_ignored" not in result.text
    assert result.skipped.vcs == 1


def test_pages_put_together_are_the_whole(ls):
    whole = paths(ls(depth=3))
    pages, call = [], {"limit": 3, "depth": 3}
    while True:
        result = ls(**call)
        pages += paths(result)
        assert result.total == len(whole)
        if result.next is None:
            break
        assert result.truncated
        assert result.next["name"] == "ls"
        assert f"offset={result.next['arguments']['offset']}" in result.text
        call = result.next["arguments"]
    assert pages == whole


def test_the_next_call_repeats_only_what_is_not_the_default(ls):
    assert ls(limit=2).next == {"name": "ls", "arguments": {"limit": 2, "offset": 2}}


def test_links_are_shown_with_their_target(ls, tmp_path):
    os.symlink("a", tmp_path / "link")
    os.symlink("/etc", tmp_path / "out")
    result = ls()
    by_name = {entry.name: entry for entry in result.entries}
    assert (by_name["link"].type, by_name["link"].is_dir, by_name["link"].target) == ("symlink", True, "a")
    assert (by_name["out"].is_dir, by_name["out"].target) == (False, None)
    assert "link -> a" in result.text
    assert "/etc" not in result.text


def test_a_link_has_the_size_of_the_file_that_it_leads_to(ls, tmp_path):
    (tmp_path / "text").write_text("12345")
    for name, target in (
        ("one", "text"),
        ("two", "one"),
        ("dir", "a"),
        ("nowhere", "none"),
        ("out", "/etc/passwd"),
    ):
        os.symlink(target, tmp_path / name)
    sizes = {entry.name: entry.size for entry in ls().entries}
    assert [sizes[name] for name in ("one", "two", "dir", "nowhere", "out")] == [5, 5, None, None, None]
    with Workspace(tmp_path, policy=Policy(symlinks="never")) as ws:
        assert {entry.name: entry.size for entry in ws.ls().entries}["one"] is None


def test_special_files_are_listed_and_marked(ls, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    result = ls()
    assert "pipe  (special file)" in result.text
    assert result.entries[-1].type == "other"


def test_an_empty_directory_says_so(ls, tmp_path):
    (tmp_path / "a" / "x").unlink()
    result = ls("a")
    assert (result.entries, result.total, result.text) == ([], 0, "a: empty.")


def test_a_directory_of_hidden_names_is_not_called_empty(ls, tmp_path):
    (tmp_path / "a" / "x").rename(tmp_path / "a" / ".x")
    assert ls("a").text.startswith("a: nothing to show.\n[left out: 1 hidden")


def test_a_name_cannot_forge_a_line(ls, tmp_path):
    (tmp_path / "a" / "one\n[0 entries]\x1b").touch()
    (tmp_path / "a" / os.fsdecode(b"caf\xe9")).touch()
    lines = ls("a").text.split("\n")
    assert lines == ["a/caf\\xe9", "a/one⟦U+000A⟧[0 entries]⟦U+001B⟧", "a/x"]


def test_sizes_are_shown_from_100_kb_on_or_if_sorted_by_size(ls, tmp_path):
    (tmp_path / "a" / "large").write_bytes(b"x" * 100 * 1024)
    (tmp_path / "a" / "small").write_bytes(b"x" * (100 * 1024 - 1))
    assert ls("a").text.split("\n")[:3] == ["a/large  100 KB", "a/small", "a/x"]
    assert ls("a", sort="size").text.split("\n")[:3] == ["a/large  100 KB", "a/small  100 KB", "a/x  5 B"]


def test_regression_a_listing_of_110_files_costs_at_most_686_tokens(tmp_path):
    names = sorted(name for name in os.listdir(os.path.dirname(encodings.__file__)) if name[-3:] == ".py")
    for number, name in enumerate(names[:110]):
        (tmp_path / name).write_text("x" * 97 * number)
    with Workspace(tmp_path) as ws:
        assert estimate_tokens(ws.ls().text) <= 686
        assert len(ws.ls().entries) == 110


@pytest.mark.parametrize(("arguments", "code"), [
    ({"path": "no"}, "not_found"),
    ({"path": "a.txt"}, "not_a_directory"),
    ({"path": ".."}, "outside_workspace"),
    ({"depth": -1}, "invalid_argument"),
    ({"limit": 0}, "invalid_argument"),
    ({"offset": -1}, "invalid_argument"),
    ({"offset": 4}, "past_end"),
])  # fmt: skip
def test_bad_arguments_are_typed_errors_with_a_way_out(ls, arguments, code):
    with pytest.raises(AgentFSError) as caught:
        ls(**arguments)
    assert caught.value.code == code
    assert caught.value.hint


def test_hidden_does_not_affect_ignored_names(ls):
    assert paths(ls(hidden=True)) == ["a", "b", ".gitignore", ".hid", "Z.txt", "a.txt"]
    assert paths(ls(hidden=False, include_ignored=True)) == ["a", "b", "Z.txt", "a.txt", "x.log"]


def test_ignore_excludes_entries_and_does_not_enter_such_directories(ls):
    assert paths(ls(depth=0, ignore="*.txt")) == ["a", "a/x", "b", "b/c", "b/z.py"]
    assert paths(ls(depth=0, ignore=["b/", "/a.txt"])) == ["a", "a/x", "Z.txt"]


def test_sort_orders_each_directory(ls, tmp_path):
    for age, name in enumerate(("a.txt", "b/c", "Z.txt", "b/z.py", "a", "b")):
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    (tmp_path / "Z.txt").write_text("x" * 10)
    os.utime(tmp_path / "Z.txt", (2, 2))
    assert paths(ls(sort="modified")) == ["a", "b", "a.txt", "Z.txt"]
    assert paths(ls(sort="size")) == ["a", "b", "Z.txt", "a.txt"]
    assert ls(sort="size", limit=1).next == {
        "name": "ls",
        "arguments": {"limit": 1, "sort": "size", "offset": 1},
    }
    assert paths(ls(sort="size", limit=1, offset=2)) == ["Z.txt"]


def test_several_paths_list_each_entry_once(ls):
    assert paths(ls(["b", "b/c", "b"], depth=0)) == ["b/c", "b/c/deep.txt", "b/z.py"]
    assert paths(ls(["b/c", "."])) == ["b/c/deep.txt", "a", "b", "Z.txt", "a.txt"]
    assert ls([".", "."]).skipped == ls().skipped


def test_a_page_of_many_entries_equals_that_part_of_the_full_list(ls, tmp_path):
    for number in range(50):
        (tmp_path / "a" / f"{number:02}").touch()
    whole = paths(ls("a"))
    assert paths(ls("a", limit=5, offset=20)) == whole[20:25]
    assert ls("a", limit=5).total == 51


@pytest.mark.parametrize("watch", [False, True])
def test_a_directory_whose_entries_are_all_left_out_is_not_called_empty(tmp_path, watch):
    for name in ("d/a.py", "d/b.py", "d/sub/c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "empty").mkdir()
    with Workspace(tmp_path, watch=watch) as ws:
        assert ws.ls("d", ignore="*").text == "d: nothing to show with this ignore."
        assert ws.ls("d", depth=0, ignore=["*.py", "sub/"]).text.endswith("nothing to show with this ignore.")
        assert ws.ls("empty").text == "empty: empty."
        both = ws.ls(["d", "empty"], ignore="*")
        assert both.text == "d, empty: nothing to show with this ignore."


def all_pages(ws, **arguments):
    """Follow `next` to the end; return the first page, the paths of all pages and their number."""
    first = result = ws.ls(**arguments)
    found = [each.path for each in result.entries]
    pages = 1
    while result.next is not None:
        result = ws.ls(**result.next["arguments"])
        found += [each.path for each in result.entries]
        pages += 1
    return first, found, pages


def everything(top):
    return sorted(str(path.relative_to(top)) for path in top.rglob("*"))


@pytest.mark.parametrize("limit", [1, 3, 7, 20, 100])
@pytest.mark.parametrize("seed", range(4))
def test_following_all_pages_of_all_levels_gives_each_entry_once(tmp_path, limit, seed):
    rng = random.Random(seed)
    directories = [tmp_path]
    for number in range(80):
        path = rng.choice(directories) / f"n{number}"
        if rng.random() < 0.3:
            path.mkdir()
            directories.append(path)
        else:
            path.touch()
    with Workspace(tmp_path) as ws:
        first, found, _ = all_pages(ws, depth=0, limit=limit)
        assert sorted(found) == everything(tmp_path)
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


def test_regression_every_listing_of_many_paths_names_a_shared_directory_once(tmp_path):
    for number in range(200):
        path = tmp_path / f"frontend/packages/package-{number:03}/index.ts"
        path.parent.mkdir(parents=True)
        path.write_text("value\n")
    with Workspace(tmp_path) as ws:
        for result in (
            ws.glob("*.ts"),
            ws.grep("value", output_mode="files_with_matches"),
            ws.grep("value", output_mode="count"),
        ):
            assert result.text.startswith("frontend/packages/\n package-000/index.ts")
            assert result.text.count("frontend/packages/") == 1
        assert ws.ls("frontend/packages").text.startswith("frontend/packages/:\n package-000/\n")
        assert ws.ls(depth=3).text.startswith("frontend/\n packages/\n  package-000/\n")
