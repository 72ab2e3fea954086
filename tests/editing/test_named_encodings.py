"""Files whose encoding cannot be told: `read` says so, and each call names it by `encoding`."""

import pytest

from agentfs import Edit
from tests.kit import refused

TEXTS = {
    "gb18030": ("配置文件\n主机 = 本地\n", "本地", "服务器"),
    "big5": ("設定檔案\n主機 = 本地\n", "本地", "伺服器"),
    "shift_jis": ("設定ファイル\nホスト = 本体\n", "本体", "サーバー"),
    "euc-kr": ("설정 파일\n호스트 = 로컬\n", "로컬", "서버"),
    "koi8-r": ("Файл настроек\nузел = местный\n", "местный", "сервер"),
    "latin-1": ("Données é\nhôte = là\n", "là", "où"),
}


@pytest.mark.parametrize(("encoding", "text", "old", "new"), [(k, *v) for k, v in TEXTS.items()])
def test_each_call_names_the_encoding(ws, tmp_path, encoding, text, old, new):
    path = tmp_path / "settings.txt"
    path.write_bytes(text.encode(encoding))
    tools = ws.tools()
    first = tools.call("read", {"path": "settings.txt"})
    assert "not UTF-8, and the encoding is not known" in first.content
    assert "pass encoding" in first.content
    named = {"path": "settings.txt", "encoding": encoding}
    assert text.split("\n")[0] in tools.call("read", named).content
    assert tools.call("edit", {**named, "old_string": old, "new_string": new}).success
    assert path.read_bytes() == text.replace(old, new).encode(encoding)
    ws.multi_edit("settings.txt", [Edit(new, old), Edit("=", "==")], encoding=encoding)
    assert path.read_bytes() == text.replace("=", "==").encode(encoding)
    [found] = ws.grep(old, encoding=encoding).matches
    assert found.line == 2
    ws.read("settings.txt", encoding=encoding)
    ws.write("settings.txt", f"{new}\n", encoding=encoding)
    assert path.read_bytes() == f"{new}\n".encode(encoding)


def test_a_miss_in_an_unknown_encoding_says_how_to_name_it(ws, tmp_path):
    for encoding, (text, old, new) in TEXTS.items():
        (tmp_path / "f").write_bytes(text.encode(encoding))
        if encoding == "latin-1":  # its bytes are shown as they are
            assert ws.edit("f", old, old[:1]).replacements == 1
        else:
            assert "pass encoding=" in refused(lambda: ws.edit("f", old, new), "no_match").hint  # noqa: B023 - called at once
