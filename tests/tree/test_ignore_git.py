"""The walk beside `git ls-files -co --exclude-standard`, on random trees with hostile rules.

Trees lie side by side in one repository, so that git is asked once for many. In every other one there are
rules around them too, in the directory above, in `info/exclude` and in the user's global excludes; there each
tree is also walked as a root of its own, for which those rules come from outside.
"""

import os
import random
import shutil
import tempfile
from itertools import product
from pathlib import Path

import pytest

from agentfs.tree.gitignore import IgnoreRules, Sources
from tests.conftest import needs
from tests.kit import put
from tests.tree.judges import git, git_files, walked_files

pytestmark = needs("git")

NAMES = [
    *("a", "b", "ab", "a.c", "b.o", "foo", "bar", "foo.o", "x y", "a ", "[a]", "é", "-", "!a", "#b", "a\\b")
]
NAMES += [".x", ".a.c", "A", "a*", os.fsdecode(b"\xe9"), "a.c.o", "]", "foo bar.o"]
PARTS = [
    *("a", "b", "ab", "foo", "bar", "x y", "é", "\\a", "\\*", "a\\", "a\\ ", "\\!a", "\\#b", "a\\\\b", "A"),
    *("*", "?", "*.o", "*.c", "f*", "*o", "a*b", "f?o*", "*a*b*", "?\\?", "**", "***", "foo**", "**foo"),
    *("[ab]", "[!a]", "[^a-c]", "[[:alpha:]]", "[a", "[]a]", "[a-]", "[a/b]", "[é]", "[[:foo:]]", "[[:al]"),
    *("[\\]a]", "[b-a]", "[a\\-c]", ".*", ".x", "*.c.o", "[[:punct:]]*", "[!.]*", "??", "a[*]", "\\[a]"),
    "*\\ ",
]  # fmt: skip
ODD_LINES = [
    "", "#x", "/", "!", "//", "\\", "!/", "**/", "/**", "a//b", "  ", "!*", "/*", "*/", "!*/", "\t", "./a",
]  # fmt: skip
ODD_LINES += ["a/."]


@pytest.fixture
def memory():
    """A directory that is on no disk, where there is one: the trees are many and live for a moment."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as path:
        yield Path(path)


def random_line(rng):
    if rng.random() < 0.06:
        return rng.choice(ODD_LINES)
    line = "/".join(rng.choice(PARTS) for _ in range(rng.choice([1, 1, 1, 2, 2, 3])))
    line = ("/" if rng.random() < 0.2 else "") + line + ("/" if rng.random() < 0.3 else "")
    line += "**" if rng.random() < 0.05 else ""
    line = ("!" if rng.random() < 0.35 else "") + line
    return line + (rng.choice([" ", "  ", "\\ ", "\t", "\\", " \r"]) if rng.random() < 0.1 else "")


def random_rules(rng, most=6):
    end = rng.choice(["\n", "\n", "\r\n"])
    text = end.join(random_line(rng) for _ in range(rng.randint(1, most)))
    text = ("\ufeff" if rng.random() < 0.05 else "") + text + (end if rng.random() < 0.7 else "")
    return text.encode() + (b"\xe9\n" if rng.random() < 0.03 else b"")


def write(path, content=b""):
    with open(path, "wb") as file:
        file.write(content)


def random_tree(rng, top):
    os.mkdir(top)
    directories = [""]
    for _ in range(rng.randint(2, 14)):
        path = rng.choice(directories) + rng.choice(NAMES)
        full = os.path.join(top, path)
        if os.path.lexists(full):
            continue
        kind = rng.random()
        if kind < 0.5:
            os.mkdir(full)
            directories.append(path + "/")
        elif kind < 0.53:
            os.symlink(rng.choice(NAMES), full)
        else:
            write(full)
    for directory in directories:
        for _ in range(rng.randint(0, 3)):
            full = os.path.join(top, directory + rng.choice(NAMES))
            if not os.path.lexists(full):
                write(full)
    for directory in directories:
        if directory == "" or rng.random() < 0.3:
            write(os.path.join(top, directory, ".gitignore"), random_rules(rng))


def make_repository(base):
    for name in ("objects", "refs", "info"):
        os.makedirs(f"{base}/.git/{name}")
    write(f"{base}/.git/HEAD", b"ref: refs/heads/main\n")


# Whatever might match a slash: negated and named classes, ranges across it, wildcards, escapes.
MAY_MATCH_A_SLASH = [
    *("?", "*", "**", "/", "/", "\\/", "[!a]", "[^a]", "[!a-z]", "[^]]", "[!]a]", "[!!]", "[^^]", "[!\\a]"),
    *("[+-0]", "[.-0]", "[,-/]", "[/-0]", "[ -~]", "[!-~]", "[!0-9]", "[/]", "[a/]", "[!/]", "[\\/]"),
    *("[[:punct:]]", "[[:graph:]]", "[[:print:]]", "[![:alpha:]]", "[^[:alnum:]]", "[[:punct:][:alpha:]]"),
    *("[a-", "[!", "[[:punct:]", "[!a-]", "[^-]", "[.-]", "[b-/]", "[0-+]", "\\?", "\\[!a]", "[!a]*", "?*"),
    "[^\\/]",
]  # fmt: skip
SLASH_PATHS = ["x/y", "xy", "x/y/b", "x-y/b", "xay/b", "x/b", "b/x/y", "-/-", "x.y/b", "a/x/y/b", "[!a]/b"]


def ignored(rules, path):
    """Return True if our rules ignore a file, or a directory above it."""
    parts = path.split("/")
    for count in range(1, len(parts) + 1):
        directory = "".join(f"{part}/" for part in parts[: count - 1])
        rule = rules.match(directory, parts[count - 1], is_dir=count < len(parts))
        if rule is not None and not rule.negated:
            return True
    return False


def slash_disagreements(seed, count, memory):
    """The patterns and paths on which git thinks otherwise; git need not have the files to judge them."""
    rng = random.Random(seed)
    make_repository(memory)
    patterns = []
    for number in range(count):
        path, odd = rng.choice(SLASH_PATHS), {"/": 0.4}
        chosen = (rng.choice(MAY_MATCH_A_SLASH) if rng.random() < odd.get(c, 0.25) else c for c in path)
        patterns.append("".join(chosen))
        os.mkdir(f"{memory}/{number}")
        write(f"{memory}/{number}/.gitignore", patterns[-1].encode() + b"\n")
    asked = [f"{number}/{path}" for number in range(count) for path in SLASH_PATHS]
    said = git(memory, "check-ignore", "--no-index", "--stdin", "-z", given=os.fsencode("\0".join(asked)))
    expected = set(said.split("\0"))
    rules = [IgnoreRules().enter("", Sources(pattern.encode())) for pattern in patterns]
    cases = product(range(count), SLASH_PATHS)
    judged = ((at, path, ignored(rules[at], path), f"{at}/{path}" in expected) for at, path in cases)
    return len(expected), [(patterns[at], path) for at, path, ours, theirs in judged if ours != theirs]


@pytest.mark.parametrize(("seed", "patterns"), [(5, 600), pytest.param(6, 30_000, marks=pytest.mark.long)])
def test_only_a_slash_and_two_stars_match_a_slash_as_with_git(memory, seed, patterns):
    count, wrong = slash_disagreements(seed, patterns, memory)
    assert count > patterns / 3
    assert wrong == []


def compare(seeds, memory, monkeypatch):
    """Compare trees, one for each seed; return how many."""
    compared = 0
    seeds = list(seeds)
    config, excludes = str(memory / "gitconfig"), str(memory / "excludes")
    write(config, f'[user]\n\tname = x\n[core] ; mine\n\texcludesFile = "{excludes}" # here\n'.encode())
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", config)
    while seeds:
        rng = random.Random(seeds[0])
        surrounded = seeds[0] % 2 == 1
        batch, seeds = seeds[: 9 if surrounded else 25], seeds[9 if surrounded else 25 :]
        base = str(memory / "base")
        make_repository(base)
        write(excludes, random_rules(rng, 2) if surrounded else b"")
        if surrounded:
            write(f"{base}/.gitignore", random_rules(rng, 3))
            write(f"{base}/.git/info/exclude", random_rules(rng, 2))
        for seed in batch:
            random_tree(random.Random(seed), f"{base}/t{seed}")
        judged = git_files(base, config=config)
        assert sorted(walked_files(base)) == judged, f"trees {batch}"
        if surrounded:
            names = [f"t{seed}" for seed in batch]
            # Git enters no ignored directory; a root is entered, whatever is said of it.
            ignored_trees = git(base, "check-ignore", "--no-index", *names, config=config).split()
            for name in {*names} - {*ignored_trees}:
                below = [path[len(name) + 1 :] for path in judged if path.startswith(f"{name}/")]
                assert sorted(walked_files(f"{base}/{name}")) == below, f"tree {name}, rules from outside"
        compared += len(batch)
        shutil.rmtree(base)
    return compared


@pytest.mark.parametrize(
    "count", [100, pytest.param(600, marks=pytest.mark.full), pytest.param(20_000, marks=pytest.mark.long)]
)
def test_git_agrees_on_random_trees(memory, monkeypatch, count):
    assert compare(range(count), memory, monkeypatch) == count


def test_regression_an_empty_part_after_two_stars_is_read_as_by_git(memory):
    """`aa**//f` matches only `aa/f`."""
    starts, ends = ("aa", "/aa", "aa/bb", "a?"), ("", "f", "*.o", "**/f", "x/", "/f")
    patterns = ["".join(each) for each in product(starts, ("**/", "***/", "*/"), ("", "/"), ends)]
    names = [
        "aa/f", "aab/f", "aa/x/f", "aa/x/x/f", "aa/f.o", "aa/bb/f", "aa/bb/x/f", "f", "x/aa/f", "aa/bbc/f",
    ]  # fmt: skip
    git(memory, "init", "-q")
    for number, pattern in enumerate(patterns):
        put(memory / str(number), {**dict.fromkeys(names, ""), ".gitignore": f"{pattern}\n"})
    listed = git_files(memory)
    walked = walked_files(memory, hidden=False)
    assert walked
    assert set(walked) == {path for path in listed if not path.endswith(".gitignore")}
