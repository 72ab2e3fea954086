"""Ignore rules, judged by git."""

import subprocess

import pytest
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern
from wcmatch import glob

from agentfs.tree.gitignore import IgnoreRules, Sources
from tests.conftest import needs, program
from tests.kit import put
from tests.tree.judges import git, git_files, walked_files

pytestmark = needs("git")

RULES = {".gitignore", ".ignore"}


@pytest.fixture
def repository(tmp_path):
    git(tmp_path, "init", "-q")
    return lambda files: put(tmp_path, files)


# Lines that pathspec 1.1 reads otherwise than git does, which wcmatch therefore translates.
KINDS = {
    "a named class": ("[[:digit:]]x\n", ["1x", "ax", ":]x"]),
    "the class of spaces": ("[[:space:]]x\n", [" x", "\tx", "\vx", "\fx", "ax"]),
    "an escape in a class": ("[\\]a]x\n", ["]x", "ax", "\\a]x"]),
    "an escaped hyphen in a class": ("[a\\-c]x\n", ["-x", "bx", "cx"]),
    "a slash in a class": ("x[a/b]y\n", ["xay", "xby", "x[a/b]y"]),
    "a negated class before a slash": ("x[!a]y/b\n", ["x/y/b", "xby/b", "xay/b"]),
    "a reversed range": ("[b-a]x\n", ["ax", "bx"]), "three stars": ("***/A\n", ["A", "d/A", "d/e/A"]),
    "two stars behind a plain beginning": ("d/f**/x\n", ["d/fx", "d/f/x", "d/fa/b/x", "d/g/x"]),
    "an escaped slash": ("a\\/b\n", ["a/b", "c/a/b"]),
    "two stars before an escaped slash": ("**\\/x\na/**\\/b\n", ["x", "a/x", "a/b", "a/c/b"]),
    "a backslash at the end": ("a\\\n", ["a", "a\\"]), "a lone exclamation mark": ("a\n!\n", ["a", "!"]),
    "two stars at the end": ("d/**\n!d/e\n", ["d/e", "d/f"]), "a tab at the end": ("a?\t\n", ["ab", "ab\t"]),
    "a no-break space at the end": ("a?\u00a0\n", ["ab", "ab\u00a0"]),
}  # fmt: skip


AS_GIT = {
    "*.py[co]": ["a.pyc", "a.py", "d/a.pyo"], "f*o": ["foo", "fo", "d/fxo/a", "of"],
    "doc/*.tm?": ["doc/a.tmp", "a.tmp", "doc/e/a.tmp"], "**/d/x?": ["d/xa", "a/d/xa", "xa", "d/e/xa"],
    "d/**/x?": ["d/xa", "d/e/f/xa", "e/d/xa"], "d/*": ["d/a", "d/e/a", "a"],
    "[a-z]\\*?/": ["a*x/a", "A*x/a", "axx/a"], "?[b]a": ["bba", "bba\n", "ba"],
}  # fmt: skip


@pytest.mark.parametrize("case", [*KINDS, *AS_GIT])
def test_git_agrees_and_only_one_of_two_libraries_translates(repository, monkeypatch, case):
    """pathspec translates what it reads as git does, and wcmatch the rest."""
    rules, names = KINDS.get(case) or (f"{case}\n", AS_GIT[case])
    owner, name = (GitIgnoreSpecPattern, "pattern_to_regex") if case in KINDS else (glob, "translate")
    monkeypatch.setattr(owner, name, None)
    top = repository({**dict.fromkeys(names, ""), ".gitignore": rules})
    assert sorted(walked_files(top, RULES)) == git_files(top)


@needs("rg")
def test_an_ignore_file_outranks_every_gitignore(tmp_path):
    put(tmp_path, {".ignore": "!a.x\nc\n", "d/.gitignore": "*.x\n!c\n", "d/a.x": "", "d/b.x": "", "d/c": ""})
    ours = walked_files(tmp_path, hidden=False)
    rg = [program("rg"), "--files", "--no-require-git", "--no-ignore-parent", "--no-ignore-global"]
    judged = subprocess.run(rg, cwd=tmp_path, capture_output=True, check=True, text=True).stdout.split()
    assert ours == judged == ["d/a.x"]


def test_each_exclusion_names_the_rule_that_git_names(repository):
    top = repository({".gitignore": "# made\n\n*.log\n/out/\n", "src/.gitignore": "!keep.log\ntmp*\n"})
    names = ["a.log", "out", "src/tmp1", "src/b.log"]
    put(top, dict.fromkeys(["out/x", "src/keep.log", *({*names} - {"out"})], ""))
    rules = IgnoreRules().enter("", Sources((top / ".gitignore").read_bytes()))
    below = rules.enter("src/", Sources((top / "src/.gitignore").read_bytes()))
    for line in git(top, "check-ignore", "-v", *names).splitlines():
        source, path = line.split("\t")
        directory, slash, name = path.rpartition("/")
        rule = (below if slash else rules).match(directory + slash, name, is_dir=name == "out")
        file, number, pattern = source.split(":", 2)
        assert rule.text(str) == f"{file}:{number} {pattern}"
    assert below.match("src/", "keep.log", is_dir=False).negated


@pytest.mark.parametrize("line", [
    "*a" * 100 + "b", "**/a/" * 60 + "b", "a**/" * 60 + "b", "**\\/" * 60 + "b", "**/" + "*a/" * 60 + "b",
    "*a/" * 100 + "**/" + "?*/" * 60 + "b", "[" + "a" * 60_000 + "]b", "[[:" * 20_000, "[[:" * 20_000 + "]",
])  # fmt: skip
def test_a_hostile_rule_takes_no_time(line):
    rules = IgnoreRules().enter("", Sources(line.encode()))
    assert rules.match("a/" * 200, "a" * 250, is_dir=False) is None
