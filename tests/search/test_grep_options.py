"""Options of `grep` for programs, and its answers if nothing is found."""

import gc
import os
from functools import partial

import pytest

from agentfs import AgentFSError, Policy, Workspace
from agentfs.errors import InvalidArgumentError, NotFoundError, OutsideWorkspaceError, RefusedError
from agentfs.fs import ReadBuffer
from agentfs.search.excerpts import without_marks
from tests import kit

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


@pytest.fixture
def tree(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    with Workspace(tmp_path) as workspace:
        yield workspace


def lines(result):
    return [(m.path, m.line) for m in result.matches]


def test_exclude_max_depth_and_hidden_restrict_the_files(tree):
    assert set(tree.grep("value", exclude="deep/").counts) == {"a.py", "b.txt"}
    assert set(kit.grep(tree, "value", max_depth=2).counts) == {"a.py", "b.txt", "deep/c.py"}
    assert list(kit.grep(tree, "value", files=["deep/c.py", "a.py", "a.py"]).counts) == ["deep/c.py", "a.py"]
    assert ".hidden.txt" in tree.grep("value", hidden=True).counts
    assert "build/out.txt" not in tree.grep("generated", hidden=True).counts


def test_globs_and_types_restrict_the_requested_files(tree):
    files = ["deep/er/d.py", "b.txt", "a.py", "deep/c.py"]
    assert list(kit.grep(tree, "value", files=files, glob="*.py").counts) == [
        "deep/er/d.py",
        "a.py",
        "deep/c.py",
    ]
    assert list(kit.grep(tree, "value", files=files, glob="deep/*.py").counts) == ["deep/c.py"]
    assert list(kit.grep(tree, "value", files=files, exclude="er").counts) == ["b.txt", "a.py", "deep/c.py"]
    assert list(kit.grep(tree, "value", files=files, exclude=["*.txt", "deep/"]).counts) == ["a.py"]
    assert list(kit.grep(tree, "value", files=files, type="txt").counts) == ["b.txt"]


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
    with pytest.raises(NotFoundError):
        kit.grep(tree, "value", files=["a.py", "b.txt"])
    assert kit.grep(tree, "val", files=kit.find(tree), limit=1).next["arguments"]["files"] == [
        "b.txt", "deep/c.py", "deep/er/d.py",
    ]  # fmt: skip


def test_a_permission_rule_sees_the_searched_paths_not_the_found_ones(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.txt").write_text("value\n")
    with Workspace(tmp_path, policy=Policy(deny=("grep(in)",))) as ws:
        assert list(kit.grep(ws, "value", files=kit.find(ws)).counts) == list(ws.grep("value").counts)
        with pytest.raises(RefusedError):
            kit.grep(ws, "value", files=["in/a.txt"])
        with pytest.raises(RefusedError):
            kit.grep(ws, "value", "in", files=kit.find(ws))


def test_a_dot_matches_line_ends_unless_dot_all_is_false(tree):
    assert [m.text for m in tree.grep("four.value", multiline=True).matches] == ["four\nvalue value"]
    search = partial(kit.grep, tree, multiline=True, dot_all=False)
    assert search("four.value").total_matches == 0
    assert search(r"four\nvalue$").total_matches == 0
    assert search(r"^four\nvalue").matches[0].line == 4
    assert search("one\ntwo", "b.txt", word=True).total_lines == 2


def test_a_summary_shows_the_requested_samples_and_context(tree):
    shown = kit.grep(tree, "value", "deep", output_mode="summary", before=1, samples=1)
    assert lines(shown) == [("deep/c.py", 1), ("deep/er/d.py", 1)]
    shown = kit.grep(tree, "value", "deep", output_mode="summary", samples=5)
    assert len(shown.matches) == 6
    shown = tree.grep("four", output_mode="summary", context=1)
    assert (shown.matches[0].before, shown.matches[0].after) == (("three values",), ("value value",))
    assert shown.text.startswith("b.txt: 1\n  3-three values\n  4|four\n")


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


def test_several_paths_give_each_file_once(tree):
    result = tree.grep("value", ["deep", "deep/er", "deep/c.py"], output_mode="count")
    assert sorted(result.counts) == ["deep/c.py", "deep/er/d.py"]
    assert result.total_lines == 6


def test_a_single_named_file_that_cannot_be_searched_is_an_error(tree, tmp_path):
    (tmp_path / "out.txt").symlink_to("/etc/passwd")
    (tmp_path / "loop").symlink_to("loop")
    for named in ("out.txt", ["out.txt"]):
        with pytest.raises(OutsideWorkspaceError):
            tree.grep("value", named)
    for named in (["out.txt", "a.py"], ["deep", "out.txt"]):
        with pytest.raises(OutsideWorkspaceError):
            tree.grep("value", named)
        with pytest.raises(OutsideWorkspaceError):
            kit.grep(tree, "value", files=named)
    assert tree.grep("value", ["loop", "a.py"]).skipped.unreadable == 1


def test_links_are_followed_only_on_request_and_only_inside_the_root(tree, tmp_path):
    (tmp_path / "link.py").symlink_to("deep/er/d.py")
    (tmp_path / "out.py").symlink_to("/etc/passwd")
    plain = tree.grep("value|root", "", glob="*.py")
    assert plain.skipped.symlink == 2
    followed = kit.grep(tree, "value|root", glob="*.py", follow_symlinks=True)
    assert "link.py" in followed.counts
    assert "out.py" not in followed.counts


def test_the_search_of_a_file_ends_after_max_count_lines(tree):
    result = kit.grep(tree, "value", "deep", max_count=2)
    assert lines(result) == [("deep/c.py", 1), ("deep/c.py", 2), ("deep/er/d.py", 1)]
    assert kit.grep(tree, "value", "deep", max_count=2, output_mode="count").total_lines == 3


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
    with pytest.raises(InvalidArgumentError):
        tree.grep("a", encoding="no-such-codec")


def test_files_come_newest_or_largest_first(tree, tmp_path):
    for age, name in enumerate(["b.txt", "deep/er/d.py", "a.py", "deep/c.py"]):
        os.utime(tmp_path / name, (10**9 - age, 10**9 - age))
    newest = tree.grep("value", sort="modified", output_mode="files_with_matches")
    assert list(newest.counts) == ["b.txt", "deep/er/d.py", "a.py", "deep/c.py"]
    oldest = kit.grep(tree, "value", sort="oldest", output_mode="files_with_matches")
    assert list(oldest.counts) == [*reversed(newest.counts)]
    largest = list(tree.grep("value", sort="size", output_mode="files_with_matches").counts)
    assert largest == sorted(largest, key=lambda name: -(tmp_path / name).stat().st_size)
    page = tree.grep("value", sort="modified", output_mode="files_with_matches", limit=1, offset=1)
    assert list(page.counts) == ["deep/er/d.py"]
    assert page.next["arguments"]["sort"] == "modified"


@pytest.mark.parametrize("sort", ["path", "modified", "size"])
def test_regression_the_first_link_by_path_stands_for_a_file_in_every_order(tree, tmp_path, sort):
    for age, name in enumerate(["a-link", "z-link"]):
        (tmp_path / name).symlink_to("hidden/.file" if age else ".file")
        os.utime(tmp_path / name, (age, age), follow_symlinks=False)
    (tmp_path / "hidden").mkdir()
    (tmp_path / ".file").write_text("value\n")
    (tmp_path / "hidden/.file").symlink_to("../.file")
    options = {"follow_symlinks": True, "unique": True, "sort": sort}
    assert [entry.path for entry in kit.find(tree, glob="*-link", types="f", **options).files] == ["a-link"]
    assert list(kit.grep(tree, "value", glob="*-link", **options).counts) == ["a-link"]


def test_a_page_of_files_is_found_without_searching_the_complete_tree(tmp_path):
    for number in range(300):
        (tmp_path / f"{number:03}.txt").write_text("value\n")
    with Workspace(tmp_path) as workspace:
        page = workspace.grep("value", output_mode="files_with_matches", limit=10)
        assert len(page.counts) == 10
        assert page.searched_files == 11
        assert (page.exact, page.truncated, page.skipped.reached) == (False, True, None)
        assert "at least 11 matching lines" in page.text
        rest = workspace.grep("value", output_mode="files_with_matches", limit=10, offset=290)
        assert (len(rest.counts), rest.exact, rest.total_files) == (10, True, 300)
        whole = workspace.grep("value", output_mode="files_with_matches")
        assert (whole.total_files, whole.exact) == (300, True)


def test_the_second_search_opens_only_skipped_files(tree, monkeypatch):
    opened = []
    fill = ReadBuffer.fill
    monkeypatch.setattr(ReadBuffer, "fill", lambda self, fd: opened.append(0) or fill(self, fd))
    assert "1 line in hidden or ignored files, as in .hidden.txt" in tree.grep(r"secret\w+d").text
    # Four files that are searched, and the four that were left out.
    assert len(opened) == 8


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


def test_the_second_search_respects_globs_types_and_exclusions(tree):
    assert "hidden or ignored" in tree.grep("generated_name", glob="*.log").text
    assert "hidden or ignored" in tree.grep("generated_name", glob="build/**").text
    assert "hidden or ignored" not in tree.grep("generated_name", type="py").text
    assert "hidden or ignored" not in tree.grep("generated_name", exclude=["build", "*.log"]).text


def test_a_search_without_matches_reports_those_in_ignored_and_hidden_files(tree):
    assert (
        "2 lines in hidden or ignored files, as in build/ (ignored by .gitignore:1 build/)"
        in tree.grep("generated_name").text
    )
    assert "1 line in hidden or ignored files, as in .hidden.txt (hidden)" in tree.grep("secret_word").text
    assert "hidden or ignored files" not in tree.grep("nowhere").text
    assert tree.grep("generated_name", include_ignored=True).total_lines == 2


def test_a_search_without_matches_reports_those_of_the_literal_pattern(tree):
    text = tree.grep("a.b(x)").text
    assert r'As plain text it matches 1 line of a.py: pass pattern="a\\.b\\(x\\)".' in text
    assert tree.grep(r"a\.b\(x\)").total_lines == 1
    assert "regular expression it matches 1 line" in tree.grep(r"^import \w+", fixed_strings=True).text
    assert "plain text" not in tree.grep("no.where(x)").text


@pytest.mark.parametrize("wrong", [
    {"max_count": 0},
    {"max_depth": 0},
    {"before": -1},
    {"sort": "name"},
    {"max_filesize": 0},
    {"max_filesize": "1T"},
])  # fmt: skip
def test_senseless_arguments_are_refused(tree, wrong):
    with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
        kit.grep(tree, "a", **wrong)


def test_encoding_utf_8_excludes_other_files(tmp_path):
    (tmp_path / "utf8").write_bytes("é value\n".encode())
    (tmp_path / "marked").write_bytes("\ufeffvalue\n".encode("utf-16-le"))
    (tmp_path / "latin").write_bytes(b"\xe9 value\n")
    (tmp_path / "other").write_bytes(b"\xe9 elsewhere\n")
    (tmp_path / "binary").write_bytes(b"\0 value\n")
    with Workspace(tmp_path) as ws:
        for name in ("utf-8", "UTF8"):
            found = ws.grep("value", encoding=name)
            assert list(found.counts) == ["marked", "utf8"]
            assert (found.skipped.undecodable, found.skipped.binary, found.searched_files) == (2, 1, 2)
        assert ws.grep(r"\w", encoding="utf-8").total_files == 2
        assert ws.grep("value").total_files == 3


@pytest.mark.parametrize(("pattern", "text"), [
    (r"\${e}", "cost ${e} x"),
    ("foo{d}", "foo{d}"),
    ('f"{x}"', 'f"{x}"'),
    ("a{,x}", "a{,x}"),
    ("b{e<=1}", "b{e<=1}"),
])  # fmt: skip
def test_braces_have_the_meaning_that_was_intended(tmp_path, pattern, text):
    (tmp_path / "braces.py").write_text(f"{text}\nfood ex fx b a\n")
    with Workspace(tmp_path) as ws:
        assert [match.text for match in ws.grep(pattern, context=0).matches] == [text]


@pytest.mark.parametrize("pattern", ["(?x)value # c", "value(?x) # c", "value|(?x: no # )\n)"])
def test_a_whole_word_with_flags_and_comments_is_found(tree, pattern):
    assert tree.grep(pattern, word=True).total_matches == tree.grep("value", word=True).total_matches > 0


@pytest.mark.parametrize(
    "pattern", ["(foo", "(?x) (foo # c", "foo)", "a)|(b", "x" * 1001, "a{1000}{1000}", "[a"]
)
def test_errors_with_word_show_the_pattern_as_it_was_given(tree, pattern):
    errors = []
    for word in (False, True):
        with pytest.raises(AgentFSError) as caught:
            tree.grep(pattern, word=word)
        errors.append((str(caught.value), caught.value.details))
    assert errors[0] == errors[1]


def test_the_length_of_a_literal_text_is_counted_unescaped(tree):
    assert tree.grep("(" * 1000, fixed_strings=True).total_matches == 0
    assert tree.grep("(" * 1000, fixed_strings=True, word=True).total_matches == 0
    with pytest.raises(AgentFSError, match="has 1001 characters") as caught:
        tree.grep("(" * 1001, fixed_strings=True)
    assert caught.value.details == {"characters": 1001, "limit": 1000}


def test_only_whole_lines_and_only_lines_without_a_match(tree):
    assert [m.line for m in kit.grep(tree, "four|value", "b.txt", whole_line=True).matches] == [4]
    assert [m.line for m in kit.grep(tree, "value", "b.txt", invert=True).matches] == [1, 4]
    assert [m.line for m in kit.grep(tree, "value", "b.txt", invert=True, word=True).matches] == [1, 3, 4]
    with pytest.raises(InvalidArgumentError, match="multiline"):
        kit.grep(tree, "value", invert=True, multiline=True)
    with pytest.raises(InvalidArgumentError, match="samples"):
        kit.grep(tree, "value", samples=0)


def test_unique_searches_a_file_with_several_links_once(tree, tmp_path):
    """A link that came first hid the file itself."""
    (tmp_path / "deep" / "link.py").symlink_to("c.py")
    (tmp_path / "deep" / "a-link.py").symlink_to("c.py")
    (tmp_path / "deep" / "a-link").symlink_to("er")
    assert list(kit.grep(tree, "value", "deep", follow_symlinks=True, unique=True).counts) == [
        "deep/c.py",
        "deep/er/d.py",
    ]
    found = kit.find(tree, "deep", types="f", follow_symlinks=True, unique=True).files
    assert [each.path for each in found] == ["deep/c.py", "deep/er/d.py"]
