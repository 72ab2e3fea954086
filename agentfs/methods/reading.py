"""The methods of a workspace that read files."""

import time
from os import fspath

from agentfs import call_context
from agentfs.enforcement import gated
from agentfs.errors import NotAFileError, NotFoundError
from agentfs.limits import Limits
from agentfs.methods.held import Held
from agentfs.methods.paths import Files, Path, texts
from agentfs.results import ReadManyResult, ReadResult

# Of one glob: more than any budget has room for.
_MOST_NAMED = 10_000


class Reading(Held):
    """What is in files, page by page."""

    @gated("read")
    def read(
        self,
        path: Path,
        offset: int = 1,
        limit: int | None = None,
        *,
        line_ids: bool = False,
        encoding: str | None = None,
        raw: bool = False,
        column: int = 1,
        room: int | None = None,
    ) -> ReadResult:
        """Read a file; each line of text is shown as its number, `|`, and the line.

        Args:
            path: File, relative to the workspace root.
            offset: First line, from 1; negative counts from the end (-20: the last 20).
            limit: Most lines to show; by default as many as fit.
            line_ids: Show an id before the `|` of each line, for edit_lines.
            encoding: The encoding of the text, where it is not to be told from the bytes.
            raw: Show a notebook as its JSON, and what is no text in hexadecimal.
            column: First character of each line to show, from 1.
            room: Bytes that a program needs beside each line and its id, if it lays out `content` by itself;
                the byte budget then counts the lines as they are.

        Returns:
            The lines, with the facts about the file and the call that shows what follows. Images are in
            `images`; of a notebook `offset` and `limit` count cells, of a PDF pages. A directory is listed.

        Raises:
            AgentFSError: `not_found` with the nearest names, `outside_workspace`, `past_end` with the number
                of lines, `invalid_argument` for an offset of 0, `encoding`, `binary` for a broken PDF.
        """
        from agentfs.reading import directory_answer, read_file, read_kept

        path = fspath(path)
        kept = self._outputs.get(path)
        if kept is not None and not kept.path:
            return read_kept(
                path,
                kept.text,
                self.limits,
                offset,
                limit,
                line_ids=line_ids,
                encoding=encoding,
                raw=raw,
                column=column,
                room=room,
            )
        try:
            return read_file(
                self._root,
                self._shown,
                self.limits,
                kept.path if kept is not None else path,
                offset,
                limit,
                line_ids=line_ids,
                encoding=encoding,
                raw=raw,
                column=column,
                room=room,
                indexes=self._indexes,
            )
        except NotAFileError:
            from agentfs.search import list_directory

            listing = list_directory(
                self._root, self.limits, path, 1, limit, max(offset - 1, 0), include_ignored=False
            )
            return directory_answer(path, listing)
        except NotFoundError as error:
            from agentfs.search import add_suggestions

            add_suggestions(self._root, path, error)
            raise

    @gated("read")
    def read_many(self, paths: Files, budget: int | None = None) -> ReadManyResult:
        """Read several files in one call, each under its path.

        Args:
            paths: Files, or globs such as `src/*.py`, relative to the workspace root.
            budget: Most tokens of the whole answer.

        Returns:
            The files as `read` shows them, and the call for those that the budget or the time left out.

        Raises:
            AgentFSError: `invalid_pattern`, `outside_workspace`, `invalid_argument` for a bad budget. What
                is wrong with one file stands in its place in the answer.
        """
        from agentfs.fs import quote
        from agentfs.reading import read_file, read_several
        from agentfs.search import glob_files

        until = call_context.deadline(self.limits.timeout / 2)  # the rest is for reading
        named: list[str] = []
        notes: list[str] = []
        given = texts(paths)
        asked = [given] if isinstance(given, str) else given
        for number, path in enumerate(asked):
            if time.monotonic() > until:
                patterns = asked[number:]
                break
            if any(mark in path for mark in "*?[{") and not self._root.exists(path):
                found = glob_files(self._root, self.limits, path, limit=_MOST_NAMED)
                named += [entry.path for entry in found.files]
                if found.truncated or not found.exact:
                    notes.append(f"{quote(path)} matches more files; narrow it")
            else:
                named.append(path)
        else:
            patterns = []

        def read(path: str, limits: Limits) -> ReadResult:
            return read_file(self._root, self._shown, limits, path, indexes=self._indexes)

        return read_several(read, list(dict.fromkeys(named)), self.limits, budget, patterns, notes)
