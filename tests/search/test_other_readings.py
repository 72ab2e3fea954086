"""Hints of a search without a match: the suggested call finds something."""

import json
import re
import time

import pytest

from agentfs import Workspace
from agentfs.errors import InvalidPatternError, NoMatchError, NotFoundError
from agentfs.search import probe
from tests import kit

FILES = {
    "src/app.py": "def Foo(x):\n    return 1\n\n\nclass Bar:\n    pass\n",
    "src/deep/util.py": "def get_name(): ...\ndef set_name(): ...\n",
    "notes.md": "f(a) and g(b)\n",
}
PASSED = re.compile(r"pass (\w+)=(\"(?:[^\"\\]|\\.)*\"|\w+)(?: and (\w+)=(\"[^\"]*\"))?")


@pytest.fixture
def ws(tmp_path):
    with Workspace(tmp_path) as workspace:
        for path, content in FILES.items():
            workspace.write(path, content)
        yield workspace


def advised(text):
    """Return the arguments that a text advises to pass."""
    name, value, other, more = PASSED.search(text).groups()
    return {name: json.loads(value)} | ({other: json.loads(more)} if other else {})


@pytest.mark.parametrize(
    ("pattern", "more", "changes", "lines"),
    [
        (r"Foo\|Bar", {}, {"pattern": "Foo|Bar"}, 2),
        (r"\(get\|set\)_name", {}, {"pattern": "(get|set)_name"}, 2),
        (r"f\(a\)\|nothing\(", {}, {"pattern": r"f\(a\)|nothing\("}, 1),
        (r"def Foo.*\n    return", {}, {"multiline": True}, 2),
        ("Foo(x):\n    return", {"fixed_strings": True}, {"multiline": True}, 2),
        ("class bar", {}, {"ignore_case": True}, 1),
        ("CLASS", {"smart_case": True}, {"ignore_case": True}, 1),
        ("f(a)", {}, {"pattern": r"f\(a\)"}, 1),
    ],
)
@pytest.mark.parametrize("offset", [0, 7])
def test_a_hint_gives_the_reading_of_the_pattern_that_matches(ws, pattern, more, changes, lines, offset):
    text = ws.grep(pattern, offset=offset, **more).text
    assert f"matches {lines} line" in text
    assert advised(text) == changes
    assert ("leave out offset" in text) == bool(offset)
    assert ws.grep(**({"pattern": pattern} | more | changes)).total_lines == lines


@pytest.mark.parametrize("watch", [False, True])
def test_regression_the_order_of_paths_does_not_change_a_hint(tmp_path, watch):
    """It named the first match in the order of the paths, so that the same search had two answers."""
    with Workspace(tmp_path, watch=watch) as ws:
        for path in ("src/deep/b.py", "src/other/a.py", "tools/c.py"):
            ws.write(path, "needle\n")
        for named in (["src/deep", "tools", "src/other"], ["tools/c.py", "src/other/a.py", "src/deep/b.py"]):
            for paths in (named, named[::-1]):
                assert "as in src/deep/b.py" in ws.grep("Needle", path=paths).text
            if named[0].endswith(".py"):
                assert "as in src/deep/b.py" in kit.grep(ws, "Needle", files=named).text


@pytest.mark.parametrize("more", [{"glob": "*.rs"}, {"type": "rust"}])
def test_a_hint_drops_a_glob_or_type_that_no_file_has(ws, more):
    [name] = more
    text = ws.grep("def Foo", **more).text
    assert (
        f"(0 files searched).\nWithout {name} it matches 1 line, as in src/app.py: leave out {name}." in text
    )
    assert "leave out" not in ws.grep("def Foo", glob="*.md").text


@pytest.mark.parametrize("pattern", [r"no\|such", "no such text", r"get\s+name\n", r"\| x \| y \|"])
def test_no_hint_if_no_reading_finds_anything(ws, pattern):
    assert ws.grep(pattern).text.count("\n") == 0


def test_no_second_search_if_something_is_found(ws, monkeypatch):
    monkeypatch.delattr(probe.Probe, "lines")
    assert ws.grep("Foo").total_lines == 1
    with pytest.raises(AttributeError):
        ws.grep("def foo")
    assert not ws.grep("no such text").total_lines  # in no case: nothing is searched again


@pytest.mark.parametrize(
    ("path", "changes", "lines"),
    [
        ("src/*.py", {"path": "src", "glob": "/*.py"}, 1),
        ("src/**/*.py", {"path": "src", "glob": "/**/*.py"}, 3),
        ("s*", {"glob": "/s*/**"}, 3),
        ("src/deep/*.py", {"path": "src/deep", "glob": "/*.py"}, 2),
    ],
)
def test_a_path_of_grep_that_is_a_glob_gets_the_call_that_searches_it(ws, path, changes, lines):
    with pytest.raises(NotFoundError) as caught:
        ws.grep("def", path)
    assert f" with {lines} matching line" in caught.value.hint
    assert advised(caught.value.hint) == changes
    assert ws.grep("def", **changes).total_lines == lines
    [call] = ws.tools().call("grep", {"pattern": "def", "path": path}).data["details"]["suggested_calls"]
    assert ws.tools().call(**call).data["total_lines"] == lines


def test_a_path_that_is_a_glob_of_files_without_a_match(ws):
    with pytest.raises(NotFoundError) as caught:
        ws.grep(r"Foo\|Bar", "src/*.py")
    assert caught.value.hint.startswith("As a glob it names 1 file, 0 of them with 0 matching lines: pass ")
    text = ws.grep(r"Foo\|Bar", **advised(caught.value.hint)).text
    assert ws.grep(**{**advised(caught.value.hint), **advised(text)}).total_lines == 2


@pytest.mark.parametrize(
    ("method", "arguments", "total"),
    [
        ("ls", {"path": "src/*.py"}, 1),
        ("read", {"path": "src/*/*.py"}, 1),
        ("edit", {"path": "s*/app.py", "old_string": "a", "new_string": "b"}, 1),
        ("glob", {"path": "sr?", "pattern": "*.py"}, 2),
        ("glob", {"path": "sr?", "pattern": "deep/*.py"}, 1),
    ],
)
def test_a_path_of_another_method_that_is_a_glob_gets_a_call_of_glob(ws, method, arguments, total):
    tools = ws.tools()
    result = tools.call(method, arguments)
    assert f"{total} file" in result.content
    assert "Did you mean" not in result.content
    [call] = result.data["details"]["suggested_calls"][:1]
    assert call["name"] == "glob"
    assert tools.call(call["name"], call["arguments"]).data["total"] == total


@pytest.mark.parametrize("method", ["read", "edit", "multi_edit", "edit_lines", "grep", "delete", "move"])
@pytest.mark.parametrize("path", ["src\\app.py", "app.py", "lib/app.py"])
def test_every_method_names_the_same_file_for_a_path_that_is_missing(ws, method, path):
    arguments = {
        "edit": ("a", "b"),
        "multi_edit": ([{"old_string": "a", "new_string": "b"}],),
        "edit_lines": ([{"line_id": "abcdef", "new_content": "b"}],),
        "move": ("x.py",),
    }
    with pytest.raises(NotFoundError, match=r'Did you mean "src/app\.py"') as caught:
        getattr(ws, method)(*(["def", path] if method == "grep" else [path, *arguments.get(method, ())]))
    assert caught.value.details["similar"] == ["src/app.py"]


def test_all_second_searches_share_one_budget(ws, monkeypatch):
    timeouts = []

    def slow(context, _options, **_):
        timeouts.append(context.limits.timeout)
        time.sleep(0.06)
        raise InvalidPatternError("")

    ws.write("bars.md", "|A\n")
    monkeypatch.setattr(probe, "PROBE_SECONDS", 0.1)
    monkeypatch.setattr(probe, "search", slow)
    assert "No matches" in ws.grep(r"(\|a)\n").text
    assert len(timeouts) == 2
    assert 0 < timeouts[1] < 0.05 < timeouts[0] <= 0.1


def test_a_hint_looks_at_few_of_many_ignored_files(tmp_path, monkeypatch):
    """In a mostly ignored tree, the hint took 20 times as long as the search."""
    monkeypatch.setattr(probe, "_SEARCHED_EXCLUDED", 40)
    monkeypatch.setattr(probe, "_LISTED_EXCLUDED", 40)
    (tmp_path / ".gitignore").write_text("/a/\n/b/\n*.log\n")
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        for number in range(100):
            (tmp_path / name / f"{number:02}.txt").write_text(f"in {name} {number}\n")
    (tmp_path / "c" / "x.log").write_text("in a log\n")
    with Workspace(tmp_path) as ws:
        assert re.search(r"at least 20 lines in hidden or ignored files, as in b/", ws.grep(r"in b \d").text)
        assert "1 line in hidden or ignored files, as in c/x.log" in ws.grep("in a log").text
        assert "hidden or ignored files" not in ws.grep("in b 99").text, "it is not one of the first"
        assert "3 ignored" in ws.grep("in b 99").text
        assert "1 or more among hidden and ignored" in ws.glob("a/05.txt").text
        assert "among hidden and ignored" not in ws.glob("b/99.txt").text


def test_hidden_names_keep_their_hint(ws):
    ws.write(".hidden/x.txt", "secret word\n")
    text = ws.grep("secret").text
    assert "1 line in hidden or ignored files, as in .hidden/ (hidden): pass include_ignored=true." in text


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
    (tmp_path / "src/app").mkdir(parents=True)
    (tmp_path / "src/app/models.py").write_text("x = 1\n")
    with Workspace(tmp_path) as ws:
        for name in ("read", "delete", "ls"):
            error = ws.tools([name]).call(name, {"path": path})
            assert f'Did you mean "{meant}"?' in error.content


def test_a_glob_in_the_wrong_case_names_the_files_it_would_find(tmp_path):
    (tmp_path / "src").mkdir()
    for name in ("Models.py", "forms.py", "views.py", "urls.py", "x[Y].txt"):
        (tmp_path / "src" / name).write_text("")
    with Workspace(tmp_path) as ws:
        assert ws.glob("models.PY").text == "0 files match models.PY; in another case: src/Models.py"
        assert ws.glob("SRC/*.PY").text.endswith("case: src/Models.py, src/forms.py, src/urls.py and 1 more")
        assert ws.glob(r"X\[Y].txt").text.endswith("case: src/x[Y].txt")
        assert "case" not in ws.glob("nothing.py").text
        assert "case" not in ws.glob("[m]odels.PYY").text
        assert "case" not in ws.glob("M" * 4000).text
        assert "another case: src/Models.py" in kit.find(ws, glob="models.py").text


def test_case_insensitive_find_ignores_the_case_of_globs_too(tmp_path):
    for name in ("A.PY", "b.py"):
        (tmp_path / name).touch()
    with Workspace(tmp_path) as ws:
        assert [each.path for each in kit.find(ws, glob="*.Py", case="insensitive").files] == ["A.PY", "b.py"]
        assert [each.path for each in kit.find(ws, glob="*.py").files] == ["b.py"], "smart is about `pattern`"


def test_a_glob_that_matches_only_directories_names_the_call_that_lists_one(tmp_path):
    """It said that no file matches; codescout advised a glob that found nothing either."""
    (tmp_path / "lib/commands").mkdir(parents=True)
    (tmp_path / "lib/commands/a.py").touch()
    (tmp_path / "x.egg-info").mkdir()
    (tmp_path / ".ignore").write_text("*.egg-info\n")
    with Workspace(tmp_path) as ws:
        tools = ws.tools()
        told = tools.call("glob", {"pattern": "commands", "path": "lib"}).content
        assert (
            told == '0 files match commands in lib; lib/commands is a directory: call ls(path="lib/commands")'
        )
        assert "a.py" in tools.call("ls", {"path": "lib/commands"}).content
        assert 'call ls(path="x.egg-info")' in tools.call("glob", {"pattern": "*.egg-info"}).content
        note = (
            ws.tools(dialect="codescout")
            .call("find_file", {"pattern": "commands", "path": "lib"})
            .data["note"]
        )
        assert note.endswith('call list_dir(path="lib/commands")')


@pytest.fixture
def code(tmp_path):
    (tmp_path / "src/lib").mkdir(parents=True)
    (tmp_path / "src/app.py").write_text("alpha <div> Beta\nfoo(1)\ngamma: w.rd\n")
    (tmp_path / "src/lib/x.ts").write_text("alpha\n")
    (tmp_path / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    (tmp_path / "dos.bin").write_bytes(b"\0one\r\n")
    with Workspace(tmp_path) as workspace:
        yield workspace


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        ({"pattern": "'alpha'"}, "Without the quotes it matches 2 lines"),
        ({"pattern": '"foo\\("'}, "Without the quotes it matches 1 line"),
        ({"pattern": "nothing | gamma"}, "Without the spaces around | it matches 1 line"),
        ({"pattern": "nothing| gamma:"}, "Without the spaces around | it matches 1 line"),
        ({"pattern": "-i ALPHA"}, "Without the options it matches 2 lines"),
        ({"pattern": "-i -n beta"}, "Without the options it matches 1 line"),
        ({"pattern": "/ALPHA/i"}, "Without the slashes it matches 2 lines"),
        ({"pattern": "/alpha/"}, "Without the slashes it matches 2 lines"),
        ({"pattern": "\\<div\\> Beta"}, "With < and > in place of"),
        ({"pattern": "alpha", "glob": "src"}, "In the directory src it matches 2 lines"),
        ({"pattern": "alpha", "glob": "lib", "path": "src"}, "In the directory src/lib it matches 1 line"),
    ],
)
def test_regression_what_is_written_around_a_pattern_is_named_if_it_matches_without(code, arguments, fact):
    result = code.grep(**arguments)
    assert (result.total_lines, len(result.nothing)) == (0, 2)
    assert result.nothing[1].startswith(fact)
    retried = code.grep(**changed(arguments, result.nothing[1]))
    assert retried.total_lines == int(re.search(r"matches (\d+) line", result.nothing[1])[1])
    if "glob" in arguments:
        assert "path=" in result.text


def changed(arguments, hint):
    """Return the arguments with the changes that a hint advises."""
    advice = hint.rpartition(": ")[2]
    passed = {
        name: json.loads(value) for name, value in re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|true)', advice)
    }
    omitted = re.findall(r"leave out (\w+)", advice)
    return {name: value for name, value in {**arguments, **passed}.items() if name not in omitted}


@pytest.mark.parametrize("pattern", ["'absent'", "absent | missing", "-i absent", "/absent/i", r"\<absent\>"])
def test_a_pattern_that_finds_nothing_without_its_additions_either_has_no_hint(code, pattern):
    assert len(code.grep(pattern).nothing) == 1


@pytest.mark.parametrize("pattern", [r"\r", r"\r$", r"one\r\n", r"[\r]", "\r"])
def test_regression_carriage_returns_at_line_ends_are_not_denied(code, tmp_path, pattern):
    text = code.grep(pattern).text
    assert (
        "Lines are matched without their ends; lines end with \\r\\n in 1 searched file, such as dos.txt."
        in text
    )
    (tmp_path / "dos.txt").unlink()
    assert "lines end with \\r\\n in 0 searched files." in code.grep(pattern).text


@pytest.mark.parametrize(
    ("old", "advice"),
    [("w.+d", {"regex": True}), ("ALPHA", {"old_string": "alpha"}), ("'gamma'", {"old_string": "gamma"})],
)
def test_regression_replace_names_the_call_or_the_spelling(code, old, advice):
    with pytest.raises(NoMatchError) as caught:
        code.replace(old, "new")
    assert advised(caught.value.hint.splitlines()[0]) == advice
    assert code.replace(**{"old_string": old, "new_string": "new", **advice}, preview=True).replacements


def test_regression_types_may_be_a_list_in_one_text(code):
    expected = list(code.grep("alpha", type=["py", "ts"]).counts)
    assert expected == ["src/app.py", "src/lib/x.ts"]
    for given in ("py,ts", "py ts", "py, ts", "py|ts"):
        assert list(code.grep("alpha", type=given).counts) == expected


def test_regression_a_glob_as_path_says_how_many_files_match(code):
    with pytest.raises(NotFoundError) as caught:
        code.grep("foo", "src/*")
    assert "As a glob it names 1 file, 1 of them with 1 matching line" in str(caught.value)


def test_regression_an_alias_of_the_source_directory_is_resolved(code):
    for path in ("@/lib/x.ts", "$lib/x.ts", "~/lib/x.ts"):
        with pytest.raises(NotFoundError) as caught:
            code.read(path)
        assert caught.value.details["similar"] == ["src/lib/x.ts"], path


def test_regression_a_file_ranks_before_a_link_to_it(code, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x.ts").symlink_to("../src/lib/x.ts")
    with pytest.raises(NotFoundError) as caught:
        code.read("other/x.ts")
    assert caught.value.details["similar"] == ["src/lib/x.ts", "a/x.ts"]


def test_regression_rules_and_protected_files_are_named_in_full_words(code, tmp_path):
    (tmp_path / ".gitignore").write_text("*.a\n*.b\n*.c\n")
    for name in ("x.a", "x.b", "x.c", "key.pem"):
        (tmp_path / name).touch()
    assert "and 1 more rule, 1 protected" in code.grep("absent").text
    assert "1 protected by the policy" in code.grep("absent").text


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("foo(", 'As plain text it matches 1 line, as in a.py: pass pattern="foo\\\\(".'),
        ("absent(", "As plain text it matches nothing."),
        ("*foo*", 'Without the stars it matches 1 line, as in a.py: pass pattern="foo".'),
        ("*.py", 'As a glob it names 1 file: call glob(pattern="*.py").'),
    ],
)
def test_an_invalid_pattern_is_advised_only_what_finds_something(tmp_path, pattern, said):
    """A pattern was suggested that matches nothing."""
    (tmp_path / "a.py").write_text("def foo(): pass\n")
    with Workspace(tmp_path) as ws, pytest.raises(InvalidPatternError) as caught:
        ws.grep(pattern)
    assert str(caught.value.hint) == said


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [(r"\(foo\)x", "(foo)x"), (r"foo\\.x", r"foo\.x"), ("a  = foo", r"a\s+= foo"), (r"\0foo", r"\\0foo")],
)
def test_other_readings_of_escapes_and_spaces(tmp_path, pattern, meant):
    (tmp_path / "a.txt").write_text("foox\nfoo.x\na = foo\n\\0foo\n")
    with Workspace(tmp_path) as ws:
        found = ws.tools().call("grep", {"pattern": pattern})
        assert f"pass pattern={json.dumps(meant)}" in found.content
        assert ws.grep(meant).total_lines


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [(r"src\*.py", "src/*.py"), (r".*\.py$", "*.py"), ("**/a.jsx", "**/a.*"), ("src/[id]/x", r"src/\[id]/x")],
)
def test_other_readings_of_globs(tmp_path, pattern, meant):
    for name in ("src/a.py", "src/[id]/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    with Workspace(tmp_path) as ws:
        found = ws.tools().call("glob", {"pattern": pattern})
        assert found.data["total"] or f"pass pattern={json.dumps(meant)}" in found.content


def test_skipped_names_that_a_short_search_has_seen_are_not_advised(tmp_path):
    """Nothing was found with `include_ignored`, which the answer advised."""
    (tmp_path / ".hidden").write_text("text\n")
    with Workspace(tmp_path) as ws:
        assert ws.grep("absent").text.endswith("[left out: 1 hidden]")
        assert "pass include_ignored=true" in ws.grep("text").text
