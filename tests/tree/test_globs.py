"""Globs, judged by tables and by bash; `test_globs_bash.py` has random ones."""

import subprocess

import pytest

from agentfs.tree.globs import compile_globs, expand, hidden_names
from tests.conftest import needs
from tests.kit import refused

TABLE = [
    ("*.py", ["a.py", "d/e/a.py"], ["py", "a.pyc", "d.py/a"]), ("a.py", ["a.py", "d/a.py"], ["ba.py"]),
    ("/a.py", ["a.py"], ["d/a.py"]), ("./a.py", ["a.py"], ["d/a.py"]),
    ("d/*.py", ["d/a.py"], ["d/e/a.py", "x/d/a.py"]),
    ("d/**/*.py", ["d/a.py", "d/e/f/a.py"], ["a.py", "x/d/a.py"]),
    ("**/d/*.py", ["d/a.py", "x/y/d/a.py"], ["d/e/a.py"]), ("d/**", ["d/a", "d/e/a"], ["d", "x/d/a"]),
    ("d/", ["d/a", "d/e/a"], ["d"]), ("**", ["a", "d/e"], []), ("*", ["a", "d/e"], []),
    ("**/*", ["a", "d/e"], []), ("a**b", ["ab", "axb"], ["a/b"]),
    ("*.{js,ts}", ["a.js", "d/a.ts"], ["a.jsx"]), ("{a,b}/{c,d{e,f}}.x", ["a/c.x", "b/df.x"], ["a/d.x"]),
    ("{src,test}/**/*.c", ["src/a.c", "test/x/y.c"], ["lib/a.c"]),
    ("a{1..3}", ["a1", "a3"], ["a4"]), ("{a}", ["a", "d/a"], ["{a}"]),
    ("*.{py}", ["a.py", "d/a.py"], ["a.{py}"]), ("{{name}}/x", ["name/x"], ["{{name}}/x"]),
    (r"\{\{name\}\}/x", ["{{name}}/x"], ["name/x"]), ("a{}b", ["ab"], ["a{}b"]),
    (r"\{a,b\}", ["{a,b}"], ["a"]), ("[ab].c", ["a.c", "d/b.c"], ["c.c"]),
    ("[!ab].c", ["c.c"], ["a.c", "/.c"]), ("[[:digit:]]", ["1"], ["a"]),
    (r"app/\[id\]/*", ["app/[id]/page"], ["app/i/page"]), ("?.c", ["é.c", "a.c"], ["ab.c"]),
    ("a b.c", ["a b.c"], ["a.c"]), ("*.tar.gz", ["a.tar.gz"], ["a.gz"]),
    ("Makefile", ["Makefile", "d/Makefile"], ["makefile"]), ("(a|b)+.c", ["(a|b)+.c"], ["a.c"]),
]  # fmt: skip


@pytest.mark.parametrize(("glob", "yes", "no"), TABLE)
def test_a_glob_matches_these_paths(glob, yes, no):
    for hidden in (True, False):
        matches = compile_globs([glob], hidden=hidden)
        assert [path for path in yes if not matches(path)] == []
        assert [path for path in no if matches(path)] == []


@pytest.mark.parametrize(("glob", "yes", "no"), [
    ("*", ["a"], [".a", ".d/a", "d/.a"]), ("**/*.py", ["a.py"], [".a.py", ".d/a.py"]), ("?a", [], [".a"]),
    ("[.]a", [], [".a"]), ("d/**", ["d/a"], ["d/.a", "d/.x/a"]), (".*", [".a", "d/.a"], [".d/a"]),
    (".github/**", [".github/a", ".github/w/a"], [".github/.a"]),
    ("**/.env", [".env", "d/.env"], [".d/.env"]), ("*/.env", ["d/.env"], [".env"]),
])  # fmt: skip
def test_a_wildcard_stands_for_no_leading_dot(glob, yes, no):
    matches = compile_globs([glob], hidden=False)
    assert [path for path in yes if not matches(path)] == []
    assert [path for path in no if matches(path)] == []
    assert all(compile_globs([glob], hidden=True)(path) for path in yes)


def test_a_pattern_part_with_a_dot_opens_the_names_that_it_matches():
    test = hidden_names(["*.py", ".github/**/*.yml", "**/.e*"])
    assert test is not None
    assert [name for name in (".github", ".env", ".git", ".venv") if test(name)] == [".github", ".env"]
    assert hidden_names(["*.py", "src/**", "./a"]) is None


@pytest.mark.parametrize(("globs", "options", "matched"), [
    (["*.py", "!*_test.py", "!d/**"], {}, ["a.py"]), (["!*.py"], {}, ["a.c"]),
    (["*.py"], {"anchored": True}, ["a.py", "a_test.py"]),
])  # fmt: skip
def test_an_exclusion_takes_away_and_anchored_binds_every_pattern(globs, options, matched):
    matches = compile_globs(globs, **options)
    assert [path for path in ("a.py", "a_test.py", "d/a.py", "a.c") if matches(path)] == matched


BAD = [
    ("", "invalid_pattern"), ("a\0", "invalid_pattern"), ("[a", "invalid_pattern"),
    ("[[:nonsense:]]", "invalid_pattern"), ("a\\", "invalid_pattern"), ("{a,b", "invalid_pattern"),
    ("{a,{b}", "invalid_pattern"), ("{a,b}" * 20, "invalid_pattern"), ("{1..999999999}", "invalid_pattern"),
    ("{1..40}" + "?*" * 1000, "invalid_pattern"), ("{}", "invalid_pattern"),
    ("{" + "," * 5000 + "}", "invalid_pattern"), ("**/*a*/" * 30, "invalid_pattern"),
    ("x" * 5000, "invalid_pattern"), ("../a", "outside_workspace"), ("a/../../b", "outside_workspace"),
    ("{a,..}/b", "outside_workspace"),
]  # fmt: skip


@pytest.mark.parametrize(("glob", "code"), BAD, ids=[repr(glob[:12]) for glob, _ in BAD])
def test_a_bad_glob_is_a_typed_error_with_a_way_out(glob, code):
    for globs in ([glob], ["a", f"!{glob}"]):
        assert refused(lambda given=globs: compile_globs(given), code).hint


@pytest.mark.parametrize(("glob", "expanded"), [
    ("{01..3}", ["01", "02", "03"]), ("{a..e..2}", ["a", "c", "e"]), ("x${a,b}", ["x\\$a", "x\\$b"]),
    ("{{a,b},{c}}", ["a", "b", "c"]), ("{{a,b}}", ["a", "b"]), ("{a..Z}", ["a..Z"]),
    ("[{,}]{a,b}", ["[\\{\\,\\}]a", "[\\{\\,\\}]b"]), ("{[,],b}", ["[\\,]", "b"]),
    ("{1..1}" * 300, ["1" * 300]),
])  # fmt: skip
def test_braces_around_one_alternative_are_none(glob, expanded):
    assert expand(glob) == expanded


@pytest.mark.parametrize(("glob", "path"), [
    ("**/*a*/" * 15 + "x", "aaaaaaaaa/" * 40 + "b"), ("*a" * 100 + "b", "a" * 250),
    ("*?" * 100 + "b", "a" * 250),
    ("**/a*a*a*a*a*a*b/**/*a*a*a*a*c", ("a" * 60 + "/") * 40 + "d"),
])  # fmt: skip
def test_regression_no_glob_explodes(glob, path):
    assert not compile_globs([glob])(path)


@pytest.mark.parametrize(
    "glob", ["a{b,c}d", "{a,b}{c,d}", "x{a,{b,c}}y", "{a,}b", "{1..4}", "{4..1}", "{c..a}", "a,b", r"\{a,b}"]
)
@needs("bash")
def test_braces_expand_as_in_bash(glob):
    command = ["bash", "-c", f"printf '%s\\n' {glob}"]
    words = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    assert [each.replace("\\", "") for each in expand(glob)] == words
