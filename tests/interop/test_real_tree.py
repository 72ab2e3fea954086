"""The seven methods on a real third-party tree, against figures that git and grep give independently."""

import subprocess

import pytest

from agentfs import Limits, Workspace

pytestmark = [pytest.mark.network, pytest.mark.full]


def run(tree, *command: str) -> bytes:
    return subprocess.run(command, cwd=tree, capture_output=True, check=False).stdout


def names(tree, *options: str) -> list[str]:
    return [name.decode() for name in run(tree, "git", "ls-files", "-z", *options).split(b"\0") if name]


@pytest.fixture(scope="module")
def listed(django):
    return names(django, "-co", "--exclude-standard")


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
    expected = {path for path in names(django, "--", spec) if not hidden(path)}
    assert {entry.path for entry in wide.glob(pattern).files} == expected


def test_ls_lists_the_whole_tree(wide, listed):
    entries = wide.ls(depth=0).entries
    assert {entry.path for entry in entries if entry.type == "file"} == {p for p in listed if not hidden(p)}


@pytest.mark.parametrize(("pattern", "flags"), [
    ("get_queryset", "-F"), ("deprecat", "-i"), (r"^\s+return None$", "-P"),
    (r"class [A-Za-z_]+\(models\.Model\)", "-P"),  # no \w, which is ASCII's in git
])  # fmt: skip
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
