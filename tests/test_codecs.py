"""Text in every codec of Python is read, written and edited, or the codec is refused."""

import codecs
import encodings
import encodings.aliases
import pkgutil

from agentfs import AgentFSError, Policy, Workspace
from tests.conftest import part_or_all

MODULES = {module.name for module in pkgutil.iter_modules(encodings.__path__)}
NAMES = sorted({*MODULES, *encodings.aliases.aliases.values(), "rot13", "hex", "u8", "no such codec"})
NOT_PLAIN = {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape"}
STATEFUL = {"utf_7", "utf_8_sig", "utf_16", "hz", "iso2022_jp"}
DATA = [
    b"plain text\n.." + b"x" * 70 + b".com\n", "é ü text\n".encode("latin-1"), b"\xff\xfe\x00\xd8text\n",
    b"text +AGE- \\u0041 \\x ~{ \x1b$B \x0e \\N{none}\n",
]  # fmt: skip


def is_plain(name: str) -> bool:
    """Compare with Python's own list, except for codecs that escape text."""
    try:
        codec = codecs.lookup(name)
    except (LookupError, ImportError):
        return False
    return codec._is_text_encoding and codec.name not in NOT_PLAIN  # type: ignore[attr-defined] # private


@part_or_all(2)
def test_no_codec_ends_a_call_with_an_error_of_its_own(tmp_path, every):
    names = NAMES[::every]
    said: dict[str, set[str]] = {name: set() for name in names}
    with Workspace(tmp_path, policy=Policy(overwrite="always")) as ws:

        def read_and_edit(name, content):
            (tmp_path / "f").write_bytes(content)
            yield lambda: ws.read("f", encoding=name)
            yield lambda: ws.edit("f", "text", "..é\ud800", encoding=name)
            yield lambda: ws.edit("f", "text", "..a", encoding=name)

        def calls(name):
            for content in DATA if name in STATEFUL or not is_plain(name) else DATA[1:2]:
                yield from read_and_edit(name, content)
            yield lambda: ws.write("g", "text ..é\u4e00\n" + "x" * 80 + "..", encoding=name)
            yield lambda: ws.write("g", "plain\n", encoding=name)
            yield lambda: ws.grep("é", "f", encoding=name)

        for name in names:
            for call in calls(name):
                try:
                    call()
                except AgentFSError as error:
                    said[name].add(error.code)
                else:
                    said[name].add("done")
    refused = {name for name, codes in said.items() if "invalid_argument" in codes}
    assert refused == {name for name in names if not is_plain(name)}
    assert {len(codes) for name, codes in said.items() if not is_plain(name)} == {1}
    assert set().union(*said.values()) <= {"done", "invalid_argument", "encoding", "no_match"}


def test_a_declared_codec_that_escapes_a_text_is_not_used(tmp_path):
    (tmp_path / "f").write_bytes(b"# coding: unicode_escape\n\\u0041\n")
    with Workspace(tmp_path) as ws:
        assert ws.read("f").content == "# coding: unicode_escape\n\\u0041\n"
        ws.edit("f", "\\u0041", "é")
    assert (tmp_path / "f").read_bytes() == "# coding: unicode_escape\né\n".encode()
