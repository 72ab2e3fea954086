"""Globs beside wcmatch, a matcher of another make, on random patterns and names."""

import random

import pytest
from wcmatch import glob as wcmatch

from agentfs.errors import AgentFSError
from agentfs.tree.globs import compile_descent, compile_globs

FLAGS = wcmatch.GLOBSTAR | wcmatch.BRACE | wcmatch.FORCEUNIX | wcmatch.CASE
ATOMS = [
    "a",
    "b",
    "ab",
    "*",
    "*",
    "?",
    "a*",
    "*b",
    "*.c",
    "[ab]",
    "[!a]",
    "[^b]",
    "[a-c]",
    ".a",
    "é",
    "\\*",
    "x y",
]
ATOMS += ["{a,b}", "{a,b*}", "*{.c,.d}", "[[:alpha:]]", "[]a]", "?[b-d]", "a.c", "{a,{b,ab}}", "-", "[!a-b]*"]
NAMES = [
    "a",
    "b",
    "ab",
    "ba",
    "abc",
    "a.c",
    "b.c",
    ".a",
    ".ab",
    "é",
    "*",
    "x y",
    "c",
    "aab",
    "b.d",
    "]",
    "-",
    "A",
    ".c",
]


def random_glob(rng):
    parts = [rng.choice(["**", *ATOMS]) for _ in range(rng.choice([1, 1, 2, 2, 3, 4]))]
    if rng.random() < 0.15:
        parts[rng.randrange(len(parts))] = rng.choice(ATOMS) + rng.choice(ATOMS)
    return ("/" if rng.random() < 0.1 else "") + "/".join(parts)


def judge(glob, *, hidden):
    """Return wcmatch's test; our rules about slashes are said in its language."""
    bound = glob.startswith("/")
    rest = glob.lstrip("/")
    judged = rest if bound or "/" in rest else f"**/{rest}"
    return wcmatch.compile(judged, flags=FLAGS | (wcmatch.DOTGLOB if hidden else 0)).match


def disagreements(seed, count):
    rng = random.Random(seed)
    compared, wrong = 0, []
    for _ in range(count):
        glob, hidden = random_glob(rng), rng.random() < 0.5
        try:
            ours = compile_globs([glob], hidden=hidden)
        except AgentFSError:
            continue
        theirs = judge(glob, hidden=hidden)
        for _ in range(8):
            path = "/".join(rng.choice(NAMES) for _ in range(rng.choice([1, 1, 2, 3, 4])))
            compared += 1
            if bool(ours(path)) != bool(theirs(path)):
                wrong.append((glob, hidden, path, ours(path)))
    return compared, wrong


def test_wcmatch_agrees_on_random_globs():
    compared, wrong = disagreements(1, 5000)
    assert compared > 35_000
    assert wrong == []


@pytest.mark.long
def test_wcmatch_agrees_on_many_random_globs():
    compared, wrong = disagreements(2, 200_000)
    assert compared > 1_000_000
    assert wrong == []


def test_a_directory_is_entered_whenever_a_match_lies_below():
    rng = random.Random(4)
    for _ in range(4000):
        globs = [random_glob(rng) for _ in range(rng.choice([1, 1, 2]))]
        anchored = rng.random() < 0.3
        matches = compile_globs(globs, anchored=anchored)
        enters = compile_descent(globs, anchored=anchored)
        for _ in range(10):
            parts = [rng.choice(NAMES) for _ in range(rng.choice([2, 3, 4]))]
            if enters is not None and matches("/".join(parts)):
                above = ["/".join(parts[:count]) for count in range(1, len(parts))]
                assert all(enters(directory) for directory in above), (globs, parts)


@pytest.mark.parametrize(
    ("glob", "entered", "not_entered"),
    [
        ("docs/**", ["docs", "docs/a/b"], ["src", "src/docs"]),
        ("docs/**/x/*.md", ["docs", "docs/a"], ["src"]),
        ("src/*/t.py", ["src", "src/a"], ["src/a/b", "lib"]),
        ("{a,b}/c/*", ["a", "b", "a/c"], ["c", "a/b", "a/c/d"]),
        ("/*.py", [], ["a"]),
        ("a*/**/b", ["a", "ab/x"], ["b"]),
        ("*.py", None, None),
        ("**/a/*.py", None, None),
    ],
)
def test_a_glob_says_which_directories_it_needs(glob, entered, not_entered):
    enters = compile_descent([glob])
    if entered is None:
        assert enters is None
        return
    assert enters is not None
    assert [path for path in entered if not enters(path)] == []
    assert [path for path in not_entered if enters(path)] == []
