"""Parsing of ripgrep's command line arguments into arguments of `grep`. Pure."""

import getopt
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

from agentfs.dialects.toolkit import Retry, case_options, literal, parse_filesize
from agentfs.errors import InvalidArgumentError

_SORTS = {"path": "path", "modified": "oldest", "none": "path"}
_DESCENDING_SORTS = {"path": "reverse", "modified": "modified", "none": "path"}
_MAX_CHARS = 50_000  # `getopt` takes quadratic time
_COLORS = ("never", "auto", "always", "ansi")
_OPTION_AND_VALUE = re.compile(r"(-\w|--[a-z-]+)\s+(\S.*)", re.DOTALL)
_GLOB_TOKEN = re.compile(
    r"\[(?P<negation>[!^]?)(?P<first>\]?)(?P<members>(?:\[:\w+:\]|\\.|[^\]\\])*)\]"
    r"|\\?(?P<letter>[^\W\d_])|\\.",
    re.DOTALL,
)
_CLASS_MEMBER = re.compile(r"\[:\w+:\]|\\?[^\W\d_](?:-\\?[^\W\d_])?")
_OTHER_CASE = {"[:lower:]": "[:upper:]", "[:upper:]": "[:lower:]"}


class RgArguments(NamedTuple):
    """Arguments of `grep` with the meaning of ripgrep's, and whether only matched parts are shown."""

    options: dict[str, Any]
    only_matching: bool

    @property
    def shows(self) -> Literal["lines", "matches", "files", "counts"]:
        """The kind of the results."""
        if mode := self.options.get("output_mode"):
            return "counts" if mode == "count" else "files"
        return "matches" if self.only_matching else "lines"


def _number(option: str, text: str, *, least: int = 0) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text.strip()) or int(text) < least:
        raise _invalid(f"{option} needs a number from {least}, not {literal(text)}.", option)
    return int(text)


def _encoding(option: str, text: str) -> str | None:
    if text == "none":
        raise _invalid(f"{option} none is not supported: files are searched as text.", option)
    return None if text == "auto" else text


def _one_of(option: str, text: str, *, values: Mapping[str, str]) -> str:
    if text not in values:
        raise _invalid(f"{option} takes {', '.join(values)}, not {literal(text)}.", option)
    return values[text]


def _max_filesize(option: str, text: str) -> str:
    try:
        parse_filesize(text)
    except InvalidArgumentError:
        message = f"{option} needs a size from 1, such as 500K or 1M, not {literal(text)}."
        raise _invalid(message, option) from None
    return text


# Flags that change nothing here: the long name.
_WITHOUT_EFFECT = {
    "-P": "--pcre2",
    "-a": "--text",
    "-n": "--line-number",
    "-N": "--no-line-number",
    "-H": "--with-filename",
    "-I": "--no-filename",
    "-p": "--pretty",
    **{f"--{name}": f"--{name}" for name in ("heading", "no-heading", "no-messages", "no-config", "crlf")},
}
# Options without a value: the long name, and the arguments of `grep` that they set; None unsets one.
_FLAGS: dict[str, tuple[str, dict[str, Any]]] = {
    "-i": ("--ignore-case", case_options("insensitive")),
    "-s": ("--case-sensitive", case_options("sensitive")),
    "-S": ("--smart-case", case_options("smart")),
    "-F": ("--fixed-strings", {"fixed_strings": True}),
    "-w": ("--word-regexp", {"word": True, "whole_line": None}),
    "-x": ("--line-regexp", {"whole_line": True, "word": None}),
    "-v": ("--invert-match", {"invert": True}),
    "-U": ("--multiline", {"multiline": True}),
    "--multiline-dotall": ("--multiline-dotall", {"dot_all": True}),
    "-o": ("--only-matching", {}),
    "-l": ("--files-with-matches", {"output_mode": "files_with_matches"}),
    "-c": ("--count", {"output_mode": "count"}),
    "--count-matches": ("--count-matches", {"output_mode": "count"}),
    "-L": ("--follow", {"follow_symlinks": True}),
    "-.": ("--hidden", {"hidden": True}),
    "--no-ignore": ("--no-ignore", {"include_ignored": True}),
    "--no-ignore-vcs": ("--no-ignore-vcs", {"include_ignored": True}),
    "-u": ("--unrestricted", {"include_ignored": True}),
    **{short: (long, {}) for short, long in _WITHOUT_EFFECT.items()},
}
# Options with a value: the long name, the argument of `grep` to set, and the parser of the value.
_WITH_VALUE: dict[str, tuple[str, str, Callable[[str, str], Any]]] = {
    "-A": ("--after-context", "after", _number),
    "-B": ("--before-context", "before", _number),
    "-C": ("--context", "context", _number),
    "-g": ("--glob", "glob", lambda _, text: text),
    "--iglob": ("--iglob", "iglob", lambda _, text: text),
    "-t": ("--type", "type", lambda _, text: text),
    "-T": ("--type-not", "type", lambda _, text: f"!{text}"),
    "-m": ("--max-count", "max_count", partial(_number, least=1)),
    "-d": ("--max-depth", "max_depth", partial(_number, least=1)),
    "-E": ("--encoding", "encoding", _encoding),
    "--max-filesize": ("--max-filesize", "max_filesize", _max_filesize),
    "--sort": ("--sort", "sort", partial(_one_of, values=_SORTS)),
    "--sortr": ("--sortr", "sort", partial(_one_of, values=_DESCENDING_SORTS)),
    "--color": ("--color", "", partial(_one_of, values=dict.fromkeys(_COLORS, ""))),
    "-j": ("--threads", "", _number),
}
ALLOWED = " ".join(
    each for each in (*_FLAGS, *_WITH_VALUE) if each not in {*_WITHOUT_EFFECT, "--color", "-j"}
)
_SHORT = {
    **{names[0]: short for short, names in _WITH_VALUE.items()},
    **{names[0]: short for short, names in _FLAGS.items()},
}
# All options as `getopt` takes them.
_SHORT_OPTIONS = "".join(
    f"{option[1]}{':' if option in _WITH_VALUE else ''}" for option in _SHORT.values() if len(option) == 2
)
_LONG_OPTIONS = [f"{name[2:]}{'=' if option in _WITH_VALUE else ''}" for name, option in _SHORT.items()]


def read_arguments(rg_args: str | Sequence[str] | None) -> RgArguments:
    """Parse ripgrep's arguments. Of contradicting ones the last counts, as with ripgrep."""
    given = _options(rg_args)
    options: dict[str, Any] = {**case_options("sensitive"), "hidden": False, "context": 0, "dot_all": False}
    lists: dict[str, list[str]] = {"glob": [], "iglob": [], "type": []}
    for option, text in given:
        if option in _FLAGS:
            options |= _FLAGS[option][1]
            continue
        long, name, read = _WITH_VALUE[option]
        value = read(option if option == long else f"{option} ({long})", text)
        if name in lists:
            lists[name].append(value)
        elif name:
            options[name] = value
    flags = [option for option, _ in given]
    if "-v" in flags and "-U" in flags:
        raise _invalid("-v and -U do not go together in `rg_args`.", "-v")
    if flags.count("-u") > 1:
        options["hidden"] = True
    globs = [*lists["glob"], *(_GLOB_TOKEN.sub(_in_both_cases, glob) for glob in lists["iglob"])]
    # ripgrep ignores the type of a file that a glob includes.
    includes = any(not glob.startswith("!") for glob in globs)
    options = {name: value for name, value in options.items() if value is not None}
    options |= {"glob": globs or None, "type": (None if includes else lists["type"]) or None}
    only_matching = not {"-o", "--count-matches"}.isdisjoint(flags) and "-v" not in flags
    return RgArguments(options, only_matching)


def _in_both_cases(token: re.Match[str]) -> str:
    """Return a token of a glob that matches letters in either case."""
    if letter := token["letter"]:
        other = letter.swapcase()
        return f"[{letter}{other}]" if len(other) == 1 else token[0]
    if token["members"] is None:
        return token[0]
    first, members = token["first"], token["members"]
    swapped = [_swapped_case(each[0]) for each in _CLASS_MEMBER.finditer(members)]
    others = [each for each in swapped if "-" not in each or each[0] <= each[-1]]
    return f"[{token['negation']}{first}{''.join(others)}{members}]"


def _swapped_case(member: str) -> str:
    """Return a letter, range or named set of a character class in the other case, or ""."""
    return _OTHER_CASE.get(member, "") if member.startswith("[") else member.swapcase()


# Options for those arguments of `grep` that a message may suggest.
_OPTIONS_FOR = {"include_ignored": ["--no-ignore", "-."], "fixed_strings": ["-F"]}
_OWN_PARAMETERS = {"pattern", "path"}


def vary(retry: Retry, given: Mapping[str, Any]) -> Retry | None:
    """Translate a retry of `grep` into one of ripgrep_search, whose options are in `rg_args`."""
    own = {name: value for name, value in retry.arguments.items() if name in _OWN_PARAMETERS}
    others = [name for name, value in retry.arguments.items() if name not in own and value is True]
    if len(own) + len(others) < len(retry.arguments) or not {*others, *retry.without} <= _OPTIONS_FOR.keys():
        return None
    if not others and not retry.without:
        return Retry(own)
    dropped = {option for name in retry.without for option in _OPTIONS_FOR[name]}
    rg_args = [
        word
        for option in _options(given.get("rg_args"))
        if option[0] not in dropped
        for word in option
        if word
    ]
    rg_args += [option for name in others for option in _OPTIONS_FOR[name]]
    return Retry({**own, "rg_args": rg_args}) if rg_args else Retry(own, ("rg_args",))


def _words(rg_args: str | Sequence[str] | None) -> Iterator[str]:
    if isinstance(rg_args, str):
        try:
            yield from shlex.split(rg_args)
        except ValueError as error:
            raise _invalid(f"`rg_args` cannot be split as a shell would: {error}.", "") from None
        return
    for word in rg_args or ():
        both = _OPTION_AND_VALUE.fullmatch(word)  # such as "-A 3" in one item
        yield from both.groups() if both else (word,)


def _options(rg_args: str | Sequence[str] | None) -> list[tuple[str, str]]:
    """Split arguments into options by their short names, each with its value or ""."""
    if sum(map(len, rg_args or ())) > _MAX_CHARS:
        raise _invalid(f"`rg_args` has more than {_MAX_CHARS:,} characters.", "")
    words = list(_words(rg_args))
    for name in (word.partition("=")[0] for word in words if word.startswith("--")):
        if name not in _SHORT:  # `getopt` takes abbreviations, ripgrep does not
            raise _invalid(f"{name} is not supported in `rg_args`.", name)
    try:
        options, others = getopt.getopt(words, _SHORT_OPTIONS, _LONG_OPTIONS)
    except getopt.GetoptError as error:
        name = f"{'-' if len(error.opt) == 1 else '--'}{error.opt}"
        raise _invalid(f"{literal(name)} in `rg_args`: {error.msg}.", name) from None
    if others:
        raise _invalid(f"{literal(others[0])} in `rg_args` is not an option.", others[0])
    return [
        (_SHORT.get(name, name), value if name in _SHORT else value.removeprefix("="))
        for name, value in options
    ]


def _invalid(message: str, option: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        message,
        hint=f"rg_args takes {ALLOWED}, and their long names; the pattern and the path have their own "
        "parameters, and every search is recursive.",
        details={"parameter": "rg_args", "option": option.partition(" ")[0], "allowed": ALLOWED.split()},
    )
