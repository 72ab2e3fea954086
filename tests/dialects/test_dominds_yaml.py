"""YAML that parsers read back: checked with PyYAML (1.1) and ruamel.yaml (1.1 and 1.2)."""

import io
import re

import pytest
import yaml
from hypothesis import example
from hypothesis import strategies as st
from ruamel.yaml import YAML

from agentfs.base.visible import visible
from agentfs.dialects.dominds.yaml_text import to_yaml
from tests.conftest import law, part_or_all


def by_ruamel(text, version):
    parser = YAML(typ="safe", pure=True)
    parser.version = version
    return parser.load(io.StringIO(text))


JUDGES = {
    "PyYAML, 1.1": yaml.safe_load,
    "ruamel.yaml, 1.2": lambda text: by_ruamel(text, (1, 2)),
    "ruamel.yaml, 1.1": lambda text: by_ruamel(text, (1, 1)),
}


def assert_read_back(value):
    text = to_yaml(value)
    for name, read in JUDGES.items():
        found = read(text)
        assert found == value, f"{name} reads {found!r} from\n{text}"
        assert typed(found) == typed(value), f"{name} reads other types from\n{text}"


def typed(value):
    """`1 == True` and `1 == 1.0`, so types are compared by themselves."""
    if isinstance(value, dict):
        return {name: typed(item) for name, item in value.items()}
    return [typed(item) for item in value] if isinstance(value, list) else type(value)


# A slow machine makes the first texts slowly; that is not an error.
# All of Unicode, lone surrogates too, and with characters special to parsers more often than by chance.
CARED_FOR = [
    *"\n\n\n  \t\r:#-|>?!&*[]{}%@`'\"\\,~=.0123456789_",
    "\x00", "\x07", "\x1b", "\x7f", "\x80", "\x85", "\x9f", "\xa0", "\xad", "\u2028", "\u2029", "\u202e",
    "\ufeff", "\ufffe", "\uffff", "\ud800", "\udcff", "\udfff", "\U0001f600", "\U000e0041", "\U0010ffff",
    "é", "漢", "true", "no", "null", ": ", " #", "---", "...", "- ", "? ", "<<", "0x1f", "1e3", "12:30",
    "2026-11-21", "%YAML",
]  # fmt: skip
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=())),
    st.lists(st.one_of(st.sampled_from(CARED_FOR), st.characters(exclude_categories=())), max_size=30).map(
        "".join
    ),
)
NAMES = st.from_regex(r"[a-z_]{1,8}", fullmatch=True).filter(
    lambda name: re.fullmatch(r"[a-z]+_[a-z_]*[a-z]", name)
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=12,
)


@law(60, 500, TEXTS)
@example("\n")
@example(" a\n")
@example("\t\n a")
@example("a\n \nb")
@example("\ud83d\ude00")
@example("a\x85b\u2028c\n")
def test_every_text_is_read_back(text):
    assert_read_back({"status": "ok", "content": text, "after": [{"content": text, "last": 1}]})


@law(12, 4000, st.dictionaries(NAMES, VALUES, max_size=4))
def test_every_document_is_read_back(value):
    if value:
        assert_read_back(value)


@part_or_all(30, full=5)
def test_every_character_is_read_back_alone_between_others_and_in_lines(every):
    """All of the Basic Multilingual Plane, and the ends of each plane above it."""
    ends = (0, 1, 0x41, 0xFFFE, 0xFFFF)
    points = [*range(0x10000), *(plane * 0x10000 + at for plane in range(1, 17) for at in ends)]
    taken = points[:0x300] + points[0x300::every]
    for start in range(0, len(taken), 512):
        some = [chr(point) for point in taken[start : start + 512]]
        value = {
            "alone": some,
            "between": [f"a{char}b" for char in some],
            "lines": [f"a\n{char}\nb" for char in some],
        }
        assert yaml.safe_load(to_yaml(value)) == value


AMBIGUOUS = [
    "", " ", "~", "null", "Null", "NULL", "no", "No", "NO", "n", "N", "y", "Y", "yes", "on", "off",
    "true", "True", "false", "0", "012", "0o14", "0x1F", "0b11", "1_000", "1.5", ".5", "5.", "1e3",
    "1E+3", "-1", "+1", "-.inf", ".inf", ".Inf", ".nan", ".NaN", "12:30", "12:30:45", "190:20:30.15",
    "2026-11-21", "2026-11-21T04:00:00Z", "2026-11-21 04:00:00", "<<", "=", ".", "..", "...", "---",
    "- a", "? a", "a: b", "a:", ":a", "a #b", "#a", "&a", "*a", "!a", "!!str a", "|", ">", "'a", '"a',
    "%a", "@a", "`a", "[a]", "{a: b}", "a ", " a", "a\t", "\ta", "-", "?", ":", ",", "]", "}", "'", '"',
    "\\", "\\n", "it's", 'say "no"', "0.0.0.0", "1.2.3", "é", "١٢", "１２", "_", "__", "_1", "._", ".a",
    "a, b", "a,", "a]", "{", "a\rb", "a\r\nb\r\n", "a\n", "a\n\n", "\na", "\n\n", "a\n  b\n", "  a\nb",
    "\ta\nb", "a\n\tb", "a\n \nb", "a\n\t\n", "# a\nb", "--- a\n...\n", "a: b\nc", "- a\n- b",
    "%YAML 1.2\n---\n", "\ufeffa", "a\ufeff", "\x85", "\u2028", "\u2029", "a\x85b", "\udce9", "a\x00b",
    "\x1b[31m", "\u202e", "1:1\n2:2",
]  # fmt: skip


@pytest.mark.parametrize("text", AMBIGUOUS, ids=ascii)
def test_a_string_like_another_type_is_read_back_as_a_string(text):
    assert_read_back(
        {"name": text, "items": [text, {"name": text, "content": text}], "deeper": {"name": text}}
    )


def test_it_looks_as_the_document_writes_it():
    value = {
        "status": "ok", "path": "src", "total_lines": 2, "size_bytes": 10,
        "content": "one\n  two: 2\n\n# three\n",
        "entries": [{"name": "a.py", "type": "file", "size": 1}, {"name": "b", "type": "dir", "size": None}],
        "none": [], "nothing": {},
    }  # fmt: skip
    assert to_yaml(value) == (
        "status: ok\npath: src\ntotal_lines: 2\nsize_bytes: 10\n"
        "content: |\n  one\n    two: 2\n\n  # three\n"
        "entries:\n  - name: a.py\n    type: file\n    size: 1\n  - name: b\n    type: dir\n    size: null\n"
        "none: []\nnothing: {}\n"
    )


PLAIN = ["a.py", "src/main.py", "two words", "é.txt", ".gitignore", "class A(B)", "it's", "a_b-c"]
QUOTED = ["no", "012", "12:30", "~", "null", "2026-11-21", " a", "a ", "1e3", ".", "a: b", "-"]


@pytest.mark.parametrize(("text", "written"), [
    *((text, text) for text in PLAIN), *((text, f'"{text}"') for text in QUOTED),
    ("a\nb", "|-\n  a\n  b"), ("a\n\n", "|+\n  a\n"), ("  a\nb\n", "|2\n    a\n  b"),
    ("a\n  \n\t\nb\n", "|\n  a\n    \n  \t\n  b"), ("a\n  \n\t\nb\n  ", "|-\n  a\n    \n  \t\n  b\n    "),
    ("one\x1b[0m\n  two\n\n\tthree", '"one\\e[0m\\n\\\n  \\  two\\n\\\n  \\n\\\n  \\tthree"'),
])  # fmt: skip
def test_how_a_text_is_written(text, written):
    assert to_yaml({"content": text}) == f"content: {written}\n"
    assert_read_back({"content": text, "items": [{"content": text}]})


@law(60, 300, TEXTS)
def test_yaml_has_no_invisible_characters(text):
    written = to_yaml({"content": text, "items": [text]})
    assert visible(written) == written
