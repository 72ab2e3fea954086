"""Options of searches, those of `grep` for programs, and what makes the call for the next page."""

import gc
import inspect
import os
import shutil
from dataclasses import fields, replace
from pathlib import Path

import pytest

from agentfs import Policy, Workspace
from agentfs.editing.change_options import EditLinesOptions
from agentfs.fs import ReadBuffer
from agentfs.reading.page import ReadOptions
from agentfs.search import files as file_search
from agentfs.search.excerpts import without_marks
from agentfs.search.options import GlobOptions, GrepOptions, ListOptions, next_page
from tests import kit
from tests.kit import code_of, error_of, put

FILES = {
    "a.py": "import os\nvalue = a.b(x)\nVALUE = 2\n",
    "b.txt": "one\ntwo value\nthree values\nfour\nvalue value\n",
    "deep/c.py": "value\n" * 5,
    "deep/er/d.py": "value\n",
    ".hidden.txt": "value secret_word\n",
    ".gitignore": "build/\n*.log\n",
    "build/out.txt": "generated_name\n",
    "x.log": "generated_name\n",
}
OPTIONS = [
    (ReadOptions("f"), Workspace.read),
    (EditLinesOptions("f", []), Workspace.edit_lines),
    (ListOptions(), Workspace.ls),
    (GlobOptions("*"), Workspace.glob),
    (GrepOptions("x"), Workspace.grep),
]


@pytest.mark.parametrize(("options", "method"), OPTIONS)
def test_options_begin_with_the_parameters_of_the_method_in_their_order(options, method):
    parameters = list(inspect.signature(method).parameters.values())[1:]
    found = fields(options)[: len(parameters)]
    assert [each.name for each in found] == [each.name for each in parameters]
    assert options.method == method.__name__
    for parameter, field in zip(parameters, found, strict=True):
        assert parameter.default in {parameter.empty, field.default}


@pytest.mark.parametrize(("options", "method"), OPTIONS[2:])
def test_the_call_for_the_next_page_repeats_arguments_without_defaults(options, method):
    required = {"pattern": options.pattern} if isinstance(options, (GlobOptions, GrepOptions)) else {}
    assert next_page(options, 7) == {"name": method.__name__, "arguments": {**required, "offset": 7}}
    given = replace(options, path=["a", "b"], hidden=False, include_ignored=True, limit=3, offset=4)
    arguments = next_page(given, 7)["arguments"]
    added = {"path": ["a", "b"], "limit": 3, "include_ignored": True, "hidden": False, "offset": 7}
    assert arguments == {**required, **added}


def test_regression_the_next_page_of_a_search_for_line_ids_has_them_too(tmp_path, ws):
    put(tmp_path, {"f": "x\nx\nx\n"})
    rest = ws.grep(**ws.grep("x", limit=2, line_ids=True).next["arguments"])
    assert [match.line for match in rest.matches] == [3]
    assert rest.matches[0].line_id is not None


@pytest.fixture
def tree(tmp_path, ws):
    put(tmp_path, FILES)
    return ws


def lines(result):
    return [(m.path, m.line) for m in result.matches]


LISTED = ["deep/er/d.py", "b.txt", "a.py", "deep/c.py"]


@pytest.mark.parametrize(("options", "found"), [
    ({"exclude": "deep/"}, ["a.py", "b.txt"]), ({"max_depth": 2}, ["a.py", "b.txt", "deep/c.py"]),
    ({"hidden": True}, [".hidden.txt", "a.py", "b.txt", "deep/c.py", "deep/er/d.py"]),
    ({"files": ["deep/c.py", "a.py", "a.py"]}, ["deep/c.py", "a.py"]),
    *(({"files": LISTED, **more}, found) for more, found in (
        ({"glob": "*.py"}, ["deep/er/d.py", "a.py", "deep/c.py"]), ({"glob": "deep/*.py"}, ["deep/c.py"]),
        ({"exclude": "er"}, ["b.txt", "a.py", "deep/c.py"]), ({"exclude": ["*.txt", "deep/"]}, ["a.py"]),
        ({"type": "txt"}, ["b.txt"]))),
    ({"path": ["deep", "deep/er", "deep/c.py"]}, ["deep/c.py", "deep/er/d.py"]),  # each file once
])  # fmt: skip
def test_options_restrict_the_files(tree, options, found):
    assert list(kit.grep(tree, "value", **options).counts) == found


def test_a_result_of_find_is_searched_in_its_order_without_vanished_files(tree, tmp_path):
    found = kit.find(tree, glob="*.py", sort="size")
    assert list(kit.grep(tree, "value", files=found).counts) == ["a.py", "deep/c.py", "deep/er/d.py"]
    (tmp_path / "a.py").unlink()
    (tmp_path / "deep/c.py").write_bytes(b"\0")
    result = kit.grep(tree, "value", files=found)
    assert list(result.counts) == ["deep/er/d.py"]
    assert (result.skipped.unreadable, result.skipped.binary, result.searched_files) == (1, 1, 1)
    assert kit.grep(tree, "value", files=kit.find(tree, types="d")).searched_files == 0
    assert kit.grep(tree, "nothing", files=found).text.startswith('No matches for "nothing" in "." (1 file')
    assert code_of(kit.grep, tree, "value", files=["a.py", "b.txt"]) == "not_found"
    following = kit.grep(tree, "val", files=kit.find(tree), limit=1).next["arguments"]
    assert following["files"] == ["b.txt", "deep/c.py", "deep/er/d.py"]


def test_a_permission_rule_sees_the_searched_paths_not_the_found_ones(tmp_path):
    put(tmp_path, {"in/a.txt": "value\n"})
    with Workspace(tmp_path, policy=Policy(deny=("grep(in)",))) as ws:
        assert list(kit.grep(ws, "value", files=kit.find(ws)).counts) == list(ws.grep("value").counts)
        assert code_of(kit.grep, ws, "value", files=["in/a.txt"]) == "refused"
        assert code_of(kit.grep, ws, "value", "in", files=kit.find(ws)) == "refused"


@pytest.mark.parametrize(("pattern", "more", "found"), [
    ("four.value", {"multiline": True}, [4]), ("four.value", {"multiline": True, "dot_all": False}, []),
    (r"four\nvalue$", {"multiline": True, "dot_all": False}, []),
    (r"^four\nvalue", {"multiline": True, "dot_all": False}, [4]),
    ("one\ntwo", {"multiline": True, "word": True}, [1]),
    ("four|value", {"whole_line": True}, [4]), ("value", {"invert": True}, [1, 4]),
    ("value", {"invert": True, "word": True}, [1, 3, 4]), ("value", {"max_count": 2}, [2, 3]),
])  # fmt: skip
def test_options_select_lines(tree, pattern, more, found):
    assert [match.line for match in kit.grep(tree, pattern, "b.txt", **more).matches] == found


def test_a_summary_shows_the_requested_samples_and_context(tree):
    shown = kit.grep(tree, "value", "deep", output_mode="summary", before=1, samples=1)
    assert lines(shown) == [("deep/c.py", 1), ("deep/er/d.py", 1)]
    assert len(kit.grep(tree, "value", "deep", output_mode="summary", samples=5).matches) == 6
    shown = tree.grep("four", output_mode="summary", context=1)
    assert (shown.matches[0].before, shown.matches[0].after) == (("three values",), ("value value",))
    assert shown.text.startswith("b.txt: 1\n  3-three values\n  4|four\n")
    assert kit.grep(tree, "value", "deep", max_count=2, output_mode="count").total_lines == 3


def test_the_marks_of_a_cut_differ_from_the_text_of_the_line(tree, tmp_path):
    (tmp_path / "long.txt").write_text(f"{'⟦+1 character⟧' * 100}needle{'b' * 900}\nshort needle\n")
    long, short = tree.grep("needle", "long.txt", context=0).matches
    text, spans = without_marks(long)
    before, behind = long.cut
    assert text == (tmp_path / "long.txt").read_text().split("\n")[0][before : 2306 - behind]
    assert [text[start:end] for start, end in spans] == ["needle"]
    assert f"⟦+{before} characters⟧{text}⟦+{behind} characters⟧" == long.text
    assert without_marks(short) == ("short needle", [(6, 12)])
    assert short.cut == (0, 0)


def test_a_single_named_file_that_cannot_be_searched_is_an_error(tree, tmp_path):
    (tmp_path / "out.txt").symlink_to("/etc/passwd")
    (tmp_path / "loop").symlink_to("loop")
    for named in ("out.txt", ["out.txt"], ["out.txt", "a.py"], ["deep", "out.txt"]):
        assert code_of(tree.grep, "value", named) == "outside_workspace"
        if len(named) == 2:
            assert code_of(kit.grep, tree, "value", files=named) == "outside_workspace"
    assert tree.grep("value", ["loop", "a.py"]).skipped.unreadable == 1


def test_links_are_followed_only_on_request_and_only_inside_the_root(tree, tmp_path):
    (tmp_path / "link.py").symlink_to("deep/er/d.py")
    (tmp_path / "out.py").symlink_to("/etc/passwd")
    assert tree.grep("value|root", "", glob="*.py").skipped.symlink == 2
    followed = kit.grep(tree, "value|root", glob="*.py", follow_symlinks=True)
    assert ("link.py" in followed.counts, "out.py" in followed.counts) == (True, False)


@pytest.mark.parametrize(("size", "found"), [
    (57, True), ("57", True), ("1K", True), ("1k", True), ("2G", True), (56, False), ("56", False),
])  # fmt: skip
def test_a_size_may_be_written_as_ripgrep_takes_it(tree, tmp_path, size, found):
    (tmp_path / "sized.txt").write_text("sized\n" + "x" * 51)
    assert bool(kit.grep(tree, "sized", "sized.txt", max_filesize=size).total_lines) is found


def test_the_codec_applies_only_to_files_without_another_encoding(tree, tmp_path):
    (tmp_path / "sjis.txt").write_bytes("日本 value\n".encode("shift_jis"))
    (tmp_path / "wide.txt").write_bytes("wide value\n".encode("utf-16-le"))
    assert tree.grep("日本", encoding="shift_jis").matches[0].text == "日本 value"
    assert tree.grep("日本").total_lines == 0
    assert lines(tree.grep("wide value", encoding="utf-16-le")) == [("wide.txt", 1)]
    assert tree.grep("two value", encoding="utf-16-le").total_lines == 1
    assert code_of(tree.grep, "a", encoding="no-such-codec") == "invalid_argument"


def test_encoding_utf_8_excludes_other_files(tmp_path, ws):
    put(tmp_path, {
        "utf8": "é value\n", "marked": "\ufeffvalue\n".encode("utf-16-le"), "latin": b"\xe9 value\n",
        "other": b"\xe9 elsewhere\n", "binary": b"\0 value\n",
    })  # fmt: skip
    for name in ("utf-8", "UTF8"):
        found = ws.grep("value", encoding=name)
        assert list(found.counts) == ["marked", "utf8"]
        assert (found.skipped.undecodable, found.skipped.binary, found.searched_files) == (2, 1, 2)
    assert ws.grep(r"\w", encoding="utf-8").total_files == 2
    assert ws.grep("value").total_files == 3


def test_files_come_newest_or_largest_first(tree, tmp_path):
    names = ["b.txt", "deep/er/d.py", "a.py", "deep/c.py"]
    for age, name in enumerate(names):
        os.utime(tmp_path / name, (10**9 - age, 10**9 - age))

    def order(sort, **more):
        return list(kit.grep(tree, "value", sort=sort, output_mode="files_with_matches", **more).counts)

    assert order("modified") == names
    assert order("oldest") == names[::-1]
    assert order("size") == sorted(order("size"), key=lambda name: -(tmp_path / name).stat().st_size)
    assert order("modified", limit=1, offset=1) == ["deep/er/d.py"]
    assert tree.grep("value", sort="modified", limit=1).next["arguments"]["sort"] == "modified"


@pytest.mark.parametrize("sort", ["path", "modified", "size"])
def test_regression_the_first_link_by_path_stands_for_a_file_in_every_order(tree, tmp_path, sort):
    for age, name in enumerate(["a-link", "z-link"]):
        (tmp_path / name).symlink_to("hidden/.file" if age else ".file")
        os.utime(tmp_path / name, (age, age), follow_symlinks=False)
    put(tmp_path, {".file": "value\n", "hidden/x": ""})
    (tmp_path / "hidden/.file").symlink_to("../.file")
    options = {"follow_symlinks": True, "unique": True, "sort": sort}
    assert [entry.path for entry in kit.find(tree, glob="*-link", types="f", **options).files] == ["a-link"]
    assert list(kit.grep(tree, "value", glob="*-link", **options).counts) == ["a-link"]


def test_unique_searches_a_file_with_several_links_once(tree, tmp_path):
    """A link that came first hid the file itself."""
    for name, target in (("link.py", "c.py"), ("a-link.py", "c.py"), ("a-link", "er")):
        (tmp_path / "deep" / name).symlink_to(target)
    options = {"follow_symlinks": True, "unique": True}
    assert list(kit.grep(tree, "value", "deep", **options).counts) == ["deep/c.py", "deep/er/d.py"]
    found = kit.find(tree, "deep", types="f", **options).files
    assert [each.path for each in found] == ["deep/c.py", "deep/er/d.py"]


def test_a_page_of_files_is_found_without_searching_the_complete_tree(tmp_path, ws):
    put(tmp_path, [f"{number:03}.txt" for number in range(300)], "value\n")

    def search(**page):
        return ws.grep("value", output_mode="files_with_matches", **page)

    page = search(limit=10)
    assert (len(page.counts), page.searched_files) == (10, 11)
    assert (page.exact, page.truncated, page.skipped.reached) == (False, True, None)
    assert "at least 11 matching lines" in page.text
    rest = search(limit=10, offset=290)
    assert (len(rest.counts), rest.exact, rest.total_files) == (10, True, 300)
    assert (search().total_files, search().exact) == (300, True)


def test_a_search_lets_go_of_its_buffer_at_once(tree):
    gc.collect()
    gc.disable()
    try:
        for options in (
            {},
            {"ignore_case": True},
            {"encoding": "utf-8"},
            {"encoding": "latin-1"},
            {"limit": 1},
        ):
            for pattern in ("value", r"\w+", "value|one", "no such text"):
                tree.grep(pattern, **options)
        assert not any(isinstance(each, ReadBuffer) for each in gc.get_objects())
    finally:
        gc.enable()


def test_the_second_search_opens_only_skipped_files(tree, monkeypatch):
    opened = []
    fill = ReadBuffer.fill
    monkeypatch.setattr(ReadBuffer, "fill", lambda self, fd: opened.append(0) or fill(self, fd))
    assert "1 line in hidden or ignored files, as in .hidden.txt" in tree.grep(r"secret\w+d").text
    assert len(opened) == 8  # the four files that are searched, and the four that were left out


@pytest.mark.parametrize(("options", "advised"), [
    ({}, True), ({"glob": "*.log"}, True), ({"glob": "build/**"}, True), ({"type": "py"}, False),
    ({"exclude": ["build", "*.log"]}, False),
])  # fmt: skip
def test_the_second_search_respects_globs_types_and_exclusions(tree, options, advised):
    text = tree.grep("generated_name", **options).text
    assert ("hidden or ignored" in text) is advised
    said = "2 lines in hidden or ignored files, as in build/ (ignored by .gitignore:1 build/)"
    assert options or said in text
    assert tree.grep("generated_name", include_ignored=True).total_lines == 2
    assert "regular expression it matches 1 line" in tree.grep(r"^import \w+", fixed_strings=True).text


@pytest.mark.parametrize("wrong", [
    {"max_count": 0}, {"max_depth": 0}, {"before": -1}, {"sort": "name"}, {"max_filesize": 0},
    {"max_filesize": "1T"}, {"multiline": True, "invert": True}, {"samples": 0},
])  # fmt: skip
def test_senseless_arguments_are_refused(tree, wrong):
    error = error_of(kit.grep, tree, "a", **wrong)
    assert (error.code, next(iter(wrong)) in str(error)) == ("invalid_argument", True)


@pytest.mark.parametrize(("pattern", "text"), [
    (r"\${e}", "cost ${e} x"), ("foo{d}", "foo{d}"), ('f"{x}"', 'f"{x}"'), ("a{,x}", "a{,x}"),
    ("b{e<=1}", "b{e<=1}"),
])  # fmt: skip
def test_braces_have_the_meaning_that_was_intended(tmp_path, ws, pattern, text):
    (tmp_path / "braces.py").write_text(f"{text}\nfood ex fx b a\n")
    assert [match.text for match in ws.grep(pattern, context=0).matches] == [text]


@pytest.mark.parametrize("pattern", ["(?x)value # c", "value(?x) # c", "value|(?x: no # )\n)"])
def test_a_whole_word_with_flags_and_comments_is_found(tree, pattern):
    assert tree.grep(pattern, word=True).total_matches == tree.grep("value", word=True).total_matches > 0


@pytest.mark.parametrize(
    "pattern", ["(foo", "(?x) (foo # c", "foo)", "a)|(b", "x" * 1001, "a{1000}{1000}", "[a"]
)
def test_errors_with_word_show_the_pattern_as_it_was_given(tree, pattern):
    errors = [error_of(tree.grep, pattern, word=word) for word in (False, True)]
    assert len({str(each) for each in errors}) == 1
    assert errors[0].details == errors[1].details


def test_the_length_of_a_literal_text_is_counted_unescaped(tree):
    for word in (False, True):
        assert tree.grep("(" * 1000, fixed_strings=True, word=word).total_matches == 0
    error = error_of(tree.grep, "(" * 1001, fixed_strings=True)
    assert "has 1001 characters" in str(error)
    assert error.details == {"characters": 1001, "limit": 1000}


@pytest.fixture
def cased(tmp_path, ws):
    put(tmp_path, {"src/a.py": "test\nTest\n", "src/b/c.py": "est\nEst\n", "d.txt": "foo\n"})
    return ws


@pytest.mark.parametrize(("pattern", "ignores_case"), [
    ("(?P<Name>est)", True), (r"\pLest", True), (r"\p{Lu}?est", True), (r"[[:alpha:]]?\best", True),
    (r"[\pL]est", True), (r"\Aest", True), (r"\x65st", True), ("(?#A)est", True), ("[t]?est", True),
    (r"\x45st", False), ("Est", False), ("[A-Z]?est", False), (r"[\x45e]st", False),
])  # fmt: skip
def test_regression_smart_case_counts_only_capitals_that_a_pattern_matches(cased, pattern, ignores_case):
    smart, plain, folded = (
        kit.grep(cased, pattern, "src/b/c.py", **options).matches
        for options in ({"smart_case": True}, {}, {"ignore_case": True})
    )
    assert [each.text for each in smart] == [each.text for each in (folded if ignores_case else plain)]
    put(Path(cased.root), ["TEST", "EST", "test"])
    meant = "insensitive" if ignores_case else "sensitive"
    names, same = (kit.find(cased, pattern=pattern, case=case).files for case in ("smart", meant))
    assert [entry.name for entry in names] == [entry.name for entry in same]


def test_smart_case_of_plain_text_sees_the_letters_behind_a_backslash(tmp_path, ws):
    put(tmp_path, {"f.txt": "\\Pre\n\\pre\n"})
    found = kit.grep(ws, r"\Pre", "f.txt", fixed_strings=True, smart_case=True).matches
    assert [match.text for match in found] == ["\\Pre"]


@pytest.mark.parametrize("glob", ["*.{py}", "{a,}.py", "{a}.py", "src/{**}/*.py"])
def test_regression_braces_with_one_alternative_match_it(cased, glob):
    assert "src/a.py" in cased.grep("Test", glob=glob).counts
    assert "src/a.py" in [entry.path for entry in cased.glob(glob).files]


def test_regression_an_empty_pattern_or_glob_means_none(cased):
    everything = [entry.path for entry in kit.find(cased).files]
    for options in ({"pattern": ""}, {"glob": "", "exclude": ""}):
        assert [entry.path for entry in kit.find(cased, **options).files] == everything
    assert cased.grep("e", glob="", type="", exclude="").total_lines == cased.grep("e").total_lines
    assert cased.ls(ignore="").total == cased.ls().total
    assert code_of(cased.glob, "") == code_of(cased.grep, "") == "invalid_pattern"


def test_regression_directories_that_became_files_do_not_raise_index_error(cased, monkeypatch):
    batches = file_search.ExcludedNames.batches

    def replaced(excluded):
        shutil.rmtree(cased.root + "/src")
        Path(cased.root, "src").write_text("x")
        return batches(excluded)

    put(Path(cased.root), [".hidden", "src/.hidden"], "needle\n")
    monkeypatch.setattr(file_search.ExcludedNames, "batches", replaced)
    assert cased.grep("needle", "src", glob="*.txt").total_lines == 0
