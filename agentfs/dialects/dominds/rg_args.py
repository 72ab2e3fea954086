"""Parsing of ripgrep's command line arguments into options of `grep`, by one table. Pure."""

import getopt
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from agentfs.dialects import toolkit as kit
from agentfs.errors import InvalidArgumentError

_MAX_CHARS = 50_000  # `getopt` takes quadratic time
_GLOB_TOKEN = re.compile(r"(?s)(\[[!^]?\]?)((?:\[:\w+:\]|\\.|[^\]\\])*)\]|\\?([^\W\d_])|\\.")
_CLASS_MEMBER = re.compile(r"\[:\w+:\]|\\?[^\W\d_](?:-\\?[^\W\d_])?")
_OTHER_CASE = {"[:lower:]": "[:upper:]", "[:upper:]": "[:lower:]"}
_NUMBER, _FROM_1, _ANY = "[0-9]{1,9}", "0*[1-9][0-9]{0,8}", ".*"

# By the names of an option: the options of `grep` that a flag sets (None unsets one), or the option of `grep`
# that gets a value, and what the value may be.
_OPTIONS: Mapping[str, Mapping[str, Any] | tuple[str, str]] = {
    "-i --ignore-case": kit.case_options("insensitive"),
    "-s --case-sensitive": kit.case_options("sensitive"),
    "-S --smart-case": kit.case_options("smart"),
    "-F --fixed-strings": {"fixed_strings": True},
    "-w --word-regexp": {"word": True, "whole_line": None},
    "-x --line-regexp": {"whole_line": True, "word": None},
    "-v --invert-match": {"invert": True},
    "-U --multiline": {"multiline": True},
    "--multiline-dotall": {"dot_all": True},
    "-o --only-matching": {},
    "-l --files-with-matches": {"output_mode": "files_with_matches"},
    "-c --count": {"output_mode": "count"},
    "--count-matches": {"output_mode": "count"},
    "-L --follow": {"follow_symlinks": True},
    "-. --hidden": {"hidden": True},
    "--no-ignore": {"include_ignored": True},
    "--no-ignore-vcs": {"include_ignored": True},
    "-u --unrestricted": {"include_ignored": True},
    "-A --after-context": ("after", _NUMBER),
    "-B --before-context": ("before", _NUMBER),
    "-C --context": ("context", _NUMBER),
    "-g --glob": ("glob", _ANY),
    "--iglob": ("iglob", _ANY),
    "-t --type": ("type", _ANY),
    "-T --type-not": ("type", _ANY),
    "-m --max-count": ("max_count", _FROM_1),
    "-d --max-depth": ("max_depth", _FROM_1),
    "-E --encoding": ("encoding", "(?!none$).*"),
    "--max-filesize": ("max_filesize", "0*[1-9][0-9]{0,17}[KMGkmg]?"),
    "--sort": ("sort", "path|modified|none"),
    "--sortr": ("sort", "path|modified|none"),
}
_WITHOUT_EFFECT = (
    *("-P --pcre2", "-a --text", "-n --line-number", "-N --no-line-number", "-H --with-filename", "--crlf"),
    *("-I --no-filename", "-p --pretty", "--heading", "--no-heading", "--no-messages", "--no-config"),
)
_ALL: Mapping[str, Mapping[str, Any] | tuple[str, str]] = {
    **_OPTIONS,
    **{names: {} for names in _WITHOUT_EFFECT},
    "--color": ("", "never|auto|always|ansi"),
    "-j --threads": ("", _NUMBER),
}
# The value for `grep` of a value that has another meaning there.
_MEANING: Mapping[str, Mapping[str, str | None]] = {
    "-E": {"auto": None},
    "--sort": {"modified": "oldest", "none": "path"},
    "--sortr": {"path": "reverse", "none": "path"},
}
ALLOWED = " ".join(names.split()[0] for names in _OPTIONS)
_FIRST = {name: names.split()[0] for names in _ALL for name in names.split()}
_EFFECT = {names.split()[0]: effect for names, effect in _ALL.items()}
# All options as `getopt` takes them.
_TAKES_VALUE = {name: isinstance(_EFFECT[first], tuple) for name, first in _FIRST.items()}
_SHORT_OPTIONS = "".join(f"{name[1]}{':' * takes}" for name, takes in _TAKES_VALUE.items() if len(name) == 2)
_LONG_OPTIONS = [f"{name[2:]}{'=' * takes}" for name, takes in _TAKES_VALUE.items() if len(name) > 2]


class RgArguments(NamedTuple):
    """Options of `grep` with the meaning of ripgrep's, and whether only matched parts are shown."""

    options: dict[str, Any]
    only_matching: bool

    @property
    def shows(self) -> Literal["lines", "matches", "files", "counts"]:
        """The kind of the results."""
        if mode := self.options.get("output_mode"):
            return "counts" if mode == "count" else "files"
        return "matches" if self.only_matching else "lines"


def read_arguments(rg_args: str | Sequence[str] | None) -> RgArguments:
    """Parse ripgrep's arguments. Of contradicting ones the last counts, as with ripgrep."""
    options: dict[str, Any] = {**kit.case_options("sensitive"), "hidden": False, "dot_all": False}
    lists: dict[str, list[str]] = {"glob": [], "iglob": [], "type": []}
    given = _options(rg_args)
    for option, text in given:
        effect = _EFFECT[option]
        if not isinstance(effect, tuple):
            options |= effect
            continue
        name, valid = effect
        if not re.fullmatch(valid, text.strip(), re.DOTALL):
            names = " or ".join(each for each, first in _FIRST.items() if first == option)
            raise _invalid(f"{names} in `rg_args` does not take {kit.literal(text)}.", option)
        if name in lists:
            lists[name].append(f"!{text}" if option == "-T" else text)
        elif valid in (_NUMBER, _FROM_1):
            options[name] = int(text)
        else:
            options[name] = _MEANING.get(option, {}).get(text, text)
    flags = [option for option, _ in given]
    if "-v" in flags and "-U" in flags:
        raise _invalid("-v and -U do not go together in `rg_args`.", "-v")
    if flags.count("-u") > 1:
        options["hidden"] = True
    globs = [*lists["glob"], *(_GLOB_TOKEN.sub(_in_both_cases, glob) for glob in lists["iglob"])]
    # ripgrep ignores the type of a file that a glob includes.
    includes = any(not glob.startswith("!") for glob in globs)
    options = {name: value for name, value in options.items() if name and value is not None}
    options |= {"glob": globs or None, "type": (None if includes else lists["type"]) or None}
    only_matching = not {"-o", "--count-matches"}.isdisjoint(flags) and "-v" not in flags
    return RgArguments(options, only_matching)


def _in_both_cases(token: re.Match[str]) -> str:
    """Return a token of a glob that matches letters in either case."""
    opening, members, letter = token.groups()
    if letter is not None:
        other = letter.swapcase()
        return f"[{letter}{other}]" if len(other) == 1 else token[0]
    if opening is None:
        return token[0]
    found = _CLASS_MEMBER.findall(members)
    swapped = [_OTHER_CASE.get(each, "") if each[0] == "[" else each.swapcase() for each in found]
    return f"{opening}{''.join(each for each in swapped if each[:1] <= each[-1:])}{members}]"


# Options for those arguments of `grep` that a message may suggest.
_OPTIONS_FOR = {"include_ignored": ["--no-ignore", "-."], "fixed_strings": ["-F"]}


def vary(retry: kit.Retry, given: Mapping[str, Any]) -> kit.Retry | None:
    """Translate a retry of `grep` into one of ripgrep_search, whose options are in `rg_args`."""
    own = {name: value for name, value in retry.arguments.items() if name in {"pattern", "path"}}
    others = [name for name, value in retry.arguments.items() if name not in own and value is True]
    if len(own) + len(others) < len(retry.arguments) or not {*others, *retry.without} <= _OPTIONS_FOR.keys():
        return None
    if not others and not retry.without:
        return kit.Retry(own)
    dropped = {option for name in retry.without for option in _OPTIONS_FOR[name]}
    kept = [option for option in _options(given.get("rg_args")) if option[0] not in dropped]
    rg_args = [word for option in kept for word in option if word]
    rg_args += [option for name in others for option in _OPTIONS_FOR[name]]
    return kit.Retry({**own, "rg_args": rg_args}) if rg_args else kit.Retry(own, ("rg_args",))


def _words(rg_args: str | Sequence[str]) -> list[str]:
    """Split a text as a shell does, also an item of a list that holds several arguments."""
    items = [rg_args] if isinstance(rg_args, str) else rg_args
    words: list[str] = []
    for item in items:
        several = item is rg_args or (item.startswith("-") and " " in item)
        try:
            words += shlex.split(item) if several else [item]
        except ValueError as error:
            raise _invalid(f"`rg_args` cannot be split as a shell would: {error}.", "") from None
    return words


def _options(rg_args: str | Sequence[str] | None) -> list[tuple[str, str]]:
    """Split arguments into options by their first names, each with its value or ""."""
    if sum(map(len, rg_args or ())) > _MAX_CHARS:
        raise _invalid(f"`rg_args` has more than {_MAX_CHARS:,} characters.", "")
    words = _words(rg_args or ())
    for name in (word.partition("=")[0] for word in words if word.startswith("--")):
        if name not in _FIRST:  # `getopt` takes abbreviations, ripgrep does not
            raise _invalid(f"{name} is not supported in `rg_args`.", name)
    try:
        options, others = getopt.getopt(words, _SHORT_OPTIONS, _LONG_OPTIONS)
    except getopt.GetoptError as error:
        name = f"{'-' if len(error.opt) == 1 else '--'}{error.opt}"
        raise _invalid(f"{kit.literal(name)} in `rg_args`: {error.msg}.", name) from None
    if others:
        raise _invalid(f"{kit.literal(others[0])} in `rg_args` is not an option.", others[0])
    return [
        (_FIRST[name], value if name.startswith("--") else value.removeprefix("=")) for name, value in options
    ]


def _invalid(message: str, option: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        message,
        hint=f"rg_args takes {ALLOWED}, and their long names; the pattern and the path have their own "
        "parameters, and every search is recursive.",
        details={"parameter": "rg_args", "option": option, "allowed": ALLOWED.split()},
    )
