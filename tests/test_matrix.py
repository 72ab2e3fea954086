"""The matrix: every method and every tool of the dialects, in every view, way and form, against laws.

Each feature has tests of its own; most faults that those did not find are products of two features. So each
cell of this matrix is one call with a value for each dimension of `DIMENSIONS`, and each function of `LAWS`
yields what is wrong with it. The ordinary run draws few cells in which every two values meet, the run with
`-m long` takes all. A new method is a row of `METHODS`; a new dimension is a row of `DIMENSIONS`, and the
place in `Site` that reads it.

A fault begins with a command that shows it again, with the call and its answer:

    .venv/bin/python -m tests.test_matrix wave/LS one text relative none workdir watched none model usual open
"""

import atexit
import inspect
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import pytest

from agentfs import AgentFSError, Limits, Mount, Policy, Workspace, connect, dialects
from agentfs.dialects import toolkit
from agentfs.errors import StaleError
from agentfs.results import Result, plain
from tests import kit
from tests.conftest import lines_of
from tests.pairs import Cell, all_pairs, every_cell
from tests.remote.over_pipe import open_pipe
from tests.test_same_answers import LINE_IDS, STATUS_REVISION, VOLATILE
from tests.test_suggestions import calls_in, changes_in, texts_of
from tests.tree_difference import Node, snapshot

DIMENSIONS: dict[str, tuple[str, ...]] = {
    "method": (),  # filled from `METHODS` below
    "named": ("one", "several", "listed", "none"),  # how the call names its files; "listed" is `files`
    # "kept" is a kept name of the view, "lent" one of another view
    "target": ("text", "notebook", "large", "kept", "lent", "directory", "dotfile", "missing"),
    "spelling": ("relative", "./", "absolute", "link", "on disk"),  # the last is where the file really lies
    "mounts": ("none", "none", "none", "some"),  # "some": `MOUNTED` lie elsewhere
    "view": ("plain", "plain", "workdir", "only", "transaction"),
    "way": ("cold", "cold", "cold", "watched", "connect"),
    "state": ("none", "none", "kept"),  # "kept": the history is in a directory
    "caller": ("program", "model"),  # the method itself, or the tool that is made of it
    "limits": ("usual", "usual", "small"),
    # "denied": a rule closes the target, in its spelling. What stands here more often is drawn more often.
    "rules": ("open", "open", "open", "denied"),
}
USUAL = Limits(file_bytes=16_384, watch_bytes=2**20)
SMALL = replace(USUAL, read_lines=12, list_entries=2, glob_results=2, grep_results=5)
LIMITS = {"usual": USUAL, "small": replace(SMALL, output_tokens=300, snapshot_bytes=6_000)}
# What is shown of an answer: each cell is shown in each form (the law `every_form_shows_it`).
FORMS = ("text", "terminal", "JSON")

# ---- the tree: each line of a file is unique in it ---------------------------------------------------------

WORD = "needle"
FILES = {
    "text": "src/in/alpha.txt",
    "notebook": "src/in/book.ipynb",
    "large": "src/in/large.log",
    "directory": "src/in/deep",
    "dotfile": "src/in/.github/dot.txt",
    "missing": "src/in/alhpa.txt",
    "second": "src/other/beta.txt",
}
MEMORIES = {"text": "memories/note.txt", "directory": "memories/deep", "missing": "memories/noet.txt"}
DECOY = "in/alpha.txt"  # where a path of the view `workdir` leads if it is taken from the root
KEPT = {"kept", "lent"}
SLUGS = {"text": "alpha", "notebook": "book", "large": "large", "dotfile": "dot", "second": "beta"}
NOTEBOOK_CELLS = (3, 75, 2)  # the second is too long for small limits


def lines_with(slug: str, number: int, every: int = 1, filler: str = "") -> list[str]:
    return [f"{WORD if at % every == 0 else 'hay'} {slug} {at:03d}{filler}\n" for at in range(number)]


def notebook() -> str:
    lines = iter(lines_with("book", sum(NOTEBOOK_CELLS)))
    cells = [
        {
            "cell_type": "code", "id": f"cell-{number}", "metadata": {},
            "outputs": [], "execution_count": None,
            "source": [next(lines) for _ in range(count)],
        }
        for number, count in enumerate(NOTEBOOK_CELLS)
    ]  # fmt: skip
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


TREE: dict[str, str] = {
    ".gitignore": "built/\n",
    DECOY: "".join(lines_with("decoy", 20)),
    "built/out.txt": "".join(lines_with("built", 3)),
    FILES["text"]: "".join(lines_with("alpha", 30)),
    FILES["notebook"]: notebook(),
    FILES["large"]: "".join(lines_with("large", 200, every=20, filler=" hay" * 25)),
    FILES["dotfile"]: "".join(lines_with("dot", 4)),
    f"{FILES['directory']}/gamma.txt": "".join(lines_with("gamma", 4)),
    f"{FILES['directory']}/delta.md": "".join(lines_with("delta", 4)),
    f"{FILES['directory']}/er/eta.txt": "".join(lines_with("eta", 4)),
    FILES["second"]: "".join(lines_with("beta", 8)),
    MEMORIES["text"]: "".join(lines_with("note", 30)),
    f"{MEMORIES['directory']}/theta.md": "".join(lines_with("theta", 4)),
}
LINK = ("src/via", "in")  # the spelling "link" goes through it
MOUNTED = ("src", "memories")
MARK = re.compile(r'  \(read-write mount\)|, "mount": (null|"read-write")')
NAMES = sorted({name.rpartition("/")[2] for name in TREE})
LINE = re.compile(rf"\b(?:{WORD}|hay) [a-z]+ \d\d\d")


def tokens(text: str) -> set[str]:
    return set(LINE.findall(text.replace("\\n", "\n")))  # line ends within JSON


def found_in(text: str) -> set[str]:
    """Return what a text shows as found: lines with the word, and names of files."""
    return {each for each in tokens(text) if each.startswith(WORD)} | {name for name in NAMES if name in text}


NUMBERS = count()


@dataclass
class Place:
    """A copy of the tree, with the directories and files that are mounted in it."""

    top: Path
    mounts: dict[str, Path] = field(default_factory=dict)  # where each of `MOUNTED` lies

    def on_disk(self, path: str) -> Path:
        for mount, source in self.mounts.items():
            if f"{path}/".startswith(f"{mount}/"):
                return Path(str(source) + path[len(mount) :])
        return self.top / path

    def names(self) -> Iterator[tuple[str, str]]:
        for mount, above in {"": self.top, **self.mounts}.items():
            for path in (str(above), *paths_below(above)):
                yield (mount + path[len(str(above)) :]).lstrip("/"), path

    def remove(self) -> None:
        for each in (self.top, *self.mounts.values()):
            if each.is_dir():
                shutil.rmtree(each)
            else:
                each.unlink(missing_ok=True)


CLEAN: dict[str, list[Place]] = {"none": [], "some": []}  # places that are as they were laid out


@cache
def base() -> Path:
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # its directories are made faster
    directory = tempfile.mkdtemp(prefix="agentfs-matrix-", dir=memory)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


@cache
def template() -> Path:
    top = kit.put(base() / "template", TREE)
    (top / LINK[0]).symlink_to(LINK[1])
    set_times(top)
    return top


def set_times(top: Path) -> None:
    for path in (str(top), *paths_below(top)):
        os.utime(path, (1e9, 1e9), follow_symlinks=False)


def paths_below(top: Path) -> list[str]:
    found = os.walk(top)  # much faster than `Path.rglob`
    return sorted(os.path.join(above, name) for above, *names in found for name in [*names[0], *names[1]])


def status_of(place: Place) -> list[tuple[str, int, int]]:
    found = [(path, os.lstat(path)) for _, path in place.names()]
    return [(path, status.st_mtime_ns, status.st_ino) for path, status in found]


def tree_of(place: Place) -> dict[str, bytes]:
    found = {}
    for name, path in place.names():
        found[name] = os.readlink(path).encode() if os.path.islink(path) else b""
        if os.path.isfile(path):
            with open(path, "rb") as file:
                found[name] = file.read()
    return found


def nodes_of(place: Place) -> dict[str, Node]:
    found = snapshot(place.top)
    for mount, above in place.mounts.items():
        found |= {f"{mount}/{path}": node for path, node in snapshot(above).items() if path != "."}
    return found


# ---- the methods: how each takes a path --------------------------------------------------------------------


class Method(NamedTuple):
    """One kind of call.

    Attributes:
        kind: "read", "search", "change" or "history".
        tool: The method of `Workspace` or the tool of the dialect, or a function that makes the change.
        takes: The parameter for the files, for each way to name them; "" if the call names none.
        arguments: The other arguments, where `{path}`, `{line}` … stand for the attributes of `Site`.
        before: Prepares the call, for example by a read.
        only: The values of further dimensions that make sense.
        undo: How many steps take the change back; 0 if undo does not apply.
        unread: True if it may replace only what was shown.
        run: `Policy.run` of its workspace.
    """

    kind: str
    tool: "str | Callable[[Site], Result]"
    takes: Mapping[str, str]
    arguments: Mapping[str, Any]
    before: "Callable[[Site], object]" = lambda _: None
    only: Mapping[str, tuple[str, ...]] = {}
    undo: int = 1
    unread: bool = False
    run: 'Literal["staged", "recorded"] | None' = None


def row(kind: str, tool: Any, takes: Any = MappingProxyType({"one": "path"}), **given: Any) -> Method:
    """Return a row of `METHODS`. A keyword that is not a field is an argument of the call."""
    arguments = {name: given.pop(name) for name in [*given] if name not in Method._fields}
    return Method(kind, tool, takes, arguments, **given)


reads, searches, changes, tells = (partial(row, kind) for kind in ("read", "search", "change", "history"))

ONE_OR_NONE = {"one": "path", "none": ""}
SEVERAL = {"one": "path", "several": "path", "none": ""}
PATHS = {"one": "paths", "several": "paths", "none": ""}
ROOTS = {"one": "roots", "several": "roots"}
LISTED = {"listed": "files"}
FILE_PATH = {"one": "file_path"}
NONE = {"none": ""}
PROGRAM = {"caller": ("program",)}
# Rows whose call names no file by itself.
ONE_TARGET = {"target": ("text",), "rules": ("open",)}
# In a transaction, a change by another program is `stale`.
WITH_OTHERS = {"view": ("plain", "workdir", "only")}
# A command names its files itself. In a transaction and in a part of the tree, it is refused.
# It sees a mount at its path in the workspace only.
OPEN_OR_DENIED = {"rules": ("open", "denied")}
COMMAND = {
    "target": ("text", "large"), "spelling": ("relative", "./", "absolute", "link"), **OPEN_OR_DENIED
}  # fmt: skip
# A recorded command reads what rules deny, and destroys what is too large to be kept before it. It runs in
# the root itself, where no mount exists.
RECORDED_COMMAND = {**ONE_TARGET, "mounts": ("none",)}
# A recording is refused in a transaction, and only files and directories are recorded.
IN_RECORDINGS = {"target": ("text", "large", "dotfile", "directory")}
RECORDED = {**PROGRAM, **WITH_OTHERS, **IN_RECORDINGS, **OPEN_OR_DENIED}
# The tool knows one spelling, and only `memories/` at the top.
MEMORY = {"target": tuple(MEMORIES), "spelling": ("relative",), "view": ("plain", "transaction")}
NEW = "new text"
EDITOR = "str_replace_based_edit_tool"
EDITS = [{"old_string": "{line}", "new_string": NEW}, {"old_string": NEW, "new_string": f"{NEW}er"}]
SHELL = f"cat {{path}}; echo {NEW} >> {{path}}; echo {NEW} > made"  # show, append, make a file


def look(site: "Site") -> None:
    site.shown = site.look(site.path).text


def edited(site: "Site") -> None:
    site.view.checkpoint("start")
    for path in (site.path, site.second):
        site.attempt(lambda path=path: site.view.append(path, f"{NEW}\n"))


def reworked(site: "Site") -> None:
    """Change files by a tool, by the program and by a move."""
    view = site.view
    for act in (
        lambda: view.edit(site.path, site.line, NEW),
        lambda: view.host.append(site.path, f"{NEW}\n"),
        lambda: view.append(site.second, f"{NEW}\n"),
        lambda: view.move(site.second, site.free),
        lambda: view.write(f"{site.free}er", f"{NEW}\n"),
    ):
        site.attempt(act)


def decide(site: "Site") -> Result:
    """Accept a hunk, take one back, and change the text of the others."""
    first, second, *others = (hunk.id for hunk in site.view.review().hunks)
    return site.view.apply_review([first], [second], dict.fromkeys(others, "by a person\n"))


def decided(site: "Site") -> None:
    reworked(site)
    site.attempt(lambda: decide(site))


def undone(site: "Site") -> None:
    edited(site)
    site.attempt(site.view.undo)


def made(site: "Site") -> None:
    """Take a file as the target that the view has just made."""
    site.view.write(site.free, "".join(lines_with("alpha", 30)))
    site.__dict__["path"] = site.free


def undone_past_others(site: "Site") -> None:
    """Append; then another program removes most lines; then take the lines back."""
    look(site)
    site.attempt(lambda: site.view.append(site.path, f"{NEW}\n"))
    if site.on_disk.is_file():
        site.on_disk.write_text("".join(lines_of(site.on_disk.read_text())[-3:]))
    site.attempt(site.view.undo)


def conflicting(site: "Site") -> None:
    """Change the target and another file in one step; then another program changes the same line."""
    with site.view.transaction() as tx:
        for path in (site.path, site.second):
            site.attempt(lambda path=path: tx.append(path, f"{NEW}\n"))
    other_program(site, NEW)


def other_program(site: "Site", old: str = "") -> None:
    """Change the target as a command does, or make a file beside it."""
    path = site.on_disk
    if path.is_file():
        text = path.read_text()
        path.write_text(text.replace(old, "by a command") if old else f"{text}by a command\n")
    else:
        path.with_suffix(".made").write_text("by a command\n")


def command_renames(site: "Site") -> None:
    if site.on_disk.exists():
        site.on_disk.rename(site.on_disk.with_name(f"{site.on_disk.name}.moved"))


def command_replaces(site: "Site") -> None:
    """Put an empty directory in the place of a file, or a file in the place of a directory."""
    path = site.on_disk
    if path.is_file():
        path.unlink()
        path.mkdir()
    else:
        shutil.rmtree(path)
        path.write_text("by a command\n")


def secret(site: "Site") -> None:
    site.place.on_disk("src/in/.env").write_text("KEY=1\n")


def command_renames_secret(site: "Site") -> None:
    """Rename a file whose content no recording keeps; undo deleted the new name, its only copy."""
    site.place.on_disk("src/in/.env").rename(site.place.on_disk("src/in/plain.txt"))


def command_and_edit(site: "Site") -> None:
    other_program(site)
    site.attempt(lambda: site.view.append(site.path, f"{NEW}\n"))


def recorded(command: "Callable[[Site], None]", **more: Any) -> Method:
    def recording(site: "Site") -> Result:
        with site.view.recording("command") as recording:
            command(site)
        return recording.result

    return changes(recording, only=RECORDED, **more)


def started(site: "Site") -> Result:
    """Start a command in the background, and wait for it."""
    found = site.view.run(site.filled(SHELL), background=True)
    kit.wait_for(lambda: not site.view.output(str(found.id)).running)
    return site.view.stop(found.id)


def in_background(site: "Site") -> None:
    """Start a command that has written all its output, as `c1`."""
    found = site.attempt(lambda: site.view.run(site.filled(SHELL), background=True))
    if not isinstance(found, AgentFSError):
        kit.wait_for(lambda: not site.view.output(str(found.id)).running)


def spliced(site: "Site") -> Result:
    return kit.splice(site.view, site.path, [(0, 3, NEW)])


def inserted(site: "Site") -> Result:
    return kit.insert(site.view, site.path, 1, NEW)


def editor(command: str, **given: Any) -> Method:
    return (reads if command == "view" else changes)(EDITOR, command=command, **given)


def memory(command: str, **given: Any) -> Method:
    return (reads if command == "view" else changes)("memory", command=command, only=MEMORY, **given)


def patch(*lines: str) -> Method:
    text = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
    return changes("apply_patch", NONE, input=text)


grep = partial(searches, "grep", SEVERAL, pattern=WORD)
glob = partial(searches, "glob", SEVERAL)
run = partial(changes, "run", NONE, command=SHELL)
METHODS: dict[str, Method] = {
    "read": reads("read"),
    "read ids": reads("read", line_ids=True),
    "read raw": reads("read", raw=True),
    "read from": reads("read", offset=3),
    "read made": reads("read", before=made, only=ONE_TARGET),
    "stat": reads("stat", only=PROGRAM),
    "read_bytes": reads("read_bytes", only=PROGRAM),
    "ls": searches("ls", SEVERAL),
    "ls past": searches("ls", SEVERAL, offset=99),
    "ls deep": searches("ls", SEVERAL, depth=0),
    "ls ignore": searches("ls", SEVERAL, depth=0, ignore=["*.md"]),
    "glob": glob(pattern="*.*"),
    "glob path": searches("glob", NONE, pattern="{path}"),
    "glob below": searches("glob", NONE, pattern="/{from_view}/*"),
    "glob exclude": glob(pattern="**", exclude=["/{from_view}/*"]),
    "glob several": glob(pattern=["*.txt", "*.log"]),
    "glob all": glob(pattern="**", types=None, only=PROGRAM),
    "glob full": glob(regex="^src/", full_path=True, only=PROGRAM),
    "glob links": glob(types=None, follow_symlinks=True, unique=True, only=PROGRAM),
    "grep": grep(),
    "grep files": searches("grep", LISTED, pattern=WORD, only=PROGRAM),
    "grep listed hidden": searches("grep", LISTED, pattern=WORD, hidden=True, only=PROGRAM),
    "grep count": grep(output_mode="count"),
    "grep names": grep(output_mode="files_with_matches"),
    "grep summary": grep(output_mode="summary"),
    "grep total": grep(output_mode="total"),
    "grep context": grep(context=1),
    "grep glob": grep(glob="*.txt"),
    "grep nothing": searches("grep", SEVERAL, pattern="Needle"),
    "grep links": grep(follow_symlinks=True, only=PROGRAM),
    "write": changes("write", content=f"{NEW}\n", unread=True),
    "write read": changes("write", content=f"{NEW}\n", before=look, unread=True),
    "write over": changes("write", content=f"{NEW}\n", overwrite=True, only=PROGRAM),
    "write undone": changes("write", content=f"{NEW}\n", before=undone_past_others, only=WITH_OTHERS),
    "write_bytes": changes("write_bytes", data=b"\0by\xff", only=PROGRAM),
    "mkdir": changes("mkdir", only=PROGRAM | {"target": ("text", "missing", "kept")}),
    "mkdir free": changes("mkdir", NONE, path="{free}/x", only=PROGRAM),
    "append": changes("append", content=f"{NEW}\n"),
    "edit": changes("edit", **EDITS[0]),
    "edit absent": changes("edit", old_string="needle alhpa 003", new_string=NEW),
    "multi_edit": changes("multi_edit", edits=EDITS),
    "edit_lines": changes("edit_lines", changes=[{"line_id": "{line_id}", "new_content": NEW}]),
    "splice": changes(spliced, only=PROGRAM),
    "insert": changes(inserted, only=PROGRAM),
    "replace": changes("replace", SEVERAL, old_string=WORD, new_string=NEW),
    "delete": changes("delete", recursive=True),
    "delete plain": changes("delete"),
    "move": changes("move", to="{free}"),
    "changes": tells("changes", PATHS, before=edited),
    "review": tells("review", PATHS, before=reworked, only=PROGRAM),
    "review decided": tells("review", PATHS, before=decided, only=PROGRAM),
    "apply_review": changes(decide, before=reworked, undo=0, only=PROGRAM),
    "undo": changes("undo", PATHS, before=edited, undo=0),
    "undo conflict": changes("undo", NONE, before=conflicting, undo=0, only=WITH_OTHERS),
    "redo": changes("redo", NONE, before=undone, undo=0, only=ONE_TARGET),
    "checkpoint": changes("checkpoint", NONE, name="here", undo=0, only=ONE_TARGET),
    "rollback": changes("rollback", PATHS, to="start", before=edited, undo=0),
    "run": run(only=COMMAND, run="staged"),
    "run preview": run(preview=True, undo=0, only=PROGRAM | COMMAND, run="staged"),
    "run recorded": run(only=RECORDED_COMMAND, run="recorded"),
    "run background": changes(started, NONE, only=PROGRAM | RECORDED_COMMAND, run="recorded"),
    "output": reads("output", NONE, id="c1", before=in_background, only=RECORDED_COMMAND, run="recorded"),
    "stop": changes(
        "stop", NONE, id="c1", before=in_background, undo=0, only=RECORDED_COMMAND, run="recorded"
    ),
    "recording": recorded(other_program),
    "recording rename": recorded(command_renames),
    "recording secret": recorded(command_renames_secret, before=secret),
    "recording replace": recorded(command_replaces),
    "recording edit": recorded(command_and_edit, undo=2),
    "wave/Read": reads("Read", FILE_PATH),
    "wave/Write": changes("Write", FILE_PATH, content=f"{NEW}\n", unread=True),
    "wave/Write read": changes("Write", FILE_PATH, content=f"{NEW}\n", before=look, unread=True),
    "wave/Edit": changes("Edit", FILE_PATH, **EDITS[0], before=look),
    "wave/MultiEdit": changes("MultiEdit", FILE_PATH, edits=EDITS, before=look),
    "wave/LS": searches("LS"),
    "wave/Glob": searches("Glob", ONE_OR_NONE, pattern="**/*.*"),
    "wave/Glob path": searches("Glob", NONE, pattern="{path}"),
    "wave/Grep": searches("Grep", ONE_OR_NONE, pattern=WORD),
    "wave/Grep content": searches(
        "Grep", ONE_OR_NONE, **{"pattern": WORD, "output_mode": "content", "-n": True}
    ),
    "wave/Grep head": searches("Grep", ONE_OR_NONE, pattern=WORD, head_limit=1),
    "text-editor/view": editor("view"),
    "text-editor/create": editor("create", file_text=f"{NEW}\n"),
    "text-editor/replace": editor("str_replace", old_str="{line}", new_str=NEW),
    "text-editor/insert": editor("insert", insert_line=1, insert_text=NEW),
    "apply-patch/update": patch("*** Update File: {path}", "@@", "-{line}", f"+{NEW}"),
    "apply-patch/add": patch("*** Add File: {path}", f"+{NEW}"),
    "apply-patch/delete": patch("*** Delete File: {path}"),
    "apply-patch/move": patch("*** Update File: {path}", "*** Move to: {free}", "@@", "-{line}", f"+{NEW}"),
    "rye/read": reads("read", FILE_PATH),
    "rye/write": changes("write", FILE_PATH, content=f"{NEW}\n"),
    "rye/edit_lines": changes(
        "edit_lines", FILE_PATH, changes=[{"line_id": "{line_id}", "new_content": NEW}]
    ),
    "rye/glob": searches("glob", ONE_OR_NONE, pattern="**/*.*"),
    "rye/grep": searches("grep", ONE_OR_NONE, pattern=WORD),
    "rye/ls": searches("ls", ONE_OR_NONE),
    "dominds/list_dir": searches("list_dir", ONE_OR_NONE),
    "dominds/read_file": reads("read_file"),
    "dominds/ripgrep_files": searches("ripgrep_files", ONE_OR_NONE, pattern=WORD),
    "dominds/ripgrep_snippets": searches("ripgrep_snippets", ONE_OR_NONE, pattern=WORD),
    "dominds/ripgrep_count": searches("ripgrep_count", ONE_OR_NONE, pattern=WORD),
    "dominds/ripgrep_fixed": searches("ripgrep_fixed", ONE_OR_NONE, literal=WORD),
    "dominds/ripgrep_search": searches("ripgrep_search", ONE_OR_NONE, pattern=WORD),
    "tree-sitter-analyzer/list_files": searches("list_files", ROOTS),
    "tree-sitter-analyzer/list_files full": searches(
        "list_files", ROOTS, pattern="src/", full_path_match=True
    ),
    "tree-sitter-analyzer/search_content": searches("search_content", {**ROOTS, **LISTED}, query=WORD),
    "tree-sitter-analyzer/search_content hidden": searches(
        "search_content", {**ROOTS, **LISTED}, query=WORD, hidden=True
    ),
    "tree-sitter-analyzer/find_and_grep": searches("find_and_grep", ROOTS, query=WORD),
    "codescout/read_file": reads("read_file"),
    "codescout/list_dir": searches("list_dir"),
    "codescout/list_dir all": searches("list_dir", recursive=True),
    "codescout/search_pattern": searches("search_pattern", ONE_OR_NONE, pattern=WORD),
    "codescout/find_file": searches("find_file", ONE_OR_NONE, pattern="**/*.*"),
    "codescout/create_file": changes("create_file", content=f"{NEW}\n"),
    "codescout/edit_file": changes("edit_file", **EDITS[0]),
    "memory/view": memory("view"),
    "memory/create": memory("create", file_text=f"{NEW}\n", unread=True),
    "memory/replace": memory("str_replace", old_str="{line}", new_str=NEW),
    "memory/insert": memory("insert", insert_line=1, insert_text=NEW),
    "memory/delete": memory("delete"),
    "memory/rename": memory("rename", takes={"one": "old_path"}, new_path="/memories/free.new"),
}
DIMENSIONS["method"] = tuple(METHODS)
# The tool with which a dialect looks at a file, and the parameter for the path.
LOOKS = {
    "agentfs": ("read", "path", {}),
    "wave": ("Read", "file_path", {}),
    "text-editor": (EDITOR, "path", {"command": "view"}),
    "rye": ("read", "file_path", {}),
    "dominds": ("read_file", "path", {}),
    "codescout": ("read_file", "path", {}),
    "memory": ("memory", "path", {"command": "view"}),
}
# Methods of `Workspace` without a row: they open, close or make views and names.
NO_ROWS = {"branch", "branches", "close", "forget", "recorded", "tools", "transaction", "view"}


# Targets that a kind of method is not combined with, because another kind shows the same.
NOT_FOR = {"read": set(), "search": {"lent", "missing"}, "change": {"lent", "dotfile"}, "history": set()}


def takes(name: str) -> dict[str, tuple[str, ...]]:
    """Return the values of dimensions that a method is combined with, if not all."""
    method = METHODS[name]
    targets = tuple(each for each in DIMENSIONS["target"] if each not in NOT_FOR[method.kind])
    caller = {"caller": ("model",)} if "/" in name else {}
    return {"named": tuple(method.takes), "target": targets, **caller, **method.only}


# ---- one cell: the tree, the view, the call ----------------------------------------------------------------


@dataclass
class Answer:
    """The answer to a call, of a program or of a model."""

    text: str = ""
    data: Any = None
    next: Any = None
    code: str | None = None
    crash: str = ""
    notes: tuple[str, ...] = ()
    result: Any = None  # the `ToolResult`, for a model

    @property
    def success(self) -> bool:
        return not self.code and not self.crash


def answer_of(act: Callable[[], Any]) -> Answer:
    try:
        result = act()
    except AgentFSError as error:
        return Answer(str(error), error.to_dict(), code=error.code)
    except Exception as error:  # noqa: BLE001 - a fault, by the law about errors
        return Answer(crash=repr(error))
    if isinstance(result, Result):
        return Answer(result.text, result.to_dict(), result.next, notes=result.notes)
    if isinstance(result, bytes):
        return Answer(result.decode("utf-8", "replace"), [*result])
    return Answer(json.dumps(plain(result)), plain(result))


@dataclass
class Site:
    """A tree with an opened view of it, as a cell says."""

    cell: Cell
    place: Place
    workspace: Workspace
    view: Workspace
    shown: str = ""  # by the call before this one
    files: list[str] = field(default_factory=list)

    @cached_property
    def method(self) -> Method:
        return METHODS[self.cell["method"]]

    @cached_property
    def dialect(self) -> str:
        name, slash, _ = self.cell["method"].partition("/")
        return name if slash else "agentfs"

    @cached_property
    def tools(self) -> Any:
        return tools_of(self.view, self.dialect)

    @property
    def target(self) -> str:
        """The path of the target from the root; of a kept name, that of the text."""
        files = MEMORIES if self.dialect == "memory" else FILES
        return files.get(self.cell["target"], files["text"])

    @property
    def on_disk(self) -> Path:
        return self.place.on_disk(self.target)

    @property
    def from_view(self) -> str:
        return self.target.removeprefix("src/") if self.cell["view"] == "workdir" else self.target

    @property
    def slug(self) -> str:
        return "note" if self.dialect == "memory" else SLUGS.get(self.cell["target"], "alpha")

    @property
    def line(self) -> str:
        return f"{WORD} {self.slug} 000"

    @cached_property
    def path(self) -> str:
        """The target as the call names it."""
        if self.dialect == "memory":
            return f"/{self.target}"
        if self.cell["target"] not in KEPT:
            return self.spelled(self.target)
        maker, path = self.view, self.spelled(self.target)
        if self.cell["target"] == "lent":
            maker, path = self.workspace.view(workdir="src"), self.target.removeprefix("src/")
        kept = self.attempt(lambda: kit.keep(maker, maker.read(path)))
        return kept if isinstance(kept, str) else self.spelled(self.target)

    @property
    def second(self) -> str:
        path = FILES["second"]
        return self.spelled(os.path.dirname(path) if self.cell["target"] == "directory" else path)

    @property
    def free(self) -> str:
        return self.spelled("src/in/free.new")

    def spelled(self, path: str) -> str:
        """Return a path from the root in the spelling of the cell, as this view takes it."""
        spelling = self.cell["spelling"]
        if spelling == "absolute":
            return str(self.place.top / path)
        if spelling == "on disk":
            return str(self.place.on_disk(path))
        if spelling == "link":
            path = path.replace("src/in/", "src/via/")
        if self.cell["view"] == "workdir":
            path = path.removeprefix("src/")
        return f"./{path}" if spelling == "./" else path

    def filled(self, value: Any) -> Any:
        """Return arguments with this site's attributes where `{path}`, `{line}` … stand in them."""
        if isinstance(value, str):
            return re.sub(r"\{(\w+)\}", lambda found: getattr(self, found[1]), value)
        if isinstance(value, Mapping):
            return {name: self.filled(each) for name, each in value.items()}
        return [self.filled(each) for each in value] if isinstance(value, list) else value

    def real(self, shown: str) -> str:
        """Return the path from the root of a path in an answer."""
        path = shown.removeprefix("/") if self.dialect == "memory" else shown
        for name, above in {"": self.place.top, **self.place.mounts}.items():
            path = f"{name}/{path[len(str(above)) + 1 :]}" if path.startswith(f"{above}/") else path
        path = os.path.normpath(path.lstrip("/"))
        if self.cell["view"] == "workdir" and not path.startswith(("src/", "memories/")):
            path = f"src/{path}"
        return path.replace("src/via/", "src/in/")

    def attempt(self, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except AgentFSError as error:
            return error

    @cached_property
    def line_id(self) -> str:
        """The id of the first line of the target, from the tool that shows ids."""
        text = self.look(self.path, line_ids=True).text
        found = re.search(rf"(?:\[\d* ?|^ *\d+ |\b)([0-9a-f]{{6,}})\W+{self.line}", text, re.MULTILINE)
        return found[1] if found else "abcdef"

    def look(self, path: str, **more: Any) -> Answer:
        if self.dialect not in LOOKS:
            return answer_of(lambda: self.view.stat(path))
        tool, parameter, given = LOOKS[self.dialect]
        return self.call(tool, {parameter: path, **given, **(more if self.dialect == "agentfs" else {})})

    def parameters(self, name: str) -> set[str]:
        if self.cell["caller"] == "program":
            return {*inspect.signature(getattr(self.view, name)).parameters}
        return {*schemas(self.dialect, "mcp")[name]["inputSchema"]["properties"]}

    def names(self, *, reverse: bool = False) -> dict[str, Any]:
        parameter = self.method.takes[self.cell["named"]]
        if not parameter:
            return {}
        several = [self.path, self.second][:: -1 if reverse else 1]
        if self.cell["named"] == "several" or self.cell["named"] == "listed":
            return {parameter: several}
        return {parameter: [self.path] if parameter in {"roots", "paths"} else self.path}

    def act(self, *, reverse: bool = False) -> tuple[str, dict[str, Any], Answer]:
        if callable(self.method.tool):
            return self.method.tool.__name__, {}, answer_of(lambda: self.method.tool(self))
        arguments = {**self.filled(self.method.arguments), **self.names(reverse=reverse)}
        return self.method.tool, arguments, self.call(self.method.tool, arguments)

    def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Make a call, as the caller of the cell makes it."""
        if self.cell["caller"] == "program":
            return answer_of(lambda: called(self.view, name, arguments))
        try:
            result = self.tools.call(name, arguments)
        except Exception as error:  # noqa: BLE001 - a fault, by the law about errors
            return Answer(crash=repr(error))
        code = result.error["code"] if result.error else None
        return Answer(result.content, result.data, result.next, code, "", result.notes, result)


def called(view: Workspace, name: str, arguments: Mapping[str, Any]) -> Any:
    """Call a method, or with options that only dialects have the function of their toolkit."""
    method = getattr(view, name)
    if arguments.keys() <= inspect.signature(method).parameters.keys():
        return method(**arguments)
    kind = {"glob": toolkit.GlobOptions, "grep": toolkit.GrepOptions}[name]
    return getattr(toolkit, name)(view, kind(**arguments))


def tools_of(view: Workspace, dialect: str) -> Any:
    """Return all tools of a dialect, with the parameters that rows of `METHODS` pass."""
    if dialect != "agentfs":
        return view.tools(dialect=dialect)
    expose = {"read": ["line_ids"], "grep": ["line_ids", "hidden", "fixed_strings"]}
    more = {"ls": ["ignore"], "glob": ["exclude"]}
    return view.tools("all", expose=expose | more)


@cache
def schemas(dialect: str, form: str) -> dict[str, Any]:
    with Workspace(template(), policy=Policy(run="recorded")) as ws:
        return {each["name"]: each for each in tools_of(ws, dialect).schemas(form)}


@contextmanager
def laid_out(mounts: str, *, reused: bool) -> Iterator[Place]:
    """Yield a copy of the tree; for calls that only read, one that an earlier cell has left unchanged."""
    place = CLEAN[mounts].pop() if reused and CLEAN[mounts] else copied(mounts)
    before = status_of(place)
    yield place
    if reused and status_of(place) == before:
        CLEAN[mounts].append(place)
    else:
        place.remove()


def copied(mounts: str) -> Place:
    # Names of one length: answers with absolute paths have as many tokens in each tree.
    place = Place(Path(shutil.copytree(template(), base() / f"{next(NUMBERS):06}", symlinks=True)))
    if mounts == "some":
        for number, mount in enumerate(MOUNTED):
            source = place.top.with_name(f"{place.top.name}.{number}")
            place.mounts[mount] = (place.top / mount).rename(source)
        set_times(place.top)
    return place


@contextmanager
def opened(cell: Cell) -> Iterator[Site]:
    with ExitStack() as stack:
        reads = METHODS[cell["method"]].kind in {"read", "search"}
        place = stack.enter_context(laid_out(cell["mounts"], reused=reads))
        way = METHODS[cell["method"]].run
        mounts = {mount: Mount(source) for mount, source in place.mounts.items()}
        options: dict[str, Any] = {"limits": LIMITS[cell["limits"]], "policy": Policy(run=way)}
        above = None
        if cell["state"] == "kept":
            above = stack.enter_context(tempfile.TemporaryDirectory(dir=base()))
            options["state"] = "state" if cell["way"] == "connect" else f"{above}/state"
        if cell["rules"] == "denied":
            outside = Site({**cell, "view": "plain"}, place, None, None)
            path = outside.spelled(outside.target)
            options["policy"] = Policy(run=way, deny=(f"*({path})", f"*({path}/**)"))
        if cell["way"] == "connect":
            server = open_pipe(mounts=mounts, policy=Policy(run=way), state=above)
            workspace = connect(server, str(place.top), **options)
        else:
            workspace = Workspace(place.top, mounts=mounts, watch=cell["way"] == "watched", **options)
        stack.enter_context(workspace)
        if cell["way"] == "branch":
            workspace = stack.enter_context(workspace.branch("one"))
        # A second search keeps a watched tree. In all ways, one was made, so what it left out is known.
        for _ in range(2 if cell["way"] == "watched" else 1):
            with suppress(AgentFSError):
                workspace.grep(WORD, "src", output_mode="total")
        match cell["view"]:
            case "workdir":
                view = workspace.view(workdir="src")
            case "only":
                view = workspace.view(only=["src"])
            case "transaction":
                stack.enter_context(suppress(StaleError))  # another program has changed the target
                view = stack.enter_context(workspace.transaction())
            case _:
                view = workspace
        yield Site(cell, place, workspace, view)


@dataclass
class Seen:
    """The call of a cell, for the laws."""

    site: Site
    name: str
    arguments: dict[str, Any]
    answer: Answer
    before: dict[str, bytes]  # the tree
    nodes: dict[str, Node]  # the tree, by an independent walk

    @property
    def cell(self) -> Cell:
        return self.site.cell

    @cached_property
    def first(self) -> Answer:
        return rooted(self.answer, self.site)

    def other(self, **values: str) -> Answer:
        """Return the answer to the same call in another cell, with `<root>` for its root."""
        return answer_in(tuple({**self.cell, **values}.items()))

    @cached_property
    def pages(self) -> list[Answer]:
        return [*pages_from(self.site, self.answer)]

    @cached_property
    def ends_in_cell(self) -> bool:
        """True if the pages say that they end in a cell, and the tool cannot go on in a cell."""
        said = re.search(r"; (there is more\]|more, as JSON: )", self.pages[-1].text) is not None
        return said and self.cell["target"] == "notebook" and "column" not in self.site.parameters(self.name)

    @cached_property
    def advised(self) -> list[tuple[str, dict[str, Any] | None]]:
        """The calls that the answer suggests, each a name and arguments; None if they cannot be read."""
        found = [(self.answer.next["name"], self.answer.next["arguments"])] if self.answer.next else []
        is_tool = isinstance(self.site.method.tool, str)  # the arguments of a function here are not known
        try:
            texts = [*texts_of(json.loads(self.answer.text))]
        except ValueError:
            texts = [self.answer.text]
        for text in (*texts, *self.answer.notes):
            found += calls_in(text)
            for passed, left in changes_in(text) if is_tool else ():
                kept = {key: value for key, value in self.arguments.items() if key not in left}
                found.append((self.name, {**kept, **passed}))
        return [each for at, each in enumerate(found) if each not in found[:at]]

    def advised_pages(self) -> Iterator[Answer]:
        """Yield the answers to the suggested calls, each with the calls that continue it."""
        following = self.answer.next or {}  # `pages` has what this call shows
        for name, arguments in self.advised:
            if (name, arguments) != (following.get("name"), following.get("arguments")):
                yield from pages_from(self.site, self.site.call(name, arguments or {}))


def pages_from(site: Site, answer: Answer) -> Iterator[Answer]:
    for _ in range(60):
        yield answer
        if not (answer.next and answer.success):
            return
        answer = site.call(answer.next["name"], answer.next["arguments"])


@cache
def answer_in(values: tuple[tuple[str, str], ...]) -> Answer:
    with opened(dict(values)) as site:
        site.method.before(site)
        return rooted(site.act()[2], site)


def rooted(answer: Answer, site: Site) -> Answer:
    """Return an answer with `<root>` for the root, without what differs each time."""
    varying = [
        (STATUS_REVISION, "~"),
        (re.compile(r"@[a-z]+_[0-9a-f]{4,}"), "@kept"),
        (re.compile(r'"\w*elapsed_ms": \d+'), "elapsed"),
        (re.compile(r'"mtime": \d+'), "mtime"),
        (LINE_IDS, "[LID]"),
        (re.compile(r"\b[0-9a-f]{10}\b"), "hunk"),  # named by the time of its step
    ]

    def normal(value: Any) -> Any:
        if isinstance(value, dict):
            kept = {key: each for key, each in value.items() if key not in VOLATILE and "elapsed" not in key}
            return {normal(key): normal(each) for key, each in kept.items()}
        if isinstance(value, (list, tuple)):
            return [normal(each) for each in value]
        if isinstance(value, str):
            for path, source in site.place.mounts.items():
                value = value.replace(str(source), f"<root>/{path}")
            value = value.replace(str(site.place.top), "<root>")
            for found, shown in varying:
                value = found.sub(shown, value)
        return value

    return Answer(
        normal(answer.text), normal(answer.data), normal(answer.next), answer.code, answer.crash,
        normal(answer.notes),
    )  # fmt: skip


# ---- the laws: each yields what is wrong -------------------------------------------------------------------

LAWS: list[Callable[[Seen], Iterator[str]]] = []


def law(function: Callable[[Seen], Iterator[str]]) -> Callable[[Seen], Iterator[str]]:
    LAWS.append(function)
    return function


@law
def no_error_but_typed_ones(seen: Seen) -> Iterator[str]:
    """All that a call names is inside the view, so nothing is said to be outside."""
    if seen.answer.crash:
        yield f"raised {seen.answer.crash}"
    unexpected = {"internal", "unsupported", "io", "timeout", "busy"}
    root_or_name = seen.cell["named"] == "none" or seen.cell["target"] in KEPT
    if not (seen.cell["view"] == "only" and root_or_name):
        unexpected.add("outside_workspace")
    if seen.answer.code in unexpected:
        yield f"has the code {seen.answer.code}: {seen.answer.text[:100]}"


@law
def what_it_says_was_done_is_the_difference(seen: Seen) -> Iterator[str]:
    """The paths and lines that it says were changed are those that an independent walk finds different."""
    before, after = seen.nodes, nodes_of(seen.site.place)
    changed = {path for path in {*before, *after} if before.get(path) != after.get(path)} - {"."}
    data = seen.answer.data if isinstance(seen.answer.data, dict) else {}
    data = data.get("changes", data)
    says_nothing = re.search(r"\b[Nn]othing was (changed|applied)", seen.answer.text)
    if not seen.answer.success or seen.site.method.kind != "change" or "preview" in seen.arguments:
        if changed:
            yield f"has changed {sorted(changed)}"
        return
    if says_nothing and changed:
        yield f"says {says_nothing[0]!r}, and has changed {sorted(changed)}"
    if seen.name == "stop":
        return  # the command has changed the tree before
    # The contract of a dialect may answer without the path of the call.
    said = {seen.site.real(each) for each in [*changes_said(data)] or changes_said(seen.arguments)}
    for path in sorted(changed):
        is_above = path in after and any(f"{each}/".startswith(f"{path}/") for each in said)
        if not is_above and not any(f"{path}/".startswith(f"{each}/") for each in said):
            yield f"does not say that it has changed {path}"
    listed = data.get("files") if isinstance(data.get("files"), list) else []
    for each in listed:
        path = seen.site.real(each["path"])
        if path not in changed:
            yield f"says that it has changed {path}"
        added, removed = each.get("added"), each.get("removed")
        old, new = (tree.get(path, b"").count(b"\n") for tree in (seen.before, tree_of(seen.site.place)))
        is_all = seen.site.method.undo < 2  # a recording leaves out what its workspace has changed meanwhile
        if is_all and added is not None and not each["moved_from"] and added - removed != new - old:
            yield f"says that {path} has +{added} -{removed} lines; it had {old} and has {new}"


def changes_said(data: Any) -> Iterator[str]:
    if isinstance(data, dict):
        named = map(data.get, ("path", "file_path", "to", "moved_from"))
        yield from (each for each in named if isinstance(each, str))
        yield from data.get("lost", ())
        files = data.get("files")
        if isinstance(files, dict):
            yield from files
        for each in [*(files if isinstance(files, list) else ()), *data.get("places", ())]:
            yield from changes_said(each)


@law
def every_form_shows_it(seen: Seen) -> Iterator[str]:
    """Each of `FORMS` has the same text or data."""
    answer = seen.answer
    if not answer.text:
        yield "has no text"
    try:
        json.dumps(answer.data)
    except (TypeError, ValueError) as error:
        yield f"JSON: {error}"


@law
def it_shows_what_is_there(seen: Seen) -> Iterator[str]:
    """A read and the calls that it advises show the lines of the named files: all of them, and no others."""
    if seen.site.method.kind != "read" or not seen.answer.success or seen.cell["rules"] == "denied":
        return
    if seen.name in {"exists", "stat", "realpath"} or seen.cell["target"] not in {*SLUGS, *KEPT}:
        return
    if seen.cell["target"] == "lent" and seen.cell["view"] == "only":
        return  # a view with `only` does not know the kept names of others
    wanted = tokens(TREE[seen.site.target])
    if seen.cell["named"] == "several":
        wanted |= tokens(TREE[FILES["second"]])
    shown = set().union(*(tokens(page.text) for page in seen.pages))
    if wanted - shown:
        shown |= set().union(*(tokens(page.text) | found_in(page.text) for page in seen.advised_pages()))
    if extra := shown - wanted - {*NAMES}:
        yield f"shows lines of other files: {sorted(extra)[:3]}"
    missing = wanted - shown
    if missing and seen.cell["method"] != "read from" and not seen.ends_in_cell:
        pages = len(seen.pages)
        yield f"its {pages} pages and advice do not show {len(missing)} lines: {sorted(missing)[:3]}"


# Parameters by which a call can ask for the next part.
PAGED_BY = {"offset", "range", "view_range", "start_line", "paths"}
SAYS_LEVELS = re.compile(r"\d levels? shown")  # `ls` with depth=0 shows as many as fit one page
SAYS_CUT = re.compile(r"truncated\W+true|\bmore\b|\bcut\b|\bnot all\b|left out|overflow", re.IGNORECASE)


@law
def what_is_cut_goes_on(seen: Seen) -> Iterator[str]:
    """With small limits, an answer and the calls that it advises show all that usual limits show.

    A tool whose contract has no parameter for the next part says at least that there is more.
    """
    if seen.cell["limits"] == "usual" or not seen.answer.success or seen.site.method.kind == "change":
        return
    if SAYS_LEVELS.search(seen.answer.text):
        return
    whole = found_in(seen.other(limits="usual").text)
    missing = whole - set().union(*(found_in(page.text) for page in seen.pages))
    listed_by_read = seen.site.method.kind == "read" and seen.cell["target"] == "directory"
    is_last = not PAGED_BY & seen.site.parameters(seen.name)
    if missing and (is_last or (listed_by_read and seen.site.dialect != "agentfs")):
        if not SAYS_CUT.search(f"{seen.answer.text} {seen.answer.notes}"):
            yield f"is cut and does not say so; not shown: {sorted(missing)[:3]}"
    elif missing and not seen.ends_in_cell:
        for page in seen.advised_pages():
            missing -= tokens(page.text) | found_in(page.text)
            if not missing:
                break
        else:
            yield f"its {len(seen.pages)} pages and advice lack {sorted(missing)[:3]}"
    for page in seen.pages[1:]:
        if not page.success:
            yield f"its next fails: {page.text[:200]}"


@law
def shown_is_counted(seen: Seen) -> Iterator[str]:
    data, text = seen.answer.data, seen.answer.text
    if found := re.search(r"\b(?<![.:-])1 (entries|files|matches|lines|names|directories|cells)\b", text):
        yield f"says {found[0]!r}"
    if not seen.answer.success or not isinstance(data, dict):
        return
    if data.get("line_count") == 0 and found_in(str(data.get("output", ""))):
        yield "has lines, and a line_count of 0"
    if seen.site.dialect != "agentfs":
        return
    for name in ("entries", "files"):
        if name in data and "total" in data and not data["truncated"] and len(data[name]) != data["total"]:
            yield f"has {len(data[name])} {name}, and a total of {data['total']}"
    if "total_matches" in data and not data["truncated"]:
        counts = data["counts"].values()
        if counts and sum(each["matches"] for each in counts) != data["total_matches"]:
            yield f"counts {data['counts']} and {data['total_matches']} matches"
        if counts and len(counts) != data["total_files"]:
            yield f"counts {len(counts)} of {data['total_files']} files"
        sampled = seen.cell["method"] == "grep summary"
        if data["matches"] and len(data["matches"]) != data["total_lines"] and not sampled:
            yield f"has {len(data['matches'])} of {data['total_lines']} lines"
    replaced = sum(data["files"].values()) if isinstance(data.get("files"), dict) else None
    if replaced not in {None, data.get("replacements")}:
        yield f"has {data['files']} and {data['replacements']} replacements"
    if data.get("kind") == "text" and data["content"]:
        count = data["end_line"] - data["start_line"] + 1
        if len(lines_of(data["content"])) != count:
            yield f"has {len(lines_of(data['content']))} lines as {count}"


@law
def what_is_named_is_searched(seen: Seen) -> Iterator[str]:
    """A search of a named file shows something of it, or counts it as skipped."""
    target, named = seen.cell["target"], seen.cell["named"]
    if seen.site.method.kind != "search" or named == "none" or target in {"missing", "directory"}:
        return
    if seen.cell["limits"] == "small" or seen.cell["rules"] == "denied" or not seen.answer.success:
        return
    if seen.name not in {"grep", "Grep", "search_content"} or seen.cell["method"] == "grep nothing":
        return
    if seen.cell["method"] == "grep total":
        count = seen.answer.data["total_files"]
        if count != (1 if named == "one" else 2):
            yield f"counts {count} files"
        return
    skipped = json.dumps((seen.answer.data or {}).get("skipped", {}))
    name = seen.site.target.rpartition("/")[2]
    said = seen.answer.text + json.dumps(seen.answer.data)
    shown = any(each in said for each in (seen.site.slug, name, "@"))
    if not shown and not re.search("[1-9]", skipped):
        yield f"neither shows nor counts {name}"


def paths_in(data: Any, name: str = "") -> Iterator[str]:
    if isinstance(data, dict):
        if data.get("action") == "deleted":
            return
        if name in {"counts", "file_counts", "files"} and not {"path", "file"} & data.keys():
            yield from data
        for key, value in data.items():
            if key in {"path", "file", "file_path", "abs_path"} and isinstance(value, str):
                yield value
            elif key not in {"details", "failed", "next", "arguments"}:
                yield from paths_in(value, key)
    elif isinstance(data, list):
        for each in data:
            yield from paths_in(each, name)


@law
def every_path_leads_back(seen: Seen) -> Iterator[str]:
    """A path in an answer can be passed to the reading tool of the same toolset, and is the same file."""
    gone = seen.name in {"delete", "move", "undo", "redo", "rollback", "apply_patch", "decide"}
    gone = gone or "preview" in seen.arguments or seen.arguments.get("command") in {"delete", "rename"}
    if gone or not seen.answer.success or seen.cell["rules"] == "denied":
        return
    if seen.cell["view"] == "workdir" and (seen.name == "changes" or callable(seen.site.method.tool)):
        return  # the history keeps its paths relative to the root
    for path in sorted(set(paths_in(seen.answer.data)))[:5]:
        answer = seen.site.look(path)
        if answer.crash or answer.code in {"not_found", "outside_workspace", "invalid_path"}:
            yield f"shows the path {path}, which is {answer.code}"
    matches = seen.answer.data.get("matches", []) if isinstance(seen.answer.data, dict) else []
    for match in matches[:3] if seen.site.dialect == "agentfs" else []:
        answer = seen.site.call("read", {"path": match["path"], "offset": match["line"], "limit": 1})
        if match["path"].endswith(".ipynb"):
            continue
        if match["text"] not in answer.text:
            yield f"shows {match['path']}:{match['line']}, where {answer.text[:80]!r} is read"


@law
def a_kept_name_is_no_file(seen: Seen) -> Iterator[str]:
    """Nothing is written under a kept name, beside the text of that name."""
    made = [name for name in tree_of(seen.site.place) if name.rpartition("/")[2].startswith("@")]
    if made:
        yield f"made the file {made[0]}"


@law
def every_way_answers_alike(seen: Seen) -> Iterator[str]:
    """Watched, over `connect`, with a state and in a transaction as cold without one."""
    plain = {"way": "cold", "state": "none"}
    if seen.site.method.takes.keys() != {"none"} and not callable(seen.site.method.tool):
        plain["view"] = seen.cell["view"].replace("transaction", "plain")  # which refuses recordings
    if plain.items() - seen.cell.items():
        yield from _differences(seen.first, seen.other(**plain), "cold")


@law
def mounts_answer_as_one_tree(seen: Seen) -> Iterator[str]:
    """Except for the marks of mounts in listings."""
    if seen.cell["mounts"] == "some":
        yield from _differences(unmarked(seen.first), unmarked(seen.other(mounts="none")), "in one tree")


def unmarked(answer: Answer) -> Answer:
    data, after = (json.loads(MARK.sub("", json.dumps(each))) for each in (answer.data, answer.next))
    return replace(answer, text=MARK.sub("", answer.text), data=data, next=after)


def _differences(found: Answer, expected: Answer, way: str) -> Iterator[str]:
    for name in ("code", "crash", "text", "data", "next", "notes"):
        one, two = getattr(found, name), getattr(expected, name)
        if one != two:
            yield f"its {name} is {_differing(one, two, way)}"
            return


def _differing(one: Any, two: Any, way: str) -> str:
    one, two = (each if isinstance(each, str) else json.dumps(each) for each in (one, two))
    at = next(
        (at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two))
    )
    start = max(at - 40, 0)
    return f"{one[start : at + 80]!r}, {way} {two[start : at + 80]!r}"


@law
def the_order_of_paths_changes_nothing(seen: Seen) -> Iterator[str]:
    if seen.cell["named"] not in {"several", "listed"} or seen.site.method.kind != "search":
        return
    if seen.cell["limits"] == "small" or seen.answer.crash or seen.answer.next:
        return
    _, _, turned = seen.site.act(reverse=True)
    one, two = found_in(seen.answer.text), found_in(turned.text)
    if turned.success != seen.answer.success or (turned.success and one != two):
        yield f"in the other order: {turned.code}, {sorted(one ^ two)[:3]}"


@law
def what_is_denied_stays_closed(seen: Seen) -> Iterator[str]:
    if seen.cell["rules"] == "denied" and seen.cell["target"] in {"text", "notebook", "large", "dotfile"}:
        shown = tokens(seen.answer.text + json.dumps(seen.answer.data)) - tokens(
            json.dumps(seen.arguments, default=repr)
        )
        if own := {each for each in shown if f" {seen.site.slug} " in each}:
            yield f"shows {sorted(own)[:2]}"


@law
def nothing_unseen_is_replaced(seen: Seen) -> Iterator[str]:
    unseen = tokens(TREE.get(seen.site.target, "")) - tokens(seen.site.shown)
    if unseen and seen.site.method.unread and seen.answer.success and seen.cell["target"] not in KEPT:
        yield f"replaced {len(unseen)} lines that were not shown"


@law
def every_suggestion_works(seen: Seen) -> Iterator[str]:
    """On the unchanged tree, by names of the same toolset."""
    if seen.cell["rules"] == "denied" or (seen.answer.success and seen.site.method.kind == "change"):
        return
    for name, arguments in seen.advised:
        if arguments is None:
            yield f"suggests a call of {name} that cannot be read: {seen.answer.text[-200:]}"
            continue
        before = tree_of(seen.site.place), len(seen.site.view.changes().files)
        answer = seen.site.call(name, arguments)
        if not answer.success:
            yield f"suggests {name}({json.dumps(arguments)[:120]}): {(answer.crash or answer.text)[:160]}"
        elif before != (tree_of(seen.site.place), len(seen.site.view.changes().files)):
            if name in {"undo", "redo", "rollback"}:
                return
            seen.site.view.undo()


@law
def undo_restores_all(seen: Seen) -> Iterator[str]:
    """And no content is gone, even if undo leaves something and says so."""
    method = seen.site.method
    if not (method.kind == "change" and method.undo and seen.answer.success):
        return
    if seen.cell["rules"] == "denied":
        return
    data = seen.answer.data if isinstance(seen.answer.data, dict) else {}
    if data.get("changes", data).get("files") == []:
        return  # a recording or a command that changed nothing
    for steps in range(method.undo, 0, -1):
        undone = answer_of(lambda steps=steps: seen.site.view.undo(steps))
        if undone.code != "invalid_argument":
            break
    before, after = seen.before, tree_of(seen.site.place)
    is_done = undone.success and seen.cell["view"] != "transaction"
    if is_done and (gone := {*before.values()} - {*after.values()}):
        yield f"after undo, the content of {[name for name in before if before[name] in gone]} is gone"
    if data.get("lost"):
        return
    if not undone.success:
        yield f"undo fails: {undone.crash or undone.text[:200]}"
    elif is_done and after != before:
        names = sorted(name for name in {*after, *before} if after.get(name) != before.get(name))
        yield f"undo leaves {names} changed"
    elif files := seen.site.view.changes().files:
        yield f"after undo, changes() has {files[0].path}"


# ---- the tests ---------------------------------------------------------------------------------------------


def faults_of(cell: Cell) -> list[str]:
    """Return the faults of a cell, each with the command that shows it again."""
    try:
        with opened(cell) as site:
            site.method.before(site)
            before, nodes = tree_of(site.place), nodes_of(site.place)
            name, arguments, answer = site.act()
            seen = Seen(site, name, arguments, answer, before, nodes)
            wrong = [f"{each.__name__}: {fault}" for each in LAWS for fault in each(seen)]
    except AgentFSError as error:
        if cell["rules"] == "denied" and error.code in {"invalid_argument", "invalid_pattern"}:
            return []  # it refuses the rule in this spelling
        raise
    said = f".venv/bin/python -m tests.test_matrix {' '.join(map(json.dumps, cell.values()))}"
    return [f"{said}\n      {name}({json.dumps(arguments, default=repr)[:150]}) {each}" for each in wrong]


def drawn() -> list[Cell]:
    """Return cells in which every two values meet, for each kind of method, of ours and of the dialects."""
    kinds = dict.fromkeys((row.kind, "/" in name) for name, row in METHODS.items())
    groups = [[name for name, row in METHODS.items() if (row.kind, "/" in name) == kind] for kind in kinds]
    return [cell for group in groups for cell in all_pairs(DIMENSIONS | {"method": group}, takes)]


DRAWN = drawn()


def check(cells: Iterable[Cell]) -> None:
    wrong = [fault for cell in cells for fault in faults_of(cell)]
    assert not wrong, f"{len(wrong)} faults:\n" + "\n".join(wrong)


def few_cells() -> Iterator[Any]:
    """Yield the drawn cells of each method; one at a time of the costliest."""
    for method in METHODS:
        cells = [cell for cell in DRAWN if cell["method"] == method]
        size = 1 if method.startswith(("changes", "grep", "run")) else 2
        for begin in range(0, len(cells), size):
            yield pytest.param(cells[begin : begin + size], id=f"{method} {begin}" if begin else method)


@pytest.mark.parametrize("cells", list(few_cells()))
def test_laws_hold_for_drawn_cells(cells):
    check(cells)


@pytest.mark.long
@pytest.mark.timeout(24 * 3600)
@pytest.mark.parametrize("method", METHODS)
def test_laws_hold_for_all_cells(method):
    check(every_cell(DIMENSIONS | {"method": (method,)}, takes))


def faults_of_a_way_alone(cell: Cell) -> list[str]:
    """Return the faults of a cell over `connect` or in a branch, unless it has some without."""
    found = faults_of(cell)
    return [] if found and faults_of({**cell, "way": "cold"}) else found


def columns() -> Iterator[Any]:
    """Yield a way, a method and more dimensions; a branch shows its changes only after a merge."""
    for method, row in METHODS.items():
        yield pytest.param("connect", method, {}, id=f"connect-{method}")
        is_plain = row.run is None and row.before is Method._field_defaults["before"]
        if is_plain and row.kind in {"read", "search"}:
            yield pytest.param("branch", method, {"mounts": ("none",)}, id=f"branch-{method}")


@pytest.mark.long
@pytest.mark.parametrize(("way", "method", "more"), list(columns()))
def test_laws_hold_over_connect_and_in_a_branch_for_every_two_values(way, method, more):
    """All cells of the column of `connect` are checked by `scripts/remote_column.py`."""
    column = all_pairs(DIMENSIONS | {"method": (method,), "way": (way,)} | more, takes)
    wrong = [fault for cell in column for fault in faults_of_a_way_alone(cell)]
    assert not wrong, f"{len(wrong)} faults:\n" + "\n".join(wrong)


def test_every_method_and_every_tool_is_a_row():
    rows = {(name.partition("/")[0] if "/" in name else "", row.tool) for name, row in METHODS.items()}
    with Workspace(template()) as ws:
        tools = {(name, tool) for name in dialects.BUILT_IN for tool in ws.tools(dialect=name).names}
    public = {
        ("", name)
        for name, each in vars(Workspace).items()
        if inspect.isfunction(inspect.unwrap(each)) and not name.startswith("_") and name not in NO_ROWS
    }
    # Their rows are functions.
    missing = {*tools, *public} - rows - {("", "recording"), ("", "apply_review")}
    assert not missing


if __name__ == "__main__":
    asked = dict(zip(DIMENSIONS, sys.argv[1:], strict=True))
    with opened(asked) as asked_site:
        asked_site.method.before(asked_site)
        asked_name, asked_arguments, asked_answer = asked_site.act()
    told = "\n".join(faults_of(asked)) or "no fault"
    sys.stdout.write(f"{asked_name}({json.dumps(asked_arguments, default=repr)})\n{asked_answer}\n\n{told}\n")
