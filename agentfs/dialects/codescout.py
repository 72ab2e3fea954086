"""`codescout`: read_file, list_dir, search_pattern, find_file, create_file and edit_file, in absolute paths.

The contract is in `docs/dialects/codescout.md`, statement by statement. No `from __future__ import
annotations`: the hints become schemas.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from agentfs.dialects.dialect import Dialect
from agentfs.dialects.showing import absolute_in, as_json, content_of, left_out, lines_of, problem_of
from agentfs.errors import InvalidArgumentError, PastEndError
from agentfs.limits import HARD_FILE_BYTES
from agentfs.results import (
    EditResult,
    GlobResult,
    GrepResult,
    ListResult,
    NextCall,
    ReadResult,
    ToolResult,
    WriteResult,
)
from agentfs.signatures.offers import Answer, Offer
from agentfs.workspace import Workspace

_LINES = 200  # of a read that is not told where to end
_ENTRIES = 200  # of a listing that is not paged
_PAGE = 50
_MATCHES = 50
_FILES = 100
_BUFFER_BYTES = 10_000  # a longer read is given a name, under which it can be read and searched


def offers(workspace: Workspace) -> Sequence[Offer]:
    """Make the six tools.

    Args:
        workspace: The workspace.
    """
    unbounded = workspace.view(
        limits=replace(
            workspace.limits,
            read_bytes=workspace.limits.file_bytes,
            line_chars=HARD_FILE_BYTES,
            output_tokens=HARD_FILE_BYTES,
        )
    )

    def read(path: str, start_line: int | None = None, end_line: int | None = None) -> ReadResult:
        """Read the contents of a file, optionally restricted to a line range.

        With both lines, exactly that range; otherwise at most 200 lines, and `overflow` says what is left.
        Prefer chunks with explicit start_line and end_line over reading a large file whole; to look for a
        pattern, use search_pattern.

        Args:
            path: File path relative to project root, or a file_id.
            start_line: First line to return (1-indexed).
            end_line: Last line to return (1-indexed, inclusive).
        """
        first = 1 if start_line is None else start_line
        last = first if end_line is None else end_line
        for name, line in (("start_line", first), ("end_line", last)):
            if line < 1:
                raise _out_of_range(f"`{name}` must be 1 or more, not {line}.", name)
        if last < first:
            raise _out_of_range(f"`end_line` {last} lies before `start_line` {first}.", "end_line")
        try:
            if end_line is None:
                return workspace.read(path, first, room=0)
            return unbounded.read(path, first, last - first + 1, room=0)
        except PastEndError as error:
            raise _past_end(error, first) from None

    def ls(
        path: str,
        recursive: bool = False,
        detail_level: Literal["compact", "full"] = "compact",
        offset: int = 0,
        limit: int | None = None,
    ) -> ListResult:
        """List files and directories under a path; hidden and ignored ones are left out.

        Start with a shallow listing, then drill into subdirectories of interest; a recursive one may be long.
        To find files by name pattern use find_file instead.

        Args:
            path: Directory path relative to project root.
            recursive: Descend into subdirectories.
            detail_level: "full" to page through all entries, without the cap of 200.
            offset: Skip this many entries.
            limit: Max entries per page, by default 50.
        """
        paged = _is_paged({"detail_level": detail_level, "offset": offset, "limit": limit})
        page = (_PAGE if limit is None else limit) if paged else None
        return workspace.ls(path, 0 if recursive else 1, page, offset)

    def grep(pattern: str, path: str = ".", limit: int | None = None) -> GrepResult:
        r"""Search the codebase for a regex pattern; returns matching lines with file path and line number.

        Hidden and ignored files are left out, and files that are not UTF-8. Use path to narrow the search.
        To find files by name, not content, use find_file.

        Args:
            pattern: Regular expression to search for; escape `( ) [ . *` to match them literally.
            path: Directory, file or file_id to restrict the search to; by default the project root.
            limit: Maximum number of matching lines to return, by default 50.
        """
        return workspace.grep(pattern, path, context=0, limit=limit, encoding="utf-8")

    def glob(pattern: str, path: str = ".", limit: int | None = None) -> GlobResult:
        """Find files matching a glob pattern, hidden ones too; ignored ones are left out.

        The pattern is matched against the path relative to the search directory; `**` matches across
        directories. Use search_pattern to find files by their contents.

        Args:
            pattern: Glob pattern (e.g. `**/*.rs`, `src/**/mod.rs`, `**/Makefile`).
            path: Directory to search within; by default the project root.
            limit: Maximum number of file paths to return, by default 100.
        """
        return workspace.glob(pattern, path, limit, hidden=True, anchored=True)

    def edit(
        path: str,
        new_string: str,
        old_string: str = "",
        replace_all: bool = False,
        insert: Literal["prepend", "append"] | None = None,
    ) -> EditResult:
        """Find-and-replace editing within an existing file: matches an exact string and replaces it.

        Use it for imports, constants, config values and small literal changes.

        Args:
            path: File path relative to project root.
            new_string: Replacement text.
            old_string: Exact text to find, including indentation; it must occur once. None with insert.
            replace_all: Replace every occurrence.
            insert: Add new_string at the start or the end of the file instead.
        """
        if bool(old_string) == (insert is not None):
            raise InvalidArgumentError(
                "Either `old_string` says what to replace, or `insert` where to add; "
                + ("both are given." if old_string else "neither is given."),
                hint='Pass old_string, or insert="prepend" or "append".',
                details={"parameter": "old_string"},
            )
        if insert is None:
            return workspace.edit(path, old_string, new_string, replace_all)
        return _inserted(workspace, path, new_string, insert)

    made = [
        Offer(read, name="read_file", follow=_follow_read),
        Offer(ls, name="list_dir", follow=_follow_list),
        Offer(grep, name="search_pattern", parameters={"limit": "max_results"}),
        Offer(glob, name="find_file", parameters={"limit": "max_results"}),
        Offer(
            workspace.write,
            name="create_file",
            description="Create a new file, or overwrite an existing one without warning; parent directories "
            "are created. For editing existing files, use edit_file instead.",
            descriptions={
                "path": "File path relative to project root.",
                "content": "Full file content to write.",
            },
        ),
        Offer(edit, name="edit_file", order=("path", "old_string")),
    ]
    render = partial(_render, workspace=workspace)
    return [replace(each, render=render) for each in made]


def _out_of_range(message: str, parameter: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        message, hint="Lines count from 1, and end_line is included.", details={"parameter": parameter}
    )


def _past_end(error: PastEndError, first: int) -> PastEndError:
    total = error.details.get("total_lines")
    if total is None:  # of a directory
        return error
    return PastEndError(
        f"{error.message.rpartition('; ')[0]}; start_line {first} is past its end.",
        hint=f"Pass a start_line from 1 to {total}." if total else "It is empty: there is nothing to read.",
        details=error.details,
    )


def _inserted(workspace: Workspace, path: str, new: str, where: Literal["prepend", "append"]) -> EditResult:
    notes: list[str] = []

    def span(text: str) -> list[tuple[int, int, str]]:
        at = 0 if where == "prepend" else len(text)
        # It is put there exactly as it is, which may not be what was meant.
        joined = bool(text) and not (text if at else new).endswith("\n")
        notes[:] = [f"no line end stands between the text that was there and the one that was {where}ed"][
            :joined
        ]
        return [(at, at, new)]

    edited = workspace.splice(path, span)
    return replace(edited, notes=(*edited.notes, *notes))


def _is_paged(arguments: Mapping[str, Any]) -> bool:
    """Tell whether a listing is paged: in full, or from some entry on, or with a size of its page."""
    full = arguments.get("detail_level") == "full"
    return full or bool(arguments.get("offset")) or arguments.get("limit") is not None


def _follow_read(call: NextCall) -> Mapping[str, Any] | None:
    if call["name"] != "read":
        return None
    arguments = call["arguments"]
    first, limit = arguments.get("offset", 1), arguments.get("limit")
    last = {} if limit is None else {"end_line": first + limit - 1}
    return {"path": arguments["path"], "start_line": first, **last}


def _follow_list(call: NextCall) -> Mapping[str, Any] | None:
    arguments = call["arguments"]
    if call["name"] != "ls" or not isinstance(arguments.get("path", "."), str):
        return None
    made: dict[str, Any] = {"path": arguments.get("path", ".")}
    if arguments.get("depth", 1) != 1:
        made["recursive"] = True
    if "offset" in arguments:
        made |= {"detail_level": "full", "offset": arguments["offset"]}
    return made if arguments.get("limit") is None else {**made, "limit": arguments["limit"]}


def _render(answer: Answer, *, workspace: Workspace) -> ToolResult:
    if not answer.result.success:
        return answer.result  # `_refused` tells of it
    absolute = absolute_in(workspace)
    match answer.outcome:
        case ReadResult() as read:
            return as_json(answer, _page(answer, read, workspace))
        case ListResult() as listed:
            return as_json(answer, _listing(answer, listed, absolute))
        case GrepResult() as found:
            matches = [
                {"file": absolute(match.path), "line": match.line, **content_of(match)}
                for match in found.matches
            ]
            way = "Increase max_results, or narrow the search with path"
            told = _counted(answer, found, len(matches), found.total_lines, "matching lines", way)
            return as_json(answer, {"matches": matches, **told})
        case GlobResult() as globbed:
            files = [absolute(entry.path) for entry in globbed.files]
            way = "Increase max_results, or use a more specific pattern or path"
            told = _counted(answer, globbed, len(files), globbed.total, "files", way)
            pattern = answer.arguments["pattern"]
            if not files and "/" not in pattern:
                told["note"] += (
                    f"\n{pattern} is bound to the directory searched; **/{pattern} matches below it."
                )
            return as_json(answer, {"files": files, **told})
        case WriteResult() as written:
            replaced = () if written.created else ("an existing file was overwritten",)
            return _done(answer, written, (*replaced, *written.notes))
        case EditResult() as edited:
            return _done(answer, edited, edited.notes)
        case _:
            return answer.result


def _refused(answer: Answer) -> ToolResult:
    problem = problem_of(answer)
    return as_json(answer, {"error": problem._asdict()}) if problem else answer.result


def _page(answer: Answer, read: ReadResult, workspace: Workspace) -> dict[str, Any]:
    if read.kind != "text":
        shown = {"content": read.content, "total_lines": read.total_lines, "kind": read.kind}
        return {**shown, "note": answer.result.content} if not read.content else shown
    content, told = read.content, dict[str, Any]()
    asked = [answer.arguments.get(name) is not None for name in ("start_line", "end_line")]
    lines, most = lines_of(read), workspace.limits.line_chars
    cut = [] if asked[1] else [n for n, line in enumerate(lines, read.start_line) if len(line) > most]
    if cut:
        content = _cut(content, lines, most)
    overflows = read.truncated_by not in {None, "line"}
    if overflows:
        told["overflow"] = {
            "shown": read.end_line - read.start_line + 1,
            "total": read.total_lines,
            "hint": f"File has {read.total_lines} lines. Use start_line/end_line to read specific ranges",
        }
    if cut:
        told["cut"] = {"lines": cut, "hint": "Give both start_line and end_line to read these lines whole"}
    size = len(read.content.encode("utf-8", "surrogatepass"))
    if not all(asked) and (size > _BUFFER_BYTES or (overflows and read.total_bytes > _BUFFER_BYTES)):
        told["file_id"] = workspace.keep(read, kind="file")
    if read.encoding != "utf-8" and read.total_lines:
        told["encoding"] = read.encoding
    return {"content": content, "total_lines": read.total_lines, **told}


def _cut(content: str, lines: Sequence[str], most: int) -> str:
    """Return a text without what its lines have beyond so many characters; their ends stay."""
    parts: list[str] = []
    at = 0
    for line in lines:
        stop = at + len(line)
        at = stop + (2 if content.startswith("\r\n", stop) else 1)
        parts += [line[:most], content[stop:at]]
    return "".join(parts)


def _listing(answer: Answer, listed: ListResult, absolute: Callable[[str], str]) -> dict[str, Any]:
    entries = [f"{absolute(entry.path)}{'/' if entry.is_dir else ''}" for entry in listed.entries]
    told: dict[str, Any] = {}
    if _is_paged(answer.arguments):
        told["total"] = listed.total
        if listed.next:
            told["next_offset"] = listed.next["arguments"]["offset"]
    elif listed.truncated:
        told["overflow"] = {
            "shown": len(entries),
            "total": listed.total,
            "hint": f"Directory has {listed.total} entries. Use a more specific path, or "
            f'detail_level="full" with offset={len(entries)} to go on',
        }
    return {"entries": entries, **told, **_left_out(listed)}


def _counted(
    answer: Answer, found: GrepResult | GlobResult, shown: int, total: int, noun: str, way: str
) -> dict[str, Any]:
    """Return how much there is, how to see more of it, and why nothing was found."""
    told: dict[str, Any] = {"total": total}
    if found.truncated:
        least = "" if found.exact else "at least "
        told["overflow"] = {"shown": shown, "total": total, "hint": f"There are {least}{total} {noun}. {way}"}
    return {**told, **_left_out(found), **({} if shown else {"note": answer.result.content})}


def _left_out(found: GlobResult | GrepResult | ListResult) -> dict[str, Any]:
    reasons = left_out(found.skipped)
    return {"left_out": reasons} if reasons else {}


def _done(answer: Answer, made: WriteResult | EditResult, notes: tuple[str, ...]) -> ToolResult:
    """Say that it is done, and in the notes what else there is to say of it."""
    done = as_json(answer, "ok")
    return replace(done, data={"result": "ok", "path": made.path, "notes": list(notes)}, notes=notes)


DIALECT = Dialect(
    "codescout",
    offers,
    limits={
        "read_lines": _LINES,
        "line_chars": 51_200,
        "list_entries": _ENTRIES,
        "glob_results": _FILES,
        "grep_results": _MATCHES,
        # The document bounds answers in lines and entries, and no text has more tokens than bytes.
        "output_tokens": 200_000,
    },
    policy={"overwrite": "always", "match": "exact"},
    render=_refused,
)
