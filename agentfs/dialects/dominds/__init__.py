"""`dominds`: list_dir, read_file and five ripgrep_* tools, whose replies are YAML.

The contract is in `docs/reference/dialects/dominds.md`, statement by statement. No `from __future__ import
annotations`: the hints become schemas.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from agentfs import Limits, Workspace
from agentfs.dialects.dominds.documents import (
    Document,
    counts,
    directory,
    file,
    files,
    render_yaml,
    search,
    snippets,
    with_document,
)
from agentfs.dialects.dominds.rg_args import ALLOWED, read_arguments, vary
from agentfs.dialects.toolkit import (
    Advice,
    Dialect,
    NextCall,
    RenderContext,
    ToolSpec,
    call,
    case_options,
    last_line,
    literal,
    past_end_of_lines,
    to_json,
)
from agentfs.errors import InvalidArgumentError, NotAFileError, PastEndError, must_be
from agentfs.results import GrepResult, ListResult, ReadResult

Case = Literal["smart", "sensitive", "insensitive"]

_MAX_LINES = 500
_RANGE = re.compile(r"\s*([0-9]{0,9})\s*~\s*([0-9]{0,9})\s*")
_NUMBER_CHARS = 8  # added to each line: its number, and the indentation of the YAML block


# The parameters as a model sees them, and by tool where one differs.
_DESCRIPTIONS = {
    "path": "File or directory to search, relative to the workspace root.",
    "max_lines": "Most lines to show, of a range too.",
    "range": "Lines to show, from 1: `10~50`, `300~` (to the end), `~20` (the first 20) or `~` (all).",
    "show_linenos": "Put its number before each line.",
    "pattern": "Regular expression; escape `( ) [ . *` to match them literally.",
    "literal": "Text to search for; it may span lines.",
    "globs": "Only files that match one, such as `*.py` or `src/**`; `!*.md` leaves out.",
    "case": "How letters match; smart ignores case unless the pattern has a capital.",
    "context_before": "Lines to show before each match.",
    "context_after": "Lines to show after each match.",
    "rg_args": "More rg arguments, such as `-i -C2 -g '*.py'`.",
}
_OTHER_DESCRIPTIONS = {
    "ls": {"path": "Directory, relative to the workspace root."},
    "read": {"path": "File, relative to the workspace root."},
    "ripgrep_fixed": {"case": "How letters match; smart ignores case unless the text has a capital."},
}


def specs(workspace: Workspace) -> Sequence[ToolSpec]:
    """Return the seven tools."""

    def ls(path: str = ".") -> ListResult:
        """List directory contents: directories first, then files, by name."""
        return workspace.ls(path, include_ignored=True)

    def read(
        path: str,
        max_lines: int = _MAX_LINES,
        range: str | None = None,  # noqa: A002 - the contract's name
        show_linenos: bool = True,  # noqa: ARG001 - for the renderer
    ) -> ReadResult:
        """Read file contents."""
        return _read(workspace, path, range, max_lines)

    def ripgrep_files(
        pattern: str, path: str = ".", globs: list[str] | str | None = None, case: Case = "smart"
    ) -> GrepResult:
        """Search files containing matches: their paths."""
        return workspace.grep(
            pattern, path, globs, output_mode="files_with_matches", context=0, **case_options(case)
        )

    def ripgrep_snippets(
        pattern: str, path: str = ".", context_before: int = 0, context_after: int = 0, case: Case = "smart"
    ) -> GrepResult:
        """Search and display matching snippets: one for each matching line."""
        return workspace.grep(
            pattern, path, before=context_before, after=context_after, overlap=True, **case_options(case)
        )

    def ripgrep_count(pattern: str, path: str = ".", case: Case = "smart") -> GrepResult:
        """Count matches in each file, and in all."""
        return workspace.grep(pattern, path, output_mode="count", context=0, **case_options(case))

    def ripgrep_fixed(literal: str, path: str = ".", case: Case = "smart") -> GrepResult:
        """Fixed string search: the text as it is, no regular expression."""
        literal = literal.replace("\r\n", "\n")
        return workspace.grep(
            literal, path, context=0, multiline="\n" in literal, fixed_strings=True, **case_options(case)
        )

    def grep(pattern: str, path: str = ".", rg_args: list[str] | str | None = None) -> GrepResult:
        """Advanced rg search, with some of ripgrep's own arguments."""
        given = read_arguments(rg_args)
        try:
            return workspace.grep(path=path, overlap=True, dot_all=False, **given.grep(pattern))
        except InvalidArgumentError as error:
            if "types" in error.details:
                near = error.details["nearest"] or ("py", "js", "rust")
                hint = f"Pass -t with {' or '.join(near)}, or -g with a glob such as '*.py'."
                raise InvalidArgumentError(error.message, hint=hint, details=error.details) from None
            raise

    limits = workspace.limits
    entries = f"At most {limits.list_entries:,} entries."
    page = f"At most {limits.read_bytes:,} bytes, and {limits.line_chars:,} characters of a line."
    at_most = f"At most {limits.grep_results:,}"
    a_line = f"{limits.grep_line_chars:,} characters of a line"
    around = f"{limits.context_lines:,} lines on either side of a match"
    rg_note = f"rg_args takes `{ALLOWED}`; `--no-ignore -.` searches ignored and hidden files."

    def spec(
        tool: Callable[..., Any],
        bounds: str,
        document: Callable[[Any, RenderContext, Limits], Document],
        **options: Any,
    ) -> ToolSpec:
        """Return a tool, described by its docstring and the bounds of its replies."""
        texts = {**_DESCRIPTIONS, **_OTHER_DESCRIPTIONS.get(tool.__name__, {})}
        return ToolSpec(
            tool,
            description=f"{tool.__doc__}\n{bounds}",
            descriptions={name: texts[name] for name in inspect.signature(tool).parameters},
            render=partial(with_document, document=document, limits=limits),
            **options,
        )

    context = {"before": "context_before", "after": "context_after"}
    return (
        spec(ls, entries, directory, name="list_dir"),
        spec(read, page, file, name="read_file", map_next_call=_follow),
        spec(ripgrep_files, f"{at_most} files.", files),
        spec(ripgrep_snippets, f"{at_most} snippets, {a_line}, and {around}.", snippets, renames=context),
        spec(ripgrep_count, f"{at_most} files; `total_count` is the sum of all.", counts),
        spec(ripgrep_fixed, f"{at_most} matches, and {a_line}.", snippets),
        spec(
            grep,
            f"{at_most} results, {a_line}, and {around}.\n{rg_note}",
            search,
            name="ripgrep_search",
            map_retry=vary,
        ),
    )


def _read(workspace: Workspace, path: str, lines: str | None, max_lines: int) -> ReadResult:
    if max_lines < 0:
        raise must_be("max_lines", "1 or more", max_lines, f"Leave it out for {_MAX_LINES}.")
    first, last = _requested_lines(lines or "~")
    max_lines = max_lines or _MAX_LINES
    limit = max_lines if last is None else min(max_lines, last - first + 1)
    try:
        # A notebook is shown as the text that it is: the document counts its lines.
        found = workspace.read(path, first, limit, raw=path.lower().endswith(".ipynb"))
    except PastEndError as error:
        if "total_lines" in error.details:
            raise past_end_of_lines(error, f"line {first}", "a range that begins at 1 to") from None
        found = workspace.read(path)
        if found.kind != "directory":
            raise
    if found.kind == "directory":
        message = f"{to_json(path)} is a directory."
        raise NotAFileError(message, hint=Advice("Call ", call("ls", path=path), "."))
    if found.next is None or (last is not None and found.end_line >= last):
        return found
    # The continuation ends where the requested range does.
    arguments = {name: value for name, value in found.next["arguments"].items() if name != "limit"}
    arguments |= {} if last is None else {"limit": last - found.end_line}
    arguments |= {} if max_lines == _MAX_LINES else {"max_lines": max_lines}
    following: NextCall = {"name": "read", "arguments": arguments}
    return replace(found, next=following)


def _requested_lines(lines: str) -> tuple[int, int | None]:
    """Return the first and the last line that `range` asks for; None for the end of the file."""
    found = _RANGE.fullmatch(lines if lines.strip() else "~")
    first, last = (int(found[1] or 1), int(found[2]) if found[2] else None) if found else (0, None)
    if first < 1 or (last is not None and last < first):
        raise InvalidArgumentError(
            f"`range` must be lines from 1, first to last, not {literal(lines)}.",
            hint="Pass 10~50, 300~ (to the end), ~20 (the first 20) or ~ (all).",
            details={"argument": "range", "value": lines},
        )
    return first, last


def _follow(call: NextCall) -> Mapping[str, Any] | None:
    """Return the arguments that continue a read, with its lines as a range."""
    arguments = call["arguments"]
    if call["name"] != "read" or "column" in arguments:
        return None
    first, last = arguments.get("offset", 1), last_line(arguments)
    if first < 1:
        return None
    made: dict[str, Any] = {name: value for name, value in arguments.items() if name in ("path", "max_lines")}
    if first == 1 and last is None:
        return made
    return {**made, "range": f"{first}~{'' if last is None else last}"}


DIALECT = Dialect(
    "dominds",
    specs,
    # `max_lines` bounds the lines, and the size of a reply the bytes.
    limits={
        "read_lines": 1_000_000,
        "read_bytes": 100_000,
        "line_overhead": _NUMBER_CHARS,
        "output_tokens": 40_000,
        "context_lines": 100,
    },
    render=render_yaml,
)
