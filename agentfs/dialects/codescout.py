"""`codescout`: read_file, list_dir, search_pattern, find_file, create_file and edit_file, in absolute paths.

The contract is in `docs/dialects/codescout.md`, statement by statement. No `from __future__ import
annotations`: the hints become schemas.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from agentfs.dialects.codescout_answers import PAGE, answered, is_paged, refused
from agentfs.dialects.dialect import Dialect
from agentfs.dialects.rendering import past_end
from agentfs.errors import InvalidArgumentError, PastEndError
from agentfs.limits import Limits
from agentfs.messages import NextCall
from agentfs.results import EditResult, GlobResult, GrepResult, ListResult, ReadResult
from agentfs.tools.offer import ToolOffer
from agentfs.workspace import Workspace

_LIMITS: Mapping[str, Any] = {
    "read_lines": 200,
    "line_chars": 51_200,
    "list_entries": 200,
    "glob_results": 100,
    "grep_results": 50,
    # The document bounds answers in lines and entries, and no text has more tokens than bytes.
    "output_tokens": 200_000,
}
_TOKENS = 16  # for each byte of a file: more than any text of it has


def offers(workspace: Workspace) -> Sequence[ToolOffer]:
    """Make the six tools.

    Args:
        workspace: The workspace.
    """
    unbounded = workspace.view(limits=_without_caps(workspace.limits))

    def read(path: str, start_line: int | None = None, end_line: int | None = None) -> ReadResult:
        """Read the contents of a file, optionally restricted to a line range.

        With both lines, that range; otherwise at most 200 lines. `overflow` says what is left.
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
            if "total_lines" not in error.details:  # of a directory
                raise
            raise past_end(error, f"start_line {first}", "a start_line from 1 to") from None

    def ls(
        path: str,
        recursive: bool = False,
        detail_level: Literal["compact", "full"] = "compact",
        offset: int = 0,
        limit: int = PAGE,
    ) -> ListResult:
        """List files and directories under a path; hidden and ignored ones are left out.

        Start with a shallow listing, then drill into subdirectories of interest; a recursive one may be long.
        To find files by name pattern use find_file instead.

        Args:
            path: Directory path relative to project root.
            recursive: Descend into subdirectories.
            detail_level: "full" to page through all entries, without the cap of 200.
            offset: Skip this many entries.
            limit: Max entries per page.
        """
        paged = is_paged({"detail_level": detail_level, "offset": offset, "limit": limit})
        return workspace.ls(path, 0 if recursive else 1, limit if paged else None, offset)

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
            old_string: Exact text to find, including indentation; it must occur once. Empty with insert.
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
        ToolOffer(read, name="read_file", renames={"offset": "start_line"}, follow=_follow_read),
        ToolOffer(ls, name="list_dir", follow=_follow_list),
        ToolOffer(grep, name="search_pattern", parameters={"limit": "max_results"}),
        ToolOffer(glob, name="find_file", parameters={"limit": "max_results"}),
        ToolOffer(
            workspace.write,
            name="create_file",
            description="Create a new file, or overwrite an existing one without warning; parent directories "
            "are created. For editing existing files, use edit_file instead.",
            descriptions={
                "path": "File path relative to project root.",
                "content": "Full file content to write.",
            },
            preset={"encoding": "utf-8", "newline": "given"},
        ),
        ToolOffer(edit, name="edit_file", order=("path", "old_string")),
    ]
    render = partial(answered, workspace=workspace, unbounded=unbounded)
    return [replace(each, render=render) for each in made]


def _without_caps(limits: Limits) -> Limits:
    """Return limits without what bounds a read, where the programmer has set nothing else."""
    usual = replace(Limits(), **_LIMITS)
    caps: dict[str, Any] = {
        "read_bytes": limits.file_bytes,
        "line_chars": limits.file_bytes,
        "output_tokens": _TOKENS * limits.file_bytes,
    }
    left = {name: most for name, most in caps.items() if getattr(limits, name) == getattr(usual, name)}
    return replace(limits, **left)


def _out_of_range(message: str, parameter: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        message, hint="Lines count from 1, and end_line is included.", details={"parameter": parameter}
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


DIALECT = Dialect(
    "codescout", offers, limits=_LIMITS, policy={"overwrite": "always", "match": "exact"}, render=refused
)
