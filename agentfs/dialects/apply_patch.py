"""`apply-patch`: OpenAI's V4A patches, one tool with one parameter, whole or not at all.

The contract is in `docs/dialects/apply-patch.md`. No `from __future__ import annotations`: the hints become
schemas.
"""

from collections.abc import Sequence
from typing import Any

from agentfs.dialects.dialect import Dialect
from agentfs.dialects.v4a import Operation, place_hunks, read_patch
from agentfs.errors import AlreadyExistsError
from agentfs.results import EditResult, ToolResult
from agentfs.text import one_line
from agentfs.tools.offer import ToolOffer
from agentfs.workspace import Workspace

NAME = "apply_patch"

# The freeform shape of the tool: what a model may write, as the API holds it to.
GRAMMAR = r"""
start: begin operation+ end
begin: "*** Begin Patch" LF
end: "*** End Patch" LF?

operation: add | delete | update
add: "*** Add File: " path LF added+
delete: "*** Delete File: " path LF
update: "*** Update File: " path LF move? hunks?
move: "*** Move to: " path LF

hunks: (anchor | changed)+ at_end?
anchor: /@@( [^\n]+)?/ LF
changed: /[-+ ][^\n]*/ LF
added: /\+[^\n]*/ LF
at_end: "*** End of File" LF
path: /[^\n]+/

LF: "\n"
""".strip()

_DESCRIPTION = """\
Change files by a patch: it is made as a whole, or not at all. A patch looks like this:
*** Begin Patch
*** Add File: hello.txt
+Hello world
*** Update File: src/app.py
*** Move to: src/main.py
@@ def greet():
-print("Hi")
+print("Hello, world!")
*** Delete File: obsolete.txt
*** End Patch
Each file has a header: Add (each line begins with +), Delete (nothing follows) or Update (optionally \
*** Move to). A line of an update begins with a space (context), - (removed) or + (added). Show 3 lines of \
context above and below each change; where they do not name one place, put the line of the class or function \
above it after @@, if need be in several @@ lines. *** End of File after a change says that it is at the end \
of the file. Paths are relative to the workspace root."""


def custom_tool() -> dict[str, Any]:
    """Return the tool in its freeform shape, for OpenAI's Responses API: bare text, held to a grammar."""
    definition = {"type": "grammar", "syntax": "lark", "definition": GRAMMAR}
    return {"type": "custom", "name": NAME, "description": _DESCRIPTION, "format": definition}


def offers(workspace: Workspace) -> Sequence[ToolOffer]:
    """Make the one tool.

    Args:
        workspace: The workspace.
    """

    def apply_patch(input: str) -> ToolResult:  # noqa: A002 - the contract's name
        """Change files by a patch.

        Args:
            input: The whole patch, from `*** Begin Patch` to `*** End Patch`.
        """
        operations = read_patch(input)
        with workspace.transaction() as changes:
            done = [_apply(changes, operation) for operation in operations]
        return _told(operations, done)

    return [ToolOffer(apply_patch, description=_DESCRIPTION, effect="edit")]


def _apply(workspace: Any, operation: Operation) -> list[str]:
    """Make one operation and return what else is to be said of it."""
    path = operation.path
    if operation.kind == "add":
        return list(workspace.write(path, operation.content).notes)
    if operation.kind == "delete":
        workspace.delete(path)
        return []
    notes: list[str] = []
    if operation.hunks:

        def spans(text: str) -> list[tuple[int, int, str]]:
            placed = place_hunks(text, operation.hunks, path)
            notes[:] = placed.tolerated
            return placed.spans

        edited: EditResult = workspace.splice(path, spans)
        notes += edited.notes
    if operation.to is not None:
        try:
            workspace.move(path, operation.to)
        except AlreadyExistsError as error:
            if not error.details.get("same"):
                workspace.delete(operation.to)
                workspace.move(path, operation.to)
    return notes


def _told(operations: Sequence[Operation], done: Sequence[Sequence[str]]) -> ToolResult:
    marks = {"add": "A", "delete": "D", "update": "M"}
    lines = [f"{marks[each.kind]} {one_line(each.to or each.path)}" for each in operations]
    names = [one_line(each.path) for each in operations]
    notes = [f"[{name}: {note}]" for name, said in zip(names, done, strict=True) for note in said]
    files = [{"kind": each.kind, "path": each.path, "to": each.to} for each in operations]
    count = len(files)
    return ToolResult(
        True,
        "\n".join(["Success. Updated the following files:", *lines, *notes]),
        f"Patched {count} file{'' if count == 1 else 's'}",
        file_path=files[0]["path"] if count == 1 else None,
        data={"files": files, "notes": notes},
    )


DIALECT = Dialect("apply-patch", offers, policy={"overwrite": "always"})
