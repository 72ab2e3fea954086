"""ripgrep's arguments as those of `grep`: some are known and kept in meaning, all else is refused. Pure."""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentfs.errors import InvalidArgumentError

_SORTS = {"path": "path", "modified": "oldest", "none": "path"}
_SPLIT = re.compile(r"(-\w|--[a-z-]+)\s+(\S.*)", re.DOTALL)


@dataclass
class _Meant:
    """What the arguments come to."""

    case: str = "sensitive"
    globs: list[str] = field(default_factory=list[str])
    types: list[str] = field(default_factory=list[str])
    others: dict[str, Any] = field(default_factory=dict[str, Any])

    def grep(self) -> dict[str, Any]:
        takes_in = any(not glob.startswith("!") for glob in self.globs)
        return {
            "ignore_case": self.case == "insensitive",
            "smart_case": self.case == "smart",
            "glob": self.globs or None,
            # To ripgrep a file that a glob takes in needs to be of no type.
            "type": (None if takes_in else self.types) or None,
            "hidden": False,
            "context": 0,
            **self.others,
        }


_Take = Callable[[_Meant, str, str], None]


def _sets(name: str, value: Any = True) -> _Take:
    return lambda meant, _option, _text: meant.others.update({name: value})


def _case(mode: str) -> _Take:
    def take(meant: _Meant, _option: str, _text: str) -> None:
        meant.case = mode

    return take


def _number(name: str, least: int = 0) -> _Take:
    def take(meant: _Meant, option: str, text: str) -> None:
        if not re.fullmatch(r"[0-9]{1,9}", text.strip()) or int(text) < least:
            raise _wrong(f"{option} needs a number from {least}, not {text!r}.", option)
        meant.others[name] = int(text)

    return take


def _multiline(meant: _Meant, _option: str, _text: str) -> None:
    meant.others |= {"multiline": True, "dot_all": False}


def _glob(meant: _Meant, _option: str, text: str) -> None:
    meant.globs.append(text)


def _type(meant: _Meant, _option: str, text: str) -> None:
    meant.types.append(text)


def _encoding(meant: _Meant, option: str, text: str) -> None:
    if text == "none":
        raise _wrong(f"{option} none is not taken: files are searched as text.", option)
    meant.others["encoding"] = None if text == "auto" else text


def _sort(meant: _Meant, option: str, text: str) -> None:
    if text not in _SORTS:
        raise _wrong(f"{option} takes {', '.join(_SORTS)}, not {text!r}.", option)
    meant.others["sort"] = _SORTS[text]


def _max_filesize(meant: _Meant, _option: str, text: str) -> None:
    meant.others["max_filesize"] = text


# Each option: its names, and what takes it; those of `_WITH_VALUE` have one.
_WITH_VALUE: dict[str, tuple[str, _Take]] = {
    "-A": ("--after-context", _number("after")),
    "-B": ("--before-context", _number("before")),
    "-C": ("--context", _number("context")),
    "-g": ("--glob", _glob),
    "-t": ("--type", _type),
    "-m": ("--max-count", _number("max_count", 1)),
    "-E": ("--encoding", _encoding),
    "--max-filesize": ("--max-filesize", _max_filesize),
    "--sort": ("--sort", _sort),
}
_ALONE: dict[str, tuple[str, _Take]] = {
    "-i": ("--ignore-case", _case("insensitive")),
    "-s": ("--case-sensitive", _case("sensitive")),
    "-S": ("--smart-case", _case("smart")),
    "-F": ("--fixed-strings", _sets("fixed_strings")),
    "-w": ("--word-regexp", _sets("word")),
    "-U": ("--multiline", _multiline),
    "-L": ("--follow", _sets("follow_symlinks")),
    "-.": ("--hidden", _sets("hidden")),
    "--no-ignore": ("--no-ignore", _sets("include_ignored")),
}
ALLOWED = "-i -s -S -F -w -U -A -B -C -g -t -m -L -. --no-ignore --max-filesize -E --sort"
_LONG = {long: short for short, (long, _) in (_WITH_VALUE | _ALONE).items()}


def grep_arguments(rg_args: str | Sequence[str] | None) -> dict[str, Any]:
    """Return the arguments of `grep` that mean what ripgrep's mean.

    Args:
        rg_args: ripgrep's arguments, as a list or as a shell would split them.

    Returns:
        Arguments by name. As with ripgrep, the last of several counts, and neither is case ignored nor a
        line around a match shown unless that is asked for.

    Raises:
        InvalidArgumentError: One is not among those that are taken, or has no value or a wrong one; the
            message names it (`invalid_argument`).
    """
    meant = _Meant()
    for option, value in _options(_words(rg_args)):
        _, take = (_WITH_VALUE | _ALONE)[option]
        take(meant, option, value)
    return meant.grep()


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
            raise _wrong(f"{word!r} in `rg_args` is no option.", word)


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
