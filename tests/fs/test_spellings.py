"""Other spellings of a name that file systems accept: none evades protection or rules.

No file system of the test machine folds names as ext4 with `casefold`, APFS, vfat and SMB do. So the system
calls get the name that such a file system would find.
"""

import os
import re
import unicodedata
from contextlib import suppress

import pytest
import regex

from agentfs import AgentFSError, Policy, Workspace
from agentfs.fs import syscalls
from tests.fs.mechanisms import replace_calls

SECRET = "hunter2"
IGNORABLE = regex.compile(r"\p{Default_Ignorable_Code_Point}")
TRANSLATED = ("lstat", "readlink", "enter", "open_directory", "open_file", "access_errno")


def folded(name: str) -> str:
    """Return the form that a `casefold` directory compares: NFD, folded, without ignorable characters."""
    return unicodedata.normalize("NFD", IGNORABLE.sub("", unicodedata.normalize("NFD", name)).casefold())


def short(name: str) -> str:
    """Return a name in DOS's 8.3 form, with the number 1."""
    stem, _, extension = name.lstrip(".").rpartition(".") if "." in name[1:] else (name.lstrip("."), "", "")
    stem, extension = (re.sub("[^A-Z0-9_-]", "", part.upper()) for part in (stem, extension))
    return f"{stem[:6]}~1" + (f".{extension[:3]}" if extension else "")


@pytest.fixture
def folding(monkeypatch):
    """Let the system find names like a file system that ignores case."""

    def actual(handle, name):
        names = os.listdir(f"/proc/self/fd/{handle}")
        if name in names or name == ".":
            return name
        alike = [each for each in names if folded(each) == folded(name) or short(each) == name.upper()]
        return alike[0] if alike else name

    def translating(call):
        return lambda handle, name, *more: call(handle, actual(handle, name), *more)

    replace_calls(
        monkeypatch,
        open_beneath=lambda handle, path, **_: -1,
        **{name: translating(getattr(syscalls, name)) for name in TRANSLATED},
    )


IGNORED = "\u00ad\u034f\u061c\u115f\u17b4\u180e\u200b\u2060\u3164\ufe0f\U000e0041"
SPELLINGS = {
    **{f".e{character}nv": ".env" for character in IGNORED},
    "ENV~1": ".env",
    "env~1": ".env",
    "GIT~1/config": ".git/config",
    "SSH~1/config": ".ssh/config",
    "CREDEN~1.JSO": "credentials.json",
    "\u017fecret\u017f.json": "secrets.json",
    "KEY~1/id_r\u200bsa": "key/id_rsa",
}


@pytest.mark.usefixtures("folding")
@pytest.mark.parametrize("spelling", SPELLINGS, ids=ascii)
@pytest.mark.parametrize("watch", [False, True])
def test_no_spelling_of_a_protected_name_shows_or_changes_it(tmp_path, spelling, watch):
    path = tmp_path / SPELLINGS[spelling]
    path.parent.mkdir(exist_ok=True)
    path.write_text(SECRET)
    with Workspace(tmp_path, policy=Policy(overwrite="always"), watch=watch) as ws:
        for call in (
            lambda on: on.read(spelling),
            lambda on: on.read(f"./{spelling}"),
            lambda on: on.grep(SECRET[:3], spelling),
            lambda on: on.edit(spelling, SECRET, "x"),
            lambda on: on.write(spelling, "x"),
            lambda on: on.replace(SECRET, "x", spelling),
            lambda on: on.delete(spelling),
            lambda on: on.move(spelling, "moved"),
        ):
            for on in (ws, ws.view(only=["."])):
                with pytest.raises(AgentFSError) as caught:
                    call(on)
                assert caught.value.code == "protected"
                assert SECRET not in f"{caught.value} {caught.value.details}"
        assert SECRET not in str(ws.read_many([spelling]))
    assert path.read_text() == SECRET


RULED = {
    "GEHEIM~1.TXT": "geheimnis.txt",
    "SECRET~1/a": "secretdir/a",
    "gehe\u00adim.txt": "geheim.txt",
    "geheim-e\u0301.txt": "geheim-\u00e9.txt",
    "geheim-\u00e9.txt": "geheim-e\u0301.txt",
    "\u1112\u1161\u11ab/a": "\ud55c/a",
    "\ud55c/b": "\u1112\u1161\u11ab/b",
}


@pytest.mark.usefixtures("folding")
@pytest.mark.parametrize("given", RULED, ids=ascii)
def test_no_spelling_leads_past_a_rule(tmp_path, given):
    there = RULED[given]
    path = tmp_path / there
    path.parent.mkdir(exist_ok=True)
    path.write_text(SECRET)
    for rule in dict.fromkeys(
        (there, unicodedata.normalize("NFC", there), unicodedata.normalize("NFD", there))
    ):
        with Workspace(tmp_path, policy=Policy(deny=[f"read({rule})"])) as ws:
            for spelling in (given, there):
                with pytest.raises(AgentFSError) as caught:
                    ws.read(spelling)
                assert caught.value.code == "refused"
                assert SECRET not in str(ws.grep(SECRET[:3]))


@pytest.mark.usefixtures("folding")
def test_a_file_is_shown_under_its_listed_name(tmp_path):
    (tmp_path / "Stra\u00dfe.md").write_text("text\n")
    with Workspace(tmp_path) as ws:
        assert ws.read("stra\u00dfe.md").path == "Stra\u00dfe.md"
        assert ws.edit("stra\u00adsse.md", "text", "new").path == "Stra\u00dfe.md"
    assert os.listdir(tmp_path) == ["Stra\u00dfe.md"]


@pytest.mark.usefixtures("folding")
def test_among_hard_links_the_one_with_a_similar_spelling_decides(tmp_path):
    (tmp_path / "key.pem").write_text(SECRET)
    for name in ("a.txt", "z.txt"):
        os.link(tmp_path / "key.pem", tmp_path / name)
    with Workspace(tmp_path) as ws:
        for spelling in ("k\u00adey.pem", "KE\u200bY.pem"):
            with pytest.raises(AgentFSError) as caught:
                ws.read(spelling)
            assert caught.value.code == "protected"


@pytest.mark.usefixtures("folding")
def test_a_short_name_leads_to_its_own_file(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "gi.t.d").mkdir()
    (tmp_path / "gi.t.d/config").write_text("text\n")
    with Workspace(tmp_path) as ws:
        assert ws.read("GIT~1.D/config").path == "gi.t.d/config"


def test_no_directory_is_listed_for_a_name_with_one_spelling(tmp_path, monkeypatch):
    for name in ("a.txt", "\u00e9.txt", "\u65e5\u672c.txt", "b.txt~"):
        (tmp_path / name).write_text("text\n")
    listed = []
    names = syscalls.list_names
    monkeypatch.setattr(syscalls, "list_names", lambda handle: listed.append(handle) or names(handle))
    with Workspace(tmp_path) as ws:
        for name in os.listdir(tmp_path):
            with suppress(AgentFSError):
                assert ws.read(name).content == "text\n"
    assert listed == []


def test_other_spellings_of_a_plain_name_are_not_looked_up(tmp_path, monkeypatch):
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir/a.txt").write_text("text\n")
    looked = []
    lstat = syscalls.lstat
    with Workspace(tmp_path) as ws:
        monkeypatch.setattr(
            syscalls, "lstat", lambda handle, name: looked.append(name) or lstat(handle, name)
        )
        for path in ("dir/a.txt", "dir/../dir/a.txt"):
            ws.read(path)
    assert {name for name in looked if name.lower() != name or "\u00ad" in name} == set()
