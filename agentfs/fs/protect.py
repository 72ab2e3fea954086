"""Protected names: pure rules on the real path of a file, whatever spelling a file system takes for it."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

# Code points that HFS+ leaves out when it compares names.
_IGNORABLE = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_SHORT_GIT = re.compile(r"git~[0-9]+")
# How editors and other programs name the copy of a file: Emacs, Vim and nano, patch and merge tools.
_BACKUP_ENDS = (".bak", ".backup", ".old", ".orig", ".save", ".swp", ".swo", ".swn")
_BACKUP = re.compile(rf"#(.+)#|(.+?)(?:\.~[0-9]+~|~|{'|'.join(map(re.escape, _BACKUP_ENDS))})", re.DOTALL)
_MAX_KNOWN = 4096
_Test = Callable[[str], bool]


class _Rule(NamedTuple):
    """One pattern: names from the last one up, each as a regular expression."""

    exception: bool
    below: bool
    names: tuple[re.Pattern[str], ...]

    def ends(self, parts: Sequence[str]) -> bool:
        """Tell whether the path of these parts ends as the pattern says."""
        if len(self.names) > len(parts):
            return False
        return all(name.fullmatch(part) for name, part in zip(self.names, reversed(parts), strict=False))

    def matches(self, parts: Sequence[str]) -> bool:
        """Tell whether the pattern names the path, or a directory above it when it covers what is below."""
        if self.below:
            return any(self.ends(parts[:count]) for count in range(1, len(parts) + 1))
        return self.ends(parts)


class NameMatcher:
    """One list of protected names.

    Args:
        patterns: As `Protect` describes them; the last that matches decides.
        backups: Whether the backups of a protected name are protected too.
    """

    def __init__(self, patterns: Sequence[str], *, backups: bool = False) -> None:
        self._rules = tuple(_rule(pattern) for pattern in patterns)
        self._backups = backups
        positive = [_names(pattern) for pattern in patterns if not pattern.startswith("!")]
        ends = _BACKUP_ENDS if backups else ()
        self._definitely_unprotected = _unprotected_test([names[-1] for names in positive], ends)
        # What lies below is judged whole from the first name on that is not any name at all.
        self._definitely_unprotected_above = _unprotected_test(
            [next((name for name in names if name.strip("*")), names[0]) for names in positive], ends
        )
        self._required_substrings = _required_substrings(
            [names[-1] for names in positive], ("#", *(f"{end}\n" for end in ends))
        )
        self._known: dict[str, DirectoryMatcher] = {}
        plain = [pattern.rstrip("/") for pattern in patterns if not pattern.startswith("!")]
        self.literals = tuple(n for n in plain if "/" not in n and "*" not in n and self.covers(n))

    def covers(self, real_path: str) -> bool:
        """Tell whether a path is protected."""
        directory, _, name = real_path.rpartition("/")
        return self.within(directory).covers(name)

    def within(self, directory: str) -> "DirectoryMatcher":
        """Return the rules for the names in a directory."""
        known = self._known.get(directory)
        if known is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            # Below a protected directory, and where a longer pattern begins, the whole path is judged.
            above, _, name = directory.rpartition("/")
            parent = self._known.get(above)
            names = directory.split("/") if parent is None else [name]
            careful = (parent is not None and parent.careful) or not all(
                self._definitely_unprotected_above(name) for name in names if name
            )
            known = self._known[directory] = DirectoryMatcher(
                self._rules,
                self._definitely_unprotected,
                self._required_substrings,
                directory,
                careful=careful,
                backups=self._backups,
            )
        return known


class DirectoryMatcher:
    """The names of one directory.

    Attributes:
        careful: Whether the whole path must be matched.
    """

    __slots__ = (
        "_backups",
        "_definitely_unprotected",
        "_directory",
        "_required_substrings",
        "_rules",
        "careful",
    )

    def __init__(
        self,
        rules: tuple[_Rule, ...],
        definitely_unprotected: _Test,
        required_substrings: Sequence[str],
        directory: str,
        *,
        careful: bool,
        backups: bool,
    ) -> None:
        self._rules = rules
        self._definitely_unprotected = definitely_unprotected
        self._required_substrings = required_substrings
        self._directory = directory
        self._backups = backups
        self.careful = careful

    def covers(self, name: str) -> bool:
        """Tell whether a name in the directory is protected."""
        if not self.careful and self._definitely_unprotected(name):
            return False
        path = f"{self._directory}/{name}" if self._directory else name
        return any(self._matches_rules(parts) for parts in _interpretations(path, backups=self._backups))

    def none_covered(self, names: Sequence[str]) -> bool:
        """Tell in one scan that none of several names is protected; False means: call `covers` for each."""
        if self.careful:
            return False
        together = "\n".join(["", *names, ""])
        if not together.isascii():
            return False
        together = together.lower()
        for substring in self._required_substrings:  # noqa: SIM110 - `any` over a generator takes twice as long
            if substring in together:
                return False
        return True

    def _matches_rules(self, parts: Sequence[str]) -> bool:
        for rule in reversed(self._rules):
            if rule.matches(parts):
                return not rule.exception
        return False


def fold(name: str) -> str:
    """Return a name as the least exact of file systems compares it."""
    if not name.isascii():
        name = unicodedata.normalize("NFC", _IGNORABLE.sub("", name))
        name = unicodedata.normalize("NFC", name.casefold())
    name = name.lower()
    name = name.rstrip(". ") or name
    return ".git" if _SHORT_GIT.fullmatch(name) else name


@cache
def name_matcher(patterns: tuple[str, ...], *, backups: bool = False) -> NameMatcher:
    """Return the guard of a list of patterns; the same list gives the same one."""
    return NameMatcher(patterns, backups=backups)


def _interpretations(path: str, *, backups: bool) -> list[list[str]]:
    """Return what the names of a path may mean, folded."""
    parts = path.split("/") if path else []
    # To NTFS what follows a `:` names a stream of the file before it; to others it is part of the name.
    streams = [[part.partition(":")[0] or part for part in parts]] if ":" in path else []
    readings = [[fold(part) for part in each] for each in (parts, *streams)]
    if not backups:
        return readings
    copied = [[_original(part) for part in each] for each in readings]
    # Vim puts a dot before the name of a swap file that has none.
    undotted = [
        [name.removeprefix(".") if name != part else part for part, name in zip(each, names, strict=True)]
        for each, names in zip(readings, copied, strict=True)
    ]
    return [*readings, *(names for names in (*copied, *undotted) if names not in readings)]


def _original(name: str) -> str:
    """Return the name of the file that a backup is of, or the name itself."""
    while found := _BACKUP.fullmatch(name):
        name = fold(found[1] or found[2])
    return name


def _unprotected_test(names: Sequence[str], ends: Sequence[str] = ()) -> _Test:
    """Return a test that is true for names that need no folding and that none of these is like.

    Nearly all names of a tree end here, so that it is made of a few quick steps.
    """
    suffixes = (*ends, *(name[1:] for name in names if name[0] == "*" and "*" not in name[1:]))
    others = "|".join(_name(name).pattern for name in names if not name.endswith(suffixes or ("\0",)))
    like = re.compile(rf"(?:{others or '(?!)'})\Z").match
    plain = re.compile(r"[a-z0-9_.+@=,()\[\] -]*[a-z0-9_+@=,()\[\]-]\Z").match

    def definitely_unprotected(name: str) -> bool:
        name = name.lower()
        return plain(name) is not None and not name.endswith(suffixes) and like(name) is None

    return definitely_unprotected


# What folding a name of ASCII letters may change but for their case: see `fold` and `_interpretations`.
_FOLDED = ("~", ":", ".\n", " \n")


def _required_substrings(names: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Return substrings, one of which every list with a matching name contains.

    The list is in lower case, with a line feed before and behind each name.
    """
    pieces = [max(f"\n{name}\n".split("*"), key=len) for name in names]
    # The fewer signs the better, so that names that begin alike share one; few names begin with a dot.
    shared = [piece[: 2 if piece.startswith("\n.") else 8] if piece[0] == "\n" else piece for piece in pieces]
    pieces = sorted({*shared, *others, *_FOLDED}, key=len)
    return tuple(
        piece for at, piece in enumerate(pieces) if not any(shorter in piece for shorter in pieces[:at])
    )


def _names(pattern: str) -> list[str]:
    return [fold(name) for name in pattern.removeprefix("!").split("/") if name not in {"", "."}]


def _rule(pattern: str) -> _Rule:
    exception = pattern.startswith("!")
    names = [_name(name) for name in _names(pattern)]
    return _Rule(exception, pattern.endswith("/"), tuple(reversed(names)))


def _name(pattern: str) -> re.Pattern[str]:
    return re.compile("[^/]*".join(re.escape(piece) for piece in pattern.split("*")), re.DOTALL)
