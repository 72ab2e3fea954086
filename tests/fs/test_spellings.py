"""Other spellings of a name that file systems accept: none evades protection or rules.

No file system of the test machine folds names as ext4 with `casefold`, APFS, vfat and SMB do. So the system
calls get the name that such a file system would find.
"""

import os
import unicodedata
from contextlib import suppress

import pytest
import regex

from agentfs import AgentFSError, Policy, Workspace
from agentfs.fs import syscalls
from tests.fs.mechanisms import replace_calls
from tests.kit import code_of, error_of, put

SECRET = "hunter2"
IGNORABLE = regex.compile(r"\p{Default_Ignorable_Code_Point}")
TRANSLATED = ("lstat", "readlink", "enter", "open_directory", "open_file", "may_write")


def folded(name: str) -> str:
    """Return the form that a `casefold` directory compares: NFD, folded, without ignorable characters."""
    return unicodedata.normalize("NFD", IGNORABLE.sub("", unicodedata.normalize("NFD", name)).casefold())


@pytest.fixture
def folding(monkeypatch):
    """Let the system find names like a file system that ignores case."""

    def actual(handle, name):
        names = os.listdir(f"/proc/self/fd/{handle}")
        if name in names or name == ".":
            return name
        alike = [each for each in names if folded(each) == folded(name)]
        return alike[0] if alike else name

    def translating(call):
        return lambda handle, name, *more: call(handle, actual(handle, name), *more)

    replace_calls(monkeypatch, **{name: translating(getattr(syscalls, name)) for name in TRANSLATED})


IGNORED = "\u00ad\u034f\u061c\u115f\u17b4\u180e\u200b\u2060\u3164\ufe0f\U000e0041"
SPELLINGS = {
    **{f".e{character}nv": ".env" for character in IGNORED},
    "\u017fecret\u017f.json": "secrets.json",
    "key/id_r\u200bsa": "key/id_rsa",
}


@pytest.mark.usefixtures("folding")
@pytest.mark.parametrize("spelling", SPELLINGS, ids=ascii)
@pytest.mark.parametrize("watch", [False, True])
def test_no_spelling_of_a_protected_name_shows_or_changes_it(tmp_path, spelling, watch):
    path = tmp_path / SPELLINGS[spelling]
    path.parent.mkdir(exist_ok=True)
    path.write_text(SECRET)
    with Workspace(tmp_path, policy=Policy(overwrite="always"), watch=watch) as ws:
        for on in (ws, ws.view(only=["."])):
            for call, *given in (
                *((on.read, spelling), (on.read, f"./{spelling}"), (on.grep, SECRET[:3], spelling)),
                *((on.edit, spelling, SECRET, "x"), (on.write, spelling, "x"), (on.delete, spelling)),
                *((on.replace, SECRET, "x", spelling), (on.move, spelling, "moved")),
            ):
                error = error_of(call, *given)
                assert error.code == "protected"
                assert SECRET not in f"{error} {error.details}"
    assert path.read_text() == SECRET


RULED = {
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
    for rule in {there, *(unicodedata.normalize(form, there) for form in ("NFC", "NFD"))}:
        with Workspace(tmp_path, policy=Policy(deny=[f"read({rule})"])) as ws:
            for spelling in (given, there):
                assert code_of(ws.read, spelling) == "refused"
                assert SECRET not in str(ws.grep(SECRET[:3]))


def test_no_directory_is_listed_for_a_name_with_one_spelling(tmp_path, monkeypatch):
    for name in ("a.txt", "\u00e9.txt", "\u65e5\u672c.txt", "b.txt~"):
        (tmp_path / name).write_text("text\n")
    listed = []
    names = syscalls.names_in_time
    with Workspace(tmp_path) as ws:
        monkeypatch.setattr(syscalls, "names_in_time", lambda handle: listed.append(handle) or names(handle))
        for name in os.listdir(tmp_path):
            with suppress(AgentFSError):
                assert ws.read(name).content == "text\n"
    assert listed == []


def test_other_spellings_of_a_plain_name_are_not_looked_up(tmp_path, monkeypatch):
    put(tmp_path, {"dir/a.txt": "text\n"})
    looked = []
    lstat = syscalls.lstat
    with Workspace(tmp_path) as ws:
        monkeypatch.setattr(
            syscalls, "lstat", lambda handle, name: looked.append(name) or lstat(handle, name)
        )
        for path in ("dir/a.txt", "dir/../dir/a.txt"):
            ws.read(path)
    assert {name for name in looked if name.lower() != name or "\u00ad" in name} == set()
