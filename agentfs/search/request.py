"""What one search of contents was asked for: its arguments checked, and the call that goes on."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from agentfs.errors import InvalidArgumentError
from agentfs.limits import HARD_FILE_BYTES, Limits
from agentfs.messages import Message, NextCall, ParameterName
from agentfs.patterns.compile import Pattern, compile_pattern, escape
from agentfs.patterns.syntax import has_capital
from agentfs.policy import NO_DIALECT, DialectOptions
from agentfs.results import GlobResult
from agentfs.search.filters import parse_filesize
from agentfs.search.paging import check_choice, check_timeout, next_page, paths_of
from agentfs.text import codec_name

OutputMode = Literal["content", "files_with_matches", "count", "summary", "total"]
Sort = Literal["path", "modified", "oldest", "size"]
Engine = Literal["python", "ripgrep"]
OneOrMore = str | Sequence[str]


@dataclass(frozen=True)
class Request:
    """The arguments of one search, as they were given.

    Attributes:
        pattern: The regular expression; each line is matched alone unless `multiline`.
        path: The file or directory to search, or several; searched even if it is hidden or ignored.
        glob: Only files that match, by their path below `path`; of no meaning for a single file.
        type: Only files of these types; of no meaning for a single file.
        output_mode: What the entries are: matching lines, files, or none but the totals.
        ignore_case: Match letters in either case.
        context: Lines to show on either side; None shows some when very little is found.
        multiline: Let a match span lines.
        limit: Most entries to return.
        offset: Entries to leave out before the first.
        include_ignored: Search hidden and ignored files too.
        before: Lines to show before a match; None: as `context`.
        after: Lines to show after a match; None: as `context`.
        fixed_strings: Whether the pattern is plain text.
        word: Only matches with no word character on either side.
        smart_case: Match letters in either case unless the pattern has a capital.
        exclude: Globs of what is left out; an excluded directory is not entered.
        files: These files, in this order, in place of `path`; globs are then tested from the root. Of what
            `find` has found, what is gone since is left out.
        hidden: Whether hidden files are searched; None: as `include_ignored`.
        follow_symlinks: Whether links are followed where they lead inside.
        max_depth: The last level; 1 is what lies in `path` itself.
        max_count: Matching lines of one file after which it is left.
        max_filesize: The size of the largest file searched, such as `1M`; None: as the limits have it.
        encoding: The codec of files that have no byte order mark and are not UTF-8.
        sort: The order of the files.
        timeout: Seconds that the search may take; None: as the limits have it.
        line_numbers: Whether the text numbers the lines.
        dialect: What a dialect asks for besides.

    Raises:
        InvalidArgumentError: `invalid_argument`: a value is none of those there are, or out of range.
    """

    pattern: str
    path: OneOrMore = "."
    glob: OneOrMore | None = None
    type: OneOrMore | None = None
    output_mode: OutputMode = "content"
    ignore_case: bool = False
    context: int | None = None
    multiline: bool = False
    limit: int | None = None
    offset: int = 0
    include_ignored: bool = False
    before: int | None = None
    after: int | None = None
    fixed_strings: bool = False
    word: bool = False
    smart_case: bool = False
    exclude: OneOrMore | None = None
    files: Sequence[str] | GlobResult | None = None
    hidden: bool | None = None
    follow_symlinks: bool = False
    max_depth: int | None = None
    max_count: int | None = None
    max_filesize: int | str | None = None
    encoding: str | None = None
    sort: Sort = "path"
    timeout: float | None = None
    line_numbers: bool = True
    dialect: DialectOptions = NO_DIALECT

    def __post_init__(self) -> None:
        check_choice("output_mode", self.output_mode, get_args(OutputMode))
        check_choice("sort", self.sort, get_args(Sort))
        for name in ("context", "before", "after"):
            self._at_least(name, 0, "Leave it out for the usual number of lines.")
        for name in ("max_depth", "max_count"):
            self._at_least(name, 1, "Leave it out for no such bound.")
        if self.max_filesize is not None:
            parse_filesize(self.max_filesize)
        if self.encoding is not None:
            codec_name(self.encoding)

    def _at_least(self, name: str, least: int, hint: str) -> None:
        value = getattr(self, name)
        if value is not None and value < least:
            raise InvalidArgumentError(
                Message(ParameterName(name, quoted=True), f" must be {least} or more, not {value}."),
                hint=hint,
                details={"argument": name},
            )

    @property
    def paths(self) -> list[str]:
        """The paths to search."""
        return paths_of(self.path)

    @property
    def listed(self) -> list[str] | None:
        """The files to search in place of `paths`, or None."""
        if isinstance(self.files, GlobResult):
            return [entry.path for entry in self.files.files if not entry.is_dir]
        return None if self.files is None else list(dict.fromkeys(self.files))

    @property
    def places(self) -> list[str]:
        """What was asked for, to be named in the answer: files, or paths."""
        named = None if isinstance(self.files, GlobResult) else self.listed
        return named or self.paths

    @property
    def opens_hidden(self) -> bool:
        """Whether hidden names are searched."""
        return self.include_ignored if self.hidden is None else self.hidden

    def seconds(self, limits: Limits) -> float:
        """Return the seconds that the search may take."""
        return check_timeout(self.timeout, limits.timeout)

    def file_bytes(self, limits: Limits) -> int:
        """Return the size of the largest file that is searched."""
        if self.max_filesize is None:
            return limits.file_bytes
        return min(parse_filesize(self.max_filesize), HARD_FILE_BYTES)

    def around(self, limits: Limits) -> tuple[int, int]:
        """Return the lines to show before and after each match."""
        asked = self.context or 0
        before = asked if self.before is None else self.before
        after = asked if self.after is None else self.after
        return min(before, limits.context_lines), min(after, limits.context_lines)

    @property
    def asks_context(self) -> bool:
        """Whether the lines around a match were asked for, even none of them."""
        return not (self.context is None and self.before is None and self.after is None)

    def compiled(self) -> Pattern:
        """Make the pattern ready."""
        written = escape(self.pattern) if self.fixed_strings else self.pattern
        ignore_case = self.ignore_case or (self.smart_case and not has_capital(written))
        multiline, dot_all = self.multiline, self.dialect.dot_all
        compiled = compile_pattern(written, ignore_case=ignore_case, multiline=multiline, dot_all=dot_all)
        if self.word:
            # What was wrong with it has been said in terms of the pattern as it was written.
            flags = _LEADING_FLAGS.match(written)
            start = flags[0] if flags and not self.fixed_strings else ""
            written = f"{start}(?<!\\w)(?:{written[len(start) :]})(?!\\w)"
            compiled = compile_pattern(written, ignore_case=ignore_case, multiline=multiline, dot_all=dot_all)
        return compiled

    def next_page(self, offset: int) -> NextCall:
        """Return the call that goes on at an offset."""
        defaults = _DEFAULTS
        return next_page(
            "grep",
            offset,
            **{
                name: (_plain(self.listed if name == "files" else getattr(self, name)), default)
                for name, default in defaults.items()
                if name not in ("offset", "dialect")
            },
        )


_LEADING_FLAGS = re.compile(r"\(\?[aims]+\)")
_DEFAULTS = {
    name: (None if name == "pattern" else getattr(Request, name)) for name in Request.__dataclass_fields__
}


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (str, int, float)) else list(value)
