"""What one search of contents was asked for: its arguments checked, and the call that goes on."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from agentfs.errors import InvalidArgumentError
from agentfs.limits import HARD_FILE_BYTES, Limits
from agentfs.results import GlobResult, NextCall
from agentfs.search.filters import parse_filesize
from agentfs.search.paging import check_choice, check_timeout, next_page, paths_of
from agentfs.search.pattern import Pattern, compile_pattern, escape
from agentfs.text import codec_name

OutputMode = Literal["content", "files_with_matches", "count", "summary", "total"]
Sort = Literal["path", "modified", "oldest", "size"]
Engine = Literal["python", "ripgrep"]
OneOrMore = str | Sequence[str]

_ESCAPED = re.compile(r"\\[pP]\{[^}]*\}|\\.", re.DOTALL)


@dataclass(frozen=True)
class Request:
    """The arguments of one search, as they were given; `grep` describes them."""

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
    dot_all: bool = True
    whole_context: bool = False
    samples: int = 3

    def __post_init__(self) -> None:
        check_choice("output_mode", self.output_mode, get_args(OutputMode))
        check_choice("sort", self.sort, get_args(Sort))
        for name in ("context", "before", "after"):
            self._at_least(name, 0, "Leave it out for the usual number of lines.")
        for name in ("max_depth", "max_count"):
            self._at_least(name, 1, "Leave it out for no such bound.")
        if self.max_filesize is not None:
            parse_filesize(self.max_filesize)
        self._at_least("samples", 1, "Leave it out for the usual number.")
        if self.encoding is not None:
            codec_name(self.encoding)

    def _at_least(self, name: str, least: int, hint: str) -> None:
        value = getattr(self, name)
        if value is not None and value < least:
            raise InvalidArgumentError(
                f"`{name}` must be {least} or more, not {value}.", hint=hint, details={"argument": name}
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
        ignore_case = self.ignore_case or (
            self.smart_case and not any(letter.isupper() for letter in _ESCAPED.sub("", self.pattern))
        )
        multiline, dot_all = self.multiline, self.dot_all
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
                if name != "offset"
            },
        )


_LEADING_FLAGS = re.compile(r"\(\?[aims]+\)")
_DEFAULTS = {
    name: (None if name == "pattern" else getattr(Request, name)) for name in Request.__dataclass_fields__
}


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (str, int, float)) else list(value)


def as_list(value: OneOrMore | None) -> list[str]:
    """Return one or several texts as a list.

    Args:
        value: One, several, or None.
    """
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)
