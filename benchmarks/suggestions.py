"""The share of suggestions that work, in calls as a model makes them on foreign trees.

    python benchmarks/suggestions.py TREE... [--seed 7] [--each 3] [--show failed|all]

Each mistake of `MISTAKES` is made `--each` times on each tree, with the default tools and in each dialect
that has a tool for it. The files, lines and names come from the tree. Every suggestion of an answer is then
followed to the letter: a near path, an old text, a complete call, arguments to pass or to leave out, `next`.
It works if the call succeeds, differs from the answered call, and shows something. The trees are
copied first.
"""

import argparse
import json
import os
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import edit_misses
from transcripts import CALL, PASS, arguments_at

from agentfs import ToolResult, Toolset, Workspace

Arguments = dict[str, Any]
Call = tuple[str, Arguments]
QUOTED = r'"(?:[^"\\]|\\.)*"'
NEAR = re.compile(rf"(?:Did you mean|There is) ({QUOTED}(?: or {QUOTED})*)")
COUNTED = re.compile(r"matches (\d+) lines?[^\n]*$")  # ahead of the advice
LEAVE_OUT = re.compile(r"\bleave out (?!the\b)`?([a-z_-]+)")
EMPTY = re.compile(
    r"^(?:No matches|0 (?:files|entries|lines|matches)\b|total_matches: 0\b)|is empty\.$", re.MULTILINE
)
OLD_TEXTS = {"old_string", "old_str"}
PATHS = {"path", "file_path"}
NAME = re.compile(r"\b[a-zA-Z]+(?:[_A-Z][a-zA-Z]+)+\b")
MOST_BYTES = 60_000


class Tree:
    """The material for mistakes in a copied tree: text files with their lines, and directories."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.texts: dict[str, str] = {}
        self.directories: list[str] = []
        for above, directories, names in os.walk(root):
            directories[:] = sorted(each for each in directories if each[0] != ".")
            below = os.path.relpath(above, root)
            self.directories += [] if below == "." else [below]
            for name in sorted(names):
                path = Path(above, name)
                if path.is_symlink() or name[0] == "." or not 200 < path.stat().st_size < MOST_BYTES:
                    continue
                with suppress(UnicodeDecodeError):
                    text = path.read_bytes().decode()
                    if text.isascii() and "\r" not in text:
                        self.texts[str(path.relative_to(root))] = text


class Draw:
    """One file of a tree, and what stands in it."""

    def __init__(self, tree: Tree, rng: random.Random) -> None:
        self.rng = rng
        self.root = str(tree.root)
        while True:
            self.path, self.text = rng.choice(list(tree.texts.items()))
            self.lines = self.text.split("\n")
            unique = [each for each in self.lines if len(each.strip()) > 12 and self.text.count(each) == 1]
            names = sorted(set(NAME.findall(self.text)))
            if "/" in self.path and unique and names:
                break
        self.line = rng.choice(unique)
        self.number = self.lines.index(self.line) + 1
        self.name = rng.choice(names)
        self.parent, _, self.file = self.path.rpartition("/")
        self.stem, self.suffix = os.path.splitext(self.file)
        self.directory = rng.choice(tree.directories)
        self.other = rng.choice(list(tree.texts))
        repeated = [each for each, count in Counter(self.lines).items() if count > 1 and each.strip()]
        self.repeated = rng.choice(repeated or [self.line])

    def swapped(self, text: str) -> str:
        """Exchange two neighbouring letters."""
        places = [
            at for at in range(len(text) - 1) if text[at : at + 2].isalpha() and text[at] != text[at + 1]
        ]
        at = self.rng.choice(places or [0])
        return text[:at] + text[at : at + 2][::-1] + text[at + 2 :]

    def damaged(self, damage: Callable[..., Any]) -> tuple[str, str] | None:
        """Return the line and its neighbours as a damaged old text, and a new text."""
        first = max(self.number - 2, 0)
        old = "\n".join(self.lines[first : self.number + 2]) + "\n"
        if self.text.count(old) != 1:
            return None
        made = damage(self.text, old, old.replace(self.line, f"{self.line} changed"), self.rng)
        return None if made is None or made[2] in self.text else (made[2], made[3])


def camel_or_snake(name: str) -> str:
    if "_" in name:
        first, *rest = name.split("_")
        return first + "".join(each.title() for each in rest)
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


Mistake = Callable[[Draw], Call | list[Call]]
# Paths as models spell them wrongly: passed to `read`, and some to `ls`, `grep` and `edit`.
WRONG_PATHS: dict[str, Callable[[Draw], str]] = {
    "letters exchanged": lambda d: f"{d.parent}/{d.swapped(d.stem)}{d.suffix}",
    "letters exchanged in a directory": lambda d: f"{d.swapped(d.parent)}/{d.file}",
    "another directory": lambda d: f"{d.directory}/{d.file}",
    "only the name": lambda d: d.file,
    "no suffix": lambda d: f"{d.parent}/{d.stem}",
    "another suffix": lambda d: f"{d.parent}/{d.stem}.jsx",
    "upper case": lambda d: d.path.upper(),
    "backslashes": lambda d: d.path.replace("/", "\\"),
    "leading /": lambda d: f"/{d.path}",
    "absolute": lambda d: f"{d.root}/{d.path}",
    "absolute elsewhere": lambda d: f"/home/user/project/{d.path}",
    "name of the tree first": lambda d: f"{os.path.basename(d.root)}/{d.path}",
    "a/ of a diff": lambda d: f"a/{d.path}",
    "line": lambda d: f"{d.path}:{d.number}",
    "lines of a link": lambda d: f"{d.path}#L{d.number}-L{d.number + 3}",
    "spaces around": lambda d: f" {d.path} ",
    "quotes": lambda d: f'"{d.path}"',
    "URL": lambda d: f"file://{d.root}/{d.path}",
    "percent": lambda d: d.path.replace("/", "%2F"),
    "home": lambda d: f"~/{d.path}",
    "glob": lambda d: f"{d.parent}/*{d.suffix}",
    "directory": lambda d: d.parent,
    "a level missing": lambda d: "/".join(d.path.split("/")[1:]),
    "a level too much": lambda d: f"src/{d.path}",
    "index of a directory": lambda d: f"{d.path}/index{d.suffix}",
    "alias": lambda d: f"@/{d.file}",
    "nothing like it": lambda _: "zzqq/wholly_unlike.xyz",
}
PATTERNS: dict[str, Callable[[Draw], Arguments]] = {
    "right": lambda d: {"pattern": d.name},
    "letters exchanged": lambda d: {"pattern": d.swapped(d.name)},
    "upper case": lambda d: {"pattern": d.name.upper()},
    "camel or snake": lambda d: {"pattern": camel_or_snake(d.name)},
    "literal as a regex": lambda d: {"pattern": d.line.strip()},
    "unclosed call": lambda d: {"pattern": f"{d.name}("},
    "escaped twice": lambda d: {"pattern": re.sub(r"([^\w\s])", r"\\\\\1", d.line.strip())},
    "escaped quotes": lambda d: {"pattern": d.line.strip().replace('"', '\\"').replace("'", "\\'")},
    "GNU alternatives": lambda d: {"pattern": rf"{d.name}\|nothing_else"},
    "GNU group": lambda d: {"pattern": rf"\({d.name}\)"},
    "GNU words": lambda d: {"pattern": rf"\<{d.name}\>"},
    "quoted": lambda d: {"pattern": f'"{d.name}"'},
    "slashes": lambda d: {"pattern": f"/{d.name.upper()}/i"},
    "flag inside": lambda d: {"pattern": f"-i {d.name.upper()}"},
    "spaces around |": lambda d: {"pattern": f"{d.name} | nothing_else"},
    "glob stars": lambda d: {"pattern": f"*{d.name}*"},
    "glob for a regex": lambda d: {"pattern": f"*{d.suffix}"},
    "two lines": lambda d: {"pattern": re.escape("\n".join(d.lines[d.number - 1 : d.number + 1]))},
    "two lines, .*": lambda d: {"pattern": rf"{d.name}.*\n.*"},
    "two lines, \\n": lambda d: {"pattern": re.escape(d.line) + "\\n"},
    "carriage return": lambda d: {"pattern": f"{d.name}.*\\r$"},
    "everything": lambda _: {"pattern": ".*"},
    "two words far": lambda d: {"pattern": " ".join(d.line.split()[::-1])},
    "white space": lambda d: {"pattern": re.escape(d.line.strip()).replace("\\ ", "  ")},
    "unclosed bracket": lambda d: {"pattern": f"[{d.name}"},
    "unclosed brace": lambda d: {"pattern": "{" + d.name},
    "empty": lambda _: {"pattern": ""},
    "wrong glob": lambda d: {"pattern": d.name, "glob": "*.golang"},
    "glob of a directory": lambda d: {"pattern": d.name, "glob": d.parent},
    "glob of a path": lambda d: {"pattern": d.name, "glob": f"/{d.path}"},
    "glob in braces": lambda d: {"pattern": d.name, "glob": "*.{nothing,zzz}"},
    "globs in one": lambda d: {"pattern": d.name, "glob": f"*.zzz,*{d.suffix}"},
    "glob without a dot": lambda d: {"pattern": d.name, "glob": d.suffix.removeprefix(".")},
    "glob with a suffix in upper case": lambda d: {"pattern": d.name, "glob": f"*{d.suffix.upper()}"},
    "type": lambda d: {"pattern": d.name, "type": "golang"},
    "type as a suffix": lambda d: {"pattern": d.name, "type": d.suffix},
    "wrong path": lambda d: {"pattern": d.name, "path": f"{d.swapped(d.parent)}"},
    "path with a star": lambda d: {"pattern": d.name, "path": f"{d.parent}/*{d.suffix}"},
    "another path": lambda d: {"pattern": d.name, "path": d.directory},
    "two paths": lambda d: {"pattern": d.name, "path": f"{d.directory} {d.parent}"},
    "few": lambda _: {"pattern": "e", "limit": 5},
    "past the end": lambda d: {"pattern": d.name, "offset": 99_999},
    "count": lambda d: {"pattern": d.swapped(d.name), "output_mode": "count"},
    "files": lambda d: {"pattern": d.name.upper(), "output_mode": "files_with_matches"},
    "mode of another tool": lambda d: {"pattern": d.name, "output_mode": "files"},
}
GLOBS: dict[str, Callable[[Draw], Arguments]] = {
    "right": lambda d: {"pattern": f"**/*{d.suffix}"},
    "only the name": lambda d: {"pattern": d.file},
    "letters exchanged": lambda d: {"pattern": f"**/{d.swapped(d.file)}"},
    "letters exchanged in a directory": lambda d: {"pattern": f"{d.swapped(d.parent)}/*{d.suffix}"},
    "upper case": lambda d: {"pattern": f"**/{d.file.upper()}"},
    "a directory": lambda d: {"pattern": d.parent},
    "a directory with /": lambda d: {"pattern": f"{d.parent}/"},
    "regex": lambda d: {"pattern": rf".*\{d.suffix}$"},
    "anchored": lambda d: {"pattern": f"/{d.parent}/*{d.suffix}"},
    "absolute": lambda d: {"pattern": f"{d.root}/{d.parent}/*"},
    "one level": lambda d: {"pattern": f"{d.path.split('/')[0]}/*{d.suffix}"},
    "stars joined": lambda d: {"pattern": f"{d.path.split('/')[0]}/**{d.suffix}"},
    "two globs": lambda d: {"pattern": f"*.zzz,*{d.suffix}"},
    "two globs by a space": lambda d: {"pattern": f"*.zzz *{d.suffix}"},
    "two globs by |": lambda d: {"pattern": f"*.zzz|*{d.suffix}"},
    "unclosed brace": lambda d: {"pattern": f"**/*.{{zzz,{d.suffix[1:]}"},
    "extended": lambda d: {"pattern": f"**/!({d.stem}){d.suffix}"},
    "negated": lambda d: {"pattern": f"!**/*{d.suffix}"},
    "brackets": lambda _: {"pattern": "**/[slug]/*"},
    "brackets of a rest": lambda _: {"pattern": "**/[...rest]/**"},
    "group of a route": lambda _: {"pattern": "src/(app)/**"},
    "backslashes": lambda d: {"pattern": f"{d.parent}/*".replace("/", "\\")},
    "other suffix": lambda d: {"pattern": f"**/{d.stem}.jsx"},
    "wrong path": lambda d: {"pattern": f"*{d.suffix}", "path": d.swapped(d.parent)},
    "path of a file": lambda d: {"pattern": f"*{d.suffix}", "path": d.path},
    "path repeated": lambda d: {"pattern": f"{d.parent}/*{d.suffix}", "path": d.parent},
    "everything": lambda _: {"pattern": "**/*", "limit": 20},
    "past the end": lambda d: {"pattern": f"**/*{d.suffix}", "offset": 99_999},
    "hidden": lambda _: {"pattern": "**/*.yml"},
    "above": lambda _: {"pattern": "../**/*"},
}
LISTS: dict[str, Callable[[Draw], Arguments]] = {
    "right": lambda d: {"path": d.parent},
    "letters exchanged": lambda d: {"path": d.swapped(d.parent)},
    "a file": lambda d: {"path": d.path},
    "all levels": lambda _: {"path": ".", "depth": 0},
    "all levels of a directory": lambda d: {"path": d.path.split("/")[0], "depth": 0, "limit": 30},
    "past the end": lambda d: {"path": d.parent, "offset": 99_999},
    "root": lambda _: {"path": "/"},
    "star": lambda d: {"path": f"{d.parent}/*"},
    "another place": lambda d: {"path": f"lib/{d.parent}"},
    "last part": lambda d: {"path": d.parent.rpartition("/")[2]},
    "depth below 0": lambda d: {"path": d.parent, "depth": -1},
    "few": lambda _: {"path": ".", "limit": 3},
}
READS: dict[str, Callable[[Draw], Arguments]] = {
    "right": lambda d: {"path": d.path},
    "past the end": lambda d: {"path": d.path, "offset": 99_999},
    "before the start": lambda d: {"path": d.path, "offset": -5},
    "no lines": lambda d: {"path": d.path, "limit": 0},
    "few lines": lambda d: {"path": d.path, "limit": 3},
    "text for a number": lambda d: {"path": d.path, "offset": "10", "limit": "5"},
    "unknown encoding": lambda d: {"path": d.path, "encoding": "utf8mb4"},
    "start_line": lambda d: {"path": d.path, "start_line": 2, "end_line": 4},
    "view_range": lambda d: {"path": d.path, "view_range": [2, 4]},
    "list of paths": lambda d: {"path": [d.path, d.other]},
}


def line_edit(change: Callable[[Draw], str]) -> Callable[[Draw], Arguments]:
    return lambda d: {"path": d.path, "old_string": change(d), "new_string": "changed line"}


EDITS: dict[str, Callable[[Draw], Arguments | None]] = {
    "upper case": line_edit(lambda d: d.line.upper()),
    "letters exchanged": line_edit(lambda d: d.swapped(d.line)),
    "escaped": line_edit(lambda d: re.escape(d.line)),
    "escaped quotes": line_edit(lambda d: d.line.replace('"', '\\"').replace("'", "\\'")),
    "HTML": line_edit(lambda d: d.line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")),
    "numbered": line_edit(lambda d: f"{d.number}: {d.line}"),
    "numbered by a bar": line_edit(
        lambda d: f"{d.number:>6}|{d.line}\n{d.number + 1:>6}|{d.lines[d.number]}"
    ),
    "repeated": line_edit(lambda d: d.repeated),
    "repeated letters": line_edit(lambda d: d.name[:2]),
    "empty": line_edit(lambda _: ""),
    "elided": line_edit(lambda d: f"{d.line}\n...\n{d.lines[min(d.number + 4, len(d.lines) - 1)]}"),
    "one elided": line_edit(lambda d: f"{d.line[: len(d.line) // 2]}\u2026"),
    "of another file": lambda d: {"path": d.other, "old_string": d.line, "new_string": "x"},
    "nowhere": line_edit(lambda _: "wholly unlike anything in this file 12345"),
    "new as old": lambda d: {"path": d.path, "old_string": d.line, "new_string": d.line},
    "double spaces": line_edit(lambda d: d.line.replace(" ", "  ")),
    "blank lines": line_edit(lambda d: f"{d.line}\n\n\n{d.lines[d.number]}"),
    "diff marks": line_edit(lambda d: f"-{d.line}\n+changed"),
    "first and wrong last": line_edit(lambda d: f"{d.line}\nnot_there_at_all()"),
    "near name": line_edit(lambda d: d.line.replace(d.name, camel_or_snake(d.name)) + " "),
    "fence": line_edit(lambda d: f"```\n{d.line}\n```"),
    **{
        damage.__name__: lambda d, damage=damage: (
            (made := d.damaged(damage)) and {"path": d.path, "old_string": made[0], "new_string": made[1]}
        )
        for damage in edit_misses.KINDS
        if damage.__name__ not in edit_misses.MUST_REFUSE
    },
}
EDIT_LISTS: dict[str, Callable[[Draw], Arguments]] = {
    "one of two": lambda d: {
        "path": d.path,
        "edits": [
            {"old_string": d.line, "new_string": "changed"},
            {"old_string": d.swapped(d.lines[0] or "first line"), "new_string": "changed too"},
        ],
    },
    "both": lambda d: {
        "path": d.path,
        "edits": [
            {"old_string": d.swapped(d.line), "new_string": "changed"},
            {"old_string": "not anywhere in it", "new_string": "changed too"},
        ],
    },
    "one after the other": lambda d: {
        "path": d.path,
        "edits": [{"old_string": d.line, "new_string": "changed"}, {"old_string": d.line, "new_string": "x"}],
    },
    "text": lambda d: {"path": d.path, "edits": json.dumps([{"old_string": d.line, "new_string": "x"}])},
    "none": lambda d: {"path": d.path, "edits": []},
}
WRITES: dict[str, Callable[[Draw], Arguments]] = {
    "unread": lambda d: {"path": d.path, "content": "new\n"},
    "a directory": lambda d: {"path": d.parent, "content": "new\n"},
    "below a file": lambda d: {"path": f"{d.path}/new.txt", "content": "new\n"},
    "outside": lambda _: {"path": "../new.txt", "content": "new\n"},
    "new": lambda d: {"path": f"{d.parent}/brand_new{d.suffix}", "content": "new\n"},
    "file_text": lambda d: {"path": f"{d.parent}/brand_new{d.suffix}", "file_text": "new\n"},
    "content as data": lambda d: {"path": f"{d.parent}/new.json", "content": {"a": 1}},
}


def wrong_paths(method: str, more: Callable[[Draw], Arguments]) -> dict[str, Callable[[Draw], Call]]:
    return {
        f"{method}, path: {kind}": lambda d, spell=spell: (method, {"path": spell(d), **more(d)})
        for kind, spell in WRONG_PATHS.items()
    }


def rows(method: str, table: dict[str, Callable[[Draw], Any]]) -> dict[str, Callable[[Draw], Call | None]]:
    return {
        f"{method}: {kind}": lambda d, make=make: (made := make(d)) and (method, made)
        for kind, make in table.items()
    }


MISTAKES: dict[str, Callable[[Draw], Call | None]] = {
    **wrong_paths("read", lambda _: {}),
    **wrong_paths("edit", lambda d: {"old_string": d.line, "new_string": "changed line"}),
    **rows("read", READS),
    **rows("grep", PATTERNS),
    **rows("glob", GLOBS),
    **rows("ls", LISTS),
    **rows("edit", EDITS),
    **rows("multi_edit", EDIT_LISTS),
    **rows("write", WRITES),
}


# ---- the dialects: how each spells a call -----------------------------------------------------------------


def tool(name: str, **renamed: str) -> Callable[[Arguments], Call]:
    """Return a function that renames a call's parameters; "" drops one."""
    return lambda given: (
        name,
        {renamed.get(key, key): value for key, value in given.items() if renamed.get(key, key)},
    )


def editor(command: str) -> Callable[[Arguments], Call]:
    renamed = tool(
        "str_replace_based_edit_tool", old_string="old_str", new_string="new_str", content="file_text"
    )

    def spell(given: Arguments) -> Call:
        name, arguments = renamed(given)
        first, count = arguments.pop("offset", None), arguments.pop("limit", None)
        if isinstance(first, int):
            arguments["view_range"] = [first, first + count if isinstance(count, int) else -1]
        return name, {"command": command, **arguments}

    return spell


def as_patch(given: Arguments) -> Call:
    old = "\n".join(f"-{line}" for line in str(given["old_string"]).split("\n"))
    new = "\n".join(f"+{line}" for line in str(given["new_string"]).split("\n"))
    text = f"*** Begin Patch\n*** Update File: {given['path']}\n@@\n{old}\n{new}\n*** End Patch"
    return "apply_patch", {"input": text}


def as_range(given: Arguments) -> Call:
    arguments = {key: value for key, value in given.items() if key not in {"offset", "limit"}}
    if isinstance(first := given.get("offset"), int):
        arguments["range"] = f"{first}~"
    elif isinstance(count := given.get("limit"), int):
        arguments["max_lines"] = count
    return "read_file", arguments


def as_roots(name: str, pattern: str, **more: Any) -> Callable[[Arguments], Call]:
    def spell(given: Arguments) -> Call:
        arguments = {"roots": [given.get("path", ".")], pattern: given["pattern"], **more}
        if "glob" in given:
            arguments["include_globs"] = [given["glob"]]
        return name, arguments

    return spell


def as_lines(given: Arguments) -> Call:
    renamed = {"offset": "start_line"}
    arguments = {renamed.get(key, key): value for key, value in given.items() if key != "limit"}
    if isinstance(count := given.get("limit"), int):
        arguments |= {"start_line": 1, "end_line": count}
    return "read_file", arguments


METHODS = ("read", "write", "edit", "multi_edit", "ls", "glob", "grep")
DIALECTS: dict[str, dict[str, Callable[[Arguments], Call]]] = {
    "agentfs": {method: tool(method) for method in METHODS},
    "wave": {
        "read": tool("Read", path="file_path"),
        "write": tool("Write", path="file_path"),
        "edit": tool("Edit", path="file_path"),
        "multi_edit": tool("MultiEdit", path="file_path"),
        "ls": tool("LS", depth="", limit="", offset=""),
        "glob": tool("Glob", limit="", offset=""),
        "grep": tool("Grep", limit="head_limit", offset=""),
    },
    "rye": {
        "read": tool("read", path="file_path"),
        "write": tool("write", path="file_path"),
        "ls": tool("ls", depth="", limit="", offset=""),
        "glob": tool("glob", limit="", offset=""),
        "grep": tool("grep", glob="include", type="", output_mode="", limit="", offset=""),
    },
    "dominds": {
        "read": as_range,
        "ls": tool("list_dir", depth="", limit="", offset=""),
        "grep": tool("ripgrep_snippets", glob="", type="", output_mode="", limit="", offset=""),
    },
    "tree-sitter-analyzer": {
        "glob": as_roots("list_files", "pattern", glob=True),
        "grep": as_roots("search_content", "query"),
    },
    "codescout": {
        "read": as_lines,
        "write": tool("create_file"),
        "edit": tool("edit_file"),
        "ls": tool("list_dir", depth=""),
        "glob": tool("find_file", limit="max_results", offset=""),
        "grep": tool("search_pattern", limit="max_results", glob="", type="", output_mode="", offset=""),
    },
    "text-editor": {
        "read": editor("view"),
        "ls": editor("view"),
        "edit": editor("str_replace"),
        "write": editor("create"),
    },
    "apply-patch": {"edit": as_patch},
}


# ---- following --------------------------------------------------------------------------------------------


class Followed(NamedTuple):
    """A suggestion, the call that follows it, and what came of it; `wrong` is "" if it worked."""

    kind: str
    name: str
    arguments: Arguments
    wrong: str
    answer: str


class Made(NamedTuple):
    """A call with its answer and what it suggested."""

    mistake: str
    dialect: str
    name: str
    arguments: Arguments
    answer: ToolResult
    followed: list[Followed]


def suggestions(
    tools: Toolset, result: ToolResult, name: str, arguments: Arguments
) -> Iterator[tuple[str, Call, int | None]]:
    """Yield each suggestion of an answer: its kind, the call that follows it, and the promised matches."""
    data = result.data if isinstance(result.data, dict) else {}
    details = data.get("details") or {}
    text = result.content
    path = next((each for each in PATHS if each in arguments), None)
    if result.next:
        yield "next", (result.next["name"], result.next["arguments"]), None
    old = next((each for each in OLD_TEXTS if each in arguments), None)
    if old is not None and not result.success:
        texts = [details.get("suggestion"), *(each["old_string"] for each in details.get("unique", ()))]
        for each in filter(None, texts):
            yield "old text", (name, {**arguments, old: each}), None
    if "edits" in arguments and not result.success and isinstance(arguments["edits"], list):
        edits = [dict(each) for each in arguments["edits"]]
        failures = details.get("failures") or [details]
        known = [each for each in failures if each.get("suggestion")]
        if known and len(known) == len(failures):
            for each in known:
                edits[each["edit"] - 1]["old_string"] = each["suggestion"]
            yield "old texts", (name, {**arguments, "edits": edits}), None
    if not result.success and path is not None:
        for found in NEAR.finditer(text):
            near = re.findall(QUOTED, found[1])
            for each in near[:1] if old else near:  # only one of several files can have the old text
                yield "near path", (name, {**arguments, path: json.loads(each)}), None
    if not text.startswith(("status: ", "{")):  # some dialects' JSON and YAML quote what a file has
        for found in CALL.finditer(text):
            given = arguments_at(text, found.end(), ")")
            if given is not None and found[1] in tools.names:  # not code of a file
                yield "call", (found[1], given), None
    for each in details.get("suggested_calls", ()):
        yield "listed call", (each["name"], each["arguments"]), None
    for found in PASS.finditer(text):
        if given := arguments_at(text, found.end(), ""):
            left = LEAVE_OUT.match(text[found.end() :].partition(" and ")[2])
            kept = {key: value for key, value in arguments.items() if left is None or key != left[1]}
            promised = COUNTED.search(text, 0, found.start())
            yield "pass", (name, {**kept, **given}), int(promised[1]) if promised else None
    for found in LEAVE_OUT.finditer(text):
        if found[1] in arguments:
            kept = {key: value for key, value in arguments.items() if key != found[1]}
            yield "leave out", (name, kept), None


def follow(ws: Workspace, tools: Toolset, made: tuple[str, Arguments, ToolResult]) -> Iterator[Followed]:
    """Follow each suggestion once, and take back what it changed."""
    name, arguments, result = made
    seen: set[str] = set()
    for kind, (called, given), promised in suggestions(tools, result, name, arguments):
        key = json.dumps([called, given], sort_keys=True)
        if key in seen:
            continue
        seen.add(key)
        steps = len(ws.changes().files)
        answer = tools.call(called, given)
        wrong = ""
        if not answer.success:
            wrong = "fails"
        elif key == json.dumps([name, arguments], sort_keys=True):
            wrong = "is the same call"
        elif EMPTY.search(answer.content[:300]):
            wrong = "shows nothing"
        elif promised is not None and promised > getattr(answer.data, "get", {}.get)(
            "total_lines", promised
        ):  # the hint is about the first file with a match
            wrong = f"does not find {promised} lines"
        if len(ws.changes().files) > steps:
            ws.undo()
        yield Followed(kind, called, given, wrong, answer.content)


def calls_on(root: Path, each: int, seed: int, every: int = 1) -> Iterator[Made]:
    """Make each `every`-th mistake in every dialect with a tool for it, on a tree that may be changed."""
    tree = Tree(root)
    for number, (mistake, make) in enumerate([*MISTAKES.items()][::every]):
        rng = random.Random(f"{seed} {number}")
        for _ in range(each):
            call = make(draw := Draw(tree, rng))
            if call is None:
                continue
            method, arguments = call
            for dialect, spelled in DIALECTS.items():
                if method not in spelled:
                    continue
                name, given = spelled[method](arguments)
                with Workspace(root) as ws:
                    tools = ws.tools() if dialect == "agentfs" else ws.tools(dialect=dialect)
                    if method in {"edit", "multi_edit"}:
                        ws.read(draw.path)
                    result = tools.call(name, given)
                    followed = list(follow(ws, tools, (name, given, result)))
                    while ws.changes().files:
                        ws.undo()
                yield Made(mistake, dialect, name, given, result, followed)


def show(made: Made, *, only_failed: bool) -> None:
    """Print a call, its answer, and what its suggestions came to."""
    print(f"\n=== {made.mistake} | {made.dialect} | {made.name}({json.dumps(made.arguments)[:400]})")
    print(("" if made.answer.success else "ERROR ") + made.answer.content[:900])
    for each in made.followed:
        if each.wrong or not only_failed:
            print(
                f"  -> {each.kind}: {each.name}({json.dumps(each.arguments)[:300]}) {each.wrong or 'works'}"
            )
            print(f"     {each.answer[:250]!r}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--each", type=int, default=1, help="how often each mistake is made on each tree")
    parser.add_argument("--show", choices=["failed", "all"])
    options = parser.parse_args()
    tally: Counter[tuple[str, bool]] = Counter()
    calls = answered = helped = 0
    for source in options.trees:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory, source.name)
            shutil.copytree(source, root, symlinks=True)
            for made in calls_on(root, options.each, options.seed):
                calls += 1
                answered += (good := made.answer.success and not EMPTY.search(made.answer.content[:300]))
                helped += not good and any(not each.wrong for each in made.followed)
                tally.update((each.kind, not each.wrong) for each in made.followed)
                if options.show == "all" or any(each.wrong for each in made.followed):
                    show(made, only_failed=options.show != "all") if options.show else None
    print(f"{calls} calls, {answered} find something, {helped} more lead to a call that does")
    for kind in sorted({kind for kind, _ in tally}):
        works, fails = tally[kind, True], tally[kind, False]
        print(f"{kind:12} {works:6} of {works + fails:6} work")
    works, total = sum(count for (_, good), count in tally.items() if good), sum(tally.values())
    print(f"{'all':12} {works:6} of {total:6} work: {100 * works / max(total, 1):.1f} %")
    if works < total and not options.show:
        sys.stdout.write("--show failed prints those that do not\n")


if __name__ == "__main__":
    main()
