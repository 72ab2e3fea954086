"""The filters of `find`, with the meanings that fd has given them: types, sizes, times, extensions."""

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agentfs.errors import AgentFSError, InvalidArgumentError
from agentfs.fs import Directory
from agentfs.messages import Message, ParameterName
from agentfs.tree.gitignore import Listed
from agentfs.visible import literal

TYPES = {"f": "file", "d": "directory", "l": "symlink", "x": "executable", "e": "empty"}

_SIZE = re.compile(r"([+-]?)(\d{1,18})(?:b|([kmgt])(i?)b?)?", re.IGNORECASE)
_FILESIZE = re.compile(r"(\d{1,18})([KMG]?)", re.IGNORECASE)
_SPAN = re.compile(r"(\d{1,12})\s*([a-zA-Z]+)\s*")
# Months and years as fd counts them: mean ones.
_SECONDS: dict[str, float] = {
    **dict.fromkeys(("nsec", "ns"), 1e-9),
    **dict.fromkeys(("usec", "us"), 1e-6),
    **dict.fromkeys(("msec", "ms"), 1e-3),
    **dict.fromkeys(("seconds", "second", "secs", "sec", "s"), 1),
    **dict.fromkeys(("minutes", "minute", "mins", "min", "m"), 60),
    **dict.fromkeys(("hours", "hour", "hrs", "hr", "h"), 3600),
    **dict.fromkeys(("days", "day", "d"), 86_400),
    **dict.fromkeys(("weeks", "week", "w"), 7 * 86_400),
    **dict.fromkeys(("months", "month", "M"), 30.44 * 86_400),
    **dict.fromkeys(("years", "year", "y"), 365.25 * 86_400),
}


def parse_types(types: str | Sequence[str] | None) -> frozenset[str]:
    """Return the letters of the types asked for; none for all.

    Args:
        types: Letters in one text ("fd"), or letters or words in a list.

    Raises:
        InvalidArgumentError: There is no such type (invalid_argument).
    """
    if types is None:
        return frozenset()
    words = {word: letter for letter, word in TYPES.items()}
    letters: set[str] = set()
    for each in [types] if isinstance(types, str) else types:
        found = [words[each]] if each in words else list(each.replace(",", "").replace(" ", ""))
        if not found or any(letter not in TYPES for letter in found):
            raise InvalidArgumentError(
                f"There is no type {literal(each)}.",
                hint=f"The types are {', '.join(f'{letter} ({word})' for letter, word in TYPES.items())}.",
                details={"argument": "types", "types": dict(TYPES)},
            )
        letters.update(found)
    return frozenset(letters)


def parse_extensions(extensions: str | Sequence[str]) -> Callable[[str], bool]:
    """Return a test of names for extensions; case and a leading dot do not matter.

    Args:
        extensions: One extension or several, such as `py` or `tar.gz`.

    Raises:
        InvalidArgumentError: One is empty (invalid_argument).
    """
    given = [extensions] if isinstance(extensions, str) else list(extensions)
    plain = [each.strip().lstrip("*").lstrip(".").lower() for each in given]
    if not plain or not all(plain):
        raise InvalidArgumentError(
            "An extension is empty.",
            hint='Pass extensions such as "py" or "tar.gz".',
            details={"argument": "extensions"},
        )
    ends = tuple(f".{each}" for each in plain)
    return lambda name: name.lower().endswith(ends, 1)


def parse_sizes(sizes: str | Sequence[str]) -> list[Callable[[int], bool]]:
    """Return tests of a number of bytes.

    Args:
        sizes: `+10M` at least, `-10k` at most, `10ki` exactly; k, m, g, t are powers of 1000, ki, … of 1024.

    Raises:
        InvalidArgumentError: One is no size (invalid_argument).
    """
    return [_size_test(each) for each in ([sizes] if isinstance(sizes, str) else sizes)]


def _size_test(text: str) -> Callable[[int], bool]:
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise InvalidArgumentError(
            f"{literal(text)} is no size.",
            hint="Pass +10M for at least, -10k for at most, or 512b for exactly that; M is 1000k, Mi 1024ki.",
            details={"argument": "size"},
        )
    sign, digits, unit, binary = found.groups()
    power = " kmgt".index(unit.lower()) if unit else 0
    wanted = int(digits) * (1024 if binary else 1000) ** power
    if sign == "+":
        return lambda size: size >= wanted
    return (lambda size: size <= wanted) if sign else (lambda size: size == wanted)


def parse_filesize(size: int | str) -> int:
    """Return a number of bytes, as ripgrep reads it.

    Args:
        size: Bytes from 1, or such as `500K`, `1M`, `2G`, whose units are powers of 1024.

    Raises:
        InvalidArgumentError: It is no such size (invalid_argument).
    """
    found = _FILESIZE.fullmatch(str(size).strip())
    bytes_ = int(found[1]) * 1024 ** " KMG".index(found[2].upper() or " ") if found else 0
    if bytes_ < 1:
        raise InvalidArgumentError(
            Message(
                ParameterName("max_filesize", quoted=True),
                f" must be a number of bytes from 1, or such as 500K or 1M, not {literal(size)}.",
            ),
            hint="Leave it out for no such bound.",
            details={"argument": "max_filesize"},
        )
    return bytes_


def parse_moment(text: str, argument: str) -> float:
    """Return a moment in seconds since 1970.

    Args:
        text: How long ago (`2d`, `1h 30min`, `3weeks`), or a date or time (`2026-11-20`,
            `2026-11-20 10:00:00`, ISO 8601 with an offset); without an offset the time is local.
        argument: The parameter, for the error.

    Raises:
        InvalidArgumentError: It is neither (invalid_argument).
    """
    given = text.strip()
    seconds, end = 0.0, 0
    for span in _SPAN.finditer(given):
        if span.start() != end or span[2] not in _SECONDS:
            break
        seconds += int(span[1]) * _SECONDS[span[2]]
        end = span.end()
    if given and end == len(given):
        return time.time() - seconds
    try:
        return datetime.fromisoformat(given).timestamp()  # naive means local, as with fd
    except (ValueError, OverflowError, OSError):
        raise InvalidArgumentError(
            f"{literal(text)} is neither a duration nor a date.",
            hint='Pass a duration such as "2d" or "90min", or a date such as "2026-11-20 10:00:00".',
            details={"argument": argument},
        ) from None


@dataclass(frozen=True, slots=True)
class Filter:
    """What an entry must be; the parts that are not set let everything through.

    Attributes:
        types: Letters of `TYPES`.
        sizes: Tests of the size of a regular file; nothing else has one.
        after: The file must have been changed after this moment.
        before: The file must have been changed before this moment.
        follow: Whether a link counts as what it leads to.
        links_as_files: Whether a link that leads to no directory counts as a file too.
    """

    types: frozenset[str] = frozenset()
    sizes: tuple[Callable[[int], bool], ...] = ()
    after: float | None = None
    before: float | None = None
    follow: bool = False
    links_as_files: bool = False

    @property
    def kinds(self) -> frozenset[str]:
        """The letters of `f d l` that may pass; "o" stands for the rest."""
        kinds = self.types & {"f", "d", "l"}
        if "x" in self.types:
            kinds |= {"f"}
        if kinds:
            return kinds
        return frozenset("fd") if "e" in self.types else frozenset("fdlo")

    def takes(self, directory: Directory, listed: Listed) -> bool:
        """Tell whether an entry passes; one that vanished does not.

        Args:
            directory: The open directory that it is in.
            listed: The entry.
        """
        try:
            return self._takes(directory, listed)
        except (AgentFSError, OSError):
            return False

    def _takes(self, directory: Directory, listed: Listed) -> bool:
        status: os.stat_result | None = None
        if listed.is_file(follow_symlinks=False):
            kind = "f"
        elif listed.is_dir(follow_symlinks=False):
            kind = "d"
        elif listed.is_symlink():
            kind = "l"
            if self.follow and (status := directory.target_status(listed)) is not None:
                kind = _letter(status.st_mode)
            elif self.links_as_files and "l" not in self.types and not directory.entry(listed).is_dir:
                kind = "f"
        else:
            kind = "o"
        if kind not in self.kinds:
            return False
        if not (self.sizes or self.types & {"x", "e"} or self.after is not None or self.before is not None):
            return True
        if status is None:
            status = listed.stat(follow_symlinks=False)
        if "x" in self.types and not status.st_mode & 0o111:
            return False
        if "e" in self.types and not _is_empty(directory, listed, kind, status):
            return False
        if self.sizes and (kind != "f" or not all(fits(status.st_size) for fits in self.sizes)):
            return False
        return (self.after is None or status.st_mtime > self.after) and (
            self.before is None or status.st_mtime < self.before
        )


def _letter(mode: int) -> str:
    return "f" if stat.S_ISREG(mode) else "d" if stat.S_ISDIR(mode) else "o"


def _is_empty(directory: Directory, listed: Listed, kind: str, status: os.stat_result) -> bool:
    if kind == "f":
        return status.st_size == 0
    if kind != "d" or listed.is_symlink():
        return False
    with directory.open_directory(listed.name) as opened:
        return not any(opened.scan_parts(1))


def all_of(tests: Iterable[Callable[[str], bool] | None]) -> Callable[[str], bool] | None:
    """Return the test that passes what all tests pass; None when there is none.

    Args:
        tests: Tests; None stands for one that passes everything.
    """
    given = [test for test in tests if test is not None]
    if len(given) < 2:
        return given[0] if given else None
    return lambda text: all(test(text) for test in given)
