"""The dialects `text-editor` and `memory`: Anthropic's two tools for files, each with several commands.

Messages begin with the words that the models know; the workspace's own text follows. `/memories` is the
directory `memories` of the workspace, and `memory` reads and changes nothing else.
`docs/reference/dialects/text-editor.md` and `memory.md` compare them with their contracts.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from posixpath import dirname, normpath
from typing import Any, Literal, TypeVar

from agentfs import AgentFSError, Limits, ToolResult, Workspace, errors, results
from agentfs.dialects import toolkit as kit

_T = TypeVar("_T")
_TOP = "/memories"
_DIRECTORY = _TOP[1:]
_VIEW_DEPTH = 2
_ECHO_CHARS = 200
_SNIPPET_LINES = 120
_CONTEXT_LINES = 2  # of `memory`
_MOST_LINES, _MOST_LISTED = 999_999, 10_000  # of `memory`
_HUNK = re.compile(r"@@ -[0-9,]+ \+([0-9]+)")
_REVIEW = (
    "Review the changes and make sure they are as expected (correct indentation, no duplicate lines, etc). "
    "Edit the file again if necessary."
)
_COMMANDS = {"read": "view", "ls": "view", "write": "create", "edit": "str_replace"}
_RENAMES = {"old_string": "old_str", "new_string": "new_str"}
_EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"


def _view_for(call: kit.NextCall) -> Mapping[str, Any] | None:
    """Return the arguments of a view for a call of `read` or `ls`."""
    arguments = call["arguments"]
    if call["name"] == "ls" and arguments.keys() == {"path"}:
        return {"command": "view", **arguments}
    if call["name"] != "read" or not arguments.keys() <= {"path", "offset", "limit"}:
        return None
    first, limit = arguments.get("offset", 1), arguments.get("limit")
    last = -1 if limit is None else first + limit - 1
    lines = {} if (first, last) == (1, -1) else {"view_range": [first, last]}
    return {"command": "view", "path": arguments["path"], **lines}


def _memory_view_for(call: kit.NextCall) -> Mapping[str, Any] | None:
    view = _view_for(call)
    inside = view and view["path"].partition("/")[0] == _DIRECTORY
    return {**view, "path": f"/{view['path']}"} if view and inside else None


class _Editor(kit.Tools):
    @kit.offer(
        effect="write",
        methods={name: {"command": command} for name, command in _COMMANDS.items()},
        renames={**_RENAMES, "content": "file_text"},
        follow=_view_for,
    )
    def str_replace_based_edit_tool(
        self,
        command: Literal["view", "create", "str_replace", "insert"],
        path: str,
        view_range: list[int] | None = None,
        file_text: str | None = None,
        old_str: str | None = None,
        new_str: str | None = None,
        insert_line: int | None = None,
        insert_text: str | None = None,
    ) -> results.Result:
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
            try:
                return _read(self.workspace, path, view_range)
            except errors.NotAFileError:
                return self.workspace.ls(path, depth=_VIEW_DEPTH)
        if command == "create":
            return self.workspace.write(path, _required("file_text", file_text, command))
        if command == "str_replace":
            return self.workspace.edit(path, _required("old_str", old_str, command), new_str or "")
        line = _required("insert_line", insert_line, command)
        # In older versions of the tool the parameter was new_str here too.
        text = _required("insert_text", new_str if insert_text is None else insert_text, command)
        return kit.insert(self.workspace, path, line, text)


class _Memory(kit.Tools):
    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace.view(only=[_DIRECTORY]))

    @kit.offer(effect="write", methods={}, renames=_RENAMES, follow=_memory_view_for)
    def memory(
        self,
        command: Literal["view", "create", "str_replace", "insert", "delete", "rename"],
        path: str | None = None,
        view_range: list[int] | None = None,
        file_text: str | None = None,
        old_str: str | None = None,
        new_str: str | None = None,
        insert_line: int | None = None,
        insert_text: str | None = None,
        old_path: str | None = None,
        new_path: str | None = None,
    ) -> results.Result | ToolResult:
        """Keep notes across conversations: text files under /memories. View that directory first.

        Args:
            command: What to do; delete and rename take files and directories.
            path: File or directory, such as /memories/notes.txt; for every command but rename.
            view_range: For view of a file: first and last line, from 1; -1 as the last is the end.
            file_text: For create: the whole text of the new file.
            old_str: For str_replace: the text to replace, exactly as the file has it; it must occur once.
            new_str: For str_replace: the text to put in its place; left out, the old is deleted.
            insert_line: For insert: the line after which to insert; 0 is the beginning of the file.
            insert_text: For insert: the text to insert, as lines of its own.
            old_path: For rename: the file or directory.
            new_path: For rename: its new path, which must be free.
        """
        name, given = ("old_path", old_path) if command == "rename" else ("path", path)
        place = _below(_required(name, given, command))
        is_top = normpath(place) == _DIRECTORY
        if is_top and command in {"delete", "rename"}:
            message = f"Cannot {command} the {_TOP} directory itself"
            raise errors.InvalidArgumentError(message, details={"path": given})
        if command == "view":
            return _view_memory(self.workspace, place, view_range)
        if command == "create":
            text = _required("file_text", file_text, command)
            written = None if is_top else self.workspace.write(place, text, overwrite=False)
            if written is None or not written.created:  # a file has this text already
                raise errors.AlreadyExistsError("", details={"path": place})
            return written
        if command == "str_replace":
            return self.workspace.edit(place, _required("old_str", old_str, command), new_str or "")
        if command == "insert":
            line = _required("insert_line", insert_line, command)
            text = _required("insert_text", insert_text, command).rstrip("\n")
            return kit.insert(self.workspace, place, line, f"{text}\n")
        if command == "rename":
            return self.workspace.move(place, _below(_required("new_path", new_path, command)))
        return self.workspace.delete(place, recursive=True)


def _required(name: str, value: _T | None, command: str) -> _T:
    """Return the value of a parameter that a command needs."""
    if value is None:
        message = f"Parameter `{name}` is required for command: {command}"
        raise errors.InvalidArgumentError(message, details={"parameter": name})
    return value


def _read(workspace: Workspace, path: str, view_range: list[int] | None) -> results.ReadResult:
    """Read the lines of a `view_range`, or a page; without a range, the result may be about a directory."""
    if view_range is None:
        return workspace.read(path)
    wrong = f"Invalid `view_range`: {view_range}."
    if len(view_range) != 2:
        raise _wrong_range(f"{wrong} It should be a list of two integers.")
    first, last = view_range
    if first < 1:
        raise _wrong_range(f"{wrong} Its first element `{first}` should be a line number from 1.")
    if last != -1 and last < first:
        raise _wrong_range(f"{wrong} Its second element `{last}` should not be smaller than its first.")
    try:
        return workspace.read(path, first, None if last == -1 else last - first + 1)
    except errors.PastEndError as error:
        inside = f"within the range of lines of the file: [1, {error.details['total_lines']}]"
        raise _wrong_range(f"{wrong} Its first element `{first}` should be {inside}.") from None
    except errors.NotAFileError:
        message = "The `view_range` parameter is not allowed when `path` points to a directory."
        raise _wrong_range(message) from None


def _wrong_range(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(message, details={"parameter": "view_range"})


def _below(path: str) -> str:
    """Return the path in the workspace for a path under `/memories`; its first `/` may be missing."""
    place = path.removeprefix("/").rstrip("/")
    if place.partition("/")[0] != _DIRECTORY:
        message = f"Path must start with {_TOP}, got: {kit.one_line(path)}"
        raise errors.OutsideWorkspaceError(message, details={"path": path})
    return place


def _view_memory(inside: Workspace, place: str, view_range: list[int] | None) -> results.Result | ToolResult:
    try:
        read = _read(inside, place, view_range)
    except errors.NotAFileError:
        # Every level, because the size of a directory is that of its files.
        how: dict[str, Any] = {"hidden": False, "include_ignored": True, "ignore": "node_modules"}
        return inside.ls(place, 0, _MOST_LISTED, **how)
    except errors.NotFoundError:
        if place != _DIRECTORY:
            raise
        return ToolResult(True, _listed(_TOP, results.ListResult([], 0, results.Skipped())), "0 entries")
    if read.total_lines > _MOST_LINES:
        message = f"File /{kit.one_line(place)} exceeds maximum line limit of {_MOST_LINES:,} lines."
        raise errors.TooLargeError(message, details={"path": place, "total_lines": read.total_lines})
    return read


def _numbered(lines: Sequence[str], first: int) -> list[str]:
    """Return lines as `cat -n` does, with hidden characters visible."""
    shown = kit.visible("\n".join(lines)).split("\n") if lines else []
    return [f"{number:>6}\t{line}" for number, line in enumerate(shown, first)]


def _page(head: str, read: results.ReadResult, limits: Limits) -> str:
    lines = [kit.cut_line(line, limits.line_chars) for line in kit.lines_of(read)]
    notes = [f"[{'; '.join(read.notes)}]"] if read.notes else []
    return "\n".join([head, *_numbered(lines, read.start_line), *notes])


def _render_editor(context: kit.RenderContext, workspace: Workspace) -> ToolResult:
    outcome = context.outcome
    if isinstance(outcome, AgentFSError):
        return _editor_failure(context, outcome)
    match outcome:
        case results.ReadResult(kind="text") as read:
            head = f"Here's the result of running `cat -n` on {kit.one_line(read.path)}:"
            content = _page(head, read, workspace.limits)
        case results.ListResult():
            path = kit.one_line(context.arguments["path"])
            head = f"Here're the files and directories up to {_VIEW_DEPTH} levels deep in {path}, "
            content = f"{head}excluding hidden items:\n{context.result.content}"
        case results.WriteResult() as written:
            done = "File created successfully at" if written.created else "The file was overwritten at"
            content = "\n".join([f"{done}: {kit.one_line(written.path)}", *written.notes])
        case results.EditResult() as edited:
            content = _edited(edited)
        case _:
            return context.result
    return replace(context.result, content=content)


def _edited(edited: results.EditResult) -> str:
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
                lines += _numbered([line[1:].removesuffix("\r")], number)
            else:
                omitted += 1
            number += 1
    return [*lines, f"[{omitted} more lines]"] if omitted else lines


def _editor_failure(context: kit.RenderContext, error: AgentFSError) -> ToolResult:
    creates = context.arguments.get("command") == "create"
    path = kit.one_line(str(context.arguments.get("path", "")))
    match error:
        case errors.NotFoundError():
            message = f"The path {path} does not exist. Please provide a valid path."
            return _failed(context, error, message, [error.hint])
        case errors.NoMatchError() | errors.AmbiguousError():
            return _no_replacement(context, error)
        case errors.UnreadError() | errors.StaleError() | errors.AlreadyExistsError() if creates:
            message = f"File {path} already exists, and was not overwritten."
            return _failed(context, error, message, [error.message, *error.places(), error.hint])
        case _:
            return context.result


def _failed(context: kit.RenderContext, error: AgentFSError, message: str, more: Sequence[str]) -> ToolResult:
    """Return a failure with the message that the models know, followed by the workspace's own."""
    content = "\n".join([message, *filter(None, map(str, more))])
    return replace(context.result, content=content, error={"code": error.code, "message": message})


def _no_replacement(
    context: kit.RenderContext, error: errors.NoMatchError | errors.AmbiguousError
) -> ToolResult:
    """Return the failure for an old text that is not there, or at several places."""
    path, old = (str(context.arguments.get(name)) for name in ("path", "old_str"))
    old = kit.visible(old if len(old) <= _ECHO_CHARS else f"{old[:_ECHO_CHARS]}…")
    said = "No replacement was performed"
    if isinstance(error, errors.NoMatchError):
        said += f", old_str `{old}` did not appear verbatim in {kit.one_line(path)}."
        return _failed(context, error, said, [error.message, *error.places(), error.hint])
    lines = ", ".join(map(str, error.details["lines"]))
    said += f". Multiple occurrences of old_str `{old}` in lines: {lines}. Please ensure it is unique"
    advice = "Add lines before or after it to old_str (and to new_str)."
    return _failed(context, error, said, [*error.places(), advice])


def _render_memory(context: kit.RenderContext, workspace: Workspace) -> ToolResult:
    given, outcome = context.arguments, context.outcome
    if isinstance(outcome, AgentFSError):
        return _memory_failure(context, outcome)
    path = kit.one_line(str(given.get("path", "")))
    match outcome:
        case results.ReadResult(kind="text"):
            page = outcome if outcome.truncated_by else replace(outcome, notes=())
            content = _page(f"Here's the content of {path} with line numbers:", page, workspace.limits)
        case results.ListResult():
            content = _listed(path.rstrip("/"), outcome)
        case results.WriteResult():
            content = f"File created successfully at: {path}"
        case results.EditResult() if given["command"] == "str_replace":
            near = range(outcome.changed[0][0] - _CONTEXT_LINES, outcome.changed[0][0] + _CONTEXT_LINES + 1)
            lines = (line.partition("\t") for line in _snippet(outcome.diff))
            shown = ["\t".join(line[::2]) for line in lines if line[1] and int(line[0]) in near]
            content = "\n".join([_EDITED, *shown])
        case results.EditResult():
            content = f"The file {path} has been edited."
        case results.DeleteResult():
            content = f"Successfully deleted {path}"
        case results.MoveResult():
            old, new = (kit.one_line(given[name]) for name in ("old_path", "new_path"))
            content = f"Successfully renamed {old} to {new}"
        case _:
            return context.result
    return replace(context.result, content=content)


def _listed(path: str, listed: results.ListResult) -> str:
    """Return the lines for a directory, whose entries of all levels are listed."""
    top = normpath(path)[1:]
    sizes = dict.fromkeys([top, *(each.path for each in listed.entries)], 0)
    for each in listed.entries:
        place = each.path
        while place in sizes:
            sizes[place] += each.size or 0
            place = dirname(place)
    excluded = "excluding hidden items and node_modules"
    head = f"Here're the files and directories up to {_VIEW_DEPTH} levels deep in {path}, {excluded}:"
    lines = [head, f"{_shown_size(sizes[top])}\t{path}"]
    for each in sorted(listed.entries, key=lambda entry: entry.path.split("/")):
        below = each.path.removeprefix(f"{top}/")
        if below.count("/") < _VIEW_DEPTH:
            lines.append(f"{_shown_size(sizes[each.path])}\t{path}/{kit.one_line(below)}{'/' * each.is_dir}")
    cut = listed.total - len(listed.entries)
    return "\n".join([*lines, *([f"[{kit.plural(cut, 'more entry', 'more entries')}]"] if cut > 0 else [])])


def _shown_size(size: int) -> str:
    power = min(max(size.bit_length() - 1, 0) // 10, 3)
    value = size / 1024**power
    return f"{value:.{0 if value.is_integer() else 1}f}{'BKMG'[power]}"


def _memory_failure(context: kit.RenderContext, error: AgentFSError) -> ToolResult:
    given = context.arguments
    command = given.get("command")
    name = "old_path" if command == "rename" else "path"
    path, new = (kit.one_line(str(given.get(each))) for each in (name, "new_path"))
    more = [error.hint] if isinstance(error, errors.NotFoundError) else []
    match error:
        case errors.NoMatchError() | errors.AmbiguousError():
            return _no_replacement(context, error)
        case errors.AlreadyExistsError() if command == "rename":
            message = f"Error: The destination {new} already exists"
        case errors.AlreadyExistsError() | errors.NotAFileError() if command == "create":
            message = f"Error: File {path} already exists"
        case errors.NotFoundError() | errors.NotAFileError() | errors.NotDirectoryError() if (
            command != "create"
        ):
            message = f"{'' if command == 'view' else 'Error: '}The path {path} does not exist"
            message += ". Please provide a valid path." if command in {"view", "str_replace"} else ""
        case errors.InvalidArgumentError() if "total_lines" in error.details:
            message = f"Error: {error.message}"
        case errors.OutsideWorkspaceError() if error.hint:
            message = f"Path /{kit.one_line(error.details['path'])} would escape {_TOP} directory"
        case _:
            return context.result
    return _failed(context, error, message, more)


TEXT_EDITOR = kit.Dialect("text-editor", _Editor.make, render=_render_editor)
MEMORY = kit.Dialect("memory", _Memory.make, policy={"match": "exact"}, render=_render_memory)
