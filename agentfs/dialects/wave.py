"""`wave`: Read, Write, Edit, MultiEdit, LS, Glob and Grep, also what Claude Code's models know.

The contract is in `docs/dialects/wave.md`, statement by statement. The text of a result is the workspace's
own: the document does not fix it. No `from __future__ import annotations`: the hints become schemas.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from agentfs.dialects.dialect import Dialect
from agentfs.errors import AlreadyExistsError
from agentfs.results import Edit, EditResult, GrepResult, ListResult, ToolResult, WriteResult
from agentfs.tools.offer import RenderContext, ToolOffer
from agentfs.workspace import Workspace

_FILE = {"path": "file_path"}
_FILE_TOLD = {"path": "File, absolute or relative to the working directory."}


@dataclass(frozen=True)
class WaveResult(ToolResult):
    """A result whose wire form is the document's."""

    def to_dict(self) -> dict[str, Any]:
        """Return `success` and `content`, and of the other fields of the document those there are."""
        optional = {
            "shortResult": self.short_result,
            "error": self.error["message"] if self.error else None,
            "images": [{"data": image.data, "mediaType": image.media_type} for image in self.images],
            "filePath": self.file_path,
        }
        there = {name: value for name, value in optional.items() if value}
        return {"success": self.success, "content": self.content, **there}


def wave_result(answer: RenderContext) -> WaveResult:
    """Return the result as one of this dialect.

    Args:
        answer: What a renderer is given.
    """
    result = answer.result
    return WaveResult(**{field.name: getattr(result, field.name) for field in fields(result)})


def offers(workspace: Workspace) -> Sequence[ToolOffer]:
    """Make the seven tools.

    Args:
        workspace: The workspace.
    """

    def ls(path: str, ignore: list[str] | None = None) -> ListResult:
        """List a directory: directories first, then files, by name.

        Args:
            path: Directory, absolute or relative to the working directory.
            ignore: Globs of entries to leave out.
        """
        return workspace.ls(path=path, ignore=ignore)

    def grep(
        pattern: str,
        path: str = ".",
        glob: str | None = None,
        output_mode: Literal["content", "files_with_matches", "count"] = "files_with_matches",
        before: int | None = None,
        after: int | None = None,
        context: int | None = None,
        line_numbers: bool = True,
        ignore_case: bool = False,
        type: str | None = None,  # noqa: A002 - the contract's name
        limit: int | None = None,
        multiline: bool = False,
    ) -> GrepResult:
        r"""Search the contents of files with a regular expression.

        Args:
            pattern: Regular expression; escape `( ) [ . *` to match them literally.
            path: File or directory to search, absolute or relative to the working directory.
            glob: Only files that match, such as `*.py` or `src/**`.
            output_mode: File names, matching lines, or the number of matching lines in each file.
            before: Lines to show before each match, with output_mode content.
            after: Lines to show after each match, with output_mode content.
            context: Lines to show on either side of each match, with output_mode content.
            line_numbers: Number the lines, with output_mode content.
            ignore_case: Match upper and lower case alike.
            type: Only files of a type, such as `py`, `js`, `rust`.
            limit: Most entries of the output mode to return: files, or matches. 0: as many as usual.
            multiline: Let a match span lines, and `.` match line ends.
        """
        around = context if (context, before, after) != (None, None, None) else 0
        return workspace.grep(
            pattern=pattern, path=path, glob=glob, type=type, output_mode=output_mode, context=around,
            before=before, after=after, line_numbers=line_numbers, ignore_case=ignore_case,
            multiline=multiline, limit=limit or None,
        )  # fmt: skip

    def edit(
        path: str, old_string: str, new_string: str, replace_all: bool = False
    ) -> EditResult | WriteResult:
        """Replace a piece of text in a file; everything else stays as it is.

        Args:
            path: File, absolute or relative to the working directory.
            old_string: The text to replace, as the file has it, without line numbers; it must occur exactly
                once, so include enough lines around it. An empty one creates a missing file.
            new_string: The text to put in its place.
            replace_all: Replace every occurrence.
        """
        created = None if old_string else _created(workspace, path, new_string)
        return created or workspace.edit(path, old_string, new_string, replace_all)

    def multi_edit(path: str, edits: list[Edit]) -> EditResult | WriteResult:
        """Make several replacements in one file, in order, each on the outcome of the one before.

        All are made, or none.

        Args:
            path: File, absolute or relative to the working directory.
            edits: The replacements, each as in Edit.
        """
        if not edits or edits[0].old_string:
            return workspace.multi_edit(path, edits)
        with workspace.transaction() as changes:
            created = _created(changes, path, edits[0].new_string)
            if created is not None and not edits[1:]:
                return created
            return changes.multi_edit(path, edits[1:] if created else edits)

    return (
        ToolOffer(workspace.read, name="Read", parameters=_FILE, descriptions=_FILE_TOLD),
        ToolOffer(
            workspace.write,
            name="Write",
            parameters=_FILE,
            description="Create a file, or replace one you have read whole; "
            "to change parts of a file, use Edit.",
            descriptions={
                **_FILE_TOLD,
                "content": "The whole text of the file, with the line ends to write.",
            },
            preset={"newline": "given"},
        ),
        ToolOffer(edit, name="Edit", parameters=_FILE, effect="edit"),
        ToolOffer(multi_edit, name="MultiEdit", parameters=_FILE, effect="edit"),
        ToolOffer(ls, name="LS"),
        ToolOffer(
            workspace.glob,
            name="Glob",
            descriptions={"path": "Directory to search, absolute or relative to the working directory."},
            hide=("limit", "offset", "include_ignored"),
        ),
        ToolOffer(
            grep,
            name="Grep",
            parameters={
                "before": "-B",
                "after": "-A",
                "context": "-C",
                "line_numbers": "-n",
                "ignore_case": "-i",
                "limit": "head_limit",
            },
        ),
    )


def _created(workspace: Workspace, path: str, content: str) -> WriteResult | None:
    """Create a file, as an edit of an empty text asks for, or return None where one exists."""
    try:
        return workspace.write(path, content, overwrite=False, newline="given")
    except AlreadyExistsError:
        return None


DIALECT = Dialect("wave", offers, render=wave_result)
