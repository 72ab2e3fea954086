"""`apply-patch`: OpenAI's V4A patches, one tool with one parameter, whole or not at all.

The contract is in `docs/dialects/apply-patch.md`. No `from __future__ import annotations`: the hints become
schemas.
"""

from collections.abc import Sequence
from typing import Any

from agentfs.dialects.apply_patch.patch import Operation, Placed, Span, place_hunks, read_patch
from agentfs.dialects.dialect import Dialect
from agentfs.errors import AlreadyExistsError
from agentfs.results import EditResult, ToolResult
from agentfs.text import one_line
from agentfs.tools.spec import ToolSpec
from agentfs.workspace import Workspace

NAME = "apply_patch"

# The grammar of the tool's freeform form, which the API holds the model to.
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
    """Return the tool in its freeform form for OpenAI's Responses API: plain text with a grammar."""
    definition = {"type": "grammar", "syntax": "lark", "definition": GRAMMAR}
    return {"type": "custom", "name": NAME, "description": _DESCRIPTION, "format": definition}


def specs(workspace: Workspace) -> Sequence[ToolSpec]:
    """Return the one tool."""

    def apply_patch(input: str) -> ToolResult:  # noqa: A002 - the contract's name
        """Change files by a patch.

        Args:
            input: The whole patch, from `*** Begin Patch` to `*** End Patch`.
        """
        operations = read_patch(input)
        with workspace.transaction() as changes:
            notes = [_apply(changes, operation) for operation in operations]
        return _result(operations, notes)

    return [ToolSpec(apply_patch, description=_DESCRIPTION, effect="edit")]


def _apply(workspace: Workspace, operation: Operation) -> list[str]:
    """Apply one operation and return its notes."""
    path = operation.path
    if operation.kind == "add":
        return list(workspace.write(path, operation.content).notes)
    if operation.kind == "delete":
        workspace.delete(path)
        return []
    notes: list[str] = []
    if operation.hunks:
        placed: list[Placed] = []

        def spans(text: str) -> list[Span]:
            placed.append(place_hunks(text, operation.hunks, path))
            return placed[-1].spans

        edited: EditResult = workspace.splice(path, spans)
        notes = [*placed[-1].notes, *edited.notes]
    if operation.to is not None:
        try:
            workspace.move(path, operation.to)
        except AlreadyExistsError as error:
            if not error.details.get("same"):
                workspace.delete(operation.to)
                workspace.move(path, operation.to)
    return notes


def _result(operations: Sequence[Operation], notes_of_each: Sequence[Sequence[str]]) -> ToolResult:
    letters = {"add": "A", "delete": "D", "update": "M"}
    lines = [f"{letters[each.kind]} {one_line(each.to or each.path)}" for each in operations]
    notes = [
        f"[{one_line(operation.path)}: {note}]"
        for operation, its_notes in zip(operations, notes_of_each, strict=True)
        for note in its_notes
    ]
    files = [{"kind": each.kind, "path": each.path, "to": each.to} for each in operations]
    count = len(files)
    return ToolResult(
        True,
        "\n".join(["Success. Updated the following files:", *lines, *notes]),
        f"Patched {count} file{'' if count == 1 else 's'}",
        file_path=files[0]["path"] if count == 1 else None,
        data={"files": files, "notes": notes},
    )


DIALECT = Dialect("apply-patch", specs, policy={"overwrite": "always"})
