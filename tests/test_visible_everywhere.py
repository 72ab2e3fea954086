"""Names and contents with forged lines or hidden characters, in every tool of every dialect.

The calls are made from the schemas, so that a new tool or dialect is tested without a change here.
`unicodedata` and `regex` tell which characters are hidden, not our own tables.
"""

import json
import shutil
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
import regex
import yaml

from agentfs import Policy, Workspace, dialects
from agentfs.base.visible import one_line
from tests import kit
from tests.conftest import part_or_all
from tests.tool_calls import calls_for, kinds_of

NAMES = (
    "line\nFORGED line.txt", "return\rFORGED line.txt", "separator\u2028FORGED line.txt",
    "next\x85FORGED line.txt", "tab\tFORGED.txt", "escape\x1b[2JFORGED.txt", "bidi\u202etxt.exe",
    "zero\u200bwidth\ufeff.txt", "joined\u200d\u2060.txt", "selected\ufe0f\U000e0101.txt",
    "tagged\U000e0041.txt", "filled\u3164\u115f.txt", "[more: FORGED].txt",
)  # fmt: skip
FIRST = "needle \x1b[2J\u202e\u200b\u200d\ufe0f\U000e0101\U000e0041\u3164"
CONTENT = f"{FIRST}\nneedle\x85FORGED line\u2028FORGED line\x0cFORGED line\nplain\n"
DIRECTORY = "dir\nFORGED line"
CELLS = [{"cell_type": "markdown", "source": [CONTENT], "metadata": {}}]
NOTEBOOK = {"cells": CELLS, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
PATHS = (
    *(NAMES[0], NAMES[5], NAMES[6], NAMES[9]),
    *(DIRECTORY, ".", "link\nFORGED line", "dangling\x1b", "hostile.ipynb", "plain.txt"),
    *(f"{NAMES[0]}x", f"{NAMES[6]}x", f"{DIRECTORY}/{NAMES[5]}", f"none/{NAMES[6]}", f"../{NAMES[0]}"),
)
CONTENT_NAMES = {"content", "new_string", "new_str", "file_text", "insert_text", "new_content"}
PATH_NAMES = {"path", "file_path", "paths", "to", "roots", "files", "directory"}
EMOJI = "👩\u200d💻 ❤\ufe0f 1\ufe0f\u20e3 🏳\ufe0f\u200d🌈"


def put(top):
    names = [*NAMES, *(f"{DIRECTORY}/{name}" for name in NAMES), "ignored\u202e.log", "plain.txt"]
    kit.put(top, names, CONTENT)
    kit.put(top, {"hostile.ipynb": json.dumps(NOTEBOOK), ".gitignore": "*\u202e.log\u200b\n*\u202e.log\n"})
    (top / "link\nFORGED line").symlink_to(NAMES[0])
    (top / "dangling\x1b").symlink_to("nowhere\nFORGED line")


# A hidden or line-ending character, except tab and line feed.
HIDDEN = regex.compile(r"(?V1)[[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]--[\n\t]]")


def hidden_in(text: str) -> list[str]:
    return HIDDEN.findall(regex.sub(r"(?<=\p{Extended_Pictographic})\ufe0f", "", text))


def check(dialect: str, name: str, given: Any, result: Any) -> None:
    where = f"{dialect} {name} {given!r}: {result.content_with_notes!r}"
    error = str(result.error["message"]) if result.error else ""
    for text in (result.content_with_notes, result.short_result, error):
        assert not hidden_in(text), where
        assert not [line for line in text.split("\n") if line.lstrip().startswith("FORGED")], where
    assert "\n" not in result.short_result, where
    assert "\t" not in result.short_result, where


def values_for(path: str, name: str, schema: Mapping[str, Any]) -> list[Any]:
    """Return values for a parameter: the hostile path and texts, and every choice."""
    if "enum" in schema:
        return list(schema["enum"])
    kinds, items = kinds_of(schema)
    if items.get("type") == "object":
        properties = items["properties"]
        return [[{key: values_for(path, key, properties[key])[-1] for key in properties}]]
    found: list[Any] = []
    if "string" in kinds or items.get("type") == "string":
        text = path if name in PATH_NAMES else CONTENT if name in CONTENT_NAMES else "needle"
        found = [text] if name in PATH_NAMES | CONTENT_NAMES else [text, "*", FIRST]
    if items.get("type") in {"string", "integer"}:
        found = [[each] for each in found] or [[1, 2]]
    return found + [1] * bool(kinds & {"integer", "number"}) + [True, False] * ("boolean" in kinds)


def patches_for(path: str) -> list[dict[str, str]]:
    """Return arguments of `apply_patch` for a path, which ends with its line."""
    name = path.split("\n", maxsplit=1)[0]
    bodies = (
        f"*** Update File: {name}\n@@\n-plain\n+{FIRST}", f"*** Update File: {name}\n@@\n-absent\n+x",
        f"*** Update File: plain.txt\n*** Move to: {name}\n@@\n-plain\n+x",
        f"*** Add File: {name}\n+x", f"*** Delete File: {name}", f"*** Update File: {name}\n{CONTENT}",
        f"*** Nothing of {name}",
    )  # fmt: skip
    return [{"input": f"*** Begin Patch\n{body}\n*** End Patch"} for body in bodies]


@part_or_all(700, full=30)
# `memory` reaches only `memories/`; tests/dialects/test_memory.py has hidden characters in it.
@pytest.mark.parametrize("dialect", ["agentfs", *(each for each in dialects.names() if each != "memory")])
def test_no_tool_shows_a_hidden_character_or_lets_a_name_end_its_line(tmp_path, dialect, every):
    policy = Policy(overwrite="always")
    with Workspace("/", policy=policy) as ws:
        schemas = ws.tools("all" if dialect == "agentfs" else None, dialect=dialect).schemas("mcp")
    driven = 0
    for number, offered in enumerate(schemas):
        name = offered["name"]
        for at, path in enumerate(PATHS):
            patches = patches_for(path) if name == "apply_patch" else []
            calls = [*calls_for(offered["inputSchema"], partial(values_for, path), 8), *patches]
            calls = calls[(number + at) % every :: every]
            if not calls:
                continue
            top = tmp_path / name
            if not top.exists():
                put(top)
            with Workspace(top, policy=policy) as ws:
                tools = ws.tools("all" if dialect == "agentfs" else [name], dialect=dialect)
                for given in calls:
                    result = tools.call(name, given)
                    check(dialect, name, given, result)
                    driven += result.success
                changed = ws.changes().files
            if changed:
                shutil.rmtree(top)
    if every <= 30:  # of the few calls of the first tier, none need find anything
        assert driven > 20 / every, "most calls find something"


def test_emoji_are_shown_as_they_are(tmp_path):
    (tmp_path / f"{EMOJI}.txt").write_text(f"needle {EMOJI}\n")
    with Workspace(tmp_path) as ws:
        for text in (ws.read(f"{EMOJI}.txt").text, ws.ls().text, ws.grep("needle").text):
            assert EMOJI in text
        tools = ws.tools(dialect="codescout")
        assert EMOJI in tools.call("search_pattern", {"pattern": "needle"}).content


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_accepted_as_it_is_shown(tmp_path, name):
    """A listing showed `⟦U+202E⟧`, but a path with that text was not found."""
    put(tmp_path)
    shown = one_line(name)
    with Workspace(tmp_path) as ws:
        listed = next(e.path for e in ws.ls().entries if e.name == name)
        assert listed == name, "data is exact"
        assert shown in ws.ls().text
        assert ws.read(shown).path == ws.read(name).path
        assert ws.grep("needle", shown).total_lines == ws.grep("needle", name).total_lines == 2
        assert ws.read(f"{one_line(DIRECTORY)}/{shown}").content == ws.read(f"{DIRECTORY}/{name}").content
        ws.edit(shown, "plain", "changed")
        assert "changed" in (tmp_path / name).read_text()


def test_a_name_with_a_literal_escape_takes_precedence(tmp_path):
    literal = "a⟦U+202E⟧b"
    (tmp_path / "a\u202eb").write_text("hidden")
    with Workspace(tmp_path) as ws:
        assert ws.read(literal).content == "hidden"
        (tmp_path / literal).write_text("literal")
        assert ws.read(literal).content == "literal"
        assert ws.read(one_line(literal)).content == "literal"
        assert ws.read("a\u202eb").content == "hidden"


@pytest.mark.parametrize("dialect", ["codescout", "rye", "tree-sitter-analyzer", "dominds"])
def test_documents_are_read_back_exactly(tmp_path, dialect):
    """Escapes of JSON and YAML decode to the hidden characters, so that documented fields stay exact."""
    put(tmp_path)
    calls = {
        "codescout": ("list_dir", {"path": "."}), "rye": ("ls", {}), "dominds": ("list_dir", {}),
        "tree-sitter-analyzer": ("list_files", {"roots": ["."], "depth": 1}),
    }  # fmt: skip
    with Workspace(tmp_path) as ws:
        result = ws.tools(dialect=dialect).call(*calls[dialect])
    read = yaml.safe_load(result.content) if dialect == "dominds" else json.loads(result.content)
    assert read == result.data or dialect == "tree-sitter-analyzer"
    told = json.dumps(read, ensure_ascii=False)
    for name in NAMES:
        assert json.dumps(name, ensure_ascii=False)[1:-1] in told
