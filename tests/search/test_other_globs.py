"""Globs that are read as lists, literally, or from the root, because they match nothing as they are."""

import pytest

from agentfs import Workspace
from tests import kit
from tests.kit import put

FILES = ("src/a.c", "src/core/b.c", "src/web/c.h", "lib/d.c", "x.json", "y.md", "app/[id]/page.tsx", "i.py")


@pytest.fixture
def ws(tmp_path, ws):
    put(tmp_path, FILES, "value\n")
    return ws


def found_by_each(ws, glob, path="."):
    """Search with each method, check that they find the same files, and return these and the texts."""
    results = [
        ws.glob(glob, path),
        kit.find(ws, path, glob=glob, types="f"),
        ws.grep("value", path, glob, output_mode="files_with_matches"),
        ws.replace("value", "other", path, glob, preview=True),
    ]
    found = [[each.path for each in result.files] for result in results[:2]]
    found += [list(results[2].counts), list(results[3].files)]
    assert found[1:] == found[:-1]
    return found[0], [result.text for result in results]


@pytest.mark.parametrize(("path", "glob", "files"), [
    ("src", "src/**/*.c", ["src/a.c", "src/core/b.c"]),
    ("src", "/src/*.c", ["src/a.c"]),
    ("src", "./src/*.c", ["src/a.c"]),
    ("src/core", "src/core/b.c", ["src/core/b.c"]),
    ("src", "**/src/*.c", ["src/a.c"]),
    ("src", "{src,lib}/*.c", ["src/a.c"]),
    ("src", "*/core/", ["src/core/b.c"]),
    ("app/[id]", "app/[id]/*.tsx", ["app/[id]/page.tsx"]),
])  # fmt: skip
def test_regression_a_glob_that_matches_nothing_below_the_path_is_tried_from_the_root(ws, path, glob, files):
    found, texts = found_by_each(ws, glob, path)
    assert found == files
    assert all(f"matched from the root, as nothing matches below {path}: " in text for text in texts)


LISTS = ["*.json,*.md", "*.json|*.md", "*.json, *.md", "{*.json},[xy].md", "*.json *.md", "*.json  y.*"]


@pytest.mark.parametrize(("glob", "path", "files"), [
    *((glob, ".", ["x.json", "y.md"]) for glob in LISTS),
    ("!*.json,*.md", ".", ["app/[id]/page.tsx", "i.py", "lib/d.c", "src/a.c", "src/core/b.c", "src/web/c.h"]),
    ("src/*.c,*.h", "src", ["src/a.c", "src/web/c.h"]),
    ("!src/core/**", "src", ["src/a.c", "src/web/c.h"]), (["*.c", "!src/core"], "src", ["src/a.c"]),
    ("x.json y.md", ".", ["x.json y.md"]),  # the name of a file
])  # fmt: skip
def test_regression_a_glob_with_commas_bars_or_spaces_is_a_list(ws, tmp_path, glob, path, files):
    if files == [glob]:
        put(tmp_path, files, "value\n")
    found, texts = found_by_each(ws, glob, path)
    assert found == files
    assert not any("taken" in text for text in texts)
    said = "matched from the root, as nothing matches below src: src/*.c"
    assert all((said in text) is (glob == "src/*.c,*.h") for text in texts)


def test_regression_a_name_with_braces_is_found(ws, tmp_path):
    """`{rule}` was read as a choice with one item."""
    put(tmp_path, ["rules/{rule}-a.md"], "value\n")
    assert found_by_each(ws, "rules/{rule}*.md")[0] == ["rules/{rule}-a.md"]


@pytest.mark.parametrize("glob", ["app/[id]/*.tsx", "app/[id]/page.tsx", "**/[id]/*", "[id]/**/page.tsx"])
def test_regression_a_name_in_brackets_is_found(ws, tmp_path, glob):
    path = "app" if glob.startswith("[") else "."
    found, texts = found_by_each(ws, glob, path)
    assert found == ["app/[id]/page.tsx"]
    assert all("brackets taken literally: " in text for text in texts)
    (tmp_path / "app/i").mkdir()
    (tmp_path / "app/i/page.tsx").write_text("value\n")
    found, texts = found_by_each(ws, glob, path)
    assert found == ["app/i/page.tsx"]
    assert not any("literally" in text for text in texts)


@pytest.mark.parametrize(
    ("name", "path", "glob"),
    [("src/src/a.c", "src", "src/*.c"), ("a,b.py", ".", "*,b.py"), ("x|y", ".", "x|y")],
)
def test_a_glob_that_matches_as_it_is_has_no_other_reading(ws, tmp_path, name, path, glob):
    put(tmp_path, [name], "value\n")
    assert [each.path for each in ws.glob(glob, path, include_ignored=True).files] == [name]
    assert "from the root" not in ws.glob(glob, path).text
    assert "list" not in ws.glob(glob, path).text


@pytest.mark.parametrize("glob", ["lib/*.c", "core/*.c,nothing", "none/**", "*.c/x", "src", "[ab].c"])
def test_no_other_reading_leaves_the_search_directory(ws, glob):
    result = ws.glob(glob, "src")
    assert all(each.path.startswith("src/") for each in result.files)
    assert "from the root" not in result.text


def test_exclusions_and_ignored_entries_are_tried_from_the_root(ws):
    assert [each.path for each in ws.glob("*.c", "src", exclude="src/core").files] == ["src/a.c"]
    assert [each.path for each in ws.ls("src", ignore="src/core,src/web").entries] == ["src/a.c"]
    assert ws.grep("value", "src", exclude="src/**").total_lines == 0
    # It was read below `src` as an empty glob, which is an error.
    assert [each.path for each in ws.glob("a.c", "src", exclude="src/").files] == ["src/a.c"]


def test_the_next_page_keeps_the_glob_as_given(ws):
    first = ws.grep("value", "src", "src/**/*.c", limit=1)
    assert first.next["arguments"]["glob"] == "src/**/*.c"
    second = ws.grep(**first.next["arguments"])
    assert [match.path for match in (*first.matches, *second.matches)] == ["src/a.c", "src/core/b.c"]


def test_regression_a_glob_of_two_names_is_not_advised_another_suffix(tmp_path):
    """`glob("a b.txt")` advised to search for `a b.*`."""
    for name in ("a", "b.txt"):
        (tmp_path / name).touch()
    with Workspace(tmp_path) as ws:
        assert [each.path for each in ws.glob("a b.txt").files] == ["a", "b.txt"]
        assert ws.glob("c d.txt").text == "0 files match c d.txt."
