"""Searches of a real third-party tree, against figures that git gives independently."""

import subprocess

import pytest

from agentfs import Limits, Workspace

pytestmark = [pytest.mark.network, pytest.mark.full]


def by_git(tree, *command):
    """Return the lines that git prints, without those of hidden files."""
    git = ["git", "-c", "core.quotePath=false"]
    printed = subprocess.run([*git, *command], cwd=tree, capture_output=True, text=True, check=False).stdout
    return [line for line in printed.splitlines() if not line.startswith(".") and "/." not in line]


@pytest.fixture(scope="module")
def wide(django):
    limits = Limits(list_entries=100_000, glob_results=100_000, grep_results=100_000)
    with Workspace(django, limits=limits) as workspace:
        yield workspace


def test_glob_and_ls_find_what_git_lists(wide, django):
    listed = by_git(django, "ls-files", "-co", "--exclude-standard")
    assert [entry.path for entry in wide.glob("**").files] == sorted(listed, key=lambda path: path.split("/"))
    assert {entry.path for entry in wide.ls(depth=0).entries if entry.type == "file"} == {*listed}


@pytest.mark.parametrize("pattern", ["*.py", "django/db/**/*.py", "**/test_*.py", "setup.*", "docs/*/*.txt"])
def test_glob_patterns_agree_with_git(wide, django, pattern):
    spec = f":(glob){pattern}" if "/" in pattern else f":(glob)**/{pattern}"
    assert {entry.path for entry in wide.glob(pattern).files} == {*by_git(django, "ls-files", "--", spec)}


@pytest.mark.parametrize(("pattern", "flags"), [
    ("get_queryset", "-F"), ("deprecat", "-i"), (r"^\s+return None$", "-P"),
    (r"class [A-Za-z_]+\(models\.Model\)", "-P"),  # no \w, which is ASCII's in git
])  # fmt: skip
def test_grep_agrees_with_git_grep(wide, django, pattern, flags):
    counts = [line.rpartition(":") for line in by_git(django, "grep", "-I", "-c", flags, "-e", pattern)]
    expected = {path: int(count) for path, _, count in counts}
    result = wide.grep(pattern, output_mode="count", ignore_case=flags == "-i")
    assert {path: count.lines for path, count in result.counts.items()} == expected
    assert (result.exact, result.total_lines, result.total_files) == (
        True,
        sum(expected.values()),
        len(expected),
    )
