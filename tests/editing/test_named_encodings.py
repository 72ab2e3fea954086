"""Files whose encoding cannot be told: `read` says so, and a read that names it is enough for other calls."""

from contextlib import suppress

import pytest

from agentfs import AgentFSError, Edit, Limits, LineChange, Workspace, connect
from tests import kit

TEXTS = {
    "gb18030": ("配置文件\n主机 = 本地\n", "本地", "服务器"),
    "gbk": ("配置文件\n主机 = 本地\n", "本地", "服务器"),
    "big5": ("設定檔案\n主機 = 本地\n", "本地", "伺服器"),
    "shift_jis": ("設定ファイル\nホスト = 本体\n", "本体", "サーバー"),
    "euc-kr": ("설정 파일\n호스트 = 로컬\n", "로컬", "서버"),
    "koi8-r": ("Файл настроек\nузел = местный\n", "местный", "сервер"),
    "cp1251": ("Файл настроек\nузел = местный\n", "местный", "сервер"),
    "latin-1": ("Données é\nhôte = là\n", "là", "où"),
}
each = pytest.mark.parametrize(("encoding", "text", "old", "new"), [(k, *v) for k, v in TEXTS.items()])


@pytest.fixture
def path(tmp_path, encoding, text):
    path = tmp_path / "dir" / "settings.txt"
    path.parent.mkdir()
    path.write_bytes(text.encode(encoding))
    (tmp_path / "dir" / "other.txt").write_text("主機 本地 узел hôte\n", encoding="utf-8")
    return path


@each
def test_a_read_that_names_the_encoding_is_enough_for_every_edit(ws, path, encoding, text, old, new):
    tools, name = ws.tools(), "dir/settings.txt"
    first = tools.call("read", {"path": name})
    assert "not UTF-8, and the encoding is not known" in first.content
    assert "Latin-1; if you know it, pass encoding" in first.content
    assert text.split("\n")[0] in tools.call("read", {"path": name, "encoding": encoding}).content
    assert tools.call("edit", {"path": name, "old_string": old, "new_string": new}).success
    now = text.replace(old, new)
    assert path.read_bytes() == now.encode(encoding)
    ws.multi_edit(name, [Edit(new, old), Edit(old, new), Edit("=", "==")])
    assert path.read_bytes() == now.replace("=", "==").encode(encoding)
    ids = ws.read(name, line_ids=True).line_ids
    ws.edit_lines(name, [LineChange(line_id=ids[1], new_content=old)])
    assert path.read_bytes() == f"{text.split(chr(10))[0]}\n{old}\n".encode(encoding)
    kit.splice(ws, name, lambda content: [(content.index(old), content.index(old) + len(old), new)])
    assert path.read_bytes().endswith(f"{new}\n".encode(encoding))
    assert ws.write(name, f"{new} {old}\n").notes == (
        f"the encoding of the file was kept ({kept(encoding)})",
    )
    assert path.read_bytes() == f"{new} {old}\n".encode(encoding)
    assert ws.read(name).content == f"{new} {old}\n"
    assert f"encoding {kept(encoding)}" in ws.read(name).text
    assert ws.replace(old, new, "dir", glob="settings*").replacements == 1
    assert path.read_bytes() == f"{new} {new}\n".encode(encoding)


def kept(encoding):
    return {"latin-1": "iso8859-1", "euc-kr": "euc_kr"}.get(encoding, encoding)


@each
@pytest.mark.parametrize("watch", [False, True])
def test_a_search_reads_the_file_in_the_encoding_that_was_named(
    tmp_path, path, encoding, text, old, new, watch
):
    line = text.split("\n")[1]
    many = [tmp_path / "dir" / f"{number}.txt" for number in range(40)]
    for each_path in many:
        each_path.write_text("nothing here\n")
    with Workspace(tmp_path, watch=watch) as ws:
        # An unknown encoding is read as Latin-1.
        assert ws.grep(line, fixed_strings=True).total_lines == (encoding == "latin-1")
        ws.read("dir/settings.txt", encoding=encoding)
        for _ in range(2):
            found = ws.grep(line, fixed_strings=True)
            assert [(match.path, match.line, match.text) for match in found.matches] == [
                ("dir/settings.txt", 2, line)
            ]
            assert ws.grep(line.split(" ")[0]).total_files >= 1
        assert ws.grep(line, "dir/settings.txt", fixed_strings=True).total_lines == 1
        assert ws.grep("nothing", output_mode="total").total_files == 40


@each
def test_the_encoding_outlives_a_restart_and_a_move(tmp_path, path, encoding, text, old, new):
    root, state = tmp_path / "dir", tmp_path / "state"
    with Workspace(root, state=state) as ws:
        ws.read("settings.txt", encoding=encoding)
    with Workspace(root, state=state) as ws:
        ws.edit("settings.txt", old, new)
        ws.move("settings.txt", "moved.txt")
    with Workspace(root, state=state) as ws:
        ws.edit("moved.txt", new, old)
        assert ws.read("moved.txt").content == text
        ws.forget()
        assert ws.read("moved.txt").encoding == "unknown-8bit"
    assert (root / "moved.txt").read_bytes() == text.encode(encoding)


@each
def test_a_change_by_another_program_does_not_make_the_encoding_wrong(ws, path, encoding, text, old, new):
    name = "dir/settings.txt"
    ws.read(name, encoding=encoding)
    path.write_bytes((text + old).encode(encoding))
    assert ws.read(name).content == text + old
    path.write_bytes((text + old + old).encode(encoding))
    ws.edit(name, old + old, new)
    assert path.read_bytes() == (text + new).encode(encoding)
    path.write_text(text, encoding="utf-8")
    assert ws.read(name).encoding == "utf-8"
    ws.edit(name, old, new)
    assert path.read_text(encoding="utf-8") == text.replace(old, new)
    path.write_bytes(b"\x00\x01\x02")
    assert ws.read(name).kind == "binary"
    assert ws.grep("a", name, include_ignored=True).skipped.binary == 1


@each
def test_a_change_of_a_large_file_by_another_program_does_not_make_the_encoding_wrong(
    tmp_path, encoding, text, old, new
):
    path, many = tmp_path / "large.txt", 3000
    path.write_bytes((text * many).encode(encoding))
    with Workspace(tmp_path, limits=Limits(file_bytes=1000)) as ws:
        ws.read("large.txt", encoding=encoding)
        assert ws.read("large.txt", limit=1).content == text.splitlines(keepends=True)[0]
        path.write_bytes((text * many + old).encode(encoding))
        assert ws.read("large.txt", limit=1).content == text.splitlines(keepends=True)[0]
        path.write_text(text * many, encoding="utf-8")
        found = ws.read("large.txt", limit=1)
        assert (found.encoding, found.content) == ("utf-8", text.splitlines(keepends=True)[0])
        path.write_bytes(b"\x00\x01" * 1000)
        assert ws.read("large.txt").kind == "binary"


@each
def test_undo_and_a_transaction_keep_the_encoding(ws, path, encoding, text, old, new):
    name = "dir/settings.txt"
    ws.read(name, encoding=encoding)
    ws.edit(name, old, new)
    ws.undo()
    assert path.read_bytes() == text.encode(encoding)
    with suppress(ZeroDivisionError), ws.transaction() as inner:
        inner.edit(name, old, new)
        raise ZeroDivisionError
    assert path.read_bytes() == text.encode(encoding)
    ws.edit(name, old, new)
    assert path.read_bytes() == text.replace(old, new).encode(encoding)


@pytest.mark.parametrize("encoding", ["gbk"])
@pytest.mark.parametrize("text", ["本地\n"])
def test_a_later_read_may_name_another_encoding(ws, path, encoding, text):
    name = "dir/settings.txt"
    ws.read(name, encoding="koi8-r")
    ws.read(name, encoding="gbk")
    ws.edit(name, "本地", "主机")
    assert path.read_bytes() == "主机\n".encode("gbk")
    with pytest.raises(AgentFSError) as caught:
        ws.edit(name, "主机", "\u05d0")
    assert caught.value.code == "encoding"


def test_a_short_text_that_is_also_utf_8_stays_in_the_encoding_that_was_named(ws, tmp_path):
    data = "模".encode("gbk")
    assert data.decode() == "ģ"
    (tmp_path / "a.txt").write_bytes(data)
    ws.read("a.txt", encoding="gbk")
    ws.edit("a.txt", "模", "模块")
    assert (tmp_path / "a.txt").read_bytes() == "模块".encode("gbk")
    assert ws.read("a.txt", encoding="gbk").content == "模块"
    (tmp_path / "b.txt").write_text("ģ")
    ws.read("b.txt", encoding="gbk")
    assert ws.read("b.txt", encoding="utf-8").content == "ģ"
    assert ws.read("b.txt").content == "ģ"


def test_a_write_that_names_the_encoding_is_remembered(ws, tmp_path):
    ws.write("a.txt", "本地\n", encoding="gbk")
    ws.edit("a.txt", "本地", "主机")
    assert (tmp_path / "a.txt").read_bytes() == "主机\n".encode("gbk")
    assert ws.grep("主机").total_lines == 1


def test_a_notebook_read_as_utf_8_is_shown_by_cell_again(ws, tmp_path):
    (tmp_path / "a.ipynb").write_text('{"cells": [{"source": "x"}]}')
    assert ws.read("a.ipynb", encoding="utf-8").kind == "text"
    assert ws.read("a.ipynb").kind == "notebook"


@pytest.mark.parametrize("encoding", ["gbk"])
@pytest.mark.parametrize("text", ["本地\n"])
def test_the_encoding_is_remembered_over_connect(path, encoding, text):
    with connect(["env"], path.parent) as ws:
        ws.read("settings.txt", encoding="gbk")
        ws.edit("settings.txt", "本地", "主机")
        assert ws.grep("主机", "settings.txt").total_lines == 1
    assert path.read_bytes() == "主机\n".encode("gbk")


def test_a_toolset_without_the_parameter_does_not_name_it(ws, tmp_path):
    (tmp_path / "a.txt").write_bytes("本地\n".encode("gbk"))
    result = ws.tools(dialect="wave").call("Read", {"file_path": "a.txt"})
    assert "not UTF-8" in result.content
    assert "pass" not in result.content


def test_an_edit_of_an_unknown_encoding_says_how_to_name_it(ws, tmp_path):
    (tmp_path / "a.txt").write_bytes("主机 = 本地\n".encode("gbk"))
    tools = ws.tools()
    for old, new in (("本地", "主机"), ("=", "≠")):
        refused = tools.call("edit", {"path": "a.txt", "old_string": old, "new_string": new})
        assert not refused.success
        assert 'read(path="a.txt", encoding="gb18030")' in refused.content
    assert "本地" in tools.call("read", {"path": "a.txt", "encoding": "gb18030"}).content
    assert tools.call("edit", {"path": "a.txt", "old_string": "本地", "new_string": "主机"}).success
    for path, data in {"b.txt": b"\xff\xfe\xfd caf\xe9", "c.txt": b"\x81\x8d caf\xe9"}.items():
        (tmp_path / path).write_bytes(data)
        refused = ws.tools(dialect="wave").call(
            "Edit", {"file_path": path, "old_string": "caf\u2603", "new_string": "x"}
        )
        assert "encoding=" not in refused.content


def test_changes_shows_a_file_that_was_written_in_an_unknown_encoding(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\n\xe9\n")
    with Workspace(tmp_path) as ws:
        ws.read("a.txt")
        ws.write("a.txt", "")
        assert r"-\xe9" in ws.changes().text
