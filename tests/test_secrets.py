"""A token in protected files that no method and no tool may show.

The calls are made from the schemas, so that new tools and dialects are included. The token is never an
argument, so a piece of it in an answer was read from the disk.
"""

import base64
import itertools
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from agentfs import AgentFSError, Edit, LineChange, Policy, Protect, Workspace, dialects
from tests import kit
from tests.conftest import part_or_all
from tests.tool_calls import calls_for, kinds_of

TOKEN = "Zq7Xw9Kv4Jb2Ty8M"
PIECE = 7
# The attacker knows the key in the file and the form of its value.
KNOWN, SHAPE = "PASSWORD", r"PASSWORD|[A-Z][a-z]\d[A-Z][a-z]\d"
TREE = {
    ".env": f"PASSWORD={TOKEN}\nOTHER=1\n", "deep/.env.local": f"PASSWORD={TOKEN}\n",
    ".ssh/id_rsa": f"PASSWORD {TOKEN}\n", "deep/server.pem": f"PASSWORD {TOKEN}\n",
    "deep/secrets.yaml": f"PASSWORD: {TOKEN}\n", "vault/private.txt": f"PASSWORD {TOKEN}\n",
    "deep/prod.env~": f"PASSWORD={TOKEN}\n", ".git/config": f"PASSWORD = {TOKEN}\n",
    ".bash_history": f"export PASSWORD={TOKEN}\n", "plain.txt": "PASSWORD=none\n", "deep/plain.py": "x = 1\n",
}  # fmt: skip
PROTECTED = [
    ".env", "deep/.env.local", ".ssh/id_rsa", "deep/server.pem", "deep/secrets.yaml", "vault/private.txt",
    "deep/prod.env~", ".git/config", ".bash_history", "notes.md", "keys/id_rsa", "up/.env",
    "./deep/../.env", "{root}/.env", ".ssh", "vault",
]  # fmt: skip
POLICY = Policy(protect=Protect(read=[*Protect.READ, "vault/"]), overwrite="always")


@pytest.fixture
def top(tmp_path):
    root = tmp_path / "root"
    kit.put(root, TREE)
    for name, target in {"notes.md": ".env", "keys": ".ssh", "up": root}.items():
        (root / name).symlink_to(target)
    return root


def pieces() -> set[str]:
    """Return pieces of the token, of its hexadecimal and of its base64 form."""
    encoded = {base64.b64encode(b"\0" * shift + TOKEN.encode()).decode()[4:-4] for shift in range(3)}
    whole = {TOKEN, TOKEN[::-1], TOKEN.encode().hex(), TOKEN.encode().hex(" "), *encoded}
    return {text[at : at + PIECE] for text in whole for at in range(len(text) - PIECE + 1)} - {" "}


PIECES = {piece.lower() for piece in pieces()}


def unseen(said: Any) -> None:
    text = said if isinstance(said, str) else json.dumps(said, default=str)
    # The digits of a time may be those of an encoded part of the token.
    lowered = re.sub(r"elapsed_ms\W{1,4}[\d.e+-]+", "", text.lower())
    assert not any(piece in lowered for piece in PIECES), text[:2000]


def faces(result: Any) -> list[Any]:
    if isinstance(result, AgentFSError):
        return [str(result), repr(result), result.details, result.hint, result.to_dict()]
    return [str(result), repr(result), result.to_dict(), getattr(result, "whole", None)]


def values_for(path: str, name: str, schema: Mapping[str, Any]) -> list[Any]:
    """Return values for a parameter: the protected path, known parts of its text, and every choice."""
    if "enum" in schema:
        return [*schema["enum"]]
    kinds, items = kinds_of(schema)
    found: list[Any] = []
    if items.get("type") == "object":
        filled = {key: values_for(path, key, each) for key, each in items.get("properties", {}).items()}
        found = [[{key: values[at] for key, values in filled.items()}] for at in (0, -1)]
    elif "array" in kinds:
        found = [[path]]
    if "string" in kinds:
        found += [path, SHAPE if "pattern" in name or "query" in name else KNOWN]
    return found + [1] * bool(kinds & {"integer", "number"}) + [True, False] * ("boolean" in kinds)


PATCHES = [
    "*** Update File: {path}\n@@\n-PASSWORD\n+x", "*** Update File: {path}\n@@\n PASSWORD\n+x",
    "*** Update File: {path}\n*** Move to: shown.txt\n@@\n-OTHER=1\n+OTHER=2", "*** Delete File: {path}",
    "*** Add File: {path}\n+x", "*** Update File: plain.txt\n*** Move to: {path}\n@@\n-PASSWORD=none\n+x",
]  # fmt: skip


def intact(top: Any) -> None:
    for name, text in TREE.items():
        if TOKEN in text:
            assert (top / name).read_text() == text, name


def sweep(top: Any, dialect: str, policy: Policy, every: int) -> None:
    """Call each tool with each protected path, and arguments made from its schema.

    With `every` up to the number of paths, each of the arguments is still called with some of the paths.
    """
    with Workspace(top, policy=policy) as ws:
        names = ws.tools("all").names if dialect == "agentfs" else None
        tools = ws.tools(names, dialect=dialect)
        made = 0
        for offered, (number, pattern) in itertools.product(tools.schemas("mcp"), enumerate(PROTECTED)):
            path = pattern.replace("{root}", str(top))
            arguments = list(calls_for(offered["inputSchema"], partial(values_for, path), 64, only=path))
            if dialect == "apply-patch":
                patches = [patch.format(path=path) for patch in PATCHES]
                arguments += [{"input": f"*** Begin Patch\n{patch}\n*** End Patch"} for patch in patches]
            made += len(arguments)
            for given in arguments[number % every :: every]:
                result = tools.call(offered["name"], given)
                unseen(json.dumps(result.to_dict(), default=str))
                unseen(repr(result))
            (top / "plain.txt").write_text(TREE["plain.txt"])
        assert made > 90
        unseen(faces(ws.changes()))
        unseen(ws.changes().patch.decode())
        for name in list(ws._outputs._outputs):
            unseen(ws.read(name).text)


@part_or_all(35, full=11)
@pytest.mark.parametrize("dialect", ["agentfs", *dialects.names()])
def test_no_tool_of_any_dialect_shows_protected_contents(top, dialect, every):
    sweep(top, dialect, POLICY, every)
    intact(top)


# `memory` reaches only `memories/`, where the tree has no token.
@pytest.mark.parametrize("dialect", ["agentfs", *(each for each in dialects.names() if each != "memory")])
def test_the_sweep_finds_the_token_in_each_dialect_without_protection(top, dialect):
    """The ordinary run's part of the calls is enough to find a leak."""
    with pytest.raises(AssertionError, match=TOKEN[:PIECE]):
        sweep(top, dialect, replace(POLICY, protect=Protect(read=[], write=[])), every=11)


def by_hand(ws: Workspace, path: str) -> None:
    """Call methods with parameters that are not in a schema, and in sequences."""

    def spying(text: str) -> tuple[list[tuple[int, int, str]], tuple[str, ...]]:
        unseen(text)
        return [], ()

    def within_a_transaction() -> Any:
        with ws.transaction() as tx:
            tx.edit(path, "OTHER", "x")
            return tx.read(path)

    calls = [
        *(lambda encoding=encoding: ws.read(path, encoding=encoding) for encoding in ("latin-1", "utf-16")),
        lambda: ws.read(path, raw=True), lambda: ws.read(path, line_ids=True, column=3),
        lambda: ws.write(path, "x", overwrite=True, preview=True),
        lambda: ws.edit(path, "OTHER", "x", preview=True), lambda: ws.edit(path, "OTHER=l", "x"),
        lambda: ws.multi_edit(path, [Edit("PASSWORD", "x"), Edit("none", "y")]),
        lambda: ws.edit_lines(path, [LineChange(line_id="000000", new_content="x")]),
        lambda: kit.splice(ws, path, [(0, 3, "x")]), lambda: kit.splice(ws, path, spying),
        lambda: ws.replace("OTHER", "x", preview=True), lambda: ws.replace("OTHER", "x", [".", path]),
        lambda: ws.replace(r"(PASS.*)", r"\1", path, regex=True), lambda: ws.move(path, "shown.txt"),
        lambda: ws.move("plain.txt", path), lambda: ws.append(path, "x"), lambda: ws.delete(path),
        lambda: ws.delete(path, recursive=True), lambda: ws.ls(path, depth=0, include_ignored=True),
        lambda: ws.ls([".", path], depth=0, include_ignored=True),
        lambda: ws.glob("**", path, include_ignored=True),
        lambda: kit.find(ws, path, follow_symlinks=True, include_ignored=True, size="+1"),
        *(
            lambda mode=mode: ws.grep(SHAPE, ".", output_mode=mode, include_ignored=True, context=5)
            for mode in ("content", "files_with_matches", "count", "summary", "total")
        ),
        lambda: ws.grep(SHAPE, path, include_ignored=True),
        lambda: kit.grep(ws, SHAPE, [".", path], include_ignored=True, follow_symlinks=True),
        lambda: kit.grep(ws, SHAPE, files=[path]),
        lambda: kit.grep(ws, r"PASS(.|\n)*", files=[path, "plain.txt"], multiline=True, encoding="latin-1"),
        lambda: ws.grep("nowhere-to-be-found"), within_a_transaction, ws.changes, ws.undo, ws.redo,
    ]  # fmt: skip
    for call in calls:
        try:
            result = call()
        except AgentFSError as error:
            result = error
        unseen(faces(result))


# Of the watched ones, the ordinary run has a file, a name, a link, a hard link and directories.
@pytest.mark.parametrize(("path", "watch"), [
    *((path, False) for path in PROTECTED),
    *(pytest.param(path, True, marks=[pytest.mark.long] * (number % 3 > 0))
      for number, path in enumerate(PROTECTED)),
])  # fmt: skip
def test_no_method_shows_protected_contents(top, path, watch):
    heard: list[str] = []

    def asked(request: object) -> bool:
        heard.append(repr(request))
        return True

    policy = replace(POLICY, on_ask=asked)
    with Workspace(top, policy=policy, on_event=lambda event: heard.append(repr(event)), watch=watch) as ws:
        assert ws.read("plain.txt").content == "PASSWORD=none\n"
        by_hand(ws, path.replace("{root}", str(top)))
        ws.tools().call("edit", {"path": path, "old_string": KNOWN, "new_string": "x"})
        assert len(heard) > 5
        unseen(heard)
        kept = kit.keep(ws, ws.grep(SHAPE, include_ignored=True))
        unseen(faces(ws.read(kept)))
        unseen(ws.tools().instructions())
    intact(top)


@pytest.mark.parametrize("alias", ["link", "directory"])
def test_a_file_that_becomes_a_link_to_a_secret_is_not_shown(top, alias):
    """A changed file is swapped for the secret; a diff to the current content would show it."""
    with Workspace(top, policy=replace(POLICY, overwrite="seen")) as ws:
        path = "sub/other"
        ws.write(path, "PASSWORD one\n")
        ws.edit(path, "one", "two")
        if alias == "directory":
            shutil.rmtree(top / "sub")
            (top / ".ssh" / "other").write_text(f"PASSWORD {TOKEN}\n")
            (top / "sub").symlink_to(".ssh")
        else:
            (top / path).unlink()
            (top / path).symlink_to(top / ".env")
        by_hand(ws, path)
        unseen([said_by(ws.write, path, "x"), said_by(ws.rollback, "start")])
        unseen([said_by(lambda: ws.changes().patch), said_by(ws.edit, path, "PASSWORD one", "x")])
    intact(top)


def said_by(call: Any, *given: str) -> str:
    try:
        return str(call(*given))
    except AgentFSError as error:
        return f"{error.code} {error} {error.details}"


@pytest.mark.parametrize("path", PROTECTED[:12])
def test_no_answer_depends_on_protected_contents(top, path):
    """A right guess gets the same answer as a wrong one, so that guessing reveals nothing."""
    path = path.replace("{root}", str(top))
    right, wrong = TOKEN[:5], "Aa0Bb"
    whole = {right: TREE[".env"], wrong: TREE[".env"].replace(TOKEN, "other")}
    with Workspace(top, policy=POLICY) as ws:
        asks = (
            *(lambda guess, more=more: ws.grep(guess, **more)
              for more in ({}, {"include_ignored": True}, {"path": path}, {"output_mode": "total"})),
            lambda guess: ws.edit(path, guess, "x"), lambda guess: ws.edit(path, guess, guess),
            lambda guess: ws.multi_edit(path, [Edit(guess, "x")]), lambda guess: ws.write(path, whole[guess]),
        )  # fmt: skip
        for ask in asks:
            answers = [said_by(ask, guess).replace(guess, "…") for guess in (right, wrong)]
            answers = [re.sub(r"\d+ ms|\d+\.\d+ s", "", answer) for answer in answers]
            assert answers[0] == answers[1]


def test_protected_files_are_listed_marked_and_counted(top):
    with Workspace(top, policy=POLICY) as ws:
        listed = {entry.path: entry.protected for entry in ws.ls(depth=0, include_ignored=True).entries}
        marked = {path for path, protected in listed.items() if protected}
        assert marked >= {".env", "deep/.env.local", ".ssh/id_rsa", "vault/private.txt", "notes.md"}
        assert not marked & {"plain.txt", "deep/plain.py", "deep"}
        found = ws.grep(SHAPE, include_ignored=True)
        assert found.skipped.protected == 8
        assert "8 protected" in found.text
