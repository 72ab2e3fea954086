"""The contract of `tree-sitter-analyzer`: the parameters of its three tools, and its output formats."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from agentfs.dialects import toolkit as kit
from agentfs.dialects.tree_sitter_analyzer.wording import own_error

FormatName = Literal["total_only", "count_only_matches", "summary_only", "group_by_file", "full"]
MAX_LIMIT = 10_000
MAX_MATCHES = 2000  # of group_by_file and full
_DEFAULT_LIMIT, _DEFAULT_TIMEOUT_MS = 2000, 4000


class _Format(NamedTuple):
    """The budget of a format in tokens, and its arguments of `grep`."""

    budget: int
    options: Mapping[str, Any]


# Only `Limits` bounds the two without a budget.
REPLY_FORMATS: Mapping[FormatName, _Format] = {
    "total_only": _Format(0, {"output_mode": "total"}),
    "count_only_matches": _Format(200, {"output_mode": "count", "limit": MAX_LIMIT}),
    "summary_only": _Format(2000, {"output_mode": "summary", "limit": MAX_LIMIT}),
    "group_by_file": _Format(10_000, {"limit": MAX_MATCHES}),
    "full": _Format(0, {"limit": MAX_MATCHES}),
}


@dataclass(frozen=True, kw_only=True)
class FileFilter:
    """The parameters of list_files.

    Attributes:
        roots: Directories to search, inside the project.
        pattern: Regular expression to be found in the name of a file; with glob, a glob for the whole name.
        glob: Take pattern as a glob.
        types: What to find: f(ile), d(irectory), l(ink), x (executable), e(mpty).
        extensions: Extensions without the dot, such as py.
        exclude: Globs of files and directories to leave out.
        depth: Levels to descend; 1 is what lies in a root itself.
        follow_symlinks: Follow links that lead inside the project.
        hidden: Search names that begin with a dot too.
        no_ignore: Search names that .gitignore leaves out too.
        size: Sizes such as +10M (at least), -1k (at most); M is 10^6 bytes, Mi 2^20.
        changed_within: Only what was changed since: 2d, 90min, or a date.
        changed_before: Only what was changed before: 2weeks, or a date.
        full_path_match: Look for pattern in the path from the project root.
        absolute: No effect: all paths are absolute.
        limit: Most entries to return, up to 10000.
    """

    roots: list[str]
    pattern: str | None = None
    glob: bool = False
    types: list[str] | None = None
    extensions: list[str] | None = None
    exclude: list[str] | None = None
    depth: int | None = None
    follow_symlinks: bool = False
    hidden: bool = False
    no_ignore: bool = False
    size: list[str] | None = None
    changed_within: str | None = None
    changed_before: str | None = None
    full_path_match: bool = False
    absolute: bool = True
    limit: int = _DEFAULT_LIMIT


@dataclass(frozen=True, kw_only=True)
class ContentQuery:
    """The parameters that both searches of contents have.

    Attributes:
        query: Regular expression to search for, or plain text with regex=false.
        regex: Take query as a regular expression.
        fixed_strings: Take query as plain text.
        word: Only whole words.
        case: How letters match; smart ignores case unless query has a capital.
        multiline: Let a match span lines.
        include_globs: Only files that match one of these globs.
        exclude_globs: Globs of files and directories to leave out of the search.
        max_filesize: Size of the largest file to search, up to 200M; M is 2^20 bytes. Default 10M.
        context_before: Lines to show before each match.
        context_after: Lines to show after each match.
        encoding: Codec of files that are not UTF-8 and have no byte order mark, such as shift_jis.
        max_count: Most matching lines of one file.
        timeout_ms: Milliseconds that the search of contents may take, up to 30000.
        total_only: 🎯 Only the number of matches (~10 tokens): how much is there? `partial`: not
            all files were searched.
        count_only_matches: 🎯 Only the number of matches in each file (~50-200 tokens): where is most?
        summary_only: 🎯 Files with a few sample lines (~500-2000 tokens): what is it like?
        group_by_file: 💡 All matches, each file named once (~2000-10000 tokens): for a review.
        optimize_paths: 💡 Name the common start of all paths once: 10-30% fewer tokens of full results, more
            below a long root, less in other formats.
    """

    query: str
    regex: bool = True
    fixed_strings: bool = False
    word: bool = False
    case: Literal["smart", "insensitive", "sensitive"] = "smart"
    multiline: bool = False
    include_globs: list[str] | None = None
    exclude_globs: list[str] | None = None
    max_filesize: str | None = None
    context_before: int | None = None
    context_after: int | None = None
    encoding: str | None = None
    max_count: int | None = None
    timeout_ms: int = _DEFAULT_TIMEOUT_MS
    total_only: bool = False
    count_only_matches: bool = False
    summary_only: bool = False
    group_by_file: bool = False
    optimize_paths: bool = False

    @property
    def format(self) -> FormatName:
        """The requested format; more than one is an error."""
        given: list[FormatName] = [name for name in REPLY_FORMATS if getattr(self, name, False)]
        if len(given) > 1:
            raise own_error("formats", given[0], given=", ".join(given))
        return given[0] if given else "full"


@dataclass(frozen=True, kw_only=True)
class SearchContent(ContentQuery):
    """The parameters of search_content.

    Attributes:
        roots: Directories to search, inside the project.
        files: Files to search, in place of roots.
        follow_symlinks: Follow links that lead inside the project.
        hidden: Search names that begin with a dot too.
        no_ignore: Search names that .gitignore leaves out too.
    """

    roots: list[str] | None = None
    files: list[str] | None = None
    follow_symlinks: bool = False
    hidden: bool = False
    no_ignore: bool = False


@dataclass(frozen=True, kw_only=True)
class FindAndGrep(ContentQuery, FileFilter):
    """The parameters of find_and_grep.

    Attributes:
        types: Which files: f(ile), l(ink), x (executable), e(mpty).
        limit: Most files to search, the first in the order of sort; up to 10000.
        sort: Order of the files: by path, newest first, or largest first.
    """

    limit: Annotated[int, kit.Name("file_limit")] = _DEFAULT_LIMIT
    sort: Literal["path", "mtime", "size"] = "path"
