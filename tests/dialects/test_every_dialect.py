"""What holds in every dialect: the same scenario, the same hostile paths, the same permissions.

A dialect joins by an entry in `SPOKEN`: how it says what an agent does. What its document has no tool for is
left out.
"""

import os
import subprocess
import sys

import pytest

from agentfs import Policy, ToolResult, Workspace

EDITOR = "str_replace_based_edit_tool"
SPOKEN = {
    "agentfs": {
        "look": lambda path: ("ls", {"path": path}),
        "find": lambda pattern: ("glob", {"pattern": pattern}),
        "search": lambda pattern, path: ("grep", {"pattern": pattern, "path": path}),
        "read": lambda path: ("read", {"path": path}),
        "write": lambda path, text: ("write", {"path": path, "content": text}),
        "edit": lambda path, old, new: ("edit", {"path": path, "old_string": old, "new_string": new}),
    },
    "wave": {
        "look": lambda path: ("LS", {"path": path}),
        "find": lambda pattern: ("Glob", {"pattern": pattern}),
        "search": lambda pattern, path: ("Grep", {"pattern": pattern, "path": path}),
        "read": lambda path: ("Read", {"file_path": path}),
        "write": lambda path, text: ("Write", {"file_path": path, "content": text}),
        "edit": lambda path, old, new: ("Edit", {"file_path": path, "old_string": old, "new_string": new}),
    },
    "text-editor": {
        "look": lambda path: (EDITOR, {"command": "view", "path": path}),
        "read": lambda path: (EDITOR, {"command": "view", "path": path}),
        "write": lambda path, text: (EDITOR, {"command": "create", "path": path, "file_text": text}),
        "edit": lambda path, old, new: (
            EDITOR,
            {"command": "str_replace", "path": path, "old_str": old, "new_str": new},
        ),
    },
    "apply-patch": {
        "write": lambda path, text: (
            "apply_patch",
            {"input": f"*** Begin Patch\n*** Add File: {path}\n+{text.rstrip()}\n*** End Patch"},
        ),
        "edit": lambda path, old, new: (
            "apply_patch",
            {"input": f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch"},
        ),
    },
}
CHANGES = {"write": ("text\n",), "edit": ("secret", "changed")}


class Speaker:
    """An agent that speaks one dialect."""

    def __init__(self, workspace: Workspace, dialect: str) -> None:
        self.tools = workspace.tools(dialect=dialect)
        self.words = SPOKEN[dialect]

    def __contains__(self, act: str) -> bool:
        return act in self.words

    def __call__(self, act: str, *arguments: str) -> ToolResult:
        name, sent = self.words[act](*arguments)
        assert self.tools.accepts(name, sent), "the test sends what the schema has"
        return self.tools.call(name, sent)


@pytest.fixture(params=list(SPOKEN))
def dialect(request):
    return request.param


def test_every_dialect_of_the_package_is_held_to_this():
    from agentfs.dialects.registry import _MODULES

    assert set(SPOKEN) == {"agentfs", *_MODULES}


def test_one_scenario_leaves_the_same_bytes(django, tmp_path, dialect):
    """Explore, find, search, read, edit, recover from a miss, write: on a part of a real tree."""
    copy = tmp_path / "tree"
    subprocess.run(["cp", "-r", str(django / "django" / "utils"), str(copy)], check=True)
    with Workspace(copy) as ws:
        say = Speaker(ws, dialect)
        if "look" in say:
            assert "text.py" in say("look", ".").content
        if "find" in say:
            assert "translation/trans_real.py" in say("find", "**/trans_*.py").content
        if "search" in say:
            assert "text.py" in say("search", r"class Truncator", ".").content
        if "read" in say:
            assert "class Truncator" in say("read", "text.py").content
        missed = say(
            "edit", "text.py", "class Truncater(SimpleLazyObject):", "class Cutter(SimpleLazyObject):"
        )
        assert missed.error["code"] == "no_match"
        assert "class Truncator(SimpleLazyObject)" in missed.content, "the miss shows what is there"
        edited = say(
            "edit", "text.py", "class Truncator(SimpleLazyObject):", "class Cutter(SimpleLazyObject):"
        )
        assert edited.success
        assert say("write", "notes/new.txt", "one\n").success
        if "read" in say:
            refused = say("write", "html.py", "gone\n")
            assert refused.error["code"] == "unread"
    before = (django / "django" / "utils" / "text.py").read_bytes()
    assert (copy / "text.py").read_bytes() == before.replace(b"class Truncator(S", b"class Cutter(S")
    assert (copy / "notes" / "new.txt").read_bytes() == b"one\n"
    assert (copy / "html.py").read_bytes() == (django / "django" / "utils" / "html.py").read_bytes()


HOSTILE = {
    "../outside/secret.txt": "outside_workspace",
    "{outside}/secret.txt": "outside_workspace",
    "dir/../../outside/secret.txt": "outside_workspace",
    "link-out/secret.txt": "outside_workspace",
    "link-to-secret": "outside_workspace",
    "loop": "link_loop",
    "fifo": "not_regular",
    "a\0b": "invalid_path",
    "x" * 300: "name_too_long",
    "file.txt/below": "not_a_directory",
}


@pytest.mark.skipif(sys.platform == "win32", reason="links and FIFOs of POSIX")
@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: repr(path[:30]))
@pytest.mark.parametrize("act", ["read", "write", "edit"])
def test_hostile_paths_are_refused(tmp_path, dialect, act, path):
    outside, root = tmp_path / "outside", tmp_path / "root"
    (root / "dir").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret.txt").write_text("secret\n")
    (root / "file.txt").write_text("x\n")
    (root / "link-out").symlink_to(outside)
    (root / "link-to-secret").symlink_to(outside / "secret.txt")
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "fifo")
    with Workspace(root) as ws:
        say = Speaker(ws, dialect)
        if act not in say:
            return
        result = say(act, path.format(outside=outside), *CHANGES.get(act, ()))
    assert not result.success
    assert result.error["code"] == HOSTILE[path]
    assert "secret\n" not in result.content
    assert (outside / "secret.txt").read_text() == "secret\n"
    assert sorted(os.listdir(outside)) == ["secret.txt"]


@pytest.mark.parametrize(("policy", "reads", "changes"), [
    (Policy(), True, True),
    (Policy(read_only=True), True, False),
    (Policy(mode="plan"), True, False),
    (Policy(permission=lambda _: False), False, False),
    (Policy(permission=lambda request: not request.changes), True, False),
    (Policy(mode="accept_edits", permission=lambda _: False), False, True),
    (Policy(mode="bypass", permission=lambda _: False), True, True),
    (Policy(deny=("*(src/**)",)), False, False),
    (Policy(deny=("change",)), True, False),
    (Policy(mode="bypass", deny=("*(src/**)",)), False, False),
    (Policy(overwrite="never"), True, True),
])  # fmt: skip
def test_permissions_hold(tmp_path, dialect, policy, reads, changes):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.txt").write_text("secret\n")
    with Workspace(tmp_path, policy=policy) as ws:
        say = Speaker(ws, dialect)
        if "read" in say:
            assert say("read", "src/a.txt").success is reads
        for act, path in (("edit", "src/a.txt"), ("write", "src/new.txt")):
            assert say(act, path, *CHANGES[act]).success is changes
    assert (tmp_path / "src/a.txt").read_text() == ("changed\n" if changes else "secret\n")
    assert (tmp_path / "src/new.txt").exists() is changes


def test_who_is_asked_is_told_the_tool_and_the_diff(tmp_path, dialect):
    asked = []
    (tmp_path / "a.txt").write_text("secret\n")
    with Workspace(tmp_path, policy=Policy(permission=lambda request: asked.append(request) or True)) as ws:
        say = Speaker(ws, dialect)
        assert say("edit", "a.txt", "secret", "changed").success
    (request,) = asked
    assert request.paths == ("a.txt",)
    assert request.tool == say.words["edit"]("", "", "")[0]
    assert "-secret\n+changed\n" in request.diff


def test_what_one_dialect_has_read_another_may_write(tmp_path):
    both = [name for name, words in SPOKEN.items() if "read" in words]
    for reader in both:
        for writer in both:
            path = tmp_path / f"{reader}-{writer}.txt"
            path.write_text("secret\n")
            with Workspace(tmp_path) as ws:
                assert Speaker(ws, writer)("write", path.name, "text\n").error["code"] == "unread"
                assert Speaker(ws, reader)("read", path.name).success
                assert Speaker(ws, writer)("write", path.name, "text\n").success
