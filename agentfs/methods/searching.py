"""The methods of a workspace that find names and text."""

from collections.abc import Sequence
from os import PathLike
from typing import Literal

from agentfs.enforcement import gated
from agentfs.methods.held import Held
from agentfs.methods.paths import Paths, texts
from agentfs.results import GlobResult, GrepResult, ListResult


class Searching(Held):
    """What is in the tree, and where a text is."""

    @gated("search")
    def ls(
        self,
        path: Paths = ".",
        depth: int = 1,
        limit: int | None = None,
        offset: int = 0,
        include_ignored: bool = False,
        *,
        ignore: str | Sequence[str] | None = None,
        hidden: bool | None = None,
        sort: Literal["name", "modified", "size"] = "name",
    ) -> ListResult:
        """List a directory: directories first, then files, by name.

        Args:
            path: Directory, relative to the workspace root.
            depth: Levels to descend; 0: all.
            limit: Most entries to show.
            offset: Entries to skip.
            include_ignored: Show hidden and gitignored entries too.
            ignore: Globs of entries to leave out.
            hidden: Whether hidden entries are shown; by default as `include_ignored` has it.
            sort: The order within each directory: by name, newest first or largest first.

        Returns:
            The entries, and what was left out.

        Raises:
            AgentFSError: `not_found`, `not_a_directory`, `outside_workspace`, `past_end`.
        """
        from agentfs.search import list_directory

        return self._whole_kept(
            list_directory(
                self._root,
                self.limits,
                texts(path),
                depth,
                limit,
                offset,
                include_ignored,
                ignore=ignore,
                hidden=hidden,
                sort=sort,
            )
        )

    @gated("search")
    def glob(
        self,
        pattern: str,
        path: Paths = ".",
        limit: int | None = None,
        offset: int = 0,
        include_ignored: bool = False,
        *,
        sort: Literal["path", "alphabetical", "modified", "size"] = "path",
        hidden: bool | None = None,
        exclude: str | Sequence[str] | None = None,
        anchored: bool = False,
        types: str | Sequence[str] = "f",
        timeout: float | None = None,
    ) -> GlobResult:
        """Find files by name.

        Args:
            pattern: Glob such as `*.py`, `src/**/test_*.{js,ts}`; without `/` it matches names at any depth.
            path: Directory to search, relative to the workspace root.
            limit: Most files to return.
            offset: Files to skip.
            include_ignored: Search hidden and gitignored files too.
            sort: The order: by path name by name, by path as a plain string, newest first or largest first.
            hidden: Whether hidden files are searched; by default as `include_ignored` has it.
            exclude: Globs of files and directories to leave out.
            anchored: Bind a pattern without `/` to the search directory too.
            types: Letters of what to find: f(ile), d(irectory), l(ink), (e)x(ecutable), e(mpty).
            timeout: Seconds that the search may take, at most 30.

        Returns:
            The files in order of path, and what was left out.

        Raises:
            AgentFSError: `invalid_pattern`, `not_found`, `not_a_directory`, `outside_workspace`, `past_end`.
        """
        from agentfs.search import glob_files

        return self._whole_kept(
            glob_files(
                self._root,
                self.limits,
                pattern,
                texts(path),
                limit,
                offset,
                include_ignored,
                sort=sort,
                hidden=hidden,
                exclude=exclude,
                anchored=anchored,
                types=types,
                timeout=timeout,
            )
        )

    @gated("search")
    def find(
        self,
        path: Paths = ".",
        *,
        pattern: str | None = None,
        glob: str | Sequence[str] | None = None,
        types: str | Sequence[str] | None = None,
        extensions: str | Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
        min_depth: int | None = None,
        max_depth: int | None = None,
        follow_symlinks: bool = False,
        hidden: bool | None = None,
        include_ignored: bool = False,
        size: str | Sequence[str] | None = None,
        changed_within: str | None = None,
        changed_before: str | None = None,
        full_path: bool = False,
        once: bool = False,
        case: Literal["smart", "sensitive", "insensitive"] = "smart",
        sort: Literal["path", "alphabetical", "modified", "size"] = "path",
        limit: int | None = None,
        offset: int = 0,
        timeout: float | None = None,
    ) -> GlobResult:
        """Find files and directories by name, type, size and time.

        Args:
            path: Directory to search, relative to the workspace root.
            pattern: Regular expression to be found in the name.
            glob: Glob that must match, as in `glob`.
            types: Letters of what to find, as in `glob`; by default all.
            extensions: Extensions such as `py` or `tar.gz`.
            exclude: Globs of files and directories to leave out.
            min_depth: First level to show; 1 is what lies in `path` itself.
            max_depth: Last level to show.
            follow_symlinks: Follow links that lead inside the root.
            hidden: Whether hidden names are searched; by default as `include_ignored` has it.
            include_ignored: Search hidden and gitignored names too.
            size: Size such as `+10M` (at least), `-1k` (at most); of regular files.
            changed_within: Only what was changed since: `2d`, `90min`, or a date.
            changed_before: Only what was changed before: `2weeks`, or a date.
            full_path: Look for `pattern` in the path relative to the root.
            once: Find a file that links lead to by the first of its paths only.
            case: How `pattern` takes letters; "smart" ignores case unless there is a capital in it.
            sort: The order: by path name by name, by path as a plain string, newest first or largest first.
            limit: Most entries to return.
            offset: Entries to skip.
            timeout: Seconds that the search may take, at most 30.

        Returns:
            The entries in order of path, and what was left out.

        Raises:
            AgentFSError: As `glob`, and `invalid_argument` for a type, size or time that is none.
        """
        from agentfs.search import find_files

        return self._whole_kept(
            find_files(
                self._root,
                self.limits,
                texts(path),
                pattern=pattern,
                glob=glob,
                types=types,
                extensions=extensions,
                exclude=exclude,
                min_depth=min_depth,
                max_depth=max_depth,
                follow_symlinks=follow_symlinks,
                hidden=hidden,
                include_ignored=include_ignored,
                size=size,
                changed_within=changed_within,
                changed_before=changed_before,
                full_path=full_path,
                once=once,
                case=case,
                sort=sort,
                limit=limit,
                offset=offset,
                timeout=timeout,
            )
        )

    @gated("search")
    def grep(
        self,
        pattern: str,
        path: Paths = ".",
        glob: str | Sequence[str] | None = None,
        type: str | Sequence[str] | None = None,  # noqa: A002 - the contract's name, and ripgrep's
        output_mode: Literal["content", "files_with_matches", "count", "summary", "total"] = "content",
        ignore_case: bool = False,
        context: int | None = None,
        multiline: bool = False,
        limit: int | None = None,
        offset: int = 0,
        include_ignored: bool = False,
        *,
        before: int | None = None,
        after: int | None = None,
        line_numbers: bool = True,
        fixed_strings: bool = False,
        word: bool = False,
        smart_case: bool = False,
        exclude: str | Sequence[str] | None = None,
        files: Sequence[str | PathLike[str]] | GlobResult | None = None,
        hidden: bool | None = None,
        follow_symlinks: bool = False,
        max_depth: int | None = None,
        max_count: int | None = None,
        max_filesize: int | str | None = None,
        encoding: str | None = None,
        sort: Literal["path", "modified", "oldest", "size"] = "path",
        timeout: float | None = None,
        line_ids: bool = False,
        dot_all: bool = True,
        whole_context: bool = False,
        fresh: bool = False,
        samples: int = 3,
        once: bool = False,
    ) -> GrepResult:
        r"""Search the contents of files with a regular expression.

        Args:
            pattern: Regular expression; escape `( ) [ . *` to match them literally.
            path: File or directory to search, relative to the workspace root.
            glob: Only files that match, such as `*.py` or `src/**`.
            type: Only files of a type, such as `py`, `js`, `rust`.
            output_mode: Matching lines, file names, counts per file, counts with samples, or only the total.
            ignore_case: Match upper and lower case alike.
            context: Lines to show around each match.
            multiline: Let a match span lines, and `.` match line ends.
            limit: Most matches, or files, to return.
            offset: Matches, or files, to skip.
            include_ignored: Search hidden and gitignored files too.
            before: Lines to show before each match.
            after: Lines to show after each match.
            fixed_strings: Take the pattern as plain text.
            word: Only matches with no word character on either side.
            smart_case: Match upper and lower case alike unless the pattern has a capital.
            exclude: Globs of files and directories to leave out.
            files: Search these files in place of `path`: their paths, or what `find` has found.
            hidden: Whether hidden files are searched; by default as `include_ignored` has it.
            follow_symlinks: Follow links that lead inside the root.
            max_depth: Last level to search; 1 is what lies in `path` itself.
            max_count: Most matching lines of one file.
            max_filesize: Size of the largest file that is searched: bytes, or such as `500K`, `1M`.
            encoding: Codec of files that are not UTF-8 and have no byte order mark.
            sort: The order of the files: by path, newest, oldest or largest first.
            timeout: Seconds that the search may take, at most 30.
            line_numbers: Whether the text numbers the lines.
            line_ids: Give each matching line an id before its `|`, for edit_lines.
            dot_all: Whether with `multiline` `.` matches line ends.
            whole_context: Give each match all lines around it, also those near another.
            fresh: Give only ids that `edit_lines(fresh=True)` takes, which `read` has given before.
            samples: Matches of each file in a summary.
            once: Search a file that links lead to by the first of its paths only.

        Returns:
            The matches in order of path, with totals, and what was left out.

        Raises:
            AgentFSError: `invalid_pattern` with the place of the mistake, `not_found`, `outside_workspace`,
                `invalid_argument`, `past_end`.
        """
        from agentfs.search import Request, grep, line_id_source

        path = texts(path)
        kept = self._outputs.get(path) if isinstance(path, str) else None
        text = None if kept is None or kept.path else kept.text
        named = line_ids and not text
        request = Request(
            pattern,
            kept.path if kept is not None and kept.path else path,
            glob,
            type,
            output_mode,
            ignore_case,
            context,
            multiline,
            limit,
            offset,
            include_ignored,
            before=before,
            after=after,
            line_numbers=line_numbers,
            fixed_strings=fixed_strings,
            word=word,
            smart_case=smart_case,
            exclude=exclude,
            files=files if files is None or isinstance(files, GlobResult) else texts(files),
            hidden=hidden,
            follow_symlinks=follow_symlinks,
            max_depth=max_depth,
            max_count=max_count,
            max_filesize=max_filesize,
            encoding=encoding,
            sort=sort,
            timeout=timeout,
            dot_all=dot_all,
            whole_context=whole_context,
            samples=samples,
            once=once,
        )
        name_lines = line_id_source(self._root, self._shown, self.limits, fresh=fresh) if named else None
        return self._whole_kept(
            grep(self._root, self.limits, request, kept=text, engine=self.engine, name_lines=name_lines)
        )
