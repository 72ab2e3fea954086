"""The dialect `memory`: Anthropic's `memory_20250818`, notes that an agent keeps under `/memories`.

`/memories` is the directory `memories` of the workspace. Nothing else is read or changed.
`docs/reference/dialects/memory.md` compares the texts with the contract and with the helper of the SDK.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from posixpath import dirname, normpath
from typing import Any, Literal

from agentfs import AgentFSError, Limits, ToolResult, Workspace
from agentfs.dialects import toolkit as kit
from agentfs.errors import (
    AlreadyExistsError,
    AmbiguousError,
    InvalidArgumentError,
    NoMatchError,
    NotAFileError,
    NotDirectoryError,
    NotFoundError,
    OutsideWorkspaceError,
    TooLargeError,
)
from agentfs.results import (
    DeleteResult,
    EditResult,
    ListResult,
    MoveResult,
    ReadResult,
    Result,
    Skipped,
    WriteResult,
)

NAME = "memory"
TOP = "/memories"
_DIRECTORY = TOP[1:]
_VIEW_DEPTH = 2
_MOST_LINES = 999_999
_CONTEXT_LINES = 2
_MOST_LISTED = 10_000
_EXCLUDED = "excluding hidden items and node_modules"
_EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"


def _tools(workspace: Workspace) -> Sequence[kit.Tool]:
    inside = workspace.view(only=[_DIRECTORY])

    def memory(
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
    ) -> Result | ToolResult:
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
        if command == "rename":
            old = _below(kit.required("old_path", old_path, command), command)
            return inside.move(old, _below(kit.required("new_path", new_path, command)))
        place = _below(kit.required("path", path, command), command)
        if command == "view":
            return _view(inside, place, view_range)
        if command == "create":
            written = inside.write(place, kit.required("file_text", file_text, command), overwrite=False)
            if not written.created:  # it has this text already
                raise AlreadyExistsError("", details={"path": place})
            return written
        if command == "str_replace":
            return _str_replace(inside, place, kit.required("old_str", old_str, command), new_str or "")
        if command == "insert":
            line = insert_line if insert_line is not None else kit.required("insert_line", None, command)
            text = kit.required("insert_text", insert_text, command).rstrip("\n")
            return kit.insert(inside, place, int(line), f"{text}\n")
        return inside.delete(place, recursive=True)

    return [
        kit.Tool(
            function=memory,
            effect="write",
            methods={},
            renames={"old_string": "old_str", "new_string": "new_str"},
            follow=_follow,
            render=partial(_render, limits=workspace.limits),
        )
    ]


def _below(path: str, command: str = "") -> str:
    """Return the path in the workspace for a path under `/memories`; its first `/` may be missing."""
    place = path.removeprefix("/").rstrip("/")
    if place.partition("/")[0] != _DIRECTORY:
        message = f"Path must start with {TOP}, got: {kit.one_line(path)}"
        raise OutsideWorkspaceError(message, details={"path": path})
    if place == _DIRECTORY and command in {"delete", "rename"}:
        raise InvalidArgumentError(f"Cannot {command} the {TOP} directory itself", details={"path": path})
    return place


def _view(inside: Workspace, place: str, view_range: list[int] | None) -> Result | ToolResult:
    try:
        read = kit.read_range(inside, place, view_range)
        if read.kind == "directory":
            # Every level, because the size of a directory is that of its files.
            return inside.ls(
                place, 0, _MOST_LISTED, hidden=False, include_ignored=True, ignore="node_modules"
            )
    except NotFoundError:
        if place != _DIRECTORY:
            raise
        return ToolResult(True, _listed(TOP, ListResult([], 0, Skipped())), "0 entries")
    if read.total_lines > _MOST_LINES:
        message = f"File /{kit.one_line(place)} exceeds maximum line limit of {_MOST_LINES:,} lines."
        raise TooLargeError(message, details={"path": place, "total_lines": read.total_lines})
    return read


def _str_replace(inside: Workspace, place: str, old: str, new: str) -> EditResult:
    old = old.replace("\r\n", "\n")

    def span(text: str) -> tuple[list[tuple[int, int, str]], list[str]]:
        if not old:
            raise InvalidArgumentError("`old_str` is empty.", details={"parameter": "old_str"})
        found = kit.occurrences(text, old)
        if not found:
            raise kit.explain_no_match(text, old, new, place)
        if len(found) > 1:
            raise kit.explain_ambiguous(text, old, found, place)
        [start] = found
        changed = f"{text[:start]}{new}{text[start + len(old) :]}".removesuffix("\n").split("\n")
        line = text.count("\n", 0, start)
        first = max(line - _CONTEXT_LINES, 0)
        shown = kit.visible("\n".join(changed[first : line + _CONTEXT_LINES + 1])).split("\n")
        snippet = [f"{number:>6}\t{each}" for number, each in enumerate(shown, first + 1)]
        return [(start, start + len(old), new)], snippet

    return kit.splice(inside, kit.SpliceOptions(place, span))


def _follow(call: kit.NextCall) -> Mapping[str, Any] | None:
    """Return the arguments of a view for a call of `read` or `ls`."""
    view = kit.view_for(call)
    inside = view and view["path"].partition("/")[0] == _DIRECTORY
    return {**view, "path": f"/{view['path']}"} if view and inside else None


def _render(context: kit.RenderContext, limits: Limits) -> ToolResult:
    given, outcome = context.arguments, context.outcome
    if isinstance(outcome, AgentFSError):
        return _failed(context, outcome)
    path = kit.one_line(str(given.get("path", "")))
    match outcome:
        case ReadResult(kind="text"):
            head = f"Here's the content of {path} with line numbers:"
            page = outcome if outcome.truncated_by else replace(outcome, notes=())
            content = "\n".join([head, *kit.numbered_lines(page, limits)])
        case ListResult():
            content = _listed(path.rstrip("/"), outcome)
        case WriteResult():
            content = f"File created successfully at: {path}"
        case EditResult() if given["command"] == "str_replace":
            content = "\n".join([_EDITED, *outcome.notes])
        case EditResult():
            content = f"The file {path} has been edited."
        case DeleteResult():
            content = f"Successfully deleted {path}"
        case MoveResult():
            old, new = (kit.one_line(given[name]) for name in ("old_path", "new_path"))
            content = f"Successfully renamed {old} to {new}"
        case _:
            return context.result
    return replace(context.result, content=content)


def _listed(path: str, listed: ListResult) -> str:
    """Return the lines for a directory, whose entries of all levels are listed."""
    top = normpath(path)[1:]
    sizes = dict.fromkeys([top, *(each.path for each in listed.entries)], 0)
    for each in listed.entries:
        place = each.path
        while place in sizes:
            sizes[place] += each.size or 0
            place = dirname(place)
    head = f"Here're the files and directories up to {_VIEW_DEPTH} levels deep in {path}, {_EXCLUDED}:"
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


def _failed(context: kit.RenderContext, error: AgentFSError) -> ToolResult:
    """Return a failure with the documented message, followed by what the workspace knows."""
    given = context.arguments
    command = given.get("command")
    path, old, new = (kit.one_line(str(given.get(name))) for name in ("path", "old_path", "new_path"))
    more: list[Any] = []
    match error:
        case NoMatchError() | AmbiguousError():
            message = kit.no_replacement(error, str(given.get("old_str")), path)
            more = [*([error.message] if isinstance(error, NoMatchError) else []), *error.places()]
        case AlreadyExistsError() if command == "rename":
            message = f"Error: The destination {new} already exists"
        case AlreadyExistsError() | NotAFileError() if command == "create":
            message = f"Error: File {path} already exists"
        case NotFoundError() | NotAFileError() | NotDirectoryError() if command != "create":
            message = f"The path {old if command == 'rename' else path} does not exist"
            message += ". Please provide a valid path." if command in {"view", "str_replace"} else ""
            message = message if command == "view" else f"Error: {message}"
            more = [error.hint] if isinstance(error, NotFoundError) else []
        case InvalidArgumentError() if "total_lines" in error.details:
            message = f"Error: {error.message}"
        case OutsideWorkspaceError() if error.hint:
            message = f"Path /{kit.one_line(error.details['path'])} would escape {TOP} directory"
        case _:
            return context.result
    content = "\n".join([message, *filter(None, map(str, more))])
    return replace(context.result, content=content, error={"code": error.code, "message": message})


DIALECT = kit.Dialect(NAME, _tools)
