"""Hints of a search without a match: the suggested call finds something."""

import json
import re

import pytest

from agentfs import Workspace
from agentfs.fs import Directory, ReadBuffer
from agentfs.search import second_look
from agentfs.text.display import estimate_tokens
from tests import kit
from tests.kit import error_of, put

FILES = {
    "src/app.py": "def Foo(x):\n    return 1\n\n\nclass Bar:\n    pass\n",
    "src/deep/util.py": "def get_name(): ...\ndef set_name(): ...\n",
    "notes.md": "f(a) and g(b)\n",
    "page.html": '<p id="x">café au lait</p>\n',
}
PASSED = re.compile(r"pass (\w+)=(\"(?:[^\"\\]|\\.)*\"|\w+)(?: and (\w+)=(\"[^\"]*\"))?")


@pytest.fixture
def ws(tmp_path, ws):
    put(tmp_path, FILES)
    return ws


def advised(text):
    """Return the arguments that a text advises to pass."""
    name, value, other, more = PASSED.search(text).groups()
    return {name: json.loads(value)} | ({other: json.loads(more)} if other else {})


@pytest.mark.parametrize(("pattern", "more", "changes", "lines"), [
    (r"Foo\|Bar", {}, {"pattern": "Foo|Bar"}, 2),
    (r"\(get\|set\)_name", {}, {"pattern": "(get|set)_name"}, 2),
    ("&lt;p id=&quot;x&quot;&gt;", {}, {"pattern": '<p id="x">'}, 1),
    ("cafe\u0301 au lait", {}, {"pattern": r"caf\xe9 au lait"}, 1),
    (r"f\(a\)\|nothing\(", {}, {"pattern": r"f\(a\)|nothing\("}, 1),
    (r"def Foo.*\n    return", {}, {"multiline": True, "pattern": r"def Foo[^\n]*\n    return"}, 2),
    ("Foo(x):\n    return", {"fixed_strings": True}, {"multiline": True}, 2),
    ("class bar", {}, {"ignore_case": True}, 1),
    ("CLASS", {"smart_case": True}, {"ignore_case": True}, 1),
    ("f(a)", {}, {"pattern": r"f\(a\)"}, 1),
])  # fmt: skip
@pytest.mark.parametrize("offset", [0, 7])
def test_a_hint_gives_the_reading_of_the_pattern_that_matches(ws, pattern, more, changes, lines, offset):
    text = kit.grep(ws, pattern, offset=offset, **more).text
    assert f"matches {lines} line" in text
    assert advised(text) == changes
    assert ("leave out offset" in text) == bool(offset)
    assert kit.grep(ws, **({"pattern": pattern} | more | changes)).total_lines == lines


@pytest.mark.parametrize("watch", [False, True])
def test_regression_the_order_of_paths_does_not_change_a_hint(tmp_path, watch):
    """It named the first match in the order of the paths, so that the same search had two answers."""
    with Workspace(tmp_path, watch=watch) as ws:
        for path in ("src/deep/b.py", "src/other/a.py", "tools/c.py"):
            ws.write(path, "needle\n")
        for named in (["src/deep", "tools", "src/other"], ["tools/c.py", "src/other/a.py", "src/deep/b.py"]):
            for paths in (named, named[::-1]):
                assert "of src/deep/b.py" in ws.grep("Needle", path=paths).text


@pytest.mark.parametrize("more", [{"glob": "*.rs"}, {"type": "rust"}])
def test_a_hint_drops_a_glob_or_type_that_no_file_has(ws, more):
    [name] = more
    text = ws.grep("def Foo", **more).text
    assert f"(0 files searched).\nWithout {name} it matches 1 line of src/app.py: leave out {name}." in text
    assert "leave out" not in ws.grep("def Foo", glob="*.md").text


@pytest.mark.parametrize("pattern", [r"no\|such", "no such text", r"get\s+name\n", r"\| x \| y \|"])
def test_no_hint_if_no_reading_finds_anything(ws, pattern):
    assert ws.grep(pattern).text.count("\n") == 0


@pytest.mark.parametrize(("path", "changes", "lines"), [
    ("src/*.py", {"glob": "/src/*.py"}, 1),
    ("src/**/*.py", {"glob": "/src/**/*.py"}, 3),
    ("s*", {"glob": "/s*/**"}, 3),
    ("src/deep/*.py", {"glob": "/src/deep/*.py"}, 2),
])  # fmt: skip
def test_a_path_of_grep_that_is_a_glob_gets_the_call_that_searches_it(ws, path, changes, lines):
    hint = error_of(ws.grep, "def", path).hint
    assert hint.startswith("As a glob it matches ")
    assert advised(hint) == changes
    assert ws.grep("def", **changes).total_lines == lines
    [call] = ws.tools().call("grep", {"pattern": "def", "path": path}).data["details"]["suggested_calls"]
    assert ws.tools().call(**call).data["total_lines"] == lines
    hint = error_of(ws.grep, r"Foo\|Bar", "src/*.py").hint  # without a match
    assert hint.startswith("As a glob it matches 1 file: pass ")
    text = ws.grep(r"Foo\|Bar", **advised(hint)).text
    assert ws.grep(**{**advised(hint), **advised(text)}).total_lines == 2


@pytest.mark.parametrize(("method", "arguments", "total"), [
    ("ls", {"path": "src/*.py"}, 1),
    ("read", {"path": "src/*/*.py"}, 1),
    ("edit", {"path": "s*/app.py", "old_string": "a", "new_string": "b"}, 1),
    ("glob", {"path": "sr?", "pattern": "*.py"}, 2),
])  # fmt: skip
def test_a_path_of_another_method_that_is_a_glob_gets_a_call_of_glob(ws, method, arguments, total):
    result = ws.tools().call(method, arguments)
    assert f"{total} file" in result.content
    assert "Did you mean" not in result.content
    call = result.data["details"]["suggested_calls"][0]
    assert call["name"] == "glob"
    assert ws.tools().call(**call).data["total"] == total


def test_a_hint_looks_at_few_of_many_ignored_files(tmp_path, monkeypatch):
    """In a mostly ignored tree, the hint took 20 times as long as the search."""
    monkeypatch.setattr(second_look, "_MOST_EXCLUDED", 40)
    monkeypatch.setattr(second_look, "_MOST_LISTED", 40)
    put(tmp_path, {f"{name}/{n:02}.txt": f"in {name} {n}\n" for name in "abc" for n in range(100)})
    put(tmp_path, {".gitignore": "/a/\n/b/\n*.log\n", "c/x.log": "in a log\n"})
    with Workspace(tmp_path) as ws:
        assert "20 or more lines in hidden or ignored files, as in b/" in ws.grep(r"in b \d").text
        assert "1 or more lines in hidden or ignored files, as in c/x.log" in ws.grep("in a log").text
        assert "hidden or ignored files" not in ws.grep("in b 99").text, "it is not one of the first"
        assert "3 ignored" in ws.grep("in b 99").text
        assert "1 or more among hidden and ignored" in ws.glob("a/05.txt").text
        assert "among hidden and ignored" not in ws.glob("b/99.txt").text


def test_regression_a_pattern_of_code_that_matches_other_lines_names_its_plain_text(ws):
    """`dict[str, Any]` found `dicts` and nothing was said on `dict[str, Any]`."""
    ws.write("typed.py", "dicts = 1\nx: dict[str, Any] = {}\nloads(s)\nloadss\n")
    shown = ws.grep("dict[str, Any]")
    assert [match.line for match in shown.matches] == [1]
    said = 'As plain text it matches 1 line of typed.py: pass pattern="dict\\\\[str, Any\\\\]"'
    assert said in shown.notes[0]
    assert said in shown.text
    assert [match.line for match in ws.grep(r"dict\[str, Any\]").matches] == [2]
    assert "As plain text it matches 1 line of typed.py" in ws.grep("loads(s)").text
    for other in ("dict[st]", "dict[a-z]+", r"dict\w", "dicts", "dict(s)"):
        assert "plain text" not in ws.grep(other).text


def test_regression_many_hidden_lines_are_not_said_to_be_those_of_one_file(ws):
    """2000 lines of 400 ignored files were "5 lines", and the suggested call listed 4,819 tokens of them."""
    for number in range(40):
        ws.write(f".venv/{number}.py", f"{'secret word, and more that fills the line ' * 5}\n" * 4)
    found = ws.grep("secret")
    assert "\n32 or more lines in hidden or ignored files, as in .venv/ (hidden): pass" in found.text
    assert 'include_ignored=true and output_mode="summary" and limit=10.' in found.text
    shown = ws.grep("secret", include_ignored=True, output_mode="summary", limit=10)
    assert "[800 matches on 160 lines in 40 files; shown: 1-10; more: " in shown.text
    assert estimate_tokens(shown.text) < 2000
    ws.write(".venv/few.py", "three words\n" * 3)
    ws.write(".hidden/few.py", "three words\n" * 4)
    assert "\n7 lines in hidden or ignored files, as in .hidden/ (hidden): pass " in ws.grep("three").text
    assert "output_mode" not in ws.grep("three").text


@pytest.mark.parametrize(("path", "meant"), [
    ("src/ap/models.py", "src/app/models.py"),
    ("SRC/App/Models.py", "src/app/models.py"),
    ("scr/app/models.py", "src/app/models.py"),
    ("scr/ap/modles.py", "src/app/models.py"),
    ("src\\app\\modles.py", "src/app/models.py"),
    ("/workspace/src/app/models.py", "src/app/models.py"),
    ("/src/app", "src/app"),
])  # fmt: skip
def test_every_wrong_name_of_a_path_is_corrected(tmp_path, path, meant):
    """Only the first wrong directory was named, which made three calls of one mistake."""
    put(tmp_path, ["src/app/models.py"])
    with Workspace(tmp_path) as ws:
        for name in ("read", "delete", "ls"):
            assert f'Did you mean "{meant}"?' in ws.tools([name]).call(name, {"path": path}).content


@pytest.mark.parametrize(("glob", "case"), [
    ("models.PY", "src/Models.py"), ("SRC/*.PY", "src/Models.py, src/forms.py, src/urls.py and 1 more"),
    (r"X\[Y].txt", "src/x[Y].txt"), ("nothing.py", None), ("[m]odels.PYY", None), ("M" * 4000, None),
])  # fmt: skip
def test_a_glob_in_the_wrong_case_names_the_files_it_would_find(tmp_path, glob, case):
    put(tmp_path, [f"src/{name}" for name in ("Models.py", "forms.py", "views.py", "urls.py", "x[Y].txt")])
    with Workspace(tmp_path) as ws:
        text = ws.glob(glob).text
        assert text == f"0 files match {glob}; in another case: {case}" if case else "case" not in text
        insensitive = kit.find(ws, glob="MODELS.*", case="insensitive").files
        assert [each.name for each in insensitive] == ["Models.py"]
        assert not kit.find(ws, glob="models.py").files, "smart is about `pattern`"


@pytest.fixture
def code(tmp_path):
    put(tmp_path, {
        "src/app.py": "alpha <div> Beta\nfoo(1)\ngamma: w.rd\n", "src/lib/x.ts": "alpha\n",
        "dos.txt": "one\r\ntwo\r\n", "dos.bin": b"\0one\r\n",
    })  # fmt: skip
    with Workspace(tmp_path) as workspace:
        yield workspace


@pytest.mark.parametrize(("old", "advice"), [("w.+d", {"regex": True}), ("ALPHA", {"old_string": "alpha"})])
def test_regression_replace_names_the_call_or_the_spelling(code, old, advice):
    error = error_of(code.replace, old, "new")
    assert (error.code, advised(error.hint.splitlines()[0])) == ("no_match", advice)
    assert code.replace(**{"old_string": old, "new_string": "new", **advice}, preview=True).replacements


def test_regression_types_may_be_a_list_in_one_text(code):
    expected = list(code.grep("alpha", type=["py", "ts"]).counts)
    assert expected == ["src/app.py", "src/lib/x.ts"]
    for given in ("py,ts", "py ts", "py, ts", "py|ts"):
        assert list(code.grep("alpha", type=given).counts) == expected


@pytest.mark.parametrize(("path", "meant"), [
    *((path, ["src/lib/x.ts"]) for path in ("@/lib/x.ts", "$lib/x.ts", "~/lib/x.ts")),
    ("other/y.ts", ["src/lib/y.ts", "a/y.ts"]),  # a file ranks before a link to it
])  # fmt: skip
def test_regression_an_alias_of_the_source_directory_is_resolved(code, tmp_path, path, meant):
    put(tmp_path, ["src/lib/y.ts", "a/x"])
    (tmp_path / "a/y.ts").symlink_to("../src/lib/y.ts")
    assert error_of(code.read, path).details["similar"] == meant


def test_regression_rules_and_protected_files_are_named_in_full_words(code, tmp_path):
    put(tmp_path, {".gitignore": "*.a\n*.b\n*.c\n", "x.a": "", "x.b": "", "x.c": "", "key.pem": ""})
    assert "and 1 more rule, 1 protected by the policy" in code.grep("absent").text


@pytest.mark.parametrize(("pattern", "meant"), [(r"\(foo\)x", "(foo)x"), (r"\0foo", r"\\0foo")])
def test_other_readings_of_escapes_and_spaces(tmp_path, pattern, meant):
    (tmp_path / "a.txt").write_text("foox\nfoo.x\na = foo\n\\0foo\n")
    with Workspace(tmp_path) as ws:
        found = ws.tools().call("grep", {"pattern": pattern})
        assert f"pass pattern={json.dumps(meant)}" in found.content
        assert ws.grep(meant).total_lines


def test_skipped_names_that_a_short_search_has_seen_are_not_advised(tmp_path):
    """Nothing was found with `include_ignored`, which the answer advised."""
    (tmp_path / ".hidden").write_text("text\n")
    with Workspace(tmp_path) as ws:
        assert ws.grep("absent").text.endswith("[left out: 1 hidden]")
        assert "pass include_ignored=true" in ws.grep("text").text


TYPOGRAPHIC = "With typographic quotes, dashes or spaces it matches 1 line of a.txt"


@pytest.mark.parametrize(("pattern", "line", "fact"), [
    ("don't", "we don’t know", TYPOGRAPHIC), ("don’t", "we don't know", TYPOGRAPHIC),
    ("a - b", "a\u00a0– b", TYPOGRAPHIC),
    ("needle", "nee\u200bdle", "With invisible characters in it it matches 1 line of a.txt"),
    ("caf\u00e9", "cafe\u0301", "In another Unicode form it matches 1 line of a.txt"),
])  # fmt: skip
def test_other_spellings_of_a_text_are_found(tmp_path, pattern, line, fact):
    (tmp_path / "a.txt").write_text(f"{line}\n", encoding="utf-8")
    with Workspace(tmp_path) as ws:
        for options in ({}, {"fixed_strings": True}):
            result = ws.grep(pattern, **options)
            assert (result.total_lines, result.nothing[1].startswith(fact)) == (0, True)
            assert result.nothing[1].isascii()  # equal-looking characters cannot be copied
        assert ws.grep(**advised(ws.grep(pattern).text)).total_lines == 1


def test_a_second_look_tests_each_file_and_lists_each_directory_once_more(tmp_path, monkeypatch):
    """A failed search of 50 files tested 350, and a failed glob listed 364 directories of 52."""
    put(tmp_path, [f"d/{number}/a.py" for number in range(50)], "don't <div> text\n" * 3)
    seen = []
    for owner, name in ((ReadBuffer, "fill"), (Directory, "scan_parts")):
        known = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda one, two, f=known, n=name: seen.append(n) or f(one, two))
    with Workspace(tmp_path) as ws:
        for pattern in ("absent", "it's absent", r"a\|b\(c", "&lt;absent"):
            seen.clear()
            assert not ws.grep(pattern).total_lines
            assert (seen.count("fill") <= 2 * 50, seen.count("scan_parts") <= 2 * 52) == (True, True)
        for pattern in ("*.rs", "d/*/b.py", "Absent*"):
            seen.clear()
            assert not ws.glob(pattern).total
            assert (seen.count("fill"), seen.count("scan_parts") <= 2 * 52) == (0, True)
        seen.clear()
        assert "In another case it matches" in ws.grep("TEXT").text
        assert seen.count("fill") <= 50 + 1, "it stops at the first file with a match"
        monkeypatch.setattr(second_look, "SECONDS", 0)
        assert [ws.grep("TEXT").nothing[1:], ws.glob("A.PY").nothing[1:]] == [(), ()], "it has no time"


def test_regression_parentheses_in_a_set_are_not_called_a_group(ws):
    """`grep("[f()]")` said that `()` matches nothing."""
    assert ws.grep("[q()]", "notes.md").total_matches == 4
    assert ws.grep("[q()]zz").text == 'No matches for "[q()]zz" in "." (4 files searched).'


def test_regression_a_pattern_over_lines_is_advised_with_a_dot_within_its_line(tmp_path):
    """`multiline` alone lets `.*` match the rest of the file: 300 lines, where two were meant."""
    (tmp_path / "a.py").write_text("def loads(s):\n    return parse(s)\n" + "x = 1\n" * 300)
    with Workspace(tmp_path) as ws:
        told = ws.tools().call("grep", {"pattern": r"def loads\(.*\n.*\n"}).content
        assert r'pattern="def loads\\([^\\n]*\\n[^\\n]*\\n"' in told
        assert ws.grep(r"def loads\([^\n]*\n[^\n]*\n", multiline=True).total_lines == 2
