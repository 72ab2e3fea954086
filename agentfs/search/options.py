"""The options of `ls`, `glob` and `grep`: a dataclass for each, with checks and parsers."""

import operator
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache
from os import PathLike, fspath
from typing import Any, ClassVar, Literal, cast, get_args, get_origin

from agentfs.base.advice import NextCall
from agentfs.base.visible import literal
from agentfs.errors import InvalidArgumentError, must_be
from agentfs.limits import LARGEST
from agentfs.patterns.compile import Pattern, compile_pattern
from agentfs.patterns.search_plan import Plan, plan_of_literals
from agentfs.patterns.syntax import escape, has_capital, literal_syntax, read_syntax
from agentfs.permissions import Effect
from agentfs.results import GlobResult

OneOrMore = str | Sequence[str]
Case = Literal["smart", "sensitive", "insensitive"]
OutputMode = Literal["content", "files_with_matches", "count", "summary", "total"]

ENTRY_TYPES = {"f": "file", "d": "directory", "l": "symlink", "x": "executable", "e": "empty"}

MAX_CONTEXT = 20  # lines around a match that a call may request
_MOST_PATHS = 5000  # paths of one search; each is opened
_WORD, _LINE = ("(?<!\\w)", "(?!\\w)"), ("^", "$")  # put before and after a pattern
_SIZE = re.compile(r"([+-]?)(\d{1,18})(?:b|([kmgt])(i?)b?)?", re.IGNORECASE)
_FILESIZE = re.compile(r"(\d{1,18})([KMG]?)", re.IGNORECASE)
_DURATION = re.compile(r"(\d{1,12})\s*([a-zA-Z]+)\s*")
# Months and years have their mean length, as in fd.
_UNITS: dict[str, float] = {
    "seconds second secs sec s": 1,
    "minutes minute mins min m": 60,
    "hours hour hrs hr h": 3600,
    "days day d": 86_400,
    "weeks week w": 7 * 86_400,
    "months month M": 30.44 * 86_400,
    "years year y": 365.25 * 86_400,
}
_SECONDS = {name: seconds for names, seconds in _UNITS.items() for name in names.split()}
# The least value of each number, and a hint.
_LEAST = {
    **dict.fromkeys(("limit", "max_count", "samples"), (1, "Leave it out for the usual number.")),
    "offset": (0, "It counts the entries to skip; 0 is the start."),
    "depth": (0, "1 lists the directory itself, 2 the directories in it too, 0 all levels."),
    "max_depth": (1, "1 means the entries of the directory itself."),
    **dict.fromkeys(("context", "before", "after"), (0, "Leave it out for no such lines.")),
}


@cache
def _choices_of(kind: Any) -> dict[str, tuple[str, ...]]:
    """Return the values that the options of a class may have, by the name of the option."""
    return {each.name: get_args(each.type) for each in fields(kind) if get_origin(each.type) is Literal}


@dataclass(frozen=True)
class _Options:
    """The checks and properties that the options of all searches share."""

    glob_argument: ClassVar[str] = "glob"
    effect: ClassVar[Effect] = "read"

    def __post_init__(self) -> None:
        for name, choices in _choices_of(cast("Any", type(self))).items():
            if (value := getattr(self, name)) not in choices:
                raise must_be(name, "a known value", literal(value), f"Pass {' or '.join(choices)}.")
        for name, (least, hint) in _LEAST.items():
            value = getattr(self, name, None)
            if value is not None and value < least:
                raise must_be(name, f"{least} or more", value, hint)
        timeout = getattr(self, "timeout", None)
        if timeout is not None and not timeout > 0:
            raise must_be("timeout", "more than 0 seconds", timeout, "Leave it out for the usual time.")

    @property
    def globs(self) -> list[str]:
        """The globs as a list."""
        return as_list(getattr(self, self.glob_argument, None))


@dataclass(frozen=True)
class ListOptions(_Options):
    """The options of `Workspace.ls`, which are its parameters."""

    method: ClassVar[str] = "ls"
    timeout: ClassVar[None] = None
    path: OneOrMore = "."
    depth: int = 1
    limit: int | None = None
    offset: int = 0
    include_ignored: bool = False
    ignore: OneOrMore | None = None
    hidden: bool | None = None
    sort: Literal["name", "modified", "size"] = "name"


@dataclass(frozen=True)
class GlobOptions(_Options):
    """The options of `Workspace.glob`: its parameters, then those that only dialects need, as `fd` has them.

    Attributes:
        pattern: The globs; None finds every name.
        anchored: Match a pattern without `/` only in the search directory itself.
        regex: A regular expression to find in the name.
        full_path: Find `regex` in the path relative to the root.
        case: The case of letters; "smart" ignores it in a `regex` without a capital, "insensitive" in
            `pattern` too.
        extensions: Extensions such as `py` or `tar.gz`.
        size: Size of regular files: `+10M` (at least), `-1k` (at most).
        changed_within: Only entries changed since: `2d`, `90min`, or a date.
        changed_before: Only entries changed before: `2weeks`, or a date.
        follow_symlinks: Follow links that lead inside the root.
        unique: List a file with several links once, by its own path or the first link that leads to it.
        links_as_files: A link counts as a file unless it leads to a directory.
    """

    method: ClassVar[str] = "glob"
    glob_argument: ClassVar[str] = "pattern"
    pattern: OneOrMore | None = None
    path: OneOrMore = "."
    limit: int | None = None
    offset: int = 0
    include_ignored: bool = False
    exclude: OneOrMore | None = None
    types: OneOrMore | None = "f"
    max_depth: int | None = None
    hidden: bool | None = None
    sort: Literal["path", "modified", "size"] = "path"
    timeout: float | None = None
    anchored: bool = False
    regex: str | None = None
    full_path: bool = False
    case: Case = "smart"
    extensions: OneOrMore | None = None
    size: OneOrMore | None = None
    changed_within: str | None = None
    changed_before: str | None = None
    follow_symlinks: bool = False
    unique: bool = False
    links_as_files: bool = True

    @property
    def ignore_case(self) -> bool:
        """True if `regex` matches upper and lower case alike."""
        return self.case == "insensitive" or (self.case == "smart" and not has_capital(self.regex or ""))


@dataclass(frozen=True)
class GrepOptions(_Options):
    """The options of `Workspace.grep`: its parameters, then those that only dialects need, as `rg` has them.

    Attributes:
        files: Search these files in place of `path`: their paths, or a result of `glob`.
        smart_case: Match upper and lower case alike unless the pattern has a capital.
        whole_line: Only matches of a full line.
        invert: Find the lines without a match.
        dot_all: With `multiline`, let `.` match line ends.
        line_numbers: Number the lines in the text.
        samples: Matches of each file in a summary.
        max_context: The most lines of context on either side of a match.
        max_count: Most matching lines of one file.
        max_depth: Last level to search; 1 is the files of `path` itself.
        max_filesize: Size of the largest file to search: bytes, or for example `500K`.
        follow_symlinks: Follow links that lead inside the root.
        unique: Search a file with several links once, by its own path or the first link.
        fresh_ids: Give ids only in files that were read with ids as they are now; see `edit_lines`.
    """

    method: ClassVar[str] = "grep"
    anchored: ClassVar[bool] = False
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
    exclude: OneOrMore | None = None
    hidden: bool | None = None
    encoding: str | None = None
    line_ids: bool = False
    sort: Literal["path", "modified", "size", "reverse", "oldest"] = "path"
    timeout: float | None = None
    files: Sequence[str] | GlobResult | None = None
    smart_case: bool = False
    whole_line: bool = False
    invert: bool = False
    dot_all: bool = True
    line_numbers: bool = True
    samples: int = 3
    max_context: int = MAX_CONTEXT
    max_count: int | None = None
    max_depth: int | None = None
    max_filesize: int | str | None = None
    follow_symlinks: bool = False
    unique: bool = False
    fresh_ids: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.invert and self.multiline:
            raise must_be("invert", "False with `multiline`", True, "It finds single lines; leave out one.")

    @property
    def listed(self) -> list[str] | None:
        """The files to search in place of `path`, or None."""
        if isinstance(self.files, GlobResult):
            return [entry.path for entry in self.files.files if not entry.is_dir]
        return None if self.files is None else list(dict.fromkeys(self.files))

    @property
    def by_line(self) -> bool:
        """True if the entries of a page are matches, not files."""
        return self.output_mode == "content"

    @property
    def around(self) -> tuple[int, int]:
        """The numbers of lines to show before and after each match."""
        before = (self.context or 0) if self.before is None else self.before
        after = (self.context or 0) if self.after is None else self.after
        return min(before, self.max_context), min(after, self.max_context)

    @property
    def max_bytes(self) -> int:
        """The size of the largest file to search."""
        return LARGEST if self.max_filesize is None else parse_filesize(self.max_filesize)

    @property
    def ignores_case(self) -> bool:
        """True if the complete pattern matches upper and lower case alike."""
        pattern = escape(self.pattern) if self.fixed_strings else self.pattern
        return self.ignore_case or (self.smart_case and not has_capital(pattern))

    def literals(self) -> Plan:
        """Return the plan of the pattern without what only a compiled pattern tells."""
        if self.invert:
            return Plan()
        syntax = literal_syntax(self.pattern) if self.fixed_strings else read_syntax(self.pattern)
        return plan_of_literals(syntax, ignore_case=self.ignores_case)

    def compile(self, *, captures: bool = False) -> Pattern:
        """Compile the pattern; its matches have groups only with `captures`."""
        before, after = _LINE if self.whole_line else _WORD if self.word else ("", "")
        if self.invert:
            before, after = f"^(?!.*{before}", f"{after})"
        return compile_pattern(
            self.pattern,
            literal=self.fixed_strings,
            around=(before, after),
            captures=captures,
            ignore_case=self.ignores_case,
            multiline=self.multiline,
            dot_all=self.dot_all,
        )


SearchOptions = ListOptions | GlobOptions | GrepOptions


def next_page(options: SearchOptions, offset: int) -> NextCall:
    """Return the call for the page from an offset, without arguments that have their default."""
    arguments: dict[str, Any] = {}
    for field in fields(options):
        value: Any = getattr(options, field.name)
        if field.name == "path":
            value = value or "."
        elif field.name == "files" and isinstance(options, GrepOptions):
            value = options.listed
        if field.name != "offset" and value != field.default:
            arguments[field.name] = (
                value if value is None or isinstance(value, (str, int, float)) else list(value)
            )
    return NextCall(name=options.method, arguments={**arguments, "offset": offset})


def has_wildcard(path: str) -> bool:
    """Return True if a path may be meant as a glob."""
    return any(mark in path for mark in "*?[{")


def opens_hidden(options: SearchOptions) -> bool:
    """Return True if hidden names are searched."""
    return options.include_ignored if options.hidden is None else options.hidden


def texts(path: str | PathLike[str] | Sequence[str | PathLike[str]]) -> OneOrMore:
    """Return one path or several as text."""
    return fspath(path) if isinstance(path, (str, PathLike)) else [fspath(each) for each in path]


def paths_of(path: OneOrMore) -> list[str]:
    """Return the paths to search; "" and "/" are the root, as in globs."""
    if isinstance(path, str):
        return [path if path.strip("/") else "."]
    if not path:
        raise _invalid("path", "The list of paths is empty.", 'Pass one; "." is the root.')
    paths = list(dict.fromkeys(each if each.strip("/") else "." for each in path))
    if len(paths) > _MOST_PATHS:
        hint = "Pass a directory above them, or fewer in each call."
        raise _invalid("path", f"The list has {len(paths)} paths; at most {_MOST_PATHS} are allowed.", hint)
    return paths


def as_list(value: OneOrMore | None) -> list[str]:
    """Return one or several texts as a list without empty texts."""
    return [each for each in ([value] if isinstance(value, str) else value or ()) if each]


def _invalid(argument: str, message: str, hint: str, **details: object) -> InvalidArgumentError:
    return InvalidArgumentError(message, hint=hint, details={"parameter": argument, **details})


def parse_types(types: OneOrMore | None) -> frozenset[str]:
    """Return the letters of `ENTRY_TYPES` in a text ("fd"), or in a list of letters or words."""
    words = {word: letter for letter, word in ENTRY_TYPES.items()}
    letters: set[str] = set()
    for each in [types] if isinstance(types, str) else types or ():
        found = [words[each]] if each in words else list(each.replace(",", "").replace(" ", ""))
        if not found or any(letter not in ENTRY_TYPES for letter in found):
            known = ", ".join(f"{letter} ({word})" for letter, word in ENTRY_TYPES.items())
            hint = f"The types are {known}."
            raise _invalid("types", f"There is no type {literal(each)}.", hint, types=dict(ENTRY_TYPES))
        letters.update(found)
    return frozenset(letters)


def parse_extensions(extensions: OneOrMore) -> tuple[str, ...]:
    """Return the suffixes of names with one of the extensions, in lower case."""
    given = [extensions] if isinstance(extensions, str) else extensions
    plain = [each.strip().lstrip("*").lstrip(".").lower() for each in given]
    if not plain or not all(plain):
        raise _invalid("extensions", "An extension is empty.", 'Pass extensions such as "py" or "tar.gz".')
    return tuple(f".{each}" for each in plain)


def parse_size(text: str) -> Callable[[int], bool]:
    """Return the test of a file size, written as for fd.

    `+10M` is a minimum, `-10k` a maximum, `10ki` the exact size. k, m, g, t are powers of 1000; ki, mi, …
    of 1024.
    """
    found = _SIZE.fullmatch(text.strip())
    if not found:
        hint = "Pass +10M for at least, -10k for at most, or 512b for exactly that; M is 1000k, Mi 1024ki."
        raise _invalid("size", f"{literal(text)} is not a size.", hint)
    sign, digits, unit, binary = found.groups()
    power = " kmgt".index(unit.lower()) if unit else 0
    limit = int(digits) * (1024 if binary else 1000) ** power
    test = {"+": operator.ge, "-": operator.le, "": operator.eq}[sign]
    return lambda size: test(size, limit)


def parse_filesize(size: int | str) -> int:
    """Return a number of bytes, given as a number or as `500K`, `1M`, `2G` in powers of 1024, as for rg."""
    found = _FILESIZE.fullmatch(str(size).strip())
    number = int(found[1]) * 1024 ** " KMG".index(found[2].upper() or " ") if found else 0
    if number < 1:
        requirement = "a number of bytes from 1, or such as 500K or 1M"
        raise must_be("max_filesize", requirement, literal(size), "Leave it out for the usual bound.")
    return number


def parse_moment(text: str, argument: str) -> float:
    """Return a moment in seconds since 1970: a duration ago (`2d`, `1h 30min`), or a date or time.

    A time without an offset (`2026-11-20 10:00:00`) is local.
    """
    given = text.strip()
    parts = _DURATION.findall(given)
    if parts and not _DURATION.sub("", given) and all(unit in _SECONDS for _, unit in parts):
        return time.time() - sum(int(number) * _SECONDS[unit] for number, unit in parts)
    try:
        return datetime.fromisoformat(given).timestamp()  # a naive time is local, as for fd
    except (ValueError, OverflowError, OSError):
        message = f"{literal(text)} is neither a duration nor a date."
        hint = 'Pass a duration such as "2d" or "90min", or a date such as "2026-11-20 10:00:00".'
        raise _invalid(argument, message, hint) from None
