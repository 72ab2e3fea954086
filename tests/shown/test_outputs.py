import os

import pytest

from agentfs import Limits, Workspace
from agentfs.shown import outputs
from agentfs.shown.outputs import OutputStore
from tests import kit


@pytest.fixture
def ws(tmp_path):
    for number in range(300):
        (tmp_path / f"file_{number:03}.txt").write_text(f"needle {number}\n")
    limits = Limits(output_tokens=400, grep_results=300)
    with Workspace(tmp_path, limits=limits) as made:
        yield made


def test_a_name_of_a_file_follows_the_file(ws, tmp_path):
    name = kit.keep(ws, ws.read("file_001.txt"))
    (tmp_path / "file_001.txt").write_text("changed\n")
    assert ws.read(name).content == "changed\n"
    assert ws.read(name).path == "file_001.txt"
    assert ws.grep("changed", path=name).matches[0].path == "file_001.txt"


def test_any_text_can_be_kept_even_if_a_file_has_its_name(ws, tmp_path):
    name = kit.keep(ws, "a\nb\n")
    assert kit.keep(ws, "a\nb\n") == name
    (tmp_path / name).write_text("a file\n")
    assert ws.read(name, offset=2).text == "2|b\n[line 2 of 2]"
    assert ws.grep("b", path=name).matches[0].line == 2
    assert ws.grep("absent", path=name).total_lines == 0
    assert ws.read(f"./{name}").content == "a file\n"


def test_all_parameters_of_a_read_apply_to_a_kept_text_or_are_refused(tmp_path):
    """`column` always showed the first page; `raw`, `line_ids` and `encoding` were ignored."""
    line = "".join(f"{number:05}," for number in range(2000))
    with Workspace(tmp_path) as ws:
        name = kit.keep(ws, f"{line}\nsecond\n")
        page = ws.read(name, limit=1)
        assert "cut after 2000 characters" in page.text
        shown = [page.content[:2000]]
        while len("".join(shown)) < len(line):
            page = ws.read(name, limit=1, column=len("".join(shown)) + 1)
            shown.append(page.content.removesuffix("\n")[:2000])
            assert shown[-1], "the line goes on"
        assert ("".join(shown), len(shown)) == (line, 6)
        assert ws.read(name, 2, raw=True).content == "second\n"
        noted = ws.read(name, 2, line_ids=True)
        assert noted.line_ids == ()
        assert noted.text.startswith("2|second\n[line 2 of 2; no line ids: this is not a file")
        error = kit.refused(lambda: ws.read(name, encoding="utf-16"), "invalid_argument")
        assert error.message == f'`encoding` does not apply to "{name}", which is text.'
        kit.refused(lambda: ws.read("@out_0000"), "not_found")


def test_names_of_another_kind(ws):
    name = kit.keep(ws, ws.read("file_001.txt"), kind="file")
    assert name.startswith("@file_")
    assert ws.read(name).path == "file_001.txt"
    assert kit.keep(ws, ws.read("file_001.txt")).startswith("@out_")
    assert kit.keep(ws, "a\n", kind="b") != kit.keep(ws, "a\n", kind="c")


def test_the_oldest_outputs_are_dropped(monkeypatch, ws):
    root = ws._root
    monkeypatch.setattr(outputs, "MAX_OUTPUTS", 3)
    monkeypatch.setattr(outputs, "MAX_CHARS", 10)
    kept = OutputStore()
    names = [kept.keep(str(number), root) for number in range(5)]
    assert [kept.get(name, root) is not None for name in names] == [False, False, True, True, True]
    large = kept.keep("x" * 11, root)
    assert [kept.get(name, root) for name in names] == [None] * 5
    assert kept.get(large, root) is not None


def test_a_name_grows_until_it_is_unique(monkeypatch, ws):
    root = ws._root
    monkeypatch.setattr(outputs, "MAX_OUTPUTS", 10**6)
    kept = OutputStore()
    names = {kept.keep(str(number), root) for number in range(2000)}
    assert len(names) == 2000
    assert all(kept.get(name, root) is not None for name in names)


@pytest.mark.parametrize("kept_in", [".", "d", "d/e"])
@pytest.mark.parametrize("read_in", [".", "d", "d/e"])
@pytest.mark.parametrize("target", ["f", "d/f", "d/e/f", "d/link", "d/caf\u00e9"])
def test_a_name_of_a_file_means_the_same_file_in_each_view(tmp_path, kept_in, read_in, target):
    (tmp_path / "d/e").mkdir(parents=True)
    for path in ("f", "d/f", "d/e/f", "d/caf\u00e9"):
        (tmp_path / path).write_text(f"{path}\n")
    (tmp_path / "d/link").symlink_to("e/f")
    with Workspace(tmp_path) as ws:
        one, other = ws.view(workdir=kept_in), ws.view(workdir=read_in)
        shown = one.read(os.path.relpath(target, kept_in))
        name = kit.keep(one, shown)
        again = other.read(name)
        assert again.content == shown.content
        assert other.read(again.path).content == shown.content
        assert other.grep(shown.content.strip(), path=name).total_lines == 1


# ---- a kept name is a text for each reading method, and a path for none ----


@pytest.fixture(params=["text", "page"])
def kept(request, ws):
    """The name of a text, or of a page of a file with the same text."""
    return kit.keep(ws, "needle 1\n" if request.param == "text" else ws.read("file_001.txt"))


def test_every_reading_method_takes_a_kept_name(kept, ws):
    """`files` said that it does not exist."""
    for named in (
        {"path": kept}, {"path": [kept]}, {"files": [kept]}, {"files": [kept], "sort": "size"},
        {"path": kept, "follow_symlinks": True},
    ):  # fmt: skip
        found = kit.grep(ws, "needle", **named)
        assert [(match.line, match.text) for match in found.matches] == [(1, "needle 1")], named
        assert found.searched_files == 1
    for order in ({}, {"sort": "size"}, {"sort": "modified"}, {"sort": "reverse"}, {"unique": True}):
        for named in ({"path": [kept, "file_002.txt"]}, {"files": [kept, "file_002.txt"]}):
            texts = sorted(match.text for match in kit.grep(ws, "needle", **named, **order).matches)
            assert texts == ["needle 1", "needle 2"], (named, order)


@pytest.mark.parametrize("change", [
    lambda ws, name: ws.append(name, "x\n"),
    lambda ws, name: ws.write(name, "x\n", overwrite=True),
    lambda ws, name: ws.edit(name, "needle", "x"), lambda ws, name: ws.edit(name, "", "x"),
    lambda ws, name: ws.multi_edit(name, [{"old_string": "needle", "new_string": "x"}]),
    lambda ws, name: kit.splice(ws, name, [(0, 1, "x")]),
    lambda ws, name: ws.replace("needle", "x", path=["file_003.txt", name]),
    lambda ws, name: ws.delete(name), lambda ws, name: ws.move(name, "y"),
    lambda ws, name: ws.move("file_003.txt", name), lambda ws, name: ws.undo(paths=[name]),
    lambda ws, name: ws.ls(name), lambda ws, name: kit.find(ws, path=name), lambda ws, name: ws.stat(name),
])  # fmt: skip
def test_a_kept_name_is_refused_where_only_a_path_will_do(kept, ws, tmp_path, change):
    """`append` and `write` made a file with the name, and `edit` changed the file of the page."""
    error = kit.refused(lambda: change(ws, kept), "invalid_argument")
    assert error.details == {"path": kept}
    assert "can only be read and searched" in error.message
    assert not (tmp_path / kept).exists()
    assert (tmp_path / "file_001.txt").read_text() == "needle 1\n"
    assert not ws.changes().files


@pytest.mark.parametrize(("dialect", "tool", "arguments"), [
    ("wave", "Write", {"file_path": "NAME", "content": "x\n"}),
    ("text-editor", "str_replace_based_edit_tool", {"command": "create", "path": "NAME", "file_text": "x\n"}),
    ("apply-patch", "apply_patch", {"input": "*** Begin Patch\n*** Add File: NAME\n+x\n*** End Patch"}),
    ("codescout", "create_file", {"path": "NAME", "content": "x\n"}),
    ("rye", "write", {"file_path": "NAME", "content": "x\n"}),
])  # fmt: skip
def test_no_dialect_makes_a_file_with_a_kept_name(kept, ws, tmp_path, dialect, tool, arguments):
    given = {name: value.replace("NAME", kept) for name, value in arguments.items()}
    result = ws.tools(dialect=dialect).call(tool, given)
    assert not result.success
    assert "can only be read and searched" in result.content
    assert not (tmp_path / kept).exists()
