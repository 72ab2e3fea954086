"""Match real paths against protected names, in every spelling that some file system accepts."""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from typing import NamedTuple

from agentfs.base.visible import IGNORABLE, JOINERS
from agentfs.fs.path import is_in

# Default ignorable code points of Unicode: some file systems ignore them when they compare names.
_DEFAULT_IGNORABLE = f"[{IGNORABLE}{JOINERS}]"
_SHORT_GIT = re.compile(r"git~[0-9]+")
# Names that Emacs, Vim, nano, git, patch and merge tools give to backups.
_BACKUP_ENDS = (".bak", ".backup", ".lock", ".old", ".orig", ".save", ".swp", ".swo", ".swn")
_BACKUP = rf"(?s)#(.+)#|(.+?)(?:\.~[0-9]+~|~|{'|'.join(map(re.escape, _BACKUP_ENDS))})"
_MAX_CACHED = 65_536  # ordinary names


class _Rule(NamedTuple):
    """A pattern of folded names; a name may contain `*`, and `**` is any number of names."""

    exception: bool
    names: tuple[str, ...]
    regex: re.Pattern[str]  # matches the folded path, or one below the path


class NameMatcher:
    """A list of protected names. The last pattern that matches a path decides."""

    def __init__(self, patterns: Sequence[str], *, backups: bool = False) -> None:
        """Compile patterns in the syntax of `Protect`. With `backups`, backups of these names match too."""
        self._backups = backups
        self._rules = tuple(map(_rule, patterns))
        # A path can match a pattern only if one of its names can match the outermost name of the pattern that
        # is not all wildcards. Nearly no name of a tree can.
        names = [rule.names for rule in self._rules if not rule.exception]
        first = [next((name for name in each if name.strip("*")), each[0]) for each in names]
        self._is_ordinary = _ordinary_test(first, _BACKUP_ENDS if backups else ())
        self._ordinary = set[str]()  # names that passed the test

    def covers(self, real_path: str) -> bool:
        """Return True if a path is protected."""
        names = real_path.split("/")
        if self.are_ordinary(names):
            return False
        return any(map(self._matches_rules, _interpretations(real_path, backups=self._backups)))

    def covered(self, directory: str, names: Sequence[str]) -> Collection[str]:
        """Return which names in a directory are protected. The directory is a real path."""
        if self.are_ordinary(directory.split("/")) and self.are_ordinary(names):
            return ()
        prefix = f"{directory}/" if directory else ""
        return [name for name in names if self.covers(prefix + name)]

    def are_ordinary(self, names: Sequence[str]) -> bool:
        """Return True if no pattern can match any form of these names."""
        known = self._ordinary
        if known.issuperset(names):
            return True
        if not all(map(self._is_ordinary, names)):
            return False
        if len(known) > _MAX_CACHED:
            known.clear()
        known.update(names)
        return True

    def _matches_rules(self, parts: Sequence[str]) -> bool:
        path = "/".join(parts)
        decisions = (not rule.exception for rule in reversed(self._rules) if rule.regex.fullmatch(path))
        return next(decisions, False)


class LinkedMatcher(NameMatcher):
    """Judges what is below a directory also by the paths of the links that led there."""

    def __init__(self, matcher: NameMatcher, real_path: str, links: Sequence[str]) -> None:
        """Judge as `matcher` does, for the directory at a real path."""
        vars(self).update(vars(matcher))
        self._matcher, self._top, self._links = matcher, real_path, links

    def covers(self, real_path: str) -> bool:
        """Return True if a path is protected, by one of its names."""
        below = real_path[len(self._top) :].strip("/")
        linked = (f"{link}/{below}" for link in self._links if is_in(real_path, self._top))
        return any(map(self._matcher.covers, (real_path, *linked)))

    def covered(self, directory: str, names: Sequence[str]) -> Collection[str]:
        """Return which names in a directory are protected."""
        prefix = f"{directory}/" if directory else ""
        return [name for name in names if self.covers(prefix + name)]


def fold(name: str) -> str:
    """Return a form of a name that is equal for all names of one file on some file system."""
    name = fold_letters(name).lower()
    name = name.rstrip(". ") or name
    return ".git" if _SHORT_GIT.fullmatch(name) else name


def fold_letters(text: str) -> str:
    """Return a text in one case and Unicode form, without ignorable characters."""
    if text.isascii():
        return text.casefold()
    text = unicodedata.normalize("NFC", re.sub(_DEFAULT_IGNORABLE, "", text))
    return unicodedata.normalize("NFC", text.casefold())


@cache
def name_matcher(patterns: tuple[str, ...], *, backups: bool = False) -> NameMatcher:
    """Return the cached matcher of a list of patterns."""
    return NameMatcher(patterns, backups=backups)


def _interpretations(path: str, *, backups: bool) -> Iterable[list[str]]:
    """Return the folded paths that a path may stand for, such as the original of a backup."""
    parts = path.split("/") if path else []
    # On NTFS the text after a `:` names a stream of the file; elsewhere it is part of the name.
    streams = [[part.partition(":")[0] or part for part in parts]] if ":" in path else []
    folded = [[fold(part) for part in each] for each in (parts, *streams)]
    if not backups:
        return folded
    originals = [[_original(part) for part in each] for each in folded]
    # Vim adds a dot to the front of swap file names.
    undotted = [
        [name.removeprefix(".") if name != part else part for part, name in zip(each, names, strict=True)]
        for each, names in zip(folded, originals, strict=True)
    ]
    return [*folded, *(names for names in (*originals, *undotted) if names not in folded)]


def _original(name: str) -> str:
    """Return the original name of a backup, or the name itself."""
    while found := re.fullmatch(_BACKUP, name):
        name = fold(found[1] or found[2])
    return name


def _ordinary_test(names: Sequence[str], ends: Sequence[str]) -> Callable[[str], bool]:
    """Return a fast test that is True only if no pattern can match any form of a name.

    It is True for nearly all names of a tree.
    """
    # Folding removes final dots and spaces. `#`, `~` and `ends` mark backups.
    suffixes = (".", " ", "#", *ends, *(n[1:] for n in names if n[0] == "*" and "*" not in n[1:]))
    literals = frozenset(name for name in names if "*" not in name)
    wildcards = [_regex_text(name) for name in names if "*" in name and not name.endswith(suffixes)]
    match_wildcard = re.compile(rf"(?:{'|'.join(wildcards) or '(?!)'})\Z", re.DOTALL).match

    def is_ordinary(name: str) -> bool:
        if not name.isascii() or "~" in name or ":" in name:
            return False
        name = name.lower()
        return name not in literals and not name.endswith(suffixes) and match_wildcard(name) is None

    return is_ordinary


def _rule(pattern: str) -> _Rule:
    names = [fold(name) for name in pattern.removeprefix("!").split("/") if name not in {"", "."}]
    above = ["(?:[^/]+/)*" if name == "**" else f"{_regex_text(name)}/" for name in names[:-1]]
    last = ".+" if names[-1] == "**" else _regex_text(names[-1])
    below = "(?:/.*)?" if pattern.endswith("/") else ""
    regex = re.compile("".join(["(?:.*/)?", *above, last, below]), re.DOTALL)
    return _Rule(pattern.startswith("!"), tuple(names), regex)


def _regex_text(pattern: str) -> str:
    return "[^/]*".join(re.escape(piece) for piece in pattern.split("*"))
