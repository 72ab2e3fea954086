"""`replace`: a text or a pattern in all files that contain it, all or none."""

import re
import tempfile
import tracemalloc
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from agentfs import Deny, Limits, Policy, Workspace
from agentfs.editing import replace
from agentfs.errors import NoMatchError, StaleError
from agentfs.text.display import estimate_tokens
from tests import kit
from tests.conftest import part_or_all
from tests.history.judges import git_applied, snapshot
from tests.kit import put, refused


def fails(act, code, top):
    """Return the error of a call that must fail, and check that it changed nothing."""
    before = snapshot(top)
    error = refused(act, code)
    assert snapshot(top) == before
    return error


def test_replace_changes_all_files_counts_and_is_one_step(ws, tmp_path):
    put(tmp_path, {"a.py": "name = name\n", "d/b.py": "x\nname\n", "d/c.txt": "nothing\n", "e": "surname\n"})
    (tmp_path / "a.py").chmod(0o755)
    before = snapshot(tmp_path)
    done = ws.replace("name", "title")
    assert list(done.files.items()) == [("a.py", 2), ("d/b.py", 1), ("e", 1)]
    assert (done.replacements, done.summary) == (4, "4 replacements in 3 files")
    assert str(done) == "Replaced 4 occurrences in 3 files:\na.py: 2\nd/b.py: 1\ne: 1"
    after = snapshot(tmp_path)
    assert after["a.py"] == ("file", 0o755, b"title = title\n")
    assert (after["d/b.py"][2], after["e"][2]) == (b"x\ntitle\n", b"surtitle\n")
    assert ws.undo().steps == 1
    assert snapshot(tmp_path) == before
    ws.redo()
    assert snapshot(tmp_path) == after


def test_the_diff_is_whole_and_a_patch(ws, tmp_path):
    original, root = (put(tmp_path / each, {f"d/{n}.py": "old\n" * n for n in range(1, 30)}) for each in "or")
    with Workspace(root) as own:
        diff = own.replace("old", "new").diff
        assert git_applied(original, diff.encode(), tmp_path / "scratch") == snapshot(root)


def test_a_preview_shows_and_changes_nothing(ws, tmp_path):
    put(tmp_path, {"a": "old\n", "b": "old old\n"})
    before = snapshot(tmp_path)
    shown = ws.replace("old", "new", preview=True)
    assert (snapshot(tmp_path), shown.files, ws.changes().files) == (before, {"a": 1, "b": 2}, ())
    assert "Preview, nothing was written" in str(shown)
    assert "-old old\n+new new" in str(shown)
    assert ws.replace("old", "new").diff == shown.diff


@pytest.mark.parametrize(("choice", "files"), [
    ({"path": "d"}, ["d/b.py", "d/e/c.py"]), ({"path": "d/b.py"}, ["d/b.py"]), ({"glob": "*.js"}, ["a.js"]),
    ({"glob": ["*.py", "!d/**"]}, ["a.py", "f/g.py"]),
    ({"path": ["d", "d/e", "a.py"]}, ["a.py", "d/b.py", "d/e/c.py"]),
])  # fmt: skip
def test_path_glob_and_a_list_of_paths_choose_the_files(ws, tmp_path, choice, files):
    put(tmp_path, dict.fromkeys(["a.py", "a.js", "d/b.py", "d/e/c.py", "f/g.py"], "old"))
    assert list(ws.replace("old", "new", **choice, preview=True).files) == files


def test_replace_searches_the_files_that_grep_searches_and_counts_the_others(ws, tmp_path):
    put(tmp_path, {
        ".gitignore": "build/\n", "build/x": "old\n", ".hidden": "old\n", "a": "old\n", ".env": "old\n",
        "binary": b"\0old\n", ".git/config": "old\n",
    })  # fmt: skip
    (tmp_path / "link").symlink_to("a")
    done, found = ws.replace("old", "new"), ws.grep("nowhere")
    assert done.files == {"a": 1}
    assert done.skipped == found.skipped
    assert (done.skipped.ignored, done.skipped.binary, done.skipped.symlink) == (1, 1, 1)
    assert "1 ignored by .gitignore:1 build/" in str(done)
    assert ws.replace("old", "new", "build").files == {"build/x": 1}, "what is named is entered"


def test_no_file_is_changed_if_one_cannot_be(ws, tmp_path):
    put(tmp_path, {"a": "old", "b/c": "old", "b/d": "old"})
    (tmp_path / "b" / "c").chmod(0o444)
    error = fails(lambda: ws.replace("old", "new"), "refused", tmp_path)
    assert error.details["paths"] == ["b/c"]
    assert "1 of 3 files cannot be changed" in str(error)
    assert "write-protected" in str(error)
    assert ws.replace("old", "new", glob=["!/b/c"]).files == {"a": 1, "b/d": 1}
    put(tmp_path, {"latin1": b"\xe9 new"})
    error = fails(lambda: ws.replace("new", "\u20ac"), "encoding", tmp_path)
    assert error.details["paths"] == ["latin1"]
    small = ws.view(limits=Limits(file_bytes=100))
    put(tmp_path, {"b/d": "new " * 20})
    error = fails(lambda: small.replace("new", "x" * 10), "too_large", tmp_path)
    assert error.details["paths"] == ["b/d"]


NAMES = ["x/a [1].py", "x/{b}.py", "x/!c*.py", "plain.py"]


@pytest.mark.parametrize(("given", "code", "left"), [
    ({}, "refused", {"x/good.py": 1, "other.txt": 2}), ({"glob": "*.py"}, "refused", {"x/good.py": 1}),
    ({"path": "other.txt", "expect": 1}, "ambiguous", {"other.txt": 2}),
    ({"path": "x/good*.py"}, "not_found", {"x/good.py": 1}),
])  # fmt: skip
def test_the_suggested_call_works(ws, tmp_path, given, code, left):
    put(tmp_path, dict.fromkeys([*NAMES, "x/good.py"], "old") | {"other.txt": "old old"})
    for name in NAMES:
        (tmp_path / name).chmod(0o444)
    tools = ws.tools("all")
    missed = tools.call("replace", {"old_string": "old", "new_string": "new", **given})
    assert missed.error["code"] == code
    (suggested,) = missed.data["details"]["suggested_calls"]
    done = tools.call(suggested["name"], suggested["arguments"])
    assert done.success, done.content
    assert done.data["files"] == left


def test_protected_contents_are_neither_changed_nor_hinted_at(ws, tmp_path):
    put(tmp_path, {"a": "x", "server.pem": "old secret"})
    error = fails(lambda: ws.replace("old", "new"), "no_match", tmp_path)
    assert "1 protected" in str(error)
    assert "secret" not in str(error)
    # Never changed: it is hidden, and left out unless it is named.
    put(tmp_path, {"a": "old", ".mcp.json": "old"})
    assert ws.replace("old", "new", preview=True).files == {"a": 1}
    fails(lambda: ws.replace("old", "new", ["a", ".mcp.json"]), "protected", tmp_path)


def test_expect_is_the_number_of_replacements(ws, tmp_path):
    put(tmp_path, {"a": "old old", "b": "old"})
    error = fails(lambda: ws.replace("old", "new", expect=2), "ambiguous", tmp_path)
    assert (error.details["count"], error.details["files"]) == (3, {"a": 2, "b": 1})
    assert "3 times in 2 files, not 2" in str(error)
    assert "\na: 2\nb: 1\n" in str(error)
    assert ws.replace("old", "new", expect=3).replacements == 3


@pytest.mark.parametrize(("text", "old", "new", "way", "after"), [
    ("old older bold old_ (old) äold\nold", "old", "new", "word", "new older bold old_ (new) äold\nnew"),
    ("get_x(1), get_yz()\nset_x\n", r"get_(?P<what>\w+)", r"\g<what>_of_\1\\", "regex",
     "x_of_x\\(1), yz_of_yz\\()\nset_x\n"),
    ("ac abc", "a(b)?c", r"[\1]", "regex", "[] [b]"),
    ("ac", "a(c)", "${value}$1c", "regex", "${value}$1c"),
    ("a.b abb\n", "a.b", r"\1\n $1", "word", "\\1\\n $1 abb\n"),
    ("a.b\n", ".", r"\1$1", "preview", "a.b\n"),
])  # fmt: skip
def test_a_new_text_is_literal_except_for_groups_of_a_pattern(ws, tmp_path, text, old, new, way, after):
    put(tmp_path, {"a": text, "b": "older get_\n"})
    assert list(ws.replace(old, new, **{way: True}).files) == ["a"]
    assert (tmp_path / "a").read_text() == after


def test_each_line_is_matched_alone_unless_the_pattern_names_line_ends(ws, tmp_path):
    put(tmp_path, {"a": "one  \n\ntwo\n", "crlf": "one  \r\n\r\ntwo\r\n"})
    for old, new, after in ((r"\s+$", "", b"one\n\ntwo\n"), (r"^(one)\n\n(.*)", r"\2\n\1", b"two\n\none")):
        assert ws.replace(old, new, regex=True).files == {"a": 1, "crlf": 1}
        assert (tmp_path / "a").read_bytes() == after
        assert (tmp_path / "crlf").read_bytes() == after.replace(b"\n", b"\r\n")
    put(tmp_path, ["blank"], "\n" * 1500)
    assert ws.replace("\n" * 1001, "x").files == {"blank": 1}


def test_grep_finds_the_replaced_text(ws, tmp_path):
    put(tmp_path, {"a": "aaa\nab\n", "b": "ba\n", "c": "x\n"})
    for pattern in ("a+", "^a", "a|b", "(?i)A", "[ab]{2}"):
        found = ws.grep(pattern, output_mode="count")
        shown = ws.replace(pattern, "-", regex=True, preview=True)
        assert shown.files == {path: count.matches for path, count in found.counts.items()}, pattern


@pytest.mark.parametrize(("before", "after"), [
    (b"\xe9 old\nold\n", b"\xe9 new\nx\nnew\nx\n"), (b"one\rold\rold", b"one\rnew\rx\rnew\rx"),
    (b"old\r\nold\nold\n", b"new\r\nx\r\nnew\nx\nnew\nx\n"),
    ("\ufeffé old\r\n".encode("utf-16-be"), "\ufeffé new\r\nx\r\n".encode("utf-16-be")),
], ids=["latin-1", "cr", "mixed", "utf-16-be"])  # fmt: skip
def test_encodings_and_line_ends_that_the_law_does_not_draw_stay(ws, tmp_path, before, after):
    put(tmp_path, {"a": before})
    assert len(ws.replace("old", "new\nx").files) == 1
    assert (tmp_path / "a").read_bytes() == after


@pytest.mark.parametrize(("text", "old", "new", "limits", "error"), [
    ("a" * 4_000_000, "(a+)", r"\1" * 300, Limits(), "too_large"),  # before it takes memory
    ("a" * 5000 + "!", "b|(a|aa)+(?!.)", "x", Limits(timeout=0.2), "timeout"),
    ("a", "a|b", "x", Limits(walk_entries=2), "too_large"),  # the search is cut short
], ids=["expansion", "pattern", "walk"])  # fmt: skip
def test_a_replacement_that_would_take_too_much_changes_nothing(tmp_path, text, old, new, limits, error):
    put(tmp_path, {"a": text, "b/b": "b", "c/c": "b", "d/d": "b"})
    tracemalloc.start()
    try:
        with Workspace(tmp_path, limits=limits) as ws:
            fails(lambda: ws.replace(old, new, regex=True), error, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "template", [r"\2\1", r"\g<2>-\1\\1\x41\123\n\t", r"\101\\", r"\g<word>\g<0>é", r"\1\12", r"\\g<1>"]
)
def test_an_expansion_in_parts_is_that_of_the_whole_template(tmp_path, template):
    expected = regex.compile("(?P<word>a+)(b)()()()()()()()()()()").sub(template, "aab")
    put(tmp_path, {"a": "aab"})
    with Workspace(tmp_path) as ws:
        ws.replace("(?P<word>a+)(b)()()()()()()()()()()", template, regex=True)
    assert (tmp_path / "a").read_text() == expected


@pytest.mark.parametrize("path", ["large", ["small", "dir/large"], "dir/../large", "dir", "."], ids=repr)
def test_a_file_too_large_to_change_is_named_and_nothing_is_changed(tmp_path, path):
    put(tmp_path, {"large": "old " * 100, "dir/large": "old " * 100, "small": "old", "other": "x" * 400})
    with Workspace(tmp_path, limits=Limits(file_bytes=100)) as ws:
        for more in ({}, {"regex": True}, {"word": True}, {"preview": True}):
            error = fails(lambda m=more: ws.replace("old", "new", path, **m), "too_large", tmp_path)
            assert (error.details["size"], error.details["limit"]) == (400, 100)
            assert "400 bytes" in str(error)
            assert "large" in str(error)
            if path == "large":
                assert error.details["suggested_calls"][0]["name"] == "read"
            if path == ".":  # only the calls of its own hint
                assert "To leave them out" in error.hint
                assert "suggested_calls" not in error.details
        fails(lambda: ws.replace("absent", "new", "large"), "no_match", tmp_path)
        assert ws.replace("old", "new", glob=["!/large", "!/dir/large"]).files == {"small": 1}
        assert ws.replace("new", "gone").files == {"small": 1}, "the large files lack the text"


def test_a_long_text_and_one_of_several_lines_are_found(ws, tmp_path):
    long = "".join(f"line {n} of a long text (*)\n" for n in range(200))
    put(tmp_path, {"a": f"x\n{long}y\n", "b": (f"x\n{long}y\n").replace("\n", "\r\n"), "c": long[:-3]})
    assert ws.replace(long, "short\n").files == {"a": 1, "b": 1}
    assert (tmp_path / "b").read_bytes() == b"x\r\nshort\r\ny\r\n"
    assert ws.replace("x\nshort\n", "\n").files == {"a": 1, "b": 1}


@pytest.mark.parametrize(("given", "code"), [
    (("", "x"), "invalid_argument"), (("", "x", "regex"), "invalid_pattern"), (("old", "old"), "no_change"),
    (("(old)", r"\1", "regex"), "no_change"), (("old", "a\0"), "invalid_argument"),
    *((("o(l)d", new, "regex"), "invalid_argument") for new in (r"\0", r"\2", r"\g<other>", r"\d", "\\")),
    (("old", "x", "none"), "not_found"), (("old", "x", "../a"), "outside_workspace"),
    (("old", "x", 0), "invalid_argument"),
])  # fmt: skip
def test_invalid_arguments_are_refused(ws, tmp_path, given, code):
    put(tmp_path, {"a": "old"})
    old, new, *more = given
    named = {"regex": {"regex": True}, 0: {"expect": 0}}
    options = {} if not more else named.get(more[0], {"path": more[0]})
    fails(lambda: ws.replace(old, new, **options), code, tmp_path)


@pytest.mark.parametrize(("old", "options", "said"), [
    ("OLD", {}, "In another case it matches 1 line of a.py"),
    ("f(x)", {"glob": "*.js"}, "Without glob it matches 1 line"),
    ("f(x)", {"regex": True}, "As plain text it"), ("old", {"path": "d/*.py"}, "As a glob it matches 1 file"),
    ("f(x", {"regex": True}, 'old_string="f\\\\(x"'),
    ("only", {}, "1 line in hidden or ignored files, as in build/ (ignored by .gitignore:1 build)"),
])  # fmt: skip
def test_what_would_have_matched_is_named(ws, tmp_path, old, options, said):
    put(tmp_path, {"a.py": "Old", "b.txt": "f(x) old", "d/c.py": "old"})
    put(tmp_path, {".gitignore": "build\n", "build/b": "only here"})
    error = fails(lambda: ws.replace(old, "new", **options), None, tmp_path)
    assert said in str(error)
    assert "ignore_case" not in str(error)


def test_only_named_links_are_followed(tmp_path):
    put(tmp_path / "root", {"d/a": "old"})
    put(tmp_path / "out", {"b": "old"})
    (tmp_path / "root" / "link").symlink_to("d/a")
    (tmp_path / "root" / "away").symlink_to(tmp_path / "out")
    with Workspace(tmp_path / "root") as ws:
        assert ws.replace("old", "new").files == {"d/a": 1}
        assert ws.replace("new", "newer", ["link", "d"]).replacements == 1, "one file, by two paths"
        fails(lambda: ws.replace("old", "x", "away"), "outside_workspace", tmp_path)
    assert (tmp_path / "root" / "link").is_symlink()
    assert (tmp_path / "out" / "b").read_text() == "old"


def after(monkeypatch, name, act):
    real, done = getattr(replace, name), []

    def wrapped(*args, **options):
        found = real(*args, **options)
        if not done:
            done.append(act())
        return found

    monkeypatch.setattr(replace, name, wrapped)


def test_a_file_changed_by_another_program_meanwhile_is_not_overwritten(ws, tmp_path, monkeypatch):
    put(tmp_path, {"a": "old\n", "b": "old\n", "c": "old\n"})
    with monkeypatch.context() as patch:
        after(patch, "_changed_files", lambda: put(tmp_path, {"b": "theirs old\n"}))
        error = refused(lambda: ws.replace("old", "new"), "stale")
    assert "+theirs old" in str(error)
    assert [(tmp_path / name).read_text() for name in "abc"] == ["old\n", "theirs old\n", "old\n"]
    assert not ws.changes().files

    def before_it_is_read():
        put(tmp_path, {"a": "mine\n", "b": "theirs again old\n"})
        (tmp_path / "c").unlink()

    after(monkeypatch, "search_for", before_it_is_read)
    assert ws.replace("old", "new").files == {"b": 1}
    assert (tmp_path / "b").read_text() == "theirs again new\n"


def test_a_directory_swapped_for_a_link_leads_nowhere(tmp_path, monkeypatch):
    top, out = put(tmp_path / "root", {"d/a": "old", "b": "old"}), put(tmp_path / "out", {"a": "old"})

    def swap():
        (top / "d").rename(top / "e")
        (top / "d").symlink_to(out)

    with Workspace(top) as ws:
        for name in ("_changed_files", "search_for"):
            with monkeypatch.context() as patch:
                after(patch, name, swap)
                refused(lambda: ws.replace("old", "new"))
            (top / "d").unlink()
            (top / "e").rename(top / "d")
            assert (top / "b").read_text() == (out / "a").read_text() == "old"


def test_writers_at_the_same_time_lose_nothing(tmp_path):
    put(tmp_path, {f"f{n}": "old\n" for n in range(10)})
    with Workspace(tmp_path) as ws, Workspace(tmp_path) as other:

        def append(n):
            for k in range(10):
                kit.splice(other, f"f{n}", lambda text: ([(len(text), len(text), f"{k}\n")], ()))  # noqa: B023 - called in this pass

        with kit.in_threads(*(partial(append, n) for n in range(10))):
            for number in range(5):
                with suppress(StaleError, NoMatchError):
                    ws.replace("old" if number % 2 == 0 else "new", "new" if number % 2 == 0 else "old")
    texts = {(tmp_path / f"f{n}").read_text() for n in range(10)}
    assert {re.sub("old|new", "?", text) for text in texts} == {"?\n" + "".join(f"{k}\n" for k in range(10))}
    assert len(texts) == 1, "some files were changed and others not"


def test_permission_is_asked_once_with_the_whole_patch_and_the_files(tmp_path):
    put(tmp_path, {"a": "old\n", "d/b": "old\n", "c": "x\n"})
    requests = []
    policy = Policy(on_ask=lambda request: requests.append(request) or True)
    with Workspace(tmp_path, policy=policy) as ws:
        done = ws.replace("old", "new")
        assert done.skipped == ws.view(policy=Policy()).grep("nowhere").skipped, "files count as protected"
    (request,) = requests
    assert (request.method, {*request.paths}, request.diff) == ("replace", {"a", "d/b"}, done.diff)
    assert request.changes


def test_a_denied_replacement_changes_nothing(tmp_path):
    """`permissions/test_table.py` has the modes and the rules about changes."""
    put(tmp_path, {"a": "old\n", "d/b": "old\n"})
    for policy in (
        Policy(on_ask=lambda _: Deny("no")),
        *(Policy(deny=[r]) for r in ("replace(d/**)", "replace")),
    ):
        with Workspace(tmp_path, policy=policy) as ws:
            fails(lambda: ws.replace("old", "new"), "refused", tmp_path)
    with Workspace(tmp_path, policy=Policy(deny=["read(d/**)"])) as ws:
        done = ws.replace("old", "new")
    assert (done.files, done.skipped.protected) == ({"a": 1}, 1)
    with Workspace(tmp_path, policy=Policy(allow=["edit(d/**)"])) as ws:
        assert ws.replace("old", "new", "d/b").files == {"d/b": 1}


def test_only_files_shown_in_the_permission_request_are_changed(tmp_path, monkeypatch):
    """The file appears after the last check that nothing has changed."""
    put(tmp_path, {"a": "old\n"})
    with Workspace(tmp_path, policy=Policy(on_ask=lambda request: True)) as ws:
        calls = []
        real = replace.search_for

        def search(*args, **more):
            calls.append(args)
            if len(calls) == 2:  # the plan, and the change
                put(tmp_path, {"b": "old\n"})
            return real(*args, **more)

        monkeypatch.setattr(replace, "search_for", search)
        refused(lambda: ws.replace("old", "new"), "stale")
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text() == "old\n"


@pytest.mark.parametrize("change", [{"a": "old\nx\n"}, {"b": "old\n"}])
def test_a_change_between_question_and_answer_prevents_the_replacement(tmp_path, change):
    put(tmp_path, {"a": "old\n"})
    with Workspace(tmp_path, policy=Policy(on_ask=lambda _: bool(put(tmp_path, change)))) as ws:
        refused(lambda: ws.replace("old", "new"), "stale")
    assert "new" not in (tmp_path / "a").read_text()


def test_replace_keeps_the_read_and_unread_lines_of_files(ws, tmp_path):
    put(tmp_path, {"a": "old\ntwo\n", "b": "old\n"})
    ws.read("a")
    put(tmp_path, {"a": "theirs\nold\ntwo\n"})
    assert "a: 1 (it had changed since it was shown)\nb: 1" in str(ws.replace("old", "now"))
    ids = ws.read("a", line_ids=True).line_ids
    ws.replace("now", "new")
    assert ws.read("a", line_ids=True).line_ids[2] == ids[2]
    ws.write("a", "x\n")
    refused(lambda: ws.write("b", "x\n"), "unread")


def test_a_name_in_44_files_is_replaced_for_under_1500_tokens(ws, tmp_path):
    parts = ("contrib/contenttypes", "db/backends/postgresql")
    directories = [f"django/{part}/{name}" for part in parts for name in ("migrations", "models")]
    paths = [f"{directory}/{n}_operations.py" for directory in directories for n in range(11)]
    put(tmp_path, dict.fromkeys(paths, "get_prep_value()\nget_prep_value()\n"))
    tools = ws.tools("all")
    found = tools.call("grep", {"pattern": "get_prep_value", "output_mode": "count"})
    done = tools.call("replace", {"old_string": "get_prep_value", "new_string": "prepared", "expect": 88})
    assert len(done.data["files"]) == 44
    assert estimate_tokens(found.content) + estimate_tokens(done.content) < 1500


TEXTS = st.tuples(
    st.just("") | st.text("abé_ x\n", min_size=15, max_size=60), st.sampled_from(["\n", "\r\n"])
).map(lambda made: made[0].replace("\n", made[1]))
CODECS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"])


@part_or_all(5, full=2)
def test_the_outcome_equals_a_plain_python_replacement(every):
    @settings(max_examples=100 // every)
    @given(
        st.dictionaries(st.sampled_from(["a", "b", "d/a", "d/e/b", "f.txt"]), st.tuples(TEXTS, CODECS)),
        st.sampled_from(["a", "ab", "b", "aa", "é", "_", "ab\n"]),
        st.sampled_from(["", "x", "aab", "é_", "y\nz"]),
        st.booleans(),
    )
    def law(files, old, new, word):
        with tempfile.TemporaryDirectory() as directory:
            top = put(Path(directory), {name: text.encode(codec) for name, (text, codec) in files.items()})
            expected, counts = {}, {}
            for name, (text, codec) in files.items():
                view = text.replace("\r\n", "\n")
                found = rf"(?<!\w){re.escape(old)}(?!\w)" if word else re.escape(old)
                made, count = re.subn(found, lambda _: new, view)
                if "\r\n" in text:
                    made = made.replace("\n", "\r\n")
                expected[name] = made.encode(codec) if count else text.encode(codec)
                if count:
                    counts[name] = count
            with Workspace(top) as ws:
                if counts:
                    assert ws.replace(old, new, word=word).files == counts
                else:
                    refused(lambda: ws.replace(old, new, word=word), "no_match")
            assert {name: (top / name).read_bytes() for name in files} == expected

    law()
