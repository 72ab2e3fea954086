"""The methods of a workspace that change files."""

from collections.abc import Callable, Mapping, Sequence
from os import fspath
from typing import Annotated, Any, Literal, TypeAlias, cast

from agentfs.enforcement import gated
from agentfs.methods.held import Held
from agentfs.methods.paths import Path
from agentfs.results import DeleteResult, Edit, EditResult, LineChange, MoveResult, WriteResult
from agentfs.tools.model_type import ShownAs

# A mapping with the fields of one is as good; the methods are given the objects.
Edits: TypeAlias = Annotated[Sequence[Edit | Mapping[str, Any]], ShownAs(list[Edit])]
LineChanges: TypeAlias = Annotated[Sequence[LineChange | Mapping[str, Any]], ShownAs(list[LineChange])]


class Changing(Held):
    """What is done to files; each change is whole or not at all, and a step of the journal."""

    @gated("write")
    def write(
        self,
        path: Path,
        content: str,
        *,
        overwrite: bool | None = None,
        encoding: str | None = None,
        newline: Literal["keep", "given", "\n", "\r\n", "\r"] = "keep",
        preview: bool = False,
    ) -> WriteResult:
        r"""Create a file, or replace one you have read whole; to change parts of a file, use edit.

        Args:
            path: File, relative to the workspace root; missing directories are made.
            content: The whole text of the file.
            overwrite: Whether an existing file is replaced, seen or not; None leaves it to the policy.
            encoding: The codec to write in; None for that of the file, or UTF-8. One that writes a byte order
                mark in Python (such as `utf-8-sig`) does so here.
            newline: The line ends: `keep` makes them CRLF where the file was CRLF throughout, `given` leaves
                the content as it is, and a line end is what all of them become. With `given` and an encoding
                nothing of the old file is kept, its byte order mark neither.
            preview: Return the result and write nothing.

        Returns:
            The change as a unified diff.

        Raises:
            AgentFSError: `unread` for an existing file that this workspace has not shown whole, `stale` for
                one that has changed since, `already_exists`, `encoding`, `read_only`, `outside_workspace`,
                `not_a_file`.
        """
        from agentfs.editing import WriteTerms, write_file

        terms = WriteTerms(overwrite, encoding, newline, preview)
        return write_file(self._root, self._shown, self.limits, fspath(path), content, terms)

    @gated("edit")
    def edit(
        self,
        path: Path,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
        *,
        expect_revision: str | None = None,
        match: Literal["tolerant", "exact"] | None = None,
        encoding: str | None = None,
        preview: bool = False,
    ) -> EditResult:
        """Replace a piece of text in a file; everything else stays as it is.

        Args:
            path: File, relative to the workspace root.
            old_string: The text to replace, as the file has it, without line numbers; it must occur exactly
                once, so include enough lines around it.
            new_string: The text to put in its place.
            replace_all: Replace every occurrence.
            expect_revision: The only version of the file to change, as `read` names it.
            match: Whether an old text that is not there exactly may be found but for white space and the
                like, at one place only; None leaves it to the policy.
            encoding: The codec of the file; None to go by its byte order mark, else UTF-8.
            preview: Return the result and write nothing.

        Returns:
            The change as a unified diff.

        Raises:
            AgentFSError: `no_match`, `ambiguous` with each place, `no_change`, `stale` for another version
                than expected, `binary`, `encoding`, `too_large`, `read_only`, `not_found`.
        """
        from agentfs.editing import EditOptions, edit_file

        edits = [Edit(old_string, new_string, replace_all)]
        terms = EditOptions(encoding, expect_revision, preview)
        return edit_file(self._root, self._shown, self.limits, fspath(path), edits, terms=terms, match=match)

    @gated("edit")
    def multi_edit(
        self,
        path: Path,
        edits: Edits,
        *,
        expect_revision: str | None = None,
        match: Literal["tolerant", "exact"] | None = None,
        encoding: str | None = None,
        preview: bool = False,
    ) -> EditResult:
        """Make several replacements in one file, in order, each on the outcome of the one before.

        All are made, or none.

        Args:
            path: File, relative to the workspace root.
            edits: The replacements, each as in edit.
            expect_revision: The only version of the file to change, as `read` names it.
            match: Whether an old text that is not there exactly may be found but for white space and the
                like, at one place only; None leaves it to the policy.
            encoding: The codec of the file; None to go by its byte order mark, else UTF-8.
            preview: Return the result and write nothing.

        Returns:
            The change as a unified diff.

        Raises:
            AgentFSError: As `edit`, naming the edit that failed.
        """
        from agentfs.editing import EditOptions, edit_file

        terms = EditOptions(encoding, expect_revision, preview)
        made = cast("Sequence[Edit]", edits)
        return edit_file(self._root, self._shown, self.limits, fspath(path), made, terms=terms, match=match)

    @gated("edit")
    def edit_lines(
        self,
        path: Path,
        changes: LineChanges,
        *,
        expect_revision: str | None = None,
        encoding: str | None = None,
        preview: bool = False,
        fresh: bool = False,
    ) -> EditResult:
        """Replace lines of a file, named by the ids that read and grep show; all are replaced, or none.

        Args:
            path: File, relative to the workspace root.
            changes: The lines to replace, and what to put there.
            expect_revision: The only version of the file to change, as `read` names it.
            encoding: The codec of the file; None to go by its byte order mark, else UTF-8.
            preview: Return the result and write nothing.
            fresh: Take only ids that a read has given of the version that stands there, and since this
                workspace changed the file last; otherwise lines that are still the same keep their ids.

        Returns:
            The change as a unified diff.

        Raises:
            AgentFSError: `unread` where no ids were given, `unknown_line` and `stale` with the current ids,
                `overlap`, `invalid_argument`, and what `edit` raises.
        """
        from agentfs.editing import EditOptions, edit_lines_file

        terms = EditOptions(encoding, expect_revision, preview)
        made = cast("Sequence[LineChange]", changes)
        return edit_lines_file(
            self._root, self._shown, self.limits, fspath(path), made, terms=terms, fresh=fresh
        )

    @gated("edit")
    def splice(
        self,
        path: Path,
        spans: Sequence[tuple[int, int, str]] | Callable[[str], Sequence[tuple[int, int, str]]],
        *,
        expect_revision: str | None = None,
        encoding: str | None = None,
        preview: bool = False,
    ) -> EditResult:
        r"""Replace ranges of characters; for programs, which know offsets. It is no tool for models.

        Args:
            path: File, relative to the workspace root.
            spans: Start, end and new text of each range. Offsets are those of the text with every line end as
                one `\n`, from 0, before any of the changes; they may come in any order. Or a function that
                makes them of that text, which is then not shown to anyone.
            expect_revision: The only version of the file to change, as `read` names it.
            encoding: The codec of the file; None to go by its byte order mark, else UTF-8.
            preview: Return the result and write nothing.

        Returns:
            The change as a unified diff.

        Raises:
            AgentFSError: `invalid_argument` for a range that does not lie in the text, `overlap`, and what
                `edit` raises.
        """
        from agentfs.editing import EditOptions, splice_file

        terms = EditOptions(encoding, expect_revision, preview)
        return splice_file(self._root, self._shown, self.limits, fspath(path), spans, terms=terms)

    @gated("change")
    def delete(self, path: Path) -> DeleteResult:
        """Delete a file that you have read, a link, or an empty directory; undo brings it back.

        Args:
            path: File, link or empty directory, relative to the workspace root.

        Returns:
            What was deleted.

        Raises:
            AgentFSError: `unread` for a file that this workspace has not shown whole, `stale` for one that
                has changed since, `not_a_file` for a directory with something in it, `refused`, `read_only`.
        """
        from agentfs.editing import delete_path

        return delete_path(self._root, self._shown, self.limits, fspath(path))

    @gated("change")
    def move(self, path: Path, to: Path) -> MoveResult:
        """Move or rename a file or link.

        Args:
            path: File or link, relative to the workspace root.
            to: Its new path, where nothing may be yet; missing directories are made.

        Returns:
            What was moved.

        Raises:
            AgentFSError: `already_exists` where something is, `not_a_file` for a directory, `not_found`,
                `too_large`, `read_only`.
        """
        from agentfs.editing import move_path

        return move_path(self._root, self._shown, self.limits, fspath(path), fspath(to))
