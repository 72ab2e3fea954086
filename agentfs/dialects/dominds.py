"""`dominds`: list_dir, read_file and five ripgrep_* tools, whose answers are YAML.

The contract is in `docs/dialects/dominds.md`, statement by statement. No `from __future__ import
annotations`: the hints become schemas.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from agentfs.dialects.dialect import Dialect
from agentfs.dialects.dominds_answers import Documents, as_yaml
from agentfs.dialects.rendering import past_end
from agentfs.dialects.rg_args import ALLOWED, read_arguments, retried
from agentfs.errors import InvalidArgumentError, NotAFileError, PastEndError
from agentfs.messages import Message, NextCall, call
from agentfs.results import GrepResult, ListResult, ReadResult
from agentfs.tools.offer import ToolOffer
from agentfs.visible import literal, to_json
from agentfs.workspace import Workspace

Case = Literal["smart", "sensitive", "insensitive"]

_MAX_LINES = 500
_AROUND = {"before": "context_before", "after": "context_after"}
_RANGE = re.compile(r"\s*([0-9]{0,9})\s*~\s*([0-9]{0,9})\s*")
# Besides each line stands its number, and the indentation of the block.
_ROOM = 8


class _Lines(NamedTuple):
    """The lines that a call asks for: from the first to the last, and at most so many."""

    first: int
    last: int | None
    most: int


def offers(workspace: Workspace) -> Sequence[ToolOffer]:
    """Make the seven tools.

    Args:
        workspace: The workspace.
    """

    def ls(path: str = ".") -> ListResult:
        """List directory contents: directories first, then files, by name.

        Args:
            path: Directory, relative to the workspace root.
        """
        return workspace.ls(path, include_ignored=True)

    def read(
        path: str,
        max_lines: int = _MAX_LINES,
        range: str | None = None,  # noqa: A002 - the contract's name
        show_linenos: bool = True,  # noqa: ARG001 - for the renderer
    ) -> ReadResult:
        """Read file contents.

        Args:
            path: File, relative to the workspace root.
            max_lines: Most lines to show, of a range too.
            range: Lines to show, from 1: `10~50`, `300~` (to the end), `~20` (the first 20) or `~` (all).
            show_linenos: Put its number before each line.
        """
        return _read(workspace, path, _asked(range, max_lines))

    def ripgrep_files(
        pattern: str, path: str = ".", globs: list[str] | str | None = None, case: Case = "smart"
    ) -> GrepResult:
        r"""Search files containing matches: their paths.

        Args:
            pattern: Regular expression; escape `( ) [ . *` to match them literally.
            path: File or directory to search, relative to the workspace root.
            globs: Only files that match one, such as `*.py` or `src/**`; `!*.md` leaves out.
            case: How letters match; smart ignores case unless the pattern has a capital.
        """
        return workspace.grep(
            pattern, path, globs, output_mode="files_with_matches", context=0, **_cased(case)
        )

    def ripgrep_snippets(
        pattern: str, path: str = ".", context_before: int = 0, context_after: int = 0, case: Case = "smart"
    ) -> GrepResult:
        r"""Search and display matching snippets: one for each matching line.

        Args:
            pattern: Regular expression; escape `( ) [ . *` to match them literally.
            path: File or directory to search, relative to the workspace root.
            context_before: Lines to show before each match.
            context_after: Lines to show after each match.
            case: How letters match; smart ignores case unless the pattern has a capital.
        """
        return workspace.grep(
            pattern, path, before=context_before, after=context_after, whole_context=True, **_cased(case)
        )

    def ripgrep_count(pattern: str, path: str = ".", case: Case = "smart") -> GrepResult:
        r"""Count matches in each file, and in all.

        Args:
            pattern: Regular expression; escape `( ) [ . *` to match them literally.
            path: File or directory to search, relative to the workspace root.
            case: How letters match; smart ignores case unless the pattern has a capital.
        """
        return workspace.grep(pattern, path, output_mode="count", context=0, **_cased(case))

    def ripgrep_fixed(literal: str, path: str = ".", case: Case = "smart") -> GrepResult:
        """Fixed string search: the text as it is, no regular expression.

        Args:
            literal: Text to search for; it may span lines.
            path: File or directory to search, relative to the workspace root.
            case: How letters match; smart ignores case unless the text has a capital.
        """
        literal = literal.replace("\r\n", "\n")
        return workspace.grep(
            literal, path, context=0, multiline="\n" in literal, fixed_strings=True, **_cased(case)
        )

    def grep(pattern: str, path: str = ".", rg_args: list[str] | str | None = None) -> GrepResult:
        r"""Advanced rg search, with some of ripgrep's own arguments.

        Args:
            pattern: Regular expression; escape `( ) [ . *` to match them literally.
            path: File or directory to search, relative to the workspace root.
            rg_args: More rg arguments, such as `-i -C2 -g '*.py'`.
        """
        asked = read_arguments(rg_args).grep(pattern)
        try:
            return workspace.grep(path=path, whole_context=True, **asked)
        except InvalidArgumentError as error:
            if "types" in error.details:
                near = error.details["nearest"] or ("py", "js", "rust")
                hint = f"Pass -t with {' or '.join(near)}, or -g with a glob such as '*.py'."
                raise InvalidArgumentError(error.message, hint=hint, details=error.details) from None
            raise

    limits = workspace.limits
    documents = Documents(limits)
    at_most = f"At most {limits.grep_results:,}"
    a_line = f"{limits.grep_line_chars:,} characters of a line"
    around = f"{limits.context_lines:,} lines on either side of a match"
    return (
        ToolOffer(ls, name="list_dir", render=documents.list_dir, description=_described(
            ls, f"At most {limits.list_entries:,} entries.")),
        ToolOffer(read, name="read_file", follow=_follow, render=documents.read_file, description=_described(
            read, f"At most {limits.read_bytes:,} bytes, and {limits.line_chars:,} characters of a line.")),
        ToolOffer(ripgrep_files, render=documents.ripgrep_files, description=_described(
            ripgrep_files, f"{at_most} files.")),
        ToolOffer(
            ripgrep_snippets, renames=_AROUND, render=documents.ripgrep_snippets, description=_described(
            ripgrep_snippets, f"{at_most} snippets, {a_line}, and {around}.")),
        ToolOffer(ripgrep_count, render=documents.ripgrep_count, description=_described(
            ripgrep_count, f"{at_most} files; `total_count` is the sum of all.")),
        ToolOffer(ripgrep_fixed, render=documents.ripgrep_fixed, description=_described(
            ripgrep_fixed, f"{at_most} matches, and {a_line}.")),
        ToolOffer(grep, name="ripgrep_search", render=documents.ripgrep_search, vary=retried, description=
            _described(grep, f"{at_most} results, {a_line}, and {around}.\nrg_args takes `{ALLOWED}`; "
            "`--no-ignore -.` searches ignored and hidden files.")),
    )  # fmt: skip


def _described(tool: Callable[..., Any], bounds: str) -> str:
    """Return the description of a tool: the first line of its docstring, and the bounds of its answers."""
    return f"{inspect.getdoc(tool)}".partition("\n")[0] + f"\n{bounds}"


def _cased(case: Case) -> dict[str, Any]:
    """Return the arguments of `grep` for how letters match."""
    return {"ignore_case": case == "insensitive", "smart_case": case == "smart"}


def _read(workspace: Workspace, path: str, lines: _Lines) -> ReadResult:
    first, last, most = lines
    limit = most if last is None else min(most, last - first + 1)
    try:
        # Of a notebook the text is shown, whose lines the document counts.
        found = workspace.read(path, first, limit, raw=path.lower().endswith(".ipynb"), room=_ROOM)
    except PastEndError as error:
        if "total_lines" in error.details:
            raise past_end(error, f"line {first}", "a range that begins at 1 to") from None
        found = workspace.read(path)
        if found.kind != "directory":
            raise
    if found.kind == "directory":
        shown = to_json(path)
        raise NotAFileError(f"{shown} is a directory.", hint=Message("Call ", call("ls", path=path), "."))
    if found.next is None or (last is not None and found.end_line >= last):
        return found
    # What was asked for goes on to its own end.
    arguments = {name: value for name, value in found.next["arguments"].items() if name != "limit"}
    arguments |= {} if last is None else {"limit": last - found.end_line}
    arguments |= {} if most == _MAX_LINES else {"max_lines": most}
    following: NextCall = {"name": "read", "arguments": arguments}
    return replace(found, next=following)


def _asked(lines: str | None, max_lines: int) -> _Lines:
    """Return the lines that `range` and `max_lines` ask for."""
    if max_lines < 0:
        raise InvalidArgumentError(
            f"`max_lines` must be 1 or more, not {max_lines}.",
            hint=f"Leave it out for {_MAX_LINES}.",
            details={"argument": "max_lines"},
        )
    if lines is None or not lines.strip():
        return _Lines(1, None, max_lines or _MAX_LINES)
    found = _RANGE.fullmatch(lines)
    first, last = (int(found[1] or 1), int(found[2]) if found[2] else None) if found else (0, None)
    if first < 1 or (last is not None and last < first):
        raise InvalidArgumentError(
            f"`range` must be lines from 1, first to last, not {literal(lines)}.",
            hint="Pass 10~50, 300~ (to the end), ~20 (the first 20) or ~ (all).",
            details={"argument": "range", "value": lines},
        )
    return _Lines(first, last, max_lines or _MAX_LINES)


def _follow(call: NextCall) -> Mapping[str, Any] | None:
    """Turn the call that goes on with a read into a range."""
    arguments = call["arguments"]
    if call["name"] != "read":
        return None
    first, limit = arguments.get("offset", 1), arguments.get("limit")
    if first < 1:
        return None
    bound: dict[str, Any] = {"path": arguments["path"]}
    if "max_lines" in arguments:
        bound["max_lines"] = arguments["max_lines"]
    if first == 1 and limit is None:
        return bound
    return {**bound, "range": f"{first}~{'' if limit is None else first + limit - 1}"}


DIALECT = Dialect(
    "dominds",
    offers,
    # Lines are bounded by `max_lines`, and bytes by what an answer can hold.
    limits={"read_lines": 1_000_000, "read_bytes": 100_000, "output_tokens": 40_000, "context_lines": 100},
    render=as_yaml,
)
