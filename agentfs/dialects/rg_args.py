"""ripgrep's arguments as those of `grep`: some are known and kept in meaning, all else is refused. Pure."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agentfs.errors import InvalidArgumentError
from agentfs.messages import Retry
from agentfs.patterns.compile import compile_pattern, escape
from agentfs.search.filters import parse_filesize
from agentfs.visible import literal

Shows = Literal["lines", "matches", "files", "counts"]

_SORTS = {"path": "path", "modified": "oldest", "none": "path"}
_COLORS = ("never", "auto", "always", "ansi")
_SPLIT = re.compile(r"(-\w|--[a-z-]+)\s+(\S.*)", re.DOTALL)
_LEADING_FLAGS = re.compile(r"\(\?([a-z]+)\)")
_GLOB_PIECE = re.compile(
    r"\[(?P<negation>[!^]?)(?P<first>\]?)(?P<members>(?:\[:\w+:\]|\\.|[^\]\\])*)\]"
    r"|\\?(?P<letter>[^\W\d_])|\\.",
    re.DOTALL,
)
_MEMBER = re.compile(r"\[:\w+:\]|\\?[^\W\d_](?:-\\?[^\W\d_])?")
_CASES = {"[:lower:]": "[:upper:]", "[:upper:]": "[:lower:]"}


@dataclass
class RgArguments:
    """What ripgrep's arguments mean.

    Attributes:
        case: How letters match.
        globs: Those of `-g`, then those of `--iglob`, as ripgrep tests them.
        types: Types of files; one that begins with `!` is left out.
        whole: What a match has to be: a whole word, a whole line, or anything.
        fixed: Whether the pattern is plain text.
        inverted: Whether the lines that do not match are searched for.
        only: Whether only the matched parts are shown.
        listed: Whether files are shown in place of lines: their paths, or with counts.
        unrestricted: How often `-u` was given.
        others: Arguments of `grep` that mean the same.
    """

    case: str = "sensitive"
    globs: list[str] = field(default_factory=list[str])
    iglobs: list[str] = field(default_factory=list[str])
    types: list[str] = field(default_factory=list[str])
    whole: Literal["word", "line"] | None = None
    fixed: bool = False
    inverted: bool = False
    only: bool = False
    listed: Literal["files", "counts"] | None = None
    unrestricted: int = 0
    others: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def shows(self) -> Shows:
        """What the results are."""
        return self.listed or ("matches" if self.only and not self.inverted else "lines")

    def grep(self, pattern: str) -> dict[str, Any]:
        """Return the arguments of `grep`.

        Args:
            pattern: What is searched for.

        Raises:
            AgentFSError: The pattern is none (`invalid_pattern`), or two arguments do not go together.
        """
        if self.inverted and self.others.get("multiline"):
            raise _wrong("-v and -U do not go together in `rg_args`.", "-v")
        globs = [*self.globs, *map(_in_either_case, self.iglobs)]
        takes_in = any(not glob.startswith("!") for glob in globs)
        arguments: dict[str, Any] = {
            "pattern": pattern,
            "ignore_case": self.case == "insensitive",
            "smart_case": self.case == "smart",
            "glob": globs or None,
            # To ripgrep a file that a glob takes in needs to be of no type.
            "type": (None if takes_in else self.types) or None,
            "hidden": self.unrestricted > 1,
            "context": 0,
        }
        if self.unrestricted:
            arguments["include_ignored"] = True
        if self.listed:
            arguments["output_mode"] = {"files": "files_with_matches", "counts": "count"}[self.listed]
        if self.inverted or self.whole == "line":
            arguments["pattern"] = self._rewritten(pattern)
        else:
            arguments |= {"fixed_strings": True} if self.fixed else {}
            arguments |= {"word": True} if self.whole == "word" else {}
        return {**arguments, **self.others}

    def _rewritten(self, pattern: str) -> str:
        """Return the pattern with what `grep` has no argument for."""
        multiline = bool(self.others.get("multiline"))
        if self.fixed and pattern:
            pattern = escape(pattern)
        # An error is about the pattern as it was given, and a stray ")" does not close what is put around it.
        compile_pattern(pattern, multiline=multiline)
        flags = _LEADING_FLAGS.match(pattern)
        start = flags[0] if flags and not self.fixed else ""
        # In a verbose pattern a comment may stand at the end.
        end = "\n" if flags and start and "x" in flags[1] else ""
        pattern = f"(?:{pattern[len(start) :]}{end})"
        if self.whole == "word":
            pattern = f"(?<!\\w){pattern}(?!\\w)"
        elif self.whole == "line":
            pattern = f"^{pattern}$"
        return f"{start}^(?!.*{pattern})" if self.inverted else start + pattern


_Take = Callable[[RgArguments, str, str], None]


def _passes(name: str, value: Any = True) -> _Take:
    """Return what sets an argument of `grep`."""
    return lambda meant, _option, _text: meant.others.update({name: value})


def _sets(name: str, value: Any = True) -> _Take:
    """Return what sets an attribute of `RgArguments`."""
    return lambda meant, _option, _text: setattr(meant, name, value)


def _number(name: str, least: int = 0) -> _Take:
    def take(meant: RgArguments, option: str, text: str) -> None:
        if not re.fullmatch(r"[0-9]{1,9}", text.strip()) or int(text) < least:
            raise _wrong(f"{option} needs a number from {least}, not {literal(text)}.", option)
        meant.others[name] = int(text)

    return take


def _multiline(meant: RgArguments, _option: str, _text: str) -> None:
    meant.others |= {"multiline": True, "dot_all": False}


def _unrestricted(meant: RgArguments, _option: str, _text: str) -> None:
    meant.unrestricted += 1


def _glob(meant: RgArguments, _option: str, text: str) -> None:
    meant.globs.append(text)


def _iglob(meant: RgArguments, _option: str, text: str) -> None:
    meant.iglobs.append(text)


def _type(meant: RgArguments, _option: str, text: str) -> None:
    meant.types.append(text)


def _type_not(meant: RgArguments, _option: str, text: str) -> None:
    meant.types.append(f"!{text}")


def _encoding(meant: RgArguments, option: str, text: str) -> None:
    if text == "none":
        raise _wrong(f"{option} none is not taken: files are searched as text.", option)
    meant.others["encoding"] = None if text == "auto" else text


def _sort(meant: RgArguments, option: str, text: str) -> None:
    if text not in _SORTS:
        raise _wrong(f"{option} takes {', '.join(_SORTS)}, not {literal(text)}.", option)
    meant.others["sort"] = _SORTS[text]


def _max_filesize(meant: RgArguments, option: str, text: str) -> None:
    try:
        parse_filesize(text)
    except InvalidArgumentError:
        raise _wrong(
            f"{option} needs a size from 1, such as 500K or 1M, not {literal(text)}.", option
        ) from None
    meant.others["max_filesize"] = text


def _color(_meant: RgArguments, option: str, text: str) -> None:
    if text not in _COLORS:
        raise _wrong(f"{option} takes {', '.join(_COLORS)}, not {literal(text)}.", option)


def _nothing(_meant: RgArguments, _option: str, _text: str) -> None:
    """Take an option that changes nothing: the form of the answer and the regex language are fixed."""


# Each option: its long names, and what takes it; those of `_WITH_VALUE` have one.
_WITH_VALUE: dict[str, tuple[str, _Take]] = {
    "-A": ("--after-context", _number("after")),
    "-B": ("--before-context", _number("before")),
    "-C": ("--context", _number("context")),
    "-g": ("--glob", _glob),
    "--iglob": ("--iglob", _iglob),
    "-t": ("--type", _type),
    "-T": ("--type-not", _type_not),
    "-m": ("--max-count", _number("max_count", 1)),
    "--max-depth": ("--max-depth", _number("max_depth", 1)),
    "-E": ("--encoding", _encoding),
    "--max-filesize": ("--max-filesize", _max_filesize),
    "--sort": ("--sort", _sort),
    "--color": ("--color", _color),
}
_ALONE: dict[str, tuple[str, _Take]] = {
    "-i": ("--ignore-case", _sets("case", "insensitive")),
    "-s": ("--case-sensitive", _sets("case", "sensitive")),
    "-S": ("--smart-case", _sets("case", "smart")),
    "-F": ("--fixed-strings", _sets("fixed")),
    "-w": ("--word-regexp", _sets("whole", "word")),
    "-x": ("--line-regexp", _sets("whole", "line")),
    "-v": ("--invert-match", _sets("inverted")),
    "-U": ("--multiline", _multiline),
    "-P": ("--pcre2", _nothing),
    "-o": ("--only-matching", _sets("only")),
    "-l": ("--files-with-matches", _sets("listed", "files")),
    "-c": ("--count", _sets("listed", "counts")),
    "-L": ("--follow", _passes("follow_symlinks")),
    "-.": ("--hidden", _passes("hidden")),
    "--no-ignore": ("--no-ignore", _passes("include_ignored")),
    "-u": ("--unrestricted", _unrestricted),
    "-n": ("--line-number", _nothing),
    "-N": ("--no-line-number", _nothing),
    "-H": ("--with-filename", _nothing),
    "--no-heading": ("--no-heading", _nothing),
}
ALLOWED = (
    "-i -s -S -F -w -x -v -U -P -A -B -C -o -l -c -g --iglob -t -T -m --max-depth -L -. --no-ignore -u "
    "--max-filesize -E --sort -n -N -H --no-heading --color"
)
_LONG = {long: short for short, (long, _) in (_WITH_VALUE | _ALONE).items()}


def read_arguments(rg_args: str | Sequence[str] | None) -> RgArguments:
    """Return what ripgrep's arguments mean; as with ripgrep, the last of several that contradict counts.

    Args:
        rg_args: ripgrep's arguments, as a list or as a shell would split them.

    Raises:
        InvalidArgumentError: One is not among those that are taken, or has no value or a wrong one; the
            message names it (`invalid_argument`).
    """
    meant = RgArguments()
    for option, value in _options(_words(rg_args)):
        _, take = (_WITH_VALUE | _ALONE)[option]
        take(meant, option, value)
    return meant


def _in_either_case(glob: str) -> str:
    """Return a glob that matches the letters of another one in either case."""
    return _GLOB_PIECE.sub(_piece_in_either_case, glob)


def _piece_in_either_case(found: re.Match[str]) -> str:
    if letter := found["letter"]:
        other = letter.swapcase()
        return f"[{letter}{other}]" if len(other) == 1 else found[0]
    if found["members"] is None:
        return found[0]
    first, members = found["first"], found["members"]
    swapped = [_in_other_case(each[0]) for each in _MEMBER.finditer(members)]
    others = [each for each in swapped if "-" not in each or each[0] <= each[-1]]
    return f"[{found['negation']}{first}{''.join(others)}{members}]"


def _in_other_case(member: str) -> str:
    """Return a letter, range or named set of a character class in the other case, or "" where it has none."""
    return _CASES.get(member, "") if member.startswith("[") else member.swapcase()


# Options for other arguments of `grep`, where a search is advised to be made again.
_TO_PASS = {"include_ignored": ["--no-ignore", "-."], "fixed_strings": ["-F"]}
_OWN = {"pattern", "path"}
_REWRITING = {"-v", "-x"}


def retried(retry: Retry, given: Mapping[str, Any]) -> Retry | None:
    """Turn other arguments of `grep` into other arguments of a tool that has them in `rg_args`.

    Args:
        retry: What to change in a call of `grep`.
        given: What the tool was called with.
    """
    own = {name: value for name, value in retry.arguments.items() if name in _OWN}
    others = [name for name, value in retry.arguments.items() if name not in _OWN and value is True]
    if len(own) + len(others) < len(retry.arguments) or not {*others, *retry.without} <= _TO_PASS.keys():
        return None
    options = list(_options(_words(given.get("rg_args"))))
    if "pattern" in own and any(option in _REWRITING for option, _ in options):
        return None  # it is not the one that was given
    if not others and not retry.without:
        return Retry(own)
    dropped = {option for name in retry.without for option in _TO_PASS[name]}
    kept = [pair for pair in options if pair[0] not in dropped]
    rg_args = [word for pair in kept for word in pair if word]
    rg_args += [option for name in others for option in _TO_PASS[name]]
    return Retry({**own, "rg_args": rg_args}) if rg_args else Retry(own, ("rg_args",))


def _words(rg_args: str | Sequence[str] | None) -> Iterator[str]:
    if isinstance(rg_args, str):
        try:
            yield from shlex.split(rg_args)
        except ValueError as error:
            raise _wrong(f"`rg_args` cannot be split as a shell would: {error}.", "") from None
        return
    for word in rg_args or ():
        together = _SPLIT.fullmatch(word)  # "-A 3" in one item can mean only one thing
        yield from together.groups() if together else (word,)


def _options(words: Iterator[str]) -> Iterator[tuple[str, str]]:
    """Yield each option by its short name, with its value."""
    for word in words:
        if word.startswith("--") and word != "--":
            name, attached, value = word.partition("=")
            option = _LONG.get(name)
            if option is None:
                raise _refused(name)
            if option in _WITH_VALUE:
                yield option, value if attached else _next(words, name)
            elif attached:
                raise _wrong(f"{name} takes no value.", name)
            else:
                yield option, ""
        elif word.startswith("-") and word not in ("-", "--"):
            yield from _cluster(word, words)
        else:
            raise _wrong(f"{literal(word)} in `rg_args` is no option.", word)


def _cluster(word: str, words: Iterator[str]) -> Iterator[tuple[str, str]]:
    """Yield the short options that stand behind one dash; the first with a value takes what follows it."""
    for at in range(1, len(word)):
        option = f"-{word[at]}"
        if option in _ALONE:
            yield option, ""
        elif option in _WITH_VALUE:
            rest = word[at + 1 :].removeprefix("=")
            yield option, rest or _next(words, option)
            return
        else:
            raise _refused(option)


def _next(words: Iterator[str], option: str) -> str:
    value = next(words, None)
    if value is None:
        raise _wrong(f"{option} needs a value.", option)
    return value


def _refused(option: str) -> InvalidArgumentError:
    return _wrong(f"{option} is not taken in `rg_args`.", option)


def _wrong(message: str, option: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        message,
        hint=f"rg_args takes {ALLOWED}, and their long names; the pattern and the path have their own "
        "parameters.",
        details={"argument": "rg_args", "option": option, "allowed": ALLOWED.split()},
    )
