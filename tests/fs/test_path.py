import json
import os
import posixpath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentfs.errors import InvalidPathError, NameTooLongError, OutsideWorkspaceError
from agentfs.fs.path import display_name, parse_display_name, quote, split_link, split_path
from tests.fs.mechanisms import code_of

ROOTS = {("base", "root"): (), ("alias",): ()}


@pytest.mark.parametrize(("path", "parts", "directory"), [
    ("f", ("f",), False),
    (".", (), True),
    ("./a//./f", ("a", "f"), False),
    ("a/", ("a",), True),
    ("a/..", ("a", ".."), True),
    ("a/../f", ("a", "..", "f"), False),
    ("/base/root/f", ("f",), False),
    ("/base/root", (), True),
    ("/base/root/a/", ("a",), True),
    ("/alias/f", ("f",), False),
    ("/base/root/../out/s", ("..", "out", "s"), False),
    ("~/x", ("~", "x"), False),
    ("...", ("...",), False),
    ("C:f", ("C:f",), False),
    ("a\\b", ("a\\b",), False),
])  # fmt: skip
def test_a_path_is_parsed(path, parts, directory):
    asked = split_path(path, ROOTS)
    assert (asked.parts, asked.directory) == (parts, directory)
    assert asked.climbs == (".." in parts)


@pytest.mark.parametrize(("path", "code"), [
    ("é" * 128, "name_too_long"),
    ("x" * 255, "ok"),
    ("é" * 127, "ok"),
    ("abcd/" * 1000, "name_too_long"),
    ("a/" * 257, "name_too_long"),
    ("a/" * 256, "ok"),
    ("/", "outside_workspace"),
    ("/base", "outside_workspace"),
    ("/base/rootevil/f", "outside_workspace"),
    ("/base/../base/root/f", "outside_workspace"),
])  # fmt: skip
def test_invalid_paths_are_refused_by_their_text(path, code):
    assert code_of(split_path, path, ROOTS) == code


@pytest.mark.parametrize(("target", "parts"), [
    ("../x", ("..", "x")),
    ("./x/", ("x",)),
    ("/base/root/x", ("x",)),
    ("/base/root", ()),
    ("/etc", None),
    ("/base/rootevil/x", None),
    ("C:\\x", ("C:\\x",)),
])  # fmt: skip
def test_a_link_target_is_parsed(target, parts):
    led = split_link(target, ROOTS)
    assert (led.parts if led else None) == parts


texts = st.text(st.sampled_from("ab./\\~é\0:\udce9\ud800 \n"), max_size=30) | st.text(max_size=400)


@given(texts)
@example("\\x")
@example(":")
@example("a" * 255 + "\udce9")
def test_any_text_is_parsed_or_refused_with_a_code(path):
    try:
        asked = split_path(path, ROOTS)
    except (InvalidPathError, NameTooLongError, OutsideWorkspaceError) as error:
        json.dumps([str(error), error.to_dict()], ensure_ascii=False).encode()
        return
    for part in asked.parts:
        assert part not in {"", "."}
        assert "/" not in part
        assert "\0" not in part
        assert len(os.fsencode(part)) <= 255


@given(st.lists(st.sampled_from(["a", "b", "..", ".", "", "c d"]), max_size=8))
def test_the_parts_agree_with_normpath(pieces):
    path = "/".join(["a", *pieces])
    asked = split_path(path, ROOTS)
    assert posixpath.normpath("/".join(asked.parts) or ".") == posixpath.normpath(path)
    assert split_path("/base/root/" + path, ROOTS).parts == asked.parts


@given(st.binary(max_size=40).filter(lambda name: b"\0" not in name and b"/" not in name))
def test_a_shown_name_is_plain_text_and_leads_back(name):
    system = name.decode("utf-8", "surrogateescape")
    shown = display_name(system)
    shown.encode()
    if shown != system:
        assert parse_display_name(shown) == system
    assert display_name(parse_display_name(shown)) == shown


def test_two_surrogates_that_are_one_character_are_that_character():
    # One file must not have two spellings, or one of them could evade a rule.
    assert split_path("caf\udcc3\udca9", ROOTS).parts == ("café",)
    assert parse_display_name("caf\\xc3\\xa9") == "caf\\xc3\\xa9"


@pytest.mark.parametrize(("path", "quoted"), [
    ("a b", '"a b"'),
    ("a\nb", '"a\\u000ab"'),
    ("a\x1b[2J", '"a\\u001b[2J"'),
    ("a\u202eb", '"a\\u202eb"'),
    ("caf\udce9", '"caf\\xe9"'),
])  # fmt: skip
def test_a_path_in_a_message_stays_on_its_line(path, quoted):
    assert quote(path) == quoted
    assert len(quote("x" * 5000)) < 200
