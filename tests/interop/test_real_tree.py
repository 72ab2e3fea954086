"""The seven methods on a real third-party tree, against figures that git and grep give independently."""

import subprocess
from collections import Counter

import pytest

from agentfs import AgentFSError, Edit, Limits, Workspace

pytestmark = [pytest.mark.network, pytest.mark.full]


def run(tree, *command: str) -> bytes:
    return subprocess.run(command, cwd=tree, capture_output=True, check=False).stdout


@pytest.fixture(scope="module")
def listed(django):
    return [
        name.decode()
        for name in run(django, "git", "ls-files", "-z", "-co", "--exclude-standard").split(b"\0")
        if name
    ]


@pytest.fixture(scope="module")
def wide(django):
    limits = Limits(list_entries=100_000, glob_results=100_000, grep_results=100_000)
    with Workspace(django, limits=limits) as workspace:
        yield workspace


def hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


def test_glob_finds_what_git_lists(wide, listed):
    found = [entry.path for entry in wide.glob("**").files]
    assert found == sorted((path for path in listed if not hidden(path)), key=lambda path: path.split("/"))


@pytest.mark.parametrize("pattern", ["*.py", "django/db/**/*.py", "**/test_*.py", "setup.*", "docs/*/*.txt"])
def test_glob_patterns_agree_with_git(wide, django, pattern):
    spec = f":(glob){pattern}" if "/" in pattern else f":(glob)**/{pattern}"
    expected = {
        name.decode() for name in run(django, "git", "ls-files", "-z", "--", spec).split(b"\0") if name
    }
    assert {entry.path for entry in wide.glob(pattern).files} == {
        path for path in expected if not hidden(path)
    }


def test_ls_lists_the_whole_tree(wide, listed):
    entries = wide.ls(depth=0).entries
    assert {entry.path for entry in entries if entry.type == "file"} == {p for p in listed if not hidden(p)}


@pytest.mark.parametrize(
    ("pattern", "flags"),
    [
        ("get_queryset", "-F"),
        (r"class [A-Za-z_]+\(models\.Model\)", "-P"),  # no \w, which is ASCII's in git
        ("deprecat", "-i"),
        (r"^\s+return None$", "-P"),
    ],
)
def test_grep_agrees_with_git_grep(wide, django, pattern, flags):
    printed = run(django, "git", "grep", "-I", "-c", flags, "-e", pattern, "--", ":(exclude,glob)**/.*")
    expected = {}
    for line in printed.decode().splitlines():
        path, _, count = line.rpartition(":")
        expected[path] = int(count)
    result = wide.grep(pattern, output_mode="count", ignore_case=flags == "-i")
    found = {path: count.lines for path, count in result.counts.items()}
    assert found == expected
    assert result.exact
    assert result.total_lines == sum(expected.values())
    assert result.total_files == len(expected)


def test_grep_content_agrees_with_gnu_grep(wide, django):
    printed = run(django, "grep", "-rnIF", "--include=*.py", "ImproperlyConfigured(", "django").decode()
    expected = []
    for line in printed.splitlines():
        path, number, text = line.split(":", 2)
        expected.append((path, int(number), text))
    result = wide.grep(r"ImproperlyConfigured\(", path="django", glob="*.py")
    assert sorted((match.path, match.line, match.text) for match in result.matches) == sorted(expected)


def test_read_pages_put_together_are_the_files(django, listed):
    with Workspace(django, limits=Limits(read_lines=300, read_bytes=10_000)) as ws:
        checked = Counter()
        for path in listed[::97]:
            raw = (django / path).read_bytes()
            result = ws.read(path)
            checked[result.kind] += 1
            if result.kind != "text" or result.total_lines == 0:
                continue
            pages = [result]
            while pages[-1].next is not None:
                pages.append(ws.read(**pages[-1].next["arguments"]))
            text = "".join(page.content for page in pages)
            if result.encoding == "utf-8" and not result.bom:
                assert text.encode() == raw
                assert result.total_lines == len(raw.splitlines())
        assert checked["text"] > 30


def test_edit_changes_what_git_diff_says_and_no_more(django):
    path = "django/apps/registry.py"
    original = (django / path).read_bytes()
    try:
        with Workspace(django) as ws:
            ws.edit(path, "class Apps:", "class Applications:")
            ws.multi_edit(
                path,
                [
                    Edit("import functools", "import functools as f"),
                    Edit("class Applications:", "class Apps:"),
                ],
            )
            with pytest.raises(AgentFSError):
                ws.edit(path, "self", "this")
        assert run(django, "git", "diff", "--numstat", "--", path).split() == [b"1", b"1", path.encode()]
        assert b"+import functools as f" in run(django, "git", "diff", "--", path)
    finally:
        (django / path).write_bytes(original)


def test_write_over_what_was_read_is_what_git_sees(django):
    path = "django/apps/__init__.py"
    original = (django / path).read_bytes()
    try:
        with Workspace(django) as ws:
            text = ws.read(path).content
            ws.write(path, text + "# end\n")
        assert run(django, "git", "diff", "--numstat", "--", path).split() == [b"1", b"0", path.encode()]
    finally:
        (django / path).write_bytes(original)
