"""Ignore rules with the results of git. Pure: rule files come as bytes, names as directory entries.

pathspec translates the patterns that it reads as git does; wcmatch translates the others. Names and patterns
are compared byte by byte, as in git: a text in this module has one character for each byte (latin-1).

All names of a directory are tested together. The last part of each pattern is indexed by a plain name, by an
extension, or by a small regex with a text that it requires. Most names are in no index and match no rule.
The others are tested rule by rule, from the last rule of the nearest file upwards.
"""

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from agentfs.base.lazy import spec
from agentfs.fs import DirEntry
from agentfs.tree.wildcards import (
    ANY_PARTS,
    MalformedPatternError,
    PatternPart,
    compile_regex,
    extension_of,
    is_literal,
    parse,
    required_text,
    to_regex,
)

_NAMES_PER_CHECK = 16  # names that are tested between two checks of the deadline

_WILD = re.compile(r"[*?\[\\]")
# `aa**//f`: after a plain beginning, git lets `**/` stand for nothing, and an empty part has no other match.
_BESIDE_EMPTY_PART = re.compile(r"([^*?\[\\]*[^*?\[\\/])\*\*+/(/.*)?", re.DOTALL)
_BOM = b"\xef\xbb\xbf"

# Patterns that pathspec 1.1 reads as git does, and that its regexes match without much backtracking: at most
# one `*` in a part and one `**`, which is not last; no negated class; in classes no escapes, named classes,
# slashes and unusual ranges; no escaped slash; no trailing whitespace. `tests/tree/test_gitignore.py` has an
# example of each exception.
_CHARACTER = r"(?:[^*?\[\\/]|\\[^/]|\?|\[(?:a-z|A-Z|0-9|[^]\[\\/&|~^!-])+\])"
_PART = rf"(?=[^/]){_CHARACTER}*(?:\*{_CHARACTER}*)?"
_PATHSPEC_AGREES = re.compile(rf"(?:{_PART}/)*(?:\*\*/(?:{_PART}/)*)?{_PART}(?<!\s)", re.DOTALL)
_PATHSPEC_END = "(?:(?P<ps_d>/)|$)"

OUTSIDE = "a rule outside the workspace"


@dataclass(eq=False, slots=True)
class IgnoreRule:
    """One line of a rule file."""

    index: int  # its position in the file; a later rule outranks an earlier one
    source: str  # for example `docs/.gitignore:4`; "" outside the root, where nothing may be quoted
    pattern: str  # the line as written, without trailing spaces
    negated: bool  # True if it begins with `!`
    directory_only: bool  # True if it ends in `/`
    by_name: bool  # True if it is tested on the name alone, at any depth
    glob: str  # the pattern itself, one character for each byte
    parts: list[PatternPart] = field(default_factory=list[PatternPart])  # the parts of a glob with wildcards
    prefix: str = ""  # plain text before `**`, as `foo` in `foo**/x`; git matches the rest on its own
    _fullmatch: Callable[[str], object] | None = None

    def text(self, display_path: Callable[[str], str | None]) -> str:
        """Return `file:line pattern`, or `OUTSIDE` if `display_path` returns None for the file."""
        file, _, line = self.source.rpartition(":")
        displayed = display_path(file) if self.source else None
        return OUTSIDE if displayed is None else f"{displayed}:{line} {self.pattern}"

    def matches(self, name: str, path: str, *, is_dir: bool) -> bool:
        """Return True if the rule matches this name, whose path is relative to the rule file."""
        if self.directory_only and not is_dir:
            return False
        text = name if self.by_name else path
        if not self.parts:
            return text == self.glob
        return self.compiled()(text) is not None

    def compiled(self) -> Callable[[str], object]:
        """Return the test of a rule that is not literal."""
        if self._fullmatch is None:
            regex = _pathspec_regex(self.glob) or re.escape(self.prefix) + to_regex(self.parts)
            self._fullmatch = compile_regex(regex).fullmatch
        return self._fullmatch

    def last_part(self) -> PatternPart | None:
        """Return the part of the pattern that the name must match; None if any name matches."""
        if not self.parts:
            return [self.glob.rpartition("/")[2]]
        return None if self.prefix or self.parts[-1] == ANY_PARTS else self.parts[-1]


def _pathspec_regex(glob: str) -> str | None:
    """Translate a pattern to a regex for full paths with pathspec; None if wcmatch must translate it."""
    if not _PATHSPEC_AGREES.fullmatch(glob):
        return None
    regex: str | None = spec.GitIgnoreSpecPattern.pattern_to_regex(f"/{glob}")[0]
    if not regex or regex[0] != "^" or not regex.endswith(_PATHSPEC_END):
        return None
    return regex[1 : -len(_PATHSPEC_END)]


def read_rules(content: bytes, source: str) -> list[IgnoreRule]:
    """Read a rule file as git does, without rules that can never match; `source` is "" outside the root."""
    text = content.removeprefix(_BOM).decode("latin-1")
    rules: list[IgnoreRule] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line and line[0] != "#":
            rule = _read_rule(line, len(rules), f"{source}:{number}" if source else "")
            if rule is not None:
                rules.append(rule)
    return rules


def _read_rule(line: str, index: int, source: str) -> IgnoreRule | None:
    written = _strip_spaces(line.removesuffix("\r").partition("\0")[0])
    negated = written.startswith("!")
    glob = written[1:] if negated else written
    directory_only = glob.endswith("/")
    if directory_only:
        glob = glob[:-1]
    by_name = "/" not in glob
    glob = glob.removeprefix("/")
    if not by_name and (beside := _BESIDE_EMPTY_PART.fullmatch(glob)):
        glob = beside[1] + (beside[2] or "")
    if not glob:
        return None
    pattern = written.encode("latin-1").decode("utf-8", "backslashreplace")
    rule = IgnoreRule(index, source, pattern, negated, directory_only, by_name, glob)
    if wild := _WILD.search(glob):
        start = wild.start()
        try:
            # git removes the plain beginning first, so a `**` directly after it counts as a part of its own.
            if not by_name and glob.startswith("**", start) and glob[start - 1 : start] not in ("", "/"):
                rule.parts = parse(glob[start:])
                rule.prefix = glob[:start]
            if not rule.prefix or rule.parts[0] != ANY_PARTS:
                rule.parts, rule.prefix = parse(glob), ""
        except MalformedPatternError:
            return None
        if [""] in rule.parts:
            return None
        if not rule.prefix and all(map(is_literal, rule.parts)):  # its only wildcards were escaped
            rule.glob, rule.parts = "/".join(part[0] for part in rule.parts), []
    return rule


def _strip_spaces(line: str) -> str:
    """Return the line without trailing spaces; a space after a backslash stays."""
    stripped = line.rstrip(" ")
    escaped = (len(stripped) - len(stripped.rstrip("\\"))) % 2
    return line[: len(stripped) + escaped]


class RuleFile:
    """The rules of one file, indexed by name and extension, the last rule first."""

    def __init__(self, rules: list[IgnoreRule], base: str, above: str = "") -> None:
        self.size = sum(len(rule.glob) for rule in rules)
        self.base = _bytewise(base)  # the directory with a trailing `/`; "" for the root and above
        self.above = _bytewise(above)  # for a file above the root: the path to the root, with a trailing `/`
        self.names: dict[str, list[IgnoreRule]] = {}
        self.extensions: dict[str, list[IgnoreRule]] = {}
        self.others: list[IgnoreRule] = []
        self.any_name = False  # True if a rule may match any name, for example `out/**`
        self.tested: list[IgnoreRule] = []  # those of `others` that do not match any name
        self._test: Callable[[str], object] | None = None
        texts: dict[str, None] = {}
        for rule in reversed(rules):
            part = rule.last_part()
            if part is None:
                self.any_name = True
                self.others.append(rule)
            elif is_literal(part):
                self.names.setdefault(part[0], []).append(rule)
            elif extension := extension_of(part):
                self.extensions.setdefault(extension, []).append(rule)
            else:
                self.others.append(rule)
                self.tested.append(rule)
                texts[required_text(part)] = None
        # Each name that may match, between two `\n`, contains one of these texts.
        self.required = ("",) if self.any_name else tuple(texts)

    def test(self) -> Callable[[str], object]:
        """Return the test of the names that a rule of `tested` may match."""
        if self._test is None:
            regexes = dict.fromkeys(to_regex(rule.parts[-1:]) for rule in self.tested)
            self._test = compile_regex("|".join(f"(?:{regex})" for regex in regexes)).fullmatch
        return self._test

    def last_match(self, name: str, path: str, *, is_dir: bool) -> IgnoreRule | None:
        """Return the last rule that matches a name (one character for each byte), even a negated one."""
        best: IgnoreRule | None = None
        relative = self.above + path[len(self.base) :] if self.above else path[len(self.base) :]
        dot = name.rfind(".")
        for rules in (
            self.names.get(name, ()),
            self.extensions.get(name[dot + 1 :], ()) if dot >= 0 else (),
            self.others if _has_any(f"\n{name}\n", self.required) else (),
        ):
            for rule in rules:
                if best is not None and rule.index < best.index:
                    break
                if rule.matches(name, relative, is_dir=is_dir):
                    best = rule
                    break
        return best


def _has_any(text: str, required: tuple[str, ...]) -> bool:
    for each in required:  # noqa: SIM110 - `any` over a generator takes twice as long
        if each in text:
            return True
    return False


def _bytewise(name: str) -> str:
    return name if name.isascii() else name.encode("utf-8", "surrogateescape").decode("latin-1")


class Sources(NamedTuple):
    """The contents of the rule files of one directory."""

    gitignore: bytes | None = None
    ignore: bytes | None = None
    repository: bool = False  # True if a repository begins here; git reads no `.gitignore` above it
    exclude: bytes | None = None  # the `info/exclude` of the repository


class IgnoreRules:
    """The rule files that apply in one directory. Immutable: made from the rules of the parent directory.

    In order of rank: `.ignore` files, `.gitignore` files, `info/exclude`, the user's global excludes. Of two
    files with the same name, the nearer one wins. Patterns of global excludes are relative to the repository.
    """

    def __init__(
        self,
        ignore: tuple[RuleFile, ...] = (),
        git: tuple[RuleFile, ...] = (),
        global_excludes: bytes = b"",
        key: tuple[object, ...] = (),
    ) -> None:
        self._ignore = ignore
        self._git = git
        self._global_excludes = global_excludes
        self.key = key  # equal keys mean equal rules
        files = ignore + git
        self.active = bool(files)
        self.size = sum(each.size for each in files)  # characters
        self._any_name = any(each.any_name for each in files)
        self._tested = tuple(each for each in files if each.tested)
        self._names = frozenset[str]().union(*(each.names for each in files))
        self._extensions = frozenset[str]().union(*(each.extensions for each in files))

    @classmethod
    def from_global_excludes(cls, content: bytes, directory: str = "") -> "IgnoreRules":
        """Return the rules from global excludes alone, for the tree in a directory, with a trailing `/`."""
        rules = read_rules(content, "")
        return cls((), (RuleFile(rules, directory),) if rules else (), content, (content, directory))

    def enter(self, directory: str, sources: Sources, above: str = "") -> "IgnoreRules":
        """Return the rules that apply in a directory.

        Args:
            directory: Its path relative to the root, with a trailing `/`; "" for the root or one above it.
            sources: Its rule files.
            above: For a directory above the root, the path to the root, with a trailing `/`.
        """
        ignore_files, git_files = self._ignore, self._git
        if sources.repository:
            outer = read_rules(self._global_excludes, "")
            git_files = (RuleFile(outer, directory, above),) if outer else ()
        for content, name in (
            (sources.exclude, ".git/info/exclude"),
            (sources.gitignore, ".gitignore"),
            (sources.ignore, ".ignore"),
        ):
            rules = read_rules(content or b"", "" if above else directory + name)
            if rules and name == ".ignore":
                ignore_files = (RuleFile(rules, directory, above), *ignore_files)
            elif rules:
                git_files = (RuleFile(rules, directory, above), *git_files)
        if ignore_files is self._ignore and git_files is self._git:
            return self
        key = (self.key, directory, sources, above)
        return IgnoreRules(ignore_files, git_files, self._global_excludes, key)

    def partition(
        self, directory: str, entries: list[DirEntry], deadline: float = math.inf
    ) -> tuple[list[DirEntry], list[tuple[DirEntry, IgnoreRule]]]:
        """Split the entries of a directory into kept and ignored ones, these with the rule of each.

        `directory` is relative to the root and has a trailing `/`. After the deadline, no more are tested.
        """
        # One test of all names together shows for most directories that no rule matches.
        names = [entry.name for entry in entries]
        joined = "\n".join(["", *names, ""])
        tests = [each.test() for each in self._tested if _has_any(joined, each.required)]
        known_names, extensions, any_name = self._names, self._extensions, self._any_name
        if (
            not any_name
            and not tests
            and known_names.isdisjoint(names)
            and extensions.isdisjoint([name.rpartition(".")[2] for name in names])
            and joined.isascii()
        ):
            return entries, []
        kept: list[DirEntry] = []
        ignored: list[tuple[DirEntry, IgnoreRule]] = []
        for number, entry in enumerate(entries):
            if number % _NAMES_PER_CHECK == 0 and time.monotonic() > deadline:
                break
            name = entry.name
            if (
                any_name
                or name in known_names
                or name.rpartition(".")[2] in extensions
                or not name.isascii()
                or (tests and any([test(name) for test in tests]))  # noqa: C419 - faster for a few
            ):
                rule = self.match(directory, name, is_dir=entry.is_dir(follow_symlinks=False))
                if rule is not None and not rule.negated:
                    ignored.append((entry, rule))
                    continue
            kept.append(entry)
        return kept, ignored

    def match(self, directory: str, name: str, *, is_dir: bool) -> IgnoreRule | None:
        """Return the rule that decides about a name, or None; a negated rule keeps the name."""
        name = _bytewise(name)
        path = _bytewise(directory) + name
        for files in (self._ignore, self._git):
            for each in files:
                if rule := each.last_match(name, path, is_dir=is_dir):
                    return rule
        return None
