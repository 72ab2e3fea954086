"""The dialect `text-editor`: Anthropic's `str_replace_based_edit_tool`, one tool with four commands.

Messages begin with the words that the models know; the workspace's own text follows.
`docs/reference/dialects/text-editor.md` compares it with the contract.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from agentfs import AgentFSError, Limits, ToolResult, Workspace
from agentfs.dialects import toolkit as kit
from agentfs.errors import (
    AlreadyExistsError,
    AmbiguousError,
    NoMatchError,
    NotFoundError,
    StaleError,
    UnreadError,
)
from agentfs.results import EditResult, ListResult, ReadResult, Result, WriteResult

NAME = "str_replace_based_edit_tool"

# Methods, and the commands that call them.
_COMMANDS = {"read": "view", "ls": "view", "write": "create", "edit": "str_replace"}
_VIEW_DEPTH = 2
_SNIPPET_LINES = 120
_REVIEW = (
    "Review the changes and make sure they are as expected (correct indentation, no duplicate lines, etc). "
    "Edit the file again if necessary."
)
_HUNK = re.compile(r"@@ -[0-9,]+ \+([0-9]+)")


def _tools(workspace: Workspace) -> Sequence[kit.Tool]:

    def str_replace_based_edit_tool(
        command: Literal["view", "create", "str_replace", "insert"],
        path: str,
        view_range: list[int] | None = None,
        file_text: str | None = None,
        old_str: str | None = None,
        new_str: str | None = None,
        insert_line: int | None = None,
        insert_text: str | None = None,
    ) -> Result:
        """View, create and edit text files; a directory is viewed two levels deep.

        Args:
            command: What to do.
            path: File or directory, relative to the workspace root or absolute inside it.
            view_range: For view of a file: first and last line, from 1; -1 as the last is the end.
            file_text: For create: the whole text of the file.
            old_str: For str_replace: the text to replace, exactly as the file has it; it must occur once.
            new_str: For str_replace: the text to put in its place; left out, the old is deleted.
            insert_line: For insert: the line after which to insert; 0 is the beginning of the file.
            insert_text: For insert: the text to insert, as lines of its own.
        """
        if command == "view":
            return _view(workspace, path, view_range)
        if command == "create":
            return workspace.write(path, kit.required("file_text", file_text, command))
        if command == "str_replace":
            return workspace.edit(path, kit.required("old_str", old_str, command), new_str or "")
        line = insert_line if insert_line is not None else kit.required("insert_line", None, command)
        # In older versions of the tool the parameter was new_str here too.
        text = kit.required("insert_text", new_str if insert_text is None else insert_text, command)
        return kit.insert(workspace, path, int(line), text)

    return [
        kit.Tool(
            function=str_replace_based_edit_tool,
            effect="write",
            methods={name: {"command": command} for name, command in _COMMANDS.items()},
            renames={"old_string": "old_str", "new_string": "new_str", "content": "file_text"},
            follow=kit.view_for,
            render=partial(_render, limits=workspace.limits),
        )
    ]


def _view(workspace: Workspace, path: str, view_range: list[int] | None) -> Result:
    read = kit.read_range(workspace, path, view_range)
    return workspace.ls(path, depth=_VIEW_DEPTH) if read.kind == "directory" else read


def _render(context: kit.RenderContext, limits: Limits) -> ToolResult:
    content = context.result.content
    match context.outcome:
        case ReadResult(kind="text") as read:
            head = f"Here's the result of running `cat -n` on {kit.one_line(read.path)}:"
            content = "\n".join([head, *kit.numbered_lines(read, limits)])
        case ListResult():
            path = kit.one_line(context.arguments["path"])
            content = (
                f"Here're the files and directories up to {_VIEW_DEPTH} levels deep in {path}, "
                f"excluding hidden items:\n{content}"
            )
        case WriteResult() as written:
            done = "File created successfully at" if written.created else "The file was overwritten at"
            content = "\n".join([f"{done}: {kit.one_line(written.path)}", *written.notes])
        case EditResult() as edited:
            content = _edited(edited)
        case AgentFSError() as error:
            return _failed(context, error)
        case _:
            pass
    return replace(context.result, content=content)


def _edited(edited: EditResult) -> str:
    path = kit.one_line(edited.path)
    notes = [f"[{note}]" for note in edited.notes]
    if edited.applied_via not in {"exact", "offset"}:
        notes.append(f"[old_str was found by {edited.applied_via.replace('_', ' ')}]")
    head = f"The file {path} has been edited. Here's the result of running `cat -n` on a snippet of {path}:"
    return "\n".join([head, *_snippet(edited.diff), *notes, _REVIEW])


def _snippet(diff: str) -> list[str]:
    """Return the new lines of a diff and their context lines, each with its number."""
    lines: list[str] = []
    number = omitted = 0
    for line in diff[diff.find("\n@@ ") + 1 :].split("\n"):
        if hunk := _HUNK.match(line):
            lines += ["..."] if lines else []
            number = int(hunk[1])
        elif line[:1] in {" ", "+"}:
            if len(lines) < _SNIPPET_LINES:
                lines.append(f"{number:>6}\t{kit.visible(line[1:].removesuffix(chr(13)))}")
            else:
                omitted += 1
            number += 1
    return [*lines, f"[{omitted} more lines]"] if omitted else lines


def _failed(context: kit.RenderContext, error: AgentFSError) -> ToolResult:
    """Return a failure with the message that the models know, followed by the workspace's own."""
    path = kit.one_line(str(context.arguments.get("path", "")))
    old = str(context.arguments.get("old_str", ""))
    more = [error.message, *error.places(), error.hint]
    match error:
        case NotFoundError():
            message = f"The path {path} does not exist. Please provide a valid path."
            more = [error.hint]
        case NoMatchError():
            message = kit.no_replacement(error, old, path)
        case AmbiguousError():
            message = kit.no_replacement(error, old, path)
            more = [*error.places(), "Add lines before or after it to old_str (and to new_str)."]
        case UnreadError() | StaleError() | AlreadyExistsError() if (
            context.arguments.get("command") == "create"
        ):
            message = f"File {path} already exists, and was not overwritten."
        case _:
            return context.result
    content = "\n".join(part for part in (message, *more) if part)
    return replace(context.result, content=content, error={"code": error.code, "message": message})


DIALECT = kit.Dialect("text-editor", _tools)
