"""Globs beside those of bash, on random patterns and a tree."""

import os
import random
import subprocess

import pytest

from agentfs.tree.globs import compile_descent, compile_globs
from tests.conftest import needs, part_or_all

ATOMS = [
    "a", "b", "ab", "*", "*", "?", "a*", "*b", "*.c", "[ab]", "[!a]", "[^b]", "[a-c]", ".a", "\\*", "x y",
]  # fmt: skip
ATOMS += ["{a,b}", "{a,b*}", "*{.c,.d}", "[[:alpha:]]", "[]a]", "?[b-d]", "a.c", "{a,{b,ab}}", "-", "[!a-b]*"]
NAMES = [
    "a", "b", "ab", "ba", "abc", "a.c", "b.c", ".a", ".ab", "*", "x y", "c", "aab", "b.d", "]", "-", "A",
    ".c",
]  # fmt: skip


def random_glob(rng):
    parts = [rng.choice(["**", *ATOMS]) for _ in range(rng.choice([1, 1, 2, 2, 3, 4]))]
    if rng.random() < 0.15:
        parts[rng.randrange(len(parts))] = rng.choice(ATOMS) + rng.choice(ATOMS)
    return ("/" if rng.random() < 0.1 else "") + "/".join(parts)


DIRECTORIES = ["a", "ab", ".a", "x y", "b.d", "*"]
TREE = [*NAMES, *(f"{a}/{b}" for a in DIRECTORIES for b in NAMES)]
TREE += [f"{a}/{b}/{c}" for a in DIRECTORIES for b in DIRECTORIES for c in NAMES]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    top = tmp_path_factory.mktemp("tree")
    for path in TREE:
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        if path in DIRECTORIES or (path.count("/") == 1 and path.rpartition("/")[2] in DIRECTORIES):
            (top / path).mkdir(exist_ok=True)
        else:
            (top / path).touch()
    return top


def matched_by_bash(globs, top, *, hidden):
    """Return what bash expands each glob to; our rules about slashes are written in its language."""
    words = [glob.lstrip("/") if "/" in glob else f"**/{glob}" for glob in globs]
    # To bash, `a*/**` is the directory as well.
    words = [f"{word}/*" if word.endswith("/**") else word for word in words]
    lines = [f"printf '%s\\n' {word.replace(' ', chr(92) + ' ')}; printf '\\0'" for word in words]
    options = "globstar nullglob" + " dotglob" * hidden
    script = "\n".join([f"shopt -s {options} || exit 3", *lines])
    given = {"cwd": top, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C"}, "text": True}
    ran = subprocess.run(["bash"], input=script, capture_output=True, check=False, **given)
    if ran.returncode == 3:
        pytest.skip("this bash has no globstar")
    assert ran.stderr == ""
    return [set(said.split("\n")) for said in ran.stdout.split("\0")[:-1]]


def disagreements(seed, count, top):
    rng = random.Random(seed)
    compared, wrong = 0, []
    for hidden in (True, False):
        globs = [random_glob(rng) for _ in range(count)]
        for glob, expected in zip(globs, matched_by_bash(globs, top, hidden=hidden), strict=True):
            matches = compile_globs([glob], hidden=hidden)
            wrong += [(glob, hidden, path) for path in TREE if matches(path) != (path in expected)]
            compared += len(TREE)
    return compared, wrong


@needs("bash")
@pytest.mark.parametrize(("seed", "count"), [
    (1, 100), pytest.param(3, 800, marks=pytest.mark.full), pytest.param(2, 8000, marks=pytest.mark.long),
])  # fmt: skip
def test_bash_agrees_on_random_globs(tree, seed, count):
    compared, wrong = disagreements(seed, count, tree)
    assert compared > 1250 * count
    assert wrong == []


# Whatever might match a slash: negated and named classes, ranges across it, wildcards.
MAY_MATCH_A_SLASH = [
    *("?", "*", "/", "[!a]", "[^a]", "[!a-z]", "[^]]", "[!]a]", "[!!]", "[^^]", "[+-0]", "[.-0]", "[ -~]"),
    *("[!-~]", "[!0-9]", "[[:punct:]]", "[[:graph:]]", "[[:print:]]", "[![:alpha:]]", "[^[:alnum:]]"),
    *("[[:punct:][:alpha:]]", "[!a-]", "[^-]", "[.-]", "[!a]*", "?*", "*[!b]", "[!.]", "**"),
]


@needs("bash")
def test_only_a_slash_and_two_stars_match_a_slash_as_with_bash(tree):
    rng = random.Random(7)
    globs = []
    plain = [path for path in TREE if "/" in path and "*" not in path and "]" not in path]
    for _ in range(300):
        path = rng.choice(plain)
        glob = "".join(rng.choice(MAY_MATCH_A_SLASH) if rng.random() < 0.3 else each for each in path)
        globs.append(glob.lstrip("/").replace("//", "/") or "a")
    found = 0
    for glob, expected in zip(globs, matched_by_bash(globs, tree, hidden=True), strict=True):
        matches = compile_globs([glob], hidden=True)
        assert [path for path in TREE if matches(path) != (path in expected)] == [], glob
        found += sum(path in expected for path in TREE)
    assert found > 200


@part_or_all(6)
def test_a_directory_is_entered_whenever_a_match_lies_below(every):
    rng = random.Random(4)
    for _ in range(4000 // every):
        globs = [random_glob(rng) for _ in range(rng.choice([1, 1, 2]))]
        anchored = rng.random() < 0.3
        matches = compile_globs(globs, anchored=anchored)
        enters = compile_descent(globs, anchored=anchored)
        for _ in range(10):
            parts = [rng.choice(NAMES) for _ in range(rng.choice([2, 3, 4]))]
            if enters is not None and matches("/".join(parts)):
                above = ["/".join(parts[:count]) for count in range(1, len(parts))]
                assert all(enters(directory) for directory in above), (globs, parts)


@pytest.mark.parametrize(("glob", "entered", "not_entered"), [
    ("docs/**", ["docs", "docs/a/b"], ["src", "src/docs"]), ("docs/**/x/*.md", ["docs", "docs/a"], ["src"]),
    ("src/*/t.py", ["src", "src/a"], ["src/a/b", "lib"]),
    ("{a,b}/c/*", ["a", "b", "a/c"], ["c", "a/b", "a/c/d"]), ("/*.py", [], ["a"]),
    ("a*/**/b", ["a", "ab/x"], ["b"]), ("*.py", None, None), ("**/a/*.py", None, None),
])  # fmt: skip
def test_a_glob_says_which_directories_it_needs(glob, entered, not_entered):
    enters = compile_descent([glob])
    if entered is None:
        assert enters is None
        return
    assert enters is not None
    assert [path for path in entered if not enters(path)] == []
    assert [path for path in not_entered if enters(path)] == []
