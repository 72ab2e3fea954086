"""Every way to change a path below `src`, with what happens to it."""

# ruff: noqa: E501 - a row of a table is one line

from collections.abc import Callable
from dataclasses import dataclass

from agentfs import ToolResult, Toolset, Workspace, tool
from agentfs.errors import NoMatchError, ReadOnlyError, RefusedError
from tests.kit import described

Act = Callable[[Workspace], object]
PATCH = "*** Begin Patch\n{}\n*** End Patch"


@dataclass(frozen=True)
class Way:
    """One way to change something; `actions` are what happens to paths below `src`."""

    name: str
    actions: frozenset[str]
    act: Act
    setup: tuple[Act, ...] = ()  # by the host, in the same workspace
    run: str | None = None  # how a command is run
    others: bool = False  # it changes something that `src/**` does not cover too

    def prepare(self, ws: Workspace) -> None:
        """Make the tree."""
        ws.write("src/a.txt", "one\n")
        ws.write("other/b.txt", "one\n")

    def is_hit_by(self, group: set[str], rule: str) -> bool | None:
        """Return True if a deny rule refuses it; None if that depends on the other paths."""
        # What a bare rule covers is not all kept by a recording, and nothing hides a file from its command.
        if self.run == "recorded" and ("(" not in rule or rule.startswith("*")):
            return True
        if "other" in rule and self.others:
            return None
        if "other" in rule:
            return False
        return bool(self.actions & group)


def call(name: str, dialect: str = "agentfs", **arguments: object) -> Act:
    def act(ws: Workspace) -> None:
        tools = ws.tools("all") if dialect == "agentfs" else ws.tools(dialect=dialect)
        made(tools.call(name, arguments))

    return act


def made(result: ToolResult) -> None:
    """Raise the error of a failed call."""
    if result.error is not None:
        raise ERRORS.get(result.error["code"], OtherError)(result.content)


class OtherError(AssertionError):
    """A call failed for another reason than a refusal."""


# A search that finds nothing, because reading is denied too, changes nothing.
ERRORS = {"refused": RefusedError, "read_only": ReadOnlyError, "no_match": NoMatchError}
EDIT, CREATE, DELETE = frozenset({"edit"}), frozenset({"create"}), frozenset({"delete"})


def own_function(ws: Workspace) -> None:
    @tool(effect="none")
    @described
    def save(text: str) -> str:
        return ws.write("src/a.txt", text, overwrite=True).text

    made(Toolset([save], workspace=ws).call("save", {"text": "two\n"}))


def edited(ws: Workspace) -> object:
    return ws.edit("src/a.txt", "one", "two")


def taken_back(ws: Workspace) -> object:
    return ws.apply_review(reject=[hunk.id for hunk in ws.host.review().hunks])


EMPTY = {"old_string": "", "new_string": "x"}
WAYS = [
    Way("edit", EDIT, call("edit", path="src/a.txt", old_string="one", new_string="two")),
    Way("edit that creates", CREATE, call("edit", path="src/n.txt", old_string="", new_string="x\n")),
    Way("multi_edit", EDIT, call("multi_edit", path="src/a.txt", edits=[{"old_string": "one", "new_string": "x"}])),
    Way("write that creates", CREATE, call("write", path="src/n.txt", content="x\n")),
    Way("write that replaces", EDIT, lambda ws: ws.write("src/a.txt", "two\n", overwrite=True)),
    Way("append", EDIT, call("append", path="src/a.txt", content="two\n")),
    Way("append that creates", CREATE, call("append", path="src/n.txt", content="two\n")),
    Way("replace", EDIT, call("replace", old_string="one", new_string="two", path="src")),
    Way("delete", DELETE, call("delete", path="src/a.txt")),
    Way("delete of the directory", DELETE, call("delete", path="src", recursive=True), others=True),
    Way("move out", DELETE, call("move", path="src/a.txt", to="moved.txt"), others=True),
    Way("move in", CREATE, call("move", path="other/b.txt", to="src/b.txt"), others=True),
    Way("move inside", CREATE | DELETE, call("move", path="src/a.txt", to="src/b.txt")),
    Way("write_bytes", EDIT, lambda ws: ws.write_bytes("src/a.txt", b"two\n")),
    Way("undo an edit", EDIT, call("undo"), (edited,)),
    Way("undo a creation", DELETE, call("undo"), (lambda ws: ws.write("src/n.txt", "x\n"),)),
    Way("undo a deletion", CREATE, call("undo"), (lambda ws: ws.delete("src/a.txt"),)),
    Way("rollback", EDIT, lambda ws: ws.rollback("here"), (lambda ws: ws.checkpoint("here"), edited)),
    Way("wave's Edit", EDIT, call("Edit", "wave", file_path="src/a.txt", old_string="one", new_string="two")),
    Way("codescout's create_file", EDIT, call("create_file", "codescout", path="src/a.txt", content="two\n")),
    Way("text-editor's create", CREATE, call("str_replace_based_edit_tool", "text-editor", command="create", path="src/n.txt", file_text="x\n")),
    Way("text-editor's insert", EDIT, call("str_replace_based_edit_tool", "text-editor", command="insert", path="src/a.txt", insert_line=0, insert_text="x\n")),
    Way("multi_edit that creates", CREATE, call("multi_edit", path="src/n.txt", edits=[EMPTY])),
    Way("wave's Edit that creates", CREATE, call("Edit", "wave", file_path="src/n.txt", **EMPTY)),
    Way("wave's MultiEdit that creates", CREATE, call("MultiEdit", "wave", file_path="src/n.txt", edits=[EMPTY])),
    Way("codescout's create_file that creates", CREATE, call("create_file", "codescout", path="src/n.txt", content="x\n")),
    Way("own function", EDIT, own_function),
    Way("run that edits", EDIT, lambda ws: ws.run("echo two >> src/a.txt"), run="staged"),
    Way("run that creates", CREATE, lambda ws: ws.run("echo two > src/n.txt"), run="staged"),
    Way("run that deletes", DELETE, lambda ws: ws.run("rm src/a.txt"), run="staged"),
    Way("run that moves", CREATE | DELETE, lambda ws: ws.run("mv src/a.txt src/b.txt"), run="staged"),
    *(Way(f"recorded {name}", actions, act, run="recorded") for name, actions, act in [
        ("run that edits", EDIT, lambda ws: ws.run("echo two >> src/a.txt")),
        ("run that creates", CREATE, lambda ws: ws.run("echo two > src/n.txt")),
        ("run that deletes", DELETE, lambda ws: ws.run("rm src/a.txt")),
        ("run that moves", CREATE | DELETE, lambda ws: ws.run("mv src/a.txt src/b.txt")),
    ]),
    Way("patch that edits", EDIT, call("apply_patch", "apply-patch", input=PATCH.format("*** Update File: src/a.txt\n@@\n-one\n+two"))),
    Way("patch that deletes", DELETE, call("apply_patch", "apply-patch", input=PATCH.format("*** Delete File: src/a.txt"))),
    Way("patch that creates", CREATE, call("apply_patch", "apply-patch", input=PATCH.format("*** Add File: src/n.txt\n+x"))),
    Way("review that takes back", EDIT, taken_back, (edited,)),
]  # fmt: skip
