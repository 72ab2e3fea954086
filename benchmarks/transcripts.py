"""Scripted runs of five groups of tasks, as a coding model calls the tools: calls, errors and tokens.

    python benchmarks/transcripts.py [TREE] [--before CHECKOUT] [--json] [--show]

The tasks run on a tree that is built here and on a copy of a Python source tree, if one is given; with
`--before` also with the package of another checkout. The task of a new format needs a tree of Django. The
scripts make the mistakes that models make: damaged old texts, wrong paths, names of other products' tools,
aliases of parameters, patterns that mean something else. What an answer suggests is followed literally, once:
an old text, a near path, a call, arguments to pass.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from string import Template
from typing import Any

import edit_misses
from tokens import counter

from agentfs import Policy, ToolResult, Workspace

TOOLS = ["read", "write", "edit", "multi_edit", "ls", "glob", "grep", "delete", "move", "undo", "replace"]
MISTAKES = ("damaged edit", "path", "name", "parameter", "pattern")
OUTCOMES = ("made", "understood", "suggested", "works", "reached")
DAMAGES = [damage for damage in edit_misses.KINDS if damage.__name__ != "applied_before"]
DAMAGED_BLOCKS = 40
COMMAND = "management/commands/showmigrations.py"
ARGUMENT = '        parser.set_defaults(format="list")\n'
BRANCH = '            return self.show_plan(connection, options["app_label"])\n'
CALL = re.compile(r"\b([a-z_]+)\((?=[a-z_]+=)")
PASS = re.compile(r"\b[Pp]ass (?=[a-z_-]+=)")
NEAR = re.compile(r'(?:Did you mean|There is) "([^"]+)"')
NAME = re.compile(r"\b(?:[a-z]+_[a-z]+|[A-Z][a-z]+[A-Z])\w+\b")
ARGUMENT_NAME = re.compile(r"([A-Za-z_-]+)=")


class Session:
    """The calls of one group, counted, and what became of the mistakes among them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tally: Counter[str] = Counter(calls=0, errors=0, sent=0, read=0)
        self.mistakes: Counter[tuple[str, str]] = Counter()
        self.unsolved: list[str] = []
        self.count = counter()[1]
        self.ws = Workspace(root, policy=Policy(overwrite="always"))
        self.tools = self.ws.tools([name for name in TOOLS if hasattr(Workspace, name)])

    def call(self, name: str, /, **arguments: Any) -> ToolResult:
        result = self.tools.call(name, arguments)
        self.tally["calls"] += 1
        self.tally["errors"] += not result.success
        self.tally["sent"] += self.count(name) + self.count(json.dumps(arguments, ensure_ascii=False))
        self.tally["read"] += self.count(result.content)
        return result

    def pages(self, most: int, name: str, /, **arguments: Any) -> None:
        """Make a call, and follow it to its end, or for so many pages."""
        result = self.call(name, **arguments)
        while result.next and (most := most - 1):
            result = self.call(result.next["name"], **result.next["arguments"])
            assert result.success, result.content

    def mistake(self, kind: str, wanted: str, name: str, /, **arguments: Any) -> ToolResult:
        """Make a wrong call, which would be right if its answer had a text in it, and follow its answer."""

        def is_right(result: ToolResult) -> bool:
            return result.success and wanted in result.content and "No matches" not in result.content

        result = self.call(name, **arguments)
        found = {"made": True, "understood": is_right(result), "reached": is_right(result)}
        if not is_right(result):
            said = f"{name}({json.dumps(arguments)[:200]}): {result.content[:300]}"
            if suggested := suggestion(result, name, arguments):
                result = self.call(suggested[0], **suggested[1])
                found |= {"suggested": True, "works": result.success, "reached": is_right(result)}
                said += f"\n-> {suggested[0]}: {result.content[:300]}"
            self.unsolved += [] if is_right(result) else [said]
        self.mistakes.update((kind, what) for what, is_so in found.items() if is_so)
        return result

    def script(self, lines: str) -> None:
        """Make the calls of a script."""
        for line in lines.splitlines():
            how, tool, arguments = line.split(" ", 2)
            kind, _, wanted = how.partition(":")
            if kind.isdigit():
                self.pages(int(kind), tool, **json.loads(arguments))
            else:
                self.mistake(kind, wanted, tool, **json.loads(arguments))


def suggestion(result: ToolResult, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return the first thing that an answer suggests: an old text, a path, a call, or arguments to pass."""
    details = (result.data or {}).get("details", {}) if isinstance(result.data, dict) else {}
    unique = [each["old_string"] for each in details.get("unique", ())]
    if old := (details.get("suggestion") if details.get("cause") else None) or next(iter(unique), None):
        return name, {**arguments, "old_string": old}
    near = NEAR.findall(result.content)
    if near and "path" in arguments:
        return name, {**arguments, "path": near[0]}
    for found in CALL.finditer(result.content):
        if (given := arguments_at(result.content, found.end(), ")")) is not None:
            return found[1], given
    for found in PASS.finditer(result.content):
        if given := arguments_at(result.content, found.end(), ""):
            left = re.findall(r"leave out `?([a-z_]+)", result.content[found.end() :])[:1]
            return name, {key: value for key, value in {**arguments, **given}.items() if key not in left}
    return (result.next["name"], result.next["arguments"]) if result.next else None


def arguments_at(text: str, at: int, end: str) -> dict[str, Any] | None:
    """Read `name=value, name=value` with values in JSON; None where something else follows."""
    given: dict[str, Any] = {}
    while found := ARGUMENT_NAME.match(text, at):
        try:
            given[found[1]], at = json.JSONDecoder().raw_decode(text, found.end())
        except ValueError:
            return None
        at += next((len(joint) for joint in (", ", " and ") if text.startswith(joint, at)), 0)
    return given if text.startswith(end, at) else None


def build(root: Path) -> None:
    """Build a project of a hundred modules, a directory of 500 files, and what is awkward to read."""
    files: dict[str, bytes] = {".gitignore": b"built/\n", "README.md": b"# Example\n\nA project.\n" * 20}
    for number in range(100):
        uses = "from project.core import get_current_settings\n" * (number < 44)
        uses += "from project.core import old_style_helper\n" * (40 <= number < 52)
        body = "".join(
            f"\n\ndef load_{number}_{part}(path: str, value: int = {part}) -> str:\n"
            f'    """Load part {part} of module {number}."""\n'
            f"    if value > {number + part}:\n        raise ValueError(path)\n"
            f"{'    settings = get_current_settings(path)' if number < 44 else '    settings = None'}\n"
            f"{'    old_style_helper(settings)' if 40 <= number < 52 else '    str(settings)'}\n"
            f"    return path + str(value)\n"
            for part in range(8)
        )
        path = f"project/part_{number // 10}/module_{number:02}.py"
        files[path] = f'"""Module {number}."""\n\nimport os\n{uses}{body}'.encode()
    files |= {f"many/case_{number:03}.txt": b"case\n" * (number % 9 + 1) for number in range(500)}
    command = "import sys\n\n\nclass Command:\n    def add_arguments(self, formats):\n        pass\n"
    command += f"{ARGUMENT}\n    def handle(self, **options):\n        if self.is_plan:\n{BRANCH}\n"
    command += "    def show_list(self, connection, app_names=None):\n        sys.stdout.write('list')\n"
    files[f"project/core/{COMMAND}"] = command.encode()
    files |= {"project/bundle.js": b"function f(a){return a+1};" * 400, "built/out.py": b"GENERATED = 1\n"}
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def sources(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each module, but those in `tests`."""
    for path in sorted(root.rglob("*.py")):
        name = str(path.relative_to(root))
        with suppress(UnicodeDecodeError):
            if not {"tests", "docs", "built"} & set(name.split("/")):
                yield name, path.read_bytes().decode()


def apply(session: Session, path: str, edits: list[dict[str, str]]) -> None:
    """Send edits in one call, and again with what the errors suggest, or without, until they are applied."""
    for _ in range(len(edits) + 1):
        result = session.call("multi_edit", path=path, edits=edits)
        if result.success:
            return
        details = result.data["details"]
        for failed in details.get("failures", [details]):
            edits[failed["edit"] - 1]["old_string"] = failed.get("suggestion", "")
        edits = [each for each in edits if each["old_string"]]
    raise SystemExit(f"the edits of {path} were not applied")


def damaged_edits(session: Session) -> None:
    """Edit modules by one block with each damage, then by three damaged lines in one call; restore them."""
    rng = random.Random(1)
    modules = [(path, text) for path, text in sources(session.root) if 1000 < len(text) < 60_000]
    for path, text in rng.sample(modules, DAMAGED_BLOCKS):
        lines = text.splitlines(keepends=True)
        blocks = range(3, len(lines) - 8)
        unique = [n for n in blocks if text.count("".join(lines[n : n + 4])) == 1 and lines[n].strip()]
        start = rng.choice(unique)
        old = "".join(lines[start : start + rng.randrange(4, 8)])
        new = old.replace(lines[start], lines[start].rstrip("\n") + "  # changed\n")
        session.call("read", path=path, offset=start + 1, limit=8)
        for made in (damage(text, old, new, rng) for damage in DAMAGES):
            if made is None or made[2] in made[0] or made[2] == made[3]:
                continue
            file = session.root / path
            session.ws.forget()
            session.ws.read(path)
            file.write_bytes(made[0].encode())
            session.mistake("damaged edit", "", "edit", path=path, old_string=made[2], new_string=made[3])
            file.write_bytes(text.encode())
        spaced = {
            re.sub(r"(\S) (?=\S)", r"\1  ", line, count=1): line for line in lines if text.count(line) == 1
        }
        changes = [
            {"old_string": old, "new_string": f"{line}# changed\n"}
            for old, line in spaced.items()
            if old != line
        ]
        apply(session, path, changes[:3])
        file.write_bytes(text.encode())


def word_in(root: Path, top: str, count: int) -> str:
    """Return a name of several words that so many modules have, or nearly, as a part of longer names too."""
    texts = [text for path, text in sources(root) if path.startswith(f"{top}/")]
    words = Counter(word for text in texts for word in set(NAME.findall(text)))
    near = sorted(words, key=lambda word: (abs(words[word] - count), word))[:50]
    return min(near, key=lambda word: abs(sum(word in text for text in texts) - count))


def rename(session: Session, top: str, count: int) -> None:
    """Rename a name in so many files: by one call where there is a tool for it, else by one for each file."""
    old = word_in(session.root, top, count)
    new = f"renamed_{old}"
    having = ((path, text) for path, text in sources(session.root) if old in text)
    before = {path: text for path, text in having if path.startswith(f"{top}/")}
    session.pages(9, "grep", pattern=old, path=top, glob="*.py", output_mode="count")
    if "replace" in session.tools.names:
        session.call("replace", old_string=old, new_string=new, path=top, glob="*.py")
    else:
        for path in before:
            session.call("edit", path=path, old_string=old, new_string=new, replace_all=True)
    for path, text in before.items():
        file = session.root / path
        assert file.read_bytes().decode() == text.replace(old, new), path
        file.write_bytes(text.encode())


def add_format(session: Session) -> None:
    """Add `--format json` to showmigrations, with the usual wrong calls on the way."""
    path = next(path for path, _ in sources(session.root) if path.endswith(COMMAND))
    session.call("glob", pattern="**/showmigrations.py")
    session.mistake("path", "class Command", "read", path=path.replace("commands", "command"))
    session.call("read", path=path)
    session.call("grep", pattern="showmigrations", output_mode="files_with_matches")
    added = '        formats.add_argument("--json", action="store_const", dest="format", const="json")\n'
    session.call("edit", path=path, old_string="import sys\n", new_string="import json\nimport sys\n")
    shifted = ARGUMENT.removeprefix("    ")
    arguments = {"path": path, "old_string": shifted, "new_string": f"{added}\n{ARGUMENT}"}
    session.mistake("damaged edit", "", "edit", **arguments)
    branch = '        elif options["format"] == "json":\n            return self.show_json(connection)\n'
    method = "    def show_json(self, connection):\n        self.stdout.write(json.dumps({}))\n\n"
    anchor = "    def show_list(self, connection, app_names=None):\n"
    edits = [(BRANCH.replace('"', "'"), BRANCH + branch), (anchor, method + anchor)]
    apply(session, path, [{"old_string": old, "new_string": new} for old, new in edits])
    session.call("read", path=path, offset=1, limit=40)


def largest(names: Iterable[str]) -> str:
    """Return the most frequent name."""
    return Counter(names).most_common(1)[0][0]


def run(root: Path) -> dict[str, Any]:
    """Run all groups on a tree, and return what was counted."""
    top = largest(path.split("/")[0] for path, _ in sources(root) if "/" in path)
    name = word_in(root, top, 12)
    texts = {path: text for path, text in sources(root) if path.startswith(f"{top}/")}
    module = next(path for path, text in texts.items() if path.count("/") == 2 and "import os\n" in text)
    parent, file = os.path.split(module)
    names = {
        "upper": name.upper(),
        "upper_file": file.upper(),
        "title": parent.title(),
        "many": largest(os.path.relpath(path.parent, root) for path in root.rglob("*")),
        "typo": f"{parent}/{file[:2]}{file[3]}{file[2]}{file[4:]}",
        "elsewhere": f"{top}/{file}",
        "backslashes": module.replace("/", "\\\\"),
        "called": re.findall(r"(\w+)\(", texts[module])[0],
        "longest": max(texts, key=lambda path: len(texts[path])),
    }
    text = Template(Path(__file__).with_suffix(".txt").read_text())
    known = {"root": root, "top": top, "module": module, "parent": parent, "file": file, "name": name}
    text = text.substitute(known | names)
    calls = dict(re.findall(r"^\[(.+)\]\n((?:.+\n)+)", text, re.MULTILINE))
    scripts = {
        "exploring": lambda session: session.script(calls["exploring"]),
        "reading and searching": lambda session: session.script(calls["reading and searching"]),
        "damaged edits": damaged_edits,
        "`--format json` for showmigrations": add_format,
        "rename over 12 files": lambda session: rename(session, top, 12),
        "rename over 44 files": lambda session: rename(session, top, 44),
        "recovery": lambda session: session.script(calls["recovery"]),
    }
    if not any(path.endswith(COMMAND) for path, _ in sources(root)):
        del scripts["`--format json` for showmigrations"]
    sessions = {group: Session(root) for group in scripts}
    for group, script in scripts.items():
        script(sessions[group])
    mistakes = sum((session.mistakes for session in sessions.values()), Counter[tuple[str, str]]())
    return {
        "groups": {group: session.tally for group, session in sessions.items()},
        "mistakes": {kind: {what: mistakes[kind, what] for what in OUTCOMES} for kind in MISTAKES},
        "unsolved": [each for session in sessions.values() for each in session.unsolved],
    }


def measure(tree: Path | None, checkout: Path | None = None) -> dict[str, Any]:
    """Run all groups on each tree, with the package of another checkout if one is given."""
    if checkout:
        environment = {**os.environ, "PYTHONPATH": f"{checkout}:{os.environ.get('PYTHONPATH', '')}"}
        command = [sys.executable, __file__, "--json", *([tree] if tree else [])]
        return json.loads(subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE).stdout)
    with tempfile.TemporaryDirectory() as built, tempfile.TemporaryDirectory() as copy:
        build(Path(built))
        if not tree:
            return {"built tree": run(Path(built))}
        shutil.copytree(tree, copy, dirs_exist_ok=True, symlinks=True)
        return {"built tree": run(Path(built)), tree.name: run(Path(copy))}


def table(what: str, columns: tuple[str, ...], before: dict[str, Any], after: dict[str, Any]) -> None:
    """Print counts by row and column, before and after."""
    print(f"\n| {what} | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 1) + "|")
    for row, counts in after.items():
        cells = (
            f"{before[row][each]:,} → {counts[each]:,}" if before else f"{counts[each]:,}" for each in columns
        )
        print(f"| {row} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", nargs="?", type=Path, help="a tree of Python sources")
    parser.add_argument("--before", type=Path, help="a checkout to compare with")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--show", action="store_true", help="print the mistakes whose aim was not reached")
    options = parser.parse_args()
    before = measure(options.tree, options.before) if options.before else {}
    after = measure(options.tree)
    if options.json:
        print(json.dumps(after, indent=1))
        return
    print(f"tokens by {counter()[0]}")
    for tree, found in after.items():
        earlier = before.get(tree, {})
        table(tree, ("calls", "errors", "sent", "read"), earlier.get("groups", {}), found["groups"])
        table("mistakes", OUTCOMES, earlier.get("mistakes", {}), found["mistakes"])
        if options.show:
            print(*found["unsolved"], sep="\n\n")


if __name__ == "__main__":
    main()
