"""Faults that users of other tools reported: the file, the call, and the expected bytes or refusal.

Each row is named after its issue or finding.
"""

# ruff: noqa: E501 - a row of the table is one line
import codecs

import pytest

from agentfs import Policy, Workspace
from tests.kit import put, refused

L1 = "café naïve\n".encode("latin-1")
SJIS = "日本語 = 1\r\n".encode("shift_jis")

# name, bytes, (old, new[, replace_all]), bytes after
LANDS = [
    ("claude-code#13456 CRLF, one line", b"a\r\nb\r\n", ("b", "c"), b"a\r\nc\r\n"),
    ("scoreboard: CRLF and LF old of lines", b"a\r\nb\r\nc\r\n", ("a\nb", "a\nx"), b"a\r\nx\r\nc\r\n"),
    ("scoreboard: mixed elsewhere", b"a\r\nb\nc\r\n", ("c", "d"), b"a\r\nb\nd\r\n"),
    ("openclaw#116011 bare CR file", b"a\rb\rc", ("b", "x\ny"), b"a\rx\ry\rc"),
    ("openclaw#116011 bare CR in LF file", b"a\rb\nc\n", ("c", "d"), b"a\rb\nd\n"),
    ("openclaw#116011 mixed in the place", b"a\nb\r\nc\n", ("a\nb\nc", "a\nB\nc"), b"a\nB\r\nc\n"),
    ("agent-os#1910 one line is one line", b"1\r\n2\r\n3\r\n4\r\n", ("3", "x"), b"1\r\n2\r\nx\r\n4\r\n"),
    ("wave: CRLF file stays CRLF", b"a\r\n\r\nb\r\n", ("a\n\nb", "a\nb"), b"a\r\nb\r\n"),
    ("kimi-cli#2191 inserted lines", b"a\r\nb\r\n", ("a\n", "a\nn\n"), b"a\r\nn\r\nb\r\n"),
    ("pi#2744 CRLF given, LF file", b"a\nb\n", ("a\r\nb", "a\r\nc"), b"a\nc\n"),
    ("claude-code#13363 BOM kept", b"\xef\xbb\xbfa\n", ("a", "b"), b"\xef\xbb\xbfb\n"),
    ("BOM before the first line", b"\xef\xbb\xbfa\nb\n", ("a\nb", "b"), b"\xef\xbb\xbfb\n"),
    ("claude-code#7134 latin-1 kept", L1 + b"x=1\n", ("x=1", "x=2"), L1 + b"x=2\n"),
    ("claude-code#56946 shift-jis kept", SJIS, ("= 1", "= 2"), SJIS.replace(b"1", b"2")),
    ("claude-code#85842 stray byte kept", b"ok \xff\nx\n", ("x", "y"), b"ok \xff\ny\n"),
    ("scoreboard: UTF-16", "\ufeffa\nb\n".encode("utf-16-le"), ("b", "ü"), "\ufeffa\nü\n".encode("utf-16-le")),
    ("UTF-16 big-endian, astral", "\ufeff😀\n".encode("utf-16-be"), ("😀", "x"), "\ufeffx\n".encode("utf-16-be")),
    ("UI-TARS#1976 $&", b"x\n", ("x", "$&"), b"$&\n"),
    ("wave#1752 $& in a longer text", b"a x b\n", ("x", "cost $& $1 $$"), b"a cost $& $1 $$ b\n"),
    ("backslash one", b"x\n", ("x", "\\1\\g<0>"), b"\\1\\g<0>\n"),
    ("percent and braces", b"x\n", ("x", "%s {0} {}"), b"%s {0} {}\n"),
    ("old is a regex", b"a.b a+b\n", ("a+b", "c"), b"a.b c\n"),
    ("control characters", b"x\n", ("x", "\x1b[0m\x08"), b"\x1b[0m\x08\n"),
    ("opencode#2433 braces are not doubled", b"f() {\n  a\n}\n", ("{\n  a\n}", "{\n  b\n}"), b"f() {\n  b\n}\n"),
    ("codescout BUG-024 multi-byte slice", "é😀x\n".encode(), ("x", "y"), "é😀y\n".encode()),
    ("no final newline stays away", b"a\nb", ("b", "c"), b"a\nc"),
    ("codescout: range drops no final newline", b"a\nb\n", ("a", "c"), b"c\nb\n"),
    ("opencode#14632 newline beyond the end", b"a\nb", ("b\n", "c\n"), b"a\nc"),
    ("ryeos: form feed is no line end", b"a\x0cb\nc\n", ("c", "d"), b"a\x0cb\nd\n"),
    ("ryeos: U+2028 is no line end", "a\u2028b\nc\n".encode(), ("c", "d"), "a\u2028b\nd\n".encode()),
    ("claude-code#1986 curly in the file", "say “hi”\n".encode(), ('say "hi"', 'say "hi" now'), "say “hi” now\n".encode()),
    ("claude-code#31863 straight in the file", b'say "hi"\n', ("say “hi”", "say “hi” now"), b'say "hi" now\n'),
    ("claude-code#31863 curly elsewhere stay", '“a”\n"b"\n'.encode(), ("“b”", "“c”"), '“a”\n"c"\n'.encode()),
    ("dash", "a — b\n".encode(), ("a - b", "a - c"), "a — c\n".encode()),
    ("no-break space", "a\u00a0b c\n".encode(), ("a b c", "a b d"), "a\u00a0b d\n".encode()),
    ("trailing space in the file", b"a  \nb\n", ("a\nb", "a\nc"), b"a  \nc\n"),
    ("trailing space in old", b"a\nb\n", ("a \nb", "a \nc"), b"a\nc\n"),
    ("trailing tab in old, last line", b"a\nb\n", ("b\t", "c"), b"a\nc\n"),
    ("blank line with spaces", b"a\n    \nb\n", ("a\n\nb", "a\n\nc"), b"a\n    \nc\n"),
    ("dedented block, python", b"class A:\n    def f(self):\n        return 1\n",
     ("def f(self):\n    return 1", "def f(self):\n    x = 1\n    return x"),
     b"class A:\n    def f(self):\n        x = 1\n        return x\n"),
    ("indented block, python", b"def f():\n    return 1\n", ("    def f():\n        return 1", "    def f():\n        return 2"), b"def f():\n    return 2\n"),
    ("block under a tab", b"if a:\n\tif b:\n\t\tc\n", ("if b:\n\tc\n", "if b:\n\td\n"), b"if a:\n\tif b:\n\t\td\n"),
    ("yaml one level up", b"a:\n  b:\n    c: 1\n", ("b:\n  c: 1", "b:\n  c: 2\n  d: 3"), b"a:\n  b:\n    c: 2\n    d: 3\n"),
    ("haskell where", b"f = g\n    where\n      g = 1\n", ("where\n  g = 1", "where\n  g = 2"), b"f = g\n    where\n      g = 2\n"),
    ("shown escape", "a\u202eb\n".encode(), ("a⟦U+202E⟧b", "ab"), b"ab\n"),
    ("shown escape in both", "a\u200eb\n".encode(), ("a⟦U+200E⟧b", "a⟦U+200E⟧c"), "a\u200ec\n".encode()),
    ("literal escape stays literal", "a ⟦U+0041⟧\n".encode(), ("⟦U+0041⟧", "x"), b"a x\n"),
    ("replace_all left to right", b"aaaaa", ("aa", "b", True), b"bba"),
    ("replace_all with old in new", b"x x", ("x", "xx", True), b"xx xx"),
    ("replace_all in CRLF", b"a\r\na\r\n", ("a", "b\nc", True), b"b\r\nc\r\nb\r\nc\r\n"),
    ("replace_all in unknown 8-bit", b"\xe9a\xe9a", ("a", "", True), b"\xe9\xe9"),
    ("delete a line", b"a\nb\nc\n", ("b\n", ""), b"a\nc\n"), ("delete everything", b"a\n", ("a\n", ""), b""),
    ("very long line", b"x" * 100_000 + b"y\n", ("y", "z"), b"x" * 100_000 + b"z\n"),
]  # fmt: skip

SHOWN = "one\ntwo\nthree\n"
# name, bytes, (old, new), code, cause or None, True for a suggestion that works
REFUSED = [
    ("empty old", b"a\n", ("", "x"), "invalid_argument", None, False),
    ("same old and new", b"a\n", ("a", "a"), "no_change", None, False),
    ("only line ends differ", b"a\r\n", ("a\r\n", "a\n"), "no_change", None, False),
    ("only blank lines", b"a\n", ("\n\n\n", "x"), "no_match", "absent", False),
    ("NUL in new", b"a\n", ("a", "\x00"), "invalid_argument", None, False),
    ("binary", b"a\x00b", ("a", "b"), "binary", None, False),
    ("claude-code#7134 not in unknown 8-bit", L1, ("na", "nü"), "encoding", None, False),
    ("lone surrogate", b"a\n", ("a", "\ud83d"), "encoding", None, False),
    ("amd/gaia#3377 first of several", b"x\ny\nx\n", ("x", "z"), "ambiguous", None, False),
    ("kimi-cli: first, silently", b"def a(): pass\ndef b(): pass\n", ("pass", "return"), "ambiguous", None, False),
    ("overlapping counts", b"aaa\n", ("aa", "b"), "ambiguous", None, False),
    ("opencode#14046 nothing alike is replaced", b"def f():\n    return 1\n", ("def g(x):\n    y = x\n    return y", "z"), "no_match", "any", None),
    ("opencode#2051 not found says so", b"alpha\n", ("omega", "x"), "no_match", "absent", False),
    ("claude-code#13152 tab and spaces", b"\tif x:\n\t\treturn 1\n",
     ("    if x:\n        return 1", "    if x:\n        return 2"), "no_match", "whitespace", True),
    ("claude-code#11447 number prefix", b"alpha\nbeta\n", ("1|alpha\n2|beta", "x"), "no_match", "line_numbers_included", True),
    ("cat -n prefix", b"alpha\nbeta\n", ("     1\talpha\n     2\tbeta", "x"), "no_match", "line_numbers_included", True),
    ("arrow prefix", b"alpha\nbeta\n", ("    1→alpha", "x"), "no_match", "line_numbers_included", True),
    ("opencode prefix", b"alpha\nbeta\n", ("1: alpha\n2: beta\n", "x"), "no_match", "line_numbers_included", True),
    ("our own ids", b"alpha\nbeta\n", ("1 a3f2c1|alpha\n2 b7e4d9|beta", "x"), "no_match", "line_numbers_included", True),
    ("codescout 2026-06-09 escaped newline", b"alpha\nbeta\n", ("alpha\\nbeta", "x"), "no_match", "whitespace", True),
    ("escaped quotes", b'say "hi"\n', ('say \\"hi\\"', "x"), "no_match", "near", True),
    ("lean-ctx#331 already applied", b"def f():\n    return compute(2)\n",
     ("def f():\n    return compute(1)", "def f():\n    return compute(2)"), "no_match", "already_applied", False),
    ("openseek#420 one word wrong", b"a\nresult = compute(alpha, beta)\nb\n", ("result = compute(alpha, gamma)", "x"), "no_match", "near", True),
    ("one line wrong in three", b"first line\nsecond line\nthird line\n", ("first line\nsecond lime\nthird line", "x"), "no_match", "near", True),
    ("one line left out", b"first line\nsecond line\nthird line\n", ("first line\nthird line", "x"), "no_match", "near", True),
    ("roo: elided middle", b"first line\nsecond line\nthird line\n", ("first line\n...\nthird line", "x"), "no_match", "near", True),
    ("gemini placeholder", b"first line\nsecond line\n", ("first line\n// ... rest of code", "x"), "no_match", "near", True),
    ("two places but for trailing blanks", b"aa \nbb\naa\nbb \n", ("aa\t\nbb", "x"), "no_match", "whitespace", False),
    ("two places but for indentation", b"  if a:\n    b\nx\n    if a:\n      b\n", ("if a:\n  b\n", "x\n"), "no_match", "whitespace", None),
    ("two places but for quotes", "“a”\n‘x’\n“a”\n".encode(), ('"a"', "x"), "no_match", "any", None),
    ("shift that is not uniform", b"    if a:\n        b\n   c\n", ("if a:\n    b\nc", "x"), "no_match", "whitespace", None),
    ("new text not in the frame of the old", b"    if a:\n        b\n", ("  if a:\n      b", "    if a:\n        c"), "no_match", "whitespace", True),
    ("claude-code#68962 quotes at two places", "it’s\nit‘s\n".encode(), ("it's", "x"), "no_match", "any", None),
    ("typographic characters that are new", b'say "hi"\n', ("say “hi”", "say “hi” to “me”"), "no_match", "near", True),
    ("marks alone tell no place", b"x  \n... \ny\n", ("\n...\n", "z"), "no_match", "whitespace", True),
    ("blank line too many", b"a line\nb line\n", ("a line\n\nb line", "x"), "no_match", "whitespace", True),
    ("words joined", b"return value + 1\n", ("return value+1", "x"), "no_match", "whitespace", True),
    ("empty file", b"", ("a", "b"), "no_match", "absent", False),
    ("case differs", b"Alpha beta\n", ("alpha beta", "x"), "no_match", "any", None),
]  # fmt: skip


@pytest.mark.parametrize(("data", "call", "after"), [pytest.param(*c[1:], id=c[0]) for c in LANDS])
def test_reported_edits_land_to_the_byte(ws, tmp_path, data, call, after):
    (tmp_path / "f").write_bytes(data)
    result = ws.edit("f", *call)
    assert (tmp_path / "f").read_bytes() == after
    assert (result.applied_via == "exact") == is_exact(data, *call)


def is_exact(data, old, new, replace_all=False):
    """Return True if the old text is in the file as it is given, except for line endings."""
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)) else "utf-8"
    count = plain(data.decode(encoding, "surrogateescape")).count(plain(old))
    return count == 1 or (replace_all and count > 1)


def plain(text):
    return text.replace("\r\n", "\n").replace("\r", "\n")


@pytest.mark.parametrize(("data", "call", "code", "cause", "suggests"), [
    pytest.param(*case[1:], id=case[0]) for case in REFUSED
])  # fmt: skip
def test_reported_misses_are_refused_and_explained(ws, tmp_path, data, call, code, cause, suggests):
    (tmp_path / "f").write_bytes(data)
    error = refused(lambda: ws.edit("f", *call), code)
    assert (tmp_path / "f").read_bytes() == data
    assert [each.name for each in tmp_path.iterdir()] == ["f"]
    assert error.hint or code == "binary"
    if cause != "any":
        assert error.details.get("cause") == cause
    suggestion = error.details.get("suggestion")
    if suggests is not None:
        assert (suggestion is not None) is suggests, error
    if suggestion is not None:
        assert ws.edit("f", suggestion, call[1]).applied_via == "exact"


def missed(ws, old, new):
    return refused(lambda: ws.edit("f", old, new), "no_match")


def test_changed_since_shown_names_the_change_and_what_to_pass(ws, tmp_path):
    (tmp_path / "f").write_text(f"\n{SHOWN}")
    ws.read("f")
    (tmp_path / "f").write_text("zero\n\none\n2\nthree\n")
    error = missed(ws, "one\ntwo\n", "x\n")
    assert error.details["cause"] == "changed_since_shown"
    assert error.details["lines"] == [3, 4]
    assert error.details["suggestion"] == "one\n2\n"
    assert "was: two" in str(error)
    (tmp_path / "f").write_text("one\nthree\n")
    assert missed(ws, "two\n", "x\n").details["cause"] == "changed_since_shown"


def test_own_edits_are_explained_too(ws, tmp_path):
    (tmp_path / "f").write_text(SHOWN)
    ws.read("f")
    ws.edit("f", "two", "2")
    error = missed(ws, "one\ntwo", "x")
    assert (error.details["cause"], error.details["suggestion"]) == ("changed_since_shown", "one\n2")
    ws.edit("f", "one", "ONE (1)")
    error = missed(ws, "one", "ONE (1)")
    assert (error.details["cause"], error.details["lines"]) == ("already_applied", [1, 1])


def test_a_text_from_another_file_is_reported_with_that_file(ws, tmp_path):
    put(tmp_path, {"f": "nothing\n", "g": "def target(value):\n    return value\n"})
    ws.read("g")
    error = missed(ws, "def target(value):", "x")
    assert (error.details["cause"], error.details["other_paths"]) == ("other_file", ["g"])


def test_tolerant_steps_are_not_used_for_a_text_that_an_earlier_version_had(ws, tmp_path):
    (tmp_path / "f").write_text("if a:\n    b()\n\nclass C:\n        if a:\n            b()\n")
    ws.read("f")
    (tmp_path / "f").write_text("if z:\n    b()\n\nclass C:\n        if a:\n            b()\n")
    error = missed(ws, "if a:\n    b()\n\n", "if a:\n    c()\n\n")
    assert error.details["cause"] == "changed_since_shown"


def test_exact_matching_turns_the_steps_off(tmp_path):
    (tmp_path / "f").write_text("a  \nb\n")
    with Workspace(tmp_path, policy=Policy(match="exact")) as ws:
        assert missed(ws, "a\nb", "c").details["cause"] == "whitespace"
        result = ws.view(policy=Policy()).edit("f", "a\nb", "a\nc")
        assert result.applied_via == "trailing_whitespace"
        assert "was found by trailing whitespace" in result.text


def test_an_edit_of_an_externally_changed_file_succeeds_and_names_the_change_once(ws, tmp_path):
    (tmp_path / "f").write_text(SHOWN)
    ws.read("f")
    (tmp_path / "f").write_text("one\ntwo\n3\n")
    result = ws.edit("f", "one", "1")
    assert any("line 3" in note for note in result.notes)
    assert ws.edit("f", "two", "2").notes == ()


def test_a_miss_in_a_megabyte_is_short(ws, tmp_path):
    text = "".join(f"line {number} has {'some words ' * 9}in it\n" for number in range(9000))
    (tmp_path / "f").write_text(text)
    error = missed(ws, "\n".join(f"line {n} had {'some words ' * 9}in it" for n in range(90)), "x")
    assert len(str(error)) < 10_000
