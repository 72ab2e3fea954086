"""Ignore rules, decided as git decides them; pure: rule files come in as bytes, names as directory entries.

Names and patterns are compared as git compares them, byte by byte: a text here holds one character for each
byte (latin-1), which for ASCII is the name itself.

A directory asks in bulk. Every pattern ends in a part that says something about the name: a plain name, an
extension, or a small regex. Only a name that one of these knows is decided exactly, from the last rule of the
nearest file upwards.
"""

import math
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from agentfs.tree import wildcard

Listed = os.DirEntry[str]

# Of one rule file: lines that are rules, and characters of those with wildcards, which are compiled.
MOST_RULES = 50_000
MOST_WILDCARDS = 64 * 1024
# Of all that hold in one directory: rules, their characters, and those of rules with wildcards.
_MOST_TOGETHER = (2 * MOST_RULES, 4 * 1024 * 1024, 2 * MOST_WILDCARDS)
_COMPILED_AT_ONCE = 16 * 1024  # characters of regexes between two looks at the clock
_COMPILED_PER_LOOK, _LINES_PER_LOOK, _NAMES_PER_LOOK = 64, 4096, 16

_PLAIN = re.compile(r"[^*?\[\\]+")
_WILD = re.compile(r"[*?\[\\]")
_BOM = b"\xef\xbb\xbf"

OUTSIDE = "a rule outside the workspace"


@dataclass(eq=False, slots=True)
class Rule:
    """One line of a rule file.

    Attributes:
        index: Its place in the file; a later rule outranks an earlier one.
        source: The file and line, as `docs/.gitignore:4`; "" when outside the root: never quoted.
        pattern: The line as written, without trailing spaces.
        negated: Whether it takes back (`!`).
        directory_only: Whether it speaks of directories only (`/` at the end).
        by_name: Whether it is tested on the name alone, at any depth.
        glob: The pattern itself, one character for each byte.
        literal: Whether `glob` has no wildcard.
        suffix: What must end the name, for one star and nothing wild behind it; else "".
        tokens: What `glob` is made of, unless it is literal.
    """

    index: int
    source: str
    pattern: str
    negated: bool
    directory_only: bool
    by_name: bool
    glob: str
    literal: bool
    suffix: str = ""
    tokens: list[str] = field(default_factory=list[str])
    _fullmatch: Callable[[str], object] | None = None

    def __str__(self) -> str:
        """Return `file:line pattern`, or `OUTSIDE`."""
        return self.text(str)

    def text(self, shown: Callable[[str], str | None]) -> str:
        """Return `file:line pattern`, or `OUTSIDE`.

        Args:
            shown: Returns how the path of a file is shown; None where it is not named.
        """
        file, _, line = self.source.rpartition(":")
        named = shown(file) if self.source else None
        return OUTSIDE if named is None else f"{named}:{line} {self.pattern}"

    def matches(self, name: str, path: str, *, is_dir: bool) -> bool:
        """Tell whether the rule is about this name, whose path is relative to the rule file."""
        if self.directory_only and not is_dir:
            return False
        text = name if self.by_name else path
        if self.literal:
            return text == self.glob
        if self.suffix:
            return text.endswith(self.suffix)
        if self._fullmatch is None:
            self.compile()
        return self._fullmatch is not None and self._fullmatch(text) is not None

    def compile(self) -> None:
        """Make the regex of a rule that needs one."""
        if self.tokens and not self.suffix:
            self._fullmatch = wildcard.compile_regex(wildcard.to_regex(self.tokens)).fullmatch


class TooManyRulesError(ValueError):
    """A rule file has more rules or wildcards than are taken, alone or with those that hold besides."""


def read_rules(content: bytes, source: str, deadline: float = math.inf) -> list[Rule]:
    """Read a rule file as git does.

    Args:
        content: The bytes of the file.
        source: How to name the file; "" for one outside the root.
        deadline: The `time.monotonic()` at which reading ends.

    Returns:
        The rules in their order; what can never match is left out.

    Raises:
        TooManyRulesError: There are more than `MOST_RULES`, or `MOST_WILDCARDS`.
        TimeoutError: The deadline has passed.
    """
    text = content.removeprefix(_BOM).decode("latin-1")
    rules: list[Rule] = []
    wildcards = 0
    for number, line in enumerate(text.split("\n"), 1):
        if line and line[0] != "#":
            if number % _LINES_PER_LOOK == 0:
                _look(deadline)
            if _WILD.search(line):
                wildcards += len(line)
            if len(rules) == MOST_RULES or wildcards > MOST_WILDCARDS:
                raise TooManyRulesError
            rule = _read_rule(line, len(rules), f"{source}:{number}" if source else "")
            if rule is not None:
                rules.append(rule)
    return rules


def _look(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError


def _read_rule(line: str, index: int, source: str) -> Rule | None:
    written = _trim(line.removesuffix("\r").partition("\0")[0])
    negated = written.startswith("!")
    glob = written[1:] if negated else written
    directory_only = glob.endswith("/")
    if directory_only:
        glob = glob[:-1]
    by_name = "/" not in glob
    glob = glob.removeprefix("/")
    if not glob:
        return None
    shown = written.encode("latin-1").decode("utf-8", "backslashreplace")
    literal = _PLAIN.fullmatch(glob) is not None
    rule = Rule(index, source, shown, negated, directory_only, by_name, glob, literal)
    if by_name and glob[0] == "*" and _PLAIN.fullmatch(glob, 1):
        rule.suffix = glob[1:]
    if not literal:
        wild = _WILD.search(glob)
        try:
            # git cuts off the plain beginning first, so `**` right behind it counts as a part of its own.
            rule.tokens = wildcard.tokenize(glob, wild.start() if wild and not by_name else 0)
        except wildcard.MalformedPatternError:
            return None
    return rule


def _trim(line: str) -> str:
    """Return the line without trailing spaces; one behind a backslash stays."""
    if not line.endswith(" "):
        return line
    at = keep = 0
    while at < len(line):
        if line[at] == "\\":
            if at + 1 == len(line):
                return line
            at += 2
            keep = at
        else:
            at += 1
            if line[at - 1] != " ":
                keep = at
    return line[:keep]


class RuleFile:
    """The rules of one file, indexed by what they say about a name.

    Attributes:
        base: The directory of the file with a `/` at its end, or "" for the root or one above it.
        above: For a file above the root, the path from there to the root with a `/` at its end; else "".
        names: Rules by the plain name that they end in, the last rule first.
        extensions: Rules by the extension that they end in, the last rule first.
        others: All other rules, the last first.
        tests: For `others`, tests whether a name may be meant, each with texts of which one at least is in
            each name that passes it, between line ends that stand for its start and end; None when unknown.
        needles: The texts of all tests, or None.
        any_name: Whether some rule says nothing about the name, as `out/**` does.
        size: How many rules there are, how many characters they have, and how many those with wildcards.
    """

    __slots__ = ("above", "any_name", "base", "extensions", "names", "needles", "others", "size", "tests")

    def __init__(self, rules: list[Rule], base: str, above: str = "", deadline: float = math.inf) -> None:
        self.size = _size_of(rules)
        self.base = _bytewise(base)
        self.above = _bytewise(above)
        self.names: dict[str, list[Rule]] = {}
        self.extensions: dict[str, list[Rule]] = {}
        self.others: list[Rule] = []
        self.any_name = False
        tails: dict[str, str] = {}  # regexes of the last parts, each with a text that its matches have
        for rule in reversed(rules):
            tail = _tail(rule)
            if isinstance(tail, str):
                self.names.setdefault(tail, []).append(rule)
            elif tail is None:
                self.any_name = True
                self.others.append(rule)
            elif extension := _extension(tail):
                self.extensions.setdefault(extension, []).append(rule)
            else:
                self.others.append(rule)
                tails[wildcard.to_regex(tail)] = _needle(tail)
        if self.any_name:  # then each name is tested by all of these
            for number, rule in enumerate(self.others):
                if number % _COMPILED_PER_LOOK == 0:
                    _look(deadline)
                rule.compile()
        self.tests = tuple(_tests(tails, deadline))
        known = all(tails.values()) and not self.any_name
        self.needles = tuple(dict.fromkeys(tails.values())) if known else None

    def last_match(self, name: str, path: str, *, is_dir: bool) -> Rule | None:
        """Return the last rule about this name (one character for each byte), whatever it says."""
        best: Rule | None = None
        relative = self.above + path[len(self.base) :] if self.above else path[len(self.base) :]
        dot = name.rfind(".")
        buckets = (
            self.names.get(name, ()),
            self.extensions.get(name[dot + 1 :], ()) if dot >= 0 else (),
            self.others if self.needles is None or _holds_any(f"\n{name}\n", self.needles) else (),
        )
        for bucket in buckets:
            for rule in bucket:
                if best is not None and rule.index < best.index:
                    break
                if rule.matches(name, relative, is_dir=is_dir):
                    best = rule
                    break
        return best


def _tests(
    tails: dict[str, str], deadline: float
) -> Iterator[tuple[tuple[str, ...] | None, Callable[[str], object]]]:
    """Join regexes to tests of a size that compiles at once, each with the texts that its matches have."""
    pending = list(tails.items())
    while pending:
        _look(deadline)
        size = count = 0
        while count < len(pending) and (count == 0 or size + len(pending[count][0]) <= _COMPILED_AT_ONCE):
            size += len(pending[count][0])
            count += 1
        some, pending = dict(pending[:count]), pending[count:]
        texts = tuple(dict.fromkeys(some.values())) if all(some.values()) else None
        yield texts, wildcard.compile_regex("|".join(f"(?:{tail})" for tail in some)).fullmatch


def _tail(rule: Rule) -> str | list[str] | None:
    """Return what a rule says about the name: the name, the tokens of the last part, or None for nothing."""
    if rule.literal:
        return rule.glob.rpartition("/")[2]
    tail: list[str] = []
    before = wildcard.SLASH
    for token in rule.tokens:
        if token == wildcard.SLASH:
            tail = []
        elif token == wildcard.DEEP or (token == wildcard.DEEP_DIR and before not in _PART_ENDS):
            return None
        elif token == wildcard.DEEP_DIR:
            tail = []
        else:
            tail.append(token)
        before = token
    letters = [_letter(token) for token in tail]
    return "".join(letters) if all(letters) else tail


_PART_ENDS = (wildcard.SLASH, wildcard.DEEP_DIR)


def _letter(token: str) -> str:
    """Return the character that a token stands for, or "" for a wildcard."""
    if len(token) == 1:
        return "" if token == wildcard.STAR else token
    return token[1] if len(token) == 2 and token[0] == "\\" else ""


def _extension(tail: list[str]) -> str:
    r"""Return the extension of `*.ext`; `*.mod.c` is none, as it would make each `.c` a suspect."""
    if tail[:2] != [wildcard.STAR, r"\."] or r"\." in tail[2:]:
        return ""
    letters = [_letter(token) for token in tail[2:]]
    return "".join(letters) if all(letters) else ""


def _needle(tail: list[str]) -> str:
    """Return the longest text that each match of a tail has in it, or "" when there is none."""
    runs = [""]
    for letter in ("\n", *map(_letter, tail), "\n"):
        if letter:
            runs[-1] += letter
        else:
            runs.append("")
    longest = max(runs, key=len)
    return longest if longest != "\n" else ""


def _holds_any(text: str, needles: tuple[str, ...]) -> bool:
    for needle in needles:  # noqa: SIM110 - `any` over a generator takes twice as long
        if needle in text:
            return True
    return False


def _bytewise(name: str) -> str:
    return name if name.isascii() else name.encode("utf-8", "surrogateescape").decode("latin-1")


def _rule_file(
    content: bytes, name: str, directory: str, above: str, deadline: float, others: tuple[RuleFile, ...]
) -> RuleFile | None:
    """Read and compile a rule file, or return None when it has no rules."""
    rules = read_rules(content, name, deadline)
    sizes = zip(_size_of(rules), *(each.size for each in others), strict=True)
    if any(sum(some) > most for some, most in zip(sizes, _MOST_TOGETHER, strict=True)):
        raise TooManyRulesError
    return RuleFile(rules, directory, above, deadline) if rules else None


def _size_of(rules: list[Rule]) -> tuple[int, int, int]:
    wildcards = sum(len(rule.glob) for rule in rules if not rule.literal)
    return len(rules), sum(len(rule.pattern) for rule in rules), wildcards


class IgnoreRules:
    """All rule files that hold in one directory; immutable, made from those of the directory above.

    An `.ignore` outranks every `.gitignore`; then a nearer file outranks a farther one; then comes
    `info/exclude`, and the user's global excludes are the last.

    Args:
        everywhere: The user's global excludes, whose patterns start where a repository does.
        deadline: The `time.monotonic()` at which compiling them ends.

    Attributes:
        active: Whether there are rules.
        refused: The rule files of the directory that have too many rules to be taken.
    """

    __slots__ = (
        "_any_name",
        "_everywhere",
        "_extensions",
        "_git",
        "_names",
        "_own",
        "_tests",
        "active",
        "refused",
    )

    def __init__(self, everywhere: list[Rule] | None = None, deadline: float = math.inf) -> None:
        self._everywhere = everywhere or []
        self.refused: tuple[str, ...] = ()
        self._hold((), (RuleFile(self._everywhere, "", deadline=deadline),) if everywhere else ())

    def _hold(self, own: tuple[RuleFile, ...], git: tuple[RuleFile, ...]) -> None:
        self._own = own
        self._git = git
        files = own + git
        self.active = bool(files)
        self._any_name = any(each.any_name for each in files)
        self._tests = tuple(test for each in files for test in each.tests)
        self._names = frozenset[str]().union(*(each.names for each in files))
        self._extensions = frozenset[str]().union(*(each.extensions for each in files))

    def enter(
        self,
        directory: str,
        *,
        gitignore: bytes | None = None,
        ignore: bytes | None = None,
        repository: bool = False,
        exclude: bytes | None = None,
        quote_exclude: bool = True,
        above: str = "",
        deadline: float = math.inf,
    ) -> "IgnoreRules":
        """Return the rules that hold in a directory.

        Args:
            directory: Its path relative to the root with a `/` at its end; "" for the root, or one above it.
            gitignore: The bytes of its `.gitignore`, if it has one.
            ignore: The bytes of its `.ignore`, if it has one.
            repository: Whether a repository begins here; to git, no `.gitignore` above it counts.
            exclude: The bytes of the `info/exclude` of that repository.
            quote_exclude: Whether that file lies in the root, so that its rules may be quoted.
            above: For a directory above the root, the path from it to the root with a `/` at its end.
            deadline: The `time.monotonic()` at which reading and compiling them ends.

        Raises:
            TimeoutError: The deadline has passed.
        """
        own, git = self._own, self._git
        if repository:
            git = (RuleFile(self._everywhere, directory, above, deadline),) if self._everywhere else ()
        quoted = not above
        refused: list[str] = []
        for content, name in (
            (exclude, f"{directory}.git/info/exclude" if quoted and quote_exclude else ""),
            (gitignore, f"{directory}.gitignore" if quoted else ""),
            (ignore, f"{directory}.ignore" if quoted else ""),
        ):
            if not content:
                continue
            try:
                file = _rule_file(content, name, directory, above, deadline, (*own, *git))
            except TooManyRulesError:
                refused.append(name)
                continue
            if file is not None and content is ignore:
                own = (file, *own)
            elif file is not None:
                git = (file, *git)
        if own is self._own and git is self._git and not refused and not self.refused:
            return self
        entered = IgnoreRules()
        entered._everywhere = self._everywhere
        entered.refused = tuple(refused)
        entered._hold(own, git)
        return entered

    def sift(
        self, directory: str, entries: list[Listed], deadline: float = math.inf
    ) -> tuple[list[Listed], list[Rule], int]:
        """Split the entries of one directory.

        Args:
            directory: The path of the directory relative to the root with a `/` at its end; "" for the root.
            entries: What stands in it.
            deadline: The `time.monotonic()` at which no more are decided.

        Returns:
            What is not ignored, in its order; for each that is, the rule; and how many entries were decided.
        """
        # One look at all names together tells in most directories that no rule is about any of them.
        listed = [entry.name for entry in entries]
        together = "\n".join(["", *listed, ""])
        tests = [test for needles, test in self._tests if needles is None or _holds_any(together, needles)]
        names, extensions, any_name = self._names, self._extensions, self._any_name
        if (
            not any_name
            and not tests
            and names.isdisjoint(listed)
            and extensions.isdisjoint([name.rpartition(".")[2] for name in listed])
            and together.isascii()
        ):
            return entries, [], len(entries)
        kept: list[Listed] = []
        rules: list[Rule] = []
        for number, entry in enumerate(entries):
            if number % _NAMES_PER_LOOK == 0 and time.monotonic() > deadline:
                return kept, rules, number
            name = entry.name
            if (
                any_name
                or name in names
                or name.rpartition(".")[2] in extensions
                or not name.isascii()
                or (tests and any([test(name) for test in tests]))  # noqa: C419 - faster for a few
            ):
                rule = self.decide(directory, name, is_dir=entry.is_dir(follow_symlinks=False))
                if rule is not None and not rule.negated:
                    rules.append(rule)
                    continue
            kept.append(entry)
        return kept, rules, len(entries)

    def decide(self, directory: str, name: str, *, is_dir: bool) -> Rule | None:
        """Return the rule that decides about one name, or None; one that is `negated` keeps the name.

        Args:
            directory: As for `sift`.
            name: The name.
            is_dir: Whether it is a directory; a link to one is none.
        """
        name = _bytewise(name)
        path = _bytewise(directory) + name
        for files in (self._own, self._git):
            for each in files:
                if rule := each.last_match(name, path, is_dir=is_dir):
                    return rule
        return None
